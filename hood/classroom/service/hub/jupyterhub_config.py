"""A JupyterHub with this course's service: a sample to start from, and what `make hub` runs.

What the service needs of a hub stands first, and is the same for every authenticator and spawner.
What follows is for a try on one machine: anybody may log in, with the password that `make hub`
prints, and all users' servers run under this account. Replace it by your own.
"""

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any


def setting(name: str, what: str) -> str:
    """Return a variable without which this file can't be used. Raises SystemExit, with a sentence.

    Args:
        what: what the variable should hold.
    """
    if not (value := os.environ.get(name, "").strip()):
        raise SystemExit(f"{__file__}: {name} is not set, and should be {what}")
    return value


def account() -> dict[str, str]:
    """Return the setting for the service's account; it has one of its own where root runs the hub.

    Raises SystemExit where none is named, or there is no such account.
    """
    if os.geteuid() != 0:
        return {}  # the hub's account, which can become no other
    user = setting(
        "OPEN_THE_HOOD_USER",
        "the account that runs the service, because root runs this hub: one of its own, which owns "
        f"{COURSE} and which no learner can use",
    )
    try:
        pwd.getpwnam(user)
    except KeyError:
        raise SystemExit(
            f"{__file__}: OPEN_THE_HOOD_USER is {user!r}, and this machine has no such account"
        ) from None
    return {"user": user}


COURSE = Path(setting("OPEN_THE_HOOD_COURSE", "the project's folder, with checks and grades"))
# of the course's own environment: the hub's may have other packages, and other versions
PYTHON = setting(
    "OPEN_THE_HOOD_PYTHON", f"the course's own Python, such as {COURSE}/.venv/bin/python"
)
NAME = os.environ.get("OPEN_THE_HOOD_NAME", "open-the-hood")  # another one for each course
PORT = os.environ.get("OPEN_THE_HOOD_PORT", "8765")
# The service, as learners' servers reach it: past the hub's proxy, or by its address on the hub
SERVICE = os.environ.get("OPEN_THE_HOOD_SERVICE", f"http://127.0.0.1:{PORT}/services/{NAME}/")
# Each user's pages have a host of their own below this one. Without that a learner's page can act
# with the rights of any teacher who opens it, and the service has no pages for marking.
SUBDOMAINS = os.environ.get("OPEN_THE_HOOD_SUBDOMAINS", "http://localhost:8000")
TEACHERS = "instructors"  # a group of the hub

c = get_config()  # type: ignore[name-defined]  # noqa: F821

c.JupyterHub.subdomain_host = SUBDOMAINS
c.JupyterHub.services = [
    {
        "name": NAME,
        "url": f"http://127.0.0.1:{PORT}",
        # or, where the service runs elsewhere, in place of `command` its `api_token`
        "command": [PYTHON, "-m", "hood", "serve", "--hub", "--teachers", TEACHERS],
        "cwd": str(COURSE),
        "oauth_no_confirm": True,  # the hub asks nothing more when its pages are opened
        **account(),
    }
]
ASKS = f"access:services!service={NAME}"
c.JupyterHub.load_roles = [{"name": "user", "scopes": ["self", ASKS]}]
# What a learner's server may do with its token: what the hub gives by default, ask the service, and
# tell it who is asking.
c.Spawner.server_token_scopes = [
    "users:activity!user",
    "access:servers!server",
    "read:users:name!user",
    "read:users:groups!user",
    ASKS,
]
c.Spawner.environment = {"OPEN_THE_HOOD_SERVICE": SERVICE}
c.JupyterHub.load_groups = {TEACHERS: {"users": ["teacher"]}}

# For a try on one machine
BUNDLE = Path(
    setting("OPEN_THE_HOOD_BUNDLE", "the archive of `bundle`, unpacked; it has no checks")
)
HOMES = Path(setting("OPEN_THE_HOOD_HOMES", "a folder for users' files and the hub's own"))
SINGLEUSER = [sys.executable, "-m", "jupyterhub.singleuser"]


def prepare(spawner: Any) -> None:
    """Give a learner's server the bundle, and a teacher's server the course with its tools."""
    teaches = TEACHERS in {group.name for group in spawner.user.groups}
    (open_the_course if teaches else give_the_bundle)(spawner)


def open_the_course(spawner: Any) -> None:
    """Start a teacher's server in the course's folder, with all that `make teach` has."""
    theirs = {
        "PYTHONPATH": str(COURSE),
        # `python` and `nbgrader` in a terminal are the course's
        "PATH": os.pathsep.join([str(Path(PYTHON).parent), os.environ["PATH"]]),
        # what learners have, with nbgrader's menu and the pages for marking
        "JUPYTER_CONFIG_PATH": os.pathsep.join(
            str(COURSE / "hood" / folder)
            for folder in ("classroom/marking/jupyter", "learner/jupyter")
        ),
    }
    spawner.environment = spawner.environment | theirs
    spawner.cmd = ["sh", "-c", 'cd "$0" && exec "$@"', str(COURSE), *SINGLEUSER]
    # a login shell, which is the default, forgets that PATH
    spawner.args = [*spawner.args, "--ServerApp.terminado_settings={'shell_command': ['bash']}"]
    spawner.notebook_dir = str(COURSE)
    spawner.default_url = "/lab"


def give_the_bundle(spawner: Any) -> None:
    """Copy the bundle into a learner's folder, the first time, and refresh their copies of labs."""
    home = Path(spawner.home_dir)
    if not home.exists():
        shutil.copytree(BUNDLE, home)
    # all use one installation here, in which `utils` and `hood` would be the project's
    theirs = {"PYTHONPATH": str(home)}
    # without nbgrader's menu and sidebar, for which learners have no use; and with JupyterLab's
    # settings by which links lead to sections of lessons that are not open yet
    theirs["JUPYTER_CONFIG_PATH"] = str(home / "hood" / "learner" / "jupyter")
    spawner.environment = spawner.environment | theirs
    subprocess.run([sys.executable, "-m", "hood.learner.copies"], cwd=home, env=os.environ | theirs)


c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = f"{HOMES}/{{username}}"
c.Spawner.pre_spawn_hook = prepare
c.Spawner.default_url = "/lab/tree/work/start.ipynb"
c.Spawner.cmd = SINGLEUSER
# what requests succeed would push the password out of the terminal
c.Spawner.args = ["--ServerApp.log_level=WARN"] + ["--allow-root"] * (os.geteuid() == 0)
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = setting("OPEN_THE_HOOD_PASSWORD", "what everybody logs in with")
c.Authenticator.allow_all = True
c.JupyterHub.bind_url = os.environ.get("OPEN_THE_HOOD_BIND", "http://127.0.0.1:8000")
c.ConfigurableHTTPProxy.command = os.environ.get("OPEN_THE_HOOD_PROXY", "configurable-http-proxy")
c.ConfigurableHTTPProxy.log_level = "warn"
c.JupyterHub.cookie_secret_file = str(HOMES / ".cookie-secret")
c.JupyterHub.db_url = f"sqlite:///{HOMES}/.jupyterhub.sqlite"
