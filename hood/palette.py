"""The colours of what the engine shows in a notebook: verdicts, and a learner's progress.

A course may give others, by their names, in `[palette]` of its `course.toml`.
"""

from hood.course import course, course_folder

# Each has a contrast of 4.5 or more on white and on the colour that text on it has.
COLOURS = {
    "right": "#2e7d32",
    "wrong": "#c62838",
    "muted": "#5b6675",  # of what is neither, and of notes
    "progress": "#0b7a5e",
    "on_progress": "#ffffff",  # text on it
}


def colour(name: str) -> str:
    """Return the colour of this name; KeyError if there is none."""
    return course(course_folder()).palette.get(name, COLOURS[name])
