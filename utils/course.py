"""The course as a list: eleven phases, what each promises and needs, where its notebooks are.

The start page draws the path and its links from here. A phase that has no notebook yet stays on
the path without a link: the list is true about what exists and still shows where the road goes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from html import escape
from pathlib import Path

from IPython.display import HTML, display

ROOT = Path(__file__).resolve().parents[1]  # the folder that holds utils/, notebooks/ and release/


@dataclass(frozen=True)
class Phase:
    """One phase of the course.

    number: its place on the path, 0 to 10.
    name: its folder in phases/ and its notebooks' name, such as "01_tensors".
    promise: what a learner can do after it, in one line.
    needs: numbers of the phases that it builds on directly.
    """

    number: int
    name: str
    title: str
    promise: str
    needs: tuple[int, ...] = ()

    def lesson(self, root: Path = ROOT) -> Path | None:
        """The executed lesson under `root`, or None where there is none."""
        return _existing(root / "notebooks" / f"{self.name}.ipynb")

    def lab(self, root: Path = ROOT) -> Path | None:
        """The learner's copy of the lab under `root`, or None where there is none."""
        return _existing(root / "release" / self.name / f"{self.name}.ipynb")


PHASES = (
    Phase(
        0,
        "00_hello",
        "Hello",
        "See what your machine is made of, and run a first Triton kernel on it.",
    ),
    Phase(
        1,
        "01_tensors",
        "Tensors: storage and view",
        "Say, byte by byte, what a tensor is and who shares its memory.",
    ),
    Phase(
        2,
        "02_autograd",
        "Autograd by hand",
        "Derive any gradient of a small network on paper, and hold it against autograd's.",
        needs=(1,),
    ),
    Phase(
        3,
        "03_module",
        "nn.Module",
        "Build Module from nothing, port a trained GPT, and prove the port right.",
        needs=(2,),
    ),
    Phase(
        4,
        "04_dispatcher",
        "The dispatcher",
        "Predict which kernel an op reaches, and say why that one.",
        needs=(3,),
    ),
    Phase(
        5,
        "05_custom_op",
        "An operator of your own",
        "Write softmax in Triton so that autograd and torch.compile take it for one of theirs.",
        needs=(2, 4),
    ),
    Phase(
        6,
        "06_compile",
        "torch.compile",
        "Read the graph the compiler captured and the code it wrote.",
        needs=(4, 5),
    ),
    Phase(
        7,
        "07_training",
        "Training",
        "Write the whole training loop, AdamW included, and train a small GPT with it.",
        needs=(3,),
    ),
    Phase(
        8,
        "08_transformer",
        "Transformers and Hugging Face",
        "Attention in under fifty lines, then the same model loaded from the Hub's format.",
        needs=(7,),
    ),
    Phase(
        9,
        "09_profiling",
        "Profiling",
        "Find where a training step spends its time, and show the mend as a measured ratio.",
        needs=(4, 7),
    ),
    Phase(
        10,
        "10_distributed",
        "Distributed",
        "Build DDP, FSDP and tensor parallelism out of collectives, on one laptop.",
        needs=(7,),
    ),
)


def phase(name: str) -> Phase:
    """The phase called `name` ("01_tensors"). Raises KeyError for any other name."""
    for candidate in PHASES:
        if candidate.name == name:
            return candidate
    raise KeyError(f"no phase is called {name!r}; the course has {[p.name for p in PHASES]}")


def contents_html(root: Path = ROOT, start: Path | None = None) -> str:
    """The table of phases as HTML: number, title, promise, and links to what exists under `root`.

    Links are relative to the folder `start` (by default `root/notebooks`, where the start page
    is), so that they work in JupyterLab wherever the course was put.
    """
    start = start or root / "notebooks"
    rows = []
    for item in PHASES:
        links = [
            f'<a href="{_relative(path, start)}">{label}</a>'
            for label, path in (("lesson", item.lesson(root)), ("lab", item.lab(root)))
            if path is not None
        ]
        rows.append(
            f"<tr>{_cell(f'{item.number:02d}')}{_cell(f'<b>{escape(item.title)}</b>')}"
            f"{_cell(escape(item.promise))}{_cell(' · '.join(links) or 'not written yet')}</tr>"
        )
    head = "".join(
        f'<th style="text-align:left">{name}</th>'
        for name in ("", "Phase", "When you leave it you can", "Open")
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def show_contents(root: Path = ROOT) -> None:
    """Display the table of phases with its links, in a notebook that lies in `root/notebooks`."""
    display(HTML(contents_html(root)))


def _cell(content: str) -> str:
    return f'<td style="text-align:left">{content}</td>'


def _existing(path: Path) -> Path | None:
    return path if path.is_file() else None


def _relative(path: Path, start: Path) -> str:
    return Path(os.path.relpath(path, start)).as_posix()
