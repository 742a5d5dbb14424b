"""Which tests become cases, and the messages about the other tests."""

import pytest

from hood.authoring.importing.assignment import Asserts
from hood.authoring.importing.names import Imports
from hood.authoring.importing.tests_read import NO_CALL, NO_LITERAL, Asked, Left, read_tests

IMPORTS = Imports.of(["import numpy as np\nimport math\nfrom math import pi, isclose"])
RAISES_HERE = "try:\n    f(0)\n    assert False\nexcept ValueError:\n    pass"
RAISES_BELOW = """\
try:
    f(0)
except ValueError as error:
    assert True
else:
    raise AssertionError("did not raise")"""


def read(source, values=(), **more):
    return [*read_tests(Asserts(source, **more), ["f", "g"], IMPORTS, values)]


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        ("assert f(2) == 4", "2"),
        ("assert f(2) == 4, 'a message'", "2"),
        ("assert 4 == f(2)", "2"),
        ("assert f(1, b=[2, {'c': (3,)}]) == 4", "1, b=[2, {'c': (3,)}]"),
        ("assert f(-1) is None", "-1"),
        ("assert f(2)", "2"),
        ("assert not f(2)", "2"),
        ("assert f() == []", ""),
        ("assert f(np.array([1, 2]), math.inf) == 3", "np.array([1, 2]), math.inf"),
        ("assert f(list(range(3)), 2 * pi) == 3", "list(range(3)), 2 * pi"),
        ("assert (f(2) == np.array([4])).all()", "2"),
        ("assert np.all(f(2) == 4)", "2"),
        ("assert np.array_equal(f([1]), [2])", "[1]"),
        ("x = [1, 2]\nassert f(x) == 4", "[1, 2]"),
        ("got = f([1])\nassert got == 4", "[1]"),
        ("assert_equal(f(2), 4)", "2"),
        ("np.testing.assert_array_equal(f(2), [4])", "2"),
    ],
)
def test_a_call_with_literal_arguments_becomes_a_case(source, arguments):
    [found] = read(source)
    assert isinstance(found, Asked), found
    assert (found.function, found.arguments, found.raises) == ("f", arguments, "")
    assert found.tolerance is None


@pytest.mark.parametrize(
    ("source", "tolerance"),
    [
        ("assert np.isclose(f(2), 4)", (1e-5, 1e-8)),
        ("assert np.allclose([4], f(2), atol=0.1)", (1e-5, 0.1)),
        ("assert np.allclose(f(2), 4, 1e-3, 10**-4)", (1e-3, 1e-4)),
        ("assert math.isclose(f(2), 4)", (1e-9, 0)),
        ("assert isclose(f(2), 4, abs_tol=1)", (1e-9, 1)),
        ("assert abs(f(2) - 4) < 0.01", (0, 0.01)),
        ("assert abs(4 - f(2)) <= 1e-3", (0, 1e-3)),
        ("assert f(2) == pytest.approx(4, rel=0.5)", (0.5, 1e-12)),
        ("np.testing.assert_allclose(f(2), 4, rtol=0.2)", (0.2, 0)),
        ("self.assertAlmostEqual(f(2), 4, places=2)", (0, 0.005)),
    ],
)
def test_a_test_with_a_tolerance_becomes_a_case_with_it(source, tolerance):
    [found] = read(source)
    assert isinstance(found, Asked), found
    assert found.arguments == "2"
    assert found.tolerance == pytest.approx(tolerance)


@pytest.mark.parametrize(
    "source",
    [
        "with pytest.raises(ValueError):\n    f(0)",
        "with pytest.raises(ValueError) as error:\n    f(0)",
        "with self.assertRaises(builtins.ValueError):\n    f(0)",
        "assert_raises(ValueError, f, 0)",
        RAISES_HERE,
        RAISES_BELOW,
    ],
)
def test_an_expected_exception_becomes_a_case_that_names_it(source):
    [found] = read(source)
    assert found == Asked("f", "0", source, "ValueError")


def test_conditions_that_are_joined_become_several_cases():
    assert [one.arguments for one in read("assert f(1) == 2 and f(2) == 4")] == ["1", "2"]


