"""Answers to lab 09, written blind: from the learner's notebook and `utils/` alone.

A wrong answer is the first right one with an edit (or a cell of its own), and names the sentence of
the lab's text that it breaks.
"""

from tests.phases import bank_09_second
from tests.phases.bank import CODE, Bank

RIGHT: dict[str, dict[str, str]] = {}
WRONG: dict[str, list[tuple]] = {}

# --- 1 · Faster, or luck? ------------------------------------------------------------------------

RIGHT["compare_runs"] = {
    "by hand": '''
def compare_runs(before, after):
    def quantile(values, p):
        ordered = sorted(values)
        place = p * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (place - low) * (ordered[high] - ordered[low])

    def three(values):
        return (quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75))

    old, new = three(before), three(after)
    verdict = "can't say"
    if len(before) >= 5 and len(after) >= 5:
        if new[2] < old[0]:
            verdict = "faster"
        elif new[0] > old[2]:
            verdict = "slower"
    return {"before": old, "after": new, "ratio": old[1] / new[1], "verdict": verdict}
''',
    "torch, in float64": '''
SHARES = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)


def compare_runs(before: list[float], after: list[float]) -> dict:
    old, new = (
        tuple(torch.tensor(runs, dtype=torch.float64).quantile(SHARES).tolist())
        for runs in (before, after)
    )
    few = min(len(before), len(after)) < 5
    if not few and new[2] < old[0]:
        verdict = "faster"
    elif not few and new[0] > old[2]:
        verdict = "slower"
    else:
        verdict = "can't say"
    return dict(before=old, after=new, ratio=old[1] / new[1], verdict=verdict)
''',
    "NumPy": '''
import numpy as np


def compare_runs(before, after):
    b = np.percentile(before, [25, 50, 75])
    a = np.percentile(after, [25, 50, 75])
    enough = len(before) > 4 and len(after) > 4
    verdicts = np.select([enough and a[2] < b[0], enough and a[0] > b[2]], [1, 2], 0)
    return {
        "verdict": ("can't say", "faster", "slower")[int(verdicts)],
        "ratio": float(b[1] / a[1]),
        "before": tuple(float(v) for v in b),
        "after": tuple(float(v) for v in a),
    }
''',
    "statistics, and one value for itself": '''
def compare_runs(before, after):
    def quartiles(x):
        if len(x) == 1:
            return (x[0],) * 3
        return tuple(statistics.quantiles(x, n=4, method="inclusive"))

    (b1, b2, b3), (a1, a2, a3) = quartiles(before), quartiles(after)
    words = {(True, False): "faster", (False, True): "slower"}
    verdict = words.get((a3 < b1, a1 > b3), "can't say")
    if len(before) < 5 or len(after) < 5:
        verdict = "can't say"
    return {"before": (b1, b2, b3), "after": (a1, a2, a3), "ratio": b2 / a2, "verdict": verdict}
''',
}
WRONG["compare_runs"] = [
    ("the other convention of quartiles", "the quantile of share p stands at place p · (n - 1)",
     "        place = p * (len(ordered) - 1)\n        low = int(place)\n",
     "        place = min(max(p * (len(ordered) + 1) - 1, 0), len(ordered) - 1)\n        low = int(place)\n"),
    ("p times n", "the quantile of share p stands at place p · (n - 1)",
     "place = p * (len(ordered) - 1)", "place = min(p * len(ordered), len(ordered) - 1)"),
    ("the nearest value", "between two places it is interpolated linearly",
     "return ordered[low] + (place - low) * (ordered[high] - ordered[low])", "return ordered[round(place)]"),
    ("the value below", "between two places it is interpolated linearly",
     "return ordered[low] + (place - low) * (ordered[high] - ordered[low])", "return ordered[low]"),
    ("the middle between two", "between two places it is interpolated linearly",
     "return ordered[low] + (place - low) * (ordered[high] - ordered[low])",
     "return ordered[low] if place == low else (ordered[low] + ordered[high]) / 2"),
    ("not sorted", "With the n values sorted", "ordered = sorted(values)", "ordered = values"),
    ("sorted where they lie", "Lists stay as they were given", "ordered = sorted(values)", "values.sort()\n        ordered = values"),
    ("after by before", "the median before by the median after", "old[1] / new[1]", "new[1] / old[1]"),
    ("the means' ratio", "the median before by the median after",
     "old[1] / new[1]", "statistics.mean(before) / statistics.mean(after)"),
    ("the best runs' ratio", "the median before by the median after", "old[1] / new[1]", "min(before) / min(after)"),
    ("a rounded ratio", "how many times as fast it is now", "old[1] / new[1]", "round(old[1] / new[1], 2)"),
    ("how much is saved", "how many times as fast it is now", "old[1] / new[1]", "1 - new[1] / old[1]"),
    ("touching is enough", "lies below the lower one of before", "new[2] < old[0]", "new[2] <= old[0]", "new[0] > old[2]", "new[0] >= old[2]"),
    ("the medians decide", "if the upper quartile of after lies below the lower one of before",
     "new[2] < old[0]", "new[1] < old[1]", "new[0] > old[2]", "new[1] > old[1]"),
    ("all runs decide", "if the upper quartile of after lies below the lower one of before",
     "new[2] < old[0]", "max(after) < min(before)", "new[0] > old[2]", "min(after) > max(before)"),
    ("quartile against median", "if the upper quartile of after lies below the lower one of before",
     "new[2] < old[0]", "new[2] < old[1]", "new[0] > old[2]", "new[0] > old[1]"),
    ("two percent decide", "`\"can't say\"` in any other case", "new[2] < old[0]", "old[1] / new[1] > 1.02", "new[0] > old[2]", "old[1] / new[1] < 0.98"),
    ("the words swapped", "`\"faster\"` if the upper quartile of after lies below",
     '"faster"', '"SLOW"', '"slower"', '"faster"', '"SLOW"', '"slower"'),
    ("slower in all other cases", "`\"can't say\"` in any other case", "elif new[0] > old[2]:", "else:"),
    ("one long list will do", "where one of the lists has fewer than five values", "len(before) >= 5 and len(after) >= 5", "len(before) >= 5 or len(after) >= 5"),
    ("ten in all", "where one of the lists has fewer than five values", "len(before) >= 5 and len(after) >= 5", "len(before) + len(after) >= 10"),
    ("five are too few", "fewer than five values", "len(before) >= 5 and len(after) >= 5", "len(before) > 5 and len(after) > 5"),
    ("four will do", "fewer than five values", "len(before) >= 5 and len(after) >= 5", "len(before) >= 4 and len(after) >= 4"),
    ("any number of runs", "where one of the lists has fewer than five values", "len(before) >= 5 and len(after) >= 5", "True"),
    ("float32", "`torch.quantile` does; float64 keeps all digits of a Python float", CODE, '''
def compare_runs(before, after):
    shares = torch.tensor([0.25, 0.5, 0.75])
    old = tuple(torch.quantile(torch.tensor(before), shares).tolist())
    new = tuple(torch.quantile(torch.tensor(after), shares).tolist())
    verdict = "can't say"
    if min(len(before), len(after)) >= 5:
        verdict = "faster" if new[2] < old[0] else "slower" if new[0] > old[2] else "can't say"
    return {"before": old, "after": new, "ratio": old[1] / new[1], "verdict": verdict}
'''),
    ("lists of quartiles", "a tuple of three floats",
     "return (quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75))",
     "return [quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75)]"),
    (
        "two values or more",
        "at least one each",
        "    old, new = three(before), three(after)\n",
        "    if 1 in (len(before), len(after)): raise ValueError('two values or more')\n    old, new = three(before), three(after)\n",
    ),
]

# --- 2 · Total and self --------------------------------------------------------------------------

