"""What the hidden cells of lab 00 check: the arithmetic of a launch."""

from .grid_size import grid_size
from .masked_block import masked_block

__all__ = [
    "grid_size",
    "masked_block",
]
