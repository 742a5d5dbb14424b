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
    # 11 bits, about twenty roundings in a row: differences up to 2e-3 were seen
    torch.float16: 1e-2,
}
BATCH = (2, 32)  # sequences, positions: the batch of the records


@dataclass(frozen=True)
class GpuRun:
    """MiniGPT's logits with the trained weights on a GPU."""

    device: str  # device type on which the tested model must run: ``cpu`` for a record
    words: str  # the compared run, such as ``the run recorded on an NVIDIA H200``
    tokens: np.ndarray  # int64 (B, T)
    # maps the dtype of the GPU's computation to float32 (B, T, V)
    logits: Mapping[torch.dtype, np.ndarray]

    def agrees(self, logits: torch.Tensor, dtype: torch.dtype) -> bool:
        """Return whether logits (B, T, V) in `dtype` equal the GPU's logits within the
        tolerance."""
        return agree(logits, torch.from_numpy(self.logits[dtype]), dtype)


def agree(got: torch.Tensor, want: torch.Tensor, dtype: torch.dtype) -> bool:
    """Return whether logits computed in `dtype` are close enough, relative to the largest logit."""
    if got.shape != want.shape:
        return False
    allowed = TOLERANCES[dtype] * want.double().abs().max()
    return bool((got.double() - want.double()).abs().max() <= allowed)  # NaN is not close


def gpu_run() -> GpuRun:
    """Return a run on this machine's GPU, or the newest record; NoRecord if there is neither."""
    gpu = available()
    # The tolerances were measured on these GPUs, and not on Apple's. A model's kernels must run
    # there.
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
