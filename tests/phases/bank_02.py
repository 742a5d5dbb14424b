"""Answers to lab 02."""

from tests.phases import bank_02_second
from tests.phases.bank import Bank

BANK = Bank("02")
right, wrong = BANK.right, BANK.wrong

# 1 · Three lines, five adjoints
right("scalar_adjoints", "a whole number for L", ('{"L": 1.0,', '{"L": 1,'))
right("scalar_adjoints", "a tape in a dict", code="""
def scalar_adjoints(a, b):
    adj = dict.fromkeys("Ldcba", 0.0)
    adj["L"] = 1.0
    d = a * b + a
    adj["d"] += adj["L"] * 2 * d
    adj["c"] += adj["d"]
    adj["a"] += adj["d"]
    adj["a"] += adj["c"] * b
    adj["b"] += adj["c"] * a
    return adj
""")  # fmt: skip
wrong("scalar_adjoints", "b by dividing its own value out", ('"b": of_c * a', '"b": of_c * c / b'))
wrong("scalar_adjoints", "d by way of L / d", ("2.0 * d", "2.0 * d * d / d"))
wrong("scalar_adjoints", "the root of L for d", ("2.0 * d", "2.0 * (d * d) ** 0.5"))
wrong("scalar_adjoints", "tensors for numbers", ("c = a * b", "c = torch.tensor(a * b)"))

# 2 · An engine
right("Tape", "three lists, and a loop over pairs", code="""
class Tape:
    def __init__(self):
        self.values, self.inputs, self.local = [], [], []

    def _new(self, value, inputs=(), local=()):
        self.values.append(value)
        self.inputs.append(tuple(inputs))
        self.local.append(tuple(local))
        return len(self.values) - 1

    def leaf(self, value):
        return self._new(value)

    def add(self, i, j):
        return self._new(self.values[i] + self.values[j], (i, j), (1.0, 1.0))

    def mul(self, i, j):
        return self._new(self.values[i] * self.values[j], (i, j), (self.values[j], self.values[i]))

    def power(self, i, n):
        return self._new(self.values[i] ** n, (i,), (n * self.values[i] ** (n - 1),))

    def value(self, i):
        return self.values[i]

    def gradients(self, i):
        grads = [0.0] * len(self.values)
        grads[i] = 1.0
        for k in reversed(range(len(self.values))):
            for j, d in zip(self.inputs[k], self.local[k]):
                grads[j] += d * grads[k]
        return grads
""")  # fmt: skip
right("Tape", "forward mode, one node at a time", ("""        adjoints = [0.0] * len(self.nodes)
        adjoints[i] = 1.0
        for node in range(i, -1, -1):
            for source, local in self.nodes[node][1]:
                adjoints[source] += adjoints[node] * local
        return adjoints
""", """        found = []
        for k in range(len(self.nodes)):
            tangent = [0.0] * len(self.nodes)
            tangent[k] = 1.0
            for node in range(k + 1, len(self.nodes)):
                tangent[node] = sum((tangent[s] * d for s, d in self.nodes[node][1]), 0.0)
            found.append(tangent[i])
        return found
"""))  # fmt: skip
DEEPER = """        adjoints = [0.0] * len(self.nodes)
        adjoints[i] = 1.0
        for node in range(i, -1, -1):
            for source, local in self.nodes[node][1]:
                adjoints[source] += adjoints[node] * local
        return adjoints
"""
wrong("Tape", "a stack, each node as often as it is met", (DEEPER, """
        adjoints = [0.0] * len(self.nodes)
        adjoints[i] = 1.0
        todo = [i]
        while todo:
            node = todo.pop()
            for source, local in self.nodes[node][1]:
                adjoints[source] += adjoints[node] * local
                todo.append(source)
        return adjoints
"""))  # fmt: skip
wrong("Tape", "breadth first, each node once", (DEEPER, """
        adjoints = [0.0] * len(self.nodes)
        adjoints[i] = 1.0
        todo = [i]
        for node in todo:
            for source, local in self.nodes[node][1]:
                adjoints[source] += adjoints[node] * local
                if source not in todo:
                    todo.append(source)
        return adjoints
"""))  # fmt: skip
wrong("Tape", "depth first, each node once", (DEEPER, """
        adjoints = [0.0] * len(self.nodes)
        adjoints[i] = 1.0
        seen = set()

        def visit(node):
            if node in seen:
                return
            seen.add(node)
            for source, local in self.nodes[node][1]:
                adjoints[source] += adjoints[node] * local
            for source, _ in self.nodes[node][1]:
                visit(source)

        visit(i)
        return adjoints
"""))  # fmt: skip
wrong("Tape", "answers kept by node",
      ("self.nodes = []", "self.nodes, self.known = [], {}"),
      ("        adjoints = [0.0] * len(self.nodes)\n",
       "        if i in self.known:\n            return self.known[i]\n"
       "        adjoints = self.known[i] = [0.0] * len(self.nodes)\n"))  # fmt: skip
