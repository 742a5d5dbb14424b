"""Send requests to a class's service, if the course's checks are not on this machine.

`OPEN_THE_HOOD_SERVICE` has the service's address. Then `check("view_strides")` sends the cells that
this kernel has run and shows the card from the reply. In a notebook, learners also call

- `labs()`: show the released labs: when each lab is due, when you handed it in, and your points;
- `fetch("01_tensors")`: get a lab's notebook;
- `submit()`: hand in this notebook; `submit("01_tensors")` hands in the notebook of that lab. If
  a late notebook, or one with fewer answers, would replace an earlier submission, the function
  asks first;
- `feedback("01_tensors")`: get the page of feedback;
- `requests()`: show requests for a regrade, and whether each has been answered.

A token identifies the learner. On a hub, this is JupyterHub's token. Elsewhere, the instructor
gives the learner a token, and `OPEN_THE_HOOD_TOKEN` has it, with or without the learner's name
before it. If a call fails, the function prints a sentence that says why.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec
from urllib.parse import quote

from IPython import get_ipython
from IPython.display import Markdown, display

from hood.judge import history
from hood.lab_words import BLANK
from hood.learner import cell_clock, what_now
from hood.learner.contents import NOTEBOOK, ROOT
from hood.phase_paths import WORK

ADDRESS = "OPEN_THE_HOOD_SERVICE"
TOKENS = ("OPEN_THE_HOOD_TOKEN", "JUPYTERHUB_API_TOKEN")
HELD = 20  # the service answers a request after at most this many seconds
PATIENCE = 600.0  # seconds that `check(...)` waits for the service's verdict
SECONDS = 30.0  # for one request
MOST_CELLS = 500
REQUEST = "regrade:"  # a text cell that begins with this asks for a regrade
P = ParamSpec("P")


def address() -> str:
    """Return the service's address with a slash at its end; empty without a service."""
    setting = os.environ.get(ADDRESS, "").strip()
    return setting and setting.rstrip("/") + "/"


class ServiceError(Exception):
    """A sentence that says why a request to the service failed or was refused."""


def _says_why(call: Callable[P, None]) -> Callable[P, None]:
    """Print why a call was refused, in place of a traceback."""

    @wraps(call)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            call(*args, **kwargs)
        except ServiceError as error:
            print(error)

    return wrapped


@_says_why
def show_verdict(name: str) -> None:
    """Have the service judge the exercise `name`, and display its verdict below the cell."""
    cells = [{"id": cell, "source": ran.source} for cell, ran in history.cells().items()]
    cell_clock.say(f"checking {name}")
    said = _json("jobs", json.dumps({"exercise": name, "cells": cells[-MOST_CELLS:]}).encode())
    end = time.monotonic() + PATIENCE
    while said["state"] in ("waiting", "running") and time.monotonic() < end:
        if said["state"] == "waiting" and said["place"]:
            place, seconds = said["place"], said["seconds"]
            before = f"checks in the queue before yours: {place}"
            cell_clock.say(f"checking {name}: {before}, about {seconds:.0f} s")
        said = _json(f"jobs/{said['id']}?wait={HELD}")
    if said["state"] == "replaced":
        print("You started a newer check, which replaced this one.")
    elif said["card"]:
        display(said["card"], raw=True, metadata=history.stamp())
        cell_clock.announce(said["card"].get("text/plain", "").partition("\n")[0])
        what_now.show(name, said["card"])
    else:
        print(f"There is no verdict after {PATIENCE:.0f} s. Try again later.")


def show_solution(name: str) -> None:
    """Say that a class's service shows no worked solutions."""
    print(f"There is no worked solution of {name}, because a class's service shows no solutions.")


