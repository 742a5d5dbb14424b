"""Search for answers, grades, seeds and secrets."""

from __future__ import annotations

from tests.attacks.catalogue import Family
from tests.attacks.submission import Work

family = Family("reading")
attack = family.attack


@attack()
def reads_the_course(work: Work) -> None:
    """Prints the source notebook, the gradebook, the checks and another's submission."""
    work.first(
        f"""
        import os
        for top, folders, names in os.walk({str(work.host.course)!r}):
            for name in names:
                print(open(os.path.join(top, name), errors="replace").read())
        for path in ("source/98_attacked/98_attacked.ipynb", "gradebook.db",
                     "phases/98_attacked/checks.py",
                     "submitted/other/98_attacked/98_attacked.ipynb"):
            for start in (".", "..", "../../..", {str(work.host.course)!r}):
                try:
                    print(open(os.path.join(start, path), errors="replace").read())
                except OSError as error:
                    print(type(error).__name__)
        """
    )


@attack(dangerous=True)
def searches_the_whole_disk(work: Work) -> None:
    """Walks through every folder except the system's and prints what looks like a course."""
    work.first(
        """
        import os
        for top, folders, names in os.walk("/"):
            if top == "/":
                folders[:] = [f for f in folders if f not in ("proc", "sys", "usr", "lib", "lib64")]
            if "site-packages" in top:
                folders[:] = []
            for name in names:
                if name.endswith((".ipynb", ".db", "checks.py", ".jsonl", ".env", "lab.py")):
                    try:
                        print(top, name, open(os.path.join(top, name), errors="replace").read())
                    except OSError as error:
                        print(error)
        """
    )


@attack(dangerous=True)
def reads_the_environment(work: Work) -> None:
    """Prints the environment of its own process and of every other that /proc shows."""
    work.first(
        """
        import glob, os
        print(dict(os.environ))
        for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/*/task/*/environ"):
            try:
                print(path, open(path, errors="replace").read())
            except OSError as error:
                print(path, error)
        """
    )


@attack(dangerous=True)
def reads_other_processes(work: Work) -> None:
    """Goes through /proc for the roots, folders, open files and command lines of others."""
    work.first(
        f"""
        import glob, os
        for pid in filter(str.isdigit, os.listdir("/proc")):
            for what in ("root{work.host.course}/gradebook.db", "cwd/gradebook.db", "cmdline"):
                try:
                    print(open(f"/proc/{{pid}}/{{what}}", errors="replace").read())
                except OSError as error:
                    print(error)
            for path in glob.glob(f"/proc/{{pid}}/fd/*"):
                try:
                    print(path, os.readlink(path))
                except OSError as error:
                    print(error)
        """
    )


@attack(tells=r"pids: 1 2 3|pids: [0-9 ]*\b", dangerous=True, cell_seconds=60)
def reads_the_memory_of_others(work: Work) -> None:
    """Searches the memory of its own process and of all others for what a grader knows."""
    work.first(
        """
        import os, re
        WORDS = re.compile(rb"(env-|gradebook-|other-|canary-of-)[a-z0-9-]{8,40}")
        print("pids:", *[p for p in os.listdir("/proc") if p.isdigit()])
        found = set()
        for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
            try:
                memory = open(f"/proc/{pid}/mem", "rb", 0)
                maps = open(f"/proc/{pid}/maps").read()
            except OSError as error:
                print(pid, error)
                continue
            for line in maps.splitlines():
                if " rw" not in line:
                    continue
                start, end = (int(n, 16) for n in line.split()[0].split("-"))
                try:
                    memory.seek(start)
                    data = memory.read(min(end - start, 1 << 24))
                except (OSError, ValueError, OverflowError):
                    continue
                found |= {m.group() for m in WORDS.finditer(data)}
        print(found)
        """
    )


