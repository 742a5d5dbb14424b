"""Lab 05, exercise 7: The time that memory allows"""

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check

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
            "[2]": "The answer is `compute`, but moving the bytes takes as long or longer.",
            "[3]": "The answer is `memory`, but computing takes longer than moving the bytes.",
            "[4]": "the seconds",
            "[5]": "the word for the longer time",
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
