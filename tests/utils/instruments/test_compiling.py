"""Data from the compiler's private interface. If the interface changes, the name of the failing
test says which part changed.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from utils.instruments.compiling import captured, kept, listening, loops, replay, split, written
from utils.instruments.toolchain import NoCompiler

pytestmark = pytest.mark.slow(20)


def norm(x):
    mean = x.pow(2).mean(-1, keepdim=True)
    return x * torch.rsqrt(mean + 1e-6)


def gated(x, gate):
    y = x * torch.sigmoid(gate)
    mean = y.pow(2).mean(-1, keepdim=True)
    return y * torch.rsqrt(mean + 1e-6)


def broken(x):
    y = x * 2
    print(end="")
    return y + 1


def times(x, k):
    return x * k


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


def pair(rows=8, columns=6, *, gradient=False):
    return [torch.randn(rows, columns, requires_grad=gradient) for _ in range(2)]


def test_dynamo_hands_its_graphs_to_a_backend():
    assert [len(captured(f, torch.ones(3))) for f in (norm, broken)] == [1, 2]
    names = [node.name for node in captured(norm, torch.ones(3))[0].graph.nodes]
    assert names[1:-1] == ["pow_1", "mean", "add", "rsqrt", "mul"]


def test_versions_are_kept_with_guards_and_bytecode():
    captured(norm, torch.ones(4, 6))
    (version,) = kept(norm)
    checks = dict(version.checks)
    assert "size=[4, 6], stride=[6, 1]" in checks["TENSOR_MATCH"]
    assert "AutogradCPU" in checks["TENSOR_MATCH"]
    assert "GLOBAL_STATE" in checks
    assert any(name.startswith("__compiled_fn") for name in version.code.co_names)


def test_a_version_says_why_it_refuses():
    captured(norm, torch.ones(4, 6))
    refusal = kept(norm)[0].refusal
    assert refusal(x=torch.zeros(4, 6)) is None
    assert "expected 4, actual 5" in refusal(x=torch.ones(5, 6))


@pytest.mark.parametrize(
    ("sizes", "graphs", "used"),
    [
        ((3, 4, 5, 1, 0, 7), [1, 2, 2, 3, 4, 4], [0, 1, 1, 2, 3, 1]),
        ((1, 2, 3), [1, 2, 2], [0, 1, 1]),
    ],
)
def test_sizes_0_and_1_have_graphs_of_their_own(sizes, graphs, used):
    answers = replay(norm, [(torch.ones(n, 6),) for n in sizes])
    assert [answer.graphs for answer in answers] == graphs
    assert [answer.used for answer in answers] == used


def test_a_replay_has_the_functions_own_values():
    answers = replay(times, [(torch.ones(2), k) for k in (2, 3, 4)])
    assert [answer.value[0].item() for answer in answers] == [2, 3, 4]
    assert [answer.graphs for answer in answers] == [1, 2, 2]


def test_a_counting_attribute_reaches_the_recompile_limit():
    answers = replay(Counting(), [(torch.ones(2),)] * 10)
    assert [answer.graphs for answer in answers] == [1, 2, 3, 4, 5, 6, 7, 8, 8, 8]
    assert [answer.used for answer in answers[7:]] == [7, None, None]
    assert answers[2].refusals == ("L['self'].calls == 0", "L['self'].calls == 1")
    assert [answer.value[0].item() for answer in answers] == list(range(1, 11))


def test_the_log_is_kept_from_the_page(capfd):
    with listening() as said:
        compiled = torch.compile(Counting(), backend="eager")
        torch._dynamo.reset()
        for _ in range(9):
            compiled(torch.ones(2))
    assert "recompile_limit (8)" in said[0]
    with listening(graph_breaks=True) as said:
        captured(broken, torch.ones(2))
    assert "Graph break" in said[0]
    with listening() as said:
        captured(broken, torch.ones(2))
    assert said == []
    assert capfd.readouterr().err == ""


def test_logging_is_restored_afterwards(capfd):
    torch._logging.set_logs(graph_breaks=True)
    try:
        with listening() as said:
            captured(broken, torch.ones(2))
        assert (said, capfd.readouterr().err) == ([], "")
        captured(broken, torch.ones(2))
        assert "Graph break" in capfd.readouterr().err
    finally:
        torch._logging.set_logs()


def test_the_joint_graph_is_cut_in_two_ways():
    inputs = pair(gradient=True)
    plain, cut = (split(gated, *inputs, partition=name) for name in ("plain", "min-cut"))
    assert {node.name for node in plain.joint.nodes} >= {"tangents_1", "sigmoid", "rsqrt"}
    assert set(plain.saved) == {"primals_2", "sigmoid", "mul", "rsqrt"}
    assert set(cut.saved) == {"primals_1", "primals_2", "rsqrt"}
    assert cut.saved["rsqrt"] == 8 * 4
    assert (plain.again, cut.again) == ((), ("sigmoid", "mul"))


def test_a_budget_saves_less_and_computes_more():
    full, none = (split(gated, *pair(gradient=True), budget=budget) for budget in (1, 0))
    assert sum(none.saved.values()) < sum(full.saved.values())
    assert set(full.again) < set(none.again)


def test_views_are_described_by_their_content():
    def product(x, w):
        return torch.tanh(x @ w) @ w

    found = split(product, *[torch.randn(4, 4, requires_grad=True) for _ in range(2)])
    assert {name.partition("_")[0] for name in found.saved} <= {"primals", "tanh", "mm"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: split(norm, torch.ones(2, 2), partition="none"), "plain, min-cut"),
        (lambda: split(norm, torch.ones(2, 2)), "got 0"),
        (lambda: split(broken, torch.ones(2, requires_grad=True)), "got 2"),
        (lambda: written(norm, torch.ones(2, 2), device="tpu"), '"cpu" or "cuda"'),
    ],
)
def test_invalid_requests_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.usefixtures("compiler")
def test_cpp_is_generated_and_not_built():
    (module,) = written(norm, torch.randn(64, 48))
    assert not module.backward
    text = loops(module.code)
    assert "for(int x0=0; x0<64; x0+=1)" in [line.strip() for line in text.splitlines()]
    assert "static_cast" not in text
    assert text.count(".store(") == 1
    assert len(module.passes) == 1


@pytest.mark.usefixtures("nothing_compiles")
def test_without_a_compiler_a_message_says_so_and_code_for_a_gpu_is_generated():
    with pytest.raises(NoCompiler, match=r"not run, because .* there is no g\+\+ .*here: "):
        written(norm, torch.randn(64, 48))
    (module,) = written(norm, torch.randn(64, 48), device="cuda")
    assert "@triton.jit" in module.code


@pytest.mark.usefixtures("compiler")
def test_passes_have_lines_operators_and_bytes():
    first, second = written(gated, *pair(64, 48))[0].passes
    assert first.lines == ("y = x * torch.sigmoid(gate)",)
    assert first.operators == ("mul", "sigmoid")
    size = 64 * 48 * 4
    assert (sum(first.reads.values()), sum(first.writes.values())) == (2 * size, size)
    assert second.lines[-1] == "return y * torch.rsqrt(mean + 1e-6)"
    assert size <= sum(second.writes.values()) <= size + 64 * 4
    assert not first.library


@pytest.mark.usefixtures("compiler")
def test_the_backward_is_compiled_on_request():
    modules = written(gated, *pair(64, 48, gradient=True), backward=True)
    assert [module.backward for module in modules] == [False, True]


@pytest.mark.usefixtures("compiler")
def test_matrix_products_call_a_library():
    def layer(x, w):
        return torch.relu(x @ w)

    product, relu = written(layer, torch.ones(16, 16), torch.ones(16, 16))[0].passes
    assert product.library
    assert product.operators == ("mm",)
    assert not relu.library


def test_triton_code_is_generated_for_a_described_gpu():
    (module,) = written(gated, *pair(64, 48), device="cuda")
    assert "@triton.jit" in module.code
    assert "multi_processor_count=132" in module.code
    assert module.code.count("tl.store(") == 1
    (one,) = module.passes
    assert sum(one.reads.values()) == 2 * 64 * 48 * 4
    assert sum(one.writes.values()) == 64 * 48 * 4
    assert math.isfinite(captured(norm, torch.ones(2))[0](torch.ones(2))[0].sum())  # as before


@pytest.mark.usefixtures("compiler")
def test_a_custom_operator_is_not_fused():
    pytest.importorskip("triton", reason="Triton has no build for this system")
    from utils.softmax import softmax

    def heated(x):
        return softmax(x * 2)

    first, second = written(heated, torch.randn(8, 16))[0].passes
    assert first.operators == ("mul",)
    assert second.library
    assert sum(second.writes.values()) == 8 * 16 * 4
