"""Execute lessons in a fresh kernel, check their outputs, and make the outputs reproducible."""

from __future__ import annotations

import html
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from hood.audience import BUILD
from hood.authoring.lint import silent_images
from hood.authoring.notebooks.notebook import LANGUAGE
from hood.authoring.notebooks.text import Problem, Refused, Text, TextCell, at
from hood.grader.course_sandbox import of_course
from hood.grader.execution.graded_cell import plain
from hood.learner.whole_lab import this_python
from hood.metadata import MAY_RAISE
from hood.phase_paths import environment_with

CELL_SECONDS = 180  # seconds for a cell of a lesson that the build executes
LARGEST = 1_000_000  # bytes of an executed lesson
WIDGET = "application/vnd.jupyter.widget-view+json"
PRINTED = (
    "printed "  # begins a markdown cell's tag, before a number that the section's code printed
)
NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?!\w)")
MARKUP = re.compile(r"(?s)<(style|script)\b.*?</\1>|<[^>]*>")
IN_CELL = re.compile(r"Cell In\[(\d+)\], line (\d+)")
KERNEL_FILE = re.compile(r"(?:/[\w.+-]+)*/ipykernel_\d+/\d+\.py")
PACKAGE_FILE = re.compile(r"(?:/[\w.+-]+)+/(?=site-packages/)")


def run_page(
    notebook: NotebookNode, text: Text, root: Path, settings: Mapping[str, str] | None = None
) -> NotebookNode:
    """Execute a lesson's notebook in place, in a kernel that can import the course's packages.

    Raises Refused with the line in the text when a cell fails, hangs or ends the kernel.
    """
    folder = root / "notebooks"
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="grader-kernel-") as private:
        # Lessons write to temporary folders. A reader's system clears these folders, but a build
        # must clear the folders itself.
        temporary = Path(private, "tmp")
        temporary.mkdir()
        environment = kernel_environment(root) | {"TMPDIR": str(temporary)}
        environment |= of_course().lesson_environment(Path(private))
        client = NotebookClient(
            notebook,
            km=this_python(private),
            timeout=CELL_SECONDS,
            record_timing=False,
            coalesce_streams=True,
            shutdown_kernel="immediate",
            resources={"metadata": {"path": str(folder)}},
        )
        try:
            client.execute(env=environment | dict(settings or {}), cleanup_kc=True)
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            raise Refused([failure(notebook, text, error)]) from None
    return tidy(notebook, root)


def kernel_environment(root: Path) -> dict[str, str]:
    return environment_with(root) | {BUILD: "1", "PYTHONHASHSEED": "0"}


def failure(notebook: NotebookNode, text: Text, error: Exception) -> Problem:
    """Return the problem that stopped an execution, at the line of the cell that was running."""
    pairs = zip(text.cells, notebook.cells, strict=True)
    code = [(cell, node) for cell, node in pairs if node.cell_type == "code"]
    # A cell without a count and without outputs never started. If the outputs of a cell have an
    # error, this cell failed. If no cell failed, the last started cell was stopped.
    started = [pair for pair in code if pair[1].execution_count is not None or pair[1].outputs]
    failed = [pair for pair in started if errors(*pair)]
    cell, node = (failed or started or code)[-1]
    if isinstance(error, CellExecutionError):
        return at(text, cell, f"{error.ename}: {error.evalue}", failing_line(node))
    if isinstance(error, CellTimeoutError):
        return at(text, cell, f"still running after {CELL_SECONDS} s: make this cell faster")
    return at(text, cell, "the kernel died while this cell ran")


def failing_line(node: NotebookNode) -> int | None:
    for output in node.outputs:
        if output.output_type == "error":
            found = IN_CELL.findall(plain("\n".join(output.traceback)))
            lines = [int(line) for count, line in found if int(count) == node.execution_count]
            return lines[-1] - 1 if lines else None
    return None


