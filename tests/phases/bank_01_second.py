"""Answers to lab 01, a second bank: written from the lesson and the lab's text alone."""

# ruff: noqa: E501

from __future__ import annotations

from tests.phases.bank import CODE

RIGHT = {
    "bytes_of": {
        "as the hint says": '''
def bytes_of(t):
    view_bytes = t.numel() * t.element_size()
    storage_bytes = t.untyped_storage().nbytes()
    return view_bytes, storage_bytes
''',
        "nbytes and len": '''
def bytes_of(t: torch.Tensor) -> tuple[int, int]:
    return t.nbytes, len(t.untyped_storage())
''',
        "shape, dtype and the old storage": '''
def bytes_of(t):
    elements = math.prod(t.shape)
    return elements * t.dtype.itemsize, t.storage().nbytes()
''',
    },
    "row_major_strides": {
        "a loop from the right": '''
def row_major_strides(shape):
    strides = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)
''',
        "a product for each": '''
def row_major_strides(shape):
    sizes = [s or 1 for s in shape]
    return tuple(math.prod(sizes[d + 1:]) for d in range(len(sizes)))
''',
        "accumulate": '''
from itertools import accumulate
from operator import mul

def row_major_strides(shape):
    if not shape:
        return ()
    right = [max(1, s) for s in shape[:0:-1]]
    return tuple(accumulate(right, mul, initial=1))[::-1]
''',
        "recursion": '''
def row_major_strides(shape):
    if len(shape) == 0:
        return ()
    if len(shape) == 1:
        return (1,)
    rest = row_major_strides(shape[1:])
    return (rest[0] * (shape[1] if shape[1] > 0 else 1), *rest)
''',
        "NumPy's cumprod": '''
import numpy as np

def row_major_strides(shape):
    sizes = np.maximum(np.array(shape[1:] + (1,), dtype=np.int64), 1)
    strides = np.cumprod(sizes[::-1])[::-1]
    return tuple(int(s) for s in strides)[:len(shape)]
''',
        "torch's cumprod": '''
def row_major_strides(shape):
    if shape == ():
        return ()
    sizes = torch.tensor([*shape[1:], 1]).clamp(min=1)
    return tuple(sizes.flip(0).cumprod(0).flip(0).tolist())
''',
        "with a trial beside it": '''
def of_torch(shape):
    return torch.empty(shape).stride()

def row_major_strides(shape):
    # as torch.empty(shape).stride(), without asking
    stride, view = 1, []
    for size in shape[::-1]:
        view = [stride] + view
        stride = stride * size if size else stride
    return tuple(view)

for trial in [(3, 0, 4), (0,), (1, 5), (2, 3, 4)]:
    assert row_major_strides(trial) == of_torch(trial)
    assert row_major_strides(trial) == torch.zeros(6).new_empty(trial).reshape(trial).stride()
''',
        "places of unit steps": '''
import numpy as np

def row_major_strides(shape):
    sizes = tuple(max(s, 2) if d == 0 else max(s, 1) for d, s in enumerate(shape))
    strides = []
    step = 1
    for d in range(len(sizes) - 1, -1, -1):
        strides.append(step)
        step *= sizes[d]
    return tuple(reversed(strides))
''',
        "a torch.Size": '''
def row_major_strides(shape):
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * max(shape[d + 1], 1)
    return torch.Size(strides)
''',
    },
    "byte_offset": {
        "a sum over pairs": '''
def byte_offset(t, index):
    element = t.storage_offset()
    for i, size, stride in zip(index, t.shape, t.stride()):
        if i < 0:
            i += size
        element += i * stride
    return element * t.element_size()
''',
        "modulo": '''
def byte_offset(t, index):
    steps = sum((i % n) * s for i, n, s in zip(index, t.shape, t.stride(), strict=True))
    return (t.storage_offset() + steps) * t.itemsize
''',
        "by dimension": '''
def byte_offset(t, index):
    width = t.dtype.itemsize
    where = t.storage_offset() * width
    for d in range(t.dim()):
        where += range(t.size(d))[index[d]] * t.stride(d) * width
    return where
''',
        "a dot product of the numbers": '''
def byte_offset(t, index):
    positive = torch.tensor(index, dtype=torch.int64) % torch.tensor(t.shape, dtype=torch.int64)
    steps = torch.dot(positive, torch.tensor(t.stride(), dtype=torch.int64))
    return (t.storage_offset() + steps.item()) * t.element_size()
''',
        "NumPy's dot": '''
import numpy as np

def byte_offset(t, index):
    positive = [i + n if i < 0 else i for i, n in zip(index, t.shape)]
    return int(np.dot(positive, t.stride()) + t.storage_offset()) * t.element_size()
''',
        "with a trial beside it": '''
def byte_offset(t, index):
    stride = t.stride()
    steps = [(i + t.shape[d] if i < 0 else i) * stride[d] for d, i in enumerate(index)]
    return t.element_size() * (t.storage_offset() + sum(steps))

def of_torch(t, index):
    return t[index].data_ptr() - t.untyped_storage().data_ptr()

trial = torch.arange(24.0).view(2, 3, 4).permute(2, 0, 1)[1:]
assert byte_offset(trial, (-1, 1, 2)) == of_torch(trial, (-1, 1, 2))
''',
        "map": '''
from operator import mul

def byte_offset(t, index):
    # no t[index].data_ptr() here
    array = [i if i >= 0 else n + i for n, i in zip(t.size(), index)]
    return t.element_size() * sum(map(mul, array, t.stride()), t.storage_offset())
''',
    },
    "views_by_hand": {
        "lists": '''
def transpose_view(x, dim0, dim1):
    size, stride = list(x.size()), list(x.stride())
    size[dim0], size[dim1] = size[dim1], size[dim0]
    stride[dim0], stride[dim1] = stride[dim1], stride[dim0]
    return torch.as_strided(x, size, stride, x.storage_offset())

def narrow_view(x, dim, start, length):
    size = list(x.shape)
    size[dim] = length
    offset = x.storage_offset() + start * x.stride(dim)
    return torch.as_strided(x, size, x.stride(), offset)

def expand_view(x, sizes):
    stride = [0 if old != new else s for old, new, s in zip(x.shape, sizes, x.stride())]
    return torch.as_strided(x, sizes, stride, x.storage_offset())

def diagonal_view(x):
    n = min(x.shape[0], x.shape[1])
    return torch.as_strided(x, (n,), (x.stride(0) + x.stride(1),), x.storage_offset())
''',
        "the method, keywords": '''
def transpose_view(x, dim0, dim1):
    order = list(range(x.ndim))
    order[dim0], order[dim1] = dim1, dim0
    return x.as_strided(size=[x.size(d) for d in order], stride=[x.stride(d) for d in order])

def narrow_view(x, dim, start, length):
    return x.as_strided(
        size=(*x.shape[:dim], length, *x.shape[dim + 1:]),
        stride=x.stride(),
        storage_offset=x.storage_offset() + x.stride()[dim] * start,
    )

def expand_view(x, sizes):
    return x.as_strided(size=sizes, stride=[
        stride if size == wanted else 0
        for size, wanted, stride in zip(x.shape, sizes, x.stride())
    ])

def diagonal_view(x):
    return x.as_strided(size=[min(x.shape)], stride=[sum(x.stride())])
''',
        "one helper for all": '''
def record(x):
    return list(x.shape), list(x.stride()), x.storage_offset()

def swapped(numbers, i, j):
    numbers = list(numbers)
    numbers[i], numbers[j] = numbers[j], numbers[i]
    return numbers

def transpose_view(x, dim0, dim1):
    shape, strides, start = record(x)
    return torch.as_strided(x, swapped(shape, dim0, dim1), swapped(strides, dim0, dim1), start)

def narrow_view(x, dim, start, length):
    shape, strides, first = record(x)
    shape[dim] = length
    return torch.as_strided(x, shape, strides, first + start * strides[dim])

def expand_view(x, sizes):
    shape, strides, start = record(x)
    for d in range(len(shape)):
        if shape[d] == 1 and sizes[d] != 1:
            shape[d], strides[d] = sizes[d], 0
    return torch.as_strided(x, shape, strides, start)

def diagonal_view(x):
    (rows, columns), (down, right), start = record(x)
    return torch.as_strided(x, (rows if rows < columns else columns,), (down + right,), start)
''',
    },
    "view_strides": {
        "chunks": '''
def view_strides(shape, strides, new_shape):
    chunks = []
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size == 1:
            continue
        if chunks and stride == chunks[-1][0] * chunks[-1][1]:
            chunks[-1][0] *= size
        else:
            chunks.append([size, stride])
    result = []
    chunk = 0
    for size in reversed(new_shape):
        if size == 1:
            result.append(0)
            continue
        if chunk == len(chunks):
            return None
        length, step = chunks[chunk]
        if length % size != 0:
            return None
        result.append(step)
        chunks[chunk] = [length // size, step * size]
        if chunks[chunk][0] == 1:
            chunk += 1
    return tuple(reversed(result))
''',
        "as PyTorch's own": '''
def view_strides(shape, strides, new_shape):
    view_d = len(new_shape) - 1
    chunk_base = strides[-1]
    new = [1] * len(new_shape)
    tensor_numel = view_numel = 1
    for d in range(len(shape) - 1, -1, -1):
        tensor_numel *= shape[d]
        if d == 0 or (shape[d - 1] != 1 and strides[d - 1] != tensor_numel * chunk_base):
            while view_d >= 0 and (view_numel < tensor_numel or new_shape[view_d] == 1):
                new[view_d] = view_numel * chunk_base
                view_numel *= new_shape[view_d]
                view_d -= 1
            if view_numel != tensor_numel:
                return None
            if d > 0:
                chunk_base = strides[d - 1]
                tensor_numel = view_numel = 1
    return None if view_d != -1 else tuple(new)
''',
        "every element's place": '''
from itertools import product

def places(shape, strides):
    return [sum(map(lambda i, s: i * s, index, strides)) for index in product(*map(range, shape))]

def view_strides(shape, strides, new_shape):
    old = places(shape, strides)
    found, inside = [], 1
    for size in reversed(new_shape):
        found.append(old[inside] - old[0] if size > 1 else 0)
        inside *= size
    found = tuple(found[::-1])
    return found if places(new_shape, found) == old else None
''',
        "groups of equal product, from the left": '''
def view_strides(shape, strides, new_shape):
    old = [(n, s) for n, s in zip(shape, strides) if n != 1]
    new = [n for n in new_shape if n != 1]
    got, i, j = [], 0, 0
    while i < len(old):
        i2, j2 = i + 1, j + 1
        a, b = old[i][0], new[j]
        while a != b:
            if a < b:
                a *= old[i2][0]
                i2 += 1
            else:
                b *= new[j2]
                j2 += 1
        for k in range(i, i2 - 1):
            if old[k][1] != old[k + 1][0] * old[k + 1][1]:
                return None
        step, part = old[i2 - 1][1], []
        for k in range(j2 - 1, j - 1, -1):
            part.insert(0, step)
            step *= new[k]
        got += part
        i, j = i2, j2
    strides_left = iter(got)
    return tuple(next(strides_left) if n != 1 else 1 for n in new_shape)
''',
        "NumPy for the products": '''
import numpy as np

def view_strides(shape, strides, new_shape):
    if np.prod(shape) != np.prod(new_shape):
        return None
    pairs = [(n, s) for n, s in zip(shape, strides) if n > 1]
    chunks = []
    while pairs:
        n, s = pairs.pop()
        while pairs and pairs[-1][1] == n * s:
            n *= pairs.pop()[0]
        chunks.append((n, s))
    view = list(new_shape)
    stride = []
    for n, s in chunks:
        held = 1
        while held < n:
            size = view.pop()
            stride.insert(0, int(s * held))
            held = int(np.prod([held, size]))
        if held != n:
            return None
    return tuple([0] * len(view) + stride)
''',
    },
    "broadcast": {
        "padding": '''
def broadcast(shape_a, strides_a, shape_b, strides_b):
    n = max(len(shape_a), len(shape_b))
    a = (1,) * (n - len(shape_a)) + tuple(shape_a)
    b = (1,) * (n - len(shape_b)) + tuple(shape_b)
    sa = (0,) * (n - len(shape_a)) + tuple(strides_a)
    sb = (0,) * (n - len(shape_b)) + tuple(strides_b)
    common = []
    for p, q in zip(a, b):
        if p != q and p != 1 and q != 1:
            raise ValueError(f"sizes {p} and {q} do not broadcast")
        common.append(q if p == 1 else p)
    return (
        tuple(common),
        tuple(0 if p != c else s for p, c, s in zip(a, common, sa)),
        tuple(0 if q != c else s for q, c, s in zip(b, common, sb)),
    )
''',
        "zip_longest": '''
from itertools import zip_longest

def broadcast(shape_a, strides_a, shape_b, strides_b):
    a = zip(shape_a[::-1], strides_a[::-1])
    b = zip(shape_b[::-1], strides_b[::-1])
    columns = []
    for (na, sa), (nb, sb) in zip_longest(a, b, fillvalue=(1, 0)):
        if na == 1:
            columns.append((nb, 0, sb))
        elif nb == 1:
            columns.append((na, sa, 0))
        elif na == nb:
            columns.append((na, sa, sb))
        else:
            raise ValueError("shapes do not match")
    if not columns:
        return (), (), ()
    shape, left, right = zip(*reversed(columns))
    return shape, left, right
''',
        "recursion": '''
def broadcast(shape_a, strides_a, shape_b, strides_b):
    if not shape_a and not shape_b:
        return (), (), ()
    *more_a, a = shape_a or (1,)
    *more_b, b = shape_b or (1,)
    *steps_a, step_a = strides_a or (0,)
    *steps_b, step_b = strides_b or (0,)
    if a != b and 1 not in (a, b):
        raise ValueError(f"{a} against {b}")
    common = a if b == 1 else b
    shape, out_a, out_b = broadcast(more_a, steps_a, more_b, steps_b)
    return (
        (*shape, common),
        (*out_a, 0 if a == 1 else step_a),
        (*out_b, 0 if b == 1 else step_b),
    )
''',
        "with a trial beside it": '''
def broadcast(shape_a, strides_a, shape_b, strides_b):
    swap = len(shape_a) < len(shape_b)
    if swap:
        shape_a, strides_a, shape_b, strides_b = shape_b, strides_b, shape_a, strides_a
    missing = len(shape_a) - len(shape_b)
    shape_b = (1,) * missing + shape_b
    strides_b = (7,) * missing + strides_b
    shape, zeros_a, zeros_b = [], [], []
    for d, (a, b) in enumerate(zip(shape_a, shape_b)):
        if a == b:
            shape.append(a), zeros_a.append(strides_a[d]), zeros_b.append(strides_b[d])
        elif a == 1:
            shape.append(b), zeros_a.append(0), zeros_b.append(strides_b[d])
        elif b == 1:
            shape.append(a), zeros_a.append(strides_a[d]), zeros_b.append(0)
        else:
            raise ValueError((a, b))
    pair = (tuple(zeros_b), tuple(zeros_a)) if swap else (tuple(zeros_a), tuple(zeros_b))
    return (tuple(shape), *pair)

def of_torch(a, b):
    return tuple(torch.broadcast_shapes(a.shape, b.shape))

one, other = torch.empty(3, 1), torch.zeros(2, 1, 0)
assert broadcast(one.shape, one.stride(), other.shape, other.stride())[0] == of_torch(one, other)
''',
        "NumPy's where": '''
import numpy as np

def broadcast(shape_a, strides_a, shape_b, strides_b):
    def padded(numbers, n, fill):
        return np.array([fill] * (n - len(numbers)) + list(numbers), dtype=int)

    n = max(len(shape_a), len(shape_b))
    a, b = padded(shape_a, n, 1), padded(shape_b, n, 1)
    clash = (a != b) & (a != 1) & (b != 1)
    if clash.any():
        raise ValueError("clash")
    expand = np.where(a == 1, b, a)
    of_a = np.where(a == expand, padded(strides_a, n, 0), 0)
    of_b = np.where(b == expand, padded(strides_b, n, 0), 0)
    return tuple(expand.tolist()), tuple(of_a.tolist()), tuple(of_b.tolist())
''',
    },
    "mended_loss": {
        "checks, then vectors": '''
def mended_loss(prediction, target):
    for name, t in (("prediction", prediction), ("target", target)):
        if not (t.dim() == 1 or (t.dim() == 2 and t.shape[1] == 1)):
            raise ValueError(f"{name} must be (B,) or (B, 1), got {tuple(t.shape)}")
    if prediction.shape[0] != target.shape[0]:
        raise ValueError("two batch sizes")
    return ((prediction.reshape(-1) - target.reshape(-1)) ** 2).mean()
''',
        "mse_loss": '''
import torch.nn.functional as F

def column(t):
    if t.ndim == 1:
        return t.unsqueeze(1)
    if t.ndim == 2 and t.size(-1) == 1:
        return t
    raise ValueError(f"neither (B,) nor (B, 1): {t.shape}")

def mended_loss(prediction, target):
    prediction, target = column(prediction), column(target)
    if prediction.shape != target.shape:
        raise ValueError(f"{len(prediction)} predictions, {len(target)} targets")
    return F.mse_loss(prediction, target)
''',
        "match": '''
def vector(t):
    match tuple(t.shape):
        case (_,):
            return t
        case (_, 1):
            return t[:, 0]
        case other:
            raise ValueError(f"shape {other}")

def mended_loss(prediction, target):
    p, y = vector(prediction), vector(target)
    if len(p) != len(y):
        raise ValueError("batch sizes differ")
    return (p - y).square().sum() / len(p)
''',
        "a dot product": '''
def mended_loss(prediction, target):
    b = prediction.shape[0] if prediction.dim() else None
    if b is None or not {tuple(prediction.shape), tuple(target.shape)} <= {(b,), (b, 1)}:
        raise ValueError("mended_loss takes (B,) or (B, 1) twice, the same B")
    difference = prediction.view(-1) - target.view(-1)
    return difference @ difference / b
''',
    },
    "attention_scores": {
        "rearrange and einsum": '''
def attention_scores(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k) / math.sqrt(q.shape[-1])
''',
        "view, transpose, matmul": '''
def attention_scores(x, w_q, w_k, n_heads):
    B, S, D = x.shape
    d = D // n_heads
    q = torch.nn.functional.linear(x, w_q).view(B, S, n_heads, d).transpose(1, 2)
    k = torch.nn.functional.linear(x, w_k).view(B, S, n_heads, d).permute(0, 2, 3, 1)
    return (q * d ** -0.5) @ k
''',
        "one einsum": '''
def attention_scores(x, w_q, w_k, n_heads):
    w_q = rearrange(w_q, "(h d) i -> h d i", h=n_heads)
    w_k = rearrange(w_k, "(h d) j -> h d j", h=n_heads)
    scores = torch.einsum("bsi,hdi,hdj,btj->bhst", x, w_q, w_k, x)
    return scores / w_q.size(1) ** 0.5
''',
        "head by head": '''
def attention_scores(x, w_q, w_k, n_heads):
    width = x.size(-1) // n_heads
    scores = []
    for h in range(n_heads):
        rows = slice(h * width, (h + 1) * width)
        q = x @ w_q[rows].T
        k = x @ w_k[rows].T
        scores.append(q @ k.mT / width ** 0.5)
    return torch.stack(scores, dim=1)
''',
    },
    "result_dtype": {
        "ranks and categories": '''
def rank(value):
    if not isinstance(value, torch.Tensor):
        return 0
    return 1 if value.dim() == 0 else 2

def dtype_of(value):
    return value.dtype if isinstance(value, torch.Tensor) else torch.tensor(value).dtype

def category(dtype):
    if dtype.is_complex:
        return 3
    if dtype.is_floating_point:
        return 2
    return 0 if dtype == torch.bool else 1

def result_dtype(a, b):
    if rank(a) < rank(b):
        a, b = b, a
    high, low = dtype_of(a), dtype_of(b)
    if rank(a) == rank(b):
        return torch.promote_types(high, low)
    if category(low) <= category(high):
        return high
    if category(low) == 3 and category(high) == 2:
        return high.to_complex()
    return low
''',
        "a table of the numbers": '''
NUMBERS = {bool: torch.bool, int: torch.int64, float: torch.float32, complex: torch.complex64}

def described(value):
    if type(value) in NUMBERS:
        return 0, NUMBERS[type(value)]
    return (2 if value.shape else 1), value.dtype

def kind(dtype):
    kinds = (dtype != torch.bool, dtype.is_floating_point or dtype.is_complex, dtype.is_complex)
    return sum(kinds)

def result_dtype(a, b):
    (low_rank, low), (high_rank, high) = sorted((described(a), described(b)), key=lambda r: r[0])
    if low_rank == high_rank:
        return torch.promote_types(low, high)
    if kind(low) <= kind(high):
        return high
    return high.to_complex() if high.is_floating_point else low
''',
        "the width from the name": '''
WIDER = {torch.float16: torch.complex32, torch.bfloat16: torch.complex64,
         torch.float32: torch.complex64, torch.float64: torch.complex128}

def result_dtype(a, b):
    groups = {0: [], 1: [], 2: []}
    for v in (a, b):
        if isinstance(v, bool):
            groups[2].append((0, torch.bool))
        elif isinstance(v, int):
            groups[2].append((1, torch.long))
        elif isinstance(v, float):
            groups[2].append((2, torch.get_default_dtype()))
        elif isinstance(v, complex):
            groups[2].append((3, WIDER[torch.get_default_dtype()]))
        else:
            c = 3 if v.is_complex() else 2 if v.is_floating_point() else int(v.dtype is not torch.bool)
            groups[0 if v.ndim else 1].append((c, v.dtype))
    (first, *rest) = [group for group in groups.values() if group]
    category, result = first[0]
    for c, other in first[1:]:
        category, result = max(c, category), torch.promote_types(result, other)
    for [(c, other)] in rest:
        if c > category:
            result = WIDER[result] if category == 2 else other
    return result
''',
    },
    "model_costs": {
        "the formulas": '''
def linear_cost(batch, d_in, d_out, itemsize):
    numbers = batch * d_in + d_in * d_out + d_out + batch * d_out
    return {"flops": 2 * batch * d_in * d_out, "bytes": numbers * itemsize}

def minigpt_flops(config, batch, length):
    tokens = batch * length
    d = config.d_model
    projections = 4 * 2 * tokens * d * d
    attention = 2 * 2 * batch * length * length * d
    mlp = 2 * 2 * tokens * d * config.d_ff
    head = 2 * tokens * d * config.vocab_size
    return config.n_layers * (projections + attention + mlp) + head
''',
        "one product at a time": '''
def matmul(m, k, n):
    return 2 * m * k * n

def linear_cost(batch, d_in, d_out, itemsize):
    elements = sum(math.prod(s) for s in [(batch, d_in), (d_out, d_in), (d_out,), (batch, d_out)])
    return dict(bytes=elements * itemsize, flops=matmul(batch, d_in, d_out))

def minigpt_flops(config, batch, length):
    d, d_head = config.d_model, config.d_model // config.n_heads
    flops = 0
    for layer in range(config.n_layers):
        for projection in "qkvo":
            flops += matmul(batch * length, d, d)
        flops += batch * config.n_heads * matmul(length, d_head, length)
        flops += batch * config.n_heads * matmul(length, length, d_head)
        flops += matmul(batch * length, d, config.d_ff) + matmul(batch * length, config.d_ff, d)
    return flops + matmul(batch * length, d, config.vocab_size)
''',
        "by linear_cost": '''
def linear_cost(batch, d_in, d_out, itemsize):
    read = (batch + d_out) * d_in + d_out
    written = batch * d_out
    return {"flops": batch * d_in * d_out << 1, "bytes": (read + written) * itemsize}

def minigpt_flops(config, batch, length):
    def layer(d_in, d_out):
        return linear_cost(batch * length, d_in, d_out, 4)["flops"]

    block = 4 * layer(config.d_model, config.d_model)
    block += layer(config.d_model, config.d_ff) + layer(config.d_ff, config.d_model)
    block += 2 * layer(config.d_model, length)
    return config.n_layers * block + layer(config.d_model, config.vocab_size)
''',
    },
}

