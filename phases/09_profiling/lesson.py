# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Profiling"}
# ---

# %% [markdown]
# # Profiling
#
# Slow programs and wrong programs have one thing in common: you look at them with a suspicion, and the suspicion is mostly false. So this lesson is about instruments. Which one do you take? What can't it see? And how do you know that you have found a cause, and not just a bad moment of the machine?
#
# It takes about three and a half hours, predictions and drills included, in two sittings. The first is about finding what is slow. It ends at *A resting place*, where you can solve nearly half of the lab. The second is about fixing slow programs, and about programs that are wrong, not slow. It ends with one step, examined from end to end. You need [phase 07](07_training.ipynb#cell-id=the-five-lines)'s training step; from [phase 04](04_dispatcher.ipynb#cell-id=a-call-is-a-look-up) it helps to know what an operator is. If a paragraph begins with **Predict**, decide on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.
#
# No GPU is needed. Everything about a GPU is read from a *record*: measurements on an NVIDIA H100, in files that came with this course. The cells below print them on any machine. Some traces are *drawn*: a model of a machine made them, to show a pattern, and each of them says so. The rest is measured here, on a CPU. Those milliseconds are from the machine that made this page, and yours will be different.

# %%
import os

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # or the profiler prints about itself
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
# In phase 07 you wrote the step. Now you measure its time and its bytes, count its operators, and look for what goes wrong in it.

# %% [markdown]
# ## Resumen en español
#
# Un tiempo sin dispersión no es una medida. Se mide lo mismo muchas veces, alternando, y se compara la mediana con los cuartiles; lo que se puede **contar** (operadores, bytes, esperas) no depende del humor de la máquina.
# En una tabla, *total* incluye lo que se llama por dentro y *self* no. El host solo encarga el trabajo: quien espera al dispositivo carga con el tiempo de los demás.
# Cinco cuellos de botella: los datos, el bucle de Python, la espera escondida, la copia inútil, los kernels diminutos. Tres remedios: menos, más grande, más tarde.
# Un NaN se busca donde nace: en la ida con *hooks*, en la vuelta con `detect_anomaly`. En float16 el culpable suele ser un número que se hizo cero.

# %% [markdown]
# ## The question
#
# A colleague works on the training step. She has read that setting the gradients to None saves work. Her machine computes on one thread, so that nothing disturbs the measurement.

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
# She times the old step once and the new step once, each on a batch of the training stream. (As in phase 07, the lines of a batch are about equally long.)

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
# Her mail said "30 % faster!", and here the gain is even larger. A second colleague runs exactly the same code once again.

# %%
again_old, again_new = clock(step), clock(quick_step)
print(f"the new step takes {again_new / again_old:.2f} of the time of the old one")

# %% [markdown]
# Now the new step is much slower! (His mail said 40 %.) **Predict.** What did they measure? (Three things are wrong with the measurement: one in `clock`, one in *when* it is first called, and one in what the two steps do.)
#
# > **Where does the time of a step go? How do I know that a result isn't just noise? And how do I prove that my change is an improvement?**

# %% [markdown]
# ## A number without a spread
#
# The first of the three is the batch. Each call of `clock` takes the next one.

# %%
for name, (words, _) in zip(["old", "new", "old", "new"], stream):
    print(f"{name}: 64 lines of up to {words.shape[1]} words")

# %% [markdown]
# She measured the data: the function that gets the long batch loses. (You know these batches from phase 07. The long lines are lists of a verb's forms.) So from here on all functions get the same batch, x and y.
#
# The second thing is the very first call. Here a convolution runs six times on the same pictures, and then six times on larger ones.

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
# The very first call is slow, and so is the first of each size. (`process_time` counts the seconds in which a core worked for this process, as in phase 07. Other processes hardly affect it, and it doesn't count the time in which the process waits for a disk, a loader's worker or a GPU.) The library (oneDNN, on a CPU) chooses a kernel for these sizes, rearranges the numbers, and keeps what it has prepared. A first training step has more of this work, and on a GPU the first call may load code, tune, or compile. **Warm up** before you measure, with the sizes that you will measure, and don't count those calls.
#
# The third thing: the two steps are the same. `zero_grad` sets gradients to None by default. There was nothing to gain. So this is one of the rare cases in which we know the right result, a ratio of 1, and can compare a clock's result with it.

# %%
olds, news = [], []
for _ in range(40):
    olds.append(seconds(step, x, y))
    news.append(seconds(quick_step, x, y))

# %% [markdown]
# **Predict.** Forty runs of one function, alternating with forty runs of the same function. How far apart will their medians be? And how far apart would single runs be?

# %%
timing_spread({"old": olds, "new": news})

# %% [markdown]
# Each point is a run. The box contains the middle half of the runs, from the first quartile to the third, and the line is the median. If your kernel is running, move the slider to 1. That is what the colleague saw: the ratio of two single points.
#
# A ratio of medians without the boxes says nothing. With the boxes there is a simple, cautious rule, which this course follows: if the two middle halves overlap, *nothing can be said*. And with fewer than five runs, quartiles mean nothing.
#
# Why the median and not the mean? Here one of these forty runs is disturbed, and takes a whole second.

# %%
disturbed = [*olds[:-1], 1.0]
for name, of in {"mean": statistics.mean, "median": statistics.median, "minimum": min}.items():
    print(
        f"{name:8} {1e3 * of(olds):6.1f} ms, with the disturbed one {1e3 * of(disturbed):6.1f} ms"
    )

# %% [markdown]
# Noise only ever adds time. So the mean depends on what other users do with the machine. The minimum is the best guess of what the code needs when nothing disturbs it. And the median says how long you will usually wait.
#
# There is a disturbance that no median removes. **Predict.** The old step runs twenty times, and then the new step, which is the same, runs twenty times. Between the two, somebody else on the same machine begins to compute. What will the result say about the new step? And what will it say if old and new run *in turn*, and the neighbour begins half-way through?

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
# If all old runs come first, the new step pays for the neighbour. If the two run **in turn**, old, new, old, new, both are disturbed equally, and the ratio of each pair stays near 1. A machine that gets warm, a colleague's job, a battery: all of these change slowly, and if you measure in turn, their effect cancels in the ratio.
#
# So report wall time as a *ratio*, with its quartiles, measured in turn. PyTorch has a tool that does much of this.

# %%
measured = Timer("step(x, y)", globals={"step": step, "x": x, "y": y}).blocked_autorange(
    min_run_time=1
)
print(measured)
print(f"median {1e3 * measured.median:.1f} ms, middle half {1e3 * measured.iqr:.1f} ms wide")

# %% [markdown]
# `Timer` warms up, and it chooses how often to repeat: it runs a statement of a microsecond thousands of times for one number. It keeps all the times, warns if they differ too much, and on a GPU it waits for the device. It also does something that you may not expect: it sets the number of threads to **one** while it measures, so that results can be compared between machines. Pass `num_threads` to measure with as many threads as your training uses.

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
# A measure that needs no clock is best of all. `counts` runs a function under a dispatch mode, as in [phase 04](04_dispatcher.ipynb#cell-id=listening-in). It counts operators and the bytes of the tensors that they make. **Predict.** We measure thirty steps with the clock and with counts. How far apart are the smallest and the largest result of each?

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
# The counts fill one line, because all thirty are the same. Counts don't say how long something takes. But if a change should do *less*, with fewer operators, bytes or waits, counts prove that it does, on any machine, in one run. At the end the clock gives the ratio.

# %% tags=["hide-input"]
choice(
    "Ten runs before: quartiles 30, 33, 39 ms. Ten runs after: 24, 29, 32 ms. What can be said?",
    {
        "12 % faster": "The medians say so. But the boxes reach from 30 to 39 and from 24 to 32, so they overlap between 30 and 32.",
        "Nothing yet": "The middle halves overlap. Measure in turn, more often, or on a quieter machine. Or count.",
        "It isn't faster": "You can't say that either. There may be a difference that this measurement can't show.",
    },
    answer="Nothing yet",
)

# %% tags=["hide-input"]
true_false(
    "The mean of a hundred runs is more exact than the median of twenty, because it uses more runs.", False,
    "If a tenth of the runs was disturbed, more runs only make you surer of a wrong mean. Noise only adds time here, and so the mean is too large.",
)

