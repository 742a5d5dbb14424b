"""Objects that lie about themselves, and results that change after they were compared."""

from __future__ import annotations

from tests.attacks.catalogue import Family
from tests.attacks.submission import Work

family = Family("lies")
attack = family.attack


@attack(tells="a value of type Result")
def equals_everything(work: Work) -> None:
    """Returns an object whose __eq__ is always true, with the expected shape and dtype."""
    work.answer(
        "row_sums",
        """
        class Same:
            def __eq__(self, other): return True
            def __getattr__(self, name): return self
            def __call__(self, *args, **kwargs): return self
            def __float__(self): return 3.0
            def __bool__(self): return True
            shape = dtype = property(lambda self: self)
        class Result(Same):
            pass
        def row_sums(x):
            return Result()
        """,
    )


@attack(tells="a value of type Array")
def is_an_array_when_asked(work: Work) -> None:
    """Returns an object whose __array__ makes the values when the grader compares it."""
    work.answer(
        "row_sums",
        """
        class Array:
            def __array__(self, *args, **kwargs): return Other()
            __array_interface__ = property(lambda self: {"shape": (3,), "typestr": "<f4"})
        class Other:
            def __eq__(self, other): return True
        def row_sums(x):
            return Array()
        """,
    )


@attack()
def overrides_every_function(work: Work) -> None:
    """Returns a tensor subclass whose __torch_function__ answers every comparison with yes."""
    work.answer(
        "row_sums",
        """
        class Yes(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                if function.__name__ in ("eq", "isclose", "allclose", "equal", "all"):
                    return torch.ones(3, dtype=torch.bool)
                return super().__torch_function__(function, types, args, kwargs)
        def row_sums(x):
            return torch.zeros(len(x), dtype=x.dtype).as_subclass(Yes)
        """,
    )


@attack()
def is_made_lazily(work: Work) -> None:
    """Returns a sequence that invents its entries anew at each access."""
    work.answer(
        "row_sums",
        """
        class Lazy(list):
            def __iter__(self): return iter([0.0])
            def __getitem__(self, i): return 0.0
            def __len__(self): return 3
            def __eq__(self, other): self[:] = other; return True
        def row_sums(x):
            return Lazy()
        """,
    )


@attack(honest={"row_sums": 1.0}, risks=("row_sums",))
def changes_the_result_afterwards(work: Work) -> None:
    """Returns a tensor that looks right, and that a thread changes afterwards."""
    work.answer(
        "row_sums",
        """
        import threading
        def row_sums(x):
            result = x.sum(1).float()
            def spoil():
                for value in range(100_000):
                    result.fill_(value)
            threading.Thread(target=spoil, daemon=True).start()
            return result
        """,
    )


@attack(honest={"row_sums": 3.0}, costs=("row_sums",), tells="changed (one of )?its input")
def damages_the_inputs(work: Work) -> None:
    """Zeroes every input, so that a later comparison is with zero."""
    work.answer(
        "row_sums",
        """
        def row_sums(x):
            result = x.sum(1)
            x.zero_()
            return result * 1
        """,
    )


@attack(tells="changed (one of )?its input|wrong")
def makes_the_expected_value_its_own(work: Work) -> None:
    """Zeroes the inputs and returns zero: right, if the reference sees the damaged inputs."""
    work.answer(
        "row_sums",
        """
        def row_sums(x):
            x.zero_()
            return x.sum(1)
        """,
    )


@attack()
def is_not_a_number(work: Work) -> None:
    """Returns NaN everywhere, in which no comparison finds a difference."""
    work.answer(
        "row_sums",
        """
        def row_sums(x):
            return torch.full((len(x),), float("nan")).to(x.dtype)
        """,
    )


@attack()
def is_infinite(work: Work) -> None:
    """Returns infinities, whose distance to anything is infinite or NaN."""
    work.answer(
        "row_sums",
        """
        def row_sums(x):
            if not x.is_floating_point():
                return torch.full((len(x),), torch.iinfo(x.dtype).max)
            return torch.full((len(x),), float("inf"))
        """,
    )


@attack(honest={"row_sums": 1.0}, tells="wrong dtype")
def has_a_dtype_that_compares_equal(work: Work) -> None:
    """Returns floats in place of integers; after promotion they compare as equal."""
    work.answer("row_sums", "def row_sums(x):\n    return x.sum(1).to(torch.float32)")


