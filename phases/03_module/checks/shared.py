"""What several exercises of lab 03 need."""

import torch

from hood.judge.checks.compare import Tolerance

LAYOUTS = ("contiguous", "transposed", "sliced", "expanded")
SUMS = Tolerance(1e-4, 1e-5, "sums of a few products, added in any order")
RULE = "torch's own layer and the function of that layer do not count here: {}"


def laid_out(draw, shape, layout):
    """Random values in one of `LAYOUTS`. An expanded tensor repeats one row."""
    if layout == "expanded":
        return draw.tensor((1, *shape[1:])).expand(shape)
    return draw.tensor(shape, layout=layout)


def shapes_of(made):
    """Name -> zeros with the shape and dtype of each tensor that a module saves."""
    return {n: torch.zeros_like(t) for n, t in made.call("state_dict").items()}


def in_eval(made):
    """Put the module of a handle into eval mode, and return what `eval()` returns."""
    return made.call("eval")


def rough(value, slack):
    """Scale a number, so that a difference of `slack` becomes the absolute part of the tolerance
    SUMS.

    Random values can only be compared roughly. They are compared as numbers and not as booleans,
    because a boolean would be the same for every wrong answer.
    """
    return value * SUMS.atol / slack


def pull(made, upstream, x, *names):
    """Which of x and these named parameters a gradient reaches, and the gradients themselves."""
    found = made.gradients(upstream, x)
    arrived = {"x": found["arguments"][0], **found["parameters"]}
    reached = {name: isinstance(arrived.get(name), torch.Tensor) for name in names}
    return {"reached": reached, "gradients": {n: arrived[n] for n in names if reached[n]}}


def places_of_pull(where, **words):
    """Words for the places in the result of `pull`. `words` has a word for each name."""
    said = {}
    for name, word in words.items():
        said[f"{where}['reached']['{name}']"] = f"no gradient reaches {word}."
        said[f"{where}['gradients']['{name}']"] = f"the gradient of {word}"
    return said
