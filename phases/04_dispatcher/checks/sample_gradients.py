"""Lab 04, exercise 10: Who pulls hardest?"""

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check
from utils.drivers.derivatives import TRAINED

from .models import MODEL_KEPT, inputs, made, minigpt, trained

sample_gradients = Check(
    "sample_gradients",
    parts={"small models": 1, "MiniGPT": 1, "no loop, and no trace": 1},
    reads="A gradient for each example",
    tolerance=Tolerance(1e-4, 1e-5, "sums over words and channels, added in any order"),
)


@sample_gradients.reference
def _(model, loss, x, targets):
    names, parameters = zip(*model.named_parameters(), strict=True)

    def losses(*parameters):
        tied = dict(zip(names, parameters, strict=True))
        outputs = torch.func.functional_call(model, tied, (x,))
        alone = torch.vmap(lambda output, target: loss(output[None], target[None]))
        return alone(outputs, targets)

    found = torch.func.jacrev(losses, argnums=tuple(range(len(names))))
    return dict(zip(names, found(*map(torch.Tensor.detach, parameters)), strict=True))


PLACES = {
    "['gradients']": "the gradients",
    "['grows']": "the number of operators grows with the number of examples.",
    **MODEL_KEPT,
}


@sample_gradients.cases
def _(draw):
    small, minigpts, no_loop = sample_gradients.parts

    def asked(part, shown, *args, few=0, only=()):
        def play(subject):
            came = subject.drive("derivatives:sample_gradients", *args, few=few, only=only)
            if part != no_loop:
                return {"gradients": came["gradients"]}
            # a loop calls at least one operator for each example, or one for each chunk of examples
            return {"grows": came["operators"] >= 7, "kept": came["kept"], "gradients": came["gradients"]}

        return Case(part, play, shown=shown, places=PLACES)

    shallow = (
        ("a linear layer", "cross-entropy"),
        ("a linear layer without a bias", "squared errors"),
        ("a linear layer that first subtracts a buffer", "squared errors"),
        ("an embedding and a layer that share a weight", "cross-entropy"),
    )
    # In float32, two right answers for these models may differ by more than the tolerance.
    deep = ("modules in modules", "cross-entropy"), ("a convolution, flattened", "squared errors")
    for dtype, asked_for in ((torch.float32, shallow), (torch.float64, (*shallow, *deep))):
        for model, loss in asked_for:
            ins, outs, rows = draw.shape(3, low=3, high=6)
            given = inputs(draw, model, loss, rows, ins, outs, dtype)
            shown = f"{model}, with {loss}"
            yield asked(small, shown, model, (ins, outs), made(draw, model, (ins, outs), dtype), loss, *given)
    model, loss, sizes = "a linear layer", "cross-entropy", (3, 4)
    state = made(draw, model, sizes, torch.float64)
    for rows, words in ((1, "a single example"), (4, "as many examples as classes")):
        given = inputs(draw, model, loss, rows, *sizes, torch.float64)
        yield asked(small, f"{model}, {words}", model, sizes, state, loss, *given)
    x, targets = inputs(draw, model, loss, 4, *sizes, torch.float64)
    x, targets = x[:1].expand(4, -1), targets[:1].expand(4)
    yield asked(small, f"{model}, equal examples", model, sizes, state, loss, x, targets)

    for layers in (1, 2):
        config, state = minigpt(draw, layers, torch.float64)
        rows, length = draw.shape(2, low=2, high=6)
        x, targets = inputs(draw, config, "next words", rows, length, config.vocab_size)
        shown = f"a new MiniGPT of {layers} layer{'s' * (layers > 1)}"
        yield asked(minigpts, shown, config, (), state, "next words", x, targets)
        for row in range(1, rows):
            targets[row, 1 : 1 + draw.integer(0, length - 1)] = -100
        shown += ", and some targets are -100"
        yield asked(minigpts, shown, config, (), state, "next words", x, targets)
    first = draw.integer(0, 900)
    x, targets = trained(slice(first, first + 3))
    names = "lm_head.bias", "final_norm.weight", "blocks.0.mlp.up.bias"
    yield asked(minigpts, TRAINED, TRAINED, (), {}, "next words", x, targets, only=names)

    for model, loss, more in (
        # more than a usual `chunk_size` of `vmap`
        ("a linear layer that first subtracts a buffer", "squared errors", 66),
        ("modules in modules", "cross-entropy", 7),
        ("an embedding and a layer that share a weight", "cross-entropy", 7),
    ):
        ins, outs, few = draw.shape(3, low=2, high=5)
        state = made(draw, model, (ins, outs), torch.float64)
        given = inputs(draw, model, loss, few + more, ins, outs, torch.float64)
        shown = f"{model}, {few} examples and then {few + more}"
        yield asked(no_loop, shown, model, (ins, outs), state, loss, *given, few=few)
