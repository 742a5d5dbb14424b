"""Compile one Triton kernel for a GPU that need not be there, in a process of its own.

Triton either compiles or interprets for a whole process. Run as a script, this reads a request from
stdin and writes the answer to stdout, both as JSON. It imports no torch, so it starts quickly.
"""

import contextlib
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

STAGES = ("ttir", "ttgir", "llir", "ptx")


def main() -> None:
    request = json.load(sys.stdin)
    # What Triton prints must not mix with the answer.
    with contextlib.redirect_stdout(sys.stderr):
        answer = compile_request(request)
    json.dump(answer, sys.stdout)


def compile_request(request: dict) -> dict:
    """Return the stages' texts, and what the assembler reports of registers and spills."""
    kernel = load(Path(request["folder"]), request["source"], request["name"])
    constants = {name: decode(value) for name, value in request["constants"].items()}
    attributes = {
        (kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in request["divisible"]
    }
    source = ASTSource(kernel, request["signature"], constants, attributes)
    target = GPUTarget(*request["target"])
    compiled = triton.compile(source, target=target, options={"num_warps": request["num_warps"]})
    answer = {stage: compiled.asm[stage] for stage in STAGES}
    answer["shared"] = compiled.metadata.shared
    try:
        answer["sass"] = compiled.asm["sass"]
        answer |= resources(Path(request["folder"]), compiled.asm["cubin"])
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        print(f"no SASS: {error}", file=sys.stderr)
    return answer


def load(folder: Path, source: str, name: str) -> Any:
    """Return the `@triton.jit` function `name` from a file, where Triton can read its source."""
    path = folder / "kernel_under_compilation.py"
    path.write_text("import triton\nimport triton.language as tl\n\n\n" + source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def decode(value: Any) -> Any:
    """Return a constant of a request; {"dtype": "fp32"} stands for `tl.float32`."""
    return tl.dtype(value["dtype"]) if isinstance(value, dict) else value


def resources(folder: Path, cubin: bytes) -> dict[str, int]:
    """Return the registers of a thread, and the bytes of its stack, to which others spilled."""
    path = folder / "kernel.cubin"
    path.write_bytes(cubin)
    tool = triton.knobs.nvidia.cuobjdump.path
    command = [tool, "--dump-resource-usage", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    numbers = dict(re.findall(r"(REG|STACK):(\d+)", text))
    return {"registers": int(numbers["REG"]), "stack": int(numbers["STACK"])}


if __name__ == "__main__":
    main()
