"""Find learners whose answers are alike: a hint for a person who knows them, never a verdict.

Two answers are alike where their syntax trees are equal, whatever their names, comments,
annotations and docstrings. Of right answers to a short question many are, so only what is long, and
what few learners share, is told.
"""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

import nbformat

from hood.classroom.gradebook.exercises import code_by_exercise
from hood.classroom.gradebook.graded import Graded, Results
from hood.classroom.gradebook.pseudonyms import LearnerNames
from hood.classroom.report.tally import Person
from hood.grader.submission.bounds import TooMuchWork, alarmed
from hood.grader.submission.rebuild import as_recorded

# Sizes are in nodes of the tree. In the labs' banks there are 4,079 pairs of right answers to one
# exercise, of which 12 are alike: 11 of fewer than 64 nodes, and one of 116 that follows its
# question word for word. A bank collects answers that differ: a class's coincide more often.
LEAST = 40  # an answer that adds less to its stub says nothing
ENOUGH = 150  # what two learners' answers must have alike, in all exercises of the lab together
MOST = 5  # an answer that more learners share is the usual one
SHARE = 0.2  # and so is one that a larger share of a class shares
LONGEST = 20_000  # characters of an answer; a longer one is not looked at
SECONDS, MEMORY = 1.0, 256 << 20  # for all answers of one learner
SAYS_NOTHING = {"annotation", "returns", "type_comment", "ctx", "kind"}  # fields of nodes
# Nodes with a name that code may bind, and the field that has it.
NAMES = {
    ast.Name: "id",
    ast.arg: "arg",
    ast.alias: "asname",
    ast.MatchMapping: "rest",
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef), "name"),
    **dict.fromkeys((ast.ExceptHandler, ast.MatchAs, ast.MatchStar), "name"),
}


class Shape(NamedTuple):
    """What is left of code without its names: a hash of its syntax tree, and the tree's size."""

    digest: bytes
    nodes: int


class Group(NamedTuple):
    """Learners whose answers to some exercises, given by title, are alike."""

    people: tuple[Person, ...]
    exercises: tuple[str, ...]
    nodes: int


class Alike:
    """Learners whose answers are alike in one lab, one learner at a time.

    Args:
        stubs: the code that learners start from, by exercise.
        titles: of the exercises, by name, in the lab's order.
    """

    def __init__(self, stubs: Mapping[str, str], titles: Mapping[str, str], names: LearnerNames):
        self._names, self._titles = names, titles
        shapes = {name: shape(code) for name, code in stubs.items()}
        self._stubs = {name: found.nodes for name, found in shapes.items() if found}
        self._order = dict.fromkeys(titles)
        self._people: list[Person] = []
        self._sharing: dict[tuple[str, Shape], list[int]] = defaultdict(list)
        self.unread = 0  # learners whose answers took too much work

    def add(self, graded: Graded) -> None:
        """Add one learner's answers."""
        number, student = len(self._people), "" if self._names.hidden else graded.student
        self._people.append(Person(student, self._names.of(graded), None, ()))
        try:
            with alarmed(SECONDS, MEMORY):
                shapes = {name: shape(code) for name, code in graded.run.code.items()}
        except TooMuchWork:
            self.unread += 1
            return
        for name, found in shapes.items():
            self._order.setdefault(name)
            if found and self._own(name, found) >= LEAST:
                self._sharing[name, found].append(number)

    def _own(self, name: str, found: Shape) -> int:
        return found.nodes - self._stubs.get(name, 0)

    def groups(self) -> list[Group]:
        """Return who has answers alike, those with most in common first."""
        most = min(MOST, max(2, int(SHARE * len(self._people))))
        common: dict[tuple[int, int], dict[str, int]] = defaultdict(dict)
        for (name, found), numbers in self._sharing.items():
            if len(numbers) <= most:
                for pair in combinations(numbers, 2):
                    common[pair][name] = self._own(name, found)
        alike: dict[tuple[str, ...], list[tuple[int, set[int]]]] = defaultdict(list)
        for pair, sizes in common.items():
            if (nodes := sum(sizes.values())) >= ENOUGH:
                exercises = tuple(name for name in self._order if name in sizes)
                _join(alike[exercises], nodes, set(pair))
        listed = [
            Group(
                tuple(self._people[number] for number in sorted(numbers)),
                tuple(self._titles.get(name) or name for name in exercises),
                nodes,
            )
            for exercises, groups in alike.items()
            for nodes, numbers in groups
        ]
        return sorted(listed, key=lambda one: -one.nodes)


def _join(groups: list[tuple[int, set[int]]], nodes: int, pair: set[int]) -> None:
    """Put a pair into the group that has one of them; alike is who is alike to the same."""
    for known, numbers in groups:
        if known == nodes and numbers & pair:
            numbers |= pair
            return
    groups.append((nodes, pair))


def shape(code: str) -> Shape | None:
    """Return what is left of code without its names; None for what is no Python, or too long."""
    if len(code) > LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of "\d", and they would tell whose code it is
            level: list[Any] = [ast.parse(code)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last for a deep one, too
        return None
    parts: list[Any] = []
    names: list[int] = []  # the places of names in ``parts``
    bound: dict[str, int] = {}  # names that the code binds, in the order in which they appear
    nodes = 0
    while level:
        below: list[Any] = []
        for node in level:
            if isinstance(node, ast.AnnAssign) and node.value:
                node = ast.Assign([node.target], node.value)
            kind = type(node)
            parts.append(kind.__name__)
            for field in kind._fields:
                value = None if field in SAYS_NOTHING else getattr(node, field, None)
                if isinstance(value, list):
                    kept = [one for one in value if not _says_nothing(one)]
                    parts += [len(kept), *("" if isinstance(one, ast.AST) else one for one in kept)]
                    below += [one for one in kept if isinstance(one, ast.AST)]
                elif isinstance(value, ast.AST):
                    parts.append(field)
                    below.append(value)
                else:
                    if value and field == NAMES.get(kind):
                        names.append(len(parts))
                        if not isinstance(getattr(node, "ctx", None), ast.Load):
                            bound.setdefault(value, len(bound))
                    parts.append(value)
        nodes += len(level)
        level = below
    for place in names:
        parts[place] = bound.get(parts[place], parts[place])
    text = repr(parts).encode("utf-8", "surrogatepass")
    return Shape(hashlib.blake2b(text, digest_size=16).digest(), nodes)


def _says_nothing(node: Any) -> bool:
    """Return whether a statement is a text, such as a docstring, or annotates a name alone."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.AnnAssign) and node.value is None


def stubs_of(results: Results) -> dict[str, str]:
    """Return the code that learners start from in a lab, by exercise; none without a source."""
    course, stubs = results.course, dict[str, str]()
    for notebook in results.notebooks:
        path = course.folder("source", ".", results.lab) / f"{notebook}.ipynb"
        if path.exists():
            nb = as_recorded(nbformat.v4.reads(path.read_text(encoding="utf-8")), course.config)
            code = code_by_exercise(nb)
            stubs |= {results.cell_name(notebook, name): text for name, text in code.items()}
    return stubs
