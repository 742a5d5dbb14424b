"""A JupyterHub with this course's service: a sample to start from, and what `make hub` runs.

What the service needs of a hub stands first, and is the same for every authenticator and spawner.
What follows is for a try on one machine: anybody may log in, with the password that `make hub`
prints, and all learners' servers run under this account. Replace it by your own.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

COURSE = Path(os.environ["OPEN_THE_HOOD_COURSE"])  # the project's folder: checks, grades
NAME = os.environ.get("OPEN_THE_HOOD_NAME", "open-the-hood")  # another one for each course
PORT = os.environ.get("OPEN_THE_HOOD_PORT", "8765")
HUB = os.environ.get("OPEN_THE_HOOD_HUB", "http://127.0.0.1:8000")  # as learners' servers reach it

c = get_config()  # type: ignore[name-defined]  # noqa: F821

c.JupyterHub.services = [
    {
        "name": NAME,
        "url": f"http://127.0.0.1:{PORT}",
        # or, where the service runs elsewhere, in place of `command` its `api_token`
        "command": [sys.executable, "-m", "grader", "serve", "--hub", "--teachers", "instructors"],
        "cwd": str(COURSE),
        "oauth_no_confirm": True,  # whoever opens its pages for marking is asked nothing more
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
c.Spawner.environment = {"OPEN_THE_HOOD_SERVICE": f"{HUB}/services/{NAME}/"}
c.JupyterHub.load_groups = {"instructors": {"users": ["teacher"]}}

# For a try on one machine
BUNDLE = Path(os.environ["OPEN_THE_HOOD_BUNDLE"])  # unpacked, without checks
HOMES = Path(os.environ["OPEN_THE_HOOD_HOMES"])


def give_the_bundle(spawner: Any) -> None:
    """Copy the bundle into a learner's folder, the first time, and refresh their copies of labs."""
    home = Path(spawner.home_dir)
    if not home.exists():
        shutil.copytree(BUNDLE, home)
    # all use one installation here, in which `utils` and `grader` would be the project's
    theirs = {"PYTHONPATH": str(home)}
    # without nbgrader's menu and sidebar, for which learners have no use
    theirs["JUPYTER_CONFIG_PATH"] = str(home / "grader" / "jupyter")
    spawner.environment = spawner.environment | theirs
    subprocess.run([sys.executable, "-m", "grader.work"], cwd=home, env=os.environ | theirs)


c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = f"{HOMES}/{{username}}"
c.Spawner.pre_spawn_hook = give_the_bundle
c.Spawner.default_url = "/lab/tree/work/start.ipynb"
c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
# what requests succeed would push the password out of the terminal
c.Spawner.args = ["--ServerApp.log_level=WARN"] + ["--allow-root"] * (os.geteuid() == 0)
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = os.environ["OPEN_THE_HOOD_PASSWORD"]
c.Authenticator.allow_all = True
c.JupyterHub.bind_url = os.environ.get("OPEN_THE_HOOD_BIND", "http://127.0.0.1:8000")
c.ConfigurableHTTPProxy.command = os.environ.get("OPEN_THE_HOOD_PROXY", "configurable-http-proxy")
c.ConfigurableHTTPProxy.log_level = "warn"
c.JupyterHub.cookie_secret_file = str(HOMES / ".cookie-secret")
c.JupyterHub.db_url = f"sqlite:///{HOMES}/.jupyterhub.sqlite"
