"""Lab 07, exercise 5: How large a step?"""

import math

import torch

from utils.checks.compare import Tolerance
from utils.checks.exercise import Check, case, edited
from utils.checks.lab_solution import lab_solution

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
    # each is short enough alone, and all together are not
    yield case(clipped, [torch.full((4,), 1.0), torch.full((4,), -1.0)], 2.5, of="clip")
    yield case(clipped, [torch.tensor([-3.0, 0.0]), torch.tensor([0.0])], 1.0, of="clip")
    yield case(left, [torch.zeros(3), None], 1.0, of="clip", shown="zeros")
    yield case(left, [None, None], 1.0, of="clip", shown="no gradients at all")
    for bad in (math.inf, -math.inf, math.nan):
        found = gradients((3,), (2,))
        found[draw.integer(0, 1)][1] = bad
        yield case(left, found, 1.0, of="clip", shown=f"with {bad} in it")


lr_at = lab_solution(__name__, "schedule", "lr_at")
clip = lab_solution(__name__, "schedule", "clip")


def _misconception(name, explanation, earns, function, *edits):
    wrong = {function.__name__: edited(function, *edits)}
    schedule.misconception(name, explanation, earns=earns)(wrong)


_misconception(
    "the warm-up begins at 0",
    "the first step has a rate of 0, so it changes nothing, and all of the warm-up is a step late.",
    3,
    lr_at,
    ("(step + 1) / warmup", "step / warmup"),
)
_misconception(
    "no warm-up",
    "the rate is the peak from the first step on.",
    3,
    lr_at,
    ("peak * (step + 1) / warmup", "peak"),
)
_misconception(
    "the floor forgotten",
    "the rate goes down to 0 and not to the floor.",
    3,
    lr_at,
    ("floor + (peak - floor) *", "peak *"),
)
_misconception(
    "the floor added on top",
    "the cosine begins above the peak, by the floor.",
    2,
    lr_at,
    ("(peak - floor)", "peak"),
)
_misconception(
    "the floor is reached a step late",
    "the last step is still above the floor: the cosine is stretched by one step.",
    3,
    lr_at,
    ("(steps - 1 - warmup)", "(steps - warmup)"),
)
_misconception(
    "the cosine from step 0",
    "the cosine does not begin where the warm-up ends, but at step 0.",
    2,
    lr_at,
    ("(step - warmup) / (steps - 1 - warmup)", "step / (steps - 1)"),
)
_misconception(
    "up again",
    "beyond the last step the cosine goes on, and the rate climbs again.",
    3,
    lr_at,
    ("min(1.0, (step - warmup) / (steps - 1 - warmup))", "(step - warmup) / (steps - 1 - warmup)"),
)
_misconception(
    "a straight line",
    "the rate falls by the same amount in each step.",
    3,
    lr_at,
    ("(1 + math.cos(math.pi * done)) / 2", "(1 - done)"),
)
_misconception(
    "each gradient alone",
    "each tensor is clipped by its own norm, so their directions change against each other.",
    3,
    clip,
    (
        "[None if g is None else g * factor for g in grads]",
        "[None if g is None else g * min(1.0, max_norm / max(1e-12, g.norm().item())) for g in grads]",
    ),
)
_misconception(
    "small gradients enlarged",
    "all gradients get the norm `max_norm`, and small ones are made longer.",
    3,
    clip,
    ("max_norm / norm if norm > max_norm else 1.0", "max_norm / norm if norm else 1.0"),
)
_misconception(
    "number by number",
    "each number is cut off at `max_norm`, and the norm of all is not looked at.",
    3,
    clip,
    ("g * factor", "g.clamp(-max_norm, max_norm)"),
)
_misconception(
    "the norm without its root",
    "the norm that is returned and clipped by is its own square.",
    2,
    clip,
    ("math.sqrt(sum((g.double().square().sum().item() for g in grads if g is not None)))", "sum((g.double().square().sum().item() for g in grads if g is not None), 0.0)"),
)
_misconception(
    "the square of a sum",
    "each gradient's numbers are added up and then squared, and not squared and then added up.",
    2,
    clip,
    ("g.double().square().sum()", "g.double().sum().square()"),
)
_misconception(
    "a matrix's spectral norm",
    "of a matrix the largest singular value is taken, and not the norm of all its numbers.",
    2,
    clip,
    (
        "g.double().square().sum()",
        "(torch.linalg.matrix_norm(g.double(), 2) if g.dim() == 2 else g.double().norm()).square()",
    ),
)
_misconception(
    "the norm of afterwards",
    "the norm that is returned is that of the clipped gradients.",
    3,
    clip,
    ("return (norm, [", "return (min(norm, max_norm), ["),
)
_misconception(
    "infinity clipped",
    "gradients with an infinite norm are clipped like others, and become 0 and NaN.",
    3,
    clip,
    ("if not math.isfinite(norm):", "if math.isnan(norm):"),
)
_misconception(
    "NaN goes through",
    "gradients with a NaN are handed on as they are.",
    3,
    clip,
    ("if not math.isfinite(norm):", "if math.isinf(norm):"),
)


