"""Lab 07, exercise 8: Stop and go on"""

import copy

import numpy as np
import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check
from utils.drivers.training import stopped_run

checkpoint = Check(
    "checkpoint",
    parts={
        "between epochs": 1,
        "within an epoch": 1,
        "with dropout": 1,
        "kept in memory": 1,
        "through a file": 1,
    },
    reads="Stop and go on",
    tolerance=Tolerance(1e-3, 1e-4, "another machine may round in another way, step after step"),
)


@checkpoint.reference
class _:
    def checkpoint(trainer):
        parts = {name: value for name, value in vars(trainer).items() if name not in ("x", "y")}
        for name in ("model", "optimizer", "schedule"):
            parts[name] = parts[name].state_dict()
        parts["generator"] = parts["generator"].get_state()
        parts["dice"] = torch.get_rng_state()
        return copy.deepcopy(parts)

    def resume(trainer, saved):
        saved = copy.deepcopy(saved)
        for name in ("model", "optimizer", "schedule"):
            getattr(trainer, name).load_state_dict(saved[name])
        trainer.generator.set_state(saved["generator"])
        trainer.order = saved["order"]
        trainer.position = saved["position"]
        torch.set_rng_state(saved["dice"])


class _Changes:
    """Finds numbers and states in a checkpoint by their values, and replaces them by others.

    It changes weights, the optimizer's memories, the order of the remaining rows, and the states of
    both generators. So a resumed trainer is right only if it reads all of them from the checkpoint.
    """

    def __init__(self, settings, before, seed):
        with torch.random.fork_rng(devices=[]):
            run = stopped_run(settings, before)
            dice = torch.get_rng_state()
        memories = [m for state in run.optimizer.state.values() for m in state.values() if m.dim()]
        self.numbers = torch.cat([t.detach().double().flatten() for t in [*run.model.parameters(), *memories]])
        new = [torch.Generator().manual_seed(seed + k).get_state() for k in (0, 1)]
        self.states = list(zip((run.generator.get_state(), dice), new, strict=True))
        self.left = run.order[run.position :].tolist()
        self.found = set()  # which of them the checkpoint has

    def of(self, value):
        """The same value with other numbers."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, np.ndarray):
            return self._tensor(torch.from_numpy(np.array(value))).numpy()
        if isinstance(value, dict):
            return {key: self.of(one) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            if len(value) and all(type(one) is int for one in value):
                return type(value)(self._rows(list(value)))
            return type(value)(map(self.of, value))
        return self._number(value) if type(value) is float else value

    def _tensor(self, tensor):
        for place, (state, new) in enumerate(self.states):
            if tensor.dtype == state.dtype and torch.equal(tensor, state):
                self.found.add(f"state {place}")
                return new
        if tensor.is_floating_point() and tensor.dim():
            numbers = [self._number(one) for one in tensor.flatten().tolist()]
            return torch.tensor(numbers, dtype=tensor.dtype).view(tensor.shape)
        if tensor.dtype == torch.int64 and tensor.dim() == 1:
            return torch.tensor(self._rows(tensor.tolist()), dtype=torch.int64)
        return tensor

    def _number(self, number):
        near = (self.numbers - number).abs() <= 1e-6 * self.numbers.abs()
        if number == 0 or not bool(near.any()):
            return number
        self.found.add(f"number {int(near.nonzero()[0])}")
        return 1.25 * number

    def _rows(self, rows):
        """Reverse the order of the remaining rows."""
        count = len(self.left)
        if count < 2 or rows[-count:] != self.left:
            return rows
        self.found.add("left")
        return rows[:-count] + self.left[::-1]

    def has_all(self):
        """Whether everything that must be changed was in the checkpoint."""
        wanted = {"state 0", "state 1", *({"left"} if len(self.left) > 1 else ())}
        wanted |= {f"number {k}" for k in self.numbers.nonzero().flatten().tolist()}
        return wanted <= self.found


def _is_plain(value):
    """Whether `torch.load` with `weights_only=True` can read a value."""
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (torch.Tensor, int, float, str))


@checkpoint.cases
def _(draw):
    between, within, dropout, memory, file = checkpoint.parts

    def asked(part, rows, before, after, share=0.0, through="a copy"):
        data = {"x": draw.tensor((rows, 3)), "y": draw.tensor((rows, 1))}
        settings = {**data, "seed": draw.integer(0, 999), "dropout": share, "batch_size": 3}

        def play(subject):
            came = subject.drive("training:stopped", settings, before, after, through)
            whole, resumed = came["whole"], came["resumed"]
            found = {
                "same beginning": whole["losses"][:1] == resumed["losses"][:1],
                "same losses": whole["losses"] == resumed["losses"],
                "same weights": all(map(torch.equal, whole["weights"], resumed["weights"])),
                "went on": whole["losses"],
                "resumed": resumed["losses"],
            }
            if through == "memory":
                return {"kept": whole["losses"] == came["first"]["losses"], **found}
            return found

        words = f"{rows} rows by 3, stopped after step {before}, then {after} more steps"
        places = {
            "['kept']": "While the first run goes on, its checkpoint in memory changes.",
            "['same beginning']": "After resuming, even the first loss differs from the first run's loss.",
            "['same losses']": "After resuming, the first loss is right, but a later loss differs from the first run's loss.",
            "['same weights']": "At the end, the weights differ from the first run's weights.",
            "['went on']": (
                "Taking the checkpoint changes the run: the next steps differ from those of a run "
                "without a checkpoint."
            ),
            "['resumed']": "the losses after resuming",
        }
        return Case(part, play, shown=words, places=places)

    def changed(part, rows, before, after, share=0.0):
        data = {"x": draw.tensor((rows, 3)), "y": draw.tensor((rows, 1))}
        settings = {**data, "seed": draw.integer(0, 999), "dropout": share, "batch_size": 3}
        changes = settings, before, draw.integer(1000, 10**6)

        def play(subject):
            kept = subject.drive("training:saved", settings, before)
            new = _Changes(*changes)
            other = new.of(kept)
            facts = {"whole": new.has_all(), "plain": part != file or _is_plain(kept)}
            return facts | subject.drive("training:resumed", settings, other, after)

        words = (
            f"{rows} rows by 3, stopped after step {before}, then {after} more steps, from a "
            "checkpoint with changed numbers"
        )
        places = {
            "['whole']": "Something is missing in the checkpoint: weights, the optimizer's memory, the order of the remaining rows, or the state of a generator.",
            "['plain']": "The checkpoint contains something that `torch.load` with `weights_only=True` refuses.",
            "['losses']": "the losses after resuming",
            "['weights']": "the weights at the end",
        }
        return Case(part, play, shown=words, places=places, example=False)

    yield changed(between, 9, 3, 5)
    yield changed(within, 10, 1, 6)
    yield changed(dropout, 9, 1, 5, 0.5)
    yield changed(memory, 9, 2, 5)
    yield changed(file, 9, 1, 5)
    yield asked(between, 9, 3, 4)
    yield asked(between, 10, 4 * draw.integer(1, 2), 6)
    yield asked(within, 9, 1, 5)
    yield asked(within, 6, 0, 3)
    yield asked(within, 10, 4 * draw.integer(1, 2) + draw.integer(1, 3), 7)
    yield asked(within, 10, 3, 6)
    yield asked(dropout, 9, 3, 4, 0.5)
    # only one step of an epoch is done: the many remaining rows are hardly ever in the right order
    # by chance
    yield asked(dropout, 10, 1, 6, 0.25)
    yield asked(memory, 9, 3, 5, 0.0, "memory")
    yield asked(memory, 10, 1, 6, 0.0, "memory")
    yield asked(file, 9, 3, 4, 0.0, "a file")
    yield asked(file, 10, 1, 5, 0.0, "a file")
