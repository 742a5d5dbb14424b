"""Evade the rules of exercises by hand: hide the use of a forbidden name from the checks."""

from __future__ import annotations

from tests.attacks.catalogue import Family
from tests.attacks.submission import Work

family = Family("rules")
attack = family.attack

# An answer to `corner` that the exercise's rule forbids.
FORBIDDEN = "def corner(x):\n    return x[:2, :2]"
LIAR = """
from hood.judge.connection import torch_calls
def deaf(self, func, types, args=(), kwargs=None):
    return func(*args, **(kwargs or {}))
torch_calls.OpRecorder.__torch_dispatch__ = deaf
"""


@attack(tells="runs code in a place that the check can't see")
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
    """Does the forbidden work in the setup cell, whose original lines are trusted."""
    work.cell("setup").source += "\n\n\ndef helper(x):\n    return x.unfold(0, 2, 1)[0].T"
    work.answer("corner", "def corner(x):\n    return helper(x).unfold(1, 2, 1).transpose(0, 1)[0]")


@attack(tells="PyTorch's internals")
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


@attack(tells="called `unfold` in line 2 during the check")
def calls_by_a_name_that_is_put_together(work: Work) -> None:
    """Calls a forbidden method without writing its name."""
    work.answer("corner", "def corner(x):\n    return getattr(x, 'un' + 'fold')(0, 2, 1)[0]")


@attack(tells="belongs to the grader")
def replaces_the_recorder(work: Work) -> None:
    """Replaces the recorder of operators by one that records nothing."""
    work.first(LIAR)
    work.answer("corner", FORBIDDEN)


@attack(tells="something replaced it")
def imports_its_own_file(work: Work) -> None:
    """Replaces the recorder in a module beside the notebook."""
    (work.folder / "helper.py").write_text(LIAR)
    work.first("import helper")
    work.answer("corner", FORBIDDEN)


@attack(tells="a file beside the notebook|is not installed on the judging machine")
def uses_its_own_file(work: Work) -> None:
    """Slices through NumPy in a module beside the notebook, where nothing is recorded."""
    (work.folder / "helper.py").write_text(
        "import torch\ndef cut(x):\n    return torch.from_numpy(x.numpy()[:2, :2])"
    )
    work.first("from helper import cut")
    work.answer("corner", "def corner(x):\n    return cut(x)")


@attack(tells="something replaced it")
def runs_its_own_file(work: Work) -> None:
    """Replaces the recorder in a file that IPython runs from a cell that Python can't parse."""
    (work.folder / "helper.py").write_text(LIAR)
    work.answer("corner", f"%run helper.py\n{FORBIDDEN}")


@attack(tells="something replaced it")
def runs_text(work: Work) -> None:
    """Replaces the recorder in a string that it executes."""
    work.first(f"exec({LIAR!r})")
    work.answer("corner", FORBIDDEN)


@attack(tells="something replaced it")
def works_a_name_out(work: Work) -> None:
    """Replaces the recorder, found by names that are computed while the cell runs."""
    found = (
        "getattr(torch, 'import' + 'lib').import_module('hood.judge.connec' + 'tion.torch_calls')"
    )
    plain = "from hood.judge.connection import torch_calls"
    assert plain in LIAR
    work.first(LIAR.replace(plain, f"torch_calls = {found}"))
    work.answer("corner", FORBIDDEN)


HONEST = "def corner(x):\n    return x.as_strided((2, 2), x.stride(), x.storage_offset())"
CHEAT = "def corner(x):\n    return torch.from_numpy(x.numpy()[:2, :2])"


@attack(tells="binds `corner`, although")
def writes_one_answer_and_runs_another(work: Work) -> None:
    """Replaces the readable answer by another one, in a string that is executed below it."""
    work.answer("corner", f"{HONEST}\nexec({CHEAT!r})")


@attack(tells="binds `corner`, although")
def replaces_the_answer_by_its_name(work: Work) -> None:
    """Replaces the answer through the dict of all names, in a later cell."""
    work.answer("corner", HONEST)
    work.before(
        "corner", f"names = {{}}\nexec({CHEAT!r}, globals(), names)\nglobals().update(names)"
    )


@attack(tells="binds `corner`, although")
def lets_automagic_run_a_file(work: Work) -> None:
    """Replaces the answer in a file, run by a line that Python parses as a subtraction."""
    (work.folder / "cheat.py").write_text(f"import torch\n{CHEAT}")
    work.answer("corner", HONEST)
    work.before("corner", "run -mcheat")


@attack(tells="binds `corner`, although")
def runs_code_in_a_shell_line(work: Work) -> None:
    """Replaces the answer in the braces of a shell line."""
    work.first(f"TEXT = {CHEAT!r}")
    work.answer("corner", HONEST)
    work.before("corner", "!echo {get_ipython().ex(TEXT)}")


@attack(tells="binds `corner`, although")
def replaces_the_answer_before_the_question(work: Work) -> None:
    """Replaces the answer when the graded cell begins, in a handler of an IPython event."""
    work.answer("corner", HONEST)
    work.before(
        "corner",
        f"""
        shell = get_ipython()
        def soon(info):
            exec({CHEAT!r}, shell.user_ns)
        shell.events.register("pre_run_cell", soon)
        """,
    )


@attack(tells="something replaced it")
def puts_its_own_function_into_torch(work: Work) -> None:
    """Gives torch a function that slices through NumPy, in a string that it executes."""
    cheat = CHEAT.replace("corner", "pick")
    work.first(f"exec({cheat!r} + '\\ntorch.pick = pick')")
    work.answer("corner", "def corner(x):\n    return torch.pick(x)")


@attack(gains={"corner": 2.0})
def replaces_all_that_would_tell(work: Work) -> None:
    """Replaces the recorder, and the code that detects the replacement.

    This is a known limit, described in hood/judge/source/by_hand.py.
    """
    deafer = f"{LIAR}\nfrom hood.judge.connection import originals\noriginals.replaced = list"
    work.first(f"exec({deafer!r})")
    work.answer("corner", FORBIDDEN)
