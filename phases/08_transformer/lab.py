# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 08: Transformers and Hugging Face", points: 60, cell_seconds: 90, preload: [flops, optimizers, transformers]}
# ---

# %% [markdown]
# # Lab 08: Transformers and Hugging Face
#
# Fourteen exercises and one question, 60 points, a little over three hours without the *further*
# exercises 5, 7, 10, 11, 12, 13 and 14, which take four hours more. A class may leave those out, or
# count them as a bonus. Otherwise all points count. The lab follows [lesson 08](../../notebooks/08_transformer.ipynb). You write masks, attention in at most 50 lines, a cache
# of keys and values, the choice of the next word, and a batch of unequal prompts. You work out what
# all this costs, convert weights from Hugging Face's form, and let the library do the work with
# anybody's folder. You change the architecture and prove that nothing broke. You teach a trained
# MiniGPT a tense that it has never seen in a sentence. You build the block of today's models, and
# read a Llama's folder into it. You teach the tense again with a twelfth of the numbers. And you pack
# the weights into four bits.
#
# Shapes are named as in MiniGPT: B sequences of T tokens, D channels, H heads of D/H channels, V
# words. Most of your functions are called with plain values. If that is not enough, a *driver* of
# `utils/drivers/transformer.py` or `adapters.py` runs your code: it gives weights to your module, or a model to your
# function. Each graded cell begins with `check(...)`, which gives the same verdict as grading. It
# uses sizes and numbers that you have not seen, new ones each time. No function may change its
# arguments.
#
# Parts of an exercise earn their points separately, and no exercise needs the answer to another.
# You need no network. Stuck? Each exercise has two hints, folded away. Run the next cell, then
# start.

# %% given="setup"
import json
import math
from pathlib import Path
from tempfile import mkdtemp

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from hood.learner.check import check
from utils.drivers import adapters
from utils.drivers import transformer as driver
from utils.minigpt import (
    WITHOUT_IMPERFECT,
    MiniGPT,
    MiniGPTConfig,
    evaluation_lines,
    imperfect_lines,
    load_minigpt,
    load_tokenizer,
    training_lines,
)
from utils.minigpt.hf import GPT2LMHeadModel, MiniGPTForCausalLM, hf_model, save_folder
from utils.minigpt.model import CausalSelfAttention
from utils.notebook.expect import expect_close, expect_equal
from utils.views import my_minigpt

# %% [markdown]
# ## 1 · Who may look where?
#
# *Easy, 20 minutes, 4 points: one each for the past, for queries that come late, for padding, and for
# a window.*
# From the lesson: [Who may look where](../../notebooks/08_transformer.ipynb#cell-id=who-may-look-where).
#
# Write `visible(queries, keys, causal, padding, window)`. It returns a bool tensor (B, queries,
# keys) that is True where a query may look at a key. There are `keys` positions, and the queries
# are the *last* `queries` of them: with 2 queries and 5 keys, the first query is at position 3.
#
# - With `causal`, no query may see a position after its own.
# - `padding` is `None`, or (B, keys) bool, True where there is a real token. No query may see a key
#   that is not real. If a query is itself padding, the other rules decide what it may see, as for
#   any other query. Without `padding`, B is 1.
# - `window` is `None`, or a number from 1 on: a query may not see a position that is `window` or
#   more positions before its own. A window does not limit positions after the query's own.
#
# A query may look where no rule forbids it.
#
# <details><summary>What is the position of a query?</summary>
#
# Write the queries' positions as a column and the keys' positions as a row. Both are `arange`s, and
# only one of them begins at 0. Each rule is then one comparison of the column with the row.
# </details>
# <details><summary>How do I combine the rules?</summary>
#
# Combine them with `&`. Padding is about keys, the last dimension, and it is different for each row
# of the batch. So give it a dimension of size 1 for the queries.
# </details>

# %% solution="visible"
def visible(
    queries: int, keys: int, causal: bool, padding: torch.Tensor | None, window: int | None
) -> torch.Tensor:
    """(B, queries, keys) bool: where each of the last `queries` positions may look."""
    ### BEGIN SOLUTION
    mine = torch.arange(keys - queries, keys)[:, None]
    theirs = torch.arange(keys)
    allowed = torch.ones(1, queries, keys, dtype=torch.bool)
    if causal:
        allowed = allowed & (theirs <= mine)
    if window is not None:
        allowed = allowed & (mine - theirs < window)
    if padding is not None:
        allowed = allowed & padding[:, None, :]
    return allowed
    ### END SOLUTION

# %%
def picture(mask):
    """Rows are queries, columns are keys."""
    return ["".join(".#"[int(x)] for x in row) for row in mask]

expect_equal("the past", picture(visible(3, 3, True, None, None)[0]), ["#..", "##.", "###"])
expect_equal("late queries", picture(visible(2, 5, True, None, None)[0]), ["####.", "#####"])
expect_equal("a window", picture(visible(4, 4, True, None, 2)[0]), ["#...", "##..", ".##.", "..##"])
real = torch.tensor([[False, True, True], [True, True, True]])
both = visible(3, 3, True, real, None)
expect_equal(
    "padding", [picture(one) for one in both], [["...", ".#.", ".##"], ["#..", "##.", "###"]]
)

# %% test="visible" points=4
# Graded
check("visible")
shown = [[bool(x) for x in row] for row in visible(2, 3, False, None, None)[0]]
expect_equal("all of it", shown, [[True] * 3] * 2)
### BEGIN HIDDEN TESTS
verify("visible", visible)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · Attention in fifty lines
#
# *Medium, 30 minutes, 5 points: one each for one head, for several, for masks, for a row that sees
# nothing, and for gradients.*
# From the lesson: [Attention in fifty lines](../../notebooks/08_transformer.ipynb#cell-id=attention-in-fifty-lines).
#
# Write `MultiHead(d_model, n_heads)`, a module with four `nn.Linear(d_model, d_model)` named
# `query`, `key`, `value` and `output`, and nothing else in its state dict. Its `forward(x,
# allowed)` takes x, (B, T, D), and `allowed`, a bool tensor (B, T, T) or (1, T, T), True where a
# query may look. If `allowed` is `None`, which is its default, every query sees everything. x and
# the weights are both float32 or both float64. It returns (B, T, D), of the same dtype:
#
# - Queries, keys and values are three linear maps of x. Head h has D/H neighbouring channels, from
#   channel h·D/H on.
# - Within a head, a query's scores are its dot products with the keys, divided by √(D/H). The
#   softmax over the keys that it may look at gives its weights, and the query's result is the sum
#   of the values with these weights.
# - The heads' results are put side by side again, and `output` maps them.
# - For a query that may look at nothing, the sum (before `output`) must be zeros, as in PyTorch's
#   `scaled_dot_product_attention`. Nothing may become NaN, no gradient either.
#
# Work by hand: use linear layers and tensor operations such as `@` and `softmax`, but no attention
# from a library. Use at most 50 lines, including your own helpers. A statement counts as one line,
# even if you break it; blank lines, comments, docstrings and imports don't count.
#
# <details><summary>Heads without a loop</summary>
#
# The channels of a head are side by side. So a view turns (B, T, D) into (B, T, H, D/H). Then
# exchange two dimensions, and one matrix product does all heads of all sentences at once. On the
# way back, exchange the dimensions first.
# </details>
# <details><summary>The row that sees nothing</summary>
#
# If all scores are minus infinity, their softmax is 0/0. With a very low but finite number, the
# softmax gives something finite, which you can then replace. A replaced value passes no gradient
# on.
# </details>

# %% solution="MultiHead"
class MultiHead(nn.Module):
    """Attention with several heads, from linear layers and tensor operations."""

    def __init__(self, d_model: int, n_heads: int):
        super().__init__()
        ### BEGIN SOLUTION
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)
        ### END SOLUTION

    def forward(self, x: torch.Tensor, allowed: torch.Tensor | None = None) -> torch.Tensor:
        """(B, T, D) -> (B, T, D)."""
        ### BEGIN SOLUTION
        parts = (self.query(x), self.key(x), self.value(x))
        q, k, v = (part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for part in parts)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if allowed is None:
            weights = scores.softmax(-1)
        else:
            hidden = ~allowed[:, None]
            weights = scores.masked_fill(hidden, -1e30).softmax(-1).masked_fill(hidden, 0)
        return self.output((weights @ v).transpose(1, 2).flatten(2))
        ### END SOLUTION

# %%
torch.manual_seed(0)
x, past = torch.randn(2, 5, 8), torch.ones(1, 5, 5, dtype=torch.bool).tril()
mine = MultiHead(8, 2)
q, k, v = (
    part(x).unflatten(-1, (2, 4)).transpose(1, 2) for part in (mine.query, mine.key, mine.value)
)
theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=past)
expect_close(
    "as PyTorch's own",
    mine(x, past),
    mine.output(theirs.transpose(1, 2).reshape(2, 5, 8)),
    atol=1e-6,
)
trained = load_minigpt().blocks[0].attention
mine = MultiHead(64, 4)
mine.load_state_dict(trained.state_dict())
x = torch.randn(1, 5, 64)
expect_close("a layer of MiniGPT", mine(x, past), trained(x), atol=1e-5)

# %%
blind = past.clone()
blind[0, 2] = False
expect_close("a row that sees nothing", mine(x, blind)[0, 2], mine.output.bias)
mine(x, blind).sum().backward()
finite = [bool(p.grad is not None and p.grad.isfinite().all()) for p in mine.parameters()]
expect_equal("its gradients are finite", finite, [True] * 8)

