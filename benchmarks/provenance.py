"""The origin of a record: the machine, the versions, the time, the code."""

from __future__ import annotations

import hashlib
import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
# float32 lanes of a multiprocessor, for each compute capability that does not have 128 lanes (CUDA
# C++ Programming Guide, "Arithmetic Instructions"); a multiply-add on each is two FLOPs a cycle
_LANES = {(7, 0): 64, (7, 5): 64, (8, 0): 64}


def provenance(command: str, *, dry_run: bool, commit: str | None = None) -> dict[str, Any]:
    """Return a record's origin. command: as it was typed. commit: for a copy without Git."""
    import triton

    return {
        "dry_run": dry_run,
        "gpu": None if dry_run else _gpu(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "triton": triton.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "commit": commit or _git("rev-parse", "HEAD"),
        "uncommitted changes": None if commit else _changes(),
        "sources": source_hash(),
    }


def source_hash() -> str:
    """Return the SHA-256 of the Python files of utils/ and benchmarks/, for a copy without .git."""
    total = hashlib.sha256()
    for path in sorted(p for top in ("utils", "benchmarks") for p in (ROOT / top).rglob("*.py")):
        total.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def slug(gpu: str | None) -> str:
    """Return the name of a record's folder: "NVIDIA H200" -> "nvidia-h200"."""
    return re.sub(r"[^a-z0-9]+", "-", (gpu or "dry run").lower()).strip("-")


def _gpu() -> dict[str, Any]:
    device = torch.cuda.get_device_properties(torch.cuda.current_device())
    capability = (device.major, device.minor)
    asked = _ask_driver(device)
    clock = float(asked["max MHz"]) * 1e6 if asked else None
    lanes = device.multi_processor_count * _LANES.get(capability, 128)
    return {
        "name": device.name,
        "driver": asked["driver"] if asked else None,
        "capability": "sm_{}{}".format(*capability),
        "multiprocessors": device.multi_processor_count,
        "memory bytes": device.total_memory,
        "L2 bytes": device.L2_cache_size,
        # the FLOP/s of the ordinary units, because a softmax does not use the matrix units
        "peak float32 FLOP/s": clock and 2 * lanes * clock,
    }


def _ask_driver(device: Any) -> dict[str, str] | None:
    command = [
        "nvidia-smi",
        f"--id=GPU-{device.uuid}",  # torch's ordinals and nvidia-smi's may differ
        "--query-gpu=driver_version,clocks.max.sm",
        "--format=csv,noheader,nounits",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        driver, clock = done.stdout.strip().split(", ")
        float(clock)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return {"driver": driver, "max MHz": clock}


def _changes() -> bool | None:
    status = _git("status", "--porcelain", "--", "utils", "benchmarks", ":!benchmarks/records")
    return None if status is None else bool(status)


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(ROOT), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
