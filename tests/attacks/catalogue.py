"""How an attack is written down, and the list of all of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.attacks.work import Work

FAMILIES = (
    "metadata",
    "kernel",
    "patches",
    "rules",
    "link",
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

# What the lazy learner has right (``twice``) and wrong (all else).
HONEST = {"twice": 2.0, "row_sums": 0.0, "corner": 0.0}


@dataclass(frozen=True)
class Attack:
    """One hostile submission.

    Attributes:
        family: the module that it stands in.
        name: the function's name, with spaces.
        tries: what it tries, in a sentence.
        change: makes it out of the lazy learner's submission.
        honest: points that the same answers earn without the attack.
        earns: points that it earns: never more than ``honest`` in all, less where it harms itself.
        risks: exercises whose points it may lose as well, by chance.
        tells: a pattern that the notes, the verdicts or the outputs must match afterwards.
        gains: exercises whose points it gets because they rest on a claim of the learner's own
            process, and whose verdict says so.
        dangerous: outside of a sandbox it would harm this machine, or read what is not its own.
        cell_seconds: the lab's limit: short where nothing but the limit ends it, long where
            something else does.
        seconds: at most so long, and as long again as some honest submissions take just then.
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
    """Collects the attacks of one module."""

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
        """Decorator: the function makes the submission, its docstring says what it tries.

        Args:
            honest: what its answers earn without the attack, where they are not the lazy ones.
            costs: exercises that the attack itself ruins.
            gains: points of exercises that rest on a claim.
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
    """All attacks, family by family."""
    modules = [importlib.import_module(f"tests.attacks.{name}") for name in FAMILIES]
    return [attack for module in modules for attack in module.family.attacks]
