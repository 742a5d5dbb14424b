"""The colours of verdicts and pages.

A course may replace some of these colours in `[palette]` of its `course.toml`.
"""

from hood.course import course, course_folder

# By role. Text has a contrast of at least 4.5 on white, on `card`, and on its own background.
COLOURS = {
    "ink": "#1f2a37",
    "muted": "#5b6675",  # for notes, and for parts that are neither right nor wrong
    "rule": "#d3d9e0",
    "card": "#fdfdfb",  # a background on which text in the other colours can be read
    "link": "#1f6aa5",
    "full": "#0b7a5e",  # a bar with all points
    "on_full": "#ffffff",  # text on `full`
    "full_tint": "#d3ece3",  # a pale background; all tints are pale backgrounds
    "alarm": "#c2471b",
    "on_alarm": "#ffffff",
    "hint": "#faebc6",  # a pale background
    "right": "#2e7d32",
    "right_tint": "#d7ecd9",
    "wrong": "#c62838",
    "wrong_tint": "#f8d9dc",
}


def colour(name: str) -> str:
    """Return the colour of a role. Raises KeyError for an unknown role."""
    return palette()[name]


def palette() -> dict[str, str]:
    """Return a colour for each role: the course's colour, or else the engine's colour."""
    return {**COLOURS, **course(course_folder()).palette}