# %% test="MultiHead" points=5
# Graded
check("MultiHead")
expect_equal(
    "names",
    sorted(MultiHead(4, 2).state_dict()),
    sorted(CausalSelfAttention(MiniGPTConfig()).state_dict()),
)
### BEGIN HIDDEN TESTS
verify("MultiHead", MultiHead)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 · One token at a time
#
# *Medium, 25 minutes, 4 points: one each for a first call, for one token, for several at once, and
# for the cache that is returned.*
# From the lesson: [One token at a time](../../notebooks/08_transformer.ipynb#cell-id=one-token-at-a-time).
#
# To write a sentence word by word, you need not compute old keys and values again. Write
# `attend_cached(x, weights, n_heads, cache)`, causal attention with several heads for only the *new*
# positions. `x` is (B, T, D), the T new positions. `weights` is a dict with `"query.weight"`,
# `"query.bias"` and so on, for `query`, `key`, `value` and `output`, as in the state dict of a
# MiniGPT's attention. `cache` is `None`, or a pair of the keys and the values of the S earlier
# positions, (B, H, S, D/H) each. All tensors are float32, or all are float64, and what you return has
# the same dtype.
#
# Return `(output, (keys, values))`: the output, (B, T, D), and the keys and values of all S + T
# positions, the old positions first, for the next call. Each new position must see all old
# positions, itself, and the new positions before it. You must use the given cache as it is,
# wherever it comes from, and leave it as it was, because the caller may continue from it twice.
#
# How you compute attention is up to you here: you may use PyTorch's own functions.
#
# <details><summary>How long is each tensor?</summary>
#
# There are T queries and S + T keys, so the scores are (B, H, T, S + T). With T = 1 nothing has to
# be hidden.
# </details>
# <details><summary>Several tokens after a cache</summary>
#
# Draw the mask for S = 3 and T = 2 on paper. Then look up what `is_causal=True` does when there are
# fewer queries than keys.
# </details>

# %% solution="attend_cached"
def attend_cached(
    x: torch.Tensor,
    weights: dict[str, torch.Tensor],
    n_heads: int,
    cache: tuple[torch.Tensor, torch.Tensor] | None,
) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
    """Attention of the new positions, and the keys and values of all."""

    ### BEGIN SOLUTION
    def part(name):
        mapped = F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])
        return mapped.unflatten(-1, (n_heads, -1)).transpose(1, 2)

    query, keys, values = part("query"), part("key"), part("value")
    if cache is not None:
        keys = torch.cat([cache[0], keys], dim=2)
        values = torch.cat([cache[1], values], dim=2)
    new, every = query.shape[2], keys.shape[2]
    allowed = torch.ones(new, every, dtype=torch.bool).tril(every - new)
    mixed = F.scaled_dot_product_attention(query, keys, values, attn_mask=allowed)
    output = F.linear(
        mixed.transpose(1, 2).flatten(2), weights["output.weight"], weights["output.bias"]
    )
    return output, (keys, values)
    ### END SOLUTION

# %%
trained = load_minigpt().blocks[0].attention
weights, x = trained.state_dict(), torch.randn(2, 6, 64)
with torch.no_grad():
    whole = trained(x)
first, cache = attend_cached(x[:, :3], weights, 4, None)
expect_close("the first three", first, whole[:, :3], atol=1e-5)
expect_equal("keys", cache[0].shape, (2, 4, 3, 16))
fourth, more = attend_cached(x[:, 3:4], weights, 4, cache)
expect_close("the fourth", fourth, whole[:, 3:4], atol=1e-5)
expect_close("two at once", attend_cached(x[:, 4:], weights, 4, more)[0], whole[:, 4:], atol=1e-5)

# %%
other = cache[0] + 1, cache[1] * 2
changed, _ = attend_cached(x[:, 3:4], weights, 4, other)
expect_equal("another cache, another answer", torch.allclose(changed, fourth, atol=1e-3), False)

# %% test="attend_cached" points=4
# Graded
check("attend_cached")
weights, x = load_minigpt().blocks[0].attention.state_dict(), torch.randn(2, 6, 64)
_, cache = attend_cached(x[:, :4], weights, 4, None)
values = attend_cached(x[:, 4:], weights, 4, cache)[1][1]
expect_equal("values of six", values.shape, (2, 4, 6, 16))
### BEGIN HIDDEN TESTS
verify("attend_cached", attend_cached)
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · Picking a word
#
# *Medium, 25 minutes, 4 points: one each for the likeliest word, for a temperature, for top-k and for
# top-p.*
# From the lesson: [Picking a word](../../notebooks/08_transformer.ipynb#cell-id=picking-a-word).
#
# Write `pick(logits, u, temperature, top_k, top_p)`. It picks one word for each row: `logits` is
# (N, V) float32, and the result is (N,) int64. It generates no random numbers. They are passed in
# as `u`, (N,) float32, one number for each row, from 0 up to, but not including, 1.
#
# At temperature 0, a row's word is the one with the largest logit, or the first of them if there
# are several; then `u`, `top_k` and `top_p` are ignored. Otherwise, do these steps in this order:
#
# 1. Probabilities are the softmax of the logits divided by the temperature. Words are ranked by
#    probability, the likeliest first; of equally likely words, the one with the smaller id ranks
#    higher.
# 2. `top_k` is `None` or a number from 1 on: only the first `top_k` words of the ranking stay, or
#    all words if there are fewer.
# 3. `top_p` is `None` or a number above 0, at most 1. The probabilities of the remaining words are
#    scaled to sum to 1 again. Then only the first words of the ranking stay: as few words as
#    possible with a sum of `top_p` or more.
# 4. The remaining probabilities are scaled to sum to 1 again. Go through the words in the order of
#    their ids, add up their probabilities, and pick the first word at which the sum is larger than
#    the row's `u`. The check avoids a `u` that is so near to a sum that rounding would decide.
#
# <details><summary>From the ranking back to the ids</summary>
#
# `sort` returns values and indices. In the ranking, set the words that must go to zero. Then
# `scatter` carries the values back to their ids. Or compare each word's rank with the ranks that
# stay.
# </details>
# <details><summary>The beginning that stays</summary>
#
# A word stays if the sum of the words that rank *before* it is still too small. The first word has
# no words before it, so it always stays.
# </details>

# %% solution="pick"
def pick(
    logits: torch.Tensor,
    u: torch.Tensor,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
) -> torch.Tensor:
    """The id of one word for each row of `logits` (N, V), chosen by `u` (N,)."""
    ### BEGIN SOLUTION
    if temperature == 0:
        return logits.argmax(-1)
    ranked, words = (logits / temperature).softmax(-1).sort(dim=-1, descending=True, stable=True)
    if top_k is not None:
        ranked[:, top_k:] = 0
    if top_p is not None:
        before = ranked.cumsum(-1) - ranked
        ranked[before >= top_p * ranked.sum(-1, keepdim=True)] = 0
    staying = torch.zeros_like(ranked).scatter(-1, words, ranked)
    reached = staying.cumsum(-1)
    return (reached <= u[:, None] * reached[:, -1:]).sum(-1)
    ### END SOLUTION

# %%
four = torch.tensor([[0.1, 0.4, 0.2, 0.3]]).log()
expect_equal("the likeliest", pick(four, torch.tensor([0.9]), 0.0, None, None), torch.tensor([1]))
two = torch.tensor([[1.0, 2.0, 2.0]])
expect_equal("the first of two", pick(two, torch.tensor([0.9]), 0.0, None, None), torch.tensor([1]))
eight = four.expand(8, 4)
u = torch.tensor([0.05, 0.15, 0.45, 0.55, 0.65, 0.8, 0.85, 0.95])
expect_equal("a draw", pick(eight, u, 1.0, None, None), torch.tensor([0, 1, 1, 2, 2, 3, 3, 3]))
expect_equal("two stay", pick(eight, u, 1.0, 2, None), torch.tensor([1, 1, 1, 1, 3, 3, 3, 3]))
expect_equal(
    "two of four alike", pick(torch.zeros(2, 4), u[[1, 5]], 1.0, 2, None), torch.tensor([0, 1])
)
expect_equal(
    "0.4 and 0.3 reach 0.6", pick(eight, u, 1.0, None, 0.6), torch.tensor([1, 1, 1, 1, 3, 3, 3, 3])
)
expect_equal("hotter", pick(eight, u, 100.0, None, None), torch.tensor([0, 0, 1, 2, 2, 3, 3, 3]))

# %% test="pick" points=4
# Graded
check("pick")
eight = torch.tensor([[0.1, 0.4, 0.2, 0.3]]).log().expand(8, 4)
u = torch.linspace(0.05, 0.95, 8)
expect_equal("colder", pick(eight, u, 0.01, None, None), torch.full((8,), 1))
### BEGIN HIDDEN TESTS
verify("pick", pick)
### END HIDDEN TESTS

# %% [markdown]
# ## 5 · Prompts of unequal length
#
# *Further, hard, 35 minutes, 5 points: one for a single prompt, two for unequal prompts, one for
# the right end, and one for no needless calls, which your own process counts.*
# From the lesson: [Sentences of unequal length](../../notebooks/08_transformer.ipynb#cell-id=sentences-of-unequal-length).
#
# Write `generate(model, prompts, limit, pad, eos)`. `prompts` is a list of lists of token ids, none
# of them empty. Return a list with one entry for each prompt, a list of its new ids as ints. The code
# takes the likeliest word again and again, up to and including the first `eos`, and at most `limit`
# words. Each prompt must get what it would get alone. All prompts must go through the model together,
# and the model has a cache:
#
# `model(tokens, positions, padding, cache)` returns `(logits, cache)`.
#
# - `tokens` is (B, T) int64, the T *new* columns. Each column comes after all columns of earlier
#   calls.
# - `positions`, (B, T) int64, is the position of each token in its own text: the first token of a
#   prompt is at 0. If a column has no real token in a row, any number from 0 on is allowed there,
#   up to the largest position of a real token in the same call. That is also true for a row after
#   its `eos`.
# - `padding`, (B, S) bool, is True where there is a real token, for all S columns so far, including
#   the new ones. `pad` may also be an ordinary word of the prompts, so only `padding` shows which
#   tokens are real.
# - `cache` is `None` in the first call, and later the cache that the last call returned.
# - `logits` is (B, T, V): the logits for the token after each of the T tokens. At padding they mean
#   nothing.
#
# The first call must get the whole prompts; each later call must get one column. After a row's
# `eos`, you may pass anything for that row, within these bounds. Make no call if you don't need its
# answer.
#
# <details><summary>On which side?</summary>
#
# A new column is appended to all rows at once. If the *ends* of the prompts are aligned, each row
# continues from the last column. (If the beginnings are aligned, each row's last real token is in a
# different column.)
# </details>
# <details><summary>Positions</summary>
#
# Count the real tokens of a row from the left with `cumsum`, and subtract one. In each row, the
# position goes up by one with each later column.
# </details>

