"""What an exercise by hand allows and forbids: a table of right and wrong uses."""

import re
import sys
import textwrap
import time

import nbformat
import pytest
from nbgrader.utils import is_locked

from hood.grader.execution.examiner import read_call
from hood.grader.execution.graded_cell import verified_parts
from hood.judge.catalogue import find_check
from hood.judge.checks.exercise import ByHand, Check
from hood.judge.connection.rpc_client import InProcess
from hood.judge.source.accounting import Surroundings
from hood.judge.source.by_hand import RuleReader
from hood.judge.source.learner_source import LearnerSource
from hood.judge.verdicts.answer_key import answer_key, play
from hood.phase_paths import ROOT

SETUP = """
import math
import numpy as np
import torch
from torch import nn
from utils.minigpt import MiniGPTConfig, load_config, load_weights, numpy_forward
"""
NOTHING = Surroundings()
HEADS = {
    "layer_norm_vjp": "grad_output, x, weight, *eps",
    "run_softmax": "x, grad_output, direction=None",
    "row_major_strides": "shape",
    "minigpt_logits": "weights, tokens, config, device='cpu', dtype=torch.float32",
    "numeric_vjp": "name, x, grad_output, h=1e-6",
    "broadcast": "shape_a, strides_a, shape_b, strides_b",
    "result_dtype": "a, b",
}


def said(exercise, *cells, of=None, around=NOTHING):
    """The judgement on an answer's cells. The last argument may be the answer's return value."""
    written = LearnerSource()
    written.add(SETUP, given=True)
    for cell in cells:
        code = textwrap.dedent(cell).strip()
        if cell is cells[-1] and not re.search(rf"\b(def|class|global) {exercise}\b|%", code):
            code = f"def {exercise}({HEADS[exercise]}): return {code}"
        written.add(code)
    return RuleReader(find_check(exercise)[1], written, around).refusal(of)


def heard(exercise, *cells):
    """The judgement on an answer's recorded calls alone, without reading its cells."""
    names = {}
    for cell in (SETUP, *cells):
        code = textwrap.dedent(cell).strip()
        if cell is cells[-1] and not re.search(rf"\bdef {exercise}\b", code):
            code = f"def {exercise}({HEADS[exercise]}): return {code}"
        exec(compile(code, "<cell>", "exec"), names)
    check = find_check(exercise)[1]
    key = answer_key(check, "a seed")
    got = play(check, InProcess(names[exercise]), key.cases[0])
    return RuleReader(check, None).heard(None, got.called)


NODE = """
class Node:
    def __init__(self, data, children=()):
        self.data, self.grad, self.children, self._backward = data, 0.0, children, lambda: None
    def __add__(self, other):
        out = Node(self.data + other.data, (self, other))
        def back():
            self.grad += out.grad
            other.grad += out.grad
        out._backward = back
        return out
    def __mul__(self, other):
        out = Node(self.data * other.data, (self, other))
        def back():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad
        out._backward = back
        return out
    def backward(self):
        order, seen = [], set()
        def visit(node):
            if node not in seen:
                seen.add(node)
                for child in node.children:
                    visit(child)
                order.append(node)
        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            node._backward()
"""

