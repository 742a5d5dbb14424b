"""Lab 04, exercise 5: Count while others compute"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hood.judge.checks.exercise import ByHand, Case, Check
from utils.drivers import dispatch
from utils.minigpt import MiniGPTConfig

from .shared import LISTENING

flop_counter = Check(
    "FlopCounter",
    parts={"products": 2, "the backward": 1, "inference mode": 1, "MiniGPT": 1},
    reads="Listening in",
    reads_by_part={"MiniGPT": "Counting, to the last operator"},
    by_hand=ByHand(
        because="torch's own counter does not count here: write the mode yourself",
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


COUNTED = "Too few FLOPs are counted.", "Too many FLOPs are counted.", "the FLOPs"


def _told(flops, right):
    """Whether too few or too many FLOPs are counted, and the count itself."""
    counted = isinstance(flops, (int, float))
    return counted and flops < right, counted and flops > right, flops


WITHOUT = (
    "in place",
    "made",
    "with keywords",
    "vectors",
    "a matrix and a vector",
)  # programs without such a product


@flop_counter.cases
def _(draw):
    def counted(part, program, *tensors, inference=False):
        right = dispatch.count_flops(FlopCounter, program, *tensors, inference=inference)["flops"]

        def play(subject):
            came = subject.drive("dispatch:count_flops", program, *tensors, inference=inference)
            return came["new"], *_told(came["flops"], right), came["result"]

        places = {
            "[0]": "`flops` of a new counter, before it sees any operator",
            **{f"[{1 + at}]": words for at, words in enumerate(COUNTED)},
            "[4]": "what the program returns",
        }
        without = ", which has no product of matrices" if program in WITHOUT else ""
        under = " under inference mode" if inference else ""
        shown = f"the program {program!r}{without}{under}"
        return Case(part, play, shown=shown, places=places)

    def by_two(*tensors):
        def play(subject):
            return subject.drive("dispatch:count_by_two", "two layers", *tensors)

        places = {"['first']": "the FLOPs of the first counter", "['second']": "the FLOPs of the second counter"}
        shown = "two counters, one after the other, each with the program 'two layers'"
        return Case("products", play, shown=shown, places=places)

    def of_minigpt(config, tokens, **how):
        right = dispatch.flops_of_minigpt(FlopCounter, config, tokens, **how)

        def play(subject):
            return _told(subject.drive("dispatch:flops_of_minigpt", config, tokens, **how), right)

        said = ", ".join(name for name, is_so in how.items() if is_so)
        shown = f"a MiniGPT{', ' if said else ''}{said}"
        places = {f"[{at}]": words for at, words in enumerate(COUNTED)}
        return Case("MiniGPT", play, shown=shown, places=places)

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
        inner = draw.tensor((a, 0)), draw.tensor((0, c)), draw.tensor((c, d))
        yield counted(part, "two layers", *inner, inference=inference)
        whole = tuple(tensor.round().to(torch.int64) for tensor in matrices)
        yield counted(part, "two layers", *whole, inference=inference)
        for program in WITHOUT:
            yield counted(part, program, draw.tensor((a, b)), inference=inference)
        double = tuple(draw.tensor(s, torch.float64) for s in ((2, a, b), (c, b), (c,)))
        yield counted(part, "linear", *double, inference=inference)
    yield by_two(*matrices)
    yield counted("the backward", "there and back", draw.tensor((a, b)), draw.tensor((c, b)))
    yield counted("the backward", "there and back", draw.tensor((2, a, b)), draw.tensor((c, b)))
    yield counted("the backward", "there and back", draw.tensor((1, b)), draw.tensor((1, b)))

    config = MiniGPTConfig(
        vocab_size=draw.integer(11, 30), d_model=8, n_heads=draw.choice((2, 4)),
        n_layers=draw.integer(1, 3), d_ff=draw.integer(5, 20), context=9,
    )  # fmt: skip
    tokens = torch.zeros(draw.integer(2, 3), draw.integer(2, 9), dtype=torch.int64)
    for how in ({}, {"backward": True}, {"inference": True}):
        yield of_minigpt(config, tokens, **how)
