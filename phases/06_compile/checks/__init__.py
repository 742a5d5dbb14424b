"""What the hidden cells of lab 06 check.

Drivers call the learner's functions and backends with random programs and numbers. Points depend
mainly on values. The number of graphs is a claim of the learner's own process. Two exercises run
Inductor: one with fixed shapes, and one with only products, for which Inductor writes no C++.
"""
