# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Profiling"}
# ---

# %% [markdown]
# # Profiling
#
# A program that is slow and a program that is wrong have this in common: whoever looks at them has a suspicion, and the suspicion is mostly false. This lesson is about instruments. Which one to take, what it can't see, and how to tell a finding from a mood of the machine.
#
# It takes about three and a half hours, predictions and drills included, in two sittings. The first is about finding what is slow, and ends at *A resting place*, from where half of the lab can be solved. The second is about mending it, about what is wrong and not slow, and ends with one step taken apart from end to end. You need [phase 07](07_training.ipynb#cell-id=the-five-lines)'s training step; of [phase 04](04_dispatcher.ipynb#cell-id=a-call-is-a-look-up) it helps to know what an operator is. Where a paragraph begins with **Predict**, settle on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.
#
# No GPU is needed. What concerns one is read from a *record*: what was measured on an NVIDIA H100, in files that came with this course, and the cells below print it wherever they run. Where a pattern is to be learnt there are traces that are *drawn*, by a model of a machine, and each of them says so. The rest is measured here, on a CPU: those milliseconds are the ones of the machine that made this page, and yours will say others.

# %%
import os

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # the profiler tells of itself, otherwise
os.environ.setdefault("KINETO_LOG_LEVEL", "99")

import statistics
import time
import warnings

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.benchmark import Timer

from hood.learner.contents import PHASES
from utils.instruments.profiling_examples import Device, Neighbour, batches_by_length
from utils.minigpt import MiniGPT, load_minigpt, training_lines
from utils.notebook.drills import choice, number, true_false
from utils.views import course_path, timing_spread
from utils.views.step_counts import counts

# %% [markdown]
# ## Where we are

# %%
course_path(PHASES, here=9)

# %% [markdown]
# In phase 07 you wrote the step. Now you take it apart by time, by bytes and by counts, and by what goes wrong in it.

# %% [markdown]
# ## Resumen en español
#
# Un tiempo sin dispersión no es una medida. Se mide lo mismo muchas veces, alternando, y se compara la mediana con los cuartiles; lo que se puede **contar** (operadores, bytes, esperas) no depende del humor de la máquina.
# En una tabla, *total* incluye lo que se llama por dentro y *self* no. El host solo encarga el trabajo: quien espera al dispositivo carga con el tiempo de los demás.
# Cinco frenos: los datos, el bucle de Python, la espera escondida, la copia inútil, los kernels diminutos. Tres remedios: menos, más grande, más tarde.
# Un NaN se busca donde nace: en la ida con *hooks*, en la vuelta con `detect_anomaly`. En float16 el culpable suele ser un número que se hizo cero.

# %% [markdown]
# ## The question
#
# A colleague works on the training step. The line that clears the gradients could spare itself the work, she has read, if it set them to None. Her machine computes on one thread, so that nothing disturbs.

# %%
torch.set_num_threads(1)
torch.manual_seed(0)
model = MiniGPT()
optimizer = torch.optim.AdamW(model.parameters())


