"""Lab 03, exercise 7: The model that forgets"""

import torch
from torch import nn

from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution

from .shared import SUMS, in_eval, places_of_pull, pull, rough

running_norm = Check(
    "RunningNorm",
    parts={"saved and restored": 1, "eval": 1, "a buffer without a graph": 1},
    reads="What is saved but not trained",
    tolerance=SUMS,
)


_RunningNorm = running_norm.reference(lab_solution(__name__, "RunningNorm"))


@running_norm.cases
def _(draw):
    def seen(made, batches):
        return [made.call("__call__", x).detach() for x in batches]

    def kind(momentum, batches):
        if momentum is None:
            return "the momentum that is the default"
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
        return Case("saved and restored", play, shown=kind(momentum, batches), places=places)

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
            "[0]": "eval changes the memory.",
            "[1]": "the output in eval",
            "[2]": "the mean after eval",
            "[3]": "the variance after eval",
        }
        return Case("eval", play, shown=kind(momentum, batches), places=places)

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
            "['registered']['parameters']": "an optimizer is given something, and nothing in this layer is trained.",
            "['registered']['buffers']": "the buffers that are registered are not `mean` and `variance` and no more.",
            "['graph']": "the memory carries a graph.",
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
            "[0]": "the memory doesn't begin with a mean of 0 and a variance of 1.",
            "[1]": "eval changes the memory.",
            "[2]": "the output in eval",
        }
        return Case("eval", play, shown="a fresh one", places=places)

    yield before_it_learns(draw.tensor((4, 3)))
    # what is special comes later, since the first case that fails is told
    n, width = draw.sample(range(3, 9), 2)
    momentum = draw.choice((0.1, 0.2, 0.3))
    batches = [draw.tensor((n, width)) + k for k in range(3)]
    yield saved(None, batches)
    yield evaluated(momentum, batches, draw.tensor((n, width)))
    # the second channel is constant, and in the third ε shows
    level = draw.tensor((4, 3)) * torch.tensor([1.0, 0.0, 0.01])
    up = torch.tensor([1.0, 1.0, 0.0])
    for momentum in (0.0, 1.0):
        yield saved(momentum, [level + up, level - up])
        yield evaluated(momentum, [level + up, level - up], draw.tensor((4, 3)) / 8)
    yield saved(0.25, [draw.tensor((1, 3)), level])
    yield evaluated(0.25, [draw.tensor((1, 3)), level], draw.tensor((1, 3)))
    for shape in ((n, width), (5, 4)):
        yield apart(draw.tensor(shape).requires_grad_(), draw.tensor(shape))