# %% solution="generate"
def generate(model, prompts: list[list[int]], limit: int, pad: int, eos: int) -> list[list[int]]:
    """The new words of each prompt, the likeliest each time."""
    ### BEGIN SOLUTION
    longest = max(len(prompt) for prompt in prompts)
    rows = [[pad] * (longest - len(prompt)) + prompt for prompt in prompts]
    tokens = torch.tensor(rows)
    padding = torch.arange(longest) >= longest - torch.tensor([[len(prompt)] for prompt in prompts])
    positions = (padding.cumsum(-1) - 1).clamp(min=0)
    said, cache = [[] for _ in prompts], None
    for _ in range(limit):
        logits, cache = model(tokens, positions, padding, cache)
        tokens = logits[:, -1:].argmax(-1)
        for words, word in zip(said, tokens[:, 0].tolist()):
            if eos not in words:
                words.append(word)
        if all(eos in words for words in said):
            break
        positions = positions[:, -1:] + 1
        padding = F.pad(padding, (0, 1), value=True)
    return said
    ### END SOLUTION

# %%
g = torch.Generator().manual_seed(3)
shapes = {
    "words": (9, 8),
    "positions": (16, 8),
    "query": (8, 8),
    "key": (8, 8),
    "value": (8, 8),
    "head": (8, 9),
}
toy = {name: torch.randn(shape, generator=g) for name, shape in shapes.items()}
expect_equal(
    "one prompt", driver.generated(generate, toy, [[1, 2, 3, 4]], 4, 0, 8)["words"], [[3, 7, 3, 3]]
)
together = driver.generated(generate, toy, [[1, 2, 3, 4], [5], [6, 7]], 5, 6, 7)
expect_equal("each as if alone", together["words"], [[3, 7], [6, 6, 5, 7], [5, 5, 6, 3, 7]])
expect_equal("one column a call", together["columns"], [4, 1, 1, 1, 1])

# %%
def ours(tokens, positions, padding, cache):
    """MiniGPT has no cache: it reads everything again, so it is right only without padding."""
    seen = tokens if cache is None else torch.cat([cache, tokens], 1)
    with torch.no_grad():
        return load_minigpt()(seen)[:, -tokens.shape[1] :], seen

words = load_tokenizer()
prompts = [words.encode(f"<bos> <es> {verb} <past> yo") for verb in ("hablar", "tener")]
for said in generate(ours, prompts, 12, 0, 2):
    print(words.words(said))
expect_equal(
    "it speaks, and ends",
    [words.words(said)[0::20] for said in generate(ours, prompts, 12, 0, 2)],
    [["hablé"], ["tuve"]],
)

# %% test="generate" points=5
# Graded
check("generate")
shapes = {"words": (9, 8), "positions": (16, 8), "query": (8, 8), "key": (8, 8), "value": (8, 8)}
toy = {name: torch.randn(shape) for name, shape in (shapes | {"head": (8, 9)}).items()}
nothing = driver.generated(generate, toy, [[1], [2]], 0, 0, 8)
expect_equal("nothing asked", (nothing["words"], nothing["columns"]), ([[], []], []))
### BEGIN HIDDEN TESTS
verify("generate", generate)
### END HIDDEN TESTS

# %% [markdown]
# ## 6 · What it costs
#
# *Easy, 20 minutes, 3 points: one for floating-point operations without a cache, one for operations
# with a cache, and one for the cache's bytes.*
# From the lesson: [What it costs](../../notebooks/08_transformer.ipynb#cell-id=what-it-costs).
#
# A MiniGPT with the given `config` reads a prompt and writes `new` words after it, one or more.
# Write two functions:
#
# - `flops(config, prompt, new, cached)` returns how many floating-point operations that takes, for
#   one sentence with a prompt of `prompt` tokens. Count matrix products, with two operations for each
#   multiplication and its addition: the four maps of attention, the scores, the weighted sums, the
#   MLP's two maps, and the LM head. Count nothing else, and no bias. Scores and weighted sums are
#   computed for all pairs of a query and a key, even hidden pairs. Every token that goes through the
#   model also goes through the head.
# - `cache_bytes(config, tokens, itemsize)` returns the bytes of the keys and values of that many
#   tokens, in all layers, with `itemsize` bytes for each number.
#
# The first new word comes from a pass over the whole prompt. Each further word takes one more pass.
# Without a cache, this pass is over all tokens so far; with a cache, it is over only the last
# token. The query of that token is still compared with the keys of all tokens so far. The last new
# word itself does not go through the model.
#
# <details><summary>One pass</summary>
#
# Write a pass as a function of two numbers: how many tokens go through it, and how many keys there
# are. The head, the MLP and the four maps depend only on the first number.
# </details>
# <details><summary>How many passes?</summary>
#
# There are as many passes as new words. List the two numbers of each pass for prompt = 3 and new =
# 3, with a cache and without one.
# </details>

# %% solution="flops"
def flops(config: MiniGPTConfig, prompt: int, new: int, cached: bool) -> int:
    """Floating-point operations for `new` words after a prompt."""
    ### BEGIN SOLUTION
    def one_pass(tokens, keys):
        maps = 4 * config.d_model**2 + 2 * config.d_model * config.d_ff
        layer = tokens * maps + 2 * tokens * keys * config.d_model
        return 2 * (config.n_layers * layer + tokens * config.d_model * config.vocab_size)

    total = one_pass(prompt, prompt)
    for keys in range(prompt + 1, prompt + new):
        total += one_pass(1 if cached else keys, keys)
    return total
    ### END SOLUTION


def cache_bytes(config: MiniGPTConfig, tokens: int, itemsize: int) -> int:
    """Bytes of the keys and values of so many tokens."""
    ### BEGIN SOLUTION
    return 2 * config.n_layers * tokens * config.d_model * itemsize
    ### END SOLUTION

# %%
from torch.utils.flop_counter import FlopCounterMode

model = load_minigpt()
with FlopCounterMode(display=False) as counter, torch.no_grad():
    model(torch.ones(1, 5, dtype=torch.int64))
expect_equal(
    "one pass, as PyTorch counts", flops(model.config, 5, 1, False), counter.get_total_flops()
)
with counter, torch.no_grad():
    for tokens in (5, 6, 7):
        model(torch.ones(1, tokens, dtype=torch.int64))
expect_equal(
    "three words without a cache", flops(model.config, 5, 3, False), counter.get_total_flops()
)
print(
    "a cache saves",
    round(1 - flops(model.config, 5, 27, True) / flops(model.config, 5, 27, False), 3),
)
expect_equal("bytes", cache_bytes(model.config, 1, 4), 2 * 2 * 64 * 4)

# %% test="flops" points=3
# Graded
check("flops")
config = load_minigpt().config
expect_equal("one word costs the same", flops(config, 7, 1, True), flops(config, 7, 1, False))
### BEGIN HIDDEN TESTS
verify("flops", flops=flops, cache_bytes=cache_bytes)
### END HIDDEN TESTS

# %% [markdown]
# ## 7 · From their folder
#
# *Further, medium, 35 minutes, 5 points: one each for embeddings and norms, for the MLP, for
# attention, for the head, and for loading strictly, for which your own process says what is raised.*
# From the lesson: [MiniGPT as a Hugging Face model](../../notebooks/08_transformer.ipynb#cell-id=minigpt-as-a-hugging-face-model).
#
# Write two functions. `from_hf(state)` takes the state dict of a GPT-2 in Hugging Face's form, and
# returns a dict with the same weights under MiniGPT's names and in MiniGPT's shapes. The next cell
# prints the names and shapes of both, and these show you most of it. What the names don't show:
#
# - A Hugging Face `Conv1D` stores its weight as (in, out). Each block has four of them:
#   `attn.c_attn`, `attn.c_proj`, `mlp.c_fc` and `mlp.c_proj`.
# - `attn.c_attn` is query, key and value side by side, in this order.
# - `lm_head.bias` may be missing, and then it is zeros. `lm_head.weight` may be missing, and then the
#   head shares the embedding's weight.
# - The names show how many blocks there are, one or more.
# - Old files also have `attn.bias` and `attn.masked_bias` in each block. They are masks, not
#   weights: MiniGPT has no place for them, and the returned dict must have only MiniGPT's names.
#
# `load_strictly(model_class, folder)` returns `model_class.from_pretrained(folder)`, in evaluation
# mode, and leaves out nothing silently. If the folder does not exist, it must raise
# `FileNotFoundError`. It must raise `ValueError` if the file has a tensor that the class has no
# place for, or if the file lacks a tensor that the class needs. The message must name each such
# tensor.
#
# <details><summary>Names</summary>
#
# Go from MiniGPT's names to Hugging Face's, or the other way round. A table of five pairs is enough
# for a block. Biases are vectors and need no transpose.
# </details>
# <details><summary>How do I find out what was dropped?</summary>
#
# `from_pretrained` takes `output_loading_info=True`, and returns a pair: the model, and a dict that is
# worth printing.
# </details>

# %%
theirs = hf_model().state_dict()
for name, tensor in (*load_minigpt().state_dict().items(), *theirs.items()):
    if "1" not in name or "_1" in name:  # the second block is like the first
        print(f"{name:40} {tuple(tensor.shape)}")

