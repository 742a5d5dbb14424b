"""Lab 07, exercise 5: How large a step?"""

import math

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Check, case

schedule = Check(
    "schedule",
    parts={"the warm-up": 1, "the cosine": 1, "clipped": 1, "left as it is": 1},
    reads="How far to step",
    tolerance=Tolerance(1e-5, 1e-8, "float32 sums; torch adds 10⁻⁶ to the norm"),
)


@schedule.reference
class _:
    def lr_at(step, steps, warmup, peak, floor):
        climb = [peak * k / warmup for k in range(1, warmup + 1)]
        left = steps - warmup - 1
        fall = [(1 + math.cos(math.pi * k / left)) / 2 for k in range(left + 1)]
        rates = climb + [floor + (peak - floor) * share for share in fall]
        return rates[step] if step < steps else float(floor)

    def clip(grads, max_norm):
        numbers = [n for g in grads if g is not None for n in g.double().flatten().tolist()]
        norm = math.sqrt(sum(n * n for n in numbers))
        if math.isnan(norm) or math.isinf(norm):
            return norm, None
        factor = min(1.0, max_norm / norm) if norm else 1.0
        return norm, [None if g is None else g * factor for g in grads]


@schedule.cases
def _(draw):
    warm, cosine, clipped, left = schedule.parts
    for warmup in (1, 2, draw.integer(3, 9)):
        steps, peak = warmup + draw.integer(2, 20), draw.choice((0.5, 3e-3, 2.0))
        for step in {0, warmup - 1, warmup}:
            asked = step, steps, warmup, peak, peak / draw.integer(2, 20)
            shown = f"step {step} of {steps}, warm-up {warmup}"
            yield case(warm, *asked, of="lr_at", shown=shown)
    for warmup in (3, 6):  # with a floor that the first steps of the warm-up are below
        for step in range(warmup + 1):
            shown = f"step {step} of 20, warm-up {warmup}"
            yield case(warm, step, 20, warmup, 0.5, 0.25, of="lr_at", shown=shown)
    for warmup in (0, 1, draw.integer(3, 9)):
        for after in (2, 3, draw.integer(8, 20)):
            steps, peak = warmup + after, draw.choice((0.5, 3e-3, 2.0))
            floor = draw.choice((0.0, peak / 10, peak / 4))
            places = {warmup, warmup + 1, warmup + after // 2, steps - 1, steps, steps + 7}
            for step in sorted(places):
                shown = f"step {step} of {steps}, warm-up {warmup}"
                asked = step, steps, warmup, peak, floor
                yield case(cosine, *asked, of="lr_at", shown=shown)

    def gradients(*shapes):
        return [None if shape is None else draw.tensor(shape) + 2 for shape in shapes]

    shapes = [[(4,), (2, 3)], [(3,)], [(2, 2), None, (), (2, 1, 3)], [None, (5,), (1,)]]
    for some in shapes:
        found = gradients(*some)
        norm = math.sqrt(sum(g.double().square().sum().item() for g in found if g is not None))
        said = f"{len(some)} gradients" if len(some) > 1 else "one gradient"
        for share in (0.9, 0.25):
            asked = found, norm * share
            yield case(clipped, *asked, of="clip", shown=f"{said}, too long")
        for share in (1.125, 4.0):
            asked = found, norm * share
            yield case(left, *asked, of="clip", shown=f"{said}, short enough")
    # each gradient alone is short enough, but all gradients together are not
    yield case(clipped, [torch.full((4,), 1.0), torch.full((4,), -1.0)], 2.5, of="clip")
    yield case(clipped, [torch.tensor([-3.0, 0.0]), torch.tensor([0.0])], 1.0, of="clip")
    yield case(left, [torch.zeros(3), None], 1.0, of="clip", shown="zeros")
    yield case(left, [None, None], 1.0, of="clip", shown="no gradients at all")
    for bad in (math.inf, -math.inf, math.nan):
        found = gradients((3,), (2,))
        found[draw.integer(0, 1)][1] = bad
        yield case(left, found, 1.0, of="clip", shown=f"with {bad} in it")
