"""Lab 10, exercise 8: A thousand ranks"""

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution

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

        words = f"{kind}, {world} rank{'s' * (world > 1)}, {layers} layers, {shown}"
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


_plan = lab_solution(__name__, "plan")


def _wrong(name, explanation, earns, *edits):
    plan.misconception(name, explanation, earns=earns)(edited(_plan, *edits))


_wrong(
    "one after the other",
    "computing and communicating are added up, as if nothing were hidden.",
    2,
    ("max(computing, communicating)", "computing + communicating"),
)
_wrong(
    "the shorter of the two",
    "a step takes as long as the shorter of computing and communicating.",
    2,
    ("max(computing, communicating)", "min(computing, communicating)"),
)
_wrong(
    "tokens of all ranks at each",
    "each rank computes the tokens of all ranks.",
    2,
    ("6 * parameters * tokens", "6 * parameters * tokens * world"),
)
_wrong(
    "forward alone",
    "computing takes as long as the forward pass alone.",
    2,
    ("6 * parameters * tokens", "2 * parameters * tokens"),
)
_wrong(
    "the whole model at once",
    "latency is paid for one collective over the whole model, and not for each layer.",
    2,
    ("layers * rounds * (machine['latency'] + piece / machine['bandwidth'])", "rounds * (machine['latency'] + layers * piece / machine['bandwidth'])"),
)
_wrong(
    "one latency for each collective",
    "latency is paid once for a collective, and not in each of its rounds.",
    2,
    ("layers * rounds * (machine['latency'] + piece / machine['bandwidth'])", "layers * ((2 if kind == 'ddp' else 3) * machine['latency'] * (world > 1) + rounds * piece / machine['bandwidth'])"),
)
_wrong(
    "FSDP sends as much as DDP",
    "FSDP's bytes and seconds are those of two ring halves, and not of three.",
    1,
    ("3 * (world - 1)", "2 * (world - 1)"),
)
_wrong(
    "DDP sends half of it",
    "an all-reduce has the bytes and seconds of one of its halves.",
    1,
    ("float(16 * parameters), 2 * (world - 1)", "float(16 * parameters), world - 1"),
)
_wrong(
    "four bytes a number",
    "what is sent has four bytes a number, as float32 has.",
    0,
    ("weights = 2 * parameters", "weights = 4 * parameters"),
)
_wrong(
    "everything is cut, and nothing is whole",
    "FSDP's memory is without the layer that is being computed with.",
    2,
    ("16 * parameters / world + weights / layers", "16 * parameters / world"),
)
_wrong(
    "the whole layer is cut",
    "of the layer that FSDP computes with, only a rank's share is counted.",
    2,
    ("16 * parameters / world + weights / layers", "(16 * parameters + weights / layers) / world"),
)
_wrong(
    "a whole layer at four bytes",
    "FSDP's whole layer counts 4 bytes a weight, as in float32 or with its gradient.",
    2,
    ("16 * parameters / world + weights / layers", "16 * parameters / world + 2 * weights / layers"),
)
_wrong(
    "tokens are shared",
    "each rank computes its share of the tokens that it has.",
    2,
    ("6 * parameters * tokens", "6 * parameters * tokens / world"),
)
_wrong(
    "no gradients",
    "memory has two bytes a parameter too few, as without the gradients, or without the weights.",
    2,
    ("float(16 * parameters)", "float(14 * parameters)"),
    ("16 * parameters / world", "14 * parameters / world"),
)
_wrong(
    "everything in float32",
    "memory has 20 bytes a parameter, as where weights and gradients take four bytes each.",
    2,
    ("float(16 * parameters)", "float(20 * parameters)"),
    ("16 * parameters / world", "20 * parameters / world"),
)
_wrong(
    "no latency",
    "the latency of the rounds is left out.",
    2,
    ("(machine['latency'] + piece / machine['bandwidth'])", "(piece / machine['bandwidth'])"),
)
_wrong(
    "FSDP's seconds of two halves",
    "FSDP's seconds are those of two ring halves, and not of three.",
    2,
    ("layers * rounds * (machine", "layers * 2 * (world - 1) * (machine"),
)
_wrong(
    "FSDP's three in one message",
    "FSDP pays latency for one of its three collectives.",
    2,
    ("(machine['latency'] + piece", "(machine['latency'] / (1 if kind == 'ddp' else 3) + piece"),
)
_wrong(
    "pieces of whole bytes",
    "pieces are rounded down to whole bytes.",
    2,
    ("(machine['latency'] + piece /", "(machine['latency'] + weights // layers // world /"),
)
_wrong(
    "the rounds of a tree",
    "a collective has as many rounds as a tree, and not as a ring.",
    1,
    ("2 * (world - 1)", "2 * (world - 1).bit_length()"),
    ("3 * (world - 1)", "3 * (world - 1).bit_length()"),
)
_wrong(
    "alone, FSDP has no layer beside it",
    "with one rank, FSDP's memory is without the layer that is being computed with.",
    2,
    ("weights / layers, 3", "weights / layers * (world > 1), 3"),
)
_wrong(
    "sent as often as there are halves",
    "a rank sends all of the model in each half of a ring, and not the share that it has to pass on.",
    2,
    ("'sent': layers * rounds * piece", "'sent': rounds / max(1, world - 1) * weights"),
)
_wrong(
    "FSDP all-reduces",
    "FSDP's bytes and seconds are those of four ring halves, and not of three.",
    1,
    ("3 * (world - 1)", "4 * (world - 1)"),
)
_wrong(
    "a whole model beside it",
    "FSDP's memory has the weights of all layers, and not of one.",
    2,
    ("16 * parameters / world + weights / layers", "16 * parameters / world + weights"),
)
_wrong(
    "DDP is cut, too",
    "DDP's memory is divided by the number of ranks.",
    2,
    ("float(16 * parameters)", "16 * parameters / world"),
)
_wrong(
    "two moments and no copy",
    "memory has 12 bytes a parameter, as where the optimizer has eight, or is all that is counted.",
    2,
    ("float(16 * parameters)", "float(12 * parameters)"),
    ("16 * parameters / world", "12 * parameters / world"),
)
_wrong(
    "the optimizer alone is cut",
    "with FSDP, weights and gradients are there as a whole.",
    2,
    ("16 * parameters / world + weights / layers", "12 * parameters / world + 4 * parameters"),
)
_wrong(
    "whole layers in each round",
    "a round's piece is the whole layer.",
    1,
    ("piece = weights / layers / world", "piece = weights / layers"),
)


