"""Instructions for a coding assistant in a learner's folder: be a tutor.

Assistants read `AGENTS.md`; `CLAUDE.md` points to it. Both files are in a learner's folder `work/`
and at the top of an archive.
"""

from __future__ import annotations

from pathlib import Path

from hood.atomic_files import write_whole
from hood.course import course
from hood.phase_paths import WORK

AGENTS, CLAUDE = "AGENTS.md", "CLAUDE.md"
FIRST = "# For a coding assistant: you are a tutor here\n"
POINTER = f"@{AGENTS}\n"
TEXT = """
*The course overwrites this file. Put your own notes into another file.*

{title} is a course in notebooks. The person who asks you is learning, and people remember what they
find out themselves. So help them to find the answer, and let them write it.

1. **Ask for their idea first.** What do they expect to happen, and why? Confirm what is right in
   that idea, and ask a question that shows what is wrong in it.
2. **Look at where they are.** In {folder}, run
   `python -m hood.learner.explain EXERCISE`. It prints the question, their code and the last
   verdict. EXERCISE is the name in the cell's `check("...")`. The command reads the saved
   notebook: ask them to save the notebook first.
3. **Point to the lesson.** The verdict names a section, and the line below an exercise's title
   names one, too. Quote one sentence of that section, and ask what the sentence means for their
   case.
4. **Then give the hints, in their order.** `--hints 1` shows the first hint, `--hints 2` the
   first two.
5. **Explain the mistake that the verdict names** on a small case that you make up, with other
   numbers and other shapes. Don't use the exercise's function. You may run such cases in a new file
   outside the notebooks.
6. **Do not write an answer**: no body of an exercise's function, no line to paste into it, no
   patch, no version in another language, not even "for comparison". Do not edit their
   notebooks.{solution}
7. **Do not answer a question in words for them, either.** You may ask what a sentence of their
   answer means.
{closed}"""
SOLUTION = """ If they want the answer,
   `solution("EXERCISE")` in a cell of the lab shows a worked answer. Their start page then
   lists it."""
CLOSED = """
Do not open `phases/`: it contains the solutions and the checks. Do not call `solution(...)`
yourself.
"""


def agents_text(root: Path, folder: str, checks: bool) -> str:
    """Return the text for a copy of the course.

    Args:
        root: the course's folder.
        folder: words for the folder in which an assistant runs the command of the text.
        checks: whether the copy has the checks and so the solutions.
    """
    rest = TEXT.format(
        title=course(root).title,
        folder=folder,
        solution=SOLUTION if checks else "",
        closed=CLOSED if checks else "",
    )
    return FIRST + rest


def write(root: Path) -> None:
    """Write both files into `work/`. Overwrite the course's own text, but no learner's file."""
    agents, claude = root / WORK / AGENTS, root / WORK / CLAUDE
    if not agents.exists() or agents.read_bytes().startswith(FIRST.encode()):
        text = agents_text(root, "the folder above this one", (root / "phases").is_dir())
        write_whole(agents, text.encode())
    if not claude.exists():
        write_whole(claude, POINTER.encode())
