"""Answers to lab 07, written blind: from the learner's notebook, lesson and `utils/` alone.

A wrong answer is the first right one with an edit (or a cell of its own), and names the sentence of
the lab's text that it breaks.
"""

from tests.phases import bank_07_second
from tests.phases.bank import CODE, Bank

RIGHT: dict[str, dict[str, str]] = {}
WRONG: dict[str, list[tuple]] = {}

# --- 1 · Which rows, in which order? -------------------------------------------------------------

RIGHT["batches"] = {
    "one loop over slices": '''
def steps(n, batch_size, epochs, drop_last):
    per_epoch = n // batch_size if drop_last else -(-n // batch_size)
    return epochs * per_epoch


def batches(n, batch_size, seed, drop_last):
    if seed is not None:
        g = torch.Generator()
        g.manual_seed(seed)
    while True:
        order = range(n) if seed is None else torch.randperm(n, generator=g).tolist()
        for start in range(0, n, batch_size):
            rows = list(order[start : start + batch_size])
            if drop_last and len(rows) < batch_size:
                break
            yield rows
''',
    "two generators, tensors split": '''
def steps(n, batch_size, epochs, drop_last):
    whole, rest = divmod(n, batch_size)
    return sum(whole + (rest > 0 and not drop_last) for _ in range(epochs))


def in_order(n, batch_size, drop_last):
    first = 0
    while True:
        last = min(first + batch_size, n)
        if last - first == batch_size or (last > first and not drop_last):
            yield [i for i in range(first, last)]
        first = last if last < n else 0


def shuffled(n, batch_size, seed, drop_last):
    g = torch.Generator().manual_seed(seed)
    while True:
        for rows in torch.randperm(n, generator=g).split(batch_size):
            if len(rows) == batch_size or not drop_last:
                yield rows.tolist()


def batches(n, batch_size, seed, drop_last):
    if seed is None:
        yield from in_order(n, batch_size, drop_last)
    else:
        yield from shuffled(n, batch_size, seed, drop_last)
''',
}
WRONG["batches"] = [
    ("rounded after the epochs", "No batch reaches over the end of an epoch",
     "    per_epoch = n // batch_size if drop_last else -(-n // batch_size)\n    return epochs * per_epoch\n",
     "    return n * epochs // batch_size if drop_last else -(-n * epochs // batch_size)\n"),
    ("always one step more", "There may be no items (or none left over)", "-(-n // batch_size)", "n // batch_size + 1"),
    ("at least one step", "There may be no items, and fewer than a batch",
     "return epochs * per_epoch", "return epochs * max(1, per_epoch)"),
    ("a float's ceiling", "`n` may be as large as 10¹⁵ (counts are whole numbers)",
     "-(-n // batch_size)", "round(n / batch_size + 0.5)"),
    ("each epoch is seeded anew", "which you seed with `seed` once",
     "    while True:\n", "    while True:\n        if seed is not None:\n            g.manual_seed(seed)\n"),
    ("one order for all epochs", "each epoch draws anew from it",
     "    while True:\n        order = range(n) if seed is None else torch.randperm(n, generator=g).tolist()\n",
     "    order = range(n) if seed is None else torch.randperm(n, generator=g).tolist()\n    while True:\n"),
    ("the global dice", "torch's global generator is neither asked nor seeded",
     "        g = torch.Generator()\n        g.manual_seed(seed)\n",
     "        g = torch.random.default_generator\n        g.manual_seed(seed)\n"),
    ("a seed of 0 is no seed", "Where `seed` is `None`",
     "    if seed is not None:", "    if seed:", "if seed is None else", "if not seed else"),
    ("only one epoch", "a generator without an end", "    while True:", "    for _ in range(1):"),
    ("a generator that all share", "a `torch.Generator` of your own", CODE, '''
shared = torch.Generator()


def steps(n, batch_size, epochs, drop_last):
    return epochs * (n // batch_size if drop_last else math.ceil(n / batch_size))


def batches(n, batch_size, seed, drop_last):
    if seed is not None:
        shared.manual_seed(seed)
    while True:
        order = range(n) if seed is None else torch.randperm(n, generator=shared).tolist()
        for start in range(0, n - batch_size + 1 if drop_last else n, batch_size):
            yield list(order[start : start + batch_size])
'''),
    ("a whole last batch is dropped", "with `drop_last`, such a batch (a smaller one) is left out",
     "if drop_last and len(rows) < batch_size:", "if drop_last and start and start + batch_size >= n:"),
]

# --- 2 · Windows over a text ---------------------------------------------------------------------

