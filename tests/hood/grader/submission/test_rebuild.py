"""Each rule of rebuilding, on a lab of three exercises."""

import contextlib
import copy
import json
import re
import time

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output, new_raw_cell
from nbgrader.nbgraderformat import MetadataValidator
from nbgrader.preprocessors import ComputeChecksums
from nbgrader.utils import compute_checksum

from hood.classroom.lesson_links import settle
from hood.grader.submission.notebook import Unreadable
from hood.grader.submission.notes import NoteKind
from hood.grader.submission.rebuild import as_recorded, is_owned, rebuild
from hood.grader.submission.released import texts_of
from hood.metadata import KEY, MAY_RAISE
from tests.hood.tiny import ANSWERS, CONFIG, cell, released, solved, source_notebook

SOURCE = source_notebook()
RELEASE = released(SOURCE)


def redo(submitted):
    """Rebuild, and assert what must be true of every result."""
    data = submitted if isinstance(submitted, bytes | Unreadable) else nbformat.writes(submitted)
    rebuilt = rebuild(data.encode() if isinstance(data, str) else data, SOURCE, CONFIG)
    nbformat.validate(rebuilt.nb)
    MetadataValidator().validate_nb(rebuilt.nb)
    recorded = as_recorded(SOURCE, CONFIG)
    owned = [c for c in rebuilt.nb.cells if is_owned(c)]
    expected = [c for c in recorded.cells if is_owned(c)]
    assert [c.metadata for c in owned] == [c.metadata for c in expected]
    for mine, theirs in zip(owned, expected, strict=True):
        if not theirs.metadata.nbgrader.solution:
            assert mine.source == theirs.source
    assert len({c.id for c in rebuilt.nb.cells}) == len(rebuilt.nb.cells)
    return rebuilt


def kinds(rebuilt):
    return [(note.kind, note.cell) for note in rebuilt.notes]


def sources(rebuilt):
    return [c.source for c in rebuilt.nb.cells]


def index(nb, grade_id):
    return nb.cells.index(cell(nb, grade_id))


def test_an_honest_submission_keeps_everything_and_needs_no_note():
    nb = solved(RELEASE)
    rebuilt = redo(nb)
    assert rebuilt.notes == []
    assert len(rebuilt.nb.cells) == len(nb.cells)
    for name, answer in ANSWERS.items():
        assert cell(rebuilt.nb, f"{name}_solution").source == answer


def test_hidden_tests_and_rubric_are_those_of_the_source():
    nb = redo(solved(RELEASE)).nb
    assert 'verify("twice", twice)' in cell(nb, "twice").source
    assert "RUBRIC-SECRET" in cell(nb, "why").source


def test_it_is_a_pure_function():
    nb, before = solved(RELEASE), copy.deepcopy(SOURCE)
    data = nbformat.writes(nb).encode()
    assert rebuild(data, SOURCE, CONFIG) == rebuild(data, SOURCE, CONFIG)
    assert before == SOURCE


@pytest.mark.parametrize("kept", [0, 1])
def test_the_changed_copy_of_an_answer_is_graded(kept):
    nb = solved(RELEASE)
    at = index(nb, "twice_solution")
    stub = copy.deepcopy(cell(RELEASE, "twice_solution"))
    stub.id = "stub"
    nb.cells.insert(at + kept, stub)
    rebuilt = redo(nb)
    assert cell(rebuilt.nb, "twice_solution").source == ANSWERS["twice"]
    # An untouched stub below the answer would overwrite it.
    assert stub.source not in sources(rebuilt)
    assert kinds(rebuilt) == [("copied", "twice_solution")]


def test_the_last_changed_copy_above_the_test_is_graded():
    nb = solved(RELEASE)
    at = index(nb, "twice_solution")
    later, last = copy.deepcopy(nb.cells[at]), copy.deepcopy(nb.cells[at])
    later.source, last.source = "twice = 'above the test'", "twice = 'below the test'"
    later.id, last.id = "later", "last"
    nb.cells.insert(at + 1, later)
    nb.cells.append(last)
    rebuilt = redo(nb)
    assert cell(rebuilt.nb, "twice_solution").source == later.source
    # The order in which the learner ran the cells.
    order = [ANSWERS["twice"], later.source, cell(rebuilt.nb, "twice").source, last.source]
    assert [s for s in sources(rebuilt) if s in order] == order


