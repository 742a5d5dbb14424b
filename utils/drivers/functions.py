"""Drivers of plain functions, for effects that a function's result does not show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from utils.drivers import INPUTS_KEPT, WHOLE, driver, gradients


@driver("result", observed={"arguments": INPUTS_KEPT})
def keeping(function: Callable, *args: Any) -> dict[str, Any]:
    """Return a function's result, and its arguments after the call.

    A list is sent to the learner's process by value. So only the learner's process can see
    whether the function changes the list.
    """
    return {"result": function(*args), "arguments": list(args)}


@driver(WHOLE)
def gradient(loss: Callable, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor | None:
    """Return the gradient of a loss with respect to the prediction, or None."""
    found = loss(prediction.requires_grad_(), target)
    return gradients(found.sum(), [prediction])[0] if isinstance(found, torch.Tensor) else None
