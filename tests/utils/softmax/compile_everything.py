"""Launches every rule of the table on an absent GPU, and prints the results as JSON.

Binding, specialising and compiling are Triton's own; only the driver is replaced. Run this as a
script, because the replaced driver stays for the rest of a process.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from utils.softmax.launch import ANY, TABLE, Launch
from utils.softmax.run import find_kernel, plan

DTYPES = {2: torch.bfloat16, 4: torch.float32, 8: torch.float64}


class StandIn:
    """The part of a driver for an H200 that compiling needs."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)


def compile_one(direction: str, itemsize: int, columns: int, launch: Launch) -> dict[str, int]:
    x = torch.empty(2, columns, dtype=DTYPES[itemsize])
    grid, arguments = plan({"x": x} if direction == "forward" else {"g": x, "y": x}, x, launch)
    kernel = find_kernel(direction, launch)
    compiled = kernel.warmup(**arguments, num_warps=launch.warps, grid=grid)
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(compiled.asm["cubin"])
        command = [triton.knobs.nvidia.cuobjdump.path, "--dump-resource-usage", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = dict(re.findall(r"(REG|STACK):(\d+)", text))
    loads = re.findall(r"ld\.global(\S*)", compiled.asm["ptx"])
    return {
        "registers": int(found["REG"]),
        "stack": int(found["STACK"]),
        "loads": len(loads),
        "wide loads": sum(".v" in load for load in loads),
    }


def main() -> None:
    driver.set_active(StandIn())
    found = {}
    for (direction, itemsize), rules in TABLE.items():
        for rule in rules:
            columns = 2 * rule.launch.tile if rule.columns == ANY else int(rule.columns)
            report = compile_one(direction, itemsize, columns, rule.launch)
            line = f"{direction} {itemsize} bytes, {rule}"
            print(line, report, file=sys.stderr)
            found[line] = report
    print(json.dumps(found))


if __name__ == "__main__":
    main()
