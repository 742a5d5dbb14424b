"""Answers that are alike: which are shown to the instructor, and which are ignored."""

import time

import pytest

from hood.classroom.gradebook.graded import Graded, GradedNotebook, Results
from hood.classroom.gradebook.pseudonyms import LearnerNames, pseudonyms
from hood.classroom.report import alike
from hood.classroom.report.alike import ENOUGH, LEAST, LONGEST, Alike, shape, stubs_of
from hood.grader.course import open_course
from tests.hood.classroom.report.made_up import LAB, TITLES, Made, make_course
from tests.hood.classroom.report.test_page import Elements, page_of

ONE = """\
def softmax(x: Tensor, dim: int = -1) -> Tensor:
    \"\"\"Softmax along one dimension.\"\"\"
    # so that exp cannot overflow
    shifted = x - x.amax(dim, keepdim=True)
    powers: Tensor = shifted.exp()
    return powers / powers.sum(dim, keepdim=True)
"""
RENAMED = """\
def softmax(values, d=-1):
    a = values - values.amax(d, keepdim=True)
    b = a.exp()
    "the sum is along the same dimension"
    return b / b.sum(d, keepdim=True)
"""
STUB = "def softmax(x: Tensor, dim: int = -1) -> Tensor:\n    raise NotImplementedError"


def long(number=0, lines=ENOUGH // 5 + 1, name="x"):
    """Return code that is only like code with the same number and length."""
    body = "".join(f"    {name}{k} = {name} + {number + k}\n" for k in range(lines))
    return f"def f({name}):\n{body}    return {name}\n"


def graded(student, **code):
    return Graded(student, student.title(), {}, {}, run=GradedNotebook(code=code))


def found(*learners, stubs=None):
    """Return the groups of learners with similar answers, and their exercises."""
    seen = Alike(stubs or {}, TITLES, LearnerNames())
    for one in learners:
        seen.add(one)
    return [({p.name for p in one.people}, one.exercises) for one in seen.groups()]


def others(many, start=1000):
    return [graded(f"other{k}", twice=long(start * (k + 1))) for k in range(many)]


def test_names_annotations_comments_and_docstrings_are_ignored():
    assert shape(ONE).digest == shape(RENAMED).digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("keepdim=True", "keepdim=False"),  # a constant
        ("amax", "max"),  # an attribute
        ("powers.sum", "shifted.sum"),  # another name that the code binds
        ("exp()", "exp().clone()"),
        ("dim: int = -1", "dim: int = 1"),
        ("x - x.amax", "y - x.amax"),  # a name that the code does not bind
    ],
)
def test_code_that_computes_something_else_is_not_alike(old, new):
    assert old in ONE
    assert shape(ONE.replace(old, new)).digest != shape(ONE).digest


def test_code_in_another_place_is_not_alike():
    assert shape("{**b, a: c}").digest != shape("{a: b, **c}").digest
    assert shape("f(a)(b)").digest != shape("f(a, b)").digest
    assert shape("def f(a, *, b, c=d): pass").digest != shape("def f(a, *, b=d, c): pass").digest
    assert shape("return_ = 0").digest != shape("return_ = False").digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("import numpy as np\nnp.sum", "import numpy as n\nn.sum"),
        ("class A:\n  def f(s): return s.x", "class B:\n  def g(self): return self.x"),
        ("try: f()\nexcept E as e: e.x", "try: f()\nexcept E as error: error.x"),
        ("match f():\n case [a, *b]: g(a, b)", "match f():\n case [h, *t]: g(h, t)"),
        ("[i for i in y]", "[k for k in y]"),
        ("x: int\nx = 1", "x = 1"),
        ("lambda a, *b, **c: (a, b, c)", "lambda x, *y, **z: (x, y, z)"),
    ],
)
def test_every_name_that_code_binds_is_ignored(one, other):
    assert shape(one) == shape(other)


def test_two_similar_long_answers_are_reported():
    learners = [graded("ana", twice=long()), graded("ben", twice=long(name="y")), *others(20)]
    assert found(*learners) == [({"Ana", "Ben"}, (TITLES["twice"],))]


