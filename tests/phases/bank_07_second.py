"""A second bank of lab 07, written blind: from the lesson, the released lab and `utils/` alone.

A wrong answer is the first right one with an edit (or a cell of its own), and names the sentence of
the lab's text that it breaks.
"""

from tests.phases.bank import Bank

RIGHT: dict[str, dict[str, str]] = {}
WRONG: dict[str, list[tuple]] = {}

# --- 1 · Which rows, in which order? -------------------------------------------------------------

RIGHT["batches"] = {
    "ranges": '''
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
''',
    "torch's samplers": '''
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
''',
    "a pointer and a generator expression": '''
class Deal:
    def __init__(self, n, batch_size, seed, drop_last):
        self.n, self.size, self.drop = n, batch_size, drop_last
        self.dice = None
        if seed is not None:
            self.dice = torch.Generator(device="cpu")
            self.dice.manual_seed(seed)
        self.shuffle()

    def shuffle(self):
        self.at = 0
        self.order = None if self.dice is None else torch.randperm(self.n, generator=self.dice)

    def next(self):
        left = self.n - self.at
        if left <= 0 or (self.drop and left < self.size):
            self.shuffle()
        rows = slice(self.at, min(self.at + self.size, self.n))
        self.at = rows.stop
        if self.order is None:
            return [*range(rows.start, rows.stop)]
        return [int(k) for k in self.order[rows]]


def steps(n, batch_size, epochs, drop_last=False):
    whole, rest = divmod(n, batch_size)
    return epochs * (whole + (rest > 0 and not drop_last))


def batches(n, batch_size, seed=None, drop_last=False):
    deal = Deal(n, batch_size, seed, drop_last)
    return (deal.next() for _ in iter(int, 1))
''',
}
WRONG["batches"] = [
    ("seed 0 is no seed", "Where `seed` is `None`, each epoch goes through the rows in order", "if seed is None", "if not seed"),
    ("one batch less, where drop_last is asked for", "with drop_last, such a batch (a smaller one) is left out", "n // batch_size if drop_last else -(-n // batch_size)", "-(-n // batch_size) - drop_last"),
    ("rounded by adding a half", "how many steps it takes to go through n items", "n // batch_size if drop_last else -(-n // batch_size)", "round(n / batch_size + (-0.5 if drop_last else 0.5)) if n else 0"),
    ("rounded up by adding 0.99", "The last batch of an epoch may be smaller", "-(-n // batch_size)", "int(n / batch_size + 0.99)"),
    ("at least one batch", "There may be no items, and fewer than a batch", "    return each * epochs", "    return max(each, 1 if n else 0) * epochs"),
    ("the last whole batch is dropped as well", "with drop_last, such a batch (a smaller one) is left out", "end = n - n % batch_size if drop_last", "end = n - batch_size if drop_last"),
    ("the rest as a batch of its own, where it is no smaller", "No batch reaches over the end of an epoch", "-(-n // batch_size)", "(n // batch_size + 1 if n else 0)"),
    ("a NumPy float", "steps(...) -> int: how many steps", "    return each * epochs", "    return float(each * epochs)"),
    ("forked dice", "torch's global generator is neither asked nor seeded", "    g = None if seed is None else torch.Generator().manual_seed(seed)\n", "    g, state = seed, None\n", "torch.randperm(n, generator=g).tolist()", "None", "        for start", """        if order is None:
            with torch.random.fork_rng():
                if state is None:
                    torch.manual_seed(seed)
                else:
                    torch.set_rng_state(state)
                order = torch.randperm(n).tolist()
                state = torch.get_rng_state()
        for start"""),
    ("a generator for each seed, kept", "g is a torch.Generator of your own, which you seed with `seed` once", "torch.Generator().manual_seed(seed)\n", "GENERATORS.setdefault(seed, torch.Generator().manual_seed(seed))\n", "def batches(", "GENERATORS = {}\n\n\ndef batches("),
    ("indices that are tensors", "It yields a list of indices", "torch.randperm(n, generator=g).tolist()", "torch.randperm(n, generator=g)"),
    ("one list for all batches", "It yields a list of indices, the rows of a batch", "    while True:", "    batch = []\n    while True:", "            yield list(order[start : start + batch_size])", "            batch[:] = order[start : start + batch_size]\n            yield batch"),
    ("a loader in order", "torch's global generator is neither asked nor seeded", "    end = n", "    if seed is None:\n        while True:\n            yield from DataLoader(range(n), batch_size, drop_last=drop_last, collate_fn=list)\n    end = n"),
    ("the seed moves the order in which rows come, once", "each epoch draws anew from it", "        order = range(n) if g is None else torch.randperm(n, generator=g).tolist()\n", "", "    while True:", "    order = range(n) if g is None else torch.randperm(n, generator=g).tolist()\n    while True:"),
    ("drawn for the rows that are used", "an epoch's order is torch.randperm(n, generator=g)", "torch.randperm(n, generator=g)", "torch.randperm(end, generator=g)"),
]

# --- 2 · Windows over a text ---------------------------------------------------------------------

