"""Drivers of lab 05: kernels that write into tensors, and custom operators."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import inspect
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch._subclasses import FakeTensorMode

from utils.drivers import (
    GRAPHS,
    INPUTS_KEPT,
    WHOLE,
    draw_into,
    driver,
    gradients,
    stored_gradients,
    unlogged,
)
from utils.instruments.launching import launch, ptx_of, recorded_launches
from utils.minigpt import MiniGPT, MiniGPTConfig, load_minigpt

MODEL_KEPT = "that a model keeps its names and parameters"
REGISTERED = {WHOLE: "that results come from operators that are registered"}


@triton.jit
def _row_softmax(
    x_ptr,
    y_ptr,
    columns,
    x_row,
    x_column,
    y_row,
    y_column,
    BLOCK: tl.constexpr,
    ACC: tl.constexpr,
    FIRST: tl.constexpr,
):
    """A softmax as in exercise 2. With FIRST, each load names a cache policy."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    place = x_ptr + row * x_row + column * x_column
    x = tl.load(place, mask=inside, other=-float("inf"), eviction_policy=FIRST).to(ACC)
    e = tl.exp(x - tl.max(x, 0))
    y = (e / tl.sum(e, 0)).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + row * y_row + column * y_column, y, mask=inside)


NAMESPACE = "lab05"  # each operator that is registered here gets a new name with the next number
_numbers = itertools.count()

Forward = Callable[[torch.Tensor], torch.Tensor]
Backward = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def cut(
    values: torch.Tensor,
    row_stride: int | None = None,
    column_stride: int = 1,
    beside: float = float("nan"),
) -> torch.Tensor:
    """Return the values, (rows, columns), as a view of a larger storage that is full of NaN.

    If a kernel reads outside its rows, the kernel's result contains NaN. A write outside the rows
    is detected. There is space for a block of lanes before and after the view. By default there is
    a gap of 3 numbers between rows. ``beside`` replaces the NaN around the view.
    """
    rows, columns = values.shape
    row_stride = columns * column_stride + 3 if row_stride is None else row_stride
    room = 8 * max(columns, 1) + row_stride + 16
    last = max(rows - 1, 0) * row_stride + max(columns - 1, 0) * column_stride
    storage = torch.full((room + last + 1 + room,), beside, dtype=values.dtype)
    view = storage.as_strided((rows, columns), (row_stride, column_stride), room)
    return view.copy_(values)


def surroundings(view: torch.Tensor) -> torch.Tensor:
    """Return a copy of a tensor's storage, with 0 in place of the tensor itself."""
    count = view.untyped_storage().nbytes() // view.element_size()
    flat = torch.as_strided(view.detach(), (count,), (1,), 0).clone()
    flat.as_strided(view.shape, view.stride(), view.storage_offset()).zero_()
    return flat


@driver("out", observed={"kept": INPUTS_KEPT})
def fill(function: Callable, *tensors: torch.Tensor) -> dict[str, Any]:
    """Call a function that reads all tensors except the last, ``out``, and writes into the last.

    ``kept`` says whether the storages of the other tensors are unchanged.
    """
    *inputs, out = tensors
    before = [_bytes(tensor) for tensor in inputs]
    function(*tensors)
    return {"out": out, "kept": before == [_bytes(tensor) for tensor in inputs]}


@driver(observed={WHOLE: "that the launched kernels compile for sm_90"})
def compiled(function: Callable, *tensors: torch.Tensor, target: str = "sm_90") -> bool:
    """Return whether all kernels that a function launches compile for a GPU.

    Raises LookupError if the function launches no kernel.
    """
    with recorded_launches() as launches:
        function(*tensors)
    if not launches:
        raise LookupError("no kernel was launched: call launch(kernel, grid, ...) to run a kernel")
    for launched in launches:
        ptx_of(launched, target)
    return True


