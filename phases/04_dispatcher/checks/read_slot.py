"""Lab 04, exercise 7: Read the real table"""

from hood.judge.checks.exercise import Case, Check, Paste
from hood.judge.checks.lab_solution import lab_solution
from utils.drivers.dispatch import table

read_slot = Check(
    "read_slot",
    parts={"the kind": 2, "the file": 1},
    reads="Reading the table",
)


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
        ("mm", "CPU"), ("mm", "AutogradCPU"), ("mm", "AutocastCPU"), ("mul.Tensor", "AutocastCPU"),
        ("linear", "CPU"), ("linear", "AutogradCPU"), ("t", "ADInplaceOrView"), ("mm", "ADInplaceOrView"),
        ("t", "CPU"), ("mm", "Python"), ("mm", "FuncTorchBatched"), ("matmul", "FuncTorchBatched"),
        ("empty.memory_format", "BackendSelect"), ("relu", "BackendSelect"), ("mm", "Meta"),
        ("mm", "SparseCPU"), ("linear", "QuantizedCPU"), ("add.Tensor", "Dense"), ("mm", "PU"),
        ("mm", "cpu"), ("mm", "Other"),
        ("relu", "Undefined"), ("mm", "Undefined"), ("sum.dim_IntList", "Batched"),
        ("empty.memory_format", "Conjugate"),
    ]  # fmt: skip
    asked += [(draw.choice(OPERATORS), draw.choice(KEYS)) for _ in range(12)]
    for op, key in asked:
        dump = table(op)
        shown = f"{key} in the table of aten::{op}, {_line(dump, key)}"
        for at, part in enumerate(read_slot.parts):
            play = lambda f, d=dump, k=key, at=at: f(d, k)[at]  # noqa: E731
            paste = Paste(f"read_slot(driver.table({{}}), {{}})[{at}]", (op, key), {"": "{}"})
            there = shown.endswith("]`")
            none = (
                f"the key has no line in the table, so the right answer is {('nothing', '')[at]!r}."
            )
            yield Case(part, play, shown=shown, paste=paste, places={} if there else {"": none})


def _line(dump, key):
    """The line of a key, in words. Learners may see all of the line."""
    line = next((line for line in dump.splitlines() if line.startswith(f"{key}: ")), "")
    if not line:
        return "in which it has no line"
    through = "`fallthrough` and " * ("fallthrough" in line)
    return f"with a line that has {through}`{line[line.rindex('[') :]}`"
