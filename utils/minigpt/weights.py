"""Read and write MiniGPT's weights: one safetensors file, which also has the model's sizes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from utils.minigpt.config import MiniGPTConfig, parameter_shapes

DATA = Path(__file__).with_name("data")
WEIGHTS = DATA / "weights.safetensors"
WITHOUT_IMPERFECT = DATA / "without_imperfect" / WEIGHTS.name  # a smaller model, for fine-tuning
MANIFEST = "manifest.json"  # in the same folder as the weights

AGAIN = "restore it from the repository, or write it again with `python -m utils.minigpt.train`"

Arrays = dict[str, NDArray[np.float32]]


class WeightsError(ValueError):
    """A weights file cannot be used. The message says what is wrong and what to do."""


def load_weights(path: Path | str = WEIGHTS) -> Arrays:
    """Return the array of every parameter by name (see `parameter_shapes`).

    If the folder has a manifest, the manifest must have the file's checksum. Raises
    FileNotFoundError if there is no such file. Raises WeightsError if the file is damaged, or if
    its parameters or its checksum are wrong.
    """
    return _read(Path(path))[1]


def load_config(path: Path | str = WEIGHTS) -> MiniGPTConfig:
    """Return the sizes of the model in a file. Raises the same errors as `load_weights`."""
    return _read(Path(path))[0]


def save_weights(
    path: Path, weights: Mapping[str, NDArray[np.float32]], config: MiniGPTConfig
) -> None:
    """Write weights that fit `config`. The same arrays always give the same bytes."""
    _require_fit(weights, config, path)
    arrays = {name: weights[name].astype(np.float32) for name in parameter_shapes(config)}
    save_file(arrays, path, {"config": json.dumps(asdict(config))})


def sha256(path: Path) -> str:
    """Return the checksum of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read(path: Path) -> tuple[MiniGPTConfig, Arrays]:
    metadata, arrays = read_safetensors(path)
    config = _config(metadata, path)
    _require_fit(arrays, config, path)
    return config, {name: arrays[name] for name in parameter_shapes(config)}


def read_safetensors(path: Path) -> tuple[Mapping[str, str], dict[str, NDArray]]:
    """Return the metadata and the arrays of a file.

    If the folder has a manifest, the manifest must have the file's checksum.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}: {AGAIN}")
    try:
        with safe_open(path, "np") as file:
            found = file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise WeightsError(f"{path} is damaged ({error}): {AGAIN}") from error
    _require_checksum(path)
    return found


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
    wanted = {name: f"float32 {shape}" for name, shape in parameter_shapes(config).items()}
    found = {name: f"{array.dtype} {array.shape}" for name, array in arrays.items()}
    found |= {name: "infinity or NaN" for name in arrays if not np.isfinite(arrays[name]).all()}
    for name in wanted | found:
        want, got = wanted.get(name, "no such parameter"), found.get(name, "nothing")
        if want != got:
            said = f"{name}: expected {want}, got {got}. To fix it, {AGAIN}"
            raise WeightsError(f"{path} does not fit {config}: {said}")


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
            f"{path} is damaged, or is from another training run than {manifest.name}: expected "
            f"SHA-256 {expected[:12]}…, got {found[:12]}…: {AGAIN}"
        )