RIGHT["TokenWindows"] = {
    "slices and clones": '''
class TokenWindows(Dataset):
    def __init__(self, tokens, context, stride, pad):
        self.tokens, self.context, self.stride, self.pad = tokens, context, stride, pad

    def __len__(self):
        return len(range(0, len(self.tokens) - 1, self.stride))

    def __getitem__(self, index):
        if index >= len(self):
            raise IndexError(index)
        start = index * self.stride
        end = min(start + self.context, len(self.tokens) - 1)
        return self.tokens[start:end].clone(), self.tokens[start + 1 : end + 1].clone()

    def collate(self, items):
        longest = max(len(x) for x, _ in items)
        inputs = torch.full((len(items), longest), self.pad)
        targets = torch.full((len(items), longest), -100)
        for row, (x, y) in enumerate(items):
            inputs[row, : len(x)] = x
            targets[row, : len(y)] = y
        return inputs, targets
''',
    "starts in a list, torch's own padding": '''
from torch.nn.utils.rnn import pad_sequence


class TokenWindows(Dataset):
    def __init__(self, tokens: torch.Tensor, context: int, stride: int, pad: int):
        self.words = tokens.tolist()
        self.starts = list(range(0, len(self.words) - 1, stride))
        self.context = context
        self.pad = pad

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int):
        start = self.starts[index]
        piece = self.words[start : start + self.context + 1]
        return torch.tensor(piece[:-1]), torch.tensor(piece[1:])

    def collate(self, items):
        inputs, targets = zip(*items)
        return (
            pad_sequence(list(inputs), batch_first=True, padding_value=self.pad),
            pad_sequence(list(targets), batch_first=True, padding_value=-100),
        )
''',
}
WRONG["TokenWindows"] = [
    ("whole windows only", "near the end a window is shorter",
     "len(range(0, len(self.tokens) - 1, self.stride))",
     "max(0, (len(self.tokens) - 1 - self.context) // self.stride + 1)"),
    ("a window without a target", "an item for each i whose window has at least one target",
     "len(range(0, len(self.tokens) - 1, self.stride))", "len(range(0, len(self.tokens), self.stride))"),
    ("the length is rounded down", "an item for each i whose window has at least one target",
     "len(range(0, len(self.tokens) - 1, self.stride))", "max(1, (len(self.tokens) - 1) // self.stride)"),
    ("the stride is the context", "from position `i * stride` on", "index * self.stride", "index * self.context"),
    ("nothing past the end is noticed", "an index beyond them raises `IndexError`",
     "        if index >= len(self):\n            raise IndexError(index)\n", ""),
    ("one past the end only", "an index beyond them raises `IndexError`", "if index >= len(self):", "if index == len(self):"),
    ("views of the tokens", "changes nothing else: neither the tokens",
     "self.tokens[start:end].clone(), self.tokens[start + 1 : end + 1].clone()",
     "self.tokens[start:end], self.tokens[start + 1 : end + 1]"),
    ("the halves share a copy", "nor the other half of the pair",
     "return self.tokens[start:end].clone(), self.tokens[start + 1 : end + 1].clone()",
     "piece = self.tokens[start : end + 1].clone()\n        return piece[:-1], piece[1:]"),
    ("one copy, made at the beginning", "nor another item",
     "= tokens, context, stride, pad", "= tokens.clone(), context, stride, pad",
     "self.tokens[start:end].clone(), self.tokens[start + 1 : end + 1].clone()",
     "self.tokens[start:end], self.tokens[start + 1 : end + 1]"),
    ("only the inputs are copied", "changes nothing else: neither the tokens",
     "self.tokens[start + 1 : end + 1].clone()", "self.tokens[start + 1 : end + 1]"),
    ("targets padded with pad", "targets with -100", "torch.full((len(items), longest), -100)",
     "torch.full((len(items), longest), self.pad)"),
    ("what looks like padding is ignored", "`pad` may also be a word of the text like any other",
     "        return inputs, targets\n", "        targets[targets == self.pad] = -100\n        return inputs, targets\n"),
    ("as wide as the context", "T is the longest length among them",
     "longest = max(len(x) for x, _ in items)", "longest = self.context"),
    ("filled up on the left", "On the right, inputs are filled up",
     "inputs[row, : len(x)] = x", "inputs[row, longest - len(x) :] = x",
     "targets[row, : len(y)] = y", "targets[row, longest - len(y) :] = y"),
]

# --- 3 · Five lines, five mistakes ---------------------------------------------------------------

RIGHT["mended_fit"] = {
    "the five lines": '''
def mended_fit(x, y, steps, lr):
    w = torch.zeros(1, requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([w, b], lr=lr)
    losses = []
    for _ in range(steps):
        prediction = (x * w + b)[:, 0]
        loss = (prediction - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return w.item(), b.item(), losses
''',
    "gradients on paper": '''
def mended_fit(x, y, steps, lr):
    points = [(float(p), float(q)) for p, q in zip(x.flatten(), y)]
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        errors = [w * p + b - q for p, q in points]
        losses.append(sum(e * e for e in errors) / len(errors))
        dw = 2 * sum(e * p for e, (p, _) in zip(errors, points)) / len(points)
        db = 2 * sum(errors) / len(points)
        w, b = w - lr * dw, b - lr * db
    return w, b, losses
''',
}
WRONG["mended_fit"] = [
    ("each against each", "`x` is (N, 1), `y` is (N,)", "(x * w + b)[:, 0]", "x * w + b"),
    ("gradients add up", "gradient descent", "        optimizer.zero_grad()\n", ""),
    ("no intercept", "fits a line y = w·x + b", "SGD([w, b]", "SGD([w]"),
    ("a step late", "what one step does from w = b = 0",
     "        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n",
     "        optimizer.step()\n        optimizer.zero_grad()\n        loss.backward()\n"),
    ("forgotten before the step", "gradient descent",
     "        optimizer.zero_grad()\n        loss.backward()\n", "        loss.backward()\n        optimizer.zero_grad()\n"),
    ("tensors", "a list of floats", "losses.append(loss.item())", "losses.append(loss.detach())"),
    ("the loss after the step", "the loss that the step found, before it changed anything",
     "losses.append(loss.item())", "losses.append(((x * w + b)[:, 0] - y).square().mean().item())"),
    ("the sum of the squares", "the mean of the squared errors", ".square().mean()\n        optimizer", ".square().sum()\n        optimizer"),
    ("half of the square", "the mean of the squared errors", ".square().mean()", ".square().mean() / 2"),
    ("the last loss twice", "one for each step", "    return w.item()", "    losses.append(((x * w + b)[:, 0] - y).square().mean().item())\n    return w.item()"),
]

