"""Which dispatch key wins a call, where each key comes from, and what would change the winner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from utils.instruments import dispatch
from utils.notebook.style import CARD, IDLE, INK, KERNEL, MUTED, RULE
from utils.views._canvas import INNER, MARGIN, RIGHT, TEXT, TITLE, Canvas, Drawing
from utils.views._controls import choice, switch
from utils.views._numbers import listed
from utils.views._slots import Look, draw_chip, held, look, operators
from utils.views._text_outlines import cut, text_width
from utils.views._view import present

OPERATORS = (
    "aten::mm", "aten::mul.Tensor", "aten::add_.Tensor", "aten::relu", "aten::t", "aten::view",
    "aten::linear", "aten::matmul", "aten::softmax.int", "aten::_softmax", "aten::sum",
    "aten::clone",
)  # fmt: skip
YOURS, CPU, META, FAKE = "yours", "cpu", "meta", "cuda (fake)"
DEVICES = (YOURS, CPU, META, FAKE)
# This key saves the thread's key sets for a mode, and passes the call to the next key.
SNAPSHOT = "PythonTLSSnapshot"
ROW, CELL, NAME = 33, 46, 15
NAME_X, TENSOR_X, THREAD_X, SLOT_X, FILE_X = MARGIN + 22, 248, 286, 376, 546

UNASKED = Look("not in the call", CARD, MUTED)


@dataclass(frozen=True)
class Situation:
    """The values of the controls, in order: a tensor, and the contexts around a call on it."""

    op: str
    device: str = YOURS
    requires_grad: bool = False
    inference_tensor: bool = False
    conj: bool = False
    no_grad: bool = False
    inference_mode: bool = False
    autocast: bool = False
    mode: bool = False
    dtype: torch.dtype = torch.float32


LABELS = {
    "requires_grad": "requires_grad",
    "inference_tensor": "inference tensor",
    "conj": "lazy conj",
    "no_grad": "no_grad",
    "inference_mode": "inference_mode",
    "autocast": "autocast",
    "mode": "a dispatch mode",
}


@dataclass(frozen=True)
class KeyRow:
    """One key of a call, and its slot."""

    key: str
    tensor: bool  # whether the tensor brings it
    added: bool  # whether the thread adds it
    excluded: bool  # whether the thread removes it
    slot: dispatch.Entry | None

    @property
    def left(self) -> bool:
        """Whether the call starts with this key."""
        return (self.tensor or self.added) and not self.excluded


def key_explorer(op: Any, tensor: Tensor) -> None:
    """Show which key wins a call of `op` on `tensor`, and why.

    In a live view, controls change the kind of tensor and the contexts.

    op: an overload, or its name such as "aten::mm".
    tensor: any tensor. The view starts with the kind of this tensor, and with the contexts of the
        caller.

    Raises LookupError for an unknown operator, and TypeError if `tensor` is not a tensor.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"key_explorer needs a torch.Tensor, got {type(tensor).__name__}")
    start = situation(op, tensor)
    present(
        lambda *values: draw(tensor, replace(Situation(*values), dtype=start.dtype)),
        operators(start.op, list(dict.fromkeys((start.op, *OPERATORS)))),
        choice("tensor", start.device, DEVICES),
        *(switch(words, getattr(start, name)) for name, words in LABELS.items()),
    )


def situation(op: Any, tensor: Tensor) -> Situation:
    """Return the tensor unchanged, and the contexts that are open now."""
    inference = torch.is_inference_mode_enabled()
    return Situation(
        op=dispatch.op_name(op),
        requires_grad=tensor.requires_grad,
        inference_tensor=tensor.is_inference(),
        conj=tensor.is_conj(),
        no_grad=not torch.is_grad_enabled() and not inference,
        inference_mode=inference,
        autocast=torch.is_autocast_enabled(_autocast_device(tensor.device.type)),
        mode="Python" in dispatch.thread_keys().included,
        dtype=tensor.dtype,
    )


def made(tensor: Tensor, wanted: Situation) -> Tensor:
    """Return a tensor of the wanted kind: the given tensor if possible, otherwise a new tensor.

    Raises ValueError if a new tensor can't have this kind.
    """
    own = situation(wanted.op, tensor)
    kind = ("requires_grad", "inference_tensor", "conj", "dtype")
    if wanted.device == YOURS and all(getattr(own, k) == getattr(wanted, k) for k in kind):
        return tensor
    device = wanted.device
    if device == YOURS:
        if not _plain(tensor):
            raise ValueError("Only an ordinary tensor can be made anew: choose cpu, meta or cuda.")
        device = tensor.device.type
    dtype = wanted.dtype
    if wanted.conj and not dtype.is_complex:
        dtype = torch.complex64
    if wanted.requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"A tensor of {dtype} can't require a gradient.")
    return _make(device, dtype, wanted.requires_grad, wanted.inference_tensor, wanted.conj)


