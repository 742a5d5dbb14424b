"""A second bank of lab 09, written from the lesson and the released lab alone.

``RIGHT`` keep every sentence of an exercise; the first of each is what ``WRONG`` edits. An entry of
``WRONG`` is a name, what of the exercise it breaks, and pairs of a text and what stands there
instead.
"""

from __future__ import annotations

from tests.phases.bank import CODE, Bank

RIGHT: dict[str, dict[str, str]] = {}
WRONG: dict[str, list[tuple[str, ...]]] = {}

RIGHT["compare_runs"] = {
    "places of its own": """
def compare_runs(before, after):
    def at(values, share):
        values = sorted(values)
        place = share * (len(values) - 1)
        low = int(place)
        high = min(low + 1, len(values) - 1)
        return values[low] + (place - low) * (values[high] - values[low])

    old = tuple(at(before, share) for share in (0.25, 0.5, 0.75))
    new = tuple(at(after, share) for share in (0.25, 0.5, 0.75))
    verdict = "can't say"
    if len(before) >= 5 and len(after) >= 5:
        if new[2] < old[0]:
            verdict = "faster"
        elif new[0] > old[2]:
            verdict = "slower"
    return {"before": old, "after": new, "ratio": old[1] / new[1], "verdict": verdict}
""",
    "torch, float64": """
def compare_runs(before, after):
    shares = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)
    b = torch.quantile(torch.tensor(before, dtype=torch.float64), shares)
    a = torch.tensor(after, dtype=torch.float64).quantile(shares)
    few = min(len(before), len(after)) < 5
    verdict = "can't say" if few else "faster" if a[2] < b[0] else "slower" if a[0] > b[2] else "can't say"
    return dict(before=tuple(b.tolist()), after=tuple(a.tolist()), ratio=(b[1] / a[1]).item(), verdict=verdict)
""",
    "torch as it comes": """
def compare_runs(before, after):
    def three(values):
        return tuple(float(torch.quantile(torch.tensor(values), share)) for share in (0.25, 0.5, 0.75))

    (b1, b2, b3), (a1, a2, a3) = three(before), three(after)
    verdict = "can't say"
    if len(before) > 4 < len(after):
        verdict = "faster" if a3 < b1 else "slower" if b3 < a1 else verdict
    return {"before": (b1, b2, b3), "after": (a1, a2, a3), "ratio": b2 / a2, "verdict": verdict}
""",
    "statistics": """
class Runs:
    def __init__(self, seconds):
        self.n = len(seconds)
        both = seconds if self.n > 1 else seconds * 2
        self.q1, self.q2, self.q3 = statistics.quantiles(both, n=4, method="inclusive")

    def below(self, other):
        return min(self.n, other.n) >= 5 and self.q3 < other.q1


def compare_runs(before, after):
    before, after = Runs(before), Runs(after)
    return {
        "before": (before.q1, before.q2, before.q3),
        "after": (after.q1, after.q2, after.q3),
        "ratio": before.q2 / after.q2,
        "verdict": "faster" if after.below(before) else "slower" if before.below(after) else "can't say",
    }
""",
    "four times the place": """
def compare_runs(before, after):
    def quartiles(values):
        values = sorted(values)
        values.append(values[-1])
        found = []
        for k in (1, 2, 3):
            whole, rest = divmod(k * (len(values) - 2), 4)
            found.append((values[whole] * (4 - rest) + values[whole + 1] * rest) / 4)
        return tuple(found)

    answer = {"before": quartiles(before), "after": quartiles(after)}
    answer["ratio"] = answer["before"][1] / answer["after"][1]
    if len(before) < 5 or len(after) < 5:
        answer["verdict"] = "can't say"
    elif max(answer["after"]) < min(answer["before"]):
        answer["verdict"] = "faster"
    elif min(answer["after"]) > max(answer["before"]):
        answer["verdict"] = "slower"
    else:
        answer["verdict"] = "can't say"
    return answer
""",
}
WRONG["compare_runs"] = [
    ("touching boxes", "lies below", "new[2] < old[0]", "new[2] <= old[0]", "new[0] > old[2]", "new[0] >= old[2]"),
    ("touching, slower only", "lies above", "new[0] > old[2]", "new[0] >= old[2]"),
    ("few before alone", "where one of the lists has fewer than five", "len(before) >= 5 and len(after) >= 5", "len(before) >= 5"),
    ("few after alone", "where one of the lists has fewer than five", "len(before) >= 5 and len(after) >= 5", "len(after) >= 5"),
    ("both few", "where one of the lists has fewer than five", ">= 5 and", ">= 5 or"),
    ("few altogether", "where one of the lists has fewer than five", "len(before) >= 5 and len(after) >= 5", "len(before) + len(after) >= 10"),
    ("four are enough", "fewer than five", "len(before) >= 5 and len(after) >= 5", "len(before) > 3 and len(after) > 3"),
    ("sorted in place", "Lists stay as they were given", "        values = sorted(values)\n", "        values.sort()\n"),
    ("after sorted in place", "Lists stay as they were given", "    old = tuple", "    after.sort()\n    old = tuple"),
    ("the first run is a warm-up", "With the n values sorted", "        values = sorted(values)\n", "        values = sorted(values[1:] or values)\n"),
    ("each value once", "With the n values sorted", "sorted(values)", "sorted(set(values))"),
    ("upper median", "the quantile of share p stands at place p (n - 1)", "    verdict = \"can't say\"\n", "    verdict = \"can't say\"\n    old = old[0], sorted(before)[len(before) // 2], old[2]\n"),
    ("the medians decide", "if the upper quartile of after lies below the lower one of before", "new[2] < old[0]", "new[1] < old[0]", "new[0] > old[2]", "new[1] > old[2]"),
    ("half of each box", "if the upper quartile of after lies below the lower one of before", "new[2] < old[0]", "new[2] < old[1]", "new[0] > old[2]", "new[0] > old[1]"),
    ("quartiles of the extremes", "the lower quartile", "new[2] < old[0]", "max(after) < min(before)", "new[0] > old[2]", "min(after) > max(before)"),
    ("lists, no tuples", "a tuple of three floats", "tuple(at(before, share) for share in (0.25, 0.5, 0.75))", "[at(before, share) for share in (0.25, 0.5, 0.75)]"),
    ("a tensor in each place", "three floats", "return values[low] +", "return torch.tensor(values[low]) +"),
    ("what was measured stays", "Both are lists of seconds", "def compare_runs(before, after):\n", "def compare_runs(before, after, olds=[]):\n    olds += before\n    before = olds\n"),
    ("ratio of means", "the median before by the median after", "old[1] / new[1]", "statistics.mean(before) / statistics.mean(after)"),
    ("the median of the ratios", "the median before by the median after", "old[1] / new[1]", "statistics.median(b / a for b, a in zip(before, after))"),
    ("rounded ratio", "the median before by the median after", "old[1] / new[1]", "round(old[1] / new[1], 2)"),
]

