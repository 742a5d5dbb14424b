"""Give the grading process access to the sandbox module that a ``course.toml`` names."""

from __future__ import annotations

from hood.course import course, course_folder
from hood.grader.inside.course_sandbox import CourseSandbox, Lack, load


def of_course() -> CourseSandbox:
    """Return the sandbox settings of this process's course."""
    return load(course(course_folder()).sandbox)


def compiler_lacks() -> Lack | None:
    """Return what this machine lacks to compile the course's labs; None if it has everything."""
    return of_course().lacks()
