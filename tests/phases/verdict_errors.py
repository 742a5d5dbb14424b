"""How often a verdict is wrong: judge the answers of each exercise, and write the page about it.

``python -m tests.phases.verdict_errors 01 02`` judges the answers of two labs: those beside the
checks, those of the banks, and mutants. It prints each exercise's row. With ``--write`` it puts
each row into ``verdict_errors.csv`` at once, and makes the tables of the page from all rows there.
It skips an exercise that was judged on enough seeds if nothing on which its row depends has changed
since. So a run that was stopped continues at the same place.

Exercises that take long (:mod:`tests.phases.dear`) are judged on one seed, with a few mutants
that the seed selects. Their rows say so.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import datetime
import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, starmap
from pathlib import Path

from hood import UserError
from hood.atomic_files import write_whole
from hood.authoring.proof import claims
from hood.authoring.proof.mutants import rights, survey
from hood.authoring.proof.mutate import mutants
from hood.authoring.proof.quiet import quiet
from hood.authoring.proof.selftest import SAID, LabCode, add_selection, prove, selection
from hood.judge.checks.exercise import Check
from hood.phase_paths import ROOT, PhasePaths, phases
from tests.phases import dear
from tests.phases.bank import ANSWERS, BANKS, read

PAGE = "docs/explanation/verdict-errors.md"
COMMAND = "python -m tests.phases.verdict_errors --write"
BEGIN, END = f"<!-- `{COMMAND}` makes what follows -->\n", "<!-- end of the tables -->\n"
RECORD = Path(__file__).with_name("verdict_errors.csv")
COUNTS = Path(__file__).with_name("counts.csv")
SEEDS = 3
# How many mutants are judged of an exercise that takes long, and of an exercise in `dear.DEAREST`.
DRAWN, DRAWN_OF_DEAREST = 40, dear.MUTANTS
# The code on which an exercise's row depends, in addition to the exercise's phase and bank.
DECIDES = "hood/judge", "hood/authoring/proof", "utils", "lock"
NOT_YET = "not measured yet"
ANSWERED = (
    *("author's right refused", "others' right refused", "others' right once refused"),
    *("author's wrong misjudged", "others' wrong let through", "others' wrong once let through"),
    *("mutants noticed", "said to be equal", "missed"),
)
HEAD = *ANSWERED, *claims.HEAD[1:]


@dataclasses.dataclass(frozen=True)
class Row:
    """The results of one exercise."""

    lab: str
    exercise: str
    date: str
    commit: str  # the last one that changed what decides the row; a + if files changed since
    seeds: int
    seconds: int
    right: int  # alternates, and the lab's solution
    wrong: int  # misconceptions
    right_of_others: int  # in the bank
    wrong_of_others: int
    changes: int  # all possible mutants
    mutants: int  # judged mutants
    equal: int  # judged mutants that earned all points and are listed as making no difference
    points: float
    not_run: float  # points of the parts that this machine can't run
    on_claims: float
    on_rules: float
    on_either: float
    # The names of answers that got a wrong verdict on at least one seed.
    refused: tuple[str, ...] = ()
    misjudged: tuple[str, ...] = ()
    refused_of_others: tuple[str, ...] = ()
    let_through_of_others: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()  # mutants that earned all points, without a listed reason

    def cells(self) -> dict[str, str]:
        """Return the row's cells in the record. Each name is on its own line."""
        found = dataclasses.asdict(self)
        return {k: "\n".join(v) if isinstance(v, tuple) else f"{v}" for k, v in found.items()}

    @classmethod
    def of(cls, cells: Mapping[str, str]) -> Row:
        kinds = {"int": int, "float": float, "str": str}
        return cls(
            **{
                field.name: kinds[field.type](cells[field.name])
                if field.type in kinds
                else tuple(cells[field.name].splitlines())
                for field in dataclasses.fields(cls)
            }
        )


def recorded() -> dict[tuple[str, str], Row]:
    """Return the rows of the record, by lab and exercise."""
    if not RECORD.exists():
        return {}
    with RECORD.open(encoding="utf-8", newline="") as file:
        rows = [Row.of(cells) for cells in csv.DictReader(file)]
    return {(row.lab, row.exercise): row for row in rows}


def record(row: Row) -> None:
    """Put a row into the record, in place of the exercise's earlier row."""
    rows = recorded() | {(row.lab, row.exercise): row}
    text = io.StringIO()
    names = [field.name for field in dataclasses.fields(Row)]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows[key].cells() for key in sorted(rows))
    write_whole(RECORD, text.getvalue().encode())


