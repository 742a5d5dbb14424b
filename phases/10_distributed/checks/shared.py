"""What several exercises of lab 10 need."""

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Paste
from utils.instruments.world import connect
from utils.instruments.world.events import Computed, Message

SUMS = Tolerance(1e-4, 1e-5, "float32 sums in another order")


def ranks(subject, each, of=None, **network):
    """Let the learner's generators be the ranks of a world.

    They run in one process and could share memory. So each part needs a world whose network adds
    random numbers: ``counts``, or a ``carry``. No argument of a rank contains these numbers, but
    the results depend on them.

    Args:
        subject: the learner's code.
        each: the further arguments, a tuple for each rank.
        of: the function's name, in an exercise with several functions.
        network: keyword arguments of `connect`.
    """
    world = len(each)
    programs = [subject.generator(r, world, *args, of=of) for r, args in enumerate(each)]
    return connect(programs, **network)


def driven(subject, driver, each, of=None, **network):
    """Like `ranks`, but a driver runs the learner's generators."""
    world = len(each)
    programs = [
        subject.drive_generator(f"distributed:{driver}", r, world, *args, of=of)
        for r, args in enumerate(each)
    ]
    return connect(programs, **network)


def drawn_counts(draw, world):
    """How often each rank counts in sums: one rank counts twice and another one never."""
    counts = [1] * world
    if world > 1:
        twice, never = draw.sample(range(world), 2)
        counts[twice], counts[never] = 2, 0
    return counts


def counted(counts):
    """The words that a case adds about its counts."""
    return "" if set(counts) <= {1} else f", and the ranks count {', '.join(map(str, counts))} times in a sum"


def as_run(program, each, shows, **network):
    """The call of a case as a learner can make it: with `run`, which the lab imports.

    Args:
        program: the program of the ranks, as an expression.
        each: as for `ranks`.
        shows: as for `Paste`.
        network: as for `ranks`.
    """
    words, args = [], []
    for column in zip(*each, strict=True):
        same = all(one is column[0] for one in column)
        words.append("{}" if same else "Each({})")
        args.append(column[0] if same else list(column))
    words += [f"{name}={value}" for name, value in network.items()]
    return Paste(f"run({', '.join([program, str(len(each)), *words])})", tuple(args), shows)


def with_driver(driver, name):
    """The program of `as_run` if a driver runs the learner's generators."""
    return f"lambda *asked: driver.{driver}({name}, *asked)"


def others(came, *allowed):
    """The names of the requests that were made but are not allowed, each name once.

    Every request that carries a tensor from one rank to another counts as "send".
    """
    names = {Message: "send", Computed: "compute"}
    return sorted({names.get(type(e)) or e.kind for e in came.log} - set(allowed))
