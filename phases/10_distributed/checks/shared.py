"""What several exercises of lab 10 need."""

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Paste
from utils.instruments.world import connect
from utils.instruments.world.events import Computed, Message

SUMS = Tolerance(1e-4, 1e-5, "float32 sums in another order")


def ranks(subject, each, of=None, **network):
    """Let the learner's generators be the ranks of a world.

    They run in one process and could share memory. So let each part ask for a world whose network
    brings drawn numbers: ``counts``, or a ``carry``. They are in no argument of a rank, and the
    results depend on them.

    Args:
        subject: the learner's code.
        each: the further arguments of each rank, a tuple for each.
        of: the function, in an exercise with several.
        network: as `connect` has it.
    """
    world = len(each)
    programs = [subject.generator(r, world, *args, of=of) for r, args in enumerate(each)]
    return connect(programs, **network)


def driven(subject, driver, each, of=None, **network):
    """The same, where a driver runs the learner's generators."""
    world = len(each)
    programs = [
        subject.drive_generator(f"distributed:{driver}", r, world, *args, of=of)
        for r, args in enumerate(each)
    ]
    return connect(programs, **network)


def drawn_counts(draw, world):
    """How often each rank counts in sums: as many ranks in all, of which some have the same."""
    counts = [1] * world
    if world > 1:
        twice, never = draw.sample(range(world), 2)
        counts[twice], counts[never] = 2, 0
    return counts


def counted(counts):
    """What a case says of the counts."""
    return "" if set(counts) <= {1} else f", of which each counts {', '.join(map(str, counts))} times in a sum"


def as_run(program, each, shows, **network):
    """How a learner asks the same: with `run`, which the lab imports.

    Args:
        program: what the ranks run, as an expression.
        each: as for `ranks`.
        shows: as `Paste` has it.
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
    """The program of `as_run` where a driver runs the learner's generators."""
    return f"lambda *asked: driver.{driver}({name}, *asked)"


def others(came, *allowed):
    """The names of requests that came about and are not allowed, each once.

    Whatever carries a tensor from one rank to another counts as "send".
    """
    names = {Message: "send", Computed: "compute"}
    return sorted({names.get(type(e)) or e.kind for e in came.log} - set(allowed))
