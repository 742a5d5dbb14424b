"""A check is found by its name, and only the phases that name it are loaded."""

import pytest

from hood.judge import catalogue
from hood.judge.catalogue import find_check, load_checks
from hood.phase_paths import ROOT, phases


@pytest.fixture
def loaded(monkeypatch):
    """The phases whose checks were loaded. Some import for seconds what others never need."""
    names, load = [], catalogue.load_checks
    monkeypatch.setattr(catalogue, "load_checks", lambda f: names.append(f.name) or load(f))
    return names


def test_only_the_phase_that_names_a_check_is_loaded(loaded):
    phase, check = find_check.__wrapped__("bytes_of", ROOT)
    assert (phase.name, check.name) == ("01_tensors", "bytes_of")
    assert loaded == ["01_tensors"]


def test_where_none_names_it_none_is_loaded(loaded):
    with pytest.raises(LookupError, match="no check is named 'bytes_off'"):
        find_check.__wrapped__("bytes_off", ROOT)
    assert loaded == []


def test_every_check_is_found_by_its_name():
    for phase in phases(ROOT):
        for name, check in load_checks(phase.folder).items():
            assert find_check(name) == (phase, check)