RIGHT = [
    # a learner's own class in the style of the lesson
    ("layer_norm_vjp", NODE, "[n := Node(x), (n + n * Node(weight)).backward(), n.grad]"),
    ("layer_norm_vjp", NODE, "sum([n.grad for n in [Node(x), Node(weight)]])"),
    (
        "layer_norm_vjp",
        """
        from dataclasses import dataclass
        @dataclass
        class Step:
            value: object
            grad: float = 0.0
        """,
        "[s.grad for s in [Step(x), Step(weight)]]",
    ),
    (
        "layer_norm_vjp",
        "from typing import NamedTuple\nclass Pair(NamedTuple):\n    x: int\n    grad: int",
        "Pair(x, weight).grad",
    ),
    (
        "layer_norm_vjp",
        "from collections import namedtuple\nPair = namedtuple('Pair', 'x grad')",
        "Pair(x, 1).grad",
    ),
    ("layer_norm_vjp", "from types import SimpleNamespace", "SimpleNamespace(grad=x).grad"),
    ("layer_norm_vjp", "def backward(g, w): return g @ w", "backward(grad_output, weight)"),
    (
        "layer_norm_vjp",
        "def helper(g):\n    grad = g.sum(0)\n    return grad",
        "helper(grad_output)",
    ),
    ("layer_norm_vjp", "def vjp(*args): return args", "vjp(grad_output, x)"),
    ("layer_norm_vjp", "grad = lambda g, w: g @ w", "grad(grad_output, weight)"),
    ("layer_norm_vjp", "(grad := grad_output @ weight)"),
    ("layer_norm_vjp", "[grad for grad in (x, weight)]"),
    ("layer_norm_vjp", "torch.no_grad and x"),
    ("layer_norm_vjp", "x.detach().clone()"),
    ("layer_norm_vjp", "torch.einsum('no,ni->oi', grad_output, x)"),
    ("layer_norm_vjp", "np.gradient(x.numpy())"),
    ("layer_norm_vjp", "import math as m", "m.sqrt(2) * x"),
    ("layer_norm_vjp", "getattr(torch, 'matmul')(grad_output, weight)"),
    ("layer_norm_vjp", "import functools", "functools.reduce(torch.add, [x, weight])"),
    ("layer_norm_vjp", "from functools import partial", "partial(torch.sum, dim=0)(grad_output)"),
    ("layer_norm_vjp", "y = torch.autograd.grad(torch.ones(1, requires_grad=True).sum(), [])", "x"),
    ("layer_norm_vjp", "def other(x): return x.backward()", "x"),
    ("layer_norm_vjp", "def layer_norm_vjp(g, x, w): return x.backward()", "x"),
    ("layer_norm_vjp", "%matplotlib inline\n!nvidia-smi", "x"),
    ("layer_norm_vjp", "%load_ext autoreload\n%autoreload 2\n%pdb on", "x"),
    ("layer_norm_vjp", "%%time\nprint(1)", "x"),
    ("layer_norm_vjp", "import einops, sys, gc\nsys.path.append('..')\ngc.collect()", "x"),
    ("layer_norm_vjp", "torch.backends.cudnn.deterministic = True\ntorch.manual_seed(0)", "x"),
    ("layer_norm_vjp", "x = torch.ones(2)\nx.grad = None\nmodel = nn.Linear(1, 1).eval()", "x"),
    # a learner's own function with a name of torch's
    (
        "run_softmax",
        """
        class Softmax(torch.autograd.Function):
            @staticmethod
            def softmax(x):
                e = torch.exp(x - x.amax(-1, keepdim=True))
                return e / e.sum(-1, keepdim=True)
            @staticmethod
            def forward(ctx, x):
                y = Softmax.softmax(x)
                ctx.save_for_backward(y)
                return y
            @staticmethod
            def backward(ctx, g):
                (y,) = ctx.saved_tensors
                return y * (g - (g * y).sum(-1, keepdim=True))
        """,
        "Softmax.apply(x)",
    ),
    ("run_softmax", "def softmax(x): return x.exp() / x.exp().sum(-1, True)", "softmax(x)"),
    ("run_softmax", "class Tools:\n    softmax = staticmethod(torch.exp)", "Tools.softmax(x)"),
    ("run_softmax", "class Tools:\n    def softmax(self, x): return x", "Tools().softmax(x)"),
    (
        "run_softmax",
        "class B:\n    def softmax(s, x): return x\nclass C(B): pass",
        "C().softmax(x)",
    ),
    ("run_softmax", "{'softmax': x}['softmax']"),
    # plain values without attributes
    ("row_major_strides", "tuple(int(n) for n in np.cumprod(np.ones(len(shape))))"),
    ("row_major_strides", "torch.Size(shape[1:]).numel()"),
    ("row_major_strides", "math.prod(shape)"),
    ("row_major_strides", "class Layout:\n    def __init__(s): s.strides = []", "Layout().strides"),
    ("row_major_strides", "[stride for stride in shape]"),
    ("broadcast", "np.maximum(np.ones(3), np.zeros(3))"),
    ("broadcast", "class Shape:\n    def expand(self, n): return n", "Shape().expand(3)"),
    ("result_dtype", "torch.promote_types(a.dtype, torch.tensor(b).dtype)"),
    ("numeric_vjp", "getattr(torch, name)(x + h)"),
    ("numeric_vjp", "(lambda z: getattr(torch, name)(z))(x)"),
    # parts of utils.minigpt that are no model
    ("minigpt_logits", "MiniGPTConfig(), load_config(), load_weights()"),
    ("minigpt_logits", "nn.Embedding(3, 4)(tokens), nn.functional.gelu(x)"),
    ("minigpt_logits", "class MiniGPT(nn.Module):\n    pass", "MiniGPT()(tokens)"),
    (
        "minigpt_logits",
        "out = numpy_forward.forward(load_weights(), [[1]], load_config())",
        "tokens",
    ),
    ("minigpt_logits", "import utils.minigpt as m", "m.MiniGPTConfig()"),
    (
        "minigpt_logits",
        """
        class Port(nn.Module):
            def __init__(self, n):
                super().__init__()
                for name in ("query", "key"):
                    setattr(self, name, nn.Linear(n, n))
            def forward(self, x):
                return getattr(self, "query")(x) + sum(getattr(self, k)(x) for k in ("key",))
        """,
        "Port(3)(tokens)",
    ),
]

