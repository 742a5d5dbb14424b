"""Compiles one Triton kernel for a GPU that needn't be there. Run as a script, it reads a request
from stdin and answers on stdout, both JSON; it imports no torch, so it is quick.

It is a process of its own because Triton either compiles or interprets for a whole process.
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
    """The stages' texts, and what the assembler says of registers and spills."""
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
    """The `@triton.jit` function called `name`; Triton reads its source back from a file."""
    path = folder / "kernel_under_compilation.py"
    path.write_text("import triton\nimport triton.language as tl\n\n\n" + source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def decode(value: Any) -> Any:
    """A constant; {"dtype": "fp32"} is `tl.float32`, which JSON can't carry."""
    return tl.dtype(value["dtype"]) if isinstance(value, dict) else value


def resources(folder: Path, cubin: bytes) -> dict[str, int]:
    """Registers of a thread, and bytes of its stack (above 0 where registers were spilled)."""
    path = folder / "kernel.cubin"
    path.write_bytes(cubin)
    tool = triton.knobs.nvidia.cuobjdump.path
    command = [tool, "--dump-resource-usage", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    numbers = dict(re.findall(r"(REG|STACK):(\d+)", text))
    return {"registers": int(numbers["REG"]), "stack": int(numbers["STACK"])}


if __name__ == "__main__":
    main()
