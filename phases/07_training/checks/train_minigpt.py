"""Lab 07, exercise 9: MiniGPT from nothing"""

import torch
from torch.nn import functional as F

from utils.checks.exercise import Case, Check
from utils.drivers.training import perplexity, sentences
from utils.minigpt import (
    MiniGPT,
    MiniGPTConfig,
    baselines,
    evaluation_lines,
    parameter_shapes,
    training_lines,
)

train_minigpt = Check(
    "train_minigpt",
    parts={"it loads": 1, "it repeats": 1, "one batch by heart": 1, "below the n-grams": 2},
    reads="MiniGPT from nothing",
)

WORDS, COLUMNS = 600, 18
STEPS, BY_HEART = 150, 60


@train_minigpt.reference
def _(inputs, targets, config, steps, seed):
    torch.manual_seed(seed)
    model = MiniGPT(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(steps):
        rows = torch.randint(len(inputs), (64,))
        # logits are needed only where a target counts
        counts = targets[rows] != -100
        logits = model.lm_head(model.hidden(inputs[rows])[counts])
        loss = F.cross_entropy(logits, targets[rows][counts])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.state_dict()


def _renamed(names, inputs, targets):
    """The same lines, where every word has another number."""
    return names[inputs], torch.where(targets == -100, targets, names[targets.clamp(min=0)])


def _same(one, other):
    """Whether weights have the same values; NaN is the same as NaN."""
    return torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


def _unless_below(bound, found):
    """0 for every perplexity that is low enough: right answers differ. And by far, or nearly?"""
    bounds = {"nearly": 2 * bound, "below": bound}
    return {name: 0.0 if found < limit else found for name, limit in bounds.items()}


@train_minigpt.cases
def _(draw):
    loads, repeats, by_heart, below = train_minigpt.parts
    names = torch.tensor(draw.sample(range(WORDS), WORDS))
    inputs, targets = _renamed(names, *sentences(*training_lines(), COLUMNS))

    def lines(count):
        start = draw.integer(0, 100)
        return inputs[start : start + count].clone(), targets[start : start + count].clone()

    def config(width):
        return MiniGPTConfig(WORDS, width, draw.choice((2, 4)), 1, 2 * width, COLUMNS)

    def words(some, count, steps):
        return f"{count} lines, width {some.d_model}, {steps} steps"

    for count, steps in ((40, 3), (16, 3)):  # as many as learners try: a schedule may need some
        small, given, seed = config(8), lines(count), draw.integer(0, 999)

        def shapes(subject, small=small, given=given, steps=steps, seed=seed):
            came = subject(*given, small, steps, seed)
            found = {name: (tuple(t.shape), t.dtype) for name, t in came.items()}
            finite = all(bool(t.isfinite().all()) for t in came.values())
            return found == {
                name: (shape, torch.float32) for name, shape in parameter_shapes(small).items()
            }, finite

        places = {
            "[0]": "`MiniGPT(config).load_state_dict` would refuse the names, shapes or dtypes.",
            "[1]": "Some weights are infinite or NaN.",
        }
        yield Case(loads, shapes, shown=words(small, count, steps), places=places)

    small, given, more, seed = config(8), lines(300), lines(200), draw.integer(0, 999)

    def again(subject):
        seeds = [0, 0, seed + 1]
        came = subject.drive("training:repeated", *given, small, 3, seeds)
        one, same, other = came["weights"]
        fixed = all(_same(one[name], same[name]) for name in parameter_shapes(small))
        differ = [name for name in parameter_shapes(small) if not torch.equal(one[name], other[name])]
        others = subject.drive("training:repeated", *more, small, 3, [0])["weights"][0]
        learns = not torch.equal(one["lm_head.weight"], others["lm_head.weight"])
        return fixed, "token_embedding.weight" in differ, came["steps"] <= 3, learns

    places = {
        "[0]": "Called twice with the same arguments, it returns different weights.",
        "[1]": "Another seed gives the same embeddings.",
        "[2]": "Optimizers have taken more than 3 steps, where 3 are asked for.",
        "[3]": "Other lines give the same weights.",
    }
    yield Case(repeats, again, shown=words(small, 300, 3), places=places)

    middle, few = config(16), lines(16)

    def learnt(subject):
        came = subject.drive("training:repeated", *few, middle, BY_HEART, [0])
        found = perplexity(came["weights"][0], middle, *few)
        return {**_unless_below(1.5, found), "steps": came["steps"] <= BY_HEART}

    shown = f"{words(middle, 16, BY_HEART)}: the perplexity on these lines"
    places = {
        "['nearly']": "It is not below 3: little of them has been learnt.",
        "['below']": "It is below 3, and not below 1.5.",
        "['steps']": f"Optimizers have taken more than {BY_HEART} steps.",
    }
    yield Case(by_heart, learnt, shown=shown, places=places)

    large, many, seed = config(32), lines(5000), draw.integer(0, 999)

    def beats(subject):
        came = subject.drive("training:repeated", *many, large, STEPS, [seed])
        trained = came["weights"][0]
        seen, held_out = baselines().values()
        found = []
        for is_held_out, bound in ((False, seen["trigram"]), (True, held_out["fivegram"])):
            unseen = _renamed(names, *sentences(*evaluation_lines(is_held_out), COLUMNS))
            found.append(_unless_below(bound, perplexity(trained, large, *unseen)))
        return [*found, came["steps"] <= STEPS]

    places = {
        "[2]": f"Optimizers have taken more than {STEPS} steps.",
        "[0]['nearly']": "On lines it has not seen, its perplexity is not below twice the trigram's.",
        "[0]['below']": "On lines it has not seen, its perplexity is below twice the trigram's, and not below it.",
        "[1]['nearly']": "On combinations held out, its perplexity is not below twice the 5-gram's.",
        "[1]['below']": "On combinations held out, its perplexity is below twice the 5-gram's, and not below it.",
    }
    yield Case(below, beats, shown=words(large, 5000, STEPS), places=places)


LOADER, BY_HAND = "a loader, a warm-up, and clipping", "a step of Adam by hand"