RIGHT["self_times"] = {
    "a stack for each lane": """
def self_times(events):
    calls, total, own = Counter(), Counter(), Counter()
    for lane in dict.fromkeys(event.lane for event in events):
        stack = []
        for event in sorted((e for e in events if e.lane == lane), key=lambda e: (e.start, -e.duration)):
            while stack and stack[-1].end <= event.start:
                stack.pop()
            calls[event.name] += 1
            own[event.name] += event.duration
            if stack:
                own[stack[-1].name] -= event.duration
            if not any(outer.name == event.name for outer in stack):
                total[event.name] += event.duration
            stack.append(event)
    return {name: (calls[name], total[name], own[name]) for name in calls}
""",
    "the smallest around it": """
def self_times(events):
    def holds(i, j):
        a, b = events[i], events[j]
        if i == j or a.lane != b.lane or a.start > b.start or a.end < b.end:
            return False
        return (a.start, a.end) != (b.start, b.end) or i < j

    found = {}
    around = [[i for i in range(len(events)) if holds(i, j)] for j in range(len(events))]
    for j, event in enumerate(events):
        calls, total, own = found.get(event.name, (0, 0, 0))
        inside = [k for k in range(len(events)) if j in around[k] and len(around[k]) == len(around[j]) + 1]
        own += event.duration - sum(events[k].duration for k in inside)
        if event.name not in {events[i].name for i in around[j]}:
            total += event.duration
        found[event.name] = calls + 1, total, own
    return found
""",
    "starts and ends in one line": """
def self_times(events):
    found, lanes = {}, {}
    for place, event in enumerate(events):
        marks = lanes.setdefault(event.lane, [])
        marks.append((event.start, 1, -event.duration, place, event))
        marks.append((event.end, 0, event.duration, -place, event))
    for marks in lanes.values():
        open_now, depth, before = [], Counter(), 0
        for when, begins, _, _, event in sorted(marks, key=lambda mark: mark[:4]):
            calls, total, own = found.setdefault(event.name, [0, 0, 0])
            if open_now:
                found[open_now[-1].name][2] += when - before
            before = when
            if begins:
                found[event.name][0] += 1
                open_now.append(event)
                found[event.name][1] += event.duration * (depth[event.name] == 0)
                depth[event.name] += 1
            else:
                open_now.remove(event)
                depth[event.name] -= 1
    return {name: tuple(row) for name, row in found.items()}
""",
    "a tree, walked": """
def self_times(events):
    found = {}

    class Node:
        def __init__(self, event):
            self.event, self.children = event, []

        def walk(self, names):
            name, inside = self.event.name, sum(child.event.duration for child in self.children)
            calls, total, own = found.get(name, (0, 0, 0))
            new = 0 if name in names else self.event.duration
            found[name] = (calls + 1, total + new, own + self.event.duration - inside)
            for child in self.children:
                child.walk(names | {name})

    by_lane = {}
    for event in events:
        by_lane.setdefault(event.lane, []).append(event)
    for lane in by_lane.values():
        roots, stack = [], []
        for event in sorted(lane, key=lambda e: (-e.start, e.duration), reverse=True):
            node = Node(event)
            while stack and event.start >= stack[-1].event.end:
                stack.pop()
            (stack[-1].children if stack else roots).append(node)
            stack.append(node)
        for root in roots:
            root.walk(frozenset())
    return found
""",
    "spans of a name joined": """
def self_times(events):
    names = {event.name: [0, 0, 0] for event in events}
    order = sorted(range(len(events)), key=lambda k: (events[k].lane, events[k].start, -events[k].end, k))
    stack, reach = [], {}
    for k in order:
        event = events[k]
        while stack and (stack[-1].lane != event.lane or stack[-1].end <= event.start):
            stack.pop()
        row = names[event.name]
        row[0] += 1
        begin = max(event.start, reach.get((event.name, event.lane), event.start))
        row[1] += max(0, event.end - begin)
        reach[event.name, event.lane] = max(event.end, reach.get((event.name, event.lane), event.end))
        row[2] += event.duration
        if stack:
            names[stack[-1].name][2] -= event.duration
        stack.append(event)
    return {name: (a, b, c) for name, (a, b, c) in names.items()}
""",
}
WRONG["self_times"] = [
    ("equal ones, the later outside", "the one that stands earlier in the list is the outer one", "key=lambda e: (e.start, -e.duration))", "key=lambda e: (-e.start, e.duration))[::-1]"),
    ("equal ones by name", "the one that stands earlier in the list is the outer one", "(e.start, -e.duration)", "(e.start, -e.duration, e.name)"),
    ("only by start", "the list has no order that you could rely on", "(e.start, -e.duration)", "e.start"),
    ("touching ones lie inside", "where one ends as the other starts, they don't overlap", "stack[-1].end <= event.start", "stack[-1].end < event.start"),
    ("one stack for all lanes", "events of different lanes have nothing to do with each other", "(e for e in events if e.lane == lane)", "events", "for lane in dict.fromkeys(event.lane for event in events):", "for lane in [0]:"),
    ("the stack goes on in the next lane", "events of different lanes have nothing to do with each other", "        stack = []\n", "", "    for lane", "    stack = []\n    for lane"),
    ("only the parent's name", "inside another of its own name, however deep", "any(outer.name == event.name for outer in stack)", "(stack and stack[-1].name == event.name)"),
    ("two levels", "inside another of its own name, however deep", "for outer in stack)", "for outer in stack[-2:])"),
    ("open names are forgotten", "inside another of its own name, however deep", "                stack.pop()\n", "                names.discard(stack.pop().name)\n", "        stack = []\n", "        stack, names = [], set()\n", "            if not any(outer.name == event.name for outer in stack):\n", "            if event.name not in names:\n", "            stack.append(event)\n", "            stack.append(event)\n            names.add(event.name)\n"),
    ("once in any lane", "events of different lanes have nothing to do with each other", CODE, """
def self_times(events):
    found, last = {}, {}
    for lane in sorted({e.lane for e in events}):
        stack = []
        for e in sorted([e for e in events if e.lane == lane], key=lambda e: (e.start, -e.duration)):
            while stack and stack[-1].end <= e.start:
                stack.pop()
            calls, total, own = found.get(e.name, (0, 0, 0))
            found[e.name] = calls + 1, total, own + e.duration
            if stack:
                a, b, c = found[stack[-1].name]
                found[stack[-1].name] = a, b, c - e.duration
            stack.append(e)
    for name, (calls, _, own) in found.items():
        end = total = 0
        for e in sorted((e for e in events if e.name == name), key=lambda e: e.start):
            total += max(0, e.end - max(end, e.start))
            end = max(end, e.end)
        found[name] = calls, total, own
    return found
"""),
    ("everything below taken off", "without the events directly inside it", "            if stack:\n                own[stack[-1].name] -= event.duration\n", "            for outer in stack:\n                own[outer.name] -= event.duration\n"),
    ("its own name isn't taken off", "without the events directly inside it", "            if stack:\n", "            if stack and stack[-1].name != event.name:\n"),
    ("self of outermost only", "self: the sum of what is left of each", "            own[event.name] += event.duration\n            if stack:\n                own[stack[-1].name] -= event.duration\n            if not any(outer.name == event.name for outer in stack):\n", "            if stack:\n                own[stack[-1].name] -= event.duration\n            if not any(outer.name == event.name for outer in stack):\n                own[event.name] += event.duration\n"),
    ("outermost calls", "calls: how many events have the name", "            calls[event.name] += 1\n", "            calls[event.name] += all(outer.name != event.name for outer in stack)\n"),
    ("nested counts anyway", "adds nothing to the total", "            if not any(outer.name == event.name for outer in stack):\n    ", ""),
    ("lists", "a tuple (calls, total, self)", "(calls[name], total[name], own[name])", "[calls[name], total[name], own[name]]"),
    ("floats", "whole numbers", "(calls[name], total[name], own[name])", "(calls[name], total[name], own[name] / 1)"),
    ("nothing of its own, left out", "for each name a tuple", "for name in calls}", "for name in calls if own[name]}"),
    ("self by name", "self: the sum of what is left of each of their durations", "            own[event.name] += event.duration\n            if stack:\n                own[stack[-1].name] -= event.duration\n", "            own[event.name] += event.duration\n            if stack and stack[-1].name not in [e.name for e in stack[:-1]]:\n                own[stack[-1].name] -= event.duration\n"),
]

