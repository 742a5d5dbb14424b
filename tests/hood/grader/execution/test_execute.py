"""Running a notebook in a sandbox: a cell that goes wrong costs only its own points."""

import os
import signal
from dataclasses import dataclass, replace

import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.utils import determine_grade

from hood.grader.execution.examiner import read_call
from hood.grader.execution.execute import Execute, TurnIsOver
from hood.grader.execution.graded_cell import read_verdicts
from hood.grader.sandbox import CannotSandbox, Limits, SandboxedKernel, ZygoteDied
from hood.judge.checks.exercise import ByHand, Check, case
from hood.phase_paths import ROOT, PhasePaths
from hood.verdict import VERDICT_MIME, Cause, Verdict
from tests.hood.grader.execution.test_graded_cell import graded_cell
from tests.hood.grader.sandbox.inmate import descendants
from tests.hood.judge.candidates import misconception

pytestmark = pytest.mark.slow(20)

HIDDEN = '### BEGIN HIDDEN TESTS\nverify("twice", twice)\n### END HIDDEN TESTS'
RIGHT = "def twice(x): return x + x"
UNSAFE = {"unsafe_no_sandbox": True}

TWICE = Check("twice", parts={"numbers": 2}, reads="A section")
TWICE.reference(lambda x: 2 * x)
TWICE.cases(lambda draw: [case("numbers", draw.integer(1, 10**9)) for _ in range(3)])
misconception(TWICE, "squared", "it was squared.", earns=0)(lambda x: x * x)


@dataclass(frozen=True)
class QuickLimits(Limits):
    """Limits with a short time between interrupt and kill."""

    grace: int = 1


@pytest.fixture(autouse=True)
def catalogue(monkeypatch):
    """The check that these notebooks call, and a short grace."""
    monkeypatch.setattr("hood.grader.execution.execute.Limits", QuickLimits)
    found = {"twice": (PhasePaths(ROOT, "99_tiny"), TWICE)}
    monkeypatch.setattr("hood.grader.execution.examiner.find_check", found.__getitem__)


def run(*sources, seconds=600, folder=None, settings=None, execute=Execute, **metadata):
    """Outputs of cells; a source with a hidden region becomes a graded cell."""
    cells = [
        s if not isinstance(s, str) else graded_cell(s) if "HIDDEN" in s else new_code_cell(s)
        for s in sources
    ]
    nb = new_notebook(cells=cells)
    nb.metadata["open_the_hood"] = {"cell_seconds": seconds, **metadata}
    resources = {"metadata": {"path": str(folder) if folder else None}}
    nb, _ = execute(**(settings or {})).preprocess(nb, resources)
    return nb


def grades(nb):
    return [determine_grade(c)[0] for c in nb.cells if "nbgrader" in c.metadata]


def test_errors_warnings_and_the_sandbox_itself(tmp_path):
    """One kernel for all tests that leave the kernel alive."""
    (tmp_path / "data.txt").write_text("beside the notebook")
    nb = run(
        "import os, sys, warnings",
        "def twice(x): warnings.warn('x'); print('INPUT', x, file=sys.stderr); return 2 * x",
        f"warnings.warn('visible')\n{HIDDEN}",
        f"1 / 0\n{HIDDEN}",
        f"sys.exit(3)\n{HIDDEN}",
        f"5.5\n{HIDDEN}",
        "this does not parse",
        "print(open('data.txt').read(), [k for k in os.environ if 'SEED' in k], os.getuid() == 0)",
        "def twice(x): return x * x",
        HIDDEN,
        "del twice",
        HIDDEN,
        "import warnings\n### BEGIN HIDDEN TESTS\nwarnings.warn('x')\n### END HIDDEN TESTS",
        "print('still here')\n### BEGIN HIDDEN TESTS\nassert False\n### END HIDDEN TESTS",
        folder=tmp_path,
        seed="ab12",
    )
    assert grades(nb) == [2.0, 2.0, 2.0, 2.0, 0.0, 0.0, 2.0, 0.0]
    assert "ZeroDivisionError" in str(nb.cells[3].outputs)
    assert "INPUT" not in str(nb.cells[2:])
    assert nb.cells[7].outputs[0].text == "beside the notebook [] False\n"
    assert nb.metadata.open_the_hood.seed == "ab12"
    assert nb.metadata.open_the_hood.sandbox is True
    squared = nb.cells[9].outputs[0].data[VERDICT_MIME]
    assert squared["explanations"] == {"squared": "it was squared."}
    assert squared["claims"] == []  # an int can't be changed
    assert "NameError" in str(nb.cells[11].outputs) or "not defined" in str(nb.cells[11].outputs)


