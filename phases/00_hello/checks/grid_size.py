"""Lab 00, exercise 1: How many programs?"""

from hood.judge.checks.exercise import Check, case

grid_size = Check(
    "grid_size",
    parts={"a last block that isn't full": 1, "full blocks only": 1, "no elements": 1},
    reads="Programs, blocks and masks",
)


@grid_size.reference
def _(n, block):
    return len(range(0, n, block))


@grid_size.cases
def _(draw):
    # Powers of two come first. If an answer fails for these, the verdict doesn't mention other
    # block sizes.
    halves = (
        ([16, 128, 1024], ("one", "few", "many", "all but one"), ""),
        ([6, 7, 100], ("few", "many"), ", no power of two"),
    )
    for sizes, rests, kind in halves:
        for rest in rests:
            blocks, block = draw.integer(3, 40), draw.choice(sizes)
            left = {
                "one": 1,
                "few": max(1, block // 4),
                "many": block - block // 4,
                "all but one": block - 1,
            }[rest]
            shown = f"{rest} of {block} places in use in the last block{kind}"
            yield case("a last block that isn't full", blocks * block + left, block, shown=shown)
        for _ in range(2):
            blocks, block = draw.integer(3, 40), draw.choice(sizes)
            yield case("full blocks only", blocks * block, block, shown=f"blocks of {block}{kind}")
    yield case("a last block that isn't full", draw.integer(2, 5), 64, shown="less than one block")
    yield case("a last block that isn't full", 1, draw.integer(5, 64), shown="one element")
    yield case("a last block that isn't full", 2049, 1024, shown="one of 1024 places in use")
    # float32 can't represent this n
    shown = "2 ** 24 + 1 elements, blocks of 2 ** 20"
    yield case("a last block that isn't full", 2**24 + 1, 2**20, shown=shown)
    # A vector of some megabytes needs as many programs as this. That is too many for a recursive
    # function with a call for each program.
    blocks = draw.integer(20_000, 30_000)
    shown = "tens of thousands of programs"
    yield case("a last block that isn't full", 4 * blocks + 1, 4, shown=shown)
    yield case("full blocks only", 64, 64, shown="one block")
    yield case("full blocks only", 1, 1, shown="one element, blocks of 1")
    yield case("full blocks only", 18, 6, shown="blocks of 6")
    yield case("full blocks only", 128, 64, shown="two blocks")
    yield case("full blocks only", draw.integer(50, 90), 1, shown="blocks of 1")
    yield case("no elements", 0, draw.integer(2, 64))
    yield case("no elements", 0, 6)
    yield case("no elements", 0, 1)
