"""Answers to lab 03, a second bank: written from the lesson and the lab's text alone.

`RIGHT[exercise][name]` is a source; `WRONG[exercise][name]` is the sentence of the text that the
source breaks, and the source.
"""

from __future__ import annotations

from tests.phases.bank import Bank


def swap(source: str, *pairs: tuple[str, str]) -> str:
    """The source with each first part, which it holds once, replaced by its second."""
    for old, new in pairs:
        assert source.count(old) == 1, (old, source.count(old))
        source = source.replace(old, new)
    return source


# 1 · count_parameters

COUNT_LOOP = """
def mlp_parameters(widths, bias=True):
    total = 0
    for i in range(len(widths) - 1):
        total += widths[i] * widths[i + 1]
        if bias:
            total += widths[i + 1]
    return total


def minigpt_parameters(config, tied=False):
    d, f, v = config.d_model, config.d_ff, config.vocab_size
    total = v * d + config.context * d
    for _ in range(config.n_layers):
        total += 2 * (d + d)
        total += 4 * mlp_parameters([d, d])
        total += mlp_parameters([d, f, d])
    total += 2 * d
    total += v
    if not tied:
        total += v * d
    return total
"""

COUNT_SHAPES = """
def mlp_parameters(widths: list[int], bias: bool = True) -> int:
    return sum((a + bool(bias)) * b for a, b in zip(widths[:-1], widths[1:]))


def minigpt_parameters(config: MiniGPTConfig, tied: bool = False) -> int:
    D, F, V, T, L = config.d_model, config.d_ff, config.vocab_size, config.context, config.n_layers
    block = [(D,)] * 4 + [(D, D), (D,)] * 4 + [(F, D), (F,), (D, F), (D,)]
    shapes = [(V, D), (T, D)] + block * L + [(D,), (D,), (V,)] + ([] if tied else [(V, D)])
    return sum(math.prod(shape) for shape in shapes)
"""

# 2 · Linear

LINEAR_PLAIN = """
class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        bound = 1 / math.sqrt(in_features)
        self.weight = nn.Parameter(torch.empty(out_features, in_features).uniform_(-bound, bound))
        if bias:
            self.bias = nn.Parameter(torch.empty(out_features).uniform_(-bound, bound))
        else:
            self.bias = None

    def forward(self, x):
        out = x @ self.weight.T
        if self.bias is not None:
            out = out + self.bias
        return out
"""

LINEAR_EINSUM = """
class Linear(nn.Module):
    def __init__(self, in_features: int, out_features: int, bias: bool = True):
        super().__init__()
        self.k = in_features ** -0.5
        self.weight = nn.Parameter((2 * torch.rand(out_features, in_features) - 1) * self.k)
        self.register_parameter("bias", nn.Parameter((2 * torch.rand(out_features) - 1) * self.k) if bias else None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.einsum("...i,oi->...o", x, self.weight)
        return y if self.bias is None else y.add(self.bias)
"""

LINEAR_INIT = """
class Linear(nn.Module):
    def __init__(self, in_features: int, out_features: int, bias: bool = True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = nn.Parameter(torch.zeros(out_features, in_features))
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None
        self.reset()

    def reset(self):
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            b = 1 / self.in_features ** 0.5
            nn.init.uniform_(self.bias, -b, b)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(x.shape[:-1].numel(), self.in_features)
        out = rows.matmul(self.weight.t())
        if self.bias is not None:
            out += self.bias
        return out.reshape(*x.shape[:-1], self.out_features)
"""

# 3 · Embedding

EMBEDDING_INDEX = """
class Embedding(nn.Module):
    def __init__(self, num_embeddings, embedding_dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(num_embeddings, embedding_dim))

    def forward(self, tokens):
        if ((tokens < 0) | (tokens >= self.weight.shape[0])).any():
            raise IndexError("token out of range")
        return self.weight[tokens]
"""

EMBEDDING_ONE_HOT = """
class Embedding(nn.Module):
    def __init__(self, num_embeddings: int, embedding_dim: int):
        super().__init__()
        self.n = num_embeddings
        self.weight = nn.Parameter(torch.empty(num_embeddings, embedding_dim))
        nn.init.normal_(self.weight)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hits = tokens.unsqueeze(-1) == torch.arange(self.n)
        if not hits.any(-1).all():
            raise IndexError(f"tokens must be in 0..{self.n - 1}")
        return hits.to(self.weight.dtype) @ self.weight
"""

EMBEDDING_SELECT = """
class Embedding(nn.Module):
    def __init__(self, num_embeddings: int, embedding_dim: int):
        super().__init__()
        self.register_parameter("weight", nn.Parameter(torch.normal(0.0, 1.0, (num_embeddings, embedding_dim))))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        flat = tokens.reshape(-1)
        for t in flat.tolist():
            if not 0 <= t < len(self.weight):
                raise IndexError(f"no row {t}")
        return self.weight.index_select(0, flat).reshape(*tokens.shape, self.weight.shape[1])
"""

# 4 · LayerNorm

LAYERNORM_PLAIN = """
class LayerNorm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = ((x - mean) ** 2).mean(-1, keepdim=True)
        return self.weight * (x - mean) / torch.sqrt(var + self.eps) + self.bias
"""

LAYERNORM_VAR_MEAN = """
class LayerNorm(nn.Module):
    def __init__(self, width: int, eps: float = 1e-5):
        super().__init__()
        self.width, self.eps = width, eps
        self.weight = nn.Parameter(torch.ones((width,)))
        self.bias = nn.Parameter(torch.zeros((width,)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        var, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
        return torch.addcmul(self.bias, (x - mean) * torch.rsqrt(var + self.eps), self.weight)
"""

LAYERNORM_SHIFTED = """
class LayerNorm(nn.Module):
    def __init__(self, width: int, eps: float = 1e-5):
        super().__init__()
        self.width, self.eps = width, eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        c = x - x.sum(-1, keepdim=True) / self.width
        c = c - c.sum(-1, keepdim=True) / self.width
        length = torch.einsum("...i,...i->...", c, c).unsqueeze(-1) / self.width
        return c / (length + self.eps).pow(0.5) * self.weight + self.bias
"""

LAYERNORM_DOUBLE = """
class LayerNorm(nn.Module):
    def __init__(self, width: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = x.to(torch.float64)
        z = z - z.mean(dim=-1, keepdim=True)
        z = z / (z.square().mean(dim=-1, keepdim=True) + self.eps).sqrt()
        return z.to(x.dtype) * self.weight + self.bias
"""

# 5 · Dropout

DROPOUT_WHERE = """
class Dropout(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError("p must be between 0 and 1")
        self.p = p

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        if self.p == 1:
            return torch.zeros_like(x)
        keep = torch.rand(x.shape) >= self.p
        return torch.where(keep, x / (1 - self.p), torch.zeros_like(x))
"""

DROPOUT_BERNOULLI = """
class Dropout(nn.Module):
    def __init__(self, p: float = 0.5):
        super().__init__()
        if not (0 <= p <= 1):
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            keep = 1 - self.p
            mask = torch.bernoulli(torch.full(x.shape, float(keep)))
            scale = 1 / keep if keep > 0 else 0.0
            return x * (mask * scale).to(x.dtype)
        return x.clone()
"""

DROPOUT_MASKED_FILL = """
class Dropout(nn.Module):
    def __init__(self, p: float = 0.5):
        super().__init__()
        self.p = p
        if not 0.0 <= self.p <= 1.0:
            raise ValueError("not a probability")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x
        gone = torch.from_numpy(np.array(np.random.random(tuple(x.shape)) < self.p))
        if self.p < 1:
            x = x / (1 - self.p)
        return x.masked_fill(gone, 0)
"""

# 6 · Stack

FIT = """
    def fit(self, x: torch.Tensor, y: torch.Tensor, steps: int) -> list[float]:
        losses = []
        for _ in range(steps):
            loss = (self(x) - y).square().mean()
            self.zero_grad()
            loss.backward()
            with torch.no_grad():
                for parameter in self.parameters():
                    if parameter.grad is not None:
                        parameter -= 0.1 * parameter.grad
            losses.append(loss.item())
        return losses
"""

STACK_LIST = (
    """
class Stack(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return x * self.gain
"""
    + FIT
)

STACK_SEQUENTIAL = (
    """
class Stack(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.layers = nn.Sequential()
        for i in range(depth):
            self.layers.add_module(str(i), nn.Linear(width, width))
        self.register_parameter("gain", nn.Parameter(torch.full((width,), 1.0)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(len(self.layers)):
            x = torch.add(x, self.layers[i](x).tanh())
        return self.gain * x
"""
    + FIT
)

STACK_OWN = (
    """
class Stack(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.depth = depth
        self.layers = nn.Module()
        for i in range(depth):
            setattr(self.layers, f"{i}", nn.Linear(width, width))
        self.gain = torch.nn.parameter.Parameter(torch.ones(width), requires_grad=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers.children():
            x = x + torch.tanh(layer(x))
        return torch.mul(x, self.gain)
"""
    + FIT
)

# 7 · RunningNorm

REGISTERED = """
    def registered(self) -> dict[str, list[str]]:
        parameters = sorted(name for name, _ in self.named_parameters())
        return {"parameters": parameters, "buffers": sorted(n for n, _ in self.named_buffers())}
"""

RUNNING_NO_GRAD = (
    """
class RunningNorm(nn.Module):
    def __init__(self, width, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))

    def forward(self, x):
        if not self.training:
            return (x - self.mean) / torch.sqrt(self.variance + 1e-5)
        mean, variance = x.mean(0), x.var(0, correction=0)
        with torch.no_grad():
            self.mean = self.mean + self.momentum * (mean - self.mean)
            self.variance = self.variance + self.momentum * (variance - self.variance)
        return (x - mean) / torch.sqrt(variance + 1e-5)
"""
    + REGISTERED
)

