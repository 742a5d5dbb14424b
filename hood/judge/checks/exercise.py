"""Describe a graded exercise: parts, cases, misconceptions, alternates.

A phase's ``checks`` hold one :class:`Check` for each exercise::

    twice = Check("twice", parts={"any tensor": 2}, reads="A heading of the lesson")

    @twice.reference
    def _(x):
        return 2 * x

    @twice.cases
    def _(draw):
        for _ in range(3):
            yield case("any tensor", draw.tensor(draw.shape(2)))

What learners hand in, misconceptions and other right answers, stands in files beside the checks:
see :mod:`hood.judge.checks.answers`.

The description says *what must hold*. The grader runs a learner's code against it, in another
process. So a case sends values (tensors, arrays, numbers, strings, containers of them) and
examines the values that come back.
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
    """A place inside of what a play returns, as :attr:`Case.places` describes it."""

    words: str  # as for a place that is described by words alone
    # whether what lies there is what the learner's code returned. What it stored, such as a
    # ``.grad``, is not, so that None there is no missing ``return``.
    returned: bool = True


@dataclass(frozen=True)
class Paste:
    """How somebody asks in a notebook what a case asks, where that is more than one call."""

    call: str  # an expression of Python, with ``{}`` in place of each argument
    args: tuple[Any, ...] = ()  # the arguments
    # of what the play returns, by key: the expression for the same, with ``{}`` in place of the
    # call. ``{at}`` stands for the first index where a list differs.
    shows: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One thing to ask of the learner's code. It belongs to a part of the exercise."""

    part: str  # the part whose points it decides
    # a function that uses the learner's code and returns what is compared with what the reference
    # returns in the same play. Its argument is a subject: call it like the function it stands for;
    # ``subject["name"]`` is one function of several; a class gives a handle with
    # ``handle.call("method", ...)``, ``handle.get("attribute")`` and, for a module,
    # ``handle.gradients(upstream, ...)``; ``subject.drive("module:function", ...)`` runs a driver,
    # for code that cannot be called with values; ``subject.value()`` is a plain value. What else
    # rests on the word of the learner's process, the play says with ``subject.claim("that ...")``;
    # what a driver observes, the driver declares
    play: Callable[[Any], Any]
    of: str | None = None  # the function that it asks, if the exercise has several
    # what the report may say of the inputs, such as ``bool tensor + int``; the inputs themselves
    # stay hidden
    shown: str = ""
    # descriptions of the places inside of what ``play`` returns, such as ``{"[1]": "the weight's
    # gradient"}``. One that ends with a full stop replaces the whole description of a difference
    # there. A :class:`Place` says more than words
    places: Mapping[str, str | Place] = field(default_factory=dict)
    # what the answer is compared with, if that depends on the machine, such as ``the run recorded
    # on an NVIDIA H200``; the report says so
    against: str = ""
    not_run: str = ""  # why this machine cannot run it; see :func:`not_run`
    # the exception that the reference raises here, such as ``ValueError``, if it is meant to raise
    # one. Any other exception of the reference is an error of the check
    raises: str = ""
    # how to ask the same in a notebook, for a failing example; None where the calls that the play
    # makes show it
    paste: Paste | None = None
    # whether it may become a failing example: False where that would show the answer
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
    """Return the usual case: a call of the function (or the one named ``of``) with arguments."""

    def play(subject: Any) -> Any:
        return (subject if of is None else subject[of])(*args, **kwargs)

    return Case(part, play, of, shown, places or {}, raises=raises)


def not_run(part: str, why: str) -> Case:
    """Return a case for a part that this machine cannot judge, whatever the seed.

    The part is then neither right nor wrong: its points are withheld, and the report says ``why``,
    such as "needs a GPU or a recorded GPU run".
    """
    return Case(part, lambda subject: None, not_run=why)


@dataclass(frozen=True)
class ByHand:
    """What an answer may not use, and the reason that the learner reads.

    ``hood/judge/source/by_hand.py`` enforces it, and says what cannot be seen.
    """

    # the sentence that the learner reads, such as "the point is to find the strides yourself"
    because: str
    # if given, the only operators that may touch an input's storage, such as ``aten.as_strided``.
    # Operators on the learner's own tensors are not examined
    allow_ops: frozenset[str] | None = None
    forbid_ops: frozenset[str] = frozenset()  # operators that may not touch an input's storage
    # names that the answer may not use of a library, or as attributes of values that are not the
    # learner's own, whether it is read in the cells or called when they run. A name or pattern such
    # as ``*softmax*`` applies to every part of a dotted name outside of NumPy; one with a dot, such
    # as ``torch.autograd.*`` or ``numpy.broadcast*``, to the whole of it. The learner's own
    # functions, classes and attributes may have such names
    forbid_names: frozenset[str] = frozenset()
    # dotted names or patterns that are allowed in any case, with everything below them, such as the
    # module of dispatch modes if the exercise is to write one
    allow_names: frozenset[str] = frozenset()
    # a module, such as ``torch``, in which the exercise asks to look up a name that the grader
    # passes; in no other one may a name be computed
    looks_up: str = ""
    # if given, how many lines the answer may have, with its helpers. A statement is one line,
    # however it is broken; blank lines, comments, docstrings and imports are free
    max_lines: int | None = None
    # the parts of the exercise that it can cost; if empty, all. What else the exercise gives points
    # for hangs on values that nothing of a library gives
    parts: frozenset[str] = frozenset()

    def holds_for(self, part: str) -> bool:
        """Whether breaking it costs a part of the exercise its points."""
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


