"""Lab 10, exercise 6: The LM head, cut two ways"""

import torch
from torch.nn import functional as F

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution

from .shared import as_run, others, ranks

parallel_head = Check(
    "parallel_head",
    parts={"the loss": 1, "its gradient": 1, "large logits": 1, "few bytes": 1, "rows": 1},
    reads="The LM head cut two ways",
    tolerance=Tolerance(1e-3, 3e-3, "float32, where logits are thousands"),
)

PLACES = {
    "['other requests']": "something else than all_reduce was asked for.",
    "['loss']": "the loss of each rank",
    "['gradient']": "the gradient for x at each rank",
    "['finite']": "whether each rank's gradient is finite",
    "['too much']": "more than T · D + 3 · T numbers were put into the network.",
    "['logits']": "the logits of each rank",
    "['times']": "how many times something was put into the network",
    "['numbers']": "how many numbers a rank put into the network, in all",
}


@parallel_head.reference
class _:
    def column_loss(rank, world, x, weight, bias, first, targets):
        logits = F.linear(x, weight, bias)
        inside = (targets >= first) & (targets < first + len(bias))
        own = torch.where(inside, targets - first, 0)
        chosen = torch.where(inside, logits.gather(1, own[:, None])[:, 0], 0.0)
        largest = yield "all_reduce", logits.max(1).values, "max"
        total = torch.exp(logits - largest[:, None]).sum(1)
        both = yield "all_reduce", torch.stack([total, chosen]), "sum"
        loss = (largest + both[0].log() - both[1]).sum() / len(x)
        share = torch.exp(logits - largest[:, None] - both[0].log()[:, None])
        share = share - F.one_hot(own, len(bias)) * inside[:, None]
        gradient = yield "all_reduce", share @ weight, "sum"
        return loss, gradient / len(x)

    def row_logits(rank, world, x, weight, bias):
        return (yield "all_reduce", F.linear(x, weight), "sum") + bias


@parallel_head.cases
def _(draw):
    lost, gradient, large, few, rows = parallel_head.parts

    def columns(part, words, tokens=3, width=2, scale=1.0, shift=0.0, targets=None):
        """Ranks with so many words each."""
        world, vocabulary = len(words), sum(words)
        x = draw.tensor((tokens, width))
        weight, bias = draw.tensor((vocabulary, width)), draw.tensor((vocabulary,))
        if scale != 1.0:
            x, weight = torch.ones(tokens, width), torch.zeros(vocabulary, width)
            weight[:, 0] = torch.arange(vocabulary) % 3 * scale + shift
            x[1:, 0] = -1.0  # what is large for the first token is very negative for the others
        if targets is None:
            targets = [draw.integer(0, vocabulary - 1) for _ in range(tokens)]
        firsts = [sum(words[:rank]) for rank in range(world)]
        each = [
            (x, weight[a : a + n].clone(), bias[a : a + n].clone(), a, torch.tensor(targets))
            for a, n in zip(firsts, words, strict=True)
        ]

        def play(subject):
            came = ranks(subject, each, of="column_loss")
            found = {}
            if part == gradient:
                found["gradient"] = [result[1] for result in came.results]
            else:
                found["loss"] = [result[0] for result in came.results]
            if part == large:
                found["finite"] = [bool(result[1].isfinite().all()) for result in came.results]
            if part == few:
                found["other requests"] = others(came, "all_reduce")
                numbers = sum(event.bytes for event in came.collectives) / 4
                found["too much"] = numbers > tokens * width + 3 * tokens
            return found

        shown = f"{world} rank{'s' * (world > 1)} with {', '.join(map(str, words))} words, {tokens} tokens"
        shown += f", logits around {shift + scale:,.0f}" if scale != 1.0 else ""
        shows = {"gradient": "{}.results[{at}][1]", "loss": "{}.results[{at}][0]"}
        paste = as_run("column_loss", each, shows)
        return Case(part, play, of="column_loss", shown=shown, places=PLACES, paste=paste)

    def channels(widths, tokens=3, vocabulary=5):
        world = len(widths)
        bias = draw.tensor((vocabulary,))
        each = [(draw.tensor((tokens, d)), draw.tensor((vocabulary, d)), bias) for d in widths]

        def play(subject):
            came = ranks(subject, each, of="row_logits")
            numbers = sum(event.bytes for event in came.collectives) // 4
            return {
                "logits": came.results,
                "other requests": others(came, "all_reduce"),
                "numbers": numbers,
                "times": len(came.collectives),
            }

        shown = f"{world} rank{'s' * (world > 1)} with {', '.join(map(str, widths))} channels"
        shows = {"logits": "{}.results", "times": "len({}.collectives)"}
        paste = as_run("row_logits", each, shows)
        return Case(rows, play, of="row_logits", shown=shown, places=PLACES, paste=paste)

    n = draw.integer(2, 4)
    for part in (lost, gradient):
        yield columns(part, [3, 3])
        yield columns(part, [n, 1, 2])
        yield columns(part, [2, 3], tokens=4, targets=[0, 1, 2, 4])
        yield columns(part, [5], tokens=n)
        yield columns(part, [2, 4], tokens=1, width=n)
        yield columns(part, [3, 2], tokens=4, targets=[4, 4, 2, 4])
    yield columns(large, [3, 3], scale=2000.0)
    yield columns(large, [2, 1, 3], scale=1000.0, shift=-3000.0, targets=[2, 2, 5])
    yield columns(large, [4, 2], scale=2.0, shift=-4000.0)
    yield columns(large, [3, 2], scale=3.0, shift=5000.0)
    yield columns(large, [2, 2], scale=n * 900.0, targets=[2, 2, 2])
    yield columns(large, [2, 1], scale=1500.0, tokens=1, targets=[0])
    yield columns(large, [3], scale=2000.0)
    yield columns(few, [30, 20], tokens=4, width=3, targets=[0, 29, 30, 49])
    yield columns(few, [8, 9, 10], tokens=2, width=n)
    yield columns(few, [25, 25], tokens=1, width=2)
    yield channels([2, 2])
    yield channels([n, 1, 2])
    yield channels([3])
    yield channels([1, 1, 2, 1], tokens=1)


