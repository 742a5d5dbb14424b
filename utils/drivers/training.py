"""Drivers of lab 07: datasets, loaders, accumulation, and stopping and resuming a training run."""

from __future__ import annotations

import copy
import io
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from utils.drivers import WHOLE, driver
from utils.minigpt import MiniGPT, MiniGPTConfig
from utils.minigpt.dataset import IGNORED
from utils.minigpt.tokenizer import PAD

Settings = Mapping[str, Any]


@driver("length", "items")
def windows(dataset_class: Callable, settings: Settings) -> dict[str, Any]:
    """Return every item of a dataset, one after the other, and the dataset's ``length``."""
    dataset = dataset_class(**settings)
    length = len(dataset)
    return {"length": length, "items": [dataset[i] for i in range(length)]}


@driver(observed={WHOLE: "that writing into an item changes nothing else"})
def overwritten(dataset_class: Callable, settings: Settings) -> dict[str, Any]:
    """Write zeros into an item of a dataset, and return the state of the items and the stream.

    ``inputs`` has the item's inputs after only its targets were overwritten. ``targets`` has the
    item's targets after only its inputs were overwritten. ``again`` is the same item, read again.
    ``next`` is the next item. ``stream`` has all tokens.
    """
    other = dataset_class(**{**settings, "tokens": settings["tokens"].clone()})
    inputs, targets = other[0]
    inputs.zero_()
    kept_targets = targets.clone()
    dataset = dataset_class(**settings)
    inputs, targets = dataset[0]
    targets.zero_()
    kept_inputs = inputs.clone()
    inputs.zero_()
    return {
        "inputs": kept_inputs,
        "targets": kept_targets,
        "again": dataset[0],
        "next": dataset[1],
        "stream": settings["tokens"],
    }


def loaded(dataset_class: Callable, settings: Settings, batch_size: int) -> list[Any]:
    """Return a DataLoader's batches. The items stay in order, and the dataset collates them."""
    dataset = dataset_class(**settings)
    generator = torch.Generator()  # a loader draws a seed, even if it does not shuffle
    loader = DataLoader(dataset, batch_size, collate_fn=dataset.collate, generator=generator)
    return list(loader)


class Watched(nn.Module):
    """Two layers, (D, H) and (H, V), with a tanh and dropout between them.

    For each call it records the mode, whether gradients are enabled, and the dtype of the logits.
    """

    def __init__(self, weights: Sequence[Tensor], dropout: float = 0.0) -> None:
        super().__init__()
        self.first, self.second = (nn.Parameter(weight.clone()) for weight in weights)
        self.dropout = nn.Dropout(dropout)
        self.calls: list[tuple[bool, bool, torch.dtype]] = []

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits (N, V) of x (N, D)."""
        logits = self.dropout(self.activation(x @ self.first)) @ self.second
        self.calls.append((self.training, logits.requires_grad, logits.dtype))
        return logits

    def activation(self, hidden: Tensor) -> Tensor:
        """Return the tanh."""
        return hidden.tanh()


class _GraphsWatched(Watched):
    """For each call it also records the number of rows, and how many earlier graphs are alive.

    This class uses hooks that ``torch.func`` does not support.
    """

    def __init__(self, weights: Sequence[Tensor]) -> None:
        super().__init__(weights)
        self.rows: list[int] = []
        self.alive: list[int] = []
        self._graphs: list[weakref.ref[Any]] = []

    def activation(self, hidden: Tensor) -> Tensor:
        self.rows.append(len(hidden))
        self.alive.append(sum(graph() is not None for graph in self._graphs))
        token = _Token()
        # A graph frees its saved tensors after its backward, or when the graph itself is freed.
        with torch.autograd.graph.saved_tensors_hooks(token.pack, token.unpack):
            hidden = hidden.tanh()
        self._graphs.append(weakref.ref(token))
        return hidden


class _Token:
    """An object that only the saved tensors of a graph keep alive."""

    def pack(self, tensor: Tensor) -> tuple[_Token, Tensor]:
        return self, tensor.detach()  # the tensor itself would keep its own graph alive

    def unpack(self, packed: tuple[_Token, Tensor]) -> Tensor:
        return packed[1]


@driver(
    "loss",
    "gradients",
    observed={"rows": "how the model is called", "alive": "how many graphs are alive at once"},
)
def accumulated(
    accumulate: Callable,
    weights: Sequence[Tensor],
    parts: Sequence[tuple[Tensor, Tensor]],
    old: float | None = None,
) -> dict[str, Any]:
    """Return the gradients after the learner's ``accumulate(model, parts)``.

    The model has weights (D, H) and (H, V), and maps (N, D) to (N, V). ``parts`` are pairs of
    inputs (N, D) and targets (N,). Before the call, all gradients have the value ``old``. ``rows``
    has the number of rows in each call of the model. ``alive`` is the largest number of earlier
    graphs that were alive during a call of the model.
    """
    model = _GraphsWatched(weights)
    if old is not None:
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, old)
    loss = accumulate(model, list(parts))
    gradients = [parameter.grad for parameter in model.parameters()]
    alive = max(model.alive, default=0)
    return {"loss": loss, "gradients": gradients, "rows": model.rows, "alive": alive}


@driver(WHOLE)
def scaled_gradient(
    scaler_class: Callable, settings: Sequence[Any], weight: Tensor
) -> Tensor | None:
    """Return the gradient of the scaled sum of a weight's squares, or None without a graph."""
    leaf = weight.clone().requires_grad_()
    loss = scaler_class(*settings).scaled(leaf.square().sum())
    if loss.requires_grad:
        loss.backward()
    return leaf.grad


