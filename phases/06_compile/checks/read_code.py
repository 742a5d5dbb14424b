"""Lab 06, exercise 8: Read what Inductor wrote"""

from pathlib import Path

from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.lab_solution import lab_solution
from utils.drivers.compiling import written

read_code = Check(
    "read_code",
    parts={"kernels": 1, "libraries": 1, "buffers": 1},
    reads="Fusion, and the code",
    reads_by_part={
        "libraries": "Libraries, and memory that is used twice",
        "buffers": "Libraries, and memory that is used twice",
    },
)

TEXTS = sorted((Path(__file__).parent / "written").glob("*.txt"))


@read_code.reference
class _:
    def launches(code):
        return [name for name in _calls(code) if name.startswith(("cpp_", "triton_"))]

    def library_calls(code):
        return [name for name in _calls(code) if name.startswith(("extern_kernels.", "torch.ops."))]

    def reused(code):
        _, _, body = code.partition("def call(")
        return sum(line.endswith("# reuse") for line in body.splitlines())


def _calls(code):
    """The names that `call` calls, found by splitting its lines."""
    found = []
    for line in code.partition("def call(")[2].splitlines():
        line = line.strip().rpartition(" = ")[2] if "=" in line.partition("(")[0] else line.strip()
        name, bracket, _ = line.partition("(")
        if bracket and not name.startswith("#"):
            found.append(name.removesuffix(".run"))
    return found


def composed(draw, gpu, flat):
    """A module as Inductor writes it, with random kernels and calls. If ``flat``, `call` is a function."""
    words = draw.sample(("add", "exp", "gelu", "mul", "relu", "sin", "sub", "sum"), 4)
    kinds = (
        ["triton_poi_fused", "cpp", "triton_red", "cpp_fused"] if gpu else ["cpp_fused", "cpp"] * 2
    )
    kernels = [f"{kind}_{word}_{at}" for at, (kind, word) in enumerate(zip(kinds, words))]
    lines = ["from torch._inductor.select_algorithm import extern_kernels", "aten = torch.ops.aten"]
    for name in kernels:
        maker = "triton" if name.startswith("triton") else "cpp_pybinding"
        lines += ["", f"{name} = async_compile.{maker}('{name}', '''", f"void {name}(in, out) {{}}"]
        lines += ["    buf0 = buf9; del buf9  # reuse", "    extern_kernels.mm(in, out=out)"]
        lines += [f"    {name}(in, out)", "''')"]
    lines += ["", ""]
    start = len(lines)
    lines += ["class Runner:", "    def call(self, args):", "        args.clear()"]
    lines += ["        # reuse of buf9 was refused: extern_kernels.bmm(buf9) and"]
    lines += [f"        # {kernels[0]}(buf9) read it, and torch.ops.aten.cumsum.default(buf9)"]
    lines += ["        buf8 = reinterpret_tensor(buf9, (8, ), (1, ), 0); del buf9  # reuse"]
    lines += [
        f"        kernel = {kernels[0]}",
        "        product = extern_kernels.mm",
    ]  # names alone
    lines += ["        buf0 = extern_kernels.convolution(arg0_1, arg1_1, stride=(1, 1))"]
    for at in range(1, draw.integer(9, 12)):
        what = draw.integer(0, 4) if at > 2 else 0
        if what <= 1:
            lines += [f"        # Topologically Sorted Source Nodes: [{words[0]}], aten.{words[0]}"]
            name = kernels[at - 1] if at <= 2 else draw.choice(kernels)  # the first two in any case
            run = ".run" if name.startswith("triton") else ""
            lines += [f"        {name}{run}(buf{at - 1}, buf{at})"]
        elif what == 2:
            lines += [
                f"        extern_kernels.{draw.choice(('mm', 'addmm', 'bmm'))}(buf{at}, out=buf0)"
            ]
        elif what == 3:
            name = (
                f"torch.ops.aten.{draw.choice(('sort.stable', 'cumsum.default', 'topk.default'))}"
            )
            lines += [f"        buf{at} = {name}(buf{at - 1}, dim=1)"]
            lines += [f"        assert_alignment(buf{at}, 16, '{name}')"]
        else:
            lines += [f"        buf{at} = buf{at - 1}; del buf{at - 1}  # reuse"]
    lines += ["        return (buf0, )", "", ""]
    if flat:
        return "\n".join([*lines[:start], *(line[4:] for line in lines[start + 1 :])])
    lines += ["runner = Runner()", "call = runner.call", ""]
    return "\n".join(lines)


@read_code.cases
def _(draw):
    said = {"launches": launches, "library_calls": library_calls}

    def asked(part, code, of, words):
        """First compare how often each name is listed, and then the lists.

        So a verdict names the first name that is listed too rarely or too often.
        """
        right = said[of](code) if of in said else []
        count = reused(code)

        def play(subject):
            came = subject[of](code)
            if of == "reused":
                known = type(came) is int
                most, least = not known or came <= count, not known or came >= count
                return {"most": most, "least": least, "count": came}
            names = isinstance(came, (list, tuple)) and all(isinstance(name, str) for name in came)
            facts = {name: not names or came.count(name) == right.count(name) for name in right}
            facts["others"] = not names or set(came) <= set(right)
            facts["in order"] = not names or sorted(came) != sorted(right) or list(came) == right
            return {**facts, "names": came}

        places = {f"['{name}']": f"`{name}` is listed too rarely or too often." for name in right}
        places["['most']"] = "The count is too large: fewer buffers get another buffer's memory."
        places["['least']"] = "The count is too small: more buffers get another buffer's memory."
        places["['count']"] = "the number of buffers"
        places["['others']"] = (
            "The list has a name that should not be in it, or that `call` does not call."
        )
        places["['in order']"] = (
            "The names are right, but their order is not the order in which they run."
        )
        places["['names']"] = "the names, in the order in which they run"
        return Case(part, play, of, f"the module {words!r}", places)

    texts = {path.stem.replace("_", ", "): path.read_text() for path in TEXTS}
    texts |= {f"drawn, {at}": composed(draw, at % 2 == 0, at > 1) for at in range(4)}
    texts["head, backward, cpu"] = written("head_backward_cpu")
    for words, code in texts.items():
        for part, of in zip(read_code.parts, ("launches", "library_calls", "reused"), strict=True):
            yield asked(part, code, of, words)


launches = lab_solution(__name__, "read_code", "launches")
library_calls = lab_solution(__name__, "read_code", "library_calls")


def reused(code):
    body = code.partition("def call(")[2]
    return len([line for line in body.splitlines() if line.endswith("# reuse")])