RIGHT["self_times"] = {
    "a stack for each lane": '''
def self_times(events):
    calls, total, own = Counter(), Counter(), Counter()
    lanes = {}
    for event in events:
        lanes.setdefault(event.lane, []).append(event)
    for lane in lanes.values():
        lane = sorted(lane, key=lambda e: (e.start, -e.duration))
        stack = []
        for event in lane:
            while stack and stack[-1].end <= event.start:
                stack.pop()
            calls[event.name] += 1
            own[event.name] += event.duration
            if stack:
                own[stack[-1].name] -= event.duration
            if all(outer.name != event.name for outer in stack):
                total[event.name] += event.duration
            stack.append(event)
    return {name: (calls[name], total[name], own[name]) for name in calls}
''',
    "each with each": '''
def self_times(events):
    def inside(i, j):
        a, b = events[i], events[j]
        if i == j or a.lane != b.lane or a.start < b.start or a.end > b.end:
            return False
        return (a.start, a.end) != (b.start, b.end) or i > j

    everyone = range(len(events))
    outers = [[j for j in everyone if inside(i, j)] for i in everyone]
    result = {}
    for i, event in enumerate(events):
        calls, total, own = result.get(event.name, (0, 0, 0))
        nested = any(events[j].name == event.name for j in outers[i])
        children = [k for k in everyone if i in outers[k] and len(outers[k]) == len(outers[i]) + 1]
        own += event.duration - sum(events[k].duration for k in children)
        result[event.name] = (calls + 1, total + (0 if nested else event.duration), own)
    return result
''',
    "recursion over what lies inside": '''
def self_times(events: list[Event]) -> dict[str, tuple[int, int, int]]:
    found: dict[str, list[int]] = {}

    def walk(todo, end, names):
        """Take all events off `todo` that start before `end`; return how long they took."""
        spent = 0
        while todo and todo[-1].start < end:
            event = todo.pop()
            row = found.setdefault(event.name, [0, 0, 0])
            row[0] += 1
            if event.name not in names:
                row[1] += event.duration
            inside = walk(todo, event.end, names | {event.name})
            row[2] += event.duration - inside
            spent += event.duration
        return spent

    for lane in {event.lane for event in events}:
        mine = [event for event in events if event.lane == lane]
        mine.sort(key=lambda event: (event.start, -event.end))
        walk(mine[::-1], math.inf, frozenset())
    return {name: tuple(row) for name, row in found.items()}
''',
    "starts and ends in one list": '''
import collections


def self_times(events):
    marks = []
    for i, e in enumerate(events):
        marks.append((e.lane, e.start, 1, -e.duration, i))
        marks.append((e.lane, e.end, 0, 0, i))
    rows = collections.defaultdict(lambda: [0, 0, 0])
    open_now, last = [], 0
    for _, time, opens, _, i in sorted(marks):
        if open_now:
            rows[open_now[-1]][2] += time - last
        last = time
        name = events[i].name
        if opens:
            rows[name][0] += 1
            rows[name][1] += events[i].duration * (name not in open_now)
            open_now.append(name)
        else:
            open_now.pop()
    return {name: tuple(row) for name, row in rows.items()}
''',
}
WRONG["self_times"] = [
    ("all descendants are taken off", "without the events directly inside it",
     "            if stack:\n                own[stack[-1].name] -= event.duration\n",
     "            for outer in stack:\n                own[outer.name] -= event.duration\n"),
    ("nothing is taken off", "without the events directly inside it",
     "            if stack:\n                own[stack[-1].name] -= event.duration\n", ""),
    ("what touches lies inside", "where one ends as the other starts, they don't overlap", "stack[-1].end <= event.start", "stack[-1].end < event.start"),
    ("only one is closed", "one lies inside the other", "while stack and", "if stack and"),
    ("starts only", "The list has no order that you could rely on", "key=lambda e: (e.start, -e.duration)", "key=lambda e: e.start"),
    ("the list's order", "The list has no order that you could rely on",
     "        lane = sorted(lane, key=lambda e: (e.start, -e.duration))\n", ""),
    ("the shorter one first", "the longer one first where two start together", "(e.start, -e.duration)", "(e.start, e.duration)"),
    ("of two alike the later one is outside", "the one that stands earlier in the list is the outer one",
     "sorted(lane, key=lambda e: (e.start, -e.duration))", "sorted(lane[::-1], key=lambda e: (e.start, -e.duration))"),
    ("of two alike the first by name is outside", "the one that stands earlier in the list is the outer one",
     "(e.start, -e.duration))", "(e.start, -e.duration, e.name))"),
    ("two alike lie beside each other", "Of two with the same start and the same end",
     "stack[-1].end <= event.start:", "(stack[-1].end <= event.start or (stack[-1].start, stack[-1].end) == (event.start, event.end)):"),
    ("one lane", "Events of different lanes have nothing to do with each other", "lanes.setdefault(event.lane, [])", "lanes.setdefault(0, [])"),
    ("the stack is kept from lane to lane", "Events of different lanes have nothing to do with each other",
     "    for lane in lanes.values():\n", "    stack = []\n    for lane in lanes.values():\n", "        stack = []\n        for event", "        for event"),
    ("the last lane's numbers", "over all lanes", CODE, '''
def self_times(events):
    result = {}
    for lane in dict.fromkeys(event.lane for event in events):
        stack, rows = [], {}
        for event in sorted((e for e in events if e.lane == lane), key=lambda e: (e.start, -e.duration)):
            while stack and stack[-1].end <= event.start:
                stack.pop()
            row = rows.setdefault(event.name, [0, 0, 0])
            row[0] += 1
            row[1] += 0 if event.name in [outer.name for outer in stack] else event.duration
            row[2] += event.duration
            if stack:
                rows[stack[-1].name][2] -= event.duration
            stack.append(event)
        result.update({name: tuple(row) for name, row in rows.items()})
    return result
'''),
    ("the total counts all", "An event that lies inside another of its own name adds nothing to the total",
     "            if all(outer.name != event.name for outer in stack):\n                total", "            if True:\n                total"),
    ("only the parent's name", "inside another of its own name, however deep", "all(outer.name != event.name for outer in stack)",
     "not stack or stack[-1].name != event.name"),
    ("only the outermost adds", "An event that lies inside another of its own name ... adds nothing",
     "all(outer.name != event.name for outer in stack)", "not stack"),
    ("one inside its own name is no call", "how many events have the name",
     "            calls[event.name] += 1\n", "", "                total[event.name] += event.duration\n",
     "                total[event.name] += event.duration\n                calls[event.name] += 1\n"),
    ("one inside its own name has no self time", "the sum of what is left of each of their durations",
     "            own[event.name] += event.duration\n",
     "            if all(outer.name != event.name for outer in stack):\n                own[event.name] += event.duration\n"),
    ("ops alone", "Here only name, times and lane matter", "    for event in events:\n        lanes",
     "    for event in events:\n        if event.kind != 'op':\n            continue\n        lanes"),
    ("what takes no time for itself is left out", "for each name a tuple", "for name in calls}", "for name in calls if own[name]}"),
    ("the mean of a call", "the sum of their durations", "total[name], own[name])", "total[name] // calls[name], own[name])"),
    ("self first", "a tuple `(calls, total, self)`", "total[name], own[name])", "own[name], total[name])"),
    ("only the first of a name adds", "the sum of their durations", "all(outer.name != event.name for outer in stack)", "calls[event.name] == 1"),
    ("what was there before the recursion", "the sum of what is left of each of their durations", CODE, '''
def self_times(events):
    found = {}

    def walk(todo, end, names):
        spent = 0
        while todo and todo[-1].start < end:
            event = todo.pop()
            row = found.setdefault(event.name, [0, 0, 0])
            row[0] += 1
            if event.name not in names:
                row[1] += event.duration
            row[2] += event.duration - walk(todo, event.end, names | {event.name})
            spent += event.duration
        return spent

    for lane in {event.lane for event in events}:
        mine = sorted((e for e in events if e.lane == lane), key=lambda e: (e.start, -e.end))
        walk(mine[::-1], math.inf, frozenset())
    return {name: tuple(row) for name, row in found.items()}
'''),
    (
        "some event there must be",
        "the list may be empty",
        "    lanes = {}\n",
        "    lanes = {events[0].lane: []}\n",
    ),
]

# --- 3 · Two clocks ------------------------------------------------------------------------------

