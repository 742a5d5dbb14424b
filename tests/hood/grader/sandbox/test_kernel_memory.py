"""Memory that Linux keeps for a process: each kind is refused, counted, or bounded.

======================================  ============================================================
kind                                    what holds it
======================================  ============================================================
pages, page tables, swap, stacks        counted: Pss, VmPTE, VmSwap, threads
mappings, and their forks               counted: lines of ``maps``, times what forks add
files, xattrs, links, sockets' names    counted: blocks and inodes of the sandbox's file systems
pipes, other descriptors                counted: each as an end of a full pipe
terminals                               a sandbox has none
epoll sets                              counted: half of a process's descriptors watch the others;
                                        what others add to inherited sets is bounded by 256
                                        descriptors of 64 processes, to 256 MiB
UNIX and netlink sockets                counted: buffers that can't be enlarged
TCP and UDP sockets                     refused, unless a lab asks for them: one byte that is not
                                        read can keep 32 KiB
pages of files in sockets and pipes     refused: splice, vmsplice, tee, sendfile
memfd, System V, shared anonymous       refused by the filter
Landlock, keys, BPF, io_uring, AIO      refused by the filter
inotify, fanotify, leases, locks        refused, or without effect
filters, groups and pages of sockets    refused: options of ``setsockopt`` that are not listed
tables of futexes, core scheduling      refused: options of ``prctl`` that are not listed
huge pages that are set aside           refused: a flag of ``mmap``
POSIX timers, queued signals            bounded: RLIMIT_SIGPENDING
message queues, locked pages            bounded: limits of 0
descriptors sent and not received       bounded: RLIMIT_NOFILE of them for a user, then EPERM
watches of epoll sets not received      bounded: 4 % of the memory for a user, in Linux itself
autogroups, task and file tables        bounded: a few KiB for each process, by RLIMIT_NPROC
page cache, dentries of missing names   given back: Linux frees them when memory is needed
======================================  ============================================================
"""

from __future__ import annotations

import errno
import textwrap

import pytest

from hood.grader.sandbox import Limits
from tests.hood.grader.sandbox.inmate import Inmate

pytestmark = [pytest.mark.slow(6), pytest.mark.usefixtures("sandbox")]
MIB = 2**20


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("c.syscall(444, ctypes.create_string_buffer(b'\\4'), 8, 0)", errno.ENOSYS),
        ("c.prctl(78, 1, 1 << 20, 0, 0)", errno.EINVAL),
        ("c.setsockopt(held.fileno(), 1, 26, filter, 16)", errno.ENOPROTOOPT),
        ("c.mmap(None, 1 << 21, 3, 0x40022, -1, 0)", errno.ENOMEM),
        ("c.splice(file, None, ends[1], None, 1, 0)", errno.EPERM),
        ("c.sendfile(held.fileno(), file, None, 1)", errno.EPERM),
        ("c.socket(2, 1, 0)", errno.ENETUNREACH),
        ("c.socket(10, 2, 0)", errno.ENETUNREACH),
    ],
    ids=[
        "rule sets of Landlock",
        "a table of futexes",
        "a filter on a socket",
        "huge pages",
        "a page of a file in a pipe",
        "a page of a file in a socket",
        "TCP",
        "UDP over IPv6",
    ],
)
def test_unmeasurable_memory_is_refused(shared: Inmate, code: str, error: int) -> None:
    before = (
        "import ctypes, os, socket, struct\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "held, other = socket.socketpair()\n"
        "open('file', 'w').write('x')\n"
        "file, ends = os.open('file', os.O_RDONLY), os.pipe()\n"
        "steps = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0))\n"
        "filter = struct.pack('HxxxxxxP', 1, ctypes.addressof(steps))\n"
    )
    assert shared.value(f"{before}[{code}, ctypes.get_errno()]") == [-1, error]


# attempt -> (the limit in MiB, which is only reached with Linux's own memory, and the code)
HOARDS = {
    # Each mapping has one page. For each fork that it passed through, Linux keeps a record in every
    # process of the chain. This is more than 1600 MiB; the mappings themselves have 270.
    "mappings in a chain of forks": (
        700,
        """
        import ctypes, os, time
        c = ctypes.CDLL(None)
        c.mmap.restype = ctypes.c_void_p
        c.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        at = c.mmap(None, 1000 * 8192, 3, 0x22, -1, 0)
        for start in range(at, at + 1000 * 8192, 8192):
            ctypes.memset(start, 1, 1)
            c.mprotect(start + 4096, 4096, 0)
        for _ in range(200):
            if os.fork():
                time.sleep(100)
        time.sleep(100)
        """,
    ),
}


@pytest.mark.parametrize("kind", HOARDS)
def test_linuxs_own_memory_is_counted(kind: str) -> None:
    mib, code = HOARDS[kind]
    limits = Limits(memory=mib * MIB, processes=250, total_seconds=100)
    with Inmate(limits=limits) as inmate:
        inmate.begin(textwrap.dedent(code))
        assert inmate.ends().endswith(" of memory")


def test_shared_memory_of_honest_processes_is_divided(sandbox: None) -> None:
    code = (
        "import multiprocessing, os, select, time, torch\n"
        "context = multiprocessing.get_context('fork')\n"
        "def work(): return select.epoll(), torch.ones(100) @ torch.ones(100), time.sleep(3)\n"
        "workers = [context.Process(target=work) for _ in range(16)]\n"
        "for worker in workers: worker.start()\n"
        "for worker in workers: worker.join()\n"
        "[worker.exitcode for worker in workers]"
    )
    with Inmate(limits=Limits(memory=512 * MIB)) as inmate:
        assert inmate.value(code) == [0] * 16
        assert inmate.run("!echo from a terminal").strip() == "from a terminal"
