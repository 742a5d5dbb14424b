"""A second bank of lab 07, written from the lesson and the released lab alone: what it found.

A wrong answer is an edit of a right one, ``BASE``, and names the sentence of the lab that it breaks.
"""

from __future__ import annotations

from tests.phases.bank import Bank

BASE = {
    "batches": """
def steps(n, batch_size, epochs, drop_last):
    each = n // batch_size if drop_last else -(-n // batch_size)
    return each * epochs


def batches(n, batch_size, seed, drop_last):
    g = None if seed is None else torch.Generator().manual_seed(seed)
    end = n - n % batch_size if drop_last else n
    while True:
        order = range(n) if g is None else torch.randperm(n, generator=g).tolist()
        for start in range(0, end, batch_size):
            yield list(order[start : start + batch_size])
""",
    "TokenWindows": """
class TokenWindows(Dataset):
    def __init__(self, tokens, context, stride, pad):
        self.tokens, self.context, self.stride, self.pad = tokens, context, stride, pad

    def __len__(self):
        return -(-(len(self.tokens) - 1) // self.stride)

    def __getitem__(self, index):
        if index >= len(self):
            raise IndexError(index)
        start = index * self.stride
        stop = min(start + self.context, len(self.tokens) - 1)
        return self.tokens[start:stop].clone(), self.tokens[start + 1 : stop + 1].clone()

    def collate(self, items):
        longest = max(len(one) for one, _ in items)
        inputs = torch.full((len(items), longest), self.pad)
        targets = torch.full((len(items), longest), -100)
        for row, (one, other) in enumerate(items):
            inputs[row, : len(one)] = one
            targets[row, : len(other)] = other
        return inputs, targets
""",
    "mended_fit": """
def mended_fit(x, y, steps, lr):
    points, w, b, losses = x[:, 0], 0.0, 0.0, []
    for _ in range(steps):
        off = points * w + b - y
        losses.append(off.square().mean().item())
        w, b = w - lr * 2 * (off * points).mean().item(), b - lr * 2 * off.mean().item()
    return w, b, losses
""",
    "optimizers": """
def sgd(params, grads, lr, momentum, weight_decay):
    params, memory = list(params), [None] * len(params)
    for step in grads:
        for i, g in enumerate(step):
            if g is None:
                continue
            d = g + weight_decay * params[i]
            memory[i] = d if memory[i] is None else momentum * memory[i] + d
            params[i] = params[i] - lr * memory[i]
    return params


def adamw(params, grads, lr, betas, eps, weight_decay):
    params, t = list(params), [0] * len(params)
    m, v = [torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params]
    for step in grads:
        for i, g in enumerate(step):
            if g is None:
                continue
            t[i] += 1
            p = params[i] - lr * weight_decay * params[i]
            m[i] = betas[0] * m[i] + (1 - betas[0]) * g
            v[i] = betas[1] * v[i] + (1 - betas[1]) * g**2
            m_hat = m[i] / (1 - betas[0] ** t[i])
            v_hat = v[i] / (1 - betas[1] ** t[i])
            params[i] = p - lr * m_hat / (v_hat.sqrt() + eps)
    return params
""",
    "schedule": """
def lr_at(step, steps, warmup, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    if step >= steps - 1:
        return floor
    t = (step - warmup) / (steps - 1 - warmup)
    return floor + (peak - floor) * (1 + math.cos(math.pi * t)) / 2


def clip(grads, max_norm):
    there = [g for g in grads if g is not None]
    norm = math.sqrt(sum(g.square().sum().item() for g in there))
    if not math.isfinite(norm):
        return norm, None
    factor = max_norm / norm if norm > max_norm else 1.0
    return norm, [None if g is None else g * factor for g in grads]
""",
    "accumulate": """
def accumulate(model, parts):
    counted = sum(int((targets != -100).sum()) for _, targets in parts)
    model.zero_grad()
    total = 0.0
    for x, targets in parts:
        loss = F.cross_entropy(model(x), targets, reduction="sum") / counted
        loss.backward()
        total += loss.item()
    return total
""",
    "Scaler": """
class Scaler:
    def __init__(self, scale, growth, backoff, interval):
        self.scale, self.growth, self.backoff, self.interval = scale, growth, backoff, interval
        self.good = 0

    def scaled(self, loss):
        return loss * self.scale

    def unscaled(self, grads):
        finite = all(torch.isfinite(g).all() for g in grads if g is not None)
        if not finite:
            self.scale, self.good = self.scale * self.backoff, 0
            return None
        divided = [None if g is None else g.float() / self.scale for g in grads]
        self.good += 1
        if self.good == self.interval:
            self.scale, self.good = self.scale * self.growth, 0
        return divided
""",
}

