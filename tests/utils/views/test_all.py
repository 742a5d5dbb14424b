"""Requirements on every view."""

from __future__ import annotations

import base64
import html
import importlib
import itertools
import random
import time
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from hood import audience
from hood.metadata import FRAMES_MIME
from tests.utils.views.examples import EXAMPLES
from utils import views
from utils.instruments.toolchain import inductor_lacks
from utils.notebook.figures import LINKED, jpeg
from utils.notebook.style import WIDTH
from utils.views import _frames
from utils.views._canvas import TITLE, Canvas
from utils.views._text_outlines import text_width
from utils.views._view import present

IMAGE = {"text/html", "text/plain"}
WIDGET = "application/vnd.jupyter.widget-view+json"
STILL = {
    "autograd_graph", "cache_growth", "course_path", "dtype_range", "finite_difference_error",
    "flops_by_operator", "graph_rewrite", "loss_curves", "machine_report", "memory_bars",
    "memory_timeline", "module_tree", "port_difference", "row_lanes", "saved_bytes", "share_map",
}  # fmt: skip
# These views need a window of 820 pixels; the letters of other views are legible at half of it.
SMALL_LETTERS = {
    "autograd_graph", "backward_stepper", "broadcast_aligner", "course_path", "dropout_modes",
    "dtype_range", "dtype_ruler", "finite_difference_error", "machine_report", "memory_bars",
    "module_tree", "port_difference", "share_map", "stride_explorer",
}  # fmt: skip
SMALLEST = 13  # CSS pixels of a letter; 6.7 if the sheet is 420 pixels wide
MARGIN = 20
# CPU time for a redraw after a slider moved; on a busy machine it takes about 0.08.
SECONDS = 0.15
MAX_BYTES = 125_000  # of the fullest picture
PLACES = 8  # places of the controls that a proof tries
SOME_PLACES = 4  # in other runs: the start, and three others of the eight, by the seed
SOME = 3  # views of each sort, for tests of `present`; a proof uses all

pytestmark = pytest.mark.slow(25)


@pytest.fixture(params=EXAMPLES)
def name(request):
    if request.param == "fusion_map":
        request.getfixturevalue("compiler")
    return request.param


@pytest.fixture
def some(seeds, full):
    """Views that move, and some that don't."""
    able = {name for name in EXAMPLES if name != "fusion_map" or not inductor_lacks()}
    chance = random.Random(f"views {seeds[0]}")
    sorts = sorted(able & STILL), sorted(able - STILL)
    return [name for sort in sorts for name in (sort if full else chance.sample(sort, SOME))]


def published(call, *variables):
    """Return what a call publishes in a notebook's kernel, for an audience."""
    found: list[dict] = []
    importlib.import_module("torch._dynamo")  # it needs more of IPython than the kernel below has
    with pytest.MonkeyPatch.context() as patch:
        for variable in (audience.BUILD, audience.FRAMES, audience.TEXT_ONLY):
            patch.delenv(variable, raising=False)
        for variable in variables:
            patch.setenv(variable, "1")
        patch.setattr("IPython.get_ipython", lambda: SimpleNamespace(kernel=object()))
        patch.setattr("IPython.display.publish_display_data", found.append)
        call()
    return found[0]


@cache
def live(name):
    """Call a view once, live; return what it publishes, and its call of `present`."""
    module, calls = importlib.import_module(f"utils.views.{name}"), []
    present = module.present

    def noted(*shown, **more):
        calls.append((shown, more))
        present(*shown, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "present", noted)
        return published(EXAMPLES[name]), *calls[0]


@pytest.fixture
def states(name, seeds, full):
    """Functions that draw the view at some places of its controls."""
    _, (draw, *controls), _ = live(name)
    if not all(control.offered for control in controls):
        return [lambda: draw(*(control.start for control in controls))]
    places = list(itertools.islice(_frames.places(controls), PLACES)) if controls else [()]
    if not full:
        others = places[1:]
        chance = random.Random(f"places of {name} {seeds[0]}")
        places = places[:1] + chance.sample(others, min(len(others), SOME_PLACES - 1))
    chosen = [[c.offered[at][1] for c, at in zip(controls, p, strict=True)] for p in places]
    return [lambda values=values: draw(*values) for values in chosen]


def test_every_view_is_exported_and_has_an_example():
    files = {path.stem for path in Path(views.__file__).parent.glob("[!_]*.py")}
    assert set(EXAMPLES) == set(views.__all__) == files
    assert all(callable(getattr(views, name)) for name in files)


