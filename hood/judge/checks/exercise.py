"""Describe a graded exercise: parts, cases, misconceptions, alternates.

A phase's ``checks`` contain a :class:`Check` for each exercise::

    twice = Check("twice", parts={"any tensor": 2}, reads="A heading of the lesson")

    @twice.reference
    def _(x):
        return 2 * x

    @twice.cases
    def _(draw):
        for _ in range(3):
            yield case("any tensor", draw.tensor(draw.shape(2)))

Misconceptions and other right answers are in files beside the checks: see
:mod:`hood.judge.checks.answers`.

A check says *what must be true* of an answer. The grader runs the learner's code in another
process. So a case sends values (tensors, arrays, numbers, strings, containers of them) and examines
the returned values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hood.judge.checks.answers import AnswersFile, Candidate, Equivalent
from hood.judge.checks.compare import Tolerance
from hood.judge.checks.draw import Draw


@dataclass(frozen=True)
class Place:
    """A place inside the result of a case's ``play``, described for :attr:`Case.places`."""

    words: str  # the description of the place
    # whether the learner's code returned the value at this place. If the code only stored the
    # value, as with a ``.grad``, a None does not mean that a ``return`` is missing.
    returned: bool = True


@dataclass(frozen=True)
class Paste:
    """How a learner can repeat a case in a notebook, if one call is not enough."""

    call: str  # a Python expression, with ``{}`` in place of each argument
    args: tuple[Any, ...] = ()  # the arguments
    # For each key of the result of ``play``: a Python expression for the value of this key. In the
    # expression, ``{}`` stands for the call, and ``{at}`` for the first index at which a list
    # differs.
    shows: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A question to the learner's code. Each case belongs to a part of the exercise."""

    part: str  # the part whose points the case decides
    # A function that uses the learner's code and returns a result. The function's argument, the
    # subject, represents the learner's code. The function is called a second time with the
    # reference as the subject, and the two results are compared. ``subject(...)`` calls the
    # learner's function. If the exercise has several functions, ``subject["name"]`` is one of them.
    # If the answer is a class, the call returns a handle with ``handle.call("method", ...)``,
    # ``handle.get("attribute")`` and, for a module, ``handle.gradients(upstream, ...)``. Instead of
    # the result of a call, ``subject.printed(...)`` returns the text that the call printed.
    # ``subject.drawn(...)`` returns the figure that the call drew. ``subject.left_by(...)`` returns
    # the list of arguments after the call. ``subject.generator(...).take(5)`` returns the first
    # values of a generator. ``subject.drive("module:function", ...)`` runs a driver, for code that
    # cannot be called with values. If the answer is a plain value, ``subject.value()`` returns it.
    # If ``play`` uses any other fact that only the learner's process reports, ``play`` must call
    # ``subject.claim("that ...")``. This is not needed for facts that a driver observes and
    # declares.
    play: Callable[[Any], Any]
    of: str | None = None  # the function that the case calls, if there are several functions
    # What the report may say about the inputs, such as ``bool tensor + int``. The inputs themselves
    # stay hidden.
    shown: str = ""
    # Descriptions of places inside the result of ``play``, such as ``{"[1]": "the weight's
    # gradient"}``. If a description ends with a full stop, it replaces the whole text about a
    # difference at this place. A :class:`Place` describes more than a text does.
    places: Mapping[str, str | Place] = field(default_factory=dict)
    # What the answer is compared with, if this depends on the machine, such as ``the run recorded
    # on an NVIDIA H200``. The report contains this text.
    against: str = ""
    not_run: str = ""  # why this machine cannot run the case; see :func:`not_run`
    # The exception that the reference should raise here, such as ``ValueError``. Any other
    # exception of the reference is an error of the check.
    raises: str = ""
    # How a learner can repeat the case in a notebook, for a failing example; None if the calls of
    # ``play`` are enough for this.
    paste: Paste | None = None
    # Whether the case may become a failing example. False if the example would show the answer.
    example: bool = True


def case(
    part: str,
    *args: Any,
    of: str | None = None,
    shown: str = "",
    places: Mapping[str, str | Place] | None = None,
    raises: str = "",
    **kwargs: Any,
) -> Case:
    """Return the usual case: one call of the function, or of the function that ``of`` names."""

    def play(subject: Any) -> Any:
        return (subject if of is None else subject[of])(*args, **kwargs)

    return Case(part, play, of, shown, places or {}, raises=raises)


def not_run(part: str, why: str) -> Case:
    """Return a case for a part that this machine cannot judge with any seed.

    The points of the part are withheld, and the report says ``why``, such as "needs a GPU or a
    recorded GPU run".
    """
    return Case(part, lambda subject: None, not_run=why)


