"""Lab 05, exercise 5: An operator of your own"""

import torch

from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution

make_softmax = Check(
    "make_softmax",
    parts={
        "what it computes": 1,
        "its gradient": 1,
        "its fake": 1,
        "schema and opcheck": 1,
        "one graph": 1,
    },
    reads="What PyTorch asks of an operator",
)


def _register(name, make_forward, make_backward, vjp):
    """Register two operators, in the style of strings."""
    torch.library.define(name, "(Tensor x) -> Tensor")
    torch.library.define(f"{name}_backward", "(Tensor g, Tensor y) -> Tensor")
    torch.library.impl(name, "CPU")(make_forward)
    torch.library.impl(f"{name}_backward", "CPU")(make_backward)

    def like(*tensors):
        last = tensors[-1]
        return torch.empty(last.shape, dtype=last.dtype, device=last.device)

    torch.library.register_fake(name)(like)
    torch.library.register_fake(f"{name}_backward")(like)

    def keep(ctx, inputs, output):
        ctx.save_for_backward(output)

    def back(ctx, g):
        namespace, _, short = f"{name}_backward".partition("::")
        return getattr(getattr(torch.ops, namespace), short)(g, *ctx.saved_tensors)

    torch.library.register_autograd(name, back, setup_context=keep)
    if vjp is not None:
        torch.library.register_autograd(
            f"{name}_backward",
            vjp,
            setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        )


@make_softmax.reference
def _(name, forward, backward):
    _register(name, forward, backward, None)


@make_softmax.cases
def _(draw):
    computes, gradient, fake, schema, graph = make_softmax.parts
    slope = draw.choice((-0.5, 0.25, 0.75))

    def asked(
        part, shape, layout="contiguous", dtype=torch.float32, upstream="contiguous", by=1, between=False
    ):
        x, g = draw.tensor(shape, dtype, layout), draw.tensor(shape, dtype, upstream) * by

        def play(subject):
            if part == computes:
                out = subject.drive("custom_op:run_operator", x, None, slope)["output"]
                return out, out.stride()
            grad = subject.drive(
                "custom_op:run_operator", x, g, slope, 1.0 + slope, between=between
            )["gradient"]
            return grad is not None, grad

        places = {"[0]": "what comes out", "[1]": "the result's strides"}
        if part == gradient:
            places = {"[0]": "No gradient gets back through the operator.", "[1]": "the gradient"}
        words = f"{str(dtype).removeprefix('torch.')} {shape}, {layout}"
        if by != 1:
            words += f", the gradient of the result about {by:.0e}"
        words += ", with another call before the way back" * between
        return Case(part, play, shown=words, places=places)

    def faked(inputs, backward):
        def play(subject):
            return subject.drive("custom_op:fakes", inputs, backward=backward)

        places = {}
        for at, (shape, strides, dtype, device) in enumerate(inputs):
            words = (
                f"of {str(dtype).removeprefix('torch.')} {shape}, strides {strides}, on {device}"
            )
            for place, name in enumerate(("shape", "strides", "dtype", "device")):
                places[f"[{at}][{place}]"] = f"the {name} for an input {words}"
        shown = f"the fake of the {'backward' if backward else 'operator'}"
        return Case(fake, play, shown=shown, places=places)

    yield asked(computes, draw.shape(1))
    yield asked(computes, draw.shape(2))
    yield asked(computes, draw.shape(3), "transposed", torch.float64)
    yield asked(gradient, draw.shape(2), upstream="transposed")
    yield asked(gradient, draw.shape(2, 3, 6), between=True)
    # a gradient beyond float32's range
    yield asked(gradient, draw.shape(3), "transposed", torch.float64, by=1e60)

    shape = draw.shape(2, 3, 9)
    x, g = draw.tensor(shape), draw.tensor(shape)
    y = torch.softmax(x, -1)

    def first_of_two(subject):
        return subject.drive("custom_op:run_operator", x, None, slope, later=slope + 1)["output"]

    words = "what the operator of one pair gives, when another pair has been registered since"
    shown = "two operators, the first one called"
    yield Case(computes, first_of_two, shown=shown, places={"": words})

    def by_itself(subject):
        return subject.drive("custom_op:run_backward", g, y, 1.0 + slope)["gradient"]

    words = "what the backward's operator gives for g and y"
    yield Case(gradient, by_itself, shown="the backward's operator, called with g and y", places={"": words})

    rows, columns = draw.shape(2, 3, 9)
    inputs = [
        ((rows, columns), (columns, 1), torch.float32, "cpu"),
        ((rows, columns), (1, rows), torch.float64, "cpu"),
        ((rows, columns), (2 * columns, 2), torch.float32, "cpu"),
        ((2, rows, columns), (1, 2 * columns, 2), torch.float16, "cuda"),
    ]
    for backward in (False, True):
        yield faked(inputs, backward)

    x = draw.tensor((2, 3), layout="transposed")

    def said(subject):
        schemas = subject.drive("custom_op:schema_of")
        told = subject.drive("custom_op:opcheck", x)
        # What a fake says is asked above; here it would cost the same mistake a second point.
        return schemas, {test: one for test, one in told.items() if test != "test_faketensor"}

    places = {}
    for kind, whose in (("forward", "operator"), ("backward", "backward's operator")):
        places[f"[0]['{kind}']['arguments']"] = f"what the schema of the {whose} says it takes"
        places[f"[0]['{kind}']['results']"] = f"what the schema of the {whose} says it returns"
        places[f"[0]['{kind}']['writes']"] = (
            f"The schema of the {whose} says that it writes into an argument."
        )
    for test in ("test_schema", "test_autograd_registration"):
        places[f"[1]['{test}']"] = f"opcheck's {test} does not succeed."
    yield Case(schema, said, shown="a transposed input", places=places)

    def traced(subject):
        came = subject.drive("custom_op:trace_operator", x, slope)
        return came["graphs"], came["gradient"], came["output"]

    places = {
        "[0]": "The compiler does not get one graph.",
        "[1]": "the gradient's shape and strides, as a fake step has them",
        "[2]": "what comes out",
    }
    yield Case(graph, traced, shown="traced, there and back", places=places)


