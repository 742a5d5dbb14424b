"""The properties of `utils.softmax` that must hold on any device.

The tests call these functions on the CPU, where kernels are interpreted; `python -m benchmarks.gpu`
calls them on a GPU, where kernels run.

Each function raises AssertionError, or returns a sentence about what it measured.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import product

import torch

from benchmarks.context import NotRun, require_compiler
from benchmarks.softmax_cases import (
    LAYOUTS,
    VALUES,
    Case,
    backward_reference,
    forward_reference,
    guarded_outputs,
    require_close,
)
from utils.softmax import run, softmax
from utils.softmax.launch import ANY, TABLE, Launch
from utils.softmax.op import row_softmax, row_softmax_backward


def check_case(case: Case, device: torch.device) -> float:
    """Run one case forward and backward; return the largest error relative to the allowed error."""
    return max(forward_error(case, device), backward_error(case, device))


def forward_error(case: Case, device: torch.device) -> float:
    """Return the forward's largest error relative to the allowed error. Raises AssertionError."""
    x = case.tensor(device)
    before = x.clone()
    with guarded_outputs():
        y = run.forward(x, case.launch)
    assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, x.device)
    assert y.is_contiguous()
    assert torch.equal(before.nan_to_num(), x.nan_to_num()), "the input was changed"
    return require_close(y, *forward_reference(x), f"forward of {case}")


def backward_error(case: Case, device: torch.device) -> float:
    """Return the backward's largest error relative to the allowed error. Raises AssertionError.

    The float64 reference uses the same rounded y as the backward.
    """
    y = torch.softmax(case.tensor(device), -1)
    g = case.tensor(device, stream=1, values="normal")
    with guarded_outputs():
        dx = run.backward(g, y, case.launch)
    assert (dx.shape, dx.dtype, dx.device) == (y.shape, y.dtype, y.device)
    assert dx.is_contiguous()
    return require_close(dx, *backward_reference(g, y), f"backward of {case}")


def cases() -> Iterator[Case]:
    """Yield cases of all layouts, kinds of values and dtypes, and of widths near a tile."""
    loop = Launch(loop=True, tile=32, warps=1)
    for dtype in run.DTYPES:
        for layout, launch in product(LAYOUTS, (None, loop)):
            yield Case((2, 2, 37), dtype, layout, launch=launch)
        for values, launch in product(VALUES, (None, loop)):
            yield Case((2, 40), dtype, values=values, launch=launch)
    for columns, tile in product((1, 15, 16, 17, 31, 33, 64, 65), (16, 32)):
        for kind in (True, False):
            yield Case((3, columns), launch=Launch(kind, tile, 1), seed=columns)


def check_cases(device: torch.device) -> str:
    """Results agree with float64 for random inputs of every kind. Outputs are poison at first."""
    errors = [check_case(case, device) for case in cases()]
    return f"{len(errors)} cases, largest error {max(errors):.2f} of what is allowed"


def check_empty(device: torch.device) -> str:
    """Empty inputs give empty results and gradients of the same shape."""
    shapes = ((0,), (0, 5), (5, 0), (2, 0, 3), (2, 3, 0))
    for shape in shapes:
        x = torch.empty(shape, device=device, requires_grad=True)
        y = softmax(x)
        assert y.shape == x.shape
        y.sum().backward()
        assert x.grad.shape == x.shape
    return f"{len(shapes)} empty shapes"


def check_dimensions(device: torch.device) -> str:
    """Any `dim` agrees with torch.softmax; a scalar's softmax is 1."""
    x = torch.randn(3, 4, 5, dtype=torch.float64, device=device)
    for dim in range(-3, 3):
        torch.testing.assert_close(softmax(x, dim), torch.softmax(x, dim))
    assert softmax(torch.tensor(3.0, device=device)).item() == 1.0
    return "dimensions -3 to 2, and a scalar"


def check_operator(device: torch.device) -> str:
    """torch.library.opcheck passes for both operators: schema, autograd, fake, AOT dispatch."""
    inputs = [
        torch.randn(3, 4, 7, device=device, dtype=dtype, requires_grad=True)
        for dtype in (torch.float32, torch.float64)
    ]
    inputs += [inputs[0].detach().transpose(0, 2), inputs[0].detach().bfloat16()]
    for x in inputs:
        for operator, arguments in (
            (row_softmax, (x,)),
            (row_softmax_backward, (torch.randn_like(x), x)),
        ):
            outcome = torch.library.opcheck(operator, arguments)
            assert set(outcome.values()) == {"SUCCESS"}, outcome
    return f"opcheck: {', '.join(outcome)} on {2 * len(inputs)} inputs"