running_norm.misconception(
    "plain attributes",
    "the memory is not registered, as ordinary attributes are not: it is not saved, and a move "
    "leaves it behind.",
    earns=1,
)(
    edited(
        _RunningNorm,
        ("self.register_buffer('mean', torch.zeros(width))", "self.mean = torch.zeros(width)"),
        ("self.register_buffer('variance', torch.ones(width))",
         "self.variance = torch.ones(width)"),
    )
)  # fmt: skip
running_norm.misconception(
    "left as it was",
    "the memory is still made of ordinary attributes: it is not saved, a move leaves it behind, and "
    "it carries the graph of every batch there was.",
    earns=1,
)(
    edited(
        _RunningNorm,
        ("self.register_buffer('mean', torch.zeros(width))", "self.mean = torch.zeros(width)"),
        ("self.register_buffer('variance', torch.ones(width))",
         "self.variance = torch.ones(width)"),
        ("with torch.no_grad():", "if True:"),
        ("self.mean +=", "self.mean = self.mean +"),
        ("self.variance +=", "self.variance = self.variance +"),
    )
)  # fmt: skip
running_norm.misconception(
    "parameters for buffers",
    "the memory is made of Parameters, which an optimizer would change.",
    earns=2,
)(
    edited(
        _RunningNorm,
        ("self.register_buffer('mean', torch.zeros(width))",
         "self.mean = nn.Parameter(torch.zeros(width))"),
        ("self.register_buffer('variance', torch.ones(width))",
         "self.variance = nn.Parameter(torch.ones(width))"),
    )
)  # fmt: skip
running_norm.misconception(
    "frozen parameters for buffers",
    "the memory is made of Parameters that require no gradient: they are counted as parameters, and "
    "given to optimizers, all the same.",
    earns=2,
)(
    edited(
        _RunningNorm,
        ("self.register_buffer('mean', torch.zeros(width))",
         "self.mean = nn.Parameter(torch.zeros(width), requires_grad=False)"),
        ("self.register_buffer('variance', torch.ones(width))",
         "self.variance = nn.Parameter(torch.ones(width), requires_grad=False)"),
    )
)  # fmt: skip
running_norm.misconception(
    "buffers that are not saved",
    "the memory is not saved: ordinary attributes are not, nor are buffers with `persistent=False`.",
    earns=2,
)(
    edited(
        _RunningNorm,
        ("torch.zeros(width))", "torch.zeros(width), persistent=False)"),
        ("torch.ones(width))", "torch.ones(width), persistent=False)"),
    )
)
running_norm.misconception(
    "the batch in eval, too", "eval normalises by the batch, and remembers it.", earns=2
)(edited(_RunningNorm, ("if self.training:", "if True:")))
running_norm.misconception(
    "learning in eval", "eval uses what was remembered, and goes on remembering.", earns=2
)(
    edited(
        _RunningNorm,
        ("mean, variance = (self.mean, self.variance)\n",
         "mean, variance = self.mean.clone(), self.variance.clone()\n"),
        ("if self.training:\n            mean, variance = (x.mean(0), x.var(0, correction=0))\n",
         "batch = x.mean(0), x.var(0, correction=0)\n        if True:\n"),
        ("self.mean += self.momentum * (mean - self.mean)",
         "self.mean += self.momentum * (batch[0] - self.mean)"),
        ("self.variance += self.momentum * (variance - self.variance)",
         "self.variance += self.momentum * (batch[1] - self.variance)\n"
         "        if self.training:\n            mean, variance = batch"),
    )
)  # fmt: skip
running_norm.misconception(
    "a memory with a graph",
    "autograd records the update of the memory, which so holds on to the graph of a batch, or of "
    "every batch there was.",
    earns=2,
)(
    edited(
        _RunningNorm,
        ("with torch.no_grad():", "if True:"),
        ("self.mean +=", "self.mean = self.mean +"),
        ("self.variance +=", "self.variance = self.variance +"),
    )
)
running_norm.misconception(
    "momentum the other way round",
    "the momentum was taken as the share of the old; in PyTorch's norms it is that of the new.",
    earns=1,
)(
    edited(
        _RunningNorm,
        ("self.momentum * (mean - self.mean)", "(1 - self.momentum) * (mean - self.mean)"),
        ("self.momentum * (variance - self.variance)",
         "(1 - self.momentum) * (variance - self.variance)"),
    )
)  # fmt: skip
running_norm.misconception(
    "variance divided by n - 1",
    "the variance of the batch is the sample's, divided by n - 1; the broken layer divided by n.",
    earns=1,
)(edited(_RunningNorm, ("x.var(0, correction=0)", "x.var(0)")))
running_norm.misconception(
    "a memory divided by n - 1",
    "batches are normalised with a variance divided by n, and remembered with one divided by n - 1. "
    "So does nn.BatchNorm1d; the broken layer divided by n in both.",
    earns=1,
)(edited(_RunningNorm, ("(variance - self.variance)", "(x.var(0) - self.variance)")))
running_norm.misconception(
    "a memory divided by n - 1, but for one row",
    "batches are normalised with a variance divided by n, and remembered with one divided by n - 1, "
    "where there are two rows or more; the broken layer divided by n in both.",
    earns=1,
)(
    edited(
        _RunningNorm,
        ("(variance - self.variance)",
         "((x.var(0) if len(x) > 1 else variance) - self.variance)"),
    )
)  # fmt: skip
running_norm.misconception(
    "deviations remembered",
    "the root of the batch's variance, its deviation, is remembered as the variance.",
    earns=1,
)(edited(_RunningNorm, ("(variance - self.variance)", "(variance.sqrt() - self.variance)")))
running_norm.misconception(
    "the first batch as it is",
    "the first batch is remembered whole, whatever the momentum.",
    earns=1,
)(
    edited(
        _RunningNorm,
        ("with torch.no_grad():",
         "share = self.momentum if self.mean.any() else 1.0\n            with torch.no_grad():"),
        ("self.momentum * (mean - self.mean)", "share * (mean - self.mean)"),
        ("self.momentum * (variance - self.variance)", "share * (variance - self.variance)"),
    )
)  # fmt: skip
running_norm.misconception(
    "momentum fixed",
    "the momentum is 0.1 whatever was asked for.",
    earns=1,
)(edited(_RunningNorm, ("self.momentum = momentum", "self.momentum = 0.1")))
running_norm.misconception(
    "eps outside of the root",
    "ε was added to the deviation, and not to the variance: the two differ where that is small.",
    earns=1,
)(edited(_RunningNorm, ("torch.sqrt(variance + 1e-05)", "(torch.sqrt(variance) + 1e-05)")))
running_norm.misconception(
    "the memory in training",
    "training normalises by what is remembered, this batch included, and not by the batch alone.",
    earns=1,
)(
    edited(
        _RunningNorm,
        ("return (x - mean) / torch.sqrt(variance + 1e-05)",
         "return (x - self.mean) / torch.sqrt(self.variance + 1e-05)"),
    )
)  # fmt: skip
running_norm.misconception(
    "a momentum of 0 for none",
    "a momentum of 0 was taken for none at all, and 0.1 in its place.",
    earns=1,
)(edited(_RunningNorm, ("self.momentum = momentum", "self.momentum = momentum or 0.1")))
running_norm.misconception(
    "statistics for constants",
    "the batch's mean and variance were computed without a graph, or cut off from it: autograd takes "
    "them for constants, and the gradient of x lacks what flows through them.",
    earns=2,
)(
    edited(
        _RunningNorm,
        ("(x.mean(0), x.var(0, correction=0))",
         "(x.mean(0).detach(), x.var(0, correction=0).detach())"),
    )
)  # fmt: skip
running_norm.misconception(
    "the variance for a constant",
    "the batch's variance was cut off from the graph, and the gradient of x lacks what flows "
    "through it.",
    earns=2,
)(edited(_RunningNorm, ("x.var(0, correction=0)", "x.var(0, correction=0).detach()")))
running_norm.misconception(
    "x cut off in the output",
    "the output reads x past autograd: its gradient comes by way of the mean and the variance alone.",
    earns=2,
)(edited(_RunningNorm, ("return (x - mean)", "return (x.detach() - mean)")))
running_norm.misconception(
    "the output cut off",
    "the output has no graph, so that nothing before this layer is trained.",
    earns=2,
)(
    edited(
        _RunningNorm,
        ("return (x - mean) / torch.sqrt(variance + 1e-05)",
         "return ((x - mean) / torch.sqrt(variance + 1e-05)).detach()"),
    )
)  # fmt: skip


