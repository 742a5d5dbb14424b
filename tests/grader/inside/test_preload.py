"""The zygote has imported what labs import: no learner waits for it, and none pays for it."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from grader.phase_paths import phases
from grader.sandbox.warm_process import shut_down
from tests.grader.sandbox.inmate import Inmate
from utils.instruments.toolchain import inductor_lacks

pytestmark = pytest.mark.slow(25)

HIDDEN = "### BEGIN HIDDEN TESTS"
FEW = 5


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize(
    "lab", [phase.source for phase in phases() if phase.source.exists()], ids=lambda lab: lab.stem
)
def test_a_reference_run_imports_little_more(lab: Path, request: pytest.FixtureRequest) -> None:
    nb = nbformat.read(lab, 4)
    compiles = nb.metadata.open_the_hood.get("compile")
    headers = None
    if compiles is True and not inductor_lacks():
        headers = request.getfixturevalue("headers")[0]
    traces = bool(compiles) and headers is None
    preload = nb.metadata.open_the_hood.get("preload", ())
    if compiles or preload:  # a zygote forgets nothing that it imported for one lab
        request.addfinalizer(shut_down)
    with Inmate(traces=traces, headers=headers, preload=preload) as inmate:
        before = set(inmate.value("import sys\nlist(sys.modules)"))
        for cell in nb.cells:
            if cell.cell_type == "code":
                inmate.run(cell.source.partition(HIDDEN)[0])
        after = set(inmate.value("list(sys.modules)"))
    missing = sorted(after - before)
    assert len(missing) <= FEW, f"add to grader/inside/preload.py what stands for: {missing}"


@pytest.mark.usefixtures("sandbox")
def test_the_zygote_ran_nothing() -> None:
    with Inmate() as inmate:
        # one thread each, and torch's pools not made before the fork
        assert inmate.value("import torch\ntorch.get_num_threads()") == 1
        assert inmate.value("'torch._dynamo' in __import__('sys').modules") is False
        assert inmate.value("'grader.judging.judge' in __import__('sys').modules") is False
        said = inmate.run(
            "x = torch.randn(300, 300, requires_grad=True)\n"
            "y = torch.nn.functional.conv2d(torch.randn(2, 3, 32, 32), torch.randn(4, 3, 3, 3))\n"
            "(x @ x).relu().sum().backward()\n"
            "from torch.utils.data import DataLoader\n"
            "print(len(list(DataLoader(range(8), num_workers=2))), x.grad.shape)"
        )
        assert said == "8 torch.Size([300, 300])\n"


@pytest.mark.usefixtures("sandbox")
def test_the_zygote_has_the_letters_of_views_and_no_file_open() -> None:
    with Inmate() as inmate:
        inmate.run(
            "from matplotlib import mathtext, font_manager\n"
            "from utils.views import _text_outlines as outlines\n"
            "kept = (mathtext.MathTextParser._parser, outlines._glyph.cache_info().currsize)\n"
            "fonts = font_manager._get_font.cache_info().currsize\n"
            "faces = outlines._face.cache_info().currsize"
        )
        assert inmate.value("kept[0] is not None and kept[1] > 180")
        assert inmate.value("[fonts, faces]") == [0, 0]
        said = inmate.run(
            "from matplotlib.markers import MarkerStyle\n"
            "width = outlines.text_width('a shape ∀', size=12)\n"
            "print(width > 10, len(MarkerStyle('$=$').get_path().vertices) > 8)"
        )
        assert said == "True True\n"


@pytest.mark.usefixtures("sandbox")
def test_the_zygote_has_read_the_lines_of_a_traceback() -> None:
    with Inmate() as inmate:
        inmate.run("import linecache, sys, traceback\nread = set(linecache.cache)")
        inmate.run("stack = {f.filename for f in traceback.extract_stack()}")
        ours = "'/ipykernel/' in f or '/IPython/' in f or '/asyncio/' in f"
        assert inmate.value(f"sorted(f for f in stack - read if {ours})") == []
        assert inmate.value(f"sum({ours} for f in stack)") > 5
