# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Floating point"}
# ---

# %% [markdown]
# # Floating point
#
# Almost every number in a computer is rounded, and almost every step rounds again. This lesson shows when that is harmless and when it is not.
#
# It takes about half an hour. If a paragraph begins with **Predict**, write down an answer before you look at the output.

# %%
import math
from decimal import Decimal

import matplotlib.pyplot as plt
import numpy as np

from numerics.pictures import picture

# %% [markdown]
# ## The question
#
# The variance is the mean of the squared distances from the mean. A textbook rewrites it: the mean of the squares, minus the square of the mean. The second form needs one pass over the numbers, so it looks better.
#
# **Predict**: a variance is a mean of squares. Which sign will the second form have?

# %%
x = np.array([100000000.1, 100000000.2, 100000000.4])

print("mean of squared distances:       ", np.mean((x - np.mean(x)) ** 2))
print("mean of squares - square of mean:", np.mean(x * x) - np.mean(x) ** 2)

# %% [markdown]
# The second variance is −4. There is no error and no warning, and on paper both forms are equal. The first result is right to seven digits (the three numbers themselves are rounded, so it can't be better). The second has not one right digit. To see why, we must know which numbers a computer has.

# %% [markdown]
# ## What a float64 is
#
# A `float64` is a whole number of 53 binary digits, multiplied by a power of two. `math.frexp` takes it apart into a fraction from 0.5 up to 1 and the exponent.
#
# **Predict**: which of these four numbers does a `float64` hold exactly?

# %%
for number in (0.1, 0.5, 0.75, 3.0):
    fraction, exponent = math.frexp(number)
    print(f"{number:4} = {fraction:4} * 2**{exponent:2}   exactly", Decimal(number))

# %% [markdown]
# All but 0.1. In binary, one tenth has infinitely many digits, just as one third has in decimal. So `0.1` in a program is the nearest `float64`, which is a little larger than one tenth. Python prints the shortest text that leads back to the same number, so you don't see the difference.

# %% [markdown]
# ## The distance to the next number
#
# With a fixed number of digits, the distance from a number to the next one depends on the exponent. Here are all numbers from 0 to 8 with three binary digits in place of 53, and a smallest exponent.

# %%
normal = [(4 + step) / 4 * 2.0**power for power in range(-1, 3) for step in range(4)] + [8.0]
subnormal = [step / 8 for step in range(4)]

figure, axes = plt.subplots(figsize=(7, 1.3))
axes.vlines(normal, 0, 1, color="#1f6aa5")
axes.vlines(subnormal, 0, 1, color="#c2471b")
axes.set(xlim=(-0.1, 8.1), ylim=(0, 1), yticks=[], xticks=[0, 0.5, 1, 2, 4, 8])
axes.spines[["top", "left", "right"]].set_visible(False)
picture(
    figure,
    "A line from 0 to 8 with a mark for each number of three binary digits. From 4 to 8 the "
    "distance is 1, and at each smaller power of two it is halved. From 0 to 0.5 and from 0.5 to 1 "
    "the distance is the same, one eighth.",
)

# %% [markdown]
# Three things to see:
#
# - Between two powers of two, such as 2 and 4, all distances are equal.
# - At a power of two the distance changes. A power of two itself belongs to the wider side: from 4 it is one step of 1 up, and a half step down.
# - Near 0 (in orange) the exponent can't get smaller. There the distance stays, and numbers lose digits. These numbers are called *subnormal*.
#
# The distance from a number up to the next one is its *ulp*, the unit in the last place. `np.spacing` returns it. A `float64` has 53 digits, so from 1 to 2 the distance is $2^{-52}$. The smallest exponent gives a distance of $2^{-1074}$.
#
# **Predict**: what is the distance at $2^{53}$, about nine thousand million million?

# %%
for number in (1.0, 1.99, 2.0, 2.0**53, 1e-310):
    print(f"ulp of {number:<22} {np.spacing(number)}")

# %% [markdown]
# It is 2. From there on, a `float64` has no odd numbers.
#
# When an operation's exact result lies between two numbers, the computer takes the nearer one. So the error is at most half a distance. Divided by the result, it is at most
#
# $$u = 2^{-53} \approx 1.1 \cdot 10^{-16},$$
#
# the *unit roundoff*. This holds for each single `+`, `-`, `*`, `/` and `sqrt`, except in the range of subnormal numbers: the result is $(1 + \delta)$ times the exact one, with $|\delta| \le u$. Everything else in this lesson follows from this rule.

# %% [markdown]
# ## Absorption
#
# **Predict**: what are these three results?

# %%
print(2.0**53 + 1.0 - 2.0**53)
print(2.0**53 - 2.0**53 + 1.0)
print(1e16 + 0.5 + 0.5 + 0.5 + 0.5 - 1e16)

# %% [markdown]
# 0, 1 and 0. The 1 is half a distance of $2^{53}$, so the sum rounds back to $2^{53}$: the large number has *absorbed* the small one. The four halves are 2 together, which is a whole distance of $10^{16}$, but each of them comes alone.
#
# So a sum depends on the order. A loop over a million numbers makes up to a million roundings, and each is relative to the sum so far.

# %% [markdown]
# ## Compensated summation
#
# What a sum absorbs is not lost forever. Kahan's method calculates how much each step lost, and adds it to the next number.
#
# **Predict**: how many of the thousand ones will each of the two loops see?

