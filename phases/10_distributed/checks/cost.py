"""Lab 10, exercise 3: What a collective costs"""

import math

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution

cost = Check(
    "cost",
    parts={"all-reduce": 1, "its halves": 1, "the tree": 1},
    reads="Collectives and what they cost",
    tolerance=Tolerance(1e-9, 1e-15, "float64, in another order"),
)


@cost.reference
def _(kind, size, world, latency, bandwidth):
    if kind == "broadcast":
        messages, have = 0, 1
        while have < world:
            messages, have = messages + 1, 2 * have
        length = size
    else:
        messages = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}[kind] * (world - 1)
        length = size // world
    return float(messages * length), messages * (latency + length / bandwidth)


@cost.cases
def _(draw):
    reduce, halves, tree = cost.parts

    def asked(part, kind, world):
        if world == 1:  # the same in every run: so an example has several ranks wherever one can
            size, latency, bandwidth = 1000, 0.5, 100.0
        else:
            size = world * draw.integer(1, 10**6)
            latency, bandwidth = draw.integer(1, 900) / 1e6, draw.integer(2, 400) * 1e8
        words = f"{kind}, {world} rank{'s' * (world > 1)}"
        places = {"[0]": "bytes", "[1]": "seconds"}

        def play(subject):
            came = subject(kind, size, world, latency, bandwidth)
            if world == 1 and type(came) is tuple:  # a bare 0 costs no point, the type is asked below
                came = tuple(float(one) if type(one) is int and one == 0 else one for one in came)
            return came

        return Case(part, play, shown=words, places=places)

    worlds = (1, 2, 3, draw.integer(4, 7), 8, draw.integer(9, 63), 64, 1000, 1024)
    for world in worlds:
        yield asked(reduce, "all_reduce", world)
        yield asked(halves, "all_gather", world)
        yield asked(halves, "reduce_scatter", world)
    for world in (*worlds, 4, 5, 9, 17, 1025):
        yield asked(tree, "broadcast", world)
    yield Case(reduce, lambda subject: subject("all_reduce", 300, 3, 0.0, 10.0), shown="no latency")
    yield Case(tree, lambda subject: subject("broadcast", 0, 3, 2.0, 10.0), shown="no bytes")


_cost = lab_solution(__name__, "cost")


def _wrong(name, explanation, earns, *edits):
    cost.misconception(name, explanation, earns=earns)(edited(_cost, *edits))


_wrong(
    "one latency for all rounds",
    "latency is paid once, and not in each round.",
    0,
    ("rounds * (latency + piece / bandwidth)", "(latency + rounds * piece / bandwidth if rounds else 0.0)"),
)
_wrong(
    "the whole tensor in each round",
    "a message of the ring has the size of the whole, and not of a piece.",
    1,
    ("size / world", "size"),
)
_wrong(
    "one half of the ring",
    "all_reduce costs as much as one of its halves.",
    2,
    ("rounds *= 2", "pass"),
)
_wrong(
    "both halves for each",
    "all_gather and reduce_scatter cost as much as the whole all_reduce.",
    2,
    ("if kind == 'all_reduce':", "if True:"),
)
_wrong(
    "a round for each rank",
    "there are as many rounds as ranks, and not one fewer.",
    1,
    ("rounds, piece = (world - 1, size / world)", "rounds, piece = (world, size / world)"),
)
_wrong(
    "a star",
    "the broadcast costs as if the source sent to each rank itself.",
    2,
    ("(world - 1).bit_length()", "world - 1"),
)
_wrong(
    "one round too many at powers of two",
    "the tree has a round too many where the number of ranks is a power of two.",
    2,
    ("(world - 1).bit_length()", "(world.bit_length() if world > 1 else 0)"),
)
_wrong(
    "what is gathered is one rank's",
    "the size is taken for that of one rank's piece in an all_gather or a reduce_scatter.",
    2,
    ("rounds *= 2", "rounds *= 2\n        else:\n            piece = size"),
)
_wrong(
    "seconds first",
    "seconds and bytes are in the wrong order.",
    0,
    ("return (float(rounds * piece), rounds * (latency + piece / bandwidth))", "return (rounds * (latency + piece / bandwidth), float(rounds * piece))"),
)
_wrong(
    "no latency",
    "the latency of the messages is left out.",
    0,
    ("(latency + piece / bandwidth)", "piece / bandwidth"),
)
_wrong(
    "send, and then receive",
    "a round of a ring takes twice as long, as where a rank can't send and receive at the same time.",
    1,
    ("rounds * (latency + piece / bandwidth)", "rounds * (latency + piece / bandwidth) * (1 if kind == 'broadcast' else 2)"),
)
_wrong(
    "rounded down",
    "the tree has a round too few where the number of ranks is no power of two.",
    2,
    ("(world - 1).bit_length()", "world.bit_length() - 1"),
)
_wrong(
    "a tree without its logarithm rounded",
    "the number of rounds of the tree is no whole number.",
    2,
    ("(world - 1).bit_length()", "math.log2(world)"),
)
_wrong(
    "all ranks together",
    "the bytes are those that all ranks send together.",
    1,
    ("float(rounds * piece)", "float(rounds * piece * (1 if kind == 'broadcast' else world))"),
)
_wrong(
    "sent once by the source",
    "of the broadcast, only one message of the source is counted in the bytes.",
    2,
    ("float(rounds * piece)", "float(piece * min(rounds, 1) if kind == 'broadcast' else rounds * piece)"),
)
_wrong(
    "bytes by the second turned over",
    "bytes are multiplied by the bandwidth.",
    0,
    ("piece / bandwidth", "piece * bandwidth"),
)
_wrong(
    "the tree in pieces",
    "the broadcast's messages have the size of a piece.",
    2,
    ("(world - 1).bit_length(), size", "(world - 1).bit_length(), size / world"),
)


