"""Who is who on the page: names, or pseudonyms that stay the same from lab to lab."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from grader.results.gradebook import Graded, Reason
from grader.verdict import PartResult, Verdict

KEY_FILE = ".pseudonyms"


@dataclass(frozen=True)
class Names:
    """Shows learners as they are.

    Attributes:
        hidden: whether nothing that leads to a learner may appear.
    """

    hidden: bool = False

    def of(self, one: Graded) -> str:
        """What a learner is called."""
        return one.name

    def order(self, student: str) -> str:
        """Sorts student ids."""
        return student

    def problem(self, about: PartResult | Verdict, one: Graded) -> str:
        """What was wrong with this learner's work, as it may be shown."""
        return about.problem

    def reason(self, reason: Reason, one: Graded) -> Reason:
        """Why a person should look at this learner's work, as it may be shown."""
        return reason


@dataclass(frozen=True)
class Pseudonyms(Names):
    """Shows learners under names that only the holder of the key can lead back.

    Args:
        key: secret bytes. Student ids can be guessed, so a plain hash of them would hide nothing.
    """

    key: bytes = b""
    hidden: bool = True

    def of(self, one: Graded) -> str:
        return self.order(one.student)

    def order(self, student: str) -> str:
        digest = hmac.digest(self.key, student.encode(), hashlib.sha256)
        word = base64.b32encode(digest[:5]).decode().lower()
        return f"learner {word[:4]}-{word[4:]}"

    def problem(self, about: PartResult | Verdict, one: Graded) -> str:
        return self._without_name(about.anonymous_problem, one)

    def reason(self, reason: Reason, one: Graded) -> Reason:
        text = self._without_name(reason.anonymous or reason.text, one)
        return Reason(reason.kind, text, reason.cell)

    def _without_name(self, text: str, one: Graded) -> str:
        """A text in which no part of the learner's name or id stands."""
        own = {one.student, *re.findall(r"\w{3,}", f"{one.name} {one.student}")}
        for word in sorted(filter(None, own), key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", "…", text, flags=re.IGNORECASE)
        return text


def pseudonyms(course: Path) -> Pseudonyms:
    """Pseudonyms by the course's own key, which is made the first time and kept beside the marks.

    Without that file nobody can lead a pseudonym back to a learner.
    """
    path = course / KEY_FILE
    try:
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(secrets.token_hex(32))
    except FileExistsError:
        pass
    return Pseudonyms(key=bytes.fromhex(path.read_text().strip()))
