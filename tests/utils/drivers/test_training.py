"""The drivers of lab 07: their results for right and wrong pieces, and what they leave alone."""

import pickle
from fractions import Fraction

import pytest
import torch
from torch.nn import functional as F

from hood.judge.catalogue import find_check
from utils.drivers import training as driver
from utils.minigpt import MiniGPTConfig


def right(name):
    return find_check(name)[1].right


def wrong(name, mistake):
    """The lab's own example of a mistake."""
    (found,) = (m.thing for m in find_check(name)[1].misconceptions if m.name == mistake)
    return found


# datasets

NAME = "TokenWindows"
WORDS = torch.arange(1, 13)


def settings(context=5, stride=3):
    return {"tokens": WORDS.clone(), "context": context, "stride": stride, "pad": 0}


def test_missing_windows_show():
    assert driver.windows(wrong(NAME, "only full windows"), settings())["length"] == 3


def test_an_item_that_cannot_be_read_is_not_hidden():
    class Broken(right(NAME)):
        def __getitem__(self, index):
            raise KeyError("no such window")

    with pytest.raises(KeyError, match="no such window"):
        driver.windows(Broken, settings())


def test_a_loader_reads_in_order_and_collates_with_the_learners_method():
    before = torch.get_rng_state()
    came = driver.loaded(right(NAME), settings(), 3)
    assert torch.equal(torch.get_rng_state(), before)
    assert [tuple(inputs.shape) for inputs, _ in came] == [(3, 5), (1, 2)]
    assert torch.cat([inputs[:, 0] for inputs, _ in came]).tolist() == [1, 4, 7, 10]

    class Noting(right(NAME)):
        def collate(self, items):
            return len(items)

    assert driver.loaded(Noting, settings(), 3) == [3, 1]


# accumulating

MATRICES = [
    torch.randn(3, 4, generator=torch.Generator().manual_seed(0)),
    torch.randn(4, 5, generator=torch.Generator().manual_seed(1)),
]
ROWS = torch.randn(6, 3, generator=torch.Generator().manual_seed(2))
CLASSES = torch.tensor([0, 4, -100, 2, 1, 3])
PARTS = [(ROWS[:1], CLASSES[:1]), (ROWS[1:4], CLASSES[1:4]), (ROWS[4:], CLASSES[4:])]


def accumulated(accumulate, old=None):
    return driver.accumulated(accumulate, [w.clone() for w in MATRICES], PARTS, old)


def test_graphs_that_live_on_are_counted():
    assert accumulated(wrong("accumulate", "graphs of earlier parts"))["alive"] == 2

    def kept(model, parts):
        for x, targets in parts:
            loss = F.cross_entropy(model(x), targets)
            loss.backward(retain_graph=True)
            losses.append(loss)

    losses = []
    assert accumulated(kept)["alive"] == 2

    def once_walked(model, parts):  # the loss stays alive, but its graph's saved tensors do not
        for x, targets in parts:
            losses.append(F.cross_entropy(model(x), targets))
            losses[-1].backward()

    assert accumulated(once_walked)["alive"] == 0

    def dropped(model, parts):  # without a backward, and without references
        for x, _ in parts:
            model(x)

    assert accumulated(dropped)["alive"] == 0


def test_calls_without_a_graph_are_rows_without_graphs():
    @torch.no_grad()
    def looking(model, parts):
        for x, _ in parts:
            model(x)

    came = accumulated(looking)
    assert (came["rows"], came["alive"]) == ([1, 3, 2], 0)
    assert came["gradients"] == [None, None]
    nothing = accumulated(lambda model, parts: 0.0)
    assert (nothing["loss"], nothing["rows"], nothing["alive"]) == (0.0, [], 0)


# stopping and resuming

DATA = {"x": ROWS, "y": ROWS[:, :1] * 2, "seed": 3, "batch_size": 4}


def stopped(functions, before=3, after=3, dropout=0.0, through="a copy"):
    return driver.stopped(functions, DATA | {"dropout": dropout}, before, after, through)


def same(came):
    whole, resumed = came["whole"], came["resumed"]
    weights = all(map(torch.equal, whole["weights"], resumed["weights"]))
    return whole["losses"] == resumed["losses"] and weights


@pytest.mark.parametrize("through", ["a copy", "a file", "memory"])
def test_a_right_checkpoint_resumes_bit_for_bit(through):
    came = stopped(right("checkpoint"), dropout=0.5, through=through)
    assert same(came)
    assert len(came["whole"]["losses"]) == 3
    trainer = driver.Trainer(**DATA, dropout=0.5)
    losses = [trainer.step() for _ in range(3)]
    torch.rand(5)
    losses += [trainer.step() for _ in range(3)]
    assert came["whole"]["losses"] == losses[3:]  # the run with a checkpoint in between is that one