WRONG = [
    # forbidden names that are spelled out, have other names, or are reached through other values
    ("layer_norm_vjp", "torch.autograd.grad(x.sum(), x)", "uses `grad`"),
    ("layer_norm_vjp", "x.backward()", "uses `backward`"),
    ("layer_norm_vjp", "x.requires_grad_().sum().backward(), x.grad", "uses `requires_grad_`"),
    ("layer_norm_vjp", "torch.func.vjp(lambda x: x, x)", "uses `vjp`"),
    (
        "layer_norm_vjp",
        "torch.ops.aten.linear_backward(x, grad_output, weight)",
        "`linear_backward`",
    ),
    (
        "layer_norm_vjp",
        "torch.ops.aten.threshold_backward.default(x, x, 0)",
        "uses `threshold_backward`",
    ),
    ("layer_norm_vjp", "torch.autograd.functional.jacobian(torch.exp, x)", "uses `jacobian`"),
    ("layer_norm_vjp", "from torch.autograd import grad as g", "g(x.sum(), x)", "uses `grad`"),
    ("layer_norm_vjp", "import torch.autograd as a", "a.grad(x.sum(), x)", "uses `grad`"),
    ("layer_norm_vjp", "a = torch.autograd", "a.grad(x.sum(), x)", "uses `grad`"),
    ("layer_norm_vjp", "t = torch", "t.autograd.grad(x.sum(), x)", "uses `grad`"),
    ("layer_norm_vjp", "getattr(torch, 'autograd').grad(x.sum(), x)", "uses `grad`"),
    ("layer_norm_vjp", "getattr(x, 'backward')()", "uses `backward`"),
    ("layer_norm_vjp", "torch.Tensor.backward(x)", "uses `backward`"),
    ("layer_norm_vjp", "type(x).backward(x)", "uses `backward`"),
    ("layer_norm_vjp", "x.sum().cos().backward()", "uses `backward`"),
    ("layer_norm_vjp", "[f(x) for f in [torch.func.grad]]", "uses `grad`"),
    ("layer_norm_vjp", "(lambda f=torch.func.grad: f(x))()", "uses `grad`"),
    (
        "layer_norm_vjp",
        "import functools",
        "functools.partial(torch.func.grad, x)()",
        "uses `grad`",
    ),
    (
        "layer_norm_vjp",
        "import operator",
        "operator.methodcaller('backward')(x)",
        "uses `backward`",
    ),
    ("layer_norm_vjp", "import operator", "operator.attrgetter('func.grad')(torch)", "uses `grad`"),
    ("layer_norm_vjp", "def help(f=torch.func.grad): return f", "help()(x)", "uses `grad`"),
    ("layer_norm_vjp", "for f in [torch.func.grad]: pass", "f(x)", "uses `grad`"),
    (
        "layer_norm_vjp",
        "import contextlib\nwith contextlib.nullcontext(torch.func.grad) as f: pass",
        "f(x)",
        "uses `grad`",
    ),
    ("layer_norm_vjp", "def use(f): return torch.func.grad\n@use\ndef g(): pass", "g(x)", "`grad`"),
    (
        "layer_norm_vjp",
        "def g(x): pass\nif False:\n    pass\nelse:\n    g = torch.func.grad",
        "g(x)",
        "`grad`",
    ),
    ("layer_norm_vjp", "g = torch.func.grad\ndel torch", "g(x)", "uses `grad`"),
    ("layer_norm_vjp", "from torch.func import *", "grad(x)", "uses `grad`"),
    (
        "layer_norm_vjp",
        "def layer_norm_vjp(g):\n    from torch.func import grad\n    grad(g)",
        "uses `grad`",
    ),
    ("layer_norm_vjp", "KEPT = {}", "KEPT['f'] = torch.func.grad", "KEPT['f'](x)", "`grad`"),
    (
        "layer_norm_vjp",
        "KEPT = []",
        "KEPT.append(torch.func.grad(torch.exp)(torch.ones(1)))",
        "KEPT[0]",
        "uses `grad`",
    ),
    ("layer_norm_vjp", "J = torch.func.jacrev(torch.exp)(torch.ones(3))", "J @ x", "uses `jacrev`"),
    (
        "layer_norm_vjp",
        "class Box: pass\nbox = Box()",
        "box.tool = torch.func.grad",
        "box.tool(x)",
        "`grad`",
    ),
    ("layer_norm_vjp", "class D:\n    def backward(self): pass", "x.backward()", "uses `backward`"),
    ("layer_norm_vjp", "class D(torch.Tensor): pass", "D(x).backward()", "uses `backward`"),
    # the other exercises
    ("run_softmax", "torch.softmax(x, -1)", "uses `softmax`"),
    ("run_softmax", "x.softmax(-1)", "uses `softmax`"),
    ("run_softmax", "x.log_softmax(-1).exp()", "uses `log_softmax`"),
    ("run_softmax", "nn.functional.scaled_dot_product_attention(x, x, x)", "`scaled_dot"),
    ("run_softmax", "torch.distributions.Categorical(logits=x).probs", "uses `Categorical`"),
    ("run_softmax", "class S(nn.Softmax): pass", "S(-1)(x)", "uses `Softmax`"),
    ("run_softmax", "from torch.nn.modules.activation import F as f", "f.softmax(x)", "`softmax`"),
    ("row_major_strides", "torch.empty(shape).stride()", "uses `stride`"),
    ("row_major_strides", "np.ones(shape).strides", "uses `strides`"),
    ("row_major_strides", "torch._prims_common.make_contiguous_strides_for(shape)", "strides_for"),
    ("layer_norm_vjp", "torch.tensor(x, requires_grad=True).backward()", "uses `backward`"),
    ("broadcast", "torch.broadcast_shapes(shape_a, shape_b)", "uses `broadcast_shapes`"),
    ("broadcast", "np.broadcast_shapes(shape_a, shape_b)", "uses `broadcast_shapes`"),
    ("result_dtype", "torch.result_type(a, b)", "uses `result_type`"),
    ("numeric_vjp", "getattr(torch, 'func').grad(name)", "uses `grad`"),
    ("numeric_vjp", "getattr(torch, 'auto' + 'grad')", "a name that is known only at run time"),
    ("minigpt_logits", "numpy_forward.forward(weights, tokens.numpy(), config)", "`numpy_forward`"),
    ("minigpt_logits", "numpy_forward", "uses `numpy_forward`"),
    ("minigpt_logits", "import utils.minigpt", "utils.minigpt.load_minigpt()", "`load_minigpt`"),
    (
        "minigpt_logits",
        "import utils.minigpt as m",
        "[m][0].model.MiniGPT(config)",
        "uses `minigpt`",
    ),
    (
        "minigpt_logits",
        "def minigpt_logits(w):\n    from utils.minigpt import MiniGPT as M\n    M()",
        "uses `MiniGPT`",
    ),
]

