"""Kinds of values besides tensors and arrays of numbers: sent, compared, written and drawn."""

import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy import sparse

from hood.judge.checks.compare import compare, kind_of
from hood.judge.checks.draw import Draw, SmallDraw
from hood.judge.checks.exercise import Case, Check, case
from hood.judge.connection import codec, effects
from hood.judge.connection.codec import HEADER, NotByValue, unpack
from hood.judge.examples.example import exemplify
from hood.judge.examples.literal import Unprintable, literal
from hood.judge.verdicts.judge import judge
from tests.hood.by_value import copy_by_value
from tests.hood.one_part import one_part

NAMES = {name: globals()[name] for name in ("np", "pd", "sparse", "date", "datetime", "time")}
NAMES |= {"timedelta": timedelta, "Decimal": Decimal, "Fraction": Fraction}
TABLE = pd.DataFrame(
    {"city": ["Rome", None], "price": [1.5, np.nan], "sold": [1, 2]}, index=["a", "b"]
)

SCALARS = [
    date(2024, 2, 29),
    datetime(2024, 1, 1, 3, 4, 5, 6),
    datetime(2024, 1, 1, tzinfo=UTC),
    time(3, 4),
    timedelta(days=1, seconds=-5),
    timedelta(),
    Decimal("1.50"),
    Decimal("NaN"),
    Decimal("-Infinity"),
    Fraction(-1, 3),
    np.datetime64("2024-01-01"),
    np.datetime64("NaT", "s"),
    np.timedelta64(3, "h"),
    pd.Timestamp("2024-01-01 03:04:05.000000006"),
    pd.Timedelta("1h"),
    pd.NaT,
    pd.NA,
]
CONTAINERS = [
    {1, 2, "x"},
    set(),
    frozenset({(1, 2), date(2024, 1, 1)}),
    np.array(["a", "bcd"]),
    np.array([b"a"]),
    np.array([["a"], ["b"]]),
    np.array([None, "x", [1]], object),
    np.array(["2024-01-01", "NaT"], "M8[D]"),
    np.array([1, 2], "m8[s]"),
    np.array([(1, 2.5)], [("i", "i4"), ("f", "f8")]),
    np.ma.MaskedArray([1, 2, 3], [0, 1, 0]),
    TABLE,
    TABLE["price"],
    TABLE.index,
    pd.Index([3, 4], name="k"),
    pd.Series(pd.Categorical(["a", "b"])),
    pd.Series([1, None], dtype="Int64"),
    pd.Series(pd.to_datetime(["2024-01-31", "2024-02-29"])),
    pd.Series(pd.to_datetime(["2024-01-31 12:30", None])),
    pd.Series(np.array(["2024-01-31"], "datetime64[s]")),
    pd.DataFrame({"n": pd.Series([1, 2], dtype="int32")}),
    pd.DataFrame({"n": pd.Series([1, 2], dtype="uint8")}),
    sparse.csr_matrix([[0, 1], [2, 0]]),
    sparse.csc_array([[0, 1.5], [2, 0]]),
    sparse.coo_array([[0, 1], [2, 0]]),
]
NOT_WRITTEN = [
    pd.MultiIndex.from_tuples([(1, "a"), (1, "b")], names=["n", "m"]),
    pd.DataFrame(),
    pd.DataFrame({"a": []}),
    pd.Series(pd.to_timedelta([1, 2], "D")),
    pd.Series([0.5], dtype="float32"),
    pd.DataFrame([[1, 2]], columns=["a", "a"]),
    sparse.lil_matrix([[0, 1]]),
    np.array([[None]]),
]


@pytest.mark.parametrize("value", [*SCALARS, *CONTAINERS], ids=lambda value: type(value).__name__)
def test_a_value_is_sent_and_written(value):
    for came in (copy_by_value(value), eval(literal(value), NAMES)):
        assert type(came) is type(value)
        assert compare(copy_by_value(came), value) is None
    assert copy_by_value([value, {"k": value}])[1].keys() == {"k"}