def without(name):
    """A checkpoint without one part. This part stays as it is in the other trainer."""
    good = right("checkpoint")

    def resume(trainer, saved):
        own = good["checkpoint"](trainer)
        good["resume"](trainer, saved | {name: own[name]})

    return {**good, "resume": resume}


PARTS_OF_A_RUN = "model", "optimizer", "schedule", "generator", "order", "position", "dice"


@pytest.mark.parametrize("name", PARTS_OF_A_RUN)
def test_every_missing_part_of_a_checkpoint_shows(name):
    # after 3 steps there is an order to resume, and after 4 another position
    runs = [stopped(without(name), before=before, after=3, dropout=0.5) for before in (3, 4)]
    assert not all(map(same, runs))


def test_weights_are_compared_if_no_step_follows():
    nothing = {**right("checkpoint"), "resume": lambda trainer, saved: None}
    assert same(stopped(right("checkpoint"), after=0))
    assert not same(stopped(nothing, after=0))


def test_the_other_trainer_has_begun_elsewhere_and_has_made_a_step():
    seen = []

    def resume(trainer, order):
        states = len(trainer.optimizer.state)
        seen.append((trainer.order.tolist() != order, trainer.position, states))

    noting = {"checkpoint": lambda trainer: trainer.order.tolist(), "resume": resume}
    stopped(noting, before=1)
    assert seen == [(True, 4, 4)]  # of four weights, after a batch of four


def test_a_checkpoint_that_is_no_copy_shows_in_memory_alone():
    names = "model", "optimizer", "schedule"

    def checkpoint(trainer):
        kept = right("checkpoint")["checkpoint"](trainer)
        return kept | {name: getattr(trainer, name).state_dict() for name in names}

    def resume(trainer, saved):
        for name in names:
            getattr(trainer, name).load_state_dict(saved[name])
        trainer.generator.set_state(saved["generator"])
        trainer.order, trainer.position = saved["order"], saved["position"]
        torch.set_rng_state(saved["dice"])

    views = {"checkpoint": checkpoint, "resume": resume}
    assert same(stopped(views))
    assert same(stopped(views, through="a file"))
    assert not same(stopped(views, through="memory"))
    # the checkpoint is right when it is saved, but the first resume uses it up
    used = {**views, "checkpoint": right("checkpoint")["checkpoint"]}
    assert same(stopped(used))
    assert not same(stopped(used, through="memory"))


def test_a_file_takes_no_objects():
    objects = {
        "checkpoint": lambda trainer: {"share": Fraction(1, 2)},
        "resume": lambda trainer, saved: None,
    }
    assert not same(stopped(objects))
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        stopped(objects, through="a file")


def test_a_trainers_last_batch_is_smaller_and_the_next_epoch_has_another_order():
    trainer = driver.Trainer(**DATA)
    first = trainer.order
    trainer.step()
    assert trainer.position == 4
    trainer.step()
    assert trainer.position == 6
    assert trainer.order is first
    trainer.step()
    assert trainer.position == 4
    assert trainer.order is not first
    assert sorted(trainer.order.tolist()) == list(range(6))


# lines, perplexities, generators

CONFIG = MiniGPTConfig(vocab_size=5, d_model=4, n_heads=2, n_layers=1, d_ff=8, context=6)


def test_longer_lines_are_left_out_as_a_whole():
    inputs = torch.tensor([[1, 3, 4, 2, 0], [1, 3, 2, 0, 0], [1, 3, 2, 0, 0]])
    targets = torch.tensor([[3, 4, 2, -100, -100], [3, 2, -100, -100, -100], [3, 2, -100, 4, -100]])
    came = driver.sentences(inputs, targets, 3)
    assert [part.tolist() for part in came] == [[[1, 3, 2]], [[3, 2, -100]]]
    assert driver.sentences(inputs, targets, 5)[0].tolist() == inputs.tolist()


# a MiniGPT, its steps, and the band around its losses


def test_cuts_change_the_parts_of_a_step_and_not_its_lines():
    inputs = torch.arange(1, 31).reshape(6, 5)
    lengths = torch.tensor([5, 2, 3, 5, 4, 2])
    inputs[torch.arange(5) >= lengths[:, None]] = 0
    whole, parts = (
        driver.steps_of_lines(inputs, inputs + 1, 2, cuts, 7) for cuts in ((6,), (3, 2, 1))
    )
    for (line,), pieces in zip(whole, parts, strict=True):
        assert [len(x) for x, _ in pieces] == [3, 2, 1]
        words = torch.cat([x[x != 0] for x, _ in pieces])
        assert torch.equal(words, line[0][line[0] != 0])
        for x, targets in pieces:
            assert x[-1, -1] != 0  # as wide as its longest line
            assert torch.equal(targets, x.flatten() + 1)
    assert not torch.equal(whole[0][0][0], whole[1][0][0])


