"""Lab 08, exercise 13: Few numbers to train"""

import torch
from torch import nn

from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.words import counted
from utils.minigpt import MiniGPTConfig

from .shared import SUMS

lora = Check(
    "LoRA",
    parts={"a new layer": 1, "training": 1, "merging": 1, "a whole model": 1},
    reads="Fewer numbers to train, fewer bits to store",
    tolerance=SUMS,
)


class _Reference(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        rows, columns = base.weight.shape
        self.base, self.factor, self.added = base, alpha / rank, False
        for one in base.parameters():
            one.requires_grad = False
        dtype = base.weight.dtype
        self.A = nn.Parameter(torch.rand(rank, columns, dtype=dtype) - 0.5)
        self.B = nn.Parameter(torch.zeros(rows, rank, dtype=dtype))

    def change(self):
        return self.factor * torch.einsum("or,ri->oi", self.B, self.A)

    def forward(self, x):
        return self.base(x) if self.added else self.base(x) + x @ self.change().T

    def merge(self):
        if not self.added:
            self.base.weight.data += self.change().data
        self.added = True

    def unmerge(self):
        if self.added:
            self.base.weight.data -= self.change().data
        self.added = False


def _adapt(model, names, rank, alpha):
    for one in model.parameters():
        one.requires_grad = False
    for path, layer in list(model.named_modules()):
        above, _, name = path.rpartition(".")
        if name in names and type(layer) is nn.Linear:
            model.get_submodule(above).register_module(name, _Reference(layer, rank, alpha))


def _adapter(model):
    paths = [path for path, one in model.named_modules() if isinstance(one, _Reference)]
    wanted = {f"{path}.{name}".lstrip(".") for path in paths for name in "AB"}
    return {name: one for name, one in model.state_dict().items() if name in wanted}


lora.reference({"LoRA": _Reference, "adapt": _adapt, "adapter": _adapter})

MADE = {
    "['made']['base']": "`base` is not the layer that was given.",
    "['made']['dtype']": "A and B do not have the dtype of the weight.",
    "['made']['zeros']": "B does not start with zeros.",
    "['made']['moving']": "A starts with zeros.",
    "['made']['random']": "A does not start with random numbers, new ones in each layer.",
    "['made']['trained']": "which parameters require a gradient",
    "['shapes']": "the shapes in the state dict",
    "['start']": "the output of a new layer",
}
WHOLE_MODEL = {
    "['trained']": "the parameters that require a gradient, with their counts of numbers",
    "['changed']": "the parameters that two steps of SGD have changed",
    "['adapter']": "the dict of `adapter(model)` after two steps of SGD",
    "['outputs']": "the model's outputs after two steps of SGD",
}


def near(outputs):
    """Whether a learner's outputs are tensors that differ only by rounding in float64."""
    first = outputs[0]
    return all(
        isinstance(one, torch.Tensor)
        and one.shape == first.shape
        and bool(((one - first).abs() <= 1e-11 * (1 + first.abs())).all())
        for one in outputs
    )


@lora.cases
def _(draw):
    new, training, merging, whole = lora.parts

    def layer(ins, outs, biased, dtype):
        return draw.tensor((outs, ins), dtype), draw.tensor((outs,), dtype) if biased else None

    def words(ins, outs, biased, dtype, rank, batch):
        named = f"a layer from {ins} to {outs}{'' if biased else ' without a bias'}, rank {rank}"
        return f"{named}, x {(*batch, ins)}{', in float64' if dtype == torch.float64 else ''}"

    def fresh(ins, outs, rank, *batch, biased=True, dtype=torch.float32):
        weight, bias = layer(ins, outs, biased, dtype)
        alpha, x = draw.integer(1, 20), draw.tensor((*batch, ins), dtype)

        def play(subject):
            came = subject.drive("adapters:new_lora", weight, bias, rank, alpha, x)
            return {name: came[name] for name in ("made", "shapes", "start")}

        return Case(new, play, shown=words(ins, outs, biased, dtype, rank, batch), places=MADE)

    def played(
        part,
        ins,
        outs,
        rank,
        alpha,
        *batch,
        steps=(),
        biased=True,
        dtype=torch.float32,
        layout="contiguous",
    ):
        weight, bias = layer(ins, outs, biased, dtype)
        a, b = draw.tensor((rank, ins), dtype), draw.tensor((outs, rank), dtype)
        x = draw.tensor((*batch, ins), dtype, layout)
        upstream = None if steps else draw.tensor((*batch, outs), dtype)

        def play(subject):
            given = (weight, bias, a, b, alpha, x, steps, upstream)
            came = subject.drive("adapters:played_lora", *given)
            if dtype == torch.float64 and steps:
                came["same"] = near(came["outputs"])
            return came

        shown = f"{words(ins, outs, biased, dtype, rank, batch)}, alpha {alpha}"
        places = {
            "['frozen']": "the parameters of `base` get a gradient.",
            "['leaf']": "after the calls, the weight of `base` has a graph. It should have no graph, as before the calls.",
            "['outputs'][0]": "the output",
            "['weights'][0]": "the weight of the given layer",
            "['gradients']['A']": "the gradient of A",
            "['gradients']['B']": "the gradient of B",
            "['gradients']['x']": "the gradient of x",
            "['other']": "the output of a second LoRA with the same numbers, which is never merged",
            "['same']": (
                "In float64, `merge()` or `unmerge()` changes the output by more than rounding in "
                "float64."
            ),
        }
        for place in range(1, len(steps) + 1):
            after = ", ".join(
                "new numbers in A" if step == "numbers" else f"`{step}()`"
                for step in steps[:place]
            )
            places[f"['outputs'][{place}]"] = f"the output after {after}"
            places[f"['weights'][{place}]"] = f"the weight of the given layer after {after}"
        if steps:
            shown += f", then {', '.join(steps).replace('numbers', 'new numbers in A')}"
        if layout != "contiguous":
            shown += f", x {layout}"
        return Case(part, play, shown=shown, places=places)

    def adapted(shown, sizes, names, rank, x, targets):
        alpha, seed = draw.integer(1, 9), draw.integer(0, 10**6)

        def play(subject):
            given = (sizes, names, rank, alpha, seed, x, targets)
            came = subject.drive("adapters:adapted", *given)
            return {name: came[name] for name in ("trained", "changed", "adapter", "outputs")}

        said = f"{shown}, names {names}, rank {rank}"
        return Case(whole, play, shown=said, places=WHOLE_MODEL)

    ins, outs = draw.shape(2, low=3, high=6)
    yield fresh(ins, outs, 2, 2)
    yield fresh(outs, ins, 1, 2, 3)
    yield fresh(ins, outs, 2, biased=False)
    yield fresh(2, 3, 4, 2)
    yield fresh(ins, outs, 2, 3, dtype=torch.float64)

    for alpha in (draw.integer(3, 9), draw.integer(1, 7) / 8):
        yield played(training, ins, outs, 2, alpha, draw.integer(2, 4))
    yield played(training, outs, ins, 1, draw.integer(2, 9), 2, 3, layout="transposed")
    yield played(training, ins, outs, 3, draw.integer(1, 2))
    yield played(training, 2, 3, 4, 2, 1)
    yield played(training, ins, outs, 2, draw.integer(3, 9), 3, biased=False)
    yield played(training, 4, 4, 3, draw.integer(4, 9), 2, dtype=torch.float64)

    for steps in (
        ("merge", "eval"),
        ("merge", "merge"),
        ("eval", "unmerge"),
        ("merge", "unmerge"),
        ("merge", "unmerge", "unmerge"),
        ("merge", "unmerge", "numbers", "merge", "merge"),
    ):
        rank, alpha = draw.integer(2, 3), draw.integer(4, 9)
        yield played(merging, *draw.shape(2, low=2, high=5), rank, alpha, 2, steps=steps)
    yield played(
        merging, 3, 3, 1, 0.5, 2, 2, steps=("merge", "unmerge"), biased=False, dtype=torch.float64
    )

    def gpt(layers, names, rank):
        config = MiniGPTConfig(9, 4, 2, layers, draw.integer(5, 7), 6)
        x, targets = (
            torch.tensor([[draw.integer(0, 8) for _ in range(4)] for _ in range(2)])
            for _ in range(2)
        )
        shown = f"a MiniGPT of {counted(layers, 'layer')}"
        return adapted(shown, config, names, rank, x, targets)

    yield gpt(2, ["query", "value"], 2)
    yield gpt(1, ["up", "lm_head", "put"], 1)  # a part of a name is not a name
    yield gpt(1, ["key"], draw.integer(2, 3))
    yield gpt(2, ["output", "down", "norm_1", "token_embedding"], 2)
    for names in (["up", "base"], ["0"], ["down"]):
        ins, outs = draw.shape(2, low=2, high=4)
        given = draw.tensor((3, ins)), draw.tensor((3, outs))
        shown = "a model with an `up` of two layers, a `base`, and parameters A and B of its own"
        yield adapted(shown, (ins, outs), names, 2, *given)

    weight, bias = layer(3, 2, True, torch.float32)
    a, b = draw.tensor((2, 3)), draw.tensor((2, 2))
    yield Case(
        whole,
        lambda subject: subject.drive("adapters:adapter_alone", weight, bias, a, b),
        shown="a LoRA as the whole model, with no parameter that requires a gradient",
        places={"": "the dict of `adapter(model)`"},
    )