_make = lab_solution(__name__, "make_softmax")


def _misconception(name, explanation, earns, *edits):
    make_softmax.misconception(name, explanation, earns=earns)(edited(_make, *edits))


_FAKE = "torch.empty(x.shape, dtype=x.dtype, device=x.device)"
_misconception(
    "no fake",
    "a tracer that asks what comes out is told nothing: the operator has no fake.",
    3,
    ("@there.register_fake\n    def _(x):", "def _(x):"),
)
_misconception(
    "the fake of the backward forgotten",
    "the backward's operator has no fake, so what traces a training step can't go back through it.",
    3,
    ("@back.register_fake\n    def _(g, y):", "def _(g, y):"),
)
_misconception(
    "the fake lies as its input does",
    "a tracer is told the input's strides, and the kernel's result is contiguous.",
    4,
    (_FAKE, "torch.empty_like(x)"),
)
_misconception(
    "a fake in float32",
    "a tracer is told the default dtype, whatever the input's.",
    4,
    (_FAKE, "torch.empty(x.shape, device=x.device)"),
)
_misconception(
    "a fake on the CPU",
    "a tracer is told that the result is on the CPU, wherever the input is.",
    4,
    (_FAKE, "torch.empty(x.shape, dtype=x.dtype)"),
)
_misconception(
    "the fake computes",
    "the kernel is launched to find out what comes out, and a fake tensor has no numbers.",
    3,
    (_FAKE, "forward(x)"),
)
_misconception(
    "a kernel in the backward",
    "autograd's formula launches the kernel itself, which no tracer can follow.",
    4,
    ("return back(g, y)", "return backward(g, y)"),
)
_misconception(
    "the input saved for the output",
    "the backward is given x where it expects y.",
    4,
    ("ctx.save_for_backward(output)", "ctx.save_for_backward(inputs[0])"),
)
_misconception(
    "no gradient",
    "no formula is registered, so a gradient stops at the operator.",
    3,
    ("there.register_autograd(vjp, setup_context=keep)", "pass"),
)
_misconception(
    "the last output alone",
    "the output is kept in one place for all calls, so that a second call replaces what the first one's way back needs.",
    4,
    ("def keep(ctx, inputs, output):\n        ctx.save_for_backward(output)", "kept = []\n\n    def keep(ctx, inputs, output):\n        kept[:] = [output]"),
    ("y, = ctx.saved_tensors", "y, = kept"),
)
_misconception(
    "g and y exchanged",
    "the backward is given the output for the gradient, and the gradient for the output.",
    4,
    ("return back(g, y)", "return back(y, g)"),
)
_misconception(
    "the backward's fake lies as its input does",
    "a tracer is told that the gradient lies as g does, and the kernel's result is contiguous.",
    4,
    ("torch.empty(y.shape, dtype=y.dtype, device=y.device)", "torch.empty_like(g)"),
)
_misconception(
    "the backward's fake lies as y does",
    "a tracer is told that the gradient lies as y does, and the kernel's result is contiguous.",
    4,
    ("torch.empty(y.shape, dtype=y.dtype, device=y.device)", "torch.empty_like(y)"),
)
_misconception(
    "y before g",
    "the backward's operator takes its first tensor for y, and its second for g.",
    4,
    ("def back(g: torch.Tensor, y: torch.Tensor)", "def back(y: torch.Tensor, g: torch.Tensor)"),
    ("@back.register_fake\n    def _(g, y):", "@back.register_fake\n    def _(y, g):"),
    ("return back(g, y)", "return back(y, g)"),
)
_misconception(
    "a gradient of its own",
    "the gradient is that of a softmax, and not what the backward that is handed over makes of it.",
    4,
    ("return back(g, y)", "return y * (g - (g * y).sum(-1, keepdim=True))"),
)
_misconception(
    "a softmax of its own",
    "what comes out is the softmax of x, and not what the forward that is handed over makes of it.",
    2,
    ("return forward(x)", "return torch.softmax(x, -1).contiguous()"),
)
_misconception(
    "softmax twice",
    "the kernel runs on its own result.",
    2,
    ("return forward(x)", "return forward(forward(x))"),
)
_misconception(
    "said to write",
    "the schema says that the operator writes into its input.",
    0,
    ("custom_op(name, mutates_args=())", "custom_op(name, mutates_args=('x',))"),
)