RIGHT = [
    (
        "batches",
        "torch's samplers",
        """
from itertools import chain

from torch.utils.data import BatchSampler


def steps(n: int, batch_size: int, epochs: int, drop_last: bool) -> int:
    return epochs * len(BatchSampler(range(n), batch_size, drop_last))


def epochs_of(n, seed):
    g = torch.Generator()
    if seed is not None:
        g.manual_seed(seed)
    while True:
        yield range(n) if seed is None else torch.randperm(n, generator=g).tolist()


def batches(n: int, batch_size: int, seed: int | None, drop_last: bool):
    return chain.from_iterable(BatchSampler(o, batch_size, drop_last) for o in epochs_of(n, seed))
""",
    ),
    (
        "optimizers",
        "sums over the past",
        """
def past(params, grads, i):
    return [step[i] for step in grads if step[i] is not None]


def sgd(params, grads, lr, momentum, weight_decay):
    end = []
    for i, p in enumerate(params):
        sums = []
        for g in past(params, grads, i):
            sums.append(g + weight_decay * p)
            p = p - lr * sum(momentum ** (len(sums) - 1 - k) * d for k, d in enumerate(sums))
        end.append(p)
    return end


def mean(values, beta):
    t = len(values)
    weights = [beta ** (t - 1 - k) for k in range(t)]
    return sum(w * value for w, value in zip(weights, values)) / sum(weights)


def adamw(params, grads, lr, betas, eps, weight_decay):
    end = []
    for i, p in enumerate(params):
        gs = past(params, grads, i)
        for t in range(1, len(gs) + 1):
            root = mean([g * g for g in gs[:t]], betas[1]) ** 0.5
            p = p * (1 - lr * weight_decay) - lr * mean(gs[:t], betas[0]) / (root + eps)
        end.append(p)
    return end
""",
    ),
    (
        "accumulate",
        "gradients asked for, and shares",
        """
def accumulate(model, parts):
    parameters = list(model.parameters())
    counts = [targets.ne(-100).sum().item() for _, targets in parts]
    found, mean = [torch.zeros_like(p) for p in parameters], 0.0
    for (x, targets), count in zip(parts, counts):
        with torch.set_grad_enabled(count > 0):
            logits = model(x)
        if count == 0:
            continue
        share = count / sum(counts)
        loss = share * F.cross_entropy(logits, targets)
        for into, gradient in zip(found, torch.autograd.grad(loss, parameters)):
            into += gradient
        mean += loss.item()
    for parameter, gradient in zip(parameters, found):
        parameter.grad = gradient
    return mean
""",
    ),
    (
        "checkpoint",
        "weights and memories by hand",
        """
NAMES = "exp_avg", "exp_avg_sq", "step"


@torch.no_grad()
def checkpoint(trainer):
    rows = []
    for p in trainer.model.parameters():
        memory = trainer.optimizer.state.get(p, {})
        rows.append((p.clone(), {name: memory[name].clone() for name in NAMES if name in memory}))
    return {
        "rows": rows,
        "steps": trainer.schedule.last_epoch,
        "rest": trainer.order.tolist()[trainer.position :],
        "dice": (trainer.generator.get_state(), torch.get_rng_state()),
    }


@torch.no_grad()
def resume(trainer, saved):
    trainer.optimizer.state.clear()
    for p, (value, memory) in zip(trainer.model.parameters(), saved["rows"]):
        p.copy_(value)
        if memory:
            trainer.optimizer.state[p] = {name: memory[name].clone() for name in NAMES}
    trainer.schedule.last_epoch = saved["steps"]
    for group in trainer.optimizer.param_groups:
        group["lr"] = group["initial_lr"] * 0.9 ** saved["steps"]
    trainer.order, trainer.position = torch.tensor(saved["rest"], dtype=torch.int64), 0
    trainer.generator.set_state(saved["dice"][0])
    torch.set_rng_state(saved["dice"][1])
""",
    ),
]

