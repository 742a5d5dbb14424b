"""Lab 05, exercise 8: Into MiniGPT"""

import math

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check, not_run
from hood.judge.checks.words import counted
from utils.instruments.parity import gpu_run
from utils.instruments.records import NoRecord
from utils.minigpt import MiniGPTConfig

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
    reads_by_part={"as on a GPU": "What a GPU said"},
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

        size = f"{counted(config.n_layers, 'layer')}, {counted(config.n_heads, 'head')}"
        words = f"{size}, tokens {tuple(tokens.shape)}"
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

    nan = "There is NaN in the logits. A row of scores that has only -inf gives NaN."
    looks = {
        attention: (
            of_attention,
            {
                "[0]": nan,
                "[1]": "the logits of the first position, which sees only itself",
                "[2]": "the logits of later positions",
                "[3]": "the logits of a second call, with fewer or more tokens",
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
                "[1]": "The parameters are not the same objects as before.",
                "[2][0]": "the logits of another model, which was made before the swap",
                "[2][1]": "the probabilities of another model, which was made before the swap",
                "[2][2]": "the logits of another model, which was made after the swap",
                "[2][3]": "the probabilities of another model, which was made after the swap",
                "[3]": "The results of this model change if another model gets another softmax.",
            },
        ),
    }
    for layers, heads in ((1, 1), (3, 2)):
        config = MiniGPTConfig(draw.integer(7, 12), 8, heads, layers, 12, 6)
        tokens = draw.tensor((draw.integer(2, 3), draw.integer(3, 6)), torch.int64).abs()
        tokens %= config.vocab_size
        # A single position sees only itself, so this tests the head alone.
        single = {"[0]": "the probabilities of single tokens"}
        yield asked(
            head,
            lambda came: [came["probabilities"]],
            single,
            config,
            draw.integer(0, 999),
            tokens[:, :1],
        )
        for part, (look, places) in looks.items():
            if part == attention:
                fewer = tokens[:, :2]
                yield asked(part, look, places, config, draw.integer(0, 999), tokens, fewer)
                yield asked(part, look, places, config, draw.integer(0, 999), fewer, tokens)
            elif layers == 3 or part != nothing:
                yield asked(part, look, places, config, draw.integer(0, 999), tokens)

    config = MiniGPTConfig(8, 8, 2, 1, 12, 6)

    words = torch.tensor(draw.sample(range(8), 6)).reshape(2, 3)
    seed = draw.integer(0, 999)

    def traced(subject):
        came = subject.drive("custom_op:compiled_swapped", config, words, seed)
        return came["graphs"], came["probabilities"]

    cut = {"[0]": "The compiler should get exactly one graph.", "[1]": "the probabilities, compiled"}
    yield Case(graph, traced, shown="MiniGPT under torch.compile", places=cut)
    try:
        run = gpu_run()
    except NoRecord as missing:
        yield not_run(gpu, f"needs a GPU or a recorded GPU run: {missing}")
    else:
        names = torch.tensor(draw.sample(range(600), 600))

        def parity(subject):
            # words get new numbers, so that the right answer of an earlier run is wrong in this run
            tokens = names[torch.from_numpy(run.tokens)]
            logits = subject.drive("custom_op:swapped_logits", tokens, run.device, names)
            return run.agrees(logits[..., names], torch.float32)

        yield Case(gpu, parity, shown="the trained MiniGPT", against=run.words)
