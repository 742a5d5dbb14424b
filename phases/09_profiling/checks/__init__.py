"""What the hidden cells of lab 09 check.

Points depend on values: a function gets timings, traces and tables, and returns values. Some facts
are claims of the learner's process: what the profiler does while a step runs, how many operators
ran and how many bytes they made, that no value of a tensor was read, and that no hook remains on a
model. A part counts such a claim only if the values of the part are right, too.
"""
