"""The schedule of a pipeline as a Gantt chart: each stage's work over time, and its idle time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from utils.notebook.style import CARD, GRADIENT, IDLE, MUTED, STORAGE
from utils.views._canvas import INNER, LINE, MARGIN, RIGHT, Axes, Canvas, Drawing, round_steps
from utils.views._controls import choice, slider
from utils.views._numbers import count, listed, require
from utils.views._view import present

LEFT, ROW, BAR = MARGIN + 82, 50, 38
WIDE = INNER - 82 - 88
MOST_STAGES, MOST_MICRO = 8, 32
Schedule = Sequence[Sequence[tuple[str, int]]]


@dataclass(frozen=True)
class Job:
    """The forward ("F") or backward ("B") of a micro-batch at a stage. A forward takes time 1."""

    stage: int
    kind: str
    micro: int
    start: float
    end: float


@dataclass(frozen=True)
class Chart:
    """A schedule with its times. stuck: each (stage, kind, micro) that waits for ever."""

    stages: int
    jobs: tuple[Job, ...]
    stuck: tuple[tuple[int, str, int], ...]

    @property
    def length(self) -> float:
        return max((job.end for job in self.jobs), default=1.0)

    @property
    def idle(self) -> float:
        """The share of all stages' time in which they are idle."""
        busy = sum(job.end - job.start for job in self.jobs)
        return 1 - busy / (self.stages * self.length)

    def held(self, stage: int) -> int:
        """Return the largest number of micro-batches that a stage must keep at a time."""
        now = most = 0
        for job in self.jobs:
            if job.stage == stage:
                now += 1 if job.kind == "F" else -1
                most = max(most, now)
        return most


def pipeline_gantt(
    schedules: Schedule | Mapping[str, Schedule], *, schedule: str | None = None
) -> None:
    """Show the work of each stage over time.

    In a live view, controls choose the schedule and the time that a backward takes.

    schedules: a schedule, or name -> schedule. A schedule has a list for each stage, with entries
        ("F", k) and ("B", k) in the order in which the stage runs them.
    schedule: the name of the schedule that is shown first.

    Raises ValueError for no stages, too many stages, entries of another form, or a repeated entry.
    """
    named = dict(schedules) if isinstance(schedules, Mapping) else {"the schedule": schedules}
    if not named:
        raise ValueError("pipeline_gantt needs at least one schedule")
    found = {str(name): read(one) for name, one in named.items()}
    rows = max(map(len, found.values()))
    present(
        lambda name, times: draw(name, timed(found[name], times), rows),
        choice("schedule", next(iter(found)) if schedule is None else schedule, list(found)),
        slider("B takes", 2, 1, 3),
    )


def read(schedule: Schedule) -> tuple[tuple[tuple[str, int], ...], ...]:
    stages = tuple(tuple((str(kind), int(micro)) for kind, micro in one) for one in schedule)
    require("pipeline_gantt", len(stages), "stages", MOST_STAGES)
    for stage, jobs in enumerate(stages):
        for kind, micro in jobs:
            if kind not in ("F", "B") or not 0 <= micro < MOST_MICRO:
                raise ValueError(
                    f"expected ('F', k) or ('B', k) with k from 0 to {MOST_MICRO - 1}, got "
                    f"{(kind, micro)} at stage {stage}"
                )
        if len(set(jobs)) != len(jobs):
            raise ValueError(f"stage {stage} has the same entry twice: {list(jobs)}")
    return stages


