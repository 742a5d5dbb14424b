"""Ask a class's service for a verdict, where the course's checks are not on this machine.

Where `OPEN_THE_HOOD_SERVICE` has the service's address, `check("view_strides")` sends the cells that
this kernel has run and shows the card that comes back. A token says who asks: JupyterHub's, which
its servers have, or the one in `OPEN_THE_HOOD_TOKEN` that the instructor has handed out.
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from typing import Any

from IPython import get_ipython
from IPython.display import display

from utils.notebook import cell_clock

ADDRESS = "OPEN_THE_HOOD_SERVICE"
TOKENS = ("OPEN_THE_HOOD_TOKEN", "JUPYTERHUB_API_TOKEN")
HELD = 20  # seconds that the service holds a question open
PATIENCE = 600.0  # seconds until a verdict is given up
SECONDS = 30.0  # for one request
MOST_CELLS = 500

_cells: dict[str, str] = {}  # id and text of what was run, in the order in which it was run last


def address() -> str:
    """Return the service's address, with a slash at its end; empty where there is no service."""
    told = os.environ.get(ADDRESS, "").strip()
    return told and told.rstrip("/") + "/"


def remember(info: Any) -> None:
    """Keep the text of a cell; IPython calls this before each cell. Later cells may need it."""
    cell = info.cell_id or f"without-id-{len(_cells)}"
    _cells.pop(cell, None)
    _cells[cell] = info.raw_cell


def install() -> None:
    """Keep the cells that this kernel runs from now on, where there is a service to ask."""
    shell = get_ipython()
    if shell is not None and address():
        shell.events.register("pre_run_cell", remember)


def show_verdict(name: str) -> None:
    """Have the service judge the exercise `name`, and display its verdict below the cell.

    What hinders that is printed in a sentence: no token, a refusal, a service that cannot be
    reached.
    """
    token = next(filter(None, map(os.environ.get, TOKENS)), "")
    if not token:
        print(f"The service for verdicts asks for a token: put yours into {TOKENS[0]}.")
        return
    cells = [{"id": cell, "source": text} for cell, text in _cells.items()][-MOST_CELLS:]
    try:
        cell_clock.say(f"checking {name}")
        said = _ask("checks", token, {"exercise": name, "cells": cells})
        end = time.monotonic() + PATIENCE
        while said["state"] in ("waiting", "running") and time.monotonic() < end:
            if said["state"] == "waiting" and said["place"]:
                place, seconds = said["place"], said["seconds"]
                cell_clock.say(f"checking {name}: {place} before yours, about {seconds:.0f} s")
            said = _ask(f"checks/{said['id']}?wait={HELD}", token)
    except urllib.error.HTTPError as error:
        print(_why(error))
        return
    except (OSError, ValueError, KeyError) as error:
        print(f"The service at {address()} could not be asked: {error}. Try again in a minute.")
        return
    if said["state"] == "replaced":
        print("A newer check of yours took the place of this one.")
    elif said.get("card"):
        display(said["card"], raw=True)
    else:
        print(f"There is no verdict after {PATIENCE:.0f} s. Try again later.")


def show_solution(name: str) -> None:
    """Say that a class's service shows no worked solutions."""
    print(f"Where a class works, there is no worked solution of {name}.")


def _ask(path: str, token: str, body: Any = None) -> dict[str, Any]:
    request = urllib.request.Request(
        address() + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=SECONDS) as reply:
        return dict(json.load(reply))


def _why(error: urllib.error.HTTPError) -> str:
    """Return why the service refused, in its own words where it has some."""
    try:
        said = json.load(error)["detail"]
    except (ValueError, KeyError, TypeError):
        said = error.reason
    again = error.headers.get("Retry-After")
    later = f" Ask again in {again} s." if again else ""
    return f"No verdict: {said}.{later}" if isinstance(said, str) else f"No verdict: {error}."


install()
