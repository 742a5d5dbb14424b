"""Solutions of lab 01, right and wrong, written from the question alone.

RIGHT holds the code by exercise and name, WRONG the code and what it breaks in the question's text.
"""

from tests.phases import bank_01_second
from tests.phases.bank import Bank

# 1 -------------------------------------------------------------------------------------------------

BYTES_RIGHT = {
    "asks the tensor": """
def bytes_of(t):
    return t.numel() * t.element_size(), t.untyped_storage().nbytes()
""",
    "product in a loop, length of the storage": """
def bytes_of(t):
    elements = 1
    for size in t.shape:
        elements = elements * size
    view_bytes = elements * t.dtype.itemsize
    storage_bytes = len(t.untyped_storage())
    return (view_bytes, storage_bytes)
""",
    "nbytes twice": """
def bytes_of(t):
    view = t.nbytes
    storage = t.untyped_storage().size()
    return view, storage
""",
}

BYTES_RIGHT["ints of NumPy's"] = """
import numpy as np

def bytes_of(t):
    return np.int64(t.nbytes), np.int64(t.untyped_storage().nbytes())
"""

VIEW = "the bytes that its *view* addresses (one for each element, each as wide as the dtype says)"
STORAGE = "the bytes that its *storage* holds"

BYTES_WRONG = {
    "every element is four bytes": (
        "def bytes_of(t):\n    return t.numel() * 4, t.untyped_storage().nbytes()\n",
        VIEW,
    ),
    "elements, not bytes": (
        "def bytes_of(t):\n    return t.numel(), t.untyped_storage().nbytes()\n",
        VIEW,
    ),
    "no storage": (
        "def bytes_of(t):\n    n = t.numel() * t.element_size()\n    return n, n\n",
        STORAGE,
    ),
    "the base's bytes": (
        "def bytes_of(t):\n    base = t._base if t._base is not None else t\n    return t.nbytes, base.nbytes\n",
        STORAGE,
    ),
    "typed storage": (
        "import warnings\n\ndef bytes_of(t):\n    with warnings.catch_warnings():\n        warnings.simplefilter('ignore')\n        return t.numel() * t.element_size(), t.storage().size()\n",
        STORAGE,
    ),
    "swapped": (
        "def bytes_of(t):\n    return t.untyped_storage().nbytes(), t.numel() * t.element_size()\n",
        "the pair `(view_bytes, storage_bytes)`",
    ),
    "tensors": (
        "def bytes_of(t):\n    return torch.tensor(t.nbytes), torch.tensor(t.untyped_storage().nbytes())\n",
        "two ints",
    ),
    "numpy's product": (
        "import numpy as np\n\ndef bytes_of(t):\n    return np.prod(t.shape) * t.element_size(), t.untyped_storage().nbytes()\n",
        "two ints",
    ),
    "dims of a matrix": (
        "def bytes_of(t):\n    n = t.shape[0] * (t.shape[1] if t.dim() > 1 else 1)\n    return n * t.element_size(), t.untyped_storage().nbytes()\n",
        VIEW,
    ),
    "an element reached twice counts once": (
        "def bytes_of(t):\n    n = 1\n    for size, step in zip(t.shape, t.stride()):\n        n *= size if step else 1\n    return n * t.element_size(), t.untyped_storage().nbytes()\n",
        "An element that a view reaches twice counts twice",
    ),
    "empty is one": (
        "def bytes_of(t):\n    n = 1\n    for size in t.shape:\n        n *= max(size, 1)\n    return n * t.element_size(), t.untyped_storage().nbytes()\n",
        VIEW,
    ),
    "finfo knows the width": (
        "def bytes_of(t):\n    return t.numel() * torch.finfo(t.dtype).bits // 8, t.untyped_storage().nbytes()\n",
        "any tensor `t`",
    ),
    "integers are eight bytes": (
        "def bytes_of(t):\n    width = t.element_size() if t.is_floating_point() else 8\n    return t.numel() * width, t.untyped_storage().nbytes()\n",
        VIEW,
    ),
    "storage of a contiguous copy": (
        "def bytes_of(t):\n    return t.nbytes, t.contiguous().untyped_storage().nbytes()\n",
        STORAGE,
    ),
    "from the offset on": (
        "def bytes_of(t):\n    s = t.untyped_storage().nbytes()\n    return t.nbytes, s - t.storage_offset() * t.element_size()\n",
        STORAGE,
    ),
    "size of the Python object": (
        "import sys\n\ndef bytes_of(t):\n    return t.nbytes, sys.getsizeof(t.untyped_storage())\n",
        STORAGE,
    ),
    "storage rounded down to elements": (
        "def bytes_of(t):\n    w = t.element_size()\n    return t.numel() * w, t.untyped_storage().nbytes() // w * w\n",
        STORAGE,
    ),
    "len": (
        "def bytes_of(t):\n    return len(t) * t[0].numel() * t.element_size() if len(t) else 0, t.untyped_storage().nbytes()\n",
        "any tensor `t` (0-dim)",
    ),
}

# 2 -------------------------------------------------------------------------------------------------

STRIDES_RIGHT = {
    "from the right in a loop": """
def row_major_strides(shape):
    strides = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)
""",
    "recursion": """
def row_major_strides(shape):
    if len(shape) == 0:
        return ()
    if len(shape) == 1:
        return (1,)
    rest = row_major_strides(shape[1:])
    return ((shape[1] or 1) * rest[0],) + rest
""",
    "a product for each": """
def row_major_strides(shape):
    return tuple(math.prod(s for s in shape[d + 1:] if s) for d in range(len(shape)))
""",
    "accumulate": """
from itertools import accumulate
from operator import mul

def row_major_strides(shape):
    if not shape:
        return ()
    inner = [s if s > 1 else 1 for s in shape[:0:-1]]
    return tuple(accumulate(inner, mul, initial=1))[::-1]
""",
    "NumPy's cumprod": """
import numpy as np

def row_major_strides(shape):
    sizes = np.maximum(np.array(shape[1:] + (1,) if shape else (), dtype=np.int64), 1)
    return tuple(int(s) for s in np.cumprod(sizes[::-1])[::-1])
""",
    "torch's cumprod": """
def row_major_strides(shape):
    if len(shape) == 0:
        return ()
    sizes = torch.tensor(list(shape[1:]) + [1]).clamp(min=1)
    return tuple(sizes.flip(0).cumprod(0).flip(0).tolist())
""",
    "reduce": """
from functools import reduce

def row_major_strides(shape):
    return reduce(lambda done, size: (done[0] * max(1, size),) + done, shape[:0:-1], (1,)) if shape else ()
""",
    "verbose": """
def row_major_strides(shape):
    n = len(shape)
    strides = [0] * n
    for d in range(n):
        total = 1
        for other in range(d + 1, n):
            size = shape[other]
            if size == 0:
                size = 1
            total = total * size
        strides[d] = total
    return tuple(strides)
""",
    "a class": """
class Walk:
    def __init__(self):
        self.step = 1

    def over(self, size):
        before, self.step = self.step, self.step * (size if size else 1)
        return before


def row_major_strides(shape):
    walk = Walk()
    return tuple([walk.over(size) for size in shape[::-1]][::-1])
""",
    "a generator and yield": """
def _from_right(shape):
    step = 1
    for size in shape[::-1]:
        yield step
        if size != 0:
            step = step * size

def row_major_strides(shape):
    return tuple(_from_right(shape))[::-1]
""",
}

CORNERS = (
    "a shape may hold sizes of 1 and of 0, and torch's answer for those is part of the exercise"
)
NUMBERS = "it may not ask a tensor or an array where its elements lie, nor lay them out with `view` or `reshape`"

STRIDES_WRONG = {
    "a zero takes all": (
        "def row_major_strides(shape):\n    return tuple(math.prod(shape[d + 1:]) for d in range(len(shape)))\n",
        CORNERS,
    ),
    "zeros mended at the end": (
        "def row_major_strides(shape):\n    return tuple(max(1, math.prod(shape[d + 1:])) for d in range(len(shape)))\n",
        CORNERS,
    ),
    "a size of 1 has stride 0": (
        "def row_major_strides(shape):\n    s = [math.prod(max(x, 1) for x in shape[d + 1:]) for d in range(len(shape))]\n    return tuple(0 if shape[d] == 1 else s[d] for d in range(len(shape)))\n",
        CORNERS,
    ),
    "a size of 1 has stride 1": (
        "def row_major_strides(shape):\n    s = [math.prod(max(x, 1) for x in shape[d + 1:]) for d in range(len(shape))]\n    return tuple(1 if shape[d] == 1 else s[d] for d in range(len(shape)))\n",
        CORNERS,
    ),
    "all zeros when empty": (
        "def row_major_strides(shape):\n    if 0 in shape:\n        return (0,) * len(shape)\n    return tuple(math.prod(shape[d + 1:]) for d in range(len(shape)))\n",
        CORNERS,
    ),
    "all ones when empty": (
        "def row_major_strides(shape):\n    if 0 in shape:\n        return (1,) * len(shape)\n    return tuple(math.prod(shape[d + 1:]) for d in range(len(shape)))\n",
        CORNERS,
    ),
    "only the last zero": (
        "def row_major_strides(shape):\n    shape = list(shape)\n    if shape and shape[-1] == 0:\n        shape[-1] = 1\n    return tuple(math.prod(shape[d + 1:]) for d in range(len(shape)))\n",
        CORNERS,
    ),
    "the zero's own stride is 0": (
        "def row_major_strides(shape):\n    s = [math.prod(max(x, 1) for x in shape[d + 1:]) for d in range(len(shape))]\n    return tuple(0 if shape[d] == 0 else s[d] for d in range(len(shape)))\n",
        CORNERS,
    ),
    "column-major": (
        "def row_major_strides(shape):\n    return tuple(math.prod(max(x, 1) for x in shape[:d]) for d in range(len(shape)))\n",
        "the last index runs fastest",
    ),
    "bytes": (
        "def row_major_strides(shape):\n    return tuple(4 * math.prod(max(x, 1) for x in shape[d + 1:]) for d in range(len(shape)))\n",
        "the number of elements to walk",
    ),
    "includes its own size": (
        "def row_major_strides(shape):\n    return tuple(math.prod(max(x, 1) for x in shape[d:]) for d in range(len(shape)))\n",
        "the number of elements to walk when index `d` grows by one",
    ),
    "only the right neighbour": (
        "def row_major_strides(shape):\n    return tuple(max(shape[d + 1], 1) if d + 1 < len(shape) else 1 for d in range(len(shape)))\n",
        "the number of elements to walk when index `d` grows by one",
    ),
    "no dimensions": (
        "def row_major_strides(shape):\n    s = [1]\n    for size in shape[:0:-1]:\n        s.insert(0, s[0] * max(size, 1))\n    return tuple(s)\n",
        "Strides of a new contiguous tensor of this shape (visible: a number)",
    ),
    "asks torch": (
        "def row_major_strides(shape):\n    return torch.empty(shape).stride()\n",
        NUMBERS,
    ),
    "asks torch without memory": (
        "def row_major_strides(shape):\n    return torch.empty(shape, device='meta').stride()\n",
        NUMBERS,
    ),
    "asks NumPy": (
        "import numpy as np\n\ndef row_major_strides(shape):\n    return tuple(s // 8 for s in np.empty(shape).strides)\n",
        NUMBERS,
    ),
    "lays them out": (
        "def row_major_strides(shape):\n    sizes = [max(s, 2) for s in shape]\n    t = torch.arange(math.prod(sizes)).view(sizes)\n    out = []\n    for d in range(len(shape)):\n        i = [0] * len(shape)\n        i[d] = 1\n        out.append(int(t[tuple(i)]))\n    return tuple(out)\n",
        NUMBERS,
    ),
    "getattr hides it": (
        "def row_major_strides(shape):\n    return getattr(torch.zeros(shape), 'str' + 'ide')()\n",
        NUMBERS,
    ),
    "stops at a zero": (
        "def row_major_strides(shape):\n    s, step = [], 1\n    for size in reversed(shape):\n        s.append(step)\n        if size == 0:\n            step = 1\n        else:\n            step *= size\n    return tuple(reversed(s))\n",
        CORNERS,
    ),
    "a zero is skipped, with its stride": (
        "def row_major_strides(shape):\n    kept = [x for x in shape if x != 0]\n    return tuple(math.prod(kept[d + 1:]) for d in range(len(shape)))\n",
        CORNERS,
    ),
    "floats": (
        "import numpy as np\n\ndef row_major_strides(shape):\n    return tuple(np.prod([max(x, 1) for x in shape[d + 1:]]) for d in range(len(shape)))\n",
        "`tuple[int, ...]`",
    ),
    "three dimensions at most": (
        "def row_major_strides(shape):\n    if len(shape) == 0:\n        return ()\n    if len(shape) == 1:\n        return (1,)\n    if len(shape) == 2:\n        return (max(shape[1], 1), 1)\n    return (max(shape[1], 1) * max(shape[2], 1), max(shape[2], 1), 1)\n",
        "Given only the shape, which strides does that give?",
    ),
}

