"""Words to ids and back, and clear messages about unknown words."""

import json
import re

import pytest
import tokenizers

from utils.minigpt import Tokenizer, corpus, load_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer()


def test_the_shipped_tokenizer_has_the_corpus_words_in_order(tokenizer):
    assert tokenizer.vocabulary == corpus.vocabulary()
    assert len(tokenizer) == 600


def test_text_comes_back(tokenizer):
    for text in ("yo hablé con mi madre ayer.", "Ana and I will not stop here tomorrow."):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_cues_and_words_are_encoded_one_to_one(tokenizer):
    words = ["<bos>", "<es>", "hablar", "<past>", "<not>", "tú", "no", "hablaste", ".", "<eos>"]
    ids = tokenizer.encode(" ".join(words))
    assert ids == tokenizer.encode(words) == [tokenizer.id(word) for word in words]
    assert tokenizer.words(ids) == words
    assert tokenizer.decode([0, 0, *ids, 0]) == "<es> hablar <past> <not> tú no hablaste."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("yo hablè", "'hablè' is not one of MiniGPT's 600 words: did you mean 'habló' or 'hablé'"),
        ("Yo", "'Yo' is not one of MiniGPT's 600 words: did you mean 'yo' or"),
        ("spoken ?", "'?' is not one of MiniGPT's 600 words"),
    ],
)
def test_an_unknown_word_is_refused_with_the_nearest(tokenizer, text, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        tokenizer.encode(text)


@pytest.mark.parametrize("index", [-1, 600])
def test_an_id_outside_the_vocabulary_is_refused(tokenizer, index):
    with pytest.raises(ValueError, match=f"expected ids from 0 to 599, got {index}"):
        tokenizer.decode([5, index])


def test_a_vocabulary_has_each_word_once_and_begins_with_the_special_ones():
    with pytest.raises(ValueError, match="a word twice"):
        Tokenizer(["<pad>", "<bos>", "<eos>", "a", "a"])
    with pytest.raises(ValueError, match="begins with"):
        Tokenizer(["a", "b", "c"])


def test_saving_and_loading_gives_the_same_tokenizer_and_bytes(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "one.json")
    again = load_tokenizer(tmp_path / "one.json")
    assert again.vocabulary == tokenizer.vocabulary
    again.save(tmp_path / "two.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"model": {"vocab": {"<pad>": 0, "<bos>": 2}}}', '{"model": {"vocab": {}}}'],
)
def test_an_invalid_tokenizer_file_is_refused_by_name(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"tokenizer\.json is not a word-level tokenizer file"):
        load_tokenizer(path)


def test_hugging_faces_tokenizers_reads_the_same_file(tokenizer):
    theirs = tokenizers.Tokenizer.from_file(str(corpus_file()))
    for text in (
        "<bos> <es> hablar <past> <not> yo no hablé con mi madre ayer. <eos>",
        "Ana and I",
    ):
        assert theirs.encode(text).ids == tokenizer.encode(text)


def corpus_file():
    from utils.minigpt.tokenizer import DATA

    path = DATA / "tokenizer.json"
    assert json.loads(path.read_text(encoding="utf-8"))["model"]["type"] == "WordLevel"
    return path
