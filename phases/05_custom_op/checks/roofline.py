"""Lab 05, exercise 7: The time that memory allows"""

import torch

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution

roofline = Check(
    "roofline",
    parts={"bytes of the forward": 1, "bytes of the backward": 1, "the time": 1},
    reads="How fast can it be",
    tolerance=Tolerance(1e-9, 0.0, "a few divisions in another order"),
)


@roofline.reference
class _:
    def bytes_moved(rows, columns, dtype, passes, backward):
        numbers = 0
        for _read in range(passes):
            numbers += rows * columns  # x, or the gradient
            numbers += rows * columns if backward else 0  # y
        numbers += rows * columns  # the result
        return numbers * torch.empty(0, dtype=dtype).element_size()

    def least_seconds(moved, elements, backward, bandwidth, flops):
        by_memory = moved / bandwidth
        by_arithmetic = elements * (4 if backward else 5) / flops
        if by_arithmetic > by_memory:
            return by_arithmetic, "compute"
        return by_memory, "memory"


@roofline.cases
def _(draw):
    forward, backward, time = roofline.parts
    dtypes = torch.float32, torch.float16, torch.bfloat16, torch.float64

    def moved_by(part, rows, columns, dtype, passes, is_backward, words=""):
        def play(subject):
            moved = subject["bytes_moved"](rows, columns, dtype, passes, is_backward)
            right = ((2 if is_backward else 1) * passes + 1) * rows * columns * dtype.itemsize
            return bool(moved <= right), bool(moved >= right), moved

        many = "one pass" if passes == 1 else f"{passes} passes"
        shown = words or f"{str(dtype).removeprefix('torch.')}, {many}"
        places = {"[0]": "Too many bytes are counted.", "[1]": "Too few bytes are counted."}
        return Case(part, play, "bytes_moved", shown, {**places, "[2]": "the bytes"})

    for part, is_backward in ((forward, False), (backward, True)):
        yield moved_by(part, 64, 512, torch.float32, 1, is_backward)
        for dtype in dtypes:
            rows, columns = draw.integer(2, 5000), draw.integer(3, 5000)
            for passes in (1, draw.integer(2, 3)):
                yield moved_by(part, rows, columns, dtype, passes, is_backward)
        yield moved_by(part, 0, 600, torch.float32, 1, is_backward, "no rows")
        yield moved_by(part, 1, 600, torch.float16, 1, is_backward, "one row")
        yield moved_by(part, 7, 1, torch.float16, 3, is_backward, "one column")

    def least(moved, elements, is_backward, bandwidth, flops, words):
        def play(subject):
            asked = moved, elements, is_backward, bandwidth, flops
            seconds, which = subject["least_seconds"](*asked)
            by_memory = moved / bandwidth
            by_arithmetic = elements * (4 if is_backward else 5) / flops
            right = max(by_memory, by_arithmetic)
            return (
                bool(seconds >= right * (1 - 1e-6)),
                bool(seconds <= right * (1 + 1e-6)),
                which != "compute" or by_arithmetic > by_memory,
                which != "memory" or by_memory >= by_arithmetic,
                seconds,
                which,
            )

        places = {
            "[0]": "The time is too short.",
            "[1]": "The time is too long.",
            "[2]": "Computing is said to decide, where moving takes as long or longer.",
            "[3]": "Memory is said to decide, where computing takes longer.",
            "[4]": "the seconds",
            "[5]": "which of the two decides",
        }
        return Case(time, play, "least_seconds", words, places)

    for is_backward in (False, True):
        words = "backward" if is_backward else "forward"
        for bandwidth, flops in ((4e12, 6e13), (3.35e12, 1e12), (1e11, 1e11), (2e12, 1e10)):
            elements = draw.integer(1000, 9_000_000)
            moved = elements * draw.choice((4, 6, 8, 12, 16))
            bandwidth *= draw.integer(1, 3)
            slow = (4 if is_backward else 5) * elements / flops > moved / bandwidth
            said = f"{words}, {'computing' if slow else 'moving'} takes longer"
            yield least(moved, elements, is_backward, bandwidth, flops, said)
        elements = 40 * draw.integer(1, 50)
        per_element = 4 if is_backward else 5
        even = elements * 8, elements, is_backward, 8e9, per_element * 1e9  # both take as long
        yield least(*even, f"{words}, both times equal")
        for near in (0.997, 1.003):
            almost = elements * 8, elements, is_backward, 8e9 * near, per_element * 1e9
            yield least(*almost, f"{words}, times almost equal")
        yield least(0, 0, is_backward, 8e9, 1e9, "nothing at all")


bytes_moved = lab_solution(__name__, "roofline", "bytes_moved")
least_seconds = lab_solution(__name__, "roofline", "least_seconds")


def _wrong(function, *edits):
    """The exercise with one of its two functions gone wrong, the other right."""
    return {function.__name__: edited(function, *edits)}


