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
