"""Lab 11, exercise 8: FlashAttention as a kernel"""

import dataclasses
import math

import torch
import triton
import triton.language as tl

from hood.judge.checks.exercise import Case, Check
from utils.drivers.custom_op import cut
from utils.instruments.launching import launch
from utils.minigpt import MiniGPTConfig

from .shared import ATTENTION, FAR, IN_A_KERNEL, scored

triton_attention = Check(
    "triton_attention",
    parts={
        "all words": 1,
        "the past": 1,
        "one launch": 1,
        "tensor cores": 1,
        "the same words": 1,
        "in MiniGPT": 1,
    },
    reads="FlashAttention as a kernel",
    by_hand=dataclasses.replace(
        IN_A_KERNEL,
        forbid_names=IN_A_KERNEL.forbid_names | {"scaled_dot_product_attention"},
        parts=frozenset({"all words", "the past", "one launch", "tensor cores"}),
    ),
    tolerance=ATTENTION,
)


@triton.jit
def _mixed(q_ptr, k_ptr, v_ptr, o_ptr, T, H, scale, past, sq, sk, sv, D: tl.constexpr, N: tl.constexpr):
    """The values of 16 queries of one head; `past` is 1 if a query sees only the past."""
    head = tl.program_id(0)
    begin = tl.program_id(1) * 16
    words, channels = begin + tl.arange(0, 16), tl.arange(0, D)
    own = head // H * sq[0] + head % H * sq[1]
    q = tl.load(
        q_ptr + own + words[:, None] * sq[2] + channels[None, :] * sq[3],
        mask=words[:, None] < T,
        other=0.0,
    )
    top = tl.full((16,), -float("inf"), tl.float32)
    total = tl.zeros((16,), tl.float32)
    mixed = tl.zeros((16, D), tl.float32)
    for first in range(0, T, N):
        keys = first + tl.arange(0, N)
        k_at = head // H * sk[0] + head % H * sk[1]
        v_at = head // H * sv[0] + head % H * sv[1]
        there = keys < T
        k = tl.load(k_ptr + k_at + keys[None, :] * sk[2] + channels[:, None] * sk[3], there[None, :], 0.0)
        v = tl.load(v_ptr + v_at + keys[:, None] * sv[2] + channels[None, :] * sv[3], there[:, None], 0.0)
        seen = there[None, :] & ((keys[None, :] <= words[:, None]) | (past == 0))
        scores = tl.where(seen, tl.dot(q, k) * scale, -float("inf"))
        new = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp(scores - new[:, None])
        total = total * tl.exp(top - new) + tl.sum(weights, 1)
        mixed = mixed * tl.exp(top - new)[:, None] + tl.dot(weights, v)
        top = new
    places = o_ptr + (head * T + words)[:, None] * D + channels[None, :]
    tl.store(places, mixed / total[:, None], mask=words[:, None] < T)


@triton_attention.reference
class _:
    def triton_attention(q, k, v, causal):
        B, H, T, D = q.shape
        output = torch.zeros(B, H, T, D)
        sizes = T, H, 1 / math.sqrt(D), int(causal), q.stride(), k.stride(), v.stride()
        launch(_mixed, (B * H, triton.cdiv(T, 16)), q, k, v, output, *sizes, D=D, N=32)
        return output

    def swap_attention(model, attention):
        for block in model.blocks:
            _use(block.attention, attention)


def _use(own, attention):
    def forward(x):
        B, T, _ = x.shape
        heads = [part(x).reshape(B, T, own.n_heads, -1) for part in (own.query, own.key, own.value)]
        mixed = attention(*(one.permute(0, 2, 1, 3) for one in heads), True)
        return own.output(mixed.permute(0, 2, 1, 3).reshape(B, T, -1))

    own.forward = forward


NAN = (
    "There is NaN where a number is expected. The places beside the words of `q`, `k` and `v` are "
    "NaN, and so are places of the result to which nothing is written."
)
ASKED = [
    (subject, verb, tense)
    for subjects, verbs in ((("I", "she", "they"), ("eat", "write", "speak", "buy")), (("yo", "ella", "nosotros"), ("comer", "hablar", "leer", "vivir")))
    for subject in subjects
    for verb in verbs
    for tense in ("past", "future", "present")
]


