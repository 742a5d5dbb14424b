"""Lab 09, exercise 9: The report"""

import math

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.lab_solution import lab_solution
from utils.instruments.traces import recorded_step
from utils.minigpt import MiniGPTConfig, parameter_count, parameter_shapes

report = Check(
    "report",
    parts={
        "the first operator": 1,
        "Amdahl": 1,
        "Python": 1,
        "FLOP/s and MFU": 1,
        "hours": 1,
    },
    reads="One step, from end to end",
    tolerance=Tolerance(1e-6, 1e-12, "sums in another order"),
)


@report.reference
def _(table, config, tokens, peak_flops):
    step = table["step"]
    seconds = step[2] / 1e9 / step[1]
    own = sorted((row[3], name) for name, row in table.items() if row[0] == "op")[-1]
    unused = config.d_model * (config.vocab_size + config.context)
    speed = 6 * (parameter_count(config) - unused) * tokens / seconds
    labels = [row[3] for row in table.values() if row[0] == "range"]
    return {
        "operator": own[1],
        "share": own[0] / step[2],
        "bound": step[2] / (step[2] - own[0]),
        "python": sum(labels) / step[2],
        "flops": speed,
        "mfu": speed / peak_flops,
        "hours": 1e9 / (tokens / seconds) / 3600,
    }


def _recorded(draw, steps):
    """The table of the recorded step as if several steps were recorded, with random times for each name."""
    rows, stack = {}, []
    events = sorted(recorded_step().events, key=lambda event: (event.start, -event.duration))
    factor = {}
    for event in events:
        if event.name not in factor:
            factor[event.name] = draw.integer(80, 160) / 100
    own = [event.duration for event in events]
    parents = []
    for at, event in enumerate(events):
        while stack and events[stack[-1]].end <= event.start:
            stack.pop()
        parents.append(stack[-1] if stack else None)
        if stack:
            own[stack[-1]] -= event.duration
        stack.append(at)
    own = [round(steps * factor[e.name] * o) for e, o in zip(events, own, strict=True)]
    whole = list(own)
    for at in reversed(range(len(events))):
        if parents[at] is not None:
            whole[parents[at]] += whole[at]
    for at, event in enumerate(events):
        kind, calls, total, self_time = rows.get(event.name, (event.kind, 0, 0, 0))
        rows[event.name] = kind, calls + steps, total + whole[at], self_time + own[at]
    return rows


