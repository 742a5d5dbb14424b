"""A module as a tree: what each part holds, how many numbers and bytes, and what is shared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from matplotlib.figure import Figure
from torch import Tensor, nn

from utils.notebook.figures import show
from utils.notebook.style import GRADIENT, INK, MUTED, PARAMETER, RULE, STORAGE
from utils.views._canvas import INNER, MARGIN, SMALL, Canvas, title_height
from utils.views._numbers import count, human_bytes
from utils.views._text_outlines import cut, text_width

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
    """A tensor that a module holds itself.

    Attributes:
        kind: "parameter", "buffer", "shared" (a parameter that was met before, as `first`), or
            "plain", which no module knows of.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    numel: int
    nbytes: int
    first: str = ""

    def __str__(self) -> str:
        shape = str(self.shape).replace(",)", ")")
        extra = {"shared": f" is {self.first}", "plain": " not registered"}.get(self.kind, "")
        return f"{self.name} {shape}{extra}"


@dataclass(frozen=True)
class ModuleRow:
    """One module: its path, class, own tensors, and parameters and bytes from there down."""

    path: str
    kind: str
    held: tuple[Held, ...]
    numel: int
    nbytes: int

    @property
    def depth(self) -> int:
        return self.path.count(".") + 1 if self.path else 0


def module_tree(module: nn.Module) -> None:
    """Show the tree of `module`: a line for each part, with its own tensors, parameters and bytes.

    A parameter that is registered in two places is counted once and named where it comes again.
    Tensors and modules that were only assigned to a list or a plain attribute are marked: nothing
    will save, move or train them. Raises TypeError for anything but a module.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"module_tree needs an nn.Module, got {type(module).__name__}")
    figure, alt = draw(*read(module))
    show(figure, alt=alt)


def read(module: nn.Module) -> tuple[str, list[ModuleRow]]:
    """Return the class of the whole, and a row for each module in the order of `named_modules`."""
    seen: dict[int, str] = {}
    registered = {id(tensor) for tensor in (*module.parameters(), *module.buffers())}
    own = {
        path: (part, tuple(_held(part, path, seen, registered)))
        for path, part in module.named_modules(remove_duplicate=False)
    }
    rows = []
    for path, (part, held) in own.items():
        below = [
            tensor
            for other, (_, tensors) in own.items()
            if not path or other == path or other.startswith(f"{path}.")
            for tensor in tensors
        ]
        counted = [t for t in below if t.kind == "parameter"]
        nbytes = sum(t.nbytes for t in below if t.kind in ("parameter", "buffer"))
        rows.append(
            ModuleRow(path, type(part).__name__, held, sum(t.numel for t in counted), nbytes)
        )
    return type(module).__name__, rows


def _held(part: nn.Module, path: str, seen: dict[int, str], registered: set[int]) -> Iterator[Held]:
    """Yield what a module holds itself.

    seen: the first path of each registered tensor so far. registered: the ids of all of them; a
    list that holds them, as in an LSTM, holds nothing that is not registered.
    """
    for name, tensor in part._parameters.items():
        if tensor is None:
            continue
        here = f"{path}.{name}".lstrip(".")
        first = seen.setdefault(id(tensor), here)
        kind = "parameter" if first == here else "shared"
        yield _one(name, kind, tensor, first)
    for name, buffer in part._buffers.items():
        if buffer is None:
            continue
        here = f"{path}.{name}".lstrip(".")
        first = seen.setdefault(id(buffer), here)
        yield _one(name, "buffer" if first == here else "shared", buffer, first)
    for name, value in vars(part).items():
        inside = value if isinstance(value, (list, tuple)) else (value,)
        for k, each in enumerate(inside):
            label = f"{name}[{k}]" if inside is value else name
            if isinstance(each, Tensor) and id(each) not in registered:
                yield _one(label, "plain", each)
            elif isinstance(each, nn.Module):
                for inner, tensor in each.named_parameters():
                    yield _one(f"{label}.{inner}", "plain", tensor)


def _one(name: str, kind: str, tensor: Tensor, first: str = "") -> Held:
    nbytes = tensor.numel() * tensor.element_size()
    return Held(name, kind, tuple(tensor.shape), tensor.numel(), nbytes, first)


def draw(kind: str, rows: list[ModuleRow]) -> tuple[Figure, str]:
    """Return the figure for a read module, and its alternative text."""
    words = sentence(kind, rows)
    like = twins(rows)
    inside = tuple(f"{path}." for path in like)
    folded = [row for row in rows if not row.path.startswith(inside)]
    shown = folded[:MOST]
    lines = [_lines(row) for row in shown]
    top = title_height(words) + 42
    canvas = Canvas(top + sum(ROW + 16 * (len(held) - 1) for held in lines) + 16)
    canvas.title(words)
    canvas.note(MARGIN, top - 20, "name")
    canvas.note(KIND_X, top - 20, "class")
    _legend(canvas, TENSORS_X, top - 20)
    canvas.note(COUNT_X, top - 20, "parameters", ha="right")
    canvas.note(BYTES_X, top - 20, "bytes", ha="right")
    total = max(1, rows[0].nbytes)
    y = float(top)
    for row, held in zip(shown, lines, strict=True):
        canvas.line([(MARGIN, y - 11), (MARGIN + INNER, y - 11)], colour=RULE, line=0.6)
        name = row.path.rpartition(".")[2] or "(the whole)"
        x: float = MARGIN + INDENT * row.depth
        leaf = not any(other.path.startswith(f"{row.path}.") for other in rows if row.path)
        whole = not row.path
        canvas.text(x, y, cut(name, KIND_X - x - 8, 12, True), size=12, mono=True)
        canvas.text(KIND_X, y, cut(row.kind, TENSORS_X - KIND_X - 8, 12), size=12, colour=MUTED)
        if row.path in like:
            canvas.note(TENSORS_X, y, f"the same parts as {like[row.path]}")
        for k, line in enumerate(held):
            x = float(TENSORS_X)
            for tensor, text in line:
                _marked(canvas, x, y + 16 * k, tensor.kind, text)
                x += DOT + text_width(text, size=SMALL) + 12
        ink = INK if (leaf or whole) else MUTED
        if row.numel or whole:
            canvas.text(COUNT_X, y, f"{row.numel:,}", size=12, mono=True, colour=ink, ha="right")
        if row.nbytes:
            size = human_bytes(row.nbytes)
            canvas.text(BYTES_X, y, size, size=SMALL, colour=MUTED, ha="right")
            wide = (MARGIN + INNER - BAR_X) * row.nbytes / total
            fill = PARAMETER.colour if leaf else PARAMETER.tint
            canvas.boxes([(BAR_X, y - 5, max(wide, 1), 10)], [fill], line=0)
        y += ROW + 16 * (len(held) - 1)
    if len(folded) > MOST:
        canvas.note(MARGIN, y, f"and {count(len(folded) - MOST, 'module')} more")
    return canvas.finish(), describe(rows, words)


def twins(rows: list[ModuleRow]) -> dict[str, str]:
    """Path of each module with children that has the same parts as an earlier sibling -> it."""
    found: dict[str, str] = {}
    first: dict[tuple, str] = {}
    for row in rows:
        if not row.path:
            continue
        below = [other for other in rows if other.path.startswith(f"{row.path}.")]
        parts = tuple(
            (part.path.removeprefix(row.path), part.kind, tuple(map(str, part.held)))
            for part in (row, *below)
        )
        parent, _, name = row.path.rpartition(".")
        if below and first.setdefault((parent, parts), name) != name:
            found[row.path] = first[parent, parts]
    return found


def sentence(kind: str, rows: list[ModuleRow]) -> str:
    """What the tree shows, as the figure's title."""
    whole = rows[0]
    tensors = [tensor for row in rows for tensor in row.held]
    shared = sum(tensor.kind == "shared" for tensor in tensors)
    lost = sum(tensor.kind == "plain" for tensor in tensors)
    words = f"{kind}: {count(whole.numel, 'parameter')}, {human_bytes(whole.nbytes)}"
    if lost:
        return f"{words}; {count(lost, 'tensor')} {'is' if lost == 1 else 'are'} not registered."
    if shared:
        tied = "a tied tensor counts once" if shared == 1 else f"{shared} tied names count for none"
        return f"{words}; {tied}."
    return f"{words} in {count(len(tensors), 'tensor')}."


