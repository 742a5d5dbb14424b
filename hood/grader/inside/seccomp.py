"""Allow, with a seccomp filter, only the system calls that labs need.

These are the calls of Python, torch (with CUDA, gloo and Inductor), Triton, compilers, IPython and
the C library. There are four reasons to forbid other calls. Some use memory that the meter
does not count (memfd, System V IPC, larger pipes and socket buffers, programs on sockets, pages of
files in sockets). Some lift limits (namespaces, mounts). Some carry messages between sandboxes
(locks, leases and watches on shared files, ``mincore``). Some are calls that exploits often use.

A forbidden call that is older than Linux 5.1 fails with EPERM, as for any user without rights. A
newer call fails with ENOSYS, as on an older Linux. Then the C library and other libraries fall back
to an older call, for example from ``clone3`` to ``clone``. A filter can read the flags of
``clone``, but not of ``clone3``.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from collections.abc import Iterable, Sequence
from typing import Any

from hood.grader.inside import linux

# Each call has its number on x86-64 and on arm64; "-" if it does not exist.
LISTED = (
    # files and folders
    "open 2 -, creat 85 -, openat 257 56, openat2 437 437, close 3 57, close_range 436 436, "
    "access 21 -, faccessat 269 48, faccessat2 439 439, stat 4 -, fstat 5 80, lstat 6 -, "
    "newfstatat 262 79, statx 332 291, statfs 137 43, fstatfs 138 44, getdents 78 -, "
    "getdents64 217 61, getcwd 79 17, chdir 80 49, fchdir 81 50, rename 82 -, "
    "renameat 264 38, renameat2 316 276, mkdir 83 -, mkdirat 258 34, rmdir 84 -, link 86 -, "
    "linkat 265 37, unlink 87 -, unlinkat 263 35, symlink 88 -, symlinkat 266 36, "
    "readlink 89 -, readlinkat 267 78, chmod 90 -, fchmod 91 52, fchmodat 268 53, "
    "fchmodat2 452 452, chown 92 -, fchown 93 55, lchown 94 -, fchownat 260 54, umask 95 166, "
    "mknod 133 -, mknodat 259 33, utime 132 -, utimes 235 -, futimesat 261 -, "
    "utimensat 280 88, truncate 76 45, ftruncate 77 46, fallocate 285 47, setxattr 188 5, "
    "lsetxattr 189 6, fsetxattr 190 7, getxattr 191 8, lgetxattr 192 9, fgetxattr 193 10, "
    "listxattr 194 11, llistxattr 195 12, flistxattr 196 13, removexattr 197 14, "
    "lremovexattr 198 15, fremovexattr 199 16, "
    # open files
    "read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68, "
    "preadv 295 69, pwritev 296 70, preadv2 327 286, pwritev2 328 287, lseek 8 62, "
    "copy_file_range 326 285, readahead 187 213, "
    "fadvise64 221 223, fsync 74 82, fdatasync 75 83, dup 32 23, dup2 33 -, dup3 292 24, "
    "pipe 22 -, pipe2 293 59, ioctl 16 29, fcntl 72 25, poll 7 -, ppoll 271 73, select 23 -, "
    "pselect6 270 72, epoll_create 213 -, epoll_create1 291 20, epoll_ctl 233 21, "
    "epoll_wait 232 -, epoll_pwait 281 22, epoll_pwait2 441 441, eventfd 284 -, "
    "eventfd2 290 19, signalfd 282 -, signalfd4 289 74, timerfd_create 283 85, "
    "timerfd_settime 286 86, timerfd_gettime 287 87, "
    # sockets
    "socket 41 198, socketpair 53 199, bind 49 200, listen 50 201, accept 43 202, "
    "accept4 288 242, connect 42 203, shutdown 48 210, getsockname 51 204, "
    "getpeername 52 205, getsockopt 55 209, setsockopt 54 208, sendto 44 206, sendmsg 46 211, "
    "sendmmsg 307 269, recvfrom 45 207, recvmsg 47 212, recvmmsg 299 243, "
    # memory
    "mmap 9 222, munmap 11 215, mremap 25 216, mprotect 10 226, madvise 28 233, msync 26 227, "
    "brk 12 214, mlock 149 228, mlock2 325 284, munlock 150 229, mlockall 151 230, "
    "munlockall 152 231, get_mempolicy 239 236, membarrier 324 283, "
    # processes
    "clone 56 220, fork 57 -, vfork 58 -, execve 59 221, execveat 322 281, exit 60 93, "
    "exit_group 231 94, wait4 61 260, waitid 247 95, kill 62 129, tkill 200 130, "
    "tgkill 234 131, pidfd_open 434 434, pidfd_send_signal 424 424, getpid 39 172, "
    "getppid 110 173, gettid 186 178, getpgid 121 155, getpgrp 111 -, getsid 124 156, "
    "setpgid 109 154, setsid 112 157, getuid 102 174, geteuid 107 175, getgid 104 176, "
    "getegid 108 177, getresuid 118 148, getresgid 120 150, getgroups 115 158, "
    "setuid 105 146, setgid 106 144, setreuid 113 145, setregid 114 143, setresuid 117 147, "
    "setresgid 119 149, setfsuid 122 151, setfsgid 123 152, setgroups 116 159, capget 125 90, "
    "capset 126 91, prctl 157 167, arch_prctl 158 -, getrlimit 97 163, setrlimit 160 164, "
    "prlimit64 302 261, getrusage 98 165, times 100 153, getpriority 140 141, sysinfo 99 179, "
    "uname 63 160, "
    # threads and signals
    "futex 202 98, set_robust_list 273 99, get_robust_list 274 100, set_tid_address 218 96, "
    "rseq 334 293, sched_yield 24 124, sched_getaffinity 204 123, sched_setaffinity 203 122, "
    "sched_getparam 143 121, sched_getscheduler 145 120, sched_getattr 315 275, "
    "sched_get_priority_max 146 125, sched_get_priority_min 147 126, "
    "sched_rr_get_interval 148 127, getcpu 309 168, rt_sigaction 13 134, "
    "rt_sigprocmask 14 135, rt_sigreturn 15 139, rt_sigpending 127 136, "
    "rt_sigtimedwait 128 137, rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240, "
    "rt_sigsuspend 130 133, sigaltstack 131 132, pause 34 -, restart_syscall 219 128, "
    # time and random numbers
    "gettimeofday 96 169, time 201 -, clock_gettime 228 113, clock_getres 229 114, "
    "nanosleep 35 101, clock_nanosleep 230 115, alarm 37 -, getitimer 36 102, "
    "setitimer 38 103, timer_create 222 107, timer_settime 223 110, timer_gettime 224 108, "
    "timer_getoverrun 225 109, timer_delete 226 111, getrandom 318 278"
)
ALLOWED: dict[str, tuple[Any, ...]] = {
    name: tuple(None if number == "-" else int(number) for number in numbers)
    for name, *numbers in (call.split() for call in LISTED.split(","))
}
# Calls that report success and do nothing. Compilation takes locks, but only one process uses the
# compiled files. Processes that share a file can't rely on locks (`utils.instruments.world.gloo`
# renames files). A sandbox's files are in memory, but `sync` would write to the machine's disks.
WITHOUT_EFFECT = {"flock": (73, 32), "sync": (162, 81), "syncfs": (306, 267)}
FIRST_OF_5_1 = 424  # from this number on, a call has the same number on all machines

NAMESPACES = 0x7E020000  # all CLONE_NEW... flags of clone
LOCKS = (6, 7, 37, 38)  # F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW
# the commands below F_SETLK; F_SETOWN to F_GETSIG, F_SETOWN_EX, F_GETOWN_EX, F_OFD_GETLK,
# F_DUPFD_QUERY, F_DUPFD_CLOEXEC, F_GETPIPE_SZ, F_GET_SEALS, F_GET_RW_HINT
COMMANDS = (0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 15, 16, 36, 1027, 1030, 1032, 1034, 1035)
# TIOCSTI writes into a terminal; TIOCLINUX and TIOCSETD reach drivers of terminals and load them
OF_TERMINALS = (0x5412, 0x541C, 0x5423)
SHARED, VALIDATED, ANONYMOUS, KIND, HUGETLB = 0x01, 0x03, 0x20, 0x0F, 0x40000
# Options of prctl; other options let other processes inspect a process, add filters or allocate
# tables.
OPTIONS = (
    *(1, 2, 3),  # PR_SET_PDEATHSIG, PR_GET_PDEATHSIG, PR_GET_DUMPABLE
    *(15, 16, 21, 23, 27),  # PR_SET_NAME, PR_GET_NAME, and queries of a process's own rights
    *(29, 30, 36, 37, 38, 39, 40),  # timer slack, subreaper, no_new_privs, PR_GET_TID_ADDRESS
    *(41, 42, 47),  # huge pages, ambient capabilities
    *(50, 51, 54, 55, 56, 63, 64),  # vector lengths and tagged addresses of arm64
    0x53564D41,  # PR_SET_VMA, the name of a mapping
)
SOL_SOCKET, BUFFERS = 1, (7, 8)  # SO_SNDBUF, SO_RCVBUF
# For each level, the allowed options of a socket. They keep a few bytes in the socket itself. Other
# options attach programs, lists of groups or pinned pages to a socket.
OF_SOCKETS = {
    # SO_REUSEADDR, DONTROUTE, BROADCAST, KEEPALIVE, OOBINLINE, PRIORITY, LINGER, REUSEPORT,
    # PASSCRED, RCVLOWAT, RCVTIMEO and SNDTIMEO (old, new), TIMESTAMP
    SOL_SOCKET: (2, 5, 6, 9, 10, 12, 13, 15, 16, 18, 20, 21, 66, 67, 29),
    # IP_TOS, TTL, PKTINFO, MTU_DISCOVER, RECVERR, RECVTTL, RECVTOS, BIND_ADDRESS_NO_PORT,
    # MULTICAST_IF, MULTICAST_TTL, MULTICAST_LOOP
    0: (1, 2, 8, 10, 11, 12, 13, 24, 32, 33, 34),
    # TCP_NODELAY, MAXSEG, CORK, KEEPIDLE, KEEPINTVL, KEEPCNT, SYNCNT, LINGER2, DEFER_ACCEPT,
    # WINDOW_CLAMP, QUICKACK, USER_TIMEOUT, NOTSENT_LOWAT
    6: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 18, 25),
    # IPV6_UNICAST_HOPS, MULTICAST_IF, MULTICAST_HOPS, MULTICAST_LOOP, MTU_DISCOVER, RECVERR,
    # V6ONLY, RECVPKTINFO, RECVHOPLIMIT, RECVTCLASS, TCLASS
    41: (16, 17, 18, 19, 23, 25, 26, 49, 51, 66, 67),
}
# Address families that gloo and getaddrinfo need, on the sandbox's own loopback. A few unread bytes
# in a TCP connection can occupy a large piece of memory that no table shows. So a lab gets these
# families only if it asks for them. From any sandbox, AF_VSOCK would reach a virtual machine's
# host.
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
KINDS = (1, 2)  # types of INET sockets: stream (TCP) and datagram (UDP)
PROTOCOLS = (0, 6, 17)  # any, TCP, UDP

# machine -> (column above, AUDIT_ARCH)
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

LOAD, AND, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, ARCHITECTURE, ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data


def program(machine: str | None = None, loopback: bool = False) -> bytes:
    """Return the filter for a machine (by default this machine) in the form that Linux reads.

    Args:
        loopback: whether processes may reach each other over TCP and UDP.
    """
    return b"".join(_steps(*MACHINES[machine or platform.machine()], loopback))


def forbid(loopback: bool) -> None:
    """Install the filter for this process and all its descendants. Set no_new_privs first."""
    code = program(loopback=loopback)
    kept = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HP", len(code) // len(_step(0, 0)), ctypes.addressof(kept))
    pointer = ctypes.create_string_buffer(header)
    linux.prctl(linux.PR_SET_SECCOMP, 2, ctypes.addressof(pointer))


def _steps(column: int, architecture: int, loopback: bool) -> list[bytes]:
    """Return the filter's instructions. A jump's operand is the number of instructions to skip."""
    allowed = [n for row in ALLOWED.values() if (n := row[column]) is not None]
    of_kind, of_protocol = _refuse(errno.EAFNOSUPPORT), _refuse(errno.EPROTONOSUPPORT)
    unknown = _refuse(errno.ENOPROTOOPT)
    buffers = _any_of(BUFFERS, _refuse(0))  # without effect, like values above Linux's maximum
    looked_at = {
        "clone": [
            _step(LOAD, ARGUMENT),
            _step(JUMP_ANY_BIT, NAMESPACES, 0, 1),
            _refuse(errno.EPERM),
        ],
        "fcntl": [
            *_argument(1),
            *_any_of(LOCKS, _refuse(0)),
            *_none_of(COMMANDS, _refuse(errno.EPERM)),
        ],
        "ioctl": [*_argument(1), *_any_of(OF_TERMINALS, _refuse(errno.EPERM))],
        "mmap": [
            *_argument(3, KIND | ANONYMOUS),
            *_any_of((SHARED | ANONYMOUS, VALIDATED | ANONYMOUS), _refuse(errno.EPERM)),
            *_argument(3),
            _step(JUMP_ANY_BIT, HUGETLB, 0, 1),
            _refuse(errno.ENOMEM),  # the error of a system without reserved huge pages
        ],
        # an option that Linux does not know causes the same error
        "prctl": [*_argument(0), *_none_of(OPTIONS, _refuse(errno.EINVAL))],
        "setsockopt": [
            *_argument(1),
            *(
                step
                for level, options in OF_SOCKETS.items()
                for step in _only(
                    level,
                    [
                        *_argument(2),
                        *(buffers if level == SOL_SOCKET else []),
                        *_none_of(options, unknown),
                    ],
                )
            ),
            unknown,
        ],
        "socketpair": [*_argument(0), *_none_of((UNIX,), of_kind)],
        "socket": [
            *_argument(0),
            *_any_of((UNIX,), _step(RETURN, ALLOW)),
            *([] if loopback else _any_of((INET, INET6), _refuse(errno.ENETUNREACH))),
            *_none_of((INET, INET6, NETLINK), of_kind),
            _step(JUMP_EQUAL, NETLINK, 0, 4),
            *_argument(2),
            *_none_of((0,), of_protocol),
            _step(RETURN, ALLOW),
            *_argument(1, KIND),
            *_none_of(KINDS, of_protocol),
            *_argument(2),
            *_none_of(PROTOCOLS, of_protocol),
        ],
    }
    return [
        _step(LOAD, ARCHITECTURE),
        _step(JUMP_EQUAL, architecture, 1, 0),
        _step(RETURN, KILL),
        _step(LOAD, NUMBER),
        *(
            step
            for name, steps in looked_at.items()
            for step in _only(ALLOWED[name][column], steps)
        ),
        *_any_of(allowed, _step(RETURN, ALLOW)),
        *_any_of([row[column] for row in WITHOUT_EFFECT.values()], _refuse(0)),
        # x32, another way to call Linux on x86-64, has larger numbers than all calls above
        _step(JUMP_AT_LEAST, FIRST_OF_5_1, 1),
        _refuse(errno.EPERM),
        _refuse(errno.ENOSYS),
    ]


def _only(value: int, steps: list[bytes]) -> list[bytes]:
    """Return instructions for a call with this value: ``steps``, then "allow the call"."""
    return [_step(JUMP_EQUAL, value, 0, len(steps) + 1), *steps, _step(RETURN, ALLOW)]


def _argument(place: int, mask: int = 0) -> list[bytes]:
    return [_step(LOAD, ARGUMENT + 8 * place), *([_step(AND, mask)] if mask else [])]


def _any_of(values: Iterable[int], then: bytes) -> list[bytes]:
    """Return instructions that run ``then`` if the loaded value is one of ``values``."""
    return [step for value in values for step in (_step(JUMP_EQUAL, value, 0, 1), then)]


def _none_of(values: Sequence[int], then: bytes) -> list[bytes]:
    """Return instructions that run ``then`` if the loaded value is not one of ``values``."""
    count = len(values)
    return [*(_step(JUMP_EQUAL, value, count - at) for at, value in enumerate(values)), then]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _refuse(number: int) -> bytes:
    return _step(RETURN, ERRNO | number)