def test_a_copied_test_is_an_ordinary_cell():
    nb = solved(RELEASE)
    twin = copy.deepcopy(cell(nb, "twice"))
    twin.id = "twin"
    nb.cells.append(twin)
    rebuilt = redo(nb)
    assert rebuilt.nb.cells[-1].source == twin.source
    assert "nbgrader" not in rebuilt.nb.cells[-1].metadata
    assert kinds(rebuilt) == [("copied", "twice")]


def test_duplicate_cell_ids_do_not_matter():
    tree = json.loads(nbformat.writes(solved(RELEASE)))
    for raw in tree["cells"]:
        raw["id"] = "same"
    assert redo(json.dumps(tree).encode()).notes == []


def test_a_deleted_test_is_put_back_where_it_was():
    nb = solved(RELEASE)
    del nb.cells[index(nb, "twice")]
    rebuilt = redo(nb)
    assert kinds(rebuilt) == [("missing", "twice")]
    order = [c.metadata.get("nbgrader", {}).get("grade_id") or c.source for c in rebuilt.nb.cells]
    assert order.index("twice") + 1 == order.index("## 2. Row sums")


def test_a_deleted_answer_is_put_back_as_released():
    nb = solved(RELEASE)
    del nb.cells[index(nb, "twice_solution")]
    rebuilt = redo(nb)
    assert cell(rebuilt.nb, "twice_solution").source == cell(RELEASE, "twice_solution").source
    assert kinds(rebuilt) == [("missing", "twice_solution")]


@pytest.mark.parametrize("grade_id", [None, "mine", "another_labs_cell"])
def test_an_answer_in_a_cell_without_metadata_still_counts(grade_id):
    nb = solved(RELEASE)
    mine = cell(nb, "twice_solution")
    if grade_id is None:
        del mine.metadata["nbgrader"]
    else:
        mine.metadata.nbgrader.grade_id = grade_id
    rebuilt = redo(nb)
    restored = cell(rebuilt.nb, "twice_solution")
    assert "def twice" not in restored.source  # it would undo what the learner wrote
    assert ANSWERS["twice"] in sources(rebuilt)
    assert ("missing", "twice_solution") in kinds(rebuilt)
    assert (("unknown", None) in kinds(rebuilt)) == (grade_id is not None)


def test_a_retyped_answer_is_read_as_code():
    nb = solved(RELEASE)
    at = index(nb, "twice_solution")
    nb.cells[at] = new_markdown_cell(nb.cells[at].source, metadata=nb.cells[at].metadata)
    rebuilt = redo(nb)
    assert cell(rebuilt.nb, "twice_solution").cell_type == "code"
    assert cell(rebuilt.nb, "twice_solution").source == ANSWERS["twice"]
    assert kinds(rebuilt) == [("retyped", "twice_solution")]


@pytest.mark.parametrize(
    ("old", "new", "below"),
    [
        ("$", "\n\nIt is so <b>because</b>.\n", "It is so <b>because</b>."),
        ("\n", "\nBecause.\n\n", "Because."),  # in the middle
        (r"(?s).*", "Only mine", "Only mine"),
    ],
)
def test_text_typed_into_a_question_is_moved_below_it(old, new, below):
    nb = solved(RELEASE)
    question = cell(nb, "why")
    question.source = re.sub(old, lambda _: new, question.source, count=1)
    rebuilt = redo(nb)
    assert kinds(rebuilt) == [("moved", "why")]
    theirs = rebuilt.nb.cells[index(rebuilt.nb, "why") + 1]
    assert (theirs.cell_type, theirs.source) == ("markdown", below)
    assert theirs.metadata == {"open_the_hood": {"by": "learner"}}  # so it is made harmless


def test_a_question_from_which_lines_were_deleted_holds_no_words():
    nb = solved(RELEASE)
    cell(nb, "why").source = cell(nb, "why").source.splitlines()[0]
    assert kinds(redo(nb)) == [("changed", "why")]


@pytest.mark.parametrize("grade_id", ["twice", "setup"])
def test_an_edited_cell_is_replaced_by_the_original(grade_id):
    nb = solved(RELEASE)
    cell(nb, grade_id).source = ""
    assert kinds(redo(nb)) == [("changed", grade_id)]


