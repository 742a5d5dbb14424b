"""Lab 09, exercise 4: The bottleneck"""

from collections import Counter

from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.lab_solution import lab_solution
from utils.instruments.traces import KINDS, Event, drawn
from utils.instruments.traces.drawn import LOADER

bottleneck = Check(
    "bottleneck",
    parts={"the loader": 1, "Python and launches": 1, "waiting": 1, "copies": 1},
    reads="Five bottlenecks",
)


@bottleneck.reference
def _(events):
    """tests/utils/instruments/test_traces.py compares each account with the table."""
    accounts = Counter()
    marks = sorted({mark for event in events for mark in (event.start, event.end)})
    starting = sorted(events, key=lambda event: event.start)
    running, after_wait, was_busy = [], False, False
    for mark, following in zip(marks, marks[1:], strict=False):
        running = [event for event in running if event.end > mark]
        while starting and starting[0].start <= mark:
            running.append(starting.pop(0))
        device = {event.kind for event in running if event.on_device}
        host = [event for event in running if not event.on_device]
        if was_busy and not device:
            after_wait = any("Synchronize" in event.name for event in host)
        was_busy = bool(device)
        if device:
            account = "compute" if "kernel" in device else "copy"
        elif any("DataLoader" in event.name for event in host):
            account = "loader"
        elif after_wait:
            account = "sync"
        else:
            account = "launches" if any(event.kind != "range" for event in host) else "python"
        accounts[account] += following - mark
    return accounts.most_common(1)[0][0]


