"""The checks in the hidden cells of lab 11.

Points depend on values. The learner's own process claims how large the products and tensors are, how
often a kernel loads and stores, and that a kernel compiles for a GPU with tensor cores.
"""
