"""Lab 07, exercise 10: A run that may be killed"""

import os
from collections import deque
from itertools import islice

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.words import counted

keep_training = Check(
    "keep_training",
    parts={
        "never killed": 1,
        "killed between steps": 1,
        "killed within a step": 1,
        "no step again": 1,
        "on the device": 1,
    },
    reads="One thing left out",
    reads_by_part={"on the device": "A batch goes to its device"},
    tolerance=Tolerance(1e-3, 1e-4, "another machine may round in another way, step after step"),
)


@keep_training.reference
def _(run, epochs, device, file):
    """Keeps the losses of each epoch apart, and reads the skipped batches all at once."""
    pieces = run.model, run.optimizer, run.schedule, run.scaler
    saved = torch.load(file) if file.exists() else None
    logs = saved["logs"] if saved else []
    if saved:
        for piece, state in zip(pieces, saved["states"], strict=True):
            piece.load_state_dict(state)
        run.loader.generator.set_state(saved["order"])
    for number in range(max(len(logs) - 1, 0), epochs):
        order = run.loader.generator.get_state()
        batches = iter(run.loader)
        if number < len(logs):
            deque(islice(batches, len(logs[number])), maxlen=0)
            torch.random.set_rng_state(saved["noise"])
        else:
            logs.append([])
        for x, targets in batches:
            logs[number].append(run.step(x.to(device), targets.to(device)))
            state = {
                "states": [piece.state_dict() for piece in pieces],
                "logs": logs,
                "order": order,
                "noise": torch.random.get_rng_state(),
            }
            new = file.with_name("new")
            torch.save(state, new)
            os.replace(new, file)
    return [one for log in logs for one in log]


WHEN = {
    "batch": "when the loader makes its batch {}",
    "step": "when its step {} begins",
    "update": "within a step, when the weights change for the {}. time",
    "file": "when half of its file {} is written",
    "place": "while its file {} is put in the place of the file before",
}
KEYS = ("losses", "loss"), ("rates", "rate"), ("scales", "scale")


def _in_words(calls):
    """The processes of a run in words."""
    said = []
    for epochs, kill in calls:
        end = f"killed {WHEN[kill[0]].format(kill[1])}" if kill else "not killed"
        said.append(f"{counted(epochs, 'epoch')}, {end}")
    if len(said) == 1:
        return said[0]
    return "; ".join(f"process {number}: {words}" for number, words in enumerate(said, 1))


def _columns(log):
    """The losses, rates and scales of a run."""
    return {name: [one[key] for one in log] for name, key in KEYS}


@keep_training.cases
def _(draw):
    never, between, within, again, moved = keep_training.parts

    def asked(part, calls, rows=None, batch_size=3):
        rows = rows or draw.integer(7, 8)
        data = {
            "x": draw.tensor((rows, 2)),
            "targets": draw.tensor((rows,), torch.int64).abs() % 3,
            "seed": draw.integer(0, 999),
            "batch_size": batch_size,
        }
        epochs = calls[-1][0]

        def play(subject):
            came = subject.drive("killing:killed", data, calls, part == moved)
            log = came["log"]
            if part == again:
                steps = len(log)
                return {"steps": steps, "done": came["done"]}
            if part == moved:
                return {
                    "x": all(x for x, _ in came["there"]),
                    "targets": all(targets for _, targets in came["there"]),
                    "once": came["moves"][0] <= 2 * came["done"][0],
                    "later": all(
                        m <= 2 * n for m, n in zip(came["moves"][1:], came["done"][1:], strict=True)
                    ),
                }
            values = {"steps": len(log), **_columns(log), "weights": came["weights"]}
            if part == never:
                return values
            whole = subject.drive("killing:killed", data, [(epochs, None)], False)
            same = {"same steps": len(whole["log"]) == len(log)}
            for name, column in _columns(whole["log"]).items():
                same[f"same {name}"] = column == values[name]
            same["same weights"] = all(map(torch.equal, whole["weights"], came["weights"]))
            return same | values

        return Case(
            part,
            play,
            shown=f"{rows} rows in batches of {batch_size}; {_in_words(calls)}",
            places=PLACES,
        )

    batches = 3  # in an epoch of 7 or 8 rows
    first, second = draw.integer(2, batches), batches + draw.integer(2, batches)
    third = 2 * batches + draw.integer(1, batches)
    yield asked(never, [(2, None)])
    yield asked(never, [(3, None)], rows=draw.integer(4, 5), batch_size=4)
    yield asked(never, [(2, None)], rows=draw.integer(2, 3), batch_size=4)

    yield asked(between, [(2, ("step", 1)), (2, None)])
    yield asked(between, [(2, ("step", first)), (2, None)])
    # The file was written after the last step of an epoch. If the last batch is whole, the loader
    # draws once more after it.
    yield asked(between, [(2, ("step", batches + 1)), (2, None)], rows=9)
    yield asked(between, [(2, ("batch", batches + 1)), (2, None)])
    yield asked(between, [(3, ("step", third)), (3, None)])
    # the later processes are killed, too: the second in its first step, the third in its second
    thrice = [(3, ("step", first)), (3, ("step", 1)), (3, ("step", 2)), (3, None)]
    yield asked(between, thrice)
    yield asked(between, [(2, None), (2, None)])
    yield asked(between, [(1, None), (3, None)])
    yield asked(between, [(1, ("step", 2)), (1, None), (2, None)])

    yield asked(within, [(2, ("update", draw.integer(1, 3))), (2, None)])
    yield asked(within, [(2, ("file", 1)), (2, None)])
    # files that are copied over the old one are whole at every other moment
    yield asked(within, [(2, ("place", first)), (2, None)])
    yield asked(within, [(2, ("file", batches + 1)), (2, ("file", 1)), (2, None)])
    yield asked(within, [(2, ("file", 2 * batches)), (2, None)])

    yield asked(again, [(2, ("batch", batches + 1)), (2, None)])
    yield asked(again, [(2, None), (2, None)])
    yield asked(again, [(1, None), (2, None)])
    yield asked(again, [(3, ("step", second)), (3, ("step", 2)), (3, None)])

    yield asked(moved, [(3, ("step", draw.integer(2, batches))), (3, ("step", batches)), (3, None)])


PLACES = {
    "['steps']": "the number of entries in the returned list",
    "['weights']": "the weights of `run.model` at the end",
    "['losses']": "the losses in the returned list",
    "['rates']": "the rates in the returned list",
    "['scales']": "the scales in the returned list",
    "['same steps']": "The returned list is shorter or longer than that of a run that was never killed.",
    "['same losses']": "A loss differs from that of a run that was never killed.",
    "['same rates']": "A rate differs from that of a run that was never killed.",
    "['same scales']": "A scale differs from that of a run that was never killed.",
    "['same weights']": "At the end, the weights differ from those of a run that was never killed.",
    "['done']": "how many steps each process began",
    "['x']": "In a step, x was not on the device.",
    "['targets']": "In a step, the targets were left behind: they were not on the device.",
    "['once']": "More tensors were moved to the device than the steps got: two for each step.",
    "['later']": (
        "A process that goes on moved more tensors to the device than its steps got: two for each step."
    ),
}
