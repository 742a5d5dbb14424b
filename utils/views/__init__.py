"""Views of the learner's own objects: each takes tensors, shapes or numbers and shows the inside.

In Jupyter a view that can move has controls; everywhere else, and while lessons are built, it is
one image.
"""

from utils.notebook import cell_clock
from utils.views.adamw_explorer import adamw_explorer
from utils.views.attention_heads import attention_heads
from utils.views.autograd_graph import autograd_graph
from utils.views.backward_stepper import backward_stepper
from utils.views.block_mask import block_mask
from utils.views.broadcast_aligner import broadcast_aligner
from utils.views.cache_growth import cache_growth
from utils.views.course_path import course_path
from utils.views.dispatch_bars import dispatch_bars
from utils.views.dispatch_table import dispatch_table
from utils.views.dropout_modes import dropout_modes
from utils.views.dtype_range import dtype_range
from utils.views.dtype_ruler import dtype_ruler
from utils.views.finite_difference_error import finite_difference_error
from utils.views.fitted_line import fitted_line
from utils.views.flame_chart import flame_chart
from utils.views.flops_by_operator import flops_by_operator
from utils.views.fusion_map import fusion_map
from utils.views.gradient_ruler import gradient_ruler
from utils.views.graph_rewrite import graph_rewrite
from utils.views.guard_counter import guard_counter
from utils.views.kernel_ptx import kernel_ptx
from utils.views.kernel_steps import kernel_steps
from utils.views.key_explorer import key_explorer
from utils.views.loss_curves import loss_curves
from utils.views.machine_report import machine_report
from utils.views.mask_builder import mask_builder
from utils.views.memory_a_rank import memory_a_rank
from utils.views.memory_bars import memory_bars
from utils.views.memory_timeline import memory_timeline
from utils.views.message_lines import message_lines
from utils.views.module_tree import module_tree
from utils.views.next_word import next_word
from utils.views.pipeline_gantt import pipeline_gantt
from utils.views.port_difference import port_difference
from utils.views.proof_matrix import proof_matrix
from utils.views.ring_stepper import ring_stepper
from utils.views.roofline import roofline
from utils.views.row_lanes import row_lanes
from utils.views.saved_bytes import saved_bytes
from utils.views.schedule_clip import schedule_clip
from utils.views.share_map import share_map
from utils.views.step_counts import step_counts
from utils.views.stride_explorer import stride_explorer
from utils.views.timing_spread import timing_spread
from utils.views.two_lanes import two_lanes

__all__ = [name for name, value in list(globals().items()) if callable(value)]
