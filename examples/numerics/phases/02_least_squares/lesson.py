# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Least squares by hand"}
# ---

# %% [markdown]
# # Least squares by hand
#
# A model has a few numbers to choose, and there are many measurements. *Least squares* chooses the numbers for which the squared errors have the smallest sum. There is a short formula for them, and it is the wrong one to use.
#
# It takes about half an hour. You need [lesson 01](01_floats.ipynb). If a paragraph begins with **Predict**, write down an answer before you look at the output.

# %%
import matplotlib.pyplot as plt
import numpy as np

from numerics.pictures import picture

np.set_printoptions(precision=6, suppress=True)

# %% [markdown]
# ## The question
#
# These values come from the formula $3 + 2\,t + t^2$ with the year $t$, from 2000 to 2023. There is no noise. The textbook finds the three coefficients from the matrix `A`, with a column for each term, by the *normal equations* $A^T A\,c = A^T y$.
#
# **Predict**: how many digits of 3, 2 and 1 come back?

# %%
t = np.arange(2000.0, 2024.0)
A = np.column_stack([np.ones_like(t), t, t**2])
y = 3 + 2 * t + t**2

print("normal equations:", np.linalg.solve(A.T @ A, A.T @ y))
print("np.linalg.lstsq: ", np.linalg.lstsq(A, y)[0])

# %% [markdown]
# The first coefficient of the normal equations has no right digit. NumPy's `lstsq` gets five digits of it from the same numbers. Where do the other digits go? And what does NumPy do?

# %% [markdown]
# ## The residual is orthogonal
#
# The *residual* is $r = y - A c$: what the model does not explain. All products $A c$ together form a plane (of as many dimensions as $A$ has columns). Least squares looks for the point of the plane that is nearest to $y$. From there, the way to $y$ is perpendicular to the plane, and so to each column.
#
# **Predict**: here is a line through four points that do not lie on a line. What are the products of the residual with the two columns?

# %%
line = np.column_stack([np.ones(4), [0.0, 1.0, 2.0, 3.0]])
points = np.array([1.0, 2.0, 2.0, 5.0])
best = np.linalg.lstsq(line, points)[0]
residual = points - line @ best

print("coefficients:", best)
print("residual:    ", residual)
print("products:    ", line.T @ residual)

# %% [markdown]
# Zero, up to rounding. This is the condition for the best coefficients: $A^T (y - A c) = 0$. Written in another way it is $A^T A\,c = A^T y$, the normal equations. So they are true. What is wrong is to *calculate* with them.

# %% [markdown]
# ## The condition number is squared
#
# How much does a small error in the data change the solution? The *condition number* $\kappa(A)$ is the largest factor, for relative errors. It is large if the columns are nearly dependent: then quite different coefficients give almost the same values.
#
# The values of a calculation are rounded, so even with exact data the relative error of a solution is about
#
# $$u \cdot \kappa(A), \quad u = 2^{-53} \approx 1.1 \cdot 10^{-16}.$$
#
# No method can do much better. But the normal equations solve a system with another matrix.
#
# **Predict**: if $\kappa(A)$ is $10^6$, how large is $\kappa(A^T A)$?

# %%
near = 1 + 0.0007 * np.arange(12)
B = np.column_stack([np.ones_like(near), near, near**2])
print(f"condition number of B:       {np.linalg.cond(B):.1e}")
print(f"condition number of B.T @ B: {np.linalg.cond(B.T @ B):.1e}")
print(f"of the years' matrix A:      {np.linalg.cond(A):.1e}")

# %% [markdown]
# It is the square. So the normal equations have an error of about $u\,\kappa^2$: they lose twice as many digits. From $\kappa = 10^8$ on, nothing is left. The picture shows the relative error of both methods for matrices like `B`, with columns that are more and more alike.

# %%
conditions, of_normal, of_lstsq = [], [], []
wanted = np.array([3.0, 2.0, 1.0])
for step in np.logspace(-1, -4, 25):
    near = 1 + step * np.arange(12)
    B = np.column_stack([np.ones_like(near), near, near**2])
    values = B @ wanted
    found = np.linalg.solve(B.T @ B, B.T @ values), np.linalg.lstsq(B, values)[0]
    conditions.append(np.linalg.cond(B))
    for errors, c in zip((of_normal, of_lstsq), found):
        errors.append(np.linalg.norm(c - wanted) / np.linalg.norm(wanted))

figure, axes = plt.subplots(figsize=(7, 3.6))
k, u = np.array(conditions), 2.0**-53
axes.loglog(k, u * k**2, color="#c2471b", lw=1)
axes.loglog(k, u * k, color="#1f6aa5", lw=1)
axes.loglog(k, of_normal, "o", color="#c2471b", label="normal equations, line: u κ²")
axes.loglog(k, of_lstsq, "s", color="#1f6aa5", label="np.linalg.lstsq, line: u κ")
axes.set(xlabel="condition number κ", ylabel="relative error", ylim=(1e-17, 10))
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
picture(
    figure,
    "Relative error over condition number, from 100 to 40 million, on logarithmic scales. The "
    "errors of the normal equations lie along the line u times the square of the condition "
    "number, and come near to 1. The errors of lstsq lie along the line u times the condition "
    "number, and stay below one millionth.",
)

