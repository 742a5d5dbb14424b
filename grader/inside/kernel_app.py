"""The IPython kernel of a sandbox: Jupyter's own, with one socket in place of ZeroMQ's five.

The thread that produces a message also sends it, so a cell needs no switch between threads. Two
kinds of threads wait beside it: one reads what child processes print, the other sends what a long
cell has printed so far.

This depends on ipykernel's private classes, and saves 49 ms at the start of a kernel.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
import zlib
from functools import partial
from typing import Any

from ipykernel.compiler import XCachingCompiler, get_tmp_directory
from ipykernel.iostream import IOPubThread, OutStream
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.utils import _async_in_context
from ipykernel.zmqshell import ZMQInteractiveShell
from jupyter_client.session import Session
from traitlets import Float, Type

from grader.inside import messages

LONGEST = 1 << 20  # characters of one text
# Printed text is sent when the cell ends and, before that, after so many seconds or characters.
FLUSH_SECONDS = 0.1
FLUSH_CHARACTERS = 1 << 14
LAST_FLUSH_SECONDS = 1.0  # longest wait, at a cell's end, for text that is being sent
EXIT = "exit() and quit() end only this cell when a notebook is graded; the next cell runs"


class SandboxSession(Session):
    """Jupyter's session over the sandbox's socket; it cuts what the grader would refuse."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._end: socket.socket
        self._sending = threading.RLock()

    def send(
        self,
        stream: Any,
        msg_or_type: Any,
        content: Any = None,
        parent: Any = None,
        ident: Any = None,
        buffers: Any = None,
        track: bool = False,
        header: Any = None,
        metadata: Any = None,
    ) -> dict[str, Any] | None:
        """Send a message, or one of a type that is built from the other arguments, and return it.

        ``stream`` is None for the shell channel. A forked process is not the kernel: it sends
        nothing and returns None.
        """
        if os.getpid() != self.pid:
            return None
        if isinstance(msg_or_type, dict):
            message = dict(msg_or_type)
        else:
            message = self.msg(msg_or_type, content, parent, header, metadata)
        message["buffers"] = buffers or message.get("buffers", [])
        channel = messages.SHELL if stream is None else messages.IOPUB
        with self._sending:
            for packet in messages.packets(self._encode(message), channel):
                self._end.send(packet)
        return message

    def _encode(self, message: dict[str, Any]) -> bytes:
        data = messages.encode(message, self.pack)
        if len(data) > LONGEST:
            message["content"] = _cut(message["content"])
            data = messages.encode(message, self.pack)
        if len(data) > messages.MOST:
            left_out = f"... an output of more than {messages.MOST >> 20} MiB was left out"
            small = {"data": {"text/plain": left_out}, "metadata": {}, "name": "stdout"}
            small |= {"text": "", "status": "ok"}
            data = messages.encode({**message, "content": small, "buffers": []}, self.pack)
        return data

    def feed_identities(self, msg: Any, copy: bool = True) -> tuple[list[bytes], Any]:
        """Return no identities, because there is only one client."""
        return [], msg

    def deserialize(self, msg: Any, content: bool = True, copy: bool = True) -> dict[str, Any]:
        """Decode a message that was received."""
        return messages.decode(msg)


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONGEST:
        return f"{value[:LONGEST]}\n... {len(value) - LONGEST} more characters were left out ...\n"
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut(item) for item in value]
    return value


class Publisher(IOPubThread):
    """Replace Jupyter's publishing thread; it runs every request at once, in the calling thread."""

    def __init__(self, session: SandboxSession) -> None:
        self.session = session
        self.socket = self.io_loop = None  # type: ignore[assignment]  # there is no thread
        self.thread = threading.Thread(name="IOPub")  # never started, so streams flush directly
        self.background_socket = self  # type: ignore[assignment]  # it sends like one

    def schedule(self, f: Any) -> None:
        """Call ``f`` at once."""
        f()

    def start(self) -> None:
        """Do nothing, because there is no thread."""

    stop = close = start