ADDED = {  # added to the setup cell, which is `import torch`
    "a line below": ("import torch\nimport numpy as np\n", "import numpy as np"),
    "a line above, and spaces": ("import math\n\nimport torch  \n", "import math"),
    "several, and a comment": (
        "import torch\n# mine\nimport math\n\ndef half(x):\n    return x / 2",
        "# mine\nimport math\ndef half(x):\n    return x / 2",
    ),
    "a name in the same line": ("import torch, math as m", "import math as m"),
    "a part of what is there": ("import torch\nimport torch.nn.functional", None),
    "a magic": ("%matplotlib inline\nimport torch\n!ls", "%matplotlib inline\n!ls"),
    "below a magic": ("%%time\nimport torch\nx = 1", "x = 1"),
    "syntax of another Python": ("import torch\ntype A = int", "type A = int"),
    "all of it": ("x = 1\ny = 2", "x = 1\ny = 2"),
}


@pytest.mark.parametrize("what", ADDED)
def test_code_added_to_a_locked_cell_is_the_learners_own_below_it(what):
    text, added = ADDED[what]
    nb = solved(RELEASE)
    cell(nb, "setup").source = text
    rebuilt = redo(nb)
    below = rebuilt.nb.cells[index(rebuilt.nb, "setup") + 1]
    assert (below.cell_type, below.source) == ("code", added or text.splitlines()[-1])
    assert below.metadata == {"open_the_hood": {"by": "learner"}}
    assert "`setup` is now in a cell below it." in rebuilt.notes[-1].message
    gone = {"below a magic", "all of it"}  # the lab's own line is gone, or is in a magic
    changed = [("changed", "setup")] if what in gone else []
    assert kinds(rebuilt) == [*changed, ("moved", "setup")]


REBOUND = {
    "a name of the lab's": "import torch\ntorch = None",
    "another import of it": "import numpy as torch",
    "below a condition": "import torch\nif True:\n    torch = None",
    "a comment beside it": "import torch  # mine",
    "what it was": "import  torch, torch",
}


@pytest.mark.parametrize("what", REBOUND)
def test_the_labs_own_bindings_stay_unchanged(what):
    nb = solved(RELEASE)
    cell(nb, "setup").source = REBOUND[what]
    rebuilt = redo(nb)
    same = what in ("a comment beside it", "what it was")
    assert kinds(rebuilt) == ([] if same else [("changed", "setup")])
    assert len(rebuilt.nb.cells) == len(nb.cells) + bool(rebuilt.notes)


def test_code_added_to_a_test_runs_where_it_ran():
    nb = solved(RELEASE)
    test = cell(nb, "twice")
    test.source = f"{ANSWERS['twice']}\n{test.source}\nprint(twice(1))"
    rebuilt = redo(nb)
    at = index(rebuilt.nb, "twice")
    around = [c.source for c in rebuilt.nb.cells[at - 1 : at + 2 : 2]]
    assert around == [ANSWERS["twice"], "print(twice(1))"]
    assert kinds(rebuilt) == [("moved", "twice")]
    assert "in a cell above and below it." in rebuilt.notes[0].message


def test_an_answer_in_the_test_cell_counts_if_its_own_cell_is_gone():
    nb = solved(RELEASE)
    test = cell(nb, "twice")
    test.source = f"{ANSWERS['twice']}\n{test.source}"
    del nb.cells[index(nb, "twice_solution")]
    rebuilt = redo(nb)
    assert "def twice" not in cell(rebuilt.nb, "twice_solution").source


COSTLY = {
    "brackets": "(" * 70_000,
    "signs": "-" * 140_000 + "1",
    "statements": "x = 1\n" * 20_000,
    "statements in a line": "x=1;" * 30_000,
    "spaces": "%x\n" + " " * 140_000 + "?",
    "words": "%x\n" + "x" * 140_000 + "!",
    "names": "import x\nfrom x import " + ",".join(f"x{n}" for n in range(20_000)),
    "a zero": "\0x",
}


@pytest.mark.parametrize("text", COSTLY.values(), ids=COSTLY)
def test_additions_are_found_quickly(text):
    nb = solved(RELEASE)
    cell(nb, "setup").source += f"\n{text}"
    begun = time.process_time()
    rebuilt = redo(nb)
    assert time.process_time() - begun < 5
    assert kinds(rebuilt) == [("moved", "setup")]


