"""Lab 09, exercise 3: Two clocks"""

from collections import Counter

from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution
from utils.instruments.traces import Event, drawn

lanes = Check(
    "lanes",
    parts={"busy": 1, "the gap": 1, "launched": 2},
    reads="Two clocks",
)


@lanes.reference
def _(events):
    def moments(some):
        """(begin, end) of each piece of time, and whether any of the events runs in it."""
        times = sorted({time for event in some for time in (event.start, event.end)})
        pairs = list(zip(times, times[1:], strict=False))
        runs = [any(e.start <= begin < e.end for e in some) for begin, _ in pairs]
        return [(end - begin, running) for (begin, end), running in zip(pairs, runs, strict=True)]

    busy = {
        lane: sum(
            length
            for length, running in moments(
                [e for e in events if e.lane == lane and e.kind != "range"]
            )
            if running
        )
        for lane in {event.lane for event in events}
    }
    device = [event for event in events if event.on_device]
    gap = max([length for length, running in moments(device) if not running], default=0)
    launched = {}
    for event in events:
        if event.on_device or event.kind == "call":
            continue
        host, work = launched.get(event.name, (0, 0))
        started = {
            call.correlation
            for call in events
            if call.kind == "call" and call.lane == event.lane and call.correlation is not None
            and event.start <= call.start and call.end <= event.end
        }  # fmt: skip
        work += sum(e.duration for e in device if e.correlation in started)
        launched[event.name] = host + event.duration, work
    return {"busy": busy, "gap": gap, "launched": launched}


def _host(name, start, duration, lane="cpu", kind="op"):
    return Event(name, start, duration, lane, kind)


def _call(start, duration, correlation, lane="cpu", name="cudaLaunchKernel"):
    return Event(name, start, duration, lane, "call", correlation)


def _work(start, duration, correlation=None, lane="gpu 7", kind="kernel", name="gemm"):
    return Event(name, start, duration, lane, kind, correlation)


