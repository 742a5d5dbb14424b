"""A lab that compiles: its cache is made once, each submission has a copy, none can change it."""

from __future__ import annotations

import hashlib
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell

from grader import UserError
from grader.build.notebook import to_notebook
from grader.build.text import parse
from grader.catalogue import load_checks
from grader.layout import ROOT, Room
from grader.preprocessors import Execute, compiled
from grader.preprocessors.outputs import read_verdicts
from grader.sandbox.warm import cool

FOLDER = ROOT / "tests" / "fixtures" / "compiled" / "97_compiled"
TELL = """\
import os
from torch._dynamo.utils import counters
from torch._inductor import codecache
print(counters["inductor"]["fxgraph_cache_hit"], counters["inductor"]["fxgraph_cache_miss"])
for top, _, names in os.walk(os.environ["TORCHINDUCTOR_CACHE_DIR"]):
    for name in names:
        open(os.path.join(top, name), "wb").write(b"spoilt")
"""

pytestmark = [
    pytest.mark.slow(45),
    pytest.mark.skipif(shutil.which("g++") is None, reason="not run: no C++ compiler here"),
]


@pytest.fixture(autouse=True, scope="module")
def _a_zygote_of_its_own():
    """Its zygote has imported the compiler, which no other test expects."""
    cool()
    yield
    cool()


def lab():
    """The instructor's version."""
    return to_notebook(parse("lab.py", (FOLDER / "lab.py").read_text()))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The cache, made by two processes at once, which both got the same."""
    caches = tmp_path_factory.mktemp("caches")
    with pytest.MonkeyPatch.context() as patch:
        # what a course in another folder, with a grader of its own, may have put before it
        patch.setattr(sys, "path", [str(ROOT), *sys.path])
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            made = list(pool.map(prepare, [caches] * 2))
    assert made[0] == made[1]
    return made[0]


def prepare(caches: Path) -> Path:
    """What a worker does before its first submission."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(caches))
        know_the_checks(patch)
        return compiled.prepared_cache(lab())


def know_the_checks(patch: pytest.MonkeyPatch) -> None:
    found = {name: (Room(ROOT, "97_compiled"), c) for name, c in load_checks(FOLDER).items()}
    patch.setattr("grader.preprocessors.examiner.find_check", found.__getitem__)


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_submission_finds_it_warm_and_cannot_change_it(prepared, monkeypatch):
    know_the_checks(monkeypatch)
    before = contents(prepared)
    assert any(name.endswith(".so") for name in before)
    assert [path.name for path in prepared.parent.glob("making-*")] == []
    nb = lab()
    nb.cells.append(new_code_cell(TELL))
    resources = {"metadata": {"path": None}, "open_the_hood": {"cache": lambda: prepared}}
    nb, _ = Execute().preprocess(nb, resources)
    assert {v["earned"] for v in read_verdicts(nb).values()} == {2}
    [said] = nb.cells[-1].outputs
    assert said.text == "2 0\n"
    assert contents(prepared) == before


def test_a_solution_that_fails_or_compiles_nothing_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    nb = lab()
    nb.cells = [new_code_cell("1 / 0")]
    with pytest.raises(UserError, match="does not run: ZeroDivisionError"):
        compiled.prepared_cache(nb)
    nb.cells = [
        new_code_cell(
            "import os; os.makedirs(os.environ['TORCHINDUCTOR_CACHE_DIR'], exist_ok=True)"
        )
    ]
    with pytest.raises(UserError, match="compiled nothing"):
        compiled.prepared_cache(nb)
    assert {path.suffix for path in compiled.folder().iterdir()} == {".lock"}


def test_only_a_lab_that_says_so_gets_one():
    nb = lab()
    assert compiled.cache_of(nb) is not None
    del nb.metadata.open_the_hood["compile"]
    assert compiled.cache_of(nb) is None
