"""Lab 07, exercise 4: Two optimizers by hand"""

import copy

import torch

from utils.checks.compare import Tolerance
from utils.checks.exercise import ByHand, Check, case, edited
from utils.checks.lab_solution import lab_solution

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


sgd = lab_solution(__name__, "optimizers", "sgd")
adamw = lab_solution(__name__, "optimizers", "adamw")


def _misconception(name, explanation, earns, function, *edits):
    wrong = {function.__name__: edited(function, *edits)}
    optimizers.misconception(name, explanation, earns=earns)(wrong)


_misconception(
    "the memory dampened",
    "SGD's memory takes in each gradient after the first with the weight 1 - momentum, as a running"
    " mean does.",
    3,
    sgd,
    ("momentum * memory[i] + g", "momentum * memory[i] + (1 - momentum) * g"),
)
_misconception(
    "a memory that begins at 0",
    "SGD's first step is made as if its memory was 0 before and took in only a share of the gradient.",
    3,
    sgd,
    (
        "g if memory[i] is None else momentum * memory[i] + g",
        "(1 - momentum) * g if memory[i] is None else momentum * memory[i] + (1 - momentum) * g",
    ),
)
_misconception(
    "no weight decay in SGD",
    "SGD does not pull the parameters towards 0.",
    2,
    sgd,
    ("g + weight_decay * params[i]", "g + 0"),
)
_misconception(
    "decay times the rate twice",
    "SGD's decay has a factor `lr` too many.",
    2,
    sgd,
    ("g + weight_decay * params[i]", "g + lr * weight_decay * params[i]"),
)
_misconception(
    "decay after the step",
    "AdamW takes its decay off the parameter that the step has changed, and not off the one before.",
    2,
    adamw,
    ("p = params[i] * (1 - lr * weight_decay)", "p = params[i]"),
    ("p - lr * mean / (root + eps)", "(p - lr * mean / (root + eps)) * (1 - lr * weight_decay)"),
)
_misconception(
    "no bias correction",
    "m and v are used as they are, though they began at 0.",
    2,
    adamw,
    ("m[i] / (1 - betas[0] ** t[i])", "m[i]"),
    ("v[i] / (1 - betas[1] ** t[i])", "v[i]"),
)
_misconception(
    "the correction stored",
    "the corrected m and v are remembered, and corrected again in the next step.",
    3,
    adamw,
    ("mean = m[i] /", "mean = m[i] = m[i] /"),
    (
        "root = (v[i] / (1 - betas[1] ** t[i])).sqrt()",
        "v[i] = v[i] / (1 - betas[1] ** t[i])\n                root = v[i].sqrt()",
    ),
)
_misconception(
    "steps counted from 0",
    "parameters become NaN, as where the first step is corrected with β⁰, and so divided by 0.",
    2,
    adamw,
    ("t = [0]", "t = [-1]"),
)
_misconception(
    "Adam with L2",
    "the decay goes through the gradient, as in Adam, and is divided by the root like all of it.",
    2,
    adamw,
    (
        "p = params[i] * (1 - lr * weight_decay)",
        "p = params[i]\n                g = g + weight_decay * p",
    ),
)
_misconception(
    "eps under the root",
    "`eps` is added before the root is taken.",
    2,
    adamw,
    ("(v[i] / (1 - betas[1] ** t[i])).sqrt()", "(v[i] / (1 - betas[1] ** t[i]) + eps).sqrt()"),
    ("(root + eps)", "root"),
)
_misconception(
    "eps before the correction",
    "`eps` is added to the root of v as it is, and the correction comes after it.",
    2,
    adamw,
    (
        "root = (v[i] / (1 - betas[1] ** t[i])).sqrt()",
        "root = (v[i].sqrt() + eps) / (1 - betas[1] ** t[i]) ** 0.5",
    ),
    ("(root + eps)", "root"),
)
_misconception(
    "one count for all",
    "steps are counted for all parameters together, those without a gradient included.",
    4,
    adamw,
    ("for i, g in enumerate(step):", "t = [n + 1 for n in t]\n        for i, g in enumerate(step):"),
    ("t[i] += 1", "pass"),
)
_misconception(
    "memory that fades",
    "where there is no gradient, SGD multiplies its memory by `momentum` all the same.",
    4,
    sgd,
    (
        "            if g is not None:",
        "            if g is None and memory[i] is not None:\n"
        "                memory[i] = momentum * memory[i]\n"
        "            if g is not None:",
    ),
)
_misconception(
    "0 taken for None",
    "where all of a gradient is 0, SGD passes the parameter over; it has a gradient, and makes a step.",
    4,
    sgd,
    ("if g is not None:", "if g is not None and g.any():"),
)
_misconception(
    "None taken for 0",
    "where there is no gradient AdamW goes on with 0: the memories fade and the parameter moves.",
    4,
    adamw,
    ("if g is not None:", "g = torch.zeros_like(params[i]) if g is None else g\n            if True:"),
)


