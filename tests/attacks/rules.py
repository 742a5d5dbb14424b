"""Evade the rules of exercises by hand: use what an answer must not use, hidden from the checks."""

from __future__ import annotations

from tests.attacks.catalogue import Family
from tests.attacks.work import Work

family = Family("rules")
attack = family.attack

# An answer that the rule of `corner` forbids.
FORBIDDEN = "def corner(x):\n    return x[:2, :2]"
LIAR = """
from grader.inside import rpc_server
def deaf(self, func, types, args=(), kwargs=None):
    return func(*args, **(kwargs or {}))
rpc_server.OpRecorder.__torch_dispatch__ = deaf
"""


@attack(tells="not for an answer by hand")
def works_in_a_thread(work: Work) -> None:
    """Slices in a thread, where no operator is recorded."""
    work.answer(
        "corner",
        """
        import threading
        def corner(x):
            found = []
            thread = threading.Thread(target=lambda: found.append(x[:2, :2]))
            thread.start()
            thread.join()
            return found[0]
        """,
    )


@attack(tells="uses `unfold`")
def hides_among_the_labs_own_lines(work: Work) -> None:
    """Does the forbidden work in the setup cell, whose own lines are trusted."""
    work.cell("setup").source += "\n\n\ndef helper(x):\n    return x.unfold(0, 2, 1)[0].T"
    work.answer("corner", "def corner(x):\n    return helper(x).unfold(1, 2, 1).transpose(0, 1)[0]")


@attack(tells="inside of PyTorch")
def switches_the_record_off(work: Work) -> None:
    """Slices with the dispatch modes disabled."""
    work.answer(
        "corner",
        """
        from torch.utils._python_dispatch import _disable_current_modes
        def corner(x):
            with _disable_current_modes():
                return x[:2, :2]
        """,
    )


@attack(tells="called `unfold` when it ran, in line 2")
def calls_by_a_name_that_is_put_together(work: Work) -> None:
    """Calls a forbidden method whose name stands nowhere."""
    work.answer("corner", "def corner(x):\n    return getattr(x, 'un' + 'fold')(0, 2, 1)[0]")


@attack(tells="belongs to the grader")
def replaces_the_recorder(work: Work) -> None:
    """Replaces the recorder of operators by one that records nothing."""
    work.first(LIAR)
    work.answer("corner", FORBIDDEN)


@attack(tells="a file beside the notebook")
def imports_its_own_file(work: Work) -> None:
    """Replaces the recorder in a module beside the notebook."""
    (work.folder / "helper.py").write_text(LIAR)
    work.first("import helper")
    work.answer("corner", FORBIDDEN)


@attack(tells="%run helper.py")
def runs_its_own_file(work: Work) -> None:
    """Replaces the recorder in a file that IPython runs, in a cell that Python can't read."""
    (work.folder / "helper.py").write_text(LIAR)
    work.answer("corner", f"%run helper.py\n{FORBIDDEN}")


@attack(tells="text as code")
def runs_text(work: Work) -> None:
    """Replaces the recorder in a text that is run."""
    work.first(f"exec({LIAR!r})")
    work.answer("corner", FORBIDDEN)


@attack(gains={"corner": 2.0})
def works_a_name_out(work: Work) -> None:
    """Replaces the recorder, found by names that are computed while the cell runs.

    This is a known limit outside of an answer, described in grader/judging/by_hand.py.
    """
    found = "getattr(torch, 'import' + 'lib').import_module('gra' + 'der.inside.rpc_server')"
    work.first(LIAR.replace("from grader.inside import rpc_server", f"rpc_server = {found}"))
    work.answer("corner", FORBIDDEN)
