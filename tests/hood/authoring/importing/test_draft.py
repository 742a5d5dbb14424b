"""The drafted phase: its files, its list of open tasks, and that the build accepts the phase."""

import re
import shutil
import tomllib

import pytest

from hood import UserError
from hood.__main__ import main
from hood.authoring.notebooks.text import parse
from hood.course import VARIABLE
from hood.judge.catalogue import load_checks
from hood.judge.verdicts.judge import judge
from tests.hood.authoring.importing.notebooks import (
    SOLUTION,
    TESTS,
    code,
    of_nbgrader,
    of_otter,
    question,
    raw,
    words,
    write,
)
from tests.hood.authoring.test_new_course import hood

F = "def f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION"


@pytest.fixture
def course(tmp_path, monkeypatch):
    """An empty course, in which commands run."""
    (tmp_path / "course.toml").write_text('title = "A course"\nid = "a"\n')
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path


@pytest.fixture
def drafted(course, capsys):
    """Return a function that imports cells, and returns the phase's folder and what was printed."""

    def of(form, *cells, name="hw_1"):
        write(course / f"{name}.ipynb", list(cells))
        assert main(["import", form, str(course / f"{name}.ipynb")]) == 0
        return course / "phases" / f"01_{name}", capsys.readouterr().out

    return of


def exercise(*tests, source=F, points=2):
    """Return the cells of an exercise of nbgrader."""
    graded = [
        code(test, f"test_{place}", points=points, **TESTS) for place, test in enumerate(tests)
    ]
    return [code(source, "answer", **SOLUTION), *graded]


def cells_of(folder):
    lab = parse("lab.py", (folder / "lab.py").read_text())
    assert lab.problems == ()
    return lab.cells


def test_a_phase_has_all_its_files_and_nothing_is_overwritten(drafted, course):
    folder, printed = drafted("nbgrader", words("Words."), *exercise("assert f(1) == 1"))
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert files == {
        *("lab.py", "solutions.md", "TODO.md", "checks/f.py"),
        "answers/f.toml",
    }
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    again = ["import", "nbgrader", str(course / "hw_1.ipynb"), "--phase", "01_hw_1"]
    assert main(again) == 2
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert main(again[:3]) == 0  # the next number
    listed = tomllib.loads((course / "course.toml").read_text())["phases"]
    assert [phase["name"] for phase in listed] == ["01_hw_1", "02_hw_1"]
    assert (course / "phases" / "02_hw_1").is_dir()
    for item in printed.split("\n- ")[1:]:
        assert f"- [ ] {item.rstrip()}" in (folder / "TODO.md").read_text()


def test_the_command_refuses_a_wrong_name_and_a_folder_without_a_course(course, tmp_path, capsys):
    path = str(write(course / "a.ipynb", exercise("assert f(1) == 1")))
    assert main(["import", "nbgrader", path, "--phase", "../out"]) == 2
    assert "expected a name such as 02_sums, got '../out'" in capsys.readouterr().err
    (course / "course.toml").unlink()
    assert main(["import", "nbgrader", path]) == 2
    assert "expected a course's folder" in capsys.readouterr().err


def test_a_notebook_with_nothing_to_grade_is_refused(course, capsys):
    path = str(write(course / "a.ipynb", [words("Words.", "w", locked=True)]))
    assert main(["import", "nbgrader", path]) == 2
    assert "expected exercises or questions with points" in capsys.readouterr().err
    assert not (course / "phases").exists()


def test_code_that_is_nested_too_deeply_is_refused(course, capsys):
    for depth in (900, 3000, 100_000):
        path = str(write(course / "a.ipynb", exercise(f"assert f({'-' * depth}1) == 1")))
        assert main(["import", "nbgrader", path]) == 2
        assert "its code is nested too deeply" in capsys.readouterr().err
        assert not (course / "phases").exists()


