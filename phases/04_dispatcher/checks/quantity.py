"""Lab 04, exercise 6: Metres and seconds"""

import torch

from utils.checks.exercise import Case, Check, edited

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
    "[0]": "it is refused, and should be answered.",
    "[1]": "the result is no Quantity.",
    "[2]": "the values",
    "[3]": "the units",
}
REFUSED = {
    "[0]": "it is answered, and should be refused.",
    "[1]": "it is refused with another exception: ValueError is for a rule that is broken, "
    "NotImplementedError for an operator that is not in the table.",
}


def _told(came):
    """What a step gave: whether it was answered, by what or with which error, values and units."""
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
    twice = [("x", "mul", "speed", "time"), ("a speed that was a factor", "add", "speed", "speed")]
    yield measured(sums, given, twice, "an operand that is used again")
    twice = [("x", "div", "speed", "time"), ("a speed that was divided", "add", "speed", "speed")]
    yield measured(sums, given, twice, "a dividend that is used again")
    yield one(sums, "mm", "length", "area")
    yield one(sums, "mm", "speed", "area")
    unitless = [("x", "div", "length", "other"), ("y", "mul", "x", "time"), ("z", "add", "x", 1.0)]
    yield measured(sums, given, unitless, "a length by a length, and on")

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
        keeps, given, [("v", "flatten", "area"), ("w", "mul", "v", 2.0)], "flatten, which calls view, and a product with that"
    )
    yield measured(
        keeps,
        given,
        [("n", "neg", "speed"), ("t", "t", "n"), ("s", "sum", "t", 0)],
        "one after another",
    )

    yield one(roots, "sqrt", "area")
    yield one(roots, "sqrt", "ratio")
    high = {"q": (positive((a,)), {"m": 2 * power, "s": -4})}
    yield measured(
        roots, high, [("r", "sqrt", "q"), ("rr", "reciprocal", "r")], "the root of even powers, one of them negative, and one over it"
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
        "exp of what has lost its units",
    )

    for operator in ("add", "sub"):
        for arguments in (("length", "time"), ("length", 1.0), ("length", "plain"), ("plain", "length"),
                          ("length", "ratio"), ("length", "speed"), ("length", "square")):  # fmt: skip
            yield one(refused, operator, *arguments)
    odd = {"q": (positive((a,)), {"m": 2, "s": -3})}
    yield measured(refused, odd, [("r", "sqrt", "q")], "the root of an odd power")
    yield one(refused, "sqrt", "length")
    yield one(refused, "exp", "length")
    yield one(refused, "log", "speed")
    yield one(refused, "sqrt", "speed")
    for operator in ("tanh", "clone", "log2", "neg_"):
        yield one(refused, operator, "ratio")
        yield one(refused, operator, "length")


