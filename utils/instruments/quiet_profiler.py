"""torch's profiler of operators, which writes nothing to stderr."""

import os

# The profiler's library reads this variable at its first use. If the variable is not set, the
# library writes two lines to stderr for each profile.
os.environ.setdefault("KINETO_LOG_LEVEL", "6")

from torch.autograd.profiler import profile as profile  # noqa: E402