# Evasions in an answer: each hides a used name, or changes a name's meaning.
HIDDEN = [
    ("exec('y = x.backward()')", "text as code"),
    ("eval('x.backward()')", "text as code"),
    ("(lambda run: run('x.backward()'))(eval)", "text as code"),
    ("__builtins__", "`__builtins__`"),
    ("__import__('torch').add(x)", "imports code that can't be read"),
    ("globals()['torch']", "access to all names"),
    ("vars(torch)['func']", "access to all names"),
    ("torch.__dict__['func']", "access to all names"),
    ("getattr(torch, 'fu' + 'nc')(x)", "known only at run time"),
    ("torch.nn.functional.importlib.import_module('torch.func')", "code that can't be read"),
    ("(lambda: 0).__globals__['torch']", "Python's internals"),
    ("x.__getattribute__('backward')()", "Python's internals"),
    ("torch._C._autograd", "PyTorch's internals"),
    ("torch.utils._python_dispatch._disable_current_modes()", "PyTorch's internals"),
    ("torch.jit.CompilationUnit('def f(x): return x')", "text as code"),
    ("get_ipython().run_cell('pass')", "the notebook's kernel"),
    ("getattr(x, 'y', exec)('z = 1')", "text as code"),
    ("getattr(x, 'none', torch.func.grad)(x)", "uses `grad`"),
    ("(lambda: [y for y in [x] if breakpoint()])()", "text as code"),
]
# Cells before an answer that uses their definitions.
REACHES = [
    ("import threading", "threading.Thread(target=print)", "can't see"),
    ("import importlib", "importlib.import_module('torch.func')", "code that can't be read"),
    ("import helper", "helper.answer(x)", "is not installed on the judging machine"),
    ("from helper import answer", "answer(x)", "is not installed on the judging machine"),
    ("import types", "types.FunctionType(print.__code__, {})", "code that no cell contains"),
    ("import timeit", "timeit.timeit('x.backward()')", "text as code"),
    ("from unittest import mock", "mock.patch('torch.exp')", "changes what names refer to"),
    ("tool = eval('torch.func.grad')", "tool(x)", "text as code"),
    ("names = globals()", "names['torch']", "access to all names"),
    ("KEPT = !echo {torch.func.grad}", "KEPT", "`KEPT = !echo {torch.func.grad}`"),
    ("torch.exp = torch.func.grad", "torch.exp(x)", "uses `grad`"),
    ("nn.Linear.forward = torch.func.grad", "nn.Linear(2, 2)(x)", "uses `grad`"),
    ("def f(s, x): return x.backward()\nnn.Linear.forward = f", "nn.Linear(1, 1)", "`backward`"),
    ("t = torch\nt.exp = torch.func.grad", "torch.exp(x)", "uses `grad`"),
    ("setattr(torch, 'exp', torch.func.grad)", "torch.exp(x)", "uses `grad`"),
    ("import builtins\nbuiltins.len = torch.func.grad", "len(x)", "uses `grad`"),
    ("torch.Tensor.__matmul__ = torch.func.grad", "x @ x", "uses `grad`"),
    ("torch.exp = eval('torch.func.grad')", "torch.exp(x)", "text as code"),
    (
        "from hood.judge.connection import torch_calls\n"
        "torch_calls.OpRecorder.__torch_dispatch__ = print",
        "x",
        "belongs to the grader",
    ),
]
# Cells that any learner may write beside an answer.
ELSEWHERE = [
    "import pandas as pd",
    "from google.colab import drive\ndrive.mount('/content/drive')",
    "%load_ext watermark\n%watermark",
    "%matplotlib inline",
    "%timeit -n 1 sum([])",
    "!ls",
    "len?",
    "%%time\nprint(1)",
    "%run other.py",
    "run other.py",
    "'x' in globals(), locals()",
    "from IPython.core.interactiveshell import InteractiveShell as S\n"
    "S.ast_node_interactivity = 'all'",
    "import ctypes\nctypes.string_at(torch.ones(2).data_ptr(), 4)",
    "torch._C._dispatch_keys(torch.ones(2))",
    "def debug(x):\n    breakpoint()",
    "import my_plots\nmy_plots.show(1)",
    "exec('y = 2')",
    "import sys\nsys.settrace(None)\nsys.modules['torch']",
    "get_ipython().run_line_magic('ls', '')",
    "(lambda: 0).__code__",
    "from unittest import mock",
    "import gc\ngc.get_objects()",
    "import inspect\ninspect.currentframe()",
    "torch.Tensor.__repr__ = lambda t: 'a tensor'",
    "nn.Linear.forward = print",
    "torch.autograd.set_detect_anomaly(True)\nnp.set_printoptions(precision=3)",
    "import threading\nthreading.Thread(target=print).start()",
]


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: f"{case[0]}: {case[-1][:40]}")
def test_right_work_passes(case):
    assert said(*case) == ""


@pytest.mark.parametrize("case", WRONG, ids=lambda case: f"{case[0]}: {case[-2][:40]}")
def test_forbidden_names_are_found_under_any_alias(case):
    *cells, words = case
    told = said(*cells)
    assert words in told
    assert find_check(cells[0])[1].by_hand.because in told


# Forbidden calls under hidden names, which only the record of calls finds.
HEARD = [
    (
        "layer_norm_vjp",
        "w = torch.ones(1, requires_grad=True)",
        "getattr(w, 'back' + 'ward')()",
        "backward",
    ),
    ("layer_norm_vjp", "getattr(x, 'gr' + 'ad')", "grad"),
    (
        "layer_norm_vjp",
        "KEPT, w = [], torch.ones(2, requires_grad=True)",
        "also = KEPT\nalso.append(torch.autograd.grad)",
        "KEPT[0](w.sum(), w)",
        "grad",
    ),
    ("layer_norm_vjp", "list(map(getattr, [x], ['grad' + '_fn']))", "grad_fn"),
    ("run_softmax", "{'f': torch.softmax}['f'](x, -1)", "softmax"),
    ("run_softmax", "getattr(nn.functional, 'soft' + 'max')(x, -1)", "softmax"),
    (
        "run_softmax",
        "from functools import partial",
        "partial(torch.softmax, dim=-1)(x)",
        "softmax",
    ),
    ("row_major_strides", "getattr(torch.zeros(shape), 'str' + 'ide')()", "stride"),
    (
        "layer_norm_vjp",
        "getattr(torch.ops.aten, 'threshold_' + 'backward')(x, x, 0)",
        "threshold_backward",
    ),
]


@pytest.mark.parametrize("case", HEARD, ids=lambda case: f"{case[0]}: {case[-2][:40]}")
def test_an_answers_calls_are_recorded_under_any_name(case):
    *cells, name = case
    rule = find_check(cells[0])[1].by_hand
    line = f"your code called `{name}` in line 1 during the check; {rule.because}"
    assert heard(*cells) == line