# %% [markdown]
# ## Total and self
#
# Now to where the time goes. For each operator, `torch.profiler` records when it began and when it ended. First you get a table, with two columns that everybody confuses. **Predict.** MiniGPT has 13 linear layers. Of the *whole* time of `aten::linear`, how much is its own work?

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
# *Total* is the time from start to end, whatever ran inside. *Self* is an operator's total minus the time of the calls that it made directly. `aten::linear` is a composite, as you saw in [phase 04](04_dispatcher.ipynb#cell-id=composites): it calls `aten::addmm` and does almost nothing itself. If you sort by total, you get the callers, and the list counts the same millisecond up to four times. You can add self times, but you can't add totals. (`print(profiled.key_averages().table(sort_by="self_cpu_time_total"))` gives all columns, on very long lines.)
#
# Here is the same profile as a picture. Time runs from left to right, and each call is below its caller. The strips at the bottom show total. If your kernel is running, tick *self time* to see only each call's own time. **Predict.** Before you tick it: which strips will vanish?

# %%
from utils.instruments.traces import of_profile
from utils.views import flame_chart

events = of_profile(profiled)
flame_chart(events)

# %% [markdown]
# Nearly the whole upper row vanishes, because it contains the callers. The products remain, `mm` in the backward and `addmm` in the forward. So do two or three functions that process the logits, and the optimizer. There are 2,500 events in one step of a small model.
#
# If we also group by shapes, it is even clearer. (That is why we passed `record_shapes=True`.)

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
# (Each time is the mean of eight steps.) There are 1,024 words, each with 600 logits. So the LM head and the loss after it take a good part of the step, although the head is only one of 13 linear layers. A vocabulary is large even in a small model.
#
# Total has a trap. **Predict.** A function calls itself, five levels deep, and each level also computes a product. The outermost call takes the time T. What total does the table give for the function's name?

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
# The table's total is far more than T, because it counts the innermost call five times: in itself and in the four calls around it. A meaningful total counts an event only if no event of the same name is around it. In the lab you compute both columns from a list of events.

# %% tags=["hide-input"]
number(
    "A lasts from 0 to 100. Inside it B lasts from 10 to 60, and inside B there are C from 20 to 30 and C from 40 to 55. What is B's self time?", 25,
    why="B lasts 50. The two C inside it last 10 and 15.",
    wrong={50: "That is B's total.", 75: "You subtracted the two C from A. But A's only child is B, and the question is about B.", 40: "C ran twice inside B."},
)

# %% tags=["hide-input"]
choice(
    "`step` has a total of 30 ms and a self time of 12 ms. It is a `record_function` around a whole training step. What are the 12 ms?",
    {
        "Operators that the profiler doesn't know": "All of them are recorded, your own included.",
        "Python, and whatever isn't an operator": "Between two operators the interpreter runs: your loop, the modules' `__call__`, the tokenizer. The profiler sees it only as the rest of the range around it.",
        "The profiler's own cost": "A part of it, perhaps. But most of that cost is in the operators, which begin later and end later.",
    },
    answer="Python, and whatever isn't an operator",
)

# %% [markdown]
# ## A trace, and what looking costs
#
# A profile of a whole training would take gigabytes. You want only a few warm steps from the middle. A *schedule* selects them: it is a function from the step's number to the profiler's action.
#
# **Predict.** `wait=1, warmup=1, active=2, repeat=2`: which of ten steps are recorded?

# %%
plan = schedule(wait=1, warmup=1, active=2, repeat=2)
print(*(f"{number}: {plan(number).name}" for number in range(10)), sep="\n")

# %% [markdown]
# In WARMUP the profiler starts but keeps nothing. Its own start takes time, too, and this time should be in a step that is thrown away. With RECORD_AND_SAVE a cycle ends, and `on_trace_ready` gets the profile. How does the profiler know where a step ends? You call `prof.step()`. **Predict.** What happens if you forget it?

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
# Then it records nothing: it stays in step 0 for ever, without a warning.
#
# Now we make a table of chosen steps only. Here is a step with a common flaw: its first call builds something expensive and keeps it, in this case the inverse of a large matrix. Each call, the first one too, adds up some numbers in plain Python and computes a logarithm. **Predict.** Which names have the most self time in the first two calls? And in two calls after a warm-up?

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
# Without a warm-up you would look for a faster inverse, which the training never computes again. With a warm-up, `aten::log` is the operator that takes longest. Above it is `ProfilerStep*`, and that is not an operator. It is a *label*, and its row says so in `is_user_annotation`. The profiler puts this label around each step, as you can put `record_function` around your own code. The label's self time is everything that isn't an operator, so it is mostly Python. If you think that the first row is the slowest operator, you will search PyTorch's sources for `ProfilerStep*`. (The numbers are sums over both steps, so one step takes half of each.)
#
# One more thing about cycles. **Predict.** Now we read the table after the `with`, and not in `on_trace_ready`. What is in the table with `repeat=1`, and what without it?

# %%
for words, repeat in {"with repeat=1": {"repeat": 1}, "without it": {}}.items():
    cycle = schedule(wait=0, warmup=1, active=2, **repeat)
    with profile(activities=[ProfilerActivity.CPU], schedule=cycle) as prof:
        for _ in range(3):
            loss_of(model, x[:2], y[:2])
            prof.step()
    print(f"{words:14} {len(prof.key_averages())} names")

# %% [markdown]
# Without `repeat=1` the table is empty. After two recorded steps the profiler began the next cycle and threw away its record, and you read the table in the middle of the next warm-up. (With `wait=1` it would have kept the last cycle until the wait was over.) In a long training that is useful, because `on_trace_ready` saves each cycle. To look only once, use `repeat=1`.
#
# A trace is easier to read if you add your own ranges. `record_function("…")` gives a name to everything that runs inside it. (A module's name is in a trace only if you put it there.)

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
# That file is a *Chrome trace*, a JSON file that a web page can draw. Open it in [ui.perfetto.dev](https://ui.perfetto.dev), which reads it in your browser and sends it nowhere, or in Chrome's own chrome://tracing. Most profilers write this format, or their output can be converted to it. What data does a page need to draw an event?

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
# It needs a name, a start `ts` and a length `dur` in microseconds, and a lane, which is a process and a thread. `"ph": "X"` means a complete event. The file doesn't say which event called which. The *times* show it, as in the picture above. `utils.instruments.traces` reads such a file into plain `Event`s, with whole nanoseconds, and the lab uses these.
#
# Profiling isn't free. **Predict.** How much slower is a step under the profiler? Under the profiler with shapes, stacks and memory? Under `detect_anomaly` (more about it below)? Order the three.

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
# (The times include starting and stopping.) Each operator costs extra time under the profiler, so a profile makes small operators look worse than they are. Use a profile to find out *where* the time goes. To find out *how much faster* a change is, measure without the profiler.

# %% tags=["hide-input"]
number(
    "`schedule(wait=2, warmup=1, active=3, repeat=1)`, and a `prof.step()` after each step. Steps are counted from 0. What is the number of the last recorded step?", 5,
    why="Steps 0 and 1 wait, step 2 warms up, and steps 3, 4 and 5 are recorded.",
    wrong={6: "It is the sixth step, but its number is 5, because the first step is number 0.", 3: "That is the first recorded step.", 2: "Step 2 is the warm-up, which is thrown away."},
)

# %% [markdown]
# ## Two clocks
#
# A GPU is another computer. Your Python runs on the *host*. It does not add or multiply itself: it puts orders into a queue and goes on. The *device* takes them out of the queue and runs them one after the other. The host's clock shows only how long it takes to give orders.
#
# You need no GPU to see this. A thread with a queue can play the GPU: `Device` of `utils/instruments/profiling_examples.py`. `launch` puts an order into the queue; `item` asks for a number of the last result. **Predict.** We launch three products, then ask for one number. What does the host's clock say for each call?

# %%
device, big = Device(), torch.randn(1000, 1000)
device.launch(torch.matmul, big, big)
device.item()  # warm
for line in ("launch", "launch", "launch", "item"):
    began = time.perf_counter()
    device.launch(torch.matmul, big, big) if line == "launch" else device.item()
    print(f"{line:7} {1e3 * (time.perf_counter() - began):7.2f} ms")

