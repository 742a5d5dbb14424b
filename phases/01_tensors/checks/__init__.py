"""What the hidden cells of lab 01 check.

Every reference leans on torch itself wherever torch already knows the answer; the lab's own
solutions, worked out by hand, are proven against them.
"""

from .attention_scores import attention_scores
from .broadcast import broadcast
from .byte_offset import byte_offset
from .bytes_of import bytes_of
from .mended_loss import mended_loss
from .model_costs import model_costs
from .result_dtype import result_dtype
from .row_major_strides import row_major_strides
from .view_strides import view_strides
from .views_by_hand import views_by_hand

__all__ = [
    "bytes_of",
    "row_major_strides",
    "byte_offset",
    "views_by_hand",
    "view_strides",
    "broadcast",
    "mended_loss",
    "attention_scores",
    "result_dtype",
    "model_costs",
]
