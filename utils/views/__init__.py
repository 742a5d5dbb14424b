"""Views of the learner's own objects: each takes a tensor, a shape or numbers, and shows what is inside."""

from utils.views.broadcast_aligner import broadcast_aligner
from utils.views.dtype_ruler import dtype_ruler
from utils.views.roofline import roofline
from utils.views.stride_explorer import stride_explorer

__all__ = ["broadcast_aligner", "dtype_ruler", "roofline", "stride_explorer"]