def _plain(tensor: Tensor) -> bool:
    return type(tensor) in (Tensor, torch.nn.Parameter) and tensor.layout == torch.strided


@lru_cache
def _make(device: str, dtype: torch.dtype, grad: bool, inference: bool, conj: bool) -> Tensor:
    fake: Any = nullcontext()
    if device == FAKE:
        # Imported here, only when needed, because the import takes a second of CPU.
        from torch._subclasses import FakeTensorMode

        fake, device = FakeTensorMode(), "cuda"
    # If PyTorch has no CUDA, an autograd node for a fake CUDA tensor aborts the process.
    with torch.inference_mode(inference), torch.no_grad(), fake:
        tensor = torch.empty(2, 2, dtype=dtype, device=device)
        return (tensor.conj() if conj else tensor).requires_grad_(grad)


class _Listens(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _autocast_device(device: str) -> str:
    return device if device in ("cuda", "mps", "xpu") else "cpu"


@contextmanager
def contexts(wanted: Situation, device: str) -> Iterator[None]:
    """Open the contexts of a situation for a tensor on `device`."""
    device = _autocast_device(device)
    before = torch.is_autocast_enabled(device)
    listens: Any = _Listens() if wanted.mode else nullcontext()
    with (
        torch.inference_mode(wanted.inference_mode),
        torch.set_grad_enabled(not wanted.no_grad),
        listens,
    ):
        # The switch of `torch.autocast`. The device may be one that this machine does not have.
        torch.set_autocast_enabled(device, wanted.autocast)
        try:
            yield
        finally:
            torch.set_autocast_enabled(device, before)


def places(tensor: Tensor, given: Tensor) -> list[str]:
    """Return the keys that have a row, highest first. Their number is always the same."""
    suffix = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}.get(tensor.device.type)
    suffix = suffix or tensor.device.type.upper()
    backend = dispatch.keys_of(tensor)[-1]
    autocast = "CPU" if suffix == "Meta" else suffix
    keys = [SNAPSHOT, f"Autocast{autocast}", f"Autograd{suffix}", "ADInplaceOrView"]
    keys += ["Conjugate", "Python", "BackendSelect", backend]
    # If a new tensor replaces the learner's tensor, the keys that only the learner's tensor has
    # keep their rows.
    above: str | None = None
    for key in dispatch.keys_of(given)[:-1]:
        if key not in keys and not key.startswith(("Autocast", "Autograd")):
            keys.insert(keys.index(above) + 1 if above and above in keys else 0, key)
        above = key
    return keys


@dataclass(frozen=True)
class KeyOutcome:
    """The slots whose code runs. `then` is the second slot if the first only saves key sets."""

    first: dispatch.Entry | None
    then: dispatch.Entry | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(entry.key for entry in (self.first, self.then) if entry is not None)

    def __str__(self) -> str:
        if self.first is None:
            return "nobody: an error"
        return f"snapshot, then {self.then.key}" if self.then else self.first.key


def read(tensor: Tensor, now: Situation) -> tuple[list[KeyRow], KeyOutcome]:
    """Open a situation's contexts, and return its rows and the slots whose code runs."""
    here = made(tensor, now)
    with contexts(now, here.device.type):
        own, thread = dispatch.keys_of(here), dispatch.thread_keys()
        rows = [
            KeyRow(
                key,
                key in own,
                key in thread.included,
                key in thread.excluded,
                dispatch.table(now.op).get(key),
            )
            for key in places(here, tensor)
        ]
    return rows, outcome(here, now)


def outcome(tensor: Tensor, now: Situation) -> KeyOutcome:
    """Return the slots whose code a call on `tensor` reaches in a situation's contexts."""
    with contexts(now, tensor.device.type):
        try:
            found = dispatch.decide(now.op, tensor)
        except LookupError:
            return KeyOutcome(None)
    if found.winner.key != SNAPSHOT:
        return KeyOutcome(found.winner)
    below = found.considered[found.considered.index(found.winner) + 1 :]
    return KeyOutcome(found.winner, next((slot for slot in below if not slot.fallthrough), None))


def switches(tensor: Tensor, now: Situation) -> list[tuple[str, KeyOutcome]]:
    """Return for each switch the slots whose code runs if only this switch is moved."""
    half = torch.float16 if now.dtype != torch.float16 else torch.float32
    flips: dict[str, dict[str, Any]] = {
        f"{'−' if getattr(now, name) else '+'} {words}": {name: not getattr(now, name)}
        for name, words in LABELS.items()
    }
    flips[f"dtype {str(half).removeprefix('torch.')}"] = {"dtype": half}
    other = META if made(tensor, now).device.type != "meta" else CPU
    flips[f"on {other}"] = {"device": other}
    found = []
    for words, change in flips.items():
        then = replace(now, **change)
        if then.requires_grad and not (then.dtype.is_floating_point or then.dtype.is_complex):
            then = replace(then, dtype=torch.float32)
        if then.device == YOURS and not _plain(tensor):
            then = replace(then, device=CPU)
        found.append((words, outcome(made(tensor, then), then)))
    return found


