"""What each rank holds of a model in training: all of it, or its share, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure
from torch import nn

from utils.notebook.style import GRADIENT, IDLE, INK, KERNEL, MUTED, PARAMETER, VIEW, WIDTH, Part
from utils.views import _interactive
from utils.views._canvas import MARGIN, Canvas, title_height
from utils.views._numbers import count, si

LEFT, RIGHT, ROW, BAR, TEXT = 132, 92, 54, 34, 14
WORLDS = tuple(2**k for k in range(11))
# Bytes of each parameter: of the weight that computes, of its gradient, of what AdamW remembers
# (with bfloat16 the weight in float32, too).
PRECISIONS = {"float32": (4, 4, 8), "bfloat16": (2, 2, 12)}
LOOKS: dict[str, Part] = {
    "weights": PARAMETER,
    "gradients": GRADIENT,
    "optimizer": KERNEL,
    "gathered": VIEW,
}
# What each kind cuts between the ranks.
KINDS: dict[str, tuple[str, ...]] = {
    "DDP": (),
    "ZeRO-1": ("optimizer",),
    "ZeRO-2": ("optimizer", "gradients"),
    "FSDP": ("optimizer", "gradients", "weights"),
}


@dataclass(frozen=True)
class Units:
    """The parameters of a model by the units that FSDP gathers one at a time."""

    parameters: tuple[tuple[str, int], ...]

    @property
    def all(self) -> int:
        return sum(number for _, number in self.parameters)

    @property
    def largest(self) -> tuple[str, int]:
        return max(self.parameters, key=lambda unit: unit[1])


def memory_a_rank(
    model: nn.Module | Mapping[str, int],
    *,
    ranks: int = 8,
    precision: str = "float32",
    limit: float | None = None,
) -> None:
    """Show what a rank holds under DDP, ZeRO-1, ZeRO-2 and FSDP; live, move ranks and precision.

    model: a module (its children are the units, and those of its lists), or unit -> parameters.
    ranks: 1, 2, 4 ... 1024. precision: "float32" or "bfloat16". limit: the bytes of a
    device, drawn as a line.
    Activations are not counted. Raises ValueError for other ranks or precisions, or no parameters.
    """
    units = read(model)
    draw(units, ranks, precision, limit)
    _interactive.present(
        lambda n, how: draw(units, n, how, limit),
        (ranks, precision),
        lambda widgets: [
            widgets.SelectionSlider(options=WORLDS, value=ranks, description="ranks"),
            widgets.SelectionSlider(options=list(PRECISIONS), value=precision, description="AdamW"),
        ],
    )


def read(model: nn.Module | Mapping[str, int]) -> Units:
    """The units of a model, each parameter counted once, at its first place."""
    if isinstance(model, nn.Module):
        seen: set[int] = set()
        found = {}
        for name, part in _parts(model):
            own = [p for p in part.parameters() if id(p) not in seen]
            seen.update(map(id, own))
            found[name] = sum(p.numel() for p in own)
        rest = sum(p.numel() for p in model.parameters() if id(p) not in seen)
        if rest:
            found["its own"] = rest
    else:
        found = {str(name): int(number) for name, number in model.items()}
    if any(number < 0 for number in found.values()) or not sum(found.values()):
        raise ValueError("memory_a_rank needs a model with parameters")
    return Units(tuple((name, number) for name, number in found.items() if number))


def _parts(model: nn.Module) -> list[tuple[str, nn.Module]]:
    parts: list[tuple[str, nn.Module]] = []
    for name, child in model.named_children():
        if isinstance(child, (nn.ModuleList, nn.ModuleDict, nn.Sequential)):
            parts += [(f"{name}.{key}", item) for key, item in child.named_children()]
        else:
            parts.append((name, child))
    return parts


def held(units: Units, kind: str, ranks: int, precision: str) -> dict[str, int]:
    """The bytes that a rank holds of each part, at the moment when it holds most.

    What is cut is padded, unit by unit. A gathered unit is there in full, with its full gradient
    before that is summed up and cut.
    """
    weight, gradient, state = PRECISIONS[precision]
    cut = sum(-(-number // ranks) for _, number in units.parameters)
    sizes = {"weights": weight, "gradients": gradient, "optimizer": state}
    found = {
        part: size * (cut if part in KINDS[kind] else units.all) for part, size in sizes.items()
    }
    gathered = (weight + gradient) * units.largest[1] if kind == "FSDP" and ranks > 1 else 0
    return found | {"gathered": gathered}


def draw(units: Units, ranks: int, precision: str, limit: float | None) -> tuple[Figure, str]:
    """The bars of all kinds, and their alternative text."""
    if ranks not in WORLDS or precision not in PRECISIONS:
        raise ValueError(
            f"memory_a_rank: ranks 1, 2, 4 ... 1024 and a precision of {tuple(PRECISIONS)}, "
            f"got {ranks} and {precision!r}"
        )
    top = title_height("one line") + 34
    bottom = top + ROW * len(KINDS)
    canvas = Canvas(bottom + 106)
    canvas.title(sentence(units, ranks, precision))
    most = max(sum(held(units, kind, 1, how).values()) for kind in KINDS for how in PRECISIONS)
    wide = WIDTH - 2 * MARGIN - LEFT - RIGHT
    scale = wide / max(most, limit or 0)
    for row, kind in enumerate(KINDS):
        y = top + ROW * row
        parts = held(units, kind, ranks, precision)
        canvas.text(MARGIN, y + BAR / 2 - 9, kind, size=TEXT)
        cut = KINDS[kind]
        words = "all whole" if not cut else "all cut" if len(cut) == 3 else f"{len(cut)} of 3 cut"
        canvas.text(MARGIN, y + BAR / 2 + 11, words, size=TEXT, colour=MUTED)
        canvas.boxes([(MARGIN + LEFT, y, wide, BAR)], [IDLE], edge="none")
        x = float(MARGIN + LEFT)
        for part, size in parts.items():
            canvas.boxes([(x, y, size * scale, BAR)], [LOOKS[part].colour], edge="none")
            x += size * scale
        told = _decimal(sum(parts.values()))
        canvas.text(WIDTH - MARGIN, y + BAR / 2, told, size=TEXT, ha="right")
    if limit:
        x = MARGIN + LEFT + limit * scale
        canvas.line([(x, top - 10), (x, bottom - 8)], colour=INK, line=1.8, dashed=True)
        words = f"a device: {_decimal(limit)}"
        canvas.text(x, top - 22, words, size=TEXT, colour=MUTED, ha="center")
    x = float(MARGIN)
    for part, look in LOOKS.items():
        canvas.boxes([(x, bottom + 14, 13, 13)], [look.colour], edge="none")
        canvas.text(x + 20, bottom + 21, part, size=TEXT, colour=MUTED)
        x += 148
    name, number = units.largest
    words = f"Gathered: the largest of {count(len(units.parameters), 'unit')}, {name}: "
    words += f"{number:,} weights, and as many gradients."
    canvas.text(MARGIN, bottom + 54, words, size=TEXT, colour=MUTED)
    canvas.text(MARGIN, bottom + 76, "Activations come on top.", size=TEXT, colour=MUTED)
    return canvas.finish(), describe(units, ranks, precision)


def sentence(units: Units, ranks: int, precision: str) -> str:
    """What cutting all of it saves, as the figure's title."""
    whole, cut = (sum(held(units, kind, ranks, precision).values()) for kind in ("DDP", "FSDP"))
    return (
        f"{units.all:,} parameters, {count(ranks, 'rank')}: DDP {_decimal(whole)} each, "
        f"FSDP {_decimal(cut)}."
    )


def _decimal(size: float) -> str:
    """Bytes in decimal units: those of a device's data sheet, and of its wires."""
    return si(size, "B")


def describe(units: Units, ranks: int, precision: str) -> str:
    """The alternative text: what a rank holds of each part under each kind."""
    parts = []
    for kind in KINDS:
        sizes = held(units, kind, ranks, precision)
        told = ", ".join(f"{part} {_decimal(size)}" for part, size in sizes.items() if size)
        parts.append(f"{kind}: {told}; together {_decimal(sum(sizes.values()))}.")
    return f"Memory of a rank, {precision}. {sentence(units, ranks, precision)} {' '.join(parts)}"