# --- 4 · Two optimizers by hand ------------------------------------------------------------------

RIGHT["optimizers"] = {
    "lists of memories": '''
def sgd(params, grads, lr, momentum, weight_decay):
    params = [p.clone() for p in params]
    memory = [None] * len(params)
    for step in grads:
        for i, g in enumerate(step):
            if g is None:
                continue
            g = g + weight_decay * params[i]
            memory[i] = g if memory[i] is None else momentum * memory[i] + g
            params[i] = params[i] - lr * memory[i]
    return params


def adamw(params, grads, lr, betas, eps, weight_decay):
    params = [p.clone() for p in params]
    m = [torch.zeros_like(p) for p in params]
    v = [torch.zeros_like(p) for p in params]
    t = [0] * len(params)
    for step in grads:
        for i, g in enumerate(step):
            if g is None:
                continue
            t[i] += 1
            params[i] = params[i] - lr * weight_decay * params[i]
            m[i] = betas[0] * m[i] + (1 - betas[0]) * g
            v[i] = betas[1] * v[i] + (1 - betas[1]) * g**2
            m_hat = m[i] / (1 - betas[0] ** t[i])
            v_hat = v[i] / (1 - betas[1] ** t[i])
            params[i] = params[i] - lr * m_hat / (v_hat.sqrt() + eps)
    return params
''',
    "one parameter after the other, in place on clones": '''
def sgd(params, grads, lr, momentum, weight_decay):
    after = []
    for p, history in zip(params, zip(*grads) if grads else [()] * len(params)):
        p, memory = p.detach().clone(), 0
        for g in history:
            if g is not None:
                memory = momentum * memory + g.add(p, alpha=weight_decay)
                p.sub_(memory, alpha=lr)
        after.append(p)
    return after


def adamw(params, grads, lr, betas, eps, weight_decay):
    one, two = betas
    after = []
    for i, p in enumerate(params):
        p = p.detach().clone()
        m, v = torch.zeros_like(p), torch.zeros_like(p)
        seen = [step[i] for step in grads if step[i] is not None]
        for t, g in enumerate(seen, start=1):
            p.mul_(1 - lr * weight_decay)
            m.lerp_(g, 1 - one)
            v.mul_(two).addcmul_(g, g, value=1 - two)
            p.addcdiv_(m, (v / (1 - two**t)).sqrt() + eps, value=-lr / (1 - one**t))
        after.append(p)
    return after
''',
}
WRONG["optimizers"] = [
    ("dampened", "the memory is `momentum` times the memory before, plus that sum",
     "momentum * memory[i] + g", "momentum * memory[i] + (1 - momentum) * g"),
    ("the first memory is dampened", "In a parameter's first step its memory is that sum",
     "g if memory[i] is None else", "(1 - momentum) * g if memory[i] is None else"),
    ("SGD's decay beside the memory", "adds `weight_decay * p` to g",
     "            g = g + weight_decay * params[i]\n            memory", "            params[i] = params[i] - lr * weight_decay * params[i]\n            memory"),
    ("Nesterov", "p loses `lr` times the memory", "params[i] - lr * memory[i]", "params[i] - lr * (g + momentum * memory[i])"),
    ("Adam, not AdamW", "takes `lr * weight_decay * p` off p",
     "            params[i] = params[i] - lr * weight_decay * params[i]\n", "            g = g + weight_decay * params[i]\n"),
    ("decay without lr", "takes `lr * weight_decay * p` off p", "lr * weight_decay * params[i]", "weight_decay * params[i]"),
    ("decay at the end", "First the decay: it takes `lr * weight_decay * p` off p; then p loses ...",
     "            params[i] = params[i] - lr * weight_decay * params[i]\n", "",
     "            params[i] = params[i] - lr * m_hat / (v_hat.sqrt() + eps)\n",
     "            params[i] = params[i] - lr * m_hat / (v_hat.sqrt() + eps)\n            params[i] = params[i] * (1 - lr * weight_decay)\n"),
    ("no correction", "either is divided by 1 - βᵗ",
     "m[i] / (1 - betas[0] ** t[i])", "m[i]", "v[i] / (1 - betas[1] ** t[i])", "v[i]"),
    ("corrected memories are kept", "for which the memories stay as they are",
     "m_hat = m[i] /", "m_hat = m[i] = m[i] /", "v_hat = v[i] /", "v_hat = v[i] = v[i] /"),
    ("eps under the root", "divided by √v̂ + `eps`", "(v_hat.sqrt() + eps)", "(v_hat + eps).sqrt()"),
    ("steps counted from 0", "counted from 1", "            t[i] += 1\n", "",
     "betas[0] ** t[i])", "betas[0] ** max(1, t[i]))", "betas[1] ** t[i])", "betas[1] ** max(1, t[i]))",
     "            params[i] = params[i] - lr * m_hat / (v_hat.sqrt() + eps)\n",
     "            params[i] = params[i] - lr * m_hat / (v_hat.sqrt() + eps)\n            t[i] += 1\n"),
    ("one count for all", "its own steps are not counted on",
     "            t[i] += 1\n", "", "    for step in grads:\n        for i, g in enumerate(step):\n            if g is None:\n                continue\n            params[i] = params[i] - lr * weight",
     "    for now, step in enumerate(grads, 1):\n        t = [now] * len(params)\n        for i, g in enumerate(step):\n            if g is None:\n                continue\n            params[i] = params[i] - lr * weight"),
    ("None is a gradient of zeros in SGD", "the parameter is not touched in that step, its memory is not",
     "            if g is None:\n                continue\n            g = g + weight", "            g = torch.zeros_like(params[i]) if g is None else g\n            g = g + weight"),
    ("decayed without a gradient", "the parameter is not touched in that step",
     "            if g is None:\n                continue\n            t[i] += 1\n            params[i] = params[i] - lr * weight_decay * params[i]\n",
     "            params[i] = params[i] - lr * weight_decay * params[i]\n            if g is None:\n                continue\n            t[i] += 1\n"),
    ("written into what was given", "change none of the tensors that they are given",
     "    params = [p.clone() for p in params]\n    memory", "    params = list(params)\n    memory",
     "            params[i] = params[i] - lr * memory[i]", "            params[i] -= lr * memory[i]"),
]

