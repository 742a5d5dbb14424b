"""Plans describe a module in values; they are not changed."""

import pytest
import torch
from torch import nn

from hood.judge.catalogue import find_check
from utils.drivers.module_spec import assemble, drive

PLAN = {
    "embed": ["Embedding", 6, 4],
    "scale": ["parameter", torch.ones(4), torch.zeros(4)],
    "still": ["frozen", torch.ones(2)],
    "seen": ["buffer", torch.zeros(1), False],
    "notes": ["plain", torch.zeros(5)],
    "head": {"weight": ["same", "embed.weight"], "again": ["same", "seen"]},
}


def test_a_plan_becomes_a_module():
    model = assemble(PLAN)
    assert model.head.weight is model.embed.weight
    assert model.head.again is model.seen
    saved = ["embed.weight", "head.again", "head.weight", "scale", "still"]
    assert sorted(model.state_dict()) == saved
    assert [name for name, p in model.named_parameters() if not p.requires_grad] == ["still"]
    assert torch.equal(model.scale.grad, torch.zeros(4))
    assert "notes" not in dict(model.named_buffers())


def test_a_module_is_returned_as_it_is():
    layer = nn.Linear(2, 3)
    assert assemble(layer) is layer


def test_a_plan_is_not_changed():
    model = assemble(PLAN)
    with torch.no_grad():
        model.scale += 1
        model.seen += 1
    assert torch.equal(PLAN["scale"][1], torch.ones(4))
    assert torch.equal(PLAN["seen"][1], torch.zeros(1))


def test_a_view_keeps_its_storage():
    wide = torch.arange(10.0)
    model = assemble({"part": ["parameter", wide[::2]]})
    assert model.part.untyped_storage().nbytes() == wide.untyped_storage().nbytes()


def test_a_gradient_may_have_a_dtype_of_its_own():
    half = ["parameter", torch.ones(2, dtype=torch.bfloat16), torch.ones(2)]
    assert assemble({"w": half}).w.grad.dtype is torch.float32


def test_a_module_may_stand_in_two_places():
    model = assemble({"a": {"norm": ["LayerNorm", 3]}, "b": {"norm": ["same", "a.norm"]}})
    assert model.b.norm is model.a.norm


def test_a_state_is_overwritten_once_it_is_loaded():
    class Shares:
        def load_state_dict(self, state):
            self.w = state["w"]

        def state_dict(self):
            return {"w": self.w}

    state = {"w": torch.ones(2)}
    load, look = ("load", "", state, []), ("state_dict", "")
    assert torch.equal(drive(Shares, {}, load, look)[1]["w"], torch.zeros(2))
    assert torch.equal(state["w"], torch.ones(2))


def test_modes_are_those_of_one_branch():
    run_module = find_check("run_module")[1].right
    plan = {"a": {"c": {}}, "ab": {}}
    branch, whole = run_module(plan, ("modes", "a"), ("modes", ""))
    assert set(branch) == {"a", "a.c"}
    assert set(whole) == {"", "a", "a.c", "ab"}


def test_drive_refuses_to_test_torchs_module():
    with pytest.raises(TypeError, match="a Module of your own"):
        drive(nn.Module, {})
