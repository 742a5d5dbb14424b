"""The verdict in a learner's own notebook: what ``utils.notebook.verdict`` calls.

It is judged there, too, and shown with a link to the lesson, where one leads there. Nothing is
recorded.
"""

from __future__ import annotations

import contextlib
import html
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from IPython import get_ipython
from IPython.display import Markdown, display

from hood.classroom.lesson_links import link_to
from hood.judge.backquotes import in_code
from hood.judge.report import PartWords, VerdictReport
from hood.judge.verify import judged
from hood.verdict import FULL, Cause, Status, Verdict
from utils.notebook import cell_clock, history, journal, what_now
from utils.notebook.style import MUTED, RIGHT, WRONG

# JupyterLab's own variables where they exist, so that the card follows the light and dark theme.
CARD = (
    "border-left:4px solid {edge};padding:4px 0 6px 14px;margin:8px 0;max-width:760px;"
    "line-height:1.5;font-size:var(--jp-content-font-size1,14px);"
    "font-family:var(--jp-content-font-family,sans-serif);"
    "color:var(--jp-content-font-color1,inherit)"
)
CODE = (
    "margin:4px 0;padding:6px 10px;overflow-x:auto;white-space:pre-wrap;"
    "word-break:normal;overflow-wrap:anywhere;"  # JupyterLab would cut a narrow line inside a word
    "font-size:var(--jp-code-font-size,13px);color:inherit;"
    "background:var(--jp-cell-editor-background,rgba(127,127,127,.12))"
)
COLOURS = {Status.RIGHT: RIGHT, Status.WRONG: WRONG}


