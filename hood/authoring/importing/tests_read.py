"""Find the tests that can become cases: a call with literal arguments, and its expected result.

These forms are read, with `f` a function of the exercise:

    assert f(2) == 4                        and `4 == f(2)`, `f(2) is None`, `f(2)`, `not f(2)`
    assert (f(2) == values).all()           and `np.all(...)`, `np.array_equal(f(2), values)`
    assert np.isclose(f(2), 4)              and `allclose`, `math.isclose`, `pytest.approx`
    assert abs(f(2) - 4) < 0.01
    assert_equal(f(2), 4)                   and others of `unittest` and `numpy.testing`
    with pytest.raises(ValueError): f(0)    and `assert_raises`, `assertRaises`
    try: f(0)  except ValueError: pass  else: raise AssertionError
    f(2)                                    whose output is stored
    a = [2]; f(a); assert a == [4]          a list that the call changes

A test may first give a name to a literal or to a call of `f`. Then the literal or the call replaces
the name. If the answer is a value `x` instead of a function, `x` takes the place of `f(2)` in all
forms.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

from hood.authoring.importing.assignment import Asserts
from hood.authoring.importing.names import Imports
from hood.authoring.importing.solution_cell import parsed

# Members of libraries that make the same value each time.
VALUES: Mapping[str, Collection[str]] = {
    "numpy": {
        *("array", "asarray", "arange", "linspace", "zeros", "ones", "full", "eye", "identity"),
        *("pi", "e", "nan", "inf", "newaxis", "bool_", "int8", "int16", "int32", "int64", "uint8"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    },
    "torch": {
        *("tensor", "arange", "linspace", "zeros", "ones", "full", "eye", "nan", "inf", "pi"),
        *("bool", "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32"),
        *("float64", "complex64", "complex128"),
    },
    "math": {"pi", "e", "tau", "inf", "nan"},
    "pandas": {"DataFrame", "Series"},
    "fractions": {"Fraction"},
    "decimal": {"Decimal"},
    "datetime": {"date", "datetime", "time", "timedelta"},
}
BUILTIN = ("list", "tuple", "set", "frozenset", "dict", "float", "complex", "bytes", "str")
EQUAL = {
    *("assert_equal", "assertEqual", "assertEquals", "assertListEqual", "assertDictEqual"),
    *("assertTupleEqual", "assertSetEqual", "assert_array_equal", "assertIs"),
}
# For each function's name: rtol, atol and the names of these two arguments.
CLOSE = {
    "isclose": (1e-5, 1e-8, "rtol", "atol"),
    "allclose": (1e-5, 1e-8, "rtol", "atol"),
    "assert_allclose": (1e-7, 0.0, "rtol", "atol"),
    "assert_close": (1.3e-6, 1e-5, "rtol", "atol"),
    "approx": (1e-6, 1e-12, "rel", "abs"),
}
OF_MATH = (1e-9, 0.0, "rel_tol", "abs_tol")
# For each function's name: the default number of decimals, and the allowed error in units of the
# last decimal.
DECIMALS = {
    "assert_almost_equal": (7, 1.5),
    "assert_array_almost_equal": (6, 1.5),
    "assertAlmostEqual": (7, 0.5),
}
RAISES = {"raises", "assert_raises", "assertRaises"}
OF_CASE = {"part", "of", "shown", "places", "raises"}  # names that `case` takes for itself
# Statements that test nothing.
SILENT = (ast.Import, ast.ImportFrom, ast.Pass, ast.Global)
NO_CALL = "a test of this form can't become a case"
NO_LITERAL = "an argument is not a literal"
CHANGEABLE = (ast.List, ast.Dict, ast.Set, ast.Call)  # literals of values that a call can change


@dataclass(frozen=True)
class Asked:
    """A test that becomes a case."""

    function: str
    arguments: str  # as code
    source: str  # the test as it was written
    raises: str = ""
    tolerance: tuple[float, float] | None = None  # rtol and atol, if the test has a tolerance
    value: str = ""  # for an answer that is a value: the expected value, as code
    leaves: bool = False  # the test compares an argument after the call, and not the result


@dataclass(frozen=True)
class Left:
    """A test that becomes no case, and why."""

    source: str
    why: str


class _NoCase(Exception):
    """A test has none of the forms that are read. The message says why."""


def read_tests(
    test: Asserts, functions: Collection[str], imports: Imports, values: Collection[str] = ()
) -> Iterator[Asked | Left]:
    """Yield each test of some code as a case, or with the reason why it can't become a case.

    `functions` and `values` are the names that the exercise's solution defines. `imports` are the
    imports of the notebook.
    """
    tree, before = parsed(test.source), parsed(test.before)
    if tree is None:
        yield Left(test.source, "it is not plain Python")
        return
    reader = _Reader(test.source, functions, imports, values)
    for statement in before.body if before else ():
        if not reader.changes(statement):
            reader.remember(statement)
    earlier = set(reader.changed.values())
    found = list(reader.read(tree.body, test.output))
    yield from found
    compared = {one.source.split("\n")[0] for one in found if isinstance(one, Asked) and one.leaves}
    for call in {*reader.changed.values()} - earlier:
        if call.source.split("\n")[0] not in compared:
            yield Left(call.source, NO_CALL)


class _Reader:
    def __init__(
        self, source: str, functions: Collection[str], imports: Imports, values: Collection[str]
    ) -> None:
        self.lines = source.split("\n")
        self.values = values
        self.functions = functions
        self.imports = imports
        # The literals, and the calls with literal arguments, by the names that the test gives them.
        self.known: dict[str, ast.expr] = {}
        # For each name of an argument that a call may have changed: this call.
        self.changed: dict[str, Asked] = {}

    def read(self, body: Sequence[ast.stmt], output: str | None) -> Iterator[Asked | Left]:
        for statement in body:
            last = statement is body[-1]
            if isinstance(statement, SILENT) or _is_text(statement):
                continue
            if isinstance(statement, ast.FunctionDef) and statement.name.startswith("test"):
                yield from self.read(statement.body, None)  # Otter calls a test function
                continue
            if self.changes(statement) and not (last and output):
                continue
            if self.remember(statement) or not self._tests(statement, bool(last and output)):
                continue
            try:
                yield from self._cases(statement, bool(last and output))
            except _NoCase as error:
                yield Left(self._source(statement), str(error))

    def remember(self, statement: ast.stmt) -> bool:
        """Return whether a statement only gives a known value to a name."""
        match statement:
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, value):
                if value is not None:
                    value = self._replaced(value)
                    if self._plain(value) or self._is_call(value):
                        self.known[name] = value
                        return True
        for node in ast.walk(statement):
            match node:
                case ast.Name(name, ast.Store() | ast.Del()):
                    self.known.pop(name, None)
                case ast.Call(ast.Attribute(ast.Name(name))):  # such as `rows.append(1)`
                    self.known.pop(name, None)
        return False

    def changes(self, statement: ast.stmt) -> bool:
        """Return whether a statement consists of one call, which may change its arguments.

        After such a call, the values of these arguments are no longer known.
        """
        match statement:
            case ast.Expr(ast.Call(_, args, keywords) as call):
                given = [*args, *(one.value for one in keywords)]
                names = [one.id for one in given if isinstance(one, ast.Name)]
                changed = [name for name in names if isinstance(self.known.get(name), CHANGEABLE)]
                whole = self._replaced(call)
                if not changed or not self._is_call(whole):
                    return False
                asked = replace(self._call(whole, self._source(statement)), leaves=True)
                for name in changed:
                    del self.known[name]
                    self.changed[name] = asked
                return True
        return False

    def _tests(self, statement: ast.stmt, output: bool) -> bool:
        """Return whether a statement may be a test, not only the preparation of a test."""
        match statement:
            case ast.Assign() | ast.AnnAssign():
                return False
            case ast.Expr(ast.Call(ast.Name(name))) if name == "print" or name.startswith("test"):
                return output
        return output or any(
            isinstance(node, ast.Assert | ast.Raise)
            or (isinstance(node, ast.Name) and node.id in (*self.functions, *self.values))
            or (isinstance(node, ast.Call) and _last_name(node.func).startswith("assert"))
            for node in ast.walk(statement)
        )

    def _cases(self, statement: ast.stmt, output: bool) -> Iterator[Asked]:
        source = self._source(statement)
        match statement:
            case ast.Assert(test):
                test = self._replaced(test)
                match test:
                    case ast.BoolOp(ast.And(), parts):
                        yield from [self._asserted(one, source) for one in parts]
                    case _:
                        yield self._asserted(test, source)
            case ast.With([item], [ast.Expr(call)]):
                yield self._raising(item.context_expr, self._replaced(call), source)
            case ast.Try([ast.Expr(call), *more], [handler], below, []) if all(
                map(_fails, [*more, *below])
            ) and (more or below):
                if not isinstance(handler.type, ast.expr) or any(
                    not (isinstance(one, ast.Pass) or _holds(one)) for one in handler.body
                ):
                    raise _NoCase("its `except` does more than accept one exception")
                yield self._call(self._replaced(call), source, raises=self._exception(handler.type))
            case ast.Expr(ast.Call(function, [kind, target, *args], keywords)) if (
                _last_name(function) in RAISES
            ):
                call = ast.Call(target, args, keywords)
                yield self._call(self._replaced(call), source, raises=self._exception(kind))
            case ast.Expr(ast.Call(function)) if _last_name(function) in {
                *EQUAL,
                *CLOSE,
                *DECIMALS,
            }:
                yield self._asserted(self._replaced(statement.value), source)
            case ast.Expr(value) if output:
                yield self._call(self._replaced(value), source)
            case _:
                raise _NoCase(NO_CALL)

    def _asserted(self, test: ast.expr, source: str) -> Asked:
        """Return the case that a condition becomes."""
        match test:
            case ast.Compare(left, [ast.Eq() | ast.Is()], [right]):
                tolerance = None
                for one in (left, right):
                    if isinstance(one, ast.Call) and _last_name(one.func) == "approx":
                        tolerance = self._tolerance(one, "approx")
                return self._one_of(left, right, source, tolerance)
            case ast.Compare(
                ast.Call(function, [ast.BinOp(left, ast.Sub(), right)]),
                [ast.Lt() | ast.LtE()],
                [ast.Constant(float() | int() as most)],
            ) if _last_name(function) in ("abs", "fabs"):
                return self._one_of(left, right, source, (0.0, float(most)))
            case ast.Call(ast.Attribute(ast.Compare() as inner, "all"), [], []):
                return self._asserted(inner, source)
            case ast.Call(function, args, _):
                name = _last_name(function)
                if name == "all" and len(args) == 1:
                    return self._asserted(args[0], source)
                if name in {*EQUAL, "array_equal", *CLOSE, *DECIMALS} and len(args) >= 2:
                    return self._one_of(args[0], args[1], source, self._tolerance(test, name))
                return self._call(test, source)
            case ast.UnaryOp(ast.Not(), operand):
                return self._call(operand, source)
        raise _NoCase(NO_CALL)

    def _one_of(
        self, left: ast.expr, right: ast.expr, source: str, tolerance: tuple[float, float] | None
    ) -> Asked:
        """Return the case of the call on one side of a comparison; the other side has no call."""
        for one, other in ((left, right), (right, left)):
            if isinstance(one, ast.Name) and one.id in self.changed and self._plain(other):
                call = self.changed[one.id]
                return replace(call, source=f"{call.source}\n{source}", tolerance=tolerance)
            if isinstance(one, ast.Name) and one.id in self.values:
                if not self._plain(other):
                    raise _NoCase("the expected value is not a literal")
                return Asked(one.id, "", source, "", tolerance, ast.unparse(other))
        mine = [self._is_call(one, any_arguments=True) for one in (left, right)]
        if sum(mine) != 1 or self._uses(right if mine[0] else left):
            raise _NoCase(NO_CALL)
        return self._call(left if mine[0] else right, source, tolerance=tolerance)

    def _raising(self, manager: ast.expr, call: ast.expr, source: str) -> Asked:
        match manager:
            case ast.Call(function, [kind]) if _last_name(function) in RAISES:
                return self._call(call, source, raises=self._exception(kind))
        raise _NoCase(NO_CALL)

    def _exception(self, kind: ast.expr) -> str:
        """Return the name of an exception's class."""
        if not (name := _last_name(kind)):
            raise _NoCase("it names no single exception")
        return name

    def _call(
        self,
        call: ast.expr,
        source: str,
        raises: str = "",
        tolerance: tuple[float, float] | None = None,
    ) -> Asked:
        if not self._is_call(call, any_arguments=True):
            raise _NoCase(NO_CALL)
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Name)
        if not self._is_call(call):
            raise _NoCase(NO_LITERAL)
        if taken := OF_CASE & {str(one.arg) for one in call.keywords}:
            raise _NoCase(f"its argument {sorted(taken)[0]!r} has a name that `case` uses")
        arguments = [*call.args, *call.keywords]
        code = ", ".join(ast.unparse(one) for one in arguments)
        return Asked(call.func.id, code, source, raises, tolerance)

    def _is_call(self, node: ast.expr, any_arguments: bool = False) -> bool:
        match node:
            case ast.Call(ast.Name(name), args, keywords) if name in self.functions:
                values = [*args, *(one.value for one in keywords)]
                whole = all(one.arg for one in keywords)
                return any_arguments or (whole and all(map(self._plain, values)))
        return False

    def _uses(self, node: ast.expr) -> bool:
        return any(isinstance(one, ast.Name) and one.id in self.functions for one in ast.walk(node))

    def _plain(self, node: ast.expr) -> bool:
        """Return whether an expression has the same value each time, and can be copied."""
        match node:
            case ast.Constant(value):
                return value is not ...
            case ast.List(items) | ast.Tuple(items) | ast.Set(items):
                return all(map(self._plain, items))
            case ast.Dict(keys, values):
                return all(one is not None and self._plain(one) for one in [*keys, *values])
            case ast.UnaryOp(_, operand):
                return self._plain(operand)
            case ast.BinOp(left, _, right):
                return self._plain(left) and self._plain(right)
            case ast.Attribute() | ast.Name():
                return self._member(node)
            case ast.Call(function, args, keywords):
                of_builtin = isinstance(function, ast.Name) and function.id in BUILTIN
                if of_builtin and len(args) == 1 and _is_range(args[0]):
                    args = args[0].args  # type: ignore[attr-defined]
                values = [*args, *(one.value for one in keywords)]
                return (of_builtin or self._member(function)) and all(map(self._plain, values))
        return False

    def _member(self, node: ast.expr) -> bool:
        """Return whether an expression is a member of a library that VALUES names."""
        match node:
            case ast.Attribute(ast.Name(name), member):
                return member in VALUES.get(self.imports.modules.get(name, ""), ())
            case ast.Name(name):
                module, _, member = self.imports.members.get(name, "").rpartition(".")
                return member in VALUES.get(module, ())
        return False

    def _tolerance(self, call: ast.Call, name: str) -> tuple[float, float] | None:
        """Return rtol and atol of a call such as `isclose(..., rtol=0.1)`, if it is tolerant."""
        named = {one.arg: one.value for one in call.keywords}
        if name in DECIMALS:
            decimals, units = DECIMALS[name]
            third = call.args[2] if len(call.args) > 2 else None
            value = named.get("decimal", named.get("places", third))
            return 0.0, units * 10.0 ** -int(self._number(value, decimals))
        if name not in CLOSE:
            return None
        rtol, atol, relative, absolute = CLOSE[name]
        if isinstance(call.func, ast.Attribute):
            module = call.func.value
            of_math = isinstance(module, ast.Name) and self.imports.modules.get(module.id) == "math"
        else:
            of_math = self.imports.members.get(name) == "math.isclose"
        if of_math:
            rtol, atol, relative, absolute = OF_MATH
        second = call.args[1:] if name == "approx" else call.args[2:]
        places = dict(zip((relative, absolute), second, strict=False)) | named
        return self._number(places.get(relative), rtol), self._number(places.get(absolute), atol)

    def _number(self, node: ast.expr | None, default: float) -> float:
        match node:
            case None:
                return default
            case ast.Constant(float() | int() as value) if 0 <= value <= 1e6:
                return float(value)
            case ast.BinOp(ast.Constant(10 | 10.0), ast.Pow(), ast.UnaryOp(ast.USub(), digits)):
                return 10.0 ** -min(self._number(digits, 0), 300)
        raise _NoCase("its tolerance is not a number")

    def _replaced(self, node: ast.expr) -> ast.expr:
        """Return an expression with known values in place of their names."""
        return _Known(self.known).visit(deepcopy(node)) if self.known else node

    def _source(self, statement: ast.stmt) -> str:
        end = statement.end_lineno or statement.lineno
        lines = self.lines[statement.lineno - 1 : end]
        indent = " " * statement.col_offset
        return "\n".join(line.removeprefix(indent) for line in lines)


class _Known(ast.NodeTransformer):
    def __init__(self, known: Mapping[str, ast.expr]) -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return deepcopy(self.known.get(node.id, node))


def _is_range(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"
    )


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _last_name(node: ast.expr) -> str:
    """Return `isclose` for both `isclose` and `np.isclose`; "" for anything else."""
    match node:
        case ast.Name(name) | ast.Attribute(_, name):
            return name
    return ""


def _fails(statement: ast.stmt) -> bool:
    """Return whether a statement reports a missing exception: `assert False`, or a `raise`."""
    match statement:
        case ast.Assert(ast.Constant(value)):
            return not value
        case ast.Raise(ast.expr()):
            return True
        case ast.Expr(ast.Call(ast.Attribute(_, "fail"))):
            return True
        case ast.Expr(ast.Call(ast.Name("print"))):
            return True
    return False


def _holds(statement: ast.stmt) -> bool:
    """Return whether a statement of an `except` accepts the exception."""
    match statement:
        case ast.Assert(ast.Constant(value)):
            return bool(value)
        case ast.Expr(ast.Call(ast.Name("print"))):
            return True
    return False
