"""``python -m tests.nbgrader_suite``: nbgrader's own tests, with its kernel and with ours.

They come in nbgrader's wheel. This prints how many pass with each kernel, and each test whose
outcome differs. The exit status is 1 if a difference is not explained here. The tests of
`TestInstantiateTests` fail with both kernels, because they need a file that the wheel lacks.
"""

from __future__ import annotations

import argparse
import getpass
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import nbgrader.tests
from rich import box
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
SUITE = Path(nbgrader.tests.__file__).parent
PARTS = (
    "api",
    "preprocessors",
    "utils",
    "test_validator.py",
    "apps/test_api.py",
    "apps/test_nbgrader_autograde.py",
    "apps/test_nbgrader_generate_assignment.py",
    "apps/test_nbgrader_generate_feedback.py",
    "apps/test_nbgrader_validate.py",
)
OUTCOMES = ("passed", "failed", "skipped")
# Tests that the sandbox fails by design, each with its reason.
EXPLAINED = {
    "TestNbGraderAutograde.test_side_effects": (
        "what a submission writes is its sandbox's, and goes with it; "
        "nbgrader keeps it beside the graded notebook"
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run both at once, and print the differences. Return 1 if a difference is not explained."""
    parser = argparse.ArgumentParser(prog="python -m tests.nbgrader_suite", description=__doc__)
    parser.add_argument("parts", nargs="*", default=PARTS, help="files or folders of the suite")
    parser.add_argument("-k", default="", metavar="EXPRESSION", help="pytest's: only some tests")
    args = parser.parse_args(argv)
    start = time.monotonic()
    with ThreadPoolExecutor(2) as both:
        plain, ours = both.map(
            lambda sandboxes: run(args.parts, args.k, sandboxes=sandboxes), (False, True)
        )
    every = sorted(plain.keys() | ours.keys())
    different = [name for name in every if plain.get(name) != ours.get(name)]
    console = Console(width=150)
    table = Table("kernel", "tests", *OUTCOMES, box=box.SIMPLE)
    for kernel, found in (("ipykernel's", plain), ("in a sandbox", ours)):
        counts = Counter(found.values())
        table.add_row(kernel, str(len(found)), *(str(counts[outcome]) for outcome in OUTCOMES))
    console.print(table)
    for name in different:
        why = EXPLAINED.get(name, "not explained")
        console.print(f"{name}: {plain.get(name)}, in a sandbox {ours.get(name)}: {why}")
    both_fail = [name for name in plain if plain[name] == ours.get(name) == "failed"]
    if both_fail:
        console.print("Fail with either kernel: " + ", ".join(both_fail))
    console.print(f"{len(different)} differences, {time.monotonic() - start:.0f} s")
    return int(not ours or not set(different) <= set(EXPLAINED))


def run(parts: list[str], only: str, *, sandboxes: bool) -> dict[str, str]:
    """The outcome of each test, by its name: one of OUTCOMES."""
    with tempfile.TemporaryDirectory(prefix="nbgrader-suite-") as folder:
        report = Path(folder) / "report.xml"
        words = [sys.executable, "-m", "pytest", "-q", f"--rootdir={folder}", f"-c{os.devnull}"]
        words += ["-p", "no:cacheprovider", f"--junitxml={report}"]
        words += ["-p", "tests.nbgrader_suite.sandboxes"] if sandboxes else []
        words += ["-k", only] if only else []
        log = Path(folder) / "log.txt"
        with log.open("w") as output:
            done = subprocess.run(
                [*words, *(str(SUITE / part) for part in parts)],
                cwd=folder,
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "HOME": folder,
                    "USER": getpass.getuser(),
                },
                stdout=output,
                stderr=output,
                check=False,
            )
        if done.returncode not in (0, 1):  # pytest's statuses for "all passed" and "some failed"
            raise SystemExit(f"pytest could not run:\n{log.read_text()[-3000:]}")
        return dict(_outcome(case) for case in ElementTree.parse(report).iter("testcase"))


def _outcome(case: ElementTree.Element) -> tuple[str, str]:
    kinds = {child.tag for child in case}
    name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
    if kinds & {"failure", "error"}:
        return name, "failed"
    return name, "skipped" if "skipped" in kinds else "passed"


if __name__ == "__main__":
    sys.exit(main())