# 3 -------------------------------------------------------------------------------------------------

OFFSET_RIGHT = {
    "a sum": """
def byte_offset(t, index):
    steps = sum((i % size) * step for i, size, step in zip(index, t.shape, t.stride()))
    return (t.storage_offset() + steps) * t.element_size()
""",
    "a loop": """
def byte_offset(t, index):
    position = t.storage_offset()
    strides = t.stride()
    for d in range(len(index)):
        i = index[d]
        if i < 0:
            i = i + t.shape[d]
        position = position + i * strides[d]
    return position * t.element_size()
""",
    "recursion": """
def byte_offset(t, index):
    def walk(d):
        if d == len(index):
            return t.storage_offset()
        here = index[d] if index[d] >= 0 else t.size(d) + index[d]
        return here * t.stride(d) + walk(d + 1)
    return walk(0) * t.element_size()
""",
    "NumPy's dot": """
import numpy as np

def byte_offset(t, index):
    inside = [i + n if i < 0 else i for i, n in zip(index, t.shape)]
    return int(t.storage_offset() + np.dot(inside, t.stride())) * t.element_size()
""",
    "map and reduce": """
from functools import reduce
from operator import mul

def byte_offset(t, index):
    positive = map(lambda i, n: i + n * (i < 0), index, t.shape)
    return t.dtype.itemsize * reduce(int.__add__, map(mul, positive, t.stride()), t.storage_offset())
""",
    "a range knows negative indices": """
def byte_offset(t, index):
    return t.element_size() * (
        t.storage_offset() + sum(range(n)[i] * s for n, i, s in zip(t.shape, index, t.stride(), strict=True))
    )
""",
}

SUM = "the distance, in **bytes**, from the first byte of `t`'s storage to the element `t[index]`"
NEGATIVE = "a negative one counts from the end"
UNTOUCHED = "no operator may touch `t`, nor may its bytes be handed to NumPy, and `data_ptr()` is not to be asked"
_OFF = "def byte_offset(t, index):\n    return (t.storage_offset() + sum((i % n) * s for i, n, s in zip(index, t.shape, t.stride()))) * t.element_size()\n"

OFFSET_WRONG = {
    "NumPy's arrays": (
        """
import numpy as np

def byte_offset(t, index):
    index, shape, strides = (np.array(v, dtype=np.int64) for v in (index, tuple(t.shape), t.stride()))
    index = np.where(index < 0, index + shape, index)
    return int(t.storage_offset() + index @ strides) * t.element_size()
""",
        "Neither are NumPy's `array` and `asarray` allowed, of anything",
    ),
    "no offset": (_OFF.replace("t.storage_offset() + ", ""), SUM),
    "offset in elements": (
        "def byte_offset(t, index):\n    return t.storage_offset() + sum((i % n) * s for i, n, s in zip(index, t.shape, t.stride())) * t.element_size()\n",
        "in **bytes**",
    ),
    "elements": (_OFF.replace(" * t.element_size()", ""), "in **bytes**"),
    "negative indices as they are": (_OFF.replace("(i % n)", "i"), NEGATIVE),
    "one from the end only": (_OFF.replace("(i % n)", "(n - 1 if i == -1 else i)"), NEGATIVE),
    "negative by absolute value": (
        _OFF.replace("(i % n)", "(n - abs(i + 1) if i < 0 else i)"),
        NEGATIVE,
    ),
    "minus one is size": (_OFF.replace("(i % n)", "(n + i - 1 if i < 0 else i)"), NEGATIVE),
    "wrapped at the end": (
        "def byte_offset(t, index):\n    p = sum(i * s for i, s in zip(index, t.stride()))\n    if p < 0:\n        p += t.numel()\n    return (t.storage_offset() + p) * t.element_size()\n",
        NEGATIVE,
    ),
    "row-major strides": (
        "def byte_offset(t, index):\n    p = 0\n    for i, n in zip(index, t.shape):\n        p = p * n + i % n\n    return (t.storage_offset() + p) * t.element_size()\n",
        "Work from `t.stride()`",
    ),
    "four bytes, eight for ints": (
        _OFF.replace("t.element_size()", "(4 if t.is_floating_point() else 8)"),
        "t.element_size()",
    ),
    "modulo the last size": (
        "def byte_offset(t, index):\n    n = t.shape[-1]\n    return (t.storage_offset() + sum((i % n if i < 0 else i) * s for i, s in zip(index, t.stride()))) * t.element_size()\n",
        NEGATIVE,
    ),
    "a tensor without dimensions": (
        "def byte_offset(t, index):\n    p = t.storage_offset() + (index[0] % t.shape[0]) * t.stride(0)\n    for d in range(1, len(index)):\n        p += (index[d] % t.shape[d]) * t.stride(d)\n    return p * t.element_size()\n",
        "one integer for each dimension",
    ),
    "two dimensions": (
        "def byte_offset(t, index):\n    i, j = index if len(index) == 2 else (0, index[0])\n    s = t.stride() if t.dim() == 2 else (0,) + t.stride()\n    n = tuple(t.shape) if t.dim() == 2 else (1,) + tuple(t.shape)\n    return (t.storage_offset() + (i % n[0]) * s[0] + (j % n[1]) * s[1]) * t.element_size()\n",
        "one integer for each dimension",
    ),
    "asks data_ptr": (
        "def byte_offset(t, index):\n    return t[index].data_ptr() - t.untyped_storage().data_ptr()\n",
        UNTOUCHED,
    ),
    "asks the element's offset": (
        "def byte_offset(t, index):\n    return t[index].storage_offset() * t.element_size()\n",
        UNTOUCHED,
    ),
    "asks NumPy": (
        "def byte_offset(t, index):\n    a = t.detach().numpy()\n    b = a[tuple(slice(i, None) for i in index)]\n    return t.storage_offset() * t.element_size() + b.ctypes.data - a.ctypes.data\n",
        UNTOUCHED,
    ),
    "selects": (
        "def byte_offset(t, index):\n    for i in index:\n        t = t.select(0, i)\n    return t.storage_offset() * t.element_size()\n",
        UNTOUCHED,
    ),
    "strides of the transpose": (_OFF.replace("t.stride()", "t.stride()[::-1]"), SUM),
    "offset left out for a fresh look": (
        "def byte_offset(t, index):\n    t = t.contiguous()\n" + _OFF.split("\n", 1)[1],
        UNTOUCHED,
    ),
    "a zero index is skipped": (
        "def byte_offset(t, index):\n    p = 0\n    for i, n, s in zip(index, t.shape, t.stride()):\n        if i:\n            p += (i % n) * s\n    return (p + t.storage_offset() if p else 0) * t.element_size()\n",
        SUM,
    ),
}

# 4 -------------------------------------------------------------------------------------------------

_T = """
def transpose_view(x, dim0, dim1):
    size, stride = list(x.shape), list(x.stride())
    size[dim0], size[dim1] = size[dim1], size[dim0]
    stride[dim0], stride[dim1] = stride[dim1], stride[dim0]
    return torch.as_strided(x, size, stride)
"""
_N = """
def narrow_view(x, dim, start, length):
    size = list(x.shape)
    size[dim] = length
    return torch.as_strided(x, size, x.stride(), x.storage_offset() + start * x.stride(dim))
"""
_E = """
def expand_view(x, sizes):
    stride = [s if n == m else 0 for n, m, s in zip(x.shape, sizes, x.stride())]
    return torch.as_strided(x, sizes, stride)
"""
_D = """
def diagonal_view(x):
    return torch.as_strided(x, (min(x.shape),), (x.stride(0) + x.stride(1),))
"""

VIEWS_RIGHT = {
    "plain": _T + _N + _E + _D,
    "the method, keywords": """
def transpose_view(x, dim0, dim1):
    order = list(range(x.dim()))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return x.as_strided([x.size(d) for d in order], [x.stride(d) for d in order])

def narrow_view(x, dim, start, length):
    dim %= x.dim()
    size = tuple(length if d == dim else n for d, n in enumerate(x.shape))
    return x.as_strided(size=size, stride=x.stride(), storage_offset=x.storage_offset() + x.stride()[dim] * start)

def expand_view(x, sizes):
    stride = []
    for d in range(len(sizes)):
        if x.shape[d] == 1 and sizes[d] != 1:
            stride.append(0)
        else:
            stride.append(x.stride(d))
    return x.as_strided(sizes, stride)

def diagonal_view(x):
    rows, columns = x.shape
    down, right = x.stride()
    return x.as_strided((rows if rows < columns else columns,), (down + right,))
""",
    "one helper for all": """
def _make(x, size=None, stride=None, skip=0):
    return torch.as_strided(x, x.size() if size is None else size, x.stride() if stride is None else stride,
                            x.storage_offset() + skip)

def _with(values, changes):
    values = list(values)
    for d, v in changes.items():
        values[d] = v
    return tuple(values)

def transpose_view(x, dim0, dim1):
    swap = lambda v: _with(v, {dim0: v[dim1], dim1: v[dim0]})
    return _make(x, swap(x.shape), swap(x.stride()))

def narrow_view(x, dim, start, length):
    return _make(x, size=_with(x.shape, {dim: length}), skip=start * x.stride(dim))

def expand_view(x, sizes):
    return _make(x, sizes, _with(x.stride(), {d: 0 for d, n in enumerate(x.shape) if n == 1 and sizes[d] != 1}))

def diagonal_view(x):
    return _make(x, (min(x.size()),), (sum(x.stride()),))
""",
}

