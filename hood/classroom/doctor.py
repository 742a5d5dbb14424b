"""``python -m hood doctor``: what this machine can sandbox and compile, and what others read."""

from __future__ import annotations

import argparse
import os
import pwd
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from nbgrader.exchange.default import ExchangeCollect

from hood import UserError
from hood.classroom.results.exports import PLACES
from hood.classroom.rules.reading import FILE, read_course_file
from hood.grader.course import open_course
from hood.grader.sandbox.doctor import install, machine
from hood.learner.exposed_answers import ANSWERS, entered, open_to_others

# What a class's folder may have beside nbgrader's own: names, work, marks, the service's key.
CLASS = ("received", "downloaded", "reports", "grades.csv", ".pseudonyms", ".service-key")


def learners_and_others(root: Path) -> list[str]:
    """Return the accounts of people on this machine, but for the course's owner and this one.

    A machine may have accounts that it does not list, as those of a directory service.
    """
    own = {os.getuid(), root.stat().st_uid}
    return sorted(
        one.pw_name
        for one in pwd.getpwall()
        if one.pw_uid >= 1000 and one.pw_uid not in own
        if not one.pw_shell.endswith(("nologin", "false"))
    )


def open_places(root: Path) -> Iterator[tuple[Path, Path, str]]:
    """Yield each place of a course that any account can read, a file there, and how to close it."""
    course = open_course(root)
    directory = course.directory
    steps = ("source", "submitted", "autograded", "feedback")
    named = [getattr(directory, f"{step}_directory") for step in steps]
    own = [*CLASS, *PLACES.values()]
    inside = dict.fromkeys([*ANSWERS, ".git", FILE, *own, *named])
    places = [root / one for one in inside]
    with suppress(UserError):  # `course check` says what is wrong in the file
        if (file := read_course_file(root)) and file.roster:
            places.append(root / file.roster.file)
    places += [course.database] if course.database else []
    for place in places:
        if found := open_to_others(place):
            closed = root if place.is_relative_to(root) else place
            yield place, found, f"chmod o-rwx {shlex.quote(str(closed))}"
    exchange = ExchangeCollect(coursedir=directory, config=course.config)
    inbound = Path(exchange.root, directory.course_id, "inbound").resolve()
    # Learners write there, and nbgrader lets none of them list it: names there can't be guessed.
    if inbound.is_dir() and inbound.stat().st_mode & 0o005 == 0o005 and entered(inbound):
        yield inbound, inbound, f"chmod o-r {shlex.quote(str(inbound))}"


def answers(root: Path) -> bool:
    """Say what of a course other accounts can read; return whether that is nothing, or nobody."""
    found = list(open_places(root))
    if not found:
        print("answers: kept, no other account of this machine can read them, or learners' work")
        return True
    people = learners_and_others(root)
    who = ", ".join(people[:3]) + (f" and {len(people) - 3} others" if len(people) > 3 else "")
    said = who or "warning: any other account, of which this machine lists none,"
    print(f"answers: {said} can read {', '.join(str(place) for place, _, _ in found)}")
    print(f"  for example {found[0][1]}")
    print(f"  what to do: {'; '.join(dict.fromkeys(how for _, _, how in found))}")
    return not people


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--install",
        action="store_true",
        help="install what is missing of bubblewrap, a C++ compiler and Python's headers with "
        "apt-get, as root or with sudo where it asks for no password; answers are not looked for",
    )


def run(args: argparse.Namespace, root: Path) -> int:
    """Print what this machine can do, and what of the course is open to others.

    It returns 1 if the machine cannot run sandboxes, or people with accounts can read answers.
    """
    if args.install:
        install()
    kept = args.install or answers(root)
    return 0 if machine() and kept else 1
