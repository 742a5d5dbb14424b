"""Each rule: one change to a correct lab gives one problem at the right line."""

from dataclasses import replace

import pytest

from hood.authoring.lint import check_lines, check_problems, headings, lab_problems, page_problems
from hood.judge.checks.exercise import Check
from tests.hood.authoring.example import HEADER, LAB, LESSON, lab, lesson


def line_of(content: str, words: str) -> int:
    """Return the first line (from 1) that contains the words."""
    return next(n for n, line in enumerate(content.split("\n"), 1) if words in line)


def test_the_examples_have_no_problem():
    assert list(lab_problems(lab())) == []
    assert list(lab_problems(lab(LAB.replace(", points: 5", "")))) == []
    assert list(page_problems(lesson())) == []


SECOND_STUB = '\n# %% solution="tensor_bytes"\n### BEGIN SOLUTION\nx = 1\n### END SOLUTION\n'
HIDDEN = '### BEGIN HIDDEN TESTS\nverify("tensor_bytes", tensor_bytes)\n### END HIDDEN TESTS\n'

# faults: (old text, new text, words of the message, words in the line that the message names)
REFUSALS = {
    "duplicate id": ("", SECOND_STUB, "duplicate id 'tensor_bytes_solution': line ", None),
    "no region": (
        "    ### BEGIN SOLUTION\n",
        "",
        "'### END SOLUTION' has no partner",
        '# %% solution="tensor_bytes"',
    ),
    "stub without region": (
        LAB[LAB.index("    ### BEGIN S") : LAB.index("    ### END S")] + "    ### END SOLUTION\n",
        "    return 3\n",
        "the stub has no solution: write",
        '# %% solution="tensor_bytes"',
    ),
    "empty region": (
        "    count = math.prod(shape)\n    return max(count, 1) * itemsize\n",
        "    # nothing yet\n    ...\n",
        "the region does nothing",
        "### BEGIN SOLUTION",
    ),
    "a helper above the stub": (
        '# %% solution="tensor_bytes"\n',
        '# %% solution="tensor_bytes"\n### BEGIN SOLUTION\ndef f(): return 3\n### END SOLUTION\n',
        "raise its exception before a function",
        "### BEGIN SOLUTION",
    ),
    "half a statement": (
        "    count = math.prod(shape)\n",
        "    count = math.prod(\n",
        "not plain Python",
        "count = math.prod(",
    ),
    "test without points": (
        '# %% test="tensor_bytes" points=2',
        '# %% test="tensor_bytes"',
        "'tensor_bytes' has no points",
        '# %% test="tensor_bytes"',
    ),
    "points zero": (" points=2", " points=0", "above 0, got 0", '# %% test="tensor_bytes"'),
    "points of a stub": (
        'solution="tensor_bytes"',
        'solution="tensor_bytes" points=2',
        "only a test or a task can have points",
        '# %% solution="tensor_bytes"',
    ),
    "total": (
        "points: 5",
        "points: 6",
        "the header says `points: 6`, but the cells have 5 points together: write `points: 5`, or "
        "leave `points` out",
        "points: 6",
    ),
    "unknown setting": (
        "cell_seconds: 60",
        "cell_seconds: 60, colour: red",
        "no such setting 'colour'; expected one of: title, points, cell_seconds",
        "# ---",
    ),
    "compile": (
        "cell_seconds: 60",
        "cell_seconds: 60, compile: 1",
        'compile: expected true, false or "trace", got 1',
        "# ---",
    ),
    "compile something else": (
        "cell_seconds: 60",
        "cell_seconds: 60, compile: maybe",
        "compile: expected true, false or \"trace\", got 'maybe'",
        "# ---",
    ),
    "a group that is not there": (
        "cell_seconds: 60",
        "cell_seconds: 60, preload: [optimisers]",
        "preload: expected a list of optimizers, profiler, flops, transformers, derivatives, "
        "got ['optimisers']",
        "# ---",
    ),
    "a group, not in a list": (
        "cell_seconds: 60",
        "cell_seconds: 60, preload: optimizers",
        "preload: expected a list of optimizers, profiler, flops, transformers, derivatives, "
        "got 'optimizers'",
        "# ---",
    ),
    "half a second": (
        "cell_seconds: 60",
        "cell_seconds: 0.5",
        "cell_seconds: expected a whole number above 0, got 0.5",
        "# ---",
    ),
    "unknown limit": (
        "cell_seconds: 60",
        "cell_seconds: 60, limits: {memory: 512}",
        "limits: no such setting 'memory'; expected one of: memory_mb,",
        "# ---",
    ),
    "no hidden region": (HIDDEN, "", "has no hidden region", '# %% test="tensor_bytes"'),
    "no verdict for the learner": (
        'check("tensor_bytes")\n',
        "",
        'a graded cell must begin with check("tensor_bytes")',
        "assert tensor_bytes((2, 3), 4) == 24",
    ),
    "the verdict of another exercise": (
        'check("tensor_bytes")',
        'check("bytes")',
        'a graded cell must begin with check("tensor_bytes")',
        'check("bytes")',
    ),
    "more hidden lines": (
        "### BEGIN HIDDEN TESTS\n",
        "### BEGIN HIDDEN TESTS\nassert True\n",
        'must contain only: verify("tensor_bytes", ...)',
        "### BEGIN HIDDEN TESTS",
    ),
    "another name": (
        'verify("tensor_bytes"',
        'verify("tensor_byte"',
        "verify('tensor_byte', ...) in the test of 'tensor_bytes': write 'tensor_bytes'",
        'verify("tensor_byte"',
    ),
    "verify not last": (
        "### END HIDDEN TESTS\n",
        "### END HIDDEN TESTS\nprint(1)\n",
        "must come last",
        "print(1)",
    ),
    "hidden outside a test": (
        "import math\n",
        "import math\n### BEGIN HIDDEN TESTS\n### END HIDDEN TESTS\n",
        "belongs in a test cell",
        "### BEGIN HIDDEN TESTS",
    ),
    "no mark scheme": (
        LAB[LAB.index("# === BEGIN") :],
        "# Say it.\n",
        "needs one mark scheme",
        "# %% [markdown] task",
    ),
    "empty mark scheme": (
        "# 3 points: because the dtype's size is known.\n",
        "",
        "the mark scheme of 'why_bytes' is empty",
        "=== BEGIN MARK",
    ),
    "boxes without points": (
        "# 3 points: because the dtype's size is known.\n",
        "# - Because the dtype's size is known.\n",
        "has boxes without points",
        "=== BEGIN MARK",
    ),
    "boxes with other points": (
        "# 3 points: because the dtype's size is known.\n",
        "# - Because the dtype's size is known. (2 points)\n",
        "give 2 points together, but the question has points=3",
        "=== BEGIN MARK",
    ),
    "task without a question": (
        "# Why do strides count elements?\n#\n",
        "",
        "has no question",
        "# %% [markdown] task",
    ),
    "task in code": (
        '# %% [markdown] task="why_bytes"',
        '# %% task="why_bytes"',
        "a task cell must be markdown",
        "# %% task=",
    ),
    "two roles": (
        'given="setup"',
        'given="setup" test="other" points=1',
        "got given and test",
        '# %% given="setup"',
    ),
    "bad id": ('given="setup"', 'given="the set-up"', "is not a name", "# %% given="),
    "unknown key": ('given="setup"', 'give="setup"', "unknown header key 'give'", "# %% give="),
    "unquoted": ('given="setup"', "given=setup", "is not understood", "# %% given=setup"),
    "a wide line": (
        "assert tensor_bytes((2, 3), 4) == 24\n",
        f"assert tensor_bytes((2, 3), 4) == 24  # {'x' * 61}\n",
        "this line has 101 characters: break it, because at most 100 fit",
        "xxx",
    ),
    "a title": ('# %% given="setup"', "# %% Set up", "unknown header key 'title'", "# %% Set up"),
    "magic": ("import math\n", "%%html\n", "not plain Python", "%%html"),
    "shell": ("import math\n", "!ls\n", "not plain Python", "!ls"),
    "script": (
        "# Solve it from top to bottom.\n",
        "# <script>alert(1)</script>\n",
        "a browser would run or load '<script'",
        "<script>",
    ),
    "silent figure": (
        "# Solve it from top to bottom.\n",
        "# See\n# ![ ](strides.png)\n",
        "![](...) without alternative text",
        "![ ](",
    ),
    "silent html figure": (
        "# Solve it from top to bottom.\n",
        '# <img src="strides.png">\n',
        "<img> without alternative text",
        "<img",
    ),
    "raw cell": ('# %% given="setup"', "# %% [raw]", "a raw cell", "# %% [raw]"),
    "empty cell": ("", "\n# %%\n", "this cell is empty", None),
    "text above": (HEADER, HEADER + "import this\n\n", "text above the first", None),
    "no header": (HEADER, "", "no YAML header", None),
    "bad header": ("{title: ", "{title: : ", "the YAML header can't be read", "title: :"),
    "foreign key": (
        "#   open_the_hood",
        "#   jupytext: {}\n#   open_the_hood",
        "unknown key 'jupytext'",
        "# ---",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_problem_names_its_line(case):
    old, new, message, place = REFUSALS[case]
    assert old in LAB
    content = LAB.replace(old, new, 1) if old else LAB + new
    found = [problem for problem in lab_problems(lab(content)) if message in problem.message]
    assert len(found) == 1, list(lab_problems(lab(content)))
    if place:
        assert found[0].line == line_of(content, place)
    assert str(found[0]).startswith(f"phases/01_rows/lab.py:{found[0].line}: ")


def test_a_region_below_the_last_function_is_accepted():
    region = "### BEGIN SOLUTION\nBITS = 8\n### END SOLUTION\n\n"
    below = LAB.replace("# %%\nprint(tensor_bytes", f"{region}# %%\nprint(tensor_bytes")
    assert below != LAB
    assert list(lab_problems(lab(below))) == []


def test_all_problems_are_reported_at_once():
    content = LAB.replace("points: 5", "points: 9").replace(" points=2", "").replace("setup", "a b")
    messages = " ".join(problem.message for problem in lab_problems(lab(content)))
    assert "have 3 points together" in messages
    assert "has no points" in messages
    assert "is not a name" in messages


def test_a_lesson_has_no_exercises():
    content = LESSON.replace('# %% tags=["raises-exception"]', '# %% test="x" points=1')
    messages = [problem.message for problem in page_problems(lesson(content))]
    assert messages == ["points= belongs in a lab, not in a lesson", messages[1]]
    assert messages[1].startswith("test= belongs in a lab")


@pytest.mark.parametrize(("first", "second"), [(900, 900), (901, 900), (900, 901)])
def test_a_section_of_a_lesson_has_at_most_900_words(first, second):
    # The first section has a cell of code in it, and a comment in prose that is no heading.
    content = (
        f"{LESSON}\n# %% [markdown]\n# ## Long\n#\n# ```\n# # six\n# ```\n\n# %%\n1\n"
        f"\n# %% [markdown]\n# {'word ' * (first - 2)}\n#\n# ### More\n#\n"
        f"# {'word ' * (second - 1)}\n"
    )
    found = [(one.line, one.message.partition(":")[0]) for one in page_problems(lesson(content))]
    long = {"# ## Long": first, "# ### More": second}
    assert found == [
        (line_of(content, heading), f"this section has {words} words")
        for heading, words in long.items()
        if words > 900
    ]


def exercise(name="tensor_bytes", points=2.0, reads="Bytes under a tensor"):
    """Return a check, by default that of the example."""
    return Check(name, parts={"any shape": points}, reads=reads)


def agreement(lab_text=LAB, lesson_text=LESSON, **checks):
    """Return the messages of check_problems for the example with these checks."""
    found = check_problems(
        lab(lab_text), lesson(lesson_text), checks, {"phases/01_rows/checks.py": CHECKS_CODE}
    )
    return [str(problem) for problem in found]


CHECKS_CODE = 'import x\n\ntensor_bytes = Check(\n    "tensor_bytes",\n)\nother = Check("other")\n'


def test_lab_checks_and_lesson_agree():
    assert agreement(tensor_bytes=exercise()) == []


def test_a_cell_without_a_check_is_reported():
    (problem,) = agreement()
    assert problem == (
        f"phases/01_rows/lab.py:{line_of(LAB, '# %% test=')}: "
        "test 'tensor_bytes' has no check: "
        'write Check("tensor_bytes", ...) in phases/01_rows/checks.py'
    )


def test_a_check_without_a_cell_is_reported():
    (problem,) = agreement(tensor_bytes=exercise(), other=exercise("other"))
    assert problem.startswith("phases/01_rows/checks.py:6: no cell of phases/01_rows/lab.py uses")


def test_different_points_of_cell_and_check_are_reported():
    (problem,) = agreement(tensor_bytes=exercise(points=4.0))
    assert "got points=2, but its check gives 4" in problem


def test_a_check_reads_a_heading_of_the_lesson():
    (problem,) = agreement(tensor_bytes=exercise(reads="Bytes"))
    assert problem.startswith("phases/01_rows/checks.py:3: check 'tensor_bytes' reads 'Bytes'")


def test_a_part_reads_a_heading_of_the_lesson_and_is_a_part():
    named = replace(exercise(), reads_by_part={"any shape": "Rows"})
    assert agreement(tensor_bytes=named) == []
    (problem,) = agreement(tensor_bytes=replace(named, reads_by_part={"any shape": "Columns"}))
    assert "check 'tensor_bytes' reads 'Columns', but phases/01_rows/lesson.py has no" in problem
    (problem,) = agreement(tensor_bytes=replace(named, reads_by_part={"no shape": "Rows"}))
    assert "check 'tensor_bytes' has no part 'no shape'" in problem


def test_a_question_links_the_section_that_its_check_names():
    link = "[Bytes under a tensor](../../notebooks/01_rows.ipynb#cell-id=bytes-under-a-tensor)"
    assert link in LAB
    moved = LAB.replace(link, "[Rows](../../notebooks/01_rows.ipynb#cell-id=rows)")
    (problem,) = agreement(moved, tensor_bytes=exercise())
    assert problem == (
        f"phases/01_rows/lab.py:{line_of(moved, '# ## Bytes') - 1}: "
        f"the question of 'tensor_bytes' needs the link {link}"
    )


def test_two_cells_of_one_name_are_a_problem_and_no_exception():
    second = '\n# %% test="tensor_bytes" points=2\ncheck("tensor_bytes")\n' + HIDDEN
    assert agreement(LAB + second, tensor_bytes=exercise()) == []
    messages = [problem.message for problem in lab_problems(lab(LAB + second))]
    assert any("duplicate id 'tensor_bytes'" in message for message in messages)


def test_a_lab_without_cells_has_no_cell_for_a_check():
    (problem,) = agreement(HEADER, tensor_bytes=exercise())
    assert "no cell of phases/01_rows/lab.py uses check" in problem


def test_headings_and_check_lines_are_found():
    fenced = LESSON.replace("# A fact.", "# ### Third level ###\n#\n# ```\n# # a comment\n# ```")
    assert headings(lesson(fenced)) == {"Rows", "Bytes under a tensor", "Third level"}
    assert check_lines(CHECKS_CODE) == {"tensor_bytes": 3, "other": 6}
    assert check_lines('tensor_bytes = Check(name="tensor_bytes")\n') == {}
