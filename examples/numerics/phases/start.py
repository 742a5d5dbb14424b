# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Numerics"}
# ---

# %% [markdown]
# # Numerics
#
# A computer calculates with a few digits and makes an error in almost every step. Most results are good all the same. This course shows why, and what to do with the others. You should know Python, a little NumPy, and how to multiply two matrices.
#
# You read lessons and solve labs in your own copies, in the folder `work/`. A graded cell of a lab begins with `check(...)`. Run it, and it says which parts of your answer are right.

# %%
from hood.learner.contents import show_contents

show_contents()