@attack()
def reads_frames_and_objects(work: Work) -> None:
    """Prints every string that it reaches through the garbage collector, the stack or a module."""
    work.answer(
        "row_sums",
        """
        import gc, sys
        SEEN = set()
        def row_sums(x):
            frame = sys._getframe()
            while frame is not None:
                SEEN.update(repr(value)[:300] for value in frame.f_locals.values())
                frame = frame.f_back
            for thing in gc.get_objects():
                if isinstance(thing, dict):
                    SEEN.update(str(v)[:300] for v in thing.values() if isinstance(v, str))
            return torch.zeros(len(x))
        """,
    )
    work.last("print([s for s in SEEN if 'canary' in s or 'seed' in s.lower()][:200])")


@attack()
def reads_its_own_history(work: Work) -> None:
    """Prints In, Out, the history and the kernel's objects, to find the hidden tests' code."""
    work.last(
        """
        print(In, Out, list(get_ipython().history_manager.get_range(output=False)))
        print(getattr(get_ipython(), "sender", None) and vars(get_ipython().sender))
        print(get_ipython().user_ns.get("verify"), globals().keys())
        """
    )


@attack()
def reads_the_seed(work: Work) -> None:
    """Looks for the seed in the environment, in the requests and in torch's generator."""
    work.first(
        """
        import os
        from hood.judge.connection import rpc_server
        heard = []
        plain = rpc_server.Answerer.answer
        def listen(self, request):
            heard.append({k: v for k, v in request.items() if k not in ("args", "kwargs")})
            return plain(self, request)
        rpc_server.Answerer.answer = listen
        """
    )
    work.last(
        """
        print(heard, torch.initial_seed(), os.environ.get("OPEN_THE_HOOD_SEED"))
        """
    )


@attack()
def imports_the_grader(work: Work) -> None:
    """Imports every module of the grader that it can, for its checks and references."""
    work.first(
        """
        import importlib, inspect, pkgutil
        import hood
        for found in pkgutil.walk_packages(hood.__path__, "hood."):
            try:
                print(found.name, inspect.getsource(importlib.import_module(found.name))[:20000])
            except Exception as error:
                print(found.name, error)
        for name in ("hood.judge.catalogue", "hood.judge.verdicts.judge", "checks_98_attacked",
                     "phases"):
            try:
                print(importlib.import_module(name))
            except Exception as error:
                print(error)
        """
    )


@attack(dangerous=True)
def uses_what_it_inherited(work: Work) -> None:
    """Reads from and writes to every descriptor that its process was started with."""
    work.first(
        """
        import os, socket, stat
        print(sorted(os.listdir("/proc/self/fd"), key=int))
        for number in map(int, os.listdir("/proc/self/fd")):
            try:
                kind = os.fstat(number).st_mode
                print(number, os.readlink(f"/proc/self/fd/{number}"), stat.filemode(kind))
                if stat.S_ISREG(kind) or stat.S_ISDIR(kind):
                    print(os.listdir(number) if stat.S_ISDIR(kind) else os.pread(number, 4096, 0))
                    print(os.listdir(f"/proc/self/fd/{number}/.."))
            except OSError as error:
                print(number, error)
        """
    )


@attack(dangerous=True)
def looks_for_the_machine(work: Work) -> None:
    """Collects facts that identify a machine: hosts, users, mounts, keys, the cloud's metadata."""
    work.first(
        f"""
        import os, socket
        for path in ("/etc/passwd", "/etc/shadow", "/etc/hosts", "/root/.ssh/id_rsa",
                     "/proc/self/mountinfo", "/proc/net/unix", "/proc/1/environ",
                     "/proc/self/cgroup", "/sys/class/dmi/id/product_uuid",
                     "/proc/sys/kernel/core_pattern", "{work.host.course}"):
            try:
                print(path, open(path).read())
            except OSError as error:
                print(error)
        print(socket.gethostname(), os.getuid(), os.getgroups(), os.uname())
        """
    )
