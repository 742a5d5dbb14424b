"""The kernel of a sandbox: IPython's shell, which runs the cells that the grader sends.

The kernel contains no Jupyter. A cell's output goes over one socket, in the form of
:mod:`hood.grader.inside.messages`. The thread that shows something also sends it. One more thread
reads the output of child processes, and sends the text that a long cell has printed so far.

The zygote calls :func:`prepare`, and each fork calls :func:`run`. Without a sandbox
(``--unsafe-no-sandbox``) one process calls both functions.
"""

from __future__ import annotations

import asyncio
import builtins
import codecs
import contextlib
import errno
import getpass
import inspect
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
import zlib
from collections import deque
from pathlib import Path
from typing import Any, NoReturn

from IPython.core import page
from IPython.core.autocall import ZMQExitAutocall
from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.error import StdinNotImplementedError
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Any as AnyTrait
from traitlets import Instance, Type, default
from traitlets.config import Config

from hood.grader.inside import messages
from hood.grader.inside.figures import Formats
from hood.judge.connection.originals import TOO_MANY

LONGEST = 1 << 20  # characters of one text
# Printed text is sent when the cell ends, and earlier after this many seconds or characters.
FLUSH_SECONDS = 0.1
FLUSH_CHARACTERS = 1 << 14
READS = 16  # child processes' output is read at most this many times in a row
EXIT = "while a notebook is graded, exit() and quit() end only this cell; the next cell runs"
NO_INPUT = "while a notebook is graded, input() and getpass() get no answer"
# Magics of Jupyter's kernel that only affect a front end.
FOR_FRONT_ENDS = ("autosave", "clear", "cls", "connect_info", "edit", "less", "man", "more")
INLINE = "module://matplotlib_inline.backend_inline"


class Sender:
    """This kernel's end of the socket. A message that the grader would refuse is shortened."""

    def __init__(self) -> None:
        self.end: socket.socket
        self.cell = ""
        self._pid = 0
        self._lock = threading.RLock()

    def open(self, end: socket.socket) -> None:
        """Let this process send messages. Its forks can't, because a fork is not the kernel."""
        self.end, self._pid = end, os.getpid()

    def mine(self) -> bool:
        """Return whether this process is the kernel."""
        return os.getpid() == self._pid

    def send(self, kind: str, **content: Any) -> None:
        """Send a message of :data:`hood.grader.inside.messages.FORMS`."""
        if not self.mine():
            return
        head = {"kind": kind, "cell": self.cell}
        data = messages.encode(head | content)
        if len(data) > LONGEST:
            data = messages.encode(head | _cut(content))
        if len(data) > messages.MOST:
            text = f"... an output of more than {messages.MOST >> 20} MiB was left out\n"
            left_out = {"kind": "stream", "name": "stdout", "text": text}
            data = messages.encode(head | left_out)
        with self._lock:
            for packet in messages.packets(data):
                self._send(packet)

    def _send(self, packet: bytes) -> None:
        while True:
            try:
                self.end.send(packet)
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:  # macOS raises this instead of waiting
                    raise
                time.sleep(0.001)


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONGEST:
        return f"{value[:LONGEST]}\n... {len(value) - LONGEST} more characters were left out ...\n"
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut(item) for item in value]
    return value