wrong("Tape", "one list for all tapes", ("    def __init__(self):", "    nodes = []\n\n    def __init__(self):"),
      ("self.nodes = []", "pass"))  # fmt: skip
wrong("Tape", "power's derivative from its value", ("n * a ** (n - 1)", "n * a**n / a"))
wrong(
    "Tape",
    "product's derivative from its value",
    ("[(i, b), (j, a)]", "[(i, a * b / a), (j, a * b / b)]"),
)
wrong("Tape", "a set of inputs", ("[(i, 1.0), (j, 1.0)]", "list({(i, 1.0), (j, 1.0)})"))
wrong("Tape", "squares apart", ("[(i, b), (j, a)]", "[(i, 2 * a)] if i == j else [(i, b)]"))
wrong(
    "Tape",
    "0 for a node that is its own",
    ("adjoints[i] = 1.0\n", "adjoints[i] = 1.0 if self.nodes[i][1] else 0.0\n"),
)
wrong("Tape", "whole numbers", ("adjoints = [0.0] * len(self.nodes)\n        adjoints[i] = 1.0",
                                "adjoints = [0] * len(self.nodes)\n        adjoints[i] = 1"))  # fmt: skip
wrong(
    "Tape",
    "leaves only",
    ("return adjoints", "return [g for g, n in zip(adjoints, self.nodes) if not n[1]]"),
)
wrong(
    "Tape",
    "the last node, whatever was asked",
    ("adjoints[i] = 1.0", "i = len(self.nodes) - 1\n        adjoints[i] = 1.0"),
)

wrong("Tape", "values as text", ("return self.nodes[i][0]", "return str(self.nodes[i][0])"), ("self.value(i) + self.value(j)", "float(self.value(i)) + float(self.value(j))"),
      ("a, b = self.value(i), self.value(j)", "a, b = float(self.value(i)), float(self.value(j))"), ("        a = self.value(i)\n", "        a = float(self.value(i))\n"))  # fmt: skip
wrong(
    "Tape",
    "powers of 4 at most",
    ("        a = self.value(i)\n", "        a = self.value(i)\n        n = min(n, 4)\n"),
)