RIGHT["TokenWindows"] = {
    "slices": '''
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
''',
    "lists, and pad_sequence": '''
from torch.nn.utils.rnn import pad_sequence


class TokenWindows(Dataset):
    def __init__(self, tokens, context, stride, pad):
        words = tokens.tolist()
        self.pad = pad
        self.pairs = []
        for start in range(0, len(words) - 1, stride):
            piece = words[start : start + context + 1]
            self.pairs.append((piece[:-1], piece[1:]))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        return tuple(map(torch.tensor, self.pairs[index]))

    def collate(self, items):
        inputs, targets = zip(*items)
        padded = pad_sequence(inputs, batch_first=True, padding_value=self.pad)
        return padded, pad_sequence(targets, batch_first=True, padding_value=-100)
''',
    "a range of beginnings": '''
class TokenWindows(Dataset):
    def __init__(self, tokens: torch.Tensor, context: int, stride: int, pad: int = 0):
        super().__init__()
        self.inputs, self.targets = tokens[:-1], tokens[1:]
        self.context, self.pad = context, pad
        self.starts = range(0, len(self.inputs), stride)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index):
        rows = slice(self.starts[index], self.starts[index] + self.context)
        return torch.clone(self.inputs[rows]), torch.clone(self.targets[rows])

    @staticmethod
    def fill(row, width, value):
        return F.pad(row, (0, width - len(row)), value=value)

    def collate(self, items):
        width = max(map(len, (inputs for inputs, _ in items)))
        inputs = [self.fill(inputs, width, self.pad) for inputs, _ in items]
        targets = [self.fill(targets, width, -100) for _, targets in items]
        return torch.stack(inputs), torch.stack(targets)
''',
}
WRONG["TokenWindows"] = [
    ("a window with one target is none", "there is an item for each i whose window has at least one target", "-(-(len(self.tokens) - 1) // self.stride)", "-(-(len(self.tokens) - 2) // self.stride)"),
    ("as long as the first item", "T is the longest length among them", "max(len(one) for one, _ in items)", "len(items[0][0])"),
    ("the longest first", "returns two tensors, (B, T): a row for each item of the list", "        longest = max(len(one) for one, _ in items)", "        items = sorted(items, key=lambda item: -len(item[0]))\n        longest = len(items[0][0])"),
    ("the two halves share", "Whoever writes into an item changes nothing else: ... nor the other half of the pair", "return self.tokens[start:stop].clone(), self.tokens[start + 1 : stop + 1].clone()", "piece = self.tokens[start : stop + 1].clone()\n        return piece[:-1], piece[1:]"),
    ("an item made once and kept", "Whoever writes into an item changes nothing else", "self.pad = tokens, context, stride, pad", "self.pad = tokens, context, stride, pad\n        self.made = {}", "        return self.tokens[start:stop].clone(), self.tokens[start + 1 : stop + 1].clone()", "        if index not in self.made:\n            self.made[index] = self.tokens[start:stop].clone(), self.tokens[start + 1 : stop + 1].clone()\n        return self.made[index]"),
    ("a batch of a few whole windows", "near the end a window is shorter", "stop = min(start + self.context, len(self.tokens) - 1)", "stop = min(start + self.context, len(self.tokens) - 1)\n        start = max(0, stop - self.context)"),
    ("the first index beyond, and no other", "an index beyond them raises IndexError", "index >= len(self)", "index == len(self)"),
    ("one text for all datasets", "TokenWindows(tokens, context, stride, pad), where `tokens` is a tensor", "self.tokens, self.context, self.stride, self.pad = tokens, context, stride, pad", "TokenWindows.tokens = tokens\n        self.context, self.stride, self.pad = context, stride, pad"),
    ("read from the storage's beginning", "the tokens from position i * stride on", "return self.tokens[start:stop].clone(), self.tokens[start + 1 : stop + 1].clone()", "pair = [torch.as_strided(self.tokens, (stop - start,), (1,), at) for at in (start, start + 1)]\n        return pair[0].clone(), pair[1].clone()"),
    ("windows that do not overlap", "the `context` tokens from position i * stride on", "start + self.context, len", "start + min(self.context, self.stride), len"),
    ("a stride of at most the context", "from position i * stride on", "self.stride, self.pad = tokens, context, stride, pad", "self.stride, self.pad = tokens, context, min(stride, context), pad"),
    ("targets masked where the inputs are padding", "`pad` may also be a word of the text like any other", "        return inputs, targets", "        targets[:, 1:][(inputs[:, 1:] == self.pad) & (targets[:, :-1] == self.pad)] = -100\n        return inputs, targets"),
    ("a last window that is too short for a batch goes", "near the end a window is shorter", "-(-(len(self.tokens) - 1) // self.stride)", "len(range(0, max(1, len(self.tokens) - self.context), self.stride)) + (len(self.tokens) > self.context)"),
    ("int32 in a batch of unequal items", "returns two tensors, (B, T) int64", "torch.full((len(items), longest), -100)", "torch.full((len(items), longest), -100, dtype=torch.int32)"),
]

# --- 3 · Five lines, five mistakes ---------------------------------------------------------------

