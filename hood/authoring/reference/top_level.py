"""The files and folders at the top of a course, and which of them have personal data."""

# Files in the repository: the engine and the course.
PROJECT = {
    "phases/": "the texts of the course: lessons, labs and their checks",
    "notebooks/": "the lessons and the start page, built from `phases/`",
    "source/": "the labs with their solutions, built from `phases/`; nbgrader's folder",
    "release/": "the labs as learners get them, built from `phases/`; nbgrader's folder",
    "hood/": "the engine: it builds notebooks, judges answers and runs a class",
    "utils/": "the course's own package, which its notebooks import",
    "examples/": "other courses for the same engine, each in a separate folder",
    "tests/": "the tests",
    "benchmarks/": "measurements, and the recorded GPU runs that lessons read",
    "docs/": "the guides",
    "lock/": "the exact versions of all packages, with their hashes",
    "course.toml": "the course's settings, which the engine reads",
    "nbgrader_config.py": "the settings of nbgrader",
    "pyproject.toml": "the packages that the project needs, and the settings of its tools",
    "environment.yml": "the packages that the project needs, for conda",
    "Makefile": "the `make` commands",
    "Dockerfile": "two container images: for learners on a JupyterHub, and for grading",
    "README.md": "a description of the project",
    "CONTRIBUTING.md": "where a change goes",
    "SECURITY.md": "how the project protects itself against hostile submissions",
    "AGENTS.md": "instructions for coding assistants",
    "CLAUDE.md": "the same instructions, for an assistant that looks for this name",
    "LICENSE": "the licence, MIT",
    ".ci/": "the steps that CI runs",
    ".devcontainer/": "the settings of a container for editors",
    ".github/": "CI on GitHub",
    ".gitattributes": "a list of the files that are binary, and of the files that are built",
    ".gitignore": "a list of the files that git ignores",
}
# Files that a class adds. git leaves them out.
CLASS = {
    "course.yml": "the rules of the class: names, dates, and the reasons for extensions",
    "class.csv": "the roster",
    "submitted/": "the submissions that count; nbgrader's folder",
    "received/": "the hand-ins that are kept, each under its time",
    "downloaded/": "the submissions that you downloaded from a learning platform",
    "autograded/": "the graded notebooks; nbgrader's folder",
    "feedback/": "each learner's pages of feedback; nbgrader's folder",
    "gradebook.db": "the marks, in nbgrader's database",
    "reports/": "the class report of each lab",
    "grades.csv": "the export of `nbgrader export`",
    "counted.csv": "the export for nbgrader",
    "moodle.csv": "the export for Moodle",
    "canvas.csv": "the export for Canvas",
    "total.csv": "the export of the term's total",
    "gradescope/": "the export for Gradescope",
    "inbound/": "submissions, if nbgrader's exchange is in this folder",
    ".pseudonyms": "the key that makes pseudonyms for reports without names",
    ".service-key": "the key that makes the service's tokens",
    ".released/": "the texts of all releases of labs, to recognise a lab's own text in submissions",
    ".nbgrader.log": "the log of nbgrader",
    ".restoring/": "files of a `restore` that is not finished",
    "replaced-*/": "files that a `restore` replaced",
}
# Files of one learner. git leaves them out.
LEARNER = {
    "work/": "the learner's copies of lessons and labs, answers and progress",
}
# Files that commands make, and that can be made again.
MADE = {
    ".venv/": "a Python environment with the locked packages; `make` makes it",
    "build/": "the site, and JupyterLab's log",
    "dist/": "the learner's archive; `python -m hood bundle` makes it",
}
GROUPS = {
    "The project": PROJECT,
    "A class": CLASS,
    "A learner": LEARNER,
    "Files that can be made again": MADE,
}
SECRET = {".pseudonyms", ".service-key"}
PERSONAL = {*CLASS, *LEARNER} - SECRET - {".released/"}
