"""Lab 02, exercise 12: The LM head"""

from functools import cache

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check, case
from utils.minigpt import load_minigpt, load_tokenizer

from .shared import BY_HAND, FLOATS, KINDS, laid_out, sum_to

SENTENCES = (
    "yo hablé español anoche .",
    "yo hablé español .",
)

lm_head = Check(
    "lm_head",
    parts={
        "loss of any upstream": 2,
        "large logits": 1,
        "a head of any size": 1,
        "MiniGPT's own head": 2,
    },
    reads="Cross-entropy: what came minus what should have come",
    reads_by_part={
        "a head of any size": "A layer only has to know one product",
        "MiniGPT's own head": "A layer only has to know one product",
    },
    by_hand=BY_HAND,
    tolerance=Tolerance(1e-4, 1e-6, "sums over rows and channels, added in any order"),
)


@lm_head.reference
class _:
    def cross_entropy_vjp(grad_output, logits, targets):
        logits = logits.detach().requires_grad_()
        loss = torch.nn.functional.cross_entropy(logits, targets)
        return torch.autograd.grad(loss, logits, grad_output)[0]

    def lm_head_gradients(x, weight, bias, targets):
        x, weight, bias = (t.detach().requires_grad_() for t in (x, weight, bias))
        logits = torch.nn.functional.linear(x, weight, bias)
        loss = torch.nn.functional.cross_entropy(logits, targets)
        found = torch.autograd.grad(loss, (x, weight, bias))
        return dict(zip(("x", "weight", "bias"), found, strict=True))


@cache
def hidden(sentence):
    """MiniGPT's hidden states of a sentence, (N, 64), and the word after each position, (N,)."""
    tokens = torch.tensor([load_tokenizer().encode(sentence)])
    with torch.no_grad():
        states = load_minigpt().hidden(tokens[:, :-1])[0]
    return states.clone(), tokens[0, 1:].clone()


@lm_head.cases
def _(draw):
    def targets(rows, words):
        return torch.tensor([draw.integer(0, words - 1) for _ in range(rows)])

    places = {f"['{name}']": f"the gradient for `{name}`" for name in ("x", "weight", "bias")}

    def loss(part, upstream, logits, *wanted, shown=""):
        upstream = torch.tensor(upstream, dtype=logits.dtype)
        following = torch.tensor(wanted) if wanted else targets(*logits.shape)

        def play(subject):
            found = subject["cross_entropy_vjp"](upstream, logits, following)
            return sum_to(0, found, lm_head.tolerance), found

        places = {
            "[0]": "the entries of a row do not sum to 0.",
            "[1]": "the gradient for `logits`",
        }
        return Case(part, play, "cross_entropy_vjp", shown, places)

    def head_of(x, weight, bias, *wanted, shown=""):
        following = torch.tensor(wanted) if wanted else targets(len(x), len(bias))
        args, of = (x, weight, bias, following), "lm_head_gradients"
        return case("a head of any size", *args, of=of, places=places, shown=shown)

    part, wide = "loss of any upstream", "large logits"
    for dtype, layout in KINDS:
        n, v, i = draw.shape(3, low=3, high=9)
        logits = laid_out(draw, (n, v), dtype, layout)
        yield loss(part, draw.integer(12, 40) / 8, logits)
        # in float32, rounding would make right answers differ by more than the tolerance
        yield loss(wide, draw.integer(12, 40) / 8, 1000 * logits.double() + 2000)
        x, weight = laid_out(draw, (n, i), dtype, layout), draw.tensor((v, i), dtype)
        yield head_of(x, weight, draw.tensor((v,), dtype))
    for shown, upstream in (
        ("of 1", 1.0),
        ("of 0", 0.0),
        ("below 0, and no target is the last word", -draw.integer(12, 40) / 8),
    ):
        logits, last = draw.tensor((4, 5)), 1 if upstream < 0 else 4  # the last word, or not
        wanted, of = (last, 0, 2, 0), f"an incoming gradient {shown}"
        yield loss(part, upstream, logits, *wanted, shown=of)
    yield loss(part, 1.5, draw.tensor((4, 4)), 3, 3, 3, 3, shown="one target for all rows")
    yield loss(part, 1.5, draw.tensor((1, 7)), 6, shown="a single row")
    yield loss(part, 1.5, draw.tensor((3, 1)), 0, 0, 0, shown="a single word")
    steps = torch.arange(4.0)  # whole numbers, which are exact in float32
    levels = torch.stack([1000 + steps, -1000 - steps, 500 * (steps - 2), 0 * steps])
    for dtype in FLOATS:
        yield loss(wide, 2.0, levels.to(dtype), 3, 0, 1, 2, shown="rows at different levels")
    x, weight = draw.tensor((4, 4)), draw.tensor((4, 4))
    yield head_of(x, weight, draw.tensor((4,)), 3, 0, 3, 1, shown="equal sizes")
    yield head_of(x[:1], weight, draw.tensor((4,)), 0, shown="a single row")
    far = torch.tensor([[1000.0], [-1000.0]], dtype=torch.float64)
    weight, bias = far.new_tensor([[1.0], [-1.0], [0.5]]), draw.tensor((3,), torch.float64)
    yield head_of(far, weight, bias, 0, 2, shown="large logits")
    head = load_minigpt().lm_head
    weight, bias = head.weight.detach().clone(), head.bias.detach().clone()
    for sentence in SENTENCES:
        x, following = hidden(sentence)
        args = (x, weight, bias, following)
        yield case("MiniGPT's own head", *args, of="lm_head_gradients", places=places)
        wrong = torch.tensor(draw.sample(range(len(bias)), len(x)))  # all different
        args = (x.double(), weight.double(), bias.double(), wrong)
        yield case("MiniGPT's own head", *args, of="lm_head_gradients", places=places)