quantity.misconception(
    "adds whatever comes",
    "quantities of different units are added, and the first one's units stay.",
    earns=4,
)(edited(Quantity, ("if first != second:", "if False:")))
quantity.misconception(
    "a plain number fits every unit",
    "something without units is added to a quantity that has some.",
    earns=4,
)(edited(Quantity, ("if first != second:", "if first and second and first != second:")))
quantity.misconception(
    "a plain operand fits every unit",
    "a plain number or tensor is added to a quantity that has units.",
    earns=4,
)(
    edited(
        Quantity,
        (
            "if first != second:",
            "if all(isinstance(a, cls) for a in args[:2]) and first != second:",
        ),
    )
)
quantity.misconception(
    "units in their order",
    "the same units, given in another order, are taken to be different.",
    earns=3,
)(edited(Quantity, ("if first != second:", "if [*first.items()] != [*second.items()]:")))
quantity.misconception(
    "the powers of a root in sum",
    "`sqrt` asks for the sum of the powers to be even, and not for each of them.",
    earns=4,
)(
    edited(
        Quantity,
        ("any((power % 2 for power in first.values()))", "sum(first.values()) % 2"),
    )
)
quantity.misconception(
    "no negative powers in a root",
    "`sqrt` refuses a negative power, even or not.",
    earns=4,
)(edited(Quantity, ("any((power % 2 for power", "any((power % 2 or power < 0 for power")))
quantity.misconception(
    "a root of nothing",
    "`sqrt` refuses a quantity that has no units.",
    earns=4,
)(
    edited(
        Quantity,
        ("any((power % 2 for power in first.values()))",
         "not first or any((power % 2 for power in first.values()))"),
    )
)  # fmt: skip
quantity.misconception(
    "powers divided to floats",
    "the powers of a root are floats, and odd ones are halved, too.",
    earns=3,
)(
    edited(
        Quantity,
        ("if any((power % 2 for power in first.values())):", "if False:"),
        ("power // 2", "power / 2"),
    )
)
quantity.misconception(
    "the operand's own dict",
    "a product or quotient writes its units into those of its first operand.",
    earns=3,
)(
    edited(
        Quantity,
        ("return {u: a.get(u, 0) + sign * b.get(u, 0) for u in {**a, **b}}",
         "a.update({u: a.get(u, 0) + sign * b.get(u, 0) for u in {**a, **b}})\n            return a"),
    )
)  # fmt: skip
quantity.misconception(
    "the first power stays",
    "where a unit is in both factors, the first one's power stays.",
    earns=2,
)(
    edited(
        Quantity,
        ("{u: a.get(u, 0) + sign * b.get(u, 0) for u in {**a, **b}}",
         "{**{u: sign * p for u, p in b.items()}, **a}"),
    )
)  # fmt: skip
quantity.misconception(
    "logarithms of anything",
    "`log` takes a quantity that has units, where `exp` refuses it.",
    earns=4,
)(edited(Quantity, ("if first:\n                raise", "if first and name == 'exp':\n                raise")))
quantity.misconception(
    "in place like its twin",
    "an operator that writes in place is answered like the one without the underscore.",
    earns=4,
)(edited(Quantity, ("func.overloadpacket.__name__", "func.overloadpacket.__name__.rstrip('_')")))
quantity.misconception(
    "keywords dropped",
    "the operator is called without its keyword arguments.",
    earns=2,
)(edited(Quantity, ("cls(func(*args, **kwargs), units)", "cls(func(*args), units)")))
quantity.misconception(
    "view forgotten",
    "`view` is refused, and with it `flatten`, which calls it.",
    earns=4,
)(edited(Quantity, (", 't', 'view'}", ", 't'}")))
quantity.misconception(
    "a TypeError for units",
    "what breaks a rule of `add` or `sub` is refused with another exception than ValueError.",
    earns=4,
)(edited(Quantity, ("ValueError(f'{name} of {first} and {second}')", "TypeError(f'{name} of {first} and {second}')")))
quantity.misconception(
    "unknown operators break a rule",
    "an operator that is not in the table raises another exception than NotImplementedError.",
    earns=4,
)(edited(Quantity, ("raise NotImplementedError(", "raise ValueError(")))
quantity.misconception(
    "the same unit, whatever its power",
    "units are compared by name, without their powers.",
    earns=4,
)(edited(Quantity, ("if first != second:", "if set(first) != set(second):")))
quantity.misconception(
    "products keep the first unit",
    "a product has the units of its first factor.",
    earns=3,
)(edited(Quantity, ("units = combined(first, second, 1)", "units = first")))
quantity.misconception(
    "quotients add powers",
    "a quotient's units are those of a product.",
    earns=2,
)(edited(Quantity, ("combined(first, second, -1)", "combined(first, second, 1)")))
quantity.misconception(
    "one power a unit",
    "where a unit is in both factors, the second one's power replaces the first one's.",
    earns=2,
)(
    edited(
        Quantity,
        (
            "{u: a.get(u, 0) + sign * b.get(u, 0) for u in {**a, **b}}",
            "{**a, **{u: sign * p for u, p in b.items()}}",
        ),
    )
)
quantity.misconception(
    "the sum loses the unit",
    "`sum` and `mean` have no units.",
    earns=4,
)(
    edited(
        Quantity,
        ("units = first\n        elif name == 'sqrt':",
         "units = {} if name in ('sum', 'mean') else first\n        elif name == 'sqrt':"),
    )
)  # fmt: skip
quantity.misconception("the root keeps the unit", "`sqrt` leaves the powers as they are.", earns=4)(
    edited(Quantity, ("{unit: power // 2 for unit, power in first.items()}", "first"))
)
quantity.misconception(
    "roots of odd powers",
    "an odd power is halved, too, and rounded.",
    earns=4,
)(edited(Quantity, ("if any((power % 2 for power in first.values())):", "if False:")))
quantity.misconception(
    "one over a metre is a metre", "`reciprocal` leaves the powers as they are.", earns=4
)(edited(Quantity, ("{unit: -power for unit, power in first.items()}", "first")))
quantity.misconception(
    "functions of anything",
    "`exp` and `log` take a quantity that has units.",
    earns=4,
)(edited(Quantity, ("if first:\n                raise", "if False:\n                raise")))
quantity.misconception(
    "unknown operators keep the unit",
    "an operator that is not in the table answers all the same.",
    earns=4,
)(
    edited(
        Quantity, ("raise NotImplementedError(f'Quantity does not know {func}')", "units = first")
    )
)
quantity.misconception(
    "no unit, no quantity",
    "a result without units is a plain tensor.",
    earns=1,
)(
    edited(
        Quantity,
        (
            "return cls(func(*args, **kwargs), units)",
            "result = func(*args, **kwargs)\n        return cls(result, units) if any(units.values()) else result",
        ),
    )
)
quantity.misconception(
    "the first operand's units alone are looked at",
    "a quantity that comes second, behind a plain tensor, is taken to have no units.",
    earns=2,
)(
    edited(
        Quantity,
        (
            "[*map(units_of, args), {}][:2]",
            "[*map(units_of, args), {}][: 2 if isinstance(args[0], cls) else 1] + [{}] * (not isinstance(args[0], cls))",
        ),
    )
)