def loss_of(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def step(x, y):
    loss = loss_of(model, x, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


# %%
def quick_step(x, y):
    loss = loss_of(model, x, y)
    optimizer.zero_grad(set_to_none=True)  # the new line
    loss.backward()
    optimizer.step()
    return loss


# %% [markdown]
# She takes the time of a step as it is and of a step as it could be, each on a batch of the training stream. (As in phase 07 the stream deals batches of lines that are about equally long.)

# %%
inputs, targets = training_lines()
stream = batches_by_length(inputs, targets, size=64, seed=343)
turn = iter(stream)


def clock(function):
    """Seconds for one call on the next batch."""
    x, y = next(turn)
    began = time.perf_counter()
    function(x, y)
    return time.perf_counter() - began

# %%
first_old, first_new = clock(step), clock(quick_step)
print(f"the new step takes {first_new / first_old:.2f} of the time of the old one")

# %% [markdown]
# Her mail said "30 % faster!"; here it is a good deal more. A second colleague runs the very same thing once again.

# %%
again_old, again_new = clock(step), clock(quick_step)
print(f"the new step takes {again_new / again_old:.2f} of the time of the old one")

# %% [markdown]
# Slower, and by far! (His mail said 40 %.) **Predict.** What did they measure? (Three things are wrong with it. One lies in `clock`, one in *when* it is first called, and one in what the two steps do.)
#
# > **Where does the time of a step go; how do I know it, and not the mood of a clock; and how do I prove that what I mended is better?**

# %% [markdown]
# ## A number without a spread
#
# The first of the three is the batch. Each call of `clock` takes the next one.

# %%
for name, (words, _) in zip(["old", "new", "old", "new"], stream):
    print(f"{name}: 64 lines of up to {words.shape[1]} words")

# %% [markdown]
# What she measured was the data: whoever gets the long batch loses. (In phase 07 you met these batches; the long lines are lists of a verb's forms.) So from here on there is one batch, x and y, for everybody.
#
# The second thing is the very first call. Here is a convolution, six times on the same pictures, and then six times on larger ones.

# %%
x, y = inputs[:32], targets[:32]


def seconds(function, *args, clock=time.perf_counter):
    began = clock()
    function(*args)
    return clock() - began


weight = torch.randn(16, 3, 3, 3)
for size in (32, 40):
    pictures = torch.randn(8, 3, size, size)
    print(
        f"{size} × {size}, ms:",
        *(
            f"{1e3 * seconds(F.conv2d, pictures, weight, clock=time.process_time):.2f}"
            for _ in range(6)
        ),
    )

# %% [markdown]
# Slow are the first of all, and the first of each size. (`process_time` counts the seconds in which a core worked for this process, as in phase 07. It doesn't feel a neighbour, and it stands still while the process waits, for a disk, a loader's worker or a GPU.) The library (oneDNN, on a CPU) chooses a kernel for these sizes, rearranges, and keeps what it has prepared. A first training step does more of the kind, and on a GPU the first call may load code, tune, compile. **Warm up** before you measure, with the sizes that you will measure, and don't let it count.
#
# The third thing: the two steps are the same. `zero_grad` sets gradients to None unless it is told not to. Nothing could have been gained. So here is a case in which we know the truth, which is rare, and can see what a clock makes of it.

# %%
olds, news = [], []
for _ in range(40):
    olds.append(seconds(step, x, y))
    news.append(seconds(quick_step, x, y))

# %% [markdown]
# **Predict.** Forty runs of one thing and, in turn with them, forty of the same thing. How far will their medians be apart? And if you had taken a single run of each?

# %%
timing_spread({"old": olds, "new": news})

# %% [markdown]
# Each point is a run. The box holds the middle half of them, from the first quartile to the third; the stroke is the median. Live, move the slider to 1: that is what the colleague saw, a ratio of two points out of the clouds.
#
# A ratio of medians without the boxes says nothing. With them there is a simple, cautious rule, which this course goes by: where the middle halves of both overlap, *nothing can be said*. And fewer than five runs have no quartiles worth the name.
#
# Why the median and not the mean? Here one of these forty runs is disturbed, and takes a whole second.

# %%
disturbed = [*olds[:-1], 1.0]
for name, of in {"mean": statistics.mean, "median": statistics.median, "minimum": min}.items():
    print(
        f"{name:8} {1e3 * of(olds):6.1f} ms, with the disturbed one {1e3 * of(disturbed):6.1f} ms"
    )

# %% [markdown]
# Noise only ever adds. So the mean is at the mercy of whoever else uses the machine; the minimum is the best guess at what the code needs when nobody disturbs; and the median says what you will wait for on a usual day.
#
# There is a disturbance that no median cures. **Predict.** Twenty runs of the old step, then twenty of the new one, which is the same; and when the first twenty are done, somebody on the same machine begins to compute. What will be said of the new step? And if old and new are run *in turn*, with the same neighbour from half-way on?

# %%
in_turn_old, in_turn_new = [], []
with Neighbour() as neighbour:  # a thread that computes while it is `busy`
    apart_old = [seconds(step, x, y) for _ in range(20)]
    neighbour.busy = True
    apart_new = [seconds(quick_step, x, y) for _ in range(20)]
    for run in range(40):
        neighbour.busy = run >= 20
        in_turn_old.append(seconds(step, x, y))
        in_turn_new.append(seconds(quick_step, x, y))

for name, pairs in {
    "one after the other": zip(apart_old, apart_new),
    "in turn": zip(in_turn_old, in_turn_new),
}.items():
    ratio = statistics.median(new / old for old, new in pairs)
    print(f"{name:20} the new step takes {ratio:.2f} of the old one's time")

# %% [markdown]
# Taken one after the other, the new step pays for the neighbour. Taken **in turn**, old, new, old, new, both are disturbed alike, and the ratio of each pair stays near 1. A machine that gets warm, a colleague's job, a battery: all of these are slow changes, and whoever measures in turn divides them out.
#
# So wall time is told as a *ratio*, with its quartiles, measured side by side. PyTorch has a tool that does much of it.

# %%
measured = Timer("step(x, y)", globals={"step": step, "x": x, "y": y}).blocked_autorange(
    min_run_time=1
)
print(measured)
print(f"median {1e3 * measured.median:.1f} ms, middle half {1e3 * measured.iqr:.1f} ms wide")

# %% [markdown]
# `Timer` warms up, chooses how often to repeat (a statement of a microsecond is run thousands of times for one number), keeps all the times, warns where they are too wide apart, and on a GPU it waits for the device. One thing it does unasked: it sets the number of threads to **one** while it measures, so that results can be compared between machines. What your training gets you learn with `num_threads`.

# %%
torch.set_num_threads(2)
for threads in ({}, {"num_threads": 2}):
    seen = set()
    Timer(
        "seen.add(threads())", globals={"seen": seen, "threads": torch.get_num_threads}, **threads
    ).timeit(3)
    print(threads or "nothing said", seen)
torch.set_num_threads(1)

# %% [markdown]
# Best of all is what needs no clock. `counts` runs a function under a dispatch mode, as in [phase 04](04_dispatcher.ipynb#cell-id=listening-in), and counts operators and the bytes of the tensors that they make. **Predict.** Thirty steps by the clock and by counts: how far apart are the smallest and the largest of each?

# %%
walls, numbers = [], set()
for _ in range(30):
    began = time.perf_counter()
    found = counts(step, x, y)
    walls.append(1e3 * (time.perf_counter() - began))
    numbers.add((found.calls, found.bytes))
print(f"by the clock: {min(walls):.0f} to {max(walls):.0f} ms")
print("by counts:", *(f"{operators} operators, {size:,} bytes" for operators, size in numbers))

# %% [markdown]
# One line: thirty times the same. Counts don't say how long something takes. But where a mend is meant to do *less*, fewer operators, fewer bytes, fewer waits, then counts prove that it does, on any machine, in one run. The clock is asked once more at the end, for the ratio.

# %% tags=["hide-input"]
choice(
    "Ten runs before: quartiles 30, 33, 39 ms. Ten runs after: 24, 29, 32 ms. What can be said?",
    {
        "12 % faster": "The medians say so, and the boxes reach from 30 to 39 and from 24 to 32: they overlap between 30 and 32.",
        "Nothing yet": "The middle halves overlap. Measure in turn, more often, on a quieter machine; or count.",
        "It isn't faster": "That can't be said either. Not to be able to tell a difference is not to know that there is none.",
    },
    answer="Nothing yet",
)

# %% tags=["hide-input"]
true_false(
    "The mean of a hundred runs is more exact than the median of twenty, since it rests on more runs.", False,
    "More runs narrow the mean down to the wrong number if a tenth of them was disturbed. Noise has one direction here, and the mean follows it.",
)

# %% [markdown]
# ## Total and self
#
# Now to where the time goes. `torch.profiler` writes down each operator: when it began and when it ended. What you get first is a table, and it has two columns that everybody confuses. **Predict.** MiniGPT has 13 linear layers. Of the time that `aten::linear` takes *in all*, how much does it spend on work of its own?

# %%
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
    step(x, y)

ranked = sorted(profiled.key_averages(), key=lambda row: -row.cpu_time_total)
asked = [row for row in ranked[12:] if row.key in ("aten::linear", "aten::addmm")]
print("                         calls    total       self")
for row in [*ranked[:12], *asked]:  # by total, and in any case the two that we speak of
    name = row.key.replace("autograd::engine::evaluate_function", "engine")[:26]
    print(
        f"{name:26}{row.count:4} {row.cpu_time_total / 1e3:6.1f} ms "
        f"{row.self_cpu_time_total / 1e3:7.1f} ms"
    )

# %% [markdown]
# *Total* is from start to end, whatever ran inside. *Self* is total less the time of what was called from it directly. `aten::linear` is a composite, as you saw in [phase 04](04_dispatcher.ipynb#cell-id=composites): it calls `aten::addmm` and has next to nothing to do itself. Whoever sorts by total gets the callers, and a list in which the same millisecond stands four times. Self adds up; total does not. (`print(profiled.key_averages().table(sort_by="self_cpu_time_total"))` gives all columns, on very long lines.)
#
# The same profile as a picture, time from left to right, each call below its caller. The strips at the feet show total, and live a tick at *self time* leaves only what is each one's own. **Predict.** Before you tick it: whose strips will vanish?

# %%
from utils.instruments.traces import of_profile
from utils.views import flame_chart

events = of_profile(profiled)
flame_chart(events)

# %% [markdown]
# Those of the whole upper row, nearly: there are the callers. What is left are the products, `mm` in the backward and `addmm` in the forward, two or three functions that walk over the logits, and the optimizer. There are 2,500 events in one step of a small model.
#
# By shapes it is still clearer. (`record_shapes=True` is for that.)

# %%
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
    for _ in range(8):
        step(x, y)
by_shape = sorted(
    profiled.key_averages(group_by_input_shape=True), key=lambda row: -row.self_cpu_time_total
)
for row in by_shape[:6]:
    shapes = " ".join(str(tuple(shape)) for shape in row.input_shapes if shape)
    print(f"{row.self_cpu_time_total / 8e3:5.1f} ms  {row.count // 8:3} ×  {row.key:28} {shapes}")
words = sum(
    row.self_cpu_time_total for row in by_shape if any(600 in shape for shape in row.input_shapes)
)
print(
    "with a 600 among their shapes: "
    f"{words / sum(row.self_cpu_time_total for row in by_shape):.0%} of all self time"
)

# %% [markdown]
# (The mean of eight steps.) 1,024 words times 600: the LM head, and the loss behind it, are a good part of the step, though the head is one of 13 linear layers. A vocabulary is wide even in a small model.
#
# One trap with total. **Predict.** A function that calls itself, five deep, each level with a product of its own. The whole takes T. What is the total of its name?

# %%
def countdown(level):
    with record_function("countdown"):
        torch.ones(300, 300) @ torch.ones(300, 300)
        if level > 1:
            countdown(level - 1)


countdown(5)  # warm
with profile(activities=[ProfilerActivity.CPU]) as nested:
    countdown(5)
(row,) = [row for row in nested.key_averages() if row.key == "countdown"]
whole = max(event.end for event in of_profile(nested)) - min(
    event.start for event in of_profile(nested)
)
print(
    f"took {whole / 1e6:.1f} ms; the table's total for {row.count} calls: "
    f"{row.cpu_time_total / 1e3:.1f} ms"
)

# %% [markdown]
# Far more than there was: the innermost call lies in all five. A total that means something counts an event only if no event of the same name is around it. In the lab you compute both columns from a list of events.

# %% tags=["hide-input"]
number(
    "A lasts from 0 to 100. Inside it B lasts from 10 to 60, and inside B there are C from 20 to 30 and C from 40 to 55. What is B's self time?", 25,
    why="50, less 10 and 15 for the two C.",
    wrong={50: "That is B's total.", 75: "That is what A has without C; A's children are only B.", 40: "C ran twice inside B."},
)

# %% tags=["hide-input"]
choice(
    "`step` has a total of 30 ms and a self time of 12 ms. It is a `record_function` around a whole training step. What are the 12 ms?",
    {
        "Operators that the profiler doesn't know": "All of them are noted, whoever registered them.",
        "Python, and whatever isn't an operator": "Between two operators the interpreter runs: your loop, the modules' `__call__`, the tokenizer. The profiler sees it only as what is left over in the range around it.",
        "The profiler's own cost": "A part of it, perhaps. It sits mostly in the operators, which begin later and end later.",
    },
    answer="Python, and whatever isn't an operator",
)

# %% [markdown]
# ## A trace, and what looking costs
#
# A profile of a whole training would be gigabytes. One wants a few steps out of the middle, warm ones. That is what a *schedule* is for: a function from the step's number to what the profiler is to do.
#
# **Predict.** `wait=1, warmup=1, active=2, repeat=2`: which of ten steps are recorded?

# %%
plan = schedule(wait=1, warmup=1, active=2, repeat=2)
print(*(f"{number}: {plan(number).name}" for number in range(10)), sep="\n")

# %% [markdown]
# In WARMUP it gets ready and keeps nothing: its own beginning disturbs, too, and so falls into a step that nobody looks at. With RECORD_AND_SAVE a cycle ends, and `on_trace_ready` gets it. How does the profiler know where a step ends? You tell it, with `prof.step()`. **Predict.** And if one forgets?

# %%
def watch(tell_it):
    cycles = []
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=plan,
        on_trace_ready=lambda prof: cycles.append(len(of_profile(prof))),
    ) as prof:
        for _ in range(10):
            loss_of(model, x[:2], y[:2])
            if tell_it:
                prof.step()
    return cycles


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that each cycle begins anew
    print("events of each cycle:", watch(True))
    print("without prof.step(): ", watch(False))

# %% [markdown]
# Nothing: it waits for ever in step 0, and says so nowhere.
#
# Now a table of steps in place of one of everything. Here is a step with a flaw that many have: the first time it is called it builds something and keeps it, here the inverse of a large matrix. Then it counts a little in Python, and computes a logarithm. **Predict.** Which names stand at the top, by self time: of its first two calls, and of two calls after one that warms up?

# %%
class Lazy:
    kept = None

    def __call__(self):
        if self.kept is None:
            self.kept = torch.linalg.inv(torch.randn(1000, 1000))
        sum(range(1_500_000))
        return self.kept.abs().log()


def top_rows(prof):
    for row in sorted(prof.key_averages(), key=lambda row: -row.self_cpu_time_total)[:3]:
        print(
            f"{row.self_cpu_time_total / 1e3:7.1f} ms {row.count:3} ×  {row.key:20}",
            "a label" if row.is_user_annotation else "",
        )
    print()

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that a schedule has no warm-up
    for warmup in (0, 1):
        lazy, cycle = Lazy(), schedule(wait=0, warmup=warmup, active=2, repeat=1)
        with profile(
            activities=[ProfilerActivity.CPU], schedule=cycle, on_trace_ready=top_rows
        ) as prof:
            for _ in range(warmup + 2):
                lazy()
                prof.step()

# %% [markdown]
# Without a warm-up one would go and look for a faster inverse, which the training never meets again. With it `aten::log` is the operator that takes longest. Above it stands `ProfilerStep*`, and that is no operator. It is a *label*, `is_user_annotation` in the row, which the profiler puts around each step by itself, as `record_function` does for whatever you name; its self time is all that isn't an operator, and so mostly Python. Whoever takes the first row of the table for the slowest operator will look for `ProfilerStep*` in PyTorch's sources. (And the numbers are those of both steps together: by a step it is half.)
#
# One more thing about cycles. **Predict.** The same with and without `repeat=1`, read not by `on_trace_ready` but after the `with`. What is in the table?

# %%
for words, repeat in {"with repeat=1": {"repeat": 1}, "without it": {}}.items():
    cycle = schedule(wait=0, warmup=1, active=2, **repeat)
    with profile(activities=[ProfilerActivity.CPU], schedule=cycle) as prof:
        for _ in range(3):
            loss_of(model, x[:2], y[:2])
            prof.step()
    print(f"{words:14} {len(prof.key_averages())} names")

# %% [markdown]
# Nothing, without it. When two steps were recorded, the profiler began the next cycle, threw away what it had, and you have asked in the middle of its next warm-up. (With `wait=1` it would have idled first, and kept the last cycle until then.) In a long training that is what one wants, with an `on_trace_ready` that takes each cycle away; for a single look say `repeat=1`.
#
# Ranges of your own make a trace readable. `record_function("…")` puts a name around whatever runs inside. (A module's name doesn't stand in a trace unless you put it there.)

# %%
import tempfile
from pathlib import Path


def marked_step(x, y):
    with record_function("forward"):
        loss = loss_of(model, x, y)
    with record_function("backward"):
        optimizer.zero_grad()
        loss.backward()
    with record_function("optimizer"):
        optimizer.step()


with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
    marked_step(x, y)
file = Path(tempfile.mkdtemp()) / "step.json"
profiled.export_chrome_trace(str(file))
print(f"{file.stat().st_size / 1e6:.1f} MB")

# %% [markdown]
# That file is a *Chrome trace*, JSON that a page draws: put it into [ui.perfetto.dev](https://ui.perfetto.dev), which reads it in your browser and sends it nowhere, or into Chrome's own chrome://tracing. Every profiler writes this format or can be brought to. What does an event need, so that it can be drawn?

# %%
import json

trace = json.loads(file.read_text())["traceEvents"]
spans = [event for event in trace if event.get("ph") == "X" and event["name"].startswith("aten::")]
print(
    len(spans),
    "of them, such as",
    {key: spans[20][key] for key in ("name", "ph", "ts", "dur", "pid", "tid")},
)

# %% [markdown]
# A name, a start `ts` and a length `dur` in microseconds, and a lane, process and thread. `"ph": "X"` means a complete event. Who calls whom isn't written down: it is *read off* the times, as in the picture above. `utils.instruments.traces` reads such a file into plain `Event`s, with whole nanoseconds, and those are what the lab works on.
#
# Looking isn't free. **Predict.** How much slower is a step under the profiler, under the profiler with shapes, stacks and memory, under `detect_anomaly`, of which more below? Order them.

# %%
import contextlib

CPU = [ProfilerActivity.CPU]
looks = {
    "profiler": lambda: profile(activities=CPU),
    "profiler, all of it": lambda: profile(
        activities=CPU, record_shapes=True, with_stack=True, profile_memory=True
    ),
    "detect_anomaly": torch.autograd.detect_anomaly,
}


def cpu_seconds(look):
    began = time.process_time()
    with look():
        step(x, y)
    return time.process_time() - began

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for name, look in looks.items():
        ratios = sorted(cpu_seconds(look) / cpu_seconds(contextlib.nullcontext) for _ in range(9))
        print(
            f"{name:20} {ratios[4]:.1f} times as long (middle half {ratios[2]:.1f} to "
            f"{ratios[6]:.1f})"
        )

# %% [markdown]
# (Starting and stopping are counted in.) What is paid is paid for each operator, by the piece, so that a profile makes small operators look worse than they are. It is for finding out *where*. For *how much faster* take the profiler away, and measure.

# %% tags=["hide-input"]
number(
    "`schedule(wait=2, warmup=1, active=3, repeat=1)`, and a `prof.step()` after each step. Steps are counted from 0. What is the number of the last step that is recorded?", 5,
    why="0 and 1 wait, 2 warms up, 3, 4 and 5 are recorded.",
    wrong={6: "Counted from 1 it is the sixth; its number is 5.", 3: "That is the first of them.", 2: "Step 2 is the warm-up, which is thrown away."},
)

# %% [markdown]
# ## Two clocks
#
# A GPU is another computer. Your Python, on the *host*, does not add or multiply there: it puts orders into a queue and goes on. The *device* takes them out, one after the other, in its own time. Whoever looks at the host's clock sees how long it takes to give orders.
#
# No GPU is needed to see it. One can stand in for it: a thread with a queue, `Device` of `utils/instruments/profiling_examples.py`. `launch` puts an order into the queue; `item` asks for a number of the last result. **Predict.** Three products are launched, then one number is asked for. What does the host's clock say of each line?

# %%
device, big = Device(), torch.randn(1000, 1000)
device.launch(torch.matmul, big, big)
device.item()  # warm
for line in ("launch", "launch", "launch", "item"):
    began = time.perf_counter()
    device.launch(torch.matmul, big, big) if line == "launch" else device.item()
    print(f"{line:7} {1e3 * (time.perf_counter() - began):7.2f} ms")

# %% [markdown]
# Three products for nothing, and `item` costs all! This table has sent people hunting for a faster `item`, and has sold many a kernel as a thousand times faster than it was. The time is right, the *blame* is wrong: `item` waits, for what others have ordered.
#
# So, to measure something on a device: wait until it is idle, start the clock, give the orders, **wait again**, stop the clock. `torch.accelerator.synchronize()` waits, on any kind of device, and `Timer` does all that for you.
#
# That is how the course's record of a real one was made. It is of another machine than yours, and of another version of PyTorch; the first line below says which. **Predict.** A product of two float32 matrices, at five widths from 64 to 8,192. The last is 128 times as wide as the first and has two million times as many multiplications. How much longer does it take to *order* it, until Python has the next line? And until it is *done*?

# %%
from utils.instruments import records

gpu = records.load("nvidia-h100-80gb-hbm3")
peak = gpu.provenance["gpu"]["peak float32 FLOP/s"]
print(
    f"{gpu.gpu}, torch {gpu.provenance['torch']}, {gpu.provenance['date'][:10]}; at most "
    f"{peak / 1e12:.0f} TFLOP/s in float32"
)
print("width   ordered        done   TFLOP/s by the first   by the second")
for row in gpu.result("clocks")["products"]:
    rates = [2 * row["width"] ** 3 / row[until] / 1e12 for until in ("ordered", "done")]
    print(
        f"{row['width']:5} {1e6 * row['ordered']:6.0f} µs {1e6 * row['done']:8,.0f} µs "
        f"{rates[0]:16,.2f} {rates[1]:15.2f}"
    )

# %% [markdown]
# (Medians of nine.) Some 20 µs to order it, whatever its size; who looks only at the host's clock has found a GPU with seven hundred times the arithmetic of the one that was there. And *done* has a floor: a product of width 256 has 64 times the work of the one above it and takes no longer, since 27 µs is what it takes to order anything at all, start it and wait for it.
#
# Next a trace with both sides. It is *drawn*, so that you see the pattern and nothing else (in *Five brakes* come two that were recorded): a small program in `utils.instruments.traces` plays host and queue, with durations and noise such as a present GPU has. Nothing in it was measured. Three rows for the host: ranges, operators in them, and calls of CUDA in those. Below, the device's streams: kernels are blue, copies purple. On the host, waiting is red, launching amber, and the loader green. A line leads from a launch to what it launched. **Predict.** Read the picture before you read on: where does the host wait, and for what?

# %%
from utils.instruments.traces import drawn
from utils.views import two_lanes

two_lanes({"a healthy step (drawn)": drawn("compute", 1, steps=1, covered="nothing")}, at=60)

# %% [markdown]
# The host is far ahead. It has given all its orders in less than a fifth of the time and then, since the program wants to print the loss, it waits in `cudaStreamSynchronize` until the queue is empty. The device works without a gap, and so this is as it should be: **a step is as fast as its device, as long as the queue never runs dry.** The long red bar costs nothing; take it away, and the step takes as long.
#
# Three quantities to look for in such a trace. How *busy* is the device, of the time that the step takes? How long is its longest *gap*? And how long is it from a launch to the start of its kernel: with a full queue long, and that is good; some microseconds where the device stood idle and waited for the order, and that is bad.

# %% tags=["hide-input"]
choice(
    "Somebody times a kernel with two calls of `perf_counter` around it, and no waiting: 11 µs. For a matrix twice as wide it is 11 µs again. What was measured?",
    {
        "A kernel that is limited by memory": "Four times as many bytes would take four times as long.",
        "The launch": "To give an order takes as long for a large matrix as for a small one. A time that doesn't depend on the size is the sign of it.",
        "The resolution of the clock": "`perf_counter` can tell less than a microsecond apart.",
    },
    answer="The launch",
)

# %% tags=["hide-input"]
true_false(
    "In a trace, `cudaStreamSynchronize` takes 70 % of the host's time. So taking out the synchronisation makes the step about three times as fast.", False,
    "Only if the device stands idle because of it. In the healthy step above the host waits for four fifths of the time, and the device works all along. Ask what the *device* does meanwhile.",
)

# %% [markdown]
# ## Memory over time
#
# A profile with `profile_memory=True` notes each time that memory is fetched or given back. Summed up from the left, that is a curve. Here it is for the marked step of above. **Predict.** Where is the peak, in the forward, in the backward or in the optimizer? And who holds most of it?

# %%
from utils.instruments.traces import allocations_of_profile
from utils.views import memory_timeline

with profile(activities=CPU, profile_memory=True) as profiled:
    marked_step(x, y)
allocations = allocations_of_profile(profiled)
memory_timeline(of_profile(profiled), allocations)

# %% [markdown]
# It climbs through the forward, since autograd keeps what the backward will need, and falls through the backward, as each node gives its share away. The peak is just after the turn, when nothing has been given back yet and the first gradients are there. And who is alive there? The logits' children: `_log_softmax`, and two gradients of the same size, 1,024 rows of 600. In a model with 150,000 words this moment decides whether the batch fits.
#
# What was there before the step, weights and AdamW's two numbers, isn't in the curve, which begins at 0. So a record can give back more than it took. And a block has no name, only an address:

# %%
addresses = [allocation.address for allocation in allocations if allocation.bytes > 0]
print(f"{len(addresses)} blocks were handed out, at {len(set(addresses))} addresses")
known = set(addresses)
before = [a for a in allocations if a.bytes < 0 and a.address not in known]
print("given back, though never handed out in this record:", len(before))

# %% [markdown]
# An address is used again as soon as it is free. So a block is an address *from one moment to another*, and whoever keeps books has to go through the list in order, prepared for the return of something that he never saw leave. **Predict.** Who is alive at the peak? How many bytes have the five largest blocks there, and which tensors are they?

# %%
def peak(allocations):
    """The most bytes that were alive at once, and who was alive then: bytes by address."""
    alive, most, then = {}, 0, {}
    for block in allocations:
        if block.bytes < 0:
            alive.pop(block.address, None)  # None: it was there before the record began
        else:
            alive[block.address] = block.bytes
            if sum(alive.values()) > most:  # not >=, so that it is the first such moment
                most, then = sum(alive.values()), dict(alive)
    return most, then


most, then = peak(allocations)
print(
    f"at most {most:,} bytes, in {len(then)} blocks; the largest:",
    sorted(then.values(), reverse=True)[:5],
)

# %% [markdown]
# Of 2,457,600 bytes there are several: 1,024 · 600 float32 numbers, as the curve said. Then come the hidden layers of the MLPs, 1,024 × 256. A running sum that takes off whatever comes back would be too low from the first block on that had been there before; and a list of addresses without moments would hold most of them several times.
#
# A peak that grows from step to step is the other case. **Predict.** Four steps, and a list for the losses. What is held at the end, with each of these three?

# %%
keeps = {
    "loss": lambda loss: loss,
    "loss.detach()": lambda loss: loss.detach(),
    "loss.item()": lambda loss: loss.item(),
}
for name, keep in keeps.items():
    with profile(activities=CPU, profile_memory=True) as profiled:
        history = [keep(loss_of(model, x, y)) for _ in range(4)]
    held = sum(allocation.bytes for allocation in allocations_of_profile(profiled))
    print(f"history of {name:14} {held / 2**20:6.2f} MiB")
    del history

# %% [markdown]
# A loss holds its graph, and the graph holds all that was saved for the backward: twelve MiB for each number in the list. (After a `backward` much of that is freed, but in a *validation* without `no_grad` there is none.) `detach` holds four bytes, `item` a Python number; and `item` waits, on a GPU, where `detach` doesn't.
#
# On a GPU, PyTorch's own *caching allocator* asks the driver for large pieces and keeps them. So there are three figures: `torch.cuda.memory_allocated`, what tensors hold; `memory_reserved`, what the allocator has taken from the driver, which is more; and what `nvidia-smi` shows, which is more again. `torch.cuda.memory._record_memory_history()` and `_dump_snapshot` write a record with the Python line of each block, and pytorch.org/memory_viz draws it. (Not run here: it needs a GPU.)

# %% tags=["hide-input"]
number(
    "In order: 100 bytes at A, 50 at B, A is given back, 80 at A, B is given back, 30 at C. What is the peak?", 150,
    unit="bytes",
    why="100, 150, 50, 130, 80, 110.",
    wrong={260: "That is everything ever handed out. A was free in between.", 130: "The peak was earlier, with the first A and B.", 180: "The old A was gone when the new one came."},
)

# %% [markdown]
# ## Five brakes
#
# Slow training steps are slow in few ways. There are five that you will meet again and again:
#
# - the **loader**: the next batch isn't ready;
# - **Python**: between two operators the interpreter does something long;
# - a **hidden wait**: the program asks for a number, often, and each time the queue must run dry;
# - a needless **copy**: bytes go to and fro, from host to device above all, and everybody waits for them;
# - small **launches**: kernels so short that it takes longer to order them than to run them.
#
# And there is the sixth case, in which nothing is wrong: the device computes.
#
# Here are six drawn traces, one of each, in no order. **Predict.** Live, choose each with the slider, and name it before you read on. On paper you see A: which of the six is it?

# %%
KINDS_HERE = dict(zip("ABCDEF", ("sync", "copy", "python", "compute", "loader", "launches")))
drawn_traces = {letter: drawn(kind, seed=3, steps=1) for letter, kind in KINDS_HERE.items()}
two_lanes(drawn_traces, trace="A", at=90)

# %% [markdown]
# A is the hidden wait: after each operator a red bar, and in the stream one kernel at a time with a gap behind it. In B one copy, "Pageable → Device", takes up nearly all of the step, and kernels come at the very end. In C the device idles, and the host's rows are nearly empty as well: what happens there, no operator tells, and no call. That is Python. D is healthy. E begins with a green bar that is far longer than all the rest: the loader. F is dense on the host's side, operator upon operator without a pause, and every kernel is thinner than its launch.
#
# Could one tell them by adding up what the names say? **Predict.** In which of the six is the sum of all waiting, `cudaStreamSynchronize`, the largest part of the step?

# %%
def share(events, word):
    """The part of a trace's time that events take with `word` in their name."""
    length = max(event.end for event in events) - min(event.start for event in events)
    return sum(event.duration for event in events if word in event.name) / length


print("     loader  waiting  copies  kernels")
for letter, events in drawn_traces.items():
    kernels = [event for event in events if event.kind == "kernel"]
    typical = statistics.median(event.duration for event in kernels)
    parts = (share(events, "DataLoader"), share(events, "Synchronize"), share(events, "Memcpy"))
    print(
        f"{letter}   ",
        *(f"{part:8.0%}" for part in parts),
        f"{len(kernels):5} of {typical / 1e3:.1f} µs",
    )

# %% [markdown]
# In D, the healthy one, and in B the host waits for nine tenths of the time; in A, whose illness it is, for half. A sum over names doesn't know what went on *at the same time*. So ask another question, moment by moment: is a kernel running? Then all is well, whatever the host does. If not, is a copy running? If not either, the device idles, and then: *what is the host doing?* (After a wait there is more to it. The queue ran dry *because* the host stood still, and until it has given the next order the gap is the wait's fault; so one looks at what the host did when the device fell idle.) Each moment of the step gets one of six words in this way, and the word that gets most is the brake. You write that in the lab.
#
# In these pictures one thing is always much larger than the rest. In a real trace there are often two or three, and when you have mended one the next appears.
#
# Two real ones are in the record: a training step of MiniGPT on two lines, and one of four layers that are 4,096 wide, in bfloat16, on 8,192 rows. Both ask for their loss at the end. (Two steps of each were recorded. These are the second ones; the profiler's own start is in the first.) **Predict.** For each: how much of the step is the H100 busy, how long is a typical kernel, and how long is it from a launch to the start of what it launched? Which of the six words does each get?

# %%
from utils.instruments.traces import of_chrome_trace
from utils.views.two_lanes import busy

recorded, traces = {}, gpu.result("trace")
for name, trace in {"MiniGPT": traces, "wide layers": traces["large layers"]}.items():
    events = of_chrome_trace(gpu.folder / trace["file"])
    last = [event for event in events if event.name == "step"][-1]
    found = [event for event in events if last.start < event.start < last.end]
    recorded[f"{name}, recorded"] = found
    kernels = [event for event in found if event.kind == "kernel"]
    calls = {event.correlation: event.start for event in found if event.kind == "call"}
    typical = statistics.median(event.duration for event in kernels) / 1e3
    late = statistics.median(event.start - calls[event.correlation] for event in kernels) / 1e3
    share = busy(kernels) / last.duration
    print(f"{name}, recorded: {last.duration / 1e6:.1f} ms, the device busy for {share:.0%}")
    print(f"    {len(kernels)} kernels of {typical:.1f} µs, {late:,.0f} µs after their launch")
two_lanes(recorded, trace="MiniGPT, recorded", at=90)

# %% [markdown]
# MiniGPT's is F, small launches. One of the fastest devices there are stands idle for more than nine tenths of the step. Whatever is ordered runs at once and is over at once, in less time than a launch takes. (`host 2` is the thread in which autograd does the backward of what lies on a device. And a good part of these milliseconds is the profiler's, which is paid for each operator; without it, below, a step is shorter.) The wide layers are D: the host is done with its orders half-way through and waits for the loss, the queue is so full that a kernel stands in it for milliseconds, and between two kernels hardly anything is lost. The same card, the same PyTorch, the same loop. The `bottleneck` that you write in the lab gives both of them the right word; put them to it.
#
# On a CPU the same brakes look otherwise: there is only one lane, and every operator waits for itself. **Predict.** Three ways to lose time, on this machine: a dataset that is slow to give its items, a loop over rows, a needless conversion to float64. What will be at the top of a table, by self time?

# %%
from torch.utils.data import DataLoader

from utils.instruments.profiling_examples import by_self


class Slow(list):
    def __getitem__(self, k):
        time.sleep(0.001)  # a disk, say
        return super().__getitem__(k)


loader = DataLoader(Slow(inputs[:64]), batch_size=32)
slow_ways = {
    "loader": lambda: model(next(iter(loader))),
    "row loop": lambda: [row.softmax(-1).max() for row in logits.flatten(0, 1)],
    "float64": lambda: logits.double().softmax(-1).float(),
}

# %%
with torch.no_grad():
    logits = model(x)
for name, function in slow_ways.items():
    with torch.no_grad(), profile(activities=CPU) as profiled:
        function()
    print(
        f"{name:9}",
        "; ".join(
            f"{row.name[-34:]} {row.ms:.1f} ms ({row.calls} ×)" for row in by_self(profiled)[:3]
        ),
    )

# %% [markdown]
# The loader has an entry of its own, and its self time is what isn't an operator in it: the disk. The loop shows in the column of *counts*: 1,024 calls of what should be called once. The conversion shows as `copy_`, once for the way there and once for the way back, and as a softmax on twice the bytes.

# %% tags=["hide-input"]
choice(
    "A trace: the device is busy 12 % of the time. The host is in operators 95 % of the time, one after the other; each kernel runs for 2 µs. Which brake?",
    {
        "Python": "Then the host's rows would be empty between the operators.",
        "small launches": "The host does nothing but give orders, and each is done before the next one comes. Make them fewer and larger.",
        "a hidden wait": "Then there would be calls that wait, and the host would be in *those*.",
    },
    answer="small launches",
)

# %% [markdown]
# ## A resting place
#
# Here the first sitting ends: you can find what is slow. With what you have read you can solve exercises 1 to 4 of [the lab](../release/09_profiling/09_profiling.ipynb), 16 of its 42 points: a profile of your own, total and self, the two lanes, and the brake. Exercise 5 needs the next section, 6 to 9 those behind it, and 10, a question in words, is best left to the end.

# %% [markdown] tags=["needs-kernel"]
# When you come back, run the cells above again (*Run → Run All Above Selected Cell*, a minute or two), for what follows goes on with the same model and the same batch.

# %% [markdown]
# ## Fewer, larger, later
#
# All five have the same three remedies. *Fewer*: one operator on the whole batch in place of one for each row. *Larger*: many small tensors treated together. *Later*: a number that is printed is asked for when it is printed, and not in every step; a batch is fetched while the last one is computed.
#
# First fewer. Somebody wants to know how often the model's first choice is right, and writes what one would say.

# %%
def hits_by_row(logits, y):
    """The share of places at which the likeliest word is the right one."""
    right, asked = 0, 0
    for row, target in zip(logits.flatten(0, 1), y.flatten()):
        if target.item() != -100:
            asked += 1
            right += (row.argmax() == target).item()
    return right / asked


def hits(logits, y):
    counted = y != -100
    return ((logits.argmax(-1) == y) & counted).sum() / counted.sum()


print(hits_by_row(logits, y), hits(logits, y))

# %% [markdown]
# **Predict.** How do the operators of either grow with the number of lines? How many numbers does Python ask for? And which of them makes more bytes?

# %%
from utils.views import step_counts


def lines(n):
    return logits[:n], y[:n]


step_counts({"row by row": hits_by_row, "at once": hits}, lines, [1, 2, 4, 8, 16, 32], size=8)

# %% [markdown]
# Move the size: the first grows with it, the second stands still. That is the proof that a loop over rows has gone, and it needs no clock. A *number asked for* is a call of `_local_scalar_dense`, which is what becomes of `item()`, `float()`, `if tensor:`, and of printing. On a CPU it costs a microsecond. On a GPU each of them is a hidden wait, and you have seen trace A.
#
# There is a trick to find hidden waits without counting: on the device `meta` tensors have shapes and no numbers. **Predict.** What do both functions do there?

# %%
for function in (hits_by_row, hits):
    try:
        print(f"{function.__name__:12}", function(logits.to("meta"), y.to("meta")))
    except RuntimeError as error:
        print(f"{function.__name__:12} {error}")

# %% [markdown]
# Who asks for a number can't go on; who doesn't goes through, and even gets the result's shape.
#
# On a GPU there is a mode that tells, `torch.cuda.set_sync_debug_mode("warn")`, and the record has what it said of the calls below. `x` lies on the device, `n` as well, a tensor of integers; `h` lies in the host's ordinary memory and `p` in memory that is pinned, of which more in a moment. **Predict.** Which of them make the host wait?

# %%
waits = gpu.result("messages")["waits"]
print(*waits, sep="\n")

# %% [markdown]
# When you have judged each of them:

# %%
print("make the host wait:", *(f"    {call}" for call, waited in waits.items() if waited), sep="\n")
print("don't:", *(f"    {call}" for call, waited in waits.items() if not waited), sep="\n")

# %% [markdown]
# A shape is known without a number, so `print(x.shape)` costs nothing; and `x[5]` is only another view. But `x[x > 0.5]`, `nonzero`, `unique` and `repeat_interleave` have as many rows as the *values* say, and until the device has counted, Python can't even give the result a shape; `where` keeps every place and needs no count. `one_hot(n)` must look for the largest class, and told how many there are it needn't. `clip_grad_norm_` clips with a tensor, and with `error_if_nonfinite` it asks an `if`. And `torch.tensor(1.0, device="cuda")`, which looks so innocent, makes a tensor on the host and carries it over, where with `torch.full` the number goes along with the launch.
#
# The second function gives a tensor back and not a number. That is "later": whoever prints it may wait for it. And now the clock, in turn, for the ratio.

# %%
slow, fast = [], []
for _ in range(15):
    slow.append(seconds(hits_by_row, logits, y))
    fast.append(seconds(hits, logits, y))
ratios = sorted(a / b for a, b in zip(slow, fast))
print(f"{ratios[7]:.0f} times as fast (middle half {ratios[3]:.0f} to {ratios[11]:.0f})")

# %% [markdown]
# Look at the bytes again: *at once* makes more of them. Three KiB are no matter, but a broadcast that puts a table of gigabytes in place of a loop is one. So count both.
#
# Then larger. AdamW has 38 tensors of weights to treat, most of them tiny. You met its three forms in [phase 07](07_training.ipynb#cell-id=what-the-optimizer-remembers). **Predict.** How many operators does one `step` of each take?

# %%
for form in ({"foreach": False}, {"foreach": True}, {"fused": True}):
    other = torch.optim.AdamW(model.parameters(), **form)
    other.step()
    found = counts(other.step)
    print(f"{form}: {found.calls} operators, {found.asked} numbers asked for")

# %% [markdown]
# A loop of ten or so for each tensor; one for all tensors at a time; and one kernel for everything. On a GPU, where each is a launch of some microseconds, it is the first thing to look at in a small model. And see the last column: the step count is kept as a *tensor* for each weight, and to compute with it Python asks for its value. (On a GPU these would be no waits: without `fused` and `capturable`, the optimizer keeps the counts in the host's memory, for this very reason.)
#
# Larger still is a whole model as one launch. `torch.compile` fuses operators into fewer kernels ([phase 06](06_compile.ipynb#cell-id=fusion-and-the-code)); with `mode="reduce-overhead"` it replays those of the forward, and those of the backward, as a *CUDA graph*: a list of launches that was recorded once and is given as one order. By hand (`torch.cuda.graph`) one can record the whole step, optimizer and all.
#
# **Predict.** MiniGPT's training step on 16 lines of 18 words takes one core of a CPU some 50 ms. How long does it take the H100? Then order the four other ways by their time: the optimizer fused; that and the model compiled; compiled with "reduce-overhead"; and the whole step as one graph.

# %%
from utils.instruments.traces import recorded_step

(core,) = [event.duration for event in recorded_step().events if event.name == "step"]
print(f"one core of a CPU, under the profiler: {core / 1e6:.1f} ms")
steps, added = gpu.result("steps"), gpu.result("clocks")["launches"]
for name, way in steps["ways"].items():
    print(
        f"{name:16} ordered in {1e3 * way['ordered']:.2f} ms, done after {1e3 * way['done']:.2f} "
        f"ms; {core / way['done'] / 1e9:3.0f} times as fast"
    )
print(f"in the graph {way['kernels']} kernels and copies run for {1e3 * way['busy']:.2f} ms")
print(
    f"a small addition, a thousand of them: from Python {1e6 * added['eager']:.1f} µs, in a graph "
    f"{1e6 * added['graph']:.1f} µs"
)

# %% [markdown]
# In the first row *ordered* and *done* are one and the same number: the device is never behind, and a step takes as long as its orders. So a GPU with hundreds of times the arithmetic of that core is nine times as fast. Fused, the optimizer needs fewer orders. Compiled, the step is *no shorter*: there are fewer kernels, and still well over a hundred, each ordered by itself, from the Python that Inductor wrote; and the guards are asked before. "reduce-overhead" takes away half, and leaves what no graph holds: the optimizer, and what autograd and the compiler's own Python do in between. As one graph the step is given in 0.13 ms and done in 0.7, and for nine tenths of that kernels run. A graph makes no kernel faster; it takes the orders away.
#
# A graph wants something for it: the same shapes in the same places of memory at each replay, new batches copied to where the old ones were, and nothing in it that asks for a number.
#
# And later. What a loader does beforehand with workers (`num_workers`) costs the step nothing. Losses are kept as tensors and read every fifty steps. And a batch is sent ahead: from *pinned* memory, which the operating system may not move (`pin_memory=True`), the device fetches for itself, beside the kernels, with `.to(device, non_blocking=True)`.
#
# **Predict.** 256 MiB from host to device. How long until Python has the next line, and how long until they are there: from ordinary memory and from pinned, waited for and not? Of `h.to("cuda", non_blocking=True)`, from ordinary memory, the mode above said that it makes nobody wait.

# %%
for copy in gpu.result("clocks")["copies"]:
    memory = "pinned" if copy["pinned"] else "ordinary"
    print(
        f"{memory:9} non_blocking={copy['non_blocking']!s:5}  next line after "
        f"{1e3 * copy['returned']:6.3f} ms, there after {1e3 * copy['done']:6.3f} ms"
    )
print(" ".join(torch.cuda.set_sync_debug_mode.__doc__.split("Warning:")[1].split()))

# %% [markdown]
# 26.8 ms, and all of them on the host. From ordinary memory the driver copies through a pinned buffer of its own, and while it does, your Python stands in a call whose name is `cudaMemcpyAsync`. The mode says nothing because it notices only where *PyTorch* waits, and its documentation warns of it. Pinned, the same bytes come five times as fast, since nobody copies them twice; and only pinned *and* `non_blocking` gives the next line at once. So an instrument that finds nothing has found nothing, and two of them know more than one.
#
# In the other direction not to wait is dangerous: `x.to("cpu", non_blocking=True)` returns before the numbers are there, and whoever reads them without `synchronize` reads what lay in that memory before.

# %% tags=["hide-input"]
choice(
    "The gradient's norm is logged at each step: `sum(p.grad.norm().item() ** 2 for p in parameters) ** 0.5`, with 200 parameters, on a GPU. What is the best mend?",
    {
        "`detach()` before `norm()`": "Gradients carry no graph, and the 200 waits remain.",
        "`torch.nn.utils.get_total_norm(grads)`, and `item()` when it is printed": "A handful of operators for all tensors, one number, and no wait until somebody wants to read it.",
        "Log it on the host: `p.grad.cpu().norm()`": "That is 200 copies, each with a wait.",
    },
    answer="`torch.nn.utils.get_total_norm(grads)`, and `item()` when it is printed",
)

# %% tags=["hide-input"]
choice(
    "Of a training step the device is busy for 95 %, and its kernels run for milliseconds. Somebody captures it as one CUDA graph. What does that bring?",
    {
        "Eight times the speed, as above": "There the device stood idle for most of the step. A graph takes away what it takes to order; here that is hidden behind the kernels.",
        "A twentieth, at most": "The kernels run as long as before, and they are 95 % of the step.",
        "It gets slower": "It has as many kernels as before, or a few more, and they are hardly noticed among milliseconds.",
    },
    answer="A twentieth, at most",
)

# %% [markdown]
# ## The NaN hunt
#
# Now to what is wrong and not slow. Somebody adds to the loss the entropy of the model's guesses, −Σ p log p, so that it doesn't get too sure of itself. The words `<pad>` and `<bos>` are never to be said, so their logits are −∞.

# %%
def guesses(model, x):
    logits = model(x).flatten(0, 1)
    forbidden = torch.zeros(600, dtype=torch.bool)
    forbidden[:2] = True
    return logits.masked_fill(forbidden, -torch.inf).softmax(-1)


def entropy(p):
    return -(p * p.log()).sum(-1).mean()


model = load_minigpt()
print(entropy(guesses(model, x[:4])))

# %% [markdown]
# A NaN, in the forward. p is exactly 0 there, its logarithm −∞, and 0 · −∞ is NaN. The usual mend: take the product only where p isn't 0.
#
# **Predict.** Is it mended? Look at the value first, and then at what the optimizer will be handed.

# %%
def entropy_where(p):
    return -torch.where(p > 0, p * p.log(), 0).sum(-1).mean()


loss = entropy_where(guesses(model, x[:4]))
loss.backward()
broken = sum(not p.grad.isfinite().all() for p in model.parameters())
print(
    f"value {loss.item():.3f}; parameters with a gradient that isn't finite: {broken} of "
    f"{len(list(model.parameters()))}"
)

# %% [markdown]
# The value is right, and all gradients are lost. `where` chooses between two *values*; both have been computed. Backward, it hands a gradient of 0 to the branch that wasn't chosen, and that branch computes on: 0 times log p, 0 times −∞, NaN again. The loss looks fine, and one step later the model is gone.
#
# Who tells where? `detect_anomaly` looks at what each node of the backward returns. (`anomaly` of `utils/instruments/profiling_examples.py` runs a backward under it, and gives what it says in short.) **Predict.** Which operator will it name: `where`, `log` or the product?

# %%
from utils.instruments.profiling_examples import Messages, anomaly, tried

print(anomaly(lambda: entropy_where(guesses(model, x[:4]))))

# %% [markdown]
# The product, `MulBackward0`: the first node that *made* a NaN. And it shows the line of the forward that had made the node. (For that each operator keeps its Python stack while the mode is on, which is what makes it slow.)
#
# **Predict.** And in these three cases?

# %%
def ready():
    return torch.tensor([1.0, 0.0], requires_grad=True)


cases = {
    "a product with a NaN": lambda: (ready() * torch.tensor([1.0, torch.nan])).nansum(),
    "the logarithm of -1": lambda: (ready() - 1).log().sum(),
    "an infinite gradient": lambda: ready().sqrt().sum(),
}
for name, function in cases.items():
    print(f"{name:20}  {anomaly(function).splitlines()[0]}")

# %% [markdown]
# Only the first is noticed: there the *backward* makes a NaN (though `nansum` had hidden it from the loss). The logarithm of 0 − 1 is NaN in the forward, but its gradient, 1/x, is a number; the mode has nothing to say. An infinite gradient isn't a NaN; it becomes one a step later. So: `detect_anomaly` finds NaNs that are born in the backward. For those of the forward one hangs *hooks* on the modules. One that only notes sizes is often enough, since before something is infinite it is large.
#
# Here two numbers in an early layer of MiniGPT are spoiled. **Predict.** Through which modules will it show, and as what?

# %%
sick = load_minigpt()
with torch.no_grad():
    sick.blocks[0].mlp.up.weight[7, 3] = 1e30
    sick.blocks[0].mlp.down.weight[5, 7] = 1e30
sizes = {}
hooks = [
    module.register_forward_hook(
        lambda m, args, out, name=name: sizes.update({name: out.detach().abs().max().item()})
    )
    for name, module in sick.named_modules()
    if not list(module.children())
]
with torch.no_grad():
    sick(x[:4])
for hook in hooks:
    hook.remove()
print(*(f"{name:26} {size:9.3g}" for name, size in list(sizes.items())[:17]), sep="\n")

# %% [markdown]
# `mlp.up` is large, and finite; `mlp.down` multiplies it and overflows to ∞; the next LayerNorm subtracts a mean that is ∞ from an ∞, and from there on all is NaN. Whoever looks only at the end sees NaN everywhere; the first that isn't finite *while what went in was finite* is where to look. That the cause was one module earlier still only the sizes tell. (Take hooks off again: each stays, and each costs.)
#
# Back to the entropy. How does one mend it? The branch that isn't taken must be *computable*: choose the input first, then compute, then choose the result.

# %%
def entropy_mended(p):
    harmless = p.where(p > 0, 1.0)  # 1·log 1 is 0, and so is its share
    return -(harmless * harmless.log()).sum(-1).mean()


model.zero_grad()
loss = entropy_mended(guesses(model, x[:4]))
loss.backward()
print(
    f"value {loss.item():.3f}; all gradients finite:",
    all(p.grad.isfinite().all().item() for p in model.parameters()),
)

# %% [markdown]
# Here the result of the replaced input happens to be the right one; in general a second `where` puts it right. Clamping p at 1e-8, or adding 1e-8, makes value or gradient a little wrong. What is exact is as short.

# %% tags=["hide-input"]
choice(
    "The loss is NaN from step 812 on. `detect_anomaly`, switched on at step 811, names `LogSoftmaxBackward0`. The logits of step 812 are NaN already. What do you do first?",
    {
        "Take a safer softmax": "`log_softmax` subtracts the maximum; it is as safe as can be. It was handed NaN.",
        "Look at weights and gradients after step 811": "If the logits are NaN, then either the inputs or the weights are. The step before wrote the weights: an infinite gradient, most likely, which the mode says nothing of.",
        "Lower the learning rate": "Perhaps, once you know what happened.",
    },
    answer="Look at weights and gradients after step 811",
)

# %% [markdown]
# ## Why fp16 made it worse
#
# "It is a large model, so I call `.half()` on it, and it is half as large." The loss is the same, to three digits; the gradients are finite. Then comes one step of AdamW. **Predict.** What part of the weights is still a number?

# %%
half = MiniGPT()
half.load_state_dict(load_minigpt().state_dict())
half.half()
optimizer_half = torch.optim.AdamW(half.parameters(), lr=1e-3)
lines = inputs[:256], targets[:256]
loss_half, loss_full = loss_of(half, *lines), loss_of(load_minigpt(), *lines)
loss_half.backward()
gradient = torch.cat([p.grad.flatten() for p in half.parameters()])
print(f"loss {loss_half.item():.4f} ({loss_full.item():.4f} in float32);",
      f"gradients finite: {gradient.isfinite().all().item()}")
optimizer_half.step()
weights = torch.cat([p.detach().flatten() for p in half.parameters()])
for name, test in {"finite": torch.isfinite, "inf": torch.isinf, "nan": torch.isnan}.items():
    print(f"{name:7} {test(weights).double().mean().item():.1%}")

# %% [markdown]
# Next to none, and every check so far has passed. Go through AdamW's formula, number by number, with a small gradient such as 1e-4, in 16 bits. **Predict.** Which of these four becomes what?

# %%
g = torch.tensor(1e-4, dtype=torch.float16)
parts = {
    "g": g,
    "m = 0.1 g": 0.1 * g,
    "v = 0.001 g²": 0.001 * g * g,
    "ε": torch.tensor(1e-8, dtype=torch.float16),
}
for name, value in parts.items():
    print(f"{name:13} {value.item():.3g}")
print("m / (√v + ε):", (parts["m = 0.1 g"] / (parts["v = 0.001 g²"].sqrt() + parts["ε"])).item())
print(
    f"of all gradients 0: {(gradient == 0).double().mean():.0%}, with a square that is 0: "
    f"{(gradient * gradient == 0).double().mean():.0%}"
)

# %% [markdown]
# The square of a small number is a very small number, and float16 has nothing between 0 and 6e-8. So v is 0. ε, which is there for just that case, is 0 as well, since 1e-8 is too small. What is left is m/0, infinite; and where the gradient itself is 0, 0/0, NaN.
#
# Then plain SGD, says somebody, which has no v. With it and a learning rate of 0.001 nothing can become infinite. What part of the weights that have a gradient moves at all?

# %%
half.load_state_dict(load_minigpt().state_dict())
before = torch.cat([p.detach().flatten() for p in half.parameters()])
torch.optim.SGD(half.parameters(), lr=1e-3).step()
after = torch.cat([p.detach().flatten() for p in half.parameters()])
moved = ((before != after) & (gradient != 0)).sum() / (gradient != 0).sum()
print(f"{moved.item():.1%}")
print("1 + 0.0004 =", (torch.ones((), dtype=torch.float16) + 0.0004).item())

# %% [markdown]
# Less than one in a hundred. Between 1 and the next number of float16 there is a gap of a thousandth, and a step of less than half of it rounds to nothing. Nothing breaks; the model just doesn't learn.
#
# Three ways in which 16 bits go wrong, then, and they have names. *Underflow*: a number becomes 0. *Rounding*: it drowns in a larger one. And *overflow*: above 65,504 it is infinite. **Predict.** Which of these four is wrong in float16, and by which of the three?

# %%
ones, row = torch.ones(4096), torch.full((64,), 300.0)
tries = {
    "mean of 64 squares of 300": lambda t: row.to(t).square().mean(),
    "norm of 64 times 300": lambda t: row.to(t).norm(),
    "4,096 ones, one after the other": lambda t: ones.to(t).cumsum(0)[-1],
    "2,048 + 1": lambda t: torch.tensor(2048.0, dtype=t) + 1,
}
for name, function in tries.items():
    print(f"{name:32} {function(torch.float32).item():8.0f} {function(torch.float16).item():8.0f}")

# %% [markdown]
# The squares overflow before the mean can make them smaller: 90,000 is too much, though the mean's root would have fitted. `norm` has the same squares inside and is right, since it sums in float32 and rounds at the end; so does `cumsum` on a CPU. What PyTorch calls one operator, it computes inside with more digits; what *you* write as three has its steps rounded, one after the other.
#
# That is also how to hunt: go through the formula step by step, in float32 and in float16, and for each step ask two questions. How wrong is its result, if it is fed what the steps before made of it in 16 bits? And how wrong, if it is fed the *right* input, rounded? The first error is inherited, the second its own.

# %%
right_mean = row.square().mean()
from_right = torch.rsqrt(right_mean.half()).float() * 300
print("the mean, rounded:", right_mean.half().item(), "   rsqrt of that · 300:", from_right.item())
wide_row = torch.full((64,), 200.0)
print(
    "mean of squares of 200:",
    wide_row.half().square().mean().item(),
    "   its rsqrt · 200:",
    (torch.rsqrt(wide_row.half().square().mean()) * 200).item(),
)

# %% [markdown]
# With 300 the mean is already infinite when it comes to the root, and the root, quite rightly, gives 0; with 200 all is well. The step to mend is the square and not the root, though it is the root's result that looked wrong.
#
# And the mend for training you know from [phase 07](07_training.ipynb#cell-id=sixteen-bits): weights, gradients and the optimizer's memory stay in float32, `autocast` takes 16 bits for products alone, and a scaler keeps gradients from becoming 0. Or bfloat16, which has float32's range, and for a weight of 1 an even wider gap.

# %% tags=["hide-input"]
number(
    "float16 has 10 bits of fraction. A weight is 4.0. What is the smallest power of two that can be added and makes a difference? Give it as a decimal fraction. (A tie goes to the even neighbour.)", 0.00390625,
    tolerance=1e-9,
    why="From 4 on, numbers are 4 · 2⁻¹⁰ = 0.00390625 apart. Half of that, 0.001953125, is a tie, and goes back to 4.",
    wrong={0.001953125: "Half a gap: a tie, and it goes to the even neighbour, which is 4.", 0.0009765625: "That is the gap at 1. At 4 it is four times as wide."},
)

# %% [markdown]
# ## A gradient on trial
#
# A model that trains badly has a wrong gradient, a wrong learning rate or wrong data. The first can be ruled out in two lines, if there is a backward of your own anywhere. `gradcheck` you know from phases 02 and 05; as an instrument it needs some care, because it can lie in both directions. (`tried` returns what it returns, or its complaint.)
#
# Here is SiLU, x·σ(x), with a backward that somebody derived in a hurry. **Predict.** σ(x) + x·σ(x)(1 − σ(x)) is right. How many of five inputs will show that a factor is missing?

# %%
class SiLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s + x * s)  # something is missing