RIGHT["mended_fit"] = {
    "on paper": '''
def mended_fit(x, y, steps, lr):
    points, w, b, losses = x[:, 0], 0.0, 0.0, []
    for _ in range(steps):
        off = points * w + b - y
        losses.append(off.square().mean().item())
        w, b = w - lr * 2 * (off * points).mean().item(), b - lr * 2 * off.mean().item()
    return w, b, losses
''',
    "an optimizer with a closure": '''
def mended_fit(x, y, steps, lr, momentum=0.0):
    line = torch.nn.Linear(1, 1)
    for parameter in line.parameters():
        torch.nn.init.zeros_(parameter)
    optimizer = torch.optim.SGD(line.parameters(), lr=lr, momentum=momentum)

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(line(x).squeeze(1), y)
        loss.backward()
        return loss

    losses = [float(optimizer.step(closure)) for _ in range(steps)]
    return line.weight.item(), line.bias.item(), losses
''',
    "moments in double precision": '''
def mended_fit(x, y, steps, lr):
    a = torch.stack([x[:, 0].double(), torch.ones(len(x), dtype=torch.float64)], 1)
    gram, against, energy = a.T @ a / len(x), a.T @ y.double() / len(x), y.double() @ y.double() / len(x)
    theta, losses = torch.zeros(2, dtype=torch.float64), []
    for _ in range(steps):
        losses.append((theta @ gram @ theta - 2 * theta @ against + energy).item())
        theta = theta - lr * 2 * (gram @ theta - against)
    return *theta.tolist(), losses
''',
    "torch.func": '''
def mended_fit(x, y, steps, lr):
    def loss_at(theta):
        return torch.mean((torch.cat([x, torch.ones_like(x)], dim=1) @ theta - y) ** 2)

    theta, losses = torch.zeros(2), []
    for _ in range(steps):
        gradient, loss = torch.func.grad_and_value(loss_at)(theta)
        losses += [loss.item()]
        theta -= lr * gradient
    w, b = theta
    return float(w), float(b), losses
''',
}
WRONG["mended_fit"] = [
    ("b is moved by what the moved w gets wrong", "fits a line with gradient descent: both gradients are those at w and b", "        w, b = w - lr * 2 * (off * points).mean().item(), b - lr * 2 * off.mean().item()", "        w = w - lr * 2 * (off * points).mean().item()\n        b = b - lr * 2 * (points * w + b - y).mean().item()"),
    ("x is centred first", "fits a line y = w*x + b through points", "points, w, b, losses = x[:, 0],", "points, w, b, losses = x[:, 0] - x[:, 0].mean(),"),
    ("stops when nothing is left to learn", "a list of floats, one for each step", "        w, b = w", "        if losses[-1] < 1e-9:\n            break\n        w, b = w"),
    ("gradients that are clipped", "fits a line with gradient descent", "        w, b = w - lr * 2 * (off * points).mean().item(), b - lr * 2 * off.mean().item()", "        dw, db = (2 * (off * points).mean().item(), 2 * off.mean().item())\n        w, b = w - lr * max(-4, min(4, dw)), b - lr * max(-4, min(4, db))"),
    ("losses that are tensors", "a list of floats", "losses.append(off.square().mean().item())", "losses.append(off.square().mean())"),
    ("w and b are tensors", "two floats", "    return w, b, losses", "    return torch.tensor(w), torch.tensor(b), losses"),
    ("a loss more, of the end", "one for each step: the loss that the step found", "    return w, b, losses", "    if steps:\n        losses.append((points * w + b - y).square().mean().item())\n    return w, b, losses"),
    ("the mean over the points that are not 0", "the mean of the squared errors", "(off * points).mean()", "(off * points)[points != 0].mean()"),
]

# --- 4 · Two optimizers by hand ------------------------------------------------------------------

