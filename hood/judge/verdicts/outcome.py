"""Play a case with somebody's code: return the result and the side effects of the calls."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from hood.judge.checks.exercise import Case, Check
from hood.judge.connection.codec import NotByValue
from hood.judge.connection.drivers import LearnersFault, NoDriver
from hood.judge.connection.rpc_client import Connection, ConnectionLost, OutOfTime
from hood.judge.source.accounting import Surroundings
from hood.judge.source.by_hand import can_be_heard
from hood.judge.verdicts.subject import CallEffects, Subject, SubjectRaised, read_whole
from hood.verdict import Cause

OTHER_KIND = "a value of a kind that the exercise does not allow"
# A part of a RuntimeError's message: torch has no exception type for a CPU that runs out of memory.
OUT_OF_MEMORY = "can't allocate memory"


@dataclasses.dataclass(frozen=True)
class CaseOutcome:
    """The outcome of one case: a value or an exception, and the side effects of the calls."""

    value: Any = None  # what the case returned
    raised: SubjectRaised | None = None  # what the code raised, or None
    calls: tuple[CallEffects, ...] = ()  # the effects of each call
    unusable: str = ""  # what came in place of a usable value, in words after "returned"
    unprocessed: bool = False  # whether the case failed to process the returned value
    got: Any = None  # the last call's result, if the case failed to process this result
    cause: Cause = Cause.NONE  # why there is no outcome, if the code could not be called
    claims: tuple[str, ...] = ()  # facts that only the learner's process reports
    # The recorded calls of torch; see :class:`Subject`.
    called: Mapping[str, int] = dataclasses.field(default_factory=dict)
    around: Surroundings = Surroundings()  # the process's report on modules

    def ran_short(self) -> bool:
        """Return whether the machine had too little memory for the case."""
        raised = self.raised
        return raised is not None and (
            MemoryError.__name__ in raised.kinds or OUT_OF_MEMORY in raised.message
        )


def play(check: Check, connection: Connection, c: Case) -> CaseOutcome:
    """Play one case with the code at the other end of ``connection``.

    Raises:
        OutOfTime: the code was interrupted.
        ConnectionLost: the code can no longer be called.
        MemoryError: this process has too little memory.
        NoDriver: the case names an unknown driver.
    """
    rule = check.by_hand
    traced = rule is not None and rule.needs_trace
    how = {"trace": traced, "listen": can_be_heard(rule), "watch": check.containers_kept}
    subject = Subject(connection, **how)
    found: dict[str, Any]
    try:
        found = {"value": read_whole(c.play(subject)), "got": subject.got}
    except SubjectRaised as error:  # a traceback would keep the values of the frames alive
        found = {"raised": error.with_traceback(None)}
    except LearnersFault as error:
        kinds = [kind.__name__ for kind in type(error).__mro__ if kind is not LearnersFault]
        found = {"raised": SubjectRaised.of({"kinds": kinds, "message": str(error)})}
    except NotByValue as error:
        found = {"unusable": str(error)}
    except (OutOfTime, ConnectionLost, MemoryError, NoDriver):
        raise
    except Exception:  # the case processes the returned value, which may be anything
        found = {"unusable": OTHER_KIND, "unprocessed": True, "got": subject.got}
    calls, claims = tuple(subject.calls), tuple(subject.claims)
    return CaseOutcome(**found, calls=calls, claims=claims, called=subject.called)