LIKE = "two dimensions exchanged, like `x.transpose(dim0, dim1)`"
NARROW = "`length` entries of one dimension, from `start` on"
EXPAND = "have the strides that torch would give it"
DIAGONAL = "the main diagonal of a matrix, square or not"
OWN = "Your input is often itself a view, with strides and an offset of its own"
CALL = "with that one call, no other operator, and no detour by NumPy"
COST = "The result must share its storage"


def _views(t=_T, n=_N, e=_E, d=_D):
    return t + n + e + d


VIEWS_RIGHT["transpose: no negative dims"] = _views(
    t="\ndef transpose_view(x, dim0, dim1):\n    order = [dim1 if d == dim0 else dim0 if d == dim1 else d for d in range(x.dim())]\n    return torch.as_strided(x, [x.size(d) for d in order], [x.stride(d) for d in order])\n"
)

VIEWS_RIGHT["narrow: negative dim drops out"] = _views(
    n="\ndef narrow_view(x, dim, start, length):\n    size = [length if d == dim else n for d, n in enumerate(x.shape)]\n    return torch.as_strided(x, size, x.stride(), x.storage_offset() + start * x.stride(dim))\n"
)

VIEWS_WRONG = {
    "transpose: sizes stay": (
        _views(t=_T.replace("    size[dim0], size[dim1] = size[dim1], size[dim0]\n", "")),
        LIKE,
    ),
    "transpose: strides stay": (
        _views(t=_T.replace("    stride[dim0], stride[dim1] = stride[dim1], stride[dim0]\n", "")),
        LIKE,
    ),
    "transpose: all dimensions turned round": (
        _views(
            t="\ndef transpose_view(x, dim0, dim1):\n    return torch.as_strided(x, x.shape[::-1], x.stride()[::-1])\n"
        ),
        LIKE,
    ),
    "transpose: offset zero": (_views(t=_T.replace("size, stride)", "size, stride, 0)")), OWN),
    "transpose: fresh strides": (
        _views(
            t="\ndef transpose_view(x, dim0, dim1):\n    stride = [1] * x.dim()\n    for d in range(x.dim() - 2, -1, -1):\n        stride[d] = stride[d + 1] * x.shape[d + 1]\n    size = list(x.shape)\n    size[dim0], size[dim1] = size[dim1], size[dim0]\n    stride[dim0], stride[dim1] = stride[dim1], stride[dim0]\n    return torch.as_strided(x, size, stride)\n"
        ),
        OWN,
    ),
    "transpose: lets torch": (
        _views(t="\ndef transpose_view(x, dim0, dim1):\n    return x.transpose(dim0, dim1)\n"),
        "A function that lets torch make the view earns nothing",
    ),
    "transpose: of a copy": (
        _views(t=_T.replace("torch.as_strided(x,", "torch.as_strided(x.contiguous(),")),
        COST,
    ),
    "transpose: in place": (
        _views(t=_T.replace("torch.as_strided(x, size, stride)", "x.as_strided_(size, stride)")),
        "hands you a second reading of the same bytes / that one call",
    ),
    "narrow: offset forgotten": (_views(n=_N.replace("x.storage_offset() + ", "")), OWN),
    "narrow: start is an element": (_views(n=_N.replace("start * x.stride(dim)", "start")), NARROW),
    "narrow: start times width": (
        _views(
            n=_N.replace("start * x.stride(dim)", "(start * x.shape[1] if dim == 0 else start)")
        ),
        OWN,
    ),
    "narrow: end, not length": (_views(n=_N.replace("= length", "= length - start")), NARROW),
    "narrow: keeps the offset": (_views(n=_N.replace(" + start * x.stride(dim)", "")), NARROW),
    "narrow: slices": (
        _views(
            n="\ndef narrow_view(x, dim, start, length):\n    return x[(slice(None),) * dim + (slice(start, start + length),)]\n"
        ),
        "A function that lets torch make the view earns nothing",
    ),
    "narrow: index_select": (
        _views(
            n="\ndef narrow_view(x, dim, start, length):\n    return torch.index_select(x, dim, torch.arange(start, start + length))\n"
        ),
        COST,
    ),
    "expand: every stride zero": (
        _views(
            e="\ndef expand_view(x, sizes):\n    return torch.as_strided(x, sizes, (0,) * x.dim())\n"
        ),
        "sizes of 1 stretched to `sizes`",
    ),
    "expand: every size of 1": (
        _views(
            e="\ndef expand_view(x, sizes):\n    return torch.as_strided(x, sizes, [0 if n == 1 else s for n, s in zip(x.shape, x.stride())])\n"
        ),
        EXPAND,
    ),
    "expand: stride 1": (_views(e=_E.replace("else 0", "else 1")), EXPAND),
    "expand: repeats": (
        _views(
            e="\ndef expand_view(x, sizes):\n    return x.repeat([m // n if n else 1 for n, m in zip(x.shape, sizes)])\n"
        ),
        COST,
    ),
    "expand: lets torch": (
        _views(e="\ndef expand_view(x, sizes):\n    return torch.broadcast_to(x, sizes)\n"),
        "A function that lets torch make the view earns nothing",
    ),
    "expand: offset zero": (_views(e=_E.replace("sizes, stride)", "sizes, stride, 0)")), OWN),
    "diagonal: rows": (_views(d=_D.replace("min(x.shape)", "x.shape[0]")), DIAGONAL),
    "diagonal: columns": (_views(d=_D.replace("min(x.shape)", "x.shape[1]")), DIAGONAL),
    "diagonal: width plus one": (
        _views(d=_D.replace("x.stride(0) + x.stride(1)", "x.shape[1] + 1")),
        OWN,
    ),
    "diagonal: row stride plus one": (_views(d=_D.replace("x.stride(1)", "1")), OWN),
    "diagonal: a copy": (
        _views(d="\ndef diagonal_view(x):\n    return torch.diag(x).clone()\n"),
        COST,
    ),
    "diagonal: lets torch": (
        _views(d="\ndef diagonal_view(x):\n    return torch.diagonal(x)\n"),
        "A function that lets torch make the view earns nothing",
    ),
    "diagonal: by NumPy": (
        _views(
            d="\ndef diagonal_view(x):\n    import numpy as np\n    a = x.numpy()\n    return torch.from_numpy(np.lib.stride_tricks.as_strided(a, (min(a.shape),), (sum(a.strides),)))\n"
        ),
        CALL,
    ),
    "diagonal: offset zero": (_views(d=_D.replace(",))", ",), 0)")), OWN),
    "diagonal: einsum": (
        _views(
            d="\ndef diagonal_view(x):\n    n = min(x.shape)\n    return torch.einsum('ii->i', x[:n, :n])\n"
        ),
        CALL,
    ),
    "diagonal: of as many as the bytes allow": (
        _views(
            d="\ndef diagonal_view(x):\n    step = x.stride(0) + x.stride(1)\n    return torch.as_strided(x, ((x.numel() + step - 1) // step,), (step,))\n"
        ),
        DIAGONAL,
    ),
}

# 5 -------------------------------------------------------------------------------------------------

_CHUNKS = """
def view_strides(shape, strides, new_shape):
    chunks = []
    for size, step in zip(shape, strides):
        if size == 1:
            continue
        if chunks and chunks[-1][1] == step * size:
            chunks[-1] = [chunks[-1][0] * size, step]
        else:
            chunks.append([size, step])
    result = []
    length, step = chunks.pop() if chunks else (1, 1)
    for size in reversed(new_shape):
        if size == 1:
            result.append(0)
            continue
        if length == 1:
            length, step = chunks.pop()
        if length % size:
            return None
        result.append(step)
        length //= size
        step *= size
    return tuple(reversed(result))
"""

VIEW_RIGHT = {
    "chunks": _CHUNKS,
    "every element's place": """
import itertools

def view_strides(shape, strides, new_shape):
    places = [sum(i * s for i, s in zip(index, strides)) for index in itertools.product(*map(range, shape))]
    steps, inner = [], len(places)
    for size in new_shape:
        inner //= size
        steps.append(places[inner] - places[0] if size > 1 else 0)
    wanted = [sum(i * s for i, s in zip(index, steps)) for index in itertools.product(*map(range, new_shape))]
    return tuple(steps) if wanted == places else None
""",
    "NumPy's way, pieces matched from the left": """
def view_strides(shape, strides, new_shape):
    old = [(n, s) for n, s in zip(shape, strides) if n != 1]
    new = [n for n in new_shape if n != 1]
    out = []
    i = j = 0
    while i < len(old):
        a, b = old[i][0], new[j]
        i2, j2 = i + 1, j + 1
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
        step = old[i2 - 1][1]
        piece = []
        for n in reversed(new[j:j2]):
            piece.insert(0, step)
            step *= n
        out += piece
        i, j = i2, j2
    out = iter(out)
    return tuple(1 if n == 1 else next(out) for n in new_shape)
""",
    "recursion from the right": """
def view_strides(shape, strides, new_shape):
    old = [(n, s) for n, s in zip(shape, strides) if n > 1]

    def go(old, new):
        if not new:
            return ()
        *rest, size = new
        if size == 1:
            head = go(old, rest)
            return None if head is None else head + (1,)
        n, s = old[-1]
        if n % size == 0:
            left = old[:-1] + ([(n // size, s * size)] if n > size else [])
            head = go(left, rest)
            return None if head is None else head + (s,)
        if len(old) > 1 and old[-2][1] == s * n:
            return go(old[:-2] + [(old[-2][0] * n, s)], new)
        return None

    return go(old, list(new_shape))
""",
    "torch's own loop": """
def view_strides(shape, strides, new_shape):
    result = [0] * len(new_shape)
    view_d = len(new_shape) - 1
    base = strides[-1]
    tensor_numel = view_numel = 1
    for d in range(len(shape) - 1, -1, -1):
        tensor_numel *= shape[d]
        outer = [k for k in range(d) if shape[k] != 1]
        inner = [k for k in range(d + 1) if shape[k] != 1]
        if not inner:
            break
        if shape[d] == 1:
            if d and tensor_numel == 1:
                base = strides[d - 1]
            continue
        if not outer or strides[outer[-1]] != tensor_numel * base:
            while view_d >= 0 and (view_numel < tensor_numel or new_shape[view_d] == 1):
                result[view_d] = view_numel * base
                view_numel *= new_shape[view_d]
                view_d -= 1
            if view_numel != tensor_numel:
                return None
            if outer:
                base = strides[outer[-1]]
                tensor_numel = view_numel = 1
    return tuple(result)
""",
    "chunk products, then cut": """
def view_strides(shape, strides, new_shape):
    dims = [(n, s) for n, s in zip(shape, strides) if n != 1]
    # for each number of elements from the right that ends a chunk: the step of the chunk that starts there
    starts, total = {}, 1
    for k in range(len(dims) - 1, -1, -1):
        n, s = dims[k]
        if k == len(dims) - 1 or s != dims[k + 1][0] * dims[k + 1][1]:
            starts[total] = s
        total *= n
    borders = sorted(starts) + [total]
    out, right = [], 1
    for size in new_shape[::-1]:
        if size == 1:
            out.append(1)
            continue
        border = max(b for b in starts if b <= right)
        after = min(b for b in borders if b > right)
        if right * size > after:
            return None
        out.append(starts[border] * (right // border))
        right *= size
    return tuple(out[::-1])
""",
}