# %%
torch.manual_seed(0)
five = torch.randn(5, dtype=torch.float64, requires_grad=True)
print(tried(SiLU.apply, five))
print("at 0 alone:", tried(SiLU.apply, torch.zeros(1, dtype=torch.float64, requires_grad=True)))

# %% [markdown]
# Numerical against analytical, entry by entry: the diagonal differs, and how it differs says much. A constant factor is a forgotten 2; the transpose is a wrong product; a row of zeros is an input that was forgotten. And at 0 the wrong formula is right: **a check is as good as its inputs**. Random ones, never zeros or ones, and small, since the Jacobian has inputs × outputs.
#
# **Predict.** Now three functions that are right. Which of them does it call wrong?

# %%
print("float32:", str(tried(torch.sigmoid, five.detach().float().requires_grad_())).splitlines()[0])
print(
    "a kink: ",
    str(
        tried(torch.relu, torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True))
    ).splitlines()[0],
)
print("dice:   ", str(tried(lambda t: F.dropout(t, 0.5), five)).splitlines()[0])

# %% [markdown]
# All three. It takes differences with a step of 1e-6, and float32 has too few digits for that. At a kink there are two slopes and the difference takes the mean of them. And a function that throws dice gives two values for one input. So: float64, away from kinks, dice fixed.
#
# A whole model can be tried as well, in one direction at random for each tensor, in place of every entry: `fast_mode=True`. It takes two forward passes a tensor, and is worth it before a long run.