# 3 · In which order does backward go?
right("backward_order", "longest distances, relaxed", code="""
def backward_order(graph, root):
    depth, todo, uses, seen = {root: 0}, [root], {}, {root}
    for node in todo:
        for s in graph[node]:
            uses[s] = uses.get(s, 0) + 1
            if s not in seen:
                seen.add(s)
                todo.append(s)
    ready = [root]
    for node in ready:
        for s in graph[node]:
            depth[s] = max(depth.get(s, 0), depth[node] + 1)
            uses[s] -= 1
            if uses[s] == 0:
                ready.append(s)
    return sorted(depth, key=depth.get)
""")  # fmt: skip
right("backward_order", "iterators on a stack", code="""
def backward_order(graph, root):
    done, out, stack = {root}, [], [(root, iter(graph[root]))]
    while stack:
        node, rest = stack[-1]
        for s in rest:
            if s not in done:
                done.add(s)
                stack.append((s, iter(graph[s])))
                break
        else:
            out.insert(0, node)
            stack.pop()
    return out
""")  # fmt: skip
wrong("backward_order", "moved to the end when met again", code="""
def backward_order(graph, root):
    order = [root]
    for node in order:
        for s in graph[node]:
            if s in order:
                if order.index(s) > order.index(node):
                    order.remove(s)
                    order.append(s)
            else:
                order.append(s)
    return order
""")  # fmt: skip
wrong("backward_order", "by the shortest distance, stably sorted", code="""
def backward_order(graph, root):
    far, todo = {root: 0}, [root]
    for node in todo:
        for s in graph[node]:
            if s not in far:
                far[s] = far[node] + 1
                todo.append(s)
    return sorted(far, key=lambda n: (far[n], len(graph[n]) == 0))
""")  # fmt: skip
wrong("backward_order", "the dict's own order, turned round", code="""
def backward_order(graph, root):
    seen, todo = {root}, [root]
    while todo:
        for s in graph[todo.pop()]:
            if s not in seen:
                seen.add(s)
                todo.append(s)
    return [n for n in reversed(graph) if n in seen]
""")  # fmt: skip
wrong("backward_order", "the dict's own order", code="""
def backward_order(graph, root):
    seen, todo = {root}, [root]
    while todo:
        for s in graph[todo.pop()]:
            if s not in seen:
                seen.add(s)
                todo.append(s)
    return [n for n in graph if n in seen]
""")  # fmt: skip
wrong("backward_order", "leaves last, else as met", code="""
def backward_order(graph, root):
    seen, todo, out = {root}, [root], []
    while todo:
        node = todo.pop(0)
        out.append(node)
        for s in graph[node]:
            if s not in seen:
                seen.add(s)
                todo.append(s)
    return [n for n in out if graph[n]] + [n for n in out if not graph[n]]
""")  # fmt: skip
wrong("backward_order", "a recursion with a higher limit for a short chain", code="""
import sys


def backward_order(graph, root):
    sys.setrecursionlimit(2000)
    out, seen = [], set()

    def visit(n):
        seen.add(n)
        for s in graph[n]:
            if s not in seen:
                visit(s)
        out.append(n)

    visit(root)
    return out[::-1]
""")  # fmt: skip
wrong(
    "backward_order",
    "nothing for a root alone",
    ("return order\n", "return order if len(order) > 1 else []\n"),
)
wrong("backward_order", "reversed breadth first from the leaves", code="""
def backward_order(graph, root):
    seen, todo = {root}, [root]
    for n in todo:
        for s in graph[n]:
            if s not in seen:
                seen.add(s)
                todo.append(s)
    height, changed = dict.fromkeys(todo, 0), True
    for n in reversed(todo):
        height[n] = 1 + max((height[s] for s in graph[n]), default=0)
    return sorted(todo, key=height.get, reverse=True)
""")  # fmt: skip

wrong("backward_order", "a node for each use", ("if waiting_for[source] == 0:", "if True:"))
wrong("backward_order", "a dict of names", ("    return order", "    return dict.fromkeys(order)"))

# 4 · Back to the shape it came from
right("unbroadcast", "torch's own sum_to_size", code="""
def unbroadcast(grad, shape):
    return grad.sum_to_size(*shape) if shape else grad.sum()
""")  # fmt: skip
right("unbroadcast", "a loop from the right", code="""
def unbroadcast(grad, shape):
    dims = grad.dim()
    for back in range(1, dims + 1):
        if back > len(shape):
            grad = grad.sum(dims - back, keepdim=True)
        elif shape[-back] != grad.shape[dims - back]:
            grad = grad.sum(dims - back, keepdim=True)
    return grad.reshape(shape)
""")  # fmt: skip
wrong("unbroadcast", "sizes matched from the left", code="""
def unbroadcast(grad, shape):
    while grad.dim() > len(shape):
        at = next((k for k, s in enumerate(shape) if grad.shape[k] != s and s != 1), grad.dim() - 1)
        grad = grad.sum(at)
    for k, s in enumerate(shape):
        if s == 1:
            grad = grad.sum(k, keepdim=True)
    return grad
""")  # fmt: skip
wrong("unbroadcast", "the first slice where there is one", ("grad = grad.sum(0)", "grad = grad.sum(0) if len(grad) > 1 else grad[0] * 0 + grad.mean(0)"),
      ("grad.sum(dim, keepdim=True)", "grad.sum(dim, keepdim=True) if grad.numel() else grad.new_zeros(shape)[:0]"))  # fmt: skip
