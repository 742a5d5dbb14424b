"""What the hidden cells of lab 02 check.

Every reference leans on autograd itself; the lab's own solutions, derived by hand, are proven
against them. Incoming gradients are random everywhere, so that what is right only for ones shows.
"""

from .activations import activations
from .backward_order import backward_order
from .checkpointed import checkpointed
from .layer_norm_vjp import layer_norm_vjp
from .linear_vjp import linear_vjp
from .lm_head import lm_head
from .numeric_vjp import numeric_vjp
from .run_softmax import run_softmax
from .scalar_adjoints import scalar_adjoints
from .tape import tape
from .unbroadcast import unbroadcast

__all__ = [
    "scalar_adjoints",
    "tape",
    "backward_order",
    "unbroadcast",
    "linear_vjp",
    "activations",
    "layer_norm_vjp",
    "numeric_vjp",
    "run_softmax",
    "checkpointed",
    "lm_head",
]