RIGHT["lanes"] = {
    "sorted spans": '''
def lanes(events):
    def covered_and_gap(spans):
        covered, gap, reach = 0, 0, None
        for start, end in sorted(spans):
            if reach is None:
                reach = start
            gap = max(gap, start - reach)
            covered += max(0, end - max(start, reach))
            reach = max(reach, end)
        return covered, gap

    busy = {}
    for lane in [event.lane for event in events]:
        work = [(e.start, e.end) for e in events if e.lane == lane and e.kind != "range"]
        busy[lane] = covered_and_gap(work)[0]
    device = [e for e in events if e.on_device]
    gap = covered_and_gap([(e.start, e.end) for e in device])[1]
    calls = {}
    for e in events:
        if e.kind == "call" and e.correlation is not None:
            calls[e.correlation] = e
    launched = {}
    for e in events:
        if not e.on_device and e.kind in ("range", "op"):
            host, on_device = launched.get(e.name, (0, 0))
            launched[e.name] = (host + e.duration, on_device)
    for kernel in device:
        call = calls.get(kernel.correlation)
        if call is None:
            continue
        for e in events:
            if e.on_device or e.kind not in ("range", "op"):
                continue
            if e.lane == call.lane and e.start <= call.start and call.end <= e.end:
                host, on_device = launched[e.name]
                launched[e.name] = (host, on_device + kernel.duration)
    return {"busy": busy, "gap": gap, "launched": launched}
''',
    "open and shut": '''
import itertools


def quiet_and_busy(events):
    """Lengths of the times in which nothing runs, and of all others."""
    marks = Counter()
    for event in events:
        marks[event.start] += 1
        marks[event.end] -= 1
    running, quiet, busy = 0, [0], [0]
    for now, then in itertools.pairwise(sorted(marks)):
        running += marks[now]
        (busy if running else quiet).append(then - now)
    return quiet, busy


def lanes(events: list[Event]) -> dict:
    work = [event for event in events if event.kind != "range"]
    busy = {
        lane: sum(quiet_and_busy(e for e in work if e.lane == lane)[1])
        for lane in {e.lane for e in events}
    }
    quiet, _ = quiet_and_busy(e for e in events if e.on_device)
    spent = Counter()
    for event in events:
        if event.on_device and event.correlation is not None:
            spent[event.correlation] += event.duration
    calls = [e for e in events if e.kind == "call" and not e.on_device]
    host, device = Counter(), Counter()
    for event in events:
        if event.kind in ("range", "op"):
            host[event.name] += event.duration
            device[event.name] += sum(
                spent[call.correlation]
                for call in calls
                if call.lane == event.lane
                and event.start <= call.start <= call.end <= event.end
                and call.correlation is not None
            )
    return {"busy": busy, "gap": max(quiet), "launched": {n: (host[n], device[n]) for n in host}}
''',
    "merged spans, functions of one line": '''
from functools import reduce


def merged(spans):
    def add(done, span):
        if done and span[0] <= done[-1][1]:
            return [*done[:-1], (done[-1][0], max(done[-1][1], span[1]))]
        return [*done, span]

    return reduce(add, sorted(spans), [])


def lanes(events):
    span = lambda e: (e.start, e.end)
    names = list(dict.fromkeys(e.name for e in events if e.kind in {"range", "op"}))
    on = merged(map(span, filter(lambda e: e.on_device, events)))
    call_of = {e.correlation: e for e in events if e.kind == "call"}
    started = [
        (call_of[e.correlation], e.duration)
        for e in events
        if e.on_device and e.correlation is not None and e.correlation in call_of
    ]
    within = lambda c, e: c.lane == e.lane and e.start <= c.start and c.end <= e.end
    return {
        "launched": {
            name: (
                sum(e.duration for e in events if e.name == name and e.kind in {"range", "op"}),
                sum(
                    took
                    for call, took in started
                    if any(within(call, e) for e in events if e.name == name and e.kind in {"range", "op"})
                ),
            )
            for name in names
        },
        "gap": max([b[0] - a[1] for a, b in zip(on, on[1:])], default=0),
        "busy": {
            lane: sum(b - a for a, b in merged(span(e) for e in events if e.lane == lane and e.kind != "range"))
            for lane in sorted(set(e.lane for e in events))
        },
    }
''',
}
WRONG["lanes"] = [
    ("durations are summed", "Events may overlap, and lie in each other",
     "covered += max(0, end - max(start, reach))", "covered += end - start"),
    ("the last end, not the latest", "Events may overlap, and lie in each other", "reach = max(reach, end)", "reach = end"),
    ("ranges work", "A range is a label and no work", ' and e.kind != "range"]', "]"),
    ("a lane with labels alone is missing", "a lane that has nothing else is busy for 0",
     "[event.lane for event in events]:", '[event.lane for event in events if event.kind != "range"]:'),
    ("calls are no work", "for each lane of the trace, how long at least one event ran there",
     'e.kind != "range"]', 'e.kind not in ("range", "call")]'),
    ("from first to last", "how long at least one event ran there",
     "busy[lane] = covered_and_gap(work)[0]", "busy[lane] = max((e for _, e in work), default=0) - min((s for s, _ in work), default=0)"),
    ("the longest gap of one stream", "nothing ran on any lane of the device",
     "gap = covered_and_gap([(e.start, e.end) for e in device])[1]",
     "gap = max((covered_and_gap([(e.start, e.end) for e in device if e.lane == one])[1] for one in {e.lane for e in device}), default=0)"),
    ("only the first stream", "nothing ran on any lane of the device",
     "gap = covered_and_gap([(e.start, e.end) for e in device])[1]",
     "gap = covered_and_gap([(e.start, e.end) for e in device if e.lane == device[0].lane])[1]"),
    ("kernels only", "the longest time for which nothing ran on any lane of the device",
     "[(e.start, e.end) for e in device])[1]", '[(e.start, e.end) for e in device if e.kind == "kernel"])[1]'),
    ("from the trace's beginning", "between its first event and its last",
     "[(e.start, e.end) for e in device])[1]", "[(min(e.start for e in events),) * 2] * bool(device) + [(e.start, e.end) for e in device])[1]"),
    ("to the trace's end", "between its first event and its last",
     "[(e.start, e.end) for e in device])[1]", "[(max(e.end for e in events),) * 2] * bool(device) + [(e.start, e.end) for e in device])[1]"),
    ("the sum of the gaps", "the longest time for which nothing ran", "gap = max(gap, start - reach)", "gap += max(0, start - reach)"),
    ("the last gap", "the longest time for which nothing ran", "gap = max(gap, start - reach)", "gap = start - reach if start > reach else gap"),
    ("the host's gaps, too", "nothing ran on any lane of the device",
     "[(e.start, e.end) for e in device])[1]", '[(e.start, e.end) for e in events if e.kind != "range"])[1] * bool(device)'),
    ("by the device's clock", "the call with the same correlation lies on the same lane as the event, and within its time",
     "e.lane == call.lane and e.start <= call.start and call.end <= e.end", "e.start <= kernel.start and kernel.end <= e.end"),
    ("any thread's calls", "lies on the same lane as the event",
     "e.lane == call.lane and e.start <= call.start", "e.start <= call.start"),
    ("ends excluded", "within its time, ends included", "e.start <= call.start and call.end <= e.end", "e.start < call.start and call.end < e.end"),
    ("the call's start alone", "the call lies within its time", "e.start <= call.start and call.end <= e.end", "e.start <= call.start <= e.end"),
    ("the innermost alone", "all device events that were started from inside them",
     "        for e in events:\n            if e.on_device or", "        for e in sorted(events, key=lambda e: e.duration):\n            if e.on_device or",
     "launched[e.name] = (host, on_device + kernel.duration)\n", "launched[e.name] = (host, on_device + kernel.duration)\n                break\n"),
    ("one device event a call", "one call can have started several device events",
     "    for kernel in device:\n", "    for kernel in {e.correlation: e for e in device}.values():\n"),
    ("each device event has a call", "of some device events the trace has no call",
     "        call = calls.get(kernel.correlation)\n        if call is None:\n            continue\n", "        call = calls[kernel.correlation]\n"),
    ("None is a tie", "`None` means that there is no such tie",
     'if e.kind == "call" and e.correlation is not None:', 'if e.kind == "call":'),
    ("only what has launched something", "for each name of a range or an op on the host a pair",
     '"launched": launched}', '"launched": {n: both for n, both in launched.items() if both[1]}}'),
    ("the last one's time", "the sum of the durations of these events", "launched[e.name] = (host + e.duration, on_device)", "launched[e.name] = (e.duration, on_device)"),
    ("calls have names, too", "for each name of a range or an op on the host",
     'e.kind in ("range", "op")', 'e.kind in ("range", "op", "call")', 'e.kind not in ("range", "op")', 'e.kind not in ("range", "op", "call")'),
    ("ops alone", "for each name of a range or an op on the host", 'e.kind in ("range", "op")', 'e.kind == "op"', 'e.kind not in ("range", "op")', 'e.kind != "op"'),
    ("copies are not counted", "the durations of all device events that were started from inside them",
     "    for kernel in device:\n", '    for kernel in [e for e in device if e.kind == "kernel"]:\n'),
    ("how many were started", "the sum of the durations of all device events", "on_device + kernel.duration)", "on_device + 1)"),
    (
        "no device, no gap",
        "0 where there is no such time, or no device",
        "gap = covered_and_gap([(e.start, e.end) for e in device])[1]",
        "gap = covered_and_gap([(e.start, e.end) for e in device])[1] if device else None",
    ),
]

# --- 4 · The brake -------------------------------------------------------------------------------

