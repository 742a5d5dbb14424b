"""A function that gets Inductor's code may leave settings on; this is noticed and undone."""

from __future__ import annotations

import logging
import os

import pytest
import torch
from torch._inductor import config
from torch._inductor.graph import GraphLowering
from torch._inductor.utils import run_and_get_code

from utils.drivers import emitting

pytestmark = pytest.mark.slow(8)


def careless(function, *inputs):
    torch._logging.set_logs(output_code=True)
    config.fx_graph_cache = not config.fx_graph_cache
    config.force_disable_caches = True
    os.environ["LEFT_BEHIND"] = "1"
    GraphLowering.save_output_code = print
    return function(*inputs)


def careful(function, *inputs):
    return run_and_get_code(emitting.call, torch.compile(function), *inputs)[1]


def test_settings_left_on_are_noted_and_switched_off():
    before = config.fx_graph_cache
    came = emitting.dumped(careless, ((1,), torch.ones(2, 3), torch.ones(3, 3)))
    every = [emitting.LOG, emitting.SETTING, emitting.VARIABLE, emitting.FUNCTION]
    assert came["left"] == [every]
    assert config.fx_graph_cache == before
    assert not config.force_disable_caches
    assert "LEFT_BEHIND" not in os.environ
    assert GraphLowering.save_output_code is None
    assert not logging.getLogger("torch._inductor").isEnabledFor(logging.INFO)


def test_the_code_of_each_graph_forward_and_backward_and_errors_are_returned():
    x, w = torch.ones(2, 3), torch.ones(3, 3)
    came = emitting.dumped(careful, ((2, 1), x, w), ((1, 0), x, w), ((2, 1), x, w), back=True)
    assert came["raised"] == [False, True, False]
    assert came["left"] == [[], [], []]
    for at in (0, 2):
        counts = [text.count(" extern_kernels.mm(") for text in came["texts"][at]]
        assert sorted(counts) == [1, 1, 2, 2]
        assert came["python"][at] == [True] * 4


def test_settings_already_on_are_noted_as_well():
    """A learner also calls the function outside the driver, where nothing undoes its settings."""

    def forgetful(function, *inputs):
        config.force_disable_caches = True
        os.environ["TORCH_COMPILE_DEBUG"] = "1"
        logging.getLogger("torch._inductor").addHandler(ear)  # which hangs there once
        return function(*inputs)

    ear = logging.NullHandler()
    given = (1,), torch.ones(2, 3), torch.ones(3, 3)
    emitting.dumped(careful, given)
    forgetful(torch.neg, torch.ones(1))
    assert emitting.dumped(forgetful, given)["left"] == [
        [emitting.LOG, emitting.SETTING, emitting.VARIABLE]
    ]
    assert not config.force_disable_caches
    assert "TORCH_COMPILE_DEBUG" not in os.environ
    assert ear not in logging.getLogger("torch._inductor").handlers


def test_removed_foreign_handlers_are_noted():
    def clearing(function, *inputs):
        logging.getLogger("torch._inductor").handlers.clear()
        return function(*inputs)

    given = (1,), torch.ones(2, 3), torch.ones(3, 3)
    assert emitting.dumped(clearing, given)["left"] == [[emitting.LOG]]


def test_a_replaced_handler_is_noted():
    mine, logger = logging.NullHandler(), logging.getLogger("torch._inductor")

    def exchanging(function, *inputs):
        logger.removeHandler(mine)
        logger.addHandler(logging.NullHandler())
        return function(*inputs)

    given = (1,), torch.ones(2, 3), torch.ones(3, 3)
    emitting.dumped(careful, given)
    with emitting._noted(left := []):
        logger.addHandler(mine)
        with emitting._noted(inner := []):
            exchanging(torch.neg, torch.ones(1))
        assert logger.handlers.count(mine) == 1
    assert (inner, left) == ([emitting.LOG], [emitting.LOG])
