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
UNTOLD = "holds", "biased", "last", "fills", "within"  # what the words show, and no folder is told
ATTEMPTS = 1_000  # models that are tried until one shows every mistake


@complete.reference
def _(folder, prompts, limit):
    """Filled up on the right, and read again for each word: nothing real comes after a filling."""
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
    """A plain call; what is `hidden` at each row's beginning is masked as `generate` would do it."""
    width = max(map(len, rows))
    tokens = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
    mask = torch.ones_like(tokens)
    if hidden is not None:
        mask[:, : hidden.shape[1]][hidden] = 0
        settings["position_ids"] = (mask.cumsum(1) - 1).masked_fill(mask == 0, 0)
    return model(input_ids=tokens, attention_mask=mask, use_cache=False, **settings)


@torch.no_grad()
def _walk(model, rows, limit, hidden=None):
    """The `limit` likeliest ids after each row, and the smallest lead that decided one."""
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
    """From where to where words other than PAD reach."""
    said = [k for k, word in enumerate(words) if word != PAD]
    return (said[0], said[-1]) if said else (0, 0)


def _mistakes(model, rows, limit, says, eos):
    """What is said where a batch is not filled up as it should be, or a weight is left out."""
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
    """How far the last tokens' shares are off where a model of 16 bits computes in them, too."""
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
        """Prompts and a model: no rounding decides a word, and mistakes are heard.

        ``at``: which word of the first prompt's continuation is the one that ends, or of the last
        prompt's, if ``says`` has ``last``; None for none.
        """
        first = draw.integer(0, 10**6)
        for attempt in range(ATTEMPTS):
            kind, layers = says.get("kind", "minigpt"), says.get("layers", 2)
            model = small_model(kind, first + attempt, layers=layers)
            dice = torch.Generator().manual_seed(first + attempt)
            rows = [torch.randint(2, WORDS, (n,), generator=dice).tolist() for n in lengths]
            begun = [[BOS] * says.get("begins", False) + row for row in rows]
            if says.get("holds"):  # the word that ends stands in the longest prompt
                eos = max(begun, key=len)[1]
                used = {row[-1] for row in rows}  # hidden at the end, it would still be asked
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
            # what is special is not in a text, and would leave nothing to compare
            fills = says.get("fills", False)  # the first word is no pad token here, and is said
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
            # which is a full stop here: at the end of a text, and between the words of one
            if fills and not (
                any(words[-1] == PAD for words in heard)
                and any(PAD in words[k:j] for words in heard for k, j in [_inside(words)])
            ):
                continue  # other mistakes are heard in other cases
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
            "['counts']": "There isn't a list of floats for each prompt, with one for each token.",
            "['sums']": "The numbers of a prompt don't sum to 1.",
            "['rows']": "how many prompts the calls of the model had",
            "['prompts']": "the given prompts, afterwards",
        }
        shown = f"prompts of {listed(lengths)} tokens, limit {limit}{words and f', {words}'}"
        # none is sought: each costs a model in a folder, and there is no line that makes one
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
    words = "a folder that asks for draws, no pad token"
    yield asked(folder, [n, 1], 5, words=words, draws=True, pad=False, fills=True)
    words = "no pad token, an eos in a prompt"
    yield asked(folder, [4, 2], 4, words=words, pad=False, holds=True)
    words = "padding on the left, no pad token"
    yield asked(folder, [4, 2], 3, at=0, words=words, pad=False, side="left", last=True)
    yield asked(batch, [3, n, 1], 3, what="rows prompts")


def _facts(looks, lengths, says):
    """What must hold of the shares, whatever they are."""
    rows = looks if isinstance(looks, list) else []
    lists = all(isinstance(row, list) and all(isinstance(x, float) for x in row) for row in rows)
    counts = [n + says.get("begins", False) for n in lengths]
    counted = lists and [len(row) for row in rows] == counts
    return {"counts": counted, "sums": not counted or all(abs(sum(row) - 1) < 1e-3 for row in rows)}
