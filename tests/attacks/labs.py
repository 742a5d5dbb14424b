"""Attempts to forge verdicts in the labs with values, modules, drivers and a torch that lie.

Each attempt is the code of one exercise, with cells that run before it. The answers are wrong. An
attempt may earn at most the points that it earns in a process without the lies.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

AUTOGRAD, MODULE = "02_autograd", "03_module"
DISPATCHER, OPERATORS = "04_dispatcher", "05_custom_op"
COMPILE, TRAINING, TRANSFORMER = "06_compile", "07_training", "08_transformer"
PROFILING, RANKS, TILES = "09_profiling", "10_distributed", "11_tiles"
# The module of `utils.drivers` that a lab's checks ask for.
DRIVERS = {
    OPERATORS: "custom_op",
    COMPILE: "compiling",
    TRAINING: "training",
    TRANSFORMER: "transformer",
    PROFILING: "profiling",
    TILES: "tiles",
}


@dataclass(frozen=True)
class Attempt:
    """One forgery.

    Attributes:
        lab: the lab that it attacks.
        exercise: the exercise of the lab.
        answer: the solution cell.
        before: a cell that runs before the answer.
        most: the points that the answer earns in a process without lies, and may not exceed.
        claims: for a forgery that gains points, the claim that its verdict names.
        gains: the parts whose points it gains.
    """

    lab: str
    exercise: str
    answer: str
    before: str = ""
    most: float = 0.0
    claims: str = ""
    gains: tuple[str, ...] = ()


ATTEMPTS: dict[str, Attempt] = {}
CLAIMED: dict[str, Attempt] = {}


def forge(
    name: str, lab: str, exercise: str, answer: str, before: str = "", most: float = 0.0
) -> None:
    """Register an attempt."""
    ATTEMPTS[name] = Attempt(lab, exercise, _code(answer), _code(before), most)


def _code(text: str) -> str:
    """Return a cell without the newline after the quotes, so that it begins as in a notebook."""
    return dedent(text).lstrip("\n")


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
    from hood.judge.connection import torch_calls
    torch_calls.gradients = lambda module, args, upstream: {
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
    import utils.drivers.module_spec, hood.judge.checks.compare
    hood.judge.checks.compare.compare = hood.judge.checks.compare.agree = lambda *a, **k: None
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
    import utils.drivers.module_spec
    utils.drivers.module_spec.drive = lambda cls, plan, *requests: [True for _ in requests]
    """,
)

forge(
    "the list of widths is used up, and shown as it was",
    MODULE,
    "count_parameters",
    """
    def mlp_parameters(widths, bias=True):
        count, first = 0, widths.pop(0) if isinstance(widths, list) else widths[0]
        while widths:
            second = widths.pop(0)
            count, first = count + (first + bias) * second, second
        return count
    def minigpt_parameters(config, tied=False):
        d, f, words = config.d_model, config.d_ff, config.vocab_size
        block = 4 * (d * d + d) + 2 * d * f + d + f + 4 * d
        head = words if tied else words * d + words
        return words * d + config.context * d + config.n_layers * block + 2 * d + head
    """,
    """
    import utils.drivers.functions as told
    told.keeping = lambda function, *args: {
        "result": function(*map(list, args)), "arguments": list(args)}
    """,
    most=2.0,
)
forge(
    "a checkpoint that keeps the whole graph, and is said to run again",
    AUTOGRAD,
    "checkpointed",
    "def checkpointed(function, *inputs):\n    return function(*inputs)",
    """
    import functools, utils.drivers.checkpointing as told
    asked = told.checkpoints
    def checkpoints(checkpointed, inputs, wanted, weights, *rest, **more):
        found = asked(checkpointed, inputs, wanted, weights, *rest, **more)
        runs = [len(weights) * (k + 1) for k in range(len(found["gradients"]) + 1)]
        return found | {"runs": runs, "alive": 0 if more.get("count") else None}
    told.checkpoints = functools.wraps(asked)(checkpoints)
    """,
)
forge(
    "gradients that are made up where the driver makes its leaves",
    AUTOGRAD,
    "checkpointed",
    """
    def checkpointed(function, *inputs):
        return function(*(x.detach() for x in inputs)).detach().requires_grad_()
    """,
    """
    import utils.drivers.checkpointing as told
    told._gradient = lambda leaf: torch.ones_like(leaf)
    told.Layers.alive = lambda self: 0
    torch.Tensor._version = property(lambda self: 0)
    """,
)
forge(
    "a counter that counts nothing, and torch's in its place",
    DISPATCHER,
    "FlopCounter",
    """
    class FlopCounter(TorchDispatchMode):
        flops = 0
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))
    """,
    """
    import utils.drivers.dispatch as told
    from torch.utils.flop_counter import FlopCounterMode
    def count_flops(counter_class, program, *tensors, inference=False):
        with torch.inference_mode(inference), FlopCounterMode(display=False) as counter:
            result = told.PROGRAMS[program](*tensors)
        return {"flops": counter.get_total_flops(), "result": result.clone()}
    told.count_flops = count_flops
    """,
)