@running_norm.alternate("buffers assigned anew")
class _AssigningRunningNorm(nn.Module):
    def __init__(self, width, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        for name, value in (("mean", 0.0), ("variance", 1.0)):
            self.register_buffer(name, torch.full((width,), value))

    def forward(self, x):
        if not self.training:
            return (x - self.mean) * torch.rsqrt(self.variance + 1e-5)
        mean = x.mean(0)
        variance = (x - mean).square().mean(0)
        self.mean = torch.lerp(self.mean, mean.detach(), self.momentum)
        self.variance = torch.lerp(self.variance, variance.detach(), self.momentum)
        return (x - mean) * torch.rsqrt(variance + 1e-5)

    def registered(self):
        parameters = sorted(name for name, _ in self.named_parameters())
        return {"parameters": parameters, "buffers": sorted(n for n, _ in self.named_buffers())}


running_norm.equivalent(
    ("return (x - mean) / torch.sqrt(variance + 1e-05)",
     "return ((x - mean) / torch.sqrt(variance + 1e-05)).float()"),
    ("return (x - self.mean) * torch.rsqrt(self.variance + 1e-05)",
     "return ((x - self.mean) * torch.rsqrt(self.variance + 1e-05)).float()"),
    ("return (x - mean) * torch.rsqrt(variance + 1e-05)",
     "return ((x - mean) * torch.rsqrt(variance + 1e-05)).float()"),
    because="the lab asks for nothing but float32 here",
)  # fmt: skip
running_norm.equivalent(
    ("(x - mean).square()", "(mean - x).square()"),
    because="a square is the same whichever is taken from the other",
)
running_norm.equivalent(
    ("('mean', 0.0), ('variance', 1.0)", "('variance', 1.0), ('mean', 0.0)"),
    because="in a state the names count, and not their order",
)
