"""Which of a learner's files are kept for others to open."""

import pytest

from grader.submission.companions import (
    is_harmless,
    merged,
    place,
    read_companions,
    shown,
    unshown,
)
from tests.grader.tiny import write


@pytest.mark.parametrize(
    "name", ["a.csv", "data/A.PNG", "w.safetensors", "a.tar.gz", ".hidden.txt"]
)
def test_data_and_pictures_are_shown(name):
    assert is_harmless(name)


@pytest.mark.parametrize(
    "name",
    [
        *("a.html", "a.HTM", "a.xhtml", "a.xht", "a.shtml", "a.svg", "a.svgz", "a.xml", "a.xsl"),
        *("a.js", "a.mjs", "a.pdf", "a.mhtml", "a.mht", "a.swf", "a.rdf", "a.wasm", "a.css"),
        *("a.ipynb", "a.IPYNB", "a.md", "a.vl.json", "a.html.gz", "a.csv.html", "a.html.csv"),
        *("helper.py", "a.pyc", "a.so", "a.py.txt", "a.txt.py", "b/ipykernel_launcher.py"),
        *("a", ".csv", "a.", "a.csv.", "a.csv ", "a.html\n.csv", "a.csv/b", "a.csv\u202elmth.a"),
    ],
)
def test_what_a_browser_or_a_kernel_may_run_is_not_shown(name):
    assert not is_harmless(name)


def test_the_labs_own_files_are_shown_whatever_they_are():
    theirs = {"logo.svg": b"theirs", "page.html": b"theirs", "a.csv": b"theirs"}
    given = {"logo.svg": b"ours"}
    assert unshown(theirs, given) == ["page.html"]
    assert shown(merged(theirs, given), given) == {"logo.svg": b"ours", "a.csv": b"theirs"}


@pytest.mark.parametrize(
    "names",
    [
        ("in/lab.ipynb", "in/a.csv", "a.csv/b.csv"),
        ("in/lab.ipynb", "a.csv", "in/a.csv/b.csv"),
        ("lab.ipynb", "u\u0308.csv", "\xfc.csv/x.csv"),
        ("lab.ipynb", "\u0958" * 80 + ".csv"),
        ("lab.ipynb", "\u0958" * 80 + "/a.csv"),
    ],
)
def test_whatever_files_are_called_they_can_be_placed_and_the_others_are_told(tmp_path, names):
    """In one form of Unicode, and out of the inner folder, names can meet or grow too long."""
    for name in names:
        write(b"x", tmp_path / "hw" / name)
    came = read_companions([tmp_path / "hw"], ["lab.ipynb"], [], ())
    assert came.notebooks["lab.ipynb"][0] == b"x"
    assert any(said in note.message for note in came.notes for said in ("too long", "its folder"))
    place(came.files, tmp_path / "placed")
