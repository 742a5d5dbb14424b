"""Drivers of lab 03: modules that are made on meta, copied, frozen or tied."""

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
    """Make a module on meta, give it memory, load its state, and call it.

    Then the module measures its inputs: ``centre`` and ``scale``.
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
    """Return the result of a ``copy``, and of an ``original``.

    The ``copy`` is called after its original has changed, and the ``original`` after its copy has
    changed. Each original is also called before it is copied.
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
    """Let a module measure x, overwrite x, and return the measurements."""
    made, given = module_class(*widths), x.clone()
    made.fit_inputs(given)
    given.fill_(7.0)
    return {"centre": made.centre, "scale": made.scale}


@driver("fresh", "frozen", "thawed", "tied")
def counted(module_class: Callable[..., Any], width: int, frozen: Sequence[str]) -> dict[str, Any]:
    """Return the results of ``count()`` for a module with three equal widths, in four states.

    The states are: the new module, with some frozen parameters, without frozen parameters again,
    and with one weight for both layers. While some parameters are frozen, the others get a
    gradient.
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