class SandboxStream(OutStream):
    """Standard output or error; its text is sent when the cell ends or ``FLUSH_SECONDS`` later.

    The main thread waits for no ``threading.Event``: a signal handler that raises while it does may
    leave the event's lock in the wrong state.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._nothing_written = threading.Lock()  # released by whoever writes
        self._nothing_written.acquire()
        self._is_sending = False  # whether the thread below is
        self._characters = 0
        super().__init__(*args, **kwargs)
        threading.Thread(target=self._flush_soon, daemon=True).start()

    def write(self, string: str) -> int | None:  # type: ignore[override]  # as ipykernel's
        """Write to the buffer or, in a forked process, to the pipe that the kernel reads."""
        if self._is_master_process():
            if self._characters > FLUSH_CHARACTERS:  # a signal handler interrupted the last flush
                self._flush()
            self._characters += len(string)
            return super().write(string)
        data = string.encode(errors="replace")
        while data:
            data = data[os.write(self._original_stdstream_fd, data) :]
        return len(string)

    def flush(self) -> None:
        """Send the buffer, at the end of a cell: text that is sent later belongs to no cell.

        The wait for the stream's thread is short: a signal handler may call this while that waits.
        """
        super().flush()
        if self._is_master_process():
            end = time.monotonic() + LAST_FLUSH_SECONDS
            while self._is_sending and time.monotonic() < end:
                time.sleep(0.001)

    def _schedule_flush(self) -> None:
        if self._characters > FLUSH_CHARACTERS:
            self._flush()
        elif self._nothing_written.locked():
            with contextlib.suppress(RuntimeError):  # another thread has just released it
                self._nothing_written.release()

    def _flush_soon(self) -> None:
        while True:
            self._nothing_written.acquire()
            time.sleep(FLUSH_SECONDS)
            self._is_sending = True
            try:
                self._flush()
            finally:
                self._is_sending = False

    def _flush(self) -> None:
        if self._is_master_process():
            super()._flush()
            self._characters = 0


class _NoSubshells:
    """What IPython's kernel reads from the thread that serves subshells, which is not there."""

    parent_thread = threading.main_thread()

    def __bool__(self) -> bool:
        return False


class SandboxCompiler(XCachingCompiler):
    """ipykernel's compiler, which makes the file names of cells faster."""

    def get_code_name(self, raw_code: str, code: str, number: int) -> str:
        """Return the file name under which tracebacks know a cell.

        ``inspect`` is told its module. Otherwise each traceback looks for the name among the files
        of all modules, several times: 8 ms where 2,300 modules are loaded. ipykernel's own hash is
        computed in Python, because a debugger needs just that one.
        """
        digest = zlib.crc32(raw_code.encode(errors="replace"))
        name = f"{get_tmp_directory()}{os.sep}{digest}.py"
        inspect.modulesbyfile[name] = "__main__"
        return name


