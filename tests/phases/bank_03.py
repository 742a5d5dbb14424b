"""Answers to lab 03."""

from tests.phases.bank import Bank

BANK = Bank("03")
right, wrong = BANK.right, BANK.wrong

# 1 · How many numbers?
right("count_parameters", "a layer's formula as a helper", code="""
def _linear(i, o, bias=True):
    return i * o + (o if bias else 0)


def mlp_parameters(widths, bias=True):
    return sum(_linear(widths[k], widths[k + 1], bias) for k in range(len(widths) - 1))


def minigpt_parameters(config, tied=False):
    c = config
    embeds = c.vocab_size * c.d_model + c.context * c.d_model
    block = 2 * 2 * c.d_model + 4 * _linear(c.d_model, c.d_model)
    block += _linear(c.d_model, c.d_ff) + _linear(c.d_ff, c.d_model)
    total = embeds + c.n_layers * block + 2 * c.d_model + _linear(c.d_model, c.vocab_size)
    return total - c.vocab_size * c.d_model if tied else total
""")  # fmt: skip
wrong(
    "count_parameters",
    "widths by value",
    (
        "for into, out in zip(widths[:-1], widths[1:], strict=True):",
        "for into, out in {(a, b) for a, b in zip(widths[:-1], widths[1:])}:",
    ),
)
wrong(
    "count_parameters",
    "no bias at the last layer",
    (
        "        total += (into + bias) * out\n    return total",
        "        total += (into + bias) * out\n    return total - bias * widths[-1] * (len(widths) > 3)",
    ),
)
wrong("count_parameters", "a context of 32", ("config.context)", "32)"))
wrong("count_parameters", "two layers at least", ("config.n_layers *", "max(2, config.n_layers) *"))
wrong(
    "count_parameters",
    "heads of a width of their own",
    ("4 * (width * width + width)", "4 * (width * (width // 16 * 16) + width)"),
)
wrong("count_parameters", "a float", ("    return total", "    return float(total)"))
wrong(
    "count_parameters",
    "tied to the positions, too",
    ("head = words if tied", "head = words - config.context * (words == width) if tied"),
)

wrong(
    "count_parameters",
    "the number from utils.minigpt",
    ("def mlp_parameters", "from utils.minigpt import parameter_count\n\n\ndef mlp_parameters"),
    (
        "    width, wide, words = ",
        "    return parameter_count(config) - tied * config.vocab_size * config.d_model\n    width, wide, words = ",
    ),
)
wrong(
    "count_parameters",
    "widths used up",
    (
        "    for into, out in zip(widths[:-1], widths[1:], strict=True):\n        total += (into + bias) * out\n",
        "    while len(widths) > 1:\n        total += (widths.pop(0) + bias) * widths[0]\n",
    ),
)

# 2 · Linear
FORWARD = "y = x @ self.weight.T\n        return y if self.bias is None else y + self.bias"
BIAS = "nn.Parameter(b) if bias else None"
WEIGHT = "nn.Parameter(torch.empty(out_features, in_features).uniform_(-bound, bound))"
right(
    "Linear",
    "rand, scaled",
    (WEIGHT, "nn.Parameter((2 * torch.rand(out_features, in_features) - 1) * bound)"),
)
right(
    "Linear",
    "broadcast and sum",
    (
        FORWARD,
        "y = (x.unsqueeze(-2) * self.weight).sum(-1)\n        return y + self.bias if self.bias is not None else y",
    ),
)
wrong(
    "Linear",
    "a tensor of zeros for no bias",
    (BIAS, "nn.Parameter(b) if bias else torch.zeros(out_features)"),
)
wrong("Linear", "a bias that isn't saved", ("self.bias = nn.Parameter(b) if bias else None",
      'if bias:\n            self.bias = nn.Parameter(b)\n        else:\n            self.register_buffer("bias", torch.zeros(out_features), persistent=False)'))  # fmt: skip
wrong("Linear", "no attribute at all", ("self.bias = nn.Parameter(b) if bias else None", "if bias:\n            self.bias = nn.Parameter(b)"),
      ("self.bias is None", 'not hasattr(self, "bias")'))  # fmt: skip
