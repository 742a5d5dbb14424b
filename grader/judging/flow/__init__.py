"""Find out what the names in a learner's code stand for: a module's things, or the learner's own.

The code behind one name is run over in the abstract, until nothing new is found. In place of values
there are sets of what a value may be (:mod:`grader.judging.flow.values`):

- a dotted path, for what belongs to a module: ``torch.nn.functional.softmax``, whatever the code
  calls it, and whichever way it came there (an alias, a default, a list, a ``partial``);
- the learner's own functions, classes, instances and containers, with what was put into them;
- ``FOREIGN``: a tensor or anything else that the grader passes or a library returns;
- ``PLAIN``: numbers, strings and the like;
- ``KeptValue``: what a library's function returned in another cell, which stored it.

What the code takes from a path or a foreign value is reported as a :class:`Use`. What the learner's
own classes and containers return is not. Code that cannot be analysed is reported as
:class:`Hidden`.

Statements at a cell's outermost level see what names meant when they ran; functions see what names
mean at the end. The order of statements in a function and the callers of a function are not
distinguished: where two values are possible, both are followed.

The analysis is one class in layers, a module each. A layer calls the ones below it:

==================  ================================================================
``analysis``        the passes over the code, and which cells belong to it
``statements``      statements, definitions of classes, imports
``expressions``     expressions, and assignment to targets
``calls``           calls of anything
``library_calls``   what functions of Python and of libraries return
``members``         attributes and elements
``functions``       parameters of the learner's functions
``names``           names and scopes
``facts``           what is known so far, and what is reported
==================  ================================================================
"""

from __future__ import annotations

from collections.abc import Callable

from grader.judging.flow.analysis import Analysis
from grader.judging.flow.facts import Hidden, Reading, Use
from grader.judging.flow.syntax import shorten
from grader.judging.flow.tables import INSIDES, LIBRARIES
from grader.judging.learner_source import Written

__all__ = ["INSIDES", "LIBRARIES", "Hidden", "Reading", "Use", "read", "shorten"]


def read(
    written: Written,
    name: str,
    *,
    tensors: bool = True,
    looks_up: str = "",
    attributes: bool = False,
    hostile: Callable[[str], str],
) -> Reading:
    """Analyse the code behind a name.

    Args:
        written: the cells that ran.
        name: a function, class or value; empty for all code.
        tensors: whether the grader passes tensors or arrays, not plain values.
        looks_up: path of a module in which the answer may look up its own argument by name.
        attributes: whether the answer may write how an object keeps its attributes.
        hostile: returns why code that uses a path cannot be analysed; empty if it can.
    """
    return Analysis(written, name, tensors, looks_up, attributes, hostile).read()