def test_empty_lines_above_an_answer_change_nothing(monkeypatch):
    ruled = replace(TWICE, by_hand=ByHand("it is one sum", forbid_names=frozenset({"mul"})))
    found = {"twice": (PhasePaths(ROOT, "99_tiny"), ruled)}
    monkeypatch.setattr("hood.grader.execution.examiner.find_check", found.__getitem__)
    by_library = "import operator\ndef twice(x): return operator.mul(2, x)"
    for answer, points in ((RIGHT, 2.0), (by_library, 0.0)):
        assert grades(run(f"\n \n\t\n{answer}", HIDDEN)) == [points]


def test_an_endless_loop_costs_its_own_cell():
    nb = run("while True: pass", RIGHT, HIDDEN, seconds=1)
    assert grades(nb) == [2.0]
    assert "stopped after 1 s" in str(nb.cells[0].outputs)


def own(source):
    return new_code_cell(source, metadata={"open_the_hood": {"by": "learner"}})


def test_a_learners_own_cells_cost_no_answer_its_time():
    """The learner's own cells use up their time. The cells that an answer needs run in any case."""
    cells = ["while True: pass", "def add(x): return x + x", "late = 1"]
    answer = "def twice(x): return add(x)"  # in a cell without its nbgrader metadata
    nb = run(*map(own, [*cells, answer]), HIDDEN, seconds=4, limits={"total_seconds": 4})
    assert grades(nb) == [2.0]
    assert "stopped after 4 s" in str(nb.cells[0].outputs)
    assert nb.cells[1].execution_count == 2
    assert "was used up, and no exercise needs this cell" in str(nb.cells[2].outputs)
    assert [note["kind"] for note in nb.metadata.open_the_hood.notes] == ["own time"]


def test_a_notebook_takes_at_most_twice_its_total_time():
    """This is true for any own cells and any needed cells."""

    class Timed(Execute):
        passed = 0.0

        def _run_cell(self, cell, seconds=0):
            super()._run_cell(cell, seconds)
            if self.kernel.passed() < 1000:  # endless if it has ended before
                Timed.passed = self.kernel.passed()

    needed = "try:\n    while True: pass\nfinally: twice = abs"
    cells = [own(source) for source in ["while True: pass", needed] * 9]
    nb = run(*cells, HIDDEN, seconds=1, limits={"total_seconds": 2}, execute=Timed)
    assert "it ran longer than 2 s in all" in str(nb.cells[-1].outputs)
    assert Timed.passed < 2 * 2 + 2 * QuickLimits.grace


NEW_SYNTAX = "def twice(x): return f'{'a'}' and type X = int"


def test_code_for_a_newer_python_is_left_to_an_instructor():
    """The cell, the cell of a helper, or a call may need the newer Python."""
    imports = "def twice(x):\n    from itertools import soon\n    return soon(x)"
    wrong = "def twice(x): return x"
    nb = run(NEW_SYNTAX, HIDDEN, imports, HIDDEN, wrong, HIDDEN, RIGHT, HIDDEN, python="9.7.1")
    found = [cell.outputs[-2].data[VERDICT_MIME] for cell in nb.cells[1::2]]
    causes = [verdict["cause"] for verdict in found]
    assert causes == ["newer_python", "newer_python", "none", "none"]
    assert "written with Python 9.7" in found[0]["problem"]
    assert "`itertools` lacks something that this answer needs (ImportError)" in found[1]["problem"]
    assert [verdict["earned"] for verdict in found] == [0.0, 0.0, 0.0, 2.0]
    nb = run(NEW_SYNTAX, HIDDEN, python="3.11.2")
    verdict = read_verdicts(nb)["twice"]
    assert verdict.cause == "undefined_name"
    assert "a cell that would define it ended in SyntaxError, here with Python" in verdict.problem