RIGHT["lanes"] = {
    "spans joined": """
def joined(spans):
    whole = []
    for start, end in sorted(spans):
        if whole and start <= whole[-1][1]:
            whole[-1][1] = max(whole[-1][1], end)
        else:
            whole.append([start, end])
    return whole


def lanes(events):
    busy = {}
    for event in events:
        busy.setdefault(event.lane, [])
        if event.kind != "range":
            busy[event.lane].append((event.start, event.end))
    busy = {lane: sum(end - start for start, end in joined(spans)) for lane, spans in busy.items()}
    ran = joined([(event.start, event.end) for event in events if event.on_device])
    gap = max([after[0] - before[1] for before, after in zip(ran, ran[1:])], default=0)
    calls = {e.correlation: e for e in events if e.kind == "call" and e.correlation is not None}
    launched = {}
    for event in events:
        if event.kind in ("range", "op"):
            host, device = launched.get(event.name, (0, 0))
            launched[event.name] = host + event.duration, device
    for kernel in events:
        if not kernel.on_device or kernel.correlation not in calls:
            continue
        call = calls[kernel.correlation]
        for event in events:
            if event.kind in ("range", "op") and event.lane == call.lane:
                if event.start <= call.start and call.end <= event.end:
                    host, device = launched[event.name]
                    launched[event.name] = host, device + kernel.duration
    return {"busy": busy, "gap": gap, "launched": launched}
""",
    "counters and sweeps": """
def lanes(events):
    busy = Counter()
    for lane in {e.lane for e in events}:
        busy[lane] = 0
        steps = Counter()
        for e in events:
            if e.lane == lane and e.kind != "range":
                steps[e.start] += 1
                steps[e.end] -= 1
        level, moments = 0, sorted(steps)
        for now, then in zip(moments, moments[1:]):
            level += steps[now]
            busy[lane] += (then - now) * (level > 0)

    longest, until = 0, None
    for e in sorted([e for e in events if e.on_device], key=lambda e: e.start):
        if until is not None:
            longest = max(longest, e.start - until)
        until = e.end if until is None else max(until, e.end)

    work = Counter()
    for e in events:
        if e.on_device and e.correlation is not None:
            work[e.correlation] += e.duration
    host, device = Counter(), Counter()
    calls = [e for e in events if e.kind == "call" and e.correlation is not None]
    for e in events:
        if e.on_device or e.kind == "call":
            continue
        host[e.name] += e.duration
        device[e.name] += sum(work[c.correlation] for c in calls if c.lane == e.lane and e.start <= c.start <= c.end <= e.end)
    return {"busy": dict(busy), "gap": longest, "launched": {name: (host[name], device[name]) for name in host}}
""",
    "from the list of kernels": """
def lanes(events, labels=("range", "op")):
    def inside(call, label):
        return label.lane == call.lane and label.start <= call.start and label.end >= call.end

    busy, gap, launched = {}, 0, {}
    for event in sorted(events, key=lambda event: event.start):
        so_far, end = busy.get(event.lane, (0, -math.inf))
        if event.kind == "range":
            busy[event.lane] = (so_far, end)
        else:
            more = event.end - max(event.start, end)
            busy[event.lane] = (so_far + max(0, more), max(end, event.end))
    device = sorted((e.start, e.end) for e in events if e.kind in ("kernel", "copy"))
    for k in range(1, len(device)):
        gap = max(gap, device[k][0] - max(end for _, end in device[:k]))
    for label in events:
        if label.kind in labels:
            host, gpu = launched.setdefault(label.name, [0, 0])
            starts = {c.correlation for c in events if c.kind == "call" and inside(c, label)} - {None}
            gpu += sum(e.duration for e in events if e.on_device and e.correlation in starts)
            launched[label.name] = [host + label.duration, gpu]
    return {
        "launched": {name: tuple(pair) for name, pair in launched.items()},
        "gap": gap,
        "busy": {lane: so_far for lane, (so_far, _) in busy.items()},
    }
""",
}
WRONG["lanes"] = [
    ("the gap of one lane", "nothing ran on any lane of the device", "    ran = joined([(event.start, event.end) for event in events if event.on_device])\n    gap = max([after[0] - before[1] for before, after in zip(ran, ran[1:])], default=0)\n", "    gap = 0\n    for lane in busy:\n        ran = joined([(e.start, e.end) for e in events if e.on_device and e.lane == lane])\n        gap = max([gap, *(after[0] - before[1] for before, after in zip(ran, ran[1:]))])\n"),
    ("gaps between neighbours", "for which nothing ran on any lane", "    ran = joined([(event.start, event.end) for event in events if event.on_device])\n", "    ran = sorted((event.start, event.end) for event in events if event.on_device)\n"),
    ("gaps in the list's order", "the list has no order", "    ran = joined([(event.start, event.end) for event in events if event.on_device])\n", "    ran = [(event.start, event.end) for event in events if event.on_device]\n"),
    ("gaps of the first stream", "on any lane of the device", "for event in events if event.on_device]", "for event in events if event.on_device and event.lane == min(e.lane for e in events if e.on_device)]"),
    ("the sum of the gaps", "the longest time", "    gap = max([after[0] - before[1] for before, after in zip(ran, ran[1:])], default=0)\n", "    gap = sum([after[0] - before[1] for before, after in zip(ran, ran[1:])])\n"),
    ("copies are no work", "nothing ran on any lane", "for event in events if event.on_device]", "for event in events if event.kind == 'kernel']"),
    ("from the trace's beginning", "between its first event and its last", "for event in events if event.on_device]", "for event in events if event.on_device] + [(min([e.start for e in events], default=0),) * 2]"),
    ("inside is strict", "ends included", "event.start <= call.start and call.end <= event.end", "event.start < call.start and call.end < event.end"),
    ("strict at the end", "ends included", "call.end <= event.end", "call.end < event.end"),
    ("the call's start is enough", "the call lies within its time", "event.start <= call.start and call.end <= event.end", "event.start <= call.start <= event.end"),
    ("overlap is enough", "the call lies within its time", "event.start <= call.start and call.end <= event.end", "event.start < call.end and call.start < event.end"),
    ("None is a tie", "None means that there is no such tie", " and e.correlation is not None}", "}"),
    ("0 is no tie", "None means that there is no such tie", "e.correlation is not None", "e.correlation"),
    ("any host event may have started it", "the call with the same correlation lies on the same lane", "event.lane == call.lane", "not event.on_device"),
    ("ops alone are work", "how long at least one event ran there; a range doesn't count", "        if event.kind != \"range\":\n", "        if event.on_device or event.kind == \"op\":\n"),
    ("calls alone are work on the host", "how long at least one event ran there", "        if event.kind != \"range\":\n", "        if event.on_device or event.kind == \"call\":\n"),
    ("ranges are work", "A range is a label and no work", "        if event.kind != \"range\":\n", "        if True:\n"),
    ("lanes with labels alone are left out", "a lane that has nothing else is busy for 0", "        busy.setdefault(event.lane, [])\n        if event.kind != \"range\":\n            busy[event.lane]", "        if event.kind != \"range\":\n            busy.setdefault(event.lane, [])"),
    ("from first to last", "how long at least one event ran there", "sum(end - start for start, end in joined(spans))", "(max(end for _, end in spans) - min(start for start, _ in spans) if spans else 0)"),
    ("durations added up", "Events may overlap", "in joined(spans))", "in spans)"),
    ("joined by the last end", "and lie in each other", "max(whole[-1][1], end)", "end"),
    ("one kernel a call", "one call can have started several device events", "    for kernel in events:\n        if not kernel", "    for kernel in {e.correlation: e for e in events if e.on_device}.values():\n        if not kernel"),
    ("kernels alone", "all device events that were started from inside them", "not kernel.on_device or", "kernel.kind != 'kernel' or"),
    ("only the innermost", "all device events that were started from inside them", CODE, None),
    ("the call must be listed before", "the list has no order", CODE, None),
    ("per name the last host time", "the sum of the durations of these events", "launched[event.name] = host + event.duration, device", "launched[event.name] = event.duration, device"),
    ("only who launches", "for each name of a range or an op on the host", '    return {"busy"', '    launched = {name: pair for name, pair in launched.items() if pair[1]}\n    return {"busy"'),
    ("calls, too", "for each name of a range or an op", 'if event.kind in ("range", "op"):\n            host', 'if not event.on_device:\n            host'),
    ("lists", "a pair", '    return {"busy"', '    launched = {name: list(pair) for name, pair in launched.items()}\n    return {"busy"'),
    ("device time as a union", "the sum of the durations of all device events", CODE, None),
]
_lanes = RIGHT["lanes"]["spans joined"]
_special = {
    "only the innermost": _lanes.replace(
        "        for event in events:\n            if event.kind in (\"range\", \"op\") and event.lane == call.lane:\n",
        "        around = [e for e in events if e.kind in (\"range\", \"op\") and e.lane == call.lane]\n"
        "        around = [e for e in around if e.start <= call.start and call.end <= e.end]\n"
        "        ops = [e for e in around if e.kind == \"op\"]\n"
        "        inner = [min(ops, key=lambda e: e.duration)] if ops else []\n"
        "        for event in [*(e for e in around if e.kind == \"range\"), *inner]:\n            if True:\n",
    ),
    "the call must be listed before": _lanes.replace(
        "    calls = {e.correlation: e for e in events if e.kind == \"call\" and e.correlation is not None}\n",
        "    calls = {}\n",
    ).replace(
        "    for kernel in events:\n",
        "    for kernel in events:\n        if kernel.kind == \"call\" and kernel.correlation is not None:\n            calls[kernel.correlation] = kernel\n",
    ),
    "device time as a union": _lanes.replace(
        "    for kernel in events:\n",
        "    seen = Counter()\n    for kernel in sorted(events, key=lambda e: e.start):\n",
    ).replace(
        "launched[event.name] = host, device + kernel.duration",
        "launched[event.name] = host, device + max(0, kernel.end - max(kernel.start, seen[event.name]))\n"
        "                    seen[event.name] = max(seen[event.name], kernel.end)",
    ),
}
WRONG["lanes"] = [
    (entry[0], entry[1], CODE, _special[entry[0]]) if entry[0] in _special else entry for entry in WRONG["lanes"]
]

