"""Find the best launch of the softmax for each shape on the GPU at hand.

Prints and writes rules in the form of `TABLE` in utils/softmax/launch.py, to be pasted there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, product
from typing import Any

import torch

from benchmarks.context import Context
from benchmarks.softmax_timing import DIRECTIONS, MOVES, SHAPES, bind, error, inputs, release
from benchmarks.timing import input_sets, measure
from utils.softmax import run
from utils.softmax.launch import ANY, Direction, Launch, Rule, choose, power_of_two

# These widths lie between the listed widths, so that every rule comes from a measurement.
TUNED = (*SHAPES, (16384, 2048), (8192, 8192), (4096, 16384))
DRY_TUNED = ((2, 60), (6, 60), (2, 300))
DTYPES = {2: torch.bfloat16, 4: torch.float32}  # by bytes per element; float64 isn't tuned
THREAD_HOLDS = (4, 64)  # the fewest and the most elements of a tile for one thread
WIDEST = 32768  # columns that one program may take at once
DRY_WIDEST = 64
NOISE = 1.02  # a launch that is less than 2 % slower counts as equally fast


@dataclass(frozen=True)
class Best:
    """The fastest launch for a shape."""

    rows: int
    columns: int
    launch: Launch
    seconds: float


def tune_section(context: Context) -> dict[str, Any]:
    """Measure all launches; keep every measured time, and the resulting rules."""
    shapes = DRY_TUNED if context.dry_run else TUNED
    result: dict[str, Any] = {"measured": [], "rules": ""}
    texts = []
    for direction, (itemsize, dtype) in product(DIRECTIONS, DTYPES.items()):
        found = []
        for shape in shapes:
            times = sweep(context, shape, dtype, direction)
            release()
            if not times:
                context.fail(f"no launch runs {shape} in {dtype}, {direction}")
                continue
            before = choose(direction, itemsize, *shape)
            launch = best(times, before)
            found.append(Best(*shape, launch, times[launch]))
            context.say(
                f"{direction} {itemsize} bytes {shape[0]:>6} x {shape[1]:<6} best of {len(times)}: "
                f"{source(launch)} {times[launch] * 1e6:.1f} us, the table's {source(before)} "
                f"{times.get(before, float('nan')) * 1e6:.1f} us"
            )
            result["measured"] += [
                {
                    "direction": direction,
                    "itemsize": itemsize,
                    "rows": shape[0],
                    "columns": shape[1],
                    "seconds": seconds,
                    **asdict(candidate),
                }
                for candidate, seconds in times.items()
            ]
            context.keep(result, complete=False)
        texts.append(rules_source(direction, itemsize, rules(found)))
    result["rules"] = "".join(texts)
    context.write("tuned_rules.txt", result["rules"])
    print(f"\nFor TABLE in utils/softmax/launch.py:\n\n{result['rules']}")
    return result


def best(times: Mapping[Launch, float], before: Launch) -> Launch:
    """Return the fastest launch, or the table's launch if that is nearly as fast."""
    fastest = min(times, key=times.get)  # type: ignore[arg-type]
    return before if times.get(before, float("inf")) <= NOISE * times[fastest] else fastest


def candidates(shape: tuple[int, int], dry_run: bool = False) -> Iterator[Launch]:
    """Yield the launches that are worth a try for a shape."""
    rows, columns = shape
    block = power_of_two(columns)
    warps = (1,) if dry_run else (1, 2, 4, 8, 16, 32)
    if block <= (DRY_WIDEST if dry_run else WIDEST):
        for per_program, count in product((1, 2, 4, 8), warps):
            if per_program <= min(rows, max(1, 4096 // block)) and fits(per_program * block, count):
                yield Launch(False, per_program * block, count)
    tiles = (16, 32) if dry_run else (4096, 8192, 16384, 32768, 65536)
    for tile, count in product(tiles, warps[-3:]):
        if columns > tile and fits(tile, count):
            yield Launch(True, tile, count)


def fits(tile: int, warps: int) -> bool:
    """Return whether a thread gets a sensible number of elements."""
    return tile <= 64 or THREAD_HOLDS[0] <= tile / (32 * warps) <= THREAD_HOLDS[1]


def sweep(
    context: Context, shape: tuple[int, int], dtype: torch.dtype, direction: Direction
) -> dict[Launch, float]:
    """Return the seconds of each candidate that runs and agrees with float64."""
    function = run.forward if direction == "forward" else run.backward
    moved = MOVES[direction] * shape[0] * shape[1] * dtype.itemsize
    count = input_sets(moved, context.cache_bytes, context.free_bytes())
    sets = [inputs(shape, dtype, direction, context.device) for _ in range(count)]
    table = choose(direction, dtype.itemsize, *shape)
    tried = dict.fromkeys(
        [*candidates(shape, context.dry_run), *([] if context.dry_run else [table])]
    )
    times: dict[Launch, float] = {}
    for launch in tried:

        def call(*arguments: torch.Tensor, launch: Launch = launch) -> torch.Tensor:
            return function(*arguments, launch)

        try:
            wrong = error(call, sets[0], direction)
        except Exception as refused:  # for example, too many registers; another candidate will work
            context.say(f"{shape} {source(launch)}: {type(refused).__name__}: {refused}"[:200])
            continue
        if wrong > 1:
            context.fail(f"{shape} {dtype} {source(launch)}: {wrong:.3g} times the allowed error")
            continue
        calls = {"it": [bind(call, arguments) for arguments in sets]}
        times[launch] = measure(calls, context.device, max(2e-6, moved / 5e12))["it"].seconds
    return times


def rules(found: Sequence[Best]) -> list[Rule]:
    """Return rules. A measured shape gets its best launch, any other shape a neighbour's launch.

    Widths that are padded to the same power of two form a class. The widest class also applies to
    larger widths. In a class, the rule for the largest number of rows also applies to more rows.
    """
    result: list[Rule] = []
    ordered = sorted(found, key=lambda best: (power_of_two(best.columns), best.rows))
    classes = [list(group) for _, group in groupby(ordered, lambda b: power_of_two(b.columns))]
    for group in classes:
        columns = ANY if group is classes[-1] else power_of_two(group[0].columns)
        for best, after in zip(group, [*group[1:], None], strict=True):
            if after is None or after.launch != best.launch:
                result.append(Rule(ANY if after is None else best.rows, columns, best.launch))
    return result


def rules_source(direction: Direction, itemsize: int, found: Sequence[Rule]) -> str:
    """Return rules as an entry of `TABLE`, as Python."""
    lines = "".join(
        f"        Rule({number(rule.rows)}, {number(rule.columns)}, {source(rule.launch)}),\n"
        for rule in found
    )
    return f'    ("{direction}", {itemsize}): (\n{lines}    ),\n'


def source(launch: Launch) -> str:
    return f"{'_loop' if launch.loop else '_rows'}({launch.tile}, {launch.warps})"


def number(value: float) -> str:
    return "ANY" if value == ANY else str(value)
