"""The system call filter, for both machines, without a sandbox."""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import struct

import pytest

from hood.grader.inside import seccomp

MACHINES = sorted(seccomp.MACHINES)
ALLOW, KILL, NOTHING = "allow", "kill", 0
X32 = 0x40000000
UNKNOWN = -1  # libseccomp is older than the call, and does not know it


def verdict(
    machine: str, number: int, *arguments: int, architecture: int = 0, loopback: bool = False
) -> str | int:
    """The filter's result for a call: one of the words above, or the error of the call."""
    data = struct.pack("IIQ", number, architecture or seccomp.MACHINES[machine][1], 0)
    data += struct.pack("6Q", *(*arguments, *[0] * 6)[:6])
    steps = list(struct.iter_unpack("HBBI", seccomp.program(machine, loopback)))
    at = loaded = 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        if code == seccomp.LOAD:
            [loaded] = struct.unpack_from("I", data, value)
        elif code == seccomp.AND:
            loaded &= value
        elif code == seccomp.RETURN:
            words = {seccomp.ALLOW: ALLOW, seccomp.KILL: KILL}
            return words.get(value) or value & 0xFFFF
        else:
            holds = {
                seccomp.JUMP_EQUAL: loaded == value,
                seccomp.JUMP_AT_LEAST: loaded >= value,
                seccomp.JUMP_ANY_BIT: bool(loaded & value),
            }[code]
            at += if_true if holds else if_false


def linux_number(machine: str, name: str) -> int:
    """The call's number in the tables of libseccomp, which apt needs; below UNKNOWN if unknown."""
    found = ctypes.util.find_library("seccomp") or "libseccomp.so.2"
    try:
        library = ctypes.CDLL(found)
    except OSError:
        pytest.skip("not run: there is no libseccomp here to compare with")
    return library.seccomp_syscall_resolve_name_arch(
        ctypes.c_uint32(seccomp.MACHINES[machine][1]), name.encode()
    )


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_linuxs(machine: str) -> None:
    column = seccomp.MACHINES[machine][0]
    for name, row in (seccomp.ALLOWED | seccomp.WITHOUT_EFFECT).items():
        expected = linux_number(machine, name)
        if expected == UNKNOWN:
            continue
        assert row[column] == (expected if expected >= 0 else None), name


@pytest.mark.parametrize("machine", MACHINES)
def test_exactly_the_listed_calls_are_allowed(machine: str) -> None:
    column, architecture = seccomp.MACHINES[machine]
    numbers = {row[column] for row in seccomp.ALLOWED.values()}
    looked_at = ("fcntl", "prctl", "setsockopt", "socket", "socketpair")
    without_effect = {row[column] for row in seccomp.WITHOUT_EFFECT.values()}
    for asked in [*range(600), X32, X32 + 1, X32 + 59, 2**32 - 1]:
        said = verdict(machine, asked, 1, 1)
        if asked in without_effect:
            assert said == NOTHING
        elif asked in numbers - {seccomp.ALLOWED[name][column] for name in looked_at}:
            assert said == ALLOW
        elif asked not in numbers:
            assert said == (errno.EPERM if asked < 424 else errno.ENOSYS)
    assert verdict(machine, 0, architecture=architecture ^ 1) == KILL