# %%
tiny = MiniGPT().double()
tokens = torch.randint(0, 600, (2, 6))
names, values = zip(*tiny.named_parameters())


def loss_of_weights(*weights):
    logits = torch.func.functional_call(tiny, dict(zip(names, weights)), (tokens,))
    return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


print(len(values), "tensors of weights:", tried(loss_of_weights, *values, fast_mode=True))

# %% [markdown]
# ## Twenty messages
#
# Most of the time that debugging costs is spent before one has read the message. Below are twenty, each really raised by the PyTorch that runs here, and without the line that raised it. **Predict.** For each: what is wrong, in one breath, and where do you look first? Shapes first.

# %%
linear, tall = nn.Linear(64, 600), torch.randn(2, 3)
messages = Messages(globals())

# %% tags=["hide-input"]
messages.of([
    "linear(torch.randn(4, 7, 32))",
    "torch.randn(4, 3) + torch.randn(4)",
    "tall.t().view(6)",
    "torch.stack([torch.randn(3), torch.randn(4)])",
    "F.cross_entropy(torch.randn(2, 32, 600), torch.zeros(2, 32, dtype=torch.int64))",
    "tall.permute(0, 2, 1)",
    "linear.load_state_dict({'weight': torch.zeros(600, 32), 'bais': torch.zeros(600)})",
])  # fmt: skip

