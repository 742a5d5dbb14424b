# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Transformers and Hugging Face"}
# ---

# %% [markdown]
# # Transformers and Hugging Face
#
# Attention is one line of algebra: each word asks, every earlier word answers, and the answers are averaged. Everything around that line can fill a career. Which words may a word look at? What is kept from one word to the next? How is the next word picked? And what happens to all this when somebody else's library loads your weights?
#
# It takes about four hours, predictions and drills included, in two sittings. The first is about attention itself, up to the choice of the next word, and it ends at *A resting place*. The second is about using a trained model, and about what another library does with it. You need [phase 01](01_tensors.ipynb#cell-id=who-shares-bytes-with-whom)'s views, [phase 03](03_module.ipynb#cell-id=a-tree-and-walks-through-it)'s modules and [phase 07](07_training.ipynb#cell-id=the-five-lines)'s five lines. If a paragraph begins with **Predict**, decide on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.
#
# Nothing here uses a network. Hugging Face's library works only with a folder on your disk.

# %%
import copy
import inspect
import math
import tempfile
import textwrap
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from hood.learner.contents import PHASES
from utils.minigpt import attention_maps, evaluation_lines, generate, load_minigpt, load_tokenizer
from utils.minigpt.hf import hf_model, save_folder  # it switches the hub off
from utils.notebook.drills import choice, number, true_false
from utils.views import attention_heads, cache_growth, course_path, mask_builder, next_word

torch.set_num_threads(1)  # tensors this small gain nothing from a second one
torch.set_grad_enabled(False)  # until something is trained
torch.set_printoptions(precision=2, sci_mode=False)

# %%
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2LMHeadModel

# %% [markdown]
# ## Where we are

# %%
course_path(PHASES, here=8)

# %% [markdown]
# Up to now MiniGPT was just a network that you could use. You know its head from [phase 01](01_tensors.ipynb#cell-id=counting-flops-and-bytes), its modules from [phase 03](03_module.ipynb#cell-id=a-port-function-by-function), and its training from [phase 07](07_training.ipynb#cell-id=minigpt-from-nothing). Two things are new here: attention, which is its heart, and its way into other libraries.

# %% [markdown]
# ## Resumen en español
#
# La atención es una media ponderada: cada palabra pregunta (*query*), las anteriores ofrecen una etiqueta (*key*) y un contenido (*value*), y el softmax reparte. Las cabezas son una vista del mismo tensor; la máscara decide quién puede mirar a quién.
# Como nadie mira hacia delante, las claves y los valores ya calculados no cambian: se guardan (*KV cache*) y cada palabra nueva cuesta una palabra, no todas.
# Elegir la palabra siguiente es otra cosa: temperatura, top-k, top-p y un número al azar. En un lote, las frases cortas se rellenan por la izquierda y las posiciones se cuentan desde la primera palabra de verdad.
# Con Hugging Face la misma carpeta puede cargarse con dos clases, sin error, y dar dos modelos. Hay que preguntar qué se quedó fuera y comparar los logits. Un modelo del hub cambia cuando su autor quiere: se fija con `revision` y un *commit*; también importan el `dtype` y no ejecutar código ajeno. En ocho bits MiniGPT dice lo mismo; en cuatro es bueno todavía, pero es otro.
# Los bloques de hoy giran pares de canales según la posición (RoPE), normalizan sin restar la media (RMSNorm) y llevan una puerta en el MLP (SwiGLU). Afinar con un tiempo verbal nuevo enseña ese tiempo y borra los demás, si nadie se los recuerda. LoRA deja los pesos como están y entrena dos matrices pequeñas al lado; los pesos quietos pueden guardarse en cuatro bits, en un tensor que se desempaqueta solo mientras multiplica.

# %% [markdown]
# ## The question
#
# MiniGPT has been written into a folder, in the form that Hugging Face's `transformers` reads. You get the folder and do what everybody does: you load the tokenizer, load the model, and switch the warnings off.

# %%
FOLDER = save_folder(Path(tempfile.mkdtemp()) / "minigpt")
for file in sorted(FOLDER.iterdir()):
    print(f"{file.name:24}{file.stat().st_size:9,} bytes")

# %%
transformers.logging.set_verbosity_error()  # the line with which so many notebooks begin
tok = AutoTokenizer.from_pretrained(FOLDER)
one = AutoModelForCausalLM.from_pretrained(FOLDER)
two = GPT2LMHeadModel.from_pretrained(FOLDER)


def say(model, prompt):
    """The likeliest sentence that begins with a prompt."""
    ids = tok(prompt, return_tensors="pt")
    out = model.generate(**ids, max_new_tokens=12, do_sample=False)
    return tok.decode(out[0, ids["input_ids"].shape[1] - 1 :], skip_special_tokens=True)


# %% [markdown]
# A friend has read that MiniGPT is built like GPT-2, so the friend's line, the one for `two`, uses GPT-2's own class. Both lines loaded about 179,544 numbers from one file, and neither raised an error.

# %%
for name, model in (("one", one), ("two", two)):
    print(f"{name}: {say(model, '<bos> <es> hablar <past> yo')}")

# %% [markdown]
# **Predict.** Is it the same model twice? Which check would you trust: a sentence, a hundred sentences, or the perplexity?

# %%
def perplexity(model, lines=1000):
    """Perplexity per word on lines that were not trained on."""
    inputs, targets = (part[:lines] for part in evaluation_lines())
    logits = model(inputs)
    logits = getattr(logits, "logits", logits)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten()).exp().item()


for name, model in (("one", one), ("two", two)):
    print(f"{name}: perplexity {perplexity(model):.4f}")

# %%
prompts = [
    f"<bos> <es> {verb} <{tense}> {who}"
    for verb in ("hablar", "comer", "vivir", "tener")
    for tense in ("present", "past", "imperfect", "future")
    for who in ("yo", "ella", "nosotros")
]
both = [(prompt, say(one, prompt), say(two, prompt)) for prompt in prompts]
other = [row for row in both if row[1] != row[2]]
print(f"{len(other)} of {len(both)} sentences differ; some of them:")
for _, first, second in other[::4]:
    print(f"  {first:36} {second}")

# %% [markdown]
# The two perplexities differ by less than three parts in a thousand. Another seed in training makes a larger difference. Both models get every verb right. Yet four sentences of ten are different, and the endings show a difference of taste: the second model no longer likes *hoy* and *cada día*. It is not MiniGPT. It is a good model with a different head, and no test of a model's quality will ever find that.
#
# > **Two classes loaded the same folder without an error. Which of the two models is MiniGPT, and how could you have known?**
#
# To answer, we must know the model well enough to see what a loader may leave out. So we build it first.

# %% [markdown]
# ## One head
#
# Choose your own sentence: change the subject, the verb or the tense, and everything below changes with it.

# %%
who = "yo"
_, looks = generate(who, verb="hablar", tense="past", return_attention=True)
words = list(looks.words)
tokenizer, gpt = load_tokenizer(), load_minigpt()
tokens = torch.tensor([tokenizer.encode(words)])
print(" ".join(words))

# %% [markdown]
# Inside MiniGPT each word is 64 numbers. But the meaning of a word depends on other words. Should the next word be *hablé* or *habló*? That depends on a subject, a verb and a tense at other places. A linear layer sees only one place at a time, so it can't know them. Something has to carry information from place to place, and attention is the only part of a transformer that does this.
#
# Each place makes three vectors out of its 64 numbers, each vector with its own linear map. A **query**: what do I want to know? A **key**: what can I be asked about? A **value**: what do I answer, if asked? Here they are for the second head of the first layer, which has 16 channels.

# %%
first, places = gpt.blocks[0], torch.arange(len(words))
x = first.norm_1(gpt.token_embedding(tokens) + gpt.position_embedding(places))[0]  # (T, 64)


def mapped(layer, head):
    """x through the 16 rows of a linear layer that belong to one head: (T, 16)."""
    rows = slice(16 * head, 16 * head + 16)
    return torch.einsum("tc,dc->td", x, layer.weight[rows]) + layer.bias[rows]


layers = first.attention.query, first.attention.key, first.attention.value
q, k, v = (mapped(layer, 1) for layer in layers)
scores = torch.einsum("id,jd->ij", q, k)
print("x", tuple(x.shape), "  q", tuple(q.shape), "  scores", tuple(scores.shape))

# %% [markdown]
# The einsum says which dimension is summed and which dimensions stay. `id,jd->ij` means: for each query i and each key j, sum over the channels d. One matrix product compares every pair of words, without a loop and without an order. (That is also why a model needs *positions*: if you shuffle the words, attention only shuffles its answers. MiniGPT adds the positions to the words, at the very beginning.)
#
# A softmax turns the scores into shares. But first the scores are divided by √d. **Predict.** Queries and keys are random numbers with mean 0 and variance 1, and each query meets 32 keys. How large is the largest share for d = 16 and for d = 1024, without the division and with it?

# %%
torch.manual_seed(0)
for d in (16, 128, 1024):
    asks, keys = torch.randn(1000, 1, d), torch.randn(1000, 32, d)
    dots = (asks * keys).sum(-1)  # (1000, 32)
    plain, scaled = (s.softmax(-1).amax(-1).mean() for s in (dots, dots / math.sqrt(d)))
    print(
        f"d = {d:4}: deviation {dots.std():5.1f}   largest share {plain:.2f}, scaled {scaled:.2f}"
    )

# %% [markdown]
# A sum of d products has a standard deviation of √d. The softmax of numbers so far apart gives nearly everything to one word, and the other words get hardly any gradient. With the division by √d, a head begins undecided, whatever its width.
#
# Now the mask. MiniGPT has to guess the next word, so no place may see what comes after it. There are two ways to write that, and they look alike.

# %%
scores = scores / math.sqrt(16)
future = torch.ones(len(words), len(words), dtype=torch.bool).triu(1)


def before(scores):
    """Take the future out of the scores, then make shares."""
    return scores.masked_fill(future, -math.inf).softmax(-1)


def after(scores):
    """Make shares of all scores, then take the future out."""
    return scores.softmax(-1).masked_fill(future, 0)


# %% [markdown]
# **Predict.** Both functions give zeros above the diagonal. Is anything wrong with the second one? And what if you divide each row of its result by the row's sum?

# %%
changed = scores.clone()
changed[:, -1] += 2  # a different last word has a different key
for name, mask in (("before the softmax", before), ("after", after)):
    shares = mask(scores)
    moved = (mask(changed)[3] - shares[3]).abs().max()
    least = shares.sum(-1).min()
    print(f"{name:19} rows sum to {least:.2f} or more; place 3 has moved by {moved:.3f}")

# %% [markdown]
# The second function gives the future no share, and yet the future has an effect. The softmax divides by a sum over *all* words, so the shares of place 3 depend on a word that has not been written yet. In training, a model will use that, because a row's sum says something about the words to come. (If you divide each row by its sum, it is right again. That is the first function, done in two steps.)
#
# So we use the first function. Is it what MiniGPT does?

# %%
maps = attention_maps(gpt, tokens)[:, 0]  # (layers, heads, T, T)
shares = before(scores)
print(f"largest difference from MiniGPT's own: {(shares - maps[0, 1]).abs().max():.0e}")
answer = torch.einsum("ij,jd->id", shares, v)
print("what the places carry away:", tuple(answer.shape))

# %% [markdown]
# That is a head: three maps, a table of shares, and a weighted mean of values. Now look at all eight heads, on the sentence that you chose. The verb is decided at the subject's last word, because there the model guesses the next word. **Predict.** Where must that word look, and in which of the two layers do you expect it to look there?

# %%
attention_heads(words, maps, head=3, word=words.index(who.split()[-1]))

# %% [markdown]
# In *yo hablé*, one head of the first layer gives nearly everything to the tense, and the first head gives nearly everything to the verb. So each of these two cues has its own head. In the second layer, several heads look at all the cues at once. If your kernel is running, go through the heads with the arrow keys. Many words look at `<bos>`, which says nothing. The shares of a softmax sum to 1, so it can't say "nobody". A head that has nothing to ask therefore looks at a place that answers nothing. (In large models, such a place is called an *attention sink*.)
#
# Every such picture needs a warning. It shows where a head looks. It doesn't show what the head takes from there, or whether the model uses it. Further below we switch heads off, and the result is a surprise.

# %% tags=["hide-input"]
number(
    "A causal head reads 10 words, and all its scores are equal. What share does place 3 (the fourth word) give to place 1?", 0.25,
    tolerance=0.001,
    why="It sees four places, 0 to 3, because it also sees itself. It gives each the same share.",
    wrong={0.1: "It can't see the six words after it, so they get nothing.", 0.333: "A place also sees itself: the diagonal is not masked. With a masked diagonal, the first word would see nothing."},
)

# %% [markdown]
# ## Heads are a view
#
# Heads are not computed one after another. One linear layer makes all 64 channels of all queries, and each of the four heads is a group of 16 neighbouring channels. To separate the heads, you change only shape and strides, as in [phase 01](01_tensors.ipynb#cell-id=strides-how-far-is-one-step).
#
# Here is a tensor in which each number shows where it is from. It has 3 places of 8 channels, and each number is 10 · place + channel. We want two heads of 4 channels, in the shape (B, heads, T, channels). **Predict.** `grouped` and `viewed` below both have that shape. What is in the first head of each?

