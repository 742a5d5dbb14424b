"""What code in a sandbox can see and do."""

from __future__ import annotations

import errno
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hood.grader.inside import bubblewrap, linux, seccomp
from hood.grader.inside.bubblewrap import HOME, USER, SandboxError, SandboxLost
from hood.grader.sandbox import Limits
from hood.grader.sandbox.stage import SHOWN, environment_folders
from hood.grader.sandbox.warm_process import environment, own_users, warm
from hood.phase_paths import ROOT
from tests.hood.grader.sandbox.inmate import Inmate, build_at, descriptors

pytestmark = pytest.mark.slow(6)


@pytest.fixture(scope="module")
def status(shared: Inmate) -> dict[str, str]:
    lines = shared.value("open('/proc/self/status').read().splitlines()")
    return {name: rest.strip() for name, _, rest in (line.partition(":") for line in lines)}


def test_it_is_nobody(shared: Inmate, status: dict[str, str]) -> None:
    assert shared.value("__import__('os').getuid()") > 0
    kept = set() if own_users() else {str(USER)}  # a process cannot leave groups in a namespace
    assert set(status["Groups"].split()) <= {"65534"} | kept
    for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[kind], 16) == 0, kind
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"


def test_its_user_outside_is_its_own_or_in_a_namespace(shared: Inmate) -> None:
    namespace = shared.value("__import__('os').readlink('/proc/self/ns/user')")
    if own_users():
        assert shared.value("__import__('os').getuid()") >= 1_000_000_000
    else:
        assert namespace != os.readlink("/proc/self/ns/user")


def test_the_zygote_finds_no_driver_of_nvidias() -> None:
    """The driver would start a thread in the zygote, and then the zygote would not fork."""
    load = "import ctypes; ctypes.CDLL('libcuda.so.1')"
    told = environment(warm().folder)
    done = subprocess.run([sys.executable, "-c", load], env=told, capture_output=True, text=True)
    assert "libcuda.so.1: file too short" in done.stderr


@pytest.mark.parametrize("kind", ["mnt", "pid", "net", "ipc", "uts"])
def test_its_namespaces_are_its_own(shared: Inmate, kind: str) -> None:
    inside = shared.value(f"__import__('os').readlink('/proc/self/ns/{kind}')")
    assert inside != os.readlink(f"/proc/self/ns/{kind}")


def test_it_sees_only_its_own_processes(shared: Inmate) -> None:
    assert shared.value("__import__('os').getppid()") == 0
    seen = shared.value(
        "from pathlib import Path\n"
        "sorted(p.name for p in Path('/proc').iterdir() if p.name.isdigit())"
    )
    assert len(seen) <= 3  # pid 1, the process that keeps the sandbox open, the kernel


def test_it_sees_only_the_needed_part_of_the_project(shared: Inmate) -> None:
    stage = str(warm().folder / "stage")
    for path in ("source", "phases", "gradebook.db", "tests", "nbgrader_config.py", "hood"):
        assert not shared.value(f"__import__('os').path.exists({str(ROOT / path)!r})")
    grader = f"{stage}/hood/grader"
    files = shared.value(
        f"import os\nsorted(f for _, _, names in os.walk({grader!r}) for f in names)"
    )
    allowed = {path.stem for path in (ROOT / "hood" / "grader" / "inside").glob("*.py")}
    assert {name.partition(".")[0] for name in files} == allowed
    assert "ModuleNotFoundError" in shared.run("import hood.judge.verdicts.judge")
    seen = shared.value("from utils.notebook import style\nstyle.__file__")
    assert seen.startswith(stage)


@pytest.mark.parametrize("place", ["hood.learner.check", "utils.notebook.verdict"])
def test_a_lab_can_import_its_modules_and_the_judge_is_absent(shared: Inmate, place: str) -> None:
    assert shared.run(f"from {place} import check, solution\ncheck('f'), solution('f')") == ""
    course = "from hood.learner.contents import PHASES\nPHASES[1].name"
    assert shared.value(course) == "01_tensors"


