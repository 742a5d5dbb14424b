"""Lab 09, exercise 4: The brake"""

from collections import Counter

from utils.checks import Case, Check, edited
from utils.traces import Event, drawn

bottleneck = Check(
    "bottleneck",
    parts={"the loader": 1, "Python and launches": 1, "waiting": 1, "copies": 1},
    reads="Five brakes",
)


@bottleneck.reference
def _(events):
    """That each account is as in the table is tested in tests/utils/test_traces.py."""
    accounts = Counter()
    marks = sorted({mark for event in events for mark in (event.start, event.end)})
    starting = sorted(events, key=lambda event: event.start)
    running, after_wait, was_busy = [], False, True
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

    def asked(part, kind, covered=None, steps=1, backwards=False):
        events = drawn(kind, draw.integer(0, 10**9), steps=steps, covered=covered)
        # no trace begins at 0, and which number a lane has means nothing
        late, stream = draw.integer(0, 10**9), draw.integer(8, 19)
        moved = [
            Event(e.name, e.start + late, e.duration, e.lane.replace("7", str(stream)), e.kind, e.correlation)
            for e in events
        ]
        words = f"a drawn trace of {len(moved)} events"
        return Case(part, lambda subject: subject(moved[::-1] if backwards else moved), shown=words)

    yield asked(loader, "loader", steps=2)
    yield asked(loader, "loader", "sync")
    yield asked(loader, "compute", "loader", steps=2)
    yield asked(loader, "launches")
    yield asked(python, "python", steps=2)
    yield asked(python, "launches", "nothing", steps=2)
    yield asked(python, "compute", "python")
    yield asked(python, "compute", "launches")
    yield asked(python, "python", "launches", backwards=True)
    yield asked(waiting, "sync", "nothing", steps=2)
    yield asked(waiting, "sync", "python")
    yield asked(waiting, "compute", "sync", steps=2)
    yield asked(waiting, "launches", "sync")
    yield asked(waiting, "python", "sync")
    yield asked(copies, "copy", steps=2)
    yield asked(copies, "copy")
    yield asked(copies, "compute", "copy", steps=2)
    yield asked(copies, "compute", "nothing")
    yield asked(copies, "loader", "copy")