class CellStopped(Exception):
    """The rest of the cell is not run; what Jupyter shows is the message, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def show_verdict(name: str) -> None:
    """Judge the exercise ``name`` with what the notebook defines, and display the verdict.

    Below it stands what to do now. Raises CellStopped when somebody stopped it, or after a verdict
    that had to stop the answer: the next line of the cell would call the same code, without a
    limit; LookupError if there is no such exercise; UserError if the setting ``lesson_url`` is not
    an address.
    """
    # Imported here, because the service shows cards, and needs no torch for that.
    from hood.judge.catalogue import find_check

    try:
        phase, check = find_check(name)
    except LookupError:
        from hood.judge.solutions import question_in_words

        if question_in_words(name) is None:
            raise
        print(
            f"{name} is a question in words, which no program judges. When you have written your "
            "answer, this shows one to compare it with:\n\n"
            f"from utils.notebook.verdict import solution; solution({name!r})"
        )
        return
    shell = get_ipython()
    defined = shell.user_ns if shell else {}
    missing = [one for one in check.names if one not in defined]
    if missing:
        print(f"not defined yet: {', '.join(missing)}. Run the cells above this one first.")
        return
    try:
        cell_clock.say(f"checking {name}")
        with warnings.catch_warnings(record=True) as heard:
            verdict = judged(check, check.thing_in(defined))
    except KeyboardInterrupt:
        raise CellStopped(
            f"{name}: you stopped its check, so there is no verdict. The rest of this cell did not "
            "run."
        ) from None
    where = Path.cwd()
    warned = dict.fromkeys(f"{one.category.__name__}: {one.message}" for one in heard)
    card = VerdictCard(verdict, phase.number, lambda reads: link_to(phase, reads, where), warned)
    card.show()
    asked = partial(show_solution, opened=True)
    what_now.show(name, VerdictReport._repr_mimebundle_(card), asked)
    if verdict.status in FULL and shell:
        with contextlib.suppress(LookupError):  # a class's own exercise may have none
            _display_solution(name)
    if any(part.cause is Cause.TIMEOUT for part in verdict.parts):
        raise CellStopped(f"{name}: a call did not end in time. The rest of this cell did not run.")


def show_solution(name: str, opened: bool = False) -> None:
    """Display a worked solution of the exercise ``name``, or a model answer to a question in words.

    It is folded, unless it is ``opened``. The learner's progress says that it was shown. Raises
    LookupError if there is no such exercise or question, or no solution of it.
    """
    _display_solution(name, opened)
    journal.shown(name)


def _display_solution(name: str, opened: bool = False) -> None:
    from hood.judge.solutions import solution_of

    page = solution_of(name)
    display(Markdown(page.replace("<details>", "<details open>", 1) if opened else page))


class VerdictCard(VerdictReport):
    """A verdict as a card in HTML; as plain text and as JSON it is a :class:`VerdictReport`.

    The first part that is wrong is told in full, and each other one in a line that unfolds.

    Attributes:
        link: returns the address of a section of the lesson, by its heading; empty if none leads
            there.
        warned: what the code warned of while it was checked.
    """

    def __init__(
        self,
        verdict: Verdict,
        lesson: str,
        link: Callable[[str], str],
        warned: Iterable[str] = (),
    ):
        super().__init__(verdict, lesson)
        self.link, self.warned = link, list(warned)

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(f"  warned of: {one}" for one in self.warned)])

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        return {**super()._repr_mimebundle_(**kwargs), "text/html": self.as_html()}

    def show(self) -> None:
        """Display the card, and note beside it in the notebook which cells it is of."""
        if get_ipython() is None:
            print(self)
        else:
            display(self, metadata=history.stamp())

    def as_html(self) -> str:
        """Return the card. Every text in it is escaped, because some are the learner's own."""
        verdict, full = self.verdict, self.verdict.status in FULL
        attempted = verdict.status is not Status.NOT_ATTEMPTED
        inner = [f"<div><b>{self.total()}</b>{self._bar()}</div>"]
        if attempted:
            inner += map(self._part, self.parts())
        else:
            inner.append("<div>Not attempted yet.</div>")
        if not full:
            inner.append(self._to_read(verdict.section))
        if self.warned:
            lines = "\n".join(map(html.escape, self.warned))
            several = f"{len(self.warned)} warnings" if len(self.warned) > 1 else "a warning"
            summary = f"{several} while your code was checked"
            inner.append(_folded(summary, f'<pre style="{CODE}">{lines}</pre>'))
        edge = RIGHT if full else WRONG if attempted else MUTED
        return f'<div style="{CARD.format(edge=edge)}">{"".join(inner)}</div>'

    def _bar(self) -> str:
        """One piece for each part, as long as the part's points, in the part's colour."""
        pieces = "".join(
            f'<span style="flex:{part.points:g};background:{COLOURS.get(part.status, MUTED)};'
            'height:8px;border-radius:2px;margin-right:2px"></span>'
            for part in self.verdict.parts
        )
        return f'<div aria-hidden="true" style="display:flex;margin:4px 0 8px">{pieces}</div>'

    def _to_read(self, heading: str) -> str:
        where: str = in_code(f"lesson {self.verdict.lesson}, “{heading}”")
        if link := self.link(heading):
            where = f'<a href="{html.escape(link)}">{where}</a>'
        return f"<div>To read: {where}</div>"

    def _part(self, part: PartWords) -> str:
        colour = COLOURS.get(part.status, MUTED)
        said: list[str] = [in_code(one) for one in filter(None, (*part.reasons, part.hint))]
        if part.example:
            said.append(
                f'For example, to paste:<pre style="{CODE}">{html.escape(part.example)}</pre>'
            )
        more = "".join(f"<div>{one}</div>" for one in said)
        title = f"<b>{in_code(part.name)}</b> ({part.share})"
        if part.later:
            more += self._to_read(part.reads) if part.reads else ""
            title, more = "", _folded(f"{title}: {in_code(part.brief)}", more)
        return (
            '<div style="display:flex;gap:10px;margin-bottom:6px">'
            f'<div style="flex:0 0 62px;color:#fff;background:{colour};border-radius:3px;'
            f'font-size:12px;text-align:center;height:20px;line-height:20px">{part.word}</div>'
            f'<div style="flex:1;min-width:0">{title}{more}</div></div>'
        )


def _folded(summary: str, inner: str) -> str:
    """Return what a click unfolds; the summary is HTML, too."""
    style = "cursor:pointer;white-space:nowrap;overflow:hidden;text-overflow:ellipsis"
    return f'<details><summary style="{style}">{summary}</summary>{inner}</details>'