wrong(
    "Linear",
    "weights of one sign",
    ("in_features).uniform_(-bound, bound)", "in_features).uniform_(0, bound)"),
)
wrong(
    "Linear",
    "a bias of one sign",
    (
        "b = torch.empty(out_features).uniform_(-bound, bound)",
        "b = torch.empty(out_features).uniform_(-bound, 0)",
    ),
)
wrong(
    "Linear",
    "one row for all",
    (
        WEIGHT,
        "nn.Parameter(torch.empty(1, in_features).uniform_(-bound, bound).repeat(out_features, 1))",
    ),
)
wrong(
    "Linear",
    "one column for all",
    (
        WEIGHT,
        "nn.Parameter(torch.empty(out_features, 1).uniform_(-bound, bound).repeat(1, in_features))",
    ),
)
wrong(
    "Linear",
    "the two ends alone",
    (WEIGHT, "nn.Parameter(bound * torch.sign(torch.randn(out_features, in_features)))"),
)
wrong(
    "Linear",
    "normal, of the same deviation",
    (
        WEIGHT,
        "nn.Parameter((torch.randn(out_features, in_features) * bound / 3**0.5).clamp(-bound, bound))",
    ),
)
wrong("Linear", "a frozen bias", (BIAS, "nn.Parameter(b, requires_grad=False) if bias else None"))
wrong(
    "Linear",
    "three dimensions at most",
    (
        FORWARD,
        "y = x.reshape(-1, x.shape[-1]) @ self.weight.T\n        y = y if self.bias is None else y + self.bias\n        return y if x.dim() == 2 else y[0] if x.dim() == 1 else y.view(x.shape[0], x.shape[1], -1)",
    ),
)
wrong(
    "Linear",
    "view",
    (
        FORWARD,
        "y = x.view(-1, x.shape[-1]) @ self.weight.T\n        y = y if self.bias is None else y + self.bias\n        return y.view(*x.shape[:-1], -1)",
    ),
)
wrong(
    "Linear",
    "squeezed",
    (
        FORWARD,
        "y = (x.unsqueeze(-2) @ self.weight.T).squeeze()\n        return y if self.bias is None else y + self.bias",
    ),
)
wrong(
    "Linear",
    "a bias of ones",
    ("b = torch.empty(out_features).uniform_(-bound, bound)", "b = torch.zeros(out_features)"),
)
wrong(
    "Linear",
    "the square weight as it lies",
    (
        "x @ self.weight.T",
        "x @ (self.weight if len(self.weight) == x.shape[-1] else self.weight.T)",
    ),
)

# 3 · Embedding
CHECK = "((tokens < 0) | (tokens >= size)).any()"
right(
    "Embedding",
    "a loop over flat tokens",
    (
        "return self.weight[tokens]",
        "rows = [self.weight[t] for t in tokens.flatten().tolist()]\n        rows = torch.stack(rows) if rows else self.weight[:0]\n        return rows.reshape(*tokens.shape, self.weight.shape[1])",
    ),
)
wrong("Embedding", "min and max", (CHECK, "tokens.min() < 0 or tokens.max() >= size"))
wrong("Embedding", "ValueError", ("IndexError", "ValueError"))
wrong("Embedding", "the first token looked at", (CHECK, "not 0 <= tokens.flatten()[0] < size"))
wrong("Embedding", "the last token looked at", (CHECK, "not 0 <= tokens.flatten()[-1] < size"))
wrong("Embedding", "all must be bad", (").any()", ").all()"))
wrong(
    "Embedding",
    "0 is a filler",
    ("return self.weight[tokens]", "return self.weight[tokens] * (tokens != 0).unsqueeze(-1)"),
)
wrong(
    "Embedding",
    "one row for all",
    (
        "torch.randn(num_embeddings, embedding_dim)",
        "torch.randn(1, embedding_dim).repeat(num_embeddings, 1)",
    ),
)
wrong(
    "Embedding",
    "scaled by the root of the width",
    ("return self.weight[tokens]", "return self.weight[tokens] * self.weight.shape[1] ** 0.5"),
)
wrong(
    "Embedding",
    "positive rows",
    (
        "torch.randn(num_embeddings, embedding_dim)",
        "torch.randn(num_embeddings, embedding_dim).abs()",
    ),
)
wrong(
    "Embedding",
    "two dimensions",
    (
        "return self.weight[tokens]",
        "b, t = tokens.shape if tokens.dim() == 2 else (1, tokens.numel())\n        y = self.weight[tokens.reshape(b, t)]\n        return y if tokens.dim() == 2 else y.squeeze()",
    ),
)
right("Embedding", "one past the end is left to torch", ("tokens >= size", "tokens > size"))
wrong(
    "Embedding",
    "gradients of each row once",
    (
        "return self.weight[tokens]",
        "y = self.weight.detach()[tokens]\n        return y + (self.weight.sum() - self.weight.sum().detach())",
    ),
)