@pytest.mark.parametrize(
    ("exercise", "cell", "call"),
    [
        ("run_softmax", "class Tools:\n    softmax = staticmethod(torch.exp)", "Tools.softmax(x)"),
        ("run_softmax", "def softmax(x): return x.exp()", "softmax(x)"),
        ("layer_norm_vjp", NODE, "[n := Node(x), (n + n * Node(1.0)).grad, n.backward]"),
        ("layer_norm_vjp", "from types import SimpleNamespace", "SimpleNamespace(grad=x).grad"),
        ("layer_norm_vjp", "def unused(x): return x.backward()", "x if len(x) else x.backward()"),
        ("layer_norm_vjp", "n = nn.Linear(2, 2)", "(repr(n), repr(x), n.zero_grad(), x)[-1]"),
    ],
)
def test_foreign_or_unexecuted_code_breaks_no_rule_in_the_record(exercise, cell, call):
    assert heard(exercise, cell, call) == ""


@pytest.mark.parametrize(("code", "words"), HIDDEN)
def test_code_that_hides_its_calls_earns_nothing(code, words):
    assert words in said("layer_norm_vjp", code)


@pytest.mark.parametrize(("before", "code", "words"), REACHES)
def test_code_that_an_answer_uses_is_judged(before, code, words):
    assert words in said("layer_norm_vjp", before, code)


@pytest.mark.parametrize(
    ("exercise", "library", "call"),
    [
        ("row_major_strides", "utils.views.stride_explorer", "geometry(torch.ones(shape))"),
        ("winning_key", "utils.instruments.dispatch", "call_keys(torch.add, shape)"),
        ("count_graphs", "utils.instruments.compiling", "replay(shape)"),
    ],
)
def test_the_courses_own_library_solves_no_exercise_by_hand(exercise, library, call):
    answer = f"def {exercise}(shape, t=None): return {call}"
    told = said(exercise, f"from {library} import {call.partition('(')[0]}", answer)
    assert "which is in the course's own library but is not named in the exercise" in told


@pytest.mark.parametrize("cell", ELSEWHERE)
def test_code_elsewhere_costs_nothing(cell):
    """Cells before and after the answer, with any definitions."""
    answer = "def layer_norm_vjp(g, x, w):\n    return torch.exp(g) @ w"
    for cells in ([cell, answer], [answer, cell]):
        written = LearnerSource([SETUP])
        for one in cells:
            written.add(one, bound={1: ["made", "_"]} if one is cell else {1: ["layer_norm_vjp"]})
        assert RuleReader(find_check("layer_norm_vjp")[1], written).refusal(None) == "", cells


@pytest.mark.parametrize(
    "line",
    [
        "print(x.shape, file=sys.stderr)",
        "logging.getLogger('me').warning('%s', x)",
        "display(x)",
        "IPython.display.display(x)",
        "[None for _ in tqdm.tqdm(range(3))]",
        "h = sys.float_info.epsilon",
        "begun = time.perf_counter()",
        "warnings.warn('empty')",
        "assert inspect.isfunction(print)",
        "torch.trace(x), np.trace(x.numpy()), torch.signal",
        "signature = inspect.signature(print)",
    ],
)
def test_an_answer_may_be_debugged(line):
    imports = "import inspect, logging, sys, time, warnings\nimport IPython, tqdm"
    code = f"def layer_norm_vjp(g, x, w):\n    {line}\n    return g @ w"
    assert said("layer_norm_vjp", imports, code) == ""


@pytest.mark.parametrize(
    "hides",
    [
        "exec(TEXT)",
        "globals()['layer_norm_vjp'] = TEXT",
        "%run other.py",
        "run -mcheat",
        "!echo {exec(TEXT)}",
        "x: exec(TEXT) = 1",
        "from helper import *",
    ],
)
def test_a_hidden_binding_is_refused_with_its_line(hides):
    check = find_check("layer_norm_vjp")[1]
    for name in ("layer_norm_vjp", "tool"):
        written = LearnerSource([SETUP])
        written.add("def tool(g, w):\n    return g @ w", bound={1: ["tool"]})
        written.add(
            "def layer_norm_vjp(g, x, w):\n    return tool(g, w)", bound={1: ["layer_norm_vjp"]}
        )
        assert RuleReader(check, written).refusal(None) == ""
        written.add(f"y = 1\n{hides}", bound={1: ["y"], 2: [name]})
        told = RuleReader(check, written).refusal(None)
        if "import" in hides:
            assert "is not installed on the judging machine" in told
        else:
            assert f"binds `{name}`, although its text does not show this" in told
            assert f"`{hides}`" in told


@pytest.mark.parametrize("module", ["hood.learner.service", "helper"])
def test_a_star_import_gives_no_builtin_that_the_module_lacks(module):
    answer = "def layer_norm_vjp(g, x, w):\n    return sum(reversed([g @ w]))"
    written = LearnerSource([SETUP, f"from {module} import *", answer])
    assert RuleReader(find_check("layer_norm_vjp")[1], written).refusal(None) == ""
    given = LearnerSource([SETUP, answer])
    given.add(f"from {module} import *", bound={1: ["reversed"]})
    assert "`reversed`" in RuleReader(find_check("layer_norm_vjp")[1], given).refusal(None)


def test_a_binding_declared_by_a_call_is_named():
    written = LearnerSource(["def set_up():\n    global tool\n    tool = len", GOOD])
    written.add("set_up()", bound={1: ["tool"]})
    written.add("def layer_norm_vjp(g, x, w):\n    return tool(g)", bound={1: ["layer_norm_vjp"]})
    assert RuleReader(find_check("layer_norm_vjp")[1], written).refusal(None) == ""


def test_a_binding_in_another_line_does_not_hide_a_replacement():
    cell = "def layer_norm_vjp(g, x, w):\n    return g @ w\n\nexec('...')"
    for line, words in ((1, ""), (2, ""), (4, "although its text does not show this")):
        written = LearnerSource()
        written.add(cell, bound={1: ["layer_norm_vjp"], line: ["layer_norm_vjp"]})
        assert words in RuleReader(find_check("layer_norm_vjp")[1], written).refusal(None)


