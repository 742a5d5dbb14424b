"""The rules of lab 04; :mod:`tests.phases.rules` says how to read them."""

from tests.phases.rules import Rules

RULES = {
    "winning_key": Rules(
        asked={
            "the highest key whose slot holds code": ("winner: the highest", "the backend first"),
            '`"cpu"`, `"cuda"` or `"meta"`': ("autocast for meta", "autocast only of the CPU"),
            '`"dtype"`': ("half precision is not cast again", "no Autograd for integers"),
            '`"requires_grad"`': "requires_grad decides about Autograd",
            '`"conj"`': "no conjugate bit under inference mode",
            "whether it was *made* inside": (
                "outside, an inference tensor has no ADInplaceOrView",
                "inference mode marks calls alone",
            ),
            "the contexts that are open while the call is made": (
                "only the innermost context counts",
                "inside, nobody has ADInplaceOrView",
            ),
            '`"no_grad"`': "no_grad takes Autograd away",
            "autocast for the CPU and for CUDA": "autocast for meta tensors",
            "the highest first": "Conjugate is above Autograd",
            "Leave `BackendSelect` out": "BackendSelect is named",
            "the one whose code runs first": "the highest key wins, code or not",
            "| `mul` | falls through | code | falls through | code | code |": (
                "winner: mul has no Conjugate code",
                "winner: mul is autocast as mm is",
            ),
            "| `t` | falls through | code | code": "winner: t has no ADInplaceOrView",
            "Keys of a kind that differs by device end in its name": "Autograd without the device",
            "asking torch for the keys of a real tensor": "a real tensor is asked",
        },
        free={"a tuple of names": "a list of names"},
        told=(
            "A call starts with a set of keys",
            "You get a tensor as a description",
            "Write",
            "Their slots:",
        ),
    ),
    "OpLog": Rules(
        asked={
            "each operator that reaches it": ("each operator once", "factories missed"),
            "it leaves in `log.ops` a list of pairs": "one list for all",
            "in the order of the calls": "the last call first",
            "full name with its overload": ("the packet's name", "Python names"),
            "of the tensors among its arguments": (
                "shapes of the results",
                "shapes as a tuple of one for no tensor",
            ),
            "positional ones first": "keywords first",
            "then those given by keyword": "keywords are not looked at",
            "A list of tensors, as `torch.cat` takes one": "lists are not looked into",
            "The program must not notice": (
                "nothing is returned",
                "the result is a copy",
                "keywords are dropped",
            ),
            "Two logs share nothing": "one list for all logs",
            "both hear what is called in there": "the outer log is deaf",
            "goes on below what it has": "a new list on entering",
        },
        free={"a list of the shapes, as tuples": "shapes as lists"},
    ),
    "linear_trace": Rules(
        asked={
            "depends on the number of dimensions of `x`": (
                "addmm whatever the shape",
                "a batch of one needs no view",
            ),
            "on whether there is a bias": "t after view without a bias as with one",
            "whether Autograd is there to open it": "opened under inference mode",
            "with one to four dimensions": (
                "four dimensions are not viewed",
                "a vector with a bias is not viewed",
                "a vector is viewed too without a bias",
            ),
            "`bias` says whether there is one": "inference without a bias is opened",
            "`inference` whether it all happens": "inference without a bias is opened",
            "the list of operators that a mode hears, in order": (
                "t before view with a bias as without one",
                "a vector calls mv",
            ),
            "by their names without `aten.` and overload": ("full names", "squeeze"),
            "the name of the result's `grad_fn`": ("SqueezeBackward0", "no grad_fn number"),
            "or `None` where there is none": "inference: the name None",
            "running a linear layer inside of it": "a layer is run",
        },
        told=("Find the rule by listening",),
    ),
    "Dispatcher": Rules(
        asked={
            "the names of all keys, the highest first": ("lowest first", "alphabetical"),
            "in any order": "a composite before its impl replaces it for good",
            "what is registered again replaces": (
                "the first impl stays",
                "the first composite stays",
                "the first fallback stays",
            ),
            "`impl(op, key, kernel)`": "all dispatchers share a table",
            "for those of `keys` at which the operator has no `impl`": (
                "a later composite beats an impl",
                "a composite at every key",
                "a composite again forgets its other keys",
            ),
            "neither an `impl` nor a `composite`": (
                "fallbacks before composites",
                "a fallback for everybody",
            ),
            "or `FALLTHROUGH`": (
                "a fallthrough that is called",
                "a composite that falls through is called",
            ),
            "`keys` is a frozenset": "a list in place of a frozenset",
            "from the highest to the lowest": "the lowest key first",
            "it goes on to the next": (
                "one fallthrough and no more",
                "an impl that falls through asks the composite",
            ),
            "returns its result": "the result is lost",
            "those of `keys` that are *lower* than the one that won": (
                "rest holds what fell through",
                "rest holds the winner",
                "rest is every lower key of the order",
            ),
            "called as `kernel(op, rest, value)`": "a fallback gets all keys",
            "with *all* the keys of the call": (
                "a composite gets the rest",
                "a composite gets what has not fallen through",
            ),
            "a hole is an error, not a fallthrough": "a hole falls through",
            "names the operator and the key": (
                "a hole's message lacks the key",
                "a hole's message lacks the operator",
                "another exception",
            ),
            "So does a call that has no key left": (
                "no key left: None",
                "no key left: no name",
            ),
        },
        told=(
            "some thousand lines of C++",
            "The idea fits on a page",
            "A kernel that wants the next one to run",
            "That is a *redispatch*",
        ),
    ),
    "FlopCounter": Rules(
        asked={
            "and in the backward as well": ("the backward is not counted", "gradients on only"),
            "with an int `flops`": "a float",
            "0 at first": "begins at one",
            "2·M·K·N": ("multiply-adds", "K of the wrong side", "the inner size twice"),
            "for each matrix of a batch": ("only the first matrix of a batch", "attention missed"),
            "Products arrive as `mm`, `addmm`, `bmm` and `baddbmm`": (
                "baddbmm is forgotten",
                "bmm is forgotten",
                "addmm missed",
            ),
            "the sum is too small to count": ("addmm counts its sum", "the sum as a factor"),
            "Nothing else counts": ("mul counts", "every sum counted, too"),
            "the program must not notice": "keywords are dropped",
            "the count must be the same": ("no composites", "only linear is opened"),
            "whose operators are calls like any other": "the opened is run twice",
            "unless it is entered again": "composites are opened unheard",
            "`torch.utils.flop_counter` and the like": "torch's own counter",
        },
        free={
            "`linear` and `matmul` are the composites that hold products": (
                "linear and matmul alone are opened"
            ),
        },
        told=("In lab 01 you *predicted*", "without a line of the model being touched"),
    ),
    "Quantity": Rules(
        asked={
            "refuses to add a length to a time": "any units may be added",
            "a dict from a unit to its power": "only the names of the units are compared",
            "no power in it is 0": "one power a unit",
            "is a `Quantity` again": "a mean of the plain values",
            "with the values that torch computes": (
                "mean is divided twice: sum drops keepdim",
                "keywords are dropped",
            ),
            "also where no unit is left": "no unit, no quantity",
            "operands keep their units": "mul writes into its operand",
            "Plain numbers and plain tensors have no units": (
                "a plain number may be added",
                "a plain operand fits every unit",
                "div of a plain tensor by a quantity",
            ),
            "both operands must have the same units": (
                "the order of units matters",
                "the first operand's units alone are looked at",
            ),
            "powers are added": (
                "mul overwrites powers",
                "mul writes into its operand",
                "mul of two equal units",
            ),
            "powers are subtracted": "quotients add powers",
            "`neg`, `abs`, `sum`, `mean`, `t`, `view` | stay": (
                "a minus that keeps no unit",
                "the sum loses the unit",
                "view is forgotten",
            ),
            "powers are halved, and each must be even": (
                "sqrt halves with a floor",
                "sqrt halves to fractions",
                "sqrt asks for the sum of the powers",
                "sqrt refuses negative powers",
                "sqrt of no units is refused",
            ),
            "powers change their sign": "reciprocal keeps units",
            "the operand must have none": ("exp drops units", "log may have units"),
            "What breaks a rule raises `ValueError`": "TypeError for units",
            "an operator that is not in the table `NotImplementedError`": (
                "what is not in the table keeps units",
                "what is not in the table: ValueError",
            ),
            "only begins or ends like one of these": (
                "what starts or ends like a name",
                "in-place is taken for its twin",
            ),
        },
        told=(
            "Nothing in PyTorch must change for it",
            "How such a wrapper is made is given",
            "Write `__torch_dispatch__`",
        ),
    ),
    "read_slot": Rules(
        asked={
            "finds the line of a key in such a text": (
                "a key that ends so",
                "a key that begins so",
                "anywhere in the line",
            ),
            '`"composite"` (torch says `math kernel`)': "the kind as torch says it",
            '`"default"` (torch says': "the default is composite",
            '`"batched"`': "batched slots are kernels",
            '`"fallback"` (`backend fallback`)': "every fallback is a fallthrough",
            "whatever it says in brackets": "fallthrough by its kind",
            "where the key has no line": "no line: None",
            "without folders": "the folders stay",
            "without the number of the line": "the number stays",
            '`"RegisterCPU_0.cpp"`': "no suffix",
            '`""` where there is nothing': "no line: None",
        },
        told=("is the truth, one line for each key",),
    ),
    "account": Rules(
        asked={
            "how many of them do any work": "views launched",
            "It runs `model(tokens)`": ("under inference mode", "under no_grad"),
            "takes the sum of the logits": ("the sum only with a backward", "the logits' mean"),
            "if `backward` is true": "always a backward",
            "every operator that a mode hears meanwhile": "the backward is out of hearing",
            "the sum among them": "the sum is not counted",
            "one tensor or several": "lists that are returned are not looked into",
            "lies in the storage of one of its arguments": (
                "views by the schema",
                "data_ptr of the tensor",
            ),
            "and nothing was written": "in-place operators are views",
            "`clone`, `copy_` and `_to_copy`": (
                "clone alone is a copy",
                "copies that are in place are rest",
            ),
            "`mm`, `addmm`, `bmm`, `baddbmm`": ("addmm is rest", "bmm among the rest"),
            "everything else": "the mode counts its own looking",
            "It returns a dict with these four counts": "a dict without the views",
            "which is all but the views": ("launches count views", "copies start nothing"),
            "they slice, split, join, cast, multiply and write in place": (
                "views by a list of names"
            ),
        },
        told=("Write `account(model, tokens, backward)`",),
    ),
}
