"""What the build adds to a lesson's Markdown for JupyterLab, and how it is taken out again.

A cell is compared with its text, and a learner's copy with the lesson, without these additions.
"""

from __future__ import annotations

# Around the words that answer a prediction, and below a section's heading.
OPEN = '<details class="prediction"><summary>What happens, in words</summary>\n\n'
CLOSE = "\n\n</details>"
BUTTON = (
    '<button data-commandlinker-command="notebook:run-all-above" data-commandlinker-args="{}">'
    "Run all cells above</button>\n\n"
)


def as_text(markdown: str) -> str:
    """Return a cell's markdown as its text has it, without what the build adds for JupyterLab."""
    return without_button(unfolded(markdown))


def unfolded(markdown: str) -> str:
    """Return a cell's markdown without the fold around its first words."""
    if not markdown.startswith(OPEN):
        return markdown
    return markdown.removeprefix(OPEN).replace(CLOSE, "", 1)


def without_button(markdown: str) -> str:
    """Return a cell's markdown without the button below its heading."""
    return markdown.replace(BUTTON, "", 1).removesuffix(f"\n\n{BUTTON}".rstrip("\n"))
