"""Lab 05, exercise 8: Into MiniGPT"""

import math

import torch

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check, edited, not_run
from utils.checks.lab_solution import lab_solution
from utils.instruments.records import NoRecord
from utils.minigpt import MiniGPTConfig
from utils.minigpt.parity import gpu_run

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

    def asked(part, look, places, config, seed, tokens, then=None):

        def play(subject):
            return look(subject.drive("custom_op:swap", config, seed, tokens, then))

        words = f"{config.n_layers} layers, {config.n_heads} heads, tokens {tuple(tokens.shape)}"
        if then is not None:
            words += f", then {tuple(then.shape)}"
        return Case(part, play, shown=words, places=places)

    def of_attention(came):
        first, later = came["logits"][:, :1], came["logits"][:, 1:]
        return not bool(came["logits"].isnan().any()), first, later, came["then"]

    def of_gradients(came):
        found = came["gradients"]
        numbers = [one for one in found.values() if one is not None]
        return None not in found.values(), not any(bool(n.isnan().any()) for n in numbers), found

    def of_others(came):
        return came["names"], came["parameters"], came["others"], came["alone"]

    nan = "There is NaN in the logits, as where a row of scores is nothing but -inf."
    looks = {
        attention: (
            of_attention,
            {
                "[0]": nan,
                "[1]": "the logits of the first position, which sees nothing but itself",
                "[2]": "the logits of later positions",
                "[3]": "the logits of fewer or more tokens, asked afterwards",
            },
        ),
        gradients: (
            of_gradients,
            {
                "[0]": "A parameter that was in the model before gets no gradient.",
                "[1]": "There is NaN in a gradient.",
                "[2]": "gradients",
            },
        ),
        nothing: (
            of_others,
            {
                "[0]": "the names in the state dict",
                "[1]": "The parameters are not the very objects that they were.",
                "[2][0]": "the logits of another model, made before",
                "[2][1]": "the probabilities of another model, made before",
                "[2][2]": "the logits of another model, made after",
                "[2][3]": "the probabilities of another model, made after",
                "[3]": "What this model gives changes when another one gets another softmax.",
            },
        ),
    }
    for layers, heads in ((1, 1), (3, 2)):
        config = MiniGPTConfig(draw.integer(7, 12), 8, heads, layers, 12, 6)
        tokens = draw.tensor((draw.integer(2, 3), draw.integer(3, 6)), torch.int64).abs()
        tokens %= config.vocab_size
        # A single position sees itself alone, whatever the attention does: the head is on its own.
        single = {"[0]": "the probabilities of single tokens"}
        yield asked(
            head, lambda came: [came["probabilities"]], single, config, draw.integer(0, 999), tokens[:, :1]
        )
        for part, (look, places) in looks.items():
            if part == attention:
                fewer = tokens[:, :2]
                yield asked(part, look, places, config, draw.integer(0, 999), tokens, fewer)
                yield asked(part, look, places, config, draw.integer(0, 999), fewer, tokens)
            elif layers == 3 or part != nothing:
                yield asked(part, look, places, config, draw.integer(0, 999), tokens)

    config = MiniGPTConfig(8, 8, 2, 1, 12, 6)

    def traced(subject):
        return subject.drive("custom_op:graphs_of_swapped", config, torch.arange(6).reshape(2, 3))

    cut = {"": "The compiler does not get one graph."}
    yield Case(graph, traced, shown="MiniGPT under torch.compile", places=cut)
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


_swap = lab_solution(__name__, "swap_softmax")


ALL = dict.fromkeys(swap_softmax.parts, 1)


def _misconception(name, explanation, without, *edits):
    earns = {part: 1 for part in ALL if part not in without}
    swap_softmax.misconception(name, explanation, earns=earns)(edited(_swap, *edits))


_misconception(
    "the head alone",
    "the blocks' attention goes on with torch's softmax.",
    {"the attention", "gradients"},
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
    {"the attention", "gradients", "as on a GPU"},
    ("scores.masked_fill(future, -math.inf)", "scores"),
)
_misconception(
    "masked by 0",
    "a masked score is 0 and not -inf, so it takes part.",
    {"the attention", "gradients", "as on a GPU"},
    ("-math.inf", "0.0"),
)
_misconception(
    "masked afterwards",
    "the mask is laid over the probabilities, whose rows then no longer sum to 1.",
    {"the attention", "gradients", "as on a GPU"},
    ("softmax(scores.masked_fill(future, -math.inf))", "softmax(scores).masked_fill(future, 0.0)"),
)
_misconception(
    "over the queries",
    "the attention's softmax runs over the other dimension.",
    {"the attention", "gradients", "as on a GPU"},
    (
        "softmax(scores.masked_fill(future, -math.inf))",
        "softmax(scores.masked_fill(future, -math.inf).transpose(-1, -2)).transpose(-1, -2)",
    ),
)
_misconception(
    "the scale forgotten",
    "the scores are not divided by the root of a head's width.",
    {"the attention", "gradients", "as on a GPU"},
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
    "of three blocks one is changed, and two are not.",
    {"the attention", "gradients"},
    ("in model.blocks:", "in model.blocks[:1]:"),
)
_misconception(
    "the last block left out",
    "of three blocks two are changed, and the last is not.",
    {"the attention", "gradients"},
    ("in model.blocks:", "in model.blocks[:2]:"),
)
_misconception(
    "divided by the width",
    "the scores are divided by a head's width, and not by its root.",
    {"the attention", "gradients", "as on a GPU"},
    ("math.sqrt(q.shape[-1])", "q.shape[-1]"),
)
_misconception(
    "one of the future",
    "each position sees the one behind it, too.",
    {"the attention", "gradients", "as on a GPU"},
    ("diagonal=1", "diagonal=2"),
)
_misconception(
    "scores cut off",
    "no gradient gets back through the attention's scores.",
    {"gradients"},
    ("softmax(scores.masked_fill", "softmax(scores.detach().masked_fill"),
)
_misconception(
    "nothing changed",
    "the model that was handed in computes what it did before.",
    {"the head", "the attention", "gradients"},
    ("model.softmax = softmax", "pass"),
    ("block.attention.pattern = Pattern()", "pass"),
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
