"""English conjugation: the regular rules as code, the irregular forms as data.

There are five tenses: present (I speak), past (I spoke), future (I will speak), progressive (I am
speaking), perfect (I have spoken). The Spanish tenses have the same names. English has no separate
imperfect. There are five persons, because *you* is the same in the singular and the plural.
"""

from __future__ import annotations

from functools import cache

from utils.minigpt.language import PERSONS, Combination, Language, Words

# verb: past, participle
IRREGULAR = {
    "be": ("was", "been"),  # its present and past depend on the person, see BE
    "have": ("had", "had"),
    "go": ("went", "gone"),
    "do": ("did", "done"),
    "say": ("said", "said"),
    "see": ("saw", "seen"),
    "speak": ("spoke", "spoken"),
    "eat": ("ate", "eaten"),
    "write": ("wrote", "written"),
    "read": ("read", "read"),
    "sleep": ("slept", "slept"),
    "begin": ("began", "begun"),
    "make": ("made", "made"),
    "take": ("took", "taken"),
    "come": ("came", "come"),
    "run": ("ran", "run"),
    "buy": ("bought", "bought"),
}
BE = {"present": "am are is are are", "past": "was were was were were"}
# verbs whose last syllable is stressed and ends in consonant, vowel, consonant
DOUBLED = {"begin", "run", "stop"}

COMPLEMENTS = {
    "be": ("happy", "at home", "here"),
    "have": ("a dog", "a book", "coffee"),
    "go": ("home", "to London", "to the sea"),
    "do": ("this", "the work"),
    "say": ("hello", "this"),
    "see": ("the sea", "the house", "a dog"),
    "want": ("water", "coffee", "a dog"),
    "speak": ("with my mother", "English", "Spanish"),
    "eat": ("bread", "rice", "at home"),
    "live": ("in London", "here", "with my mother"),
    "write": ("a book", "at home", "to my mother"),
    "read": ("a book", "the book", "at home"),
    "sleep": ("well", "at home", "here"),
    "begin": ("the book", "the work", "well"),
    "arrive": ("late", "at home", "in London"),
    "play": ("with the dog", "at home", "here"),
    "try": ("the bread", "the coffee", "this"),
    "stop": ("the work", "here", "late"),
    "make": ("coffee", "bread", "rice"),
    "take": ("the book", "the dog", "this"),
    "come": ("home", "here", "to London"),
    "run": ("home", "to the sea", "here"),
    "walk": ("home", "to the sea", "here"),
    "buy": ("bread", "a book", "coffee"),
}

TIMES = {
    "present": ("every day", "often", "today"),
    "past": ("yesterday", "last night", "last week"),
    "future": ("tomorrow", "soon", "this week"),
    "progressive": ("now", "today"),
    "perfect": ("before", "this week"),
}

SUBJECTS = {
    "1s": ("I",),
    "2s": ("you",),
    "3s": ("he", "she", "Luis"),
    "1p": ("we", "Ana and I"),
    "3p": ("they", "Ana and Luis"),
}

HAVE = ("have", "have", "has", "have", "have")
VOWELS = set("aeiou")


@cache
def conjugate(verb: str, tense: str) -> tuple[Words, ...]:
    """Return the verb group for each of `PERSONS`. Raises KeyError for an unknown verb or tense.

    ``conjugate("speak", "perfect")[2]`` is ``("has", "spoken")``.
    """
    if verb not in COMPLEMENTS:
        raise KeyError(f"{verb!r} is not one of the English verbs: {', '.join(COMPLEMENTS)}")
    if tense == "future":
        return (("will", verb),) * len(PERSONS)
    if tense == "progressive":
        return tuple((form, present_participle(verb)) for form in BE["present"].split())
    if tense == "perfect":
        return tuple((form, participle(verb)) for form in HAVE)
    if tense not in ("present", "past"):
        known = "present, past, future, progressive, perfect"
        raise KeyError(f"expected a tense that English has here ({known}), got {tense!r}")
    if verb == "be":
        return tuple((form,) for form in BE[tense].split())
    if tense == "past":
        return ((past(verb),),) * len(PERSONS)
    return tuple((third_person(verb) if person == "3s" else verb,) for person in PERSONS)


def third_person(verb: str) -> str:
    """Return the third person singular: speaks, goes, studies; has."""
    if verb == "have":
        return "has"
    if _ends_in_consonant_y(verb):
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("o", "s", "x", "z", "ch", "sh")) else "s")


def past(verb: str) -> str:
    """Return the past: walked, lived, studied, stopped; spoke."""
    return IRREGULAR[verb][0] if verb in IRREGULAR else _with_ed(verb)


def participle(verb: str) -> str:
    """Return the past participle: walked, lived, studied, stopped; spoken."""
    return IRREGULAR[verb][1] if verb in IRREGULAR else _with_ed(verb)


def present_participle(verb: str) -> str:
    """Return the -ing form: speaking, living, stopping; being and seeing keep their e."""
    if verb in DOUBLED:
        return verb + verb[-1] + "ing"
    silent = verb.endswith("e") and verb != "be" and not verb.endswith("ee")
    return (verb[:-1] if silent else verb) + "ing"


def _with_ed(verb: str) -> str:
    if verb in DOUBLED:
        return verb + verb[-1] + "ed"
    if _ends_in_consonant_y(verb):
        return verb[:-1] + "ied"
    return verb + ("d" if verb.endswith("e") else "ed")


def _ends_in_consonant_y(verb: str) -> bool:
    return verb.endswith("y") and verb[-2] not in VOWELS


def _negate(cell: Combination, group: Words) -> Words:
    """Return the negative group: `not` after the auxiliary, or after do, does or did."""
    if cell.verb == "be" or len(group) > 1:
        return (group[0], "not", *group[1:])
    auxiliary = "did" if cell.tense == "past" else "does" if cell.person == "3s" else "do"
    return (auxiliary, "not", cell.verb)


ENGLISH = Language(
    code="en",
    tenses=("present", "past", "future", "progressive", "perfect"),
    subjects=SUBJECTS,
    complements=COMPLEMENTS,
    times=TIMES,
    stative=frozenset({"be", "have", "see", "want"}),
    conjugate=conjugate,
    negate=_negate,
)
