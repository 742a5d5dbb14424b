"""Lab 11, exercise 1: What a tile costs"""

from hood.judge.checks.exercise import Case, Check, case

tile_cost = Check(
    "tile_cost",
    parts={"operations": 1, "bytes of whole tiles": 1, "bytes at ragged edges": 1, "what fits": 1},
    reads="What a tile costs",
)


@tile_cost.reference
class _:
    def tile_cost(M, N, K, block_m, block_n, itemsize):
        numbers = 0
        for rows in _sizes(M, block_m):
            for columns in _sizes(N, block_n):
                numbers += rows * K + K * columns + rows * columns
        return 2 * M * N * K, numbers * itemsize

    def largest_tile(shared_bytes, block_k, stages, itemsize):
        fits = [0]
        for power in range(4, 64):
            side = 2**power
            pair = side * block_k + block_k * side
            if pair * stages * itemsize <= shared_bytes:
                fits.append(side)
        return fits[-1]


def _sizes(length, block):
    """The rows, or columns, that each tile has inside of a matrix."""
    return [min(block, length - first) for first in range(0, length, block)]


@tile_cost.cases
def _(draw):
    operations, whole, ragged, fits = tile_cost.parts

    def operations_of(M, N, K, *rest):
        def play(subject):
            return subject["tile_cost"](M, N, K, *rest)[0]

        return Case(operations, play, "tile_cost", f"M, N, K = {M}, {N}, {K}")

    def bytes_of(part, M, N, K, block_m, block_n, itemsize, words=""):
        sizes = [(m, n) for m in _sizes(M, block_m) for n in _sizes(N, block_n)]
        right = itemsize * sum((m + n) * K + m * n for m, n in sizes)

        def play(subject):
            moved = subject["tile_cost"](M, N, K, block_m, block_n, itemsize)[1]
            return bool(moved <= right), bool(moved >= right), moved

        shown = words or f"M, N, K = {M}, {N}, {K}, tiles of {block_m} × {block_n}"
        places = {"[0]": "Too many bytes are counted.", "[1]": "Too few bytes are counted."}
        return Case(part, play, "tile_cost", shown, {**places, "[2]": "the bytes"})

    for itemsize in (1, 2, 4, 8):
        m, n, k = (draw.integer(2, 6) for _ in range(3))
        block_m, block_n = draw.sample((4, 8, 16, 32, 64, 128), 2)
        yield bytes_of(whole, m * block_m, n * block_n, 16 * k, block_m, block_n, itemsize)
        M, N = m * block_m + draw.integer(1, block_m - 1), n * block_n - draw.integer(1, block_n - 1)
        yield bytes_of(ragged, M, N, 16 * k - 3, block_m, block_n, itemsize)
        yield operations_of(m, n, 7 * k, block_m, block_n, itemsize)
        yield operations_of(M, N, k, block_m, block_n, itemsize)
    yield bytes_of(whole, 48, 48, 16, 16, 16, 2, "a square matrix in square tiles")
    yield bytes_of(whole, 64, 32, 1, 64, 32, 2, "one tile, K = 1")
    far = 2 ** draw.integer(17, 19)
    yield bytes_of(whole, far, far, far, 2**14, 2**13, 2, "a matrix of terabytes")
    yield bytes_of(ragged, 16 * draw.integer(1, 4) + 1, 64, 5, 16, 16, 4, "one row too many for whole tiles")
    yield bytes_of(ragged, 64, 16 * draw.integer(1, 4) - 1, 5, 16, 16, 4, "one column too few for whole tiles")
    yield bytes_of(ragged, draw.integer(2, 9), draw.integer(2, 9), 3, 16, 32, 4, "a block larger than the matrix")
    yield bytes_of(ragged, 1, draw.integer(33, 90), 4, 16, 32, 2, "one row")
    yield bytes_of(ragged, draw.integer(33, 90), 1, 4, 16, 32, 2, "one column")
    yield bytes_of(ragged, 96, draw.integer(65, 90), 5, 64, 32, 4, "rows that only block_n divides")
    yield bytes_of(ragged, draw.integer(65, 90), 96, 5, 32, 64, 4, "columns that only block_m divides")
    yield operations_of(1, 1, 1, 16, 16, 4)
    yield operations_of(far, far, far + 1, 2**14, 2**13, 2)

    def largest(shared, block_k, stages, itemsize):
        words = f"{shared} bytes, block_k = {block_k}, stages = {stages}, itemsize = {itemsize}"
        return case(fits, shared, block_k, stages, itemsize, of="largest_tile", shown=words)

    for itemsize in (1, 2, 4, 8):
        block_k, stages = draw.choice((16, 32, 64)), draw.integer(1, 5)
        side = 2 ** draw.integer(4, 8)
        exact = 2 * side * block_k * stages * itemsize
        yield largest(exact, block_k, stages, itemsize)
        yield largest(exact - 1, block_k, stages, itemsize)
        yield largest(exact + draw.integer(1, exact - 1), block_k, stages, itemsize)
    for stages in (1, 3):
        least = 2 * 16 * 32 * stages * 2
        yield largest(least, 32, stages, 2)
        yield largest(least - 1, 32, stages, 2)
        yield largest(2 * least - 1, 32, stages, 2)
    yield largest(1, 1, 1, 1)
    yield largest(2**31, draw.integer(1, 3), 1, 1)
