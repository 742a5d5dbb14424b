"""`make hub`: the sample JupyterHub with the service, on this machine, for a person to try.

Learners' servers have the bundle, which is made now; all run under this account, so nothing is
kept from anybody. Users and what they wrote stay in ``build/hub``.
"""

from __future__ import annotations

import io
import os
import secrets
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from hood import UserError
from hood.authoring.bundle import archive, learner_files
from hood.classroom.service.hub import CONFIG
from hood.course import ENGINE, course, course_folder

PROXY = "configurable-http-proxy"
PROXY_VERSION = "5.3.0"


def main() -> int:
    """Make the bundle, find or install the hub's proxy, and run the hub until it is stopped."""
    root = course_folder()
    folder = root / "build" / "hub"
    proxy = find_proxy(root / ".venv" / "proxy")
    password = secrets.token_urlsafe(6)
    print("The hub starts, which takes some seconds. Log in at http://localhost:8000", end=" ")
    print(f"under any name, or as teacher: password {password}")
    environment = prepare(root, folder) | {
        "OPEN_THE_HOOD_PASSWORD": password,
        "OPEN_THE_HOOD_PROXY": str(proxy),
    }
    if os.geteuid() == 0:
        user = environment["OPEN_THE_HOOD_USER"]
        print(f"Root runs this hub. {user} owns {root}, and runs the service", end="")
        print(
            ", which is for a try alone: see docs/how-to/jupyterhub.md." if user == "root" else "."
        )
    words = [sys.executable, "-m", "jupyterhub", "-f", str(CONFIG), "--JupyterHub.log_level=WARN"]
    return subprocess.run(words, cwd=folder, env=os.environ | environment, check=False).returncode


def prepare(root: Path, folder: Path) -> dict[str, str]:
    """Unpack the bundle into a folder, and return the variables that the sample settings read."""
    top = course(root).id
    shutil.rmtree(folder / top, ignore_errors=True)
    (folder / "homes").mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(archive(learner_files(root), top))) as bundle:
        bundle.extractall(folder)
    return {
        "OPEN_THE_HOOD_COURSE": str(root),
        "OPEN_THE_HOOD_PYTHON": sys.executable,
        "OPEN_THE_HOOD_BUNDLE": str(folder / top),
        "OPEN_THE_HOOD_HOMES": str(folder / "homes"),
        # for what the hub starts in other folders
        "PYTHONPATH": os.pathsep.join(dict.fromkeys([str(ENGINE), str(root)])),
        # root can run the service as somebody else; nobody else can
        **({"OPEN_THE_HOOD_USER": root.owner()} if os.geteuid() == 0 else {}),
    }


def find_proxy(folder: Path) -> Path:
    """Return the hub's proxy: that on PATH, or one that npm installs into a folder.

    Raises UserError where there is neither it nor npm.
    """
    program = folder / "node_modules" / ".bin" / PROXY
    if found := shutil.which(PROXY):
        return Path(found)
    if not program.exists():
        if not shutil.which("npm"):
            raise UserError(
                f"JupyterHub needs {PROXY}, and there is no npm to install it: `apt install npm`"
            )
        asked = ["npm", "install", "--silent", f"--prefix={folder}", f"{PROXY}@{PROXY_VERSION}"]
        if subprocess.run(asked, check=False).returncode:
            raise UserError(f"npm could not install {PROXY}: it says why above")
    return program


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as error:
        print(f"make hub: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
