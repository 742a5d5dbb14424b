"""Matplotlib's figures are the same from a sandbox and from a learner's kernel."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.hood.grader.sandbox.inmate import Inmate
from tests.live_kernel import live_kernel
from tests.patience import PATIENCE

pytestmark = [pytest.mark.slow(8), pytest.mark.usefixtures("sandbox")]

# these cells run one after the other in one kernel
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


PLOT = "import matplotlib.pyplot as plt\nfig = plt.figure()\n_ = plt.plot([1, 2])\nplt.close()"
SET = "import matplotlib_inline.backend_inline as inline\ninline.set_matplotlib_formats({})\nfig"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("%config InlineBackend.figure_formats = ['svg']\nfig", "image/png"),
        ("%config InlineBackend.figure_format = 'pdf'\nfig", "image/png"),
        ("%config InlineBackend.figure_format = 'jpg'\nfig", "image/jpeg"),
        (SET.format("'svg'"), "image/png"),
        (SET.format("'svg', 'pdf'"), "image/png"),
        (SET.format("'svg', 'jpeg'"), "image/jpeg"),
        (SET.format("'svg', 'retina'"), "image/png"),
    ],
)
def test_a_figure_in_another_format_is_a_picture_that_a_page_shows(code: str, kind: str) -> None:
    with Inmate() as inmate:
        inmate.run(PLOT)
        [shown] = displayed(inmate, code)
        assert set(shown) == {kind, "text/plain"}
        head = b"\x89PNG" if kind == "image/png" else b"\xff\xd8\xff"
        assert base64.b64decode(shown[kind]).startswith(head)


def test_a_drawing_that_is_no_figure_is_unchanged() -> None:
    with Inmate() as inmate:
        [shown] = displayed(inmate, "from IPython.display import SVG\nSVG('<svg/>')")
    assert shown["image/svg+xml"] == "<svg/>"


def displayed(inmate: Inmate, code: str) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    inmate.kernel.run(code, PATIENCE, heard=lambda m, _: shown.append(m["data"]))
    return shown


BETWEEN = ("status", "execute_input")  # output of Jupyter's kernels alone