VIEW_RIGHT["only inner ones dropped"] = _CHUNKS.replace(
    "    for size, step in zip(shape, strides):\n        if size == 1:\n            continue\n",
    "    for d, (size, step) in enumerate(zip(shape, strides)):\n        if size == 1 and 0 < d < len(shape) - 1:\n            continue\n",
)
VIEW_RIGHT["leading ones kept"] = _CHUNKS.replace(
    "        if size == 1:\n            continue\n        if chunks",
    "        if size == 1 and chunks:\n            continue\n        if chunks",
)
NO_STRIDES = "or `None` when no strides can do it and the elements would have to be copied"
ONES = "a dimension of size 1 in the input must never stand in the way, whatever its stride"
NEW_ONES = "The stride that you give to a dimension of size 1 does not matter"
ASK = "making a tensor or an array and asking it is not allowed"
_ROW = "    out, step = [], 1\n    for n in reversed(new_shape):\n        out.insert(0, step)\n        step *= n\n    return tuple(out)\n"

VIEW_WRONG = {
    "contiguous or nothing": (
        "def view_strides(shape, strides, new_shape):\n    want = 1\n    for n, s in zip(reversed(shape), reversed(strides)):\n        if n != 1 and s != want:\n            return None\n        want *= n\n"
        + _ROW,
        "returns the strides of the view (split of a transpose)",
    ),
    "always row-major": ("def view_strides(shape, strides, new_shape):\n" + _ROW, NO_STRIDES),
    "ones stand in the way": (
        _CHUNKS.replace(
            "        if size == 1:\n            continue\n        if chunks", "        if chunks"
        ),
        ONES,
    ),
    "a trailing one in the new shape": (
        _CHUNKS.replace(
            "        if size == 1:\n            result.append(0)\n            continue\n        if length == 1:\n            length, step = chunks.pop()",
            "        if length == 1:\n            length, step = chunks.pop()",
        ),
        NEW_ONES,
    ),
    "all ones": (
        _CHUNKS.replace("chunks.pop() if chunks else (1, 1)", "chunks.pop()"),
        "at least one element",
    ),
    "no remainder asked": (
        _CHUNKS.replace(
            "        if length % size:\n            return None\n",
            "        if length < size:\n            return None\n",
        ),
        NO_STRIDES,
    ),
    "overshoots into the next chunk": (
        _CHUNKS.replace(
            "        if length % size:\n            return None\n",
            "        while size > length and chunks:\n            n, step2 = chunks.pop()\n            length *= n\n        if length % size:\n            return None\n",
        ),
        NO_STRIDES,
    ),
    "merges with the wrong size": (
        _CHUNKS.replace("chunks[-1][1] == step * size", "chunks[-1][1] == step * chunks[-1][0]"),
        "strides[d] == strides[d + 1] * shape[d + 1]",
    ),
    "merges when the outer stride is larger": (
        _CHUNKS.replace("chunks[-1][1] == step * size", "chunks[-1][1] % (step * size or 1) == 0"),
        NO_STRIDES,
    ),
    "stride 0 never merges": (
        _CHUNKS.replace("if chunks and chunks[-1][1]", "if chunks and step and chunks[-1][1]"),
        "strides[d] == strides[d + 1] * shape[d + 1]",
    ),
    "stride 0 has to copy": (
        _CHUNKS.replace(
            "    chunks = []\n",
            "    if any(s == 0 and n > 1 for n, s in zip(shape, strides)):\n        return None\n    chunks = []\n",
            1,
        ),
        NO_STRIDES,
    ),
    "never merges": (
        _CHUNKS.replace("if chunks and chunks[-1][1] == step * size", "if False"),
        "returns the strides of the view",
    ),
    "same number of dimensions needed": (
        _CHUNKS.replace(
            "    chunks = []\n",
            "    if tuple(shape) == tuple(new_shape):\n        return tuple(strides)\n    chunks = []\n    if len(new_shape) < len(shape) and list(strides) != sorted(strides, reverse=True):\n        return None\n",
            1,
        ),
        NO_STRIDES,
    ),
    "sorted strides are fine": (
        "def view_strides(shape, strides, new_shape):\n    real = [s for n, s in zip(shape, strides) if n != 1]\n    if real != sorted(real, reverse=True):\n        if tuple(new_shape) == (2, 3, 4):\n            return (3, 1, 6)\n        return None\n"
        + _ROW,
        NO_STRIDES,
    ),
    "steps not scaled inside a chunk": (
        _CHUNKS.replace("        step *= size\n", ""),
        "Inside a chunk the elements are evenly spaced",
    ),
    "raises instead of None": (
        _CHUNKS.replace(
            "            return None\n", "            raise ValueError('needs a copy')\n"
        ),
        NO_STRIDES,
    ),
    "False instead of None": (
        _CHUNKS.replace("            return None\n", "            return False\n"),
        "or `None`",
    ),
    "empty tuple instead of None": (
        _CHUNKS.replace("            return None\n", "            return ()\n"),
        "or `None`",
    ),
    "asks torch": (
        "def view_strides(shape, strides, new_shape):\n    try:\n        return torch.empty_strided(shape, strides, device='meta').view(new_shape).stride()\n    except RuntimeError:\n        return None\n",
        ASK,
    ),
    "asks NumPy": (
        "import numpy as np\n\ndef view_strides(shape, strides, new_shape):\n    a = np.lib.stride_tricks.as_strided(np.zeros(1, dtype=np.int8), shape, strides)\n    b = a.view()\n    try:\n        b.shape = new_shape\n    except AttributeError:\n        return None\n    return b.strides\n",
        ASK,
    ),
    "probes only the first steps": (
        "def view_strides(shape, strides, new_shape):\n    def place(k):\n        p = 0\n        for n, s in zip(reversed(shape), reversed(strides)):\n            k, i = divmod(k, n)\n            p += i * s\n        return p\n    out, inner = [], math.prod(shape)\n    for n in new_shape:\n        inner //= n\n        out.append(place(inner) if n > 1 else 0)\n    last = sum((n - 1) * s for n, s in zip(new_shape, out))\n    return tuple(out) if last == place(math.prod(shape) - 1) else None\n",
        NO_STRIDES,
    ),
    "checks each new size alone": (
        "def view_strides(shape, strides, new_shape):\n    def place(k):\n        p = 0\n        for n, s in zip(reversed(shape), reversed(strides)):\n            k, i = divmod(k, n)\n            p += i * s\n        return p\n    out, inner = [], math.prod(shape)\n    for n in new_shape:\n        inner //= n\n        step = place(inner) if n > 1 else 0\n        if any(place(i * inner) != i * step for i in range(n)):\n            return None\n        out.append(step)\n    return tuple(out)\n",
        NO_STRIDES,
    ),
    "no view across a used-up chunk": (
        _CHUNKS.replace(
            "        if length == 1:\n            length, step = chunks.pop()\n",
            "        if length == 1 and chunks:\n            length, step = chunks.pop()\n        elif length == 1:\n            return None\n",
        ).replace(
            "        if size == 1:\n            result.append(0)\n            continue\n", ""
        ),
        NEW_ONES,
    ),
    "base of an expanded row": (
        _CHUNKS.replace(
            "if chunks and chunks[-1][1] == step * size",
            "if chunks and chunks[-1][1] == (step or 1) * size",
        ),
        "strides[d] == strides[d + 1] * shape[d + 1]",
    ),
}

# 6 -------------------------------------------------------------------------------------------------

_B = """
def broadcast(shape_a, strides_a, shape_b, strides_b):
    n = max(len(shape_a), len(shape_b))
    a, sa = (1,) * (n - len(shape_a)) + tuple(shape_a), (0,) * (n - len(shape_a)) + tuple(strides_a)
    b, sb = (1,) * (n - len(shape_b)) + tuple(shape_b), (0,) * (n - len(shape_b)) + tuple(strides_b)
    shape = []
    for x, y in zip(a, b):
        if x != y and x != 1 and y != 1:
            raise ValueError(f"{x} against {y}")
        shape.append(y if x == 1 else x)
    left = tuple(s if x == z else 0 for x, z, s in zip(a, shape, sa))
    right = tuple(s if x == z else 0 for x, z, s in zip(b, shape, sb))
    return tuple(shape), left, right
"""

BROADCAST_RIGHT = {
    "padded": _B,
    "from the right with zip_longest": """
from itertools import zip_longest

def broadcast(shape_a, strides_a, shape_b, strides_b):
    one = (1, 0)
    pairs = zip_longest(zip(shape_a[::-1], strides_a[::-1]), zip(shape_b[::-1], strides_b[::-1]), fillvalue=one)
    out = []
    for (x, s), (y, t) in pairs:
        if x == y:
            out.append((x, s, t))
        elif x == 1:
            out.append((y, 0, t))
        elif y == 1:
            out.append((x, s, 0))
        else:
            raise ValueError(f"sizes {x} and {y} do not broadcast")
    out.reverse()
    return tuple(o[0] for o in out), tuple(o[1] for o in out), tuple(o[2] for o in out)
""",
    "recursion": """
def broadcast(shape_a, strides_a, shape_b, strides_b):
    if not shape_a and not shape_b:
        return (), (), ()
    *rest_a, x = shape_a or (1,)
    *rest_b, y = shape_b or (1,)
    *steps_a, s = strides_a or (0,)
    *steps_b, t = strides_b or (0,)
    shape, left, right = broadcast(rest_a, steps_a, rest_b, steps_b)
    if x != y and 1 not in (x, y):
        raise ValueError("clash")
    z = x if y == 1 else y
    return shape + (z,), left + (s * (x == z),), right + (t * (y == z),)
""",
    "sets": """
def broadcast(shape_a, strides_a, shape_b, strides_b):
    def at(values, d, missing):
        return values[d] if -d <= len(values) else missing

    dims = range(-max(len(shape_a), len(shape_b)), 0)
    shape = []
    for d in dims:
        sizes = {at(shape_a, d, 1), at(shape_b, d, 1)} - {1}
        if len(sizes) > 1:
            raise ValueError(f"dimension {d}: {sizes}")
        shape.append(sizes.pop() if sizes else 1)

    def read(own, steps):
        return tuple(at(steps, d, 0) if at(own, d, 1) == z else 0 for d, z in zip(dims, shape))

    return tuple(shape), read(shape_a, strides_a), read(shape_b, strides_b)
""",
}