def check_gradients(device: torch.device) -> str:
    """gradcheck and gradgradcheck pass: in float64, gradients agree with finite differences."""
    x = torch.randn(2, 1, 3, device=device, dtype=torch.float64, requires_grad=True)
    strided = torch.randn(3, 2, device=device, dtype=torch.float64).t().requires_grad_()
    for argument in (x, strided):
        assert torch.autograd.gradcheck(softmax, (argument,))
        assert torch.autograd.gradgradcheck(softmax, (argument,))
    g, y = torch.randn_like(x, requires_grad=True), x.detach().softmax(-1).requires_grad_()
    assert torch.autograd.gradcheck(row_softmax_backward, (g, y))
    assert torch.autograd.gradgradcheck(row_softmax_backward, (g, y))
    return "gradcheck and gradgradcheck: forward, strided forward, backward"


def check_compile(device: torch.device) -> str:
    """A compiled LM head with the softmax is one graph, and gives the same values and gradients."""
    require_compiler(device)
    torch._dynamo.reset()
    head = torch.nn.Linear(16, 40, device=device)
    x = torch.randn(4, 16, device=device, requires_grad=True)
    weight = torch.randn(4, 40, device=device)

    def loss(x: torch.Tensor) -> torch.Tensor:
        return (softmax(head(x)) * weight).sum()

    (want,) = torch.autograd.grad(loss(x), x)
    compiled = torch.compile(loss, fullgraph=True)
    value = compiled(x)
    (got,) = torch.autograd.grad(value, x)
    torch.testing.assert_close(value, loss(x))
    torch.testing.assert_close(got, want)
    return "fullgraph=True, forward and backward"


def check_vmap(device: torch.device) -> str:
    """vmap works over any dimension, forward and backward, without a fallback loop."""
    x = torch.randn(3, 4, 5, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dim in range(3):
            got = torch.vmap(softmax, in_dims=dim, out_dims=dim)(x)
            want = torch.vmap(lambda row: torch.softmax(row, -1), in_dims=dim, out_dims=dim)(x)
            torch.testing.assert_close(got, want)
        y = torch.softmax(x, -1)
        g = torch.randn(5, device=device)
        got = torch.vmap(row_softmax_backward, in_dims=(None, 0))(g.expand(4, 5), y)
    want, allowed = backward_reference(g.expand(3, 4, 5), y)
    require_close(got, want, allowed, "vmap of the backward")
    return "in_dims 0, 1, 2; one batched argument of two"


def check_repeatable(device: torch.device) -> str:
    """The same input gives the same bits."""
    x = torch.randn(64, 601, device=device)
    assert torch.equal(softmax(x), softmax(x))
    return "same bits twice"


CHECKS = (
    check_cases,
    check_empty,
    check_dimensions,
    check_operator,
    check_gradients,
    check_compile,
    check_vmap,
    check_repeatable,
)


def check_table(device: torch.device) -> str:
    """GPU only: each rule of the launch table works, at its largest and at a smaller odd width."""
    widths = 0
    for (direction, itemsize), rules in TABLE.items():
        error = forward_error if direction == "forward" else backward_error
        dtypes = [dtype for dtype in run.DTYPES if dtype.itemsize == itemsize]
        for rule in rules:
            columns = 3 * rule.launch.tile if rule.columns == ANY else int(rule.columns)
            for dtype, width in product(dtypes, (columns, columns - 1)):
                error(Case((3, width), dtype, launch=rule.launch, seed=width), device)
                widths += 1
    return f"{widths} widths"


def check_far(device: torch.device) -> str:
    """GPU only: rows and columns further than 2^31 elements from the first are found."""
    rows, columns = 2**31 // 600 + 1001, 600
    free = torch.cuda.mem_get_info(device)[0]
    if free < 3 * 2 * rows * columns:
        raise NotRun(f"needs {6 * rows * columns / 1e9:.0f} GB of free GPU memory")
    x = torch.zeros(rows, columns, dtype=torch.float16, device=device)
    x[-1000:].normal_()
    y = run.forward(x)
    require_close(y[-1000:], *forward_reference(x[-1000:]), "the last rows")
    del y
    wide = x.reshape(-1)[: 600 * (x.numel() // 600)].view(600, -1).t()[:7]
    wide[:, -10:] = torch.randn(7, 10, device=device)
    require_close(run.forward(wide), *forward_reference(wide), "columns far apart")
    return f"{rows} x {columns}, and columns {wide.stride(1)} apart"


def check_same_as_cpu(device: torch.device) -> str:
    """GPU only: the interpreter and the GPU compute the same up to rounding."""
    x = torch.randn(7, 600)
    for launch in (None, Launch(True, 256, 1)):
        want, got = run.forward(x, launch), run.forward(x.to(device), launch).cpu()
        torch.testing.assert_close(got, want, rtol=2e-5, atol=1e-8)
    return f"largest difference {(got - want).abs().max():.1e}"


GPU_CHECKS = (check_table, check_far, check_same_as_cpu)
