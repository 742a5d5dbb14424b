"""A table of earlier requests earns nothing, because each run makes new requests.

A class is judged many times, and a learner could store each request with its right answer in a
table. Here a table of all exercises of a lab is learned from the reference in some runs. In another
run, all answers come from this table.
"""

from typing import Any

import pytest

from hood.judge.catalogue import load_checks
from hood.judge.connection import codec
from hood.judge.connection.rpc_client import InProcess
from hood.judge.connection.settings import usual_settings
from hood.judge.verdicts.answer_key import AnswerKey
from hood.judge.verdicts.difference import differs
from hood.judge.verdicts.judge import ask
from hood.phase_paths import phases
from tests.phases.dear import DEAREST

PHASES = [phase for phase in phases() if load_checks(phase.folder)]
RUNS = 3  # runs from which the table is learned
NEVER_ASKED = {"raised": {"kinds": ["LookupError", "Exception"], "message": "never asked"}}


class Questions:
    """Gives each request a name, made of the earlier requests to the same instance or generator."""

    def __init__(self) -> None:
        self._asked: dict[int, bytes] = {}  # all requests to an instance, by its number

    def key(self, request: dict[str, Any]) -> bytes:
        """Return the key of a request, independent of the instance's number in this run."""
        made = request.get("made")
        if made is None:
            return codec.pack(request)
        packed = codec.pack({**request, "made": None})
        self._asked[made] = self._asked.get(made, b"") + packed
        return self._asked[made]

    def name(self, made: int, key: bytes) -> None:
        """Note which request created an instance."""
        self._asked[made] = key


class Learning:
    """A connection to the right answer that writes a table of requests and replies."""

    def __init__(self, thing: Any, table: dict[bytes, dict[str, Any]]):
        self._connection, self._table, self._questions = InProcess(thing), table, Questions()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        key = self._questions.key(request)
        reply = self._connection.ask(request)
        self._table[key] = reply
        if isinstance(reply.get("made"), int):
            self._questions.name(reply["made"], key)
        return reply


class Lookup:
    """A connection to an answer that does nothing except look requests up in a table."""

    def __init__(self, table: dict[bytes, dict[str, Any]]):
        self._table, self._questions, self._made = table, Questions(), 0

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        key = self._questions.key(request)
        reply = self._table.get(key, NEVER_ASKED)
        if not isinstance(reply.get("made"), int):
            return reply
        self._made += 1
        self._questions.name(self._made, key)
        return {**reply, "made": self._made}


def learned(check, seeds):
    """The table from some runs, each of which has the cases of another seed."""
    table: dict[bytes, dict[str, Any]] = {}
    for seed in seeds:
        ask(AnswerKey(check, seed), Learning(check.right, table))
    return table


def earned_by(check, table, seed):
    """The parts that a table earns in another run."""
    key = AnswerKey(check, seed)
    pairs = zip(key.cases, ask(key, Lookup(table)), strict=True)
    lost = {c.part for c, got in pairs if c.not_run or differs(check, got, key.right(c))}
    return set(check.parts) - lost


@pytest.mark.slow(8)
@pytest.mark.of_labs
@pytest.mark.parametrize("phase", PHASES, ids=[phase.name for phase in PHASES])
def test_a_table_of_earlier_requests_earns_nothing(phase, seeds):
    earned = {}
    with usual_settings():
        for check in load_checks(phase.folder).values():
            if check.name not in DEAREST:
                runs = [f"{seeds[0]} {number}" for number in range(RUNS)]
                earned[check.name] = earned_by(check, learned(check, runs), f"{seeds[0]} new")
    assert {name: parts for name, parts in earned.items() if parts} == {}


def test_a_table_earns_the_points_of_the_requests_in_it():
    check = next(iter(load_checks(PHASES[0].folder).values()))
    with usual_settings():
        assert earned_by(check, learned(check, ["one"]), "one") == set(check.parts)