# %% [markdown]
# Three products seem to cost nothing, and `item` pays for all of them! Because of tables like this, people have looked for a faster `item`, and many kernels have looked a thousand times faster than they were. The time is right, but it is *blamed* on the wrong line: `item` waits for work that the lines before it have ordered.
#
# So, to measure something on a device: wait until it is idle, start the clock, give the orders, **wait again**, stop the clock. `torch.accelerator.synchronize()` waits, on any kind of device, and `Timer` does all that for you.
#
# The course's record of a real GPU was made in this way. It was made on a different machine, with a different version of PyTorch. The first line below names them. **Predict.** The record has a product of two float32 matrices, at five widths from 64 to 8,192. The largest matrices are 128 times as wide as the smallest, and their product has two million times as many multiplications. How much longer does it take to *order* it, until Python can run the next line? And until it is *done*?

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

# %% [markdown] tags=["printed 27", "printed 64"]
# (Each time is the median of nine.) A product takes about 20 µs to order, whatever its size. By the host's clock alone, this GPU would be seven hundred times as fast as it really is. And *done* has a minimum: a product of width 256 has 64 times the work of width 64, but takes no longer. To order, start and wait for any kernel takes 27 µs.
#
# Next comes a trace with both host and device. It is *drawn*, so that you see only the pattern. (In *Five bottlenecks* you see two recorded traces.) A small program in `utils.instruments.traces` simulates host and queue, with durations and noise like those of a modern GPU. Nothing in it was measured. The host has three rows: ranges, the operators inside them, and the CUDA calls inside the operators. Below are the device's streams: kernels are blue, copies purple. On the host, waiting is red, launching amber, and the loader green. A line leads from each launch to its kernel. **Predict.** Look at the picture before you read on: where does the host wait, and for what?

# %%
from utils.instruments.traces import drawn
from utils.views import two_lanes

two_lanes({"a healthy step (drawn)": drawn("compute", 1, steps=1, covered="nothing")}, at=60)

# %% [markdown]
# The host is far ahead. It has given all its orders in less than a fifth of the time. Then it waits in `cudaStreamSynchronize` until the queue is empty, because the program wants to print the loss. The device works without a gap, so all is well: **a step is as fast as its device, as long as the queue is never empty.** The long red bar costs nothing: without it, the step would take just as long.
#
# Look for three quantities in such a trace. For what part of the step is the device *busy*? How long is its longest *gap*? And how much time passes from a launch to the start of its kernel? With a full queue this time is long, and that is good. If the device was idle and waited for the order, it is a few microseconds, and that is bad.

# %% tags=["hide-input"]
choice(
    "Somebody puts two calls of `perf_counter` around a kernel, without waiting for the device. The result is 11 µs. For a matrix twice as wide it is 11 µs again. What was measured?",
    {
        "A kernel that is limited by memory": "Four times as many bytes would take four times as long.",
        "The launch": "Giving an order takes as long for a large matrix as for a small one. A time that doesn't depend on the size is the sign of it.",
        "The resolution of the clock": "`perf_counter` can measure times of less than a microsecond.",
    },
    answer="The launch",
)

# %% tags=["hide-input"]
true_false(
    "In a trace, `cudaStreamSynchronize` takes 70 % of the host's time. So the step gets about three times as fast if we remove the synchronisation.", False,
    "Only if the device is idle because of it. In the healthy step above, the host waits for four fifths of the time, and the device works all the time. Ask what the *device* does while the host waits.",
)

# %% [markdown]
# ## Memory over time
#
# A profile with `profile_memory=True` records each time that memory is allocated or freed. The running sum of these amounts is a curve. Here it is for the marked step from above. **Predict.** Where is the peak: in the forward, in the backward or in the optimizer? And which tensors use most of the memory there?

# %%
from utils.instruments.traces import allocations_of_profile
from utils.views import memory_timeline

with profile(activities=CPU, profile_memory=True) as profiled:
    marked_step(x, y)
allocations = allocations_of_profile(profiled)
memory_timeline(of_profile(profiled), allocations)

# %% [markdown]
# It climbs through the forward, because autograd keeps what the backward will need. It falls through the backward, because each node frees what it no longer needs. The peak is just after the backward has begun, when nothing has been freed yet and the first gradients exist. And which tensors are alive there? They come from the logits: the result of `_log_softmax`, and two gradients of the same size, 1,024 rows of 600. In a model with 150,000 words, this moment decides whether the batch fits.
#
# The curve begins at 0. It doesn't contain memory from before the step, such as the weights and AdamW's two numbers for each weight. So a record can free more than it allocated. And a block has no name, only an address:

# %%
addresses = [allocation.address for allocation in allocations if allocation.bytes > 0]
print(f"{len(addresses)} blocks were handed out, at {len(set(addresses))} addresses")
known = set(addresses)
before = [a for a in allocations if a.bytes < 0 and a.address not in known]
print("given back, though never handed out in this record:", len(before))

# %% [markdown]
# An address can be used again as soon as it is free. So a block is an address *from one moment to another*. To know which blocks are alive, go through the list in order, and expect that some blocks are freed although the record never saw them allocated. **Predict.** Which blocks are alive at the peak? How many bytes do the five largest have, and which tensors are they?

# %%
def peak(allocations):
    """The most bytes that were alive at once, and the blocks of that moment: bytes by address."""
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

# %% [markdown] tags=["printed 2457600"]
# Several blocks have 2,457,600 bytes: 1,024 · 600 float32 numbers, as the curve said. Next are the hidden layers of the MLPs, 1,024 × 256. A running sum that subtracts every freed block is too low as soon as a block from before the record is freed. And a list of addresses without times would contain most of them several times.
#
# A different problem is a peak that grows from step to step. **Predict.** Four steps put their losses into a list, in one of three ways. How much memory is in use at the end, for each way?

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
# A loss keeps its graph alive, and the graph keeps everything that was saved for the backward: twelve MiB for each number in the list. (A `backward` frees much of that, but a *validation* without `no_grad` has no backward.) `detach` keeps four bytes, and `item` keeps a Python number. On a GPU `item` waits, and `detach` doesn't.
#
# On a GPU, PyTorch's own *caching allocator* asks the driver for large pieces and keeps them. So there are three figures. `torch.cuda.memory_allocated` is the bytes that tensors use. `memory_reserved` is the bytes that the allocator has taken from the driver, which are more. And the figure of `nvidia-smi` is larger still. `torch.cuda.memory._record_memory_history()` and `_dump_snapshot` write a record with the Python line of each block, and pytorch.org/memory_viz draws it. (We don't run this here, because it needs a GPU.)

# %% tags=["hide-input"]
number(
    "In this order: 100 bytes are allocated at A, 50 at B, A is freed, 80 are allocated at A, B is freed, 30 are allocated at C. What is the peak?", 150,
    unit="bytes",
    why="The sums are 100, 150, 50, 130, 80, 110.",
    wrong={260: "That is the sum of all allocations. A was free in between.", 130: "The peak was earlier, with the first A and B.", 180: "The old block at A was freed before the new one was allocated."},
)

# %% [markdown]
# ## Five bottlenecks
#
# A training step can be slow in only a few ways. A *bottleneck* is the one thing that the whole step waits for. You will often see these five:
#
# - the **loader**: the next batch isn't ready;
# - **Python**: between two operators the interpreter does something long;
# - a **hidden wait**: the program often asks for a number, and each time it waits until the queue is empty;
# - a needless **copy**: bytes are copied back and forth, mostly from host to device, and everything waits for them;
# - small **launches**: kernels so short that ordering them takes longer than running them.
#
# In a sixth case nothing is wrong: the device computes.
#
# Here are six drawn traces, one for each case, in no particular order. **Predict.** If your kernel is running, choose each trace with the slider, and name its case before you read on. Without a kernel you see only A: which of the six cases is it?

# %%
KINDS_HERE = dict(zip("ABCDEF", ("sync", "copy", "python", "compute", "loader", "launches")))
drawn_traces = {letter: drawn(kind, seed=3, steps=1) for letter, kind in KINDS_HERE.items()}
two_lanes(drawn_traces, trace="A", at=90)

# %% [markdown]
# A is the hidden wait: there is a red bar after each operator, and in the stream there is a gap after each kernel. In B one copy, "Pageable → Device", takes nearly all of the step, and the kernels come at the very end. In C the device idles, and the host's rows are nearly empty, too: no operator and no call shows what happens there. That is Python. D is healthy. E begins with a green bar that is far longer than everything else. That is the loader. F has one operator after another on the host, without a pause, and every kernel is shorter than its launch. Those are small launches.
#
# Could you also recognize the cases if you only add up the times for each name? **Predict.** In which of the six traces does the host spend the largest part of the step in `cudaStreamSynchronize`, which is waiting?

