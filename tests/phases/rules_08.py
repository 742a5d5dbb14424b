"""The rules of lab 08; :mod:`tests.phases.rules` says how to read them."""

from tests.phases.rules import Rules

FOR_ALL = {
    "No function changes what it is given": {
        "visible": "the padding is written to",
        "pick": "divided in place",
        "attend_cached": "the cache grows in place",
        "from_hf": "taken out of the state",
        "grouped": "means are written back",
        "fine_tune": "in place",
    },
}

RULES = {
    "visible": Rules(
        asked={
            "a bool tensor (B, queries, keys)": ("numbers", "the first row's padding"),
            "True where a query may look at a key": "the other sense",
            "the queries are the *last* `queries` of them": (
                "aligned at the top left",
                "queries stand at the beginning",
            ),
            "with 2 queries and 5 keys, the first query stands at position 3": "one position late",
            "With `causal`": "causal or not",
            "no query sees a position after its own": (
                "the future instead of the past",
                "not even itself",
            ),
            "True where there is a real token": ("padding the wrong way round", "True is padding"),
            "Nobody sees a key that is not real": ("queries are hidden", "everybody sees itself"),
            "is decided by the other rules, like for any other": "padding hides queries too",
            "Without `padding`, B is 1": "no batch",
            "a position that lies `window` or more before its own": (
                "a window one too wide",
                "a window one too narrow",
                "one window for all queries",
                "a window of real tokens",
            ),
            "Of positions after its own, a window says nothing": (
                "a window on both sides",
                "a window is causal",
            ),
            "A query may look where no rule forbids it": (
                "not itself",
                "a window only for the causal",
                "padding or the past",
            ),
        },
        told=("Write `visible",),
    ),
    "MultiHead": Rules(
        asked={
            "four `nn.Linear(d_model, d_model)`": "no bias in the query",
            "nothing else in its state dict": "a buffer",
            "a bool tensor (B, T, T)": ("the first sentence's mask", "a transposed mask"),
            "or (1, T, T)": "a mask for each sentence",
            "True where a query may look": ("the mask the wrong way round", "True hides"),
            "which it is when nobody hands it over": "a mask must be given",
            "everybody sees everything": "the past without a mask",
            "x and the weights are float32 or, both, float64": "sums in float32",
            "of the same dtype": "float32 whatever comes",
            "Queries, keys and values are three linear maps of x": "queries and keys exchanged",
            "Head h has the channels from h·D/H on": (
                "every H-th channel",
                "a view that mixes positions",
            ),
            "Within a head": "one head for all",
            "a query's scores are its dot products with the keys": "backwards",
            "divided by √(D/H)": (
                "not divided",
                "divided by the root of D",
                "divided by D/H",
                "divided by the root of H",
            ),
            "Softmax over the keys": "softmax over the queries",
            "that it may look at gives its weights": (
                "hidden after the softmax",
                "scores of zero",
                "hardly hidden",
            ),
            "The heads' results stand side by side again": "not exchanged on the way back",
            "A query that may look at nothing gets zeros for a sum": (
                "a blind row sees all",
                "zeros only where nobody sees anything",
            ),
            "before `output`, that is": "zeros after the output",
            "Nothing becomes NaN by it": "minus infinity",
            "no gradient either": ("NaN in the gradient alone", "weights without gradients"),
            "no attention from a library": "PyTorch's own",
            "At most 50 lines": "too many lines",
            "with all helpers of your own": "too many lines in a helper",
        },
        free={
            "linear layers and tensor operations such as `@` and `softmax`": (
                "head by head, einsum",
                "softmax by hand",
            ),
            "A statement is one line, however you break it": "broken lines, and words about them",
            "blank lines, comments, docstrings and imports are free": (
                "broken lines, and words about them"
            ),
        },
        told=("Returned is",),
    ),
    "attend_cached": Rules(
        asked={
            "causal attention": "nothing is hidden",
            "with several heads": (
                "four heads",
                "not put side by side",
                "positions and heads are not exchanged",
                "divided by the root of D",
            ),
            "`x` is (B, T, D), the T new positions": "one sentence's past",
            "for `query`, `key`, `value` and `output`": ("no output map", "no bias at the end"),
            "as a MiniGPT's attention has them in its state dict": "weights not transposed",
            "`cache` is `None`, or a pair of the keys and the values": (
                "old values are forgotten",
                "keys and values exchanged",
            ),
            "All of them are float32, or all float64, and so is what you return": (
                "float32 whatever comes"
            ),
            "Return `(output, (keys, values))`": ("values and keys", "keys are remembered scaled"),
            "the keys and values of all S + T positions": (
                "only new ones are returned",
                "what was old is cut away",
            ),
            "the old ones first": "new ones first",
            "Each new position sees all the old ones": (
                "is_causal",
                "is_causal, but for one token",
            ),
            "itself": "not itself",
            "and those of the new ones that come before it": "hidden in the first call only",
            "The cache that you are given counts as it is": "the cache is not used",
            "wherever it comes from": "a memory of its own",
            "stays as it was: somebody may go on from it twice": "the cache grows in place",
        },
        free={
            "How you compute attention is up to you": "by hand, with @",
            "PyTorch's own functions are welcome": "a mask for PyTorch's own",
        },
        told=("Whoever writes a sentence word by word",),
    ),
    "pick": Rules(
        asked={
            "It picks one word for each row": "one u for all",
            "what is returned (N,) int64": ("a column", "int32"),
            "Nothing is drawn at random in it": "new dice",
            "a row's word is the one with the largest logit": "the smallest",
            "the first of them if there are several": "the last of the largest",
            "`u`, `top_k` and `top_p` are then of no account": "almost zero",
            "Otherwise, in this order": ("the temperature comes last", "top-p comes first"),
            "the logits divided by the temperature": (
                "times the temperature",
                "no temperature",
                "the temperature after softmax",
            ),
            "of equal ones, the one with the smaller id ranks higher": (
                "equal ones rank the other way round"
            ),
            "only the first `top_k` of the ranking stay": (
                "all that are as likely as the k-th",
                "one more than k",
            ),
            "all of them if there are fewer": "never fewer than k",
            "of what has stayed, with probabilities that sum to 1 again": (
                "sums of all, not of what has stayed"
            ),
            "only the shortest beginning of the ranking stays": (
                "one too few",
                "one too few, but never none",
                "those above top_p",
            ),
            "that sums to `top_p` or more": "reached, and one more",
            "What stays sums to 1 again": "what stays doesn't sum to 1",
            "Go through the words in the order of their ids": "in the order of the ranking",
            "picked is the first word": ("the rank for the id", "the word before"),
            "the sum is larger than the row's `u`": "the sum reaches u",
        },
        told=("Write `pick", "1.", "2.", "3.", "4.", "is not asked"),
    ),
    "generate": Rules(
        asked={
            "Return a list with the new ids of each prompt": ("prompts, too", "sorted by length"),
            "a list of ints": "tensors of one number",
            "the likeliest word, again and again": "pad is never said",
            "up to and with the first `eos`": ("without the eos", "on after the eos"),
            "at most `limit` of them": ("one word more", "one word fewer", "a word for nothing"),
            "Each prompt gets what it would get alone": (
                "all end with the first",
                "an eos in the prompt ends it",
            ),
            "All of them go through the model together": "one prompt after the other",
            "the T *new* columns": "the whole text each time",
            "where each token stands in its own text": (
                "columns are positions",
                "later positions are columns",
                "later positions stay",
                "later positions begin anew",
            ),
            "the first of a prompt at 0": "counted from 1",
            "any number from 0 on will do": "minus one for padding",
            "no larger than the largest of a real one": "large numbers for padding",
            "True where a real token is": ("everything is real", "True is padding"),
            "for all S columns so far": "padding is not hidden later",
            "the new ones too": "padding of the new column",
            "`pad` may also be a word of the prompts": "what equals pad is padding",
            "later what the call before returned": ("no memory", "the first memory"),
            "what comes after each of the T tokens": "the first column's logits",
            "Behind padding it means nothing": "padded on the right",
            "The first call gets the whole prompts": "the prompts column by column",
            "each later one gets one column": "the whole text each time",
            "No call is made whose answer is not needed": (
                "one call too many",
                "always `limit` calls",
                "the last call's end decides",
            ),
        },
        free={
            "Where there is no real token": "those that have ended are padding",
            "Each column comes after all those of earlier calls": (
                "padded on the right, ends are looked up"
            ),
            "what you hand over for it is up to you": "those that have ended are padding",
        },
        told=(
            "Write `generate",
            "none of them empty",
            "`model(tokens, positions, padding, cache)` returns",
        ),
    ),
    "flops": Rules(
        asked={
            "A MiniGPT of a `config`": ("one layer", "an MLP of four times the width"),
            "writes `new` words after it, one or more": "one pass too few",
            "how many floating-point operations": "numbers, not bytes",
            "two operations for each multiplication and its addition": "multiplications only",
            "the four maps of attention": "three maps",
            "scores, weighted sums": ("no weighted sums", "one head's scores"),
            "the MLP's two maps": "half of the MLP",
            "the LM head": ("no head", "a head in each layer"),
            "Nothing else counts": "a softmax",
            "no bias either": "biases",
            "hidden ones too": "the past only",
            "every token that goes through the model goes through the head": (
                "the head reads the last token"
            ),
            "the bytes of keys and values": ("keys only", "one head's cache"),
            "of that many tokens": "the whole context",
            "in all layers": "one layer's cache",
            "with `itemsize` bytes a number": "float32",
            "The first new word comes from a pass of the whole prompt": "the prompt one by one",
            "Each further one takes a pass of its own": "one pass too few",
            "without a cache, of all tokens so far": "the prompt again and again",
            "with a cache, of the last one alone": ("cached or not", "the other way round"),
            "still meet the keys of all tokens so far": (
                "one key too few",
                "one key only",
                "the prompt's keys only",
            ),
            "The last new word itself goes through nothing": "one pass too many",
        },
        told=("Write two functions",),
    ),
    "from_hf": Rules(
        asked={
            "a dict with the same weights as a MiniGPT has them": (
                "norms are exchanged",
                "the MLP's biases are forgotten",
            ),
            "holds its weight as (in, out)": ("the embedding is turned", "not transposed"),
            "So do all four of a block": (
                "square ones are not turned",
                "only what doesn't fit is turned",
                "the MLP is not turned",
            ),
            "query, key and value side by side": (
                "cut along the other dimension",
                "every third channel",
            ),
            "in this order": ("key before query", "value before key"),
            "`lm_head.bias` may be missing": ("a bias must be there", "never a bias"),
            "then it is zeros": ("no bias at all", "a bias as wide as the stream"),
            "`lm_head.weight` may be missing": ("a head must be there", "always tied"),
            "the head shares the embedding's weight": "without a head the bias is forgotten",
            "as many blocks as the names say": ("two blocks", "at most ten blocks"),
            "Old files also hold `attn.bias` and `attn.masked_bias`": "masks are carried over",
            "what is returned has only what MiniGPT has": "the masked_bias is carried over",
            "returns `model_class.from_pretrained(folder)`": ("the pair", "the class is ignored"),
            "in evaluation mode": "in training mode",
            "doesn't let anything pass in silence": "a warning",
            "it raises `FileNotFoundError`": (
                "what is nowhere is an OSError",
                "a ValueError for all",
            ),
            "has a tensor that the class has no place for": "dropped in silence",
            "or lacks one that the class needs": "drawn in silence",
            "it raises `ValueError`": "a KeyError",
            "the message names each such tensor": (
                "no names",
                "only the first name",
                "only one kind of names",
            ),
        },
        told=("Write two functions", "What the names don't say"),
    ),
    "grouped": Rules(
        asked={
            "with `query`, `key`, `value` and `output`, linear maps with a bias": "no bias",
            "and nothing else in its state dict": "a mask that is a buffer",
            "`query` and `output` are as in MiniGPT": "queries in another order",
            "`key` and `value` map to `kv_heads` heads of D/H channels each": (
                "as wide as the queries",
                "kv_heads is the size of a group",
            ),
            "Query head h looks at key and value head h // g": (
                "repeat",
                "values are repeated in another order",
            ),
            "Its `forward(x)` is causal": "not causal",
            "all the rest is as in `CausalSelfAttention`": (
                "divided by another root",
                "not put side by side",
            ),
            "x and the weights may be float64, too": "sums in float32",
            "which makes such a module of a trained `CausalSelfAttention`": "four heads",
            "`query` and `output` are copies of its own": ("shared storage", "output is drawn"),
            "the weights and biases of a key head": (
                "the bias of the first head",
                "biases are forgotten",
            ),
            "(and of a value head)": ("values are made of keys", "values are the first ones"),
            "are the means of those of its group": (
                "the first head of each group",
                "sums",
                "every kv-th head is a group",
                "means of neighbouring channels",
            ),
            "What it returns is independent of `attention`": "the same query",
            "which is not changed": "means are written back",
        },
        free={"PyTorch's own functions are welcome": "a subclass, enable_gqa"},
        told=(
            "The cache is what grows",
            "today's models",
            "Change MiniGPT's architecture that way",
            "Write two things",
            "`kv_heads` divides H",
            "`attention` has no config",
        ),
    ),
    "fine_tune": Rules(
        asked={
            "the state dict of a `MiniGPT(config)`": "names of its own",
            "that has begun with `weights`": "from nothing",
            "learnt for `steps` steps": "nothing is learnt",
            "no optimizer takes more": "a hundred steps, whatever is asked",
            "on unseen lines in the imperfect, its perplexity must come below 2.8": (
                "old lines only",
                "a hundredth of the learning rate",
            ),
            "on unseen lines of all that it knew, it must stay below 2.15": "new lines only",
            "The same arguments give the same bits": "no seed",
            "whatever else has been drawn in between": "dice of everybody",
            "and `weights` stay as they are": "in place",
        },
        free={
            "How you do it is up to you": ("half and half", "a generator of its own, two losses")
        },
        told=(
            "is a trained MiniGPT",
            "It has seen its forms only in lists",
            "Teach it",
            "as in lab 07",
            "has lines in the imperfect",
            "gives every word another number",
            "a few seconds",
        ),
    ),
}
