"""Lab 05, exercise 8: Into MiniGPT"""

import math

import torch

from utils.checks import Case, Check, edited, not_run
from utils.compare import Tolerance
from utils.minigpt import MiniGPTConfig
from utils.parity import gpu_run
from utils.records import NoRecord

swap_softmax = Check(
    "swap_softmax",
    parts={
        "the head": 1,
        "the attention": 1,
        "gradients": 1,
        "nothing else": 1,
        "one graph": 1,
        "as on a GPU": 1,
    },
    reads="What PyTorch asks of an operator",
    tolerance=Tolerance(1e-4, 1e-5, "float32 sums in another order"),
)


@swap_softmax.reference
def _(model, softmax):
    model.softmax = softmax
    for module in model.modules():
        if type(module).__name__ == "AttentionPattern":
            module.forward = _pattern(softmax)


def _pattern(softmax):
    def forward(q, k):
        length = q.shape[-2]
        seen = torch.ones(length, length, dtype=torch.bool, device=q.device).tril()
        scores = torch.einsum("...id,...jd->...ij", q, k) * q.shape[-1] ** -0.5
        return softmax(torch.where(seen, scores, -math.inf))

    return forward


@swap_softmax.cases
def _(draw):
    head, attention, gradients, nothing, graph, gpu = swap_softmax.parts
    places = {
        head: ("probabilities",),
        attention: ("logits",),
        gradients: ("gradients",),
        nothing: ("names", "parameters", "others"),
    }

    def asked(part, config, seed, tokens):
        def play(subject):
            came = subject.drive("custom_op:swap", config, seed, tokens)
            return [came[name] for name in places[part]]

        words = f"{config.n_layers} layers, {config.n_heads} heads, tokens {tuple(tokens.shape)}"
        said = {f"[{i}]": f"{name}" for i, name in enumerate(places[part])}
        return Case(part, play, shown=words, places=said)

    for layers in (1, 3):
        heads = draw.choice((1, 2))
        config = MiniGPTConfig(draw.integer(7, 12), 8, heads, layers, 12, 6)
        shape = draw.integer(2, 3), draw.integer(3, 6)
        tokens = draw.tensor(shape, torch.int64).abs() % config.vocab_size
        for part in places:
            yield asked(part, config, draw.integer(0, 999), tokens)

    config = MiniGPTConfig(8, 8, 2, 1, 12, 6)

    def traced(subject):
        return subject.drive("custom_op:graphs_of_swapped", config, torch.arange(6).reshape(2, 3))

    yield Case(graph, traced, shown="MiniGPT under torch.compile")
    try:
        run = gpu_run()
    except NoRecord as missing:
        yield not_run(gpu, f"needs a GPU or a recorded GPU run: {missing}")
    else:

        def parity(subject):
            tokens = torch.from_numpy(run.tokens)
            logits = subject.drive("custom_op:swapped_logits", tokens, run.device)
            return run.agrees(logits, torch.float32)

        yield Case(gpu, parity, shown="the trained MiniGPT", against=run.words)


def _swap(model, softmax):
    class Pattern(torch.nn.Module):
        def forward(self, q, k):
            scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
            length = q.shape[-2]
            future = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(diagonal=1)
            return softmax(scores.masked_fill(future, -math.inf))

    model.softmax = softmax
    for block in model.blocks:
        block.attention.pattern = Pattern()


ALL = dict.fromkeys(swap_softmax.parts, 1)


def _misconception(name, explanation, without, *edits):
    earns = {part: 1 for part in ALL if part not in without}
    swap_softmax.misconception(name, explanation, earns=earns)(edited(_swap, *edits))


