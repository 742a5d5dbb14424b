"""The analysis of the code behind one name, in passes until nothing new is found."""

from __future__ import annotations

from typing import Any

from grader.judging.flow.facts import Hidden, Reading
from grader.judging.flow.statements import Statements
from grader.judging.flow.syntax import fills
from grader.judging.flow.values import Bound, Box, Instance, OwnClass, OwnFunction

# Each pass follows a chain of definitions one step further. The code of learners needs a dozen.
MAX_PASSES = 40
TOO_DEEP = "which leads through more definitions than are followed"


class Analysis(Statements):
    """Run the code behind a name over and over, and report what it uses."""

    def read(self) -> Reading:
        """Run the code until nothing new is found, then once more to report."""
        followed = self._follow()
        self.reporting = True
        self._run_once()
        if not followed:
            self.hidden[Hidden(self.name, TOO_DEEP)] = None
        uses = sorted(self.uses, key=lambda use: use.line)
        hidden = sorted(self.hidden, key=lambda one: one.line)
        return Reading(tuple(uses), tuple(hidden))

    def _follow(self) -> bool:
        """Run the code until nothing new is found; return False if definitions remain unread.

        What a few values may be can go on growing after all code was reached, as where a container
        holds itself. That hides no definition.
        """
        grew = False
        for _ in range(MAX_PASSES):
            before = len(self.reached) + len(self.fillers)
            if self._settles():
                return True
            grew = len(self.reached) + len(self.fillers) > before
        return not grew

    def _settles(self) -> bool:
        """Run the code once, and return whether nothing new was found."""
        self.changed = False
        self._run_once()
        return not self.changed and not self._find_fillers()

    def _run_once(self) -> None:
        """Run the units that were reached, then the fillers, then the bodies of all functions."""
        for value in self.load_global(self.name):
            self.call_as_grader(value)
        done = 0
        while done < len(self.reached):
            place = list(self.reached)[done]
            done += 1
            self.run_unit(place)
        self.quiet = True
        for place in list(self.fillers):
            self.run_unit(place)
        self.quiet = False
        for function in list(self.functions.values()):
            self.run_body(function)

    def run_unit(self, place: int) -> None:
        """Run one unit at the outermost level."""
        unit = self.written.units[place][0]
        self.now = place
        self.head(unit.node, self.notebook)
        self.now = None

    def call_as_grader(self, value: Any) -> None:
        """Note that the grader calls a function, or makes an instance and calls its methods."""
        if isinstance(value, (OwnFunction, Bound)):
            self.escape(value, self.handed)
        elif isinstance(value, OwnClass):
            for method in self.methods(value):
                self.escape(method, self.handed)

    def _find_fillers(self) -> bool:
        """Find units in other cells that may put something into a container that the answer reads.

        They may do so under another name, which a filler that was found before has bound.

        Returns:
            Whether a new one was found.
        """
        roots: set[str] = set()
        boxes: set[str] = set()
        for key, values in self.values.items():
            if key[0] in ("global", "declared"):
                if any(isinstance(v, (Box, Instance)) for v in values):
                    boxes.add(key[-1])
                elif any(isinstance(v, (OwnClass, OwnFunction)) for v in values):
                    roots.add(key[-1])
        before = len(self.fillers)
        for place, (unit, _) in enumerate(self.written.units):
            known = place in self.reached or place in self.fillers
            if not known and fills(unit.node, roots, boxes):
                self.fillers[place] = None
        return len(self.fillers) > before