RIGHT["bottleneck"] = {
    "all moments": '''
def bottleneck(events):
    times = sorted({t for e in events for t in (e.start, e.end)})
    account = Counter()
    dried, to_come, here = None, sorted(events, key=lambda e: -e.start), []
    for now, then in zip(times, times[1:]):
        while to_come and to_come[-1].start <= now:
            here.append(to_come.pop())
        here = [e for e in here if e.end > now]
        device = [e.kind for e in here if e.on_device]
        host = [e for e in here if not e.on_device]
        if device:
            what = "compute" if "kernel" in device else "copy"
            dried = then
        elif any(e.kind == "range" and "DataLoader" in e.name for e in host):
            what = "loader"
        elif dried is not None and any(
            e.kind == "call" and "Synchronize" in e.name and e.start <= dried < e.end
            for e in events
            if not e.on_device
        ):
            what = "sync"
        elif any(e.kind in ("op", "call") for e in host):
            what = "launches"
        else:
            what = "python"
        account[what] += then - now
    return account.most_common(1)[0][0]
''',
    "walk through the device's gaps": '''
def length(spans):
    done, reach = 0, -math.inf
    for a, b in sorted(spans):
        if b > max(a, reach):
            done += b - max(a, reach)
            reach = b
    return done


def bottleneck(events):
    first, last = min(e.start for e in events), max(e.end for e in events)
    kernels = [(e.start, e.end) for e in events if e.kind == "kernel"]
    everything = [(e.start, e.end) for e in events if e.on_device]
    host = [e for e in events if not e.on_device]
    if length(kernels) > (last - first) / 2:
        return "compute"
    if length(everything) - length(kernels) > (last - first) / 2:
        return "copy"
    brakes = dict.fromkeys(KINDS, 0)
    reach, ran_dry = first, False
    for a, b in [*sorted(everything), (last, last)]:
        if a > reach:
            cut = lambda e: (max(e.start, reach), max(min(e.end, a), max(e.start, reach)))
            loader = length(cut(e) for e in host if e.kind == "range" and "DataLoader" in e.name)
            brakes["loader"] += loader
            waits = any(e.kind == "call" and "Synchronize" in e.name and e.start <= reach <= e.end for e in host)
            if ran_dry and waits:
                brakes["sync"] += a - reach - loader
            else:
                operators = length(cut(e) for e in host if e.kind in ("op", "call"))
                brakes["launches"] += operators
                brakes["python"] += max(0, a - reach - loader - operators)
        reach, ran_dry = max(reach, b), True
    return max(brakes, key=brakes.get)
''',
    "four hundred moments, evenly": '''
def account(events, moment, gaps):
    now = [e for e in events if e.start <= moment < e.end]
    kinds = {e.kind for e in now}
    if "kernel" in kinds:
        return "compute"
    if "copy" in kinds:
        return "copy"
    if any(e.kind == "range" and "DataLoader" in e.name for e in now):
        return "loader"
    dry = max((end for end in gaps if end <= moment), default=None)
    if dry is not None and any(
        e.kind == "call" and "Synchronize" in e.name and e.start <= dry <= e.end for e in events
    ):
        return "sync"
    return "launches" if kinds & {"op", "call"} else "python"


def bottleneck(events):
    device = [e for e in events if e.on_device]
    gaps = [e.end for e in device if not any(o.start <= e.end < o.end for o in device)]
    start, end = min(e.start for e in events), max(e.end for e in events)
    moments = [start + (end - start) * (2 * i + 1) // 800 for i in range(400)]
    return statistics.mode(account(events, moment, gaps) for moment in moments)
''',
}
WRONG["bottleneck"] = [
    ("the longest line of the host", "The longest line of the host is often innocent", CODE, '''
def bottleneck(events):
    host = Counter()
    for e in events:
        if e.on_device:
            continue
        if "DataLoader" in e.name:
            host["loader"] += e.duration
        elif "Synchronize" in e.name:
            host["sync"] += e.duration
        elif e.kind == "call":
            host["launches"] += e.duration
    device = sum(e.duration for e in events if e.kind == "kernel")
    copies = sum(e.duration for e in events if e.kind == "copy")
    whole = max(e.end for e in events) - min(e.start for e in events)
    host["compute"], host["copy"] = device, copies
    host["python"] = whole - sum(host.values())
    return host.most_common(1)[0][0]
'''),
    ("the host before the device", "a kernel runs on the device: `\"compute\"`; else ...",
     "        if device:\n            what = \"compute\" if \"kernel\" in device else \"copy\"\n            dried = then\n        elif any(",
     "        if device:\n            dried = then\n        if any(e.kind == \"call\" and \"Synchronize\" in e.name for e in host):\n            what = \"sync\"\n"
     "        elif device:\n            what = \"compute\" if \"kernel\" in device else \"copy\"\n        elif any("),
    ("waiting while it is dry", "when the device had run dry, the host was in a call with `Synchronize` in its name",
     "and e.start <= dried < e.end\n", "and e.start <= now < e.end\n"),
    ("any wait there ever was", "when the device had run dry, the host was in a call with `Synchronize` in its name",
     "and e.start <= dried < e.end\n", "and e.start <= dried\n"),
    ("gaps are nobody's", "anything else: the host is in nothing at all: `\"python\"`",
     '        else:\n            what = "python"\n', '        elif host:\n            what = "python"\n        else:\n            continue\n'),
    ("ranges are launches", "the host is in a range and in nothing else: `\"python\"`",
     'e.kind in ("op", "call") for e in host', 'e.kind in ("op", "call", "range") for e in host'),
    ("calls only are launches", "else, the host is in an op or a call", 'e.kind in ("op", "call")', 'e.kind == "call"'),
    ("one name of waiting", "a call with `Synchronize` in its name", '"Synchronize" in e.name', 'e.name == "cudaStreamSynchronize"'),
    ("one name of the loader", "a range with `DataLoader` in its name",
     '"DataLoader" in e.name', 'e.name == "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"'),
    ("one stream", "on any of its lanes", "if e.on_device]\n        host", 'if e.lane == "gpu 7"]\n        host'),
    ("copies before kernels", "a kernel runs on the device: `\"compute\"`; else, a copy runs there",
     '"compute" if "kernel" in device else "copy"', '"copy" if "copy" in device else "compute"'),
    ("how often, not how long", "the one that takes the most time", "account[what] += then - now", "account[what] += 1"),
    ("a brake, whatever it is", "returns its kind, one of six", "return account", "account.pop(\"compute\", 0)\n    return account"),
    ("the traces it has seen", "any way that finds the largest will do", CODE, '''
SEEN = {(kind, seed): drawn(kind, seed) for kind in KINDS for seed in range(10)}


def bottleneck(events):
    for (kind, _), known in SEEN.items():
        if known == events:
            return kind
    return "compute" if sum(e.kind == "kernel" for e in events) < 30 else "sync"
'''),
    ("the device's own time, and guesses", "any way that finds the largest will do", CODE, '''
def bottleneck(events):
    total = Counter()
    for e in events:
        total[e.kind] += e.duration
        if "DataLoader" in e.name:
            total["loader"] += e.duration
        if "Synchronize" in e.name:
            total["sync"] += e.duration
    whole = max(e.end for e in events) - min(e.start for e in events)
    if total["loader"] > 0.3 * whole:
        return "loader"
    if total["sync"] > 0.3 * whole:
        return "sync"
    if total["copy"] > 0.3 * whole:
        return "copy"
    if total["kernel"] > 0.3 * whole:
        return "compute"
    return "launches" if total["op"] > 0.5 * whole else "python"
'''),
    ("the number of the kind", "returns its kind", "return account.most_common(1)[0][0]", "return KINDS.index(account.most_common(1)[0][0])"),
    ("the name of the longest event", "returns its kind", CODE, '''
def bottleneck(events):
    return max(events, key=lambda e: e.duration).kind
'''),
    (
        "dry from the beginning",
        "before the first of them it has not run dry",
        "dried, to_come, here = None,",
        "dried, to_come, here = min(e.start for e in events),",
    ),
]

# --- 5 · Memory, and who holds it ----------------------------------------------------------------

RIGHT["peak"] = {
    "a dict of the living": '''
def peak(allocations):
    alive, now, most, then = {}, 0, 0, []
    for a in allocations:
        if a.bytes > 0:
            alive[a.address] = a.bytes
            now += a.bytes
            if now > most:
                most, then = now, list(alive.items())
        elif a.address in alive:
            now -= alive.pop(a.address)
    return most, then, now
''',
    "a list of pairs, sums anew each time": '''
def peak(allocations: list[Allocation]) -> tuple[int, list[tuple[int, int]], int]:
    living: list[tuple[int, int]] = []
    best: list[tuple[int, int]] = []
    weight = lambda blocks: sum(size for _, size in blocks)
    for address, size in ((a.address, a.bytes) for a in allocations):
        if size < 0:
            living = [block for block in living if block[0] != address]
        else:
            living = living + [(address, size)]
        best = max(best, living, key=weight)
    return weight(best), best, weight(living)
''',
    "lives from birth to death": '''
import itertools


def peak(allocations):
    lives, living = [], {}  # [birth, death, address, bytes]
    for i, a in enumerate(allocations):
        if a.bytes > 0:
            living[a.address] = [i, None, a.address, a.bytes]
            lives.append(living[a.address])
        elif a.address in living:
            living.pop(a.address)[1] = i
    changes = [0] * (len(allocations) + 1)
    for birth, death, _, size in lives:
        changes[birth] += size
        if death is not None:
            changes[death] -= size
    heights = list(itertools.accumulate(changes))
    top = max(heights)
    when = heights.index(top)
    alive = [
        (address, size)
        for birth, death, address, size in lives
        if birth <= when and (death is None or death > when)
    ]
    return top, alive, sum(size for _, death, _, size in lives if death is None)
''',
    "NumPy for the sums": '''
import numpy as np


def peak(allocations):
    known, steps = set(), []
    for a in allocations:
        if a.bytes < 0 and a.address not in known:
            continue
        (known.discard if a.bytes < 0 else known.add)(a.address)
        steps.append((a.address, a.bytes))
    if not steps:
        return (0, [], 0)
    height = np.cumsum([size for _, size in steps])
    at = int(height.argmax())
    alive = {}
    for address, size in steps[: at + 1]:
        if size < 0:
            del alive[address]
        else:
            alive[address] = size
    return (int(height[at]), [(k, v) for k, v in alive.items()], int(height[-1]))
''',
}
WRONG["peak"] = [
    ("the last moment", "at the first moment at which that number was reached", "if now > most:", "if now >= most:"),
    ("blocks from before are taken off", "leave it out of everything", "        elif a.address in alive:\n            now -= alive.pop(a.address)\n",
     "        else:\n            alive.pop(a.address, None)\n            now += a.bytes\n"),
    ("an address keeps its place", "in the order in which they were handed out",
     "now -= alive.pop(a.address)", "now -= alive[a.address]\n            alive[a.address] = 0",
     "list(alive.items())", "[(k, v) for k, v in alive.items() if v]"),
    ("what was freed is still listed", "who was alive then", "now -= alive.pop(a.address)", "now -= alive[a.address]"),
    ("freed blocks stay with 0 bytes", "who was alive then", "now -= alive.pop(a.address)", "now -= alive[a.address]\n            alive[a.address] = 0"),
    ("an address lives once", "its address may then be handed out again", CODE, '''
def peak(allocations):
    size, now, most, then = {}, 0, 0, []
    freed = {a.address for a in allocations if a.bytes < 0}
    alive = []
    for a in allocations:
        if a.bytes > 0:
            size[a.address] = a.bytes
            alive.append(a.address)
            now += a.bytes
        elif a.address in size:
            alive.remove(a.address)
            now += a.bytes
        if now > most:
            most, then = now, [(x, size[x]) for x in alive]
    return most, then, sum(b for x, b in size.items() if x not in freed)
'''),
    ("handed out somewhere in the list", "was never handed out in this list: it was there before", CODE, '''
def peak(allocations):
    known = {a.address for a in allocations if a.bytes > 0}
    alive, now, most, then = {}, 0, 0, []
    for a in allocations:
        if a.address not in known:
            continue
        now += a.bytes
        if a.bytes > 0:
            alive[a.address] = a.bytes
        else:
            alive.pop(a.address, None)
        if now > most:
            most, then = now, list(alive.items())
    return most, then, now
'''),
    ("the living in the end", "who was alive then", "most, then = now, list(alive.items())", "most, then = now, alive.items()",
     "return most, then, now", "return most, list(then), now"),
    ("by size", "in the order in which they were handed out", "list(alive.items())", "sorted(alive.items(), key=lambda pair: -pair[1])"),
    ("by address", "in the order in which they were handed out", "list(alive.items())", "sorted(alive.items())"),
    ("the newest first", "in the order in which they were handed out", "list(alive.items())", "list(alive.items())[::-1]"),
    ("addresses alone", "a list of pairs `(address, bytes)`", "list(alive.items())", "list(alive)"),
    ("a dict", "a list of pairs `(address, bytes)`", "list(alive.items())", "dict(alive)"),
    ("all that was handed out", "the number of bytes that were never freed", "return most, then, now",
     "return most, then, sum(a.bytes for a in allocations if a.bytes > 0)"),
    ("the peak's bytes that stay", "the number of bytes that were never freed", "return most, then, now",
     "return most, then, sum(b for k, b in then if k in alive)"),
    ("the sum of all entries", "leave it out of everything", "return most, then, now", "return most, then, max(0, sum(a.bytes for a in allocations))"),
    ("how many were never freed", "the number of bytes that were never freed", "return most, then, now", "return most, then, len(alive)"),
    ("the largest block", "the largest number of bytes that were alive at once", "if now > most:\n                most, then = now,", "if a.bytes > most:\n                most, then = a.bytes,"),
    ("a block and the one before", "the largest number of bytes that were alive at once", CODE, '''
def peak(allocations):
    alive = {}
    for a in allocations:
        if a.bytes > 0:
            alive[a.address] = a.bytes
        elif a.address in alive:
            del alive[a.address]
    return sum(alive.values()), list(alive.items()), sum(alive.values())
'''),
    ("some block there must be", "Without any block the answer is `(0, [], 0)`", CODE, '''
def peak(allocations):
    alive, snapshots = {}, []
    for a in allocations:
        if a.bytes > 0:
            alive[a.address] = a.bytes
        elif a.address in alive:
            del alive[a.address]
        snapshots.append(list(alive.items()))
    best = max(snapshots, key=lambda blocks: sum(b for _, b in blocks))
    return sum(b for _, b in best), best, sum(alive.values())
'''),
]

