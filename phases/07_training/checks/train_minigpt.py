"""Lab 07, exercise 9: MiniGPT from nothing"""

import torch
from torch.nn import functional as F

from utils.checks import Case, Check
from utils.drivers.training import perplexity, sentences
from utils.minigpt import (
    MiniGPT,
    MiniGPTConfig,
    baselines,
    evaluation_lines,
    load_minigpt,
    parameter_shapes,
    training_lines,
)

train_minigpt = Check(
    "train_minigpt",
    parts={"it loads": 1, "it repeats": 1, "one batch by heart": 1, "below the n-grams": 2},
    reads="MiniGPT from nothing",
)

WORDS, COLUMNS = 600, 18
STEPS, BY_HEART = 300, 60


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

    for count, steps in ((40, 2), (16, 0)):
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

    small, given, seed = config(8), lines(70), draw.integer(0, 999)

    def again(subject):
        one, same, other = (subject(*given, small, 3, s) for s in (seed, seed, seed + 1))
        fixed = all(torch.equal(one[name], same[name]) for name in parameter_shapes(small))
        differ = [name for name in parameter_shapes(small) if not torch.equal(one[name], other[name])]
        return fixed, "token_embedding.weight" in differ

    places = {
        "[0]": "Called twice with the same arguments, it returns different weights.",
        "[1]": "Another seed gives the same embeddings.",
    }
    yield Case(repeats, again, shown=words(small, 70, 3), places=places)

    middle, few = config(16), lines(16)

    def learnt(subject):
        return perplexity(subject(*few, middle, BY_HEART, 0), middle, *few) < 1.5

    shown = f"{words(middle, 16, BY_HEART)}: the perplexity on these lines"
    places = {"": "It is 1.5 or more."}
    yield Case(by_heart, learnt, shown=shown, places=places)

    large, many, seed = config(32), lines(5000), draw.integer(0, 999)

    def beats(subject):
        trained = subject(*many, large, STEPS, seed)
        found = []
        for held_out, rivals in enumerate(baselines().values()):
            unseen = sentences(*evaluation_lines(bool(held_out)), COLUMNS)
            mine = perplexity(trained, large, *_renamed(names, *unseen))
            found += [mine < rivals["trigram"], mine < rivals["fivegram"]]
        return found

    places = {
        "[0]": "On lines it has not seen, its perplexity is not below the trigram's.",
        "[1]": "On lines it has not seen, its perplexity is below the trigram's and not the 5-gram's.",
        "[2]": "On combinations held out, its perplexity is not below the trigram's.",
        "[3]": "On combinations held out, its perplexity is not below the 5-gram's.",
    }
    yield Case(below, beats, shown=words(large, 5000, STEPS), places=places)
