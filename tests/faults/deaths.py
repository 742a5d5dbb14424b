"""Signals for the processes of a run: each function starts a run and returns how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.faults import processes
from tests.faults.classes import variables
from tests.faults.patched import POINTS
from tests.faults.scene import GOES_ON, KILLED, Run, Scene, Struck

INTERRUPTED = "Interrupted. Finished grades are recorded"


def killed(scene: Scene) -> Struck:
    """SIGKILL or SIGTERM for the command, at any moment."""
    run, number = scene.aimed()
    which = scene.rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM))
    at = scene.recorded()
    run.process.send_signal(which)
    return Struck(f"{which.name} after {number}", at, run.wait(), (-which, 0))


def killed_early(scene: Scene) -> Struck:
    """SIGKILL while it starts, imports or opens the gradebook."""
    run = scene.grade(*scene.workers())
    seconds = scene.rng.uniform(0, 4)
    time.sleep(seconds)
    at = scene.recorded()
    processes.kill(run.pid)
    return Struck(f"SIGKILL {seconds:.1f} s after the start", at, run.wait(), (KILLED, 0))


def killed_twice(scene: Scene) -> Struck:
    """SIGKILL for a run, and for the next, which starts while processes of the first still run."""
    run, first = scene.aimed()
    processes.kill(run.pid)
    run.wait()
    more = scene.grade(*scene.workers())
    second = scene.rng.randrange(scene.recorded(), scene.cls.students + 1)
    more.until_recorded(second)
    at = scene.recorded()
    processes.kill(more.pid)
    return Struck(f"SIGKILL after {first}, then after {second}", at, more.wait(), (KILLED, 0))


def all_killed(scene: Scene) -> Struck:
    """SIGKILL for the command and its workers at once."""
    run, number = scene.aimed()
    workers, at = processes.workers(run.pid), scene.recorded()
    for pid in (run.pid, *workers):
        processes.kill(pid)
    status = run.wait()
    for left in scene.tmp.glob("open-the-hood-worker-*"):  # no process is left to do it
        scene.remove(left)
    return Struck(f"SIGKILL for all after {number}", at, status, (KILLED, 0))


def worker(scene: Scene) -> Struck:
    """SIGKILL for a worker, once or twice."""
    run = scene.grade("--workers", "2")
    struck, at = [], 0
    for _ in range(scene.rng.choice((1, 2))):
        number = scene.somewhere()
        if not run.until_recorded(number) or not run.until(lambda: processes.workers(run.pid)):
            break
        at = scene.recorded()
        processes.kill(scene.rng.choice(processes.workers(run.pid) or [-1]))
        struck.append(str(number))
    # a worker that dies at its start ends the run, because the machine might be the cause
    return Struck(f"worker killed after {' and '.join(struck)}", at, run.wait(), (0, 2))


def writer(scene: Scene) -> Struck:
    """SIGKILL at a point of the writer's work."""
    point = scene.rng.choice(list(POINTS))
    return writer_at(scene, point)


def writer_at(scene: Scene, point: str) -> Struck:
    """SIGKILL at a point of the writer's work, in a random submission."""
    at = scene.rng.randrange(1, scene.cls.students - len(scene.cls.before.keys) + 3)
    spec = {"point": point, "at": at}
    if point == "statement":
        spec["statement"] = scene.rng.randrange(1, 14)
    if point == "preparing":
        spec["statement"] = scene.rng.randrange(1, 8)
    run = scene.patched(spec, *scene.workers())
    status = run.wait()
    where = {"statement": f" (the {spec.get('statement')}.)"}.get(point, "")
    what = f"killed {POINTS[point]}{where}, submission {at}"
    return Struck(what, scene.recorded(), status, (KILLED, 0) if where else (KILLED,))


def _begun(scene: Scene) -> tuple[Run, int]:
    """A run that has recorded something. Before that, the signal might come while Python starts."""
    first = scene.recorded() + 1
    run, number = scene.aimed()
    run.until_recorded(first)
    return run, max(first, number)


def ctrl_c(scene: Scene) -> Struck:
    """Ctrl-C, once."""
    run, number = _begun(scene)
    at = scene.recorded()
    run.process.send_signal(signal.SIGINT)
    status = run.wait()
    return Struck(f"Ctrl-C after {number}", at, status, (130, 0), INTERRUPTED if status else "")


def ctrl_c_twice(scene: Scene) -> Struck:
    """Ctrl-C, and again at once or soon after."""
    run, number = _begun(scene)
    at = scene.recorded()
    run.process.send_signal(signal.SIGINT)
    time.sleep(scene.rng.choice((0.001, 0.01, 0.1)))
    run.process.send_signal(signal.SIGINT)
    return Struck(f"Ctrl-C twice after {number}", at, run.wait(), (130, 0))