# %%
def share(events, word):
    """The part of a trace's time that events with `word` in their name take."""
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
# In D, the healthy one, and in B the host waits for nine tenths of the time. In A it waits for only half, although waiting is the bottleneck there. A sum for each name doesn't show what happened *at the same time*. So ask a different question, moment by moment. Is a kernel running? Then all is well, whatever the host does. If not, is a copy running? If not, the device idles. Then ask: *what is the host doing?* (After a wait there is one more rule. The queue became empty *because* the host waited. So the gap is caused by the wait until the host has given the next order. Therefore look at what the host was doing when the device became idle.) In this way each moment of the step gets one of six words, and the word with the most time is the bottleneck. You write that in the lab.
#
# In these pictures one thing is always much larger than the rest. A real trace often has two or three bottlenecks, and when you have fixed one, you see the next.
#
# The record has two real traces. One is a training step of MiniGPT on two lines. The other is a training step of four layers that are 4,096 wide, in bfloat16, on 8,192 rows. Both ask for their loss at the end. (Two steps of each were recorded. You see the second one, because the first contains the profiler's own start.) **Predict.** For each trace: for what part of the step is the H100 busy? How long is a typical kernel? How much time passes from a launch to the start of its kernel? And which of the six words does the trace get?

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
# MiniGPT's trace looks like F: small launches. One of the fastest devices in the world is idle for more than nine tenths of the step. Each kernel starts at once and takes less time than a launch. (`host 2` is the thread in which autograd runs the backward of tensors on a device. The profiler adds a cost to each operator, and that is a good part of these milliseconds. Without it, below, a step is shorter.) The trace of the wide layers looks like D. Half-way through the step, the host has given all its orders and waits for the loss. The queue is so full that a kernel waits in it for milliseconds, and hardly any time is lost between two kernels. Card, PyTorch and training loop are the same in both. The `bottleneck` that you write in the lab gives both traces the right word. Try it.
#
# On a CPU the same bottlenecks look different: there is only one lane, and Python waits for each operator. **Predict.** Here are three ways to lose time on this machine: a slow dataset, a loop over rows, and a needless conversion to float64. Which names will have the most self time in each?

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

# %% [markdown] tags=["printed 1024"]
# The loader has its own entry. Its self time is everything in it that isn't an operator, and here that is the disk. You see the loop in the *counts*: 1,024 calls, and one would be enough. The conversion appears as `copy_`, once to float64 and once back, and as a softmax on twice the bytes.

# %% tags=["hide-input"]
choice(
    "In a trace, the device is busy for 12 % of the time. The host is in operators for 95 % of the time, one after the other, and each kernel runs for 2 µs. Which bottleneck is it?",
    {
        "Python": "Then the host's rows would be empty between the operators.",
        "small launches": "The host only gives orders, and the device finishes each one before the next one comes. Make them fewer and larger.",
        "a hidden wait": "Then the host would spend its time in calls that wait.",
    },
    answer="small launches",
)

# %% [markdown]
# ## A resting place
#
# Here the first sitting ends: you can find what is slow. You can now solve exercises 1 to 4 of [the lab](../release/09_profiling/09_profiling.ipynb), which give 16 of its 42 points: your own profile, total and self, the two lanes, and the bottleneck. Exercise 5 needs the next section, and exercises 6 to 9 need the later ones. Exercise 10 is a question in words, and you should leave it to the end.

# %% [markdown] tags=["needs-kernel"]
# When you come back, run the cells above again (*Run → Run All Above Selected Cell*, a minute or two), because the rest uses the same model and the same batch.

# %% [markdown]
# ## Fewer, larger, later
#
# All five bottlenecks have the same three remedies. *Fewer*: run one operator on the whole batch, not one for each row. *Larger*: process many small tensors together. *Later*: ask for a number when you print it, not in every step. And fetch the next batch while the device computes the current one.

# %% [markdown]
# ### Fewer
#
# Somebody wants to know how often the model's first choice is right, and writes the function word by word.

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
# **Predict.** For each function, how does the number of operators grow with the number of lines? How many numbers does Python ask for? And which function makes more bytes?

# %%
from utils.views import step_counts


def lines(n):
    return logits[:n], y[:n]


step_counts({"row by row": hits_by_row, "at once": hits}, lines, [1, 2, 4, 8, 16, 32], size=8)

# %% [markdown]
# Move the size: the first function's number of operators grows, and the second's stays the same. That proves that the loop over rows is gone, and it needs no clock. A *number asked for* is a call of `_local_scalar_dense`. `item()`, `float()`, `if tensor:` and printing all call it in the end. On a CPU it costs a microsecond. On a GPU each call is a hidden wait, as in trace A.
#
# There is a trick to find hidden waits without counting: on the device `meta`, tensors have shapes and no numbers. **Predict.** What does each of the two functions do there?

# %%
for function in (hits_by_row, hits):
    try:
        print(f"{function.__name__:12}", function(logits.to("meta"), y.to("meta")))
    except RuntimeError as error:
        print(f"{function.__name__:12} {error}")

# %% [markdown]
# A function that asks for a number raises an error. A function that asks for no number works, and even returns the result's shape.
#
# On a GPU a mode warns of hidden waits: `torch.cuda.set_sync_debug_mode("warn")`. The record has its answers for the calls below. `x` is on the device, and so is `n`, a tensor of integers. `h` is in the host's ordinary memory and `p` in *pinned* memory (more about that below). **Predict.** Which calls make the host wait?

# %%
waits = gpu.result("messages")["waits"]
print(*waits, sep="\n")

# %% [markdown]
# Decide on an answer for each call before you look at the record's answers:

# %%
print("make the host wait:", *(f"    {call}" for call, waited in waits.items() if waited), sep="\n")
print("don't:", *(f"    {call}" for call, waited in waits.items() if not waited), sep="\n")

# %% [markdown]
# A shape is known without a number, so `print(x.shape)` costs nothing, and `x[5]` is only a view. But for `x[x > 0.5]`, `nonzero`, `unique` and `repeat_interleave`, the number of rows depends on the *values*. Until the device has counted the rows, Python can't give the result a shape. `where` keeps every place and needs no count. `one_hot(n)` must look for the largest class, unless you pass the number of classes. `clip_grad_norm_` clips with a tensor, but with `error_if_nonfinite` it needs an `if`. And `torch.tensor(1.0, device="cuda")`, which looks so innocent, makes a tensor on the host and copies it to the device. With `torch.full`, the number is sent as a part of the launch.
#
# `hits` returns a tensor, not a number. That is "later": only the line that prints it waits for it. Now we use the clock, in turn, to get the ratio.

# %%
slow, fast = [], []
for _ in range(15):
    slow.append(seconds(hits_by_row, logits, y))
    fast.append(seconds(hits, logits, y))
ratios = sorted(a / b for a, b in zip(slow, fast))
print(f"{ratios[7]:.0f} times as fast (middle half {ratios[3]:.0f} to {ratios[11]:.0f})")

# %% [markdown]
# Look at the bytes again: *at once* makes more of them. Three KiB don't matter. But if a broadcast replaces a loop by a table of gigabytes, that does matter. So count both operators and bytes.

# %% [markdown]
# ### Larger
#
# AdamW has 38 tensors of weights to update, and most of them are tiny. You know its three forms from [phase 07](07_training.ipynb#cell-id=what-the-optimizer-remembers). **Predict.** How many operators does one `step` of each form run?

# %%
for form in ({"foreach": False}, {"foreach": True}, {"fused": True}):
    other = torch.optim.AdamW(model.parameters(), **form)
    other.step()
    found = counts(other.step)
    print(f"{form}: {found.calls} operators, {found.asked} numbers asked for")

# %% [markdown]
# The first form is a loop, with about ten operators for each tensor. The second runs each operator on all tensors together. The third is one kernel for everything. On a GPU each operator is a launch of some microseconds, so in a small model look at this first. And look at the last column: the optimizer keeps the step count as a *tensor* for each weight, and Python asks for its value to compute with it. (On a GPU these are not waits. Without `fused` and `capturable`, the optimizer keeps the counts in the host's memory, for exactly this reason.)
#
# Larger still is a whole model as one launch. `torch.compile` fuses operators into fewer kernels ([phase 06](06_compile.ipynb#cell-id=fusion-and-the-code)). With `mode="reduce-overhead"` it replays the kernels of the forward as one *CUDA graph*, and the kernels of the backward as another. A CUDA graph is a list of launches that is recorded once and then given as one order. With `torch.cuda.graph` you can record the whole step yourself, including the optimizer.
#
# **Predict.** One core of a CPU needs about 50 ms for MiniGPT's training step on 16 lines of 18 words. How long does the H100 need? Then order these four ways by their time: the optimizer is fused; the model is compiled, too; it is compiled with "reduce-overhead"; and the whole step is one graph.

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

