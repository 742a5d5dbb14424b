"""The verdict in a learner's own notebook, and its card."""

import re
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
import torch

from hood.judge import history
from hood.judge.card import VerdictCard
from hood.learner.local_judge import show_solution, show_verdict
from hood.phase_paths import ROOT
from hood.verdict import VERDICT_MIME, Status
from tests.live_kernel import live_kernel, run_cell

BYTES_OF = """
def bytes_of(t):
    return t.numel() * t.element_size(), t.untyped_storage().nbytes()
"""
OFFSET_FORGOTTEN = """
def byte_offset(t, index):
    places = (i + n if i < 0 else i for i, n in zip(index, t.shape, strict=True))
    return sum(i * s for i, s in zip(places, t.stride(), strict=True)) * t.element_size()
"""
UNWRITTEN = "".join(
    f"def {name}(*_):\n    raise NotImplementedError\n"
    for name in ("transpose_view", "narrow_view", "expand_view", "diagonal_view")
)
WARNING = "    warnings.warn('<slow>', stacklevel=2)\n"
HOSTILE = """
def bytes_of(t):
    raise ValueError("<img src=x onerror=alert(1)> and `<i>`")
"""


class Words(HTMLParser):
    """Collects a page's text, tags and links."""

    def __init__(self, page):
        super().__init__()
        self.text, self.tags, self.links = "", set(), []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [value for name, value in attributes if name == "href"]

    def handle_data(self, data):
        self.text += data


class Notebook(SimpleNamespace):
    """A notebook: its names, the cards that it displayed, and the folded solutions."""

    def run(self, cell):
        history.begin(SimpleNamespace(cell_id=None, raw_cell=cell))
        exec(cell, self.user_ns)

    def card_of(self, name):
        show_verdict(name)
        (card,) = self.shown
        return card, Words(card.as_html())


@pytest.fixture
def notebook(monkeypatch):
    """A notebook in release/01_tensors."""
    made = Notebook(user_ns={"torch": torch}, shown=[], folded=[], below=[])
    monkeypatch.chdir(ROOT / "release" / "01_tensors")
    monkeypatch.setattr(history, "_cells", {})
    for module in ("hood.learner.local_judge", "hood.judge.verify"):
        monkeypatch.setattr(f"{module}.get_ipython", lambda: made)
    monkeypatch.setattr(VerdictCard, "show", lambda card: made.shown.append(card))
    monkeypatch.setattr("hood.learner.local_judge.display", lambda it: made.folded.append(it.data))
    monkeypatch.setattr(
        "hood.learner.local_judge.what_now.show", lambda *said: made.below.append(said)
    )
    return made


def test_a_right_answer_earns_all_its_points(notebook):
    notebook.run(BYTES_OF)
    card, page = notebook.card_of("bytes_of")
    assert card.verdict.status is Status.RIGHT
    assert "2 of 2 points" in page.text
    assert page.links == []


def test_a_worked_solution_is_shown_below_a_full_verdict_and_on_demand(notebook):
    notebook.run(OFFSET_FORGOTTEN)
    notebook.card_of("byte_offset")
    assert notebook.folded == []
    show_solution("byte_offset")
    notebook.shown.clear()
    notebook.run(BYTES_OF)
    notebook.card_of("bytes_of")
    asked, given = notebook.folded
    assert "a worked solution of <code>byte_offset</code>" in asked.lower()
    assert "a worked solution of <code>bytes_of</code>" in given.lower()
    with pytest.raises(LookupError, match="no check is named"):
        show_solution("bytes_off")


def test_the_next_step_below_a_verdict_may_show_the_solution_opened(notebook):
    notebook.run(OFFSET_FORGOTTEN)
    notebook.card_of("byte_offset")
    [(name, data, solution)] = notebook.below
    assert name == "byte_offset"
    assert data[VERDICT_MIME]["status"] == "partly"
    solution(name)
    [page] = notebook.folded
    assert page.startswith("<details open><summary>A worked solution of <code>byte_offset</code>")


def test_a_question_in_words_is_not_judged_and_has_a_model_answer(notebook, capsys):
    show_verdict("why_scalar")
    assert notebook.shown == []
    said = capsys.readouterr().out
    assert "which no program judges" in said
    assert "from hood.learner.check import solution; solution('why_scalar')" in said
    show_solution("why_scalar")
    assert "A model answer to <code>why_scalar</code>" in notebook.folded[0]
    with pytest.raises(LookupError, match="no check is named"):
        show_verdict("why_vector")


