"""Identify the sender of a request: the owner of its token. Nothing else identifies the sender."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlencode

from hood import UserError
from hood.atomic_files import secret

KEY_FILE = ".service-key"  # in the course's folder; an account that can read it can make tokens
KEY_BYTES = 32
REMEMBERED = 60  # seconds for which the hub's answer on a token is cached


@dataclass(frozen=True)
class Person:
    """The owner of a token, and whether this person teaches."""

    name: str
    teaches: bool = False


class People(Protocol):
    """Finds the owners of tokens."""

    def whose(self, token: str) -> Person | None:
        """Return the owner of a token; None if the token is not valid for this service.

        Raises AskAgainError if the hub gives no answer now.
        """

    def begin_login(self) -> tuple[str, str] | None:
        """Return the address of the login, and the state that the browser must bring back.

        The result is None if a person has to type in a token.
        """

    def end_login(self, code: str, state: str) -> str:
        """Return the token of a browser that has logged in, or raise AskAgainError."""


class AskAgainError(Exception):
    """The hub did not say who somebody is; the request should be sent again later."""


class OfHub:
    """Identifies the users of the JupyterHub that started this process or gave it a token.

    Args:
        teachers: the hub's groups whose members teach.

    Raises UserError when the hub's environment variables are not set.
    """

    def __init__(self, teachers: Iterable[str]):
        from jupyterhub.services.auth import HubOAuth  # imported here: it is not always installed

        if not os.environ.get("JUPYTERHUB_API_TOKEN"):
            raise UserError(
                "--hub needs a JupyterHub, but JUPYTERHUB_API_TOKEN is not set: list this command "
                "as a service in jupyterhub_config.py (docs/how-to/jupyterhub.md shows how)"
            )
        self._hub = HubOAuth(cache_max_age=REMEMBERED)
        self._teachers = frozenset(teachers)

    def whose(self, token: str) -> Person | None:
        with _asking():
            user = self._hub.user_for_token(token, sync=True)
        if not user or not self._hub.check_scopes(self._hub.access_scopes, user):
            return None
        return Person(user["name"], bool(self._teachers & set(user.get("groups", ()))))

    def begin_login(self) -> tuple[str, str]:
        verifier, challenge, method = self._hub.generate_pkce_code_challenge()
        state = self._hub.generate_state(code_verifier=verifier)
        more = {"state": state, "code_challenge": challenge, "code_challenge_method": method}
        return f"{self._hub.login_url}&{urlencode(more)}", state

    def end_login(self, code: str, state: str) -> str:
        verifier = self._hub.get_code_verifier(state)
        self._hub.clear_oauth_state(state)
        with _asking():
            return str(self._hub.token_for_code(code, code_verifier=verifier, sync=True))


@contextlib.contextmanager
def _asking() -> Iterator[None]:
    """Turn errors of the hub's library into an AskAgainError."""
    from tornado.web import HTTPError

    try:
        yield
    except (HTTPError, OSError, ValueError, KeyError) as error:
        raise AskAgainError(f"the hub did not say who this is: {error}") from error


class OfFile:
    """Identifies people without a hub: a token is a name, signed with the course's own key.

    Tokens are not stored. If the file with the key is deleted, all tokens become invalid.
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

    def begin_login(self) -> None:
        return None

    def end_login(self, code: str, state: str) -> str:
        raise AskAgainError("there is no hub to log in at")

    def _signature(self, name: str) -> str:
        return hmac.new(self._key, b"token " + name.encode(), hashlib.sha256).hexdigest()


def service_key(root: Path) -> bytes:
    """Return the service's secret key. The first call makes the key.

    Raises:
        UserError: if the file contains no key, or if accounts other than its owner's can read it.
        OSError: if the file can't be made or read.
    """
    path = root / KEY_FILE
    key = secret(
        path,
        secrets.token_bytes(KEY_BYTES),
        should=f"the service's key, {KEY_BYTES} random bytes",
        lost="With a new key the tokens that were handed out are invalid: hand out new ones.",
    )
    if path.stat().st_mode & 0o077:
        raise UserError(
            f"other accounts can read {path}, and could make a teacher's token with it: remove the "
            "file, so that a new key is made. The tokens that were handed out become invalid: "
            "hand out new ones"
        )
    return key
