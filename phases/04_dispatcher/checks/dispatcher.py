"""Lab 04, exercise 4: A dispatcher"""

from hood.judge.checks.exercise import Case, Check
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
    reads_by_part={"composites": "Composites"},
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


MISUSED = (
    "a kernel was called with wrong arguments for its kind, in a wrong order, or "
    "with keys that are not a set."
)
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
        """The error of the last call must name the operator, and the key if there is one."""

        def play(subject):
            *_, last = subject.drive("dispatch:play_dispatcher", ORDER, script)
            kind, message = last[1:] if last[0] == "raised" else ("", "")
            misused = message if kind == "Misused" else ""
            return misused, kind, op in message, key in message

        places = {
            "[0]": MISUSED,
            "[1]": "the type of the error",
            "[2]": "the message does not name the operator.",
            "[3]": "the message does not name the key.",
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
    yield played("priority", [*backends, *both], "two keys, and a dispatcher with all keys in the reverse order", other)
    again = [*backends, impl(f, "CPU", ANSWER, "newer"), call(f, "CPU")]
    yield played("priority", again, "registered again")
    meanwhile = [*backends, call(f, "CPU"), impl(f, "CPU", ANSWER, "newer"), call(f, "CPU")]
    yield played("priority", meanwhile, "registered again after a call")
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
        shown="a kernel that returns None, and another kernel with a lower key",
        places={"": "the call does not return None, the result of the kernel with the higher key."},
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
    for_all = ("fallback", "Autograd", (ANSWER, "for all"))
    yield played("fallthrough and fallbacks", [*backends, for_all, call(none, "CPU", "Autograd")],
                 "a fallback that returns a result for an operator without a kernel")  # fmt: skip
    keys_left = [impl(none, "Tracer", *NOTHING), for_all, call(none, "CPU", "Autograd", "Tracer")]
    yield played(
        "fallthrough and fallbacks", keys_left, "a fallback below a key that falls through"
    )
    spent = [
        impl(f, "Tracer", *NOTHING),
        ("fallback", "Autograd", (PASS, "anything")),
        ("composite", f, ("CPU",), (ANSWER, "opened")),
        call(f, "Tracer", "Autograd", "CPU"),
    ]
    yield played("composites", spent, "a fallback between a key that falls through and a composite")
    own = [trace, impl(f, "Tracer", ANSWER, "f's own"), *backends, call(f, "Tracer", "CPU")]
    yield played("fallthrough and fallbacks", own, "a fallback, and the operator's own kernel")
    late = [impl(f, "Tracer", ANSWER, "f's own"), *backends, trace, call(f, "Tracer", "CPU")]
    yield played("fallthrough and fallbacks", late, "a fallback that is registered later")
    newer = ("fallback", "Tracer", (PASS, "newer"))
    yield played("fallthrough and fallbacks", [trace, newer, *backends, call(f, "Tracer", "CPU")],
                 "a fallback that is registered again")  # fmt: skip
    anew = [*through, impl(f, "Autograd", PASS, "later"), call(f, "Autograd", "CPU")]
    yield played("fallthrough and fallbacks", anew, "a kernel in place of a fallthrough")
    anew = [("fallback", "Tracer", NOTHING), trace, *backends, call(f, "Tracer", "CPU")]
    yield played("fallthrough and fallbacks", anew, "a fallback in place of a fallthrough")
    opt_out = [trace, impl(f, "Tracer", *NOTHING), *backends, call(f, "Tracer", "CPU")]
    yield played("fallthrough and fallbacks", opt_out, "the operator's own fallthrough")
    kept = [view, *backends, impl(f, "Tracer", ANSWER, "top"), call(f, *ORDER)]
    yield played("fallthrough and fallbacks", kept, "the remaining keys of a kernel")
    below = [impl(f, "Autocast", *NOTHING), impl(f, "Autograd", ANSWER, "a"), view,
             call(f, "CPU", "Autocast", "Autograd", "ADInplaceOrView")]  # fmt: skip
    yield played("fallthrough and fallbacks", below, "a fallthrough above the winner, and one below it")

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
    yield played("redispatch", inner, "a kernel that calls another operator with the remaining keys")

    opened = ("composite", h, ("Autograd", "CPU", "CUDA"), ("call", "opened", f))
    yield played(
        "composites", [record, *backends, opened, call(h, "Autograd", "CPU")], "a composite that is found at Autograd"
    )
    yield played("composites", [record, *backends, opened, call(h, "CPU")], "a composite that is found at the backend")
    own = impl(h, "CPU", ANSWER, "h on a CPU")
    for script, when in (([opened, own], "later"), ([own, opened], "before")):
        calls = [call(h, "CPU"), call(h, "CUDA"), call(h, "CPU", "Autograd")]
        shown = f"a composite, and the operator's own kernel, registered {when}"
        yield played("composites", [record, *backends, *script, *calls], shown)
    shut = [opened, impl(h, "Autograd", *NOTHING), own, call(h, "Autograd", "CPU")]
    yield played("composites", shut, "the operator's own fallthrough, above a composite")
    beside = [("fallback", "Autograd", (PASS, "anything")), record, *backends, opened]
    yield played(
        "composites", [*beside, call(h, "Autograd", "CPU")], "a composite at a key with a fallback"
    )
    above = [view, record, *backends, opened, call(h, "ADInplaceOrView", "Autograd", "CPU")]
    yield played("composites", above, "a composite, and a key below it that falls through")
    past = [("fallback", "Tracer", NOTHING), record, *backends, opened, call(h, "Tracer", "CPU")]
    yield played("composites", past, "a composite, and a key above it that falls through")
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
    shown = (
        "a composite that is registered again, and a call with a key that only the first "
        "registration has"
    )
    yield played("composites", [*anew, call(h, "CUDA")], shown)
    nested = [record, *backends, opened, ("composite", none, ("CPU", "Autograd"), ("call", "outer", h)),
              call(none, "CPU", "Autograd")]  # fmt: skip
    yield played("composites", nested, "a composite of a composite")

    hole = [*backends, call(f, "CPU", "Autocast")]
    yield refused(hole, f, "Autocast", "a hole above a kernel")
    yield refused([record, call(f, "CPU", "Autograd")], f, "CPU", "a hole below a redispatch")
    within = [*backends, impl(f, "Autocast", "call", "by way of another", none)]
    shown = "a kernel that calls an operator without a kernel, with another kernel below"
    yield refused([*within, call(f, "Autocast", "CPU")], none, "CPU", shown)
    passed_on = [("fallback", "Autograd", (PASS, "any")), call(none, "Autograd", "CPU")]
    yield refused(passed_on, none, "CPU", "a fallback that passes on an unknown operator")
    yield refused([*backends, call(none, "CUDA")], none, "CUDA", "an unknown operator")
    partly = [("composite", h, ("CPU",), ("call", "opened", f)), *backends, call(h, "CUDA")]
    yield refused(partly, h, "CUDA", "a call with a key for which the composite is not registered")
    yield refused([*through, call(f, "Autograd")], f, "", "no key left")
    yield refused([*backends, call(f)], f, "", "no key at all")
    lowest = [impl(f, ORDER[-1], PASS, "on"), call(f, ORDER[-1])]
    yield refused(lowest, f, "", "a kernel of the lowest key that passes the call on")
    elsewhere = [impl(g, "Autocast", *NOTHING), *backends, call(f, "CPU", "Autocast")]
    yield refused(elsewhere, f, "Autocast", "another operator's fallthrough")


PLACES = {
    "[0]": MISUSED,
    "[1]": "which error the call raised, if any",
    "[2]": "the kernels that ran, in order",
    "[3]": "the value that the last kernel got",
    "[4]": "the keys that the last kernel got",
}


def _places(calls):
    """Words for each part of what `_told` returns, for each call."""
    if calls == 1:
        return {f"[0]{path}": words for path, words in PLACES.items()}
    return {
        f"[{number}]{path}": f"call {number + 1}: {words}"
        for number in range(calls)
        for path, words in PLACES.items()
    }


def _told(result):
    """The outcome of a call: how it misused a kernel, if it did, the error's type, the kernels that
    ran, and the value and keys that the last kernel got.

    A result that no kernel of the driver returned comes last, unchanged.
    """
    ran, rest = [], result
    while isinstance(rest, (tuple, list)) and len(rest) in (2, 3) and isinstance(rest[0], str):
        if rest[0] == "raised":
            misused = str(rest[2]) if rest[1] == "Misused" else ""
            return misused, str(rest[1]), ran, None, None
        last = len(rest) == 3 and isinstance(rest[2], list)
        # what a fallback returns contains the operator, too
        ran += [rest[0], str(rest[1])] if len(rest) == 3 and not last else [rest[0]]
        if last:
            return "", "", ran, rest[1], rest[2]
        rest = rest[-1]
    return "", "", ran, rest, None
