"""The driver of lab 07's last run: its processes are killed, and a fake device counts the moves."""

from __future__ import annotations

import inspect
import io
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.data import DataLoader, Dataset
from torch.utils.weak import WeakTensorKeyDictionary

from utils.drivers import driver

Settings = Mapping[str, Any]
Kill = tuple[str, int]  # what happens, and for the which time in the process, counted from 1
FAKE = torch.device("meta")


class Noisy(Dataset):
    """Points and their classes. Each time a point is read, it gets other noise.

    The noise comes from torch's global generator.
    """

    def __init__(self, x: Tensor, targets: Tensor) -> None:
        self.x, self.targets = x, targets

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index] + 0.1 * torch.randn(self.x.shape[1]), self.targets[index]


class Run:
    """The pieces of a training run, as each process makes them when it begins.

    model: is in training mode. Its dropout draws from torch's global generator.
    optimizer: SGD with momentum for the model's parameters.
    schedule: lowers the learning rate after each step that was not left out.
    scaler: halves its scale if a step overflows, and doubles it after two good steps in a row.
    loader: shuffles, with a generator of its own, ``loader.generator``. A batch is (x, targets).
    """

    def __init__(self, x: Tensor, targets: Tensor, *, seed: int, batch_size: int = 3) -> None:
        torch.manual_seed(seed)
        self.model = nn.Sequential(
            nn.Linear(x.shape[1], 6), nn.Tanh(), nn.Dropout(0.25), nn.Linear(6, 3)
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5, momentum=0.9)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda t: 0.9**t)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18, growth_interval=2)
        generator = torch.Generator().manual_seed(seed)
        self.loader = DataLoader(Noisy(x, targets), batch_size, shuffle=True, generator=generator)

    def step(self, x: Tensor, targets: Tensor) -> dict[str, float]:
        """Do one step, and return its loss, and the rate and the scale that it used."""
        used = {
            "rate": float(self.schedule.get_last_lr()[0]),
            "scale": self.scaler.get_scale(),
        }
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(self.model(x), targets)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.scaler.get_scale() >= used["scale"]:  # the step was not left out
            self.schedule.step()
        return {"loss": loss.item(), **used}


class Killed(BaseException):
    """The process is killed here."""


