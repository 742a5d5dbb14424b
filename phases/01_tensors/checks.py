"""What the hidden cells of lab 01 check.

Every reference leans on torch itself wherever torch already knows the answer; the lab's own
solutions, worked out by hand, are proven against them.
"""

import itertools
import math
from dataclasses import replace

import torch
from einops import rearrange

from utils.checks import ByHand, Case, Check, case
from utils.minigpt import MiniGPTConfig

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8)


# ------------------------------------------------------------------------------------- bytes_of
bytes_of = Check(
    "bytes_of",
    parts={"a tensor that fills its storage": 1, "views": 1},
    reads="A tensor is a storage and a view",
)


@bytes_of.reference
def _(t):
    return t.nbytes, t.untyped_storage().nbytes()


@bytes_of.cases
def _(draw):
    for dtype in draw.sample(DTYPES, 4) + [torch.float16]:
        yield case("a tensor that fills its storage", draw.tensor(draw.shape(2), dtype))
    wide = draw.tensor((draw.integer(4, 6), 9), torch.bfloat16)
    yield case("views", wide[1:3])
    yield case("views", wide[:, ::2])
    yield case("views", draw.tensor((draw.integer(3, 7), 1), torch.float64).expand(-1, 50))


@bytes_of.misconception(
    "elements for bytes", "the numbers are counts of elements; each takes several bytes.", earns=0
)
def _(t):
    return t.numel(), t.untyped_storage().nbytes() // t.element_size()


@bytes_of.misconception(
    "four bytes for every dtype", "each element was given 4 bytes, whatever its dtype.", earns=0
)
def _(t):
    return t.numel() * 4, t.untyped_storage().nbytes()


@bytes_of.misconception(
    "storage as large as the view",
    "the storage was given the size of the view; a slice keeps the whole of it alive.",
    earns=1,
)
def _(t):
    return t.numel() * t.element_size(), t.numel() * t.element_size()


@bytes_of.misconception(
    "view as large as the storage",
    "the view was given the size of its storage, of which it may reach a part, or one part often.",
    earns=1,
)
def _(t):
    return t.untyped_storage().nbytes(), t.untyped_storage().nbytes()


@bytes_of.alternate("product of the sizes")
def _(t):
    count = 1
    for size in t.shape:
        count *= size
    return count * t.dtype.itemsize, len(t.untyped_storage())


# ---------------------------------------------------------------------------- row_major_strides
row_major_strides = Check(
    "row_major_strides",
    parts={"ordinary shapes": 2, "sizes of 0 and 1": 1},
    reads="Strides: how far is one step",
    by_hand=ByHand(
        "the exercise is to find the strides, not to ask a tensor for them",
        forbid_names=frozenset({"stride", "strides", "empty", "zeros", "ones", "empty_strided"}),
    ),
)


@row_major_strides.reference
def _(shape):
    return torch.empty(shape, device="meta").stride()


@row_major_strides.cases
def _(draw):
    for rank in (2, 3, 4, 5, 1):
        yield case("ordinary shapes", draw.shape(rank))
    a, b, c = draw.shape(3)
    for shape in ((a, 0, c), (a, 1, c), (0, a, b), (a, b, 0, c)):
        yield case("sizes of 0 and 1", shape)


@row_major_strides.misconception(
    "column-major", "the first dimension got stride 1: that is Fortran's order, not C's.", earns=0
)
def _(shape):
    strides, step = [], 1
    for size in shape:
        strides.append(step)
        step *= max(size, 1)
    return tuple(strides)


@row_major_strides.misconception(
    "strides in bytes",
    "the steps are in bytes of a float32. NumPy counts so; torch counts elements.",
    earns=0,
)
def _(shape):
    strides, step = [], 4
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)


@row_major_strides.misconception(
    "own size included",
    "each stride holds its own dimension's size too, so that the last one is not 1.",
    earns=0,
)
def _(shape):
    strides, step = [], 1
    for size in reversed(shape):
        step *= max(size, 1)
        strides.insert(0, step)
    return tuple(strides)


@row_major_strides.misconception(
    "multiplied by a size of 0",
    "a dimension of size 0 turned all the strides before it into 0.",
    earns=2,
)
def _(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


@row_major_strides.alternate("a product for each dimension")
def _(shape):
    sizes = [max(size, 1) for size in shape]
    return tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))


@row_major_strides.alternate("a helper that is called stride")
def _(shape):
    def stride(dim):
        return math.prod(max(size, 1) for size in shape[dim + 1 :])

    return tuple(stride(dim) for dim in range(len(shape)))


@row_major_strides.alternate("a list instead of a tuple")
def _(shape):
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * (shape[i + 1] or 1)
    return strides


# ---------------------------------------------------------------------------------- byte_offset
byte_offset = Check(
    "byte_offset",
    parts={"contiguous tensors": 1, "views with an offset": 1, "negative indices": 1},
    reads="The address of one element",
    by_hand=ByHand(
        "the exercise is to compute the place from the strides, not to let indexing find it",
        allow_ops=frozenset(),
        forbid_names=frozenset({"data_ptr"}),
    ),
)


@byte_offset.reference
def _(t, index):
    return t[index].storage_offset() * t.element_size()


@byte_offset.cases
def _(draw):
    def index_into(t):
        return tuple(draw.integer(1, size - 1) for size in t.shape)

    for rank in (1, 2, 3):
        t = draw.tensor(draw.shape(rank, low=3), draw.choice(DTYPES[:5]))
        yield case("contiguous tensors", t, index_into(t))
    for dtype in draw.sample(DTYPES[:5], 3):
        t = draw.tensor(draw.shape(3, low=4, high=8), dtype)[1:].permute(2, 0, 1)
        yield case("views with an offset", t, index_into(t))
        t = draw.tensor((3, draw.integer(4, 6)), dtype, layout="sliced")
        yield case("views with an offset", t, index_into(t))
    for rank in (1, 3):
        t = draw.tensor(draw.shape(rank, low=3), draw.choice(DTYPES[:5]))
        inside = index_into(t)
        yield case("negative indices", t, tuple(-i for i in inside))
        yield case("negative indices", t, (*inside[:-1], -1))


@byte_offset.misconception(
    "elements for bytes", "the distance is in elements; memory is addressed in bytes.", earns=0
)
def _(t, index):
    place = t.storage_offset()
    for i, size, stride in zip(index, t.shape, t.stride()):
        place += (i % size) * stride
    return place


@byte_offset.misconception(
    "offset forgotten",
    "the count starts at the view's first element; a view may begin further along its storage.",
    earns=2,
)
def _(t, index):
    place = 0
    for i, size, stride in zip(index, t.shape, t.stride()):
        place += (i % size) * stride
    return place * t.element_size()


