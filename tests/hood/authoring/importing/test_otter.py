"""What is read in a master notebook of Otter Assign."""

import pytest

from hood import UserError
from hood.authoring.importing.assignment import Exercise, Graded, InWords, Other
from hood.authoring.importing.cells import read_cells
from hood.authoring.importing.otter import read
from tests.hood.authoring.importing.notebooks import code, of_otter, question, raw, words, write

F = code("def f(x):\n    return x # SOLUTION")
CONFIG = '""" # BEGIN TEST CONFIG\n{}\n""" # END TEST CONFIG\n'


@pytest.fixture
def assignment(tmp_path):
    """Return a function that reads a notebook with some cells."""

    def of(*cells):
        return read(read_cells(write(tmp_path / "a.ipynb", list(cells))), "A title")

    return of


def test_each_question_becomes_an_exercise_or_a_question_in_words(tmp_path):
    found = read(read_cells(of_otter(tmp_path / "hw.ipynb")), "Hw")
    assert (found.title, found.files) == ("Squares", ["data.csv"])
    kinds = [type(cell) for cell in found.cells]
    assert kinds == [Other, Other, Exercise, Graded, Other, Exercise, Graded, InWords]
    square, nine = found.exercises
    assert [(test.source, test.hidden, test.points) for test in square.tests] == [
        ("assert square(16) == 256", False, 1),
        ("assert square(3) == 9", True, 1),
        ("assert np.isclose(square(0.5), 0.25)", True, 1),
    ]
    assert nine.solution == "### BEGIN SOLUTION\nnine = 3 * 3\n### END SOLUTION"
    assert nine.points == 1
    assert "q2: it has no points" in found.open[0]
    assert found.cells[-1] == InWords("q3", "**Question 3.** Why?", "It says so.", 2)


def test_settings_may_be_in_a_fenced_block_of_a_text(assignment):
    found = assignment(
        words("```otter\n# BEGIN QUESTION\nname: q\n```\n\nWrite `f`.\n\n```otter\n# BEGIN SOLUTION"
              "\n```"),
        F,
        words("```otter\n# END SOLUTION\n```\n```otter\n# BEGIN TESTS\n```"),
        code("f(2)", output="2"),
        words("```otter\n# END TESTS\n```"),
        words("```otter\n# END QUESTION\n```\n\nWords below."),
    )  # fmt: skip
    assert [type(cell) for cell in found.cells] == [Other, Exercise, Graded, Other]
    assert found.exercises[0].question == "Write `f`."
    assert found.cells[-1] == Other("markdown", "Words below.")


@pytest.mark.parametrize(
    ("config", "tests", "points"),
    [
        ("points: 3", [None, None], [1.5, 1.5]),
        ("points: 4", [None, 3], [1, 3]),
        ("points: {each: 2}", [None, None], [2, 2]),
        ("points: [0, 2]", [None, None], [0, 2]),
        ("points: 1", [1, None], [1, 0]),
        ("manual: false", [None, 2], [0, 2]),
        ("manual: false", [None, None], [0.5, 0.5]),
        ("points: many", [None, None], [0.5, 0.5]),
    ],
)
def test_points_are_divided_as_otter_divides_them(assignment, config, tests, points):
    cells = [
        code(
            (CONFIG.format(f"points: {one}") if one else "") + f"f({place})",
            output=str(place),
        )
        for place, one in enumerate(tests)
    ]
    [exercise] = assignment(*question(f"name: q\n{config}", "Q", [F], cells)).exercises
    assert [test.points for test in exercise.tests] == points


def test_a_test_config_can_hide_a_test(assignment):
    tests = [
        code(CONFIG.format("hidden: true\npoints: 2") + "assert f(1) == 1"),
        code("## Hidden Test ##\nassert f(2) == 2"),
        code("assert f(3) == 3\nf(4) # IGNORE"),
    ]
    [exercise] = assignment(*question("name: q", "Q", [F], tests)).exercises
    assert [(test.source, test.hidden) for test in exercise.tests] == [
        ("assert f(1) == 1", True),
        ("assert f(2) == 2", True),
        ("assert f(3) == 3", False),
    ]


