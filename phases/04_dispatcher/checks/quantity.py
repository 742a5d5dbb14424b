"""Lab 04, exercise 6: Metres and seconds"""

import torch

from hood.judge.checks.exercise import Case, Check

quantity = Check(
    "Quantity",
    parts={"sums and products": 2, "what keeps its units": 1, "roots and powers": 1, "refusals": 1},
    reads="Tensors that answer",
)


@quantity.reference
class Quantity(torch.Tensor):
    @staticmethod
    def __new__(cls, values, units):
        return torch.Tensor._make_wrapper_subclass(
            cls, values.shape, strides=values.stride(), dtype=values.dtype, device=values.device
        )

    def __init__(self, values, units):
        self.values = values
        self.units = {unit: power for unit, power in units.items() if power}

    def __repr__(self):
        return f"{self.values} {self.units}"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def units_of(thing):
            return thing.units if isinstance(thing, cls) else {}

        def plain(thing):
            return thing.values if isinstance(thing, cls) else thing

        def combined(a, b, sign):
            return {u: a.get(u, 0) + sign * b.get(u, 0) for u in {**a, **b}}

        name = func.overloadpacket.__name__
        first, second = [*map(units_of, args), {}][:2]
        if name in {"add", "sub"}:
            if first != second:
                raise ValueError(f"{name} of {first} and {second}")
            units = first
        elif name in {"mul", "mm"}:
            units = combined(first, second, 1)
        elif name == "div":
            units = combined(first, second, -1)
        elif name in {"neg", "abs", "sum", "mean", "t", "view"}:
            units = first
        elif name == "sqrt":
            if any(power % 2 for power in first.values()):
                raise ValueError(f"the root of {first}")
            units = {unit: power // 2 for unit, power in first.items()}
        elif name == "reciprocal":
            units = {unit: -power for unit, power in first.items()}
        elif name in {"exp", "log"}:
            if first:
                raise ValueError(f"{name} of {first}")
            units = {}
        else:
            raise NotImplementedError(f"Quantity does not know {func}")
        args, kwargs = torch.utils._pytree.tree_map(plain, (args, kwargs or {}))
        return cls(func(*args, **kwargs), units)


ANSWERED = {
    "[0]": "an error is raised. There should be a result.",
    "[1]": "the result is not a Quantity.",
    "[2]": "the values",
    "[3]": "the units",
}
REFUSED = {
    "[0]": "there is a result. An error should be raised.",
    "[1]": "the wrong exception is raised. It should be a ValueError for a broken rule, and "
    "a NotImplementedError for an operator that is not in the table.",
}


def _told(came):
    """The outcome of a step: whether it has a result, the result's type or the error, values, units."""
    kind, *rest = came if isinstance(came, (tuple, list)) and came else (None,)
    if kind == "raised":
        return False, rest, None, None
    return True, kind, *rest[:1], rest[1:]


@quantity.cases
def _(draw):
    def positive(shape):
        return draw.tensor(shape).abs() + 0.5

    def measured(part, given, program, shown):
        asked = {word for step in program for word in step if isinstance(word, str)}
        used = {name: value for name, value in given.items() if name in asked}

        def play(subject):
            came = subject.drive("dispatch:measure", used, program)
            return {name: _told(came.get(name)) for name, *_ in program}

        words = REFUSED if part == "refusals" else ANSWERED
        places = {
            f"['{name}']{path}": said if len(program) == 1 or said.endswith(".") else f"{name}: {said}"
            for name, *_ in program
            for path, said in words.items()
        }
        return Case(part, play, shown=shown, places=places)

    a, b, c = draw.shape(3)
    power = draw.integer(2, 4)
    length = positive((a, b)), {"m": 1}
    other = positive((a, b)), {"m": 1}
    time = positive((a, b)), {"s": 1}
    speed = positive((a, b)), {"m": 1, "s": -1}
    area = positive((b, c)), {"m": 2}
    ratio = positive((a, b)), {}
    mixed = positive((a, b)), {"kg": power, "s": -2}
    plain = (positive((a, b)),)
    number = positive(()), {"m": 1}
    square = positive((a, b)), {"m": 2}
    given = {
        "length": length, "other": other, "time": time, "speed": speed, "area": area,
        "ratio": ratio, "mixed": mixed, "plain": plain, "number": number, "three": (3,),
        "square": square, "turned": (positive((a, b)), {"s": -1, "m": 1}),
    }  # fmt: skip

    WORDS = {
        "length": "a length", "other": "a length", "time": "a time", "speed": "a speed",
        "area": "an area", "ratio": "a Quantity without units", "mixed": f"kg^{power}/s^2",
        "plain": "a plain tensor", "number": "a length without dimensions", "three": "3",
        "square": "an area",
    }  # fmt: skip

    def one(part, operator, *arguments, shown=None):
        named = [WORDS.get(a, str(a)) for a in arguments if not isinstance(a, dict)]
        words = shown or f"{operator} of {', '.join(named)}"
        return measured(part, given, [("came", operator, *arguments)], words)

    sums, keeps, roots, refused = quantity.parts
    for arguments in (("length", "other"), ("length", "number"), ("ratio", 1.5), ("ratio", "plain"),
                      ("plain", "ratio"), ("speed", "speed"), ("mixed", "mixed")):  # fmt: skip
        yield one(sums, "add", *arguments)
        yield one(sums, "sub", *arguments)
    yield one(
        sums, "add", "length", "other", {"alpha": power}, shown="add of two lengths, with the keyword alpha"
    )
    yield one(sums, "sub", "speed", "turned", shown="sub of the same units in another order")
    for arguments in (("length", "time"), ("length", 2.5), ("length", "plain"), ("plain", "length"),
                      ("speed", "time"), ("speed", "mixed"), ("number", "time"),
                      ("length", "three"), ("ratio", "ratio")):  # fmt: skip
        yield one(sums, "mul", *arguments)
        yield one(sums, "div", *arguments)
    twice = [("x", "mul", "speed", "time"), ("a speed that was a factor before", "add", "speed", "speed")]
    yield measured(sums, given, twice, "an operand that is used again")
    twice = [("x", "div", "speed", "time"), ("a speed that was divided", "add", "speed", "speed")]
    yield measured(sums, given, twice, "a dividend that is used again")
    yield one(sums, "mm", "length", "area")
    yield one(sums, "mm", "speed", "area")
    unitless = [("x", "div", "length", "other"), ("y", "mul", "x", "time"), ("z", "add", "x", 1.0)]
    yield measured(sums, given, unitless, "a length divided by a length, and two steps more")

    for name in ("length", "mixed", "ratio", "number"):
        for operator in ("neg", "abs", "sum", "mean"):
            yield one(keeps, operator, name)
    yield one(keeps, "sum", "mixed", 0, shown="sum over one dimension")
    yield one(keeps, "mean", "speed", 1, True, shown="mean over one dimension, kept")
    exact = {"q": (draw.tensor((a, b), torch.float64), {"m": 1})}
    yield measured(keeps, exact, [("n", "neg", "q"), ("s", "sum", "n")], "a sum in float64")
    yield one(keeps, "sum", "length", {"dtype": torch.float64}, shown="sum of a length, with the keyword dtype")
    yield one(keeps, "t", "area")
    yield measured(
        keeps, given, [("v", "flatten", "area"), ("w", "mul", "v", 2.0)], "flatten, which calls view, and a product with its result"
    )
    yield measured(
        keeps,
        given,
        [("n", "neg", "speed"), ("t", "t", "n"), ("s", "sum", "t", 0)],
        "neg, t and sum, one after another",
    )

    yield one(roots, "sqrt", "area")
    yield one(roots, "sqrt", "ratio")
    high = {"q": (positive((a,)), {"m": 2 * power, "s": -4})}
    yield measured(
        roots, high, [("r", "sqrt", "q"), ("rr", "reciprocal", "r")], "the root of units with even powers, one of them negative, and the reciprocal of the root"
    )
    again = [("r", "sqrt", "square"), ("the square", "add", "square", "square"),
             ("p", "reciprocal", "speed"), ("the speed", "add", "speed", "speed")]  # fmt: skip
    yield measured(roots, given, again, "operands that are used again")
    yield one(roots, "reciprocal", "mixed")
    yield one(roots, "reciprocal", "ratio")
    yield one(roots, "exp", "ratio")
    yield one(roots, "log", "ratio")
    yield measured(
        roots,
        given,
        [("x", "div", "mixed", "mixed"), ("e", "exp", "x")],
        "exp of a quotient without units",
    )

    for operator in ("add", "sub"):
        for arguments in (("length", "time"), ("length", 1.0), ("length", "plain"), ("plain", "length"),
                          ("length", "ratio"), ("length", "speed"), ("length", "square")):  # fmt: skip
            yield one(refused, operator, *arguments)
    odd = {"q": (positive((a,)), {"m": 2, "s": -3})}
    yield measured(refused, odd, [("r", "sqrt", "q")], "the root of a unit with an odd power")
    odd = {"q": (positive((a,)), {"m": 3, "s": 2})}
    yield measured(refused, odd, [("r", "sqrt", "q")], "the root of a unit with an odd power above 2")
    yield one(refused, "sqrt", "length")
    yield one(refused, "exp", "length")
    yield one(refused, "log", "speed")
    yield one(refused, "sqrt", "speed")
    for operator in ("tanh", "clone", "log2", "neg_", "rsqrt", "expm1"):
        yield one(refused, operator, "ratio")
        yield one(refused, operator, "length")
