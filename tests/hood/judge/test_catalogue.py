"""A check is found by its name, and only the phases that name it are loaded."""

import pytest

from hood.judge import catalogue
from hood.judge.catalogue import find_check, load_checks
from hood.phase_paths import ROOT, phases


@pytest.fixture
def loaded(monkeypatch):
    """The phases whose checks were loaded. Some take seconds for imports that others never need."""
    names, load = [], catalogue.load_checks
    monkeypatch.setattr(catalogue, "load_checks", lambda f: names.append(f.name) or load(f))
    return names


def test_only_the_phase_that_names_a_check_is_loaded(loaded):
    phase, check = find_check.__wrapped__("bytes_of", ROOT)
    assert (phase.name, check.name) == ("01_tensors", "bytes_of")
    assert loaded == ["01_tensors"]


def test_if_no_phase_names_a_check_none_is_loaded(loaded):
    with pytest.raises(LookupError, match="no check is named 'bytes_off'"):
        find_check.__wrapped__("bytes_off", ROOT)
    assert loaded == []


def test_every_check_is_found_by_its_name():
    for phase in phases(ROOT):
        for name, check in load_checks(phase.folder).items():
            assert find_check(name) == (phase, check)


def test_two_courses_with_a_phase_of_one_name_have_their_own_files(tmp_path):
    for course in ("one", "two"):
        folder = tmp_path / course / "01_same" / "checks"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("from .file import count\n")
        (folder / "file.py").write_text(
            "from hood.judge.checks.exercise import Check\n"
            f"count = Check('count', parts={{'{course}': 1}}, reads='')\n"
        )
    for course in ("one", "two"):
        checks = load_checks(tmp_path / course / "01_same")
        assert list(checks["count"].parts) == [course]


CHECK = (
    "from hood.judge.checks.exercise import Check\n"
    "{0} = Check('{0}', parts={{'all': 1}}, reads='')\n"
)
SECOND = CHECK.format("second").replace("'all'", "WORDS")


@pytest.fixture
def lab(tmp_path):
    """A function that writes files of a phase, whose lab asks `second` and then `first`."""

    def write(**files):
        folder = tmp_path / "phases" / "01_files"
        (folder / "checks").mkdir(parents=True)
        (folder / "lab.py").write_text('# %% test="second" points=1\n# %% test="first" points=1\n')
        for name, code in files.items():
            (folder / "checks" / f"{name}.py").write_text(code)
        return folder

    return write


@pytest.mark.parametrize("main", [{}, {"__init__": "from .first import first\n"}])
def test_a_check_needs_no_other_file_that_names_it(lab, main):
    """All files are loaded, with an `__init__.py` or without; the order is the lab's."""
    helpers = {"shared": "WORDS = 'all'\n", "second": f"from .shared import WORDS\n{SECOND}"}
    folder = lab(first=CHECK.format("first"), **helpers, **main)
    checks = load_checks(folder)
    assert list(checks) == ["second", "first"]
    assert checks["second"].parts == {"all": 1}


def test_two_checks_of_one_name_are_refused(lab):
    folder = lab(first=CHECK.format("first"), second=CHECK.format("first"))
    with pytest.raises(ValueError, match=r"second.py: two checks are named 'first'"):
        load_checks(folder)


def test_a_file_that_another_imports_counts_once(lab):
    folder = lab(first=CHECK.format("first"), second="from .first import first\n")
    assert list(load_checks(folder)) == ["first"]
