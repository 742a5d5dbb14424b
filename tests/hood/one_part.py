"""A check of one part, for tests of what judges, and answers for checks that lie in no phase."""

import inspect

from hood.judge.checks.answers import source_as, with_edits
from hood.judge.checks.exercise import Check, functions_of
from hood.judge.checks.lab_solution import run


def one_part(name, reference, cases, **more):
    check = Check(name, parts={"p": 1}, reads="r", **more)
    check.reference(reference)
    check.cases(cases)
    return check


def misconception(check, name, says, *, earns):
    """A decorator that adds a wrong answer, as a file beside a phase's checks has it."""
    return lambda thing: _add(check, check.misconceptions, name, thing, earns, says)


def alternate(check, name):
    """A decorator that adds another right answer."""
    return lambda thing: _add(check, check.alternates, name, thing, check.points, "")


def edited(solution, *edits):
    """Return a function or class with some text replaced, so that it goes wrong in one place.

    Raises ValueError if a text does not occur exactly once.
    """
    sources = with_edits({"": source_as(solution, solution.__name__)}, edits)
    among = getattr(solution, "_among", None) or vars(inspect.getmodule(solution))
    (wrong,) = run(sources[""], dict(among), among.get("__lab__"), solution.__name__).values()
    return wrong


def _add(check, to, name, thing, earns, says):
    own = functions_of(thing)
    if isinstance(own, type):
        own.__name__ = check.name  # as a learner's class is called: torch's errors quote it
    if isinstance(check.right, dict) and isinstance(own, dict):
        sources = {key: source_as(function, key) for key, function in own.items()}
        own = {**check.right, **own}
    else:
        has_source = getattr(own, "__name__", "<lambda>") != "<lambda>"
        sources = {check.name: source_as(own, check.name)} if has_source else {}
    rest = bool(sources) and not set(check.names) <= sources.keys()
    to.append(check.candidate(name, own, sources, rest, earns, says))
    return thing
