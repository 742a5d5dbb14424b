# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 03: Tables"}
# ---

# %% [markdown]
# # Lab 03: Tables
#
# One exercise, 6 points, about half an hour. It follows [lesson 03](../../notebooks/03_tables.ipynb).

# %% given="setup"
import pandas as pd

from hood.learner.check import check

# %% [markdown]
# ## 1 · Sales by month
#
# *Medium, 25 minutes, 6 points.* From the lesson: [All labels](../../notebooks/03_tables.ipynb#cell-id=all-labels).
#
# The table `sales` has a row for each sale of one year, in any order: `day` (`datetime64`), `shop` (a text) and `amount` (`float64`). A refund is a sale with a negative amount. There is at least one row, no value is missing, and the sum of all amounts is above 0.
#
# Write `monthly(sales)`, which returns a new table. It has a row for each of the twelve months, with the labels 1 to 12. The index has the name `month` and the dtype `int64`. The columns, in this order:
#
# - `amount`, `float64`: the sum of the month's amounts, and 0 for a month without sales;
# - `share`, `float64`: the month's part of the sum of the whole year, as a fraction, so that all shares add up to 1;
# - `missing`, `bool`: whether the month has no sales. A month with a sale and its refund is not missing.
#
# Leave `sales` as it is.
#
# <details><summary>Which month?</summary>
#
# `sales["day"].dt.month` is a series of month numbers, and `groupby` takes a series.
# </details>
# <details><summary>Which months are missing?</summary>
#
# After `reindex` to the twelve months, `isna()` says which months are missing. So call it before you fill the gaps with 0. `pd.RangeIndex(1, 13, name="month")` has the right labels, name and dtype.
# </details>

# %% solution="monthly"
def monthly(sales: pd.DataFrame) -> pd.DataFrame:
    """Return the amount of each month, its share of the year, and whether it has no sales."""
    ### BEGIN SOLUTION
    months = pd.RangeIndex(1, 13, name="month")
    found = sales["amount"].groupby(sales["day"].dt.month).sum().reindex(months)
    table = pd.DataFrame({"amount": found.fillna(0.0)})
    table["share"] = table["amount"] / table["amount"].sum()
    table["missing"] = found.isna()
    return table
    ### END SOLUTION

# %%
days = pd.to_datetime(["2024-03-09", "2024-01-31", "2024-03-01"])
sales = pd.DataFrame({"day": days, "shop": ["Oslo", "Rome", "Rome"], "amount": [1.0, 2.0, 5.0]})
monthly(sales)

# %% test="monthly" points=6
check("monthly")
assert monthly(sales)["amount"].tolist()[:4] == [2.0, 0.0, 6.0, 0.0]
### BEGIN HIDDEN TESTS
verify("monthly", monthly)
### END HIDDEN TESTS

# %% [markdown]
# ## Done
#
# The table has twelve rows in every year, also in a bad one.
