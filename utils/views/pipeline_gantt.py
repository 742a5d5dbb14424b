"""The schedule of a pipeline as a Gantt chart: what each stage does when, and how long it rests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from utils.notebook.style import CARD, GRADIENT, IDLE, MUTED, STORAGE, WIDTH
from utils.views import _interactive
from utils.views._axes import round_steps
from utils.views._canvas import INNER, MARGIN, Box, Canvas, title_height
from utils.views._numbers import count, listed
from utils.views._text_outlines import wrap

LEFT, RIGHT, ROW, BAR, TEXT, LINE = 82, 88, 50, 38, 14, 21
MOST_STAGES, MOST_MICRO = 8, 32
SLOWEST = 3  # times as long a backward may take as a forward
Scale = Callable[[float], float]
Schedule = Sequence[Sequence[tuple[str, int]]]


@dataclass(frozen=True)
class Job:
    """The forward ("F") or backward ("B") of a micro-batch at a stage, in units of a forward."""

    stage: int
    kind: str
    micro: int
    start: float
    end: float


@dataclass(frozen=True)
class Chart:
    """A schedule with its times. stuck: (stage, kind, micro) that waits for ever, if any does."""

    stages: int
    jobs: tuple[Job, ...]
    stuck: tuple[tuple[int, str, int], ...]

    @property
    def length(self) -> float:
        return max((job.end for job in self.jobs), default=1.0)

    @property
    def idle(self) -> float:
        """The share of all stages' time in which they do nothing."""
        busy = sum(job.end - job.start for job in self.jobs)
        return 1 - busy / (self.stages * self.length)

    def held(self, stage: int) -> int:
        """The most micro-batches that a stage has to remember at a time."""
        now = most = 0
        for job in self.jobs:
            if job.stage == stage:
                now += 1 if job.kind == "F" else -1
                most = max(most, now)
        return most


def pipeline_gantt(
    schedules: Schedule | Mapping[str, Schedule], *, schedule: str | None = None, backward: int = 2
) -> None:
    """Show when each stage does what; live, choose a schedule and how long a backward takes.

    schedules: for each stage a list of ("F", k) and ("B", k), in the order in which the stage does
    them, or several of these by name. schedule: the one shown at first. backward: 1 to 3 times as
    long as a forward.
    Raises ValueError for no stages, too many, entries of another form, or one that comes twice.
    """
    named = dict(schedules) if isinstance(schedules, Mapping) else {"the schedule": schedules}
    found = {str(name): read(one) for name, one in named.items()}
    start = next(iter(found), "") if schedule is None else schedule
    if start not in found or not 1 <= backward <= SLOWEST:
        raise ValueError(
            f"pipeline_gantt: a schedule of {tuple(found)} and backward from 1 to {SLOWEST}, "
            f"got {start!r} and {backward}"
        )
    rows = max(len(one) for one in found.values())
    names = list(found)
    if len(names) == 1:
        _interactive.present(
            lambda times: draw(start, timed(found[start], times), rows),
            (backward,),
            lambda widgets: [
                widgets.IntSlider(value=backward, min=1, max=SLOWEST, description="B takes")
            ],
        )
        return
    _interactive.present(
        lambda name, times: draw(name, timed(found[name], times), rows),
        (start, backward),
        lambda widgets: [
            widgets.SelectionSlider(options=names, value=start, description="schedule"),
            widgets.IntSlider(value=backward, min=1, max=SLOWEST, description="B takes"),
        ],
    )


def read(schedule: Schedule) -> tuple[tuple[tuple[str, int], ...], ...]:
    """The schedule, if it has the form of one."""
    stages = tuple(tuple((str(kind), int(micro)) for kind, micro in one) for one in schedule)
    if not 1 <= len(stages) <= MOST_STAGES:
        raise ValueError(f"pipeline_gantt draws 1 to {MOST_STAGES} stages, got {len(stages)}")
    for stage, jobs in enumerate(stages):
        for kind, micro in jobs:
            if kind not in ("F", "B") or not 0 <= micro < MOST_MICRO:
                raise ValueError(
                    f"expected ('F', k) or ('B', k) with k from 0 to {MOST_MICRO - 1}, got "
                    f"{(kind, micro)} at stage {stage}"
                )
        if len(set(jobs)) != len(jobs):
            raise ValueError(f"stage {stage} does something twice: {list(jobs)}")
    return stages


