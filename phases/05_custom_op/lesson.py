# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lesson 05: An operator of your own"}
# ---

# %% [markdown]
# # An operator of your own
#
# ## One pass or three
# ## One program, one row
# ## Masks, and what lies beside the row
# ## Half precision
# ## The backward is a kernel, too
# ## What PyTorch asks of an operator
# ## Proofs, and what each does not see
# ## The same kernel as PTX
# ## How fast can it be
