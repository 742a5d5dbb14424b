"""The course's statements about the dispatcher, compared with PyTorch."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import ExitStack, nullcontext
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from utils.instruments import dispatch
from utils.minigpt import MiniGPT, MiniGPTConfig

X = torch.ones(3, 3)
# The private interface that utils.instruments.dispatch uses, as called on torch 2.13.
PRIVATE = {
    "_C.DispatchKey",
    "_C.DispatchKeySet",
    "_C._dispatch_dump_table",
    "_C._dispatch_has_kernel",
    "_C._dispatch_keys",
    "_C._dispatch_tls_local_exclude_set",
    "_C._dispatch_tls_local_include_set",
    "_C._profiler",
    "utils._pytree",
}


class Heard(TorchDispatchMode):
    """The names of all operators that reach a mode."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.name().partition(".")[0])
        return func(*args, **(kwargs or {}))


@pytest.fixture
def library():
    with torch.library._scoped_library("hood_test", "DEF") as found:
        yield found


def find(path):
    place = torch
    for name in path.split("."):
        place = getattr(place, name, None)
    return place


@pytest.mark.parametrize("name", sorted(PRIVATE))
def test_the_private_function_exists(name):
    assert find(name) is not None, f"torch.{name} is gone in torch {torch.__version__}"


def test_no_other_private_function_is_used():
    source = Path(dispatch.__file__).read_text()
    code = re.sub(r'"""[\s\S]*?"""|#.*', "", source)
    used = set(re.findall(r"torch\.(_\w+(?:\.\w+)?|\w+\._\w+)", code)) - {"torch.ops"}
    assert used <= PRIVATE | {f"{name}.Undefined" for name in PRIVATE}, used - PRIVATE


def test_a_key_set_can_be_taken_apart():
    keys = torch._C._dispatch_keys(X)
    highest = keys.highestPriorityTypeId()
    assert highest.name == "AutocastCPU"
    assert torch._C.DispatchKeySet(highest).raw_repr() > 0
    assert keys.remove(highest).highestPriorityTypeId().name == "AutogradCPU"


# Situations: the contexts around a call, and the tensor.
def inference_tensor():
    with torch.inference_mode():
        return torch.ones(3, 3)


SITUATIONS = {
    "plain": ((), lambda: X),
    "requires_grad": ((), lambda: torch.ones(3, 3, requires_grad=True)),
    "no_grad": ((torch.no_grad,), lambda: X),
    "integers": ((), lambda: torch.ones(3, 3, dtype=torch.int64)),
    "inference_mode": ((torch.inference_mode,), lambda: X),
    "an inference tensor": ((), inference_tensor),
    "autocast": ((lambda: torch.autocast("cpu"),), lambda: X),
    "autocast in inference": ((torch.inference_mode, lambda: torch.autocast("cpu")), lambda: X),
    "meta": ((), lambda: torch.ones(3, 3, device="meta")),
    "conj": ((torch.inference_mode,), lambda: torch.ones(3, 3, dtype=torch.complex64).conj()),
    "sparse": ((), lambda: X.to_sparse()),
}
KEYS = ("AutocastCPU", "AutogradCPU", "AutogradMeta", "Conjugate", "CPU", "Meta", "SparseCPU")


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_winner_is_whose_kernel_runs(name, library):
    ran = []

    def kernel(key):
        return lambda x: ran.append(key) or 1

    library.define("who(Tensor x) -> int")
    for key in KEYS:
        library.impl("who", kernel(key), key)
    contexts, make = SITUATIONS[name]
    tensor = make()
    with ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context())
        decision = dispatch.decide(torch.ops.hood_test.who.default, tensor)
        torch.ops.hood_test.who(tensor)
    assert ran == [decision.winner.key]


def test_the_situations_have_different_winners():
    """Otherwise the test above could pass with a constant result."""
    found = {}
    for name, (contexts, make) in SITUATIONS.items():
        tensor = make()
        with ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context())
            found[name] = dispatch.decide("aten::mm", tensor).winner.key
    assert found["plain"] == found["requires_grad"] == found["no_grad"] == "AutogradCPU"
    assert found["integers"] == "AutogradCPU"
    assert found["inference_mode"] == found["an inference tensor"] == "CPU"
    assert found["autocast"] == found["autocast in inference"] == "AutocastCPU"
    assert found["meta"] == "AutogradMeta"