def timed(stages: Sequence[Sequence[tuple[str, int]]], backward: float) -> Chart:
    """Let each stage do its list in order, everything as soon as what it needs is there."""
    last = len(stages) - 1
    ends: dict[tuple[int, str, int], float] = {}
    jobs: list[Job] = []
    at, clocks = [0] * len(stages), [0.0] * len(stages)
    moved = True
    while moved:
        moved = False
        for stage, own in enumerate(stages):
            while at[stage] < len(own):
                kind, micro = own[at[stage]]
                needs = _needs(stage, kind, micro, last)
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
    """What must be done before: the forward at the stage before, the backward at the one after."""
    if kind == "F":
        return [(stage - 1, "F", micro)] if stage else []
    own = [(stage, "F", micro)]
    return own if stage == last else [*own, (stage + 1, "B", micro)]


def draw(name: str, chart: Chart, rows: int | None = None) -> tuple[Figure, str]:
    """The chart, and its alternative text. rows: stages that the sheet has room for, or more."""
    top = title_height("one line") + 34
    bottom = top + ROW * (rows or chart.stages)
    canvas = Canvas(bottom + 42 + 2 * LINE)
    canvas.title(sentence(name, chart))
    wide = WIDTH - 2 * MARGIN - LEFT - RIGHT
    length = chart.length * (1.12 if chart.stuck else 1)

    def px(time: float) -> float:
        return MARGIN + LEFT + wide * time / length

    canvas.text(WIDTH - MARGIN, top - 20, "remembers", size=TEXT, colour=MUTED, ha="right")
    for stage in range(chart.stages):
        y = top + ROW * stage
        canvas.text(MARGIN, y + BAR / 2, f"stage {stage}", size=TEXT)
        canvas.boxes([(px(0), y, wide, BAR)], [IDLE], edge="none")
        words = f"{chart.held(stage)} at most"
        canvas.text(WIDTH - MARGIN, y + BAR / 2, words, size=TEXT, colour=MUTED, ha="right")
    _draw_jobs(canvas, chart, top, px)
    for stage, _, _ in chart.stuck:
        since = max((job.end for job in chart.jobs if job.stage == stage), default=0.0)
        y = top + ROW * stage + BAR / 2
        canvas.line([(px(since), y), (px(length), y)], colour=GRADIENT.colour, line=4, dashed=True)
    y = top + ROW * chart.stages + 6
    for tick in round_steps(0, chart.length, 8):
        canvas.text(px(tick), y, f"{tick:g}", size=TEXT, colour=MUTED, ha="center")
    for row, line in enumerate(wrap(in_words(chart), INNER, size=TEXT)[:2]):
        canvas.text(MARGIN, bottom + 36 + LINE * row, line, size=TEXT, colour=MUTED)
    return canvas.finish(), describe(name, chart)


def _draw_jobs(canvas: Canvas, chart: Chart, top: float, px: Scale) -> None:
    for kind, look in (("F", STORAGE), ("B", GRADIENT)):
        boxes: list[Box] = []
        for job in chart.jobs:
            if job.kind != kind:
                continue
            left, right = px(job.start), px(job.end)
            y = top + ROW * job.stage
            boxes.append((left, y, right - left, BAR))
            if right - left >= 9 * len(str(job.micro)) + 3:
                words = str(job.micro)
                middle = (left + right) / 2
                canvas.text(middle, y + BAR / 2, words, size=TEXT, colour=look.on, ha="center")
        canvas.boxes(boxes, [look.colour] * len(boxes), edge=CARD, line=1)


def sentence(name: str, chart: Chart) -> str:
    """How much of the time nobody uses, as the figure's title."""
    if chart.stuck:
        stages = [str(stage) for stage, *_ in chart.stuck]
        if len(stages) == 1:
            return f"{name}: stage {stages[0]} waits for ever."
        return f"{name}: stages {listed(stages)} wait for ever."
    most = max(chart.held(stage) for stage in range(chart.stages))
    return (
        f"{name}: {chart.length:g} units, {chart.idle:.0%} idle; a stage remembers at most {most}."
    )


def in_words(chart: Chart) -> str:
    """How the chart is read, or who waits for what."""
    if chart.stuck:
        waits = (f"stage {stage} for what {kind}{k} needs" for stage, kind, k in chart.stuck)
        return f"Waiting: {', '.join(waits)}."
    return "Blue forward, red backward, with the number of the micro-batch; a forward takes 1 unit."


def describe(name: str, chart: Chart) -> str:
    """The alternative text: the order of each stage, and what it has to remember."""
    parts = []
    for stage in range(chart.stages):
        own = [f"{job.kind}{job.micro}" for job in chart.jobs if job.stage == stage]
        held = count(chart.held(stage), "micro-batch").replace("batchs", "batches")
        parts.append(f"Stage {stage}: {' '.join(own)}; it remembers at most {held}.")
    return f"A pipeline's schedule. {sentence(name, chart)} {in_words(chart)} {' '.join(parts)}"
