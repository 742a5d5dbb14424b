"""Hostile files beside the notebook, in the submission's folder."""

from __future__ import annotations

import os
import stat

import pytest

from tests.attacks.catalogue import Family
from tests.attacks.submission import Work

family = Family("folder")
attack = family.attack

# Code that writes a file wherever it runs. In a sandbox, the file disappears with the sandbox.
TRACE = "open('/tmp/hood-loot', 'w').write('ran')\n"


@attack()
def has_modules_of_the_same_name(work: Work) -> None:
    """Brings torch.py, numpy.py, utils.py and a package hood, to shadow the real ones."""
    for name in ("torch.py", "numpy.py", "utils.py", "IPython.py", "json.py", "ast.py"):
        (work.folder / name).write_text(TRACE)
    package = work.folder / "hood"
    for folder in (package, package / "judge", package / "judge" / "connection"):
        folder.mkdir()
        for name in ("__init__.py", "verify.py", "judge.py", "rpc_server.py", "codec.py"):
            (folder / name).write_text(TRACE + "def verify(*a, **k): return 3.0\nserve = verify")
    work.first("import importlib, json, ast, utils\nprint(utils.__file__, json.__file__)")


@attack()
def has_a_course_of_its_own(work: Work) -> None:
    """Brings a course.toml whose packages, drivers and sandbox module are the learner's files."""
    (work.folder / "course.toml").write_text(
        'title = "mine"\npackages = ["mine"]\ndrivers = "mine"\nsandbox = "mine.sandbox"\n'
    )
    (work.folder / "mine").mkdir()
    for name in ("__init__.py", "sandbox.py", "shapes.py"):
        (work.folder / "mine" / name).write_text(TRACE + "def preload(): pass\n")
    work.first("import os\nos.environ['HOOD_COURSE'] = os.getcwd()")


@attack()
def has_modules_for_whoever_opens_the_notebook(work: Work) -> None:
    """Brings the modules that a kernel in the graded notebook's folder would import first."""
    for name in ("ipykernel_launcher.py", "ipykernel.py", "traitlets.py"):
        (work.folder / name).write_text(TRACE)


@attack()
def has_files_that_start_by_themselves(work: Work) -> None:
    """Brings sitecustomize, usercustomize, .pth and conftest files, and start-up scripts."""
    for name in ("sitecustomize.py", "usercustomize.py", "conftest.py", "evil.pth", ".pythonrc"):
        (work.folder / name).write_text(TRACE.replace("open", "import os; open"))


@attack()
def has_settings_of_jupyter(work: Work) -> None:
    """Brings configuration of Jupyter, IPython and nbgrader, and profiles with start-up code."""
    names = (
        "ipython_config.py",
        "ipython_kernel_config.py",
        "jupyter_config.py",
        "jupyter_nbconvert_config.py",
        "nbgrader_config.py",
        "jupyter_client_config.py",
    )
    for name in names:
        (work.folder / name).write_text(TRACE)
    startup = work.folder / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00.py").write_text(TRACE)
    (work.folder / "matplotlibrc").write_text("backend: evil\n")
    kernels = work.folder / ".local" / "share" / "jupyter" / "kernels" / "python3"
    kernels.mkdir(parents=True)
    (kernels / "kernel.json").write_text('{"argv": ["touch", "/tmp/hood-loot"], "language": "x"}')


@attack()
def has_settings_of_what_is_started_in_the_folder(work: Work) -> None:
    """Brings settings files, such as JSON, that nbgrader, Jupyter and editors read."""
    names = ("nbgrader_config.json", "jupyter_server_config.json", "package.json", "tox.ini")
    for name in (*names, ".vscode/tasks.json", ".jupyter/jupyter_config.json", "setup.cfg"):
        path = work.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"tasks": [{"command": "touch /tmp/hood-loot"}]}')


@attack()
def has_a_file_with_the_longest_name(work: Work) -> None:
    """Brings a harmless file whose name has as many bytes as a file system allows."""
    (work.folder / ("x" * 251 + ".csv")).write_text("1")


