"""What the grading process asks of the sandbox module that a ``course.toml`` names."""

from __future__ import annotations

from hood.course import course, course_folder
from hood.grader.inside.course_sandbox import CourseSandbox, Lack, load


def of_course() -> CourseSandbox:
    """Return what the course of this process says of its sandboxes."""
    return load(course(course_folder()).sandbox)


def compiler_lacks() -> Lack | None:
    """Return what the course's labs need to compile and this machine lacks; None for nothing."""
    return of_course().lacks()
