"""Lab 08, exercise 7: From their folder"""

from pathlib import Path

import torch

from hood.judge.checks.exercise import Case, Check

from .shared import SUMS

from_hf = Check(
    "from_hf",
    parts={"embeddings and norms": 1, "the MLP": 1, "attention": 1, "the head": 1, "loading strictly": 1},
    reads="MiniGPT as a Hugging Face model",
    tolerance=SUMS,
)

TABLE = {
    "ln_1": "norm_1",
    "attn.c_proj": "attention.output",
    "ln_2": "norm_2",
    "mlp.c_fc": "mlp.up",
    "mlp.c_proj": "mlp.down",
}


@from_hf.reference
class _:
    def from_hf(state):
        found = {}
        for name, tensor in state.items():
            path = name.split(".")
            if path[1] == "wte":
                found["token_embedding.weight"] = tensor
            elif path[1] == "wpe":
                found["position_embedding.weight"] = tensor
            elif path[1] == "ln_f":
                found[f"final_norm.{path[2]}"] = tensor
            elif path[0] == "lm_head":
                found[name] = tensor
            elif path[1] == "h" and path[-2] != "attn":
                part, kind = ".".join(path[3:-1]), path[-1]
                turned = tensor.T if tensor.dim() == 2 else tensor
                if part == "attn.c_attn":
                    width = len(turned) // 3
                    for place, mine in enumerate(("query", "key", "value")):
                        rows = turned[place * width : (place + 1) * width]
                        found[f"blocks.{path[2]}.attention.{mine}.{kind}"] = rows
                else:
                    found[f"blocks.{path[2]}.{TABLE[part]}.{kind}"] = turned
        found.setdefault("lm_head.weight", state["transformer.wte.weight"])
        found.setdefault("lm_head.bias", torch.zeros(len(found["lm_head.weight"])))
        return found

    def load_strictly(model_class, folder):
        if not Path(folder).exists():
            raise FileNotFoundError(folder)
        model, report = model_class.from_pretrained(folder, output_loading_info=True)
        lost = {*report["unexpected_keys"], *report["missing_keys"]}
        if lost:
            raise ValueError(" ".join(lost))
        return model.eval()


@from_hf.cases
def _(draw):
    embeddings, mlp, attention, head, strictly = from_hf.parts
    belongs = {
        embeddings: ("token_emb", "position_emb", "final_norm", "blocks.N.norm"),
        mlp: ("blocks.N.mlp",),
        attention: ("blocks.N.attention",),
        head: ("lm_head",),
    }

    def theirs(width, layers, hidden, words, without=(), masks=False):
        """A GPT-2's state dict, with its names in another order than MiniGPT's."""

        def both(name, *shape):
            return {f"{name}.weight": draw.tensor(shape), f"{name}.bias": draw.tensor(shape[-1:])}

        state = {
            "transformer.wte.weight": draw.tensor((words, width)),
            "transformer.wpe.weight": draw.tensor((4, width)),
        }
        for n in range(layers):
            block = f"transformer.h.{n}"
            state |= both(f"{block}.ln_1", width)
            if masks:
                state[f"{block}.attn.bias"] = torch.ones(1, 1, 4, 4, dtype=torch.bool).tril()
                state[f"{block}.attn.masked_bias"] = torch.tensor(-1e4)
            state |= both(f"{block}.attn.c_attn", width, 3 * width)
            state |= both(f"{block}.attn.c_proj", width, width)
            state |= both(f"{block}.ln_2", width)
            state |= both(f"{block}.mlp.c_fc", width, hidden)
            state |= both(f"{block}.mlp.c_proj", hidden, width)
        state |= both("transformer.ln_f", width)
        state["lm_head.weight"] = draw.tensor((words, width))
        state["lm_head.bias"] = draw.tensor((words,))
        return {name: tensor for name, tensor in state.items() if name not in without}

    def asked(part, state, shown):
        def play(subject):
            came = subject["from_hf"](state)
            starts = [s.replace("N", str(n)) for s in belongs[part] for n in range(12)]
            own = {name: t for name, t in came.items() if name.startswith(tuple(starts))}
            every = [s.replace("N", str(n)) for p in belongs.values() for s in p for n in range(12)]
            strange = sorted(name for name in came if not name.startswith(tuple(every)))
            return {name: own[name] for name in sorted(own)}, strange if part == embeddings else []

        places = {"[1]": "names that MiniGPT does not have"}
        return Case(part, play, of="from_hf", shown=shown, places=places)

    sizes = {"width": draw.integer(2, 4), "hidden": draw.integer(5, 8), "words": draw.integer(5, 9)}
    for part in belongs:
        yield asked(part, theirs(layers=1, **sizes), "1 block")
        yield asked(part, theirs(layers=2, masks=True, **sizes), "2 blocks, with masks")
        yield asked(part, theirs(3, 11, 3, 5), "11 blocks of width 3")
    square = theirs(4, 1, 4, 4)
    yield asked(mlp, square, "1 block, all sizes 4")
    yield asked(attention, square, "1 block, all sizes 4")
    names = ["lm_head.bias", "lm_head.weight"]
    for without in (names[:1], names[1:], names):
        shown = f"without {' and '.join(without)}"
        yield asked(head, theirs(layers=1, without=without, **sizes), shown)

    small = {"vocab_size": 7, "d_model": 4, "n_heads": 2, "n_layers": 1, "d_ff": 5, "context": 3}
    count = 7 * 4 + 3 * 4 + 4 * (4 * 4 + 4) + 4 * 4 + 2 * 4 * 5 + 5 + 4 + 2 * 4 + 7 * 4 + 7
    numbers = draw.tensor((count,))

    def loading(what, shown, error, gone=""):
        def play(subject):
            arguments = (small, numbers, what, gone)
            came = subject.drive("transformer:loaded_strictly", *arguments, of="load_strictly")
            return {"as asked": came["raised"] == error, **came}

        asked = f"{error} should be raised" if error else "nothing should be raised"
        places = {
            "['as asked']": f"Here, {asked}, but something else happened.",
            "['names']": "The message doesn't name every tensor that would be lost.",
            "['training']": "The loaded model is in training mode.",
            "['logits']": "the logits of the loaded model",
        }
        return Case(strictly, play, of="load_strictly", shown=shown, places=places)

    yield loading("whole", "a folder in which nothing is missing", "")
    yield loading("stock", "GPT-2's own class, a folder whose head has a bias", "ValueError")
    gone = draw.choice(("transformer.h.0.mlp.c_fc.bias", "transformer.ln_f.weight", "lm_head.weight"))
    yield loading("missing", f"a file without {gone}", "ValueError", gone)
    gone = draw.choice(("transformer.h.0.ln_2.bias", "transformer.wpe.weight"))
    shown = f"GPT-2's own class, a folder whose head has a bias, a file without {gone}"
    yield loading("stock", shown, "ValueError", gone)
    yield loading("nowhere", "a folder that does not exist", "FileNotFoundError")