@optimizers.misconception(
    "written into the parameters",
    "SGD changes what it was given: the parameters, or the list that holds them.",
    earns=2,
)
class _:
    def sgd(params, grads, lr, momentum, weight_decay):
        memory = [None] * len(params)
        for step in grads:
            for i, g in enumerate(step):
                if g is not None:
                    g = g + weight_decay * params[i]
                    memory[i] = g if memory[i] is None else momentum * memory[i] + g
                    params[i].sub_(lr * memory[i])
        return params


@optimizers.alternate("one parameter after the other")
class _:
    def sgd(params, grads, lr, momentum, weight_decay):
        done = []
        for p, mine in zip(params, zip(*grads)):
            memory = 0
            for g in mine:
                if g is None:
                    continue
                memory = momentum * memory + g + weight_decay * p
                p = p - lr * memory
            done.append(p)
        return done or params

    def adamw(params, grads, lr, betas, eps, weight_decay):
        done = []
        for which, p in enumerate(params):
            mean, square, count = 0, 0, 0
            for g in [step[which] for step in grads if step[which] is not None]:
                count = count + 1
                p = p - lr * weight_decay * p
                mean = mean + (1 - betas[0]) * (g - mean)
                square = square + (1 - betas[1]) * (g.pow(2) - square)
                scale = lr / (1 - betas[0] ** count)
                p = p - scale * mean / (torch.sqrt(square / (1 - betas[1] ** count)) + eps)
            done.append(p)
        return done


@optimizers.alternate("in place, on copies")
class _:
    def sgd(params, grads, lr, momentum, weight_decay):
        params, buffers = copy.deepcopy(params), {}
        for step in grads:
            for k in range(len(params)):
                if step[k] is None:
                    continue
                g = step[k].add(params[k], alpha=weight_decay)
                if k in buffers:
                    buffers[k].mul_(momentum).add_(g)
                else:
                    buffers[k] = g
                params[k].sub_(buffers[k], alpha=lr)
        return params

    def adamw(params, grads, lr, betas, eps, weight_decay):
        params, state = copy.deepcopy(params), {}
        first, second = betas
        for step in grads:
            for k, g in enumerate(step):
                if g is None:
                    continue
                m, v, t = state.get(k, (torch.zeros_like(g), torch.zeros_like(g), 0))
                t += 1
                params[k].mul_(1 - lr * weight_decay)
                m.mul_(first).add_(g, alpha=1 - first)
                v.mul_(second).addcmul_(g, g, value=1 - second)
                state[k] = m, v, t
                bottom = v.div(1 - second**t).sqrt_().add_(eps)
                params[k].addcdiv_(m, bottom, value=-lr / (1 - first**t))
        return params


optimizers.equivalent(
    ("[p.clone() for p in params]", "[p for p in params]"),
    because="nothing is written into them: each step makes new tensors",
)
