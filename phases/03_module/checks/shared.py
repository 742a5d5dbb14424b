"""What several exercises of lab 03 need."""

import torch

from hood.judge.checks.compare import Tolerance

LAYOUTS = ("contiguous", "transposed", "sliced", "expanded")
SUMS = Tolerance(1e-4, 1e-5, "sums of a few products, each in an order of its own")
RULE = "torch's own layer and its function do not count here: {}"


def laid_out(draw, shape, layout):
    """Drawn values in one of `LAYOUTS`; an expanded tensor has one row, which it repeats."""
    if layout == "expanded":
        return draw.tensor((1, *shape[1:])).expand(shape)
    return draw.tensor(shape, layout=layout)


def shapes_of(made):
    """Name -> zeros of the shape and dtype of what a module saves."""
    return {n: torch.zeros_like(t) for n, t in made.call("state_dict").items()}


def in_eval(made):
    """The handle, in eval mode."""
    return made.call("eval")


def rough(value, slack):
    """A number in a unit in which `slack` is the absolute part of the tolerance SUMS.

    What is drawn at random can only be compared roughly. It is compared as a number all the same:
    a yes or no would be the same for every wrong answer.
    """
    return value * SUMS.atol / slack


def pull(made, upstream, x, *names):
    """Which of x and the parameters of these names a gradient reaches, and what it is there."""
    found = made.gradients(upstream, x)
    arrived = {"x": found["arguments"][0], **found["parameters"]}
    reached = {name: isinstance(arrived.get(name), torch.Tensor) for name in names}
    return {"reached": reached, "gradients": {n: arrived[n] for n in names if reached[n]}}


def places_of_pull(where, **words):
    """Words for the places in what `pull` returns; `words` says what the names stand for."""
    said = {}
    for name, word in words.items():
        said[f"{where}['reached']['{name}']"] = f"no gradient reaches {word}."
        said[f"{where}['gradients']['{name}']"] = f"the gradient of {word}"
    return said