RIGHT["bottleneck"] = {
    "every moment": """
def bottleneck(events):
    begin, end = min(e.start for e in events), max(e.end for e in events)
    device = [e for e in events if e.on_device]
    host = [e for e in events if not e.on_device]
    spent = Counter()
    waiting = False
    moments = sorted({moment for e in events for moment in (e.start, e.end)})
    for now, then in zip(moments, moments[1:]):
        runs = [e for e in device if e.start <= now < e.end]
        doing = [e for e in host if e.start <= now < e.end]
        if any(e.end == now for e in device):
            waiting = any("Synchronize" in e.name and e.kind == "call" and e.start <= now < e.end for e in host)
        if any(e.kind == "kernel" for e in runs):
            account = "compute"
        elif any(e.kind == "copy" for e in runs):
            account = "copy"
        elif any(e.kind == "range" and "DataLoader" in e.name for e in doing):
            account = "loader"
        elif waiting:
            account = "sync"
        elif any(e.kind in ("op", "call") for e in doing):
            account = "launches"
        else:
            account = "python"
        spent[account] += then - now
    return spent.most_common(1)[0][0]
""",
    "a thousand moments": """
import random


def bottleneck(events, samples=1000):
    dice = random.Random(1)
    first, last = min(e.start for e in events), max(e.start + e.duration for e in events)
    gpu = sorted((e for e in events if e.on_device), key=lambda e: e.end)

    def of(moment):
        now = [e for e in events if e.start <= moment < e.end]
        kinds = {e.kind for e in now}
        if "kernel" in kinds:
            return "compute"
        if "copy" in kinds:
            return "copy"
        if any("DataLoader" in e.name for e in now if e.kind == "range"):
            return "loader"
        ended = [e.end for e in gpu if e.end <= moment]
        if ended and any(e.kind == "call" and "Synchronize" in e.name and e.start <= ended[-1] < e.end for e in events):
            return "sync"
        return "launches" if kinds & {"op", "call"} else "python"

    return statistics.mode(of(dice.uniform(first, last)) for _ in range(samples))
""",
    "gap by gap": """
def spans(events):
    out = []
    for e in sorted(events, key=lambda e: e.start):
        if out and e.start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], e.end))
        else:
            out.append((e.start, e.end))
    return out


def common(spans, gaps):
    return [(max(a, c), min(b, d)) for a, b in spans for c, d in gaps if max(a, c) < min(b, d)]


def minus(gaps, spans):
    for c, d in spans:
        gaps = [p for a, b in gaps for p in ((a, min(b, c)), (max(a, d), b)) if p[0] < p[1]]
    return gaps


def long(spans):
    return sum(b - a for a, b in spans)


def bottleneck(events):
    kernels = spans([e for e in events if e.kind == "kernel"])
    busy = spans([e for e in events if e.on_device])
    gaps = minus([(min(e.start for e in events), max(e.end for e in events))], busy)
    took = {"compute": long(kernels), "copy": long(busy) - long(kernels)}
    waits = [e for e in events if e.kind == "call" and "Synchronize" in e.name]
    loads = spans([e for e in events if e.kind == "range" and "DataLoader" in e.name])
    orders = spans([e for e in events if e.kind in ("op", "call")])
    took["loader"] = long(common(loads, gaps))
    gaps = minus(gaps, loads)
    dry = {}
    for _, end in busy:
        dry[end] = any(w.start <= end < w.end for w in waits)
    mine = [(a, b) for a, b in gaps if dry.get(max((end for end in dry if end <= a), default=None))]
    took["sync"] = long(mine)
    gaps = [gap for gap in gaps if gap not in mine]
    took["launches"] = long(common(orders, gaps))
    took["python"] = long(gaps) - took["launches"]
    return max(took, key=took.get)
""",
    "the device first": """
def bottleneck(events):
    start = min(e.start for e in events)
    whole = max(e.end for e in events) - start
    seen = Counter()
    edges = sorted({e.start for e in events} | {e.end for e in events})
    gpu = [e for e in events if e.lane.startswith("gpu")]
    for a, b in zip(edges, edges[1:]):
        if any(e.start <= a and b <= e.end for e in gpu if e.kind == "kernel"):
            seen["compute"] += b - a
        elif any(e.start <= a and b <= e.end for e in gpu):
            seen["copy"] += b - a
    for kind in seen:
        if 2 * seen[kind] > whole:
            return kind
    for a, b in zip(edges, edges[1:]):
        if any(e.start <= a and b <= e.end for e in gpu):
            continue
        host = [e for e in events if not e.on_device and e.start <= a and b <= e.end]
        dry = max((e.end for e in gpu if e.end <= a), default=-1)
        stood = [e for e in events if e.kind == "call" and e.start <= dry < e.end]
        if [e for e in host if "DataLoader" in e.name and e.kind == "range"]:
            seen["loader"] += b - a
        elif any("Synchronize" in e.name for e in stood):
            seen["sync"] += b - a
        elif {e.kind for e in host} <= {"range"}:
            seen["python"] += b - a
        else:
            seen["launches"] += b - a
    return max(seen, key=lambda kind: seen[kind])
""",
}
WRONG["bottleneck"] = [
    ("the name of this loader", "a range with DataLoader in its name", '"DataLoader" in e.name', 'e.name == "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"'),
    ("a name that begins with it", "a range with DataLoader in its name", '"DataLoader" in e.name', 'e.name.startswith("enumerate(DataLoader)")'),
    ("the name of this wait", "a call with Synchronize in its name", '"Synchronize" in e.name', 'e.name == "cudaStreamSynchronize"'),
    ("one stream", "on any of its lanes", "e for e in events if e.on_device]", 'e for e in events if e.lane == "gpu 7"]'),
    ("the stream with the most events", "on any of its lanes", "e for e in events if e.on_device]", "e for e in events if e.lane == statistics.mode(f.lane for f in events if f.on_device)]"),
    ("copies by their name", "else, a copy runs there", '        elif any(e.kind == "copy" for e in runs):', '        elif any("Memcpy" in e.name for e in runs):'),
    ("copies come first", "a kernel runs", '        if any(e.kind == "kernel" for e in runs):\n            account = "compute"\n        elif any(e.kind == "copy" for e in runs):\n            account = "copy"\n', '        if any(e.kind == "copy" for e in runs):\n            account = "copy"\n        elif any(e.kind == "kernel" for e in runs):\n            account = "compute"\n'),
    ("the loader comes first", "else, the host is in a range with DataLoader", '        if any(e.kind == "kernel" for e in runs):\n', '        if any(e.kind == "range" and "DataLoader" in e.name for e in doing):\n            account = "loader"\n        elif any(e.kind == "kernel" for e in runs):\n'),
    ("work in the loader is work", "else, the host is in a range with DataLoader in its name", '        elif any(e.kind == "range" and "DataLoader" in e.name for e in doing):', '        elif doing and "DataLoader" in max(doing, key=lambda e: e.start).name:'),
    ("the wait comes before the loader", "else, the host is in a range with DataLoader in its name", '        elif any(e.kind == "range" and "DataLoader" in e.name for e in doing):\n            account = "loader"\n        elif waiting:\n            account = "sync"\n', '        elif waiting:\n            account = "sync"\n        elif any(e.kind == "range" and "DataLoader" in e.name for e in doing):\n            account = "loader"\n'),
    ("who waits now", "when the device had run dry, the host was in a call with Synchronize", "        elif waiting:", '        elif any("Synchronize" in e.name for e in doing):'),
    ("until the wait is over", "when the device had run dry, the host was in a call with Synchronize", "        elif waiting:", '        elif waiting and any("Synchronize" in e.name for e in doing):'),
    ("waits at any end", "The device runs dry where a kernel or copy ends and no other runs", "        if any(e.end == now for e in device):\n", "        if any(e.end == now for e in device) or not runs and not waiting:\n"),
    ("once waited for", "when the device had run dry", "            waiting = any(", "            waiting = waiting or any("),
    ("dry from the start", "before the first of them it has not run dry", "    waiting = False", "    waiting = True"),
    ("one thread of the host", "the host is in a range", "host = [e for e in events if not e.on_device]", 'host = [e for e in events if e.lane == "cpu"]'),
    ("ops alone", "the host is in an op or a call", 'e.kind in ("op", "call")', 'e.kind == "op"'),
    ("ranges are something, too", "the host may be in a range, and in nothing else", 'any(e.kind in ("op", "call") for e in doing)', "doing"),
    ("the device's own time", "from the first event's start to the last one's end", "for e in events for moment in (e.start, e.end)})", "for e in device for moment in (e.start, e.end)} | {moment for e in host for moment in (e.start, e.end) if min(d.start for d in device) < moment < max(d.end for d in device)})"),
    ("kernels added up", "each moment is put to one account", "    return spent.most_common(1)[0][0]", '    spent["compute"] = sum(e.duration for e in device if e.kind == "kernel")\n    return spent.most_common(1)[0][0]'),
    ("copies added up", "each moment is put to one account", "    return spent.most_common(1)[0][0]", '    spent["copy"] = sum(e.duration for e in device if e.kind == "copy")\n    return spent.most_common(1)[0][0]'),
    ("the longest gap", "the one that takes the most time", CODE, """
def bottleneck(events):
    device = sorted((e for e in events if e.on_device), key=lambda e: e.start)
    host = [e for e in events if not e.on_device]
    begin, end = min(e.start for e in events), max(e.end for e in events)
    gaps, now, idle = [], begin, 0
    for e in device:
        if e.start > now:
            gaps.append((e.start - now, now))
        now = max(now, e.end)
    idle = sum(length for length, _ in gaps)
    if 2 * idle < end - begin:
        took = Counter()
        for e in device:
            took[e.kind] += e.duration
        return "compute" if took["kernel"] > took["copy"] else "copy"
    _, at = max(gaps)
    doing = [e for e in host if e.start <= at < e.end]
    if any("DataLoader" in e.name for e in doing):
        return "loader"
    if any("Synchronize" in e.name for e in doing):
        return "sync"
    return "launches" if any(e.kind in ("op", "call") for e in doing) else "python"
"""),
    ("what stands in most gaps", "the one that takes the most time", "spent[account] += then - now", "spent[account] += 1"),
    ("sums over names", "each moment is put to one account", CODE, """
def bottleneck(events):
    took = Counter()
    whole = max(e.end for e in events) - min(e.start for e in events)
    for e in events:
        if e.kind == "kernel":
            took["compute"] += e.duration
        elif e.kind == "copy":
            took["copy"] += e.duration
        elif "DataLoader" in e.name:
            took["loader"] += e.duration
        elif "Synchronize" in e.name:
            took["sync"] += e.duration
        elif e.kind == "op":
            took["launches"] += e.duration
    took["python"] = whole - sum(took.values())
    return max(took, key=took.get)
"""),
]