# --- 6 · Fewer, larger, later --------------------------------------------------------------------

RIGHT["faster_loss"] = {
    "cross_entropy of all tokens": '''
def faster_loss(logits, targets):
    B, T, V = logits.shape
    losses = F.cross_entropy(logits.reshape(B * T, V), targets.reshape(B * T), reduction="none").view(B, T)
    mask = targets != -100
    counts = mask.sum(dim=1)
    means = losses.sum(dim=1) / counts.clamp(min=1)
    loss = means.sum() / (counts > 0).sum()
    right = (logits.argmax(dim=-1) == targets) & mask
    return loss, right.sum() / mask.sum()
''',
    "logsumexp and gather": '''
def faster_loss(logits: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    counts = targets.ne(-100).float()
    own = logits.gather(-1, targets.clamp_min(0).unsqueeze(-1)).squeeze(-1)
    nll = (logits.logsumexp(-1) - own) * counts
    each = counts.sum(-1)
    weight = 1 / (each + (each == 0))
    loss = torch.sum(nll.sum(-1) * weight) / torch.count_nonzero(each)
    hits = torch.eq(logits.argmax(-1), targets).float()
    return loss, hits.sum() / counts.sum()
''',
    "a weight for each token": '''
def faster_loss(logits, targets):
    counts = targets != -100
    in_sentence = counts.sum(-1, keepdim=True)
    sentences = (in_sentence > 0).sum()
    weights = torch.where(counts, 1.0 / (in_sentence * sentences), torch.zeros((), device=logits.device))
    nll = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    share = torch.where(counts, logits.argmax(-1).eq(targets), False).sum().div(counts.sum())
    return (nll * weights).sum(), share
''',
    "the mean of what is a number": '''
def faster_loss(logits, targets):
    nll = F.nll_loss(logits.log_softmax(-1).flatten(0, 1), targets.flatten(), reduction="none")
    counts = (targets != -100).sum(1)
    means = nll.unflatten(0, targets.shape).sum(1) / counts
    right = logits.argmax(2) == targets
    return means.nanmean(), right.sum(dtype=torch.float32) / counts.sum()
''',
}
WRONG["faster_loss"] = [
    ("the mean of all tokens", "the mean over sentences of the mean over a sentence's targets", "loss = means.sum() / (counts > 0).sum()", "loss = losses.sum() / mask.sum()"),
    ("empty sentences count", "a sentence without any target that counts is left out", "means.sum() / (counts > 0).sum()", "means.mean()"),
    ("nothing by nothing", "a sentence without any target that counts is left out", "counts.clamp(min=1)", "counts"),
    ("a mean over all places", "the mean over a sentence's targets: a target of -100 doesn't count", "means = losses.sum(dim=1) / counts.clamp(min=1)", "means = losses.mean(dim=1)"),
    ("the sum over sentences", "the mean over sentences", "means.sum() / (counts > 0).sum()", "means.sum()"),
    ("the share of all places", "the share of all targets that count", "right.sum() / mask.sum()", "right.sum() / mask.numel()"),
    ("the share, a mean of means", "the share of all targets that count",
     "right.sum() / mask.sum()", "(right.sum(dim=1) / counts.clamp(min=1)).sum() / (counts > 0).sum()"),
    ("ignored ones guessed as word 0", "of all targets that count",
     "right = (logits.argmax(dim=-1) == targets) & mask", "right = logits.argmax(dim=-1) == targets.clamp(min=0)"),
    ("word 0 doesn't count", "A target of -100 doesn't count", "mask = targets != -100", "mask = targets > 0"),
    ("the smallest logit", "for which the largest logit is the target's", "logits.argmax(dim=-1)", "logits.argmin(dim=-1)"),
    ("a number is asked for", "no `.item()`", "right.sum() / mask.sum()", "right.sum() / mask.sum().item()"),
    ("chosen by a mask", "no result whose size depends on values, such as `x[mask]`",
     "means.sum() / (counts > 0).sum()", "means[counts > 0].mean()"),
    ("an if about values", "no `if` about a tensor's values",
     "    right = (log", "    if (counts == 0).all():\n        loss = loss * 0\n    right = (log"),
    ("a loop over sentences", "As many operators run for twelve sentences as for three", CODE, '''
def faster_loss(logits, targets):
    counts = (targets != -100).sum(1)
    total = 0
    for b in range(len(logits)):
        total = total + F.cross_entropy(logits[b], targets[b], reduction="sum") / counts[b].clamp(min=1)
    right = (logits.argmax(-1) == targets).sum()
    return total / (counts > 0).sum(), right / counts.sum()
'''),
    ("a loop over tokens", "of more tokens in a sentence that is true, too", CODE, '''
def faster_loss(logits, targets):
    mask = targets != -100
    counts = mask.sum(1)
    total, right = 0, 0
    for t in range(targets.shape[1]):
        total = total + F.cross_entropy(logits[:, t], targets[:, t], reduction="none")
        right = right + (logits[:, t].argmax(-1) == targets[:, t]).sum()
    loss = (total / counts.clamp(min=1)).sum() / (counts > 0).sum()
    return loss, right / mask.sum()
'''),
    ("float64 for all", "tensors of at most 1.5 times the logits' bytes in all",
     'F.cross_entropy(logits.reshape(B * T, V)', 'F.cross_entropy(logits.reshape(B * T, V).double()',
     "return loss, right", "return loss.float(), right"),
    ("the softmax for the share", "room for one tensor of the logits' size", "logits.argmax(dim=-1)", "logits.softmax(dim=-1).argmax(dim=-1)"),
    ("a copy first", "room for one tensor of the logits' size", "    B, T, V = logits.shape\n", "    logits = logits.clone()\n    B, T, V = logits.shape\n"),
    ("one-hot targets", "room for one tensor of the logits' size", CODE, '''
def faster_loss(logits, targets):
    mask = targets != -100
    hot = F.one_hot(targets.clamp(min=0), logits.shape[-1]).float()
    nll = -(logits.log_softmax(-1) * hot).sum(-1) * mask
    counts = mask.sum(1)
    loss = (nll.sum(1) / counts.clamp(min=1)).sum() / (counts > 0).sum()
    return loss, ((logits.argmax(-1) == targets) & mask).sum() / mask.sum()
'''),
    ("made on the CPU", "What you make inside must be made on the device of the logits",
     "counts = mask.sum(dim=1)", "counts = torch.zeros(B).add(mask.sum(dim=1))"),
    ("weights on the CPU", "What you make inside must be made on the device of the logits",
     'reduction="none")', 'reduction="none", weight=torch.ones(V))'),
    ("cut off from its logits", "its gradient is that of `slow_loss`", "loss = means.sum()", "loss = means.detach().requires_grad_().sum()"),
    ("half of the gradient is stopped", "its gradient is that of `slow_loss`",
     "logits.reshape(B * T, V), targets", "(logits - logits.detach() / 2).reshape(B * T, V) * 2, targets"),
    ("a float64 share", "Both numbers are tensors without dimensions, float32", "right.sum() / mask.sum()", "right.sum().double() / mask.sum()"),
    ("one dimension", "tensors without dimensions", "return loss, right", "return loss.reshape(1), right"),
    ("the share first", "returns the same two numbers: the loss, the share", "return loss, right.sum() / mask.sum()", "return right.sum() / mask.sum(), loss"),
    ("how many are right", "the share of all targets that count", "right.sum() / mask.sum()", "right.sum().float()"),
]

