"""Who asks: the owner of a token. What else a request says of its sender is not read."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from grader import UserError

KEY_FILE = ".service-key"  # in the course's folder; whoever can read it can make tokens
KEY_BYTES = 32


@dataclass(frozen=True)
class Person:
    """Who is behind a token, and whether they teach."""

    name: str
    teaches: bool = False


class People(Protocol):
    """Knows the owners of tokens."""

    def whose(self, token: str) -> Person | None:
        """Return the owner of a token; None when it is not one, or not for this service."""


class OfHub:
    """The users of a JupyterHub, which started this process as a service or gave it a token.

    Args:
        teachers: a user is one who teaches if in one of these groups of the hub.

    Raises UserError when the hub's variables are not set.
    """

    def __init__(self, teachers: Iterable[str]):
        from jupyterhub.services.auth import HubAuth  # here, because it is not always installed

        if not os.environ.get("JUPYTERHUB_API_TOKEN"):
            raise UserError(
                "--hub asks a JupyterHub who is who, and JUPYTERHUB_API_TOKEN is not set: list "
                "this command as a service in jupyterhub_config.py (TEACHING.md shows how)"
            )
        self._hub = HubAuth()
        self._teachers = frozenset(teachers)

    def whose(self, token: str) -> Person | None:
        user = self._hub.user_for_token(token, sync=True)
        if not user or not self._hub.check_scopes(self._hub.access_scopes, user):
            return None
        return Person(user["name"], bool(self._teachers & set(user.get("groups", ()))))


class OfFile:
    """Learners without a hub: a token is a name and its signature with the course's own key.

    Nothing is stored for each; deleting the key's file makes all tokens invalid.
    """

    def __init__(self, root: Path, teachers: Iterable[str]):
        self._key = service_key(root)
        self._teachers = frozenset(teachers)

    def token(self, name: str) -> str:
        """Return the token that the instructor hands out to ``name``."""
        said = base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")
        return f"{said}.{self._signature(name)}"

    def whose(self, token: str) -> Person | None:
        said, _, signature = token.partition(".")
        try:
            name = base64.urlsafe_b64decode(said + "=" * (-len(said) % 4)).decode()
        except ValueError:
            return None
        if not hmac.compare_digest(signature.encode(), self._signature(name).encode()):
            return None
        return Person(name, name in self._teachers)

    def _signature(self, name: str) -> str:
        return hmac.new(self._key, b"token " + name.encode(), hashlib.sha256).hexdigest()


def service_key(root: Path) -> bytes:
    """Return the service's secret key, which is made when it is first asked for.

    Raises UserError when others than its owner can read the file.
    """
    path = root / KEY_FILE
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
    except FileExistsError:
        if path.stat().st_mode & 0o077:
            raise UserError(f"others can read {path}: delete it, and a new key is made") from None
    return path.read_bytes()
