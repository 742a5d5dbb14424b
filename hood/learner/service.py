"""Ask a class's service, where the course's checks are not on this machine.

Where `OPEN_THE_HOOD_SERVICE` has the service's address, `check("view_strides")` sends the cells
that this kernel has run and shows the card that comes back. In a notebook, learners also call

- `labs()`: which labs are out, when each is due, what was handed in, and its points;
- `fetch("01_tensors")`: get a lab's notebook;
- `submit()`: hand in the notebook in which it is called, or `submit("01_tensors")` that of a lab;
  where something was handed in before and the new one comes late or has fewer answers, it asks;
- `feedback("01_tensors")`: get the page of feedback;
- `requests()`: which regrades were asked for, and whether each has been answered.

A token says who asks: JupyterHub's, which its servers have, or the one in `OPEN_THE_HOOD_TOKEN`
that the instructor has handed out, with or without the name before it. What hinders a call is
printed in a sentence.
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
HELD = 20  # seconds that the service holds a question open
PATIENCE = 600.0  # seconds until a verdict is given up
SECONDS = 30.0  # for one request
MOST_CELLS = 500
REQUEST = "regrade:"  # begins a text cell that asks for one
P = ParamSpec("P")


def address() -> str:
    """Return the service's address, with a slash at its end; empty where there is no service."""
    setting = os.environ.get(ADDRESS, "").strip()
    return setting and setting.rstrip("/") + "/"


class ServiceError(Exception):
    """Why the service could not be asked, or what it refused, in a sentence."""


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
            cell_clock.say(f"checking {name}: {place} before yours, about {seconds:.0f} s")
        said = _json(f"jobs/{said['id']}?wait={HELD}")
    if said["state"] == "replaced":
        print("A newer check of yours took the place of this one.")
    elif said["card"]:
        display(said["card"], raw=True, metadata=history.stamp())
        what_now.show(name, said["card"])
    else:
        print(f"There is no verdict after {PATIENCE:.0f} s. Try again later.")


def show_solution(name: str) -> None:
    """Say that a class's service shows no worked solutions."""
    print(f"Where a class works, there is no worked solution of {name}.")


@_says_why
def labs() -> None:
    """Show which labs are out, when each is due, what you handed in, and its points."""
    rows, answer = ["| lab | due | handed in | points |", "|---|---|---|---|"], _json("labs")
    for lab in answer:
        came = lab["received"]
        late = ", late" if came and came["late"] else ""
        handed_in = f"{_moment(came['received'])}{late}" if came else "not yet"
        points = "" if lab["points"] is None else f"{lab['points']:g} of {lab['most']:g}"
        so_far = "" if lab["final"] or not points else " so far"
        rows.append(f"| {lab['name']} | {_moment(lab['due'])} | {handed_in} | {points}{so_far} |")
    said = [f"{lab['name']}: {lab['hand_ins']}" for lab in answer if lab["hand_ins"]]
    said += [f"Times are those of {zone}." for zone in {lab["zone"] for lab in answer}]
    display(Markdown("\n\n".join(["\n".join(rows), *said])))


@_says_why
def fetch(lab: str) -> None:
    """Get the notebook of a lab such as `"01_tensors"` into `work/`; what is there stays."""
    path = _in_work(lab)
    if path.exists():
        print(f"You have it already: {path.relative_to(ROOT)}.")
        return
    _keep(path, _ask(f"labs/{quote(lab, safe='')}/notebook"))
    print(f"It is in {path.relative_to(ROOT)}.")