# 4 · LayerNorm
right(
    "LayerNorm",
    "std, and its square",
    ("centred.square().mean(-1, keepdim=True)", "x.var(dim=-1, unbiased=False, keepdim=True)"),
)
right("LayerNorm", "a power", ("torch.rsqrt(variance + self.eps)", "(variance + self.eps) ** -0.5"))
STATED = "variance = centred.square().mean(-1, keepdim=True)"
right(
    "LayerNorm",
    "the square of a deviation",
    (STATED, "variance = x.std(-1, keepdim=True, correction=0) ** 2"),
)
wrong(
    "LayerNorm",
    "the square of a root",
    ("torch.rsqrt(variance + self.eps)", "torch.rsqrt(variance.sqrt() ** 2 + self.eps)"),
)
wrong(
    "LayerNorm",
    "constant rows apart",
    (
        STATED,
        "variance = centred.square().mean(-1, keepdim=True)\n        centred = centred * (variance > 0)",
    ),
)
wrong("LayerNorm", "eps of the parts", ("eps: float = 1e-5", "eps: float = 1e-6"))
wrong("LayerNorm", "a clamp for eps", ("variance + self.eps", "variance.clamp(min=self.eps)"))
wrong("LayerNorm", "eps both ways", ("variance + self.eps", "variance + self.eps**2"))
wrong(
    "LayerNorm",
    "far rows in thousands",
    (
        "centred = x - x.mean(-1, keepdim=True)",
        "centred = x - x[..., :1]\n        centred = centred - (x.mean(-1, keepdim=True) - x[..., :1]).round(decimals=2)",
    ),
)
wrong(
    "LayerNorm",
    "over the batch, too",
    (
        "x.mean(-1, keepdim=True)",
        "x.mean(tuple(range(x.dim())) if x.dim() == 1 else -1, keepdim=True)",
    ),
    (
        "centred.square().mean(-1, keepdim=True)",
        "centred.square().mean(-1, keepdim=True).amax(0, keepdim=True)",
    ),
)
wrong(
    "LayerNorm",
    "dimension 1",
    ("x.mean(-1, keepdim=True)", "x.mean(min(1, x.dim() - 1), keepdim=True)"),
    ("centred.square().mean(-1", "centred.square().mean(min(1, x.dim() - 1)"),
)
wrong("LayerNorm", "a bias of ones", ("torch.zeros(width)", "torch.ones(width) * 0.01"))
wrong(
    "LayerNorm",
    "gamma and beta",
    ("self.weight = nn", "self.gamma = nn"),
    ("self.bias = nn", "self.beta = nn"),
    ("self.weight * centred", "self.gamma * centred"),
    ("+ self.bias", "+ self.beta"),
)
wrong(
    "LayerNorm",
    "x centred in place",
    (
        "centred = x - x.mean(-1, keepdim=True)",
        "centred = x.detach().sub_(x.mean(-1, keepdim=True))",
    ),
)
wrong(
    "LayerNorm",
    "torch's group norm",
    (
        "        centred = x",
        "        rows = x.reshape(-1, x.shape[-1])\n        return nn.functional.group_norm(rows, 1, self.weight, self.bias, self.eps).view(x.shape)\n        centred = x",
    ),
)
wrong("LayerNorm", "float64 out", ("centred = x -", "x = x.double()\n        centred = x -"))
wrong(
    "LayerNorm",
    "a row of one is left as it is",
    (
        STATED,
        "if x.shape[-1] == 1:\n            return x\n        variance = centred.square().mean(-1, keepdim=True)",
    ),
)