class SandboxShell(ZMQInteractiveShell):
    """IPython's shell, which does not transform a cell twice and which only the grader ends."""

    def __init__(self, **kwargs: Any) -> None:
        self._transformed: dict[str, str] = {}
        super().__init__(**kwargs)

    def transform_cell(self, raw_cell: str) -> str:
        """Return the cell as Python, with its magics as calls.

        The kernel asks for it, and then the shell asks again. The first answer is kept for that and
        then dropped, so a later cell with the same text gets a new one.
        """
        if raw_cell in self._transformed:
            return self._transformed.pop(raw_cell)
        self._transformed = {raw_cell: super().transform_cell(raw_cell)}
        return self._transformed[raw_cell]

    def ask_exit(self) -> None:
        """End the cell, as ``sys.exit`` does; ``exit()`` and ``quit()`` call this.

        ipykernel would end the kernel a tenth of a second later, and how many cells run until then
        is a matter of luck.
        """
        raise SystemExit(EXIT)

    def system_piped(self, cmd: str) -> None:
        """Run a ``!command`` and print what it prints; ipykernel would make a terminal for it."""
        if cmd.rstrip().endswith("&"):
            raise OSError("Background processes not supported.")
        with subprocess.Popen(
            self.var_expand(cmd, depth=1),
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as child:
            assert child.stdout is not None
            for line in io.TextIOWrapper(child.stdout, errors="replace"):
                print(line, end="", flush=True)
        self.user_ns["_exit_code"] = child.returncode
        if self.system_raise_on_error and child.returncode:
            raise subprocess.CalledProcessError(child.returncode, cmd)

    system = system_piped

    def _update_exit_now(self, change: Any) -> None:
        """Do nothing where ``exit_now`` is set; ipykernel would end the kernel."""

    async def run_ast_nodes(self, *args: Any, **kwargs: Any) -> bool:
        """Run the statements of a cell; only in here does an interrupt raise, and only once.

        A second one could come while the first is shown. A cell with a top-level ``await`` has
        ipykernel's own handler.
        """
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            return await super().run_ast_nodes(*args, **kwargs)
        try:
            try:
                signal.signal(signal.SIGINT, _interrupt_once)
                return await super().run_ast_nodes(*args, **kwargs)
            finally:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
        except KeyboardInterrupt as error:  # in IPython's own code, or in the `finally` above
            kwargs["result"].error_in_exec = error
            self.showtraceback()
            return True


def _interrupt_once(number: int, frame: Any) -> None:
    """Raise KeyboardInterrupt, as Python's own handler does, and ignore further signals."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


class SandboxKernel(IPythonKernel):
    _supports_kernel_subshells = False
    shell_class: Any = Type(SandboxShell, klass="IPython.core.interactiveshell.InteractiveShellABC")
    compiler_class: Any = Type(SandboxCompiler, klass=XCachingCompiler)
    _execute_sleep = Float(0.0)  # no other thread has to publish in the meantime

    def pre_handler_hook(self) -> None:
        """Ignore interrupts around a cell: one that comes late would end the kernel.

        `SandboxShell.run_ast_nodes` and, for a cell with a top-level ``await``, ipykernel let them
        reach the cell's own code.
        """
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    post_handler_hook = pre_handler_hook

    def _publish_status(self, status: str, *args: Any, **kwargs: Any) -> None:
        """Publish the kernel's state, but not that it is busy: the grader knows what it asked."""
        if status != "busy":
            super()._publish_status(status, *args, **kwargs)

    def listen(self, end: socket.socket) -> None:
        """Answer the requests that arrive at ``end``, until the grader closes its own end."""
        self._served = True
        assembler = messages.Assembler(sys.maxsize)  # only the grader writes here
        handle = _async_in_context(partial(self.shell_main, None))
        loop = asyncio.get_event_loop()
        tasks = set()

        def take() -> None:
            try:
                packet = end.recv(messages.PACKET + 1, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            if not packet:  # the grader has closed its end, so the sandbox ends too
                self._served = False
                loop.stop()
            elif (complete := assembler.take(packet)) is not None:
                task = loop.create_task(handle(complete[1]))
                tasks.add(task)
                task.add_done_callback(tasks.discard)

        loop.add_reader(end, take)
        while self._served:
            # The learner's code may stop the loop, or leave a callback that raises SystemExit.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                loop.run_forever()


class SandboxApp(IPKernelApp):
    """The application around the kernel. The zygote makes it and each fork completes it.

    Making it writes to many pages of memory, which every fork would otherwise have to copy.
    """

    kernel: Any
    kernel_class: Any = Type(SandboxKernel, klass="ipykernel.kernelbase.Kernel").tag(config=True)

    def _nothing(self, *_: Any, **__: Any) -> None:
        """Replace steps that a sandbox does not need.

        It has no connection file, no ports, and no configuration of this machine. The zygote
        notices when the kernel or the grading process ends, so neither heartbeat nor poller runs.
        Standard output and error have threads, which a fork would lose.
        """

    init_connection_file = write_connection_file = log_connection_info = _nothing
    init_heartbeat = init_poller = load_config_file = init_io = _nothing

    def init_sockets(self) -> None:
        """Make the session; :meth:`move_in` later gives it the only socket."""
        self.session = SandboxSession(parent=self, key=b"")
        self.iopub_thread = self.iopub_socket = Publisher(self.session)
        self.configure_tornado_logger()

    def init_kernel(self) -> None:
        """Make the kernel."""
        self.kernel = self.kernel_class.instance(
            parent=self,
            session=self.session,
            shell_channel_thread=_NoSubshells(),
            iopub_thread=self.iopub_thread,
            iopub_socket=self.iopub_socket,
            log=self.log,
            profile_dir=self.profile_dir,
            user_ns=self.user_ns,
        )

    def move_in(self, end: socket.socket, home: str) -> None:
        self.session._end, self.session.pid = end, os.getpid()  # from now on only it sends
        self.outstream_class = f"{__name__}.{SandboxStream.__name__}"
        # SIGINT must reach the thread that runs cells, so the threads made here block it
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        super().init_io()
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        kernel, shell = self.kernel, self.kernel.shell
        self.displayhook.get_execution_count = lambda: kernel.execution_count
        self.ipython_dir = shell.ipython_dir = f"{home}/.ipython"
        assert self.profile_dir is not None
        self.profile_dir._location_isset = False
        self.profile_dir.location = f"{home}/.ipython/profile_default"
        shell.starting_dir = os.getcwd()


def prepare() -> None:
    """Make the application that :func:`run` starts. This starts no thread, so it can be forked."""
    app = SandboxApp.instance(log_level=40)
    app.initialize(["--HistoryManager.enabled=False"])
    # Traitlets sets the level of the handler only, so each debug message would become a record.
    app.log.setLevel(app.log_level)
    warnings.filterwarnings("ignore", "To exit: use")  # IPython says so of each SystemExit
    try:  # format a traceback, for the imports and caches that the first one needs: 50 ms
        raise RuntimeError
    except RuntimeError:
        app.kernel.shell.InteractiveTB.structured_traceback(*sys.exc_info())


def run(end: int, home: str) -> None:
    """Run the kernel in its sandbox, with this end of the socket, until it is told to stop."""
    app = SandboxApp.instance()
    app.move_in(socket.socket(fileno=end), home)
    super(IPythonKernel, app.kernel).start()
    app.kernel.listen(app.session._end)
    sys.stdout.flush()
    sys.stderr.flush()