@lanes.cases
def _(draw):
    busy, gap, launched = lanes.parts

    def asked(part, entry, events, words="", longest=None):
        def play(subject):
            came = subject(events)[entry]
            if longest is None:
                return came
            return {"longest": not (isinstance(came, int) and came > longest), "gap": came}

        places = {
            "['longest']": "The gap is longer than any between the device's first event and its last.",
            "['gap']": "the gap",
        }
        return Case(part, play, shown=words or f"{len(events)} events", places=places if longest else {})

    n, m = draw.integer(2, 9), draw.integer(2, 9)
    one = draw.integer(1, 50)
    yield asked(busy, "busy", [_host("a", 0, 30), _host("b", 5, n), _host("c", 20, 10)], "in each other")
    yield asked(busy, "busy", [_host("b", 40, n), _host("a", 0, 30)], "a gap, the list backwards")
    over = [_work(0, 20), _work(10, 20), _work(15, n), _work(60, 5)]
    yield asked(busy, "busy", over, "kernels that overlap")
    later = [_host("a", 0, 10), _host("b", 20, 10), _host("c", 25, 15 + n), _host("b", 70, 20), _host("a", 72, 9)]
    yield asked(busy, "busy", later, "events that overlap later on")
    apart = [_work(0, 20), _work(5, 30 + n, lane="gpu 20"), _host("a", 3, 4), _host("a", 3, 9, "cpu 2")]
    yield asked(busy, "busy", apart, "four lanes")
    ranged = [_host("step", 0, 90, kind="range"), _host("a", 10, n), _call(12, 1, one), _work(20, 9, one)]
    yield asked(busy, "busy", ranged, "a range around an op")
    yield asked(busy, "busy", [_host("step", 5, 20, kind="range")], "a range alone")
    yield asked(busy, "busy", [_call(5, n, None, name="cudaDeviceSynchronize")], "a call alone")
    touch = [_host("a", 0, 10), _host("b", 10, n), _work(4, 3, kind="copy"), _work(7, n)]
    yield asked(busy, "busy", touch, "events that touch")
    yield asked(busy, "busy", [], "no events")

    gaps = [_work(0, 10), _work(10 + n, 10), _work(20 + n + m, 5, kind="copy")]
    yield asked(gap, "gap", gaps, "two gaps")
    yield asked(gap, "gap", gaps[::-1], "two gaps, the list backwards")
    yield asked(gap, "gap", [*gaps, _work(5, 20 + n, lane="gpu 20")], "a gap that another stream fills")
    long = [_work(0, 100), _work(20, 5), _work(100 + n, 5), _work(30, 5, kind="copy", lane="gpu 20")]
    yield asked(gap, "gap", long, "short ones beside a long one")
    copies = [_work(0, 10), _work(10, 20 + n, kind="copy"), _work(30 + n, 5), _work(36 + n, 5)]
    yield asked(gap, "gap", copies, "a copy between two kernels")
    ends = [_work(0, 2, kind="copy"), _work(2 + n, 5), _work(7 + n + m, 5, kind="copy")]
    yield asked(gap, "gap", ends, "a copy first and last")
    hosted = [_host("a", 0, 5), _work(50, 10), _work(60 + m, 10), _host("b", 200, 10)]
    yield asked(gap, "gap", hosted, "a host that starts earlier and ends later", longest=m)
    busy_host = [_work(0, 10), _host("a", 9, 90), _work(10 + n, 10)]
    yield asked(gap, "gap", busy_host, "a host that is busy in the gap")
    yield asked(gap, "gap", [_work(7, 10), _work(17, n)], "none")
    yield asked(gap, "gap", [_work(70, n)], "one kernel")
    yield asked(gap, "gap", [_host("a", 7, 10), _host("a", 70, 10)], "no device")
    yield asked(gap, "gap", drawn("python", draw.integer(0, 10**6), steps=1), "a drawn trace")

    a, b, c = draw.sample(range(1, 99), 3)
    base = [
        _host("forward", 0, 40, kind="range"), _host("mm", 5, 10), _call(7, 5, a), _work(60, 10 + n, a),
        _host("add", 20, 9), _call(22, 4, b), _work(90, m, b), _host("view", 30, 2),
    ]  # fmt: skip
    yield asked(launched, "launched", base, "a range, two kernels")
    yield asked(launched, "launched", base[::-1], "the same, backwards")
    later = [*base, _host("item", 41, 80), _call(43, 2, c, name="cudaMemcpyAsync"), _work(100, 2, c, kind="copy", name="Memcpy")]
    yield asked(launched, "launched", [*later, _call(46, 70, None, name="cudaStreamSynchronize")], "an item")
    twice = [_host("mm", 0, 10), _call(2, 5, a), _host("mm", 20, n), _call(20, n, b), _work(30, 7, b), _work(40, 50, a)]
    yield asked(launched, "launched", twice, "one name twice")
    yield asked(launched, "launched", [_host("mm", 0, 10), _call(0, 10, a), _work(15, n, a)], "a call of the same span")
    thread = [
        _host("backward", 0, 90, kind="range"), _host("mm", 10, 20, "cpu 2"), _call(12, 5, a, "cpu 2"),
        _work(30, n, a), _host("add", 40, 10), _call(42, 3, b), _work(70, m, b),
    ]  # fmt: skip
    yield asked(launched, "launched", thread, "a second thread")
    other = [_host("add", 0, 90, "cpu 2"), _host("mm", 10, 20), _call(12, 5, a), _work(30, n, a), _call(50, 5, b, "cpu 3"), _work(70, m, b)]
    yield asked(launched, "launched", other, "threads that have launched nothing")
    graph = [_host("replay", 0, 20), _call(5, 5, a, name="cudaGraphLaunch"), *(_work(30 + 10 * k, 4 + k, a) for k in range(n))]
    yield asked(launched, "launched", graph, "one call, several kernels")
    before = [_work(0, 30, c), _host("mm", 10, 10), _call(12, 3, a), _work(40, n, a), _work(80, 5, None)]
    yield asked(launched, "launched", before, "kernels whose call is not in the trace")
    outside = [_host("mm", 10, 10), _call(21, 5, a), _work(30, n, a), _call(8, 4, b), _work(50, m, b)]
    outside += [_call(18, 3, c), _work(70, n, c)]
    yield asked(launched, "launched", outside, "calls outside and across an edge")
    zero = [_host("mm", 0, 10), _call(2, 5, 0), _work(15, n, 0), _host("add", 20, 9), _call(22, 4, b), _work(60, m, b)]
    yield asked(launched, "launched", zero, "a correlation of 0")
    at_once = [_host("mm", 0, 20), _call(2, 5, a), _call(9, 5, b), _work(30, 20 + n, a), _work(35, 10 + m, b, "gpu 20")]
    yield asked(launched, "launched", at_once, "two kernels at once")
    waiting = [_host("synchronize", 0, 20), _call(2, 10, None), _work(5, n, None), _work(11, m, None)]
    yield asked(launched, "launched", waiting, "no ties at all")
    yield asked(launched, "launched", drawn("compute", draw.integer(0, 10**6), steps=1, covered="sync")[1:], "a drawn trace")
    yield asked(launched, "launched", [_work(5, n, a)], "the device alone")