def test_too_many_names_are_refused():
    written = LearnerSource()
    written.add("import torch\nfrom torch import *", bound={2: ["*"]})
    written.add(GOOD)
    assert "too many names" in RuleReader(find_check("layer_norm_vjp")[1], written).refusal(None)


def test_a_replaced_library_function_is_refused_if_the_answer_uses_it():
    around = Surroundings(frozenset({"torch.exp", "torch.nn.Linear.forward", "math.prod"}))
    for code in ("torch.exp(x)", "x.exp()", "nn.Linear(2, 2)(x)", "nn.modules.linear.Linear"):
        assert "something replaced it" in said("layer_norm_vjp", code, around=around), code
    for code in ("torch.sum(x)", "nn.LayerNorm(2)(x)", "math.sqrt(2)"):
        assert said("layer_norm_vjp", code, around=around) == "", code
    read = said("layer_norm_vjp", "torch.exp = lambda x: x", "torch.exp(x)", around=around)
    assert read == ""  # a cell replaced it, and the cell was read
    operators = Surroundings(frozenset({"torch.Tensor.__matmul__"}))
    assert "`torch.Tensor.__matmul__`" in said("layer_norm_vjp", "x @ x", around=operators)
    shown = Surroundings(frozenset({"torch.Tensor.__repr__"}))
    assert said("layer_norm_vjp", "x @ x", around=shown) == ""
    recorder = "hood.judge.connection.torch_calls.OpRecorder.__torch_dispatch__"
    for path in (recorder, "hood.judge.values.table.address"):  # the function it calls
        record = Surroundings(frozenset({path}))
        assert "something replaced it" in said("layer_norm_vjp", "x", around=record)


MANY = " + ".join(f"g{n}" for n in range(200))


@pytest.mark.parametrize(
    "cell",
    [
        "\n".join(f"torch.a{n} = torch.a{n + 1}" for n in range(1000)),
        "\n".join(f"setattr(torch, 'a{n}', torch.a{n + 1})" for n in range(1000)),
        "\n".join(
            f"def g{n}(): return {' + '.join(f'g{k}' for k in range(200))}" for n in range(200)
        )
        + "\n".join(f"\nv{n} = g{n % 200}() + v{n - 1 if n else 0}" for n in range(600)),
        "t = torch\n" + "\n".join("if h: t = t.a" for _ in range(1000)),
    ],
    ids=["a chain of replacements", "by setattr", "many calls of much", "a chain of attributes"],
)
def test_reading_much_code_ends_soon(cell):
    begun = time.process_time()
    said("layer_norm_vjp", "h = 1", cell, "(torch.a0, v599, t.exp)(x)")
    assert time.process_time() - begun < 10


def test_reading_many_paths_is_given_up_soon():
    lines = [f"if h: t = t.a{n}\nelse: t = t.b{n}" for n in range(40)]
    begun = time.process_time()
    told = said("layer_norm_vjp", "t = torch", "h = 1\n" + "\n".join(lines), "t.exp(x)")
    assert "which is defined in too many steps" in told
    assert time.process_time() - begun < 2


WORK = "def layer_norm_vjp(g, x, w): return x.backward()"
GOOD = "def layer_norm_vjp(g, x, w): return g @ w"


@pytest.mark.parametrize(
    "decoy",
    [
        f"if False:\n    {GOOD}",
        f"try:\n    1 / 0\n    {GOOD}\nexcept ZeroDivisionError:\n    pass",
        f"while False:\n    {GOOD}",
        f"for _ in []:\n    {GOOD}",
        f"import contextlib\nwith contextlib.suppress(Exception):\n    1 / 0\n    {GOOD}",
        f"match 1:\n    case 2:\n        {GOOD}",
        f"def later():\n    global layer_norm_vjp\n    {GOOD}",
    ],
)
def test_a_decoy_without_execution_replaces_nothing(decoy):
    assert "uses `backward`" in said("layer_norm_vjp", WORK, decoy)
    assert "uses `backward`" in said("layer_norm_vjp", f"{WORK}\n{decoy}")


def test_a_cell_that_did_not_end_may_not_have_defined_anything():
    written = LearnerSource([WORK])
    written.add(f"1 / 0\n{GOOD}", finished=False)
    look = RuleReader(find_check("layer_norm_vjp")[1], written)
    assert "uses `backward`" in look.refusal(None)


def test_a_function_may_be_rebound_inside_another():
    cells = [
        GOOD,
        "def sneak():\n    global layer_norm_vjp\n    layer_norm_vjp = torch.func.grad\nsneak()",
    ]
    assert "uses `grad`" in said("layer_norm_vjp", *cells)


def test_one_line_for_ipython_does_not_hide_a_cell():
    for line in ("!ls", "%time 1", "files = !ls", "?print", "%timeit -n 1 print(1)"):
        assert "uses `backward`" in said("layer_norm_vjp", f"{line}\n{WORK}"), line
    for line in ("%%time", "%%capture out", "%%timeit -n 1"):
        assert "uses `backward`" in said("layer_norm_vjp", f"{line}\n{WORK}"), line
    assert "uses `grad`" in said("layer_norm_vjp", GOOD, "%time layer_norm_vjp = torch.func.grad")


def test_values_are_recorded_when_the_cells_run():
    kept = ["def tool(x): return torch.func.grad(x)", "J = tool(torch.exp)"]
    assert "uses `grad`" in said("layer_norm_vjp", *kept, "def tool(x): return x", "J @ x")


