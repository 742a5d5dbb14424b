"""Each fault planted into the example's checks, answers and lab gives one message, at its line."""

import json

import pytest

from hood.authoring import judged, steps
from hood.authoring.notebooks.text import Refused
from hood.metadata import JUDGED, KEY
from hood.phase_paths import ROOT, pages
from tests.hood.authoring.example import ANSWERS, CHECKS, LAB

SOURCE = "source/01_rows/01_rows.ipynb"
LAB_FILE, CHECKS_FILE = "phases/01_rows/lab.py", "phases/01_rows/checks.py"
ANSWERS_FILE = "phases/01_rows/answers/tensor_bytes.toml"
TEXTS = {LAB_FILE: LAB, CHECKS_FILE: CHECKS, ANSWERS_FILE: ANSWERS}
SOLUTION = '# %% solution="tensor_bytes"'
WRONG, RIGHT = '[wrong."elements"]', '[right."a loop"]'
CHECK = "tensor_bytes = Check("

# faults: (changed file, old text, new text, file in the message, words in the line of the message,
# message)
PLANTED = {
    "a part that no check declares": (
        (CHECKS_FILE, 'case("any shape", (), 8)', 'case("a number", (), 8)'),
        (CHECKS_FILE, 'case("a number", (), 8)'),
        "a case has the part 'a number', which is not one of the check's parts ['any shape']",
    ),
    "a part that no case asks": (
        (CHECKS_FILE, '{"any shape": 2}', '{"any shape": 1, "a number": 1}'),
        (CHECKS_FILE, CHECK),
        "the part 'a number' has no case",
    ),
    "cases that raise": (
        (CHECKS_FILE, "(), 8)", "(), 8 // 0)"),
        (CHECKS_FILE, "(), 8 // 0)"),
        "there is no answer key: ZeroDivisionError",
    ),
    "a reference that raises": (
        (CHECKS_FILE, "max(size, 1)", "max(size, 1) // (size - size)"),
        (CHECKS_FILE, CHECK),
        "the reference raised ZeroDivisionError",
    ),
    "a reference that remembers": (
        (CHECKS_FILE, "    return count\n", "    seen.append(1)\n    return len(seen)\nseen = []"),
        (CHECKS_FILE, CHECK),
        "a second run of the reference differs",
    ),
    "a reference that does not raise": (
        (CHECKS_FILE, "(), 8)", "(), 8, raises='ValueError')"),
        (CHECKS_FILE, CHECK),
        "the reference raised nothing; the case expects ValueError",
    ),
    "a solution that is wrong": (
        (LAB_FILE, "count = math.prod(shape)", "count = math.prod(shape) + (not shape)"),
        (LAB_FILE, SOLUTION),
        "the lab's solution earns 0, expected 2 (any shape: ",
    ),
    "a solution that its visible cell refuses": (
        (LAB_FILE, 'print(tensor_bytes((2, 3), 4), "bytes")', "assert tensor_bytes((), 4) == 25"),
        (LAB_FILE, SOLUTION),
        "the lab's solution is right, but a visible cell refuses it: Assertion",
    ),
    "an alternate that is wrong": (
        (ANSWERS_FILE, "itemsize *= size", "itemsize += size"),
        (ANSWERS_FILE, RIGHT),
        "alternate “a loop” earns 0, expected 2",
    ),
    "a misconception that is right": (
        (ANSWERS_FILE, "'* 1'", "'* (itemsize + 0)'"),
        (ANSWERS_FILE, WRONG),
        "misconception “elements” is right: it earns all 2 points, expected 0. Move it to [right.",
    ),
    "a misconception that earns something else": (
        (ANSWERS_FILE, "edits = ", "earns = 1\nedits = "),
        (ANSWERS_FILE, WRONG),
        "misconception “elements” earns 0, expected 1",
    ),
}  # fmt: skip
# These are reported without judging an answer.
READ = {
    "a solution of another name": (
        (LAB_FILE, "def tensor_bytes(", "def bytes_of(shape, itemsize): ...\n\n\ndef tensor_byte("),
        (LAB_FILE, SOLUTION),
        "the lab's solution does not define tensor_bytes, which the check needs",
    ),
    "an unknown key": (
        (ANSWERS_FILE, "breaks = ", "earn = 1\nbreaks = "),
        (ANSWERS_FILE, "earn = 1"),
        "unknown key 'earn': expected one of says, earns, reads, breaks, edits, code, of",
    ),
    "a misconception that says it is right": (
        (ANSWERS_FILE, "edits = ", "earns = 2\nedits = "),
        (ANSWERS_FILE, "earns = 2"),
        "it earns 2 of 2 points, so it is right: expected fewer",
    ),
    "points of a part that is not there": (
        (ANSWERS_FILE, "edits = ", "earns = {rows = 1}\nedits = "),
        (ANSWERS_FILE, "earns = "),
        "no part is named 'rows': expected one of any shape",
    ),
    "half a part": (
        (ANSWERS_FILE, "edits = ", 'earns = {"any shape" = 1}\nedits = '),
        (ANSWERS_FILE, "earns = "),
        "part 'any shape': expected its 2 points, got 1",
    ),
    "a quote of nothing": (
        (ANSWERS_FILE, 'breaks = "shape in"', 'breaks = "a shape goes in"'),
        (ANSWERS_FILE, "breaks = "),
        "breaks: 'a shape goes in' is not in the exercise's question",
    ),
    "a section that the lesson does not have": (
        (ANSWERS_FILE, "edits = ", 'reads = "Columns"\nedits = '),
        (ANSWERS_FILE, "reads = "),
        "reads: 'Columns' is not a heading of phases/01_rows/lesson.py",
    ),
    "told, and not said": (
        (ANSWERS_FILE, '"bytes out"', '"bytes come out"'),
        (ANSWERS_FILE, "told = "),
        "told, 1: 'bytes come out' is not in the exercise's question",
    ),
    "no words": (
        (ANSWERS_FILE, 'says = "elements are counted, and not their bytes."\n', ""),
        (ANSWERS_FILE, WRONG),
        "missing key 'says'",
    ),
    "a sentence to fill in": (
        (ANSWERS_FILE, '"elements are', '"TODO: elements are'),
        (ANSWERS_FILE, "says = "),
        "replace the TODO by a sentence that says what the code does",
    ),
    "half a sentence": (
        (ANSWERS_FILE, "their bytes.", "their bytes"),
        (ANSWERS_FILE, "says = "),
        "expected a sentence that ends with a full stop, got ",
    ),
    "one name for two": (
        (ANSWERS_FILE, '"a loop"', '"elements"'),
        (ANSWERS_FILE, '[right."elements"]'),
        "a wrong answer has the name 'elements', too",
    ),
    "an edit of what is not there": (
        (ANSWERS_FILE, "['* itemsize'", "['* size'"),
        (ANSWERS_FILE, WRONG),
        "'* size': expected once in the solution, found 0 times",
    ),
    "an edit of an answer that is not there": (
        (ANSWERS_FILE, "edits = ", 'of = "a sum"\nedits = '),
        (ANSWERS_FILE, "of = "),
        "of: expected a right answer or \"reference\", got 'a sum'",
    ),
}