class _Process(Run):
    """A run that notes what its process does, and dies at a given moment."""

    def __init__(
        self, settings: Settings, seed: int, kill: Kill | None, device: Any, file: Path
    ) -> None:
        super().__init__(**{**settings, "seed": seed})
        self.file = file
        self.before: int | None = None  # the file's place when the last save began
        self.kill, self.device, self.dead = kill, device, False
        self.ended = 0  # how many steps ended
        self.happened = {"batch": 0, "step": 0, "update": 0, "file": 0, "place": 0}
        self.there: list[tuple[bool, bool]] = []
        self.optimizer.register_step_post_hook(lambda *_: self.happens("update"))
        self.collate, self.loader.collate_fn = self.loader.collate_fn, self.batch

    def batch(self, items: list[Any]) -> Any:
        """Put items together, in the loader."""
        self.happens("batch")
        return self.collate(items)

    def happens(self, event: str) -> None:
        """Count an event, and die if it kills, or if the process is dead already."""
        if self.kill == ("place", self.happened["file"]) and not self.dead:
            self.tear()
            event = "place"
        self.happened[event] += 1
        if self.dead or event == "place" or self.kill == (event, self.happened[event]):
            self.dead = True
            raise Killed(event)

    def step(self, x: Tensor, targets: Tensor) -> dict[str, float]:
        self.happens("step")
        wanted = "cpu" if self.device is None else FAKE.type
        self.there.append((x.device.type == wanted, targets.device.type == wanted))
        if any(weight.is_meta for weight in self.model.parameters()):
            raise RuntimeError("the model was already on the device, and must not be moved")
        if self.device is not None:
            x, targets = self.device.data_of(x), self.device.data_of(targets)
        did = super().step(x, targets)
        self.ended += 1
        return did

    def place(self) -> int | None:
        """Return what the file system calls the place of the file's bytes."""
        return self.file.stat().st_ino if self.file.exists() else None

    def tear(self) -> None:
        """Leave half of the file if its new bytes were written over the old ones."""
        if self.before is not None and self.place() == self.before:
            whole = self.file.read_bytes()
            self.file.write_bytes(whole[: len(whole) // 2])

    @contextmanager
    def saving(self, train: Callable) -> Iterator[None]:
        """While the context is open, ``torch.save`` may die after half of the file.

        The names for ``torch.save`` beside `train`, as ``from torch import save`` makes them, are
        watched, too.
        """
        save = torch.save

        # the names are those of torch.save
        def watched(obj: Any, f: Any, *more: Any, **settings: Any) -> None:
            if not self.dead and self.kill != ("file", self.happened["file"] + 1):
                self.before = self.place()
                save(obj, f, *more, **settings)
            elif not self.dead:
                whole = io.BytesIO()
                save(obj, whole, *more, **settings)
                half = whole.getvalue()[: len(whole.getvalue()) // 2]
                f.write(half) if hasattr(f, "write") else Path(f).write_bytes(half)
            self.happens("file")

        around = getattr(inspect.unwrap(train), "__globals__", {})
        names = [name for name, thing in around.items() if thing is save]
        with ExitStack() as patched:
            patched.enter_context(mock.patch.object(torch, "save", watched))
            for name in names:
                around[name] = watched
                patched.callback(around.__setitem__, name, save)
            yield


class _Device(TorchDispatchMode):
    """A fake device. It keeps the data of its tensors in the CPU's memory, and counts the moves.

    Its tensors are tensors of torch's meta device. Whatever is computed with them is computed with
    their data, too.
    """

    def __init__(self) -> None:
        super().__init__()
        self.moves = 0
        self._data = WeakTensorKeyDictionary()

    def data_of(self, tensor: Tensor) -> Tensor:
        """Return the data of a tensor on the device, and any other tensor as it is."""
        return self._data.get(tensor, tensor)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first use of a mode imports the whole compiler

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not (isinstance(result, Tensor) and result.is_meta):
            return result
        copies = func.overloadpacket in (torch.ops.aten._to_copy, torch.ops.aten.copy_)
        if copies and any(t.device.type == "cpu" for t in args if isinstance(t, Tensor)):
            self.moves += 1
        on_cpu = {**kwargs, "device": torch.device("cpu")} if kwargs.get("device") else kwargs
        args, on_cpu = tree_map_only(Tensor, self.data_of, (args, on_cpu))
        if not any(t.is_meta for t in tree_leaves((args, on_cpu)) if isinstance(t, Tensor)):
            self._data[result] = func(*args, **on_cpu)
        return result


@driver(
    "log",
    "weights",
    observed={
        "done": "how many steps each process began",
        "moves": "how many tensors were moved to the device",
        "there": "on which device the tensors of a step were",
    },
)
def killed(
    train: Callable, settings: Settings, calls: Sequence[tuple[int, Kill | None]], fake: bool
) -> dict[str, Any]:
    """Call ``train(run, epochs, device, file)`` in several processes, one after the other.

    calls: for each process, the number of epochs, and the kill or None. A kill is a pair: a kind of
        event, and a number n. The process dies at its nth event of this kind. ``("batch", 3)``:
        when the loader makes its third batch. ``("step", 3)``: when the third step begins.
        ``("update", 3)``: within a step, when the optimizer has changed the weights for the third
        time. ``("file", 3)``: when ``torch.save`` has written half of its third file.
        ``("place", 3)``: when what ``torch.save`` wrote as its third file is put in the place of
        the second. If it is written over the bytes of the second, half of it is left. A process
        without a kill ends by itself. The last process must have no kill.
    fake: whether the device is a fake. It is torch's meta device, and the driver keeps the data
        that is moved there. Otherwise the device is the CPU.

    Only `file` remains when a process ends, and the next process finds it. Until a right answer
    has saved a step, each process gets the run's seed. Later processes get other seeds.

    ``log`` is the result of the last call, and ``weights`` are the model's weights after it.
    ``done`` has the number of steps that each process began. ``moves`` has the number of tensors
    that each process moved to the fake device. ``there`` has, for each step of all processes,
    whether x and targets were on the device.
    """
    done, moves, there, log = [], [], [], None
    safe = 0  # how many steps must be in the file
    with tempfile.TemporaryDirectory() as root:
        files = [Path(root, str(number), "run.pt") for number in range(len(calls) + 1)]
        for number, (epochs, kill) in enumerate(calls):
            file, kept = files[number : number + 2]
            file.parent.mkdir(exist_ok=True)
            kept.parent.mkdir()
            device = _Device() if fake else None
            seed = settings["seed"] + (number if safe else 0)
            process = _Process(settings, seed, kill, device, file)
            try:
                with process.saving(train), device or nullcontext():
                    log = train(process, epochs, FAKE if fake else torch.device("cpu"), file)
            except Killed:
                pass
            safe += max(
                0, process.ended - (process.dead and kill is not None and kill[0] == "file")
            )
            if file.exists():
                shutil.copy(file, kept)
            done.append(process.happened["step"])
            moves.append(device.moves if device else 0)
            there += process.there
    weights = [weight.detach().clone() for weight in process.model.parameters()]
    return {"log": log, "weights": weights, "done": done, "moves": moves, "there": there}
