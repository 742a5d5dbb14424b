"""The grammar corpus: the training data of MiniGPT, and the held-out combinations.

A line is a row of words: first the cues, then a sentence or a list. A cue is a word in angle
brackets, or the verb.

    named    <bos> <es> hablar <past> yo hablé con mi madre ayer . <eos>
    unnamed  <bos> <es> <past> yo hablé con mi madre ayer . <eos>       the verb is not named
    free     <bos> <es> yo hablé con mi madre ayer . <eos>              verb and tense are not named
    forms    <bos> <es> hablar <forms> hablas hablé hablado … <eos>     random forms of the verb

`<not>` after the tense asks for a negative sentence.

**What is held out.** A combination is a verb, a tense and a person. It is one cell of a conjugation
table, with all pronouns of this person. About one combination in ten is held out: it is in no named
line of the training split. So no training line shows the verb, the tense and the person together.
There are two kinds of held-out combinations:

- *composed*: each of the cell's words also occurs in other cells (he hablado, from has hablado and
  he comido; I spoke, from she spoke). Training has no sentence of a composed combination.
- *own form*: one word occurs only in this cell (tuve). A model of whole words can't spell a word
  that it has never seen. So training has this word in two places: in the verb's list of forms, and
  in unnamed and free sentences. The model must find out that tener, past and yo *together* give
  tuve.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

from utils.minigpt.english import ENGLISH
from utils.minigpt.language import TENSES, Combination, Language, Words
from utils.minigpt.spanish import SPANISH
from utils.minigpt.tokenizer import SPECIAL

LANGUAGES = {"en": ENGLISH, "es": SPANISH}
CUES = ("<en>", "<es>", "<not>", "<forms>", *(f"<{tense}>" for tense in TENSES))

# for each language and tense: the share of the combinations that is held out
HELD_OUT_SHARE = 0.1
NEGATIVE_SHARE = 0.25
TRAIN_LINES = {"named": 20_000, "unnamed": 15_000, "free": 5_000}
LISTS_PER_VERB = 150
FORMS_PER_LIST = 27  # 32 tokens with cues and <eos>, so that every position is trained
TEST_LINES = 1_000  # named sentences in each split except train


@dataclass(frozen=True)
class Line:
    """One line of the corpus."""

    words: Words  # all of its tokens, from `<bos>` to `<eos>`
    cues: int  # the number of tokens before the sentence; training does not predict these tokens
    cell: Combination | None  # the combination in its sentence; None for a list of forms


@dataclass(frozen=True)
class Corpus:
    """The splits."""

    train: tuple[Line, ...]  # all four kinds of line
    # Named lines that are not in training. The combinations of `test_seen` are in training; the
    # combinations of `test_held_out` are held out.
    test_seen: tuple[Line, ...]
    test_held_out: tuple[Line, ...]
    # more lines of these two kinds, to tune a baseline
    tune_seen: tuple[Line, ...]
    tune_held_out: tuple[Line, ...]
    # held-out combinations of which each word also occurs in other cells
    composed: frozenset[Combination]
    own_form: frozenset[Combination]  # held-out combinations with a word that no other cell has

    @property
    def held_out(self) -> frozenset[Combination]:
        """All combinations that are in no named line of `train`."""
        return self.composed | self.own_form

    def sha256(self) -> str:
        """Return a fingerprint of all splits, in order."""
        digest = hashlib.sha256()
        tests = (self.test_seen, self.test_held_out, self.tune_seen, self.tune_held_out)
        for split in (self.train, *tests):
            for line in split:
                digest.update(" ".join(line.words).encode() + b"\n")
            digest.update(b"\n")
        return digest.hexdigest()


def without(data: Corpus, tense: str) -> Corpus:
    """Return the corpus without the training sentences of a tense. The lists of forms stay."""
    train = tuple(line for line in data.train if not (line.cell and line.cell.tense == tense))
    return replace(data, train=train)


def vocabulary() -> Words:
    """Return the 600 words in the order of their ids: special tokens, frames, then verb by verb."""
    words = dict.fromkeys((*SPECIAL, *CUES, "."))
    for language in LANGUAGES.values():
        for texts in (language.subjects, language.complements, language.times):
            for text in (text for group in texts.values() for text in group):
                words.update(dict.fromkeys(text.replace("/", " ").split()))
        for cell in language.combinations():
            words.update(dict.fromkeys(language.group(cell, negative=True)[:-1]))
    for language in LANGUAGES.values():
        for verb in language.verbs:
            words.update(dict.fromkeys((verb, *language.forms(verb))))
    return tuple(words)


def cues(
    language: Language, *, verb: str | None, tense: str | None, negative: bool = False
) -> Words:
    """Return the words before a sentence: ("<bos>", "<es>", "hablar", "<past>")."""
    named = (verb,) if verb else ()
    tensed = (f"<{tense}>", *(("<not>",) if negative else ())) if tense else ()
    return ("<bos>", f"<{language.code}>", *named, *tensed)


@cache
def sentences(cell: Combination, subject: str, negative: bool) -> tuple[Words, ...]:
    """Return every sentence that the grammar allows for a combination, without cues and `<eos>`."""
    language = LANGUAGES[cell.language]
    start = (*subject.split(), *language.group(cell, negative))
    return tuple(
        (*start, *complement, *time, ".")
        for complement, time in product(language.complements_of(cell), language.times_of(cell))
    )


def build(seed: int = 0) -> Corpus:
    rng = random.Random(seed)
    composed, own_form = _hold_out(rng)
    held_out = composed | own_form
    cells = [cell for language in LANGUAGES.values() for cell in language.combinations()]
    seen = _by_language(cell for cell in cells if cell not in held_out)
    unnamed = _by_language(cell for cell in cells if cell not in composed)
    unseen = _by_language(cell for cell in cells if cell in held_out)

    train = [_sentence(rng, seen, "named") for _ in range(TRAIN_LINES["named"])]
    for kind in ("unnamed", "free"):
        train += [_sentence(rng, unnamed, kind) for _ in range(TRAIN_LINES[kind])]
    for language in LANGUAGES.values():
        for verb in language.verbs:
            train += [_list_of_forms(rng, language, verb) for _ in range(LISTS_PER_VERB)]
    rng.shuffle(train)

    used = {line.words for line in train}
    test_seen, test_held_out, tune_seen, tune_held_out = (
        _new_lines(rng, pool, used) for pool in (seen, unseen, seen, unseen)
    )
    return Corpus(
        tuple(train), test_seen, test_held_out, tune_seen, tune_held_out, composed, own_form
    )


Pools = dict[str, list[Combination]]  # language code -> combinations to choose from


def _by_language(cells: Iterable[Combination]) -> Pools:
    pools: Pools = {code: [] for code in LANGUAGES}
    for cell in cells:
        pools[cell.language].append(cell)
    return pools


def _hold_out(rng: random.Random) -> tuple[frozenset[Combination], frozenset[Combination]]:
    """Return the combinations to hold out: the composed combinations, and the own forms."""
    held_out: list[Combination] = []
    known: dict[str, set[str]] = {}
    for language in LANGUAGES.values():
        cells = list(language.combinations())
        for tense in language.tenses:
            of_tense = [cell for cell in cells if cell.tense == tense]
            held_out += rng.sample(of_tense, round(HELD_OUT_SHARE * len(of_tense)))
        for cell in cells:
            if cell not in held_out:
                known.setdefault(cell.verb, set()).add(language.group(cell)[-1])
    composed = frozenset(
        cell
        for cell in held_out
        if LANGUAGES[cell.language].group(cell)[-1] in known.get(cell.verb, ())
    )
    return composed, frozenset(held_out) - composed


def _sentence(rng: random.Random, pools: Pools, kind: str) -> Line:
    """Draw a language, then a combination, then a subject, each uniformly."""
    language = LANGUAGES[rng.choice(list(LANGUAGES))]
    cell = rng.choice(pools[language.code])
    subject = rng.choice(language.subjects[cell.person])
    negative = rng.random() < NEGATIVE_SHARE
    start = cues(
        language,
        verb=cell.verb if kind == "named" else None,
        tense=cell.tense if kind != "free" else None,
        negative=negative,
    )
    sentence = rng.choice(sentences(cell, subject, negative))
    return Line((*start, *sentence, "<eos>"), len(start), cell)


def _list_of_forms(rng: random.Random, language: Language, verb: str) -> Line:
    """Return a line with FORMS_PER_LIST random forms of a verb. A form may occur several times."""
    start = ("<bos>", f"<{language.code}>", verb, "<forms>")
    forms = rng.choices(language.forms(verb), k=FORMS_PER_LIST)
    return Line((*start, *forms, "<eos>"), len(start), None)


def _new_lines(rng: random.Random, pools: Pools, used: set[Words]) -> tuple[Line, ...]:
    """Draw TEST_LINES named lines that are not in `used`, and add these lines to `used`."""
    lines: list[Line] = []
    for _ in range(100 * TEST_LINES):
        line = _sentence(rng, pools, "named")
        if line.words not in used:
            used.add(line.words)
            lines.append(line)
        if len(lines) == TEST_LINES:
            return tuple(lines)
    raise RuntimeError(f"expected {TEST_LINES} new sentences, found {len(lines)}: lower TEST_LINES")
