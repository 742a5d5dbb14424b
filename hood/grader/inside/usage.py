"""Measure a sandbox's use: memory of processes and files, Linux's memory for them, and time.

Linux keeps page tables, socket buffers, pipes and records of mappings in memory that belongs to no
process. So the objects that use this memory are counted. If a size cannot be read, the largest
possible size counts. :mod:`hood.grader.inside.seccomp` prevents objects that cannot be counted.
Only the anonymous pages of a process count. If a file is in memory, its pages count once, as a part
of the file. Pages of other files belong to Linux's cache. A sandbox that makes its measurement slow
is ended (:class:`TooDear`). If an estimate is above the limit, the sandbox's processes are stopped
during the exact measurement, so that they take no more memory meanwhile.
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
FORK = 64  # for one memory mapping and each fork that copied its pages
DESCRIPTOR = 1 << 10  # for an open file
PIPE = 64 << 10  # in a full pipe; the filter prevents larger pipes
WATCHED = 256  # for one descriptor in one epoll set
QUEUE = 11  # unread datagrams that a socket may contain; net.unix.max_dgram_qlen is 10 in a sandbox
# The file of a sandbox's own time has three parts: the seconds so far; a byte that is 0 while the
# sandbox waits for the grader; and the seconds that do not count towards the total limit.
OWN_TIME = struct.Struct("d")
AWAITED = OWN_TIME.size
SPARED = AWAITED + 1
# A cell may take this many times its limit in wall-clock time. If the cell needs more, the machine
# is too busy.
WAITS = 10
LONGEST_SLEEP = 0.25  # if more seconds pass between two looks, the machine is too busy to look
RECKONED = 1.0  # seconds over which the mean number of runnable threads is taken
SECONDS_PER_COUNT = 1.0  # seconds between two counts of the mappings, because counting is slow
# The most processor time of a measurement. On a slow machine, half of this time is enough to
# measure the largest allowed number of ordinary processes. A process's mapped files are measured in
# one piece, 8 GiB in half a second.
SECONDS_TO_MEASURE = 2.0
MAPPED = 8 << 30
# Bytes that one processor fills in a second, and the shortest time between two glances at memory.
# So a sandbox near its limit is measured before it can be far above the limit.
FILLS = 2 << 30
SHORTEST_GLANCE = 0.01
# The processes are listed and stopped at most this many times. A process with a pending SIGSTOP
# can't fork, so only the first list can be incomplete. Processes that wake each other may need more
# rounds.
ROUNDS = 5
COUNTED = (b"RssAnon", b"RssFile", b"RssShmem", b"VmPTE", b"VmSwap", b"Threads")
DATAGRAM = b"0002"
LISTENS = b"0A"
# With more runnable threads than FAIR, a sandbox gets no larger share of the processor. With more
# than CROWD, the sandbox counts as waiting for its own threads, however busy the machine is.
FAIR, CROWD = 2, 16
STEP, NICEST = 1.25, 19  # one step of niceness divides a thread's share by STEP
# A sandbox is ended if LOOKS looks find more than NEW_SESSIONS new sessions. If Linux shares the
# processor between sessions, each session has a full share until a look sees the session. So four
# new sessions before each look have four full shares all the time.
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
    """Return how many processes Linux has killed on this machine because memory ran out."""
    lines = Path("/proc/vmstat").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


class TooDear(Exception):
    """A sandbox's memory cannot be measured in SECONDS_TO_MEASURE."""


class Pages(NamedTuple):
    """Bytes of a process's pages; a shared page counts fully."""

    anonymous: int
    of_files: int


class Thread(NamedTuple):
    """Linux's data on a thread: times in ns, whether it has or wants a processor, its session."""

    ran: int
    waited: int
    wants: bool
    session: bytes


def _since(before: Mapping[str, Thread], now: Mapping[str, Thread]) -> tuple[float, float]:
    """Return how many seconds threads ran, and how many seconds they waited, between two looks."""
    none = Thread(0, 0, False, b"")
    pairs = [(thread, before.get(number, none)) for number, thread in now.items()]
    ran = sum(max(0, thread.ran - had.ran) for thread, had in pairs)
    return ran * 1e-9, sum(max(0, thread.waited - had.waited) for thread, had in pairs) * 1e-9


def _come_and_gone(before: Collection[str], now: Collection[str]) -> bool:
    """Return whether a thread was made and ended between two looks.

    A sandbox numbers its threads in order, so such a thread leaves a gap.
    """
    new = [int(thread) for thread in now if thread not in before]
    last = max(map(int, before), default=0)
    return bool(new) and (min(new) < last or max(new) - last > len(new))