@schedule.misconception(
    "clipped in place",
    "what was given is changed: the gradients, or the list that holds them.",
    earns=3,
)
class _:
    def clip(grads, max_norm):
        norm = math.sqrt(sum(g.double().square().sum().item() for g in grads if g is not None))
        if not math.isfinite(norm):
            return norm, None
        for g in grads:
            if g is not None and norm > max_norm:
                g.mul_(max_norm / norm)
        return norm, grads


@schedule.alternate("interpolation, and one long vector")
class _:
    def lr_at(step, steps, warmup, peak, floor):
        if step >= steps - 1:
            return float(floor)
        if step + 1 <= warmup:
            return (step + 1) / warmup * peak
        angle = math.pi * (step - warmup) / (steps - warmup - 1)
        share = math.cos(angle / 2) ** 2
        return peak * share + floor * (1 - share)

    def clip(grads, max_norm):
        there = [g.reshape(-1) for g in grads if g is not None]
        norm = torch.cat(there).norm().item() if there else 0.0
        if norm - norm != 0:
            return norm, None
        shrunk = min(1.0, max_norm / max(norm, 1e-30))
        return norm, [g if g is None else shrunk * g for g in grads]


@schedule.alternate("torch's own clipping, on copies")
class _:
    def lr_at(step, steps, warmup, peak, floor):
        table = [peak * (k + 1) / warmup for k in range(warmup)]
        for k in range(steps - warmup):
            share = 0.5 + 0.5 * math.cos(math.pi * k / (steps - warmup - 1))
            table.append(floor + share * (peak - floor))
        return table[min(step, steps - 1)]

    def clip(grads, max_norm):
        leaves = [None if g is None else torch.nn.Parameter(g.clone()) for g in grads]
        for leaf, g in zip(leaves, grads):
            if g is not None:
                leaf.grad = g.clone()
        there = [leaf for leaf in leaves if leaf is not None]
        norm = torch.nn.utils.clip_grad_norm_(there, max_norm).item()
        if not math.isfinite(norm):
            return norm, None
        return norm, [None if leaf is None else leaf.grad for leaf in leaves]


schedule.equivalent(
    (".sum().item()", ".sum()"),
    because="a sum of tensors is a tensor, of which math.sqrt takes the number",
)
schedule.equivalent(
    ("g.double().square()", "g.square()"),
    ("g.double().square()", "g.float().square()"),
    because="the gradients are float32, and their squares fit into it",
)
schedule.equivalent(
    ("norm > max_norm", "norm >= max_norm"),
    because="where the two are equal the factor is 1",
)
schedule.equivalent(
    ("step >= steps - 1", "step > steps - 1"),
    ("step >= steps - 1", "step >= steps"),
    ("step >= steps - 1", "step >= steps - 0"),
    because="in the last step the cosine gives the floor itself",
)
schedule.equivalent(("float(floor)", "floor"), because="the floor is a float")
schedule.equivalent(
    ("math.pi * (step - warmup) /", "math.pi * (warmup - step) /"),
    ("(steps - warmup - 1)", "(1 - (steps - warmup))"),
    because="a cosine is the same for an angle and its negative",
)
schedule.equivalent(
    ("1e-30", "2e-30"),
    because="it only keeps a norm of 0 from being divided by",
)
schedule.equivalent(
    ("range(steps - warmup)", "range(steps - warmup + 1)"),
    ("range(steps - warmup)", "range(steps + warmup)"),
    ("range(steps - warmup)", "range(steps)"),
    because="what the table has beyond the last step nobody reads",
)
schedule.equivalent(
    ("torch.nn.Parameter(g.clone())", "g.clone()"),
    ("torch.nn.Parameter(g.clone())", "torch.nn.Parameter(g)"),
    because="only its gradient is looked at and written to",
)
