"""How much memory the processes of a room use."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

PAGE = os.sysconf("SC_PAGE_SIZE")
INODE = 1024  # about what the machine's kernel keeps for a file, an empty one too


class Meter:
    """Measures a room through its own /proc, which lists its processes and no others.

    Its file systems live in memory, so what lies in them counts too.
    """

    def __init__(self, init: int, writable: Iterable[str]) -> None:
        """init: pid 1 of the room, as seen from outside; writable: the mounts inside to count."""
        root = f"/proc/{init}/root"
        self.proc = os.open(f"{root}/proc", os.O_RDONLY | os.O_DIRECTORY)
        self.mounts = [os.open(f"{root}{path}", os.O_RDONLY | os.O_DIRECTORY) for path in writable]
        self.baseline = self.proportional()

    def exceeds(self, limit: int) -> bool:
        """Whether they use more than `limit` bytes beyond what they started with.

        Resident sizes are cheap to read and never too low; only when they exceed the limit are
        pages that processes share, with each other or with the zygote, told apart.
        """
        files = self.files()
        if files + self.resident() <= limit:
            return False
        return files + self.proportional() - self.baseline > limit

    def files(self) -> int:
        """Bytes in the room's file systems, what the files' own records take included."""
        total = 0
        for mount in self.mounts:
            about = os.fstatvfs(mount)
            total += (about.f_blocks - about.f_bfree) * about.f_frsize
            total += (about.f_files - about.f_ffree) * INODE
        return total

    def resident(self) -> int:
        """Bytes, shared pages counted in full for each process."""
        return sum(int(text.split()[1]) * PAGE for text in self._read("statm"))

    def proportional(self) -> int:
        """Bytes, a page that n processes share counted as 1/n for each."""
        return sum(
            int(line.split()[1]) * 1024
            for text in self._read("smaps_rollup")
            for line in text.splitlines()
            if line.startswith("Pss:")
        )

    def close(self) -> None:
        for descriptor in (self.proc, *self.mounts):
            os.close(descriptor)

    def _read(self, name: str) -> list[str]:
        texts = []
        for entry in os.listdir(self.proc):
            if not entry.isdigit():
                continue
            with contextlib.suppress(OSError):  # it ended meanwhile
                descriptor = os.open(f"{entry}/{name}", os.O_RDONLY, dir_fd=self.proc)
                with open(descriptor) as file:
                    texts.append(file.read())
        return texts