# --- 5 · How large a step? -----------------------------------------------------------------------

RIGHT["schedule"] = {
    "as hinted": '''
def lr_at(step, steps, warmup, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    if step >= steps - 1:
        return floor
    t = (step - warmup) / (steps - 1 - warmup)
    return floor + (peak - floor) * (1 + math.cos(math.pi * t)) / 2


def clip(grads, max_norm):
    there = [g for g in grads if g is not None]
    norm = math.sqrt(sum(g.double().square().sum().item() for g in there))
    if not math.isfinite(norm):
        return norm, None
    factor = 1.0 if norm <= max_norm else max_norm / norm
    return norm, [None if g is None else g * factor for g in grads]
''',
    "one formula, one long vector": '''
def lr_at(step: int, steps: int, warmup: int, peak: float, floor: float) -> float:
    down = steps - 1 - warmup
    past = min(max(step - warmup, 0), down)
    cosine = floor + 0.5 * (peak - floor) * (1.0 + math.cos(past / down * math.pi))
    return min((step + 1) / warmup, 1.0) * peak if warmup and step < warmup else cosine


def clip(grads: list, max_norm: float):
    flat = torch.cat([torch.zeros(1)] + [g.reshape(-1) for g in grads if g is not None])
    norm = torch.linalg.vector_norm(flat)
    if not norm.isfinite():
        return norm.item(), None
    if norm > max_norm:
        grads = [g if g is None else g * (max_norm / norm) for g in grads]
    return norm.item(), grads
''',
    "torch's norm of norms": '''
def lr_at(step, steps, warmup, peak, floor):
    if step < warmup:
        return peak / warmup * (step + 1)
    angle = math.pi * min(1, (step - warmup) / (steps - warmup - 1))
    return peak * math.cos(angle / 2) ** 2 + floor * math.sin(angle / 2) ** 2


def clip(grads, max_norm):
    norm = torch.nn.utils.get_total_norm([g for g in grads if g is not None]).item()
    if norm != norm or norm == math.inf:
        return norm, None
    scale = min(1.0, max_norm / max(norm, 1e-30))
    return norm, [g if g is None else g.mul(scale) for g in grads]
''',
}
WRONG["schedule"] = [
    ("a first step of 0", "`peak / warmup` in step 0", "peak * (step + 1) / warmup", "peak * step / warmup"),
    ("warm-up from the floor", "climbs by the same amount in each: `peak / warmup` in step 0",
     "peak * (step + 1) / warmup", "floor + (peak - floor) * (step + 1) / warmup"),
    ("the floor comes one later", "reaches in the last step, `steps - 1`",
     "step >= steps - 1", "step >= steps", "(steps - 1 - warmup)", "(steps - warmup)"),
    ("the cosine begins with the run", "From step `warmup`, where it is `peak`",
     "(step - warmup) / (steps - 1 - warmup)", "step / (steps - 1)"),
    ("no floor under the cosine", "half a cosine down to `floor`",
     "floor + (peak - floor) * (1 + math.cos", "peak * (1 + math.cos"),
    ("a straight line", "follows half a cosine", "(1 + math.cos(math.pi * t)) / 2", "(1 - t)"),
    ("up again", "Whoever goes on beyond the last step gets `floor`", "    if step >= steps - 1:\n        return floor\n", ""),
    ("nothing beyond the end", "Whoever goes on beyond the last step gets `floor`", "        return floor\n", "        return floor if step == steps - 1 else 0.0\n"),
    ("each by itself", "the norm of all their numbers together",
     "return norm, [None if g is None else g * factor for g in grads]",
     "return norm, [None if g is None else g * min(1.0, max_norm / max(g.norm().item(), 1e-12)) for g in grads]"),
    ("always stretched to the norm", "What is small enough keeps its values",
     "1.0 if norm <= max_norm else max_norm / norm", "max_norm / norm if norm else 1.0"),
    ("None is left out", "A `None` stays `None`", "[None if g is None else g * factor for g in grads]", "[g * factor for g in there]"),
    ("the norm afterwards", "`norm`: the norm of all their numbers together (of the gradients given)",
     "    return norm, [None", "    return min(norm, max_norm), [None"),
    ("in place", "It changes none of the tensors that it is given",
     "None if g is None else g * factor for", "None if g is None else g.mul_(factor) for"),
    ("each number by itself", "all have been multiplied by the same factor", "g * factor", "g.clamp(-max_norm, max_norm)"),
    ("NaN is overlooked", "where the norm is not finite, `clipped` is `None`", "not math.isfinite(norm)", "norm == math.inf"),
    ("the norm is a tensor", "the norm of all their numbers together, a float",
     "    return norm, [None", "    return torch.tensor(norm), [None"),
    ("the sum of the norms", "as if they were one long vector",
     "math.sqrt(sum(g.double().square().sum().item() for g in there))", "sum(g.norm().item() for g in there)"),
]