def scheduler(scene: Scene) -> Struck:
    """SIGKILL for the Dask scheduler in mid-run."""
    with _cluster(scene, workers=1) as (address, head, _):
        run = scene.grade("--scheduler", address)
        number = scene.somewhere()
        run.until_recorded(number)
        at = scene.recorded()
        head.kill()
        status = run.wait()
    says = f"is lost.*{GOES_ON}|lost.*run the same command" if status else ""
    return Struck(f"Dask scheduler killed after {number}", at, status, (2, 0), says)


def dask_worker(scene: Scene) -> Struck:
    """SIGKILL for one of two Dask workers in mid-run."""
    with _cluster(scene, workers=2) as (address, _, workers):
        run = scene.grade("--scheduler", address)
        number = scene.somewhere()
        run.until_recorded(number)
        at = scene.recorded()
        workers[0].kill()
        status = run.wait()
    return Struck(f"Dask worker killed after {number}", at, status, (0,))


def zygote(scene: Scene) -> Struck:
    """SIGKILL for the warm process, once it has a kernel."""
    run = scene.grade("--workers", "1")
    at = _in_a_kernel(scene, run)
    found = processes.zygotes(run.pid)
    for pid in found:
        processes.kill(pid)
    return Struck(f"zygote killed ({len(found)})", at, run.wait(), (0,))


def kernel(scene: Scene) -> Struck:
    """SIGKILL for a learner's kernel. This looks as if the learner's code had killed the kernel,
    and the learner is graded accordingly. An instructor who knows better grades the submission
    again.
    """
    run = scene.grade("--workers", "1")
    at = _in_a_kernel(scene, run)
    for pid in processes.kernels(run.pid):
        processes.kill(pid)
    status = run.wait()
    hit = set()
    for path in scene.root.glob(f"autograded/*/{scene.cls.lab}/*.ipynb"):
        student = path.relative_to(scene.root).parts[1]
        if "the kernel died" in path.read_text() and student != "eve":
            hit.add(student)
    again = ("--regrade", "--students", *hit) if hit else ()
    what = f"kernel of {', '.join(hit) or 'nobody yet'} killed"
    return Struck(what, at, status, (0,), again=again, by_learner=hit)


def in_sandboxes(scene: Scene) -> Struck:
    """SIGKILL for the command or its worker while a kernel runs in its sandbox."""
    run = scene.grade("--workers", "1")
    at = _in_a_kernel(scene, run)
    if scene.rng.choice((True, False)):
        processes.kill(run.pid)
        return Struck("SIGKILL with a kernel in its sandbox", at, run.wait(), (KILLED, 0))
    for pid in processes.workers(run.pid):
        processes.kill(pid)
    return Struck("worker killed with a kernel in its sandbox", at, run.wait(), (0,))


def entering(scene: Scene) -> Struck:
    """SIGKILL while nbgrader tells the gradebook about the lab; nbgrader itself goes on."""
    (scene.root / "gradebook.db").unlink()
    run = scene.grade("--workers", "1")
    run.until(lambda: processes.below(run.pid))
    seconds = scene.rng.uniform(0, 6)
    time.sleep(seconds)
    processes.kill(run.pid)
    status = run.wait()
    for left in scene.tmp.glob("tmp*"):  # the release, which is not needed
        scene.remove(left)
    return Struck(f"SIGKILL {seconds:.1f} s into entering the lab", 0, status, (KILLED, 0))


def _in_a_kernel(scene: Scene, run: Run) -> int:
    """Wait for a kernel, and then a little longer. Returns how many submissions are recorded."""
    number = scene.rng.randrange(scene.cls.students - 1)
    run.until_recorded(number)
    run.until(lambda: processes.kernels(run.pid))
    time.sleep(scene.rng.uniform(0, 1))
    run.until(lambda: processes.kernels(run.pid))
    return scene.recorded()


@contextmanager
def _cluster(
    scene: Scene, workers: int
) -> Iterator[tuple[str, subprocess.Popen, list[subprocess.Popen]]]:
    """A Dask scheduler and workers, as processes. Yields the address first."""
    scratch = scene.folder / "dask"
    scratch.mkdir()
    told = scratch / "scheduler.json"
    files = ("--scheduler-file", str(told))

    def start(name: str, *more: str) -> subprocess.Popen:
        with (scratch / f"{name}.log").open("ab") as log:
            made = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{name}", *files, *more],
                cwd=scene.root,
                env=variables(scene.root, scene.tmp),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        scene.others.append(made)
        return made

    quiet = ("--no-dashboard", "--host", "127.0.0.1")
    head = start("scheduler", *quiet, "--port", "0")
    scene.until(told.exists)
    more = ("--nthreads", "1", "--no-nanny", "--local-directory", str(scratch))
    made = [start("worker", *quiet, *more) for _ in range(workers)]
    try:
        scene.until(lambda: (scratch / "worker.log").read_text().count("Registered to") >= workers)
        yield json.loads(told.read_text())["address"], head, made
    finally:
        for other in (*made, head):
            with contextlib.suppress(ProcessLookupError):
                os.kill(other.pid, signal.SIGTERM)
        for other in (*made, head):
            other.wait(60)