_lanes = lab_solution(__name__, "lanes")


def _misconception(name, explanation, earns, *edits):
    lanes.misconception(name, explanation, earns=earns)(edited(_lanes, *edits))


_misconception(
    "durations added up",
    "what lies in another event, or overlaps one, is counted as busy time once more.",
    3,
    ("max(0, span.end - max(span.start, reached))", "span.duration"),
)
_misconception(
    "from the first to the last",
    "a lane is taken to be busy from its first event to its last one.",
    3,
    ("total += max(0, span.end - max(span.start, reached))", "total += max(0, span.end - reached)"),
)
_misconception(
    "ranges are work",
    "a lane is taken to be busy where there is only a label.",
    3,
    (" and e.kind != 'range'", ""),
)
_misconception(
    "operators alone are work",
    "calls of CUDA outside of an operator are not counted as busy time.",
    3,
    ("e.kind != 'range'", "e.kind not in ('range', 'call')"),
)
_misconception(
    "lanes with ranges alone left out",
    "a lane is missing that has nothing but ranges.",
    3,
    ("for event in events}", "for event in events if event.kind != 'range'}"),
)
_misconception(
    "gaps between neighbours",
    "a gap is measured from the event that started last, though a longer one is still running.",
    {"the gap": 0, "launched": 2},
    ("reached = max(reached, span.end)", "reached = span.end"),
)
_misconception(
    "from one event to the next",
    "a gap of the device is measured from the event that started last, though a longer one is still"
    " running.",
    3,
    ("reached = None", "reached = last = None"),
    ("reached = span.start\n", "reached = last = span.start\n"),
    ("longest = max(longest, span.start - reached)", "longest, last = (max(longest, span.start - last), span.end)"),
)
_misconception(
    "the last end",
    "spans that overlap are joined, and end where the last one of them ends, though a longer one is"
    " still running.",
    {"launched": 2},
    ("total += max(0, span.end - max(span.start, reached))", "total += span.end - max(span.start, reached)"),
    ("reached = max(reached, span.end)", "reached = span.end"),
)
_misconception(
    "neighbours in the list",
    "a gap is measured between events that stand beside each other in the list, as if that were in"
    " order.",
    3,
    (
        "gap = covered((e for e in events if e.on_device))[1]",
        "device = [e for e in events if e.on_device]\n"
        "    gap = max([b.start - a.end for a, b in zip(device, device[1:])], default=0)",
    ),
)
_misconception(
    "each stream alone",
    "a gap of one stream counts while another stream is working.",
    3,
    (
        "covered((e for e in events if e.on_device))[1]",
        "max([covered((e for e in events if e.lane == lane))[1] for lane in busy if lane.startswith('gpu')], default=0)",
    ),
)
_misconception(
    "the host counts, too",
    "a gap of the device is filled by what the host does, or opened by it.",
    3,
    ("covered((e for e in events if e.on_device))[1]", "covered(events)[1]"),
)
_misconception(
    "kernels alone",
    "the device counts as idle while it copies.",
    3,
    ("covered((e for e in events if e.on_device))[1]", "covered((e for e in events if e.kind == 'kernel'))[1]"),
)
_misconception(
    "the sum of the gaps",
    "all gaps of the device are added up.",
    3,
    ("longest = max(longest, span.start - reached)", "longest += max(0, span.start - reached)"),
)
_misconception(
    "the last gap",
    "of several gaps the last one is taken, and not the longest.",
    3,
    ("longest = max(longest, span.start - reached)", "longest = span.start - reached if span.start > reached else longest"),
)
_misconception(
    "calls at the edges left out",
    "an event isn't given what was launched by a call that begins or ends with it.",
    2,
    ("event.start <= call.start and (call.end <= event.end)", "event.start < call.start and call.end < event.end"),
)
_misconception(
    "the innermost alone",
    "of several events around a call only the innermost is given what it has launched.",
    2,
    ("        for event in labels:\n            if", "        for event in sorted(labels, key=lambda label: label.duration):\n            if"),
    ("(host, device + work.duration)", "(host, device + work.duration)\n                break"),
)
_misconception(
    "copies are not launched",
    "copies are missing from what was launched.",
    2,
    ("if not work.on_device or", "if work.kind != 'kernel' or"),
)
_misconception(
    "whatever runs meanwhile",
    "a range or an op is given what ran on the device while it was open, whichever thread has launched it.",
    2,
    ("event.lane == call.lane and event.start <= call.start and (call.end <= event.end)", "event.start <= work.start and work.end <= event.end"),
)
_misconception(
    "by the device's clock",
    "a range is given what ran on the device while it was open, and not what it has launched.",
    2,
    ("event.start <= call.start and (call.end <= event.end)", "event.start <= work.start and (work.end <= event.end)"),
)
_misconception(
    "by the start of the call",
    "an event is given what a call has launched that only begins inside of it.",
    2,
    ("call.end <= event.end", "call.start <= event.end"),
)
_misconception(
    "a call in part",
    "an event is given what a call has launched that lies inside of it only in part.",
    2,
    ("event.start <= call.start and (call.end <= event.end)", "event.start < call.end and call.start < event.end"),
)
_misconception(
    "device time once",
    "where kernels that one event has launched run at once that time is counted once.",
    2,
    ("    launched = {}", "    launched, until = ({}, {})"),
    ("for work in events:", "for work in sorted(events, key=lambda event: event.start):"),
    (
        "(host, device + work.duration)",
        "(host, device + max(0, work.end - max(work.start, until.get(event.name, 0))))\n"
        "                until[event.name] = max(work.end, until.get(event.name, 0))",
    ),
)
_misconception(
    "any lane",
    "an event is given what another thread has launched meanwhile.",
    2,
    ("event.lane == call.lane and ", ""),
)
_misconception(
    "host time for device time",
    "what a range has launched is counted by the time of the launching calls.",
    2,
    ("device + work.duration", "device + call.duration"),
)
_misconception(
    "the last kernel of a call",
    "of several kernels that one call has launched only one is counted.",
    2,
    (
        "    for work in events:\n",
        "    for work in {e.correlation: e for e in events if e.on_device}.values():\n",
    ),
)
_misconception(
    "one event of a name",
    "of several events with one name only the last one's host time is there.",
    2,
    ("(host + event.duration, device)", "(event.duration, device)"),
)
_misconception(
    "ranges alone",
    "operators are missing from what launched something.",
    2,
    ("e.kind in ('range', 'op')", "e.kind == 'range'"),
)
_misconception(
    "0 is no number",
    "a call with the correlation 0 is taken for one that has launched nothing.",
    2,
    (" and e.correlation is not None", " and e.correlation"),
)
_misconception(
    "None is a number",
    "events without a correlation are tied to each other, as if None were one.",
    2,
    (" and e.correlation is not None", ""),
)


