"""Every form of every verb is right, and the sentences around them are well made."""

import importlib.util
from pathlib import Path

import pytest

from utils.minigpt import corpus
from utils.minigpt.english import ENGLISH
from utils.minigpt.language import PERSONS, TENSES, Combination
from utils.minigpt.spanish import SPANISH, gerund, participle

_spec = importlib.util.spec_from_file_location(
    "known_forms", Path(__file__).with_name("known_forms.py")
)
known = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(known)

SIMPLE = ("present", "past", "imperfect", "future")
ESTAR = ("estoy", "estás", "está", "estamos", "están")
HABER = ("he", "has", "ha", "hemos", "han")


def flat(groups):
    return " ".join(" ".join(group) for group in groups)


def test_there_are_at_least_forty_verbs_and_the_known_forms_cover_every_one():
    assert len(SPANISH.verbs) + len(ENGLISH.verbs) >= 40
    assert set(known.SPANISH) == {(verb, tense) for verb in SPANISH.verbs for tense in SIMPLE}
    assert set(known.SPANISH_PARTICIPLES) == set(SPANISH.verbs)
    assert set(known.ENGLISH) | {"be"} == set(ENGLISH.verbs)


@pytest.mark.parametrize(("verb", "tense"), known.SPANISH)
def test_spanish_simple_tenses(verb, tense):
    assert flat(SPANISH.conjugate(verb, tense)) == known.SPANISH[verb, tense]


@pytest.mark.parametrize("verb", known.SPANISH_PARTICIPLES)
def test_spanish_compound_tenses(verb):
    assert (gerund(verb), participle(verb)) == known.SPANISH_PARTICIPLES[verb]
    for tense, auxiliaries, form in (
        ("progressive", ESTAR, gerund(verb)),
        ("perfect", HABER, participle(verb)),
    ):
        assert SPANISH.conjugate(verb, tense) == tuple((a, form) for a in auxiliaries)


@pytest.mark.parametrize("verb", known.ENGLISH)
def test_english_verbs(verb):
    third, past, participle_, ing = known.ENGLISH[verb].split()
    assert flat(ENGLISH.conjugate(verb, "present")) == f"{verb} {verb} {third} {verb} {verb}"
    assert flat(ENGLISH.conjugate(verb, "past")) == " ".join([past] * 5)
    assert flat(ENGLISH.conjugate(verb, "future")) == " ".join([f"will {verb}"] * 5)
    expected = f"am {ing} are {ing} is {ing} are {ing} are {ing}"
    assert flat(ENGLISH.conjugate(verb, "progressive")) == expected
    have, has = f"have {participle_}", f"has {participle_}"
    assert flat(ENGLISH.conjugate(verb, "perfect")) == f"{have} {have} {has} {have} {have}"


def test_be():
    assert flat(ENGLISH.conjugate("be", "present")) == "am are is are are"
    assert flat(ENGLISH.conjugate("be", "past")) == "was were was were were"
    assert flat(ENGLISH.conjugate("be", "future")) == " ".join(["will be"] * 5)
    assert flat(ENGLISH.conjugate("be", "perfect")) == (
        "have been have been has been have been have been"
    )


@pytest.mark.parametrize(
    ("language", "cell", "negative"),
    [
        (SPANISH, ("hablar", "past", "1s"), "no hablé"),
        (SPANISH, ("comer", "perfect", "3p"), "no han comido"),
        (ENGLISH, ("speak", "past", "3s"), "did not speak"),
        (ENGLISH, ("speak", "present", "3s"), "does not speak"),
        (ENGLISH, ("do", "present", "1p"), "do not do"),
        (ENGLISH, ("have", "present", "3s"), "does not have"),
        (ENGLISH, ("be", "present", "1s"), "am not"),
        (ENGLISH, ("be", "past", "3p"), "were not"),
        (ENGLISH, ("eat", "future", "2s"), "will not eat"),
        (ENGLISH, ("eat", "progressive", "2s"), "are not eating"),
        (ENGLISH, ("go", "perfect", "3s"), "has not gone"),
    ],
)
def test_negation(language, cell, negative):
    group = language.group(Combination(language.code, *cell), negative=True)
    assert " ".join(group) == negative


def test_an_unknown_verb_or_tense_is_refused_by_name():
    with pytest.raises(KeyError, match="'cantar' is not one of the Spanish verbs: hablar, comer"):
        SPANISH.conjugate("cantar", "past")
    with pytest.raises(KeyError, match="'sing' is not one of the English verbs"):
        ENGLISH.conjugate("sing", "past")
    with pytest.raises(KeyError, match="got 'imperfect'"):
        ENGLISH.conjugate("speak", "imperfect")


def test_sentences_are_subject_verb_complement_and_time():
    cell = Combination("es", "hablar", "past", "1p")
    made = [" ".join(words) for words in corpus.sentences(cell, "Ana y yo", True)]
    assert "Ana y yo no hablamos con mi madre ayer ." in made
    assert len(made) == len(set(made)) == 9


def test_complements_agree_in_number():
    for person, word in (("3s", "feliz"), ("3p", "felices")):
        cell = Combination("es", "ser", "past", person)
        assert (word,) in SPANISH.complements_of(cell)


@pytest.mark.parametrize("language", [SPANISH, ENGLISH])
def test_every_combination_has_subjects_complements_and_times(language):
    assert set(language.tenses) <= set(TENSES)
    assert set(language.subjects) == set(PERSONS)
    subjects = [subject for group in language.subjects.values() for subject in group]
    assert len(subjects) == len(set(subjects))
    for cell in language.combinations():
        assert language.complements_of(cell)
        assert language.times_of(cell)


@pytest.mark.parametrize("language", [SPANISH, ENGLISH])
def test_no_subject_begins_another(language):
    """After "Ana", a model could not know whether "and I" is still to come."""
    subjects = [subject.split() for group in language.subjects.values() for subject in group]
    for one in subjects:
        others = [other[: len(one)] for other in subjects if other != one]
        assert one not in others