@report.cases
def _(draw):
    first, amdahl, python, flops, hours = report.parts
    entries = {
        first: ("operator", "share"),
        amdahl: ("bound",),
        python: ("python",),
        flops: ("flops", "mfu"),
        hours: ("hours",),
    }

    def asked(part, table, config, tokens, peak_flops, shown):
        right = _report(table, config, tokens, peak_flops)
        known = [
            (entry, number, words)
            for entry, number, words in other_numbers(right, table, config, tokens, peak_flops)
            if entry in entries[part] and not math.isclose(number, right[entry], rel_tol=1e-5)
        ]

        def play(subject):
            came = subject(table, config, tokens, peak_flops)
            found = {entry: came[entry] for entry in entries[part]}
            kind = table.get(found.get("operator"), ("op",))[0] if part == first else "op"
            facts = {"an op": kind == "op"}
            for at, (entry, number, _) in enumerate(known):
                is_float = isinstance(found[entry], float)
                facts[f"fact {at}"] = not (is_float and math.isclose(found[entry], number, rel_tol=1e-7))
            return facts | found

        places = {f"['fact {at}']": words for at, (_, _, words) in enumerate(known)}
        places["['an op']"] = "The named row is a range and not an op."
        names = {"operator": "the operator's name", "python": "Python's share", "flops": "FLOP/s", "mfu": "the MFU"}
        places |= {f"['{entry}']": names.get(entry, f"the {entry}") for entry in entries[part]}
        return Case(part, play, shown=shown, places=places)

    def other_numbers(right, table, config, tokens, peak_flops):
        """Yield (entry, number, description) for typical wrong numbers."""
        _, steps, whole, own = table["step"]
        share, python, speed, hours = (right[name] for name in ("share", "python", "flops", "hours"))
        shapes = parameter_shapes(config)
        size = parameter_count(config) - config.d_model * (config.vocab_size + config.context)
        head = sum(math.prod(shape) for name, shape in shapes.items() if "head" in name)
        words = config.d_model * config.vocab_size
        yield "share", share * steps, "The share is too large: it is multiplied by the number of steps."
        yield "share", table[right["operator"]][2] / whole, "The share is computed from the operator's total time, not from its self time."
        yield "bound", 1 + share, "The bound is 1 plus the share, not 1 / (1 - share)."
        yield "bound", 1 / (1 - share / 2), "The bound assumes that the operator still takes half of its time. It should take no time."
        total = table[right["operator"]][2] / whole
        if total < 1:
            yield "bound", 1 / (1 - total), "The bound is computed from the operator's total time, not from its self time."
        yield "python", 1 - python, "Python's share is 1 minus the right value. That is the share of the time in operators."
        yield "python", python * whole / 1e9, "Python's share is a time in seconds and not a share."
        for entry, number, what in (("flops", speed, "FLOP/s are"), ("mfu", right["mfu"], "The MFU is")):
            yield entry, number * steps, f"{what} too large: multiplied by the number of steps."
            yield entry, number / 2, f"{what} half of the right value. The right value counts 6 · N for each token."
            yield entry, number / 1000, f"{what} too small by a factor of 1000."
            yield entry, number * 1000, f"{what} too large by a factor of 1000."
            yield entry, number * whole / own, f"{what} computed from the step's self time, not from its total."
            yield entry, number * (size - head) / size, f"{what} computed for a model without its head."
            yield entry, number * (size + words) / size, f"{what} computed for all parameters except the position embedding."
        yield "mfu", 1 / right["mfu"], "The MFU is the peak divided by the FLOP/s. It should be the FLOP/s divided by the peak."
        yield "hours", hours * tokens, "The hours are computed for 10⁹ steps, not for 10⁹ tokens."
        yield "hours", float(math.floor(hours)), "The hours are rounded down to a whole number."
        yield "hours", 1e9 * 6 * size / peak_flops / 3600, "The hours are computed for a machine that reaches its peak."
        yield "hours", hours / steps, "The hours are too few: divided by the number of steps."
        yield "hours", hours * 1000, "The hours are too many by a factor of 1000."
        yield "hours", hours / 1000, "The hours are too few by a factor of 1000."
        yield "hours", hours * own / whole, "The hours are computed from the step's self time, not from its total."

    def small(steps=1):
        """A table of a few rows, with times that are consistent."""
        one, two, three, four = (1000 * time for time in draw.sample(range(10, 60), 4))
        labels = [1000 * label for label in draw.sample(range(1, 12), 4)]
        parts = {
            "aten::addmm": ("op", 8, one + 500, one),
            "aten::linear": ("op", 8, one + 900, 400),
            "aten::mm": ("op", 4, two + 100, two + 100),
            "aten::copy_": ("op", 3, three, three),
            "AddmmBackward0": ("op", 4, two + four, four - 300),
        }
        ranges = {"forward": labels[1], "backward": labels[2], "Optimizer.step#AdamW.step": labels[3]}
        whole = sum(row[3] for row in parts.values()) + sum(labels)
        table = {name: ("range", steps, label + whole // 5, label) for name, label in ranges.items()}
        return {"step": ("range", steps, whole, labels[0]), **parts, **table}

    def config(**how):
        heads = draw.choice((1, 2, 4))
        sizes = {
            "vocab_size": draw.integer(20, 700), "d_model": heads * draw.integer(4, 16), "n_heads": heads,
            "n_layers": draw.integer(1, 5), "d_ff": draw.integer(16, 99), "context": draw.integer(8, 40),
        }  # fmt: skip
        return MiniGPTConfig(**(sizes | how))

    real = recorded_step()
    for part in report.parts:
        for steps in (1, draw.integer(2, 5)):
            table, tokens = small(steps), draw.integer(2, 600)
            if steps > 1:  # the step's row need not be the first
                table = dict(reversed(table.items()))
            yield asked(part, table, config(), tokens, 1e9 * draw.integer(1, 90), f"{len(table)} rows, {steps} step{'s' * (steps > 1)}")
        steps = draw.integer(2, 4)
        table = _recorded(draw, steps)
        tokens = math.prod(real.batch)
        shown = f"the table of {steps} recorded steps, with new random times"
        yield asked(part, table, real.config, tokens, 5e10, shown)
    # a range with more self time than every operator
    table = small()
    own, more = table["forward"][3], 10**5
    table["forward"] = ("range", 1, table["forward"][2] + more, own + more)
    table["step"] = ("range", 1, table["step"][2] + more, table["step"][3])
    for part in (first, amdahl, python):
        yield asked(part, table, config(), 10, 1e9, "a range with a long self time")
    # the op with the largest self time is not from aten, and another op has the largest total time
    table = small()
    more = 10**5 - table["AddmmBackward0"][3]
    table["AddmmBackward0"] = ("op", 4, 10**5 + 500, 10**5)
    table["aten::linear"] = ("op", 8, 10**5 + 900, table["aten::linear"][3])
    table["step"] = ("range", 1, table["step"][2] + more, table["step"][3])
    for part in (first, amdahl):
        yield asked(part, table, config(), 10, 1e9, "a node of autograd takes longest")
    # a single layer, and no square weight, so that each term makes a difference
    one = MiniGPTConfig(vocab_size=draw.integer(30, 60), d_model=8, n_heads=2, n_layers=1, d_ff=draw.integer(9, 29), context=draw.integer(5, 20))
    yield asked(flops, small(), one, 7, 1e9, "one layer")


_report = lab_solution(__name__, "report")
