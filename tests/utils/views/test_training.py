"""Views of a training run: losses, a fitted line, AdamW's memory, norms and sizes of gradients."""

from __future__ import annotations

import importlib
import math

import pytest
import torch
from torch import nn

from tests.utils.views.examples import FALLING, LEVELS, LINES, POINTS
from tests.utils.views.sheets import check
from utils import views
from utils.views._canvas import round_steps

pytestmark = pytest.mark.slow(5)


def view(name):
    return importlib.import_module(f"utils.views.{name}")


curves, line, adamw, clip, ruler = map(
    view, ("loss_curves", "fitted_line", "adamw_explorer", "schedule_clip", "gradient_ruler")
)


# loss_curves


def sentence(**runs):
    return curves.sentence(curves.read(runs))


def test_the_title_says_whether_two_runs_are_the_same():
    again = {step: FALLING[step - 1] for step in range(60, 121)}
    assert (
        sentence(a=FALLING, b=again)
        == "The runs are the same to the last bit in all 61 common steps."
    )
    again[100] += 1e-9
    assert sentence(a=FALLING, b=again).startswith(
        "The two runs part at step 100, and are up to 1e-9"
    )
    assert sentence(a=FALLING, b={500: 1.0}) == "The two runs have no step in common."
    lost = "The two runs part at step 1, at which one is not finite."
    assert sentence(a={1: 1.0, 2: 2.0}, b={1: math.nan, 2: math.inf}) == lost
    assert sentence(a={1: 1.0, 2: 2.0, 3: 3.0}, b={1: 1.5, 2: 2.0, 3: math.inf}) == (
        "The two runs part at step 1, and are up to 0.5 apart where both are finite."
    )


def test_a_loss_that_is_not_finite_is_drawn_as_a_gap_and_named():
    runs = curves.read({"a": [3.0, math.nan, math.inf, 2.0]})
    check(*curves.draw(runs, {}, 2), "a: 3 at step 1, 2 at step 4, nan at the lit step 2")
    assert curves.first_difference(runs["a"], runs["a"]) is None


def test_levels_are_named():
    check(*curves.draw(curves.read({"a": FALLING}), LEVELS, 7), "Level trigram: 1.26.", "120 steps")


@pytest.mark.parametrize(
    ("runs", "at", "says"),
    [
        ({}, None, "1 to 4 runs, got 0"),
        ({str(k): [1.0] for k in range(5)}, None, "got 5"),
        ({"a": []}, None, "the run 'a' has no step"),
        ({"a": [1.0, 2.0]}, 3, "a step from 1 to 2, got 3"),
    ],
)
def test_runs_that_cannot_be_shown_are_refused(runs, at, says):
    with pytest.raises(ValueError, match=says):
        views.loss_curves(runs, step=at)


def test_distances_outside_their_bands_are_named():
    runs = curves.read({"float32": [3.0, 2.0, 1.0], "a": [3.0, 2.25, 1.5], "b": [3.0, 2.0, 1.25]})
    edges = curves.read({"a": [0.5, 0.25, 0.25], "b": [0.5, 0.5, 0.5]})
    check(
        *curves.draw_bands(runs, edges, 2),
        "Distances from float32. “a” leaves its band at step 3.",
        "a: 0.25 from float32 at step 2, where the band ends at 0.25",
        "b: 0 from float32 at step 2, where the band ends at 0.5",
    )
    assert curves.band_sentence(curves.read({"a": [0.0, 0.25]}), edges) == (
        "Every run stays in its band."
    )
    lost = curves.read({"a": [0.0, math.nan]})
    assert curves.band_sentence(lost, edges) == "“a” leaves its band at step 2."


@pytest.mark.parametrize("bands", [{"a": [1.0], "b": [1.0]}, {"float32": [1.0]}])
def test_each_run_but_the_first_has_a_band(bands):
    runs = {"float32": [1.0], "a": [1.0]}
    with pytest.raises(ValueError, match=r"expected bands for \['a'\], in this order"):
        views.loss_curves(runs, bands=bands)


# fitted_line


def points():
    return line.read("seen", POINTS)


def test_the_error_of_a_line():
    assert line.mean_squared(points(), (2.0, 1.0)) == pytest.approx(0, abs=1e-10)
    assert line.mean_squared(points(), (2.0, 4.0)) == pytest.approx(9)
    check(*line.draw(points(), points(), LINES, 0), "After step 0: y = 0x + 0.", "48 points")


