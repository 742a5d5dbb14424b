"""Empty memory is NaN inside the block; afterwards torch's settings are as they were."""

import subprocess
import sys

import pytest
import torch

from utils.instruments.empty_memory import empty_is_nan


@pytest.fixture(params=["default", "warn", "error"])
def mode(request):
    torch.use_deterministic_algorithms(
        request.param != "default", warn_only=request.param == "warn"
    )
    yield torch.get_deterministic_debug_mode()
    torch.use_deterministic_algorithms(False)


def test_empty_memory_is_nan_and_settings_come_back(mode):
    with empty_is_nan():
        assert torch.empty(3).isnan().all()
    assert torch.get_deterministic_debug_mode() == mode
    with pytest.raises(ZeroDivisionError), empty_is_nan():
        raise ZeroDivisionError
    assert torch.get_deterministic_debug_mode() == mode


def test_a_compilation_in_the_block_leaves_no_setting_of_inductor():
    import torch._inductor.config as inductor

    before = inductor.deterministic
    with empty_is_nan():
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert inductor.deterministic == before


def test_a_first_compilation_in_the_block_leaves_none_either():
    code = "import torch\nfrom utils.instruments.empty_memory import empty_is_nan\n"
    code += "with empty_is_nan(): torch.compile(lambda x: x + 1, backend='eager')(torch.ones(2))\n"
    code += "print(torch._inductor.config.deterministic)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_the_compiler_is_not_imported():
    code = "import sys, utils.instruments.empty_memory as m\nwith m.empty_is_nan(): pass\n"
    code += "print('torch._inductor' in sys.modules, 'torch._dynamo' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False False\n"