WRONG = {
    "bytes_of": [
        ("finfo, iinfo", "finfo of a complex dtype is of its half; bool has no iinfo", CODE, '''
def bytes_of(t):
    info = torch.iinfo(t.dtype) if not (t.is_floating_point() or t.is_complex()) else torch.finfo(t.dtype)
    return t.numel() * info.bits // 8, t.untyped_storage().nbytes()
'''),
        ("finfo, with bool", "finfo of a complex dtype is of its half", CODE, '''
def bytes_of(t):
    if t.dtype == torch.bool:
        width = 1
    elif t.is_floating_point() or t.is_complex():
        width = torch.finfo(t.dtype).bits // 8
    else:
        width = torch.iinfo(t.dtype).bits // 8
    return t.numel() * width, t.untyped_storage().nbytes()
'''),
        ("overlaps count once", "an element that is reached twice counts twice", CODE, '''
from itertools import product

def bytes_of(t):
    reached = {sum(i * s for i, s in zip(index, t.stride())) for index in product(*map(range, t.shape))}
    twice = t.numel() if 0 in t.stride() else len(reached)
    return twice * t.element_size(), t.untyped_storage().nbytes()
'''),
    ],
    "views_by_hand": [
        ("expand: only upwards", "a 1 that is stretched to 0 gets stride 0", CODE, '''
def transpose_view(x, dim0, dim1):
    size, stride = list(x.size()), list(x.stride())
    size[dim0], size[dim1] = size[dim1], size[dim0]
    stride[dim0], stride[dim1] = stride[dim1], stride[dim0]
    return torch.as_strided(x, size, stride, x.storage_offset())

def narrow_view(x, dim, start, length):
    size = list(x.shape)
    size[dim] = length
    offset = x.storage_offset() + start * x.stride(dim)
    return torch.as_strided(x, size, x.stride(), offset)

def expand_view(x, sizes):
    stride = [0 if new > old else s for old, new, s in zip(x.shape, sizes, x.stride())]
    return torch.as_strided(x, sizes, stride, x.storage_offset())

def diagonal_view(x):
    n = min(x.shape[0], x.shape[1])
    return torch.as_strided(x, (n,), (x.stride(0) + x.stride(1),), x.storage_offset())
'''),
        ("all: set_", "another operator", CODE, '''
def transpose_view(x, dim0, dim1):
    size, stride = list(x.size()), list(x.stride())
    size[dim0], size[dim1] = size[dim1], size[dim0]
    stride[dim0], stride[dim1] = stride[dim1], stride[dim0]
    return torch.empty(0, dtype=x.dtype).set_(x.untyped_storage(), x.storage_offset(), size, stride)

def narrow_view(x, dim, start, length):
    size = list(x.shape)
    size[dim] = length
    offset = x.storage_offset() + start * x.stride(dim)
    return torch.as_strided(x, size, x.stride(), offset)

def expand_view(x, sizes):
    stride = [0 if old != new else s for old, new, s in zip(x.shape, sizes, x.stride())]
    return torch.as_strided(x, sizes, stride, x.storage_offset())

def diagonal_view(x):
    n = min(x.shape[0], x.shape[1])
    return torch.as_strided(x, (n,), (x.stride(0) + x.stride(1),), x.storage_offset())
'''),
    ],
    "view_strides": [
        ("an inner 1 only", "a size of 1 at the end stands in the way", CODE, '''
def view_strides(shape, strides, new_shape):
    chunks = []
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size == 1 and chunks:
            continue
        if chunks and stride == chunks[-1][0] * chunks[-1][1]:
            chunks[-1][0] *= size
        else:
            chunks.append([size, stride])
    result = []
    chunk = 0
    for size in reversed(new_shape):
        if size == 1:
            result.append(0)
            continue
        if chunk == len(chunks):
            return None
        length, step = chunks[chunk]
        if length % size != 0:
            return None
        result.append(step)
        chunks[chunk] = [length // size, step * size]
        if chunks[chunk][0] == 1:
            chunk += 1
    return tuple(reversed(result))
'''),
    ],
    "broadcast": [
        ("no dimension at all", "two 0-dim operands have an empty shape each", CODE, '''
from itertools import zip_longest

def broadcast(shape_a, strides_a, shape_b, strides_b):
    columns = []
    for (p, s), (q, t) in zip_longest(zip(shape_a[::-1], strides_a[::-1]), zip(shape_b[::-1], strides_b[::-1]), fillvalue=(1, 0)):
        if p != q and 1 not in (p, q):
            raise ValueError("clash")
        columns.append((q if p == 1 else p, 0 if p == 1 else s, 0 if q == 1 else t))
    shape, a, b = zip(*columns[::-1])
    return shape, a, b
'''),
    ],
    "mended_loss": [
        ("in float32 and back", "of their dtype, in name only: float64 loses digits", CODE, '''
def mended_loss(prediction, target):
    for name, t in (("prediction", prediction), ("target", target)):
        if not (t.dim() == 1 or (t.dim() == 2 and t.shape[1] == 1)):
            raise ValueError(f"{name} must be (B,) or (B, 1), got {tuple(t.shape)}")
    if prediction.shape[0] != target.shape[0]:
        raise ValueError("two batch sizes")
    return ((prediction.reshape(-1).float() - target.reshape(-1).float()) ** 2).mean().to(prediction.dtype)
'''),
    ],
    "result_dtype": [
        ("the default ints are int32", "a number brings the default int", CODE, '''
def rank(value):
    if not isinstance(value, torch.Tensor):
        return 0
    return 1 if value.dim() == 0 else 2

def dtype_of(value):
    return value.dtype if isinstance(value, torch.Tensor) else {bool: torch.bool, int: torch.int32 if abs(value) > 1 else torch.int64, float: torch.float32, complex: torch.complex64}[type(value)]

def category(dtype):
    if dtype.is_complex:
        return 3
    if dtype.is_floating_point:
        return 2
    return 0 if dtype == torch.bool else 1

def result_dtype(a, b):
    if rank(a) < rank(b):
        a, b = b, a
    high, low = dtype_of(a), dtype_of(b)
    if rank(a) == rank(b):
        return torch.promote_types(high, low)
    if category(low) <= category(high):
        return high
    if category(low) == 3 and category(high) == 2:
        return high.to_complex()
    return low
'''),
        ("a negative number beside uint8", "the dtype counts, not the value", CODE, '''
def rank(value):
    if not isinstance(value, torch.Tensor):
        return 0
    return 1 if value.dim() == 0 else 2

def dtype_of(value):
    return value.dtype if isinstance(value, torch.Tensor) else torch.tensor(value).dtype

def category(dtype):
    if dtype.is_complex:
        return 3
    if dtype.is_floating_point:
        return 2
    return 0 if dtype == torch.bool else 1

def result_dtype(a, b):
    if rank(a) < rank(b):
        a, b = b, a
    high, low = dtype_of(a), dtype_of(b)
    if rank(b) == 0 and high == torch.uint8 and isinstance(b, int) and b < 0:
        return torch.int16
    if rank(a) == rank(b):
        return torch.promote_types(high, low)
    if category(low) <= category(high):
        return high
    if category(low) == 3 and category(high) == 2:
        return high.to_complex()
    return low
'''),
        ("no floats of no dimension", "a 0-dim float of another width isn't heard", CODE, '''
def rank(value):
    if not isinstance(value, torch.Tensor):
        return 0
    return 1 if value.dim() == 0 else 2

def dtype_of(value):
    return value.dtype if isinstance(value, torch.Tensor) else torch.tensor(value).dtype

def category(dtype):
    if dtype.is_complex:
        return 3
    if dtype.is_floating_point:
        return 2
    return 0 if dtype == torch.bool else 1

def result_dtype(a, b):
    if rank(a) < rank(b):
        a, b = b, a
    high, low = dtype_of(a), dtype_of(b)
    if rank(a) == rank(b):
        return torch.promote_types(high, low)
    if category(low) == category(high) == 2 and rank(b) == 1 and low == torch.float64 and high == torch.float32:
        return low
    if category(low) <= category(high):
        return high
    if category(low) == 3 and category(high) == 2:
        return high.to_complex()
    return low
'''),
    ],
}
