"""What the hidden cells of lab 02 check.

Most references use autograd. The lab's own solutions are derived by hand, and the tests compare
them with the references. All incoming gradients are random, so that an answer fails if it is right
only for a gradient of ones.
"""
