"""Lab 10, exercise 8: A thousand ranks"""

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.words import counted

plan = Check(
    "plan",
    parts={"memory": 1, "bytes sent": 1, "seconds": 1},
    reads="Eight ranks, 64, 1,024",
    tolerance=Tolerance(1e-9, 1e-15, "float64, in another order"),
)


@plan.reference
def _(parameters, layers, world, kind, tokens, machine):
    layer = 2 * parameters / layers
    collectives = {"ddp": ("reduce_scatter", "all_gather"), "fsdp": ("all_gather",) * 2 + ("scatter",)}
    sent = waiting = 0.0
    for _ in collectives[kind]:
        sent += layers * (layer - layer / world)
        waiting += layers * (world - 1) * (machine["latency"] + layer / world / machine["bandwidth"])
    whole = (2 + 2 + 4 + 4 + 4) * parameters
    return {
        "memory": whole / world + layer if kind == "fsdp" else float(whole),
        "sent": sent,
        "seconds": max(waiting, 6 * parameters * tokens / machine["flops"]),
    }


@plan.cases
def _(draw):
    memory, sent, seconds = plan.parts
    entries = {memory: "memory", sent: "sent", seconds: "seconds"}

    def asked(part, kind, world, layers, tokens, machine, shown):
        parameters = layers * draw.integer(3, 999)

        def play(subject):
            came = subject(parameters, layers, world, kind, tokens, machine)
            return {"entries": sorted(came), entries[part]: came[entries[part]]}

        words = f"{kind}, {world} rank{'s' * (world > 1)}, {counted(layers, 'layer')}, {shown}"
        places = {"['entries']": "what the dict holds"}
        return Case(part, play, shown=words, places=places)

    def machine(**how):
        sizes = {
            "flops": draw.integer(1, 9) * 1e14,
            "bandwidth": draw.integer(1, 90) * 1e9,
            "latency": draw.integer(1, 90) * 1e-6,
        }
        return sizes | how

    for kind in ("ddp", "fsdp"):
        for world in (1, 2, 8, 64, 1024, draw.integer(3, 100)):
            layers, tokens = draw.integer(2, 80), draw.integer(100, 9000)
            yield asked(memory, kind, world, layers, tokens, machine(), "any machine")
            yield asked(sent, kind, world, layers, tokens, machine(), "any machine")
            if world > 1:
                slow, late = machine(bandwidth=1e6, latency=0.0), machine(latency=0.5, bandwidth=1e15)
                yield asked(seconds, kind, world, layers, tokens, slow, "a narrow network")
                yield asked(seconds, kind, world, layers, tokens, late, "a late network")
        yield asked(seconds, kind, 4, draw.integer(2, 9), 10**7, machine(flops=1e9), "slow computing")
        yield asked(seconds, kind, 1, draw.integer(2, 9), 300, machine(), "alone")
        yield asked(memory, kind, 2, 1, 300, machine(), "one layer")
