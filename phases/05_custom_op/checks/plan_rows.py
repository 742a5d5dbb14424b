"""Lab 05, exercise 1: Into tiles"""


from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution

plan_rows = Check(
    "plan_rows",
    parts={"wide rows": 1, "narrow rows": 1, "the ends": 1},
    reads="One program, one row",
)


FACTS = (
            "The lanes of a row, the third number, are fewer than its columns.",
            "The lanes of a row, the third number, are no power of two.",
            "The lanes of a row, the third number, are more than they must be: half as many would do.",
            "A program takes no row at all.",
            "The rows of a program, the second number, don't fit into 4096 bytes.",
            "A program takes fewer rows, the second number, than fit into 4096 bytes.",
            "There are rows that no program takes: there are too few programs.",
            "There are programs that have no row: there are too many.",
            "Fewer lanes are counted as masked than such a plan has.",
            "More lanes are counted as masked than such a plan has.",
            "the plan",
)
PLACES = {f"[{at}]": words for at, words in enumerate(FACTS)}


@plan_rows.reference
def _(rows, columns, itemsize):
    """The definition, lane by lane; sizes are counted up until they fit."""
    block = 1
    while block < columns:
        block += block
    per_program = 1
    while (per_program + 1) * block * itemsize <= 4096:
        per_program += 1
    programs = 0
    while programs * per_program < rows:
        programs += 1
    return programs, per_program, block, programs * per_program * block - rows * columns


@plan_rows.cases
def _(draw):
    shown = "{} rows of {} columns, {} bytes each"

    def asked(part, rows, columns, itemsize):
        def play(subject):
            programs, each, block, masked = plan = subject(rows, columns, itemsize)
            taken = each * block * itemsize
            real = programs * each * block - rows * columns
            # What the numbers say of each other: the first that is not so is told in words.
            facts = (
                block >= columns,
                block > 0 and block & (block - 1) == 0,
                block < 2 * columns,
                each >= 1,
                each == 1 or taken <= 4096,
                taken + block * itemsize > 4096,
                programs * each >= rows,
                (programs - 1) * each < rows or programs == 0,
                masked >= real,
                masked <= real,
            )
            return *map(bool, facts), plan

        return Case(part, play, shown=shown.format(rows, columns, itemsize), places=PLACES)

    wide, narrow, ends = plan_rows.parts
    for itemsize in (2, 4, 8):
        most = 4096 // itemsize
        # no power of two is drawn: those are among the ends
        columns = 2 * draw.integer(most // 2 + 1, 2 * most) + 1
        yield asked(wide, draw.integer(2, 20), columns, itemsize)
        yield asked(wide, draw.integer(2, 20), draw.integer(most // 2 + 1, most - 1), itemsize)
        for _ in range(3):
            columns = 2 * draw.integer(1, most // 8) + 1
            yield asked(narrow, draw.integer(20, 500), columns, itemsize)
    yield asked(wide, 3, 601, 4)
    yield asked(wide, 3, 1025, 4)
    yield asked(narrow, 65, 600, 2)
    yield asked(narrow, 5, 600, 2)
    yield asked(narrow, 3, 17, 2)  # fewer rows than fit
    yield asked(narrow, 64, 600, 2)  # the last program is full

    power = 2 ** draw.integer(3, 7)
    for columns in (power, power + 1, power - 1, 1, 2, 3):
        yield asked(ends, draw.integer(1, 9), columns, draw.choice((2, 4, 8)))
    for columns in (1024, 1025, 512, 2048):  # where a tile is just full
        yield asked(ends, draw.integer(2, 9), columns, 4)
    yield asked(ends, 0, draw.integer(3, 90), 4)
    yield asked(ends, 1, draw.integer(3, 90), 2)
    full = 4096 // (4 * 64)
    for rows in (full, 3 * full, full + 1, 3 * full - 1):  # the last program's rows
        yield asked(ends, rows, draw.integer(33, 64), 4)


_plan_rows = lab_solution(__name__, "plan_rows")


plan_rows.misconception(
    "the power above",
    "a width that is a power of two gets a block of twice its size.",
    earns=2,
)(edited(_plan_rows, ("triton.next_power_of_2(columns)", "1 << columns.bit_length()")))
plan_rows.misconception(
    "a block as wide as the row",
    "the block has as many lanes as the row has columns, which is no power of two.",
    earns=0,
)(edited(_plan_rows, ("triton.next_power_of_2(columns)", "columns")))
plan_rows.misconception(
    "whole warps",
    "the block is a multiple of 32 and not a power of two.",
    earns=0,
)(edited(_plan_rows, ("triton.next_power_of_2(columns)", "triton.cdiv(columns, 32) * 32")))
plan_rows.misconception(
    "rows past the end forgotten",
    "masked lanes are counted in the rows that exist; a last program that is half empty has more.",
    earns=1,
)(
    edited(
        _plan_rows, ("programs * per_program * block - rows * columns", "rows * (block - columns)")
    )
)
plan_rows.misconception(
    "the lanes of one program",
    "masked lanes are counted as where there is one program alone.",
    earns=0,
)(
    edited(
        _plan_rows,
        ("programs * per_program * block - rows * columns", "per_program * (block - columns)"),
    )
)
plan_rows.misconception(
    "programs rounded down",
    "rows that do not fill a program get none.",
    earns=1,
)(edited(_plan_rows, ("triton.cdiv(rows, per_program)", "rows // per_program")))
plan_rows.misconception(
    "a tile of lanes",
    "a tile is taken to hold 4096 lanes, whatever the bytes of each.",
    earns=0,
)(edited(_plan_rows, ("4096 // (block * itemsize)", "4096 // block")))
plan_rows.misconception(
    "one row a program",
    "each program gets one row, however narrow the rows are.",
    earns=1,
)(edited(_plan_rows, ("max(1, 4096 // (block * itemsize))", "1")))

plan_rows.misconception(
    "a tile of real numbers",
    "rows are fitted into a tile without their masked lanes.",
    earns=1,
)(edited(_plan_rows, ("(block * itemsize)", "(columns * itemsize)")))
plan_rows.misconception(
    "no more than there are",
    "a program takes no more rows than the matrix has, where more fit into a tile.",
    earns=1,
)(edited(_plan_rows, ("4096 // (block * itemsize))", "min(4096 // (block * itemsize), rows))")))
plan_rows.misconception(
    "one program more",
    "there is a program more, whether rows are left for it or not.",
    earns=0,
)(edited(_plan_rows, ("triton.cdiv(rows, per_program)", "rows // per_program + 1")))


@plan_rows.alternate("by bits and negative division")
def _(rows, columns, itemsize):
    block = 1 << (columns - 1).bit_length()
    lanes = 4096 // itemsize
    per_program = lanes // block or 1
    programs = -(-rows // per_program)
    inside = rows * columns
    return (programs, per_program, block, programs * per_program * block - inside)


@plan_rows.alternate("counted up, and the lanes one kind after the other")
def _(rows, columns, itemsize):
    block = 1
    while block < columns:
        block *= 2
    per_program = 1
    while 2 * per_program * block * itemsize <= 4096:
        per_program *= 2
    programs, left = divmod(rows, per_program)
    missing = 0
    if left:
        programs += 1
        missing = per_program - left
    return programs, per_program, block, rows * (block - columns) + missing * block


plan_rows.equivalent(
    ("4096 //", "4097 //"),
    ("<= 4096", "<= 4097"),
    because="a row's bytes are a power of two, from 2 on",
)
plan_rows.equivalent(
    ("(columns - 1).bit_length()", "(1 - columns).bit_length()"),
    because="the sign has no bit",
)
