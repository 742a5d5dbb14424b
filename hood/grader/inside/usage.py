"""Measure what a sandbox uses: memory of its processes and files, memory of Linux for them, time.

Linux keeps page tables, socket buffers, pipes and records of mappings in memory that belongs to no
process. So the objects that cause it are counted; if a size cannot be read, the largest possible
one counts, and what cannot be counted at all is prevented by :mod:`hood.grader.inside.seccomp`. Of
a process's pages only the anonymous ones count: those of a file in memory count as the file, once,
and those of other files belong to Linux's cache. Whoever makes a measurement slow is not measured
but ended (:class:`TooDear`). While an estimate above the limit is verified, the sandbox's processes
stand still, so that they take no more meanwhile.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import struct
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

PAGE = os.sysconf("SC_PAGE_SIZE")
# Bytes that Linux keeps
INODE = 1024  # for a file, even an empty one; approximate
THREAD = 32 << 10  # for a thread: its stack inside Linux and its records
MAPPING = 512  # for one memory mapping
FORK = 64  # for one memory mapping, for each fork that its pages have passed through
DESCRIPTOR = 1 << 10  # for an open file
PIPE = 64 << 10  # in a full pipe; the filter prevents larger pipes
WATCHED = 256  # for one descriptor in one epoll set
QUEUE = 11  # datagrams that a socket may hold unread; net.unix.max_dgram_qlen is 10 in a sandbox
# The file of a sandbox's own time has its seconds, then a byte that is 0 while the sandbox waits
# for the grader and not the grader for it, and then how many of the seconds do not count towards
# its limit in all.
OWN_TIME = struct.Struct("d")
AWAITED = OWN_TIME.size
SPARED = AWAITED + 1
WAITS = 10  # wall-clock time that a time limit may take, as a multiple of the limit
LONGEST_SLEEP = 0.25  # seconds between two looks above which the machine is too busy to look
RECKONED = 1.0  # seconds over which the mean number of runnable threads is taken
SECONDS_PER_COUNT = 1.0  # between two counts of the mappings, which are slow
# The most that a measurement may take of a processor: twice what so many processes as may be, none
# of which is strange, cost on a slow machine. What a process maps of files is read in one piece,
# and 8 GiB in half a second.
SECONDS_TO_MEASURE = 2.0
MAPPED = 8 << 30
# Bytes that one processor fills in a second, and the shortest time between two glances at memory: a
# sandbox that is near its limit is looked at before it can be far above it.
FILLS = 2 << 30
SHORTEST_GLANCE = 0.01
# How often the processes are listed that are stopped. A process that is to stop can't fork, so only
# the first list can be incomplete; those that wake each other while they are stopped may need more.
ROUNDS = 5
COUNTED = (b"RssAnon", b"RssFile", b"RssShmem", b"VmPTE", b"VmSwap", b"Threads")
DATAGRAM = b"0002"
LISTENS = b"0A"
# Number of runnable threads above which a sandbox gets no larger share of the processor, and above
# which it is its own threads that it waits for, however busy the machine is.
FAIR, CROWD = 2, 16
STEP, NICEST = 1.25, 19  # one step of niceness divides a thread's share by STEP
# New sessions that so many looks may see; above that a sandbox is ended. Where Linux shares the
# processor between sessions, each has a whole share until a look sees it. So four new ones at each
# look have four shares all the time.
LOOKS = 10
NEW_SESSIONS = 40


def niceness(runnable: float) -> int:
    """Return the niceness at which ``runnable`` threads together get the share of FAIR threads."""
    if runnable <= FAIR:
        return 0
    return min(NICEST, math.ceil(math.log(runnable / FAIR, STEP)))


def be_nice(roots: Iterable[int], value: int) -> None:
    """Set the niceness of processes, of their descendants, and of their sessions (autogroups)."""
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(OSError):  # the process has ended
            for thread in os.listdir(f"/proc/{pid}/task"):
                below = Path(f"/proc/{pid}/task/{thread}/children").read_text()
                waiting += map(int, below.split())
                with contextlib.suppress(PermissionError):  # its niceness is already higher
                    os.setpriority(os.PRIO_PROCESS, int(thread), value)
            with contextlib.suppress(OSError):  # Linux has no autogroups, or is busy
                Path(f"/proc/{pid}/autogroup").write_text(str(value))


def killed_for_memory() -> int:
    """Return how many processes Linux has killed on this machine because memory ended."""
    lines = Path("/proc/vmstat").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


class TooDear(Exception):
    """A sandbox's memory cannot be measured in SECONDS_TO_MEASURE."""