def test_a_thousand_raising_cells_share_a_notebooks_time():
    nb = run(*["1 / 0"] * 1000, HIDDEN, limits={"total_seconds": 1})
    said = [output.evalue for cell in nb.cells[:-1] for output in cell.outputs]
    raised = said.count("division by zero")
    assert 0 < raised < 1000
    assert said[raised] == "the kernel died in this cell: it ran longer than 1 s in all"
    assert set(said[raised + 1 :]) == {
        "not run, because the kernel died in a cell above all exercises: "
        "it ran longer than 1 s in all"
    }
    assert grades(nb) == [0.0]


def test_an_endless_function_costs_only_its_exercise():
    nb = run("def twice(x):\n    while True: pass", HIDDEN, RIGHT, HIDDEN, seconds=1)
    assert grades(nb) == [0.0, 2.0]
    said = (
        "an endless loop, or code that is too slow; the limit is 1 s for all calls of this exercise"
    )
    assert said in " ".join(str(nb.cells[1].outputs).split())


def test_an_uninterruptible_loop_costs_the_following_cells_and_says_so():
    nb = run(
        RIGHT,
        HIDDEN,
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
        HIDDEN,
        "print('ordinary')\n### BEGIN HIDDEN TESTS\nassert True\n### END HIDDEN TESTS",
        seconds=1,
    )
    assert grades(nb) == [2.0, 0.0, 0.0]
    assert "could not be interrupted" in str(nb.cells[3].outputs)


@pytest.mark.parametrize("ends", ["exit()", "quit()", "exit", "import sys; sys.exit(1)"])
def test_exit_ends_its_cell_and_costs_nothing_else(ends):
    nb = run(RIGHT, ends, HIDDEN, f"{RIGHT}\n{ends}", HIDDEN)
    assert grades(nb) == [2.0, 2.0]
    assert "SystemExit" in str(nb.cells[1].outputs)


SHOWN = {
    "a figure that cannot be drawn": (
        "%matplotlib inline\nimport matplotlib.pyplot as plt\n"
        "def twice(x):\n    plt.figure()\n    plt.title(r'$\\frac{$')\n    return x + x"
    ),
    "a callback that raises": (
        f"{RIGHT}\nget_ipython().events.register('post_run_cell', lambda result: 1 / 0)"
    ),
    "a thread that shows a traceback": (
        "import threading\n"
        "def shows():\n    try: 1 / 0\n    except ArithmeticError: get_ipython().showtraceback()\n"
        "def twice(x):\n    thread = threading.Thread(target=shows)\n    thread.start()\n"
        "    thread.join()\n    return x + x"
    ),
}


@pytest.mark.parametrize("what", SHOWN)
def test_an_error_that_is_only_displayed_costs_nothing(what):
    nb = run(SHOWN[what], HIDDEN)
    assert grades(nb) == [2.0]


def test_a_missing_name_is_reported_beside_displayed_errors():
    callback = "get_ipython().events.register('post_run_cell', lambda result: 1 / 0)"
    nb = run(callback, HIDDEN)
    assert grades(nb) == [0.0]
    assert "no cell that ran to its end defines it" in str(nb.cells[1].outputs)


@pytest.mark.parametrize("how", ["os.environ.clear()", "os.environ = {}", "del os.environ"])
def test_the_environment_is_the_learners_own(how):
    nb = run(RIGHT, f"import os\n{how}", HIDDEN)
    assert grades(nb) == [2.0]


def test_a_kernel_killed_from_outside_costs_nothing():
    """Linux kills a kernel when memory is short. Code that kills its own kernel does so again."""

    class Unlucky(Execute):
        kills = 1

        def _run_cell(self, cell):
            if cell is self.nb.cells[1] and self.kills:
                self.kills -= 1
                for pid, command in descendants().items():
                    if "zygote" in command:
                        os.kill(pid, signal.SIGKILL)
            super()._run_cell(cell)

    assert grades(run(RIGHT, HIDDEN, execute=Unlucky)) == [2.0]
    Unlucky.kills = 2
    nb = run(RIGHT, HIDDEN, execute=Unlucky)
    assert grades(nb) == [0.0]
    assert "the kernel died in this cell" in str(nb.cells[1].outputs)


