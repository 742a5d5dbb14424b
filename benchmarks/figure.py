"""Pictures of a record: how near the softmax comes to what memory allows, with alternative text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from benchmarks.softmax_timing import better, timed
from utils import figures
from utils.records import Record
from utils.style import CSS_DPI, KERNEL, MUTED, STORAGE, VIEW, WIDTH, course_style
from utils.style import points as font_points
from utils.views import roofline

# A softmax does little per element: a maximum, a subtraction, an exponential, a sum, a product;
# backward, two products, a sum, a subtraction.
FLOPS = {"forward": 5, "backward": 4}
LOOKS = {
    "triton": ("our Triton kernel", KERNEL),
    "torch": ("torch.softmax", STORAGE),
    "compiled": ("torch.compile", VIEW),
}


def show_bandwidth(record: Record, direction: str = "forward", dtype: str = "float32") -> None:
    """Show each contender's share of the copy bandwidth, shape by shape. Raises NoRecord."""
    figure, alt = draw_bandwidth(record, direction, dtype)
    figures.show(figure, alt=alt)


def show_roofline(record: Record, direction: str = "forward") -> None:
    """Show our kernel under the roof of the GPU's memory and arithmetic. Raises NoRecord.

    The narrowest width of the record, with the fewest rows and the most, the latter in two dtypes:
    the FLOPs for each byte depend on nothing but the dtype.
    """
    result = record.result("softmax")
    peak = record.provenance["gpu"] and record.provenance["gpu"]["peak float32 FLOP/s"]
    kind = "dry run on a CPU, not a measurement" if record.dry_run else record.gpu
    points = {}
    for dtype in ("float32", "bfloat16"):
        cases = chosen(result, direction, dtype)
        width = min(case["columns"] for case in cases)
        ordered = sorted((c for c in cases if c["columns"] == width), key=lambda c: c["rows"])
        for case in ordered[:1] * (dtype == "float32") + ordered[-1:]:
            flops = FLOPS[direction] * case["rows"] * case["columns"]
            seconds = case["timings"]["triton"]["seconds"]
            points[f"{shape(case)}, {dtype}"] = (flops, case["bytes"], seconds)
    roofline(
        points,
        # where the driver gave no clock, and in a dry run: 10 FLOPs a byte, to have a ceiling
        peak_flops=peak or 10 * result["peak copy"]["bytes per second"],
        peak_bandwidth=result["peak copy"]["bytes per second"],
        title=f"Softmax {direction}, {kind}: memory is the bound, once there is enough to do",
    )


def draw_bandwidth(record: Record, direction: str, dtype: str) -> tuple[Figure, str]:
    """The figure, and its alternative text: every number that it shows."""
    result = record.result("softmax")
    cases = chosen(result, direction, dtype)
    peak = result["peak copy"]["bytes per second"]
    with course_style():
        figure = Figure(figsize=(WIDTH / CSS_DPI, 1.6 + 0.46 * len(cases)))
        axes = figure.subplots()
        axes.axvline(1.0, color=MUTED, linewidth=1)
        for name, (label, part) in LOOKS.items():
            axes.scatter(
                [share(case, name, peak) for case in cases],
                range(len(cases)),
                marker=part.marker,
                color=part.colour,
                s=90 if name == "triton" else 55,
                label=label,
                zorder=3 if name == "triton" else 2,
            )
        axes.set_yticks(range(len(cases)), [shape(case) for case in cases])
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        axes.grid(axis="x")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.set_xlabel(f"bytes a second, as a share of a large copy's {peak / 1e12:.3g} TB/s")
        axes.set_title(headline(record, cases, peak, direction, dtype))
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, fontsize=font_points(12)
        )
    return figure, describe(record, cases, peak, direction, dtype)


def headline(
    record: Record, cases: Sequence[dict[str, Any]], peak: float, direction: str, dtype: str
) -> str:
    """What the figure shows, in a sentence; of a dry run, that it shows nothing."""
    if record.dry_run:
        return f"A dry run on a CPU, not a measurement: softmax {direction}, {dtype}"
    largest = max(cases, key=lambda case: case["bytes"])
    reached = share(largest, "triton", peak)
    return f"Softmax {direction}, {dtype}: {reached:.0%} of a copy's speed on the largest shape"


def describe(
    record: Record, cases: Sequence[dict[str, Any]], peak: float, direction: str, dtype: str
) -> str:
    """The alternative text."""
    parts = [
        f"{headline(record, cases, peak, direction, dtype)}. {record.gpu}: bytes a second as a "
        f"share of a large copy's {peak / 1e12:.3g} TB/s, by rows and columns."
    ]
    for case in cases:
        numbers = ", ".join(
            f"{label} {share(case, name, peak):.0%}" for name, (label, _) in LOOKS.items()
        )
        parts.append(f"{shape(case)}: {numbers}; ours {better(case):.2f} times the better one.")
    return " ".join(parts)


def chosen(result: dict[str, Any], direction: str, dtype: str) -> list[dict[str, Any]]:
    """The timed cases of a direction and dtype. Raises ValueError when there are none."""
    cases = [c for c in timed(result) if (c["direction"], c["dtype"]) == (direction, dtype)]
    if not cases:
        raise ValueError(
            f"no timings of {direction!r} in {dtype!r}: directions are forward and backward, "
            "dtypes float32, float16 and bfloat16"
        )
    return cases


def share(case: dict[str, Any], name: str, peak: float) -> float:
    """A contender's bytes a second over the large copy's."""
    return case["bytes"] / case["timings"][name]["seconds"] / peak


def shape(case: dict[str, Any]) -> str:
    return f"{case['rows']} × {case['columns']}"
