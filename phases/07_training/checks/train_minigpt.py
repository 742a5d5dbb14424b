"""Lab 07, exercise 9: MiniGPT from nothing"""

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader

from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution
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

    small, given, seed = config(8), lines(300), draw.integer(0, 999)

    def again(subject):
        seeds = [0, 0, seed + 1]
        came = subject.drive("training:repeated", *given, small, 3, seeds)
        one, same, other = came["weights"]
        fixed = all(_same(one[name], same[name]) for name in parameter_shapes(small))
        differ = [name for name in parameter_shapes(small) if not torch.equal(one[name], other[name])]
        return fixed, "token_embedding.weight" in differ, came["steps"] <= 3

    places = {
        "[0]": "Called twice with the same arguments, it returns different weights.",
        "[1]": "Another seed gives the same embeddings.",
        "[2]": "An optimizer has taken more than 3 steps, where 3 are asked for.",
    }
    yield Case(repeats, again, shown=words(small, 300, 3), places=places)

    middle, few = config(16), lines(16)

    def learnt(subject):
        return _unless_below(1.5, perplexity(subject(*few, middle, BY_HEART, 0), middle, *few))

    shown = f"{words(middle, 16, BY_HEART)}: the perplexity on these lines"
    places = {
        "['nearly']": "It is not below 3: little of them has been learnt.",
        "['below']": "It is below 3, and not below 1.5.",
    }
    yield Case(by_heart, learnt, shown=shown, places=places)

    large, many, seed = config(32), lines(5000), draw.integer(0, 999)

    def beats(subject):
        trained = subject(*many, large, STEPS, seed)
        seen, held_out = baselines().values()
        found = []
        for is_held_out, bound in ((False, seen["trigram"]), (True, held_out["fivegram"])):
            unseen = _renamed(names, *sentences(*evaluation_lines(is_held_out), COLUMNS))
            found.append(_unless_below(bound, perplexity(trained, large, *unseen)))
        return found

    places = {
        "[0]['nearly']": "On lines it has not seen, its perplexity is not below twice the trigram's.",
        "[0]['below']": "On lines it has not seen, its perplexity is below twice the trigram's, and not below it.",
        "[1]['nearly']": "On combinations held out, its perplexity is not below twice the 5-gram's.",
        "[1]['below']": "On combinations held out, its perplexity is below twice the 5-gram's, and not below it.",
    }
    yield Case(below, beats, shown=words(large, 5000, STEPS), places=places)


_train = lab_solution(__name__, "train_minigpt")


def _misconception(name, explanation, earns, *edits):
    train_minigpt.misconception(name, explanation, earns=earns)(edited(_train, *edits))


_misconception(
    "never a step",
    "the weights are those that the model began with.",
    2,
    ("        optimizer.step()", "        break"),
)
_misconception(
    "once through the lines",
    "it stops when it has seen every line once, however many steps there are left.",
    2,
    ("range(steps)", "range(min(steps, len(inputs) // 64))"),
)
_misconception(
    "a number of steps of its own",
    "it takes more steps than `steps` says.",
    4,
    ("range(steps)", "range(max(steps, 12))"),
)
_misconception(
    "one line a step",
    "each step sees a single line, and most of the lines are never seen.",
    2,
    ("[:64]", "[:1]"),
)
_misconception(
    "the same lines again and again",
    "all steps see the same few lines.",
    2,
    ("torch.randperm(len(inputs))[:64]", "torch.arange(min(8, len(inputs)))"),
)


@train_minigpt.alternate("a loader, a warm-up, and clipping")
def _(inputs, targets, config, steps, seed):
    dice = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed + 1)
    model = MiniGPT(config)
    model.train()
    data = torch.utils.data.TensorDataset(inputs, targets)
    loader = DataLoader(data, batch_size=64, shuffle=True, generator=dice, drop_last=len(data) > 64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.99), weight_decay=0.1)
    climb = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))
    done = 0
    while done < steps:
        for x, y in loader:
            if done == steps:
                break
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(x).transpose(1, 2), y, ignore_index=-100).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            climb.step()
            done += 1
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