# --- 6 · A big batch in pieces -------------------------------------------------------------------

RIGHT["accumulate"] = {
    "sums, divided by all": '''
def accumulate(model, parts):
    count = sum((targets != -100).sum().item() for _, targets in parts)
    model.zero_grad()
    total = 0.0
    for x, targets in parts:
        loss = F.cross_entropy(model(x), targets, reduction="sum") / count
        loss.backward()
        total += loss.item()
    return total
''',
    "sums first, gradients divided in the end": '''
def accumulate(model, parts):
    for p in model.parameters():
        p.grad = None
    seen, summed = 0, 0.0
    for x, targets in parts:
        mask = targets.ne(-100)
        chosen = model(x).log_softmax(-1).gather(1, targets.where(mask, 0)[:, None])[:, 0]
        nll = -(chosen * mask).sum()
        nll.backward()
        seen += int(mask.sum())
        summed += float(nll)
        del chosen, nll
    for p in model.parameters():
        p.grad /= seen
    return summed / seen
''',
}
WRONG["accumulate"] = [
    ("the mean of the means", "over all rows that count, in all parts together",
     'reduction="sum") / count', 'reduction="mean") / len(parts)'),
    ("the sum of the means", "the mean cross-entropy over all rows that count", 'reduction="sum") / count', 'reduction="mean")'),
    ("weighed by rows, ignored ones too", "-100 where a row counts for nothing",
     "(targets != -100).sum().item()", "len(targets)"),
    ("old gradients stay", "What was in `.grad` before is gone", "    model.zero_grad()\n", ""),
    ("only the last part's", "what the one big batch would have left there",
     "        loss.backward()\n", "        model.zero_grad()\n        loss.backward()\n"),
    ("one backward in the end", "let only one part's graph be alive at a time",
     "        loss.backward()\n        total += loss.item()\n    return total\n",
     "        total = total + loss\n    total.backward()\n    return total.item()\n"),
    ("the big batch itself", "Call the model once for each part", CODE, '''
def accumulate(model, parts):
    model.zero_grad()
    x, targets = (torch.cat(both) for both in zip(*parts))
    loss = F.cross_entropy(model(x), targets)
    loss.backward()
    return loss.item()
'''),
    ("parts in which nothing counts are 0 / 0", "In some parts no row may count at all",
     'F.cross_entropy(model(x), targets, reduction="sum") / count',
     'F.cross_entropy(model(x), targets) * ((targets != -100).sum() / count)'),
    ("the rows that count alone", "with all its rows", "    for x, targets in parts:\n        loss = F",
     "    for x, targets in parts:\n        x, targets = x[targets != -100], targets[targets != -100]\n        loss = F"),
    ("parts in which nothing counts are left out", "Call the model once for each part",
     "        loss = F", "        if (targets == -100).all():\n            continue\n        loss = F"),
    ("the loss of the last part", "It returns this mean", "total += loss.item()", "total = loss.item()"),
    ("the graph is retained", "let only one part's graph be alive at a time",
     "    total = 0.0\n", "    total, kept = 0.0, []\n", "loss.backward()", "loss.backward(retain_graph=True)",
     "total += loss.item()", "total += loss.item()\n        kept.append(loss)"),
    ("a tensor", "It returns this mean, a float", "return total", "return torch.tensor(total)"),
]

# --- 7 · A scale for small gradients -------------------------------------------------------------