@bottleneck.cases
def _(draw):
    loader, python, waiting, copies = bottleneck.parts

    def judged(part, events, words):
        right = _bottleneck(events)
        others = [kind for kind in KINDS if kind != right]

        def play(subject):
            came = subject(events)
            said = came if isinstance(came, str) else ""
            facts = {kind: said != kind for kind in others}
            return {"one of six": not said or said in KINDS, **facts, "account": came}

        places = {
            "['one of six']": "The result is not one of the six words.",
            **{f"['{kind}']": f"The result is `{kind}`, but `{right}` takes most of the time." for kind in others},
            "['account']": "the account",
        }
        return Case(part, play, shown=words, places=places)

    def asked(part, kind, covered=None, steps=1, backwards=False):
        events = drawn(kind, draw.integer(0, 10**9), steps=steps, covered=covered)
        moved = elsewhere(events)
        words = f"a drawn trace of {len(moved)} events"
        return judged(part, moved[::-1] if backwards else moved, words)

    def elsewhere(events):
        """Move the events to a later time and to another stream, and give them other names of the same kind."""
        late, stream = draw.integer(1, 10**9), draw.integer(8, 19)
        loader = draw.choice(("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"))
        wait = draw.choice(("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize"))
        new = {LOADER: f"enumerate(DataLoader)#{loader}.__next__", "cudaStreamSynchronize": wait}
        return [
            Event(
                new.get(e.name, e.name), e.start + late, e.duration,
                e.lane.replace("7", str(stream)), e.kind, e.correlation,
            )
            for e in events
        ]  # fmt: skip

    def small(part, words, *rows):
        """A trace by hand: (what, start, end), in a random unit of time."""
        unit = draw.integer(50, 900)
        kinds = {
            "kernel": ("gemm", "gpu 7", "kernel"),
            "kernel beside": ("gemm", "gpu 20", "kernel"),
            "copy": ("Memcpy HtoD", "gpu 7", "copy"),
            "copy beside": ("Memcpy HtoD", "gpu 20", "copy"),
            "other copy": ("[CUDA memcpy HtoD]", "gpu 7", "copy"),
            "loader": (LOADER, "cpu", "range"),
            "other loader": ("next batch: DataLoader.__next__", "cpu", "range"),
            "loader's thread": (LOADER, "cpu 2", "range"),
            "range": ("forward", "cpu", "range"),
            "op": ("aten::mm", "cpu", "op"),
            "op beside": ("aten::mm", "cpu 2", "op"),
            "call": ("cudaLaunchKernel", "cpu", "call"),
            "wait": ("cudaStreamSynchronize", "cpu", "call"),
            "other wait": ("hipDeviceSynchronize", "cpu", "call"),
        }
        events = []
        for what, start, end in rows:
            name, lane, kind = kinds[what]
            events.append(Event(name, start * unit, (end - start) * unit, lane, kind))
        return judged(part, elsewhere(events), f"a trace by hand: {words}")

    yield small(
        loader, "first the loader, then one kernel",
        ("loader", 0, 70), ("op", 70, 75), ("kernel", 74, 90), ("wait", 76, 91),
    )  # fmt: skip
    yield small(
        loader, "a wait, and then the loader",
        ("op", 0, 4), ("kernel", 3, 13), ("wait", 4, 14), ("loader", 15, 80), ("op", 80, 84), ("kernel", 83, 90),
    )  # fmt: skip
    yield small(
        loader, "a loader inside a range, while a kernel runs",
        ("range", 0, 100), ("op", 1, 4), ("kernel", 3, 90), ("loader", 5, 88), ("op", 90, 99),
    )  # fmt: skip
    yield small(
        loader, "a range of a loader with an unusual name",
        ("other loader", 0, 70), ("op", 70, 75), ("kernel", 74, 90), ("wait", 76, 91),
    )  # fmt: skip
    yield small(
        loader, "an operator inside the loader",
        ("loader", 0, 70), ("op", 2, 68), ("op", 70, 75), ("kernel", 74, 90), ("wait", 76, 91),
    )  # fmt: skip
    yield small(
        loader, "a loader on another thread",
        ("op", 0, 4), ("kernel", 3, 13), ("loader's thread", 4, 80), ("op", 80, 84), ("kernel", 83, 90),
    )  # fmt: skip
    yield small(
        loader, "many short calls of the loader",
        *((what, 16 * k + begin, 16 * k + end) for k in range(6)
          for what, begin, end in (("loader", 0, 11), ("op", 11, 14), ("kernel", 12, 16))),
    )  # fmt: skip
    yield asked(loader, "loader", steps=2)
    yield asked(loader, "loader", "sync")
    yield asked(loader, "compute", "loader", steps=2)
    yield asked(loader, "launches")
    yield small(
        python, "CUDA calls outside operators",
        *((what, 10 * k + begin, 10 * k + end) for k in range(6)
          for what, begin, end in (("call", 0, 9), ("kernel", 8, 10))),
    )  # fmt: skip
    yield small(
        python, "operators on another thread",
        ("range", 0, 100), ("op", 0, 3), ("op beside", 3, 90), ("kernel", 88, 97),
    )  # fmt: skip
    yield small(
        python, "operators after the last kernel",
        ("op", 0, 3), ("kernel", 2, 20), ("op", 20, 60), ("op", 60, 99),
    )  # fmt: skip
    yield small(
        python, "a wait before the first kernel",
        ("wait", 0, 70), ("op", 70, 76), ("kernel", 75, 95),
    )  # fmt: skip
    yield small(
        python, "kernels that overlap",
        ("op", 0, 75), ("kernel", 75, 95), ("kernel beside", 75, 97), ("kernel", 76, 97), ("kernel beside", 78, 97), ("range", 0, 99),
    )  # fmt: skip
    yield small(
        python, "for most of the time only a range",
        ("range", 0, 100), ("op", 2, 6), ("kernel", 5, 9), ("op", 50, 54), ("kernel", 53, 60),
    )  # fmt: skip
    yield small(
        python, "a gap in which the host is in no event",
        ("range", 0, 8), ("op", 2, 6), ("kernel", 5, 9), ("range", 80, 90), ("op", 81, 84), ("kernel", 83, 90),
    )  # fmt: skip
    yield small(
        python, "a wait that begins when the device is already idle",
        ("op", 0, 6), ("kernel", 5, 20), ("op", 18, 26), ("wait", 26, 90), ("op", 90, 97), ("kernel", 96, 99),
    )  # fmt: skip
    yield small(
        python, "a wait that has ended before the next gap begins",
        ("op", 0, 4), ("kernel", 3, 10), ("wait", 4, 11), ("op", 11, 16), ("kernel", 15, 22), ("op", 17, 92), ("kernel", 90, 97),
    )  # fmt: skip
    yield asked(python, "python", steps=2)
    yield asked(python, "launches", "nothing", steps=2)
    yield asked(python, "compute", "python")
    yield asked(python, "compute", "launches")
    yield asked(python, "python", "launches", backwards=True)
    yield small(
        waiting, "a short wait, and a long time until the next kernel",
        ("range", 0, 100), ("op", 0, 4), ("kernel", 3, 12), ("wait", 4, 14), ("op", 40, 85), ("kernel", 84, 92),
    )  # fmt: skip
    yield small(
        waiting, "a long wait, and a short time until the next kernel",
        ("range", 0, 100), ("op", 0, 4), ("kernel", 3, 10), ("wait", 4, 80), ("op", 82, 90), ("kernel", 89, 97),
    )  # fmt: skip
    yield small(
        waiting, "waits after a copy, and after a kernel beside a copy",
        ("op", 0, 3), ("copy", 2, 6), ("wait", 3, 7), ("op", 28, 31), ("kernel", 30, 36), ("copy beside", 31, 35),
        ("wait", 32, 38), ("op", 68, 71), ("kernel", 70, 74), ("op", 74, 80),
    )  # fmt: skip
    yield small(
        waiting, "a wait for a device of another maker",
        ("op", 0, 4), ("kernel", 3, 12), ("other wait", 4, 16), ("op", 60, 75), ("kernel", 74, 92),
    )  # fmt: skip
    yield small(
        waiting, "a wait for one stream, which ends while another stream still works",
        ("op", 0, 4), ("kernel", 3, 10), ("copy beside", 4, 30), ("wait", 5, 11), ("op", 30, 75), ("kernel", 74, 90), ("op", 90, 99),
    )  # fmt: skip
    yield asked(waiting, "sync", "nothing", steps=2)
    yield asked(waiting, "sync", "python")
    yield asked(waiting, "compute", "sync", steps=2)
    yield asked(waiting, "launches", "sync")
    yield asked(waiting, "python", "sync")
    yield small(
        copies, "copies beside kernels and after them",
        ("op", 0, 4), ("kernel", 3, 30), ("copy beside", 5, 99), ("op", 6, 20), ("wait", 20, 100),
    )  # fmt: skip
    yield small(
        copies, "copies that overlap",
        ("op", 0, 70), ("copy", 70, 90), ("copy beside", 70, 91), ("copy", 71, 91), ("copy beside", 72, 91), ("copy", 73, 91),
        ("op", 91, 99),
    )  # fmt: skip
    yield small(
        copies, "a copy with an unusual name",
        ("op", 0, 3), ("other copy", 2, 80), ("op", 3, 90), ("op", 90, 99),
    )  # fmt: skip
    yield small(
        copies, "a long kernel over several copies",
        ("op", 0, 4), ("kernel", 3, 90), ("copy beside", 5, 40), ("copy beside", 40, 88), ("op", 90, 99),
    )  # fmt: skip
    yield small(
        copies, "a copy while the loader loads",
        ("op", 0, 3), ("copy beside", 2, 80), ("loader", 4, 92), ("op", 92, 99),
    )  # fmt: skip
    yield asked(copies, "copy", steps=2)
    yield asked(copies, "copy")
    yield asked(copies, "compute", "copy", steps=2)
    yield asked(copies, "compute", "nothing")
    yield asked(copies, "loader", "copy")


_bottleneck = lab_solution(__name__, "bottleneck")