@pytest.mark.parametrize("value", NOT_WRITTEN, ids=lambda value: type(value).__name__)
def test_some_values_are_sent_but_have_no_short_literal(value):
    assert compare(copy_by_value(value), value) is None
    with pytest.raises(Unprintable):
        literal(value)


@pytest.mark.parametrize(
    ("got", "want", "summary"),
    [
        ({1, 2}, {1, 3}, "wrong items in the set: 1 missing, 1 not expected"),
        ([1], {1}, "expected a set, got a list"),
        (frozenset({1}), {1}, "expected a set, got a frozenset"),
        (date(2024, 1, 1), date(2024, 1, 2), "the date is not the expected one"),
        (datetime(2024, 1, 1), date(2024, 1, 1), "expected a date, got a datetime"),
        (1.5, Decimal("1.5"), "expected a Decimal, got a float"),
        (Decimal("1.5"), 1.5, "expected a float, got a Decimal"),
        (Fraction(1, 2), Fraction(1, 3), "the Fraction is not the expected one"),
        (1, Fraction(1, 1), "expected a Fraction, got an int"),
        (KeyError("a"), ValueError("a"), "expected a ValueError, got a KeyError"),
        (np.array(["a"]), np.array(["b"]), "at [0]: the text is not the expected one"),
        (np.array(["a"]), np.array([1]), "expected a NumPy array, got a NumPy array of texts"),
        (np.array(["a"]), np.array(["a", "b"]), "wrong shape: expected (2,), got (1,)"),
        (np.array([1], "M8[D]"), np.array([2], "M8[D]"),
         "at [0]: the text is not the expected one"),
        (np.array([1], "M8[s]"), np.array([1], "M8[D]"),
         "wrong dtype: expected datetime64[D], got datetime64[s]"),
        (np.ma.MaskedArray([1, 2], [0, 1]), np.ma.MaskedArray([1, 2], [0, 0]),
         "at .mask: right shape and dtype, wrong values: 1 of 2 differ"),
        (np.ma.MaskedArray([1, 9], [0, 1]), np.ma.MaskedArray([1, 2], [0, 1]), None),
        (TABLE[["city"]], TABLE, "at .columns: wrong keys: missing ['price', 'sold']"),
        (TABLE.iloc[:, ::-1], TABLE,
         "at .columns.values[0]: the text is not the expected one"),
        (TABLE.reset_index(drop=True), TABLE,
         "at .index: wrong dtype: expected object, got int64"),
        (TABLE.assign(sold=[1, 3]), TABLE,
         "at ['sold'].values: right shape and dtype, wrong values: 1 of 2 differ"),
        (TABLE.assign(sold=[1.0, 2.0]), TABLE,
         "at ['sold']: wrong dtype: expected int64, got float64"),
        (TABLE["sold"], TABLE, "expected a data frame, got a series"),
        (TABLE["sold"].rename("x"), TABLE["sold"], "at .name: the text is not the expected one"),
        (sparse.csr_matrix([[0, 1]]), sparse.csc_matrix([[0, 1]]),
         "at .format: the text is not the expected one"),
        (sparse.csr_array([[0, 1]]), sparse.csr_matrix([[0, 1]]),
         "expected a sparse matrix, got a sparse array"),
        (np.array([[0, 1]]), sparse.csr_matrix([[0, 1]]),
         "expected a sparse matrix, got a NumPy array"),
        ("a\nb", "a\nc", "line 2 of the text is not the expected one"),
        ("a\n", "a\nc\n", "expected 2 lines of text, got 1"),
        ("a\nb ", "a\nb ", None),
    ],
)  # fmt: skip
def test_a_difference_is_said_without_values(got, want, summary):
    wrong = compare(copy_by_value(got), copy_by_value(want))
    if summary is None:
        assert wrong is None
    else:
        assert str(wrong).splitlines()[0] == summary
    assert compare(copy_by_value(want), copy_by_value(want)) is None


