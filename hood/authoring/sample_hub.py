"""`make hub`: the sample JupyterHub with the service, on this machine, for a person to try.

Each learner's server has a new bundle. All servers run under this account, so users are not
protected from each other. ``build/hub`` keeps the users and their files.
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
    """Make the bundle, find or install the hub's proxy, and run the hub until somebody stops it."""
    root = course_folder()
    folder = root / "build" / "hub"
    proxy = find_proxy(root / ".venv" / "proxy")
    password = secrets.token_urlsafe(6)
    print("The hub starts in a few seconds. Log in at http://localhost:8000", end=" ")
    print(f"with any name, or with the name teacher. The password is {password}")
    environment = prepare(root, folder) | {
        "OPEN_THE_HOOD_PASSWORD": password,
        "OPEN_THE_HOOD_PROXY": str(proxy),
    }
    if os.geteuid() == 0:
        user = environment["OPEN_THE_HOOD_USER"]
        print(f"Root runs this hub. {user} owns {root} and runs the service", end="")
        print(
            ". Do this only to try the hub: see docs/how-to/jupyterhub.md."
            if user == "root"
            else "."
        )
    words = [sys.executable, "-m", "jupyterhub", "-f", str(CONFIG), "--JupyterHub.log_level=WARN"]
    return subprocess.run(words, cwd=folder, env=os.environ | environment, check=False).returncode


def prepare(root: Path, folder: Path) -> dict[str, str]:
    """Unpack the bundle into a folder; return the environment variables for the sample settings."""
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
        # the hub starts processes in other folders, and they must find the engine
        "PYTHONPATH": os.pathsep.join(dict.fromkeys([str(ENGINE), str(root)])),
        # only root can run the service as another user
        **({"OPEN_THE_HOOD_USER": root.owner()} if os.geteuid() == 0 else {}),
    }


def find_proxy(folder: Path) -> Path:
    """Return the hub's proxy, from PATH, or installed by npm into a folder.

    Raises UserError if there is neither a proxy nor npm.
    """
    program = folder / "node_modules" / ".bin" / PROXY
    if found := shutil.which(PROXY):
        return Path(found)
    if not program.exists():
        if not shutil.which("npm"):
            raise UserError(
                f"JupyterHub needs {PROXY}, and npm must install it: run `apt install npm`"
            )
        asked = ["npm", "install", "--silent", f"--prefix={folder}", f"{PROXY}@{PROXY_VERSION}"]
        if subprocess.run(asked, check=False).returncode:
            raise UserError(f"npm could not install {PROXY}: see its message above")
    return program


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as error:
        print(f"make hub: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
