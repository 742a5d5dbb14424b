"""Record what a call printed or drew, instead of the value that it returned."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import Any

from hood.judge.values.kind import NotByValue

MAX_PRINTED = 100_000  # characters that one call may print


class _Bounded(io.StringIO):
    def write(self, text: str) -> int:
        if self.tell() + len(text) > MAX_PRINTED:
            raise NotByValue(f"something, and printed more than {MAX_PRINTED:,} characters")
        return super().write(text)


@contextlib.contextmanager
def printed() -> Iterator[io.StringIO]:
    """Collect the text that is printed. Raises NotByValue if the text is too long."""
    text = _Bounded()
    with contextlib.redirect_stdout(text):
        yield text


def drawn(result: Any) -> Any:
    """Return the figure or axes among the results of a call, or else pyplot's current figure.

    All of pyplot's figures are closed. The result is None if there is no figure.
    """
    pyplot = sys.modules.get("matplotlib.pyplot")
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    found = list(result) if isinstance(result, (tuple, list)) else [result]
    if pyplot and pyplot.get_fignums():
        found.append(pyplot.gcf())
        pyplot.close("all")
    return next((one for one in found if isinstance(one, (Figure, Axes))), None)