def test_an_argument_that_a_call_changes_is_compared(drafted):
    source = "def add(a, x):\n    ### BEGIN SOLUTION\n    a.append(x)\n    ### END SOLUTION"
    test = "a = [1]\nadd(a, 3)\nassert a == [1, 3]\nassert add([], 2) is None"
    folder, _ = drafted("nbgrader", *exercise(test, source=source))
    check = load_checks(folder)["add"]
    assert judge(check, lambda a, x: a.append(x), "seed").earned == 2
    assert judge(check, lambda a, x: None, "seed").earned == 0
    assert judge(check, lambda a, x: a.append(2), "seed").earned == 0


def test_visible_tests_stay_in_the_graded_cell_and_hidden_ones_are_cases_only(drafted):
    tests = (
        "x = 1\nassert f(x) == 1\n### BEGIN HIDDEN TESTS\nassert f(7) == 7\n### END HIDDEN TESTS"
    )
    folder, printed = drafted("nbgrader", words("## Q\n\nWrite `f`."), *exercise(tests, points=3))
    question, _, solution, graded = [cell for cell in cells_of(folder) if cell.source != ""][1:]
    assert question.source == "## Q\n\nWrite `f`."
    assert (solution.header, solution.source) == ({"solution": "f"}, F)
    assert graded.header == {"test": "f", "points": 3}
    assert graded.source == (
        'check("f")\nx = 1\nassert f(x) == 1\n### BEGIN HIDDEN TESTS\nverify("f", f)\n'
        "### END HIDDEN TESTS"
    )
    check = (folder / "checks" / "f.py").read_text()
    assert 'parts={"as shown": 1, "other inputs": 2}' in check
    assert '    # assert f(x) == 1\n    yield case("as shown", 1)\n' in check
    assert (
        '    # assert f(7) == 7\n    yield replace(case("other inputs", 7), example=False)\n'
        in check
    )
    assert "f: all 2 cases have fixed values" in printed
    assert (
        "f: the points of its parts are guessed: 1 for 'as shown' and 2 for 'other inputs'"
        in printed
    )


def test_a_test_that_becomes_no_case_is_a_comment_with_its_text(drafted):
    loop = "for x in range(3):\n    assert f(x) == x"
    folder, printed = drafted("nbgrader", *exercise(f"assert f(1) == 1\n{loop}"))
    check = (folder / "checks" / "f.py").read_text()
    assert "    #     for x in range(3):\n    #         assert f(x) == x\n" in check
    assert (
        "f: no case (as shown) for `for x in range(3): ...`, because a test of this form" in printed
    )


def test_an_exercise_without_a_case_is_in_the_list(drafted):
    _, printed = drafted("nbgrader", *exercise("assert len(f([1])) == 1"))
    assert (
        "f: no test became a case, so the build refuses this exercise: write its cases." in printed
    )


def test_points_of_a_part_without_a_case_go_to_the_other_part(drafted):
    tests = "assert f(1) == 1\n### BEGIN HIDDEN TESTS\nassert f(y) == y\n### END HIDDEN TESTS"
    folder, printed = drafted("nbgrader", *exercise(tests))
    assert 'parts={"as shown": 2}' in (folder / "checks" / "f.py").read_text()
    assert "f: the part 'other inputs' has no case yet, so 'as shown' has all points." in printed


def test_several_functions_of_one_cell_are_one_exercise(drafted):
    source = f"{F}\n\n{F.replace('f(x)', 'g(x)')}"
    folder, _ = drafted("nbgrader", *exercise("assert f(1) == 1\nassert g(2) == 2", source=source))
    assert 'verify("answer", f=f, g=g)' in cells_of(folder)[-1].source
    check = (folder / "checks" / "answer.py").read_text()
    assert '    yield case("as shown", 2, of="g")\n' in check
    assert '"g": lab_solution(__name__, "answer", "g")' in check


def test_a_name_that_another_exercise_has_gets_a_number(drafted, course):
    folder, printed = drafted(
        "nbgrader", *exercise("assert f(1) == 1"), *exercise("assert f(2) == 2")
    )
    assert "f_2: another exercise has the name 'f', so this exercise has the name 'f_2'." in printed
    assert 'verify("f_2", f=f)' in cells_of(folder)[-1].source
    assert main(["import", "nbgrader", str(course / "hw_1.ipynb")]) == 0
    assert (course / "phases" / "02_hw_1" / "checks" / "f_3.py").is_file()


