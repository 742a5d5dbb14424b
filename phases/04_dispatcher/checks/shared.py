"""What several exercises of lab 04 need."""

# The lab asks for modes and reads tables, so a rule for work by hand must let the notebook do so.
LISTENING = frozenset({"torch.utils._python_dispatch", "torch._C._dispatch_dump_table"})
