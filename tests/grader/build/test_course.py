"""The course's own texts: preserved byte for byte, and no answer in the learners' files."""

from pathlib import Path

import pytest

from grader.build.bundle import is_shared
from grader.build.notebook import to_bytes, to_cells, to_notebook
from grader.build.release import generate
from grader.build.text import assemble, parse
from grader.phase_paths import pages
from tests.grader.build.answers import answers, copied, told
from tests.grader.build.example import readable

ROOT = Path(__file__).resolve().parents[3]
TEXTS = [path for phase in pages(ROOT) for path in (phase.lesson, phase.lab) if path.exists()]
# Files that a question sends its learner to, and that answers therefore share lines with.
GIVEN = {
    ("05_custom_op", "utils/minigpt/model.py"): "exercise 8 begins with the attention there",
    ("05_custom_op", "utils/drivers/custom_op.py"): "exercise 5 is handed the kernels there",
}
# What everybody writes in this form: two of these in a row give no answer away.
IDIOMS = {
    *("optimizer.zero_grad()", "loss.backward()", "optimizer.step()"),
    *("for handle in handles:", "handle.remove()"),
}
LABS = {phase.name: phase.lab for phase in pages(ROOT) if phase.lab.exists()}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_text_to_notebook_to_text_is_the_identity(path):
    content = path.read_text(encoding="utf-8")
    text = parse("text.py", content)
    cells, problems = to_cells("notebook.ipynb", to_notebook(text))
    assert problems == []
    assert assemble(text.prefix, text.cells, cells) == content
    again = parse("text.py", assemble(text.prefix, [], cells))
    assert [cell.fingerprint for cell in again.cells] == [cell.fingerprint for cell in cells]


@pytest.fixture(scope="module")
def releases():
    """The learner's version of every lab, newly made."""
    texts = {name: parse("lab.py", path.read_text(encoding="utf-8")) for name, path in LABS.items()}
    return generate({name: to_bytes(to_notebook(text)) for name, text in texts.items()}, ROOT)


@pytest.mark.slow(2)
@pytest.mark.parametrize("name", LABS)
def test_no_answer_in_release_lessons_or_utils(name, releases):
    secret = answers(parse("lab.py", LABS[name].read_text(encoding="utf-8")))
    assert len(secret) > 3
    given = {f"a new release/{name}.ipynb": releases[name]}
    for folder in ("notebooks", "release", "utils"):
        for path in (ROOT / folder).rglob("*"):
            shown = path.relative_to(ROOT)
            if path.is_file() and is_shared(shown):
                given[shown.as_posix()] = path.read_bytes()
    found = [
        (path, lines)
        for path, text in [(path, readable(path, content)) for path, content in given.items()]
        for answer in secret
        # of its own release not a single line; elsewhere, one of many may stand by chance
        if (
            lines := [
                line
                for line in (told if f"release/{name}" in path else copied)(answer, text)
                if not set(line.split(" / ")) <= IDIOMS
            ]
        )
        and (name, path) not in GIVEN
    ]
    assert found == []


def test_an_answer_is_seen_by_its_lines_or_by_two_in_a_row():
    lab = parse(
        "t.py",
        '# %% solution="x"\n### BEGIN SOLUTION\nwhole = first + second\nreturn whole\n'
        "total = whole.sum()\nreturn total / count\n### END SOLUTION\n\n# %%\nx = first_of(all)\n",
    )
    (answer,) = answers(lab)
    assert answer == ["whole = first + second", "return whole", "total = whole.sum()"] + [
        "return total / count"
    ]
    assert told(answer, "  return whole\n") == ["return whole"]
    assert copied(answer, "def f():\n    return whole\n") == []
    assert copied(answer, "a = 1\n  return whole\n\n  total = whole.sum()\n") == [
        "return whole / total = whole.sum()"
    ]
