"""What the sandbox's kernel does in another way than IPython's, to the same effect."""

from pathlib import Path

import nbformat
import pytest
from ipykernel import compiler
from IPython.core.inputtransformer2 import TransformerManager

from grader.inside.kernel_app import SandboxCompiler, SandboxTransformer
from grader.phase_paths import ROOT

ODD = (
    "",
    "\n\n  x = 1\n  y = 2",
    "files = !ls",
    "here = %pwd",
    "%matplotlib inline\nx = 1",
    "%%time\nx = 1",
    "!ls\nif x:\n    !ls {x}",
    "int?",
    "x = 5 \\\n% 3",
    "f(a,\n% b)",
    "text = '''\n%time\n!ls\nint?\n'''",
    "In [1]: x = 1",
    "x: int = 3 # y?",
    ">>> x = 1",
    "await x",
    "return 3",
    "if x:\n    yield",
    "x = (",
    "x = '\\d'",
    "x = '\0'",
    "/f 1",
    ";f 1",
    "(" * 300 + ")" * 300,
)


@pytest.mark.parametrize(
    "lab", sorted((ROOT / "source").glob("*/*.ipynb")), ids=lambda path: path.stem
)
def test_a_lab_s_cells_are_transformed_as_by_ipython(lab: Path) -> None:
    cells = [c.source for c in nbformat.read(lab, 4).cells if c.cell_type == "code"]
    for cell in cells:
        assert SandboxTransformer().transform_cell(cell) == TransformerManager().transform_cell(
            cell
        )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cell", ODD, ids=range(len(ODD)))
def test_odd_cells_are_transformed_as_by_ipython(cell: str) -> None:
    assert SandboxTransformer().transform_cell(cell) == TransformerManager().transform_cell(cell)


def test_plain_python_is_not_read_again_for_magics(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        TransformerManager, "do_token_transforms", lambda self, lines: asked.append(lines) or lines
    )
    SandboxTransformer().transform_cell("x = 7 % 3")
    assert not asked
    SandboxTransformer().transform_cell("x = %pwd")
    assert asked


def test_a_cell_s_file_name_is_found_without_ipykernel_s_hash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(compiler, "murmur2_x86")
    names = [SandboxCompiler().cache(code) for code in ("x = 1", "x = 1", "x = '\ud800'")]
    assert names[0] == names[1] != names[2]
    assert Path(names[0]).parent == Path(compiler.get_tmp_directory())