@lanes.alternate("instants")
def _(events):
    def pieces(some):
        """(length, how many run) between neighbouring starts and ends."""
        changes = Counter()
        for event in some:
            changes[event.start] += 1
            changes[event.end] -= 1
        times, running, found = sorted(changes), 0, []
        for now, following in zip(times, times[1:]):
            running += changes[now]
            found.append((following - now, running))
        return found

    busy = {}
    for lane in {event.lane for event in events}:
        some = [e for e in events if e.lane == lane and e.kind in ("op", "call", "kernel", "copy")]
        busy[lane] = sum(length for length, running in pieces(some) if running)
    idle = [length for length, running in pieces([e for e in events if e.on_device]) if not running]
    by_number = {}
    for event in events:
        if event.on_device and event.correlation is not None:
            by_number[event.correlation] = by_number.get(event.correlation, 0) + event.duration
    launched = {}
    for event in events:
        if event.kind in ("call", "kernel", "copy"):
            continue
        inside = [
            by_number.get(call.correlation, 0)
            for call in events
            if call.kind == "call" and call.lane == event.lane
            and call.start >= event.start and call.end <= event.end
        ]
        host, device = launched.get(event.name, (0, 0))
        launched[event.name] = (host + event.duration, device + sum(inside))
    return {"busy": busy, "gap": max(idle, default=0), "launched": launched}


