# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Hello"}
# ---

# %% [markdown]
# # Hello
#
# Before you take an engine apart, you look around the garage. This lesson looks at your machine, runs a first kernel on it, and shows you how a lab works.
#
# It takes about an hour. If a paragraph begins with **Predict**, choose an answer before you look below it: in most of these cells, a wrong guess teaches you something. Run the cells as you go (<kbd>Shift</kbd>+<kbd>Enter</kbd>), and change them. The output that you see first was printed on the machine that built this page. After you run a cell, its output is about your machine. Nothing here is graded.

# %%
import torch

from hood.learner.contents import PHASES
from utils.instruments.accesses import accesses
from utils.notebook.drills import choice, number, true_false
from utils.softmax import compile_kernel
from utils.views import block_mask, course_path, kernel_ptx, machine_report

try:
    import triton
    import triton.language as tl

    from utils.instruments.interpreter import interpreted
except ImportError:
    triton = None
    print("No Triton here (it has no build for macOS). Cells that need it do nothing when run:")
    print("read the output that each of them came with, and run the others.")

# %% [markdown]
# ## Where we are

# %%
course_path(PHASES, here=0)

# %% [markdown]
# This phase depends on no other phase. It is short, and it gives you three things that every later phase assumes: you know what your cells run on, you have seen a kernel from the inside once, and you have handed in a lab.

# %% [markdown]
# ## Resumen en español
#
# Cuando ejecutas una celda, trabajan un Python concreto, un PyTorch concreto y un dispositivo concreto; aquí aprendes a preguntar cuáles, en vez de suponerlo.
# Después escribes tu primer *kernel* de Triton: una suma de vectores que muchos «programas» se reparten por bloques, con una máscara que protege el final.
# Lo ves correr paso a paso en el intérprete, y luego lees el PTX que el compilador escribe para una GPU que no tienes.
# Por último, practicas cómo se abre, se comprueba y se entrega un laboratorio.

# %% [markdown]
# ## The question
#
# You open a terminal, type `pip install torch`, and read *Successfully installed*. You go back to your notebook, run `import torch`, and read this:

# %%
import subprocess
import sys

# -S: a Python that doesn't look into this environment's packages, as any other Python would not.
other = subprocess.run(
    [sys.executable, "-I", "-S", "-c", "import torch"], capture_output=True, text=True
)
print(other.stderr.strip().splitlines()[-1])

# %% [markdown]
# Nobody lied. `pip` installed PyTorch for *one* Python, and your notebook runs *another* Python. Most computers have several, each with its own packages, and nothing on the screen says which one runs.
#
# That mistake at least gives you an error. The next line is in half of all the notebooks in the world, and with it a mistake stays silent:

# %%
device = "cuda" if torch.cuda.is_available() else "cpu"

# %% [markdown]
# It works everywhere, so you never learn on which device it worked. If a driver is missing, or if PyTorch was built without GPU code, the loss still falls and the numbers are still right. But the training that should take an hour takes two days. So here is the question of this phase:
#
# > **When I run a cell, what runs: which Python, which PyTorch, on which device?**

# %% [markdown]
# ## Which Python, which PyTorch, which device
#
# A notebook is a text with pictures. It computes nothing. A separate process computes: the *kernel*. (A Jupyter kernel has nothing to do with the kernels on a GPU.) This process is one particular Python, and inside it you can ask `sys` and `torch` directly.

# %%
from pathlib import Path

print("Python", sys.version.split()[0])
print("in an environment of its own:      ", sys.prefix != sys.base_prefix)
print("PyTorch", torch.__version__)
print("from that environment:             ", Path(torch.__file__).is_relative_to(sys.prefix))
print("built with GPU code for CUDA:      ", torch.version.cuda)
print("a GPU that this build can use:     ", torch.cuda.is_available())
print("where a new tensor lies:           ", torch.ones(3).device)

