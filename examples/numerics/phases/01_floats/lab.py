# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 01: Floating point"}
# ---

# %% [markdown]
# # Lab 01: Floating point
#
# Three exercises, 12 points, about an hour. They follow [lesson 01](../../notebooks/01_floats.ipynb).
#
# A graded cell begins with `check(...)`. It tries your function on numbers that you have not seen, and says which parts are right. Each part earns its points separately.

# %% given="setup"
import math

import numpy as np

from hood.learner.check import check

# %% [markdown]
# ## 1 · The distance to the next number
#
# *Easy, 15 minutes, 4 points.* From the lesson: [The distance to the next number](../../notebooks/01_floats.ipynb#cell-id=the-distance-to-the-next-number).
#
# Write `ulp(x)`, which returns the distance from the absolute value of the finite float `x` to the next larger `float64`, as a float. A power of two belongs to the wider side. For 0 and for subnormal numbers the distance is $2^{-1074}$.
#
# Calculate it from the exponent: don't call a function that returns the distance or the next number, such as `math.ulp`, `math.nextafter` or `np.spacing`.
#
# <details><summary>Where is the exponent?</summary>
#
# `math.frexp(x)` returns a fraction from 0.5 up to 1 and an exponent. It takes negative numbers, too.
# </details>
# <details><summary>The power of two is too small for a float</summary>
#
# `2.0**power` is 0 for powers that are too small. Which is the smallest power that may come out? Compare with it before you calculate. And look at `math.frexp(0.0)`.
# </details>

# %% solution="ulp"
def ulp(x: float) -> float:
    """Return the distance from |x| to the next larger float64."""
    ### BEGIN SOLUTION
    if x == 0:
        return 2.0**-1074
    _, exponent = math.frexp(x)
    return 2.0 ** max(exponent - 53, -1074)
    ### END SOLUTION

# %%
for number in (1.0, 1.5, 1000.0, 2.0**53):
    print(number, ulp(number), "expected", np.spacing(number))

# %% test="ulp" points=4
check("ulp")
assert ulp(3.0) == 2.0**-51
### BEGIN HIDDEN TESTS
verify("ulp", ulp)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · Roots without cancellation
#
# *Medium, 20 minutes, 4 points.* From the lesson: [A stable formula](../../notebooks/01_floats.ipynb#cell-id=a-stable-formula).
#
# Write `quadratic(a, b, c)`, which returns the real roots of $ax^2 + bx + c = 0$: a list of floats, the smaller root first. `a` is never 0. If the equation has only one root, the list has it once. If it has none, the list is empty.
#
# Each root must be right to fourteen digits, also if one root is much larger than the other. No root is so large that a square overflows. Find the formula yourself: don't call `np.roots`, and don't calculate with more digits than a float has.
#
# <details><summary>Which root is bad?</summary>
#
# The root in which $-b$ and the square root have different signs. So calculate the other root first, for a positive and for a negative $b$.
# </details>
# <details><summary>And the bad root?</summary>
#
# The product of the roots is $c/a$. `math.copysign(1.0, b)` is the sign of $b$. Unlike `np.sign`, it is never 0.
# </details>

# %% solution="quadratic"
def quadratic(a: float, b: float, c: float) -> list[float]:
    """Return the real roots, the smaller one first, each once."""
    ### BEGIN SOLUTION
    inside = b * b - 4 * a * c
    if inside < 0:
        return []
    if inside == 0:
        return [-b / (2 * a)]
    q = -(b + math.copysign(math.sqrt(inside), b)) / 2
    return sorted([q / a, c / q])
    ### END SOLUTION

# %%
print(quadratic(1.0, -3.0, 2.0), "expected [1.0, 2.0]")
print(quadratic(1.0, 1e8, 1.0), "expected nearly [-1e8, -1e-8]")
print(quadratic(1.0, 2.0, 5.0), "expected []")

# %% test="quadratic" points=4
check("quadratic")
assert quadratic(2.0, -6.0, 4.0) == [1.0, 2.0]
### BEGIN HIDDEN TESTS
verify("quadratic", quadratic)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 · A variance, one number after another
#
# *Medium, 20 minutes, 4 points.* From the lesson: [One number after another](../../notebooks/01_floats.ipynb#cell-id=one-number-after-another).
#
# Write `update(count, mean, squares, x)`. `count` is the number of values so far, `mean` their mean, and `squares` the sum of the squared distances from the mean. Return the three values, in this order, after the number `x` has come. Before the first number, all three are 0.
#
# The result must also be good if the numbers are a hundred million times as large as their distances.
#
# <details><summary>The order of the lines</summary>
#
# `squares` needs the distance from the old mean and the distance from the new mean. So keep the first distance in a variable before you change the mean.
# </details>
# <details><summary>One step by hand</summary>
#
# The lesson has a table for the numbers 2, 4 and 9. The last row comes from `update(2, 3.0, 2.0, 9.0)`.
# </details>

# %% solution="update"
def update(count: int, mean: float, squares: float, x: float) -> tuple[int, float, float]:
    """Return the count, the mean and the sum of squares after `x`."""
    ### BEGIN SOLUTION
    count = count + 1
    before = x - mean
    mean = mean + before / count
    return count, mean, squares + before * (x - mean)
    ### END SOLUTION

# %%
state = (0, 0.0, 0.0)
for number in (2.0, 4.0, 9.0):
    state = update(*state, number)
print(state, "expected (3, 5.0, 26.0)")

# %% test="update" points=4
check("update")
assert update(1, 2.0, 0.0, 4.0) == (2, 3.0, 2.0)
### BEGIN HIDDEN TESTS
verify("update", update)
### END HIDDEN TESTS

# %% [markdown]
# ## Done
#
# You can now say how far apart floats are, and you have repaired two formulas that lose digits. [Lesson 02](../../notebooks/02_least_squares.ipynb) does the same with a matrix.
