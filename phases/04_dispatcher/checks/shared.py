"""Names for several exercises of lab 04."""

# The lab's notebook uses modes and reads tables, so the rules for work by hand must allow these
# names.
LISTENING = frozenset({"torch.utils._python_dispatch", "torch._C._dispatch_dump_table"})
