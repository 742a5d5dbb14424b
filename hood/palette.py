"""The colours of all that the engine shows: verdicts in a notebook, and pages.

A course may give others, by their names, in `[palette]` of its `course.toml`.
"""

from hood.course import course, course_folder

# By their role. Text has a contrast of 4.5 or more on white, on `card`, and on its own ground.
COLOURS = {
    "ink": "#1f2a37",
    "muted": "#5b6675",  # of what is neither right nor wrong, and of notes
    "rule": "#d3d9e0",
    "card": "#fdfdfb",  # the ground that the others can be read on
    "link": "#1f6aa5",
    "full": "#0b7a5e",  # of a bar: all points
    "on_full": "#ffffff",  # text on it
    "full_tint": "#d3ece3",  # a pale ground, as each tint
    "alarm": "#c2471b",
    "on_alarm": "#ffffff",
    "hint": "#faebc6",  # a pale ground
    "right": "#2e7d32",
    "right_tint": "#d7ecd9",
    "wrong": "#c62838",
    "wrong_tint": "#f8d9dc",
}


def colour(name: str) -> str:
    """Return the colour of this role; KeyError if there is none."""
    return palette()[name]


def palette() -> dict[str, str]:
    """Return the colours by their role: the course's own, else the engine's."""
    return {**COLOURS, **course(course_folder()).palette}