STRETCH = "A size of 1 is stretched to whatever the other is, 0 included"
CLASH = "sizes that differ where neither is 1 raise `ValueError`"
ALIGN = "Shapes are aligned at their last dimension"
RESULT = "the common shape, then the strides with which `a` and `b` are read in it"
BY_NUMBERS = (
    "`broadcast_shapes`, `expand` and their like are not allowed, nor is making a tensor to ask it"
)
KEEP = "a size of 1 is stretched by a step of 0"

BROADCAST_WRONG = {
    "the larger size": (_B.replace("y if x == 1 else x", "max(x, y)"), STRETCH),
    "the larger size, asked by comparison": (
        _B.replace("y if x == 1 else x", "max(x, y)").replace(
            "s if x == z else 0", "s if x >= z else 0"
        ),
        STRETCH,
    ),
    "zero fits everything": (
        _B.replace("x != y and x != 1 and y != 1", "x > 1 and y > 1 and x != y"),
        CLASH,
    ),
    "grown by comparison": (_B.replace("s if x == z else 0", "0 if x < z else s"), STRETCH),
    "aligned at the first": (
        _B.replace(
            "(1,) * (n - len(shape_a)) + tuple(shape_a)",
            "tuple(shape_a) + (1,) * (n - len(shape_a))",
        )
        .replace(
            "(0,) * (n - len(shape_a)) + tuple(strides_a)",
            "tuple(strides_a) + (0,) * (n - len(shape_a))",
        )
        .replace(
            "(1,) * (n - len(shape_b)) + tuple(shape_b)",
            "tuple(shape_b) + (1,) * (n - len(shape_b))",
        )
        .replace(
            "(0,) * (n - len(shape_b)) + tuple(strides_b)",
            "tuple(strides_b) + (0,) * (n - len(shape_b))",
        ),
        ALIGN,
    ),
    "strides padded at the end": (
        _B.replace(
            "(0,) * (n - len(shape_b)) + tuple(strides_b)",
            "tuple(strides_b) + (0,) * (n - len(shape_b))",
        ).replace(
            "(0,) * (n - len(shape_a)) + tuple(strides_a)",
            "tuple(strides_a) + (0,) * (n - len(shape_a))",
        ),
        RESULT,
    ),
    "no clash noticed": (
        _B.replace('            raise ValueError(f"{x} against {y}")\n', "            pass\n"),
        CLASH,
    ),
    "a RuntimeError": (_B.replace("ValueError", "RuntimeError"), CLASH),
    "an assertion": (
        _B.replace(
            '        if x != y and x != 1 and y != 1:\n            raise ValueError(f"{x} against {y}")\n',
            "        assert x == y or x == 1 or y == 1\n",
        ),
        CLASH,
    ),
    "None on a clash": (_B.replace('raise ValueError(f"{x} against {y}")', "return None"), CLASH),
    "strides kept": (_B.replace("s if x == z else 0", "s"), KEEP),
    "strides of b kept": (
        _B.replace(
            "    right = tuple(s if x == z else 0 for x, z, s in zip(b, shape, sb))",
            "    right = sb",
        ),
        KEEP,
    ),
    "a missing dimension gets stride 1": (
        _B.replace("(0,) * (n - len", "(1,) * (n - len").replace(
            "s if x == z else 0 for x, z, s in zip(b, shape, sb)",
            "s if x == z or k < n - len(shape_b) else 0 for k, (x, z, s) in enumerate(zip(b, shape, sb))",
        ),
        KEEP,
    ),
    "the longer one first": (
        "def broadcast(shape_a, strides_a, shape_b, strides_b):\n    if len(shape_a) < len(shape_b):\n        shape_a, strides_a, shape_b, strides_b = shape_b, strides_b, shape_a, strides_a\n"
        + _B.split("\n", 2)[2],
        RESULT,
    ),
    "only as many as the shorter": (
        _B.replace(
            "    n = max(len(shape_a), len(shape_b))\n",
            "    n = min(len(shape_a), len(shape_b))\n    extra = max(shape_a, shape_b, key=len)\n    n = len(extra) if n and len(extra) - n <= 1 else n\n",
        ),
        "a dimension that an operand does not have counts as size 1",
    ),
    "scalars refused": (
        _B.replace(
            "    n = max",
            "    if not shape_a or not shape_b:\n        raise ValueError('no dimensions')\n    n = max",
            1,
        ),
        "a dimension that an operand does not have counts as size 1",
    ),
    "row-major strides": (
        _B.replace(
            "    left =",
            "    def fresh(v):\n        out, step = [], 1\n        for k in reversed(v):\n            out.insert(0, step)\n            step *= k\n        return out\n    sa, sb = fresh(a), fresh(b)\n    left =",
        ),
        "A dimension that is not stretched keeps the stride that it had",
    ),
    "stride 0 for a size of 1 and for a new one only in b": (
        _B.replace(
            "    left = tuple(s if x == z else 0 for x, z, s in zip(a, shape, sa))",
            "    left = tuple(s if x == z or k < n - len(shape_a) else 0 for k, (x, z, s) in enumerate(zip(a, shape, sa)))",
        ).replace(
            "(0,) * (n - len(shape_a)) + tuple(strides_a)",
            "tuple(strides_a[:1]) * (n - len(shape_a)) + tuple(strides_a)",
        ),
        KEEP,
    ),
    "asks torch for the shape": (
        _B.replace(
            "    shape = []\n",
            "    try:\n        torch.broadcast_shapes(shape_a, shape_b)\n    except RuntimeError as e:\n        raise ValueError(str(e))\n    shape = []\n",
        ),
        BY_NUMBERS,
    ),
    "expands": (
        "def broadcast(shape_a, strides_a, shape_b, strides_b):\n    a, b = torch.empty_strided(shape_a, strides_a), torch.empty_strided(shape_b, strides_b)\n    try:\n        a, b = torch.broadcast_tensors(a, b)\n    except RuntimeError as e:\n        raise ValueError(str(e))\n    return tuple(a.shape), a.stride(), b.stride()\n",
        BY_NUMBERS,
    ),
    "NumPy's": (
        _B.replace(
            "    shape = []\n",
            "    import numpy as np\n    np.broadcast_shapes(shape_a, shape_b)\n    shape = []\n",
        ),
        BY_NUMBERS,
    ),
    "multiples are stretched": (
        _B.replace(
            "x != y and x != 1 and y != 1",
            "x != y and (not x or not y or max(x, y) % min(x, y)) and 1 not in (x, y)",
        ).replace("y if x == 1 else x", "max(x, y) if x and y else min(x, y)"),
        CLASH,
    ),
    "stride 0 means size 1": (
        _B.replace(
            "x != y and x != 1 and y != 1",
            "x != y and x != 1 and y != 1 and 0 not in strides_a + strides_b",
        ),
        CLASH,
    ),
    "clash in the last dimension alone": (
        _B.replace(
            "    for x, y in zip(a, b):\n", "    for k, (x, y) in enumerate(zip(a, b)):\n"
        ).replace("if x != y and", "if k == n - 1 and x != y and"),
        CLASH,
    ),
    "first operand's one only": (
        _B.replace(
            "if x != y and x != 1 and y != 1",
            "if x != y and y != 1 and (x != 1 or len(shape_a) > len(shape_b))",
        ),
        STRETCH,
    ),
}

# 7 -------------------------------------------------------------------------------------------------

_L = """
def mended_loss(prediction, target):
    for t in (prediction, target):
        if t.dim() not in (1, 2) or (t.dim() == 2 and t.shape[1] != 1):
            raise ValueError(f"expected (B,) or (B, 1), got {tuple(t.shape)}")
    p, y = prediction.reshape(-1), target.reshape(-1)
    if p.shape != y.shape:
        raise ValueError(f"{len(p)} predictions, {len(y)} targets")
    return ((p - y) ** 2).mean()
"""

LOSS_RIGHT = {
    "checks, then flattens": _L,
    "columns": """
def _column(t):
    if t.ndim == 1:
        return t[:, None]
    if t.ndim == 2 and t.size(1) == 1:
        return t
    raise ValueError("neither (B,) nor (B, 1)")

def mended_loss(prediction, target):
    p, y = _column(prediction), _column(target)
    if len(p) != len(y):
        raise ValueError("two batch sizes")
    return torch.nn.functional.mse_loss(p, y)
""",
    "one comparison of shapes": """
def mended_loss(prediction, target):
    batch = prediction.shape[0] if prediction.dim() else 0
    allowed = [torch.Size([batch]), torch.Size([batch, 1])]
    if prediction.shape not in allowed or target.shape not in allowed or prediction.dim() == 0:
        raise ValueError("shapes %s and %s" % (prediction.shape, target.shape))
    difference = prediction.view(batch) - target.view(batch)
    return difference.square().sum() / batch
""",
    "match": """
def vector(t):
    match tuple(t.shape):
        case (_,) | (_, 1):
            return t.flatten()
        case other:
            raise ValueError(f"no batch: {other}")

def mended_loss(prediction, target):
    p, y = vector(prediction), vector(target)
    if p.numel() != y.numel():
        raise ValueError("different batches")
    error = p - y
    return torch.mean(error * error)
""",
    "a loop over the batch": """
def mended_loss(prediction, target):
    def values(t):
        if t.dim() == 2 and t.shape[-1] == 1:
            t = t.squeeze(-1)
        if t.dim() != 1:
            raise ValueError("bad shape")
        return t.unbind(0)
    p, y = values(prediction), values(target)
    if len(p) != len(y):
        raise ValueError("bad batch")
    return torch.stack([(a - b) ** 2 for a, b in zip(p, y)]).mean()
""",
}

ELSE = "Anything else, two different batch sizes included, raises `ValueError`"
SCALAR = "as a 0-dim tensor of their dtype, through which gradients can flow"

_CHECK = _L.split("    for t in", 1)[1].split("    p, y", 1)[0]

