"""Find the redundant answers of a bank: answers that show only what other answers show.

``python -m tests.phases.redundant 01 --exercise broadcast`` prints for each answer what only this
answer shows, the cases that it fails, and the names in its verdict. ``test_banks.py`` allows only
answers that show something. A wrong answer shows something

- if it fails a case, breaks a rule, gets a name or breaks a sentence, and no other wrong answer
  does;
- if every other wrong answer fails at least one case that this answer passes. If another answer
fails only cases that this answer fails, too, a check that refuses the other answer refuses both
(the other answer subsumes this answer).

The misconceptions beside the check count as other wrong answers. A right answer shows something if
it has operations and constructs of Python that are in no other right answer and not in the lab's
solution, or if it uses a freedom of the text that no other right answer uses. Three kinds of
answers always stay: an answer that a kept answer edits, an answer that a check once misjudged
(``slipped`` in its entry), and an answer whose verdict must give a name (``named``).
"""

from __future__ import annotations

import argparse
import ast
import builtins
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from hood.authoring.proof.quiet import quiet
from hood.authoring.proof.selftest import add_selection, selection
from hood.judge.checks.exercise import Case
from hood.judge.connection.settings import usual_settings
from hood.judge.source.learner_source import LearnerSource
from hood.judge.verdicts.answer_key import AnswerKey, answer_key
from hood.judge.verdicts.difference import differs
from hood.judge.verdicts.judge import ask, assess
from hood.judge.watched import WatchedConnection
from hood.phase_paths import ROOT
from hood.verdict import Cause
from tests.phases.bank import BANKS, Answer, Bank
from tests.phases.rules import introduction, no_rules, questions, quoted_beside, quoted_sentences

# A right answer shows something if this share of its operations and constructs is in no other
# answer.
OWN_FORM = 1 / 6
# The seed on which answers of a bank must not be redundant.
SEED = "bank-0"


@dataclass(frozen=True)
class Result:
    """The result of judging a wrong answer on one seed."""

    # the cases that it fails, as `label` names them, and the parts with a rule that it breaks
    failed: frozenset[str]
    names: frozenset[str]  # the misconceptions that its verdict names


def result(bank: Bank, answer: Answer, key: AnswerKey) -> Result:
    """Judge an answer on the cases of a key. A call that does not end is stopped."""
    source = LearnerSource([*bank.lab.given, answer.cell])
    with usual_settings():
        outcomes = ask(key, WatchedConnection(bank.thing(answer)))
        verdict = assess(key, outcomes, source=source)
        failed = {
            label(number, c)
            for number, (c, got) in enumerate(zip(key.cases, outcomes, strict=True))
            if not c.not_run and differs(key.check, got, key.right(c))
        }
    rules = {f"{p.name}: its rule" for p in verdict.parts if p.cause is Cause.RULE_BROKEN}
    return Result(frozenset(failed | rules), frozenset(verdict.misconceptions))


def results_beside(key: AnswerKey) -> list[Result]:
    """Return the results of the misconceptions beside a check, without rules."""
    cases = {label(number, c): c for number, c in enumerate(key.cases) if not c.not_run}
    with usual_settings():
        return [
            Result(frozenset(at for at, c in cases.items() if key.errs(m, c)), frozenset({m.name}))
            for m in key.check.misconceptions
        ]


def label(number: int, case: Case) -> str:
    """Name a case of a key by its part, its number and its words about the inputs."""
    return f"{case.part} {number}" + (f" ({case.shown})" if case.shown else "")