# %%
numbers = [1e16] + [1.0] * 1000

plain = 0.0
for number in numbers:
    plain = plain + number

total, lost = 0.0, 0.0
for number in numbers:
    wanted = number - lost            # the number, and what the last step lost
    rounded = total + wanted
    lost = (rounded - total) - wanted   # 0 on paper
    total = rounded

print("plain loop:", plain - 1e16)
print("Kahan:     ", total - 1e16)

# %% [markdown]
# None and all. The line for `lost` would be 0 on paper. Here `rounded - total` is exact, so the line finds the rounding error of the line before. The error of Kahan's sum is about $2u$ times the sum of the absolute values, however many numbers there are. (Since version 3.12 Python's own `sum` uses such a method for floats.)

# %% [markdown]
# ## Cancellation
#
# Absorption loses a small number. The opposite case looks more innocent.
#
# **Predict**: the exact value is close to 0.0000005. How many digits of the result are right?

# %%
x = 1e12
print(math.sqrt(x + 1) - math.sqrt(x))

# %% [markdown]
# The exact value is 4.99999999999875e-07, to fifteen digits. So the error comes in the sixth digit, and a `float64` has almost sixteen.
#
# The subtraction did nothing wrong. When two numbers are close, as here, their difference is even exact. But each square root was rounded, with an error of up to $u$ times $10^6$. The leading digits are the same and vanish in the difference. What is left is small, and the errors are as large as before. This is *cancellation*: **a subtraction of nearly equal numbers makes no error, but it makes the errors that are already there large.**
#
# How large? If $a$ and $b$ have relative errors of $u$, then $a - b$ has a relative error of up to
#
# $$u \cdot \frac{|a| + |b|}{|a - b|}.$$
#
# Now the variance. The squares in the first cell are about $10^{16}$, where neighbours lie 2 apart. So the two means that are subtracted are wrong by about 1, and the variance is 0.016.

# %% [markdown]
# ## A stable formula
#
# Cancellation is a property of a formula. So find another formula for the same value. Here multiply with the sum of the roots: $(\sqrt{x+1} - \sqrt{x})(\sqrt{x+1} + \sqrt{x}) = 1$.
#
# **Predict**: how many digits are right now?

# %%
print(1 / (math.sqrt(x + 1) + math.sqrt(x)))

# %% [markdown]
# About fifteen. A sum of two positive numbers does not cancel.
#
# The equation $ax^2 + bx + c = 0$ has the same fault. Its textbook formula is
#
# $$x = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a}.$$
#
# If $b^2$ is much larger than $4ac$, then the square root is almost $|b|$. For one of the two signs, $-b$ and the square root then cancel. For the other sign they have the same sign and add up, so that root is good. And there is a relation between the two roots that needs no subtraction: their product is $c/a$.

# %%
a, b, c = 1.0, 1e8, 1.0
near_zero = (-b + math.sqrt(b * b - 4 * a * c)) / (2 * a)
print("textbook, near zero:", near_zero)
print("put into the equation:", a * near_zero**2 + b * near_zero + c)

# %% [markdown]
# The exact root is very close to $-10^{-8}$. The textbook's root is wrong by a quarter.

# %% [markdown]
# ## One number after another
#
# The variance has a stable formula: subtract the mean first, as the first line of the first cell does. But then the numbers are needed twice, and a sensor that sends one number each second does not keep them.
#
# Welford's method needs only three values: the count $n$, the mean $m$, and the sum $s$ of the squared distances from the mean. When a number $x$ comes, the mean moves a small step towards it, by $(x - m)/n$ with the new count. On paper, $s$ grows by
#
# $$(x - m_{\text{old}})(x - m_{\text{new}}).$$
#
# The new mean lies between the old mean and $x$. So both differences have the same sign, and $s$ can only grow: a variance from it is never negative. The numbers 2, 4 and 9 by hand:
#
# | comes | $n$ | $x - m_{\text{old}}$ | $m$ | $x - m_{\text{new}}$ | $s$ |
# |---|---|---|---|---|---|
# | 2 | 1 | 2 | 2 | 0 | 0 |
# | 4 | 2 | 2 | 3 | 1 | 2 |
# | 9 | 3 | 6 | 5 | 4 | 26 |
#
# The variance is 26/3. Check it: the distances from 5 are −3, −1 and 4, and their squares add up to 26.
#
# Both differences are subtractions of near numbers. Why do they not lose everything? The numbers $x$ are given, and have no error of a calculation. Only the mean has one, of a few $u$ times its size. So the error of $s$ grows with the *ratio* of the numbers to their distances, about $n u \cdot |m| / \sigma$, with the standard deviation $\sigma$. In the textbook formula it grows with the *square* of the ratio. For the numbers of the first cell the ratio is almost $10^9$: Welford keeps six digits, and the textbook formula has lost all sixteen.

# %% [markdown]
# ## What to keep
#
# - Each operation is exact up to a factor of $1 + \delta$ with $|\delta| \le 2^{-53}$.
# - Adding to a large number absorbs small ones. Compensated summation brings them back.
# - Subtracting near numbers makes old errors large. Look for a formula without that subtraction.
# - A result that looks plausible may have no right digit. So know how large the error can be.
