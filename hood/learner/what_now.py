"""Show lines below a verdict: which answer was judged, and what to do now.

After a right answer, the lines name the next exercise. After a wrong answer, they contain a text
for a tutor, with the question, the judged code and the verdict. If this copy of the course may show
worked solutions, there is also a button that shows a worked solution. If the course was updated
while this kernel was running, a sentence says so.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from IPython.display import display

from hood.audience import can_move
from hood.course import course
from hood.judge import history
from hood.learner import journal
from hood.learner.contents import PHASES, ROOT, own_notebook
from hood.learner.explain import explained, without_hints
from hood.learner.lab_file import (
    UNREADABLE,
    Exercise,
    Group,
    cells_of,
    groups,
    read_lab,
    text_of,
)
from hood.palette import colour
from hood.phase_paths import WORK
from hood.verdict import FULL, VERDICT_MIME, Status

BOX = (
    "border-left:4px solid {edge};padding:2px 0 4px 14px;margin:0 0 8px;max-width:760px;"
    "line-height:1.5;font-size:var(--jp-ui-font-size1,13px);"
    "font-family:var(--jp-content-font-family,sans-serif);"
    "color:var(--jp-content-font-color1,inherit)"
)
QUIET = "color:var(--jp-content-font-color2,inherit)"
PAPER = (
    "margin:4px 0;padding:6px 10px;max-height:260px;overflow:auto;white-space:pre-wrap;"
    "word-break:normal;overflow-wrap:anywhere;user-select:all;font-size:var(--jp-code-font-size,13px);color:inherit;"
    "background:var(--jp-cell-editor-background,rgba(127,127,127,.12))"
)
BUTTON = (
    "font:inherit;cursor:pointer;padding:2px 10px;border-radius:4px;"
    "border:1px solid var(--jp-border-color1,#999);"
    "background:var(--jp-layout-color2,transparent);color:inherit"
)
STARTED = time.time()  # roughly when this kernel started: a lab's first cell imports this module
_right: set[str] = set()  # exercises with all points in their last verdict in this kernel
_buttons: dict[str, Any] = {}  # by exercise, the box with its current button
COPIES = (
    "navigator.clipboard.writeText(this.nextElementSibling.textContent)"
    ".then(() => { this.textContent = 'Copied' })"
)


def show(name: str, card: dict[str, Any], solution: Callable[[str], None] | None = None) -> None:
    """Display what to do after the verdict on an exercise.

    Args:
        name: the exercise's name.
        card: the verdict's MIME data: its text, and the verdict itself.
        solution: a function that shows an exercise's worked solution; None if it may not be shown.
    """
    status = card.get(VERDICT_MIME, {}).get("status", "")
    full = status in FULL
    notebook = own_notebook()
    mine = _group(name, notebook)
    said = [f'<div style="{QUIET}">{one}</div>' for one in _of_which(mine, notebook)]
    _right.discard(name)
    if full:
        _right.add(name)
        journal.right(name)
        said += [f"<div>{_next(name, notebook)}</div>"] if notebook and mine else []
    elif status != Status.NOT_ATTEMPTED:
        said.append(_for_tutor(name, mine, str(card.get("text/plain", ""))))
    button = solution is not None and not full and can_move()
    if solution is not None and not full and not button:
        said.append(f"<div>{_by_hand(name)}</div>")
    edge = colour("right" if full else "muted" if status == Status.NOT_ATTEMPTED else "wrong")
    page = f'<div style="{BOX.format(edge=edge)}">{"".join(said)}</div>'
    display({"text/html": page, "text/plain": ""}, raw=True)
    if solution is not None and button:
        _button(name, solution)


def _group(name: str, notebook: Path | None) -> Group | None:
    """Return the cells of an exercise in a saved notebook; None if the exercise is not there."""
    try:
        exercises = groups(cells_of(notebook)) if notebook else []
        return next((one for one in exercises if one.name == name), None)
    except (OSError, *UNREADABLE):
        return None


def _of_which(mine: Group | None, notebook: Path | None) -> list[str]:
    """Return sentences about a new verdict: which answer it judges, and when it was given."""
    now = _moment(time.time())
    ran = history.cells()
    answers = (
        {str(stub.get("id", "")): text_of(stub).strip() for stub in mine.stubs} if mine else {}
    )
    known = [ran[one] for one in answers if one in ran]
    failed = [one for one in known if not one.finished]
    said = f"Judged on {now}."
    if failed:
        said = (
            f"Judged on {now}. The last run of your answer's cell{_number(failed[-1])} ended in an "
            "error, so this verdict is on the answer of an earlier run."
        )
    elif known:
        last = max(known, key=lambda one: one.at)
        which = f"your answer as it ran at {_moment(last.at).partition(', ')[2]}{_number(last)}"
        said = f"Judged on {now}: {which}. After a change, run that cell and this cell again."
        saved_anew = (
            _saved_anew(ran[one], answers[one], notebook) for one in answers if one in ran
        )
        if any(saved_anew):
            said = (
                f"Judged on {now}: {which}. The saved notebook has another answer: run the "
                "answer's cell, then this cell."
            )
    restart = (
        "The course was updated after this kernel started: choose Kernel → Restart Kernel, then "
        "run the cells above again."
    )
    return [said, *([restart] if _course_changed() else [])]


def _saved_anew(ran: history.Ran, text: str, notebook: Path | None) -> bool:
    """Return whether a notebook was saved after a cell ran, and has another text of that cell."""
    if notebook is None or ran.source.strip() == text:
        return False
    return notebook.stat().st_mtime > ran.at


def _moment(at: float) -> str:
    day = time.localtime(at)
    return f"{day.tm_mday} {time.strftime('%B, %H:%M:%S', day)}"


def _number(ran: history.Ran) -> str:
    return f" in [{ran.count}]" if ran.count else ""


def _course_changed() -> bool:
    """Return whether a loaded module of the course has changed since this kernel started."""
    packages = ("hood", *course(ROOT).packages)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] in packages and file:
            with suppress(OSError):
                if Path(file).stat().st_mtime > STARTED:
                    return True
    return False


def _next(name: str, notebook: Path) -> str:
    """Return a link to the next exercise that is not done, or to the start page."""
    phase = next((one for one in PHASES if one.name in (notebook.stem, notebook.parent.name)), None)
    every = list(read_lab(phase or PHASES[0], notebook).exercises)
    here = next((number for number, one in enumerate(every) if one.name == name), -1)
    # a verdict of this kernel is newer than the saved notebook
    left = [one for one in every if not one.passing and one.name not in _right]
    after = [one for one in left if every.index(one) > here]
    if one := next(iter(after or left), None):
        words = "" if after else ", above this one"
        return f"Next{words}: {_link(one, notebook)}{_in_words(one)}"
    start = Path(os.path.relpath(ROOT / WORK / "start.ipynb", notebook.parent)).as_posix()
    link = f'<a href="{escape(start)}">start page</a>'
    return f"Every exercise of this lab is done. Continue on the {link}."


def _link(one: Exercise, notebook: Path) -> str:
    link = f"{quote(notebook.name)}#cell-id={one.section}"
    return f'<a href="{escape(link)}">{escape(one.title or one.name)}</a>'


def _in_words(one: Exercise) -> str:
    if not one.words:
        return ""
    return (
        f", a question in words. When you have written your answer, <code>{_call(one.name)}</code>"
        " in a new cell shows a model answer to compare it with."
    )


def _for_tutor(name: str, mine: Group | None, verdict: str) -> str:
    """Return a folded block with the question, the judged code and the verdict, as Markdown."""
    ran = history.cells()
    code = [
        ran[cell].source if cell in ran else text_of(stub)
        for stub in (mine.stubs if mine else [])
        for cell in [str(stub.get("id", ""))]
    ]
    question = without_hints(mine.question) if mine else f"## {name}"
    text = escape(explained(question, code, verdict))
    return (
        "<details><summary>Copy for a tutor: the question, your code and the verdict</summary>"
        f'<button type="button" aria-live="polite" style="{BUTTON}" '
        f'onclick="{escape(COPIES)}">Copy</button>'
        f'<pre tabindex="0" style="{PAPER}">{text}</pre></details>'
    )


def _call(name: str) -> str:
    return f"from hood.learner.check import solution; solution({name!r})"


def _by_hand(name: str) -> str:
    return (
        f"<code>{_call(name)}</code> in a new cell shows the worked solution; your progress "
        "then says that the solution was shown."
    )


def _button(name: str, solution: Callable[[str], None]) -> None:
    """Display a button that shows the solution. Without a kernel, a text says what to run."""
    import ipywidgets as widgets

    button = widgets.Button(
        description="Show the solution",
        tooltip="Your progress on the start page then says that the solution was shown",
        layout=widgets.Layout(width="auto", margin="0 0 4px 18px"),
    )
    place = widgets.Output()
    stack = widgets.VBox([button, place], layout=widgets.Layout(align_items="flex-start"))
    if before := _buttons.pop(name, None):  # the old button is gone, because the cell has run again
        for widget in (before, *before.children):
            widget.close()
    _buttons[name] = stack

    def clicked(_: object) -> None:
        button.disabled = True
        with place:
            solution(name)

    button.on_click(clicked)
    paper = f'<div style="{BOX.format(edge=colour("wrong"))}">{_by_hand(name)}</div>'
    bundle = {**stack._repr_mimebundle_(), "text/html": paper}
    display(bundle | {"text/plain": ""}, raw=True)
