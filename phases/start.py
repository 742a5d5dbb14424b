# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Open the Hood"}
# ---

# %% [markdown]
# # Open the Hood
#
# You have called `loss.backward()` often enough, and it worked. This course is about what happens inside when it works.
#
# It takes PyTorch apart, one layer in each phase, from the bytes under a tensor to the code that `torch.compile` writes. You build each part again yourself. The same small piece is on the workbench all the way: the last layer of a language model, `nn.Linear(64, 600)`. Its shapes are realistic, and it is small enough that you can look at every number in it.
#
# Two sentences contain everything that follows. You may know them already, but they should become *obvious*.
#
# > A **tensor** is a storage, plain bytes, plus a view of it: shape, strides, offset, dtype, device, and whether it needs a gradient.
# >
# > An **nn.Module** is a registry of parameters plus a forward written as code. When it runs, it is a sequence of dispatched kernels.
#
# You should know Python and a little NumPy. You don't need a GPU, either to learn or to be graded.

# %% [markdown] tags=["needs-kernel"]
# Run this cell whenever you come back. Its button leads to the exercise where you stopped.

# %% tags=["needs-kernel"]
from hood.learner.progress import show_next

show_next()

# %% [markdown]
# ## Resumen en español
#
# Este curso desmonta PyTorch pieza a pieza: de los bytes que hay debajo de un tensor al código que escribe `torch.compile`. Cada fase tiene una **lección**, para leer, predecir y tocar, y un **laboratorio**, donde cada ejercicio se comprueba al momento y se corrige después con una explicación de *por qué* falla lo que falla. Hace falta saber Python y algo de NumPy; GPU, ninguna. El texto está en inglés, y cada lección se abre con un resumen en español. Empieza en la tabla de abajo, por la primera fase que tenga enlaces.

# %% [markdown]
# ## The road
#
# Phases 01 to 06 are the core, and each needs the phases before it. The road leads to phases 07 to 11. Phase 00 needs no other phase: it shows you your own machine. The table gives the hours of the lesson and the hours of the lab. The hours in brackets are for the lab's *further* exercises, which a class may leave out. Start with the first phase in the table that has links.

# %% [markdown] tags=["needs-kernel"]
# Run the cells. A phase that you have finished gets a tick, and a phase that you have begun shows how many of its exercises are right.

# %%
from hood.learner.contents import PHASES, show_contents
from hood.learner.progress import progress, show_progress
from utils.views import course_path

course_path(PHASES, done=progress().done)

# %%
show_contents(states=progress().states)

# %% [markdown]
# ## How to work
#
# You work in your own copies, in the folder `work/`. They are made when you open the course as its README says. Write in them whatever you like, in lessons too. When the course changes, your copies get the new text, but your answers and the cells that you added stay where they are.
#
# Open a lesson and its lab side by side (drag one tab to the right). In the lesson, say what a cell will print *before* you run it with <kbd>Shift</kbd>+<kbd>Enter</kbd>: you learn most when you are wrong. The answer to a **Predict** is folded. Run its cell or click the three dots to see the output, and open the words below it with a click. Most pictures accept your own tensor: call them with one, and move their sliders.
#
# An exercise in a lab has four cells. The first is the question, with its shapes and an honest guess at how long it takes. The second is a stub, which raises `NotImplementedError` until you have written something better. The third is a check, which you can run at once: it prints `ok`, or says what it expected, what it got, and at which index the two differ. The fourth is a graded cell, which begins with `check(...)`. Run it, and below it you see the same verdict as from grading. It uses new random inputs in each run, so code passes only if it is right for more than the example. The verdict says which parts are right. If it knows the mistake, it names it. It shows a call that fails, and links the section to read again. When everything is right, there is a worked solution below the verdict, folded: the code, the reasons for it, and other right answers. Below a verdict you also see what to do next: the next exercise or, while something is not right yet, a text to copy for a tutor and a button that shows the solution. A question in words has no verdict. When you have written your answer, `solution("why_silent")`, from `hood.learner.check`, shows a model answer and how it is marked. A class's copy may come without the checks. Then the cell says so, and you get the same verdict with the feedback after grading.
#
# When every check says `ok`, choose *Kernel → Restart Kernel and Run All Cells*: code that still passes in a fresh kernel will pass anywhere. Then save, and submit the way your class does.

# %% [markdown] tags=["needs-kernel"]
# If you have the checks, you can check a whole lab at once. This cell shows the command. Paste it into a terminal (*File → New → Terminal*): it works from any folder and in any shell.

# %% tags=["needs-kernel"]
from hood.learner.contents import show_check_command

show_check_command("01_tensors")

# %% [markdown] tags=["needs-kernel"]
# ## How far you are
#
# This cell reads your labs as you last saved them. A notebook doesn't store everything. So the course records in `work/.progress` which cells of a lesson you ran last, which drills you answered and which solutions you looked at. This record is only on this machine, and nothing is sent. If you delete that folder, the record is gone. The points come from verdicts, and a person marks the questions in words. Full points in a verdict are not a grade yet, but they are a good sign.

# %% tags=["needs-kernel"]
show_progress()

# %% [markdown]
# ## What you leave with
#
# At the end of the road, you can do six things, starting from an empty page. Each line links the lesson, and names the exercise in its lab:
#
# 1. an MLP as an `nn.Module`, from nothing ([lesson 03](03_module.ipynb#cell-id=how-a-layer-begins), exercise 7);
# 2. a `Dataset` and a `DataLoader` of your own ([07](07_training.ipynb#cell-id=what-a-loader-does), exercises 1 and 2);
# 3. a full training loop, with mixed precision and gradient clipping ([07](07_training.ipynb#cell-id=sixteen-bits), exercise 9);
# 4. multi-head attention in under fifty lines ([08](08_transformer.ipynb#cell-id=attention-in-fifty-lines), exercise 2);
# 5. a Hugging Face causal language model, loaded and run ([08](08_transformer.ipynb#cell-id=what-the-folder-can-do), exercise 8);
# 6. a profile of a training step, with its bottleneck named ([09](09_profiling.ipynb#cell-id=a-trace-and-what-looking-costs), exercises 1 and 9).
#
# And there is a seventh thing, which gives the course its name: when something in PyTorch surprises you, you will know which part to open.
