"""Lab 07, exercise 8: Stop and go on"""

import copy

import torch

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution

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
            return {
                "same beginning": whole["losses"][:1] == resumed["losses"][:1],
                "same losses": whole["losses"] == resumed["losses"],
                "same weights": all(map(torch.equal, whole["weights"], resumed["weights"])),
                "went on": whole["losses"],
                "resumed": resumed["losses"],
            }

        words = f"{rows} rows by 3, stopped after step {before}, {after} more"
        places = {
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


_checkpoint = lab_solution(__name__, "checkpoint")
resume = lab_solution(__name__, "checkpoint", "resume")


_checkpoint.__name__ = "checkpoint"


def _resumed(name, explanation, earns, *edits):
    wrong = {"resume": edited(resume, *edits)}
    checkpoint.misconception(name, explanation, earns=earns)(wrong)


def _saved(name, explanation, earns, *edits):
    wrong = {"checkpoint": edited(_checkpoint, *edits)}
    checkpoint.misconception(name, explanation, earns=earns)(wrong)


_resumed(
    "the weights alone",
    "neither the optimizer's memories nor the schedule are those of the checkpoint.",
    0,
    ("    trainer.optimizer.load_state_dict(saved['optimizer'])\n", ""),
    ("    trainer.schedule.load_state_dict(saved['schedule'])\n", ""),
)
_resumed(
    "the optimizer forgotten",
    "the optimizer goes on with memories that are not those of the checkpoint.",
    0,
    ("    trainer.optimizer.load_state_dict(saved['optimizer'])\n", ""),
)
_resumed(
    "the schedule forgotten",
    "from the second step on the learning rate is that of another step.",
    0,
    ("    trainer.schedule.load_state_dict(saved['schedule'])\n", ""),
)
_resumed(
    "the model forgotten",
    "the weights are not those of the checkpoint.",
    0,
    ("    trainer.model.load_state_dict(saved['model'])\n", ""),
)
_resumed(
    "a new shuffle",
    "the epoch that was under way is gone: another order of the rows goes on where it stopped.",
    1,
    ("trainer.order, trainer.position = (saved['order'], saved['position'])", "trainer.position = saved['position']"),
)
_resumed(
    "the position forgotten",
    "the epoch that was under way goes on at the place at which the other trainer was.",
    0,
    ("trainer.order, trainer.position = (saved['order'], saved['position'])", "trainer.order = saved['order']"),
)
_resumed(
    "the epoch from its start",
    "the epoch that was under way begins anew, with rows that it has already seen.",
    0,
    ("trainer.order, trainer.position = (saved['order'], saved['position'])", "trainer.order, trainer.position = (saved['order'], 0)"),
)
_resumed(
    "other shuffles later",
    "the epoch under way is finished, and those after it have other orders.",
    0,
    ("    trainer.generator.set_state(saved['generator'])\n", ""),
)
_resumed(
    "the dice of dropout forgotten",
    "all is as it was, but dropout drops others: torch's global generator goes on from elsewhere.",
    4,
    ("    torch.set_rng_state(saved['dice'])", "    pass"),
)
_saved(
    "nothing copied",
    "the checkpoint holds the tensors that the next steps write into.",
    4,
    ("copy.deepcopy(", "dict("),
)
_resumed(
    "used up",
    "who resumes goes on training in the checkpoint's own tensors, and it can't be used again.",
    4,
    ("saved = copy.deepcopy(saved)", "pass"),
)
_saved(
    "refused by the file",
    "what is saved holds something that a file read with `weights_only` refuses.",
    4,
    ("trainer.order,", "trainer.order.numpy(),"),
)


@checkpoint.alternate("by name")
class _:
    def checkpoint(trainer):
        saved = {"dice": torch.get_rng_state()}
        for name, part in vars(trainer).items():
            if hasattr(part, "state_dict"):
                saved[name] = copy.deepcopy(part.state_dict())
            elif isinstance(part, torch.Generator):
                saved[name] = part.get_state()
            elif isinstance(part, int) or name == "order":
                saved[name] = part
        return saved

    def resume(trainer, saved):
        for name, state in saved.items():
            part = getattr(trainer, name, None)
            if hasattr(part, "load_state_dict"):
                part.load_state_dict(copy.deepcopy(state))
            elif isinstance(part, torch.Generator):
                part.set_state(state)
            elif hasattr(trainer, name):
                setattr(trainer, name, state)
            else:
                torch.set_rng_state(state)


@checkpoint.alternate("piece by piece, copied where it goes in")
class _:
    def checkpoint(trainer):
        saved = {"position": trainer.position, "order": trainer.order}
        for name, tensor in trainer.model.state_dict().items():
            saved["model " + name] = tensor.clone()
        saved["optimizer"] = copy.deepcopy(trainer.optimizer.state_dict())
        saved["schedule"] = {**trainer.schedule.state_dict()}
        saved["global"] = torch.random.get_rng_state()
        saved["own"] = trainer.generator.get_state()
        return saved

    def resume(trainer, saved):
        with torch.no_grad():
            for name, parameter in trainer.model.named_parameters():
                parameter.copy_(saved["model " + name])
        trainer.optimizer.load_state_dict(copy.deepcopy(saved["optimizer"]))
        trainer.schedule.load_state_dict(saved["schedule"])
        trainer.order = saved["order"]
        trainer.position = saved["position"]
        trainer.generator.set_state(saved["own"])
        torch.random.set_rng_state(saved["global"])


checkpoint.equivalent(
    ("name == 'order'", "name >= 'order'"),
    ("name == 'order'", "name <= 'order'"),
    ("isinstance(part, int) or name == 'order'", "True"),
    because="more than is needed is saved, too",
)
checkpoint.equivalent(
    ("'dice'", "'dice_'"), of="by name", because="any name that no attribute has will do"
)
