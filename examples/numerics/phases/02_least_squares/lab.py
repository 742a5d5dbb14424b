# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 02: Least squares by hand"}
# ---

# %% [markdown]
# # Lab 02: Least squares by hand
#
# Three exercises, 14 points, about an hour and a half. They follow [lesson 02](../../notebooks/02_least_squares.ipynb), and each builds on the one before. You may call your own functions of earlier exercises.
#
# In all exercises, arrays have the dtype `float64`. Nothing of `np.linalg` or SciPy is allowed in your answers, except `np.linalg.norm`. In other cells you may use everything, for example to compare.

# %% given="setup"
import numpy as np

from hood.learner.check import check

# %% [markdown]
# ## 1 · A mirror
#
# *Medium, 20 minutes, 4 points.* From the lesson: [A reflection](../../notebooks/02_least_squares.ipynb#cell-id=a-reflection).
#
# Write `reflector(x)`, which returns the vector $v$ of length 1 whose mirror sends the vector `x` onto the first axis: in $x - 2\,v\,(v \cdot x)$ all entries but the first are 0. Take the mirror without cancellation, and give the first entry of $v$ the sign of the first entry of `x`. If that entry is 0, the first entry of $v$ is positive.
#
# If all entries of `x` are 0, return a vector of zeros of the same length. Leave `x` as it is.
#
# <details><summary>Which direction?</summary>
#
# $v$ has the direction of $x$ minus its image, and the image is $(-\operatorname{sign}(x_0) \lVert x \rVert, 0, \dots, 0)$.
# </details>
# <details><summary>The sign, and the copy</summary>
#
# `np.copysign(length, x[0])` has the sign of `x[0]`, and counts 0 as positive. `v = x` gives the same array a second name. `x.copy()` makes another array.
# </details>

# %% solution="reflector"
def reflector(x: np.ndarray) -> np.ndarray:
    """Return the unit vector whose mirror sends `x` onto the first axis, without cancellation."""
    ### BEGIN SOLUTION
    v = x.copy()
    v[0] += np.copysign(np.linalg.norm(x), x[0])
    length = np.linalg.norm(v)
    return v / length if length > 0 else v
    ### END SOLUTION

# %%
x = np.array([3.0, 0.0, 4.0])
v = reflector(x)
print(v, "expected nearly [0.894 0. 0.447]")
print("mirror image:", x - 2 * v * (v @ x))

# %% test="reflector" points=4
check("reflector")
assert np.allclose(reflector(np.array([0.0, 2.0])), [0.5**0.5, 0.5**0.5])
### BEGIN HIDDEN TESTS
verify("reflector", reflector)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · QR
#
# *Hard, 30 minutes, 5 points.* From the lesson: [QR](../../notebooks/02_least_squares.ipynb#cell-id=qr).
#
# Write `qr(A)` for a matrix with $m$ rows and $n$ columns, $m \ge n \ge 1$, and independent columns. Return the pair $Q$, $R$ with $A = QR$. The shape of $Q$ is $(m, n)$, and $Q^T Q = I$. The shape of $R$ is $(n, n)$, and below its diagonal all entries are 0, up to rounding. The signs of the diagonal are free.
#
# $Q^T Q = I$ must hold up to rounding for nearly dependent columns, too. Leave `A` as it is.
#
# <details><summary>What each mirror works on</summary>
#
# Start with a copy `R` of `A`, and the unit matrix `Q` of size $m$. Mirror number $k$ comes from `R[k:, k]`. It reflects the columns of `R[k:]`, and from the right the rows of `Q[:, k:]`.
# </details>
# <details><summary>A reflection of all columns in one line</summary>
#
# The products of `v` with all columns of `M` are `v @ M`. Then `M - 2 * np.outer(v, v @ M)` reflects each column. From the right it is `M - 2 * np.outer(M @ v, v)`. At the end, take the first $n$ columns of $Q$ and the first $n$ rows of $R$.
# </details>

# %% solution="qr"
def qr(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Q with orthonormal columns and an upper triangle R, with A = Q R."""
    ### BEGIN SOLUTION
    m, n = A.shape
    R, Q = A.copy(), np.eye(m)
    for k in range(n):
        v = R[k:, k].copy()
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        v /= np.linalg.norm(v)
        R[k:] -= 2 * np.outer(v, v @ R[k:])
        Q[:, k:] -= 2 * np.outer(Q[:, k:] @ v, v)
    return Q[:, :n], R[:n]
    ### END SOLUTION

# %%
A = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
Q, R = qr(A)
print("R:\n", R)
print("largest entry of Q R - A:", np.abs(Q @ R - A).max())
print("Q.T @ Q:\n", Q.T @ Q)

# %% test="qr" points=5
check("qr")
Q, R = qr(np.array([[3.0, 1.0], [4.0, 1.0]]))
assert np.allclose(np.abs(R), [[5.0, 1.4], [0.0, 0.2]])
### BEGIN HIDDEN TESTS
verify("qr", qr)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 · The fit
#
# *Hard, 30 minutes, 5 points.* From the lesson: [The fit](../../notebooks/02_least_squares.ipynb#cell-id=the-fit).
#
# Write `fit(A, y)`, which returns the coefficients $c$ for which the squares of $y - A c$ have the smallest sum. `A` has at least as many rows as columns, and independent columns. `y` has one entry for each row. The coefficients are a vector with one entry for each column.
#
# The coefficients must be right to six digits for a condition number of $10^8$, if the model explains $y$. Leave `A` and `y` as they are.
#
# <details><summary>Do I need Q?</summary>
#
# No. Write $y$ beside $A$ as one more column (`np.column_stack` makes a new array), and reflect all columns. The first $n$ rows of the last column are then the right-hand side. With your `qr`, $Q^T y$ is the same.
# </details>
# <details><summary>Back substitution</summary>
#
# Start with the last unknown. For row $k$, subtract the products of the known unknowns with their entries of the row, and divide by the entry of the diagonal.
# </details>

# %% solution="fit"
def fit(A: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the coefficients of the least squares fit."""
    ### BEGIN SOLUTION
    n = A.shape[1]
    T = np.column_stack([A, y])
    for k in range(n):
        v = T[k:, k].copy()
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        v /= np.linalg.norm(v)
        T[k:] -= 2 * np.outer(v, v @ T[k:])
    c = np.zeros(n)
    for k in reversed(range(n)):
        c[k] = (T[k, n] - T[k, :n] @ c) / T[k, k]
    return c
    ### END SOLUTION

# %%
A = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
print(fit(A, np.array([1.0, 2.0, 2.0, 5.0])), "expected nearly [0.7 1.2]")

# %% test="fit" points=5
check("fit")
assert np.allclose(fit(np.array([[1.0], [1.0]]), np.array([2.0, 4.0])), [3.0])
### BEGIN HIDDEN TESTS
verify("fit", fit)
### END HIDDEN TESTS

# %% [markdown]
# ## Done
#
# Three mirrors did what `np.linalg.lstsq` does. Try `fit` on the years of the lesson.