def _bytes(tensor: torch.Tensor) -> bytes:
    """Return the content of a tensor's storage, without an operator that a rule could record."""
    storage = tensor.untyped_storage()
    return ctypes.string_at(storage.data_ptr(), storage.nbytes()) if storage.nbytes() else b""


class OperatorError(Exception):
    """An error of a registered operator. Its message leaves out the number in the name."""


@functools.cache
def compile_softmax(
    columns: int,
    dtype: torch.dtype = torch.float32,
    *,
    num_warps: int = 4,
    row_stride: int | None = None,
    result: torch.dtype | None = None,
    evict: str = "",
) -> str:
    """Return the PTX of the course's row softmax for an H100.

    By default the rows are contiguous. ``result`` is the dtype of the output, by default the dtype
    of the input. ``evict`` is ``evict_first`` or ``evict_last``: each load gives this hint to the
    cache.
    """
    x = torch.empty(1, dtype=dtype).as_strided((1, columns), (0, 0))
    y = torch.empty(1, dtype=result or dtype).as_strided((1, columns), (0, 0))
    row = columns if row_stride is None else row_stride
    acc = tl.float64 if dtype == torch.float64 else tl.float32
    sizes = {"BLOCK": triton.next_power_of_2(columns), "ACC": acc, "FIRST": evict}
    with recorded_launches() as found:  # a grid of 0 programs: only the compiler sees it
        strides = (row, 1, columns, 1)
        launch(_row_softmax, (0,), x, y, columns, *strides, num_warps=num_warps, **sizes)
    return ptx_of(found[0]).partition("\t.file\t")[0]  # the other lines are for a debugger


