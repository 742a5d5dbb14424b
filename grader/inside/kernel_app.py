"""An IPython kernel for a sandbox: Jupyter's own, with one socket in place of ZeroMQ's five.

Everything is sent by the thread that has something to say, so a cell costs no switching of threads.
Others wait: for what a learner's child processes print, and to send what a long cell has printed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ipykernel.iostream import IOPubThread, OutStream
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.utils import _async_in_context
from ipykernel.zmqshell import ZMQInteractiveShell
from jupyter_client.session import Session
from traitlets import Float, Type

from grader.inside import messages

LONGEST = 1 << 20  # characters of one text
# What a cell prints is sent when it ends, and meanwhile as often as this.
FLUSH_SECONDS = 0.1
FLUSH_CHARACTERS = 1 << 14


class SandboxSession(Session):
    """Jupyter's session over a sandbox's socket; what is too long in a message is cut, and said so.

    Outside, a message above a limit is not taken, because it could fill the grader's memory. An
    honest kernel should not run into that by printing a large list.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._end: socket.socket
        self._sending = threading.RLock()

    def connect(self, end: socket.socket) -> None:
        """Take the kernel's end of the socket; this process is now the one that sends."""
        self._end, self.pid = end, os.getpid()

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
        """Build a message and send it: to the shell channel when `stream` is None, else to iopub.

        Returns the message; None in a forked process, which is not the kernel.
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
            content = {**small, "text": "", "status": "ok"}
            data = messages.encode({**message, "content": content, "buffers": []}, self.pack)
        return data

    def feed_identities(self, msg: Any, copy: bool = True) -> tuple[list[bytes], Any]:
        """No identities: there is one client."""
        return [], msg

    def deserialize(self, msg: Any, content: bool = True, copy: bool = True) -> dict[str, Any]:
        """A message that came."""
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
    """Stands where Jupyter has the thread that publishes; it does at once what it is asked to."""

    def __init__(self, session: SandboxSession) -> None:
        self.session = session
        self.socket = self.io_loop = None  # type: ignore[assignment]  # there is no thread
        self.thread = threading.Thread(name="IOPub")  # never started: that is how it is known
        self.background_socket = self  # type: ignore[assignment]  # it sends like one

    def schedule(self, f: Any) -> None:
        """Call it."""
        f()

    def start(self) -> None:
        """There is nothing to start."""

    stop = close = start


class SandboxStream(OutStream):
    """Standard output or error. What is written is sent when its cell ends, or soon."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._written = threading.Event()
        self._characters = 0
        super().__init__(*args, **kwargs)
        threading.Thread(target=self._flush_soon, daemon=True).start()

    def write(self, string: str) -> int | None:  # type: ignore[override]  # as ipykernel's
        """Write; a forked process writes to the pipe that the kernel reads."""
        if self._is_master_process():
            if self._characters > FLUSH_CHARACTERS:  # a signal's handler cut in before it was sent
                self._flush()
            self._characters += len(string)
            return super().write(string)
        data = string.encode(errors="replace")
        while data:
            data = data[os.write(self._original_stdstream_fd, data) :]
        return len(string)

    def _schedule_flush(self) -> None:
        if self._characters > FLUSH_CHARACTERS:
            self._flush()
        elif not self._written.is_set():
            self._written.set()

    def _flush_soon(self) -> None:
        while True:
            self._written.wait()
            self._written.clear()
            time.sleep(FLUSH_SECONDS)
            self._flush()

    def _flush(self) -> None:
        if self._is_master_process():
            super()._flush()
            self._characters = 0


class _NoSubshells:
    """What IPython's kernel asks of the thread that would serve subshells."""

    parent_thread = threading.main_thread()

    def __bool__(self) -> bool:
        return False