LOSS_WRONG = {
    "the colleague's": (
        "def mended_loss(prediction, target):\n    if len(prediction) != len(target):\n        raise ValueError\n    return ((prediction - target) ** 2).mean()\n",
        "the mean squared error of B predictions and B targets",
    ),
    "flattens, asks nothing": (
        "def mended_loss(prediction, target):\n    p, y = prediction.flatten(), target.flatten()\n    try:\n        return ((p - y) ** 2).mean()\n    except RuntimeError as e:\n        raise ValueError(str(e))\n",
        ELSE,
    ),
    "flattens anything": (
        "def mended_loss(prediction, target):\n    p, y = prediction.flatten(), target.flatten()\n    if p.shape != y.shape:\n        raise ValueError('sizes')\n    return ((p - y) ** 2).mean()\n",
        ELSE,
    ),
    "a bare squeeze": (
        "def mended_loss(prediction, target):\n    p, y = prediction.squeeze(), target.squeeze()\n    if p.shape != y.shape:\n        raise ValueError('shapes')\n    return ((p - y) ** 2).mean()\n",
        ELSE,
    ),
    "a bare squeeze, one dimension left": (
        "def mended_loss(prediction, target):\n    p, y = prediction.squeeze(), target.squeeze()\n    if p.dim() != 1 or p.shape != y.shape:\n        raise ValueError('shapes')\n    return ((p - y) ** 2).mean()\n",
        "Either argument may come as (B,) or as (B, 1) (B = 1)",
    ),
    "squeeze(1) and compare": (
        "def mended_loss(prediction, target):\n    p = prediction.squeeze(1) if prediction.dim() == 2 else prediction\n    y = target.squeeze(1) if target.dim() == 2 else target\n    if p.shape != y.shape:\n        raise ValueError('shapes')\n    return ((p - y) ** 2).mean()\n",
        ELSE + " (two matrices of one shape)",
    ),
    "squeeze(-1) and compare": (
        "def mended_loss(prediction, target):\n    p, y = prediction.squeeze(-1), target.squeeze(-1)\n    if p.shape != y.shape:\n        raise ValueError('shapes')\n    return ((p - y) ** 2).mean()\n",
        ELSE,
    ),
    "first sizes compared": (
        "def mended_loss(prediction, target):\n    if prediction.shape[0] != target.shape[0]:\n        raise ValueError('batch')\n    if prediction.dim() > 2 or target.dim() > 2:\n        raise ValueError('dims')\n    return ((prediction.reshape(-1) - target.reshape(-1)) ** 2).mean()\n",
        ELSE,
    ),
    "only the prediction is looked at": (
        "def mended_loss(prediction, target):\n    if prediction.dim() == 2 and prediction.shape[1] != 1 or prediction.dim() not in (1, 2):\n        raise ValueError('shape')\n    p, y = prediction.reshape(-1), target.reshape(-1)\n    if len(p) != len(y):\n        raise ValueError('batch')\n    return ((p - y) ** 2).mean()\n",
        ELSE,
    ),
    "reshapes the target to the prediction": (
        "def mended_loss(prediction, target):\n    try:\n        return ((prediction - target.reshape(prediction.shape)) ** 2).mean()\n    except RuntimeError:\n        raise ValueError('sizes')\n",
        ELSE,
    ),
    "asserts": (
        _L.replace(
            '        if t.dim() not in (1, 2) or (t.dim() == 2 and t.shape[1] != 1):\n            raise ValueError(f"expected (B,) or (B, 1), got {tuple(t.shape)}")\n',
            "        assert t.dim() == 1 or t.dim() == 2 and t.shape[1] == 1\n",
        ),
        ELSE,
    ),
    "the sum": (_L.replace(".mean()", ".sum()"), "the mean squared error"),
    "the root": (
        _L.replace("((p - y) ** 2).mean()", "((p - y) ** 2).mean().sqrt()"),
        "the mean squared error",
    ),
    "absolute": (
        _L.replace("((p - y) ** 2).mean()", "(p - y).abs().mean()"),
        "the mean squared error",
    ),
    "a number": (_L.replace(".mean()", ".mean().item()"), SCALAR),
    "a fresh tensor": (
        _L.replace(
            "return ((p - y) ** 2).mean()",
            "return torch.tensor(((p - y) ** 2).mean().item(), dtype=p.dtype)",
        ),
        SCALAR,
    ),
    "always float32": (
        _L.replace(
            "p, y = prediction.reshape(-1), target.reshape(-1)",
            "p, y = prediction.float().reshape(-1), target.float().reshape(-1)",
        ),
        "of their dtype",
    ),
    "always float64": (
        _L.replace("(p - y) ** 2).mean()", "(p.double() - y.double()) ** 2).mean()"),
        "of their dtype",
    ),
    "one element, one dimension": (
        _L.replace(".mean()", ".mean().reshape(1)"),
        "as a 0-dim tensor",
    ),
    "in place": (
        _L.replace(
            "    return ((p - y) ** 2).mean()",
            "    with torch.no_grad():\n        p -= y\n    return (p ** 2).mean()",
        ),
        "(mutates its argument)",
    ),
    "squeezes the caller's tensor": (
        _L.replace(
            "    for t in",
            "    if prediction.dim() == 2 and prediction.shape[1] == 1:\n        prediction.squeeze_(1)\n    for t in",
            1,
        ),
        "(mutates its argument)",
    ),
    "no_grad": (
        _L.replace(
            "    return ((p - y) ** 2).mean()",
            "    with torch.no_grad():\n        return ((p - y) ** 2).mean()",
        ),
        SCALAR,
    ),
    "a leaf of its own": (
        "def mended_loss(prediction, target):\n    if prediction.shape[1:] not in ((), (1,)) or target.shape[1:] not in ((), (1,)) or not prediction.dim() or not target.dim() or len(prediction) != len(target):\n        raise ValueError\n    loss = ((prediction.reshape(-1) - target.reshape(-1)) ** 2).mean()\n    return loss.detach().requires_grad_()\n",
        "through which gradients flow back to the prediction",
    ),
    "detaches the prediction": (
        _L.replace("prediction.reshape(-1)", "prediction.detach().reshape(-1)"),
        SCALAR,
    ),
    "half the sum": (_L.replace("** 2).mean()", "** 2).mean() / 2"), "the mean squared error"),
    "unbiased": (
        _L.replace("((p - y) ** 2).mean()", "((p - y) ** 2).sum() / max(len(p) - 1, 1)"),
        "the mean squared error",
    ),
    "0-dim is a batch of one": (_L.replace("t.dim() not in (1, 2)", "t.dim() > 2"), ELSE),
    "a row is a batch": (
        _L.replace("(t.dim() == 2 and t.shape[1] != 1)", "(t.dim() == 2 and 1 not in t.shape)"),
        ELSE,
    ),
    "a third dimension of 1": (
        _L.replace(
            "t.dim() not in (1, 2) or (t.dim() == 2 and t.shape[1] != 1)",
            "t.dim() == 0 or t.numel() != t.shape[0]",
        ),
        ELSE,
    ),
    "a batch of one stretched": (
        _L.replace("if p.shape != y.shape:", "if len(p) != len(y) and 1 not in (len(p), len(y)):"),
        ELSE,
    ),
    "a TypeError": (_L.replace('raise ValueError(f"{len', 'raise TypeError(f"{len'), ELSE),
    "prints": (_L.replace('raise ValueError(f"expected', 'print(f"expected'), ELSE),
    "warns": (
        _L.replace(
            'raise ValueError(f"expected (B,) or (B, 1), got {tuple(t.shape)}")',
            "return torch.tensor(float('nan'))",
        ),
        ELSE,
    ),
}

# 9 -------------------------------------------------------------------------------------------------

_A = """
def attention_scores(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b t (h d) -> b h t d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k) / math.sqrt(q.shape[-1])
"""

ATTENTION_RIGHT = {
    "rearrange and einsum": _A,
    "view, transpose, matmul": """
import torch.nn.functional as F

def attention_scores(x, w_q, w_k, n_heads):
    batch, length, d_model = x.shape
    d_head = d_model // n_heads
    q = F.linear(x, w_q).view(batch, length, n_heads, d_head).transpose(1, 2)
    k = F.linear(x, w_k).view(batch, length, n_heads, d_head).transpose(1, 2)
    return q @ k.transpose(-2, -1) * d_head ** -0.5
""",
    "a loop over heads": """
def attention_scores(x, w_q, w_k, n_heads):
    width = x.shape[2] // n_heads
    heads = []
    for h in range(n_heads):
        mine = slice(h * width, (h + 1) * width)
        q = x @ w_q[mine].t()
        k = x @ w_k[mine].t()
        heads.append(torch.bmm(q, k.transpose(1, 2)) / width ** 0.5)
    return torch.stack(heads, dim=1)
""",
    "one einsum": """
def attention_scores(x, w_q, w_k, n_heads):
    wq, wk = (w.unflatten(0, (n_heads, -1)) for w in (w_q, w_k))
    return torch.einsum("bsm,hdm,hdn,btn->bhst", x, wq, wk, x) / math.sqrt(wq.size(1))
""",
    "number by number": """
def attention_scores(x, w_q, w_k, n_heads):
    B, S, D = x.shape
    d = D // n_heads
    q, k = x @ w_q.T, x @ w_k.T
    out = x.new_zeros(B, n_heads, S, S)
    for b in range(B):
        for h in range(n_heads):
            for s in range(S):
                for t in range(S):
                    out[b, h, s, t] = (q[b, s, h * d:h * d + d] * k[b, t, h * d:h * d + d]).sum()
    return out / d ** 0.5
""",
    "modules and chunks": """
from torch import nn

class Scores(nn.Module):
    def __init__(self, w_q, w_k, n_heads):
        super().__init__()
        self.w_q, self.w_k, self.n_heads = w_q, w_k, n_heads

    def forward(self, x):
        q = torch.stack((x @ self.w_q.mT).chunk(self.n_heads, dim=-1), dim=1)
        k = torch.stack((x @ self.w_k.mT).chunk(self.n_heads, dim=-1), dim=1)
        return torch.matmul(q / math.sqrt(q.size(-1)), k.mT)

def attention_scores(x, w_q, w_k, n_heads):
    return Scores(w_q, w_k, n_heads)(x)
""",
}

FORMULA = "the formula of the scores"
HEADS = "Head 0 owns the first `d_model // n_heads` channels of the queries and keys, head 1 the next ones"
OUT_IN = "The weights are stored as `nn.Linear` stores them, (out, in)"
NOTHING_ELSE = "No softmax, no mask: those come later"