RIGHT["optimizers"] = {
    "lists of memories": '''
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
''',
    "one parameter after the other, in place on clones": '''
def column(grads, i):
    return [step[i] for step in grads if step[i] is not None]


@torch.no_grad()
def sgd(params, grads, lr, momentum=0.0, weight_decay=0.0):
    done = []
    for i, p in enumerate(params):
        p, memory = p.clone(), torch.zeros_like(p)
        for g in column(grads, i):
            memory.mul_(momentum).add_(g).add_(p, alpha=weight_decay)
            p.sub_(memory, alpha=lr)
        done.append(p)
    return done


@torch.no_grad()
def adamw(params, grads, lr, betas, eps=1e-8, weight_decay=0.0):
    done = []
    for i, p in enumerate(params):
        p, m, v = p.clone(), torch.zeros_like(p), torch.zeros_like(p)
        for t, g in enumerate(column(grads, i), start=1):
            p.mul_(1 - lr * weight_decay)
            m.lerp_(g, 1 - betas[0])
            v.mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
            root = v.div(1 - betas[1] ** t).sqrt_().add_(eps)
            p.addcdiv_(m, root, value=-lr / (1 - betas[0] ** t))
        done.append(p)
    return done
''',
    "sums over the past": '''
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
''',
}
WRONG["optimizers"] = [
    ("memory fades without a gradient", "Where a gradient is None ... its memory is not (touched)", "            if g is None:\n                continue\n            d =", "            if g is None:\n                memory[i] = None if memory[i] is None else momentum * memory[i]\n                continue\n            d ="),
    ("AdamW's means go on without a gradient", "Where a gradient is None ... its memory is not (touched)", "            if g is None:\n                continue\n            t[i]", "            if g is None:\n                m[i], v[i] = betas[0] * m[i], betas[1] * v[i]\n                continue\n            t[i]"),
    ("one memory for a shape", "For each parameter on its own", "params, memory = list(params), [None] * len(params)", "params, memory = list(params), {}", "            memory[i] = d if memory[i] is None else momentum * memory[i] + d\n", "            s = g.shape\n            memory[s] = d if s not in memory else momentum * memory[s] + d\n", "lr * memory[i]", "lr * memory[s]"),
    ("no gradient where it is 0", "Where a gradient is `None`, the parameter is not touched", "if g is None:", "if g is None or not g.any():"),
    ("the first step's memory is the gradient itself", "change nothing that they are given: no tensor", "            d = g + weight_decay * params[i]\n            memory[i] = d if memory[i] is None else momentum * memory[i] + d", "            d = g + weight_decay * params[i] if weight_decay else g\n            memory[i] = d if memory[i] is None else memory[i].mul_(momentum).add_(d)"),
    ("decay put into the lists of gradients", "change nothing that they are given: ... and no list", "            d = g + weight_decay * params[i]\n", "            step[i] = d = g + weight_decay * params[i]\n"),
    ("memories in float32", "Parameters have any shape, and are float32 or float64", "[torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params]", "[torch.zeros(p.shape) for p in params], [torch.zeros(p.shape) for p in params]", "            m[i] = betas[0] * m[i] + (1 - betas[0]) * g\n            v[i] = betas[1] * v[i] + (1 - betas[1]) * g**2\n", "            m[i].mul_(betas[0]).add_((1 - betas[0]) * g)\n            v[i].mul_(betas[1]).add_((1 - betas[1]) * g**2)\n"),
    ("betas as float32", "Parameters ... are float32 or float64", "    params, t = list(params)", "    betas = torch.tensor(betas)\n    params, t = list(params)"),
    ("an untouched parameter is left out", "They return a list of the parameters after all steps", "            params[i] = params[i] - lr * memory[i]\n    return params", "            params[i] = params[i] - lr * memory[i]\n    return [p for p, touched in zip(params, memory) if touched is not None]"),
    ("memories shaped like the first gradients", "Where a gradient is `None`", "[torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params]", "[torch.zeros_like(g) for g in grads[0]], [torch.zeros_like(g) for g in grads[0]]"),
    ("steps counted for all", "the parameter's step number t, counted from 1", "            if g is None:\n                continue\n            t[i] += 1\n", "            t[i] += 1\n            if g is None:\n                continue\n"),
    ("the longest step of its parameters", "its own steps are not counted on", "1 - betas[1] ** t[i]", "1 - betas[1] ** max(t)"),
    ("torch's function", "Work by hand: nothing of torch.optim here", "def sgd(", "from torch.optim.adamw import adamw as kernel\n\n\ndef sgd(", "            p = params[i] - lr * weight_decay * params[i]\n", "            p = params[i].clone()\n            kernel([p], [g], [m[i]], [v[i]], [], [torch.tensor(t[i] - 1.0)], foreach=False, amsgrad=False, beta1=betas[0], beta2=betas[1], lr=lr, weight_decay=weight_decay, eps=eps, maximize=False)\n            params[i] = p\n            continue\n"),
    ("flattened for the loop", "Parameters have any shape", "    params, memory = list(params), [None] * len(params)", "    shapes = [p.shape or (1,) for p in params]\n    params, memory = [p.reshape(-1) for p in params], [None] * len(params)", "d = g + weight_decay", "d = g.reshape(-1) + weight_decay", "            params[i] = params[i] - lr * memory[i]\n    return params", "            params[i] = params[i] - lr * memory[i]\n    return [p.reshape(s) for p, s in zip(params, shapes)]"),
    ("the list is emptied as it goes", "change nothing that they are given: ... and no list", "    for step in grads:\n        for i, g in enumerate(step):\n            if g is None:\n                continue\n            d", "    while grads:\n        step = grads.pop(0)\n        for i, g in enumerate(step):\n            if g is None:\n                continue\n            d"),
]

# --- 5 · How large a step? -----------------------------------------------------------------------