def test_spaces_at_the_end_of_a_line_are_no_edit():
    nb = solved(RELEASE)
    cell(nb, "twice").source += "  \n\n"
    assert redo(nb).notes == []


@pytest.mark.parametrize(
    "setting",
    [{"grade": False}, {"solution": True}, {"locked": False}, {"points": 9, "task": True}],
)
def test_changed_settings_are_put_back(setting):
    nb = solved(RELEASE)
    cell(nb, "twice").metadata.nbgrader.update(setting)
    assert kinds(redo(nb)) == [("settings", "twice")]


@pytest.mark.parametrize("tag", ["skip-execution", "raises-exception", "<script>alert(1)</script>"])
def test_tags_are_removed(tag):
    nb = solved(RELEASE)
    cell(nb, "twice").metadata.tags = [tag]
    rebuilt = redo(nb)
    expected = "said, but for the tag that every release has"
    assert kinds(rebuilt) == ([("tags", "twice")] if tag != MAY_RAISE else []), expected
    assert "tags" not in cell(rebuilt.nb, "twice").metadata
    assert "<" not in rebuilt.nb.cells[0].source


def test_metadata_of_the_learner_is_dropped():
    nb = solved(RELEASE)
    nb.cells.append(new_code_cell("1", metadata={"tags": ["skip-execution"], "x": {"y": 1}}))
    nb.metadata["kernelspec"] = {"name": "mine", "display_name": "mine"}
    nb.metadata["widgets"] = {"state": "</script>"}
    nb.metadata["open_the_hood"] = {"seed": "00", "cell_seconds": 1e9}
    rebuilt = redo(nb).nb
    assert rebuilt.cells[-1].metadata == {"open_the_hood": {"by": "learner"}}
    assert rebuilt.metadata.kernelspec == SOURCE.metadata.kernelspec
    assert "widgets" not in rebuilt.metadata
    assert rebuilt.metadata.open_the_hood.cell_seconds == 20
    assert "seed" not in rebuilt.metadata.open_the_hood


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ({"version": "3.13.5"}, "3.13.5"),
        ({"name": "python"}, ""),
        ({"version": 3}, ""),
        ({"version": "3\n" * 9_000}, ("3\n" * 200)),
        ([], ""),
    ],
)
def test_the_python_that_a_notebook_names_is_recorded(said, read):
    tree = json.loads(nbformat.writes(solved(RELEASE)))
    tree["metadata"]["language_info"] = said
    rebuilt = redo(json.dumps(tree).encode())
    assert rebuilt.nb.metadata.open_the_hood.python == read
    assert rebuilt.notes == []


@pytest.mark.parametrize("version", [0, 1, 2, 99, "x", None])
def test_a_foreign_nbgrader_schema_does_not_matter(version):
    nb = solved(RELEASE)
    for c in nb.cells:
        if "nbgrader" in c.metadata:
            c.metadata.nbgrader.schema_version = version
    assert redo(nb).notes == []


def test_outputs_are_never_taken():
    nb = solved(RELEASE)
    for c in nb.cells:
        if c.cell_type == "code":
            c.outputs = [new_output("execute_result", data={"text/plain": "1e9"})]
    assert all(not c.outputs for c in redo(nb).nb.cells if c.cell_type == "code")


def test_own_cells_stay_where_they_were():
    nb = solved(RELEASE)
    at = index(nb, "row_sums")
    nb.cells[at:at] = [new_code_cell("mine = 1"), new_markdown_cell("a *thought*")]
    nb.cells.insert(0, new_raw_cell("first of all"))
    rebuilt = redo(nb)
    order = [c.metadata.get("nbgrader", {}).get("grade_id") or c.source for c in rebuilt.nb.cells]
    assert order[0] == "first of all"
    at = order.index("row_sums")
    assert order[at - 2 : at] == ["mine = 1", "a *thought*"]


def test_a_text_with_resolved_lesson_links_is_still_the_labs():
    source = copy.deepcopy(SOURCE)
    source.cells[0].source += "\n[A heading](../../notebooks/99_tiny.ipynb#cell-id=a-heading)"
    for url in ("", "https://example.org/course/", "https://example.org/moved/"):
        nb = released(source)
        assert settle(nb.cells[0], url)
        rebuilt = rebuild(nbformat.writes(nb).encode(), source, CONFIG).nb
        assert rebuilt.cells[0].source == source.cells[0].source
        assert "by" not in rebuilt.cells[0].metadata.get("open_the_hood", {})


