"""Lab 07, exercise 4: Two optimizers by hand"""


import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import ByHand, Check, case

optimizers = Check(
    "optimizers",
    parts={
        "SGD": 1,
        "SGD with memory": 1,
        "AdamW's first step": 1,
        "AdamW's later steps": 1,
        "no gradient": 1,
    },
    reads="What the optimizer remembers",
    tolerance=Tolerance(1e-5, 1e-6, "products and roots in another order"),
    by_hand=ByHand(
        because="the exercise is to compute the steps yourself",
        forbid_names=frozenset({"torch.optim", "torch.optim.*"}),
    ),
)


def _run(make, params, grads):
    leaves = [torch.nn.Parameter(p.clone()) for p in params]
    optimizer = make(leaves)
    for step in grads:
        for leaf, g in zip(leaves, step, strict=True):
            leaf.grad = None if g is None else g.clone()
        optimizer.step()
    return [leaf.detach() for leaf in leaves]


@optimizers.reference
class _:
    def sgd(params, grads, lr, momentum, weight_decay):
        def make(leaves):
            return torch.optim.SGD(leaves, lr, momentum, weight_decay=weight_decay)

        return _run(make, params, grads)

    def adamw(params, grads, lr, betas, eps, weight_decay):
        def make(leaves):
            return torch.optim.AdamW(leaves, lr, betas, eps, weight_decay)

        return _run(make, params, grads)


@optimizers.cases
def _(draw):
    plain, memory, first, later, none = optimizers.parts

    def numbers(steps, dtype, missing=(), zero=(), size=1):
        alike = (draw.integer(2, 4),)
        shapes = [alike, alike, (2, draw.integer(2, 3)), ()]
        params = [draw.tensor(shape, dtype) for shape in shapes]
        grads = [
            [None if (t, i) in missing else draw.tensor(s, dtype) * size for i, s in enumerate(shapes)]
            for t in range(steps)
        ]
        for t, i in zero:
            grads[t][i] = torch.zeros_like(grads[t][i])
        return params, grads

    def words(steps, dtype):
        return f"{steps} step{'s' * (steps != 1)}, {str(dtype).removeprefix('torch.')}"

    def sgd(part, steps, momentum, decay, dtype=torch.float32, words_for="", **settings):
        asked = *numbers(steps, dtype, **settings), draw.choice((0.1, 0.5)), momentum, decay
        shown = f"{words(steps, dtype)}, momentum {momentum}, weight_decay {decay}{words_for}"
        return case(part, *asked, of="sgd", shown=shown)

    def adamw(part, steps, betas, eps, decay, dtype=torch.float32, words_for="", **settings):
        asked = *numbers(steps, dtype, **settings), draw.choice((0.1, 0.3)), betas, eps, decay
        shown = f"{words(steps, dtype)}, betas {betas}, eps {eps}, weight_decay {decay}{words_for}"
        return case(part, *asked, of="adamw", shown=shown)

    yield sgd(plain, 1, 0.0, 0.0)
    yield sgd(plain, 3, 0.0, 0.0, torch.float64)
    yield sgd(plain, 1, 0.0, 0.25, torch.float64)
    yield sgd(plain, 3, 0.0, 0.25)
    yield sgd(plain, 0, 0.0, 0.25)
    yield sgd(memory, 1, 0.9, 0.0)
    yield sgd(memory, 2, 0.9, 0.0, torch.float64)
    yield sgd(memory, draw.integer(3, 5), 0.5, 0.25)
    for eps in (1e-8, 0.1):
        for decay in (0.0, 0.25):
            yield adamw(first, 1, (0.9, 0.99), eps, decay)
    yield adamw(first, 1, (0.5, 0.75), 0.1, 0.25, torch.float64)
    for steps, betas in ((2, (0.9, 0.99)), (3, (0.5, 0.75)), (draw.integer(4, 6), (0.75, 0.9))):
        yield adamw(later, steps, betas, 0.1, 0.0)
        yield adamw(later, steps, betas, 0.1, 0.25, torch.float64)
        yield adamw(later, steps, betas, 1e-8, 0.25)
    said = {"words_for": ", a gradient that is 0", "zero": [(1, 0), (1, 2)]}
    yield sgd(memory, 3, 0.9, 0.25, **said)
    yield adamw(later, 3, (0.5, 0.75), 0.1, 0.25, **said)
    # larger than float32 reaches
    said = {"words_for": ", gradients of 1e45", "size": 1e45}
    yield sgd(memory, 2, 0.9, 0.0, torch.float64, **said)
    yield adamw(later, 2, (0.5, 0.75), 0.1, 0.25, torch.float64, **said)
    missing = {(0, 1), (1, 2), (0, 3), (1, 3), (2, 3)}  # the first has a gradient in each step
    yield sgd(none, 3, 0.0, 0.25, missing=missing)
    yield sgd(none, 3, 0.9, 0.25, missing=missing)
    yield adamw(none, 3, (0.5, 0.75), 0.1, 0.25, missing=missing)
    yield adamw(none, 3, (0.75, 0.9), 1e-8, 0.0, torch.float64, missing=missing)


