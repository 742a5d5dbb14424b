"""The corpus has the stated content, and training shows no held-out combination."""

import pytest

from utils.minigpt import corpus
from utils.minigpt.corpus import LANGUAGES

pytestmark = pytest.mark.slow(12)


def read(words):
    """A line's language, verb, tense and sentence, found only from the line's words."""
    assert words[0] == "<bos>"
    assert words[-1] == "<eos>"
    language = LANGUAGES[words[1].strip("<>")]
    rest = list(words[2:-1])
    verb = rest.pop(0) if rest[0] in language.verbs and rest[1].startswith("<") else None
    tense = rest.pop(0).strip("<>") if rest[0].startswith("<") else None
    negative = rest[0] == "<not>"
    return language, verb, tense, tuple(rest[negative:])


def person_of(language, sentence):
    """The person of the sentence's subject. If several subjects fit, the longest counts."""
    for length in (3, 1):
        subject = " ".join(sentence[:length])
        for person, subjects in language.subjects.items():
            if subject in subjects:
                return person, sentence[length:]
    raise AssertionError(f"no subject in {sentence}")


def test_the_vocabulary_has_exactly_600_words_each_once():
    words = corpus.vocabulary()
    assert len(words) == len(set(words)) == 600
    assert words[:3] == ("<pad>", "<bos>", "<eos>")


def test_every_word_is_in_training_and_every_line_in_the_vocabulary_and_context(data):
    words = {word for line in data.train for word in line.words}
    assert words == set(corpus.vocabulary()) - {"<pad>"}
    splits = (data.train, data.test_seen, data.test_held_out, data.tune_seen, data.tune_held_out)
    for split in splits:
        for line in split:
            assert set(line.words) <= words
            assert len(line.words) <= 32
    assert max(len(line.words) for line in data.train) == 32


def test_every_line_is_a_sentence_or_a_list_of_its_verbs_forms(data):
    for line in data.train:
        language, verb, tense, rest = read(line.words)
        assert line.words[line.cues : -1] == rest
        if tense == "forms":
            assert line.cell is None
            assert set(rest) <= set(language.forms(verb))
            continue
        person, _ = person_of(language, rest)
        assert (line.cell.language, line.cell.person) == (language.code, person)
        assert verb in (None, line.cell.verb)
        assert tense in (None, line.cell.tense)
        assert any(
            rest in corpus.sentences(line.cell, subject, negative)
            for subject in language.subjects[person]
            for negative in (False, True)
        )


def test_no_line_of_training_shows_verb_tense_and_person_of_a_combination_held_out(data):
    held_out = {(c.language, c.verb, c.tense, c.person) for c in data.held_out}
    named = 0
    for line in data.train:
        language, verb, tense, rest = read(line.words)
        if verb and tense != "forms":
            named += 1
            person, _ = person_of(language, rest)
            assert (language.code, verb, tense, person) not in held_out
    assert named == corpus.TRAIN_LINES["named"]


def test_no_sentence_of_a_composed_combination_is_in_training(data):
    """The test searches for words that only a held-out combination can have."""
    meanings = {}
    for language in LANGUAGES.values():
        for cell in language.combinations():
            for subject in language.subjects[cell.person]:
                for negative in (False, True):
                    for sentence in corpus.sentences(cell, subject, negative):
                        meanings.setdefault((language.code, sentence), set()).add(cell)
    for line in data.train:
        language, _, tense, rest = read(line.words)
        if tense != "forms":
            assert not meanings[language.code, rest] <= data.composed, line.words


def test_words_of_held_out_combinations_are_known_from_elsewhere(data):
    in_sentences = {word for line in data.train if line.cell for word in line.words[line.cues : -1]}
    for cell in data.held_out:
        assert set(LANGUAGES[cell.language].group(cell)) <= in_sentences
    for cell in data.own_form:
        own = LANGUAGES[cell.language].group(cell)[-1]
        seen = [line for line in data.train if line.cell and own in line.words[line.cues :]]
        assert not any(cell.verb in line.words[: line.cues] for line in seen)


def test_enough_is_held_out_of_each_language_and_tense(data):
    for language in LANGUAGES.values():
        cells = [cell for cell in data.held_out if cell.language == language.code]
        assert len(cells) >= 0.09 * sum(1 for _ in language.combinations())
        assert {cell.tense for cell in cells} == set(language.tenses)


def test_the_splits_share_no_line(data):
    splits = (data.train, data.test_seen, data.test_held_out, data.tune_seen, data.tune_held_out)
    lines = [{line.words for line in split} for split in splits]
    assert sum(map(len, lines)) == len(set.union(*lines))
    assert {line.cell for line in data.test_held_out} <= data.held_out
    assert not {line.cell for line in data.test_seen} & data.held_out


def test_a_seed_gives_the_same_corpus_and_another_seed_another(small_corpus):
    assert corpus.build(0).sha256() == corpus.build(0).sha256()
    assert corpus.build(1).sha256() != corpus.build(0).sha256()