# 5 · Dropout
MASK = "torch.rand(x.shape, device=x.device) >= self.p"
right(
    "Dropout",
    "bernoulli_ into an empty mask",
    (MASK, "torch.empty_like(x, dtype=torch.float32).uniform_() > self.p"),
)
right(
    "Dropout",
    "where",
    ("return x * kept / (1 - self.p)", "return torch.where(kept, x / (1 - self.p), 0.0)"),
)
wrong(
    "Dropout",
    "exactly as many each time",
    (MASK, "(torch.randperm(x.numel()) >= round(self.p * x.numel())).view(x.shape)"),
)
wrong(
    "Dropout",
    "the mode when it was made",
    ("self.p = p\n", "self.p = p\n        self.mode = self.training\n"),
    ("not self.training", "not self.mode"),
)
wrong(
    "Dropout",
    "eval for good",
    (
        "if not self.training or",
        'if not self.training:\n            self.off = True\n        if hasattr(self, "off") or',
    ),
)
wrong(
    "Dropout",
    "a mask for each shape",
    (
        MASK,
        'self.__dict__.setdefault("kept", {}).setdefault(x.shape, torch.rand(x.shape) >= self.p)',
    ),
)
wrong("Dropout", "p of 1 refused", ("if not 0 <= p <= 1", "if not 0 <= p < 1"))
wrong("Dropout", "p of 0 refused", ("if not 0 <= p <= 1", "if not 0 < p <= 1"))
wrong("Dropout", "refused when it is called", ("        if not 0 <= p <= 1:\n            raise ValueError(f\"expected a probability from 0 to 1, got {p}\")\n", ""),
      ("        if not self.training or", "        if not 0 <= self.p <= 1:\n            raise ValueError(self.p)\n        if not self.training or"))  # fmt: skip
wrong(
    "Dropout",
    "the input written over",
    ("return x * kept / (1 - self.p)", "return x.detach().mul_(kept).div_(1 - self.p)"),
)
wrong("Dropout", "two dimensions", (MASK, "torch.rand(x.shape[0], x.shape[1]) >= self.p"))
wrong(
    "Dropout",
    "a float32 mask",
    ("return x * kept / (1 - self.p)", "return x * (kept.float() / (1 - self.p))"),
)
wrong(
    "Dropout",
    "noise for zeros",
    ("return x * kept / (1 - self.p)", "return x * (kept + 1e-4) / (1 - self.p)"),
)
wrong(
    "Dropout",
    "eval a copy without gradient",
    ("            return x\n", "            return x if self.training else x.clone().detach()\n"),
)
wrong(
    "Dropout", "a seed in forward", ("kept = torch", "torch.manual_seed(0)\n        kept = torch")
)
wrong(
    "Dropout",
    "the mask of the first row",
    (MASK, "(torch.rand(x.shape[-1:]) >= self.p).expand(x.shape)"),
)
wrong(
    "Dropout",
    "p = 1 leaves a graph of NaN",
    ("return torch.zeros_like(x)", "return x * float('inf') * 0"),
)

wrong("Dropout", "p a little too large", ("0 <= p <= 1", "0 <= p < 1.01"))
wrong("Dropout", "p a little too small", ("0 <= p <= 1", "-0.01 <= p <= 1"))

