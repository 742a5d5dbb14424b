"""Forge metadata, tags and the order of cells, all of which plain nbgrader trusts."""

from __future__ import annotations

import copy
import json

import nbformat

from tests.attacks.catalogue import Family
from tests.attacks.submission import Work

family = Family("metadata")
attack = family.attack


@attack()
def raises_its_points(work: Work) -> None:
    """Sets the points of its copy of the graded cell to a thousand."""
    work.cell("row_sums").metadata.nbgrader.points = 1000


@attack(tells="The cell `row_sums` was edited")
def writes_its_own_test(work: Work) -> None:
    """Puts a number in place of the graded cell, which nbgrader reads as partial credit."""
    work.cell("row_sums").source = "3.0"


@attack(tells="added to the cell `row_sums` is now in a cell above it")
def answers_for_the_test(work: Work) -> None:
    """Redefines in the graded cell the functions that decide its points."""
    work.cell("row_sums").source = (
        "def check(name): ...\ndef verify(name, thing): return 3.0\nrow_sums = torch.sum\n"
        f"{work.cell('row_sums').source}"
    )


@attack(tells="Tags of the cell `row_sums` were removed: `skip-execution`")
def skips_the_test(work: Work) -> None:
    """Tags the graded cell to be skipped: nbgrader gives full points to a cell without failure."""
    work.cell("row_sums").metadata["tags"] = ["skip-execution"]


@attack()
def lets_the_test_raise(work: Work) -> None:
    """Tags the graded cell as one that is meant to raise."""
    work.cell("row_sums").metadata["tags"] = ["raises-exception"]


@attack(tells="`row_sums` was missing")
def deletes_the_test(work: Work) -> None:
    """Leaves the graded cell out, so that nothing can fail."""
    work.nb.cells.remove(work.cell("row_sums"))


@attack(tells="`row_sums` occurred 2 times")
def copies_the_test(work: Work) -> None:
    """Hands in the graded cell twice, with a harmless second copy, to stop or mislead grading."""
    second = copy.deepcopy(work.cell("row_sums"))
    second.source = "3.0"
    work.nb.cells.append(second)


@attack(tells="id `row_sums_2`, but this lab has no such id")
def renames_the_test(work: Work) -> None:
    """Gives the graded cell another id, and gives its old id to a free cell."""
    test = work.cell("row_sums")
    test.metadata.nbgrader.grade_id = "row_sums_2"
    free = nbformat.v4.new_code_cell("3.0", metadata=copy.deepcopy(test.metadata))
    free.metadata.nbgrader.grade_id = "row_sums"
    work.nb.cells.append(free)


@attack(tells="had become a markdown cell")
def makes_the_test_text(work: Work) -> None:
    """Turns the graded cell into text, which is not executed."""
    position = work.nb.cells.index(work.cell("row_sums"))
    metadata = work.cell("row_sums").metadata
    work.nb.cells[position] = nbformat.v4.new_markdown_cell("solved", metadata=metadata)


@attack(tells="grading settings of the cell `row_sums`")
def unlocks_the_test(work: Work) -> None:
    """Marks the graded cell as an unlocked solution, graded by a person."""
    settings = work.cell("row_sums").metadata.nbgrader
    settings.update(solution=True, locked=False, task=True, grade=False)


@attack(tells="id `bonus`, but this lab has no such id")
def adds_an_exercise(work: Work) -> None:
    """Adds a graded cell with fifty points."""
    settings = {**work.cell("row_sums").metadata.nbgrader, "grade_id": "bonus", "points": 50}
    work.nb.cells.append(nbformat.v4.new_code_cell("50", metadata={"nbgrader": settings}))


@attack()
def claims_a_newer_schema(work: Work) -> None:
    """Claims a future schema of nbgrader in every cell, which stops plain nbgrader for all."""
    for cell in work.nb.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader.schema_version = 99


@attack()
def chooses_its_seed(work: Work) -> None:
    """Brings a seed for its own cases, and its own limits."""
    work.nb.metadata.open_the_hood = {
        "seed": "00",
        "cell_seconds": 100_000,
        "limits": {"memory_mb": 100_000, "total_seconds": 100_000},
        "sandbox": False,
    }


@attack(tells="SyntaxError")
def claims_a_newer_python(work: Work) -> None:
    """Claims to be written for a future Python, so that a syntax error earns a point."""
    work.nb.metadata.language_info = {"name": "python", "version": "3.99.0"}
    work.answer("row_sums", "def row_sums(x) return x.sum(1)")


@attack()
def asks_for_another_kernel(work: Work) -> None:
    """Names a kernel and a language that would run code other than Python."""
    work.nb.metadata.kernelspec = {"name": "../../evil", "display_name": "x", "language": "bash"}
    work.nb.metadata.language_info = {"name": "bash"}


@attack()
def brings_marks_of_an_earlier_run(work: Work) -> None:
    """Brings outputs, verdicts and scores, as if it had been graded already."""
    test = work.cell("row_sums")
    verdict = {"check": "row_sums", "points": 3, "earned": 3.0, "status": "right", "parts": []}
    bundle = {"application/vnd.open-the-hood.verdict+json": verdict, "text/plain": "right"}
    test.outputs = [
        nbformat.v4.new_output("display_data", data=bundle),
        nbformat.v4.new_output("execute_result", data={"text/plain": "3.0"}, execution_count=1),
    ]
    test.metadata.nbgrader.score = 3
    test.metadata.open_the_hood = {"seconds": 0}


@attack(tells="The cells of this lab had lost their ids")
def has_metadata_of_every_wrong_type(work: Work) -> None:
    """Puts lists, numbers and nulls where metadata should be objects."""
    tree = json.loads(work.bytes())
    for cell, wrong in zip(tree["cells"], [[], 3, None, "x", {"nbgrader": [1]}] * 9, strict=False):
        cell["metadata"] = wrong
    work.raw = json.dumps({**tree, "metadata": [None]}).encode()


@attack()
def says_the_grader_wrote_it(work: Work) -> None:
    """Marks its text, which has a script, as the grader's text, which pages show unchanged."""
    work.text("<script>alert('hood')</script>")
    work.nb.cells[-1].metadata["open_the_hood"] = {"by": "grader"}