# %% [markdown]
# `sys.prefix` is the folder of the environment that runs your cells. If you are ever in doubt, print it in a cell, and in the terminal type `python -c "import sys; print(sys.prefix)"`. If the two folders differ, you have the problem from above. The fix is to install from *inside* the kernel, with `%pip install …` in a cell. (`!pip` would use the terminal's Python again.) (Under conda, *in an environment of its own* says False, because each conda environment is a complete Python and needs no other.)
#
# The two lines about GPUs answer two questions that are often mixed up. `torch.version.cuda` says what PyTorch was *built* for. `None` means that this build contains no code for NVIDIA's GPUs, and no driver in the world will change that. `torch.cuda.is_available()` says whether this build can also *reach* a GPU.

# %% tags=["hide-input"]
choice(
    "On a new server `torch.version.cuda` says `12.8`, and `torch.cuda.is_available()` says `False`. Where do you look first?",
    {
        "At the driver": "The build has its GPU code, so something below PyTorch is missing: the driver, the GPU itself, or a container's access to the GPU.",
        "At the PyTorch build": "The build is for CUDA 12.8, as it says. A CPU build would say `None`.",
        "At the code that moves the model": "Nothing has been moved yet. The question was only whether there is a GPU.",
    },
    answer="At the driver",
)

# %% [markdown]
# Here is all of that in one picture. Each row begins with a line of code that you might write. Follow the row to the right.
#
# **Predict.** How many of the four rows work on your machine?

# %%
machine_report()

# %% [markdown]
# The first row always works: PyTorch picks code written for your processor's instruction set and spreads it over some threads. ([Phase 04](04_dispatcher.ipynb#cell-id=a-call-is-a-look-up) shows how it picks one kernel from the many that would fit.) The second row needs a GPU and a build that supports it. You don't need a GPU for this course: you can learn all of it, and be graded on it, on a laptop. The last row belongs to [phase 06](06_compile.ipynb#cell-id=fusion-and-the-code): there PyTorch writes C++ for one of your functions, and your system's compiler turns it into machine code. Without a compiler, the row ends in an error, and below it you see the command that fixes this. Type it into a terminal, then run the cell again.
#
# The third row is for code that PyTorch's authors did not write, because you write it yourself. Let us look inside.

# %% [markdown]
# ## A kernel, one program at a time
#
# A *kernel* is a function that runs on a device. On a GPU you launch it as a **grid** of programs. All programs have the same code, and each program has its own number. So a kernel says what *one* program does, and its first step is to find out which program it is. Here is vector addition in Triton, a language for such kernels that looks like Python:

# %%
if triton:
    @triton.jit
    def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
        program = tl.program_id(0)                      # which one am I?
        i = program * BLOCK + tl.arange(0, BLOCK)       # the elements of my block
        mask = i < n                                    # those of them that exist
        x = tl.load(x_ptr + i, mask=mask)
        y = tl.load(y_ptr + i, mask=mask)
        tl.store(out_ptr + i, x + y, mask=mask)

# %% [markdown]
# There is no loop, and no `x[i]`. A kernel doesn't get tensors: `x_ptr` is an address, `x_ptr + i` is a whole block of addresses, and `tl.load` reads the numbers at these addresses, `BLOCK` at a time. `BLOCK` is a `constexpr`: it is fixed when the kernel is compiled, and it must be a power of two.
#
# Triton also has an *interpreter*. It needs no GPU, and we use it here even if you have one. It runs the programs one after another, and computes each line with NumPy. `interpreted(add_kernel)` is the same kernel, run in the interpreter. `[(3,)]` is the grid: three programs.
#
# **Predict.** There are ten elements, blocks of four, and three programs. Which elements will program 2 load?

# %%
x = torch.arange(10.0)
y = torch.full((10,), 100.0)
out = torch.zeros(10)
if triton:
    interpreted(add_kernel)[(3,)](x, y, out, 10, BLOCK=4)
    print(out)
    print("equal to PyTorch's:", torch.equal(out, x + y))

# %% [markdown]
# ## Programs, blocks and masks
#
# The result is right, but it doesn't show which program did what. The interpreter can show this: `accesses` launches the kernel once more and lists each load and each store, with brackets around the places that the mask turned off. Try it with your own tensors.