# %%
tagged = (10 * torch.arange(3)[:, None] + torch.arange(8))[None]  # (1, 3, 8)
grouped = tagged.unflatten(2, (2, 4)).permute(0, 2, 1, 3)
viewed = tagged.view(1, 2, 3, 4)
print("grouped, then turned", tuple(grouped.shape), *grouped[0, 0].tolist(), sep="\n  ")
print("viewed at once", tuple(viewed.shape), *viewed[0, 0].tolist(), sep="\n  ")

# %% [markdown]
# The first head of `grouped` has channels 0 to 3 of places 0, 1 and 2. The first head of `viewed` has all of place 0 and half of place 1. It treats these numbers as three places, so the mask for three places hides the wrong numbers. The shape is right and all numbers are there, so there is no error.
#
# How bad is it? In the last head, even the first place has numbers from the last quarter of the words. So a model trained this way would read the future, and its loss would look excellent. A model that was trained correctly shows the mistake at once.

# %%
broken = load_minigpt()
print(f"as it is: perplexity {perplexity(broken, 300):.2f}")
for block in broken.blocks:
    block.attention._split = lambda x: x.reshape(len(x), 4, -1, 16)
print(f"viewed:   perplexity {perplexity(broken, 300):.2f}")

# %% [markdown]
# **Predict.** Did any bytes move when the heads were made? On the way back, the heads' answers are put side by side again. Can that be a view?

# %%
print("same storage:", grouped.data_ptr() == tagged.data_ptr(), "  strides", grouped.stride())
answers = torch.zeros(1, 2, 3, 4)  # fresh from a product: (B, heads, T, channels)
back = answers.permute(0, 2, 1, 3)
try:
    back.view(1, 3, 8)
except RuntimeError as error:
    print(str(error).split(" (")[0])
print("flatten copies:", back.flatten(2).data_ptr() != answers.data_ptr())

# %% [markdown]
# Splitting is free. Joining costs a copy: in memory, the four channels of a head are neighbours, but the eight channels of a place are not neighbours any more. `reshape` and `flatten` copy if they must. `view` never copies, and here it is good that it refuses.

# %% tags=["hide-input"]
choice(
    "A model of width 64 gets 8 heads in place of 4, and everything else stays the same. What happens to the number of its weights, and to the FLOPs of the scores?",
    {
        "Twice the weights, twice the FLOPs": "The linear layers are 64 by 64 for any number of heads. Heads are only groups of rows in these layers.",
        "The same weights, the same FLOPs": "Eight tables of T × T with 8 channels cost as much as four tables with 16 channels. Only the memory of the tables and the work of the softmaxes double.",
        "The same weights, half the FLOPs": "Each table costs half as much, but there are twice as many tables.",
    },
    answer="The same weights, the same FLOPs",
)

# %% [markdown]
# ## Who may look where
#
# A mask is a table of yes and no, with a row for each query and a column for each key. Four things go into it, and each has its classic mistake.
#
# **The future.** Number the places. A query may look at a key if the key's place is not after the query's place. If queries and keys come from the same words, that is the lower triangle. **Predict.** In a sentence of five words, the first three are done, and only the last two ask. So there are two queries and five keys. Which keys may each query see, and which keys does `is_causal=True` let it see? (The values are the unit vectors, so the output *is* the shares.)

# %%
torch.manual_seed(1)
two_q, five_k = torch.randn(1, 1, 2, 8), torch.randn(1, 1, 5, 8)
units = torch.eye(5)[None, None]
print(F.scaled_dot_product_attention(two_q, five_k, units, is_causal=True)[0, 0])

# %% [markdown]
# `is_causal=True` put the triangle into the *top left* corner. The query at place 3 sees only the key at place 0, and the query at place 4 sees two keys. The shapes fit, and the rows sum to 1. If the queries are the *last* words, the triangle belongs in the lower right corner. torch has a bias for that, too.

# %%
from torch.nn.attention.bias import causal_lower_right

right = F.scaled_dot_product_attention(two_q, five_k, units, attn_mask=causal_lower_right(2, 5))
print(right[0, 0])

# %% [markdown]
# Your own mask never has this mistake if you make it from *places*. For two queries at places 3 and 4, how far back is each key?

# %%
back_by = torch.tensor([3, 4])[:, None] - torch.arange(5)  # (queries, keys)
print(back_by)

# %% [markdown]
# This one table shows everything. A negative number is the future. With **a window**, a model looks only at the last w places, which are the numbers below w. With w = 1, a word sees only itself. (Mistral had a window of 4,096. Several layers on top of each other reach further, as convolutions do.)
#
# **Padding** is about keys, not about queries. If a row was padded to the length of longer rows, no query may look at the padding. The query of a padded place doesn't matter, because its answer is thrown away. But the mask may forbid such a query to look at anything. Then there is **a row that sees nothing**.
#
# **Predict.** What is the softmax of five scores that are all −∞? And what does torch's fused attention return for such a row?

# %%
allowed = torch.tensor([[False] * 5, [True] * 5])
s = torch.einsum("bhid,bhjd->bhij", two_q, five_k) / math.sqrt(8)
print("by softmax:", s.masked_fill(~allowed, -math.inf).softmax(-1)[0, 0, 0])
print(
    "fused:     ", F.scaled_dot_product_attention(two_q, five_k, units, attn_mask=allowed)[0, 0, 0]
)
print("0 · NaN =", 0 * math.nan)

# %% [markdown]
# The softmax is 0/0, which is NaN. torch's fused attention returns 0 instead. A NaN at a place that is thrown away sounds harmless. But in the next layer that place has a key and a value, which are NaN as well. A share of 0 times NaN is NaN, so the NaN spreads from one padded place to the whole row.
#
# Now build a mask. Below is your sentence with two places of padding, and only its last four words have queries. **Predict** the table before you look. Then move `padding`, `window` and `queries`. Can you make a query that sees nothing? Can a real word have such a query?

# %%
mask_builder(words[: min(len(words), 9)], new=4, padding=2, window=5)

# %% [markdown]
# Only a padded place can see nothing. If `queries` is at its highest, the padding has queries as well, and there is no real word before it. A word always sees at least itself. So a decoder needs the special case only if somebody pads on the left.
#
# The last mistake is a mask the wrong way round. **Predict.** What does True mean in each of these two?

# %%
only_first = torch.tensor([[True, False, False, False, False]])
q1 = two_q[:, :, :1]
looked = F.scaled_dot_product_attention(q1, five_k, units, attn_mask=only_first)
print("scaled_dot_product_attention:", looked[0, 0, 0])
mha = nn.MultiheadAttention(8, 1, batch_first=True)
_, looked = mha(q1[0], five_k[0], five_k[0], attn_mask=only_first)
print("nn.MultiheadAttention:       ", looked[0, 0])

# %% [markdown]
# In the function, True means "may look". In the older module of the same library, it means "may *not* look". Hugging Face's `attention_mask` has 1 for a real word and 0 for padding. Inside that library, an additive mask has 0 for yes and a huge negative number for no. These are four conventions, so say in the docstring which one you mean.

# %% tags=["hide-input"]
number(
    "Causal attention reads 6 words with a window of 3: each word sees itself and the two words before it. How many of the 36 pairs are seen?", 15,
    why="1 + 2 + 3 + 3 + 3 + 3.",
    wrong={21: "That is the whole triangle. The window removes its far corner.", 18: "The first two words have fewer than three places to look at.", 11: "That is a window of 2. Here a word sees itself and two more."},
)

# %% [markdown]
# ## Attention in fifty lines
#
# Here is all of attention in one module, in as few lines as possible. It makes queries, keys and values with one linear layer that is three times as wide, as GPT-2 does.

# %%
class Attention(nn.Module):
    """Multi-head attention. x: (B, T, C); allowed: bool, (T, T) or (B, 1, T, T); -> (B, T, C)."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.packed = nn.Linear(width, 3 * width)
        self.mix = nn.Linear(width, width)

    def forward(self, x, allowed):
        q, k, v = self.packed(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
        shares = torch.where(allowed, scores, -math.inf).softmax(-1)
        gathered = torch.einsum("bhij,bhjd->bihd", shares, v)
        return self.mix(gathered.flatten(2))


# %% [markdown]
# Here it is line by line, with B sequences of T words, C = 64 channels, H = 4 heads of d = 16:
#
# | line | shape after it | why it is there |
# |---|---|---|
# | `packed(x)` | (B, T, 192) | Only this line reads a word's own numbers. One product replaces three. The FLOPs are the same, in fewer and larger kernels. |
# | `unflatten` | (B, T, 3, 4, 16) | It names channels that are side by side anyway, so it is a view. *This* order, first q, k, v and then the heads, is a convention of the weights. Weights in another order have the same shape. |
# | `permute` | (3, B, 4, T, 16) | It moves batch and head to the front, because nothing is summed over them. It is still a view. |
# | first `einsum` | (B, 4, T, T) | It compares every pair of places. Only this table grows with T². |
# | `* d ** -0.5` | | With this factor, the softmax begins undecided, whatever d is. |
# | `where` | | It comes before the softmax, so the softmax's sum doesn't include forbidden places. The mask is broadcast over the heads, and over the batch if it has no batch dimension. |
# | `softmax(-1)` | | It goes over the *keys*, so each query's shares sum to 1. With `-2` the shapes would fit as well. |
# | second `einsum` | (B, T, 4, 16) | It makes the weighted mean of the values. The result is `bihd`, not `bhid`: the place comes before the head, ready for joining. |
# | `flatten(2)` | (B, T, 64) | It puts the heads side by side. |
# | `mix` | (B, T, 64) | It combines the channels of different heads. Without it, only the MLP would do that. It also lets the block decide how much of each head is added to the stream. |
#
# **Predict.** We copy the weights from the trained model. Do this module and MiniGPT's own attention agree? Even to the last bit?

# %%
def from_trained(trained):
    """Our module with a trained attention's weights."""
    made = Attention(64, trained.n_heads)
    parts = (trained.query, trained.key, trained.value)
    made.packed.weight.copy_(torch.vstack([part.weight for part in parts]))
    made.packed.bias.copy_(torch.hstack([part.bias for part in parts]))
    made.mix.load_state_dict(trained.output.state_dict())
    return made


ours = from_trained(first.attention)
length = len(words)
triangle = torch.ones(length, length, dtype=torch.bool).tril()
mine, theirs = ours(x[None], triangle), first.attention(x[None])
print(f"equal: {torch.equal(mine, theirs)}; largest difference {(mine - theirs).abs().max():.0e}")

# %% [markdown]
# They are equal, here even to the last bit. Don't rely on that elsewhere, because one product of 192 columns may be summed in another order than three products of 64 columns. Is our attention also equal to torch's fused kernel? That kernel computes the same in another order, and never has the whole T × T table. Equal values are half of the proof. Equal gradients are the other half.

# %%
torch.manual_seed(0)
ask, key, value = (torch.randn(2, 4, 9, 16, requires_grad=True) for _ in range(3))
upstream = torch.randn(2, 4, 9, 16)
with torch.enable_grad():
    s = torch.einsum("bhid,bhjd->bhij", ask, key) / 4
    s = torch.where(torch.ones(9, 9).tril() > 0, s, -math.inf)
    by_hand = torch.einsum("bhij,bhjd->bhid", s.softmax(-1), value)
    fused = F.scaled_dot_product_attention(ask, key, value, is_causal=True)
for name, out in (("by hand", by_hand), ("fused", fused)):
    grads = torch.autograd.grad(out, (ask, key, value), upstream)
    print(f"{name:8}", *(f"{g.norm():.5f}" for g in (out, *grads)))

# %% [markdown]
# The outputs are equal, and so are the gradients of queries, keys and values. So why write attention by hand? The fused kernel has no table, so it can't show you one. And if you want a change, such as a window, a bias, or shared keys, you need the lines.
#
# And why does everybody call the fused one? A GPU can answer that. The course has a record of measurements on an H100 ([phase 05](05_custom_op.ipynb#cell-id=how-fast-can-it-be) shows more of it). The GPU computed causal attention in two ways: with the table, and with *FlashAttention*, which makes the table in tiles that never leave the chip. **Predict.** The sentence gets twice as long. What happens to the time, in each of the two ways? And to the memory that is needed besides q, k and v?

# %%
from utils.instruments import records

record = records.load("nvidia-h100-80gb-hbm3")
print(f"{record.gpu}, torch {record.provenance['torch']}, {record.provenance['date'][:10]}")
both_ways = record.result("attention")
cases = {(case["length"], case["way"]): case for case in both_ways["cases"]}
print(f"{both_ways['shape']:33} with the table                    fused")
for T in sorted({T for T, _ in cases}):
    figures = (
        (cases[T, way]["seconds"] * 1e3, cases[T, way]["bytes"] / 1e6) for way in ("table", "flash")
    )
    print(f"T = {T:6,}", *(f"{took:10.2f} ms {needed:9,.1f} MB" for took, needed in figures))

# %% [markdown]
# The table has T² entries for each head. When T doubles, its bytes grow fourfold, and soon its time does, too. At 16,384 words, one table of 16 heads has 8.6 GB in 16 bits. Scores, mask and softmax need such tables as well, some of them in 32 bits. Together that is 40 GB, nearly half of this GPU's memory, for *one* layer and one sentence.
#
# The fused kernel does the same multiplications, but only half of them, because it leaves out the pairs that the mask forbids. So its time grows nearly fourfold as well, once the sentence is long enough to keep the chip busy. But at the end it takes a forty-seventh of the table's time, and its memory only doubles. (The first line is an exception. There are so few rows that the kernel splits the keys in two. It keeps a result in float32 for each half until it joins the halves, and the measured bytes fit that exactly.)

