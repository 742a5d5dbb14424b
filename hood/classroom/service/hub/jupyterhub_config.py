"""Sample settings for a JupyterHub with this course's service; `make hub` runs such a hub.

The settings that the service needs come first. They are the same for every authenticator and
spawner. The other settings are only for a trial on one machine: anybody may log in with the
password that `make hub` prints, and all users' servers run under this account. Replace these other
settings by your own.
"""

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any


def setting(name: str, what: str) -> str:
    """Return a required environment variable, or raise SystemExit with a sentence if it is missing.

    Args:
        what: the value that the variable should have, in words.
    """
    if not (value := os.environ.get(name, "").strip()):
        raise SystemExit(f"{__file__}: {name} is not set: expected {what}")
    return value


def account() -> dict[str, str]:
    """Return the setting for the service's account. If root runs the hub, this account is required.

    Raises SystemExit if the account is required but not named, or if it does not exist.
    """
    if os.geteuid() != 0:
        return {}  # the hub's account, which can't switch to another account
    user = setting(
        "OPEN_THE_HOOD_USER",
        "the account that runs the service, because root runs this hub: a separate account that "
        f"owns {COURSE} and that no learner can use",
    )
    try:
        pwd.getpwnam(user)
    except KeyError:
        raise SystemExit(
            f"{__file__}: OPEN_THE_HOOD_USER is {user!r}, but this machine has no such account"
        ) from None
    return {"user": user}


COURSE = Path(setting("OPEN_THE_HOOD_COURSE", "the project's folder, with checks and grades"))
# the course's own environment, because the hub's environment may have other packages or versions
PYTHON = setting(
    "OPEN_THE_HOOD_PYTHON", f"the course's own Python, such as {COURSE}/.venv/bin/python"
)
NAME = os.environ.get("OPEN_THE_HOOD_NAME", "open-the-hood")  # a different name for each course
PORT = os.environ.get("OPEN_THE_HOOD_PORT", "8765")
# The address of the service for learners' servers: its own address, without the hub's proxy, or its
# address on the hub
SERVICE = os.environ.get("OPEN_THE_HOOD_SERVICE", f"http://127.0.0.1:{PORT}/services/{NAME}/")
# Each user's pages have their own host below this host. Without such hosts, a learner's page can
# act with the rights of any teacher who opens it, and the service closes its pages for marking.
SUBDOMAINS = os.environ.get("OPEN_THE_HOOD_SUBDOMAINS", "http://localhost:8000")
TEACHERS = "instructors"  # a group of the hub

c = get_config()  # type: ignore[name-defined]  # noqa: F821

c.JupyterHub.subdomain_host = SUBDOMAINS
c.JupyterHub.services = [
    {
        "name": NAME,
        "url": f"http://127.0.0.1:{PORT}",
        # if the service runs elsewhere, write its `api_token` in place of `command`
        "command": [PYTHON, "-m", "hood", "serve", "--hub", "--teachers", TEACHERS],
        "cwd": str(COURSE),
        "oauth_no_confirm": True,  # the hub asks for no confirmation when the pages are opened
        **account(),
    }
]
ASKS = f"access:services!service={NAME}"
c.JupyterHub.load_roles = [{"name": "user", "scopes": ["self", ASKS]}]
# The scopes of a learner's server: the hub's defaults, access to the service, and reading the name
# of its user.
c.Spawner.server_token_scopes = [
    "users:activity!user",
    "access:servers!server",
    "read:users:name!user",
    "read:users:groups!user",
    ASKS,
]
c.Spawner.environment = {"OPEN_THE_HOOD_SERVICE": SERVICE}
c.JupyterHub.load_groups = {TEACHERS: {"users": ["teacher"]}}

# The settings for a trial on one machine
BUNDLE = Path(setting("OPEN_THE_HOOD_BUNDLE", "the unpacked archive of `bundle`; it has no checks"))
HOMES = Path(setting("OPEN_THE_HOOD_HOMES", "a folder for users' files and the hub's files"))
SINGLEUSER = [sys.executable, "-m", "jupyterhub.singleuser"]


def prepare(spawner: Any) -> None:
    """Give a learner's server the bundle, and give a teacher's server the course with its tools."""
    teaches = TEACHERS in {group.name for group in spawner.user.groups}
    (open_the_course if teaches else give_the_bundle)(spawner)


def open_the_course(spawner: Any) -> None:
    """Start a teacher's server in the course's folder, with the same tools as `make teach`."""
    theirs = {
        "PYTHONPATH": str(COURSE),
        # in a terminal, `python` and `nbgrader` are the programs of the course's environment
        "PATH": os.pathsep.join([str(Path(PYTHON).parent), os.environ["PATH"]]),
        # the learners' settings, plus nbgrader's menu and the pages for marking
        "JUPYTER_CONFIG_PATH": os.pathsep.join(
            str(COURSE / "hood" / folder)
            for folder in ("classroom/marking/jupyter", "learner/jupyter")
        ),
    }
    spawner.environment = spawner.environment | theirs
    spawner.cmd = ["sh", "-c", 'cd "$0" && exec "$@"', str(COURSE), *SINGLEUSER]
    # the default is a login shell, which would set another PATH
    spawner.args = [*spawner.args, "--ServerApp.terminado_settings={'shell_command': ['bash']}"]
    spawner.notebook_dir = str(COURSE)
    spawner.default_url = "/lab"


def give_the_bundle(spawner: Any) -> None:
    """Copy the bundle into a new learner's folder, and update the learner's copies of labs."""
    home = Path(spawner.home_dir)
    if not home.exists():
        shutil.copytree(BUNDLE, home)
    # here everybody uses the same installation; without this path, Python would import `utils` and
    # `hood` from the project
    theirs = {"PYTHONPATH": str(home)}
    # These settings leave out nbgrader's menu and sidebar, which learners don't need. They also
    # make links to sections of closed lessons work in JupyterLab.
    theirs["JUPYTER_CONFIG_PATH"] = str(home / "hood" / "learner" / "jupyter")
    spawner.environment = spawner.environment | theirs
    subprocess.run([sys.executable, "-m", "hood.learner.copies"], cwd=home, env=os.environ | theirs)


c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = f"{HOMES}/{{username}}"
c.Spawner.pre_spawn_hook = prepare
c.Spawner.default_url = "/lab/tree/work/start.ipynb"
c.Spawner.cmd = SINGLEUSER
# with a log of successful requests, the password would soon scroll out of the terminal
c.Spawner.args = ["--ServerApp.log_level=WARN"] + ["--allow-root"] * (os.geteuid() == 0)
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = setting("OPEN_THE_HOOD_PASSWORD", "the password for everybody")
c.Authenticator.allow_all = True
c.JupyterHub.bind_url = os.environ.get("OPEN_THE_HOOD_BIND", "http://127.0.0.1:8000")
c.ConfigurableHTTPProxy.command = os.environ.get("OPEN_THE_HOOD_PROXY", "configurable-http-proxy")
c.ConfigurableHTTPProxy.log_level = "warn"
c.JupyterHub.cookie_secret_file = str(HOMES / ".cookie-secret")
c.JupyterHub.db_url = f"sqlite:///{HOMES}/.jupyterhub.sqlite"