# %%
if triton:
    for access in accesses(add_kernel, (3,), x, y, out, 10, BLOCK=4):
        print(access)

# %% [markdown]
# Each program owns one block and knows nothing about the other programs. Program 2 also has four places, because a block is always whole, but only two elements are left for it. Its places 10 and 11 exist in the program but not in the tensor, so the mask stops the program from touching memory there.
#
# We choose the number of programs. They must cover all elements, so the number is `n / BLOCK`, *rounded up*. Triton has a function for this: `triton.cdiv(n, BLOCK)`. Move the sliders: when does the mask have nothing to do?

# %%
block_mask(10, 4)

# %% tags=["hide-input"]
number(
    "The course's model ends in a layer that gives 600 scores (its *LM head*), and a kernel processes them with `BLOCK = 256`. How many places does the mask turn off in all?", 168,
    unit="places", why="Three programs have 768 places, for 600 elements.",
    wrong={88: "The last program loads that many elements: 600 − 512.",
           424: "The mask would turn off that many places in one block of 1,024. Here there are three blocks of 256.",
           0: "That is right only if the number of elements is a multiple of `BLOCK`. 600 is not a multiple of 256."},
)

# %% [markdown]
# What does the mask protect? Remove it and see. The next tensors are the first ten elements of larger tensors, so there is memory after their end that a kernel can damage.
#
# **Predict.** `room` has sixteen elements, all −1, and the kernel gets only the first ten to write into. What will `room` contain afterwards, and what will the error say?

# %%
room = torch.full((16,), -1.0)
if triton:
    @triton.jit
    def add_unmasked(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i) + tl.load(y_ptr + i))

    longer = torch.arange(16.0)
    interpreted(add_unmasked)[(3,)](longer[:10], longer[:10], room[:10], BLOCK=4)
    print(room)

# %% [markdown]
# There is no error. Elements 10 and 11 of `room` were not part of the tensor that the kernel got, but they have been overwritten. An address doesn't know how long your tensor is. A GPU does the same, unless an address is outside all memory that your process owns. Then CUDA reports an *illegal memory access*, often some lines later, and you lose everything that you had on that GPU.

# %% tags=["hide-input"]
true_false(
    "With the masked kernel, a grid of 5 programs instead of 3 would also give the right sum.",
    True,
    "All places of programs 3 and 4 are past the end, so these programs touch nothing. They only cost time. A grid that is too *small* gives wrong results.",
)

# %% [markdown]
# ## What the interpreter shows, and what it does not
#
# The interpreter shows what each program loads, computes and stores, and its values are right. But there are two things that it can't show.
#
# **Races.** A GPU runs many programs at once, in no guaranteed order. In the next kernel, all programs add 1 to the *same* element: each program loads it, adds 1, and stores it.
#
# **Predict.** There are eight programs, and `total` starts at 0. What does the interpreter count, and what would a GPU count?

# %%
total = torch.zeros(1)
if triton:
    @triton.jit
    def count_kernel(total_ptr):
        tl.store(total_ptr, tl.load(total_ptr) + 1)

    interpreted(count_kernel)[(8,)](total)
    print(f"{total.item():.0f} of 8 programs were counted")

# %% [markdown]
# The interpreter counts eight, because it finishes one program before it begins the next. On a GPU, several programs would load the same 0, and each would store 1. The result may be any number from 1 to 8, and a different one tomorrow. To see that, you need a GPU. (`tl.atomic_add` is the right tool here.) So a kernel that is right in the interpreter may still be wrong on a GPU.
#
# **Speed.** In the interpreter, each line of each program is several calls of NumPy.

# %%
import time


def milliseconds(action):
    start = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - start)


a, b, c = torch.randn(3, 100_000)
torch.add(a, b, out=c)                                   # the first call has more to do
if triton:
    grid = (triton.cdiv(100_000, 1024),)
    slow = milliseconds(lambda: interpreted(add_kernel)[grid](a, b, c, 100_000, BLOCK=1024))
    fast = min(milliseconds(lambda: torch.add(a, b, out=c)) for _ in range(20))
    print(f"interpreter {slow:.1f} ms, PyTorch {fast:.3f} ms: {slow / fast:,.0f} times as long")

