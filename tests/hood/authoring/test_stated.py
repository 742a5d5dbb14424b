"""A lab's prose states the true numbers of its exercises, and names only what exists."""

import pytest

from hood.authoring import stated
from hood.authoring.mentions import mention_problems
from hood.authoring.notebooks.text import parse
from hood.authoring.spelled_out import spelled_out
from hood.course import Phase
from hood.learner.contents import PHASES
from hood.phase_paths import ROOT, pages, phases
from tests.hood.authoring.example import HEADER, lab, lesson

FIRST = """\
# %% [markdown]
# # Lab 01: Rows
#
# Two exercises and one question, 7 points, about an hour and a half without the *further*
# exercise 2, which takes half an hour more. Exercises 1 and 2, which take an hour, are about rows.
#
# Three points are a joke in this paragraph.
"""
EXERCISE = """\
# %% [markdown]
# ## {number} · Rows
#
# *{label}*
# Write it. Exercise 1 comes first.

# %% test="{name}" points={points}
check("{name}")
"""
TASK = """\
# %% [markdown]
# ## 3 · Why?
#
# *1 hour, 2 points, read by a person.*

# %% [markdown] task="why" points=2
# Say why.
"""
WHOLE = (
    HEADER
    + FIRST
    + EXERCISE.format(
        number=1,
        label="Easy, 30 minutes, 3 points: two for rows, one for none.",
        name="a",
        points=3,
    )
    + EXERCISE.format(
        number=2, label="Further, hard, 25 minutes, two points: one for each.", name="b", points=2
    )
    + TASK
)
PLANTED = {
    "points of a label": ("30 minutes, 3 points", "30 minutes, 4 points", "'4 points', but its"),
    "points in words": ("25 minutes, two points", "25 minutes, three points", "'three points'"),
    "points of parts": ("two for rows", "one for rows", "add up to 2 points, but its graded cell"),
    "a number of exercises": ("Two exercises", "Three exercises", "the lab has 2"),
    "in digits": ("Two exercises", "3 exercises", "says '3 exercises', but the lab has 2"),
    "a number of questions": ("one question,", "two questions,", "the lab has 1"),
    "all points": ("7 points", "forty-two points", "says 'forty-two points', but the lab has 7"),
    "hours": ("about an hour and a half without", "about 3 hours without", "says '3 hours'"),
    "hours of the further ones": ("half an hour more", "two hours more", "the labels of 2 add"),
    "hours of some": ("which take an hour", "which take three hours", "the labels of 1, 2 add"),
    "which are further": ("*further*\n# exercise 2", "*further*\n# exercise 1", "labels say: 2"),
    "a number left out": ("## 3 ·", "## 4 ·", "this heading has number 4, expected 3"),
    "an exercise that is not there": ("Exercise 1 comes", "Exercise 7 comes", "names exercise 7"),
}  # fmt: skip


def test_true_statements_are_not_reported():
    assert [str(problem) for problem in stated.stated_problems(lab(WHOLE))] == []
    assert list(stated.stated_problems(lab())) == []  # which states no number


@pytest.mark.parametrize("case", PLANTED)
def test_a_wrong_number_is_reported_at_its_line(case):
    old, new, message = PLANTED[case]
    assert old in WHOLE
    content = WHOLE.replace(old, new, 1)
    found = [p for p in stated.stated_problems(lab(content)) if message in p.message]
    assert len(found) == 1, [*stated.stated_problems(lab(content))]
    words = new.rpartition("\n# ")[0] or new
    assert words.split("\n")[0] in content.split("\n")[found[0].line - 1]


def read_in(hours: str, words: int, predictions: int) -> str:
    asked = "# **Predict.** What comes?\n#\n" * predictions
    return (
        f"{HEADER}# %% [markdown]\n# # Rows\n#\n# It takes {hours}. You need nothing.\n"
        f"\n# %% [markdown]\n# {'word ' * words}\n#\n{asked}\n"
    )