@dataclass(frozen=True)
class ByHand:
    """What an answer may not use, with a reason for the learner.

    ``hood/judge/source/by_hand.py`` enforces these rules, and says which violations it can't find.
    """

    # The reason for the learner, such as "the point is to find the strides yourself".
    because: str
    # If given, the only operators that may touch an input's storage, such as ``aten.as_strided``.
    # Operators on the learner's own tensors are not examined.
    allow_ops: frozenset[str] | None = None
    forbid_ops: frozenset[str] = frozenset()  # operators that may not touch an input's storage
    # Names that the answer may not use from a library, or as attributes of values that are not the
    # learner's own. Both the text of the cells and the calls at run time are examined. A name or
    # pattern without a dot, such as ``*softmax*``, applies to each part of a dotted name, but not
    # to names of NumPy. A name or pattern with a dot, such as ``torch.autograd.*`` or
    # ``numpy.broadcast*``, applies to the whole name. The learner's own functions, classes and
    # attributes may have such names.
    forbid_names: frozenset[str] = frozenset()
    # Dotted names or patterns that are always allowed, with everything below them. For example, an
    # exercise in which learners write a dispatch mode allows the module of dispatch modes.
    allow_names: frozenset[str] = frozenset()
    # A module, such as ``torch``, in which the answer may look up a name that a variable has:
    # ``getattr(torch, name)``. In other modules the answer may not look up computed names.
    looks_up: str = ""
    # If given, the largest allowed number of lines of the answer and its helpers together. A
    # statement counts as one line even if it has several lines. Blank lines, comments, docstrings
    # and imports don't count.
    max_lines: int | None = None
    # The parts that lose their points if the rule is broken; if empty, all parts lose them. Use
    # this field if no library can compute the values that the other parts require.
    parts: frozenset[str] = frozenset()

    def holds_for(self, part: str) -> bool:
        """Return whether a part loses its points if the rule is broken."""
        return not self.parts or part in self.parts

    @property
    def needs_trace(self) -> bool:
        """Whether operators must be recorded while the code runs."""
        return self.allow_ops is not None or bool(self.forbid_ops)

    def refused_ops(self, ops: Iterable[str]) -> list[str]:
        """Return the operators of ``ops`` that may not be used, in order, each once."""
        return [
            op
            for op in dict.fromkeys(ops)
            if op in self.forbid_ops or (self.allow_ops is not None and op not in self.allow_ops)
        ]


