"""Lab 04, exercise 4: A dispatcher"""

from utils.checks.exercise import Case, Check, edited
from utils.drivers.dispatch import FALLTHROUGH

ORDER = ("Tracer", "Autocast", "Autograd", "ADInplaceOrView", "Python", "CUDA", "CPU")

dispatcher = Check(
    "Dispatcher",
    parts={
        "priority": 1,
        "fallthrough and fallbacks": 2,
        "redispatch": 2,
        "composites": 1,
        "holes": 1,
    },
    reads="Order, fallthrough, redispatch",
)


@dispatcher.reference
class Dispatcher:
    def __init__(self, order):
        self.order = order
        self.kernels, self.composites, self.fallbacks = {}, {}, {}

    def impl(self, op, key, kernel):
        self.kernels[op, key] = kernel

    def composite(self, op, keys, kernel):
        for key in keys:
            self.composites[op, key] = kernel

    def fallback(self, key, kernel):
        self.fallbacks[key] = kernel

    def call(self, op, keys, value):
        ordered = sorted(keys, key=self.order.index)
        for place, key in enumerate(ordered):
            rest = frozenset(ordered[place + 1 :])
            if (op, key) in self.kernels:
                kernel, given = self.kernels[op, key], (rest, value)
            elif (op, key) in self.composites:
                kernel, given = self.composites[op, key], (keys, value)
            elif key in self.fallbacks:
                kernel, given = self.fallbacks[key], (op, rest, value)
            else:
                raise NotImplementedError(f"{op} has no kernel for {key}")
            if kernel is not FALLTHROUGH:
                return kernel(*given)
        raise NotImplementedError(f"{op}: no key is left")


ANSWER, PASS, NOTHING = "answer", "redispatch", ("fallthrough",)