def describe(rows: list[ModuleRow], words: str) -> str:
    """Return the alternative text: each module with its class, tensors and parameters."""
    parts = [f"Module tree. {words}"]
    for row in rows[:MOST]:
        text = f"{row.path or 'the whole'}: {row.kind}"
        if row.held:
            text += " with " + ", ".join(f"{t.kind} {t}" for t in row.held)
        parts.append(f"{text}; {count(row.numel, 'parameter')}.")
    return " ".join(parts)


def _lines(row: ModuleRow) -> list[list[tuple[Held, str]]]:
    """Return a module's own tensors, in as many lines as they need."""
    lines: list[list[tuple[Held, str]]] = [[]]
    used = 0.0
    width = COUNT_X - 84 - TENSORS_X
    for tensor in row.held:
        text = cut(str(tensor), width - DOT, SMALL)
        wide = DOT + text_width(text, size=SMALL) + 12
        if lines[-1] and used + wide > width + 12:
            lines.append([])
            used = 0.0
        lines[-1].append((tensor, text))
        used += wide
    return lines


def _legend(canvas: Canvas, x: float, y: float) -> None:
    for kind, words in (("parameter",) * 2, ("buffer",) * 2, ("plain", "not registered")):
        _marked(canvas, x, y, kind, words)
        x += DOT + text_width(words, size=SMALL) + 14


def _marked(canvas: Canvas, x: float, y: float, kind: str, words: str) -> None:
    """Small text with the mark of its kind before it."""
    colour, marker = LOOKS[kind]
    edge = colour if marker == "x" else "none"
    canvas.marker(x + 4, y, marker, size=7, fill=colour, edge=edge)
    canvas.text(x + DOT, y, words, size=SMALL, colour=colour)
