# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Tables"}
# ---

# %% [markdown]
# # Tables
#
# A table looks like a matrix with a header. It is more: each row and each column has a label, each column has a type, and what is missing is a value, too. Most wrong results with tables come from one of these three.
#
# It takes about half an hour. If a paragraph begins with **Predict**, write down an answer before you look at the output.

# %%
import pandas as pd

# %% [markdown]
# ## The question
#
# A small museum writes down each group of visitors. It wants to know how many people come on an average day of the week.

# %%
groups = pd.DataFrame({
    "day": pd.to_datetime(["2024-05-01", "2024-05-01", "2024-05-03", "2024-05-04", "2024-05-05",
                           "2024-05-05", "2024-05-05"]),
    "people": [4, 2, 6, 9, 5, 3, 6],
})
groups

# %% [markdown]
# **Predict**: 35 people came in this week of seven days. What is the mean of the sums by day?

# %%
by_day = groups["people"].groupby(groups["day"].dt.day_of_week).sum()
print(by_day)
print("mean:", by_day.mean())

# %% [markdown]
# The mean is 8.75 and not 5. The sums are right. But `groupby` makes a group for each value that *occurs*, and nobody came on three of the seven days. So 35 was divided by 4.

# %% [markdown]
# ## Labels
#
# The numbers at the left, 2, 4, 5 and 6, are the *index*: the labels of the rows. Here they are days of the week, and Monday is 0. Pandas finds, adds and joins by label, not by position.
#
# **Predict**: a second museum was open on two days. What comes out for the days that only one of them has?

# %%
other = pd.Series({5: 10, 6: 20})
print(by_day + other)

# %% [markdown]
# Saturday and Sunday are added by their labels. For the other days the result is `NaN`, "not a number": pandas does not guess that a missing label means 0. You must say what it means.

# %% [markdown]
# ## All labels
#
# `reindex` makes a table with exactly the labels that you name.
#
# **Predict**: the sums were whole numbers. Which type do they have afterwards?

# %%
week = by_day.reindex(range(7))
print(week)

# %% [markdown]
# They are `float64` now, because `NaN` is a float, and a column has one type. Here 0 is the right value for a day without visitors, and `fillna(0)` or `reindex(..., fill_value=0)` puts it in. Then the mean is 5.
#
# Before you fill, keep the knowledge of what was missing. A day without visitors and a day on which nobody counted look the same afterwards. And a sum of 0 does not say that a group is missing: in a table of payments, a payment and its refund also have the sum 0.

# %% [markdown]
# ## Types
#
# The labels have a type, too.
#
# **Predict**: are these two indexes equal, and have they the same type?

# %%
print(by_day.index.equals(pd.Index([2, 4, 5, 6])), by_day.index.dtype, pd.Index([2, 4, 5, 6]).dtype)

# %% [markdown]
# The labels are equal, but `day_of_week` makes whole numbers of 32 bits, as `month` and `year` do. Most code does not notice. A file format, a database or a `merge` with another table may: a type is part of what a function promises.

# %% [markdown]
# ## Whose table?
#
# A helper column makes the code shorter. Here is a function that adds one.
#
# **Predict**: which columns has `groups` after the call?

# %%
def visitors(table):
    table["weekday"] = table["day"].dt.day_name()
    return table.groupby("weekday")["people"].sum()

visitors(groups)
print(list(groups.columns))

# %% [markdown]
# The function has changed the caller's table: `table` is another name for the same object, and an assignment to a column works in place. Next time, somebody saves `groups` with a column that they never made. `table.assign(weekday=...)` returns a new table, and so does `table.copy()`. Often no column is needed: `groupby` also takes a series, as in the first section.

# %% [markdown]
# ## What to keep
#
# - `groupby` has groups only for what occurs. Say which labels the result must have.
# - Missing is not 0. Decide, and keep what you need to know about it.
# - The type of a column is part of the result, and so are the labels and their type.
# - A function should leave its argument as it is.
