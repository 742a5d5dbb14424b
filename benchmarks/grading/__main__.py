"""Compare how fast the grader and plain nbgrader grade a class, on this machine and in one run.

    python -m benchmarks.grading                      two torch labs and one that compiles; minutes
    python -m benchmarks.grading --quick              small runs, less than a minute; rough numbers
    python -m benchmarks.grading --lab 02_autograd    another torch lab in place of the two
    python -m benchmarks.grading --json FILE          the numbers as JSON, too

No real course is touched: the classes are invented, in temporary folders.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from rich.console import Console

from benchmarks.grading.measure import Plan, lab_figures, large_classes
from benchmarks.grading.show import show
from hood import UserError
from hood.phase_paths import ROOT, choose

LABS = ["00_hello", "01_tensors"]  # a lab of two exercises, and one of ten
COMPILED = ROOT / "tests" / "fixtures" / "compiled" / "97_compiled"
TORCH_LAB = Plan(plain=(4, 40), nbgrader=(4, 40), batch=(8, 40), two=(40, 400))
COMPILE_LAB = Plan(plain=(2, 40), nbgrader=(2, 40), batch=(4, 40), two=(40,))
QUICK = Plan(plain=(1, 2), nbgrader=(), batch=(1, 3), two=(), alone=1, kernels=2)
SIZES, QUICK_SIZES = (40, 400, 10_000, 100_000), (400,)
NEW, QUICK_NEW = 100, 20  # submissions that are recorded in a class of each size


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return 0, or 2 when this machine can't make sandboxes."""
    options = parser().parse_args(arguments)
    console = Console()
    start = time.monotonic()
    try:
        phases = choose(ROOT, options.lab or (LABS[-1:] if options.quick else LABS))
        figures = measure([phase.folder for phase in phases], options, console)
    except UserError as error:
        print(f"benchmarks.grading: {error}", file=sys.stderr)
        return 2
    figures["seconds"] = round(time.monotonic() - start)
    show(console, figures)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def measure(phases: Sequence[Path], options: argparse.Namespace, console: Console) -> dict:
    """Return all numbers, as in the JSON file. phases: the folders of torch labs."""
    torch_plan = QUICK if options.quick else TORCH_LAB
    if options.count:
        torch_plan = torch_plan.with_count(options.count)
    with tempfile.TemporaryDirectory(prefix="grading-", ignore_cleanup_errors=True) as folder:
        where = Path(folder)
        plans = [(phase, torch_plan) for phase in phases]
        if not options.quick:
            plans.append((COMPILED, COMPILE_LAB))
        figures = {
            "machine": {
                "processors": len(os.sched_getaffinity(0)),
                "load before": round(os.getloadavg()[0], 1),
                "python": platform.python_version(),
                "torch": torch.__version__,
                "quick": options.quick,
            },
            "labs": [
                lab_figures(where / phase.name, phase, plan, console) for phase, plan in plans
            ],
        }
        sizes, new = (QUICK_SIZES, QUICK_NEW) if options.quick else (SIZES, NEW)
        largest = phases[-1]
        found = large_classes(where / largest.name, largest, sizes, new, console)
        figures["classes"] = [asdict(one) for one in found]
    return figures


def _two_or_more(text: str) -> int:
    if not text.isdigit() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 2 or more")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.grading",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--lab", nargs="+", help=f"torch labs, by their folders' names (default: {' '.join(LABS)})"
    )
    made.add_argument(
        "--count", type=_two_or_more, metavar="N", help="submissions in the larger runs"
    )
    made.add_argument("--quick", action="store_true", help="use small runs; the numbers are rough")
    made.add_argument("--json", type=Path, metavar="FILE")
    return made


if __name__ == "__main__":
    sys.exit(main())
