"""``python -m hood.classroom.service.hub check FILE``: check the settings of a hub.

The command says for which services the pages for marking are open, and whether a learner's page
could act with a teacher's rights on this hub.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hood import UserError
from hood.classroom.marking.origin import SHARED


def check(path: Path) -> int:
    """Print what a hub's settings mean for the pages for marking, and return the exit status.

    The settings file is run, as the hub runs this file at its start. Raises UserError if the file
    fails.
    """
    from traitlets.config.loader import LazyConfigValue, PyFileConfigLoader

    try:
        hub = PyFileConfigLoader(path.name, str(path.parent)).load_config().JupyterHub
    except (Exception, SystemExit) as error:  # the file may raise anything
        raise UserError(f"{path} can't be used as a hub's settings: {error}") from error
    host = hub.get("subdomain_host", "")
    listed = hub.get("services", [])
    if isinstance(listed, LazyConfigValue):  # from `append` and similar methods
        listed = listed.get_value([])
    services = [one for one in listed if "serve" in one.get("command", [])]
    own = [service["name"] for service in services if "--own-origin" in service["command"]]
    closed = [] if host else [service["name"] for service in services if service["name"] not in own]
    if host:
        print(f"The pages for marking are open: each user has their own host below {host}.")
    for name in own:
        print(f"Service {name}: its pages for marking are open, at a separate origin.")
    for name in closed:
        print(f"{name}: {SHARED}.")
    if not host:
        print(
            "If a teacher opens a learner's page, that page can use everything else that the "
            "teacher has on this hub, such as a server with the course's folder."
        )
    return 0 if host else 1


if __name__ == "__main__":
    try:
        match sys.argv[1:]:
            case ["check", path]:
                sys.exit(check(Path(path)))
            case _:
                raise UserError("expected: check FILE, where FILE is a hub's jupyterhub_config.py")
    except UserError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