class Trainer:
    """A training run that can be stopped: a small model with dropout, and its whole state.

    Each step takes the next batch of a shuffled epoch and returns the loss before the update.

    model: is in training mode. Its dropout draws from torch's global generator.
    optimizer: AdamW for the model's parameters.
    schedule: lowers the learning rate after each step.
    generator: decides the order of the items in each epoch.
    order: (N,) int64, the order of the items in the current epoch.
    position: how many items of the current epoch are already used.
    """

    def __init__(
        self, x: Tensor, y: Tensor, *, seed: int, batch_size: int = 4, dropout: float = 0.0
    ) -> None:
        torch.manual_seed(seed)
        self.x, self.y, self.batch_size = x, y, batch_size
        self.model = nn.Sequential(
            nn.Linear(x.shape[1], 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 1)
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.05, weight_decay=0.1)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 0.9**step)
        self.generator = torch.Generator().manual_seed(seed)
        self.order = torch.randperm(len(x), generator=self.generator)
        self.position = 0

    def step(self) -> float:
        """Do one step, and return the loss of its batch."""
        if self.position == len(self.order):
            self.order = torch.randperm(len(self.x), generator=self.generator)
            self.position = 0
        rows = self.order[self.position : self.position + self.batch_size]
        self.position += len(rows)
        loss = (self.model(self.x[rows]) - self.y[rows]).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss.item()


@driver("whole", "resumed", observed={"first": "that a checkpoint in memory stays as it was"})
def stopped(
    functions: Mapping[str, Callable], settings: Settings, before: int, after: int, through: str
) -> dict[str, Any]:
    """Compare a run that continues after its checkpoint with runs that resume from the checkpoint.

    The first run does `before` steps. Then other code draws from torch's global generator, and the
    checkpoint is made. The first run continues with `after` steps. Another trainer, which has
    another seed and has done one step, resumes from the checkpoint and also does `after` steps.

    through: how the checkpoint is stored before the other trainer gets it. ``"a copy"`` is a deep
        copy. ``"a file"`` is read with ``weights_only=True``. In ``"memory"`` the checkpoint stays
        as it is while the first run continues, and two trainers resume from it.

    ``whole`` is the result of the first run. ``first`` and ``resumed`` are the results of the first
    and the last trainer that resumes. A result has the ``losses`` after the checkpoint, and the
    final ``weights``.
    """
    first = stopped_run(settings, before)
    kept = functions["checkpoint"](first)
    if through == "a copy":
        kept = copy.deepcopy(kept)
    elif through == "a file":
        file = io.BytesIO()
        torch.save(kept, file)
        file.seek(0)
        kept = torch.load(file, weights_only=True)
    whole = _go_on(first, after)
    uses = []
    for seed in (1, 2) if through == "memory" else (1,):
        other = Trainer(**{**settings, "seed": settings["seed"] + seed})
        other.step()
        functions["resume"](other, kept)
        uses.append(_go_on(other, after))
    return {"whole": whole, "first": uses[0], "resumed": uses[-1]}


@driver(WHOLE)
def saved(functions: Mapping[str, Callable], settings: Settings, before: int) -> Any:
    """Return a run's checkpoint after `before` steps by value. A file becomes its content."""
    return _opened(functions["checkpoint"](stopped_run(settings, before)))


def stopped_run(settings: Settings, before: int) -> Trainer:
    """Return a trainer after `before` steps and after other code has drawn random numbers."""
    first = Trainer(**settings)
    for _ in range(before):
        first.step()
    torch.rand(5)  # an evaluation, a shuffle
    return first