column_loss = lab_solution(__name__, "parallel_head", "column_loss")
row_logits = lab_solution(__name__, "parallel_head", "row_logits")


def _columns(name, explanation, earns, *edits):
    thing = {"column_loss": edited(column_loss, *edits)}
    parallel_head.misconception(name, explanation, earns=earns)(thing)


def _rows(name, explanation, earns, *edits):
    thing = {"row_logits": edited(row_logits, *edits)}
    parallel_head.misconception(name, explanation, earns=earns)(thing)


_LARGEST = "largest = (yield ('all_reduce', logits.amax(dim=1), 'max'))"
_columns(
    "no largest one taken off",
    "exponentials of large logits are infinite, and those of very negative ones are 0.",
    4,
    (_LARGEST, "largest = torch.zeros(len(x))"),
)
_columns(
    "each rank's own largest one",
    "ranks add up exponentials from which different numbers were taken off.",
    1,
    (_LARGEST, "largest = logits.amax(dim=1)"),
)
_columns(
    "another number than its own largest",
    "what is taken off a token's logits isn't its own largest one, and where they are much smaller, its"
    " exponentials vanish.",
    4,
    ("logits.amax(dim=1), 'max')", "logits.amax().expand(len(x)), 'max')"),
)
_columns(
    "the largest ones added up",
    "the sum of the ranks' largest logits is taken off, so exponentials can overflow or vanish.",
    4,
    ("logits.amax(dim=1), 'max')", "logits.amax(dim=1), 'sum')"),
)
_columns(
    "more than T · D + 3 · T numbers",
    "more is put into the network than T · D + 3 · T numbers.",
    4,
    ("upstream = powers / total[:, None]", "upstream = powers / total[:, None]\n    whole = yield ('all_reduce', upstream @ weight / len(x), 'sum')\n    upstream = upstream * 0"),
    ("gradient = (yield ('all_reduce', upstream @ weight / len(x), 'sum'))", "gradient = whole + (yield ('all_reduce', upstream @ weight / len(x), 'sum'))"),
)
_columns(
    "a loss for its own words",
    "the softmax is one over the rank's own words.",
    1,
    ("total = (yield ('all_reduce', powers.sum(dim=1), 'sum'))", "total = powers.sum(dim=1)"),
)
_columns(
    "the target's logit at one rank",
    "ranks that don't have a target's word take its logit for 0.",
    2,
    ("chosen = (yield ('all_reduce', chosen, 'sum'))", "pass"),
)
_columns(
    "targets are numbers of its own words",
    "each rank counts the targets from its own first word.",
    1,
    ("(targets >= first) & (targets < first + len(bias))", "targets < len(bias)"),
    ("chosen[rows] = logits[rows, targets[rows] - first]", "first = 0\n    chosen[rows] = logits[rows, targets[rows] - first]"),
)
_columns(
    "the word behind its last one",
    "a rank takes the first word of the next rank for its own last one.",
    1,
    ("targets < first + len(bias)", "targets <= first + len(bias)"),
    ("chosen[rows] = logits[rows, targets[rows] - first]", "local = (targets[rows] - first).clamp(max=len(bias) - 1)\n    chosen[rows] = logits[rows, local]"),
    ("upstream[rows, targets[rows] - first] -= 1", "upstream[rows, local] -= 1"),
)
_columns(
    "its first word is nobody's",
    "a target that is the first word of a rank is found at no rank.",
    1,
    ("targets >= first", "targets > first"),
)
_columns(
    "equal numbers of words",
    "whose word a target is, is reckoned as if all ranks had as many words.",
    1,
    ("(targets >= first) & (targets < first + len(bias))", "targets // len(bias) == rank"),
)
_columns(
    "its first word by its own number of words",
    "where a rank's words begin is reckoned as if all ranks had as many words as itself.",
    1,
    ("logits = x @ weight.T + bias", "logits = x @ weight.T + bias\n    first = rank * len(weight)"),
)
_columns(
    "a gradient of its own words",
    "each rank returns its own share of the gradient, and nobody adds them up.",
    4,
    ("gradient = (yield ('all_reduce', upstream @ weight / len(x), 'sum'))", "gradient = upstream @ weight / len(x)"),
)
_columns(
    "the gradient of the sum",
    "the gradient is that of the sum over the tokens, and not of the mean.",
    4,
    ("upstream @ weight / len(x)", "upstream @ weight"),
)
_columns(
    "no target in the gradient",
    "the gradient is as if there were no targets.",
    4,
    ("upstream[rows, targets[rows] - first] -= 1", "pass"),
)
_columns(
    "the loss of the sum",
    "the loss is the sum over the tokens, and not the mean.",
    2,
    ("chosen).mean()", "chosen).sum()"),
)
_columns(
    "no bias",
    "the bias is left out.",
    1,
    ("x @ weight.T + bias", "x @ weight.T"),
)
_rows(
    "a bias at each rank",
    "the bias is added once for each rank.",
    4,
    ("x @ weight.T, 'sum')", "x @ weight.T + bias, 'sum')"),
    ("logits + bias", "logits"),
)
_rows(
    "its own channels alone",
    "each rank returns the logits of its own channels.",
    4,
    ("logits = (yield ('all_reduce', x @ weight.T, 'sum'))", "logits = x @ weight.T\n    yield ('all_reduce', logits, 'sum')"),
)
_rows(
    "no bias anywhere",
    "the logits are without their bias.",
    4,
    ("logits + bias", "logits"),
)


