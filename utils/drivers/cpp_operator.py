"""Drivers of lab 05: an operator whose kernel is written in C++."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._subclasses import FakeTensorMode

from utils.drivers import GRAPHS, WHOLE, driver, unlogged
from utils.instruments.cpp_library import FILE
from utils.instruments.quiet_profiler import profile

NAME = "softmax"  # of the operator, in the namespace that the learner's function returns
REGISTERED = {WHOLE: "that results come from a C++ kernel"}
# Operators that make a tensor, copy a tensor, or look at it in another shape. All others compute.
MOVES = frozenset(
    {
        *("aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty"),
        *("aten::full", "aten::fill_", "aten::new_zeros", "aten::zero_", "aten::zeros"),
        *("aten::clone", "aten::contiguous", "aten::copy_", "aten::to", "aten::_to_copy"),
        *("aten::as_strided", "aten::view", "aten::_unsafe_view", "aten::reshape"),
        *("aten::_reshape_alias", "aten::expand", "aten::movedim", "aten::permute"),
        *("aten::flatten", "aten::unflatten", "aten::squeeze", "aten::unsqueeze"),
        *("aten::transpose", "aten::narrow", "aten::select", "aten::slice"),
        *("aten::alias", "aten::detach"),
    }
)


class OperatorError(Exception):
    """An error of a registered operator. Its message leaves out the number in the namespace."""


@contextlib.contextmanager
def registered(make: Callable) -> Iterator[Any]:
    """Let ``make()`` register an operator, and yield this operator as torch finds it.

    Every error in the context is raised as an OperatorError. Errors of ``make`` are not changed.
    """
    namespace = make()
    if not isinstance(namespace, str):
        raise TypeError(
            f"expected the namespace that load_cpp returned, but got {type(namespace).__name__}"
        )
    try:
        with unlogged():
            try:
                op = getattr(getattr(torch.ops, namespace), NAME).default
            except AttributeError:
                raise LookupError(
                    f"there is no operator `{NAME}` in the namespace that your function returned"
                ) from None
            said = torch._C._dispatch_dump(f"{namespace}::{NAME}")
            if not re.search(rf"^CPU: registered at {re.escape(FILE)}", said, re.MULTILINE):
                raise LookupError("the C++ has no kernel at the key CPU")
            yield op
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = f"{type(error).__name__}: {lines[0] if lines else ''}"
        raise OperatorError(said.replace(namespace, "namespace")) from error


@driver("output", "refused", observed={"computed": "which operators ran", **REGISTERED})
def run_cpp(make: Callable, x: torch.Tensor, *, refuses: bool = False) -> dict[str, Any]:
    """Return the operator's ``output`` for x.

    ``computed`` says whether one of torch's own operators computed something during the call. With
    ``refuses``, ``refused`` says whether the call raised an error, and ``output`` is None.
    """
    with registered(make) as op:
        if refuses:
            try:
                op(x)
            except Exception:
                return {"output": None, "computed": False, "refused": True}
            return {"output": None, "computed": False, "refused": False}
        with profile() as heard:
            output = op(x)
    names = {event.name for event in heard.function_events if event.name.startswith("aten::")}
    computed = not names <= MOVES
    return {"output": output, "computed": computed, "refused": False}


@driver(observed={WHOLE: "what the schema of the operator and opcheck say"})
def cpp_schema(make: Callable, x: torch.Tensor) -> dict[str, Any]:
    """Return the types in the operator's schema, and other facts about the schema.

    ``writes`` says whether the operator writes into an argument. ``shares`` says whether a tensor
    in the schema has a letter, such as ``Tensor(a)``. ``opcheck`` is the result of ``test_schema``.
    """
    with registered(make) as op:
        said = torch.library.opcheck(op, (x,), test_utils="test_schema", raise_exception=False)
        (test,) = said.values()
        values = (*op._schema.arguments, *op._schema.returns)
        return {
            "arguments": [str(argument.type) for argument in op._schema.arguments],
            "results": [str(result.type) for result in op._schema.returns],
            "writes": bool(op._schema.is_mutable),
            "shares": any(one.alias_info is not None for one in values),
            "opcheck": test if isinstance(test, str) else type(test).__name__,
        }


@driver(WHOLE, observed=REGISTERED)
def cpp_fakes(make: Callable, inputs: Sequence[tuple]) -> list[tuple]:
    """Return shape, strides, dtype and device of each result, as a tracer sees them.

    ``inputs`` has shape, strides, dtype and device of each input. No GPU is needed.
    """
    found = []
    with registered(make) as op, FakeTensorMode():
        for shape, strides, dtype, device in inputs:
            y = op(torch.empty_strided(tuple(shape), tuple(strides), dtype=dtype, device=device))
            found.append((tuple(y.shape), tuple(y.stride()), y.dtype, y.device.type))
    return found


@driver(observed={"graphs": GRAPHS, "same": "that compiled code has the same result"})
def trace_cpp(make: Callable, x: torch.Tensor) -> dict[str, Any]:
    """Compile ``op(x * 2) + 1`` with a backend that runs its graphs as they are.

    ``graphs`` is the number of graphs. ``same`` says whether the result is the same as without a
    compiler.
    """
    from torch._dynamo.testing import CompileCounter

    with registered(make) as op:
        torch._dynamo.reset()
        counter = CompileCounter()
        output = torch.compile(lambda x: op(x * 2) + 1, backend=counter)(x)
        torch._dynamo.reset()
        same = torch.allclose(output, op(x * 2) + 1, equal_nan=True)
    return {"graphs": counter.frame_count, "same": same}
