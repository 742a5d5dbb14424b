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

from grader.judging.flow.analysis import Analysis
from grader.judging.flow.facts import Hidden, Reading, Use
from grader.judging.flow.syntax import shorten
from grader.judging.flow.tables import INSIDES, LIBRARIES

__all__ = ["INSIDES", "LIBRARIES", "Analysis", "Hidden", "Reading", "Use", "shorten"]
