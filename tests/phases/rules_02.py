"""The rules of lab 02; :mod:`tests.phases.rules` says how to read them."""

from tests.phases.rules import Rules

# What the lab's introduction says of every exercise, with an answer to each that breaks it.
FOR_ALL = {
    "your answers use neither `torch.autograd` nor `torch.func`": {
        "linear_vjp": "linear_vjp, autograd asked",
        "lm_head": "cross_entropy_vjp, autograd asked",
    },
    "nor the functions that torch itself calls on the way back": {
        "activations": "softmax_vjp, torch's own way back",
        "layer_norm_vjp": "layer_norm_vjp, torch's own way back",
    },
    "sizes of 1": {
        "linear_vjp": "squeezed rows",
        "activations": "softmax_vjp, everything of size 1 squeezed",
    },
    "batches of nothing": {"linear_vjp": "a mean of nothing"},
    "transposed, sliced and expanded tensors": {
        "unbroadcast": "a view of what came",
        "linear_vjp": "view",
        "numeric_vjp": "reshape writes through",
    },
    "all floating-point tensors of a call are float32, or all are float64": {
        "unbroadcast": "unbroadcast, in float32",
        "linear_vjp": "linear_vjp, collected in float32",
        "activations": "float32 inside",
        "layer_norm_vjp": "layer_norm_vjp, in float32",
        "lm_head": "float32 for good",
    },
    "None of your functions may change a tensor that it was given": {
        "unbroadcast": "unbroadcast, the rows are added into the first",
        "linear_vjp": "gradients piled up between calls",
        "activations": "the gradient in place",
        "layer_norm_vjp": "centred in place",
        "numeric_vjp": "numeric_vjp, written into x and back",
        "run_softmax": "the saved input written over",
        "lm_head": "the logits written over",
    },
    "is right only at the very top of a graph": {
        "linear_vjp": "upstream of ones",
        "activations": "softmax with upstream ones",
        "lm_head": "cross_entropy_vjp, no incoming gradient",
    },
    "code that hides it": {"linear_vjp": "linear_vjp, a name put together"},
}

