"""Drivers of plain functions: what is not seen from what they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def keeping(function: Callable, *args: Any) -> dict[str, Any]:
    """What a function returns, and its arguments as they are afterwards.

    A list goes by value, so what becomes of it is only known beside the function.
    """
    return {"result": function(*args), "arguments": list(args)}


def gradient(loss: Callable, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor | None:
    """The gradient of a loss for the prediction; None where none arrives."""
    found = loss(prediction.requires_grad_(), target)
    if not isinstance(found, torch.Tensor) or not found.requires_grad:
        return None
    return torch.autograd.grad(found.sum(), prediction, allow_unused=True)[0]