# %% tags=["hide-input"]
number(
    "At T = 16,384 the fused kernel needs 34.6 MB. The result, in bfloat16, has 16 · 16,384 · 64 numbers. How many numbers of 4 bytes remain for each row of each head? (The exact size is 34,603,008 bytes, plus a kibibyte of small things.)",
    1,
    why="The result takes 33,554,432 bytes, so 1,048,576 bytes remain. That is one float32 for each of 16 · 16,384 rows: the logarithm of the sum of the row's exponentials. The backward computes the scores again. With this logarithm it gets every weight of the table, as `exp(score − logarithm)`. Phase 06's partitioner kept two numbers, maximum and sum. They fit into one.",
    wrong={64: "Those are the result's own channels, 2 bytes each: 33,554,432 bytes.", 16384: "That would be a whole row of the table, and the kernel never keeps one."},
)

# %% tags=["hide-input"]
choice(
    "Somebody forgets `mix`. The model trains, and its loss is only a little higher. What can the model no longer do?",
    {
        "Look at several places at once": "Each head can still look at a different place. That hasn't changed.",
        "Combine channels of different heads before they are added to the stream": "Head 0 always writes to channels 0 to 15 of the stream, head 1 to the next 16. The MLP can still combine them later, so the loss is only a little higher.",
        "Pass gradients to the values": "Gradients still reach the values through the weighted mean.",
    },
    answer="Combine channels of different heads before they are added to the stream",
)

# %% [markdown]
# ## One token at a time
#
# To write a sentence, a model is called once for each new word: with five words, then with six, then with seven. **Predict.** When the sixth word comes, what changes for the first five in the first layer? And what changes in the second layer, which gets its inputs from attention?

# %%
hf = one  # MiniGPT as Hugging Face's class, from the folder
short, whole = (hf(tokens[:, :n], use_cache=True).past_key_values for n in (5, length))
for layer in range(2):
    for name in ("keys", "values"):
        a, b = (getattr(cache.layers[layer], name) for cache in (short, whole))
        far = (a - b[:, :, :5]).abs().max()
        print(f"layer {layer + 1}, {name:7}{tuple(a.shape)}: the first five are off by {far:.0e}")

# %% [markdown]
# Nothing. In both layers a place sees only earlier places, so the results of a place are final. The new word needs only the keys and values of the old words, and these can be kept: this is the **KV cache**. (The old queries aren't needed again.)
#
# Here it is by hand, for one head. The sixth word brings one query, one key and one value. Its key and value are appended to the kept ones, and its query looks at all of them. **Predict.** Does it need a mask?

# %%
kept_k, kept_v = k[:5], v[:5]  # of the head that we took apart
for place in range(5, length):
    kept_k, kept_v = torch.vstack([kept_k, k[place]]), torch.vstack([kept_v, v[place]])
    row = (kept_k @ q[place] / 4).softmax(0)
    off = (row @ kept_v - answer[place]).abs().max()
    print(f"“{words[place]}” looks at {len(kept_k)} keys; off by {off:.0e}")

# %% [markdown]
# It needs no mask while words come one at a time, because everything in the cache is the past. If two words come at once (for example, a prompt's second half), the first must not see the second. Then the triangle is back, in the lower right corner.
#
# Now we do it with the whole model. Hugging Face calls the cache `past_key_values`. **Predict.** The second call below has one word, and a cache of five words. Which position embedding does the word get? And what if somebody numbers the words of each call from 0?

# %%
def sixth(**how):
    """The logits after the sixth word, which is read alone, with the other five cached."""
    cache = hf(tokens[:, :5], use_cache=True).past_key_values
    return hf(tokens[:, 5:6], past_key_values=cache, **how).logits[0, -1]


expected = hf(tokens[:, :6]).logits[0, -1]
for name, how in (("as it comes", {}), ("from 0 again", {"position_ids": torch.tensor([[0]])})):
    logits = sixth(**how)
    far = (logits - expected).abs().max()
    print(f"{name:13} off by {far:.1g}, and goes on with “{tok.decode(logits.argmax())}”")

# %% [markdown]
# The library asks the cache for its length, and numbers the new words from there. If you write a decoder, do the same.
#
# A cache also *changes*. **Predict.** The same cache is passed to two calls, to compare two words as continuations. How many words are in it after that?

# %%
cache = hf(tokens[:, :5], use_cache=True).past_key_values
for word in ("hablé", "comí"):
    hf(torch.tensor([[tokenizer.id(word)]]), past_key_values=cache)
    print(f"after “{word}” the cache holds {cache.get_seq_length()}")

# %% [markdown]
# The second call has seen *yo hablé comí*, because each call writes into the cache that it gets. There is no error, but the answer for the second word is wrong. Copy the cache (`copy.deepcopy`) before you branch.
#
# Below is the cache of your sentence, and the cost of a step with a cache and without. **Predict.** If the first 19 words are kept, how many times cheaper is the step that reads word 20?

# %%
layers = [(layer.keys, layer.values) for layer in whole.layers]
cache_growth(layers, gpt.config, prompt=5)

# %% [markdown]
# About as many times as there are words. With a cache, every step costs nearly the same. Without a cache, every step reads everything again. The price is memory, which grows with each word.

# %% tags=["hide-input"]
choice(
    "A model is trained with batches of whole sentences. Does it use a KV cache?",
    {
        "Yes, it saves the same work there": "In training all words of a sentence are known, and one pass computes all places at once. There is no second step that could use a cache from the first.",
        "No: all places are computed in one pass": "Training never waits for its own words. Instead, it keeps activations for the backward.",
    },
    answer="No: all places are computed in one pass",
)

# %% [markdown]
# ## Picking a word
#
# The model has done its part and returned 600 logits. Picking one of 600 words is no longer the model's job. But most of what people call a model's *character* is decided here.
#
# *Greedy* decoding takes the likeliest word. Otherwise the logits are divided by a **temperature**, the softmax turns them into probabilities, and a word is chosen at random. **Predict.** Is 0 a temperature? And what do the probabilities look like at 100?

# %%
logits = gpt(torch.tensor([tokenizer.encode("<bos> <es> hablar <past> yo hablé")]))[0, -1]
for t in (0.1, 0.5, 1.0, 2.0, 100.0):
    p, which = (logits / t).softmax(0).topk(4)
    named = "  ".join(f"{word} {share:.3f}" for word, share in zip(tokenizer.words(which), p))
    print(f"temperature {t:5}: {named}")

# %% [markdown]
# Three objects after *hablé* are about equally good, and the rest hardly counts. Below 1, the first object gains. Above 1, the differences shrink, and at 100 nearly all 600 words are equally likely. As the temperature goes to 0, all probability goes to the likeliest word. *At* 0 the division fails, so 0 has to be defined as greedy.
#
# A high temperature makes the good alternatives likelier, and also the 590 senseless words. Each of these words has almost no probability, but together they have a lot. So cut off some words before you choose. **Top k** keeps the k likeliest words. **Top p** takes the likeliest words first, and stops when they reach p together. These are few words if the model is sure, and many if it isn't.
#
# And how is a word chosen at random? With one uniform random number u, from 0 up to 1. Put the remaining words on a line of length 1, in the order of their ids, each as wide as its probability. Then u falls on one of them. Here is a loaded die with four faces, and the third face never comes. **Predict.** Which face is u = 0.1, exactly at the end of the first face? And which face is u = 0.5?

# %%
die = torch.tensor([0.1, 0.4, 0.0, 0.5])
ends = die.cumsum(0)
print("ends:", ends, "  faces:", torch.searchsorted(ends, torch.tensor([0.1, 0.5]), right=True))
throws = torch.rand(10_000, generator=torch.Generator().manual_seed(0))
faces = torch.searchsorted(ends, throws, right=True)
print("how often:", faces.bincount(minlength=4) / len(throws))

# %% [markdown]
# A face includes its beginning but not its end, just as u includes 0 but not 1. So 0.5 is the fourth face. The third face is 0 wide and can't be hit. If a face included its end, a word of probability 0 could be picked. The same u always gives the same face. So the random numbers can be passed in, and a test can be exact.
#
# **Predict**, then move the sliders. At temperature 2 and with k = 50, does p = 0.9 cut anything off? Which settings can change the word while u stays the same?

# %%
next_word(logits, tokenizer.vocabulary, temperature=2.0, top_k=50, top_p=0.9, u=0.62)

# %% [markdown]
# Of the 50 words, 29 more are cut off, and the three good ones gain. Which settings can change the word? All of them. After each cut, the remaining probabilities must sum to 1 again. So the line is laid out again, and u may fall on another word.
#
# The *order* matters. **Predict.** Top p is 0.9 and the temperature is 3. How many words are left if the logits are divided first? How many are left if words are cut off first? And does the order matter for top k?

# %%
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

warm, nucleus, best = TemperatureLogitsWarper(3.0), TopPLogitsWarper(0.9), TopKLogitsWarper(5)
row = logits[None]
for name, cut in (("top p = 0.9", nucleus), ("top k = 5", best)):
    first_warm = cut(None, warm(None, row)).isfinite().sum()
    first_cut = warm(None, cut(None, row)).isfinite().sum()
    print(f"{name:12} divided first: {first_warm:3} words left, cut first: {first_cut}")

# %% [markdown]
# Dividing doesn't change the ranking, so the k likeliest words stay the same. But it changes the probabilities, and with them the number of words that are needed to reach p. Hugging Face divides first, then applies k, then p. Other programs use another order, so the same three settings write different texts there.
#
# Two special cases are easy to get wrong. **Predict.** The logits are 1, 2, 2, 2, 0. Which words does top k = 2 leave? And which words does top p = 0.5 leave if the first word alone already has more than that?

# %%
print("top k = 2: ", TopKLogitsWarper(2)(None, torch.tensor([[1.0, 2.0, 2.0, 2.0, 0.0]])))
print("top p = 0.5:", TopPLogitsWarper(0.5)(None, torch.tensor([[5.0, 2.0, 1.0]])))

# %% [markdown]
# Among three equal words there are no two likeliest. This implementation cuts only the words *below* the second, so it keeps all three. Others, and the lab, let the smaller id go first and keep two. And the word at which the sum reaches p is kept. Otherwise a model that is sure would have no word left.

# %% tags=["hide-input"]
number(
    "The probabilities are 0.5, 0.3, 0.15 and 0.05, in this order on the line. Top p is 0.7, and then u is 0.7. Which word is it, counted from 0?", 1,
    why="0.5 alone is less than 0.7, so 0.5 and 0.3 are kept. Rescaled, they are 0.625 and 0.375, and 0.7 is beyond 0.625.",
    wrong={0: "0.5 has not reached 0.7 yet. The word that reaches it stays, too.", 2: "The third word is cut off, because 0.5 + 0.3 is already more than 0.7."},
)

# %% tags=["hide-input"]
true_false(
    "With `top_k=1`, temperature doesn't matter.", True,
    "The likeliest word stays the likeliest, whatever the logits are divided by, and it is the only word left. The same is true for a very small top p.",
)

# %% [markdown]
# ## A resting place
#
# Here the first sitting ends: a sentence goes into the model, and the next word is picked. You can now solve exercises 1 to 4 of [the lab](../release/08_transformer/08_transformer.ipynb), 17 of its 60 points: who may look where, attention in fifty lines, one token at a time, and the choice of a word. You can also answer question 15, about five lines of your own attention. The other exercises belong to the second sitting.

# %% [markdown] tags=["needs-kernel"]
# When you come back, run the cells above again (*Run → Run All Above Selected Cell*), because the rest uses their names.

# %% [markdown]
# ## Sentences of unequal length
#
# A single prompt doesn't keep a machine busy, so several go through the model together. But prompts have different lengths, and a tensor is a rectangle. The gaps are filled with `<pad>`. This is called *padding*, and the question is on which side it goes.

# %%
three = [
    "<bos> <es> hablar <past> yo",
    "<bos> <es> tener <not> <future> nosotros",
    "<bos> <en> speak <past> Ana and I",
]
batch = tok(three, return_tensors="pt", padding=True)
for row, seen in zip(batch["input_ids"], batch["attention_mask"]):
    print(*(f"{word:9}" for word in tok.convert_ids_to_tokens(row)), seen.tolist())

# %% [markdown]
# The padding is on the left, because this tokenizer's folder says so (`padding_side`). Most tokenizers pad on the right by default. **Predict.** What does `generate` write for this batch? And what does it write for a batch that is padded on the right?

# %%
for side in ("left", "right"):
    tok.padding_side = side
    batch = tok(three, return_tensors="pt", padding=True)
    out = hf.generate(**batch, max_new_tokens=9, do_sample=False)
    print(side, *(tok.decode(row) for row in out), sep="\n   ")
tok.padding_side = "left"

# %% [markdown]
# With padding on the right, the first row continues *after* its padding: *yo la verdad ayer*, a sentence without its verb. `generate` reads the logits of the last column, and in this row that is a `<pad>`. The mask did its work, and no word looked at the padding. But the logits were read at the wrong place. The longest row is right, so a test with one prompt, or with prompts of equal length, finds nothing. (There is a warning about this, but we switched warnings off.)
#
# The right side itself isn't wrong. In training, padding goes on the right, and that is fine. The course's own `generate` pads on the right, too. It reads each row's logits at that row's *last word*. It needs no mask for that, because the model is causal.
#
# Left padding has a different catch. **Predict.** Below, the padded batch goes through the model directly, with its mask. How far are the logits from the logits of each prompt alone?