def test_cells_in_another_order_come_back_in_the_labs_order():
    nb = solved(RELEASE)
    nb.cells.reverse()
    rebuilt = redo(nb)
    for name, answer in ANSWERS.items():
        assert cell(rebuilt.nb, f"{name}_solution").source == answer


def test_another_notebook_gives_the_lab_as_released_and_says_so():
    nb = nbformat.v4.new_notebook(cells=[new_code_cell("print('hola')")])
    rebuilt = redo(nb)
    assert kinds(rebuilt) == [("foreign", None)]
    assert "print('hola')" in sources(rebuilt)


@pytest.mark.parametrize(
    "bad", [b"", b"{", b"\xff\xfe", b"[]", b'{"nbformat": 9}', Unreadable("It was a folder.")]
)
def test_an_unreadable_notebook_gives_the_lab_as_released_and_says_why(bad):
    rebuilt = redo(bad)
    assert kinds(rebuilt) == [("unreadable", None)]
    assert rebuilt.notes[0].message in rebuilt.nb.cells[0].source
    assert sources(rebuilt)[1:] == [c.source for c in as_recorded(SOURCE, CONFIG).cells]


def test_notes_stand_at_the_top_and_in_the_metadata():
    nb = solved(RELEASE)
    cell(nb, "twice").source = "1e9"
    rebuilt = redo(nb)
    assert "`twice` was edited" in rebuilt.nb.cells[0].source
    assert rebuilt.nb.metadata.open_the_hood.notes[0]["cell"] == "twice"


def test_points_of_an_earlier_release_are_no_edit():
    nb = solved(RELEASE)
    cell(nb, "twice").metadata.nbgrader.points = 99
    assert kinds(redo(nb)) == []


def test_a_notebook_of_another_lab_is_reported_even_with_shared_cells():
    other = copy.deepcopy(RELEASE)
    other.cells = [cell(other, "setup"), new_code_cell("other = 1", id="other")]
    assert kinds(redo(other)) == [("foreign", None)]


def test_code_in_cells_without_metadata_is_used_with_a_note():
    nb = solved(RELEASE)
    for one in nb.cells:
        one.metadata.pop("nbgrader", None)
    assert kinds(redo(nb)) == [("unmarked", None)]


BINDINGS = {
    "below a condition": "if torch:\n    def twice(x):\n        return 2 * x",
    "below a try": "try:\n    from fast import twice\nexcept ImportError:\n    twice = None",
    "below a with": "with torch.no_grad():\n    class twice: pass",
    "a lambda": "twice = lambda x: 2 * x",
    "another function": "twice, other = double, None",
    "decorated": "@torch.no_grad()\ndef twice(x):\n    return 2 * x",
    "imported": "from helpers import (\n    double as twice,\n)",
    "behind a magic": "%matplotlib inline\nif torch:\n    def twice(x): return 2 * x\n!ls",
    "below a cell magic": "%%time\ndef twice(x): return 2 * x",
    "from a magic": "twice = %time make()",
    "in a loop": "for twice in [double]: pass",
    "in an expression": "(twice := double)",
    "with its type": "twice: object = double",
    "in code of another Python": "type A = int\nif torch:\n  def twice(x): return 2 * x",
}
NO_BINDINGS = {
    "a call": "twice(1)",
    "a comparison": "twice == 2",
    "a method": "class Other:\n    def twice(self): pass",
    "inside a function": "def other():\n    twice = 1",
    "an attribute": "other.twice = 1",
    "a text": "'\\n\\ndef twice(x): pass'\n'''\ndef twice(x): pass\n'''",
    "a file that is written": "%%writefile twice.py\ndef twice(x): return 2 * x",
}


@pytest.mark.parametrize("what", BINDINGS | NO_BINDINGS)
def test_an_answer_without_metadata_counts_with_any_kind_of_binding(what):
    nb = solved(RELEASE)
    at = index(nb, "twice_solution")
    nb.cells[at] = new_code_cell((BINDINGS | NO_BINDINGS)[what])
    restored = cell(redo(nb).nb, "twice_solution").source
    assert ("def twice" not in restored) == (what in BINDINGS)


