"""Lab 08, exercise 8: A batch from a folder"""

import torch

from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.words import listed
from utils.drivers.transformer import small_model, small_words

from .shared import SUMS

complete = Check(
    "complete",
    parts={
        "one prompt": 1,
        "several prompts": 1,
        "where they look": 1,
        "any folder": 1,
        "one batch": 1,
    },
    reads="A model of the hub",
    tolerance=SUMS,
)

PAD, BOS, WORDS = 0, 1, 13
UNTOLD = "holds", "biased", "last", "fills", "within"  # keys that choose the words, and are not settings of a folder
ATTEMPTS = 1_000  # models that are tried until one shows every mistake


@complete.reference
def _(folder, prompts, limit):
    """Pads on the right, and reads all tokens again for each word. So no real token comes after padding."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    rows = [tokenizer(prompt)["input_ids"] for prompt in prompts]
    with torch.no_grad():
        tables = _read(model, rows, output_attentions=True).attentions[-1].mean(1)
    looks = [table[len(row) - 1, : len(row)].tolist() for table, row in zip(tables, rows)]
    said = [_cut(words, tokenizer.eos_token_id) for words in _walk(model, rows, limit)[0]]
    return tokenizer.batch_decode(said, skip_special_tokens=True), looks


def _read(model, rows, hidden=None, **settings):
    """Call the model; `hidden` marks tokens at the beginning of rows, to mask as `generate` does."""
    width = max(map(len, rows))
    tokens = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
    mask = torch.ones_like(tokens)
    if hidden is not None:
        mask[:, : hidden.shape[1]][hidden] = 0
        settings["position_ids"] = (mask.cumsum(1) - 1).masked_fill(mask == 0, 0)
    return model(input_ids=tokens, attention_mask=mask, use_cache=False, **settings)


@torch.no_grad()
def _walk(model, rows, limit, hidden=None):
    """The `limit` likeliest ids after each row, and the smallest lead of a likeliest id over the second."""
    said, lead = [[] for _ in rows], float("inf")
    for _ in range(limit):
        whole = [row + words for row, words in zip(rows, said)]
        logits = _read(model, whole, hidden).logits
        ends = torch.stack([logits[at, len(row) - 1] for at, row in enumerate(whole)])
        best = ends.double().topk(2)
        lead = min(lead, float((best.values[:, 0] - best.values[:, 1]).min()))
        for words, word in zip(said, best.indices[:, 0].tolist()):
            words.append(word)
    return said, lead


def _cut(words, eos):
    return words[: words.index(eos) + 1] if eos in words else words


def _inside(words):
    """The first and the last index of a word other than PAD."""
    said = [k for k, word in enumerate(words) if word != PAD]
    return (said[0], said[-1]) if said else (0, 0)


def _mistakes(model, rows, limit, says, eos):
    """Yield (rows, hidden) for each mistake: wrong padding, lost words, or a lost weight."""
    width = max(map(len, rows))
    if min(map(len, rows)) < width:
        fill = PAD if says.get("pad", True) else eos
        real = torch.tensor([[len(row)] for row in rows])
        yield [row + [fill] * (width - len(row)) for row in rows], torch.arange(width) >= real
        if not says.get("pad", True):
            yield [[eos] * (width - len(row)) + row for row in rows], None  # and nothing hides it
    if says.get("holds"):
        yield [[word for word in row if word != eos] for row in rows], None
    if says.get("begins"):
        yield [row[1:] for row in rows], None
    if says.get("biased"):
        with torch.no_grad():
            model.lm_head.bias.zero_()
        yield rows, None


@torch.no_grad()
def _lost(model, rows):
    """The error in the last tokens' shares if a model with 16-bit weights also computes in 16 bits."""
    model.set_attn_implementation("eager")
    fine, rough = (
        [
            table[:, len(row) - 1, : len(row)].float().mean(0)
            for table, row in zip(
                _read(made.to(torch.bfloat16).to(dtype), rows, output_attentions=True).attentions[
                    -1
                ],
                rows,
            )
        ]
        for made, dtype in ((model, torch.float32), (model, torch.bfloat16))
    )
    return max(float((a - b).abs().max()) for a, b in zip(fine, rough))