def test_parent_folders_list_only_visible_entries(shared: Inmate) -> None:
    shown = [Path(folder) for folder in (*environment_folders(), str(warm().folder / "stage"))]
    shown += [Path(made) for made in ("/tmp/inductor", HOME)]
    for folder in {parent for path in shown for parent in path.parents} - {Path("/"), Path(HOME)}:
        if not any(folder.is_relative_to(top) for top in ("/usr", *environment_folders())):
            leads_to = {
                path.relative_to(folder).parts[0] for path in shown if folder in path.parents
            }
            assert set(shared.value(f"__import__('os').listdir({str(folder)!r})")) <= leads_to
    top = "bin dev etc home lib lib32 lib64 libx32 proc sbin sys tmp usr"
    leads_to = {path.parts[1] for path in shown}
    assert set(shared.value("__import__('os').listdir('/')")) <= {*top.split(), *leads_to}


def test_no_home_no_shadow_no_host_name(shared: Inmate) -> None:
    # the grading environment may be in a user's home; the sandbox sees nothing of this home except
    # the environment
    leads_to = {p.parts[2] for p in map(Path, environment_folders()) if p.is_relative_to("/home")}
    assert set(shared.value("__import__('os').listdir('/home')")) == {"learner", *leads_to}
    assert not shared.value("__import__('os').path.exists('/etc/shadow')")
    assert shared.value("__import__('socket').gethostname()") == "sandbox"
    assert shared.value("__import__('getpass').getuser()") == "learner"
    assert shared.value("__import__('os').path.expanduser('~')") == "/home/learner"


def test_the_environment_is_clean(shared: Inmate) -> None:
    for where in ("dict(os.environ)", "open('/proc/self/environ').read()"):
        # a sandbox sees the grading environment, which may be in the project's folder
        seen = str(shared.value(f"import os\n{where}")).replace(sys.prefix, "")
        for secret in (
            "VERY_SECRET",
            str(ROOT),
            "PYTEST",
            "OPEN_THE_HOOD_SEED",
            "SSH_",
            "VIRTUAL_ENV",
        ):
            assert secret not in seen
    names = set(shared.value("import os\nlist(os.environ)"))
    assert "TRITON_INTERPRET" not in names


def test_command_lines_and_mounts_tell_nothing_of_this_machine(shared: Inmate) -> None:
    """The path of Python's environment cannot be hidden: every module contains it."""
    code = (
        "import contextlib, glob\n"
        "seen = {}\n"
        "for path in [p for what in ('cmdline', 'environ', 'mountinfo', 'mounts') "
        "for p in glob.glob(f'/proc/[0-9]*/{what}')]:\n"
        "    with contextlib.suppress(OSError): seen[path] = open(path).read()\n"
        "seen"
    )
    seen = shared.value(code)
    shown = [*environment_folders(), str(warm().folder)]
    for folder in shown:
        assert folder not in seen["/proc/1/cmdline"]
    for path, text in seen.items():
        for folder in sorted(shown, key=len, reverse=True):
            text = text.replace(folder, "")
        for secret in (str(ROOT), os.path.expanduser("~") + "/", "hidden", "VERY_SECRET"):
            assert secret not in text, path


def test_a_sandbox_cannot_read_changes_of_another(sandbox: None) -> None:
    """Except for data about its own processes, /proc and /sys stay the same."""
    read = (
        "import os\n"
        "found = {}\n"
        "for top in ('/proc', '/sys'):\n"
        "    for folder, folders, names in os.walk(top):\n"
        "        folders[:] = [name for name in folders if not name.isdigit()]\n"
        "        for path in [os.path.join(folder, name) for name in names]:\n"
        "            if path != '/proc/mounts':\n"
        "                try: found[path] = open(path).read()\n"
        "                except PermissionError: pass\n"
        "found"
    )
    with Inmate() as one, Inmate() as other:
        before = other.value(read)
        assert one.run("opened = [open('/dev/null') for _ in range(200)]") == ""
        assert other.value(read) == before
    shown = {path for pattern in SHOWN for path in Path("/").glob(pattern) if path.is_file()}
    assert set(before) == {str(path) for path in shown}