def test_a_dead_kernel_costs_the_following_cells_and_says_so():
    nb = run(RIGHT, HIDDEN, "import os; os._exit(1)", HIDDEN, "1")
    assert grades(nb) == [2.0, 0.0]
    assert "the kernel died in this cell" in str(nb.cells[2].outputs)
    assert "the kernel died in a cell below `twice`" in str(nb.cells[3].outputs)


def test_a_kernel_may_die_during_judging():
    nb = run("import os\ndef twice(x): os._exit(1)", HIDDEN, "1")
    assert grades(nb) == [0.0]
    assert "the kernel died" in str(nb.cells[1].outputs)


def test_a_flood_is_stopped_and_the_following_cells_count():
    flood = "while True: print('x' * 1000)"
    nb = run(flood, RIGHT, HIDDEN, limits={"output_kb": 200})
    assert grades(nb) == [2.0]
    assert len(str(nb.cells[0].outputs)) < 100_000


def test_an_uninterruptible_flood_costs_the_following_cells():
    ignore = "signal.signal(signal.SIGINT, signal.SIG_IGN)"  # again and again, even if it is undone
    flood = f"import signal\nwhile True:\n    {ignore}\n    print('x' * 1000)"
    nb = run(flood, RIGHT, HIDDEN, limits={"output_kb": 200})
    assert grades(nb) == [0.0]
    died = "the kernel died in this cell: this notebook printed more than 3200 KiB"
    assert died in str(nb.cells[0].outputs)
    assert "3200 KiB" in str(nb.cells[-1].outputs)
    assert len(str(nb.cells[0].outputs)) < 100_000


def test_an_answer_that_prints_much_says_so_and_the_following_cells_count():
    floods = "print('x' * 200_000)\n    time.sleep(3600)"
    prints = f"import time\ndef twice(x):\n    {floods}\n    return x + x"
    nb = run(prints, HIDDEN, RIGHT, HIDDEN, limits={"output_kb": 150})
    assert grades(nb) == [0.0, 2.0]
    [part] = verdict_in(nb.cells[1]).parts
    assert part.cause is Cause.TOO_MUCH_OUTPUT
    assert "printed more than 150 KiB, the limit for the notebook and its calls" in part.problem
    assert "loop" not in part.problem


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("bytearray(1 << 34)", "512 MiB of memory"),
        ("__import__('torch').zeros(1 << 34)", "512 MiB of memory"),
        ("open('/tmp/x', 'wb').write(bytes(3 << 20))", "2 MiB for one file"),
        ("[open(f'/tmp/{k}', 'wb').write(bytes(2 << 20)) for k in range(9)]", "8 MiB for files"),
        ("[open('/dev/null') for k in range(400)]", "256 open files for each process"),
        ("[Thread(target=sleep, args=[9]).start() for k in range(99)]", "32 processes and threads"),
    ],
)
def test_a_limit_that_a_call_reached_is_named_with_its_size(code, told):
    names = "from time import sleep; from threading import Thread"
    answer = f"{names}\nkept = []\ndef twice(x):\n    kept.append({code})\n    return x + x"
    given = {"memory_mb": 512, "file_mb": 2, "tmp_mb": 8, "processes": 32}
    nb = run(answer, HIDDEN, limits=given)
    assert grades(nb) == [0.0]
    [part] = verdict_in(nb.cells[1]).parts
    assert part.problem.endswith(f"; a sandbox has {told}")


def verdict_in(cell):
    [found] = [output.data[VERDICT_MIME] for output in cell.outputs if VERDICT_MIME in output.data]
    return Verdict.from_json(found)


def test_one_huge_output_is_cut_and_costs_nothing():
    nb = run("print('x' * 10**8)", "'y' * 10**8", RIGHT, HIDDEN, limits={"output_kb": 4096})
    assert grades(nb) == [2.0]
    assert len(str(nb.cells[0].outputs)) < 100_000


