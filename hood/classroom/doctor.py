"""``python -m hood doctor``: check sandboxes, compilers, and who can read the answers."""

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

# A class's files outside of nbgrader's folders: names, work, marks, the service's key.
CLASS = ("received", "downloaded", "reports", "grades.csv", ".pseudonyms", ".service-key")


def learners_and_others(root: Path) -> list[str]:
    """Return the accounts of people on this machine, except the course's owner and this account.

    A machine may have accounts that it does not list, such as accounts of a directory service.
    """
    own = {os.getuid(), root.stat().st_uid}
    return sorted(
        one.pw_name
        for one in pwd.getpwall()
        if one.pw_uid >= 1000 and one.pw_uid not in own
        if not one.pw_shell.endswith(("nologin", "false"))
    )


def open_places(root: Path) -> Iterator[tuple[Path, Path, str]]:
    """Yield each place that any account can read, a readable path in it, and a command to close it.

    A place is a file or folder of a course. After the command, other accounts can no longer read
    the place.
    """
    course = open_course(root)
    directory = course.directory
    steps = ("source", "submitted", "autograded", "feedback")
    named = [getattr(directory, f"{step}_directory") for step in steps]
    own = [*CLASS, *PLACES.values()]
    inside = dict.fromkeys([*ANSWERS, ".git", FILE, *own, *named])
    places = [root / one for one in inside]
    with suppress(UserError):  # `course check` reports errors in the file
        if (file := read_course_file(root)) and file.roster:
            places.append(root / file.roster.file)
    places += [course.database] if course.database else []
    for place in places:
        if found := open_to_others(place):
            closed = root if place.is_relative_to(root) else place
            yield place, found, f"chmod o-rwx {shlex.quote(str(closed))}"
    exchange = ExchangeCollect(coursedir=directory, config=course.config)
    inbound = Path(exchange.root, directory.course_id, "inbound").resolve()
    # Learners may write into this folder but must not list it. If they can't list it, they can't
    # guess the names that nbgrader uses there.
    if inbound.is_dir() and inbound.stat().st_mode & 0o005 == 0o005 and entered(inbound):
        yield inbound, inbound, f"chmod o-r {shlex.quote(str(inbound))}"


def answers(root: Path) -> bool:
    """Print the files of a course that other accounts can read.

    Return False if other accounts can read a file, and other people have accounts on this machine.
    """
    found = list(open_places(root))
    if not found:
        print(
            "answers: safe, because no other account of this machine can read them or learners' "
            "work"
        )
        return True
    people = learners_and_others(root)
    who = ", ".join(people[:3]) + (f" and {len(people) - 3} more" if len(people) > 3 else "")
    said = f"{'account' if len(people) == 1 else 'accounts'} {who}" if people else ""
    said = said or (
        "warning: this machine lists no other account now, but an account that is added later"
    )
    print(f"answers: {said} can read {', '.join(str(place) for place, _, _ in found)}")
    print(f"  for example {found[0][1]}")
    print(f"  what to do: {'; '.join(dict.fromkeys(how for _, _, how in found))}")
    return not people


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--install",
        action="store_true",
        help="if bubblewrap, a C++ compiler or Python's headers are missing, install them with "
        "apt-get (as root, or with sudo if sudo needs no password). With this option, the command "
        "does not check who can read answers",
    )


def run(args: argparse.Namespace, root: Path) -> int:
    """Print what this machine can do, and list the course's files that other accounts can read.

    Return 1 if the machine cannot run sandboxes, or if other people's accounts can read answers.
    """
    if args.install:
        install()
    kept = args.install or answers(root)
    return 0 if machine() and kept else 1
