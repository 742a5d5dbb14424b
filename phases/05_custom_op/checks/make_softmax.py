"""Lab 05, exercise 5: An operator of your own"""

import torch

from hood.judge.checks.exercise import Case, Check

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
    reads_by_part={
        "its gradient": "How to go back",
        "its fake": "What comes out",
        "schema and opcheck": "Proofs, and what each does not see",
    },
)


def _register(name, make_forward, make_backward, vjp):
    """Register two operators, with schemas in strings."""
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
        part,
        shape,
        layout="contiguous",
        dtype=torch.float32,
        upstream="contiguous",
        by=1,
        between=False,
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

        places = {"[0]": "the result", "[1]": "the result's strides"}
        if part == gradient:
            places = {"[0]": "No gradient passes back through the operator.", "[1]": "the gradient"}
        words = f"{str(dtype).removeprefix('torch.')} {shape}, {layout}"
        if by != 1:
            words += f", incoming gradients of about {by:.0e}"
        words += ", with another call before the backward" * between
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
                places[f"[{at}][{place}]"] = f"the {name} of the fake result for an input {words}"
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

    words = "the result of the first operator, after a second pair was registered"
    shown = "two operators, and a call of the first operator"
    yield Case(computes, first_of_two, shown=shown, places={"": words})

    def by_itself(subject):
        return subject.drive("custom_op:run_backward", g, y, 1.0 + slope)["gradient"]

    words = "the result of the backward's operator for g and y"
    yield Case(
        gradient,
        by_itself,
        shown="the backward's operator, called with g and y",
        places={"": words},
    )

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
        # Fakes are tested above. If they were tested here, too, the same mistake would cost a
        # second point.
        return schemas, {test: one for test, one in told.items() if test != "test_faketensor"}

    places = {}
    for kind, whose in (("forward", "operator"), ("backward", "backward's operator")):
        places[f"[0]['{kind}']['arguments']"] = f"the arguments in the schema of the {whose}"
        places[f"[0]['{kind}']['results']"] = f"the results in the schema of the {whose}"
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
        "[0]": "The compiler should get exactly one graph.",
        "[1]": "the shape and the strides of the gradient, in a step on fake tensors",
        "[2]": "the result",
    }
    yield Case(graph, traced, shown="traced, forward and backward", places=places)