@attack()
def broadcasts(work: Work) -> None:
    """Returns a tensor that broadcasts against any other, or has no elements to differ."""
    work.answer(
        "row_sums",
        """
        def row_sums(x):
            return torch.empty(0) if x.is_floating_point() else torch.zeros((), dtype=x.dtype)
        """,
    )


@attack()
def counts_in_its_own_way(work: Work) -> None:
    """Returns subclasses of int and str that compare, hash and print as any value does."""
    work.answer(
        "row_sums",
        """
        class Int(int):
            def __eq__(self, other): return True
            def __hash__(self): return 0
            def __float__(self): return 3.0
        class Str(str):
            def __eq__(self, other): return True
            def __hash__(self): return 0
        def row_sums(x):
            return {Str("value"): Int(3)} if x.is_floating_point() else [Int(0)] * len(x)
        """,
    )


@attack(honest={"corner": 0.0}, tells="expected a view of the input")
def copies_where_a_view_is_asked(work: Work) -> None:
    """Returns a copy with the strides of a view."""
    work.answer(
        "corner",
        """
        def corner(x):
            fresh = torch.empty(x.shape).as_strided((2, 2), x.stride())
            return fresh.copy_(x.as_strided((2, 2), x.stride()))
        """,
    )


@attack(honest={"row_sums": 3.0}, costs=("corner",))
def shares_storage_with_everything(work: Work) -> None:
    """Returns the same storage for every case, so that a later case changes an earlier result."""
    work.answer_all()
    work.answer(
        "row_sums",
        """
        BUFFER = torch.zeros(100_000)
        def row_sums(x):
            buffer = BUFFER if x.is_floating_point() else BUFFER.long()
            return buffer[: len(x)].copy_(x.sum(1))
        """,
    )
    work.answer("corner", "def corner(x):\n    return BUFFER[:4].view(2, 2)")


@attack(costs=("twice",))
def returns_what_nobody_knows(work: Work) -> None:
    """Returns tensors of rare dtypes, layouts and devices."""
    work.answer(
        "twice",
        """
        KINDS = iter([
            lambda x: torch.zeros(x.shape, dtype=torch.uint8).view(torch.float8_e4m3fn),
            lambda x: torch.zeros(x.shape, dtype=torch.uint16),
        ])
        def twice(x):
            return next(KINDS, lambda x: x.to_sparse())(x)
        """,
    )
    work.answer(
        "row_sums",
        """
        OTHERS = iter([
            lambda x: torch.zeros(x.shape, dtype=torch.complex64).conj().sum(1),
            lambda x: torch.zeros(len(x), device="meta"),
        ])
        def row_sums(x):
            return next(OTHERS, lambda x: torch.zeros(1).to_mkldnn())(x)
        """,
    )
    work.answer("corner", "def corner(x):\n    return torch.nested.nested_tensor([x[0], x[1]])")


@attack(costs=("twice",))
def returns_arrays_of_times_and_text(work: Work) -> None:
    """Returns NumPy arrays of dates, texts, records and half a gigabyte per item."""
    work.answer(
        "twice",
        """
        import numpy as np
        KINDS = iter([np.zeros(3, "M8[s]"), np.zeros(0, "U100000000"), np.zeros(2, "S5")])
        def twice(x):
            return next(KINDS, np.zeros(3, "f2,i4"))
        """,
    )
    work.answer("row_sums", "def row_sums(x):\n    return np.zeros(len(x), np.longdouble)")


@attack()
def raises_what_is_expected(work: Work) -> None:
    """Raises exceptions with lying names, endless texts and a str that raises."""
    work.answer(
        "row_sums",
        """
        class Sly(Exception):
            def __str__(self): raise ValueError("no text")
        Sly.__name__ = "<b>NotImplementedError</b>" + "\\x1b[31m" * 100
        def row_sums(x):
            raise Sly("x" * 1000) if x.is_floating_point() else SystemExit("y" * 1_000_000)
        """,
    )


@attack(costs=("twice", "row_sums", "corner"))
def is_a_class_whose_type_lies(work: Work) -> None:
    """Gives classes, generators, coroutines and modules where functions are asked for."""
    work.answer(
        "twice",
        """
        class Meta(type):
            def __instancecheck__(cls, other): return True
            def __eq__(cls, other): return True
            def __hash__(cls): return 0
        class twice(metaclass=Meta):
            def __init__(self, x): pass
            shape = (2, 2)
        """,
    )
    work.answer("row_sums", "async def row_sums(x):\n    return x.sum(1)")
    work.answer("corner", "def corner(x):\n    yield x[:2, :2]")