# %% [markdown] tags=["printed 0.13", "printed 0.7"]
# In the first row *ordered* and *done* are the same number: the device always waits for orders, and a step takes as long as its orders. So the GPU is only nine times as fast as that core, although it can compute hundreds of times as much. The fused optimizer needs fewer orders. The compiled step is *no shorter*. It has fewer kernels, but still well over a hundred. Inductor's Python code orders each of them separately, and the guards are checked first. "reduce-overhead" removes half of the time. Everything outside the graphs remains: the optimizer, the work of autograd, and the compiler's own Python in between. As one graph, the step is ordered in 0.13 ms and done in 0.7 ms, and kernels run for nine tenths of that time. A graph makes no kernel faster. It removes the orders.
#
# A graph has its price. Each replay uses the same shapes in the same places of memory. New batches must be copied to where the old ones were. And nothing in the graph may ask for a number.

# %% [markdown]
# ### Later
#
# The work that a loader's workers do in advance (`num_workers`) costs the step nothing. Keep losses as tensors and read them every fifty steps. And send a batch in advance. If it is in *pinned* memory (`pin_memory=True`), which the operating system may not move, then `.to(device, non_blocking=True)` lets the device fetch it while kernels run.
#
# **Predict.** 256 MiB are copied from host to device. How long does it take until Python runs the next line, and how long until the bytes have arrived? Answer for ordinary and for pinned memory, with and without `non_blocking`. According to the mode above, `h.to("cuda", non_blocking=True)`, from ordinary memory, does not make the host wait.

# %%
for copy in gpu.result("clocks")["copies"]:
    memory = "pinned" if copy["pinned"] else "ordinary"
    print(
        f"{memory:9} non_blocking={copy['non_blocking']!s:5}  next line after "
        f"{1e3 * copy['returned']:6.3f} ms, there after {1e3 * copy['done']:6.3f} ms"
    )
print(" ".join(torch.cuda.set_sync_debug_mode.__doc__.split("Warning:")[1].split()))

# %% [markdown] tags=["printed 26.8"]
# That copy takes 26.8 ms, and the host waits all the time. From ordinary memory the driver copies through its own pinned buffer, and meanwhile your Python waits in a call named `cudaMemcpyAsync`. The mode says nothing because it notices only waits inside *PyTorch*, and its documentation warns about that. From pinned memory the same bytes arrive five times as fast, because they are not copied twice. The next line runs at once only with pinned memory *and* `non_blocking`. So if an instrument reports nothing, that proves nothing. Use two of them.
#
# In the other direction it is dangerous not to wait: `x.to("cpu", non_blocking=True)` returns before the numbers have arrived. If you read them without `synchronize`, you may read the old contents of that memory.

# %% tags=["hide-input"]
choice(
    "The gradient's norm is logged at each step: `sum(p.grad.norm().item() ** 2 for p in parameters) ** 0.5`, with 200 parameters, on a GPU. What is the best fix?",
    {
        "`detach()` before `norm()`": "Gradients have no graph, and the 200 waits remain.",
        "`torch.nn.utils.get_total_norm(grads)`, and `item()` when it is printed": "A handful of operators for all tensors, one number, and no wait until you read it.",
        "Log it on the host: `p.grad.cpu().norm()`": "That is 200 copies, each with a wait.",
    },
    answer="`torch.nn.utils.get_total_norm(grads)`, and `item()` when it is printed",
)

# %% tags=["hide-input"]
choice(
    "In a training step the device is busy for 95 % of the time, and its kernels run for milliseconds. Somebody captures the step as one CUDA graph. What is the gain?",
    {
        "Eight times the speed, as above": "There the device was idle for most of the step. A graph removes the time for giving orders, but here the host gives its orders while kernels run.",
        "A twentieth, at most": "The kernels run as long as before, and they are 95 % of the step.",
        "It gets slower": "It has as many kernels as before, or a few short ones more. They don't matter if other kernels run for milliseconds.",
    },
    answer="A twentieth, at most",
)

# %% [markdown]
# ## The NaN hunt
#
# Now to a program that is wrong, not slow. Somebody adds the entropy of the model's guesses, −Σ p log p, to the loss, so that the model doesn't become too sure of itself. The model must never say the words `<pad>` and `<bos>`, so their logits are −∞.

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
# That is a NaN, in the forward. For these two words p is exactly 0, its logarithm is −∞, and 0 · −∞ is NaN. The usual fix is to take the product only where p isn't 0.
#
# **Predict.** Does this fix it? Think of the value first, and then of the gradients that the optimizer will get.

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
# The value is right, but every parameter has NaN in its gradient. `where` chooses between two *values*, and both have been computed. In the backward, `where` gives a gradient of 0 to the branch that it didn't choose. That branch multiplies it by log p, and 0 times −∞ is NaN again. The loss looks fine, and one step later the model is useless.
#
# How do you find the place? `detect_anomaly` checks the results of each node of the backward. (`anomaly` of `utils/instruments/profiling_examples.py` runs a backward under `detect_anomaly`, and returns its message, shortened.) **Predict.** Which operator will it name: `where`, `log` or the product?

# %%
from utils.instruments.profiling_examples import Messages, anomaly, tried

print(anomaly(lambda: entropy_where(guesses(model, x[:4]))))

# %% [markdown]
# It names the product, `MulBackward0`: the first node that *made* a NaN. And it shows the line of the forward that made this node. (For this, each operator keeps its Python stack while the mode is on, and that makes the mode slow.)
#
# **Predict.** What does it report in these three cases?

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
# It reports only the first case. There the *backward* makes a NaN, although `nansum` hid the NaN of the forward from the loss. In the second case, the logarithm of 0 − 1 is NaN in the forward, but its gradient, 1/x, is a number, so the mode reports nothing. In the third, an infinite gradient isn't a NaN. It makes NaNs one step later. So `detect_anomaly` finds NaNs that the backward makes. To find NaNs that the forward makes, put *hooks* on the modules. A hook that only records sizes is often enough, because numbers are large before they are infinite.
#
# Here we spoil two numbers in an early layer of MiniGPT. **Predict.** In the outputs of which modules will you see it? Will they be large, infinite, or NaN?

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
# The output of `mlp.up` is large, but finite. `mlp.down` multiplies it, and the result overflows to ∞. The next LayerNorm subtracts ∞, its mean, from ∞, and from there on everything is NaN. If you look only at the end, you see only NaN. So look for the first module with a finite input and an output that isn't finite. The sizes show even more: the first cause is one module earlier. (Remove hooks again: a hook stays on its module and costs time in each call.)
#
# Back to the entropy. How do you fix it? The branch that isn't chosen must have a finite value and gradient, too. So choose the input first, then compute, then choose the result.

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
# Here the replaced input, 1, happens to give the right result, 0. In general you need a second `where` to choose the result. If you clamp p at 1e-8, or add 1e-8, the value or the gradient is a little wrong. The exact version is just as short.

# %% tags=["hide-input"]
choice(
    "From step 812 on, the loss is NaN. `detect_anomaly`, switched on at step 811, names `LogSoftmaxBackward0`. In step 812 the logits are already NaN. What do you do first?",
    {
        "Take a safer softmax": "`log_softmax` subtracts the maximum, so it is safe already. Its input was NaN.",
        "Look at weights and gradients after step 811": "If the logits are NaN, then either the inputs or the weights are. The step before wrote the weights. Most likely it had an infinite gradient, which the mode doesn't report.",
        "Lower the learning rate": "Perhaps, once you know what happened.",
    },
    answer="Look at weights and gradients after step 811",
)

# %% [markdown]
# ## Why fp16 made it worse
#
# "It is a large model, so I call `.half()` on it, and it is half as large." The loss is the same, to three digits, and the gradients are finite. Then comes one step of AdamW. **Predict.** What part of the weights is still finite?

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
# Almost no weight is finite, although every check so far has passed. Go through AdamW's formula, number by number, in 16 bits, with a small gradient such as 1e-4. **Predict.** What does each of these four numbers become?

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
# The square of a small number is a very small number, and float16 has no number between 0 and 6e-8. So v is 0. ε should help in exactly this case, but it is 0 as well, because 1e-8 is too small. So the result is m/0, which is infinite. If the gradient itself is 0, it is 0/0, which is NaN.
#
# Then use plain SGD, says somebody, because it has no v. With SGD and a learning rate of 0.001 nothing can become infinite. But what part of the weights with a gradient changes at all?

