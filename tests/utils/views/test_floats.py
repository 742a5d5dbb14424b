"""Bits, gaps and places of numbers against torch's own, for every number of the small dtypes."""

from __future__ import annotations

import math

import pytest
import torch

from utils.views._floats import FORMATS, INTEGERS, format_of, store

SMALL = (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)


@pytest.mark.parametrize("dtype", SMALL)
def test_every_number_has_its_place_and_gap(dtype):
    form = format_of(dtype)
    bits = torch.arange(1 << (form.bits - 1), dtype=torch.int32)
    numbers = bits.to(INTEGERS[dtype.itemsize]).view(dtype).double().tolist()
    finite = [value for value in numbers if math.isfinite(value)]
    for place, value in enumerate(finite):
        assert form.number(place) == value
        assert form.number(-place) == -value
        assert form.place(value) == place
        assert form.place(-value) == -place
    for place, (low, high) in enumerate(zip(finite, finite[1:], strict=False)):
        assert form.gap(low) == high - low
        assert form.place((low + high) / 2) == place
        assert form.place(-(low + high) / 2) == -place - 1
    assert form.largest == finite[-1]
    assert form.smallest == finite[1]


@pytest.mark.parametrize("dtype", FORMATS)
def test_a_format_is_torchs(dtype):
    form, info = format_of(dtype), torch.finfo(dtype)
    assert form.bits == info.bits
    assert 2.0**-form.fraction == info.eps
    assert form.smallest_normal == info.smallest_normal


def test_a_tenth_in_bfloat16():
    kept = store(0.1, torch.bfloat16)
    assert (kept.sign, kept.exponent, kept.fraction) == ("0", "01111011", "1001101")
    assert kept.value == 0.10009765625
    assert kept.gap == 2.0**-11
    assert kept.error == pytest.approx(9.765625e-5)
    assert kept.kind == "normal"


@pytest.mark.parametrize("value", [1.0, -3.5, 65504.0, 1e-7, 6e-8, -0.0])
@pytest.mark.parametrize("dtype", FORMATS)
def test_bits_read_back_are_the_value(value, dtype):
    kept = store(value, dtype)
    word = int(kept.sign + kept.exponent + kept.fraction, 2)
    signed = word - (1 << kept.format.bits) if dtype.itemsize > 1 and kept.sign == "1" else word
    want = torch.tensor(value, dtype=torch.float64).to(dtype).double().item()
    again = torch.tensor(signed, dtype=INTEGERS[dtype.itemsize]).view(dtype)
    # a number too large for e4m3 becomes 448 in torch 2.13 and nan in 2.11
    assert again.double().item() == pytest.approx(kept.value, rel=0, nan_ok=True)
    assert kept.value == pytest.approx(want, rel=0, nan_ok=True)


@pytest.mark.parametrize(
    ("value", "dtype", "kind"),
    [
        (70000.0, torch.float16, "inf"),
        (1e-6, torch.float16, "subnormal"),
        (1e-9, torch.float16, "zero"),
        (0.0, torch.float32, "zero"),
        (math.nan, torch.bfloat16, "nan"),
        (-math.inf, torch.float32, "inf"),
        (1e300, torch.float32, "inf"),
        (2.0, torch.float8_e5m2, "normal"),
    ],
)
def test_kinds(value, dtype, kind):
    assert store(value, dtype).kind == kind


def test_beyond_e4m3_is_never_taken_for_a_number():
    # Versions of torch differ: some give nan, some the largest number.
    assert store(1e6, torch.float8_e4m3fn).kind in ("nan", "saturated")


def test_an_infinite_value_has_no_error_and_gap():
    kept = store(70000.0, torch.float16)
    assert math.isnan(kept.error)
    assert math.isnan(kept.gap)


@pytest.mark.parametrize("dtype", [torch.int8, torch.complex64, torch.bool])
def test_other_dtypes_are_refused(dtype):
    with pytest.raises(TypeError, match="floating-point"):
        format_of(dtype)