@triton_attention.cases
def _(draw):
    every, past, once, gpu, words, model = triton_attention.parts

    def drawn(B, H, T, D):
        q, k, v = (draw.tensor((B, H, T, D)) for _ in range(3))
        return q * 2 / math.sqrt(D), k, v

    def apart(one):
        """The same numbers, with NaN between them and beside them in memory."""
        return cut(one.flatten(0, 2), column_stride=2).unflatten(0, one.shape[:3])

    def asked(part, tensors, causal, more=""):
        def play(subject):
            came = subject.drive("tiles:computed", *tensors, causal, of="triton_attention")["output"]
            return not isinstance(came, torch.Tensor) or not bool(came.isnan().any()), came

        kind = "causal" if causal else "not causal"
        shown = f"{kind}, {tuple(tensors[0].shape)}{more}"
        return Case(part, play, "triton_attention", shown, {"[0]": NAN, "[1]": "the output"})

    def rising(by, T=18):
        """Scores that rise, or fall, from key to key."""
        q, k, v = drawn(1, 1, T, 16)
        q[..., 0] = 1.0
        k[..., 0] = by * torch.arange(float(T)) * 4
        return q, k, v

    for part, causal in ((every, False), (past, True)):
        yield asked(part, drawn(1, 1, 16, 16), causal)
        yield asked(part, drawn(2, 2, draw.integer(2, 15), 16), causal)
        yield asked(part, drawn(1, 2, draw.integer(17, 31), 32), causal)
        yield asked(part, drawn(1, 1, draw.integer(2, 9), 64), causal)
        yield asked(part, drawn(1, 1, 1, 16), causal, ", one word")
        # several tiles, of any usual size; more of them where tiles of the future may be skipped
        yield asked(part, drawn(1, 1, 129 if causal else 65, 16), causal)
        # heads that no view can put one after the other
        q, k, v = drawn(2, 2, draw.integer(5, 9), 16)
        twice = torch.cat([v, v], 2).transpose(1, 2).contiguous().transpose(1, 2)
        mixed = apart(q), k.transpose(2, 3).contiguous().transpose(2, 3), twice[:, :, : v.shape[2]]
        yield asked(part, mixed, causal, ", q, k and v with different strides")
        for by in (0.5, 30.0, -30.0):
            yield asked(part, rising(by), causal, f", scores that {'rise' if by > 0 else 'fall'} from key to key")
        turned = [one.mT.contiguous().mT for one in drawn(1, 2, draw.integer(5, 9), 16)]
        yield asked(part, turned, causal, ", channels apart in memory")
        for scores, which in FAR:
            yield asked(part, scored(drawn(1, 1, 6, 16), scores), causal, which)
        q, k, v = drawn(1, 1, 11, 16)
        yield asked(part, (q.abs() + 1, -k.abs() - 1, v), causal, ", all scores below 0")

    def counted(tensors, causal):
        count = tensors[0].numel()

        def play(subject):
            came = subject.drive("tiles:launched", *tensors, causal, of="triton_attention")
            stores = came["stores"]
            return (
                came["launches"] == 1,
                stores <= count,
                stores >= count,
                came["others"] == 0,
                came["output"],
            )

        places = {
            "[0]": "Not exactly one kernel is launched.",
            "[1]": "More numbers are stored than the output has.",
            "[2]": "Fewer numbers are stored than the output has.",
            "[3]": "A kernel gets a tensor that is neither `q`, `k`, `v` nor the output. The kernel "
            "should read `q`, `k` and `v` as they are.",
            "[4]": "the output",
        }
        kind = "causal" if causal else "not causal"
        return Case(once, play, "triton_attention", f"{kind}, {tuple(tensors[0].shape)}", places)

    yield counted(rising(0.5), True)
    yield counted(drawn(2, 1, 16, 16), False)
    # for the compiler like the tensors in the lab's cell, so no kernel is compiled twice
    pair = drawn(1, 2, 16, 16)

    def compiled(subject):
        return subject.drive("tiles:tensor_cores", *pair, True, of="triton_attention")

    says = {"": "The kernel compiles for an H100, but it has no `mma` instruction. `tl.dot` makes them."}
    yield Case(gpu, compiled, "triton_attention", "compiled for sm_90", says)

    sentences = draw.sample(ASKED, 1)
    tokens = draw.tensor((1, draw.integer(3, 9)), torch.int64).abs() % 600

    def generated(subject):
        came = subject.drive("tiles:written", sentences, tokens, of="triton_attention")
        return came["logits"][..., :9], came["sentences"]

    shown = "the trained MiniGPT, " + " and ".join(" ".join(one) for one in sentences)
    places = {"[0]": "the logits of some words", "[1]": "the sentences"}
    yield Case(words, generated, "triton_attention", shown, places)

    for layers, heads in ((1, 1), (3, 2)):
        config = MiniGPTConfig(draw.integer(7, 12), 8, heads, layers, 12, 6)
        some = draw.tensor((2, draw.integer(3, 5)), torch.int64).abs() % config.vocab_size
        seed = draw.integer(0, 999)

        def swapped(subject, config=config, some=some, seed=seed):
            given = config, seed, some, some[:1, :2]
            came = subject.drive("tiles:swapped", *given, of="swap_attention")
            return came["logits"], came["then"], came["names"], came["others"]

        places = {
            "[0]": "the logits",
            "[1]": "the logits of a second call, with fewer words",
            "[2]": "the names in the state dict",
            "[3]": "The logits of another model change.",
        }
        shown = f"{layers} blocks, {heads} heads, tokens {tuple(some.shape)}"
        yield Case(model, swapped, "swap_attention", shown, places)
