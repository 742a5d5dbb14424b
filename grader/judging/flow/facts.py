"""The results of an analysis, and what is known while it runs."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grader.judging.flow.syntax import position, shorten
from grader.judging.flow.values import (
    IS_FOREIGN,
    IS_PLAIN,
    NOTHING,
    Arguments,
    KeptValue,
    OwnClass,
    OwnFunction,
    Path,
    Scope,
)
from grader.judging.learner_source import Written
from utils.checks.exercise import ByHand


@dataclass(frozen=True)
class Use:
    """Something of a library that the code uses.

    Attributes:
        path: its dotted path, such as ``torch.softmax``; for an attribute of a value ``.softmax``.
        line: a number that orders uses by their place in a cell.
        kept: whether another cell called it and the answer only reads the result.
    """

    path: str
    line: int
    kept: bool = False


@dataclass(frozen=True)
class Hidden:
    """Code that cannot be analysed.

    Attributes:
        code: the piece of code.
        why: the reason, as a relative clause that follows the code in a sentence.
        line: a number that orders such code by its place in a cell.
    """

    code: str
    why: str
    line: int = 0


@dataclass(frozen=True)
class Reading:
    """The result of an analysis: what the code behind a name uses, in order of place."""

    uses: tuple[Use, ...]
    hidden: tuple[Hidden, ...]


class Facts:
    """What is known of the learner's code while it is analysed.

    Attributes:
        written: the cells that ran.
        name: the name of the function, class or value whose code is analysed.
        rule: the rule of the exercise.
        handed: the possible values of what the grader passes.
        hostile: returns why code that uses a path cannot be analysed; empty if it can.
        values: possible values by key: ``("global", unit, name)``, ``("declared", name)``,
            ``(scope, name)``, ``(class or function, attribute)``, ``(box, index)`` and
            ``("returns", function)``. The index or attribute ``*`` stands for any, ``KEYS`` for the
            keys of a container.
        notebook: the outermost scope.
        functions: the learner's functions by their node's identity; scopes and classes likewise.
        reached: the units that belong to the code behind the name, in the order in which they were
            found.
        fillers: other units, which may put something into a container that this code reads.
        now: the unit at the outermost level that runs; None in a function.
        early: whether the function that runs is called while the cells run.
        reporting: whether uses are reported: in the last pass only.
        quiet: whether the code that runs is no part of the answer, so that nothing is reported.
        changed: whether this pass found something new.
        uses: the uses reported, each once; ``hidden`` likewise.
        own_names: attributes that classes of the learner define.
    """

    def __init__(
        self, written: Written, name: str, rule: ByHand, hostile: Callable[[str], str]
    ) -> None:
        self.written, self.name, self.rule, self.hostile = written, name, rule, hostile
        self.handed = IS_FOREIGN if rule.tensors else IS_PLAIN
        self.values: dict[Any, frozenset] = {}
        self.notebook = Scope("notebook")
        self.functions: dict[int, OwnFunction] = {}
        self.scopes: dict[int, Scope] = {}
        self.classes: dict[Any, OwnClass] = {}
        self.reached: dict[int, None] = {}
        self.fillers: dict[int, None] = {}
        self.now: int | None = None
        self.early = False
        self.reporting = self.quiet = self.changed = False
        self.uses: dict[Use, None] = {}
        self.hidden: dict[Hidden, None] = {}
        self.own_names: set[str] = set()

    def put(self, key: Any, values: frozenset) -> None:
        """Add possible values for a key, and note whether any of them is new."""
        old = self.values.get(key, NOTHING)
        if not values <= old:
            self.values[key] = old | values
            self.changed = True

    def get(self, key: Any) -> frozenset:
        """Return the possible values for a key."""
        return self.values.get(key, NOTHING)

    def report_use(self, path: str, node: Any, *, kept: bool = False) -> None:
        """Report the use of something of a library."""
        if self.reporting and not self.quiet:
            self.uses[Use(path, position(node), kept)] = None

    def report_hidden(self, node: ast.AST, why: str) -> None:
        """Report code that cannot be analysed."""
        if self.reporting and not self.quiet:
            self.hidden[Hidden(shorten(node), why, position(node))] = None

    def report_values(self, values: frozenset, node: ast.AST) -> frozenset:
        """Report those of some values that belong to a library, and return all of them."""
        if self.reporting and not self.quiet:
            for value in values:
                if isinstance(value, Path):
                    why = self.hostile(value.name)
                    if why:
                        self.report_hidden(node, why)
                    else:
                        self.report_use(value.name, node)
                elif isinstance(value, KeptValue):
                    self.report_use(value.path, node, kept=True)
        return values

    def call_value(
        self, callee: Any, args: Arguments, scope: Scope, node: ast.AST | None
    ) -> frozenset:
        """Return what a call of a value returns; :class:`grader.judging.flow.calls.Calls` does."""
        raise NotImplementedError
