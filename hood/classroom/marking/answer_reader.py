"""Read a learner's answers from a graded notebook, in a separate process that can be killed.

The learner's text is sanitized again, in the same way as at grading. There are limits for the size
of the file, of the text and of its pictures, and for the time and memory of the process.
"""

from __future__ import annotations

import contextlib
import hashlib
import html
import json
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import nbformat
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from hood.grader.run_record import RunRecord
from hood.grader.submission.bounds import bounded
from hood.grader.submission.notes import NoteKind
from hood.grader.submission.rebuild import answer_cells, is_blank
from hood.metadata import KEY
from hood.untrusted import seen

SECONDS, MEMORY = 10.0, 1 << 30  # limits of the reading process, for one answer
MAX_FILE = 64 << 20
MAX_TEXT, MAX_CELLS = 20_000, 50  # characters and cells of one answer that are shown
MAX_PICTURES = 4 << 20  # characters of an answer's pictures; a picture counts each time it is shown
UNREADABLE = "This answer could not be read; see its notebook in formgrader."
EMPTY = "The answer is empty."
# If a notebook has one of these notes, the answer may be in another file.
ELSEWHERE = {
    NoteKind.UNREADABLE,
    NoteKind.UNGRADED,
    NoteKind.FOREIGN,
    NoteKind.UNMARKED,
    NoteKind.ANOTHER,
}
ENTITY = re.compile(r"&#?\w++;?")
T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """A learner's answer to a question.

    Attributes:
        html: the sanitized answer, for a page.
        digest: a hash of the whole answer, including parts that are too long to show.
        cut: a sentence on the parts that are not shown; empty if all parts are shown.
        problem: a sentence on why there is no answer to show; empty if ``html`` has the answer.
        stamp: identifies the version of the file that was read.
        blank: whether the answer is empty. It is False if the notebook can't be read.
    """

    html: str = ""
    digest: str = ""
    cut: str = ""
    problem: str = ""
    stamp: str = ""
    blank: bool = False


def stamp(path: Path) -> str:
    """Return a text that changes whenever a file is replaced; empty if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{found.st_ino}-{found.st_mtime_ns}-{found.st_size}"


class Reader:
    """Reads answers in a separate process. If the process was killed, a new process is started.

    Args:
        seconds: the processor time that one answer may take.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._pool: ProcessPoolExecutor | None = None
        self._lock = threading.Lock()

    def answer(self, path: Path, cell: str) -> Answer:
        """Return a learner's answer to the question ``cell``, from a notebook of ``autograded/``.

        If the file can't be read, or takes too much work, the Answer has a ``problem``.
        """
        before = stamp(path)
        try:
            found = self._run(_read, path, cell)
        except (BrokenProcessPool, MemoryError, RecursionError):
            found = Answer(problem=UNREADABLE)
        return replace(found, stamp=before)

    def rendered(self, texts: Sequence[str]) -> list[str]:
        """Return the HTML of an instructor's Markdown texts, sanitized like learners' texts."""
        return self._run(_render_all, tuple(texts))

    def start(self) -> None:
        """Start the process in advance, without waiting for it."""
        with contextlib.suppress(BrokenProcessPool):  # the next call starts a new process
            self._begun().submit(_render_all, ())

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._pool:
                self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _begun(self) -> ProcessPoolExecutor:
        with self._lock:
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_begin)
            return self._pool

    def _run(self, function: Callable[..., T], *given: object) -> T:
        pool = self._begun()
        try:
            return pool.submit(_within_limits, self.seconds, function, *given).result()
        except BrokenProcessPool:
            with self._lock:
                if self._pool is pool:
                    self._pool = None
            raise


def _begin() -> None:
    """Make this process end whenever the server ends, and ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_server, daemon=True).start()


def _end_with_server() -> None:
    server = multiprocessing.parent_process()
    assert server is not None
    server.join()
    os._exit(0)


def _within_limits(seconds: float, function: Callable[..., T], *given: object) -> T:
    with bounded(seconds, MEMORY):
        return function(*given)


def _read(path: Path, name: str) -> Answer:
    try:
        if path.stat().st_size > MAX_FILE:
            return Answer(problem=UNREADABLE)
        nb = nbformat.v4.reads(path.read_text(encoding="utf-8"))
        cells = answer_cells(nb, name)
        digest = _digest(cells)
        if is_blank(cells):
            kinds = {note.kind for note in RunRecord.of(nb.metadata).notes}
            return Answer(problem=EMPTY, digest=digest, blank=not kinds & ELSEWHERE)
        shown, cut = _bounded(cells)
        return Answer(_render(shown), digest, cut)
    except Exception:  # a notebook graded without a sandbox may have any content
        return Answer(problem=UNREADABLE)


def _digest(cells: Sequence[NotebookNode]) -> str:
    every = [[cell.cell_type, cell.source, cell.get("attachments", {})] for cell in cells]
    return hashlib.sha256(json.dumps(every, sort_keys=True).encode()).hexdigest()


def _bounded(cells: Sequence[NotebookNode]) -> tuple[list[NotebookNode], str]:
    """Return the part of an answer that is within the limits, and a sentence on the rest."""
    left, pictures = MAX_TEXT, MAX_PICTURES
    shown: list[NotebookNode] = []
    cut: list[str] = []
    for cell in cells[:MAX_CELLS]:
        text = cell.source[:left]
        left -= len(text)
        attached = cell.get("attachments", {})
        size = max((len(str(one)) for one in attached.values()), default=0) * text.count("![")
        if size > pictures:
            attached, cut = {}, [*cut, "pictures"]
        pictures -= size if attached else 0
        if cell.cell_type == "markdown":
            shown.append(new_markdown_cell(text, attachments=attached))
        else:
            shown.append(new_code_cell(text))
    if len(cells) > MAX_CELLS or sum(len(cell.source) for cell in cells) > MAX_TEXT:
        cut = ["the rest of a long text", *cut]
    said = " and ".join(dict.fromkeys(cut))
    return shown, f"Not shown: {said}. Formgrader shows the whole notebook." if said else ""


def _render(cells: Sequence[NotebookNode]) -> str:
    from hood.grader.cleaning.formulas import below_headings, rendered
    from hood.grader.cleaning.sanitize import Sanitize

    nb = new_notebook()
    nb.cells = list(cells)
    for cell in nb.cells:
        cell.metadata[KEY] = {"by": "learner"}  # the cells of a learner are cleaned
    nb, _ = Sanitize().preprocess(nb, {})
    pieces = []
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            # no anchors, because the id of one could equal the id of a field
            page = rendered(cell.source, cell.get("attachments", {}), anchors=False)
            pieces.append(below_headings(page))
        else:
            pieces.append(f"<pre>{html.escape(cell.source)}</pre>")
    return "\n".join(map(_without_unseen, pieces))


def _without_unseen(page: str) -> str:
    """Return HTML without invisible characters, such as characters that reorder words."""
    return seen(ENTITY.sub(lambda found: seen(html.unescape(found[0])) and found[0], page))


def _render_all(texts: Sequence[str]) -> list[str]:
    return [_render([new_markdown_cell(text)]) for text in texts]