@pytest.mark.parametrize(
    ("said", "table", "message"),
    [
        ("about two hours", 2, ""),
        ("about an hour and a half", 2, "take 120 minutes: write, in words, 'It takes about 2 h"),
        ("about an hour", 1, "take 120 minutes"),
        ("long", 2, "take 120 minutes"),
        ("about two hours", 1.5, "says 2 hours, but the table of phases says 1.5: write the same"),
    ],
)
def test_a_lessons_hours_are_computed(monkeypatch, said, table, message):
    monkeypatch.setattr(stated, "PHASES", (Phase("01_rows", "Rows", "count.", hours=(table, 0)),))
    text = lesson(read_in(said, words=17_930, predictions=20))
    found = [problem.message for problem in stated.lesson_problems(text, "01_rows")]
    assert len(found) == bool(message)
    assert all(message in one for one in found)
    assert list(stated.lesson_problems(text, "02_another_course")) == []


def test_a_short_lesson_takes_half_an_hour(monkeypatch):
    monkeypatch.setattr(stated, "PHASES", (Phase("01_rows", "Rows", "count.", hours=(0.5, 0)),))
    for words in (100, 6000):
        text = lesson(read_in("about half an hour", words=words, predictions=0))
        assert list(stated.lesson_problems(text, "01_rows")) == []
    [problem] = stated.lesson_problems(lesson(read_in("long", 100, 0)), "01_rows")
    assert "'It takes about 0.5 hours'" in problem.message


@pytest.mark.parametrize(
    ("hours", "further", "message"),
    [
        (1.5, 0.5, ""),
        (2, 0.5, "says 2 hours (lab), but the labels add up to 90 minutes: write 1.5 in"),
        (1.5, 0, "says 0 hours (further), but the labels add up to 25 minutes: write 0.5 in"),
    ],
)
def test_a_labs_hours_are_in_the_table(monkeypatch, hours, further, message):
    row = Phase("01_rows", "Rows", "count.", hours=(1, hours), further=further)
    monkeypatch.setattr(stated, "PHASES", (row,))
    found = [problem.message for problem in stated.table_problems(lab(WHOLE), "01_rows")]
    assert len(found) == bool(message)
    assert all(message in one for one in found)


def test_a_phase_without_hours_need_not_say_what_it_takes(monkeypatch):
    monkeypatch.setattr(stated, "PHASES", (Phase("01_rows", "Rows"),))
    assert list(stated.lesson_problems(lesson(), "01_rows")) == []
    assert list(stated.table_problems(lab(WHOLE), "01_rows")) == []
    assert all(any(phase.hours) for phase in PHASES)  # this course states them


def test_times_and_numbers_are_read_from_words():
    said = {
        "ten minutes": 10,
        "half an hour": 30,
        "an hour": 60,
        "an hour and a half or so": 90,
        "about two and a half hours": 150,
        "3 hours": 180,
        "a little over three hours": 180,
        "no time": None,
    }
    assert {words: stated.duration(words) for words in said} == said
    words = ["zero", "12", "nineteen", "forty", "forty-two", "Ten", "each", "forty-ten"]
    assert list(map(stated.number, words)) == [0, 12, 19, 40, 42, 10, None, None]
    assert stated.numbers("1 to 4, 6 and 8") == {1, 2, 3, 4, 6, 8}


@pytest.mark.slow(2)
@pytest.mark.parametrize("page", pages(ROOT), ids=lambda page: page.name)
def test_the_courses_statements_are_true(page):
    """The course states many numbers, so the rules do find some."""
    for path in (path for path in (page.lesson, page.lab) if path.exists()):
        text = parse(page.relative(path), path.read_text(encoding="utf-8"))
        assert list(mention_problems(page, text)) == []
        if path == page.lesson and page.name in {phase.name for phase in PHASES}:
            assert list(stated.lesson_problems(text, page.name)) == []
        if path == page.lab:
            assert list(stated.stated_problems(text)) == []
            assert list(stated.table_problems(text, page.name)) == []
            first = stated.first_paragraph(text)
            assert len(stated.COUNTED.findall(first)) >= 2
            assert stated.duration(first) is not None
            parts = [part for part in stated.sections(text) if part.points]
            assert all(part.minutes and part.number for part in parts)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("[x](../../notebooks/09_gone.ipynb)", "/09_gone.ipynb leads nowhere"),
        ("[x](01_rows.ipynb#cell-id=gone)", "01_rows has no heading with the link #cell-id=gone"),
        ("[x](01_rows.ipynb#Rows)", "01_rows has no heading with the link #Rows"),
        ("[x](../release/02_more/02_more.ipynb)", "leads nowhere: expected one of 01_rows"),
        ("as lab 07 says", "names lab 07, which the course does not have"),
        ("as lessons 01 and\n# 03 say", "names lesson 03, which the course does not have"),
        ("in `utils/gone.py`", "names the file utils/gone.py, which the course does not have"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["lab", "lesson"])
