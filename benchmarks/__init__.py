"""Measure the course's own kernels, and record the results of a real GPU.

`python -m benchmarks.gpu` makes a record; `utils.instruments.records.load()` reads one.
`python -m benchmarks.cpu_step` records the step of MiniGPT that `utils.instruments.traces` reads.
"""
