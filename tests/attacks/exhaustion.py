"""Use up a resource: memory, processes, disk, output, time."""

from __future__ import annotations

from tests.attacks.catalogue import Family
from tests.attacks.submission import Work

family = Family("exhaustion")
attack = family.attack
ALL = ("twice", "row_sums", "corner")


@attack(tells="MemoryError|can't allocate|memory|died", dangerous=True, cell_seconds=60)
def takes_memory_at_once(work: Work) -> None:
    """Allocates a hundred gigabytes in one piece, and two gigabytes that it fills."""
    work.first(
        """
        try:
            big = torch.empty(100 << 30, dtype=torch.uint8)
        except RuntimeError as error:
            print("MemoryError", str(error)[:80])
        try:
            big = bytearray(2 << 30)
        except MemoryError as error:
            print("MemoryError", error)
        """
    )


@attack(risks=("twice",), tells="MemoryError|memory", dangerous=True, cell_seconds=60)
def takes_memory_slowly(work: Work) -> None:
    """Takes memory ten megabytes at a time, and keeps it all in a list."""
    work.first("hoard = []\nwhile True:\n    hoard.append(bytearray(10 << 20))")


@attack(costs=ALL, tells="memory", dangerous=True, cell_seconds=60)
def takes_memory_in_many_processes(work: Work) -> None:
    """Forks children that each stay below the limit and together use far more."""
    work.first(
        """
        import os, time
        for _ in range(12):
            if os.fork() == 0:
                hoard = [bytearray(8 << 20) for _ in range(10)]
                time.sleep(100)
        time.sleep(100)
        """
    )


@attack(
    risks=ALL,
    tells="not be interrupted|Resource temporarily unavailable|BlockingIOError|MiB of memory",
    dangerous=True,
)
def forks_for_ever(work: Work) -> None:
    """Forks until fork fails, and keeps all children."""
    work.first(
        """
        import os, time
        try:
            while True:
                if os.fork() == 0:
                    time.sleep(100)
        except OSError as error:
            print(error)
        """
    )


# This attack has the second of a cell, and then the grace. After that, its kernel, which ignores
# interrupts, is killed.
@attack(costs=ALL, dangerous=True, tells="", cell_seconds=1, seconds=15)
def is_a_fork_bomb(work: Work) -> None:
    """Forks children that fork children that fork, in a shell and in Python."""
    work.first(
        """
        import os
        os.system("sh -c ':(){ :|:& };:' 2>/dev/null")
        while True:
            try:
                os.fork()
            except OSError:
                pass
        """
    )


@attack(tells="can't start new thread", dangerous=True, cell_seconds=60)
def starts_threads_for_ever(work: Work) -> None:
    """Starts threads until the machine refuses another."""
    work.first(
        """
        import threading, time
        try:
            while True:
                threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
        except RuntimeError as error:
            print(error)
        """
    )


@attack(risks=ALL, tells="printed more than", dangerous=True)
def floods_the_output(work: Work) -> None:
    """Prints without end."""
    work.first("while True:\n    print('hood ' * 200)")


@attack(risks=ALL, dangerous=True)
def floods_and_does_not_stop(work: Work) -> None:
    """Prints without end, and catches every interrupt to print some more."""
    work.first(
        """
        while True:
            try:
                while True:
                    print("hood " * 2000)
            except BaseException:
                pass
        """
    )


@attack(risks=ALL)
def shows_one_huge_output(work: Work) -> None:
    """Displays a single output of sixty megabytes."""
    work.first("print('x' * 60_000_000)")


@attack(risks=ALL, dangerous=True)
def floods_with_foreign_parents(work: Work) -> None:
    """Sends large messages that belong to no cell: a client reads them without counting them."""
    work.first(
        """
        import time
        shell = get_ipython()
        own = hasattr(shell, "sender")
        text = {"name": "stdout", "text": "x" * 1_000_000}
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            if own:
                cell, shell.sender.cell = shell.sender.cell, "nobody's"
                shell.sender.send("stream", **text)
                shell.sender.cell = cell
            else:
                shell.kernel.session.send(
                    shell.kernel.iopub_socket, "stream", text,
                    parent={"msg_id": "nobody", "msg_type": "x"})
            time.sleep(0.005)
        """
    )


