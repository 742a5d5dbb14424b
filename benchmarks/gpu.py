"""Check, measure and record the course's kernels on an NVIDIA GPU.

    python -m benchmarks.gpu                  everything, to benchmarks/records/<gpu>/, in minutes
    python -m benchmarks.gpu --only softmax   one section, or several, again
    python -m benchmarks.gpu --tune           the best launches, for utils/softmax/launch.py
    python -m benchmarks.gpu --dry-run        the same path on a CPU with tiny shapes, no record

The command needs torch, triton, numpy and this repository. It does not change the GPU's settings.
Git keeps the files that the course reads: MiniGPT's logits from every GPU, and the whole record of
the one GPU whose numbers the lessons quote. `.gitignore` names this GPU.
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
from benchmarks.tiles import tiles_section
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
    "tiles": tiles_section,
    "nvidia_smi": behaviour.nvidia_smi_section,
    "messages": behaviour.messages_section,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sections. Return the exit status: 0; 1 when a section failed; 2 without a GPU."""
    options = parser().parse_args(arguments)
    if not options.dry_run and not torch.cuda.is_available():
        print(
            "torch.cuda.is_available() is False: no GPU is seen here, and nothing was measured. "
            "--dry-run runs everything on a CPU, and makes no record.",
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
    """Run one section; return "done", "not run" or "FAILED". A failure does not stop the others."""
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
    """Return the folder for records; for a dry run, never a folder with real records."""
    if options.out is None:
        return Path(tempfile.mkdtemp(prefix="dry-run-")) if options.dry_run else RECORDS
    if options.dry_run and options.out.resolve().is_relative_to(RECORDS):
        raise SystemExit(f"a dry run makes no record: choose a folder for --out outside {RECORDS}")
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
        help=f"the sections to run, of {', '.join(SECTIONS)}",
    )
    result.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="the folder for the record, instead of benchmarks/records",
    )
    result.add_argument("--dry-run", action="store_true", help="run on a CPU, with tiny shapes")
    result.add_argument("--tune", action="store_true", help="only compare the softmax's launches")
    result.add_argument(
        "--commit", metavar="SHA", help="the commit of this copy, if it has no .git"
    )
    return result


if __name__ == "__main__":
    sys.exit(main())
