"""A module as a tree: the tensors of each part, their numbers and bytes, and shared parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor, nn

from utils.notebook.style import CARD, GRADIENT, INK, MUTED, PARAMETER, RULE, STORAGE
from utils.views._canvas import MARGIN, RIGHT, SMALL, Canvas, Drawing
from utils.views._numbers import count, human_bytes
from utils.views._text_outlines import cut, text_width
from utils.views._view import present

MOST = 24  # modules in one picture
ROW, INDENT = 24, 14
KIND_X, TENSORS_X, COUNT_X, BYTES_X = MARGIN + 158, MARGIN + 296, MARGIN + 636, MARGIN + 708
BAR_X = BYTES_X + 12
DOT = 12  # a mark and the gap behind it
LOOKS = {  # colour and mark
    "parameter": (PARAMETER.colour, PARAMETER.marker),
    "buffer": (STORAGE.colour, STORAGE.marker),
    "shared": (PARAMETER.colour, "$=$"),
    "plain": (GRADIENT.colour, "x"),
}


@dataclass(frozen=True)
class Held:
    """A tensor directly in a module."""

    name: str
    # "parameter", "buffer", "shared" (a parameter that already came at the path `first`), or
    # "plain" (not registered in any module)
    kind: str
    tensor: Tensor
    first: str = ""

    def __str__(self) -> str:
        shape = str(tuple(self.tensor.shape)).replace(",)", ")")
        extra = {"shared": f" is {self.first}", "plain": " not registered"}.get(self.kind, "")
        return f"{self.name} {shape}{extra}"


@dataclass(frozen=True)
class ModuleRow:
    """One module: its path, its class, its direct tensors, and all its parameters and bytes."""

    path: str
    kind: str
    held: tuple[Held, ...]
    numel: int
    nbytes: int

    @property
    def depth(self) -> int:
        return self.path.count(".") + 1 if self.path else 0


def module_tree(module: nn.Module) -> None:
    """Show the tree of `module`: a line for each part, with its tensors, parameters and bytes.

    A parameter that is registered twice is counted once, and the second place has the path of the
    first place. Tensors and modules that are only in a list or a plain attribute are marked,
    because they are not saved, moved or trained. Raises TypeError unless `module` is a module.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"module_tree needs an nn.Module, got {type(module).__name__}")
    present(lambda: draw(read(module)))


def read(module: nn.Module) -> list[ModuleRow]:
    seen: dict[int, str] = {}
    registered = {id(tensor) for tensor in (*module.parameters(), *module.buffers())}
    own = {
        path: (part, tuple(_held(part, path, seen, registered)))
        for path, part in module.named_modules(remove_duplicate=False)
    }
    rows = []
    for path, (part, held) in own.items():
        below = [
            one
            for other, (_, tensors) in own.items()
            if not path or other == path or other.startswith(f"{path}.")
            for one in tensors
        ]
        numel = sum(one.tensor.numel() for one in below if one.kind == "parameter")
        nbytes = sum(
            one.tensor.numel() * one.tensor.element_size()
            for one in below
            if one.kind in ("parameter", "buffer")
        )
        rows.append(ModuleRow(path, type(part).__name__, held, numel, nbytes))
    return rows


def _held(part: nn.Module, path: str, seen: dict[int, str], registered: set[int]) -> Iterator[Held]:
    """Yield the direct tensors of a module.

    seen: the id of each registered tensor that was already found -> its first path.
    registered: the ids of all registered tensors. A list of registered tensors, as in an LSTM, is
        skipped.
    """
    for kind, own in (("parameter", part._parameters), ("buffer", part._buffers)):
        for name, tensor in own.items():
            if tensor is not None:
                here = f"{path}.{name}".lstrip(".")
                first = seen.setdefault(id(tensor), here)
                yield Held(name, kind if first == here else "shared", tensor, first)
    for name, value in vars(part).items():
        inside = value if isinstance(value, (list, tuple)) else (value,)
        for k, each in enumerate(inside):
            label = f"{name}[{k}]" if inside is value else name
            if isinstance(each, Tensor) and id(each) not in registered:
                yield Held(label, "plain", each)
            elif isinstance(each, nn.Module):
                for inner, tensor in each.named_parameters():
                    yield Held(f"{label}.{inner}", "plain", tensor)