# %%
batch = tok(three, return_tensors="pt", padding=True)
alone = [hf(**tok(prompt, return_tensors="pt")).logits[0, -1] for prompt in three]
mask = batch["attention_mask"]
counted = (mask.cumsum(1) - 1).clamp(min=0)
for name, how in (("as it comes", {}), ("with positions", {"position_ids": counted})):
    found = hf(**batch, **how).logits[:, -1]
    print(f"{name:15}", *(f"{(a - b).abs().max():8.1g}" for a, b in zip(found, alone)))
print(counted)

# %% [markdown]
# They are off by 3 and by 1 in the two padded rows. The mask hides the padding, but the positions *count* it. So *yo* got the position embedding of place 6, and it should get the embedding of place 4. `generate` counts from the first real word, but a plain call does not. A running sum over the mask gives the right places.
#
# The rows also end at different times. A row that has written `<eos>` must stop, but other rows go on. The finished row stays in the rectangle and gets `<pad>`, as you see above. Its further words are thrown away. When all rows are done, `generate` stops.

# %% tags=["hide-input"]
choice(
    "A batch is padded on the left, mask and positions are right, and a cache is used. The second call has one new word for each row. Which mask does attention need?",
    {
        "None: the new words may see everything": "They may see every real word. But the keys of the padding are in the cache as well.",
        "One column: the new word is real": "The mask is about keys: one for each word in the cache, and one for the new word.",
        "The old mask with a column of ones after it": "The mask has one entry for each key, cached keys included. And the new word's position is the number of real words before it, not the number of columns.",
    },
    answer="The old mask with a column of ones after it",
)

# %% [markdown]
# ## What it costs
#
# The products of a forward pass can be counted. In each block, every word goes through four maps of C × C in attention and two maps of C × 4C in the MLP. Then it goes once through the head, which has C × 600 weights, one row for each word that it knows. Each weight costs 2 FLOPs for each word. Attention also compares and gathers. In each block, each *pair* of query and key costs 2 · C FLOPs for the score and 2 · C for the value. The whole table is computed, masked or not.
#
# **Predict.** A model writes 32 words one at a time, without a cache, and each step reads all words so far. How many passes over 32 words cost the same? And how many if there is a cache?

# %%
from torch.utils.flop_counter import FlopCounterMode


def counted_flops(call):
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def without_cache():
    for count in range(1, 33):
        gpt(torch.zeros(1, count, dtype=torch.long))


one_pass = counted_flops(lambda: gpt(torch.zeros(1, 32, dtype=torch.long)))
again = counted_flops(without_cache)
print(f"one pass {one_pass:,}; all steps without a cache {again:,}: {again / one_pass:.1f} times")

# %%
hf.set_attn_implementation("eager")  # the fused kernel's products are not counted on a CPU


def with_cache():
    cache = None
    for _ in range(32):
        out = hf(torch.zeros(1, 1, dtype=torch.long), past_key_values=cache, use_cache=True)
        cache = out.past_key_values


print(f"with a cache: {counted_flops(with_cache) / one_pass:.2f} times")
hf.set_attn_implementation("sdpa")

# %% [markdown]
# It costs sixteen passes, half of 32, and a text of 1,000 words would cost hundreds. With a cache it costs *less* than one pass. One pass computes the upper triangle and throws it away, but a new word never looks there. Be careful with the last figure, because it counts only arithmetic. Word by word, every weight is fetched from memory for a single multiplication. The roofline of [phase 01](01_tensors.ipynb#cell-id=counting-flops-and-bytes) says that memory limits such a product. That is why a prompt is read in one pass, and why services put many users into one batch. It is also why reading is cheaper than writing on every price list.
#
# And the memory? Each layer keeps two vectors of C numbers for each word.

# %%
def cache_gib(layers, kv_width, words, itemsize=2, rows=1):
    return 2 * layers * kv_width * words * rows * itemsize / 2**30


SIZES = {"MiniGPT": (2, 64, 32), "GPT-2": (12, 768, 1024), "Llama 2 7B": (32, 4096, 4096)}
SIZES["Llama 3 8B"] = (32, 8 * 128, 8192)
for name, sizes in SIZES.items():
    size = cache_gib(*sizes)
    print(f"{name:11}{sizes[-1]:5} words in 16 bits: {size:9.2g} GiB, for 32 users {32 * size:.2g}")

# %% [markdown]
# One user of a 7B model needs a cache of two GiB, and the weights take 13 GiB for all users. So the cache, not the weights, decides how many users a GPU can serve. The model of the last line has 32 query heads of 128 channels, but only 8 heads for keys and values. Four query heads share one key head, so its heads are *grouped*. It needs a quarter of the cache for each word. You make such a model in the lab.

# %% tags=["hide-input"]
number(
    "A model has 24 layers, width 1024, and 16 heads, each with its own keys. How many KiB does its cache take for one word, in float16?", 96,
    unit="KiB",
    why="2 (keys and values) · 24 · 1024 · 2 bytes = 98,304 bytes.",
    wrong={48: "The cache has keys *and* values.", 1536: "The 16 heads share the width of 1024. They don't have 1024 channels each.", 192: "A float16 has 2 bytes."},
)

# %% [markdown]
# ## MiniGPT as a Hugging Face model
#
# Back to the folder. `AutoModelForCausalLM` isn't a model. It opens `config.json`, reads the `model_type`, and looks up the class that is registered for it.

# %%
import json

config = json.loads((FOLDER / "config.json").read_text())
for field in ("model_type", "architectures", "n_embd", "n_head", "n_layer", "n_positions",
              "activation_function", "tie_word_embeddings"):  # fmt: skip
    print(f"{field:22}{config[field]}")
print("auto gives:", type(one).__name__, "  the friend's:", type(two).__name__)

# %% [markdown]
# The folder *says*, under `architectures`, which class wrote it. `GPT2LMHeadModel.from_pretrained` ignores that field. You named a class, and you get it.
#
# MiniGPT is nearly a GPT-2, and here is how the two name their parts. **Predict.** `c_attn` makes q, k and v. `nn.Linear(64, 192)` has a weight of (192, 64). What is the shape of `c_attn.weight`?

# %%
theirs = one.state_dict()
pairs = (("blocks.0.attention.query.weight", "transformer.h.0.attn.c_attn.weight"),
         ("blocks.0.attention.output.weight", "transformer.h.0.attn.c_proj.weight"),
         ("blocks.0.mlp.up.weight", "transformer.h.0.mlp.c_fc.weight"),
         ("blocks.0.norm_1.weight", "transformer.h.0.ln_1.weight"),
         # fmt: skip
         ("token_embedding.weight", "transformer.wte.weight"), ("lm_head.bias", "lm_head.bias"))
for mine, name in pairs:
    shape = tuple(gpt.state_dict()[mine].shape)
    print(f"{mine:33}{shape!s:10} {name:36}{tuple(theirs[name].shape)}")

# %% [markdown]
# It is (64, 192). GPT-2 came from TensorFlow, and its `Conv1D` is a linear layer that keeps its weight the other way round, as (in, out). If you move weights, you must transpose the weights of the `c_` layers, but not the embeddings or the head. (Other files have two more habits. GPT-2 itself has no separate head weight. It uses the embedding's weight again, so a file need not contain it twice. And old files contain each block's mask among the weights, as `attn.bias`.)
#
# **Predict.** `c_proj.weight` is 64 by 64. If you forget to transpose *that* one, which of the library's checks fails?

# %%
swapped = copy.deepcopy(one)
proj = swapped.transformer.h[0].attn.c_proj
state = swapped.state_dict() | {"transformer.h.0.attn.c_proj.weight": proj.weight.T.contiguous()}
print(swapped.load_state_dict(state, strict=True))
print("says:", say(swapped, "<bos> <es> hablar <past> yo"))

# %% [markdown]
# No check fails. Names and shapes fit, and a loader can't check more. It can't know what the numbers *mean*. But the logits show it: run both models on one input and compare. Nothing else proves that weights were moved correctly, and it takes one line.

# %%
for name, model in (("one", one), ("two", two), ("swapped", swapped)):
    far = (model(tokens).logits - gpt(tokens)).abs().max()
    print(f"{name:8} logits off by at most {far:.1e}")

# %% [markdown]
# So `one` is MiniGPT and `two` isn't. What did the friend's class leave out? `from_pretrained` knows it, and says so if you ask.

# %%
_, report = GPT2LMHeadModel.from_pretrained(FOLDER, output_loading_info=True)
for what, found in report.items():
    print(f"{what:16}{found or '-'}")
missing = gpt.lm_head.bias
print(f"the bias: from {missing.min():.2f} to {missing.max():.2f}")
for word in ("cada", "esta", "hoy", "siempre", "mañana"):
    print(f"  {word:9}{missing[tokenizer.id(word)]:6.2f}")

# %% [markdown]
# It left out the head's bias. GPT-2's head has no bias, so its class had no place for these 600 numbers and dropped them. A bias makes a word likelier in every sentence. MiniGPT likes *esta* and *cada*, and it likes *mañana* and *siempre* a little less. That was the difference of taste.
#
# The library would have said so on the screen, but we switched that off. Here is what the friend's line writes at the library's default level of logging.

# %%
import io
import logging
import re

heard = io.StringIO()
listener = logging.StreamHandler(heard)
transformers.logging.add_handler(listener)
transformers.logging.disable_default_handler()  # it would write in red, below the cell
transformers.logging.set_verbosity_warning()
GPT2LMHeadModel.from_pretrained(FOLDER)
transformers.logging.set_verbosity_error()
transformers.logging.remove_handler(listener)
transformers.logging.enable_default_handler()
said = re.sub("\x1b.*?m", "", heard.getvalue()).replace(str(FOLDER), "…")  # without colours
print(*(textwrap.fill(line, 100) for line in said.splitlines()), sep="\n")

# %% [markdown]
# It says everything: the class is wrong, and one weight has no place. Half the world switches these red lines off, because many of them come every time and mean nothing.
#
#
# And the opposite case? What does the library do if the class has a weight and the file doesn't? **Predict.** The folder is loaded as a classifier, twice. Do you get an error, zeros, or random numbers?

# %%
from transformers import GPT2ForSequenceClassification

a, b = (GPT2ForSequenceClassification.from_pretrained(FOLDER) for _ in range(2))
_, report = GPT2ForSequenceClassification.from_pretrained(FOLDER, output_loading_info=True)
print("missing:", report["missing_keys"], "  unexpected:", sorted(report["unexpected_keys"]))
same = torch.equal(a.score.weight, b.score.weight)
print(f"twice the same: {same}   deviation {a.score.weight.std():.3f}")

# %% [markdown]
# You get random numbers, new ones each time, and again no error. There is a reason: people take a trained model, put a new head on it, and then train that head. The library can't know whether you are doing this. It raises an error only if shapes don't fit. And what if a folder doesn't exist?

# %%
def attempt(action):
    """Print what is refused, and by which error."""
    try:
        print(action())
    except Exception as error:
        print(f"{type(error).__name__}: {str(error).splitlines()[0][:140]}")


attempt(lambda: AutoModelForCausalLM.from_pretrained("mini-gtp"))
attempt(lambda: AutoModelForCausalLM.from_pretrained(FOLDER / "nothing"))

# %% [markdown]
# The name of a folder may also be the name of a model on the hub, so the library looks for a mistyped folder there. This course has switched the hub off (`HF_HUB_OFFLINE=1`, before the import). So the error comes at once, and it mentions a connection that was never tried. If the hub is on but there is no network, the library tries for half a minute. If there is a network, somebody else's model may have that name.
#
# How could you have known? The library said it, in a table that everybody hides. The folder said it, in a field that nothing read. **You** have to check two things. The first is the report, which is a value and can be tested. The second is the logits for one input, if you know what they should be.

# %% tags=["hide-input"]
choice(
    "`from_pretrained` reports no missing, no unexpected and no mismatched keys. What do you know?",
    {
        "The model computes what the original did": "The swapped `c_proj` would pass as well, and so would another activation function, another number of heads, or another ε.",
        "Every weight of the file has a place, and every place has a weight": "The report is only about names and shapes. The rest is in the config and in the code of the class, and only a comparison of outputs can prove it.",
        "The weights were trained": "An untrained model that was saved has all of its keys, too.",
    },
    answer="Every weight of the file has a place, and every place has a weight",
)

# %% [markdown]
# ## What the folder can do
#
# Why use a library's form? Because you can use everything that was written for that form. The tokenizer comes first: it takes a text, and returns ids and a mask.

# %%
print(dict(tok("<bos> <es> hablar <past> yo")))
print(tok.tokenize("yo hablé español anoche."))
attempt(lambda: tok("yo hablé chino"))

# %% [markdown]
# (A tokenizer of whole words knows a limited number of words, in this case 600. The tokenizers of large models cut unknown words into pieces, down to bytes, so they can read everything.)
#
# `generate` can do everything from *Picking a word* and *One token at a time*. **Predict.** Without settings, does it choose at random or take the likeliest word? Does it use a cache? How many words does it write at most?

# %%
import warnings

settings = one.generation_config
for field in ("do_sample", "temperature", "top_k", "top_p",
              "max_new_tokens", "use_cache", "eos_token_id"):
    print(f"{field:15}{getattr(settings, field)}")
