# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Hello"}
# ---

# %% [markdown]
# # Hello
#
# Before you take an engine apart, you look at what stands in the garage. This lesson looks at your machine, runs a first kernel on it, and shows you how a lab works.
#
# It takes about an hour. Where a paragraph begins with **Predict**, settle on an answer before you look below it: being wrong is how most of these cells teach. Run the cells as you go (<kbd>Shift</kbd>+<kbd>Enter</kbd>), and change them. What you see before you run anything was printed on the machine that built this page; afterwards it is about yours. Nothing here is graded.

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
# This phase stands by itself. It asks little of you, and gives you three things that every later phase takes for granted: you know what your cells run on, you have seen a kernel from the inside once, and you have handed in a lab.

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
# Nobody lied. `pip` installed PyTorch for *a* Python, and your notebook runs *another*. Most computers hold several, each with packages of its own, and nothing on the screen says which one answers.
#
# That mistake at least makes itself heard. This line, which you will meet in half of all the notebooks in the world, makes sure that its own does not:

# %%
device = "cuda" if torch.cuda.is_available() else "cpu"

# %% [markdown]
# It works everywhere, and so you never learn where it worked. A driver that is missing, a PyTorch that was built without GPU code: the loss still falls, the numbers are still right, and the training that should take an hour takes two days. So here is the question of this phase:
#
# > **When I run a cell, what runs: which Python, which PyTorch, on which device?**

# %% [markdown]
# ## Which Python, which PyTorch, which device
#
# A notebook is a text with pictures. It computes nothing. A separate process does, the *kernel* (a Jupyter kernel, which has nothing to do with the kernels on a GPU), and this process is one particular Python. Inside it, `sys` and `torch` answer for themselves.

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
# `sys.prefix` is the folder of the environment that answers. If you ever doubt it, print it, and do the same with `python -c "import sys; print(sys.prefix)"` in the terminal: when the two differ, you have found the story above. The cure is to install from *inside* the kernel, with `%pip install …` in a cell. (`!pip` would ask the terminal's Python again.) (Under conda, *in an environment of its own* says False: its environments are whole Pythons, which lean on no other.)
#
# The two lines about GPUs are two questions, and they are often mixed up. `torch.version.cuda` says what PyTorch was *built* for; `None` means that this build holds no code for NVIDIA's GPUs, and no driver in the world will change that. `torch.cuda.is_available()` asks whether there is also a GPU that it can *reach*.

# %% tags=["hide-input"]
choice(
    "On a new server `torch.version.cuda` says `12.8`, and `torch.cuda.is_available()` says `False`. Where do you look first?",
    {
        "At the driver": "The build has its GPU code, so what is missing lies below it: the driver, the GPU itself, or a container that wasn't given it.",
        "At the PyTorch build": "The build is for CUDA 12.8, as it says. A CPU build would say `None`.",
        "At the code that moves the model": "Nothing has been moved yet. The question was only whether there is a GPU to move it to.",
    },
    answer="At the driver",
)

# %% [markdown]
# All of that in one picture. Each row is a line of code that you might write; follow it to the right.
#
# **Predict.** How many of the four ways are open on your machine?

# %%
machine_report()

# %% [markdown]
# The first row is always open: PyTorch picks code written for your processor's instruction set and spreads it over some threads. (Which code, among many that would fit, is what [phase 04](04_dispatcher.ipynb#cell-id=a-call-is-a-look-up) is about.) The second needs a GPU and a build that knows it. The course needs neither: you can learn all of it, and be graded on it, on a laptop. The last row is [phase 06](06_compile.ipynb#cell-id=fusion-and-the-code)'s: there PyTorch writes C++ for a function of yours, and your system's compiler makes machine code of it. Where there is none, the row ends in an error, and the command that opens it stands below: type it into a terminal, then run the cell again.
#
# The third row is for code that PyTorch's authors did not write. You did. Let us open it.

# %% [markdown]
# ## A kernel, one program at a time
#
# A *kernel* is a function that runs on a device. On a GPU it is never run once: it is launched as a **grid** of programs, all with the same code, each of them told its own number. So a kernel says what *one* of them does, and the first thing it does is find out which one it is. Here is vector addition in Triton, a language for such kernels that looks like Python:

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
# No loop, and no `x[i]`. A kernel isn't handed tensors: `x_ptr` is an address, `x_ptr + i` a whole block of addresses, and `tl.load` fetches what lies there, `BLOCK` numbers at a time. `BLOCK` is a `constexpr`, a constant while the kernel is compiled, and must be a power of two.
#
# Triton also has an *interpreter*, which needs no GPU and which we use here even if you have one: it takes the programs one after another and does each line with NumPy. `interpreted(add_kernel)` is the same kernel, run that way; `[(3,)]` is the grid, three programs.
#
# **Predict.** Ten elements, blocks of four, three programs. Which elements will program 2 load?

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
# The result is right, but it doesn't say who did what. The interpreter can: `accesses` launches the kernel once more and writes down each load and each store, with brackets around the places that the mask turned off. Give it tensors of your own.