@dispatcher.cases
def _(draw):
    names = draw.sample(("add", "mm", "relu", "view", "norm", "scale", "shift"), 4)
    f, g, h, none = names
    value = draw.integer(10, 99)

    def played(part, script, shown, order=ORDER):
        def play(subject):
            came = subject.drive("dispatch:play_dispatcher", order, script)
            return [_told(result) for result in came]

        calls = sum(step[0] == "call" for step in script)
        return Case(part, play, shown=shown, places=_places(calls))

    def refused(script, op, key, shown):
        """The error of the last call must name the operator, and the key where there is one."""

        def play(subject):
            *_, last = subject.drive("dispatch:play_dispatcher", ORDER, script)
            kind, message = last[1:] if last[0] == "raised" else ("", "")
            return kind, op in message, key in message

        places = {
            "[0]": "the type of the error",
            "[1]": "the message does not name the operator.",
            "[2]": "the message does not name the key.",
        }
        return Case("holes", play, shown=shown, places=places)

    def impl(op, key, *kernel):
        return ("impl", op, key, kernel)

    def call(op, *keys):
        return ("call", op, keys, value)

    backends = [impl(f, "CPU", ANSWER, "cpu"), impl(f, "CUDA", ANSWER, "cuda")]
    yield played("priority", [*backends, call(f, "CPU"), call(f, "CUDA")], "one key")
    both = [call(f, "CPU", "CUDA"), call(f, "CUDA", "CPU")]
    yield played("priority", [*backends, *both], "two keys")
    yield played("priority", [*reversed(backends), *both], "two keys, registered in another order")
    other = tuple(reversed(ORDER))
    yield played("priority", [*backends, *both], "two keys in another order of all", other)
    again = [*backends, impl(f, "CPU", ANSWER, "newer"), call(f, "CPU")]
    yield played("priority", again, "registered again")
    another = ("another", [impl(f, "CPU", ANSWER, "the other dispatcher's")])
    shown = "two dispatchers: the second is filled before the first is called"
    yield played("priority", [*backends, another, call(f, "CPU")], shown)
    two = [*backends, impl(g, "CPU", ANSWER, "other"), call(g, "CPU"), call(f, "CPU")]
    yield played("priority", two, "two operators")
    keys = draw.sample(ORDER[:5], 3)
    layers = [impl(f, key, ANSWER, key) for key in keys]
    yield played("priority", [*layers, *backends, call(f, *keys, "CPU")], "several keys")

    silent = [*backends, impl(f, "Autograd", "nothing"), call(f, "Autograd", "CPU")]
    yield Case(
        "priority",
        lambda subject: subject.drive("dispatch:play_dispatcher", ORDER, silent)[0] is None,
        shown="a kernel that returns None, and another one below it",
        places={"": "the call does not return the None of the higher one."},
    )

    through = [*backends, impl(f, "Autograd", *NOTHING)]
    yield played(
        "fallthrough and fallbacks",
        [*through, call(f, "CPU", "Autograd"), call(f, "CUDA", "Autograd", "CPU")],
        "a fallthrough",
    )
    view = ("fallback", "ADInplaceOrView", NOTHING)
    several = [view, *through, call(f, "CPU", "ADInplaceOrView", "Autograd")]
    yield played("fallthrough and fallbacks", several, "two fallthroughs in a row")
    trace = ("fallback", "Tracer", (PASS, "traced"))
    yield played(
        "fallthrough and fallbacks",
        [trace, *backends, impl(g, "CPU", ANSWER, "g"), call(f, "Tracer", "CPU"),
         call(g, "CPU", "Tracer")],
        "a fallback that passes the call on",
    )  # fmt: skip
    spent = [
        impl(f, "Tracer", *NOTHING),
        ("fallback", "Autograd", (PASS, "anything")),
        ("composite", f, ("CPU",), (ANSWER, "opened")),
        call(f, "Tracer", "Autograd", "CPU"),
    ]
    yield played("composites", spent, "a fallback between a key that falls through and a composite")
    own = [trace, impl(f, "Tracer", ANSWER, "f's own"), *backends, call(f, "Tracer", "CPU")]
    yield played("fallthrough and fallbacks", own, "a fallback, and a kernel of the operator's own")
    late = [impl(f, "Tracer", ANSWER, "f's own"), *backends, trace, call(f, "Tracer", "CPU")]
    yield played("fallthrough and fallbacks", late, "a fallback that is registered later")
    newer = ("fallback", "Tracer", (PASS, "newer"))
    yield played("fallthrough and fallbacks", [trace, newer, *backends, call(f, "Tracer", "CPU")],
                 "a fallback that is registered again")  # fmt: skip
    opt_out = [trace, impl(f, "Tracer", *NOTHING), *backends, call(f, "Tracer", "CPU")]
    yield played("fallthrough and fallbacks", opt_out, "a fallthrough of the operator's own")
    kept = [view, *backends, impl(f, "Tracer", ANSWER, "top"), call(f, *ORDER)]
    yield played("fallthrough and fallbacks", kept, "what is left for the kernel")
    below = [impl(f, "Autocast", *NOTHING), impl(f, "Autograd", ANSWER, "a"), view,
             call(f, "CPU", "Autocast", "Autograd", "ADInplaceOrView")]  # fmt: skip
    yield played("fallthrough and fallbacks", below, "a fallthrough above the winner, one below")

    record = impl(f, "Autograd", PASS, "recorded")
    yield played("redispatch", [record, *backends, call(f, "CPU", "Autograd")], "one level")
    cast = impl(f, "Autocast", PASS, "cast")
    deep = [cast, record, view, *backends, trace]
    yield played("redispatch", [*deep, call(f, *ORDER[:4], "CPU")], "three levels")
    yield played("redispatch", [*deep, call(f, "CPU", "CUDA", "Autograd")], "two backends below")
    yield played(
        "redispatch", [*deep, call(f, "Autograd", "CPU"), call(f, "CPU"), call(f, "Autograd", "CPU")],
        "calls one after the other",
    )  # fmt: skip
    inner = [
        record,
        *backends,
        impl(g, "Autograd", "call", "by way of f", f),
        call(g, "Autograd", "CPU"),
    ]
    yield played("redispatch", inner, "another operator with the keys that are left")

    opened = ("composite", h, ("Autograd", "CPU", "CUDA"), ("call", "opened", f))
    yield played(
        "composites", [record, *backends, opened, call(h, "Autograd", "CPU")], "found at Autograd"
    )
    yield played("composites", [record, *backends, opened, call(h, "CPU")], "found at the backend")
    own = impl(h, "CPU", ANSWER, "h on a CPU")
    for script, when in (([opened, own], "later"), ([own, opened], "before")):
        calls = [call(h, "CPU"), call(h, "CUDA"), call(h, "CPU", "Autograd")]
        shown = f"a composite, and a kernel of the operator's own that was registered {when}"
        yield played("composites", [record, *backends, *script, *calls], shown)
    beside = [("fallback", "Autograd", (PASS, "anything")), record, *backends, opened]
    yield played(
        "composites", [*beside, call(h, "Autograd", "CPU")], "a composite at a key with a fallback"
    )
    above = [view, record, *backends, opened, call(h, "ADInplaceOrView", "Autograd", "CPU")]
    yield played("composites", above, "with a key that falls through below it")
    past = [("fallback", "Tracer", NOTHING), record, *backends, opened, call(h, "Tracer", "CPU")]
    yield played("composites", past, "with a key that falls through above it")
    shown_keys = ("composite", h, ("CPU",), (ANSWER, "opened"))
    past = [("fallback", "Tracer", NOTHING), impl(h, "Autocast", *NOTHING), shown_keys,
            call(h, "Tracer", "Autocast", "CPU")]  # fmt: skip
    yield played("composites", past, "two keys fall through above a composite")
    skipped = ("composite", h, ("Autograd", "Tracer"), NOTHING)
    through_it = [skipped, impl(h, "CPU", ANSWER, "h on a CPU"), call(h, "Autograd", "CPU"),
                  call(h, "Tracer", "Autograd", "CPU")]  # fmt: skip
    yield played("composites", through_it, "a composite that is a fallthrough")
    newer = ("composite", h, ("CPU", "Autograd"), (ANSWER, "newer"))
    anew = [record, *backends, opened, newer]
    calls = [call(h, "CPU"), call(h, "Autograd")]
    yield played("composites", [*anew, *calls], "a composite that is registered again")
    shown = "a composite that is registered again, at a key of the first one alone"
    yield played("composites", [*anew, call(h, "CUDA")], shown)
    nested = [record, *backends, opened, ("composite", none, ("CPU", "Autograd"), ("call", "outer", h)),
              call(none, "CPU", "Autograd")]  # fmt: skip
    yield played("composites", nested, "a composite of a composite")

    hole = [*backends, call(f, "CPU", "Autocast")]
    yield refused(hole, f, "Autocast", "a hole above a kernel")
    yield refused([record, call(f, "CPU", "Autograd")], f, "CPU", "a hole below a redispatch")
    within = [*backends, impl(f, "Autocast", "call", "by way of another", none)]
    shown = "a hole that a kernel's own call meets, above another kernel"
    yield refused([*within, call(f, "Autocast", "CPU")], none, "CPU", shown)
    yield refused([*backends, call(none, "CUDA")], none, "CUDA", "an operator that nobody knows")
    partly = [("composite", h, ("CPU",), ("call", "opened", f)), *backends, call(h, "CUDA")]
    yield refused(partly, h, "CUDA", "a key that the composite is not for")
    yield refused([*through, call(f, "Autograd")], f, "", "no key left")
    yield refused([*backends, call(f)], f, "", "no key at all")
    lowest = [impl(f, ORDER[-1], PASS, "on"), call(f, ORDER[-1])]
    yield refused(lowest, f, "", "a kernel of the lowest key that passes the call on")
    elsewhere = [impl(g, "Autocast", *NOTHING), *backends, call(f, "CPU", "Autocast")]
    yield refused(elsewhere, f, "Autocast", "another operator's fallthrough")


