"""Find learners whose answers are alike, as a hint for a person who knows the learners.

The result is only a hint, never a proof of copying. Two answers are alike if their syntax trees are
equal, apart from names, annotations and docstrings. Many right answers to a short question are
alike, so an answer is reported only if it is long and few learners gave it.
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

# Sizes are in nodes of the tree. The labs' banks of answers (docs/authors/a-bank.md) have 4,079
# pairs of right answers to one exercise. Of these, 12 pairs are alike: 11 pairs with fewer than 64
# nodes, and one pair with 116 nodes. The two answers of this last pair do word for word what the
# question says. A bank collects different answers, so a class's answers coincide more often.
LEAST = 40  # an answer that adds fewer nodes to its stub is not compared
ENOUGH = 150  # nodes that must be alike between two learners, in all exercises of the lab together
MOST = 5  # if more learners share an answer, it is the usual answer
SHARE = 0.2  # the same limit, as a share of the class
LONGEST = 20_000  # characters of an answer; a longer answer is not compared
SECONDS, MEMORY = 1.0, 256 << 20  # for all answers of one learner
SAYS_NOTHING = {"annotation", "returns", "type_comment", "ctx", "kind"}  # fields of nodes
# Kinds of nodes with a name that code may bind, and the field that has the name.
NAMES = {
    ast.Name: "id",
    ast.arg: "arg",
    ast.alias: "asname",
    ast.MatchMapping: "rest",
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef), "name"),
    **dict.fromkeys((ast.ExceptHandler, ast.MatchAs, ast.MatchStar), "name"),
}


class Shape(NamedTuple):
    """A hash of code's syntax tree, in which names are left out, and the size of the tree."""

    digest: bytes
    nodes: int


class Group(NamedTuple):
    """Learners whose answers are alike, and the titles of the exercises with these answers."""

    people: tuple[Person, ...]
    exercises: tuple[str, ...]
    nodes: int


class Alike:
    """Collects the answers to one lab, one learner at a time, and finds answers that are alike.

    Args:
        stubs: the code that learners start from, keyed by exercise.
        titles: the titles of the exercises, keyed by their names, in the lab's order.
    """

    def __init__(self, stubs: Mapping[str, str], titles: Mapping[str, str], names: LearnerNames):
        self._names, self._titles = names, titles
        shapes = {name: shape(code) for name, code in stubs.items()}
        self._stubs = {name: found.nodes for name, found in shapes.items() if found}
        self._order = dict.fromkeys(titles)
        self._people: list[Person] = []
        self._sharing: dict[tuple[str, Shape], list[int]] = defaultdict(list)
        self.unread = 0  # learners with answers that took too much work

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
        """Return the groups of learners with alike answers. The most alike code comes first."""
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
    """Add a pair of learners to a group that has one of the two learners, or make a new group.

    The pair's other learner belongs to the group too, because being alike is transitive.
    """
    for known, numbers in groups:
        if known == nodes and numbers & pair:
            numbers |= pair
            return
    groups.append((nodes, pair))


def shape(code: str) -> Shape | None:
    """Return the shape of code; None if the code is too long or has a syntax error."""
    if len(code) > LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning, as for "\d", would show the learner's code
            level: list[Any] = [ast.parse(code)]
    # code that is nested deeply may raise MemoryError too
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    parts: list[Any] = []
    names: list[int] = []  # the indices of names in ``parts``
    bound: dict[str, int] = {}  # names that the code binds, in order of appearance
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
    """Return whether a statement is a lone string, such as a docstring, or a lone annotation."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.AnnAssign) and node.value is None


def stubs_of(results: Results) -> dict[str, str]:
    """Return the code that learners start from, keyed by exercise; empty without a source."""
    course, stubs = results.course, dict[str, str]()
    for notebook in results.notebooks:
        path = course.folder("source", ".", results.lab) / f"{notebook}.ipynb"
        if path.exists():
            nb = as_recorded(nbformat.v4.reads(path.read_text(encoding="utf-8")), course.config)
            code = code_by_exercise(nb)
            stubs |= {results.cell_name(notebook, name): text for name, text in code.items()}
    return stubs