@driver("losses", "weights")
def resumed(
    functions: Mapping[str, Callable], settings: Settings, kept: Any, after: int
) -> dict[str, Any]:
    """Return the results of some steps after another trainer has resumed from a checkpoint.

    The other trainer has another seed, and has done one step. ``kept`` is the result of
    :func:`saved`. Returns the ``losses`` and the final ``weights``.
    """
    other = Trainer(**{**settings, "seed": settings["seed"] + 1})
    other.step()
    functions["resume"](other, _closed(kept))
    return _go_on(other, after)


FILE = "in a file"  # the only key of a dict that represents a torch file


def _opened(value: Any) -> Any:
    """Copy a checkpoint. A tensor with the bytes of a torch file becomes the file's content."""
    if isinstance(value, dict):
        return {key: _opened(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_opened, value))
    if isinstance(value, Tensor) and value.dtype == torch.uint8 and value.dim() == 1:
        content = value.numpy().tobytes()
        if content.startswith(b"PK"):
            return {FILE: _opened(torch.load(io.BytesIO(content), weights_only=True))}
    return copy.deepcopy(value)


def _closed(value: Any) -> Any:
    """Do the reverse of `_opened`: a file's content becomes a tensor with the file's bytes."""
    if isinstance(value, dict) and value.keys() == {FILE}:
        file = io.BytesIO()
        torch.save(_closed(value[FILE]), file)
        return torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)
    if isinstance(value, dict):
        return {key: _closed(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_closed, value))
    return copy.deepcopy(value)


def _go_on(trainer: Trainer, steps: int) -> dict[str, Any]:
    losses = [trainer.step() for _ in range(steps)]
    weights = [parameter.detach().clone() for parameter in trainer.model.parameters()]
    return {"losses": losses, "weights": weights}


def sentences(inputs: Tensor, targets: Tensor, columns: int) -> tuple[Tensor, Tensor]:
    """Return the lines that fit into `columns` columns, without the other columns."""
    fits = (targets[:, columns:] == IGNORED).all(1) & (inputs[:, columns:] == PAD).all(1)
    return inputs[fits, :columns], targets[fits, :columns]


class _Noted:
    """A dataset. Item k is a pair: `rows[k]`, and how many items were read earlier."""

    def __init__(self, rows: Any) -> None:
        self.rows, self.read = rows, 0

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, k: int) -> tuple[Any, int]:
        self.read += 1
        return self.rows[k], self.read - 1


class _ByKey(dict[int, Any]):
    """A dict that accepts only Python's ints as keys, and no tensors or NumPy integers."""

    def __getitem__(self, k: int) -> Any:
        if not isinstance(k, int):
            raise TypeError(f"expected an int as the index of an item, got {type(k).__name__}")
        return super().__getitem__(k)


class _Numbers:
    """The numbers below n, for an n of any size. Raises an error if very many items are read."""

    MOST = 100_000

    def __init__(self, n: int) -> None:
        self.n, self.read = n, 0

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, k: int) -> int:
        self.read += 1
        if self.read > self.MOST:
            raise MemoryError("the code read far more items than the batches need")
        return range(self.n)[k]


def _padded(items: list[Tensor]) -> Tensor:
    return nn.utils.rnn.pad_sequence(items, batch_first=True, padding_value=-1)


COLLATES: Mapping[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "padded": _padded,
    "total": sum,
    "the list itself": lambda items: items if type(items) is list else type(items).__name__,
    "nothing": lambda items: None,
    "when read": lambda items: {"items": [i for i, _ in items], "read": [n for _, n in items]},
}


