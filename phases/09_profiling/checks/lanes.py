"""Lab 09, exercise 3: Two clocks"""


from hood.judge.checks.exercise import Case, Check
from utils.instruments.traces import Event, drawn

lanes = Check(
    "lanes",
    parts={"busy": 1, "the gap": 1, "launched": 2},
    reads="Two clocks",
)


@lanes.reference
def _(events):
    def moments(some):
        """(begin, end) of each interval, and whether any of the events runs during the interval."""
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
            "['longest']": "The gap is longer than every gap between the device's first event and its last.",
            "['gap']": "the gap",
        }
        return Case(part, play, shown=words or f"{len(events)} events", places=places if longest else {})

    n, m = draw.integer(2, 9), draw.integer(2, 9)
    one = draw.integer(1, 50)
    yield asked(busy, "busy", [_host("a", 0, 30), _host("b", 5, n), _host("c", 20, 10)], "events inside each other")
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
    yield asked(gap, "gap", long, "short kernels beside a long one")
    copies = [_work(0, 10), _work(10, 20 + n, kind="copy"), _work(30 + n, 5), _work(36 + n, 5)]
    yield asked(gap, "gap", copies, "a copy between two kernels")
    ends = [_work(0, 2, kind="copy"), _work(2 + n, 5), _work(7 + n + m, 5, kind="copy")]
    yield asked(gap, "gap", ends, "copies at the beginning and at the end")
    hosted = [_host("a", 0, 5), _work(50, 10), _work(60 + m, 10), _host("b", 200, 10)]
    yield asked(gap, "gap", hosted, "a host that starts before the device and ends after it", longest=m)
    busy_host = [_work(0, 10), _host("a", 9, 90), _work(10 + n, 10)]
    yield asked(gap, "gap", busy_host, "a host that is busy during the gap")
    yield asked(gap, "gap", [_work(7, 10), _work(17, n)], "no gap")
    yield asked(gap, "gap", [_work(70, n)], "one kernel")
    yield asked(gap, "gap", [_host("a", 7, 10), _host("a", 70, 10)], "no device")
    yield asked(gap, "gap", drawn("python", draw.integer(0, 10**6), steps=1), "a drawn trace")

    a, b, c = draw.sample(range(1, 99), 3)
    base = [
        _host("forward", 0, 40, kind="range"), _host("mm", 5, 10), _call(7, 5, a), _work(60, 10 + n, a),
        _host("add", 20, 9), _call(22, 4, b), _work(90, m, b), _host("view", 30, 2),
    ]  # fmt: skip
    yield asked(launched, "launched", base, "a range, two kernels")
    yield asked(launched, "launched", base[::-1], "a range, two kernels, the list backwards")
    later = [*base, _host("item", 41, 80), _call(43, 2, c, name="cudaMemcpyAsync"), _work(100, 2, c, kind="copy", name="Memcpy")]
    yield asked(launched, "launched", [*later, _call(46, 70, None, name="cudaStreamSynchronize")], "an item")
    twice = [_host("mm", 0, 10), _call(2, 5, a), _host("mm", 20, n), _call(20, n, b), _work(30, 7, b), _work(40, 50, a)]
    yield asked(launched, "launched", twice, "one name twice")
    yield asked(launched, "launched", [_host("mm", 0, 10), _call(0, 10, a), _work(15, n, a)], "a call with the same start and end as its op")
    thread = [
        _host("backward", 0, 90, kind="range"), _host("mm", 10, 20, "cpu 2"), _call(12, 5, a, "cpu 2"),
        _work(30, n, a), _host("add", 40, 10), _call(42, 3, b), _work(70, m, b),
    ]  # fmt: skip
    yield asked(launched, "launched", thread, "a second thread")
    other = [_host("add", 0, 90, "cpu 2"), _host("mm", 10, 20), _call(12, 5, a), _work(30, n, a), _call(50, 5, b, "cpu 3"), _work(70, m, b)]
    yield asked(launched, "launched", other, "threads that launch nothing")
    graph = [_host("replay", 0, 20), _call(5, 5, a, name="cudaGraphLaunch"), *(_work(30 + 10 * k, 4 + k, a) for k in range(n))]
    yield asked(launched, "launched", graph, "one call, several kernels")
    before = [_work(0, 30, c), _host("mm", 10, 10), _call(12, 3, a), _work(40, n, a), _work(80, 5, None)]
    yield asked(launched, "launched", before, "kernels whose call is not in the trace")
    outside = [_host("mm", 10, 10), _call(21, 5, a), _work(30, n, a), _call(8, 4, b), _work(50, m, b)]
    outside += [_call(18, 3, c), _work(70, n, c)]
    yield asked(launched, "launched", outside, "calls outside an op, and across its start or end")
    zero = [_host("mm", 0, 10), _call(2, 5, 0), _work(15, n, 0), _host("add", 20, 9), _call(22, 4, b), _work(60, m, b)]
    yield asked(launched, "launched", zero, "a correlation of 0")
    at_once = [_host("mm", 0, 20), _call(2, 5, a), _call(9, 5, b), _work(30, 20 + n, a), _work(35, 10 + m, b, "gpu 20")]
    yield asked(launched, "launched", at_once, "two kernels at once")
    waiting = [_host("synchronize", 0, 20), _call(2, 10, None), _work(5, n, None), _work(11, m, None)]
    yield asked(launched, "launched", waiting, "events without a correlation")
    yield asked(launched, "launched", drawn("compute", draw.integer(0, 10**6), steps=1, covered="sync")[1:], "a drawn trace")
    yield asked(launched, "launched", [_work(5, n, a)], "only the device")
