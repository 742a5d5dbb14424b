"""Lab 06, exercise 7: Read what Inductor wrote"""

import re
from pathlib import Path

from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution
from utils.drivers.compiling import written

read_code = Check(
    "read_code",
    parts={"kernels": 1, "libraries": 1, "buffers": 1},
    reads="Fusion, and the code",
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
    """What the lines of `call` call, by splitting them."""
    found = []
    for line in code.partition("def call(")[2].splitlines():
        line = line.strip().rpartition(" = ")[2] if "=" in line.partition("(")[0] else line.strip()
        name, bracket, _ = line.partition("(")
        if bracket and not name.startswith("#"):
            found.append(name.removesuffix(".run"))
    return found


def composed(draw, gpu, flat):
    """A module in the form of Inductor's, with drawn kernels and calls; `call` is a function if flat."""
    words = draw.sample(("add", "exp", "gelu", "mul", "relu", "sin", "sub", "sum"), 4)
    kinds = ["triton_poi_fused", "cpp", "triton_red", "cpp_fused"] if gpu else ["cpp_fused", "cpp"] * 2
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
    lines += [f"        kernel = {kernels[0]}", "        product = extern_kernels.mm"]  # names alone
    lines += ["        buf0 = extern_kernels.convolution(arg0_1, arg1_1, stride=(1, 1))"]
    for at in range(1, draw.integer(9, 12)):
        what = draw.integer(0, 4) if at > 2 else 0
        if what <= 1:
            lines += [f"        # Topologically Sorted Source Nodes: [{words[0]}], aten.{words[0]}"]
            name = kernels[at - 1] if at <= 2 else draw.choice(kernels)  # the first two in any case
            run = ".run" if name.startswith("triton") else ""
            lines += [f"        {name}{run}(buf{at - 1}, buf{at})"]
        elif what == 2:
            lines += [f"        extern_kernels.{draw.choice(('mm', 'addmm', 'bmm'))}(buf{at}, out=buf0)"]
        elif what == 3:
            name = f"torch.ops.aten.{draw.choice(('sort.stable', 'cumsum.default', 'topk.default'))}"
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
        """Facts come first: of the first name that is there too rarely or too often, that is told."""
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

        places = {f"['{name}']": f"It is wrong how often `{name}` is listed." for name in right}
        places["['most']"] = "It counts more buffers than get the memory of another."
        places["['least']"] = "It counts fewer buffers than get the memory of another."
        places["['count']"] = "the number of buffers"
        places["['others']"] = "A name is listed that is not asked for, or that `call` does not call."
        places["['in order']"] = "The names are the right ones, and not in the order in which they run."
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
called = lab_solution(__name__, "read_code", "called")


def reused(code):
    body = code.partition("def call(")[2]
    return len([line for line in body.splitlines() if line.endswith("# reuse")])


def _misconception(name, explanation, earns, function, *edits):
    wrong = {function.__name__: edited(function, *edits)}
    read_code.misconception(name, explanation, earns=earns)(wrong)


@read_code.misconception(
    "definitions counted",
    "kernels are listed once each, as they are defined, and not as often as they run.",
    earns=2,
)
class _:
    def launches(code):
        return re.findall(r"^(\w+) = async_compile", code, re.MULTILINE)


@read_code.misconception(
    "each kernel once",
    "a kernel that runs several times is listed once.",
    earns=2,
)
class _:
    def launches(code):
        names = [name.removesuffix(".run") for name in called(code)]
        return list(dict.fromkeys(n for n in names if n.startswith(("cpp_", "triton_"))))


_misconception(
    "Triton alone",
    "the kernels of a CPU are missing.",
    2,
    launches,
    ("(cpp|triton)_", "triton_"),
)
_misconception(
    "the method in the name",
    "the names of Triton's kernels end in `.run`, which is what is called of them.",
    2,
    launches,
    ("name.removesuffix('.run')", "name"),
)
_misconception(
    "operators missed",
    "operators of torch.ops are missing.",
    2,
    library_calls,
    ("(extern_kernels|torch\\\\.ops)", "(extern_kernels)"),
)


@read_code.misconception(
    "names without a call",
    "a library's operator is listed where a line only says its name.",
    earns=2,
)
class _:
    def library_calls(code):
        body = code[code.index("def call(") :]
        return re.findall(r"(?:extern_kernels|torch\.ops)\.[\w.]+", body)


@read_code.misconception(
    "the last part of the name",
    "the names of what is called have lost what stands in front of their last dots.",
    earns=2,
)
class _:
    def library_calls(code):
        names = [n for n in called(code) if n.startswith(("extern_kernels.", "torch.ops."))]
        return [name.rpartition(".")[2] for name in names]


_misconception(
    "the whole text searched",
    "text in front of `call`, inside of kernels, is counted as well.",
    2,
    reused,
    ("code.partition('def call(')[2]", "code"),
)


@read_code.misconception(
    "the overload left out",
    "an operator of torch.ops has lost the `.default` behind its name.",
    earns=2,
)
class _:
    def library_calls(code):
        names = [n for n in called(code) if n.startswith(("extern_kernels.", "torch.ops."))]
        return [name.removesuffix(".default") for name in names]


_misconception(
    "reuse in a comment",
    "a line that says `reuse` without ending in it is counted.",
    2,
    reused,
    ("line.endswith('# reuse')", "'reuse' in line"),
)
_misconception(
    "second names",
    "a second name for a buffer is counted.",
    2,
    reused,
    ("line.endswith('# reuse')", "re.search(r'buf[0-9]+ = (buf|reint)', line)"),
)
_misconception(
    "whole buffers alone",
    "a buffer that gets another's memory in another shape is not counted.",
    2,
    reused,
    ("line.endswith('# reuse')", "re.search(r'= buf[0-9]+; del buf[0-9]+  # reuse$', line)"),
)
_misconception(
    "calls in comments",
    "what a comment says is listed as if it ran.",
    2,
    library_calls,
    ("called(code)", "re.findall(r'([a-z_]+[.][\\w.]+)[(]', code.partition('def call(')[2])"),
)
_misconception(
    "this course's operators alone",
    "operators of torch.ops are missing that are not of this course.",
    2,
    library_calls,
    ("|torch\\\\.ops)", "|torch\\\\.ops\\\\.open_the_hood)"),
)


@read_code.misconception(
    "kernels in comments",
    "a kernel that a comment names is listed as if it ran.",
    earns=2,
)
class _:
    def launches(code):
        return re.findall(r"((?:cpp|triton)_\w+)(?:\.run)?\(", code.partition("def call(")[2])


@read_code.misconception(
    "methods alone",
    "where `call` is a function that is not indented, none of its kernels is found.",
    earns=2,
)
class _:
    def launches(code):
        names = called(code) if "    def call(" in code else []
        return [name.removesuffix(".run") for name in names if name.startswith(("cpp_", "triton_"))]


@read_code.misconception(
    "deleted buffers",
    "buffers that are deleted are counted, whether another gets their memory or not.",
    earns=2,
)
class _:
    def reused(code):
        return code[code.index("def call(") :].count("del buf")


@read_code.misconception(
    "buffers counted",
    "buffers that are made are counted, and not those that get another's memory.",
    earns=2,
)
class _:
    def reused(code):
        return code[code.index("def call(") :].count("empty_strided_")


@read_code.alternate("line by line")
class _:
    def launches(code):
        names, inside = [], False
        for line in code.split("\n"):
            text = line.strip()
            if inside and text.startswith(("cpp_", "triton_")):
                names.append(text.split("(")[0].replace(".run", ""))
            inside = inside or text.startswith("def call(")
        return names

    def library_calls(code):
        names, inside = [], False
        for line in code.split("\n"):
            name = line.split("(")[0].split(" = ")[-1].strip()
            if inside and "(" in line and name.startswith(("extern_kernels.", "torch.ops.")):
                names.append(name)
            inside = inside or name == "def call"
        return names

    def reused(code):
        count, inside = 0, False
        for line in code.split("\n"):
            count += int(inside and line.endswith("# reuse"))
            inside = inside or "def call(" in line
        return count


@read_code.alternate("by patterns alone")
class _:
    def launches(code):
        text = code.partition("def call(")[2]
        return re.findall(r"^\s*((?:cpp|triton)_\w+)(?:\.run)?\(", text, re.M)

    def library_calls(code):
        text = code.partition("def call(")[2]
        pattern = r"^\s*(?:\w+ = )?((?:extern_kernels|torch\.ops)(?:\.\w+)+)\("
        return re.findall(pattern, text, re.MULTILINE)

    def reused(code):
        text = code.partition("def call(")[2]
        return len(re.findall(r"; del \w+  # reuse$", text, re.MULTILINE))


read_code.equivalent(
    ("('cpp_', 'triton_')", "('triton_', 'cpp_')"),
    ("('extern_kernels.', 'torch.ops.')", "('torch.ops.', 'extern_kernels.')"),
    ("(0, False)", "(False, 0)"),
    ("int(inside and line.endswith('# reuse'))", "inside and line.endswith('# reuse')"),
    because="either beginning will do, and False counts for 0",
)
