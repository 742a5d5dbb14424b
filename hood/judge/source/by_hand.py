"""Enforce the rules of exercises that must be solved by hand: what an answer may not use.

A rule (:class:`hood.judge.checks.exercise.ByHand`) applies to the statements that define an answer,
to every name in these statements, and to statements that replace library objects of the answer. All
these statements are read (:mod:`hood.judge.source.learner_source`). The rule does not restrict
other code in the notebook. The rule forbids objects of a library and attributes of values, not the
learner's own names. While the cases are played, the learner's process records the calls of torch,
under any alias (:mod:`hood.judge.connection.rpc_server`). Cells that come with the lab are trusted.

Each name that the answer uses must have a known origin: a builtin, a cell that can be read, or a
library's own name. Any other name is refused, for example:

- a name that is computed at run time;
- a name that a cell bound, if the cell's text does not show the name;
- a function of torch that was replaced;
- a module that is a file beside the notebook.

The learner's process reports which names got a new value while a statement ran, and what was added
or replaced in modules (:mod:`hood.judge.connection.originals`).

What can't be seen:

- The record of calls, and the objects behind names, are claims of the learner's process. Code that
  computes a name at run time can replace the recorder. Nobody does this by mistake, and a person
  can read the code in its cell.
- The record has only torch's functions and methods: no NumPy, no classes such as
  ``torch.optim.SGD``, no ``torch.func``, and no calls inside a call of torch, such as a
  ``backward``. Code that uses these is read, but not recorded. So ``getattr(array, "str" +
  "ides")`` and ``for lib in [torch]: lib.optim.SGD`` are not seen.
- Code that ran before the cases are played is read, but its calls are not recorded. The check
  follows names, but not a container that is filled under another name.
- If the answer's code sets an attribute of any object, the attribute's name counts as the answer's
  own name, whatever the object.
- A rule forbids names by patterns, such as ``*backward*``. A library function that does the same
  work is accepted if no pattern covers its name.
- Results that were typed in or computed elsewhere look like results of the code. But each grading
  draws new cases, so a table of results earns no points.
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


# Length of a chain of replacements; no lab needs a length above 1.
MOST_ROUNDS = 4


class RuleReader:
    """Find where one learner's code breaks the rule of one check.

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
        """Return in a sentence why the answer, or its function ``of``, breaks the rule.

        The sentence is empty if the answer keeps the rule, the check has no rule, or the code is
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
            except Exception:  # a learner's code must not be able to end the grading
                said = _about_hidden(_who(of), name, "which could not be read")
            self._said[name] = f"{said}; {rule.because}" if said else ""
        return self._said[name]

    def heard(self, of: str | None, called: Mapping[str, int]) -> str:
        """Return in a sentence why the recorded calls break the rule; empty if they don't.

        ``called`` maps the path of each called function or method of torch to the line of the call.
        """
        rule = self._check.by_hand
        if rule is None:
            return ""
        for path, line in called.items():
            if name := forbidden(rule, path):
                shown = path if f"`{name}`" in _who(of) else name
                return (
                    f"{_who(of)} called `{shown}` in line {line} during the check; {rule.because}"
                )
        return ""


def forbidden(rule: ByHand, path: str, own: Any = ()) -> str:
    """Return the name in a path that a rule forbids; empty if the rule allows the path.

    ``path`` is dotted. The path begins with the library, or with a dot for an attribute of a value.
    ``own`` are the attributes of the learner's own objects.
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
    """Return whether a rule forbids calls that the learner's process can record.

    The process records only calls of torch, and only if torch is loaded.
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
    """Return whether a rule allows a path explicitly. Then no other part of the rule forbids it."""
    return any(fits(path, pattern) for pattern in rule.allow_names)


def fits(path: str, pattern: str) -> bool:
    """Return whether a path matches a pattern, or is below a path that matches."""
    return fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}.*")


def _who(of: str | None) -> str:
    return f"`{of}`" if of else "your code"


class _Reading:
    """One answer, which is called ``name``, and all code that the answer depends on."""

    def __init__(
        self, written: LearnerSource, around: Surroundings, rule: ByHand, who: str, name: str
    ):
        self._written, self._around, self._rule = written, around, rule
        self._who, self._name = who, name

    def said(self) -> str:
        """Return in a sentence why the answer breaks the rule; empty if it does not.

        Raises RecursionError if the answer uses too much code.
        """
        written, rule, who = self._written, self._rule, self._who
        if written.lost or self._around.too_many:
            return _about_notebook(who, written.lost or "cells that replace too much in libraries")
        behind, stored = self._behind()
        if not behind:
            return _about_hidden(who, self._name, "which no cell defines in readable code")
        own = frozenset[str]().union(*(one.gives for one, _, _ in behind))
        itself, trusted, _ = behind[0]  # the statement may be an import
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
            f"{who} has {count} lines, not counting blank lines, comments and docstrings; at most "
            f"{rule.max_lines} are allowed"
        )

    def _behind(self) -> tuple[list[tuple[Statement, bool, int]], set[str]]:
        """Return the statements that define the answer or replace objects that it uses.

        Also return the paths of everything that cells replace.
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
        f"expected code in which every name can be followed through the cells; {who} has "
        f"`{code}`, {why}. Write the answer without that code"
    )


def _about_notebook(who: str, what: str) -> str:
    return (
        f"expected a notebook in which names can be followed through the cells, but this notebook "
        f"has {what}. So the check can't see what {who} uses. Remove such cells"
    )
