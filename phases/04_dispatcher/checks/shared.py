"""What several exercises of lab 04 need."""

# The lab asks for modes, so a rule for work by hand must let the notebook have them.
MODES = frozenset({"torch.utils._python_dispatch"})
