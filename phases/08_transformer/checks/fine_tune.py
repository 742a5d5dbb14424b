"""Lab 08, exercise 10: A new tense"""

import torch
from torch.nn import functional as F

from hood.judge.checks.exercise import Case, Check
from utils.drivers.transformer import perplexity, sentences
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
    """0 for every perplexity that is low enough, because the perplexities of right answers differ."""
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
        """The lines in the imperfect, and the other lines."""
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
        "[1]": "Two calls with the same arguments return different weights.",
        "[2]": "The given weights have changed.",
        "[3]": "After 3 steps, some weight is not within 1 of its first value.",
        "[4]": "After 3 steps, the weights are still the given weights.",
        "[5]": "An optimizer has taken more than the 3 steps that were asked for.",
    }
    yield Case(fits, again, shown="40 new lines, 60 old ones, 3 steps, seed 0", places=places)

    def measured(subject):
        came = subject(weights, config, new, some(old, 4000), STEPS, seed)
        found = (perplexity(came, config, *some(lines, 700)) for lines in unseen)
        return [_unless_below(bound, value) for bound, value in zip((NEW, OLD), found)]

    places = {
        "[0]": f"On unseen lines in the imperfect, the model's perplexity is not below {NEW}.",
        "[1]": f"On unseen lines of what the model knew before, its perplexity is not below {OLD}.",
    }
    yield Case(learnt, measured, shown=f"{STEPS} steps", places=places)
