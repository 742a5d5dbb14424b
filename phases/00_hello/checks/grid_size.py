"""Lab 00, exercise 1: How many programs?"""

from utils.checks.exercise import Check, case

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
    # powers of two first: to what fails already there, it is not said that the others are none
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
    # float32 has no such n
    shown = "2 ** 24 + 1 elements, blocks of 2 ** 20"
    yield case("a last block that isn't full", 2**24 + 1, 2**20, shown=shown)
    yield case("full blocks only", 64, 64, shown="one block")
    yield case("full blocks only", 1, 1, shown="one element, blocks of 1")
    yield case("full blocks only", 18, 6, shown="blocks of 6")
    yield case("full blocks only", 128, 64, shown="two blocks")
    yield case("full blocks only", draw.integer(50, 90), 1, shown="blocks of 1")
    yield case("no elements", 0, draw.integer(2, 64))
    yield case("no elements", 0, 1)


@grid_size.misconception(
    "rounded down",
    "only full blocks got a program, so that the elements after them are never touched.",
    earns=2,
)
def _(n, block):
    return n // block


@grid_size.misconception(
    "always one more",
    "one program was added to the full blocks even where nothing was left over for it.",
    earns=1,
)
def _(n, block):
    return n // block + 1


@grid_size.misconception(
    "rounded to the nearest",
    "the last block got a program only where it was about half full or more, as rounding has it.",
    earns=2,
)
def _(n, block):
    return round(n / block)


@grid_size.misconception(
    "a half added, then rounded",
    "the number is n / block + 1/2, rounded: full blocks land midway between two numbers then, "
    "and `round` takes the even one.",
    earns=2,
)
def _(n, block):
    return round(n / block + 0.5)


@grid_size.misconception(
    "a program for each element left over",
    "each element after the last full block got a program of its own; one takes all of them.",
    earns=2,
)
def _(n, block):
    return n // block + n % block


@grid_size.misconception(
    "at least one program",
    "a program was launched even where there is no element for it.",
    earns=2,
)
def _(n, block):
    return max(1, -(-n // block))


@grid_size.misconception(
    "a program for each element",
    "each element got a program of its own; a program handles a whole block of them.",
    earns=1,
)
def _(n, block):
    return n


@grid_size.misconception(
    "elements left over",
    "the elements that are left after the last full block were counted, not the programs.",
    earns=1,
)
def _(n, block):
    return n % block


@grid_size.alternate("divmod and a rest")
def _(n, block):
    full, rest = divmod(n, block)
    return full + (rest > 0)


@grid_size.alternate("rounding down the negative")
def _(n, block):
    return -(-n // block)


@grid_size.alternate("counting the blocks' beginnings")
def _(n, block):
    programs = 0
    while programs * block < n:
        programs += 1
    return programs


grid_size.equivalent(("rest > 0", "rest != 0"), because="a rest is never negative")
grid_size.equivalent(
    ("programs = 0", "programs = -1"), because="the loop counts up past 0 programs anyway"
)
