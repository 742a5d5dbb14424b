"""A second bank of lab 09, written from the lesson and the released lab alone.

``RIGHT`` keep every sentence of the lab, ``WRONG`` break one each. An entry is the exercise, a name,
for a wrong one the sentence that it breaks, and edits of the lab's solution or code of its own.
"""

from __future__ import annotations

from tests.phases.bank import Bank

RIGHT = (
    ("peak", "pairs as lists", ("list(alive.items())", "[list(pair) for pair in alive.items()]")),
    (
        "faster_loss",
        "NaN for empty sentences, never seen",
        ("in_sentence.clamp(min=1)", "in_sentence"),
        ("means.sum() / (in_sentence > 0).sum()", "means.nanmean()"),
    ),
)
WRONG = (
    (
        "compare_runs",
        "the first run is a warm-up",
        "with the n values sorted",
        ("sorted(runs)", "sorted(runs[1:] or runs)"),
    ),
    (
        "compare_runs",
        "whole milliseconds",
        "the quantile of share p",
        ("sorted(runs), []", "sorted(round(1000 * run) / 1000 for run in runs), []"),
    ),
    (
        "compare_runs",
        "in half precision",
        "the quantile of share p",
        ("sorted(runs), []", "sorted(torch.tensor(runs).half().tolist()), []"),
    ),
    (
        "compare_runs",
        "something against a division by 0",
        "the median before by the median after",
        ("old[1] / new[1]", "old[1] / (new[1] + 1e-6)"),
    ),
    (
        "lanes",
        "0 is no tie",
        "`None` means that there is no such tie",
        (" and e.correlation is not None", " and e.correlation"),
    ),
    (
        "lanes",
        "device time as a union",
        "the sum of the durations of all device events",
        ("    launched = {}\n", "    launched, seen = {}, Counter()\n"),
        ("for work in events:", "for work in sorted(events, key=lambda e: e.start):"),
        (
            "device + work.duration",
            "device + max(0, work.end - max(work.start, seen[event.name]))\n"
            "                seen[event.name] = max(seen[event.name], work.end)",
        ),
    ),
    (
        "bottleneck",
        "a name that begins with it",
        "a range with `DataLoader` in its name",
        ('"DataLoader" in event.name', 'event.name.startswith("enumerate(DataLoader)")'),
    ),
    (
        "bottleneck",
        "copies by their name",
        "else, a copy runs there",
        (
            "{event.kind for event in now}",
            '{e.kind for e in now if e.kind != "copy" or "Memcpy" in e.name}',
        ),
    ),
    (
        "bottleneck",
        "one thread of the host",
        "the host is in an op or a call",
        ("<= begin < event.end]", '<= begin < event.end and event.lane != "cpu 2"]'),
    ),
    (
        "bottleneck",
        "copies added up",
        "each moment is put to one account",
        (
            "    return max",
            '    accounts["copy"] = sum(e.duration for e in events if e.kind == "copy")\n    return max',
        ),
    ),
    (
        "peak",
        "by the clock",
        "in the order in which they happened",
        ("in allocations:", "in sorted(allocations, key=lambda block: (block.time, block.bytes)):"),
    ),
    (
        "faster_loss",
        "a zero of the host",
        "must be made on the device of the logits",
        (
            "losses.view_as(targets).sum(1)",
            "torch.where(counts, losses.view_as(targets), torch.tensor(0.0)).sum(1)",
        ),
    ),
    (
        "faster_loss",
        "places of the host",
        "must be made on the device of the logits",
        (
            '    losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")\n',
            "    b, t = torch.arange(logits.shape[0])[:, None], torch.arange(logits.shape[1])\n"
            "    losses = (logits.logsumexp(-1) - logits[b, t, targets.clamp(min=0)]) * counts\n",
        ),
    ),
    (
        "faster_loss",
        "a backward for one upstream",
        "its gradient is that of `slow_loss`",
        """
class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets, weights):
        logs = logits.log_softmax(-1)
        ctx.save_for_backward(logs, targets, weights)
        return -(logs.gather(-1, targets)[..., 0] * weights).sum()

    @staticmethod
    def backward(ctx, grad_output):
        logs, targets, weights = ctx.saved_tensors
        p = logs.exp()
        p.scatter_add_(-1, targets, -torch.ones_like(p[..., :1]))
        return p * weights[..., None], None, None


def faster_loss(logits, targets):
    mask = targets != -100
    words = mask.sum(1, keepdim=True)
    weights = mask / words.clamp(min=1) / (words > 0).sum()
    right = (logits.detach().argmax(-1) == targets) & mask
    return Loss.apply(logits, targets.clamp(min=0)[..., None], weights), right.sum() / mask.sum()
""",
    ),
    (
        "first_bad",
        "fine by the sum",
        "whether the input of that module was finite",
        ("args[0].isfinite().all()", "args[0].sum().isfinite()"),
    ),
    (
        "first_bad",
        "one hook for all that stays",
        "no hook is left, neither on it nor one for all modules",
        (
            "    handles = [part.register_forward_hook(watch(name)) for name, part in model.named_modules()]\n",
            "    names, handles = {part: name for name, part in model.named_modules()}, []\n"
            "    torch.nn.modules.module.register_module_forward_hook(\n"
            "        lambda m, args, out: watch(names[m])(m, args, out) if m in names else None)\n",
        ),
    ),
    (
        "first_bad",
        "a hook of the backward that stays",
        "no hook is left, neither on it nor one for all modules",
        (
            "    handles = [part",
            "    model.register_full_backward_hook(lambda *args: None)\n    handles = [part",
        ),
    ),
    (
        "first_bad",
        "by way of float32",
        "1/(2√x) where x is positive, however small",
        (
            "root = torch.where(low, 1, x).sqrt()",
            "root = torch.where(low, 1, x.float()).sqrt().to(x.dtype)",
        ),
    ),
    (
        "first_bad",
        "not below the smallest float32",
        "1/(2√x) where x is positive, however small",
        ("root = torch.where(low, 1, x).sqrt()", "root = x.clamp(min=1e-45).sqrt()"),
    ),
    (
        "faster_loss",
        "two that count or more",
        "the share of all targets that count",
        (
            "& counts).sum() / counts.sum()",
            "& counts).sum() / counts.sum().clamp(min=2)",
        ),
    ),
    (
        "worse_in_half",
        "a difference of counts",
        "how many are finite in float32 and not in float16",
        ("int(overflowed.sum())", "int((~half.isfinite()).sum() - (~right.isfinite()).sum())"),
    ),
    (
        "worse_in_half",
        "zeros, a difference of counts",
        "how many are 0 in float16 and not in float32",
        ("int(vanished.sum())", "int((half == 0).sum() - (right == 0).sum())"),
    ),
    (
        "worse_in_half",
        "NaN among the others",
        "that are finite and not 0 in float32",
        ("rest = right.isfinite() &", "rest = ~right.isinf() &"),
    ),
    (
        "worse_in_half",
        "rows, not numbers",
        "how many are 0 in float16",
        ("int(vanished.sum())", "len(vanished.nonzero()[:, :1].unique())"),
    ),
    (
        "report",
        "the first row",
        'the row of "step"',
        ('table["step"]', "next(iter(table.values()))"),
    ),
)


def add_to(bank: Bank) -> None:
    """Add all of them to the bank of the lab."""
    for exercise, name, *edits in RIGHT:
        bank.right(exercise, name, *edits)
    for exercise, name, breaks, *edits in WRONG:
        code = "".join(edit for edit in edits if isinstance(edit, str))
        bank.wrong(exercise, name, *(() if code else edits), code=code, breaks=breaks)
