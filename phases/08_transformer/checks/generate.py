"""Lab 08, exercise 5: Prompts of unequal length"""

import numpy as np
import torch

from hood.judge.checks.exercise import Case, Check, Paste
from hood.judge.checks.words import listed
from utils.drivers.transformer import tiny_weights

generate = Check(
    "generate",
    parts={"one prompt": 1, "unequal prompts": 2, "the end": 1, "no needless work": 1},
    reads="Sentences of unequal length",
)

SIZES = WORDS, PLACES, CHANNELS = 9, 14, 8
ATTEMPTS = 3_000  # models that are tried until one shows every mistake


@generate.reference
def _(model, prompts, limit, pad, eos):
    rows = len(prompts)
    lengths = torch.tensor([len(prompt) for prompt in prompts])
    width = int(lengths.max())
    tokens = torch.full((rows, width), pad)
    for row, prompt in enumerate(prompts):
        tokens[row, width - len(prompt) :] = torch.tensor(prompt)
    place = torch.arange(width) - (width - lengths)[:, None]
    padding, positions = place >= 0, place.clamp(min=0)
    words, ended, cache = [[] for _ in prompts], [False] * rows, None
    while limit and not all(ended) and max(map(len, words)) < limit:
        logits, cache = model(tokens, positions, padding, cache)
        tokens = logits[:, -1].argmax(-1, keepdim=True)
        for row in range(rows):
            if not ended[row]:
                words[row].append(int(tokens[row, 0]))
                ended[row] = words[row][-1] == eos
        positions = positions.amax(1, keepdim=True) + 1
        padding = torch.cat([padding, torch.ones(rows, 1, dtype=torch.bool)], 1)
    return words


class _Alone:
    """What a model says after one prompt, in float64, correctly and with some mistakes."""

    def __init__(self, weights, limit):
        self.w = {name: tensor.double().numpy() for name, tensor in weights.items()}
        self.limit, self.clear = limit, True

    def next(self, tokens, places, asks=None):
        """The likeliest next word. `asks` is the word that gives the query, if that is not the last word."""
        w = self.w
        x = w["words"][tokens] + w["positions"][places]
        last = x[-1] if asks is None else w["words"][asks] + w["positions"][places[-1]]
        scores = (x @ w["key"]) @ (last @ w["query"]) / CHANNELS**0.5
        shares = np.exp(scores - scores.max())
        logits = (last + shares @ (x @ w["value"]) / shares.sum()) @ w["head"]
        order = np.sort(logits)
        self.clear &= bool(order[-1] - order[-2] > 0.02)  # so that rounding decides nothing
        return int(logits.argmax())

    def says(self, prompt, first=0, step=1, visible=(), asks=None, new=None):
        """Words after a prompt with positions from `first` on; `new` is each new word's position."""
        tokens = [*visible, *prompt]
        places = [0] * len(visible) + [first + n for n in range(len(prompt))]
        said = []
        for _ in range(self.limit):
            said.append(self.next(tokens, places, None if said else asks))
            places.append(places[-1] + step if new is None else new)
            tokens.append(said[-1])
        return said

    def mistakes(self, prompt, width, pad):
        """Yield what the model says in a batch of this width if positions or padding are wrong."""
        missing = width - len(prompt)
        kept = [word for word in prompt if word != pad]
        yield "still", self.says(prompt, step=0)
        yield "again", self.says(prompt, new=0)
        yield "hidden", self.says(kept) if kept else []
        if missing:
            yield "shifted", self.says(prompt, first=missing)
            yield "visible", self.says(prompt, visible=[pad] * missing)
            yield "right", self.says(prompt, asks=pad)


def _cut(words, stop):
    return words[: words.index(stop) + 1] if stop in words else words