def test_the_site_gets_an_image_with_its_words_and_pictures_of_what_moves(name, monkeypatch):
    monkeypatch.setattr(_frames, "MOST", 3)
    _, given, more = live(name)
    shown = published(lambda: present(*given, **more), audience.BUILD, audience.FRAMES)
    assert set(shown) == IMAGE | (set() if name in STILL else {FRAMES_MIME})
    alt = shown["text/plain"].removeprefix("[figure] ")
    image = shown["text/html"].removeprefix(f'<div class="{LINKED}">')
    assert image.startswith(f'<img alt="{html.escape(alt)}" width="{WIDTH}"')
    assert len(shown["text/html"]) < MAX_BYTES * 4 / 3
    if name not in STILL:
        found = shown[FRAMES_MIME]
        assert base64.b64decode(found["base"])[:4] == b"\x89PNG"
        assert 2 <= len(found["frames"]) <= 9
        assert all(control["labels"] for control in found["controls"])


def test_live_it_has_controls_where_it_can_move_and_its_image(name):
    assert set(live(name)[0]) == IMAGE | (set() if name in STILL else {WIDGET})


def test_for_the_site_those_that_move_are_called_as_live_ones(some, monkeypatch):
    monkeypatch.setattr(_frames, "MOST", 3)
    for name in some:
        shown = published(EXAMPLES[name], audience.BUILD, audience.FRAMES)
        assert (FRAMES_MIME in shown) == (name not in STILL), name


def test_a_built_page_has_an_image_with_its_words(some):
    shown = {name: published(EXAMPLES[name], audience.BUILD) for name in some}
    for name, found in shown.items():
        assert set(found) == IMAGE, name
        alt = found["text/plain"].removeprefix("[figure] ")
        assert f'<img alt="{html.escape(alt)}" width="{WIDTH}"' in found["text/html"], name


def test_while_a_class_is_graded_there_are_only_the_words(some):
    for name in some:
        assert set(published(EXAMPLES[name], audience.TEXT_ONLY)) == {"text/plain"}, name


def test_outside_ipython_it_prints_its_words(some, capsys):
    for name in some:
        assert EXAMPLES[name]() is None, name
        assert capsys.readouterr().out.startswith("[figure] "), name


def test_no_words_are_cut_off_or_lie_over_others(name, states, monkeypatch):
    """The words are large enough, too, and all sheets have the same height."""
    if name in SMALL_LETTERS:
        return
    written: list[tuple[float, float, float, float, str, float]] = []
    original = Canvas.text

    def text(self, x, y, words, colour="", ha="left", *, size=14, mono=False):
        wide = text_width(words, size=size, mono=mono)
        left = x - {"left": 0, "center": 0.5, "right": 1}[ha] * wide
        if words:
            written.append((left, y - size * 0.4, left + wide, y + size * 0.4, words, size))
        original(self, x, y, words, colour or "black", ha, size=size, mono=mono)

    monkeypatch.setattr(Canvas, "text", text)
    heights = set()
    for draw in states:
        written.clear()
        figure, _ = draw()
        high = figure.get_figheight() * 100
        heights.add(high)
        assert sum(size == TITLE for *_, size in written) == 1, "expected a title in one line"
        for left, top, right, bottom, words, size in written:
            assert left >= MARGIN, words
            assert right <= WIDTH - MARGIN, words
            assert 0 <= top < bottom <= high, words
            assert size >= SMALLEST, words
        for one, other in itertools.combinations(written, 2):
            beside = one[2] <= other[0] or other[2] <= one[0]
            assert beside or one[3] <= other[1] or other[3] <= one[1], (one[4], other[4])
    assert len(heights) == 1


def test_a_redraw_is_quick_enough_for_a_control(name, states):
    if name in STILL:
        return
    jpeg(states[-1]()[0])  # letters are outlined once
    taken = []
    for _ in range(3):
        start = time.process_time()
        jpeg(states[-1]()[0])
        taken.append(time.process_time() - start)
    assert min(taken) < SECONDS


def test_drawing_for_the_site_keeps_the_random_state(monkeypatch):
    torch.manual_seed(3)
    wanted = torch.rand(1)
    torch.manual_seed(3)
    monkeypatch.setenv(audience.FRAMES, "1")
    monkeypatch.setattr("IPython.display.publish_display_data", lambda _: None)
    monkeypatch.setattr(_frames, "MOST", 3)
    views.block_mask(3, 4)
    assert torch.rand(1) == wanted