class Stream(io.TextIOBase):
    """Standard output or error of this process and its children.

    ``descriptor`` is 1 or 2. The descriptor becomes a pipe, which :meth:`read_pipe` reads.
    """

    encoding, errors = "utf-8", "replace"

    def __init__(self, sender: Sender, name: str, descriptor: int) -> None:
        self.name = name
        self._sender = sender
        self._descriptor = descriptor
        self._pieces: deque[str] = deque()
        self._held = 0  # about how many characters are kept
        self._lock = threading.RLock()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.pipe, end = os.pipe()
        os.set_blocking(self.pipe, False)
        os.dup2(end, descriptor)
        os.close(end)

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        """Keep the text for sending. A forked process writes the text to the kernel's pipe."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if not self._sender.mine():
            data = text.encode(errors="replace")
            while data:
                data = data[os.write(self._descriptor, data) :]
            return len(text)
        if self._held > FLUSH_CHARACTERS:
            self.flush()
        self._pieces.append(text)
        self._held += len(text)
        return len(text)

    def flush(self) -> None:
        """Send the kept text, after any text that another thread is sending."""
        if self._sender.mine():
            with self._lock:
                self._held = 0
                text = "".join([self._pieces.popleft() for _ in range(len(self._pieces))])
                if text:
                    self._sender.send("stream", name=self.name, text=text)

    def read_pipe(self) -> None:
        """Take the output of child processes, without waiting for them."""
        with self._lock, contextlib.suppress(BlockingIOError):
            for _ in range(READS):
                if not (data := os.read(self.pipe, 1 << 16)):
                    return
                self.write(self._decoder.decode(data))


def _tend(streams: tuple[Stream, ...]) -> None:
    """Read and send output from time to time while the process lives; this runs in a thread."""
    waiting = select.poll()
    for stream in streams:
        waiting.register(stream.pipe, select.POLLIN)
    sent = 0.0
    while True:
        waiting.poll(FLUSH_SECONDS * 1000)
        late = time.monotonic() - sent > FLUSH_SECONDS
        for stream in streams:
            stream.read_pipe()
            if late:
                stream.flush()
        sent = time.monotonic() if late else sent


class Results(DisplayHook):
    """Send the value of a cell's last expression."""

    shell: Any

    def write_output_prompt(self) -> None:
        """Write no prompt; the message has the cell's number."""

    def write_format_data(
        self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None
    ) -> None:
        self.shell.flush()
        self.shell.sender.send("execute_result", data=format_dict, metadata=md_dict or {})

    def finish_displayhook(self) -> None:
        self._is_active = False


class Displays(DisplayPublisher):
    """Send what a cell displays."""

    def publish(  # type: ignore[override]  # without a deprecated argument
        self,
        data: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        *,
        transient: dict[str, Any] | None = None,
        update: bool = False,
        **ignored: Any,
    ) -> None:
        self._validate_data(data, metadata)
        name = (transient or {}).get("display_id")
        self.shell.flush()
        self.shell.sender.send(
            "update_display_data" if update else "display_data",
            data=data,
            metadata=metadata or {},
            display_id=None if name is None else str(name),
        )

    def clear_output(self, wait: bool = False) -> None:
        self.shell.flush()
        self.shell.sender.send("clear_output", wait=bool(wait))


class Compiler(CachingCompiler):
    """IPython's compiler, with the file names of Jupyter's cells."""

    def get_code_name(self, raw_code: str, code: str, number: int) -> str:
        """Return a cell's file name in tracebacks.

        This method also registers the cell's module with ``inspect``. Otherwise each traceback
        searches the files of all modules for the name, several times. With 2,300 modules, this
        takes 8 ms.
        """
        digest = zlib.crc32(raw_code.encode(errors="replace"))
        name = f"{tempfile.gettempdir()}/ipykernel_{os.getpid()}/{digest}.py"
        inspect.modulesbyfile[name] = "__main__"
        return name


