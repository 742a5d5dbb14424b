"""What the hidden cells of lab 06 check.

Functions and backends are tried by drivers, with drawn programs and numbers. Points hang on values
first. How many graphs there were is a claim of the learner's own process. One exercise runs Inductor,
at fixed shapes.
"""

from .count_graphs import count_graphs
from .mended import mended
from .reporting_backend import reporting_backend

__all__ = ["reporting_backend", "count_graphs", "mended"]
