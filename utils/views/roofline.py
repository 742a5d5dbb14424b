"""Memory's slope and compute's ceiling, and where an op lies under them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.figure import Figure

from utils.style import INK, KERNEL, MUTED, RULE, STORAGE, course_style
from utils.views import _live
from utils.views._numbers import si
from utils.views._roof import Roof, Work, works

Points = Mapping[str, Sequence[float]]
BATCHES = tuple(2**power for power in range(15))


def roofline(
    points: Points | Callable[[int], Points],
    *,
    peak_flops: float,
    peak_bandwidth: float,
    title: str | None = None,
) -> None:
    """Show ops under a machine's roofline: is memory or compute the bound, and how near do they come?

    points: name -> (flops, bytes) or (flops, bytes, seconds), or a function from a batch size to such a dict,
    which, live, gets a slider over batch sizes (still: batch 64).
    peak_flops: FLOP/s of the machine; peak_bandwidth: B/s of its memory. title: in place of the sentence found.
    Raises ValueError for an empty dict or a number that is not above 0.
    """
    if not (peak_flops > 0 and peak_bandwidth > 0):
        raise ValueError(
            f"peak_flops (FLOP/s) and peak_bandwidth (B/s) must be above 0, got {peak_flops} and {peak_bandwidth}"
        )
    roof = Roof(float(peak_flops), float(peak_bandwidth))
    if not callable(points):
        _live.still(lambda: draw(works(points), roof, title))
        return
    _live.present(
        lambda batch: draw(works(points(batch)), roof, title or f"Batch {batch}: {sentence(works(points(batch)), roof)}"),
        (64,),
        lambda widgets: [widgets.SelectionSlider(options=BATCHES, value=64, description="batch")],
    )


def draw(ops: Sequence[Work], roof: Roof, title: str | None = None) -> tuple[Figure, str]:
    """The figure for some ops, and its alternative text."""
    words = title or sentence(ops, roof)
    low = min([op.intensity for op in ops] + [roof.ridge]) / 4
    high = max([op.intensity for op in ops] + [roof.ridge]) * 6
    with course_style():
        figure = Figure(figsize=(8.2, 4.4))
        axes = figure.add_subplot()
        axes.set(xscale="log", yscale="log", title=words)
        axes.grid(True, color=RULE)
        axes.plot([low, roof.ridge], [roof.at(low), roof.flops], color=STORAGE.colour)
        axes.plot([roof.ridge, high], [roof.flops, roof.flops], color=INK)
        axes.set(xlim=(low, high), xlabel="arithmetic intensity, FLOP per byte", ylabel="FLOP/s")
        for op in ops:
            bound = roof.at(op.intensity)
            here = op.attained or bound
            axes.plot([op.intensity] * 2, [here, bound], color=MUTED, linewidth=0.8)
            axes.plot(op.intensity, here, KERNEL.marker, color=KERNEL.colour, markersize=11, markeredgecolor=INK)
            axes.annotate(op.name, (op.intensity, here), xytext=(10, -12), textcoords="offset points")
    return figure, describe(ops, roof, words)


def sentence(ops: Sequence[Work], roof: Roof) -> str:
    """What the points show, as the figure's title."""
    memory = [op for op in ops if op.intensity < roof.ridge]
    if len(memory) == len(ops):
        return "Memory is the bound: the bytes take longer than the arithmetic."
    if not memory:
        return "Compute is the bound: the arithmetic takes longer than the bytes."
    return f"Left of {roof.ridge:.3g} FLOP per byte memory is the bound, right of it compute."


def describe(ops: Sequence[Work], roof: Roof, words: str) -> str:
    """The alternative text: the machine, then each point."""
    parts = [
        f"Roofline. {words} Peak {si(roof.flops, 'FLOP/s')}, memory {si(roof.bandwidth, 'B/s')}, "
        f"ridge at {roof.ridge:.3g} FLOP per byte."
    ]
    for op in ops:
        bound = "memory" if op.intensity < roof.ridge else "compute"
        text = f"{op.name}: {op.intensity:.3g} FLOP per byte, bound by {bound} at {si(roof.at(op.intensity), 'FLOP/s')}"
        if op.attained is not None:
            share = op.attained / roof.at(op.intensity)
            text += f", reached {si(op.attained, 'FLOP/s')} ({share:.0%} of the bound)"
        parts.append(f"{text}.")
    return " ".join(parts)