class Shell(InteractiveShell):
    """IPython's shell, which runs cells that arrive over a socket until the grader closes it.

    To make the shell, Python writes to many pages of memory. So the zygote makes the shell, and
    forks don't copy these pages.
    """

    displayhook_class: Any = Type(Results)
    display_pub_class: Any = Type(Displays)
    compiler_class: Any = Type(Compiler)
    exiter: Any = Instance(ZMQExitAutocall)
    sender: Any = AnyTrait()

    @default("exiter")
    def _exiter_default(self) -> ZMQExitAutocall:
        return ZMQExitAutocall(self)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sender = Sender()
        self.set_hook("show_in_pager", page.as_hook(page.display_page), 99)
        magics: Any = self.magics_manager
        for name in FOR_FRONT_ENDS:
            magics.register_function(lambda line: None, magic_name=name)
        self.streams: tuple[Stream, ...] = ()
        self._ids: dict[str, int] = {}  # ids of the values of all names, after the last statement
        self._bound: dict[int, list[str]] = {}  # names that this cell bound, by line
        self._letters = 0  # number of letters in the bound names
        self._depth = 0  # how deeply running statements are nested
        self._asked: deque[dict[str, Any]] = deque()
        self._task: asyncio.Task[None] | None = None

    def init_display_formatter(self) -> None:
        configurables: list[Any] = self.configurables
        self.display_formatter = Formats(parent=self)
        configurables.append(self.display_formatter)

    def move_in(self, end: socket.socket, home: str) -> None:
        """Make this process the kernel of one notebook, with its end of the socket."""
        self.sender.open(end)
        self.streams = (Stream(self.sender, "stdout", 1), Stream(self.sender, "stderr", 2))
        sys.stdout, sys.stderr = self.streams
        # SIGINT must reach the thread that runs cells, so the new thread blocks SIGINT
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        threading.Thread(target=_tend, args=(self.streams,), daemon=True).start()
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        builtins.input = getpass.getpass = _refuse_input
        self.ipython_dir, self.starting_dir = f"{home}/.ipython", os.getcwd()
        profile: Any = self.profile_dir
        profile._location_isset = False
        profile.location = f"{self.ipython_dir}/profile_default"

    def serve(self) -> None:
        """Run the arriving cells, one after the other, until the grader closes its end."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._ids = {name: id(value) for name, value in self.user_ns.items()}
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        assembler = messages.Assembler(sys.maxsize)  # only the grader writes here
        served = True

        def take() -> None:
            nonlocal served
            try:
                packet = self.sender.end.recv(messages.PACKET + 1, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            if not packet:
                served = False
                self.loop.stop()
            elif (complete := assembler.take(packet)) is not None:
                self._asked.append(json.loads(complete))
                self._next()

        self.loop.add_reader(self.sender.end, take)
        while served:
            # The learner's code may stop the loop, or leave a callback that raises SystemExit.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self.loop.run_forever()

    def _next(self, ended: object = None) -> None:
        if self._asked and (self._task is None or self._task.done()):
            self._task = self.loop.create_task(self._answer(self._asked.popleft()))
            self._task.add_done_callback(self._next)

    async def _answer(self, asked: dict[str, Any]) -> None:
        self.sender.cell, self._bound, self._letters = asked["cell"], {}, 0
        raised: BaseException | None = None
        try:
            raised = await self._run(asked["source"])
        except BaseException as error:  # in IPython's own code, or in an event's callback
            raised = error
            self.showtraceback()
        finally:
            for stream in self.streams:
                stream.read_pipe()
            self.flush()
            self.sender.send(
                "done",
                ename=None if raised is None else type(raised).__name__,
                evalue="" if raised is None else _text(raised),
                count=self.execution_count - 1,
                bound=self._bound,
            )

    async def _run(self, source: str) -> BaseException | None:
        """Run a cell. If it raises an error, show and return the error."""
        problem, result = None, None
        try:
            transformed = self.transform_cell(source)
        except Exception:
            transformed, problem = source, sys.exc_info()
        try:
            result = await self.run_cell_async(
                source,
                store_history=True,
                transformed_cell=transformed,
                preprocessing_exc_tuple=problem,
            )
        finally:
            self.events.trigger("post_execute")
            self.events.trigger("post_run_cell", result)
        return result.error_before_exec or result.error_in_exec

    async def run_ast_nodes(self, *args: Any, **kwargs: Any) -> bool:
        """Run the statements of a cell; an interrupt raises an error only here, and only once.

        A second interrupt could arrive while the first is shown. Calls may be nested, because a
        cell can run another cell.
        """
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            return await super().run_ast_nodes(*args, **kwargs)
        try:
            try:
                signal.signal(signal.SIGINT, self._interrupt_once)
                return await super().run_ast_nodes(*args, **kwargs)
            finally:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
        except KeyboardInterrupt as error:  # in IPython's own code, or in the `finally` above
            kwargs["result"].error_in_exec = error
            self.showtraceback()
            return True

    async def run_code(self, code_obj: Any, result: Any = None, *, async_: bool = False) -> bool:
        """Run one statement, and record which names got a new value."""
        self._depth += 1
        try:
            return bool(await super().run_code(code_obj, result, async_=async_))
        finally:
            self._depth -= 1
            if not self._depth:
                ids = {name: id(value) for name, value in list(self.user_ns.items())}
                names = [str(n) for n, now in ids.items() if self._ids.get(n) != now]
                lines = [line for _, _, line in code_obj.co_lines() if line]
                self._ids, self._letters = ids, self._letters + sum(map(len, names))
                if names and self._letters < LONGEST:
                    self._bound.setdefault(min(lines, default=1), []).extend(names)
                elif names:
                    self._bound = {0: [TOO_MANY]}

    def _interrupt_once(self, number: int, frame: Any) -> None:
        """Raise KeyboardInterrupt and ignore further signals; a cell that awaits is cancelled."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if self._task is None or asyncio.current_task(self.loop) is self._task:
            raise KeyboardInterrupt
        self.loop.call_soon_threadsafe(self._task.cancel)

    def _get_exc_info(self, exc_tuple: Any = None) -> tuple:
        """Return the exception to show, without the frame of :meth:`_interrupt_once`."""
        kind, error, first = super()._get_exc_info(exc_tuple)
        frame = first
        while frame is not None and frame.tb_next is not None:
            if frame.tb_next.tb_frame.f_code is Shell._interrupt_once.__code__:
                frame.tb_next = None
                break
            frame = frame.tb_next
        return kind, error, first

    def flush(self) -> None:
        """Send the printed text, even if the learner's code has replaced ``sys.stdout``."""
        for stream in self.streams:
            stream.flush()

    def _showtraceback(self, etype: type, evalue: BaseException, stb: list[str]) -> None:
        self.flush()
        lines = [str(line) for line in stb]
        self.sender.send("error", ename=etype.__name__, evalue=_text(evalue), traceback=lines)

    def ask_exit(self) -> NoReturn:
        """End the cell, as ``sys.exit`` does; ``exit()`` and ``quit()`` call this."""
        raise SystemExit(EXIT)

    def enable_gui(self, gui: Any = None) -> None:
        """Do nothing: a sandbox has no screen, and its event loop is asyncio's."""

    def system_piped(self, cmd: str) -> None:
        """Run a ``!command`` and print its output, without the terminal that IPython would make."""
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


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def _refuse_input(*_: Any, **__: Any) -> NoReturn:
    raise StdinNotImplementedError(NO_INPUT)


def prepare() -> None:
    """Make the shell that :func:`run` starts. No thread is started, so the process can be forked.

    Call this before matplotlib is imported, because the import reads MPLBACKEND and looks for the
    shell.
    """
    os.environ.setdefault("MPLBACKEND", INLINE)
    config = Config()
    config.HistoryManager.enabled = False
    # set explicitly: without a home IPython would make a folder in /tmp and leave it there
    own = os.path.expanduser("~/.ipython")
    shell: Any = Shell.instance(config=config, user_ns={}, ipython_dir=own)
    shell.extension_manager.load_extension("storemagic")  # as in Jupyter's kernel
    warnings.filterwarnings("ignore", "To exit: use")  # IPython's warning for each SystemExit
    try:  # format a traceback now: the first one needs imports and caches, which take 50 ms
        raise RuntimeError
    except RuntimeError:
        shell.InteractiveTB.structured_traceback(*sys.exc_info())


def run(end: int, home: str | Path) -> None:
    """Run the kernel with this end of the socket, until the grader closes the other end."""
    shell = Shell.instance()
    shell.move_in(socket.socket(fileno=end), str(home))
    shell.serve()
