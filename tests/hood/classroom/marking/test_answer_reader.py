"""A learner's answer is read from the notebook; it is inert in the page and cheap to read."""

import html
import os
import re
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from hood.classroom.marking import answer_reader as module
from hood.classroom.marking.answer_reader import EMPTY, MAX_TEXT, UNREADABLE, Reader, stamp
from hood.grader.batch.grading import _is_unanswered
from hood.grader.submission.notes import Note, NoteKind, record
from hood.grader.submission.rebuild import answer_cells
from hood.metadata import KEY
from hood.phase_paths import ROOT
from hood.untrusted import UNSEEN
from tests.attacks.browser import dangers
from tests.hood.classroom.marking.classroom import STUB, notebook
from tests.hood.tiny import write
from tests.patience import eventually

THEIRS = {KEY: {"by": "learner"}}


@pytest.fixture(scope="module")
def reader():
    found = Reader()
    yield found
    found.close()


@pytest.fixture
def read(reader, tmp_path):
    def call(answer):
        nb = answer if isinstance(answer, bytes) else notebook(answer)
        return reader.answer(write(nb, tmp_path / "a.ipynb"), "why")

    return call


def test_markdown_code_and_formulas_are_shown(read):
    found = read("So **it** is `x` and $x^2$.\n\n- a\n- b\n\n```python\nreturn 1\n```")
    assert "<strong>it</strong> is <code>x</code>" in found.html
    assert "<msup>" in found.html
    assert "<li>a</li>" in found.html
    assert (found.problem, found.cut) == ("", "")


def test_an_answer_is_all_the_learners_text_below_the_question(read):
    cells = [
        new_markdown_cell("one", metadata=THEIRS),
        new_code_cell("print('two < 2')", metadata=THEIRS),
        new_raw_cell("three", metadata=THEIRS),
        new_markdown_cell(STUB),
    ]
    found = read(cells)
    assert "<p>one</p>" in found.html
    assert "<pre>print(&#x27;two &lt; 2&#x27;)</pre>" in found.html
    assert "<pre>three</pre>" in found.html
    assert STUB.strip("*") not in found.html
    assert "elsewhere" not in found.html


def test_an_answer_in_a_cell_of_its_own_is_that_cell():
    settings = {"grade_id": "why", "grade": True, "solution": True}
    own = new_markdown_cell("mine", metadata={"nbgrader": settings})
    nb = notebook([new_markdown_cell("beside", metadata=THEIRS)])
    nb.cells[3] = own
    assert answer_cells(nb, "why") == [own]


def test_a_question_without_text_below_it_is_unanswered():
    task = {"grade_id": "why", "task": True}
    for text, unanswered in ((STUB, True), (" ", True), ("Since it is.", False)):
        about = {} if text == STUB else THEIRS
        nb = notebook([new_markdown_cell(text, metadata=about)])
        [question] = [one for one in nb.cells if "nbgrader" in one.metadata][:1]
        question.metadata["nbgrader"] = task | {"grade": False, "solution": False}
        assert _is_unanswered(nb, question) is unanswered


def test_an_untouched_stub_is_no_answer(read):
    assert read(STUB).problem == EMPTY
    assert read([]).problem == EMPTY


def test_the_digest_depends_on_the_answer_alone(read):
    first = read("words")
    assert read([new_markdown_cell(STUB), new_markdown_cell("words", metadata=THEIRS)]).digest == (
        first.digest
    )
    assert read("other words").digest != first.digest
    long = "x" * MAX_TEXT
    assert read(long + "a").digest != read(long + "b").digest


HOSTILE = [
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "<iframe src='//evil.example'></iframe><object data=x></object><embed src=x>",
    "![remote](https://evil.example/pixel.png) ![relative](../../gradebook.db)",
    "[click](javascript:alert(1)) [mark](/marking/api/undo/0) <a href='//localhost/x'>x</a>",
    "<form action=/marking><button formaction=x>ok</button><input autofocus onfocus=a()></form>",
    "<style>* {display: none}</style><link rel=stylesheet href=//evil.example><base href=//evil>",
    "<svg onload=alert(1)><use href='data:x'/></svg><math href='javascript:alert(1)'>x</math>",
    r"$\href{javascript:alert(1)}{x}$ $\style{position:fixed}{x}$",
    "<p style='position:fixed;background:url(//evil.example)' onclick=a()>x</p>",
    "# score\n\nscore\n=====\n\n<h2 id=score>x</h2>",
    "<meta http-equiv=refresh content='0;url=//evil.example'><template><script>x</script>",
    "</div></article><div id=score class='modal navbar-fixed'>3</div><!-- ",
]


