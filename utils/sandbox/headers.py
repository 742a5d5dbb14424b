"""Do the slowest parts of a compilation once, for all sandboxes of this machine.

There are three slow parts:

- Compiling the headers that Inductor's C++ code includes. For one small kernel, g++ needs 2700 ms
  of CPU without a precompiled header, and 1000 ms with a precompiled header (torch 2.13.0, g++
  12.2.0).
- Linking with torch's libraries, which is slow because their tables of symbols are long. Linking
  with empty libraries of the same names saves 700 ms.
- Finding the vector instructions that the compiler and the processor support. For this, Inductor
  compiles a program for each kind of instruction, which takes eight seconds.

No part depends on a lab or an answer. The engine does the work in a process without learners' code.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

LIBRARIES = "libraries"  # the folder with the empty libraries
# A dict with two dicts:
# ``headers``: header and command line -> name of the file to include
# ``instructions``: the compiler's flags and a hash of a program -> whether the program ran
INDEX = "index.json"


def version() -> list[str]:
    """Return the versions on which the headers depend, without Python and the compiler."""
    import torch

    code = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    return [torch.__version__, torch.backends.cpu.get_cpu_capability(), code]


def make(folder: Path, shown: str) -> None:
    """Compile a trivial function, and store the reusable results in ``folder``.

    The results are the compiled headers, the empty libraries, and the supported instructions.
    ``shown`` is the path that the folder has in a sandbox.
    """
    import torch
    from torch._inductor import codecache, config
    from torch._inductor.cpu_vec_isa import VecISA

    headers: dict[str, str] = {}
    instructions: dict[str, bool] = {}
    compiled, checked = codecache._precompile_header, VecISA.check_build

    def keep(header: str, command: str, **options: Any) -> str:
        made = compiled(header, command, **options)
        headers[f"{header} {command}".replace(str(folder), shown)] = Path(made).name
        return made

    def note(isa: VecISA, code: str) -> bool:
        return instructions.setdefault(_program(isa, code), checked(isa, code))

    codecache._precompile_header = keep  # type: ignore[assignment]  # torch's is cached
    trials: Any = VecISA
    trials.check_build = note
    _make_libraries(folder / LIBRARIES)
    _link_with(folder / LIBRARIES)
    codecache._HEADER_DIR = str(folder)
    codecache._HEADER_LOCK_DIR = str(folder / "locks")
    config.cpp_cache_precompile_headers = True
    torch.compile(lambda x: x + 1)(torch.zeros(8))
    (folder / INDEX).write_text(json.dumps({"headers": headers, "instructions": instructions}))


def use(folder: Path, shown: str) -> None:
    """Let the kernels that this process forks include the headers that :func:`make` compiled.

    If code needs a header with other options, it includes the header's text instead. The list of
    supported instructions is read only here. torch stores this list, and kernels inherit it.
    :func:`make` filled ``folder``. ``shown`` is the path that this folder has in a sandbox.
    """
    from torch._inductor import codecache, config, cpp_builder, cpu_vec_isa

    index = json.loads((folder / INDEX).read_text())
    check = cpu_vec_isa.VecISA.check_build

    def find(header: str, command: str, **options: Any) -> str | None:
        name = index["headers"].get(f"{header} {command}")
        return name and f"{shown}/{name}"

    def remember(isa: cpu_vec_isa.VecISA, code: str) -> bool:
        known = index["instructions"].get(_program(isa, code))
        return check(isa, code) if known is None else known

    _link_with(Path(shown, LIBRARIES))
    codecache._precompile_header = find  # type: ignore[assignment]  # None: not precompiled
    config.cpp_cache_precompile_headers = True
    trials: Any = cpu_vec_isa.VecISA
    trials.check_build = remember
    # this also asks g++ for its version
    cpp_builder.CppTorchOptions(vec_isa=cpu_vec_isa.pick_vec_isa())
    trials.check_build = check


def _make_libraries(folder: Path) -> None:
    from torch._inductor import cpp_builder
    from torch.utils.cpp_extension import TORCH_LIB_PATH

    folder.mkdir()
    compiler = cpp_builder.get_cpp_compiler()
    for path in Path(TORCH_LIB_PATH).glob("libtorch*.so"):
        empty = [compiler, "-shared", "-xc++", "/dev/null", f"-Wl,-soname,{path.name}"]
        subprocess.run([*empty, "-o", str(folder / path.name)], check=True)


def _link_with(folder: Path) -> None:
    """Let Inductor link its kernels with the libraries in ``folder`` instead of torch's."""
    from torch._inductor import cpp_builder
    from torch.utils.cpp_extension import TORCH_LIB_PATH

    options = cpp_builder.get_cpp_torch_options

    def changed(*given: Any, **named: Any) -> Any:
        definitions, include, cflags, ldflags, folders, *rest = options(*given, **named)
        folders = [str(folder) if each == TORCH_LIB_PATH else each for each in folders]
        # Without `--no-as-needed`, some linkers would leave out a library if they see no use of its
        # symbols.
        return definitions, include, cflags, [*ldflags, "Wl,--no-as-needed"], folders, *rest

    cpp_builder.get_cpp_torch_options = changed


def _program(isa: Any, code: str) -> str:
    return f"{isa.build_arch_flags()} {hashlib.sha256(code.encode()).hexdigest()[:16]}"