# Calls that kept unmetered memory, carried messages, or led out of the sandbox when tried.
NEVER = (
    "landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_create memfd_secret "
    "shmget semget msgget mq_open add_key request_key keyctl io_setup io_uring_setup fanotify_init "
    "inotify_init1 vmsplice splice sendfile tee userfaultfd bpf perf_event_open seccomp mbind "
    "set_mempolicy "
    "process_madvise process_vm_readv process_vm_writev ptrace kcmp pidfd_getfd mincore cachestat "
    "mount umount2 move_mount open_tree fsopen mount_setattr unshare setns pivot_root chroot "
    "name_to_handle_at open_by_handle_at setpriority ioprio_set sched_setattr sched_setscheduler "
    "personality quotactl swapon reboot acct syslog init_module kexec_load clone3"
)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", NEVER.split())
def test_calls_that_no_lab_needs_are_refused(machine: str, name: str) -> None:
    asked = linux_number(machine, name)
    if asked == UNKNOWN:
        pytest.skip(f"not run: this libseccomp is older than {name}")
    assert verdict(machine, asked) == (errno.EPERM if asked < 424 else errno.ENOSYS)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("clone", (0x01200011,), ALLOW),  # fork
        ("clone", (0x003D0F00,), ALLOW),  # a thread
        ("clone", (0x10000011,), errno.EPERM),  # a user namespace
        ("mmap", (0, 4096, 3, 0x22), ALLOW),
        ("mmap", (0, 4096, 3, 0x01), ALLOW),  # of a file
        ("mmap", (0, 4096, 3, 0x21), errno.EPERM),  # shared, without a file
        ("mmap", (0, 4096, 3, 0x23), errno.EPERM),
        ("mmap", (0, 4096, 3, 0x40022), errno.ENOMEM),  # reserved huge pages
        ("fcntl", (3, 1030), ALLOW),
        ("fcntl", (3, 6), NOTHING),  # a lock
        ("fcntl", (3, 1031), errno.EPERM),  # a larger pipe
        ("fcntl", (3, 1024), errno.EPERM),  # a lease
        ("ioctl", (1, 0x5401), ALLOW),
        ("ioctl", (1, 0x5412), errno.EPERM),  # TIOCSTI
        ("ioctl", (1, 0x5423), errno.EPERM),  # a line discipline
        ("prctl", (15,), ALLOW),  # a thread's name
        ("prctl", (4, 0), errno.EINVAL),  # hiding from the meter
        ("prctl", (22, 2), errno.EINVAL),  # another filter
        ("prctl", (78, 1, 1 << 24), errno.EINVAL),  # a table of futexes
        ("prctl", (62, 1), errno.EINVAL),  # a reserved processor core
        ("setsockopt", (3, 1, 2), ALLOW),  # SO_REUSEADDR
        ("setsockopt", (3, 6, 1), ALLOW),  # TCP_NODELAY
        ("setsockopt", (3, 0, 11), ALLOW),  # IP_RECVERR, which the resolver sets
        ("setsockopt", (3, 41, 26), ALLOW),  # IPV6_V6ONLY
        ("setsockopt", (3, 1, 7), NOTHING),  # SO_SNDBUF
        ("setsockopt", (3, 1, 26), errno.ENOPROTOOPT),  # SO_ATTACH_FILTER
        ("setsockopt", (3, 1, 60), errno.ENOPROTOOPT),  # SO_ZEROCOPY
        ("setsockopt", (3, 41, 48), errno.ENOPROTOOPT),  # a list of groups
        ("setsockopt", (3, 6, 31), errno.ENOPROTOOPT),  # TCP_ULP, which loads modules
        ("setsockopt", (3, 270, 1), errno.ENOPROTOOPT),
        ("socketpair", (1, 1), ALLOW),
        ("socketpair", (2, 1), errno.EAFNOSUPPORT),
        ("socket", (1, 1), ALLOW),
        ("socket", (2, 1 | 0x80000), errno.ENETUNREACH),
        ("socket", (10, 2), errno.ENETUNREACH),
        ("socket", (16, 3, 0), ALLOW),
        ("socket", (40, 1), errno.EAFNOSUPPORT),
        ("socket", (2, 3, 255), errno.ENETUNREACH),
    ],
)
def test_arguments_decide(
    machine: str, name: str, arguments: tuple[int, ...], said: str | int
) -> None:
    asked = seccomp.ALLOWED[name][seccomp.MACHINES[machine][0]]
    assert verdict(machine, asked, *arguments) == said


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((2, 1 | 0x80000), ALLOW),
        ((10, 2, 17), ALLOW),
        ((2, 3, 255), errno.EPROTONOSUPPORT),
        ((40, 1), errno.EAFNOSUPPORT),
    ],
)
def test_a_lab_may_ask_for_tcp_and_udp_only(
    machine: str, arguments: tuple[int, ...], said: str | int
) -> None:
    asked = seccomp.ALLOWED["socket"][seccomp.MACHINES[machine][0]]
    assert verdict(machine, asked, *arguments, loopback=True) == said
