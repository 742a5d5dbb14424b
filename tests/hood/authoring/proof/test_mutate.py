"""Which small changes are made to code, and what is never changed."""

import ast

import pytest

from hood.authoring.proof.mutate import mutants


def now(code, lines=None):
    """The changed lines of each mutant."""
    return [mutant.now for mutant in mutants(code, lines)]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("a < b", ["a <= b", "a >= b", "a != b"]),
        ("a == b", ["a != b", "a <= b", "a >= b"]),
        ("a is None", ["a is not None"]),
        ("a in b", ["a not in b"]),
        ("a - b", ["a + b", "a", "b", "b - a"]),
        ("a * b", ["a + b", "a // b", "a", "b"]),
        ("-a", ["a"]),
        ("a and b and c", ["b and c", "a and c", "a and b", "a or b or c"]),
        ("abs(a)", ["a"]),
        ("max(a, b)", ["a", "b", "max(a)", "min(a, b)"]),
        ("a.clone()", ["a"]),
        ("a.T", ["a"]),
        ("torch.float32", ["torch.float64"]),
        ("True", ["False"]),
        ("3", ["4", "2"]),
        ("a[i:j]", ["a[:j]", "a[i + 1:j]", "a[i - 1:j]", "a[i:]", "a[i:j + 1]", "a[i:j - 1]"]),
        ("f(a, b)", ["f(b, a)", "f(a)", "a"]),
        ("f(keepdim=True)", ["f()", "f(keepdim=False)"]),
        ("range(n)", ["range(n + 1)", "range(n - 1)", "n"]),
        ("[a for a in b if c]", ["[a for a in b]"]),
        ("a if b else c", ["a", "c", "a if not b else c"]),
        ("{'k': a}", ["{}", "{'k_': a}"]),
    ],
)
def test_expressions_are_changed(code, expected):
    assert set(now(f"x = {code}")) == {"pass", *(f"x = {other}" for other in expected)}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("a += b", {"a = b", "a -= b", "a *= b", "pass"}),
        ("if a:\n    f", {"if True:", "if False:", "if not a:", "pass"}),
        ("while a < b:\n    break", {"while False:", "while a <= b:", "while a >= b:",
                                     "while a != b:", "continue", "pass"}),
        ("for a in b:\n    continue", {"for a in ():", "break", "pass"}),
        ("with a:\n    f", {"if True:", "pass"}),
    ],
)  # fmt: skip
def test_statements_are_changed(code, expected):
    assert set(now(code)) == expected


def test_a_result_may_be_cast_dropped_or_made_from_another_argument():
    code = "def f(a, b, c):\n    return b"
    assert set(now(code)) == {"return b.float()", "pass", "return a", "return c"}


def test_messages_and_docstrings_are_not_changed():
    code = '''
def f(a: int = 0) -> tuple[int, 4]:
    """Documented 3 times."""
    assert a, "a message"
    b: dict[str, 1] = zip(a, strict=True)
    raise ValueError(f"{a + 1} is " + "wrong")
'''
    changed = now(code)
    for words in ("Documented", "message_", "wrong_", "int, 5", "str, 2", "strict=False", "- 1"):
        assert not any(words in text for text in changed), words
    assert "b: dict[str, 1] = a" in changed
    assert changed.count("pass") == 3


def test_a_decorator_may_be_removed():
    found = mutants("@a\n@b\nclass C:\n    pass")
    assert {m.code for m in found} == {"@a\nclass C:\n    pass", "@b\nclass C:\n    pass"}


def test_each_mutant_is_a_program_with_one_change():
    code = "def f(a, b):\n    c = a + b * 2\n    return c if a < b else -c\n"
    found = mutants(code)
    assert len({m.code for m in found}) == len(found) > 20
    for mutant in found:
        ast.parse(mutant.code)
        assert mutant.code != ast.unparse(ast.parse(code))
        assert mutant.code.count("\n") in (1, 2)


def test_changes_can_be_limited_to_some_lines():
    code = "a = 1\nb = 2\nc = 3"
    assert {m.line for m in mutants(code, {2})} == {2}
    assert set(now(code, {2})) == {"b = 3", "b = 1", "pass"}


def test_a_change_is_identified_by_the_old_and_the_new_text():
    (mutant,) = [m for m in mutants("if i < 0 and i < size:\n    i = 1") if "i <= size" in m.now]
    assert str(mutant) == "`if i < 0 and i < size:` became `if i < 0 and i <= size:`"
    assert mutant.is_edit("i < size", "i <= size")
    assert mutant.is_edit("<", "<=")
    assert not mutant.is_edit("i < 0", "i <= 0")
    assert not mutant.is_edit("i < size", "i > size")
    assert not mutant.is_edit("", "i <= size")