wrong("unbroadcast", "through NumPy", ("    while", "    return torch.from_numpy(_sum(grad.numpy(), shape))\n    while"),
      ("def unbroadcast", """def _sum(grad, shape):
    while grad.ndim > len(shape):
        grad = grad.sum(0)
    for k, s in enumerate(shape):
        if s == 1:
            grad = grad.sum(k, keepdims=True)
    return __import__("numpy").array(grad)


def unbroadcast"""))  # fmt: skip
wrong("unbroadcast", "float32 for good", ("    return grad\n", "    return grad.float()\n"))
wrong(
    "unbroadcast",
    "squeezed",
    ("    return grad\n", "    return grad.squeeze(0) if grad.dim() > 2 else grad\n"),
)
wrong(
    "unbroadcast",
    "a view of what came",
    ("while grad", "grad = grad.view(-1).view(grad.shape)\n    while grad"),
)
wrong(
    "unbroadcast",
    "a number of elements compared",
    (
        "    while",
        "    if grad.numel() == torch.Size(shape).numel():\n        return grad\n    while",
    ),
)

# 5 · The linear layer, backwards
right("linear_vjp", "a loop over rows", code="""
def linear_vjp(grad_output, x, weight):
    gw, gb = torch.zeros_like(weight), torch.zeros_like(weight[:, 0])
    for g, row in zip(grad_output.reshape(-1, weight.shape[0]), x.reshape(-1, weight.shape[1])):
        gw = gw + g[:, None] * row[None, :]
        gb = gb + g
    return torch.matmul(grad_output, weight), gw, gb
""")  # fmt: skip
wrong(
    "linear_vjp",
    "view",
    ("grad_output.flatten(0, -2)", "grad_output.view(-1, grad_output.shape[-1])"),
)
wrong("linear_vjp", "two dimensions or three", ("rows = grad_output.flatten(0, -2)", "rows = grad_output.flatten(0, 1) if grad_output.dim() > 2 else grad_output"),
      ("x.flatten(0, -2)", "(x.flatten(0, 1) if x.dim() > 2 else x)"))  # fmt: skip
wrong(
    "linear_vjp",
    "squeezed rows",
    ("return grad_output @ weight", "return (grad_output @ weight).squeeze(0)"),
)
wrong(
    "linear_vjp",
    "an average over a batch of sequences",
    ("rows.T @ x.flatten(0, -2)", "rows.T @ x.flatten(0, -2) / (x.shape[0] if x.dim() > 2 else 1)"),
)
wrong(
    "linear_vjp",
    "the transpose where it fits",
    (
        "grad_output @ weight,",
        "grad_output @ (weight.T if weight.shape[0] == weight.shape[1] else weight),",
    ),
)
wrong("linear_vjp", "a mean of nothing", ("rows.sum(0)", "rows.mean(0) * len(rows)"))
wrong("linear_vjp", "gradients piled up between calls", ("grad_weight = rows", "weight += 0 * weight.sum()\n    grad_weight = rows"),
      ("return grad_output", "weight += 1e-3\n    return grad_output"))  # fmt: skip

# 7 · Two activations
right("activations", "a clone, and a product of sums", code="""
def relu_vjp(grad_output, x):
    out = grad_output.clone()
    out[x <= 0] = 0
    return out


def softmax_vjp(grad_output, y):
    return y * grad_output - y * torch.einsum("...i,...i->...", y, grad_output).unsqueeze(-1)
""")  # fmt: skip
right("activations", "masked_fill, and rows one by one", code="""
def relu_vjp(grad_output, x):
    return grad_output.masked_fill(~(x > 0), 0.0)


def softmax_vjp(grad_output, y):
    rows, g = y.reshape(-1, y.shape[-1]), grad_output.reshape(-1, y.shape[-1])
    out = torch.empty_like(rows)
    for k in range(len(rows)):
        out[k] = rows[k] * (g[k] - torch.dot(rows[k], g[k]))
    return out.reshape(y.shape)
""")  # fmt: skip
RELU = "torch.where(x > 0, grad_output, torch.zeros_like(grad_output))"
wrong(
    "activations",
    "a small positive is none",
    (RELU, "torch.where(x > 1e-6, grad_output, torch.zeros_like(grad_output))"),
)
wrong(
    "activations",
    "negative zero let through",
    (RELU, "torch.where(torch.signbit(x) | (x > 0), grad_output, 0 * grad_output) * (x >= 0)"),
)
wrong("activations", "relu divided by x", (RELU, "grad_output * (x.clamp(min=0) / x)"))
wrong("activations", "a float32 mask", (RELU, "(grad_output.float() * (x > 0))"))
wrong("activations", "by way of the logarithm", ("row = (grad_output * y).sum(-1, keepdim=True)\n    return y * (grad_output - row)",
      "logs = y.log()\n    row = (grad_output * logs.exp()).sum(-1, keepdim=True)\n    return y * (grad_output - row) + 0 * logs"))  # fmt: skip