def measure(phase: PhasePaths, check: Check, seeds: Sequence[str]) -> Row:
    """Judge the answers to an exercise, and its mutants."""
    began = time.monotonic()
    lab, bank = LabCode.read(phase.lab), BANKS[phase.number]
    of_others = list(bank.of(check.name))
    right = [answer for answer in of_others if answer.right]
    of_author: dict[str, None] = {}
    misjudged: dict[str, None] = {}
    wrong_verdicts: dict[tuple[bool, str], None] = {}
    with quiet():
        for seed in seeds:
            for fault in prove(check, seed, lab).faults:
                if fault.kind == "reference":
                    raise UserError(f"{fault}; without a reference no answer can be judged")
                found = of_author if fault.kind in ("alternate", "solution") else misjudged
                found[fault.name or SAID[fault.kind]] = None
            for answer in of_others:
                if bank.earns_everything(answer, seed) != answer.right:
                    wrong_verdicts[answer.right, answer.name] = None
        mutated = survey(check, seeds, phase.lab, most=_most(check))
        lacking = check.not_run()
        rests = claims.Count() if lacking else claims.count(check, seeds[0])
    missed = (f"{trial.place()}: {trial.mutant}" for trial in mutated.survivors)
    return Row(
        phase.name,
        check.name,
        datetime.datetime.now(datetime.UTC).date().isoformat(),
        commit(phase),
        len(seeds),
        round(time.monotonic() - began),
        right=len(check.alternates) + 1,
        wrong=len(check.misconceptions),
        right_of_others=len(right),
        wrong_of_others=len(of_others) - len(right),
        changes=sum(len(list(mutants(r.cell, r.lines))) for r in rights(check, phase.lab)),
        mutants=mutated.made,
        equal=len(mutated.equivalent),
        points=check.points,
        not_run=sum(check.parts[part] for part in lacking),
        on_claims=rests.claims,
        on_rules=rests.rules,
        on_either=rests.either,
        refused=tuple(of_author),
        misjudged=tuple(misjudged),
        refused_of_others=tuple(name for is_right, name in wrong_verdicts if is_right),
        let_through_of_others=tuple(name for is_right, name in wrong_verdicts if not is_right),
        missed=tuple(" ".join(text.split()) for text in missed),
    )


def _most(check: Check) -> int:
    """Return how many mutants are judged; 0 means all of them."""
    if check.name in dear.DEAREST:
        return DRAWN_OF_DEAREST
    return DRAWN if check.name in dear.EXERCISES else 0


def _decides(phase: PhasePaths) -> list[str]:
    own = phase.folder, ANSWERS / phase.number
    return [*DECIDES, *(path.relative_to(ROOT).as_posix() for path in own)]


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)


def commit(phase: PhasePaths) -> str:
    """Return the last commit that a row depends on, with a + if files have changed since then."""
    last = _git("log", "-1", "--format=%h", "--abbrev=10", "--", *_decides(phase))
    if last.returncode:
        raise UserError(
            f"{ROOT} has no Git history, and the page names a commit. Clone the repository with Git"
        )
    changed = _git("status", "--porcelain", "--", *_decides(phase)).stdout.strip()
    return last.stdout.strip() + ("+" if changed else "")


def is_fresh(row: Row | None, phase: PhasePaths, seeds: int) -> bool:
    """Return whether a row has enough seeds, and nothing on which it depends has changed since."""
    if row is None or row.seeds < seeds or row.commit.endswith("+"):
        return False
    return row.commit == commit(phase)


def slipped(lab: str, exercise: str) -> Iterator[tuple[bool, str]]:
    """Yield (right, name) for each answer that was once misjudged."""
    entries = read(ANSWERS / lab[:2] / f"{exercise}.toml")
    for kind in ("right", "wrong"):
        for name, entry in entries.get(kind, {}).items():
            if entry.get("slipped"):
                yield kind == "right", name


@cache
def _told_once() -> Mapping[tuple[str, str], tuple[int, int]]:
    with COUNTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row["lab"], row["exercise"]): (int(row["right"]), int(row["wrong"])) for row in rows}


def written(lab: str, exercise: str) -> tuple[int, int]:
    """Return how many right and wrong answers a bank had before some were taken out.

    A bank that is not in ``counts.csv`` still has all its answers.
    """
    entries = read(ANSWERS / lab[:2] / f"{exercise}.toml")
    now = len(entries.get("right", {})), len(entries.get("wrong", {}))
    return _told_once().get((lab[:2], exercise), now)