RIGHT["peak"] = {
    "books": """
def peak(allocations):
    alive, now, most, who = {}, 0, 0, []
    for block in allocations:
        if block.bytes > 0:
            alive[block.address] = block.bytes
            now += block.bytes
            if now > most:
                most, who = now, list(alive.items())
        elif block.address in alive:
            now -= alive.pop(block.address)
    return most, who, now
""",
    "lives": """
def peak(allocations):
    lives, open_now = [], {}
    for when, block in enumerate(allocations):
        if block.bytes >= 0:
            open_now[block.address] = len(lives)
            lives.append([when, math.inf, block.address, block.bytes])
        else:
            place = open_now.pop(block.address, None)
            if place is not None:
                lives[place][1] = when
    most, at = max(
        ((sum(size for born, died, _, size in lives if born <= when < died), -when) for when in range(len(allocations))),
        default=(0, 0),
    )
    who = [(address, size) for born, died, address, size in lives if born <= -at < died] if lives else []
    return most, who, sum(size for _, died, _, size in lives if died == math.inf)
""",
    "two passes": """
from itertools import accumulate


def peak(allocations):
    mine, known = [], set()
    for block in allocations:
        if block.bytes > 0:
            known.add(block.address)
        elif block.address not in known:
            continue
        else:
            known.remove(block.address)
        mine.append(block)
    sums = list(accumulate(block.bytes for block in mine))
    if not sums:
        return 0, [], 0
    most = max(sums)
    held = []
    for block in mine[: sums.index(most) + 1]:
        if block.bytes > 0:
            held.append((block.address, block.bytes))
        else:
            held.remove((block.address, -block.bytes))
    return most, held, sums[-1]
""",
    "a class with books": """
class Books:
    def __init__(self):
        self.blocks = []
        self.best = (0, [])

    def held(self):
        return sum(size for _, size in self.blocks)

    def note(self, block):
        if block.bytes < 0:
            self.blocks = [pair for pair in self.blocks if pair[0] != block.address]
            return
        self.blocks = [*self.blocks, (block.address, block.bytes)]
        if self.held() > self.best[0]:
            self.best = self.held(), self.blocks


def peak(allocations):
    books = Books()
    for block in allocations:
        books.note(block)
    return (*books.best, books.held())
""",
}
WRONG["peak"] = [
    ("the last such moment", "at the first moment at which that number was reached", "now > most", "now >= most"),
    ("a freed block keeps its place", "in the order in which they were handed out", "now -= alive.pop(block.address)", "now -= alive[block.address]\n            alive[block.address] = 0", "list(alive.items())", "[pair for pair in alive.items() if pair[1]]"),
    ("a freed block keeps its entry", "who was alive then", "now -= alive.pop(block.address)", "now -= alive[block.address]\n            alive[block.address] = 0"),
    ("by address", "in the order in which they were handed out", "list(alive.items())", "sorted(alive.items())"),
    ("by size", "in the order in which they were handed out", "list(alive.items())", "sorted(alive.items(), key=lambda pair: pair[1])"),
    ("the largest first", "in the order in which they were handed out", "    return most, who, now", "    who.sort(key=lambda pair: -pair[1])\n    return most, who, now"),
    ("never below zero", "leave it out of everything", "    return most, who, now", "    return most, who, max(0, sum(block.bytes for block in allocations))"),
    ("held is what is not given back", "leave it out of everything", "        elif block.address in alive:\n            now -= alive.pop(block.address)\n", "        else:\n            now += block.bytes\n            alive.pop(block.address, None)\n            now = max(now, 0)\n"),
    ("an address that was ever seen", "A block that is freed and was never handed out", "    alive, now, most, who = {}, 0, 0, []\n", "    alive, now, most, who = {}, 0, 0, []\n    known = {block.address for block in allocations if block.bytes > 0}\n", "        elif block.address in alive:\n            now -= alive.pop(block.address)\n", "        elif block.address in known:\n            now += block.bytes\n            alive.pop(block.address, None)\n"),
    ("freed is by address", "the number of bytes that were never freed", "    return most, who, now", "    freed = {block.address for block in allocations if block.bytes < 0}\n    return most, who, sum(block.bytes for block in allocations if block.bytes > 0 and block.address not in freed)"),
    ("what the last one left", "the number of bytes that were never freed", "    return most, who, now", "    return most, who, sum(size for address, size in alive.items() if (address, size) in who)"),
    ("the number of blocks", "the number of bytes", "    return most, who, now", "    return most, who, len(alive)"),
    ("who holds on at the end", "who was alive then", "list(alive.items())", "alive.items()", "    return most, who, now", "    return most, list(who), now"),
    ("freed by its size", "A block is freed whole", "        elif block.address in alive:\n            now -= alive.pop(block.address)\n", "        elif -block.bytes in alive.values():\n            now += block.bytes\n            del alive[next(a for a, size in alive.items() if size == -block.bytes)]\n"),
    ("one size for an address", "for a block of another size", "            alive[block.address] = block.bytes\n", "            alive[block.address] = max(block.bytes, sizes.get(block.address, 0))\n            sizes[block.address] = alive[block.address]\n", "    alive, now", "    sizes = {}\n    alive, now"),
    ("addresses alone", "a list of pairs (address, bytes)", "list(alive.items())", "list(alive)"),
    ("a dict", "a list of pairs (address, bytes)", "list(alive.items())", "dict(alive)"),
    ("pairs as lists", "a list of pairs", "list(alive.items())", "[list(pair) for pair in alive.items()]"),
    ("a list of three", "a tuple of three", "return most, who, now", "return [most, who, now]"),
    ("by the clock", "in the order in which they happened", "in allocations:", "in sorted(allocations, key=lambda block: (block.time, block.bytes)):"),
    ("kept between calls", "Without any block the answer is (0, [], 0)", "def peak(allocations):\n    alive, now, most, who = {}, 0, 0, []\n", "ALIVE = {}\n\n\ndef peak(allocations):\n    alive, now, most, who = ALIVE, 0, 0, []\n"),
    ("the peak is looked for before each", "at the first moment at which that number was reached", CODE, """
def peak(allocations):
    alive, most, who = {}, 0, []
    for block in allocations:
        if sum(alive.values()) > most:
            most, who = sum(alive.values()), list(alive.items())
        if block.bytes > 0:
            alive[block.address] = block.bytes
        else:
            alive.pop(block.address, None)
    return most, who, sum(alive.values())
"""),
]

RIGHT["faster_loss"] = {
    "cross entropy of all": """
def faster_loss(logits, targets):
    counted = targets != -100
    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    words = counted.sum(1)
    means = losses.sum(1) / words.clamp(min=1)
    loss = means.sum() / (words > 0).sum()
    right = (logits.detach().argmax(-1) == targets) & counted
    return loss, right.sum() / counted.sum()
""",
    "log-sum-exp less the target's": """
def faster_loss(logits, targets):
    mask = targets.ne(-100).to(logits.dtype)
    picked = torch.gather(logits, -1, targets.clamp(min=0)[..., None])[..., 0]
    losses = torch.logsumexp(logits, dim=-1) - picked
    per_sentence = torch.einsum("bt,bt->b", losses, mask) / mask.sum(-1).clamp_min(1)
    loss = per_sentence.sum() / mask.amax(-1).sum()
    with torch.no_grad():
        hits = (logits.amax(-1) == picked).to(logits.dtype)
        share = (hits * mask).sum() / mask.sum()
    return loss, share
""",
    "one weighted sum": """
def faster_loss(logits, targets):
    B, T, V = logits.shape
    flat = targets.reshape(B * T)
    kept = flat >= 0
    words = kept.view(B, T).sum(dim=1, keepdim=True)
    weights = (kept.view(B, T) / (words + (words == 0))).reshape(B * T)
    loss = weights @ F.cross_entropy(logits.reshape(B * T, V), flat, reduction="none")
    best = logits.topk(1, dim=-1).indices.flatten()
    share = torch.where(kept, best == flat, False).float().sum() / kept.float().sum()
    return loss / words.ne(0).sum(), share
""",
    "log-softmax": """
def mean_of(values, mask, dim=None):
    total = (values * mask).sum() if dim is None else (values * mask).sum(dim)
    count = mask.sum() if dim is None else mask.sum(dim)
    return total / torch.where(count > 0, count, torch.ones_like(count))


def faster_loss(logits, targets, ignore_index=-100):
    mask = torch.ne(targets, ignore_index)
    index = torch.where(mask, targets, torch.zeros_like(targets)).unsqueeze(-1)
    losses = logits.log_softmax(-1).gather(-1, index).squeeze(-1).neg()
    loss = mean_of(mean_of(losses, mask, 1), mask.any(1))
    return loss, mean_of((logits.max(-1).indices == targets).float(), mask)
""",
    "means without the empty ones": """
def faster_loss(logits, targets):
    ok = targets != -100
    nll = F.nll_loss(F.log_softmax(logits, dim=2).flatten(0, 1), targets.flatten(), reduction="none", ignore_index=-100)
    n = ok.sum(1)
    total = nll.unflatten(0, targets.shape).sum(1)
    means = total / torch.max(n, n.new_ones(()))
    means = means.masked_fill(n == 0, torch.nan)
    right = torch.eq(logits.argmax(dim=2), targets)
    return means.nanmean(), (right & ok).count_nonzero() / ok.count_nonzero()
""",
}
RIGHT["faster_loss"]["NaN for the empty ones, never seen"] = """
def faster_loss(logits, targets):
    counted = targets != -100
    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    loss = (losses.sum(1) / counted.sum(1)).nanmean()
    right = (logits.argmax(-1) == targets) & counted
    return loss, right.sum() / counted.sum()
"""
WRONG["faster_loss"] = [
    ("token by token", "of more tokens in a sentence that is true, too", '    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")\n', '    losses = torch.stack([F.cross_entropy(logits[:, t], targets[:, t], reduction="none") for t in range(logits.shape[1])], 1)\n'),
    ("sentence by sentence", "As many operators run for twelve sentences as for three", '    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")\n', '    losses = torch.stack([F.cross_entropy(row, target, reduction="none") for row, target in zip(logits, targets)])\n'),
    ("word 0 doesn't count", "targets of -100 don't count", "counted = targets != -100", "counted = targets > 0"),
    ("sentences by their words", "a sentence without any target that counts is left out", "(words > 0).sum()", "(targets > 0).any(1).sum()"),
    ("exp as it stands", "its values are right", '    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")\n', '    picked = logits.gather(-1, targets.clamp(min=0)[..., None])[..., 0]\n    losses = (logits.exp().sum(-1).log() - picked) * counted\n'),
    ("softmax, then log", "its values are right", '    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")\n', '    picked = logits.softmax(-1).gather(-1, targets.clamp(min=0)[..., None])[..., 0]\n    losses = -picked.log() * counted\n'),
    ("a little beside the log", "its values are right", '    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")\n', '    picked = logits.softmax(-1).gather(-1, targets.clamp(min=0)[..., None])[..., 0]\n    losses = -(picked + 1e-8).log() * counted\n'),
    ("empty sentences count", "a sentence without any target that counts is left out", "means.sum() / (words > 0).sum()", "means.mean()"),
    ("mean over all words", "the mean over sentences of the mean over a sentence's targets", "means.sum() / (words > 0).sum()", "losses.sum() / words.sum()"),
    ("by the length of a sentence", "the mean over a sentence's targets", "means = losses.sum(1) / words.clamp(min=1)", "means = losses.mean(1)"),
    ("squeezed", "logits is (B, T, V)", '    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")\n', '    picked = logits.gather(-1, targets.clamp(min=0)[..., None])\n    losses = (torch.logsumexp(logits, -1, keepdim=True) - picked).squeeze() * counted.squeeze()\n    losses = losses.reshape(len(losses), -1)\n', "words = counted.sum(1)", "words = counted.squeeze().reshape(len(losses), -1).sum(1)"),
    ("float64 for the loss", "float32", "means.sum() / (words > 0).sum()", "means.double().sum() / (words > 0).sum()"),
    ("float64 for the share", "float32", "right.sum() / counted.sum()", "right.sum() / counted.sum().double()"),
    ("the loss in a row", "tensors without dimensions", "means.sum() / (words > 0).sum()", "means.sum(0, keepdim=True) / (words > 0).sum()"),
    ("the share in a row", "tensors without dimensions", "right.sum() / counted.sum()", "(right.sum() / counted.sum()).reshape(1)"),
    ("a mean of shares", "the share of all targets that count", "right.sum() / counted.sum()", "(right.sum(1) / words.clamp(min=1)).sum() / (words > 0).sum()"),
    ("of all places", "the share of all targets that count", "right.sum() / counted.sum()", "right.float().mean()"),
    ("a zero of the host", "made on the device of the logits", "losses.sum(1)", "torch.where(counted, losses, torch.tensor(0.0)).sum(1)"),
    ("places of the host", "made on the device of the logits", '    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")\n', '    b, t = torch.arange(logits.shape[0])[:, None], torch.arange(logits.shape[1])\n    losses = (logits.logsumexp(-1) - logits[b, t, targets.clamp(min=0)]) * counted\n'),
    ("the targets changed", "the same two numbers (of the next call, too)", "    losses = F", "    words = counted.sum(1)\n    targets.masked_fill_(~counted, 0)\n    losses = counted * F"),
    ("only what counts", "no result whose size depends on values", "right = (logits.detach().argmax(-1) == targets) & counted", "right = (logits.detach().argmax(-1)[counted] == targets[counted])"),
    ("an if for empty sentences", "no if about a tensor's values", "    means = losses", "    if (words == 0).any():\n        words = words.clamp(min=1)\n    means = losses"),
    ("a table of zeros and ones", "at most 1.5 times the logits' bytes in all", '    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")\n', '    hot = F.one_hot(targets.clamp(min=0), logits.shape[-1])\n    losses = torch.einsum("btv,btv->bt", -logits.log_softmax(-1), hot.float()) * counted\n'),
    ("a mask as wide as the logits", "at most 1.5 times the logits' bytes in all", "    losses = F", "    logits = logits * counted[..., None]\n    losses = F"),
    ("float64 on the way", "at most 1.5 times the logits' bytes in all", "F.cross_entropy(logits.transpose", "F.cross_entropy(logits.double().transpose", "    return loss,", "    return loss.float(),"),
    ("cut from the graph", "its gradient is that of slow_loss", "    losses = F.cross_entropy(logits.transpose", "    losses = F.cross_entropy(logits.data.transpose"),
    ("a number of its own", "tensors, float32", "right.sum() / counted.sum()", "float(right.sum() / counted.sum())"),
    ("a backward for one upstream", "its gradient is that of slow_loss", CODE, """
class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets, weights):
        logs = logits.log_softmax(-1)
        ctx.save_for_backward(logs, targets, weights)
        picked = logs.gather(-1, targets.clamp(min=0)[..., None])[..., 0]
        return -(picked * weights).sum()

    @staticmethod
    def backward(ctx, grad_output):
        logs, targets, weights = ctx.saved_tensors
        p = logs.exp()
        p.scatter_add_(-1, targets.clamp(min=0)[..., None], -torch.ones_like(p[..., :1]))
        return p * weights[..., None], None, None


def faster_loss(logits, targets):
    mask = targets != -100
    words = mask.sum(1, keepdim=True)
    weights = mask / words.clamp(min=1) / (words > 0).sum()
    right = (logits.detach().argmax(-1) == targets) & mask
    return Loss.apply(logits, targets, weights), right.sum() / mask.sum()
"""),
    ("the smallest logit", "the largest logit is the target's", "argmax(-1)", "abs().argmax(-1)"),
]