wrong(
    "activations",
    "batched matrix product",
    (
        "row = (grad_output * y).sum(-1, keepdim=True)",
        "row = (grad_output @ y.mT).diagonal(dim1=-2, dim2=-1).unsqueeze(-1)",
    ),
)
wrong(
    "activations",
    "softmax over dimension 1",
    ("sum(-1, keepdim=True)", "sum(1 if y.dim() > 1 else 0, keepdim=True)"),
)
wrong(
    "activations",
    "a row that is normalised again",
    ("row = (grad_output * y)", "row = (grad_output * y / y.amax(-1, keepdim=True))"),
)
wrong("activations", "the gradient in place", ("row = (grad_output * y).sum(-1, keepdim=True)\n    return y * (grad_output - row)",
      "row = (grad_output * y).sum(-1, keepdim=True)\n    grad_output -= row\n    return y * grad_output"))  # fmt: skip

wrong(
    "activations",
    "float32 inside",
    (
        "(grad_output * y).sum(-1, keepdim=True)",
        "(grad_output.float() * y.float()).sum(-1, keepdim=True).to(y.dtype)",
    ),
)

# 8 · LayerNorm, backwards
right("layer_norm_vjp", "by sums and n", code="""
def layer_norm_vjp(grad_output, x, weight, eps):
    n = x.size(-1)
    mu = x.sum(-1, keepdim=True) / n
    var = ((x - mu) ** 2).sum(-1, keepdim=True) / n
    inv = 1 / (var + eps) ** 0.5
    xhat = (x - mu) * inv
    dxhat = grad_output * weight
    dx = inv / n * (n * dxhat - dxhat.sum(-1, keepdim=True) - xhat * (dxhat * xhat).sum(-1, keepdim=True))
    lead = tuple(range(x.dim() - 1))
    return dx, (grad_output * xhat).sum(dim=lead), grad_output.sum(dim=lead)
""")  # fmt: skip
wrong("layer_norm_vjp", "eps added to the deviation where it is small", ("(centred.square().mean(-1, keepdim=True) + eps).rsqrt()",
      "1 / centred.square().mean(-1, keepdim=True).sqrt().clamp(min=eps)"))  # fmt: skip
wrong(
    "layer_norm_vjp",
    "constant rows left alone",
    (
        "    return grad_x,",
        "    grad_x = torch.where(centred.abs().amax(-1, keepdim=True) == 0, 0 * grad_x, grad_x)\n    return grad_x,",
    ),
)
wrong(
    "layer_norm_vjp",
    "NaN to 0, and no eps there",
    (
        " + eps).rsqrt()",
        ").add(eps * (centred.abs().amax(-1, keepdim=True) > 0)).rsqrt().nan_to_num(0, 0, 0)",
    ),
)
wrong(
    "layer_norm_vjp",
    "a difference of squares",
    (
        "centred.square().mean(-1, keepdim=True) + eps",
        "x.square().mean(-1, keepdim=True) - x.mean(-1, keepdim=True) ** 2 + eps",
    ),
)
wrong("layer_norm_vjp", "an eps of 1e-5 whatever comes", ("+ eps", "+ 1e-5"))
wrong(
    "layer_norm_vjp",
    "rows along dimension 1",
    ("flatten(0, -2).sum(0)\n    return", "flatten(0, 1).sum(0)\n    return"),
)
wrong(
    "layer_norm_vjp",
    "the mean over one row fewer",
    (
        "along = (g * normed).mean(-1, keepdim=True)",
        "along = (g * normed).sum(-1, keepdim=True) / max(1, x.shape[-1] - 1)",
    ),
)
wrong(
    "layer_norm_vjp",
    "weight divided by",
    ("g = grad_output * weight", "g = grad_output * weight * weight / weight"),
)
wrong(
    "layer_norm_vjp",
    "centred in place",
    ("centred = x - x.mean(-1, keepdim=True)", "x -= x.mean(-1, keepdim=True)\n    centred = x"),
)

wrong("layer_norm_vjp", "an eps of 1 at most", ("+ eps", "+ min(eps, 1.0)"))
wrong("layer_norm_vjp", "an eps of 1e-8 at least", ("+ eps", "+ max(eps, 1e-8)"))

