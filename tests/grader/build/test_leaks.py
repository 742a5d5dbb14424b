"""A solution that is shown is found; ordinary code that resembles one is accepted."""

import pytest

from grader.build.leaks import leak_problems
from grader.build.syntax import distinctiveness, shape
from tests.grader.build.example import HEADER, lab

ANSWER = "max(columns, 1) * size // 2"
STUB = '''\
# %% solution="row_bytes"
import math

def row_bytes(x: torch.Tensor) -> int:
    """Bytes of one row."""
    ### BEGIN SOLUTION
    rows, columns = x.shape
    size = x.element_size()
    return max(columns, 1) * size // 2
    ### END SOLUTION
'''


def leaks(*cells: str, stub: str = STUB) -> list[str]:
    """Return the messages for a lab of the stub and further cells."""
    return [str(p) for p in leak_problems(lab(HEADER + "\n".join([stub, *cells])))]


def test_a_clean_lab():
    assert leaks("# %%\nimport math\nprint(row_bytes(torch.ones(2, 3)))\n") == []


SHOWN = {
    "code": "# %%\nprint( max(columns,1)*size//2 )\n",
    "a visible test": f"# %%\nassert close(\n    row_bytes(x), {ANSWER})\n",
    "a comment": f"# %%\nprint(1)\n# return {ANSWER}\n",
    "a comment after code": f"# %%\nprint(1)  # {ANSWER}\n",
    "a span": f"# %% [markdown]\n# Try\n# `{ANSWER}`.\n",
    "a fenced block": f"# %% [markdown]\n# ```python\n# {ANSWER}\n# ```\n",
}


@pytest.mark.parametrize("case", SHOWN)
def test_shown_elsewhere(case):
    stub = STUB.replace(ANSWER, f"({ANSWER})")
    (problem,) = leaks(SHOWN[case], stub=stub)
    lines = (HEADER + stub + "\n" + SHOWN[case]).split("\n")
    line = max(n for n, words in enumerate(lines, 1) if "columns" in words)
    assert problem == (
        f"phases/01_rows/lab.py:{line}: gives away the solution of 'row_bytes': {ANSWER}"
    )


def test_other_names_for_the_same_expression():
    stub = STUB.replace(ANSWER, "x.size(-1) * x.element_size()")
    (problem,) = leaks("# %%\nprint(t.size(-1) * t.element_size())\n", stub=stub)
    assert "t.size(-1) * t.element_size()" in problem


def test_a_short_region_repeated_whole():
    plain = "    out = []\n    for n in shape:\n        out.append(n)\n    return out\n"
    stub = STUB.replace(STUB[STUB.index("    rows,") : STUB.index("    ### END")], plain)
    helper = "# %%\ndef copy(shape):\n" + plain
    (problem,) = leaks(helper, stub=stub)
    assert "its 3 statements in a row" in problem
    assert leaks(helper.replace("append", "extend"), stub=stub) == []


@pytest.mark.parametrize(
    "after",
    ["    return columns * size\n", "    total = size + 1\n    return total\n"],
)
def test_code_left_after_the_region(after):
    stub = STUB.replace(f"    return {ANSWER}\n", "") + after
    (problem,) = leaks(stub=stub)
    assert "code left after the solution of 'row_bytes'" in problem


def test_a_comment_in_the_stub_that_quotes_a_short_statement():
    stub = STUB.replace("    ### BEGIN", "    # rows, columns = x.shape\n    ### BEGIN")
    assert leaks(stub=stub) == []  # one attribute: it tells nothing
    stub = STUB.replace("    ### BEGIN", "    # size = x.element_size()\n    ### BEGIN")
    (problem,) = leaks(stub=stub)
    assert "size = x.element_size()" in problem


INNOCENT = {
    "imports": "# %%\nimport math\n",
    "a plain return": "# %%\ndef other(x):\n    return x\n",
    "a shape taken apart": "# %%\nrows, columns = x.shape\n",
    "an attribute in prose": "# %% [markdown]\n# `x.element_size()` is in bytes.\n",
    "an expression of modules": "# %%\nx = torch.ones(2, dtype=torch.float32)\n",
    "a return of names after the region": STUB.replace("row_bytes", "other").replace(
        f"    return {ANSWER}\n    ### END SOLUTION\n",
        "    ### END SOLUTION\n    return size\n",
    ),
    "the next method after the region": """\
# %% solution="Row"
class Row:
    def first(self):
        ### BEGIN SOLUTION
        a = 1
        ### END SOLUTION

    def second(self):
        return self.rows[0] + 1
""",
    "code before the region": STUB.replace("row_bytes", "other")
    .replace("    ### BEGIN", "    given = x.stride(0) + x.stride(1)\n    ### BEGIN"),
}  # fmt: skip


@pytest.mark.parametrize("case", INNOCENT)
def test_no_false_alarm(case):
    stub = STUB.replace(f"    return {ANSWER}\n", "    return math.prod([columns])\n")
    assert leaks(INNOCENT[case], stub=stub) == []


def test_how_telling_code_is():
    import ast

    def value(code):
        return ast.parse(code, mode="eval").body

    assert [distinctiveness(value(c)) for c in ("x", "-1", "torch.ones", "f(x)", "a[0] * b.c")] == [
        *(0, 0, 0, 1, 3),
    ]
    assert shape(value("f(a) + torch.g(b, a)")) == shape(value("f(x) + torch.g(y, x)"))
    assert shape(value("f(a) + b")) != shape(value("g(a) + b"))


def test_a_line_that_is_shown_on_purpose():
    stub = STUB.replace(ANSWER, f"{ANSWER}  # shown in the question")
    assert leaks(SHOWN["a span"]) != []
    assert leaks(SHOWN["a span"], stub=stub) == []


@pytest.mark.parametrize("quote", ['"""', "'''"])
def test_a_leak_in_quoted_markdown_is_told_at_its_line(quote):
    text = f"# %% [markdown]\n{quote}\nTry\n`{ANSWER}`.\n{quote}\n"
    (found,) = leaks(text)
    whole = HEADER + "\n".join([STUB, text])
    line = next(n for n, words in enumerate(whole.split("\n"), 1) if words == f"`{ANSWER}`.")
    assert found.startswith(f"phases/01_rows/lab.py:{line}: ")