# %%
if triton:
    for access in accesses(add_kernel, (3,), x, y, out, 10, BLOCK=4):
        print(access)

# %% [markdown]
# Each program owns one block and knows of no other. Program 2 has four places as well, because a block is always whole, but only two elements are left for it. Its places 10 and 11 exist in the program and not in the tensor, and there the mask keeps it away from memory.
#
# The number of programs is our business. It must cover all elements, so it is the number of blocks *rounded up*; Triton calls that `triton.cdiv(n, BLOCK)`. Move the sliders: when does the mask have nothing to do?

# %%
block_mask(10, 4)

# %% tags=["hide-input"]
number(
    "The course's model ends in a layer that gives 600 scores (its *LM head*), and a kernel goes over them with `BLOCK = 256`. How many places does the mask turn off in all?", 168,
    unit="places", why="Three programs have 768 places, for 600 elements.",
    wrong={88: "Those are the elements that the last program does load: 600 − 512.",
           424: "That is what one block of 1,024 would waste. Here there are three blocks of 256.",
           0: "Only when the block divides the number of elements, and 600 / 256 isn't whole."},
)

# %% [markdown]
# What does the mask protect? Take it away and see. The next tensors are the first ten elements of larger ones, so that there is something behind the end to be hurt.
#
# **Predict.** `room` holds sixteen elements, all −1, and the kernel is told to write into the first ten. What will `room` hold afterwards, and what will the error say?

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
# There is no error. Elements 10 and 11 of `room` were never part of the tensor that the kernel was given, and they have been overwritten. An address has no end: it doesn't know how long your tensor is. On a GPU it is no different, until an address lies outside of everything that your process owns: then CUDA reports an *illegal memory access*, often some lines later, and everything you had on that GPU is lost.

# %% tags=["hide-input"]
true_false(
    "A grid of 5 programs instead of 3 would also give the right sum, with the masked kernel.",
    True,
    "Programs 3 and 4 find that all their places lie past the end, and touch nothing. They are started for nothing, though; a grid that is too *small* is what gives wrong results.",
)

# %% [markdown]
# ## What the interpreter shows, and what it does not
#
# The interpreter shows what each program loads, computes and stores, and it is honest about values. It is silent about two things, and you should know which.
#
# **Races.** A GPU runs many programs at once, in no promised order. Here is a kernel in which all programs add 1 to the *same* element: load it, add, store it.
#
# **Predict.** Eight programs, and `total` starts at 0. What does the interpreter say, and what would a GPU?

# %%
total = torch.zeros(1)
if triton:
    @triton.jit
    def count_kernel(total_ptr):
        tl.store(total_ptr, tl.load(total_ptr) + 1)

    interpreted(count_kernel)[(8,)](total)
    print(f"{total.item():.0f} of 8 programs were counted")

# %% [markdown]
# The interpreter counts eight, because it finishes one program before it begins the next. On a GPU several would load the same 0, and each would store 1: the result may be anything from 1 to 8, and another one tomorrow. To see that you need a GPU; this page can only tell you. (`tl.atomic_add` is made for this.) So a kernel that is right in the interpreter may still be wrong.
#
# **Speed.** Each line of each program is a handful of calls into NumPy.

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
# That ratio says something about NumPy calls, and nothing at all about the kernel. For a kernel's speed you need the device. For the kernel's *code*, as we are about to see, you do not.

# %% tags=["hide-input"]
choice(
    "Your kernel passes every test in the interpreter. What may still be wrong with it on a GPU?",
    {
        "Its arithmetic": "The values are computed as written; the tests have seen them. (Rounding may differ in the last digits.)",
        "Two programs that write to the same place": "One after another they get along. At once, the last one to write wins, and nobody knows which that will be.",
        "Its mask": "A wrong mask loads and stores the wrong elements in the interpreter just as well: `accesses` shows it.",
    },
    answer="Two programs that write to the same place",
)

