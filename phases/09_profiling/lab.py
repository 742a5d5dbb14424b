# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 09: Profiling", points: 42, cell_seconds: 90, preload: [optimizers, profiler]}
# ---

# %% [markdown]
# # Lab 09: Profiling
#
# The lab has nine exercises and one question: 42 points, about three and a half hours. It follows
# [lesson 09](../../notebooks/09_profiling.ipynb). You profile a step, read traces, and find and
# remove a bottleneck. You hunt for a NaN, find the numbers that float16 loses, and fix six functions
# from their error messages. At the end you write the report on a training step of MiniGPT.
#
# No points depend on a clock. In the first exercise a real profiler runs, but its times are replaced
# by random ones. Most of your other functions get traces and tables as plain values. Traces with a
# GPU are *drawn*: a model of a machine made them, with noise, and nothing in them was measured. The
# last exercise is about MiniGPT. You profile it here, and grading uses the table of a step that was
# recorded on a CPU, with new random times. Some facts come from your own process: what a profiler
# does while a step runs, and how many operators and bytes your function needs. Exercises 1 and 5 name
# the points for them.
#
# Each graded cell begins with `check(...)`, which gives the same verdict as grading. Each time it
# uses new random values, sizes and traces. Parts of an exercise earn their points separately, and no
# exercise needs the answer to another exercise. Are you stuck? Each exercise has two folded hints.
# Run the next cell, then start.

# %% given="setup"
import math
import statistics
from collections import Counter
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils import benchmark

from hood.learner.check import check
from utils.drivers import profiling as driver
from utils.instruments.traces import KINDS, Event, drawn, of_profile, recorded_step
from utils.minigpt import MiniGPT, MiniGPTConfig, parameter_shapes
from utils.notebook.expect import expect_close, expect_equal

# %% [markdown]
# ## 1 · A profile of your own
#
# *Medium, 20 minutes, 4 points: one each for the operator, for share and calls, for what is recorded,
# and for what the profiler does meanwhile.*
# From the lesson: [A trace, and what looking costs](../../notebooks/09_profiling.ipynb#cell-id=a-trace-and-what-looking-costs).
#
# Somebody gives you a step and says that it is slow. Write `slowest(step, wait, warmup, active)`,
# which profiles this step with `torch.profiler`. `step` is a function without arguments, and it may
# do something different in each call. Call it `wait + warmup + active` times. In the first `wait`
# calls the profiler is off, in the next `warmup` it warms up, and the last `active` are recorded.
# `wait` and `warmup` may be 0, and `active` is at least 1. `slowest` returns a dict with three
# entries, each about all recorded steps together:
#
# - `"operator"`: the name of the operator with the largest self CPU time;
# - `"share"`: this operator's part of the self CPU time of all operators, a float;
# - `"calls"`: how often this operator ran in a step, on average, a float.
#
# Everything that the profiler has recorded is an operator, except labels. `record_function` puts a
# label around a piece of code, and the profiler itself puts one around each step. Not every
# operator's name begins with `aten::`. Autograd's nodes are operators, too.
#
# The driver replaces the times, so that a busy machine can't change the result. It runs your function
# with the real profiler, on small steps. Which operators run, how often, and inside which others, is
# real. Then, when you read the profile, the driver gives each event a time that depends on its name.
# It does so in `key_averages()`, in `events()`, and in a Chrome trace. Your own process says what the
# profiler does while a step runs.
#
# <details><summary>What is in a row of the table?</summary>
#
# `prof.key_averages()` gives rows with `key`, `count`, `self_cpu_time_total` and `is_user_annotation`,
# among many others.
# </details>
# <details><summary>Nothing was recorded, or the wrong steps</summary>
#
# The profiler counts steps by `prof.step()`, so call it after each step. And when a cycle of its
# schedule is over, the profiler begins the next one, unless you pass `repeat=1`.
# </details>

# %% solution="slowest"
def slowest(step: Callable[[], None], wait: int, warmup: int, active: int) -> dict:
    """The operator with the largest self time in the recorded steps, its share, calls a step."""
    ### BEGIN SOLUTION
    plan = schedule(wait=wait, warmup=warmup, active=active, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan) as prof:
        for _ in range(wait + warmup + active):
            step()
            prof.step()
    operators = [row for row in prof.key_averages() if not row.is_user_annotation]
    first = max(operators, key=lambda row: row.self_cpu_time_total)
    whole = sum(row.self_cpu_time_total for row in operators)
    return {
        "operator": first.key,
        "share": first.self_cpu_time_total / whole,
        "calls": first.count / active,
    }
    ### END SOLUTION

# %%
# four calls of a step, and each event's self time in nanoseconds
calls = [{"sort": 1, "exp": 1}, {"exp": 9}, {"exp": 2, "softmax": 3}, {"exp": 4, "softmax": 2}]
costs = {
    "aten::sort": 900_000,
    "aten::exp": 20_000,
    "aten::softmax": 5_000,
    "aten::_softmax": 30_000,
}
came = driver.profiled(
    slowest, calls, {**costs, "ProfilerStep*": 400_000}, wait=1, warmup=1, active=2
)
expect_equal("the operator", came["found"]["operator"], "aten::_softmax")
expect_close("its share", came["found"]["share"], 150 / (120 + 25 + 150), rtol=1e-3)
expect_close("its calls", came["found"]["calls"], 2.5)
expect_equal("the profiler", came["states"], ["off", "warming up", "recording", "recording"])

# %%
# a label, and a function that somebody has written in NumPy
calls = [{"blend": 1}, {"blend": 1, "tanh": 5}, {"blend": 1, "tanh": 4}]
costs = {"forward": 800_000, "BlendBackward": 90_000, "aten::tanh": 15_000}
came = driver.profiled(slowest, calls, costs, wait=0, warmup=1, active=2, label="forward")
expect_equal("the operator", came["found"]["operator"], "BlendBackward")
expect_close("its share", came["found"]["share"], 180 / 315, rtol=1e-2)
expect_equal("the profiler", came["states"], ["warming up", "recording", "recording"])

