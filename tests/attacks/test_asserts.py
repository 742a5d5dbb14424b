"""With plain asserts, no submission can make feedback show its hidden tests.

Each submission is graded in two labs that differ in one hidden number. The submission's two pages
must be the same.
"""

import pytest

from hood.grader.execution.self_judged import NOTE
from tests.attacks.asserts import ATTEMPTS, RIGHT_F, attempt, handed_in, source_notebook
from tests.attacks.ground import LAB, graded, page_of, released
from tests.hood.tiny import CONFIG

pytestmark = pytest.mark.slow(15)
NUMBERS = (481516, 916253)


def grade(folder, cells, number=NUMBERS[0]):
    source = source_notebook(number)
    path = folder / f"{number}" / f"{LAB}.ipynb"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(handed_in(released(source, CONFIG), cells))
    return graded(path, source, CONFIG)


def page(folder, cells, number=NUMBERS[0]):
    return page_of(*grade(folder, cells, number), CONFIG)


@pytest.mark.parametrize("cells", ATTEMPTS.values(), ids=ATTEMPTS)
def test_the_page_shows_nothing_of_the_hidden_tests(cells, tmp_path):
    one, other = (page(tmp_path, cells, number) for number in NUMBERS)
    assert NOTE[:30] in one
    assert one == other


# Attempts that never reach a page, because earlier outputs cannot be changed.
NOWHERE = {
    "updates what an earlier cell displayed",
    "asks for a new cell",
    "writes it beside the notebook",
}


@pytest.mark.full
def test_the_attempts_work_if_outputs_are_trusted(tmp_path):
    """If the instructor turns trust_output on, the attempts do show the number."""
    trusting = CONFIG.copy()
    trusting.CleanFeedback.trust_output = True
    out = set()
    for name, cells in ATTEMPTS.items():
        one, other = (page_of(*grade(tmp_path, cells, n), trusting) for n in NUMBERS)
        if one != other:
            out.add(name)
    assert out == set(ATTEMPTS) - NOWHERE


WRONG = "def f(x):\n    return x if x == 1 else 7"


def test_a_learner_reads_the_instructors_messages(tmp_path):
    assert "AssertionError: f gave …, so" in page(tmp_path, attempt(WRONG))
    nothing = page(tmp_path, attempt("def f(x):\n    pass"))
    assert "AssertionError: nothing was returned" in nothing
    assert "NameError" in page(tmp_path, attempt("x = 1"))
    slow = attempt("def f(x):\n    while True: pass")
    assert "stopped at its time limit" in page(tmp_path, slow)


def test_output_before_the_hidden_tests_stays(tmp_path):
    before = page(tmp_path, attempt(RIGHT_F, first="print('a plot of mine')"))
    assert "a plot of mine" in before


def test_a_message_is_matched_in_time_linear_in_its_length():
    from hood.grader.execution.self_judged import _fits

    texts = ["a", *["aa"] * 30, "b"]
    assert not _fits("a" * 100_000, texts)
    assert _fits("a" * 100_000 + "b", texts)
    assert _fits("so", ["so"])
    assert not _fits("so.", ["so"])
    assert not _fits("ab", ["ab", "b"])
