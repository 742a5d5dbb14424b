"""MiniGPT's logits on a GPU, for comparison: computed if there is a GPU, otherwise recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from utils.instruments import records
from utils.instruments.accelerator import Accelerator, available
from utils.instruments.records import NoRecord
from utils.instruments.toolchain import triton_lacks
from utils.minigpt import load_minigpt

# The largest allowed difference, relative to the largest logit.
TOLERANCES = {
    # 24 bits; sums in another order differ by about 3e-7, a wrong GELU by 2e-4
    torch.float32: 1e-5,
    # 11 bits; after about twenty roundings in a row, differences of up to 2e-3 were measured
    torch.float16: 1e-2,
}
BATCH = (2, 32)  # sequences, positions: the batch of the records


@dataclass(frozen=True)
class GpuRun:
    """MiniGPT's logits with the trained weights on a GPU."""

    device: str  # the device type on which the tested model must run; ``cpu`` for a record
    words: str  # a name for this run, such as ``the run recorded on an NVIDIA H200``
    tokens: np.ndarray  # int64 (B, T)
    # the dtype of the GPU's computation -> the logits, float32 (B, T, V)
    logits: Mapping[torch.dtype, np.ndarray]

    def agrees(self, logits: torch.Tensor, dtype: torch.dtype) -> bool:
        """Return whether logits (B, T, V) that were computed in `dtype` agree with the GPU's."""
        return agree(logits, torch.from_numpy(self.logits[dtype]), dtype)


def agree(got: torch.Tensor, want: torch.Tensor, dtype: torch.dtype) -> bool:
    """Return whether logits that were computed in `dtype` agree within the tolerance.

    The tolerance is relative to the largest logit.
    """
    if got.shape != want.shape:
        return False
    allowed = TOLERANCES[dtype] * want.double().abs().max()
    return bool((got.double() - want.double()).abs().max() <= allowed)  # NaN is not close


def gpu_run() -> GpuRun:
    """Return a run on this machine's GPU, or else the newest record.

    Raises NoRecord if there is no GPU and no record.
    """
    gpu = available()
    # Only GPUs for which Triton compiles: the tolerances were not measured on Apple's GPUs, and a
    # model's kernels can't run there.
    if gpu is not None and gpu.triton and not triton_lacks():
        return _live(gpu)
    record = records.load(root=records.RECORDS)
    if record.dry_run:
        raise NoRecord(f"the newest record is a dry run on a CPU: {records.HOW}")
    arrays = record.logits()
    return GpuRun(
        device="cpu",
        words=f"the run recorded on an {record.gpu} ({record.provenance['date'][:10]})",
        tokens=arrays["tokens"],
        # such as "float32"
        logits={dtype: arrays[str(dtype).split(".")[1]].astype(np.float32) for dtype in TOLERANCES},
    )


def _live(gpu: Accelerator) -> GpuRun:
    tokens = torch.randint(600, BATCH, generator=torch.Generator().manual_seed(0))
    logits = {}
    with torch.inference_mode():
        for dtype in TOLERANCES:
            model = load_minigpt().to(gpu.device_type, dtype)
            logits[dtype] = model(tokens.to(gpu.device_type)).float().cpu().numpy()
    words = f"a run on this machine's {gpu.gpus()[0].name}"
    return GpuRun(gpu.device_type, words, tokens.numpy(), logits)