@lanes.alternate("merged spans")
def _(events):
    def merged(spans):
        result = []
        for begin, end in sorted(spans):
            if result and begin <= result[-1][1]:
                result[-1][1] = max(result[-1][1], end)
            else:
                result.append([begin, end])
        return result

    report = {"busy": {}, "launched": {}}
    for event in events:
        report["busy"].setdefault(event.lane, [])
        if event.kind != "range":
            report["busy"][event.lane].append((event.start, event.end))
    on_device = merged(
        span for lane, spans in report["busy"].items() if lane.startswith("gpu") for span in spans
    )
    report["gap"] = max([b[0] - a[1] for a, b in zip(on_device, on_device[1:])] + [0])
    report["busy"] = {
        lane: sum(end - begin for begin, end in merged(spans)) for lane, spans in report["busy"].items()
    }
    launchers = {e.correlation: e for e in events if e.kind == "call"}
    launchers.pop(None, None)
    for event in events:
        if event.kind == "range" or event.kind == "op":
            device = 0
            for work in events:
                if work.on_device and work.correlation in launchers:
                    call = launchers[work.correlation]
                    if call.lane == event.lane and event.start <= call.start <= call.end <= event.end:
                        device += work.duration
            before = report["launched"].get(event.name, (0, 0))
            report["launched"][event.name] = (before[0] + event.duration, before[1] + device)
    return report


lanes.equivalent(
    ("e.kind != 'range'", "e.kind < 'range'"),
    ("event.kind != 'range'", "event.kind < 'range'"),
    ("event.kind == 'range'", "event.kind >= 'range'"),
    ("event.kind == 'op'", "event.kind >= 'op'"),
    because="no other kind of the host comes there in the alphabet",
)
lanes.equivalent(
    ("e.kind == 'call'", "e.kind <= 'call'"),
    (
        "call.kind == 'call' and call.lane == event.lane and (call.start >= event.start)",
        "call.lane == event.lane and call.start >= event.start",
    ),
    ("call.kind == 'call'", "call.kind <= 'call'"),
    ("call.kind == 'call'", "call.kind >= 'call'"),
    because="of the host's events only calls have a correlation",
)
lanes.equivalent(
    ("('range', 'op')", "('op', 'range')"),
    ("('op', 'call', 'kernel', 'copy')", "('call', 'op', 'kernel', 'copy')"),
    ("('op', 'call', 'kernel', 'copy')", "('op', 'kernel', 'call', 'copy')"),
    ("('op', 'call', 'kernel', 'copy')", "('op', 'call', 'copy', 'kernel')"),
    ("('call', 'kernel', 'copy')", "('kernel', 'call', 'copy')"),
    ("('call', 'kernel', 'copy')", "('call', 'copy', 'kernel')"),
    because="it means the same",
)
lanes.equivalent(
    ("running += changes[now]", "running -= changes[now]"),
    because="what counts is whether the number is 0",
)
lanes.equivalent(
    ("begin <= result[-1][1]", "begin < result[-1][1]"),
    because="spans that touch may be kept apart: their sum is the same, and the gap between them 0",
)
lanes.equivalent(
    ("event.start <= call.start <= call.end", "event.start <= call.start < call.end"),
    because="every call takes some time",
)