# %% [markdown]
# When you have seven answers: here are the lines that raised them.

# %%
messages.causes()

# %% [markdown]
# 1: *mat1* is 28 × 32, though nothing of yours has that shape: all leading dimensions were flattened. So read the **last** number of mat1 and the **first** of mat2. And mat2 is 64 × 600 where `linear.weight` is (600, 64), transposed on its way: a message speaks of an operator's *operands*, and you have to say for yourself which dimension of which of your tensors each of the two numbers was. 2: sizes are aligned from the *right*; dimension 1 is where it fails, and (4, 1) was meant. 3: strides, as in phase 01: `reshape`, or ask why it is transposed. 4: from a loader this is always the collate: items of several lengths. 5: `cross_entropy` wants the classes in dimension 1; [2, 600] is what the target would have to be. Flatten both, or move the classes. 6 *misleads*: nothing here is sparse. Read the end: 2 dimensions, 3 given. 7 holds three messages in one: a key that is missing, one that nobody knows (it is one word, misspelt), and a shape.
#
# And a message that is gone is no mend. Two matrices (2, 3) are to be multiplied, each row of `a` by each row of `b`; `a @ b` complains of 3 and 2. **Predict.** Both of the lines below have the shape that is wanted. What is in them?

# %%
a, b = torch.tensor([[1, 0, 0], [0, 1, 0]]), torch.tensor([[1, 2, 3], [4, 5, 6]])
for name, turned in {"b.T": b.T, "b.reshape(3, 2)": b.reshape(3, 2)}.items():
    print(f"{name:16} {turned.tolist()}   a @ it: {(a @ turned).tolist()}")

