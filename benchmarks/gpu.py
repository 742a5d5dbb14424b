"""Check, measure and record the course's kernels on an NVIDIA GPU.

    python -m benchmarks.gpu                  everything, to benchmarks/records/<gpu>/; minutes
    python -m benchmarks.gpu --only softmax   one section, or several, again
    python -m benchmarks.gpu --tune           the best launches, for utils/softmax/launch.py
    python -m benchmarks.gpu --dry-run        the same path on a CPU with tiny shapes, no record

It needs torch, triton, numpy and this repository, and leaves the GPU's settings as they are. Git
keeps what somebody reads: MiniGPT's logits of every GPU, and all of the GPU that lessons quote
(`.gitignore` names it).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import behaviour, sections
from benchmarks.context import Context, NotRun
from benchmarks.provenance import provenance, slug
from benchmarks.softmax_timing import softmax_section
from benchmarks.tune import tune_section
from utils.instruments.records import RECORDS

Section = Callable[[Context], dict[str, Any]]
SECTIONS: dict[str, Section] = {
    "checks": sections.checks_section,
    "minigpt": sections.minigpt_section,
    "softmax": softmax_section,
    "inductor": sections.inductor_section,
    "trace": sections.trace_section,
    "clocks": behaviour.clocks_section,
    "products": behaviour.products_section,
    "steps": behaviour.steps_section,
    "precision": behaviour.precision_section,
    "attention": behaviour.attention_section,
    "nvidia_smi": behaviour.nvidia_smi_section,
    "messages": behaviour.messages_section,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it. The exit status: 0, or 1 when something failed, or 2 when there is no GPU."""
    options = parser().parse_args(arguments)
    if not options.dry_run and not torch.cuda.is_available():
        print(
            "torch.cuda.is_available() is False: no GPU is seen here, and nothing was measured. "
            "--dry-run takes the whole path on a CPU, and makes no record.",
            file=sys.stderr,
        )
        return 2
    words = sys.argv[1:] if arguments is None else list(arguments)
    command = " ".join(["python -m benchmarks.gpu", *words])
    origin = provenance(command, dry_run=options.dry_run, commit=options.commit)
    name = slug(None if options.dry_run else origin["gpu"]["name"])
    folder = where(options) / name
    chosen = (
        {"tune": tune_section} if options.tune else {key: SECTIONS[key] for key in options.only}
    )
    print(f"{'dry run on the CPU' if options.dry_run else origin['gpu']['name']} -> {folder}")
    outcomes = {key: run(key, section, folder, origin) for key, section in chosen.items()}
    print(", ".join(f"{key}: {outcome}" for key, outcome in outcomes.items()), f"-> {folder}")
    return 1 if "FAILED" in outcomes.values() else 0


def run(name: str, section: Section, folder: Path, origin: dict[str, Any]) -> str:
    """Run one section and keep its result: "done", "not run" or "FAILED", which stops no other."""
    device = torch.device("cpu" if origin["dry_run"] else "cuda")
    context = Context(name, device, folder, origin)
    torch.manual_seed(0)
    try:
        context.keep(section(context), complete=True)
    except NotRun as reason:
        context.say(f"not run: {reason}")
        context.keep(None, complete=False, not_run=str(reason))
        return "not run"
    except Exception as error:
        traceback.print_exc()
        context.fail(f"{type(error).__name__}: {error}"[:2000])
        context.keep(None, complete=False)
    return "FAILED" if context.failures else "done"


def where(options: argparse.Namespace) -> Path:
    """The folder for records; a dry run never gets the one that holds real ones."""
    if options.out is None:
        return Path(tempfile.mkdtemp(prefix="dry-run-")) if options.dry_run else RECORDS
    if options.dry_run and options.out.resolve().is_relative_to(RECORDS):
        raise SystemExit(f"a dry run is no record: choose an --out outside {RECORDS}")
    return options.out


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument(
        "--only",
        nargs="+",
        choices=SECTIONS,
        default=list(SECTIONS),
        metavar="SECTION",
        help=f"of {', '.join(SECTIONS)}",
    )
    result.add_argument("--out", type=Path, metavar="DIR", help="in place of benchmarks/records")
    result.add_argument("--dry-run", action="store_true", help="on a CPU, with tiny shapes")
    result.add_argument("--tune", action="store_true", help="sweep the softmax's launches instead")
    result.add_argument("--commit", metavar="SHA", help="of this copy, where it has no .git")
    return result


if __name__ == "__main__":
    sys.exit(main())
