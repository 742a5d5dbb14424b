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


def _bottleneck(events):
    accounts = Counter()
    times = sorted({time for event in events for time in (event.start, event.end)})
    dry, waited = False, False
    for begin, end in zip(times, times[1:]):
        now = [event for event in events if event.start <= begin < event.end]
        kinds = {event.kind for event in now}
        if kinds & {"kernel", "copy"}:
            dry = False
            accounts["compute" if "kernel" in kinds else "copy"] += end - begin
            continue
        if not dry:
            dry, waited = True, any("Synchronize" in event.name for event in now)
        if any("DataLoader" in event.name for event in now):
            accounts["loader"] += end - begin
        elif waited:
            accounts["sync"] += end - begin
        else:
            accounts["launches" if kinds & {"op", "call"} else "python"] += end - begin
    return max(accounts, key=accounts.get)


def _misconception(name, explanation, earns, *edits):
    bottleneck.misconception(name, explanation, earns=earns)(edited(_bottleneck, *edits))


_BUSY = "if kinds & {'kernel', 'copy'}:"
_LOADS = "any(('DataLoader' in event.name for event in now))"
_WAITS = "any(('Synchronize' in event.name for event in now))"
_misconception(
    "the loader whenever it loads",
    "time in which the device is busy is put to the loader's account.",
    3,
    (_BUSY, "if kinds & {'kernel', 'copy'} and not any(('DataLoader' in event.name for event in now)):"),
)
_misconception(
    "waiting whenever it waits",
    "time in which the device works, and the host waits for it, is put to the account of waiting.",
    2,
    (_BUSY, "if kinds & {'kernel', 'copy'} and not any(('Synchronize' in event.name for event in now)):"),
    ("if not dry:", "if True:"),
)
_misconception(
    "the device's view",
    "only what runs on the device is looked at, and not the time in which nothing does.",
    0,
    ("        if not dry:", "        if True:\n            continue\n        if not dry:"),
)
_misconception(
    "no Python",
    "time in which the host is in no op and no call is put to the account of launches.",
    2,
    ("'launches' if kinds & {'op', 'call'} else 'python'", "'launches'"),
)
_misconception(
    "no waiting",
    "a device that has run dry while the host was waiting is put to other accounts.",
    3,
    (_WAITS, "False"),
)
_misconception(
    "the loader's time is Python's",
    "the range of the loader is taken for Python between the operators.",
    2,
    (_LOADS, "False"),
)
_misconception(
    "copies are work",
    "time in which the device only copies is put to the account of computing.",
    3,
    ("'compute' if 'kernel' in kinds else 'copy'", "'compute'"),
)
_misconception(
    "copies are waited for",
    "time in which the device only copies is put to the account of waiting.",
    3,
    ("'compute' if 'kernel' in kinds else 'copy'", "'compute' if 'kernel' in kinds else 'sync'"),
)
_misconception(
    "the smallest account",
    "what is returned is not the account with the most time.",
    0,
    ("max(", "min("),
)


@bottleneck.alternate("busy or not, then the gaps")
def _(events):
    def union(spans):
        merged = []
        for start, end in sorted(spans):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], end))
            else:
                merged.append((start, end))
        return merged

    first = min(event.start for event in events)
    last = max(event.end for event in events)
    kernels = union((e.start, e.end) for e in events if e.kind == "kernel")
    device = union((e.start, e.end) for e in events if e.on_device)
    computing = sum(end - start for start, end in kernels)
    working = sum(end - start for start, end in device)
    if 2 * computing > last - first:
        return "compute"
    if 2 * (working - computing) > last - first:
        return "copy"

    def shared(start, end, spans):
        return sum(max(0, min(end, b) - max(start, a)) for a, b in spans)

    loads = union((e.start, e.end) for e in events if "DataLoader" in e.name)
    waits = [e for e in events if "Synchronize" in e.name]
    works = union((e.start, e.end) for e in events if e.kind in ("op", "call"))
    accounts = {"loader": 0, "sync": 0, "launches": 0, "python": 0}
    edges = [first] + [edge for span in device for edge in span] + [last]
    for start, end in zip(edges[::2], edges[1::2]):
        loading = shared(start, end, loads)
        accounts["loader"] += loading
        if any(wait.start <= start < wait.end for wait in waits):
            accounts["sync"] += end - start - loading
        else:
            launching = shared(start, end, works)
            accounts["launches"] += launching
            accounts["python"] += end - start - loading - launching
    return max(accounts, key=lambda name: accounts[name])


@bottleneck.alternate("a sample of moments")
def _(events):
    begin, end = min(e.start for e in events), max(e.end for e in events)
    device = sorted((e.start, e.end) for e in events if e.on_device)
    votes = Counter()
    for share in range(400):
        moment = begin + (end - begin) * share // 400
        now = [e for e in events if e.start <= moment < e.end]
        kinds = [e.kind for e in now]
        dry = max([stop for _, stop in device if stop <= moment], default=begin)
        waited = [e for e in events if "Synchronize" in e.name and e.start <= dry < e.end]
        if "kernel" in kinds:
            votes["compute"] += 1
        elif "copy" in kinds:
            votes["copy"] += 1
        elif [e for e in now if "DataLoader" in e.name]:
            votes["loader"] += 1
        elif waited:
            votes["sync"] += 1
        elif "op" in kinds or "call" in kinds:
            votes["launches"] += 1
        else:
            votes["python"] += 1
    return votes.most_common()[0][0]