RIGHT["Scaler"] = {
    "plain": '''
class Scaler:
    def __init__(self, scale, growth, backoff, interval):
        self.scale = float(scale)
        self.growth, self.backoff, self.interval = growth, backoff, interval
        self.good = 0

    def scaled(self, loss):
        return loss * self.scale

    def unscaled(self, grads):
        if not all(torch.isfinite(g).all() for g in grads if g is not None):
            self.scale *= self.backoff
            self.good = 0
            return None
        result = [None if g is None else g.float() / self.scale for g in grads]
        self.good += 1
        if self.good == self.interval:
            self.scale *= self.growth
            self.good = 0
        return result
''',
    "a history": '''
class Scaler:
    def __init__(self, scale: float, growth: float, backoff: float, interval: int):
        self.start, self.factors, self.every, self.past = scale, (backoff, growth), interval, []

    @property
    def scale(self):
        value, run = self.start, 0
        for good in self.past:
            run = run + 1 if good else 0
            if not good:
                value *= self.factors[0]
            elif run % self.every == 0:
                value *= self.factors[1]
        return value

    def scaled(self, loss):
        return torch.mul(loss, self.scale)

    def unscaled(self, grads):
        by = self.scale
        wide = [g if g is None else g.to(torch.float32, copy=True).div_(by) for g in grads]
        good = not any(bool((~g.isfinite()).any()) for g in grads if g is not None)
        self.past.append(good)
        return wide if good else None
''',
}
WRONG["Scaler"] = [
    ("divided in float16", "The division happens in float32", "g.float() / self.scale", "(g / self.scale).float()"),
    ("in the type they came in", "returns a list of them in float32", "g.float() / self.scale", "g / self.scale"),
    ("the wrong scale", "what it returns is divided by the scale from before",
     "        result = [None if g is None else g.float() / self.scale for g in grads]\n", "",
     "        return result\n", "        return [None if g is None else g.float() / self.scale for g in grads]\n"),
    ("the count goes on after a skip", "as it does after a skipped step", "            self.good = 0\n            return None\n", "            return None\n"),
    ("the count goes on after growth", "and the count begins anew",
     "            self.scale *= self.growth\n            self.good = 0\n", "            self.scale *= self.growth\n",
     "self.good == self.interval", "self.good >= self.interval"),
    ("grows once", "After `interval` good steps in a row ... and the count begins anew",
     "            self.scale *= self.growth\n            self.good = 0\n", "            self.scale *= self.growth\n"),
    ("one step late", "After `interval` good steps in a row", "self.good == self.interval", "self.good > self.interval"),
    ("NaN is overlooked", "If any number is infinite or NaN", "torch.isfinite(g).all()", "not torch.isinf(g).any()"),
    ("only where all are infinite", "If any number is infinite or NaN", "torch.isfinite(g).all()", "torch.isfinite(g).any()"),
    ("skipped steps leave the scale", "After a step that was skipped, the scale is multiplied by `backoff`", "            self.scale *= self.backoff\n", ""),
    ("divided by backoff", "the scale is multiplied by `backoff`", "self.scale *= self.backoff", "self.scale /= self.backoff"),
    ("in place where it is float32", "and changes none of the given", "g.float() / self.scale", "g.float().div_(self.scale)"),
    ("None is left out", "a `None` where a `None` was",
     "[None if g is None else g.float() / self.scale for g in grads]", "[g.float() / self.scale for g in grads if g is not None]"),
    ("only their sum is looked at", "If any number is infinite or NaN",
     "all(torch.isfinite(g).all() for g in grads if g is not None)",
     "all(torch.isfinite(g.sum()) for g in grads if g is not None)"),
    ("no gradients are no step", "A list without any gradient has nothing in it that is infinite",
     "        self.good += 1\n", "        self.good += any(g is not None for g in grads)\n"),
]

# --- 8 · Stop and go on --------------------------------------------------------------------------

RIGHT["checkpoint"] = {
    "deepcopy of all": '''
def checkpoint(trainer):
    return copy.deepcopy({
        "model": trainer.model.state_dict(),
        "optimizer": trainer.optimizer.state_dict(),
        "schedule": trainer.schedule.state_dict(),
        "generator": trainer.generator.get_state(),
        "order": trainer.order,
        "position": trainer.position,
        "dice": torch.get_rng_state(),
    })


def resume(trainer, saved):
    saved = copy.deepcopy(saved)
    trainer.model.load_state_dict(saved["model"])
    trainer.optimizer.load_state_dict(saved["optimizer"])
    trainer.schedule.load_state_dict(saved["schedule"])
    trainer.generator.set_state(saved["generator"])
    trainer.order = saved["order"]
    trainer.position = saved["position"]
    torch.set_rng_state(saved["dice"])
''',
    "by hand, the schedule's step alone": '''
def checkpoint(trainer):
    weights = [p.detach().clone() for p in trainer.model.parameters()]
    memories = []
    for p in trainer.model.parameters():
        memories.append({k: v.clone() for k, v in trainer.optimizer.state[p].items()})
    return {
        "weights": weights, "memories": memories, "lr": trainer.optimizer.param_groups[0]["lr"],
        "epoch": trainer.schedule.last_epoch, "left": trainer.order[trainer.position:].tolist(),
        "shuffle": trainer.generator.get_state(), "dropout": torch.random.get_rng_state(),
    }


def resume(trainer, saved):
    with torch.no_grad():
        for p, w, memory in zip(trainer.model.parameters(), saved["weights"], saved["memories"]):
            p.copy_(w)
            trainer.optimizer.state[p] = {k: v.clone() for k, v in memory.items()}
    trainer.optimizer.param_groups[0]["lr"] = saved["lr"]
    trainer.schedule.last_epoch = saved["epoch"]
    n, left = len(trainer.x), torch.tensor(saved["left"], dtype=torch.int64)
    trainer.order = torch.cat([torch.zeros(n - len(left), dtype=torch.int64), left])
    trainer.position = n - len(left)
    trainer.generator.set_state(saved["shuffle"])
    torch.random.set_rng_state(saved["dropout"])
''',
}
WRONG["checkpoint"] = [
    ("weights and position only", "all that is needed to go on: the optimizer's memory",
     '        "optimizer": trainer.optimizer.state_dict(),\n', "", '    trainer.optimizer.load_state_dict(saved["optimizer"])\n', ""),
    ("the schedule begins anew", "bit for bit, what the first one did",
     '        "schedule": trainer.schedule.state_dict(),\n', "", '    trainer.schedule.load_state_dict(saved["schedule"])\n', ""),
    ("epochs are shuffled by another", "bit for bit: the generator of the orders",
     '        "generator": trainer.generator.get_state(),\n', "", '    trainer.generator.set_state(saved["generator"])\n', ""),
    ("the order is forgotten", "the order of the epoch that is under way",
     '        "order": trainer.order,\n', "", '    trainer.order = saved["order"]\n', ""),
    ("the position is forgotten", "how many items of `order` have been used",
     '        "position": trainer.position,\n', "", '    trainer.position = saved["position"]\n', ""),
    ("an epoch begins", "goes on from there, within an epoch", 'trainer.position = saved["position"]', "trainer.position = 0"),
    ("the order is drawn anew", "the order of the epoch that is under way",
     'trainer.order = saved["order"]', "trainer.order = torch.randperm(len(trainer.x), generator=trainer.generator)"),
    ("the dice are forgotten", "its dropout draws from torch's global generator",
     '        "dice": torch.get_rng_state(),\n', "", '    torch.set_rng_state(saved["dice"])\n', ""),
    ("seeded as it began", "bit for bit what the first one did: the generators have moved on since",
     '"dice": torch.get_rng_state()', '"dice": torch.initial_seed()', 'torch.set_rng_state(saved["dice"])', 'torch.manual_seed(saved["dice"])'),
    ("no copy when taken", "a checkpoint that lies in memory stays as it was",
     "return copy.deepcopy({", "return dict({"),
    ("no copy when resumed", "even after somebody has resumed from it", "    saved = copy.deepcopy(saved)\n", ""),
    ("a shallow copy", "a checkpoint that lies in memory stays as it was", "return copy.deepcopy({", "return copy.copy({"),
    ("the generator itself", "refuses objects of classes that it doesn't know",
     "trainer.generator.get_state(),\n", "trainer.generator.clone_state(),\n",
     'trainer.generator.set_state(saved["generator"])', 'trainer.generator.set_state(saved["generator"].get_state())'),
    ("taking it draws a number", "the run goes on as if nobody had",
     "def checkpoint(trainer):\n", "def checkpoint(trainer):\n    torch.rand(1)\n",
     ),
    ("taking it seeds", "taking a checkpoint, the run goes on as if nobody had",
     "def checkpoint(trainer):\n", "def checkpoint(trainer):\n    torch.manual_seed(0)\n"),
]