def test_a_kernels_own_claim_is_no_verdict():
    forged = (
        "class Report:\n"
        "    def _repr_mimebundle_(self, **_):\n"
        f"        return {{'{VERDICT_MIME}': {{'check': 'twice', 'points': 2, 'earned': 2}}}}\n"
        "def twice(x):\n    display(Report())\n    return 0\n"
        "import hood.judge.connection.rpc_server as rpc_server\n"
        "rpc_server.serve = lambda thing: (display(Report()), 2.0)[1]"
    )
    nb = run(forged, HIDDEN)
    assert grades(nb) == [0.0]
    assert read_verdicts(nb)["twice"].earned == 0


def test_files_that_do_not_fit_are_left_out_with_a_note(tmp_path):
    (tmp_path / "large.bin").write_bytes(bytes(3 << 20))
    (tmp_path / "hidden.ipynb").write_text("{}")
    look = "import os; print(os.listdir())"
    nb = run(look, RIGHT, HIDDEN, folder=tmp_path)
    assert nb.cells[0].outputs[0].text == "['large.bin']\n", "no notebook: it holds hidden tests"
    nb = run(look, RIGHT, HIDDEN, folder=tmp_path, limits={"tmp_mb": 1})
    assert nb.cells[0].outputs[0].text == "[]\n"
    assert grades(nb) == [2.0]
    assert [note["kind"] for note in nb.metadata.open_the_hood.notes] == ["files"]


def test_a_run_without_a_seed_gets_a_fresh_one():
    seeds = {run().metadata.open_the_hood.seed for _ in range(2)}
    assert len(seeds) == 2


def test_the_seed_decides_the_verdict():
    """A seed always gives the same cases; the function is right for odd numbers only."""
    odd = "def twice(x): return x + x if x % 2 else 0"
    verdicts = [read_verdicts(run(odd, HIDDEN, seed=s))["twice"] for s in ("aa", "aa")]
    for verdict in verdicts:
        assert all(part.example.seed != "aa" for part in verdict.parts)  # each time a new one
    assert verdicts[0].with_examples({}) == verdicts[1].with_examples({})


def test_without_a_sandbox_code_runs_only_on_request(monkeypatch, tmp_path):
    def refuse(*_, **__):
        raise CannotSandbox("no sandboxes here")

    monkeypatch.setattr("hood.grader.sandbox.kernel.warm", refuse)
    ran = tmp_path / "ran"
    touch = f"open({str(ran)!r}, 'w').close()"
    with pytest.raises(CannotSandbox):
        run(touch)
    assert not ran.exists()
    nb = run(touch, "exit()", "__import__('time').sleep(0.3)", "1 + 1", settings=UNSAFE)
    assert ran.exists()
    assert nb.metadata.open_the_hood.sandbox is False
    assert nb.cells[-1].outputs[0].data["text/plain"] == "2"


@pytest.mark.parametrize(("load", "ended"), [(99.0, True), (0.0, False)])
def test_without_a_sandbox_a_busy_machine_gives_a_cell_more_time(monkeypatch, load, ended):
    monkeypatch.setattr("os.getloadavg", lambda: (load, load, load))
    nb = run("__import__('time').sleep(2); 'ended'", seconds=1, settings=UNSAFE)
    assert ("ended" in str(nb.cells[0].outputs[-1].get("data"))) is ended


@pytest.mark.parametrize(("given", "seconds"), [(True, 60), (False, 5)])
def test_the_cap_is_for_learners_code_alone(given, seconds):
    step = Execute(max_cell_seconds=5)
    step._seconds = 60
    settings = {"locked": given, "solution": not given, "grade": False, "grade_id": "x"}
    step._limit(new_code_cell("", metadata={"nbgrader": settings}))
    assert step.timeout == seconds


def test_the_judged_function_is_read_from_the_call():
    imported = "from hood.judge.verify import verify\n"
    assert read_call(f'{imported}verify("a", f)') == ("a", "f", {})
    assert read_call(f'{imported}verify("a", g=f, h=k.m)') == ("a", "None", {"g": "f", "h": "k.m"})
    with pytest.raises(ValueError, match="expected `verify"):
        read_call("print(1)")


# Wrong for all hidden numbers, which are large.
ONE_MORE = "def twice(x): return 2 * x + 1"


