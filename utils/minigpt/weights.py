"""Read and write MiniGPT's weights: one safetensors file, which also says the model's sizes.

The format is read here in a few lines, which need only NumPy: eight bytes give the length of a JSON
header, the header gives each tensor's dtype, shape and place, and the numbers follow.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utils.minigpt.config import MiniGPTConfig, parameter_shapes

DATA = Path(__file__).with_name("data")
WEIGHTS = DATA / "weights.safetensors"
MANIFEST = "manifest.json"  # beside the weights it belongs to

AGAIN = "restore it from the repository or write it again with `python -m utils.minigpt.train`"

Arrays = dict[str, NDArray[np.float32]]


class WeightsError(ValueError):
    """A weights file that cannot be used; the message says what is wrong and what to do."""


def load_weights(path: Path | str = WEIGHTS) -> Arrays:
    """Return the array of every parameter by name (see `parameter_shapes`).

    If a manifest lies beside the file, its checksum must be the file's.

    Args:
        path: the file; by default that of the trained model.

    Raises:
        FileNotFoundError: if there is no such file.
        WeightsError: if it is damaged, or holds other parameters.
    """
    return _read(Path(path))[1]


def load_config(path: Path | str = WEIGHTS) -> MiniGPTConfig:
    """Return the sizes of the model whose weights a file holds; raise as `load_weights` does."""
    return _read(Path(path))[0]


def save_weights(
    path: Path, weights: Mapping[str, NDArray[np.float32]], config: MiniGPTConfig
) -> None:
    """Write weights that fit `config`; the same arrays always give the same bytes."""
    _require_fit(weights, config, path)
    header: dict[str, Any] = {"__metadata__": {"config": json.dumps(asdict(config))}}
    body = b""
    for name, shape in parameter_shapes(config).items():
        numbers = weights[name].astype("<f4").tobytes()
        place = [len(body), len(body) + len(numbers)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": place}
        body += numbers
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the numbers begin at a multiple of 8
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def sha256(path: Path) -> str:
    """Return the checksum of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read(path: Path) -> tuple[MiniGPTConfig, Arrays]:
    if not path.is_file():
        raise FileNotFoundError(f"MiniGPT's weights are not at {path}: {AGAIN}")
    metadata, arrays = _parse(path.read_bytes(), path)
    config = _config(metadata, path)
    _require_fit(arrays, config, path)
    _require_checksum(path)
    return config, {name: arrays[name] for name in parameter_shapes(config)}


def _parse(data: bytes, path: Path) -> tuple[Mapping[str, Any], Arrays]:
    """Return the header's metadata and every array of a safetensors file."""
    start = 8 + int.from_bytes(data[:8], "little")
    try:
        header = json.loads(data[8:start])
        metadata = header.pop("__metadata__", {})
        entries = {
            name: (entry["dtype"], tuple(map(int, entry["shape"])), *entry["data_offsets"])
            for name, entry in header.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise WeightsError(
            f"{path} is damaged, its {len(data):,} bytes don't begin with a safetensors header "
            f"({type(error).__name__}: {error}): {AGAIN}"
        ) from error
    arrays: Arrays = {}
    for name, (dtype, shape, begin, end) in entries.items():
        if dtype != "F32":
            raise WeightsError(f"{path}: {name}: expected dtype F32, got {dtype}: {AGAIN}")
        if end - begin != 4 * math.prod(shape):
            raise WeightsError(
                f"{path} is damaged: {name} of shape {shape} needs {4 * math.prod(shape):,} bytes, "
                f"its header says {end - begin:,}: {AGAIN}"
            )
        if start + end > len(data):
            raise WeightsError(
                f"{path} is damaged: it ends at byte {len(data):,}, "
                f"but {name} reaches to byte {start + end:,}: {AGAIN}"
            )
        arrays[name] = np.frombuffer(data, "<f4", math.prod(shape), start + begin).reshape(shape)
        arrays[name] = arrays[name].astype(np.float32)  # a copy that may be written to
    return metadata, arrays


def _config(metadata: Mapping[str, Any], path: Path) -> MiniGPTConfig:
    names = [field.name for field in fields(MiniGPTConfig)]
    try:
        sizes = json.loads(metadata["config"])
        if sorted(sizes) != sorted(names) or not all(type(sizes[name]) is int for name in names):
            raise ValueError(f"got {sizes}")
    except (KeyError, TypeError, ValueError) as error:
        raise WeightsError(
            f"{path}: expected metadata 'config' with an integer for each of {', '.join(names)}; "
            f"{type(error).__name__}: {error}. Is it MiniGPT's file? If so, {AGAIN}"
        ) from error
    return MiniGPTConfig(**sizes)


def _require_fit(
    arrays: Mapping[str, NDArray[np.float32]], config: MiniGPTConfig, path: Path
) -> None:
    shapes = parameter_shapes(config)
    wrong = [f"{name} is missing" for name in shapes if name not in arrays]
    wrong += [f"{name} is not a parameter of MiniGPT" for name in arrays if name not in shapes]
    for name in (name for name in shapes if name in arrays):
        if arrays[name].shape != shapes[name]:
            wrong.append(f"{name}: expected shape {shapes[name]}, got {arrays[name].shape}")
        elif not np.isfinite(arrays[name]).all():
            wrong.append(f"{name}: expected finite numbers, got infinity or NaN")
    if wrong:
        shown = "; ".join(wrong[:5]) + (f"; and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        raise WeightsError(f"{path} does not fit {config}: {shown}. To mend it, {AGAIN}")


def _require_checksum(path: Path) -> None:
    manifest = path.with_name(MANIFEST)
    if not manifest.is_file():
        return
    try:
        stated = json.loads(manifest.read_text(encoding="utf-8"))
        expected = stated["files"][path.name]["sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise WeightsError(f"{manifest} states no checksum of {path.name}: {AGAIN}") from error
    found = sha256(path)
    if found != expected:
        raise WeightsError(
            f"{path} is damaged or belongs to another training run: expected SHA-256 "
            f"{expected[:12]}… ({manifest.name}), got {found[:12]}…: {AGAIN}"
        )