WRONG = [
    (
        "batches",
        "rounded up by adding 0.99",
        "The last batch of an epoch may be smaller",
        "-(-n // batch_size)",
        "int(n / batch_size + 0.99)",
    ),
    (
        "batches",
        "a loader in order",
        "torch's global generator is neither asked nor seeded",
        "    end = n",
        "    if seed is None:\n        while True:\n            yield from DataLoader(range(n), batch_size, drop_last=drop_last, collate_fn=list)\n    end = n",
    ),
    (
        "TokenWindows",
        "one text for all datasets",
        "TokenWindows(tokens, context, stride, pad), where `tokens` is a tensor",
        "self.tokens, self.context, self.stride, self.pad = tokens, context, stride, pad",
        "TokenWindows.tokens = tokens\n        self.context, self.stride, self.pad = context, stride, pad",
    ),
    (
        "TokenWindows",
        "read from the storage's beginning",
        "the tokens from position i * stride on",
        "return self.tokens[start:stop].clone(), self.tokens[start + 1 : stop + 1].clone()",
        "pair = [torch.as_strided(self.tokens, (stop - start,), (1,), at) for at in (start, start + 1)]\n        return pair[0].clone(), pair[1].clone()",
    ),
    (
        "TokenWindows",
        "targets masked where the inputs are padding",
        "`pad` may also be a word of the text like any other",
        "        return inputs, targets",
        "        targets[:, 1:][(inputs[:, 1:] == self.pad) & (targets[:, :-1] == self.pad)] = -100\n        return inputs, targets",
    ),
    (
        "mended_fit",
        "stops when nothing is left to learn",
        "a list of floats, one for each step",
        "        w, b = w",
        "        if losses[-1] < 1e-9:\n            break\n        w, b = w",
    ),
    (
        "mended_fit",
        "losses that are tensors",
        "a list of floats",
        "losses.append(off.square().mean().item())",
        "losses.append(off.square().mean())",
    ),
    (
        "optimizers",
        "one memory for a shape",
        "For each parameter on its own",
        "params, memory = list(params), [None] * len(params)",
        "params, memory = list(params), {}",
        "            memory[i] = d if memory[i] is None else momentum * memory[i] + d\n",
        "            s = g.shape\n            memory[s] = d if s not in memory else momentum * memory[s] + d\n",
        "lr * memory[i]",
        "lr * memory[s]",
    ),
    (
        "optimizers",
        "no gradient where it is 0",
        "Where a gradient is `None`, the parameter is not touched",
        "if g is None:",
        "if g is None or not g.any():",
    ),
    (
        "optimizers",
        "memories in float32",
        "Parameters have any shape, and are float32 or float64",
        "[torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params]",
        "[torch.zeros(p.shape) for p in params], [torch.zeros(p.shape) for p in params]",
        "            m[i] = betas[0] * m[i] + (1 - betas[0]) * g\n            v[i] = betas[1] * v[i] + (1 - betas[1]) * g**2\n",
        "            m[i].mul_(betas[0]).add_((1 - betas[0]) * g)\n            v[i].mul_(betas[1]).add_((1 - betas[1]) * g**2)\n",
    ),
    (
        "optimizers",
        "the longest step of its parameters",
        "its own steps are not counted on",
        "1 - betas[1] ** t[i]",
        "1 - betas[1] ** max(t)",
    ),
    (
        "schedule",
        "in the given list",
        "It changes nothing that it is given, neither a tensor nor the list",
        "    return norm, [None if g is None else g * factor for g in grads]",
        "    for i, g in enumerate(grads):\n        if g is not None:\n            grads[i] = g * factor\n    return norm, grads",
    ),
    (
        "accumulate",
        "a graph that is left standing",
        "let only one part's graph be alive at a time",
        "        loss = F.cross_entropy(model(x), targets, reduction=\"sum\") / counted\n",
        "        loss = F.cross_entropy(model(x), targets, reduction=\"sum\") / counted\n        if loss == 0:\n            continue\n",
    ),
    (
        "Scaler",
        "no more than it began with",
        "After `interval` good steps in a row it is multiplied by `growth`",
        "        self.good = 0\n\n",
        "        self.good, self.most = 0, max(scale, 2.0**15)\n\n",
        "self.scale * self.growth, 0",
        "min(self.most, self.scale * self.growth), 0",
    ),
    (
        "Scaler",
        "the loss without its graph",
        "the loss is multiplied by a large number before `backward`",
        "return loss * self.scale",
        "return torch.tensor(loss.item() * self.scale)",
    ),
    (
        "Scaler",
        "nothing to do at a scale of 1",
        "It returns a list of them in float32",
        "        divided =",
        "        if self.scale == 1:\n            self.good += 1\n            return list(grads)\n        divided =",
    ),
]


def add_to(bank: Bank) -> None:
    """Add all of them to the bank of the lab."""
    for exercise, name, code in RIGHT:
        bank.right(exercise, name, code=code)
    for exercise, name, breaks, *edits in WRONG:
        cell = BASE[exercise]
        for old, new in zip(edits[::2], edits[1::2]):
            assert old in cell, f"{exercise}, {name}: {old!r}"
            cell = cell.replace(old, new)
        bank.wrong(exercise, name, code=cell, breaks=breaks)