# %% [markdown]
# That ratio says something about NumPy calls, and nothing at all about the kernel. To measure a kernel's speed, you need the device. To see a kernel's *code*, you don't need it, and we will do that now.

# %% tags=["hide-input"]
choice(
    "Your kernel passes every test in the interpreter. What may still be wrong with it on a GPU?",
    {
        "Its arithmetic": "The interpreter computes the values as written, and the tests have checked them. (Rounding may differ in the last digits.)",
        "Two programs that write to the same place": "One after another, they cause no problem. If both run at once, the last write wins, and nobody knows which program writes last.",
        "Its mask": "A wrong mask loads and stores the wrong elements in the interpreter, too, and `accesses` shows it.",
    },
    answer="Two programs that write to the same place",
)

# %% [markdown]
# ## The same kernel, for a GPU that isn't here
#
# A compiler must know the machine for which it writes code. It doesn't need to run on that machine. So on any Linux machine, Triton can compile `add_kernel` for an H100, and we can read the code that an H100 would get. `"*fp32"` is a pointer to float32, and `"i32"` is an integer. `divisible` promises that the addresses are multiples of 16, which is true for every fresh PyTorch tensor.

# %%
if triton:
    types = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
    pointers = ["x_ptr", "y_ptr", "out_ptr"]
    code = compile_kernel(add_kernel, types, {"BLOCK": 128}, target="sm_90", divisible=pointers)
    print(
        *(line for line in code.ptx.splitlines() if line.startswith((".target", ".reqntid"))),
        sep="\n",
    )

# %% [markdown]
# `sm_90` names a generation of NVIDIA's GPUs. *sm* means streaming multiprocessor, and such a chip has a hundred or more of them. 90 means *compute capability 9.0*, which the H100 and the H200 have. An A100 is `sm_80`. (The `a` at the end allows instructions that only this generation has.) `.reqntid 128` says that each program will run on 128 **threads**, four *warps* of 32. Triton never asked you about threads: you wrote blocks, and Triton divides each block among threads. We chose `BLOCK = 128`, so each thread gets exactly one element.
#
# Next comes the *PTX*, NVIDIA's assembly language for all its GPUs. For each generation, it is translated into that generation's own machine code. The picture shows all instructions of our kernel, as one thread runs them, beside the lines that they come from. Move the highlighted line.
#
# **Predict.** How many instructions load elements from memory, how many add floats, and where is the mask?

# %%
if triton:
    kernel_ptx(add_kernel, code, line=5)

# %% [markdown]
# The `ld.param` instructions load the kernel's arguments: three addresses and `n`. The compiler puts them wherever there is room. `%ctaid.x` is the number of the program, our `tl.program_id(0)`. `shl … 7` shifts it left by seven bits, which multiplies it by 128. `%tid.x` is the number of the thread. `and … 127` keeps it below 128 (here it always is), and `or` combines the two numbers: the result is this thread's element of our `i`. `mul.wide … 4` turns it into bytes, because a float32 has four bytes. You will do this calculation yourself in [phase 01](01_tensors.ipynb#cell-id=the-address-of-one-element).
#
# `setp.lt.s32 %p1` sets a *predicate*, one bit: is `i < n`? And this is the mask: `@%p1` in front of an instruction means *only if that bit is set*. There is no jump and no loop. If a thread's bit is off, the thread skips the two `ld.global` and the `st.global`. (`mov` writes zeros first, and such a thread uses them in place of elements.) Between the loads and the store is the one line that does our addition: `add.f32`.

# %% tags=["hide-input"]
number(
    "`add_kernel` has two loads and one store. How many bytes does a thread move to and from memory for its one addition?", 12,
    unit="bytes", why="Three float32 numbers of four bytes each. One addition for twelve bytes is very little, so in this kernel every GPU mostly waits for memory. Phase 01 shows this in a picture.",
    wrong={3: "A thread moves three numbers, and each has four bytes.", 8: "The two loads move 8 bytes. The result is stored, too."},
)

