"""Lab 04, exercise 5: Count while others compute"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from utils.checks.exercise import ByHand, Case, Check, edited
from utils.minigpt import MiniGPTConfig

from .shared import LISTENING

flop_counter = Check(
    "FlopCounter",
    parts={"products": 2, "the backward": 1, "inference mode": 1, "MiniGPT": 1},
    reads="Listening in",
    by_hand=ByHand(
        because="torch's own counter does not count here: the mode is yours to write",
        allow_names=LISTENING,
        forbid_names=frozenset(
            {"FlopCounterMode", "flop_counter", "flop_registry", "sdpa_flop_count", "mm_flop"}
        ),
    ),
)


@flop_counter.reference
class FlopCounter(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        with self:
            result = func.decompose(*args, **kwargs)
        if result is not NotImplemented:
            return result
        name = func.overloadpacket.__name__
        if name in {"mm", "bmm"}:
            self.count(args[0], args[1])
        elif name in {"addmm", "baddbmm"}:
            self.count(args[1], args[2])
        return func(*args, **kwargs)

    def count(self, a, b):
        self.flops += 2 * a.numel() * b.shape[-1]


WITHOUT = ("in place", "made", "with keywords", "vectors")  # programs without such a product


@flop_counter.cases
def _(draw):
    def counted(part, program, *tensors, inference=False):
        def play(subject):
            came = subject.drive("dispatch:count_flops", program, *tensors, inference=inference)
            return came["new"], came["flops"], came["result"]

        places = {
            "[0]": "`flops` of a new counter, before it hears anything",
            "[1]": "the FLOPs",
            "[2]": "what the program returns",
        }
        without = ", which has no product of matrices" if program in WITHOUT else ""
        under = " under inference mode" if inference else ""
        shown = f"the program {program!r}{without}{under}"
        return Case(part, play, shown=shown, places=places)

    def of_minigpt(config, tokens, **how):
        def play(subject):
            return subject.drive("dispatch:flops_of_minigpt", config, tokens, **how)

        said = ", ".join(name for name, is_so in how.items() if is_so)
        shown = f"the FLOPs of a MiniGPT{', ' if said else ''}{said}"
        return Case("MiniGPT", play, shown=shown)

    a, b, c, d = draw.shape(4)
    matrices = draw.tensor((a, b)), draw.tensor((b, c)), draw.tensor((c, d))
    batches = draw.tensor((d, a, b)), draw.tensor((d, c, b)), draw.tensor((d, c, a))
    heads = tuple(draw.tensor(s) for s in ((2, 3, a, b), (2, 3, c, b), (2, 3, c, d)))
    layer = draw.tensor((a, b)), draw.tensor((c, b)), draw.tensor((c,))
    wide = draw.tensor((2, a, b)), draw.tensor((c, b)), draw.tensor((c,))
    summed = draw.tensor((d, a, c)), draw.tensor((d, a, b)), draw.tensor((d, b, c))
    line = draw.tensor((1, b)), draw.tensor((c, b)), draw.tensor((c,))
    for inference in (False, True):
        part = "inference mode" if inference else "products"
        for program, tensors in (
            ("two layers", matrices),
            ("attention", batches),
            ("attention", heads),
            ("linear", layer),
            ("linear", wide),
            ("linear", line),
            ("a sum of products", summed),
        ):
            yield counted(part, program, *tensors, inference=inference)
        stretched = matrices[0], draw.tensor((d, b, c)), matrices[2]
        yield counted(part, "two layers", *stretched, inference=inference)
        both = draw.tensor((2, 1, a, b)), draw.tensor((3, b, c)), matrices[2]
        yield counted(part, "two layers", *both, inference=inference)
        empty = draw.tensor((0, b)), draw.tensor((b, c)), draw.tensor((c, d))
        yield counted(part, "two layers", *empty, inference=inference)
        for program in WITHOUT:
            yield counted(part, program, draw.tensor((a, b)), inference=inference)
        double = tuple(draw.tensor(s, torch.float64) for s in ((2, a, b), (c, b), (c,)))
        yield counted(part, "linear", *double, inference=inference)
    yield counted("the backward", "there and back", draw.tensor((a, b)), draw.tensor((c, b)))
    yield counted("the backward", "there and back", draw.tensor((2, a, b)), draw.tensor((c, b)))
    yield counted("the backward", "there and back", draw.tensor((1, b)), draw.tensor((1, b)))

    config = MiniGPTConfig(
        vocab_size=draw.integer(11, 30), d_model=8, n_heads=draw.choice((2, 4)),
        n_layers=draw.integer(1, 3), d_ff=draw.integer(5, 20), context=9,
    )  # fmt: skip
    tokens = torch.zeros(draw.integer(1, 3), draw.integer(2, 9), dtype=torch.int64)
    for how in ({}, {"backward": True}, {"inference": True}):
        yield of_minigpt(config, tokens, **how)


flop_counter.misconception(
    "the sum taken for a matrix",
    "of `addmm` the first two arguments are multiplied; the first is the sum's.",
    earns=1,
)(edited(FlopCounter, ("self.count(args[1], args[2])", "self.count(args[0], args[1])")))
flop_counter.misconception(
    "products with a vector, too",
    "products of a matrix with a vector, or of two vectors, are counted.",
    earns=2,
)(
    edited(
        FlopCounter,
        ("return func(*args, **kwargs)",
         "if name in {'mv', 'dot'}:\n            self.flops += 2 * args[0].numel()\n"
         "        return func(*args, **kwargs)"),
    )
)  # fmt: skip
flop_counter.misconception(
    "one for each multiply-add",
    "a multiplication and its addition are counted as one.",
    earns=0,
)(edited(FlopCounter, ("2 * a.numel()", "a.numel()")))
flop_counter.misconception(
    "batches not counted",
    "of a batch of products one is counted, or none.",
    earns=1,
)(
    edited(
        FlopCounter, ("2 * a.numel() * b.shape[-1]", "2 * a.shape[-2] * a.shape[-1] * b.shape[-1]")
    )
)
flop_counter.misconception(
    "attention missed",
    "products of batches (`bmm`) are not counted.",
    earns=1,
)(edited(FlopCounter, ("{'mm', 'bmm'}", "{'mm'}")))
flop_counter.misconception(
    "addmm missed",
    "products with a sum (`addmm`) are not counted.",
    earns=1,
)(
    edited(
        FlopCounter,
        ("{'addmm', 'baddbmm'}", "{'baddbmm'}"),
    )
)
flop_counter.misconception(
    "the first of a batch",
    "of a batch of products (`bmm`) one is counted.",
    earns=1,
)(
    edited(
        FlopCounter,
        ("self.count(args[0], args[1])",
         "self.count(args[0][:1] if name == 'bmm' else args[0], args[1])"),
    )
)  # fmt: skip
flop_counter.misconception(
    "baddbmm missed",
    "products of batches with a sum (`baddbmm`) are not counted.",
    earns=2,
)(edited(FlopCounter, ("{'addmm', 'baddbmm'}", "{'addmm'}")))
flop_counter.misconception(
    "only linear opened",
    "under inference mode the products inside `matmul` are not counted.",
    earns=3,
)(
    edited(
        FlopCounter,
        ("result = func.decompose(*args, **kwargs)",
         "result = func.decompose(*args, **kwargs) if 'linear' in str(func) else NotImplemented"),
    )
)  # fmt: skip
flop_counter.misconception(
    "keywords dropped",
    "an operator is called without its keyword arguments.",
    earns=1,
)(edited(FlopCounter, ("return func(*args, **kwargs)", "return func(*args)")))
flop_counter.misconception(
    "the inner size twice",
    "of (M, K) and (K, N), M and K are multiplied, and K once more: N is left out.",
    earns=0,
)(edited(FlopCounter, ("b.shape[-1]", "b.shape[-2]")))
flop_counter.misconception(
    "composites not opened",
    "under inference mode `linear` and `matmul` arrive whole, and the products inside them are not "
    "counted.",
    earns=3,
)(
    edited(
        FlopCounter,
        ("with self:\n            result = func.decompose(*args, **kwargs)\n        if result is not NotImplemented:\n            return result\n        ", ""),
    )
)  # fmt: skip
flop_counter.misconception(
    "composites opened, and called",
    "a composite is run twice, so what it writes in place is written twice.",
    earns=4,
)(
    edited(
        FlopCounter, ("if result is not NotImplemented:\n            return result\n        ", "")
    )
)
flop_counter.misconception(
    "every sum counted, too",
    "`addmm`'s sum is counted, which is too small to count.",
    earns=1,
)(
    edited(
        FlopCounter,
        (
            "self.count(args[1], args[2])",
            "self.count(args[1], args[2])\n            self.flops += args[1].shape[0] * args[2].shape[-1]",
        ),
    )
)
flop_counter.misconception(
    "gradients on only",
    "what runs while no gradient is recorded is not counted, and the backward is such.",
    earns=2,
)(edited(FlopCounter, ("self.flops += 2", "self.flops += torch.is_grad_enabled() * 2")))


@flop_counter.alternate("each composite by its own rule")
class FlopCounterByRule(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = func.overloadpacket.__name__
        if name in {"mm", "bmm", "matmul", "linear"}:
            inner = args[0].shape[-1]
        elif name in {"addmm", "baddbmm"}:
            inner = args[1].shape[-1]
        else:
            inner = 0
        if inner:
            self.flops += 2 * result.numel() * inner
        return result


@flop_counter.alternate("a table of functions")
class FlopCounterOfFunctions(TorchDispatchMode):
    def __init__(self):
        self.flops = 0
        super().__init__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.overloadpacket.__name__ in {"linear", "matmul"}:
            with self:
                return func.decompose(*args)

        def product(a, b):
            *batch, m, k = a.shape
            return 2 * torch.Size(batch).numel() * m * k * b.shape[-1]

        counts = {
            torch.ops.aten.mm.default: lambda a, b: product(a, b),
            torch.ops.aten.bmm.default: lambda a, b: product(a, b),
            torch.ops.aten.addmm.default: lambda c, a, b: product(a, b),
            torch.ops.aten.baddbmm.default: lambda c, a, b: product(a, b),
        }
        if func in counts:
            self.flops += counts[func](*args)
        return func(*args, **kwargs)


flop_counter.equivalent(
    ("super().__init__()", "pass"),
    ("super().__init__()", "super()"),
    because="a mode works without it; it keeps what nested modes of torch itself ask for",
)
flop_counter.equivalent(
    ("kwargs = kwargs or {}", "pass"),
    ("kwargs = kwargs or {}", "kwargs = kwargs"),
    because="torch hands a dict over even where it promises None as well",
)
