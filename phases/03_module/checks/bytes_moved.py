"""Lab 03, exercise 11: Byte by byte"""

import torch

from hood.judge.checks.exercise import Check, case
from utils.drivers.module_spec import assemble

bytes_moved = Check(
    "bytes_moved",
    parts={"parameters": 1, "buffers": 1, "gradients": 1},
    reads="What a move moves",
)


@bytes_moved.reference
def _bytes_moved(plan):
    model = assemble(plan)
    moved, seen = 0, set()
    for module in model.modules():
        for parameter in module._parameters.values():
            if parameter is None or id(parameter) in seen:
                continue
            seen.add(id(parameter))
            moved += parameter.numel() * parameter.element_size()
            if parameter.grad is not None:
                moved += parameter.grad.numel() * parameter.grad.element_size()
        for buffer in module._buffers.values():
            if buffer is not None:
                moved += buffer.numel() * buffer.element_size()
    return moved


@bytes_moved.cases
def _(draw):
    def tensor(kind, *more, dtype=torch.float32):
        return [kind, draw.tensor(draw.shape(2), dtype), *more]

    def graded(dtype=torch.float32, of=None, layout="contiguous"):
        shape = draw.shape(2)
        return ["parameter", draw.tensor(shape, dtype), draw.tensor(shape, of or dtype, layout)]

    def count(part, shown, plan):
        return case(part, plan, shown=shown, places={"": "the number of bytes is wrong."})

    words, width, wide = draw.sample(range(5, 30), 3)
    head = {"weight": ["same", "embed.weight"], "bias": ["parameter", draw.tensor((words,))]}
    layers = {"embed": ["Embedding", words, width], "up": {"in": ["Linear", width, wide]}}
    half, double = (tensor("parameter", dtype=t) for t in (torch.float16, torch.float64))
    wide_storage = ["parameter", draw.tensor((4, 6), layout="sliced")]
    part = "parameters"
    yield count(part, "a few layers", {**layers, "norm": ["LayerNorm", width]})
    yield count(part, "a head tied to the embedding", {**layers, "head": head})
    mixed = {**layers, "low": half, "high": double, "still": tensor("frozen")}
    yield count(part, "float16, float64 and frozen parameters", mixed)
    views = {"part": wide_storage, "notes": tensor("plain")}
    yield count(part, "a parameter in a larger storage, and a plain tensor", views)
    part = "buffers"
    mixed = {**layers, "seen": tensor("buffer"), "n": tensor("buffer", dtype=torch.int64)}
    yield count(part, "float32 and int64 buffers", mixed)
    unsaved = {"norm": ["BatchNorm1d", width], "scratch": tensor("buffer", False)}
    yield count(part, "a BatchNorm, and a buffer that isn't saved", unsaved)
    view = {"mask": ["buffer", draw.tensor((3, 5), layout="sliced")], "w": tensor("parameter")}
    yield count(part, "a buffer that is a part of a storage", view)
    part = "gradients"
    some = {**layers, "scale": graded(), "shift": tensor("parameter")}
    yield count(part, "a parameter with a gradient, and others without", some)
    grads = {"first": {"w": graded()}, "second": {"w": ["same", "first.w"], "v": graded()}}
    yield count(part, "a tied parameter with a gradient", grads)
    wider = {"w": graded(torch.bfloat16, of=torch.float32)}
    yield count(part, "a bfloat16 parameter with a float32 gradient", wider)
    yield count(part, "a gradient that is a part of a storage", {"w": graded(layout="sliced")})
    part = "buffers"
    inner = {"scale": tensor("parameter"), "mask": tensor("buffer")}
    twice = {"first": {"in": inner}, "second": {"in": ["same", "first.in"]}, "w": half}
    yield count(part, "a module in two places, with buffers", twice)

    part = "parameters"
    repeated = draw.tensor((1, 5)).expand(4, 5)
    yield count(part, "an expanded parameter", {"w": ["parameter", repeated]})
    few = {"none": ["parameter", torch.zeros(0, 3)], "one": ["parameter", torch.ones(())]}
    yield count(part, "a parameter with one element, and one without elements", few)
    yield count(part, "a module without tensors", {"inner": {}})
    for dtype in (torch.complex64, torch.bfloat16):
        yield count(part, str(dtype).removeprefix("torch."), {"w": tensor("parameter", dtype=dtype)})
    part = "buffers"
    kinds = (torch.bool, torch.uint8, torch.int16, torch.int32, torch.float64, torch.complex64)
    for dtype in kinds:
        plan = {"b": tensor("buffer", dtype=dtype), "n": ["buffer", torch.zeros((), dtype=dtype)]}
        yield count(part, str(dtype).removeprefix("torch."), plan)
    equal = torch.ones(3)
    yield count(part, "two buffers of equal values", {"a": ["buffer", equal], "b": ["buffer", equal]})
    part = "gradients"
    single = {"w": ["parameter", torch.ones(()), torch.ones(())], "v": tensor("parameter")}
    yield count(part, "a gradient of one element", single)