@complete.cases
def _(draw):
    one, several, looking, folder, batch = complete.parts

    def told(lengths, limit, says, at):
        """Find prompts and a model for which rounding decides no word, and mistakes change the
        result.

        ``at`` is the index of the word that ends the first prompt's continuation, or the last
        prompt's if ``says`` has ``last``. If ``at`` is None, no word ends a continuation.
        """
        first = draw.integer(0, 10**6)
        for attempt in range(ATTEMPTS):
            kind, layers = says.get("kind", "minigpt"), says.get("layers", 2)
            model = small_model(kind, first + attempt, layers=layers)
            dice = torch.Generator().manual_seed(first + attempt)
            rows = [torch.randint(2, WORDS, (n,), generator=dice).tolist() for n in lengths]
            begun = [[BOS] * says.get("begins", False) + row for row in rows]
            if says.get("holds"):  # the word that ends is in the longest prompt
                eos = max(begun, key=len)[1]
                used = {row[-1] for row in rows}  # at a prompt's end, its query counts even if it is hidden
            else:
                used = {word for row in rows for word in row}
                eos = next((word for word in range(2, WORDS) if word not in used), None)
            said, lead = _walk(model, begun, limit)
            ends = len(rows) - 1 if says.get("last") else 0
            if at is not None:
                eos = said[ends][at]
            heard = [_cut(words, eos) for words in said]
            goes_on = all(
                len(words) == (at + 1 if at is not None and row == ends else limit)
                for row, words in enumerate(heard)
            )
            # special tokens do not appear in a text, so a case with them could not be compared
            fills = says.get("fills", False)  # the first word is an ordinary word here, and is in a text
            within = says.get("within", False)  # a text with a bos token between its words
            unsaid = {*[BOS] * (not within), *[PAD] * (not fills)}
            special = any(unsaid & {*words} for words in heard) or any(
                {*words[len(short) :]} <= {PAD, BOS, eos}
                for words, short in zip(said, heard)
                if len(short) < limit
            )
            alike = len({*map(tuple, heard)}) < len(rows)
            if lead < 0.02 or special or alike or not goes_on or eos in (None, PAD, BOS, *used):
                continue
            if within and not (BOS in heard[0][1:-1] and BOS not in heard[0][:: limit - 1]):
                continue
            # PAD is a full stop here: one text must end with it, and one must have it between words
            if fills and not (
                any(words[-1] == PAD for words in heard)
                and any(PAD in words[k:j] for words in heard for k, j in [_inside(words)])
            ):
                continue  # other cases show other mistakes
            if says.get("half") and _lost(model, begun) < 1e-3:
                continue
            mistaken = () if fills else _mistakes(model, begun, limit, says, eos)
            wrong = [_walk(model, rows, limit, hidden)[0] for rows, hidden in mistaken]
            if limit < 2 or all([_cut(words, eos) for words in ids] != heard for ids in wrong):
                names = small_words(eos, says.get("pad", True))
                prompts = [" ".join(names[word] for word in row) for row in rows]
                return {"seed": first + attempt, "eos": eos}, prompts
        raise LookupError(f"no model found for prompts of {lengths} tokens, {says}")

    def asked(part, lengths, limit, at=None, what="texts", words="", **says):
        found, prompts = told(lengths, limit, says, at)
        given = found | {key: says[key] for key in says if key not in UNTOLD}

        def play(subject):
            came = subject.drive("transformer:completed", given, prompts, limit)
            if what == "looks":
                return _facts(came["looks"], lengths, says) | {"looks": came["looks"]}
            return {key: came[key] for key in what.split()}

        places = {
            "['texts']": "the texts",
            "['looks']": "where the last tokens look",
            "['counts']": "`looks` needs a list of floats for each prompt, with one float for each token.",
            "['sums']": "The shares of a prompt should sum to 1.",
            "['rows']": "how many prompts each call of the model got",
            "['prompts']": "the given prompts, after the call",
        }
        shown = f"prompts of {listed(lengths)} tokens, limit {limit}{words and f', {words}'}"
        # no example is searched: an example needs a model in a folder, and no single line makes
        # such a folder
        return Case(part, play, shown=shown, places=places, example=False)

    n = draw.integer(2, 5)
    yield asked(one, [1], draw.integer(5, 6), biased=True, within=True)
    yield asked(one, [n], 5, at=1)
    yield asked(one, [4], 4, words="one of them eos", holds=True)
    yield asked(several, [4, 2], 4, biased=True)
    yield asked(several, [1, n, 3], 5)
    yield asked(several, [2, 4], 5, at=1)
    yield asked(several, [3, 1], 1)
    words = "a bos token before each text"
    yield asked(looking, [n], 3, what="looks", words=words, begins=True, layers=3)
    yield asked(looking, [4, 2, n], 3, what="looks")
    yield asked(looking, [3, n], 2, what="looks", words="weights in bfloat16", half=True, layers=1)
    yield asked(folder, [3, 4], 4, words="GPT-2's, code in the folder", kind="gpt2", code=True)
    words = "a Llama, a bos token before each text"
    yield asked(folder, [4, 3], 4, words=words, kind="llama", begins=True)
    words = "a folder with settings for random words, no pad token"
    yield asked(folder, [n, 1], 5, words=words, draws=True, pad=False, fills=True)
    words = "no pad token, an eos in a prompt"
    yield asked(folder, [4, 2], 4, words=words, pad=False, holds=True)
    words = "padding on the left, no pad token"
    yield asked(folder, [4, 2], 3, at=0, words=words, pad=False, side="left", last=True)
    yield asked(batch, [3, n, 1], 3, what="rows prompts")


def _facts(looks, lengths, says):
    """Facts that must be true of the shares, whatever their values are."""
    rows = looks if isinstance(looks, list) else []
    lists = all(isinstance(row, list) and all(isinstance(x, float) for x in row) for row in rows)
    counts = [n + says.get("begins", False) for n in lengths]
    counted = lists and [len(row) for row in rows] == counts
    return {"counts": counted, "sums": not counted or all(abs(sum(row) - 1) < 1e-3 for row in rows)}
