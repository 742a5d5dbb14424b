"""Lab 02, exercise 1: Three lines, five adjoints"""

import torch

from utils.checks.exercise import Case, Check

from .shared import BY_HAND

scalar_adjoints = Check(
    "scalar_adjoints",
    parts={"down to the fork": 1, "where two paths meet": 1},
    reads="Three lines, by hand",
    by_hand=BY_HAND,
)


@scalar_adjoints.reference
def _(a, b):
    a, b = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (a, b))
    c = a * b
    d = c + a
    loss = d**2
    nodes = {"L": loss, "d": d, "c": c, "b": b, "a": a}
    found = torch.autograd.grad(loss, list(nodes.values()))
    return {name: grad.item() for name, grad in zip(nodes, found, strict=True)}


@scalar_adjoints.cases
def _(draw):
    def adjoints(part, a, b, names, shown):
        def play(subject):
            found = subject(a, b)
            return [as_float(found[name]) for name in names]

        places = {f"[{k}]": f"the adjoint of `{name}`" for k, name in enumerate(names)}
        return Case(part, play, places=places, shown=shown)

    def as_float(value):
        """A plain number, a whole one too, as a float."""
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if plain else value

    def eighths():
        return draw.integer(3, 30) / 8

    for shown, a, b in (
        ("d below 0", eighths(), -1 - eighths()),
        ("a and b above 0", eighths(), eighths()),
        ("a below 0", -eighths(), eighths()),
        ("a = 0", 0.0, eighths()),
        ("b = 0", eighths(), 0.0),
        ("b = -1, where d is 0", eighths(), -1.0),
    ):
        yield adjoints("down to the fork", a, b, "Ldcb", shown)
        yield adjoints("where two paths meet", a, b, "a", shown)


@scalar_adjoints.misconception(
    "one path only", "`a` has what comes by way of c alone; d uses it as well.", earns=1
)
def _(a, b):
    d = a * b + a
    return {"L": 1.0, "d": 2 * d, "c": 2 * d, "b": 2 * d * a, "a": 2 * d * b}


@scalar_adjoints.misconception(
    "the last path overwrites",
    "`a` has only what comes straight from d; what comes by way of c was overwritten, or never "
    "followed.",
    earns=1,
)
def _(a, b):
    d = a * b + a
    return {"L": 1.0, "d": 2 * d, "c": 2 * d, "b": 2 * d * a, "a": 2 * d}


@scalar_adjoints.misconception(
    "paths multiplied", "`a` has the product of what comes along its two paths.", earns=1
)
def _(a, b):
    d = a * b + a
    return {"L": 1.0, "d": 2 * d, "c": 2 * d, "b": 2 * d * a, "a": 2 * d * b * 2 * d}


@scalar_adjoints.misconception(
    "local derivatives",
    "each number is the derivative of the next node alone; what arrived there was not multiplied in.",
    earns=0,
)
def _(a, b):
    d = a * b + a
    return {"L": 1.0, "d": 2 * d, "c": 1.0, "b": a, "a": b + 1}


@scalar_adjoints.misconception(
    "a factor times itself",
    "in the product, `a` and `b` each got itself as the local derivative, not the other factor.",
    earns=0,
)
def _(a, b):
    d = a * b + a
    return {"L": 1.0, "d": 2 * d, "c": 2 * d, "b": 2 * d * b, "a": 2 * d * a + 2 * d}


@scalar_adjoints.misconception(
    "b and c exchanged",
    "the factor `a` lies on the way from c to b; here it went into the adjoint of c.",
    earns=1,
)
def _(a, b):
    d = a * b + a
    return {"L": 1.0, "d": 2 * d, "c": 2 * d * a, "b": 2 * d, "a": 2 * d * b + 2 * d}


@scalar_adjoints.misconception(
    "a square without its two", "the adjoint of d is d itself, as if L were d times a constant.",
    earns=0,
)  # fmt: skip
def _(a, b):
    d = a * b + a
    return {"L": 1.0, "d": d, "c": d, "b": d * a, "a": d * b + d}


@scalar_adjoints.misconception(
    "the value of L for its adjoint",
    "at L stands the value of L; its adjoint says by how much L grows for each unit that L grows.",
    earns=1,
)
def _(a, b):
    d = a * b + a
    return {"L": d * d, "d": 2 * d, "c": 2 * d, "b": 2 * d * a, "a": 2 * d * b + 2 * d}


@scalar_adjoints.misconception(
    "the size of d",
    "where d is below 0, all adjoints but that of L have the wrong sign, as where d is taken to be "
    "the root of L.",
    earns=0,
)
def _(a, b):
    d = abs(a * b + a)
    return {"L": 1.0, "d": 2 * d, "c": 2 * d, "b": 2 * d * a, "a": 2 * d * b + 2 * d}


@scalar_adjoints.alternate("the closed formula")
def _(a, b):
    return {
        "a": 2 * a * (b + 1) ** 2,
        "b": 2 * a * a * (b + 1),
        "c": 2 * a * (b + 1),
        "d": 2 * a * (b + 1),
        "L": 1.0,
    }
