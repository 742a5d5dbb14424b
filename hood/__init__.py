"""The engine: it makes labs from text, judges answers, and computes the results of a class.

`python -m hood --help` lists the commands. The engine has five rooms. A room may import from the
rooms above it in this list, and from the modules beside the rooms:

    judge       exercises, their cases, verdicts, and the texts about verdicts
    learner     a learner's notebook: verdicts in it, progress, copies that are kept up to date
    grader      judges other people's notebooks: sandboxes, and the workers of a batch
    classroom   a class: rules, hand-ins that count, report, feedback, marking, the service
    authoring   makes notebooks from text: build, site, bundle, and the proof that checks are right

The `__init__.py` of each room says what the room's input and output are, and which module to open.
The modules beside the rooms serve all of them:

    course         a course, as its `course.toml` describes it
    phase_paths    the paths of a course's files
    addresses      links to a course's lessons
    verdict        a result
    rubric         the rubric of a question in words
    manifest       everything that a result depends on
    metadata       the engine's keys in a notebook
    lab_words      words in a lab that mean something to a program
    audience       who reads a notebook's output
    palette        colours
    notebook_file  writes a notebook
    atomic_files   writes a file as a whole
    untrusted      reads data of any shape
"""

import sys

# jsonschema, which nbformat imports, loads rfc3987_syntax if it is installed. That module compiles
# a grammar for about one second in every process. The notebook schema does not use that module, so
# its import is blocked.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


class UserError(Exception):
    """An error that the user can fix. The command line prints its message without a traceback."""


def not_installed(what: str, error: ModuleNotFoundError) -> UserError:
    """Return an error that names a missing package, and says how to install it.

    ``what`` is the feature that needs the package.

    The message's command installs the packages of the lock files. It never installs this project by
    its name, because somebody else may own that name on a package index. Raises ``error`` if the
    package is installed, but one of its modules is missing.
    """
    missing = (error.name or "").partition(".")[0]
    if not missing or missing in sys.modules:
        raise error
    files = "-r lock/packages.txt -r lock/extras.txt"
    install = f"{sys.executable} -m pip install --no-deps --require-hashes {files}"
    return UserError(
        f"{what} needs {missing}, which is not installed. In the project's folder, run: {install}"
    )