# %% [markdown]
# `a` picks the first number of each row of `b`, then the second: 1 and 4, 2 and 5. `b.T` does that. `reshape` reads the numbers in their old order and cuts them anew, and nothing complains any more, ever. To change the order of dimensions there are `transpose` and `permute`; `reshape` and `flatten` are for joining neighbours, and splitting them. (Had both been 3 × 3, `a @ b` itself wouldn't have complained.)
#
# Now numbers, kinds and places.

# %% tags=["hide-input"]
messages.of([
    "model(torch.full((1, 4), 600))",
    "F.cross_entropy(torch.randn(4, 6), torch.tensor([1, 2, 3, 6]))",
    "linear(torch.randn(4, 64, dtype=torch.float64))",
    "F.cross_entropy(torch.randn(4, 6), torch.tensor([1.0, 2.0, 3.0, 4.0]))",
    "torch.arange(3).add_(0.5)",
    "torch.tensor([1, 2, 3]).mean()",
    "torch.randn(3) + torch.randn(3, device='meta')",
    "torch.empty(10**15)",
])  # fmt: skip

# %%
messages.causes()

# %% [markdown]
# 8: *self* is the embedding's table, which has 600 rows, so 599 is the last. 9: the same for the loss; 6 classes are 0 to 5. (On a GPU both look otherwise; see below.) 10: Double comes from NumPy, nearly always. 11: *Long* is int64: targets are indices. 12: in place means into the old dtype. 13: the mean of integers has no integer to be; `.float()` first. 14: two devices; the message names the one that surprised it. 15: read the number of bytes, 4·10¹⁵: a number of that size is a product of two shapes that should have been aligned, as in [phase 01](01_tensors.ipynb#cell-id=the-silent-64-64-bug)'s (64, 64) bug.
#
# Some of these look otherwise on a GPU, and the record has what was said there. First 8, an index of 600 into a table of 600 rows, in a short program (three lines stood before these). **Predict.** Which line will be blamed?

