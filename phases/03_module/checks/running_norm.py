"""Lab 03, exercise 8: The model that forgets"""

import torch

from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.lab_solution import lab_solution

from .shared import SUMS, in_eval, places_of_pull, pull, rough

MEMORY = "saved, and read in eval"

running_norm = Check(
    "RunningNorm",
    parts={"saved, and read in eval": 1, "a buffer without a graph": 1},
    reads="What is saved but not trained",
    tolerance=SUMS,
)
running_norm.reference(lab_solution(__name__, "RunningNorm"))


@running_norm.cases
def _(draw):
    def seen(made, batches):
        return [made.call("__call__", x).detach() for x in batches]

    def kind(momentum, batches):
        if momentum is None:
            return "the default momentum"
        rows = ", a batch of one row" if len(batches[0]) == 1 else ""
        return f"a momentum of {momentum:g}{rows}"

    def saved(momentum, batches):
        def play(subject):
            given = () if momentum is None else (momentum,)
            made, again = (subject(batches[0].shape[1], *given) for _ in range(2))
            outputs = seen(made, batches)
            state = dict(made.call("state_dict"))
            again.call("load_state_dict", state)
            return outputs, state, again.get("mean").detach(), again.get("variance").detach()

        places = {
            "[0]": "the output in training",
            "[1]": "what is saved",
            "[2]": "the mean that was loaded",
            "[3]": "the variance that was loaded",
        }
        return Case(MEMORY, play, shown=kind(momentum, batches), places=places)

    def evaluated(momentum, batches, x):
        def play(subject):
            made = subject(x.shape[1], momentum)
            seen(made, batches)
            before = memory(made)
            in_eval(made)
            outputs = seen(made, (x, x))
            after = memory(made)
            return same(before, after), outputs, *after

        places = {
            "[0]": "eval changes `mean` or `variance`.",
            "[1]": "the output in eval",
            "[2]": "the mean after eval",
            "[3]": "the variance after eval",
        }
        return Case(MEMORY, play, shown=kind(momentum, batches), places=places)

    def memory(made):
        return made.get("mean").detach().clone(), made.get("variance").detach().clone()

    def same(before, after):  # NaN is the same as NaN
        return all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(before, after, strict=True))

    def apart(x, upstream):
        def play(subject):
            made = subject(x.shape[1])
            y = made.call("__call__", x)
            unit = x.std(0) / y.std(0)  # a wrong scale of y costs points elsewhere
            backward = pull(made, upstream, x, "x")
            grads = {n: rough(unit * g, 0.01) for n, g in backward["gradients"].items()}
            return {
                "registered": made.call("registered"),
                "graph": made.get("mean").requires_grad or made.get("variance").requires_grad,
                "backward": {**backward, "gradients": grads},
                "in eval": pull(in_eval(made), upstream, x, "x")["reached"],
            }

        places = {
            "['registered']['parameters']": (
                "the layer has a parameter that an optimizer would train, but nothing in this "
                "layer should be trained."
            ),
            "['registered']['buffers']": "the registered buffers are not exactly `mean` and `variance`.",
            "['graph']": "`mean` or `variance` has a graph.",
            **places_of_pull("['backward']", x="x"),
            "['in eval']": "in eval no gradient reaches x.",
        }
        return Case("a buffer without a graph", play, places=places)

    def before_it_learns(x):
        def play(subject):
            made = in_eval(subject(x.shape[1]))
            mean, variance = before = memory(made)
            y = made.call("__call__", x)
            begun = bool((mean == 0).all() and (variance == 1).all())
            return begun, same(before, memory(made)), y

        places = {
            "[0]": "a new layer doesn't begin with a mean of 0 and a variance of 1.",
            "[1]": "eval changes `mean` or `variance`.",
            "[2]": "the output in eval",
        }
        return Case(MEMORY, play, shown="a fresh layer", places=places)

    yield before_it_learns(draw.tensor((4, 3)))
    # special cases come later, because the message is about the first case that fails
    n, width = draw.sample(range(3, 9), 2)
    momentum = draw.choice((0.1, 0.2, 0.3))
    batches = [draw.tensor((n, width)) + k for k in range(3)]
    yield saved(None, batches)
    yield evaluated(momentum, batches, draw.tensor((n, width)))
    # the second channel is constant, and the third is so small that ε matters
    level = draw.tensor((4, 3)) * torch.tensor([1.0, 0.0, 0.01])
    up = torch.tensor([1.0, 1.0, 0.0])
    for momentum in (0.0, 1.0):
        yield saved(momentum, [level + up, level - up])
        yield evaluated(momentum, [level + up, level - up], draw.tensor((4, 3)) / 8)
    yield saved(0.25, [draw.tensor((1, 3)), level])
    yield evaluated(0.25, [draw.tensor((1, 3)), level], draw.tensor((1, 3)))
    for shape in ((n, width), (5, 4)):
        yield apart(draw.tensor(shape).requires_grad_(), draw.tensor(shape))
