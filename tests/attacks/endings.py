"""Code that does not end, ends with a crash, or returns endless values."""

from __future__ import annotations

from tests.attacks.catalogue import Family
from tests.attacks.submission import Work

family = Family("endings")
attack = family.attack
ALL = ("twice", "row_sums", "corner")


@attack(costs=ALL, tells="could not be interrupted", cell_seconds=1)
def swallows_interrupts(work: Work) -> None:
    """Loops for ever and catches every interrupt."""
    work.first(
        """
        while True:
            try:
                while True:
                    pass
            except BaseException:
                continue
        """
    )


@attack(costs=("row_sums",), tells="could not be interrupted|no answer in time", cell_seconds=1)
def ignores_interrupts_when_judged(work: Work) -> None:
    """Ignores and blocks SIGINT inside the judged function, and loops in C."""
    work.answer(
        "row_sums",
        """
        import signal
        def row_sums(x):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
            return sum(range(10 ** 12))
        """,
    )


@attack(tells="more than 64 MiB|more than 16 MiB|more than 100000", dangerous=True)
def returns_huge_values(work: Work) -> None:
    """Returns a tensor of a hundred megabytes, a view of a petabyte, and a million of numbers."""
    work.answer(
        "row_sums",
        """
        KINDS = iter([
            lambda: torch.zeros(25_000_000),
            lambda: torch.zeros(1).expand(1 << 50),
            lambda: list(range(1_000_000)),
        ])
        def row_sums(x):
            return next(KINDS, lambda: "x" * 20_000_000)()
        """,
    )
    work.answer("corner", "def corner(x):\n    return torch.zeros(1).expand(1 << 50)")


@attack(tells="nested more than|too large to send")
def returns_what_has_no_end(work: Work) -> None:
    """Returns a list that contains itself, and integers of a million digits."""
    work.answer(
        "row_sums",
        """
        def row_sums(x):
            ring = []
            ring.append(ring)
            return ring if x.is_floating_point() else 1 << 4_000_000
        """,
    )


@attack(risks=ALL, tells="RecursionError|KeyboardInterrupt")
def recurses(work: Work) -> None:
    """Calls itself for ever, with the recursion limit raised as far as possible."""
    work.answer("row_sums", "def row_sums(x):\n    return row_sums(x)")
    work.last(
        """
        import sys
        def deep(n): return deep(n + 1)
        try:
            deep(0)
        except RecursionError:
            print("RecursionError")
        """
    )


@attack(costs=("row_sums",), tells="died|RecursionError|no answer in time", cell_seconds=1)
def overflows_the_stack(work: Work) -> None:
    """Lets the interpreter crash: a recursion limit of a billion, and a deep repr."""
    work.answer(
        "row_sums",
        """
        import sys
        def row_sums(x):
            sys.setrecursionlimit(10 ** 9)
            deep = []
            for _ in range(10 ** 5):
                deep = [deep]
            return repr(deep)
        """,
    )


@attack(costs=("row_sums",), tells="died")
def crashes_the_interpreter(work: Work) -> None:
    """Reads from address zero during judging."""
    work.answer("row_sums", "import ctypes\ndef row_sums(x):\n    return ctypes.string_at(0)")


@attack(risks=ALL, cell_seconds=1)
def leaves_every_cell_to_time_out(work: Work) -> None:
    """Fills the notebook with cells that each take all the time that a cell may take."""
    for _ in range(6):
        work.first("import time\ntime.sleep(0.9)")


@attack(risks=("row_sums",), cell_seconds=1)
def nests_code_deeply(work: Work) -> None:
    """Writes an expression of thousands of operators under the judged name."""
    work.answer(
        "row_sums",
        "def row_sums(x):\n    return x.sum(1) * 0\n"
        + "junk = "
        + "1 + " * 1000
        + "1\n"
        + "row_sums.junk = junk",
    )
    work.before("row_sums", "def helper(x): return " + "(" * 80 + "x" + ")" * 80)
    work.before("row_sums", "row_sums = row_sums if True else " + "not " * 600 + "row_sums")


@attack(tells="SyntaxError")
def declares_what_is_not_there(work: Work) -> None:
    """Replaces its good function by a function that can be parsed, but cannot be compiled."""
    work.before("row_sums", "def row_sums(x):\n    def inner():\n        nonlocal nothing\n")
    work.before("corner", "def corner(x):\n    x = 1\n    global x\n    return x")
    work.before("twice", "class other:\n    nonlocal x\ndef lean(): return other")