def build(project):
    """Build the project; return the messages."""
    said = []
    steps.build(pages(project.root), said.append)
    return said


@pytest.fixture
def quick(monkeypatch):
    """Execute no lesson."""
    monkeypatch.setattr(steps, "build_page", lambda *_: None)


def plant(project, change, place):
    """Change one file; return where the problem must be."""
    file, old, new = change
    assert TEXTS[file].count(old) == 1
    content = TEXTS[file].replace(old, new)
    project.write(file, content)
    where, words = place or (LAB_FILE, SOLUTION)
    read = content if where == file else TEXTS[where]
    line = next(n for n, text in enumerate(read.split("\n"), 1) if words in text)
    return f"{where}:{line}: "


@pytest.mark.parametrize("case", [*PLANTED, *READ])
def test_a_planted_fault_is_reported_at_its_line(project, quick, case):
    change, place, message = (PLANTED | READ)[case]
    where = plant(project, change, place)
    with pytest.raises(Refused) as refused:
        build(project)
    found = [str(p) for p in refused.value.problems if message in str(p)]
    assert len(found) == 1, refused.value.problems
    assert found[0].startswith(where), found
    assert not (project.root / "source").exists()
    if case in PLANTED:
        again = found[0].rpartition("`python -m hood ")[2].rstrip("`)")
        assert again.startswith("selftest 01 --exercise tensor_bytes --seed ")