@pytest.mark.parametrize("kind", ["markdown", "code", "raw"])
@pytest.mark.parametrize("words", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_answer_is_inert(read, words, kind):
    make = {"markdown": new_markdown_cell, "code": new_code_cell, "raw": new_raw_cell}[kind]
    found = read([make(words, metadata=THEIRS)])
    assert found.problem == ""
    assert dangers(found.html) == []
    assert not re.search(r"<[^>]+\sid=", found.html)


@pytest.mark.parametrize("kind", ["markdown", "code", "raw"])
def test_characters_that_reorder_text_are_removed(read, kind):
    """A marker sees the words in their stored order."""
    make = {"markdown": new_markdown_cell, "code": new_code_cell, "raw": new_raw_cell}[kind]
    words = "yes \u202eon\u202c, \u2066a\u2069 &#x202e;b &rlm;c <b title='&#0000008238;'>d</b>"
    found = read([make(words, metadata=THEIRS)])
    assert found.problem == ""
    assert not UNSEEN.search(html.unescape(found.html) if kind == "markdown" else found.html)
    assert found.digest != read([make(words.replace("\u202e", ""), metadata=THEIRS)]).digest


def test_a_pasted_picture_is_shown_and_a_large_one_is_not(read):
    def with_picture(size):
        cell = new_markdown_cell("![mine](attachment:a.png)", metadata=THEIRS)
        cell.attachments = {"a.png": {"image/png": "A" * size}}
        return read([cell])

    assert 'src="data:image/png;base64,AAAA' in with_picture(400).html
    large = with_picture(module.MAX_PICTURES + 4)
    assert "AAAA" not in large.html
    assert "pictures" in large.cut


def test_a_long_answer_is_cut_and_says_so(read):
    found = read("word " * MAX_TEXT)
    assert len(found.html) < 2 * MAX_TEXT
    assert "the rest of a long text" in found.cut
    many = read([new_markdown_cell(f"number {n}", metadata=THEIRS) for n in range(500)])
    assert "number 49<" in many.html
    assert "number 50<" not in many.html
    assert many.cut


@pytest.mark.parametrize(
    "data",
    [b"", b"no notebook", b'{"cells": 3}', b"[" * 100_000, b"\xff\xfe", b'{"cells": [{}]}'],
    ids=repr,
)
def test_a_malformed_file_has_no_answer_to_show(read, data):
    assert read(data).problem == UNREADABLE


def test_a_missing_and_a_huge_file_have_no_answer_either(reader, tmp_path):
    assert reader.answer(tmp_path / "none.ipynb", "why").problem == UNREADABLE
    huge = tmp_path / "huge.ipynb"
    with huge.open("wb") as file:
        file.truncate(module.MAX_FILE + 1)
    assert reader.answer(huge, "why").problem == UNREADABLE


@pytest.mark.slow(10)
def test_too_much_work_ends_the_reading_process_and_the_next_answer_is_read(tmp_path):
    reader = Reader(seconds=1)
    path = write(notebook("words"), tmp_path / "a.ipynb")
    with pytest.raises(BrokenProcessPool):
        reader._run(re.match, r"(a|aa)*b", "a" * 1000)  # endless work in C code
    reader.seconds = 1e-4
    assert reader.answer(path, "why").problem == UNREADABLE
    reader.seconds = module.SECONDS
    assert "words" in reader.answer(path, "why").html
    reader.close()


SERVER = """
import time
from hood.classroom.marking.answer_reader import Reader
if __name__ == "__main__":
    reader = Reader()
    reader.rendered(["words"])
    print(*reader._pool._processes, flush=True)
    time.sleep(3600)
"""


@pytest.mark.slow(5)
def test_the_reading_process_ends_with_a_killed_server(tmp_path):
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment
    ) as server:
        number = server.stdout.readline().strip()
        assert runs(number)
        server.kill()
    eventually(lambda: not runs(number), "the end of the reading process")


def runs(number: str) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return ") Z " not in Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False


def test_the_stamp_changes_when_the_file_is_replaced(tmp_path):
    path = write(b"one", tmp_path / "a.ipynb")
    first = stamp(path)
    assert stamp(path) == first
    write(b"one", tmp_path / "b.ipynb").replace(path)
    assert stamp(path) != first
    assert stamp(tmp_path / "none") == ""


def test_a_blank_answer_was_read_and_has_no_word(read):
    assert read(STUB).blank
    assert read([new_markdown_cell(" \n", metadata=THEIRS)]).blank
    for answer in ("x", "![](attachment:a.png)", b"no notebook"):
        assert not read(answer).blank
    pasted = new_markdown_cell("", metadata=THEIRS, attachments={"a.png": {"image/png": "AA=="}})
    assert not read([pasted]).blank


@pytest.mark.parametrize("kind", [NoteKind.UNREADABLE, NoteKind.FOREIGN, NoteKind.ANOTHER])
def test_an_answer_that_might_be_in_another_file_is_not_blank(reader, tmp_path, kind):
    nb = notebook(STUB)
    record(nb, notes=[Note(kind, "It may be elsewhere.")])
    found = reader.answer(write(nb, tmp_path / "a.ipynb"), "why")
    assert (found.problem, found.blank) == (EMPTY, False)
