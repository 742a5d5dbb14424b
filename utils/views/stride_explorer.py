"""A storage as a strip of memory, a view as a grid, and the sum that leads from it to there."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from torch import Tensor

from utils.views import _interactive
from utils.views._numbers import count, human_bytes, short
from utils.views._stride_sheet import StrideSheet
from utils.views._strides import Geometry, full_index, geometry, plain


def stride_explorer(tensor: Tensor, *, index: int | Sequence[int] | None = None) -> None:
    """Show where the elements of `tensor` lie in its storage, with one of them lit in both.

    Args:
        tensor: any strided tensor, of any shape, dtype, device; a large one is seen through a
            window.
        index: the element to light, one number a dimension; live, a slider for each dimension moves
            it.

    Raises:
        TypeError: for a tensor without strides.
        IndexError: for an index that doesn't fit.
    """
    layout = geometry(tensor)
    start = () if layout.empty else full_index(layout.shape, index)
    _interactive.present(
        lambda *at: draw(tensor, at),
        start,
        lambda widgets: [
            widgets.IntSlider(value=i, min=0, max=size - 1, description=f"dim {dim}")
            for dim, (i, size) in enumerate(zip(start, layout.shape, strict=True))
        ],
    )


def draw(tensor: Tensor, index: tuple[int, ...]) -> tuple[Figure, str]:
    """Return the figure with `index` lit (ignored in an empty view), and its alternative text."""
    layout = geometry(tensor)
    index = () if layout.empty else index
    figure = StrideSheet(tensor, layout, index).draw(sentence(layout))
    return figure, describe(tensor, layout, index)


def sentence(layout: Geometry) -> str:
    """What this tensor teaches, as the figure's title."""
    if layout.empty:
        return "An empty view has a shape and strides, and reaches no element."
    if not layout.shape:
        return "A 0-D view has no strides: its one element lies at the offset."
    if layout.sharing > 1:
        return "Stride 0: the view repeats, the memory does not."
    if layout.overlaps:
        return "Overlapping windows: neighbours in the view share elements of the storage."
    if layout.row_major and layout.offset:
        return "A view may begin anywhere: the offset says where."
    if layout.row_major:
        return "Row-major: one step in the last dimension is one step in memory."
    steps = [s for s, n in zip(layout.stride, layout.shape, strict=True) if n > 1]
    if sorted(steps, reverse=True) != steps:
        return "Transposing moves no byte: the strides trade places."
    return "A slice copies nothing: its strides step over what it leaves out."


def describe(tensor: Tensor, layout: Geometry, index: tuple[int, ...]) -> str:
    """Return the alternative text: the tensor, its storage, and the sum for the lit element."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    words = (
        f"Stride explorer. {sentence(layout)} A view of shape {layout.shape}, "
        f"strides {layout.stride}, offset {layout.offset}, dtype {dtype}, over a storage of "
        f"{count(layout.length, 'element')} ({human_bytes(layout.length * layout.itemsize)})."
    )
    if layout.empty:
        return words
    at = layout.element(index)
    steps = [f"{i}·{s}" for i, s in zip(index, layout.stride, strict=True)]
    words += (
        f" Index {list(index)} is {' + '.join([str(layout.offset), *steps])} = element {at} "
        f"of the storage, at byte {at * layout.itemsize}"
    )
    value = plain(tensor[index])
    words += f"; it holds {short(value[0])}." if value is not None else "; it has no value to show."
    if layout.sharing > 1:
        words += f" {layout.sharing:,} indices reach that one element."
    return words