# %%
half.load_state_dict(load_minigpt().state_dict())
before = torch.cat([p.detach().flatten() for p in half.parameters()])
torch.optim.SGD(half.parameters(), lr=1e-3).step()
after = torch.cat([p.detach().flatten() for p in half.parameters()])
moved = ((before != after) & (gradient != 0)).sum() / (gradient != 0).sum()
print(f"{moved.item():.1%}")
print("1 + 0.0004 =", (torch.ones((), dtype=torch.float16) + 0.0004).item())

# %% [markdown]
# Less than one in a hundred. Between 1 and the next number of float16 there is a gap of a thousandth, and a step of less than half of this gap is lost by rounding. There is no error. The model just doesn't learn.
#
# So 16 bits can go wrong in three ways, and they have names. *Underflow*: a number becomes 0. *Rounding*: a small number is lost when it is added to a large one. And *overflow*: a number above 65,504 becomes infinite. **Predict.** Which of these four results are wrong in float16, and in which of the three ways?

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
# The squares overflow before the mean can make them smaller: 90,000 is too large, although the root of the mean would fit. `norm` computes the same squares and is right, because it sums in float32 and rounds at the end. `cumsum` on a CPU does the same. Inside one operator PyTorch may compute with more digits. But if *you* write three operators, the result of each is rounded.
#
# That is also how to find such an error: go through the formula step by step, in float32 and in float16. For each step ask two questions. How wrong is its result if its input is the 16-bit result of the steps before? And how wrong is it if its input is the *right* one, rounded? The second error is the step's own. The difference between the two is inherited.

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

# %% [markdown] tags=["printed 300", "printed 200"]
# With 300, the mean is already infinite before `rsqrt`, and `rsqrt` correctly gives 0. With 200 all is well. The step to fix is the square and not the root, although the root's result looked wrong.
#
# And you know the fix for training from [phase 07](07_training.ipynb#cell-id=sixteen-bits). Weights, gradients and the optimizer's memory stay in float32, `autocast` uses 16 bits only for products, and a scaler prevents that gradients become 0. Or use bfloat16. It has float32's range, but its gap after 1 is even wider.

# %% tags=["hide-input"]
number(
    "float16 has 10 bits of fraction. A weight is 4.0. What is the smallest power of two that changes the weight if you add it? Give it as a decimal fraction. (A tie is rounded to the even neighbour.)", 0.00390625,
    tolerance=1e-9,
    why="From 4 on, the gap between two numbers is 4 · 2⁻¹⁰ = 0.00390625. Half of that, 0.001953125, is a tie and is rounded back to 4.",
    wrong={0.001953125: "That is half a gap. It is a tie, and a tie is rounded to the even neighbour, which is 4.", 0.0009765625: "That is the gap at 1. At 4 it is four times as wide."},
)

# %% [markdown]
# ## A gradient on trial
#
# A model that trains badly has a wrong gradient, a wrong learning rate or wrong data. If you have written a backward yourself, you can rule out a wrong gradient in two lines. You know `gradcheck` from phases 02 and 05. Use it with care: it can accept a wrong gradient and reject a right one. (`tried` returns its result, or its error message.)
#
# Here is SiLU, x·σ(x), with a backward that somebody derived too quickly. The right derivative is σ(x) + x·σ(x)(1 − σ(x)). **Predict.** How many of five inputs will show that a factor is missing?

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
# It compares the numerical Jacobian with the analytical one, entry by entry. Here the diagonal differs, and the kind of difference says much. A constant factor means a forgotten 2. The transpose means a wrong product. A row of zeros means a forgotten input. And at 0 the wrong formula gives the right result: **a check is only as good as its inputs**. Use random inputs, never zeros or ones. Use small ones, because the Jacobian has inputs × outputs numbers.
#
# **Predict.** Now come three functions with a right gradient. Which of them does `gradcheck` reject?

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
# All three. `gradcheck` takes differences with a step of 1e-6, and float32 has too few digits for that. At a kink there are two slopes, and the difference gives their mean. And a function with random numbers gives two different values for one input. So use float64, avoid kinks, and fix the random numbers.
#
# With `fast_mode=True` you can check a whole model. It checks one random direction for each tensor, not every entry. This needs two forward passes for each tensor, and is worth it before a long run.

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
# People spend most of their debugging time before they have read the message. Below are twenty messages. The PyTorch that runs here really raised each of them, but you don't see the line that raised it. **Predict.** For each message, say in one short sentence what is wrong. Where do you look first? We begin with shapes.

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
# When you have seven answers, look at the lines that raised the messages.

# %%
messages.causes()

# %% [markdown]
# 1: *mat1* is 28 × 32, although none of your tensors has that shape, because all leading dimensions were flattened. So read the **last** number of mat1 and the **first** of mat2. And `linear.weight` is (600, 64), but mat2 is 64 × 600, because the weight was transposed. A message is about an operator's *operands*. You must find out which of your tensors, and which of its dimensions, each of the two numbers comes from. 2: sizes are aligned from the *right*. Dimension 1 doesn't fit, and (4, 1) was meant. 3: the problem is strides, as in phase 01. Use `reshape`, or ask why the tensor is transposed. 4: from a loader, this message always comes from the collate function, because items have different lengths. 5: `cross_entropy` expects the classes in dimension 1, so it expects a target of [2, 600]. Flatten both, or move the classes. 6 *misleads*: nothing here is sparse. Read the end: the tensor has 2 dimensions, and 3 were given. 7 is three messages in one: a missing key, an unknown key (the same word, misspelt), and a wrong shape.
#
# And when a message disappears, the error may still be there. Suppose you want to multiply two matrices (2, 3), each row of `a` by each row of `b`, and `a @ b` complains about 3 and 2. **Predict.** Both ways of turning `b` below give the right shape. What are the products?

# %%
a, b = torch.tensor([[1, 0, 0], [0, 1, 0]]), torch.tensor([[1, 2, 3], [4, 5, 6]])
for name, turned in {"b.T": b.T, "b.reshape(3, 2)": b.reshape(3, 2)}.items():
    print(f"{name:16} {turned.tolist()}   a @ it: {(a @ turned).tolist()}")

# %% [markdown]
# `a` selects the first number of each row of `b`, then the second. So 1 and 4, then 2 and 5 are right, and `b.T` gives them. `reshape` reads the numbers in their old order and cuts them into new rows, and you will never get a message about it. To change the order of dimensions, use `transpose` and `permute`. To join or split neighbouring dimensions, use `reshape` and `flatten`. (If both matrices were 3 × 3, even `a @ b` would raise no error.)

# %% [markdown]
# ### Values, dtypes and devices
#
# The next eight messages are about numbers, their dtypes and their devices.

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
# 8: *self* is the embedding's table. It has 600 rows, so the last index is 599. 9: the loss has the same problem: 6 classes have the numbers 0 to 5. (On a GPU both messages look different, see below.) 10: Double nearly always comes from NumPy. 11: *Long* is int64, and targets are indices. 12: an operation in place writes its result in the old dtype. 13: the mean of integers is usually not an integer, so use `.float()` first. 14: there are two devices, and the message names the one that was not expected. 15: read the number of bytes, 4·10¹⁵. So large a number is usually a product of two shapes that should have been aligned, as in [phase 01](01_tensors.ipynb#cell-id=the-silent-64-64-bug)'s (64, 64) bug.

# %% [markdown]
# ### The same messages from a GPU
#
# Some messages look different on a GPU, and the record has them. First comes 8, an index of 600 into a table of 600 rows, in a short program. (Its first three lines are not shown.) **Predict.** Which line will the message blame?

# %%
import textwrap

said = gpu.result("messages")["messages"]


def program(name):
    """The lines that raised a recorded message; three came before them."""
    for place, line in enumerate(said[name]["code"].splitlines(), 4):
        print(f"{place:5}  {line}")


def message(name, begin="  File"):
    """The end of the printed text."""
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
# It blames line 6, but the mistake is in line 5. The kernel found the mistake on the device, after Python had gone on, and the next line that used the device got the error. That can be an innocent line like this one, or the next `.item()`, a hundred lines below: "might be asynchronously reported at some other API call". The many lines before it are assertions, one from each of 64 threads. (The embedding is 64 wide, and each thread fetched one number of row 600.) And the process is lost: after a device-side assert every CUDA call fails until you restart the process. So run the same batch **on a CPU**, and you get message 8, with the right line. Or set `CUDA_LAUNCH_BLOCKING=1`, so that each launch waits.
#
# Then comes 14, in two forms. The first names two devices. The second also names the argument on the wrong device:

