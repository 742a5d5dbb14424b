"""Assert what must be true after any attack."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from nbformat.notebooknode import NotebookNode

from hood.grader.run_record import RunRecord
from hood.grader.submission.notes import NoteKind
from hood.untrusted import UNSEEN
from hood.verdict import VERDICT_MIME
from tests.attacks.browser import dangers, leads_away
from tests.attacks.catalogue import Attack, every_attack
from tests.attacks.commit import commit
from tests.attacks.ground import LAB, Ground, Outcome, left_behind
from tests.attacks.submission import lazy

FULL = {"twice": 2.0, "row_sums": 3.0, "corner": 2.0}
MIB = 2**20
PAGE = 4 * MIB  # characters of a page of feedback
# An attack may take its own seconds, plus HONEST times the seconds of an honest submission. The
# honest submission is graded just before or after the attack, because the machine's load changes.
HONEST = 10


def attacks_of(*families: str) -> list[Any]:
    """Return the attacks of some families as parameters for a test."""
    return [
        pytest.param(attack, id=str(attack))
        for attack in every_attack()
        if attack.family in families
    ]


def withstand(attack: Attack, ground: Ground, honest: Outcome) -> None:
    """Assert that an attack gains no points and no secrets, harms nobody, and ends in time."""
    outcome = commit(attack, ground)
    lost = {name: 0.0 for name in attack.risks if outcome.scores[name] == 0}
    assert outcome.scores == attack.earns | lost
    for exercise in attack.gains:
        assert outcome.verdicts[exercise].claims
    assert mistakes(outcome) <= {attack.tells}
    said = [verdict.to_json() for verdict in outcome.verdicts.values()]
    assert not UNSEEN.search(outcome.notes + json.dumps(said, ensure_ascii=False))
    reports = [o for c in outcome.nb.cells for o in c.get("outputs", []) if is_report(o)]
    assert len(reports) == len(outcome.scores)
    notes = RunRecord.of(outcome.nb.metadata).notes
    unread = any(note.kind is NoteKind.UNREADABLE for note in notes)
    assert outcome.page.count('<div class="verdict">') == (0 if unread else len(reports))
    assert ground.spilled(outcome) == []
    assert dangers(outcome.page) == dangers(honest.page)
    assert leads_away(outcome.page) == []
    assert len(outcome.page) < PAGE
    assert re.search(attack.tells, outcome.told), outcome.told[:2000]
    assert outcome.memory < 200 * MIB
    assert left_behind() == []
    after = grade_honest(ground)
    assert outcome.seconds < attack.seconds + HONEST * max(honest.seconds, after.seconds)
    assert after.scores == FULL
    assert outputs(after) == outputs(honest)


def grade_honest(ground: Ground, with_page: bool = False) -> Outcome:
    """Grade a submission with right answers and no attack."""
    folder = ground.course / "submitted" / "honest" / LAB
    folder.mkdir(parents=True, exist_ok=True)
    work = lazy(ground.release, ground.host, folder)
    work.answer_all()
    path = folder / f"{LAB}.ipynb"
    path.write_bytes(work.bytes())
    return ground.grade(path, with_page=with_page)


def is_report(output: NotebookNode) -> bool:
    """Return whether an output has a verdict, as the grader's own report does."""
    return VERDICT_MIME in output.get("data", {})


def mistakes(outcome: Outcome) -> set[str]:
    """Return the names of exceptions that show a bug in the attack's own code."""
    problems = [p.problem for v in outcome.verdicts.values() for p in v.parts]
    raised = re.findall(r"raised (\w+)", "\n".join(problems))
    for cell in outcome.nb.cells:
        raised += [o.ename for o in cell.get("outputs", []) if o.output_type == "error"]
    return set(raised) & {
        "NameError",
        "SyntaxError",
        "AttributeError",
        "ModuleNotFoundError",
        "TypeError",
    }


def outputs(outcome: Outcome) -> str:
    """Return all outputs of the graded notebook, with the seed replaced by a constant."""
    shown = [cell.get("outputs") for cell in outcome.nb.cells]
    return json.dumps(shown).replace(outcome.seed, "seed")