_wrong(
    "what is gathered alone is one rank's",
    "the size is taken for that of one rank's piece in an all_gather.",
    2,
    ("if kind == 'all_reduce':", "if kind == 'all_gather':\n            piece = size\n        if kind == 'all_reduce':"),
)
_wrong(
    "what is scattered alone is one rank's",
    "the size is taken for that of one rank's piece in a reduce_scatter.",
    2,
    ("if kind == 'all_reduce':", "if kind == 'reduce_scatter':\n            piece = size\n        if kind == 'all_reduce':"),
)
_wrong(
    "the logarithm, rounded",
    "the number of the tree's rounds is rounded to the nearest whole number.",
    2,
    ("(world - 1).bit_length()", "round(math.log2(world))"),
)
_wrong(
    "the logarithm of one rank fewer",
    "the tree has a round too few where the number of ranks is a power of two and one more.",
    2,
    ("(world - 1).bit_length()", "(math.ceil(math.log2(world - 1)) if world > 1 else 0)"),
)
_wrong(
    "a round of the tree even alone",
    "the source pays for a round where there is no other rank.",
    2,
    ("(world - 1).bit_length()", "max(1, (world - 1).bit_length())"),
)
_wrong(
    "the natural logarithm",
    "the tree has as many rounds as if more than two ranks came of each in a round.",
    2,
    ("(world - 1).bit_length()", "math.ceil(math.log(world))"),
)
_wrong(
    "all that travels in the tree",
    "of the broadcast, the bytes are those that all ranks send together.",
    2,
    ("float(rounds * piece)", "float((world - 1) * size if kind == 'broadcast' else rounds * piece)"),
)
_wrong(
    "bits",
    "what is sent takes eight times as long, as if the bandwidth were in bits.",
    0,
    ("piece / bandwidth", "8 * piece / bandwidth"),
)


_wrong(
    'a round even alone',
    'a rank that is alone pays for a round.',
    0,
    ('return (float', 'rounds = max(rounds, 1)\n    return (float'),
)
_wrong(
    'a piece for each other rank',
    "the ring takes too long, as with pieces for one rank fewer, or with a round too many.",
    1,
    ('size / world', 'size / max(world - 1, 1)'),
)
_wrong(
    'whole seconds',
    'what is less than a second is cut off.',
    0,
    ('rounds * (latency + piece / bandwidth))', 'float(int(rounds * (latency + piece / bandwidth))))'),
)


@cost.alternate("closed formulas")
def _(kind, size, world, latency, bandwidth):
    if kind == "broadcast":
        depth = math.ceil(math.log2(world))
        return float(depth * size), depth * latency + depth * size / bandwidth
    share = (world - 1) / world
    once = share * size, (world - 1) * latency + share * size / bandwidth
    return (2 * once[0], 2 * once[1]) if kind == "all_reduce" else once


@cost.alternate("round by round")
def _(kind, size, world, latency, bandwidth):
    sent = seconds = 0.0
    piece = size if kind == "broadcast" else size / world
    halves = 2 if kind == "all_reduce" else 1
    for _ in range(halves):
        reached = 1
        while reached < world:
            sent += piece
            seconds += latency + piece / bandwidth
            reached = 2 * reached if kind == "broadcast" else reached + 1
    return sent, seconds


cost.equivalent(
    ("(world - 1).bit_length()", "(1 - world).bit_length()"),
    because="the sign takes no bit",
)
cost.equivalent(("size / world", "size // world"), because="the size divides by the number of ranks")