# %%
message("two devices", "RuntimeError")
message("index on the CPU", "RuntimeError")

# %% [markdown]
# And 15: here are three messages of this kind, without the lines that raised them. **Predict.** Read them figure by figure. Which of the three programs asks for too much at once? Which has kept too much? And which has its memory in too many pieces? Does another program use this card?

# %%
for name in ("in pieces", "too large", "full"):
    figures = said[name]["last"].split("torch.OutOfMemoryError: ")[1]
    print(textwrap.fill(figures.split(" If reserved")[0], 110), end="\n\n")

# %% [markdown]
# When you have an answer for each, look at the programs:

# %%
for name in ("in pieces", "too large", "full"):
    print(f"{name}:")
    program(name)

# %% [markdown] tags=["printed 8.74", "printed 61.15", "printed 76.5", "printed 518", "printed 70.39"]
# The first program has 8.74 GiB in tensors. PyTorch has taken 61.15 GiB more from the driver, and no tensor uses them. The program allocated pieces of 2 MiB, ten in a segment, and kept every eighth. So no segment is empty, PyTorch can't give any segment back, and nowhere are 35 GiB side by side. That is fragmentation. `expandable_segments` helps against it, and the end of the message (cut off here) recommends it. The second program is the easiest: it has 0 bytes and requests 128 GiB on a card of 79 GiB. A shape is wrong. In the third, tensors use 76.5 GiB, and PyTorch has nothing in reserve: the program has kept all its tensors. The 1.5 GiB that it requests are innocent. The message doesn't say *whether* the program leaks. To find out, compare the peak of step 10 with the peak of step 2.
#
# The figures include CUDA's own memory, too. It is 518 MiB in the second message, because PyTorch has nothing there. In the first it is 70.39 minus 8.74 and 61.15 GiB. And yes, another program uses the card: process 553, with 1 GiB. (It is the program that made the record.)

# %% [markdown]
# ### Graphs
#
# The last messages are about graphs. Again name the cause and the place, in one short sentence.

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
# 16: nothing in the whole computation requires a gradient. The cause is a frozen model, a `no_grad`, a `detach` or `.item()` on the way, or integers. 17: a loss is one number, so a `mean()` was forgotten. 18: usually the code has no second `backward`. It still uses a tensor of the *last* step, such as a hidden state that wasn't detached. `retain_graph=True` silences the message, and keeps more and more memory. 19: the message says which tensor it is (`[3]`, output of `Exp`), which version the tensor has, and which version was saved. Look for `+=`, `relu_`, `x[...] =` after the forward. 20: a parameter was changed in place outside `no_grad`.
#
# One habit helps with all messages. Read the **last line** first, then find the lowest line of the traceback that is *yours*, and print shape, dtype and device of its tensors. And be careful. **Predict.** These lines are as wrong as any of the twenty. What do they raise?

# %%
q, k, v = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 6, 4)
print("five keys, six values:", tuple(F.scaled_dot_product_attention(q, k, v).shape))
print("(64, 1) against (64,):", tuple((torch.randn(64, 1) - torch.randn(64)).shape))
print("an index from behind: ", torch.arange(5)[torch.tensor([-1])].tolist())

# %% [markdown]
# They raise nothing. On a CPU, attention in this version accepts unequal numbers of keys and values. PyTorch can't know that a broadcast isn't what you meant. And an index of −1 means the last element. So if there is no message, that proves nothing.

# %% tags=["hide-input"]
choice(
    "`mat1 and mat2 shapes cannot be multiplied (128x3136 and 1568x10)`, after a flatten in a small CNN. What happened?",
    {
        "The batch is too large": "The batch is 128, the first number, and no layer depends on it.",
        "The layer before gives twice as many features as the linear layer was made for": "3,136 is 2 · 1,568. There are twice as many channels, or the image is larger than planned. Read the two inner numbers.",
        "The linear layer should be turned around": "Then mat2 would be (10, 1568), and it would still not fit.",
    },
    answer="The layer before gives twice as many features as the linear layer was made for",
)

# %% tags=["hide-input"]
true_false(
    "“one of the variables needed for gradient computation has been modified by an inplace operation … is at version 3; expected version 2”: the tensor was written to three times, and all three are wrong.", False,
    "Its version was 2 when it was saved for the backward. So two writes came before, and they are fine. Only the third came after.",
)

# %% [markdown]
# ## Reading nvidia-smi
#
# On a machine with a GPU, people look at `nvidia-smi` first. Here is the record's H100, three seconds after some work began.

# %%
pages = gpu.result("nvidia_smi")
print(*pages["one program"]["page"].strip().splitlines()[1:], sep="\n")

# %% [markdown]
# **Predict.** Is this GPU well used?
#
# *GPU-Util* is the trap. By NVIDIA's own definition it is the part of the last sample period in which *one or more kernels* were running. Here [phase 05](05_custom_op.ipynb#cell-id=one-program-one-row)'s softmax ran on a single row. That is one program on one of 132 multiprocessors, and the 131 others had nothing to do. So 100 % means only that the queue was never empty.
#
# *Pwr* tells you more. Arithmetic needs current, and 136 of 700 watts are little more than an idle card needs. We know this because the record has the idle card, too. **Predict.** The record has four cases: the card is idle; it runs one program; it runs products of 64 × 64, ordered one by one; it runs products of 8,192 × 8,192 in bfloat16. What are GPU-Util and power in the last two? The multiprocessors' clock is at most 1,980 MHz. What is it in each case?

# %%
print(f"{'':15}GPU-Util      power      clock   state  temperature")
for name, look in pages.items():
    util, power, _, clock, warm, state = look["figures"].values()
    print(f"{name:15}{util:>8} {power:>10} {clock:>10} {state:>7} {warm:>8} C")

# %% [markdown]
# With small products, the card is busy for a third of the time and needs no more power than when it is idle. That is MiniGPT's case in *Five bottlenecks*: the device waits for orders. With large products, it needs all of its 700 W. To stay within that limit it slows its clock by a third. So it computes most when its clock is slowest. (Zeros would need less current than these random numbers. And if you measure only the first second, you don't get the rate of a long run.)
#
# Now the rest of the page, from the top. *Driver Version* is the installed driver. *CUDA Version* beside it is the newest CUDA that this driver supports. The installed CUDA may be older, and so may the CUDA that your PyTorch was built with (`torch.version.cuda`). *GPU* and *Name*: the number is the 0 in `cuda:0`, unless `CUDA_VISIBLE_DEVICES` or a different order changes the numbers. *Bus-Id* is the card's place on the PCI bus, which doesn't depend on these numbers. *Persistence-M* says whether the driver stays loaded while no program uses the card. If it is off, the first program has to wait for the driver. *Disp.A* says whether a display is set up on the card. *Fan* is N/A, because this card has no fan. *Compute M.*: Default allows several processes at once. Exclusive Process allows only one, and others get an error. *MIG M.* says whether the card is divided into smaller ones. If it is, *GI* and *CI* below say which piece a process has, and *GPU-Util* is N/A.
#
# The page has no column for the clock. *Perf* is the state of the clocks, from P0, the fastest, to P8, asleep, and it is P0 in all four cases. *Temp* says how warm the card is. If *Pwr* is at its cap, the card is being slowed. *Memory-Usage* is the memory that the processes have taken from the driver: tensors, PyTorch's cache, and half a GiB for CUDA itself. The idle card also had seven GiB, which earlier work had left in the cache. So this figure doesn't show whether your batch would fit twice. *Volatile Uncorr. ECC* counts the memory errors that couldn't be corrected since the driver was loaded. If it isn't 0, somebody should check the machine. Below is a line for each process: its *PID*, its *Type* (C computes, G draws, C+G does both), and how much of the card's memory it uses. In a container this list is often empty, although the memory is in use.
#
# `nvidia-smi dmon` prints a line each second, and `nvidia-smi --query-gpu=utilization.gpu,power.draw,memory.used,clocks.sm --format=csv -l 1` writes the figures in a form that you can save.

