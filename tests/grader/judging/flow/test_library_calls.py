"""What functions of Python and of libraries return."""

import pytest

from tests.grader.judging.flow.analysed import hidden, used


@pytest.mark.parametrize(
    "body",
    [
        "functools.partial(torch.sin)(x)",
        "list(map(torch.sin, x))",
        "getattr(torch, 'sin')(x)",
        "next(iter([torch])).sin(x)",
        "dict(h=torch)['h'].sin(x)",
        "dict([('h', torch)])['h'].sin(x)",
        "[h for _, h in enumerate([torch])][0].sin(x)",
        "[h for _, h in zip([1], [torch])][0].sin(x)",
        "sorted([torch])[0].sin(x)",
        "max([torch], key=lambda h: 1).sin(x)",
        "types.SimpleNamespace(h=torch).h.sin(x)",
        "collections.namedtuple('A', 'h')(torch).h.sin(x)",
        "collections.deque([torch])[0].sin(x)",
        "collections.defaultdict(lambda: torch)['h'].sin(x)",
        "functools.reduce(lambda a, b: a, [torch, torch]).sin(x)",
    ],
)
def test_a_module_is_followed_through_pythons_functions(body):
    imports = "import collections, functools, types"
    found = used(imports, f"def f(x): return {body}")
    assert "torch.sin" in found
    assert found <= {"torch.sin", "collections", "functools", "types"} | {
        path
        for path in found
        if path.startswith(("builtins.", "collections.", "functools.", "types."))
    }


def test_a_name_that_is_computed_hides_what_is_used():
    assert "only known when it runs" in hidden("def f(x): return getattr(torch, x)(x)")[0][1]
    own = "class A:\n    h = torch\ndef f(x): return getattr(A(), x).sin(1)"
    assert hidden(own) == []
    assert used(own) >= {"torch.sin"}


def test_an_answer_may_be_allowed_to_look_up_its_own_argument():
    code = "def f(name, x): return getattr(torch, name)(x)"
    assert hidden(code)
    assert hidden(code, looks_up="torch") == []
    assert hidden(f"{code.replace(': ', ': name = 3; ')}", looks_up="torch")
    assert hidden("name = 'sin'", "def f(x): return getattr(torch, name)(x)", looks_up="torch")


def test_attrgetter_and_methodcaller_use_what_they_are_told_to():
    code = "from operator import attrgetter, methodcaller\ndef f(x): return {}(x)"
    assert {".T", ".solve"} <= used(code.format("attrgetter('T.solve')"))
    assert ".solve" in used(code.format("methodcaller('solve', 'word')"))
    assert ".word" not in used(code.format("methodcaller('solve', 'word')"))
    assert "only known when it runs" in hidden(code.format("attrgetter(str(x))"))[0][1]


def test_vars_hides_a_modules_names_and_gives_an_objects_own():
    assert "all names" in hidden("def f(x): return vars(torch)['sin'](x)")[0][1]
    own = "class A:\n    pass\na = A()\na.h = torch\ndef f(x): return vars(a)['h'].sin(x)"
    assert "torch.sin" in used(own)
    assert hidden(own) == []


@pytest.mark.parametrize(
    ("method", "builtin", "body", "why"),
    [
        ("__add__", "getattr", "A() + x", "only known when it runs"),
        ("__call__", "getattr", "A()(torch, x)", "only known when it runs"),
        ("__init__", "setattr", "A(torch, 'sin', x)", "changes what `torch` has"),
        ("__call__", "vars", "A()()", "hands out all names"),
        ("__call__", "vars", "A()(torch)", "hands out all names of a module"),
    ],
)
def test_a_built_in_function_as_a_method_is_quoted_by_its_name(method, builtin, body, why):
    """Python makes such a call, so no piece of code can be quoted for it."""
    code = f"class A:\n    {method} = {builtin}\ndef f(x): return {body}"
    assert [(one, why in reason) for one, reason in hidden(code)] == [(builtin, True)]