# %% [markdown]
# ## A reflection
#
# We need a method that never makes $A^T A$. Its tool is a mirror.
#
# A mirror through the origin is given by one vector $v$ of length 1, perpendicular to it. The mirror image of $x$ is
#
# $$x - 2\,v\,(v \cdot x).$$
#
# A mirror image has the same length as $x$. So a reflection never makes an error larger, and the condition number of a matrix stays the same when each column is reflected.
#
# Now choose the mirror so that $x$ falls onto the first axis: onto $(\pm\lVert x \rVert, 0, \dots, 0)$. Then all entries but the first have become 0. The mirror stands halfway between $x$ and its image, so $v$ has the direction of $x$ minus the image.
#
# There are two images, and so two mirrors.
#
# **Predict**: which sign of the image is the better one for this $x$? After the reflection, the second entry should be 0.

# %%
x = np.array([1.0, 1e-8, 0.0])
for sign in (1, -1):
    image = np.array([sign * np.linalg.norm(x), 0.0, 0.0])
    v = (x - image) / np.linalg.norm(x - image)
    reflected = x - 2 * v * (v @ x)
    print(f"sign {sign:2}: the second entry is {reflected[1]:.0e}")

# %% [markdown]
# With the sign of $x_0$, the second entry is as large as before. The image is so near to $x$ that the subtraction $x_0 - \lVert x \rVert$ cancels. It gives 0 in place of a number near $-5 \cdot 10^{-17}$, and the direction of $v$ is wrong. So **send $x$ to the other side**: the image is $-\operatorname{sign}(x_0) \lVert x \rVert$, and the first entry of $x$ minus the image is a sum of two numbers of one sign. If $x_0$ is 0, both sides are good, but the sign must not be 0.

# %% [markdown]
# ## QR
#
# One mirror clears the first column of $A$ below its first entry, if all columns are reflected in it. The next mirror must leave the first row alone, so it works on the rows from the second on: it clears the second column below the diagonal. After $n$ mirrors, only a triangle is left.
#
# Here is the first step for the line above.

# %%
T = line.copy()
v = T[:, 0].copy()
v[0] += np.linalg.norm(v)      # both are positive
v /= np.linalg.norm(v)
for column in range(2):
    T[:, column] -= 2 * v * (v @ T[:, column])
print(T)

# %% [markdown]
# The first column has become $(-2, 0, 0, 0)$: its length was 2. The next mirror has three entries, and works on the three rows below.
#
# With all mirrors together this is $A = QR$: $R$ is the upper triangle, and $Q$ has columns of length 1 that are perpendicular to each other, $Q^T Q = I$. To get $Q$, let the same mirrors work on the unit matrix, from the right.
#
# There is an older method for the same $Q$: take each column, subtract its parts along the earlier columns of $Q$, and divide by the length (*Gram–Schmidt*).
#
# **Predict**: on paper, both give the same $Q$. How far are they from $Q^T Q = I$, for the nearly dependent columns of `B`?

# %%
gram_schmidt = np.zeros_like(B)
for at in range(3):
    rest = B[:, at] - gram_schmidt @ (gram_schmidt.T @ B[:, at])
    gram_schmidt[:, at] = rest / np.linalg.norm(rest)

mirrors = np.linalg.qr(B)[0]       # NumPy uses mirrors
for name, Q in (("Gram-Schmidt", gram_schmidt), ("mirrors", mirrors)):
    print(f"{name:12} largest entry of Q.T @ Q - I: {np.abs(Q.T @ Q - np.eye(3)).max():.0e}")

# %% [markdown]
# If columns are nearly dependent, then what Gram–Schmidt subtracts is almost the whole column: cancellation. The rest is short, and its errors are not perpendicular to anything. The mirrors are always perpendicular up to rounding, for every matrix.

# %% [markdown]
# ## The fit
#
# A mirror changes no length, so it does not change which coefficients are best. Reflect $y$ as well as the columns: write it beside $A$ as one more column. After $n$ mirrors, the first $n$ rows say
#
# $$R\,c = (\text{the first } n \text{ entries of the reflected } y),$$
#
# and the other entries of the reflected $y$ are the part that no coefficients can explain. Their squares add up to those of the residual.
#
# A triangle is solved from below: the last row has one unknown, the row above has one more, and so on. This is *back substitution*.
#
# How exact is the result? Each of the $n$ mirrors rounds about $m$ times for each entry, and no step makes an error larger. So, if the model explains $y$ well, the relative error of the coefficients is at most about
#
# $$m\,n\,u\,\kappa(A),$$
#
# and usually much smaller. With $m = 12$, $n = 3$ and $\kappa = 4 \cdot 10^7$ this is $1.6 \cdot 10^{-7}$. The normal equations have $u\,\kappa^2 \approx 0.2$. A tolerance of $10^{-6}$ between the two accepts every careful method and refuses the other. (NumPy's `lstsq` makes more of the matrix than a triangle, the *singular values*. It begins with mirrors, too.)

# %% [markdown]
# ## What to keep
#
# - The best residual is perpendicular to the columns. This gives the normal equations.
# - A condition number says how many digits are lost: about $\log_{10} \kappa$ of sixteen. The normal equations lose twice as many.
# - Reflections keep lengths, and so they keep errors small.
# - Better columns are better than a better method. With the years counted from their middle, $t - 2011.5$, the matrix `A` has a condition number of about a hundred.