def example(nb, index=-1):
    """The example in a cell's report, or None."""
    [part] = nb.cells[index].outputs[0].data[VERDICT_MIME]["parts"]
    return part["example"]


def test_a_failing_example_stands_in_the_report_unless_the_lab_wants_none():
    nb = run(ONE_MORE, HIDDEN, "print('the last cell')")
    found = example(nb, 1)
    assert found["call"].startswith("twice(")
    number = int(found["call"][6:-1])
    assert (int(found["expected"]), int(found["got"])) == (2 * number, 2 * number + 1)
    assert f"               {found['call']}\n" in nb.cells[1].outputs[0].data["text/plain"]
    assert example(run(ONE_MORE, HIDDEN, examples=False)) is None
    assert example(run(RIGHT, HIDDEN)) is None


def test_code_that_misbehaves_during_the_search_for_an_example_loses_nothing(monkeypatch):
    """By then the verdicts are final: a loop, the kernel's end or a flood can't change them."""
    monkeypatch.setattr("hood.grader.execution.execute.EXAMPLE_SECONDS", 1)
    small = (
        "while True:\n  try:\n   while True: pass\n  except KeyboardInterrupt: pass",
        "import os; os._exit(1)",
        "print('x' * 10**8)",
        "raise SystemExit",
    )
    wrong_and_right = f"def thrice(x):\n return 3 * x\n{RIGHT}"
    for what in small:
        hostile = f"def twice(x):\n if x > 99: return 7\n {what.replace(chr(10), chr(10) + ' ')}"
        nb = run(hostile, HIDDEN, wrong_and_right, HIDDEN, hostile, HIDDEN)
        assert grades(nb) == [0.0, 2.0, 0.0]
        statuses = [nb.cells[k].outputs[0].data[VERDICT_MIME]["status"] for k in (1, 3, 5)]
        assert statuses == ["wrong", "right", "wrong"]
        assert [note["kind"] for note in nb.metadata.open_the_hood.get("notes", [])] == []
        assert "xxxx" not in str(nb.cells)


def test_hidden_cases_kept_by_code_do_not_lengthen_an_example():
    keeps = "kept = []\ndef twice(x):\n kept.append(x)\n return kept * 50"
    assert len(str(example(run(keeps, HIDDEN)))) < 2_000


def test_no_example_is_called_by_a_name_that_the_notebook_lacks():
    other = HIDDEN.replace(", twice)", ", lambda x: 2 * x + 1)")
    assert example(run("", other)) is None


class Steps:
    """Makes a step of grading with a turn, and puts the step into `made`."""

    def __init__(self, turn):
        self.turn = turn

    def __call__(self, **settings):
        self.made = Execute(**settings)
        self.made.turn = self.turn
        return self.made


@pytest.mark.parametrize("source", ["while True: pass", "import time; time.sleep(600)"])
def test_a_notebook_whose_turn_is_over_has_no_verdict_yet(source):
    with pytest.raises(TurnIsOver):
        run(source, RIGHT, HIDDEN, execute=Steps(1))


def test_a_long_enough_turn_changes_nothing():
    steps = Steps(60)
    # several measurements of the kernel's time, with a tenth of a second between two
    takes = "import time\nwhile time.process_time() < 2: pass"
    assert grades(run(takes, RIGHT, HIDDEN, execute=steps)) == [2.0]
    assert steps.made.ended == ()
    assert 0 < steps.made.seconds < 60


def test_a_machine_that_is_too_busy_for_a_turn_ends_the_turn(monkeypatch):
    def starved(self):
        raise ZygoteDied("this machine is too busy")

    monkeypatch.setattr(SandboxedKernel, "start", starved)
    for turn, expected in [(1, TurnIsOver), (0, ZygoteDied)]:
        with pytest.raises(expected):
            run(RIGHT, HIDDEN, execute=Steps(turn))


def test_a_call_stopped_at_a_limit_is_reported():
    steps = Steps(0)
    run("def twice(x):\n    while True: pass", "twice(1)", HIDDEN, seconds=1, execute=steps)
    assert [said.rpartition(" was ")[2] for said in steps.made.ended] == ["stopped after 1 s"] * 2
