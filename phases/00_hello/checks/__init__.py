"""What the hidden cells of lab 00 check: the arithmetic of a launch."""
