"""Lab 09, exercise 2: Total and self"""

from hood.judge.checks.exercise import Case, Check
from utils.instruments.traces import Event

self_times = Check(
    "self_times",
    parts={"in each other": 1, "several lanes": 1, "spans that touch": 1, "inside its own name": 1},
    reads="Total and self",
)


@self_times.reference
def _(events):
    found = {}
    for at, event in enumerate(events):
        around = []
        for other_at, other in enumerate(events):
            longer = (other.duration, -other_at) > (event.duration, -at)
            if other.lane == event.lane and other.start <= event.start and event.end <= other.end:
                around += [(other.duration, -other_at, other)] * longer
        calls, total, own = found.get(event.name, (0, 0, 0))
        again = any(other.name == event.name for _, _, other in around)
        total += 0 if again else event.duration
        found[event.name] = calls + 1, total, own + event.duration
        if around:
            parent = min(around, key=lambda one: one[:2])[2].name
            calls, total, own = found.get(parent, (0, 0, 0))
            found[parent] = calls, total, own - event.duration
    return found


NAMES = ("linear", "addmm", "mm", "copy_", "to", "add", "mul", "softmax", "t", "view")


class _Tree:
    """Makes random events, some of them inside others."""

    def __init__(self, draw):
        self.draw, self.events = draw, []

    def inside(self, start, room, names, lane, depth, recursive):
        """Fill some of the time from `start` on with events. No event touches the start or the end."""
        draw, time = self.draw, start
        for _ in range(draw.integer(1, 3)):
            if time >= start + room:
                break
            time += draw.integer(1, 3)
            duration = min(draw.integer(2, 40), start + room - time)
            if duration < 1:
                break
            name = draw.choice(names)
            self.events.append(Event(name, time, duration, lane))
            if depth and duration > 3:
                inner = names if recursive else [other for other in names if other != name]
                self.inside(time, duration - 1, inner, lane, depth - 1, recursive)
            time += duration

    def shuffled(self):
        """The events in a random order; events with the same times keep their order."""
        order = self.draw.sample(range(len(self.events)), len(self.events))
        first = {}
        for place, at in enumerate(order):
            event = self.events[at]
            first.setdefault((event.lane, event.start, event.end), []).append(place)
        found = list(self.events)
        for (lane, start, end), places in first.items():
            same = [e for e in self.events if (e.lane, e.start, e.end) == (lane, start, end)]
            for place, event in zip(sorted(places), same, strict=True):
                found[place] = event
        return found


