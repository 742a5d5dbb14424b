"""Play a case with somebody's code: what comes of it, and what the calls did beside it."""

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

OTHER_KIND = "something of another kind than was asked for"
# In the message of torch's RuntimeError for it, which has no type of its own on a CPU.
OUT_OF_MEMORY = "can't allocate memory"


@dataclasses.dataclass(frozen=True)
class CaseOutcome:
    """The outcome of one case: a value or an exception, and the side effects of the calls."""

    value: Any = None  # what the case returned
    raised: SubjectRaised | None = None  # what the code raised, or None
    calls: tuple[CallEffects, ...] = ()  # the effects of each call
    unusable: str = ""  # what came instead of a usable value, in words that follow "returned"
    unprocessed: bool = False  # whether the case failed to process what came back
    got: Any = None  # what the last call returned, for a case that failed to process it
    cause: Cause = Cause.NONE  # why there is neither, if the code could not be called
    claims: tuple[str, ...] = ()  # what rests on the word of the process that was asked
    # What it says that the code called of torch; see :class:`Subject`
    called: Mapping[str, int] = dataclasses.field(default_factory=dict)
    around: Surroundings = Surroundings()  # what it says of the modules that the code may use

    def ran_short(self) -> bool:
        """Return whether the machine had too little memory for the case."""
        raised = self.raised
        return raised is not None and (
            MemoryError.__name__ in raised.kinds or OUT_OF_MEMORY in raised.message
        )


def play(check: Check, connection: Connection, c: Case) -> CaseOutcome:
    """Play one case with the code at the other end of ``connection``.

    Raises OutOfTime if the code was interrupted; ConnectionLost if the code can no longer be
    called; MemoryError if this process has too little memory; NoDriver if the case asks for a
    driver that there is not.
    """
    rule = check.by_hand
    traced = rule is not None and rule.needs_trace
    subject = Subject(connection, trace=traced, listen=can_be_heard(rule))
    found: dict[str, Any]
    try:
        found = {"value": read_whole(c.play(subject)), "got": subject.got}
    except SubjectRaised as error:  # the traceback would keep the values of its frames alive
        found = {"raised": error.with_traceback(None)}
    except LearnersFault as error:
        kinds = [kind.__name__ for kind in type(error).__mro__ if kind is not LearnersFault]
        found = {"raised": SubjectRaised.of({"kinds": kinds, "message": str(error)})}
    except NotByValue as error:
        found = {"unusable": str(error)}
    except (OutOfTime, ConnectionLost, MemoryError, NoDriver):
        raise
    except Exception:  # the case processes what came back, which may be anything
        found = {"unusable": OTHER_KIND, "unprocessed": True, "got": subject.got}
    calls, claims = tuple(subject.calls), tuple(subject.claims)
    return CaseOutcome(**found, calls=calls, claims=claims, called=subject.called)