def form(cell: str) -> frozenset[str]:
    """Return the operations and constructs of a cell, without names that the cell defines."""
    nodes = list(ast.walk(ast.parse(cell)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    own |= {node.attr for node in attributes if isinstance(node.ctx, ast.Store)}
    own |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    kinds = ast.stmt, ast.expr, ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.pattern
    used = {type(node).__name__ for node in nodes if isinstance(node, kinds)}
    used |= {f".{node.attr}" for node in attributes}
    used |= {node.id for node in names if hasattr(builtins, node.id)}
    used |= {"recursion" for node in nodes if isinstance(node, ast.FunctionDef) and _recurs(node)}
    return frozenset(used - own - {f".{name}" for name in own})


def plain(cell: str) -> str:
    """Return the code of a cell without annotations and docstrings, in one form."""
    tree = ast.parse(cell)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and "constexpr" not in ast.dump(node):
            node.annotation = None
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _recurs(function: ast.FunctionDef) -> bool:
    calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return any(isinstance(name, ast.Name) and name.id == function.name for name in calls)


class Exercise:
    """The answers of a bank to one exercise, and what each answer shows alone."""

    def __init__(
        self,
        bank: Bank,
        name: str,
        results: Mapping[str, Sequence[Result]],
        beside: Sequence[Sequence[Result]],
    ) -> None:
        """``results`` has a result of each wrong answer for each seed, by the name of the answer.

        ``beside`` has the results of the misconceptions beside the check, for each seed.
        """
        self.answers = list(bank.of(name))
        self._results, self._beside = results, beside
        check, solution = bank.checks[name], bank.lab.solutions[name]
        given = [solution, *(right.cell(name, solution) for right in check.alternates)]
        self._mistakes = {plain(m.cell(name, solution)) for m in check.misconceptions}
        self._given_forms = frozenset(chain.from_iterable(map(form, given)))
        self._forms = {answer: form(answer.cell) for answer in self.answers if answer.right}
        question, phase = questions(bank.phase)[name], bank.phase
        text, beside_it = introduction(phase), quoted_beside(phase, name)
        self._quoted_beside = _quoted(question, text, {*beside_it, *no_rules(phase, name)})
        self._quoted = {a: _quoted(question, text, a.quotes) for a in self.answers}

    def shows(self, answer: Answer, among: Collection[Answer]) -> list[str]:
        """Return what this answer shows and no other answer in ``among`` shows; or why the answer
        stays.

        The code of a misconception beside the check shows nothing.
        """
        if not answer.right and plain(answer.cell) in self._mistakes:
            return []
        others = [other for other in among if other != answer]
        why = ["it slipped through"] if answer.slipped else []
        why += [f"it must be named “{answer.named}”"] if answer.named else []
        if answer.right:
            why += [f"“{other.name}” edits it" for other in others if other.of == answer.name]
        quoted = self._quoted_beside.union(*(self._quoted[other] for other in others))
        why += [f"it alone quotes “{words}”" for words in sorted(self._quoted[answer] - quoted)]
        if answer.right:
            return why + self._by_form(answer, [other for other in others if other.right])
        return why + self._by_cases(answer, [other for other in others if not other.right])

    def _by_form(self, answer: Answer, others: list[Answer]) -> list[str]:
        own = self._forms[answer]
        new = own.difference(self._given_forms, *(self._forms[other] for other in others))
        enough = len(new) >= OWN_FORM * len(own)
        return [f"it alone has {', '.join(sorted(new))}"] if enough else []

    def _by_cases(self, answer: Answer, others: list[Answer]) -> list[str]:
        why: dict[str, None] = {}  # in order, each once
        for seed, beside in enumerate(self._beside):
            own = self._results[answer.name][seed]
            rest = [*beside, *(self._results[other.name][seed] for other in others)]
            if own.failed.difference(*(one.failed for one in rest)):
                why["it alone fails a case"] = None
            if own.failed and not any(one.failed and one.failed <= own.failed for one in rest):
                why["none fails only cases that it fails"] = None
            for name in sorted(own.names.difference(*(one.names for one in rest))):
                why[f"it alone is named “{name}”"] = None
        return list(why)

    def redundant(self) -> list[Answer]:
        """Return the answers that can be removed: if two show the same, only the longer one."""
        left, gone = set(self.answers), []
        # Wrong answers, and answers that edit another answer, are tried first.
        for answer in sorted(self.answers, key=lambda a: (a.right, not a.of, -a.length, a.name)):
            if not self.shows(answer, left):
                left.remove(answer)
                gone.append(answer)
        return gone

    def lines(self, gone: Collection[Answer]) -> Iterator[str]:
        """Yield for each answer what it shows among those that are not ``gone``, and its results.

        With several seeds, these are the results of the first seed.
        """
        left = [answer for answer in self.answers if answer not in gone]
        for answer in self.answers:
            why = "nothing alone" if answer in gone else "; ".join(self.shows(answer, left))
            yield f"{'right' if answer.right else 'wrong'} “{answer.name}” shows: {why}"
            if not answer.right:
                first = self._results[answer.name][0]
                yield f"    fails: {'; '.join(sorted(first.failed)) or 'nothing'}"
                yield f"    named: {'; '.join(sorted(first.names)) or 'nothing'}"


def _quoted(question: str, introduction: str, quotes: Iterable[str]) -> frozenset[str]:
    """Return the quoted sentences of a question, and the quotes that only the introduction has."""
    elsewhere = {quote for quote in quotes if quote not in question and quote in introduction}
    return frozenset(elsewhere | quoted_sentences(question, quotes))


def exercise(bank: Bank, name: str, seeds: Iterable[str]) -> Exercise:
    """Judge a bank's answers to an exercise on each of some seeds."""
    wrong = [answer for answer in bank.of(name) if not answer.right]
    results: dict[str, list[Result]] = {answer.name: [] for answer in wrong}
    beside = []
    with quiet():
        for seed in seeds:
            with usual_settings():
                key = answer_key(bank.checks[name], seed)
            for answer in wrong:
                results[answer.name].append(result(bank, answer, key))
            beside.append(results_beside(key))
    return Exercise(bank, name, results, beside)


def main(argv: Sequence[str]) -> int:
    """Print what each answer shows; return 1 if an answer shows nothing alone."""
    parser = argparse.ArgumentParser(prog="python -m tests.phases.redundant", description=__doc__)
    add_selection(parser, seeds=1, prefix=SEED.rpartition("-")[0])
    chosen, seeds = selection(parser.parse_args(argv), ROOT)
    redundant = 0
    for phase, checks in chosen:
        for check in checks:
            print(f"{phase.name}, {check.name}")
            answers = exercise(BANKS[phase.number], check.name, seeds)
            gone = answers.redundant()
            redundant += len(gone)
            for line in answers.lines(gone):
                print(f"  {line}")
    print(f"{redundant} show nothing alone")
    return 1 if redundant else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