@self_times.cases
def _(draw):
    nested, several, touching, own = self_times.parts

    def asked(part, events, words=""):
        def play(subject):
            return subject(events)

        places = {f"['{name}']": f"(calls, total, self) of {name}" for name in NAMES}
        return Case(part, play, shown=words or f"{len(events)} events", places=places)

    def tree(lanes, depth, distinct):
        made = _Tree(draw)
        for lane in lanes:
            names = list(NAMES)
            start = draw.integer(0, 9)
            for _ in range(draw.integer(1, 2)):
                duration = draw.integer(30, 90)
                used = names if distinct else names[:3]
                made.events.append(Event(used[0], start, duration, lane))
                made.inside(start, duration - 1, used[1:] if distinct else used, lane, depth, not distinct)
                start += duration + draw.integer(1, 9)
        return made.shuffled()

    a, b, c, d = draw.sample(NAMES, 4)
    n = draw.integer(2, 9)
    yield asked(nested, [Event(a, n, 10), Event(b, n + 20, 5), Event(a, n + 40, 7)], "no nesting")
    chain = [Event(a, 0, 50 + n), Event(b, 5, 40), Event(c, 10, 20), Event(d, 12, 3), Event(d, 16, 4)]
    yield asked(nested, chain, "four deep")
    yield asked(nested, chain[::-1], "four deep, the list backwards")
    yield asked(nested, [chain[at] for at in (2, 0, 4, 1, 3)], "four deep, in no order")
    # a name that is directly under one parent, and not directly under another parent
    twice = [Event(a, 0, 100), Event(b, 10, 30), Event(c, 12, 10), Event(c, 50, 20), Event(b, 80, n)]
    yield asked(nested, twice, "a name under two parents")
    yield asked(nested, tree(["cpu"], 1, True))
    same = [Event(a, 3, 20), Event(b, 3, 20), Event(c, 3, 20), Event(d, 3, n)]
    yield asked(nested, same, "three events with the same start and end")
    # two names, in both orders
    one, other = sorted((a, b))
    pairs = [Event(one, 3, 20), Event(other, 3, 20), Event(other, 40, n), Event(one, 40, n)]
    yield asked(nested, [*pairs, Event(c, 18, 5)], "two pairs of events with the same start and end")
    labelled = [Event(a, 0, 50, kind="range"), Event(b, 4, 30), Event(c, 6, n, kind="call")]
    yield asked(nested, labelled, "a range, an op and a call")
    edges = [Event(b, 7, 4), Event(a, 7, 20), Event(c, 22, 5)]
    yield asked(nested, edges, "inner events at the start and the end of an outer one; the list begins with a short event")
    yield asked(nested, [], "no events")

    both = [Event(a, 0, 60, "cpu"), Event(b, 10, 20, "cpu 2"), Event(c, 12, 5, "cpu 2"), Event(b, 30, n, "cpu")]
    yield asked(several, both, "two threads")
    yield asked(several, both[::-1], "two threads, the list backwards")
    device = [Event(a, 0, 60, "gpu 7", "kernel", 3), Event(a, 10, 20), Event(b, 11, n)]
    yield asked(several, device, "a host and a device")
    yield asked(several, [Event(a, 5, 9 + n, lane) for lane in ("cpu", "cpu 2", "cpu 3")])
    two = [Event(a, 0, 60), Event(b, 5, 20), Event(c, 8, 9), Event(d, 40, n), Event(b, 7, 50, "cpu 2")]
    yield asked(several, two, "on one thread, an event and the event inside it end before the next begins")
    yield asked(several, tree(["cpu", "cpu 2"], 1, True))

    row = [Event(a, 0, 10), Event(b, 10, n), Event(c, 10 + n, 6), Event(a, 16 + n, 3)]
    yield asked(touching, row, "one event after the other, without a gap")
    full = [Event(a, 0, 20 + n), Event(b, 0, 10), Event(c, 10, 10), Event(d, 20, n)]
    yield asked(touching, full, "an event without self time")
    yield asked(touching, full[::-1], "an event without self time, the list backwards")
    deep = [Event(a, 0, 30), Event(b, 10, 20), Event(c, 25, 5), Event(d, 30, n), Event(b, 30 + n, 2)]
    yield asked(touching, deep, "three events that end when a fourth starts")
    yield asked(touching, [Event(a, 0, n), Event(a, n, n), Event(a, 2 * n, 1)], "three events with one name")

    yield asked(own, [Event(a, 0, 90), Event(b, 10, 70), Event(a, 20, 50), Event(a, 30, n)])
    yield asked(own, [Event(a, 0, 90), Event(a, 10, 30), Event(a, 50, 30), Event(b, 55, n)])
    deeper = [Event(a, 0, 90), Event(b, 10, 70), Event(c, 20, 50), Event(a, 30, n)]
    yield asked(own, deeper[::-1], "three deep, the list backwards")
    yield asked(own, [Event(a, 5, 20 + n), Event(a, 5, 20 + n), Event(b, 6, 2)], "one name for two events with the same start and end")
    mixed = [Event(a, 0, 40), Event(b, 5, 30), Event(a, 10, 10), Event(a, 50, 9), Event(b, 52, n // 2)]
    yield asked(own, mixed, "an event inside an event of the same name, and a third event of that name alone")
    yield asked(own, [Event(a, 0, 40, "cpu"), Event(a, 5, 30, "cpu 2"), Event(a, 6, n, "cpu 2")])
    yield asked(own, tree(["cpu"], 2, False))