RUNNING_IN_PLACE = (
    """
class RunningNorm(nn.Module):
    def __init__(self, width: int, momentum: float = 0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            mean = x.mean(dim=0)
            variance = ((x - mean) ** 2).mean(dim=0)
            self.mean.mul_(1 - self.momentum).add_(mean.detach(), alpha=self.momentum)
            self.variance.mul_(1 - self.momentum).add_(variance.detach(), alpha=self.momentum)
        else:
            mean, variance = self.mean, self.variance
        return (x - mean) * (variance + 1e-5).rsqrt()
"""
    + REGISTERED
)

RUNNING_LERP = (
    """
class RunningNorm(nn.Module):
    def __init__(self, width: int, momentum: float = 0.1):
        super().__init__()
        self.momentum = momentum
        for name, make in (("mean", torch.zeros), ("variance", torch.ones)):
            self.register_buffer(name, make(width))

    @torch.no_grad()
    def remember(self, mean, variance):
        self.mean.copy_(torch.lerp(self.mean, mean, self.momentum))
        self.variance.copy_(torch.lerp(self.variance, variance, self.momentum))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        m, v = self.mean, self.variance
        if self.training:
            v, m = torch.var_mean(x, 0, correction=0)
            self.remember(m, v)
        return (x - m) / (v + 1e-5) ** 0.5
"""
    + REGISTERED
)

# 8 · run_module

DRIVE = """

def run_module(plan, *requests):
    return drive(Module, plan, *requests)
"""

MODULE_DICTS = (
    """
class Module:
    def __init__(self):
        object.__setattr__(self, "_parameters", {})
        object.__setattr__(self, "_buffers", {})
        object.__setattr__(self, "_modules", {})
        object.__setattr__(self, "training", True)

    def __call__(self, *args):
        return self.forward(*args)

    def __getattr__(self, name):
        for kind in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(kind, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __setattr__(self, name, value):
        was_buffer = name in self._buffers
        for kind in (self._parameters, self._buffers, self._modules, self.__dict__):
            kind.pop(name, None)
        if isinstance(value, nn.Parameter):
            self._parameters[name] = value
        elif isinstance(value, Module):
            self._modules[name] = value
        elif was_buffer and isinstance(value, torch.Tensor):
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def register_buffer(self, name, tensor):
        for kind in (self._parameters, self._modules, self.__dict__):
            kind.pop(name, None)
        self._buffers[name] = tensor

    def named_tensors(self):
        for name, tensor in self._parameters.items():
            yield name, tensor
        for name, tensor in self._buffers.items():
            yield name, tensor
        for name, child in self._modules.items():
            for inner, tensor in child.named_tensors():
                yield f"{name}.{inner}", tensor

    def named_parameters(self):
        seen = set()
        for name, tensor in self.named_tensors():
            if isinstance(tensor, nn.Parameter) and id(tensor) not in seen:
                seen.add(id(tensor))
                yield name, tensor

    def state_dict(self):
        return {name: tensor.detach() for name, tensor in self.named_tensors()}

    def load_state_dict(self, state):
        mine = dict(self.named_tensors())
        problems = []
        for name in mine:
            if name not in state:
                problems.append(f"missing {name}")
            elif mine[name].shape != state[name].shape:
                problems.append(f"shape of {name}")
        for name in state:
            if name not in mine:
                problems.append(f"unexpected {name}")
        if problems:
            raise RuntimeError("; ".join(problems))
        with torch.no_grad():
            for name, tensor in mine.items():
                tensor.copy_(state[name])

    def train(self, mode=True):
        self.training = mode
        for child in self._modules.values():
            child.train(mode)
        return self

    def eval(self):
        return self.train(False)
"""
    + DRIVE
)

MODULE_VARS = (
    """
class Module:
    def __init__(self):
        self.training = True
        self._buffer_names = set()

    def __call__(self, *args):
        return self.forward(*args)

    def __setattr__(self, name, value):
        if not isinstance(value, torch.Tensor) or isinstance(value, nn.Parameter):
            vars(self).get("_buffer_names", set()).discard(name)
        object.__setattr__(self, name, value)

    def register_buffer(self, name, tensor):
        setattr(self, name, tensor)
        self._buffer_names.add(name)

    def _children(self):
        return [(n, v) for n, v in vars(self).items() if isinstance(v, Module)]

    def named_tensors(self):
        for name, value in vars(self).items():
            if isinstance(value, nn.Parameter) or name in self._buffer_names:
                yield name, value
        for name, child in self._children():
            yield from ((name + "." + n, t) for n, t in child.named_tensors())

    def named_parameters(self):
        seen = []
        for name, t in self.named_tensors():
            if isinstance(t, nn.Parameter) and not any(t is s for s in seen):
                seen.append(t)
                yield name, t

    def state_dict(self):
        return dict(self.named_tensors())

    def load_state_dict(self, state):
        own = self.state_dict()
        missing = sorted(set(own) - set(state))
        unexpected = sorted(set(state) - set(own))
        shapes = [n for n in own if n in state and tuple(own[n].shape) != tuple(state[n].shape)]
        if missing or unexpected or shapes:
            raise RuntimeError(f"missing: {missing}, unexpected: {unexpected}, shapes: {shapes}")
        for n, t in own.items():
            t.data.copy_(state[n].detach())

    def train(self, mode: bool = True):
        self.training = mode
        for _, child in self._children():
            child.train(mode)
        return self

    def eval(self):
        return self.train(False)
"""
    + DRIVE
)

MODULE_ENTRIES = (
    '''
class Module:
    """One ordered dict of name -> (kind, value)."""

    def __init__(self):
        self.__dict__["entries"] = {}
        self.training = True

    def __call__(self, *args):
        return self.forward(*args)

    def __setattr__(self, name, value):
        kind = "plain"
        if isinstance(value, nn.Parameter):
            kind = "parameter"
        elif isinstance(value, Module):
            kind = "module"
        elif isinstance(value, torch.Tensor) and self.entries.get(name, ("",))[0] == "buffer":
            kind = "buffer"
        self.entries[name] = (kind, value)

    def __getattr__(self, name):
        try:
            return self.__dict__["entries"][name][1]
        except KeyError:
            raise AttributeError(name) from None

    def register_buffer(self, name, tensor):
        self.entries[name] = ("buffer", tensor)

    def of(self, *kinds):
        return [(name, value) for name, (kind, value) in self.entries.items() if kind in kinds]

    def named_tensors(self):
        out = self.of("parameter", "buffer")
        for name, child in self.of("module"):
            out += [(f"{name}.{below}", tensor) for below, tensor in child.named_tensors()]
        return out

    def named_parameters(self):
        first = {}
        for name, tensor in self.named_tensors():
            if isinstance(tensor, nn.Parameter):
                first.setdefault(id(tensor), (name, tensor))
        return list(first.values())

    def state_dict(self):
        return {name: tensor.detach().clone() for name, tensor in self.named_tensors()}

    def load_state_dict(self, state):
        mine = dict(self.named_tensors())
        wrong = mine.keys() ^ state.keys()
        wrong |= {n for n in mine.keys() & state.keys() if mine[n].size() != state[n].size()}
        if wrong:
            raise RuntimeError("does not fit: " + ", ".join(sorted(wrong)))
        with torch.no_grad():
            for n in mine:
                mine[n][...] = state[n]

    def train(self, mode: bool = True):
        todo = [self]
        while todo:
            module = todo.pop()
            module.training = mode
            todo += [child for _, child in module.of("module")]
        return self

    def eval(self):
        return self.train(False)
'''
    + DRIVE
)

# 10 · bytes_moved

BYTES_WALK = """
def bytes_moved(plan):
    model = assemble(plan)
    size = lambda t: t.numel() * t.element_size()
    total = 0
    for p in model.parameters():
        total += size(p)
        if p.grad is not None:
            total += size(p.grad)
    for module in model.modules():
        for buffer in module._buffers.values():
            if buffer is not None:
                total += size(buffer)
    return total
"""

BYTES_NAMED = """
def bytes_moved(plan) -> int:
    model = assemble(plan)
    tensors = [b for m in model.modules() for _, b in m.named_buffers(recurse=False, remove_duplicate=False)]
    for p in model.parameters():
        tensors += [p] if p.grad is None else [p, p.grad]
    return sum(t.nelement() * t.dtype.itemsize for t in tensors)
"""

BYTES_WATCH = """
def bytes_moved(plan) -> int:
    model = assemble(plan)
    done, total = set(), 0

    def visit(module):
        nonlocal total
        if id(module) in done:
            return
        done.add(id(module))
        for child in module.children():
            visit(child)
        for p in module.parameters(recurse=False):
            if id(p) not in done:
                done.add(id(p))
                total += p.nbytes + (0 if p.grad is None else p.grad.nbytes)
        total += sum(b.nbytes for b in module._buffers.values() if b is not None)

    visit(model)
    return total
"""

# 11 · minigpt_logits

GPT_HAND = """
class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        d = config.d_model
        self.heads = config.n_heads
        self.query, self.key = nn.Linear(d, d), nn.Linear(d, d)
        self.value, self.output = nn.Linear(d, d), nn.Linear(d, d)

    def split(self, x):
        B, T, D = x.shape
        return x.view(B, T, self.heads, D // self.heads).transpose(1, 2)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = q @ k.mT / math.sqrt(D // self.heads)
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(future, float("-inf")).softmax(-1)
        return self.output((weights @ v).transpose(1, 2).reshape(B, T, D))


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.up = nn.Linear(config.d_model, config.d_ff)
        self.down = nn.Linear(config.d_ff, config.d_model)
        self.bend = nn.GELU(approximate="tanh")

    def forward(self, x):
        return self.down(self.bend(self.up(x)))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(config.d_model), nn.LayerNorm(config.d_model)
        self.attention, self.mlp = Attention(config), MLP(config)

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class Port(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.token_embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.position_embedding = nn.Embedding(config.context, config.d_model)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.n_layers)])
        self.final_norm = nn.LayerNorm(config.d_model)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size)

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(positions)
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.final_norm(x))


def minigpt_logits(weights, tokens, config, device="cpu", dtype=torch.float32):
    model = Port(config)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    model = model.to(device=device, dtype=dtype).eval()
    with torch.no_grad():
        logits = model(tokens.to(device))
    return logits.float().cpu()
"""

