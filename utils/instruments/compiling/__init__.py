"""Graphs, guards, saved tensors and code of `torch.compile`, as plain values.

This package wraps the compiler's private interface (of torch 2.13) for lessons and views. Every
function starts with an empty compiler (`torch._dynamo.reset`), so that a result depends only on the
function's arguments. If this machine can't compile code, a notebook's cell says so in one line.
"""
# ruff: noqa: F401  the names of the room

from hood.learner import one_line
from utils.instruments.compiling.aot import Split, nbytes, split
from utils.instruments.compiling.dynamo import Answer, Kept, captured, kept, listening, replay
from utils.instruments.compiling.inductor import Pass, Written, loops, written
