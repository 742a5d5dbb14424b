"""Names and scopes: what a name may stand for, and what binds it."""

from __future__ import annotations

from grader.judging.flow.facts import Facts
from grader.judging.flow.paths import canonical, lookup
from grader.judging.flow.tables import CUSTOMARY
from grader.judging.flow.values import IS_FOREIGN, NOTHING, Path, Scope
from grader.judging.learner_source import is_builtin


class Names(Facts):
    """Read and bind names."""

    def load(self, name: str, scope: Scope) -> frozenset:
        """Return the possible values of a name that is read in a scope."""
        here = scope
        while here.kind != "notebook":
            if name in here.outer:
                break
            if name in here.names and (here.kind != "class" or here is scope):
                found = self.get((here, name))
                if here.kind == "class":  # else it is still that of the notebook
                    found |= self.load_global(name)
                return found
            here = here.above()
        return self.load_global(name)

    def load_global(self, name: str) -> frozenset:
        """Return the possible values of a global name, and mark the units that bind it as reached.

        At a cell's outermost level these are the bindings before the current unit, back to the
        last that certainly ran; in a function the same at the end of the notebook, or, if it is
        called while the cells run, all bindings.
        """
        found = NOTHING
        for place in self.written.declared.get(name, ()):
            self.reached.setdefault(place)
        found |= self.get(("declared", name))
        places = self.written.bindings.get(name, [])
        certain = False
        for place in reversed(places):
            unit, sure = self.written.units[place]
            if self.now is not None and not self._before(place):
                continue
            if not self.quiet:
                self._reach(place)
            elif place not in self.reached and place not in self.fillers:
                self.fillers[place], self.changed = None, True
            found |= self.get(("global", place, name))
            if sure and not self.early:
                certain = True
                break
        if certain:
            return found
        for place in self.written.bindings.get("*", ()):
            module = getattr(self.written.units[place][0].node, "module", None) or ""
            if lookup(f"{module}.{name}") is not None:
                found |= {Path(canonical(f"{module}.{name}"))}
        if is_builtin(name):
            return found | {Path(f"builtins.{name}")}
        if not places and not found:
            return frozenset({Path(CUSTOMARY[name])}) if name in CUSTOMARY else IS_FOREIGN
        return found

    def _before(self, place: int) -> bool:
        """Return whether a unit may have run before the current one."""
        assert self.now is not None
        if place < self.now:
            return True
        units = self.written.units
        again = not units[place][0].certain and not units[self.now][0].certain
        return again and self.written.block_of[place] == self.written.block_of[self.now]

    def _reach(self, place: int) -> None:
        """Mark a unit as part of the code behind the name."""
        if place not in self.reached:
            self.reached[place] = None
            self.changed = True

    def store(self, name: str, values: frozenset, scope: Scope) -> None:
        """Bind a name in a scope, or in the scope that it is declared for."""
        here = scope
        while here.kind == "comprehension" and name not in here.names:
            here = here.above()
        if here.kind == "notebook":
            if self.now is not None:
                self.put(("global", self.now, name), values)
        elif name in here.outer:
            self.put(("declared", name), values)
        elif name in here.names:
            self.put((here, name), values)
        else:  # nonlocal
            while here.kind != "notebook" and (name not in here.names or here.kind == "class"):
                here = here.above()
            key = ("declared", name) if here.kind == "notebook" else (here, name)
            self.put(key, values)