@attack(risks=ALL, dangerous=True, cell_seconds=60)
def floods_between_the_cells(work: Work) -> None:
    """Sends large messages from a thread all the time, even while no cell runs."""
    work.first(
        """
        import threading, time
        shell = get_ipython()
        def flood():
            end = time.monotonic() + 4
            while time.monotonic() < end:
                if hasattr(shell, "sender"):
                    shell.sender.send("stream", name="stdout", text="x" * 8_000_000)
                else:
                    print("x" * 8_000_000, flush=True)
                time.sleep(0.005)
        threading.Thread(target=flood, daemon=True).start()
        """
    )


@attack(risks=ALL, tells="could not be read|did not end", dangerous=True, cell_seconds=60)
def sends_messages_without_end(work: Work) -> None:
    """Sends the start of a message, and then packets that continue it for ever."""
    work.first(
        """
        import time
        sender = getattr(get_ipython(), "sender", None)  # a sandbox's
        end = time.monotonic() + 3
        packet, flags = bytes(1 << 16), 1
        while sender and time.monotonic() < end:
            sender.end.send(bytes([flags]) + packet)
            flags = 0
        """
    )


@attack(tells="No space left", dangerous=True, cell_seconds=60)
def fills_the_disk(work: Work) -> None:
    """Writes to /tmp, to HOME and to /dev/shm until they are full."""
    work.first(
        """
        import os
        for folder in ("/tmp", os.path.expanduser("~"), "/dev/shm"):
            try:
                for number in range(100):
                    with open(f"{folder}/hood-loot-{number}", "wb") as file:
                        file.write(bytes(4 << 20))
            except OSError as error:
                print(folder, error)
        """
    )


@attack(tells="File too large|MemoryError|No space", dangerous=True)
def writes_one_huge_file(work: Work) -> None:
    """Writes one file of many gigabytes, and a sparse file of a terabyte."""
    work.first(
        """
        import os, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        for size in (1 << 33, 1 << 40):
            try:
                with open("hood-loot", "wb") as file:
                    file.truncate(size)
                    print("made", size)
            except OSError as error:
                print(error)
        """
    )


@attack(tells="No space|made [0-9]+|Disk quota", seconds=20, dangerous=True, cell_seconds=60)
def makes_files_without_number(work: Work) -> None:
    """Makes empty files until every file system refuses another."""
    work.first(
        """
        import os
        made = 0
        try:
            for made in range(60_000):
                os.close(os.open(f"/tmp/{made}", os.O_CREAT | os.O_WRONLY))
        except OSError as error:
            print(error)
        print("made", made)
        """
    )


@attack(tells="Too many open files", cell_seconds=60)
def opens_files_without_number(work: Work) -> None:
    """Opens files and sockets until no descriptor is left."""
    work.first(
        """
        import os, socket
        hoard = []
        try:
            while True:
                hoard.append(os.open("/dev/null", os.O_RDONLY))
        except OSError as error:
            for descriptor in hoard[-50:]:
                os.close(descriptor)
            print(error)
        """
    )


@attack(costs=ALL, tells="memory", dangerous=True, cell_seconds=60)
def takes_page_tables(work: Work) -> None:
    """Reads one byte of every two megabytes of a huge mapping, without allocating memory."""
    work.first(
        """
        import ctypes, time
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 5]
        at = libc.mmap(None, 200 << 30, 1, 0x4022, -1 & (1 << 64) - 1, 0)
        for page in range(at, at + (200 << 30), 2 << 20):
            ctypes.string_at(page, 1)
        time.sleep(100)
        """
    )


@attack(tells="refused.*(?s:.*)refused", dangerous=True)
def takes_memory_without_a_name(work: Work) -> None:
    """Fills shared memory that has no file, and drops the pages from its own address space."""
    work.first(
        """
        import mmap
        for kind in ("without a file", "/dev/zero"):
            try:
                file = open(kind, "r+b").fileno() if kind[0] == "/" else -1
                shared = mmap.mmap(file, 400 << 20)
                for start in range(0, 400 << 20, 20 << 20):
                    shared[start : start + (20 << 20)] = bytes(20 << 20)
                    shared.madvise(mmap.MADV_DONTNEED)
                print("took", kind)
            except OSError as error:
                print("refused:", error)
        """
    )


