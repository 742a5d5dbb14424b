"""The common parts of English and Spanish in the grammar corpus: persons, tenses, sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

PERSONS = ("1s", "2s", "3s", "1p", "3p")
TENSES = ("present", "past", "imperfect", "future", "progressive", "perfect")

Words = tuple[str, ...]


@dataclass(frozen=True)
class Combination:
    """One cell of a conjugation table. For example, `hablar`, `past`, `1s` is the cell of *hablé*.

    The person is the row of the table, and not a pronoun: él, ella, usted and Ana are all `3s`.
    """

    language: str
    verb: str
    tense: str
    person: str


@dataclass(frozen=True)
class Language:
    """The grammar of sentences in one language: subject, verb group, complement, time words."""

    code: str  # `en` or `es`
    tenses: Words  # the tenses of `TENSES` that the corpus has in this language
    subjects: Mapping[str, Words]  # person -> subjects; a subject may be several words ("Ana y yo")
    # verb -> the words that may follow it. Of "feliz/felices", the second word is for plural
    # subjects.
    complements: Mapping[str, Words]
    times: Mapping[str, Words]  # tense -> time words
    stative: frozenset[str]  # verbs without a progressive
    # (verb, tense) -> the words of the verb group for each of `PERSONS`
    conjugate: Callable[[str, str], tuple[Words, ...]]
    # (verb, tense, person, the affirmative group) -> the negative group
    negate: Callable[[Combination, Words], Words]

    @property
    def verbs(self) -> Words:
        """The infinitives, in the order of the tables."""
        return tuple(self.complements)

    def tenses_of(self, verb: str) -> Words:
        """Return the tenses in which `verb` is used."""
        skipped = {"progressive"} if verb in self.stative else set()
        return tuple(tense for tense in self.tenses if tense not in skipped)

    def combinations(self) -> Iterator[Combination]:
        for verb in self.verbs:
            for tense in self.tenses_of(verb):
                for person in PERSONS:
                    yield Combination(self.code, verb, tense, person)

    def group(self, cell: Combination, negative: bool = False) -> Words:
        """Return the verb group of a combination: ("hablé",), or ("did", "not", "speak")."""
        words = self.conjugate(cell.verb, cell.tense)[PERSONS.index(cell.person)]
        return self.negate(cell, words) if negative else words

    def forms(self, verb: str) -> Words:
        """Return the forms of the verb in all tenses, each form once, without auxiliaries."""
        cells = (cell for cell in self.combinations() if cell.verb == verb)
        return tuple(dict.fromkeys(self.group(cell)[-1] for cell in cells))

    def complements_of(self, cell: Combination) -> tuple[Words, ...]:
        """Return the verb's complements, split into words. They agree with the subject's number."""
        plural = cell.person.endswith("p")
        texts = (text.split("/")[-1 if plural else 0] for text in self.complements[cell.verb])
        return tuple(tuple(text.split()) for text in texts)

    def times_of(self, cell: Combination) -> tuple[Words, ...]:
        return tuple(tuple(text.split()) for text in self.times[cell.tense])