@byte_offset.misconception(
    "offset taken for bytes",
    "the storage offset was added as it is; it counts elements, as the strides do.",
    earns=2,
)
def _(t, index):
    place = 0
    for i, size, stride in zip(index, t.shape, t.stride()):
        place += (i % size) * stride
    return place * t.element_size() + t.storage_offset()


@byte_offset.misconception(
    "row-major whatever the view",
    "the steps come from the shape, as if every tensor were contiguous; a view has its own.",
    earns=2,
)
def _(t, index):
    place = 0
    for i, size in zip(index, t.shape):
        place = place * size + (i % size)
    return (t.storage_offset() + place) * t.element_size()


@byte_offset.misconception(
    "negative index not wrapped",
    "a negative index walks backwards out of the dimension; Python counts it from the end.",
    earns=2,
)
def _(t, index):
    place = t.storage_offset()
    for i, stride in zip(index, t.stride()):
        place += i * stride
    return place * t.element_size()


@byte_offset.alternate("one dimension at a time")
def _(t, index):
    place = t.storage_offset() * t.element_size()
    for dim in range(t.dim()):
        i = index[dim]
        if i < 0:
            i += t.size(dim)
        place += i * t.stride(dim) * t.element_size()
    return place


@byte_offset.alternate("a dot product of tensors of one's own")
def _(t, index):
    steps, sizes = torch.tensor(t.stride()), torch.tensor(t.shape)
    wrapped = torch.tensor(index)
    wrapped[wrapped < 0] += sizes[wrapped < 0]
    return int(wrapped @ steps + t.storage_offset()) * t.element_size()


# -------------------------------------------------------------------------------- views_by_hand
views_by_hand = Check(
    "views_by_hand",
    parts={"transpose": 1, "narrow": 1, "expand": 1, "diagonal": 1},
    reads="Making a view by hand: as_strided",
    strides=True,
    sharing=True,
    by_hand=ByHand(
        "write sizes, strides and offset yourself, and make one call of `torch.as_strided`",
        allow_ops=frozenset({"aten.as_strided"}),
    ),
)


@views_by_hand.reference
class _:
    def transpose_view(x, dim0, dim1):
        sizes, strides = list(x.shape), list(x.stride())
        sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
        strides[dim0], strides[dim1] = strides[dim1], strides[dim0]
        return torch.as_strided(x, sizes, strides)

    def narrow_view(x, dim, start, length):
        sizes = list(x.shape)
        sizes[dim] = length
        offset = x.storage_offset() + start * x.stride(dim)
        return torch.as_strided(x, sizes, x.stride(), offset)

    def expand_view(x, sizes):
        strides = [
            stride if size == wanted else 0
            for size, stride, wanted in zip(x.shape, x.stride(), sizes)
        ]
        return torch.as_strided(x, sizes, strides)

    def diagonal_view(x):
        return torch.as_strided(x, (min(x.shape),), (sum(x.stride()),))


@views_by_hand.cases
def _(draw):
    def inputs(rank):
        yield draw.tensor(draw.shape(rank, low=3))
        yield draw.tensor(draw.shape(rank, low=3), torch.float64, layout="transposed")
        yield draw.tensor(draw.shape(rank, low=3), torch.int64, layout="sliced")

    for x in inputs(3):
        dim0, dim1 = draw.sample(range(3), 2)
        yield case("transpose", x, dim0, dim1, of="transpose_view")
        dim = draw.integer(0, 1)
        start = draw.integer(1, x.size(dim) - 2)
        yield case("narrow", x, dim, start, x.size(dim) - start, of="narrow_view")
    for x in inputs(2):
        dim = draw.integer(0, 1)
        column = x.narrow(dim, 1, 1)
        sizes = list(column.shape)
        sizes[dim] = draw.integer(8, 12)
        yield case("expand", column, tuple(sizes), of="expand_view")
    for x in inputs(2):
        yield case("diagonal", x, of="diagonal_view")
        yield case("diagonal", draw.tensor((8, draw.integer(3, 5))), of="diagonal_view")


@views_by_hand.misconception(
    "sizes exchanged, strides not",
    "the shape is right, but each dimension still walks with the other one's step.",
    earns=3,
)
class _:
    def transpose_view(x, dim0, dim1):
        sizes = list(x.shape)
        sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
        return torch.as_strided(x, sizes, x.stride())


@views_by_hand.misconception(
    "start counted in elements",
    "the view begins `start` elements further along, whatever the stride of the dimension.",
    earns=3,
)
class _:
    def narrow_view(x, dim, start, length):
        sizes = list(x.shape)
        sizes[dim] = length
        return torch.as_strided(x, sizes, x.stride(), x.storage_offset() + start)


@views_by_hand.misconception(
    "offset of the input lost",
    "the new offset counts from the start of the storage; the input may begin further along.",
    earns=3,
)
class _:
    def narrow_view(x, dim, start, length):
        sizes = list(x.shape)
        sizes[dim] = length
        return torch.as_strided(x, sizes, x.stride(), start * x.stride(dim))


@views_by_hand.misconception(
    "strides of a contiguous tensor",
    "the strides were worked out from the shape; the input has strides of its own.",
    earns=2,
)
class _:
    def expand_view(x, sizes):
        rows, columns = x.shape
        strides = (0 if rows != sizes[0] else columns, 0 if columns != sizes[1] else 1)
        return torch.as_strided(x, sizes, strides)

    def diagonal_view(x):
        return torch.as_strided(x, (min(x.shape),), (x.shape[1] + 1,))


@views_by_hand.misconception(
    "as long as there are rows",
    "the diagonal was given one element for each row, though a column ends it sooner.",
    earns=3,
)
class _:
    def diagonal_view(x):
        return torch.as_strided(x, (x.shape[0],), (sum(x.stride()),))