# %%
import textwrap

said = gpu.result("messages")["messages"]


def program(name):
    """The lines that raised a recorded message; three came before them."""
    for place, line in enumerate(said[name]["code"].splitlines(), 4):
        print(f"{place:5}  {line}")


def message(name, begin="  File"):
    """The end of what was printed."""
    text = said[name]["last"]
    print(
        *(textwrap.fill(line, 110) for line in text[text.index(begin) :].splitlines()), "", sep="\n"
    )


program("index too large")

# %%
print(f"{said['index too large']['lines']} lines. The first, and the last ones:\n")
print(textwrap.fill(said["index too large"]["first"], 110), "\n")
message("index too large")

# %% [markdown]
# Line 6, and the mistake is in line 5. The kernel found it out, on the device, while Python was on its way; whoever ordered something next was told. It can be a line as innocent as this one, or the next `.item()`, a hundred lines below: "might be asynchronously reported at some other API call". The many lines before it are assertions, one from each of 64 threads: the embedding is 64 wide, and each thread fetched one number of row 600. And the process is done for: after a device-side assert every call of CUDA fails, until you start anew. So run the same batch **on a CPU**, and you get number 8, with the right line; or with `CUDA_LAUNCH_BLOCKING=1`, where each launch waits.
#
# Then 14, in two forms. The first names two devices, the second also the argument that lies on the wrong one:

# %%
message("two devices", "RuntimeError")
message("index on the CPU", "RuntimeError")

# %% [markdown]
# And 15. Three messages of one and the same kind, without the lines that raised them. **Predict.** Read them figure by figure. Which of the three asks for too much at once, which has kept too much, and which has its memory in too many pieces? And is anybody else on this card?

# %%
for name in ("in pieces", "too large", "full"):
    figures = said[name]["last"].split("torch.OutOfMemoryError: ")[1]
    print(textwrap.fill(figures.split(" If reserved")[0], 110), end="\n\n")

# %% [markdown]
# When you have an answer to each:

# %%
for name in ("in pieces", "too large", "full"):
    print(f"{name}:")
    program(name)

# %% [markdown]
# The first has 8.74 GiB in tensors, and 61.15 that PyTorch has taken from the driver and nobody uses. Of 2 MiB pieces, ten to a segment, every eighth was kept: so no segment is empty, none can be given back, and nowhere lie 35 GiB side by side. That is fragmentation, and for it there is `expandable_segments`, which the end of the message (cut off here) recommends. The second is the easiest: 0 bytes held, and 128 GiB wanted of a card of 79; a shape is wrong. In the third, 76.5 GiB are held by tensors and nothing is in reserve: the program has kept them all. The 1.5 GiB are the last drop, and innocent. *Whether* it leaks it doesn't say: look at whether the peak of step 10 is that of step 2.
#
# What CUDA itself takes stands there, too: 518 MiB in the second message, where PyTorch has nothing; in the first it is what 70.39 has over 8.74 and 61.15. And yes, there is a neighbour, process 553, with 1 GiB. (It is the program that made the record.)
#
# Last, graphs. Again cause and place, in one breath.

# %% tags=["hide-input"]
def second_time():
    loss = linear(torch.randn(4, 64)).exp().sum()
    loss.backward()
    loss.backward()


def changed():
    t = torch.randn(3, requires_grad=True)
    e = t.exp()
    e += 1
    e.sum().backward()


messages.of([
    "torch.randn(3).sum().backward()",
    "linear(torch.randn(4, 64)).backward()",
    "second_time()",
    "changed()",
    "linear.weight.add_(1)",
])  # fmt: skip

# %%
messages.causes()
print("    changed():  t = …; e = t.exp(); e += 1; e.sum().backward()")

# %% [markdown]
# 16: nobody in the whole computation requires a gradient: a frozen model, a `no_grad`, a `detach` or `.item()` on the way, or integers. 17: a loss is one number; a `mean()` was forgotten. 18: mostly not a second `backward` that one has written, but something of the *last* step that lives on, such as a hidden state that wasn't detached. `retain_graph=True` silences it, and hoards memory. 19: read it as a form: which tensor (`[3]`, output of `Exp`), which version it has, which was saved. Look for `+=`, `relu_`, `x[...] =` after the forward. 20: a parameter was written to outside of `no_grad`.
#
# One habit for all: read the **last line** first, then find the lowest line of the traceback that is *yours*, and print shape, dtype and device of what stands in it. And one caution. **Predict.** These lines are as wrong as any of the twenty. What do they raise?

# %%
q, k, v = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 6, 4)
print("five keys, six values:", tuple(F.scaled_dot_product_attention(q, k, v).shape))
print("(64, 1) against (64,):", tuple((torch.randn(64, 1) - torch.randn(64)).shape))
print("an index from behind: ", torch.arange(5)[torch.tensor([-1])].tolist())

# %% [markdown]
# Nothing. Keys and values of unequal number are accepted by this version's attention on a CPU, a wrong broadcast is a right one, and an index of −1 is the last. No message is no proof.

# %% tags=["hide-input"]
choice(
    "`mat1 and mat2 shapes cannot be multiplied (128x3136 and 1568x10)`, after a flatten in a small CNN. What happened?",
    {
        "The batch is too large": "The batch is 128, the first number; no layer looks at it.",
        "The layer before gives twice as many features as the linear layer was made for": "3,136 is 2 · 1,568: twice the channels, or an image larger than planned. Read the two inner numbers.",
        "The linear layer should be turned around": "Then mat2 would be (10, 1568), and still not fit.",
    },
    answer="The layer before gives twice as many features as the linear layer was made for",
)

# %% tags=["hide-input"]
true_false(
    "“one of the variables needed for gradient computation has been modified by an inplace operation … is at version 3; expected version 2”: the tensor was written to three times, and all three are wrong.", False,
    "Its version was 2 when it was saved for the backward, so two writes came before, and are fine. The third came after.",
)

# %% [markdown]
# ## Reading nvidia-smi
#
# The first thing that one looks at on a machine with a GPU. This is the record's H100, three seconds into some work.

# %%
pages = gpu.result("nvidia_smi")
print(*pages["one program"]["page"].strip().splitlines()[1:], sep="\n")

# %% [markdown]
# **Predict.** Is this GPU well used?
#
# *GPU-Util* is the trap. By NVIDIA's own definition it is the part of the last sample period in which *one or more kernels* were running. What ran here is [phase 05](05_custom_op.ipynb#cell-id=one-program-one-row)'s softmax on a single row: one program, on one of 132 multiprocessors, and the 131 others had nothing to do. 100 % says only: the queue didn't run dry.
#
# *Pwr* is the honest one. Arithmetic needs current, and 136 of 700 watts are little more than idling. That can be said because it was looked at idle, too. **Predict.** Four looks: idle; one program; products of 64 × 64, ordered one by one; products of 8,192 × 8,192 in bfloat16. GPU-Util and power of the last two? And what will the clock of the multiprocessors, 1,980 MHz at its fastest, do in each?

# %%
print(f"{'':15}GPU-Util      power      clock   state  temperature")
for name, look in pages.items():
    util, power, _, clock, warm, state = look["figures"].values()
    print(f"{name:15}{util:>8} {power:>10} {clock:>10} {state:>7} {warm:>8} C")

# %% [markdown]
# Small products: busy for a third of the time, at the power of idling. That is MiniGPT's case in *Five brakes*: what the device waits for are orders. Large products: all of the 700 W, and now the card defends itself. To stay within them it turns its clock down by a third: it computes most when its clock is slowest. (Zeros would need less current than these random numbers do; and a rate that was taken in the first second is not that of a long run.)
#
# The rest of the page, from the top. *Driver Version* is what is installed; *CUDA Version* beside it is the newest CUDA that this driver can serve, and neither the one that is installed nor the one that your PyTorch was built with (`torch.version.cuda`). *GPU* and *Name*: the number is what `cuda:0` counts, unless `CUDA_VISIBLE_DEVICES` or another order of counting says otherwise; *Bus-Id* is the place on the PCI bus, which doesn't change with the counting. *Persistence-M*: the driver stays loaded while nobody uses the card; off, whoever comes first waits for it. *Disp.A*: whether a display is set up on it. *Fan*: N/A, as this card has none. *Compute M.*: Default lets several processes on at once, Exclusive Process only one, whose neighbours get an error. *MIG M.*: whether the card is cut into smaller ones; then *GI* and *CI* below say which piece a process has, and *GPU-Util* is N/A.
#
# The clock has no column on the page, and *Perf*, the state of the clocks from P0, the fastest, to P8, asleep, says P0 in all four. *Temp* tells how warm, and *Pwr* at its cap that the card is being slowed. *Memory-Usage* is what the processes have taken from the driver, tensors, PyTorch's cache, and half a GiB for CUDA itself; the seven GiB were there while it idled, left in the cache by what ran before, and can't tell you whether your batch would fit twice. *Volatile Uncorr. ECC* counts memory errors that couldn't be mended, since the driver was loaded: anything but 0 is a reason to have the machine looked at. Below, each process: its *PID*, its *Type* (C computes, G draws, C+G does both), and what it holds of the card's memory. In a container the list is often empty, though the memory is taken.
#
# `nvidia-smi dmon` prints a line a second, and `nvidia-smi --query-gpu=utilization.gpu,power.draw,memory.used,clocks.sm --format=csv -l 1` writes what you want to keep.

# %% tags=["hide-input"]
number(
    "One program kept one of 132 multiprocessors at work, and GPU-Util said 100 %. What would it have said if it told the part of the *machine* that works?", 0.76,
    unit="%", tolerance=0.1,
    why="1 of 132. Nsight Compute and DCGM have such figures (SM activity, occupancy); nvidia-smi's page has none.",
    wrong={100: "That is the part of the *time*.", 19.4: "That is power over its cap, 136 of 700 W, and an idle card is at 18 % already."},
)

