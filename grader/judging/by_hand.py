"""Enforce the rules of exercises that must be solved by hand: what an answer may not use.

A rule (`ByHand` of a check) is enforced in two ways. The learner's process records the
operators that touch an input (:mod:`grader.inside.rpc_server`). And this module analyses the
notebook's cells:

1. A cell is parsed as IPython runs it, magics included (:mod:`grader.judging.learner_source`).
2. Each name is resolved to what it stands for, however it was bound and wherever it was stored
   (:mod:`grader.judging.flow`): a path in a library, or code of the learner.
3. A rule's names and patterns apply to things of a library, and to attributes of values that a
   library made or the grader passed in. The learner's own functions, classes and attributes may
   have any name. So may NumPy's, unless a pattern names ``numpy``.
4. The analysis covers all code that the answer reaches: its functions and their helpers, the
   statements that made the values they read, and statements that changed those values.
5. If a name may have several definitions, all of them must follow the rule. The last definition
   alone counts only if its cell ran to its end and the statement is not conditional.
6. An answer with code that cannot be analysed earns nothing, and the report quotes the code:
   ``exec``, ``globals``, a computed name, a module of the learner's own ...
   (:mod:`grader.judging.hostile`).
7. Code elsewhere in the notebook is not restricted, unless it may change the meaning of names in a
   way that the analysis cannot see (:mod:`grader.judging.dangers`): ``exec``, ``%run``,
   ``torch.softmax = f``, ``sys.modules`` ...
8. Cells that come with the lab are trusted.

By hand: what can't be seen
---------------------------

The answer runs in the learner's own process, and static analysis has limits. These remain:

- **What ran is not proven to be what was read.** The analysis sees the cells, not the process.
  Outside of the answer it does not follow a name that is computed while a cell runs
  (``getattr(torch, "s" + "ys")``), a module or class of a library that is passed to a function
  (``patch(torch)``), or code that a bug of a library runs. Each of these can replace what an
  allowed name stands for. That takes a deliberate act, in a cell that a person can read.
- **The record of operators is a claim.** It is made in the learner's process. Threads, dispatch
  modes and uses of the recorder are refused in the cells, but the process could still do such
  things. The verdict lists the record under its claims.
- **Only what the rule names is forbidden.** The rules name families (``*backward*``,
  ``*softmax*``), and torch is large: a function that does the same work under a name that no
  pattern covers is accepted.
- **The order of statements and the callers of a function are not distinguished.** If a variable
  may hold two things, both are checked. That is strict. One exception is lenient: an attribute of a
  value of unknown origin counts as the learner's own if a class of the learner defines that name.
- **Results typed in as numbers** cannot be distinguished from computed ones. The cases are drawn
  anew for each grading, so such a table earns nothing by itself.
- **Values computed elsewhere by a person**, with or without help, are beyond any grader.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from grader.judging.dangers import dangers
from grader.judging.flow import LIBRARIES, Analysis, Hidden, Reading, Use
from grader.judging.hostile import allowed, fits, hostile
from grader.judging.learner_source import Written
from utils.checks.exercise import ByHand, Check


class RuleReader:
    """The analysis of one learner's code by the rule of one check.

    Args:
        source: the notebook's cells; None if unknown.
    """

    def __init__(self, check: Check, source: Written | None):
        self._check, self._source = check, source
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
            who = f"`{of}`" if of else "your code"
            self._said[name] = self._look(written, name, who, rule)
        return self._said[name]

    @staticmethod
    def _look(written: Written, name: str, who: str, rule: ByHand) -> str:
        if name not in written.bindings and name not in written.declared:
            came = Hidden(name, "which no cell defines where it could be read")
            return _about_hidden(who, came, rule)
        try:
            found = reading(written, name, rule)
        except RecursionError:
            came = Hidden(name, "which is nested too deeply to be read")
            return _about_hidden(who, came, rule)
        except Exception:  # no learner's code may end the grading
            return _about_hidden(who, Hidden(name, "which could not be read"), rule)
        used = [use for use in found.uses if refused(rule, use)]
        if used:
            return _about_use(who, used[0], rule)
        if found.hidden:
            return _about_hidden(who, found.hidden[0], rule)
        for danger in dangers(written, rule):
            return _about_danger(who, danger, rule)
        if rule.max_lines is not None and (count := written.lines_behind(name)) > rule.max_lines:
            return (
                f"{who} has {count} lines, without blank ones, comments and docstrings, and may "
                f"have {rule.max_lines}; {rule.because}"
            )
        return ""


def reading(written: Written, name: str, rule: ByHand) -> Reading:
    """Analyse the code behind a name: return what it uses."""

    def asked(path: str) -> str:
        return "" if allowed(rule, path) else hostile(path, written.files)

    return Analysis(written, name, rule, asked).read()


def refused(rule: ByHand, use: Use) -> bool:
    """Return whether a rule forbids the use of something of a library."""
    root, *parts = use.path.split(".")
    if root not in LIBRARIES and root != "":
        return False
    if allowed(rule, use.path):
        return False
    for pattern in rule.forbid_names:
        if "." in pattern:
            if fits(use.path, pattern):
                return True
        elif root != "numpy" and any(fnmatchcase(part, pattern) for part in parts):
            return True
    return False


def _about_use(who: str, use: Use, rule: ByHand) -> str:
    name = use.path.rpartition(".")[2]
    if name == "default" or f"`{name}`" in who:  # an overload, or called as the answer is
        name = use.path.strip(".")
    if use.kept:
        return f"{who} reads what `{name}` made in another cell; {rule.because}"
    return f"{who} uses `{name}`; {rule.because}"


def _about_hidden(who: str, hidden: Hidden, rule: ByHand) -> str:
    return (
        f"expected code whose every name can be followed in the cells; {who} has "
        f"`{hidden.code}`, {hidden.why}. Write it out without that; {rule.because}"
    )


def _about_danger(who: str, hidden: Hidden, rule: ByHand) -> str:
    return (
        f"expected a notebook in which names mean what its cells say; a cell has "
        f"`{hidden.code}`, {hidden.why}, so that what {who} uses can't be told. "
        f"Take that line out; {rule.because}"
    )