# %%
# real times: a training step of MiniGPT on your machine
record = recorded_step()
model = MiniGPT(record.config)
optimizer = torch.optim.AdamW(model.parameters())
words = torch.randint(0, 600, record.batch)
def training_step():
    F.cross_entropy(model(words).flatten(0, 1), words.flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
print(slowest(training_step, wait=0, warmup=1, active=3))

# %% test="slowest" points=4
# Graded
check("slowest")
came = driver.profiled(
    slowest,
    [{"exp": 1, "mm": 3}],
    {"aten::exp": 90_000, "aten::mm": 30_001},
    wait=0,
    warmup=0,
    active=1,
)
expect_equal("one step", (came["found"]["operator"], came["found"]["calls"]), ("aten::mm", 3.0))
### BEGIN HIDDEN TESTS
verify("slowest", slowest)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · Total and self
#
# *Medium, 20 minutes, 4 points: one each for events in each other, for several lanes, for spans that
# touch, and for events inside one of their own name.*
# From the lesson: [Total and self](../../notebooks/09_profiling.ipynb#cell-id=total-and-self).
#
# A trace is a list of `Event(name, start, duration, lane, kind, correlation)`, in whole nanoseconds,
# and `event.end` is start plus duration. Here only name, times and lane matter. On one lane, two
# events either don't overlap or one is inside the other. If one ends at the time at which the other
# starts, they don't overlap. If two events have the same start and the same end, the one that comes
# earlier in the list is the outer one. Apart from that, the list may be in any order. Events of
# different lanes have nothing to do with each other.
#
# Write `self_times(events)`, which returns a dict: for each name a tuple `(calls, total, self)` of
# whole numbers, over all lanes:
#
# - `calls`: how many events have the name;
# - `self`: the sum of the durations of these events, each without the durations of the events
#   directly inside it;
# - `total`: the sum of the durations of these events. But if an event is inside an event of the same
#   name, however deep, it adds nothing, because its time is already in the total.
#
# Every duration is at least 1, events are at most some dozens of levels deep, and the list may be
# empty.
#
# <details><summary>How do I find out which event is inside which?</summary>
#
# Sort a lane's events by their start, and the longer one first if two start together. Keep a stack of
# the events that have not ended yet. The one on top is the parent of the next event.
# </details>
# <details><summary>How do I subtract only what is directly inside?</summary>
#
# Subtract each event's duration from the self time of its parent only. For the total, the names on
# the stack show whether an event is inside an event of the same name.
# </details>

# %% solution="self_times"
def self_times(events: list[Event]) -> dict[str, tuple[int, int, int]]:
    """Calls, total and self time of each name, in nanoseconds."""
    ### BEGIN SOLUTION
    found = {}
    stacks = {}
    for event in sorted(events, key=lambda event: (event.start, -event.duration)):
        stack = stacks.setdefault(event.lane, [])
        while stack and stack[-1].end <= event.start:
            stack.pop()
        calls, total, own = found.get(event.name, (0, 0, 0))
        if all(outer.name != event.name for outer in stack):
            total += event.duration
        found[event.name] = calls + 1, total, own + event.duration
        if stack:
            calls, total, own = found[stack[-1].name]
            found[stack[-1].name] = calls, total, own - event.duration
        stack.append(event)
    return found
    ### END SOLUTION

# %%
few = [Event("linear", 0, 100), Event("addmm", 20, 60), Event("copy_", 25, 10), Event("t", 5, 10)]
want = {"linear": (1, 100, 30), "addmm": (1, 60, 50), "copy_": (1, 10, 10), "t": (1, 10, 10)}
expect_equal("a linear layer", self_times(few), want)
touching = [
    Event("exp", 50, 50),
    Event("sum", 0, 50),
    Event("sum", 100, 50, "cpu 2"),
    Event("mul", 110, 40, "cpu 2"),
]
expect_equal(
    "two threads",
    self_times(touching),
    {"exp": (1, 50, 50), "sum": (2, 100, 60), "mul": (1, 40, 40)},
)
copies = [Event("to", 0, 90), Event("copy_", 10, 70), Event("to", 20, 50), Event("to", 82, 5)]
expect_equal("to inside to", self_times(copies), {"to": (3, 90, 70), "copy_": (1, 70, 20)})

# %%
# a real profile: torch's self time and yours
with profile(activities=[ProfilerActivity.CPU]) as profiled:
    torch.nn.Linear(8, 8)(torch.ones(2, 8)).softmax(-1)
mine = self_times(of_profile(profiled))
torchs = {row.key: row.self_cpu_time_total for row in profiled.key_averages()}
expect_close(
    "linear, in microseconds", mine["aten::linear"][2] / 1000, torchs["aten::linear"], atol=0.01
)

# %% test="self_times" points=4
# Graded
check("self_times")
expect_equal("nothing", self_times([]), {})
### BEGIN HIDDEN TESTS
verify("self_times", self_times)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 · Two clocks
#
# *Medium, 25 minutes, 4 points: one for busy lanes, one for the gap, two for the device time of each
# name.*
# From the lesson: [Two clocks](../../notebooks/09_profiling.ipynb#cell-id=two-clocks).
#
# Now there is a device beside the host. The lanes of the host are `"cpu"`, `"cpu 2"` and so on. The
# names of the device's lanes begin with `"gpu"`, and for their events `event.on_device` is True.
# Events on the host have the kind `"range"` (a label around a piece of code), `"op"` or `"call"` (a
# CUDA call). Events on the device have the kind `"kernel"` or `"copy"`. A call that starts work on
# the device has the same `correlation` as that work. `None` means that there is no such link.
#
# Write `lanes(events)`, which returns a dict with three entries, in nanoseconds:
#
# - `"busy"`: for each lane of the trace, how long at least one event ran there. Events may overlap,
#   or be inside each other. A range is a label and not work, so it doesn't count, and a lane with
#   only ranges is busy for 0.
# - `"gap"`: the longest time between the device's first event and its last in which nothing ran on
#   any of its lanes. If there is no such time, or no device, it is 0.
# - `"launched"`: for each name of a range or an op on the host, a pair. Its first number is the sum
#   of the durations of the events with this name. Its second number is the sum of the durations of
#   all device events that were started from inside them. A device event was started from inside an
#   event if the call with its correlation is on the event's lane and within the event's time,
#   including both ends. Here no event is inside another event of the same name, and no two calls have
#   the same correlation. But one call can have started several device events, and for some device
#   events the trace has no call.
#
# So each piece of your code has two times. A clock around the code would measure the host's time. The
# device's time is the real cost.
#
# <details><summary>Overlapping events</summary>
#
# Sort the events by their start, and keep the latest end so far. If an event starts after this end,
# there is a gap. If an event ends after it, the part after it is new busy time.
# </details>
# <details><summary>How do I find the call that launched a kernel?</summary>
#
# First make a dict from correlations to calls. Then, for each device event, find its call, and all
# ranges and ops around that call.
# </details>

# %% solution="lanes"
def lanes(events: list[Event]) -> dict:
    """How busy each lane is, the device's longest gap, and host and device time of each name."""
    ### BEGIN SOLUTION
    def covered(spans):
        """The time that the spans cover, and the longest gap between them."""
        total = longest = 0
        reached = None
        for span in sorted(spans, key=lambda event: event.start):
            if reached is None:
                reached = span.start
            longest = max(longest, span.start - reached)
            total += max(0, span.end - max(span.start, reached))
            reached = max(reached, span.end)
        return total, longest

    busy = {}
    for lane in {event.lane for event in events}:
        busy[lane], _ = covered(e for e in events if e.lane == lane and e.kind != "range")
    calls = {e.correlation: e for e in events if e.kind == "call" and e.correlation is not None}
    labels = [e for e in events if e.kind in ("range", "op")]
    launched = {}
    for event in labels:
        host, device = launched.get(event.name, (0, 0))
        launched[event.name] = host + event.duration, device
    for work in events:
        call = calls.get(work.correlation)
        if not work.on_device or call is None:
            continue
        for event in labels:
            if event.lane == call.lane and event.start <= call.start and call.end <= event.end:
                host, device = launched[event.name]
                launched[event.name] = host, device + work.duration
    gap = covered(e for e in events if e.on_device)[1]
    return {"busy": busy, "gap": gap, "launched": launched}
    ### END SOLUTION

# %%
short = [
    Event("forward", 0, 40, "cpu", "range"),
    Event("mm", 5, 10, "cpu", "op"),
    Event("cudaLaunchKernel", 7, 5, "cpu", "call", 1),
    Event("gemm", 15, 60, "gpu 7", "kernel", 1),
    Event("item", 45, 42, "cpu", "op"),
    Event("cudaMemcpyAsync", 46, 4, "cpu", "call", 2),
    Event("Memcpy DtoH", 78, 2, "gpu 7", "copy", 2),
    Event("cudaStreamSynchronize", 51, 34, "cpu", "call"),
]
came = lanes(short)
expect_equal("busy", came["busy"], {"cpu": 52, "gpu 7": 62})
expect_equal("the gap", came["gap"], 3)
expect_equal("launched", came["launched"], {"forward": (40, 60), "mm": (10, 60), "item": (42, 2)})
more = [
    Event("copy", 0, 50, "gpu 20", "copy", 9),
    Event("gemm", 10, 10, "gpu 7", "kernel", 3),
    Event("add", 15, 15, "gpu 7", "kernel", 3),
    Event("mul", 60, 10, "gpu 20", "kernel"),
    Event("replay", 0, 20),
    Event("cudaGraphLaunch", 2, 8, "cpu", "call", 3),
    Event("mm", 1, 30, "cpu 2"),
    Event("replay", 32, 4),
    Event("epoch", 0, 100, "cpu 3", "range"),
]
came = lanes(more)
expect_equal(
    "two streams: busy",
    came["busy"],
    {"cpu": 24, "cpu 2": 30, "cpu 3": 0, "gpu 7": 20, "gpu 20": 60},
)
expect_equal("two streams: the gap", came["gap"], 10)
expect_equal(
    "one call, two kernels",
    came["launched"],
    {"replay": (24, 25), "mm": (30, 0), "epoch": (100, 0)},
)

# %%
# drawn, not measured: which name looks slow on the host, and which one takes the device's time?
for name, (host, device) in lanes(drawn("compute", 3, covered="sync"))["launched"].items():
    print(f"{name:45} host {host / 1e6:6.3f} ms, device {device / 1e6:6.3f} ms")

# %% test="lanes" points=4
# Graded
check("lanes")
expect_equal("nothing at all", lanes([]), {"busy": {}, "gap": 0, "launched": {}})
### BEGIN HIDDEN TESTS
verify("lanes", lanes)
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · The bottleneck
#
# *Medium, 25 minutes, 4 points: one each for the loader, for Python and launches, for waiting, and
# for copies. Some traces only look like these cases.*
# From the lesson: [Five bottlenecks](../../notebooks/09_profiling.ipynb#cell-id=five-bottlenecks).
#
# `drawn(kind, seed)` draws a trace of two training steps on a machine with a GPU. Mainly one thing
# slows these steps down, and `KINDS` has the six kinds. Write `bottleneck(events)`, which looks at
# such a trace and returns its kind. Each moment from the first event's start to the last event's end
# goes to one account, and the kind is the account with the most time:
#
# | moment | account |
# |---|---|
# | a kernel runs on the device, on any of its lanes | `"compute"` |
# | else, a copy runs there | `"copy"` |
# | else, the host is in a range with `DataLoader` in its name | `"loader"` |
# | else, when the device had run dry, the host was in a call with `Synchronize` in its name | `"sync"` |
# | else, the host is in an op or a call | `"launches"` |
# | anything else: the host is in a range and in nothing else, or in nothing at all | `"python"` |
#
# The device runs dry when a kernel or copy ends and no other runs. Before the first kernel or copy it
# has not run dry. In each trace of the check, one account has more than half of all time, and more
# than twice the time of any other account. So you needn't be exact to the nanosecond: any way that
# finds the largest account is enough. Look at some traces first. The longest event on the host is
# often innocent, because the device may be working while the host waits or loads.
#
# <details><summary>Where do I begin?</summary>
#
# Begin with the device. For how much of the time does a kernel run? For how much of the rest does a
# copy run? If one of them takes more than half of the time, you are done. If not, go through the
# gaps.
# </details>
# <details><summary>How do I go through all moments?</summary>
#
# Sort all starts and ends. Between two neighbours in this list nothing changes, so each such piece of
# time has one account. Or, for each gap, look at what the host did when it began, and for how much of
# the gap.
# </details>

# %% solution="bottleneck"
def bottleneck(events: list[Event]) -> str:
    """The account with the most time: one of `KINDS`."""
    ### BEGIN SOLUTION
    accounts = Counter()
    times = sorted({time for event in events for time in (event.start, event.end)})
    dry, waited = True, False
    for begin, end in zip(times, times[1:]):
        now = [event for event in events if event.start <= begin < event.end]
        kinds = {event.kind for event in now}
        if kinds & {"kernel", "copy"}:
            dry = False
            accounts["compute" if "kernel" in kinds else "copy"] += end - begin
            continue
        if not dry:
            dry, waited = True, any("Synchronize" in event.name for event in now)
        if any("DataLoader" in event.name for event in now):
            accounts["loader"] += end - begin
        elif waited:
            accounts["sync"] += end - begin
        else:
            accounts["launches" if kinds & {"op", "call"} else "python"] += end - begin
    return max(accounts, key=accounts.get)
    ### END SOLUTION

# %%
for kind in KINDS:
    expect_equal(kind, [bottleneck(drawn(kind, seed)) for seed in range(3)], [kind] * 3)
for covered in ("loader", "python", "sync", "copy", "launches"):
    expect_equal(
        f"{covered}, while a kernel runs",
        bottleneck(drawn("compute", 1, covered=covered)),
        "compute",
    )
second = [
    Event("DataLoader", 0, 70, "cpu 2", "range"),
    Event("stack", 9, 55, "cpu 2"),
    Event("mm", 70, 5),
]
expect_equal(
    "a loader's thread", bottleneck([*second, Event("gemm", 74, 16, "gpu 7", "kernel")]), "loader"
)
kernels = [Event("gemm", start, 9, "gpu 7", "kernel") for start in (3, 64)]
late = [Event("mm", 0, 4), Event("cudaStreamSynchronize", 4, 10, "cpu", "call"), Event("mm", 60, 5)]
expect_equal("a wait, and what comes of it", bottleneck([*kernels, *late]), "sync")

# %% test="bottleneck" points=4
# Graded
check("bottleneck")
expect_equal("one more", bottleneck(drawn("sync", 99, steps=1)), "sync")
### BEGIN HIDDEN TESTS
verify("bottleneck", bottleneck)
### END HIDDEN TESTS

# %% [markdown]
# ## 5 · Fewer, larger, later
#
# *Hard, 30 minutes, 5 points: one each for the loss with its gradient, for the share of right
# answers, for a number of operators that doesn't grow, for no waiting, and for few bytes.*
# From the lesson: [Fewer, larger, later](../../notebooks/09_profiling.ipynb#cell-id=fewer-larger-later).
#
# The next cell has `slow_loss`. Its values are right, but it has every bottleneck that a function of
# tensors can have. Write `faster_loss(logits, targets)`, which returns the same two numbers. `logits`
# is (B, T, V), float32, and `targets` is (B, T), int64. A target of -100 doesn't count. A sentence in
# which no target counts is left out, and at least one target counts. Both numbers are tensors without
# dimensions, float32, on the device of the logits:
#
# - the loss: take the mean over each sentence's targets, then the mean over the sentences. Its
#   gradient is the same as in `slow_loss`;
# - the share of right answers: of all targets that count, the share with the largest logit at the
#   target. There are no ties.
#
# Besides right values, three things are required:
#
# - *Fewer.* Twelve sentences must need as many operators as three sentences, in the forward and in
#   the backward. More tokens in a sentence must not change this number, either.
# - *Larger, and not more.* All tensors that the forward makes together must have at most 1.5 times
#   the logits' bytes, for a V of 256. That is enough for one tensor of the logits' size, and for
#   small ones.
# - *Later.* The function must not ask for a number: no `.item()`, no `if` about a tensor's values,
#   and no result with a size that depends on values, such as `x[mask]`. On a GPU each of these waits
#   until the device is done. The driver calls your function with tensors on the device `meta`. They
#   have shapes and no values, so asking for a value raises an error. If you make tensors inside, make
#   them on the device of the logits. The driver checks that, too.
#
# A `TorchDispatchMode` in your own process counts operators and bytes while your function runs. These
# counts are *claims* of that process, and grading believes them only if the values are right, too.
#
# <details><summary>How do I get rid of the loop over tokens?</summary>
#
# `F.cross_entropy` takes all tokens at once. With `reduction="none"` it gives a loss for each token.
# If a target is the `ignore_index`, by default -100, the loss is 0.
# </details>
# <details><summary>How do I leave out sentences without an <code>if</code>?</summary>
#
# First divide by a number that can't be 0. Afterwards multiply by 0, or divide by a count. A mask is
# a normal tensor, so its sum is a count.
# </details>

# %% given="slow_loss"
def slow_loss(logits, targets):
    means, right, counted = [], 0, 0
    for b in range(len(logits)):
        losses = []
        for t in range(logits.shape[1]):
            if targets[b, t].item() == -100:
                continue
            row = logits.clone()[b, t]
            losses.append(row.double().logsumexp(0) - row[targets[b, t]])
            right += int(row.argmax() == targets[b, t])
            counted += 1
        if losses:
            means.append(torch.stack(losses).mean().float())
    return torch.stack(means).mean(), torch.tensor(right / counted)

# %% solution="faster_loss"
def faster_loss(logits: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss, a mean of means, and the share of right answers, without any wait."""
    ### BEGIN SOLUTION
    counts = targets != -100
    losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    in_sentence = counts.sum(1)
    means = losses.view_as(targets).sum(1) / in_sentence.clamp(min=1)
    loss = means.sum() / (in_sentence > 0).sum()
    right = ((logits.argmax(2) == targets) & counts).sum() / counts.sum()
    return loss, right
    ### END SOLUTION

# %%
torch.manual_seed(0)
logits = torch.randn(3, 4, 256)
targets = torch.tensor([[7, 200, -100, 31], [-100] * 4, [90, -100, -100, -100]])
logits[0, 3, 31] = 9.0
slow, fast = (
    driver.counted(slow_loss, logits, targets),
    driver.counted(faster_loss, logits, targets),
)
expect_close("the loss", fast["loss"], slow["loss"], rtol=1e-4)
expect_close("its gradient", fast["gradient"], slow["gradient"], rtol=1e-3, atol=1e-6)
expect_close("the share of right ones", fast["share"], slow["share"])
print(f"operators there and back: {slow['operators']} before, {fast['operators']} now")
print(f"bytes there and back: {slow['bytes']} before, {fast['bytes']} now")

# %%
# four times as many sentences
more = driver.counted(faster_loss, logits.repeat(4, 1, 1), targets.repeat(4, 1))
expect_equal("as many operators", more["operators"], fast["operators"])
expect_equal(
    f"few bytes: {fast['bytes'][0] / logits.nbytes:.2f} times the logits",
    fast["bytes"][0] <= 1.5 * logits.nbytes,
    True,
)
print("slow_loss without numbers:", driver.asks(slow_loss, logits, targets))
expect_equal("without numbers", driver.asks(faster_loss, logits, targets), None)

# %%
# by the clock: one ratio, with its spread; it earns no points
took = []
for loss_of in (slow_loss, faster_loss):
    names = {"loss_of": loss_of, "logits": logits, "targets": targets}
    timer = benchmark.Timer("loss_of(logits, targets)", globals=names)
    timer.timeit(3)  # what only the first calls pay for
    took.append([timer.timeit(2).mean for _ in range(15)])
    _, median, _ = statistics.quantiles(took[-1], n=4)
    print(
        f"{loss_of.__name__:12} {median * 1e3:.3f} ms, from {min(took[-1]) * 1e3:.3f} to "
        f"{max(took[-1]) * 1e3:.3f}"
    )
ratio = statistics.median(took[0]) / statistics.median(took[1])
print(
    f"{ratio:.1f} times as fast, here and now; the slowest of the new against the fastest of the "
    f"old: {min(took[0]) / max(took[1]):.1f}"
)

# %% test="faster_loss" points=5
# Graded
check("faster_loss")
logits = torch.randn(1, 4, 256)
logits[0, 3, 31] = 9.0
only = driver.counted(faster_loss, logits, torch.tensor([[-100, -100, -100, 31]]))
expect_close("one target", only["share"], 1.0)
### BEGIN HIDDEN TESTS
verify("faster_loss", faster_loss)
### END HIDDEN TESTS

# %% [markdown]
# ## 6 · The NaN hunt
#
# *Hard, 30 minutes, 5 points: two for the first bad module, one for leaving no trace; one for the
# root's value, one for its gradient.*
# From the lesson: [The NaN hunt](../../notebooks/09_profiling.ipynb#cell-id=the-nan-hunt).
#
# A loss is NaN. Everything after the first NaN is NaN as well, so the last NaN doesn't help you.
# Write two functions:
#
# - `first_bad(model, x)` runs `model(x)` and finds the first module with an output that isn't finite,
#   in the order in which modules return. It returns a tuple `(name, what, fine)`. `name` is the
#   module's name as in `model.named_modules()`, with `""` for the model itself. `what` is `"nan"` if
#   the output contains a NaN, and `"inf"` if it contains infinities and no NaN. `fine` says whether
#   the input of that module, in that call, was finite. If all outputs are finite, the function
#   returns `None`. Each module takes one tensor and returns one, and a module may be called several
#   times. The run may go on to its end, or stop at the bad module. Afterwards the model must be as
#   before: no hook remains on it, no global hook remains, and its mode and attributes are the same.
# - `safe_root(x)` is the root of x where x is positive, and 0 where x is 0 or negative. Its gradient
#   is 1/(2√x) where x is positive, however small, and 0 where x is 0 or negative. A NaN must stay a
#   NaN, because a hidden NaN causes trouble later, at a different place. x has any shape, float32 or
#   float64.
#
# `driver.Chain` makes small models from words. It runs its parts one after the other.
#
# <details><summary>A hook</summary>
#
# `module.register_forward_hook(hook)` calls `hook(module, args, output)` when that module returns,
# and gives you a handle with `remove()`. `args` is a tuple. If the hook needs a name, too, write a
# function that takes the name and returns the hook. With a lambda in a loop, all hooks would see the
# last name.
# </details>
# <details><summary>Why is the gradient NaN where the value is right?</summary>
#
# `torch.where` gives a gradient of 0 to the branch that it doesn't choose. The chain rule multiplies
# this 0 by the root's derivative, which is infinite at 0, and 0 times infinity is NaN. So the root
# must never see such an x.
# </details>

# %% solution="first_bad"
def first_bad(model: torch.nn.Module, x: torch.Tensor) -> tuple[str, str, bool] | None:
    """The first module with a bad output: its name, "nan" or "inf", whether its input was fine."""
    ### BEGIN SOLUTION
    found = []

    def watch(name):
        def hook(module, args, output):
            if not output.isfinite().all():
                what = "nan" if output.isnan().any() else "inf"
                found.append((name, what, bool(args[0].isfinite().all())))

        return hook

    handles = [part.register_forward_hook(watch(name)) for name, part in model.named_modules()]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None
    ### END SOLUTION


def safe_root(x: torch.Tensor) -> torch.Tensor:
    """The root where x is positive, 0 elsewhere; its gradient is finite at 0 and below."""
    ### BEGIN SOLUTION
    low = x <= 0
    root = torch.where(low, 1, x).sqrt()
    return torch.where(low, 0, root)
    ### END SOLUTION

# %%
chain = {"parts": {"embed": "times 3", "block": {"up": "exp", "down": "log"}, "head": "softmax"}}
came = driver.hunted(first_bad, chain, torch.tensor([1.0, 40.0]))
expect_equal("exp is too large", came["found"], [("block.up", "inf", True)])
came = driver.hunted(first_bad, chain, torch.tensor([1.0, 2.0]), times=2)
expect_equal("all is well", came, {"found": [None, None], "hooks left": 0, "as before": True})
own = {"parts": {"first": "tanh"}, "last": "over itself"}
expect_equal(
    "the model itself",
    driver.hunted(first_bad, own, torch.tensor([0.0, 1.0]))["found"],
    [("", "nan", True)],
)
came = driver.hunted(first_bad, {"parts": {"first": "keep"}}, torch.tensor([1.0, -math.inf]))
expect_equal("an input that isn't finite", came["found"], [("first", "inf", False)])

# %%
x = torch.tensor([4.0, 0.0, -9.0, 0.25])
came = driver.rooted(safe_root, x, torch.ones(4))
expect_close("the root", came["value"], [2.0, 0.0, 0.0, 0.5])
expect_close("its gradient", came["gradient"], [0.25, 0.0, 0.0, 1.0])

# %% test="first_bad" points=5
# Graded
check("first_bad")
expect_equal(
    "a NaN",
    driver.rooted(safe_root, torch.tensor([math.nan, 1.0]), torch.ones(2))["value"].isnan(),
    torch.tensor([True, False]),
)
### BEGIN HIDDEN TESTS
verify("first_bad", first_bad=first_bad, safe_root=safe_root)
### END HIDDEN TESTS

# %% [markdown]
# ## 7 · Why did float16 make it worse?
#
# *Medium, 20 minutes, 3 points: one for numbers that overflow, one for numbers that vanish, one for
# rounding.*
# From the lesson: [Why fp16 made it worse](../../notebooks/09_profiling.ipynb#cell-id=why-fp16-made-it-worse).
#
# A computation is a list of steps. Each step is a pair `(name, function)`, and the function maps a
# tensor to a tensor. Write `worse_in_half(steps, x)`. It says for each step what float16 does to this
# step *alone*, without the errors of earlier steps. `x` is float32, and the float32 result of a step
# is the right input of the next step. Compute each step a second time, with its right input converted
# to float16, so that it returns float16. Return a list with a tuple for each step, in order: `(name,
# overflowed, vanished, worst)`.
#
# - `overflowed`: how many numbers are finite in float32 and not finite in float16.
# - `vanished`: how many numbers are 0 in float16 and not 0 in float32. Numbers that are NaN in
#   float32 may count here or not.
# - `worst`: the largest relative error of all other numbers that are finite and not 0 in float32. The
#   relative error is the absolute difference of the float16 and the float32 number, computed in
#   float32, divided by the absolute value of the float32 number. If no numbers are left, it is 0.0.
#
# The counts are Python integers, and `worst` is a float.
#
# <details><summary>Which input does the float16 step get?</summary>
#
# It gets the input of the float32 step, converted: `right.half()`. If you passed on the float16
# result, you would count one overflow again in each later step.
# </details>
# <details><summary>Masks</summary>
#
# One mask says which numbers overflowed, a second which vanished, and a third which are left. If no
# numbers are left, there is no largest error: `max` of an empty tensor raises an error.
# </details>

# %% solution="worse_in_half"
def worse_in_half(steps: list, x: torch.Tensor) -> list[tuple[str, int, int, float]]:
    """What float16 does to each step, given its right input."""
    ### BEGIN SOLUTION
    found = []
    for name, function in steps:
        right, half = function(x), function(x.half()).float()
        overflowed = right.isfinite() & ~half.isfinite()
        vanished = (half == 0) & (right != 0)
        rest = right.isfinite() & (right != 0) & ~overflowed & ~vanished
        errors = ((half - right) / right).abs()[rest].tolist()
        found.append((name, int(overflowed.sum()), int(vanished.sum()), max(errors, default=0.0)))
        x = right
    return found
    ### END SOLUTION

# %%
x = torch.tensor([0.5, 300.0, 2.0**-13, 0.0])
came = driver.in_half(worse_in_half, ["square", "times 1e-2"], x)
expect_equal("names", [name for name, *_ in came], ["square", "times 1e-2"])
expect_equal("a square: one overflows, one vanishes", came[0][1:3], (1, 1))
expect_equal("the next step gets the right numbers", came[1][1:3], (1, 1))
expect_close("the square of 0.5 is exact", came[0][3], 0.0)
came = driver.in_half(worse_in_half, ["plus 1024", "plus -1024"], torch.tensor([1.0, 1.4]))
expect_close("1025.4 is rounded to 1025", came[0][3], 0.4 / 1025.4, rtol=0.01)
expect_close("without the 1024 this error is large", came[1][3], 0.4 / 1.4, rtol=0.01)

# %% test="worse_in_half" points=3
# Graded
check("worse_in_half")
x = torch.tensor([0.5, 300.0, 2.0**-13, 0.0])
expect_equal("no steps", driver.in_half(worse_in_half, [], x), [])
came = driver.in_half(worse_in_half, ["times 3e38", "times 2"], torch.tensor([4.0, -0.125]))
expect_equal("infinite in float32, too", came, [("times 3e38", 1, 0, 0.0), ("times 2", 1, 0, 0.0)])
### BEGIN HIDDEN TESTS
verify("worse_in_half", worse_in_half)
### END HIDDEN TESTS

# %% [markdown]
# ## 8 · Six messages
#
# *Medium, 20 minutes, 5 points: two for `centered` and `head`, two for `scores` and `word_loss`, and
# one for `extended` and `convolved`. Each needs the fixed functions and their entries in `met`.*
# From the lesson: [Twenty messages](../../notebooks/09_profiling.ipynb#cell-id=twenty-messages).
#
# A colleague sends you six functions. Their docstrings are right, but each function raises an error.
# The next two cells show his code, and the messages that he got.

# %% given="broken"
def broken_centered(x):
    """(N, D): each row of x (N, D), less the row's own mean."""
    return x - x.mean(1)


def broken_head(x, weight):
    """(B, T, V): the product of x (B, T, D) and a weight (D, V)."""
    return F.linear(x, weight)


def broken_scores(q, k):
    """(B, H, S, T): each query (B, H, S, D) times each key (B, H, T, D) of the same head."""
    return q @ k


def broken_word_loss(logits, targets):
    """(): the mean cross-entropy of logits (B, T, V), targets (B, T); -100 doesn't count."""
    return F.cross_entropy(logits, targets)


def broken_extended(cache, new):
    """(B, H, T + S, D): a cache (B, H, T, D), and what is new (B, H, S, D) behind it in time."""
    return torch.cat([cache, new])


def broken_convolved(pictures, weight):
    """(N, Y, X, O): pictures (N, H, W, C) under a weight (O, C, h, w), unpadded; channels last."""
    return F.conv2d(pictures, weight)


sent = {
    broken_centered: [torch.ones(3, 4)],
    broken_head: [torch.ones(2, 7, 5), torch.ones(5, 6)],
    broken_scores: [torch.ones(2, 3, 4, 5), torch.ones(2, 3, 7, 5)],
    broken_word_loss: [torch.ones(2, 7, 6), torch.zeros(2, 7, dtype=torch.int64)],
    broken_extended: [torch.ones(2, 3, 7, 5), torch.ones(2, 3, 1, 5)],
    broken_convolved: [torch.ones(2, 9, 8, 3), torch.ones(4, 3, 2, 2)],
}

# %%
for function, arguments in sent.items():
    print(f"{function.__name__:17} {driver.complaint(function, arguments)}")

# %% [markdown]
# First read the messages. Each message has two sizes that should be equal and aren't. Where do they
# come from? Write `met()`, which returns a dict. For each function (`"centered"`, `"head"` and so on)
# it has a tuple or a list of two pairs `(argument, dimension)`, one pair for each size. A pair names
# the argument and the dimension of its shape. Count dimensions from 0, or from the end with -1, as
# torch does. If `x @ y` is called with (2, 3) and (4, 5), the pairs are `(("x", 1), ("y", 0))`. The
# two pairs can be in any order. A message is about *operands*. Between an argument and an operand
# there may be a mean, a transpose, or a flatten.
#
# Then fix the six functions. Write them under their names without `broken_`, so that each does what
# its docstring says. No function may change its arguments. All sizes are at least 1, but the T of a
# cache may be 0. Sizes may also be equal. Then most of the colleague's functions raise no error but
# are still wrong. Tensors are float32 or float64, all of one dtype, and the result has this dtype,
# too. Targets are int64. All tensors may have any strides, targets as well. At least one target
# counts.
#
# If the message disappears, the function may still be wrong: a `reshape` often gives the right shape
# and the wrong numbers.
#
# <details><summary>mat2 is not the tensor that I passed</summary>
#
# `F.linear` multiplies by the *transpose* of its weight, because it expects (out, in). So the first
# number of mat2 is the last number of the weight's shape.
# </details>
# <details><summary>How do I move a dimension without mixing up the numbers?</summary>
#
# `transpose` and `permute` change the order of dimensions. `reshape` reads the numbers in their old
# order and cuts them into new rows. So it is right only if you join or split neighbouring dimensions.
# </details>

# %% solution="six_messages"
def met() -> dict:
    """For each function, the two dimensions that had to have equal sizes."""
    ### BEGIN SOLUTION
    return {
        "centered": (("x", 1), ("x", 0)),
        "head": (("x", 2), ("weight", 1)),
        "scores": (("q", 3), ("k", 2)),
        "word_loss": (("logits", 2), ("targets", 1)),
        "extended": (("cache", 2), ("new", 2)),
        "convolved": (("weight", 1), ("pictures", 1)),
    }
    ### END SOLUTION


def centered(x: torch.Tensor) -> torch.Tensor:
    """(N, D): each row of x (N, D), less the row's own mean."""
    ### BEGIN SOLUTION
    return x - x.mean(1, keepdim=True)
    ### END SOLUTION


def head(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """(B, T, V): the product of x (B, T, D) and a weight (D, V)."""
    ### BEGIN SOLUTION
    return x @ weight
    ### END SOLUTION


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """(B, H, S, T): each query (B, H, S, D) times each key (B, H, T, D) of the same head."""
    ### BEGIN SOLUTION
    return q @ k.transpose(-2, -1)
    ### END SOLUTION


def word_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """(): the mean cross-entropy of logits (B, T, V), targets (B, T); -100 doesn't count."""
    ### BEGIN SOLUTION
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())  # shown
    ### END SOLUTION


def extended(cache: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """(B, H, T + S, D): a cache (B, H, T, D), and what is new (B, H, S, D) behind it in time."""
    ### BEGIN SOLUTION
    return torch.cat([cache, new], dim=2)
    ### END SOLUTION


def convolved(pictures: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """(N, Y, X, O): pictures (N, H, W, C) under a weight (O, C, h, w), unpadded; channels last."""
    ### BEGIN SOLUTION
    return F.conv2d(pictures.permute(0, 3, 1, 2), weight).permute(0, 2, 3, 1)
    ### END SOLUTION

# %%
x = torch.tensor([[1.0, 3.0], [10.0, 20.0]])
expect_equal(
    "as many columns as rows",
    centered(x),
    torch.tensor([[-1.0, 1.0], [-5.0, 5.0]]),
)
expect_equal(
    "a product",
    head(x[None], torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0]])),
    torch.tensor([[[1.0, 3.0, 8.0], [10.0, 20.0, 60.0]]]),
)
q, k = (
    torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]]),
    torch.tensor([[[[2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]]]),
)
expect_equal("queries by keys", scores(q, k), torch.tensor([[[[2.0, 4.0, 6.0], [3.0, 5.0, 7.0]]]]))
logits = torch.tensor([[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0]]])
expect_close("a loss", word_loss(logits, torch.tensor([[0, 1]])), torch.tensor(0.16732), rtol=1e-3)
expect_equal(
    "a cache of two heads",
    extended(torch.arange(4.0).view(1, 2, 1, 2), -torch.ones(1, 2, 1, 2))[0, :, :, 0],
    torch.tensor([[0.0, -1.0], [2.0, -1.0]]),
)
picture = torch.arange(12.0).view(1, 2, 3, 2)
expect_equal(
    "the second channel",
    convolved(picture, torch.tensor([0.0, 1.0]).view(1, 2, 1, 1)),
    picture[..., 1:],
)