# --- 7 · The NaN hunt ----------------------------------------------------------------------------

RIGHT["first_bad"] = {
    "a hook for each name": '''
def first_bad(model, x):
    found = []

    def hook_for(name):
        def hook(module, args, output):
            if not found and not output.isfinite().all():
                what = "nan" if output.isnan().any() else "inf"
                found.append((name, what, bool(args[0].isfinite().all())))

        return hook

    handles = [m.register_forward_hook(hook_for(name)) for name, m in model.named_modules()]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


def safe_root(x):
    good = ~(x <= 0)
    safe = torch.where(good, x, torch.ones_like(x))
    return torch.where(good, safe.sqrt(), torch.zeros_like(x))
''',
    "everything is noted, then searched; a function of its own": '''
import contextlib
from functools import partial


def note(log, name, module, args, output):
    log.append((name, args[0].detach(), output.detach()))


def first_bad(model: torch.nn.Module, x: torch.Tensor) -> tuple[str, str, bool] | None:
    log: list = []
    with contextlib.ExitStack() as stack, torch.no_grad():
        for name, module in model.named_modules():
            handle = module.register_forward_hook(partial(note, log, name))
            stack.callback(handle.remove)
        model(x)
    for name, came, went in log:
        if went.isnan().any():
            return name, "nan", came.isfinite().all().item()
        if went.isinf().any():
            return name, "inf", came.isfinite().all().item()
    return None


class Root(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clamp(min=0).sqrt()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, grad / (2 * y), torch.zeros_like(grad))


def safe_root(x: torch.Tensor) -> torch.Tensor:
    return Root.apply(x)
''',
    "one hook for all modules, masked_fill": '''
from torch.nn.modules.module import register_module_forward_hook


def first_bad(model, x):
    names = {module: name for name, module in model.named_modules()}
    first = []

    def look(module, args, output):
        if module in names and len(first) == 0:
            if torch.isnan(output).any():
                first.append((names[module], "nan", torch.isfinite(args[0]).all().item()))
            elif torch.isinf(output).any():
                first.append((names[module], "inf", torch.isfinite(args[0]).all().item()))

    with register_module_forward_hook(look):
        model(x)
    return next(iter(first), None)


def safe_root(x):
    bad = x <= 0
    return x.masked_fill(bad, 1).sqrt().masked_fill(bad, 0)
''',
    "stops at the first, writes into zeros": '''
class Found(Exception):
    pass


def first_bad(model, x):
    def hook(module, args, output):
        if output.isnan().any():
            raise Found(module, "nan", args[0])
        if output.isinf().any():
            raise Found(module, "inf", args[0])

    handles = []
    for module in model.modules():
        handles += [module.register_forward_hook(hook)]
    try:
        model(x)
    except Found as found:
        bad, what, arg = found.args
        for name, module in model.named_modules():
            if module is bad:
                return name, what, not (arg.isnan() | arg.isinf()).any().item()
    finally:
        [handle.remove() for handle in handles]


def safe_root(x):
    result = torch.zeros_like(x)
    mask = (x > 0) | x.isnan()
    result[mask] = x[mask] ** 0.5
    return result
''',
}
NO_TRACE = "Afterwards the model is as before: no hook is left on it"
WRONG["first_bad"] = [
    ("the order of registration", "in the order in which modules return", CODE, '''
def first_bad(model, x):
    seen = {}
    handles = []
    for name, m in model.named_modules():
        seen[name] = None
        handles.append(m.register_forward_hook(lambda m, a, o, name=name: seen.__setitem__(name, seen[name] or (a[0], o))))
    model(x)
    for h in handles:
        h.remove()
    for name, both in seen.items():
        if both is not None and not both[1].isfinite().all():
            return name, "nan" if both[1].isnan().any() else "inf", bool(both[0].isfinite().all())
    return None


def safe_root(x):
    good = ~(x <= 0)
    return torch.where(good, torch.where(good, x, 1.0).sqrt(), 0.0)
'''),
    ("a lambda in a loop", "a loop's variable changes under a lambda",
     "[m.register_forward_hook(hook_for(name)) for name, m in model.named_modules()]",
     "[]\n    for name, m in model.named_modules():\n        handles.append(m.register_forward_hook(lambda m, a, o: hook_for(name)(m, a, o)))"),
    ("the last one", "finds the first module whose output isn't finite", "if not found and not output", "if not output", "found[0] if", "found[-1] if"),
    ("NaN only", "whose output isn't finite: infinities, too", "not output.isfinite().all()", "output.isnan().any()"),
    ("plus infinity only", "`\"inf\"` if it holds infinities and no NaN", "not output.isfinite().all()", "(output.isnan() | (output == math.inf)).any()"),
    ("infinity goes first", "`\"nan\"` if the output holds a NaN", '"nan" if output.isnan().any() else "inf"', '"inf" if output.isinf().any() else "nan"'),
    ("nan if all are", "`\"nan\"` if the output holds a NaN", "output.isnan().any() else", "output.isnan().all() else"),
    ("the output's sum", "whose output isn't finite", "not output.isfinite().all()", "not output.sum().isfinite()"),
    ("not one is finite", "whose output isn't finite", "not output.isfinite().all()", "not output.isfinite().any()"),
    ("the model's input", "whether the input of that module, in that call, was finite", "bool(args[0].isfinite().all())", "bool(x.isfinite().all())"),
    ("fine as long as no NaN", "whether the input of that module was finite", "bool(args[0].isfinite().all())", "not args[0].isnan().any().item()"),
    ("fine if one is", "whether the input of that module was finite", "bool(args[0].isfinite().all())", "bool(args[0].isfinite().any())"),
    ("a tensor of one bool", "a tuple `(name, what, fine)`: bool", "bool(args[0].isfinite().all())", "args[0].isfinite().all()"),
    ("not fine", "whether the input of that module, in that call, was finite", "bool(args[0]", "not bool(args[0]"),
    ("hooks stay", NO_TRACE, "    finally:\n        for handle in handles:\n            handle.remove()\n", "    finally:\n        pass\n"),
    ("hooks stay if all is well", NO_TRACE,
     "    finally:\n        for handle in handles:\n            handle.remove()\n    return found[0] if found else None\n",
     "    finally:\n        pass\n    if not found:\n        return None\n    for handle in handles:\n        handle.remove()\n    return found[0]\n"),
    ("one hook stays", NO_TRACE, "for handle in handles:", "for handle in handles[1:]:"),
    ("evaluated from now on", "Afterwards the model is as before", "        model(x)\n", "        model.eval()\n        model(x)\n"),
    ("remembered from call to call", "finds the first module: in this run", "def first_bad(model, x):\n    found = []\n", "def first_bad(model, x, found=[]):\n"),
    ("leaves only", "as in `model.named_modules()`, with `\"\"` for the model itself",
     "for name, m in model.named_modules()]", "for name, m in model.named_modules() if not list(m.children())]"),
    ("not the model itself", "with `\"\"` for the model itself", "for name, m in model.named_modules()]", "for name, m in model.named_modules() if name]"),
    ("the children only", "the module's name as in `model.named_modules()`", "model.named_modules()]", "[*model.named_children(), ('', model)]]"),
    ("the last word of the name", "the module's name as in `model.named_modules()`", "found.append((name,", "found.append((name.split('.')[-1],"),
    ("the class's name", "the module's name as in `model.named_modules()`", "found.append((name,", "found.append((type(module).__name__,"),
    ("a module's last call", "a module may be called several times", CODE, '''
def first_bad(model, x):
    seen = {}
    handles = [
        m.register_forward_hook(lambda m, a, o, name=name: seen.update({name: (a[0], o)}))
        for name, m in model.named_modules()
    ]
    model(x)
    for h in handles:
        h.remove()
    for name, (came, went) in seen.items():
        if not went.isfinite().all():
            return name, "nan" if went.isnan().any() else "inf", bool(came.isfinite().all())
    return None


def safe_root(x):
    good = ~(x <= 0)
    return torch.where(good, torch.where(good, x, 1.0).sqrt(), 0.0)
'''),
    ("a module's first call", "a module may be called several times",
     "            if not found and", "            if name in called:\n                return\n            called.add(name)\n            if not found and",
     "    found = []\n", "    found, called = [], set()\n"),
    ("False for all is well", "If all outputs are finite it returns `None`", "found[0] if found else None", "bool(found) and found[0]"),
    ("the parts that run before", "in the order in which modules return", CODE, '''
def first_bad(model, x):
    found, order = {}, []

    def before(name):
        return lambda m, a: order.append(name)

    def after(name):
        def hook(m, a, o):
            if name not in found and not o.isfinite().all():
                found[name] = (name, "nan" if o.isnan().any() else "inf", bool(a[0].isfinite().all()))

        return hook

    handles = []
    for name, m in model.named_modules():
        handles += [m.register_forward_pre_hook(before(name)), m.register_forward_hook(after(name))]
    model(x)
    for h in handles:
        h.remove()
    return next((found[name] for name in order if name in found), None)


def safe_root(x):
    good = ~(x <= 0)
    return torch.where(good, torch.where(good, x, 1.0).sqrt(), 0.0)
'''),
    ("one where", "Its gradient is 0 where x is 0 or negative", "torch.where(good, safe.sqrt(),", "torch.where(good, x.sqrt(),"),
    ("clamped at 0", "Its gradient is 0 where x is 0 or negative", "    return torch.where(good, safe.sqrt(), torch.zeros_like(x))\n", "    return x.clamp(min=0).sqrt()\n"),
    ("a little under the root", "the root of x where x is positive", "    return torch.where(good, safe.sqrt(), torch.zeros_like(x))\n", "    return (x.clamp(min=0) + 1e-6).sqrt()\n"),
    ("a little under, a little off", "Its gradient is 1/(2√x) where x is positive, however small",
     "    return torch.where(good, safe.sqrt(), torch.zeros_like(x))\n", "    return (x.clamp(min=0) + 1e-12).sqrt() - 1e-6\n"),
    ("not too small", "where x is positive, however small", "good = ~(x <= 0)", "good = ~(x <= 1e-12)"),
    ("normal numbers only", "where x is positive, however small", "good = ~(x <= 0)", "good = ~(x < torch.finfo(x.dtype).tiny)"),
    ("NaN is hidden", "A NaN stays a NaN", "good = ~(x <= 0)", "good = x > 0"),
    ("negative roots are NaN", "0 where x is 0 or negative", "good = ~(x <= 0)", "good = x != 0"),
    ("the root of the size", "0 where x is 0 or negative", "good = ~(x <= 0)", "good = x != 0", "safe.sqrt()", "safe.abs().sqrt()"),
    ("zero and below are one", "0 where x is 0 or negative", "safe.sqrt(), torch.zeros_like(x))", "safe.sqrt(), torch.ones_like(x))"),
    ("float32 for all", "x has any shape, float32 or float64", "safe.sqrt(), torch.zeros_like(x))", "safe.float().sqrt(), torch.zeros_like(x).float())"),
    ("one dimension", "x has any shape", "    return torch.where(good, safe.sqrt(), torch.zeros_like(x))\n",
     "    return torch.stack([r if g else 0 * r for r, g in zip(safe.sqrt(), good)])\n"),
    ("gradients are cut", "Its gradient is 1/(2√x) where x is positive", "safe.sqrt(), torch.zeros_like(x))", "safe.sqrt(), torch.zeros_like(x)) + 0 * x.detach()",
     "torch.where(good, x, torch.ones_like(x))", "torch.where(good, x, torch.ones_like(x)).detach().requires_grad_()"),
    (
        "an attribute stays",
        "its mode and attributes are the same",
        "    handles = [m.register",
        "    for name, m in model.named_modules():\n        m.called = name\n    handles = [m.register",
    ),
]

