"""The form in which attacks are defined, and the list of all attacks."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.attacks.submission import Work

FAMILIES = (
    "metadata",
    "kernel",
    "patches",
    "rules",
    "connection",
    "costs",
    "lies",
    "reading",
    "escape",
    "folder",
    "exhaustion",
    "endings",
    "files",
    "feedback",
)

# The points of the lazy learner, who answers only ``twice`` rightly.
HONEST = {"twice": 2.0, "row_sums": 0.0, "corner": 0.0}


@dataclass(frozen=True)
class Attack:
    """One hostile submission.

    Attributes:
        family: the name of its module.
        name: the function's name, with spaces.
        tries: what it tries, in a sentence.
        change: makes the attack from the lazy learner's submission.
        honest: points that the same answers earn without the attack.
        earns: points that the attack earns: as many as ``honest``; fewer if the attack harms
            itself, and more only in ``gains``.
        risks: exercises whose points the attack may lose by chance.
        tells: a pattern that the notes, the verdicts or the outputs must match afterwards.
        gains: exercises whose points the attack gets because these points depend on a claim of the
            learner's own process; the verdicts must list the claim.
        dangerous: whether it would harm this machine, or read secrets, outside of a sandbox.
        cell_seconds: the lab's time limit for a cell: short if only the limit ends the attack, long
            if something else does.
        seconds: the time that it may take, in addition to that of some honest submissions on the
            same machine.
    """

    family: str
    name: str
    tries: str
    change: Callable[[Work], None]
    honest: dict[str, float]
    earns: dict[str, float]
    risks: tuple[str, ...]
    tells: str
    gains: tuple[str, ...]
    dangerous: bool
    seconds: float
    cell_seconds: int

    def __str__(self) -> str:
        return f"{self.family}: {self.name}"


@dataclass
class Family:
    """The attacks of one module."""

    name: str
    attacks: list[Attack] = field(default_factory=list)

    def attack(
        self,
        *,
        honest: dict[str, float] | None = None,
        costs: tuple[str, ...] = (),
        risks: tuple[str, ...] = (),
        tells: str = "",
        gains: dict[str, float] | None = None,
        dangerous: bool = False,
        seconds: float = 15.0,
        cell_seconds: int = 2,
    ) -> Callable[[Callable[[Work], None]], Callable[[Work], None]]:
        """Decorate a function that makes a submission; its docstring says what the attack tries.

        See :class:`Attack` for the other arguments.

        Args:
            honest: points of its answers without the attack, if they differ from the lazy learner's
                points.
            costs: exercises whose points the attack itself loses.
            gains: points that it gets in exercises that depend on a claim.
        """
        points = HONEST | (honest or {})

        def add(change: Callable[[Work], None]) -> Callable[[Work], None]:
            self.attacks.append(
                Attack(
                    family=self.name,
                    name=change.__name__.replace("_", " "),
                    tries=" ".join((change.__doc__ or "").split()),
                    change=change,
                    honest=points,
                    earns=points | dict.fromkeys(costs, 0.0) | (gains or {}),
                    risks=risks,
                    tells=tells,
                    gains=tuple(gains or ()),
                    dangerous=dangerous,
                    seconds=seconds,
                    cell_seconds=cell_seconds,
                )
            )
            return change

        return add


def every_attack() -> list[Attack]:
    """Return all attacks, family by family."""
    modules = [importlib.import_module(f"tests.attacks.{name}") for name in FAMILIES]
    return [attack for module in modules for attack in module.family.attacks]
