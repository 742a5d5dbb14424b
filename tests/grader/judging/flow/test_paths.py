"""What dotted paths stand for, without running anything."""

import torch

from grader.judging.flow.paths import canonical, lookup


def test_a_path_is_looked_up_in_what_is_imported():
    assert lookup("torch.nn.functional.relu") is torch.nn.functional.relu
    assert lookup("torch.nn.Linear.forward") is torch.nn.Linear.forward
    assert lookup("torch.nowhere.at.all") is None
    assert lookup("not_imported.thing") is None


def test_a_module_has_one_path():
    assert canonical("torch.nn.modules.linear.F") == "torch.nn.functional"
    assert canonical("torch.sin") == "torch.sin"
