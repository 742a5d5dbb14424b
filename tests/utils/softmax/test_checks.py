"""The checks that a GPU runs, here on the CPU; and their failure on wrong kernels."""

import pytest
import torch

from benchmarks import softmax_checks
from benchmarks.context import NotRun
from benchmarks.softmax_cases import Case
from benchmarks.softmax_checks import CHECKS, check_case
from utils.softmax import run

pytestmark = pytest.mark.slow(35)

CPU = torch.device("cpu")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_holds_on_the_cpu(check, request):
    if check is softmax_checks.check_compile:
        request.getfixturevalue("compiler")
    assert check(CPU)


@pytest.mark.usefixtures("nothing_compiles")
def test_checks_that_need_a_compiler_are_not_run_without_one():
    with pytest.raises(NotRun, match=r"there is no g\+\+"):
        softmax_checks.check_compile(CPU)


def test_every_check_is_on_a_list():
    names = {name for name in vars(softmax_checks) if name.startswith("check_")} - {"check_case"}
    assert names == {check.__name__ for check in CHECKS + softmax_checks.GPU_CHECKS}


def forget_last_column(forward):
    def wrong(x, launch=None):
        y = run.allocate(x)
        y[..., :-1] = forward(x, launch)[..., :-1]
        return y

    return wrong


def write_past_the_end(forward):
    def wrong(x, launch=None):
        y = run.allocate(x).copy_(forward(x, launch))
        y.as_strided((1,), (1,), y.storage_offset() + y.numel()).fill_(0.0)
        return y

    return wrong


def leave_out_the_maximum(forward):
    def wrong(x, launch=None):
        exponential = x.exp()
        return run.allocate(x).copy_(exponential / exponential.sum(-1, keepdim=True))

    return wrong


def change_the_input(forward):
    def wrong(x, launch=None):
        y = forward(x, launch)
        x.sub_(1.0)
        return y

    return wrong


@pytest.mark.parametrize(
    ("wrong", "case", "says"),
    [
        (forget_last_column, Case((3, 7)), "got 3.4"),
        (write_past_the_end, Case((3, 7)), "outside its output"),
        (leave_out_the_maximum, Case((3, 7), values="largest"), "got nan"),
        (change_the_input, Case((3, 7)), "input was changed"),
    ],
)
def test_a_wrong_kernel_is_seen(monkeypatch, wrong, case, says):
    check_case(case, CPU)
    monkeypatch.setattr(run, "forward", wrong(run.forward))
    with pytest.raises(AssertionError, match=says):
        check_case(case, CPU)


def test_a_backward_without_the_sum_is_seen(monkeypatch):
    monkeypatch.setattr(run, "backward", lambda g, y, launch=None: run.allocate(y).copy_(g * y))
    with pytest.raises(AssertionError, match="backward of"):
        check_case(Case((3, 7)), CPU)
