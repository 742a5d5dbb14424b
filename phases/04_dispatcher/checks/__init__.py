"""What the hidden cells of lab 04 check.

The references of the predictions ask PyTorch itself; modes, the dispatcher and the subclass are
tried by drivers, which get plain values and return them.
"""

from .account import account
from .dispatcher import dispatcher
from .flop_counter import flop_counter
from .linear_trace import linear_trace
from .op_log import op_log
from .quantity import quantity
from .read_slot import read_slot
from .winning_key import winning_key

__all__ = [
    "winning_key",
    "op_log",
    "linear_trace",
    "dispatcher",
    "flop_counter",
    "quantity",
    "read_slot",
    "account",
]
