"""Read what `python -m benchmarks.gpu` wrote on a real GPU."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

RECORDS = Path(__file__).resolve().parents[2] / "benchmarks" / "records"


def how_to_make(benchmarks: Path) -> str:
    """Return a sentence that says how to make a record.

    A learner's archive has no `benchmarks`. There, the sentence says where records are made.
    """
    if (benchmarks / "gpu.py").is_file():
        return "run `python -m benchmarks.gpu` on a machine with a GPU"
    return "records are made in the course's repository, on a machine with a GPU"


HOW = how_to_make(RECORDS.parent)


class NoRecord(LookupError):
    """A record is missing. The message says how to make it."""


@dataclass(frozen=True)
class Record:
    """The record of one GPU: the folder of its files, and each section's measurements by name."""

    folder: Path
    sections: dict[str, dict[str, Any]]

    @property
    def provenance(self) -> dict[str, Any]:
        """The origin of the newest section: GPU, driver, versions, date, command, commit."""
        newest = max(self.sections.values(), key=lambda section: section["provenance"]["date"])
        return newest["provenance"]

    @property
    def dry_run(self) -> bool:
        """Whether this is the record of a dry run on a CPU. Its timings mean nothing."""
        return self.provenance["dry_run"]

    @property
    def gpu(self) -> str:
        return "dry run on a CPU" if self.dry_run else self.provenance["gpu"]["name"]

    def result(self, section: str) -> dict[str, Any]:
        """Return the measurements of a section. Raises NoRecord if the section is incomplete."""
        document = self.sections.get(section, {})
        if not document.get("complete"):
            reason = document.get("not_run") or "; ".join(document.get("failures", ()))
            because = f" ({reason})" if reason else ""
            raise NoRecord(f"no record of {section} for {self.gpu} yet{because}: {HOW}")
        return document["result"]

    def text(self, name: str) -> str:
        """Return a text file of the record, such as "inductor_torch_forward.py.txt"."""
        path = self.folder / name
        if not path.is_file():
            texts = ", ".join(sorted(p.name for p in self.folder.iterdir() if p.suffix != ".json"))
            raise NoRecord(f"no {name} in the record of {self.gpu}, which has {texts}")
        return path.read_text(encoding="utf-8")

    def logits(self) -> dict[str, np.ndarray]:
        """Return MiniGPT's logits.

        ``tokens`` has the shape (2, 32). ``cpu_float32``, ``float32``, ``float16`` and ``bfloat16``
        have the shape (2, 32, 600). ``bfloat16`` is stored as float32.
        """
        with np.load(self.folder / self.result("minigpt")["file"]) as arrays:
            return dict(arrays)


def load(gpu: str | None = None, root: Path = RECORDS) -> Record:
    """Return the record in a folder such as "nvidia-h200", by default the newest record."""
    all_gpus = map(_read, sorted(root.glob("*/")))
    records = {record.folder.name: record for record in all_gpus if record}
    if not records:
        raise NoRecord(f"no record yet: {HOW}")
    if gpu is None:
        return max(records.values(), key=lambda record: record.provenance["date"])
    if gpu not in records:
        raise NoRecord(f"no record of {gpu} yet, only of {', '.join(records)}: {HOW}")
    return records[gpu]


def _read(folder: Path) -> Record | None:
    documents = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    sections = {document["section"]: document for document in documents}
    return Record(folder, sections) if sections else None
