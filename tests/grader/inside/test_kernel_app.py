"""What the sandbox's kernel does in another way than IPython's, to the same effect."""

from pathlib import Path

import pytest
from ipykernel import compiler

from grader.inside.kernel_app import SandboxCompiler


def test_a_cell_s_file_name_is_found_without_ipykernel_s_hash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(compiler, "murmur2_x86")
    names = [SandboxCompiler().cache(code) for code in ("x = 1", "x = 1", "x = '\ud800'")]
    assert names[0] == names[1] != names[2]
    assert Path(names[0]).parent == Path(compiler.get_tmp_directory())
