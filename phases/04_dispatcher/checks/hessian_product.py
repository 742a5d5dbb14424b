"""Lab 04, exercise 11: Curvature without a matrix"""

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check

from .models import MODEL_KEPT, inputs, made, minigpt

hessian_product = Check(
    "hessian_product",
    parts={"small models": 1, "MiniGPT": 1, "no Hessian, and no trace": 1},
    reads="A gradient for each example",
    # The difference of two gradients is wrong in the tenth digit at best.
    tolerance=Tolerance(1e-11, 1e-12, "float64, and sums in any order"),
)


@hessian_product.reference
def _(model, loss, x, targets, v):
    names, parameters = zip(*model.named_parameters(), strict=True)
    along = [v[name] for name in names]
    slopes = torch.autograd.grad(loss(model(x), targets), parameters, create_graph=True)
    found = torch.autograd.grad(slopes, parameters, along, materialize_grads=True)
    return dict(zip(names, found, strict=True))


PLACES = {
    "['product']": "the product",
    "['many']": "at least as many operators were called as the model has parameters.",
    "['large']": "a tensor has more than ten numbers for each parameter.",
    **MODEL_KEPT,
    "['kept']['v']": "the call changed `v`.",
}


@hessian_product.cases
def _(draw):
    small, minigpts, no_matrix = hessian_product.parts

    def asked(part, shown, *args, watched=False):
        parameters = sum(one.numel() for one in args[-1].values())

        def play(subject):
            came = subject.drive("derivatives:hessian_product", *args, watched=watched)
            if part != no_matrix:
                return {"product": came["product"]}
            told = {"kept": came["kept"]}
            if watched:
                many, large = came["operators"] >= parameters, came["largest"] > 10 * parameters
                told = {"many": many, "large": large}
            return {**told, "product": came["product"]}

        return Case(part, play, shown=shown, places=PLACES)

    def along(state, size=1.0):
        return {name: size * draw.tensor(tuple(one.shape), torch.float64) for name, one in state.items()}

    for model, loss in (
        ("a linear layer", "cross-entropy"),
        ("a linear layer without a bias", "squared errors"),
        ("a linear layer that first subtracts a buffer", "squared errors"),
        ("modules in modules", "cross-entropy"),
        ("modules in modules", "squared errors"),
        ("a convolution, flattened", "squared errors"),
        ("an embedding and a layer that share a weight", "cross-entropy"),
    ):
        ins, outs, rows = draw.shape(3, low=3, high=6)
        state = made(draw, model, (ins, outs), torch.float64)
        given = inputs(draw, model, loss, rows, ins, outs)
        shown = f"{model}, with {loss}"
        yield asked(small, shown, model, (ins, outs), state, loss, *given, along(state))
    model, loss, sizes = "modules in modules", "cross-entropy", (3, 4)
    state, given = made(draw, model, sizes, torch.float64), inputs(draw, model, loss, 1, *sizes)
    yield asked(small, "a single example", model, sizes, state, loss, *given, along(state))
    for size, words in ((100.0, "a long v"), (0.001, "a short v")):
        v = along(state, size)
        yield asked(small, f"{model}, {words}", model, sizes, state, loss, *given, v)
    v = {name: one for name, one in along(state).items() if name == "0.bias"}
    shown = f"{model}, and v is 0 except for one bias"
    yield asked(small, shown, model, sizes, state, loss, *given, v)

    for layers in (1, 2):
        config, state = minigpt(draw, layers, torch.float64)
        rows, length = draw.shape(2, low=2, high=6)
        given = inputs(draw, config, "next words", rows, length, config.vocab_size)
        shown = f"a new MiniGPT of {layers} layer{'s' * (layers > 1)}"
        yield asked(minigpts, shown, config, (), state, "next words", *given, along(state))
    model, loss, sizes = "modules in modules", "cross-entropy", (draw.integer(29, 31), draw.integer(6, 9))
    rows = draw.integer(24, 32)  # a product for each example would be too large
    state, given = made(draw, model, sizes, torch.float64), inputs(draw, model, loss, rows, *sizes)
    n = sum(one.numel() for one in state.values())
    shown = f"{model} with {n:,} parameters, {rows} examples"
    yield asked(no_matrix, shown, model, sizes, state, loss, *given, along(state), watched=True)
    model, sizes = "a linear layer that first subtracts a buffer", draw.shape(2, low=3, high=6)
    state, given = made(draw, model, sizes, torch.float64), inputs(draw, model, loss, 2, *sizes)
    shown = f"{model}, before and after"
    yield asked(no_matrix, shown, model, sizes, state, loss, *given, along(state))
