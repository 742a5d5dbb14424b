"""Traces of a machine that does not exist: a host that launches, and a device with a queue.

Nothing here was measured; the durations are typical of a current GPU.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Iterator

from utils.instruments.traces.events import Event

KINDS = ("loader", "python", "sync", "copy", "launches", "compute")
"""The main cost of a drawn trace. Each kind except the last is a bottleneck."""

COVERED = ("nothing", "loader", "python", "sync", "copy", "launches")
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
QUEUE, SIDE = "gpu 7", "gpu 20"  # the stream of kernels, and of copies for which nothing waits
NOISE = 0.25  # standard deviation of the logarithm of each duration
LATENCY = 4500  # nanoseconds from the launching call to the start on an idle device

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
    """Return a trace of some training steps that spend most of their time on one kind of work.

    kind: the kind of work, one of ``KINDS``:
        loader      the step waits for the next batch
        python      Python code between the operators
        sync        a hidden synchronization after each small operator
        copy        a copy for which the whole step waits
        launches    launches of small kernels
        compute     kernels, which are not a bottleneck
    seed: decides the sizes and the noise. The same seed gives the same trace.
    steps: the number of training steps.
    covered: additional work during one long kernel, which takes no extra time: one of ``COVERED``,
        by default a random one.

    Returns the events in the order of their starts. An outer event is before its inner events.
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
    """The clock of the host, the queue of the device, and the events of both."""

    def __init__(self, generator: random.Random):
        self.generator = generator
        self.clock = generator.randint(0, 9000)
        self.free = {QUEUE: 0, SIDE: 0}  # the time at which each stream has done all its work
        self.events: list[Event] = []
        self.launched = generator.randint(100, 900)

    def around(self, ns: float) -> int:
        """Return a random duration near `ns`, at least 100."""
        return max(100, round(ns * math.exp(self.generator.gauss(0, NOISE))))

    def work(self, ns: float) -> None:
        """Let the host run Python code, which a trace does not show."""
        self.clock += self.around(ns)

    @contextlib.contextmanager
    def host(self, name: str, kind: str, correlation: int | None = None) -> Iterator[None]:
        """Record an event of the host, which contains the events of the ``with`` block."""
        start = self.clock
        yield
        self.events.append(Event(name, start, self.clock - start, "cpu", kind, correlation))

    def range(self, name: str) -> contextlib.AbstractContextManager[None]:
        return self.host(name, "range")

    def start(self, call: str, name: str, ns: float, stream: str = QUEUE) -> None:
        """Call CUDA to start a kernel or a copy, which runs after all earlier work."""
        self.launched += 1
        begin = max(self.free[stream], self.clock + self.around(LATENCY))
        kind = "copy" if name.startswith("Memcpy") else "kernel"
        event = Event(name, begin, self.around(ns), stream, kind, self.launched)
        self.events.append(event)
        self.free[stream] = event.end
        with self.host(call, "call", self.launched):
            self.work(2500)

    def operator(self, op: str, kernel: str, ns: float, own: float = 2000) -> None:
        """Record an operator that launches a kernel.

        The kernel runs for `ns` nanoseconds. Before the launch, the operator itself takes `own`
        nanoseconds on the host.
        """
        with self.host(op, "op"):
            self.work(own)
            self.start("cudaLaunchKernel", kernel, ns)
            self.work(400)

    def synchronize(self) -> None:
        """Wait until the queue is empty, and then until the host gets the message about it."""
        with self.host("cudaStreamSynchronize", "call"):
            self.clock = max(self.clock, self.free[QUEUE]) + self.around(7000)

    def item(self) -> None:
        with self.host("aten::item", "op"), self.host("aten::_local_scalar_dense", "op"):
            self.work(300)
            self.start("cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)", 1000)
            self.synchronize()
            self.work(300)

    def copy(self, ns: float, *, aside: bool) -> None:
        """Copy a tensor to the device. If ``aside``, the copy runs in parallel with kernels.

        Otherwise the host waits for the copy.
        """
        memory, stream = ("Pinned", SIDE) if aside else ("Pageable", QUEUE)
        with self.host("aten::to", "op"), self.host("aten::copy_", "op"):
            self.work(1500)
            self.start("cudaMemcpyAsync", f"Memcpy HtoD ({memory} -> Device)", ns, stream)
            if not aside:
                self.synchronize()


class _Program:
    def __init__(self, machine: _Machine, kind: str):
        generator = machine.generator
        self.machine, self.kind, self.generator = machine, kind, generator
        self.kernel = (
            generator.uniform(40e3, 90e3) if kind == "compute" else generator.uniform(8e3, 14e3)
        )
        # Long work on the host that takes no extra time, because the device is busy during it.
        self.covered = generator.choice(COVERED)
        self.asks = generator.random() < 0.6  # whether each step reads the loss with `item`

    def step(self) -> None:
        m, generator = self.machine, self.generator
        with m.range(LOADER):
            m.work(generator.uniform(1.2e6, 2.5e6) if self.kind == "loader" else 9e3)
        waited = self.kind == "copy"
        m.copy(generator.uniform(0.9e6, 1.8e6) if waited else 5e3, aside=not waited)
        for part, pairs in (("forward", FORWARD), ("backward", BACKWARD), ("optimizer", OPTIMIZER)):
            with m.range(part):
                self.operators(pairs)
        if self.kind != "copy":
            self.cover()
        if self.asks and self.kind != "loader":
            m.item()

    def operators(self, pairs: tuple[tuple[str, str], ...]) -> None:
        """Do one part of the step. For some kinds, repeat the part, for more small operators."""
        m, generator = self.machine, self.generator
        times = {"launches": 4, "python": 2, "sync": 2}.get(self.kind, 1)
        for op, kernel in pairs * times:
            if self.kind == "launches":
                m.work(600)
                m.operator(op, kernel, generator.uniform(900, 2200), own=6000)
            elif self.kind == "python":
                m.work(generator.uniform(30e3, 60e3))
                m.operator(op, kernel, generator.uniform(2e3, 5e3))
            elif self.kind == "sync":
                m.work(900)
                m.operator(op, kernel, generator.uniform(1500, 3500))
                m.item()
            else:
                m.work(1500)
                m.operator(op, kernel, self.kernel)

    def cover(self) -> None:
        """Start one long kernel, and do the covered work during this kernel."""
        m = self.machine
        if self.covered == "nothing":
            return
        long = self.generator.uniform(1.1e6, 1.6e6) if self.kind == "compute" else 45e3
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