GPT_SDPA = """
class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.h = c.n_heads
        self.norm_1 = nn.LayerNorm(c.d_model)
        self.attention = nn.ModuleDict({n: nn.Linear(c.d_model, c.d_model) for n in ("query", "key", "value", "output")})
        self.norm_2 = nn.LayerNorm(c.d_model)
        self.mlp = nn.ModuleDict({"up": nn.Linear(c.d_model, c.d_ff), "down": nn.Linear(c.d_ff, c.d_model)})

    def forward(self, x):
        y = self.norm_1(x)
        q, k, v = (self.attention[n](y).unflatten(-1, (self.h, -1)).transpose(1, 2) for n in ("query", "key", "value"))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention["output"](y.transpose(1, 2).flatten(2))
        y = nn.functional.gelu(self.mlp["up"](self.norm_2(x)), approximate="tanh")
        return x + self.mlp["down"](y)


class Port(nn.Module):
    def __init__(self, config: MiniGPTConfig):
        super().__init__()
        self.token_embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.position_embedding = nn.Embedding(config.context, config.d_model)
        self.blocks = nn.Sequential(*(Block(config) for _ in range(config.n_layers)))
        self.final_norm = nn.LayerNorm(config.d_model)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.token_embedding(tokens) + self.position_embedding.weight[: tokens.shape[-1]]
        return self.lm_head(self.final_norm(self.blocks(x)))


def minigpt_logits(weights, tokens, config, device="cpu", dtype=torch.float32):
    port = Port(config).to(device, dtype)
    with torch.inference_mode():
        for name, p in port.named_parameters():
            p.copy_(torch.tensor(weights[name]))
        return port(tokens.to(device)).to("cpu", torch.float32)
"""

GPT_FUSED = '''
class Port(nn.Module):
    """Query, key and value in one product; the names are translated."""

    def __init__(self, config: MiniGPTConfig):
        super().__init__()
        D, F = config.d_model, config.d_ff
        self.config = config
        self.tok = nn.Parameter(torch.zeros(config.vocab_size, D))
        self.pos = nn.Parameter(torch.zeros(config.context, D))
        self.qkv = nn.ModuleList(nn.Linear(D, 3 * D) for _ in range(config.n_layers))
        self.out = nn.ModuleList(nn.Linear(D, D) for _ in range(config.n_layers))
        self.n1 = nn.ModuleList(nn.LayerNorm(D) for _ in range(config.n_layers))
        self.n2 = nn.ModuleList(nn.LayerNorm(D) for _ in range(config.n_layers))
        self.up = nn.ModuleList(nn.Linear(D, F) for _ in range(config.n_layers))
        self.down = nn.ModuleList(nn.Linear(F, D) for _ in range(config.n_layers))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, config.vocab_size)

    def take(self, weights):
        w = {name: torch.as_tensor(array) for name, array in weights.items()}
        state = {"tok": w["token_embedding.weight"], "pos": w["position_embedding.weight"]}
        for end in ("weight", "bias"):
            state[f"norm.{end}"], state[f"head.{end}"] = w[f"final_norm.{end}"], w[f"lm_head.{end}"]
            for i in range(self.config.n_layers):
                b = f"blocks.{i}."
                state[f"qkv.{i}.{end}"] = torch.cat([w[f"{b}attention.{n}.{end}"] for n in ("query", "key", "value")])
                state[f"out.{i}.{end}"] = w[f"{b}attention.output.{end}"]
                state[f"n1.{i}.{end}"], state[f"n2.{i}.{end}"] = w[f"{b}norm_1.{end}"], w[f"{b}norm_2.{end}"]
                state[f"up.{i}.{end}"], state[f"down.{i}.{end}"] = w[f"{b}mlp.up.{end}"], w[f"{b}mlp.down.{end}"]
        self.load_state_dict(state)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        B, T = tokens.shape
        H, D = self.config.n_heads, self.config.d_model
        x = self.tok[tokens] + self.pos[:T]
        allowed = torch.ones(T, T, device=x.device).tril() > 0
        for qkv, out, n1, n2, up, down in zip(self.qkv, self.out, self.n1, self.n2, self.up, self.down):
            q, k, v = (t.reshape(B, T, H, D // H).permute(0, 2, 1, 3) for t in qkv(n1(x)).chunk(3, -1))
            scores = torch.einsum("bhqc,bhkc->bhqk", q, k) * (D // H) ** -0.5
            scores = torch.where(allowed, scores, torch.finfo(scores.dtype).min)
            x = x + out(torch.einsum("bhqk,bhkc->bqhc", scores.softmax(-1), v).reshape(B, T, D))
            x = x + down(nn.functional.gelu(up(n2(x)), approximate="tanh"))
        return self.head(self.norm(x))


def minigpt_logits(weights, tokens, config, device="cpu", dtype=torch.float32):
    port = Port(config)
    port.take(weights)
    port.to(device).to(dtype)
    return port(tokens.to(device)).detach().cpu().to(torch.float32)
'''

RIGHT: dict[str, dict[str, str]] = {
    "count_parameters": {"loop": COUNT_LOOP, "shapes": COUNT_SHAPES},
    "Linear": {"plain": LINEAR_PLAIN, "einsum": LINEAR_EINSUM, "init": LINEAR_INIT},
    "Embedding": {
        "index": EMBEDDING_INDEX,
        "one_hot": EMBEDDING_ONE_HOT,
        "select": EMBEDDING_SELECT,
    },
    "LayerNorm": {
        "plain": LAYERNORM_PLAIN,
        "var_mean": LAYERNORM_VAR_MEAN,
        "shifted": LAYERNORM_SHIFTED,
        "double": LAYERNORM_DOUBLE,
    },
    "Dropout": {
        "where": DROPOUT_WHERE,
        "bernoulli": DROPOUT_BERNOULLI,
        "fill": DROPOUT_MASKED_FILL,
    },
    "Stack": {"list": STACK_LIST, "sequential": STACK_SEQUENTIAL, "own": STACK_OWN},
    "RunningNorm": {"no_grad": RUNNING_NO_GRAD, "in_place": RUNNING_IN_PLACE, "lerp": RUNNING_LERP},
    "run_module": {
        "dicts": MODULE_DICTS,
        "vars": MODULE_VARS,
        "entries": MODULE_ENTRIES,
        # the text leaves open whether a name that was a buffer's is one again
        "always_a_buffer": swap(
            MODULE_VARS,
            (
                '            vars(self).get("_buffer_names", set()).discard(name)\n',
                "            pass\n",
            ),
            (
                "or name in self._buffer_names:",
                "or (name in self._buffer_names and isinstance(value, torch.Tensor)):",
            ),
        ),
    },
    "bytes_moved": {"walk": BYTES_WALK, "named": BYTES_NAMED, "watch": BYTES_WATCH},
    "minigpt_logits": {"hand": GPT_HAND, "sdpa": GPT_SDPA, "fused": GPT_FUSED},
}

UNCHANGED = "What comes in may be transposed, sliced or expanded, of size 1 or empty; nothing of yours may change it."

