"""Lab 10, exercise 7: The pipeline"""

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check, case

pipeline = Check(
    "pipeline",
    parts={"GPipe": 1, "1F1B": 1, "in flight": 1, "the bubble": 1},
    reads="The pipeline and its bubble",
    tolerance=Tolerance(1e-9, 0.0, "float64"),
)

PLACES = {
    "['each once']": "a stage should do the forward and the backward of each piece exactly once.",
    "['waits for ever']": "a stage waits for ever.",
    "['in order']": "pieces are not taken in the order of their numbers.",
    "['forwards first']": "a stage does a backward before its last forward.",
    "['seconds, backward 1']": "the seconds, if a forward and a backward take 1 second each",
    "['seconds, backward 2']": "the seconds, if a forward takes 1 second and a backward 2",
    "['too many in flight']": (
        "for each stage `s`, how many more pieces than `stages - s` are in flight"
    ),
}


@pipeline.reference
class _:
    def schedule(stages, micro, kind):
        """Simulates the pipeline: each stage does a backward as soon as it may, and otherwise a forward."""
        plans = [[] for _ in range(stages)]
        done = [{"F": 0, "B": 0} for _ in range(stages)]
        while any(d["B"] < micro for d in done):
            before = [dict(d) for d in done]
            for s in range(stages):
                forwards, backwards = before[s]["F"], before[s]["B"]
                most = micro if kind == "gpipe" else backwards + stages - s
                comes = micro if s == 0 else before[s - 1]["F"]
                back = forwards if s == stages - 1 else before[s + 1]["B"]
                may = forwards == micro or kind != "gpipe"
                if backwards < min(back, forwards) and may:
                    plans[s].append(("B", backwards))
                    done[s]["B"] += 1
                elif forwards < min(comes, micro, most):
                    plans[s].append(("F", forwards))
                    done[s]["F"] += 1
        return plans

    def bubble(stages, micro):
        return 1 - micro / (micro + stages - 1)


def _seconds(plans, backward):
    """The seconds that a pipeline needs for the plans. None if the pipeline waits for ever."""
    lasts = {"F": 1, "B": backward}
    ended, clocks, at = {}, [0] * len(plans), [0] * len(plans)
    moved = True
    while moved:
        moved = False
        for s, plan in enumerate(plans):
            while at[s] < len(plan):
                what, k = plan[at[s]]
                needs = []
                if what == "F" and s > 0:
                    needs = [("F", k, s - 1)]
                elif what == "B":
                    needs = [("F", k, s)] + ([("B", k, s + 1)] if s + 1 < len(plans) else [])
                if not all(need in ended for need in needs):
                    break
                start = max([clocks[s], *(ended[need] for need in needs)])
                clocks[s] = ended[what, k, s] = start + lasts[what]
                at[s] += 1
                moved = True
    done = all(at[s] == len(plan) for s, plan in enumerate(plans))
    return max(clocks) if done else None


def _most_in_flight(plan):
    now = most = 0
    for what, _ in plan:
        now += 1 if what == "F" else -1
        most = max(most, now)
    return most


@pipeline.cases
def _(draw):
    gpipe, turns, flight, idle = pipeline.parts

    def planned(part, stages, micro):
        kind = "gpipe" if part == gpipe else "1f1b"

        def play(subject):
            plans = [[tuple(pair) for pair in plan] for plan in subject["schedule"](stages, micro, kind)]
            every = sorted((what, k) for what in "FB" for k in range(micro))
            found = {"each once": len(plans) == stages and all(sorted(p) == every for p in plans)}
            if part == flight:
                most = [_most_in_flight(plan) for plan in plans]
                found["too many in flight"] = [max(0, most[s] - stages + s) for s in range(len(plans))]
                return found
            if part == gpipe:
                found["forwards first"] = all(
                    all(what == "F" for what, _ in plan[:micro]) for plan in plans
                )
            moves = [[k for what, k in plan if what == "F"] for plan in plans]
            if part == turns:
                moves += [[k for what, k in plan if what == "B"] for plan in plans]
            found["in order"] = all(numbers == sorted(numbers) for numbers in moves)
            seconds = [_seconds(plans, backward) for backward in (1, 2)]
            found["waits for ever"] = None in seconds
            found |= {"seconds, backward 1": seconds[0], "seconds, backward 2": seconds[1]}
            return found

        pieces = f"{micro} piece{'s' * (micro > 1)}"
        words = f"{stages} stage{'s' * (stages > 1)}, {pieces}, {kind}"
        return Case(part, play, of="schedule", shown=words, places=PLACES)

    sizes = [(1, 1), (1, 4), (2, 1), (4, 2), (2, 2), (3, 3), (4, 4), (3, 7)]
    sizes += [(4, draw.integer(5, 9)), (draw.integer(5, 7), 3), (2, draw.integer(3, 9))]
    for part in (gpipe, turns, flight):
        for stages, micro in sizes:
            yield planned(part, stages, micro)
    for stages, micro in [*sizes, (8, 64), (draw.integer(9, 64), draw.integer(65, 200))]:
        words = f"stages: {stages}, pieces: {micro}"
        yield case(idle, stages, micro, of="bubble", shown=words)