# %%
# the two sizes in the colleague's calls: both are in the message, and they are different
for function, arguments in sent.items():
    name = function.__name__.removeprefix("broken_")
    given = dict(zip(function.__code__.co_varnames, arguments))
    sizes = {given[argument].shape[dimension] for argument, dimension in met()[name]}
    told = driver.numbers_in(driver.complaint(function, arguments))
    expect_equal(f"{name}, of {sorted(told)}", (len(sizes), sizes <= told), (2, True))

# %% test="six_messages" points=5
# Graded
check("six_messages")
expect_equal(
    "a cache that is empty",
    extended(torch.ones(1, 2, 0, 3), torch.ones(1, 2, 1, 3)).shape,
    torch.Size([1, 2, 1, 3]),
)
### BEGIN HIDDEN TESTS
verify("six_messages", met=met, centered=centered, head=head, scores=scores, word_loss=word_loss, extended=extended, convolved=convolved)
### END HIDDEN TESTS

# %% [markdown]
# ## 9 · The report
#
# *Medium, 15 minutes, 5 points: one each for the first operator, for the possible gain, for Python,
# for FLOP/s and MFU, and for the hours.*
# From the lesson: [One step, from end to end](../../notebooks/09_profiling.ipynb#cell-id=one-step-from-end-to-end).
#
# A table sums up a profile of some training steps of MiniGPT. For each name it has `(kind, calls,
# total, self)`: the times are in nanoseconds on the host, over all calls. The kind is `"range"` or
# `"op"`. One range has the name `"step"`. It is around each training step, and everything else in the
# table happened inside it, on one thread. Write `report(table, config, tokens, peak_flops)`. `config`
# is the model's `MiniGPTConfig`, `tokens` is the number of tokens *of one step*, and `peak_flops` is
# the machine's best rate, in operations a second. The function returns a dict:
#
# - `"operator"`: the name of the op with the largest self time;
# - `"share"`: its self time, divided by the time of all steps;
# - `"bound"`: how many times as fast the steps can become at best if only this operator gets faster
#   (Amdahl);
# - `"python"`: the share of the steps' time outside all ops. This time is the self time of all
#   ranges, including `"step"`;
# - `"flops"`: operations a second, by the rule of thumb: 6 · N operations for each token, forward and
#   backward. N is the number of all parameters without the two embeddings, because these are looked
#   up and not multiplied. `parameter_shapes(config)` has the shape of each parameter by its name;
# - `"mfu"`: `"flops"` as a share of the peak;
# - `"hours"`: how long 10⁹ tokens would take at this speed.
#
# All entries except the name are floats. `driver.table_of` makes such a table from a profile. Grading
# uses small random tables, and the table of a real MiniGPT step that was recorded on one core of a
# CPU.
#
# <details><summary>How many seconds did a step take?</summary>
#
# The row of `"step"` says how many steps there were and how long all of them took together. A second
# has 10⁹ nanoseconds.
# </details>
# <details><summary>Amdahl</summary>
#
# If an operator with the share s takes no time any more, 1 - s of every second is left.
# </details>