def draw(rows: list[ModuleRow]) -> Drawing:
    canvas = Canvas(sentence(rows))
    like = twins(rows)
    inside = tuple(f"{path}." for path in like)
    folded = [row for row in rows if not row.path.startswith(inside)]
    y = canvas.top + 42.0
    canvas.note(MARGIN, y - 20, "name")
    canvas.note(KIND_X, y - 20, "class")
    x = float(TENSORS_X)
    for kind, words in (("parameter",) * 2, ("buffer",) * 2, ("plain", "not registered")):
        x = _marked(canvas, x, y - 20, kind, words) + 2
    canvas.note(COUNT_X, y - 20, "parameters", "right")
    canvas.note(BYTES_X, y - 20, "bytes", "right")
    for row in folded[:MOST]:
        canvas.line([(MARGIN, y - 11), (RIGHT, y - 11)], RULE, 0.6)
        name = row.path.rpartition(".")[2] or "(the whole)"
        x = MARGIN + INDENT * row.depth
        leaf = not any(other.path.startswith(f"{row.path}.") for other in rows if row.path)
        name = cut(name, KIND_X - x - 8, size=12, mono=True, middle=False)
        canvas.text(x, y, name, size=12, mono=True)
        kind = cut(row.kind, TENSORS_X - KIND_X - 8, size=12, middle=False)
        canvas.text(KIND_X, y, kind, MUTED, size=12)
        if row.path in like:
            canvas.note(TENSORS_X, y, f"the same parts as {like[row.path]}")
        if row.numel or not row.path:
            ink = INK if leaf or not row.path else MUTED
            canvas.text(COUNT_X, y, f"{row.numel:,}", ink, "right", size=12, mono=True)
        if row.nbytes:
            canvas.note(BYTES_X, y, human_bytes(row.nbytes), "right")
            wide = (RIGHT - BAR_X) * row.nbytes / max(1, rows[0].nbytes)
            fill = PARAMETER.colour if leaf else PARAMETER.tint
            canvas.box((BAR_X, y - 5, max(wide, 1), 10), fill, edge=CARD, line=0)
        y = _draw_tensors(canvas, y, row) + ROW
    if len(folded) > MOST:
        canvas.note(MARGIN, y, f"and {count(len(folded) - MOST, 'module')} more")
    parts = [f"Module tree. {canvas.title}"]
    for row in rows[:MOST]:
        held = ", ".join(f"{one.kind} {one}" for one in row.held)
        text = f"{row.path or 'the whole'}: {row.kind}{f' with {held}' if held else ''}"
        parts.append(f"{text}; {count(row.numel, 'parameter')}.")
    return canvas.finish(y + 16, " ".join(parts))


def _draw_tensors(canvas: Canvas, y: float, row: ModuleRow) -> float:
    """Draw a module's direct tensors in one or more lines. Return the y of the last line."""
    x, wide = float(TENSORS_X), COUNT_X - 84 - TENSORS_X
    for one in row.held:
        text = cut(str(one), wide - DOT, size=SMALL, middle=False)
        if x > TENSORS_X and x + DOT + text_width(text, size=SMALL) > TENSORS_X + wide:
            x, y = float(TENSORS_X), y + 16
        x = _marked(canvas, x, y, one.kind, text)
    return y


def _marked(canvas: Canvas, x: float, y: float, kind: str, words: str) -> float:
    """Draw small text after the mark of its kind. Return the x at which the next may begin."""
    colour, marker = LOOKS[kind]
    canvas.marker(x + 4, y, marker, 7, colour, edge=colour if marker == "x" else "none")
    canvas.text(x + DOT, y, words, colour, size=SMALL)
    return x + DOT + text_width(words, size=SMALL) + 12


def twins(rows: list[ModuleRow]) -> dict[str, str]:
    """Return the modules that repeat an earlier sibling: module's path -> sibling's name."""
    found: dict[str, str] = {}
    first: dict[tuple, str] = {}
    for row in rows:
        below = [other for other in rows if other.path.startswith(f"{row.path}.")]
        if not row.path or not below:
            continue
        parts = tuple(
            (part.path.removeprefix(row.path), part.kind, tuple(map(str, part.held)))
            for part in (row, *below)
        )
        parent, _, name = row.path.rpartition(".")
        if first.setdefault((parent, parts), name) != name:
            found[row.path] = first[parent, parts]
    return found


def sentence(rows: list[ModuleRow]) -> str:
    whole = rows[0]
    kinds = [one.kind for row in rows for one in row.held]
    shared, lost = kinds.count("shared"), kinds.count("plain")
    words = f"{whole.kind}: {count(whole.numel, 'parameter')}, {human_bytes(whole.nbytes)}"
    if lost:
        return f"{words}; {count(lost, 'tensor')} {'is' if lost == 1 else 'are'} not registered."
    if shared:
        tied = "a tied tensor counts once"
        if shared > 1:
            tied = f"{shared} tied names don't count again"
        return f"{words}; {tied}."
    return f"{words} in {count(len(kinds), 'tensor')}."
