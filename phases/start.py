# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Open the Hood"}
# ---

# %% [markdown]
# # Open the Hood
#
# You have called `loss.backward()` often enough, and it worked. This course is about what happened when it did.
#
# It puts PyTorch on the bench and takes it apart, one layer a phase, from the bytes under a tensor down to the code that `torch.compile` writes, and has you build each part again before it goes back in. The same small piece lies on the bench all the way: the last layer of a language model, `nn.Linear(64, 600)`, real in its shapes and small enough that you can look at every number in it.
#
# Two sentences hold everything that follows. You may know them already; the aim is that they become *obvious*.
#
# > A **tensor** is a storage, plain bytes, plus a view of it: shape, strides, offset, dtype, device, and whether it wants a gradient.
# >
# > An **nn.Module** is a registry of parameters plus a forward written as code; running it is a sequence of dispatched kernels.
#
# Bring Python and a little NumPy. You need no GPU, neither to learn nor to be graded.

# %% [markdown] tags=["needs-kernel"]
# Run this cell whenever you come back, and the button leads to the exercise that you left.

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
# Phases 01 to 06 are the core, and each leans on those before it. 07 to 10 are the places the road leads to, and 00 stands by itself: it shows you your own machine. The hours are those of the lesson and those of the lab, and in brackets those of the lab's *further* exercises, which a class may leave out. Start with the first phase in the table that has links.

# %% [markdown] tags=["needs-kernel"]
# Run the cells, and the phases that are behind you carry a tick, those you have begun the number of exercises that are right.

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
# You read and solve in copies that are yours, in the folder `work/`; opening the course as its README says makes them. Write in them whatever you like, in lessons too. When the course changes, what is new comes into your copies, and your answers stay where they are, as do the cells that you added.
#
# Open a lesson and its lab side by side (drag one tab to the right). In the lesson, say what a cell will print *before* you run it with <kbd>Shift</kbd>+<kbd>Enter</kbd>; the times you are wrong are what you came for. What answers a **Predict** is folded: the output until you run its cell, or click the three dots; the words below it until you open them. Most pictures take a tensor of your own: call them with one, and move their sliders.
#
# An exercise in a lab is four cells. A question, with its shapes and an honest guess at how long it takes. A stub, which raises `NotImplementedError` until you have written something better. A check to run at once: it prints `ok`, or says what it expected, what came, and at which index the two part. And a graded cell, which begins with `check(...)`: run it, and below it stands what grading would say, on inputs drawn for that run alone, so code that is right passes and code that remembers the example does not. It tells which parts are right; where a mistake is one that people make, it names it, shows a call that fails, and links the section that clears it up. Once all of it is right, a worked solution lies below the verdict, folded: the code, why it is like that, and other ways to the same. Below a verdict stands what to do now: the next exercise, or, while something is not right yet, a text to copy for a tutor and a button that shows the solution. A question in words has no verdict: when you have written your answer, `solution("why_silent")`, from `hood.learner.check`, shows one to compare it with, and how it is marked. A class's copy may come without the checks; then the cell says so, and the feedback after grading tells you the same.
#
# When every check says `ok`, choose *Kernel → Restart Kernel and Run All Cells*: what still passes from a fresh kernel will pass anywhere. Then save, and submit the way your class does.

# %% [markdown] tags=["needs-kernel"]
# A whole lab can be checked at once, where you have the checks. This cell shows the command. Paste it into a terminal (*File → New → Terminal*): it works from any folder and in any shell.

# %% tags=["needs-kernel"]
from hood.learner.contents import show_check_command

show_check_command("01_tensors")

# %% [markdown] tags=["needs-kernel"]
# ## How far you are
#
# This reads your labs as you last saved them. What a notebook doesn't keep (which cells of a lesson you ran last, which drills you answered, which solutions you looked at) lies in `work/.progress`, on this machine alone; delete that folder, and it is forgotten. Nothing is sent. The points are those of verdicts; a person gives those of questions in words. All points in a verdict are not a grade yet, but they are a good sign.

# %% tags=["needs-kernel"]
show_progress()

# %% [markdown]
# ## What you leave with
#
# Six things that you can do at the end of the road, on an empty page. Behind each stands the lesson that leads there, and the exercise of its lab that asks for it:
#
# 1. an MLP as an `nn.Module`, from nothing ([lesson 03](03_module.ipynb#cell-id=how-a-layer-begins), exercise 7);
# 2. a `Dataset` and a `DataLoader` of your own ([07](07_training.ipynb#cell-id=what-a-loader-does), exercises 1 and 2);
# 3. a full training loop, with mixed precision and gradient clipping ([07](07_training.ipynb#cell-id=sixteen-bits), exercise 9);
# 4. multi-head attention in under fifty lines ([08](08_transformer.ipynb#cell-id=attention-in-fifty-lines), exercise 2);
# 5. a Hugging Face causal language model, loaded and run ([08](08_transformer.ipynb#cell-id=what-the-folder-can-do), exercise 8);
# 6. a profile of a training step, with its bottleneck named ([09](09_profiling.ipynb#cell-id=a-trace-and-what-looking-costs), exercises 1 and 9).
#
# Beneath all six lies the one thing that the course is named after: when something in PyTorch surprises you, you will know which part to open.