RIGHT["schedule"] = {
    "as the hints say": '''
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
''',
    "half angles, and tensors": '''
def lr_at(step, steps, warmup, peak, floor):
    last = steps - 1
    up = (min(step, last) + 1) / max(warmup, 1)
    down = math.cos(math.pi / 2 * (max(0, min(step, last) - warmup) / (last - warmup))) ** 2
    return peak * up if step < warmup else down * peak + (1 - down) * floor


def clip(grads, max_norm):
    norms = [torch.linalg.vector_norm(g.double()) for g in grads if g is not None]
    norm = torch.linalg.vector_norm(torch.stack(norms)).item() if norms else 0.0
    if math.isnan(norm) or math.isinf(norm):
        return norm, None
    if norm <= max_norm:
        return norm, grads
    return norm, [g if g is None else g.mul(max_norm).div(norm) for g in grads]
''',
    "torch's helpers on clones": '''
from torch.nn.utils import clip_grad_norm_


def lr_at(step, steps, warmup, peak, floor):
    rates = [peak * (k + 1) / warmup for k in range(warmup)]
    waves = torch.linspace(0, math.pi, steps - warmup, dtype=torch.float64).cos()
    rates += (floor + (peak - floor) * (waves + 1) / 2).tolist()
    return rates[step] if step < steps else float(floor)


def clip(grads, max_norm):
    copies = [None if g is None else torch.nn.Parameter(torch.zeros_like(g)) for g in grads]
    for copy_, g in zip(copies, grads):
        if g is not None:
            copy_.grad = g.clone()
    there = [p for p in copies if p is not None]
    norm = float(torch.nn.utils.get_total_norm([p.grad for p in there])) if there else 0.0
    if not math.isfinite(norm):
        return norm, None
    if norm > max_norm:
        clip_grad_norm_(there, max_norm)
    return norm, [None if p is None else p.grad for p in copies]
''',
}
WRONG["schedule"] = [
    ("the step after the last is not the floor", "Whoever goes on beyond the last step gets `floor`", "if step >= steps - 1:", "if step > steps:"),
    ("the warm-up is worked out first", "There may be no warm-up", "    if step < warmup:\n        return peak * (step + 1) / warmup", "    up = peak * (step + 1) / warmup\n    if step < warmup:\n        return up"),
    ("a step of warm-up without warm-up", "From step `warmup`, where it is `peak`", "def lr_at(step, steps, warmup, peak, floor):\n", "def lr_at(step, steps, warmup, peak, floor):\n    warmup = max(warmup, 1)\n"),
    ("NaN is not noticed", "where the norm is not finite, `clipped` is None", "if not math.isfinite(norm):", "if norm == math.inf:"),
    ("the square of the sum", "the norm of all their numbers together, as if they were one long vector", "g.square().sum().item()", "g.sum().square().item()"),
    ("the largest stretch of a matrix", "the norm of all their numbers together, as if they were one long vector", "g.square().sum().item()", "(torch.linalg.matrix_norm(g, 2) if g.dim() == 2 else g.norm()).item() ** 2"),
    ("a factor of one element", "gradients that all have been multiplied by the same factor", "g * factor for g", "g * torch.tensor([factor]) for g"),
    ("a factor in float64", "a list of gradients, float32, that all have been multiplied by the same factor", "else g * factor for g", "else g.double() * factor for g"),
    ("the norm is a tensor", "the norm ..., a float", "    return norm, [", "    return torch.tensor(norm), ["),
    ("the norm after clipping", "the norm of all their numbers together (of what was given)", "    return norm, [", "    return norm * factor, ["),
    ("in the given list", "It changes nothing that it is given, neither a tensor nor the list", "    return norm, [None if g is None else g * factor for g in grads]", "    for i, g in enumerate(grads):\n        if g is not None:\n            grads[i] = g * factor\n    return norm, grads"),
    ("in place where it is too long", "It changes nothing that it is given, neither a tensor nor the list", "else g * factor for g", "else g.mul_(factor) for g"),
    ("no gradients, nothing returned", "some may be None, or all of them, which makes a norm of 0", "    norm = math.sqrt", "    if not there:\n        return 0.0, None\n    norm = math.sqrt"),
    ("not more than a millionth below", "What is small enough keeps its values", "max_norm / norm if norm > max_norm else 1.0", "min(1.0, max_norm / (norm + 1e-3))"),
    ("the floor is a bound", "it follows half a cosine down to `floor`", "    return floor + (peak - floor) * (1 + math.cos(math.pi * t)) / 2", "    return max(floor, peak * (1 + math.cos(math.pi * t)) / 2)"),
    ("a climb to a peak below 1", "it climbs by the same amount in each: peak / warmup in step 0", "return peak * (step + 1) / warmup", "return min(1.0, peak * (step + 1) / warmup)"),
]

# --- 6 · A big batch in pieces -------------------------------------------------------------------