_wrong(
    "a round for each rank",
    "a ring has as many rounds as ranks, and not one fewer.",
    1,
    ("2 * (world - 1)", "2 * world"),
    ("3 * (world - 1)", "3 * world"),
)
_wrong(
    "of one layer",
    "what is sent is counted for one layer.",
    2,
    ("layers * rounds * piece", "rounds * piece"),
)
_wrong(
    "of all ranks",
    "what is sent is counted for all ranks together.",
    2,
    ("layers * rounds * piece", "world * layers * rounds * piece"),
)
_wrong(
    "computing alone",
    "a step takes as long as computing, however long communicating takes.",
    2,
    ("max(computing, communicating)", "computing"),
)
_wrong(
    "FSDP computes its part",
    "with FSDP, computing is divided by the number of ranks.",
    2,
    ("6 * parameters * tokens", "6 * parameters / (1 if kind == 'ddp' else world) * tokens"),
)
_wrong(
    "only the optimizer is cut, beside a layer",
    "with FSDP, whole weights and gradients are counted at each rank, and a layer as well.",
    2,
    ("16 * parameters / world + weights / layers", "12 * parameters / world + 4 * parameters + weights / layers"),
)
_wrong(
    "gigabytes",
    "memory is not in bytes.",
    2,
    ("'memory': memory", "'memory': memory / 1e9"),
)