@dataclass(eq=False)  # each is itself: what was worked out for one is not for another
class Check:
    """A graded exercise: what must hold, what goes wrong, what else is right."""

    # the exercise's id; also the name of the learner's function, unless the exercise has several
    name: str
    parts: dict[str, float]  # what earns points, and how many. A part earns all its points or none.
    reads: str  # heading of the lesson section that a learner who failed should read again
    # other headings, by part, where what the part asks is told in another section. A misconception
    # may have one of its own
    reads_by_part: Mapping[str, str] = field(default_factory=dict)
    strides: bool = False  # tensors that come back must have the reference's strides
    # tensors that come back must share storage with the arguments where the reference's do, and be
    # copies where the reference's are
    sharing: bool = False
    # the exercise asks for an in-place change; otherwise one is a mistake
    changes_inputs: bool = False
    # for floating-point values; a few units in the last place when not given
    tolerance: Tolerance | None = None
    by_hand: ByHand | None = None  # what may not be used
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
        """Changes of right code that make no difference, for ``python -m hood mutants``."""
        return list(self._file.equivalents())

    def read_answers(self) -> None:
        """Read the answers' file, which is else done when the first of them is asked for.

        Raises ValueError if something in it is wrong; the message names the file.
        """
        self.misconceptions, self.alternates, self.equivalents  # noqa: B018

    @property
    def points(self) -> float:
        """The points of all parts together."""
        return sum(self.parts.values())

    def section(self, part: str, named: Candidate | None = None) -> str:
        """Return the heading of what to read after a mistake in a part.

        ``named`` is the misconception that the mistake is known as, if any.
        """
        return (named.reads if named else "") or self.reads_by_part.get(part, self.reads)

    @property
    def names(self) -> tuple[str, ...]:
        """What a learner defines: the exercise's functions, or the one thing of its name."""
        return tuple(self.right) if isinstance(self.right, dict) else (self.name,)

    def thing_in(self, defined: Mapping[str, Any]) -> Any:
        """Return what is judged, out of all that a notebook defines, by name.

        Raises KeyError when one of :attr:`names` is not defined.
        """
        things = {name: defined[name] for name in self.names}
        return things if isinstance(self.right, dict) else things[self.name]

    def reference(self, thing: Any) -> Any:
        """Register the plain, obviously right solution (it need not be by hand).

        A decorator for a function or class; a class named ``_`` holds the functions of an
        exercise that asks for several. A plain value may be given too.
        """
        self._reference = functions_of(thing)
        return thing

    def cases(self, generate: Callable[[Draw], Iterable[Case]]) -> Callable:
        """Register the generator of cases. Used as a decorator."""
        self._cases = generate
        return generate

    def not_run(self) -> dict[str, str]:
        """Return the parts that can't be run on this machine, and why."""
        return {c.part: c.not_run for c in self.draw_cases("") if c.not_run}

    def earnable(self, missing: Collection[str] | None = None) -> float:
        """Return the points of the parts that can be run on this machine.

        ``missing``: the other parts, if the caller knows them: :meth:`not_run` draws all cases.
        """
        missing = self.not_run() if missing is None else missing
        return sum(points for part, points in self.parts.items() if part not in missing)

    def expects(self, candidate: Candidate, missing: Collection[str] | None = None) -> float:
        """Return what a candidate must earn on this machine; ``missing`` as for :meth:`earnable`.

        Raises LookupError when that depends on parts that can't be run, and it doesn't say on
        which.
        """
        missing = self.not_run() if missing is None else missing
        if not missing or candidate.earns == 0:
            return candidate.earns
        if candidate.earns == self.points:
            return self.earnable(missing)
        if candidate.by_part is None:
            raise LookupError(
                f"check {self.name!r}: {', '.join(missing)} can't be run here, so say what "
                f"{candidate.name!r} earns by part: earns={{part: points}}"
            )
        return sum(p for part, p in candidate.by_part.items() if part not in missing)

    @property
    def right(self) -> Any:
        """The reference."""
        if self._reference is None:
            raise LookupError(f"check {self.name!r} has no reference")
        return self._reference

    def draw_cases(self, seed: str, kind: type[Draw] = Draw, **how: Any) -> list[Case]:
        """Return the cases of one grading run; ``kind(seed, name, **how)`` draws their numbers.

        Raises LookupError when no cases were registered, or a part is unknown or has none.
        """
        if self._cases is None:
            raise LookupError(f"check {self.name!r} has no cases")
        cases = list(self._cases(kind(seed, self.name, **how)))
        asked = dict.fromkeys(c.part for c in cases)
        ruled = self.by_hand.parts if self.by_hand else ()
        wrong = [
            *(f"its rule for work by hand is about the part {part!r}, which it does not have"
              for part in ruled if part not in self.parts),
            *(f"a case asks the part {part!r}, which its parts {list(self.parts)} do not name"
              for part in asked if part not in self.parts),
            *(f"no case asks its part {part!r}" for part in self.parts if part not in asked),
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
        """Return an answer of this exercise; the arguments are :class:`Candidate`'s.

        ``earns`` may be by part. Raises LookupError for a part that there is not.
        """
        by_part = earns if isinstance(earns, Mapping) else None
        if by_part is not None and not set(by_part) <= set(self.parts):
            raise LookupError(f"check {self.name!r}: {name!r} earns for parts it doesn't have")
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
    """Return a class named ``_`` as a dict of its functions, and anything else as it is."""
    if isinstance(thing, type) and thing.__name__ == "_":
        return {
            name: function for name, function in vars(thing).items() if inspect.isfunction(function)
        }
    return thing
