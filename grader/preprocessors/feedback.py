"""Remove from feedback what a learner must not read: hidden tests, rubrics, paths."""

from __future__ import annotations

import re
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import ClearHiddenTests, ClearMarkScheme, NbGraderPreprocessor
from nbgrader.utils import is_grade, is_task
from traitlets import Bool

from grader.judging.graded_cell import is_verified, made_output, plain
from grader.judging.report import VerdictReport
from grader.lesson_links import lesson_url, settle
from grader.phase_paths import ROOT
from grader.preprocessors.self_judged import NOTE, is_self_judged, known_outputs
from grader.verdict import VERDICT_MIME, Verdict

# Paths of this machine and their short names. They may lie inside each other, so _shorten replaces
# the longest first.
PATHS = [
    (sysconfig.get_path("purelib"), "site-packages"),
    (sysconfig.get_path("stdlib"), "python"),
    (sys.prefix, "environment"),
    (str(ROOT), "course"),
    (str(Path.home()), "~"),
]
# Who showed what in a graded cell, in words of a class that no learner's output has (`sanitize`).
BY_THEM = "Shown by your code, before the grader’s report:"
BY = '<p class="shown-by">%s</p>'
BY_GRADER = "The grader’s report:"
CELL_FILE = re.compile(re.escape(tempfile.gettempdir()) + r"/ipykernel_\d+/\d+\.py")


class CleanFeedback(NbGraderPreprocessor):
    """Prepare an autograded notebook for its learner.

    Hidden regions, mark schemes and paths of the grading machine are removed; of an error in a cell
    that had a hidden region, all but the last line, because its traceback would quote the region.
    From the first hidden test that is a plain assert on, no output of the kernel is shown
    (:mod:`grader.preprocessors.self_judged`). Words tell what the learner's code showed from a
    report.
    """

    trust_output = Bool(
        False,
        help="Show what cells printed after plain hidden tests had run, which a submission can "
        "use to print those tests.",
    ).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        self._hidden = ClearHiddenTests(parent=self)
        self._scheme = ClearMarkScheme(parent=self)
        self._lessons = lesson_url()
        self._seen = False  # whether the learner's kernel has seen a hidden test
        self._paths = [*PATHS, (resources["nbgrader"].get("root", ""), "course")]
        return super().preprocess(nb, resources)

    def preprocess_cell(
        self, cell: NotebookNode, resources: Any, index: int
    ) -> tuple[NotebookNode, Any]:
        """Clean one cell. Only graded cells and tasks lose regions: a learner may write markers."""
        if is_task(cell):
            self._scheme.preprocess_cell(cell, resources, index)
        settle(cell, self._lessons)
        if cell.cell_type != "code":
            return cell, resources
        outputs, source = cell.outputs, cell.source
        judges_itself, known = is_self_judged(cell), known_outputs(cell)
        if is_grade(cell):
            if is_verified(cell):
                # the report and the page show the points already
                shown = [o for o in outputs if o.output_type != "execute_result"]
                outputs = _told_apart(shown, resources["nbgrader"].get("shows") or {})
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
        for path, name in sorted(self._paths, key=lambda pair: -len(pair[0])):
            if len(path) > 1:
                text = text.replace(path, name)
        return CELL_FILE.sub("your cell", text)


def _told_apart(outputs: list[NotebookNode], shows: Mapping[str, bool]) -> list[NotebookNode]:
    """Return the outputs of a verified cell with words before the learner's and the report.

    Args:
        shows: whether the class's rules show ``misconceptions`` and ``examples`` now.
    """
    last = next((o for o in reversed(outputs) if VERDICT_MIME in o.get("data", {})), None)
    theirs = [output for output in outputs if output is not last]
    if last and not all(shows.values()):
        verdict = Verdict.from_json(last.data[VERDICT_MIME]).shown(**shows)
        report = VerdictReport(verdict, verdict.lesson)
        last = made_output("display_data", data=report._repr_mimebundle_())
    words = {BY_THEM: theirs, BY_GRADER: [last] if last else []}
    return [
        output
        for said, shown in words.items()
        if shown
        for output in (made_output("display_data", data={"text/html": BY % said}), *shown)
    ]


def _last_line(output: NotebookNode) -> NotebookNode:
    if output.output_type != "error":
        return output
    line = f"{output.ename}: {plain(output.evalue)}"
    return new_output("error", ename=output.ename, evalue=plain(output.evalue), traceback=[line])
