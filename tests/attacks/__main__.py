"""``python -m tests.attacks``: run the attacks and print what each tries and achieves."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tests.attacks.catalogue import Attack, every_attack
from tests.attacks.commit import commit
from tests.attacks.ground import Ground, Outcome
from tests.attacks.plain import PlainCourse


def main() -> None:
    """Run the chosen attacks and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("only", nargs="*", help="families, or words of a name (all by default)")
    parser.add_argument("--list", action="store_true", help="run nothing")
    parser.add_argument("--plain", action="store_true", help="also run them on plain nbgrader")
    args = parser.parse_args()
    chosen = [a for a in every_attack() if not args.only or any(w in str(a) for w in args.only)]
    console = Console(width=150)
    with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
        ground = Ground(Path(folder))
        plain = PlainCourse(ground, Path(folder) / "plain") if args.plain else None
        table = Table(title=f"{len(chosen)} attacks", title_justify="left")
        for column in ("family", "attack", "what it tries"):
            table.add_column(column, overflow="fold")
        if not args.list:
            table.add_column("here", overflow="fold")
        if plain:
            table.add_column("plain nbgrader", overflow="fold")
        for attack in track(chosen, "Attacking", console=Console(stderr=True)):
            row = [attack.family, attack.name, attack.tries]
            if not args.list:
                row.append(summary(attack, ground))
            if plain:
                row.append(plain.outcome(attack))
            table.add_row(*row)
        ground.close()
    console.print(table)
    counts = Counter(attack.family for attack in chosen)
    console.print(", ".join(f"{name} {count}" for name, count in counts.items()))


def summary(attack: Attack, ground: Ground) -> str:
    """Run an attack and return its result in a few words."""
    try:
        outcome = commit(attack, ground)
    except pytest.skip.Exception as why:
        return str(why)
    except Exception as error:
        return f"grading failed: {type(error).__name__}"
    return ", ".join([*points(attack, outcome), *ground.spilled(outcome)])


def points(attack: Attack, outcome: Outcome) -> list[str]:
    """Compare the points with those of the same answers without the attack, in words."""
    score, honest = sum(outcome.scores.values()), sum(attack.honest.values())
    if score > honest:
        by = "by a claim" if attack.gains else "by cheating"
        return [f"{score:g} points instead of {honest:g}, {by}"]
    return [f"loses {honest - score:g} points"] if score < honest else ["as honest"]


if __name__ == "__main__":
    main()