@driver(
    "lengths",
    "over",
    "batches",
    observed={"left alone": "that torch's global generator was left alone"},
)
def dealt(
    loader_class: Callable,
    dataset: Any,
    loaders: Sequence[Settings],
    turns: Sequence[tuple[int, int]],
    noted: bool = False,
) -> dict[str, Any]:
    """Make several loaders of one dataset, and let their iterators return batches in turn.

    dataset: a list, a dict that accepts only ints as keys, or an int n for the numbers below n.
    loaders: the settings of each loader. ``generator`` is a seed or None. Loaders with the same
        seed share a generator. ``collate`` is a key of `COLLATES` or None.
    turns: the turns, in order. A turn is a pair: the index of a loader, and the number of one of
        this loader's iterators. An iterator is made at its first turn.
    noted: whether each item of the dataset becomes a pair: the item, and how many items were read
        earlier.

    ``lengths`` has the length of each loader. ``over`` has for each turn whether the iterator was
    at its end. ``batches`` has the batch of each turn, or None at the end. torch's global generator
    is seeded before each turn. ``left alone`` is True if no loader used or seeded this generator.
    """
    dataset = _Numbers(dataset) if isinstance(dataset, int) else dataset
    dataset = _ByKey(dataset) if isinstance(dataset, dict) else dataset
    dataset = _Noted(dataset) if noted else dataset
    generators: dict[Any, torch.Generator | None] = {None: None}
    made, iterators, over, batches, left_alone = [], {}, [], [], True
    before = torch.get_rng_state()
    for settings in loaders:
        seed, name = settings["generator"], settings["collate"]
        if seed not in generators:
            generators[seed] = torch.Generator().manual_seed(seed)
        given = {"generator": generators[seed], "collate": name and COLLATES[name]}
        made.append(loader_class(dataset=dataset, **{**settings, **given}))
    lengths = [len(loader) for loader in made]
    for number, (loader, iterator) in enumerate(turns):
        turn = loader, iterator
        left_alone &= torch.equal(before, torch.get_rng_state())
        torch.default_generator.manual_seed(number)  # torch.manual_seed looks for a GPU each time
        before = torch.get_rng_state()
        if turn not in iterators:
            iterators[turn] = iter(made[loader])
        batch = next(iterators[turn], generators)  # a seed that no loader has
        over.append(batch is generators)
        batches.append(None if batch is generators else batch)
    left_alone &= torch.equal(before, torch.get_rng_state())
    return {"lengths": lengths, "over": over, "batches": batches, "left alone": left_alone}


@driver(
    "returned",
    "weights",
    observed={"calls": "the mode and dtype of the model's calls, and whether they made a graph"},
)
def fitted(
    fit: Callable, weights: Sequence[Tensor], dropout: float, settings: Settings, seed: int
) -> dict[str, Any]:
    """Return the result of ``fit(model, **settings)``, and the model's final weights and calls.

    The model is in evaluation mode at first. Its dropout draws from torch's global generator, which
    starts with the seed. ``calls`` has for each call of the model: whether the model was in
    training mode, whether gradients were enabled, and the dtype of the logits.
    """
    model = Watched(weights, dropout).eval()
    torch.manual_seed(seed)
    returned = fit(model, **settings)
    left = [parameter.detach().clone() for parameter in model.parameters()]
    return {"returned": returned, "weights": left, "calls": model.calls}


class MiniGPTRows(MiniGPT):
    """A MiniGPT whose logits are rows: (B, T) tokens in, (B * T, V) out."""

    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens).flatten(0, 1)


@driver(WHOLE)
def minigpt_fitted(fit: Callable, config: MiniGPTConfig, settings: Settings, seed: int) -> Any:
    """Return the result of ``fit(model, **settings)`` for a new MiniGPT with weights from the seed.

    In a part ``(x, targets)``, x has the shape (B, T), and targets have the shape (B * T,).
    """
    torch.manual_seed(seed)
    return fit(MiniGPTRows(config), **settings)


def steps_of_lines(
    inputs: Tensor, targets: Tensor, steps: int, cuts: Sequence[int], seed: int
) -> list[list[tuple[Tensor, Tensor]]]:
    """Return steps for `fit` with random lines. In each step, short lines come first.

    `cuts` has the number of lines in each part of a step. A part is as wide as its longest line.
    The seed and the sum of `cuts` decide the lines.
    """
    generator = torch.Generator().manual_seed(seed)
    made = []
    for _ in range(steps):
        rows = torch.randint(len(inputs), (sum(cuts),), generator=generator)
        lengths = (inputs[rows] != PAD).sum(1)
        rows, lengths = rows[lengths.argsort(stable=True)], lengths.sort().values
        ends = torch.tensor(cuts).cumsum(0)
        widths = lengths[ends - 1].tolist()
        parts = zip(rows.split(list(cuts)), widths, strict=True)
        made.append([(inputs[r, :w], targets[r, :w].flatten()) for r, w in parts])
    return made


def band(log: Mapping[str, list], unit: float, max_norm: float, momentum: float) -> list[float]:
    """Return for each step how far a loss may be from the loss in a float32 run.

    ``log`` has the ``"losses"``, ``"norms"`` and ``"rates"`` of that run's steps; ``unit`` is the
    unit roundoff of the numbers that the other run multiplies; gradients are clipped at
    ``max_norm``.
    """
    widths, apart = [], 0.0  # and how far apart the two runs' weights may be
    for loss, norm, rate in zip(log["losses"], log["norms"], log["rates"], strict=True):
        widths.append(unit + 2**-18 * loss + norm * apart)
        apart += rate / (1 - momentum) * 3 * unit * min(norm, max_norm)
    return widths
