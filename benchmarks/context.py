"""The context of a section in a benchmark run. The section stores its results with this context."""

from __future__ import annotations

import json
import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks.provenance import ROOT
from utils.instruments.toolchain import inductor_lacks, triton_lacks


class NotRun(Exception):
    """This machine can't run some work. The message names what is missing."""


def require_compiler(device: torch.device) -> None:
    """Make sure that Inductor's code for a device can be compiled.

    Raises:
        NotRun: if something is missing.
    """
    if lack := inductor_lacks() if device.type == "cpu" else triton_lacks():
        raise NotRun(str(lack))


@dataclass
class Context:
    """One section's context. folder: where its record is written; origin: the record's origin."""

    section: str
    device: torch.device
    folder: Path
    origin: dict[str, Any]
    started: float = field(default_factory=time.monotonic)
    failures: list[str] = field(default_factory=list)

    @property
    def dry_run(self) -> bool:
        return self.origin["dry_run"]

    @property
    def cache_bytes(self) -> int:
        return 256 if self.dry_run else self.origin["gpu"]["L2 bytes"]

    def free_bytes(self) -> int:
        """Return the GPU's free memory in bytes; in a dry run, a small number."""
        return 2**20 if self.dry_run else torch.cuda.mem_get_info(self.device)[0]

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self.started:5.1f} s] {self.section}: {text}", flush=True)

    def fail(self, text: str) -> None:
        """Note that something is wrong; the run goes on, and ends with an exit status of 1."""
        self.failures.append(text)
        self.say(f"FAILED: {text}")

    def keep(self, result: dict[str, Any] | None, *, complete: bool, **more: Any) -> None:
        """Write the section's JSON file; the old file stays until the new file is complete."""
        document = {
            "section": self.section,
            "complete": complete,
            "seconds": round(time.monotonic() - self.started, 1),
            "failures": self.failures,
            "provenance": self.origin,
            "result": result,
            **more,
        }
        text = json.dumps(document, indent=1, allow_nan=False) + "\n"
        self.write(f"{self.section}.json", text)

    def write(self, name: str, content: bytes | str) -> None:
        """Write a complete file of the record, or no file. This machine's paths are replaced."""
        if isinstance(content, str):
            content = without_paths(content).encode()
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
            file.write(content)
        os.chmod(file.name, 0o644)
        os.replace(file.name, self.folder / name)


def without_paths(text: str) -> str:
    """Return `text` with this machine's folders replaced by their roles."""
    places = {
        str(Path(torch.__file__).parents[1]): "<site-packages>",
        str(ROOT): "<course>",
        tempfile.gettempdir(): "<tmp>",
        str(Path.home()): "~",
    }
    for place, name in places.items():
        if place != "/":
            text = text.replace(place, name)
    return text
