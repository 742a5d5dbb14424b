"""Find a lab's answers in files that learners get."""

from itertools import pairwise

from grader.build.leaks import released_lines
from grader.build.text import Text

SHORT = 12  # characters: `return x` proves nothing


def answers(lab: Text) -> list[list[str]]:
    """Return the revealing lines of each solution, hidden test and rubric, in order.

    Short lines and lines that the lab shows elsewhere are left out.
    """
    shown = {line.strip() for cell in lab.cells for line in released_lines(cell)}
    found = []
    for cell in lab.cells:
        lines = zip(cell.source.split("\n"), released_lines(cell), strict=True)
        taken = [line.strip() for line, released in lines if line != released]
        telling = [
            line
            for line in taken
            if len(line) >= SHORT
            and line not in shown
            and not line.startswith(("### BEGIN", "### END", "=== BEGIN", "=== END"))
        ]
        if telling:
            found.append(telling)
    return found


def told(answer: list[str], text: str) -> list[str]:
    """Return the lines of an answer that a text contains."""
    lines = {line.strip() for line in text.split("\n")}
    return [line for line in answer if line in lines]


def copied(answer: list[str], text: str) -> list[str]:
    """Return the lines of an answer that a text copied: all of them, or consecutive ones.

    A single line of several may occur anywhere: `with torch.no_grad():` reveals nothing.
    """
    if len(told(answer, text)) == len(answer):
        return answer
    lines = [line.strip() for line in text.split("\n")]
    there = set(pairwise(line for line in lines if len(line) >= SHORT))
    return [f"{one} / {two}" for one, two in pairwise(answer) if (one, two) in there]