RIGHT["accumulate"] = {
    "sums": '''
def accumulate(model, parts):
    counted = sum(int((targets != -100).sum()) for _, targets in parts)
    model.zero_grad()
    total = 0.0
    for x, targets in parts:
        loss = F.cross_entropy(model(x), targets, reduction="sum") / counted
        loss.backward()
        total += loss.item()
    return total
''',
    "divided at the end": '''
def accumulate(model, parts):
    model.zero_grad(set_to_none=False)
    total, count = 0.0, 0
    for x, targets in parts:
        loss = F.nll_loss(F.log_softmax(model(x), dim=-1), targets, reduction="sum")
        loss.backward()
        total, count = total + loss.item(), count + (targets >= 0).sum().item()
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.div_(count)
    return total / count
''',
    "gradients asked for, and shares": '''
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
''',
    "only the rows that count": '''
def accumulate(model, parts):
    counted = sum((targets != -100).sum() for _, targets in parts).item()
    for parameter in model.parameters():
        parameter.grad = None
    losses = []
    for x, targets in parts:
        logits, keep = model(x), targets != -100
        rows = logits[keep].logsumexp(1) - logits[keep].gather(1, targets[keep][:, None])[:, 0]
        (rows.sum() / counted).backward()
        losses.append(rows.sum().item() / counted)
        del logits, rows
    return math.fsum(losses)
''',
}
WRONG["accumulate"] = [
    ("parts without targets are passed over", "Call the model once for each part", "    for x, targets in parts:\n        loss", "    for x, targets in parts:\n        if (targets == -100).all():\n            continue\n        loss"),
    ("a graph that is left standing", "let only one part's graph be alive at a time", '        loss = F.cross_entropy(model(x), targets, reduction="sum") / counted\n', '        loss = F.cross_entropy(model(x), targets, reduction="sum") / counted\n        if loss == 0:\n            continue\n'),
    ("the graph is retained", "let only one part's graph be alive at a time", "loss.backward()", "loss.backward(retain_graph=True)"),
    ("losses added up with their graphs", "let only one part's graph be alive at a time", "total += loss.item()\n    return total", "total = total + loss\n    return total.item()"),
    ("in the order of their size", "Call the model once for each part, in their order", "    for x, targets in parts:\n        loss", "    for x, targets in sorted(parts, key=lambda part: -len(part[1])):\n        loss"),
    ("a first look without gradients", "Call the model once for each part", "    for x, targets in parts:\n        loss", "    with torch.no_grad():\n        for x, _ in parts:\n            model(x)\n    for x, targets in parts:\n        loss"),
    ("the loss is a tensor", "It returns this mean, a float", "total += loss.item()", "total += loss.detach()"),
    ("the last part's loss weighs with its rows", "the mean cross-entropy over all rows that count, in all parts together", "total += loss.item()", "total += loss.item() * len(targets) / max(1, int((targets != -100).sum()))"),
    ("gradients put aside and added again", "What was in .grad before is gone", "    model.zero_grad()\n", "    before = [p.grad for p in model.parameters()]\n    model.zero_grad()\n", "    return total", "    for p, old in zip(model.parameters(), before):\n        if old is not None:\n            p.grad += old\n    return total"),
    ("class 0 does not count", "or -100 where a row counts for nothing", "(targets != -100).sum()", "(targets > 0).sum()"),
    ("graphs of two parts at a time", "let only one part's graph be alive at a time", '''    for x, targets in parts:
        loss = F.cross_entropy(model(x), targets, reduction="sum") / counted
        loss.backward()
''', '''    ahead = [model(parts[0][0])]
    for i, (_, targets) in enumerate(parts):
        if i + 1 < len(parts):
            ahead.append(model(parts[i + 1][0]))
        loss = F.cross_entropy(ahead.pop(0), targets, reduction="sum") / counted
        loss.backward()
'''),
]

# --- 7 · A scale for small gradients -------------------------------------------------------------

RIGHT["Scaler"] = {
    "as the hints say": '''
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
''',
    "a dataclass and the inverse": '''
from dataclasses import dataclass, field


@dataclass
class Scaler:
    scale: float
    growth: float = 2.0
    backoff: float = 0.5
    interval: int = 2000
    left: int = field(default=0, init=False)

    def __post_init__(self):
        self.scale = float(self.scale)
        self.left = self.interval

    def scaled(self, loss: torch.Tensor) -> torch.Tensor:
        return torch.mul(self.scale, loss)

    def unscaled(self, grads: list) -> list | None:
        inverse = 1.0 / self.scale
        found = [g if g is None else g.to(torch.float32).mul(inverse) for g in grads]
        bad = any(g.isinf().any() or g.isnan().any() for g in grads if g is not None)
        self.left = self.interval if bad else self.left - 1
        if bad:
            self.scale *= self.backoff
        elif self.left == 0:
            self.scale, self.left = self.scale * self.growth, self.interval
        return None if bad else found
''',
    "a history": '''
class Scaler(object):
    def __init__(self, scale, growth, backoff, interval):
        self.factors = growth, backoff
        self.interval, self.first, self.history = interval, float(scale), []

    @property
    def scale(self):
        value, run = self.first, 0
        for good in self.history:
            run = run + 1 if good else 0
            if not good:
                value *= self.factors[1]
            elif run == self.interval:
                value, run = value * self.factors[0], 0
        return value

    def scaled(self, loss):
        return self.scale * loss

    def unscaled(self, grads):
        scale = self.scale
        out = []
        for g in grads:
            if g is not None and not (g.abs() < float("inf")).all():
                self.history.append(False)
                return None
            out.append(g if g is None else torch.div(g.type(torch.float32), scale))
        self.history.append(True)
        return out
''',
}
WRONG["Scaler"] = [
    ("only the last gradient is looked at", "If any number is infinite or NaN, it returns None", "        finite = all(torch.isfinite(g).all() for g in grads if g is not None)\n", "        finite = True\n        for g in grads:\n            if g is not None:\n                finite = torch.isfinite(g).all()\n"),
    ("the sum is finite", "If any number is infinite or NaN, it returns None", "torch.isfinite(g).all()", "torch.isfinite(g.sum())"),
    ("the norm is finite", "If any number is infinite or NaN, it returns None", "torch.isfinite(g).all()", "torch.isfinite(g.norm())"),
    ("minus infinity is not noticed", "If any number is infinite or NaN", "torch.isfinite(g).all()", "not (g.isnan() | (g == math.inf)).any()"),
    ("a scale of at least 1", "After a step that was skipped, the scale is multiplied by `backoff`", "self.scale * self.backoff, 0", "max(1.0, self.scale * self.backoff), 0"),
    ("no more than it began with", "After `interval` good steps in a row it is multiplied by `growth`", "        self.good = 0\n\n", "        self.good, self.most = 0, max(scale, 2.0**15)\n\n", "self.scale * self.growth, 0", "min(self.most, self.scale * self.growth), 0"),
    ("a step without gradients does not count", "After `interval` good steps in a row (one that was not skipped is good)", "        self.good += 1", "        if all(g is None for g in grads):\n            return divided\n        self.good += 1"),
    ("a count for all scalers", "After `interval` good steps in a row", "        self.good = 0\n\n", "\n", "class Scaler:", "class Scaler:\n    good = 0\n", "self.backoff, 0", "self.backoff, 0\n            Scaler.good = 0", "self.scale, self.good = self.scale *", "self.scale, _ = self.scale *", "self.good += 1", "Scaler.good += 1", "self.growth, 0", "self.growth, 0\n            Scaler.good = 0"),
    ("the loss without its graph", "the loss is multiplied by a large number before `backward`", "return loss * self.scale", "return torch.tensor(loss.item() * self.scale)"),
    ("the loss itself is multiplied", "scaler.scaled(loss) returns the loss times the scale", "return loss * self.scale", "return loss.mul_(self.scale)"),
    ("nothing to do at a scale of 1", "It returns a list of them in float32", "        divided =", "        if self.scale == 1:\n            self.good += 1\n            return list(grads)\n        divided ="),
    ("the count goes on after growth", "and the count begins anew", "            self.scale, self.good = self.scale * self.growth, 0", "            self.scale, self.good = self.scale * self.growth, min(1, self.interval - 1)"),
    ("skipped steps count back", "the count begins anew, as it does after a skipped step", "self.scale * self.backoff, 0", "self.scale * self.backoff, max(0, self.good - 1)"),
    ("divided in place in float32", "changes none of the given", "g.float() / self.scale", "g.float().div_(self.scale)"),
    ("a scale that is a tensor", "`scaler.scale` is the number at the moment, a float", "        self.good = 0\n\n", "        self.scale = torch.tensor(scale)\n        self.good = 0\n\n"),
    ("only what is not there is left out", "a `None` where a `None` was", "divided = [None if g is None else g.float() / self.scale for g in grads]", "divided = [g.float() / self.scale for g in grads if g is not None]\n        divided += [None] * (len(grads) - len(divided))"),
]