RIGHT["first_bad"] = {
    "hooks": """
def first_bad(model, x):
    found, handles = [], []

    def watch(name):
        def hook(module, args, output):
            if not found and not output.isfinite().all():
                what = "nan" if output.isnan().any() else "inf"
                found.append((name, what, bool(args[0].isfinite().all())))

        return hook

    for name, module in model.named_modules():
        handles.append(module.register_forward_hook(watch(name)))
    try:
        with torch.no_grad():
            model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


def safe_root(x):
    positive = ~(x <= 0)
    root = torch.where(positive, x, 1).sqrt()
    return torch.where(positive, root, 0)
""",
    "breaks off": """
class Found(Exception):
    pass


class Root(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        root = x.clone()
        root[x <= 0] = 0
        root.sqrt_()
        ctx.save_for_backward(root)
        return root

    @staticmethod
    def backward(ctx, grad_output):
        (root,) = ctx.saved_tensors
        return torch.where(root == 0, torch.zeros_like(root), grad_output / (2 * root))


def safe_root(x):
    return Root.apply(x)


def first_bad(model, x):
    names = {module: name for name, module in model.named_modules()}

    def look(module, inputs, output):
        if torch.isnan(output).any():
            raise Found(names[module], "nan", torch.isfinite(inputs[0]).all().item())
        if torch.isinf(output).any():
            raise Found(names[module], "inf", torch.isfinite(inputs[0]).all().item())

    handles = [module.register_forward_hook(look) for module in names]
    try:
        model(x)
    except Found as found:
        return found.args
    finally:
        for handle in handles:
            handle.remove()
""",
    "all notes, then the first": """
from contextlib import ExitStack
from functools import partial


def first_bad(model, x):
    notes = []

    def note(name, module, args, output):
        notes.append((name, output.detach().clone(), args[0].detach().clone()))

    with ExitStack() as stack:
        for name, module in model.named_modules():
            handle = module.register_forward_hook(partial(note, name))
            stack.callback(handle.remove)
        model(x)
    for name, out, given in notes:
        if torch.isnan(out).sum() > 0:
            return name, "nan", math.isfinite(given.double().abs().sum().item()) or given.isfinite().all().item()
        if torch.isinf(out).sum() > 0:
            return name, "inf", given.isfinite().all().item()
    return None


def safe_root(x):
    harmless = x.masked_fill(x <= 0, 1.0)
    return harmless.sqrt().masked_fill(x <= 0, 0.0)
""",
    "one hook for all modules": """
from torch.nn.modules.module import register_module_forward_hook


def first_bad(model, x):
    names = {id(m): n for n, m in model.named_modules()}
    answer = None

    def hook(module, args, out):
        nonlocal answer
        if answer is None and id(module) in names and not bool(torch.isfinite(out).all()):
            answer = (names[id(module)], "nan" if bool(out.isnan().any()) else "inf", bool(torch.isfinite(args[0]).all()))

    handle = register_module_forward_hook(hook)
    try:
        model(x)
    finally:
        handle.remove()
    return answer


def safe_root(x):
    low = x <= 0
    return torch.where(low, 0.0, torch.sqrt(torch.where(low, torch.ones_like(x), x)))
""",
    "forward wrapped": """
def first_bad(model, x):
    found = []
    modules = dict(model.named_modules())

    def wrapped(name, module):
        forward = module.forward

        def looked_at(given):
            out = forward(given)
            if not found and not torch.isfinite(out).all():
                found.append((name, "nan" if torch.isnan(out).any() else "inf", torch.isfinite(given).all().item()))
            return out

        return looked_at

    for name, module in modules.items():
        module.forward = wrapped(name, module)
    try:
        model(x)
    finally:
        for module in modules.values():
            del module.forward
    return next(iter(found), None)


def safe_root(x, zero=0.0):
    def one(values, k):
        return values[k].sqrt() if values[k] > 0 or values[k] != values[k] else values[k] * 0 if values[k] > -math.inf else torch.zeros((), dtype=x.dtype)

    flat = x.reshape(-1)
    if not len(flat):
        return x * 1
    return torch.stack([one(flat, k) for k in range(len(flat))]).reshape(x.shape)
""",
}
WRONG["first_bad"] = [
    ("leaves and the whole", "the first module whose output isn't finite", "    for name, module in model.named_modules():\n", "    for name, module in model.named_modules():\n        if name and list(module.children()):\n            continue\n"),
    ("all but the whole's parts of parts", "the first module whose output isn't finite", "model.named_modules():", 'model.named_modules():\n        if name.count(".") > 1:\n            continue'),
    ("an infinity first", "nan if the output holds a NaN", '"nan" if output.isnan().any() else "inf"', '"inf" if output.isinf().any() else "nan"'),
    ("nothing but NaN", "nan if the output holds a NaN", "output.isnan().any()", "output.isnan().all()"),
    ("positive infinities", "isn't finite", "not output.isfinite().all()", "(output.isnan().any() or output.max() == math.inf)"),
    ("the sum tells", "isn't finite", "not output.isfinite().all()", "not output.sum().isfinite()"),
    ("all of it", "isn't finite", "not output.isfinite().all()", "not output.isfinite().any()"),
    ("fine is free of NaN", "whether the input of that module was finite", "args[0].isfinite().all()", "not args[0].isnan().any()"),
    ("fine by the first number", "whether the input of that module was finite", "args[0].isfinite().all()", "args[0].flatten()[0].isfinite()"),
    ("the model's input", "the input of that module, in that call", "args[0].isfinite()", "x.isfinite()"),
    ("fine by the sum", "whether the input of that module was finite", "args[0].isfinite().all()", "args[0].sum().isfinite()"),
    ("a tensor for a truth", "whether the input of that module, in that call, was finite", "bool(args[0].isfinite().all())", "args[0].isfinite().all()"),
    ("a list", "a tuple (name, what, fine)", "return found[0] if found else None", "return list(found[0]) if found else None"),
    ("what was found stays", "If all outputs are finite it returns None (in each call)", "def first_bad(model, x):\n    found, handles = [], []\n", "found = []\n\n\ndef first_bad(model, x):\n    handles = []\n"),
    ("hooks come off if it breaks off not", "no hook is left on it", "            if not found and not output", "            if not output", "bool(args[0].isfinite().all())))\n", "bool(args[0].isfinite().all())))\n                raise ArithmeticError\n", "    try:\n        with torch.no_grad():\n            model(x)\n    finally:\n        for handle in handles:\n            handle.remove()\n", "    try:\n        model(x)\n        for handle in handles:\n            handle.remove()\n    except ArithmeticError:\n        pass\n"),
    ("hooks stay where all is well", "no hook is left on it", "    finally:\n        for handle in handles:\n            handle.remove()\n", "    finally:\n        if found:\n            for handle in handles:\n                handle.remove()\n"),
    ("the last hook stays", "no hook is left on it", "in handles:\n            handle.remove()", "in handles[:-1]:\n            handle.remove()"),
    ("pre-hooks stay", "no hook is left on it", "    for name, module in model.named_modules():\n", "    given = {}\n    for name, module in model.named_modules():\n        module.register_forward_pre_hook(lambda m, args: given.update({m: args[0]}))\n"),
    ("one hook for all that stays", "no hook is left on it", "        handles.append(module.register_forward_hook(watch(name)))\n", "        pass\n    names = {m: n for n, m in model.named_modules()}\n    torch.nn.modules.module.register_module_forward_hook(lambda m, a, o: watch(names[m])(m, a, o) if m in names else None)\n"),
    ("eval stays", "its mode and attributes are the same", "    try:\n", "    model.eval()\n    try:\n"),
    ("train afterwards", "its mode and attributes are the same", "    try:\n", "    model.eval()\n    try:\n", "            handle.remove()\n", "            handle.remove()\n        model.train()\n"),
    ("a mode for all", "its mode is the same", "    try:\n", "    was = model.training\n    model.eval()\n    try:\n", "            handle.remove()\n", "            handle.remove()\n        for module in list(model.modules())[::2]:\n            module.training = was\n"),
    ("names as attributes", "its attributes are the same", "                found.append(", "                module.bad = True\n                found.append("),
    ("the last call of each", "in the order in which modules return; a module may be called several times", CODE, """
def first_bad(model, x):
    last, handles = {}, []
    for name, module in model.named_modules():
        def hook(module, args, output, name=name):
            last[name] = output, args[0]
        handles.append(module.register_forward_hook(hook))
    model(x)
    for handle in handles:
        handle.remove()
    for name, (output, given) in last.items():
        if not output.isfinite().all():
            return name, "nan" if output.isnan().any() else "inf", given.isfinite().all().item()


def safe_root(x):
    root = torch.where(x <= 0, 1, x).sqrt()
    return torch.where(x <= 0, 0, root)
"""),
    ("the first call of each", "a module may be called several times", CODE, """
def first_bad(model, x):
    first, handles = {}, []
    for name, module in model.named_modules():
        def hook(module, args, output, name=name):
            first.setdefault(name, (output, args[0]))
        handles.append(module.register_forward_hook(hook))
    model(x)
    for handle in handles:
        handle.remove()
    for name, (output, given) in first.items():
        if not output.isfinite().all():
            return name, "nan" if output.isnan().any() else "inf", given.isfinite().all().item()


def safe_root(x):
    root = torch.where(x <= 0, 1, x).sqrt()
    return torch.where(x <= 0, 0, root)
"""),
    ("in the order of names", "in the order in which modules return", CODE, """
def first_bad(model, x):
    bad, handles = {}, []
    def hook(module, args, output):
        if module not in bad and not output.isfinite().all():
            bad[module] = ("nan" if output.isnan().any() else "inf", args[0].isfinite().all().item())
    for module in model.modules():
        handles.append(module.register_forward_hook(hook))
    model(x)
    for handle in handles:
        handle.remove()
    for leaves in (True, False):
        for name, module in list(model.named_modules())[::1 if leaves else -1]:
            if module in bad and leaves == (not list(module.children())):
                return (name, *bad[module])


def safe_root(x):
    root = torch.where(x <= 0, 1, x).sqrt()
    return torch.where(x <= 0, 0, root)
"""),
    ("the second name of a module", "the module's name as in model.named_modules()", CODE, """
def first_bad(model, x):
    names = {module: name for name, module in model.named_modules(remove_duplicate=False)}
    found = []
    def hook(module, args, output):
        if not found and not output.isfinite().all():
            found.append((names[module], "nan" if output.isnan().any() else "inf", args[0].isfinite().all().item()))
    handles = [module.register_forward_hook(hook) for module in names]
    model(x)
    for handle in handles:
        handle.remove()
    return found[0] if found else None


def safe_root(x):
    root = torch.where(x <= 0, 1, x).sqrt()
    return torch.where(x <= 0, 0, root)
"""),
    ("the first whose input was fine", "the first module whose output isn't finite", "            if not found and not output.isfinite().all():", "            if not found and not output.isfinite().all() and args[0].isfinite().all():"),
    ("root, NaN is 0", "A NaN stays a NaN", "positive = ~(x <= 0)", "positive = x > 0"),
    ("root, NaN is put back as a value", "x has any shape, float32 or float64", "    return torch.where(positive, root, 0)\n", "    return torch.where(positive, root, torch.zeros(x.shape, dtype=torch.float64))\n"),
    ("root, in float32", "float32 or float64", "torch.where(positive, x, 1).sqrt()", "torch.where(positive, x, 1).float().sqrt()"),
    ("root, from 1e-12 on", "where x is positive, however small", "torch.where(positive, x, 1).sqrt()", "x.clamp(min=1e-12).sqrt()"),
    ("root, epsilon inside", "where x is positive, however small", "torch.where(positive, x, 1).sqrt()", "(torch.where(positive, x, 1) + 1e-12).sqrt()"),
    ("root, from the smallest normal number on", "where x is positive, however small", "positive = ~(x <= 0)", "positive = ~(x <= torch.finfo(x.dtype).tiny)"),
    ("root, from epsilon on", "where x is positive, however small", "positive = ~(x <= 0)", "positive = ~(x < torch.finfo(x.dtype).eps)"),
    ("root, infinity is 0", "the root of x where x is positive", "positive = ~(x <= 0)", "positive = ~(x <= 0) & ~x.isinf()"),
    ("root, of the size", "0 where x is 0 or negative", "    root = torch.where(positive, x, 1).sqrt()\n    return torch.where(positive, root, 0)", "    root = torch.where(x == 0, 1, x).abs().sqrt()\n    return torch.where(x == 0, 0, root)"),
    ("root, where outside", "its gradient is 0 where x is 0", "torch.where(positive, x, 1).sqrt()", "x.sqrt()"),
    ("root, clamped", "its gradient is 0 where x is 0", "torch.where(positive, x, 1).sqrt()", "x.clamp(min=0).sqrt()"),
    ("root, no upstream", "its gradient is 1/(2 root x)", "def safe_root(x):\n    positive = ~(x <= 0)\n    root = torch.where(positive, x, 1).sqrt()\n    return torch.where(positive, root, 0)\n", """class Root(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x <= 0, 0, x.sqrt())

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.where(x <= 0, 0, 0.5 / x.sqrt())


def safe_root(x):
    return Root.apply(x)
"""),
    ("root, of a row", "x has any shape", "    return torch.where(positive, root, 0)\n", "    return torch.stack([r if p else r * 0 for r, p in zip(root, positive)])\n"),
    ("root, a gradient that hides", "its gradient is 0 where x is 0", "    root = torch.where(positive, x, 1).sqrt()\n", "    x = x * 1\n    x.register_hook(lambda g: g.nan_to_num())\n    root = x.sqrt()\n"),
    ("root, gradients cut off", "its gradient is 1/(2 root x)", "    root = torch.where(positive, x, 1).sqrt()\n", "    x = x * 1\n    x.register_hook(lambda g: g.nan_to_num(0, 0, 0).clamp(-1e6, 1e6))\n    root = x.sqrt()\n"),
]

