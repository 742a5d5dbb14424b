"""What `torch.compile` captured, believed, saved and wrote, as plain facts.

All that the course knows of the compiler's private interface, that of torch 2.13, is reached here.
Every function starts with an empty compiler (`torch._dynamo.reset`), so that what it finds depends
on its arguments alone. Where nothing can be compiled, a notebook's cell says so in one line.
"""
# ruff: noqa: F401  the names of the room

from hood.learner import one_line
from utils.instruments.compiling.aot import Split, nbytes, split
from utils.instruments.compiling.dynamo import Answer, Kept, captured, kept, listening, replay
from utils.instruments.compiling.inductor import Pass, Written, loops, written
