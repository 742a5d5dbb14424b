"""Lab 08, exercise 9: A new tense"""

import torch
from torch.nn import functional as F

from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution
from utils.drivers.training import perplexity, sentences
from utils.minigpt import (
    WITHOUT_IMPERFECT,
    MiniGPT,
    evaluation_lines,
    imperfect_lines,
    load_minigpt,
    training_lines,
)

fine_tune = Check(
    "fine_tune",
    parts={"fits and repeats": 1, "learnt and kept": 3},
    reads="A new tense, and what it cost",
)

WORDS, COLUMNS, STEPS = 600, 18, 100
NEW, OLD = 2.8, 2.15


@fine_tune.reference
def _(weights, config, new, old, steps, seed):
    dice = torch.Generator().manual_seed(seed)
    model = MiniGPT(config)
    model.load_state_dict(weights)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.002)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, steps)
    for _ in range(steps):
        loss = 0
        for inputs, targets in (new, old):
            rows = torch.randint(len(inputs), (32,), generator=dice)
            counts = targets[rows] != -100
            # logits are needed only where a target counts
            logits = model.lm_head(model.hidden(inputs[rows])[counts])
            loss = loss + F.cross_entropy(logits, targets[rows][counts])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.state_dict()


def _same(one, other):
    """Whether weights have the same values; NaN is the same as NaN."""
    return torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


def _unless_below(bound, found):
    """0 for every perplexity that is low enough, since each right answer has another."""
    return 0.0 if found < bound else found


@fine_tune.cases
def _(draw):
    fits, learnt = fine_tune.parts
    small = load_minigpt(WITHOUT_IMPERFECT)
    config = small.config
    names = torch.tensor(draw.sample(range(WORDS), WORDS))  # word `i` becomes word `names[i]`
    weights = {name: tensor.clone() for name, tensor in small.state_dict().items()}
    for name in ("token_embedding.weight", "lm_head.weight", "lm_head.bias"):
        weights[name][names] = small.state_dict()[name]

    def renamed(inputs, targets):
        return names[inputs], torch.where(targets == -100, targets, names[targets.clamp(min=0)])

    def both(inputs, targets):
        """The lines in the imperfect, and the others."""
        asked = imperfect_lines(inputs)
        return renamed(inputs[asked], targets[asked]), renamed(inputs[~asked], targets[~asked])

    new, old = both(*sentences(*training_lines(), COLUMNS))
    seen, held_out = (sentences(*evaluation_lines(split), COLUMNS) for split in (False, True))
    unseen = both(*(torch.cat(pair) for pair in zip(seen, held_out, strict=True)))
    seed = draw.integer(1, 999)

    def some(lines, count):
        return lines[0][:count].clone(), lines[1][:count].clone()

    def again(subject):
        few = (some(new, 40), some(old, 60))
        came = subject.drive("transformer:tuned_twice", weights, config, *few, 3, 0)
        once, given = came["once"], came["given"]
        fit = {name: (tuple(t.shape), t.dtype) for name, t in once.items()} == {
            name: (tuple(t.shape), t.dtype) for name, t in weights.items()
        }
        same = fit and all(_same(once[name], came["again"][name]) for name in weights)
        alike = all(torch.equal(given[name], weights[name]) for name in weights)
        near = fit and all((once[name] - weights[name]).abs().max() < 1 for name in weights)
        moved = fit and any(not torch.equal(once[name], weights[name]) for name in once)
        return fit, same, alike, near, moved, came["steps"] <= 3

    places = {
        "[0]": "`MiniGPT(config).load_state_dict` would refuse the names, shapes or dtypes.",
        "[1]": "Called twice with the same arguments, it returns different weights.",
        "[2]": "The weights that it was given have changed.",
        "[3]": "Some weight is not within 1 of where it began, after 3 steps.",
        "[4]": "After 3 steps, the weights are those that it was given.",
        "[5]": "An optimizer has taken more than 3 steps, where 3 are asked for.",
    }
    yield Case(fits, again, shown="40 new lines, 60 old ones, 3 steps, seed 0", places=places)

    def measured(subject):
        came = subject(weights, config, new, some(old, 4000), STEPS, seed)
        found = (perplexity(came, config, *some(lines, 700)) for lines in unseen)
        return [_unless_below(bound, value) for bound, value in zip((NEW, OLD), found)]

    places = {
        "[0]": f"On unseen lines in the imperfect, its perplexity is not below {NEW}.",
        "[1]": f"On unseen lines of all that it knew, its perplexity is not below {OLD}.",
    }
    yield Case(learnt, measured, shown=f"{STEPS} steps", places=places)


_fine_tune = lab_solution(__name__, "fine_tune")


def _misconception(name, explanation, earns, *edits):
    fine_tune.misconception(name, explanation, earns=earns)(edited(_fine_tune, *edits))