@dataclass(eq=False)  # compared by identity, because results are cached for each check
class Check:
    """What a graded exercise requires, with its usual mistakes and other right answers."""

    # The exercise's id. If the exercise has only one function, this is also the function's name.
    name: str
    parts: dict[str, float]  # the parts and their points; a part gives all its points or none
    reads: str  # the heading of the section that learners should read after a wrong answer
    # Other headings for some parts, if another section explains them. A misconception may have its
    # own heading.
    reads_by_part: Mapping[str, str] = field(default_factory=dict)
    strides: bool = False  # returned tensors must have the reference's strides
    # If the reference's tensors share storage with the arguments, returned tensors must share it,
    # too. If the reference's tensors are copies, returned tensors must be copies.
    sharing: bool = False
    # whether the exercise asks for an in-place change; if not, such a change is a mistake
    changes_inputs: bool = False
    # If True, a call must also leave the lists, dicts and sets in its arguments unchanged, and all
    # arguments are sent back after each call. If False, only tensors, arrays and tables must stay
    # unchanged.
    containers_kept: bool = False
    # The tolerance for floating-point values. The default is a few units in the last place.
    tolerance: Tolerance | None = None
    by_hand: ByHand | None = None  # what an answer may not use
    _reference: Any = None
    _cases: Callable[[Draw], Iterable[Case]] | None = None

    @cached_property
    def misconceptions(self) -> list[Candidate]:
        """Wrong solutions that real learners hand in."""
        return self._read("wrong")

    @cached_property
    def alternates(self) -> list[Candidate]:
        """Other right solutions."""
        return self._read("right")

    @cached_property
    def equivalents(self) -> list[Equivalent]:
        """Changes of right code that don't change its result, for ``python -m hood mutants``."""
        return list(self._file.equivalents())

    def read_answers(self) -> None:
        """Read the file of answers now, not when the first answer is needed.

        Raises ValueError with the file's name if something in it is wrong.
        """
        self.misconceptions, self.alternates, self.equivalents  # noqa: B018

    @property
    def points(self) -> float:
        """The points of all parts together."""
        return sum(self.parts.values())

    def section(self, part: str, named: Candidate | None = None) -> str:
        """Return the heading of the section to read after a mistake in a part.

        ``named`` is the recognised misconception, if any.
        """
        return (named.reads if named else "") or self.reads_by_part.get(part, self.reads)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a learner defines: the exercise's functions, or the exercise's name."""
        return tuple(self.right) if isinstance(self.right, dict) else (self.name,)

    def thing_in(self, defined: Mapping[str, Any]) -> Any:
        """Select the learner's answer from a dict of everything that a notebook defines.

        Raises KeyError when one of :attr:`names` is not defined.
        """
        things = {name: defined[name] for name in self.names}
        return things if isinstance(self.right, dict) else things[self.name]

    def reference(self, thing: Any) -> Any:
        """Register the plain, obviously right solution, which may break the exercise's rule.

        Use this as a decorator for a function or class. If the exercise requires several functions,
        a class named ``_`` contains them. The solution may also be a plain value.
        """
        self._reference = functions_of(thing)
        return thing

    def cases(self, generate: Callable[[Draw], Iterable[Case]]) -> Callable:
        """Register the generator of cases. Use this as a decorator."""
        self._cases = generate
        return generate

    def not_run(self) -> dict[str, str]:
        """Return the parts that can't be run on this machine, and why."""
        return {c.part: c.not_run for c in self.draw_cases("") if c.not_run}

    def earnable(self, missing: Collection[str] | None = None) -> float:
        """Return the points of the parts that can be run on this machine.

        ``missing`` are the parts that can't be run. If ``missing`` is None, :meth:`not_run` draws
        all cases to find these parts.
        """
        missing = self.not_run() if missing is None else missing
        return sum(points for part, points in self.parts.items() if part not in missing)

    def expects(self, candidate: Candidate, missing: Collection[str] | None = None) -> float:
        """Return what a candidate must earn on this machine; :meth:`earnable` explains ``missing``.

        Raises LookupError if the result depends on parts that can't be run, and the candidate's
        points are not given for each part.
        """
        missing = self.not_run() if missing is None else missing
        if not missing or candidate.earns == 0:
            return candidate.earns
        if candidate.earns == self.points:
            return self.earnable(missing)
        if candidate.by_part is None:
            raise LookupError(
                f"check {self.name!r}: {', '.join(missing)} can't be run here, so give the points "
                f'of {candidate.name!r} by part: earns = {{"part" = points}}'
            )
        return sum(p for part, p in candidate.by_part.items() if part not in missing)

    @property
    def right(self) -> Any:
        """The reference."""
        if self._reference is None:
            raise LookupError(f"check {self.name!r} has no reference")
        return self._reference

    def draw_cases(self, seed: str, kind: type[Draw] = Draw, **how: Any) -> list[Case]:
        """Return the cases of one grading run.

        ``kind(seed, name, **how)`` makes the object that draws the cases' inputs.

        Raises LookupError when no cases were registered, a part is unknown, or a part has no case.
        """
        if self._cases is None:
            raise LookupError(f"check {self.name!r} has no cases")
        cases = list(self._cases(kind(seed, self.name, **how)))
        asked = dict.fromkeys(c.part for c in cases)
        ruled = self.by_hand.parts if self.by_hand else ()
        wrong = [
            *(f"the rule `by_hand` names the part {part!r}, which the check does not have"
              for part in ruled if part not in self.parts),
            *(f"a case has the part {part!r}, which is not one of the check's parts "
              f"{list(self.parts)}"
              for part in asked if part not in self.parts),
            *(f"the part {part!r} has no case" for part in self.parts if part not in asked),
        ]  # fmt: skip
        if wrong:
            raise LookupError(f"check {self.name!r}: {'; '.join(wrong)}")
        return cases

    @cached_property
    def _file(self) -> AnswersFile:
        return AnswersFile.beside(getattr(self._cases, "__module__", __name__), self.name)

    def _read(self, kind: str) -> list[Candidate]:
        if kind not in self._file.entries:
            return []
        right = self.right if isinstance(self.right, dict) else {self.name: self.right}
        return [
            self.candidate(
                answer.name,
                self.thing_in(answer.names),
                answer.sources,
                answer.rest or not set(self.names) <= answer.sources.keys(),
                answer.earns if kind == "wrong" else self.points,
                answer.says,
                answer.reads,
            )
            for answer in self._file.answers(kind, right)
        ]

    def candidate(
        self,
        name: str,
        thing: Any,
        sources: Mapping[str, str],
        partial: bool,
        earns: float | Mapping[str, float],
        explanation: str,
        reads: str = "",
    ) -> Candidate:
        """Return an answer of this exercise. The arguments are the fields of :class:`Candidate`.

        ``earns`` may be a dict with the points of each part. Raises LookupError for an unknown
        part.
        """
        by_part = earns if isinstance(earns, Mapping) else None
        if by_part is not None and not set(by_part) <= set(self.parts):
            raise LookupError(
                f"check {self.name!r}: {name!r} has points for parts that the check doesn't have"
            )
        return Candidate(
            name=name,
            thing=thing,
            sources=sources,
            earns=sum(earns.values()) if isinstance(earns, Mapping) else earns,
            by_part=by_part,
            explanation=explanation,
            partial=partial,
            reads=reads,
        )


def functions_of(thing: Any) -> Any:
    """Return a class named ``_`` as a dict of its functions, and anything else unchanged."""
    if isinstance(thing, type) and thing.__name__ == "_":
        return {
            name: function for name, function in vars(thing).items() if inspect.isfunction(function)
        }
    return thing