def pieces(slope: float = 0.0, factor: float = 1.0) -> tuple[Forward, Backward]:
    """Return a right forward and backward: softmax(x + bias) over the last dimension, in Triton.

    Both functions launch kernels. The kernels have no autograd, and cannot run on fake tensors. The
    forward takes any x of one or more dimensions, and returns a contiguous result. The backward
    takes the result and the gradient of the result, and returns the gradient of x, contiguous. The
    bias of column i is ``slope * i``, and the gradient is multiplied by ``factor``. So no other
    softmax gives the same numbers.
    """
    from utils.softmax import run

    def forward(x: torch.Tensor) -> torch.Tensor:
        return run.forward(x + slope * torch.arange(x.shape[-1], dtype=x.dtype))

    def backward(g: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return run.backward(g, y) * factor

    # `run.backward` itself can't be registered: torch can't infer a schema for its additional
    # parameter.
    return forward, backward


@contextlib.contextmanager
def registered(
    make: Callable, slope: float = 0.0, factor: float = 1.0
) -> Iterator[Callable[[str], Any]]:
    """Let ``make(name, forward, backward)`` register operators, and find them as torch does.

    Yields a function. For ``""`` this function returns the forward's operator, and for
    ``"_backward"`` the backward's operator. Every error in the context is raised as an
    OperatorError.
    """
    short = f"softmax_{next(_numbers)}"
    _place(make)

    def find(ending: str) -> Any:
        try:
            return getattr(getattr(torch.ops, NAMESPACE), short + ending).default
        except AttributeError:
            said = f'`name` + "{ending}"' if ending else "`name`"
            raise LookupError(
                f"no operator is registered under {said}: use `name`, which is new in each call"
            ) from None

    try:
        with unlogged():
            make(f"{NAMESPACE}::{short}", *pieces(slope, factor))
            yield find
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = f"{type(error).__name__}: {lines[0] if lines else ''}".replace(short, "softmax")
        # torch's message contains the name of a variable, and answers have different names
        raise OperatorError(re.sub(r"`\w+\.register_fake`", "`register_fake`", said)) from error


def _place(make: Callable) -> None:
    """Tell `inspect` to which module a notebook's cell belongs.

    torch asks for the module several times in each registration. Each time, `inspect` would search
    all modules. These searches would take a third of the time of a registration.
    """
    code, module = getattr(make, "__code__", None), getattr(make, "__module__", None)
    if code is not None and module in sys.modules and not os.path.exists(code.co_filename):
        for file in (code.co_filename, os.path.normcase(os.path.abspath(code.co_filename))):
            inspect.modulesbyfile[file] = module


@driver("output", "gradient", observed=REGISTERED)
def run_operator(
    make: Callable,
    x: torch.Tensor,
    g: torch.Tensor | None,
    slope: float,
    factor: float = 1.0,
    later: float | None = None,
    between: bool = False,
) -> dict[str, Any]:
    """Return the operator's ``output`` for x, and the ``gradient`` of x.

    g: the upstream gradient. Without g the ``gradient`` is None.
    slope, factor: the arguments of :func:`pieces`, whose functions ``make`` registers.
    later: a second slope. ``make`` also registers functions with this slope, before the first
        operator runs.
    between: whether the operator is called with other values before the backward.
    """
    with contextlib.ExitStack() as stack:
        op_of = stack.enter_context(registered(make, slope, factor))
        if later is not None:
            stack.enter_context(registered(make, later, factor))
        leaf = x.detach().requires_grad_(g is not None)
        output = op_of("")(leaf)
        if between:
            op_of("")(leaf.detach().flip(-1).requires_grad_())
        (gradient,) = gradients(output, [leaf], g)
    return {"output": output.detach().clone(), "gradient": gradient}


@driver("gradient", "of_g", "of_y", observed=REGISTERED)
def run_backward(
    make: Callable,
    g: torch.Tensor,
    y: torch.Tensor,
    factor: float = 1.0,
    v: torch.Tensor | None = None,
) -> dict[str, Any]:
    """Return the ``gradient`` that the backward's operator returns for g and y.

    ``of_g`` and ``of_y`` are the gradients of g and y for the upstream gradient v. Without v they
    are None.
    """
    with registered(make, 0.0, factor) as op_of:
        asked = v is not None
        g, y = g.detach().requires_grad_(asked), y.detach().requires_grad_(asked)
        gradient = op_of("_backward")(g, y)
        of_g, of_y = gradients(gradient, (g, y), v)
    return {"gradient": gradient.detach().clone(), "of_g": of_g, "of_y": of_y}


@driver(observed={WHOLE: "what the schemas of operators say"})
def schema_of(make: Callable) -> dict[str, Any]:
    """Return the types of arguments and results of the operator and its backward."""
    with registered(make) as op_of:
        return {
            kind: {
                "arguments": [str(argument.type) for argument in op._schema.arguments],
                "results": [str(result.type) for result in op._schema.returns],
                "writes": bool(op._schema.is_mutable),
            }
            for kind, op in (("forward", op_of("")), ("backward", op_of("_backward")))
        }


@driver(WHOLE, observed=REGISTERED)
def fakes(make: Callable, inputs: Sequence[tuple], *, backward: bool = False) -> list[tuple]:
    """Return shape, strides, dtype and device of each result, as a tracer sees them.

    ``inputs`` has shape, strides, dtype and device of each input. No GPU is needed. With
    ``backward``, the backward's operator is called. Its first input is then stored with its
    dimensions in the opposite order.
    """
    found = []
    with registered(make) as op_of, FakeTensorMode():
        for shape, strides, dtype, device in inputs:
            x = torch.empty_strided(tuple(shape), tuple(strides), dtype=dtype, device=device)
            order = tuple(reversed(range(len(shape))))
            g = torch.empty(tuple(shape)[::-1], dtype=dtype, device=device).permute(order)
            y = op_of("_backward")(g, x) if backward else op_of("")(x)
            found.append((tuple(y.shape), tuple(y.stride()), y.dtype, y.device.type))
    return found


@driver("output", "gradient", observed={"graphs": GRAPHS, **REGISTERED})
def trace_operator(make: Callable, x: torch.Tensor, slope: float = 0.0) -> dict[str, Any]:
    """Let a compiler trace ``op(x * 2) + 1``, and run the compiled code.

    ``output`` is the result. ``graphs`` is the number of graphs that ``torch.compile`` passes to a
    backend. ``gradient`` has the shape and the strides of the gradient of x on fake tensors.
    """
    from torch._dynamo.testing import CompileCounter

    with registered(make, slope) as op_of:
        op, plain = op_of(""), x.detach()
        with FakeTensorMode() as mode:
            leaf = mode.from_tensor(plain).requires_grad_()
            output = op(leaf * 2) + 1
            (gradient,) = torch.autograd.grad(output, leaf, torch.ones_like(output))
            told = tuple(gradient.shape), tuple(gradient.stride())
        torch._dynamo.reset()
        counter = CompileCounter()
        came = torch.compile(lambda x: op(x * 2) + 1, backend=counter)(plain)
        torch._dynamo.reset()
    return {"graphs": counter.frame_count, "output": came.clone(), "gradient": told}


@driver(observed={WHOLE: "what opcheck says"})
def opcheck(make: Callable, x: torch.Tensor) -> dict[str, str]:
    """Return the results of ``torch.library.opcheck``: test -> SUCCESS, or the error's name."""
    tests = "test_schema", "test_autograd_registration", "test_faketensor"
    with registered(make) as op_of:
        leaf = x.detach().requires_grad_()
        said = torch.library.opcheck(op_of(""), (leaf,), test_utils=tests, raise_exception=False)
    return {test: one if isinstance(one, str) else type(one).__name__ for test, one in said.items()}


@driver("gradient", "of_g", "of_x", observed=REGISTERED)
def run_twice(
    make: Callable,
    x: torch.Tensor,
    g: torch.Tensor,
    v: torch.Tensor,
    slope: float = 0.0,
    between: bool = False,
) -> dict[str, Any]:
    """Return the ``gradient`` of x for the upstream gradient g, and second derivatives.

    ``of_g`` and ``of_x`` are the gradients of ``(gradient * v).sum()`` with respect to g and x, or
    None. With ``between``, the operator runs forward and backward for another x before the second
    backward.
    """
    with registered(make, slope) as op_of:
        x, g = x.detach().requires_grad_(), g.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(op_of("")(x), x, g, create_graph=True)
        if between:
            other = x.detach().flip(-1).requires_grad_()
            torch.autograd.grad(op_of("")(other), other, g.flip(-1), create_graph=True)
        of_g, of_x = gradients(gradient, (g, x), v)
    return {"gradient": gradient.detach().clone(), "of_g": of_g, "of_x": of_x}


def gradgradcheck(make: Callable, x: torch.Tensor) -> bool:
    """Return whether second derivatives agree with differences of first derivatives, in float64."""
    with registered(make) as op_of:
        leaf = x.detach().double().requires_grad_()
        return torch.autograd.gradgradcheck(op_of(""), (leaf,), raise_exception=False)


@contextlib.contextmanager
def _kept() -> Iterator[None]:
    """At the end, restore torch's softmax, and names and classes that all models share."""
    from utils.minigpt import model

    places: list[Any] = [one for one in vars(model).values() if isinstance(one, type)]
    places = [model, *(one for one in places if one.__module__ == model.__name__)]
    before = [(place, dict(vars(place))) for place in places]
    others = [(torch, "softmax"), (torch.nn.functional, "softmax"), (torch.Tensor, "softmax")]
    functions: list[Any] = [(place, name, getattr(place, name)) for place, name in others]
    try:
        yield
    finally:
        for place, names in before:
            # New names of the module are not removed: no code reads them, and some are the
            # compiler's.
            for name in set(vars(place)) - set(names) if place is not model else ():
                delattr(place, name)
            for name, value in names.items():
                if vars(place).get(name) is not value:
                    setattr(place, name, value)
        for place, name, value in functions:
            if getattr(place, name) is not value:
                setattr(place, name, value)


@driver(
    "logits",
    "probabilities",
    "gradients",
    "then",
    observed={
        "names": MODEL_KEPT,
        "parameters": MODEL_KEPT,
        "others": "that other models are left as they were",
        "alone": "that other models are left as they were",
    },
)
def swap(
    function: Callable,
    config: MiniGPTConfig,
    seed: int,
    tokens: torch.Tensor,
    then: torch.Tensor | None = None,
) -> dict:
    """Let the learner's ``function(model, softmax)`` change a MiniGPT, and run several MiniGPTs.

    The passed softmax is softmax(1.5 * x), so that the model's results show where it is used. All
    models have the same weights, which ``seed`` decides.

    ``logits``, ``probabilities`` and ``gradients`` (name -> gradient) are the changed model's
    results for the tokens (batch, length). ``then`` has the model's logits for other tokens.
    ``names`` has the keys of the model's state dict. ``parameters`` is True if the model still has
    the same tensors as parameters. ``others`` has the logits and probabilities of two unchanged
    models: one made before the change, and one made after the change. ``alone`` is True if the
    model's probabilities stay the same after ``function`` has given another softmax to another
    model.
    """

    softmax = torch.softmax  # the current softmax, in case an answer changes it for all models

    def made() -> MiniGPT:
        model = MiniGPT(config)
        draw_into(model.parameters(), seed, 0.5)
        return model

    with _kept():
        model, before = made(), made()
        parameters = dict(model.named_parameters())
        function(model, lambda x: softmax(1.5 * x, -1))
        after = made()
        logits = model(tokens)
        probabilities = model.probabilities(tokens)
        (probabilities.square().sum() + logits.square().mean()).backward()
        now = dict(model.named_parameters())
        found = {
            "logits": logits.detach().clone(),
            "probabilities": probabilities.detach().clone(),
            "gradients": stored_gradients(parameters),
            "names": list(model.state_dict()),
            "parameters": now.keys() == parameters.keys()
            and all(one is parameters[name] for name, one in now.items()),
            "others": [
                way(tokens).detach().clone()
                for one in (before, after)
                for way in (one, one.probabilities)
            ],
            "then": None if then is None else model(then).detach().clone(),
        }
        function(made(), lambda x: softmax(0.5 * x, -1))
        return {**found, "alone": torch.allclose(model.probabilities(tokens), probabilities)}


@driver("probabilities", observed={"graphs": GRAPHS})
def compiled_swapped(
    function: Callable, config: MiniGPTConfig, tokens: torch.Tensor, seed: int = 0
) -> dict[str, Any]:
    """Compile a MiniGPT after the learner's ``function`` has given it a registered softmax.

    ``graphs`` is the number of graphs. ``probabilities`` are the compiled model's probabilities for
    the tokens. ``seed`` decides the weights.
    """
    from torch._dynamo.testing import CompileCounter

    from utils.softmax import softmax

    model = MiniGPT(config)
    draw_into(model.parameters(), seed, 0.5)
    torch._dynamo.reset()
    counter = CompileCounter()
    with _kept(), unlogged(), torch.no_grad():
        function(model, softmax)
        found = torch.compile(model.probabilities, backend=counter)(tokens)
    torch._dynamo.reset()
    return {"graphs": counter.frame_count, "probabilities": found.clone()}


@driver(WHOLE)
def swapped_logits(
    function: Callable, tokens: torch.Tensor, device: str, names: torch.Tensor
) -> torch.Tensor:
    """Return the trained MiniGPT's logits with the Triton softmax, (B, T, V) in float32.

    names: (V,) int64, the new id of each word. In the tokens and in the logits, ``names[i]`` is the
        id of the model's word i.
    """
    from utils.softmax import softmax

    model = load_minigpt()
    with torch.no_grad():
        for tensor in (model.token_embedding.weight, model.lm_head.weight, model.lm_head.bias):
            tensor[names] = tensor.clone()
    model = model.to(device)
    with _kept(), torch.no_grad():
        function(model, softmax)
        return model(tokens.to(device)).float().cpu()