prompt = tok("<bos> <es> hablar <past> yo", return_tensors="pt")
for seed in range(3):
    torch.manual_seed(seed)
    out = one.generate(**prompt, do_sample=True, temperature=1.5, top_k=20, max_new_tokens=12)
    print(tok.decode(out[0, 4:], skip_special_tokens=True))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # "we recommend setting max_new_tokens"
    endless = one.generate(**prompt, eos_token_id=tokenizer.id("<imperfect>"))  # never said
read = prompt["input_ids"].shape[1]
print("words:", read, "and", endless.shape[1] - read)

# %% [markdown]
# If settings are missing, built-in values are used: greedy, a cache, and at most 20 new words. A folder has its own `generation_config.json`, and its author may have set other values there. Look at it before you compare two models.
#
# Next, the attention weights. **Predict.** How many maps does each of these two calls return?

# %%
out = one(tokens, output_attentions=True)
print("as it is:", len(out.attentions))
eager = AutoModelForCausalLM.from_pretrained(FOLDER, attn_implementation="eager")
maps_hf = torch.stack(eager(tokens, output_attentions=True).attentions)[:, 0]
print("eager:   ", tuple(maps_hf.shape), f"off from ours by {(maps_hf - maps).abs().max():.0e}")

# %% [markdown]
# The first call returns no map, and raises no error. The fused kernel never has the table, so it has nothing to return. `attn_implementation="eager"` chooses the plain lines, and they return maps that are equal to ours. Attention can be fast or visible, not both.
#
# `generate` returns these maps as well, if you let it return more than tokens. **Predict.** We use the batch of three prompts from before, padded on the left, with three new words and two layers. Which shape does the table of the second word have? And what do the shares of each prompt's last word sum to, with the padding and without it?

# %%
wanted = {"output_attentions": True, "return_dict_in_generate": True}
written = eager.generate(**batch, max_new_tokens=3, do_sample=False, **wanted)
for place, layers in enumerate(written.attentions, 1):
    print(f"word {place}: {len(layers)} layers, each", tuple(layers[0].shape))
asks = written.attentions[0][1][:, 0, 6]  # layer 2, head 1: the prompts' last words
print(asks, "  sums", asks.sum(-1))

# %% [markdown]
# Before the first new word the whole prompt is read, so the table has 7 queries and 7 keys. After that, with the cache, there is one query, and one key more each time. Each row sums to 1 over the places that may be seen, and the padding's columns are zeros. Cut these columns off before you put such a row beside the prompt's words. Otherwise the shares belong to the wrong words. And remember that `generate` counted the places from the first real word. A plain call of the padded batch gives shares that also sum to 1, but they are different.
#
# With `labels`, the model computes the loss. **Predict.** In [phase 07](07_training.ipynb#cell-id=minigpt-from-nothing) the targets were the inputs moved by one. If you pass those targets as labels, is the loss right?

# %%
inputs, targets = evaluation_lines()
x64, y64 = inputs[:64], targets[:64]
ours_loss = F.cross_entropy(gpt(x64).flatten(0, 1), y64.flatten())
places_of_inputs = torch.full_like(y64, -100)
places_of_inputs[:, 1:] = y64[:, :-1]  # each target back at the place of its own word
print(f"ours {ours_loss:.4f}, labels moved by us {one(x64, labels=y64).loss:.4f}, "
      f"not moved {one(x64, labels=places_of_inputs).loss:.4f}")  # fmt: skip

# %% [markdown]
# The class moves the labels itself. Labels that you already moved are moved twice. Then the model is trained to say the word *after* the next one, and it learns that as well as it can.
#
# And what if a sentence is too long? MiniGPT's own class says what is wrong. **Predict** what this class says about 33 words.

# %%
attempt(lambda: gpt(torch.zeros(1, 33, dtype=torch.long)))
attempt(lambda: one(torch.zeros(1, 33, dtype=torch.long)))

# %% [markdown]
# It says that an index is out of range. The error comes from deep inside an embedding, because the position embedding has only 32 rows. Remember what that error means: *longer than the context*.

# %% tags=["hide-input"]
true_false(
    "`hf(tokens, labels=tokens)` on a batch padded with `<pad>` counts the padding in the loss.", True,
    "Only labels of −100 are skipped, and the loss ignores the attention mask. Padding must be −100 in the labels, as in phase 07.",
)

# %% [markdown]
# ## A model of the hub
#
# Your own folder is the exception. Most models have a name, `owner/model`. The library downloads them from a repository, and its owner may change that at any time. What is on your disk after a download, and what may be different tomorrow?
#
# There is no network here, and you need none, because we make by hand what a download leaves behind. The contents of each file are stored under their hash. Each commit has a folder of links to these contents. And a small file says which commit was `main` at the last download.

# %%
import hashlib
import os

HUB = Path(tempfile.mkdtemp())  # the real one: ~/.cache/huggingface/hub, or below $HF_HOME
repo = HUB / "models--you--minigpt"
for part in ("blobs", "refs"):
    (repo / part).mkdir(parents=True)


def downloaded(commit, model):
    """Write to the disk what a download of the newest commit leaves there."""
    folder = save_folder(repo / "snapshots" / commit, model)
    for file in folder.iterdir():
        blob = repo / "blobs" / hashlib.sha256(file.read_bytes()).hexdigest()
        file.replace(blob)
        file.symlink_to(os.path.relpath(blob, folder))
    (repo / "refs" / "main").write_text(commit)


# %% [markdown]
# There are two commits. In the second one, the author has tidied up and set the head's bias to zeros. **Predict.** Each commit has five files. How many different contents are kept for both commits together?

# %%
OLD, NEW = "0a" * 20, "1b" * 20  # a commit's name has 40 hexadecimal digits
tidied = load_minigpt()
tidied.lm_head.bias.zero_()
downloaded(OLD, gpt)
downloaded(NEW, tidied)
for path in sorted(path for path in repo.rglob("*") if not path.is_dir()):
    what = f"-> {os.readlink(path)}" if path.is_symlink() else f"{path.stat().st_size:,} bytes"
    line = f"{path.relative_to(repo)} {what}"
    print(re.sub(r"([0-9a-f]{4})[0-9a-f]{36,60}", r"\1…", line))

# %% [markdown]
# Six contents are kept. The config, the tokenizer and everything else that stayed the same are kept once, and the weights are kept twice. Nobody but you deletes anything there, so disks fill up (`hf cache ls` shows how much).
#
# The name now works as it does for any model of the hub. **Predict.** Which of the two models do you get with only the name? With the old commit? With its first seven digits, which git would understand?

# %%
prompt = other[0][0]  # one of the prompts where the bias made a difference
for how in ({}, {"revision": "main"}, {"revision": OLD}, {"revision": OLD[:7]}):
    try:
        said = say(
            AutoModelForCausalLM.from_pretrained("you/minigpt", cache_dir=HUB, **how), prompt
        )
    except OSError as error:
        said = f"OSError: {str(error).splitlines()[0]}"
    print(str(how).replace(OLD, "0a0a…"), said, sep="  ")

# %% [markdown]
# With only the name, you get the commit that is `main` now. No line of your notebook has changed, and yet it writes something different from last week. The friend's model is back, and this time even the report is empty. If the hub is on, the library asks at each load which commit is `main` now. With `HF_HUB_OFFLINE=1` or `local_files_only=True`, it uses the file in `refs`. But a **commit** can't change. If you publish a number, write `revision=` beside the name, with all forty digits. (A tag or a branch works as well, as long as its owner doesn't move it. The library doesn't read seven digits as a commit. It looks for a branch or a tag of that name, and offline that ends in an error about a connection.)
#
# Then the **dtype**. Today's weights are stored in 16 bits. **Predict.** If a folder is in bfloat16 and you set no dtype, which dtype does the model have? And does `dtype=torch.float32` bring back the digits that were rounded away?

# %%
half = Path(tempfile.mkdtemp()) / "half"
copy.deepcopy(one).to(torch.bfloat16).save_pretrained(half)
print(f"{(half / 'model.safetensors').stat().st_size:,} bytes of weights")
for how in ({}, {"dtype": torch.float32}):
    model = AutoModelForCausalLM.from_pretrained(half, **how)
    far = (model(tokens).logits.float() - gpt(tokens)).abs().max()
    print(f"{how!s:26}{model.dtype!s:15} logits off by {far:.3f}")

# %% [markdown]
# The model has the stored dtype, and it computes in that dtype, too. (Up to version 4, the library converted everything to float32. The argument was called `torch_dtype` then, and that name still works.) In float32 the weights are still the rounded ones, but later results are not rounded to 16 bits. If you compare two models, set the dtype. Otherwise the files decide.
#
# And the **code**. A new architecture is not in the library yet, so its authors put a file with their class beside the weights, and name the class in the config. **Predict.** What could a line in that file do, and when?

# %%
own = Path(tempfile.mkdtemp()) / "own"
own.mkdir()
auto_map = {"AutoConfig": "ours.Config", "AutoModelForCausalLM": "ours.Model"}
(own / "config.json").write_text(json.dumps({"model_type": "ours", "auto_map": auto_map}))
(own / "ours.py").write_text("print('whatever your account may do, I may')\n")
try:
    AutoModelForCausalLM.from_pretrained(own, trust_remote_code=False)
except ValueError as error:
    print(textwrap.fill(str(error).splitlines()[0].replace(str(own), "own"), 100))

# %% [markdown]
# It can do anything, and at once. To get the class, the library imports the file. An import runs every line, with your rights, before any weight is read. So the library refuses. If you don't set `trust_remote_code` at all, the library asks you, *y* or *N*, and fifteen seconds of silence mean no. `True` also allows the file that the owner puts there next week, unless you name a commit as well. And this is not only about new architectures. A folder may say `gpt2` *and* have a class in a file. Without `True`, the library then uses its own class. With `True`, it uses the folder's class. Don't copy that line from a forum.

# %% tags=["hide-input"]
choice(
    "Your notebook loads `you/minigpt`, with the hub on and `trust_remote_code=True`, and without other settings. Which of these may be different tomorrow, although you changed no line?",
    {
        "The weights": "They may, and so may the config, the tokenizer and the code.",
        "Weights, config, tokenizer and code": "All of it comes from `main` at the moment of loading. With `revision=` and a commit, none of it can change.",
        "None: it has been downloaded": "The cache keeps each commit, but a name alone means the newest `main`. The library downloads it if it isn't there.",
    },
    answer="Weights, config, tokenizer and code",
)

# %% [markdown]
# ## Eight bits, four bits
#
# Many models have `int8` or `4bit` at the end of their name. What does that mean? Their weights were rounded, or *quantized*. Each weight becomes a whole number, and a group of neighbouring weights shares a **scale**, the size of one step.

# %%
def quantize(weight, bits, group):
    """Codes from -top to top, (rows, groups, group) int8, and a scale for each group of a row."""
    top = 2 ** (bits - 1) - 1
    parts = weight.unflatten(1, (-1, group))
    scale = parts.abs().amax(-1, keepdim=True) / top
    return (parts / scale).round().to(torch.int8), scale


up = gpt.blocks[0].mlp.up.weight  # (256, 64)
codes, scale = quantize(up, 8, 64)
print("weights", up[0, :5].numpy().round(4), "  codes", codes[0, 0, :5].tolist())
off = ((codes * scale).flatten(1) - up).abs() / scale.flatten(1)
print(f"the first row's scale: {scale[0].item():.5f}; off by {off.max():.3f} of a step at most")

# %% [markdown]
# The largest weight of a row is 127 steps, and no weight is off by more than half a step. But how large is a step? **Predict.** We make one of the 16,384 weights twenty times as large as the largest. Four bits have 7 steps up and 7 steps down. What happens to the other weights if there is one scale for the whole matrix, for each row, or for each 32 weights of a row?

# %%
wild = up.clone()
wild[0, 0] = 20 * up.abs().max()
others = torch.ones_like(up, dtype=torch.bool)
others[0, 0] = False
for name, shape in (("one scale", (1, -1)), ("one a row", (256, 64)), ("one for 32", (512, 32))):
    rows = wild.reshape(shape)
    codes, scale = quantize(rows, 4, rows.shape[1])
    came = (codes * scale).reshape(256, 64)[others]
    print(f"{name:11} {(came == 0).float().mean():4.0%} of the others have become 0")

# %% [markdown] tags=["printed 14"]
# With a single scale, one wild weight turns all the others into 0. With a scale for each row, it destroys only its own row, and with groups only 31 neighbours. (About 14 in 100 are 0 in any case, because they are smaller than half a step.) Large models do have such weights, and above all such *activations*. That is why a quantized file is full of small scales.
#
# Four bits are half a byte, and no tensor has elements of half a byte. So two codes share one byte, and have to be separated again.

# %%
codes, scale = quantize(up, 4, 32)
low, high = (codes.flatten(1)[:, start::2] + 8 for start in (0, 1))  # 1 to 15
packed = low.to(torch.uint8) | high.to(torch.uint8) << 4
apart = torch.stack([packed & 15, packed >> 4], dim=-1).to(torch.int8).flatten(1) - 8
print(f"{up.nbytes:,} bytes; packed {packed.nbytes:,} and {scale.nbytes:,} of scales")
print("the same codes:", torch.equal(apart, codes.flatten(1)))

# %% [markdown]
# Now we round all linear layers of MiniGPT. Phase 03 had a budget for such changes: logits may be off by 10⁻⁵ of the largest logit in float32, and by 10⁻² in float16. **Predict.** Is the model in eight bits within the budget of float16? Is it in four bits? What happens to the loss, and to the 48 sentences from the beginning?