def earlier_release(**texts):
    """Return a release in which cells had other texts, with the right checksums of nbgrader."""
    nb = copy.deepcopy(RELEASE)
    for name, text in texts.items():
        cell(nb, name).source = text
    return ComputeChecksums(config=CONFIG).preprocess(nb, {})[0]


OLD = earlier_release(why="## Why?\n\nAn older question.\n\nIn one line.", twice="twice_of_old = 1")
OLD.cells.insert(0, new_markdown_cell("An older greeting."))
OLD.cells.insert(0, new_code_cell("older = 1"))


def redo_old(nb, earlier=None):
    rebuilt = rebuild(nbformat.writes(nb).encode(), SOURCE, CONFIG, earlier=earlier)
    return rebuilt, [c.source for c in rebuilt.nb.cells if c.metadata.get(KEY, {}).get("by")]


def test_untouched_texts_of_an_earlier_release_are_the_labs():
    rebuilt, own = redo_old(solved(OLD), texts_of(OLD))
    assert (own, rebuilt.notes) == ([], [])
    assert "An older greeting." not in sources(rebuilt)
    assert "older = 1" in sources(rebuilt)  # a learner's code may build on it
    assert cell(rebuilt.nb, "why").source == cell(as_recorded(SOURCE, CONFIG), "why").source


def test_a_checksum_identifies_an_untouched_cell():
    rebuilt, own = redo_old(solved(OLD))
    assert own == ["older = 1", "An older greeting."]  # nbgrader does not keep these
    assert rebuilt.notes == []


@pytest.mark.parametrize("earlier", [texts_of(OLD), None])
def test_edits_of_an_earlier_releases_cell_are_the_learners(earlier):
    nb = solved(OLD)
    cell(nb, "why").source += "\n\nBecause it is."
    cell(nb, "twice").source += "\nmine = 1"
    rebuilt, own = redo_old(nb, earlier)
    if earlier:
        assert own[1:] == ["mine = 1", "Because it is."]
        assert {note.kind for note in rebuilt.notes} == {NoteKind.MOVED}
    assert "Because it is." in "\n".join(own)


def test_a_learners_edit_of_a_text_outside_of_nbgraders_cells_is_the_learners():
    nb = solved(OLD)
    nb.cells[1].source = "An older greeting, and mine."
    assert redo_old(nb, texts_of(OLD))[1] == ["An older greeting, and mine."]


@pytest.mark.parametrize(
    "settings", [{}, {"grade": 1}, {"points": "x", "grade": True}, {"grade_id": None}, {"task": []}]
)
def test_a_forged_checksum_gains_nothing(settings):
    """The learner's own text in the lab's cell is dropped. The text may contain any settings."""
    nb = solved(RELEASE)
    twice = cell(nb, "twice")
    twice.source += "\ntwice = lambda x: 2 * x"
    twice.metadata.nbgrader.update(settings)
    with contextlib.suppress(ValueError, AttributeError):
        twice.metadata.nbgrader.checksum = compute_checksum(twice)
    rebuilt = rebuild(nbformat.writes(nb).encode(), SOURCE, CONFIG).nb
    assert cell(rebuilt, "twice").source == cell(as_recorded(SOURCE, CONFIG), "twice").source
    if not settings:
        assert "lambda" not in "\n".join(c.source for c in rebuilt.cells)


def test_an_earlier_releases_stub_is_no_answer_and_a_check_gets_the_submission():
    source = copy.deepcopy(SOURCE)
    about = {"grade": True, "solution": True, "locked": False, "task": False, "points": 2}
    about |= {"schema_version": 3, "grade_id": "words", "cell_type": "markdown"}
    source.cells.append(new_markdown_cell("A solution.", metadata={"nbgrader": about}))
    nb = released(source)
    cell(nb, "words").source, cell(nb, "twice_solution").source = "*An older stub.*", "pass"
    earlier = {"words": ["*An older stub.*"], "twice_solution": ["pass"]}
    rebuilt = rebuild(nbformat.writes(nb).encode(), source, CONFIG, earlier=earlier).nb
    assert cell(rebuilt, "words").source == cell(released(source), "words").source
    assert cell(rebuilt, "twice_solution").source == "pass"
