"""Refuse, with a seccomp filter, system calls that no lab needs and that weaken a sandbox.

- New namespaces and mounts would lift the size limits of the sandbox's file systems.
- Memory that belongs to no process (memfd, System V IPC, anonymous shared memory, larger pipes and
  socket buffers) would not be seen by the meter.
- Locks, leases and watches on a file that several sandboxes see could carry messages between them,
  and ``mincore`` tells which parts of a file others have read.
- A process of low priority would hold a busy machine for long and use little of its own time.
- AF_VSOCK reaches the host of a virtual machine from any network namespace.
- The others are refused because exploits commonly begin with them.

A request for a file lock reports success and takes no lock. Compilation in a sandbox asks for
locks, but one process alone uses its files, so it does not need them. Processes of a sandbox that
share a file can't rely on a lock (:mod:`utils.world.gloo` renames files instead).
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from collections.abc import Sequence

from grader.inside import linux

# name -> (number on x86-64, number on arm64, where None means that the call does not exist)
REFUSED: dict[str, tuple[int, int | None]] = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "fanotify_init": (300, 262),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "vmsplice": (278, 75),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "syslog": (103, 116),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "mincore": (27, 232),
    "cachestat": (451, 451),
    "io_setup": (206, 0),
    "seccomp": (317, 277),
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
}
CLONE = (56, 220)
CLONE3 = (435, 435)
FLOCK = (73, 32)
FCNTL = (72, 25)
LOCKS = (6, 7, 37, 38)  # F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW
# F_SETLEASE, F_GETLEASE, F_NOTIFY, F_SETPIPE_SZ, F_GETDELEG, F_SETDELEG
OF_FILES = (1024, 1025, 1026, 1031, 1039, 1040)
MMAP = (9, 222)
SHARED, VALIDATED, ANONYMOUS, KIND = 0x01, 0x03, 0x20, 0x0F
PRCTL = (157, 167)
# prctl options that would let others look at a process, or add filters, which take memory
OF_PROCESSES = (linux.PR_SET_DUMPABLE, linux.PR_SET_SECCOMP)
SETSOCKOPT = (54, 208)
SOL_SOCKET, BUFFERS = 1, (7, 8)  # SO_SNDBUF, SO_RCVBUF
SOCKET = (41, 198)
SOCKETPAIR = (53, 199)
# address families that gloo and getaddrinfo need, on the sandbox's own loopback
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
KINDS = (1, 2)  # types of INET sockets: stream (TCP) and datagram (UDP)
PROTOCOLS = (0, 6, 17)  # any, TCP, UDP
# all CLONE_NEW... flags of clone
NAMESPACES = 0x7E020000

# machine -> (column above, AUDIT_ARCH)
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
X32 = 0x40000000

LOAD, AND, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, ARCHITECTURE, ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data


def program() -> bytes:
    """Return the filter for this machine, in the form that ``seccomp`` and bubblewrap read."""
    return b"".join(_steps(*MACHINES[platform.machine()]))


def forbid() -> None:
    """Install the filter for this process and all its descendants. Set no_new_privs first.

    Raises:
        OSError: if the system refuses.
    """
    code = program()
    kept = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HP", len(code) // len(_step(0, 0)), ctypes.addressof(kept))
    pointer = ctypes.create_string_buffer(header)
    linux.prctl(linux.PR_SET_SECCOMP, 2, ctypes.addressof(pointer))


def _steps(column: int, architecture: int) -> list[bytes]:
    """Return the instructions of the filter. A jump's operand is the number that it skips."""
    numbers = [n for row in REFUSED.values() if (n := row[column]) is not None]
    checks = [
        step
        for number in numbers
        for step in (_step(JUMP_EQUAL, number, 0, 1), _refuse(errno.EPERM))
    ]
    return [
        _step(LOAD, ARCHITECTURE),
        _step(JUMP_EQUAL, architecture, 1, 0),
        _step(RETURN, KILL),
        _step(LOAD, NUMBER),
        _step(JUMP_AT_LEAST, X32, 0, 1),
        _refuse(errno.ENOSYS),
        *checks,
        # ENOSYS makes the C library fall back to clone, whose flags a filter can read
        _step(JUMP_EQUAL, CLONE3[column], 0, 1),
        _refuse(errno.ENOSYS),
        *_only(
            CLONE[column],
            [_step(LOAD, ARGUMENT), _step(JUMP_ANY_BIT, NAMESPACES, 0, 1), _refuse(errno.EPERM)],
        ),
        *_only(FLOCK[column], [_refuse(0)]),
        *_only(
            FCNTL[column],
            [*_argument(1), *_any_of(LOCKS, _refuse(0)), *_any_of(OF_FILES, _refuse(errno.EPERM))],
        ),
        *_only(
            MMAP[column],
            [
                *_argument(3, KIND | ANONYMOUS),
                *_any_of((SHARED | ANONYMOUS, VALIDATED | ANONYMOUS), _refuse(errno.EPERM)),
            ],
        ),
        *_only(PRCTL[column], [*_argument(0), *_any_of(OF_PROCESSES, _refuse(errno.EPERM))]),
        *_only(
            SETSOCKOPT[column],
            [
                *_argument(1),
                *_none_of((SOL_SOCKET,), _step(RETURN, ALLOW)),
                *_argument(2),
                *_any_of(BUFFERS, _refuse(0)),  # succeeds without effect, as above Linux's maximum
            ],
        ),
        *_only(
            SOCKETPAIR[column],
            [*_argument(0), *_none_of((UNIX,), _refuse(errno.EAFNOSUPPORT))],
        ),
        *_only(
            SOCKET[column],
            [
                *_argument(0),
                *_any_of((UNIX,), _step(RETURN, ALLOW)),
                *_none_of((INET, INET6, NETLINK), _refuse(errno.EAFNOSUPPORT)),
                _step(JUMP_EQUAL, NETLINK, 0, 4),
                *_argument(2),
                *_none_of((0,), _refuse(errno.EPROTONOSUPPORT)),
                _step(RETURN, ALLOW),
                *_argument(1, KIND),
                *_none_of(KINDS, _refuse(errno.EPROTONOSUPPORT)),
                *_argument(2),
                *_none_of(PROTOCOLS, _refuse(errno.EPROTONOSUPPORT)),
            ],
        ),
        _step(RETURN, ALLOW),
    ]


def _only(number: int, steps: list[bytes]) -> list[bytes]:
    """Return instructions for one system call; it is allowed unless one of ``steps`` returns."""
    return [_step(JUMP_EQUAL, number, 0, len(steps) + 1), *steps, _step(RETURN, ALLOW)]


def _argument(place: int, mask: int = 0) -> list[bytes]:
    """Return instructions that load the lower 32 bits of an argument, masked if asked."""
    return [_step(LOAD, ARGUMENT + 8 * place), *([_step(AND, mask)] if mask else [])]


def _any_of(values: Sequence[int], then: bytes) -> list[bytes]:
    """Return instructions that run ``then`` if the loaded value is one of ``values``."""
    return [step for value in values for step in (_step(JUMP_EQUAL, value, 0, 1), then)]


def _none_of(values: Sequence[int], then: bytes) -> list[bytes]:
    """Return instructions that run ``then`` if the loaded value is none of ``values``."""
    count = len(values)
    return [*(_step(JUMP_EQUAL, value, count - at) for at, value in enumerate(values)), then]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _refuse(number: int) -> bytes:
    return _step(RETURN, ERRNO | number)