# %% tags=["hide-input"]
number(
    "One program kept one of 132 multiprocessors busy, and GPU-Util said 100 %. What would it say if it measured the part of the *machine* that works?", 0.76,
    unit="%", tolerance=0.1,
    why="1 of 132. Nsight Compute and DCGM have such figures (SM activity, occupancy); nvidia-smi's page has none.",
    wrong={100: "That is the part of the *time*.", 19.4: "That is power divided by its cap, 136 of 700 W. Even an idle card is at 18 %."},
)

# %% tags=["hide-input"]
choice(
    "In nvidia-smi, GPU-Util jumps between 0 % and 100 % every second or two. Memory is steady, and power goes from 130 W to 600 W and back. What do you suspect?",
    {
        "A memory leak": "Then memory would climb.",
        "The loader: bursts of work, and waiting in between": "When there is a batch, the device computes at full power. Then it is idle. A trace shows this as one long gap in each step.",
        "Small launches": "With small launches power stays low and never reaches 600 W.",
    },
    answer="The loader: bursts of work, and waiting in between",
)

# %% [markdown]
# ## One step, from end to end
#
# Now we use all of this once, in the right order. Here is a training step that has grown over some months. Its results are right, but it is slow.

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
# *One: a reference.* Before we change the step, we save its results: the loss and the gradients.

# %%
def outcome(step):
    """The loss and the gradient of a step that begins at the shipped weights."""
    gpt.load_state_dict(load_minigpt().state_dict())
    loss, _ = step(x, y)
    return float(loss), torch.cat([p.grad.flatten() for p in gpt.parameters()])


reference = outcome(grown_step)
print(f"loss {reference[0]:.6f}, norm of the gradient {reference[1].norm():.4f}")

# %% [markdown]
# *Two: look.* **Predict.** The step has five things to fix. Which of them will you see in the table of self times, and which only in the counts?

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
# By self time the products are near the top, as they should be, and no name takes too much time. But the *counts* are unusual: MiniGPT has 13 linear layers, and `addmm` is called 32 times as often, because each layer runs once for each line. That is the loop, and it calls so many operators that no single name looks guilty. The conversions are in `copy_`, together with necessary copies. And you can't see in the table that the step asks for many numbers. Only the count shows this, and on a GPU these waits might cost most of all.
#
# *Three: name it, and compute the possible gain.* If a part takes the share s of the time and becomes k times as fast, the whole takes 1 − s + s/k of its old time. For an infinite k that is 1 − s. So no change of this part can make the step more than 1/(1 − s) times as fast. This is **Amdahl's law**. It takes a minute, and it can save you a day's work.
#
# **Predict.** The matrix products, `mm`, `addmm` and `bmm`, can't be removed: they are the model. How much faster could the step become if everything else cost nothing? And how much faster if only the optimizer cost nothing, or only the copies?

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
# So don't make single operators faster. Fix the reason why there are so many of them: the loop, which you found in the counts.
#
# *Four: fix it.* Fewer: compute all lines at once, and one loss for them. `cross_entropy` picks the right word by its index, so it needs no table of zeros and ones. Don't convert to float64. Larger: let the optimizer update all tensors together, and compute one norm for all. Later: let loss and norm stay tensors.

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
# The number of operators doesn't grow with the batch, the new step asks for no number, and it makes fewer bytes. That is true on every machine. Then we prove it by the clock, in turn, and warm.

# %%
grown, quick = [], []
for _ in range(25):
    grown.append(seconds(grown_step, x, y))
    quick.append(seconds(mended_step, x, y))
timing_spread({"grown": grown, "mended": quick})

# %% [markdown]
# The boxes don't overlap. The ratio in the title is from this page's machine, and yours will be different, but your boxes should not overlap, either. And the ratio is smaller than the counts suggest. On a CPU an operator costs a few microseconds, and the arithmetic is the same before and after. On a GPU the same changes would gain more, because of the waits and the launches. Only a GPU can say how much, and this step isn't in the record.
#
# *Six: look again.* What is at the top of the table now? And should you go on? To decide, compare the step with what the machine can do. From [phase 07](07_training.ipynb#cell-id=time-on-a-napkin): a step's FLOPs are 6 · N · tokens, where N is the number of weights that are multiplied (nearly all weights except the embeddings). The MFU is the achieved FLOP/s, divided by the peak FLOP/s.

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
# The products are at the top, or near it, as they should be, and the step reaches a good part of what this core can do. So stop here, and change something else: use a larger batch, a faster machine, or fewer tokens.
#
# Now you can answer the colleague's mail. She timed two functions that are the same, with one run each, on two different batches, and one of the runs was cold.

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/09_profiling/09_profiling.ipynb) of this phase asks you to do it:
#
# - profile some steps, warm, and name the operator that takes longest;
# - compute total and self from a list of events, including recursion;
# - find in a trace how busy host and device are, the longest gap, and which waits are innocent;
# - judge a trace moment by moment, and name its bottleneck;
# - speed up a slow loss, and prove it by counts;
# - name the first module that makes a NaN, and write a root with a finite gradient;
# - find the step that goes wrong in float16, and separate its own error from an inherited one;
# - see in an error message which sizes did not fit, and fix the cause;
# - write a report of a real MiniGPT step, and say in words when a gain can't be claimed.
#
# And you can answer the question. *Self* times and the device's gaps show where the time goes. You know it isn't noise if you measured warm, in turn and often, or if you counted. And you prove an improvement by the work that the program no longer does.

# %% [markdown]
# ## What this phase leaves out
#
# - **A GPU's own counters**: occupancy, cache hits, tensor-core use. NVIDIA's Nsight Systems draws traces like these with every CUDA call, and Nsight Compute looks into one kernel.
# - **Sampling profilers for Python** (`py-spy`, `austin`), which show what Python does in the gaps between operators. You needn't change the program for them.
# - **CUDA graphs in use**: the record has a replayed step. "CUDA semantics" (*Sources*) explains how to use a graph with new batches, several shapes and a scaler.
# - **Traces of several ranks.** Each process writes its own trace. Side by side the traces show which rank came last to a collective: its call is short, and the calls of all other ranks are long, because they waited inside. [Holistic Trace Analysis](https://github.com/facebookresearch/HolisticTraceAnalysis) reads all traces together. Phase 10 has no such traces. It draws which simulated rank waits for which, and computes how long a collective takes.
# - **Debuggers**: `breakpoint()`, and in a notebook `%debug` after an exception. It takes you to the line that raised, where you can look at all its tensors.

# %% [markdown]
# ## Sources
#
# - PyTorch's documentation: [`torch.profiler`](https://docs.pytorch.org/docs/stable/profiler.html), [`torch.utils.benchmark`](https://docs.pytorch.org/docs/stable/benchmark_utils.html), "[Autograd mechanics](https://docs.pytorch.org/docs/stable/notes/autograd.html)" (anomaly detection, hooks), "[Understanding CUDA Memory Usage](https://docs.pytorch.org/docs/stable/torch_cuda_memory.html)", "[CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)" (asynchronous execution, CUDA graphs), "[Gradcheck mechanics](https://docs.pytorch.org/docs/stable/notes/gradcheck.html)"; the recipes "[PyTorch Benchmark](https://docs.pytorch.org/tutorials/recipes/recipes/benchmark.html)" and "[Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)"; the tutorial "[A guide on good usage of `non_blocking` and `pin_memory()` in PyTorch](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)".
# - G. M. Amdahl, "[Validity of the single processor approach to achieving large scale computing capabilities](https://doi.org/10.1145/1465482.1465560)", AFIPS 1967.
# - T. Kalibera, R. Jones, "[Rigorous Benchmarking in Reasonable Time](https://kar.kent.ac.uk/33611/)", ISMM 2013; and T. Mytkowicz and others, "[Producing Wrong Data Without Doing Anything Obviously Wrong!](https://doi.org/10.1145/1508244.1508275)", ASPLOS 2009.
# - B. Gregg, "[The Flame Graph](https://doi.org/10.1145/2909476)", CACM 2016. H. He, "[Making Deep Learning Go Brrrr From First Principles](https://horace.io/brrr_intro.html)", 2022.
# - P. Micikevicius and others, "[Mixed Precision Training](https://arxiv.org/abs/1710.03740)", ICLR 2018.
# - NVIDIA, [manual page of `nvidia-smi`](https://docs.nvidia.com/deploy/nvidia-smi/index.html), and "[NVML API Reference](https://docs.nvidia.com/deploy/nvml-api/latest/index.html)" (`nvmlUtilization_t`). Google, "[Trace Event Format](https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU/preview)".
