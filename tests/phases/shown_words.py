"""Whether what a verdict says is of the very case that it shows.

The cases of an example are drawn again from its public seed, and the one that its lines ask is
played again with the answer: what is said must be what that case gives.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from grader.inside.settings import usual_settings
from grader.judging import example as examples
from grader.judging.difference import difference, in_case
from grader.judging.in_words import behaves_like, told
from grader.judging.outcome import play
from grader.judging.rpc_client import InProcess
from grader.verdict import Example, Verdict
from utils.checks.exercise import Check


def faults(check: Check, thing: Any, verdict: Verdict) -> list[str]:
    """Return what a verdict says above an example that is not of the example's case."""
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
            cases = list(_cases(check, one, part.name))
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


def _cases(check: Check, one: Example, part: str) -> Iterator[Any]:
    """Yield the cases whose lines an example has."""
    code = _plain("\n".join((*one.before, one.call)))
    for small in _small(check, one.seed):
        if small.case.part == part and any(_plain(asked) in code for asked in small.asked):
            yield small.case


@lru_cache(maxsize=4)
def _small(check: Check, seed: str) -> list[Any]:
    return [
        small
        for k, reach in enumerate(examples.REACHES)
        for small in examples._shown(check, examples._small_cases(check, f"{seed}/{k}", reach))
    ]


def _in_words(check: Check, seed: str, part: str) -> Iterator[tuple[Any, Any]]:
    drawn = [examples._small_cases(check, f"{seed}/{which}", examples.REACHES[1]) for which in "ab"]
    return (pair for pair in zip(*drawn, strict=False) if pair[0].part == part)


def _plain(code: str) -> str:
    """Return code in one form, however its lines are broken."""
    return ast.unparse(ast.parse(code))
