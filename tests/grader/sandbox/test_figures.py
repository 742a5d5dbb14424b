"""Figures of matplotlib come out of a sandbox as out of the kernel that a learner has."""

from __future__ import annotations

from typing import Any

import pytest

from tests.grader.sandbox.inmate import Inmate
from tests.live_kernel import live_kernel
from tests.patience import PATIENCE

pytestmark = [pytest.mark.slow(8), pytest.mark.usefixtures("sandbox")]

# run one after the other in one kernel
CELLS = {
    "nothing is switched on yet": (
        "import matplotlib, matplotlib.pyplot as plt, os, sys\n"
        "print(os.environ['MPLBACKEND'], matplotlib.rcParams._get('backend'))\n"
        "print(plt.isinteractive(), 'matplotlib_inline' in sys.modules)"
    ),
    "a figure of nobody's": "matplotlib.figure.Figure()",
    "shown": "plt.plot([1, 2]); plt.show()",
    "at the end of a cell": "_ = plt.plot([1, 2])",
    "as the last line": "fig, ax = plt.subplots()\nax.plot([1, 2])\nplt.close()\nfig",
    "two, and a word between them": (
        "plt.plot([1]); plt.show(); print(7)\nplt.plot([2]); plt.show()"
    ),
    "before an error": "plt.plot([1, 2])\n1 / 0",
    "not interactive": "plt.ioff()\n_ = plt.plot([1, 2])",
    "and shown later": "plt.show()\n_ = plt.ion()",
    "twice as fine": "%config InlineBackend.figure_format = 'retina'\n_ = plt.plot([1, 2])",
    "by its magic": "%matplotlib inline\n_ = plt.plot([1, 2])",
    "without a window": "plt.switch_backend('agg')\n_ = plt.plot([1, 2])",
}


def told(kind: str, content: dict[str, Any]) -> tuple[Any, ...]:
    if kind in ("display_data", "execute_result"):
        return kind, sorted(content["data"]), content["data"]["text/plain"], content["metadata"]
    return kind, content.get("text"), content.get("evalue")


def test_a_sandbox_shows_the_figures_that_a_learner_sees() -> None:
    live, ours = {}, {}
    with live_kernel() as (_, client), Inmate() as inmate:
        for name, code in CELLS.items():
            said = live[name] = []
            client.execute_interactive(
                code,
                timeout=PATIENCE,
                output_hook=lambda m, said=said: said.append(told(m["msg_type"], m["content"])),
            )
            heard = ours[name] = []
            inmate.kernel.run(
                code,
                PATIENCE,
                heard=lambda m, _, heard=heard: heard.append(told(m["kind"], m)),
            )
    live = {name: [s for s in said if s[0] not in BETWEEN] for name, said in live.items()}
    assert ours == live
    assert ours["shown"][0][1] == ["image/png", "text/plain"]


BETWEEN = ("status", "execute_input")  # what only Jupyter's kernels say