def test_the_words_for_a_kind():
    values = (TABLE, {1}, Decimal(1), KeyError(), np.array(["a"]), sparse.csr_array([[1]]))
    assert [*map(kind_of, values)] == [
        "a data frame", "a set", "a Decimal", "a KeyError", "a NumPy array of texts",
        "a sparse array",
    ]  # fmt: skip


def test_an_exception_keeps_its_class_and_its_bases():
    class Cold(KeyError):
        pass

    came = copy_by_value(Cold("brr"))
    assert came.kinds[:2] == ("Cold", "KeyError")
    assert type(came) is type(copy_by_value(type("Warm", (KeyError,), {})()))  # no new class
    assert compare(came, Cold()) is None
    assert compare(Cold(), came) is None
    assert isinstance(came, KeyError)
    assert came.args == ("brr",)
    assert compare(came, copy_by_value(LookupError("other words"))) is None
    assert type(copy_by_value(KeyboardInterrupt())) is not KeyboardInterrupt


def test_a_figure_is_what_it_shows():
    def figure(title="T", scale="log", data=(1, 2)):
        made = Figure()
        axes = made.add_subplot()
        axes.plot(data, label="line")
        axes.bar([1, 2], [3, 4])
        axes.scatter([1], [2])
        axes.set(title=title, yscale=scale, xlabel="x")
        axes.legend()
        return made

    came = copy_by_value(figure())
    [axes] = came["axes"]
    assert (axes["title"], axes["x label"], axes["y scale"]) == ("T", "x", "log")
    assert axes["legend"] == ["line"]
    assert axes["lines"][0]["y"].tolist() == [1, 2]
    assert axes["bars"][0]["height"].tolist() == [3, 4]
    assert axes["points"][0]["x"].tolist() == [1]
    want = copy_by_value(figure())
    for other, where in (
        (figure(title="t"), "['axes'][0]['title']"),
        (figure(scale="linear"), "['axes'][0]['y scale']"),
        (figure(data=(1, 3)), "['axes'][0]['lines'][0]['y']"),
    ):
        assert compare(copy_by_value(other), want).where == where
    assert compare(None, want).summary == "expected a figure, got None"


def raw(tree):
    """A message with this JSON, whatever it says."""
    import json

    text = json.dumps(tree).encode()
    return HEADER.pack(len(text), 0) + text


HOSTILE = [
    {"set": [[1]]},
    {"set": [float(n) for n in range(codec.MAX_KEYS + 1)]},
    {"set": 3},
    {"date": "9" * 1000},
    {"date": 3},
    {"timedelta": [10**20, 0, 0]},
    {"timedelta": [True, 0, 0]},
    {"decimal": "1E+999999999"},
    {"decimal": "sNaN"},
    {"decimal": 1.5},
    {"fraction": [1, 0]},
    {"fraction": ["1", "2"]},
    {"exception": {"dict": [["kinds", "message"], [["a b", "ValueError"], ""]]}},
    {"exception": {"dict": [["kinds", "message"], [["ValueError"], "x" * 2000]]}},
    {"exception": []},
    {"texts": ["U", [2], ["a", 3]]},
    {"texts": ["U", [10**9], ["a"]]},
    {"texts": ["U", [20_001], ["x" * 10**5, *[""] * 20_000]]},
    {"texts": ["V", [1], ["a"]]},
    {"times": ["datetime64[D]", [1]]},
    {"time64": ["float64", 1]},
    {"time64": ["datetime64[D]", 10**30]},
    {"fields": [[10**9], {"dict": [[], []]}]},
    {"fields": [[1], {"dict": [["a"], [1]]}]},
    {"masked": [1, 2]},
    {"frame": [1, 2, 3]},
    {"frame": []},
    {"index": [["a"], ["category", ["a"] * 2000]]},
    {"index": [["a", "b"], ["object", [{"tuple": [n, n]} for n in range(2000)]]]},
    {"index": [["a"], ["M8[D]", ["a"]]]},
    {"index": [["a"], ["str", [[1]]]]},
    {"series": ["n", {"index": [["a"], ["object", [1, 2]]]}, ["object", [1]]]},
    {"timestamp": ["Timestamp", "1" * 1000]},
    {"timestamp": ["eval", "1"]},
    {"sparse": ["matrix", "csr", [10**9, 1], 1, 1, 1]},
    {"sparse": ["matrix", "dia", [1, 1], 1, 1, 1]},
    {"figure": [1]},
    {"nothing": 1},
]