@attack(dangerous=True)
def has_links_to_secrets(work: Work) -> None:
    """Brings symbolic links to the gradebook, the source, the course and the whole disk."""
    course = work.host.course
    for name, target in {
        "db": course / "gradebook.db",
        "source": course / "source",
        "course": course,
        "disk": "/",
        "self": ".",
        "environ": "/proc/self/environ",
    }.items():
        os.symlink(target, work.folder / name)
    work.first(
        """
        import os
        for name in os.listdir("."):
            for path in (name, name + "/98_attacked/98_attacked.ipynb", name + "/gradebook.db"):
                try:
                    print(name, open(path, errors="replace").read())
                except OSError as error:
                    print(name, error)
        """
    )


@attack()
def has_hard_links_to_secrets(work: Work) -> None:
    """Brings hard links, which look like plain files, to the gradebook and another submission."""
    other = work.host.course / "submitted" / "other" / "98_attacked" / "98_attacked.ipynb"
    os.link(work.host.course / "gradebook.db", work.folder / "db")
    os.link(other, work.folder / "other.txt")
    work.first(
        """
        import os
        for name in sorted(os.listdir(".")):
            print(name, open(name, errors="replace").read()[:10000])
        """
    )


@attack(costs=("twice",), tells="is a symbolic link, which is not followed")
def is_a_link_to_the_source(work: Work) -> None:
    """Hands in, as its notebook, a link to the instructor's version with all solutions."""
    work.raw = None
    os.symlink(
        work.host.course / "source" / "98_attacked" / "98_attacked.ipynb",
        work.folder / "98_attacked.ipynb",
    )


@attack(costs=("twice",), tells="is not an ordinary file", dangerous=True)
def is_a_pipe(work: Work) -> None:
    """Hands in, as its notebook, a named pipe that nobody ever writes into."""
    os.mkfifo(work.folder / "98_attacked.ipynb")


@attack(costs=("twice",), tells="is not an ordinary file", dangerous=True)
def is_an_endless_device(work: Work) -> None:
    """Hands in, as its notebook, a device that never ends."""
    if os.geteuid() != 0:
        pytest.skip("not run: only root makes devices")
    os.mknod(work.folder / "98_attacked.ipynb", stat.S_IFCHR | 0o666, os.makedev(1, 5))


@attack(dangerous=True)
def has_pipes_and_devices(work: Work) -> None:
    """Brings named pipes, sockets and devices; copying one of them would never end."""
    os.mkfifo(work.folder / "data.csv")
    os.mknod(work.folder / "weights.pt", stat.S_IFSOCK | 0o666)
    if os.geteuid() == 0:  # only root makes devices
        os.mknod(work.folder / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))


@attack()
def has_folders_without_end(work: Work) -> None:
    """Brings very deep folders and odd names, on which a careless copy fails."""
    deep = work.folder
    for _ in range(40):
        deep = deep / "d"
        deep.mkdir()
    for name in (b"\xff\xfe", b"new\nline", b"-rf", "ü".encode() * 100, b" ", b"$(id)"):
        with open(os.fsencode(work.folder) + b"/" + name, "wb") as file:
            file.write(b"x")


@attack(dangerous=True)
def has_a_huge_sparse_file(work: Work) -> None:
    """Brings a sparse file of a terabyte, which takes no space on the disk."""
    with open(work.folder / "weights.pt", "wb") as file:
        file.truncate(1 << 40)


@attack()
def has_files_without_number(work: Work) -> None:
    """Brings three thousand small files."""
    for number in range(3000):
        (work.folder / str(number)).touch()


@attack()
def has_programs(work: Work) -> None:
    """Brings programs named like those that graders call, marked as executable."""
    for name in ("python", "python3", "bwrap", "alembic", "sh", "git"):
        (work.folder / name).write_text("#!/bin/sh\ntouch /tmp/hood-loot\n")
        (work.folder / name).chmod(0o6777)


@attack(tells="nothing else here")
def hides_answers_in_its_timestamp(work: Work) -> None:
    """Brings the answers to an earlier grading, in places that no digest of contents includes.

    The places are the text after a date in nbgrader's own file, names of empty folders, and
    permissions of files.
    """
    (work.folder / "timestamp.txt").write_text("2026-01-02 10:00:00 UTC\n" + "answers" * 100)
    (work.folder / "a = 1").mkdir()
    (work.folder / "run").write_text("x")
    (work.folder / "run").chmod(0o700)
    work.first(
        """
        import os
        seen = [(name, os.access(name, os.X_OK)) for name in os.listdir(".")]
        print(seen, "nothing else here" if seen == [("run", False)] else "hood")
        """
    )
