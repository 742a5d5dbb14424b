"""Lab 03, exercise 6: The loss that won't fall"""

import torch
from torch import nn

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check

stack = Check(
    "Stack",
    parts={"what is registered": 1, "what training changes": 1},
    reads="The loss that won't fall",
    tolerance=Tolerance(
        1e-3, 1e-4, "five steps of descent, each with sums that are added in any order"
    ),
)


@stack.reference
class _Stack(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return x * self.gain

    def fit(self, x, y, steps):
        losses = []
        for _ in range(steps):
            loss = (self(x) - y).square().mean()
            self.zero_grad()
            loss.backward()
            with torch.no_grad():
                for parameter in self.parameters():
                    if parameter.grad is not None:
                        parameter -= 0.1 * parameter.grad
            losses.append(loss.item())
        return losses


@stack.cases
def _(draw):
    def registered(width, depth):
        def play(subject):
            made = subject(width, depth)
            saved = made.call("state_dict")
            begun = [as_begun(t, width) for name, t in saved.items() if name != "gain"]
            if width > 20:
                begun += [both_signs(t) for t in saved.values() if t.dim() == 2]
            shapes = {name: torch.zeros_like(tensor) for name, tensor in saved.items()}
            return shapes, made.get("gain").detach(), all(begun)

        places = {
            "[0]": "what is saved",
            "[0]['gain']": "the gain",
            "[1]": "the fresh gain is not made of ones.",
            "[2]": "the fresh layers aren't as nn.Linear makes them.",
        }
        return Case("what is registered", play, places=places)

    def trained(x, y, state, depth):
        upstream = draw.tensor(x.shape)

        def play(subject):
            made = subject(x.shape[1], depth)
            made.call("load_state_dict", state)
            found = made.gradients(upstream, x)
            grads = {"x": found["arguments"][0], **found["parameters"]}
            reached = {n: isinstance(grads.get(n), torch.Tensor) for n in ("x", *state)}
            grads = {n: grads[n] for n in reached if reached[n]}
            losses = made.call("fit", x, y, 5)
            flag = made.get("gain").requires_grad
            return found["output"], reached, grads, losses, dict(made.call("state_dict")), flag

        places = {
            "[0]": "the output before training",
            "[1]['x']": "no gradient reaches x.",
            "[1]['gain']": "the gain is not a parameter, or no gradient reaches it.",
            "[1]": "a layer's weight or bias is not a parameter, or no gradient reaches it.",
            "[2]['x']": "the gradient of x",
            "[2]['gain']": "the gradient of the gain",
            "[2]": "the gradient of a layer",
            "[3]": "`fit` gives other losses, though output and gradients are right at first.",
            "[4]": "what is saved after training",
            "[5]": "the gain requires no gradient.",
        }
        return Case("what training changes", play, shown=f"a depth of {depth}", places=places)

    def as_begun(tensor, width):
        """Whether a tensor is a fresh weight or bias of nn.Linear: within nn.Linear's bound, and
        not all near 0.

        A single number is near 0 once in a thousand times, so for one or two numbers only 0 fails.
        """
        largest = tensor.abs().max().item() * width**0.5
        return (1e-3 if tensor.numel() > 2 else 0) < largest < 1.001

    def both_signs(weight):
        """Whether a mean of many numbers is near 0. By chance, this is wrong once in 10^12 times.
        """
        return weight.mean().abs().item() < 0.3 * weight.std().item()

    yield registered(draw.integer(25, 60), draw.integer(2, 4))
    for depth, width in ((2, draw.integer(3, 6)), (3, draw.integer(3, 6)), (1, 1), (0, draw.integer(3, 9))):
        if depth < 2:
            yield registered(width, depth)
        state = {"gain": 0.5 * draw.tensor((width,))}
        for k in range(depth):
            state[f"layers.{k}.weight"] = 0.3 * draw.tensor((width, width))
            state[f"layers.{k}.bias"] = 0.3 * draw.tensor((width,))
        x, y = draw.tensor((9, width)), draw.tensor((9, width))
        if depth == 0:
            y = -6 * x  # far away, so that a gradient that is clipped gives other losses
        yield trained(x, y, state, depth)
