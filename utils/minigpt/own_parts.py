"""MiniGPT assembled from the learner's layers, if they give the same numbers as PyTorch's layers.

A part is a class, or a function: ``softmax(x, y)`` of lab 05, or ``flash(q, k, v, causal, block)``
of lab 11. A part is left out if it raises an error, or if it gives other numbers than PyTorch's
part on some sentences. :class:`Assembled` says why.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from hood.learner.contents import PHASES, labs_of
from hood.learner.lab_file import UNREADABLE, cells_of, text_of

# The names of ``utils.minigpt`` are loaded only when they are used, because views import this
# module.
from utils import minigpt

if TYPE_CHECKING:
    from utils.minigpt.model import MiniGPT

# The parts that a learner can write: the part's name -> the phase whose lab asks for the part.
PARTS = {"Linear": 3, "Embedding": 3, "LayerNorm": 3, "MultiHead": 8, "softmax": 5, "flash": 11}
LAYERS = {"Linear": nn.Linear, "Embedding": nn.Embedding, "LayerNorm": nn.LayerNorm}
PROJECTIONS = ("query", "key", "value", "output")  # of an attention, in MiniGPT and in lab 08
TILE = 8  # words in a tile, so that a sentence has several tiles, and the last tile is incomplete
UNWRITTEN = "is not written yet"
TOLERANCE = 1e-3  # largest allowed difference of a logit, relative to the largest logit
DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign)


@dataclass(frozen=True)
class Assembled:
    """The trained MiniGPT in eval mode, with some parts from the learner."""

    model: MiniGPT
    own: frozenset[str]  # names of PARTS that are from the learner
    why_not: Mapping[str, str]  # a part that was left out -> the reason in words

    def numbers(self) -> tuple[int, int]:
        """Return the number of parameters in the learner's layers, and in the whole model."""
        total = sum(one.numel() for one in self.model.parameters())
        classes = tuple(LAYERS.values())
        left = [m for m in self.model.modules() if isinstance(m, classes) and not _mine(m)]
        return total - sum(one.numel() for m in left for one in m.parameters()), total


def assemble(parts: Mapping[str, Any]) -> Assembled:
    """Assemble the trained MiniGPT from the parts that give the same numbers as PyTorch's.

    parts: a name of :data:`PARTS` -> the part. Raises ValueError for another name.
    """
    if unknown := sorted(parts.keys() - PARTS.keys()):
        raise ValueError(f"expected parts of {', '.join(PARTS)}, got {', '.join(unknown)}")
    why_not: dict[str, str] = {}
    with torch.random.fork_rng(devices=[]):  # a new layer's first weights are random
        for name, part in parts.items():
            try:
                problem = _difference(_with({name: part}))
            except NotImplementedError:
                problem = UNWRITTEN
            except Exception as error:
                text = str(error).partition("\n")[0][:60]
                problem = f"raises {type(error).__name__}{f': {text}' if text else ''}"
            if problem:
                why_not[name] = problem
        own = {name: part for name, part in parts.items() if name not in why_not}
        return Assembled(_with(own), frozenset(own), why_not)


def from_labs(names: Iterable[str]) -> dict[str, Any]:
    """Return the named parts that the learner's saved labs define.

    This process executes some statements of a lab's cells in a separate namespace: imports,
    functions, classes, and assignments without a call. If a statement raises an error, it is
    skipped.
    """
    found: dict[str, Any] = {}
    for phase in PHASES:
        wanted = [name for name in names if PARTS[name] == phase.number]
        place = next(iter(labs_of(phase)), None) if wanted else None
        if place:
            space = _definitions(place)
            there = {"triton_softmax" if name == "softmax" else name: name for name in wanted}
            found |= {name: space[one] for one, name in there.items() if one in space}
    return found


def _definitions(notebook: Path) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": notebook.stem}
    try:
        cells = [text_of(cell) for cell in cells_of(notebook) if cell["cell_type"] == "code"]
    except (OSError, *UNREADABLE):
        return {}
    for number, text in enumerate(cells):
        try:
            statements = ast.parse(text).body
        except SyntaxError:  # a magic, or an unfinished line
            continue
        name = f"<{notebook.stem}, cell {number}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        for statement in statements:
            calls = any(isinstance(node, ast.Call) for node in ast.walk(statement))
            if isinstance(statement, ast.Assign) and calls:  # a call may take long
                continue
            if isinstance(statement, DEFINITIONS):
                try:
                    exec(compile(ast.Module([statement], []), name, "exec"), space)
                except Exception:
                    continue
    return space