def test_a_short_answer_counts_together_with_another_exercise():
    half = {"lines": ENOUGH // 10 + 1}
    short = [graded(one, twice=long(**half)) for one in ("ana", "ben")]
    both = [graded(one, twice=long(**half), softmax=long(7, **half)) for one in ("ana", "ben")]
    assert LEAST < shape(long(**half)).nodes < ENOUGH
    assert found(*short, *others(20)) == []
    assert found(*both, *others(20)) == [({"Ana", "Ben"}, (TITLES["twice"], TITLES["softmax"]))]


def test_many_similar_short_answers_are_ignored(monkeypatch):
    few = {"lines": 3}
    assert shape(long(**few)).nodes < LEAST
    monkeypatch.setattr(alike, "ENOUGH", 10)
    names = {name: long(**few) for name in TITLES}
    assert found(graded("ana", **names), graded("ben", **names), *others(20)) == []


def test_a_common_answer_is_ignored_and_three_learners_are_one_group():
    def sharing(many, others_too):
        return found(*[graded(f"l{k}", twice=long()) for k in range(many)], *others(others_too))

    [(people, _)] = sharing(3, 20)
    assert people == {"L0", "L1", "L2"}
    assert len(sharing(5, 20)) == 1
    assert sharing(6, 500) == []  # the usual answer
    assert sharing(3, 6) == []  # a third of the class


def test_two_groups_with_the_same_exercises_stay_separate():
    learners = [graded(f"a{k}", twice=long(1)) for k in range(2)]
    learners += [graded(f"b{k}", twice=long(2)) for k in range(2)]
    assert [one for one, _ in found(*learners, *others(20))] == [{"A0", "A1"}, {"B0", "B1"}]


def test_the_stub_and_small_additions_to_it_are_ignored():
    stub = long(5)
    learners = [graded("ana", twice=stub + "\nz = 1"), graded("ben", twice=stub + "\nz = 1")]
    assert found(*learners, *others(20), stubs={"twice": stub}) == []
    assert found(*learners, *others(20)) != []


def test_stubs_are_those_of_the_release(tmp_path):
    root = make_course(tmp_path / "course", [])
    path = root / "source" / LAB / f"{LAB}.ipynb"
    solved = (
        ONE.replace("    shifted", "    ### BEGIN SOLUTION\n    shifted") + "    ### END SOLUTION"
    )
    made = make_course(tmp_path / "other", [Made("s1", code={"softmax": solved})])
    path.write_text((made / "autograded" / "s1" / LAB / f"{LAB}.ipynb").read_text())
    [(name, code)] = [one for one in stubs_of(Results(open_course(root), LAB)).items() if one[1]]
    assert name == "softmax"
    assert "shifted =" not in code
    assert "def softmax" in code


HOSTILE = {
    "no Python": "def f(:",
    "a magic": "%timeit f(x)",
    "a zero byte": "x = 1\0",
    "half a character": "x = '\ud800'",
    "minuses": "-" * (LONGEST - 1) + "1",
    "nots": "not " * (LONGEST // 4 - 1) + "1",
    "a long sum": "1" + "+1" * (LONGEST // 2 - 1),
    "a long chain": "a" + ".b" * (LONGEST // 2 - 1),
    "many calls": "f" + "()" * (LONGEST // 2 - 1),
    "brackets": "(" * (LONGEST // 2) + ")" * (LONGEST // 2),
    "ifs": "".join(" " * k + "if a:\n" for k in range(99)) + " " * 99 + "a",
    "elifs": "if a: b\n" + "elif a: b\n" * (LONGEST // 11),
    "a huge number": "x = " + "9" * (LONGEST - 4),
    "a power": "x = 9**9**9**9**9",
    "a wide call": "f(" + ",".join("a" * (LONGEST // 2 - 2)) + ")",
    "many names": "\n".join(f"x{k} = {k}" for k in range(LONGEST // 14)),
    "too long": "x = 1\n" * LONGEST,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_code_stops_or_delays_the_report(kind):
    began = time.process_time()
    shape(HOSTILE[kind])
    assert time.process_time() - began < 3  # a fifth of a second, mostly


def test_code_with_too_much_work_is_left_out_and_reported(monkeypatch):
    real = alike.shape

    def endless(code):
        while code == "endless":
            pass
        return real(code)

    monkeypatch.setattr(alike, "SECONDS", 0.2)
    monkeypatch.setattr(alike, "shape", endless)
    seen = Alike({}, TITLES, LearnerNames())
    for one in (graded("eve", twice="endless"), graded("ana", twice=long()), *others(20)):
        seen.add(one)
    seen.add(graded("ben", twice=long()))
    assert seen.unread == 1
    assert [len(one.people) for one in seen.groups()] == [2]


def crowd_with(code, many=20):
    learners = [Made(f"s{k}", f"First{k}", code={"twice": long(1000 * k)}) for k in range(many)]
    pair = [
        Made("ana", "Ana<script>", code={"twice": code}),
        Made("ben", "Ben", code={"twice": code}),
    ]
    return [*learners, *pair]


def test_the_page_folds_them_and_states_the_limits_and_links_the_notebooks(tmp_path):
    page = page_of(tmp_path, crowd_with(long(5)))
    seen = Elements(page)
    assert "script" not in seen.tags
    assert "Ana&lt;script&gt; Example" in page
    about = page.partition('id="alike"')[2].partition("</section>")[0]
    assert about.count("<details>") == 1
    assert "<details open" not in about
    assert "This is a hint, not proof" in about
    assert TITLES["twice"] in about
    assert f"../../autograded/ana/{LAB}/{LAB}.ipynb" in about
    assert f"../../autograded/ben/{LAB}/{LAB}.ipynb" in about
    assert "First3" not in about


def test_with_hidden_names_the_hint_has_no_names(tmp_path):
    page = page_of(tmp_path, crowd_with(long(5)), hide_names=True)
    about = page.partition('id="alike"')[2].partition("</section>")[0]
    who = pseudonyms(tmp_path / "course")
    assert who.order("ana") in about
    assert who.order("ben") in about
    assert "Ana" not in about
    assert "href" not in about


def test_without_similar_answers_the_page_says_nothing(tmp_path):
    assert "alike" not in page_of(tmp_path, [Made("ana"), Made("ben")]).partition("<main>")[2]