PLACES = {
    "[0]": "which error it raised, if any",
    "[1]": "the kernels that ran, one passing the call on to the next",
    "[2]": "the value that the last kernel was given",
    "[3]": "the keys that the last kernel was given",
}


def _places(calls):
    """Words for what `_told` tells of each call."""
    if calls == 1:
        return {f"[0]{path}": words for path, words in PLACES.items()}
    return {
        f"[{number}]{path}": f"call {number + 1}: {words}"
        for number in range(calls)
        for path, words in PLACES.items()
    }


def _told(result):
    """What a call came to: the error's type, the kernels that ran, their last value and keys.

    What no kernel of the driver's returned stands at the end, as it came.
    """
    ran, rest = [], result
    while isinstance(rest, (tuple, list)) and len(rest) in (2, 3) and isinstance(rest[0], str):
        if rest[0] == "raised":
            return str(rest[1]), ran, None, None
        last = len(rest) == 3 and isinstance(rest[2], list)
        # a fallback tells the operator, too
        ran += [rest[0], str(rest[1])] if len(rest) == 3 and not last else [rest[0]]
        if last:
            return "", ran, rest[1], rest[2]
        rest = rest[-1]
    return "", ran, rest, None


dispatcher.misconception(
    "redispatch from the top",
    "a kernel is given all keys of the call, its own too, so that what it passes on comes back to it.",
    earns=0,
)(edited(Dispatcher, ("rest = frozenset(ordered[place + 1:])", "rest = frozenset(keys)")))
dispatcher.misconception(
    "a kernel gets its own key",
    "the key that won is still among those that its kernel is given.",
    earns=0,
)(edited(Dispatcher, ("ordered[place + 1:]", "ordered[place:]")))
dispatcher.misconception(
    "skipped keys come back",
    "a kernel is given all keys but its own, those above it included.",
    earns=2,
)(edited(Dispatcher, ("frozenset(ordered[place + 1:])", "frozenset(keys) - {key}")))
dispatcher.misconception(
    "every lower key is left",
    "a kernel is given all keys below its own, also such as the call did not have.",
    earns=0,
)(
    edited(
        Dispatcher,
        ("frozenset(ordered[place + 1:])",
         "frozenset(self.order[list(self.order).index(key) + 1:])"),
    )
)  # fmt: skip
dispatcher.misconception(
    "a fallthrough that is called",
    "where a composite is FALLTHROUGH, it is called.",
    earns=6,
)(
    edited(
        Dispatcher,
        ("if kernel is not FALLTHROUGH:",
         "if kernel is not FALLTHROUGH or (op, key) in self.composites and (op, key) not in self.kernels:"),
    )
)  # fmt: skip
dispatcher.misconception(
    "a later composite replaces a kernel",
    "a composite that is registered later takes the place of the operator's own kernel.",
    earns=6,
)(
    edited(
        Dispatcher,
        ("self.composites[op, key] = kernel",
         "self.composites[op, key] = kernel\n            self.kernels.pop((op, key), None)"),
    )
)  # fmt: skip
dispatcher.misconception(
    "the first fallback stays",
    "a fallback that is registered again does not replace the one that was there.",
    earns=5,
)(edited(Dispatcher, ("self.fallbacks[key] = kernel", "self.fallbacks.setdefault(key, kernel)")))
dispatcher.misconception(
    "holes fall through",
    "a slot that holds nothing is passed over like a fallthrough.",
    earns=6,
)(edited(Dispatcher, ("raise NotImplementedError(f'{op} has no kernel for {key}')", "continue")))
dispatcher.misconception(
    "the order of registration decides",
    "of several keys the one that was registered first wins.",
    earns=0,
)(
    edited(
        Dispatcher,
        ("sorted(keys, key=self.order.index)",
         "sorted(keys, key=lambda k: [*[key for o, key in self.kernels if o == op], *self.order].index(k))"),
    )
)  # fmt: skip
dispatcher.misconception(
    "the lowest key first", "keys are tried from the lowest to the highest.", earns=0
)(
    edited(
        Dispatcher,
        ("sorted(keys, key=self.order.index)", "sorted(keys, key=self.order.index, reverse=True)"),
    )
)
dispatcher.misconception(
    "a composite uses its key up",
    "a composite is given only the keys below the one at which it was found: what it calls never "
    "meets the higher ones.",
    earns=6,
)(
    edited(
        Dispatcher,
        (
            "self.composites[op, key], (keys, value)",
            "self.composites[op, key], (rest, value)",
        ),
    )
)
dispatcher.misconception(
    "the composite before the kernel",
    "a composite is taken also where the operator has a kernel of its own.",
    earns=6,
)(
    edited(
        Dispatcher,
        ("if (op, key) in self.kernels:\n                kernel, given = (self.kernels[op, key], (rest, value))\n"
         "            elif (op, key) in self.composites:\n"
         "                kernel, given = (self.composites[op, key], (keys, value))",
         "if (op, key) in self.composites:\n"
         "                kernel, given = (self.composites[op, key], (keys, value))\n"
         "            elif (op, key) in self.kernels:\n                kernel, given = (self.kernels[op, key], (rest, value))"),
    )
)  # fmt: skip
dispatcher.misconception(
    "the fallback before the composite",
    "a key's fallback is taken also where the operator has a composite.",
    earns=6,
)(
    edited(
        Dispatcher,
        ("if (op, key) in self.kernels:",
         "if key in self.fallbacks and (op, key) not in self.kernels:\n"
         "                kernel, given = self.fallbacks[key], (op, rest, value)\n"
         "            elif (op, key) in self.kernels:"),
    )
)  # fmt: skip
dispatcher.misconception(
    "a fallback for everybody",
    "a key's fallback is taken even where the operator has a kernel of its own.",
    earns=4,
)(
    edited(
        Dispatcher,
        ("if (op, key) in self.kernels:",
         "if key in self.fallbacks:\n"
         "                kernel, given = self.fallbacks[key], (op, rest, value)\n"
         "            elif (op, key) in self.kernels:"),
    )
)  # fmt: skip
dispatcher.misconception(
    "the first registration stays",
    "what is registered again does not replace what was there.",
    earns=6,
)(
    edited(
        Dispatcher, ("self.kernels[op, key] = kernel", "self.kernels.setdefault((op, key), kernel)")
    )
)
dispatcher.misconception(
    "the alphabet decides",
    "keys are taken in alphabetical order.",
    earns=1,
)(edited(Dispatcher, ("sorted(keys, key=self.order.index)", "sorted(keys)")))
dispatcher.misconception(
    "a fallback starts over",
    "a fallback is given all keys of the call, its own too, so that what it passes on comes back.",
    earns=2,
)(
    edited(
        Dispatcher,
        ("self.fallbacks[key], (op, rest, value)", "self.fallbacks[key], (op, keys, value)"),
    )
)
dispatcher.misconception(
    "a composite at every key",
    "a composite is taken also at keys that it was not registered for.",
    earns=5,
)(edited(Dispatcher, ("for key in keys:\n", "for key in self.order:\n")))
dispatcher.misconception(
    "an impl that falls through is none",
    "where an operator's own slot is FALLTHROUGH, its composite or the key's fallback is asked.",
    earns=4,
)(
    edited(
        Dispatcher,
        ("if (op, key) in self.kernels:", "if self.kernels.get((op, key), FALLTHROUGH) is not FALLTHROUGH:"),
    )
)  # fmt: skip
dispatcher.misconception(
    "None when no key is left",
    "a call with no key left returns instead of raising NotImplementedError.",
    earns=6,
)(edited(Dispatcher, ("raise NotImplementedError(f'{op}: no key is left')", "return None")))
dispatcher.misconception(
    "a message without the key",
    "the error does not name the key that has no kernel.",
    earns=6,
)(edited(Dispatcher, ("f'{op} has no kernel for {key}'", "f'{op} has no kernel'")))
dispatcher.misconception(
    "another exception",
    "a hole raises another exception than NotImplementedError.",
    earns=6,
)(
    edited(
        Dispatcher,
        (
            "raise NotImplementedError(f'{op} has no kernel for {key}')",
            "raise KeyError(f'{op} {key}')",
        ),
    )
)
dispatcher.misconception(
    "one fallthrough and no more",
    "only the highest key may fall through; at a lower one the sentinel is called.",
    earns=4,
)(
    edited(
        Dispatcher,
        ("if kernel is not FALLTHROUGH:", "if kernel is not FALLTHROUGH or place:"),
    )
)


