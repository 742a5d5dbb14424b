"""System calls that no lab needs and that widen what a room's inmate can reach are refused.

Namespaces and mounts of their own would lift the sizes of the room's file systems; memory that
belongs to no process (memfd, System V IPC) escapes the meter; AF_VSOCK reaches a virtual machine's
host, whatever the network namespace; the rest is there because exploits begin with it.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

from grader.sandbox import linux

# name -> number on x86-64, on arm64 (None: it does not exist there)
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
}
CLONE = (56, 220)
CLONE3 = (435, 435)
SOCKET = (41, 198)
# UNIX, INET, INET6 and NETLINK: what gloo and getaddrinfo need, on a room's own loopback
FAMILIES = (1, 2, 10, 16)
# every CLONE_NEW... flag that clone takes
NAMESPACES = 0x7E020000

# machine -> (column above, AUDIT_ARCH)
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
X32 = 0x40000000

LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, ARCHITECTURE, ARGUMENT = 0, 4, 16  # offsets in the data that a filter sees


def program() -> bytes:
    """The filter for this machine, as `seccomp` and bubblewrap take it."""
    return b"".join(_steps(*MACHINES[platform.machine()]))


def forbid() -> None:
    """Refuse them for this process and all that come of it, after no_new_privs. Raises OSError."""
    code = program()
    kept = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HP", len(code) // len(_step(0, 0)), ctypes.addressof(kept))
    pointer = ctypes.create_string_buffer(header)
    linux.prctl(linux.PR_SET_SECCOMP, 2, ctypes.addressof(pointer))


def _steps(column: int, architecture: int) -> list[bytes]:
    """The filter. A jump counts the instructions that it skips."""
    numbers = [row[column] for row in REFUSED.values() if row[column] is not None]
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
        # the C library then uses clone, whose flags can be read here
        _step(JUMP_EQUAL, CLONE3[column], 0, 1),
        _refuse(errno.ENOSYS),
        _step(JUMP_EQUAL, CLONE[column], 0, 4),
        _step(LOAD, ARGUMENT),
        _step(JUMP_ANY_BIT, NAMESPACES, 0, 1),
        _refuse(errno.EPERM),
        _step(RETURN, ALLOW),
        _step(JUMP_EQUAL, SOCKET[column], 0, len(FAMILIES) + 2),
        _step(LOAD, ARGUMENT),
        *(
            _step(JUMP_EQUAL, family, len(FAMILIES) - place, 0)
            for place, family in enumerate(FAMILIES)
        ),
        _refuse(errno.EAFNOSUPPORT),
        _step(RETURN, ALLOW),
    ]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _refuse(number: int) -> bytes:
    return _step(RETURN, ERRNO | number)
