"""The number of input sets, and the median of timings."""

import torch

from benchmarks.timing import MOST_CALLS, input_sets, measure

GB = 10**9


def test_inputs_fill_the_cache_four_times_over():
    count = input_sets(bytes_per_call=10**6, cache_bytes=60 * 10**6, free_bytes=100 * GB)
    assert count == 240


def test_there_are_at_least_two_sets_and_no_more_than_fit():
    assert input_sets(2 * GB, 60 * 10**6, 100 * GB) == 2
    assert input_sets(2 * GB, 60 * 10**6, 4 * GB) == 1
    assert input_sets(1000, 60 * 10**6, 100 * GB) == MOST_CALLS


def test_every_call_is_timed_and_the_spread_is_kept():
    calls = []
    timing = measure(
        {"it": [lambda i=i: calls.append(i) for i in range(3)]}, torch.device("cpu"), 1
    )
    assert calls == [0, 0, 1, 2, 0, 1, 2]  # the first is a warm-up
    assert timing["it"].samples == 6
    assert 0 < timing["it"].low <= timing["it"].seconds <= timing["it"].high
