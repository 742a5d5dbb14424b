"""Lab 07, exercise 8: Stop and go on"""

import copy

import torch

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check

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

        words = f"{rows} rows by 3, stopped after step {before}, {after} more"
        places = {
            "['kept']": "While the first run goes on, its checkpoint in memory changes.",
            "['same beginning']": "After resuming, already the first loss is not that of the run that went on.",
            "['same losses']": "After resuming, the first loss is right, and a later one is not that of the run that went on.",
            "['same weights']": "In the end, the weights are not those of the run that went on.",
            "['went on']": "Taking the checkpoint changes the run: it does not go on as it would without.",
            "['resumed']": "the losses after resuming",
        }
        return Case(part, play, shown=words, places=places)

    yield asked(between, 9, 3, 4)
    yield asked(between, 10, 4 * draw.integer(1, 2), 6)
    yield asked(within, 9, 1, 5)
    yield asked(within, 6, 0, 3)
    yield asked(within, 10, 4 * draw.integer(1, 2) + draw.integer(1, 3), 7)
    yield asked(within, 10, 3, 6)
    yield asked(dropout, 9, 3, 4, 0.5)
    # one step of an epoch is done: the other rows hardly ever come in the same order by chance
    yield asked(dropout, 10, 1, 6, 0.25)
    yield asked(memory, 9, 3, 5, 0.0, "memory")
    yield asked(memory, 10, 1, 6, 0.0, "memory")
    yield asked(file, 9, 3, 4, 0.0, "a file")
    yield asked(file, 10, 1, 5, 0.0, "a file")
