"""A service of the tiny course in a separate process, and its users."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from hood.classroom.service.people import OfFile
from tests.hood.tiny import LAB, environment, make_course, released, source_notebook, write
from tests.patience import PATIENCE, eventually

SECONDS = 2  # the time limit of a cell, longer than a short turn
ENDLESS = "import time\ntime.sleep(3600)"  # it needs no processor


def make_served(root: Path, seconds: int = SECONDS) -> Path:
    """Make a course folder with the released tiny lab; `seconds` limits a cell."""
    make_course(root)
    source = source_notebook()
    source.metadata.open_the_hood["cell_seconds"] = seconds
    write(source, root / "source" / LAB / f"{LAB}.ipynb")
    write(released(source_notebook()), root / "release" / LAB / f"{LAB}.ipynb")
    return root


class Service:
    """``python -m hood serve`` in a course folder. Close it."""

    def __init__(self, root: Path, *words: str, workers: int = 2):
        self.root = root
        self._words = ("--workers", str(workers), "--teachers", "marta", *words)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    def start(self) -> None:
        """Start it, or restart it after a kill, and wait until it answers."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hood", "serve", "--port", str(self.port), *self._words],
            cwd=self.root,
            env=environment(self.root),
            start_new_session=True,
        )
        eventually(self._answers, "the service's first answer", step=0.2)

    def _answers(self) -> bool:
        assert self.process.poll() is None, "the service has ended"
        try:
            return self.ask("GET", "openapi.json")[0] == 200
        except OSError:
            return False

    def kill(self) -> None:
        """Kill it at once, with its workers, as when the machine goes down."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE)

    def token(self, name: str) -> str:
        return OfFile(self.root, ()).token(name)

    def ask(
        self,
        method: str,
        path: str,
        who: str = "",
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, Any, dict[str, str]]:
        """Return the status, the answer (JSON as data), and the headers."""
        sent = {"Authorization": f"Bearer {self.token(who)}"} if who else {}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            kind = {} if data is None else {"Content-Type": "application/json"}
            connection.request(method, f"/{path}", data, {**kind, **sent, **(headers or {})})
            reply = connection.getresponse()
            said = reply.read()
            is_json = reply.headers.get_content_type() == "application/json"
            return reply.status, json.loads(said) if is_json else said, dict(reply.headers)
        finally:
            connection.close()

    def check(self, who: str, answer: str, exercise: str = "twice", **more: Any) -> dict[str, Any]:
        """Ask for a check of an answer, wait for its end, and return the result."""
        status, said, _ = self.ask("POST", "jobs", who, asked(answer, exercise, **more))
        assert status == 202, said
        return self.end_of(who, said["id"])

    def end_of(self, who: str, check: str) -> dict[str, Any]:
        def ended() -> Any:
            said = self.ask("GET", f"jobs/{check}?wait=5", who)[1]
            return said if said["state"] not in ("waiting", "running") else None

        return eventually(ended, "a verdict")


def asked(answer: str, exercise: str = "twice", **more: Any) -> dict[str, Any]:
    """Return the body of a request for a check."""
    cells = [{"id": f"{exercise}_solution", "source": answer}]
    return {"exercise": exercise, "cells": cells, **more}
