"""Attempts to forge verdicts in labs 02 and 03 with values, modules and a torch that lie.

Each attempt is the code of one exercise, with cells that run before it. The answers are wrong. They
may earn at most the points that they earn in a process without the lies.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

AUTOGRAD, MODULE = "02_autograd", "03_module"


@dataclass(frozen=True)
class Attempt:
    """One forgery.

    Attributes:
        lab: the lab that it attacks.
        exercise: the exercise of the lab.
        answer: the solution cell.
        before: a cell that runs before it.
        most: the points that the answer earns in a process without lies, and may not exceed.
    """

    lab: str
    exercise: str
    answer: str
    before: str = ""
    most: float = 0.0


ATTEMPTS: dict[str, Attempt] = {}


def forge(
    name: str, lab: str, exercise: str, answer: str, before: str = "", most: float = 0.0
) -> None:
    """Write an attempt down."""
    ATTEMPTS[name] = Attempt(lab, exercise, dedent(answer), dedent(before), most)


ZEROS = """
def linear_vjp(grad_output, x, weight):
    return x * 0, weight * 0, weight[:, 0] * 0
"""
ZERO_SUM = "def unbroadcast(grad, shape):\n    return torch.zeros(shape, dtype=grad.dtype)"
STACK = """
class Stack(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.__dict__["own"] = [nn.Linear(width, width) for _ in range(depth)]
        self.__dict__["gain"] = torch.ones(width)
    def forward(self, x):
        return x * self.gain
    def fit(self, x, y, steps):
        return [1.0] * steps
"""

forge(
    "a subclass that answers for every function",
    AUTOGRAD,
    "linear_vjp",
    """
    class Agrees(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            if function.__name__ in ("equal", "allclose", "isclose", "eq", "all", "__eq__"):
                return True
            if function.__name__ in ("sub", "ne", "abs", "__sub__", "__rsub__"):
                return torch.zeros(())
            return super().__torch_function__(function, types, args, kwargs or {})
        __array_priority__ = 1e9
        def __eq__(self, other): return True
    def linear_vjp(grad_output, x, weight):
        grads = x * 0, weight * 0, weight[:, 0] * 0
        return tuple(g.as_subclass(Agrees) for g in grads)
    """,
)
forge(
    "a wrapper without a storage",
    AUTOGRAD,
    "linear_vjp",
    """
    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, like):
            return torch.Tensor._make_wrapper_subclass(cls, like.shape, dtype=like.dtype)
        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            return torch.ones((), dtype=torch.bool)
    def linear_vjp(grad_output, x, weight):
        return Wrapper(x), Wrapper(weight), Wrapper(weight[:, 0])
    """,
)
forge(
    "nan where every comparison is false",
    AUTOGRAD,
    "linear_vjp",
    """
    def linear_vjp(grad_output, x, weight):
        nan = float("nan")
        return x * nan, weight * nan, weight[:, 0] * nan
    """,
)
forge(
    "nan with a payload, and infinities",
    AUTOGRAD,
    "unbroadcast",
    """
    def unbroadcast(grad, shape):
        bits = torch.full(shape, 0x7ff00000deadbeef, dtype=torch.int64).view(torch.float64)
        return bits.to(grad.dtype) if grad.dtype != torch.float64 else bits
    """,
)
forge(
    "inputs made zero, of which zero is the right gradient",
    AUTOGRAD,
    "linear_vjp",
    """
    def linear_vjp(grad_output, x, weight):
        for tensor in (grad_output, x, weight):
            tensor.data.zero_()
        return grad_output @ weight, weight * 0, weight[:, 0] * 0
    """,
)
forge(
    "kernels of aten replaced, so that whatever is computed beside it is zero",
    AUTOGRAD,
    "linear_vjp",
    ZEROS,
    """
    library = torch.library.Library("aten", "IMPL")
    for name in ("mm", "sum.dim_IntList", "mul.Tensor", "sub.Tensor", "isclose", "equal"):
        try:
            library.impl(name, lambda *a, **k: torch.zeros(()), "CPU")
        except Exception as error:
            print(name, type(error).__name__)
    """,
)
forge(
    "a mode left on that turns every result into zeros",
    AUTOGRAD,
    "unbroadcast",
    ZERO_SUM,
    """
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    class Zeros(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor) and out.is_floating_point():
                with torch._C.DisableTorchFunctionSubclass():
                    return torch.Tensor.mul(out, 0)
            return out
    Zeros().__enter__()
    """,
)
forge(
    "a default dtype, device and grad mode that nobody expects",
    AUTOGRAD,
    "linear_vjp",
    ZEROS,
    """
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_grad_enabled(False)
    torch._C._set_deterministic_algorithms(True)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.inference_mode().__enter__()
    """,
)
forge(
    "autocast left on, in which a product is coarse",
    AUTOGRAD,
    "linear_vjp",
    """
    def linear_vjp(grad_output, x, weight):
        rows = grad_output.flatten(0, -2)
        grads = grad_output @ weight, rows.T @ x.flatten(0, -2), rows.sum(0)
        return tuple(g.to(torch.bfloat16).to(x.dtype) for g in grads)
    """,
    "torch.autocast('cpu', dtype=torch.bfloat16).__enter__()",
)
forge(
    "another dtype, equal in value",
    AUTOGRAD,
    "unbroadcast",
    """
    def unbroadcast(grad, shape):
        return grad.sum_to_size(shape).to(torch.complex128)
    """,
)
forge(
    "values behind a bit that negates them",
    AUTOGRAD,
    "unbroadcast",
    """
    def unbroadcast(grad, shape):
        return torch._neg_view(grad.sum_to_size(shape))
    """,
)
forge(
    "one buffer for every result, filled later",
    AUTOGRAD,
    "unbroadcast",
    """
    POOL = {}
    def unbroadcast(grad, shape):
        pool = POOL.setdefault(grad.dtype, torch.zeros(10_000, dtype=grad.dtype))
        n = torch.Size(shape).numel()
        return pool[:n].view(shape)
    """,
)
forge(
    "an object that is any array that is asked for",
    AUTOGRAD,
    "numeric_vjp",
    """
    class Anything:
        shape = dtype = property(lambda self: self)
        def __eq__(self, other): return True
        def __array__(self, *a, **k): return self
        def __getattr__(self, name): return self
        def __call__(self, *a, **k): return self
        def __reduce__(self): return (print, ("unpickled in the grader",))
        __array_interface__ = {"shape": (1,), "typestr": "<f8", "data": (0, False), "version": 3}
    def numeric_vjp(name, x, grad_output, h=1e-6):
        return Anything()
    """,
)
forge(
    "a name of a node that is not its own",
    AUTOGRAD,
    "run_softmax",
    """
    class Name(str):
        def endswith(self, *a): return True
        def __eq__(self, other): return True
        def __hash__(self): return hash("node")
    def run_softmax(x, grad_output, direction=None):
        zero = torch.zeros_like(x)
        return {Name("node"): Name("x"), "output": zero, "gradient": zero,
                "of x": zero, "of upstream": zero}
    """,
)
forge(
    "a tape that counts in numbers of its own",
    AUTOGRAD,
    "Tape",
    """
    class Number(float):
        def __eq__(self, other): return True
        def __sub__(self, other): return 0.0
        __rsub__ = __sub__
        def __float__(self): return 0.0
        def hex(self): return "0x0p+0"
    class Tape:
        def __init__(self): self.n = -1
        def __getattr__(self, name):
            if name.startswith("__"): raise AttributeError(name)
            return lambda *a: (Number(1), [Number(1)] * 9)[name == "gradients"]
    """,
)
forge(
    "a module that has whatever it is asked for",
    MODULE,
    "Stack",
    """
    class Stack(nn.Module):
        def __init__(self, width, depth):
            super().__init__()
            self.__dict__["width"] = width
        def __getattr__(self, name):
            return nn.Parameter(torch.ones(self.__dict__["width"]))
        def __call__(self, *a): return self
        def fit(self, x, y, steps): return self
        def state_dict(self): return {"gain": torch.ones(self.__dict__["width"])}
        def load_state_dict(self, state): self.__dict__["state"] = state
    """,
)
forge(
    "a state that is made up when it is read",
    MODULE,
    "Stack",
    STACK
    + """
    def state_dict(self, *a, **k):
        return getattr(self, "kept", {"gain": self.gain})
    def load_state_dict(self, state, *a, **k):
        self.__dict__["kept"] = dict(state)
    def __getattribute__(self, name):
        if name == "gain": return nn.Parameter(super().__getattribute__(name))
        return super().__getattribute__(name)
""",
)
forge(
    "hooks on every module that put torch's own result in the place of a layer's",
    MODULE,
    "Linear",
    """
    class Linear(nn.Module):
        def __init__(self, in_features, out_features, bias=True):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(out_features, in_features))
            self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None
        def forward(self, x):
            return (x[..., :1] * 0).expand(*x.shape[:-1], len(self.weight)).clone()
    """,
    """
    def spoil(module, args, output):
        for tensor in args:
            if torch.is_tensor(tensor):
                tensor.data.zero_()
        return output * 0
    torch.nn.modules.module.register_module_forward_hook(spoil)
    torch.nn.modules.module.register_module_full_backward_hook(lambda *a: None)
    """,
    most=1.0,
)
forge(
    "a gradient function of the grader's replaced by torch's answers to nothing",
    MODULE,
    "Embedding",
    """
    class Embedding(nn.Module):
        def __init__(self, n, d):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(n, d))
        def forward(self, tokens):
            return torch.zeros(*tokens.shape, self.weight.shape[1], requires_grad=True)
    """,
    """
    torch.autograd.grad = lambda y, wanted, *a, **k: tuple(torch.ones_like(w) for w in wanted)
    torch.autograd.backward = torch.Tensor.backward = lambda *a, **k: None
    from grader.inside import rpc_server
    rpc_server.gradients = lambda module, args, upstream: {
        "output": upstream, "arguments": [upstream], "parameters": {"weight": module.weight}}
    """,
)
forge(
    "a number that is every number",
    MODULE,
    "bytes_moved",
    """
    class Every(int):
        def __eq__(self, other): return True
        def __sub__(self, other): return 0
        def __index__(self): return 0
        def __repr__(self): return "0"
    ROUND = [Every(0), float("nan"), float("inf"), True, np.int64(0), torch.tensor(0), 10**400]
    def bytes_moved(plan):
        ROUND.append(ROUND.pop(0))
        return ROUND[-1]
    """,
)
forge(
    "tensors that count themselves differently",
    MODULE,
    "bytes_moved",
    "def bytes_moved(plan):\n    return sum(t.nbytes for t in assemble(plan).parameters())",
    """
    torch.Tensor.nbytes = torch.Tensor.numel = property(lambda self: 0)
    torch.Tensor.element_size = lambda self: 0
    import utils.module_spec, utils.compare
    utils.compare.compare = utils.compare.agree = lambda *a, **k: None
    """,
)
forge(
    "comparisons of torch and numpy that agree, and a dropout that is not there",
    MODULE,
    "Dropout",
    """
    class Dropout(nn.Module):
        def __init__(self, p=0.5):
            super().__init__()
        def forward(self, x):
            return x * 1
    """,
    """
    torch.equal = torch.allclose = lambda *a, **k: True
    torch.testing.assert_close = lambda *a, **k: None
    np.allclose = np.array_equal = np.isclose = lambda *a, **k: True
    torch.Tensor.__eq__ = torch.Tensor.equal = torch.Tensor.allclose = lambda *a, **k: True
    torch.rand_like = torch.rand = lambda *a, **k: torch.ones(1)
    """,
    most=1.0,
)
forge(
    "counts that equal everything, from a function named like the right one",
    MODULE,
    "count_parameters",
    """
    class Same:
        def __eq__(self, other): return True
        def __int__(self): return 109_386
        __index__ = __float__ = __int__
    def mlp_parameters(widths, bias=True): return Same()
    def minigpt_parameters(config, tied=False): return {"": Same()}
    """,
)
forge(
    "a class of the grader's questions replaced by one that answers right",
    MODULE,
    "run_module",
    """
    def run_module(plan, *requests):
        class Yes:
            def __eq__(self, other): return True
        return [Yes() for _ in requests]
    """,
    """
    import utils.module_spec
    utils.module_spec.drive = lambda cls, plan, *requests: [True for _ in requests]
    """,
)
