"""Lab 07, exercise 8: Stop and go on"""

import copy

import torch

from utils.checks import Case, Check, edited
from utils.compare import Tolerance

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
    tolerance=Tolerance(1e-3, 1e-4, "another machine may round otherwise, step after step"),
)


@checkpoint.reference
class _:
    def checkpoint(trainer):
        parts = {name: value for name, value in vars(trainer).items() if name not in ("x", "y")}
        for name in ("model", "optimizer", "schedule"):
            parts[name] = parts[name].state_dict()
        parts["generator"] = parts["generator"].get_state()
        parts["global"] = torch.get_rng_state()
        return copy.deepcopy(parts)

    def resume(trainer, saved):
        saved = copy.deepcopy(saved)
        for name in ("model", "optimizer", "schedule"):
            getattr(trainer, name).load_state_dict(saved[name])
        trainer.generator.set_state(saved["generator"])
        trainer.order = saved["order"]
        trainer.position = saved["position"]
        torch.set_rng_state(saved["global"])


@checkpoint.cases
def _(draw):
    between, within, dropout, memory, file = checkpoint.parts

    def asked(part, rows, before, after, share=0.0, through="a copy"):
        data = {"x": draw.tensor((rows, 3)), "y": draw.tensor((rows, 1))}
        settings = {**data, "seed": draw.integer(0, 999), "dropout": share, "batch_size": 3}

        def play(subject):
            came = subject.drive("training:stopped", settings, before, after, through)
            whole, resumed = came["whole"], came["resumed"]
            wrong = [
                k for k, (a, b) in enumerate(zip(whole["losses"], resumed["losses"], strict=True))
                if a != b
            ]
            equal = all(map(torch.equal, whole["weights"], resumed["weights"]))
            return [wrong[:1], equal, whole["losses"]]

        words = f"{rows} rows by 3, stopped after {before} steps, {after} more"
        places = {
            "[0]": "The losses after resuming are others than those of the run that went on.",
            "[1]": "The weights in the end are others than those of the run that went on.",
            "[2]": "the losses of the run that went on",
        }
        return Case(part, play, shown=words, places=places)

    yield asked(between, 9, 3, 4)
    yield asked(between, 10, 4 * draw.integer(1, 2), 6)
    yield asked(between, 6, 0, 3)
    yield asked(within, 9, 1, 5)
    yield asked(within, 10, 4 * draw.integer(1, 2) + draw.integer(1, 3), 7)
    yield asked(within, 10, 3, 6)
    yield asked(dropout, 9, 3, 4, 0.5)
    yield asked(dropout, 10, draw.integer(1, 3), 6, 0.25)
    yield asked(memory, 9, 3, 5, 0.0, "memory")
    yield asked(memory, 10, draw.integer(1, 3), 6, 0.0, "memory")
    yield asked(file, 9, 3, 4, 0.0, "a file")
    yield asked(file, 10, draw.integer(1, 3), 5, 0.0, "a file")