@pytest.mark.parametrize("op", ["mm", "mul.Tensor", "relu", "_softmax", "exp"])
def test_autocast_wins_where_it_has_a_rule(op):
    name, _, overload = op.partition(".")
    call = getattr(getattr(torch.ops.aten, name), overload or "default")
    x = torch.ones(3, 3, dtype=torch.float64 if name == "_softmax" else torch.float32)
    args = {"mm": (x, x), "mul": (x, x), "_softmax": (x, 0, False)}.get(name, (x,))
    with torch.autocast("cpu"):
        winner = dispatch.decide(call, x).winner.key
        result = call(*args)
    assert (winner == "AutocastCPU") == (result.dtype != x.dtype)


@pytest.mark.parametrize("context", [nullcontext, torch.no_grad, torch.inference_mode])
def test_only_where_autograd_wins_can_there_be_a_node(context):
    leaf = torch.ones(3, 3, requires_grad=True)
    with context():
        winner = dispatch.decide("aten::mm", leaf, X).winner.key
        node = (leaf @ X).grad_fn
    assert winner == ("CPU" if context is torch.inference_mode else "AutogradCPU")
    assert (node is not None) == (context is nullcontext)


def test_a_mode_hears_an_operator_when_its_key_wins():
    with Heard() as heard, torch.inference_mode():
        keys = dispatch.call_keys(X)
        X @ X
    assert keys.index("Python") < keys.index("CPU")
    assert "PythonTLSSnapshot" in keys
    assert heard.names == ["aten::matmul"]
    with Heard() as heard:
        assert dispatch.call_keys(X).index("AutogradCPU") < dispatch.call_keys(X).index("Python")
        X @ X
    assert heard.names == ["aten::mm"]


def test_a_decision_names_keys_of_tensors_and_thread():
    decision = dispatch.decide("aten::mul.Tensor", X, torch.tensor(2.0))
    assert decision.brought == ("AutocastCPU", "AutogradCPU", "ADInplaceOrView", "CPU")
    assert decision.included == ("BackendSelect",)
    assert decision.excluded == ("AutocastCPU",)
    assert decision.winner in decision.considered
    above = decision.considered[: decision.considered.index(decision.winner)]
    assert all(entry.fallthrough for entry in above)


@pytest.mark.parametrize("turned", [False, True])
def test_the_highest_of_two_backends_counts(turned, library):
    ran = []
    library.define("two(Tensor x, Tensor y) -> int")
    for key in ("CPU", "AutogradCPU", "Meta", "AutogradMeta"):
        library.impl("two", lambda x, y, key=key: ran.append(key) or 1, key)
    pair = (X, X.to("meta"))[:: -1 if turned else 1]
    decision = dispatch.decide("hood_test::two", *pair)
    torch.ops.hood_test.two(*pair)
    assert ran == [decision.winner.key] == ["AutogradMeta"]
    assert decision.brought == dispatch.keys_of(*pair)
    assert "Meta" in decision.brought


def test_threads_sets_follow_the_contexts():
    before = dispatch.thread_keys()
    assert "AutocastCPU" in before.excluded
    with torch.autocast("cpu"), torch.inference_mode():
        inside = dispatch.thread_keys()
    assert "AutocastCPU" not in inside.excluded
    assert "AutogradCPU" in inside.excluded
    assert "ADInplaceOrView" in set(before.included) - set(inside.included)
    assert not {"AutogradCPU", "CPU", "Python"} & set(before.excluded)
    assert all(name.startswith(("Autograd", "Autocast")) for name in inside.excluded)
    assert dispatch.thread_keys() == before


def test_an_operator_without_a_kernel(library):
    library.define("nothing(Tensor x) -> Tensor")
    with torch.inference_mode():
        with pytest.raises(LookupError, match="hood_test::nothing has no kernel for any of"):
            dispatch.decide("hood_test::nothing", X)
        with pytest.raises(NotImplementedError):
            torch.ops.hood_test.nothing(X)


def test_an_unknown_operator_is_refused():
    with pytest.raises(LookupError, match="no operator 'aten::multiply_twice'"):
        dispatch.table("aten::multiply_twice")


def test_a_kernel_registered_later_is_seen(library):
    library.define("late(Tensor x) -> Tensor")
    assert "CPU" not in dispatch.table("hood_test::late")
    library.impl("late", lambda x: x, "CPU")
    assert dispatch.table("hood_test::late")["CPU"].kind == "kernel"


