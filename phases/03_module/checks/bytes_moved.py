"""Lab 03, exercise 10: Byte by byte"""

import torch

from utils.checks.exercise import Check, case, edited
from utils.drivers.module_spec import assemble

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

    def graded(dtype=torch.float32, of=None, layout="contiguous"):
        shape = draw.shape(2)
        return ["parameter", draw.tensor(shape, dtype), draw.tensor(shape, of or dtype, layout)]

    def count(part, shown, plan):
        return case(part, plan, shown=shown, places={"": "the wrong number of bytes."})

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
    yield count(part, "a parameter that is a part of a storage, a plain tensor", views)
    part = "buffers"
    mixed = {**layers, "seen": tensor("buffer"), "n": tensor("buffer", dtype=torch.int64)}
    yield count(part, "float32 and int64 buffers", mixed)
    unsaved = {"norm": ["BatchNorm1d", width], "scratch": tensor("buffer", False)}
    yield count(part, "a BatchNorm, and a buffer that isn't saved", unsaved)
    view = {"mask": ["buffer", draw.tensor((3, 5), layout="sliced")], "w": tensor("parameter")}
    yield count(part, "a buffer that is a part of a storage", view)
    part = "gradients"
    some = {**layers, "scale": graded(), "shift": tensor("parameter")}
    yield count(part, "a parameter with a gradient, and some without", some)
    grads = {"first": {"w": graded()}, "second": {"w": ["same", "first.w"], "v": graded()}}
    yield count(part, "a tied parameter with a gradient", grads)
    wider = {"w": graded(torch.bfloat16, of=torch.float32)}
    yield count(part, "a bfloat16 parameter with a float32 gradient", wider)
    yield count(part, "a gradient that is a part of a storage", {"w": graded(layout="sliced")})
    part = "a buffer in two places"
    mask = {"mask": ["same", "first.mask"]}
    shared = {"first": {"mask": tensor("buffer")}, "second": mask, "third": {"w": half}}
    yield count(part, "a buffer in two modules", shared)
    names = {"in": {"mask": tensor("buffer"), "again": ["same", "in.mask"]}, "w": half}
    yield count(part, "a buffer under two names of one module", names)
    inner = {"scale": tensor("parameter"), "mask": tensor("buffer")}
    twice = {"first": {"in": inner}, "second": {"in": ["same", "first.in"]}, "w": half}
    yield count(part, "a module in two places, with buffers", twice)

    part = "parameters"
    repeated = draw.tensor((1, 5)).expand(4, 5)
    yield count(part, "an expanded parameter", {"w": ["parameter", repeated]})
    few = {"none": ["parameter", torch.zeros(0, 3)], "one": ["parameter", torch.ones(())]}
    yield count(part, "parameters of one element, and of none", few)
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

bytes_moved.misconception(
    "tied parameters twice", "a parameter with two names was counted under each of them.", earns=2
)(edited(_bytes_moved, ("seen.add(id(parameter))", "pass")))
bytes_moved.misconception(
    "buffers forgotten", "buffers were left out; they move as well.", earns=2
)(edited(_bytes_moved, ("if buffer is not None:", "if False:")))
bytes_moved.misconception(
    "a gradient forgotten", "the gradients that parameters have move with them.", earns=3
)(edited(_bytes_moved, ("if parameter.grad is not None:", "if False:")))
bytes_moved.misconception(
    "the gradient of a tied parameter twice",
    "a tied parameter was counted once, and its gradient under each of its names.",
    earns=3,
)(
    edited(
        _bytes_moved,
        ("if parameter is None or id(parameter) in seen:\n                continue",
         "if parameter is None:\n                continue\n"
         "            if id(parameter) in seen:\n"
         "                grad = parameter.grad\n"
         "                moved += 0 if grad is None else grad.numel() * grad.element_size()\n"
         "                continue"),
    )
)  # fmt: skip
bytes_moved.misconception(
    "a gradient as large as its parameter",
    "a gradient was taken to have its parameter's bytes; its dtype may be another.",
    earns=3,
)(
    edited(
        _bytes_moved,
        ("parameter.grad.numel() * parameter.grad.element_size()", "parameter.nbytes"),
    )
)
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
    "four bytes for everything", "every element was taken for a float32.", earns=0
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
    "whole storages of parameters",
    "storages were counted whole, of which a parameter may be a part.",
    earns=3,
)(
    edited(
        _bytes_moved,
        ("parameter.numel() * parameter.element_size()", "parameter.untyped_storage().nbytes()"),
    )
)
bytes_moved.misconception(
    "whole storages of buffers",
    "storages were counted whole, of which a buffer may be a part.",
    earns=3,
)(
    edited(
        _bytes_moved,
        ("buffer.numel() * buffer.element_size()", "buffer.untyped_storage().nbytes()"),
    )
)
bytes_moved.misconception(
    "whole storages of gradients",
    "storages were counted whole, of which a gradient may be a part.",
    earns=3,
)(
    edited(
        _bytes_moved,
        ("parameter.grad.numel() * parameter.grad.element_size()",
         "parameter.grad.untyped_storage().nbytes()"),
    )
)  # fmt: skip
bytes_moved.misconception(
    "whole storages",
    "storages were counted whole, of which a tensor may be a part.",
    earns=1,
)(
    edited(
        _bytes_moved,
        ("parameter.numel() * parameter.element_size()", "parameter.untyped_storage().nbytes()"),
        ("parameter.grad.numel() * parameter.grad.element_size()",
         "parameter.grad.untyped_storage().nbytes()"),
        ("buffer.numel() * buffer.element_size()", "buffer.untyped_storage().nbytes()"),
    )
)  # fmt: skip


@bytes_moved.misconception(
    "what becomes float64",
    "the copies of `.to(torch.float64)` were counted, and it copies no integers and nothing that "
    "is float64 already.",
    earns=2,
)
def _(plan):
    model = assemble(plan)
    copied = []

    def move(tensor):
        if tensor.is_floating_point() and tensor.dtype is not torch.float64:
            copied.append(tensor.nbytes)
            return tensor.to(torch.float64)
        return tensor

    model._apply(move)
    return sum(copied)


@bytes_moved.misconception(
    "a module in two places twice",
    "the buffers of a module that stands in two places were counted at each; there is one module, "
    "and when the walk comes to it again, they have moved.",
    earns=3,
)
def _(plan):
    model = assemble(plan)
    moved = [buffer for _, buffer in model.named_buffers(remove_duplicate=False)]
    for parameter in model.parameters():
        moved.append(parameter)
        if parameter.grad is not None:
            moved.append(parameter.grad)
    return sum(tensor.nbytes for tensor in moved)


@bytes_moved.misconception(
    "what is saved",
    "the bytes are those of `state_dict`: it lacks gradients and buffers that aren't saved, and "
    "names tied parameters twice.",
    earns=0,
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


@bytes_moved.alternate("the modules' own buffers, module by module")
def _(plan):
    model = assemble(plan)
    total = 0
    for module in model.modules():
        own = module.named_buffers(recurse=False, remove_duplicate=False)
        total += sum(buffer.nbytes for _, buffer in own)
    for parameter in model.parameters():
        total += parameter.nbytes + (0 if parameter.grad is None else parameter.grad.nbytes)
    return total


bytes_moved.equivalent(
    ("return tensor", "return tensor.float()"),
    because="what is complex128 already was counted, and stays as large as it was: nothing counts it "
    "again",
    of="watch the move",
)