def test_a_minigpt_gives_rows_and_begins_with_the_seed():
    def fit(model, **settings):
        logits = model(torch.tensor([[1, 2, 3], [3, 2, 1]]))
        return logits.shape, model.lm_head.weight.sum().item(), settings

    one, again, other = (driver.minigpt_fitted(fit, CONFIG, {"lr": 1}, s) for s in (0, 0, 1))
    assert (one, one[0], one[2]) == (again, (6, 5), {"lr": 1})
    assert one[1] != other[1]


def test_a_band_widens_with_rates_and_clipped_norms():
    log = {"losses": [4.0, 4.0, 2.0], "norms": [1.0, 3.0, 0.5], "rates": [0.25, 0.5, 0.5]}
    at_once, later, last = driver.band(log, 2.0**-8, 2.0, 0.5)
    assert at_once == 2**-8 + 2**-16
    assert later == at_once + 3.0 * (0.5 * 3 * 2**-8 * 1.0)
    assert last == 2**-8 + 2**-17 + 0.5 * (0.5 * 3 * 2**-8 * 1.0 + 1.0 * 3 * 2**-8 * 2.0)


class Loader:
    """Deals a dataset in order, or shuffled with `generator`; `mistake` says what it does wrong."""

    mistake = ""

    def __init__(self, dataset, batch_size, shuffle, drop_last, generator, collate):
        self.dataset, self.size, self.collate = dataset, batch_size, collate or list
        self.generator = generator if shuffle else None

    def __len__(self):
        return -(-len(self.dataset) // self.size)

    def __iter__(self):
        order = range(len(self.dataset))
        if self.mistake == "seeded":
            torch.manual_seed(3)
        if self.generator is not None:
            own = None if self.mistake == "asked" else self.generator
            order = torch.randperm(len(order), generator=own).tolist()
        for begin in range(0, len(order), self.size):
            yield self.collate([self.dataset[k] for k in order[begin : begin + self.size]])


def dealt(dataset, turns, *, noted=False, mistake="", **more):
    """The batches of one loader, or of several with these `seeds`."""
    kind = type("Loader", (Loader,), {"mistake": mistake})
    usual = {"batch_size": 2, "drop_last": False, "collate": "list"}
    seeds = more.pop("seeds", [None])
    loaders = [{**usual, "shuffle": s is not None, "generator": s, **more} for s in seeds]
    return driver.dealt(kind, dataset, loaders, turns, noted)


@pytest.mark.parametrize("mistake", ["asked", "seeded"])
def test_use_of_torchs_generator_is_reported(mistake):
    assert dealt([1, 2, 3], [(0, 0)] * 3, seeds=[3])["left alone"] is True
    assert dealt([1, 2, 3], [(0, 0)] * 3, seeds=[3], mistake=mistake)["left alone"] is False


def test_iterators_take_turns_and_report_their_end():
    came = dealt(["a", "b", "c"], [(0, 0), (0, 1), (0, 0), (0, 0), (0, 1)])
    assert came["batches"] == [["a", "b"], ["a", "b"], ["c"], None, ["c"]]
    assert came["over"] == [False, False, False, True, False]
    assert came["lengths"] == [2]


def test_a_batch_that_is_none_is_not_the_end():
    came = dealt(["a"], [(0, 0), (0, 0)], collate="nothing")
    assert (came["batches"], came["over"]) == ([None, None], [False, True])


def test_loaders_of_one_seed_share_a_generator():
    orders = dealt(list(range(6)), [(0, 0), (1, 0)], seeds=[3, 3], batch_size=6)["batches"]
    own = torch.Generator().manual_seed(3)
    assert orders == [torch.randperm(6, generator=own).tolist() for _ in range(2)]


def test_a_recording_dataset_reports_the_items_read_before():
    came = dealt(["a", "b", "c"], [(0, 0), (0, 1), (0, 0)], noted=True, collate="when read")
    assert [batch["read"] for batch in came["batches"]] == [[0, 1], [2, 3], [4]]
    assert came["batches"][2]["items"] == ["c"]


def test_a_large_dataset_is_not_read_to_its_end():
    assert dealt(10**15, [(0, 0), (0, 0)])["batches"] == [[0, 1], [2, 3]]
    with pytest.raises(MemoryError, match="far more items than the batches need"):
        dealt(10**15, [(0, 0)], batch_size=10**6)


def test_collates_may_pad_sum_or_pass_on():
    ragged = [torch.tensor([1]), torch.tensor([2, 3])]
    assert dealt(ragged, [(0, 0)], collate="padded")["batches"][0].tolist() == [[1, -1], [2, 3]]
    assert dealt([1, 2], [(0, 0)], collate="total")["batches"] == [3]
    same = driver.COLLATES["the list itself"]
    assert (same([1]), same((1,))) == ([1], "tuple")