class SandboxShell(ZMQInteractiveShell):
    """IPython's shell. The kernel asks it about each cell what it then asks itself; an answer
    is kept for that, and for no later cell of the same text.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kept: dict[tuple[str, str], Any] = {}
        super().__init__(**kwargs)

    def transform_cell(self, raw_cell: str) -> str:
        """The Python behind a cell, in which magics have become calls."""
        return self._once(("python", raw_cell), partial(super().transform_cell, raw_cell))

    def should_run_async(self, raw_cell: str, **kwargs: Any) -> bool:
        """Whether a cell awaits something."""
        ask = partial(super().should_run_async, raw_cell, **kwargs)
        return self._once(("awaits", raw_cell), ask)

    def _once(self, question: tuple[str, str], ask: Callable[[], Any]) -> Any:
        if question in self._kept:
            return self._kept.pop(question)
        self._kept = {other: kept for other, kept in self._kept.items() if other[1] == question[1]}
        self._kept[question] = ask()
        return self._kept[question]


class SandboxKernel(IPythonKernel):
    """IPython's kernel without subshells."""

    _supports_kernel_subshells = False
    shell_class: Any = Type(SandboxShell, klass="IPython.core.interactiveshell.InteractiveShellABC")
    _execute_sleep = Float(0.0)  # there is no other thread that would publish meanwhile

    def listen(self, end: socket.socket) -> None:
        """From now on, answer the requests that come."""
        assembler = messages.Assembler(sys.maxsize)  # only the grader writes here
        handle = _async_in_context(partial(self.shell_main, None))
        loop = asyncio.get_event_loop()
        tasks = set()

        def take() -> None:
            try:
                packet = end.recv(messages.PACKET + 1, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            if not packet:  # whoever asked is gone, and so the sandbox
                loop.stop()
            elif (complete := assembler.take(packet)) is not None:
                task = loop.create_task(handle(complete[1]))
                tasks.add(task)
                task.add_done_callback(tasks.discard)

        loop.add_reader(end, take)


class SandboxApp(IPKernelApp):
    """The application around the kernel, made in the zygote and taken up by each fork.

    Making it touches many pages of memory, which every fork would have to copy.
    """

    kernel: Any
    kernel_class: Any = Type(SandboxKernel, klass="ipykernel.kernelbase.Kernel").tag(config=True)

    def _nothing(self, *_: Any, **__: Any) -> None:
        """A sandbox has no connection file, no ports, and no configuration of this machine's.

        The zygote knows when a kernel ends, and when whoever started it is gone.
        """

    init_connection_file = write_connection_file = log_connection_info = _nothing
    init_heartbeat = init_poller = load_config_file = _nothing

    def init_sockets(self) -> None:
        """One socket for everything, which `move_in` brings."""
        self.session = SandboxSession(parent=self, key=b"")
        self.iopub_thread = self.iopub_socket = Publisher(self.session)
        self.configure_tornado_logger()

    def init_io(self) -> None:
        """Standard output and error have threads, which a fork would lose."""

    def init_kernel(self) -> None:
        """The kernel itself."""
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
        """In the sandbox: take up what differs from one kernel to the next.

        end: the kernel's end of the socket to its client
        home: an existing folder
        """
        self.session.connect(end)
        self.outstream_class = f"{__name__}.{SandboxStream.__name__}"
        # threads must not take an interrupt, which is for the one that runs cells
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

    def start(self) -> None:
        """Serve until the learner's code ends it, or the socket is closed."""
        kernel: IPythonKernel = self.kernel
        super(IPythonKernel, kernel).start()
        self.kernel.shell.exit_now = False
        self.kernel.listen(self.session._end)
        self.kernel.io_loop.start()


def prepare(arguments: Sequence[str] = ()) -> None:
    """Make the application that `run` starts, in a process that may still be forked."""
    app = SandboxApp.instance(log_level=40)
    app.initialize(["--HistoryManager.enabled=False", *arguments])


def run(end: int, arguments: Sequence[str], home: str) -> None:
    """Be the kernel until it is told to stop.

    end: descriptor of the socket to its client
    arguments: for IPKernelApp; where there are any, the prepared application is of no use
    home: see SandboxApp.move_in
    """
    if arguments:
        for prepared in (SandboxApp, SandboxKernel, SandboxShell):
            prepared.clear_instance()
        prepare(arguments)
    app = SandboxApp.instance()
    app.move_in(socket.socket(fileno=end), home)
    app.start()
    sys.stdout.flush()
    sys.stderr.flush()
