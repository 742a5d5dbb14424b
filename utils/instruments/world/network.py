"""The network: resumes the programs of all ranks, transfers tensors, and records the events."""

from __future__ import annotations

import contextlib
import copy
import math
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from hood.judge.connection.drivers import LearnersFault
from utils.instruments.world.events import Collective, Computed, Message, Outcome

MAX_REQUESTS = 100_000  # of all ranks together
# bytes of all tensors from ranks, and of all copies that a collective returns
MAX_BYTES = 1 << 28
MAX_SECONDS = 1e9  # the largest number of seconds in one `compute` request
REDUCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"sum": torch.add, "max": torch.maximum}
# see `connect`
Counts = Sequence[int] | Callable[[Tensor], Sequence[int]]
Carry = Callable[[int, int, Tensor], Tensor]


class WorldError(LearnersFault):
    """A world could not finish. The ``outcome`` of this error has the events until then."""

    def __init__(self, message: str, outcome: Outcome):
        super().__init__(message)
        self.outcome = outcome


class Deadlock(WorldError):
    """Ranks wait for each other, or for a rank that has ended."""


class Mismatch(WorldError):
    """The ranks requested different collectives, or gave tensors that do not fit together."""


class BadRequest(WorldError):
    """A rank yielded a value that is not a request."""


class Endless(WorldError):
    """There were more requests, or more bytes, than a world allows."""


class Each(list):
    """An argument of `run` with a list of items, one for each rank."""


class _Invalid(Exception):
    """A value is not a request. The message says why."""


@dataclass
class _Transfer:
    """One side of a message: a send or a receive."""

    rank: int
    peer: int
    tensor: Tensor | None
    posted: float
    receives: bool
    end: float | None = None


@dataclass
class _Rank:
    """The state of one rank."""

    number: int
    # a function that continues the program; it returns ("yield", request) or ("return", result)
    resume: Callable[[Any], tuple[str, Any]]
    clock: float = 0.0
    done: bool = False
    answer: Any = None  # the value with which the program is resumed
    # the messages or the collective for which the rank waits; `doing` describes them in words
    transfers: list[_Transfer] = field(default_factory=list)
    collective: tuple | None = None
    doing: str = ""


def run(program: Callable[..., Generator], world: int, *args: Any, **how: Any) -> Outcome:
    """Run ``program(rank, world, *args)``, a generator function, at each rank; see :func:`connect`.

    Each rank gets copies of the arguments, as a separate process would. If an argument is an
    `Each`, every rank gets the item with the rank's number.
    """
    for arg in args:
        if isinstance(arg, Each) and len(arg) != world:
            raise ValueError(f"an Each has {len(arg)} items for {world} ranks")
    programs = [
        program(rank, world, *(copied(a[rank] if isinstance(a, Each) else a) for a in args))
        for rank in range(world)
    ]
    return connect(programs, **how)


def connect(
    programs: Sequence[Any],
    *,
    rendezvous: bool = True,
    latency: float = 0.0,
    bandwidth: float = math.inf,
    counts: Counts = (),
    carry: Carry | None = None,
) -> Outcome:
    """Run generators, the ranks of a world, until they end.

    programs: one program for each rank. A program is a generator, or an object whose
        ``resume(answer)`` returns ``("yield", request)`` or ``("return", result)``.
    rendezvous: whether a sender waits until the receiver requests the tensor. Otherwise the sender
        continues at once, and the network stores the tensor.
    latency: the least duration of a message, in seconds.
    bandwidth: the bytes per second of a message.
    counts: how often the tensor of each rank counts in a sum, by default once. So one rank can
        stand for several ranks with the same tensor. A function of rank 0's tensor may return
        these counts.
    carry: a function that gets the source, the receiver and the tensor of each message. It returns
        the tensor that arrives, with the same shape and dtype.

    Raises a WorldError (`Deadlock`, `Mismatch`, `BadRequest` or `Endless`), or the error of a
    program.
    """
    return _Network(programs, rendezvous, latency, bandwidth, counts, carry).run()