# 6 · The loss that won't fall
right(
    "Stack",
    "a Sequential that is never called",
    ("nn.ModuleList(layers)", "nn.Sequential(*layers)"),
)
right(
    "Stack",
    "add_module",
    (
        "self.layers = nn.ModuleList(layers)",
        "self.layers = nn.ModuleList()\n        for layer in layers:\n            self.layers.append(layer)",
    ),
)
wrong("Stack", "a gain of zeros", ("torch.ones(width)", "torch.zeros(width)"))
wrong("Stack", "a random gain", ("torch.ones(width)", "torch.randn(width)"))
wrong("Stack", "no sum", ("x = x + torch.tanh(layer(x))", "x = torch.tanh(layer(x))"))
wrong(
    "Stack",
    "the gain in each layer",
    ("x = x + torch.tanh(layer(x))", "x = x + self.gain * torch.tanh(layer(x))"),
)
wrong("Stack", "no tanh", ("x = x + torch.tanh(layer(x))", "x = x + layer(x)"))
wrong(
    "Stack",
    "layers under names of their own",
    (
        "self.layers = nn.ModuleList(layers)",
        "self.layers = layers\n        for k, layer in enumerate(layers):\n            self.add_module(f'layer{k}', layer)",
    ),
)
wrong(
    "Stack",
    "fresh weights of zeros",
    (
        "  # shown\n        self.layers",
        "\n        for layer in layers:\n            nn.init.zeros_(layer.weight)\n        self.layers",
    ),
)
wrong(
    "Stack",
    "a gain that is added",
    ("return x * self.gain", "return x * self.gain + 0 * x + (self.gain - 1)"),
)
wrong(
    "Stack",
    "the first layer detached",
    ("x = x + torch.tanh(layer(x))", "x = x.detach() + torch.tanh(layer(x))"),
)
wrong("Stack", "a layer at least", ("range(depth)", "range(max(1, depth))"))
wrong(
    "Stack",
    "the layers in reverse",
    ("for layer in self.layers:", "for layer in reversed(self.layers):"),
)

# 7 · The model that forgets
UPDATE = """            with torch.no_grad():
                self.mean += self.momentum * (mean - self.mean)  # shown
                self.variance += self.momentum * (variance - self.variance)  # shown
"""
right("RunningNorm", "detached, and assigned", (UPDATE, """            self.mean = (1 - self.momentum) * self.mean + self.momentum * mean.detach()
            self.variance = (1 - self.momentum) * self.variance + self.momentum * variance.detach()
"""))  # fmt: skip
right("RunningNorm", "lerp_", (UPDATE, """            self.mean.lerp_(mean.detach(), self.momentum)
            self.variance.lerp_(variance.detach(), self.momentum)
"""))  # fmt: skip
wrong("RunningNorm", "only the mean is detached", (UPDATE, """            self.mean = self.mean + self.momentum * (mean.detach() - self.mean)
            self.variance = self.variance + self.momentum * (variance - self.variance)
"""))  # fmt: skip
wrong("RunningNorm", "a momentum of 0.1", ("self.momentum = momentum", "self.momentum = 0.1"))
wrong(
    "RunningNorm",
    "the first batch as it is",
    (
        UPDATE,
        UPDATE.replace("self.momentum", "share").replace(
            "            with",
            "            share = 1.0 if not self.mean.any() else self.momentum\n            with",
        ),
    ),
)
wrong(
    "RunningNorm",
    "the memory in training",
    (
        "        return (x - mean)",
        "        mean, variance = self.mean, self.variance\n        return (x - mean)",
    ),
)
wrong(
    "RunningNorm",
    "deviations remembered",
    (
        "self.momentum * (variance - self.variance)",
        "self.momentum * (variance.sqrt() - self.variance)",
    ),
)
wrong(
    "RunningNorm",
    "eval cut off",
    (
        "        return (x - mean)",
        "        if not self.training:\n            x = x.detach()\n        return (x - mean)",
    ),
)
wrong(
    "RunningNorm",
    "a momentum of 0 is none given",
    ("self.momentum = momentum", "self.momentum = momentum or 0.1"),
)
wrong(
    "RunningNorm",
    "a channel that is constant",
    (
        "torch.sqrt(variance + 1e-5)",
        "torch.sqrt(variance + 1e-5 * (variance > 0) + 1.0 * (variance == 0))",
    ),
)
wrong(
    "RunningNorm", "eps outside", ("torch.sqrt(variance + 1e-5)", "(torch.sqrt(variance) + 1e-5)")
)
wrong(
    "RunningNorm",
    "fresh, eval takes the batch",
    ("if self.training:", "if self.training or not self.mean.any():"),
)
wrong(
    "RunningNorm",
    "a single row refused",
    (
        "mean, variance = x.mean(0), x.var(0, correction=0)  # shown",
        "mean, variance = x.mean(0), x.var(0, correction=0)\n            if len(x) == 1:\n                return x",
    ),
)
wrong(
    "RunningNorm",
    "variance begins at 0",
    ('("variance", torch.ones(width))', '("variance", torch.zeros(width))'),
)
wrong(
    "RunningNorm",
    "over all channels",
    ("x.mean(0), x.var(0, correction=0)", "x.mean().expand(x.shape[1]), x.var(0, correction=0)"),
)
wrong(
    "RunningNorm",
    "one buffer of two",
    (
        'self.register_buffer("variance", torch.ones(width))  # shown',
        "self.variance = torch.ones(width)",
    ),
)

