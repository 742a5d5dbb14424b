"""Show a verdict as a card in a notebook in JupyterLab."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from typing import Any

from IPython import get_ipython
from IPython.display import display

from hood.judge import history
from hood.judge.backquotes import as_sentence, in_code
from hood.judge.report import PartWords, VerdictReport
from hood.palette import colour
from hood.verdict import FULL, Status, Verdict

# JupyterLab's variables give the card the colours of the light or the dark theme.
CARD = (
    "border-left:4px solid {edge};padding:4px 0 6px 14px;margin:8px 0;max-width:760px;"
    "line-height:1.5;font-size:var(--jp-content-font-size1,14px);"
    "font-family:var(--jp-content-font-family,sans-serif);"
    "color:var(--jp-content-font-color1,inherit)"
)
CODE = (
    "margin:4px 0;padding:6px 10px;white-space:pre-wrap;"
    "word-break:normal;overflow-wrap:anywhere;"  # JupyterLab itself breaks lines inside words
    "font-size:var(--jp-code-font-size,13px);color:inherit;"
    "background:var(--jp-cell-editor-background,rgba(127,127,127,.12))"
)
LIST = "list-style:none;margin:0;padding:0"
COLOURS = {Status.RIGHT: "right", Status.WRONG: "wrong"}  # names in the palette


class VerdictCard(VerdictReport):
    """A verdict as a card in HTML; for plain text and JSON, see :class:`VerdictReport`.

    The card shows the first wrong part in full. Every other wrong part has one line; a click on the
    line shows the rest.

    Attributes:
        link: a function that takes a section's heading, and returns the section's address or an
            empty text.
        warned: the warnings that the code caused during the check.
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
        return "\n".join([super().__str__(), *(f"  warning: {one}" for one in self.warned)])

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        return {**super()._repr_mimebundle_(**kwargs), "text/html": self.as_html()}

    def show(self) -> None:
        """Display the card. The output's metadata names the cells that the verdict judges."""
        if get_ipython() is None:
            print(self)
        else:
            display(self, metadata=history.stamp())

    def as_html(self) -> str:
        """Return the card. All texts in it are escaped, because the learner wrote some of them."""
        verdict, full = self.verdict, self.verdict.status in FULL
        attempted = verdict.status is not Status.NOT_ATTEMPTED
        heading = f"{html.escape(verdict.check)}: {self.total()}"
        inner = [
            f'<div role="heading" aria-level="3" aria-label="{heading}"><b>{self.total()}</b></div>'
            + self._bar()
        ]
        if attempted and not verdict.parts:
            inner.append(f"<div>{in_code(as_sentence(verdict.problem))}</div>")
        elif attempted:
            inner += [f'<ul style="{LIST}">', *map(self._part, self.parts()), "</ul>"]
        else:
            inner.append("<div>Not attempted yet.</div>")
        if not full and verdict.section:
            inner.append(self._to_read(verdict.section))
        if self.warned:
            lines = "\n".join(map(html.escape, self.warned))
            several = f"{len(self.warned)} warnings" if len(self.warned) > 1 else "a warning"
            summary = f"{several} while your code was checked"
            inner.append(_folded(summary, f'<pre style="{CODE}">{lines}</pre>'))
        edge = colour("right" if full else "wrong" if attempted else "muted")
        return f'<div style="{CARD.format(edge=edge)}">{"".join(inner)}</div>'

    def _bar(self) -> str:
        """Return a bar with a piece for each part.

        A piece's colour shows the part's status, and its width shows the part's points.
        """
        pieces = "".join(
            f'<span style="flex:{part.points:g};background:{_colour(part.status)};'
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
        ground = _colour(part.status)
        reasons = map(as_sentence, filter(None, (*part.reasons, part.hint)))
        said: list[str] = [in_code(one) for one in reasons]
        if part.example:
            call = f'<code style="background:none">{html.escape(part.example)}</code>'
            said.append(f'For example, to paste:<pre style="{CODE}">{call}</pre>')
        more = "".join(f"<div>{one}</div>" for one in said)
        title = f"<b>{in_code(part.name)}</b> ({part.share})"
        if part.later:
            more += self._to_read(part.reads) if part.reads else ""
            title, more = "", _folded(f"{title}: {in_code(part.brief)}", more)
        return (
            '<li style="display:flex;gap:10px;margin:0 0 6px">'
            f'<div style="flex:0 0 62px;color:#fff;background:{ground};border-radius:3px;'
            f'font-size:12px;text-align:center;height:20px;line-height:20px">{part.word}</div>'
            f'<div style="flex:1;min-width:0">{title}{more}</div></li>'
        )


def _colour(status: Status) -> str:
    return colour(COLOURS.get(status, "muted"))


def _folded(summary: str, inner: str) -> str:
    """Return HTML with a summary, and a text that unfolds when the summary is clicked."""
    style = "cursor:pointer;white-space:nowrap;overflow:hidden;text-overflow:ellipsis"
    return f'<details><summary style="{style}">{summary}</summary>{inner}</details>'