def _with(parts: Mapping[str, Any]) -> MiniGPT:
    """Return the trained model with these parts in place of PyTorch's."""
    model = minigpt.load_minigpt()
    if attention := parts.get("MultiHead"):
        for block in model.blocks:
            theirs: Any = block.attention
            block.attention = _Causal(attention(model.config.d_model, theirs.n_heads), theirs)
    if flash := parts.get("flash"):
        for block in model.blocks:
            block.attention = _Tiled(flash, block.attention)
    for path, module in list(model.named_modules()):
        for name, stock in LAYERS.items():
            if isinstance(module, nn.Module) and type(module) is stock and name in parts:
                parent, _, last = path.rpartition(".")
                setattr(model.get_submodule(parent), last, _copy(parts[name], module))
    if softmax := parts.get("softmax"):
        model.softmax = _returning(softmax)
    return model.eval()


def _copy(layer: Callable[..., nn.Module], module: nn.Module) -> nn.Module:
    """Return a learner's layer with the weights of a PyTorch layer."""
    sizes = {
        nn.Linear: lambda m: (m.in_features, m.out_features),
        nn.Embedding: lambda m: (m.num_embeddings, m.embedding_dim),
        nn.LayerNorm: lambda m: m.normalized_shape,
    }[type(module)](module)
    made: Any = layer(*sizes)
    made.load_state_dict(module.state_dict())
    made.of_the_learner = True
    return made


def _mine(module: nn.Module) -> bool:
    return hasattr(module, "of_the_learner")


class _Causal(nn.Module):
    """The learner's attention with MiniGPT's weights. No position sees a later position."""

    def __init__(self, attention: nn.Module, theirs: Any) -> None:
        super().__init__()
        attention.load_state_dict(theirs.state_dict())
        self.attention = attention
        self.n_heads = theirs.n_heads

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        length = x.shape[1]
        return self.attention(x, torch.ones(1, length, length, dtype=torch.bool).tril())


class _Tiled(nn.Module):
    """An attention. The learner's function computes its heads, tile by tile.

    It keeps the four linear layers of the attention that it replaces, which is the learner's
    `MultiHead` or MiniGPT's attention.
    """

    def __init__(self, flash: Callable[..., Any], replaced: Any) -> None:
        super().__init__()
        own = replaced.attention if isinstance(replaced, _Causal) else replaced
        layers: list[Any] = [getattr(own, name, None) for name in PROJECTIONS]
        if not all(isinstance(layer, nn.Module) for layer in layers):
            raise TypeError(f"expected layers named {', '.join(PROJECTIONS)} in MultiHead")
        self.layers, self.flash = nn.ModuleList(layers), flash
        self.n_heads = replaced.n_heads

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        *inputs, output = self.layers
        heads = (layer(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for layer in inputs)
        mixed, _ = self.flash(*heads, True, TILE)
        return output(mixed.transpose(1, 2).reshape(x.shape))


def _returning(softmax: Callable[[Tensor, Tensor], Any]) -> Callable[[Tensor], Tensor]:
    """Turn a function that writes into its second argument into a function of logits (…, V)."""

    def returning(logits: Tensor) -> Tensor:
        rows = logits.reshape(-1, logits.shape[-1])
        out = torch.full_like(rows, float("nan"))
        softmax(rows, out)
        return out.view(logits.shape)

    return returning


@torch.no_grad()
def _difference(model: MiniGPT) -> str:
    """Return why a model's results differ from the trained model's results, or ""."""
    stock = minigpt.load_minigpt()
    tokens = torch.arange(2 * 9).view(2, 9) * 31 % stock.config.vocab_size
    for what in (lambda m: m(tokens), lambda m: m.probabilities(tokens[:1, :2])):
        got, want = what(model), what(stock)
        if got.shape != want.shape:
            return f"gives the shape {tuple(got.shape)}, not {tuple(want.shape)}"
        # NaN is not close
        if not (got - want).abs().max() <= TOLERANCE * want.abs().max():
            return "gives other numbers than PyTorch's"
    return ""
