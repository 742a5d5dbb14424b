"""A solution that is shown is found; ordinary code that resembles one is accepted."""

import pytest

from hood.authoring.leaks import leak_problems
from tests.hood.authoring.example import HEADER, lab

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


def test_a_clean_lab_has_no_leak():
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
def test_a_solution_shown_elsewhere_is_a_leak(case):
    stub = STUB.replace(ANSWER, f"({ANSWER})")
    (problem,) = leaks(SHOWN[case], stub=stub)
    lines = (HEADER + stub + "\n" + SHOWN[case]).split("\n")
    line = max(n for n, words in enumerate(lines, 1) if "columns" in words)
    assert problem == (
        f"phases/01_rows/lab.py:{line}: gives away the solution of 'row_bytes': {ANSWER}"
    )


def test_a_short_region_repeated_whole_is_a_leak():
    plain = "    out = []\n    for n in shape:\n        out.append(n)\n    return out\n"
    stub = STUB.replace(STUB[STUB.index("    rows,") : STUB.index("    ### END")], plain)
    helper = "# %%\ndef copy(shape):\n" + plain
    (problem,) = leaks(helper, stub=stub)
    assert "for n in shape:" in problem
    assert leaks(helper.replace("append", "extend"), stub=stub) == []


def test_a_stubs_comment_that_quotes_a_short_statement_is_a_leak():
    stub = STUB.replace("    ### BEGIN", "    # rows, columns = x.shape\n    ### BEGIN")
    assert leaks(stub=stub) == []  # one attribute gives nothing away
    stub = STUB.replace("    ### BEGIN", "    # size = x.element_size()\n    ### BEGIN")
    (problem,) = leaks(stub=stub)
    assert problem.endswith("x.element_size()")


INNOCENT = {
    "imports": "# %%\nimport math\n",
    "a plain return": "# %%\ndef other(x):\n    return x\n",
    "a shape taken apart": "# %%\nrows, columns = x.shape\n",
    "an attribute in prose": "# %% [markdown]\n# `x.element_size()` is in bytes.\n",
    "an expression of modules": "# %%\nx = torch.ones(2, dtype=torch.float32)\n",
    "code before the region": STUB.replace("row_bytes", "other")
    .replace("    ### BEGIN", "    given = x.stride(0) + x.stride(1)\n    ### BEGIN"),
}  # fmt: skip


@pytest.mark.parametrize("case", INNOCENT)
def test_ordinary_code_is_no_leak(case):
    stub = STUB.replace(f"    return {ANSWER}\n", "    return math.prod([columns])\n")
    assert leaks(INNOCENT[case], stub=stub) == []


def test_a_line_shown_on_purpose_is_no_leak():
    stub = STUB.replace(ANSWER, f"{ANSWER}  # shown in the question")
    assert leaks(SHOWN["a span"]) != []
    assert leaks(SHOWN["a span"], stub=stub) == []


@pytest.mark.parametrize("quote", ['"""', "'''"])
def test_a_leak_in_quoted_markdown_is_reported_at_its_line(quote):
    text = f"# %% [markdown]\n{quote}\nTry\n`{ANSWER}`.\n{quote}\n"
    (found,) = leaks(text)
    whole = HEADER + "\n".join([STUB, text])
    line = next(n for n, words in enumerate(whole.split("\n"), 1) if words == f"`{ANSWER}`.")
    assert found.startswith(f"phases/01_rows/lab.py:{line}: ")


def test_a_mark_scheme_in_a_question_is_a_leak():
    scheme = "# === BEGIN MARK SCHEME ===\n# It counts the rows and nothing else.\n"
    task = f'# %% [markdown] task="why"\n# Why?\n{scheme}# === END MARK SCHEME ===\n'
    (problem,) = leaks(
        task, "# %% [markdown]\n# Remember: it\n# is so. It counts the\n# rows and nothing else.\n"
    )
    assert problem.endswith(
        "gives away the solution of 'why': It counts the rows and nothing else."
    )
    assert leaks(task) == []
