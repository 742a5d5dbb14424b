"""Test that a verdict's message is about the case that it shows.

The cases of an example are drawn again from its public seed. The case with the lines of the example
is played again with the answer. Its result must be the result in the message.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from hood.judge.checks.exercise import Check
from hood.judge.connection.rpc_client import InProcess
from hood.judge.connection.settings import usual_settings
from hood.judge.examples import example as examples
from hood.judge.examples.in_words import behaves_like, told
from hood.judge.verdicts.difference import difference, in_case
from hood.judge.verdicts.outcome import play
from hood.verdict import Example, Verdict


def faults(check: Check, thing: Any, verdict: Verdict) -> list[str]:
    """Return the messages of a verdict that are not about its example's case."""
    named = {m.name: m for m in check.misconceptions}
    found = []
    with usual_settings():
        for part in verdict.parts:
            if (one := part.example) is None:
                continue
            if not one.call:
                right = any(
                    told(check, case, other, InProcess(thing)) == one.said
                    for case, other in _in_words(check, one.seed, part.name)
                )
                if not right:
                    found.append(f"{part.name}: no case of its seed gives: {one.said}")
                continue
            cases = _cases(check, one, part.name)
            outcomes = [(c, play(check, InProcess(thing), c)) for c in cases]
            said = [
                in_case(c, differing)
                for c, got in outcomes
                if (
                    differing := difference(
                        check, got, play(check, InProcess(check.right), c), c.places
                    )
                )
            ]
            if one.problem not in said:
                found.append(f"{part.name}: said {one.problem!r}, its case gives {said}")
            if part.misconception and not any(
                behaves_like(check, c, got, named[part.misconception]) for c, got in outcomes
            ):
                found.append(f"{part.name}: {part.misconception!r} does something else there")
    return found


def _cases(check: Check, one: Example, part: str) -> list[Any]:
    """Return the cases that have the lines of an example, for the smallest size with such cases."""
    code = _plain("\n".join((*one.before, one.call)))
    for k in range(len(examples.REACHES)):
        drawn = _small(check, one.seed, part, k)
        if found := [c for c, asked in drawn if any(line in code for line in asked)]:
            return found
    return []


@lru_cache(maxsize=64)
def _small(check: Check, seed: str, part: str, k: int) -> list[Any]:
    """Return the small cases of a part, of one size, each with its lines."""
    drawn = examples._small_cases(check, f"{seed}/{k}", examples.REACHES[k])
    shown = examples._shown(check, (c for c in drawn if c.part == part))
    return [(small.case, list(map(_plain, small.asked))) for small in shown]


def _in_words(check: Check, seed: str, part: str) -> Iterator[tuple[Any, Any]]:
    drawn = [examples._small_cases(check, f"{seed}/{which}", examples.REACHES[1]) for which in "ab"]
    return (pair for pair in zip(*drawn, strict=False) if pair[0].part == part)


def _plain(code: str) -> str:
    """Return code in a form that does not depend on line breaks."""
    return ast.unparse(ast.parse(code))