_wrong(
    'DDP cuts the optimizer',
    'with DDP, the optimizer is divided by the number of ranks.',
    2,
    ('float(16 * parameters)', '(4 + 12 / world) * parameters'),
)
_wrong(
    'its own piece of the layer counts once',
    "FSDP's whole layer is counted without the rank's own piece of it.",
    2,
    ('16 * parameters / world + weights / layers', '16 * parameters / world + weights / layers * (world - 1) / world'),
)
_wrong(
    'a whole layer with everything',
    "FSDP's whole layer has gradients and an optimizer, too.",
    2,
    ('16 * parameters / world + weights / layers', '16 * parameters / world + 8 * weights / layers'),
)
_wrong(
    'gradients in float32',
    'what is sent has four bytes for each number of a gradient.',
    2,
    ("'sent': layers * rounds * piece", "'sent': layers * rounds * piece * (2 if kind == 'ddp' else 4 / 3)"),
)
_wrong(
    'an all-reduce has as many rounds',
    'the seconds of an all-reduce are those of one of its halves.',
    2,
    ('communicating = layers * rounds', "communicating = layers * (rounds / 2 if kind == 'ddp' else rounds)"),
)
_wrong(
    'whole layers in the seconds',
    'seconds are those of rounds with a whole layer each.',
    2,
    ("piece / machine['bandwidth']", "weights / layers / machine['bandwidth']"),
)
_wrong(
    'pieces for one rank less',
    'it takes too long, as with pieces for one rank fewer, or with a round too many.',
    1,
    ('weights / layers / world', 'weights / layers / max(world - 1, 1)'),
)
_wrong(
    'whole bytes',
    "DDP's memory is an int, and no float.",
    2,
    ('float(16 * parameters)', '16 * parameters'),
)


@plan.alternate("closed formulas")
def _(parameters, layers, world, kind, tokens, machine):
    share = (world - 1) / world
    times = 2 if kind == "ddp" else 3
    network = times * (layers * (world - 1) * machine["latency"] + share * 2 * parameters / machine["bandwidth"])
    compute = 6.0 * parameters * tokens / machine["flops"]
    state = 16.0 * parameters
    return {
        "memory": state if kind == "ddp" else state / world + 2.0 * parameters / layers,
        "sent": times * share * 2.0 * parameters,
        "seconds": network if network > compute else compute,
    }


@plan.alternate("layer by layer")
def _(parameters, layers, world, kind, tokens, machine):
    result = {"memory": 0.0, "sent": 0.0, "seconds": 0.0}
    each = parameters // layers
    for _ in range(layers):
        result["memory"] += each * (2 + 2 + 12) / (1 if kind == "ddp" else world)
        for _ in range(2 if kind == "ddp" else 3):
            bytes_of_a_round = 2 * each / world
            result["sent"] += bytes_of_a_round * (world - 1)
            result["seconds"] += (world - 1) * (machine["latency"] + bytes_of_a_round / machine["bandwidth"])
    if kind == "fsdp":
        result["memory"] += 2 * each
    result["seconds"] = max(result["seconds"], 6 * parameters * tokens / machine["flops"])
    return result


plan.equivalent(
    ("kind == 'ddp'", "kind <= 'ddp'"),
    ("kind == 'fsdp'", "kind >= 'fsdp'"),
    because="there are two kinds",
)
plan.equivalent(
    ("weights / layers", "weights // layers"),
    ("parameters // layers", "parameters / layers"),
    ("2.0 * parameters / layers", "2.0 * parameters // layers"),
    because="the layers are equal",
)
plan.equivalent(("2 + 2 + 12", "2 * 2 + 12"), because="both are 16")
plan.equivalent(
    ("network > compute", "network >= compute"), because="where both are equal, it is either of them"
)
