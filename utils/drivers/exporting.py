"""Drivers of lab 06: export an answer by `torch.export`, and run the program on other sizes."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch._dynamo.exc import UserError
from torch.export import Dim, ExportedProgram
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from utils.drivers import driver
from utils.drivers.compiling import fresh
from utils.drivers.decoding import Sizes, small_minigpt
from utils.minigpt import load_minigpt

# The start of what torch says -> a short name, for checks
REFUSALS = {
    "Could not guard on data-dependent": "branch",
    "You marked": "constant",
    "Received user-specified dim hint": "constant",
    "Not all values of": "range",
}


class Refused(Exception):
    """`torch.export` refused something, for a reason that REFUSALS lists."""


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Raise Refused with torch's main sentence, and suppress torch's log and the printed graph."""
    try:
        with fresh(), contextlib.redirect_stderr(io.StringIO()):
            yield
    except (UserError, GuardOnDataDependentSymNode, ValueError) as error:
        found = re.search(rf"({'|'.join(REFUSALS)}).*?(?=\. |  |\n|$)", str(error))
        if found is None:
            raise
        raise Refused(found[0]) from None


def refusal(complaint: str | None) -> str | None:
    """Return REFUSALS' short name for a complaint, or None if there was none."""
    return complaint and next(REFUSALS[start] for start in REFUSALS if complaint.startswith(start))


def runs(program: ExportedProgram, calls: Sequence[Sequence[Any]]) -> list[Tensor | None]:
    """Run a program. A value is None if the program refused the arguments before it computed.

    Arguments that the example passed by name are passed to the program by name, too.
    """
    module, values = program.module(), list[Tensor | None]()
    names = list(program.example_inputs[1]) if program.example_inputs else []
    for arguments in calls:
        places = len(arguments) - len(names)
        named = dict(zip(names, arguments[places:], strict=True))
        try:
            values.append(module(*arguments[:places], **named).detach())
        except AssertionError as error:
            if not str(error).startswith("Guard failed"):
                raise
            values.append(None)
    return values


def longest(program: ExportedProgram) -> int | None:
    """Return the largest number of rows of the first argument, or None if there is no limit."""
    name = program.graph_signature.user_inputs[0]
    (node,) = (node for node in program.graph.find_nodes(op="placeholder") if node.name == name)
    rows = node.meta["val"].shape[0]
    if isinstance(rows, int):
        return rows
    limit = program.range_constraints[rows.node.expr].upper
    return int(limit) if limit.is_Integer else None


@driver("values", "complaint", observed={"longest": "which range the exported program has"})
def exported(
    function: Callable, example: Sequence[Tensor], *calls: Sequence[Tensor]
) -> dict[str, Any]:
    """Export the learner's function, and run the exported program.

    example: the arguments with which the function is exported. The number of rows is dynamic in
        the first argument, and in all arguments that have as many rows as the first.
    calls: the arguments of each run of the exported program.

    ``values`` has the result of each run, or None if the program refused the arguments before it
    computed. ``complaint`` is torch's main sentence if `torch.export` refused the function. Then
    ``values`` is empty. ``longest`` is the largest number of rows in the program's range, or None.
    """
    module = nn.Module()
    module.forward = function
    rows = len(example[0])
    sizes = tuple({0: Dim.DYNAMIC} if len(one) == rows else None for one in example)
    try:
        with exporting():
            program = torch.export.export(module, tuple(example), dynamic_shapes=sizes)
    except Refused as error:
        return {"values": [], "complaint": str(error), "longest": None}
    return {"values": runs(program, calls), "complaint": None, "longest": longest(program)}


@driver("values", "complaint")
def exported_minigpt(
    make: Callable,
    tokens: Sequence[Tensor],
    sizes: Sizes | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Let the learner's ``export_minigpt(model)`` export a MiniGPT, and run the exported program.

    tokens: the tokens of each run.
    sizes: vocab_size, d_model, n_heads, n_layers, d_ff and context of a MiniGPT with random
        weights. Without ``sizes`` it is the trained MiniGPT.
    seed: the seed of the random weights.

    The result has the same form as the result of :func:`exported`.
    """
    model = small_minigpt(sizes, seed) if sizes else load_minigpt()
    try:
        with exporting():
            program = make(model)
    except Refused as error:
        return {"values": [], "complaint": str(error)}
    if not isinstance(program, ExportedProgram):
        raise TypeError(
            "expected an `ExportedProgram`, as `torch.export.export` returns it, "
            f"got {type(program).__name__}"
        )
    return {"values": runs(program, [[one] for one in tokens]), "complaint": None}
