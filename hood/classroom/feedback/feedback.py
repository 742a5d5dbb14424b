"""Remove from feedback the parts that learners must not read: hidden tests, rubrics, paths."""

from __future__ import annotations

import json
import re
import sys
import sysconfig
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import ClearHiddenTests, ClearMarkScheme, NbGraderPreprocessor
from nbgrader.utils import is_grade, is_task
from traitlets import Bool

from hood.addresses import lesson_url
from hood.classroom.feedback.page import ABOUT, About
from hood.classroom.lesson_links import settle
from hood.course import ENGINE
from hood.grader.execution.graded_cell import is_verified, made_output, plain
from hood.grader.execution.self_judged import NOTE, is_self_judged, known_outputs
from hood.grader.inside.confinement import ENVIRONMENT
from hood.grader.sandbox.stage import PACKAGES
from hood.phase_paths import ROOT
from hood.verdict import VERDICT_MIME, Verdict

# Paths of this machine and their short names. A path may be the beginning of another path, so
# _shorten replaces the longest path first.
PATHS = [
    (sysconfig.get_path("purelib"), "site-packages"),
    *((path, "site-packages") for path in sys.path if path.endswith(PACKAGES)),  # from a .pth file
    (sysconfig.get_path("stdlib"), "python"),
    (sys.prefix, "environment"),
    (str(ROOT), "course"),
    (str(ENGINE), "engine"),  # for a course in another folder
    (str(Path.home()), "~"),
]
SCHEME = re.compile(r"^[^\n]*BEGIN MARK SCHEME[^\n]*\n(.*?)^[^\n]*END MARK SCHEME", re.M | re.S)
CELL_FILE = r"/ipykernel_\d+/\d+\.py"  # in the temporary folder of a sandbox or of this account


class CleanFeedback(NbGraderPreprocessor):
    """Prepare an autograded notebook for its learner.

    Hidden regions, mark schemes and paths of the grading machine are removed. If a cell with a
    hidden region raised an error, only the last line of the error is kept, because the traceback
    would quote the region. After a hidden test that is a plain assert has run, no later output of
    the kernel is shown (:mod:`hood.grader.execution.self_judged`). Verdicts are moved from the
    cells into ``ABOUT``, from which the feedback page is made. If the class's rules show rubrics,
    the rubrics of marked answers are moved into ``ABOUT``, too.
    """

    trust_output = Bool(
        False,
        help="Show the output of all cells, even after a hidden test that is a plain assert has "
        "run. A submission can print such a test into this output.",
    ).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        self._hidden = ClearHiddenTests(parent=self)
        self._scheme = ClearMarkScheme(parent=self)
        self._about = resources["nbgrader"].get(ABOUT, About())
        self._verdicts: dict[str, Verdict] = {}
        self._rubrics: dict[str, str] = {}
        self._lessons = lesson_url()
        self._seen = False  # whether the learner's kernel has seen a hidden test
        self._root = resources["nbgrader"].get("root", "")
        nb, resources = super().preprocess(nb, resources)
        found = {"verdicts": self._verdicts, "rubrics": self._rubrics, "lessons": self._lessons}
        resources["nbgrader"][ABOUT] = replace(self._about, **found)
        return nb, resources

    def preprocess_cell(
        self, cell: NotebookNode, resources: Any, index: int
    ) -> tuple[NotebookNode, Any]:
        """Clean one cell.

        Regions are removed only from graded cells and tasks, because learners may write the markers
        into other cells.
        """
        if is_task(cell):
            self._keep_rubric(cell)
            self._scheme.preprocess_cell(cell, resources, index)
        settle(cell, self._lessons)
        if cell.cell_type != "code":
            return cell, resources
        outputs, source = cell.outputs, cell.source
        judges_itself, known = is_self_judged(cell), known_outputs(cell)
        if is_grade(cell):
            if is_verified(cell):
                outputs = self._without_verdict(cell)
            self._hidden.preprocess_cell(cell, resources, index)
            if cell.source != source:
                outputs = [_last_line(output) for output in outputs]
                if judges_itself and not self._seen and not self.trust_output:
                    self._seen = True
                    known.insert(0, made_output("display_data", data={"text/plain": NOTE}))
        if self._seen:
            outputs, cell.execution_count = known, None
        cell.outputs = [self._without_paths(output) for output in outputs]
        return cell, resources

    def _without_verdict(self, cell: NotebookNode) -> list[NotebookNode]:
        """Keep the part of a cell's verdict that the learner may see.

        Return the cell's other outputs.
        """
        shown = [o for o in cell.outputs if o.output_type != "execute_result"]
        last = next((o for o in reversed(shown) if VERDICT_MIME in o.get("data", {})), None)
        if last and not self._seen:
            shows = {what: self._about.rules.shows[what] for what in ("misconceptions", "examples")}
            said = json.dumps(last.data[VERDICT_MIME], ensure_ascii=False)
            verdict = Verdict.from_json(json.loads(self._shorten(said))).shown(**shows)
            self._verdicts[cell.metadata.nbgrader.grade_id] = verdict
        return [output for output in shown if output is not last]

    def _keep_rubric(self, cell: NotebookNode) -> None:
        ours = cell.metadata.nbgrader
        if self._about.rules.shows["rubrics"] and ours.get("by_person"):
            self._rubrics[ours.grade_id] = "\n".join(SCHEME.findall(cell.source)).strip()

    def _without_paths(self, output: NotebookNode) -> NotebookNode:
        if output.output_type == "stream":
            output.text = self._shorten(output.text)
        elif output.output_type == "error":
            output.evalue = self._shorten(output.evalue)
            output.traceback = [self._shorten(line) for line in output.traceback]
        else:
            for kind in ("text/plain", "text/html", "text/markdown"):
                if kind in output.data:
                    output.data[kind] = self._shorten(output.data[kind])
        return output

    def _shorten(self, text: str) -> str:
        return without_paths(text, self._root)


def without_paths(text: str, root: Path | str) -> str:
    """In a text, replace the machine's paths and the course's folder by short names."""
    for folder in (ENVIRONMENT["TMPDIR"], tempfile.gettempdir()):
        text = re.sub(re.escape(folder) + CELL_FILE, "your cell", text)
    for path, name in sorted([*PATHS, (str(root), "course")], key=lambda pair: -len(pair[0])):
        if len(path) > 1:
            text = text.replace(path, name)
    return text


def _last_line(output: NotebookNode) -> NotebookNode:
    if output.output_type != "error":
        return output
    line = f"{output.ename}: {plain(output.evalue)}"
    return new_output("error", ename=output.ename, evalue=plain(output.evalue), traceback=[line])
