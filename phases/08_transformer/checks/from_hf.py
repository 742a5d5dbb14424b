"""Lab 08, exercise 7: From their folder"""

from pathlib import Path

import torch

from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution

from .shared import SUMS, named

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
        """A GPT-2's state dict, names in an order of their own."""

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

        asked = f"{error} is asked for" if error else "nothing is to be raised"
        places = {
            "['as asked']": f"Something else happens than the question says: {asked} here.",
            "['names']": "The message doesn't name every tensor that would be lost.",
            "['training']": "What was loaded is in training mode.",
            "['logits']": "the logits of what was loaded",
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


_from_hf = lab_solution(__name__, "from_hf")
_load = lab_solution(__name__, "from_hf", "load_strictly")


def _misconception(name, explanation, earns, *edits):
    wrong = edited(_from_hf, *edits)
    from_hf.misconception(name, explanation, earns=earns)(named("from_hf", wrong))


def _of_loading(name, explanation, *edits):
    wrong = edited(_load, *edits)
    from_hf.misconception(name, explanation, earns=4)(named("load_strictly", wrong))


_TURNED = "found[f'blocks.{block}.{mine}.{kind}'] = tensor.mT if tensor.dim() == 2 else tensor"
_ATTENTION = "found[f'blocks.{block}.attention.{name}.{kind}'] = tensor.mT if tensor.dim() == 2 else tensor"
_misconception(
    "not transposed",
    "weights lie as Conv1D has them, (in, out), where a linear layer has (out, in).",
    3,
    (_TURNED, _TURNED.replace(".mT if tensor.dim() == 2 else tensor", "")),
    (_ATTENTION, _ATTENTION.replace(".mT if tensor.dim() == 2 else tensor", "")),
)
_misconception(
    "only what doesn't fit transposed",
    "square weights are not transposed; only those are whose sizes would not fit.",
    3,
    (_TURNED, _TURNED.replace("tensor.dim() == 2", "tensor.dim() == 2 and tensor.shape[0] != tensor.shape[1]")),
    (_ATTENTION, _ATTENTION.replace("tensor.dim() == 2", "tensor.dim() == 2 and tensor.shape[0] != tensor.shape[1]")),
)
_misconception(
    "query, key and value exchanged",
    "query and key are exchanged.",
    4,
    ("('query', 'key', 'value')", "('key', 'query', 'value')"),
)
_misconception(
    "value before key",
    "key and value are exchanged.",
    4,
    ("('query', 'key', 'value')", "('query', 'value', 'key')"),
)
_misconception(
    "square ones not transposed",
    "`attn.c_proj` is square, fits either way, and is not transposed.",
    4,
    (_TURNED, _TURNED.replace("tensor.dim() == 2", "tensor.dim() == 2 and mine != 'attention.output'")),
)
_misconception(
    "the MLP not transposed",
    "the weights of `mlp.c_fc` and `mlp.c_proj` lie as Conv1D has them.",
    4,
    (_TURNED, _TURNED.replace("tensor.dim() == 2", "tensor.dim() == 2 and 'mlp' not in mine")),
)
_misconception(
    "interleaved",
    "every third column goes to the query, as where the three were shuffled into each other.",
    4,
    (
        "state[f'transformer.h.{block}.attn.c_attn.{kind}'].chunk(3, dim=-1)",
        "[state[f'transformer.h.{block}.attn.c_attn.{kind}'][..., n::3] for n in range(3)]",
    ),
)
_misconception(
    "the head always tied",
    "the head is the embedding's weight, even where the file has another.",
    4,
    ("state.get('lm_head.weight', embedding)", "embedding"),
)
_misconception(
    "the bias left out",
    "the head's bias is zeros, even where the file has one.",
    4,
    ("state.get('lm_head.bias', head.new_zeros(len(head)))", "head.new_zeros(len(head))"),
)
_misconception(
    "no bias where there is none",
    "a file without a bias of the head gives none, where MiniGPT's head needs one.",
    4,
    ("    return found", "    if 'lm_head.bias' not in state:\n        del found['lm_head.bias']\n    return found"),
)
_misconception(
    "norms exchanged",
    "the norm before attention and the one before the MLP are exchanged.",
    4,
    ("'ln_1': 'norm_1', 'ln_2': 'norm_2'", "'ln_1': 'norm_2', 'ln_2': 'norm_1'"),
)
_misconception(
    "two blocks",
    "there are never more than two blocks.",
    2,
    ("in state:\n", "in state and block < 2:\n"),
)
_misconception(
    "masks as weights",
    "an old file's masks are among what is returned.",
    4,
    ("    return found", "    return {**found, **{name: t for name, t in state.items() if name.endswith(('attn.bias', 'masked_bias'))}}"),
)
_of_loading(
    "what was dropped is not said",
    "a tensor that the class has no place for is dropped in silence.",
    ("sorted(report['unexpected_keys']) + ", ""),
)
_of_loading(
    "what is missing is not said",
    "a tensor that the file lacks is made up in silence.",
    (" + sorted(report['missing_keys'])", ""),
)
_of_loading(
    "the hub asked",
    "where there is no folder, an OSError is raised that is no FileNotFoundError, as transformers raises it.",
    ("if not Path(folder).is_dir():", "if False:"),
)
_of_loading(
    "in training mode",
    "the model that is returned is in training mode.",
    ("model.eval()", "model.train()"),
)
_of_loading(
    "no names",
    "the message doesn't name what was lost.",
    (": {', '.join(lost)}", ""),
)
_of_loading(
    "one name of several",
    "of several tensors that would be lost, the message names one alone, or one kind.",
    ("', '.join(lost)", "lost[0]"),
)


_of_loading(
    "the first name of what is missing",
    "the message names one tensor that the file lacks, and no other that would be lost.",
    ("sorted(report['unexpected_keys']) + sorted(report['missing_keys'])", "sorted(report['missing_keys']) + sorted(report['unexpected_keys'])"),
    ("', '.join(lost)", "lost[0]"),
)


@from_hf.alternate("replaced in the names")
class _:
    def from_hf(state):
        import re

        words = {
            "transformer.": "",
            "wte.": "token_embedding.",
            "wpe.": "position_embedding.",
            "ln_f.": "final_norm.",
            "h.": "blocks.",
            "ln_": "norm_",
            "attn.c_proj": "attention.output",
            "mlp.c_fc": "mlp.up",
            "mlp.c_proj": "mlp.down",
        }
        found = {}
        for name, tensor in state.items():
            if re.search(r"\.attn\.(masked_)?bias$", name):
                continue
            if ".c_" in name:
                tensor = tensor.t()
            for old, new in words.items():
                name = name.replace(old, new)
            if "c_attn" in name:
                for part, piece in zip(("query", "key", "value"), tensor.tensor_split(3)):
                    found[name.replace("attn.c_attn", f"attention.{part}")] = piece
            else:
                found[name] = tensor
        if "lm_head.weight" not in found:
            found["lm_head.weight"] = found["token_embedding.weight"]
        if "lm_head.bias" not in found:
            found["lm_head.bias"] = torch.zeros(found["lm_head.weight"].size(0))
        return found

    def load_strictly(model_class, folder):
        if not folder.exists():
            raise FileNotFoundError(str(folder))
        model, told = model_class.from_pretrained(folder, output_loading_info=True)
        problems = [f"{kind}: {name}" for kind in ("unexpected_keys", "missing_keys") for name in told[kind]]
        if problems:
            raise ValueError("; ".join(problems))
        return model


@from_hf.alternate("asked from MiniGPT's side")
class _:
    def from_hf(state):
        blocks = {name.split(".")[2] for name in state if name.startswith("transformer.h.")}
        d = state["transformer.wte.weight"].shape[1]
        out = {
            "token_embedding.weight": state["transformer.wte.weight"],
            "position_embedding.weight": state["transformer.wpe.weight"],
        }
        for b in blocks:
            here = {name[len(f"transformer.h.{b}.") :]: t for name, t in state.items() if name.startswith(f"transformer.h.{b}.")}
            for ours, theirs in (("norm_1", "ln_1"), ("norm_2", "ln_2")):
                out[f"blocks.{b}.{ours}.weight"] = here[f"{theirs}.weight"]
                out[f"blocks.{b}.{ours}.bias"] = here[f"{theirs}.bias"]
            for ours, theirs in (("attention.output", "attn.c_proj"), ("mlp.up", "mlp.c_fc"), ("mlp.down", "mlp.c_proj")):
                out[f"blocks.{b}.{ours}.weight"] = here[f"{theirs}.weight"].transpose(0, 1)
                out[f"blocks.{b}.{ours}.bias"] = here[f"{theirs}.bias"]
            for i, ours in enumerate(["query", "key", "value"]):
                out[f"blocks.{b}.attention.{ours}.weight"] = here["attn.c_attn.weight"][:, i * d : i * d + d].T
                out[f"blocks.{b}.attention.{ours}.bias"] = here["attn.c_attn.bias"][i * d : i * d + d]
        out["final_norm.weight"] = state["transformer.ln_f.weight"]
        out["final_norm.bias"] = state["transformer.ln_f.bias"]
        out["lm_head.weight"] = state["lm_head.weight" if "lm_head.weight" in state else "transformer.wte.weight"]
        out["lm_head.bias"] = state["lm_head.bias"] if "lm_head.bias" in state else torch.zeros(out["lm_head.weight"].shape[:1])
        return out

    def load_strictly(model_class, folder):
        import os

        if not os.path.isdir(folder):
            raise FileNotFoundError("there is no " + str(folder))
        loaded = model_class.from_pretrained(folder, output_loading_info=True)
        lost = {key: loaded[1][key] for key in ("missing_keys", "unexpected_keys")}
        if any(lost.values()):
            raise ValueError(str(lost))
        return loaded[0]


from_hf.equivalent(
    ("('weight', 'bias')", "('bias', 'weight')"),
    ("('missing_keys', 'unexpected_keys')", "('unexpected_keys', 'missing_keys')"),
    ("('unexpected_keys', 'missing_keys')", "('missing_keys', 'unexpected_keys')"),
    ("(('norm_1', 'ln_1'), ('norm_2', 'ln_2'))", "(('norm_2', 'ln_2'), ('norm_1', 'ln_1'))"),
    ("('attention.output', 'attn.c_proj'), ('mlp.up', 'mlp.c_fc')", "('mlp.up', 'mlp.c_fc'), ('attention.output', 'attn.c_proj')"),
    ("('mlp.up', 'mlp.c_fc'), ('mlp.down', 'mlp.c_proj')", "('mlp.down', 'mlp.c_proj'), ('mlp.up', 'mlp.c_fc')"),
    because="all of them are gone through, in any order",
)
from_hf.equivalent(
    ("tensor.dim() == 2", "tensor.dim() >= 2"),
    ("transpose(0, 1)", "transpose(1, 0)"),
    because="weights have two dimensions",
)
from_hf.equivalent(
    ("Path(folder)", "folder"),
    ("model.eval()", "model.eval().float()"),
    ("model.eval()", "model"),
    ("return model", "return model.float()"),
    ("loaded[0]", "loaded[0].float()"),
    because="a path is handed over; from_pretrained returns it in evaluation mode and float32",
)