@make_softmax.alternate("in strings, with torch.library.define")
def _(name, forward, backward):
    torch.library.define(name, "(Tensor x) -> Tensor")
    torch.library.define(name + "_backward", "(Tensor g, Tensor y) -> Tensor")
    torch.library.impl(name, "CPU")(lambda x: forward(x))
    torch.library.impl(name + "_backward", "CPU")(lambda g, y: backward(g, y))
    torch.library.register_fake(name)(
        lambda x: torch.empty_like(x, memory_format=torch.contiguous_format)
    )
    torch.library.register_fake(name + "_backward")(
        lambda g, y: torch.empty_like(y, memory_format=torch.contiguous_format)
    )
    space, short = name.split("::")

    def keep(ctx, inputs, output):
        ctx.y = output

    def formula(ctx, g):
        return getattr(getattr(torch.ops, space), short + "_backward")(g, ctx.y)

    torch.library.register_autograd(name, formula, setup_context=keep)


@make_softmax.alternate("functions handed to custom_op, with a schema")
def _(name, forward, backward):
    def shaped(*tensors):
        return tensors[0].new_empty(tensors[-1].shape)

    op = torch.library.custom_op(
        name, forward, mutates_args=(), device_types="cpu", schema="(Tensor x) -> Tensor"
    )
    second = torch.library.custom_op(
        name + "_backward",
        backward,
        mutates_args=(),
        device_types="cpu",
        schema="(Tensor g, Tensor y) -> Tensor",
    )
    op.register_fake(shaped)
    second.register_fake(shaped)
    op.register_autograd(
        lambda ctx, g: second(g, ctx.saved_tensors[0]),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output),
    )


make_softmax.equivalent(
    ("torch.empty(y.shape", "torch.empty(g.shape"),
    ("dtype=y.dtype", "dtype=g.dtype"),
    ("device=y.device", "device=g.device"),
    ("tensors[0].new_empty", "tensors[-1].new_empty"),
    ("tensors[-1].shape", "tensors[-0].shape"),
    because="autograd hands over a gradient of the output's shape, dtype and device",
)
make_softmax.equivalent(
    ("device_types='cpu', ", ""),
    because="without a list the function is the kernel of every device, the CPU among them",
)
make_softmax.equivalent(
    (", schema='(Tensor x) -> Tensor'", ""),
    (", schema='(Tensor g, Tensor y) -> Tensor'", ""),
    because="the driver's functions have annotations, from which the same schema is read",
)
make_softmax.equivalent(
    ("ctx.saved_tensors[0]", "ctx.saved_tensors[-1]"),
    because="one tensor is saved",
)