@generate.cases
def _(draw):
    one, unequal, end, work = generate.parts
    def told(part, lengths, limit, eos, useful):
        """Find a model and prompts for which every mistake changes the result. Arguments as for `asked`."""
        first = draw.integer(0, 10**6)
        for attempt in range(ATTEMPTS):
            weights, dice = tiny_weights(*SIZES, first + attempt)
            prompts = [[int(torch.randint(WORDS - 1, (), generator=dice)) for _ in range(n)] for n in lengths]
            pad = max(prompts, key=len)[0]
            alone = _Alone(weights, limit)
            said = [alone.says(prompt) for prompt in prompts]
            if not alone.clear or not useful(said):
                continue
            stop = prompts[0][0] if eos is None else eos(said)
            width, seen = max(lengths), {}
            for prompt, words in zip(prompts, said):
                for mistake, wrong in alone.mistakes(prompt, width, pad):
                    seen[mistake] = seen.get(mistake) or _cut(wrong, stop) != _cut(words, stop)
            if part == work:  # these cases have no padding, or no `eos`
                seen = {mistake: seen[mistake] for mistake in ("still", "again") if stop < WORDS}
            if limit < 2 or all(seen.values()):
                return first + attempt, weights, prompts, pad, stop
        raise LookupError(f"no model found for {part!r}, prompts of {lengths} tokens")

    def asked(part, lengths, limit, eos, useful=lambda said: True, what="words"):
        """`eos` takes the words that the model says without an end, and returns the word that must end them."""
        seed, weights, prompts, pad, stop = told(part, lengths, limit, eos, useful)
        pad = WORDS - 1 if part == work else pad

        def play(subject):
            came = subject.drive("transformer:generated", weights, prompts, limit, pad, stop)
            return came[what]

        shown = f"prompts of {listed(lengths)} tokens, limit {limit}"
        places = {"columns": "the number of columns in each call", "prompts": "the given prompts, after the call"}
        places = {"": places[what]} if what in places else {}
        model = f"driver.tiny_weights{(*SIZES, seed)}[0]"
        call = f"driver.generated(generate, {model}, {{}}, {{}}, {{}}, {{}})['{what}']"
        paste = Paste(call, (prompts, limit, pad, stop), {"": "{}"})
        return Case(part, play, shown=shown, places=places, paste=paste)

    def nowhere(said):
        return WORDS + 1

    def first_of(row, at):
        """Let the word at place `at` of row `row` be the end, if no other row says this word as early."""

        def useful(said):
            word = said[row][at]
            return word not in said[row][:at] and all(
                word not in other[: at + 1] for place, other in enumerate(said) if place != row
            )

        return (lambda said: said[row][at]), useful

    n = draw.integer(2, 5)
    yield asked(one, [n], 4, nowhere)
    yield asked(one, [1], draw.integer(3, 6), nowhere)
    yield asked(one, [n], 0, nowhere)
    yield asked(unequal, [4, 2], 4, nowhere)
    yield asked(unequal, [1, n, 3], 5, nowhere)
    yield asked(unequal, [n, n], 3, nowhere)
    yield asked(unequal, [4, 2], 4, nowhere, what="prompts")
    yield asked(unequal, [2, 5, 1, 3], 4, nowhere, lambda said: len(set(map(tuple, said))) > 2)
    for row, at in ((0, 1), (1, 1), (1, 2)):
        stop, useful = first_of(row, at)
        yield asked(end, [3, draw.choice((1, 2, 4))], 5, stop, useful)
    stop, useful = first_of(0, draw.integer(1, 2))
    yield asked(end, [n], 5, stop, useful)
    yield asked(work, [n], 5, stop, useful, what="columns")

    # the word that ends a text may be in a prompt, where it ends nothing
    yield asked(end, [4, 2], 5, None)
    yield asked(end, [1, 3], 5, None)  # and a prompt may end with it
    stop, useful = first_of(0, 1)  # the longest row ends first: the others are at smaller positions
    yield asked(end, [4, 2], 5, stop, useful)

    def between(said):
        """A word with a larger number comes before the word that ends, and a word with a smaller number."""
        return said[0][1] < said[0][2] < said[0][0]

    yield asked(end, [n], 5, lambda said: said[0][2], between)

    def one_later(said):
        """The second row ends one word later than the first."""
        return said[0][0] == said[1][1] != said[1][0] and said[0][1] != said[0][0]

    yield asked(work, [3, 3], 5, lambda said: said[0][0], one_later, what="columns")
    yield asked(work, [3, n, 1], draw.integer(3, 5), nowhere, what="columns")
    yield asked(work, [n, 2], 1, nowhere, what="columns")
    yield asked(work, [n, 2], 0, nowhere, what="columns")