# --- 8 · Stop and go on --------------------------------------------------------------------------

RIGHT["checkpoint"] = {
    "a deep copy both ways": '''
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
    "a file in memory": '''
import io

PARTS = ("model", "optimizer", "schedule")


def checkpoint(trainer):
    saved = {name: getattr(trainer, name).state_dict() for name in PARTS}
    saved["loader"] = [trainer.order, trainer.position, trainer.generator.get_state()]
    saved["dropout"] = torch.random.get_rng_state()
    buffer = io.BytesIO()
    torch.save(saved, buffer)
    return {"bytes": torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)}


def resume(trainer, saved):
    saved = torch.load(io.BytesIO(saved["bytes"].numpy().tobytes()), weights_only=True)
    for name in PARTS:
        getattr(trainer, name).load_state_dict(saved[name])
    trainer.order, trainer.position, state = saved["loader"]
    trainer.generator = torch.Generator()
    trainer.generator.set_state(state)
    torch.random.set_rng_state(saved["dropout"])
''',
    "weights and memories by hand": '''
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
''',
}
WRONG["checkpoint"] = [
    ("new dice at each checkpoint", "Neither changes what goes on: the run goes on as if nobody had", "def checkpoint(trainer):\n", "def checkpoint(trainer):\n    seed = int(torch.randint(2**31, ()))\n    torch.manual_seed(seed)\n", '"dice": torch.get_rng_state()', '"dice": seed', 'torch.set_rng_state(saved["dice"])', 'torch.manual_seed(saved["dice"])'),
    ("new dice for the order at each checkpoint", "Neither changes what goes on: the run goes on as if nobody had", "def checkpoint(trainer):\n", "def checkpoint(trainer):\n    seed = int(torch.randint(2**31, (), generator=trainer.generator))\n    trainer.generator.manual_seed(seed)\n", "trainer.generator.get_state()", "seed", 'trainer.generator.set_state(saved["generator"])', 'trainer.generator.manual_seed(saved["generator"])'),
    ("the loss is noted beside", "Neither changes what goes on: the run goes on as if nobody had", "def checkpoint(trainer):\n", "def checkpoint(trainer):\n    with torch.no_grad():\n        loss = (trainer.model(trainer.x) - trainer.y).square().mean().item()\n", '"position"', '"loss": loss, "position"'),
    ("the dice are noted before the loss", "Neither changes what goes on: the run goes on as if nobody had", "    return copy.deepcopy({", "    saved = copy.deepcopy({", "    })\n", "    })\n    with torch.no_grad():\n        saved['loss'] = (trainer.model(trainer.x) - trainer.y).square().mean().item()\n    return saved\n"),
    ("the model is left in eval mode", "Neither changes what goes on", "def checkpoint(trainer):\n", "def checkpoint(trainer):\n    trainer.model.eval()\n"),
    ("both are left in eval mode", "Neither changes what goes on", "def checkpoint(trainer):\n", "def checkpoint(trainer):\n    trainer.model.eval()\n", "    saved = copy.deepcopy(saved)\n", "    saved = copy.deepcopy(saved)\n    trainer.model.eval()\n"),
    ("a fresh epoch begins at each checkpoint", "Neither changes what goes on", "def checkpoint(trainer):\n", "def checkpoint(trainer):\n    trainer.order = torch.randperm(len(trainer.x), generator=trainer.generator)\n    trainer.position = 0\n"),
    ("position 0 is not put back", "From there on that trainer does, bit for bit, what the first one did", '    trainer.position = saved["position"]', '    if saved["position"]:\n        trainer.position = saved["position"]'),
    ("AdamW's step count is not copied", "a checkpoint that lies in memory meanwhile stays as it was", "    return copy.deepcopy({", "    saved = copy.deepcopy({", "    })\n", "    })\n    for number, memory in trainer.optimizer.state_dict()['state'].items():\n        saved['optimizer']['state'][number]['step'] = memory['step']\n    return saved\n"),
    ("used up by the first resume", "so that it can be used again", "    saved = copy.deepcopy(saved)\n", "", 'saved["optimizer"]', 'copy.deepcopy(saved["optimizer"])', '    torch.set_rng_state(saved["dice"])', '    torch.set_rng_state(saved.pop("dice", torch.get_rng_state()))'),
    ("the optimizer keeps what it is given", "stays as it was, even after somebody has resumed from it", "    saved = copy.deepcopy(saved)\n", ""),
    ("the dice in a fork", "bit for bit, what the first one did", '    torch.set_rng_state(saved["dice"])', '    with torch.random.fork_rng():\n        torch.set_rng_state(saved["dice"])'),
    ("the order is worked out from the number of steps", "Everything that a step reads and that an earlier step has changed", '    trainer.order = saved["order"]', '    trainer.order = torch.randperm(len(trainer.x), generator=trainer.generator)'),
    ("the gradients go too", "the run goes on as if nobody had", "def checkpoint(trainer):\n", "def checkpoint(trainer):\n    trainer.optimizer.zero_grad()\n    trainer.optimizer.step()\n    trainer.schedule.step()\n"),
    ("the learning rate is rounded", "the same losses, the same weights", '    trainer.schedule.load_state_dict(saved["schedule"])\n', '    trainer.schedule.load_state_dict(saved["schedule"])\n    trainer.optimizer.param_groups[0]["lr"] = round(trainer.optimizer.param_groups[0]["lr"], 4)\n'),
]

# --- 9 · MiniGPT from nothing --------------------------------------------------------------------

RIGHT["train_minigpt"] = {
    "as the hints say": '''
