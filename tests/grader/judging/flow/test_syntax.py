"""Questions about syntax trees."""

import ast

import pytest

from grader.judging.flow import syntax


def node(code):
    return ast.parse(code).body[0]


def test_code_is_shortened_to_one_line():
    assert syntax.shorten(node("f(1,\n  2)")) == "f(1, 2)"
    long = syntax.shorten(node(f"f({'x' * 100})"))
    assert len(long) == 49
    assert long.endswith("…")


@pytest.mark.parametrize(
    ("code", "does"),
    [
        ("box.append(1)", True),
        ("box[0] = 1", True),
        ("box.x.y = 1", True),
        ("setattr(box, 'x', 1)", True),
        ("other = box", True),
        ("g(box)", True),
        ("g(x=box)", True),
        ("if x:\n    box.update(y)", True),
        ("box = 1", False),
        ("print(other)", False),
        ("other.append(1)", False),
        ("box.index(1)", True),
        ("both = [box]", True),
        ("f.x = 1", True),
        ("f(1)", False),
    ],
)
def test_a_statement_that_may_fill_a_container_is_found(code, does):
    assert syntax.fills(node(code), {"f"}, {"box"}) is does


def test_the_names_of_decorators_and_roots():
    assert syntax.decorators(node("@a.b(1)\n@c\ndef f(): pass")) == {"b", "c"}
    assert syntax.root_name(node("a.b[0].c(1)").value) == "a"
    assert syntax.root_name(node("(1).real").value) == ""
    assert syntax.literal_argument(node("getattr(x, 'y')").value, 1) == "y"
    assert syntax.literal_argument(node("getattr(x, y)").value, 1) is None
    assert syntax.is_dunder("__add__")
    assert not syntax.is_dunder("____")