@pytest.mark.parametrize("tree", HOSTILE, ids=lambda tree: str(tree)[:50])
def test_a_message_of_any_form_is_refused(tree):
    with pytest.raises(NotByValue):
        unpack(raw(tree))


def test_a_sparse_matrix_must_contain_its_numbers():
    class Outside(sparse.csr_matrix):
        pass

    good = codec.pack(sparse.csr_matrix([[0, 1], [2, 0]]))
    assert unpack(good).nnz == 2
    with pytest.raises(NotByValue):
        unpack(good.replace(b"[2, 2]", b"[1, 1]"))
    with pytest.raises(NotByValue, match="at most 100,000 rows"):
        copy_by_value(sparse.csr_matrix((10**6, 1)))


WITHOUT = """
import sys
for name in ("pandas", "scipy", "matplotlib"):
    sys.modules[name] = None
from hood.judge.connection.codec import HEADER, unpack
text = b'{"frame": [1, 2, 3]}'
try:
    unpack(HEADER.pack(len(text), 0) + text)
except TypeError as error:
    print(error)
"""


def test_a_table_is_refused_if_pandas_is_missing():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False
    )
    assert done.stdout == "a value of a library that is not installed\n"


def test_text_dates_and_tables_are_drawn():
    draw = Draw("s", "n")
    assert len(draw.text(5)) == 5
    assert set(draw.text(50, "ab")) == {"a", "b"}
    days = {draw.date(date(2024, 2, 28), date(2024, 3, 1)) for _ in range(50)}
    assert days == {date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1)}
    frame = draw.frame(5, city=["Rome", "Oslo"], price="float64", sold="int64", good="bool")
    assert [str(dtype) for dtype in frame.dtypes] == ["str", "float64", "int64", "bool"]
    assert set(frame["city"]) <= {"Rome", "Oslo"}
    assert len(frame) == 5
    small = SmallDraw("s", "n", reach=1).frame(3, sold="int64")
    assert small["sold"].abs().max() <= 3


class Judged:
    """A check, and what it says about wrong code."""

    def __init__(self, reference, cases, **options):
        self.check = Check("f", {"p": 2}, "A heading", **options)
        self.check.reference(reference)
        self.check.cases(cases)
        assert judge(self.check, reference, "s").earned == 2

    def says(self, code):
        verdict = exemplify(judge(self.check, code, "s"), self.check, code, "public")
        return verdict.parts[0]


def test_printed_text_is_judged_and_shown():
    judged = Judged(
        lambda n: print(*range(n)),
        lambda draw: [
            Case("p", lambda subject, n=n: subject.printed(n)) for n in (draw.integer(1, 6), 3)
        ],
    )
    part = judged.says(lambda n: print(*range(n + 1)))
    assert part.problem == "the text is not the expected one"
    call, said = part.example.call, part.example.said
    counted = [" ".join(map(str, range(int(call[2]) + more))) + "\n" for more in (1, 0)]
    assert said == "expected {1!r}, printed {0!r}".format(*counted)
    assert "printed more than 100,000" in judged.says(lambda n: print("x" * 200_000)).problem


