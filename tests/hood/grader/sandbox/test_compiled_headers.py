"""A lab that compiles: its sandboxes have compiled headers, but nothing from its reference."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell

from hood import UserError
from hood.grader.execution.execute import Execute
from hood.grader.execution.graded_cell import read_verdicts
from hood.grader.sandbox import Limits, compiled_headers
from hood.grader.sandbox.stage import environment_folders
from hood.judge.catalogue import load_checks
from hood.phase_paths import ROOT, PhasePaths
from tests.hood.headers import FOLDER, lab

# Searches every file that a sandbox shows, except the system's files and the environment's
# packages, and all memory of its process. This code gets the searched lines in base64, because
# otherwise it would find them in itself.
LOOK = """\
import base64, glob, os, re, sys
from torch._dynamo.utils import counters
LINES = [base64.b64decode(line) for line in {lines}]
SEEN = []
def look(where, data):
    SEEN.extend((where, line.decode()) for line in LINES if line in data)
    LOOKED.append(len(data))
LOOKED = []
for top, folders, names in os.walk("/"):
    if os.path.abspath(top) in ("/proc", "/sys", "/usr", "/dev", *{environment}):
        folders[:] = []
        continue
    for name in names:
        try: look(f"{{top}}/{{name}}", open(f"{{top}}/{{name}}", "rb").read())
        except OSError: pass
print(sum(LOOKED) > {size}, SEEN)
print(os.access("/tmp/headers", os.W_OK), counters["inductor"]["fxgraph_cache_hit"])
"""

pytestmark = [pytest.mark.slow(45), pytest.mark.usefixtures("own_zygote")]


def know_the_checks(patch: pytest.MonkeyPatch) -> None:
    found = {name: (PhasePaths(ROOT, "97_compiled"), c) for name, c in load_checks(FOLDER).items()}
    patch.setattr("hood.grader.execution.examiner.find_check", found.__getitem__)


def solution_lines() -> list[str]:
    """The code that a learner must write: no line of it may be in a sandbox."""
    found = re.findall(r"### BEGIN SOLUTION\n(.*?)### END", (FOLDER / "lab.py").read_text(), re.S)
    lines = [line.strip() for block in found for line in block.splitlines() if line.strip()]
    assert len(lines) == 3
    return lines


def learners() -> NotebookNode:
    """Right answers of another form, and a cell that searches for the reference's lines."""
    nb = lab()
    others = {
        "return torch.tanh(x * scale) + 1": "return 1.0 + (scale * x).tanh()",
        "e = torch.exp(x - x.amax(-1, keepdim=True))": "y = (x - x.max(-1)[0][:, None]).exp()",
        "return e / e.sum(-1, keepdim=True)": "return y / y.sum(-1)[:, None]",
    }
    for cell in nb.cells:
        for line, other in others.items():
            cell.source = cell.source.replace(line, other)
    given = [base64.b64encode(line.encode()) for line in solution_lines()]
    look = LOOK.format(lines=given, environment=environment_folders(), size=100 << 20)
    nb.cells.append(new_code_cell(look))
    return nb


def grade(nb: NotebookNode) -> NotebookNode:
    return Execute().preprocess(nb, {"metadata": {"path": None}})[0]


@pytest.mark.usefixtures("compiler")
def test_nothing_from_the_reference_enters_a_sandbox(headers, monkeypatch):
    prepared, other = headers
    assert prepared == other
    know_the_checks(monkeypatch)
    monkeypatch.setattr("hood.grader.execution.execute.prepared_headers", lambda: prepared)
    before = {path: path.stat().st_mtime_ns for path in prepared.rglob("*")}
    assert any(path.suffix == ".gch" for path in before)
    assert list(prepared.parent.glob("making-*")) == []
    reference = grade(lab())  # as an instructor tries it, on the same machine
    assert {v.earned for v in read_verdicts(reference).values()} == {2}
    nb = grade(learners())
    assert {v.earned for v in read_verdicts(nb).values()} == {2}
    [said] = nb.cells[-1].outputs
    assert said.text == "True []\nFalse 0\n"
    assert {path: path.stat().st_mtime_ns for path in prepared.rglob("*")} == before


@pytest.mark.usefixtures("compiler")
def test_a_machine_that_cannot_compile_is_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    nowhere = {"PATH": str(tmp_path), "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    monkeypatch.setattr(compiled_headers, "environment", lambda folder: nowhere)
    with pytest.raises(UserError, match="repair the compiler, or remove it"):
        compiled_headers.prepared_headers()
    assert {path.suffix for path in compiled_headers.folder().iterdir()} == {".lock"}


@pytest.mark.usefixtures("compiler")
def test_a_machine_too_busy_to_compile_is_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(compiled_headers, "SECONDS", 0.01)
    with pytest.raises(UserError, match="took more than 0.01 seconds"):
        compiled_headers.prepared_headers()
    assert {path.suffix for path in compiled_headers.folder().iterdir()} == {".lock"}


def test_a_compiler_invisible_to_sandboxes_is_reported(monkeypatch, tmp_path):
    (tmp_path / "g++").symlink_to("/bin/true")
    monkeypatch.setenv("CXX", str(tmp_path / "g++"))
    with pytest.raises(
        UserError, match="sandboxes can use only a compiler below /usr, .* the compiler is /"
    ):
        compiled_headers.prepared_headers()


@pytest.mark.parametrize("lacks", [None, "no g++"])
@pytest.mark.parametrize(
    ("compiles", "wanted", "without"),
    [
        (True, (True, False), (False, True)),
        ("trace", *[(False, True)] * 2),
        (None, *[(False,) * 2] * 2),
    ],
)
def test_a_labs_settings_decide_what_its_kernels_have_loaded(
    monkeypatch, compiles, wanted, without, lacks
):
    """Headers for a lab that compiles; the tracer for a lab that traces or can't compile here."""
    made = Path("/headers")
    monkeypatch.setattr("hood.grader.execution.execute.prepared_headers", lambda: made)
    monkeypatch.setattr("hood.grader.execution.execute.compiler_lacks", lambda: lacks)
    nb = lab()
    nb.cells.clear()
    nb.metadata.open_the_hood["compile"] = compiles
    step = Execute()
    step.nb, step._limits = nb, Limits()
    kernel = step._new_kernel(None)
    loaded = (kernel.headers == made, "tracer" in kernel.preload)
    assert loaded == (without if lacks else wanted)
