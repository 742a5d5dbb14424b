"""Enforce the rules of exercises that must be solved by hand: what an answer may not use.

A rule (:class:`hood.judge.checks.exercise.ByHand`) is about what reaches the answer: the statements
that define it, every name that they use, and what replaces a thing of a library that they use. They
are read (:mod:`hood.judge.source.learner_source`); what stands elsewhere in the notebook costs
nothing. The rule applies to things of a library and to attributes of values, not to the learner's
own names. While the cases are played, the learner's process records what their code calls of torch,
whatever they call it by (:mod:`hood.judge.connection.rpc_server`). Cells that come with the lab are
trusted.

Each name that the answer uses must be accounted for. It is a builtin; or a cell that can be read
binds it; or a library has it of itself. What can't be accounted for is refused by that name: code
that is made while it runs, what a cell bound without naming it, a function of torch that something
replaced, a file beside the notebook. The learner's process says which names got a new value while a
statement ran, and what modules have that they did not have of themselves
(:mod:`hood.judge.connection.originals`).

What can't be seen:

- The record, and what names stand for, are claims of the learner's process. What computes a name
  while a cell runs can replace what makes them: a deliberate act, in a cell that a person can read.
- The record hears torch's functions and methods alone: no NumPy, no classes such as
  ``torch.optim.SGD``, no ``torch.func``, and nothing inside of a call of torch, such as a
  ``backward``. These are read. So ``getattr(array, "str" + "ides")`` and
  ``for lib in [torch]: lib.optim.SGD`` are not seen.
- What was computed before the cases are played is read, and not heard. The reader follows names; it
  does not follow a container that is filled under another name.
- A name that the answer's code gives to an attribute of anything counts as its own on everything.
- Only what the rule names is forbidden, in families (``*backward*``): a function of a library that
  does the same work under a name that no pattern covers is accepted.
- Results that were typed in or computed elsewhere can't be told from computed ones. The cases are
  drawn anew for each grading, so such a table earns nothing by itself.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from hood.judge.checks.exercise import ByHand, Check
from hood.judge.source.accounting import (
    COMPUTED,
    COURSE,
    REPLACED,
    UNNAMED,
    Surroundings,
    Used,
    listed,
    refused,
)
from hood.judge.source.cell_names import Statement, Use, words
from hood.judge.source.learner_source import NOWHERE, LearnerSource

LIBRARIES = words("torch functorch numpy einops triton").union(COURSE.packages)


# Of a chain of things that replace each other; no lab needs more than one.
MOST_ROUNDS = 4


class RuleReader:
    """What one learner's code says against the rule of one check.

    ``source`` has the notebook's cells; None if unknown.
    """

    def __init__(
        self,
        check: Check,
        source: LearnerSource | None,
        around: Surroundings = Surroundings(),  # noqa: B008  # it is frozen
    ):
        self._check, self._source, self._around = check, source, around
        self._said: dict[str, str] = {}

    def refusal(self, of: str | None) -> str:
        """Return, in a sentence, why the answer, or one function ``of`` several, breaks the rule.

        It is empty if the answer keeps to the rule, if the check has no rule, or if the code is
        unknown.
        """
        rule, written, name = self._check.by_hand, self._source, of or self._check.name
        if rule is None or written is None:
            return ""
        if name not in self._said:
            try:
                said = _Reading(written, self._around, rule, _who(of), name).said()
            except RecursionError:
                said = _about_hidden(_who(of), name, "which is defined in too many steps")
            except Exception:  # no learner's code may end the grading
                said = _about_hidden(_who(of), name, "which could not be read")
            self._said[name] = f"{said}; {rule.because}" if said else ""
        return self._said[name]

    def heard(self, of: str | None, called: Mapping[str, int]) -> str:
        """Return the same of what the learner's process recorded.

        ``called`` has the lines in which it called functions and methods of torch, by their paths.
        """
        rule = self._check.by_hand
        if rule is None:
            return ""
        for path, line in called.items():
            if name := forbidden(rule, path):
                shown = path if f"`{name}`" in _who(of) else name
                return f"{_who(of)} called `{shown}` when it ran, in line {line}; {rule.because}"
        return ""


def forbidden(rule: ByHand, path: str, own: Any = ()) -> str:
    """Return the name by which a rule forbids something; empty if it does not.

    ``path`` is dotted, from the library on, or from a dot on for an attribute of a value; ``own``
    are attributes that the learner's own objects have.
    """
    root, *parts = path.split(".")
    if root == "builtins" or path.endswith(".?") or allowed(rule, path):
        return ""
    for part in reversed(parts) if root != "numpy" else ():
        named = any("." not in p and fnmatchcase(part, p) for p in rule.forbid_names)
        if named and (root or part not in own):
            return part
    return parts[-1] if any("." in p and fits(path, p) for p in rule.forbid_names) else ""


def can_be_heard(rule: ByHand | None) -> bool:
    """Return whether a rule forbids anything that the learner's process can record a call of.

    That is only torch's: there is nothing to hear where it is not loaded.
    """
    return rule is not None and "torch" in sys.modules and _forbids_of_torch(rule)


@lru_cache(maxsize=256)
def _forbids_of_torch(rule: ByHand) -> bool:
    torch: Any = sys.modules["torch"]
    heard = {
        "torch": torch._C._VariableFunctions,
        "torch.Tensor": torch.Tensor,
        "torch.nn.functional": torch.nn.functional,
    }
    paths = (f"{place}.{name}" for place, thing in heard.items() for name in dir(thing))
    return any(forbidden(rule, path) for path in paths)


def allowed(rule: ByHand, path: str) -> bool:
    """Return whether a rule allows a path explicitly, which overrides everything else."""
    return any(fits(path, pattern) for pattern in rule.allow_names)


def fits(path: str, pattern: str) -> bool:
    """Return whether a path matches a pattern, or is below a path that matches."""
    return fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}.*")


def _who(of: str | None) -> str:
    return f"`{of}`" if of else "your code"


class _Reading:
    """One answer, ``name``, and everything that reaches it."""

    def __init__(
        self, written: LearnerSource, around: Surroundings, rule: ByHand, who: str, name: str
    ):
        self._written, self._around, self._rule = written, around, rule
        self._who, self._name = who, name

    def said(self) -> str:
        """Return why it breaks the rule, in a sentence; empty if it does not.

        Raises RecursionError if too much is behind it.
        """
        written, rule, who = self._written, self._rule, self._who
        if written.lost or self._around.too_many:
            return _about_notebook(who, written.lost or "cells that replace too much of libraries")
        behind, stored = self._behind()
        if not behind:
            return _about_hidden(who, self._name, "which no cell defines where it could be read")
        own = frozenset[str]().union(*(one.gives for one, _, _ in behind))
        itself, trusted, _ = behind[0]  # which may be an import
        hidden = ""
        uses = [(use, one, given, at) for one, given, at in behind for use in one.uses]
        uses.insert(0, (Use(self._name, "", itself.node), itself, trusted, NOWHERE))
        paths = set[str]()
        for use, one, given, before in uses:
            for path in sorted(written.paths(use, before)):
                paths.add(path)
                if found := forbidden(rule, path, own):
                    shown = path.strip(".") if f"`{found}`" in who else found
                    code = shorten(use.node)
                    return f"{who} uses `{shown}`, in line {use.node.lineno}: `{code}`"
                if given or hidden or allowed(rule, path):
                    continue
                if why := listed(path) if use.stored else self._refused(path, use.node):
                    hidden = _about_hidden(who, one.text or shorten(use.node), why)
        for one, _, _ in behind:
            if one.unseen:
                names = ", ".join(sorted(self._wanted(one)))
                code = one.text or shorten(one.node)
                hidden = hidden or _about_hidden(who, code, UNNAMED.format(names))
        used = Used(paths)
        for path in sorted(self._around.replaced - stored):
            if used.touches(path) and not allowed(rule, path):
                hidden = hidden or _about_hidden(who, path, REPLACED)
        if hidden:
            return hidden
        if rule.max_lines is None or (count := written.lines_behind(self._name)) <= rule.max_lines:
            return ""
        return (
            f"{who} has {count} lines, without blank ones, comments and docstrings, and may "
            f"have {rule.max_lines}"
        )

    def _behind(self) -> tuple[list[tuple[Statement, bool, int]], set[str]]:
        """Return what is behind the answer, with statements that replace what it uses of a library.

        With it come the paths of all that cells replace.
        """
        written, patches, stored = self._written, list[tuple[int, str]](), set[str]()
        for place, (one, given, before) in enumerate(written.statements()):
            for use in () if given else one.uses:
                if use.stored:
                    paths = {path for path in written.paths(use, before) if path[:1] != "."}
                    patches += [(place, path) for path in paths]
                    stored |= paths
        behind, also = written.behind(self._name), set[int]()
        for _ in range(MOST_ROUNDS if patches else 0):
            used = Used(
                path for one, _, at in behind for u in one.uses for path in written.paths(u, at)
            )
            more = {place for place, path in patches if used.touches(path)} - also
            if not more:
                return behind, stored
            also |= more
            behind = written.behind(self._name, sorted(also))
        if patches:
            raise RecursionError
        return behind, stored

    def _wanted(self, one: Statement) -> Iterable[str]:
        read = self._written.reads(self._name) | {self._name}
        return one.binds & read or one.binds

    def _refused(self, path: str, node: Any) -> str:
        if path.endswith(".?") and path.partition(".")[0] in LIBRARIES:
            given = isinstance(node.args[1], ast.Name) and path == f"{self._rule.looks_up}.?"
            return "" if given else COMPUTED
        return refused(path, self._around)


def shorten(node: ast.AST) -> str:
    """Return a node's code on one line of at most 48 characters and an ellipsis."""
    try:
        text = " ".join(ast.unparse(node).split())
    except (ValueError, RecursionError):
        text = type(node).__name__
    return text if len(text) <= 48 else f"{text[:48]}…"


def _about_hidden(who: str, code: str, why: str) -> str:
    return (
        f"expected code whose every name can be followed in the cells; {who} has "
        f"`{code}`, {why}. Write it out without that"
    )


def _about_notebook(who: str, what: str) -> str:
    return (
        f"expected a notebook whose names can be followed; it has {what}, so that what {who} uses "
        "can't be told. Take that out"
    )
