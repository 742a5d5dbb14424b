"""``python -m hood serve``: give verdicts while learners work, beside JupyterHub or alone."""

from __future__ import annotations

import argparse
import os
import resource
import sys
from pathlib import Path
from urllib.parse import urlparse

from hood import UserError, not_installed
from hood.classroom.marking import origin
from hood.classroom.service.people import OfFile, OfHub, People
from hood.grader.course import open_course
from hood.phase_paths import ROOT

TEACHERS = "instructors"  # the hub's group by default
KEEP_ALIVE = 75  # seconds; longer than the timeout of a proxy
MOST_CONNECTIONS = 20_000  # each connection takes about 50 kB
OWN_FILES = 200  # open files for the database, the workers and arriving notebooks


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)"
    )
    parser.add_argument(
        "--port", type=int, default=8765, help="the port to listen on (default: %(default)s)"
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=(os.cpu_count() or 1) + 2,
        help="how many jobs are judged at a time (default: the number of processor cores plus two)",
    )
    parser.add_argument(
        "--hub",
        action="store_true",
        help="accept the tokens of the JupyterHub that starts this command as a service",
    )
    parser.add_argument(
        "--own-origin",
        metavar="URL",
        default="",
        help="with --hub: the address at which browsers open this service's pages, such as "
        "https://marking.example.org. Learners' pages must not be at this host and port. If the "
        "hub has no subdomains, the pages for marking need this address",
    )
    parser.add_argument(
        "--teachers",
        nargs="*",
        default=[TEACHERS],
        help="the groups of teachers on the hub; without --hub, the names of the teachers "
        f"(default: {TEACHERS})",
    )
    parser.add_argument(
        "--token",
        metavar="NAME",
        nargs="+",
        help="print a token for each name, and exit; give each person the token of their name",
    )
    parser.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run learners' code without a sandbox, with this process's rights: never use this for "
        "other people's code",
    )


def _connections() -> int:
    """Raise this process's limit of open files; return how many connections this limit allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return max(1, min(most - OWN_FILES, MOST_CONNECTIONS))


def own_origin(address: str) -> str:
    """Return the origin of an address. After a login, the hub must send the browser to this origin.

    Raises UserError if the address has a path, or if the hub sends browsers to another origin.
    """
    said = urlparse(address)
    if said.scheme not in ("http", "https") or not said.netloc or said.path.strip("/"):
        raise UserError(
            f"--own-origin is {address!r}: expected a scheme and a host without a path, such as "
            "https://marking.example.org"
        )
    own = f"{said.scheme}://{said.netloc}"
    back = os.environ.get("JUPYTERHUB_OAUTH_CALLBACK_URL", "")
    if not back.startswith(f"{own}/"):
        where = os.environ.get("JUPYTERHUB_SERVICE_PREFIX", "/services/NAME/")
        raise UserError(
            f"after a login the hub sends browsers to {back or 'no address'}, not to {own}. Add "
            "this to the service in jupyterhub_config.py: "
            f'"oauth_redirect_uri": "{own}{where}oauth_callback"'
        )
    return own


def run(args: argparse.Namespace, root: Path = ROOT) -> int:
    """Serve until the process is stopped, or print tokens. Raises UserError if this fails."""
    if args.token:
        tokens = OfFile(root, ())
        for name in args.token:
            print(f"{name},{tokens.token(name)}")
        return 0
    try:
        import uvicorn

        from hood.classroom.service.app import make_app
        from hood.classroom.service.dispatcher import Dispatcher
        from hood.classroom.service.door import Connection

        people: People = OfHub(args.teachers) if args.hub else OfFile(root, args.teachers)
    except ModuleNotFoundError as error:
        raise not_installed("the service", error) from None
    prefix, host, port = "", args.host, args.port
    if address := args.hub and os.environ.get("JUPYTERHUB_SERVICE_URL"):
        told = urlparse(address)  # the address at which the hub's proxy expects the service
        host, port = told.hostname or host, told.port or port
        prefix = os.environ["JUPYTERHUB_SERVICE_PREFIX"].rstrip("/")
    own = own_origin(args.own_origin) if args.hub and args.own_origin else ""
    if args.hub and not own and origin.is_shared():
        print(f"hood serve: {origin.SHARED}", file=sys.stderr)
    dispatcher = Dispatcher(open_course(root), args.workers, sandbox=not args.unsafe_no_sandbox)
    dispatcher.prepare()
    app = make_app(dispatcher, people, prefix, own)
    uvicorn.run(
        app,
        host=host,
        port=port,
        http=Connection,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE,
        limit_concurrency=_connections(),
        log_level="warning",
    )
    return 0