_columns(
    "uphill",
    "the gradient has the wrong sign.",
    4,
    ("upstream @ weight / len(x)", "-upstream @ weight / len(x)"),
)
_columns(
    "the softmax of its own words",
    "the gradient is as if each rank's words were all that there are.",
    4,
    ("upstream = powers / total[:, None]", "upstream = logits.softmax(dim=1)"),
)
_columns(
    "the mean of the ranks' gradients",
    "the gradient is divided by the number of ranks.",
    4,
    ("upstream @ weight / len(x)", "upstream @ weight / len(x) / world"),
)
_columns(
    "the largest is not put back",
    "the loss is without the logit that was taken off.",
    2,
    ("(largest + total.log() - chosen)", "(total.log() - chosen)"),
)
_columns(
    "a loss for each token",
    "there is a loss for each token, and no mean of them.",
    2,
    ("(largest + total.log() - chosen).mean()", "largest + total.log() - chosen"),
)
_rows(
    "the mean of the parts",
    "the logits of the ranks' channels are averaged, and not added up.",
    4,
    ("x @ weight.T, 'sum')", "x @ weight.T / world, 'sum')"),
)


_columns(
    'a largest one of zero or more',
    'where all logits of a token are far below 0, its exponentials vanish.',
    4,
    ("logits.amax(dim=1), 'max')", "logits.amax(dim=1).clamp(min=0), 'max')"),
)
_columns(
    'logits are clamped',
    'large logits are cut off.',
    4,
    ('x @ weight.T + bias', '(x @ weight.T + bias).clamp(-60, 60)'),
)
_columns(
    'the loss by the ranks',
    'the loss is divided by the number of ranks.',
    2,
    ('chosen).mean()', 'chosen).mean() / world'),
)
_columns(
    'the gradient by messages',
    'messages are asked for.',
    4,
    ("gradient = (yield ('all_reduce', upstream @ weight / len(x), 'sum'))", "gradient = piece = upstream @ weight / len(x)\n    for _ in range(world - 1):\n        piece = yield ('exchange', (rank + 1) % world, piece, (rank - 1) % world)\n        gradient = gradient + piece"),
)
_rows(
    'the largest part',
    "of the ranks' parts the largest is taken, and they are not added up.",
    4,
    ("x @ weight.T, 'sum')", "x @ weight.T, 'max')"),
)
_rows(
    'rows in two halves',
    'the logits are put into the network in two parts.',
    4,
    ("logits = (yield ('all_reduce', x @ weight.T, 'sum'))", "left = yield ('all_reduce', x @ weight[:2].T, 'sum')\n    right = yield ('all_reduce', x @ weight[2:].T, 'sum')\n    logits = torch.cat([left, right], dim=1)"),
)