def draw(tensor: Tensor, now: Situation) -> Drawing:
    rows, runs = read(tensor, now)
    others = switches(tensor, now)
    canvas = Canvas(sentence(runs))
    top = canvas.top + 34
    heads = ((NAME_X, "keys, highest first"), (THREAD_X, "thread"), (SLOT_X, f"slot of {now.op}"))
    for x, head in heads:
        canvas.text(x, top - 22, cut(head, 300), MUTED)
    canvas.text(TENSOR_X, top - 22, "tensor", MUTED, "center")
    _draw_rows(canvas, top, rows, runs)
    below = top + ROW * len(rows) + 24
    canvas.text(MARGIN, below, "Who runs first if you move only one switch:", MUTED)
    _draw_switches(canvas, below + 16, others, runs)
    on = [label for name, label in LABELS.items() if getattr(now, name)]
    parts = [
        f"Key explorer for {now.op}. {canvas.title}",
        f"Switched on: {listed(on)}." if on else "Nothing is switched on.",
    ]
    for row in rows:
        facts = (
            ("brought by the tensor", row.tensor),
            ("added by the thread", row.added),
            ("taken away by the thread", row.excluded),
        )
        story = listed([words for words, is_so in facts if is_so]) or "not in the call"
        file = f" from {file_name(row.slot)}" if row.slot is not None else ""
        parts.append(f"{row.key}: {story}; {held(row.slot)}{file}.")
    moves = [f"{words} ({then})" for words, then in others if then != runs]
    same = [words for words, then in others if then == runs]
    parts.append(
        f"If you move only one switch, these change who runs first: {listed(moves) or 'none'}; "
        f"these do not: {listed(same) or 'none'}."
    )
    return canvas.finish(below + 3 * CELL + 26, " ".join(parts))


def _draw_rows(canvas: Canvas, top: float, rows: list[KeyRow], runs: KeyOutcome) -> None:
    at = {row.key: top + ROW * (k + 0.5) for k, row in enumerate(rows)}
    for y in at.values():
        canvas.line([(MARGIN, y + ROW / 2), (RIGHT, y + ROW / 2)], RULE, 0.6)
    if runs.first is not None and runs.first.key in at:
        box = (MARGIN, at[runs.first.key] - ROW / 2 + 1, INNER, ROW - 2)
        canvas.box(box, IDLE, edge=INK, line=1.6, radius=6)
    for mark, entry in (("▶", runs.first), ("▷", runs.then)):
        if entry is not None and entry.key in at:
            canvas.text(MARGIN + 6, at[entry.key], mark)
    for row in rows:
        y, ink = at[row.key], INK if row.left else MUTED
        if row.tensor:
            canvas.box((TENSOR_X - 4.5, y - 4.5, 9, 9), ink, radius=4.5)
        if row.excluded and (row.tensor or row.added):
            end = NAME_X + 2 + text_width(row.key, size=NAME, mono=True)
            canvas.line([(NAME_X - 2, y), (end, y)], INK, 1.4)
        canvas.text(NAME_X, y, row.key, ink, size=NAME, mono=True)
        thread = "takes away" if row.excluded else "adds" if row.added else ""
        canvas.text(THREAD_X, y, thread, INK if row.tensor or row.added else MUTED)
        kind = look(row.slot) if row.left else UNASKED
        draw_chip(canvas, SLOT_X, y, held(row.slot), kind, size=TEXT)
        if row.slot is not None:
            name = cut(file_name(row.slot), RIGHT - FILE_X - 4)
            canvas.text(FILE_X, y, name, INK if row.key in runs.keys else MUTED)


def _draw_switches(
    canvas: Canvas, top: float, others: list[tuple[str, KeyOutcome]], runs: KeyOutcome
) -> None:
    wide = INNER / 3
    for k, (words, then) in enumerate(others):
        x, y, moved = MARGIN + wide * (k % 3), top + CELL * (k // 3), then != runs
        fill, edge, ink = (KERNEL.tint, KERNEL.colour, INK) if moved else (IDLE, "none", MUTED)
        canvas.box((x, y, wide - 8, CELL - 6), fill, edge=edge, radius=5)
        canvas.text(x + 8, y + 12, words, ink)
        canvas.text(x + wide - 16, y + 28, str(then) if moved else "the same", ink, "right")


def file_name(entry: dispatch.Entry) -> str:
    return entry.file.rpartition("/")[2]


def sentence(runs: KeyOutcome) -> str:
    if runs.first is None:
        return "No remaining key has a slot with code: the call fails."
    words, last = f"{runs.first.key} runs first", runs.first
    if runs.then is not None:
        words, last = f"{words}, then {runs.then.key}", runs.then
    room = INNER - text_width(f"{words}: .", size=TITLE)
    return f"{words}: {cut(file_name(last), room, size=TITLE)}."
