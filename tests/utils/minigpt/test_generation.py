"""MiniGPT conjugates, and shows its attention."""

import pytest
import torch

from utils.minigpt import (
    attention_maps,
    complete,
    corpus,
    generate,
    load_minigpt,
    load_tokenizer,
)


@pytest.mark.parametrize(
    ("subject", "verb", "tense", "start"),
    [
        ("yo", "hablar", "past", "yo hablé "),
        ("tú", "ser", "imperfect", "tú eras "),
        ("ustedes", "buscar", "future", "ustedes buscarán "),
        ("yo", "llegar", "past", "yo llegué "),
        ("ellas", "dormir", "past", "ellas durmieron "),
        ("Ana y yo", "leer", "perfect", "Ana y yo hemos leído "),
        ("she", "speak", "past", "she spoke "),
        ("she", "try", "present", "she tries "),
        ("Ana and I", "be", "past", "Ana and I were "),
        ("they", "stop", "progressive", "they are stopping "),
    ],
)
def test_the_model_conjugates(subject, verb, tense, start):
    text = generate(subject, verb=verb, tense=tense)
    assert text.startswith(start)
    assert text.endswith(".")


def test_the_model_negates():
    assert generate("yo", verb="hablar", tense="past", negative=True).startswith("yo no hablé ")
    text = generate("he", verb="speak", tense="present", negative=True)
    assert text.startswith("he does not speak ")


@pytest.mark.parametrize(
    ("subject", "verb", "tense", "said"),
    [
        ("yo", "hablr", "past", "'hablr' is not a verb .* did you mean 'hablar'"),
        (
            "I",
            "speak",
            "imperfect",
            "'imperfect' is not a tense of 'speak' that MiniGPT knows: pre",
        ),
        ("yo", "ser", "progressive", "not a tense of 'ser'"),
        ("yo", "speak", "past", "'yo' is not a subject of 'speak' that MiniGPT knows: I, you"),
    ],
)
def test_contradictory_requests_are_refused(subject, verb, tense, said):
    with pytest.raises(ValueError, match=said):
        generate(subject, verb=verb, tense=tense)


@pytest.mark.parametrize("length", [0, 32])
def test_prompts_that_are_empty_or_fill_the_context_are_refused(length):
    with pytest.raises(ValueError, match=f"prompts of 1 to 31 tokens, got {length}"):
        complete([[1] * length])


def test_many_prompts_are_completed_as_each_alone():
    tokenizer = load_tokenizer()
    prompts = [
        tokenizer.encode(text)
        for text in (
            "<bos> <es> hablar <past> yo",
            "<bos> <en> <future> <not>",
            "<bos> <es>",
            "<bos> <en> run <forms>",
        )
    ]
    together = complete(prompts)
    assert together == [complete([prompt])[0] for prompt in prompts]
    sentence, _, _, forms = together
    assert sentence[-1] == tokenizer.encode("<eos>")[0]
    assert {tokenizer.words([i])[0] for i in forms} <= {*corpus.ENGLISH.forms("run"), "<eos>"}
    assert all(len(p) + len(rest) <= 32 for p, rest in zip(prompts, together, strict=True))


def test_a_learners_model_and_softmax_are_used():
    model, calls = load_minigpt(), []

    def softmax(x):
        calls.append(tuple(x.shape))
        return torch.softmax(x, dim=-1)

    model.softmax = softmax
    text = generate("yo", verb="hablar", tense="past", model=model)
    assert text == generate("yo", verb="hablar", tense="past")
    assert set(calls) == {(1, 600)}
    with torch.no_grad():
        model.lm_head.bias[load_tokenizer().id("tarde")] += 1000
    assert generate("yo", verb="hablar", tense="past", model=model).startswith("yo tarde tarde ")
    assert generate("yo", verb="hablar", tense="past") == text


def test_loading_uses_no_random_number():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    load_minigpt()
    assert torch.equal(torch.rand(2), expected)


def test_attention_comes_with_its_words():
    text, attention = generate("Ana y yo", verb="hablar", tense="past", return_attention=True)
    assert text.startswith("Ana y yo hablamos ")
    assert attention.words[:7] == ("<bos>", "<es>", "hablar", "<past>", "Ana", "y", "yo")
    assert attention.words[-1] == "."
    length = len(attention.words)
    assert attention.maps.shape == (2, 4, length, length)
    ids = torch.tensor([load_tokenizer().encode(attention.words)])
    torch.testing.assert_close(attention.maps, attention_maps(load_minigpt(), ids)[:, 0])