def tidy(notebook: NotebookNode, root: Path) -> NotebookNode:
    """Remove everything that differs between runs or machines: timings, versions, paths."""

    def tidied(text: str | list[str]) -> str | list[str]:
        if isinstance(text, list):
            return [str(tidied(line)) for line in text]
        return PACKAGE_FILE.sub("", KERNEL_FILE.sub("cell.py", text)).replace(str(root), ".")

    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = dict(LANGUAGE)
    for node in notebook.cells:
        node.metadata.pop("execution", None)
        for output in node.get("outputs", []):
            for said in (output, output.get("data", {})):
                for key in ("text", "traceback", "evalue", "text/plain", "text/html"):
                    if key in said:
                        said[key] = tidied(said[key])
    return notebook


def output_problems(text: Text, notebook: NotebookNode, size: int) -> Iterator[Problem]:
    """Yield what is wrong with an executed lesson; `size` is the built notebook's size in bytes.

    An image must be in an HTML output, because only HTML has alternative text. A widget is a
    problem, because it has no state on a static page.
    """
    for cell, node in zip(text.cells, notebook.cells, strict=True):
        if node.cell_type != "code":
            continue
        if node.execution_count is None:
            yield at(text, cell, "was not executed")
        for output in errors(cell, node):
            yield at(text, cell, f"{output.ename}: {output.evalue}", failing_line(node))
        for data in (output.get("data", {}) for output in node.outputs):
            for mime in sorted(data):
                if mime.startswith("image/"):
                    message = (
                        f"an {mime} output has no alternative text: show it as HTML with "
                        "alternative text"
                    )
                    yield at(text, cell, message)
            for _, element in silent_images("".join(data.get("text/html", ""))):
                yield at(text, cell, f"the output has {element} without alternative text")
            if WIDGET in data:
                message = "the output has a live widget: show a static picture in the build"
                yield at(text, cell, message)
    yield from number_problems(text, notebook)
    if size >= LARGEST:
        message = (
            f"the built notebook has {size:,} bytes, expected under {LARGEST:,}: use fewer "
            "or smaller pictures"
        )
        yield Problem(text.path, 1, message)


def number_problems(text: Text, notebook: NotebookNode) -> Iterator[Problem]:
    """Yield a problem for each tag with a number that its cell, or the outputs above it, lack.

    A tag such as "printed 37" says that the cell repeats this number from an output. The number
    must be in the cell and in an output between the last heading and the cell. The output may have
    more decimals than the text.
    """
    outputs: list[str] = []
    for cell, node in zip(text.cells, notebook.cells, strict=True):
        if cell.kind == "markdown" and cell.source.startswith("#"):
            outputs = []
        outputs += map(shown, node.get("outputs", ()))
        for tag in cell.header.get("tags", ()):
            if not tag.startswith(PRINTED):
                continue
            said = numbers(tag)
            if len(said) != 1 or said[0] not in numbers(cell.source):
                yield at(text, cell, f"the tag {tag!r} names no number of this cell: remove it")
                continue
            decimals = len(tag.partition(".")[2])
            printed = [one for output in outputs for one in numbers(output)]
            if said[0] not in (round(one, decimals) for one in printed):
                near = sorted(printed, key=lambda one: abs(one - said[0]))[:3]
                nearest = f" (the nearest are {near})" if near else ""
                message = (
                    f"the tag {tag!r} names a number that no output since the last heading "
                    f"has{nearest}: correct the text and the tag"
                )
                yield at(text, cell, message)


def shown(output: NotebookNode) -> str:
    """Return the text that a reader sees in an output."""
    data = output.get("data", {})
    if page := "".join(data.get("text/html", "")):
        return html.unescape(MARKUP.sub(" ", page))
    return "".join(output.get("text", data.get("text/plain", "")))


def numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def errors(cell: TextCell, node: NotebookNode) -> list[NotebookNode]:
    """Return a cell's error outputs; none if the cell may raise an exception."""
    if MAY_RAISE in cell.header.get("tags", []):
        return []
    return [output for output in node.outputs if output.output_type == "error"]
