"""Traces of a machine that does not exist: a host that launches, and a device with a queue.

Nothing here was measured; the durations are of the size that a present GPU has.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Iterator

from utils.instruments.traces.events import Event

KINDS = ("loader", "python", "sync", "copy", "launches", "compute")
"""What a drawn trace can spend most of its time on; all but the last are brakes."""

COVERED = ("nothing", "loader", "python", "sync", "copy", "launches")
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
QUEUE, SIDE = "gpu 7", "gpu 20"  # streams: for kernels, and for copies that need not be waited for
NOISE = 0.25  # standard deviation of the logarithm of each duration
LATENCY = 4500  # from the launching call to the start of an idle device

# (operator, kernel) of a training step
FORWARD = (
    ("aten::embedding", "indexSelectLargeIndex"),
    ("aten::native_layer_norm", "vectorized_layer_norm_kernel"),
    ("aten::addmm", "sm90_xmma_gemm_f32f32"),
    ("aten::bmm", "sm90_xmma_gemm_f32f32_tn"),
    ("aten::_softmax", "softmax_warp_forward"),
    ("aten::gelu", "vectorized_elementwise_kernel"),
)
BACKWARD = (
    ("aten::_softmax_backward_data", "softmax_warp_backward"),
    ("aten::mm", "sm90_xmma_gemm_f32f32_nt"),
    ("aten::gelu_backward", "vectorized_elementwise_kernel"),
    ("aten::add_", "vectorized_elementwise_kernel"),
    ("aten::native_layer_norm_backward", "layer_norm_grad_input_kernel"),
)
OPTIMIZER = (("aten::_foreach_lerp_", "multi_tensor_apply_kernel"),)


def drawn(kind: str, seed: int | str, steps: int = 2, covered: str | None = None) -> list[Event]:
    """Return a trace of some training steps that spend most of their time on one thing.

    kind: one of ``KINDS``: waiting for the data ``loader``; ``python`` between the operators; a
    hidden ``sync`` after small operators; a ``copy`` that all wait for; ``launches`` of small
    kernels; or ``compute``, which is no brake. seed: draws the program's sizes and the noise; the
    same seed gives the same trace. steps: how many training steps. covered: what is done while one
    long kernel runs, so that it costs nothing: one of ``COVERED``. The seed draws it when not
    given. Returns the events in order of their starts, an outer one before those inside.
    """
    for word, known in ((kind, KINDS), (covered or "nothing", COVERED)):
        if word not in known:
            raise ValueError(f"{word!r}: expected one of {', '.join(known)}")
    machine = _Machine(random.Random(f"{kind}/{seed}"))
    program = _Program(machine, kind)
    program.covered = covered or program.covered
    for number in range(steps):
        with machine.range(f"ProfilerStep#{number}"):
            program.step()
    return sorted(machine.events, key=lambda event: (event.start, -event.duration))


class _Machine:
    """The clock of the host, the queue of the device, and what has run on either."""

    def __init__(self, dice: random.Random):
        self.dice = dice
        self.clock = dice.randint(0, 9000)
        self.free = {QUEUE: 0, SIDE: 0}  # when each stream will have done all that it was given
        self.events: list[Event] = []
        self.launched = dice.randint(100, 900)

    def around(self, ns: float) -> int:
        """A duration near `ns`, at least 100."""
        return max(100, round(ns * math.exp(self.dice.gauss(0, NOISE))))

    def work(self, ns: float) -> None:
        """The host is busy with Python, which a trace does not show."""
        self.clock += self.around(ns)

    @contextlib.contextmanager
    def host(self, name: str, kind: str, correlation: int | None = None) -> Iterator[None]:
        """An event of the host, around what runs inside."""
        start = self.clock
        yield
        self.events.append(Event(name, start, self.clock - start, "cpu", kind, correlation))

    def range(self, name: str) -> contextlib.AbstractContextManager[None]:
        return self.host(name, "range")

    def start(self, call: str, name: str, ns: float, stream: str = QUEUE) -> None:
        """Call CUDA to start a kernel or a copy, which runs when all before it is done."""
        self.launched += 1
        begin = max(self.free[stream], self.clock + self.around(LATENCY))
        kind = "copy" if name.startswith("Memcpy") else "kernel"
        event = Event(name, begin, self.around(ns), stream, kind, self.launched)
        self.events.append(event)
        self.free[stream] = event.end
        with self.host(call, "call", self.launched):
            self.work(2500)

    def operator(self, op: str, kernel: str, ns: float, own: float = 2000) -> None:
        """An operator that launches a kernel of `ns`, with work of its `own` on the host."""
        with self.host(op, "op"):
            self.work(own)
            self.start("cudaLaunchKernel", kernel, ns)
            self.work(400)

    def synchronize(self) -> None:
        """Wait until the queue is empty; being told so takes a while."""
        with self.host("cudaStreamSynchronize", "call"):
            self.clock = max(self.clock, self.free[QUEUE]) + self.around(7000)

    def item(self) -> None:
        with self.host("aten::item", "op"), self.host("aten::_local_scalar_dense", "op"):
            self.work(300)
            self.start("cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)", 1000)
            self.synchronize()
            self.work(300)

    def copy(self, ns: float, *, aside: bool) -> None:
        """Bring a tensor to the device: beside its kernels, or else the host waits for it."""
        memory, stream = ("Pinned", SIDE) if aside else ("Pageable", QUEUE)
        with self.host("aten::to", "op"), self.host("aten::copy_", "op"):
            self.work(1500)
            self.start("cudaMemcpyAsync", f"Memcpy HtoD ({memory} -> Device)", ns, stream)
            if not aside:
                self.synchronize()


class _Program:
    def __init__(self, machine: _Machine, kind: str):
        dice = machine.dice
        self.machine, self.kind, self.dice = machine, kind, dice
        self.kernel = dice.uniform(40e3, 90e3) if kind == "compute" else dice.uniform(8e3, 14e3)
        # Work that is long, and costs nothing: the device is busy meanwhile.
        self.covered = dice.choice(COVERED)
        self.asks = dice.random() < 0.6  # for the loss, once a step

    def step(self) -> None:
        m, dice = self.machine, self.dice
        with m.range(LOADER):
            m.work(dice.uniform(1.2e6, 2.5e6) if self.kind == "loader" else 9e3)
        waited = self.kind == "copy"
        m.copy(dice.uniform(0.9e6, 1.8e6) if waited else 5e3, aside=not waited)
        for part, pairs in (("forward", FORWARD), ("backward", BACKWARD), ("optimizer", OPTIMIZER)):
            with m.range(part):
                self.operators(pairs)
        if self.kind != "copy":
            self.cover()
        if self.asks and self.kind != "loader":
            m.item()

    def operators(self, pairs: tuple[tuple[str, str], ...]) -> None:
        """One part of the step, several times over where it is many small operators."""
        m, dice = self.machine, self.dice
        times = {"launches": 4, "python": 2, "sync": 2}.get(self.kind, 1)
        for op, kernel in pairs * times:
            if self.kind == "launches":
                m.work(600)
                m.operator(op, kernel, dice.uniform(900, 2200), own=6000)
            elif self.kind == "python":
                m.work(dice.uniform(30e3, 60e3))
                m.operator(op, kernel, dice.uniform(2e3, 5e3))
            elif self.kind == "sync":
                m.work(900)
                m.operator(op, kernel, dice.uniform(1500, 3500))
                m.item()
            else:
                m.work(1500)
                m.operator(op, kernel, self.kernel)

    def cover(self) -> None:
        """Start one long kernel, and do something else meanwhile."""
        m = self.machine
        if self.covered == "nothing":
            return
        long = self.dice.uniform(1.1e6, 1.6e6) if self.kind == "compute" else 45e3
        m.operator("aten::mm", "sm90_xmma_gemm_f32f32_nt", long)
        left = m.free[QUEUE] - m.clock
        if self.covered == "loader":
            with m.range(LOADER):
                m.clock += left * 9 // 10
        elif self.covered == "python":
            m.clock += left * 9 // 10
        elif self.covered == "sync":
            m.item()
        elif self.covered == "copy":
            m.copy(left * 0.4, aside=True)
        else:
            done = m.clock + left * 2 // 10
            while m.clock < done:
                m.operator("aten::add_", "vectorized_elementwise_kernel", 1000, own=6000)
