"""A year's sales by month."""

from datetime import date

import pandas as pd

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Check, case

monthly = Check(
    "monthly",
    parts={"months with sales": 2, "months without sales": 2, "refunds": 2},
    reads="All labels",
    reads_by_part={"months with sales": "Types"},
    tolerance=Tolerance(
        rtol=1e-12,
        atol=1e-12,
        reason="The amounts are quarters, so sums are exact; a share is rounded once or twice",
    ),
)


@monthly.reference
def _(sales):
    amounts = {month: [] for month in range(1, 13)}
    for day, amount in zip(sales["day"], sales["amount"]):
        amounts[day.month].append(amount)
    sums = [sum(of, 0.0) for of in amounts.values()]
    return pd.DataFrame(
        {
            "amount": sums,
            "share": [one / sum(sums) for one in sums],
            "missing": [not of for of in amounts.values()],
        },
        index=pd.Index(list(amounts), name="month"),
    )


def year_of(draw, months, also=()):
    """Return sales in these months, at least one in each, with the rows in random order.

    ``also`` are more pairs of a month and an amount.
    """
    year = draw.integer(1999, 2030)
    rows = [(month, draw.integer(1, 400) / 4) for month in months]
    rows += [(draw.choice(months), draw.integer(1, 400) / 4) for _ in range(draw.integer(0, 3))]
    rows = draw.sample([*rows, *also], len(rows) + len(also))
    sales = draw.frame(len(rows), day=[pd.Timestamp(year, 1, 1)], shop=["Rome", "Oslo", "Lima"])
    days = [draw.date(date(year, month, 1), date(year, month, 28)) for month, _ in rows]
    return sales.assign(day=pd.to_datetime(days), amount=[amount for _, amount in rows])


@monthly.cases
def _(draw):
    def ask(part, months, also=(), shown=""):
        told = {".index.names[0]": "the index does not have the name `month`."}
        return case(part, year_of(draw, months, also), shown=shown, places=told)

    every = list(range(1, 13))
    yield ask("months with sales", every)
    yield ask("months with sales", every + every)
    for months in ([1], [12], draw.sample(every, 2), draw.sample(every, 6)):
        yield ask("months without sales", months, shown="months without sales")
    yield ask("months without sales", every[1:-1], shown="no January, no December")
    for months in ([3], draw.sample(every[3:], 3)):
        # all sales of February are refunded, and a part of those of January
        amount = draw.integer(1, 400) / 4
        also = [(2, amount), (2, -amount), (1, 100.25), (1, -0.25)]
        yield ask("refunds", months, also, "refunds")
