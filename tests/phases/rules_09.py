"""The rules of lab 09; :mod:`tests.phases.rules` says how to read them."""

from tests.phases.rules import Rules

FOR_ALL = {
    "No function changes what it is given": {
        "compare_runs": "sorted where they lie",
        "self_times": "the list is sorted in place",
        "first_bad": "an attribute stays",
    },
}

RULES = {
    "compare_runs": Rules(
        asked={
            "at least one each": "two values or more",
            "a tuple of three floats, the lower quartile, the median and the upper quartile": (
                "the mean for the median"
            ),
            "With the n values sorted": ("not sorted", "in the order of measuring"),
            "the quantile of share p stands at place p · (n - 1)": (
                "the other convention of quartiles",
                "p times n",
            ),
            "between two places it is interpolated linearly": (
                "the nearest value",
                "the value below",
                "the middle between two",
            ),
            "how many times as fast it is now": ("a rounded ratio", "how much is saved"),
            "the median before by the median after": (
                "after by before",
                "the means' ratio",
                "the best runs' ratio",
            ),
            '`"faster"` if the upper quartile of after': (
                "the medians decide",
                "the words swapped",
            ),
            "lies below the lower one of before": (
                "touching is enough",
                "all runs decide",
                "quartile against median",
            ),
            '`"slower"` if the lower quartile of after lies above the upper one of before': (
                "never slower",
                "two percent decide",
            ),
            '`"can\'t say"` in any other case': "slower in all other cases",
            "where one of the lists has fewer than five values": (
                "one long list will do",
                "ten in all",
                "five are too few",
                "four will do",
                "any number of runs",
            ),
            "Lists stay as they were given": ("sorted where they lie", "sorted in place"),
        },
        told=("Somebody has changed a training step", "Write `compare_runs", "It returns a dict"),
    ),
    "self_times": Rules(
        asked={
            "Here only name, times and lane matter": "ops alone",
            "On a lane, two events either don't overlap or one lies inside the other": (
                "only one is closed",
                "still open when it ends",
            ),
            "where one ends as the other starts, they don't overlap": "what touches lies inside",
            "Of two with the same start and the same end": "two alike lie beside each other",
            "the one that stands earlier in the list is the outer one": (
                "of two alike the later one is outside",
                "of two alike the first by name is outside",
            ),
            "Events of different lanes have nothing to do with each other": (
                "one lane",
                "the stack is kept from lane to lane",
            ),
            "The list has no order that you could rely on": (
                "starts only",
                "the list's order",
                "the shorter one first",
            ),
            "for each name a tuple": ("what takes no time for itself is left out", "self first"),
            "of whole numbers": "the mean of a call",
            "over all lanes": "the last lane's numbers",
            "how many events have the name": "one inside its own name is no call",
            "the sum of what is left of each of their durations": (
                "one inside its own name has no self time",
                "what was there before the recursion",
            ),
            "without the events directly inside it": (
                "all descendants are taken off",
                "nothing is taken off",
            ),
            "`total`: the sum of their durations": "only the first of a name adds",
            "An event that lies inside another of its own name": (
                "the total counts all",
                "only the outermost adds",
            ),
            "however deep": "only the parent's name",
            "the list may be empty": "some event there must be",
        },
        told=("A trace is a list",),
    ),
    "lanes": Rules(
        asked={
            "`None` means that there is no such tie": "None is a tie",
            "for each lane of the trace": "calls are no work",
            "how long at least one event ran there": "from first to last",
            "Events may overlap, and lie in each other": (
                "durations are summed",
                "the last end, not the latest",
            ),
            "A range is a label and no work": "ranges work",
            "a lane that has nothing else is busy for 0": "a lane with labels alone is missing",
            "the longest time": ("the sum of the gaps", "the last gap"),
            "nothing ran on any lane of the device": (
                "the longest gap of one stream",
                "only the first stream",
                "the host's gaps, too",
                "kernels only",
            ),
            "between its first event and its last": (
                "from the trace's beginning",
                "to the trace's end",
            ),
            "0 where there is no such time, or no device": "no device, no gap",
            "for each name of a range or an op on the host": (
                "calls have names, too",
                "ops alone",
                "only what has launched something",
            ),
            "the sum of the durations of these events": "the last one's time",
            "the sum of the durations of all device events": (
                "copies are not counted",
                "how many were started",
            ),
            "that were started from inside them": ("by the device's clock", "the innermost alone"),
            "lies on the same lane as the event": "any thread's calls",
            "and within its time, ends included": ("ends excluded", "the call's start alone"),
            "one call can have started several device events": "one device event a call",
            "of some device events the trace has no call": "each device event has a call",
        },
        told=(
            "Now there is a device",
            "The lanes of the host",
            "The kinds of the host's events",
            "A call that starts something",
            "Write `lanes",
            "So for each piece of your code",
        ),
    ),
    "bottleneck": Rules(
        asked={
            "returns its kind": (
                "the number of the kind",
                "the name of the longest event",
                "a brake, whatever it is",
            ),
            "It is the one that takes the most time": ("how often, not how long", "no waiting"),
            "a kernel runs on the device": ("the host before the device", "the device's view"),
            "on any of its lanes": "one stream",
            "else, a copy runs there": ("copies before kernels", "copies are work"),
            "a range with `DataLoader` in its name": (
                "one name of the loader",
                "the loader's time is Python's",
            ),
            "when the device had run dry": ("waiting while it is dry", "any wait there ever was"),
            "a call with `Synchronize` in its name": "one name of waiting",
            "else, the host is in an op or a call": "calls only are launches",
            "the host may be in a range, and in nothing else": "ranges are launches",
            "where a kernel or copy ends and no other runs": "copies are waited for",
            "before the first of them it has not run dry": "dry from the beginning",
            "any way that finds the largest will do": "the traces it has seen",
            "What takes longest on the host is often innocent": "the longest line of the host",
        },
        free={
            "you needn't keep all of them to the nanosecond": (
                "walk through the device's gaps",
                "four hundred moments, evenly",
            ),
        },
        told=(
            "draws a trace of two training steps",
            "`KINDS` has the six",
            "one account has more than half",
            "Look at some traces first",
        ),
    ),
    "peak": Rules(
        asked={
            "the largest number of bytes that were alive at once": (
                "the largest block",
                "a block and the one before",
            ),
            "who was alive then": (
                "what was freed is still listed",
                "freed blocks stay with 0 bytes",
                "the living in the end",
            ),
            "at the first moment at which that number was reached": "the last moment",
            "a list of pairs `(address, bytes)`": ("addresses alone", "a dict"),
            "in the order in which they were handed out": (
                "by size",
                "by address",
                "the newest first",
                "an address keeps its place",
            ),
            "the number of bytes that were never freed": (
                "all that was handed out",
                "the peak's bytes that stay",
                "how many were never freed",
            ),
            "its address may then be handed out again": "an address lives once",
            "was never handed out in this list": "handed out somewhere in the list",
            "leave it out of everything": (
                "blocks from before are taken off",
                "the sum of all entries",
            ),
            "Without any block the answer is `(0, [], 0)`": "some block there must be",
        },
        told=("A profile with", "Write `peak", "a tuple of three"),
    ),
    "faster_loss": Rules(
        asked={
            "which returns the same two numbers": "the share first",
            "A target of -100 doesn't count": ("word 0 doesn't count", "a mean over all places"),
            "a sentence without any target that counts is left out": (
                "empty sentences count",
                "nothing by nothing",
            ),
            "tensors without dimensions, float32": ("a float64 share", "one dimension"),
            "on the device of the logits": "made on the CPU",
            "the mean over sentences": ("the mean of all tokens", "the sum over sentences"),
            "of the mean over a sentence's targets": "a mean over all places",
            "its gradient is that of `slow_loss`": (
                "cut off from its logits",
                "half of the gradient is stopped",
            ),
            "the share of all targets that count": (
                "the share of all places",
                "the share, a mean of means",
                "ignored ones guessed as word 0",
                "how many are right",
            ),
            "for which the largest logit is the target's": "the smallest logit",
            "As many operators run for twelve sentences as for three": "a loop over sentences",
            "of more tokens in a sentence that is true, too": "a loop over tokens",
            "tensors of at most 1.5 times the logits' bytes in all": "float64 for all",
            "room for one tensor of the logits' size": (
                "the softmax for the share",
                "a copy first",
                "one-hot targets",
            ),
            "It asks for no number: no `.item()`": "a number is asked for",
            "no `if` about a tensor's values": "an if about values",
            "no result whose size depends on values": "chosen by a mask",
            "must be made on the device of the logits": ("made on the CPU", "weights on the CPU"),
        },
        told=(
            "The next cell holds",
            "Its values are right",
            "is (B, T, V), float32",
            "There are no ties",
            "What is asked beside the values",
            "On a GPU each of these waits",
            "tensors of the device `meta`",
            "these counts are *claims*",
        ),
    ),
    "first_bad": Rules(
        asked={
            "finds the first module": ("the last one", "remembered from call to call"),
            "whose output isn't finite": ("NaN only", "the output's sum", "not one is finite"),
            "in the order in which modules return": (
                "the order of registration",
                "the parts that run before",
            ),
            "the module's name as in `model.named_modules()`": (
                "the children only",
                "the last word of the name",
                "the class's name",
                "leaves only",
            ),
            'with `""` for the model itself': "not the model itself",
            '`"nan"` if the output holds a NaN': ("infinity goes first", "nan if all are"),
            '`"inf"` if it holds infinities and no NaN': "plus infinity only",
            "whether the input of that module, in that call, was finite": (
                "the model's input",
                "fine as long as no NaN",
                "fine if one is",
                "a tensor of one bool",
                "not fine",
            ),
            "If all outputs are finite it returns `None`": "False for all is well",
            "a module may be called several times": (
                "a module's last call",
                "a module's first call",
            ),
            "no hook is left on it": (
                "hooks stay",
                "hooks stay if all is well",
                "one hook stays",
            ),
            "its mode": ("evaluated from now on", "in training mode"),
            "and attributes are the same": "an attribute stays",
            "the root of x where x is positive": "a little under the root",
            "and 0 where x is 0 or negative": (
                "negative roots are NaN",
                "the root of the size",
                "zero and below are one",
            ),
            "Its gradient is 1/(2√x) where x is positive": "gradients are cut",
            "however small": (
                "a little under, a little off",
                "not too small",
                "normal numbers only",
            ),
            "and 0 where x is 0 or negative. A NaN": ("one where", "clamped at 0"),
            "A NaN stays a NaN": "NaN is hidden",
            "x has any shape": "one dimension",
            "float32 or float64": "float32 for all",
        },
        free={
            "The run may go on to its end": "a hook for each name",
            "or break off there": "stops at the first, writes into zeros",
        },
        told=(
            "A loss is NaN",
            "so the last place tells nothing",
            "Write two functions",
            "makes small models",
        ),
    ),
    "worse_in_half": Rules(
        asked={
            "without what earlier steps have spoilt": "what float16 has computed is handed on",
            "`x` is float32": "the first input is rounded",
            "the float32 result of a step is the right input of the next": (
                "float16 all the way",
                "each step gets x",
            ),
            "Each step is computed a second time": "only the result is rounded",
            "with its right input converted to float16": "bfloat16",
            "so it returns float16": "only the input is rounded",
            "a list with a tuple for each step, in order": "steps of one name",
            "`(name, overflowed, vanished, worst)`": "swapped counts",
            "how many numbers are finite in float32": ("infinite in both", "shares, not counts"),
            "and not in float16": (
                "NaN is not counted",
                "above the largest number",
                "plus infinity only",
            ),
            "how many are 0 in float16": "below the smallest normal number",
            "and not in float32": "zero in both",
            "of all other numbers": (
                "what has vanished is wrong by all of it",
                "overflow is an infinite error",
            ),
            "that are finite and not 0 in float32": "zeros are asked, too",
            "the largest relative error": ("the absolute error", "the mean error"),
            "the difference of the two": "without abs",
            "in float32, by": "compared in float16",
            "by the size of the right one": (
                "by float16's size",
                "by the largest of the right ones",
                "signs stay",
            ),
            "0.0 where there are none": ("something is always left", "NaN where nothing is left"),
            "The counts are Python integers": "tensors",
            "`worst` is a float": "worst is a tensor",
        },
        told=("A computation is a list of steps",),
    ),
    "report": Rules(
        asked={
            'The kind is `"range"` or `"op"`': "ops by their names",
            "it lies around each training step": ("tables with a forward", "the step's self time"),
            "the model's `MiniGPTConfig`": "the recorded model",
            "the number of tokens *of one step*": (
                "steps counted twice",
                "the hours of all steps' tokens",
                "one step of all the time",
            ),
            "the name of the op with the largest self time": (
                "the largest total",
                "the most calls",
                "a range may be first",
            ),
            "its self time": "the total's share",
            "by the time of all steps": (
                "the share of one step",
                "by the time of the ops",
                "by all totals",
            ),
            "how many times as fast the steps would be at best": (
                "one by the share",
                "what is left",
                "one and the share",
            ),
            "if nothing but this operator were made faster": "twice as fast an operator",
            "the share of the steps' time that was spent in no op at all": (
                "seconds, not a share",
                "the time in ops",
            ),
            "the self time of all ranges": ("the step's own time alone", "the ranges' totals"),
            '`"step"` included': "without the step",
            "operations a second": "microseconds",
            "6 · N a token, there and back": ("the forward alone", "multiplications alone"),
            "N are all parameters": ("no head", "matrices only"),
            "but those of the two embeddings": (
                "all parameters",
                "positions count",
                "words count",
            ),
            "the shape of each parameter by its name": "sums of the sizes",
            "as a share of the peak": ("percent", "the peak as a share of it"),
            "how long 10⁹ tokens would take": ("minutes", "10⁹ steps"),
            "at this speed": "hours at the peak",
            "All but the name are floats": "whole hours",
        },
        told=(
            "has been boiled down to a table",
            "It returns a dict",
            "makes such a table",
            "What grading asks",
        ),
    ),
}
