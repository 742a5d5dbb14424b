"""The memory that a model's training takes at each rank, with complete and divided parts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from torch import nn

from utils.notebook.style import GRADIENT, IDLE, INK, KERNEL, MUTED, PARAMETER, VIEW, Part
from utils.views._canvas import INNER, MARGIN, RIGHT, Canvas, Drawing
from utils.views._controls import choice
from utils.views._numbers import count, si
from utils.views._view import present

LEFT, ROW, BAR = MARGIN + 132, 54, 34
WIDE = INNER - 132 - 92
WORLDS = tuple(2**k for k in range(11))
# The bytes of each parameter: of the weight, the gradient, and AdamW's state. With bfloat16, the
# state includes the weight in float32.
PRECISIONS = {"float32": (4, 4, 8), "bfloat16": (2, 2, 12)}
LOOKS: dict[str, Part] = {
    "weights": PARAMETER,
    "gradients": GRADIENT,
    "optimizer": KERNEL,
    "gathered": VIEW,
}
# The parts that each kind of parallelism divides between the ranks.
KINDS: dict[str, tuple[str, ...]] = {
    "DDP": (),
    "ZeRO-1": ("optimizer",),
    "ZeRO-2": ("optimizer", "gradients"),
    "FSDP": ("optimizer", "gradients", "weights"),
}
_size = partial(si, unit="B")  # decimal, as in a device's data sheet
Units = Mapping[str, int]  # the parameters of each unit; FSDP gathers one unit at a time


def memory_a_rank(
    model: nn.Module | Mapping[str, int],
    *,
    ranks: int = 8,
    precision: str = "float32",
    limit: float | None = None,
) -> None:
    """Show the memory of a rank under DDP, ZeRO-1, ZeRO-2 and FSDP.

    In a live view, controls set the number of ranks and the precision.

    model: a module, or unit -> number of parameters. The units of a module are its children. If a
        child is a list or a Sequential of modules, each item of this child is a unit.
    ranks: 1, 2, 4 ... 1024.
    precision: "float32" or "bfloat16".
    limit: the bytes of a device, which are drawn as a line.

    Activations are not counted. Raises ValueError for other ranks or precisions, or no parameters.
    """
    units = read(model)
    present(
        lambda n, how: draw(units, n, how, limit),
        choice("ranks", ranks, WORLDS),
        choice("AdamW", precision, list(PRECISIONS)),
    )


def read(model: nn.Module | Mapping[str, int]) -> Units:
    """Return the units of a model. A parameter of several units is counted only in the first."""
    found: dict[str, int] = {}
    if isinstance(model, nn.Module):
        seen: set[int] = set()
        for name, part in (*_parts(model), ("its own", model)):
            own = [p for p in part.parameters() if id(p) not in seen]
            seen.update(map(id, own))
            found[name] = sum(p.numel() for p in own)
    else:
        found = {str(name): int(number) for name, number in model.items()}
    if any(number < 0 for number in found.values()) or not sum(found.values()):
        raise ValueError("memory_a_rank needs a model with parameters")
    return {name: number for name, number in found.items() if number}


def _parts(model: nn.Module) -> list[tuple[str, nn.Module]]:
    parts: list[tuple[str, nn.Module]] = []
    for name, child in model.named_children():
        if isinstance(child, (nn.ModuleList, nn.ModuleDict, nn.Sequential)):
            parts += [(f"{name}.{key}", item) for key, item in child.named_children()]
        else:
            parts.append((name, child))
    return parts


def held(units: Units, kind: str, ranks: int, precision: str) -> dict[str, int]:
    """Return the bytes of each part at a rank when the rank uses the most memory.

    Divided parts are padded, unit by unit. A gathered unit is complete. The gradient of this unit
    is also complete, until it is summed and divided.
    """
    weight, gradient, state = PRECISIONS[precision]
    whole, cut = sum(units.values()), sum(-(-number // ranks) for number in units.values())
    sizes = {"weights": weight, "gradients": gradient, "optimizer": state}
    found = {part: size * (cut if part in KINDS[kind] else whole) for part, size in sizes.items()}
    gathered = kind == "FSDP" and ranks > 1
    return found | {"gathered": gathered * (weight + gradient) * max(units.values())}


def draw(units: Units, ranks: int, precision: str, limit: float | None) -> Drawing:
    by_kind = {kind: held(units, kind, ranks, precision) for kind in KINDS}
    totals = {kind: sum(parts.values()) for kind, parts in by_kind.items()}
    canvas = Canvas(
        f"{sum(units.values()):,} parameters, {count(ranks, 'rank')}: "
        f"DDP {_size(totals['DDP'])} each, FSDP {_size(totals['FSDP'])}."
    )
    top = canvas.top + 34
    bottom = top + ROW * len(KINDS)
    most = max(sum(held(units, kind, 1, how).values()) for kind in KINDS for how in PRECISIONS)
    scale = WIDE / max(most, limit or 0)
    told = []
    for row, (kind, parts) in enumerate(by_kind.items()):
        y, cut = top + ROW * row, len(KINDS[kind])
        canvas.text(MARGIN, y + BAR / 2 - 9, kind)
        words = {0: "all whole", 3: "all cut"}.get(cut, f"{cut} of 3 cut")
        canvas.text(MARGIN, y + BAR / 2 + 11, words, MUTED)
        canvas.box((LEFT, y, WIDE, BAR), IDLE)
        x = float(LEFT)
        for part, size in parts.items():
            canvas.box((x, y, size * scale, BAR), LOOKS[part].colour)
            x += size * scale
        total = _size(totals[kind])
        canvas.text(RIGHT, y + BAR / 2, total, ha="right")
        each = ", ".join(f"{part} {_size(size)}" for part, size in parts.items() if size)
        told.append(f"{kind}: {each}; together {total}.")
    if limit:
        x = LEFT + limit * scale
        canvas.line([(x, top - 10), (x, bottom - 8)], INK, 1.8, dashed=True)
        canvas.text(x, top - 22, f"a device: {_size(limit)}", MUTED, "center")
    canvas.legend(MARGIN, bottom + 21, [(part, look.colour) for part, look in LOOKS.items()], 148)
    name = max(units, key=units.__getitem__)
    words = f"Gathered: the largest of {count(len(units), 'unit')}, {name}: "
    words += f"{units[name]:,} weights, and as many gradients."
    canvas.text(MARGIN, bottom + 54, words, MUTED)
    canvas.text(MARGIN, bottom + 76, "Activations come on top.", MUTED)
    return canvas.finish(
        bottom + 106, f"Memory of a rank, {precision}. {canvas.title} {' '.join(told)}"
    )