@views_by_hand.misconception(
    "a copy in place of a view",
    "the result owns its bytes: writing into it would not reach the input.",
    earns=0,
)
class _:
    def transpose_view(x, dim0, dim1):
        return x.transpose(dim0, dim1).contiguous()

    def narrow_view(x, dim, start, length):
        return x.narrow(dim, start, length).clone()

    def expand_view(x, sizes):
        return x.repeat([wanted // size for size, wanted in zip(x.shape, sizes)])

    def diagonal_view(x):
        return torch.stack([x[i, i] for i in range(min(x.shape))])


@views_by_hand.alternate("permuted lists and the method")
class _:
    def transpose_view(x, dim0, dim1):
        order = list(range(x.dim()))
        order[dim0], order[dim1] = dim1, dim0
        return x.as_strided([x.size(d) for d in order], [x.stride(d) for d in order])

    def narrow_view(x, dim, start, length):
        sizes = x.shape[:dim] + (length,) + x.shape[dim + 1 :]
        return x.as_strided(sizes, x.stride(), x.storage_offset() + start * x.stride()[dim])

    def expand_view(x, sizes):
        strides = list(x.stride())
        for dim in range(x.dim()):
            if x.size(dim) != sizes[dim]:
                strides[dim] = 0
        return x.as_strided(sizes, strides, x.storage_offset())

    def diagonal_view(x):
        rows, columns = x.shape
        step = x.stride(0) + x.stride(1)
        return x.as_strided([rows if rows < columns else columns], [step], x.storage_offset())


# --------------------------------------------------------------------------------- view_strides
view_strides = Check(
    "view_strides",
    parts={
        "contiguous": 1,
        "views that do not exist": 1,
        "partly contiguous": 2,
        "sizes of 1": 1,
    },
    reads="When view works and when reshape copies",
    by_hand=ByHand(
        "the exercise is to decide it from the numbers; torch would decide it for you",
        forbid_names=frozenset(
            {"view", "reshape", "view_as", "unflatten", "empty_strided", "as_strided", "empty"}
        ),
    ),
)


def _ignore_size_one(strides, shape):
    """A dimension of size 1 is never stepped along: any stride is right there."""
    if not isinstance(strides, (tuple, list)) or len(strides) != len(shape):
        return strides
    return tuple(0 if size == 1 else s for s, size in zip(strides, shape, strict=True))


def _view_case(part, shape, strides, new_shape):
    def play(subject):
        return _ignore_size_one(subject(shape, strides, new_shape), new_shape)

    return Case(part, play)


@view_strides.reference
def _(shape, strides, new_shape):
    try:
        return torch.empty_strided(shape, strides, device="meta").view(new_shape).stride()
    except RuntimeError:
        return None


@view_strides.cases
def _(draw):
    a, b, c = draw.sample((3, 4, 5, 6), 3)
    plain = (b * c, c, 1)
    for new_shape in ((a * b * c,), (a * b, c), (a, b * c), (c, a * b), (b, a, c)):
        yield _view_case("contiguous", (a, b, c), plain, new_shape)
    yield _view_case("views that do not exist", (b, a), (1, b), (a * b,))
    yield _view_case("views that do not exist", (a, b), (2 * b, 1), (a * b,))
    yield _view_case("views that do not exist", (a, c, b), (b * c, 1, c), (a, b * c))
    yield _view_case("views that do not exist", (a, 2 * b), (4 * b, 1), (2, a, b))
    # dims 1 and 2 are one chunk, dim 0 is another
    gap = (2 * b * c, c, 1)
    for new_shape in ((a, b * c), (a, c, b), (a, b, c, 1)):
        yield _view_case("partly contiguous", (a, b, c), gap, new_shape)
    # a transposed matrix of pairs: each half may be merged or split, never joined with the other
    yield _view_case("partly contiguous", (b, 4, a), (1, a * b, b), (b, 2, 2, a))
    yield _view_case("partly contiguous", (c, a, b), (1, b * c, c), (c, a * b))
    yield _view_case("partly contiguous", (a, b), (3 * b, 3), (a * b,))
    yield _view_case("partly contiguous", (a, b), (0, 1), (a, b, 1))
    yield _view_case("sizes of 1", (a, 1, c), (c, 99, 1), (a * c,))
    yield _view_case("sizes of 1", (1, a, 1, b), (7, b, 5, 1), (b, a))
    yield _view_case("sizes of 1", (a, 1, b), (2 * b, 2 * b, 1), (a, b, 1))


@view_strides.misconception(
    "anything can be viewed",
    "the strides are those of a fresh contiguous tensor, whatever the input's were.",
    earns=1,
)
def _(shape, strides, new_shape):
    answer, step = [], 1
    for size in reversed(new_shape):
        answer.insert(0, step)
        step *= size
    return tuple(answer)


@view_strides.misconception(
    "only contiguous tensors can be viewed",
    "every view of a non-contiguous tensor was refused; it is enough that each chunk is kept "
    "or cut up within itself.",
    earns=2,
)
def _(shape, strides, new_shape):
    def contiguous_strides(sizes):
        answer, step = [], 1
        for size in reversed(sizes):
            answer.insert(0, step)
            step *= size
        return tuple(answer)

    if tuple(strides) != contiguous_strides(shape):
        return None
    return contiguous_strides(new_shape)


@view_strides.misconception(
    "a size of 1 breaks the chunk",
    "the stride of a dimension of size 1 was held against it, though no step is ever taken there.",
    earns=4,
)
def _(shape, strides, new_shape):
    answer, view_dim = [0] * len(new_shape), len(new_shape) - 1
    base, have, want = strides[-1], 1, 1
    for dim in range(len(shape) - 1, -1, -1):
        have *= shape[dim]
        if dim == 0 or strides[dim - 1] != have * base:
            while view_dim >= 0 and (want < have or new_shape[view_dim] == 1):
                answer[view_dim] = want * base
                want *= new_shape[view_dim]
                view_dim -= 1
            if want != have:
                return None
            if dim > 0:
                base, have, want = strides[dim - 1], 1, 1
    return tuple(answer)


@view_strides.misconception(
    "every chunk has step 1",
    "inside each chunk the last stride was taken to be 1; a chunk has a step of its own.",
    earns=2,
)
def _(shape, strides, new_shape):
    answer, view_dim = [0] * len(new_shape), len(new_shape) - 1
    base, have, want = strides[-1], 1, 1
    for dim in range(len(shape) - 1, -1, -1):
        have *= shape[dim]
        if dim == 0 or (shape[dim - 1] != 1 and strides[dim - 1] != have * base):
            while view_dim >= 0 and (want < have or new_shape[view_dim] == 1):
                answer[view_dim] = want
                want *= new_shape[view_dim]
                view_dim -= 1
            if want != have:
                return None
            if dim > 0:
                base, have, want = strides[dim - 1], 1, 1
    return tuple(answer)


@view_strides.alternate("lay out every offset and look")
def _(shape, strides, new_shape):
    offsets = [0]
    for size, stride in zip(shape, strides):
        offsets = [o + i * stride for o in offsets for i in range(size)]
    answer, inner = [], 1
    for size in reversed(new_shape):
        answer.insert(0, offsets[inner] - offsets[0] if size > 1 else 0)
        inner *= size
    rebuilt = [0]
    for size, stride in zip(new_shape, answer):
        rebuilt = [o + i * stride for o in rebuilt for i in range(size)]
    return tuple(answer) if rebuilt == offsets else None


@view_strides.alternate("merge into chunks, then split the chunks")
def _(shape, strides, new_shape):
    chunks = []
    for size, stride in zip(shape, strides):
        if size == 1:
            continue
        if chunks and chunks[-1][1] == size * stride:
            chunks[-1] = [chunks[-1][0] * size, stride]
        else:
            chunks.append([size, stride])
    answer = []
    for size in reversed(new_shape):
        if size == 1:
            answer.insert(0, 0)
            continue
        length, step = chunks[-1]
        if length % size:
            return None
        answer.insert(0, step)
        chunks[-1] = [length // size, step * size]
        if chunks[-1][0] == 1:
            chunks.pop()
    return tuple(answer)


# ------------------------------------------------------------------------------------ broadcast
broadcast = Check(
    "broadcast",
    parts={"equal ranks": 1, "different ranks": 1, "sizes of 0": 1, "clashes": 1},
    reads="Broadcasting: a view with stride 0",
    by_hand=ByHand(
        "the exercise is to find shape and strides from the numbers; torch would find them for you",
        forbid_names=frozenset(
            {"broadcast_shapes", "broadcast_tensors", "broadcast_to", "expand", "expand_as"}
            | {"empty", "zeros", "ones", "empty_strided", "new_empty_strided", "as_strided"}
        ),
    ),
)


def _broadcast_case(part, a, b):
    def play(subject):
        came = subject(*a, *b)
        if not isinstance(came, (tuple, list)) or len(came) != 3:
            return came
        shape, strides_a, strides_b = came
        if not isinstance(shape, (tuple, list)):
            return came
        return (
            shape,
            _ignore_size_one(strides_a, shape),
            _ignore_size_one(strides_b, shape),
        )

    return Case(part, play)


@broadcast.reference
def _(shape_a, strides_a, shape_b, strides_b):
    a = torch.empty_strided(shape_a, strides_a, device="meta")
    b = torch.empty_strided(shape_b, strides_b, device="meta")
    try:
        a, b = torch.broadcast_tensors(a, b)
    except RuntimeError as error:
        raise ValueError("the shapes do not fit") from error
    return tuple(a.shape), a.stride(), b.stride()


@broadcast.cases
def _(draw):
    def operand(*shape, transposed=False):
        t = torch.empty(tuple(reversed(shape)) if transposed else shape, device="meta")
        t = t.permute(*reversed(range(len(shape)))) if transposed else t
        return tuple(t.shape), t.stride()

    for transposed in (False, True):
        a, b, c = draw.shape(3)
        yield _broadcast_case("equal ranks", operand(a, 1), operand(1, b, transposed=transposed))
        yield _broadcast_case(
            "equal ranks", operand(a, b, c, transposed=transposed), operand(a, 1, c)
        )
        yield _broadcast_case("equal ranks", operand(1, b, 1), operand(a, b, c))
        yield _broadcast_case("different ranks", operand(a, b, c), operand(c))
        yield _broadcast_case("different ranks", operand(b, 1), operand(a, 1, c))
        yield _broadcast_case("different ranks", operand(a, a, transposed=transposed), operand(a))
    a, b, c = draw.shape(3)
    for one, other in (((a, b), (a, b + 1)), ((a, b), (a,)), ((2 * a, b), (a, 1)), ((a,), (a, c))):
        if one[-1] != other[-1] or one[0] == 2 * a:
            yield _broadcast_case("clashes", operand(*one), operand(*other))
    yield _broadcast_case("clashes", operand(0, b), operand(a, b))
    yield _broadcast_case("sizes of 0", operand(a, 1), operand(0))
    yield _broadcast_case("sizes of 0", operand(0, b), operand(1, b))


@broadcast.misconception(
    "aligned on the left",
    "the first sizes were compared with the first; shapes are aligned at their last dimension.",
    earns=1,
)
def _(shape_a, strides_a, shape_b, strides_b):
    shape, out_a, out_b = [], [], []
    for dim in range(max(len(shape_a), len(shape_b))):
        size_a = shape_a[dim] if dim < len(shape_a) else 1
        size_b = shape_b[dim] if dim < len(shape_b) else 1
        if size_a != size_b and 1 not in (size_a, size_b):
            raise ValueError("the shapes do not fit")
        size = size_b if size_a == 1 else size_a
        shape.append(size)
        out_a.append(strides_a[dim] if size_a == size and dim < len(shape_a) else 0)
        out_b.append(strides_b[dim] if size_b == size and dim < len(shape_b) else 0)
    return tuple(shape), tuple(out_a), tuple(out_b)


@broadcast.misconception(
    "the larger size wins",
    "sizes that differ were resolved to the larger one; only a size of 1 may be stretched.",
    earns=2,
)
def _(shape_a, strides_a, shape_b, strides_b):
    rank = max(len(shape_a), len(shape_b))
    shape_a = (1,) * (rank - len(shape_a)) + tuple(shape_a)
    shape_b = (1,) * (rank - len(shape_b)) + tuple(shape_b)
    strides_a = (0,) * (rank - len(strides_a)) + tuple(strides_a)
    strides_b = (0,) * (rank - len(strides_b)) + tuple(strides_b)
    shape = tuple(max(a, b) for a, b in zip(shape_a, shape_b))
    out_a = tuple(s if n == size else 0 for s, n, size in zip(strides_a, shape_a, shape))
    out_b = tuple(s if n == size else 0 for s, n, size in zip(strides_b, shape_b, shape))
    return shape, out_a, out_b


@broadcast.misconception(
    "a 1 that will not shrink",
    "where 1 meets 0 the larger of the two was taken; a size of 1 becomes whatever the other is.",
    earns=3,
)
def _(shape_a, strides_a, shape_b, strides_b):
    rank = max(len(shape_a), len(shape_b))
    shape_a = (1,) * (rank - len(shape_a)) + tuple(shape_a)
    shape_b = (1,) * (rank - len(shape_b)) + tuple(shape_b)
    strides_a = (0,) * (rank - len(strides_a)) + tuple(strides_a)
    strides_b = (0,) * (rank - len(strides_b)) + tuple(strides_b)
    shape = []
    for a, b in zip(shape_a, shape_b):
        if a != b and 1 not in (a, b):
            raise ValueError("the shapes do not fit")
        shape.append(max(a, b))
    out_a = tuple(0 if n == 1 else s for s, n in zip(strides_a, shape_a))
    out_b = tuple(0 if n == 1 else s for s, n in zip(strides_b, shape_b))
    return tuple(shape), out_a, out_b


@broadcast.misconception(
    "stretched, but still stepping",
    "a stretched dimension kept its stride, so each step along it would leave the tensor.",
    earns=1,
)
def _(shape_a, strides_a, shape_b, strides_b):
    rank = max(len(shape_a), len(shape_b))
    shape_a = (1,) * (rank - len(shape_a)) + tuple(shape_a)
    shape_b = (1,) * (rank - len(shape_b)) + tuple(shape_b)
    shape = []
    for a, b in zip(shape_a, shape_b):
        if a != b and 1 not in (a, b):
            raise ValueError("the shapes do not fit")
        shape.append(b if a == 1 else a)
    out_a = (1,) * (rank - len(strides_a)) + tuple(strides_a)
    out_b = (1,) * (rank - len(strides_b)) + tuple(strides_b)
    return tuple(shape), out_a, out_b


@broadcast.misconception(
    "strides of the stretched copy",
    "these are the strides of a tensor that was really repeated in memory; broadcasting copies "
    "nothing.",
    earns=1,
)
def _(shape_a, strides_a, shape_b, strides_b):
    rank = max(len(shape_a), len(shape_b))
    shape_a = (1,) * (rank - len(shape_a)) + tuple(shape_a)
    shape_b = (1,) * (rank - len(shape_b)) + tuple(shape_b)
    shape = []
    for a, b in zip(shape_a, shape_b):
        if a != b and 1 not in (a, b):
            raise ValueError("the shapes do not fit")
        shape.append(b if a == 1 else a)
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(shape), tuple(strides), tuple(strides)


@broadcast.alternate("from the right, one size at a time")
def _(shape_a, strides_a, shape_b, strides_b):
    shape, out_a, out_b = [], [], []
    for k in range(1, max(len(shape_a), len(shape_b)) + 1):
        a = shape_a[-k] if k <= len(shape_a) else 1
        b = shape_b[-k] if k <= len(shape_b) else 1
        if a == b:
            size = a
        elif a == 1:
            size = b
        elif b == 1:
            size = a
        else:
            raise ValueError(f"size {a} against size {b}")
        shape.insert(0, size)
        out_a.insert(0, 0 if a == 1 else strides_a[-k])
        out_b.insert(0, 0 if b == 1 else strides_b[-k])
    return shape, out_a, out_b


# ---------------------------------------------------------------------------------- mended_loss
mended_loss = Check(
    "mended_loss",
    parts={"a column against a vector": 1, "equal shapes": 1, "shapes that cannot match": 1},
    reads="The silent (64, 64) bug",
)


@mended_loss.reference
def _(prediction, target):
    for t in (prediction, target):
        if t.dim() == 0 or t.dim() > 2 or (t.dim() == 2 and t.shape[1] != 1):
            raise ValueError("expected (B,) or (B, 1)")
    if len(prediction) != len(target):
        raise ValueError("different batches")
    return ((prediction.reshape(-1) - target.reshape(-1)) ** 2).mean()


def _loss_case(part, prediction, target):
    """The loss, and whether autograd can still see through it."""

    def play(subject):
        loss = subject(prediction.requires_grad_(), target)
        return loss, getattr(loss, "requires_grad", None)

    return Case(part, play)


@mended_loss.cases
def _(draw):
    for _ in range(2):
        batch = draw.integer(3, 12)
        column, vector = draw.tensor((batch, 1)), draw.tensor((batch,))
        double = draw.tensor((batch,), torch.float64, "sliced")
        yield _loss_case("a column against a vector", column, vector)
        yield _loss_case("a column against a vector", draw.tensor((batch,)), column.detach())
        yield _loss_case("equal shapes", double, draw.tensor((batch,), torch.float64))
        yield _loss_case("equal shapes", draw.tensor((batch, 1)), draw.tensor((batch, 1)))
    other = draw.tensor((batch + 1,))
    yield case("shapes that cannot match", draw.tensor((batch, 1)), other)
    yield case("shapes that cannot match", draw.tensor((1, 1)), vector)
    yield case("shapes that cannot match", vector, draw.tensor((1,)))
    yield case("shapes that cannot match", draw.tensor((batch, 2)), draw.tensor((batch, 2)))
    yield case("shapes that cannot match", draw.tensor((1, batch)), vector)
    yield case("shapes that cannot match", vector, draw.tensor((1, batch)))
    yield case("shapes that cannot match", draw.tensor(()), draw.tensor(()))
    yield case("shapes that cannot match", draw.tensor((batch, 1, 1)), draw.tensor((batch, 1, 1)))


@mended_loss.misconception(
    "left as it was",
    "a (B, 1) column and a (B,) vector still meet in a (B, B) table of every pair.",
    earns=1,
)
def _(prediction, target):
    return ((prediction - target) ** 2).mean()


@mended_loss.misconception(
    "flattened, batches not compared",
    "both are flattened, but a batch of 1 is still stretched over the other one in silence.",
    earns=2,
)
def _(prediction, target):
    return ((prediction.flatten() - target.flatten()) ** 2).mean()


@mended_loss.misconception(
    "equal counts are not enough",
    "a shape that is neither (B,) nor (B, 1) was let through because it holds as many numbers.",
    earns=2,
)
def _(prediction, target):
    if prediction.numel() != target.numel():
        raise ValueError("different batches")
    return ((prediction.flatten() - target.flatten()) ** 2).mean()


@mended_loss.misconception(
    "only the prediction looked at",
    "the shape of the prediction is checked, but a target of another shape is let through.",
    earns=2,
)
def _(prediction, target):
    if prediction.dim() not in (1, 2) or (prediction.dim() == 2 and prediction.shape[1] != 1):
        raise ValueError("expected (B,) or (B, 1)")
    if prediction.numel() != target.numel():
        raise ValueError("different batches")
    return ((prediction.flatten() - target.flatten()) ** 2).mean()


@mended_loss.misconception(
    "cut off from autograd",
    "the number is right, but no gradient can flow back through it: nothing would be trained.",
    earns=1,
)
def _(prediction, target):
    for t in (prediction, target):
        if t.dim() == 0 or t.dim() > 2 or (t.dim() == 2 and t.shape[1] != 1):
            raise ValueError("expected (B,) or (B, 1)")
    if len(prediction) != len(target):
        raise ValueError("different batches")
    return ((prediction.detach().flatten() - target.flatten()) ** 2).mean()


@mended_loss.misconception(
    "only one order mended",
    "the target always gets a new dimension, which mends one order of the two and breaks another.",
    earns=0,
)
def _(prediction, target):
    return ((prediction - target.unsqueeze(1)) ** 2).mean()


@mended_loss.misconception(
    "summed, not averaged",
    "the squared errors are summed, so that the loss grows with the batch.",
    earns=1,
)
def _(prediction, target):
    for t in (prediction, target):
        if t.dim() == 0 or t.dim() > 2 or (t.dim() == 2 and t.shape[1] != 1):
            raise ValueError("expected (B,) or (B, 1)")
    if len(prediction) != len(target):
        raise ValueError("different batches")
    return ((prediction.flatten() - target.flatten()) ** 2).sum()


@mended_loss.misconception(
    "any shape is refused that differs",
    "a column and a vector of one batch were refused, though they hold the same numbers.",
    earns=1,
)
def _(prediction, target):
    if prediction.shape != target.shape:
        raise ValueError("the shapes differ")
    return ((prediction - target) ** 2).mean()


@mended_loss.alternate("mse_loss after a look at the shapes")
def _(prediction, target):
    def as_vector(t):
        if t.dim() == 2 and t.shape[1] == 1:
            t = t[:, 0]
        if t.dim() != 1:
            raise ValueError(f"expected (B,) or (B, 1), came {tuple(t.shape)}")
        return t

    prediction, target = as_vector(prediction), as_vector(target)
    if prediction.shape != target.shape:
        raise ValueError(f"{len(prediction)} predictions for {len(target)} targets")
    return torch.nn.functional.mse_loss(prediction, target)


# ----------------------------------------------------------------------------- attention_scores
attention_scores = Check(
    "attention_scores",
    parts={"one head": 1, "several heads": 2},
    reads="matmul, bmm, einsum, rearrange",
)


@attention_scores.reference
def _(x, w_q, w_k, n_heads):
    q = torch.nn.functional.linear(x, w_q).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    k = torch.nn.functional.linear(x, w_k).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    return q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5


@attention_scores.cases
def _(draw):
    for layout, heads in itertools.product(("contiguous", "transposed"), (1, 2, 4)):
        batch, length = draw.sample((2, 3, 5), 2)
        width = heads * draw.choice((3, 5, 6))
        x = draw.tensor((batch, length, width), torch.float32, layout)
        w_q, w_k = (draw.tensor((width, width)) / width**0.5 for _ in "qk")
        yield case("one head" if heads == 1 else "several heads", x, w_q, w_k, heads)


@attention_scores.misconception(
    "scale forgotten", "the products were not divided by the root of a head's width.", earns=0
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k)


@attention_scores.misconception(
    "scaled by the whole width",
    "the products were divided by the root of d_model; each head is narrower than that.",
    earns=1,
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k) / x.shape[-1] ** 0.5


@attention_scores.misconception(
    "scaled by the number of heads",
    "the products were divided by the root of the number of heads, not of the width of one.",
    earns=0,
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k) / n_heads**0.5


@attention_scores.misconception(
    "channels dealt out in turn",
    "neighbouring channels went to different heads; a head owns a run of channels.",
    earns=1,
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (d h) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b s (d h) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k) / q.shape[-1] ** 0.5


@attention_scores.misconception(
    "reshaped straight to heads",
    "the sizes are right, but a reshape to (batch, heads, length, …) cuts positions, not channels.",
    earns=1,
)
def _(x, w_q, w_k, n_heads):
    batch, length, width = x.shape
    q = (x @ w_q.T).reshape(batch, n_heads, length, width // n_heads)
    k = (x @ w_k.T).reshape(batch, n_heads, length, width // n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k) / q.shape[-1] ** 0.5


@attention_scores.misconception(
    "queries and keys exchanged",
    "entry (s, t) says how much t asks of s: the table is the transpose.",
    earns=0,
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhts", q, k) / q.shape[-1] ** 0.5


@attention_scores.misconception(
    "weights not transposed",
    "x was multiplied by the weights as they are stored; a linear layer keeps them as (out, in).",
    earns=0,
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k) / q.shape[-1] ** 0.5


@attention_scores.alternate("one einsum with the weights split into heads")
def _(x, w_q, w_k, n_heads):
    w_q = rearrange(w_q, "(h d) m -> h d m", h=n_heads)
    w_k = rearrange(w_k, "(h d) m -> h d m", h=n_heads)
    q = torch.einsum("bsm,hdm->bhsd", x, w_q)
    k = torch.einsum("btm,hdm->bhtd", x, w_k)
    return torch.einsum("bhsd,bhtd->bhst", q, k) * w_q.shape[1] ** -0.5


@attention_scores.alternate("a loop over heads")
def _(x, w_q, w_k, n_heads):
    q, k = x @ w_q.T, x @ w_k.T
    scores = []
    for q_head, k_head in zip(q.chunk(n_heads, -1), k.chunk(n_heads, -1)):
        scores.append(torch.bmm(q_head, k_head.mT) / math.sqrt(q_head.shape[-1]))
    return torch.stack(scores, dim=1)


# --------------------------------------------------------------------------------- result_dtype
result_dtype = Check(
    "result_dtype",
    parts={"two tensors": 1, "a tensor and a number": 1, "0-dim tensors": 2},
    reads="Which dtype comes out",
    by_hand=ByHand(
        "the exercise is to say what the operation would do without doing it",
        forbid_ops=frozenset(
            {"aten.add", "aten.sub", "aten.mul", "aten.div", "aten.where", "aten.cat"}
        ),
        forbid_names=frozenset({"result_type"}),
    ),
)


@result_dtype.reference
def _(a, b):
    return torch.result_type(a, b)


@result_dtype.cases
def _(draw):
    def tensor(dtype, rank=1):
        return draw.tensor((3,) * rank, dtype)

    def named(operand):
        if not isinstance(operand, torch.Tensor):
            return f"Python {type(operand).__name__}"
        kind = "0-dim tensor" if operand.dim() == 0 else "tensor"
        return f"{str(operand.dtype).removeprefix('torch.')} {kind}"

    def pair(part, a, b):
        return case(part, a, b, shown=f"{named(a)} + {named(b)}")

    pairs = [
        (torch.int32, torch.int64), (torch.uint8, torch.int8), (torch.int64, torch.float16),
        (torch.float16, torch.bfloat16), (torch.float32, torch.float64), (torch.bool, torch.uint8),
        (torch.int64, torch.bfloat16), (torch.float64, torch.complex64),
    ]
    for a, b in pairs:
        a, b = draw.sample((a, b), 2)
        yield pair("two tensors", tensor(a), tensor(b, draw.integer(1, 2)))
    numbers = [
        (torch.uint8, 3), (torch.int32, 300), (torch.float16, 7), (torch.bfloat16, 0.5),
        (torch.int32, 0.5), (torch.int64, 2.0), (torch.bool, 1), (torch.bool, True),
        (torch.uint8, False), (torch.int64, 2j), (torch.float64, 1j), (torch.float16, 1j),
    ]
    for dtype, number in draw.sample(numbers, len(numbers)):
        t = tensor(dtype)
        yield pair("a tensor and a number", *draw.sample((t, number), 2))
    mixed = [
        (torch.float16, torch.float64), (torch.int32, torch.int64), (torch.int32, torch.float64),
        (torch.bool, torch.int16), (torch.bfloat16, torch.float32), (torch.uint8, torch.bool),
        (torch.float32, torch.complex128),
    ]
    for dtype, small in mixed:
        yield pair("0-dim tensors", *draw.sample((tensor(dtype), tensor(small, 0)), 2))
    yield pair("0-dim tensors", tensor(torch.float16, 0), tensor(torch.float64, 0))
    yield pair("0-dim tensors", tensor(torch.int16, 0), 70000)
    yield pair("0-dim tensors", tensor(torch.float16, 0), 0.1)
    yield pair("0-dim tensors", tensor(torch.int64, 0), 0.1)


@result_dtype.misconception(
    "every operand has the same say",
    "a number or a 0-dim tensor widened the result within its own category, as only a tensor "
    "with dimensions may.",
    earns=1,
)
def _(a, b):
    def dtype_of(operand):
        return operand.dtype if isinstance(operand, torch.Tensor) else torch.tensor(operand).dtype

    return torch.promote_types(dtype_of(a), dtype_of(b))


@result_dtype.misconception(
    "a number never matters",
    "the tensor's dtype was kept beside a number of a higher category, such as 0.5 beside "
    "integers.",
    earns=1,
)
def _(a, b):
    if not isinstance(a, torch.Tensor):
        return b.dtype
    if not isinstance(b, torch.Tensor):
        return a.dtype

    def category(t):
        if t.dtype.is_complex:
            return 3
        if t.dtype.is_floating_point:
            return 2
        return 0 if t.dtype == torch.bool else 1

    if (a.dim() == 0) != (b.dim() == 0):
        big, small = (b, a) if a.dim() == 0 else (a, b)
        return small.dtype if category(small) > category(big) else big.dtype
    return torch.promote_types(a.dtype, b.dtype)


@result_dtype.misconception(
    "a 0-dim tensor is like any other",
    "a 0-dim tensor widened a tensor with dimensions of its own category.",
    earns=2,
)
def _(a, b):
    def category(dtype):
        if dtype.is_complex:
            return 3
        if dtype.is_floating_point:
            return 2
        return 0 if dtype == torch.bool else 1

    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return torch.promote_types(a.dtype, b.dtype)
    t, number = (a, b) if isinstance(a, torch.Tensor) else (b, a)
    of_number = torch.tensor(number).dtype
    if category(of_number) <= category(t.dtype):
        return t.dtype
    if category(t.dtype) == 2:
        return t.dtype.to_complex()
    return torch.promote_types(t.dtype, of_number)


@result_dtype.misconception(
    "NumPy's float",
    "a Python float beside integers gave float64, NumPy's default; torch's default is float32.",
    earns=1,
)
def _(a, b):
    def described(operand):
        if isinstance(operand, torch.Tensor):
            return (2 if operand.dim() else 1), operand.dtype
        wide = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
        return 0, wide[type(operand)]

    def category(dtype):
        if dtype.is_complex:
            return 3
        if dtype.is_floating_point:
            return 2
        return 0 if dtype == torch.bool else 1

    (rank_a, a), (rank_b, b) = described(a), described(b)
    if rank_a == rank_b:
        return torch.promote_types(a, b)
    strong, weak = (a, b) if rank_a > rank_b else (b, a)
    if category(weak) <= category(strong):
        return strong
    return strong.to_complex() if category(strong) == 2 else torch.promote_types(strong, weak)


@result_dtype.misconception(
    "a complex of its own width",
    "a float tensor took over the width of the complex operand; it only becomes complex.",
    earns=1,
)
def _(a, b):
    def described(operand):
        if isinstance(operand, torch.Tensor):
            return (2 if operand.dim() else 1), operand.dtype
        return 0, torch.tensor(operand).dtype

    def category(dtype):
        if dtype.is_complex:
            return 3
        if dtype.is_floating_point:
            return 2
        return 0 if dtype == torch.bool else 1

    (rank_a, a), (rank_b, b) = described(a), described(b)
    if rank_a == rank_b:
        return torch.promote_types(a, b)
    strong, weak = (a, b) if rank_a > rank_b else (b, a)
    return strong if category(weak) <= category(strong) else torch.promote_types(strong, weak)


@result_dtype.alternate("priority first, then promote")
def _(a, b):
    def described(operand):
        if isinstance(operand, torch.Tensor):
            return (2 if operand.dim() else 1), operand.dtype
        return 0, torch.tensor(operand).dtype

    def category(dtype):
        if dtype.is_complex:
            return 3
        if dtype.is_floating_point:
            return 2
        return 0 if dtype == torch.bool else 1

    (rank_a, a), (rank_b, b) = described(a), described(b)
    if rank_a == rank_b:
        return torch.promote_types(a, b)
    strong, weak = (a, b) if rank_a > rank_b else (b, a)
    if category(weak) <= category(strong):
        return strong
    if category(strong) == 2:
        return strong.to_complex()
    return torch.promote_types(strong, weak)


# ---------------------------------------------------------------------------------- model_costs
model_costs = Check(
    "model_costs",
    parts={
        "FLOPs of a linear layer": 1,
        "bytes of a linear layer": 2,
        "FLOPs of the LM head": 1,
        "FLOPs of the blocks": 2,
    },
    reads="Counting FLOPs and bytes",
)


@model_costs.reference
class _:
    def linear_cost(batch, d_in, d_out, itemsize):
        elements = batch * d_in + d_out * d_in + d_out + batch * d_out
        return {"flops": 2 * batch * d_in * d_out, "bytes": elements * itemsize}

    def minigpt_flops(config, batch, length):
        tokens = batch * length
        projections = 4 * 2 * tokens * config.d_model * config.d_model
        attention = 2 * 2 * tokens * length * config.d_model
        mlp = 2 * 2 * tokens * config.d_model * config.d_ff
        head = 2 * tokens * config.d_model * config.vocab_size
        return config.n_layers * (projections + attention + mlp) + head


@model_costs.cases
def _(draw):
    def layer_case(part, key, sizes):
        return Case(part, lambda subject: subject["linear_cost"](*sizes)[key], of="linear_cost")

    def blocks_case(config, batch, length):
        """What the blocks add to a model that has none."""
        empty = replace(config, n_layers=0)

        def play(subject):
            count = subject["minigpt_flops"]
            return count(config, batch, length) - count(empty, batch, length)

        return Case("FLOPs of the blocks", play, of="minigpt_flops")

    for itemsize in (4, 2, 8):
        sizes = (*(draw.integer(2, 700) for _ in range(3)), itemsize)
        yield layer_case("FLOPs of a linear layer", "flops", sizes)
        yield layer_case("bytes of a linear layer", "bytes", sizes)
    for _ in range(2):
        heads = draw.integer(2, 6)
        config = MiniGPTConfig(
            vocab_size=draw.integer(100, 900),
            d_model=heads * draw.integer(5, 20),
            n_heads=heads,
            n_layers=draw.integer(3, 7),
            d_ff=draw.integer(100, 500),
            context=64,
        )
        batch, length = draw.integer(2, 9), draw.integer(10, 60)
        yield case(
            "FLOPs of the LM head", replace(config, n_layers=0), batch, length, of="minigpt_flops"
        )
        yield blocks_case(config, batch, length)
    yield blocks_case(MiniGPTConfig(), 2, 32)


@model_costs.misconception(
    "one operation for a multiply-add",
    "a multiplication and the addition that follows it are two operations; one was counted.",
    earns=2,
)
class _:
    def linear_cost(batch, d_in, d_out, itemsize):
        elements = batch * d_in + d_out * d_in + d_out + batch * d_out
        return {"flops": batch * d_in * d_out, "bytes": elements * itemsize}

    def minigpt_flops(config, batch, length):
        tokens, d = batch * length, config.d_model
        block = 4 * tokens * d * d + 2 * tokens * length * d + 2 * tokens * d * config.d_ff
        return config.n_layers * block + tokens * d * config.vocab_size


@model_costs.misconception(
    "bias counted as work", "the additions of the bias were counted; only the product is.", earns=5
)
class _:
    def linear_cost(batch, d_in, d_out, itemsize):
        elements = batch * d_in + d_out * d_in + d_out + batch * d_out
        return {"flops": 2 * batch * d_in * d_out + batch * d_out, "bytes": elements * itemsize}


@model_costs.misconception(
    "weights not read",
    "only the activations were counted as traffic; the weights come from memory too.",
    earns=4,
)
class _:
    def linear_cost(batch, d_in, d_out, itemsize):
        return {
            "flops": 2 * batch * d_in * d_out,
            "bytes": (batch * d_in + batch * d_out) * itemsize,
        }


@model_costs.misconception(
    "bias not read", "the bias was left out of the bytes that the layer reads.", earns=4
)
class _:
    def linear_cost(batch, d_in, d_out, itemsize):
        elements = batch * d_in + d_out * d_in + batch * d_out
        return {"flops": 2 * batch * d_in * d_out, "bytes": elements * itemsize}


@model_costs.misconception(
    "elements for bytes", "the traffic was counted in elements, whatever their width.", earns=4
)
class _:
    def linear_cost(batch, d_in, d_out, itemsize):
        elements = batch * d_in + d_out * d_in + d_out + batch * d_out
        return {"flops": 2 * batch * d_in * d_out, "bytes": elements}


@model_costs.misconception(
    "attention without its tables",
    "the four projections were counted, not the two products with the (length, length) table.",
    earns=4,
)
class _:
    def minigpt_flops(config, batch, length):
        tokens, d = batch * length, config.d_model
        block = 4 * 2 * tokens * d * d + 2 * 2 * tokens * d * config.d_ff
        return config.n_layers * block + 2 * tokens * d * config.vocab_size


@model_costs.misconception(
    "scores without the weighted sum",
    "the scores were counted; the sum of values that they weight is a second product as large.",
    earns=4,
)
class _:
    def minigpt_flops(config, batch, length):
        tokens, d = batch * length, config.d_model
        block = 4 * 2 * tokens * d * d + 2 * tokens * length * d
        block += 2 * 2 * tokens * d * config.d_ff
        return config.n_layers * block + 2 * tokens * d * config.vocab_size


@model_costs.misconception(
    "every head as wide as the model",
    "the tables were counted once for each head at the full width; a head has a share of it.",
    earns=4,
)
class _:
    def minigpt_flops(config, batch, length):
        tokens, d = batch * length, config.d_model
        block = 4 * 2 * tokens * d * d + 2 * 2 * tokens * length * d * config.n_heads
        block += 2 * 2 * tokens * d * config.d_ff
        return config.n_layers * block + 2 * tokens * d * config.vocab_size


@model_costs.misconception(
    "positions compared across the batch",
    "every token was compared with every token of the batch; each sequence keeps to itself.",
    earns=4,
)
class _:
    def minigpt_flops(config, batch, length):
        tokens, d = batch * length, config.d_model
        block = 4 * 2 * tokens * d * d + 2 * 2 * tokens * tokens * d
        block += 2 * 2 * tokens * d * config.d_ff
        return config.n_layers * block + 2 * tokens * d * config.vocab_size


@model_costs.misconception(
    "three projections",
    "queries, keys and values were counted; the heads are also mixed by a fourth matrix.",
    earns=4,
)
class _:
    def minigpt_flops(config, batch, length):
        tokens, d = batch * length, config.d_model
        block = 3 * 2 * tokens * d * d + 2 * 2 * tokens * length * d
        block += 2 * 2 * tokens * d * config.d_ff
        return config.n_layers * block + 2 * tokens * d * config.vocab_size


@model_costs.misconception(
    "an MLP four times as wide",
    "the MLP was taken to be 4 · d_model wide, as it often is; the config says how wide.",
    earns=4,
)
class _:
    def minigpt_flops(config, batch, length):
        tokens, d = batch * length, config.d_model
        block = 4 * 2 * tokens * d * d + 2 * 2 * tokens * length * d
        block += 2 * 2 * tokens * d * 4 * d
        return config.n_layers * block + 2 * tokens * d * config.vocab_size


@model_costs.misconception(
    "a vocabulary of 600, whatever the config",
    "the number of words was written into the code; the config says how many there are.",
    earns=5,
)
class _:
    def minigpt_flops(config, batch, length):
        tokens, d = batch * length, config.d_model
        block = 4 * 2 * tokens * d * d + 2 * 2 * tokens * length * d
        block += 2 * 2 * tokens * d * config.d_ff
        return config.n_layers * block + 2 * tokens * d * 600


@model_costs.misconception(
    "head only at the last position",
    "the LM head was counted once for a sequence; in a full forward it runs at every position.",
    earns=5,
)
class _:
    def minigpt_flops(config, batch, length):
        tokens, d = batch * length, config.d_model
        block = 4 * 2 * tokens * d * d + 2 * 2 * tokens * length * d
        block += 2 * 2 * tokens * d * config.d_ff
        return config.n_layers * block + 2 * batch * d * config.vocab_size


@model_costs.misconception(
    "a head in every block",
    "the LM head was counted once for each block; it stands once, after the last of them.",
    earns=3,
)
class _:
    def minigpt_flops(config, batch, length):
        tokens, d = batch * length, config.d_model
        block = 4 * 2 * tokens * d * d + 2 * 2 * tokens * length * d
        block += 2 * 2 * tokens * d * config.d_ff
        return config.n_layers * (block + 2 * tokens * d * config.vocab_size)


@model_costs.misconception(
    "embedding counted as a product",
    "looking up a row of the embedding table multiplies nothing.",
    earns=5,
)
class _:
    def minigpt_flops(config, batch, length):
        tokens, d = batch * length, config.d_model
        block = 4 * 2 * tokens * d * d + 2 * 2 * tokens * length * d
        block += 2 * 2 * tokens * d * config.d_ff
        return config.n_layers * block + 2 * 2 * tokens * d * config.vocab_size


@model_costs.alternate("a list of matrix products")
class _:
    def linear_cost(batch, d_in, d_out, itemsize):
        read = batch * d_in + d_out * (d_in + 1)
        return {"bytes": itemsize * (read + batch * d_out), "flops": d_out * 2 * batch * d_in}

    def minigpt_flops(config, batch, length):
        d, head = config.d_model, config.d_model // config.n_heads
        products = []
        for _ in range(config.n_layers):
            products += [(batch * length, d, d)] * 4
            products += [(length, head, length), (length, length, head)] * batch * config.n_heads
            products += [(batch * length, d, config.d_ff), (batch * length, config.d_ff, d)]
        products.append((batch * length, d, config.vocab_size))
        return sum(2 * m * k * n for m, k, n in products)
