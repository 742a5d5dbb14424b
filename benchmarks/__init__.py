"""Measurements of the course's own kernels, and the records that they leave on a real GPU.

`python -m benchmarks.gpu` makes a record; `utils.instruments.records.load()` reads one.
`python -m benchmarks.cpu_step` records the step of MiniGPT that `utils.instruments.traces` holds.
"""
