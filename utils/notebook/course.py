"""The course as a list: eleven phases, what each promises and needs, where its notebooks are.

The start page draws the path and its links from here. A phase without a notebook stays on the path
without a link, so that the page shows what exists and what is planned.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any

from IPython.display import display

from utils.notebook.audience import building

ROOT = Path(__file__).resolve().parents[2]  # the folder that holds utils/, notebooks/ and release/
NOTHING: Mapping[int, str] = MappingProxyType({})
CLASS = "class.json"  # beside them in a class's archive: what `hood bundle` says of its rules
WORK = "work"  # in it, the folder with the learner's copies
NOTEBOOK = "JPY_SESSION_NAME"  # in a kernel's environment, its notebook's path
LESSON = re.compile(r"\d\d_\w+\.ipynb")
BACKQUOTED = re.compile(r"`([^`]+)`")
FURTHER = re.compile(r"^\*Further, ", re.MULTILINE)  # below a heading: a class may leave it out


@dataclass(frozen=True)
class Phase:
    """One phase of the course."""

    name: str  # its folder in phases/ and its notebooks' name, such as "01_tensors"
    title: str
    promise: str  # what a learner can do after it, in one line: "you can ..."
    needs: tuple[int, ...] = ()  # numbers of the phases that it builds on directly
    # What the lesson takes, and what the lab takes without its further exercises; what those take.
    # The build works all three out of the texts (`hood/authoring/stated.py`).
    hours: tuple[float, float] = (0, 0)
    further: float = 0

    @property
    def number(self) -> int:
        """Its place on the path, 0 to 10."""
        return int(self.name[:2])

    def lesson(self, root: Path = ROOT) -> Path | None:
        return next(iter(_places(root, PurePath("notebooks", f"{self.name}.ipynb"))), None)

    def labs(self, root: Path = ROOT) -> list[Path]:
        """Return where a learner may have solved the lab under `root`: their copy comes first."""
        return _places(root, PurePath("release", self.name, f"{self.name}.ipynb"))

    def lab(self, root: Path = ROOT) -> Path | None:
        return next(iter(self.labs(root)), None)


def copy_of(notebook: PurePath) -> PurePath | None:
    """Return where a learner's copy of a notebook lies; None for what is not copied.

    Both paths are relative to the course's folder. A lab's copy keeps its name, by which it is
    handed in. A lesson's gets another, since the lab has the same, and a tab shows the name alone.
    """
    match notebook.parts:
        case ("notebooks", "start.ipynb" as name):
            return PurePath(WORK, name)
        case ("notebooks", name) if LESSON.fullmatch(name):
            return PurePath(WORK, f"lesson_{name}")
        case ("release", folder, name) if name.endswith(".ipynb"):
            return PurePath(WORK, folder, name)
    return None


def own_notebook(root: Path = ROOT) -> Path | None:
    """Return the notebook that this kernel belongs to, if it is one of the course's."""
    path = Path(os.environ.get(NOTEBOOK, ""))
    return path if path.suffix == ".ipynb" and root.resolve() in path.resolve().parents else None


def _places(root: Path, notebook: PurePath) -> list[Path]:
    """The copy that `python -m hood work` makes, and the original.

    What is built is the same whoever has copies, so then only the original counts.
    """
    copy = None if building() else copy_of(notebook)
    return [root / place for place in (copy, notebook) if place and (root / place).is_file()]


PHASES = (
    Phase(
        "00_hello",
        "Hello",
        "see what your machine is made of, and run a first Triton kernel on it.",
        hours=(1, 0.2),
    ),
    Phase(
        "01_tensors",
        "Tensors: storage and view",
        "say, byte by byte, what a tensor is and who shares its memory.",
        hours=(2, 2.5),
    ),
    Phase(
        "02_autograd",
        "Autograd by hand",
        "derive any gradient of a small network on paper, and hold it against autograd's.",
        needs=(1,),
        hours=(1.5, 3.5),
    ),
    Phase(
        "03_module",
        "nn.Module",
        "build Module from nothing, port a trained GPT, and prove the port right.",
        needs=(2,),
        hours=(1.5, 3),
        further=0.5,
    ),
    Phase(
        "04_dispatcher",
        "The dispatcher",
        "predict which kernel an op reaches, and say why that one.",
        needs=(3,),
        hours=(1, 3),
    ),
    Phase(
        "05_custom_op",
        "An operator of your own",
        "write softmax in Triton so that autograd and torch.compile take it for one of theirs.",
        needs=(2, 4),
        hours=(2.5, 3),
        further=1,
    ),
    Phase(
        "06_compile",
        "torch.compile",
        "read the graph the compiler captured and the code it wrote.",
        needs=(4, 5),
        hours=(2, 3),
        further=2,
    ),
    Phase(
        "07_training",
        "Training",
        "write the whole training loop, AdamW included, and train a small GPT with it.",
        needs=(3,),
        hours=(4, 3),
        further=1,
    ),
    Phase(
        "08_transformer",
        "Transformers and Hugging Face",
        "write attention in under fifty lines, and run the same model the Hugging Face way.",
        needs=(7,),
        hours=(3, 3),
        further=1.5,
    ),
    Phase(
        "09_profiling",
        "Profiling",
        "find where a training step spends its time, and show the mend as a measured ratio.",
        needs=(7,),
        hours=(3.5, 3.5),
    ),
    Phase(
        "10_distributed",
        "Distributed",
        "build DDP, FSDP and tensor parallelism out of collectives, on one laptop.",
        needs=(7,),
        hours=(2.5, 3.5),
        further=1,
    ),
)