@_says_why
def labs() -> None:
    """Show the released labs: when each lab is due, when you handed it in, and your points."""
    rows, answer = ["| lab | due | handed in | points |", "|---|---|---|---|"], _json("labs")
    for lab in answer:
        came = lab["received"]
        late = ", late" if came and came["late"] else ""
        handed_in = f"{_moment(came['received'])}{late}" if came else "not yet"
        points = "" if lab["points"] is None else f"{lab['points']:g} of {lab['most']:g}"
        so_far = "" if lab["final"] or not points else " so far"
        rows.append(f"| {lab['name']} | {_moment(lab['due'])} | {handed_in} | {points}{so_far} |")
    said = [f"{lab['name']}: {lab['hand_ins']}" for lab in answer if lab["hand_ins"]]
    said += [f"All times are in the time zone {zone}." for zone in {lab["zone"] for lab in answer}]
    display(Markdown("\n\n".join(["\n".join(rows), *said])))


@_says_why
def fetch(lab: str) -> None:
    """Get the notebook of a lab such as `"01_tensors"` into `work/`, unless it is already there."""
    path = _in_work(lab)
    if path.exists():
        print(f"You already have this notebook: {path.relative_to(ROOT)}.")
        return
    _keep(path, _ask(f"labs/{quote(lab, safe='')}/notebook"))
    print(f"It is in {path.relative_to(ROOT)}.")


