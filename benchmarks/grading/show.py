"""Print the measured numbers as tables, with the aims beside them."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.grading.runs import Run

PLAIN, BATCH, TWO = "plain nbgrader", "hood grade, 1 worker", "hood grade, 2 workers"
SPEEDUP = {True: 6, False: 30}  # aims, for a lab that compiles and for others
CPU_AIM, MEMORY_AIM, RECORD_AIM = 100, 50, 20  # ms, MB, ms


def show(console: Console, figures: dict[str, Any]) -> None:
    """Print everything."""
    machine = figures["machine"]
    console.print(
        f"{machine['processors']} processors, load {machine['load before']} before the run, "
        f"Python {machine['python']}, torch {machine['torch']}; {figures['seconds']} s in all"
        + ("; a quick run, so the numbers are rough" if machine["quick"] else "")
    )
    for lab in figures["labs"]:
        _runs(console, lab)
        _aims(console, lab)
    _classes(console, figures["classes"])


def _runs(console: Console, lab: dict[str, Any]) -> None:
    table = _table(
        f"{lab['lab']}: a class that repeats the same {lab['distinct']} submissions",
        *("", "submissions", "seconds", "a minute", "CPU ms each", "ms for one more", "of CPU"),
    )
    for name, found in _read(lab).items():
        for run in found:
            more = run.beyond(found[0])
            each = ("", "")
            if more.count > 0:
                each = (
                    f"{1e3 * more.seconds / more.count:.0f}",
                    f"{1e3 * more.cpu / more.count:.0f}",
                )
            cells = (run.count, f"{run.seconds:.1f}", f"{run.per_minute:.0f}")
            table.add_row(name, *map(str, cells), f"{1e3 * run.cpu / run.count:.0f}", *each)
    console.print(table)


def _aims(console: Console, lab: dict[str, Any]) -> None:
    runs, pure = _read(lab), lab["cells"]
    few, many = runs[PLAIN]
    more = many.beyond(few)
    batch = runs[BATCH][1].beyond(runs[BATCH][0])
    table = _table(f"{lab['lab']}: aims", "", "measured", "aim")
    for name, run in _classes_graded(runs):
        plain = Run(run.count, few.seconds + (run.count - few.count) * more.seconds / more.count, 0)
        table.add_row(
            f"throughput relative to plain nbgrader, a class of {run.count}: {name}",
            f"{plain.seconds / run.seconds:.1f}",
            f">= {SPEEDUP[lab['compiles']]}",
        )
    table.add_row(
        "the cells' own time, ms: clock / CPU",
        f"{1e3 * pure['seconds']:.0f} / {1e3 * pure['cpu']:.0f}",
        "",
    )
    drawn = lab["cells with pictures"]
    table.add_row(
        "the cells' own time with pictures, as in plain nbgrader, ms: clock / CPU",
        f"{1e3 * drawn['seconds']:.0f} / {1e3 * drawn['cpu']:.0f}",
        "",
    )
    for name, found in ((PLAIN, more), ("hood grade", batch)):
        own = drawn if name == PLAIN else pure
        over = 1e3 * (found.seconds / found.count - own["seconds"])
        over_cpu = 1e3 * (found.cpu / found.count - own["cpu"])
        aim = f"CPU <= {CPU_AIM}" if name != PLAIN else ""
        what = f"{name}: ms for one more submission, beyond its cells' own time"
        pictures = " with pictures" if name == PLAIN else ""
        table.add_row(f"{what}{pictures}: clock / CPU", f"{over:.0f} / {over_cpu:.0f}", aim)
    size = lab["bytes of a further kernel"] / 1e6
    table.add_row("memory of a further kernel, MB (PSS)", f"{size:.0f}", f"<= {MEMORY_AIM}")
    console.print(table)
    console.print(
        "The time of plain nbgrader for a class of that size is computed from its runs of "
        f"{few.count} and {many.count} submissions. These runs give the time of its start, and the "
        "time for each submission. The cells' own time is measured in one ordinary kernel that is "
        "already warm. This kernel runs the hidden cells, too.\n"
    )


def _classes_graded(runs: dict[str, list[Run]]) -> list[tuple[str, Run]]:
    return [(name, run) for name in (BATCH, TWO) for run in runs.get(name, [])[name == BATCH :]]


def _classes(console: Console, found: list[dict[str, float]]) -> None:
    table = _table(
        "Large classes: more submissions, whose execution is replayed",
        *("class of", "ms to record one", "ms for one, whole command", "aim to record"),
    )
    for one in found:
        cells = f"{one['size']:,}", f"{one['record']:.1f}", f"{one['whole']:.0f}"
        table.add_row(*cells, f"<= {RECORD_AIM}")
    console.print(table)


def _read(lab: dict[str, Any]) -> dict[str, list[Run]]:
    return {name: [Run(**run) for run in found] for name, found in lab["runs"].items()}


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table