# Forms of right answers that could be misread: a name that is a tensor here and a function there,
# properties, special methods, words that are no names.
HONEST = {
    "a function beside a tensor": "t, f = (x, lambda g: g)\nreturn f(t).sum(0)",
    "a function before a tensor": "f, t = (lambda g: g), x\nreturn f(t).sum(0)",
    "pairs in a loop": "for t, f in [(x, lambda g: g)]: y = f(t)\nreturn y.sum(0)",
    "a tape of pairs": (
        "tape = []\ntape.append((x, lambda g: g @ weight))\n"
        "for t, back in tape: y = back(grad_output).reshape(t.shape)\nreturn y"
    ),
    "a dict of both": (
        "r = {'y': x @ weight.T, 'back': lambda g: g @ weight}\n"
        "return r['back'](grad_output).reshape(r['y'].shape[0], -1)"
    ),
    "a reduction": "import functools\nreturn functools.reduce(lambda a, b: a + b, [x, x]).sum(0)",
    "a name used twice": "grad = lambda g: g\ngrad = grad(grad_output)\nreturn grad.sum(0)",
    "a callable or not": "t = lambda: x\nt = t() if callable(t) else t\nreturn t.sum(0)",
    "locals of its own": (
        "class Node:\n    def __init__(self, a, b): self.__dict__.update(locals())\n"
        "return Node(x, weight).a.sum(0)"
    ),
    "a property": (
        "class Layer:\n    @property\n    def w(self): return weight\n"
        "return Layer().w.sum(0) + Layer().w.shape[0]"
    ),
    "the type of a list": "s = [1, 2]\nreturn x * type(s)(2 * v for v in s)[0]",
    "in words": "'''torch.autograd.grad(x)'''\nprint('x.backward()')  # x.grad\nreturn x",
    "an annotation": "def f(t: torch.autograd.Function) -> torch.func.grad: return t\nreturn f(x)",
    "never run, and not torch's": "return x if True else Node(x).grad",
}
BESIDE = {
    "a frozen class": (
        "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass Pair:\n    a: int\n"
        "    def __post_init__(self): object.__setattr__(self, 'a', 2 * self.a)"
    ),
    "a module's attributes": (
        "class Layer(nn.Module):\n    def __setattr__(self, name, value):\n"
        "        super().__setattr__(name, value)"
    ),
    "a local list called like a function": (
        "from math import prod\ndef f():\n    prod = []\n    prod.append(1)\n    return prod"
    ),
    "a parameter called like a function": (
        "from torch import tensor\ndef f(tensor):\n    tensor[0] = 1"
    ),
}


@pytest.mark.parametrize("body", HONEST.values(), ids=HONEST)
def test_honest_answers_of_many_forms_keep_the_rules(body):
    lines = textwrap.indent(body, "    ")
    cells = [NODE, f"def layer_norm_vjp(grad_output, x, weight):\n{lines}"]
    assert said("layer_norm_vjp", *cells) == heard("layer_norm_vjp", *cells) == ""


@pytest.mark.parametrize("cell", BESIDE.values(), ids=BESIDE)
def test_honest_cells_beside_an_answer_keep_the_rules(cell):
    assert said("layer_norm_vjp", cell, "(x, torch.exp(weight))") == ""


def test_a_chain_of_definitions_is_followed_to_its_end():
    steps = [f"def g{i}(x): return g{i + 1}(x)" for i in range(60)]
    chain = "\n".join([*steps, "def g60(x): return torch.func.grad(x)"])
    assert "uses `grad`, in line 61: `torch.func.grad`" in said("layer_norm_vjp", chain, "g0(x)")
    depth = sys.getrecursionlimit()
    aliases = "\n".join(["g0 = torch", *(f"g{i + 1} = g{i}" for i in range(depth))])
    told = said("layer_norm_vjp", aliases, f"g{depth}.exp(x)")
    assert "which is defined in too many steps" in told


def test_a_file_beside_the_notebook_is_not_read_where_an_answer_uses_it():
    around = Surroundings(own_files=frozenset({"helper", "colorsys"}))
    cells = "import helper, colorsys", "colorsys.rgb_to_hls(1, 1, 1)"
    assert "`colorsys.rgb_to_hls`, which is a file beside" in said(
        "layer_norm_vjp", *cells, around=around
    )
    assert said("layer_norm_vjp", *cells) == ""
    assert said("layer_norm_vjp", cells[0], "x", around=around) == ""


def test_an_answer_without_a_defining_cell_is_not_read():
    told = said("layer_norm_vjp", "y = 'layer_norm_vjp'")
    assert "no cell defines" in told


@pytest.mark.parametrize("knows", [True, False], ids=["graded", "on a machine of one's own"])
@pytest.mark.parametrize("path", sorted(ROOT.glob("source/*/*.ipynb")), ids=lambda p: p.stem)
def test_the_labs_own_notebooks_keep_to_their_rules(path, knows):
    """The labs' cells are judged with all their checks and pictures, and with their use of
    autograd.

    If `verify` judges in the notebook itself, it can't know which cells came with the lab.
    """
    written = LearnerSource()
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            visible, hidden = verified_parts(cell) or (cell.source, "")
            written.add(visible, given=knows and is_locked(cell))
            if hidden:
                name, _, things = read_call(hidden)
                look = RuleReader(find_check(name)[1], written)
                assert [look.refusal(of) for of in things or [None]] == [""] * max(1, len(things))


def test_the_labs_own_cells_are_trusted():
    written = LearnerSource()
    written.add("exec('x = 1')", given=True)
    written.add(GOOD)
    assert RuleReader(find_check("layer_norm_vjp")[1], written).refusal(None) == ""
    written = LearnerSource()
    tool, answer = "tool = eval('len')", "def layer_norm_vjp(g, x, w): return tool(g)"
    for given, words in ((True, ""), (False, "text as code")):
        written.add(tool, given=given)
        written.add(answer)
        assert words in RuleReader(find_check("layer_norm_vjp")[1], written).refusal(None)


