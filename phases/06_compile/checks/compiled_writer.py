"""Lab 06, exercise 10: A decode step that compiles once"""

import torch

from hood.judge.checks.exercise import Case, Check, Place
from hood.judge.checks.words import listed
from utils.drivers.decoding import small_minigpt
from utils.minigpt import complete, load_minigpt, load_tokenizer
from utils.minigpt.tokenizer import EOS

compiled_writer = Check(
    "compiled_writer",
    parts={"small models": 1, "the trained MiniGPT": 1, "one graph": 1, "one token a step": 1},
    reads="A step that compiles once",
)

WORDS = 11  # of a small model
ATTEMPTS = 500
VERBS = {"<es>": ("hablar", "tener", "ser", "comer"), "<en>": ("go", "be", "have", "speak")}
TENSES = "<past>", "<future>", "<present>"


@compiled_writer.reference
def _(model, backend):
    """Compiles nothing: tells the backend what one graph would have told it."""

    def write(prompt):
        words = complete([prompt], model)[0]
        backend.graphs, backend.fixed, backend.whole, backend.single = 1, [True], [True], [True]
        backend.steps += len(prompt) + len(words) - 1
        return words

    return write


def read(prompt, words):
    """How many tokens must be read to write these words. Wrong words may be of any type."""
    return len(prompt) + (len(words) if isinstance(words, list) else 1) - 1


@torch.no_grad()
def clear(model, prompt, words):
    """Whether each word was by far the likeliest, so that rounding decides nothing."""
    logits = model(torch.tensor([prompt + words]))[0, len(prompt) - 1 : -1]
    first, second = logits.topk(2).values.T
    return bool((first - second > 0.002).all())


def suits(model, prompts, endings):
    """Whether a model's texts show mistakes, and rounding decides nothing.

    With ``endings``, some texts must end with EOS, some must fill the context, and there must be
    different words.
    """
    texts = complete(prompts, model)
    if not all(map(clear, [model] * len(prompts), prompts, texts)):
        return False
    ended = sum(
        words[-1] == EOS and len(prompt) + len(words) < model.config.context
        for prompt, words in zip(prompts, texts, strict=True)
    )
    full = sum(words[-1] != EOS for words in texts)
    return not endings or (ended > 1 and full > 1 and len(set(sum(texts, []))) > 4)


@compiled_writer.cases
def _(draw):
    small, trained, graph, single = compiled_writer.parts

    def asked(part, prompts, shown, sizes=None, seed=0):
        texts = complete(prompts, small_minigpt(sizes, seed)) if part == single else []

        def play(subject):
            came = subject.drive("decoding:run_writer", prompts, sizes, seed, traced=part != small)
            if part == graph:
                graphs = came["graphs"]
                return graphs > 0, graphs < 2, came["fixed"], came["whole"], graphs
            if part == single:
                # If the words are wrong, a right loop reads as many tokens as one of these numbers.
                needed = [sum(map(read, prompts, words)) for words in (texts, came["words"])]
                steps = came["steps"]
                return steps >= min(needed), steps <= max(needed), came["single"]
            return came["words"], came["prompts"]

        places = {f"[0][{at}]": f"the words after prompt {at + 1}" for at in range(len(prompts))}
        places["[1]"] = Place("the given prompts, after the calls", returned=False)
        if part == graph:
            places = {
                "[0]": "The given backend got no graph.",
                "[1]": "There is more than one graph.",
                "[2]": "An input of the graph is not a tensor, or has a size that is not fixed.",
                "[3]": "Some of the model's linear layers are not in the graph.",
                "[4]": Place("the number of graphs", returned=False),
            }
        elif part == single:
            places = {
                "[0]": "Graphs ran less often than there are tokens to read.",
                "[1]": "Graphs ran more often than there are tokens to read.",
                "[2]": "When a graph ran once, it computed more than what one token needs.",
            }
        return Case(part, play, shown=shown, places=places)

    def lengths_of(context):
        """The longest prompt first, because a short prompt must not see what is left of it."""
        return [context - 1, 1, *draw.sample(range(1, context), min(context - 1, 8))]

    def small_case(part, sizes, lengths, endings=True):
        context = sizes[-1]
        first = draw.integer(0, 10**6)
        prompts = [[draw.integer(0, WORDS - 1) for _ in range(length)] for length in lengths]
        prompts[-1][-1] = EOS  # in a prompt it ends nothing
        prompts[-2][draw.integer(0, lengths[-2] - 1)] = EOS
        if part == single:  # the same words again need the same steps again
            prompts.append(list(prompts[1]))
        seeds = range(first, first + ATTEMPTS)
        seed = next((n for n in seeds if suits(small_minigpt(sizes, n), prompts, endings)), None)
        if seed is None:
            raise LookupError(f"no model found for {part!r}, prompts of {lengths} tokens")
        heads, layers = sizes[2:4]
        shown = (
            f"a model of {layers} layer{'s' * (layers > 1)} with {heads} head{'s' * (heads > 1)} and "
            f"a context of {context}, prompts of {listed(map(len, prompts))} tokens"
        )
        return asked(part, prompts, shown, sizes, seed)

    context = draw.integer(8, 10)
    yield small_case(small, (WORDS, 8, 2, 2, 12, context), lengths_of(context))
    context = draw.integer(6, 9)
    yield small_case(small, (WORDS, 6, 1, 1, 8, context), lengths_of(context))
    yield small_case(small, (WORDS, 6, 3, 3, 10, 2), [1, 1, 1], endings=False)
    yield small_case(small, (WORDS, 4, 2, 1, 6, 40), [38, 2], endings=False)

    words, gpt = load_tokenizer(), load_minigpt()
    while True:
        prompts = []
        for count in (5, 3, 4):
            language = draw.choice(("<es>", "<en>"))
            who = "yo" if language == "<es>" else "she"
            verb, tense = draw.choice(VERBS[language]), draw.choice(TENSES)
            prompts.append(words.encode(f"<bos> {language} {verb} {tense} {who}")[:count])
        prompts[1:1] = [[draw.integer(3, 599) for _ in range(31)]]
        if all(map(clear, [gpt] * len(prompts), prompts, complete(prompts, gpt))):
            break
    yield asked(trained, prompts, "three sentences, and a prompt of 31 words")

    context = draw.integer(8, 10)
    # Each layer is larger than the attention, so a missing layer is noticed.
    sizes = 40, 24, 2, 1, 48, context
    yield small_case(graph, sizes, [*range(1, context), 1, 3], endings=False)
    yield small_case(single, (WORDS, 6, 2, 2, 8, context), lengths_of(context))