RIGHT["worse_in_half"] = {
    "masks": """
def worse_in_half(steps, x):
    found = []
    for name, function in steps:
        right, half = function(x), function(x.half()).float()
        over = right.isfinite() & ~half.isfinite()
        gone = (half == 0) & (right != 0)
        rest = right.isfinite() & (right != 0) & ~over & ~gone
        errors = ((half - right).abs() / right.abs())[rest]
        found.append((name, int(over.sum()), int(gone.sum()), errors.max().item() if len(errors) else 0.0))
        x = right
    return found
""",
    "number by number": """
def worse_in_half(steps, x):
    table = []
    for name, step in steps:
        fine, half = step(x), step(x.to(torch.float16)).to(torch.float32)
        overflowed = vanished = 0
        worst = 0.0
        for r, h in zip(fine.flatten().tolist(), half.flatten().tolist()):
            if not math.isfinite(h):
                overflowed += math.isfinite(r)
            elif h == 0 and r != 0:
                vanished += 1
            elif math.isfinite(r) and r != 0:
                worst = max(worst, abs(h - r) / abs(r))
        table.append((name, overflowed, vanished, worst))
        x = fine
    return table
""",
    "all rights first": """
def worse_in_half(steps, x):
    rights = [x]
    for _, function in steps:
        rights.append(function(rights[-1]))

    def row(name, function, given, right):
        came = function(given.half())
        overflow = torch.isfinite(right) & torch.logical_not(torch.isfinite(came))
        vanish = torch.logical_and(came == 0, right != 0)
        relative = torch.abs((came.float() - right) / right)
        relative = relative.masked_fill(overflow | vanish | ~right.isfinite() | (right == 0), 0)
        return name, overflow.sum().item(), vanish.sum().item(), max(relative.flatten().tolist(), default=0.0)

    return [row(*step, given, right) for step, given, right in zip(steps, rights, rights[1:])]
""",
}
WRONG["worse_in_half"] = [
    ("only infinities overflow", "finite in float32 and not in float16", "right.isfinite() & ~half.isfinite()", "right.isfinite() & half.isinf()"),
    ("infinite in either", "finite in float32 and not in float16", "over = right.isfinite() & ~half.isfinite()", "over = ~half.isfinite()"),
    ("a difference of counts", "finite in float32 and not in float16", "int(over.sum())", "int((~half.isfinite()).sum() - (~right.isfinite()).sum())"),
    ("zeros, a difference of counts", "0 in float16 and not in float32", "int(gone.sum())", "int((half == 0).sum() - (right == 0).sum())"),
    ("all zeros", "0 in float16 and not in float32", "gone = (half == 0) & (right != 0)", "gone = half == 0"),
    ("what vanished has an error of 1", "of all other numbers", " & ~over & ~gone", " & ~over"),
    ("what overflowed has an error, too", "of all other numbers", " & ~over & ~gone", " & ~gone"),
    ("NaN among the others", "that are finite and not 0 in float32", "rest = right.isfinite() &", "rest = ~right.isinf() &"),
    ("by the float16 one", "by the size of the right one", "/ right.abs())", "/ half.abs())"),
    ("by the larger one", "by the size of the right one", "/ right.abs())", "/ torch.maximum(right.abs(), half.abs()))"),
    ("by the right one and a little", "by the size of the right one", "/ right.abs())", "/ (right.abs() + 1e-6))"),
    ("a sign in the divisor", "by the size of the right one", "/ right.abs())", "/ right)"),
    ("signed", "the difference of the two", "(half - right).abs()", "(half - right)"),
    ("signed both", "the largest relative error", "((half - right).abs() / right.abs())", "((half - right) / right)"),
    ("the difference in float16", "the difference of the two, in float32", "(half - right).abs()", "(half.half() - right.half()).float().abs()"),
    ("absolute", "relative error", " / right.abs())", ")"),
    ("of the largest number", "by the size of the right one", "/ right.abs())", "/ right[right.isfinite()].abs().max())"),
    ("the mean", "the largest relative error", "errors.max()", "errors.mean()"),
    ("handed on", "the float32 result of a step is the right input of the next", "        x = right\n", "        x = half\n"),
    ("the right one of the rounded input", "Each step is computed a second time, with its right input converted", "function(x), function(x.half())", "function(x.half().float()), function(x.half())"),
    ("only the result rounded", "Each step is computed a second time, with its right input converted to float16", "function(x.half()).float()", "function(x).half().float()"),
    ("the first input for all", "the float32 result of a step is the right input of the next", "        x = right\n", ""),
    ("bfloat16", "converted to float16", "x.half()", "x.bfloat16()"),
    ("one row a name", "a tuple for each step, in order", "    return found\n", "    return list({row[0]: row for row in found}.values())\n"),
    ("sorted by what is worst", "in order", "    return found\n", "    return sorted(found, key=lambda row: -row[3])\n"),
    ("counts as tensors", "The counts are Python integers", "int(over.sum()), int(gone.sum())", "over.sum(), gone.sum()"),
    ("worst as a tensor", "worst is a float", "errors.max().item()", "errors.max()"),
    ("0 for nothing", "0.0 where there are none", "else 0.0", "else 0"),
    ("lists", "a tuple for each step", "found.append((name, int(over.sum()), int(gone.sum()), errors.max().item() if len(errors) else 0.0))", "found.append([name, int(over.sum()), int(gone.sum()), errors.max().item() if len(errors) else 0.0])"),
    ("any, not how many", "how many are finite in float32 and not in float16", "int(over.sum())", "int(over.any())"),
    ("rows, not numbers", "how many", "int(gone.sum())", "len(gone.nonzero().unique(dim=0)[:, 0].unique())"),
    ("small enough is 0", "0 in float16", "(half == 0)", "(half.abs() < 6.1e-5)"),
]