# %% solution="from_hf"
def from_hf(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A MiniGPT's state dict, made from a Hugging Face GPT-2's."""
    ### BEGIN SOLUTION
    embedding = state["transformer.wte.weight"]
    head = state.get("lm_head.weight", embedding)
    found = {
        "token_embedding.weight": embedding,
        "position_embedding.weight": state["transformer.wpe.weight"],
        "final_norm.weight": state["transformer.ln_f.weight"],
        "final_norm.bias": state["transformer.ln_f.bias"],
        "lm_head.weight": head,
        "lm_head.bias": state.get("lm_head.bias", head.new_zeros(len(head))),
    }
    pairs = {
        "ln_1": "norm_1",
        "ln_2": "norm_2",
        "attn.c_proj": "attention.output",
        "mlp.c_fc": "mlp.up",
        "mlp.c_proj": "mlp.down",
    }
    block = 0
    while f"transformer.h.{block}.ln_1.weight" in state:
        for kind in ("weight", "bias"):
            joined = state[f"transformer.h.{block}.attn.c_attn.{kind}"].chunk(3, dim=-1)
            for name, tensor in zip(("query", "key", "value"), joined):
                found[f"blocks.{block}.attention.{name}.{kind}"] = (
                    tensor.mT if tensor.dim() == 2 else tensor
                )
            for name, mine in pairs.items():
                tensor = state[f"transformer.h.{block}.{name}.{kind}"]
                found[f"blocks.{block}.{mine}.{kind}"] = tensor.mT if tensor.dim() == 2 else tensor
        block += 1
    return found
    ### END SOLUTION


def load_strictly(model_class, folder: Path):
    """`model_class.from_pretrained(folder)`, or an error that says what would have been lost."""
    ### BEGIN SOLUTION
    if not Path(folder).is_dir():
        raise FileNotFoundError(f"no folder at {folder}")
    model, report = model_class.from_pretrained(folder, output_loading_info=True)
    lost = sorted(report["unexpected_keys"]) + sorted(report["missing_keys"])
    if lost:
        raise ValueError(f"{model_class.__name__} does not fit {folder}: {', '.join(lost)}")
    return model.eval()
    ### END SOLUTION

# %%
theirs, came = hf_model().state_dict(), MiniGPT(load_minigpt().config)
came.load_state_dict(from_hf(theirs))
tokens = torch.randint(600, (2, 9))
expect_close("there and back", came(tokens), load_minigpt()(tokens))
stock = {name: tensor for name, tensor in theirs.items() if name != "lm_head.bias"}
expect_equal("no bias", from_hf(stock)["lm_head.bias"].any(), torch.tensor(False))

# %%
folder = save_folder(Path(mkdtemp()) / "minigpt")
model = load_strictly(MiniGPTForCausalLM, folder)
with torch.no_grad():
    expect_close("the same logits", model(tokens).logits, load_minigpt()(tokens), atol=1e-5)
for what in ("stock", "nowhere"):
    small = {"vocab_size": 11, "d_model": 4, "n_heads": 2, "n_layers": 1, "d_ff": 8, "context": 6}
    count = sum(p.numel() for p in MiniGPT(MiniGPTConfig(**small)).parameters())
    print(what, driver.loaded_strictly(load_strictly, small, torch.randn(count), what))

# %% test="from_hf" points=5
# Graded
check("from_hf")
folder = save_folder(Path(mkdtemp()) / "minigpt")
try:
    load_strictly(GPT2LMHeadModel, folder)
    said = "nothing was raised"
except ValueError as error:
    said = str(error)
expect_equal(said, "lm_head.bias" in said, True)
### BEGIN HIDDEN TESTS
verify("from_hf", from_hf=from_hf, load_strictly=load_strictly)
### END HIDDEN TESTS

# %% [markdown]
# ## 8 · A batch from a folder
#
# *Medium, 30 minutes, 5 points: one each for a single prompt, for several, for where they look, for
# folders of all kinds, and for one batch, which your own process counts.*
# From the lesson: [What the folder can do](../../notebooks/08_transformer.ipynb#cell-id=what-the-folder-can-do), and
# [A model of the hub](../../notebooks/08_transformer.ipynb#cell-id=a-model-of-the-hub).
#
# Now the library does the work, and you make sure that it does what you want. Write
# `complete(folder, prompts, limit)` with Hugging Face's own classes. `folder` is a `Path` to a
# causal language model in Hugging Face's form, with its tokenizer. `prompts` is a list of one or
# more texts, each of one token or more; `limit` is 1 or more, and prompts and new tokens fit into
# the model's context. Return `(texts, looks)`, two lists with an entry for each prompt, in the
# prompts' order:
#
# - An entry of `texts` is a string, the new text after the prompt: the likeliest token each time,
#   at most `limit` of them. An eos token among them ends the text. The text must have only the new
#   part, with its full stops, and no special tokens.
# - An entry of `looks` says where the prompt's last token looks when the prompt is read: its
#   attention in the last layer, the mean over the heads. It is a list of floats, one for each token
#   of the prompt, in the tokens' order.
#
# Each prompt must get what it would get alone. But whenever the model is called, all prompts must
# be in that call. A prompt's tokens are the ones that the tokenizer returns for it without further
# settings. The folder may come from anybody:
#
# - The model may be a MiniGPT, a GPT-2 or another model that the Auto classes find.
# - The tokenizer may pad on either side, and it may have no pad token. If it has none, pad with any
#   token that the model has a row for. But no word of a text may be lost or added by that. It has an
#   eos token, the one that the model's config names. That token may also be in a prompt, like any
#   other word, and it ends nothing there.
# - The generation config may ask for random words, at a temperature, and may limit the number of new
#   tokens, but it asks for nothing else. You must take the likeliest token each time, up to `limit`
#   tokens.
# - The weights may be stored in 16 bits. You must compute in float32.
# - The folder may contain code. None of it may run.
#
# <details><summary>Where are the shares?</summary>
#
# The fused attention returns no shares. If you simply call the model, its positions also count the
# padding. But `generate` counts from the first real word, and it can return the attentions: look up
# `return_dict_in_generate`.
# </details>
# <details><summary>Which of all these tensors?</summary>
#
# `attentions` of `generate` is a tuple with an entry for each new word. Each entry is a tuple with
# one tensor for each layer, (B, H, queries, keys). These tensors include the padding's columns, and
# the attention mask says which columns these are.
# </details>

# %% solution="complete"
def complete(folder: Path, prompts: list[str], limit: int) -> tuple[list[str], list[list[float]]]:
    """What a folder's model writes after each prompt, and where each prompt's last token looks."""
    ### BEGIN SOLUTION
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    batch = tokenizer(prompts, padding=True, return_tensors="pt")
    out = model.generate(
        **batch,
        max_new_tokens=limit,
        do_sample=False,
        return_dict_in_generate=True,
        output_attentions=True,
    )
    width = batch["input_ids"].shape[1]
    texts = tokenizer.batch_decode(out.sequences[:, width:], skip_special_tokens=True)
    last = out.attentions[0][-1][:, :, -1].mean(1)
    looks = [row[real].tolist() for row, real in zip(last, batch["attention_mask"].bool())]
    return texts, looks
    ### END SOLUTION

# %%
folder = save_folder(Path(mkdtemp()) / "minigpt")
prompts = ["<bos> <es> hablar <past> yo", "<bos> <es> tener <not> <future> nosotros"]
texts, looks = complete(folder, prompts, 9)
expect_equal("texts", texts, ["hablé español anoche .", "no tendremos un libro mañana ."])
expect_equal(
    "at most three", complete(folder, prompts, 3)[0], ["hablé español anoche", "no tendremos un"]
)
expect_equal("one for each token", [len(row) for row in looks], [5, 6])
expect_close("the sums", torch.tensor([sum(row) for row in looks]), torch.ones(2))
expect_close(
    "“yo” looks",
    torch.tensor(looks[0]),
    torch.tensor([0.1081, 0.2610, 0.3407, 0.2358, 0.0544]),
    atol=1e-3,
)
for prompt, row in zip(prompts, looks):
    print(f"{prompt.split()[-1]} looks most at {prompt.split()[row.index(max(row))]}")

# %%
drawing = driver.completed(complete, {"seed": 7, "draws": True, "half": True}, ["a b c", "c"], 5)
expect_equal("it asks for random words", drawing["texts"], ["i j j i", "i i"])
expect_close(
    "in float32",
    torch.tensor(drawing["looks"][0]),
    torch.tensor([0.1119, 0.1157, 0.7725]),
    atol=3e-4,
)
expect_equal("prompts in a call", drawing["rows"], [2])
bare = driver.completed(
    complete, {"kind": "gpt2", "seed": 4, "pad": False}, ["a b c", "d e f a b"], 5
)
expect_equal("no pad token", bare["texts"], ["g g b g g", "g b g g g"])

# %% test="complete" points=5
# Graded
check("complete")
folder = save_folder(Path(mkdtemp()) / "minigpt")
said = complete(folder, ["<bos> <es> hablar <past> yo"], 9)[0]
expect_equal("one alone", said, ["hablé español anoche ."])
### BEGIN HIDDEN TESTS
verify("complete", complete)
### END HIDDEN TESTS

# %% [markdown]
# ## 9 · Fewer keys and values
#
# *Medium, 30 minutes, 3 points: one for a single key and value head, one for groups, and one for a
# module made from a trained module.*
# From the lesson: [Where to change the model](../../notebooks/08_transformer.ipynb#cell-id=where-to-change-the-model).
#
# While a model writes, its cache grows. So today's models let several query heads share one head of
# keys and values: *grouped-query attention*. Change MiniGPT's architecture that way, and prove that
# you have changed nothing else. Write two things:
#
# - `GroupedAttention(config, kv_heads)`, a module with four linear maps, `query`, `key`, `value`
#   and `output`, each with a bias. Its state dict has nothing else. `query` and `output` are as in
#   MiniGPT; `key` and `value` map to `kv_heads` heads of D/H channels each. `kv_heads` divides H.
#   Query head h uses key and value head h // g, with g = H / `kv_heads`. The module's `forward(x)`
#   is causal and maps (B, T, D) to (B, T, D), and everything else is as in `CausalSelfAttention` of
#   `utils/minigpt/model.py`. x and the weights may be float64, too.
# - `grouped(attention, kv_heads)`, which makes such a module from a trained `CausalSelfAttention`:
#   `query` and `output` are copies, and the weights and biases of a key head (or a value head) are
#   means over the heads of its group. The new module must share nothing with `attention`, and it
#   must not change `attention`. `attention` has no config, but it has `n_heads` and weights that
#   show the sizes. Your class may use only `d_model` and `n_heads` of a config.
#
# Here, too, you may use PyTorch's own functions.
#
# <details><summary>The same keys for a whole group</summary>
#
# `repeat_interleave` along the dimension of heads gives each head of a group the same keys.
# (`repeat` gives them to other heads.)
# </details>
# <details><summary>Means of heads</summary>
#
# The rows of a head are neighbours in `key.weight`. In the shape (kv_heads, g, D/H, D), take the
# mean over one dimension.
# </details>

# %% solution="grouped"
class GroupedAttention(nn.Module):
    """Causal attention in which groups of query heads share a key and a value head."""

    def __init__(self, config: MiniGPTConfig, kv_heads: int):
        super().__init__()
        ### BEGIN SOLUTION
        self.n_heads, self.kv_heads = config.n_heads, kv_heads
        shared = config.d_model // config.n_heads * kv_heads
        self.query = nn.Linear(config.d_model, config.d_model)
        self.key = nn.Linear(config.d_model, shared)
        self.value = nn.Linear(config.d_model, shared)
        self.output = nn.Linear(config.d_model, config.d_model)
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, D) -> (B, T, D)."""
        ### BEGIN SOLUTION
        query = self.query(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        parts = (self.key(x), self.value(x))
        keys, values = (
            part.unflatten(-1, (self.kv_heads, -1))
            .transpose(1, 2)
            .repeat_interleave(self.n_heads // self.kv_heads, dim=1)
            for part in parts
        )
        mixed = F.scaled_dot_product_attention(query, keys, values, is_causal=True)
        return self.output(mixed.transpose(1, 2).flatten(2))
        ### END SOLUTION


def grouped(attention: CausalSelfAttention, kv_heads: int) -> GroupedAttention:
    """Grouped attention from trained attention: a group's keys and values are its heads' means."""
    ### BEGIN SOLUTION
    d_model, n_heads = attention.query.in_features, attention.n_heads
    made = GroupedAttention(MiniGPTConfig(d_model=d_model, n_heads=n_heads), kv_heads)
    state = attention.state_dict()
    for name in ("key.weight", "key.bias", "value.weight", "value.bias"):
        heads = state[name].unflatten(0, (kv_heads, n_heads // kv_heads, -1))
        state[name] = heads.mean(1).flatten(0, 1)
    made.load_state_dict(state)
    return made
    ### END SOLUTION

# %%
config, x = load_minigpt().config, torch.randn(2, 5, 64)
trained = load_minigpt().blocks[0].attention
expect_close(
    "as many heads as before: nothing has changed", grouped(trained, 4)(x), trained(x), atol=1e-5
)
two = grouped(trained, 2)
proof = CausalSelfAttention(config)
state = dict(two.state_dict())
for name in ("key.weight", "key.bias", "value.weight", "value.bias"):
    heads = state[name].unflatten(0, (2, 16))
    state[name] = torch.cat([heads[0], heads[0], heads[1], heads[1]])
proof.load_state_dict(state)
expect_close("full attention with equal heads", two(x), proof(x), atol=1e-5)
expect_equal("half of the keys", (two.key.weight.shape, two.value.bias.shape), ((32, 64), (32,)))
means = trained.value.bias.view(2, 2, 16).mean(1).flatten()
expect_close("the means of a group", two.value.bias, means)
expect_close(
    "the rows of the last head",
    two.key.weight[16:],
    (trained.key.weight[32:48] + trained.key.weight[48:]) / 2,
    atol=1e-6,
)

# %%
changed = load_minigpt()
inputs, targets = driver.sentences(*evaluation_lines(), 18)
before = driver.perplexity(changed.state_dict(), config, inputs, targets)
for block in changed.blocks:
    block.attention = grouped(block.attention, 2)
with torch.no_grad():
    after = math.exp(F.cross_entropy(changed(inputs).flatten(0, 1), targets.flatten()))
print(
    f"perplexity {before:.2f}; with half of the keys and values {after:.2f}: it would have to "
    "learn on"
)

# %% test="grouped" points=3
# Graded
check("grouped")
config = load_minigpt().config
expect_equal("one for all", GroupedAttention(config, 1).value.bias.shape, (16,))
### BEGIN HIDDEN TESTS
verify("grouped", GroupedAttention=GroupedAttention, grouped=grouped)
### END HIDDEN TESTS

# %% [markdown]
# ## 10 · A new tense
#
# *Further, hard, 35 minutes, 4 points: one for weights that fit and a run that can be repeated,
# three if the new tense is learnt and the old tenses are kept. Your own process counts the steps.*
# From the lesson: [A new tense, and what it cost](../../notebooks/08_transformer.ipynb#cell-id=a-new-tense-and-what-it-cost).
#
# `load_minigpt(WITHOUT_IMPERFECT)` is a trained MiniGPT, smaller than the other one. It has never
# read a sentence in the Spanish imperfect (*yo hablaba*). It has seen the forms of this tense only
# in lists, without any label. Teach it the tense. Write `fine_tune(weights, config, new, old,
# steps, seed)`, which starts a `MiniGPT(config)` from `weights`, trains it for `steps` steps, and
# returns its state dict. No optimizer may take more steps. `new` and `old` are pairs of inputs and
# targets, (N, T) int64 each, as in lab 07: a target is the next word, or -100 if it does not count.
# `new` has lines in the imperfect, and `old` has lines of everything that the model knew. How you
# do it is up to you; in 100 steps,
#
# - on unseen lines in the imperfect, its perplexity must come below 2.8 (it begins above 300);
# - on unseen lines of everything that it knew, it must stay below 2.15 (it begins below 1.8).
#
# The same arguments must give the same bits, even if other code uses random numbers in between, and
# `weights` must not change. The graded cell gives every word another number. A run should take a few
# seconds; the cell has 90 seconds.
#
# <details><summary>It learns, and forgets the rest</summary>
#
# Lines that aren't in the batch have no effect on the gradient. What can remind the model of them?
# </details>
# <details><summary>It keeps the rest, and hardly learns</summary>
#
# Print both perplexities for three learning rates: 0.0003, 0.001 and 0.003, with AdamW and batches of
# 32 to 64 lines. Then change the share of the new lines, and let the learning rate fall at the end.
# </details>

# %% solution="fine_tune"
Lines = tuple[torch.Tensor, torch.Tensor]


def fine_tune(
    weights: dict[str, torch.Tensor],
    config: MiniGPTConfig,
    new: Lines,
    old: Lines,
    steps: int,
    seed: int,
) -> dict[str, torch.Tensor]:
    """The state dict after `steps` steps on lines of both kinds."""
    ### BEGIN SOLUTION
    g = torch.Generator().manual_seed(seed)
    model = MiniGPT(config)
    model.load_state_dict(weights)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.002)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 0.002 * (1 - step / steps)
        chosen = [torch.randint(len(kind[0]), (32,), generator=g) for kind in (new, old)]
        inputs = torch.cat([kind[0][rows] for kind, rows in zip((new, old), chosen)])
        targets = torch.cat([kind[1][rows] for kind, rows in zip((new, old), chosen)])
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.state_dict()
    ### END SOLUTION

# %%
small = load_minigpt(WITHOUT_IMPERFECT)
inputs, targets = driver.sentences(*training_lines(), 18)  # the lines that are not longer
imperfect = imperfect_lines(inputs)
new, old = (inputs[imperfect], targets[imperfect]), (inputs[~imperfect], targets[~imperfect])
unseen, wanted = (lines[:600] for lines in driver.sentences(*evaluation_lines(), 18))
asked = imperfect_lines(unseen)
print(f"{len(new[0])} new lines, {len(old[0])} old ones")

def perplexities(state):
    """Of the new tense, and of all else."""
    return [
        driver.perplexity(state, small.config, unseen[rows], wanted[rows])
        for rows in (asked, ~asked)
    ]

tuned = fine_tune(small.state_dict(), small.config, new, old, 100, 0)
for name, state in (("before", small.state_dict()), ("after", tuned)):
    print("{}: new {:.2f}, old {:.2f}".format(name, *perplexities(state)))
expect_equal("the new tense", perplexities(tuned)[0] < 2.8, True)
expect_equal("all else", perplexities(tuned)[1] < 2.15, True)

# %%
twice = driver.tuned_twice(fine_tune, small.state_dict(), small.config, new, old, 3, 1)
expect_equal("the same bits", twice["again"], twice["once"])
expect_equal("the weights that were given", twice["given"], dict(small.state_dict()))

# %% test="fine_tune" points=4
# Graded
check("fine_tune")
small = load_minigpt(WITHOUT_IMPERFECT)
lines = tuple(part[:32] for part in driver.sentences(*training_lines(), 18))
tuned = fine_tune(small.state_dict(), small.config, lines, lines, 1, 0)
expect_equal("as the model has them", list(tuned), list(small.state_dict()))
### BEGIN HIDDEN TESTS
verify("fine_tune", fine_tune)
### END HIDDEN TESTS

# %% [markdown]
# ## 11 · Positions by rotation
#
# *Further, medium, 25 minutes, 3 points: one each for the pairs and their angles, for any
# positions, and for other dtypes.*
# From the lesson: [What a block looks like today](../../notebooks/08_transformer.ipynb#cell-id=what-a-block-looks-like-today).
#
# MiniGPT adds a vector for the position to each word. Most of today's models have no such vectors.
# In each attention they rotate the queries and the keys: *RoPE*, rotary position embedding. Write
# `rotate(x, positions, base)`, which returns the rotated queries or keys.
#
# - `x` is (B, H, T, d), the queries or the keys of all heads. d is even. x may be a view, as after
#   `transpose`.
# - `positions`, (B, T) int64, is the position of each token in its own text, from 0 to a few
#   thousand. The rows of a batch may have different positions. After a cache, x has only the newest
#   tokens.
# - `base` is a float above 1.
# - Channels c and c + d/2 are a pair, for c from 0 to d/2 - 1. At position p, the pair (a, b)
#   becomes (a·cos α - b·sin α, a·sin α + b·cos α), with the angle α = p · base^(-2c/d). This is
#   the order of Hugging Face's Llama. (The paper pairs neighbours, channels 2c and 2c + 1.)
# - x is float32, float64, float16 or bfloat16, and the result has x's dtype. Compute the angles in
#   float32 or float64, whatever x is: for example, bfloat16 has no 257. Cosines and sines may be
#   rounded to x's dtype. A float64 x itself must not be rounded to float32.
#
# If this is right, the score of a query at position i and a key at position j depends only on
# i - j. And a token after a cache gets the same numbers as in one pass over the whole text.
#
# <details><summary>What shape have the angles?</summary>
#
# Each pair has one frequency, so there are d/2 of them. Positions times frequencies are (B, T, d/2).
# All heads rotate alike, so there has to be a dimension of size 1 for them.
# </details>
# <details><summary>How do I rotate without a loop?</summary>
#
# `chunk(2, dim=-1)` gives the first channels of all pairs, and the second channels of all pairs.
# Each half of the result is a formula of both.
# </details>

# %% solution="rotate"
def rotate(x: torch.Tensor, positions: torch.Tensor, base: float) -> torch.Tensor:
    """Queries or keys (B, H, T, d), rotated to their positions (B, T)."""
    ### BEGIN SOLUTION
    half = x.shape[-1] // 2
    frequencies = base ** (-torch.arange(half) / half)
    angles = positions[:, None, :, None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    first, second = x.chunk(2, dim=-1)
    turned = torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
    return turned.to(x.dtype)
    ### END SOLUTION

# %%
x = torch.tensor([1.0, 2.0, 0.0, 0.0]).expand(1, 1, 3, 4)
expect_close(
    "angles of 1 and 0.1 for each step",
    rotate(x, torch.tensor([[0, 1, 2]]), 100.0)[0, 0],
    torch.tensor([[1, 2, 0, 0], [0.540, 1.990, 0.841, 0.200], [-0.416, 1.960, 0.909, 0.397]]),
    atol=1e-3,
)
g = torch.Generator().manual_seed(0)
q, k = torch.randn(2, 2, 3, 6, 8, generator=g)
positions = torch.tensor([[0, 1, 2, 3, 4, 5], [2, 3, 4, 5, 6, 7]])

def scores(positions):
    return rotate(q, positions, 10000.0) @ rotate(k, positions, 10000.0).mT

expect_close("all positions moved by 300", scores(positions + 300), scores(positions), atol=1e-3)
expect_close(
    "the last token, after a cache",
    rotate(k[:, :, 5:], positions[:, 5:], 10000.0),
    rotate(k, positions, 10000.0)[:, :, 5:],
)
expect_close(
    "the second row alone",
    rotate(k[1:], positions[1:], 10000.0),
    rotate(k, positions, 10000.0)[1:],
)
half = rotate(k.bfloat16(), positions + 300, 10000.0)
expect_equal("dtype", half.dtype, torch.bfloat16)
exact = rotate(k.bfloat16().float(), positions + 300, 10000.0)
expect_close("16 bits at position 307", half.float(), exact, atol=0.05)

# %% test="rotate" points=3
# Graded
check("rotate")
x = torch.tensor([[[[3.0, 4.0]]]])
expect_close("position 0", rotate(x, torch.tensor([[0]]), 10.0), x)
### BEGIN HIDDEN TESTS
verify("rotate", rotate)
### END HIDDEN TESTS

# %% [markdown]
# ## 12 · A Llama of your own
#
# *Further, hard, 50 minutes, 5 points: one each for the norm, for a block, for fewer keys and
# values, for a folder, and for folders of all kinds. For the last two, your own process says the
# module's mode and its number of parameter values.*
# From the lesson: [What a block looks like today](../../notebooks/08_transformer.ipynb#cell-id=what-a-block-looks-like-today).
#
# Many of today's models have the form of Llama. Read such a folder into a module of your own, with
# the logits of Hugging Face's `LlamaForCausalLM`. You may not use anything of transformers, except
# for `apply_rotary_pos_emb`, which the first cell imports. Write three things:
#
# `RMSNorm(width, eps)` is a module with one parameter, `weight`, (width,). It divides each vector
# of x by √(m + eps), where m is the mean of the squares of its channels. Then it multiplies the
# channels by `weight`. x may be float32, float64, float16 or bfloat16; `weight` has the same dtype,
# and so has the result. Compute the squares and their mean in float32 or float64: in float16, the
# square of 300 is infinite.
#
# `LlamaBlock(config)` is a module, and `config` is the dict from a folder's `config.json`. It has
# the linear maps `query`, `key`, `value`, `output`, `gate`, `up` and `down`, all without a bias,
# the norms `norm_1` and `norm_2`, and nothing else in its state dict. `gate` and `up` have
# `intermediate_size` outputs, and the norms' `eps` is `rms_norm_eps`. `forward(x, positions)` takes
# x, (B, T, D), and positions, (B, T) int64. It returns (B, T, D). x and the weights are both float32
# or both float64.
#
# - First x becomes x + attention(`norm_1`(x)). Then, with y = `norm_2`(x), the result is
#   x + `down`(silu(`gate`(y)) · `up`(y)).
# - There are `num_attention_heads` heads for queries and `num_key_value_heads` for keys and values,
#   with `head_dim` channels each. Query head h uses key and value head h // g, where g is the
#   number of query heads for each key head, as in exercise 9. `head_dim` may be missing in the config: then it is `hidden_size` divided by the number of query
#   heads.
# - Queries and keys are rotated as in exercise 11, with the given positions. The base is
#   `rope_theta`, which is in the dict `rope_parameters`. Its `rope_type` is always `"default"`. In
#   older files there is no such dict, and `rope_theta` is in the config itself.
# - Scores are divided by √`head_dim`. Attention is causal in the order of x, whatever the positions
#   are.
#
# `load_llama(folder)` returns an `nn.Module` in evaluation mode. `folder` is a `Path`, with a
# `config.json` and one `model.safetensors`. `module(tokens)` takes (B, T) int64 and returns logits,
# (B, T, V), with positions from 0 on. After the embedding and `num_hidden_layers` blocks come one
# more norm and the head, which has no bias. The next cell prints a config and the names in a file.
# The class `Llama` in the answer cell is only a proposal.
#
# - The file may be float32, float16 or bfloat16. The module must compute in float32.
# - If `tie_word_embeddings` is true, the file has no head. Then the head's weight must be the
#   embedding's weight. The module must have as many parameter values as the file, where a parameter
#   with two names counts once.
#
# <details><summary>Where do I begin?</summary>
#
# Give your modules the names that the text asks for. Then a table of a dozen replacements turns
# each name of the file into yours, and `load_state_dict` tells you what is left over.
# </details>
# <details><summary>The logits are wrong. Which part is it?</summary>
#
# Load the folder with `AutoModelForCausalLM`, outside of your answer, and compare after each step:
# its `model.embed_tokens`, its `model.layers[0]`. In a folder with one layer, a wrong last norm
# shows, too.
# </details>

# %% given="llama_folder"
tiny = {"hidden_size": 24, "intermediate_size": 12, "num_hidden_layers": 1, "vocab_size": 11}
tiny |= {"num_attention_heads": 6, "num_key_value_heads": 2}
folder = driver.llama_folder(Path(mkdtemp()), tiny, 0)
for key, value in json.loads((folder / "config.json").read_text()).items():
    if key in {*tiny, "head_dim", "rms_norm_eps", "rope_parameters", "tie_word_embeddings"}:
        print(f"{key:24} {value}")
for name, tensor in load_file(folder / "model.safetensors").items():
    print(f"{name:50} {tuple(tensor.shape)}")

# %% solution="load_llama"
class RMSNorm(nn.Module):
    """Divide vectors of this width by the root of their mean square, and scale each channel."""

    def __init__(self, width: int, eps: float):
        super().__init__()
        ### BEGIN SOLUTION
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(..., width) -> (..., width), of the same dtype."""
        ### BEGIN SOLUTION
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return self.weight * wide.to(x.dtype)
        ### END SOLUTION


class LlamaBlock(nn.Module):
    """Attention with rotated queries and keys, and an MLP with a gate."""

    def __init__(self, config: dict):
        super().__init__()
        ### BEGIN SOLUTION
        width, hidden = config["hidden_size"], config["intermediate_size"]
        heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim = config.get("head_dim", width // heads)
        self.base = config.get("rope_parameters", config)["rope_theta"]
        self.norm_1 = RMSNorm(width, config["rms_norm_eps"])
        self.norm_2 = RMSNorm(width, config["rms_norm_eps"])
        self.query = nn.Linear(width, heads * self.head_dim, bias=False)
        self.key = nn.Linear(width, kv_heads * self.head_dim, bias=False)
        self.value = nn.Linear(width, kv_heads * self.head_dim, bias=False)
        self.output = nn.Linear(heads * self.head_dim, width, bias=False)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)
        ### END SOLUTION

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """(B, T, D) -> (B, T, D); positions: (B, T)."""
        ### BEGIN SOLUTION
        y = self.norm_1(x)
        query, key, value = (
            part(y).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        half = self.head_dim // 2
        angles = positions[..., None] * self.base ** (-torch.arange(half) / half)
        angles = torch.cat([angles, angles], dim=-1)
        query, key = apply_rotary_pos_emb(query, key, angles.cos(), angles.sin())
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        x = x + self.output(mixed.transpose(1, 2).flatten(2))
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))
        ### END SOLUTION


class Llama(nn.Module):
    """Embedding, blocks, norm and head."""

    def __init__(self, config: dict):
        super().__init__()
        ### BEGIN SOLUTION
        self.embedding = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.blocks = nn.ModuleList(LlamaBlock(config) for _ in range(config["num_hidden_layers"]))
        self.norm = RMSNorm(config["hidden_size"], config["rms_norm_eps"])
        self.head = nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)
        if config["tie_word_embeddings"]:
            self.head.weight = self.embedding.weight
        ### END SOLUTION

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(B, T) -> (B, T, V)."""
        ### BEGIN SOLUTION
        x = self.embedding(tokens)
        positions = torch.arange(tokens.shape[1]).expand(tokens.shape)
        for block in self.blocks:
            x = block(x, positions)
        return self.head(self.norm(x))
        ### END SOLUTION


def load_llama(folder: Path) -> nn.Module:
    """A module with the weights of a Llama's folder."""
    ### BEGIN SOLUTION
    model = Llama(json.loads((folder / "config.json").read_text()))
    mine = {
        "model.embed_tokens": "embedding",
        "model.layers": "blocks",
        "model.norm": "norm",
        "lm_head": "head",
        "input_layernorm": "norm_1",
        "post_attention_layernorm": "norm_2",
        "self_attn.q_proj": "query",
        "self_attn.k_proj": "key",
        "self_attn.v_proj": "value",
        "self_attn.o_proj": "output",
        "mlp.gate_proj": "gate",
        "mlp.up_proj": "up",
        "mlp.down_proj": "down",
    }
    state = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        for theirs, ours in mine.items():
            name = name.replace(theirs, ours)
        state[name] = tensor
    state.setdefault("head.weight", state["embedding.weight"])
    model.load_state_dict(state)
    return model.eval()
    ### END SOLUTION

# %%
norm = RMSNorm(4, 0.5)
norm.load_state_dict({"weight": torch.ones(4)})
found = norm(torch.tensor([[1.0, 1.0, 1.0, 2.0]]))  # a mean square of 1.75
expect_close("divided by 1.5", found, torch.tensor([[0.667, 0.667, 0.667, 1.333]]), atol=1e-3)
large = norm.half()(torch.tensor([[300, -300, 300, 0.0]]).half())
expect_close("float16", large, torch.tensor([[1.1547, -1.1547, 1.1547, 0]]).half(), atol=1e-2)
tokens = torch.randint(11, (2, 7))
kinds = {"as above": {}, "another base": {"rope_theta": 100.0}}
kinds["older"] = {"rope_theta": 100.0, "old": True}
kinds["tied"] = {"tie_word_embeddings": True}
kinds["wide heads"] = {"head_dim": 6, "num_hidden_layers": 2}
for kind, more in kinds.items():
    folder = driver.llama_folder(Path(mkdtemp()), tiny | more, 1)
    with torch.no_grad():
        theirs = AutoModelForCausalLM.from_pretrained(folder)(tokens).logits
        expect_close(kind, load_llama(folder)(tokens), theirs, atol=1e-4)

# %% test="load_llama" points=5
# Graded
check("load_llama")
sizes = {"hidden_size": 4, "num_attention_heads": 2, "num_key_value_heads": 1}
folder = driver.llama_folder(Path(mkdtemp()), sizes | {"intermediate_size": 6, "vocab_size": 9}, 0)
block = LlamaBlock(json.loads((folder / "config.json").read_text()))
expect_equal("half of the keys", block.key.weight.shape, (2, 4))
expect_equal("tensors", len(block.state_dict()), 9)
### BEGIN HIDDEN TESTS
verify("load_llama", RMSNorm=RMSNorm, LlamaBlock=LlamaBlock, load_llama=load_llama)
### END HIDDEN TESTS

# %% [markdown]
# ## 13 · Few numbers to train
#
# *Further, medium, 30 minutes, 4 points: one each for a new layer, for training, for merging, and for
# a whole model.*
# From the lesson: [Fewer numbers to train, fewer bits to store](../../notebooks/08_transformer.ipynb#cell-id=fewer-numbers-to-train-fewer-bits-to-store).
#
# `fine_tune` changed every number of the model. *LoRA* leaves them as they are, and trains two small
# matrices beside each weight. Write a module and two functions, which change the layers and models that they get:
#
# - `LoRA(base, rank, alpha)` is a module around a trained `nn.Linear`, with or without a bias.
#   Its state dict has what `base` has, below `base.`, and two matrices: `A`, (rank, inputs), and
#   `B`, (outputs, rank). `base` is the given layer itself, and `A` and `B` have the dtype of its
#   weight. Only `A` and `B` require a gradient, so the given layer is frozen. `A` starts with random
#   numbers, new ones in each layer. `B` starts with zeros, so a new layer computes exactly what
#   `base` does.
# - Its `forward(x)` takes x, (..., inputs), which may be a view, and returns `base(x)` plus
#   `alpha / rank` times x·Aᵀ·Bᵀ.
# - Its `merge()` adds `alpha / rank` times B·A to the weight of `base`, in place. From then on,
#   the forward is `base(x)` alone, so its result stays the same. `unmerge()` undoes this, up to
#   rounding. If a layer is already merged, `merge()` does nothing. If it is not merged,
#   `unmerge()` does nothing. Only these two methods change the weight of `base`, not `train()` or
#   `eval()`. While a layer is merged, nobody changes its `A` and `B`.
# - `adapt(model, names, rank, alpha)` changes a model in place. It puts a LoRA around each
#   `nn.Linear` whose own name is in `names`, at any depth: `"query"` is the own name of
#   `blocks.0.attention.query`. A module of another class stays as it is, even if its name is in
#   `names`. After the call, no parameter requires a gradient, except each `A` and `B` of a LoRA.
#   The model has each of its layers only once, no subclass of `nn.Linear`, and no
#   LoRA yet. It is not itself an `nn.Linear`.
# - `adapter(model)` returns a dict with each `A` and `B` of the model's LoRAs, and nothing else,
#   under their names in the model's state dict. `model` may itself be a LoRA.
#
# <details><summary>Which way round are the matrices?</summary>
#
# `F.linear(x, A)` is x·Aᵀ, (..., rank). A second `F.linear` takes this to (..., outputs). Never
# make B·A in the forward: it is as large as the weight.
# </details>
# <details><summary>How do I replace a layer inside a model?</summary>
#
# `named_children()` of a module gives its own layers by name, and `setattr(module, name, new)`
# replaces one. Make a list of the modules before you replace anything. Otherwise the walk goes into
# the new layers, too. And freeze the model before, not after.
# </details>

# %% solution="LoRA"
class LoRA(nn.Module):
    """A linear layer that stays as it is, plus a product of two small matrices that is trained."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float):
        super().__init__()
        ### BEGIN SOLUTION
        weight = base.weight
        self.base = base.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(rank, base.in_features).to(weight) / math.sqrt(rank))
        self.B = nn.Parameter(weight.new_zeros(base.out_features, rank))
        self.scale, self.merged = alpha / rank, False
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(..., inputs) -> (..., outputs)."""
        ### BEGIN SOLUTION
        output = self.base(x)
        if not self.merged:
            output = output + self.scale * F.linear(F.linear(x, self.A), self.B)
        return output
        ### END SOLUTION

    @torch.no_grad()
    def merge(self) -> None:
        """Add the product of B and A to the weight of `base`."""
        ### BEGIN SOLUTION
        if not self.merged:
            self.base.weight += self.scale * self.B @ self.A
            self.merged = True
        ### END SOLUTION

    @torch.no_grad()
    def unmerge(self) -> None:
        """Undo `merge`."""
        ### BEGIN SOLUTION
        if self.merged:
            self.base.weight -= self.scale * self.B @ self.A
            self.merged = False
        ### END SOLUTION


def adapt(model: nn.Module, names: list[str], rank: int, alpha: float) -> None:
    """Put a LoRA around each linear layer with one of these names, and freeze all other numbers."""
    ### BEGIN SOLUTION
    model.requires_grad_(False)
    for module in list(model.modules()):
        for name, layer in list(module.named_children()):
            if name in names and isinstance(layer, nn.Linear):
                setattr(module, name, LoRA(layer, rank, alpha))
    ### END SOLUTION


def adapter(model: nn.Module) -> dict[str, torch.Tensor]:
    """The A and B of each LoRA in a model, by their names in the state dict."""
    ### BEGIN SOLUTION
    found = {}
    for path, module in model.named_modules():
        if isinstance(module, LoRA):
            start = f"{path}." if path else ""
            found |= {f"{start}A": module.A.detach(), f"{start}B": module.B.detach()}
    return found
    ### END SOLUTION

# %%
layer, x = nn.Linear(6, 4), torch.randn(2, 3, 6)
before = layer(x).detach()
mine = LoRA(layer, 2, 7)
expect_equal("a new layer", mine(x), before)
a, b = torch.randn(2, 6), torch.randn(4, 2)
mine.load_state_dict({"A": a, "B": b}, strict=False)
expect_close("the two matrices", mine(x), before + 3.5 * x @ (b @ a).T, atol=1e-4)
mine(x).square().sum().backward()
trained = [name for name, one in mine.named_parameters() if one.grad is not None]
expect_equal("gradients", sorted(trained), ["A", "B"])
mine.merge()
mine.merge()
expect_close("merged, once", layer(x), before + 3.5 * x @ (b @ a).T, atol=1e-4)
expect_close("the same output", mine(x), layer(x), atol=1e-4)
mine.unmerge()
expect_close("as before", layer(x), before, atol=1e-5)
deep = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3), nn.ModuleDict({"up": nn.Linear(3, 2)}))
adapt(deep, ["up"], 1, 1)
expect_equal("its adapter", sorted(adapter(deep)), ["2.up.A", "2.up.B"])
trained = [name for name, one in deep.named_parameters() if one.requires_grad]
expect_equal("what is trained", sorted(trained), ["2.up.A", "2.up.B"])

# %% [markdown]
# Now the model that has never read the imperfect. How many numbers does it take, and how large is the
# file that you would send to a friend who has the model already?

# %%
small = load_minigpt(WITHOUT_IMPERFECT)
inputs, targets = driver.sentences(*training_lines(), 18)
imperfect = imperfect_lines(inputs)
kinds = imperfect.nonzero()[:, 0], (~imperfect).nonzero()[:, 0]
adapt(small, ["query", "key", "value", "output", "up", "down", "lm_head"], 4, 8)
torch.manual_seed(0)
trained = [one for one in small.parameters() if one.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=0.01)
for _ in range(60):
    rows = torch.cat([kind[torch.randint(len(kind), (24,))] for kind in kinds])
    loss = F.cross_entropy(small(inputs[rows]).flatten(0, 1), targets[rows].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
few = sum(one.numel() for one in trained)
print(f"trained: {few:,} numbers beside {sum(p.numel() for p in small.parameters()) - few:,}")
unseen, wanted = (lines[:300] for lines in driver.sentences(*evaluation_lines(), 18))
for name, rows in (("new", imperfect_lines(unseen)), ("old", ~imperfect_lines(unseen))):
    logits = small(unseen[rows]).detach().flatten(0, 1)
    perplexity = float(F.cross_entropy(logits, wanted[rows].flatten()).exp())
    print(f"{name}: perplexity {perplexity:.2f}")
    expect_equal("below 4", perplexity < 4, True)

# %% test="LoRA" points=4
# Graded
check("LoRA")
mine = LoRA(nn.Linear(5, 3, dtype=torch.float64), 1, 1)
expect_equal("names", sorted(mine.state_dict()), ["A", "B", "base.bias", "base.weight"])
### BEGIN HIDDEN TESTS
verify("LoRA", LoRA=LoRA, adapt=adapt, adapter=adapter)
### END HIDDEN TESTS

# %% [markdown]
# ## 14 · Two numbers in a byte
#
# *Further, hard, 45 minutes, 4 points: one each for codes and scales, for the product, for a model's
# state dict, and for no unpacked copy between calls. Your own process says what is alive.*
# From the lessons: [Fewer numbers to train, fewer bits to store](../../notebooks/08_transformer.ipynb#cell-id=fewer-numbers-to-train-fewer-bits-to-store), and
# [Tensors that answer](../../notebooks/04_dispatcher.ipynb#cell-id=tensors-that-answer).
#
# `Int4` is a tensor whose numbers have four bits each. It can be the weight of an `nn.Linear`, and no
# line of the model changes. The code that makes the wrapper is given: `packed` and `scales` hold the
# numbers, and `columns` is the width of the matrix, later `w.shape[1]`. You write four methods:
#
# - `Int4.from_float(weight, group)` packs a float32 matrix, (rows, columns), which may be a view
#   and requires no gradient. It returns an `Int4` of that shape and dtype. Each row is cut into
#   groups of `group` neighbours, and the last group of a row may be shorter. A group's scale is its
#   largest magnitude divided by 7, however small that is, and `scales` is (rows, groups), float32. A code is a weight divided by its scale, rounded to a
#   whole number from -7 to 7. The check avoids weights that are nearly halfway between two codes.
#   If all weights of a group are 0, its scale is 0, and its codes are 0, too.
# - In `packed`, uint8, each byte has code + 8 of two neighbours of a row, the first in its low
#   four bits. If a row has an odd number of columns, the high four bits of its last byte are 0.
# - `dequantize()` returns codes times scales, float32, (rows, columns).
# - With `__torch_function__` and `__torch_dispatch__`, `F.linear(x, w, bias)` returns the same as
#   with `w.dequantize()`, as a plain tensor. x is (..., columns) of one dimension or more, and
#   the bias is a tensor or None. It may also be passed as `bias=`, or left out. x and the bias may
#   require a gradient, which must be right. `w` never requires one.
# - `nn.Parameter(w, requires_grad=False)` must work as the weight of a layer. `load_state_dict`
#   copies the weights of another model of the same sizes and groups, and then the two models
#   share nothing. An operator on the numbers, such as `w + 1` or `torch.relu(w)`, must raise
#   `NotImplementedError`. Copies and views, such as `w.clone()` and `w.T`, are not asked.
# - Between two calls, no unpacked copy of the weight may be alive, not even between an `F.linear`
#   and its backward: unpack again for the backward.
#
# <details><summary>Which operators do I have to answer?</summary>
#
# In `__torch_function__`, only `F.linear`; everything else goes to `super().__torch_function__`. In
# `__torch_dispatch__`, print `func`, make a Parameter, and load a state dict. You see two operators:
# `aten.detach.default`, which returns an `Int4` with the same tensors, and `aten.copy_.default`.
# </details>
# <details><summary>What keeps an unpacked copy alive?</summary>
#
# Autograd. A product keeps its weight for the gradient of x. In a `torch.autograd.Function` of your own,
# you choose what is kept: `ctx.weight = weight` keeps the Int4, and `backward` unpacks it again. The
# gradient of x is `grad_output` times the weight.
# </details>

# %% solution="Int4"
class Product(torch.autograd.Function):
    """x·Wᵀ with a packed W, for `Int4`. You may use it, change it, or remove it."""

    @staticmethod
    def forward(ctx, x, weight):
        ### BEGIN SOLUTION
        ctx.weight = weight
        return x @ weight.dequantize().T
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        return grad_output @ ctx.weight.dequantize(), None
        ### END SOLUTION


class Int4(torch.Tensor):
    """A matrix of four-bit numbers, two in a byte, with a scale for each group of a row."""

    @staticmethod
    def __new__(cls, packed, scales, group, columns):
        shape = (len(packed), columns)
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=scales.dtype)

    def __init__(self, packed, scales, group, columns):
        self.packed, self.scales, self.group = packed, scales, group

    def __repr__(self):
        return f"Int4({tuple(self.shape)}, groups of {self.group})"

    @classmethod
    def from_float(cls, weight: torch.Tensor, group: int):
        """Round a float32 matrix to four bits."""
        ### BEGIN SOLUTION
        rows, columns = weight.shape
        padded = F.pad(weight, (0, -columns % group)).unflatten(1, (-1, group))
        scales = padded.abs().amax(-1) / 7
        steps = torch.where(scales == 0, 1, scales)
        codes = (padded / steps[..., None]).round().flatten(1)[:, :columns] + 8
        codes = F.pad(codes, (0, columns % 2)).to(torch.uint8)
        return cls(codes[:, ::2] | codes[:, 1::2] << 4, scales, group, columns)
        ### END SOLUTION

    def dequantize(self) -> torch.Tensor:
        """The numbers as float32."""
        ### BEGIN SOLUTION
        columns = self.shape[1]
        codes = torch.stack([self.packed & 15, self.packed >> 4], dim=-1).flatten(1)[:, :columns]
        steps = self.scales.repeat_interleave(self.group, dim=1)[:, :columns]
        return (codes.to(torch.float32) - 8) * steps
        ### END SOLUTION

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        ### BEGIN SOLUTION
        def linear(x, weight, bias=None):
            product = Product.apply(x, weight)
            return product if bias is None else product + bias

        if func is F.linear:
            return linear(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)
        ### END SOLUTION

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        ### BEGIN SOLUTION
        if func is torch.ops.aten.detach.default:
            (w,) = args
            return cls(w.packed, w.scales, w.group, w.shape[1])
        if func is torch.ops.aten.copy_.default:
            mine, theirs = args
            mine.packed.copy_(theirs.packed)
            mine.scales.copy_(theirs.scales)
            return mine
        raise NotImplementedError(f"Int4 does not know {func}")
        ### END SOLUTION

# %%
row = torch.tensor([[7.0, -3.2, 0.0, 1.4, 0.76]])
w = Int4.from_float(row, 3)
expect_equal("15, 5, 8 and 15, 12", w.packed, torch.tensor([[0x5F, 0xF8, 0x0C]], dtype=torch.uint8))
expect_close("the scales", w.scales, [[1.0, 0.2]])
expect_close("rounded", w.dequantize(), [[7.0, -3.0, 0.0, 1.4, 0.8]])
w = nn.Parameter(w, requires_grad=False)
expect_close("a vector times a Parameter, without a bias", F.linear(torch.ones(5), w), [6.2])
weight, x = torch.randn(8, 6), torch.randn(2, 3, 6, requires_grad=True)
w = Int4.from_float(weight, 6)
off = (w.dequantize() - weight).abs() / w.scales
expect_equal("at most half a step", bool((off < 0.5001).all()), True)
output = F.linear(x, w, torch.ones(8))
expect_close("a product", output, F.linear(x, w.dequantize(), torch.ones(8)), atol=1e-5)
output.sum().backward()
expect_close("a gradient", x.grad[0, 0], w.dequantize().sum(0), atol=1e-5)

# %%
model, words = load_minigpt(), load_tokenizer()
tokens = torch.tensor([words.encode("<bos> <es> hablar <past> yo")])
linear = [one for one in model.modules() if isinstance(one, nn.Linear)]
before = sum(one.weight.nbytes for one in linear)
adapters.in_four_bits(Int4, model, 32)
after = sum(one.weight.packed.nbytes + one.weight.scales.nbytes for one in linear)
print(f"weights of linear layers: {before:,} bytes before, {after:,} after")
with torch.no_grad():
    likely = model(tokens)[0, -1].topk(3).indices
print("after “yo”:", words.decode(likely.tolist()))
again = adapters.in_four_bits(Int4, MiniGPT(model.config), 32)
again.load_state_dict(model.state_dict())
expect_equal("loaded", again(tokens), model(tokens))
for name, made in adapters.refused(Int4, weight, 6, list(adapters.REFUSED))["raised"].items():
    expect_equal(name, made, "NotImplementedError")

# %% test="Int4" points=4
# Graded
check("Int4")
w = Int4.from_float(torch.zeros(2, 3), 2)
expect_equal("zeros", w.dequantize(), torch.zeros(2, 3))
### BEGIN HIDDEN TESTS
verify("Int4", Int4)
### END HIDDEN TESTS

# %% [markdown] task="five_lines" points=2
# ## 15 · Five lines of yours
#
# *10 minutes, 2 points, read by a person.*
#
# Quote five lines of your own `MultiHead`, word for word: the lines that split channels into heads,
# make scores, hide positions, compute the softmax, and put heads together again. (If one of your
# lines does two of these, quote it twice.) Below each line, say in one or two sentences what its
# shapes are before and after. Then say what would happen if you left out exactly that line or
# changed its dimensions, and whether there would be an error. Name the change that you mean.
#
# === BEGIN MARK SCHEME ===
#
# The lines must be the learner's own. Two points if all five are right, one if three are.
#
# - **Splitting.** (B, T, D) -> (B, T, H, D/H) -> (B, H, T, D/H): a view that copies nothing. A
#   `.view` straight to (B, H, T, D/H) raises no error and mixes positions with channels.
# - **Scores.** (B, H, T, D/H) @ (B, H, D/H, T) -> (B, H, T, T): rows are queries. Without the
#   division, there is no error. The scores' spread grows with √(D/H), and softmax becomes nearly
#   one-hot.
# - **Hiding.** (B, 1, T, T) broadcasts over heads. Without this line, words see the future: the
#   loss is too good, and generated text is nonsense. With the line after the softmax, rows no
#   longer sum to 1.
# - **Softmax.** It is over the keys, the last dimension. With dimension -2, the columns sum to 1, and
#   a query's weights have an arbitrary sum. The shapes are equal, so there is no error.
# - **Together.** It transposes back, then makes (B, T, D). Without the transpose, `reshape` gives
#   the right shape and mixes heads with positions. After the transpose, `view` raises an error.
#
# === END MARK SCHEME ===

# %% [markdown]
# *Your answer goes here.*

# %% [markdown]
# ## MiniGPT, in your hands
#
# Here you write nothing, and there are no points. At the end of lab 03 MiniGPT spoke through your
# layers. Now its attention is yours as well. The next cell takes your `MultiHead` from this
# notebook, and whatever you have solved in your saved copies of labs 03 and 05: `Linear`,
# `Embedding`, `LayerNorm`, and the softmax that picks the word. How much of the model is still
# PyTorch's?

# %%
my_minigpt(subject="ella", verb="comer", tense="imperfect", MultiHead=MultiHead)

# %% [markdown]
# ## Done
#
# Use *Kernel → Restart Kernel and Run All Cells* once more, so that you know your notebook works
# from top to bottom, then save it.
#
# You have written every step from a batch of sentences to the next word. You have moved a model
# from one library into another, and let that library write for you. You have changed the model, and
# taught it something new without breaking what it knew. In [phase 09](../../notebooks/09_profiling.ipynb#cell-id=total-and-self) you find out where its time goes.
