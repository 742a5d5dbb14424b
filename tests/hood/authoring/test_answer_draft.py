"""A learner's code becomes an entry of a file of answers: functions alone, small edits."""

import ast
import tomllib

import pytest

from hood import UserError
from hood.authoring.answer_draft import (
    SAYS,
    answer_code,
    edits_between,
    entry,
    free_names,
    imports,
    quoted,
)
from hood.judge.checks.answers import with_edits
from hood.judge.checks.answers_form import form_faults
from hood.judge.checks.lab_solution import bare

SOLUTION = bare(
    """
def clip(x: list, low: int) -> list:
    '''Clip it.'''
    kept = []
    for one in x:
        if one < low:
            kept.append(low)
        else:
            kept.append(one)
    return kept
"""
)


def answer(*cells, names=("f",), lab=()):
    return answer_code(map(ast.parse, cells), names, dict(lab))


def test_an_answer_has_the_functions_that_it_uses_and_nothing_else():
    code = answer("def g(x): return x\ndef h(): ...", "print(f)\ndef f(x: int):\n    return g(x)")
    assert code == "def f(x):\n    return g(x)\n\n\ndef g(x):\n    return x"


def test_of_several_definitions_the_last_counts():
    assert answer("def f(): return 1", "def f(): return 2").endswith("return 2")


def test_imports_and_constants_of_a_file_move_into_the_function():
    code = answer("import math, os\nTAU = 2 * math.pi\ndef f(r):\n    'Round.'\n    return TAU * r")
    names = {}
    exec(code, names)
    assert names["f"](1) == pytest.approx(6.28, abs=0.01)
    assert "os" not in code
    assert names.keys() - {"__builtins__"} == {"f"}


def test_an_import_of_the_lab_stays_out_of_the_answer():
    lab = imports(["import numpy as np\nfrom math import pi, tau"])
    assert lab == {
        "np": "import numpy as np",
        "pi": "from math import pi",
        "tau": "from math import tau",
    }
    code = answer("import numpy as np\ndef f(x):\n    return np.sum(x)", lab=lab)
    assert code == "def f(x):\n    return np.sum(x)"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def g(): ...", "expected code that defines f"),
        ("N = 1\nN += 1\ndef f(): return N", "line 2 sets N"),
        ("import os\nclass f:\n    here = os.curdir", "the class f uses os from outside the class"),
        ("N = 1\ndef f():\n    global N\n    return N", "can't become an answer"),
    ],
)
def test_code_that_can_not_be_an_answer_is_refused(code, message):
    with pytest.raises(UserError, match=message):
        answer(code)


def test_free_names_are_those_that_nothing_in_the_code_defines():
    code = (
        "def f(x, y=a):\n    import b\n    def g():\n        return [b, c, x, f] + [d for d in e]"
    )
    assert set(free_names(code)) == {"a", "c", "e"}


def changed(old, new):
    assert old in SOLUTION["clip"]
    return SOLUTION["clip"].replace(old, new, 1)


# (old code, new code, the expected edits)
SMALL = [
    ("one < low", "one <= low", [["one < low", "one <= low"]]),
    ("kept.append(low)", "kept.append(0)", [["kept.append(low)", "kept.append(0)"]]),
    ("return kept", "return x", [["return kept", "return x"]]),
    ("kept = []", "result = []", [["kept = []", "result = []"]]),
    ("for one in x", "for one in x[1:]", [["for one in x:", "for one in x[1:]:"]]),
    (
        "        else:\n            kept.append(one)\n",
        "",
        [["        else:\n            kept.append(one)\n", ""]],
    ),
]


@pytest.mark.parametrize(("old", "new", "edits"), SMALL)
def test_a_small_change_becomes_small_edits(old, new, edits):
    code = changed(old, new)
    assert edits_between(SOLUTION, code) == edits
    assert with_edits(SOLUTION, edits) == bare(code)


def test_another_program_is_kept_as_code():
    whole = "def clip(x, low):\n    return [max(one, low) for one in x]"
    inserted = changed("    kept = []\n", "    kept = []\n    x = sorted(x)\n")
    helper = changed("return kept", "return g(kept)") + "\n\n\ndef g(x):\n    return x"
    for code in (whole, inserted, helper):
        assert edits_between(SOLUTION, code) == []


@pytest.mark.parametrize("code", ["def f():\n    return 1", "def f():\n    return '''\\n'''\n\n"])
def test_an_entry_is_read_as_it_was_meant(code):
    new = entry('no "century" \\ é', code, [], {"a": 1.0, "b": 0.0, "c d": 0.5})
    [(name, read)] = tomllib.loads(new)["wrong"].items()
    assert name == 'no "century" \\ é'
    assert (read["says"], read["earns"]) == (SAYS, {"a": 1, "c d": 0.5})
    assert read["code"].strip() == code.strip()
    assert not list(form_faults(tomllib.loads(new)))
    edited = tomllib.loads(entry("a", code, [["x\n", "'y'"]], {"a": 0.0}))["wrong"]["a"]
    assert edited == {"says": SAYS, "edits": [["x\n", "'y'"]]}


@pytest.mark.parametrize("words", ['say "a"', "it's", "a\\b", "\x7f\t", "both ' and \"", "é😀"])
def test_a_quoted_text_is_read_unchanged(words):
    assert tomllib.loads(f"a = {quoted(words)}") == {"a": words}