class Meter:
    """Measure a sandbox through its own /proc, which lists exactly the sandbox's processes.

    ``init`` is the sandbox's pid 1, seen from outside. ``writable`` has the paths of the sandbox's
    file systems in memory, whose files count. ``grader`` is the grading process. ``passed`` has the
    seconds of the sandbox's own time (:meth:`look`). ``runnable`` is the mean number of threads
    that had or wanted a processor in the last second. ``new_sessions`` is the number of new
    sessions that the last LOOKS looks found. Raises OSError if the sandbox has ended.
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
            # bytes that a socket may contain; the filter prevents larger buffers
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
        """Return whether the sandbox's use has grown by more than ``limit`` bytes since its start.

        The first step is a cheap estimate, which is never too low. If the estimate exceeds the
        limit, all processes are stopped for an exact measurement, which divides shared pages
        between the processes that share them. The processes continue only if the limit is not
        exceeded. Raises OSError if the sandbox has ended; TooDear if the measurement takes too
        long.
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
        memory, pages = self._memory()  # including memory taken until all processes had stopped
        if self._sum_exceeds(limit + self.baseline, files + memory + self.mapped, pages):
            return True
        self._go_on(stopped)
        self.looked += time.monotonic() - begun  # stopped processes could not run
        return False

    def glance(self, limit: int) -> float:
        """Return the seconds until memory should be measured again; 0 means now.

        The result is the time in which this machine's processors could fill the rest of ``limit``.
        The memory that Linux uses is taken from the last full measurement.
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
        """Stop all processes except the first, which runs nothing; return the stopped processes."""
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
                # a process's folder in /proc is a pidfd, even if pids here are the sandbox's
                folder = os.open(pid, os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.proc)
                try:
                    signal.pidfd_send_signal(folder, number)
                finally:
                    os.close(folder)

    def _sum_exceeds(self, limit: int, total: int, pages: Mapping[str, Pages]) -> bool:
        """Return whether ``total`` and all pages (each shared page once) exceed a limit.

        Processes that may have the most pages come first. Only files that can change the answer are
        read.
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

        A sandbox's own time has two parts. The first part is the time in which its threads ran. The
        second part is the time in which all its threads slept while the grader waited for them.
        Time in which the grader itself waited for a processor is subtracted from the second part,
        because the answer may have been ready. If a thread has or wants a processor at the moment
        of a look, only the threads' running time since the last look counts. The rest of the time
        went to other programs. A sandbox gains nothing when its own threads wait for each other,
        because one of these threads runs meanwhile. If a thread started and ended between two
        looks, the running time of that thread is not known, so all threads count as sleeping. A
        sandbox that wants more than CROWD processors, such as a fork bomb, waits for itself. Then
        all time counts as the sandbox's own time. ``awaited`` says whether the grader waits for the
        sandbox.
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
            # a look also takes time, if the sandbox has made looks slow
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
                # the state follows the name, and a thread can choose its name freely
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
        """Return the bytes that Linux keeps for all processes, and the pages of each process."""
        total, pages = self._sockets(), {}
        for pid in self._in_time(self._processes()):
            status = self._status(pid)
            total += self._own(pid, status)
            shown = status.get(b"RssFile", 0) + status.get(b"RssShmem", 0)
            pages[pid] = Pages(status.get(b"RssAnon", 0), shown)
        return total, pages

    def _mappings(self, most: int) -> int:
        """Return the bytes of the records of mappings; stop above ``most``, if it is given."""
        total = 0
        # in the worst case, each process was forked by the process before it
        each = MAPPING + FORK * len(list(self._processes()))
        for pid in self._in_time(self._processes()):
            total += self._text(f"{pid}/maps").count(b"\n") * each
            if most and total > most:
                break
        return total

    def _sockets(self) -> int:
        """Return the bytes that the sandbox's sockets may contain, with unaccepted connections."""
        total = 0
        for line in self._text("unix", self.net).splitlines()[1:]:
            # A socket's name may contain line breaks. Then each piece of the name counts as one
            # more socket.
            datagram = line.split()[4:5] == [DATAGRAM]
            total += self.buffer * (QUEUE if datagram else 1)
        # Linux's own netlink sockets, one for each protocol, are listed too. The baseline also
        # contains them.
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
        """Return the bytes that Linux keeps for one process alone, and its bytes in swap."""
        descriptors = self._descriptors(pid)
        # worst case: half of the descriptors are epoll sets that each watch the other half
        watched = descriptors**2 // 4 * WATCHED
        opened = descriptors * (DESCRIPTOR + PIPE // 2)
        tables = status.get(b"VmPTE", 0) + status.get(b"VmSwap", 0)
        return tables + status.get(b"Threads", 0) * THREAD + opened + watched

    def _share(self, pid: str, pages: Pages) -> int:
        """Return the bytes of a process's pages; a page that n processes share counts 1/n.

        If the data can't be read, all anonymous pages count fully.
        """
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
            # since Linux 6.2 the folder's size is the number of descriptors
            return os.stat(f"{pid}/fd", dir_fd=self.proc).st_size or len(
                os.listdir(f"/proc/self/fd/{self.proc}/{pid}/fd")
            )
        return 0

    def _in_time(self, processes: Iterable[str]) -> Iterator[str]:
        """Yield processes while there is time for the next process; else raise TooDear."""
        end = time.process_time() + SECONDS_TO_MEASURE
        for pid in processes:
            if time.process_time() > end:
                raise TooDear
            yield pid

    def _processes(self) -> Iterator[str]:
        return filter(str.isdigit, os.listdir(self.proc))

    def _text(self, name: str, folder: int | None = None) -> bytes:
        """Return the text of a file of /proc; empty if it can't be read or the process ended."""
        with contextlib.suppress(OSError):
            descriptor = os.open(name, os.O_RDONLY, dir_fd=folder or self.proc)
            with open(descriptor, "rb") as file:
                return file.read()
        return b""