@pytest.mark.parametrize("worst", [(0.0, 500.0), (math.nan, 0.0), (-1e30, 1e30)])
def test_a_line_far_outside_is_drawn_too(worst):
    check(*line.draw(points(), points(), [*LINES, worst], 60), "After step 60")


def test_points_must_be_pairs():
    with pytest.raises(ValueError, match="as many x as y"):
        views.fitted_line(([1, 2], [1]), ([1], [1]), LINES)
    with pytest.raises(ValueError, match="at least one line"):
        views.fitted_line(([1], [1]), ([1], [1]), [])


# adamw_explorer


@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.0, 0.9), (0.95, 0.99)])
def test_the_explorer_is_torchs_adamw(betas):
    torch.manual_seed(0)
    gradients = torch.randn(30, dtype=torch.float64).tolist()
    p = nn.Parameter(torch.zeros((), dtype=torch.float64))
    optimizer = torch.optim.AdamW([p], lr=1.0, betas=betas, weight_decay=0)
    found = adamw.track(gradients, betas, corrected=True)
    for g, update in zip(gradients, found.updates, strict=True):
        before = p.item()
        p.grad = torch.tensor(g, dtype=torch.float64)
        optimizer.step()
        assert p.item() - before == pytest.approx(update, abs=1e-12)


def test_without_correction_the_first_step_is_three_times_as_large():
    found = adamw.track([2.0], (0.9, 0.999), corrected=False)
    assert found.updates[0] == pytest.approx(-0.1 / math.sqrt(0.001), rel=1e-6)


def test_a_weight_without_a_gradient_stays():
    found = adamw.track([0.0, 0.0], (0.9, 0.999), True)
    check(*adamw.draw(found, 1, "a weight"), "nothing moves")


@pytest.mark.parametrize(
    ("gradients", "how", "says"),
    [
        ([1.0], {}, "2 to 400 finite"),
        ([1.0, math.inf], {}, "finite"),
        ([1.0, 2.0], {"step": 3}, "step: expected 1 to 2"),
    ],
)
def test_invalid_settings_of_adamw_are_refused(gradients, how, says):
    with pytest.raises(ValueError, match=says):
        views.adamw_explorer(gradients, **how)


# schedule_clip

NORMS = [2.0, 0.5, 6.0, 1.0, math.inf]


def test_the_clip_counts_shortened_gradients():
    assert clip.sentence(NORMS, 1.0) == (
        "A clip at 1 shortens 3 of 5 steps, the worst by a factor of 6."
    )
    assert clip.sentence([0.1, 0.2], 1.0) == "A clip at 1 shortens none of these 2 steps."
    check(*clip.draw(NORMS, 2, 0.1, 1.0), "0.5 at step 1", "0.1 at step 5")


def test_a_climb_ends_before_the_run():
    with pytest.raises(ValueError, match="expected 0 to 4"):
        views.schedule_clip(NORMS, warmup=5)


# gradient_ruler


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("power", [0, 12, 34])
def test_the_ruler_says_what_a_cast_does(dtype, power):
    torch.manual_seed(0)
    x = torch.randn(4000) * 2.0 ** torch.randint(-40, 6, (4000,))
    x = torch.cat([x, torch.tensor([65504.0, 65519.0, 65521.0, 2.0**-24, 2.0**-25])])
    cast = (x.double() * 2.0**power).to(dtype)
    fates = ruler.read([x]).fates(power, dtype)
    assert fates["become 0"] == pytest.approx((cast == 0).double().mean().item())
    assert fates["overflow"] == pytest.approx(cast.isinf().double().mean().item())
    assert sum(fates.values()) == pytest.approx(1)


def test_the_ruler_counts_zeros_and_leaves_out_none():
    found = ruler.read([torch.tensor([0.0, 1.0, math.nan]), None, torch.ones(2)])
    assert (found.count, found.zeros, found.wild, len(found.powers)) == (5, 1, 1, 3)
    said = "Sizes of 5 gradients, 1 of them exactly 0 and 1 infinite or NaN. "
    assert ruler.draw(found, 0)[1].startswith(said)
    with pytest.raises(ValueError, match="call backward"):
        views.gradient_ruler([None, torch.zeros(3)])


def test_round_steps():
    assert round_steps(0, 100) == [0, 20, 40, 60, 80, 100]
    assert round_steps(1, 2.6, 4) == [1, 1.5, 2, 2.5]
    assert round_steps(3, 3) == [3]