def timed(stages: Sequence[Sequence[tuple[str, int]]], backward: float) -> Chart:
    """Let each stage run its entries in order. An entry starts as soon as its inputs exist."""
    ends: dict[tuple[int, str, int], float] = {}
    jobs: list[Job] = []
    at, clocks = [0] * len(stages), [0.0] * len(stages)
    moved = True
    while moved:
        moved = False
        for stage, own in enumerate(stages):
            while at[stage] < len(own):
                kind, micro = own[at[stage]]
                needs = _needs(stage, kind, micro, len(stages) - 1)
                if any(need not in ends for need in needs):
                    break
                start = max([clocks[stage], *(ends[need] for need in needs)])
                end = start + (1.0 if kind == "F" else backward)
                ends[stage, kind, micro] = clocks[stage] = end
                jobs.append(Job(stage, kind, micro, start, end))
                at[stage] += 1
                moved = True
    stuck = tuple(
        (stage, *own[place])
        for stage, (own, place) in enumerate(zip(stages, at, strict=True))
        if place < len(own)
    )
    ordered = sorted(jobs, key=lambda job: (job.stage, job.start))
    return Chart(len(stages), tuple(ordered), stuck)


def _needs(stage: int, kind: str, micro: int, last: int) -> list[tuple[int, str, int]]:
    """Return the entries that must be done first.

    A forward needs the forward at the previous stage. A backward needs the forward at its own stage
    and the backward at the next stage.
    """
    if kind == "F":
        return [(stage - 1, "F", micro)] if stage else []
    own = [(stage, "F", micro)]
    return own if stage == last else [*own, (stage + 1, "B", micro)]


def draw(name: str, chart: Chart, rows: int) -> Drawing:
    """Draw the chart on a sheet that has room for `rows` stages."""
    held = [chart.held(stage) for stage in range(chart.stages)]
    title = f"{chart.length:g} units, {chart.idle:.0%} idle; a stage remembers at most {max(held)}."
    words = (
        "Blue forward, red backward, with the number of the micro-batch; a forward takes 1 unit."
    )
    if chart.stuck:
        ranks, one = [str(stage) for stage, *_ in chart.stuck], len(chart.stuck) == 1
        title = f"stage{'' if one else 's'} {listed(ranks)} wait{'s' if one else ''} for ever."
        waits = (f"stage {stage} for what {kind}{k} needs" for stage, kind, k in chart.stuck)
        words = f"Waiting: {', '.join(waits)}."
    canvas = Canvas(f"{name}: {title}")
    top = canvas.top + 34
    length = chart.length * (1.12 if chart.stuck else 1)

    px = Axes(canvas, LEFT, top, WIDE, ROW * rows, x=(0, length), y=(0, 1)).px
    canvas.text(RIGHT, top - 20, "remembers", MUTED, "right")
    told = []
    for stage, most in enumerate(held):
        y = top + ROW * stage
        canvas.text(MARGIN, y + BAR / 2, f"stage {stage}")
        canvas.box((LEFT, y, WIDE, BAR), IDLE)
        canvas.text(RIGHT, y + BAR / 2, f"{most} at most", MUTED, "right")
        own = " ".join(f"{job.kind}{job.micro}" for job in chart.jobs if job.stage == stage)
        batches = count(most, "micro-batch").replace("batchs", "batches")
        told.append(f"Stage {stage}: {own}; it remembers at most {batches}.")
    for job in chart.jobs:
        y, left, wide = top + ROW * job.stage, px(job.start), px(job.end) - px(job.start)
        look = STORAGE if job.kind == "F" else GRADIENT
        canvas.box((left, y, wide, BAR), look.colour, edge=CARD)
        if wide >= 9 * len(str(job.micro)) + 3:
            canvas.text(left + wide / 2, y + BAR / 2, str(job.micro), look.on, "center")
    for stage, _, _ in chart.stuck:
        since = max((job.end for job in chart.jobs if job.stage == stage), default=0.0)
        y = top + ROW * stage + BAR / 2
        canvas.line([(px(since), y), (px(length), y)], GRADIENT.colour, 4, dashed=True)
    for tick in round_steps(0, chart.length, 8):
        canvas.text(px(tick), top + ROW * chart.stages + 6, f"{tick:g}", MUTED, "center")
    bottom = top + ROW * rows
    canvas.paragraph(bottom + 36, words, 2, MUTED)
    return canvas.finish(
        bottom + 42 + 2 * LINE, f"A pipeline's schedule. {canvas.title} {words} {' '.join(told)}"
    )