def train_minigpt(inputs, targets, config, steps, seed):
    torch.manual_seed(seed)
    model = MiniGPT(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(steps):
        rows = torch.randint(len(inputs), (64,))
        loss = F.cross_entropy(model(inputs[rows]).flatten(0, 1), targets[rows].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.state_dict()
''',
    "epochs, a warm-up, and a fork": '''
def rows_of(n, size, dice):
    while True:
        yield from torch.randperm(n, generator=dice).split(size)


def train_minigpt(inputs, targets, config, steps, seed, size=64, peak=0.012):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = MiniGPT(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=peak, betas=(0.9, 0.98), weight_decay=0.01)
    climb = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: min(1.0, (k + 1) / 8))
    dealt = rows_of(len(inputs), size, torch.Generator().manual_seed(seed + 1))
    for rows, _ in zip(dealt, range(steps)):
        logits = model(inputs[rows])
        loss = F.cross_entropy(logits.transpose(1, 2), targets[rows])
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        climb.step()
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
''',
}
WRONG["train_minigpt"] = [
    ("three times as many steps", "trains it in `steps` steps", "for _ in range(steps):", "for _ in range(3 * steps):"),
    ("weights that were there before the seed", "The same arguments give the same bits", "    torch.manual_seed(seed)\n    model = MiniGPT(config)\n", "    model = MiniGPT(config)\n    torch.manual_seed(seed)\n"),
    ("one seed for all lines", "another seed other weights", "torch.manual_seed(seed)", "torch.manual_seed(len(inputs))"),
    ("every word counts, padding too", "or -100 where it does not count", "targets[rows].flatten())", "targets[rows].clamp(min=0).flatten())"),
    ("the rows of one batch", "5,000 lines, 150 steps: on lines that you have not seen", "rows = torch.randint(len(inputs), (64,))", "rows = torch.arange(min(64, len(inputs)))"),
    ("in double precision", "weights that fit", "model = MiniGPT(config)", "model = MiniGPT(config).double()"),
    ("trained on from the last time", "It makes a new `MiniGPT(config)`", "    model = MiniGPT(config)\n", "    model = MiniGPT(config)\n    if KEPT.get('config') == config:\n        model.load_state_dict(KEPT['weights'])\n", "    return model.state_dict()", "    KEPT.update(config=config, weights=copy.deepcopy(model.state_dict()))\n    return model.state_dict()", "def train_minigpt", "KEPT = {}\n\n\ndef train_minigpt"),
    ("compiled names", "returns its state_dict()", "return model.state_dict()", "return {'_orig_mod.' + name: value for name, value in model.state_dict().items()}"),
]

# What the check can't tell, or the tools refuse, and why. They are not judged.
OPEN: dict[tuple[str, str], str] = {}

BANK = Bank("07")
BANK.fill(RIGHT, WRONG, OPEN)
