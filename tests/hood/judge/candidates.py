"""Answers for a check that a test makes in memory, and that has no file of answers beside it."""

from hood.judge.checks.answers import source_as


def misconception(check, name, explanation, *, earns):
    """Decorate a wrong solution, which joins the misconceptions of a check."""
    return lambda thing: _add(check, check.misconceptions, name, thing, earns, explanation)


def alternate(check, name):
    """Decorate another right solution, which joins those of a check."""
    return lambda thing: _add(check, check.alternates, name, thing, check.points, "")


def _add(check, to, name, thing, earns, explanation):
    has_source = getattr(thing, "__name__", "<lambda>") != "<lambda>"
    sources = {check.name: source_as(thing, check.name)} if has_source else {}
    to.append(check._candidate(name, thing, sources, False, earns, explanation))
    return thing