@pytest.fixture
def _pythons_own_depth():
    """Python's own limit; modules of other tests may have raised it."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


def test_a_torch_function_with_the_answers_name_is_named_by_its_path():
    written = LearnerSource(
        [
            "from torch.optim._functional import adamw as torchs",
            "def adamw(*given):\n    return torchs(*given)",
            "def sgd(*given): ...",
        ]
    )
    told = RuleReader(find_check("optimizers")[1], written).refusal("adamw")
    assert told.startswith("`adamw` uses `torch.optim._functional.adamw`, in line 2: ")


@pytest.mark.usefixtures("_pythons_own_depth")
def test_too_deep_code_is_reported():
    deep = "y = " + "not " * 100_000 + "x"
    assert "a cell that is nested too deeply" in said("layer_norm_vjp", deep, GOOD)
    # from Python 3.13 on, code of this depth is read, and the evasion in it is reported
    assert said("layer_norm_vjp", "y = " + "not " * 5000 + "__import__('os').system('')", "y")
    assert "nested too deeply" in said("layer_norm_vjp", "not " * 2000 + "x")
    written = LearnerSource([GOOD])
    written.add(deep, finished=False)  # it could not be run either
    assert RuleReader(find_check("layer_norm_vjp")[1], written).refusal(None) == ""


def names_refused(rule, source, name="Dropout"):
    check = Check(name, parts={}, reads="r", by_hand=rule)
    written = LearnerSource([SETUP, "F = nn.functional", textwrap.dedent(source)])
    told = RuleReader(check, written).refusal(None)
    return re.findall(r"uses `(\w+)`", told)


def test_an_attribute_set_by_the_code_is_its_own():
    rule = ByHand("write it out", forbid_names=frozenset({"dropout", "Dropout"}))
    own = """
        class Dropout(nn.Module):
            def __init__(self, p):
                self.dropout = p
            def forward(self, x):
                return x * self.dropout
        """
    assert names_refused(rule, own) == []
    assert names_refused(rule, own.replace("(nn.Module)", "(nn.Dropout)")) == ["Dropout"]
    assert names_refused(rule, own.replace("= p", "= F.dropout")) == ["dropout"]
    code = "def f(self, x): return self.dropout(x)"
    assert names_refused(rule, code, "f") == ["dropout"]


MODULE = """
from utils.drivers.module_spec import drive
class Module:
    def __init__(self):
        {}
    def __setattr__(self, name, value):
        {}
def run_module(plan, *requests):
    return drive(Module, plan, *requests)
"""


@pytest.mark.parametrize(
    ("made", "assigned"),
    [
        ("self.__dict__['kept'] = {}", "super().__setattr__(name, value)"),
        ("object.__setattr__(self, 'kept', {})", "self.__dict__[name] = value"),
        ("vars(self)['kept'] = []", "object.__setattr__(self, name, value)"),
        ("pass", "isinstance(value, nn.Parameter) or value.__dict__.clear()"),
        ("pass", "print(getattr(value, name))"),
    ],
)
def test_own_attribute_access_may_be_defined(made, assigned):
    assert said("run_module", MODULE.format(made, assigned)) == ""


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ("self.__dict__['kept'] = nn.Module()", "uses `Module`"),
        ("self.kept = nn.ParameterDict()", "uses `ParameterDict`"),
        ("self.kept = nn.__dict__['Mod' + 'ule']()", "uses `__dict__`"),
        ("self.kept = torch.__dict__['nn'].Module()", "`torch.__dict__`"),
        ("self.kept = getattr(nn, 'Mod' + 'ule')()", "known only at run time"),
        ("self.kept = vars(nn)['Mod' + 'ule']()", "uses `__dict__`"),
        ("self.kept = Inner()", "uses `Module`"),
        (
            "from utils.drivers.module_spec import assemble; self.kept = assemble({})",
            "uses `assemble`",
        ),
        ("from utils.minigpt import load_minigpt; self.kept = load_minigpt()", "`load_minigpt`"),
        ("exec('self.kept = nn.Module()')", "runs text as code"),
    ],
)
def test_torchs_modules_may_not_be_inside_an_own_module(made, words):
    inner = "class Inner(nn.Module): pass"
    assert words in said("run_module", inner, MODULE.format(made, "pass"))


def attention_of(lines, step="{} = {}", helper=""):
    """A MultiHead with this number of lines, and a helper in a separate cell."""
    body = "\n".join("        " + step.format("x", f"x + {n}") for n in range(lines - 3))
    return (
        helper,
        f"class MultiHead(nn.Module):\n    def forward(self, x):\n{body}\n        return x",
    )


@pytest.mark.parametrize(
    ("cells", "count"),
    [
        (attention_of(50), 0),
        (attention_of(51), 51),
        (attention_of(50, "{} = (\n            {}\n        )  # and a comment\n"), 0),
        (attention_of(27, "{} = {}; x = x"), 51),
        (("def far(x):\n    return x", attention_of(49, "{} = far({})")[1]), 51),
        (("def far(x):\n    return x", attention_of(50)[1]), 0),  # not used
        (
            (
                "import math\n\ndef far(x):\n    '''Text.'''\n    return x",
                attention_of(48, "{} = far({})")[1],
            ),
            0,
        ),
        ((attention_of(200)[1], attention_of(50)[1]), 0),  # the last one counts
    ],
    ids=[
        "fifty",
        "one more",
        "broken and commented",
        "two on a line",
        "a helper",
        "another's",
        "free",
        "twice",
    ],
)
def test_a_rule_may_bound_the_lines_of_an_answer_and_its_helpers(cells, count):
    words = said("MultiHead", *cells)
    assert words.startswith(f"your code has {count} lines") if count else words == ""


@pytest.mark.parametrize(
    "line",
    [
        "return torch.nn.functional.scaled_dot_product_attention(x, x, x)",
        "return nn.MultiheadAttention(4, 2)(x, x, x)",
        "from utils.minigpt import load_minigpt; return load_minigpt().blocks[0].attention(x)",
    ],
)
def test_library_attention_is_not_attention_by_hand(line):
    code = f"class MultiHead(nn.Module):\n    def forward(self, x, allowed=None):\n        {line}"
    assert said("MultiHead", code) != ""
