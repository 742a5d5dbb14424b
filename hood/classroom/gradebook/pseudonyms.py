"""Show learners by their names, or by pseudonyms that are the same in every lab."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from hood.atomic_files import secret
from hood.classroom.gradebook.graded import Graded, Reason
from hood.verdict import PartResult, Verdict

KEY_FILE = ".pseudonyms"
KEY_BYTES = 32


@dataclass(frozen=True)
class LearnerNames:
    """Gives the names by which a page shows learners: real names or pseudonyms.

    Without the secret key, nobody can find out which learner a pseudonym belongs to.

    Student ids can be guessed, so a plain hash of them would hide nothing.
    """

    key: bytes | None = None

    @property
    def hidden(self) -> bool:
        """Whether the page must not identify learners."""
        return self.key is not None

    def of(self, graded: Graded) -> str:
        """Return the name or pseudonym by which the page shows a learner."""
        return self.order(graded.student) if self.hidden else graded.name

    def order(self, student: str) -> str:
        """Return the sort key of a student id."""
        if self.key is None:
            return student
        digest = hmac.digest(self.key, student.encode(), hashlib.sha256)
        word = base64.b32encode(digest[:5]).decode().lower()
        return f"learner {word[:4]}-{word[4:]}"

    def problem(self, about: PartResult | Verdict, graded: Graded) -> str:
        """Return the problem with this learner's work, as text that the page may show."""
        return self._without_name(about.anonymous_problem, graded) if self.hidden else about.problem

    def reason(self, reason: Reason, graded: Graded) -> Reason:
        """Return the reason to look at this learner's work, as text that the page may show."""
        if not self.hidden:
            return reason
        text = self._without_name(reason.anonymous or reason.text, graded)
        return Reason(reason.kind, text, reason.cell)

    def _without_name(self, text: str, graded: Graded) -> str:
        """Replace every part of the learner's name and id in a text by an ellipsis."""
        own = {graded.student, *re.findall(r"\w{3,}", f"{graded.name} {graded.student}")}
        for word in sorted(filter(None, own), key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", "…", text, flags=re.IGNORECASE)
        return text


def pseudonyms(course: Path) -> LearnerNames:
    """Return pseudonyms made with the course's own key. The first call creates the key's file.

    Raises:
        UserError: if the file does not contain a key.
        OSError: if the file can't be made or read.
    """
    return LearnerNames(
        secret(
            course / KEY_FILE,
            secrets.token_hex(KEY_BYTES).encode(),
            read=lambda content: bytes.fromhex(content.decode().strip()),
            should=f"the key of the pseudonyms, {2 * KEY_BYTES} hexadecimal digits",
            lost="With a new key all learners have new pseudonyms.",
        )
    )
