"""A check of one part, for tests of what judges."""

from hood.judge.checks.exercise import Check


def one_part(name, reference, cases, **more):
    check = Check(name, parts={"p": 1}, reads="r", **more)
    check.reference(reference)
    check.cases(cases)
    return check
