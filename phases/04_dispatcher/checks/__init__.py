"""The checks in the hidden cells of lab 04.

For predictions, the references ask PyTorch itself. Drivers try the modes, the dispatcher and the
subclass. Drivers get plain values and return plain values.
"""
