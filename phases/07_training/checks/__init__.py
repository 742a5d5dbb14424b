"""What the hidden cells of lab 07 check.

Points depend on values: what a function returns, which batches a loader gives, the losses and
weights of a run, whether it was stopped and resumed or not. Two facts are claims of the learner's
process: how many graphs of `accumulate` are alive at once, and that nothing used torch's global
generator.
"""
