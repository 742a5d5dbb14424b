"""Lab 00, exercise 2: What does one program load?"""

from hood.judge.checks.exercise import Check, case

masked_block = Check(
    "masked_block",
    parts={"a full block": 1, "the last block": 1, "past the end": 1},
    reads="Programs, blocks and masks",
)


@masked_block.reference
def _(program, n, block):
    return list(range(n))[program * block : (program + 1) * block]


@masked_block.cases
def _(draw):
    def place(program, grid):
        return f"program {program} of {grid}"

    for blocks in ([3, 5, 6], [8, 16], [3, 5, 8, 16]):
        grid, block = draw.integer(4, 9), draw.choice(blocks)
        rest = draw.integer(1, block - 1)
        n = (grid - 1) * block + rest
        middle = draw.integer(1, grid - 3)
        yield case("a full block", middle, n, block, shown=place(middle, grid))
        yield case("a full block", 0, n, block, shown=place(0, grid))
        yield case("the last block", grid - 1, n, block, shown=place(grid - 1, grid))
        full = grid * block
        shown = "the last program, where every block is full"
        yield case("the last block", grid - 1, full, block, shown=shown)
        shown = "the program after the last, where every block is full"
        yield case("past the end", grid, full, block, shown=shown)
        yield case("past the end", grid, n, block, shown="the program after the last")
    # A Python set returns these elements in the order 8, 6, 7. So an answer that uses a set fails.
    yield case("a full block", 2, 20, 3, shown=place(2, 7))
    yield case("a full block", 0, 17, 8, shown=place(0, 3))
    yield case("the last block", 2, 17, 8, shown=place(2, 3))
    yield case("the last block", 2, 9, 3, shown=place(2, 3))
    yield case("the last block", 0, 5, 8, shown="less than one block")
    yield case("the last block", 4, 5, 1, shown=place(4, 5))
    yield case("a full block", 2, 5, 1, shown=place(2, 5))
    yield case("past the end", 5, 5, 1, shown="blocks of 1, the program after the last")
    yield case("past the end", draw.integer(20, 30), 17, 8, shown="a program far past the end")
    yield case("past the end", 0, 0, 4, shown="no elements")
    yield case("past the end", 1, 0, 4, shown="no elements")
    yield case("past the end", 1, 3, 4, shown="program 1, less than one block")
    yield case("past the end", 2, 4, 4, shown="program 2, one block")