def test_a_known_mistake_is_named_with_an_example_and_the_section(notebook):
    notebook.run(OFFSET_FORGOTTEN)
    card, page = notebook.card_of("byte_offset")
    assert "“offset forgotten”" in page.text
    assert page.links == ["../../notebooks/01_tensors.ipynb#cell-id=the-address-of-one-element"]
    (example, *_) = [part.example for part in card.verdict.parts if part.example]
    assert example.call in page.text
    assert eval(example.call, notebook.user_ns) == int(example.got)
    assert int(example.got) != int(example.expected)


def test_without_the_lesson_the_card_only_names_it(notebook, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    notebook.run(OFFSET_FORGOTTEN)
    _, page = notebook.card_of("byte_offset")
    assert page.links == []
    assert "To read: lesson 01, “The address of one element”" in page.text


def test_several_functions_are_judged_together(notebook):
    notebook.run(UNWRITTEN)
    card, page = notebook.card_of("views_by_hand")
    assert card.verdict.status is Status.NOT_ATTEMPTED
    assert "Not attempted yet." in page.text


def test_an_undefined_name_is_reported(notebook, capsys):
    notebook.user_ns["narrow_view"] = print
    show_verdict("views_by_hand")
    assert not notebook.shown
    assert "not defined yet: transpose_view, expand_view, diagonal_view." in capsys.readouterr().out


def test_the_learners_words_are_shown_as_text(notebook):
    notebook.run(HOSTILE)
    _, page = notebook.card_of("bytes_of")
    assert "<img src=x onerror=alert(1)> and <i>" in page.text, "backquotes are drawn as code"
    assert page.tags & {"img", "i", "code"} == {"code"}


def test_the_codes_warnings_are_folded_into_the_card(notebook, recwarn):
    notebook.run("import warnings\n" + BYTES_OF.replace("    return", WARNING + "    return"))
    card, page = notebook.card_of("bytes_of")
    folded = page.text.partition("a warning while your code was checked")[2]
    assert folded == "UserWarning: <slow>"
    assert str(card).endswith("\n  warning: UserWarning: <slow>")
    assert [one for one in recwarn if "slow" in str(one.message)] == []


def test_programs_read_the_same_verdict(notebook):
    notebook.run(BYTES_OF)
    card, _ = notebook.card_of("bytes_of")
    data = card._repr_mimebundle_()
    assert set(data) == {"text/plain", "text/html", VERDICT_MIME}
    assert data[VERDICT_MIME]["earned"] == 2.0


ENDLESS = """
import time
from hood.judge import watched

def bytes_of(t):
    while True:
        pass
"""
CHECKED = """
from hood.learner.local_judge import show_solution, show_verdict
show_verdict("bytes_of")
print("the next line")
"""


@pytest.fixture(scope="module")
def kernel():
    with live_kernel() as (manager, client):
        run_cell(client, ENDLESS)
        yield manager, client


def test_an_endless_loop_ends_with_a_verdict_and_the_cell_with_it(kernel):
    _, client = kernel
    run_cell(client, "watched.CALL_SECONDS = 3")
    shown, ended = run_cell(client, CHECKED)
    [verdict] = [data for data in shown if VERDICT_MIME in data]
    pages = [data["text/html"] for data in shown if data is not verdict]
    clock = [page for page in pages if "opacity" in page]  # may run on beside it
    assert any("Copy for a tutor" in page for page in pages), "a stopped answer, too"
    assert any(re.search(r"checking bytes_of … \d+ s", words) for words in clock)
    assert verdict[VERDICT_MIME]["earned"] == 0
    said = " ".join(verdict["text/plain"].split())
    assert "(an endless loop, or code that is too slow; the limit is 3 s for a call)" in said
    assert ended == "bytes_of: a call did not end in time. The rest of this cell did not run."


def test_stop_ends_the_cell_and_says_so(kernel):
    manager, client = kernel
    run_cell(client, "watched.CALL_SECONDS = 3600")

    def stop(shown):
        if "checking bytes_of …" in shown["text/html"]:
            manager.interrupt_kernel()

    shown, ended = run_cell(client, CHECKED, after=stop)
    assert all("text/plain" in data and not data["text/plain"] for data in shown), "no verdict"
    assert ended.startswith("bytes_of: you stopped the check, so there is no verdict.")