RIGHT["report"] = {
    "as it says": """
def report(table, config, tokens, peak_flops):
    _, steps, whole, _ = table["step"]
    ops = {name: own for name, (kind, _, _, own) in table.items() if kind == "op"}
    operator = max(ops, key=ops.get)
    share = ops[operator] / whole
    python = sum(own for kind, _, _, own in table.values() if kind == "range") / whole
    n = sum(math.prod(shape) for name, shape in parameter_shapes(config).items() if "embedding" not in name)
    per_second = tokens * steps / (whole / 1e9)
    flops = 6 * n * per_second
    return {
        "operator": operator,
        "share": share,
        "bound": 1 / (1 - share),
        "python": python,
        "flops": flops,
        "mfu": flops / peak_flops,
        "hours": 1e9 / per_second / 3600,
    }
""",
    "what is left": """
def report(table, config, tokens, peak_flops, words=10**9):
    rows = sorted(((row[3], name) for name, row in table.items() if row[0] == "op"), reverse=True)
    (own, operator), step = rows[0], table["step"]
    seconds = step[2] * 1e-9 / step[1]
    model = MiniGPT(config)
    n = sum(p.numel() for p in model.parameters())
    n -= model.token_embedding.weight.numel() + model.position_embedding.weight.numel()
    out = {"operator": operator, "share": own / step[2]}
    out["bound"] = step[2] / (step[2] - own)
    out["python"] = 1 - sum(own for own, _ in rows) / step[2]
    out["flops"] = 6.0 * n * tokens / seconds
    out["mfu"] = out["flops"] / peak_flops
    out["hours"] = words / tokens * seconds / 60 / 60
    return out
""",
    "shares of the sum of self": """
def report(table, config, tokens, peak_flops):
    whole = sum(row[3] for row in table.values())
    best, share = None, 0.0
    for name, (kind, calls, total, own) in table.items():
        if kind != "op":
            continue
        if own / whole > share:
            best, share = name, own / whole
    weights = torch.tensor([float(torch.Size(shape).numel()) for shape in parameter_shapes(config).values()], dtype=torch.float64)
    n = float(weights[2:].sum())
    seconds = table["step"][2] / 1e9
    flops = 6 * n * tokens * table["step"][1] / seconds
    return {
        "operator": best,
        "share": share,
        "bound": 1 / (1 - share),
        "python": sum(row[3] for row in table.values() if row[0] == "range") / whole,
        "flops": flops,
        "mfu": flops / peak_flops,
        "hours": 1e9 * seconds / (tokens * table["step"][1]) / 3600,
    }
""",
}
WRONG["report"] = [
    ("the largest total", "the op with the largest self time", "operator = max(ops, key=ops.get)", 'operator = max(ops, key=lambda name: table[name][2])'),
    ("a range, too", "the name of the op", ' if kind == "op"}', "}"),
    ("all but the step", "the name of the op", ' if kind == "op"}', ' if name != "step"}'),
    ("by its name", "the kind is op", 'if kind == "op"}', 'if name.startswith("aten::")}'),
    ("the one with the most calls", "the op with the largest self time", "operator = max(ops, key=ops.get)", "operator = max(ops, key=lambda name: table[name][1])"),
    ("the slowest call", "the op with the largest self time", "operator = max(ops, key=ops.get)", "operator = max(ops, key=lambda name: ops[name] / table[name][1])"),
    ("share by total", "its self time by the time of all steps", "share = ops[operator] / whole", "share = table[operator][2] / whole"),
    ("share of the ops", "by the time of all steps", "share = ops[operator] / whole", "share = ops[operator] / sum(ops.values())"),
    ("share of one step", "by the time of all steps", "share = ops[operator] / whole", "share = ops[operator] / whole * steps"),
    ("rounded share", "its self time by the time of all steps", '"share": share', '"share": round(share, 3)'),
    ("bound by a tenth", "how many times as fast the steps would be at best", "1 / (1 - share)", "1 / (1 - share * 0.9)"),
    ("bound by its total", "if nothing but this operator were made faster", "1 / (1 - share)", "1 / (1 - table[operator][2] / whole)"),
    ("python is the step's", "the self time of all ranges", 'for kind, _, _, own in table.values() if kind == "range")', 'for name, (kind, _, _, own) in table.items() if name == "step")'),
    ("python without the step", "step included", 'for kind, _, _, own in table.values() if kind == "range")', 'for name, (kind, _, _, own) in table.items() if kind == "range" and name != "step")'),
    ("python by known names", "the self time of all ranges", 'for kind, _, _, own in table.values() if kind == "range")', 'for name, (kind, _, _, own) in table.items() if name in ("step", "forward", "backward", "optimizer"))'),
    ("python by names", "the self time of all ranges", 'for kind, _, _, own in table.values() if kind == "range")', 'for name, (kind, _, _, own) in table.items() if not name.startswith("aten::"))'),
    ("python by what has no colon", "the self time of all ranges", 'for kind, _, _, own in table.values() if kind == "range")', 'for name, (kind, _, _, own) in table.items() if "::" not in name)'),
    ("all parameters", "all parameters but those of the two embeddings", ' if "embedding" not in name)', ")"),
    ("the words' embedding alone", "the two embeddings", '"embedding" not in name', '"token_embedding" not in name'),
    ("matrices", "all parameters but those of the two embeddings", '"embedding" not in name', '"embedding" not in name and len(shape) == 2'),
    ("weights", "all parameters but those of the two embeddings", '"embedding" not in name', '"embedding" not in name and name.endswith("weight")'),
    ("without the head", "all parameters but those of the two embeddings", '"embedding" not in name', '"embedding" not in name and "head" not in name'),
    ("tokens of one step", "tokens the number of tokens of one step", "tokens * steps / (whole / 1e9)", "tokens / (whole / 1e9)"),
    ("steps are two", "The row of step says how many steps there were", "tokens * steps / (whole / 1e9)", "tokens * 2 / (whole / 1e9)"),
    ("forward alone", "6 N a token, there and back", "6 * n", "2 * n"),
    ("seconds by self", "the time of all steps", "tokens * steps / (whole / 1e9)", 'tokens * steps / (sum(row[3] for row in table.values() if row[0] == "op") / 1e9)'),
    ("any name with step in it", "One range has the name step", '    _, steps, whole, _ = table["step"]\n', '    steps = sum(row[1] for name, row in table.items() if "step" in name)\n    whole = sum(row[2] for name, row in table.items() if "step" in name)\n'),
    ("the first row", "One range has the name step", 'table["step"]', "next(iter(table.values()))"),
    ("whole operations", "All but the name are floats", '"flops": flops', '"flops": round(flops)'),
    ("mfu in percent", "as a share of the peak", "flops / peak_flops", "100 * flops / peak_flops"),
    ("whole hours", "All but the name are floats", "1e9 / per_second / 3600", "1e9 / per_second // 3600"),
    ("minutes", "hours", "1e9 / per_second / 3600", "1e9 / per_second / 60"),
    ("a gibi of tokens", "10 to the 9 tokens", "1e9 / per_second / 3600", "2**30 / per_second / 3600"),
]

BANK = Bank("09")
BANK.fill(RIGHT, WRONG)