# %% solution="report"
def report(table: dict, config: MiniGPTConfig, tokens: int, peak_flops: float) -> dict:
    """The first operator, the possible gain, Python's share, FLOP/s, MFU, and hours."""
    ### BEGIN SOLUTION
    _, steps, whole, _ = table["step"]
    operators = {name: own for name, (kind, _, _, own) in table.items() if kind == "op"}
    first = max(operators, key=operators.get)
    share = operators[first] / whole
    python = sum(own for kind, _, _, own in table.values() if kind == "range") / whole
    shapes = parameter_shapes(config)
    size = sum(math.prod(shape) for name, shape in shapes.items() if "embedding" not in name)
    a_second = steps * tokens / (whole / 1e9)
    return {
        "operator": first,
        "share": share,
        "bound": 1 / (1 - share),
        "python": python,
        "flops": 6 * size * a_second,
        "mfu": 6 * size * a_second / peak_flops,
        "hours": 1e9 / a_second / 3600,
    }
    ### END SOLUTION

# %%
small = {
    "step": ("range", 2, 2_000_000, 300_000),
    "forward": ("range", 2, 900_000, 100_000),
    "aten::linear": ("op", 8, 700_000, 50_000),
    "aten::addmm": ("op", 8, 650_000, 650_000),
    "aten::mm": ("op", 4, 900_000, 900_000),
}
tiny = MiniGPTConfig(vocab_size=10, d_model=4, n_heads=1, n_layers=1, d_ff=8, context=5)
came = report(small, tiny, 50, 1e9)
expect_equal("the operator", came["operator"], "aten::mm")
expect_close(
    "its share, and the bound", (came["share"], came["bound"]), (0.45, 1 / 0.55), rtol=1e-9
)
expect_close("Python", came["python"], 0.2, rtol=1e-9)
expect_close("FLOP/s and MFU", (came["flops"], came["mfu"]), (69_000_000.0, 0.069), rtol=1e-9)
expect_close("hours", came["hours"], 1e9 / 50_000 / 3600, rtol=1e-9)

