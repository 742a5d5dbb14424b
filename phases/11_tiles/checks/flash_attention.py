"""Lab 11, exercise 7: Back through the tiles"""

import torch
import torch.nn.functional as F

from hood.judge.checks.exercise import Case, Check, Place
from utils.drivers import tiles

from .shared import ATTENTION, DOUBLE, FAR, doubly_exact, scored

flash_attention = Check(
    "FlashAttention",
    parts={"values": 1, "queries and keys": 1, "ragged tiles": 1, "memory": 1},
    reads="Back through the tiles",
    tolerance=ATTENTION,
)


@flash_attention.reference
class FlashAttention(torch.autograd.Function):
    """One query after another, in float64, and without products of matrices."""

    @staticmethod
    def forward(ctx, q, k, v, causal, block):
        output, lse = tiles.attended(q, k, v, causal)
        ctx.save_for_backward(q, k, v, output, lse)
        ctx.causal = causal
        return output

    @staticmethod
    def backward(ctx, grad):
        q, k, v, output, lse = (one.double() for one in ctx.saved_tensors)
        scale = q.shape[-1] ** -0.5
        dq, dk, dv = (torch.zeros_like(one) for one in (q, k, v))
        for i in range(q.shape[-2]):
            end = i + 1 if ctx.causal else q.shape[-2]
            mine, upstream = q[..., i : i + 1, :], grad[..., i : i + 1, :].double()
            keys, given = k[..., :end, :], v[..., :end, :]
            scores = (keys * mine).sum(-1) * scale
            p = torch.exp(scores - lse[..., i, None])
            p = p / p.sum(-1, keepdim=True)
            dp = (given * upstream).sum(-1)
            ds = p * (dp - (p * dp).sum(-1, keepdim=True)) * scale
            dv[..., :end, :] += p[..., None] * upstream
            dk[..., :end, :] += ds[..., None] * mine
            dq[..., i, :] = (ds[..., None] * keys).sum(-2)
        return *(one.to(grad.dtype) for one in (dq, dk, dv)), None, None


def _gradients(q, k, v, causal, upstream):
    leaves = [one.double().requires_grad_() for one in (q, k, v)]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        output = F.scaled_dot_product_attention(*leaves, is_causal=causal)
    return torch.autograd.grad(output, leaves, upstream.double())


@flash_attention.cases
def _(draw):
    values, others, ragged, memory = flash_attention.parts
    words = "the gradient of q", "the gradient of k", "the gradient of v"

    def drawn(B, H, T, D, dtype=torch.float32):
        q, k, v, upstream = (draw.tensor((B, H, T, D), dtype) for _ in range(4))
        return 1.5 * q, k, v, upstream

    def asked(part, tensors, causal, block, more="", between=False, look=None, far=False):
        q, k, v, upstream = tensors
        right = _gradients(q, k, v, causal, upstream)
        which = {values: (2,), others: (0, 1)}.get(part, (0, 1, 2))

        def play(subject):
            given = q, k, v, causal, block, upstream, between
            came = subject.drive("tiles:backward", *given)
            found = came["gradients"]
            exact = far or doubly_exact([found[at] for at in which], [right[at] for at in which])
            facts = look(came) if look else ()
            return exact, [found[at] for at in which], came["unchanged"], *facts

        places = {"[0]": DOUBLE} | {
            f"[1][{at}]": Place(words[key], returned=False) for at, key in enumerate(which)
        }
        places |= {
            "[2]": "An argument, the output or its gradient was changed in place.",
            "[3]": "A tensor has T × T numbers, or more.",
            "[4]": "More is kept than q, k, v, the output and the log-sum-exp.",
            "[5]": "A tensor is kept as an attribute. `ctx.save_for_backward` should keep it.",
            "[6]": "A factor of a product in the backward is larger than a tile.",
        }
        dtype, kind = str(q.dtype).removeprefix("torch."), "causal" if causal else "not causal"
        shown = f"{kind}, {dtype} {tuple(q.shape)}, block {block}{more}"
        return Case(part, play, shown=shown, places=places)

    for part in (values, others):
        for causal in (False, True):
            block, D = draw.choice((2, 3)), draw.choice((2, 3, 5))
            yield asked(part, drawn(1, 1, 3 * block, D), causal, block)
            yield asked(part, drawn(2, 3, 2 * block, D), causal, block)
            q, k, v, upstream = drawn(1, 2, 2 * block, D)
            large = [one.double() for one in (4 * q, 9 * k, v, upstream)]
            yield asked(part, large, causal, block, ", large scores")
            one = upstream[:, :, :1, :1].expand(upstream.shape)
            yield asked(part, (q, k, v, one), causal, block, ", a gradient expanded from one number")
            turned = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v, upstream)]
            yield asked(part, turned, causal, block, ", heads side by side in memory")
            if causal:
                tensors = drawn(1, 1, 2 * block, D)
                yield asked(part, tensors, True, block, ", other calls before the backward", True)
            for scores, which in FAR:
                tensors = scored(drawn(1, 1, 6, 4, torch.float64), scores)
                yield asked(part, tensors, causal, 3, which, far=True)

    for causal in (False, True):
        block = draw.integer(3, 5)
        yield asked(ragged, drawn(1, 2, 2 * block + draw.integer(1, block - 1), 3), causal, block)
        yield asked(ragged, drawn(1, 1, block + 1, 2), causal, block, ", one word more than a tile")
        yield asked(ragged, drawn(1, 1, draw.integer(3, 4), 2), causal, 1, ", tiles of one word")
        yield asked(ragged, drawn(2, 1, 1, 3), causal, draw.integer(1, 4), ", one word")
        yield asked(ragged, drawn(1, 1, draw.integer(3, 6), 3), causal, 16, ", a block larger than T")
        scores, which = FAR[0]
        tensors = scored(drawn(1, 1, 6, 4, torch.float64), scores)
        yield asked(ragged, tensors, causal, 4, which, far=True)

        T, D = 8 * draw.integer(4, 5), draw.choice((2, 3, 4))

        def little(came, T=T, D=D):
            return (
                came["largest"] < T * T,
                came["saved"] <= 4 * T * D + 2 * T,
                came["attributes"] == 0,
                came["widest"] <= 8,
            )

        yield asked(memory, drawn(1, 1, T, D), causal, 8, look=little)