# 9 · Trust, but check
right("numeric_vjp", "index by index on a copy", code="""
def numeric_vjp(name, x, grad_output, h=1e-6):
    f = getattr(torch, name)
    x = x.to(torch.float64).contiguous().clone()
    g = grad_output.to(torch.float64)
    out = torch.zeros_like(x)
    flat = x.view(-1)
    for k in range(flat.numel()):
        keep = flat[k].clone()
        flat[k] = keep + h
        up = (f(x) * g).sum()
        flat[k] = keep - h
        down = (f(x) * g).sum()
        flat[k] = keep
        out.view(-1)[k] = (up - down) / (2 * h)
    return out
""")  # fmt: skip
wrong(
    "numeric_vjp",
    "a nudge that scales with x",
    ("nudge[i] = h", "nudge[i] = h = h * max(1.0, x.flatten()[i].abs().item())"),
)
wrong(
    "numeric_vjp",
    "matrices only",
    ("x, grad_output = x.double()", "rows, columns = x.shape\n    x, grad_output = x.double()"),
)
wrong("numeric_vjp", "reshape writes through", code="""
def numeric_vjp(name, x, grad_output, h=1e-6):
    f, x, g = getattr(torch, name), x.double().clone(), grad_output.double()
    flat, out = x.reshape(-1), []
    for k in range(flat.numel()):
        keep = flat[k].item()
        flat[k] = keep + h
        up = f(x).clone()
        flat[k] = keep - h
        down = f(x).clone()
        flat[k] = keep
        out.append(((up - down) * g).sum() / (2 * h))
    return torch.stack(out).view(x.shape)
""")  # fmt: skip
wrong("numeric_vjp", "the input's own memory", code="""
def numeric_vjp(name, x, grad_output, h=1e-6):
    f, x, g = getattr(torch, name), x.double(), grad_output.double()
    flat, out = x.flatten(), torch.zeros(x.numel(), dtype=torch.float64)
    for k in range(flat.numel()):
        flat[k] += h
        up = f(flat.view(x.shape)).clone()
        flat[k] -= 2 * h
        out[k] = ((up - f(flat.view(x.shape))) * g).sum() / (2 * h)
    return out.view(x.shape)
""")  # fmt: skip
wrong("numeric_vjp", "float32 out for float32 in", ("return grad.view(x.shape)", "return grad.view(x.shape).to(dtype)"),
      ("    f = getattr(torch, name)\n", "    f, dtype = getattr(torch, name), x.dtype\n"))  # fmt: skip
wrong("numeric_vjp", "float64 after the nudge", ("    x, grad_output = x.double(), grad_output.double()\n", ""),
      ("nudge[i] = h\n", "nudge[i] = h\n        nudge = nudge.to(x.dtype)\n"),
      ("(grad_output * (f(x + nudge) - f(x - nudge)))", "(grad_output.double() * (f((x + nudge).double()) - f((x - nudge).double())))"))  # fmt: skip
wrong("numeric_vjp", "f applied row by row", ("f = getattr(torch, name)", "g = getattr(torch, name)\n    f = lambda t: torch.stack([g(row) for row in t]) if t.dim() == 3 else g(t)"),
      ("return grad.view(x.shape)", "return grad.view(x.shape) if x.dim() < 3 else grad.view(x.shape).mT"))  # fmt: skip

# 10 · A function that autograd can call
right("run_softmax", "x saved, exponentials again", ("ctx.save_for_backward(y)", "ctx.save_for_backward(x)"),
      ("(y,) = ctx.saved_tensors", "(x,) = ctx.saved_tensors\n        y = torch.exp(x - torch.logsumexp(x, -1, keepdim=True))"))  # fmt: skip
right("run_softmax", "the Jacobian in full", ("weighted = y * grad_output\n        return weighted - y * weighted.sum(-1, keepdim=True)",
      "j = torch.diag_embed(y) - y.unsqueeze(-1) * y.unsqueeze(-2)\n        return (j @ grad_output.unsqueeze(-1)).squeeze(-1)"))  # fmt: skip
