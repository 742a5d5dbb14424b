"""The requests of browsers and a JupyterHub to the service, and the hub's variables for it."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from hood.classroom.service.people import OfHub

PREFIX = "/services/course"
# A browser's headers for a request from a tab, or from a script of a page of the same origin.
TAB = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
SCRIPT = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
FORM = TAB | {"Sec-Fetch-Site": "same-origin"}
SCOPES = ["access:services!service=course"]


class FakeHub(BaseHTTPRequestHandler):
    """What the service asks a JupyterHub for: a token's owner, and a token for a login."""

    owners: dict[str, dict] = {}

    def _say(self, status, said):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(said).encode())

    def do_GET(self):
        owner = self.owners.get(self.headers["Authorization"].removeprefix("token "))
        self._say(200 if owner else 403, owner or {"message": "no"})

    def do_POST(self):
        size = int(self.headers["Content-Length"])
        said = urllib.parse.parse_qs(self.rfile.read(size).decode())
        known = said["code"] == ["good"] and "code_verifier" in said
        self._say(200 if known else 400, {"access_token": "hers"} if known else {"error": "bad"})

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def fake_hub(host: str = "", **more: str) -> Iterator[OfHub]:
    """Run a hub that knows a teacher and a learner. Yield the object with which the service asks
    it.

    Args:
        host: the hub's own host, if its users have subdomains.
        more: further variables of the service, without `JUPYTERHUB_`.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeHub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    FakeHub.owners = {
        "hers": {"name": "marta", "groups": ["instructors"], "scopes": SCOPES},
        "his": {"name": "ana", "groups": [], "scopes": SCOPES},
        "elsewhere": {"name": "eve", "groups": ["instructors"], "scopes": []},
    }
    given = {
        "API_TOKEN": "own",
        "API_URL": f"http://127.0.0.1:{server.server_port}/hub/api",
        "CLIENT_ID": "service-course",
        "HOST": host,
        "SERVICE_NAME": "course",
        "SERVICE_PREFIX": f"{PREFIX}/",
        "OAUTH_CALLBACK_URL": f"{PREFIX}/oauth_callback",
        "OAUTH_SCOPES": json.dumps(SCOPES),
        "OAUTH_ACCESS_SCOPES": json.dumps(SCOPES),
        **more,
    }
    before = dict(os.environ)
    os.environ.update({f"JUPYTERHUB_{name}": value for name, value in given.items()})
    try:
        yield OfHub(["instructors"])
    finally:
        os.environ.clear()
        os.environ.update(before)
        server.shutdown()
        server.server_close()