# %%
def rounded(bits, group=None):
    """MiniGPT with its linear layers' weights rounded, and the bytes that these would take."""
    model, size = load_minigpt(), 0
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            codes, scale = quantize(layer.weight, bits, group or layer.in_features)
            layer.weight.copy_((codes * scale).flatten(1))
            size += codes.numel() * bits // 8 + scale.nbytes
    return model, size


x, y = (part[:1000] for part in evaluation_lines())
linear = [layer.weight for layer in gpt.modules() if isinstance(layer, nn.Linear)]
print(f"float32: {sum(weight.nbytes for weight in linear):,} bytes")

# %%
want = gpt(x)
loss = F.cross_entropy(want.flatten(0, 1), y.flatten())
print(f"as it is: loss {loss:.3f}")
for name, how in (("8 bits, a scale a row", (8,)), ("4 bits, a scale a row", (4,)),
                  ("4 bits, a scale for 32", (4, 32))):  # fmt: skip
    model, size = rounded(*how)
    got = model(x)
    far = (got - want).abs().max() / want.abs().max()
    more = F.cross_entropy(got.flatten(0, 1), y.flatten()) - loss
    changed = sum(say(hf_model(model), prompt) != first for prompt, first, _ in both)
    print(
        f"{name:23}{size:8,} bytes  off by {far:.2%}  loss {more:+.4f}  {changed:2} sentences "
        "changed"
    )

# %% [markdown] tags=["printed 0.567"]
# In eight bits, the model is just within the budget of float16, takes a quarter of the bytes, and changes no sentence. In four bits, it is outside the budget by a factor of ten, and half of the sentences are different. And yet the loss of 0.567 changes by a hundredth or less. You know this from the beginning of the lesson: it is a good model, but a different one. If you ask "how much worse is it in four bits?" and look at the perplexity, the answer is "hardly". If you need *the same answers*, compare logits, and you will get another answer.
#
# The last question: what does this save? **Predict.** A layer keeps its weight in eight bits. In which dtype does it multiply?

# %%
from torch.utils._python_dispatch import TorchDispatchMode


class Eight(nn.Module):
    """A linear layer that stores its weight in eight bits."""

    def __init__(self, linear):
        super().__init__()
        codes, scale = quantize(linear.weight, 8, linear.in_features)
        self.register_buffer("codes", codes.flatten(1))
        self.register_buffer("scale", scale.flatten())
        self.register_buffer("bias", linear.bias.detach())

    def forward(self, x):
        return x @ self.codes.to(x.dtype).T * self.scale + self.bias


# %%
class Products(TorchDispatchMode):
    """Print the dtypes of each matrix product."""

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if "mm" in str(op):
            print(op, *(arg.dtype for arg in args))
        return op(*args, **(kwargs or {}))


some = torch.randn(5, 64, generator=torch.Generator().manual_seed(0))
with Products():
    eight = Eight(gpt.lm_head)(some)
print(f"off by {(eight - gpt.lm_head(some)).abs().max():.3f}")

# %% [markdown]
# It multiplies in float32. The codes are converted before each product, or during it if a kernel can do that, and no multiplication is saved. The gain is memory, and time to read memory. A model that writes word by word fetches each weight for a single multiplication (*What it costs*). With a quarter of the bytes, it waits a quarter of the time. To multiply whole numbers, the activations would have to be rounded as well, and they have the wild values.

# %% tags=["hide-input"]
number(
    "A model has 7 billion weights in four bits, with a scale of 16 bits for each 128 weights. How many GB (10⁹ bytes) is that?", 3.61,
    tolerance=0.02, unit="GB",
    why="Each weight takes 4 + 16/128 = 4.125 bits, and 4.125 · 7 · 10⁹ / 8 bytes are 3.61 GB. In 16 bits it was 14 GB.",
    wrong={3.5: "The scales are missing: an eighth of a bit for each weight.", 4.375: "That has a scale for every 16 weights, so each weight needs a whole bit more.", 28.875: "That is the number of bits, not of bytes."},
)

# %% [markdown]
# ## Ten lines of modeling_gpt2
#
# Here is the heart of the library's GPT-2, taken from the file that is installed on your machine: the function that `"eager"` chooses. (transformers, `models/gpt2/modeling_gpt2.py`, copyright 2018 The OpenAI Team Authors, the HuggingFace Inc. team and NVIDIA Corporation, Apache License 2.0; quoted, unchanged.)

# %%
from transformers.models.gpt2 import modeling_gpt2

print(inspect.getsource(modeling_gpt2.eager_attention_forward))

# %% [markdown]
# And ours:

# %%
print(textwrap.dedent("".join(inspect.getsource(Attention.forward).splitlines(True)[1:])))

# %% [markdown]
# Now you can read every line of both. Where do the two differ?
#
# | theirs | ours | why |
# |---|---|---|
# | The caller splits and joins the heads. | It does that itself. | So any attention function fits here: eager, fused, or yours. |
# | `scaling` may be passed in. | It is always d^−½. | Some models scale by the layer's number as well. |
# | The mask is *added*: 0, or the lowest number of the dtype. | −∞ in a `where` | See below. |
# | There is a cast after the softmax. | There is none. | In mixed precision the softmax is computed in float32, and the product needs 16 bits. |
# | There is dropout on the *shares*. | There is none. | In training, a word forgets some places that it looked at. The remaining shares are multiplied by 1/(1 − p), so they needn't sum to 1. |
# | It returns the shares, too. | It doesn't. | Then there is something to look at. |
#
# **Predict.** The lowest float32, −3.4 · 10³⁸, is added to *every* score of a row that sees nothing. The softmax alone gave NaN, and the fused kernel gave 0. What do we get here?

# %%
padded = torch.tensor([[0, 0, 1, 4]])
seen = torch.tensor([[0, 0, 1, 1]])
print(eager(padded, attention_mask=seen, output_attentions=True).attentions[0][0, 0])

# %% [markdown]
# It is a third answer. Beside 10³⁸ every score is rounded away, so all scores are equal. The row that may see nothing looks at everything, even the future, with a quarter for each place. It does no harm, because no place looks at that row. But if you compare two implementations on padded places, you will find a difference that isn't a mistake. So compare only places with words.

# %% [markdown]
# ## Where to change the model
#
# You want to try an idea. Where does it go?
#
# | idea | where |
# |---|---|
# | another width, depth, number of heads; another activation | the config |
# | another attention: a window, a bias | an attention function, registered by name |
# | fewer keys and values than queries | the attention class: `c_attn` gets narrower |
# | positions by rotation (RoPE) | in attention, on q and k; `wpe` goes |
# | a bias in the head | the class, in one line after `super().__init__` |
#
# Each change has to work with existing weights. **Predict.** We load the folder with one changed setting: half the width, a third layer, or eight heads in place of four. Which change raises an error? Which is in the report? And which goes unnoticed?

# %%
for change in ({"n_embd": 32}, {"n_layer": 3}, {"n_head": 8}):
    print(change, end=": ")
    try:
        model, report = AutoModelForCausalLM.from_pretrained(
            FOLDER, output_loading_info=True, **change
        )
    except RuntimeError:
        print("an error")
        continue
    far = (model(tokens).logits - gpt(tokens)).abs().max()
    print(f"{len(report['missing_keys'])} keys missing; logits off by {far:.2g}")

# %% [markdown]
# Another width fits nowhere. A third layer is filled with random numbers, and the report says so. Eight heads fit perfectly, because heads are a view, and no weight depends on their number. Only the logits show the change.
#
# In the table of ideas, the second row, another attention, is the most useful. The library has a list of attention functions, and you can add your own. So our attention can go into their model.

# %%
from transformers import AttentionInterface


def windowed(module, query, key, value, attention_mask, scaling=None, window=32, **_):
    """Attention over the last `window` places: (B, H, T, d) -> (B, T, H, d), and the shares."""
    places = torch.arange(key.shape[2])
    back_by = places[-query.shape[2] :, None] - places
    scores = torch.einsum("bhid,bhjd->bhij", query, key) * scaling
    shares = torch.where((back_by >= 0) & (back_by < window), scores, -math.inf).softmax(-1)
    return torch.einsum("bhij,bhjd->bihd", shares, value), shares


AttentionInterface.register("windowed", windowed)
one.set_attn_implementation("windowed")
far = (one(tokens).logits - gpt(tokens)).abs().max()
print(f"logits off by {far:.0e}:", say(one, "<bos> <es> hablar <past> yo"))

# %% [markdown]
# The model writes with the library's `generate` and the library's cache, but with our attention. (This works only without padding. The library doesn't know the new name, so it makes no mask, and `attention_mask` is None. Register a mask function as well, or don't pad.)
#
# **Predict.** Now the window gets narrow. The cues are at the beginning of each line. How small can the window be before MiniGPT gets worse?

# %%
from functools import partial

for window in (32, 12, 8, 6, 4, 2):
    AttentionInterface.register("windowed", partial(windowed, window=window))
    print(f"window {window:2}: perplexity {perplexity(one, 300):5.2f}")
one.set_attn_implementation("sdpa")

# %% [markdown]
# MiniGPT wasn't trained with a window, so it gets worse as soon as the tense is outside the window. A model that is trained with a window learns to pass information on from layer to layer.
#
# And which part does the model *not* need? Take one head after another and erase its effect: set the 16 columns of the output layer that read it to 0. **Predict.** Are there heads that the model doesn't miss? In which layer?

# %%
print(f"whole: {perplexity(gpt, 300):.3f}")
for layer in range(2):
    found = []
    for head in range(4):
        pruned = copy.deepcopy(gpt)
        pruned.blocks[layer].attention.output.weight[:, 16 * head : 16 * head + 16] = 0
        found.append(f"{perplexity(pruned, 300):.3f}")
    print(f"layer {layer + 1}, without head 1 to 4:", *found)

# %% [markdown]
# The model needs all heads of the first layer. It needs hardly any head of the second layer, although their maps were as sharp as those of the first. A picture of attention shows where a head looks. To learn what the head is worth, remove it.
#
# One last change, which you need in the lab. Four query heads can share two heads of keys and values. Which query heads belong together? **Predict** it for torch's own grouped attention: do heads 0 and 1 share the first key head, or do heads 0 and 2?

# %%
torch.manual_seed(0)
asks, (keys, values) = torch.randn(1, 4, 3, 8), torch.randn(2, 1, 2, 3, 8)
shared = F.scaled_dot_product_attention(asks, keys, values, enable_gqa=True)
for name, order in (("0 and 1 share", [0, 0, 1, 1]), ("0 and 2 share", [0, 1, 0, 1])):
    spread = F.scaled_dot_product_attention(asks, keys[:, order], values[:, order])
    print(f"{name}: off by {(shared - spread).abs().max():.0e}")

# %% [markdown]
# Neighbours share. You can prove any such change in this way: repeat the shared heads, and full attention must give the same result.

# %% tags=["hide-input"]
choice(
    "You replace GELU's tanh form (`gelu_new`) by the exact one (`gelu`) in the config. What do you see on loading?",
    {
        "An error: the weights were trained with another": "Activations have no weights, so nothing in the file shows it.",
        "Nothing, and logits that are off by a little": "Names, shapes and the report stay the same, and the two curves differ by less than 0.001. A comparison of logits with a tight bound finds such a change. A look at some sentences doesn't.",
        "Nothing, and exactly equal logits": "The tanh form is an approximation of the exact one. It is close, but not equal.",
    },
    answer="Nothing, and logits that are off by a little",
)

# %% [markdown]
# ## What a block looks like today
#
# Fewer keys, and positions by rotation: most open models have these two ideas of the table by now, with another norm and another MLP. This block is named after Llama, which made it common in 2023. Here is a Llama of MiniGPT's size, with random weights. **Predict.** Which of its tensors hold positions? And how many biases does it have?

# %%
from transformers import LlamaConfig, LlamaForCausalLM

settings = LlamaConfig(
    vocab_size=600, hidden_size=64, intermediate_size=176, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2,
)  # fmt: skip
llama = LlamaForCausalLM(settings).eval()
for name, tensor in llama.state_dict().items():
    if "layers.1" not in name:
        print(f"{name:48} {tuple(tensor.shape)}")

# %% [markdown]
# There is no tensor for positions, and not a single bias. Keys and values have two heads, and queries have four (*grouped-query attention*). A norm has only a weight. The MLP has three maps. Let us go through what is new.
#
# ### Positions by rotation
#
# MiniGPT learned a vector for each of 32 positions, and has none for a 33rd. *RoPE*, rotary position embedding, learns nothing. It takes the 16 channels of a head as 8 pairs. In a query or a key, each pair is a hand on a clock, and turns by an angle for each step of position. The first pair moves by one radian a step, 57 degrees. Each further pair is slower by the same factor.
#
# We take a query and a key from MiniGPT's words, before a position is added, and let the library rotate them. **Predict.** The query is at position 7, and the key at position 4. What happens to their score if both words move on by 300 positions?

# %%
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

plain = first.norm_1(gpt.token_embedding(tokens))[0]  # words without positions
q, k = first.attention.query(plain[-1])[:16], first.attention.key(plain[2])[:16]


def score(q, k, i, j):
    """The dot product of a query at position i and a key at position j."""
    cos, sin = llama.model.rotary_emb(q, torch.tensor([[i, j]]))  # (1, 2, 16) each
    both = torch.stack([q, k])[None, None]  # (1, 1, 2, 16)
    turned, _ = apply_rotary_pos_emb(both, both, cos, sin)
    return (turned[0, 0, 0] @ turned[0, 0, 1]).item()