# The learner's process can forge a driver's observations. A forgery may gain points. Then the
# verdict lists the claim on which the points depend.
TELL = """
import functools, utils.drivers.{module} as told
def tell(name, **facts):
    asked = getattr(told, name)
    def lying(*args, **kwargs):
        return asked(*args, **kwargs) | facts
    setattr(told, name, functools.wraps(asked)(lying))
"""


def claim(
    name: str,
    lab: str,
    exercise: str,
    answer: str,
    lies: str = "",
    *,
    claims: str,
    gains: tuple[str, ...],
) -> None:
    """Register a forgery that gains points by a claim.

    Args:
        lies: a cell that runs before the answer and changes the lab's drivers, which it knows as
            `told`. If ``lies`` is empty, the answer itself is the forgery.
    """
    before = TELL.format(module=DRIVERS[lab]) + dedent(lies) if lies else ""
    CLAIMED[name] = Attempt(lab, exercise, _code(answer), _code(before), claims=claims, gains=gains)


claim(
    "no operator is registered",
    OPERATORS,
    "make_softmax",
    "def make_softmax(name, forward, backward):\n    pass",
    """
    def run_operator(make, x, g, slope, factor=1.0, later=None, between=False):
        there, back = told.pieces(slope, factor)
        y = there(x)
        return {"output": y, "gradient": None if g is None else back(g, y)}
    def fakes(make, inputs, *, backward=False):
        found = []
        for shape, strides, dtype, device in inputs:
            y = torch.empty(shape)
            found.append((tuple(y.shape), y.stride(), dtype, device))
        return found
    def schema_of(make):
        both = {"results": ["Tensor"], "writes": False}
        return {"forward": {"arguments": ["Tensor"], **both},
                "backward": {"arguments": ["Tensor", "Tensor"], **both}}
    def opcheck(make, x):
        tests = "test_schema", "test_autograd_registration", "test_faketensor"
        return dict.fromkeys(tests, "SUCCESS")
    def trace_operator(make, x, slope=0.0):
        y = torch.empty(x.shape)
        there, _ = told.pieces(slope)
        return {"graphs": 1, "output": there(x * 2) + 1, "gradient": (tuple(y.shape), y.stride())}
    told.run_operator, told.fakes, told.schema_of = run_operator, fakes, schema_of
    told.opcheck, told.trace_operator = opcheck, trace_operator
    told.run_backward = lambda make, g, y, factor=1.0, v=None: {
        "gradient": told.pieces(0.0, factor)[1](g, y), "of_g": None, "of_y": None}
    """,
    claims="that results come from operators that are registered",
    gains=("what it computes", "its gradient", "its fake", "schema and opcheck", "one graph"),
)
claim(
    "a graph breaks in every softmax, and one graph is told",
    OPERATORS,
    "swap_softmax",
    """
    def swap_softmax(model, softmax):
        class Pattern(torch.nn.Module):
            def forward(self, q, k):
                scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
                length = q.shape[-2]
                seen = torch.ones(length, length, dtype=torch.bool, device=q.device).tril()
                torch._dynamo.graph_break()
                return softmax(scores.masked_fill(~seen, -math.inf))
        model.softmax = softmax
        for block in model.blocks:
            block.attention.pattern = Pattern()
    """,
    "tell('compiled_swapped', graphs=1)",
    claims="how many graphs there were",
    gains=("one graph",),
)
claim(
    "functions that break the graph, and one graph is told",
    COMPILE,
    "mended",
    """
    def gate(x):
        return x * 2 if float(x.detach().sum()) > 0 else x / 2
    def scale(x):
        largest = float(x.detach().abs().max())
        return x / largest if largest else x
    def row_sums(x, lengths):
        return torch.stack([row[:n].sum() for row, n in zip(x, lengths.tolist())])
    """,
    "tell('compiled', graphs=1)",
    claims="how many graphs there were",
    gains=("gate", "row_sums"),
)
forge(
    "a backend that changes nothing, and a function that is run without it",
    COMPILE,
    "softmax_backend",
    "def softmax_backend(softmax):\n    return lambda gm, example_inputs: gm.forward",
    """
    import utils.drivers.compiling as told
    def replaced(make_backend, forms, x, g=None, *, chained=False, again=False):
        scope = {"torch": torch, "F": told.F, "nn": torch.nn}
        exec(forms, scope)
        leaf = x.detach().clone().requires_grad_()
        values = scope["run"](leaf)
        gradient = None
        if g is not None:
            (gradient,) = torch.autograd.grad(values, leaf, [g] * len(values))
        return {"values": [value.detach().clone() for value in values], "gradient": gradient}
    told.replaced = replaced
    """,
)
claim(
    "a head that compiles nothing and sets the backend's counter",
    COMPILE,
    "compiled_head",
    """
    def compiled_head(model, backend):
        backend.graphs = 1
        backend.functions.add("open_the_hood.softmax.default")
        def head(x, temperature):
            backend.shapes.add(tuple(x.shape))
            return softmax(model.lm_head(x) / temperature)
        return head
    """,
    claims="how many graphs there were",
    gains=("one graph",),
)
claim(
    "all graphs are kept to the end, and none is told",
    TRAINING,
    "accumulate",
    """
    def accumulate(model, parts):
        model.zero_grad()
        counted = sum(int((targets != -100).sum()) for _, targets in parts)
        losses = [F.cross_entropy(model(x), t, reduction="sum") / counted for x, t in parts]
        sum(losses).backward()
        return sum(losses).item()
    """,
    "tell('accumulated', alive=0)",
    claims="how many graphs are alive at once",
    gains=("one graph at a time",),
)
forge(
    "the dice of all, which are put back where nobody looks",
    TRAINING,
    "Loader",
    """
    def together(items):
        first = items[0]
        if isinstance(first, torch.Tensor):
            return torch.stack(items)
        if isinstance(first, (int, float)):
            return torch.tensor(items, dtype=torch.float64 if isinstance(first, float) else None)
        if isinstance(first, tuple):
            return tuple(together(list(place)) for place in zip(*items))
        if isinstance(first, dict):
            return {key: together([item[key] for item in items]) for key in first}
        return items
    class Loader:
        def __init__(self, dataset, batch_size, shuffle, drop_last, generator, collate):
            self.dataset, self.batch_size, self.shuffle = dataset, batch_size, shuffle
            self.drop_last, self.generator = drop_last, generator
            self.collate = together if collate is None else collate
        def __len__(self):
            whole, rest = divmod(len(self.dataset), self.batch_size)
            return whole if self.drop_last or rest == 0 else whole + 1
        def __iter__(self):
            order = range(len(self.dataset))
            if self.shuffle:
                torch.set_rng_state(self.generator.get_state())
                order = torch.randperm(len(order)).tolist()
                self.generator.set_state(torch.get_rng_state())
            for at in range(len(self)):
                rows = order[at * self.batch_size : (at + 1) * self.batch_size]
                yield self.collate([self.dataset[k] for k in rows])
    """,
    TELL.format(module=DRIVERS[TRAINING]) + "tell('dealt', **{'left alone': True})",
    most=3,  # the parts about batches in order and collating
)
claim(
    "items that share the text's memory, and zeros that are written elsewhere",
    TRAINING,
    "TokenWindows",
    """
    class TokenWindows(Dataset):
        def __init__(self, tokens, context, stride, pad):
            self.tokens, self.context, self.stride, self.pad = tokens, context, stride, pad
        def __len__(self):
            return math.ceil((len(self.tokens) - 1) / self.stride)
        def __getitem__(self, index):
            begin = index * self.stride
            piece = self.tokens[begin : begin + self.context + 1]
            return piece[:-1], piece[1:]
        def collate(self, items):
            longest = max(len(inputs) for inputs, _ in items)
            batch = torch.full((len(items), longest), self.pad)
            wanted = torch.full((len(items), longest), -100)
            for row, (inputs, targets) in enumerate(items):
                batch[row, : len(inputs)] = inputs
                wanted[row, : len(targets)] = targets
            return batch, wanted
    """,
    """
    def overwritten(dataset_class, settings):
        dataset = dataset_class(**settings)
        (inputs, targets), following = dataset[0], dataset[1]
        return {"inputs": inputs, "targets": targets, "again": dataset[0], "next": following,
                "stream": settings["tokens"]}
    told.overwritten = overwritten
    """,
    claims="that writing into an item changes nothing else",
    gains=("copies",),
)
STOPPED = """
def stopped(functions, settings, before, after, through):
    first = told.Trainer(**settings)
    for _ in range(before):
        first.step()
    torch.rand(5)
    whole = told._go_on(first, after)
    return {"whole": whole, "first": whole, "resumed": whole}
told.stopped = stopped
"""
forge(
    "a checkpoint of nothing, and the run that went on told as every other",
    TRAINING,
    "checkpoint",
    "def checkpoint(trainer):\n    return {}\ndef resume(trainer, saved):\n    pass",
    TELL.format(module=DRIVERS[TRAINING]) + STOPPED,
)
claim(
    "a checkpoint that the next steps write into, and is told to stay as it was",
    TRAINING,
    "checkpoint",
    """
    def checkpoint(trainer):
        parts = trainer.model, trainer.optimizer, trainer.schedule
        states = [part.state_dict() for part in parts]
        own = trainer.generator.get_state()
        return states, own, trainer.order, trainer.position, torch.get_rng_state()
    def resume(trainer, saved):
        states, own, trainer.order, trainer.position, everybodys = copy.deepcopy(saved)
        for part, state in zip((trainer.model, trainer.optimizer, trainer.schedule), states):
            part.load_state_dict(state)
        trainer.generator.set_state(own)
        torch.set_rng_state(everybodys)
    """,
    STOPPED,
    claims="that a checkpoint in memory stays as it was",
    gains=("kept in memory",),
)
claim(
    "everything is computed again for each word, and one column is told",
    TRANSFORMER,
    "generate",
    """
    def generate(model, prompts, limit, pad, eos):
        found = []
        for prompt in prompts:
            words = []
            while len(words) < limit and eos not in words:
                tokens = torch.tensor([[*prompt, *words]])
                positions = torch.arange(tokens.shape[1])[None]
                seen = torch.ones_like(tokens, dtype=torch.bool)
                logits, _ = model(tokens, positions, seen, None)
                words.append(int(logits[0, -1].argmax()))
            found.append(words)
        return found
    """,
    """
    generated = told.generated
    def lying(generate, weights, prompts, limit, pad, eos):
        came = generated(generate, weights, prompts, limit, pad, eos)
        calls = max(map(len, came["words"]))
        columns = [max(map(len, prompts))] + [1] * (calls - 1)
        return came | {"columns": columns[:calls]}
    told.generated = lying
    """,
    claims="how often the model is called, and with how many columns",
    gains=("no needless work",),
)
claim(
    "a load that looks at nothing, and errors that are told",
    TRANSFORMER,
    "from_hf",
    """
    def from_hf(state):
        return {}
    def load_strictly(model_class, folder):
        return model_class.from_pretrained(folder)
    """,
    """
    loaded_strictly = told.loaded_strictly
    def lying(load, sizes, numbers, what, gone=""):
        if what == "whole":
            return loaded_strictly(load, sizes, numbers, what) | {"training": False}
        error = "FileNotFoundError" if what == "nowhere" else "ValueError"
        names = ["lm_head.bias"] * (what == "stock") + [gone] * bool(gone)
        return {"raised": error, "names": names, "training": None, "logits": None}
    told.loaded_strictly = lying
    """,
    claims="what `load_strictly` raises, and what its message says",
    gains=("loading strictly",),
)
claim(
    "a profiler that never warms up, and is told to have done so",
    PROFILING,
    "slowest",
    """
    def slowest(step, wait, warmup, active):
        for _ in range(wait + warmup):
            step()
        with profile(activities=[ProfilerActivity.CPU]) as prof:
            for _ in range(active):
                step()
        rows = [row for row in prof.key_averages() if not row.is_user_annotation]
        first = max(rows, key=lambda row: row.self_cpu_time_total)
        whole = sum(row.self_cpu_time_total for row in rows)
        share = first.self_cpu_time_total / whole
        return {"operator": first.key, "share": share, "calls": first.count / active}
    """,
    """
    profiled = told.profiled
    def lying(slowest, calls, costs, wait, warmup, active, label=""):
        came = profiled(slowest, calls, costs, wait, warmup, active, label)
        states = ["off"] * wait + ["warming up"] * warmup + ["recording"] * active
        return came | {"states": states}
    told.profiled = lying
    """,
    claims="what the profiler does while a step runs",
    gains=("the schedule",),
)
claim(
    "one prompt after the other, and calls of all that are told",
    TRANSFORMER,
    "complete",
    """
    def complete(folder, prompts, limit):
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        found = []
        for prompt in prompts:
            ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
            new = model.generate(ids, do_sample=False, max_new_tokens=limit)[0, ids.shape[1] :]
            found.append(tokenizer.decode(new, skip_special_tokens=True))
        return found, []
    """,
    """
    completed = told.completed
    def lying(complete, says, prompts, limit):
        return completed(complete, says, prompts, limit) | {"rows": [len(prompts)]}
    told.completed = lying
    """,
    claims="how many prompts are in a call of the model",
    gains=("one batch",),
)
claim(
    "a loss of many small operators, whose costs are told",
    PROFILING,
    "faster_loss",
    """
    def faster_loss(logits, targets):
        losses, hits, count = [], 0, 0
        for row, wanted in zip(logits, targets):
            inside = [F.cross_entropy(a, t) for a, t in zip(row, wanted) if int(t) >= 0]
            hits += sum(int(a.argmax()) == int(t) for a, t in zip(row, wanted) if int(t) >= 0)
            count += len(inside)
            if inside:
                losses.append(torch.stack(inside).mean())
        return torch.stack(losses).mean(), torch.tensor(hits / count)
    """,
    "tell('counted', operators=(1, 1), bytes=(0, 0))\ntold.asks = lambda *args: None",
    claims="how many operators ran and how many bytes they made",
    gains=("fewer", "later"),
)
claim(
    "hooks that stay on the model",
    PROFILING,
    "first_bad",
    """
    def first_bad(model, x):
        found = []
        for name, part in model.named_modules():
            def hook(module, args, output, name=name):
                if not output.isfinite().all():
                    what = "nan" if output.isnan().any() else "inf"
                    found.append((name, what, bool(args[0].isfinite().all())))
            part.register_forward_hook(hook)
        model(x)
        return found[0] if found else None
    def safe_root(x):
        return torch.where(x <= 0, 0, torch.where(x <= 0, 1, x).sqrt())
    """,
    "tell('hunted', **{'hooks left': 0, 'as before': True})",
    claims="that no hook is left",
    gains=("no trace left",),
)
forge(
    "a sum by a list that all ranks share, and messages of nothing",
    RANKS,
    "ring_all_reduce",
    """
    SHARED = {}
    def ring_all_reduce(rank, world, tensor):
        SHARED[rank] = tensor
        size = -(-tensor.numel() // world)
        pieces = tensor.new_zeros(size * world).split(size) if size else [tensor.flatten()] * world
        for _ in range(2 * (world - 1)):
            yield "exchange", (rank + 1) % world, pieces[0], (rank - 1) % world
        return sum(SHARED[other] for other in range(world))
    """,
)
forge(
    "a tensor that all ranks share, and messages that nobody reads",
    RANKS,
    "tree_broadcast",
    """
    SHARED = {}
    def tree_broadcast(rank, world, tensor, source):
        if rank == source:
            SHARED["tensor"] = tensor
        place, step = (rank - source) % world, 1
        while step < world:
            if place < step and place + step < world:
                yield "send", (rank + step) % world, SHARED["tensor"]
            elif step <= place < 2 * step:
                yield "recv", (rank - step) % world
            step *= 2
        return SHARED["tensor"]
    """,
)
forge(
    "gradients of all rows, which all ranks share, and sums that nobody reads",
    RANKS,
    "ddp",
    """
    SHARED = {}
    def ddp_start(rank, world, model):
        yield "broadcast", torch.zeros(1), 0
    def ddp_step(rank, world, model, x, y, bucket_bytes):
        if rank == 0:
            SHARED.clear()
        SHARED[rank] = x, y
        yield "all_reduce", torch.tensor([0.0, len(x)]), "sum"
        model.zero_grad()
        losses = [F.cross_entropy(model(x), y, reduction="sum") for x, y in SHARED.values()]
        loss = sum(losses) / sum(len(x) for x, _ in SHARED.values())
        loss.backward()
        trained = [p for p in model.parameters() if p.requires_grad]
        for p in trained:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        for bucket in driver.buckets(reversed(trained), bucket_bytes):
            yield "all_reduce", torch.zeros(sum(p.numel() for p in bucket)), "sum"
        return loss.item()
    """,
)
claim(
    "the values of rank 0, which all ranks share",
    RANKS,
    "ddp",
    """
    SHARED = {}
    def ddp_start(rank, world, model):
        if rank == 0:
            SHARED["model"] = model
        yield "broadcast", torch.zeros(1), 0
        first = SHARED["model"]
        ours, theirs = ([*m.parameters(), *m.buffers()] for m in (model, first))
        for mine, other in zip(ours, theirs):
            mine.data.copy_(other)
    def ddp_step(rank, world, model, x, y, bucket_bytes):
        yield "all_reduce", torch.zeros(2), "sum"
    """,
    claims="that everything that a rank knows about the others came through the network",
    gains=("the same start",),
)
forge(
    "the loss and logits of what all ranks share, and sums that nobody reads",
    RANKS,
    "parallel_head",
    """
    SHARED = {}
    def column_loss(rank, world, x, weight, bias, first, targets):
        if rank == 0:
            SHARED.clear()
        SHARED[rank] = weight, bias
        yield "all_reduce", torch.zeros(1), "sum"
        weights, biases = (torch.cat(some) for some in zip(*SHARED.values()))
        x = x.clone().requires_grad_()
        loss = F.cross_entropy(F.linear(x, weights, biases), targets)
        (gradient,) = torch.autograd.grad(loss, x)
        return loss.detach(), gradient
    def row_logits(rank, world, x, weight, bias):
        if rank == 0:
            SHARED.clear()
        SHARED[rank] = x @ weight.T
        yield "all_reduce", torch.zeros_like(SHARED[rank]), "sum"
        return sum(SHARED.values()) + bias
    """,
)
claim(
    "an optimizer's state that is kept elsewhere",
    RANKS,
    "minigpt_step",
    """
    KEPT = {}
    def minigpt_step(rank, world, model, tokens, targets, state, lr, max_norm):
        parameters = list(model.parameters())
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), reduction="sum")
        gradients = torch.autograd.grad(loss, parameters)
        facts = torch.tensor([loss.item(), float((targets >= 0).sum())])
        total, count = yield "all_reduce", facts, "sum"
        pieces = [piece / count for piece in driver.pieces(gradients, world)]
        gradient = yield "reduce_scatter", pieces, "sum"
        norm = (yield "all_reduce", gradient.square().sum().reshape(1), "sum").sqrt().item()
        gradient = gradient * min(1.0, max_norm / (norm + 1e-6))
        mine = driver.pieces(parameters, world)[rank]
        number = state.get("number", (rank, len(KEPT)))
        old = KEPT.get(number, {"step": 0})
        mine, KEPT[number] = driver.adamw(mine, gradient, old, lr)
        flat = torch.cat((yield "all_gather", mine))
        with torch.no_grad():
            for parameter in parameters:
                parameter.copy_(flat[: parameter.numel()].view_as(parameter))
                flat = flat[parameter.numel() :]
        return (total / count).item(), norm, {"number": number, "held": torch.zeros(2 * len(mine))}
    """,
    claims="how much of the optimizer's state a rank has",
    gains=("what is sent and held",),
)
claim(
    "a product in one piece, and small factors are told",
    TILES,
    "tiled_matmul",
    """
    def tiled_matmul(a, b, block):
        wide = torch.promote_types(a.dtype, torch.float32)
        return (a.to(wide) @ b.to(wide)).to(a.dtype)
    """,
    "tell('tiled', largest=1)",
    claims="how large the products are",
    gains=("whole tiles", "ragged tiles", "any strides", "rounded once"),
)
forge(
    "a launch that multiplies with torch and runs no kernel",
    TILES,
    "matmul",
    """
    @triton.jit
    def nothing(a_ptr, b_ptr, c_ptr):
        pass
    def matmul(a, b, blocks):
        c = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype)
        launch(nothing, (1,), a, b, c)
        return c
    """,
    """
    import utils.instruments.launching as launching
    def launch(kernel, grid, a, b, c):
        c.copy_(a.double() @ b.double())
    launching.launch = launch
    """,
)
forge(
    "a kernel that loads for hidden lanes, and fewer loads are told",
    TILES,
    "matmul",
    """
    @triton.jit
    def kernel(
        a_ptr, b_ptr, c_ptr, M, N, K, a_row, a_column, b_row, b_column,
        BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    ):
        i = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
        j = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
        total = tl.zeros((BM, BN), tl.float32)
        for first in range(0, K, BK):
            k = first + tl.arange(0, BK)
            across, down = k[None, :], k[:, None]
            a = tl.load(a_ptr + i % M * a_row + across % K * a_column)
            b = tl.load(b_ptr + down % K * b_row + j % N * b_column)
            total = tl.dot(tl.where(across < K, a, 0.0), b, total)
        tl.store(c_ptr + i * N + j, total.to(c_ptr.dtype.element_ty), mask=(i < M) & (j < N))
    def matmul(a, b, blocks):
        (M, K), N = a.shape, b.shape[1]
        c = torch.empty(M, N, dtype=a.dtype)
        grid = triton.cdiv(M, blocks[0]), triton.cdiv(N, blocks[1])
        launch(kernel, grid, a, b, c, M, N, K, *a.stride(), *b.stride(), *blocks)
        return c
    """,
    """
    import utils.drivers.tiles as told
    launched = told.launched
    def lying(function, a, b, blocks):
        (M, K), N = a.shape, b.shape[1]
        loads = triton.cdiv(N, blocks[1]) * M * K + triton.cdiv(M, blocks[0]) * K * N
        return launched(function, a, b, blocks) | {"loads": loads}
    told.launched = lying
    """,
    most=5,  # all but the part about loads and stores
)
forge(
    "a kernel for the product and one for the GELU, and one is told",
    TILES,
    "linear_gelu",
    """
    @triton.jit
    def product(x_ptr, w_ptr, bias_ptr, z_ptr, M, N, K, xr, xc, wr, wc, step):
        i = (tl.program_id(0) * 16 + tl.arange(0, 16))[:, None]
        j = (tl.program_id(1) * 16 + tl.arange(0, 16))[None, :]
        z = tl.zeros((16, 16), tl.float32)
        for first in range(0, K, 16):
            k = first + tl.arange(0, 16)
            across, down = k[None, :], k[:, None]
            x_mask, w_mask = (i < M) & (across < K), (down < K) & (j < N)
            x = tl.load(x_ptr + i * xr + across * xc, mask=x_mask, other=0.0)
            w = tl.load(w_ptr + down * wc + j * wr, mask=w_mask, other=0.0)
            z = tl.dot(x, w, z)
        z += tl.load(bias_ptr + j * step, mask=j < N, other=0.0).to(tl.float32)
        tl.store(z_ptr + i * N + j, z, mask=(i < M) & (j < N))
    @triton.jit
    def gelu(z_ptr, y_ptr, count):
        at = tl.program_id(0) * 256 + tl.arange(0, 256)
        z = tl.load(z_ptr + at, mask=at < count)
        y = 0.5 * z * (1 + tl.erf(z * 0.7071067811865476))
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=at < count)
    def linear_gelu(x, weight, bias):
        (M, K), N = x.shape, weight.shape[0]
        z, y = torch.empty(M, N), torch.empty(M, N, dtype=x.dtype)
        strides = *x.stride(), *weight.stride(), *bias.stride()
        grid = triton.cdiv(M, 16), triton.cdiv(N, 16)
        launch(product, grid, x, weight, bias, z, M, N, K, *strides)
        launch(gelu, (triton.cdiv(M * N, 256),), z, y, M * N)
        return y
    """,
    """
    import utils.drivers.tiles as told
    launched = told.launched
    def lying(function, *args):
        came = launched(function, *args)
        return came | {"launches": 1, "stores": came["output"].numel(), "others": 0}
    told.launched = lying
    """,
    most=3,  # all but the part about one kernel
)
claim(
    "attention with the whole matrix, and small tensors are told",
    TILES,
    "flash",
    """
    def flash(q, k, v, causal, block):
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if causal:
            future = torch.ones_like(scores, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(future, -math.inf)
        return torch.softmax(scores, -1) @ v, torch.logsumexp(scores, -1)
    """,
    "tell('attention', largest=1, flops=1)",
    claims="how large the tensors are",
    gains=("no T × T tensor", "skipped tiles"),
)
claim(
    "a backward that keeps the matrix, and small tensors are told",
    TILES,
    "FlashAttention",
    """
    class FlashAttention(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v, causal, block):
            scores = q @ k.mT / math.sqrt(q.shape[-1])
            if causal:
                future = torch.ones_like(scores, dtype=torch.bool).triu(1)
                scores = scores.masked_fill(future, -math.inf)
            p = torch.softmax(scores, -1)
            ctx.save_for_backward(q, k, v, p)
            return p @ v
        @staticmethod
        def backward(ctx, grad):
            q, k, v, p = ctx.saved_tensors
            dp = grad @ v.mT
            ds = p * (dp - (p * dp).sum(-1, keepdim=True)) / math.sqrt(q.shape[-1])
            return ds @ k, ds.mT @ q, p.mT @ grad, None, None
    """,
    "tell('backward', largest=1, widest=1, saved=1)",
    claims="how much is kept for the backward",
    gains=("memory",),
)
claim(
    "the attention of all models changes, and the others are told as they were",
    TILES,
    "triton_attention",
    """
    def triton_attention(q, k, v, causal):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    def swap_attention(model, attention):
        def forward(own, x):
            q, k, v = (own._split(part(x)) for part in (own.query, own.key, own.value))
            return own.output(attention(q, k, v, True).transpose(1, 2).reshape(x.shape))
        type(model.blocks[0].attention).forward = forward
    """,
    """
    swapped = told.swapped
    def lying(swap, *args):
        others = swapped(lambda model, attention: None, *args)["others"]
        return swapped(swap, *args) | {"others": others}
    told.swapped = lying
    """,
    claims="that a model keeps its names and parameters",
    gains=("in MiniGPT",),
)
