"""What the hidden cells of lab 03 check.

The cases make classes with random sizes, load random weights through `load_state_dict`, and call
the modules. If torch has the layer, it is the reference. A long solution with one mistake is
written as an edit of the right solution, so that you read only the difference.
"""