def test_what_stored_answers_print_is_not_shown(project, quick, capfd):
    loud = '[wrong.loud]\nsays = "the count is too large."\ncode = """\n'
    loud += 'def tensor_bytes(shape, itemsize):\n    print("so loud")\n    return 10**9\n"""\n'
    project.write(ANSWERS_FILE, ANSWERS + loud)
    build(project)
    assert "loud" not in capfd.readouterr().out


def test_a_stored_answer_that_does_not_end_is_reported(project, quick, monkeypatch):
    monkeypatch.setattr("hood.authoring.proof.selftest.LEAST_SECONDS", 0.3)
    endless = '[wrong."a loop without end"]\nsays = "the code never ends."\ncode = """\n'
    endless += 'def tensor_bytes(shape, itemsize):\n    while True:\n        pass\n"""\n'
    project.write(ANSWERS_FILE, ANSWERS + endless)
    with pytest.raises(Refused) as refused:
        build(project)
    said = "\n".join(map(str, refused.value.problems))
    assert "misconception “a loop without end” was stopped after" in said
    assert "Stored answers must end" in said


def test_a_file_of_answers_without_a_check_is_reported(project, quick):
    project.write("phases/01_rows/answers/tensor_byte.toml", ANSWERS)
    project.write("phases/01_rows/answers/.hidden", "")
    with pytest.raises(Refused) as refused:
        build(project)
    assert [str(p) for p in refused.value.problems] == [
        "phases/01_rows/answers/tensor_byte.toml: no check reads a file with this name: "
        "expected one of tensor_bytes.toml. Rename or remove it"
    ]


def test_unchanged_exercises_are_not_judged_again(project, quick, monkeypatch):
    said = f"{LAB_FILE}: judging tensor_bytes and its 2 answers, because it changed"
    assert said in build(project)
    stamped = json.loads((project.root / SOURCE).read_text())["metadata"][KEY]
    assert list(stamped[JUDGED]) == ["tensor_bytes"]

    def never(*_):
        raise AssertionError("judged again")

    monkeypatch.setattr(judged, "prove", never)
    assert said not in build(project)
    # the lab's prose and an answer's explanation do not decide its points
    project.write(LAB_FILE, LAB.replace("Solve it", "Work through it"))
    project.write(ANSWERS_FILE, ANSWERS.replace('breaks = "shape in"\n', ""))
    assert said not in build(project)


CHANGES = [
    (LAB_FILE, "import math\n", "import math\nimport os\n"),
    (LAB_FILE, "return max(count, 1)", "return max(1, count)"),
    (LAB_FILE, "print(tensor_bytes((2, 3), 4)", "print(tensor_bytes((2, 4), 4)"),
    (CHECKS_FILE, "(), 8)", "(), 2)"),
    (ANSWERS_FILE, "'* 1'", "'* 3'"),
]


@pytest.mark.parametrize(("file", "old", "new"), CHANGES)
def test_a_change_that_can_change_points_is_judged(project, quick, file, old, new):
    before = judged.digests(pages(project.root)[0])
    plant(project, (file, old, new), None)
    judged.load_checks.cache_clear()
    assert judged.digests(pages(project.root)[0]).keys() == before.keys()
    assert judged.digests(pages(project.root)[0]) != before


def test_a_shared_file_counts_for_every_exercise_of_a_real_lab():
    """A shared file matters for all exercises. The file of another exercise does not matter."""
    phase = next(page for page in pages(ROOT) if page.number == "01")
    found = judged.digests(phase)
    assert len(set(found.values())) == len(found) > 5
