"""Drivers of lab 04: they undo effects of calls, and notice wrong calls of kernels."""

import pytest

from utils.drivers.dispatch import FALLTHROUGH, play_dispatcher, put_back

SEEN, TIMES = [], 0


class Shared:
    table = {"kept": [1]}
    total = 0

    def add(self, key, also={}):  # noqa: B006  what is shared by mistake
        global TIMES
        TIMES += 1
        SEEN.append(key)
        type(self).total += 1
        self.table.setdefault("kept", []).append(key)
        self.table[key] = also[key] = key


def test_state_shared_by_all_objects_is_restored():
    with put_back(Shared):
        Shared().add("a")
        assert (SEEN, TIMES, Shared.total) == (["a"], 1, 1)
        assert Shared.table == {"kept": [1, "a"], "a": "a"}
    assert (SEEN, TIMES, Shared.total) == ([], 0, 0)
    assert Shared.table == {"kept": [1]}
    assert Shared.add.__defaults__ == ({},)


def test_a_functions_shared_state_is_restored_even_if_it_raises():
    def count(counts={}):  # noqa: B006
        counts["calls"] = SEEN.append(1)
        raise KeyError

    with pytest.raises(KeyError), put_back(count):
        count()
    assert (SEEN, count.__defaults__) == ([], ({},))


class Wrong:
    """A dispatcher that calls every kernel with the same arguments."""

    def __init__(self, order):
        self.given = order[0]

    def impl(self, op, key, kernel):
        self.kernel = kernel

    composite = impl

    def fallback(self, key, kernel):
        self.kernel = kernel

    def call(self, op, keys, value):
        assert self.kernel is not FALLTHROUGH
        kinds = {"o": op, "k": keys, "l": [*keys], "v": value}
        return self.kernel(*(kinds[one] for one in self.given))


@pytest.mark.parametrize(
    ("step", "given", "said"),
    [
        (("impl", "mm", "CPU"), "vk", "an impl(value, keys)"),
        (("impl", "mm", "CPU"), "lv", "an impl(no set, value)"),
        (("composite", "mm", ("CPU",)), "okv", "a composite(name, keys, value)"),
        (("fallback", "CPU"), "kv", "a fallback(keys, value)"),
    ],
)
def test_a_misused_kernel_is_reported(step, given, said):
    script = [(*step, ("answer", "done")), ("call", "mm", ("CPU",), 3)]
    assert play_dispatcher(Wrong, (given, "CPU"), script) == [("raised", "Misused", said)]


def test_a_fallback_answers():
    script = [("fallback", "CPU", ("answer", "done")), ("call", "mm", ("CPU",), 3)]
    assert play_dispatcher(Wrong, ("okv", "CPU"), script) == [("done", 3, ["CPU"])]
