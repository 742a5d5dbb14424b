"""`python -m hood COMMAND`: the entry point of all commands.

COMMANDS has one line per command. A command's module is imported only when that command runs. It
defines `add_arguments(parser)` and `run(args, root) -> int`; the root is the course's folder.

Exit status: 0 for success, 1 when the command ran and found something wrong, 2 when it could not
run, 130 when it was interrupted, 141 when whoever read its output has gone, as `head` does.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import io
import os
import select
import sys
from collections.abc import Sequence
from types import ModuleType

from hood import UserError
from hood.atomic_files import why_not_written
from hood.course import course_folder
from hood.grader.inside.long_lived import long_lived
from hood.grader.submission.names import lab_problem

COMMANDS = {
    "build": ("hood.authoring.command", "turn the text in phases/ into notebooks, or check them"),
    "site": (
        "hood.authoring.site.command",
        "make the course's static site from the built notebooks",
    ),
    "bundle": ("hood.authoring.bundle", "make the learner's archive"),
    "work": (
        "hood.learner.copies",
        "make or refresh a learner's copies of lessons and labs, in work/",
    ),
    "check": (
        "hood.learner.whole_lab",
        "run a lab's notebook and print the verdicts of its checks",
    ),
    "explain": (
        "hood.learner.explain",
        "print an exercise's question, a learner's code and its verdict, to paste into a chat",
    ),
    "selftest": (
        "hood.authoring.proof.selftest",
        "run every check against its own misconceptions and alternates",
    ),
    "mutants": (
        "hood.authoring.proof.mutants",
        "change correct solutions a little, and list the changes that no check notices",
    ),
    "claims": (
        "hood.authoring.proof.claims",
        "count the points that rest on claims of learners' processes and on rules",
    ),
    "grade": ("hood.classroom.recording.command", "grade every submission of a lab, and record it"),
    "demo": ("hood.authoring.demo", "release, grade and report on a generated sample class"),
    "doctor": (
        "hood.classroom.doctor",
        "say whether this machine can run learners' code safely",
    ),
    "serve": (
        "hood.classroom.service.command",
        "give verdicts while learners work, beside JupyterHub",
    ),
    "course": ("hood.classroom.results.command", "the rules of a class: check, roster, export"),
    "backup": ("hood.classroom.backup.save", "write what a class's results need into one file"),
    "restore": ("hood.classroom.backup.restore", "put back what `backup` has written"),
    "report": ("hood.classroom.report.command", "make a page and CSV of a graded lab"),
}


NOBODY_READS = 141  # what a shell says of any program that SIGPIPE has ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. Only the named command's module is imported."""
    argv = list(sys.argv[1:] if argv is None else argv)
    root = course_folder()
    for word in argv:  # argparse would take it for an option
        if word.startswith("-") and (root / "source" / word).is_dir():
            print(f"hood: {lab_problem(word)}", file=sys.stderr)
            return 2
    args = argparse.Namespace(command=argv[0] if argv else "")
    try:
        args = make_parser(args.command).parse_args(argv)
        return int(args.run(args, root))
    except UserError as error:
        print(f"hood {args.command}: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        why = why_not_written(error)
        if not why:
            raise
        print(f"hood {args.command}: {why}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, asyncio.CancelledError):  # the second while a kernel starts
        print(f"hood {args.command}: interrupted", file=sys.stderr)
        return 130


def make_parser(chosen: str | None) -> argparse.ArgumentParser:
    """Return a parser that knows every command's name and the arguments of the chosen command."""
    parser = argparse.ArgumentParser(
        prog="python -m hood", description="Build a course, grade its labs, run its classes."
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module_name, summary) in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        if name == chosen:
            module = import_command(name, module_name)
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser


def import_command(name: str, module_name: str) -> ModuleType:
    """Return a command's module. Raises UserError when a package that it needs is not installed."""
    try:
        with long_lived():
            return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "hood"):
            raise
        raise UserError(
            f"`{name}` needs the package {package}, which is not installed: `make lab` installs "
            "what a learner needs. `make tools` installs the rest"
        ) from None


def as_program() -> int:
    """Run the command of the command line and return its exit status.

    Where whoever read its output has gone, as `head` does, it ends there without a word.
    """
    try:
        try:
            return main()
        finally:
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        # Rich leaves such an error to nobody: it points stdout elsewhere, and exits
        by_rich = isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError)
        if not by_rich and (isinstance(error, SystemExit) or not _nobody_reads()):
            raise
        # Python flushes what is left when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS


def _nobody_reads() -> bool:
    """Return whether stdout is a pipe whose other end is closed; sockets break, too."""
    end = select.poll()
    end.register(sys.stdout.fileno(), 0)
    return bool(end.poll(0))


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may not be able to show a name
            stream.reconfigure(errors="backslashreplace")
    sys.exit(as_program())