# 8 · Module, from nothing
RAISE = '            raise RuntimeError("; ".join(wrong))\n'
right(
    "run_module",
    "the names in a set, and a list of pairs",
    (
        "return {name: tensor.detach() for name, tensor in self.named_tensors()}",
        "state = {}\n        for name, tensor in self.named_tensors():\n            state[name] = tensor.detach().clone()\n        return state",
    ),
)
right(
    "run_module",
    "train by recursion on named children",
    ("child.train(mode)\n        return self", "Module.train(child, mode)\n        return self"),
)
wrong(
    "run_module",
    "unexpected names alone when there are some",
    (
        "        for name in own.keys() & state.keys():",
        "        for name in (() if wrong else own.keys() & state.keys()):",
    ),
)
wrong(
    "run_module",
    "missing first, the rest another time",
    (
        '        wrong += [f"unexpected: {name}" for name in state if name not in own]\n',
        '        if not wrong:\n            wrong += [f"unexpected: {name}" for name in state if name not in own]\n',
    ),
)
wrong("run_module", "the first wrong shape", ("""                wrong.append(f"{name}: expected shape {shapes[0]}, got {shapes[1]}")
""", """                wrong.append(f"{name}: expected shape {shapes[0]}, got {shapes[1]}")
                break
"""))  # fmt: skip
wrong(
    "run_module",
    "a number in a row of one",
    (
        "own[name].shape != state[name].shape",
        "own[name].squeeze().shape != state[name].squeeze().shape",
    ),
)
wrong("run_module", "KeyError", (RAISE, RAISE.replace("RuntimeError", "KeyError")))
wrong(
    "run_module",
    "one set of names for all",
    ("        self._buffer_names = []\n", ""),
    ("    def __init__(self):", "    _buffer_names = []\n\n    def __init__(self):"),
)
wrong(
    "run_module",
    "eval for good",
    ("        self.training = mode\n", "        self.training = mode and self.training\n"),
)
wrong(
    "run_module",
    "train takes no argument",
    ("child.train(mode)", "child.train() if mode else child.eval()"),
    ("def train(self, mode: bool = True):", "def train(self, mode: bool = False):"),
)
wrong(
    "run_module",
    "a buffer that is replaced is one no more",
    (
        "    def named_tensors(self):",
        "    def __setattr__(self, name, value):\n        if isinstance(value, torch.Tensor) and name in vars(self) and name in self._buffer_names:\n            self._buffer_names.remove(name)\n        object.__setattr__(self, name, value)\n\n    def named_tensors(self):",
    ),
)
wrong("run_module", "a buffer's name for good", ("isinstance(tensor, nn.Parameter) and id(tensor) not in seen", "isinstance(tensor, nn.Parameter) and id(tensor) not in seen and name not in self._buffer_names"))  # fmt: skip
wrong("run_module", "children first", ("""            buffer = name in self._buffer_names and isinstance(value, torch.Tensor)
            if buffer or isinstance(value, nn.Parameter):
                yield name, value
        for child_name, child in vars(self).items():
            if isinstance(child, Module):
                for name, value in child.named_tensors():
                    yield f"{child_name}.{name}", value
""", """            if isinstance(value, Module):
                for below, tensor in value.named_tensors():
                    yield f"{name}.{below}", tensor
        for name, value in vars(self).items():
            buffer = name in self._buffer_names and isinstance(value, torch.Tensor)
            if buffer or isinstance(value, nn.Parameter):
                yield name, value
"""))  # fmt: skip
wrong(
    "run_module",
    "alphabetical",
    (
        "in vars(self).items():\n            buffer",
        "in sorted(vars(self).items(), key=lambda p: p[0]):\n            buffer",
    ),
)
wrong(
    "run_module",
    "buffers of modules that have parameters",
    (
        "isinstance(value, torch.Tensor)\n",
        "any(isinstance(v, nn.Parameter) for v in vars(self).values())\n",
    ),
)
wrong(
    "run_module",
    "frozen parameters left out",
    (
        "if isinstance(tensor, nn.Parameter) and id",
        "if isinstance(tensor, nn.Parameter) and tensor.requires_grad and id",
    ),
)
wrong(
    "run_module",
    "a tensor whose values are equal",
    ("id(tensor) not in seen", "not any(tensor.equal(other) for other in seen)"),
    ("seen.add(id(tensor))", "seen.append(tensor)"),
    ("seen = set()", "seen = []"),
)
wrong(
    "run_module",
    "loads what fits, then refuses",
    (
        "        if wrong:\n",
        "        with torch.no_grad():\n            for name, tensor in own.items():\n                if name in state and state[name].shape == tensor.shape and len(wrong) > 1:\n                    tensor.copy_(state[name])\n        if wrong:\n",
    ),
)
wrong(
    "run_module",
    "the state's own dtype",
    ("tensor.copy_(state[name])", "tensor.data = state[name].clone()"),
)

