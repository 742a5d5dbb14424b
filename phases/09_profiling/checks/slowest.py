"""Lab 09, exercise 1: A profile of your own"""

from torch.profiler import ProfilerActivity, profile, schedule

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check

slowest = Check(
    "slowest",
    parts={"the operator": 1, "share and calls": 1, "what is recorded": 1, "the schedule": 1},
    reads="A trace, and what looking costs",
    tolerance=Tolerance(2e-3, 1e-6, "starts and ends in a trace are rounded to whole nanoseconds"),
)


@slowest.reference
def _(step, wait, warmup, active):
    """Add up the single events of the profile that comes at the end of the cycle."""
    own, count = {}, {}

    def add(prof):
        for event in prof.events():
            if not event.is_user_annotation:
                own[event.name] = own.get(event.name, 0) + event.self_cpu_time_total
                count[event.name] = count.get(event.name, 0) + 1

    plan = schedule(wait=wait, warmup=warmup, active=active, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=add) as prof:
        for _ in range(wait + warmup + active):
            step()
            prof.step()
    name = max(own, key=own.get)
    return {"operator": name, "share": own[name] / sum(own.values()), "calls": count[name] / active}


@slowest.cases
def _(draw):
    operator, share, recorded, timing = slowest.parts

    def asked(part, calls, costs, phases, shown, label=""):
        costs = {name: 1000 * cost for name, cost in costs.items()}
        labels = {label, "ProfilerStep*", *(f"ProfilerStep#{n}" for n in range(20))} - {""}

        def play(subject):
            came = subject.drive("profiling:profiled", calls, costs, *phases, label)
            if part == timing:
                return {"calls": len(came["states"]), "states": came["states"]}
            found = came["found"]
            if not isinstance(found, dict):
                return found
            kept = {key: float(x) if type(x) is int else x for key, x in found.items()}
            if part == operator:
                kept = {"operator": kept.get("operator")}
            name, share = found.get("operator"), kept.get("share", 0.5)
            facts = {"no label": not (isinstance(name, str) and name in labels)}
            if part != operator:
                facts["a share"] = not (type(share) is float and not 0 <= share <= 1 + 1e-6)
            return facts | kept

        places = {
            "['no label']": "The returned operator is a label and not an operator.",
            "['a share']": "The share is not between 0 and 1.",
            "['calls']": "the operator's calls in a step",
            "['operator']": "the operator",
            "['share']": "the operator's share",
            **{
                f"['states'][{n}]": f"During call {n + 1} of the step, the profiler is in the wrong phase."
                for n in range(sum(phases))
            },
        }
        if part == timing:
            places["['calls']"] = "The code does not call the step `wait + warmup + active` times."
        wait, warmup, active = phases
        words = f"wait {wait}, warmup {warmup}, active {active}; {shown}"
        return Case(part, play, shown=words, places=places)

    def k(low=2, high=5):
        return draw.integer(low, high)

    n, small, large = k(2, 4), k(2, 4), k(20, 30)
    # which operator has the largest self time
    inside = {"aten::softmax": small, "aten::_softmax": large, "aten::exp": 12, "aten::mm": 9}
    mixed = {"softmax": n + 1, "exp": n + 2, "mm": 1}
    yield asked(operator, [mixed] * 4, inside, (1, 1, 2), "softmax with _softmax inside, exp, mm")
    layer = {"aten::linear": small, "aten::addmm": large, "aten::tanh": 6}
    yield asked(operator, [{"tanh": 2, "linear": n}] * 3, layer, (0, 1, 2), "linear with addmm inside, tanh")
    outer = {"aten::stack": large, "aten::cat": small, "aten::exp": 5}
    yield asked(operator, [{"stack": n, "exp": 3}] * 3, outer, (1, 0, 2), "stack with cat inside, and cat does little itself")
    often = {"aten::mm": 50, "aten::tanh": 9}
    yield asked(operator, [{"mm": 1, "tanh": 12 + n}] * 3, often, (0, 1, 2), "a few long calls, and many short calls that take longer together")
    seldom = {"aten::mm": 90 + n, "aten::tanh": 4, "aten::exp": 1}
    yield asked(operator, [{"exp": 9, "mm": 1, "tanh": 5}] * 3, seldom, (1, 1, 1), "one long call, and many short calls that take less together")
    named = {"forward": 900, "aten::softmax": small, "aten::_softmax": 10 + n, "aten::mm": 7}
    yield asked(operator, [{"mm": 2, "softmax": 2}] * 3, named, (1, 1, 1), "softmax with _softmax inside, in a label with a long self time", "forward")
    for label in ("attention", "my::block"):
        named = {label: 900, "aten::tanh": 10 + n, "aten::mm": 7}
        yield asked(operator, [{"mm": 2, "tanh": 2}] * 3, named, (0, 1, 2), f"in a label, `{label}`, with a long self time", label)
    gaps = {"ProfilerStep*": 700, "aten::exp": 10 + n, "aten::mm": 7}
    yield asked(operator, [{"mm": 2, "exp": 2}] * 4, gaps, (1, 1, 2), "steps with a long self time")
    numpy = {"BlendBackward": 80, "Blend": 3, "aten::exp": 30 + n}
    yield asked(operator, [{"exp": 2, "blend": 1}] * 3, numpy, (0, 1, 2), "a node of autograd")
    engine = {"autograd::engine::evaluate_function: BlendBackward": 80, "BlendBackward": 3, "aten::exp": 30 + n}
    yield asked(operator, [{"exp": 2, "blend": 1}] * 3, engine, (0, 1, 2), "a node of autograd, and the engine's operator around it")
    shapes = [{"exp": 3, "exp of a row": 3, "tanh": 4}] * 3
    yield asked(operator, shapes, {"aten::exp": 10 * n, "aten::tanh": 12 * n}, (1, 1, 1), "one operator with inputs of two shapes")
    turns = [{"exp": 5}, {"exp": 5}, {"tanh": 8}]
    yield asked(operator, turns, {"aten::exp": 10, "aten::tanh": 10}, (0, 0, 3), "steps of two kinds, and the last step is the different one")
    yield asked(operator, turns[::-1], {"aten::exp": 10, "aten::tanh": 10}, (0, 0, 3), "steps of two kinds, and the first step is the different one")

    # shares and calls
    uneven = [{"exp": n, "softmax": 1}, {"exp": 1, "softmax": 2}, {"exp": 2 * n + 3, "softmax": 4}]
    costs = {"aten::exp": 20, "aten::softmax": 9, "aten::_softmax": 8}
    yield asked(share, uneven, costs, (0, 0, 3), "steps with more and with less work")
    yield asked(share, uneven, costs, (0, 1, 2), "steps with more and with less work")
    yield asked(share, uneven[1:], {**costs, "forward": 200, "ProfilerStep*": 300}, (0, 1, 1), "in a label with a long self time", "forward")
    half = [{"mm": 1, "tanh": 1}] * 2 + [{"mm": 1}, {"tanh": 2}, {"tanh": 1}, {"tanh": 1}]
    yield asked(share, half, {"aten::mm": 200 + n, "aten::tanh": 9}, (0, 1, 5), "an operator that runs only in some steps")
    yield asked(share, [{"mm": n}] * 2, {"aten::mm": large}, (0, 1, 1), "only one operator")
    yield asked(share, [{"blend": n}] * 3, {"BlendBackward": 90, "Blend": 30}, (1, 1, 1), "a node of autograd")

    # which calls are recorded: in most cases, one of the first calls builds something
    tanh = k(9, 12)
    lazy = {"aten::sort": k(700, 999), "aten::exp": 2 * tanh, "aten::tanh": tanh}

    def steps(building, count):
        """Calls of a step: each call does more than the last. Calls in ``building`` also build something."""
        return [
            {"exp": at + 1, "tanh": 2 * at + 1} | ({"sort": 5} if at in building else {})
            for at in range(count)
        ]

    w, u, a = k(1, 2), k(1, 2), k(2, 3)
    yield asked(recorded, steps({0}, w + u + a), lazy, (w, u, a), "the first call builds something")
    yield asked(recorded, steps({w + u - 1}, w + u + a), lazy, (w, u, a), "the last call of the warm-up builds something")
    yield asked(recorded, steps({w + u}, w + u + a), lazy, (w, u, a), "the first recorded call builds something")
    yield asked(recorded, steps({w + u + a - 1}, w + u + a), lazy, (w, u, a), "the last recorded call builds something")
    yield asked(recorded, steps({0, 1}, 2 + a), lazy, (0, 2, a), "the warm-up builds something")
    yield asked(recorded, steps({0, 1}, 2 + a), lazy, (2, 0, a), "the calls before the recording build something")
    yield asked(recorded, steps({0}, a), lazy, (0, 0, a), "the first call, which is recorded, builds something")
    yield asked(recorded, steps({0}, 1), lazy, (0, 0, 1), "one call, which is recorded, builds something")

    # what the profiler does while the step runs
    for phases in ((w, u, a), (2, 1, 1), (0, u, a), (w, 0, a), (0, 0, 1), (0, 0, a), (3, 2, 2)):
        yield asked(timing, steps((), sum(phases)), lazy, phases, "the phases of the profiler")