WRONG: dict[str, dict[str, tuple[str, str]]] = {
    "count_parameters": {
        "last_bias_only": (
            "Without `bias`, its layers have weights alone.",
            swap(COUNT_LOOP, ("        if bias:\n", "        if bias or i < len(widths) - 2:\n")),
        ),
        "equal_layers_once": (
            "`widths` may be equal.",
            swap(
                COUNT_SHAPES,
                ("in zip(widths[:-1], widths[1:])", "in set(zip(widths[:-1], widths[1:]))"),
            ),
        ),
        "tied_head_without_bias": (
            "Every linear layer has a bias; when `tied`, the LM head's *weight* is the word embedding's.",
            swap(
                COUNT_LOOP,
                (
                    "    total += v\n    if not tied:\n        total += v * d\n",
                    "    if not tied:\n        total += v * d + v\n",
                ),
            ),
        ),
        "tied_to_the_positions": (
            "When `tied`, the LM head's weight *is* the word embedding's.",
            swap(
                COUNT_LOOP,
                (
                    "    if not tied:\n        total += v * d\n",
                    "    total += v * d\n    if tied:\n        total -= config.context * d\n",
                ),
            ),
        ),
        "final_norm_in_each_block": (
            "At the end a LayerNorm and the LM head.",
            swap(
                COUNT_LOOP,
                ("total += 2 * (d + d)", "total += 3 * (d + d)"),
                ("    total += 2 * d\n", ""),
            ),
        ),
        "bias_for_each_input": (
            "Every linear layer has a bias.",
            swap(COUNT_SHAPES, ("(a + bool(bias)) * b", "a * b + (a if bias else 0)")),
        ),
        "makes_a_model": (
            "To make a model and count what it holds does not count here.",
            swap(
                COUNT_LOOP,
                (
                    "    total = 0\n    for i in range(len(widths) - 1):\n        total += widths[i] * widths[i + 1]\n"
                    "        if bias:\n            total += widths[i + 1]\n    return total\n",
                    "    layers = [nn.Linear(a, b, bias=bias) for a, b in zip(widths, widths[1:])]\n"
                    "    return sum(p.numel() for p in nn.Sequential(*layers).parameters())\n",
                ),
            ),
        ),
    },
    "Linear": {
        "zeros_for_no_bias": (
            "When `bias` is False, the attribute `bias` is `None`.",
            swap(LINEAR_PLAIN, ("self.bias = None", "self.bias = torch.zeros(out_features)")),
        ),
        "no_bias_crashes": (
            "It takes x of shape (…, in) to (…, out), also without a bias.",
            swap(
                LINEAR_PLAIN,
                (
                    "        out = x @ self.weight.T\n        if self.bias is not None:\n            out = out + self.bias\n        return out\n",
                    "        return x @ self.weight.T + self.bias\n",
                ),
            ),
        ),
        "frozen_zero_bias": (
            "Only `weight` is saved.",
            swap(
                LINEAR_PLAIN,
                (
                    "self.bias = None",
                    "self.bias = nn.Parameter(torch.zeros(out_features), requires_grad=False)",
                ),
            ),
        ),
        "view_of_rows": (
            UNCHANGED,
            swap(
                LINEAR_INIT,
                (
                    "rows = x.reshape(x.shape[:-1].numel(), self.in_features)",
                    "rows = x.view(-1, self.in_features)",
                ),
            ),
        ),
        "squeezes_one_output": (
            "It takes x of shape (…, in) to (…, out).",
            swap(LINEAR_PLAIN, ("        return out\n", "        return out.squeeze(-1)\n")),
        ),
        "bound_by_outputs": (
            "Both uniformly between −1/√in and +1/√in.",
            swap(
                LINEAR_PLAIN,
                (
                    "torch.empty(out_features).uniform_(-bound, bound)",
                    "torch.empty(out_features).uniform_(-out_features ** -0.5, out_features ** -0.5)",
                ),
            ),
        ),
        "xavier": (
            "Both uniformly between −1/√in and +1/√in.",
            swap(
                LINEAR_INIT,
                (
                    "nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))",
                    "nn.init.xavier_uniform_(self.weight, gain=3 ** -0.5)",
                ),
            ),
        ),
        "bias_begins_at_zero": (
            "A fresh one draws both uniformly.",
            swap(
                LINEAR_INIT,
                (
                    "            b = 1 / self.in_features ** 0.5\n            nn.init.uniform_(self.bias, -b, b)\n",
                    "            nn.init.zeros_(self.bias)\n",
                ),
            ),
        ),
        "own_seed": (
            "A fresh one draws both uniformly, as `nn.Linear` does.",
            swap(
                LINEAR_PLAIN, ("        bound = ", "        torch.manual_seed(0)\n        bound = ")
            ),
        ),
        "weight_data": (
            "A layer that gives the right output and lets no gradient through is one that nobody can train.",
            swap(LINEAR_PLAIN, ("x @ self.weight.T", "x @ self.weight.data.T")),
        ),
        "one_by_one_bias": (
            "`weight` (out, in) and `bias` (out,).",
            swap(
                LINEAR_PLAIN,
                ("torch.empty(out_features).uniform_", "torch.empty(1, out_features).uniform_"),
            ),
        ),
        "addmm_in_disguise": (
            "Torch's own layer, its function and their variants do not count, … called.",
            swap(
                LINEAR_PLAIN,
                (
                    "        out = x @ self.weight.T\n        if self.bias is not None:\n            out = out + self.bias\n        return out\n",
                    "        return torch._C._nn.linear(x, self.weight, self.bias)\n",
                ),
            ),
        ),
        "a_layer_inside": (
            "Torch's own layer does not count as a part inside.",
            """
class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        inner = nn.Linear(in_features, out_features, bias=bias)
        self.weight, self.bias = inner.weight, inner.bias

    def forward(self, x):
        out = x @ self.weight.T
        return out if self.bias is None else out + self.bias
""",
        ),
    },
    "Embedding": {
        "negative_from_the_end": (
            "That means *any* such token; Python has an opinion of its own about the index −1.",
            swap(
                EMBEDDING_INDEX,
                (
                    "((tokens < 0) | (tokens >= self.weight.shape[0])).any()",
                    "(tokens >= self.weight.shape[0]).any()",
                ),
            ),
        ),
        "one_past_the_end": (
            "A token that is not in the table raises IndexError.",
            swap(
                EMBEDDING_ONE_HOT,
                ("if not hits.any(-1).all():", "if ((tokens < 0) | (tokens > self.n)).any():"),
            ),
        ),
        "min_of_nothing": (
            "One token or none.",
            swap(
                EMBEDDING_INDEX,
                (
                    "((tokens < 0) | (tokens >= self.weight.shape[0])).any()",
                    "tokens.min() < 0 or tokens.max() >= len(self.weight)",
                ),
            ),
        ),
        "view_of_tokens": (
            UNCHANGED,
            swap(EMBEDDING_SELECT, ("flat = tokens.reshape(-1)", "flat = tokens.view(-1)")),
        ),
        "squeezes": (
            "(…,) -> (…, embedding_dim).",
            swap(
                EMBEDDING_INDEX,
                ("return self.weight[tokens]", "return self.weight[tokens].squeeze()"),
            ),
        ),
        "padding_row": (
            "Is drawn from a normal distribution with mean 0 and deviation 1.",
            swap(
                EMBEDDING_ONE_HOT,
                (
                    "nn.init.normal_(self.weight)",
                    "nn.init.normal_(self.weight)\n        self.weight.data[0] = 0",
                ),
            ),
        ),
        "uniform_of_deviation_one": (
            "Is drawn from a normal distribution.",
            swap(
                EMBEDDING_ONE_HOT,
                (
                    "nn.init.normal_(self.weight)",
                    "nn.init.uniform_(self.weight, -3 ** 0.5, 3 ** 0.5)",
                ),
            ),
        ),
        "value_error": (
            "Raises `IndexError`.",
            swap(
                EMBEDDING_INDEX,
                (
                    'raise IndexError("token out of range")',
                    'raise ValueError("token out of range")',
                ),
            ),
        ),
        "first_row_only": (
            "*Any* such token.",
            swap(
                EMBEDDING_INDEX,
                (
                    "((tokens < 0) | (tokens >= self.weight.shape[0])).any()",
                    "(tokens.reshape(-1)[:8] < 0).any()",
                ),
            ),
        ),
        "pads_minus_one": (
            "Data sets like to mark a gap with −1 or −100: any such token raises.",
            swap(
                EMBEDDING_INDEX,
                (
                    "        if ((tokens",
                    "        if (tokens == -100).all() and tokens.numel():\n            return torch.zeros(*tokens.shape, self.weight.shape[1])\n        if ((tokens",
                ),
            ),
        ),
        "embedding_bag": (
            "`nn.Embedding`, `F.embedding` and their variants do not count.",
            swap(
                EMBEDDING_INDEX,
                ("return self.weight[tokens]", "return torch.embedding(self.weight, tokens)"),
            ),
        ),
    },
    "LayerNorm": {
        "unbiased": (
            "σ² the mean of (x − μ)², divided by n.",
            swap(LAYERNORM_VAR_MEAN, ("unbiased=False, ", "")),
        ),
        "eps_outside": (
            "√(σ² + ε).",
            swap(LAYERNORM_PLAIN, ("torch.sqrt(var + self.eps)", "(torch.sqrt(var) + self.eps)")),
        ),
        "eps_fixed": (
            "`LayerNorm(width, eps=1e-5)`.",
            swap(LAYERNORM_PLAIN, ("torch.sqrt(var + self.eps)", "torch.sqrt(var + 1e-5)")),
        ),
        "squares_minus_square": (
            "A mean of ±1,000 with a deviation of 1 must come out as well as a mean of 0.",
            swap(
                LAYERNORM_PLAIN,
                (
                    "((x - mean) ** 2).mean(-1, keepdim=True)",
                    "(x * x).mean(-1, keepdim=True) - mean * mean",
                ),
            ),
        ),
        "mu_detached": (
            "The gradient of x flows through μ and σ, too, so leave both in the graph.",
            swap(
                LAYERNORM_PLAIN,
                ("mean = x.mean(-1, keepdim=True)", "mean = x.mean(-1, keepdim=True).detach()"),
            ),
        ),
        "sigma_detached": (
            "The gradient of x flows through μ and σ, too, so leave both in the graph.",
            swap(
                LAYERNORM_PLAIN,
                (
                    "((x - mean) ** 2).mean(-1, keepdim=True)",
                    "((x - mean) ** 2).mean(-1, keepdim=True).detach()",
                ),
            ),
        ),
        "corrects_the_unbiased": (
            UNCHANGED,
            swap(
                LAYERNORM_PLAIN,
                (
                    "((x - mean) ** 2).mean(-1, keepdim=True)",
                    "x.var(-1, keepdim=True) * (x.shape[-1] - 1) / x.shape[-1]",
                ),
            ),
        ),
        "view_of_rows": (
            UNCHANGED,
            swap(
                LAYERNORM_PLAIN,
                (
                    "        mean = x.mean",
                    "        shape = x.shape\n        x = x.view(-1, shape[-1])\n        mean = x.mean",
                ),
                ("+ self.bias\n", "+ self.bias).view(shape)\n"),
                ("return self.weight", "return (self.weight"),
            ),
        ),
        "larger_of_both": (
            "√(σ² + ε).",
            swap(
                LAYERNORM_PLAIN,
                ("torch.sqrt(var + self.eps)", "torch.sqrt(torch.clamp(var, min=self.eps))"),
            ),
        ),
        "constant_rows_apart": (
            "Rows may be constant or nearly so (there, too, the gradient must be right).",
            swap(
                LAYERNORM_PLAIN,
                (
                    "        return self.weight *",
                    "        x = torch.where(var < 1e-12, mean.detach(), x)\n        return self.weight *",
                ),
            ),
        ),
        "bias_scaled": (
            "y = w ⊙ … + b.",
            swap(
                LAYERNORM_PLAIN,
                (
                    "self.weight * (x - mean) / torch.sqrt(var + self.eps) + self.bias",
                    "self.weight * ((x - mean) / torch.sqrt(var + self.eps) + self.bias)",
                ),
            ),
        ),
        "in_place": (
            UNCHANGED,
            swap(
                LAYERNORM_PLAIN,
                (
                    "        var = ",
                    "        if not x.requires_grad:\n            x -= mean\n            mean = torch.zeros_like(mean)\n        var = ",
                ),
            ),
        ),
        "half_up_to_three_dims": (
            "For each row of the last dimension.",
            swap(
                LAYERNORM_PLAIN,
                (
                    "        mean = x.mean",
                    "        if x.dim() == 4:\n            x = x.flatten(1, 2)\n        mean = x.mean",
                ),
            ),
        ),
        "rms_of_centred": (
            "Torch's other layers that normalise do not count.",
            swap(
                LAYERNORM_PLAIN,
                ("        var = ((x - mean) ** 2).mean(-1, keepdim=True)\n", ""),
                (
                    "self.weight * (x - mean) / torch.sqrt(var + self.eps) + self.bias",
                    "torch.rms_norm(x - mean, (x.shape[-1],), self.weight, self.eps) + self.bias",
                ),
            ),
        ),
    },
    "Dropout": {
        "unscaled": (
            "Those that stay are made larger, so that the *expected* value of every element is what it was.",
            swap(DROPOUT_WHERE, ("x / (1 - self.p)", "x")),
        ),
        "scaled_by_p": (
            "Those that stay are made larger, so that the *expected* value of every element is what it was.",
            swap(DROPOUT_WHERE, ("x / (1 - self.p)", "x / self.p")),
        ),
        "as_in_the_first_paper": (
            "In eval mode the input passes as it is.",
            swap(
                DROPOUT_WHERE,
                (
                    "        if not self.training or self.p == 0:\n            return x\n",
                    "        if not self.training or self.p == 0:\n            return x * (1 - self.p)\n",
                ),
                ("x / (1 - self.p)", "x"),
            ),
        ),
        "above_one": (
            "A `p` below 0 or above 1 raises `ValueError`.",
            swap(DROPOUT_WHERE, ("if p < 0 or p > 1:", "if p < 0:")),
        ),
        "refused_when_called": (
            "Raises `ValueError`, when the layer is made.",
            swap(
                DROPOUT_WHERE,
                (
                    '        if p < 0 or p > 1:\n            raise ValueError("p must be between 0 and 1")\n',
                    "",
                ),
                (
                    "        if not self.training or",
                    '        if self.p < 0 or self.p > 1:\n            raise ValueError("p must be between 0 and 1")\n        if not self.training or',
                ),
            ),
        ),
        "one_mask_for_the_batch": (
            "Each element of the input, of any shape, on its own.",
            swap(DROPOUT_WHERE, ("torch.rand(x.shape)", "torch.rand(x.shape[-2:])")),
        ),
        "float32_for_bfloat16": (
            "The dtype of the input stays, whichever floating-point dtype that is.",
            swap(
                DROPOUT_BERNOULLI,
                (
                    ".to(x.dtype)",
                    ".to(torch.float16 if x.dtype == torch.float16 else torch.float32)",
                ),
            ),
        ),
        "float64_becomes_float32": (
            "The dtype of the input stays, whichever floating-point dtype that is.",
            swap(
                DROPOUT_WHERE,
                (
                    "        keep = ",
                    "        x = x if x.dtype == torch.float16 else x.float()\n        keep = ",
                ),
            ),
        ),
        "exact_share": (
            "So the number of those that go differs from call to call.",
            swap(
                DROPOUT_WHERE,
                (
                    "keep = torch.rand(x.shape) >= self.p",
                    "keep = (torch.randperm(x.numel()) >= round(self.p * x.numel())).view(x.shape)",
                ),
            ),
        ),
        "straight_through": (
            "Gradients go where the values went, by the same factor.",
            swap(
                DROPOUT_MASKED_FILL,
                (
                    "return x.masked_fill(gone, 0)",
                    "return x + (x.masked_fill(gone, 0) - x).detach()",
                ),
            ),
        ),
        "gradient_unscaled": (
            "Gradients go where the values went, by the same factor.",
            swap(
                DROPOUT_WHERE,
                (
                    "        return torch.where(keep, x / (1 - self.p), torch.zeros_like(x))\n",
                    "        out = x * keep\n        return out + (out * self.p / (1 - self.p)).detach()\n",
                ),
            ),
        ),
        "mask_kept": (
            "Anew in each call.",
            swap(
                DROPOUT_WHERE,
                (
                    "        keep = torch.rand(x.shape) >= self.p\n",
                    '        if getattr(self, "shape", None) != x.shape:\n            self.shape, self.keep = x.shape, torch.rand(x.shape) >= self.p\n        keep = self.keep\n',
                ),
            ),
        ),
        "channels": (
            "Each element on its own.",
            swap(
                DROPOUT_WHERE,
                ("torch.rand(x.shape)", "torch.rand(*x.shape[:2], *[1] * (x.dim() - 2))"),
            ),
        ),
        "nan_when_all_go": (
            "`p` may be 0 or 1, and in training the latter gives zeros.",
            swap(
                DROPOUT_WHERE,
                ("        if self.p == 1:\n            return torch.zeros_like(x)\n", ""),
                (
                    "torch.where(keep, x / (1 - self.p), torch.zeros_like(x))",
                    "x * keep / (1 - self.p)",
                ),
            ),
        ),
        "mode_at_first": (
            "It may change at any time.",
            swap(
                DROPOUT_WHERE,
                (
                    "        self.p = p\n",
                    "        self.p = p\n        self.active = self.training\n",
                ),
                ("if not self.training or", "if not self.active or"),
            ),
        ),
        "no_scalar": (
            "Of any shape.",
            swap(
                DROPOUT_WHERE,
                (
                    "torch.rand(x.shape)",
                    "torch.stack([torch.rand(x.shape[1:]) for _ in range(x.shape[0])])",
                ),
            ),
        ),
        "native": (
            "`nn.Dropout`, `F.dropout` and their variants do not count.",
            swap(
                DROPOUT_WHERE,
                (
                    "        keep = torch.rand(x.shape) >= self.p\n        return torch.where(keep, x / (1 - self.p), torch.zeros_like(x))\n",
                    "        return torch.native_dropout(x, self.p, True)[0]\n",
                ),
            ),
        ),
    },
    "Stack": {
        "gain_data_left": (
            "Mend it, so that all of it is trained.",
            swap(STACK_LIST, ("return x * self.gain\n", "return x * self.gain.data\n")),
        ),
        "gain_frozen": (
            "Mend it, so that all of it is trained.",
            swap(STACK_OWN, ("requires_grad=True", "requires_grad=False")),
        ),
        "gain_not_registered": (
            "Mend it, so that all of it is trained.",
            swap(
                STACK_LIST,
                ("nn.Parameter(torch.ones(width))", "torch.ones(width, requires_grad=True)"),
            ),
        ),
        "a_buffer": (
            "Mend it, so that all of it is trained.",
            swap(
                STACK_SEQUENTIAL,
                (
                    'self.register_parameter("gain", nn.Parameter(torch.full((width,), 1.0)))',
                    'self.register_buffer("gain", torch.ones(width, requires_grad=True))',
                ),
            ),
        ),
        "one_layer_at_least": (
            "`depth` may be 0.",
            swap(
                STACK_LIST,
                (
                    "        for layer in self.layers:\n",
                    "        x = x + torch.tanh(self.layers[0](x))\n        for layer in self.layers[1:]:\n",
                ),
            ),
        ),
        "one_layer_for_all": (
            "The layers are `layers.0`, `layers.1` and so on; its layers begin as nn.Linear makes them.",
            swap(
                STACK_LIST,
                (
                    "[nn.Linear(width, width) for _ in range(depth)]",
                    "[nn.Linear(width, width)] * depth",
                ),
            ),
        ),
        "fit_with_adam": (
            "`fit` is given; leave it as it is.",
            swap(
                STACK_LIST,
                (
                    "                        parameter -= 0.1 * parameter.grad\n",
                    "                        parameter -= 0.1 * parameter.grad.clamp(-1, 1)\n",
                ),
            ),
        ),
        "one_gain": (
            "The gain is `gain`, of shape (width,).",
            swap(STACK_LIST, ("torch.ones(width)", "torch.ones(1)")),
        ),
        "no_residual": (
            "What it computes stays the same.",
            swap(STACK_LIST, ("x = x + torch.tanh(layer(x))", "x = torch.tanh(layer(x))")),
        ),
        "fresh_orthogonal": (
            "Its layers begin as `nn.Linear` makes them.",
            swap(
                STACK_LIST,
                (
                    "        self.gain =",
                    "        for layer in self.layers:\n            nn.init.uniform_(layer.weight, 0, width ** -0.5)\n        self.gain =",
                ),
            ),
        ),
        "inputs_detached": (
            "A layer that gives the right output and lets no gradient through is one that nobody can train.",
            swap(STACK_LIST, ("torch.tanh(layer(x))", "torch.tanh(layer(x.detach()))")),
        ),
        "in_place": (
            UNCHANGED,
            swap(
                STACK_LIST,
                (
                    "            x = x + torch.tanh(layer(x))\n",
                    "            y = torch.tanh(layer(x))\n            if x.requires_grad:\n                x = x + y\n            else:\n                x += y\n",
                ),
            ),
        ),
    },
    "RunningNorm": {
        "frozen_parameters": (
            "No optimizer ever sees them.",
            swap(
                RUNNING_LERP,
                (
                    "self.register_buffer(name, make(width))",
                    "setattr(self, name, nn.Parameter(make(width), requires_grad=False))",
                ),
            ),
        ),
        "not_persistent": (
            "They are saved with the model.",
            swap(
                RUNNING_LERP,
                (
                    "self.register_buffer(name, make(width))",
                    "self.register_buffer(name, make(width), persistent=False)",
                ),
            ),
        ),
        "output_without_graph": (
            "The output goes on having its graph.",
            swap(
                RUNNING_LERP, ("    def forward(self", "    @torch.no_grad()\n    def forward(self")
            ),
        ),
        "statistics_detached": (
            "The output goes on having its graph, through the batch's own mean and variance.",
            swap(
                RUNNING_NO_GRAD,
                (
                    "mean, variance = x.mean(0), x.var(0, correction=0)",
                    "mean, variance = x.detach().mean(0), x.detach().var(0, correction=0)",
                ),
            ),
        ),
        "graph_of_one_batch": (
            "Its memory is computed from `x`, and so carries the graph.",
            swap(
                RUNNING_NO_GRAD,
                (
                    "        with torch.no_grad():\n            self.mean = self.mean +",
                    "        if True:\n            self.mean = self.mean.detach() +",
                ),
                ("self.variance = self.variance +", "self.variance = self.variance.detach() +"),
            ),
        ),
        "variance_with_graph": (
            "Its memory is computed from `x`, and so carries the graph.",
            swap(RUNNING_NO_GRAD, ("            self.variance = ", "        self.variance = ")),
        ),
        "momentum_the_other_way": (
            "What comes out, in training and in eval, is what came out of the broken one.",
            swap(
                RUNNING_LERP,
                ("mean, self.momentum)", "mean, 1 - self.momentum)"),
                ("variance, self.momentum)", "variance, 1 - self.momentum)"),
            ),
        ),
        "zero_momentum_is_default": (
            "For any momentum from 0 to 1.",
            swap(
                RUNNING_NO_GRAD, ("self.momentum = momentum\n", "self.momentum = momentum or 0.1\n")
            ),
        ),
        "one_row_not_remembered": (
            "Any batch, of one row too.",
            swap(
                RUNNING_NO_GRAD,
                (
                    "        with torch.no_grad():\n            self.mean = self.mean + self.momentum * (mean - self.mean)\n            self.variance =",
                    "        with torch.no_grad():\n            self.mean = self.mean + self.momentum * (mean - self.mean)\n            if len(x) > 1:\n                self.variance =",
                ),
            ),
        ),
        "corrects_the_unbiased": (
            "Any batch, of one row too.",
            swap(RUNNING_NO_GRAD, ("x.var(0, correction=0)", "x.var(0) * (len(x) - 1) / len(x)")),
        ),
        "unbiased_memory": (
            "What comes out, in training and in eval, is what came out of the broken one.",
            swap(
                RUNNING_NO_GRAD,
                (
                    "(variance - self.variance)",
                    "(variance * len(x) / max(len(x) - 1, 1) - self.variance)",
                ),
            ),
        ),
        "eps_outside_in_eval": (
            "What comes out, in training and in eval, is what came out of the broken one.",
            swap(
                RUNNING_NO_GRAD,
                (
                    "(x - self.mean) / torch.sqrt(self.variance + 1e-5)",
                    "(x - self.mean) / (torch.sqrt(self.variance) + 1e-5)",
                ),
            ),
        ),
        "eval_learns": (
            "In eval it uses what it remembers.",
            swap(
                RUNNING_LERP,
                (
                    "        if self.training:\n            v, m = torch.var_mean(x, 0, correction=0)\n            self.remember(m, v)\n",
                    "        b, a = torch.var_mean(x, 0, correction=0)\n        self.remember(a, b)\n        if self.training:\n            v, m = b, a\n",
                ),
            ),
        ),
        "eval_detached": (
            "What comes out is what came out of the broken one.",
            swap(
                RUNNING_NO_GRAD, ("return (x - self.mean) /", "return (x.detach() - self.mean) /")
            ),
        ),
        "memory_used_in_training": (
            "In training it uses those of the batch.",
            swap(
                RUNNING_NO_GRAD,
                (
                    "return (x - mean) / torch.sqrt(variance + 1e-5)",
                    "return (x - mean) / torch.sqrt(self.variance + 1e-5)",
                ),
            ),
        ),
        "first_batch_whole": (
            "For any momentum; what came out of the broken one.",
            swap(
                RUNNING_NO_GRAD,
                (
                    "        with torch.no_grad():\n",
                    "        with torch.no_grad():\n            if (self.mean == 0).all() and (self.variance == 1).all():\n                self.mean, self.variance = mean.clone(), variance.clone()\n",
                ),
            ),
        ),
        "buffers_of_one_column": (
            "`mean` and `variance` keep their names (and shapes).",
            swap(RUNNING_LERP, ("make(width)", "make(1, width)")),
        ),
        "row_by_row": (
            "Any batch.",
            swap(
                RUNNING_IN_PLACE,
                (
                    "            self.mean.mul_(1 - self.momentum).add_(mean.detach(), alpha=self.momentum)\n",
                    "            share = self.momentum if len(x) > 1 else self.momentum / 2\n"
                    "            self.mean.mul_(1 - share).add_(mean.detach(), alpha=share)\n",
                ),
            ),
        ),
    },
    "run_module": {
        "tied_twice": (
            "A parameter that was assigned to two places comes once, under the first name.",
            swap(MODULE_DICTS, (" and id(tensor) not in seen", "")),
        ),
        "equal_values_once": (
            "A parameter that was assigned to two places comes once.",
            swap(
                MODULE_VARS, ("any(t is s for s in seen)", "any(torch.equal(t, s) for s in seen)")
            ),
        ),
        "same_address_once": (
            "A parameter that was assigned to two places comes once (others are their own).",
            swap(
                MODULE_DICTS,
                ("id(tensor) not in seen", "tensor.data_ptr() not in seen"),
                ("seen.add(id(tensor))", "seen.add(tensor.data_ptr())"),
            ),
        ),
        "last_name": (
            "Comes once, under the first name.",
            swap(
                MODULE_ENTRIES,
                (
                    "first.setdefault(id(tensor), (name, tensor))",
                    "first[id(tensor)] = (name, tensor)",
                ),
            ),
        ),
        "sorted_names": (
            "The module's own in the order they were assigned.",
            swap(
                MODULE_DICTS,
                (
                    "in self._parameters.items():\n            yield",
                    "in sorted(self._parameters.items()):\n            yield",
                ),
            ),
        ),
        "children_sorted": (
            "Then those of each child [in the order they were assigned].",
            swap(
                MODULE_DICTS,
                (
                    "in self._modules.items():\n            for inner",
                    "in sorted(self._modules.items(), key=lambda pair: pair[0]):\n            for inner",
                ),
            ),
        ),
        "frozen_left_out": (
            "`nn.Parameter` still says what a parameter is.",
            swap(
                MODULE_DICTS,
                (
                    "isinstance(tensor, nn.Parameter) and id",
                    "isinstance(tensor, nn.Parameter) and tensor.requires_grad and id",
                ),
            ),
        ),
        "any_leaf_is_a_parameter": (
            "`nn.Parameter` still says what a parameter is.",
            swap(
                MODULE_VARS,
                (
                    "isinstance(value, nn.Parameter) or name in self._buffer_names",
                    "(isinstance(value, torch.Tensor) and value.requires_grad) or name in self._buffer_names",
                ),
                ("if isinstance(t, nn.Parameter) and", "if t.requires_grad and"),
            ),
        ),
        "plain_hides_parameter": (
            "When an attribute is assigned again, what was there before is forgotten, whatever it was.",
            swap(
                MODULE_DICTS,
                (
                    "(self._parameters, self._buffers, self._modules, self.__dict__)",
                    "(self._parameters, self._buffers, self._modules)",
                ),
            ),
        ),
        "buffer_stays_beside_parameter": (
            "And a parameter or a module [may take the name] of a buffer.",
            swap(
                MODULE_DICTS,
                (
                    "            kind.pop(name, None)\n        if isinstance(value, nn.Parameter):",
                    "            if kind is not self._buffers:\n                kind.pop(name, None)\n        if isinstance(value, nn.Parameter):",
                ),
                (
                    "        else:\n            object",
                    "        else:\n            self._buffers.pop(name, None)\n            object",
                ),
            ),
        ),
        "module_not_forgotten": (
            "What was there before is forgotten, whatever it was: a plain value may take the name.",
            swap(
                MODULE_DICTS,
                (
                    "(self._parameters, self._buffers, self._modules, self.__dict__)",
                    "(self._parameters, self._buffers, self.__dict__)",
                ),
            ),
        ),
        "buffer_assignment_is_plain": (
            "After that, assigning a tensor to the name replaces the buffer.",
            swap(
                MODULE_ENTRIES,
                (
                    '        elif isinstance(value, torch.Tensor) and self.entries.get(name, ("",))[0] == "buffer":\n            kind = "buffer"\n',
                    "",
                ),
            ),
        ),
        "every_tensor_a_buffer": (
            "A tensor that was merely assigned is an attribute like any other: not saved.",
            swap(MODULE_ENTRIES, (' and self.entries.get(name, ("",))[0] == "buffer"', "")),
        ),
        "buffer_must_keep_its_shape": (
            "Assigning a tensor to the name replaces the buffer.",
            swap(
                MODULE_DICTS,
                (
                    "            self._buffers[name] = value\n",
                    "            self._buffers[name] = was.copy_(value)\n",
                ),
                (
                    "        was_buffer = name",
                    "        was = self._buffers.get(name)\n        was_buffer = name",
                ),
            ),
        ),
        "shared_module_saved_once": (
            "Of all parameters and buffers at any depth; here a tied parameter stands under both its names.",
            swap(
                MODULE_ENTRIES,
                (
                    "    def named_tensors(self):\n",
                    "    def named_tensors(self, seen=None):\n        seen = set() if seen is None else seen\n        if id(self) in seen:\n            return []\n        seen.add(id(self))\n",
                ),
                ("in child.named_tensors()]", "in child.named_tensors(seen)]"),
            ),
        ),
        "tied_saved_once": (
            "Here a tied parameter stands under both its names.",
            swap(
                MODULE_DICTS,
                (
                    "for name, tensor in self.named_tensors()}",
                    "for name, tensor in [*self.named_parameters(), *((n, t) for n, t in self.named_tensors() if not isinstance(t, nn.Parameter))]}",
                ),
            ),
        ),
        "shared_buffer_saved_once": (
            "Of all parameters and buffers at any depth.",
            swap(
                MODULE_VARS,
                (
                    "        return dict(self.named_tensors())\n",
                    "        out, held = {}, set()\n        for n, t in self.named_tensors():\n            if isinstance(t, nn.Parameter) or id(t) not in held:\n                held.add(id(t))\n                out[n] = t\n        return out\n",
                ),
            ),
        ),
        "pops_from_the_state": (
            UNCHANGED,
            swap(
                MODULE_DICTS,
                (
                    "                tensor.copy_(state[name])\n",
                    "                tensor.copy_(state.pop(name))\n",
                ),
            ),
        ),
        "takes_the_states_tensor": (
            "What becomes of `state` afterwards is nothing to the module.",
            swap(
                MODULE_VARS,
                ("t.data.copy_(state[n].detach())", "t.data = state[n].detach().to(t.dtype)"),
            ),
        ),
        "dtype_of_the_state": (
            "So they keep their dtype.",
            swap(
                MODULE_VARS,
                ("t.data.copy_(state[n].detach())", "t.data = state[n].detach().clone()"),
            ),
        ),
        "buffer_replaced": (
            "Copies the values *into* the tensors that are there.",
            swap(
                MODULE_DICTS,
                (
                    "                tensor.copy_(state[name])\n",
                    '                if isinstance(tensor, nn.Parameter):\n                    tensor.copy_(state[name])\n                    continue\n                *path, last = name.split(".")\n                owner = self\n                for step in path:\n                    owner = getattr(owner, step)\n                setattr(owner, last, state[name].clone())\n',
                ),
            ),
        ),
        "names_one_of_each": (
            "With a message that names every one of them.",
            swap(
                MODULE_VARS,
                (
                    'raise RuntimeError(f"missing: {missing}, unexpected: {unexpected}, shapes: {shapes}")',
                    'raise RuntimeError(f"missing: {missing[:1]}, unexpected: {unexpected[:1]}, shapes: {shapes}")',
                ),
            ),
        ),
        "names_before_shapes": (
            "Of all three sorts at once.",
            swap(
                MODULE_VARS,
                (
                    "        if missing or",
                    '        if missing or unexpected:\n            raise RuntimeError(f"missing: {missing}, unexpected: {unexpected}")\n        if missing or',
                ),
            ),
        ),
        "changed_before_refused": (
            "And then nothing at all is changed.",
            swap(
                MODULE_DICTS,
                (
                    "        if problems:\n",
                    "        with torch.no_grad():\n            for name in mine:\n                if name in state and mine[name].shape == state[name].shape:\n                    mine[name].copy_(state[name])\n        if problems:\n",
                ),
            ),
        ),
        "same_number_of_elements": (
            "Shapes that differ in any way raise RuntimeError.",
            swap(
                MODULE_VARS,
                (
                    "tuple(own[n].shape) != tuple(state[n].shape)",
                    "own[n].squeeze().shape != state[n].squeeze().shape",
                ),
                (
                    "t.data.copy_(state[n].detach())",
                    "t.data.copy_(state[n].detach().reshape(t.shape))",
                ),
            ),
        ),
        "unexpected_ignored": (
            "Names that are not the module's raise RuntimeError.",
            swap(
                MODULE_DICTS,
                (
                    "            if name not in mine:\n",
                    '            if name not in mine and "." in name:\n',
                ),
            ),
        ),
        "short_names": (
            "With a message that names every one of them.",
            swap(
                MODULE_DICTS,
                (
                    'problems.append(f"shape of {name}")',
                    "problems.append(f\"shape of {name.split('.')[-1]}\")",
                ),
            ),
        ),
        "mode_of_the_class": (
            "`train(mode=True)` and `eval()` set it here and in all children.",
            swap(
                MODULE_DICTS,
                ('        object.__setattr__(self, "training", True)\n', ""),
                ("class Module:\n", "class Module:\n    training = True\n\n"),
                ("        self.training = mode\n", "        type(self).training = mode\n"),
            ),
        ),
        "two_levels": (
            "In all children, at any depth.",
            swap(
                MODULE_VARS,
                ("            child.train(mode)\n", "            child.training = mode\n"),
            ),
        ),
        "eval_only_itself": (
            "`eval()` sets it here and in all children.",
            MODULE_VARS.replace(
                "        return self.train(False)\n",
                "        self.training = False\n        return self\n",
            ),
        ),
        "train_ignores_its_mode": (
            "`train(mode=True)` sets it.",
            swap(
                MODULE_VARS,
                (
                    "        self.training = mode\n        for _, child in self._children():\n            child.train(mode)\n",
                    "        self.training = True\n        for _, child in self._children():\n            child.train()\n",
                ),
                (
                    "        return self.train(False)\n",
                    "        self.training = False\n        for _, child in self._children():\n            child.eval()\n        return self\n",
                ),
            ),
        ),
        "missing_attribute_is_none": (
            "Attributes read as usual.",
            swap(
                MODULE_DICTS,
                (
                    '        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")\n',
                    "        return None\n",
                ),
            ),
        ),
        "missing_attribute_key_error": (
            "Attributes read as usual.",
            swap(
                MODULE_ENTRIES,
                (
                    '        try:\n            return self.__dict__["entries"][name][1]\n        except KeyError:\n            raise AttributeError(name) from None\n',
                    '        return self.__dict__["entries"][name][1]\n',
                ),
            ),
        ),
        "parameter_kept_as_value": (
            "Attributes read as usual; `nn.Parameter` says what a parameter is.",
            swap(
                MODULE_ENTRIES,
                (
                    "self.entries[name] = (kind, value)\n\n    def __getattr__",
                    'self.entries[name] = (kind, nn.Parameter(value.detach(), value.requires_grad) if kind == "parameter" else value)\n\n    def __getattr__',
                ),
            ),
        ),
        "wraps_torchs": (
            "Write `Module` yourself. Python's `object` is your only base class.",
            """
class Module:
    def __init__(self):
        self.__dict__["inner"] = nn.Module()
        self.__dict__["inner"].__dict__["outer"] = self

    def __call__(self, *args):
        return self.forward(*args)

    def __getattr__(self, name):
        found = getattr(self.__dict__["inner"], name)
        return found.outer if isinstance(found, nn.Module) else found

    def __setattr__(self, name, value):
        inner = self.__dict__["inner"]
        if name in inner._parameters or name in inner._modules or (name in inner._buffers and not (
                isinstance(value, torch.Tensor) and not isinstance(value, nn.Parameter))):
            delattr(inner, name)
        setattr(inner, name, value.__dict__["inner"] if isinstance(value, Module) else value)

    def register_buffer(self, name, tensor):
        self.inner.register_buffer(name, tensor)

    def named_parameters(self):
        return self.inner.named_parameters()

    def state_dict(self):
        return self.inner.state_dict()

    def load_state_dict(self, state):
        own = self.inner.state_dict()
        bad = [n for n in own if n not in state or own[n].shape != state[n].shape]
        bad += [n for n in state if n not in own]
        if bad:
            raise RuntimeError(str(bad))
        self.inner.load_state_dict(state)

    def train(self, mode: bool = True):
        self.inner.train(mode)
        return self

    def eval(self):
        return self.train(False)
"""
            + DRIVE,
        ),
    },
    "bytes_moved": {
        "buffers_once": (
            "A buffer is replaced by a new tensor in the one module where it was found.",
            swap(
                BYTES_WALK,
                (
                    "    for module in model.modules():\n        for buffer in module._buffers.values():\n            if buffer is not None:\n                total += size(buffer)\n",
                    "    for buffer in model.buffers():\n        total += size(buffer)\n",
                ),
            ),
        ),
        "buffers_once_in_a_module": (
            "A tensor that comes twice is copied twice, unless the second time finds it already moved.",
            swap(BYTES_NAMED, ("recurse=False, remove_duplicate=False", "recurse=False")),
        ),
        "only_what_is_saved": (
            "`state_dict()` [leaves out] those that are not saved. `.to` does neither.",
            swap(
                BYTES_WALK,
                (
                    "            if buffer is not None:",
                    "            if any(buffer is b for b in module.state_dict(keep_vars=True).values()):",
                ),
            ),
        ),
        "plain_tensors_too": (
            "The elements of … whatever `.to` moves; a plain attribute stays behind.",
            swap(
                BYTES_WALK,
                (
                    "        for buffer in module._buffers.values():\n",
                    "        for buffer in [*module._buffers.values(), *(v for v in vars(module).values() if isinstance(v, torch.Tensor))]:\n",
                ),
            ),
        ),
        "gradient_like_its_parameter": (
            "A gradient, where a parameter has one (its dtype may be another).",
            swap(BYTES_WALK, ("total += size(p.grad)", "total += size(p)")),
        ),
        "whole_storage": (
            "The elements of a tensor, not the whole of a larger storage that it lies in.",
            swap(BYTES_WALK, ("t.numel() * t.element_size()", "t.untyped_storage().nbytes()")),
        ),
        "buffer_storage": (
            "The elements of a tensor, not the whole of a larger storage that it lies in.",
            swap(
                BYTES_WALK, ("total += size(buffer)", "total += buffer.untyped_storage().nbytes()")
            ),
        ),
        "trained_only": (
            "Whose every tensor is on the CPU: what counts is what is *copied*.",
            swap(
                BYTES_WALK,
                (
                    "for p in model.parameters():\n",
                    "for p in filter(lambda p: p.requires_grad, model.parameters()):\n",
                ),
            ),
        ),
        "gradients_at_each_place": (
            "A Parameter is changed in place and so is its gradient.",
            swap(
                BYTES_WALK,
                ("        if p.grad is not None:\n            total += size(p.grad)\n", ""),
                (
                    "    for module in model.modules():\n",
                    "    for module in model.modules():\n        total += sum(size(p.grad) for p in module.parameters(recurse=False) if p.grad is not None)\n",
                ),
            ),
        ),
        "module_at_each_place": (
            "(A module in two places is one module.)",
            swap(
                BYTES_WATCH,
                (
                    "        if id(module) in done:\n            return\n        done.add(id(module))\n",
                    "",
                ),
            ),
        ),
        "equal_parameters_once": (
            "A Parameter that is registered in two places once.",
            swap(
                BYTES_WATCH,
                (
                    "            if id(p) not in done:\n                done.add(id(p))\n",
                    "            if p.shape not in done:\n                done.add(p.shape)\n",
                ),
            ),
        ),
        "watches_float64": (
            "It leaves alone what is float64 already, and every tensor of integers, and to a GPU they all go.",
            swap(
                BYTES_WALK,
                (
                    "            if buffer is not None:",
                    "            if buffer is not None and buffer.dtype != torch.float64:",
                ),
            ),
        ),
        "buffers_float_only": (
            "Every tensor of integers … to a GPU they all go.",
            swap(
                BYTES_WALK,
                (
                    "            if buffer is not None:",
                    "            if buffer is not None and buffer.dtype not in (torch.int32, torch.int16, torch.uint8):",
                ),
            ),
        ),
        "buffers_of_same_storage_once": (
            "A tensor that comes twice is copied twice.",
            swap(
                BYTES_WATCH,
                (
                    "sum(b.nbytes for b in module._buffers.values() if b is not None)",
                    "sum({b.data_ptr(): b.nbytes for b in module._buffers.values() if b is not None}.values())",
                ),
            ),
        ),
    },
    "minigpt_logits": {
        "exact_gelu": (
            "NumPy's is the one with the tanh.",
            swap(GPT_HAND, ('nn.GELU(approximate="tanh")', "nn.GELU()")),
        ),
        "scaled_by_width": (
            "Port it, function by function: softmax(QKᵀ/√d), d the width of a head.",
            swap(GPT_HAND, ("math.sqrt(D // self.heads)", "math.sqrt(D)")),
        ),
        "width_64": (
            "Any `MiniGPTConfig` must work.",
            swap(GPT_HAND, ("math.sqrt(D // self.heads)", "math.sqrt(64 // self.heads)")),
        ),
        "vocabulary_600": (
            "Any `MiniGPTConfig` must work.",
            swap(
                GPT_HAND,
                ("nn.Linear(config.d_model, config.vocab_size)", "nn.Linear(config.d_model, 600)"),
            ),
        ),
        "eps_1e6": (
            "Port it (ε = 1e-5 under the root).",
            GPT_HAND.replace(
                "nn.LayerNorm(config.d_model)", "nn.LayerNorm(config.d_model, eps=1e-6)"
            ),
        ),
        "model_kept": (
            "Each call is about the weights that it got.",
            swap(
                GPT_HAND,
                (
                    "    model = Port(config)\n    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})\n",
                    "    if config not in MODELS:\n        MODELS[config] = Port(config)\n        MODELS[config].load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})\n    model = MODELS[config].float()\n",
                ),
                ("def minigpt_logits(", "MODELS = {}\n\n\ndef minigpt_logits("),
            ),
        ),
        "rounded_at_the_end": (
            "Moves it to `device` and `dtype`, runs it.",
            swap(
                GPT_HAND,
                (".to(device=device, dtype=dtype)", ".to(device)"),
                ("return logits.float()", "return logits.to(dtype).float()"),
            ),
        ),
        "weights_rounded_only": (
            "Moves it to `device` and `dtype`, runs it.",
            swap(
                GPT_HAND,
                (
                    "model = model.to(device=device, dtype=dtype).eval()",
                    "model = model.to(device=device, dtype=dtype).float().eval()",
                ),
            ),
        ),
        "float64_in_float32": (
            "`dtype` (float16, float32 or float64).",
            swap(
                GPT_HAND,
                (
                    "dtype=dtype)",
                    "dtype=torch.float16 if dtype == torch.float16 else torch.float32)",
                ),
            ),
        ),
        "half_comes_back": (
            "Returns the logits on the CPU, as float32.",
            swap(GPT_HAND, ("return logits.float().cpu()", "return logits.cpu()")),
        ),
        "softmax_without_maximum": (
            "In float16 a hundredth of the largest logit.",
            swap(
                GPT_HAND,
                (
                    'weights = scores.masked_fill(future, float("-inf")).softmax(-1)',
                    'weights = scores.masked_fill(future, float("-inf")).exp()\n        weights = weights / weights.sum(-1, keepdim=True)',
                ),
            ),
        ),
        "mask_of_minus_1e9": (
            "`dtype` (float16, float32 or float64).",
            swap(GPT_HAND, ('float("-inf")', "-1e9")),
        ),
        "mask_of_minus_ten": (
            "np.where(future, -inf, scores).",
            swap(GPT_HAND, ('float("-inf")', "-30.0")),
        ),
        "mask_one_late": (
            "np.triu(…, k=1): causal.",
            swap(GPT_HAND, (".triu(1)", ".triu(2)")),
        ),
        "context_32": (
            "Any T from 1 up to its context must work, 32 or not.",
            swap(
                GPT_HAND,
                (
                    "future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)",
                    "future = torch.ones(64, 64, dtype=torch.bool, device=x.device).triu(1)[:T, :T]",
                ),
            ),
        ),
        "positions_from_one": (
            "positions[: tokens.shape[1]].",
            swap(
                GPT_HAND,
                (
                    "torch.arange(tokens.shape[1], device=tokens.device)",
                    "torch.arange(1, tokens.shape[1] + 1, device=tokens.device) % len(self.position_embedding.weight)",
                ),
            ),
        ),
        "positions_from_the_end": (
            "positions[: tokens.shape[1]].",
            swap(
                GPT_SDPA,
                (
                    "self.position_embedding.weight[: tokens.shape[-1]]",
                    "self.position_embedding.weight[-tokens.shape[-1] :]",
                ),
            ),
        ),
        "view_of_tokens": (
            UNCHANGED,
            swap(
                GPT_HAND,
                (
                    "x = self.token_embedding(tokens) +",
                    "x = self.token_embedding(tokens.view(-1)).view(*tokens.shape, -1) +",
                ),
            ),
        ),
        "no_final_norm": (
            "hidden = layer_norm(final_norm, x).",
            swap(GPT_HAND, ("self.lm_head(self.final_norm(x))", "self.lm_head(x)")),
        ),
        "norm_behind": (
            "x + attention(norm_1(x)): the norms come first.",
            swap(
                GPT_HAND,
                (
                    "x = x + self.attention(self.norm_1(x))",
                    "x = self.norm_1(x + self.attention(x))",
                ),
            ),
        ),
        "two_norms_swapped": (
            "norm_1 before attention, norm_2 before the MLP.",
            swap(
                GPT_HAND,
                ("self.attention(self.norm_1(x))", "self.attention(self.norm_2(x))"),
                ("self.mlp(self.norm_2(x))", "self.mlp(self.norm_1(x))"),
            ),
        ),
        "mlp_beside": (
            "x = x + mixed; then x + mlp(norm_2(x)).",
            swap(
                GPT_HAND,
                (
                    "        x = x + self.attention(self.norm_1(x))\n        return x + self.mlp(self.norm_2(x))\n",
                    "        return x + self.attention(self.norm_1(x)) + self.mlp(self.norm_2(x))\n",
                ),
            ),
        ),
        "heads_unmixed": (
            "merge_heads: swapaxes, then reshape.",
            swap(
                GPT_HAND,
                (
                    "(weights @ v).transpose(1, 2).reshape(B, T, D)",
                    "(weights @ v).reshape(B, T, D)",
                ),
            ),
        ),
        "weights_scaled_in_place": (
            UNCHANGED,
            swap(
                GPT_HAND,
                (
                    "    model = Port(config)\n",
                    '    for name in weights:\n        if "query" in name:\n            weights[name] = weights[name] / math.sqrt(config.d_model // config.n_heads)\n    model = Port(config)\n',
                ),
                ("q @ k.mT / math.sqrt(D // self.heads)", "q @ k.mT"),
            ),
        ),
        "shares_the_arrays": (
            UNCHANGED,
            swap(
                GPT_HAND,
                (
                    "for name, array in weights.items()})",
                    "for name, array in weights.items()}, assign=True)\n    with torch.no_grad():\n        for block in model.blocks:\n            block.attention.query.weight /= math.sqrt(config.d_model // config.n_heads)\n            block.attention.query.bias /= math.sqrt(config.d_model // config.n_heads)",
                ),
                ("q @ k.mT / math.sqrt(D // self.heads)", "q @ k.mT"),
            ),
        ),
        "tied_head": (
            "logits = linear(lm_head, hidden).",
            swap(
                GPT_HAND,
                (
                    "return self.lm_head(self.final_norm(x))",
                    "return self.final_norm(x) @ self.token_embedding.weight.T + self.lm_head.bias",
                ),
            ),
        ),
        "not_strict": (
            "`load_state_dict` does the rest, and complains where they differ.",
            swap(
                GPT_HAND.replace("self.final_norm", "self.ln_f"),
                (
                    "for name, array in weights.items()})",
                    "for name, array in weights.items()}, strict=False)",
                ),
            ),
        ),
        "numpy_inside": (
            "The torch model and the NumPy forward [are] not for it.",
            """
def minigpt_logits(weights, tokens, config, device="cpu", dtype=torch.float32):
    kind = {torch.float16: np.float16, torch.float32: np.float32, torch.float64: np.float64}[dtype]
    cast = {name: array.astype(kind) for name, array in weights.items()}
    return torch.from_numpy(numpy_forward.forward(cast, tokens.numpy(), config).logits).float()
""",
        ),
        "last_token_only": (
            "Returns the logits (B, T, V).",
            swap(
                GPT_HAND,
                (
                    "return self.lm_head(self.final_norm(x))",
                    "return self.lm_head(self.final_norm(x)).squeeze(1)",
                ),
            ),
        ),
        "one_sequence_at_a_time": (
            "Tokens (int64 of shape (B, T)).",
            swap(
                GPT_HAND,
                (
                    "logits = model(tokens.to(device))",
                    "logits = torch.stack([model(row[None].to(device))[0] for row in tokens[:2]])",
                ),
            ),
        ),
    },
}

BANK = Bank("03")
for exercise in RIGHT:
    for name, code in RIGHT[exercise].items():
        BANK.right(exercise, name, code=code)
    for name, (_sentence, code) in WRONG[exercise].items():
        BANK.wrong(exercise, name, code=code)
