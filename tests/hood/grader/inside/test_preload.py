"""The zygote has already imported the labs' imports, so they cost no learner any time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from hood.grader.sandbox.warm_process import shut_down
from hood.phase_paths import phases
from tests.hood.grader.sandbox.inmate import Inmate
from utils.instruments.toolchain import inductor_lacks

pytestmark = [pytest.mark.slow(70), pytest.mark.usefixtures("sandbox")]

HIDDEN = "### BEGIN HIDDEN TESTS"
FEW = 5
# modules that Inductor writes in the run itself
WRITTEN = re.compile(r"^torch\._inductor\.runtime\.compile_tasks\.|\.kernel$")
ADD = "add to utils/sandbox/imports.py what stands for"


@pytest.fixture
def own_zygote() -> Iterator[None]:
    """A new zygote, for a test that needs one, or that lets it import more."""
    shut_down()
    yield
    shut_down()


@pytest.mark.of_labs
@pytest.mark.parametrize(
    "lab", [phase.source for phase in phases() if phase.source.exists()], ids=lambda lab: lab.stem
)
def test_a_reference_run_imports_little_more(lab: Path, request: pytest.FixtureRequest) -> None:
    nb = nbformat.read(lab, 4)
    compiles = nb.metadata.open_the_hood.get("compile")
    headers = None
    if compiles is True and not inductor_lacks():
        headers = request.getfixturevalue("headers")[0]
    preload = [*nb.metadata.open_the_hood.get("preload", ())]
    if compiles and headers is None:
        preload.append("tracer")
    if compiles or preload:  # a zygote forgets nothing that it imported for one lab
        request.addfinalizer(shut_down)
    loopback = nb.metadata.open_the_hood.get("loopback", False)
    with Inmate(headers=headers, preload=preload, loopback=loopback) as inmate:
        before = set(inmate.value("import sys\nlist(sys.modules)"))
        for cell in nb.cells:
            if cell.cell_type == "code":
                inmate.run(cell.source.partition(HIDDEN)[0])
        after = set(inmate.value("list(sys.modules)"))
    missing = sorted(name for name in after - before if not WRITTEN.search(name))
    assert len(missing) <= FEW, f"{ADD}: {missing}"


@pytest.mark.usefixtures("own_zygote")
def test_the_zygote_ran_nothing() -> None:
    with Inmate() as inmate:
        # one thread for each kernel, and no thread pools of torch before the fork
        assert inmate.value("import torch\ntorch.get_num_threads()") == 1
        assert inmate.value("'torch._dynamo' in __import__('sys').modules") is False
        assert inmate.value("'hood.judge.verdicts.judge' in __import__('sys').modules") is False
        said = inmate.run(
            "x = torch.randn(300, 300, requires_grad=True)\n"
            "y = torch.nn.functional.conv2d(torch.randn(2, 3, 32, 32), torch.randn(4, 3, 3, 3))\n"
            "(x @ x).relu().sum().backward()\n"
            "from torch.utils.data import DataLoader\n"
            "print(len(list(DataLoader(range(8), num_workers=2))), x.grad.shape)"
        )
        assert said == "8 torch.Size([300, 300])\n"


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


def test_the_zygote_has_read_the_lines_of_a_traceback() -> None:
    with Inmate() as inmate:
        inmate.run("import linecache, sys, traceback\nread = set(linecache.cache)")
        inmate.run("stack = {f.filename for f in traceback.extract_stack()}")
        ours = "'/inside/kernel.py' in f or '/IPython/' in f or '/asyncio/' in f"
        assert inmate.value(f"sorted(f for f in stack - read if {ours})") == []
        assert inmate.value(f"sum({ours} for f in stack)") > 3


OPTIMIZER = """
import sys, torch
before = set(sys.modules)
p = torch.nn.Parameter(torch.ones(2))
p.grad = torch.ones(2)
optimizer = torch.optim.AdamW([p], lr=0.1)
torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
optimizer.step()
[sorted(set(sys.modules) - before), torch.distributions.Distribution._validate_args]
"""


@pytest.mark.usefixtures("own_zygote")
def test_the_first_optimizer_imports_nothing_if_a_lab_asked_for_it() -> None:
    with Inmate() as inmate:
        assert inmate.value("import sys\n'torch._dynamo' in sys.modules") is False
    with Inmate(preload=["optimizers"]) as inmate:
        missing, validates = inmate.value(OPTIMIZER)
    assert missing == []
    assert validates is True, "torch.distributions begins as torch has it"


TRACE = """
import sys, torch
before = set(sys.modules)
from torch.library import custom_op, opcheck
@custom_op("room::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.numpy() * 2)
twice.register_fake(lambda x: torch.empty_like(x))
said = opcheck(twice, (torch.ones(3),), test_utils=("test_schema", "test_faketensor"))
compiled = torch.compile(lambda x: twice(x) + 1, backend="aot_eager", fullgraph=True)
[compiled(torch.ones(3)).tolist(), sorted(said.values()), sorted(set(sys.modules) - before)]
"""


@pytest.mark.usefixtures("own_zygote")
def test_tracing_is_preloaded_and_needs_no_compiler() -> None:
    known = "import sys\n[n for n in ('triton', 'torch._dynamo.guards') if n in sys.modules]"
    with Inmate() as inmate:
        assert inmate.value(known) == []
    with Inmate(preload=["tracer"]) as inmate:
        assert inmate.value(known) == ["triton", "torch._dynamo.guards"]
        values, said, missing = inmate.value(TRACE)
    assert values == [3.0, 3.0, 3.0]
    assert said == ["SUCCESS", "SUCCESS"]
    assert len(missing) <= FEW, f"{ADD}: {missing}"


COMPILE = """
import sys, torch
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
def cpu(): return sum(sum(getrusage(who)[:2]) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))
before, begin = set(sys.modules), cpu()
f = torch.compile(lambda x: torch.softmax(x * 2 + 1, -1))
x = torch.arange(600.0).reshape(2, 300)
same = torch.allclose(f(x), torch.softmax(x * 2 + 1, -1))
used = cpu() - begin
missing = sorted(name for name in set(sys.modules) - before if "compile_tasks" not in name)
from torch._dynamo.utils import counters
[same, used, counters["inductor"]["fxgraph_cache_hit"], missing]
"""
# The compiler is called with other flags, for which there are no headers.
OTHERWISE = """
import torch._inductor.config as config
config.cpp.simdlen = 1
torch.compile(torch.sigmoid)(torch.zeros(8)).tolist()
"""
# Compiles no trial program for each vector instruction, which takes longer than all else.
UNTRIED = """
from torch._inductor import cpu_vec_isa
cpu_vec_isa.VecISA.check_build = lambda *_: False
"""


@pytest.mark.usefixtures("own_zygote")
def test_it_compiles_and_finds_compiled_headers(headers: list[Path]) -> None:
    """A kernel with compiled headers imports only the modules that its own code compiles."""
    with Inmate() as inmate:
        inmate.run(UNTRIED)
        same, text, _, _ = inmate.value(COMPILE)
    with Inmate(headers=headers[0]) as inmate:
        as_well, prepared, hits, missing = inmate.value(COMPILE)
        assert inmate.value(OTHERWISE) == [0.5] * 8
    assert [same, as_well] == [True, True]
    assert prepared < text
    assert hits == 0
    assert len(missing) <= FEW, f"{ADD}: {missing}"
    print(f"first torch.compile: {text:.1f} s of CPU, with compiled headers {prepared:.1f} s")