# %% tags=["hide-input"]
choice(
    "nvidia-smi: GPU-Util jumps between 0 % and 100 % every second or two; memory is steady; power goes from 130 W to 600 W and back. What do you suspect?",
    {
        "A memory leak": "Then memory would climb.",
        "The loader: bursts of work, and waiting in between": "When there is a batch, the device computes at full power; then it is idle. A trace shows it as one long gap a step.",
        "Small launches": "Those keep power low, evenly, and never bring it to 600 W.",
    },
    answer="The loader: bursts of work, and waiting in between",
)

# %% [markdown]
# ## One step, from end to end
#
# All of it once, in the order in which one does it. This is a training step that has grown over some months. It is right, and slow.

# %%
gpt = load_minigpt().train()
adamw = torch.optim.AdamW(gpt.parameters(), lr=1e-4, foreach=False)


def grown_step(x, y):
    total, words = 0.0, 0
    for line, target in zip(x, y):  # each line's loss, by its words
        kept = target != -100
        if kept.any():
            logits = gpt(line[None])[0].double()  # "to be on the safe side"
            hot = F.one_hot(target[kept], 600)
            total = total - (logits[kept].log_softmax(-1) * hot).sum()
            words += kept.sum().item()
    loss = total / words
    adamw.zero_grad()
    loss.backward()
    norm = sum(p.grad.norm().item() ** 2 for p in gpt.parameters()) ** 0.5
    adamw.step()
    return loss.item(), norm

# %% [markdown]
# *One: a reference.* Before anything is changed, what it gives is written down: the loss, and the gradients.

# %%
def outcome(step):
    """The loss and the gradient of a step that begins at the shipped weights."""
    gpt.load_state_dict(load_minigpt().state_dict())
    loss, _ = step(x, y)
    return float(loss), torch.cat([p.grad.flatten() for p in gpt.parameters()])


reference = outcome(grown_step)
print(f"loss {reference[0]:.6f}, norm of the gradient {reference[1].norm():.4f}")

# %% [markdown]
# *Two: look.* **Predict.** There are five things to mend in it. Which of them will the table by self time show, and which only the counts?

# %%
grown_step(x, y)  # warm
with profile(activities=CPU) as profiled:
    grown_step(x, y)
table = by_self(profiled)
print(*(f"{row.share:5.0%} {row.calls:6,} ×  {row.name[-40:]}" for row in table[:9]), sep="\n")
found = counts(grown_step, x, y)
print(
    f"{found.calls:,} operators, {found.bytes / 2**20:.0f} MiB made, {found.asked} numbers asked "
    "for"
)

# %% [markdown]
# By self time the products are near the top, as they should be, and nothing sticks out. The *counts* do: MiniGPT has 13 linear layers, and `addmm` is called 32 times as often, once a line. That is the loop, and it has spread all shares so thin that no single name looks guilty. The conversions are in `copy_`, among copies that have to be. And that so many numbers are asked for shows nowhere: only the count tells, and on a GPU it might be the worst of all.
#
# *Three: name it, and reckon what it can bring.* If a part takes the share s of the time and is made k times as fast, the whole takes 1 − s + s/k of what it took. With k without end that is 1 − s: no mend of this part can make the step more than 1/(1 − s) times as fast. It is **Amdahl's law**, and it is worth a minute before a day's work.
#
# **Predict.** The products of matrices, `mm`, `addmm` and `bmm`, can't be mended: they are the model. By how much could the step become faster if all else cost nothing? And if only the optimizer cost nothing, or only the copies?

# %%
products = sum(row.share for row in table if row.name in ("aten::mm", "aten::addmm", "aten::bmm"))
print(f"products take {products:.0%}: at most {1 / products:.1f} times as fast")
parts = {row.name: row.total_share for row in table}
for name in ("Optimizer.step#AdamW.step", "aten::copy_"):
    print(
        f"{name:26} {parts[name]:4.0%}; without it {1 / (1 - parts[name]):.2f} times as fast, at "
        "most"
    )

# %% [markdown]
# Not the single names are to be mended, then, but what makes all of them so many: the loop, named by the counts.
#
# *Four: mend.* Fewer: all lines at once, and one loss for them, by `cross_entropy`, which picks the right word by its index and needs no table of zeros and ones. No float64. Larger: the optimizer's tensors together, and one norm for all. Later: loss and norm stay tensors.

# %%
adamw_quick = torch.optim.AdamW(gpt.parameters(), lr=1e-4, fused=True)


def mended_step(x, y):
    loss = loss_of(gpt, x, y)
    adamw_quick.zero_grad()
    loss.backward()
    norm = nn.utils.get_total_norm([p.grad for p in gpt.parameters()])
    adamw_quick.step()
    return loss.detach(), norm


mended = outcome(mended_step)
print(
    f"loss {mended[0]:.6f}, gradient off by "
    f"{(mended[1] - reference[1]).norm() / reference[1].norm():.0e}"
)

# %% [markdown]
# *Five: prove it*, first by counts. Move the number of lines.

# %%
step_counts(
    {"grown": grown_step, "mended": mended_step},
    lambda n: (x[:n], y[:n]),
    [2, 4, 8, 16, 32],
    size=32,
)

# %% [markdown]
# Operators that don't grow with the batch, no number asked for, and fewer bytes. Whatever machine this runs on, that is so. Then by the clock, in turn, and warm.

# %%
grown, quick = [], []
for _ in range(25):
    grown.append(seconds(grown_step, x, y))
    quick.append(seconds(mended_step, x, y))
timing_spread({"grown": grown, "mended": quick})

# %% [markdown]
# The boxes lie apart. The ratio in the title is this page's; *that* the boxes lie apart is what should repeat on yours. And it is less than the counts would have one hope for: on a CPU an operator costs a few microseconds, and the sums are the same before and after. On a GPU the same mend would weigh more, for the waits and the launches; how much, only a GPU can say, and this step isn't in the record.
#
# *Six: look again.* What is the top of the table now? And is it worth going on? For that one compares with what the machine can do. From [phase 07](07_training.ipynb#cell-id=time-on-a-napkin): a step's FLOPs are 6 · N · tokens, with N the weights that are multiplied (nearly all but the embeddings), and what part of the peak that is per second is the MFU.

# %%
with profile(activities=CPU) as profiled:
    mended_step(x, y)
print(
    *(f"{row.share:.0%} {row.name.removeprefix('aten::')}" for row in by_self(profiled)[:5]),
    sep=", ",
)

wide = torch.randn(700, 700)
matrices = sum(
    p.numel() for name, p in gpt.named_parameters() if p.dim() == 2 and "embedding" not in name
)
best = min(seconds(torch.mm, wide, wide) for _ in range(20))
peak, rate = 2 * 700**3 / best, 6 * matrices * x.numel() / statistics.median(quick)
print(f"{rate / 1e9:.0f} of {peak / 1e9:.0f} GFLOP/s: an MFU of {rate / peak:.0%}")
print(
    f"a million tokens at this pace: {1e6 / x.numel() * statistics.median(quick) / 60:.1f} minutes"
)

# %% [markdown]
# The products are at the top, or near it, where they belong, and the step runs at a good part of what this core can do. Here one stops, and looks for something else to do: a larger batch, another machine, or fewer tokens.
#
# Now you can answer the mail. She measured two batches, one of them cold, with one run each, of two functions that are the same.

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/09_profiling/09_profiling.ipynb) of this phase asks you to do it:
#
# - profile some steps, warm, and name the operator that takes longest;
# - compute total and self from a list of events, recursion included;
# - read host and device: how busy, the longest gap, and who is innocent of waiting;
# - name the brake of a trace, moment by moment;
# - mend a slow loss, and prove it by counts;
# - name the first module that makes a NaN, and write a root whose gradient is a number;
# - find the step that goes wrong in float16, and tell its own error from an inherited one;
# - read from a message which sizes met, and mend the cause and not the message;
# - write a report of a real MiniGPT step, and say in words when a gain can't be claimed.
#
# And you can answer the question. The time goes where *self* and the device's gaps say; you know it because you measured warm, in turn and often, or counted; and a mend is proved by what it no longer does.

# %% [markdown]
# ## What this phase leaves out
#
# - **A GPU's own counters**: occupancy, cache hits, tensor-core use. NVIDIA's Nsight Systems draws traces like these with every call of CUDA; Nsight Compute looks into one kernel.
# - **Sampling profilers for Python** (`py-spy`, `austin`), which show what fills the gaps between operators, without touching the program.
# - **CUDA graphs in use**: a replayed step stands in the record; how to bring batches in, several shapes and a scaler, "CUDA semantics" tells (*Sources*).
# - **Traces of several ranks.** Each process writes its own. Side by side they show who came last to a collective: there the call is short, and at all others it is long, since they waited inside of it. [Holistic Trace Analysis](https://github.com/facebookresearch/HolisticTraceAnalysis) reads them together. Phase 10 has no such traces; it draws, of simulated ranks, who waits for whom, and reckons what a collective takes.
# - **Debuggers**: `breakpoint()`, and in a notebook `%debug` after an exception, which takes you to the line with all its tensors.

# %% [markdown]
# ## Sources
#
# - PyTorch's documentation: [`torch.profiler`](https://docs.pytorch.org/docs/stable/profiler.html), [`torch.utils.benchmark`](https://docs.pytorch.org/docs/stable/benchmark_utils.html), "[Autograd mechanics](https://docs.pytorch.org/docs/stable/notes/autograd.html)" (anomaly detection, hooks), "[Understanding CUDA Memory Usage](https://docs.pytorch.org/docs/stable/torch_cuda_memory.html)", "[CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)" (asynchronous execution, CUDA graphs), "[Gradcheck mechanics](https://docs.pytorch.org/docs/stable/notes/gradcheck.html)"; the recipes "[PyTorch Benchmark](https://docs.pytorch.org/tutorials/recipes/recipes/benchmark.html)" and "[Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)"; the tutorial "[A guide on good usage of `non_blocking` and `pin_memory()` in PyTorch](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)".
# - G. M. Amdahl, "[Validity of the single processor approach to achieving large scale computing capabilities](https://doi.org/10.1145/1465482.1465560)", AFIPS 1967.
# - T. Kalibera, R. Jones, "[Rigorous Benchmarking in Reasonable Time](https://kar.kent.ac.uk/33611/)", ISMM 2013; and T. Mytkowicz and others, "[Producing Wrong Data Without Doing Anything Obviously Wrong!](https://doi.org/10.1145/1508244.1508275)", ASPLOS 2009.
# - B. Gregg, "[The Flame Graph](https://doi.org/10.1145/2909476)", CACM 2016. H. He, "[Making Deep Learning Go Brrrr From First Principles](https://horace.io/brrr_intro.html)", 2022.
# - P. Micikevicius and others, "[Mixed Precision Training](https://arxiv.org/abs/1710.03740)", ICLR 2018.
# - NVIDIA, [manual page of `nvidia-smi`](https://docs.nvidia.com/deploy/nvidia-smi/index.html), and "[NVML API Reference](https://docs.nvidia.com/deploy/nvml-api/latest/index.html)" (`nvmlUtilization_t`). Google, "[Trace Event Format](https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU/preview)".