RULES = {
    "scalar_adjoints": Rules(
        asked={
            "the derivative of L with respect to it": ("one path only", "the last path overwrites"),
            "of any sign, 0 too": (
                "the size of d",
                "b by dividing its own value out",
                "d by way of L / d",
            ),
            'the adjoints of `"L"`': "scalar_adjoints, nothing for L",
            "as plain numbers": "tensors for numbers",
        },
        free={
            "as plain numbers": "a whole number for L",
        },
        told=("The lesson's graph", "Write `scalar_adjoints(a, b)`", "Plain arithmetic is enough"),
    ),
    "Tape": Rules(
        asked={
            "the first one recorded is node 0": "Tape, power 1 records nothing",
            "a constant whole power `n` of 1 or more": (
                "powers of 4 at most",
                "each power a square",
                "Tape, power 1 records nothing",
            ),
            "each record a new node": "Tape, equal leaves share a node",
            "`value(i)` is the value of node `i`": (
                "values as text",
                "Tape, value gives a copy in float32",
            ),
            "a list of floats": "Tape, whole numbers for 0 and 1",
            "one for **every** node recorded so far": (
                "leaves only",
                "Tape, a list up to the asked node",
            ),
            "the derivative of node `i` with respect to it": (
                "a set of inputs",
                "Tape, an odd power of a negative number",
            ),
            "0.0 for a node that node `i` does not depend on": "no entry for later nodes",
            "Values may be 0": (
                "power's derivative from its value",
                "product's derivative from its value",
                "no slope at 0",
            ),
            "Asking twice must give the same answer twice": "adjoints kept between two questions",
            "that node's own answer": ("Tape, the first answer is kept", "answers kept by node"),
            "More may be recorded after a question": "answers kept by node",
            "two tapes know nothing of each other": "one list for all tapes",
        },
        told=(
            "objects that point at each other",
            "Make one that keeps a *tape* instead",
            "a number is known by its place",
            "Complete the class `Tape`",
            "don't worry about speed or depth",
        ),
    ),
    "backward_order": Rules(
        asked={
            "after **every** node that uses it": ("breadth first", "depth first"),
            "a name stands twice where an input is used twice": (
                "a double use counted once",
                "a double use taken off once",
            ),
            "Return a list": ("a dict of names", "backward_order, an iterator"),
            "all nodes that `root` depends on": "leaves last, else as met",
            "`root` itself first": "inputs first",
            "each of them once": "a node for each use",
            "none before a node that uses it": "ready at its first user",
            "have no place in the list": ("every node of the dict", "users elsewhere counted, too"),
            "the order of the dict says nothing": (
                "the dict's own order",
                "the dict's own order, turned round",
            ),
            "`root` may use nothing at all": "nothing for a root alone",
            "Yours will be asked about six thousand": (
                "recursion",
                "backward_order, recursion with a limit of 5,000",
            ),
        },
        free={
            "any order is right": ("longest distances, relaxed", "backward_order, graphlib"),
            "do with it as you like": "backward_order, eats the dict",
        },
        told=(
            "PyTorch keeps no tape",
            "A tensor knows its `grad_fn`",
            "Write `backward_order(",
            "The graph is a dict",
            "Real graphs are deep",
        ),
    ),
    "unbroadcast": Rules(
        asked={
            "the gradient for a tensor of `shape`": ("a mean for a sum", "one reader for all"),
            "new dimensions in front": ("new dimensions behind", "one new dimension at most"),
            "stretched sizes of 1": ("stretched dimensions averaged", "only the new dimensions"),
            "or both": ("a sum over no dimensions", "the first stretched dimension only"),
            "it may have done nothing": "everything summed where nothing was broadcast",
            "exactly `shape`": ("stretched dimensions dropped", "squeezed"),
            "the dtype of `grad`": "float32 for good",
            "float16 and bfloat16 too": (
                "unbroadcast, half stays float32",
                "unbroadcast, float16 stays float32, bfloat16 does not",
                "through NumPy",
            ),
        },
        told=("A bias of shape (600,)", "has room for 600 numbers"),
    ),
    "linear_vjp": Rules(
        asked={
            "receives `grad_output`": "upstream of ones",
            "with one or more dimensions in front": (
                "matrices only",
                "two dimensions or three",
                "linear_vjp, three dimensions at most",
            ),
            "the gradients for `x`, `weight` and `bias`": (
                "bias without its sum",
                "bias averaged",
                "multiplied by the transpose",
            ),
            "in this order": "linear_vjp, bias before weight",
            "each in the shape of what it belongs to": (
                "weight transposed",
                "squeezed rows",
                "linear_vjp, the gradient for x stays flat",
            ),
        },
        told=("It is called a vector–Jacobian product",),
    ),
    "activations": Rules(
        asked={
            "for `x` of any shape": ("relu_vjp, row by row", "relu_vjp, flat by view"),
            "where the output was `relu(x)`": (
                "relu of the gradient",
                "a small positive is none",
                "relu with its upstream dropped",
            ),
            "At exactly 0": ("open at zero", "half open at zero"),
            "and at −0": ("the sign bit", "negative zero let through"),
            "over the last dimension": ("sum over dimension 1", "sum over the wrong dimension"),
            "where `y` (…, n) is its **output**": "softmax once more",
            "a probability of exactly 0 has no logarithm": "by way of the logarithm",
            "Every output depends on every input of its row": (
                "diagonal only",
                "one sum for all rows",
            ),
        },
        free={
            "It would give the right answer": "softmax_vjp, the full Jacobian",
        },
        told=(
            "PyTorch decided for one value",
            "Find out which",
            "The input is not there",
            "so the Jacobian of a row",
        ),
    ),
    "layer_norm_vjp": Rules(
        asked={
            "For each row of the last dimension": (
                "mean over the wrong dimension",
                "rows along dimension 1",
            ),
            "where μ is the mean of the row": "layer_norm_vjp, means over rows",
            "divided by n, not by n − 1": "variance divided by n - 1",
            "with one or more dimensions in front": (
                "summed over the first dimension only",
                "layer_norm_vjp, two or three dimensions",
            ),
            "`weight` (n,) and `bias` (n,)": ("x for the normed row", "the weight in the bias"),
            "A row may be constant": ("eps left out", "constant rows left alone"),
            "a weight may be 0": (
                "weight divided by",
                "layer_norm_vjp, the weight's by a quotient",
            ),
            "`eps` may be large or small": (
                "an eps of 1 at most",
                "an eps of 1e-8 at least",
                "eps outside of the root",
                "eps of its own",
            ),
            "in float64 rows may lie far from 0": (
                "a difference of squares",
                "layer_norm_vjp, in float32",
            ),
            "straight, by way of the mean, and by way of the variance": (
                "mean and variance taken for constants",
                "variance taken for a constant",
                "mean taken for a constant",
            ),
        },
        told=("The last two are a warm-up", "Leave one out and the network will still train"),
    ),
    "numeric_vjp": Rules(
        asked={
            "when there is no autograd to ask": "numeric_vjp, the derivative by autograd",
            "Nudge each input a little": ("numeric_vjp, one-sided", "numeric_vjp, over h, not 2h"),
            "one at a time": "all entries nudged at once",
            "torch's own of that name": "f applied row by row",
            "look it up like this": "numeric_vjp, a table of names",
            "`x`, of any shape": ("matrices only", "numeric_vjp, no single numbers"),
            "an output of any shape, that of `grad_output`": (
                "upstream of ones",
                "numeric_vjp, the incoming gradient left out",
            ),
            "a view of its input": "numeric_vjp, one copy for both sides",
            "is **float64**": ("float32 out for float32 in", "numeric_vjp, float32 comes back"),
            "and so is all the arithmetic": (
                "numeric_vjp, the quotient rounded to float32",
                "numeric_vjp, the step kept in float32",
            ),
            "before you do anything else": ("float64 after the nudge", "nudged in float32"),
            "`x` must be left as it was": (
                "nudged in place and left there",
                "the input's own memory",
            ),
            "`h` is the step, as it came": (
                "h of its own choice",
                "a nudge that scales with x",
                "numeric_vjp, h no larger than 1",
            ),
        },
        told=("Write `numeric_vjp(",),
    ),
    "run_softmax": Rules(
        asked={
            "the softmax over the last dimension": ("over dimension 1", "one sum for all rows"),
            "returns the gradient for `x`": ("diagonal only", "input saved for output"),
            "Rows may reach ±1,000": ("maximum left in", "clamped"),
            "each of them a level of its own": (
                "one maximum for all rows",
                "the row's mean taken away",
            ),
            "torch's own softmax is not allowed in either": (
                "torch's own softmax",
                "Softmax, softmax in backward",
            ),
            "nor its log-softmax": "torch's own log softmax",
            "nor what has one of them inside": "Softmax, a distribution",
            "must itself be differentiable": (
                "cut off from x",
                "cut off from the incoming gradient",
                "Softmax, once differentiable",
                "saved as a NumPy array",
            ),
            "It uses your class": "Softmax, returns a copy",
        },
        free={
            "nobody checks": "Softmax, kept on ctx itself",
            "`logsumexp` is": "Softmax, saves x and computes again",
        },
        told=("Now teach autograd your softmax", "You get that for free", "`run_softmax` is given"),
    ),
    "lm_head": Rules(
        asked={
            "the mean cross-entropy of the logits and the next words": (
                "a sum for the mean",
                "softmax over the rows",
            ),
            "none of them is special": ("the last word is a filler", "word 0 is a filler"),
            "some may be equal": ("equal targets taken off once", "targets taken off as a set"),
            "a 0-dim tensor of any value": (
                "upstream dropped",
                "the size of the upstream alone",
                "an upstream of 0 is none",
            ),
            "Logits may reach ±1,000": (
                "exponentials of large logits",
                "an epsilon in the denominator",
            ),
            "each row on a level of its own": "one maximum for all rows",
            "a dict with the gradients": "lm_head_gradients, short names",
            '`"weight"` (V, in)': "weight transposed",
            '`"bias"` (V,)': ("bias without its sum", "bias forgotten in the logits"),
            "with logits as large": "exponentials in the head",
        },
        free={
            "`torch.softmax` is allowed here": "cross_entropy_vjp, one-hot",
            "`log_softmax` is, too": "cross_entropy_vjp, through the way back of log softmax",
            "You may call what you have written above": (
                "lm_head_gradients, the pieces put together",
            ),
        },
        told=("At last the real thing", "N is at least 1, in both functions"),
    ),
}
