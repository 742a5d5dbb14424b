"""The answers that a check is proven on, and their files.

Beside the checks of a phase lies ``answers/<exercise>.toml``. It says what learners hand in::

    [wrong."squared"]  # a mistake, by the name that it has in the field
    says = "`x` is multiplied by itself."  # what the learner reads: what the code does
    earns = 1  # points, exactly, if not 0; {"any tensor" = 1} where a part can't be run everywhere
    reads = "A heading"  # of the lesson's section on this mistake, if it is not its part's
    edits = [['2 * x', 'x * x']]  # in the lab's own solution, without annotations and docstrings

    [right."a sum"]  # another right answer
    code = '''
    def twice(x):
        return x + x
    '''

    [[same]]  # changes of right code that make no difference
    because = "it is the same number"
    edits = [['2 * x', 'x * 2']]

    [[free]]  # what is left to the learner
    because = "any rate that serves"
    texts = ['0.1']

Each ``wrong`` and ``right`` has ``edits`` or ``code``. ``of`` names what is edited where it is not
the lab's solution: a right answer, or ``"reference"``. In ``same`` and ``free`` it is the one right
answer that is meant.

An answer may use what the lab's cells import, and the other functions of the lab's solution. The
sample class hands these answers in.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hood.judge.checks.answers_form import form_faults, line_of
from hood.judge.checks.lab_solution import lab_names, phase_folder, run

Edits = Sequence[Sequence[str]]  # pairs of a text and what stands there instead


@dataclass(frozen=True)
class Candidate:
    """A solution that is kept with its check: a misconception or an alternate."""

    name: str  # short and unique within the check; the field's words for the mistake or the way
    thing: Any  # what is judged: a function, a class, a value, or a dict of functions
    # the code that the candidate wrote itself, by the name of each function. For an exercise of
    # several functions it may bring some of them; the rest of ``thing`` is the reference's.
    sources: Mapping[str, str]
    earns: float  # points that it must earn, exactly, where everything can be run
    # for a misconception, what the learner reads: what the code does, never the answer
    explanation: str = ""
    partial: bool = False
    by_part: Mapping[str, float] | None = None
    reads: str = ""  # heading of the lesson's section on this mistake; empty for that of the part

    def source(self) -> str:
        """The candidate's code as a learner would write it in the solution cell.

        A partial candidate has only its own functions: they go below the reference solution. Raises
        TypeError if the candidate is a plain value.
        """
        if not self.sources:
            raise TypeError(f"candidate {self.name!r} is a value and has no source")
        return "\n\n\n".join(self.sources.values())

    def cell(self, name: str, solution: str) -> str:
        """Return the solution cell of a learner who hands this candidate in.

        A partial candidate's functions go below ``solution``, the cell as the lab's own text has
        it.
        """
        if not self.sources:
            return f"{name} = {self.thing!r}"
        return f"{solution}\n\n\n{self.source()}" if self.partial else self.source()


@dataclass(frozen=True)
class Equivalent:
    """A change of right code that makes no difference: ``new`` in place of ``old``.

    ``new`` is None for any text, which may make a difference on some seeds: what is free.
    """

    old: str
    new: str | None
    because: str
    of: str = ""


@dataclass(frozen=True)
class Answer:
    """An entry of an answers' file, as a notebook has it once its cell was run."""

    name: str
    names: dict[str, Any]  # what is defined then
    sources: dict[str, str]  # what the answer wrote itself, by the name of each function
    rest: bool  # whether these are some of the solution's functions, and it has others
    says: str = ""
    earns: float | Mapping[str, float] = 0
    reads: str = ""