@train_minigpt.alternate("a step of Adam by hand")
def _(inputs, targets, config, steps, seed):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = MiniGPT(config)
    rng = torch.Generator().manual_seed(seed)
    weights = list(model.parameters())
    memory = [(torch.zeros_like(w), torch.zeros_like(w)) for w in weights]
    for t in range(1, steps + 1):
        rows = torch.randint(len(inputs), (48,), generator=rng)
        log_p = model(inputs[rows]).log_softmax(-1)
        loss = F.nll_loss(log_p.flatten(0, 1), targets[rows].flatten())
        for w, g, (m, v) in zip(weights, torch.autograd.grad(loss, weights), memory):
            m.lerp_(g, 0.1)
            v.lerp_(g * g, 0.01)
            with torch.no_grad():
                w -= 0.012 * (m / (1 - 0.9**t)) / ((v / (1 - 0.99**t)).sqrt() + 1e-8)
    return model.state_dict()


LOADER, BY_HAND = "a loader, a warm-up, and clipping", "a step of Adam by hand"
train_minigpt.free(
    ", lr=0.01",
    ", betas=(0.9, 0.99), weight_decay=0.1",
    "lambda step: min(1.0, (step + 1) / 10)",
    "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
    "m.lerp_(g, 0.1)",
    "v.lerp_(g * g, 0.01)",
    "0.012 * (m / (1 - 0.9 ** t)) / ((v / (1 - 0.99 ** t)).sqrt() + 1e-08)",
    because="the optimizer and its schedule are up to the learner",
)
train_minigpt.free(
    "[:64]",
    "(48,)",
    "batch_size=64, shuffle=True, generator=dice, drop_last=len(data) > 64",
    because="which lines a step sees, and how many, is up to the learner",
)
train_minigpt.free(
    "steps + 1",
    because="a step that no optimizer takes is not counted, and fewer may be enough",
    of=BY_HAND,
)
train_minigpt.equivalent(
    ("range(1,", "range(2,"),
    because="a step that no optimizer takes is not counted, and one fewer teaches as much",
    of=BY_HAND,
)
train_minigpt.equivalent(
    ("range(steps)", "range(steps - 1)"),
    ("done = 0", "done = 1"),
    because="no more steps than `steps` are allowed, and what is learnt in fewer counts as well",
)
train_minigpt.equivalent(
    ("seed + 1", "seed - 1"),
    ("seed + 1", "seed * 1"),
    ("seed + 1", "seed"),
    ("seed + 1", "seed + 2"),
    ("seed + 1", "seed + 0"),
    because="these are seeds, too",
)
for alternate in (LOADER, BY_HAND):
    train_minigpt.equivalent(
        ("torch.Generator().manual_seed(seed)", "torch.Generator()"),
        ("torch.Generator().manual_seed(seed)", "torch.manual_seed(seed)"),
        ("manual_seed(seed)", "manual_seed(steps)"),
        because="the first weights and the batches hang on the seed, and one of them is enough",
        of=alternate,
    )
train_minigpt.equivalent(
    ("seed + 1", "1"),
    ("seed + 1", "steps + 1"),
    because="the batches hang on the seed, too, which is enough",
)
train_minigpt.equivalent(
    ("len(inputs)", "len(targets)"), because="there are as many targets as inputs"
)
train_minigpt.equivalent(
    ("model.train()", "pass"),
    ("model.train()", "model"),
    because="a new module is in training mode",
)
train_minigpt.equivalent(
    ("done < steps", "done != steps"),
    ("done == steps", "done >= steps"),
    ("break", "continue"),
    because="no step is taken once there are enough",
)
train_minigpt.equivalent(
    ("set_to_none=True", ""),
    ("set_to_none=True", "set_to_none=False"),
    (", ignore_index=-100", ""),
    because="it is the default, or gradients of zeros in place of none",
)
train_minigpt.equivalent(
    ("transpose(1, 2)", "transpose(2, 1)"),
    because="two dimensions that are exchanged have no order",
)
train_minigpt.equivalent(
    (".clone()", ""), (".detach()", ""), because="nobody changes the model afterwards"
)
train_minigpt.equivalent(
    ("with torch.random.fork_rng(devices=[]):", "if True:"),
    ("devices=[]", ""),
    because="nothing is said of what others draw afterwards",
)