@_says_why
def submit(notebook: str = "", again: bool = False) -> None:
    """Hand in a notebook, by default the notebook that calls this; show the receipt.

    The saved file is handed in, so save it first: if its cells differ from what was run, nothing is
    sent. If something was handed in before, and the new notebook is late or has more empty answers,
    this function says so and asks. If nobody can answer, for example because a program runs the
    notebook, the function does not hand in a second time.

    Args:
        notebook: a lab such as `"01_tensors"`, with its notebook in `work/`, or a path.
        again: whether to hand in a second time without a question.
    """
    here = Path(os.environ.get(NOTEBOOK, ""))
    path = _notebook(notebook) if notebook else here
    try:
        data = path.read_bytes()
        saved = {cell.get("id"): cell["source"] for cell in json.loads(data)["cells"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        why = (
            f"{str(path)!r} is not a readable notebook: save it, or pass its path or its "
            "lab, such as '01_tensors'."
        )
        raise ServiceError(why) from None
    texts = {k: v if isinstance(v, str) else "".join(v) for k, v in saved.items()}
    ran = {key: cell.source.strip() for key, cell in history.cells().items()}
    unsaved = [key for key, text in ran.items() if key in texts and texts[key].strip() != text]
    if unsaved and path.resolve() == here.resolve():
        raise ServiceError(
            f"Nothing was sent: in the saved file, {len(unsaved)} cells differ from what you ran. "
            "Save the notebook (Ctrl+S) and run this cell again."
        )
    lab = path.stem
    if not again and (why := _why_not_again(lab, data, list(texts.values()))):
        print(why)
        return
    said = _json(f"labs/{quote(lab, safe='')}/notebook", data, "PUT")
    if said["sha256"] != hashlib.sha256(data).hexdigest():
        raise ServiceError("The service received a damaged file. Hand the notebook in again.")
    late = ", which is after the due date" if said["late"] else ""
    zone = datetime.fromisoformat(said["received"]).tzname()
    print(f"{lab} was handed in on {_moment(said['received'])} ({zone}){late}.")
    if said["said"]:
        print(said["said"])
    print(f"Receipt: {said['bytes']:,} bytes, SHA-256 {said['sha256']}")


def _keep(path: Path, data: bytes) -> None:
    """Write a file as a whole, so that a full disk never leaves a part of a notebook.

    Raises ServiceError when the file can't be written.
    """
    fresh = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            fresh.write_bytes(data)
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        why = f"{path} can't be written: {error.strerror}. Nothing has changed there."
        raise ServiceError(why) from None


def _why_not_again(lab: str, data: bytes, texts: list[str]) -> str:
    """Return why a notebook is not handed in a second time; empty if it should be handed in.

    This function asks the learner if the new notebook is late or has fewer answers.
    """
    known = [one for one in _json("labs") if one["name"] == lab]
    if not (known and known[0]["again"] and known[0]["received"]):
        return ""
    before, means = known[0]["received"], known[0]["again"]
    if before["sha256"] == hashlib.sha256(data).hexdigest():
        on = _moment(before["received"])
        return (
            f"You already handed in this notebook on {on}, and that submission counts. Nothing was "
            "sent."
        )
    blank = sum(one in text for text in texts for one in BLANK)
    doubts = [means["said"]]
    if blank > (earlier := before["blank"]):
        doubts.append(f"Empty answers: {blank} in this notebook, {earlier} in the earlier one.")
    if _can_ask() and not (means["late"] or len(doubts) > 1):
        return ""
    if any(text.lstrip(" *_").lower().startswith(REQUEST) for text in texts):
        doubts.append(
            "If only a request for a regrade is new, the earlier submission's time counts."
        )
    print(*doubts)
    if _can_ask() and input("Hand this notebook in? [y/N] ").strip().lower() in ("y", "yes"):
        return ""
    return "Nothing was sent. To hand the notebook in anyway, run submit(again=True)"


def _can_ask() -> bool:
    """Return whether somebody can answer a question; a program can't answer."""
    kernel = getattr(get_ipython(), "kernel", None)
    return bool(getattr(kernel, "_allow_stdin", kernel is None and sys.stdin.isatty()))


@_says_why
def feedback(lab: str) -> None:
    """Get the page of feedback on a lab such as `"01_tensors"` into `work/`."""
    path = ROOT / WORK / lab / f"{lab}_feedback.html"
    _keep(path, _ask(f"labs/{quote(lab, safe='')}/feedback"))
    print(f"The feedback is in {path.relative_to(ROOT)}: open it in a new tab of JupyterLab.")


@_says_why
def requests() -> None:
    """Show your requests for a regrade in graded labs, and which of them are answered."""
    for one in (answer := _json("requests")):
        state = "answered" if one["answered"] else "not answered yet"
        print(f"{one['lab']}, {one['exercise']}: {one['why']!r}: {state}")
    if not answer:
        print("None of your requests for a regrade has been graded yet.")


def _in_work(lab: str) -> Path:
    return ROOT / WORK / lab / f"{lab}.ipynb"


def _notebook(said: str) -> Path:
    """Return the path of a notebook; the argument is this path or a lab."""
    return Path(said) if said.endswith(".ipynb") or Path(said).is_file() else _in_work(said)


def _moment(iso: str | None) -> str:
    """Return a time in words, in the time zone of the service."""
    at = datetime.fromisoformat(iso) if iso else None
    return f"{at.day} {at:%B %Y, %H:%M:%S}" if at else ""


def _json(path: str, body: bytes | None = None, method: str | None = None) -> Any:
    try:
        return json.loads(_ask(path, body, method))
    except ValueError:
        raise ServiceError(f"{address()} is not a service of this course.") from None


def _ask(path: str, body: bytes | None = None, method: str | None = None) -> bytes:
    """Return the service's reply. Raises ServiceError."""
    setting = next(filter(None, map(os.environ.get, TOKENS)), "")
    token = setting.rpartition(",")[2].strip()  # the setting may be a whole line, `NAME,TOKEN`
    if not (address() and token):
        raise ServiceError(
            f"No service is set up here: set the environment variable {ADDRESS} to the "
            f"service's address and, outside a JupyterHub, {TOKENS[0]} to your token."
        )
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        request = urllib.request.Request(address() + path, body, headers, method=method)
        with urllib.request.urlopen(request, timeout=SECONDS) as reply:
            return bytes(reply.read())
    except urllib.error.HTTPError as error:
        raise ServiceError(_why(error)) from None
    except (OSError, ValueError) as error:  # ValueError: a wrong address or token
        raise ServiceError(
            f"The service at {address()} could not be reached: {error}. Try again in a minute."
        ) from None


def _why(error: urllib.error.HTTPError) -> str:
    """Return why the service refused, in the service's own words if the reply has a text."""
    try:
        said = json.load(error)["detail"]
    except (ValueError, KeyError, TypeError):
        said = error.reason
    again = error.headers.get("Retry-After")
    later = f" Ask again in {again} s." if again else ""
    return f"The service refused: {said}.{later}"
