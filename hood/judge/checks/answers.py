"""Read an exercise's file of answers. Each answer tests the exercise's check.

The file ``answers/<exercise>.toml`` is beside the checks of a phase. It lists likely answers::

    [wrong."squared"]  # the technical term for the mistake
    says = "`x` is multiplied by itself."  # tells the learner what the code does
    # The exact points (default: 0). If some machines can't run a part: {"any tensor" = 1}
    earns = 1
    reads = "A heading"  # the section to read after this mistake (default: the part's section)
    edits = [['2 * x', 'x * x']]  # changes of the lab's solution, without its docstrings

    [right."a sum"]  # another right answer
    code = '''
    def twice(x):
        return x + x
    '''

    [[same]]  # changes of right code that do not change its result
    because = "it is the same number"
    edits = [['2 * x', 'x * 2']]

    [[free]]  # texts that a learner may choose
    because = "any rate that works"
    texts = ['0.1']

Each ``wrong`` and ``right`` has ``edits`` or ``code``. The edits change the lab's solution, or the
code that ``of`` names: a right answer, or ``"reference"``. In ``same`` and ``free``, ``of`` limits
the entry to one right answer.

An answer may use the imports of the lab's cells, and the other functions of the lab's solution. The
learners of the sample class hand in these answers.
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

Edits = Sequence[Sequence[str]]  # pairs of an old and a new text


@dataclass(frozen=True)
class Candidate:
    """A solution that is stored with its check: a misconception or an alternate."""

    name: str  # short and unique within the check: the field's term for the mistake or the method
    thing: Any  # the judged object: a function, a class, a value, or a dict of functions
    # The candidate's own code, by the name of each function. If the exercise has several functions,
    # the candidate may define only some of them. Then ``thing`` also has the reference's other
    # functions.
    sources: Mapping[str, str]
    earns: float  # the exact points that the candidate must earn if all parts can be run
    # The sentence that the learner reads about a misconception: what the code does, never the
    # answer.
    explanation: str = ""
    partial: bool = False
    by_part: Mapping[str, float] | None = None
    # Heading of the lesson's section on this mistake; by default the part's heading.
    reads: str = ""

    def source(self) -> str:
        """The candidate's code as a learner would write it in the solution cell.

        For a partial candidate, these are only the functions that the candidate itself defines.
        Raises TypeError if the candidate is a plain value.
        """
        if not self.sources:
            raise TypeError(f"candidate {self.name!r} is a value and has no source")
        return "\n\n\n".join(self.sources.values())

    def cell(self, name: str, solution: str) -> str:
        """Return the solution cell of a learner who hands this candidate in.

        A partial candidate's functions are put below ``solution``, the cell in the lab's text.
        """
        if not self.sources:
            return f"{name} = {self.thing!r}"
        return f"{solution}\n\n\n{self.source()}" if self.partial else self.source()


@dataclass(frozen=True)
class Equivalent:
    """A change of right code that doesn't change the result: ``new`` replaces ``old``.

    For an entry of ``free``, ``new`` is None. Then any text may replace ``old``, and the change may
    alter the result for some seeds.
    """

    old: str
    new: str | None
    because: str
    of: str = ""


@dataclass(frozen=True)
class Answer:
    """An entry of a file of answers. The cell of the entry has run."""

    name: str
    names: dict[str, Any]  # everything that is defined after the cell has run
    sources: dict[str, str]  # the answer's own code, by the name of each function
    rest: bool  # whether the solution has other functions, too
    says: str = ""
    earns: float | Mapping[str, float] = 0
    reads: str = ""


class WrongAnswers(ValueError):
    """An error in a file of answers, with the line of the error."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        self.path, self.line, self.message = path, line, message
        super().__init__(f"{path}:{line}: {message}")