_misconception(
    "the new lines alone",
    "what the model knew is overwritten, as where it sees new lines alone.",
    1,
    ("(len(kind[0]), (32,), generator=g) for kind in (new, old)]", "(len(new[0]), (64,), generator=g)]"),
    ("zip((new, old), chosen)])\n        targets", "zip((new,), chosen)])\n        targets"),
    ("kind[1][rows] for kind, rows in zip((new, old), chosen)", "kind[1][rows] for kind, rows in zip((new,), chosen)"),
)
_misconception(
    "the old lines alone",
    "the new tense is not learnt, as where it sees old lines alone.",
    1,
    ("(len(kind[0]), (32,), generator=g) for kind in (new, old)]", "(len(old[0]), (8,), generator=g)]"),
    ("zip((new, old), chosen)])\n        targets", "zip((old,), chosen)])\n        targets"),
    ("kind[1][rows] for kind, rows in zip((new, old), chosen)", "kind[1][rows] for kind, rows in zip((old,), chosen)"),
)
_misconception(
    "nothing learnt",
    "the weights that are returned are those that were given.",
    0,
    ("optimizer.step()", "pass"),
)
_misconception(
    "too cautious",
    "hardly anything has changed: the new tense is not learnt, as at a very small learning rate.",
    1,
    ("0.002 * (1 - step / steps)", "0.00002"),
)
_misconception(
    "a number of steps of its own",
    "it takes more steps than `steps` says.",
    3,
    ("range(steps)", "range(max(steps, 12))"),
    ("step / steps", "step / max(steps, 12)"),
)
_misconception(
    "dice of everybody",
    "the same arguments give other weights, as where torch's global generator is asked and not seeded.",
    3,
    ("torch.Generator().manual_seed(seed)", "None"),
)


@fine_tune.alternate("shares by turns, and the loss of each")
def _(weights, config, new, old, steps, seed):
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    model = MiniGPT(config)
    model.load_state_dict({name: tensor.clone() for name, tensor in weights.items()})
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(steps):
        loss = 0.0
        for (inputs, targets), share in ((new, 0.4), (old, 0.6)):
            rows = torch.randperm(len(inputs))[:32]
            logits = model(inputs[rows])
            loss = loss + share * F.cross_entropy(logits.transpose(1, 2), targets[rows])
        model.zero_grad()
        loss.backward()
        optimizer.step()
    torch.set_rng_state(state)
    return {name: tensor.detach() for name, tensor in model.state_dict().items()}


fine_tune.free(
    "lr=0.002",
    "lr=0.001",
    "optimizer.param_groups[0]['lr'] = 0.002 * (1 - step / steps)",
    because="how fast it learns is up to the learner",
)
fine_tune.free(
    "(32,)",
    "[:32]",
    because="how many lines a step sees is up to the learner",
)
fine_tune.equivalent(
    ("for kind in (new, old)]", "for kind in (new, new)]"),
    because="which of the old lines are seen is up to the learner: here the first ones",
)
fine_tune.equivalent(
    ("(new, 0.4)", "(new, 0.8)"),
    ("(old, 0.6)", "(old, 1.2)"),
    ("share * F", "F"),
    because="the share of each kind is up to the learner",
)
fine_tune.equivalent(
    ("torch.Generator().manual_seed(seed)", "torch.Generator()"),
    ("torch.Generator().manual_seed(seed)", "torch.manual_seed(seed)"),
    ("manual_seed(seed)", "manual_seed(steps)"),
    because="what is drawn is the same again with any seed that stays",
)
fine_tune.equivalent(
    (", lr=0.002)", ")"),
    (", lr=0.001)", ")"),
    because="0.001 is a learning rate, too",
)
fine_tune.equivalent(
    ("range(steps)", "range(steps - 1)"),
    because="no more steps than `steps` are allowed, and what is learnt in fewer counts as well",
)
fine_tune.equivalent(
    ("kind[0]), (32", "kind[1]), (32"),
    ("kind[0]), (32", "kind[-1]), (32"),
    because="there are as many targets as inputs",
)
fine_tune.equivalent(
    ("loss = 0.0", "loss = 1.0"),
    (
        "share * F.cross_entropy(logits.transpose(1, 2), targets[rows])",
        "(share + F.cross_entropy(logits.transpose(1, 2), targets[rows]))",
    ),
    because="a constant has no gradient, and the share of each kind is up to the learner",
)
fine_tune.equivalent(
    ("((new, 0.4), (old, 0.6))", "((old, 0.6), (new, 0.4))"),
    ("transpose(1, 2)", "transpose(2, 1)"),
    because="a sum has no order, and neither have two dimensions that are exchanged",
)
fine_tune.equivalent(
    ("tensor.clone()", "tensor"),
    ("tensor.detach()", "tensor"),
    because="`load_state_dict` copies, and `state_dict` detaches",
)
fine_tune.equivalent(
    ("torch.set_rng_state(state)", "pass"),
    ("torch.set_rng_state(state)", "torch"),
    ("torch.set_rng_state(state)", "state"),
    because="nothing is said of what others draw afterwards",
)
