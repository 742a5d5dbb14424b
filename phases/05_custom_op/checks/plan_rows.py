"""Lab 05, exercise 1: Into tiles"""


from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.words import counted

plan_rows = Check(
    "plan_rows",
    parts={"wide rows": 1, "narrow rows": 1, "the ends": 1},
    reads="One program, one row",
)


FACTS = (
            "A row has fewer lanes (the third number) than columns.",
            "The number of lanes of a row (the third number) is not a power of two.",
            "A row has too many lanes (the third number): half as many would be enough.",
            "A program takes no row.",
            "The rows of a program (the second number) don't fit into 4096 bytes.",
            "A program takes fewer rows (the second number) than fit into 4096 bytes.",
            "There are too few programs: no program takes the last rows.",
            "There are too many programs: some programs have no row.",
            "Too few masked lanes are counted: this plan has more.",
            "Too many masked lanes are counted: this plan has fewer.",
            "the plan",
)
PLACES = {f"[{at}]": words for at, words in enumerate(FACTS)}


@plan_rows.reference
def _(rows, columns, itemsize):
    """Follows the definition: each number grows until it fits."""
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

    def asked(part, rows, columns, itemsize):
        def play(subject):
            programs, each, block, masked = plan = subject(rows, columns, itemsize)
            taken = each * block * itemsize
            real = programs * each * block - rows * columns
            # Facts about the numbers. The first false fact is reported in words.
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

        size = f"{counted(rows, 'row')} of {counted(columns, 'column')}"
        each = f"{counted(itemsize, 'byte')} each"
        return Case(part, play, shown=f"{size}, {each}", places=PLACES)

    wide, narrow, ends = plan_rows.parts
    for itemsize in (2, 4, 8):
        most = 4096 // itemsize
        # no power of two, because powers of two are tested in the part `ends`
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
