"""A card read aloud: what it says, in which order, and in which roles."""

import re
from html.parser import HTMLParser

import pytest

from hood.judge.card import VerdictCard
from hood.verdict import Cause, Example, PartResult, Status, Verdict

HEADING = "Row-major strides"
LINK = "lesson.ipynb#cell-id=row-major-strides"
WHY = "the rows were counted from 1. They should be counted from 0."
RIGHT = PartResult("two dimensions", 1.0, 1.0, Status.RIGHT)
WRONG = PartResult(
    *("no dimensions", 1.0, 0.0, Status.WRONG, Cause.WRONG_RESULT),
    problem="returned 1, expected 0",
    misconception="counted from 1",
    example=Example("row_of(`<x>`)", "0", "1"),
)
SLOW = PartResult(
    *("two dimensions", 2.0, 0.0, Status.WRONG, Cause.TIMEOUT), problem="returned no answer in time"
)
LATER = PartResult(
    *("one `<b>`", 1.0, 0.0, Status.WRONG, Cause.WRONG_RESULT), problem="raised `<i>`: no"
)


def card(status, *parts, **more):
    more = {"explanations": {"counted from 1": WHY}} | more
    points = sum(part.points for part in parts) or 2.0
    verdict = Verdict("row_of", points, status, parts, reads=HEADING, **more)
    return VerdictCard(verdict, "01", lambda _: LINK)


class Listened(HTMLParser):
    """What a listener hears: texts, with a mark where an element with a role begins."""

    MARKS = {"li": "item:", "code": "code:", "a": "link:", "summary": "fold:"}

    def __init__(self, page):
        super().__init__()
        self.said = []
        self.silent = 0
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if self.silent or found.get("aria-hidden") or found.get("aria-label"):
            self.silent += 1
        self.said += filter(None, [found.get("aria-label") and f"{found['role']}:"])
        self.said += filter(None, [found.get("aria-label"), self.MARKS.get(tag)])

    def handle_endtag(self, tag):
        self.silent = max(0, self.silent - 1)

    def handle_data(self, data):
        self.said += [] if self.silent else [data.strip()]


def heard(page):
    return re.sub(r"\s+", " ", " ".join(Listened(page).said)).replace(" .", ".")


READ = f"To read: link: lesson 01, “{HEADING}”"
CASES = {
    "right": (
        card(Status.RIGHT, RIGHT),
        "heading: row_of: 1 of 1 point item: right two dimensions (1 of 1)",
        "row_of: 1 of 1 point.",
    ),
    "wrong": (
        card(Status.PARTLY, WRONG, RIGHT, LATER),
        "heading: row_of: 1 of 3 points "
        f"item: not yet no dimensions (0 of 1) “counted from 1”: {WHY} For example, to paste: "
        "code: row_of(`<x>`) # expected 0, got 1 "
        "item: right two dimensions (1 of 1) "
        "item: not yet fold: one code: <b> (0 of 1): raised code: <i> : no "
        f"Raised code: <i> : no. {READ}",
        f"row_of: 1 of 3 points. Not yet: no dimensions. “counted from 1”: {WHY}",
    ),
    "out of time": (
        card(Status.WRONG, SLOW),
        "heading: row_of: 0 of 2 points item: not yet two dimensions (0 of 2) "
        f"Returned no answer in time. {READ}",
        "row_of: 0 of 2 points. Not yet: two dimensions. Returned no answer in time.",
    ),
    "blank": (
        card(Status.NOT_ATTEMPTED, problem="not attempted yet"),
        f"heading: row_of: 0 of 2 points Not attempted yet. {READ}",
        "row_of: 0 of 2 points. Not attempted yet.",
    ),
    "a name is missing": (
        card(Status.NOT_RUN, problem="`row_of` is not defined"),
        f"heading: row_of: 0 of 2 points code: row_of is not defined. {READ}",
        "row_of: 0 of 2 points. row_of is not defined.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_card_is_heard_in_the_order_points_status_mistake_call_and_link(case):
    shown, said, announced = CASES[case]
    assert heard(shown.as_html()) == said
    assert shown.heard() == announced
