"""Make the system calls that the sandbox needs and that Python 3.11 does not provide.

These functions raise OSError if the system refuses.
"""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
SANDBOX = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS

MADV_COLLAPSE = 25

PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(name: str, result: int) -> int:
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def setns(descriptor: int, kinds: int) -> None:
    """Join namespaces of another process, given its pidfd; ``kinds`` has ``CLONE_NEW...`` flags."""
    _checked("setns", _libc.setns(descriptor, kinds))


def prctl(option: int, *arguments: int) -> int:
    """Call ``prctl``; the arguments are integers or addresses."""
    rest = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    return _checked(f"prctl({option})", _libc.prctl(option, *rest))


def use_huge_pages() -> None:
    """Move this process's own memory into huge pages, if Linux can (6.1 or newer).

    For each 2 MiB, a fork then copies one page table entry instead of 512, so the fork is faster.
    """
    with open("/proc/self/maps") as maps:
        for line in maps:
            addresses, permissions, _, _, inode, *name = line.split()
            if permissions.startswith("rw") and inode == "0" and name in ([], ["[heap]"]):
                start, end = (int(address, 16) for address in addresses.split("-"))
                _libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_COLLAPSE)


def drop_bounding_set() -> None:
    """Drop all capabilities from the bounding set, so that no executed program can gain them."""
    for capability in range(64):
        try:
            held = prctl(PR_CAPBSET_READ, capability)
        except OSError:  # this version of Linux has no capability with this number or a higher one
            return
        if held:
            prctl(PR_CAPBSET_DROP, capability)


def drop_capabilities() -> None:
    """Drop the permitted, effective, inheritable and ambient capabilities."""
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    none = (ctypes.c_uint32 * 6)()
    _checked("capset", _libc.capset(header, none))