# --- 9 · MiniGPT from nothing --------------------------------------------------------------------

RIGHT["train_minigpt"] = {
    "AdamW, a short warm-up, and down": '''
def train_minigpt(inputs, targets, config, steps, seed):
    torch.manual_seed(seed)
    model = MiniGPT(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.01)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 0.02 * min(1, (step + 1) / 10, 1.2 - step / steps)
        rows = torch.randint(len(inputs), (64,))
        loss = F.cross_entropy(model(inputs[rows]).flatten(0, 1), targets[rows].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.state_dict()
''',
    "epochs of a loader, Adam, one cycle": '''
def train_minigpt(inputs, targets, config, steps, seed):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = MiniGPT(config).train()
    dice = torch.Generator().manual_seed(seed)
    opt = torch.optim.Adam(model.parameters(), betas=(0.9, 0.99))
    cycle = torch.optim.lr_scheduler.OneCycleLR(opt, 0.02, total_steps=steps, pct_start=0.2)
    done = 0
    while done < steps:
        order = torch.randperm(len(inputs), generator=dice)
        for rows in order.split(96)[: steps - done]:
            opt.zero_grad(set_to_none=True)
            logits = model(inputs[rows])
            F.cross_entropy(logits.transpose(1, 2), targets[rows]).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            cycle.step()
            done += 1
    return {name: value.clone() for name, value in model.state_dict().items()}
''',
}
WRONG["train_minigpt"] = [
    ("seeded after the weights were drawn", "The same arguments give the same bits",
     "    torch.manual_seed(seed)\n    model = MiniGPT(config)\n", "    model = MiniGPT(config)\n    torch.manual_seed(seed)\n"),
    ("always the same seed", "another seed other weights", "torch.manual_seed(seed)", "torch.manual_seed(0)"),
    ("a fortieth of the learning rate", "16 lines, 60 steps: a perplexity below 1.5", "0.02 * min", "0.0005 * min"),
    ("the first lines only", "on lines that you have not seen, a perplexity below 3.53",
     "torch.randint(len(inputs), (64,))", "torch.arange(min(64, len(inputs)))"),
    ("a hundred steps, whatever is asked", "no optimizer takes more", "range(steps)", "range(100)"),
]

# --- Answers to what the table of rules, rules_07.py, found nothing for ---------------------------