def test_an_operator_without_code_is_no_composite(library):
    library.define("opened(Tensor x) -> Tensor")
    assert not dispatch.is_composite("hood_test::opened")
    library.impl("opened", lambda x: x + x, "CompositeImplicitAutograd")
    assert dispatch.is_composite("hood_test::opened")


def test_a_custom_kernel_shows_only_the_name_of_its_file():
    own = torch.library.Library("hood_test_own", "DEF")
    try:
        own.define("here(Tensor x) -> Tensor")
        own.impl("here", lambda x: x, "CPU")
        assert dispatch.table("hood_test_own::here")["CPU"].file == Path(__file__).name
    finally:
        own._destroy()


LINES = """\
CPU: registered at /pytorch/build/aten/src/ATen/RegisterCPU_0.cpp:3234 [kernel]
    CPU | kernel | has code | aten/src/ATen/RegisterCPU_0.cpp | 3234
AutogradCPU: registered at /__w/pytorch/pytorch/torch/csrc/V.cpp:9 [autograd kernel]
    AutogradCPU | autograd kernel | has code | torch/csrc/V.cpp | 9
Meta: registered at /home/me/venv/lib/site-packages/torch/_meta.py:54 [kernel]
    Meta | kernel | has code | torch/_meta.py | 54
CUDA: registered at /pytorch/build/aten/R.cpp:1 [math kernel]
    CUDA | composite | has code | aten/R.cpp | 1
CUDA: registered at /pytorch/build/aten/R.cpp:1 [default backend kernel]
    CUDA | default for backends | has code | aten/R.cpp | 1
FuncTorchBatched: registered at /pytorch/aten/B.cpp:2 [batched kernel]
    FuncTorchBatched | opened for vmap | has code | aten/B.cpp | 2
Python: registered at /pytorch/aten/P.cpp:192 [backend fallback]
    Python | fallback | has code | aten/P.cpp | 192
Tracer: fallthrough registered at /pytorch/aten/P.cpp:3 [backend fallback]
    Tracer | fallback | falls through | aten/P.cpp | 3
Conjugate: fallthrough registered at /pytorch/aten/C.cpp:21 [kernel]
    Conjugate | kernel | falls through | aten/C.cpp | 21
CPU: registered at /home/me/my work/lab: 1.py:7 [kernel]
    CPU | kernel | has code | lab: 1.py | 7
CPU: registered at /tmp/ipykernel_77/123.py:4 [a new kind]
    CPU | a new kind | has code | 123.py | 4
""".splitlines()


@pytest.mark.parametrize(("line", "read"), zip(LINES[::2], LINES[1::2], strict=True))
def test_a_line_of_a_dump_is_parsed(line, read):
    key, kind, falls, file, number = read.strip().split(" | ")
    entry = dispatch.Entry(key, kind, falls == "falls through", file, int(number))
    assert dispatch.parse_line(f"{line}\n") == entry


@pytest.mark.parametrize("line", ["", "CPU", "CPU: [kernel]", "CPU: registered at x.cpp [kernel]"])
def test_other_lines_are_no_line_of_a_dump(line):
    with pytest.raises(ValueError, match="not a line of a dispatch table"):
        dispatch.parse_line(line)


def some_operators():
    """One in sixty of all operators, except three operators of PyTorch's own tests."""
    names = torch._C._dispatch_get_all_op_names()
    return sorted(name for name in names if not name.startswith("_test::"))[::60]


def test_every_line_of_a_table_is_read_and_every_kind_is_known():
    kinds = Counter()
    for op in some_operators():
        dump = torch._C._dispatch_dump_table(op)
        table = dispatch.table(op)
        assert len(table) == len(dump.strip().splitlines())
        assert all(f"{key}: " in dump for key in table)
        kinds.update(entry.kind for entry in table.values())
    assert set(dispatch.KINDS.values()) <= set(kinds)
    assert set(kinds) <= set(dispatch.KINDS.values()) | {"nested kernel"}


def test_no_file_shows_a_machines_own_folders():
    files = {entry.file for op in some_operators() for entry in dispatch.table(op).values()}
    assert len(files) > 30
    for file in files:
        assert "/" not in file or re.match(r"(aten|torch|c10|torchgen)/", file), file
        assert not re.search(r"site-packages|/home/|/root/|__w|/work/", file), file


def names(calls, *, autograd=False):
    """A trace's operators from the top down: all, or only those that pass autograd's kernel."""
    return [
        call.name
        for top in calls
        for _, call in top.walk()
        if not autograd or any(entry.kind == "autograd kernel" for entry in call.path)
    ]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(4,), (2, 4), (2, 3, 4), (2, 1, 3, 4)])
