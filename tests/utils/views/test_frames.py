"""Pictures of a view that are made in advance: their places, and that they equal the view's."""

import base64
import importlib
import io

import numpy as np
import pytest
import torch
from PIL import Image

from hood import audience
from hood.metadata import FRAMES_MIME
from utils.notebook.figures import rasterize
from utils.views import _frames
from utils.views._controls import choice, slider, switch
from utils.views._frames import MOST, places, spread

VIEWS = "block_mask", "broadcast_aligner", "stride_explorer"
block_mask, broadcast_aligner, stride_explorer = (
    importlib.import_module(f"utils.views.{name}") for name in VIEWS
)


def steps(count, start):
    return slider("n", start, 0, count - 1)


def test_few_places_are_all_there_and_the_start_is_first():
    found = list(places([steps(5, 2), steps(4, 1)]))
    assert found[0] == (2, 1)
    assert len(found) == len(set(found)) == 20


def test_a_long_range_is_thinned_evenly_and_keeps_its_ends_and_its_start():
    found = sorted(at for (at,) in places([steps(600, 7)]))
    assert len(found) == MOST
    assert {0, 7, 599} <= set(found)
    gaps = np.diff(found)
    assert gaps.max() <= 2 * 600 / MOST


def test_ranges_that_are_thinned_together_can_be_combined():
    found = set(places([steps(64, 3), steps(600, 9)]))
    rows, columns = ({place[k] for place in found} for k in (0, 1))
    assert {(row, column) for row in rows for column in columns} == found


def test_too_many_controls_to_combine_can_each_be_moved_alone():
    controls = [choice("n", 1, range(4)), *(switch("n", False) for _ in range(9))]
    found = set(places(controls))
    assert len(found) == MOST
    for at in range(10):
        for to in range(len(controls[at].offered)):
            moved = [1, *[0] * 9]
            moved[at] = to
            assert tuple(moved) in found


@pytest.mark.parametrize("most", [None, 4, 5, 9, 16])
@pytest.mark.parametrize("start", [0, 3, 16])
def test_numbers_come_from_coarse_to_fine(start, most):
    found = spread(17, start, most)
    assert len(found) == len(set(found)) == (most or 17)
    assert found[0] == start
    assert {0, 16} <= set(found[:3])
    assert all(type(k) is int for k in found)


def shown(monkeypatch, view, *args):
    """What the view publishes while the site's pictures are made."""
    published = []
    monkeypatch.setenv(audience.FRAMES, "1")
    monkeypatch.setattr("IPython.display.publish_display_data", published.append)
    view(*args)
    (bundle,) = published
    return bundle


def pixels(base, picture):
    """The base with a picture laid over it."""
    x, y, width, height, data = picture
    over = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
    assert over.shape == (height, width, 4)
    if x < 0:
        return over[..., :3]
    found = base.copy()
    box = found[y : y + height, x : x + width]
    box[over[..., 3] > 0] = over[over[..., 3] > 0][:, :3]
    return found


@pytest.mark.slow(2)
def test_every_picture_laid_over_the_base_is_what_the_view_draws(monkeypatch):
    tensor = torch.arange(6).view(2, 3)
    found = shown(monkeypatch, stride_explorer.stride_explorer, tensor)[FRAMES_MIME]
    draw = stride_explorer.draw
    start = tuple(control["start"] for control in found["controls"])
    base = np.asarray(rasterize(draw(tensor, start)[0]))
    assert len(found["frames"]) == 6
    for key, (number, alt) in found["frames"].items():
        figure, said = draw(tensor, tuple(map(int, key.split(","))))
        assert alt == said
        wanted = np.asarray(rasterize(figure))
        got = base if number < 0 else pixels(base, found["pictures"][number])
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.slow(1)
def test_where_anything_can_be_typed_a_choice_stands_for_it(monkeypatch):
    draw = broadcast_aligner.draw
    found = shown(monkeypatch, broadcast_aligner.broadcast_aligner, (3, 1), (1, 4))[FRAMES_MIME]
    (control,) = found["controls"]
    assert control["labels"][0] == "(3, 1) and (1, 4)"
    base = np.asarray(rasterize(draw([(3, 1), (1, 4)])[0]))
    for at, label in enumerate(control["labels"]):
        shapes = [eval(shape) for shape in label.split(" and ")]  # of the view's own tuples
        number, _ = found["frames"][str(at)]
        wanted = np.asarray(rasterize(draw(shapes)[0]))
        np.testing.assert_array_equal(
            wanted, base if number < 0 else pixels(base, found["pictures"][number])
        )


def test_a_picture_of_another_size_is_whole():
    base, other = (np.full((rows, 4, 3), rows, np.uint8) for rows in (4, 5))
    x, y, width, height, data = _frames.change(base, other)
    assert (x, y, width, height) == (-1, -1, 4, 5)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(data)))[..., :3], other)
    assert _frames.change(base, base) is None


def test_a_refused_value_of_a_control_gives_a_message(monkeypatch):
    def draw(n):
        if n == 1:
            raise ValueError("one is none")
        return block_mask.draw(n + 1, 4)

    found = _frames.frames(draw, [steps(3, 0)], (), draw(0))
    assert found["frames"]["1"] == "one is none"
    assert isinstance(found["frames"]["2"], list)


def test_the_bytes_of_a_view_are_bounded(monkeypatch):
    monkeypatch.setattr(_frames, "MOST_BYTES", 5_000)
    found = shown(monkeypatch, block_mask.block_mask, 3, 4)[FRAMES_MIME]
    sizes = [len(base64.b64decode(picture[-1])) for picture in found["pictures"]]
    assert sum(sizes[:-1]) <= 5_000
    assert 1 < len(found["frames"]) < MOST