wrong(
    "run_module",
    "names by their ends",
    (
        "for name in own if name not in state]",
        'for name in own if name.split(".")[-1] not in [n.split(".")[-1] for n in state]]',
    ),
)

# 10 · Byte by byte
right("bytes_moved", "dicts by identity", code="""
def bytes_moved(plan):
    model = assemble(plan)
    found = {}
    for name, p in model.named_parameters(remove_duplicate=False):
        found[id(p)] = p.nbytes + (p.grad.nbytes if p.grad is not None else 0)
    total = sum(found.values())
    for m in model.modules():
        for b in m._buffers.values():
            total += 0 if b is None else b.nbytes
    return total
""")  # fmt: skip
wrong("bytes_moved", "buffers() and parameters()", code="""
def bytes_moved(plan):
    model = assemble(plan)
    tensors = [*model.parameters(), *model.buffers()]
    tensors += [p.grad for p in model.parameters() if p.grad is not None]
    return sum(t.numel() * t.element_size() for t in tensors)
""")  # fmt: skip
wrong(
    "bytes_moved",
    "grads of trained parameters",
    ("if parameter.grad is not None:", "if parameter.grad is not None and parameter.numel() > 1:"),
)
wrong(
    "bytes_moved",
    "blocks of 512",
    (
        "tensor.numel() * tensor.element_size()",
        "-(-tensor.numel() * tensor.element_size() // 512) * 512",
    ),
)
wrong(
    "bytes_moved",
    "the largest stride",
    (
        "tensor.numel() * tensor.element_size()",
        "(sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride())) + 1) * tensor.element_size()",
    ),
)
wrong(
    "bytes_moved",
    "finfo",
    (
        "tensor.element_size()",
        "(torch.finfo(tensor.dtype).bits // 8 if tensor.is_floating_point() else 8)",
    ),
)
wrong(
    "bytes_moved",
    "no 0-dim tensors",
    ("for tensor in moved", "for tensor in moved if tensor.dim()"),
)
wrong(
    "bytes_moved",
    "tensors that are equal",
    (
        "return sum(",
        "moved = [t for k, t in enumerate(moved) if not any(t.shape == o.shape and t.dtype == o.dtype and t.data_ptr() == o.data_ptr() for o in moved[:k])]\n    return sum(",
    ),
)
wrong(
    "bytes_moved",
    "floating point alone",
    ("for tensor in moved", "for tensor in moved if tensor.is_floating_point()"),
)
wrong(
    "bytes_moved",
    "shared storages once",
    (
        "return sum(tensor.numel() * tensor.element_size() for tensor in moved)",
        "return sum({t.untyped_storage().data_ptr(): t.numel() * t.element_size() for t in moved}.values())",
    ),
)

