"""``nbgrader generate_feedback`` writes the project's own page, within limits."""

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from hood.classroom.feedback import exporter as page
from hood.classroom.feedback.exporter import FeedbackExporter
from hood.classroom.feedback.feedback import CleanFeedback
from hood.classroom.feedback.learner_html import LearnerHtml
from hood.judge.report import VerdictReport
from hood.metadata import KEY
from hood.verdict import PartResult, Status, Verdict
from tests.hood.classroom.feedback_pages import words as words_of
from tests.hood.tiny import CONFIG


def test_a_page_that_takes_too_much_work_has_only_the_reports(monkeypatch):
    """Simulates a learner's code on which the highlighter runs into its time limit."""

    def highlight(self, source):
        while "mine" in source:
            pass
        return source

    monkeypatch.setattr(LearnerHtml, "code", highlight)
    part = PartResult("a part", 3.0, 2.0, Status.WRONG, problem="the wrong shape")
    verdict = Verdict("twice", 3.0, Status.PARTLY, (part,))
    report = new_output("display_data", data=VerdictReport(verdict, "01")._repr_mimebundle_())
    printed = new_output("stream", name="stdout", text="printed")
    test = new_code_cell(
        "### BEGIN HIDDEN TESTS\nverify('twice', twice)\n### END HIDDEN TESTS",
        outputs=[printed, report],
    )
    about = {"grade": True, "solution": False, "locked": True, "grade_id": "twice", "points": 3}
    test.metadata.nbgrader = about | {"schema_version": 3, "task": False, "cell_type": "code"}
    by = {KEY: {"by": "learner"}}
    mine = new_code_cell("mine = 1", outputs=[printed], metadata=by)
    words = new_markdown_cell("mine, too", metadata=by)
    nb = new_notebook(cells=[new_markdown_cell("## 1 · Twice"), test, mine, words])
    monkeypatch.setattr(page, "SECONDS", 0.3)
    exporter = FeedbackExporter()
    exporter.register_preprocessor(CleanFeedback, enabled=True)
    shown = words_of(exporter.from_notebook_node(nb, {"nbgrader": {}})[0])
    assert "takes too much work to show" in shown
    assert "1 · Twice twice" in shown
    assert "not yet a part (2 of 3) The wrong shape." in shown
    assert "mine" not in shown
    assert "printed" not in shown


def test_nbgrader_uses_it():
    assert (
        CONFIG.GenerateFeedback.exporter_class
        == "hood.classroom.feedback.exporter.FeedbackExporter"
    )
    assert FeedbackExporter().file_extension == ".html"  # as nbgrader names it for learners