@dispatcher.alternate("one table that is worked out for each call")
class Lookups:
    def __init__(self, order):
        self.rank = {key: -number for number, key in enumerate(order)}
        self.slots = {}

    def impl(self, op, key, kernel):
        self.slots["impl", op, key] = kernel

    def composite(self, op, keys, kernel):
        self.slots.update({("composite", op, key): kernel for key in keys})

    def fallback(self, key, kernel):
        self.slots["fallback", None, key] = kernel

    def call(self, op, keys, value):
        left = set(keys)
        while left:
            key = max(left, key=self.rank.__getitem__)
            left.remove(key)
            rest = frozenset(left)
            for kind, name in (("impl", op), ("composite", op), ("fallback", None)):
                if (kind, name, key) in self.slots:
                    kernel = self.slots[kind, name, key]
                    break
            else:
                raise NotImplementedError(f"nothing is registered for {op} at {key}")
            if kernel is FALLTHROUGH:
                continue
            given = {"impl": (rest,), "composite": (keys,), "fallback": (op, rest)}
            return kernel(*given[kind], value)
        raise NotImplementedError(f"{op} fell through all of its keys")


@dispatcher.alternate("by recursion")
class Recursive:
    def __init__(self, order):
        self.order, self.own, self.parts, self.rest = tuple(order), {}, {}, {}

    def impl(self, op, key, kernel):
        self.own.setdefault(op, {})[key] = kernel

    def composite(self, op, keys, kernel):
        for key in keys:
            self.parts.setdefault(op, {})[key] = kernel

    def fallback(self, key, kernel):
        self.rest[key] = kernel

    def call(self, op, keys, value):
        return self.look(op, keys, keys, value)

    def look(self, op, every, keys, value):
        left = [key for key in self.order if key in keys]
        if not left:
            raise NotImplementedError(f"{op} with {sorted(every)}: nothing left to do it")
        first, below = left[0], frozenset(left[1:])
        own = self.own.get(op, {}).get(first)
        if own is None:
            part = self.parts.get(op, {}).get(first)
            if part is None:
                other = self.rest.get(first)
                if other is None:
                    raise NotImplementedError(f"{op} can't be run at {first}")
                if other is not FALLTHROUGH:
                    return other(op, below, value)
            elif part is not FALLTHROUGH:
                return part(every, value)
        elif own is not FALLTHROUGH:
            return own(below, value)
        return self.look(op, every, below, value)


dispatcher.equivalent(
    ("rest = frozenset(left)", "rest = left"),
    because="a set that nobody changes any more is as good as a frozenset",
)