WRONG["batches"] += [
    (
        "tensors",
        "It yields a list of indices",
        "yield rows",
        "yield torch.tensor(rows)",
    ),
    (
        "each batch twice",
        "one batch after the other",
        "yield rows",
        "yield rows\n            yield rows",
    ),
]
WRONG["TokenWindows"] += [
    (
        "32 bits",
        "both int64",
        "torch.full((len(items), longest), self.pad)",
        "torch.full((len(items), longest), self.pad, dtype=torch.int32)",
    ),
    (
        "items in 32 bits",
        "both int64",
        "self.tokens[start:end].clone()",
        "self.tokens[start:end].int()",
    ),
    (
        "filled up with 0",
        "inputs are filled up with `pad`",
        "longest), self.pad)",
        "longest), 0)",
    ),
]
WRONG["mended_fit"] += [
    (
        "at least one step",
        "There may be no steps at all",
        "    return w.item(), b.item()",
        "    losses[-1]\n    return w.item(), b.item()",
    ),
    (
        "w and b are tensors",
        "two floats",
        "w.item(), b.item()",
        "w.detach(), b.detach()",
    ),
]
WRONG["optimizers"] += [
    (
        "the list is filled anew",
        "no tensor, and no list",
        "    params = [p.clone() for p in params]\n    memory",
        "    memory",
    ),
    (
        "the gradients are written to",
        "change nothing that they are given",
        "g = g + weight_decay * params[i]",
        "g += weight_decay * params[i]",
    ),
    (
        "vectors alone",
        "Parameters have any shape",
        "params[i] = params[i] - lr * memory[i]",
        "params[i] = torch.cat([a[None] - lr * b for a, b in zip(params[i], memory[i])])",
    ),
    (
        "float32 for all",
        "are float32 or float64",
        "    params = [p.clone() for p in params]",
        "    params = [p.float() for p in params]",
    ),
    (
        "torch's own",
        "nothing of `torch.optim` here",
        CODE,
        '''
def sgd(params, grads, lr, momentum, weight_decay):
    return stepped(params, grads, torch.optim.SGD, lr=lr, momentum=momentum, weight_decay=weight_decay)


def adamw(params, grads, lr, betas, eps, weight_decay):
    return stepped(params, grads, torch.optim.AdamW, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)


def stepped(params, grads, kind, **how):
    params = [torch.nn.Parameter(p.clone()) for p in params]
    optimizer = kind(params, **how)
    for step in grads:
        for p, g in zip(params, step):
            p.grad = g
        optimizer.step()
    return [p.detach() for p in params]
''',
    ),
]
WRONG["schedule"] += [
    (
        "a warm-up there must be",
        "There may be no warm-up",
        "    if step < warmup:\n        return peak * (step + 1) / warmup\n",
        "    climbed = min(1, (step + 1) / warmup)\n    if climbed < 1:\n        return peak * climbed\n",
    ),
    (
        "at least one gradient",
        "or all of them, which makes a norm of 0",
        "norm = math.sqrt(sum(g.double().square().sum().item() for g in there))",
        "norm = torch.stack([g.norm() for g in there]).norm().item()",
    ),
    (
        "the list is filled anew",
        "neither a tensor nor the list",
        "return norm, [None if g is None else g * factor for g in grads]",
        "grads[:] = [None if g is None else g * factor for g in grads]\n    return norm, grads",
    ),
    (
        "shorter than it must be",
        "multiplied by the same factor, so that their norm is not larger than `max_norm`",
        "max_norm / norm\n",
        "max_norm / (norm + 1)\n",
    ),
]
WRONG["accumulate"] += [
    (
        "the last part first",
        "in their order",
        "for x, targets in parts:",
        "for x, targets in parts[::-1]:",
    ),
]
WRONG["Scaler"] += [
    (
        "the scale is a tensor",
        "the number at the moment, a float",
        "self.scale = float(scale)",
        "self.scale = torch.tensor(scale)",
    ),
    (
        "the loss is a float",
        "returns the loss times the scale, a tensor",
        "return loss * self.scale",
        "return loss.item() * self.scale",
    ),
    (
        "grows while it scales",
        "All of it happens in `unscaled`",
        "            self.scale *= self.growth\n            self.good = 0\n",
        "            self.due, self.good = True, 0\n",
        "        return loss * self.scale",
        "        self.scale *= self.growth if getattr(self, 'due', False) else 1\n"
        "        self.due = False\n        return loss * self.scale",
    ),
]
WRONG["train_minigpt"] += [
    (
        "the model itself",
        "returns its `state_dict()`",
        "return model.state_dict()",
        "return model",
    ),
    (
        "a size of its own",
        "It makes a new `MiniGPT(config)`",
        "MiniGPT(config)",
        "MiniGPT(MiniGPTConfig(d_model=24, n_heads=2, n_layers=1, d_ff=48, context=18))",
    ),
    (
        "a tenth of the steps",
        "trains it in `steps` steps",
        "range(steps)",
        "range(-(-steps // 10))",
    ),
]

RIGHT["checkpoint"]["a tuple"] = """
def checkpoint(trainer):
    parts = trainer.model, trainer.optimizer, trainer.schedule
    states = tuple(copy.deepcopy(part.state_dict()) for part in parts)
    return states, trainer.generator.get_state(), trainer.order, trainer.position, torch.get_rng_state()


def resume(trainer, saved):
    states, own, trainer.order, trainer.position, everybodys = copy.deepcopy(saved)
    for part, state in zip((trainer.model, trainer.optimizer, trainer.schedule), states):
        part.load_state_dict(state)
    trainer.generator.set_state(own)
    torch.set_rng_state(everybodys)
"""

# What the check can't tell, or the tools refuse, and why. They are not judged.
OPEN: dict[tuple[str, str], str] = {}

BANK = Bank("07")
BANK.fill(RIGHT, WRONG, OPEN)
bank_07_second.add_to(BANK)
