"""``python -m hood.classroom.service.hub check FILE``: can learners' pages act as a teacher?

It says of a hub's own settings what they mean for the pages for marking.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hood import UserError
from hood.classroom.marking.origin import SHARED


def check(path: Path) -> int:
    """Print what a hub's settings mean for the pages for marking, and return the exit status.

    The settings are run, as the hub does at its start. Raises UserError where they can't be.
    """
    from traitlets.config.loader import LazyConfigValue, PyFileConfigLoader

    try:
        hub = PyFileConfigLoader(path.name, str(path.parent)).load_config().JupyterHub
    except (Exception, SystemExit) as error:  # whatever the file raises
        raise UserError(f"{path} can't be used as a hub's settings: {error}") from error
    host = hub.get("subdomain_host", "")
    listed = hub.get("services", [])
    if isinstance(listed, LazyConfigValue):  # from `append` and the like
        listed = listed.get_value([])
    services = [one for one in listed if "serve" in one.get("command", [])]
    own = [service["name"] for service in services if "--own-origin" in service["command"]]
    closed = [] if host else [service["name"] for service in services if service["name"] not in own]
    if host:
        print(f"The pages for marking are open: each user has a host of their own below {host}.")
    for name in own:
        print(f"The pages for marking of {name} are open, at its own origin.")
    for name in closed:
        print(f"{name}: {SHARED}.")
    if not host:
        print(
            "Whatever else a teacher has on this hub, such as a server with the course's folder, "
            "is open to the page of a learner that they open."
        )
    return 0 if host else 1


if __name__ == "__main__":
    try:
        match sys.argv[1:]:
            case ["check", path]:
                sys.exit(check(Path(path)))
            case _:
                raise UserError("expected: check FILE, a hub's jupyterhub_config.py")
    except UserError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