def test_common_facts_about_the_machine_are_readable(shared: Inmate) -> None:
    asked = (
        "import os, psutil\n"
        "[os.cpu_count(), psutil.virtual_memory().total, psutil.cpu_times().user > 0,"
        " os.sysconf('SC_NGROUPS_MAX'), len(os.getloadavg())]"
    )
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    groups = os.sysconf("SC_NGROUPS_MAX")
    assert shared.value(asked) == [os.cpu_count(), memory, True, groups, 3]
    for command in ("nproc", "lscpu", "free", "uptime", "ps", "df /tmp", "cat /proc/version"):
        if shutil.which(command.split()[0]):
            assert shared.run(f"!{command}"), command
            assert shared.value("_exit_code") == 0, command


def test_there_are_no_terminals_and_a_command_prints_without_one(shared: Inmate) -> None:
    assert "No such file" in shared.run("import os; os.open('/dev/ptmx', os.O_RDWR)")
    shared.run("word = 'inserted'")
    said = shared.run("!echo $word; echo said >&2; tty; exit 3\nprint(_exit_code)")
    assert said == "inserted\nsaid\nnot a tty\n3\n"
    assert "not supported" in shared.run("!sleep 9 &")
    heard: list[str] = []
    shared.run("!echo at once; read line; sleep 0.5; echo later", heard.append)
    assert [text for text in heard if text] == ["at once\n", "later\n"]


def test_its_descriptors_are_its_own(shared: Inmate) -> None:
    """Standard input, pipes for printed text, the event loop, the kernel's sockets; no file."""
    seen = shared.value(
        "import os\n"
        "names = []\n"
        "for name in os.listdir('/proc/self/fd'):\n"
        "    try: names.append(os.readlink(f'/proc/self/fd/{name}'))\n"
        "    except OSError: pass\n"
        "names"
    )
    kinds = {name.partition(":")[0] for name in seen}
    assert kinds <= {"/dev/null", "pipe", "socket", "anon_inode"}, seen
    connection = shared.value("from hood.judge.connection import rpc_server\nrpc_server.connection")
    assert not shared.value(f"__import__('os').get_inheritable({connection})")


def test_the_connection_joins_both_sides(sandbox: None) -> None:
    with Inmate() as inmate:
        inmate.kernel.connection.sendall(b"hello")
        code = (
            "import socket\n"
            "from hood.judge.connection import rpc_server\n"
            "connection = socket.socket(fileno=rpc_server.connection)\n"
            "connection.sendall(connection.recv(5).upper())"
        )
        assert inmate.run(code) == ""
        assert inmate.kernel.connection.recv(5) == b"HELLO"


@pytest.mark.parametrize(
    "path",
    ["/", "/usr", "/etc", "/dev", "/proc", "/proc/sys/kernel", "/root", "/sys/devices/system"],
)
def test_it_can_write_only_to_its_own_files(shared: Inmate, path: str) -> None:
    said = shared.run(f"open({path!r} + '/made', 'w')")
    assert "Error" in said


def test_it_cannot_change_what_it_imports(shared: Inmate) -> None:
    for module in ("torch", "hood.learner.contents", "os", "hood.grader.inside.confinement"):
        said = shared.run(f"import importlib as i; open(i.import_module({module!r}).__file__, 'a')")
        assert "Read-only file system" in said or "Permission denied" in said