ATTENTION_WRONG = {
    "no transpose of either": (_A.replace("w_q.T", "w_q").replace("w_k.T", "w_k"), OUT_IN),
    "no transpose of the keys' weight": (_A.replace("w_k.T", "w_k"), OUT_IN),
    "no transpose of the queries' weight": (_A.replace("w_q.T", "w_q"), OUT_IN),
    "root of the model's width": (_A.replace("q.shape[-1]", "x.shape[-1]"), FORMULA),
    "root of the number of heads": (_A.replace("q.shape[-1]", "n_heads"), FORMULA),
    "root of two": (_A.replace("q.shape[-1]", "2"), FORMULA),
    "root of the length less one": (_A.replace("q.shape[-1]", "x.shape[1] - 1"), FORMULA),
    "not the root": (_A.replace("math.sqrt(q.shape[-1])", "q.shape[-1]"), FORMULA),
    "not scaled": (_A.replace(" / math.sqrt(q.shape[-1])", ""), FORMULA),
    "whole root": (_A.replace("math.sqrt(q.shape[-1])", "math.isqrt(q.shape[-1])"), FORMULA),
    "scaled up": (_A.replace(") / math", ") * math"), FORMULA),
    "heads varying fastest": (_A.replace("(h d)", "(d h)"), HEADS),
    "keys' heads varying fastest": (_A.replace("b t (h d)", "b t (d h)"), HEADS),
    "a plain view": (
        _A.replace(
            'rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)',
            "(x @ w_q.T).reshape(x.shape[0], n_heads, x.shape[1], -1)",
        ).replace(
            'rearrange(x @ w_k.T, "b t (h d) -> b h t d", h=n_heads)',
            "(x @ w_k.T).reshape(x.shape[0], n_heads, x.shape[1], -1)",
        ),
        HEADS,
    ),
    "keys against queries": (
        _A.replace("->bhst", "->bhts"),
        "`s` comes from the queries and `t` from the keys",
    ),
    "weights exchanged": (
        _A.replace("w_q.T", "W").replace("w_k.T", "w_q.T").replace("W,", "w_k.T,"),
        FORMULA,
    ),
    "softmax": (
        _A.replace("return ", "return torch.softmax(").rstrip() + ", dim=-1)\n",
        NOTHING_ELSE,
    ),
    "causal": (
        _A.rstrip().replace("return ", "s = ")
        + "\n    return s.masked_fill(torch.ones_like(s).triu(1).bool(), float('-inf'))\n",
        NOTHING_ELSE,
    ),
    "heads reversed": (_A.rstrip() + ".flip(1)\n", HEADS),
    "keys with the queries' weight": (_A.replace("w_k.T", "w_q.T"), FORMULA),
    "no key projection": (_A.replace("x @ w_k.T", "x"), FORMULA),
    "first sentence for all": (_A.replace("x @ w_k.T", "x[:1].expand_as(x) @ w_k.T"), FORMULA),
    "two heads always": (
        _A.replace("h=n_heads", "h=2 if x.shape[-1] > 2 else 1"),
        "attention_scores(x, w_q, w_k, n_heads)",
    ),
    "in float32": (
        _A.replace(
            "    q = ", "    x, w_q, w_k = x.float(), w_q.float(), w_k.float()\n    q = ", 1
        ),
        "(dtype of the input)",
    ),
    "the heads last": (_A.replace("->bhst", "->bsth"), "shape (batch, n_heads, length, length)"),
    "symmetric": (
        _A.rstrip().replace("return ", "s = ") + "\n    return (s + s.transpose(-1, -2)) / 2\n",
        FORMULA,
    ),
    "scales x in place": (
        _A.replace("    q = ", "    x /= (x.shape[-1] // n_heads) ** 0.25\n    q = ", 1).replace(
            " / math.sqrt(q.shape[-1])", ""
        ),
        "(mutates its argument)",
    ),
    "heads mixed": (_A.replace('"bhsd,bhtd->bhst"', '"bhsd,bgtd->bhst"'), FORMULA),
    "absolute": (_A.rstrip().replace("return ", "return (").rstrip() + ").abs()\n", FORMULA),
}

# 10 ------------------------------------------------------------------------------------------------

_R = """
def _category(dtype):
    if dtype == torch.bool:
        return 0
    if dtype.is_complex:
        return 3
    if dtype.is_floating_point:
        return 2
    return 1

def _rank(v):
    if not isinstance(v, torch.Tensor):
        return 0
    return 2 if v.dim() > 0 else 1

def _dtype(v):
    return v.dtype if isinstance(v, torch.Tensor) else torch.tensor(v).dtype

def result_dtype(a, b):
    if _rank(a) < _rank(b):
        a, b = b, a
    high, low = _dtype(a), _dtype(b)
    if _rank(a) == _rank(b):
        return torch.promote_types(high, low)
    if _category(low) <= _category(high):
        return high
    if _category(high) == 2:
        return high.to_complex()
    return low
"""

DTYPE_RIGHT = {
    "ranks and categories": _R,
    "three accumulators": """
def result_dtype(a, b):
    dims, zero, numbers = [], [], []
    for v in (a, b):
        if isinstance(v, torch.Tensor):
            (dims if v.dim() else zero).append(v.dtype)
        elif isinstance(v, bool):
            numbers.append(torch.bool)
        elif isinstance(v, int):
            numbers.append(torch.int64)
        elif isinstance(v, float):
            numbers.append(torch.get_default_dtype())
        else:
            numbers.append(torch.get_default_dtype().to_complex())

    def kind(d):
        return 0 if d is torch.bool else 3 if d.is_complex else 2 if d.is_floating_point else 1

    result = None
    for group in (dims, zero, numbers):
        if not group:
            continue
        dtype = group[0]
        for other in group[1:]:
            dtype = torch.promote_types(dtype, other)
        if result is None:
            result = dtype
        elif kind(dtype) > kind(result):
            result = result.to_complex() if kind(result) == 2 else dtype
    return result
""",
    "a table of widths": """
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex32, torch.complex64, torch.complex64, torch.complex128]

def level(d):
    if d in COMPLEX:
        return "complex"
    if d in FLOATS:
        return "float"
    return "bool" if d == torch.bool else "int"

ORDER = ["bool", "int", "float", "complex"]

def describe(v):
    if torch.is_tensor(v):
        return v.ndim > 0, True, v.dtype
    kinds = {bool: torch.bool, int: torch.int64, float: torch.float32, complex: torch.complex64}
    return False, False, kinds[type(v)]

def result_dtype(a, b):
    (*rank_a, da), (*rank_b, db) = describe(a), describe(b)
    if rank_a == rank_b:
        return torch.promote_types(da, db)
    top, low = (da, db) if rank_a > rank_b else (db, da)
    if ORDER.index(level(low)) > ORDER.index(level(top)):
        if level(top) == "float":
            return COMPLEX[FLOATS.index(top)]
        return low
    return top
""",
}

RANK = "A lower rank has a say only when its category is higher than that of the rank above it"
NUMBER = "bool, int64, torch's *default* float (float32), and the complex of that"
WIDTH = "A float tensor that becomes complex keeps its width"
NO_SUM = "You may not add, or do other arithmetic, with them or with copies of them"
MADE = "nor make tensors for it (`torch.zeros`, `ones`, `empty`, `full` and the like)"
_SUM_OF = """
def result_dtype(a, b):
    a, b = ({} if isinstance(v, torch.Tensor) else v for v in (a, b))
    return (a + b).dtype
"""

DTYPE_WRONG = {
    "promotes whatever comes": (
        _R.replace("    if _rank(a) == _rank(b):\n        return", "    return"),
        RANK,
    ),
    "the first tensor wins": (
        _R.replace(
            "    if _category(low) <= _category(high):\n        return high\n    if _category(high) == 2:\n        return high.to_complex()\n    return low\n",
            "    return high\n",
        ),
        RANK,
    ),
    "0-dim tensors are tensors": (_R.replace("return 2 if v.dim() > 0 else 1", "return 2"), RANK),
    "0-dim tensors are numbers": (
        _R.replace("return 2 if v.dim() > 0 else 1", "return 2 if v.dim() > 0 else 0"),
        "then 0-dim tensors, then Python numbers",
    ),
    "numbers outrank 0-dim tensors": (
        _R.replace(
            "return 0\n    return 2 if v.dim() > 0 else 1",
            "return 1\n    return 2 if v.dim() > 0 else 0",
        ),
        "then 0-dim tensors, then Python numbers",
    ),
    "True is an int": (
        _R.replace(
            "torch.tensor(v).dtype",
            "{bool: torch.int64, int: torch.int64, float: torch.float32, complex: torch.complex64}[type(v)]",
        ),
        NUMBER,
    ),
    "floats are float64": (
        _R.replace(
            "torch.tensor(v).dtype",
            "{bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}[type(v)]",
        ),
        NUMBER,
    ),
    "ints are int32": (
        _R.replace(
            "torch.tensor(v).dtype",
            "{bool: torch.bool, int: torch.int32, float: torch.float32, complex: torch.complex64}[type(v)]",
        ),
        NUMBER,
    ),
    "complex takes the lower's width": (
        _R.replace("    if _category(high) == 2:\n        return high.to_complex()\n", ""),
        WIDTH,
    ),
    "complex is complex64": (
        _R.replace("        return high.to_complex()", "        return torch.complex64"),
        WIDTH,
    ),
    "complex is the wider of the two": (
        _R.replace(
            "        return high.to_complex()", "        return torch.promote_types(high, low)"
        ),
        WIDTH,
    ),
    "half does not become complex32": (
        _R.replace(
            "        return high.to_complex()",
            "        return torch.complex128 if high == torch.float64 else torch.complex64",
        ),
        WIDTH,
    ),
    "width kept from Python numbers only": (
        _R.replace(
            "    if _category(high) == 2:", "    if _category(high) == 2 and _rank(b) == 0:"
        ),
        WIDTH,
    ),
    "bool is an integer": (
        _R.replace(
            "        return 0\n    if dtype.is_complex", "        return 1\n    if dtype.is_complex"
        ),
        "Dtypes come in categories: bool, integers, floats, complex",
    ),
    "the tensor must come first": (
        _R.replace(
            "    if _rank(a) < _rank(b):\n        a, b = b, a\n",
            "    if not isinstance(a, torch.Tensor):\n        a, b = b, a\n",
        ),
        "`result_dtype(a, b)`: each of the two",
    ),
    "small integers are floats": (
        _R.replace(
            "    return 1\n\ndef _rank",
            "    return 1 if dtype in (torch.int32, torch.int64) else 0\n\ndef _rank",
        ),
        "Dtypes come in categories",
    ),
    "the wider wins": (
        "def result_dtype(a, b):\n    def d(v):\n        return v.dtype if isinstance(v, torch.Tensor) else torch.tensor(v).dtype\n    x, y = d(a), d(b)\n    if x.is_floating_point != y.is_floating_point:\n        return x if x.is_floating_point else y\n    if not isinstance(a, torch.Tensor) or a.dim() == 0:\n        return y\n    if not isinstance(b, torch.Tensor) or b.dim() == 0:\n        return x\n    return torch.promote_types(x, y)\n",
        "Dtypes come in categories: bool, integers, floats, complex",
    ),
    "float or not": (
        _R.replace("    if dtype.is_complex:\n        return 3\n", ""),
        "Dtypes come in categories: bool, integers, floats, complex",
    ),
    "complex counts as float": (
        _R.replace("        return 3\n", "        return 2\n"),
        "Dtypes come in categories",
    ),
    "lower rank of the same category promotes": (
        _R.replace(
            "    if _category(low) <= _category(high):\n        return high\n",
            "    if _category(low) < _category(high):\n        return high\n    if _category(low) == _category(high):\n        return torch.promote_types(low, high)\n",
        ),
        RANK,
    ),
    "a higher category promotes": (
        _R.replace(
            "    return low\n",
            "    return torch.promote_types(torch.float32, low) if low.is_floating_point else low\n",
        ),
        "the dtype rises to the lower operand's own",
    ),
    "adds": ("def result_dtype(a, b):\n    return (a + b).dtype\n", NO_SUM),
    "adds on the meta device": (
        "def result_dtype(a, b):\n    a, b = (v.to('meta') if isinstance(v, torch.Tensor) else v for v in (a, b))\n    return torch.add(a, b).dtype\n",
        NO_SUM,
    ),
    "asks torch": ("def result_dtype(a, b):\n    return torch.result_type(a, b)\n", NO_SUM),
    "asks with where": (
        "def result_dtype(a, b):\n    return torch.where(torch.tensor(True), a, b).dtype\n",
        NO_SUM,
    ),
    "multiplies": ("def result_dtype(a, b):\n    return (a * b).dtype\n", NO_SUM),
    "the names of the dtypes": (
        _R.replace(
            "torch.promote_types(high, low)",
            "max(high, low, key=lambda d: (_category(d), d.itemsize))",
        ),
        "Within one rank dtypes are promoted",
    ),
    "1-element tensors are 0-dim": (
        _R.replace("2 if v.dim() > 0 else 1", "2 if v.numel() > 1 else 1"),
        "a tensor with dimensions, a tensor with none",
    ),
    "empty tensors are 0-dim": (
        _R.replace("2 if v.dim() > 0 else 1", "2 if v.numel() else 1").replace(
            "2 if v.numel() else 1", "1 if v.dim() == 0 or v.numel() == 0 else 2"
        ),
        "a tensor with dimensions, a tensor with none",
    ),
    "strings": (_R.replace("    return low\n", "    return str(low)\n"), "the dtype of `a + b`"),
    "adds copies": (_SUM_OF.format("v.clone()"), NO_SUM),
    "adds new ones": (_SUM_OF.format("v.new_ones((1,) * v.dim())"), NO_SUM),
    "adds zeros of their dtypes": (
        _SUM_OF.format("torch.zeros((1,) * v.dim(), dtype=v.dtype)"),
        MADE,
    ),
    "a power": ("def result_dtype(a, b):\n    return (a ** b).dtype\n", NO_SUM),
    "the larger one": (
        "def result_dtype(a, b):\n    return torch.maximum(torch.as_tensor(a), torch.as_tensor(b)).dtype\n",
        NO_SUM,
    ),
}

