"""Lab 04, exercise 7: Read the real table"""

from utils.checks.exercise import Case, Check, Paste, edited
from utils.checks.lab_solution import lab_solution
from utils.drivers.dispatch import table

read_slot = Check(
    "read_slot",
    parts={"the kind": 2, "the file": 1},
    reads="Reading the table",
)

WORDS = {
    "kernel": "kernel",
    "autograd kernel": "autograd kernel",
    "math kernel": "composite",
    "default backend kernel": "default",
    "batched kernel": "batched",
    "backend fallback": "fallback",
}


read_slot.reference(lab_solution(__name__, "read_slot"))


OPERATORS = ("mm", "linear", "add.Tensor", "add_.Tensor", "t", "softmax.int", "_softmax",
             "relu", "empty.memory_format", "layer_norm", "clone", "matmul", "sum.dim_IntList",
             "dropout", "view", "mul.Tensor")  # fmt: skip
KEYS = ("CPU", "CUDA", "Meta", "AutogradCPU", "AutocastCPU", "ADInplaceOrView", "BackendSelect",
        "Python", "Conjugate", "FuncTorchBatched", "Functionalize", "QuantizedCPU", "SparseCPU",
        "NestedTensorCPU", "AutogradCUDA", "Undefined")  # fmt: skip


@read_slot.cases
def _(draw):
    asked = [
        ("mm", "CPU"), ("mm", "AutocastCPU"), ("mul.Tensor", "AutocastCPU"), ("linear", "CPU"),
        ("linear", "AutogradCPU"), ("t", "ADInplaceOrView"), ("mm", "ADInplaceOrView"),
        ("t", "CPU"), ("mm", "Python"), ("mm", "FuncTorchBatched"), ("matmul", "FuncTorchBatched"),
        ("empty.memory_format", "BackendSelect"), ("relu", "BackendSelect"), ("mm", "Meta"),
        ("mm", "SparseCPU"), ("linear", "QuantizedCPU"), ("add.Tensor", "Dense"), ("mm", "PU"),
        ("mm", "cpu"),
        ("relu", "Undefined"), ("sum.dim_IntList", "Batched"),
        ("empty.memory_format", "Conjugate"),
    ]  # fmt: skip
    asked += [(draw.choice(OPERATORS), draw.choice(KEYS)) for _ in range(12)]
    for op, key in asked:
        dump = table(op)
        shown = f"{key} in the table of aten::{op}, {_line(dump, key)}"
        for at, part in enumerate(read_slot.parts):
            play = lambda f, d=dump, k=key, at=at: f(d, k)[at]  # noqa: E731
            paste = Paste(f"read_slot(driver.table({{}}), {{}})[{at}]", (op, key), {"": "{}"})
            yield Case(part, play, shown=shown, paste=paste)


def _line(dump, key):
    """What stands in the line of a key, in words; all of it is public."""
    line = next((line for line in dump.splitlines() if line.startswith(f"{key}: ")), "")
    if not line:
        return "where it has no line"
    through = "`fallthrough` and " * ("fallthrough" in line)
    return f"whose line has {through}`{line[line.rindex('[') :]}`"


@read_slot.alternate("a regular expression")
def _(dump, key):
    import re

    found = re.search(
        rf"^{re.escape(key)}: (fallthrough )?registered at \S*?([^/\s]+):\d+ \[([^\]]*)\]$",
        dump,
        re.MULTILINE,
    )
    if found is None:
        return ("nothing", "")
    through, file, kind = found.groups()
    if through:
        return ("fallthrough", file)
    renamed = {"math kernel": "composite", "default backend kernel": "default"}
    renamed |= {"batched kernel": "batched", "backend fallback": "fallback"}
    return (renamed.get(kind, kind), file)


@read_slot.alternate("line by line")
def _(dump, key):
    slots = dict(line.split(": ", 1) for line in dump.splitlines())
    if key not in slots:
        return "nothing", ""
    words = slots[key].split(" ")
    path = words[words.index("at") + 1]
    file = path.split("/")[-1].split(":")[0]
    if "fallthrough" in words:
        return "fallthrough", file
    inside = slots[key][slots[key].index("[") + 1 : slots[key].index("]")]
    ours = {
        "math kernel": "composite",
        "default backend kernel": "default",
        "batched kernel": "batched",
        "backend fallback": "fallback",
    }
    return ours.get(inside, inside), file


_solution = lab_solution(__name__, "read_slot")


read_slot.misconception(
    "a part of the key's name",
    "a line is taken that only has the key's name somewhere in it.",
    earns=0,
)(edited(_solution, ("if name == key:", "if key in line:")))
read_slot.misconception(
    "a fallthrough taken for a fallback",
    "where the line says fallthrough, the word in brackets is returned.",
    earns=1,
)(
    edited(
        _solution,
        (
            "if rest.startswith('fallthrough'):\n                kind = 'fallthrough'\n            ",
            "",
        ),
    )
)
read_slot.misconception(
    "torch's words", "the words in brackets are returned as they are.", earns=1
)(edited(_solution, ("words.get(kind, kind)", "kind")))
read_slot.misconception(
    "every fallback falls through", "a fallback that holds code is called a fallthrough.", earns=1
)(edited(_solution, ("'backend fallback': 'fallback'", "'backend fallback': 'fallthrough'")))
read_slot.misconception(
    "the line's number in the file", "the file's name carries the number of the line.", earns=2
)(edited(_solution, ("where.rpartition(':')[0]", "where")))
read_slot.misconception("the folders in the file", "the file's name carries its folders.", earns=2)(
    edited(
        _solution,
        (".rpartition(':')[0].rpartition('/')[2]", ".rpartition(':')[0].rpartition(' ')[2]"),
    )
)
read_slot.misconception(
    "the ending cut off",
    "the file's name has lost its ending, such as `.cpp`.",
    earns=2,
)(edited(_solution, ("words.get(kind, kind), file", "words.get(kind, kind), file.split('.')[0]")))
read_slot.misconception(
    "a fallthrough without a file",
    "where the line says fallthrough, no file is returned; it was registered in one, too.",
    earns=2,
)(
    edited(
        _solution,
        ("words.get(kind, kind), file", "words.get(kind, kind), '' if kind == 'fallthrough' else file"),
    )
)  # fmt: skip
read_slot.misconception(
    "the beginning of the key's name",
    "a line is taken whose key only begins with the name that was asked for.",
    earns=1,
)(edited(_solution, ("if name == key:", "if name.startswith(key):")))
read_slot.misconception(
    "the default taken for a kernel",
    "a default for backends and a backend's own kernel are called alike.",
    earns=1,
)(edited(_solution, ("'default backend kernel': 'default'", "'default backend kernel': 'kernel'")))


read_slot.equivalent(
    ("line.split(': ', 1)", "line.split(': ')"),
    ("line.split(': ', 1)", "line.split(': ', 2)"),
    because="no file that torch registers from has a colon and a space in its name",
)