class Pages(NamedTuple):
    """Bytes of a process's pages, where one that is shared counts fully."""

    anonymous: int
    of_files: int


class Thread(NamedTuple):
    """What Linux tells of a thread: nanoseconds, whether it wants a processor now, its session."""

    ran: int
    waited: int
    wants: bool
    session: bytes


def _since(before: Mapping[str, Thread], now: Mapping[str, Thread]) -> tuple[float, float]:
    """Return the seconds that threads ran, and that they waited, between two looks."""
    none = Thread(0, 0, False, b"")
    pairs = [(thread, before.get(number, none)) for number, thread in now.items()]
    ran = sum(max(0, thread.ran - had.ran) for thread, had in pairs)
    return ran * 1e-9, sum(max(0, thread.waited - had.waited) for thread, had in pairs) * 1e-9


def _come_and_gone(before: Collection[str], now: Collection[str]) -> bool:
    """Return whether a thread was made and ended between two looks.

    A sandbox gives its threads' ids in order, so one that is nowhere shows as a gap.
    """
    new = [int(thread) for thread in now if thread not in before]
    last = max(map(int, before), default=0)
    return bool(new) and (min(new) < last or max(new) - last > len(new))


class Meter:
    """Measure a sandbox through its own /proc, which lists exactly its processes.

    ``init`` is its pid 1, seen from outside; ``writable`` the paths in it of file systems in
    memory, whose files count; ``grader`` the grading process. ``passed`` are seconds of its own
    time (:meth:`look`), ``runnable`` is the mean number of threads that had or wanted a processor
    in the last second, ``new_sessions`` how many were new at the last LOOKS looks. Raises OSError
    if it has ended.
    """

    def __init__(self, init: int, writable: Iterable[str], grader: int) -> None:
        root = f"/proc/{init}/root"
        folders = [f"{root}/proc", f"/proc/{init}/net", *(f"{root}{path}" for path in writable)]
        with contextlib.ExitStack() as opened:
            found = []
            for path in folders:
                found.append(os.open(path, os.O_RDONLY | os.O_DIRECTORY))
                opened.callback(os.close, found[-1])
            self.proc, self.net, *self.mounts = found
            # bytes that a socket may hold; the filter prevents larger buffers
            self.buffer = int(Path("/proc/sys/net/core/wmem_default").read_text())
            self.counted = 0.0
            self.mapped = 0
            self.passed = self.ran = self.slept = self.lacked = 0.0
            self.runnable = self.busy = 0.0
            self.new_sessions = self.new = self.looks = 0
            self.grader = f"/proc/{grader}/task"
            self.threads, self.graders = self._threads(), self._threads_in(self.grader)
            self.looked = self.since = time.monotonic()
            self.worked = time.process_time()
            self.beside, pages = self._memory()
            shares = sum(self._share(pid, own) for pid, own in pages.items())
            self.baseline = self._mappings(0) + self.beside + shares
            self.close = opened.pop_all().close

    def exceeds(self, limit: int) -> bool:
        """Return whether the sandbox uses more than ``limit`` bytes beyond what it started with.

        Only if a cheap estimate that is never too low exceeds the limit, shared pages are divided
        between the processes that share them. For that all processes are stopped, and they go on
        only where the answer is no. Raises OSError if it has ended, or TooDear.
        """
        files = self._files()
        now = time.monotonic()
        if now - self.counted > SECONDS_PER_COUNT:
            self.counted = now
            self.mapped = self._mappings(limit + self.baseline)
        memory, pages = self._memory()
        self.beside = memory + self.mapped
        if files + self.beside + sum(own.anonymous for own in pages.values()) <= limit:
            return False
        begun = time.monotonic()
        stopped = self._stop()
        memory, pages = self._memory()  # with what they took until all of them had stopped
        if self._sum_exceeds(limit + self.baseline, files + memory + self.mapped, pages):
            return True
        self._go_on(stopped)
        self.looked += time.monotonic() - begun  # they could not run
        return False

    def glance(self, limit: int) -> float:
        """Return the seconds until memory should be looked at again; 0 if that is now.

        It is the time in which the processors of this machine can fill what is left of ``limit``.
        What Linux keeps is what it was at the last look.
        """
        pages = 0
        for pid in self._processes():
            _, resident, shared, *_ = self._text(f"{pid}/statm").split() or (b"0",) * 3
            pages += int(resident) - int(shared)
        left = limit - self._files() - self.beside - pages * PAGE
        if left < 0:
            return 0.0
        return max(SHORTEST_GLANCE, left / (FILLS * (os.cpu_count() or 1)))

    def _stop(self) -> list[str]:
        """Stop all processes but the first, which runs nothing; return those that did run."""
        stopped: dict[str, None] = {}
        for _ in range(ROUNDS):
            running = [pid for pid in self._processes() if pid != "1" and not self._stands(pid)]
            if not running:
                break
            stopped |= dict.fromkeys(running)
            self._signal(running, signal.SIGSTOP)
        return list(stopped)

    def _go_on(self, stopped: Iterable[str]) -> None:
        self._signal(stopped, signal.SIGCONT)

    def _stands(self, pid: str) -> bool:
        return self._text(f"{pid}/stat").rpartition(b")")[2].split()[:1] in ([], [b"T"], [b"Z"])

    def _signal(self, processes: Iterable[str], number: signal.Signals) -> None:
        for pid in processes:
            with contextlib.suppress(OSError):  # it has ended
                # a folder of /proc is a pidfd, also where its numbers are those of the sandbox
                folder = os.open(pid, os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.proc)
                try:
                    signal.pidfd_send_signal(folder, number)
                finally:
                    os.close(folder)

    def _sum_exceeds(self, limit: int, total: int, pages: Mapping[str, Pages]) -> bool:
        """Return whether ``total`` and all pages, a shared one counted once, exceed a limit.

        The processes that may have most come first, and nothing is read that can't change the
        answer.
        """
        unread = sum(own.anonymous for own in pages.values())
        for pid in self._in_time(sorted(pages, key=lambda pid: -pages[pid].anonymous)):
            if total > limit or total + unread <= limit:
                break
            unread -= pages[pid].anonymous
            total += self._share(pid, pages[pid])
        return total + unread > limit

    def look(self, awaited: bool = True) -> None:
        """Update ``passed``, ``runnable`` and ``new_sessions``.

        What its threads ran is the sandbox's own time. So is the time in which all of them slept
        while the grader waited for them, except what the grader itself waited for a processor: it
        may have had the answer and not been able to read it. Where a thread has or wants a
        processor at a look, only what the threads ran since the last look counts, because the rest
        went to other programs. A sandbox gains nothing when its own threads wait for each other,
        because one of them runs meanwhile. What a thread ran that has come and gone between two
        looks is not known, so then they count as slept. A sandbox that wants more than CROWD
        processors waits for itself, as a fork bomb does: then all that passes is its own.
        ``awaited`` is whether the grader waits for the sandbox, and not the sandbox for the grader.
        """
        before, graders = self.threads, self.graders
        self.threads, self.graders = self._threads(), self._threads_in(self.grader)
        now = time.monotonic()
        seconds, self.looked = now - self.looked, now
        worked, self.worked = time.process_time() - self.worked, time.process_time()
        ran, waited = _since(before, self.threads)
        self.lacked += _since(graders, self.graders)[1]
        self.busy += ran + waited
        if now - self.since > RECKONED:
            self.runnable, self.busy, self.since = self.busy / (now - self.since), 0.0, now
        crowded = self.runnable > CROWD
        self.ran += seconds if crowded else min(seconds, ran)
        wants = any(self.threads[number].wants for number in self.threads.keys() & before.keys())
        if awaited and not crowded and (not wants or _come_and_gone(before, self.threads)):
            # looking takes time, too, where a sandbox has made that dear
            self.slept += max(0.0, min(seconds, LONGEST_SLEEP + worked) - ran)
        self.passed = self.ran + max(0.0, self.slept - self.lacked)
        known = {thread.session for thread in before.values()}
        self.new += len({thread.session for thread in self.threads.values()} - known - {b""})
        self.looks += 1
        if self.looks == LOOKS:
            self.new_sessions, self.new, self.looks = self.new, 0, 0

    def _threads(self) -> dict[str, Thread]:
        found: dict[str, Thread] = {}
        for pid in self._processes():
            found |= self._threads_in(f"/proc/self/fd/{self.proc}/{pid}/task")
        return found

    def _threads_in(self, tasks: str) -> dict[str, Thread]:
        found = {}
        with contextlib.suppress(OSError):
            for thread in os.listdir(tasks):
                ran, waited, *_ = self._text(f"{tasks}/{thread}/schedstat").split() or (0, 0)
                # the state follows the name, in which a thread can write what it likes
                about = self._text(f"{tasks}/{thread}/stat").rpartition(b")")[2].split()
                state, _, _, session, *_ = about or (b"",) * 4
                found[thread] = Thread(int(ran), int(waited), state == b"R", session)
        return found

    def _files(self) -> int:
        total = 0
        for mount in self.mounts:
            about = os.fstatvfs(mount)
            total += (about.f_blocks - about.f_bfree) * about.f_frsize
            total += (about.f_files - about.f_ffree) * INODE
        return total

    def _memory(self) -> tuple[int, dict[str, Pages]]:
        """Return the bytes that Linux keeps for the processes, and each one's pages."""
        total, pages = self._sockets(), {}
        for pid in self._in_time(self._processes()):
            status = self._status(pid)
            total += self._own(pid, status)
            shown = status.get(b"RssFile", 0) + status.get(b"RssShmem", 0)
            pages[pid] = Pages(status.get(b"RssAnon", 0), shown)
        return total, pages

    def _mappings(self, most: int) -> int:
        """Return the bytes of the records of mappings; count no further above ``most``, if any."""
        total = 0
        # at worst each process was forked by the one before it
        each = MAPPING + FORK * len(list(self._processes()))
        for pid in self._in_time(self._processes()):
            total += self._text(f"{pid}/maps").count(b"\n") * each
            if most and total > most:
                break
        return total

    def _sockets(self) -> int:
        """Return the bytes that the sandbox's sockets may hold, those not yet accepted included."""
        total = 0
        for line in self._text("unix", self.net).splitlines()[1:]:
            # A socket's name may hold line breaks. A line that is a piece of a name adds one more.
            datagram = line.split()[4:5] == [DATAGRAM]
            total += self.buffer * (QUEUE if datagram else 1)
        # Linux's own netlink sockets, one for each protocol, are listed too; they are also part of
        # the baseline
        total += self.buffer * self._text("netlink", self.net).count(b"\n")
        for version in ("", "6"):
            used = self._text(f"sockstat{version}", self.net).split()
            for kind in ("TCP", "UDP"):
                name = f"{kind}{version}:".encode()
                if name in used and used[used.index(name) + 2] != b"0":
                    total += self._queues(self._text(f"{kind.lower()}{version}", self.net))
        return total

    @staticmethod
    def _queues(table: bytes) -> int:
        """Return the bytes in the queues of TCP or UDP sockets."""
        total = 0  # four times, because Linux needs several times the size of small pieces
        for line in table.splitlines()[1:]:
            _, _, _, state, queues, *_ = line.split()
            sent, received = (int(size, 16) for size in queues.split(b":"))
            total += 4 * PAGE + (0 if state == LISTENS else 4 * (sent + received))
        return total

    def _own(self, pid: str, status: dict[bytes, int]) -> int:
        """Return the bytes that Linux keeps for one process alone, and what it has in swap."""
        descriptors = self._descriptors(pid)
        # worst case: half of the descriptors are epoll sets that each watch the other half
        watched = descriptors**2 // 4 * WATCHED
        opened = descriptors * (DESCRIPTOR + PIPE // 2)
        tables = status.get(b"VmPTE", 0) + status.get(b"VmSwap", 0)
        return tables + status.get(b"Threads", 0) * THREAD + opened + watched

    def _share(self, pid: str, pages: Pages) -> int:
        """Return the bytes of pages; one shared by n counts 1/n, or fully if it is unreadable."""
        if pages.of_files > MAPPED:
            raise TooDear
        for line in self._text(f"{pid}/smaps_rollup").splitlines():
            if line.startswith(b"Pss_Anon:"):
                return int(line.split()[1]) * 1024
        return pages.anonymous

    def _status(self, pid: str) -> dict[bytes, int]:
        found = {}
        for line in self._text(f"{pid}/status").splitlines():
            name, _, value = line.partition(b":")
            if name in COUNTED:
                number, *unit = value.split()
                found[name] = int(number) * (1024 if unit else 1)
        return found

    def _descriptors(self, pid: str) -> int:
        with contextlib.suppress(OSError):
            # since Linux 6.2 the folder's size is this number
            return os.stat(f"{pid}/fd", dir_fd=self.proc).st_size or len(
                os.listdir(f"/proc/self/fd/{self.proc}/{pid}/fd")
            )
        return 0

    def _in_time(self, processes: Iterable[str]) -> Iterator[str]:
        """Yield processes as long as there is time for the next one; else raise TooDear."""
        end = time.process_time() + SECONDS_TO_MEASURE
        for pid in processes:
            if time.process_time() > end:
                raise TooDear
            yield pid

    def _processes(self) -> Iterator[str]:
        return filter(str.isdigit, os.listdir(self.proc))

    def _text(self, name: str, folder: int | None = None) -> bytes:
        """Return the text of a file of /proc; empty if it cannot be read or the process ended."""
        with contextlib.suppress(OSError):
            descriptor = os.open(name, os.O_RDONLY, dir_fd=folder or self.proc)
            with open(descriptor, "rb") as file:
                return file.read()
        return b""