_BYTES = "(passes * read + 1) * rows * columns * dtype.itemsize"
roofline.misconception(
    "what is written costs nothing",
    "the result is not counted: it has to be stored, too.",
    earns=1,
)(_wrong(bytes_moved, (_BYTES, "passes * read * rows * columns * dtype.itemsize")))
roofline.misconception(
    "one pass, always",
    "each input is counted as if it was read once, however many passes there are.",
    earns=1,
)(_wrong(bytes_moved, (_BYTES, "(read + 1) * rows * columns * dtype.itemsize")))
roofline.misconception(
    "four bytes each",
    "every number is counted with the four bytes of a float32.",
    earns=1,
)(_wrong(bytes_moved, ("dtype.itemsize", "4")))
roofline.misconception(
    "lanes move bytes",
    "masked lanes are counted, and nothing is moved for them.",
    earns=1,
)(_wrong(bytes_moved, ("rows * columns", "rows * (1 << (columns - 1).bit_length())")))
roofline.misconception(
    "written in each pass",
    "the result is counted in each pass, and not once.",
    earns=1,
)(_wrong(bytes_moved, ("(passes * read + 1)", "passes * (read + 1)")))
roofline.misconception(
    "the backward reads one matrix",
    "the backward's bytes are those of a forward: of its two inputs one is missing.",
    earns=2,
)(_wrong(bytes_moved, ("read = 2 if backward else 1", "read = 1")))
roofline.misconception(
    "the sum of both times",
    "moving and computing are counted one after the other, as where they can't overlap.",
    earns=2,
)(_wrong(least_seconds, ("max(memory, compute)", "memory + compute")))
roofline.misconception(
    "the shorter time",
    "the time is the shorter of the two, in which the other half is not done yet.",
    earns=2,
)(_wrong(least_seconds, ("max(memory, compute)", "min(memory, compute)")))
roofline.misconception(
    "arithmetic decides",
    "the time is that of the arithmetic alone.",
    earns=2,
)(_wrong(least_seconds, ("max(memory, compute)", "compute")))
roofline.misconception(
    "five for both",
    "the backward is counted with the forward's operations.",
    earns=2,
)(_wrong(least_seconds, ("(4 if backward else 5)", "5")))

roofline.misconception(
    "one of the two read once",
    "in several passes one of a backward's inputs is counted once alone.",
    earns=2,
)(_wrong(bytes_moved, ("passes * read + 1", "passes + read")))
roofline.misconception(
    "three matrices read",
    "a backward is counted with three inputs, as where it read x, too.",
    earns=2,
)(_wrong(bytes_moved, ("2 if backward else 1", "3 if backward else 1")))
roofline.misconception(
    "as many written as read",
    "a backward's results are counted twice, and it writes one.",
    earns=2,
)(_wrong(bytes_moved, ("passes * read + 1", "passes * read + read")))
roofline.misconception(
    "passes of the forward alone",
    "a backward's inputs are counted once, however many passes there are.",
    earns=2,
)(_wrong(bytes_moved, ("passes * read", "(1 if backward else passes) * read")))
roofline.misconception(
    "four bytes or two",
    "a float64 is counted with four bytes.",
    earns=1,
)(_wrong(bytes_moved, ("dtype.itemsize", "min(dtype.itemsize, 4)")))
roofline.misconception(
    "bits",
    "what is counted is bits.",
    earns=1,
)(_wrong(bytes_moved, ("dtype.itemsize", "dtype.itemsize * 8")))
roofline.misconception(
    "memory decides",
    "the time is that of the memory alone.",
    earns=2,
)(_wrong(least_seconds, ("max(memory, compute)", "memory")))
roofline.misconception(
    "always memory",
    "it is said to be memory, whichever takes longer.",
    earns=2,
)(_wrong(least_seconds, ("'memory' if memory >= compute else 'compute'", "'memory'")))
roofline.misconception(
    "the one that waits",
    "it is said to be the other of the two, whichever takes longer.",
    earns=2,
)(
    _wrong(
        least_seconds,
        ("'memory' if memory >= compute else 'compute'", "'compute' if memory >= compute else 'memory'"),
    )
)
roofline.misconception(
    "four and five exchanged",
    "a forward is counted with four operations an element, and a backward with five.",
    earns=2,
)(_wrong(least_seconds, ("(4 if backward else 5)", "(5 if backward else 4)")))


@roofline.alternate("piece by piece")
class _:
    def bytes_moved(rows, columns, dtype, passes, backward):
        matrix = rows * columns * torch.empty(0, dtype=dtype).element_size()
        read = matrix * passes
        if backward:
            read += matrix * passes
        written = matrix
        return read + written

    def least_seconds(moved, elements, backward, bandwidth, flops):
        work = elements * 5
        if backward:
            work = elements * 4
        times = {"memory": moved / bandwidth, "compute": work / flops}
        if times["compute"] > times["memory"]:
            return times["compute"], "compute"
        return times["memory"], "memory"


@roofline.alternate("by the machine's balance")
class _:
    def bytes_moved(rows, columns, dtype, passes, backward):
        bits = torch.finfo(dtype).bits
        return rows * columns * (bits // 8) * (1 + passes + (passes if backward else 0))

    def least_seconds(moved, elements, backward, bandwidth, flops):
        work = elements * (5 - backward)
        bound = "compute" if work * bandwidth > moved * flops else "memory"
        return (work / flops if bound == "compute" else moved / bandwidth), bound


roofline.equivalent(
    ("torch.empty(0,", "torch.empty(1,"),
    because="an element has the same size, however many there are",
)
roofline.equivalent(
    ("bound == 'compute'", "bound <= 'compute'"),
    because="the other word comes later in the alphabet",
)