def test_a_call_whose_output_is_stored_becomes_a_case():
    [found] = read("x = 3\nf(x)", output="array([3])")
    assert (found.arguments, found.source) == ("3", "f(x)")


def test_a_test_function_is_read_as_its_statements():
    found = read("def test_f(f):\n    assert f(1) == 2\n    assert len(f(2)) == 1\ntest_f(f)")
    assert [type(one) for one in found] == [Asked, Left]
    assert found[1].source == "assert len(f(2)) == 1"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("assert len(f(2)) == 1", NO_CALL),
        ("assert isinstance(f(2), int)", NO_CALL),
        ("assert f(2) < 4", NO_CALL),
        ("assert f(2) == g(2)", NO_CALL),
        ("assert 2 == 2", NO_CALL),
        ("assert f(data) == 4", NO_LITERAL),
        ("assert f(np.random.rand(3)) == 4", NO_LITERAL),
        ("assert f(open('data.csv')) == 4", NO_LITERAL),
        ("assert f(*[1]) == 4", NO_LITERAL),
        ("assert f(range(3)) == 4", NO_LITERAL),
        ("x = [1]\nx.append(2)\nassert f(x) == 4", NO_LITERAL),
        ("assert f(2, raises=1) == 4", "its argument 'raises' has a name that `case` uses"),
        ("assert np.isclose(f(2), 4, atol=eps)", "its tolerance is not a number"),
        ("for x in range(3):\n    assert f(x) == x", NO_CALL),
        ("del f", NO_CALL),
        ("try:\n    f(0)\nexcept (KeyError, ValueError):\n    pass\nelse:\n    assert 0", "single"),
        (f"{RAISES_HERE}\nfinally:\n    f = g", NO_CALL),
        ("assert f(2) ==", "it is not plain Python"),
        ("(" * 50_000, "it is not plain Python"),
    ],
)
def test_any_other_test_is_left_with_its_text_and_the_reason(source, why):
    [found] = [one for one in read(source) if isinstance(one, Left)]
    assert why in found.why
    assert found.source in source


def test_what_only_prepares_or_prints_is_no_test():
    assert read('"""Words."""\nimport os\ny = h(3)\nprint(f(2))\nfor k in y:\n    y = k') == []


def test_a_value_is_compared_in_the_same_forms():
    assert read("assert x == 2", values=["x"]) == [Asked("x", "", "assert x == 2", value="2")]
    [found] = read("assert abs(x - 0.5) < 0.1", values=["x"])
    assert (found.value, found.tolerance) == ("0.5", (0, 0.1))
    [left] = read("assert x == y", values=["x"])
    assert left.why == "the expected value is not a literal"


def test_a_changed_argument_is_compared_after_the_call():
    [found] = read("a = [1]\nf(a, 3)\nassert a == [1, 3]")
    expected = Asked("f", "[1], 3", "f(a, 3)\nassert a == [1, 3]", leaves=True)
    assert found == expected
    [found] = read("assert a == [1, 3]", before="a = [1]\nf(a, 3)", hidden=True)
    assert (found.arguments, found.leaves) == ("[1], 3", True)
    [found] = read("a = {}\nf(a)\nnp.testing.assert_allclose(a, {}, rtol=0.2)")
    assert (found.arguments, found.leaves, found.tolerance) == ("{}", True, (0.2, 0))


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("a = [1]\nf(a)", ["f(a)"]),
        ("a = [1]\nf(a)\nf(a)\nassert f(a) == 2", ["f(a)", "assert f(a) == 2", "f(a)"]),
        ("a = 1\nf(a)\nassert a == 1", ["f(a)", "assert a == 1"]),
    ],
)
def test_a_changed_argument_that_is_not_compared_is_left(source, left):
    assert [one.source for one in read(source)] == left
    assert all(isinstance(one, Left) for one in read(source))


def test_hidden_tests_know_the_values_of_the_visible_part():
    [found] = read("assert f(x) == 4", before="x = 2", hidden=True)
    assert found.arguments == "2"