@quantity.alternate("a function for each operator")
class QuantityByTable(torch.Tensor):
    @staticmethod
    def __new__(cls, values, units):
        return torch.Tensor._make_wrapper_subclass(
            cls, values.shape, strides=values.stride(), dtype=values.dtype, device=values.device
        )

    def __init__(self, values, units):
        self.values = values
        self.units = {unit: power for unit, power in units.items() if power}

    @classmethod
    def rule(cls, name, a, b):
        if name in {"neg", "abs", "sum", "mean", "t", "view"}:
            return a
        if name in {"mul", "mm"}:
            both = dict(a)
            for unit, power in b.items():
                both[unit] = both.get(unit, 0) + power
            return both
        if name == "div":
            return cls.rule("mul", a, cls.rule("reciprocal", b, None))
        if name == "reciprocal":
            return {unit: -power for unit, power in a.items()}
        if name in {"add", "sub"} and a == b:
            return {**a}
        if name == "sqrt" and not any(power % 2 for power in a.values()):
            return {unit: power // 2 for unit, power in a.items()}
        if name in {"exp", "log"} and not a:
            return {}
        if name in {"add", "sub", "sqrt", "exp", "log"}:
            raise ValueError(f"{name} of {a} {b}")
        raise NotImplementedError(name)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        units = [a.units if isinstance(a, cls) else {} for a in args] + [{}]
        result = cls.rule(func.overloadpacket.__name__, units[0], units[1])
        plain = [a.values if isinstance(a, cls) else a for a in args]
        return cls(func(*plain, **(kwargs or {})), result)


@quantity.alternate("compared with the operators themselves")
class QuantityByPacket(torch.Tensor):
    @staticmethod
    def __new__(cls, values, units):
        return torch.Tensor._make_wrapper_subclass(
            cls, values.shape, strides=values.stride(), dtype=values.dtype, device=values.device
        )

    def __init__(self, values, units):
        self.values = values
        self.units = {unit: power for unit, power in units.items() if power}

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        aten, op = torch.ops.aten, func.overloadpacket
        mine, yours = [*(getattr(a, "units", {}) for a in args), {}][:2]
        every = {*mine, *yours}
        if op is aten.add or op is aten.sub:
            if mine != yours:
                raise ValueError("different units")
            new = mine
        elif op is aten.mul or op is aten.mm:
            new = {u: mine.get(u, 0) + yours.get(u, 0) for u in every}
        elif op is aten.div:
            new = {u: mine.get(u, 0) - yours.get(u, 0) for u in every}
        elif op is aten.reciprocal:
            new = {u: -p for u, p in mine.items()}
        elif op is aten.sqrt:
            if any(p % 2 for p in mine.values()):
                raise ValueError("an odd power")
            new = {u: p // 2 for u, p in mine.items()}
        elif op in {aten.exp, aten.log}:
            if mine:
                raise ValueError("expected a number without units")
            new = mine
        elif op in {aten.neg, aten.abs, aten.sum, aten.mean, aten.t, aten.view}:
            new = mine
        else:
            raise NotImplementedError(str(op))
        inner = [a.values if isinstance(a, cls) else a for a in args]
        return cls(func(*inner, **(kwargs or {})), new)


quantity.equivalent(
    ("kwargs or {}", "kwargs"),
    because="torch hands a dict over even where it promises None as well",
)
quantity.equivalent(
    ("@staticmethod", ""),
    (", strides=values.stride()", ""),
    (", dtype=values.dtype", ""),
    (", device=values.device", ""),
    because="the lab gives `__new__` as it stands, which Python makes static by itself",
)
quantity.equivalent(
    ("return {**a}", "return {**b}"),
    because="the two are the same here",
)
quantity.equivalent(
    ("combined(first, second, 1)", "combined(second, first, 1)"),
    (
        "rule('mul', a, cls.rule('reciprocal', b, None))",
        "rule('mul', cls.rule('reciprocal', b, None), a)",
    ),
    because="a product's units don't depend on the order of its factors",
)
