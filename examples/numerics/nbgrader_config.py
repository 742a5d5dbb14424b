"""nbgrader's settings, for the command line in this folder and for formgrader alike."""

import contextlib
import os
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent

# `hood` is imported from this folder, installed or not.
sys.path.insert(0, str(ROOT))
# `nbgrader db upgrade` calls `alembic` by name, and an environment that was not activated is not on
# PATH.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

c = get_config()  # noqa: F821  (traitlets defines it)

c.CourseDirectory.root = str(ROOT)

# nbgrader reads submissions as carefully as the grader does. A learner's own folder may have no
# grader; grading needs one.
named = of_course = ""
try:
    if (ROOT / "course.toml").is_file():
        text = (ROOT / "course.toml").read_text(encoding="utf-8")
        named = of_course = tomllib.loads(text).get("id", "course")

    from hood.grader.course import find_version_here

    find_version_here()  # a folder without a grader has ended here

    from hood.classroom.nbgrader.guard import guard
    from hood.classroom.rules.reading import course_id
    from hood.course import course, course_folder

    named = of_course = of_course or course(course_folder()).id
    guard()
    of_class = course_id(ROOT)  # `course: {id: ...}` in course.yml
except Exception as error:
    # Any other exception would be logged, and nbgrader would go on without these settings.
    absent = ("hood", "hood.grader", "hood.grader.course")
    if not isinstance(error, ModuleNotFoundError) or error.name not in absent:
        raise SystemExit(
            f"nbgrader stops, because the grader in {ROOT} can't be used by {sys.executable}: "
            f"{type(error).__name__}: {error}. Without the grader, nbgrader's own commands would "
            "collect and export, and they check less. Use the Python in .venv, which `make tools` "
            "sets up."
        ) from error
else:
    named = of_class or named
    c.ExchangeFactory.collect = "hood.classroom.hand_ins.exchange.Collect"
    c.ExchangeFactory.release_assignment = "hood.classroom.hand_ins.exchange.ReleaseAssignment"
    c.ExchangeFactory.release_feedback = "hood.classroom.hand_ins.exchange.ReleaseFeedback"
    c.ExportApp.plugin_class = "hood.classroom.nbgrader.export.Export"
    c.ZipCollectApp.extractor_plugin = "hood.classroom.hand_ins.zip_collect.CarefulExtractor"
    c.ZipCollectApp.collector_plugin = "hood.classroom.hand_ins.zip_collect.CarefulCollector"

c.CourseDirectory.course_id = named

# Any user can make this folder; on a shared machine, every learner can write to it.
exchange = Path(
    os.environ.get("OPEN_THE_HOOD_EXCHANGE", f"~/.local/share/{of_course or 'course'}/exchange")
).expanduser()
with contextlib.suppress(OSError):  # where it can't be made, nbgrader says so when it is used
    exchange.mkdir(parents=True, exist_ok=True)
c.Exchange.root = str(exchange)

# The same words in every stub; the check recognises them as "not attempted".
c.ClearSolutions.code_stub = {"python": 'raise NotImplementedError("write your answer here")'}
c.ClearSolutions.text_stub = "*Write your answer here.*"

# nbgrader's own steps, and one that lets Run All go on past a failing cell.
c.GenerateAssignment.preprocessors = [
    "nbgrader.preprocessors.IncludeHeaderFooter",
    "nbgrader.preprocessors.InstantiateTests",
    "nbgrader.preprocessors.LockCells",
    "nbgrader.preprocessors.ClearSolutions",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.CheckCellMetadata",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.SaveCells",
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbgrader.preprocessors.ClearMarkScheme",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.CheckCellMetadata",
    "hood.authoring.notebooks.release_step.Release",
]

# The batch also grades for `nbgrader autograde` and formgrader's button. It rebuilds a submission,
# so that a copied, deleted or damaged cell costs its learner a clear message and the class nothing.
# It also writes to the gradebook, so nbgrader's own steps for both are left out.
c.Autograde.exporter_class = "hood.classroom.recording.exporter.SubmissionExporter"
c.Autograde.sanitize_preprocessors = ["hood.grader.cleaning.sanitize.Sanitize"]
c.Autograde.autograde_preprocessors = [
    "hood.grader.execution.execute.Execute",  # seed, time limits, verdicts; stderr costs nothing
    "nbgrader.preprocessors.LimitOutput",
    # formgrader and feedback show what learners' code displays
    "hood.grader.cleaning.sanitize.Sanitize",
    "nbgrader.preprocessors.AssignLatePenalties",
]

# Seconds for a cell in `validate`, and if a lab sets no limit: a first torch.compile takes ten.
c.Execute.timeout = 120

c.GenerateFeedback.exporter_class = "hood.classroom.feedback.exporter.FeedbackExporter"
c.GenerateFeedback.preprocessors = [
    "hood.classroom.feedback.grades.GetGrades",  # names what has no mark yet, and what was late
    "hood.classroom.feedback.feedback.CleanFeedback",  # no hidden test, rubric or path
]
