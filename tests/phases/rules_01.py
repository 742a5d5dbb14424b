"""The rules of lab 01; :mod:`tests.phases.rules` says how to read them."""

from tests.phases.rules import Rules

# What the lab's introduction says of every exercise, with an answer to some that breaks it.
FOR_ALL = {
    "Parts of an exercise earn their points separately": {
        "views_by_hand": "start counted in elements"
    },
    "code that hides it": {"row_major_strides": "getattr hides it"},
}

RULES = {
    "bytes_of": Rules(
        asked={
            "any tensor `t`": ("finfo knows the width", "len", "dims of a matrix", "empty is one"),
            "one for each element": "the base's bytes",
            "each as wide as the dtype says": (
                "every element is four bytes",
                "elements, not bytes",
            ),
            "the bytes that its *storage* holds": ("no storage", "from the offset on"),
            "the pair `(view_bytes, storage_bytes)`": "swapped",
            "two ints": ("tensors", "numpy's product"),
            "counts twice in `view_bytes`": "an element reached twice counts once",
        },
        free={
            "two ints": "ints of NumPy's",
        },
        told=("You load a 2 GB matrix", "The memory is still gone"),
    ),
    "row_major_strides": Rules(
        asked={
            "the last index runs fastest": "column-major",
            "Given only the shape": "three dimensions at most",
            "the number of elements to walk": ("bytes", "includes its own size"),
            "sizes of 1": ("a size of 1 has stride 0", "a size of 1 has stride 1"),
            "and of 0": ("a zero takes all", "all ones when empty", "the zero's own stride is 0"),
            "it may not ask a tensor": ("asks torch", "asks torch without memory"),
            "or an array": "asks NumPy",
            "nor lay them out with `view` or `reshape`": "lays them out",
        },
        told=("Write `row_major_strides(shape)`", "Make a few such tensors in a cell of your own"),
    ),
    "byte_offset": Rules(
        asked={
            "in **bytes**": ("elements", "offset in elements", "four bytes, eight for ints"),
            "from the first byte of `t`'s storage": "no offset",
            "to the element `t[index]`": ("strides of the transpose", "a zero index is skipped"),
            "one integer for each dimension": ("a tensor without dimensions", "two dimensions"),
            "a negative one counts from the end": (
                "negative indices as they are",
                "one from the end only",
                "minus one is size",
            ),
            "Work from `t.stride()`": "row-major strides",
            "asking the result where it lies": ("asks the element's offset", "selects"),
            "no operator may touch `t`": "offset left out for a fresh look",
            "`data_ptr()` is not to be asked": "asks data_ptr",
            "NumPy's `array` and `asarray`": "NumPy's arrays",
            "hand its bytes to NumPy": "asks NumPy",
        },
        told=("Indexing looks like a search",),
    ),
    "views_by_hand": Rules(
        asked={
            "with that one call": ("transpose: in place", "diagonal: einsum"),
            "no detour by NumPy": "diagonal: by NumPy",
            "two dimensions exchanged": (
                "transpose: sizes stay",
                "transpose: strides stay",
                "transpose: all dimensions turned round",
            ),
            "`length` entries of one dimension": "narrow: end, not length",
            "from `start` on": ("narrow: keeps the offset", "narrow: start times width"),
            "sizes of 1 stretched to `sizes`": ("expand: every stride zero", "expand: stride 1"),
            "the main diagonal of a matrix, square or not": ("diagonal: rows", "diagonal: columns"),
            "Your input is often itself a view": (
                "transpose: fresh strides",
                "narrow: start is an element",
                "diagonal: width plus one",
            ),
            "an offset of its own": (
                "transpose: offset zero",
                "narrow: offset forgotten",
                "expand: offset zero",
                "diagonal: offset zero",
            ),
            "must share its storage": (
                "transpose: of a copy",
                "narrow: index_select",
                "expand: repeats",
                "diagonal: a copy",
            ),
            "have the strides that torch would give it": "expand: every size of 1",
            "A function that lets torch make the view": (
                "transpose: lets torch",
                "narrow: slices",
                "expand: lets torch",
                "diagonal: lets torch",
            ),
        },
        told=(
            "`x.t()` moves nothing",
            "It hands you a second reading of the same bytes",
            "lets you decide them yourself",
            "a dimension is counted from 0",
            "the others keep theirs",
        ),
    ),
    "view_strides": Rules(
        asked={
            "returns the strides of the view": (
                "contiguous or nothing",
                "never merges",
                "steps not scaled inside a chunk",
            ),
            "or `None`": ("raises instead of None", "False instead of None"),
            "when no strides can do it": ("always row-major", "sorted strides are fine"),
            "must never stand in the way": "ones stand in the way",
            "making a tensor or an array and asking it": ("asks torch", "asks NumPy"),
        },
        free={
            "dimension of size 1 does not matter": "any step where the size is 1",
        },
        told=(
            "returns at once, or complains",
            "It never looks at the data",
            "Decide it yourself",
            "Both shapes hold the same number",
        ),
    ),
    "broadcast": Rules(
        asked={
            "a size of 1 is stretched by a step of 0": ("strides kept", "strides of b kept"),
            "It returns three tuples": ("the longer one first", "strides padded at the end"),
            "the strides with which `a` and `b` are read": "row-major strides",
            "aligned at their last dimension": "aligned at the first",
            "does not have counts as size 1": ("only as many as the shorter", "scalars refused"),
            "stretched to whatever the other is, 0 included": (
                "the larger size",
                "zero fits everything",
            ),
            "sizes that differ where neither is 1": ("no clash noticed", "multiples are stretched"),
            "raise `ValueError`": ("a RuntimeError", "an assertion", "None on a clash"),
            "`broadcast_shapes`, `expand` and their like": ("asks torch for the shape", "NumPy's"),
            "nor is making a tensor": "expands",
        },
        free={
            "whose common size is 1 does not matter": "any step where the common size is 1",
        },
        told=("repeats nothing in memory", "Write `broadcast(", "Work from the numbers here too"),
    ),
    "mended_loss": Rules(
        asked={
            "the mean squared error": ("the sum", "the root", "absolute", "half the sum"),
            "as a 0-dim tensor": "a number",
            "of their dtype": ("always float32", "always float64"),
            "gradients flow back to the prediction": (
                "a fresh tensor",
                "no_grad",
                "detaches the prediction",
                "a leaf of its own",
            ),
            "Either argument may come as (B,) or as (B, 1)": ("the colleague's", "a bare squeeze"),
            "Anything else": ("flattens anything", "a third dimension of 1", "a row is a batch"),
            "two different batch sizes included": (
                "flattens, asks nothing",
                "a batch of one stretched",
            ),
            "raises `ValueError`": ("asserts", "a TypeError", "prints", "warns"),
        },
        told=(
            "A colleague trains",
            "The loss goes down a little",
            "This is the loss function",
            "While exploring, `assert` is the quick habit",
        ),
    ),
    "attention_scores": Rules(
        asked={
            "make queries and keys with two linear layers": (
                "no key projection",
                "weights exchanged",
            ),
            "compare every query with every key": ("keys against queries", "causal"),
            "as `nn.Linear` stores them": (
                "no transpose of either",
                "no transpose of the keys' weight",
                "no transpose of the queries' weight",
            ),
            "Head 0 owns the first": ("heads varying fastest", "heads reversed", "heads mixed"),
            "The result has shape": "the heads last",
            "No softmax": "softmax",
            "no mask": "causal",
        },
        told=("The heart of a transformer", "Write `attention_scores(", "but any way is fine"),
    ),
    "result_dtype": Rules(
        asked={
            "the dtype of `a + b`": ("strings", "the tensor must come first"),
            "a tensor with dimensions": ("1-element tensors are 0-dim", "empty tensors are 0-dim"),
            "a tensor with none": ("0-dim tensors are tensors", "0-dim tensors are numbers"),
            "or a Python number": ("True is an int", "floats are float64", "ints are int32"),
            "You may not add": ("adds", "adds on the meta device"),
            "other arithmetic": ("multiplies", "asks with where", "a power", "the larger one"),
            "with copies of them": ("adds copies", "adds new ones"),
            "nor make tensors for it": "adds zeros of their dtypes",
            "nor ask `result_type`": "asks torch",
        },
        free={
            "You may use `torch.promote_types": "ranks and categories",
        },
        told=("in NumPy the same sum is float64", "There is one rule behind all of it"),
    ),
    "model_costs": Rules(
        asked={
            'returns `{"flops": …, "bytes": …}`': "linear: a pair",
            "a multiplication and its addition are two": "linear: one FLOP for two",
            "the bias is too small to count": "linear: bias counted",
            "the input, the weight and the bias are each read once": (
                "linear: no bias bytes",
                "linear: weight for each row",
                "linear: bias for each row",
            ),
            "the output is written once": ("linear: no output", "linear: output read, too"),
            "each element `itemsize` bytes wide": ("linear: four bytes", "linear: elements"),
            "over `batch` sequences of `length` tokens": (
                "gpt: pairs over the whole batch",
                "gpt: context for length",
            ),
            "counting matrix products alone": ("gpt: biases", "gpt: softmax"),
            "Read the sizes from `config`": ("gpt: 600 words", "gpt: width 64", "gpt: two blocks"),
            "four (d_model, d_model) projections": "gpt: three projections",
            "the sum of values weighted by them": "gpt: scores alone",
            "nothing is saved for the causal mask": "gpt: causal half",
            "d_model to d_ff and back": ("gpt: MLP once", "gpt: d_ff is four times"),
            "the LM head, d_model to vocab_size": ("gpt: no head", "gpt: head in every block"),
            "at every position": "gpt: head for the last position",
            "Looking up an embedding multiplies nothing": "gpt: embedding counted",
        },
        told=("Before you measure anything", "Two functions", "shows its fields"),
    ),
}
