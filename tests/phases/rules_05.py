"""The rules of lab 05; :mod:`tests.phases.rules` says how to read them."""

from tests.phases.rules import Rules

# What the lab's introduction says of the kernels, with an answer to each that breaks it.
FOR_ALL = {
    "whoever reads beside a row": {
        "triton_softmax": "a load beside the row",
        "softmax_backward": "an expanded g is taken for contiguous",
    },
    "whoever writes there": {
        "triton_softmax": "stores without a mask",
        "softmax_backward": "stores without a mask",
    },
    "your kernel also *compiles* for one": {
        "triton_softmax": "only the interpreter takes it",
        "softmax_backward": "only the interpreter takes it",
    },
}

RULES = {
    "plan_rows": Rules(
        asked={
            "how many programs there must be": ("always one program more", "rounded"),
            "so that each row is in one": "the last rows are lost",
            "as many as fit into a tile of 4096 bytes": (
                "one more than fits",
                "no more rows than there are",
                "a tile in lanes of float32",
            ),
            "masked lanes included": "a tile of real numbers",
            "one where not even one fits": "rows to a power of two",
            "the smallest power of two": ("whole warps", "a block of 16 at least"),
            "that is not less than `columns`": ("the nearest power", "a power strictly above"),
            "of all programs together": "masked lanes of one program",
            "or in a row that does not exist": (
                "lanes beside the rows only",
                "beside rows that don't exist, too, but no more",
            ),
            "There may be no rows at all": "one program for no rows",
        },
        told=(
            "A block of Triton's has a power of two of lanes",
            "In the lesson each program took one row",
            "Where rows are narrow it may take several",
            "Plan how a matrix",
            "returns a tuple of four numbers",
        ),
    ),
    "triton_softmax": Rules(
        asked={
            "of any strides": (
                "x's columns lie side by side",
                "a row stride of 0 is taken for contiguous",
                "rows back to back",
            ),
            "not necessarily the same": ("x's strides for y", "y's rows follow each other"),
            "It writes the softmax of each row": ("zeros beside the row", "128 lanes at most"),
            "nothing anywhere else": ("stores without a mask", "exponentials are kept in x"),
            "there may be no rows": "one program for no rows",
            "Numbers may be large": ("no maximum", "a clamp instead of a maximum"),
            "of either sign": ("the greatest magnitude", "a maximum of 0 at least"),
            "it counts nothing": "a row that holds any -inf is NaN",
            "A row of nothing but -inf is NaN": ("rows of -inf are zero", "NaN becomes zero"),
            "are widened to float32": "float64 for all",
            "before anything is computed with them": "the difference in half",
            "rounded once, in the end": ("the sum is rounded", "exponentials into y, then divided"),
            "float64 is computed in float64": ("float32 for all", "float64's sum in float32"),
            "no operator of torch on either": ("widened by torch", "cleared first"),
            "no copy": ("contiguous first", "a result of its own, copied"),
            "here or in Triton": ("Triton's own softmax", "the course's softmax"),
            "is refused": "a dtype by a name that is made",
            "what was launched compiles for `sm_90`": (
                "a global of Python's",
                "a type that depends on the width",
            ),
        },
        free={"What it returns does not matter": "y is returned"},
        told=(
            "Write a Triton kernel",
            "There is at least one column",
            "`launch` launches what",
            "would look for a GPU",
        ),
    ),
    "softmax_backward": Rules(
        asked={
            "the gradient of the input is, row by row": ("that of a sigmoid", "the sum of g"),
            "each with strides of its own": (
                "y's strides for g",
                "y's strides for dx",
                "dx's rows follow each other",
            ),
            "with strides of 0": "an expanded g is taken for contiguous",
            "maybe no rows": "one program for no rows",
            "widened before it is computed with": ("float16 stays", "float64 for all"),
            "rounded once in the end": ("the products are rounded", "the difference is rounded"),
            "nothing written beside `dx`": ("stores without a mask", "products are kept in g"),
            "nothing done by torch": ("contiguous first", "the product is torch's"),
            "that it compiles": "a global of Python's",
        },
        told=("Write a second kernel",),
    ),
    "read_ptx": Rules(
        asked={
            "with a guard before it": ("a guard hides the name", "a guard is @%p1"),
            "`ld` and `st` load and store": "stores first",
            "`shared` and `param` are not": ("any ld", "all but shared", "all but param"),
            "there may be words on caches": (
                "v stands behind global",
                "a word on caches that swallows v4",
            ),
            "`v2` or `v4`": ("one number each", "v4 alone"),
            "in the end what one number is": ("always 32 bits", "the first type"),
            "so have `f32`, `u32` and `s32`": "only b has bits",
            "how many instructions load": "wide ones count for several",
            "the bytes that one thread moves": ("bits", "16 bits are moved as 32"),
            "with each of these instructions": "each width once",
            "a list in the order of the text": "sorted",
            "how many instructions are a `shfl`": "bfly alone",
            "how many a `bar.sync`": ("any bar", "barriers by any name", "any sync"),
            "labels, declarations, and comments": (
                "found anywhere",
                "every word of the line is a name",
            ),
        },
        told=(
            "is text, so a program can read it",
            "Its name is made of parts",
            "`shfl` hands a number",
            "Write three functions",
        ),
    ),
    "make_softmax": Rules(
        asked={
            "another call brings another name and another pair": "the latest pair for all",
            "takes a tensor of one dimension or more": "a fake for matrices alone",
            "and returns the result, a new contiguous tensor": (
                "the result is a view",
                "a fake that returns its input",
            ),
            "takes the gradient of the result and the result": (
                "the input is saved",
                "y and g change places",
            ),
            "so call them, and nothing in their place": (
                "torch's softmax",
                "the formula is torch's own backward",
                "half of it",
            ),
            "one called `name`": "a name of its own",
            "which takes a tensor and returns one": ("a dimension", "a list of one"),
            "one called `name` with `_backward` behind": "called _grad",
            "which takes two, `g` and `y`": (
                "the backward gets x, too",
                "the other way to say it in the schema",
            ),
            "Both write into none of their arguments": (
                "it writes into x",
                "the backward writes into g",
                "x is changed on the way",
                "g is changed on the way",
            ),
            "Each gets a fake": ("no fake", "no fake of the backward", "a Function, composite"),
            "the shape, strides, dtype and device": (
                "fakes of the other way round",
                "a fake like its input",
                "fakes are float32",
                "fakes are on the CPU",
            ),
            "computes nothing": "a fake that computes",
            "the formula of its gradient": "no formula",
            "into how many graphs": "the formula launches",
        },
        free={
            "What your function returns does not matter": "schemas in words, other names, a result"
            " that is returned",
        },
        told=(
            "A kernel is no operator yet",
            "PyTorch doesn't know",
            "Two of opcheck's tests",
            "Write `make_softmax",
            "`name` is such as",
        ),
    ),
    "make_twice": Rules(
        asked={
            "the same as `make_softmax`": "torch's softmax for y",
            "with a gradient for the operator of the backward": (
                "the second gradient is not registered",
                "the formula launches",
            ),
            "row by row": ("over all rows", "over columns"),
            "what becomes of it for `g`": ("of g: g for v", "of g: the wrong sum", "nothing for g"),
            "and for `y`": ("the inner y is forgotten", "a sign", "nothing for y"),
            "autograd finds the way to `x` by itself": (
                "on to x by hand",
                "y is a constant in the backward",
            ),
        },
        free={"Fakes are not asked for": "on paper"},
        told=(
            "wants to differentiate it again",
            "Then the backward is itself",
            "lets `gradgradcheck` prove",
        ),
    ),
    "roofline": Rules(
        asked={
            "how many bytes go": "bits",
            "A forward reads a matrix `x`": "nothing is written",
            "a backward reads two": ("a backward reads g alone", "a backward reads x, too"),
            "each is read once in every pass": ("one pass", "y is read once"),
            "Either writes one matrix, once": ("every pass writes", "a backward writes twice"),
            "All hold numbers of `dtype`": ("float32", "written in float32"),
            "what is masked off moves nothing": "whole blocks",
            "how long it takes at least": ("microseconds", "whole seconds"),
            "at `bandwidth` bytes a second": "gigabytes of 2**30",
            "A forward takes five operations an element": "four and five change places",
            "a backward four": "five always",
            "Moving and computing overlap": "one after the other",
            "the longer of the two decides": ("the shorter decides", "memory's seconds"),
            "a tuple: the seconds": "the name first",
            "which it was": ("always memory", "the other one's name"),
            "where both take equally long": "equally long: compute",
        },
        told=("No kernel is faster", "Write two functions"),
    ),
    "swap_softmax": Rules(
        asked={
            "Its head turns logits into probabilities": "the attention alone",
            "the weights of the past": ("no mask", "one of the future", "nobody sees itself"),
            "It changes the model that it is given": "a copy of the model",
            "its head and all its blocks": ("the head alone", "the first block", "two blocks"),
            "use `softmax`": ("torch's softmax is still inside", "softmax of a softmax"),
            "It brings no mask along": ("masked afterwards", "zeros for the future"),
            "which are the same objects as before": ("new attention", "parameters copied"),
            "not their names in the state dict": (
                "a mask in the state dict",
                "a module under two names",
            ),
            "no other model, made before or later": (
                "one of the class",
                "torch's softmax itself",
            ),
            "Into how many graphs it is cut": ("looked at with item", "the compiler is kept out"),
        },
        told=(
            "MiniGPT calls a softmax in two places",
            "Read it in",
            "The check hands over",
            "A GPU is asked where there is one",
        ),
    ),
}
