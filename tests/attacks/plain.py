"""Run the attacks on plain nbgrader: its own Execute, an ordinary kernel, plain asserts.

Everything happens in a temporary folder, in processes with a time limit. The hostile code runs with
this user's rights, so attacks that would harm the machine are left out.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import re
import resource
import shutil
import signal
from pathlib import Path
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from traitlets.config import PyFileConfigLoader

from tests.attacks.browser import dangers
from tests.attacks.catalogue import Attack
from tests.attacks.ground import LAB, MARK, Ground
from tests.attacks.submission import lazy

SECONDS = 60
MEMORY = 12 << 30  # bytes of addresses
CONFIG = """
c = get_config()
c.CourseDirectory.root = {root!r}
c.CourseDirectory.course_id = "plain"
c.Exchange.root = {root!r} + "/exchange"
c.Execute.timeout = 10
c.ClearSolutions.code_stub = {{"python": "raise NotImplementedError"}}
"""
# The checks as plain asserts, as course authors write them.
TESTS = {
    "twice": """
for shape in ((2, 3), (4, 1)):
    x = torch.randn(shape)
    assert torch.allclose(twice(x), 2 * x)
""",
    "row_sums": """
x, y = torch.randn(3, 4), torch.randint(9, (3, 4))
assert torch.allclose(row_sums(x), x.sum(1))
assert row_sums(y).dtype == torch.int64 and torch.equal(row_sums(y), y.sum(1))
""",
    "corner": """
x = torch.randn(4, 5)
assert torch.equal(corner(x), x[:2, :2])
assert corner(x).data_ptr() == x.data_ptr()
""",
}
VERIFY = re.compile(r"^# canary-of-the-hidden-test\nverify\(.*$", re.MULTILINE)


class PlainCourse:
    """A course that plain nbgrader grades.

    Args:
        ground: the grading machine with the secrets.
        folder: an empty folder.
    """

    def __init__(self, ground: Ground, folder: Path):
        self.ground = ground
        self.root = folder
        folder.mkdir()
        (folder / "nbgrader_config.py").write_text(CONFIG.format(root=str(folder)))
        source = folder / "source" / LAB / f"{LAB}.ipynb"
        source.parent.mkdir(parents=True)
        nbformat.write(_with_asserts(ground.source), source)
        if not self._nbgrader("generate_assignment"):
            raise RuntimeError("nbgrader generate_assignment failed in the throw-away course")
        self._release = nbformat.read(folder / "release" / LAB / f"{LAB}.ipynb", as_version=4)

    def outcome(self, attack: Attack) -> str:
        """Run an attack and return its result in a few words."""
        if attack.dangerous:
            return "not run: dangerous"
        student = re.sub(r"\W", "", attack.name)
        folder = self.root / "submitted" / student / LAB
        folder.mkdir(parents=True)
        work = lazy(self._release, self.ground.host, folder)
        attack.change(work)
        path = folder / f"{LAB}.ipynb"
        if not os.path.lexists(path):
            path.write_bytes(work.bytes())
        self.ground.arrived()
        done = self._nbgrader("autograde", student_id=student)
        found = [] if done else ["over its time" if done is None else "grading failed"]
        found += self._points(student, attack) + self._spilled(student)
        found += self.ground.arrived()
        if done and attack.family == "feedback":
            found += self._page(student)
        shutil.rmtree(folder, ignore_errors=True)
        for left in Path("/tmp").glob(f"*{MARK}*"):
            left.unlink()
            found.append("ran in the grader")
        return ", ".join(dict.fromkeys(found)) or "as honest"

    def _points(self, student: str, attack: Attack) -> list[str]:
        with Gradebook(f"sqlite:///{self.root / 'gradebook.db'}") as gradebook:
            try:
                score = gradebook.find_submission(LAB, student).score
            except Exception:
                return ["no score"]
        # plain asserts give all points of an exercise or none
        honest = {name: 2.0 if name != "row_sums" else 3.0 for name in attack.honest}
        whole = sum(p for name, p in honest.items() if attack.honest[name] == p)
        if score > whole:
            return [f"{score:g} points instead of {whole:g}"]
        return [f"lost {whole - score:g} points"] if score < whole else []

    def _spilled(self, student: str) -> list[str]:
        path = self.root / "autograded" / student / LAB / f"{LAB}.ipynb"
        if not path.is_file():
            return []
        shown = str([c.get("outputs") for c in nbformat.read(path, as_version=4).cells])
        return [f"reads {what}" for what, secret in self.ground.secrets.items() if secret in shown]

    def _page(self, student: str) -> list[str]:
        self._nbgrader("generate_feedback", student_id=student)
        path = self.root / "feedback" / student / LAB / f"{LAB}.html"
        if not path.is_file():
            return ["no feedback"]
        ours = {"<meta>", "<script>", "<style>", "<link>"}
        more = [d for d in dangers(path.read_text()) if d not in ours and "cdnjs" not in d]
        alerts = path.read_text().count("<script>alert(")
        live = len(more) + alerts
        return [f"{live} things that run or load in the page"] if live else []

    def _nbgrader(self, what: str, **options: Any) -> bool | None:
        """Run a command of nbgrader; return whether it succeeds, or None if it exceeds its time."""
        context = multiprocessing.get_context("fork")  # warm: a new process imports for seconds
        process = context.Process(target=_command, args=(str(self.root), what, options))
        process.start()
        process.join(SECONDS)
        late = process.is_alive()
        _end(process)
        return None if late else process.exitcode == 0


def _command(root: str, what: str, options: dict[str, Any]) -> None:
    """Run one of nbgrader's commands, by its API; this is the target of a new process."""
    os.setsid()
    os.chdir(root)
    os.environ["HOME"] = f"{root}/home"
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    config = PyFileConfigLoader("nbgrader_config.py", path=root).load_config()
    logging.disable(logging.CRITICAL)
    done = getattr(NbGraderAPI(config=config), what)(LAB, **options)
    os._exit(0 if done["success"] else 1)


def _end(process: multiprocessing.Process) -> None:
    """Kill a process, and the kernel that it started in another session."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    pids = [int(pid) for pid in children.read_text().split()] if children.exists() else []
    for pid in (*pids, process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    process.join()


def _with_asserts(source: NotebookNode) -> NotebookNode:
    nb = nbformat.from_dict(source)
    for cell in nb.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in TESTS:
            cell.source = VERIFY.sub(lambda _, n=name: TESTS[n].strip(), cell.source)
    return nb
