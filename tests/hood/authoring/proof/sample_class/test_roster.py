"""The sample class of any lab: its scores are possible, and it covers all answers."""

import json

import pytest

from hood import UserError
from hood.authoring.proof.sample_class import PREFIX, load_lab, make_class
from hood.authoring.proof.sample_class.lab import find
from hood.judge.source.by_hand import RuleReader
from hood.judge.source.learner_source import LearnerSource
from hood.phase_paths import ROOT
from tests.hood.authoring.proof.sample import asked, make_sample, sampled
from tests.hood.tiny import FIXTURE, LAB, released, source_notebook, write

LABS = [path.stem for path in sorted(ROOT.glob("source/*/*.ipynb"))]


OF_LABS = [pytest.mark.slow(2), pytest.mark.of_labs]


@pytest.fixture(scope="module", params=[LAB, *(pytest.param(n, marks=OF_LABS) for n in LABS)])
def lab(request, tmp_path_factory):
    """The tiny lab, and labs of the course."""
    if request.param != LAB:
        return load_lab(ROOT, request.param)
    root = tmp_path_factory.mktemp("course")
    source = source_notebook()
    write(source, root / "source" / LAB / f"{LAB}.ipynb")
    write(released(source), root / "release" / LAB / f"{LAB}.ipynb")
    (root / "phases").symlink_to(FIXTURE)
    return load_lab(root, LAB)


@pytest.fixture(scope="module")
def learners(lab):
    """The whole class of the lab."""
    return make_class(lab)


def test_at_least_24_learners_with_names_of_their_own(learners):
    assert len(learners) >= 24
    assert len({learner.id for learner in learners}) == len(learners)
    assert all(learner.id.startswith(PREFIX) and learner.id.isascii() for learner in learners)
    assert {"Lucía Alonso", "Oliver Hughes"} <= {learner.name for learner in learners}


def test_the_class_is_the_same_every_time(lab, learners):
    again = make_class(lab)
    assert [(a.id, a.predicted) for a in learners] == [(b.id, b.predicted) for b in again]


def test_every_score_is_predicted_and_possible(lab, learners):
    full = lab.full()
    for learner in learners:
        assert learner.predicted.keys() == full.keys()
        assert all(0 <= (points or 0) <= full[name] for name, points in learner.predicted.items())


def test_learners_with_all_points_keep_the_rules_by_hand(lab, learners):
    """Checked without running code; ``make proof`` grades the whole class."""
    given = {cell.source for cell in lab.release.cells}
    best = [one for one in learners if one.predicted == lab.full()]
    assert any("prints warnings" in one.story for one in best)
    for learner in best:
        written = LearnerSource()
        for cell in json.loads(learner.data)["cells"]:
            if cell["cell_type"] == "code":
                code = "".join(cell["source"])
                written.add(code, given=code in given)
        for exercise in lab.exercises:
            reader = RuleReader(exercise.check, written)
            for name in exercise.check.names:
                assert reader.refusal(name) == "", (learner.story, name)


def test_every_misconception_and_every_alternate_is_handed_in(lab, learners):
    handed_in = "\n".join(_code(learner.data) for learner in learners)
    for exercise in lab.exercises:
        for candidate in (*exercise.check.misconceptions, *exercise.check.alternates):
            assert exercise.written(candidate) in handed_in, (exercise.name, candidate.name)


def test_a_sample_hands_in_the_answers_of_its_seed_and_other_seeds_draw_the_rest(lab):
    handed_in = "\n".join(_code(learner.data) for learner in make_sample(lab, "one"))
    for exercise in asked(lab):
        drawn, every = sampled(exercise, "one"), exercise.check.misconceptions
        assert exercise.written(drawn) in handed_in, exercise.name
        others = {sampled(exercise, f"other {k}").name for k in range(20 * len(every))}
        assert others == {m.name for m in every}
        assert any(exercise.written(one) in handed_in for one in exercise.check.alternates)


def test_the_strong_learner_hands_in_the_labs_own_solutions(lab):
    nb = lab.solved()
    for exercise in lab.exercises:
        assert find(nb, exercise.solution_id).source == exercise.reference
        assert "SOLUTION" not in exercise.reference


def test_a_release_is_never_changed(lab):
    before = json.dumps(lab.release)
    make_class(lab)
    assert json.dumps(lab.release) == before


def test_a_lab_that_was_not_built_is_named(tmp_path):
    with pytest.raises(UserError, match="hood build"):
        load_lab(tmp_path, "01_nothing")


def _code(data: bytes) -> str:
    try:
        cells = json.loads(data)["cells"]
    except ValueError:
        return ""
    return "\n".join(
        cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
        for cell in cells
    )
