"""Drivers of lab 03: what becomes of a module that is made on meta, copied, frozen or tied."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from utils.drivers import driver

Widths = Sequence[int]
State = Mapping[str, Tensor]


@driver("output", "centre", "scale")
def revived(
    module_class: Callable[..., nn.Module], widths: Widths, state: State, x: Tensor
) -> dict[str, Any]:
    """What a module says that was made on the meta device, given memory, and filled; and what it
    measures after that.
    """
    with torch.device("meta"):
        made: Any = module_class(*widths)
    made.to_empty(device="cpu")
    made.load_state_dict(state)
    output = made(x)
    made.fit_inputs(x)
    return {"output": output, "centre": made.centre, "scale": made.scale}


@driver("copy", "original")
def copied(
    module_class: Callable[..., nn.Module], widths: Widths, state: State, x: Tensor
) -> dict[str, Any]:
    """What a deep copy says once its original has changed, and an original whose copy has. The
    original has been called before it is copied.
    """
    found = {}
    for asked in ("copy", "original"):
        made = module_class(*widths)
        made.load_state_dict(state)
        made(x)
        twin = copy.deepcopy(made)
        changed, kept = (made, twin) if asked == "copy" else (twin, made)
        with torch.no_grad():
            for tensor in changed.state_dict().values():
                tensor.mul_(2).add_(0.5)
        found[asked] = kept(x)
    return {"copy": found["copy"], "original": found["original"]}


@driver("centre", "scale")
def overwritten(module_class: Callable[..., Any], widths: Widths, x: Tensor) -> dict[str, Any]:
    """What a module has measured of an x that is overwritten afterwards."""
    made, given = module_class(*widths), x.clone()
    made.fit_inputs(given)
    given.fill_(7.0)
    return {"centre": made.centre, "scale": made.scale}


@driver("fresh", "frozen", "thawed", "tied")
def counted(module_class: Callable[..., Any], width: int, frozen: Sequence[str]) -> dict[str, Any]:
    """What ``count()`` says of a module whose three widths are one: at first, with the parameters
    of some names frozen, with none frozen any more, and with one weight for both layers. While some
    are frozen, the others are given a gradient.
    """
    made = module_class(width, width, width)
    parameters = dict(made.named_parameters())
    fresh = made.count()
    for name in frozen:
        parameters[name].requires_grad_(False)
    less = made.count()
    output = made(torch.ones(width))
    if output.requires_grad:
        output.sum().backward()
    for name in frozen:
        parameters[name].requires_grad_(True)
    thawed = made.count()
    made.output.weight = made.hidden.weight
    return {"fresh": fresh, "frozen": less, "thawed": thawed, "tied": made.count()}