# %% [markdown]
# **Predict.** Now `BLOCK = 1024`, and each program still has 128 threads. How many load instructions will the PTX contain?

# %%
import re


def count_loads(block, divisible):
    big = compile_kernel(add_kernel, types, {"BLOCK": block}, target="sm_90", divisible=divisible)
    loads = re.findall(r"ld\.global\S*", big.ptx)
    print(f"BLOCK {block:5}: {len(loads):2} loads, of the kind {loads[0]}")


if triton:
    count_loads(128, pointers)
    count_loads(1024, pointers)
    count_loads(1024, [*pointers, "n"])

# %% [markdown]
# Each thread now has 1024 / 128 = 8 elements of `x` and 8 of `y`: sixteen loads. The last line tells the compiler one more thing: `n` is a multiple of 16, too. Then the mask is always the same for four neighbours, and one `v4` load can read all four together. Not a letter of the kernel changed. The compiler's assumptions decided what code it wrote. In [phase 05](05_custom_op.ipynb#cell-id=the-same-kernel-as-ptx) they will make the difference between a fast softmax and a slow one.
#
# PTX isn't the last step either. The driver, or Triton in its place, turns PTX into the code that the chip really runs. This code is called *SASS*:

# %%
if triton and code.sass:
    for line in code.sass.splitlines():
        if found := re.search(r"(@!?P\d )?(LDG|FADD|STG|EXIT)[^ ;]*", line):
            print(found[0])

# %% [markdown]
# Two loads, an addition, a store: that is our Python kernel from a few pages ago, as machine code. The mask has a new form once more. The loads still have a predicate: `@!P0` means *unless* the bit is set, so the bit now says `i >= n`. Before the store, the threads without an element simply go home: `@P0 EXIT`.

# %% tags=["hide-input"]
true_false(
    "To compile a kernel for an H100 you need an H100, or at least some NVIDIA GPU.",
    False,
    "You have just compiled without an H100 (if you have Triton). You need a GPU only to *run* the kernel. All day, build servers compile for machines that they don't have.",
)

# %% [markdown]
# ## How a lab works
#
# A lesson is for reading. A lab is for doing: it is a notebook in which some cells wait for your code. Every exercise has four cells: a question, a stub, a check, and a graded cell. The check is for you, so run it as often as you like. It tests type and shape before values, and says what it found.
#
# **Predict.** Half of 8 is 4. Will this check agree?

# %%
from utils.notebook.expect import ExpectationFailed, expect_equal


def half(n):
    return n / 2


try:
    expect_equal("half of 8, an int", half(8), 4)
except ExpectationFailed as said:
    print(said)

# %% [markdown]
# In Python `8 / 2` is `4.0`, a float. The check expected an int, and `//` gives ints. To accept the float would be no favour to you, because the next function may refuse it.
#
# The graded cell begins with `# Graded` and with `check(...)`. It tests your function as grading will: part by part, on new random inputs each time. For each part that fails, the verdict says what is wrong and which section of the lesson to read. If it knows the mistake, it says what your *code does*, and not only what was expected. Below `check(...)` is one more example. Code that is right only for that example earns nothing.
#
# One more habit is worth more than all the others. A kernel remembers everything that you ever ran, even cells that you have changed or deleted since then. To see why that matters, here is a notebook of two cells. We use a dictionary of names in place of a kernel, because a kernel also remembers names and their values.
#
# **Predict.** You run both cells, then delete the first cell. Does the second cell still work for you? Does it work for the grader?

# %%
cells = ["scale = 3", "def triple(n):\n    return n * scale"]
yours = {}
for cell in cells:
    exec(cell, yours)                  # you run both ...
print("for you:       ", yours["triple"](2))

fresh = {}
exec(cells[1], fresh)                  # ... and hand in the second alone
try:
    print("for the grader:", fresh["triple"](2))
except NameError as error:
    print("for the grader:", error)

