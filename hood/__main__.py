"""`python -m hood COMMAND`: the entry point of all commands.

COMMANDS has one line per command. A command's module is imported only when that command runs. The
module defines `add_arguments(parser)` and `run(args, root) -> int`; the root is the course's
folder.

STATUSES explains the exit statuses. FOUND explains status 1 for each command that can return it.
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
    "new": (
        "hood.authoring.new_course",
        "write a small course that works at once; you then change it",
    ),
    "import": (
        "hood.authoring.importing.command",
        "draft a phase from a notebook of nbgrader or Otter Assign",
    ),
    "exercise": (
        "hood.authoring.new_exercise",
        "add an exercise to a lab; it works at once, and you then change it",
    ),
    "wrong": (
        "hood.authoring.new_misconception",
        "judge a wrong answer, and add it to the misconceptions of its exercise",
    ),
    "work": (
        "hood.learner.copies",
        "make a learner's copies of lessons and labs in work/, or bring them up to date",
    ),
    "check": (
        "hood.learner.whole_lab",
        "run a lab's notebook and print the verdicts of its checks",
    ),
    "explain": (
        "hood.learner.explain",
        "print an exercise's question, a learner's code and its verdict as a text for a chat",
    ),
    "selftest": (
        "hood.authoring.proof.selftest",
        "judge the misconceptions and alternates of every check, and list wrong verdicts",
    ),
    "mutants": (
        "hood.authoring.proof.mutants",
        "make small changes to right solutions, and list the changes that no check notices",
    ),
    "claims": (
        "hood.authoring.proof.claims",
        "count the points that rest on claims of a learner's process, or on rules for work by hand",
    ),
    "grade": (
        "hood.classroom.recording.command",
        "grade a lab's submissions, and record the grades",
    ),
    "demo": (
        "hood.authoring.demo",
        "release a lab, grade a generated sample class, and write a report",
    ),
    "doctor": (
        "hood.classroom.doctor",
        "say whether this machine can run learners' code safely",
    ),
    "serve": (
        "hood.classroom.service.command",
        "run, with or without JupyterHub, the service that gives verdicts while learners work",
    ),
    "course": (
        "hood.classroom.results.command",
        "check the rules of a class, add its roster to the gradebook, or export its points",
    ),
    "backup": (
        "hood.classroom.backup.save",
        "save in one file everything that the results of a class depend on",
    ),
    "restore": ("hood.classroom.backup.restore", "restore the files from a backup"),
    "report": ("hood.classroom.report.command", "make a page and a CSV file about a graded lab"),
}
FOUND = {
    "build": "a text or a built notebook has a problem",
    "wrong": "the answer is right, or its misconception is known already; nothing was added",
    "work": "a copy could not be brought up to date",
    "check": "a graded cell is missing or gave no verdict",
    "selftest": "a check gives a wrong verdict on a stored answer",
    "mutants": "a check does not notice a change, or an entry of `same` or `free` is wrong",
    "grade": "a submission got no verdict, or a lab could not be graded",
    "demo": "a score differs from the predicted score",
    "doctor": "the machine cannot run sandboxes, or other accounts can read answers",
    "course": "`check` found a possible mistake",
    "report": "a submission does not have all its automatic marks",
}
NOBODY_READS = 141  # a shell's exit status for a program that SIGPIPE ended
STATUSES = {
    0: "success",
    1: "the command ran and found a problem",
    2: "the command could not run; its message says why",
    130: "the command was interrupted",
    NOBODY_READS: "the program that read the output, such as `head`, ended early",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. Only the named command's module is imported."""
    argv = list(sys.argv[1:] if argv is None else argv)
    root = course_folder()
    for word in argv:  # argparse would read a lab's name that begins with "-" as an option
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
    # While a kernel starts, Ctrl-C raises CancelledError.
    except (KeyboardInterrupt, asyncio.CancelledError):
        print(f"hood {args.command}: interrupted", file=sys.stderr)
        return 130


def make_parser(chosen: str | None) -> argparse.ArgumentParser:
    """Return a parser that knows every command's name and the arguments of the chosen command."""
    parser = argparse.ArgumentParser(
        prog="python -m hood", description="Build a course, grade its labs, run its classes."
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module_name, summary) in COMMANDS.items():
        status = f"Exit status 1: {FOUND[name]}." if name in FOUND else None
        command = commands.add_parser(name, help=summary, description=summary, epilog=status)
        if name == chosen:
            module = import_command(name, module_name)
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser


def import_command(name: str, module_name: str) -> ModuleType:
    """Return a command's module. Raises UserError when a package for the command is missing."""
    try:
        with long_lived():
            return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "hood"):
            raise
        raise UserError(
            f"`{name}` needs the package {package}, which is not installed: `make lab` installs "
            "the packages that learners need, and `make tools` installs all others"
        ) from None


def as_program() -> int:
    """Run the command that the command line names, and return the exit status.

    If the program that reads the output ends early, as `head` does, the command stops without a
    message.
    """
    try:
        try:
            return main()
        finally:
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        # Rich handles a broken pipe itself: it redirects stdout and raises SystemExit.
        by_rich = isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError)
        if not by_rich and (isinstance(error, SystemExit) or not _nobody_reads()):
            raise
        # Python flushes stdout at exit, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS


def _nobody_reads() -> bool:
    """Return whether stdout is a pipe that its reader has closed.

    A broken socket raises the same exception, but has another cause.
    """
    end = select.poll()
    end.register(sys.stdout.fileno(), 0)
    return bool(end.poll(0))


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal can't show all letters
            stream.reconfigure(errors="backslashreplace")
    sys.exit(as_program())