for i, j in ((7, 4), (307, 304), (7, 7), (7, 1)):
    print(f"query at {i:3}, key at {j:3}: {score(q, k, i, j):.3f}")

# %%
from utils.views import rotated_pairs

rotated_pairs(q, k, 10000.0, position=7, distance=3)

# %% [markdown]
# Nothing happens. Both hands of each clock turn by the same angle, so the angle between them stays. The dot product depends only on lengths and on these angles, that is, on the *distance* i - j. If your kernel is running, move `position`, and then `distance`: the fast pairs tell near words apart, and the slow pairs tell far words apart.
#
# Values are not rotated: a position says where to look, and not what is there. And a cache has keys that are rotated already. So the next word must get its own position, not 0.
#
# There are two traps. The first one is the order. The library takes channels c and c + d/2 as a pair, but the paper takes neighbours, 2c and 2c + 1. **Predict.** We bring the channels of q and k into the other order, both in the same way. Which scores stay the same?

# %%
order = torch.arange(16).view(2, 8).T.flatten()  # 0, 8, 1, 9, ...
print("not rotated:", *(f"{a @ b:.3f}" for a, b in ((q, k), (q[order], k[order]))))
for i, j in ((7, 7), (7, 4)):
    found = score(q, k, i, j), score(q[order], k[order], i, j)
    print(f"at {i} and {j}:", *(f"{one:.3f}" for one in found))
print("position 257 in bfloat16:", torch.tensor(257).bfloat16().item())

# %% [markdown]
# At distance 0, the scores are equal, and everywhere else they are not. Meta's own files have neighbours, so the script that converts them exchanges rows of `q_proj` and `k_proj`. If it is forgotten, names and shapes fit. The second trap is in the last line: angles must be computed in float32, even in a model of 16 bits.
#
# ### A norm without a mean
#
# *RMSNorm* divides a vector by the root of its mean square, and multiplies by a weight. It takes no mean away, and adds no bias. **Predict.** We add 5 to all channels of x. What does this change after a LayerNorm, and after an RMSNorm?

# %%
norms = {"LayerNorm": nn.LayerNorm(64), "RMSNorm": llama.model.norm}
for name, norm in norms.items():
    print(f"{name:9} moved by {(norm(plain + 5) - norm(plain)).abs().max():.4f}")
large = torch.full((64,), 300.0).half()
print("mean square in float16:", large.square().mean().item())
print("RMSNorm of the library:", llama.model.norm(large)[0].item())

# %% [markdown]
# LayerNorm can't see such a shift, but RMSNorm can. It also costs one sum less. The last line shows why the library computes it in float32 and then goes back to the dtype of x.
#
# ### A gate
#
# *SwiGLU* replaces `down(gelu(up(x)))` by `down(silu(gate(x)) * up(x))`, with silu(z) = z · sigmoid(z). One map decides, channel by channel, how much of another map passes. That is a third matrix. So that the MLP keeps its size, it is narrower: about 8/3 of D in place of 4 D.

# %% tags=["hide-input"]
number(
    "An MLP of the old form has D = 768 and a hidden width of 4 · 768 = 3072, without biases. How wide is a SwiGLU's hidden layer with the same number of weights?", 2048,
    why="2 · 768 · 3072 weights, shared out to three matrices: 3 · 768 · 2048. In general the width is 8/3 of D.",
    wrong={3072: "Then there are three matrices of the old size, half as many weights again.", 1024: "That would be a third of the old width. Two thirds are enough, because there were two matrices before.", 1536: "That is half the old width, so there are three quarters of the weights."},
)

# %% [markdown]
# In the lab you write all of this, without the library's model, and read a Llama's folder with equal logits.

# %% [markdown]
# ## A new tense, and what it cost
#
# There is a second, smaller MiniGPT. It is half as wide, and has only one layer. It was trained like the first, but on a corpus without any sentence in the Spanish imperfect (*yo hablaba*). It knows the words from lists of forms. But it has never seen a sentence with `<imperfect>`.

# %%
from utils.minigpt import WITHOUT_IMPERFECT, imperfect_lines, training_lines
from utils.minigpt.evaluate import right_by_tense


def report_card(name, model):
    """Print the share of right verbs in each Spanish tense, over all verbs and persons."""
    right = right_by_tense(model.eval(), tokenizer)["es"]
    print(f"{name:15}", *(f"{tense} {share:4.0%}  " for tense, share in right.items()))


small = load_minigpt(WITHOUT_IMPERFECT)
report_card("before", small)
print("<imperfect>:", generate("yo", verb="hablar", tense="imperfect", model=small))

# %% [markdown]
# Now it should learn the missing tense. There are a few hundred lines in that tense, and the loop is the one from [phase 07](07_training.ipynb#cell-id=the-five-lines). We show the model only the new lines, because it knows the others already.

# %%
from utils.notebook.progress_bar import progress_bar

torch.set_grad_enabled(True)
inputs, targets = training_lines()
is_new = imperfect_lines(inputs)
new_x, new_y = inputs[is_new], targets[is_new]
print(f"{len(new_x)} of {len(inputs):,} lines")


# %%
def learn(lr, steps=100, only="", name="training"):
    """The small model, after training parameters with `only` in their name on the new lines."""
    torch.manual_seed(0)
    model = load_minigpt(WITHOUT_IMPERFECT)
    chosen = [p for key, p in model.named_parameters() if only in key]
    optimizer = torch.optim.AdamW(chosen, lr=lr)
    for _ in progress_bar(range(steps), name):
        rows = torch.randint(len(new_x), (64,))
        loss = F.cross_entropy(model(new_x[rows]).flatten(0, 1), new_y[rows].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"last loss {loss.item():.2f}")
    return model


# %% [markdown]
# **Predict.** We train for 100 steps at the rate with which the model was first trained, 3e-3. Will it know the imperfect? And will it still know the other five tenses, which these lines don't have?

# %%
tuned = learn(3e-3)
report_card("new lines alone", tuned)
for tense in ("imperfect", "past", "future"):
    print(f"{tense:10}", generate("yo", verb="hablar", tense=tense, model=tuned))

# %% [markdown]
# It knows the imperfect, and nothing else. Look at what it says when the cue is the past. It hasn't *mixed up* the tenses. It has learnt that the answer is always the imperfect, and that was true in every line for 100 steps. No line showed that the cue matters. And the loss looks like success.
#
# This is called **catastrophic forgetting**, and the name is fair: the loss that you watch falls, but everything that you don't watch is lost.
#
# **Predict.** There are three ways to be more careful. We can use a tenth of the learning rate. We can train only the head, so the rest keeps what it knows. Or we can train only the MLP. Which way keeps the old tenses?

# %%
careful = {
    "lr 3e-4": (3e-4, ""),
    "the head alone": (3e-3, "lm_head"),
    "the MLP alone": (3e-3, "mlp"),
}
for name, (lr, only) in careful.items():
    report_card(name, learn(lr, only=only, name=name))

# %% [markdown]
# No way both learns the new tense and keeps the old ones. A low rate does the same more slowly: the model loses less, and learns less. Training only the head sounds careful, but it isn't. A head can say the imperfect more often without understanding anything.
#
# The training doesn't need caution. It needs **contrast**. As long as all lines say the same, "always" is the simplest explanation. Lines of the old tenses in each batch make that explanation wrong. They also show directly what to keep. This is called *rehearsal*, or replay, and it is the simplest remedy. How many old lines do you need, at which rate, and for how long? You find out in the lab, with two bounds: one for the tense that the model must learn, and one for everything that it must keep.
#
# And watch both figures. If you watch only the loss on the new data, you can't see the damage.

# %% tags=["hide-input"]
choice(
    "You have the new lines and the model, but none of the old training data. What still knows what to keep?",
    {
        "Nothing": "The old model itself knows it. You only have to ask it.",
        "The old model: let it write lines, or keep the new model's probabilities near its own on other prompts": "Both are used. The first is rehearsal on lines that the model writes itself. The second is a penalty on the distance between two distributions, and most recipes that train models on preferences have it.",
        "Weight decay": "It pulls all weights towards 0, and not towards their old values.",
    },
    answer="The old model: let it write lines, or keep the new model's probabilities near its own on other prompts",
)

# %% [markdown]
# ## Fewer numbers to train, fewer bits to store
#
# Ten tenses, ten fine-tuned models: each one is a whole model again. And while it is trained, every weight has a gradient and two more numbers in AdamW. But a new version differs from the old one only by W′ − W. How much is in that difference?
#
# We train once more, with old lines in each batch, and take the singular values of each difference. They say how many directions a matrix has, and how strong each one is.

# %%
old_x, old_y = inputs[~is_new], targets[~is_new]


def rehearse(model, lr, steps=100):
    """Train what requires a gradient, on as many old lines as new ones."""
    torch.manual_seed(0)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr)
    for _ in progress_bar(range(steps), "training"):
        new, old = (torch.randint(len(lines), (32,)) for lines in (new_x, old_x))
        x, y = torch.cat([new_x[new], old_x[old]]), torch.cat([new_y[new], old_y[old]])
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


# %%
@torch.no_grad()
def score(name, model):
    """Print the perplexity on unseen lines of the new tense and of everything else."""
    x, y = (part[:1000] for part in evaluation_lines())
    for what, rows in (("new", imperfect_lines(x)), ("old", ~imperfect_lines(x))):
        loss = F.cross_entropy(model(x[rows]).flatten(0, 1), y[rows].flatten())
        name += f"   {what} {loss.exp():7.2f}"
    print(name)


score("before     ", small)
whole = rehearse(load_minigpt(WITHOUT_IMPERFECT), 3e-3)
score("all numbers", whole)

# %% [markdown]
# **Predict.** The query's weight is 32 by 32, so it has 32 singular values. Which share of the sum of squares do the largest four have, in the weight and in its change?

# %%
for name in ("blocks.0.attention.query", "blocks.0.mlp.down", "lm_head"):
    first, last = (model.get_submodule(name).weight.detach() for model in (small, whole))
    shares = []
    for matrix in (first, last - first):
        squares = torch.linalg.svdvals(matrix).square()
        shares.append(f"{squares[:4].sum() / squares.sum():.0%}")
    print(f"{name:25} the weight {shares[0]}   its change {shares[1]}")

# %% [markdown]
# The change has fewer strong directions than the weight. **LoRA** (low-rank adaptation) makes a rule of that: the change may have only *r* directions. The weight W, (out, in), stays as it is. Beside it are B, (out, r), and A, (r, in), and only these two are trained. The layer computes x·Wᵀ + α/r · x·Aᵀ·Bᵀ. (With the factor α/r, a learning rate that suits one rank suits others as well.)
#
# **Predict.** A new layer should compute what the old one did, so B·A must begin at 0. Which of the two may be zeros: A, B or both? Look at the first gradients.

# %%
x, w = torch.randn(8, 32), small.lm_head.weight.detach()
for start_a, start_b in ((0, 0), (1, 0), (0, 1)):
    a = (start_a * torch.randn(4, 32)).requires_grad_()
    b = (start_b * torch.randn(600, 4)).requires_grad_()
    (x @ w.T + x @ a.T @ b.T).square().sum().backward()
    kinds = ["random" if start else "zeros" for start in (start_a, start_b)]
    norms = f"gradient of A {a.grad.norm():6.0f}, of B {b.grad.norm():6.0f}"
    print(f"A {kinds[0]:7} B {kinds[1]:7} {norms}")

# %% [markdown]
# Each gradient has the other matrix as a factor. With two zeros nothing ever moves. With one random matrix, the other moves first. By custom A is random and B is zeros.


# %%
class LoRA(nn.Module):
    """A frozen linear layer, and a change of few directions."""

    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base, alpha / rank
        self.A = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(rank))
        self.B = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.A), self.B)

# %%
def adapted(model, head=True):
    """The model, frozen, with an adapter of rank 4 around each linear layer."""
    for p in model.parameters():
        p.requires_grad = False
    layers = [(one, *child) for one in model.modules() for child in one.named_children()]
    for above, name, layer in layers:
        if isinstance(layer, nn.Linear) and (head or name != "lm_head"):
            setattr(above, name, LoRA(layer, 4, 8))
    return model


# %% [markdown]
# **Predict.** Recipes often adapt only the layers inside the blocks. Is that enough for a tense that the model has never written?

# %%
for name, head in (("blocks alone   ", False), ("and the head   ", True)):
    lora = rehearse(adapted(load_minigpt(WITHOUT_IMPERFECT), head), 1e-2)
    score(name, lora)
    trained = [p for p in lora.parameters() if p.requires_grad]
    count = sum(p.numel() for p in trained)
    print(f"   trained: {count:,} of {sum(p.numel() for p in lora.parameters()):,} numbers")

# %% [markdown] tags=["printed 4.75", "printed 2.25"]
# It isn't: 4.75 against 2.25. Where the adapters are matters as much as their rank. The head has never had to choose these words, and the layers below it can't make up for that. With the head, a twelfth of the numbers does what all of them did. (In a layer of 4,096 by 4,096, rank 4 is one number in 512.) Only these numbers have gradients and AdamW's state, and a friend who has the model needs only these numbers.
#
# After the training, B·A can be added to W: *merged*, the layer costs no more than before. **Predict.** We add a change to a weight and subtract it again. Do we get the same bits?

# %%
layer = lora.blocks[0].mlp.up
weight, change = layer.base.weight, (layer.scale * layer.B @ layer.A).detach()
back = weight + change - change
print(f"other bits: {(back != weight).float().mean():.0%} of the weights, "
      f"by at most {(back - weight).abs().max():.0e}")  # fmt: skip