@dataclass(frozen=True)
class AnswersFile:
    """A file of answers, parsed but not run."""

    path: Path
    module: str  # ``__name__`` of the check's module
    entries: Mapping[str, Any]

    @classmethod
    def beside(cls, module: str, exercise: str) -> AnswersFile:
        """Read the file of answers of an exercise in a module of checks; see :meth:`at`."""
        return cls.at(phase_folder(module) / "answers" / f"{exercise}.toml", module)

    @classmethod
    def at(cls, path: Path, module: str = "") -> AnswersFile:
        """Read a file of answers. A missing file counts as a file without answers.

        Raises WrongAnswers if the file is not valid TOML, or has an unknown key.
        """
        if not path.is_file():
            return cls(path, module, {})
        content = path.read_text(encoding="utf-8")
        try:
            entries = tomllib.loads(content)
        except tomllib.TOMLDecodeError as error:
            line = re.search(r"at line (\d+)", str(error))
            raise WrongAnswers(path, int(line[1]) if line else 1, f"bad TOML: {error}") from None
        for place, message in form_faults(entries):
            raise WrongAnswers(path, line_of(content, place), message)
        return cls(path, module, entries)

    def answers(self, kind: str, reference: Mapping[str, Any]) -> Iterator[Answer]:
        """Yield the ``wrong`` or ``right`` answers.

        Raises WrongAnswers if the code of an answer raises an error, or if an old text in ``edits``
        does not occur exactly once.

        Args:
            kind: "wrong" or "right".
            reference: the reference's functions by name.
        """
        for name, entry in self.entries.get(kind, {}).items():
            try:
                names, base, sources = self._run(entry, reference)
            except Exception as error:  # the answer's code may raise any error
                message = f"{kind} {name!r}: {type(error).__name__}: {error}"
                line = line_of(self.path.read_text(encoding="utf-8"), (kind, name))
                raise WrongAnswers(self.path, line, message) from error
            own = {key: code for key, code in sources.items() if code != base.get(key)}
            rest = not base.keys() <= own.keys()
            told = entry.get("says", ""), entry.get("earns", 0), entry.get("reads", "")
            yield Answer(name, names, own, rest, *told)

    def equivalents(self) -> Iterator[Equivalent]:
        """Yield the entries of ``same`` and ``free``."""
        for entry in self.entries.get("same", ()):
            for old, new in entry["edits"]:
                yield Equivalent(old, new, entry["because"], entry.get("of", ""))
        for entry in self.entries.get("free", ()):
            for old in entry["texts"]:
                yield Equivalent(old, None, entry["because"], entry.get("of", ""))

    def _run(
        self, entry: Mapping[str, Any], reference: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, str], dict[str, str]]:
        """Run an answer's cell; return all names, the code before ``edits``, and the new code."""
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
            # in the same namespace, so that the solution's other functions call the answer's code
            run("\n\n\n".join(base.values()), names, lab, exercise)
            found = run(code, names, lab, exercise)
            return names, {}, {name: one._source for name, one in found.items()}
        sources = with_edits(base, entry["edits"])
        for source in sources.values():
            try:
                ast.parse(source)
            except SyntaxError as error:
                raise ValueError(
                    f"the edits make code that is not valid Python ({error.msg}, line "
                    f"{error.lineno}). Indent each new line like the lines beside it:\n{source}"
                ) from None
        run("\n\n\n".join(sources.values()), names, lab, exercise)
        return names, base, sources


def with_edits(sources: Mapping[str, str], edits: Edits) -> dict[str, str]:
    """Return the code of some functions, with each old text in ``edits`` replaced by its new text.

    Raises ValueError unless each old text occurs exactly once in all these functions together.
    """
    changed = dict(sources)
    for old, new in edits:
        found = [name for name, source in changed.items() if old in source]
        times = sum(changed[name].count(old) for name in found)
        if times != 1:
            code = "\n".join(sources.values())
            raise ValueError(
                f"{old!r}: expected once in the solution, found {times} times. This is the "
                f"solution as `edits` see it, without comments:\n{code}"
            )
        changed[found[0]] = changed[found[0]].replace(old, new)
    return changed


def edited(solution: Callable, *edits: tuple[str, str]) -> Callable:
    """Replace texts in the code of a right function or class; return the new function or class.

    Raises ValueError unless each old text occurs exactly once.
    """
    sources = with_edits({"": source_as(solution, solution.__name__)}, edits)
    among = getattr(solution, "_among", None) or vars(inspect.getmodule(solution))
    (wrong,) = run(sources[""], dict(among), among.get("__lab__"), solution.__name__).values()
    return wrong


def source_as(function: Callable, name: str) -> str:
    """Return the code of a function or class, renamed to ``name``, without its decorators."""
    written = getattr(function, "_source", None)
    node = _node(function) if written is None else ast.parse(written).body[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    node.name = name
    return ast.unparse(node)


@cache  # Python 3.11 parses the whole file to find the source of one class
def _node(function: Callable) -> ast.stmt:
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    node.decorator_list = []
    return node
