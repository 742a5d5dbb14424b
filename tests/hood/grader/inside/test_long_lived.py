"""What is imported is never searched for garbage, and what comes later is."""

import gc
import importlib
import weakref

import pytest

from hood.grader.inside.long_lived import long_lived


class Ring:
    """Garbage that only a collection finds."""

    def __init__(self) -> None:
        self.itself = self


def test_what_is_made_is_set_aside():
    before = gc.get_freeze_count()
    with long_lived():
        assert not gc.isenabled()
        kept = [Ring() for _ in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(kept)


def test_what_is_made_later_is_collected():
    with long_lived():
        kept = weakref.ref(Ring())
    gone = weakref.ref(Ring())
    gc.collect()
    assert (kept() is None, gone() is None) == (False, True)


def test_who_collects_nothing_goes_on_so():
    with long_lived():
        with long_lived():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_import_that_fails_leaves_nothing_switched_off():
    with pytest.raises(ImportError), long_lived():
        importlib.import_module("no_such_module")
    assert gc.isenabled()
