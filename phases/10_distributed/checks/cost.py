"""Lab 10, exercise 3: What a collective costs"""


from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check

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