class _Network:
    def __init__(
        self,
        programs: Sequence[Any],
        rendezvous: bool,
        latency: float,
        bandwidth: float,
        counts: Counts,
        carry: Carry | None,
    ) -> None:
        if isinstance(counts, Sequence) and len(counts) not in (0, len(programs)):
            raise ValueError(f"counts has {len(counts)} items for {len(programs)} ranks")
        self._programs, self._counts, self._carry = programs, counts, carry
        self._ranks = [_Rank(number, _resumer(program)) for number, program in enumerate(programs)]
        self._rendezvous, self._latency, self._bandwidth = rendezvous, latency, bandwidth
        # (source, to) -> the sends or the receives that still wait for the other side
        self._sends: dict[tuple[int, int], deque[_Transfer]] = {}
        self._receives: dict[tuple[int, int], deque[_Transfer]] = {}
        self._ready = deque(self._ranks)
        self._requests, self._bytes = 0, 0
        self._outcome = Outcome([None] * len(self._ranks), clocks=[0.0] * len(self._ranks))

    def run(self) -> Outcome:
        """Run all ranks until they end, and close those that did not end.

        A rank may wait inside `with torch.no_grad()`. When its program is closed, the end of this
        block sets autograd's mode. So programs are closed here, and then the caller's mode is
        restored.
        """
        outside = torch.is_grad_enabled()
        try:
            return self._run()
        finally:
            for program in self._programs:
                if isinstance(program, Generator):
                    with contextlib.suppress(Exception):
                        program.close()
            torch.set_grad_enabled(outside)

    def _run(self) -> Outcome:
        while self._ready:
            rank = self._ready.popleft()
            answer, rank.answer, rank.doing = rank.answer, None, ""
            how, value = rank.resume(answer)
            if how == "return":
                rank.done = True
                self._outcome.results[rank.number] = value
                continue
            self._requests += 1
            if self._requests > MAX_REQUESTS:
                raise Endless(f"more than {MAX_REQUESTS:,} requests", self._stopped())
            try:
                self._post(rank, value)
            except _Invalid as problem:
                words = f"rank {rank.number} yielded {_short(value)}: {problem}"
                raise BadRequest(words, self._stopped()) from None
        if not all(rank.done for rank in self._ranks):
            outcome = self._stopped()
            first = "; ".join(f"rank {rank} {words}" for rank, words in outcome.waiting.items())
            raise Deadlock(first, outcome)
        return self._stopped()

    def _stopped(self) -> Outcome:
        self._outcome.clocks = [rank.clock for rank in self._ranks]
        for rank in self._ranks:
            if rank.doing:
                awaited = tuple(dict.fromkeys(t.peer for t in rank.transfers if t.end is None))
                if rank.collective is not None:
                    awaited = tuple(r.number for r in self._ranks if r.collective is None)
                over = [r for r in awaited if self._ranks[r].done]
                words = f", and {_have_ended(over)}" if over else ""
                self._outcome.waiting[rank.number] = rank.doing + words
                self._outcome.awaits[rank.number] = awaited
        return self._outcome

    def _post(self, rank: _Rank, request: Any) -> None:
        if not (isinstance(request, (tuple, list)) and request and isinstance(request[0], str)):
            raise _Invalid("a request is a tuple whose first item is its name")
        kind, *rest = request
        if kind not in SHAPES:
            raise _Invalid(f"there is no request {kind[:30]!r}, only {', '.join(SHAPES)}")
        if len(rest) != len(SHAPES[kind]):
            raise _Invalid(f"expected ({', '.join([repr(kind), *SHAPES[kind]])})")
        if kind == "compute":
            (seconds,) = rest
            if type(seconds) not in (int, float) or not 0 <= seconds <= MAX_SECONDS:
                raise _Invalid(f"the seconds must be a number from 0 to {MAX_SECONDS:g}")
            start, rank.clock = rank.clock, rank.clock + seconds
            self._outcome.log.append(Computed(rank.number, start, rank.clock))
            self._ready.append(rank)
        elif kind in ("send", "recv", "exchange"):
            self._post_transfers(rank, kind, rest)
        else:
            self._post_collective(rank, kind, rest)

    def _post_transfers(self, rank: _Rank, kind: str, rest: list) -> None:
        to = self._peer(rank, rest[0]) if kind != "recv" else None
        source = self._peer(rank, rest[-1]) if kind != "send" else None
        doing = []
        if to is not None:
            send = _Transfer(rank.number, to, self._tensor(rest[1]), rank.clock, receives=False)
            rank.transfers.append(send)
            self._sends.setdefault((rank.number, to), deque()).append(send)
            doing.append(f"waits to send to rank {to}")
        if source is not None:
            receive = _Transfer(rank.number, source, None, rank.clock, receives=True)
            rank.transfers.append(receive)
            self._receives.setdefault((source, rank.number), deque()).append(receive)
            doing.append(f"waits to receive from rank {source}")
        rank.doing = " and ".join(doing)
        if to is not None:
            if not self._rendezvous:
                send.end = rank.clock
            self._match(rank.number, to)
        if source is not None:
            self._match(source, rank.number)
        self._settle(rank)

    def _match(self, source: int, to: int) -> None:
        """Transfer a message if its sender and its receiver are ready."""
        sends = self._sends.get((source, to))
        receives = self._receives.get((source, to))
        if not sends or not receives:
            return
        send, receive = sends.popleft(), receives.popleft()
        assert send.tensor is not None
        size = _bytes(send.tensor)
        start = max(send.posted, receive.posted) if self._rendezvous else send.posted
        end = start + self._latency + size / self._bandwidth
        receive.tensor, receive.end = send.tensor, max(end, receive.posted)
        if self._carry is not None:
            receive.tensor = self._carry(source, to, send.tensor)
        send.end = end if self._rendezvous else send.posted
        message = Message(source, to, size, send.posted, receive.posted, start, end)
        self._outcome.log.append(message)
        for transfer in (send, receive):
            self._settle(self._ranks[transfer.rank])

    def _settle(self, rank: _Rank) -> None:
        """Let a rank continue if it no longer waits."""
        if not rank.transfers or any(transfer.end is None for transfer in rank.transfers):
            return
        ends = [transfer.end for transfer in rank.transfers if transfer.end is not None]
        rank.clock = max(rank.clock, *ends)
        rank.answer = next((t.tensor for t in rank.transfers if t.receives), None)
        rank.transfers, rank.doing = [], ""
        self._ready.append(rank)

    def _post_collective(self, rank: _Rank, kind: str, rest: list) -> None:
        details: tuple = ()
        given: Any = None
        article, words = "an" if kind.startswith("all") else "a", ""
        if kind in ("all_reduce", "reduce_scatter"):
            if not (isinstance(rest[1], str) and rest[1] in REDUCTIONS):
                raise _Invalid(f"expected one of {', '.join(map(repr, REDUCTIONS))}")
            details, words = (rest[1],), f" ({rest[1]})"
        if kind in ("all_reduce", "all_gather"):
            given = self._tensor(rest[0])
            details += (tuple(given.shape), given.dtype)
            words += f" of {tuple(given.shape)}, {_plain(given.dtype)}"
        elif kind == "reduce_scatter":
            if not isinstance(rest[0], (tuple, list)) or len(rest[0]) != len(self._ranks):
                raise _Invalid("expected a list of tensors, one for each rank")
            given = [self._tensor(tensor) for tensor in rest[0]]
            details += tuple((tuple(tensor.shape), tensor.dtype) for tensor in given)
            shapes = ", ".join(str(tuple(tensor.shape)) for tensor in given[:4])
            more = ", …" if len(given) > 4 else ""
            words += f" of {shapes}{more}, {_plain(given[0].dtype)}"
        elif kind == "broadcast":
            source = self._number(rest[1])
            given = self._tensor(rest[0]) if source == rank.number else None
            details, words = (source,), f" from rank {source}"
        rank.collective, rank.answer = (kind, details), given
        rank.doing = f"waits in {article} {kind}{words}"
        if all(other.collective is not None for other in self._ranks):
            self._meet(kind)

    def _meet(self, kind: str) -> None:
        """Do a collective for which all ranks are ready."""
        first = self._ranks[0].collective
        assert first is not None
        for other in self._ranks[1:]:
            if other.collective != first:
                assert other.collective is not None
                words = f"rank 0 {self._ranks[0].doing}, rank {other.number} {other.doing}"
                raise Mismatch(words, self._stopped())
        given = [rank.answer for rank in self._ranks]
        details = first[1]
        put = given[details[0]] if kind == "broadcast" else given[0]
        tensors = put if isinstance(put, list) else [] if put is None else [put]
        world = len(given)
        # each rank gets one piece of its list, the tensors of all ranks, or one tensor
        copies = {"reduce_scatter": 1, "all_gather": world**2}.get(kind, world)
        self._charge(copies * sum(map(_bytes, tensors)))
        try:
            answers = _answers(kind, given, details, self._counts)
        except RuntimeError as problem:  # the dtype has no sum or no maximum
            raise BadRequest(f"{self._ranks[0].doing}: {problem}", self._stopped()) from None
        posted = tuple(rank.clock for rank in self._ranks)
        end = max(posted)
        shape = tuple(tensors[0].shape) if tensors else None
        size = sum(map(_bytes, tensors))
        self._outcome.log.append(Collective(kind, size, shape, posted, end))
        for rank, answer in zip(self._ranks, answers, strict=True):
            rank.clock, rank.answer, rank.collective, rank.doing = end, answer, None, ""
            self._ready.append(rank)

    def _number(self, rank: Any) -> int:
        if type(rank) is not int or not 0 <= rank < len(self._ranks):
            raise _Invalid(f"a rank is a whole number from 0 to {len(self._ranks) - 1}")
        return rank

    def _peer(self, rank: _Rank, peer: Any) -> int:
        if self._number(peer) == rank.number:
            raise _Invalid("a rank can't send to itself")
        return peer

    def _tensor(self, value: Any) -> Tensor:
        if not isinstance(value, Tensor):
            raise _Invalid(f"expected a tensor, got {type(value).__name__}")
        self._charge(_bytes(value))
        return value.detach().clone()

    def _charge(self, count: int) -> None:
        """Count bytes before a copy, because even a tensor of one number may have a huge shape."""
        self._bytes += count
        if self._bytes > MAX_BYTES:
            raise Endless(f"more than {MAX_BYTES >> 20} MiB were sent", self._stopped())


