"""Lab 07, exercise 11: Eight questions about a script"""

import math

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check

QUESTIONS = "tokens", "steps", "precision", "gradient", "printed", "saved", "batches", "resumed"

read_script = Check(
    "read_script",
    parts=dict.fromkeys(QUESTIONS, 0.5),
    reads="Reading nanoGPT's train.py",
    tolerance=Tolerance(1e-5, 1e-9, "torch adds 10⁻⁶ to the norm"),
    containers_kept=True,
)


@read_script.reference
class _:
    """Goes through the script's lines with counters in place of tensors."""

    def tokens(run, processes):
        parts = range(run["gradient_accumulation_steps"] // processes)
        each = sum(run["batch_size"] * run["block_size"] for _ in parts)
        return each * processes, each

    def steps(run, first):
        iteration, made, rate = first, 0, None
        while not (run["eval_only"] and iteration == 0):
            made, rate = made + 1, _rate(run, iteration)
            iteration += 1
            if iteration > run["max_iters"]:
                break
        return made, rate

    def precision(run, processes):
        device = [f"cuda:{rank}" for rank in range(processes)][0] if processes > 1 else run["device"]
        products = {True: run["dtype"], False: "float32"}["cuda" in device]
        return products, run["dtype"] == "float16"

    def gradient(run, scale, gradients):
        summed = []
        for process in gradients:
            kept = 0.0
            for one in process:
                kept += scale * one / len(process)
            summed.append(kept)
        found = sum(summed) / len(summed) / scale
        if run["grad_clip"] and abs(found) > run["grad_clip"]:
            found = math.copysign(run["grad_clip"], found)
        return found

    def printed(run, iteration, losses):
        if iteration in range(0, iteration + 1, run["log_interval"]):
            return list(losses[0]).pop()
        return None

    def saved(run, losses):
        best, iteration, file = 1e9, 0, None
        for loss in losses:
            if run["always_save_checkpoint"] or loss < best:
                best = loss
                file = (iteration, best) if iteration else file
            iteration += run["eval_interval"]
        return file

    def batches(run, processes, rank, iteration):
        got = 1
        for step in range(iteration + 1):
            if rank == 0 and step % run["eval_interval"] == 0:
                got += run["eval_iters"] + run["eval_iters"]
            got += run["gradient_accumulation_steps"] // processes
        return got

    def resumed(old, new):
        found = {name: new[name] for name in KEPT}
        return found | {name: old[name] for name in ("beta2", "weight_decay", "n_layer")}


KEPT = "n_layer", "dropout", "batch_size", "learning_rate", "weight_decay", "beta2"


def _rate(run, iteration):
    most, least = run["learning_rate"], run["min_lr"]
    if not run["decay_lr"]:
        return most
    if iteration < run["warmup_iters"]:
        return most * (iteration + 1) / (run["warmup_iters"] + 1)
    length = run["lr_decay_iters"] - run["warmup_iters"]
    angle = math.pi * min(1.0, (iteration - run["warmup_iters"]) / length)
    return least + (most - least) * math.cos(angle / 2) ** 2


@read_script.cases
def _(draw):
    def asked(of, shown, *args, **places):
        places = {f"[{at.lstrip('_')}]": words for at, words in places.items()}
        return Case(of, lambda subject: subject[of](*args), of=of, shown=shown, places=places)

    def several(processes):
        return f"{processes} processes" if processes > 1 else "one process"

    def parts(processes, least=1):
        return processes * draw.integer(least, 6)

    for processes in (1, 2, draw.integer(3, 9)):
        for least in (1, 2):
            count = parts(processes, least) if least > 1 else processes
            run = {
                "gradient_accumulation_steps": count,
                "batch_size": draw.integer(2, 64),
                "block_size": draw.integer(2, 99),
            }
            shown = f"{several(processes)}, gradient_accumulation_steps = {count}"
            yield asked("tokens", shown, run, processes, _0="the tokens of all processes", _1="the tokens of each process")

    def schedule(**how):
        begin = draw.integer(3, 9)
        most = draw.integer(20, 90) / 100
        usual = {
            "max_iters": draw.integer(12, 40),
            "eval_only": False,
            "decay_lr": True,
            "learning_rate": most,
            "min_lr": most / draw.integer(3, 9),
            "warmup_iters": begin,
            "lr_decay_iters": begin + draw.integer(41, 60),
        }
        return usual | how

    def steps(shown, run, first=0):
        return asked("steps", shown, run, first, _0="the number of steps", _1="the last learning rate")

    yield steps("a new run that ends on the cosine", schedule())
    yield steps("a new run that ends in the warm-up", schedule(max_iters=draw.integer(1, 7), warmup_iters=9))
    yield steps("a new run that ends where the warm-up ends", schedule(max_iters=7, warmup_iters=7))
    yield steps("a new run that ends in the last step of the warm-up", schedule(max_iters=6, warmup_iters=7))
    yield steps("a new run that ends where the cosine ends", schedule(max_iters=17, lr_decay_iters=17))
    yield steps("a new run that ends after the cosine", schedule(max_iters=draw.integer(30, 40), lr_decay_iters=23))
    yield steps("a new run without a warm-up", schedule(warmup_iters=0))
    yield steps("`max_iters` is 0", schedule(max_iters=0))
    yield steps("`decay_lr` is False", schedule(decay_lr=False))
    yield steps("`decay_lr` is False, and the run would end in the warm-up", schedule(decay_lr=False, max_iters=2))
    yield steps("`eval_only` in a new run", schedule(eval_only=True))
    yield steps("`eval_only` in a new run, `decay_lr` is False", schedule(eval_only=True, decay_lr=False))
    for only in (False, True):
        words = "`eval_only`, and a run that continues" if only else "a run that continues"
        for first in (draw.integer(1, 3), draw.integer(6, 11)):
            ends = schedule(eval_only=only, max_iters=first)
            yield steps(words, schedule(eval_only=only), first)
            yield steps(f"{words} in the last iteration", ends, first)
            yield steps(f"{words} after `max_iters`", ends, first + draw.integer(2, 5))
            yield steps(f"{words}, `decay_lr` is False", ends | {"decay_lr": False}, first)
    yield steps("a run that continues after the cosine", schedule(lr_decay_iters=23, max_iters=25), draw.integer(30, 40))

    def precision(device, dtype, processes=1):
        run = {"device": device, "dtype": dtype, "gradient_accumulation_steps": parts(processes), "batch_size": draw.integer(2, 64)}
        shown = f'device = "{device}", dtype = "{dtype}", {several(processes)}'
        return asked("precision", shown, run, processes, _0="the dtype", _1="the scaler")

    for dtype in ("float32", "bfloat16", "float16"):
        yield precision("cuda", dtype)
        yield precision(f"cuda:{draw.integer(1, 15)}", dtype)
        yield precision("cuda", dtype, draw.integer(2, 16))
        for device in ("cpu", "mps"):
            yield precision(device, dtype, 2)
            yield precision(device, dtype, draw.integer(3, 16))
            if (device, dtype) != ("mps", "float16"):  # no machine has both
                yield precision(device, dtype)

    def mean_of(many):
        every = [one for process in many for one in process]
        return abs(sum(every) / len(every))

    def numbers(processes, count):
        """Different numbers whose sums are far from 0."""
        sign = draw.choice((-1, 1))
        return [[sign * draw.integer(5, 400) / 8 for _ in range(count)] for _ in range(processes)]

    for processes, count in ((1, 1), (1, draw.integer(2, 5)), (draw.integer(2, 4), 1), (2, 2), (draw.integer(2, 4), 3)):
        for dtype in ("float32", "bfloat16", "float16"):
            for clip in ("no clipping", "a small gradient", "a large gradient"):
                many = numbers(processes, count)
                size = mean_of(many)
                run = {
                    "gradient_accumulation_steps": processes * count,
                    "grad_clip": {"no": 0.0, "a small": 2 * size, "a large": size / 2}[clip.rpartition(" ")[0]],
                    "dtype": dtype,
                }
                scale = 2.0 ** draw.integer(3, 16) if dtype == "float16" else 65536.0
                shown = f"{clip}, {several(processes)}, {count} micro step{'s' * (count > 1)}, {dtype}"
                yield asked("gradient", shown, run, scale, many)
    # the parts pull in two directions, and the sum is smaller than each of them
    for processes, sign in ((1, 1), (2, -1)):
        one = draw.integer(20, 90) / 8
        many = [[sign * one, sign * (2.0 - one)] for _ in range(processes)]
        run = {"gradient_accumulation_steps": 2 * processes, "grad_clip": 1.5, "dtype": "float32"}
        yield asked("gradient", f"opposite signs, {several(processes)}", run, 65536.0, many)
        run = run | {"grad_clip": draw.integer(2, 9) / 10}
        yield asked("gradient", f"grad_clip below 1, {several(processes)}", run, 65536.0, many)

    for processes, count in ((1, 1), (1, 3), (3, 1), (2, draw.integer(2, 4))):
        for interval, iteration in ((1, draw.integer(1, 50)), (7, 0), (7, 7 * draw.integer(1, 9)), (7, 7 * draw.integer(1, 9) + 1), (9, 9 * draw.integer(1, 9) - 1), (10, 5)):
            many = [[draw.integer(100, 900) / 100 for _ in range(count)] for _ in range(processes)]
            run = {"log_interval": interval, "gradient_accumulation_steps": processes * count}
            shown = f"{several(processes)}, log_interval = {interval}, iteration {iteration}"
            yield asked("printed", shown, run, iteration, many)

    def saved(shown, losses, always, interval=None):
        run = {"eval_interval": interval or draw.integer(2, 500), "always_save_checkpoint": always}
        shown = f"{shown}, always_save_checkpoint = {always}"
        return asked("saved", shown, run, losses, _0="`iter_num`", _1="`best_val_loss`")

    for always in (False, True):
        falling = sorted((loss / 100 for loss in draw.sample(range(200, 900), 5)), reverse=True)
        low, middle, high = falling[4], falling[2], falling[0]
        yield saved("losses that fall", falling, always)
        yield saved("losses that rise", falling[::-1], always)
        yield saved("one evaluation", [middle], always)
        yield saved("two evaluations", [high, low], always)
        yield saved("the best in the middle", [high, low, middle, falling[1]], always)
        yield saved("the first is the best", [low, high, middle], always)
        yield saved("lower again, but not the best", [high, middle, low, high, falling[3]], always)
        yield saved("the best twice", [high, low, middle, low], always)
        yield saved("an evaluation in each iteration", [high, low], always, interval=1)
        yield saved("a NaN", [high, middle, math.nan, low], always)
        yield saved("NaN first", [math.nan, middle, high], always)
        yield saved("NaN at the end", [high, middle, math.nan], always)

    for processes in (1, draw.integer(2, 5)):
        for rank in sorted({0, processes - 1, processes // 2}):
            interval = draw.integer(3, 9)
            places = {"the first iteration": 0, "before the second evaluation": interval - 1}
            places |= {"right after the second evaluation": interval, "after it": interval + 1}
            places["later"] = interval * draw.integer(2, 4) + draw.integer(1, interval - 1)
            for words, iteration in places.items():
                run = {
                    "gradient_accumulation_steps": parts(processes),
                    "eval_interval": interval,
                    "eval_iters": draw.integer(2, 30),
                }
                shown = f"rank {rank} of {several(processes)}, {words}"
                yield asked("batches", shown, run, processes, rank, iteration)
    run = {"gradient_accumulation_steps": parts(2), "eval_interval": 1, "eval_iters": draw.integer(2, 9)}
    yield asked("batches", "an evaluation in each iteration", run, 2, 0, draw.integer(1, 9))

    def resumed(shown, larger):
        """Two settings in which each number differs."""
        layers, sizes = draw.sample(range(1, 12), 2), draw.sample(range(2, 64), 2)
        pairs = {
            "n_layer": layers,
            "dropout": [one / 20 for one in draw.sample(range(10), 2)],
            "batch_size": sizes,
            "learning_rate": [one / 1000 for one in draw.sample(range(1, 20), 2)],
            "weight_decay": [one / 100 for one in draw.sample(range(1, 30), 2)],
            "beta2": [one / 1000 for one in draw.sample(range(900, 999), 2)],
        }
        old, new = ({name: sorted(pair)[larger ^ at] for name, pair in pairs.items()} for at in (0, 1))
        old |= {"init_from": "scratch", "n_head": draw.integer(1, 8), "decay_lr": True}
        new |= {"init_from": "resume", "n_head": draw.integer(1, 8), "decay_lr": larger > 0}
        places = {f"['{name}']": f"`{name}`" for name in KEPT}
        return Case("resumed", lambda subject: subject["resumed"](old, new), of="resumed", shown=shown, places=places)

    yield resumed("larger numbers on the command line, `decay_lr` is False", 0)
    yield resumed("smaller numbers on the command line", 1)