def test_a_mode_hears_operators_that_pass_autograds_kernel(shape, bias):
    args = (torch.ones(shape), torch.ones(5, 4), torch.ones(5) if bias else None)
    with Heard() as heard:
        F.linear(*args)
    traced = dispatch.trace(F.linear, *args)
    assert names(traced, autograd=True) == heard.names
    assert [call.name for call in traced] == ["aten::linear"]
    assert traced[0].shapes[:2] == (shape, (5, 4))
    assert [entry.key for entry in traced[0].path] == ["AutogradCPU"]
    with torch.inference_mode(), Heard() as heard:
        F.linear(*args)
    with torch.inference_mode():
        assert [call.name for call in dispatch.trace(F.linear, *args)] == heard.names


def test_a_mode_hears_a_model_as_the_trace_says():
    model, tokens = MiniGPT(MiniGPTConfig()), torch.zeros(2, 32, dtype=torch.int64)
    with Heard() as recording:
        model(tokens)
    with torch.no_grad():
        with Heard() as heard:
            model(tokens)
        assert names(dispatch.trace(model, tokens), autograd=True) == heard.names
    # If a mode listens, autograd saves an output through `detach`. Autograd adds nothing else.
    traced = Counter(names(dispatch.trace(model, tokens), autograd=True))
    assert Counter(recording.names) - traced == Counter({"aten::detach": 2})
    assert not traced - Counter(recording.names)
    with torch.inference_mode():
        with Heard() as heard:
            model(tokens)
        traced = dispatch.trace(model, tokens)
    assert [call.name for call in traced] == heard.names
    assert not names(traced, autograd=True)


def test_a_call_keeps_the_keys_with_which_it_started():
    for context in (torch.enable_grad(), torch.inference_mode(), torch.autocast("cpu")):
        with context:
            (top,) = dispatch.trace(torch.mm, X, X)
            decision = dispatch.decide("aten::mm", X, X)
            assert top.keys == dispatch.call_keys(X, X)
        assert top.path[0] == decision.winner


def test_an_in_place_change_and_a_view_pass_adinplaceorview():
    def program(x):
        return x.clone().add_(1).t().relu()

    passed = {
        call.name: any(entry.key == "ADInplaceOrView" for entry in call.path)
        for call in dispatch.trace(program, X)
    }
    assert passed == {
        "aten::clone": False,
        "aten::add_": True,
        "aten::t": True,
        "aten::relu": False,
    }


def test_autocast_casts_once_and_calls_again():
    with torch.autocast("cpu"):
        (top,) = dispatch.trace(torch.mm, X, X)
    assert [entry.key for entry in top.path] == ["AutocastCPU"]
    inner = [call for call in top.calls if call.name == "aten::mm"]
    assert [[entry.key for entry in call.path] for call in inner] == [["AutogradCPU", "CPU"]]


def test_a_trace_inside_a_mode_goes_through_it():
    with Heard():
        (top,) = dispatch.trace(torch.mm, X, X)
    assert [entry.key for entry in top.path] == ["PythonTLSSnapshot", "AutogradCPU", "Python"]
    inner = [call for _, call in top.walk() if call.name == "aten::mm"][1]
    assert [entry.key for entry in inner.path] == ["CPU"]


def test_a_call_of_no_operator_has_no_path():
    def there_and_back(x):
        (x @ x).sum().backward()

    calls = dispatch.trace(there_and_back, torch.ones(2, 2, requires_grad=True))
    nodes = [call for top in calls for _, call in top.walk() if call.name == "MmBackward0"]
    assert [node.path for node in nodes] == [()]
    assert [call.name for call in nodes[0].calls].count("aten::mm") == 2


@pytest.mark.parametrize(
    "op",
    [
        "aten::linear",
        "aten::matmul",
        "aten::softmax.int",
        "aten::mm",
        "aten::relu",
        "aten::_softmax",
        "aten::reshape",
    ],
)
def test_a_composite_has_a_decomposition_that_torch_marks(op):
    packet, _, overload = op.removeprefix("aten::").partition(".")
    found = getattr(getattr(torch.ops.aten, packet), overload or "default")
    implicit = torch._C.DispatchKey.CompositeImplicitAutograd
    assert dispatch.is_composite(op) == found.has_kernel_for_dispatch_key(implicit)
