"""A Jupyter server over a course folder, with the settings of `make teach` or `make lab`."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from http.client import HTTPMessage
from pathlib import Path

import pytest

from hood.phase_paths import ROOT
from tests.patience import PATIENCE

TOKEN, BASE = "a-token", "/on/a/hub/"


def settings_of(target: str) -> str:
    """Return the JUPYTER_CONFIG_PATH that `make TARGET` sets, from the Makefile itself."""
    rule = re.search(rf"(?ms)^{target}: .*?(?=^\S)", (ROOT / "Makefile").read_text())[0]
    path = re.search(r'JUPYTER_CONFIG_PATH="\$\(CURDIR\)/([\w/]+)', rule)[1]
    return str(ROOT / path)


def said_of(path: str) -> dict[str, str]:
    """Return a browser's headers for a request from a page's script or from a tab."""
    if "/api/" in path:
        return {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
    return {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


class Server:
    """A Jupyter server over a course folder, and a browser's requests to it."""

    def __init__(self, course: Path, target: str, home: str = ""):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}{BASE}"
        self.home = course.parent / f"home-{home or target}"
        self.home.mkdir()
        names = ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
        self.log = self.home / "log"
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyter", "server", "--no-browser", "--allow-root"),
                *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
                *(f"--IdentityProvider.token={TOKEN}", f"--ServerApp.base_url={BASE}"),
            ],
            cwd=course,
            env={
                **{name: str(self.home) for name in names},
                **{name: value for name, value in os.environ.items() if "JUPYTERHUB" in name},
                "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
                "PYTHONPATH": str(ROOT),
                "JUPYTER_CONFIG_PATH": settings_of(target),
            },
            stdout=self.log.open("wb"),
            stderr=subprocess.STDOUT,
        )
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            try:
                self.ask("api/status")
                return
            except OSError:
                time.sleep(0.2)
        pytest.fail(f"the server did not start:\n{self.log.read_text()[-3000:]}")

    def ask(
        self, path: str, body: object = None, method: str = "", headers: dict | None = None
    ) -> tuple[int, str, HTTPMessage]:
        """Send a request with the token, or with `headers`; return the response."""
        data = body if isinstance(body, bytes) else body is not None and json.dumps(body).encode()
        given = {"Authorization": f"token {TOKEN}"} if headers is None else headers
        given = said_of(path) | given
        method = method or ("PUT" if data else "GET")
        asked = urllib.request.Request(self.address + path, data or None, given, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE) as reply:
                return reply.status, reply.read().decode(), reply.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers

    def data(self, path: str, *given, **more) -> dict:
        """Return the status and the JSON of a response."""
        status, text, _ = self.ask(path, *given, **more)
        return {"status": status} | json.loads(text)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE)
