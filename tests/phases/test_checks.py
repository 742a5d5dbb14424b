"""Every check of every phase: what is wrong is rejected and named, what is right passes."""

import jupytext
import pytest

from grader.answer_key import AnswerKey, answer_key
from grader.catalogue import load_checks
from grader.judge import difference, judge
from grader.layout import phases
from grader.prove import prove

CHECKS = [
    pytest.param(phase, check, id=f"{phase.number}-{check.name}")
    for phase in phases()
    for check in load_checks(phase.folder).values()
]
LABS = [pytest.param(phase, id=phase.name) for phase in phases() if phase.lab.exists()]


@pytest.mark.parametrize(("phase", "check"), CHECKS)
@pytest.mark.parametrize("seed", ["a", "b", "c"])
def test_candidates_come_out_as_predicted(phase, check, seed):
    assert prove(check, seed).faults == ()
    kept, fresh = answer_key(check, seed), AnswerKey(check, seed)
    for c, again in zip(kept.cases, fresh.cases, strict=True):
        if not c.not_run:  # no candidate may have changed what the next is held against
            assert not difference(check, kept.right(c), fresh.right(again))


@pytest.mark.parametrize(("phase", "check"), CHECKS)
def test_candidates_are_enough(phase, check):
    assert len(check.misconceptions) >= 3
    assert len(check.alternates) >= 1
    assert all(m.explanation.endswith(".") for m in check.misconceptions)
    assert len({c.name for c in check.misconceptions + check.alternates}) == len(
        check.misconceptions
    ) + len(check.alternates)


@pytest.mark.parametrize("phase", LABS)
def test_lab_solutions_earn_everything(phase):
    """The lab's own solutions, worked out by hand, against the references, rules included."""
    cells = jupytext.read(phase.lab, fmt="py:percent").cells
    code = [c for c in cells if "given" in c.metadata or "solution" in c.metadata]
    names: dict = {}
    for cell in code:
        exec(compile(cell.source, str(phase.lab), "exec"), names)
    sources = {c.metadata["solution"]: c.source for c in code if "solution" in c.metadata}
    for name, check in load_checks(phase.folder).items():
        several = isinstance(check.right, dict)
        thing = {f: names[f] for f in check.right} if several else names[name]
        verdict = judge(check, thing, "lab", source=sources[name])
        assert verdict.earned == check.earnable(), verdict


@pytest.mark.parametrize("phase", LABS)
def test_candidates_need_only_the_names_of_the_lab(phase):
    """The sample class hands them in, so they must run where a learner's code runs."""
    cells = jupytext.read(phase.lab, fmt="py:percent").cells
    setup = "\n".join(c.source for c in cells if "given" in c.metadata)
    for check in load_checks(phase.folder).values():
        for candidate in check.misconceptions + check.alternates:
            names: dict = {}
            exec(setup + "\n\n" + candidate.source(), names)
            several = isinstance(check.right, dict)
            thing = (
                {**check.right, **{f.__name__: names[f.__name__] for f in candidate.own}}
                if several
                else names[check.name]
            )
            verdict = judge(check, thing, "lab", source=candidate.source())
            assert verdict.earned == check.expects(candidate), (check.name, candidate.name)