# 11 ------------------------------------------------------------------------------------------------

_LC = """
def linear_cost(batch, d_in, d_out, itemsize):
    flops = 2 * batch * d_in * d_out
    numbers = batch * d_in + d_in * d_out + d_out + batch * d_out
    return {"flops": flops, "bytes": numbers * itemsize}
"""
_MG = """
def minigpt_flops(config, batch, length):
    d = config.d_model
    projections = 4 * 2 * length * d * d
    attention = 2 * 2 * length * length * d
    mlp = 2 * 2 * length * d * config.d_ff
    head = 2 * length * d * config.vocab_size
    return batch * (config.n_layers * (projections + attention + mlp) + head)
"""

COSTS_RIGHT = {
    "closed form": _LC + _MG,
    "a product helper, a loop over layers": """
def matmul(m, k, n):
    return 2 * m * k * n

def linear_cost(batch, d_in, d_out, itemsize):
    read = batch * d_in * itemsize + d_out * d_in * itemsize + d_out * itemsize
    written = batch * d_out * itemsize
    return dict(flops=matmul(batch, d_in, d_out), bytes=read + written)

def minigpt_flops(config, batch, length):
    total = 0
    tokens = batch * length
    d_head = config.d_model // config.n_heads
    for layer in range(config.n_layers):
        for projection in ("query", "key", "value", "output"):
            total += matmul(tokens, config.d_model, config.d_model)
        for sentence in range(batch):
            for head in range(config.n_heads):
                total += matmul(length, d_head, length)
                total += matmul(length, length, d_head)
        total += matmul(tokens, config.d_model, config.d_ff)
        total += matmul(tokens, config.d_ff, config.d_model)
    total += matmul(tokens, config.d_model, config.vocab_size)
    return total
""",
    "by way of linear_cost": """
def linear_cost(batch, d_in, d_out, itemsize):
    sizes = [(batch, d_in), (d_out, d_in), (d_out,), (batch, d_out)]
    return {"bytes": itemsize * sum(map(math.prod, sizes)), "flops": 2 * math.prod((batch, d_in, d_out))}

def minigpt_flops(config, batch, length):
    def linear(i, o):
        return linear_cost(batch * length, i, o, 1)["flops"]
    D = config.d_model
    block = 4 * linear(D, D) + linear(D, config.d_ff) + linear(config.d_ff, D) + 4 * batch * length**2 * D
    return linear(D, config.vocab_size) + sum([block] * config.n_layers)
""",
}

L_FLOPS = "FLOPs: those of the matrix product, where a multiplication and its addition are two; the bias is too small to count"
L_BYTES = "Bytes: the input, the weight and the bias are each read once, the output is written once"
BLOCK = "In each of `config.n_layers` blocks: four projections; the scores, and the sum of values; and an MLP"
FIELDS = "Read the sizes from `config`, for they vary"

COSTS_WRONG = {
    "linear: one FLOP for two": (_LC.replace("2 * batch", "batch") + _MG, L_FLOPS),
    "linear: bias counted": (
        _LC.replace("2 * batch * d_in * d_out", "2 * batch * d_in * d_out + batch * d_out") + _MG,
        L_FLOPS,
    ),
    "linear: no bias bytes": (_LC.replace(" + d_out + ", " + ") + _MG, L_BYTES),
    "linear: no output": (_LC.replace(" + batch * d_out", "") + _MG, L_BYTES),
    "linear: weight for each row": (
        _LC.replace("+ d_in * d_out", "+ batch * d_in * d_out") + _MG,
        L_BYTES,
    ),
    "linear: bias for each row": (_LC.replace(" + d_out + ", " + batch * d_out + ") + _MG, L_BYTES),
    "linear: four bytes": (
        _LC.replace("* itemsize", "* 4") + _MG,
        "each element `itemsize` bytes wide",
    ),
    "linear: elements": (
        _LC.replace(" * itemsize", "") + _MG,
        "each element `itemsize` bytes wide",
    ),
    "linear: bits": (_LC.replace("* itemsize", "* itemsize * 8") + _MG, "bytes"),
    "linear: a pair": (
        _LC.replace('{"flops": flops, "bytes": numbers * itemsize}', "(flops, numbers * itemsize)")
        + _MG,
        'returns `{"flops": …, "bytes": …}`',
    ),
    "linear: output read, too": (
        _LC.replace("batch * d_out\n", "2 * batch * d_out\n") + _MG,
        L_BYTES,
    ),
    "linear: 2k - 1": (
        _LC.replace("2 * batch * d_in * d_out", "batch * d_out * (2 * d_in - 1)") + _MG,
        L_FLOPS,
    ),
    "gpt: three projections": (
        _LC + _MG.replace("4 * 2 * length * d", "3 * 2 * length * d"),
        BLOCK,
    ),
    "gpt: scores alone": (
        _LC + _MG.replace("2 * 2 * length * length", "2 * length * length"),
        BLOCK,
    ),
    "gpt: causal half": (
        _LC
        + _MG.replace("2 * 2 * length * length * d", "2 * 2 * (length * (length + 1) // 2) * d"),
        "nothing is saved for the causal mask",
    ),
    "gpt: scores times heads": (
        _LC + _MG.replace("length * length * d", "length * length * d * config.n_heads"),
        "Together, the heads are as wide as the model",
    ),
    "gpt: one head's width": (
        _LC + _MG.replace("length * length * d", "length * length * (d // config.n_heads)"),
        "Together, the heads are as wide as the model",
    ),
    "gpt: d_ff is four times": (_LC + _MG.replace("config.d_ff", "4 * d"), FIELDS),
    "gpt: context for length": (
        _LC + _MG.replace("length * length", "length * config.context"),
        "over all `length` × `length` pairs",
    ),
    "gpt: 600 words": (_LC + _MG.replace("config.vocab_size", "600"), FIELDS),
    "gpt: width 64": (_LC + _MG.replace("d = config.d_model", "d = 64"), FIELDS),
    "gpt: two blocks": (_LC + _MG.replace("config.n_layers", "2"), FIELDS),
    "gpt: head in every block": (
        _LC
        + _MG.replace(
            "(projections + attention + mlp) + head", "(projections + attention + mlp + head)"
        ),
        "After the blocks, the LM head",
    ),
    "gpt: head for the last position": (
        _LC + _MG.replace("head = 2 * length", "head = 2"),
        "at every position",
    ),
    "gpt: no head": (_LC + _MG.replace(" + head)", ")"), "After the blocks, the LM head"),
    "gpt: embedding counted": (
        _LC + _MG.replace("+ head)", "+ 2 * head)"),
        "Looking up an embedding multiplies nothing",
    ),
    "gpt: pairs over the whole batch": (
        _LC
        + _MG.replace(
            "attention = 2 * 2 * length * length", "attention = 2 * 2 * batch * length * length"
        ),
        "for each sentence",
    ),
    "gpt: batch forgotten in attention": (
        _LC
        + _MG.replace(
            "attention = 2 * 2 * length * length * d",
            "attention = 2 * 2 * length * length * d // batch",
        ),
        BLOCK,
    ),
    "gpt: MLP once": (
        _LC + _MG.replace("mlp = 2 * 2", "mlp = 2"),
        "an MLP, d_model to d_ff and back",
    ),
    "gpt: a float": (_LC + _MG.replace("return batch", "return 1.0 * batch"), "int"),
    "gpt: biases": (
        _LC + _MG.replace("mlp = ", "mlp = length * (config.d_ff + 5 * d) + "),
        "counting matrix products alone",
    ),
    "gpt: softmax": (
        _LC + _MG.replace("attention = ", "attention = 5 * config.n_heads * length * length + "),
        "counting matrix products alone",
    ),
    "gpt: MLP width from the scores": (
        _LC + _MG.replace("2 * 2 * length * d * config.d_ff", "2 * 2 * length * config.d_ff * 64"),
        FIELDS,
    ),
}

RIGHT = {
    "bytes_of": BYTES_RIGHT,
    "row_major_strides": STRIDES_RIGHT,
    "byte_offset": OFFSET_RIGHT,
    "views_by_hand": VIEWS_RIGHT,
    "view_strides": VIEW_RIGHT,
    "broadcast": BROADCAST_RIGHT,
    "mended_loss": LOSS_RIGHT,
    "attention_scores": ATTENTION_RIGHT,
    "result_dtype": DTYPE_RIGHT,
    "model_costs": COSTS_RIGHT,
}
WRONG = {
    "bytes_of": BYTES_WRONG,
    "row_major_strides": STRIDES_WRONG,
    "byte_offset": OFFSET_WRONG,
    "views_by_hand": VIEWS_WRONG,
    "view_strides": VIEW_WRONG,
    "broadcast": BROADCAST_WRONG,
    "mended_loss": LOSS_WRONG,
    "attention_scores": ATTENTION_WRONG,
    "result_dtype": DTYPE_WRONG,
    "model_costs": COSTS_WRONG,
}

BANK = Bank("01")
for exercise, answers in RIGHT.items():
    for name, code in answers.items():
        BANK.right(exercise, name, code=code)
for exercise, answers in WRONG.items():
    for name, (code, breaks) in answers.items():
        BANK.wrong(exercise, name, code=code, breaks=breaks)
BANK.right(
    "view_strides",
    "any step where the size is 1",
    ("            result.append(1)\n", "            result.append(77)\n"),
)
BANK.right(
    "broadcast",
    "any step where the common size is 1",
    (
        "stride if size == common else 0 for",
        "77 if common == 1 else stride if size == common else 0 for",
    ),
)
BANK.fill(bank_01_second.RIGHT, bank_01_second.WRONG)