class WrongAnswers(ValueError):
    """Something is wrong in an answers' file, at a line of it."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        self.path, self.line, self.message = path, line, message
        super().__init__(f"{path}:{line}: {message}")


@dataclass(frozen=True)
class AnswersFile:
    """An answers' file, read but not run."""

    path: Path
    module: str  # ``__name__`` of the check's module
    entries: Mapping[str, Any]

    @classmethod
    def beside(cls, module: str, exercise: str) -> AnswersFile:
        """Read the file beside a module of checks, as :meth:`at` does."""
        return cls.at(phase_folder(module) / "answers" / f"{exercise}.toml", module)

    @classmethod
    def at(cls, path: Path, module: str = "") -> AnswersFile:
        """Read a file; one that does not exist has no answers.

        Raises WrongAnswers if it is not TOML, or has a key that nobody reads.
        """
        if not path.is_file():
            return cls(path, module, {})
        content = path.read_text(encoding="utf-8")
        try:
            entries = tomllib.loads(content)
        except tomllib.TOMLDecodeError as error:
            line = re.search(r"at line (\d+)", str(error))
            raise WrongAnswers(path, int(line[1]) if line else 1, f"no TOML: {error}") from None
        for place, message in form_faults(entries):
            raise WrongAnswers(path, line_of(content, place), message)
        return cls(path, module, entries)

    def answers(self, kind: str, reference: Mapping[str, Any]) -> Iterator[Answer]:
        """Yield the ``wrong`` or ``right`` answers. reference: its functions by name.

        Raises WrongAnswers for an answer that does not run, or edits what is not there.
        """
        for name, entry in self.entries.get(kind, {}).items():
            try:
                names, base, sources = self._run(entry, reference)
            except Exception as error:  # its code may raise any error
                message = f"{kind} {name!r}: {type(error).__name__}: {error}"
                line = line_of(self.path.read_text(encoding="utf-8"), (kind, name))
                raise WrongAnswers(self.path, line, message) from error
            own = {key: code for key, code in sources.items() if code != base.get(key)}
            rest = not base.keys() <= own.keys()
            told = entry.get("says", ""), entry.get("earns", 0), entry.get("reads", "")
            yield Answer(name, names, own, rest, *told)

    def equivalents(self) -> Iterator[Equivalent]:
        """Yield what ``same`` and ``free`` say."""
        for entry in self.entries.get("same", ()):
            for old, new in entry["edits"]:
                yield Equivalent(old, new, entry["because"], entry.get("of", ""))
        for entry in self.entries.get("free", ()):
            for old in entry["texts"]:
                yield Equivalent(old, None, entry["because"], entry.get("of", ""))

    def _run(
        self, entry: Mapping[str, Any], reference: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, str], dict[str, str]]:
        """Return what is defined after an answer's cell, what it is an edit of, and its code."""
        lab, exercise = self.path.parents[1] / "lab.py", self.path.stem
        names = dict(lab_names(lab, exercise, self.module))
        code, of = entry.get("code"), entry.get("of", "")
        if of == "reference":
            base = {name: source_as(thing, name) for name, thing in reference.items()}
            names = {**vars(sys.modules[self.module]), **names}
        elif of:
            names, _, base = self._run(self.entries["right"][of], reference)
        else:
            base = {name: one._source for name, one in names.items() if hasattr(one, "_source")}
        if code:
            # among these names, too, so that they call what the code defines
            run("\n\n\n".join(base.values()), names, lab, exercise)
            found = run(code, names, lab, exercise)
            return names, {}, {name: one._source for name, one in found.items()}
        sources = with_edits(base, entry["edits"])
        run("\n\n\n".join(sources.values()), names, lab, exercise)
        return names, base, sources


def with_edits(sources: Mapping[str, str], edits: Edits) -> dict[str, str]:
    """Return the code of some functions with texts replaced.

    Raises ValueError if a text does not occur exactly once in all of them together.
    """
    changed = dict(sources)
    for old, new in edits:
        found = [name for name, source in changed.items() if old in source]
        times = sum(changed[name].count(old) for name in found)
        if times != 1:
            raise ValueError(f"{old!r} is in the solution {times} times, expected once")
        changed[found[0]] = changed[found[0]].replace(old, new)
    return changed


def edited(solution: Callable, *edits: tuple[str, str]) -> Callable:
    """Return a function or class with some text replaced, so that it goes wrong in one place.

    Raises ValueError if a text does not occur exactly once.
    """
    sources = with_edits({"": source_as(solution, solution.__name__)}, edits)
    among = getattr(solution, "_among", None) or vars(inspect.getmodule(solution))
    (wrong,) = run(sources[""], dict(among), among.get("__lab__"), solution.__name__).values()
    return wrong


def source_as(function: Callable, name: str) -> str:
    """Return the code of a function or class under a name; without decorators if from a file."""
    written = getattr(function, "_source", None)
    node = _node(function) if written is None else ast.parse(written).body[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    node.name = name
    return ast.unparse(node)


@cache  # Python 3.11 parses the whole file for the source of one class
def _node(function: Callable) -> ast.stmt:
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    node.decorator_list = []
    return node