@pytest.mark.parametrize("path", ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"])
def test_it_cannot_open_controls_of_the_machine(shared: Inmate, path: str) -> None:
    said = shared.run(f"import os; os.open({path!r}, os.O_RDWR)")
    assert "Error" in said


def test_it_cannot_change_how_linux_treats_its_processes(shared: Inmate) -> None:
    """A kernel can't open its own files of /proc, or its children's files there, for writing."""
    code = (
        "import os, subprocess\n"
        "child = subprocess.Popen(['sleep', '100'])\n"
        "def tries(pid):\n"
        "    opened = []\n"
        "    for folder, _, names in os.walk(f'/proc/{pid}'):\n"
        "        for name in names if '/fd' not in folder else ():\n"
        "            try: os.close(os.open(f'{folder}/{name}', os.O_WRONLY | os.O_NONBLOCK))\n"
        "            except OSError: continue\n"
        "            opened.append(f'{folder}/{name}')\n"
        "    return opened\n"
        "found = [open(f'/proc/{pid}/oom_score_adj').read() for pid in ('self', child.pid)]\n"
        "found += [tries(pid) for pid in ('self', child.pid)]\n"
        "child.kill()\n"
        "found"
    )
    assert shared.value(code) == ["500\n", "500\n", [], []]


def test_every_process_in_the_sandbox_is_as_confined(shared: Inmate) -> None:
    """A kernel of an ordinary user may write to the memory of pid 1, but gains nothing."""
    code = (
        "from pathlib import Path\n"
        "{p.name: [(p / 'status').read_text(), (p / 'limits').read_text()]"
        " for p in Path('/proc').iterdir() if p.name.isdigit()}"
    )
    seen = shared.value(code)
    assert "1" in seen
    for status, limits in seen.values():
        lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert (lines["Seccomp"], lines["NoNewPrivs"]) == ("2", "1")
        assert {int(lines[kind], 16) for kind in ("CapPrm", "CapEff", "CapInh", "CapAmb")} == {0}
        processes = next(line for line in limits.splitlines() if "processes" in line)
        assert processes.split()[2:4] == [str(Limits().processes)] * 2


def test_there_is_no_network(connected: Inmate) -> None:
    code = (
        "import socket\n"
        "try: socket.create_connection(('1.1.1.1', 53), 2)\n"
        "except OSError as error: print(error)"
    )
    assert "unreachable" in connected.run(code)
    with open("/proc/net/tcp") as outside:
        assert len(connected.value("open('/proc/net/tcp').readlines()")) <= len(outside.readlines())


def test_without_a_labs_request_there_is_no_loopback(shared: Inmate) -> None:
    for call in ("socket.socket()", "socket.create_connection(('127.0.0.1', 80))"):
        assert "Network is unreachable" in shared.run(f"import socket; {call}")


def test_loopback_works_for_processes_that_work_together(connected: Inmate) -> None:
    code = (
        "import socket\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "bool(socket.create_connection(server.getsockname(), 5))"
    )
    assert connected.value(code) is True


# uretprobe and uprobe of x86-64, which no filter of Linux sees. They end the process, except at a
# probe, and only root makes probes.
UNFILTERED = (335, 336)


def test_system_calls_that_are_not_listed_fail(shared: Inmate) -> None:
    column = seccomp.MACHINES[platform.machine()][0]
    listed = [row[column] for row in (seccomp.ALLOWED | seccomp.WITHOUT_EFFECT).values()]
    failed = shared.value(
        "import ctypes, errno\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "def call(n): return c.syscall(n, 0, 0, 0, 0, 0) == -1 and ctypes.get_errno()\n"
        f"[[n, call(n)] for n in set(range(600)) - set({[*listed, *UNFILTERED]!r})]"
    )
    assert len(failed) > 300
    assert [
        (number, error)
        for number, error in failed
        if error != (errno.EPERM if number < seccomp.FIRST_OF_5_1 else errno.ENOSYS)
    ] == []


def test_it_can_make_no_namespace(shared: Inmate) -> None:
    number = seccomp.ALLOWED["clone"][seccomp.MACHINES[platform.machine()][0]]
    code = (
        "import ctypes, os\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        f"[c.syscall({number}, 0x10000011, 0, 0, 0, 0), os.strerror(ctypes.get_errno())]"
    )
    assert shared.value(code) == [-1, "Operation not permitted"]


@pytest.mark.parametrize("family", [17, 38, 40], ids=["packet", "crypto", "vsock"])
def test_it_can_open_no_socket_out_of_its_namespace(connected: Inmate, family: int) -> None:
    assert "not supported" in connected.run(f"import socket; socket.socket({family}, 3)")


@pytest.mark.parametrize(
    ("family", "kind", "protocol"),
    [(2, 5, 132), (2, 1, 262), (10, 2, 136), (2, 3, 255), (16, 3, 6), (16, 3, 16)],
    ids=["sctp", "mptcp", "udplite", "raw", "xfrm", "generic netlink"],
)
def test_unneeded_protocols_are_refused(
    connected: Inmate, family: int, kind: int, protocol: int
) -> None:
    said = connected.run(f"import socket; socket.socket({family}, {kind}, {protocol})")
    assert "not supported" in said


def test_a_lock_is_granted_and_invisible_to_others(sandbox: None) -> None:
    """Compilers lock files in their own folder; on shared files, locks would be a channel."""
    lock = "import fcntl, torch\nfile = open(torch.__file__)\n"
    lock += "fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)"
    with Inmate() as one, Inmate() as other:
        assert one.run(lock) == ""
        assert other.run(lock) == ""
        for how in ("LOCK_SH", "LOCK_EX"):
            own = f"f = open('/tmp/own', 'w+'); fcntl.lockf(f, fcntl.{how} | fcntl.LOCK_NB)"
            assert one.run(own) == ""
        held = "from filelock import FileLock\nFileLock('/tmp/l').acquire(1).lock.is_locked"
        assert one.value(held) is True


def test_calls_that_hold_unowned_memory_are_refused(shared: Inmate, connected: Inmate) -> None:
    assert "PermissionError" in shared.run("import mmap; mmap.mmap(-1, 4096)")
    assert "Error" in shared.run("mmap.mmap(open('/dev/zero', 'r+b').fileno(), 4096)")
    assert "PermissionError" in shared.run(
        "import fcntl, os; fcntl.fcntl(os.pipe()[0], fcntl.F_SETPIPE_SZ, 1 << 20)"
    )
    # memory that multiprocessing and torch share is in a metered file system
    assert shared.value("import torch\ntorch.ones(3).share_memory_().is_shared()") is True
    assert shared.value("open('/dev/zero', 'rb').read(3) == bytes(3)") is True
    unchanged = (
        "import socket\n"
        "s = socket.socket()\n"
        "before = [s.getsockopt(socket.SOL_SOCKET, n) for n in (7, 8)]\n"
        "for n in (7, 8): s.setsockopt(socket.SOL_SOCKET, n, 1 << 22)\n"
        "before == [s.getsockopt(socket.SOL_SOCKET, n) for n in (7, 8)]"
    )
    assert connected.value(unchanged) is True
    assert connected.run("s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)") == ""


def test_a_hiding_process_is_measured_anyway(sandbox: None) -> None:
    """If a user may run a program but not read its file, the program's memory is not readable."""
    with Inmate(limits=Limits(memory=300 * 2**20)) as inmate:
        code = "import ctypes; print(ctypes.CDLL(None).prctl(4, 0, 0, 0, 0))"
        assert inmate.run(code) == "-1\n"
        inmate.run("import os, shutil; shutil.copy('/usr/bin/tail', '/tmp/t')")
        inmate.run("os.chmod('/tmp/t', 0o111)")
        inmate.begin(
            "import os, subprocess\n"
            "for _ in range(8): subprocess.Popen('head -c 80M /dev/zero | /tmp/t', shell=True)\n"
            "os.wait()"
        )
        inmate.ends()


def test_the_files_are_a_private_copy(sandbox: None, tmp_path: Path) -> None:
    tmp_path.joinpath("data").mkdir()
    tmp_path.joinpath("data/a.txt").write_text("mine")
    tmp_path.joinpath("data/a.txt").chmod(0o600)
    tmp_path.joinpath("helper.py").write_text("x = 7")
    tmp_path.joinpath("torch.py").write_text("raise SystemExit('shadowed')")
    tmp_path.joinpath("escape").symlink_to("/etc/shadow")
    os.mkfifo(tmp_path / "pipe")
    with Inmate(files=tmp_path) as inmate:
        assert inmate.value("import os\nsorted(os.listdir())") == ["data", "helper.py", "torch.py"]
        assert inmate.value("open('data/a.txt').read()") == "mine"
        assert inmate.value("import helper, torch\n[helper.x, hasattr(torch, 'ones')]") == [7, True]
        inmate.run("open('data/a.txt', 'w').write('changed'); open('new', 'w')")
        assert inmate.value("open('data/a.txt').read()") == "changed"
    assert (tmp_path / "data/a.txt").read_text() == "mine"
    assert not (tmp_path / "new").exists()


def test_two_sandboxes_share_nothing(sandbox: None) -> None:
    with Inmate() as one, Inmate() as other:
        one.run(
            "import os, socket\n"
            "for folder in ('/tmp', '/dev/shm', os.path.expanduser('~')):\n"
            "    open(folder + '/mark', 'w').write('x'); os.chmod(folder + '/mark', 0o777)\n"
            "s = socket.socket(socket.AF_UNIX); s.bind('\\0mark'); s.listen()"
        )
        assert other.value(
            "from os.path import exists\n"
            "[exists(f + '/mark') for f in ('/tmp', '/dev/shm', '/home/learner')]"
        ) == [False, False, False]
        refused = "import socket; socket.socket(socket.AF_UNIX).connect('\\0mark')"
        assert "refused" in other.run(refused)
        if own_users():
            assert one.value("os.getuid()") != other.value("import os\nos.getuid()")
        other.run("import os, signal; os.kill(-1, signal.SIGCONT)")  # reaches its own sandbox only
        assert one.value("1") == 1


def test_each_sandbox_has_a_new_random_state(sandbox: None) -> None:
    code = (
        "import random, uuid, numpy as np, torch, tempfile\n"
        "[random.random(), np.random.rand(), torch.initial_seed(), str(uuid.uuid4()),"
        " tempfile.mktemp()]"
    )
    with Inmate() as one, Inmate() as other:
        for first, second in zip(one.value(code), other.value(code), strict=True):
            assert first != second


FAKE = """#!{python} -I
import os, sys, time
from pathlib import Path
asked = os.pread(int(sys.argv[2]), 1 << 20, 0).split(b"\\0")
report = int(asked[asked.index(b"--info-fd") + 1])
if os.fork() == 0:
    Path({folder!r}, "child").write_text(str(os.getpid()))
    time.sleep(600)
Path({folder!r}, "keeper").write_text(str(os.getpid()))
os.write(report, {report!r}) if {report!r} else None
while not (Path({folder!r}, "child").exists() and Path({folder!r}, "child").read_text()):
    time.sleep(0.01)
os.write(1, {word!r})
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("report", "word", "why"),
    [
        (b"no JSON", b"r\n", "reported b'no JSON'"),
        (b"[1]", b"r\n", "reported b'\\[1]'"),
        (b"{}", b"r\n", "reported b'{}'"),
        (b'{"child-pid": "x"}', b"r\n", "it reported"),
        (b"", b"r\n", "reported b''"),
        (b"", b"x\n", "made no sandbox: it printed nothing"),
    ],
)
def test_a_keeper_with_a_useless_report_leaves_nothing(
    report, word, why, tmp_path, monkeypatch
) -> None:
    fake = tmp_path / "bwrap"
    told = {"python": sys.executable, "folder": str(tmp_path), "report": report, "word": word}
    fake.write_text(FAKE.format(**told))
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(bubblewrap, "SECONDS_TO_BUILD", 3)
    before = descriptors()
    linux.prctl(
        linux.PR_SET_CHILD_SUBREAPER, 1
    )  # like the zygote, which must reap the keeper's orphans
    try:
        with pytest.raises(SandboxError, match=why) as found:
            build_at("/")
    finally:
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 0)
    assert not isinstance(found.value, SandboxLost)
    assert descriptors() <= before
    for name in ("keeper", "child"):
        assert not Path("/proc", (tmp_path / name).read_text()).exists(), name


def test_a_sandbox_killed_after_its_start_is_tried_again(tmp_path, monkeypatch) -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    fake, report = tmp_path / "bwrap", f'{{"child-pid": {gone.pid}}}'.encode()
    told = {"python": sys.executable, "folder": str(tmp_path), "report": report, "word": b"r\n"}
    fake.write_text(FAKE.format(**told))
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SandboxLost, match="was killed"):
        build_at("/")


def test_a_killed_keeper_is_tried_again(tmp_path, monkeypatch) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\nkill -9 $$\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SandboxLost, match="was killed"):
        build_at("/")
    fake.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    with pytest.raises(SandboxError, match="made no sandbox: no") as found:
        build_at("/")
    assert not isinstance(found.value, SandboxLost)