AMAX = "x.amax(-1, keepdim=True)"
wrong("run_softmax", "one maximum for all rows", (AMAX, "x.max()"))
wrong("run_softmax", "the largest size", (AMAX, "x.abs().amax(-1, keepdim=True)"))
wrong("run_softmax", "a clamp", (f"x - {AMAX}", "x.clamp(-80, 80)"))
wrong("run_softmax", "the row's mean taken away", (AMAX, "x.mean(-1, keepdim=True)"))
wrong(
    "run_softmax",
    "saved as a NumPy array",
    ("(y,) = ctx.saved_tensors", "y = torch.from_numpy(ctx.saved_tensors[0].detach().numpy())"),
)
wrong("run_softmax", "backward without a graph", ("weighted = y * grad_output\n        return weighted - y * weighted.sum(-1, keepdim=True)",
      "with torch.no_grad():\n            weighted = y * grad_output\n            return weighted - y * weighted.sum(-1, keepdim=True)"))  # fmt: skip
wrong(
    "run_softmax",
    "half of it in the graph",
    ("return weighted - y *", "return weighted - y.detach() *"),
)
wrong(
    "run_softmax",
    "over dimension 1",
    ("weighted.sum(-1, keepdim=True)", "weighted.sum(min(1, y.dim() - 1), keepdim=True)"),
)
wrong(
    "run_softmax",
    "the incoming gradient written over",
    ("weighted = y * grad_output", "weighted = grad_output.mul_(y)"),
)
wrong(
    "run_softmax",
    "the saved input written over",
    ("e = torch.exp(x - x.amax(-1, keepdim=True))", "e = x.sub_(x.amax(-1, keepdim=True)).exp()"),
)

# 11 · The LM head
right("lm_head", "scatter, and a call of one's own", code="""
def cross_entropy_vjp(grad_output, logits, targets):
    p = (logits - logits.logsumexp(-1, keepdim=True)).exp()
    hot = torch.zeros_like(p).scatter(1, targets[:, None], 1.0)
    return (p - hot) * grad_output / targets.numel()


def lm_head_gradients(x, weight, bias, targets):
    g = cross_entropy_vjp(torch.ones((), dtype=x.dtype), x @ weight.mT + bias, targets)
    return {"x": g @ weight, "weight": g.mT @ x, "bias": g.sum(0)}
""")  # fmt: skip
VJP = "    excess = torch.softmax(logits, -1)\n"
wrong(
    "lm_head",
    "one maximum for all rows",
    (VJP, "    e = torch.exp(logits - logits.max())\n    excess = e / e.sum(-1, keepdim=True)\n"),
)
wrong(
    "lm_head",
    "exponentials in the head",
    (
        "torch.softmax(x @ weight.T + bias, -1)",
        "torch.exp(x @ weight.T + bias)\n    excess = excess / excess.sum(-1, keepdim=True)",
    ),
)
wrong(
    "lm_head",
    "an epsilon in the denominator",
    (
        VJP,
        "    e = torch.exp(logits - logits.amax(-1, keepdim=True))\n    excess = e / (e.sum(-1, keepdim=True) + 1e-3)\n",
    ),
)
wrong(
    "lm_head",
    "the logits written over",
    (VJP, "    excess = logits.sub_(logits.logsumexp(-1, keepdim=True)).exp_()\n"),
)
wrong("lm_head", "targets taken off as a set", ("    excess[torch.arange(len(targets)), targets] -= 1\n    return",
      "    for n, t in dict(zip(range(len(targets)), targets.unique(sorted=False).tolist())).items():\n        excess[n, t] -= 1\n    return"))  # fmt: skip
wrong(
    "lm_head",
    "divided by the number of words",
    ("grad_output * excess / len(targets)", "grad_output * excess / len(targets.unique())"),
)
wrong(
    "lm_head",
    "softmax over the rows",
    (VJP, "    excess = torch.softmax(logits, 0 if len(logits) > 1 else -1)\n"),
)
wrong(
    "lm_head",
    "the size of the upstream alone",
    ("grad_output * excess", "grad_output.abs() * excess"),
)
wrong(
    "lm_head",
    "an upstream of 0 is none",
    (
        "return grad_output * excess / len(targets)",
        "return (grad_output or 1.0) * excess / len(targets)",
    ),
)
wrong(
    "lm_head",
    "the last word is a filler",
    ("-= 1\n    return", "-= (targets != logits.shape[1] - 1).to(excess.dtype)\n    return"),
)
wrong(
    "lm_head",
    "word 0 is a filler",
    ("-= 1\n    return", "-= (targets != 0).to(excess.dtype)\n    return"),
)
wrong("lm_head", "float32 for good", (VJP, "    excess = torch.softmax(logits.float(), -1)\n"))

bank_02_second.add_to(BANK)