def tables(rows: Mapping[tuple[str, str], Row]) -> str:
    """Return the part of the page that is made from the record."""
    labs = {phase: BANKS[phase.number].exercises for phase in phases() if phase.lab.exists()}
    of_labs = {
        phase: [rows[phase.name, name] for name in names if (phase.name, name) in rows]
        for phase, names in labs.items()
    }
    rests = claims.rows_of((ROOT / claims.PAGE).read_text(encoding="utf-8"))
    every = list(chain.from_iterable(of_labs.values()))
    of_all = (
        "**all labs**",
        every,
        sum(map(len, labs.values())),
        sum(rests.values(), claims.Count()),
    )
    summary = [
        (f"[{phase.name}](#{phase.name})", of_labs[phase], len(names), rests[phase.name])
        for phase, names in labs.items()
    ]
    lines = [
        (title, f"{len(found)} of {number}", *_counts(found, percent=True), *_points(points))
        for title, found, number, points in (*summary, of_all)
    ]
    told = f"{_wrong_now(every)}\n{_once_of_all(labs)}"
    text = f"{told}\n{_table(('lab', 'exercises measured', *HEAD), lines)}"
    for phase, names in labs.items():
        text += f"\n### {phase.name}\n\n{_measured(of_labs[phase])}\n\n"
        lines = []
        for name in names:
            found = [row for row in of_labs[phase] if row.exercise == name]
            links = f"[author]({_beside(phase.name, name)}), [others]({_bank(phase.name, name)})"
            seeds, points = ([""], [""] * 3) if not found else _of_one(found[0])
            lines.append((f"{name}: {links}", *seeds, *_counts(found), *points))
        text += _table(("exercise", "seeds", *HEAD), lines)
        text += "".join(_once(phase, names))
    return text


def _of_one(row: Row) -> tuple[list[str], Sequence[str]]:
    """Return the cells of an exercise's seeds and points."""
    if row.not_run:
        return [f"{row.seeds}"], ["not run here"] * 3
    count = claims.Count(row.points, row.on_claims, row.on_rules, row.on_either)
    return [f"{row.seeds}"], _points(count)


def _points(count: claims.Count) -> list[str]:
    """Return the cells of the columns about points."""
    points, *rest = count.cells()
    return [f"{cell.partition(' ')[0]} of {points}" for cell in rest]


def _counts(rows: Sequence[Row], percent: bool = False) -> list[str]:
    """Return the cells of the columns `ANSWERED`."""
    if not rows:
        return [NOT_YET, *[""] * (len(ANSWERED) - 1)]

    def all_of(number: str) -> int:
        return sum(getattr(row, number) for row in rows)

    def names(field: str) -> int:
        return sum(len(getattr(row, field)) for row in rows)

    once = [right for row in rows for right, _ in slipped(row.lab, row.exercise)]
    right, wrong = map(sum, zip(*(written(row.lab, row.exercise) for row in rows), strict=True))
    judged, equal, missed, changes = (
        *map(all_of, ("mutants", "equal")),
        names("missed"),
        all_of("changes"),
    )
    noticed = judged - equal - missed
    drawn = f", sampled from {changes}" if judged < changes else ""
    share = f" ({100 * noticed / judged:.1f} %)" if percent else ""
    return [
        f"{names('refused')} of {all_of('right')}",
        f"{names('refused_of_others')} of {all_of('right_of_others')}",
        f"{once.count(True)} of {right}",
        f"{names('misjudged')} of {all_of('wrong')}",
        f"{names('let_through_of_others')} of {all_of('wrong_of_others')}",
        f"{once.count(False)} of {wrong}",
        f"{noticed} of {judged}{drawn}{share}",
        f"{equal}",
        f"{missed}",
    ]


def _measured(rows: Sequence[Row]) -> str:
    """Return the sentences that say when and at which commit a lab was measured."""
    if not rows:
        return f"This lab is {NOT_YET}."
    commits: dict[str, None] = {f"on {row.date} at commit `{row.commit}`": None for row in rows}
    said = f"Measured {', and '.join(commits)}, in {sum(row.seconds for row in rows)} seconds."
    not_run = [f"{row.exercise} ({row.not_run:g} of {row.points:g})" for row in rows if row.not_run]
    if not_run:
        said += f" Points of parts that could not be run on this machine: {', '.join(not_run)}."
    return said