_misconception(
    "the head alone",
    "the blocks' attention goes on with torch's softmax.",
    {"the head", "the attention", "gradients"},
    ("block.attention.pattern = Pattern()", "pass"),
)
_misconception(
    "the attention alone",
    "the head goes on with torch's softmax.",
    {"the head", "gradients"},
    ("model.softmax = softmax", "pass"),
)
_misconception(
    "the mask lost",
    "each position sees those after it: nothing is masked before the softmax.",
    {"the head", "the attention", "gradients", "as on a GPU"},
    ("scores.masked_fill(future, -math.inf)", "scores"),
)
_misconception(
    "masked by 0",
    "a masked score is 0 and not -inf, so it takes part.",
    {"the head", "the attention", "gradients", "as on a GPU"},
    ("-math.inf", "0.0"),
)
_misconception(
    "masked afterwards",
    "the mask is laid over the probabilities, whose rows then no longer sum to 1.",
    {"the head", "the attention", "gradients", "as on a GPU"},
    ("softmax(scores.masked_fill(future, -math.inf))", "softmax(scores).masked_fill(future, 0.0)"),
)
_misconception(
    "over the queries",
    "the attention's softmax runs over the other dimension.",
    {"the head", "the attention", "gradients", "as on a GPU"},
    (
        "softmax(scores.masked_fill(future, -math.inf))",
        "softmax(scores.masked_fill(future, -math.inf).transpose(-1, -2)).transpose(-1, -2)",
    ),
)
_misconception(
    "the scale forgotten",
    "the scores are not divided by the root of a head's width.",
    {"the head", "the attention", "gradients", "as on a GPU"},
    (" / math.sqrt(q.shape[-1])", ""),
)
_misconception(
    "for every model",
    "the class is changed, and with it every other model of it.",
    {"nothing else"},
    (
        "block.attention.pattern = Pattern()",
        "type(block.attention.pattern).forward = Pattern.forward",
    ),
)
_misconception(
    "the first block alone",
    "one block is changed, and the others are not.",
    {"the head", "the attention", "gradients"},
    ("in model.blocks:", "in model.blocks[:1]:"),
)
_misconception(
    "parameters copied",
    "the model's parameters are replaced by copies, which nobody else holds.",
    {"gradients", "nothing else"},
    (
        "model.softmax = softmax",
        "model.softmax = softmax\n    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())",
    ),
)
_misconception(
    "wrapped in a module",
    "the head is wrapped, and the names of its parameters change.",
    {"nothing else"},
    (
        "model.softmax = softmax",
        "model.softmax = softmax\n    model.lm_head = torch.nn.Sequential(model.lm_head)",
    ),
)


@swap_softmax.alternate("a forward of its own for each pattern")
def _(model, softmax):
    def attend(q, k):
        length = q.size(-2)
        scores = torch.matmul(q, k.mT) * q.size(-1) ** -0.5
        seen = torch.ones((length, length), dtype=torch.bool, device=q.device).tril()
        return softmax(scores.masked_fill(~seen, float("-inf")))

    model.softmax = softmax
    for name, module in model.named_modules():
        if name.endswith("attention.pattern"):
            module.forward = attend


@swap_softmax.alternate("the same objects, of another class")
def _(model, softmax):
    first = model.blocks[0].attention.pattern

    def forward(self, q, k):
        width = q.shape[-1]
        scores = (q / math.sqrt(width)) @ k.transpose(-2, -1)
        column = torch.arange(q.shape[-2], device=q.device)
        scores = torch.where(column[None, :] > column[:, None], -float("inf"), scores)
        return softmax(scores)

    Swapped = type("Swapped", (type(first),), {"forward": forward})
    for block in model.blocks:
        block.attention.pattern.__class__ = Swapped
    model.softmax = softmax


swap_softmax.equivalent(
    ("-1, -2", "-2, -1"),
    ("-2, -1", "-1, -2"),
    ("-1, -2", "-1, 2"),
    ("-2, -1", "2, -1"),
    ("q.shape[-2]", "q.shape[2]"),
    ("q.size(-2)", "q.size(2)"),
    ("q.shape", "k.shape"),
    ("q.size", "k.size"),
    ("[None, :]", "[:,]"),
    ("[None, :]", "[None,]"),
    because="it is the same dimension, of a query or of a key",
)
swap_softmax.equivalent(
    (", device=q.device", ""),
    (", device=q.device", ", device=k.device"),
    because="on a CPU all is there; where there is a GPU the last part tells",
)
swap_softmax.equivalent(
    ("-math.inf))", "-math.inf)).float()"),
    ("float('-inf')))", "float('-inf'))).float()"),
    ("softmax(scores)", "softmax(scores).float()"),
    because="the models are in float32",
)
swap_softmax.equivalent(
    ("'Swapped'", "'Swapped_'"),
    ("blocks[0]", "blocks[-1]"),
    because="nobody asks for the name, and all blocks have the same class",
)
