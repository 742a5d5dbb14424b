"""The checks in the hidden cells of lab 05.

Kernels run in Triton's interpreter, on views that are cut from a larger storage. Each case
registers its operators again, with right kernels. Points depend on values. Three facts are claims
of the learner's process: that a kernel compiles for a GPU, that `opcheck` passes, and the number of
graphs.
"""
