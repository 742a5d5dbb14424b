"""Make the pages: the list of questions, and a page for each question with its rubric."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup

from hood.classroom.formats.page_style import render
from hood.classroom.marking.book import MAX_REMARK, Question, Sheet
from hood.classroom.marking.share import Share

HERE = Path(__file__).parent
TEMPLATES = HERE / "templates"
# The pages run and load only their own script and style. They load nothing from an answer. The only
# form is the form that asks for a token.
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)

HEADERS = {  # of each page; no browser may cache a page
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def stylesheet() -> str:
    """Return the style sheet: the look of all pages, and the styles of the marking pages."""
    return render(TEMPLATES, "marking.css.j2")


def script() -> str:
    """Return the script of a question's page."""
    return (HERE / "static" / "marking.js").read_text(encoding="utf-8")


def index_page(questions: Sequence[Question], share: Share, base: str) -> str:
    """Return the page that lists the questions of each lab.

    Args:
        share: the marker's share of the answers.
        base: the address of these pages, with a slash at its end.
    """
    labs = [(lab, list(some)) for lab, some in groupby(questions, key=lambda one: one.lab)]
    return render(TEMPLATES, "index.html.j2", labs=labs, share=share, base=base)


def problem_page(problem: str, base: str) -> str:
    """Return a page that says why there is nothing to mark; ``problem`` has no full stop."""
    return render(TEMPLATES, "index.html.j2", labs=[], share=Share(), base=base, problem=problem)


def login_page(problem: str, base: str, to: str) -> str:
    """Return a page that asks for a token, and says why the previous token was refused.

    Args:
        to: the name of the page to open after the login; empty for the home page.
    """
    return render(TEMPLATES, "login.html.j2", problem=problem, base=base, to=to)


def question_page(sheet: Sheet, share: Share, rendered: Sequence[str], base: str, xsrf: str) -> str:
    """Return the page of a question; its script fetches the answers.

    Args:
        rendered: the HTML of the question, of its rubric's introduction, and of each box.
        xsrf: the token that a save must contain.
    """
    text, intro, *boxes = map(Markup, rendered)
    rubric = sheet.rubric
    data: dict[str, Any] = {
        "question": sheet.question.id,
        "most": sheet.question.points,
        "points": rubric.points,
        "steps": rubric.steps,
        "answers": [entry._asdict() for entry in sheet.entries],
        "share": share.words,
        "remarks": sheet.remarks,
        "longest": MAX_REMARK,
        "base": base,
        "xsrf": xsrf,
    }
    worth = rubric.points or (None,) * len(boxes)
    return render(
        TEMPLATES,
        "question.html.j2",
        question=sheet.question,
        text=text,
        intro=intro,
        boxes=list(zip(boxes, worth, strict=True)),
        data=data,
        share=share,
        base=base,
    )