def test_names_of_other_exercises_files_and_packages_are_in_the_list(drafted):
    other = F.replace("f(x)", "g(x)").replace("return x", "return f(x)")
    _, printed = drafted(
        "nbgrader",
        code("import no_such_package\ndata = open('data/rows.csv').read()"),
        words("![a cat](cat.png)"),
        *exercise("assert f(1) == 1"),
        *exercise("assert g(1) == 1", source=other),
    )
    assert "g: it uses 'f' of the exercise 'f'. The build refuses this" in printed
    assert "`cat.png`, `data/rows.csv`" in printed
    assert "imports `no_such_package`, which is not installed here" in printed


def test_names_that_no_cell_defines_are_in_the_list(drafted):
    _, printed = drafted(
        "nbgrader",
        *exercise("assert f(1) == k", source=F.replace("return x", "return nowhere + x")),
        code("def later(): pass"),
    )
    assert "f: it uses 'nowhere', which no cell defines. The build refuses this" in printed
    assert "f: it uses 'k', which no cell defines" in printed
    assert "later" not in printed


def test_an_example_that_uses_another_answer_is_in_the_list(drafted):
    answer, test = exercise("assert f(1) == 1")
    _, printed = drafted(
        "nbgrader",
        *exercise("assert g(1) == 1", source=F.replace("f(x)", "g(x)")),
        answer,
        code("f(g(2))"),
        test,
    )
    assert "f: it uses 'g' of the exercise 'g'" in printed


def test_examples_may_use_their_own_answer_and_what_they_define(drafted):
    answer, test = exercise("assert y == f(1) == 1")
    _, printed = drafted("nbgrader", answer, code("y = f(1)"), code("print(y, f(2))"), test)
    assert "it uses" not in printed


def test_a_question_with_several_values_has_no_case(drafted):
    source = "### BEGIN SOLUTION\na = 1\nb = 2\n### END SOLUTION"
    folder, printed = drafted("nbgrader", *exercise("assert a == 1\nassert b == 2", source=source))
    assert (
        "no case (as shown) for `assert a == 1`, because a check can ask for one value" in printed
    )
    assert "answer: no test became a case" in printed
    assert "yield from ()" in (folder / "checks" / "answer.py").read_text()


@pytest.mark.parametrize("name", ["case", "sum", "np"])
def test_a_check_hides_no_name_that_its_file_uses(drafted, name):
    source = F.replace("f(x)", f"{name}(x)")
    folder, _ = drafted(
        "nbgrader", code("import numpy as np"), *exercise(f"assert {name}(1) == 1", source=source)
    )
    check = (folder / "checks" / f"{name}_check.py").read_text()
    assert f'{name}_check = Check(\n    "{name}",' in check


def test_code_above_the_answers_is_given_and_code_that_uses_them_is_not(drafted):
    folder, _ = drafted(
        "nbgrader",
        code("import math\nn = 3"),
        *exercise("assert f(1) == 1"),
        code("y = f(n)"),
        code("z = y"),
    )
    roles = [(cell.source, dict(cell.header)) for cell in cells_of(folder) if cell.kind == "code"]
    assert roles[:2] == [
        ("from hood.learner.check import check", {"given": "setup"}),
        ("import math\nn = 3", {"given": "given_2"}),
    ]
    assert roles[4:] == [("y = f(n)", {}), ("z = y", {})]


def test_what_the_build_refuses_in_the_text_is_in_the_list(drafted):
    _, printed = drafted("nbgrader", words("![](cat.png)"), *exercise("assert f(1) == 1"))
    assert "the build refuses phases/01_hw_1/lab.py:11: ![](...) without alternative" in printed