# %%
# your own machine: MiniGPT, three steps on one thread
record = recorded_step()
model, threads = MiniGPT(record.config), torch.get_num_threads()
optimizer = torch.optim.AdamW(model.parameters())
words = torch.randint(0, 600, record.batch)
def step():
    with record_function("step"):
        F.cross_entropy(model(words).flatten(0, 1), words.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
torch.set_num_threads(1)
step()
with profile(activities=[ProfilerActivity.CPU]) as profiled:
    for _ in range(3):
        step()
torch.set_num_threads(threads)
for what, value in report(driver.table_of(profiled), record.config, words.numel(), 5e10).items():
    print(f"{what:9} {value if isinstance(value, str) else format(value, '.4g')}")

# %% test="report" points=5
# Graded
check("report")
small = {
    "step": ("range", 2, 2_000_000, 300_000),
    "forward": ("range", 2, 900_000, 100_000),
    "aten::linear": ("op", 8, 700_000, 50_000),
    "aten::addmm": ("op", 8, 650_000, 650_000),
    "aten::mm": ("op", 4, 900_000, 900_000),
}
tiny = MiniGPTConfig(vocab_size=10, d_model=4, n_heads=1, n_layers=1, d_ff=8, context=5)
came = report(small, tiny, 50, 1e9)
names = ["operator", "share", "bound", "python", "flops", "mfu", "hours"]
expect_equal("its entries", list(came), names)
### BEGIN HIDDEN TESTS
verify("report", report)
### END HIDDEN TESTS

# %% [markdown] task="thirty_percent" points=3
# ## 10 · Thirty percent
#
# *10 minutes, 3 points, read by a person.*
#
# A colleague has written a new attention for MiniGPT and sends you this, from a machine with a GPU:
#
# ```
# t0 = time.time()
# out = attention_old(x)
# t1 = time.time()
# out = attention_new(x)
# t2 = time.time()
# print(f"old {t1 - t0:.4f} s   new {t2 - t1:.4f} s   {100 * (1 - (t2 - t1) / (t1 - t0)):.0f} % faster")
#
# old 0.0031 s   new 0.0022 s   30 % faster
# ```
#
# You run the file a second time, and now the new attention is 40 % slower. Write two or three
# sentences about each of these questions. What do the two numbers of one run actually measure? Why do
# two runs disagree (at least two causes)? What would you run instead, and which result would allow
# you to write "30 % faster" into the log?
#
# === BEGIN MARK SCHEME ===
#
# One point each.
#
# - **What was measured.** Launching, not computing: on a GPU the calls return before the kernels have
#   run, and nothing synchronises before the clock is read. The second time may even include work that
#   the device still does for the first function. The answer says that the times are the host's, with
#   the word "asynchronous" or its meaning.
# - **Why they disagree.** The answer names two of these. The first call pays for work that happens
#   only once (CUDA context, loading kernels, allocator, autotuning, caches), so the order of the two
#   matters. There is only one run of each, without a spread. Load, clock and temperature of the
#   machine change. Clock resolution and scheduling noise can be as large as 0.9 ms.
# - **What instead.** Warm up. Synchronise before reading the clock, or use CUDA events, or
#   `torch.utils.benchmark` (which synchronises). Measure many runs, in turn, and give median and
#   quartiles or IQR of both. Give a ratio with its spread, and claim it only if the quartile ranges
#   don't overlap. Use the same inputs, and compare the outputs. Even better: add a count or a trace
#   that says where the time went. "The mean of many runs" without any spread earns half.
#
# === END MARK SCHEME ===

# %% [markdown]
# *Your answer goes here.*

# %% [markdown]
# ## Done
#
# Use *Kernel → Restart Kernel and Run All Cells* once more, to make sure that your notebook works
# from top to bottom. Then save it.
#
# You can now say what a training step waits for, prove an improvement by a count, and distinguish a
# gain from noise. In phase 10 the step runs on several machines, and they mostly wait for each other.