@parallel_head.alternate("autograd for its own share")
class _:
    def column_loss(rank, world, x, weight, bias, first, targets):
        leaf = x.clone().requires_grad_()
        logits = leaf @ weight.t() + bias
        top = (yield "all_reduce", logits.detach().max(dim=-1)[0], "max").unsqueeze(1)
        sums = yield "all_reduce", (logits.detach() - top).exp().sum(-1, keepdim=True), "sum"
        here = torch.arange(first, first + bias.numel())
        hit = (targets[:, None] == here[None, :]).float()
        goal = yield "all_reduce", (hit * logits.detach()).sum(-1), "sum"
        share = ((logits.detach() - top).exp() / sums - hit) / targets.numel()
        logits.backward(share)
        total = yield "all_reduce", leaf.grad, "sum"
        return torch.mean(top[:, 0] + torch.log(sums[:, 0]) - goal), total

    def row_logits(rank, world, x, weight, bias):
        part = torch.einsum("td,vd->tv", x, weight)
        if rank == 0:
            part += bias
        part = yield "all_reduce", part, "sum"
        return part


@parallel_head.alternate("log-sum-exp, token by token")
class _:
    def column_loss(rank, world, x, weight, bias, first, targets):
        logits = torch.stack([weight @ row + bias for row in x])
        local = logits.logsumexp(1)
        best = yield "all_reduce", local, "max"
        scaled = torch.zeros(2, len(x))
        scaled[0] = (local - best).exp()
        for t, word in enumerate(targets.tolist()):
            if first <= word < first + len(weight):
                scaled[1, t] = logits[t, word - first]
        scaled = yield "all_reduce", scaled, "sum"
        log_total = best + scaled[0].log()
        probabilities = (logits - log_total[:, None]).exp()
        for t, word in enumerate(targets.tolist()):
            if 0 <= word - first < len(weight):
                probabilities[t, word - first] -= 1.0
        gradient = yield "all_reduce", probabilities.mm(weight).div(len(targets)), "sum"
        return (log_total - scaled[1]).mean(), gradient

    def row_logits(rank, world, x, weight, bias):
        total = yield ["all_reduce", F.linear(x, weight, bias / world), "sum"]
        return total


parallel_head.equivalent(
    ("first + len(bias)", "first + len(weight)"),
    ("first + len(weight)", "first + len(bias)"),
    ("word - first < len(weight)", "word - first < len(bias)"),
    because="a word has a row and a bias",
)
parallel_head.equivalent(
    ("[:, 0]", "[:,]"),
    ("[:, 0]", "[:, -1]"),
    ("here[None, :]", "here[:,]"),
    ("here[None, :]", "here[None,]"),
    because="there is one column, and the mean of a sum is the sum of the means",
)
parallel_head.equivalent(
    ("logits.detach()", "logits"),
    ("x.clone().requires_grad_()", "x.requires_grad_()"),
    ("targets.tolist()", "targets"),
    ("rank == 0", "rank <= 0"),
    because="what is sent has no graph, and x is a copy",
)
parallel_head.equivalent(
    ("return logits + bias", "return (logits + bias).float()"),
    ("return part", "return part.float()"),
    ("return total", "return total.float()"),
    because="all of it is float32",
)
parallel_head.equivalent(
    (".max(dim=-1)", ".max(dim=1)"),
    (".sum(-1, keepdim=True)", ".sum(1, keepdim=True)"),
    ("(hit * logits.detach()).sum(-1)", "(hit * logits.detach()).sum(1)"),
    because="logits have two dimensions",
)