# --- 8 · Why did float16 make it worse? ----------------------------------------------------------

RIGHT["worse_in_half"] = {
    "masks": '''
def worse_in_half(steps, x):
    rows = []
    for name, function in steps:
        right = function(x)
        half = function(x.half())
        over = right.isfinite() & ~half.isfinite()
        gone = (half == 0) & (right != 0)
        rest = right.isfinite() & (right != 0) & ~over & ~gone
        errors = (half.float() - right).abs() / right.abs()
        worst = errors[rest].max().item() if rest.any() else 0.0
        rows.append((name, int(over.sum()), int(gone.sum()), worst))
        x = right
    return rows
''',
    "number by number": '''
def worse_in_half(steps: list, x: torch.Tensor) -> list[tuple[str, int, int, float]]:
    rows = []
    for name, function in steps:
        half, x = function(x.to(torch.float16)), function(x)
        overflowed = vanished = 0
        worst = 0.0
        for exact, rough in zip(x.flatten().tolist(), half.float().flatten().tolist()):
            if math.isfinite(exact) and not math.isfinite(rough):
                overflowed += 1
            elif rough == 0 and exact != 0:
                vanished += 1
            elif math.isfinite(exact) and exact != 0:
                worst = max(worst, abs(rough - exact) / abs(exact))
        rows.append((name, overflowed, vanished, worst))
    return rows
''',
    "all right inputs first, then where": '''
from itertools import accumulate


def spoilt(right, half):
    lost = right.isfinite().logical_and(half.isfinite().logical_not())
    zero = half.eq(0).logical_and(right.ne(0))
    keep = right.isfinite() & right.ne(0) & ~(lost | zero)
    error = torch.where(keep, torch.sub(half.to(right.dtype), right).div(right).abs(), 0.0)
    worst = error.max().item() if error.numel() else 0.0
    return lost.count_nonzero().item(), zero.count_nonzero().item(), worst


def worse_in_half(steps, x):
    inputs = list(accumulate(steps, lambda value, step: step[1](value), initial=x))
    return [
        (name, *spoilt(output, function(given.half())))
        for (name, function), given, output in zip(steps, inputs, inputs[1:])
    ]
''',
}
WRONG["worse_in_half"] = [
    ("float16 all the way", "the float32 result of a step is the right input of the next",
     "    rows = []\n", "    rows = []\n    y = x.half()\n", "half = function(x.half())", "half = y = function(y)"),
    ("what float16 has computed is handed on", "without what earlier steps have spoilt", "        x = right\n", "        x = half.float()\n"),
    ("the first input is rounded", "`x` is float32", "    rows = []\n", "    rows = []\n    x = x.half().float()\n"),
    ("only the result is rounded", "Each step is computed a second time, with its right input converted to float16",
     "half = function(x.half())", "half = right.half()"),
    ("only the input is rounded", "with its right input converted to float16, so it returns float16",
     "half = function(x.half())", "half = function(x.half().float()).half()"),
    ("bfloat16", "converted to float16", "half = function(x.half())", "half = function(x.bfloat16())"),
    ("infinite in both", "finite in float32 and not in float16", "over = right.isfinite() & ~half.isfinite()", "over = ~half.isfinite()"),
    ("NaN is not counted", "finite in float32 and not in float16", "over = right.isfinite() & ~half.isfinite()", "over = right.isfinite() & half.isinf()"),
    ("above the largest number", "how many numbers are finite in float32 and not in float16",
     "over = right.isfinite() & ~half.isfinite()", "over = right.isfinite() & (right.abs() > torch.finfo(torch.float16).max)"),
    ("plus infinity only", "finite in float32 and not in float16", "& ~half.isfinite()", "& (half == math.inf)"),
    ("zero in both", "0 in float16 and not in float32", "gone = (half == 0) & (right != 0)", "gone = half == 0"),
    ("below the smallest normal number", "how many are 0 in float16 and not in float32",
     "gone = (half == 0) & (right != 0)", "gone = (right != 0) & (half.abs() < torch.finfo(torch.float16).tiny)"),
    ("what has vanished is wrong by all of it", "of all other numbers", " & ~over & ~gone", " & ~over"),
    ("overflow is an infinite error", "of all other numbers that are finite and not 0 in float32", " & ~over & ~gone", " & ~gone"),
    ("zeros are asked, too", "of all other numbers that are finite and not 0 in float32", "right.isfinite() & (right != 0) & ~over", "right.isfinite() & ~over"),
    ("the absolute error", "the largest relative error", "(half.float() - right).abs() / right.abs()", "(half.float() - right).abs()"),
    ("by float16's size", "by the size of the right one", "/ right.abs()", "/ half.float().abs()"),
    ("by the largest of the right ones", "by the size of the right one", "/ right.abs()", "/ right[rest].abs().max()"),
    ("signs stay", "by the size of the right one", "(half.float() - right).abs() / right.abs()", "(half.float() - right).abs() / right"),
    ("without abs", "the difference of the two, by the size of the right one", "(half.float() - right).abs()", "(half.float() - right)"),
    ("compared in float16", "the difference of the two, in float32", "(half.float() - right).abs()", "(half - right.half()).abs().float()"),
    ("the mean error", "the largest relative error", "errors[rest].max()", "errors[rest].mean()"),
    ("something is always left", "0.0 where there are none", "errors[rest].max().item() if rest.any() else 0.0", "errors[rest].max().item()"),
    ("NaN where nothing is left", "0.0 where there are none", "if rest.any() else 0.0", "if rest.any() else math.nan"),
    ("tensors", "The counts are Python integers", "int(over.sum()), int(gone.sum())", "over.sum(), gone.sum()"),
    ("worst is a tensor", "`worst` is a float", "errors[rest].max().item()", "errors[rest].max()"),
    ("steps of one name", "a tuple for each step", "    rows = []\n", "    rows = {}\n",
     "rows.append((name, int(over.sum()), int(gone.sum()), worst))", "rows[name] = (name, int(over.sum()), int(gone.sum()), worst)",
     "    return rows\n", "    return list(rows.values())\n"),
    ("shares, not counts", "how many", "int(over.sum()), int(gone.sum())", "over.float().mean().item(), gone.float().mean().item()"),
    ("swapped counts", "`(name, overflowed, vanished, worst)`", "int(over.sum()), int(gone.sum())", "int(gone.sum()), int(over.sum())"),
    ("each step gets x", "the float32 result of a step is the right input of the next", "        x = right\n", ""),
]