def test_a_name_that_does_not_exist_is_reported(project, kind, words, message):
    (page,) = pages(project.root)
    path = getattr(page, kind)
    right = (
        "[x](01_rows.ipynb#cell-id=bytes-under-a-tensor), `utils/__init__.py`, lab 01, lesson 01"
    )
    content = path.read_text() + "\n# %% [markdown]\n# First.\n#\n# WORDS\n"
    text = parse(page.relative(path), content.replace("WORDS", right))
    assert list(mention_problems(page, text)) == []
    text = parse(page.relative(path), content.replace("WORDS", words))
    (problem,) = mention_problems(page, text)
    assert message in problem.message
    line = content.replace("WORDS", words).split("\n")[problem.line - 1]
    assert line == f"# {words}".split("\n")[0]


SOLUTION = """\
# %% solution="walk"
def walk(shape):
    ### BEGIN SOLUTION
    found = []
    step = 1
    for size in reversed(shape):
        found.append(step)
        step *= max(size, 1)
    return tuple(reversed(found))
    ### END SOLUTION
"""
BODY = SOLUTION.partition("BEGIN SOLUTION\n")[2].partition("    ### END")[0]
RENAMED = BODY.replace("found", "out").replace("step", "n").replace("size", "k")
MOST = "".join(line + "\n" for line in RENAMED.split("\n")[:4])


def as_comment(code):
    return "".join(f"# {line}\n" if line else "" for line in code.split("\n"))


SHOWN = {
    "the same code": f"# %%\ndef other(shape):\n{BODY}",
    "other names": f"# %%\ndef other(sizes):\n{RENAMED}".replace("(shape)", "(sizes)"),
    "between other code": f"# %%\nx = 3\ndef other(shape):\n    y = 4\n{RENAMED}print(x)\n",
    "most of it": f"# %%\ndef other(shape):\n{MOST}",
    "in a comment": f"# %%\nx = 3\n{as_comment(RENAMED)}",
    "in a fence": f"# %% [markdown]\n# ```\n# def f(x):\n{as_comment(RENAMED)}# ```\n",
}  # fmt: skip
QUIET = {
    "half of it": "# %%\nfound = []\nstep = 1\nfor size in reversed((2, 3)):\n    print(size)\n",
    "a call": "# %%\nprint(walk((2, 3)), tuple(reversed((1, 2))))\n",
    "words": "# %% [markdown]\n# Walk through `reversed(shape)` and multiply.\n",
}


@pytest.mark.parametrize("case", [*SHOWN, *QUIET])
def test_a_cell_with_most_of_a_solution_is_reported(case):
    cell = (SHOWN | QUIET)[case]
    text = lab(HEADER + SOLUTION + "\n" + cell)
    found = [problem.message for problem in spelled_out(text, text)]
    assert len(found) == (case in SHOWN), found
    assert all("% of the solution of 'walk', expected at most 50 %" in said for said in found)
    # the same mistake in the phase's lesson
    lesson = parse("phases/01_rows/lesson.py", HEADER + cell)
    assert len([*spelled_out(lab(HEADER + SOLUTION), lesson)]) == len(found)
    # the same mistake in a place where learners should see it
    marked = SOLUTION
    for line in BODY.split("\n")[:-1]:
        marked = marked.replace(line + "\n", line + "  # shown\n")
    assert list(spelled_out(lab(HEADER + marked + "\n" + cell), text)) == []


@pytest.mark.slow(4)
@pytest.mark.parametrize("phase", phases(ROOT), ids=lambda phase: phase.name)
def test_no_cell_of_the_course_has_most_of_a_solution(phase):
    texts = [
        parse(phase.relative(p), p.read_text(encoding="utf-8")) for p in (phase.lab, phase.lesson)
    ]
    assert [problem for text in texts for problem in spelled_out(texts[0], text)] == []
