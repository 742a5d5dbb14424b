# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "A lab under attack", points: 7, cell_seconds: 2}
# ---

# %% [markdown]
# # A lab under attack

# %% given="setup"
import torch

# %% [markdown]
# ## 1. Twice


# %% solution="twice"
def twice(x: torch.Tensor) -> torch.Tensor:
    """Two times a tensor. x: (A, B)."""
    ### BEGIN SOLUTION
    return 2 * x  # canary-of-the-solutions
    ### END SOLUTION


# %% test="twice" points=2
assert twice(torch.ones(2, 2)).shape == (2, 2)
### BEGIN HIDDEN TESTS
verify("twice", twice)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. Row sums


# %% solution="row_sums"
def row_sums(x: torch.Tensor) -> torch.Tensor:
    """The sum of each row. x: (A, B)."""
    ### BEGIN SOLUTION
    return x.sum(dim=1)
    ### END SOLUTION


# %% test="row_sums" points=3
assert row_sums(torch.ones(2, 3)).shape == (2,)
### BEGIN HIDDEN TESTS
verify("row_sums", row_sums)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. A corner


# %% solution="corner"
def corner(x: torch.Tensor) -> torch.Tensor:
    """The first two rows of the first two columns, as a view. x: (A, B)."""
    ### BEGIN SOLUTION
    return x.as_strided((2, 2), x.stride(), x.storage_offset())
    ### END SOLUTION


# %% test="corner" points=2
assert corner(torch.ones(4, 4)).shape == (2, 2)
### BEGIN HIDDEN TESTS
verify("corner", corner)
### END HIDDEN TESTS