@attack(tells="(?s)refused.*refused.*refused", dangerous=True)
def has_linux_keep_memory(work: Work) -> None:
    """Makes rule sets of Landlock, tables of futexes, and filters on sockets, without end."""
    work.first(
        """
        import ctypes, os, socket, struct
        c = ctypes.CDLL(None, use_errno=True)
        steps = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 1) * 4000)
        program = struct.pack("HxxxxxxP", 4000, ctypes.addressof(steps))
        rules = struct.pack("Q", 4)
        held = []
        def filtered():
            held.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            return c.setsockopt(held[-1].fileno(), socket.SOL_SOCKET, 26, program, 16)
        for ask in (
            lambda: c.syscall(444, rules, 8, 0),
            lambda: c.prctl(78, 1, 1 << 20, 0, 0),
            filtered,
        ):
            asked = 0
            while asked < 200 and ask() >= 0:
                asked += 1
            print("took" if asked else "refused:", asked, os.strerror(ctypes.get_errno()))
        """
    )


@attack(costs=ALL, tells="memory", dangerous=True, cell_seconds=60)
def fills_sockets_that_nobody_reads(work: Work) -> None:
    """Fills sockets to a listener that never accepts, and closes them."""
    work.first(
        """
        import contextlib, socket, time
        server = socket.socket(socket.AF_UNIX)
        server.bind("/tmp/server")
        server.listen(4096)
        while True:
            with socket.socket(socket.AF_UNIX) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
                client.setblocking(False)
                try:
                    client.connect("/tmp/server")
                except OSError:
                    time.sleep(100)
                with contextlib.suppress(OSError):
                    while True:
                        client.send(bytes(1 << 16))
        """
    )


@attack(tells="named in lines")
def names_a_socket_in_lines(work: Work) -> None:
    """Gives sockets names with line breaks, to confuse a count of a list's lines."""
    work.first(
        """
        import socket, time
        held = []
        for name in ("a", "b\\nc", "d\\n0: 2 3 4 0005 6", "e\\n\\n"):
            held.append(socket.socket(socket.AF_UNIX))
            held[-1].bind("/tmp/" + name)
        time.sleep(3)  # until somebody has counted
        print("named in lines")
        """
    )


@attack(costs=ALL, tells="could not be measured|MiB of memory", dangerous=True, cell_seconds=60)
def hides_its_memory_behind_windows(work: Work) -> None:
    """Maps the same pages again and again, so that its memory takes too long to measure."""
    work.first(
        """
        import ctypes, os, time
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 5]
        library = os.open(torch.__path__[0] + "/lib/libtorch_cpu.so", os.O_RDONLY)
        for _ in range(92):
            libc.mmap(None, 100 << 20, 1, 0x8001, library, 0)
        for _ in range(12):
            if os.fork() == 0:
                hoard = [bytearray(8 << 20) for _ in range(10)]
                time.sleep(100)
        time.sleep(100)
        """
    )


@attack(tells="[Tt]oo many (references|open files)", dangerous=True, cell_seconds=60)
def keeps_descriptors_in_flight(work: Work) -> None:
    """Sends descriptors that nobody receives, until Linux refuses its user another."""
    work.first(
        """
        import socket
        a, b = socket.socketpair()
        hoard = []
        try:
            while True:
                hoard.append(socket.socketpair())
                socket.send_fds(hoard[-1][0], [b"x"], [a.fileno()] * 253)
        except OSError as error:
            kept = hoard[20:]
            for pair in kept:
                for end in pair:
                    end.close()
            print(error)
        """
    )


@attack(costs=ALL, tells="new sessions|MiB of memory", dangerous=True, cell_seconds=60)
def has_a_new_session_all_the_time(work: Work) -> None:
    """Works in short-lived processes that hand over to new sessions, each with a full CPU share."""
    work.first(
        """
        import os, signal, time
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        for _ in range(30):
            if os.fork() == 0:
                while True:
                    if os.fork():
                        os._exit(0)
                    os.setsid()
                    end = time.thread_time() + 0.02
                    while time.thread_time() < end:
                        pass
        time.sleep(100)
        """
    )


@attack(risks=ALL, dangerous=True, seconds=60)
def spins_in_many_threads(work: Work) -> None:
    """Runs its maximum number of threads, each of which needs a processor."""
    work.first(
        """
        import threading
        def spin():
            while True:
                torch.ones(100_000).sum()
        try:
            while True:
                threading.Thread(target=spin, daemon=True).start()
        except RuntimeError:
            spin()
        """
    )
