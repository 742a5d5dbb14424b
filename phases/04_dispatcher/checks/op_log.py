"""Lab 04, exercise 2: An ear at the bottom"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution

LONGEST = 40  # operators in a log whose places have words

op_log = Check(
    "OpLog",
    parts={"names": 1, "shapes": 1, "nobody notices": 1},
    reads="Listening in",
)


OpLog = op_log.reference(lab_solution(__name__, "OpLog"))


@op_log.cases
def _(draw):
    def heard(part, program, *tensors, times=1):
        place = 0 if part == "names" else 1

        def play(subject):
            came = subject.drive("dispatch:log_ops", program, *tensors, times=times)
            return [entry[place] for entry in came["ops"]]

        places = {"": "how many operators were written down"}
        for number in range(LONGEST):
            where = f"operator {number + 1} of the log"
            places[f"[{number}]"] = (
                f"{where}: not the full name, with namespace and overload, of what was called there."
                if part == "names"
                else f"{where}: the shapes of its tensors"
            )
        return Case(part, play, shown=f"the program {program!r}", places=places)

    def unnoticed(program, *tensors):
        def play(subject):
            came = subject.drive("dispatch:log_ops", program, *tensors)
            return came["result"], len(came["ops"])

        places = {"[0]": "what the program returns", "[1]": "how many operators were heard"}
        return Case("nobody notices", play, shown=f"the program {program!r}", places=places)

    def nested(program, *tensors):
        def play(subject):
            came = subject.drive("dispatch:log_nested", program, *tensors)
            return {name: len(came[name]) for name in ("outer", "inner")}

        places = {
            "['outer']": "how many operators the outer log heard",
            "['inner']": "how many operators the inner log heard",
        }
        return Case("nobody notices", play, shown="one log inside another", places=places)

    a, b, c, d = draw.shape(4)
    programs = {
        "two layers": (draw.tensor((a, b)), draw.tensor((b, c)), draw.tensor((c, d))),
        "joined": (draw.tensor((a, b)), draw.tensor((c, b))),
        "made": (draw.tensor((a, b)),),
        "in place": (draw.tensor((a, b, c)),),
        "with keywords": (draw.tensor((a, b)),),
        "there and back": (draw.tensor((a, b)), draw.tensor((c, b))),
        "attention": (draw.tensor((a, b, c)), draw.tensor((a, d, c)), draw.tensor((a, d, b))),
    }
    for program, tensors in programs.items():
        yield heard("names", program, *tensors)
        yield heard("shapes", program, *tensors)
        yield unnoticed(program, *tensors)
    yield heard("names", "in place", draw.tensor(()), times=2)
    yield heard("shapes", "made", draw.tensor((1, 3)), times=2)
    yield heard("shapes", "joined", draw.tensor((0, b)), draw.tensor((c, b)))
    yield heard("shapes", "with itself", draw.tensor((a, b)))
    yield nested("two layers", *programs["two layers"])
    yield nested("in place", *programs["in place"])


op_log.misconception(
    "the result is lost",
    "what the operator returns is not returned: the program goes on with None.",
    earns=0,
)(edited(OpLog, ("return func(*args, **kwargs)", "func(*args, **kwargs)")))
op_log.misconception(
    "packets without overloads",
    "the name has no overload: `aten.add` stands for several operators, `aten.add.Tensor` for one.",
    earns=2,
)(edited(OpLog, ("str(func)", "str(func.overloadpacket)")))
op_log.misconception(
    "Python names",
    "the name is that of a Python function, without namespace and overload.",
    earns=2,
)(edited(OpLog, ("str(func)", "func.__name__")))
op_log.misconception(
    "shapes of the results",
    "the shapes are those of what the operator returned.",
    earns=2,
)(
    edited(
        OpLog,
        ("given = torch.utils._pytree.tree_leaves((args, kwargs))",
         "result = func(*args, **kwargs)\n"
         "        given = torch.utils._pytree.tree_leaves(result)"),
        ("return func(*args, **kwargs)", "return result"),
    )
)  # fmt: skip
op_log.misconception(
    "lists not opened",
    "tensors inside a list argument are missing.",
    earns=2,
)(
    edited(
        OpLog,
        ("torch.utils._pytree.tree_leaves((args, kwargs))", "[*args, *kwargs.values()]"),
    )
)
op_log.misconception(
    "keywords passed over",
    "tensors that were given by keyword are missing from the shapes.",
    earns=2,
)(edited(OpLog, ("tree_leaves((args, kwargs))", "tree_leaves(args)")))
op_log.misconception(
    "keywords dropped",
    "the operator is called without its keyword arguments.",
    earns=0,
)(edited(OpLog, ("return func(*args, **kwargs)", "return func(*args)")))
op_log.misconception(
    "one list for all logs",
    "there is one list, and all logs write into it, as where it belongs to the class.",
    earns=2,
)(
    edited(
        OpLog,
        ("def __init__(self):\n        super().__init__()\n        self.ops = []", "ops = []"),
    )
)
op_log.misconception(
    "a new list each time",
    "a log that is used a second time loses what it had.",
    earns=1,
)(
    edited(
        OpLog,
        ("def __torch_dispatch__",
         "def __enter__(self):\n        self.ops = []\n        return super().__enter__()\n\n    def __torch_dispatch__"),
    )
)  # fmt: skip
op_log.misconception(
    "each call once",
    "a call that looks like an earlier one is not written down.",
    earns=0,
)(
    edited(
        OpLog,
        ("self.ops.append((str(func), shapes))",
         "if (str(func), shapes) not in self.ops:\n            self.ops.append((str(func), shapes))"),
    )
)  # fmt: skip
op_log.misconception(
    "keywords first",
    "shapes of keyword arguments stand before those of positional ones.",
    earns=2,
)(edited(OpLog, ("tree_leaves((args, kwargs))", "tree_leaves((kwargs, args))")))
op_log.misconception(
    "shapes as torch.Size of the first tensor alone",
    "only the first tensor's shape is written down.",
    earns=2,
)(edited(OpLog, ("isinstance(t, torch.Tensor)]", "isinstance(t, torch.Tensor)][:1]")))
op_log.misconception(
    "factories missed",
    "an operator without a tensor among its arguments is not written down.",
    earns=0,
)(
    edited(
        OpLog,
        (
            "self.ops.append((str(func), shapes))",
            "if shapes:\n            self.ops.append((str(func), shapes))",
        ),
    )
)


op_log.misconception(
    "tensors without dimensions missed",
    "tensors that have no dimensions are missing from the shapes.",
    earns=2,
)(edited(OpLog, ("isinstance(t, torch.Tensor)]", "isinstance(t, torch.Tensor) and t.dim()]")))
op_log.misconception(
    "calls of its own",
    "the log calls operators itself, as to copy a result, and a log outside of it hears them.",
    earns=2,
)(
    edited(
        OpLog,
        ("return func(*args, **kwargs)",
         "result = func(*args, **kwargs)\n"
         "        return result.clone() if isinstance(result, torch.Tensor) else result"),
    )
)  # fmt: skip
op_log.misconception(
    "the outer log is deaf",
    "what is called inside the inner log does not reach the outer one.",
    earns=2,
)(
    edited(
        OpLog,
        ("return func(*args, **kwargs)",
         "with torch.utils._python_dispatch._disable_current_modes():\n"
         "            return func(*args, **kwargs)"),
    )
)  # fmt: skip


@op_log.alternate("a walk of one's own")
class OpLogOfOnesOwn(TorchDispatchMode):
    def __init__(self):
        self.ops = []
        super().__init__()

    def shapes(self, thing):
        if isinstance(thing, torch.Tensor):
            return [tuple(thing.size())]
        if isinstance(thing, list | tuple):
            return [shape for inner in thing for shape in self.shapes(inner)]
        return []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.ops.append((f"{func}", self.shapes(args) + self.shapes([*kwargs.values()])))
        return func(*args, **kwargs)


@op_log.alternate("written down afterwards")
class OpLogAfterwards(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.ops = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        shapes = []
        torch.utils._pytree.tree_map_only(
            torch.Tensor, lambda t: shapes.append(tuple(t.shape)), (args, kwargs)
        )
        result = func(*args, **kwargs)
        self.ops += [(str(func), shapes)]
        return result


op_log.equivalent(
    ("super().__init__()", "pass"),
    ("super().__init__()", "super()"),
    because="a mode works without it; it keeps what nested modes of torch itself ask for",
)
op_log.equivalent(
    ("kwargs = kwargs or {}", "pass"),
    ("kwargs = kwargs or {}", "kwargs = kwargs"),
    because="torch hands a dict over even where it promises None as well",
)