# %% [markdown]
# ## The same kernel, for a GPU that isn't here
#
# A compiler needs to know the machine it writes for. It doesn't need to have one. So we can have Triton compile `add_kernel` for an H100, on any Linux machine, and read what an H100 would be given. `"*fp32"` is a pointer to float32, `"i32"` an integer; `divisible` promises that the addresses are multiples of 16, as PyTorch's always are for a fresh tensor.

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
# `sm_90` names a generation of NVIDIA's GPUs: *sm* is the streaming multiprocessor, the unit of which such a chip has a hundred or more, and 90 stands for *compute capability 9.0*, which the H100 and the H200 have. An A100 is `sm_80`. (The `a` at the end admits instructions that only this generation has.) `.reqntid 128` says that each program will run on 128 **threads**, four *warps* of 32. Triton never asked you about threads: you wrote blocks, and dividing a block among threads is its job. We chose `BLOCK = 128`, so each thread gets exactly one element.
#
# What comes next is the *PTX*: NVIDIA's assembly language for GPUs in general, which each generation translates into its own. These are all the instructions of our kernel, as one thread sees them, beside the lines that they come from. Move the lit line.
#
# **Predict.** How many of them load elements from memory, how many add floats, and what has become of the mask?

# %%
if triton:
    kernel_ptx(add_kernel, code, line=5)

# %% [markdown]
# The `ld.param` fetch the kernel's own arguments, three addresses and `n`, wherever the compiler found room for them. `%ctaid.x` is the number of the program, our `tl.program_id(0)`; `shl … 7` shifts it left by seven bits, which multiplies it by 128. `%tid.x` is the number of the thread; `and … 127` keeps it below 128, where it is anyway, and the `or` puts the two together: that is our `i`, one element of it. `mul.wide … 4` makes bytes of it, because a float32 has four; you will do that sum yourself in [phase 01](01_tensors.ipynb#cell-id=the-address-of-one-element).
#
# `setp.lt.s32 %p1` sets a *predicate*, one bit: is `i < n`? And there is the mask: `@%p1` in front of an instruction means *only if that bit is set*. No jump, no loop; a thread whose bit is off walks past the two `ld.global` and the `st.global` as if they weren't there. (The zeros that `mov` writes first are what such a thread holds in place of an element.) Between them stands the one line that does what we came for, `add.f32`.

# %% tags=["hide-input"]
number(
    "`add_kernel` has two loads and one store. How many bytes does a thread move to and from memory for its one addition?", 12,
    unit="bytes", why="Three float32 numbers of four bytes. One addition for twelve bytes is very little, and so every GPU spends this kernel waiting for memory; phase 01 draws that.",
    wrong={3: "Three numbers, of four bytes each.", 8: "Those are the loads. The result is stored, too."},
)

# %% [markdown]
# **Predict.** Now `BLOCK = 1024`, still with 128 threads to a program. How many load instructions will the PTX hold?

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
# Each thread now has 1024 / 128 = 8 elements of `x` and 8 of `y`: sixteen loads. The last line tells the compiler one thing more, that `n` is a multiple of 16, too. Then four neighbours are always all inside or all outside of the mask, and one `v4` load can fetch them together. Not a letter of the kernel changed. What the compiler may assume decided what it wrote, and in [phase 05](05_custom_op.ipynb#cell-id=the-same-kernel-as-ptx) this will be the difference between a fast softmax and a slow one.
#
# PTX isn't the last word either. The driver, or Triton for it, turns it into what the chip truly runs, which is called *SASS*:

# %%
if triton and code.sass:
    for line in code.sass.splitlines():
        if found := re.search(r"(@!?P\d )?(LDG|FADD|STG|EXIT)[^ ;]*", line):
            print(found[0])

# %% [markdown]
# Two loads, an addition, a store: what was written in Python a few pages ago, all the way down. The mask has changed its clothes once more. The loads still carry a predicate (`@!P0`, *unless* the bit is set, so the bit now says `i >= n`); before the store, the threads without an element simply go home: `@P0 EXIT`.

# %% tags=["hide-input"]
true_false(
    "To compile a kernel for an H100 you need an H100, or at least some NVIDIA GPU.",
    False,
    "You have just done it without (if you have Triton). To *run* it you need one. Build servers compile for machines they have never seen, all day.",
)

