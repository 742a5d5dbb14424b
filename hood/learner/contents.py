"""The course's contents for the start page: each phase, and where the phase's notebooks are.

A phase without a notebook is listed without a link, so that the page shows what exists and what is
planned.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any

from IPython.display import display

from hood.audience import building
from hood.course import Phase, course
from hood.phase_paths import ROOT, WORK, copy_of

PHASES = course(ROOT).phases
NOTHING: Mapping[int, str] = MappingProxyType({})
CLASS = "class.json"  # in a class's archive: the class's rules, which `hood bundle` writes
NOTEBOOK = "JPY_SESSION_NAME"  # the environment variable with the path of a kernel's notebook
BACKQUOTED = re.compile(r"`([^`]+)`")


def lesson_of(phase: Phase, root: Path = ROOT) -> Path | None:
    """Return a phase's lesson under `root`, a learner's copy first; None if there is none."""
    return next(iter(_places(root, PurePath("notebooks", f"{phase.name}.ipynb"))), None)


def labs_of(phase: Phase, root: Path = ROOT) -> list[Path]:
    """Return the files of a phase's lab under `root`: the learner's copy, then the release."""
    return _places(root, PurePath("release", phase.name, f"{phase.name}.ipynb"))


def lab_of(phase: Phase, root: Path = ROOT) -> Path | None:
    """Return a phase's lab under `root`, a learner's copy first; None if there is none."""
    return next(iter(labs_of(phase, root)), None)


def own_notebook(root: Path = ROOT) -> Path | None:
    """Return this kernel's notebook, if it is in the course's folder."""
    path = Path(os.environ.get(NOTEBOOK, ""))
    return path if path.suffix == ".ipynb" and root.resolve() in path.resolve().parents else None


def _places(root: Path, notebook: PurePath) -> list[Path]:
    """Return the copy that `python -m hood work` makes, and the copy's original, if they exist.

    A build must not depend on anybody's copies, so it uses only the original.
    """
    copy = None if building() else copy_of(notebook)
    return [root / place for place in (copy, notebook) if place and (root / place).is_file()]


def class_rules(root: Path = ROOT) -> dict[str, Any] | None:
    """Return the class's rules from its archive; None if there is no class, or in the build.

    `about` has sentences about the class. For each lab, `labs` has `released` and `due` (in words,
    or empty) and `rules` (sentences). Raises ValueError if the file is damaged.
    """
    path = root / CLASS
    if building() or not path.exists():
        return None
    try:
        rules: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        _ = rules["about"], [(lab["released"], lab["due"]) for lab in rules["labs"].values()]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} can't be read: unpack the course's archive again") from error
    return rules


def show_contents(root: Path = ROOT, states: Mapping[int, str] = NOTHING) -> None:
    """In the start page of `root`, or in its copy, display the table of phases with links.

    ``states``: for each phase's number, a few words about the learner's progress.
    """
    page = contents_html(root, states)
    display({"text/html": page, "text/plain": contents_text(root)}, raw=True)


def contents_html(root: Path = ROOT, states: Mapping[int, str] = NOTHING) -> str:
    """Return the phases as a table: number, title, goal, hours, and links under `root`.

    Links are relative to the start page, so they work in any folder. In a class with its own rules,
    the table also says when each lab is due or released, and a text below it says what counts.
    """
    rows = []
    rules = class_rules(root)
    for item in PHASES:
        links = " · ".join(f'<a href="{link}">{name}</a>' for name, link in _links(item, root))
        hours = " + ".join(f"{hours:g}" for hours in item.hours if any(item.hours))
        first = _cell("td", f"{item.number:02d}") + _cell('th scope="row"', escape(item.title))
        state = (escape(states.get(item.number, "")),) if states else ()
        further = f" (+{item.further:g})" if item.further else ""
        due = (escape(lab_in_class(item, rules, root)),) if rules else ()
        fields = (escape(item.promise), f"{hours}{further}", *due, *state)
        rest = "".join(_cell("td", field) for field in (*fields, links or "not written yet"))
        rows.append(f"<tr>{first}{rest}</tr>")
    more = (*(("Lab",) if rules else ()), *(("You",) if states else ()))
    names = "No.", "Phase", "After this phase, you can", "Hours", *more, "Open"
    head = "".join(_cell('th scope="col"', name) for name in names)
    lines = (BACKQUOTED.sub(r"<code>\1</code>", escape(line)) for line in _said(rules))
    said = "".join(f"<p>{line}</p>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{said}"


def contents_text(root: Path = ROOT) -> str:
    """Return the table as lines of text, for a page that shows no HTML."""
    lines = []
    rules = class_rules(root)
    for item in PHASES:
        links = ", ".join(f"{name} {link}" for name, link in _links(item, root))
        due = f": lab {lab_in_class(item, rules, root)}" if rules else ""
        lines.append(f"{item.number:02d} {item.title} ({links or 'not written yet'}){due}")
    return "\n".join([*lines, *_said(rules)])


def lab_in_class(item: Phase, rules: Mapping[str, Any], root: Path) -> str:
    """Return when a phase's lab is due in a class.

    If the lab is not here yet, return when it is released.
    """
    lab = rules["labs"].get(item.name)
    if lab is None:
        return "not in this class"
    if lab_of(item, root) is not None:
        return f"due {lab['due']}" if lab["due"] else "no due date"
    if lab["released"]:
        return f"comes on {lab['released']}, in a new copy of the course"
    return "not in this copy of the course"


def _said(rules: Mapping[str, Any] | None) -> list[str]:
    """Return a class's rules as paragraphs: first about the whole class, then about single labs."""
    if rules is None:
        return []
    labs = [(name, lab["rules"]) for name, lab in rules["labs"].items() if lab.get("rules")]
    paragraphs = [rules["about"], *([f"Lab {name[:2]}.", *said] for name, said in labs)]
    return [" ".join(one) for one in paragraphs]


def _links(item: Phase, root: Path) -> list[tuple[str, str]]:
    """Return (name, link from the start page) of the lesson and the lab."""
    places = [("lesson", lesson_of(item, root)), ("lab", lab_of(item, root))]
    return [(name, link_from_start(path, root)) for name, path in places if path is not None]


def check_command(lab: str, root: Path = ROOT) -> str:
    """Return the shell command that checks a whole lab, from any folder and with any PATH.

    The command names this process's Python, because a login shell may find another Python.
    """
    words = f"cd {shlex.quote(str(root))} && {shlex.quote(sys.executable)} -m hood check"
    return f"{words} {shlex.quote(lab)}"


def show_check_command(lab: str, root: Path = ROOT) -> None:
    """Print :func:`check_command`, or why this copy of the course has no such command."""
    if building():
        print("Run this cell (Shift+Enter) to see the command for your machine.")
    elif not (root / "hood" / "judge" / "verdicts").exists():
        print("This copy of the course does not have the checks, so there is no such command.")
    else:
        print(check_command(lab, root))


def link_from_start(path: Path, root: Path = ROOT) -> str:
    """Return the link to a file from the start page, or from the page's copy if the copy runs."""
    mine = root / WORK
    folder = mine if Path.cwd() == mine.resolve() else root / "notebooks"
    return Path(os.path.relpath(path, folder)).as_posix()


def _cell(tag: str, content: str) -> str:
    """Return a cell of a table; `tag` is its element with attributes, such as `th scope="row"`."""
    return f'<{tag} style="text-align:left">{content}</{tag.partition(" ")[0]}>'
