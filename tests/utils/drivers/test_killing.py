"""The driver that kills a run: its kills, its file, and its fake device."""

import pytest
import torch

from hood.judge.catalogue import find_check
from utils.drivers import killing

DATA = {
    "x": torch.linspace(-1, 1, 16).reshape(8, 2),
    "targets": torch.arange(8) % 3,
    "seed": 4,
}
STEPS = 3  # in an epoch


def right():
    return find_check("keep_training")[1].right


def killed(*calls, fake=False, train=None):
    return killing.killed(train or right(), DATA, list(calls), fake)


@pytest.mark.parametrize(
    ("kill", "done"),
    [
        (("step", 1), [1, 6]),
        (("step", 4), [4, 3]),
        (("batch", 4), [3, 3]),
        (("update", 1), None),
        (("file", 1), [1, 6]),
        (("file", 6), [6, 1]),
    ],
)
def test_a_right_answer_goes_on_from_any_kill(kill, done):
    whole, came = killed((2, None)), killed((2, kill), (2, None))
    assert came["log"] == whole["log"]
    assert all(map(torch.equal, came["weights"], whole["weights"]))
    assert done is None or came["done"] == done


def test_the_scale_and_the_rate_change_within_a_run():
    log = killed((3, None))["log"]
    assert len({one["scale"] for one in log}) > 1
    assert len({one["rate"] for one in log}) > 1


def test_only_the_file_is_left_and_a_later_process_has_another_seed():
    def forgets(run, epochs, device, file):
        assert not list(file.parent.iterdir())
        (file.parent / "other").write_text("lost")
        return [run.step(*batch) for _ in range(epochs) for batch in run.loader]

    assert killed((1, ("step", 1)), (1, None), train=forgets)["log"] == killed((1, None))["log"]
    assert killed((1, ("step", 3)), (1, None), train=forgets)["log"] != killed((1, None))["log"]


def test_a_dead_process_can_neither_go_on_nor_save():
    def stubborn(run, epochs, device, file):
        log = []
        for x, targets in run.loader:
            try:
                log.append(run.step(x, targets))
            except killing.Killed:
                torch.save(log, file)
        return log

    came = killed((1, ("step", 2)), (1, None), train=stubborn)
    assert came["done"] == [2, STEPS]


def test_half_a_file_is_written_and_cannot_be_read():
    def in_place(run, epochs, device, file):
        if file.exists():
            torch.load(file)
        for batch in run.loader:
            run.step(*batch)
            torch.save(run.model.state_dict(), file)

    with pytest.raises(RuntimeError):
        killed((1, ("file", 2)), (1, None), train=in_place)


def test_the_fake_device_counts_moves_of_any_form_and_keeps_the_data():
    def moves(run, epochs, device, file):
        x, targets = next(iter(run.loader))
        there = x.to(device)
        assert there.to(device) is there
        copied = torch.empty_like(targets, device=device).copy_(targets)
        return [run.step(there, copied), run.step(torch.as_tensor(x, device=device), targets)]

    came = killed((1, None), fake=True, train=moves)
    assert came["moves"] == [3]
    assert came["there"] == [(True, True), (True, False)]
    assert came["log"][0] == killed((1, None))["log"][0]


def test_a_copy_over_the_old_file_may_be_left_half():
    def copies(run, epochs, device, file):
        if file.exists():
            torch.load(file)
        for batch in run.loader:
            run.step(*batch)
            torch.save(obj=run.model.state_dict(), f=file.with_suffix(".new"))
            file.write_bytes(file.with_suffix(".new").read_bytes())

    killed((1, ("place", 1)), (1, None), train=copies)
    with pytest.raises(RuntimeError):
        killed((1, ("place", 2)), (1, None), train=copies)
    assert killed((2, ("place", 4)), (2, None))["done"] == [4, 2]


def test_an_imported_save_is_watched():
    place = {"torch": torch}
    exec(
        "from torch import save\n"
        "def in_place(run, epochs, device, file):\n"
        "    if file.exists():\n"
        "        torch.load(file)\n"
        "    for batch in run.loader:\n"
        "        run.step(*batch)\n"
        "        save(run.model.state_dict(), file)\n",
        place,
    )
    with pytest.raises(RuntimeError):
        killed((1, ("file", 2)), (1, None), train=place["in_place"])
    assert place["save"] is torch.save
