"""The rules of lab 00; :mod:`tests.phases.rules` says how to read them."""

from tests.phases.rules import Rules

RULES = {
    "grid_size": Rules(
        asked={
            "the smallest number of programs": ("always one more", "power of two grid"),
            "that covers `n` elements": ("rounded down", "a remainder of one forgotten"),
            "as an int": ("a float", "a string", "prints"),
            "`n` is 0 or more": "at least one program",
            "fits into an int32": "a float32 tensor",
            "`block` is 1 or more": "blocks of one",
            "need not be a power of two": "shift by the bits of the block",
        },
        free={
            "as an int": "an int of NumPy's",
        },
        told=("A kernel that adds two vectors", "One too few", "One too many"),
    ),
    "masked_block": Rules(
        asked={
            "which elements are its own": ("stride of the grid", "evenly shared", "rounded block"),
            "turns off the places that lie past the end": ("no mask", "zeros for masked places"),
            "the indices of the elements": ("places, not indices", "the mask itself"),
            "as a list of ints": ("a range", "a tensor", "a list of 0-dim tensors"),
            "in rising order": "falling",
            "Programs are counted from 0": "counted from one",
            "The grid may be larger than it has to be": "a program too many raises",
            "`n` may be 0": "no elements raises",
            "nothing to do": "nothing to do is None",
        },
        told=("A program knows three things",),
    ),
}