# --- 9 · The report ------------------------------------------------------------------------------

RIGHT["report"] = {
    "line by line": '''
def report(table, config, tokens, peak_flops):
    ops = {name: row for name, row in table.items() if row[0] == "op"}
    operator = max(ops, key=lambda name: ops[name][3])
    steps, total = table["step"][1], table["step"][2]
    share = ops[operator][3] / total
    bound = 1 / (1 - share)
    python = sum(row[3] for row in table.values() if row[0] == "range") / total
    n = 0
    for name, shape in parameter_shapes(config).items():
        if name not in ("token_embedding.weight", "position_embedding.weight"):
            n += math.prod(shape)
    seconds = total / 1e9 / steps
    flops = 6 * n * tokens / seconds
    hours = 1e9 / (tokens / seconds) / 3600
    return {
        "operator": operator,
        "share": share,
        "bound": bound,
        "python": python,
        "flops": flops,
        "mfu": flops / peak_flops,
        "hours": hours,
    }
''',
    "sorted rows, the model itself": '''
def report(table: dict, config: MiniGPTConfig, tokens: int, peak_flops: float) -> dict:
    rows = sorted(((own, name, kind) for name, (kind, _, _, own) in table.items()), reverse=True)
    most, operator = next((own, name) for own, name, kind in rows if kind == "op")
    _, count, whole, _ = table["step"]
    in_ops = sum(own for own, _, kind in rows if kind == "op")
    with torch.device("meta"):
        model = MiniGPT(config)
    looked_up = sum(
        p.numel() for m in model.modules() if isinstance(m, torch.nn.Embedding) for p in m.parameters()
    )
    n = sum(p.numel() for p in model.parameters()) - looked_up
    per_second = tokens * count / (whole * 1e-9)
    return dict(
        operator=operator,
        share=most / whole,
        bound=whole / (whole - most),
        python=(whole - in_ops) / whole,
        flops=6.0 * n * per_second,
        mfu=6.0 * n * per_second / peak_flops,
        hours=1e9 / per_second / 60**2,
    )
''',
    "closed form": '''
def report(table, config, tokens, peak_flops):
    c = config
    mlp = 2 * c.d_model * c.d_ff + c.d_ff + c.d_model
    attention = 4 * c.d_model * (c.d_model + 1)
    n = c.n_layers * (attention + mlp + 4 * c.d_model) + 2 * c.d_model + (c.d_model + 1) * c.vocab_size
    own = {kind: Counter({k: v[3] for k, v in table.items() if v[0] == kind}) for kind in ("op", "range")}
    ((name, time),) = own["op"].most_common(1)
    steps_time = table["step"][2]
    s = time / steps_time
    speed = tokens * table["step"][1] / steps_time  # tokens a nanosecond
    result = {"operator": name, "share": s, "bound": (1 - s) ** -1}
    result["python"] = own["range"].total() / steps_time
    result["flops"] = speed * 6 * n * 1e9
    result["mfu"] = result["flops"] / peak_flops
    result["hours"] = 1 / speed / 3600
    return result
''',
}
WRONG["report"] = [
    ("the largest total", "the name of the op with the largest self time", "ops[name][3])", "ops[name][2])"),
    ("the most calls", "the name of the op with the largest self time", "ops[name][3])", "ops[name][1])"),
    ("a range may be first", "the name of the op with the largest self time", "if row[0] == \"op\"}", "if name != \"step\"}"),
    ("ops by their names", "The kind is `\"range\"` or `\"op\"`", "if row[0] == \"op\"}", 'if name.startswith("aten::")}'),
    ("the share of one step", "its self time by the time of all steps", "share = ops[operator][3] / total", "share = ops[operator][3] / (total / steps)"),
    ("the total's share", "its self time by the time of all steps", "share = ops[operator][3] / total", "share = ops[operator][2] / total"),
    ("by the time of the ops", "its self time by the time of all steps", "share = ops[operator][3] / total", "share = ops[operator][3] / sum(row[3] for row in ops.values())"),
    ("by all totals", "its self time by the time of all steps", "share = ops[operator][3] / total", "share = ops[operator][3] / sum(row[2] for row in table.values())"),
    ("one by the share", "how many times as fast the steps would be at best", "1 / (1 - share)", "1 / share"),
    ("what is left", "how many times as fast the steps would be at best", "1 / (1 - share)", "1 - share"),
    ("one and the share", "how many times as fast the steps would be at best", "1 / (1 - share)", "1 + share"),
    ("twice as fast an operator", "how many times as fast the steps would be at best", "1 / (1 - share)", "1 / (1 - share / 2)"),
    ("the step's own time alone", "the self time of all ranges, `\"step\"` included", 'sum(row[3] for row in table.values() if row[0] == "range")', 'table["step"][3]'),
    ("without the step", "the self time of all ranges, `\"step\"` included",
     'for row in table.values() if row[0] == "range")', 'for name, row in table.items() if row[0] == "range" and name != "step")'),
    ("the ranges' totals", "the self time of all ranges", 'sum(row[3] for row in table.values() if row[0] == "range")', 'sum(row[2] for row in table.values() if row[0] == "range")'),
    ("seconds, not a share", "the share of the steps' time that was spent in no op", 'if row[0] == "range") / total', 'if row[0] == "range") / 1e9'),
    ("the time in ops", "that was spent in no op at all", 'if row[0] == "range") / total', 'if row[0] == "op") / total'),
    ("tables with a forward", "the self time of all ranges", 'sum(row[3] for row in table.values() if row[0] == "range")', '(table["step"][3] + table["forward"][3])'),
    ("one step of all the time", "The row of `\"step\"` says how many steps there were", "seconds = total / 1e9 / steps", "seconds = total / 1e9"),
    ("the step's self time", "how long all took together", "seconds = total / 1e9 / steps", "seconds = table['step'][3] / 1e9 / steps"),
    ("microseconds", "There are 10⁹ nanoseconds in a second", "total / 1e9 / steps", "total / 1e6 / steps"),
    ("steps counted twice", "`tokens` the number of tokens *of one step*", "flops = 6 * n * tokens / seconds", "flops = 6 * n * tokens * steps / seconds"),
    ("the forward alone", "6 · N a token, there and back", "6 * n * tokens", "2 * n * tokens"),
    ("multiplications alone", "6 · N a token, there and back", "6 * n * tokens", "3 * n * tokens"),
    ("all parameters", "all parameters but those of the two embeddings",
     '        if name not in ("token_embedding.weight", "position_embedding.weight"):\n            n += math.prod(shape)\n', "        n += math.prod(shape)\n"),
    ("positions count", "but those of the two embeddings", 'not in ("token_embedding.weight", "position_embedding.weight")', '!= "token_embedding.weight"'),
    ("words count", "but those of the two embeddings", 'not in ("token_embedding.weight", "position_embedding.weight")', '!= "position_embedding.weight"'),
    ("matrices only", "N are all parameters but those of the two embeddings", '"position_embedding.weight"):', '"position_embedding.weight") and len(shape) == 2:'),
    ("no head", "all parameters but those of the two embeddings", '"position_embedding.weight"):', '"position_embedding.weight") and "head" not in name:'),
    ("sums of the sizes", "`parameter_shapes(config)` has the shape of each parameter", "math.prod(shape)", "sum(shape)"),
    ("the recorded model", "`config` is the model's `MiniGPTConfig`", "parameter_shapes(config)", "parameter_shapes(MiniGPTConfig())"),
    ("percent", "as a share of the peak", "flops / peak_flops", "100 * flops / peak_flops"),
    ("the peak as a share of it", "that, as a share of the peak", "flops / peak_flops", "peak_flops / flops"),
    ("minutes", "how long 10⁹ tokens would take: hours", "/ 3600", "/ 60"),
    ("10⁹ steps", "how long 10⁹ tokens would take", "hours = 1e9 / (tokens / seconds) / 3600", "hours = 1e9 * seconds / 3600"),
    ("whole hours", "All but the name are floats", "(tokens / seconds) / 3600", "(tokens / seconds) // 3600"),
    ("hours at the peak", "how long 10⁹ tokens would take at this speed", "hours = 1e9 / (tokens / seconds) / 3600", "hours = 1e9 * 6 * n / peak_flops / 3600"),
    ("the hours of all steps' tokens", "`tokens` the number of tokens *of one step*", "hours = 1e9 / (tokens / seconds) / 3600", "hours = 1e9 / (tokens * steps / seconds) / 3600"),
]

# What the check can't tell, or the tools refuse, and why. They are not judged.
OPEN: dict[tuple[str, str], str] = {
    ("compare_runs", "lists of quartiles"): "lists and tuples count as the same kind of sequence",
    ("compare_runs", "float32"): "the lab leaves open in which dtype quantiles are computed",
}

BANK = Bank("09")
BANK.fill(RIGHT, WRONG, OPEN)
bank_09_second.add_to(BANK)
