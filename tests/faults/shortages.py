"""A full disk, or a gradebook that another program has locked."""

from __future__ import annotations

import contextlib
import resource
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.faults.scene import GOES_ON, Scene, Struck

PATIENCE = 3.0


def disk_full(scene: Scene) -> Struck:
    """The disk of the course is full, or only the disk of its graded files is full."""
    place = scene.rng.choice((scene.root, scene.root / "autograded"))
    scene.mount(place, "size=12m")
    run, number = scene.aimed()
    at = scene.recorded()
    filler = _fill(place)
    status = run.wait()
    filler.unlink()
    says = f"([Nn]o space left|full|disk I/O).*{GOES_ON}" if status else ""
    return Struck(f"{place.name}/ full after {number}", at, status, (2, 0), says)


def file_limit(scene: Scene) -> Struck:
    """No file may grow beyond a limit that the gradebook reaches in mid-run."""
    size = scene.rng.randrange(20_000, 400_000)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    run = scene.grade(*scene.workers(), preexec_fn=limit)
    status = run.wait()
    says = f"(too large|full|disk I/O).*{GOES_ON}" if status else ""
    return Struck(f"no file over {size} bytes", scene.recorded(), status, (2, 0), says)


def tmp_full(scene: Scene) -> Struck:
    """The temporary folder has no room for another file."""
    scene.mount(scene.tmp, "size=12m,nr_inodes=64")
    run, number = scene.aimed()
    at = scene.recorded()
    # fill the folder again and again, because another process can use the space that one process
    # frees
    run.until(lambda: _crowd(scene.tmp))
    status = run.wait()
    for filler in scene.tmp.glob("filler*"):
        filler.unlink()
    says = "No space left" if status else ""
    return Struck(f"temporary folder full after {number}", at, status, (0, 1, 2), says, True)


def locked_long(scene: Scene) -> Struck:
    """Another program locks the gradebook for longer than the writer's patience."""
    run, number = scene.aimed(patience=PATIENCE)
    with _locked(scene) as at:
        status = run.wait()
    says = f"locked for {PATIENCE:g} s.*{GOES_ON}" if status else ""
    return Struck(f"locked for good after {number}", at, status, (2, 0), says)


def locked_short(scene: Scene) -> Struck:
    """Another program locks the gradebook for less time than the writer's patience."""
    run, number = scene.aimed(patience=60.0)
    with _locked(scene) as at:
        time.sleep(2)
    return Struck(f"locked for 2 s after {number}", at, run.wait(), (0,))


def locked_at_start(scene: Scene) -> Struck:
    """The gradebook is locked already when the run starts, for ever or for a while."""
    long = scene.rng.choice((True, False))
    with _locked(scene) as at:
        run = scene.patched({"patience": PATIENCE if long else 60.0}, *scene.workers())
        if long:
            status = run.wait()
        else:
            time.sleep(8)
    if long:
        says = f"locked for {PATIENCE:g} s.*{GOES_ON}"
        return Struck("locked from before the start", at, status, (2,), says)
    return Struck("locked while it starts", at, run.wait(), (0,))


@contextmanager
def _locked(scene: Scene) -> Iterator[int]:
    """The gradebook, locked by this process."""
    with closing(sqlite3.connect(scene.root / "gradebook.db", timeout=60)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        at = scene.recorded()
        yield at
        connection.rollback()


def _fill(folder: Path) -> Path:
    """Fill the file system with one file."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass
    return filler


def _crowd(folder: Path) -> None:
    """Make files until no more are allowed."""
    with contextlib.suppress(OSError):
        while True:
            (folder / f"filler{time.monotonic_ns()}").touch()