# %% [markdown]
# So before you hand in a lab, choose *Kernel → Restart Kernel and Run All Cells*. Code that passes then will pass anywhere. Then save, and submit the way your class does. If you have the checks, you can grade the whole lab as your class would. Open a terminal in the course's folder and type:
#
# ```
# python -m hood check 00_hello
# ```
#
# You may hand in half a lab. Each part earns its points separately, and a stub that still raises `NotImplementedError` costs only its own points.

# %% tags=["hide-input"]
choice(
    "All your checks print `ok`. After *Restart Kernel and Run All Cells*, the second check stops with a `NameError`. What happened?",
    {
        "The check is broken": "It is the same check as before, and it has no memory. Your kernel had a memory.",
        "Your code needs a name from a cell that is gone, or stands further down": "The old kernel remembered the name. The fresh kernel, like the grader's, runs only what is on the page, from top to bottom.",
        "PyTorch was not restarted properly": "A restart ends the whole process, so PyTorch was restarted together with everything else.",
    },
    answer="Your code needs a name from a cell that is gone, or stands further down",
)

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/00_hello/00_hello.ipynb) of this phase takes ten minutes and practises the second skill of this list:
#
# - say which Python, which PyTorch and which device your cell runs on, and tell a build without GPU code from a machine without a GPU;
# - work out how many programs cover a vector, which elements each of them loads, and what its mask turns off;
# - say what the interpreter shows you about a kernel, and which two things it can't show;
# - compile a kernel for a GPU that you don't have, and find its loads, its addition, its store and its mask in the PTX;
# - open a lab, check it, restart and run it all, and hand it in.

# %% [markdown]
# ## What this phase leaves out
#
# - **What the kernel gets**: an address, and the integers that turn it into a tensor. [Phase 01](01_tensors.ipynb#cell-id=a-tensor-is-a-storage-and-a-view).
# - **How `x + y` finds its kernel** among hundreds. [Phase 04](04_dispatcher.ipynb#cell-id=a-call-is-a-look-up).
# - **A kernel worth writing**, with reductions, gradients and a place among PyTorch's own operators. [Phase 05](05_custom_op.ipynb#cell-id=what-pytorch-asks-of-an-operator).
# - **The compiler that writes Triton for you.** [Phase 06](06_compile.ipynb#cell-id=the-same-for-a-gpu).
# - **How to measure time properly**, on a device that runs ahead of you. [Phase 09](09_profiling.ipynb#cell-id=two-clocks).
# - **Threads, warps, shared memory**, and how a GPU schedules its threads. They need a separate course, and NVIDIA's programming guide is a good one.

# %% [markdown]
# ## Sources
#
# - P. Tillet, H. T. Kung, D. Cox, "[Triton: an intermediate language and compiler for tiled neural network computations](https://doi.org/10.1145/3315508.3329973)", MAPL 2019: why you program blocks and not threads.
# - Triton's documentation: the tutorial "[Vector Addition](https://triton-lang.org/main/getting-started/tutorials/01-vector-add.html)", [`triton.language.load`](https://triton-lang.org/main/python-api/generated/triton.language.load.html) and [`store`](https://triton-lang.org/main/python-api/generated/triton.language.store.html) (masks), and "[Debugging Triton](https://triton-lang.org/main/programming-guide/chapter-3/debugging.html)", which describes the interpreter and its limits.
# - NVIDIA, "[Parallel Thread Execution ISA](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html)" (PTX): predicated execution, `ld`, `st`, `setp`, the special registers `%tid` and `%ctaid`; "[CUDA C++ Programming Guide](https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#compute-capabilities)", the chapter on compute capabilities.
# - PyTorch's documentation: "[Get Started](https://pytorch.org/get-started/locally/)" (which build to install), [`torch.cuda.is_available`](https://docs.pytorch.org/docs/stable/generated/torch.cuda.is_available.html), `torch.version`.
# - IPython's documentation: [the magic `%pip`](https://ipython.readthedocs.io/en/stable/interactive/magics.html#magic-pip), and why it exists. nbgrader's documentation: "From the validate extension".
