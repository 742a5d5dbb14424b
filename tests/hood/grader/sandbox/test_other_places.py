"""The same sandboxes for an ordinary user, and with an environment inside the project's folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hood.phase_paths import ROOT
from tests.attacks.catalogue import every_attack
from tests.hood.grader.sandbox import mounts
from tests.patience import PATIENCE

pytestmark = [
    pytest.mark.slow(35),
    pytest.mark.usefixtures("sandbox"),
    pytest.mark.skipif(bool(mounts.why_not()), reason=f"not run: {mounts.why_not()}"),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody can enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o777)
        yield path


IMPORTS = """
import sys
sys.path.insert(0, sys.argv[1])
from hood.grader.sandbox.kernel import SandboxedKernel
with SandboxedKernel() as kernel:
    for code in ("import networkx, torch", "import of_somebody"):
        print(kernel.run(code, 60)["ename"])
"""


def test_inherited_packages_are_visible_and_source_code_is_not(
    folder: Path,
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    [packages] = (folder / "venv" / "lib").glob("python3*/site-packages")
    (folder / "work").mkdir()
    (folder / "work" / "of_somebody.py").touch()
    there = sysconfig.get_path("purelib")
    (packages / "shared.pth").write_text(f"{there}\n{folder / 'work'}\n")
    python = str(folder / "venv" / "bin" / "python")
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-c", IMPORTS, str(ROOT)], env=kept, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == ["None", "ModuleNotFoundError"], done.stderr


# The attacks that depend on a sandbox's rights, or on what is read about it.
ATTACKS = (
    "calls home over tcp",
    "fills sockets",
    "forks for ever",
    "kills everybody",
    "mounts and unshares",
    "reads other processes",
    "reads the course",
    "signals with",
    "takes memory in many",
    "takes page tables",
    "traces others",
    "writes to the machine",
)


def test_an_ordinary_user_has_the_same_sandboxes_and_attacks_fail_in_them(
    folder: Path,
) -> None:
    """Pytest runs the tests of sandboxes, and some attacks, in a process of an ordinary user."""
    chosen = (
        "test_bubblewrap or daemon or bomb or processes or killed_grader or interrupt "
        "or hoards or test_attack"
    )
    here = Path(__file__)
    files = [str(here.with_name(name)) for name in ("test_bubblewrap.py", "test_kernel.py")]
    attacks = [
        f"tests/attacks/test_harm.py::test_attack[{attack}]"
        for attack in every_attack()
        if attack.name.startswith(ATTACKS)
    ]
    assert len(attacks) == len(ATTACKS)
    stash = folder / "stash"
    stash.mkdir()
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={folder / 'tests'}"]
    done = subprocess.run(
        mounts.as_nobody(stash, [*arguments, "-k", chosen, *files, *attacks]),
        cwd=ROOT,
        env={**os.environ, "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "not run" not in done.stdout


LOOK = """
import sys
sys.path.insert(0, {root!r})
from tests.hood.grader.sandbox.inmate import Inmate
import hood.phase_paths
from tests.patience import PATIENCE
assert str(hood.phase_paths.ROOT) == {root!r}, hood.phase_paths.ROOT
assert sys.prefix == {root!r} + "/.venv", sys.prefix
with Inmate() as inmate:
    print(inmate.value("import os, utils, torch\\n"
        "[os.listdir({root!r}), torch.__file__, utils.__file__, os.path.exists({secret!r})]"))
"""


def test_an_environment_in_the_project_shows_nothing_else_of_it(folder: Path) -> None:
    root = folder / "course"
    for name in ("hood", "utils", "tests"):
        shutil.copytree(ROOT / name, root / name)
    shutil.copy(ROOT / "course.toml", root)
    for name in ("phases", "source", ".venv"):
        (root / name).mkdir()
    secret = root / "source" / "answers"
    for path in (secret, root / "gradebook.db"):
        path.write_text("secret")
        path.chmod(0o666)
    python = root / ".venv" / "bin" / Path(sys.executable).name
    code = LOOK.format(root=str(root), secret=str(secret))
    steps = ["set -e", f"mount --bind '{sys.prefix}' '{root}/.venv'", 'exec "$@"']
    done = subprocess.run(
        [*mounts.in_namespace(steps), str(python), "-P", "-c", code],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=root,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    listed, torch, utils, found = json.loads(
        done.stdout.replace("'", '"').replace("False", "false").replace("True", "true")
    )
    assert listed == [".venv"]
    assert torch.startswith(f"{root}/.venv/")
    assert not utils.startswith(str(root))
    assert found is False
