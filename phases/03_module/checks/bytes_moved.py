"""Lab 03, exercise 10: Byte by byte"""

import torch

from utils.checks import Check, case, edited
from utils.plans import assemble

bytes_moved = Check(
    "bytes_moved",
    parts={"parameters": 1, "buffers": 1, "gradients": 1, "a buffer in two places": 1},
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

    def graded(dtype=torch.float32):
        shape = draw.shape(2)
        return ["parameter", draw.tensor(shape, dtype), draw.tensor(shape, dtype)]

    for _ in range(2):
        words, width, wide = draw.sample(range(5, 30), 3)
        head = {"weight": ["same", "embed.weight"], "bias": ["parameter", draw.tensor((words,))]}
        layers = {"embed": ["Embedding", words, width], "up": {"in": ["Linear", width, wide]}}
        half, double = (tensor("parameter", dtype=t) for t in (torch.float16, torch.float64))
        wide_storage = ["parameter", draw.tensor((4, 6), layout="sliced")]
        part = "parameters"
        yield case(part, {**layers, "norm": ["LayerNorm", width]})
        yield case(part, {**layers, "head": head})
        yield case(part, {**layers, "low": half, "high": double, "still": tensor("frozen")})
        yield case(part, {"part": wide_storage, "notes": tensor("plain")})
        part = "buffers"
        yield case(
            part, {**layers, "seen": tensor("buffer"), "n": tensor("buffer", dtype=torch.int64)}
        )
        yield case(part, {"norm": ["BatchNorm1d", width], "scratch": tensor("buffer", False)})
        yield case("gradients", {**layers, "scale": graded(), "shift": tensor("parameter")})
        grads = {"first": {"w": graded()}, "second": {"w": ["same", "first.w"], "v": graded()}}
        yield case("gradients", grads)
        mask = {"mask": ["same", "first.mask"]}
        shared = {"first": {"mask": tensor("buffer")}, "second": mask, "third": {"w": half}}
        yield case("a buffer in two places", shared)


bytes_moved.misconception(
    "tied parameters twice", "a parameter with two names was counted under each of them.", earns=2
)(edited(_bytes_moved, ("seen.add(id(parameter))", "pass")))
bytes_moved.misconception(
    "buffers forgotten", "only parameters were counted; buffers move as well.", earns=2
)(edited(_bytes_moved, ("if buffer is not None:", "if False:")))
bytes_moved.misconception(
    "a gradient forgotten", "the gradients that parameters have move with them.", earns=3
)(edited(_bytes_moved, ("if parameter.grad is not None:", "if False:")))
bytes_moved.misconception(
    "a shared buffer once",
    "a buffer in two places was counted once, as `model.buffers()` lists it; a move copies it at "
    "each place.",
    earns=3,
)(
    edited(
        _bytes_moved,
        ("if buffer is not None:", "if buffer is not None and id(buffer) not in seen:\n"
         "                seen.add(id(buffer))"),
    )
)  # fmt: skip
bytes_moved.misconception(
    "elements for bytes", "elements were counted, and not the bytes that each of them takes.", earns=0
)(
    edited(
        _bytes_moved,
        ("moved += parameter.numel() * parameter.element_size()", "moved += parameter.numel()"),
        ("moved += parameter.grad.numel() * parameter.grad.element_size()",
         "moved += parameter.grad.numel()"),
        ("moved += buffer.numel() * buffer.element_size()", "moved += buffer.numel()"),
    )
)  # fmt: skip
bytes_moved.misconception(
    "four bytes for everything", "every element was taken for a float32.", earns=1
)(
    edited(
        _bytes_moved,
        ("parameter.numel() * parameter.element_size()", "parameter.numel() * 4"),
        ("buffer.numel() * buffer.element_size()", "buffer.numel() * 4"),
    )
)
bytes_moved.misconception(
    "only what is trained", "parameters that require no gradient were left behind.", earns=3
)(
    edited(
        _bytes_moved,
        ("if parameter is None or id(parameter) in seen:",
         "if parameter is None or id(parameter) in seen or (not parameter.requires_grad):"),
    )
)  # fmt: skip
bytes_moved.misconception(
    "whole storages", "storages were counted whole, of which a parameter may be a part.", earns=3
)(
    edited(
        _bytes_moved,
        ("parameter.numel() * parameter.element_size()", "parameter.untyped_storage().nbytes()"),
    )
)


@bytes_moved.misconception(
    "what is saved",
    "`state_dict` was summed up: it lacks gradients and buffers that aren't saved, and names tied "
    "parameters twice.",
    earns=1,
)
def _(plan):
    model = assemble(plan)
    return sum(t.numel() * t.element_size() for t in model.state_dict().values())


@bytes_moved.alternate("watch the move")
def _(plan):
    model = assemble(plan)
    copied = []

    def move(tensor):
        if tensor.dtype is torch.complex128:
            return tensor
        copied.append(tensor.numel() * tensor.element_size())
        return tensor.to(torch.complex128)

    model._apply(move)
    return sum(copied)


@bytes_moved.alternate("names without duplicates, and with")
def _(plan):
    model = assemble(plan)
    total = sum(b.nbytes for _, b in model.named_buffers(remove_duplicate=False))
    for parameter in model.parameters():
        total += parameter.nbytes + (0 if parameter.grad is None else parameter.grad.nbytes)
    return total