# %% [markdown]
# ## How a lab works
#
# A lesson is for reading. A lab is for doing: a notebook in which some cells wait for your code. Every exercise has four: a question, a stub, a check, and a graded cell. The check is there for you; run it as often as you like. It looks at type and shape before values, and says what it found.
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
# In Python `8 / 2` is `4.0`, a float, and where somebody asked for an int that is another answer; `//` gives ints. A check that let it pass would do you no favour, since the next thing you pass it to may not.
#
# The graded cell begins with `# Graded` and with `check(...)`, which tries your function as grading will: on inputs drawn for that moment alone, part by part. For each part that fails the verdict says what is wrong (where it knows the mistake, what your *code does*, and not only what was expected), and which section of the lesson to read. Below it stands one more example, and there is no use in writing for that one.
#
# One more habit, and it is worth more than all the others. A kernel remembers everything you ever ran, also the cells that you have since changed or deleted. To see why that matters, here is a notebook of two cells, and a kernel, which is at heart a dictionary of names.
#
# **Predict.** You run both cells, then delete the first. Does the second still work for you? For whoever grades it?

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
# So before you hand anything in: *Kernel → Restart Kernel and Run All Cells*. What passes there will pass anywhere. In a lab, the *Validate* button at the top does it for you in a kernel of its own, and lists the graded cells whose own example fails. (The checks above them it runs and doesn't list: look at those yourself.) Then save, and submit the way your class does. Where you have the checks, a terminal in the course's folder grades the whole lab as your class would:
#
# ```
# python -m hood check 00_hello
# ```
#
# Handing in half a lab is fine. Each part earns its points separately, and a stub that still raises `NotImplementedError` costs its own points and nobody else's.

# %% tags=["hide-input"]
choice(
    "All your checks print `ok`. After *Restart Kernel and Run All Cells* the second one stops with a `NameError`. What happened?",
    {
        "The check is broken": "It is the same check, and it has no memory. Your kernel had one.",
        "Your code needs a name from a cell that is gone, or stands further down": "The old kernel remembered it; the fresh one, like the grader's, runs only what is on the page, from top to bottom.",
        "PyTorch was not restarted properly": "It was restarted together with everything else. That is the point of it.",
    },
    answer="Your code needs a name from a cell that is gone, or stands further down",
)

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/00_hello/00_hello.ipynb) of this phase takes ten minutes and asks for the second of these:
#
# - say which Python, which PyTorch and which device your cell runs on, and tell a build without GPU code from a machine without a GPU;
# - work out how many programs cover a vector, which elements each of them loads, and what its mask turns off;
# - say what the interpreter can show you of a kernel, and the two things that it can't;
# - compile a kernel for a GPU that you don't have, and find its loads, its addition, its store and its mask in the PTX;
# - open a lab, check it, restart and run it all, and hand it in.

# %% [markdown]
# ## What this phase leaves out
#
# - **What the kernel is handed**: an address, and the integers that make a tensor of it. [Phase 01](01_tensors.ipynb#cell-id=a-tensor-is-a-storage-and-a-view).
# - **How `x + y` finds its kernel** among hundreds. [Phase 04](04_dispatcher.ipynb#cell-id=a-call-is-a-look-up).
# - **A kernel worth writing**, with reductions, gradients and a place among PyTorch's own operators. [Phase 05](05_custom_op.ipynb#cell-id=what-pytorch-asks-of-an-operator).
# - **The compiler that writes Triton for you.** [Phase 06](06_compile.ipynb#cell-id=the-same-for-a-gpu).
# - **How to measure time properly**, on a device that runs ahead of you. [Phase 09](09_profiling.ipynb#cell-id=two-clocks).
# - Threads, warps, shared memory and how a GPU schedules them are a course of their own; NVIDIA's programming guide is a good one.

# %% [markdown]
# ## Sources
#
# - P. Tillet, H. T. Kung, D. Cox, "[Triton: an intermediate language and compiler for tiled neural network computations](https://doi.org/10.1145/3315508.3329973)", MAPL 2019: why blocks, and not threads, are what you program.
# - Triton's documentation: the tutorial "[Vector Addition](https://triton-lang.org/main/getting-started/tutorials/01-vector-add.html)", [`triton.language.load`](https://triton-lang.org/main/python-api/generated/triton.language.load.html) and [`store`](https://triton-lang.org/main/python-api/generated/triton.language.store.html) (masks), and "[Debugging Triton](https://triton-lang.org/main/programming-guide/chapter-3/debugging.html)", which describes the interpreter and its limits.
# - NVIDIA, "[Parallel Thread Execution ISA](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html)" (PTX): predicated execution, `ld`, `st`, `setp`, the special registers `%tid` and `%ctaid`; "[CUDA C++ Programming Guide](https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#compute-capabilities)", the chapter on compute capabilities.
# - PyTorch's documentation: "[Get Started](https://pytorch.org/get-started/locally/)" (which build to install), [`torch.cuda.is_available`](https://docs.pytorch.org/docs/stable/generated/torch.cuda.is_available.html), `torch.version`.
# - IPython's documentation: [the magic `%pip`](https://ipython.readthedocs.io/en/stable/interactive/magics.html#magic-pip), and why it is there. nbgrader's documentation: "From the validate extension".