def class_rules(root: Path = ROOT) -> dict[str, Any] | None:
    """Return what the class's archive says of its labs; None without a class, and in the build.

    `about` is sentences on the class. `labs` has, by name, `released` and `due`, in words or empty,
    and `rules`, sentences. Raises ValueError where the file is damaged.
    """
    path = root / CLASS
    if building() or not path.exists():
        return None
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        _ = found["about"], [(lab["released"], lab["due"]) for lab in found["labs"].values()]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} can't be read: unpack the course's archive again") from error
    return found


def show_contents(root: Path = ROOT, states: Mapping[int, str] = NOTHING) -> None:
    """Display the table of phases, with links, in the start page of `root` or its copy.

    ``states``: how far the learner is, by the phase's number, in a few words.
    """
    page = contents_html(root, states)
    display({"text/html": page, "text/plain": contents_text(root)}, raw=True)


def contents_html(root: Path = ROOT, states: Mapping[int, str] = NOTHING) -> str:
    """Return the phases as a table: number, title, promise, hours, and links under `root`.

    Links are relative to the start page, so that they work wherever the course was put. In a class
    with rules of its own it also says when each lab is due, or comes, and below what counts.
    """
    rows = []
    rules = class_rules(root)
    for item in PHASES:
        links = " · ".join(f'<a href="{link}">{name}</a>' for name, link in _links(item, root))
        lesson, lab = (f"{hours:g}" for hours in item.hours)
        fields = f"{item.number:02d}", f"<b>{escape(item.title)}</b>", escape(item.promise)
        state = (escape(states.get(item.number, "")),) if states else ()
        further = f" (+{item.further:g})" if item.further else ""
        due = (escape(lab_in_class(item, rules, root)),) if rules else ()
        fields += (f"{lesson} + {lab}{further}", *due, *state, links or "not written yet")
        rows.append(f"<tr>{''.join(_cell('td', field) for field in fields)}</tr>")
    more = (*(("Lab",) if rules else ()), *(("You",) if states else ()))
    names = "", "Phase", "When you leave it you can", "Hours", *more, "Open"
    head = "".join(_cell("th", name) for name in names)
    lines = (BACKQUOTED.sub(r"<code>\1</code>", escape(line)) for line in _said(rules))
    said = "".join(f"<p>{line}</p>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{said}"


def contents_text(root: Path = ROOT) -> str:
    """Return the same as lines of text, for a page that shows no HTML."""
    lines = []
    rules = class_rules(root)
    for item in PHASES:
        links = ", ".join(f"{name} {link}" for name, link in _links(item, root))
        due = f": lab {lab_in_class(item, rules, root)}" if rules else ""
        lines.append(f"{item.number:02d} {item.title} ({links or 'not written yet'}){due}")
    return "\n".join([*lines, *_said(rules)])


def lab_in_class(item: Phase, rules: Mapping[str, Any], root: Path) -> str:
    """Return when a phase's lab is due in a class, or when it comes where it is not here yet."""
    lab = rules["labs"].get(item.name)
    if lab is None:
        return "not in this class"
    if item.lab(root) is not None:
        return f"due {lab['due']}" if lab["due"] else "no due date"
    if lab["released"]:
        return f"comes on {lab['released']}, in a new copy of the course"
    return "not in this copy of the course"


def _said(rules: Mapping[str, Any] | None) -> list[str]:
    """Return the class's rules as paragraphs: about the class, and about each lab that has some."""
    if rules is None:
        return []
    labs = [(name, lab["rules"]) for name, lab in rules["labs"].items() if lab.get("rules")]
    paragraphs = [rules["about"], *([f"Lab {name[:2]}.", *said] for name, said in labs)]
    return [" ".join(one) for one in paragraphs]


def _links(item: Phase, root: Path) -> list[tuple[str, str]]:
    """Return (name, link from the start page) of the lesson and the lab."""
    places = [("lesson", item.lesson(root)), ("lab", item.lab(root))]
    return [(name, link_from_start(path, root)) for name, path in places if path is not None]


def check_command(lab: str, root: Path = ROOT) -> str:
    """Return the shell command that checks a whole lab, from any folder and with any PATH.

    It names the Python that runs here: a login shell may find another one.
    """
    words = f"cd {shlex.quote(str(root))} && {shlex.quote(sys.executable)} -m hood check"
    return f"{words} {shlex.quote(lab)}"


def show_check_command(lab: str, root: Path = ROOT) -> None:
    """Print :func:`check_command`, or why there is none in this copy of the course."""
    if building():
        print("Run this cell (Shift+Enter), and the command for your machine appears here.")
    elif not (root / "hood" / "grader" / "check.py").exists():
        print("This copy of the course came without the checks, so there is no such command.")
    else:
        print(check_command(lab, root))


def link_from_start(path: Path, root: Path = ROOT) -> str:
    """Return the link to a file from the start page, or from its copy if that is what runs."""
    mine = root / WORK
    folder = mine if Path.cwd() == mine.resolve() else root / "notebooks"
    return Path(os.path.relpath(path, folder)).as_posix()


def _cell(kind: str, content: str) -> str:
    return f'<{kind} style="text-align:left">{content}</{kind}>'