@_says_why
def submit(notebook: str = "", again: bool = False) -> None:
    """Hand in a notebook, by default the one in which this is called; show the receipt.

    What is handed in is the file, so save it first: where cells that were run are not in the file
    as they were run, nothing is sent. Where something was handed in before, and the new one comes
    late or has more answers that nobody has begun, this says so and asks. Where nobody can answer,
    as when a program runs the notebook, it hands in no second time.

    Args:
        notebook: a lab such as `"01_tensors"`, whose notebook lies in `work/`, or a path.
        again: whether to hand in a second time without being asked.
    """
    here = Path(os.environ.get(NOTEBOOK, ""))
    path = _notebook(notebook) if notebook else here
    try:
        data = path.read_bytes()
        saved = {cell.get("id"): cell["source"] for cell in json.loads(data)["cells"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        why = (
            f"{str(path)!r} is no notebook that can be read: save it, or give its lab, such as "
            "'01_tensors', or its path."
        )
        raise ServiceError(why) from None
    texts = {k: v if isinstance(v, str) else "".join(v) for k, v in saved.items()}
    ran = {key: cell.source.strip() for key, cell in history.cells().items()}
    unsaved = [key for key, text in ran.items() if key in texts and texts[key].strip() != text]
    if unsaved and path.resolve() == here.resolve():
        raise ServiceError(
            f"Nothing was sent: {len(unsaved)} of the cells that you ran are not saved as you ran "
            "them. Save the notebook (Ctrl+S) and run this cell again."
        )
    lab = path.stem
    if not again and (why := _why_not_again(lab, data, list(texts.values()))):
        print(why)
        return
    said = _json(f"labs/{quote(lab, safe='')}/notebook", data, "PUT")
    if said["sha256"] != hashlib.sha256(data).hexdigest():
        raise ServiceError("The service received other bytes than were sent: hand it in again.")
    late = ", which is after the due date" if said["late"] else ""
    zone = datetime.fromisoformat(said["received"]).tzname()
    print(f"{lab} was handed in on {_moment(said['received'])} ({zone}){late}.")
    if said["said"]:
        print(said["said"])
    print(f"Receipt: {said['bytes']:,} bytes, SHA-256 {said['sha256']}")


def _keep(path: Path, data: bytes) -> None:
    """Write a file as a whole: what a full disk cuts short is never taken for a lab's notebook.

    Raises ServiceError when it can't be written.
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
    """Return why a notebook is not handed in a second time; empty where it is.

    It asks whoever sits there, where the new notebook comes late or has fewer answers.
    """
    known = [one for one in _json("labs") if one["name"] == lab]
    if not (known and known[0]["again"] and known[0]["received"]):
        return ""
    before, means = known[0]["received"], known[0]["again"]
    if before["sha256"] == hashlib.sha256(data).hexdigest():
        on = _moment(before["received"])
        return f"You handed in the same on {on}. Nothing was sent: that one holds."
    blank = sum(one in text for text in texts for one in BLANK)
    doubts = [means["said"]]
    if blank > (earlier := before["blank"]):
        doubts.append(f"{blank} of its answers are empty, and {earlier} of the earlier one.")
    if _can_ask() and not (means["late"] or len(doubts) > 1):
        return ""
    if any(text.lstrip(" *_").lower().startswith(REQUEST) for text in texts):
        doubts.append("Where a request for a regrade is all that is new, the earlier time counts.")
    print(*doubts)
    if _can_ask() and input("Hand it in? [y/N] ").strip().lower() in ("y", "yes"):
        return ""
    return "Nothing was sent. To hand it in all the same: submit(again=True)"


def _can_ask() -> bool:
    """Return whether somebody can answer a question; a program that runs a notebook can't."""
    kernel = getattr(get_ipython(), "kernel", None)
    return bool(getattr(kernel, "_allow_stdin", kernel is None and sys.stdin.isatty()))


@_says_why
def feedback(lab: str) -> None:
    """Get the page of feedback on a lab such as `"01_tensors"` into `work/`."""
    path = ROOT / WORK / lab / f"{lab}_feedback.html"
    _keep(path, _ask(f"labs/{quote(lab, safe='')}/feedback"))
    print(f"It is in {path.relative_to(ROOT)}: open it in a new tab of JupyterLab.")


@_says_why
def requests() -> None:
    """Show your requests for a regrade, as far as they have been graded, and which are answered."""
    for one in (answer := _json("requests")):
        state = "answered" if one["answered"] else "not answered yet"
        print(f"{one['lab']}, {one['exercise']}: {one['why']!r}: {state}")
    if not answer:
        print("No request for a regrade of yours has been graded yet.")


def _in_work(lab: str) -> Path:
    return ROOT / WORK / lab / f"{lab}.ipynb"


def _notebook(said: str) -> Path:
    """Return the path of a notebook that is called by its path, or by its lab."""
    return Path(said) if said.endswith(".ipynb") or Path(said).is_file() else _in_work(said)


def _moment(iso: str | None) -> str:
    """Return a time in words, by the clock of the zone in which the service tells it."""
    at = datetime.fromisoformat(iso) if iso else None
    return f"{at.day} {at:%B %Y, %H:%M:%S}" if at else ""


def _json(path: str, body: bytes | None = None, method: str | None = None) -> Any:
    try:
        return json.loads(_ask(path, body, method))
    except ValueError:
        raise ServiceError(f"{address()} is no service of this course.") from None


def _ask(path: str, body: bytes | None = None, method: str | None = None) -> bytes:
    """Return what the service answers. Raises ServiceError."""
    setting = next(filter(None, map(os.environ.get, TOKENS)), "")
    token = setting.rpartition(",")[2].strip()  # of the line `NAME,TOKEN`, if it is all of it
    if not (address() and token):
        raise ServiceError(
            f"There is no service to ask: {ADDRESS} has its address, and {TOKENS[0]} your token, "
            "outside of a JupyterHub."
        )
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        request = urllib.request.Request(address() + path, body, headers, method=method)
        with urllib.request.urlopen(request, timeout=SECONDS) as reply:
            return bytes(reply.read())
    except urllib.error.HTTPError as error:
        raise ServiceError(_why(error)) from None
    except (OSError, ValueError) as error:  # of an address or a token that is none
        raise ServiceError(
            f"The service at {address()} could not be asked: {error}. Try again in a minute."
        ) from None


def _why(error: urllib.error.HTTPError) -> str:
    """Return why the service refused, in its own words where it has some."""
    try:
        said = json.load(error)["detail"]
    except (ValueError, KeyError, TypeError):
        said = error.reason
    again = error.headers.get("Retry-After")
    later = f" Ask again in {again} s." if again else ""
    return f"The service refused: {said}.{later}"
