"""Broadcasting, roofs, sharing, labels and paths: the arithmetic of the other views."""

from __future__ import annotations

import random

import pytest
import torch

from hood.learner.contents import PHASES
from utils.views._numbers import human_bytes, listed, number, short, si
from utils.views.broadcast_aligner import align, parse_shape
from utils.views.course_path import places
from utils.views.roofline import Roof, Work, works
from utils.views.share_map import storages


def test_broadcasting_is_torchs():
    draw = random.Random(0)
    clashes = 0
    for _ in range(300):
        shapes = [
            tuple(draw.choice([0, 1, 1, 2, 3]) for _ in range(draw.randint(0, 4)))
            for _ in range(draw.randint(1, 3))
        ]
        alignment = align(shapes)
        try:
            want = tuple(torch.broadcast_shapes(*shapes))
        except RuntimeError:
            clashes += 1
            assert alignment.clashes, shapes
            continue
        assert alignment.result == want, shapes
        for row, shape in enumerate(shapes):
            stride = torch.empty(shape).expand(want).stride()
            for column, size in enumerate(want):
                if size > 1:
                    assert alignment.stretched(row, column) == (stride[column] == 0)
    assert clashes > 20


def test_a_clash_is_found_in_its_column():
    alignment = align([(8, 3, 5), (4, 5), (1,)])
    assert alignment.clashes == [1]
    assert alignment.result == (8, None, 5)


@pytest.mark.parametrize("shapes", [[], [(2, -1)]])
def test_invalid_shapes_are_refused(shapes):
    with pytest.raises(ValueError, match="shape"):
        align(shapes)


@pytest.mark.parametrize(
    ("text", "shape"),
    [("(64, 1)", (64, 1)), ("64 1", (64, 1)), ("64×1", (64, 1)), ("()", ()), ("(3,)", (3,))],
)
def test_shapes_as_people_type_them(text, shape):
    assert parse_shape(text) == shape


def test_an_invalid_shape_is_quoted():
    with pytest.raises(ValueError, match="batch"):
        parse_shape("(batch, 3)")


def test_the_roof():
    roof = Roof(flops=1e12, bandwidth=1e11)
    assert roof.ridge == 10
    assert roof.at(5) == 5e11
    assert roof.at(10) == roof.at(50) == 1e12
    timed, counted = works({"timed": (8, 4, 2), "counted": (8, 4)})
    assert (timed.intensity, timed.attained) == (2, 4)
    assert counted == Work("counted", 8, 4, None)
    assert counted.attained is None


@pytest.mark.parametrize("points", [{}, {"a": (1,)}, {"a": (0, 1)}, {"a": (1, 1, -1)}])
def test_points_that_mean_nothing_are_refused(points):
    with pytest.raises(ValueError, match="roofline"):
        works(points)


def test_storages_are_distinguished_by_their_bytes():
    x = torch.arange(24.0).reshape(4, 6)
    tensors = {"x": x, "t": x.t(), "copy": x.t().contiguous(), "column": x[:, 2], "none": x[:0]}
    first, second = storages(tensors)
    assert [tensor.name for tensor in first.tensors] == ["x", "t", "column", "none"]
    assert [tensor.name for tensor in second.tensors] == ["copy"]
    assert first.nbytes == second.nbytes == 96
    column = first.tensors[2]
    assert (column.first, column.last, column.dense) == (8, 84, False)
    assert column.reached(0, 96) == [(8, 12), (32, 36), (56, 60), (80, 84)]
    assert first.tensors[0].dense
    assert first.tensors[1].dense
    none = first.tensors[3]
    assert none.first == none.last


def test_views_of_another_dtype_share():
    x = torch.zeros(4)
    assert len(storages({"x": x, "bits": x.view(torch.int32), "bytes": x.view(torch.uint8)})) == 1


def test_meta_and_empty_storages_are_not_thrown_together():
    tensors = {"a": torch.empty(2, device="meta"), "b": torch.empty(2, device="meta")}
    assert len(storages(tensors)) == 2
    assert len(storages({"a": torch.empty(0), "b": torch.empty(0)})) == 2


def test_a_phase_stands_right_of_what_it_needs():
    spots = places(PHASES)
    assert len(set(spots.values())) == len(PHASES)
    for phase in PHASES:
        assert all(spots[need][0] < spots[phase.number][0] for need in phase.needs)
    assert [spots[number][1] for number in (1, 2, 3, 4, 5, 6)] == [0] * 6


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (-1.23456, "-1.23"),
        (1e-7, "1e-7"),
        (123456789, "1e8"),
        (True, "True"),
        (12, "12"),
        (float("inf"), "inf"),
        (-0.5 + 2j, "-0.5+2j"),
        (1 - 0.25j, "1-0.25j"),
    ],
)
def test_values_fit_their_cell(value, text):
    assert short(value, 5) == text


def test_units():
    assert human_bytes(0) == "0 B"
    assert human_bytes(1023) == "1023 B"
    assert human_bytes(153600) == "150 KiB"
    assert human_bytes(1023 * 1024) == "1023 KiB"
    assert human_bytes(5 * 2**40) == "5 TiB"
    assert si(989e12, "FLOP/s") == "989 TFLOP/s"
    assert si(12, "B/s") == "12 B/s"
    assert [number(x, 3) for x in (65504, 512.0, 6.1035e-5, 9.9996e-7, 3.4028e38, 0)] == [
        "65504",
        "512",
        "6.1e-5",
        "1e-6",
        "3.4e38",
        "0",
    ]
    assert listed(["a", "b", "c"]) == "a, b and c"
