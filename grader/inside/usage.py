"""What a sandbox uses: memory of its processes, files, and what Linux keeps for them; and time.

Linux keeps page tables, sockets' buffers, pipes and records of mappings in memory that belongs to
no process, and without cgroups says nowhere whose they are. So they are counted by what makes them:
where a size cannot be read, the largest that it may have counts. What none of this can see, such as
shared memory without a name, is refused by the system call filter.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
INODE = 1024  # about what the machine's kernel keeps for a file, an empty one too
THREAD = 32 << 10  # its stack in the machine's kernel, and its records
MAPPING = 512
DESCRIPTOR = 1 << 10
PIPE = 64 << 10  # what one holds when it is full; the filter lets none grow
WATCHED = 256  # one descriptor in one epoll set
QUEUE = (
    11  # datagrams that a socket may hold unread: net.unix.max_dgram_qlen is 10 in a new sandbox
)
RECKONED = 1.0
SECONDS_PER_COUNT = 1.0  # mappings take long to count
DATAGRAM = b"0002"
LISTENS = b"0A"


# A sandbox of more threads that want a processor than this gets no more of it than one of so many.
FAIR = 2
STEP, NICEST = 1.25, 19  # a step of niceness divides a thread's share by so much


def niceness(runnable: float) -> int:
    """What makes so many threads together weigh as FAIR of an ordinary one."""
    if runnable <= FAIR:
        return 0
    return min(NICEST, math.ceil(math.log(runnable / FAIR, STEP)))


def be_nice(roots: Iterable[int], value: int) -> None:
    """Lower the shares of processes and all below them.

    Linux may weigh sessions instead of threads (`sched_autogroup_enabled`), so those are lowered,
    too. Who makes new ones all the time has a tenth of a second of each.
    """
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(OSError):  # it ended meanwhile
            for thread in os.listdir(f"/proc/{pid}/task"):
                below = Path(f"/proc/{pid}/task/{thread}/children").read_text()
                waiting += map(int, below.split())
                with contextlib.suppress(PermissionError):  # it is nicer already
                    os.setpriority(os.PRIO_PROCESS, int(thread), value)
            with contextlib.suppress(OSError):  # there is no such thing, or it is busy
                Path(f"/proc/{pid}/autogroup").write_text(str(value))


class Meter:
    """Measures a sandbox through its own /proc, which lists its processes and no others.

    Its file systems live in memory, so what lies in them counts too.
    """

    def __init__(self, init: int, writable: Iterable[str]) -> None:
        """init: pid 1 of the sandbox, seen from outside; writable: the mounts inside to count."""
        root = f"/proc/{init}/root"
        self.proc = os.open(f"{root}/proc", os.O_RDONLY | os.O_DIRECTORY)
        self.net = os.open(f"/proc/{init}/net", os.O_RDONLY | os.O_DIRECTORY)
        self.mounts = [os.open(f"{root}{path}", os.O_RDONLY | os.O_DIRECTORY) for path in writable]
        # what a socket may have on its way; the filter lets none grow
        self.buffer = int(Path("/proc/sys/net/core/wmem_default").read_text())
        self.counted = 0.0
        self.mapped = 0
        self.passed = self.before = 0.0  # seconds of the sandbox's own
        self.runnable = 0.0  # threads that had or wanted a processor in the last second
        self.times, self.since = self.schedule(), time.monotonic()
        self.baseline = self.exact(self.mappings(0))

    def exceeds(self, limit: int) -> bool:
        """Whether the sandbox uses more than `limit` bytes beyond what it started with.

        Sums that are cheap and never too low come first; only when they exceed the limit are pages
        and pipes that processes share, with each other or with the zygote, told apart.
        """
        files = self.files()
        now = time.monotonic()
        if now - self.counted > SECONDS_PER_COUNT:
            self.counted = now
            self.mapped = self.mappings(limit + self.baseline)
        if files + self.rough() + self.mapped <= limit:
            return False
        return files + self.exact(self.mapped) - self.baseline > limit

    def look(self) -> None:
        """Bring `passed` up to date.

        Time counts as the sandbox's own, but for what one of its threads waited for a processor
        while the sandbox had not even one to itself: others had it then. A sandbox whose threads
        wait for each other keeps a processor busy all the time. Linux tells a wait when it is over;
        so the last second is reckoned as a whole.
        """
        times, seconds = self.schedule(), time.monotonic() - self.since
        ran, waits = 0.0, [0.0]
        for thread, (had, lacked) in times.items():
            at_first = self.times.get(thread, (0, 0))
            ran += max(0, had - at_first[0]) * 1e-9
            waits.append(max(0, lacked - at_first[1]) * 1e-9)
        self.passed = self.before + min(seconds, max(ran, seconds - max(waits)))
        if seconds > RECKONED:
            self.runnable = (ran + sum(waits)) / seconds
            self.before, self.times, self.since = self.passed, times, time.monotonic()

    def schedule(self) -> dict[str, tuple[int, int]]:
        """By thread, the nanoseconds that it had a processor, and that it waited for one."""
        found = {}
        for pid in self._processes():
            with contextlib.suppress(OSError):
                for thread in os.listdir(f"/proc/self/fd/{self.proc}/{pid}/task"):
                    ran, waited, *_ = self._text(f"{pid}/task/{thread}/schedstat").split() or (0, 0)
                    found[thread] = (int(ran), int(waited))
        return found

    def files(self) -> int:
        """Bytes in the sandbox's file systems, what the files' own records take included."""
        total = 0
        for mount in self.mounts:
            about = os.fstatvfs(mount)
            total += (about.f_blocks - about.f_bfree) * about.f_frsize
            total += (about.f_files - about.f_ffree) * INODE
        return total

    def rough(self) -> int:
        """Bytes of the processes, with all that is shared counted in full for each."""
        total = self.sockets()
        for pid in self._processes():
            status = self._status(pid)
            total += status.get(b"VmRSS", 0) + self._own(pid, status)
            total += self._descriptors(pid) * PIPE // 2  # a pipe has two ends
        return total

    def exact(self, mapped: int) -> int:
        """Bytes, a page that n processes share counted as 1/n for each, a pipe once.

        mapped: what the mappings' records come to
        """
        total, pipes = self.sockets() + mapped, set[str]()
        for pid in self._processes():
            status = self._status(pid)
            total += self._pages(pid, status) + self._own(pid, status)
            try:
                for name in os.listdir(f"/proc/self/fd/{self.proc}/{pid}/fd"):
                    with contextlib.suppress(FileNotFoundError):
                        to = os.readlink(f"{pid}/fd/{name}", dir_fd=self.proc)
                        if to.startswith("pipe:"):
                            pipes.add(to)
                        total += DESCRIPTOR
            except OSError:  # it lets nobody look, or ended
                total += self._descriptors(pid) * PIPE // 2
        return total + len(pipes) * PIPE

    def mappings(self, most: int) -> int:
        """Bytes of the records of mappings; counted until they are more than `most`, unless 0."""
        total = 0
        for pid in self._processes():
            total += self._text(f"{pid}/maps").count(b"\n") * MAPPING
            if most and total > most:
                break
        return total

    def sockets(self) -> int:
        """Bytes that may be under way in the sandbox's sockets, also in those not yet accepted."""
        total = 0
        for line in self._text("unix", self.net).splitlines()[1:]:
            total += self.buffer * (QUEUE if line.split()[4] == DATAGRAM else 1)
        # the machine's own, one of each protocol, are among them; so they are in the baseline
        total += self.buffer * self._text("netlink", self.net).count(b"\n")
        for version in (b"", b"6"):
            name = "sockstat" + version.decode()
            used = self._text(name, self.net).split()
            for kind in (b"TCP", b"UDP"):
                at = used.index(kind + version + b":") + 2 if kind + version + b":" in used else 0
                if at and used[at] != b"0":
                    table = kind.lower() + version
                    total += self._queues(self._text(table.decode(), self.net))
        return total

    def close(self) -> None:
        for descriptor in (self.proc, self.net, *self.mounts):
            os.close(descriptor)

    @staticmethod
    def _queues(table: bytes) -> int:
        """Bytes in the queues of TCP or UDP sockets; small pieces take several times their size."""
        total = 0
        for line in table.splitlines()[1:]:
            _, _, _, state, queues, *_ = line.split()
            sent, received = (int(size, 16) for size in queues.split(b":"))
            total += 4 * PAGE + (0 if state == LISTENS else 4 * (sent + received))
        return total

    def _own(self, pid: str, status: dict[bytes, int]) -> int:
        """Bytes that are a process's own, or Linux's for it alone."""
        descriptors = self._descriptors(pid)
        # half of the descriptors may be epoll sets, each of which watches the other half
        watched = descriptors**2 // 4 * WATCHED
        tables = status.get(b"VmPTE", 0) + status.get(b"VmSwap", 0)
        return tables + status.get(b"Threads", 0) * THREAD + watched

    def _pages(self, pid: str, status: dict[bytes, int]) -> int:
        """Bytes of its pages. Of a process that lets nobody look, all that it shares counts."""
        rollup = self._text(f"{pid}/smaps_rollup")
        for line in rollup.splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
        return status.get(b"VmRSS", 0)

    def _status(self, pid: str) -> dict[bytes, int]:
        """Sizes in bytes, and how many threads it has, by name."""
        found = {}
        for line in self._text(f"{pid}/status").splitlines():
            name, _, value = line.partition(b":")
            if name in (b"VmRSS", b"VmPTE", b"VmSwap", b"Threads"):
                number, *unit = value.split()
                found[name] = int(number) * (1024 if unit else 1)
        return found

    def _descriptors(self, pid: str) -> int:
        """How many files it has open."""
        with contextlib.suppress(OSError):
            # Linux says it as the folder's size since 6.2
            return os.stat(f"{pid}/fd", dir_fd=self.proc).st_size or len(
                os.listdir(f"/proc/self/fd/{self.proc}/{pid}/fd")
            )
        return 0

    def _processes(self) -> Iterator[str]:
        return filter(str.isdigit, os.listdir(self.proc))

    def _text(self, name: str, folder: int | None = None) -> bytes:
        """A file of /proc; empty where it cannot be read, as of a process that ended."""
        with contextlib.suppress(OSError):
            descriptor = os.open(name, os.O_RDONLY, dir_fd=folder or self.proc)
            with open(descriptor, "rb") as file:
                return file.read()
        return b""
