"""``python -m hood serve``: verdicts while learners work, beside JupyterHub or alone."""

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

TEACHERS = "instructors"  # the hub's group, where none is named
KEEP_ALIVE = 75  # seconds; longer than a proxy's
MOST_CONNECTIONS = 20_000  # each takes some 50 kB
OWN_FILES = 200  # of the database, the workers and notebooks that arrive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=8765, help="port to listen on (%(default)s)")
    parser.add_argument(
        "--workers", type=int, default=(os.cpu_count() or 1) + 2, help="jobs judged at once"
    )
    parser.add_argument(
        "--hub", action="store_true", help="a JupyterHub knows who has which token; it starts this"
    )
    parser.add_argument(
        "--own-origin",
        metavar="URL",
        default="",
        help="with --hub: where browsers find this service's pages, such as "
        "https://marking.example.org, at a host or port that no learner's page has; without "
        "subdomains of the hub there are no pages for marking elsewhere",
    )
    parser.add_argument(
        "--teachers",
        nargs="*",
        default=[TEACHERS],
        help="the hub's groups whose members teach; without --hub, names of people who do",
    )
    parser.add_argument(
        "--token", metavar="NAME", nargs="+", help="print tokens to hand out, and serve nothing"
    )
    parser.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run learners' code with this process's rights: never for others' code",
    )


def _connections() -> int:
    """Allow this process all the files that it may have, and return how many may be connections."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return max(1, min(most - OWN_FILES, MOST_CONNECTIONS))


def own_origin(address: str) -> str:
    """Return the origin of an address, to which the hub leads a browser back after its login.

    Raises UserError where it is not an address alone, or the hub leads elsewhere.
    """
    said = urlparse(address)
    if said.scheme not in ("http", "https") or not said.netloc or said.path.strip("/"):
        raise UserError(
            f"--own-origin is {address!r}: expected a scheme and a host, and no path, such as "
            "https://marking.example.org"
        )
    own = f"{said.scheme}://{said.netloc}"
    back = os.environ.get("JUPYTERHUB_OAUTH_CALLBACK_URL", "")
    if not back.startswith(f"{own}/"):
        where = os.environ.get("JUPYTERHUB_SERVICE_PREFIX", "/services/NAME/")
        raise UserError(
            f"after a login the hub leads a browser to {back or 'no address'}, which is not at "
            f"{own}: give the service in jupyterhub_config.py "
            f'"oauth_redirect_uri": "{own}{where}oauth_callback"'
        )
    return own


def run(args: argparse.Namespace, root: Path = ROOT) -> int:
    """Serve until the process is told to end; or print tokens. Raises UserError."""
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
        told = urlparse(address)  # where the hub's proxy will look for it
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