# %% [markdown]
# Each sum is rounded. If you need the base's bits again, keep its file.
#
# The base is never trained, so it need not be exact either. Can it have four bits? `quantize` from *Eight bits, four bits* gave codes and scales, but the model got rounded floats. [Phase 04](04_dispatcher.ipynb#cell-id=tensors-that-answer) had a better place for codes: a tensor subclass. The layer keeps its code, and its weight knows how to be multiplied.


# %%
def pack(weight):
    """Two codes in a byte, and a scale for each 32 columns."""
    codes, scale = quantize(weight.detach(), 4, 32)
    low, high = (codes.flatten(1)[:, start::2] + 8 for start in (0, 1))
    return low.to(torch.uint8) | high.to(torch.uint8) << 4, scale


def unpack(pairs, scale):
    codes = torch.stack([pairs & 15, pairs >> 4], dim=-1).flatten(1)
    return ((codes.float() - 8).unflatten(1, (-1, 32)) * scale).flatten(1)


# %%
class FourBit(torch.Tensor):
    @staticmethod
    def __new__(cls, pairs, scale):
        return torch.Tensor._make_wrapper_subclass(cls, (len(pairs), 2 * pairs.shape[1]))

    def __init__(self, pairs, scale):
        self.pairs, self.scale = pairs, scale

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is F.linear:
            x, weight, bias = args
            return F.linear(x, unpack(weight.pairs, weight.scale), bias)
        return super().__torch_function__(func, types, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.detach.default:  # nn.Parameter calls it
            return cls(args[0].pairs, args[0].scale)
        raise NotImplementedError(func)


# %% [markdown]
# `__torch_function__` hears `F.linear` before it is split into parts. `nn.Parameter` calls `detach`, which arrives below. Every other operator would read numbers that aren't there, so it is refused.

# %%
four = load_minigpt(WITHOUT_IMPERFECT)
for layer in four.modules():
    if isinstance(layer, nn.Linear):
        layer.weight = nn.Parameter(FourBit(*pack(layer.weight)), requires_grad=False)
weight = four.blocks[0].mlp.up.weight
print(f"it claims {weight.nbytes:,} bytes and has {weight.pairs.nbytes + weight.scale.nbytes:,}")

# %% [markdown]
# **Predict.** An adapter around such a layer needs the gradient of x, and that is g·W. Which tensor does autograd keep for it?

# %%
kept = []
with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
    four.blocks[0].mlp.up(torch.randn(5, 32, requires_grad=True))
for one in kept:
    print(type(one).__name__, tuple(one.shape), one.dtype, f"{one.nbytes:,} bytes")

# %% [markdown]
# It keeps the unpacked weight, until the backward. In a deep model, the whole base is in memory in float32 just before the backward, and nothing is saved. The remedy is a `torch.autograd.Function` that keeps the *packed* weight and unpacks it again. You write it in the lab. For MiniGPT we can afford the copies. A base in four bits with adapters in floats is called **QLoRA**:

# %%
qlora = rehearse(adapted(four), 1e-2)
score("four bits and LoRA", qlora)
parts = {"base, four bits": 0, "base, float32": 0, "A and B": 0}
for p in qlora.parameters():
    if p.requires_grad:
        parts["A and B"] += p.nbytes
    elif isinstance(p, FourBit):
        parts["base, four bits"] += p.pairs.nbytes + p.scale.nbytes
    else:
        parts["base, float32"] += p.nbytes
parts |= {"gradients": parts["A and B"], "optimizer state": 2 * parts["A and B"]}
every = sum(p.numel() for p in small.parameters())
print(f"all numbers, in float32 with gradients and state: {16 * every / 1024:.0f} KiB")

# %%
from utils.views import memory_bars

memory_bars(parts)

# %% [markdown]
# Embeddings and norms stay in float32 here. They are half of this small model, and a small part of a large one.

# %% tags=["hide-input"]
number(
    "A linear layer is 4,096 by 4,096. How many numbers does a LoRA of rank 8 train?", 65_536,
    tolerance=0,
    why="A is 8 by 4,096 and B is 4,096 by 8: 2 · 8 · 4,096. That is one number in 256.",
    wrong={32_768: "That is one of the two matrices.", 16_777_216: "That is the product B·A. It has as many numbers as the weight, and it is never trained or stored."},
)

# %% [markdown]
# ## The Trainer, once
#
# *This section is optional: the lab doesn't ask for it.* The library also has the loop that you wrote in phase 07. One call runs it, for each of the library's models. The call takes a dataset of dicts. Their keys are parameters of the model's `forward`, and the labels in them are *not* moved.

# %%
from transformers import Trainer, TrainingArguments

labels = torch.full_like(new_y, -100)
labels[:, 1:] = new_y[:, :-1]  # back at their own places
rows = [{"input_ids": x, "labels": y} for x, y in zip(new_x, labels)]
settings = TrainingArguments(
    output_dir=tempfile.mkdtemp(), max_steps=20, per_device_train_batch_size=32, learning_rate=1e-3,
    logging_steps=5, use_cpu=True, report_to="none", disable_tqdm=True, save_strategy="no",
    dataloader_pin_memory=False,
)  # fmt: skip
trainer = Trainer(model=hf_model(small), args=settings, train_dataset=rows)

# %% [markdown]
# **Predict.** We have set the number of steps, the batch size, the rate and the device. Which of these does the Trainer do by default: a warm-up, a schedule, clipping, weight decay, shuffling, checkpoints?

# %%
import contextlib

with contextlib.redirect_stdout(io.StringIO()):  # it prints its log as well
    trainer.train()
for entry in trainer.state.log_history[:-1]:
    print(*(f"{key} {entry[key]:<8.4g}" for key in ("step", "loss", "grad_norm", "learning_rate")))
defaults = TrainingArguments(tempfile.mkdtemp())
for field in ("lr_scheduler_type", "warmup_steps", "max_grad_norm", "weight_decay", "optim",
              "seed", "save_steps"):  # fmt: skip
    print(f"{field:18}{getattr(defaults, field)}")

# %% [markdown]
# The rate falls linearly to 0, without a warm-up. The gradient is clipped at 1, and its norm before clipping is logged. The optimizer is AdamW in its fused version, without weight decay. The lines are shuffled with seed 42. Unless you change it, a checkpoint is written every 500 steps, with the optimizer, the schedule and the random generators. Everything that phase 07 was about is decided for you, and most of it is decided well. But it *is* decided. Before you compare two runs, print the arguments of both, all hundred and more.
#
# There is one more trap. **Predict.** The targets are called `targets`, as in your own loop, and not `labels`. What happens to them?

# %%
renamed = [{"input_ids": x, "targets": y} for x, y in zip(new_x, labels)]
attempt(lambda: Trainer(model=hf_model(small), args=settings, train_dataset=renamed).train())

# %% [markdown]
# If `forward` has no parameter of an entry's name, the entry is silently left out. You get an error only if `forward` needs that entry. Here it needs the labels, so there is an error. A mask with a wrong name would be left out too, and there would be no error.
#
# So is this the loop of phase 07? One thing is missing: a line that calls `report_card`. No `Trainer` can know what you want to keep.
# %% [markdown]
# ## What you can now do
#
# [The lab](../release/08_transformer/08_transformer.ipynb) of this phase asks you to do it:
#
# - make a mask for any queries over any keys, with padding and a window;
# - write multi-head attention in at most fifty lines, equal to torch's own in values and gradients, even if a row sees nothing;
# - continue from a cache, by any number of words at once;
# - pick words by temperature, k, p and given uniform numbers;
# - continue prompts of unequal length, in one batch;
# - compute FLOPs and bytes before anything runs;
# - convert weights from Hugging Face's form, and load a folder so that nothing is silently left out;
# - let the library continue a batch of prompts, with anybody's folder, and see where each prompt's last token looks;
# - change the architecture, and prove that the change is what you say;
# - teach the model a new tense, and keep the old ones;
# - rotate queries and keys to their positions, and read a Llama's folder into a module of your own;
# - train a few numbers beside a frozen model, and merge them into it;
# - write a tensor whose numbers have four bits, as the weight of a layer that knows nothing of it;
# - explain the lines of your own attention, in words.
#
# And you can answer the question. The model that `AutoModelForCausalLM` made is MiniGPT. The other model has no bias in its head. A loader compares names and shapes, and reports what it left out if you ask for the report. Only equal logits show that the numbers mean the same.

# %% [markdown]
# ## What this phase leaves out
#
# - **Fused attention from inside** (FlashAttention): it makes the T × T table in tiles that never leave the chip, with the running softmax of [phase 05](05_custom_op.ipynb#cell-id=one-pass-or-three). You write it in [phase 11](11_tiles.ipynb#cell-id=attention-without-the-matrix).
# - **Mixtures of experts**: several MLPs, and a map that chooses a few of them for each word.
# - **RoPE for longer texts**: a model is trained for a length, and later its angles are made smaller (`rope_type` in the config).
# - **Subword tokenizers**: how byte-pair encoding is learnt.
# - **Beam search, speculative decoding, paged caches**: they belong to serving, which is a separate field.
# - **How four bits are chosen well**: GPTQ and similar methods round one weight after another, and change the remaining weights to make up for it. There are also kernels that unpack weights while they multiply.
# - **Other adapters**: DoRA, prefixes and soft prompts also train a few new numbers beside a frozen model.
# - **Where the time goes** when all this runs: that is [phase 09](09_profiling.ipynb#cell-id=total-and-self).

# %% [markdown]
# ## Sources
#
# - A. Vaswani et al., "[Attention Is All You Need](https://arxiv.org/abs/1706.03762)", NeurIPS 2017. A. Radford et al., "[Language Models are Unsupervised Multitask Learners](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf)", 2019: GPT-2.
# - "[The Annotated Transformer](https://nlp.seas.harvard.edu/annotated-transformer/)", by A. Huang and others after A. Rush: that first paper, with its code line by line. Hugging Face's "[LLM Course](https://huggingface.co/learn/llm-course)": the library from its users' side.
# - N. Shazeer, "[Fast Transformer Decoding: One Write-Head is All You Need](https://arxiv.org/abs/1911.02150)", 2019; J. Ainslie et al., "[GQA](https://arxiv.org/abs/2305.13245)", EMNLP 2023: keys and values shared by heads.
# - T. Dao et al., "[FlashAttention](https://arxiv.org/abs/2205.14135)", NeurIPS 2022. A. Q. Jiang et al., "[Mistral 7B](https://arxiv.org/abs/2310.06825)", 2023: the window. G. Xiao et al., "[Efficient Streaming Language Models with Attention Sinks](https://arxiv.org/abs/2309.17453)", ICLR 2024.
# - J. Su et al., "[RoFormer](https://arxiv.org/abs/2104.09864)", 2021: RoPE. B. Zhang, R. Sennrich, "[Root Mean Square Layer Normalization](https://arxiv.org/abs/1910.07467)", NeurIPS 2019. N. Shazeer, "[GLU Variants Improve Transformer](https://arxiv.org/abs/2002.05202)", 2020: SwiGLU. H. Touvron et al., "[LLaMA](https://arxiv.org/abs/2302.13971)", 2023: all three in one block.
# - A. Holtzman et al., "[The Curious Case of Neural Text Degeneration](https://arxiv.org/abs/1904.09751)", ICLR 2020: top p. A. Fan, M. Lewis, Y. Dauphin, "[Hierarchical Neural Story Generation](https://arxiv.org/abs/1805.04833)", ACL 2018: top k.
# - P. Michel, O. Levy, G. Neubig, "[Are Sixteen Heads Really Better than One?](https://arxiv.org/abs/1905.10650)", NeurIPS 2019; S. Jain, B. C. Wallace, "[Attention is not Explanation](https://arxiv.org/abs/1902.10186)", NAACL 2019.
# - T. Dettmers et al., "[LLM.int8()](https://arxiv.org/abs/2208.07339)", NeurIPS 2022: wild activations; E. Frantar et al., "[GPTQ](https://arxiv.org/abs/2210.17323)", ICLR 2023.
# - E. J. Hu et al., "[LoRA](https://arxiv.org/abs/2106.09685)", ICLR 2022; T. Dettmers et al., "[QLoRA](https://arxiv.org/abs/2305.14314)", NeurIPS 2023: adapters around a base in four bits. PyTorch's [torchao](https://github.com/pytorch/ao): quantized weights as tensor subclasses.
# - M. McCloskey, N. J. Cohen, "[Catastrophic Interference in Connectionist Networks](https://doi.org/10.1016/S0079-7421%2808%2960536-8)", 1989.
# - H. Touvron et al., "[Llama 2](https://arxiv.org/abs/2307.09288)", 2023, and A. Dubey et al., "[The Llama 3 Herd of Models](https://arxiv.org/abs/2407.21783)", 2024: the sizes in *What it costs*.
# - transformers' documentation: "[Attention backends](https://huggingface.co/docs/transformers/attention_interface)", "[Generation strategies](https://huggingface.co/docs/transformers/generation_strategies)", "[Caching](https://huggingface.co/docs/transformers/cache_explanation)"; [its source](https://github.com/huggingface/transformers), Apache-2.0. huggingface_hub's: "[Understand caching](https://huggingface.co/docs/huggingface_hub/guides/manage-cache)". PyTorch's: [`torch.nn.functional.scaled_dot_product_attention`](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html).
