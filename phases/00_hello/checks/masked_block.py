"""Lab 00, exercise 2: What does one program load?"""

from utils.checks.exercise import Check, case

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
        shown = "the last program, every block full"
        yield case("the last block", grid - 1, full, block, shown=shown)
        shown = "the program after the last, every block full"
        yield case("past the end", grid, full, block, shown=shown)
        yield case("past the end", grid, n, block, shown="the program after the last")
    # in a set these come as 8, 6, 7
    yield case("a full block", 2, 20, 3, shown=place(2, 7))
    yield case("a full block", 0, 17, 8, shown=place(0, 3))
    yield case("the last block", 2, 17, 8, shown=place(2, 3))
    yield case("the last block", 2, 9, 3, shown=place(2, 3))
    yield case("the last block", 0, 5, 8, shown="less than one block")
    yield case("the last block", 4, 5, 1, shown=place(4, 5))
    yield case("past the end", draw.integer(20, 30), 17, 8, shown="a program far past the end")
    yield case("past the end", 0, 0, 4, shown="no elements")
    yield case("past the end", 1, 0, 4, shown="no elements")
    yield case("past the end", 1, 3, 4, shown="program 1, less than one block")
    yield case("past the end", 2, 4, 4, shown="program 2, one block")


@masked_block.misconception(
    "no mask", "all places of the block are in the list, those past the last element too.", earns=1
)
def _(program, n, block):
    first = program * block
    return list(range(first, first + block))


@masked_block.misconception(
    "mask one too wide",
    "the list goes on to the index n, which is one past the last element.",
    earns=1,
)
def _(program, n, block):
    first = program * block
    return [i for i in range(first, first + block) if i <= n]


@masked_block.misconception(
    "programs counted from 1",
    "each program took the block before its own, as if program 1 were the first.",
    earns=0,
)
def _(program, n, block):
    first = (program - 1) * block
    return [i for i in range(first, first + block) if i < n]


@masked_block.misconception(
    "next block",
    "each program took the block after its own, so that nobody loads element 0.",
    earns=1,
)
def _(program, n, block):
    first = (program + 1) * block
    return [i for i in range(first, first + block) if i < n]


@masked_block.misconception(
    "blocks that overlap",
    "each program began one element after the one before it, not one block after it.",
    earns=0,
)
def _(program, n, block):
    return [i for i in range(program, program + block) if i < n]


@masked_block.misconception(
    "places, not elements",
    "places in the block were returned, counted from 0 in each program, not the elements there.",
    earns=1,
)
def _(program, n, block):
    return [place for place in range(block) if program * block + place < n]


@masked_block.misconception(
    "program not used",
    "each program returned the first block, as if it were program 0.",
    earns=0,
)
def _(program, n, block):
    return [place for place in range(block) if place < n]


@masked_block.misconception(
    "None for masked places",
    "a masked place came back as None; the list holds what is loaded, and nothing else.",
    earns=1,
)
def _(program, n, block):
    first = program * block
    return [i if i < n else None for i in range(first, first + block)]


@masked_block.misconception(
    "a range, not a list",
    "a `range` was returned, which promises numbers; a list was asked for.",
    earns=0,
)
def _(program, n, block):
    return range(min(program * block, n), min((program + 1) * block, n))


@masked_block.misconception(
    "the order of a set",
    "the elements came in the order that a set of them has, which need not be rising.",
    earns=1,
)
def _(program, n, block):
    first = program * block
    return list(set(range(first, first + block)) & set(range(n)))


@masked_block.misconception(
    "clamped for masked",
    "places past the end came back as the last element, again and again; a mask loads nothing "
    "there.",
    earns=1,
)
def _(program, n, block):
    first = program * block
    return [min(i, n - 1) for i in range(first, first + block)]


@masked_block.misconception(
    "all that is left",
    "a program loaded everything from its block to the end, not its block alone.",
    earns=2,
)
def _(program, n, block):
    return list(range(program * block, n))


@masked_block.misconception(
    "full blocks or none",
    "a block that isn't full was left out altogether, and its elements with it.",
    earns=2,
)
def _(program, n, block):
    first = program * block
    return list(range(first, first + block)) if first + block <= n else []


@masked_block.alternate("ends clipped")
def _(program, n, block):
    return list(range(min(program * block, n), min((program + 1) * block, n)))


@masked_block.alternate("as the kernel does it")
def _(program, n, block):
    places = [program * block + k for k in range(block)]
    mask = [i < n for i in places]
    return [i for i, on in zip(places, mask) if on]


@masked_block.alternate("every element that is this program's")
def _(program, n, block):
    return [i for i in range(n) if i // block == program]


masked_block.equivalent(
    ("range(min(program * block, n)", "range(program * block"),
    because="a range that begins past its end is empty wherever it begins",
)
