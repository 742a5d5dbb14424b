"""Lab 11, exercise 2: A product in tiles"""

import torch

from hood.judge.checks.exercise import Case, Check

from .shared import EXACTNESS_IS_A_FACT, exactness

tiled_matmul = Check(
    "tiled_matmul",
    parts={"whole tiles": 1, "ragged tiles": 1, "any strides": 1, "rounded once": 1},
    reads="A product in tiles",
    tolerance=EXACTNESS_IS_A_FACT,
)


@tiled_matmul.reference
def _(a, b, block):
    wide = torch.float64 if a.dtype == torch.float64 else torch.float32
    rows = []
    for some in a.split(block):
        tiles = []
        for others in b.split(block, 1):
            pairs = zip(some.split(block, 1), others.split(block), strict=True)
            tiles.append(sum(left.to(wide) @ right.to(wide) for left, right in pairs))
        rows.append(torch.cat(tiles, 1))
    return torch.cat(rows).to(a.dtype)


@tiled_matmul.cases
def _(draw):
    whole, ragged, strides, rounded = tiled_matmul.parts

    def product(part, a, b, block, words=""):
        exact, scale = a.double() @ b.double(), a.double().abs() @ b.double().abs()

        def play(subject):
            came = subject.drive("tiles:tiled", a, b, block)
            output = came["output"]
            same = isinstance(output, torch.Tensor) and output.dtype == a.dtype
            return came["largest"] <= block, not same or exactness(output, exact, scale), output

        places = {
            "[0]": "A product took more than a tile of `a` or of `b`.",
            "[1]": "The result is nearly right, but less exact than its dtype allows. That happens if "
            "tiles are multiplied or summed in half precision, or float64 is made narrower.",
            "[2]": "the product",
        }
        dtype = str(a.dtype).removeprefix("torch.")
        shown = f"{dtype} {tuple(a.shape)} @ {tuple(b.shape)}, block {block}{words}"
        return Case(part, play, shown=shown, places=places)

    def drawn(M, N, K, dtype=torch.float32):
        return draw.tensor((M, K), dtype), draw.tensor((K, N), dtype)

    for block in (2, draw.integer(3, 5)):
        m, n, k = draw.sample((1, 2, 3, 4), 3)
        yield product(whole, *drawn(m * block, n * block, k * block), block)
    yield product(whole, *drawn(4, 4, 4), 4)
    yield product(whole, *drawn(6, 6, 6, torch.float64), 3)
    yield product(whole, *drawn(*draw.sample((2, 3, 4, 5), 3)), 1)

    for block in (2, 3, draw.integer(4, 6)):
        M, N, K = (block * draw.integer(1, 2) + draw.integer(1, block - 1) for _ in range(3))
        yield product(ragged, *drawn(M, N, K), block)
        yield product(ragged, *drawn(M, block, block), block)
        yield product(ragged, *drawn(2 * block, N, block), block)
        yield product(ragged, *drawn(block, 2 * block, K), block)
    yield product(ragged, *drawn(1, 1, draw.integer(5, 9)), 4)
    yield product(ragged, *drawn(draw.integer(5, 9), draw.integer(5, 9), 1), 4)
    yield product(ragged, *drawn(1, draw.integer(5, 9), 6), 4)
    yield product(ragged, *drawn(draw.integer(5, 9), 1, 6), 4)
    yield product(ragged, *drawn(1, 1, 1), 2)
    yield product(ragged, *drawn(3, 2, 4), draw.integer(5, 99))

    a, b = drawn(4, 8, 6)
    yield product(strides, a.t().contiguous().t(), b, 2, ", a transposed")
    yield product(strides, a, b.t().contiguous().t(), 2, ", b transposed")
    wide = torch.stack([a, a + 1], -1).flatten(1)
    yield product(strides, wide[:, ::2], b, 2, ", every second column of a larger a")
    tall = torch.cat([b + 1, b, b + 2])
    yield product(strides, a, tall[len(b) : 2 * len(b)], 2, ", some rows of a larger b")
    yield product(strides, a[:1].expand(4, -1), b, 2, ", a expanded from one row")
    yield product(strides, a, b[:1, :1].expand(len(b), 6), 2, ", b expanded from one number")

    for dtype in (torch.bfloat16, torch.float16):
        M, N = draw.integer(4, 7), draw.integer(4, 7)
        yield product(rounded, *drawn(M, N, 41, dtype), 4)
        a, b = drawn(M, N, 24, dtype)
        a[:, 0], a[:, -1] = 200.0, -200.0  # large sums on the way, small ones at the end
        b[0] = b[-1] = 1.0
        yield product(rounded, a, b, 4, ", large sums on the way")
        yield product(rounded, *drawn(5, 6, 40, dtype), 64, ", one tile")
    yield product(rounded, *drawn(5, 6, 40, torch.float64), 4)
    yield product(rounded, *drawn(5, 6, 40), 4)
