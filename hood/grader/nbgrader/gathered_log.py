"""Show the log of nbgrader's commands for a whole class: errors at once, a summary at the end.

nbgrader writes about five lines for each learner, and these lines hide the line that matters. So
all lines of the same kind become one line, which says how many lines there were. nbgrader's
warnings follow, and this project's lines come last. ``--log-level=INFO`` and ``--debug`` show every
line at once; a log file always has all lines.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from traitlets.config import Application

OURS = f"{Path(__file__).resolve().parents[2]}{os.sep}"
COMMANDS = {
    *("autograde", "collect", "generate_assignment", "generate_feedback"),
    *("release_feedback", "zip_collect"),
}
SHOWN = 3  # up to this many lines of one kind are all shown
WIDTH = 78  # of the progress line on a terminal


def gather_log(app: Application) -> None:
    """If no log level is set, gather the log of an nbgrader command for a whole class."""
    name = app.name.removeprefix("nbgrader-").replace("-", "_")
    asked = [one for one in type(app).__mro__ if "log_level" in app.config.get(one.__name__, {})]
    if name not in COMMANDS or asked:
        return
    for handler in app.log.handlers:
        if isinstance(handler, logging.StreamHandler) and not isinstance(
            handler, logging.FileHandler
        ):
            gathered = Gathered(handler)
            handler.addFilter(gathered)
            atexit.register(gathered.show)


class Gathered(logging.Filter):
    """Keeps a handler's records until they are shown; errors are shown at once."""

    def __init__(self, handler: logging.StreamHandler):
        super().__init__()
        self._handler = handler
        self._kept: list[logging.LogRecord] = []
        self._shows = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is shown now."""
        if self._shows or record.levelno >= logging.ERROR:
            self._show_progress("")
            return True
        self._kept.append(record)
        self._show_progress(record.getMessage())
        return False

    def show(self) -> None:
        """Write the kept records."""
        self._show_progress("")
        self._shows = True
        for record in in_order(self._kept):
            self._handler.handle(record)
        self._kept.clear()

    def _show_progress(self, said: str) -> None:
        stream = self._handler.stream
        with suppress(AttributeError, OSError, ValueError):
            if stream.isatty():
                line = "".join(c if c.isprintable() else " " for c in said.strip())[:WIDTH]
                stream.write(f"\r\033[K{line}")
                stream.flush()


def in_order(records: list[logging.LogRecord]) -> Iterator[logging.LogRecord]:
    """Yield records in the order for reading: nbgrader's records, then this project's, each once.

    If one place in nbgrader's code made many records, only some of them are shown, with the number
    of the others: one line for INFO records, and a few lines for warnings.
    """
    for level in (logging.INFO, logging.WARNING):
        kinds: dict[tuple[str, int], list[logging.LogRecord]] = {}
        for record in records:
            warns = record.levelno >= logging.WARNING
            if warns == (level == logging.WARNING) and not record.pathname.startswith(OURS):
                kinds.setdefault((record.pathname, record.lineno), []).append(record)
        for same in kinds.values():
            yield from _summed_up(_once(same), level)
    own = _once([record for record in records if record.pathname.startswith(OURS)])
    yield from sorted(own, key=lambda record: record.levelno)


def _summed_up(records: list[logging.LogRecord], level: int) -> Iterator[logging.LogRecord]:
    if len(records) <= SHOWN:
        yield from records
        return
    texts = [record.getMessage() for record in records]
    if level == logging.INFO:
        begins = os.path.commonprefix(texts).rpartition(" ")[0]
        yield _saying(records[0], f"{begins} … ({len(texts)} of this kind)")
        return
    yield from records[:SHOWN]
    more = f"... and {len(texts) - SHOWN} more of this kind; --log-level=INFO shows each"
    yield _saying(records[0], more)


def _once(records: list[logging.LogRecord]) -> list[logging.LogRecord]:
    """Return the records without repetitions; a repeated record has the number of repetitions."""
    times = Counter(record.getMessage() for record in records)
    first = {record.getMessage(): record for record in reversed(records)}
    return [
        first[text] if many == 1 else _saying(first[text], f"{text.rstrip()} ({many} times)")
        for text, many in times.items()
    ]


def _saying(record: logging.LogRecord, text: str) -> logging.LogRecord:
    return logging.makeLogRecord({**record.__dict__, "msg": text, "args": ()})