@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        ("f(2) == 2", "True", "assert f(2) == 2"),
        ("f(2) > 2", "False", "assert (f(2) > 2) is False"),
        ("x = 1\nf(x)", "'a'", "x = 1\nassert f(x) == 'a'"),
        ("not f(2)", "'a'", "assert (not f(2)) == 'a'"),
        ("f(2)", "array([2])", "f(2)"),
        ("print(f(2))", "2", "print(f(2))"),
        ("f(2)", "", "f(2)"),
    ],
)
def test_a_stored_output_becomes_an_assert_if_it_is_a_literal(assignment, source, output, expected):
    cells = question("name: q", "Q", [F], [code(source, output=output)])
    [exercise] = assignment(*cells).exercises
    assert exercise.tests[0].source == expected


def test_a_test_function_is_replaced_by_its_statements(assignment):
    tests = [
        code("def test_f(f):\n    x = 1\n    assert f(x) == 1\n\ntest_f(f)  # IGNORE"),
        code("def test_g(env):\n    assert env['f'](1) == 1"),
    ]
    [exercise] = assignment(*question("name: q", "Q", [F], tests)).exercises
    assert [test.source for test in exercise.tests] == [
        "x = 1\nassert f(x) == 1",
        "def test_g(env):\n    assert env['f'](1) == 1",
    ]


def test_the_prompt_is_kept_and_ignored_cells_are_not(assignment):
    found = assignment(
        code("import otter\ngrader = otter.Notebook()"),
        code("## Ignore ##\nprint(1)"),
        raw("# BEGIN QUESTION\nname: q"),
        raw("# BEGIN PROMPT"),
        code("def f(x):\n    ..."),
        raw("# END PROMPT"),
        raw("# BEGIN SOLUTION"),
        F,
        raw("# END SOLUTION"),
        raw("# BEGIN TESTS"),
        code("f(1)", output="1"),
        raw("# END TESTS"),
        raw("# END QUESTION"),
    )
    [exercise] = found.exercises
    assert exercise.prompt == "def f(x):\n    ..."
    assert len(found.cells) == 2


def test_tests_of_a_question_without_a_solution_are_reported_with_their_text(assignment):
    cells = question("name: q", "Q", [words("**SOLUTION**")], [code("f(1)", output="1")])
    found = assignment(*cells)
    assert isinstance(found.cells[0], InWords)
    assert any("no solution in code" in said and "assert f(1) == 1" in said for said in found.open)


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (["# BEGIN QUESTION\nname: q"], "has no `# END QUESTION` cell"),
        (["# END QUESTION"], "cell 1: '# END QUESTION' is outside of any question"),
        (["# BEGIN SOLUTION"], "is outside of any question"),
        (["# BEGIN QUESTION\nname: q", "# BEGIN QUESTION"], "expected the end of 'question'"),
        (["# BEGIN QUESTION\nname: q", "# BEGIN TESTS", "# END QUESTION"], "end of 'tests'"),
        (["# BEGIN QUESTION\nname: q", "# END TESTS"], "expected the end of 'question'"),
        (["# BEGIN QUESTION\nname: [q"], "cell 1: its settings are not YAML"),
        (["# ASSIGNMENT CONFIG\n&a [*a"], "cell 1: its settings are not YAML"),
        (["some words"], "without a raw cell that begins with `# BEGIN QUESTION`"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(assignment, sources, message):
    with pytest.raises(UserError, match=message):
        assignment(*map(raw, sources))


def test_settings_of_a_wrong_type_do_not_stop_the_import(assignment):
    cells = question("name: [1]\npoints: -x\nmanual: 7", "Q", [F], [code("f(1)", output="1")])
    found = assignment(raw("# ASSIGNMENT CONFIG\n- 1\n- 2"), *cells)
    assert found.exercises[0].points == 1
