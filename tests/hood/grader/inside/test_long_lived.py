"""Imported objects are excluded from garbage collection, and later ones are not."""

import gc
import importlib
import weakref

import pytest

from hood.grader.inside.long_lived import long_lived


class Ring:
    """Garbage that only a collection finds."""

    def __init__(self) -> None:
        self.itself = self


def test_imported_objects_are_excluded():
    before = gc.get_freeze_count()
    with long_lived():
        assert not gc.isenabled()
        kept = [Ring() for _ in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(kept)


def test_later_objects_are_collected():
    with long_lived():
        kept = weakref.ref(Ring())
    gone = weakref.ref(Ring())
    gc.collect()
    assert (kept() is None, gone() is None) == (False, True)


def test_disabled_collection_stays_disabled():
    with long_lived():
        with long_lived():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_failing_import_leaves_collection_enabled():
    with pytest.raises(ImportError), long_lived():
        importlib.import_module("no_such_module")
    assert gc.isenabled()
