# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 00: Hello", points: 6, cell_seconds: 30}
# ---

# %% [markdown]
# # Lab 00: Hello
#
# Two exercises, 6 points, ten minutes. They follow [lesson 00](../../notebooks/00_hello.ipynb), and
# they mostly practise how a lab works: reading a question, writing a function, checking it, running
# everything from the top, handing it in. All later labs work in the same way.
#
# An exercise has four cells. The first is the question. The second is a stub, which raises
# `NotImplementedError` until you replace that line by your code. The third is a check: it prints
# `ok`, or says what it got and what it expected. The fourth begins with `# Graded` and
# `check(...)`. It tests your function as grading will, on numbers that you have not seen, new ones
# each time. It gives a result for each part, and then it shows one more example. Run both cells as
# often as you like. Each part earns its point separately. (A class's copy of the course may come
# without the tests. Then `check(...)` says so, and you get the verdict back with your graded lab.)
#
# Stuck? Two hints are folded away under each question. The second says more than the first. Run the
# next cell (<kbd>Shift</kbd>+<kbd>Enter</kbd>), then start. You need no Triton and no GPU here,
# because the arithmetic of a launch is plain Python.

# %% given="setup"
from hood.learner.check import check
from utils.notebook.expect import expect_equal
from utils.views import block_mask

# %% [markdown]
# ## 1 · How many programs?
#
# *Warm-up, 5 minutes, 3 points.*
# From the lesson: [Programs, blocks and masks](../../notebooks/00_hello.ipynb#cell-id=programs-blocks-and-masks).
#
# A kernel that adds two vectors handles `block` elements in each of its programs, and the launch
# must say how many programs there are. With one program too few, the last elements are never
# written. With one program too many, a program is started for nothing.
#
# Write `grid_size(n, block)`, which returns the smallest number of programs that covers `n`
# elements, as an int. `n` is 0 or more and fits into an int32, as in a kernel. `block` is 1 or
# more, and need not be a power of two here.
#
# <details><summary>What should happen when the last block isn't full?</summary>
#
# It still needs a program: 9 elements in blocks of 4 take three programs. Try 8 and 9 elements on
# paper, then 0, before you write anything.
# </details>
# <details><summary>My result is off by one for some numbers</summary>
#
# Python's `//` rounds down, so it counts the full blocks. Count one more exactly when elements are
# left over. `divmod` gives you the quotient and the remainder at once.
# </details>

# %% solution="grid_size"
def grid_size(n: int, block: int) -> int:
    """The smallest number of programs that covers `n` elements, `block` in each."""
    ### BEGIN SOLUTION
    return (n + block - 1) // block
    ### END SOLUTION

# %%
expect_equal("two full blocks", grid_size(8, 4), 2)
expect_equal("and one element more", grid_size(9, 4), 3)
expect_equal("less than one block", grid_size(3, 4), 1)
expect_equal("three full blocks of 6", grid_size(18, 6), 3)
expect_equal("no elements", grid_size(0, 4), 0)
expect_equal("a single element", grid_size(1, 4), 1)
expect_equal("blocks of 1", grid_size(5, 1), 5)
expect_equal("one element more than 4096 blocks", grid_size(4096 * 4096 + 1, 4096), 4097)
block_mask(9, 4)

# %% test="grid_size" points=3
# Graded
check("grid_size")
expect_equal("600 elements, 128 to a program", grid_size(600, 128), 5)
### BEGIN HIDDEN TESTS
verify("grid_size", grid_size)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · What does one program load?
#
# *Easy, 5 minutes, 3 points.*
# From the lesson: [Programs, blocks and masks](../../notebooks/00_hello.ipynb#cell-id=programs-blocks-and-masks).
#
# A program knows three things: its own number, how many elements there are, and how many places its
# block has. From these it computes which elements are its own, and its mask turns off the places
# past the end.
#
# Write `masked_block(program, n, block)`, which returns the indices of the elements that program
# number `program` loads, as a list of ints in rising order. Programs are counted from 0. The grid
# may be larger than it has to be and `n` may be 0, so a program may have nothing to do. As above,
# `block` is 1 or more.
#
# <details><summary>Where does a block begin?</summary>
#
# With blocks of 4, programs 0, 1 and 2 begin at elements 0, 4 and 8. The picture under the check
# shows all programs.
# </details>
# <details><summary>My last program loads too much</summary>
#
# The lesson's kernel makes its mask by comparing each index with `n`. An index equal to `n` is
# already one past the last element.
# </details>

# %% solution="masked_block"
def masked_block(program: int, n: int, block: int) -> list[int]:
    """The indices of the elements that program number `program` loads, of `n` in all."""
    ### BEGIN SOLUTION
    first = program * block
    return [i for i in range(first, first + block) if i < n]
    ### END SOLUTION

# %%
expect_equal("a full block", masked_block(1, 10, 4), [4, 5, 6, 7])
expect_equal("the last block", masked_block(2, 10, 4), [8, 9])
expect_equal("the last of blocks of 3", masked_block(3, 10, 3), [9])
expect_equal("one before it", masked_block(2, 20, 3), [6, 7, 8])
expect_equal("the last block, which is full", masked_block(2, 12, 4), [8, 9, 10, 11])
expect_equal("fewer elements than places", masked_block(0, 3, 8), [0, 1, 2])
expect_equal("the program after it", masked_block(1, 3, 8), [])
expect_equal("no elements", masked_block(0, 0, 4), [])
block_mask(10, 4)

# %% test="masked_block" points=3
# Graded
check("masked_block")
expect_equal("a program too many", masked_block(3, 10, 4), [])
### BEGIN HIDDEN TESTS
verify("masked_block", masked_block)
### END HIDDEN TESTS

# %% [markdown]
# ## Done
#
# Now comes the real purpose of this lab. Choose *Kernel → Restart Kernel and Run All Cells*: the
# kernel forgets everything, and the notebook must still work from top to bottom. Then save it. If
# all checks pass, hand the notebook in the way your class does. If you study alone and have the
# whole repository, grade the lab yourself: open a terminal in the repository's folder and run
#
# ```
# python -m hood check 00_hello
# ```
#
# The report tells you which parts earned their points. For each other part, it tells you what your
# code did and which section of the lesson to read again. Every kernel works on the bytes of
# tensors, and [phase 01](../../notebooks/01_tensors.ipynb#cell-id=a-tensor-is-a-storage-and-a-view)
# asks what a tensor is.
