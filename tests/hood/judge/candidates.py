"""Answers for a check that a test makes in memory, without a file of answers."""

from hood.judge.checks.answers import source_as
from hood.judge.checks.exercise import functions_of


def misconception(check, name, says, *, earns):
    """A decorator that adds a wrong answer, like an entry of a file beside a phase's checks."""
    return lambda thing: _add(check, check.misconceptions, name, thing, earns, says)


def alternate(check, name):
    """A decorator that adds another right answer."""
    return lambda thing: _add(check, check.alternates, name, thing, check.points, "")


def _add(check, to, name, thing, earns, says):
    own = functions_of(thing)
    if isinstance(own, type):
        own.__name__ = check.name  # the name of a learner's class, which torch's errors quote
    if isinstance(check.right, dict) and isinstance(own, dict):
        sources = {key: source_as(function, key) for key, function in own.items()}
        own = {**check.right, **own}
    else:
        has_source = getattr(own, "__name__", "<lambda>") != "<lambda>"
        sources = {check.name: source_as(own, check.name)} if has_source else {}
    rest = bool(sources) and not set(check.names) <= sources.keys()
    to.append(check.candidate(name, own, sources, rest, earns, says))
    return thing