# 11 · MiniGPT, ported
LENGTH = "length = tokens.shape[1]\n"
right("minigpt_logits", "scaled_dot_product_attention", ("            scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(future, -torch.inf)\n", ""),
      ("(scores.softmax(-1) @ v)", "nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)"))  # fmt: skip
right(
    "minigpt_logits",
    "positions by arange",
    (
        "self.position_embedding.weight[:length]",
        "self.position_embedding(torch.arange(length, device=tokens.device))",
    ),
)
wrong(
    "minigpt_logits",
    "a mask of 32",
    (
        "future = torch.ones(length, length, dtype=torch.bool, device=tokens.device).triu(1)",
        "future = torch.ones(32, 32, dtype=torch.bool, device=tokens.device).triu(1)[:length, :length]",
    ),
)
wrong(
    "minigpt_logits",
    "no more than 32 words",
    (LENGTH, LENGTH + "        tokens = tokens[:, :32]\n        length = tokens.shape[1]\n"),
)
wrong(
    "minigpt_logits",
    "a mask of the first call",
    (LENGTH, LENGTH + "        length = max(length, 2)\n"),
)
wrong("minigpt_logits", "batches of one", ("tokens.to(device)", "tokens[:1].to(device)"))
wrong("minigpt_logits", "squeezed", (".float().cpu()", ".float().cpu().squeeze(0)"))
wrong(
    "minigpt_logits",
    "two blocks",
    ("range(config.n_layers)", "range(2)"),
    (
        "port.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})",
        "port.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()}, strict=False)",
    ),
)
wrong(
    "minigpt_logits",
    "the heads of MiniGPT",
    (
        "self.heads = config.n_heads",
        "self.heads = 4 if config.d_model % 4 == 0 else config.n_heads",
    ),
)
wrong("minigpt_logits", "heads of 16", ("math.sqrt(q.shape[-1])", "4.0"))
wrong(
    "minigpt_logits",
    "four times the width",
    (
        'nn.Linear(d, config.d_ff), "down": nn.Linear(config.d_ff, d)',
        'nn.Linear(d, 4 * d), "down": nn.Linear(4 * d, d)',
    ),
)
wrong(
    "minigpt_logits",
    "float16 whenever it isn't float32",
    (
        "port.to(device, dtype)",
        "port.to(device, torch.float16 if dtype != torch.float32 else dtype)",
    ),
)
wrong(
    "minigpt_logits",
    "the weights written over",
    (
        "    port = Port(config)\n",
        "    port = Port(config)\n    for array in weights.values():\n        array *= np.float32(1.0)\n        array += np.float32(1e-3)\n        array -= np.float32(1e-3)\n",
    ),
)
wrong(
    "minigpt_logits",
    "the position table's end",
    ("self.position_embedding.weight[:length]", "self.position_embedding.weight[-length:]"),
)
wrong(
    "minigpt_logits",
    "the last block left out",
    (
        "for block in self.blocks:",
        "for block in self.blocks[:max(1, len(self.blocks) - (len(self.blocks) > 2))]:",
    ),
)
wrong(
    "minigpt_logits",
    "a model kept between calls",
    (
        "port = Port(config)\n",
        "port = Port.__dict__.get('kept') or Port(config)\n    Port.kept = port\n",
    ),
)
wrong(
    "minigpt_logits",
    "weights kept between calls",
    (
        "port = Port(config)\n",
        "port = Port(config)\n    weights = Port.__dict__.get(str(config)) or weights\n    setattr(Port, str(config), weights)\n",
    ),
)
wrong(
    "minigpt_logits",
    "the trained weights whatever came",
    (
        "    port = Port(config)\n",
        "    weights = load_weights() if config == load_config() else weights\n    port = Port(config)\n",
    ),
)