def test_a_drawn_figure_is_judged_whether_it_is_returned_or_not():
    def draws(x):
        plt.plot(x)
        plt.title("T")

    def returns(x):
        figure = Figure()
        axes = figure.add_subplot()
        axes.plot(x)
        axes.set_title("T")
        return figure, axes

    def untitled(x):
        plt.plot(x)

    def asks(draw):
        x = draw.array((3,))
        return [Case("p", lambda subject: subject.drawn(x))]

    judged = Judged(draws, asks)
    assert judge(judged.check, returns, "s").earned == 2
    part = judged.says(untitled)
    assert part.problem == "at ['axes'][0]['title']: the text is not the expected one"
    assert part.example.said.endswith("got '', expected 'T'")
    assert judged.says(lambda x: None).problem.startswith("expected a figure, got None")
    assert not plt.get_fignums()
    assert effects.drawn(3) is None


def test_a_list_that_should_be_changed_in_place_is_judged():
    def in_place(xs):
        xs.sort()

    def asks(draw):
        xs = draw.sample(range(20), 4)
        return [Case("p", lambda subject: subject.left_by(xs))]

    part = Judged(in_place, asks).says(sorted)
    *before, call = part.example.before, part.example.call
    names = {"f": sorted}
    exec("\n".join(before[0]), names)
    assert repr(eval(call, names)) == part.example.got
    said = "expected a change of `xs` in place, but the function did not change `xs`"
    assert part.problem == said
    assert Judged(in_place, asks).says(lambda xs: xs.reverse()).problem.startswith("at [0]: ")
    assert Judged(lambda xs: None, asks).says(in_place).problem.startswith("at [0]: ")


@pytest.mark.parametrize(
    ("got", "said"),
    [
        ("A b", ": it differs only in the line breaks at the end"),
        ("Ab\n", ": it differs only in spaces and line breaks"),
        ("a b\n", ": it differs only in small and capital letters"),
        ("a c\n", ""),
    ],
)
def test_a_text_that_looks_like_the_expected_one_is_described(got, said):
    wrong = compare(got, "A b\n")
    assert wrong.summary == f"the text is not the expected one{said}"


def test_an_exception_is_shown_at_the_call_that_raises_it():
    def raises(xs):
        xs[9]

    def asks(draw):
        xs = draw.sample(range(20), 4)
        return [Case("p", lambda subject: subject.left_by(xs))]

    example = Judged(lambda xs: xs.sort(), asks).says(raises).example
    assert example.call == "f(*arguments)"
    assert example.said.startswith("got IndexError")
    assert [line.partition(" =")[0] for line in example.before] == ["arguments"]


def test_a_list_that_should_be_kept_is_judged_if_the_check_says_so():
    def largest(xs):
        xs.sort()
        return xs[-1]

    def asks(draw):
        return [case("p", draw.sample(range(20), 4))]

    assert Judged(max, asks).says(largest).example is None
    judged = Judged(lambda xs: max(xs), asks, containers_kept=True)
    assert "changed its input `xs`" in judged.says(largest).problem


def test_a_table_that_was_changed_is_named():
    def spoils(table):
        table["v"] = 0
        return 1

    check = one_part(
        "f", lambda table: 1, lambda draw: [case("p", draw.frame(3, v=[1, 2], w="int64"))]
    )
    assert "changed its input `table`" in judge(check, spoils, "s").parts[0].problem


def test_dates_without_a_time_are_shown_as_dates():
    said = literal(pd.DataFrame({"v": pd.to_datetime(["2024-01-31"])}))
    assert said == "pd.DataFrame({'v': pd.Series(['2024-01-31'], dtype='datetime64[us]')})"


class Lines:
    """The lines that an example needs before its call."""

    OF: ClassVar = {
        "import pandas as pd": lambda draw: draw.frame(2, v="int64"),
        "from fractions import Fraction": lambda draw: Fraction(draw.integer(1, 5), 7),
        "from datetime import date": lambda draw: [date(2024, 1, draw.integer(1, 9))],
    }


@pytest.mark.parametrize("line", Lines.OF)
def test_a_failing_example_imports_what_its_values_need(line):
    judged = Judged(lambda x: 1, lambda draw: [case("p", Lines.OF[line](draw))])
    assert judged.says(lambda x: 2).example.before == (line,)