# The items of each request after its name.
SHAPES = {
    "send": ("to", "tensor"),
    "recv": ("source",),
    "exchange": ("to", "tensor", "source"),
    "all_reduce": ("tensor", "'sum'"),
    "all_gather": ("tensor",),
    "reduce_scatter": ("tensors", "'sum'"),
    "broadcast": ("tensor", "source"),
    "barrier": (),
    "compute": ("seconds",),
}


def _resumer(program: Any) -> Callable[[Any], tuple[str, Any]]:
    if hasattr(program, "resume"):
        return program.resume
    if not isinstance(program, Generator):
        raise TypeError(f"a rank's program must be a generator, got {type(program).__name__}")

    grad_mode = True

    def resume(answer: Any) -> tuple[str, Any]:
        nonlocal grad_mode
        outside = torch.is_grad_enabled()
        torch.set_grad_enabled(grad_mode)
        try:
            return "yield", program.send(answer)
        except StopIteration as end:
            return "return", end.value
        finally:
            # A rank may yield inside `with torch.no_grad()`. This mode must not affect other ranks.
            grad_mode = torch.is_grad_enabled()
            torch.set_grad_enabled(outside)

    return resume


def _answers(kind: str, given: list, details: tuple, counts: Counts) -> list:
    if kind == "all_reduce":
        total = _reduced(given, details[0], counts)
        return [total.clone() for _ in given]
    if kind == "all_gather":
        return [[tensor.clone() for tensor in given] for _ in given]
    if kind == "reduce_scatter":
        return [_reduced(list(column), details[0], counts) for column in zip(*given, strict=True)]
    if kind == "broadcast":
        return [given[details[0]].clone() for _ in given]
    return [None for _ in given]


def _reduced(tensors: list[Tensor], how: str, counts: Counts) -> Tensor:
    """Return the sum or the maximum of the tensors, computed in the order of the ranks."""
    counts = counts if isinstance(counts, Sequence) else counts(tensors[0])
    if how == "sum" and counts:
        tensors = [tensor * count for tensor, count in zip(tensors, counts, strict=True)]
    return reduce(REDUCTIONS[how], tensors).clone()


def _plain(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _short(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_short, value[:4]))}{', …' if len(value) > 4 else ''})"
    return repr(value)[:40]


def _have_ended(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]} has ended"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]} have ended"


def copied(value: Any) -> Any:
    """Return a copy that shares no memory with the original."""

    def one(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return leaf.detach().clone().requires_grad_(leaf.requires_grad)
        return copy.deepcopy(leaf) if isinstance(leaf, nn.Module) else leaf

    return tree_map(one, value)