def test_magics_become_comments_and_lines_like_headers_do_not_divide_a_cell(drafted):
    source = "%matplotlib inline\n!pip install a\nx = 1\n# %% [markdown]\n# %%time"
    folder, _ = drafted("nbgrader", code(source), *exercise("assert f(1) == 1"))
    assert cells_of(folder)[2].source == (
        "# TODO, not plain Python: %matplotlib inline\n# TODO, not plain Python: !pip install a\n"
        "x = 1\n# [markdown]\n# %%time"
    )


@pytest.mark.parametrize("name", ['a""" + quit() #', "a\\", "é 1"])
def test_names_with_quotes_make_files_that_can_be_read(course, name):
    cells = [raw("# ASSIGNMENT CONFIG\nname: 'a\" }'")]
    cells += question("name: q", "Q", [code("def f(x):\n    return x # SOLUTION")],
                      [code("np.isclose(f(1), 1)", output="True")])  # fmt: skip
    path = write(course / f"{name}.ipynb", cells)
    assert main(["import", "otter", str(path), "--phase", "01_a"]) == 0
    compile((course / "phases/01_a/checks/f.py").read_text(), "f.py", "exec")
    assert parse("lab.py", (course / "phases/01_a/lab.py").read_text()).course["title"] == (
        'Lab 01: a" }'
    )


@pytest.fixture(scope="module")
def new_course(tmp_path_factory):
    """A new course that has a phase of nbgrader's and a phase of Otter's, which were built."""
    folder = tmp_path_factory.mktemp("imported") / "words"
    assert hood(folder.parent, "new", "words").returncode == 0
    shutil.rmtree(folder / "phases" / "01_words")
    (folder / "phases" / "start.py").unlink()
    made = {"nbgrader": of_nbgrader(folder / "sums.ipynb"), "otter": of_otter(folder / "hw.ipynb")}
    for form, path in made.items():
        done = hood(folder, "import", form, path)
        assert done.returncode == 0, done.stderr
        assert "refuses" not in done.stdout
    built = hood(folder, "build")
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.mark.slow(20)
def test_a_simple_assignment_is_built_at_once_and_its_checks_judge(new_course):
    def earned(phase, name, answer):
        return judge(load_checks(new_course / "phases" / phase)[name], answer, "seed").earned

    assert earned("01_sums", "twice", lambda x: 2 * x) == 3
    assert earned("01_sums", "twice", lambda x: abs(2 * x) if x != "ab" else x) == 1
    assert earned("01_sums", "mean", lambda values: sum(values) / len(values)) == 1

    def mean(values):
        if not values:
            raise ValueError
        return sum(values) / len(values) + 1e-6  # within the tolerance of np.isclose

    assert earned("01_sums", "mean", mean) == 2
    assert earned("02_hw", "square", lambda x: x**2) == 3
    assert earned("02_hw", "square", lambda x: x + x) == 0
    assert earned("02_hw", "nine", 9) == 1
    assert earned("02_hw", "nine", 8) == 0
    released = (new_course / "release/01_sums/01_sums.ipynb").read_text()
    assert "twice(2) == 4" in released
    assert "abab" not in released
    assert "sum of none" not in released


@pytest.mark.slow(20)
def test_a_learner_of_an_imported_lab_gets_a_verdict(new_course):
    work = new_course / "work" / "02_hw"
    assert hood(new_course, "work").returncode == 0
    notebook = work / "02_hw.ipynb"
    stub = 'raise NotImplementedError(\\"write your answer here\\")'
    text = notebook.read_text()
    assert text.count(stub) == 2
    notebook.write_text(text.replace(stub, "return x + x", 1).replace(stub, "nine = 9"))
    done = hood(new_course, "check", str(notebook))
    assert re.search(r"\bsquare +0 of 3$", done.stdout, re.M), done.stdout + done.stderr
    assert re.search(r"\bnine +1 of 1$", done.stdout, re.M)
    assert "square(16)" in done.stdout  # the failing example is a visible test
    assert "read:" not in done.stdout


def test_an_otter_notebook_without_questions_is_refused(course):
    from hood.authoring.importing.otter import read

    with pytest.raises(UserError, match="Otter's old format"):
        read([], "A title")