def _wrong_now(rows: Sequence[Row]) -> str:
    """Return a list of the answers that get a wrong verdict today, with their files."""
    words = {
        "refused": "the author's right answer {name} is refused",
        "misjudged": "the author's wrong answer {name} gets the wrong points or the wrong name",
        "refused_of_others": "the right answer {name} is refused",
        "let_through_of_others": "the wrong answer {name} earns all points",
        "missed": "the mutant {name} earns all points",
    }
    lines = []
    for row in rows:
        for field, said in words.items():
            place = _bank if field.endswith("of_others") else _beside
            file = place(row.lab, row.exercise)
            for name in getattr(row, field):
                what = said.format(name=_shown(name))
                lines.append(f"- {row.lab}, [{row.exercise}]({file}): {what}.\n")
    if not lines:
        return "Today the checks judge all these answers correctly, and no mutant is missed.\n"
    return f"These answers are judged wrongly today:\n\n{''.join(lines)}"


def _once_of_all(labs: Mapping[PhasePaths, Sequence[str]]) -> str:
    """Return how many answers of all banks were once misjudged."""
    every = [(phase.name, name) for phase, names in labs.items() for name in names]
    once = [right for place in every for right, _ in slipped(*place)]
    said = []
    for right, total in zip(
        (True, False), map(sum, zip(*starmap(written, every), strict=True)), strict=True
    ):
        number = once.count(right)
        said.append(f"{number} of {total} {{}} ({100 * number / total:.1f} %)")
    right, wrong = said
    return (
        "Before they were changed, the checks misjudged some answers of the banks. They refused "
        f"{right.format('right answers')}, and let through {wrong.format('wrong answers')}.\n"
    )


def _once(phase: PhasePaths, names: Sequence[str]) -> Iterator[str]:
    """Yield a list of the answers of a lab that were once misjudged."""
    some = {name: list(slipped(phase.name, name)) for name in names}
    if not any(some.values()):
        return
    yield "\nThe checks once misjudged these answers:\n\n"
    for name, answers in some.items():
        file = _bank(phase.name, name)
        for was_right, said in (
            (True, "the check once refused {} right answer{}"),
            (False, "the check once let through {} wrong answer{}"),
        ):
            if found := [_shown(answer) for right, answer in answers if right == was_right]:
                kind = said.format(*(("this", "") if len(found) == 1 else ("these", "s")))
                yield f"- [{name}]({file}): {kind}: {'; '.join(found)}.\n"


def _shown(name: str) -> str:
    """Return a name in a form that Markdown shows unchanged; code in it stays code."""
    parts = name.split("`")
    parts[::2] = [re.sub(r"[*_\[\]<]", r"\\\g<0>", words) for words in parts[::2]]
    return f"“{'`'.join(parts)}”"


def _beside(lab: str, exercise: str) -> str:
    return f"../../phases/{lab}/answers/{exercise}.toml"


def _bank(lab: str, exercise: str) -> str:
    return f"../../tests/phases/answers/{lab[:2]}/{exercise}.toml"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [head, ["---", *["---:"] * (len(head) - 1)], *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def with_tables(content: str, rows: Mapping[tuple[str, str], Row]) -> str:
    """Return a page with new tables.

    Raises UserError if the page has no place for the tables.
    """
    before, found, rest = content.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        lines = f"{BEGIN.strip()!r} and {END.strip()!r}"
        raise UserError(f"{PAGE}: expected the lines {lines} around the tables")
    return f"{before}{BEGIN}\n{tables(rows)}\n{END}{after}"


def main(argv: Sequence[str]) -> int:
    """Measure exercises, print and record their rows, write the page; return 1 after an error."""
    parser = argparse.ArgumentParser(prog=COMMAND.rpartition(" ")[0], description=__doc__)
    add_selection(parser, seeds=SEEDS, prefix="errors")
    said = f"record the measurements, and write the tables of {PAGE}"
    parser.add_argument("--write", action="store_true", help=said)
    parser.add_argument(
        "--page", action="store_true", help="write the tables from the record, without measuring"
    )
    args = parser.parse_args(argv)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    depth, failed = sys.getrecursionlimit(), False
    chosen, seeds = selection(args, ROOT)
    for phase, checks in () if args.page else chosen:
        for check in checks:
            some = seeds[:1] if check.name in dear.EXERCISES else seeds
            last = recorded().get((phase.name, check.name))
            if args.write and is_fresh(last, phase, len(some)):
                print(f"{phase.name}, {check.name}: unchanged since the last measurement")
                continue
            try:
                row = measure(phase, check, some)
            except UserError as error:  # the other exercises are still measured
                print(error, file=sys.stderr)
                failed = True
                continue
            sys.setrecursionlimit(depth)  # an answer may have raised it
            print("; ".join(f"{k} {v!r}" for k, v in row.cells().items()), flush=True)
            if args.write:
                record(row)
    if args.write or args.page:
        page = ROOT / PAGE
        page.write_text(with_tables(page.read_text(encoding="utf-8"), recorded()), encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UserError as error:
        sys.exit(str(error))
