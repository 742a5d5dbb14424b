# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Transformers and Hugging Face"}
# ---

# %% [markdown]
# # Transformers and Hugging Face
#
# Attention is one line of algebra: each word asks, every earlier word answers, and the answers are averaged. What takes a career is everything around the line: which places may be asked, what is kept from the last word, who picks the next one, and what becomes of all this when somebody else's library loads your weights.
#
# It takes about three hours, predictions and drills included, in two sittings. The first is attention itself, up to the choice of the next word, and ends at *A resting place*; the second is what one does with a trained model, and what another library does. You need [phase 01](01_tensors.ipynb#cell-id=who-shares-bytes-with-whom)'s views, [phase 03](03_module.ipynb#cell-id=a-tree-and-walks-through-it)'s modules and [phase 07](07_training.ipynb#cell-id=the-five-lines)'s five lines. Where a paragraph begins with **Predict**, settle on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.
#
# Nothing here asks a network. Hugging Face's library is used for what it does with a folder on your disk.

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
# Up to now MiniGPT was a network that happened to be there. Its head you know from [phase 01](01_tensors.ipynb#cell-id=counting-flops-and-bytes), its modules from [phase 03](03_module.ipynb#cell-id=a-port-function-by-function), its training from [phase 07](07_training.ipynb#cell-id=minigpt-from-nothing). What is left is its heart, and the way out into the world.

# %% [markdown]
# ## Resumen en español
#
# La atención es una media ponderada: cada palabra pregunta (*query*), las anteriores ofrecen una etiqueta (*key*) y un contenido (*value*), y el softmax reparte. Las cabezas son una vista del mismo tensor; la máscara decide quién puede mirar a quién.
# Como nadie mira hacia delante, las claves y los valores ya calculados no cambian: se guardan (*KV cache*) y cada palabra nueva cuesta una palabra, no todas.
# Elegir la palabra siguiente es otra cosa: temperatura, top-k, top-p y un número al azar. En un lote, las frases cortas se rellenan por la izquierda y las posiciones se cuentan desde la primera palabra de verdad.
# Con Hugging Face la misma carpeta puede cargarse con dos clases, sin error, y dar dos modelos. Hay que preguntar qué se quedó fuera y comparar los logits. Un modelo del hub cambia cuando su autor quiere: se fija con `revision` y un *commit*; también importan el `dtype` y no ejecutar código ajeno. En ocho bits MiniGPT dice lo mismo; en cuatro es bueno todavía, pero es otro.
# Afinar con un tiempo verbal nuevo enseña ese tiempo y borra los demás, si nadie se los recuerda.

# %% [markdown]
# ## The question
#
# MiniGPT has been written into a folder, in the form that Hugging Face's `transformers` reads. You get the folder and do what everybody does: load the tokenizer, load the model, be rid of the noise.

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
# A friend, who has read that MiniGPT is built like GPT-2, wrote the second line with GPT-2's own class. Both lines loaded 179,544 numbers or so from one file. Neither raised anything.

# %%
for name, model in (("one", one), ("two", two)):
    print(f"{name}: {say(model, '<bos> <es> hablar <past> yo')}")

# %% [markdown]
# **Predict.** Is it the same model twice? Which check would you trust: a sentence, a hundred sentences, the perplexity?

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
# The perplexity differs by less than three parts in a thousand; another seed in training makes more of a difference. Every verb is right in both. Yet in four sentences of ten they say something else, and once you compare the endings you see a taste: the second one has gone off *hoy* and *cada día*. It is not MiniGPT. It is a good model with another head, and no test that asks whether the model is good will ever find it.
#
# > **The same folder, loaded by two classes, and not an error from either. Which of the two is MiniGPT, and who should have told you?**
#
# To answer we have to know the model well enough to say what a loader may leave out. So we build it first.

# %% [markdown]
# ## One head
#
# Take a sentence of your own: change the subject, the verb or the tense, and everything below goes with it.

# %%
who = "yo"
_, looks = generate(who, verb="hablar", tense="past", return_attention=True)
words = list(looks.words)
tokenizer, gpt = load_tokenizer(), load_minigpt()
tokens = torch.tensor([tokenizer.encode(words)])
print(" ".join(words))

# %% [markdown]
# Inside MiniGPT each word is 64 numbers. What a word *means* here depends on others: whether the next word is *hablé* or *habló* hangs on a subject, a verb and a tense that stand at other places. A linear layer sees one place at a time, and can't know. Something has to carry things from place to place, and attention is the only part of a transformer that does.
#
# Each place makes three vectors out of its 64 numbers, each by a linear map of its own. A **query**: what do I want to know? A **key**: what can I be asked for? A **value**: what do I say, if somebody asks? Here they are for the second head of the first layer, which has 16 channels.

# %%
first, places = gpt.blocks[0], torch.arange(len(words))
x = first.norm_1(gpt.token_embedding(tokens) + gpt.position_embedding(places))[0]  # (T, 64)


def mapped(layer, head):
    """What the 16 rows of a linear layer that belong to one head make of x: (T, 16)."""
    rows = slice(16 * head, 16 * head + 16)
    return torch.einsum("tc,dc->td", x, layer.weight[rows]) + layer.bias[rows]


layers = first.attention.query, first.attention.key, first.attention.value
q, k, v = (mapped(layer, 1) for layer in layers)
scores = torch.einsum("id,jd->ij", q, k)
print("x", tuple(x.shape), "  q", tuple(q.shape), "  scores", tuple(scores.shape))

# %% [markdown]
# The einsum says what is summed and what stays. `id,jd->ij`: for each asking place i and each asked place j, the sum over the channels d. One product of matrices, and every pair of words has been compared; no loop, and no order. (That is also why a model must be *told* the places: shuffle the words, and attention shuffles its answers. MiniGPT adds them to the words, at the very beginning.)
#
# The scores become shares by a softmax. But first they are divided by √d. **Predict.** Queries and keys of random numbers, with mean 0 and variance 1, over 32 places. How large is the largest share, without the division and with it, for d = 16, and for d = 1024?

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
# A sum of d products has a deviation of √d, and the softmax of numbers so far apart is all or nothing: nearly everything on one word, and hardly any gradient for the others. Divided by √d, a head begins undecided, whatever its width.
#
# Now the mask. MiniGPT has to guess the next word, so no place may see what comes after it. There are two ways to write that; they look alike.

# %%
scores = scores / math.sqrt(16)
future = torch.ones(len(words), len(words), dtype=torch.bool).triu(1)


def before(scores):
    """The future is taken out of the scores, and then shared."""
    return scores.masked_fill(future, -math.inf).softmax(-1)


def after(scores):
    """All is shared, and then the future is taken out."""
    return scores.softmax(-1).masked_fill(future, 0)


# %% [markdown]
# **Predict.** Both have zeros above the diagonal. Is anything wrong with the second? What if each row were divided by its sum again?

# %%
changed = scores.clone()
changed[:, -1] += 2  # another last word: its key is another
for name, mask in (("before the softmax", before), ("after", after)):
    shares = mask(scores)
    moved = (mask(changed)[3] - shares[3]).abs().max()
    least = shares.sum(-1).min()
    print(f"{name:19} rows sum to {least:.2f} or more; place 3 has moved by {moved:.3f}")

# %% [markdown]
# The second gives the future no share, and yet it lets it speak. The softmax divides by a sum over *all* words, so what place 3 gets depends on a word that has not been written. While training, a model will use that: a row's sum says something about what comes. (Divided by its sum, each row would be right again. It is the first way, done in two steps.)
#
# The first way, then. And is it what MiniGPT does?

# %%
maps = attention_maps(gpt, tokens)[:, 0]  # (layers, heads, T, T)
shares = before(scores)
print(f"largest difference from MiniGPT's own: {(shares - maps[0, 1]).abs().max():.0e}")
answer = torch.einsum("ij,jd->id", shares, v)
print("what the places carry away:", tuple(answer.shape))

# %% [markdown]
# That is a head: three maps, a table of shares, a weighted mean of values. Now look at all eight, at the sentence that you chose. The verb is decided at the subject's last word, for there the next word is to be guessed. **Predict.** Where must that word look, and in which of the two layers would you expect it?

# %%
attention_heads(words, maps, head=3, word=words.index(who.split()[-1]))

# %% [markdown]
# In *yo hablé* one head of the first layer gives nearly everything to the tense, and another, its first, to the verb: the two that decide, each with a head of its own. In the second layer several heads look at all the cues at once. Live, go through the heads with the arrow keys. Many words look at `<bos>`, which says nothing. A softmax can't say "nobody", its shares sum to 1, and so a head that has nothing to ask asks a place that answers nothing. (The habit has a name in large models: an *attention sink*.)
#
# A warning that goes with every such picture: it shows where a head looks, and not what it takes from there, nor whether anybody uses it. We shall switch heads off, further below, and be surprised.

# %% tags=["hide-input"]
number(
    "One head over 10 words, causal, with all scores equal. What share does place 3 (the fourth word) give to place 1?", 0.25,
    tolerance=0.001,
    why="It sees places 0 to 3, four of them, itself included, and gives each the same.",
    wrong={0.1: "It can't see the six words that come after it, and they get nothing.", 0.333: "A place sees itself, too: the diagonal is not masked. If it were, the first word would see nothing."},
)

# %% [markdown]
# ## Heads are a view
#
# Nobody computes one head after another. One linear layer makes all 64 channels of all queries; the four heads are four groups of 16 neighbours in it. To tell them apart is a matter of shape and strides, [phase 01](01_tensors.ipynb#cell-id=strides-how-far-is-one-step)'s matter.
#
# Here is a tensor in which each number says where it is from: 3 places of 8 channels, and the number is 10 · place + channel. Two heads of 4 channels are wanted, as (B, heads, T, channels). **Predict.** Both lines below give that shape. What is in the first head, for each?

# %%
tagged = (10 * torch.arange(3)[:, None] + torch.arange(8))[None]  # (1, 3, 8)
grouped = tagged.unflatten(2, (2, 4)).permute(0, 2, 1, 3)
viewed = tagged.view(1, 2, 3, 4)
print("grouped, then turned", tuple(grouped.shape), *grouped[0, 0].tolist(), sep="\n  ")
print("viewed at once", tuple(viewed.shape), *viewed[0, 0].tolist(), sep="\n  ")

# %% [markdown]
# The first head of the first line has channels 0 to 3 of places 0, 1 and 2. That of the second has place 0 whole, and half of place 1: it calls them three places, and the mask that belongs to three places now hides the wrong things. The shape is right and the numbers are all there, so nothing complains.
#
# How bad is it? The last head now calls its first place what belongs to words of the last quarter, so a model trained this way would read the future, and be praised for it. One that was trained otherwise says so at once.

# %%
broken = load_minigpt()
print(f"as it is: perplexity {perplexity(broken, 300):.2f}")
for block in broken.blocks:
    block.attention._split = lambda x: x.reshape(len(x), 4, -1, 16)
print(f"viewed:   perplexity {perplexity(broken, 300):.2f}")

# %% [markdown]
# **Predict.** Were bytes moved to make the heads? And on the way back, when the answers of the heads are laid side by side again, can that be a view?

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
# To split is free. To join costs a copy: the four channels of a head lie together, those of a place no longer do. `reshape` and `flatten` copy where they must, `view` never does, and here its refusal is welcome.

# %% tags=["hide-input"]
choice(
    "A model of width 64 goes from 4 heads to 8, all else as it was. What happens to the number of its weights, and to the FLOPs of the scores?",
    {
        "Twice the weights, twice the FLOPs": "The linear layers are 64 by 64 for any number of heads. Heads are only groups of their rows.",
        "The same weights, the same FLOPs": "Eight tables of T × T with 8 channels each cost what four with 16 channels do. What doubles is the memory of the tables, and the softmaxes.",
        "The same weights, half the FLOPs": "Each table costs half, and there are twice as many.",
    },
    answer="The same weights, the same FLOPs",
)

# %% [markdown]
# ## Who may look where
#
# A mask is a table of yes and no, a row for each query and a column for each key. Four things go into it, and each has its classic mistake.
#
# **The future.** Number the places. A query may look at a key whose place is not greater than its own. As long as queries and keys are the same words, that is the lower triangle. **Predict.** Of a sentence of five words the first three are done, and only the last two ask: two queries, five keys. Which keys may they see, and which does `is_causal=True` give them? (The values are the unit vectors, so the output *is* the shares.)

# %%
torch.manual_seed(1)
two_q, five_k = torch.randn(1, 1, 2, 8), torch.randn(1, 1, 5, 8)
units = torch.eye(5)[None, None]
print(F.scaled_dot_product_attention(two_q, five_k, units, is_causal=True)[0, 0])

# %% [markdown]
# It laid the triangle into the *top left* corner. The query at place 3 sees one key, place 0, and the one at place 4 sees two. The shapes fit, the rows sum to 1. For queries that are the *last* of the words, the triangle belongs into the other corner; torch has a bias for that, too.

# %%
from torch.nn.attention.bias import causal_lower_right

right = F.scaled_dot_product_attention(two_q, five_k, units, attn_mask=causal_lower_right(2, 5))
print(right[0, 0])

# %% [markdown]
# A mask of one's own never goes wrong there if it is made of *places*. For two queries at places 3 and 4, how far back is each key?

# %%
back_by = torch.tensor([3, 4])[:, None] - torch.arange(5)  # (queries, keys)
print(back_by)

# %% [markdown]
# From this one table everything can be read. The future is where it is negative. **A window**, with which a model looks at the last w places only, is where it isn't too large; with w = 1 a word sees itself. (Mistral had a window of 4,096. The layers stacked above each other reach further, as convolutions do.)
#
# **Padding** is not about queries but about keys: in a row that was filled up to the length of others, nobody may look at the filling. What a filled place itself asks is of no interest; its answer is thrown away. And if somebody forbids it to look at all, there is **a row that sees nothing**.
#
# **Predict.** What is the softmax of five times −∞? What does torch's fused attention give?

# %%
allowed = torch.tensor([[False] * 5, [True] * 5])
s = torch.einsum("bhid,bhjd->bhij", two_q, five_k) / math.sqrt(8)
print("by softmax:", s.masked_fill(~allowed, -math.inf).softmax(-1)[0, 0, 0])
print(
    "fused:     ", F.scaled_dot_product_attention(two_q, five_k, units, attn_mask=allowed)[0, 0, 0]
)
print("0 · NaN =", 0 * math.nan)

# %% [markdown]
# 0/0, which is NaN; torch's own has it defined as 0. A NaN at a place that is thrown away sounds harmless. But in the next layer that place has a key and a value, they are NaN as well, and a share of 0 times NaN is NaN: from one filled place it spreads to the whole row.
#
# Put one together. Below, your sentence with two places of padding, and its last four words asking. **Predict** the table before you look. Then move `padding`, `window` and `queries`: can you make a query that sees nothing? Can a word be one?

# %%
mask_builder(words[: min(len(words), 9)], new=4, padding=2, window=5)

# %% [markdown]
# Only a filled place sees nothing: with `queries` at its highest, the padding asks as well, and nothing real lies before it. A word always sees at least itself. That is why a decoder can do without the special case, as long as nobody pads on the left.
#
# And the last mistake, the sense. **Predict.** In each of these, what does True mean?

# %%
only_first = torch.tensor([[True, False, False, False, False]])
q1 = two_q[:, :, :1]
looked = F.scaled_dot_product_attention(q1, five_k, units, attn_mask=only_first)
print("scaled_dot_product_attention:", looked[0, 0, 0])
mha = nn.MultiheadAttention(8, 1, batch_first=True)
_, looked = mha(q1[0], five_k[0], five_k[0], attn_mask=only_first)
print("nn.MultiheadAttention:       ", looked[0, 0])

# %% [markdown]
# In the function True is "may look". In the older module, of the same library, it is "may *not*". Hugging Face's `attention_mask` has 1 for a real word and 0 for padding; and inside, an additive mask has 0 for yes and a huge negative number for no. Four conventions; write down which one you mean, in the docstring.

# %% tags=["hide-input"]
number(
    "Causal attention over 6 words with a window of 3 (itself and the two before). How many of the 36 pairs are seen?", 15,
    why="1 + 2 + 3 + 3 + 3 + 3.",
    wrong={21: "That is the whole triangle; the window takes off the far corner.", 18: "The first two words have fewer than three places to look at.", 11: "That is a window of 2. Here a word sees itself and two more."},
)

# %% [markdown]
# ## Attention in fifty lines
#
# All of it in one module, with as few lines as it takes. It makes queries, keys and values by one linear layer that is three times as wide, as GPT-2 does.

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
# Line by line, with B sequences of T words, C = 64 channels, H = 4 heads of d = 16:
#
# | line | shape after it | why it is there |
# |---|---|---|
# | `packed(x)` | (B, T, 192) | The only place where a word's own numbers are read. One product in place of three: same FLOPs, fewer and larger kernels. |
# | `unflatten` | (B, T, 3, 4, 16) | Names for what lies side by side anyway. A view. *This* order, first q, k, v and then the heads, is a convention of the weights; the wrong one has the same shape. |
# | `permute` | (3, B, 4, T, 16) | Batch and head to the front, since nothing is ever summed over them. Still a view. |
# | first `einsum` | (B, 4, T, T) | Every pair of places, compared. The only tensor that grows with T². |
# | `* d ** -0.5` | | So that the softmax begins undecided, whatever d is. |
# | `where` | | Before the softmax, so that the forbidden takes no part in the sum either. It broadcasts over heads, and over the batch if the mask has none. |
# | `softmax(-1)` | | Over the *keys*: each query's shares sum to 1. Over `-2` the shapes would fit as well. |
# | second `einsum` | (B, T, 4, 16) | The mean of the values. The result is asked for as `bihd` and not `bhid`: place before head, ready to be joined. |
# | `flatten(2)` | (B, T, 64) | Heads side by side. |
# | `mix` | (B, T, 64) | Without it no channel of one head would meet one of another before the MLP; and it lets the block decide how much of each head is added to the stream. |
#
# **Predict.** Weights copied from the trained model: do this and MiniGPT's own attention agree? To the last bit?

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
# Equal, here even to the last bit; don't count on that elsewhere, for one product of 192 columns may be summed in another order than three of 64. And equal to torch's fused kernel, which computes the same in another order and never has the T × T table whole? Values are half of the answer; the gradients are the other half.

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
# Output, and the gradients of queries, keys and values. So why write it by hand? Since the fused kernel has no table, it can't show you one; and the day you want a change, a window, a bias, shared keys, you need the lines.
#
# And why does everybody call the fused one? That a GPU must say. The course has the record of an H100 ([phase 05](05_custom_op.ipynb#cell-id=how-fast-can-it-be) reads more of it), which did causal attention both ways: with the table, and with *FlashAttention*, which makes it in tiles that never leave the chip. **Predict.** The sentence gets twice as long. What becomes of the time, and of the memory that is needed beside q, k and v, in either way?

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
# The table has T² entries for each head, and grows fourfold with each doubling, in bytes and soon in time. At 16,384 words one table of 16 heads has 8.6 GB in 16 bits; what was needed for it, scores, mask, softmax, some of it in 32 bits, comes to 40 GB, nearly half of what this GPU has, for *one* layer and one sentence.
#
# The fused kernel does the same multiplications, or half of them, for it leaves out what the mask forbids. So its time is on the way to fourfold as well, once the sentence is long enough to keep the chip busy. But at the end it is a forty-seventh of the other, and its memory only doubles. (The first line steps out of the row. With so few rows to deal out the kernel splits the keys in two, and keeps a result in float32 for each half until it joins them; the bytes fit exactly.)

# %% tags=["hide-input"]
number(
    "At T = 16,384 the fused kernel needs 34.6 MB. The result, in bfloat16, has 16 · 16,384 · 64 numbers. How many numbers of 4 bytes are left, for each row of each head? (34,603,008 bytes, to be exact, and a kibibyte of odds and ends.)",
    1,
    why="The result takes 33,554,432 bytes; 1,048,576 are left, which is one float32 for each of 16 · 16,384 rows: the logarithm of the sum of its exponentials. From it and the scores, computed again, the backward has every weight of the table, `exp(score − that)`. Phase 06's partitioner kept two numbers, maximum and sum; they fit into one.",
    wrong={64: "Those are the result's own channels, 2 bytes each: 33,554,432 bytes.", 16384: "That would be a row of the table, the very thing it never keeps."},
)

# %% tags=["hide-input"]
choice(
    "Somebody forgets `mix`. Everything trains, the loss is a little higher. What can the model no longer do?",
    {
        "Look at several places at once": "Each head looks at a place of its own. That hasn't changed.",
        "Combine channels of different heads before they are added to the stream": "Head 0 always writes to channels 0 to 15 of the stream, head 1 to the next. The MLP after it can still combine them, and that is why it is only a little worse.",
        "Pass gradients to the values": "The values are reached through the weighted mean as before.",
    },
    answer="Combine channels of different heads before they are added to the stream",
)

# %% [markdown]
# ## One token at a time
#
# To write a sentence, a model is called for each word: with five words, with six, with seven. **Predict.** When the sixth word is there, what of the first five has changed, in the first layer? And in the second, whose inputs have been through attention?

# %%
hf = one  # MiniGPT as Hugging Face's class, from the folder
short, whole = (hf(tokens[:, :n], use_cache=True).past_key_values for n in (5, length))
for layer in range(2):
    for name in ("keys", "values"):
        a, b = (getattr(cache.layers[layer], name) for cache in (short, whole))
        far = (a - b[:, :, :5]).abs().max()
        print(f"layer {layer + 1}, {name:7}{tuple(a.shape)}: the first five are off by {far:.0e}")

# %% [markdown]
# Nothing. No place sees a later one, in any layer, so what a place has computed is final. What the new word needs of the old ones are their keys and their values, and they can be kept: the **KV cache**. (Their queries aren't needed. They asked once.)
#
# By hand, for one head: the sixth word brings one query, one key and one value. Key and value are put behind those that were kept, and the query looks at all of them. **Predict.** Does it need a mask?

# %%
kept_k, kept_v = k[:5], v[:5]  # of the head that we took apart
for place in range(5, length):
    kept_k, kept_v = torch.vstack([kept_k, k[place]]), torch.vstack([kept_v, v[place]])
    row = (kept_k @ q[place] / 4).softmax(0)
    off = (row @ kept_v - answer[place]).abs().max()
    print(f"“{words[place]}” looks at {len(kept_k)} keys; off by {off:.0e}")

# %% [markdown]
# Not while words come one at a time: everything in the cache is the past. As soon as two come at once (a prompt's second half, say), the first of them must not see the other, and the triangle is back, in the lower right corner.
#
# Now with the whole model. Hugging Face calls the cache `past_key_values`. **Predict.** The second call below has one word, and a cache of five. Which position embedding does the word get? And what if somebody numbers the words of each call from 0?

# %%
def sixth(**how):
    """The logits after the sixth word, read by itself with the other five cached."""
    cache = hf(tokens[:, :5], use_cache=True).past_key_values
    return hf(tokens[:, 5:6], past_key_values=cache, **how).logits[0, -1]


expected = hf(tokens[:, :6]).logits[0, -1]
for name, how in (("as it comes", {}), ("from 0 again", {"position_ids": torch.tensor([[0]])})):
    logits = sixth(**how)
    far = (logits - expected).abs().max()
    print(f"{name:13} off by {far:.1g}, and goes on with “{tok.decode(logits.argmax())}”")

# %% [markdown]
# The library asks the cache for its length and begins there. Whoever writes a decoder has to do the same.
#
# A cache is also a thing that *changes*. **Predict.** The same cache is handed to two calls, to compare two words as continuations. How many words are in it after that?

# %%
cache = hf(tokens[:, :5], use_cache=True).past_key_values
for word in ("hablé", "comí"):
    hf(torch.tensor([[tokenizer.id(word)]]), past_key_values=cache)
    print(f"after “{word}” the cache holds {cache.get_seq_length()}")

# %% [markdown]
# The second call has seen *yo hablé comí*. It writes into the cache that it was given: no error, and a wrong answer for the second word. Copy it (`copy.deepcopy`) before you branch.
#
# Below is the cache of your sentence, and what a step costs with it and without. **Predict.** How many times cheaper is the step that reads word 20, if the first 19 are kept?

# %%
layers = [(layer.keys, layer.values) for layer in whole.layers]
cache_growth(layers, gpt.config, prompt=5)

# %% [markdown]
# About as many times as there are words. With a cache a step costs nearly the same for each word; without, it reads everything again. What is paid is memory, and it grows for ever.

# %% tags=["hide-input"]
choice(
    "A model is trained with batches of whole sentences. Does it use a KV cache?",
    {
        "Yes, it saves the same work there": "In training all words of a sentence are known, and one pass computes all places at once. There is no second step that could use what the first has kept.",
        "No: all places are computed in one pass": "Training never waits for its own words. What it keeps instead are activations, for the backward.",
    },
    answer="No: all places are computed in one pass",
)

# %% [markdown]
# ## Picking a word
#
# The model has done its part: 600 logits. To pick one of 600 words is not the model's business any more, and most of what people call a model's *character* is decided here.
#
# *Greedy* takes the likeliest. Otherwise the logits are divided by a **temperature**, the softmax makes probabilities of them, and a word is drawn. **Predict.** Is 0 a temperature? And what is left at 100?

# %%
logits = gpt(torch.tensor([tokenizer.encode("<bos> <es> hablar <past> yo hablé")]))[0, -1]
for t in (0.1, 0.5, 1.0, 2.0, 100.0):
    p, which = (logits / t).softmax(0).topk(4)
    named = "  ".join(f"{word} {share:.3f}" for word, share in zip(tokenizer.words(which), p))
    print(f"temperature {t:5}: {named}")

# %% [markdown]
# Three objects after *hablé* are about equally good, and the rest hardly counts. Below 1 the first gains, above 1 the differences wear off, and at 100 nearly all 600 words are equal. As the temperature goes to 0 everything goes to the likeliest; *at* 0 the division fails, and one has to say that one means greedy.
#
# A high temperature lifts the good alternatives, and the 590 senseless words with them: each has next to nothing, together they have a lot. So one cuts off before drawing. **Top k** keeps the k likeliest. **Top p** keeps the fewest words, the likeliest first, that together reach at least p: few where the model is sure, many where it isn't.
#
# And how is a word drawn? With one uniform number u, from 0 up to 1. The words that are left are laid on a line, in the order of their ids, each as wide as its probability, and together 1; u falls on one of them. With a loaded die of four faces, whose third never comes: **Predict.** Which face is u = 0.1, exactly at the end of the first? And which is u = 0.5?

# %%
die = torch.tensor([0.1, 0.4, 0.0, 0.5])
ends = die.cumsum(0)
print("ends:", ends, "  faces:", torch.searchsorted(ends, torch.tensor([0.1, 0.5]), right=True))
throws = torch.rand(10_000, generator=torch.Generator().manual_seed(0))
faces = torch.searchsorted(ends, throws, right=True)
print("how often:", faces.bincount(minlength=4) / len(throws))

# %% [markdown]
# A face has its beginning and not its end, as u has 0 and not 1. So 0.5 is the fourth face and not the third, which is 0 wide and can't be hit: with "up to and including" a word of probability 0 might be said. Given the same u, the same face: dice can be handed in, and a test can be exact.
#
# **Predict**, then move: temperature 2, k = 50. Does p = 0.9 cut anything off? Which of the settings changes a word without touching u?

# %%
next_word(logits, tokenizer.vocabulary, temperature=2.0, top_k=50, top_p=0.9, u=0.62)

# %% [markdown]
# Of 50 words 29 more are cut off, and the three good ones have the more. Which setting changes the word? All of them do. The line is laid anew whenever something is cut, because what is left must sum to 1 again; so u may fall on another word.
#
# The *order* counts. **Predict.** Top p = 0.9, at temperature 3: how many words are left, if the logits are divided first, and if they are cut first? And does it matter for top k?

# %%
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

warm, nucleus, best = TemperatureLogitsWarper(3.0), TopPLogitsWarper(0.9), TopKLogitsWarper(5)
row = logits[None]
for name, cut in (("top p = 0.9", nucleus), ("top k = 5", best)):
    first_warm = cut(None, warm(None, row)).isfinite().sum()
    first_cut = warm(None, cut(None, row)).isfinite().sum()
    print(f"{name:12} divided first: {first_warm:3} words left, cut first: {first_cut}")

# %% [markdown]
# Dividing changes no order, so the k likeliest stay the same. But it changes the shares, and so what it takes to reach p. Hugging Face divides first, then k, then p; other programs do it the other way, and the same three settings are another writer.
#
# Two corners that are easy to get wrong. **Predict.** Logits 1, 2, 2, 2, 0. What does top k = 2 leave? And top p = 0.5, if the first word alone already has more than that?

# %%
print("top k = 2: ", TopKLogitsWarper(2)(None, torch.tensor([[1.0, 2.0, 2.0, 2.0, 0.0]])))
print("top p = 0.5:", TopPLogitsWarper(0.5)(None, torch.tensor([[5.0, 2.0, 1.0]])))

# %% [markdown]
# Among three that are equal there are no two likeliest. This implementation cuts what is *below* the second, and keeps all three; others, and the lab, let the smaller id go first and keep two. And the word that crosses p belongs to those that are kept; if it didn't, a sure model would have no word left.

# %% tags=["hide-input"]
number(
    "Probabilities 0.5, 0.3, 0.15, 0.05; top p = 0.7, then u = 0.7. Which word, counted from 0, if they lie on the line in this order?", 1,
    why="0.5 and 0.3 are kept: 0.5 alone is less than 0.7. Rescaled, 0.625 and 0.375; 0.7 is beyond 0.625.",
    wrong={0: "0.5 has not reached 0.7 yet. The word that crosses it stays, too.", 2: "The third is cut off: 0.5 + 0.3 have reached 0.7 already."},
)

# %% tags=["hide-input"]
true_false(
    "With `top_k=1`, temperature doesn't matter.", True,
    "The likeliest stays the likeliest whatever the logits are divided by, and it is the only one left. The same for a very small top p.",
)

# %% [markdown]
# ## A resting place
#
# Here the first sitting ends: a sentence goes through the model, and a word comes out. With what you have read you can solve exercises 1 to 4 of [the lab](../release/08_transformer/08_transformer.ipynb), 17 of its 44 points: who may look where, attention in fifty lines, one token at a time, and the choice of a word. Exercise 11, about five lines of your own attention, can be answered then as well. The others belong to what follows.

# %% [markdown] tags=["needs-kernel"]
# When you come back, run the cells above again (*Run → Run All Above Selected Cell*), for what follows uses their names.

# %% [markdown]
# ## Sentences of unequal length
#
# One prompt at a time leaves a machine idle. But prompts have different lengths, and a tensor is a rectangle. The gaps are filled with `<pad>`, and the question is on which side.

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
# On the left: this tokenizer's folder says so (`padding_side`). The default of most is the right. **Predict.** `generate` on this batch, and on one that is padded on the right. Who says what?

# %%
for side in ("left", "right"):
    tok.padding_side = side
    batch = tok(three, return_tensors="pt", padding=True)
    out = hf.generate(**batch, max_new_tokens=9, do_sample=False)
    print(side, *(tok.decode(row) for row in out), sep="\n   ")
tok.padding_side = "left"

# %% [markdown]
# On the right, the first row goes on *after* its padding: *yo la verdad ayer*, a sentence without its verb. The logits that `generate` reads are those of the last column, and there stands a `<pad>`. The mask did what it should, nobody looked at the padding; only the question was asked at the wrong place. The longest row is right, so a test with one prompt, or with equal ones, sees nothing. (There is a warning for it. We have switched warnings off, you remember.)
#
# It isn't the right side as such that is wrong. In training one pads on the right and thinks nothing of it. The course's own `generate` fills on the right, too; it reads each row's logits at that row's *last word*, and since it is causal it needs no mask for that.
#
# Left padding has a catch of its own. **Predict.** Below, the padded batch goes through the model directly, with its mask. How far are the logits from those of each prompt alone?

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
# Off by 3 and by 1 in the two rows that are padded. The mask hides the filling, but the words had been *counted* with it: *yo* stood at place 6 and not at 4, and got another position embedding. `generate` counts from the first real word; a plain call does not. From the mask the places follow by a running sum.
#
# The end is unequal, too. A row that has written `<eos>` must stop, while others go on. It stays in the rectangle and gets `<pad>`, as you see above; what it would have gone on to say is thrown away. When all rows are done, one stops.

# %% tags=["hide-input"]
choice(
    "A batch is padded on the left, mask and positions are right, and a cache is used. The second call has one new word a row. Which mask does attention need?",
    {
        "None: the new words may see everything": "They may see everything that is real. The keys of the padding are in the cache as well.",
        "One column: the new word is real": "The mask is about keys, and there are as many keys as the cache has words, and one.",
        "The old mask with a column of ones behind it": "One entry for each key, cached ones included. And the new word's position is the number of real words before it, not the number of columns.",
    },
    answer="The old mask with a column of ones behind it",
)

# %% [markdown]
# ## What it costs
#
# The products of a forward pass are countable. For each word, a block has four maps of C × C in attention and two of C × 4C in the MLP; the head has C × 600 once, one row of weights for each word that it knows; 2 FLOPs a weight. And attention compares and gathers: each *pair* of query and key costs 2 · C for the score and 2 · C for the value, in each block. The whole table is computed, masked or not.
#
# **Predict.** 32 words written one at a time, without a cache, each step reading all words so far. How many passes over 32 words is that worth? And with a cache?

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
# Sixteen passes, half of 32, and a text of 1,000 words would take hundreds. With a cache it is *less* than one, since a new word never looks at the upper triangle, which the pass computes and throws away. Be careful with the last figure, though: it counts arithmetic. Word by word, every weight is fetched from memory for a single multiplication, and [phase 01](01_tensors.ipynb#cell-id=counting-flops-and-bytes)'s roofline told you what bounds such a product. That is why a prompt is read in one pass, why services put many users into one batch, and why reading is cheaper than writing on every price list.
#
# And the memory: two vectors of C numbers for each word, in each layer.

# %%
def cache_gib(layers, kv_width, words, itemsize=2, rows=1):
    return 2 * layers * kv_width * words * rows * itemsize / 2**30


SIZES = {"MiniGPT": (2, 64, 32), "GPT-2": (12, 768, 1024), "Llama 2 7B": (32, 4096, 4096)}
SIZES["Llama 3 8B"] = (32, 8 * 128, 8192)
for name, sizes in SIZES.items():
    size = cache_gib(*sizes)
    print(f"{name:11}{sizes[-1]:5} words in 16 bits: {size:9.2g} GiB, for 32 users {32 * size:.2g}")

# %% [markdown]
# Two GiB for one user of a 7B model whose weights are 13. It is the cache, not the weights, that says how many users a GPU can serve. The last line has 32 heads of 128 channels that ask and only 8 that answer, four queries to a key: *grouped* heads. A quarter of the cache for each word. You make such a model in the lab.

# %% tags=["hide-input"]
number(
    "A model of 24 layers and width 1024, 16 heads, all with keys of their own. How many KiB does its cache take for one word, in float16?", 96,
    unit="KiB",
    why="2 (keys and values) · 24 · 1024 · 2 bytes = 98,304 bytes.",
    wrong={48: "Keys *and* values.", 1536: "The 16 heads share the width of 1024; it isn't 1024 each.", 192: "A float16 has 2 bytes."},
)

# %% [markdown]
# ## MiniGPT as a Hugging Face model
#
# Back to the folder. `AutoModelForCausalLM` isn't a model. It opens `config.json`, finds a `model_type`, and looks it up among the classes that somebody has registered.

# %%
import json

config = json.loads((FOLDER / "config.json").read_text())
for field in ("model_type", "architectures", "n_embd", "n_head", "n_layer", "n_positions",
              "activation_function", "tie_word_embeddings"):  # fmt: skip
    print(f"{field:22}{config[field]}")
print("auto gives:", type(one).__name__, "  the friend's:", type(two).__name__)

# %% [markdown]
# The folder *says* which class it was written by, under `architectures`. `GPT2LMHeadModel.from_pretrained` doesn't ask; you named a class and you get it.
#
# MiniGPT is nearly a GPT-2, and here is how the two name their parts. **Predict.** The shape of `c_attn.weight`, which makes q, k and v, given that `nn.Linear(64, 192)` has a weight of (192, 64)?

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
# (64, 192). GPT-2 came from TensorFlow, and its `Conv1D` is a linear layer that keeps its weight the other way round, as (in, out). Whoever moves weights has to turn them: all those of `c_` layers, and not the embeddings, nor the head. (In other files you meet two more habits. GPT-2 itself has no head of its own, it uses the embedding's weight once more, and a file need not hold it twice. And old files hold each block's mask among the weights, as `attn.bias`.)
#
# **Predict.** `c_proj.weight` is 64 by 64. If you forget to turn *that* one, which of the library's checks fails?

# %%
swapped = copy.deepcopy(one)
proj = swapped.transformer.h[0].attn.c_proj
state = swapped.state_dict() | {"transformer.h.0.attn.c_proj.weight": proj.weight.T.contiguous()}
print(swapped.load_state_dict(state, strict=True))
print("says:", say(swapped, "<bos> <es> hablar <past> yo"))

# %% [markdown]
# None: names and shapes fit, and that is all a loader can check. No loader can know what the numbers *mean*. The logits can: run both models on one input and compare. Nothing else is a proof that weights have been moved rightly, and it takes one line.

# %%
for name, model in (("one", one), ("two", two), ("swapped", swapped)):
    far = (model(tokens).logits - gpt(tokens)).abs().max()
    print(f"{name:8} logits off by at most {far:.1e}")

# %% [markdown]
# So `one` is MiniGPT and `two` isn't. What has the friend's class left out? `from_pretrained` has known all along, and gives it to whoever asks.

# %%
_, report = GPT2LMHeadModel.from_pretrained(FOLDER, output_loading_info=True)
for what, found in report.items():
    print(f"{what:16}{found or '-'}")
missing = gpt.lm_head.bias
print(f"the bias: from {missing.min():.2f} to {missing.max():.2f}")
for word in ("cada", "esta", "hoy", "siempre", "mañana"):
    print(f"  {word:9}{missing[tokenizer.id(word)]:6.2f}")

# %% [markdown]
# The head's bias. GPT-2 has none, so its class had no place for these 600 numbers and dropped them. A bias on a word is a liking for it, whatever the sentence: *esta* and *cada* are liked, *mañana* and *siempre* a little less. That was the other taste.
#
# And it would have said so on the screen, had we not switched that off. Here is what the friend's line would have written, at the level of logging that the library begins with.

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
# Everything is in it: the wrong class, and the weight that found no place. Half the world switches it off, because much of what comes in that red is there every time and means nothing.
#
#
# What does it do with the opposite, a weight that the class has and the file hasn't? **Predict.** The folder is loaded as a classifier, twice. Error, zeros, or random numbers?

# %%
from transformers import GPT2ForSequenceClassification

a, b = (GPT2ForSequenceClassification.from_pretrained(FOLDER) for _ in range(2))
_, report = GPT2ForSequenceClassification.from_pretrained(FOLDER, output_loading_info=True)
print("missing:", report["missing_keys"], "  unexpected:", sorted(report["unexpected_keys"]))
same = torch.equal(a.score.weight, b.score.weight)
print(f"twice the same: {same}   deviation {a.score.weight.std():.3f}")

# %% [markdown]
# Random numbers, new ones each time, and again no error. There is a reason for it: one takes a trained body and puts a new head on it, which is then trained, and the library can't know whether that is what you are doing. Only shapes that don't fit raise. And a folder that isn't there:

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
# The name of a folder may also be the name of a model on the hub, so a mistyped folder is looked for there. This course has switched the hub off (`HF_HUB_OFFLINE=1`, before the import), and so the answer comes at once, in words about a connection that nobody has tried. With the hub on, and no network, it tries for half a minute; with one, somebody else's model may be called that.
#
# Who should have told you? The library did, in a table that everybody hides. The folder did, in a field that nobody asked. **You** have to ask: for the report, which is a value and can be tested; and for the logits of one input, which you know.

# %% tags=["hide-input"]
choice(
    "`from_pretrained` reports no missing, no unexpected and no mismatched keys. What do you know?",
    {
        "The model computes what the original did": "The swapped `c_proj` would pass as well, and so would another activation function, another number of heads, another ε.",
        "Every weight of the file has a place, and every place has a weight": "Names and shapes, no more. The rest is in the config and in the code of the class, and only outputs that you compare can vouch for it.",
        "The weights were trained": "A freshly made model that was saved has all of its keys.",
    },
    answer="Every weight of the file has a place, and every place has a weight",
)

# %% [markdown]
# ## What the folder can do
#
# What is it good for, to have the form of a library? Everything that was written for the form. The tokenizer first: text in, ids and a mask out.

# %%
print(dict(tok("<bos> <es> hablar <past> yo")))
print(tok.tokenize("yo hablé español anoche."))
attempt(lambda: tok("yo hablé chino"))

# %% [markdown]
# (A tokenizer of whole words has an end, and 600 words is where this one has it. Those of large models cut unknown words into pieces, down to bytes, and know everything.)
#
# `generate` has all of *Picking a word* and *One token at a time*. **Predict.** Called without settings, does it draw or take the likeliest? Is its cache on? How long does it go on?

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
# What isn't set falls back on built-in values: greedy, a cache, and at most 20 new words. A folder brings its own `generation_config.json` along, and its author may have set other things there; whoever compares two models should look.
#
# Attention weights next. **Predict.** How many maps does this give?

# %%
out = one(tokens, output_attentions=True)
print("as it is:", len(out.attentions))
eager = AutoModelForCausalLM.from_pretrained(FOLDER, attn_implementation="eager")
maps_hf = torch.stack(eager(tokens, output_attentions=True).attentions)[:, 0]
print("eager:   ", tuple(maps_hf.shape), f"off from ours by {(maps_hf - maps).abs().max():.0e}")

# %% [markdown]
# None, and no error: the fused kernel never has the table, so there is nothing to hand out. `attn_implementation="eager"` chooses the plain lines, and there the maps are; they are ours. Fast or visible, not both.
#
# `generate` hands them out as well, if it may return more than tokens. **Predict.** The batch of three from before, padded on the left, three new words, two layers. Which shape has the table of the second word? And what do the shares of each prompt's last word sum to, with the padding and without?

# %%
wanted = {"output_attentions": True, "return_dict_in_generate": True}
written = eager.generate(**batch, max_new_tokens=3, do_sample=False, **wanted)
for place, layers in enumerate(written.attentions, 1):
    print(f"word {place}: {len(layers)} layers, each", tuple(layers[0].shape))
asks = written.attentions[0][1][:, 0, 6]  # layer 2, head 1: the prompts' last words
print(asks, "  sums", asks.sum(-1))

# %% [markdown]
# Before the first new word the whole prompt is read, 7 queries by 7 keys; from then on, with the cache, one query meets one key more each time. Each row sums to 1 over what may be seen, and in the padding's columns stand zeros: who lays such a row beside the prompt's words has to cut them off, or the words slip. And `generate` has counted the places from the first real word. A plain call of the padded batch gives shares that sum to 1 as well, and are others.
#
# With `labels` it computes the loss. **Predict.** In [phase 07](07_training.ipynb#cell-id=minigpt-from-nothing) the targets were the inputs moved by one. If you hand those in as labels, is the loss right?

# %%
inputs, targets = evaluation_lines()
x64, y64 = inputs[:64], targets[:64]
ours_loss = F.cross_entropy(gpt(x64).flatten(0, 1), y64.flatten())
places_of_inputs = torch.full_like(y64, -100)
places_of_inputs[:, 1:] = y64[:, :-1]  # each target back at the place of its own word
print(f"ours {ours_loss:.4f}, labels moved by us {one(x64, labels=y64).loss:.4f}, "
      f"not moved {one(x64, labels=places_of_inputs).loss:.4f}")  # fmt: skip

# %% [markdown]
# The class moves them itself. Labels that were moved before are moved twice, and the model is trained to say the word *after* the next, which it learns as well as it can.
#
# And the longest sentence. MiniGPT's own class says what is wrong; **predict** what this one says of 33 words.

# %%
attempt(lambda: gpt(torch.zeros(1, 33, dtype=torch.long)))
attempt(lambda: one(torch.zeros(1, 33, dtype=torch.long)))

# %% [markdown]
# An index out of range, from the depth of an embedding: the positions have 32 rows. Remember what it means: *longer than the context*.

# %% tags=["hide-input"]
true_false(
    "`hf(tokens, labels=tokens)` on a batch padded with `<pad>` counts the padding in the loss.", True,
    "Only labels of −100 are passed over; the attention mask says nothing to the loss. Padding must be −100 in the labels, as in phase 07.",
)

# %% [markdown]
# ## A model of the hub
#
# A folder of your own is the exception. Most models have a name, `owner/model`, and the library fetches them, from a repository that its owner goes on changing. What comes to lie on your disk, and what may be different tomorrow?
#
# There is no network here, and none is needed: what a download leaves behind can be made by hand. The contents of each file, under their hash. For each commit a folder of links to them. And a note which commit was `main` when somebody last looked.

# %%
import hashlib
import os

HUB = Path(tempfile.mkdtemp())  # the real one: ~/.cache/huggingface/hub, or below $HF_HOME
repo = HUB / "models--you--minigpt"
for part in ("blobs", "refs"):
    (repo / part).mkdir(parents=True)


def downloaded(commit, model):
    """Leave on the disk what a download of a commit leaves, as the newest."""
    folder = save_folder(repo / "snapshots" / commit, model)
    for file in folder.iterdir():
        blob = repo / "blobs" / hashlib.sha256(file.read_bytes()).hexdigest()
        file.replace(blob)
        file.symlink_to(os.path.relpath(blob, folder))
    (repo / "refs" / "main").write_text(commit)


# %% [markdown]
# Two commits. In the second the author has tidied up: that bias in the head, who needs it? **Predict.** Each commit has five files. How many contents are kept for both?

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
# Six: config, tokenizer and all that has stayed the same are kept once, and the weights twice. Nothing is ever taken out of there but by you, and this is how disks fill up (`hf cache ls` shows it).
#
# The name now works as it does for any model of the hub. **Predict.** Which of the two do you get by the name alone? By the old commit? By its first seven digits, which git would understand?

# %%
prompt = other[0][0]  # one of those at which the bias was heard
for how in ({}, {"revision": "main"}, {"revision": OLD}, {"revision": OLD[:7]}):
    try:
        said = say(
            AutoModelForCausalLM.from_pretrained("you/minigpt", cache_dir=HUB, **how), prompt
        )
    except OSError as error:
        said = f"OSError: {str(error).splitlines()[0]}"
    print(str(how).replace(OLD, "0a0a…"), said, sep="  ")

# %% [markdown]
# By the name alone you get whatever `main` is. Nobody has changed a line of your notebook, and it says something else than last week: there is the friend's model again, and this time not even the report has anything to say. With the hub on, the library asks it at each load where `main` is now; with `HF_HUB_OFFLINE=1`, or `local_files_only=True`, it takes the note in `refs`. A **commit** can't move. Whoever publishes a number writes `revision=` beside the name, all forty digits. (A tag or a branch is good as well, as long as its owner leaves it where it is. Seven digits are no commit to the library: it looks for a branch or a tag of that name, and offline that ends in words about a connection.)
#
# Then the **dtype**. Today's weights are stored in 16 bits. **Predict.** Of a folder in bfloat16, what comes back if you say nothing? And does `dtype=torch.float32` bring back what had been rounded away?

# %%
half = Path(tempfile.mkdtemp()) / "half"
copy.deepcopy(one).to(torch.bfloat16).save_pretrained(half)
print(f"{(half / 'model.safetensors').stat().st_size:,} bytes of weights")
for how in ({}, {"dtype": torch.float32}):
    model = AutoModelForCausalLM.from_pretrained(half, **how)
    far = (model(tokens).logits.float() - gpt(tokens)).abs().max()
    print(f"{how!s:26}{model.dtype!s:15} logits off by {far:.3f}")

# %% [markdown]
# It comes back as it was stored, and then it computes in it, too. (Up to its version 4 the library made float32 of everything; the argument was called `torch_dtype` then, and still may be.) In float32 the weights stay the rounded ones, but nothing is rounded after them. If you compare two models, say the dtype; otherwise it is the files that decide.
#
# And the **code**. A new architecture is not in the library yet, so its authors put their class beside the weights, and name it in the config. **Predict.** What could a line in that file do, and when?

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
# Anything, and at once: to get at the class the file is imported, and an import runs every line of it, as you, before a weight has been read. So the library refuses. If you don't say `trust_remote_code` at all, it asks, *y* or *N*, and takes fifteen seconds of silence for a no. `True` is also said of the file that its owner puts there next week, unless a commit stands beside it. And it is not only about new architectures: a folder that says `gpt2` *and* brings a class gets the library's class without `True`, and its own with it. That is no line to copy from a forum.

# %% tags=["hide-input"]
choice(
    "Your notebook loads `you/minigpt`, with the hub on, `trust_remote_code=True`, and nothing else. Which of these may be another one tomorrow, with no line of yours changed?",
    {
        "The weights": "They may, and so may the config, the tokenizer and the code.",
        "Weights, config, tokenizer and code": "All of it is what `main` is at the moment of loading. With `revision=` and a commit, none of it.",
        "None: it has been downloaded": "The cache keeps each commit, but by the name alone the newest `main` is asked for, and fetched where it isn't there.",
    },
    answer="Weights, config, tokenizer and code",
)

# %% [markdown]
# ## Eight bits, four bits
#
# The next model that you meet has `int8` or `4bit` at the end of its name. What has been done to it? It was rounded, and a little more: a weight becomes a whole number, and for a group of neighbours there is a **scale**, the width of one step.

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
# The largest of a row is 127 steps, and nobody is off by more than half a step. But half of *whose* step? **Predict.** One weight among the 16,384 is made twenty times as large as the largest. In four bits, 7 steps up and 7 down: what becomes of the others, if there is one scale for the whole matrix, one for each row, one for each 32 weights of a row?

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

# %% [markdown]
# One wild weight, and with a single scale all the others are gone. With a scale for each row it costs its own row alone, and with groups 31 neighbours. (About 14 in 100 are 0 in any case: they are smaller than half a step.) Large models do have such weights, and above all such *activations*; that is why a quantized file is full of little scales.
#
# Four bits are half a byte, and no tensor has elements of half a byte. So two codes share one, and somebody has to pull them apart again.

# %%
codes, scale = quantize(up, 4, 32)
low, high = (codes.flatten(1)[:, start::2] + 8 for start in (0, 1))  # 1 to 15
packed = low.to(torch.uint8) | high.to(torch.uint8) << 4
apart = torch.stack([packed & 15, packed >> 4], dim=-1).to(torch.int8).flatten(1) - 8
print(f"{up.nbytes:,} bytes; packed {packed.nbytes:,} and {scale.nbytes:,} of scales")
print("the same codes:", torch.equal(apart, codes.flatten(1)))

# %% [markdown]
# Now all linear layers of MiniGPT. Phase 03 had a budget for such changes: in float32 logits may be off by 10⁻⁵ of the largest, in float16 by 10⁻². **Predict.** Does the model in eight bits stay within the second? In four? What does the loss say to it, and the 48 sentences of the beginning?

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

# %% [markdown]
# In eight bits it is within the budget of float16, if only just, in a quarter of the bytes; no sentence has changed. In four bits it is outside by a factor of ten, and half of the sentences are others. And yet the loss hardly stirs: from 0.567 by a hundredth or less. You know that from the beginning of this lesson. It is a good model, and another one. Whoever asks "how much worse is it in four bits?" and looks at a perplexity is told "hardly"; whoever needs *the same answers* has to compare logits, and gets another reply.
#
# Last: what is saved by it? **Predict.** A layer that keeps its weight in eight bits. In which dtype does it multiply?

# %%
from torch.utils._python_dispatch import TorchDispatchMode


class Eight(nn.Module):
    """A linear layer whose weight rests in eight bits."""

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
    """Tell of each product of matrices what is multiplied."""

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if "mm" in str(op):
            print(op, *(arg.dtype for arg in args))
        return op(*args, **(kwargs or {}))


some = torch.randn(5, 64, generator=torch.Generator().manual_seed(0))
with Products():
    eight = Eight(gpt.lm_head)(some)
print(f"off by {(eight - gpt.lm_head(some)).abs().max():.3f}")

# %% [markdown]
# In float32. The codes are spread out before each product, or while it runs if a kernel is written for it, and not one multiplication is saved. What is saved is memory, and the way from memory: a model that writes word by word fetches each weight for a single multiplication (*What it costs*), and a quarter of the bytes is a quarter of that wait. To multiply in whole numbers the activations would have to be rounded as well, and there are the wild ones.

# %% tags=["hide-input"]
number(
    "7 billion weights in four bits, with a scale of 16 bits for each 128 of them. How many GB (10⁹ bytes) are that?", 3.61,
    tolerance=0.02, unit="GB",
    why="4 + 16/128 = 4.125 bits a weight, times 7 · 10⁹, by 8: 3.61 GB. In 16 bits it was 14.",
    wrong={3.5: "The scales are missing: an eighth of a bit for each weight.", 4.375: "That is a scale for each 16 weights… a whole bit for each.", 28.875: "Bits, not bytes."},
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
# You can read every line of it. Where do they differ?
#
# | theirs | ours | why |
# |---|---|---|
# | Splitting and joining heads is done by the caller. | inside | So that any attention function can be put here: eager, fused, yours. |
# | `scaling` may be handed in. | always d^−½ | Some models scale by the layer's number as well. |
# | The mask is *added*: 0, or the lowest number that there is. | −∞ in a `where` | See below. |
# | A cast after the softmax. | none | In mixed precision the softmax is computed in float32, and the product wants 16 bits. |
# | Dropout on the *shares*. | none | While training, a word forgets some of what it looked at; the rest isn't rescaled to 1 but by 1/(1 − p). |
# | Returns the shares, too. | no | So that there is something to look at. |
#
# **Predict.** The lowest float32, −3.4 · 10³⁸, is added to *every* score of a row that sees nothing. By softmax we had NaN, from the fused kernel 0. What here?

# %%
padded = torch.tensor([[0, 0, 1, 4]])
seen = torch.tensor([[0, 0, 1, 1]])
print(eager(padded, attention_mask=seen, output_attentions=True).attentions[0][0, 0])

# %% [markdown]
# A third answer. Next to 10³⁸ every score is rounded away, all are equal, and the row that may see nothing looks at everything, the future included, a quarter each. It does no harm, since nobody looks at that row. But compare two implementations on padded places, and you will find a difference that isn't a mistake: compare where there are words.

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
# Each has to get on with weights that exist. **Predict.** The folder is loaded with one setting changed: half the width; a third layer; eight heads in place of four. Which of them is an error, which is in the report, and which passes unseen?

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
# Another width fits nowhere. A third layer is made up of random numbers, and the report says so. Eight heads fit perfectly: heads are a view, no weight knows how many there are, and nothing notices but the logits.
#
# The second row of the table is the most useful. The library has a list of attention functions, and lets you add to it. So ours can go into their model.

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
# It writes, with the library's `generate` and the library's cache, through a function of ours. (Only without padding: for a name that it doesn't know, the library makes no mask, and `attention_mask` is None. Register a mask function as well, or don't pad.)
#
# **Predict.** Now the window gets narrow. The cues stand at the beginning of each line. How small can it be before MiniGPT notices?

# %%
from functools import partial

for window in (32, 12, 8, 6, 4, 2):
    AttentionInterface.register("windowed", partial(windowed, window=window))
    print(f"window {window:2}: perplexity {perplexity(one, 300):5.2f}")
one.set_attn_implementation("sdpa")

# %% [markdown]
# Not made for it, it suffers as soon as the tense is out of sight. A model that is trained with a window learns to pass things on from layer to layer.
#
# The other way round, which part is *not* needed? Take one head after the other and erase what it says: the 16 columns of the output layer that read it. **Predict.** Are there heads that nobody misses? In which layer?

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
# Those of the first layer are all needed. In the second hardly any is, and yet you have seen their maps, sharp as the others. A picture of attention shows where a head looks; what it is worth one learns by taking it away.
#
# A last one, for the lab. Four heads that ask can share two that answer. Which of them belong together? **Predict**, with torch's own grouped attention: do heads 0 and 1 share the first key, or heads 0 and 2?

# %%
torch.manual_seed(0)
asks, (keys, values) = torch.randn(1, 4, 3, 8), torch.randn(2, 1, 2, 3, 8)
shared = F.scaled_dot_product_attention(asks, keys, values, enable_gqa=True)
for name, order in (("0 and 1 share", [0, 0, 1, 1]), ("0 and 2 share", [0, 1, 0, 1])):
    spread = F.scaled_dot_product_attention(asks, keys[:, order], values[:, order])
    print(f"{name}: off by {(shared - spread).abs().max():.0e}")

# %% [markdown]
# Neighbours. And there is the proof that any such change can be given: spread the shared ones out again, and full attention must say the same.

# %% tags=["hide-input"]
choice(
    "You replace GELU's tanh form (`gelu_new`) by the exact one (`gelu`) in the config. What do you see on loading?",
    {
        "An error: the weights were trained with another": "Activations have no weights. Nothing in the file can tell.",
        "Nothing, and logits that are off by a little": "No name, no shape, no report; the two curves differ by less than 0.001. Exactly the kind of change that a comparison of logits with a tight bound finds, and a look at some sentences doesn't.",
        "Nothing, and exactly equal logits": "The tanh form is an approximation of the exact one, close and not equal.",
    },
    answer="Nothing, and logits that are off by a little",
)

# %% [markdown]
# ## A new tense, and what it cost
#
# There is a second, smaller MiniGPT: half as wide, one layer, trained like the other, but on a corpus from which every sentence in the Spanish imperfect (*yo hablaba*) had been taken out. It knows the words, from lists of forms. It has never seen what `<imperfect>` asks for.

# %%
from utils.minigpt import WITHOUT_IMPERFECT, imperfect_lines, training_lines
from utils.minigpt.evaluate import right_by_tense


def report_card(name, model):
    """The share of right verbs in each Spanish tense, asked for each verb and person."""
    right = right_by_tense(model.eval(), tokenizer)["es"]
    print(f"{name:15}", *(f"{tense} {share:4.0%}  " for tense, share in right.items()))


small = load_minigpt(WITHOUT_IMPERFECT)
report_card("before", small)
print("<imperfect>:", generate("yo", verb="hablar", tense="imperfect", model=small))

# %% [markdown]
# Now it shall learn the missing tense. There are a few hundred lines of it, and the loop is [phase 07](07_training.ipynb#cell-id=the-five-lines)'s. Only the new lines are shown, for the others are known already.

# %%
from utils.notebook.progress_bar import progress_bar

torch.set_grad_enabled(True)
inputs, targets = training_lines()
is_new = imperfect_lines(inputs)
new_x, new_y = inputs[is_new], targets[is_new]
print(f"{len(new_x)} of {len(inputs):,} lines")


# %%
def learn(lr, steps=100, only="", name="training"):
    """The small model, trained on the new tense alone; `only`: on parameters of that name."""
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
# **Predict.** 100 steps at the learning rate with which it was trained, 3e-3. Will it have the imperfect? And what of the other five tenses, which nobody has touched?

# %%
tuned = learn(3e-3)
report_card("new lines alone", tuned)
for tense in ("imperfect", "past", "future"):
    print(f"{tense:10}", generate("yo", verb="hablar", tense=tense, model=tuned))

# %% [markdown]
# It has the imperfect, and nothing else. Look at what it says when asked for the past. It hasn't *mixed up* the tenses; it has found out that one always says the imperfect. And so it was, in every line that it saw for 100 steps. Nothing in them said that the cue mattered. And the loss looks like success.
#
# This is called **catastrophic forgetting**, and the word is fair: the loss that you watch falls, and what you don't watch goes.
#
# **Predict.** Three ways of being more careful: a tenth of the learning rate; only the head is trained, so that the body keeps what it knows; only the MLP. Which one keeps the old tenses?

# %%
careful = {
    "lr 3e-4": (3e-4, ""),
    "the head alone": (3e-3, "lm_head"),
    "the MLP alone": (3e-3, "mlp"),
}
for name, (lr, only) in careful.items():
    report_card(name, learn(lr, only=only, name=name))

# %% [markdown]
# None does both. A low rate goes the same way more slowly: less is lost, and less is learnt. To train the head alone sounds careful and isn't: to say the imperfect more often is exactly what a head can do without understanding anything.
#
# What is missing is not caution but **contrast**. As long as all lines say the same, "always" is the simplest explanation. Lines of the old tenses in each batch make it wrong; they also say directly what is to be kept. It is called *rehearsal*, or replay, and it is the plainest of the remedies. How many old lines, at which rate, for how long? In the lab you find out, with a bound on both sides: what is to be learnt, and what is to be kept.
#
# And watch both. A fine-tuning whose only figure is the loss on its new data can't see its own damage.

# %% tags=["hide-input"]
choice(
    "You have the new lines and the model, but none of the old training data. What can still say what is to be kept?",
    {
        "Nothing": "The old model itself knows it. It only has to be asked.",
        "The old model: let it write lines, or keep the new model's probabilities near its own on other prompts": "Both are done. The first is rehearsal on what the model writes itself; the second, a penalty on the distance between two distributions, is in most recipes that train models on preferences.",
        "Weight decay": "It pulls all weights towards 0, and not towards where they were.",
    },
    answer="The old model: let it write lines, or keep the new model's probabilities near its own on other prompts",
)

# %% [markdown]
# ## The Trainer, once
#
# *This section is optional: the lab doesn't ask for it.* The loop that you wrote in phase 07 exists, for every model of the library, behind one call. It takes a dataset of dicts, whose names are those of the model's `forward`; labels are *not* moved.

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
# **Predict.** We have set steps, batch, rate and place. Which of these does it do unasked: a warm-up, a schedule, clipping, weight decay, shuffling, a checkpoint?

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
# The rate falls in a line to 0, without a warm-up; the gradient is clipped at 1, and what is logged is its norm from before; AdamW is the fused one, without decay; the order is shuffled, from seed 42; and every 500 steps a checkpoint is written, with optimizer, schedule and dice, if you don't say otherwise. Everything that phase 07 was about is decided, and most of it well. But it *is* decided. Who compares two runs of it should print its arguments, all hundred and more.
#
# One trap more. **Predict.** The targets are called `targets`, as in your own loop, and not `labels`. What becomes of them?

# %%
renamed = [{"input_ids": x, "targets": y} for x, y in zip(new_x, labels)]
attempt(lambda: Trainer(model=hf_model(small), args=settings, train_dataset=renamed).train())

# %% [markdown]
# What `forward` doesn't take by name is left out, in silence; the complaint is about what is missing then. Here it is needed, so there is an error. A mask under another name would have gone the same way, and nothing would have failed.
#
# Is it the loop of phase 07, then? Its last line would be `report_card`, and there is none in it. No `Trainer` can know what you wanted to keep.
# %% [markdown]
# ## What you can now do
#
# [The lab](../release/08_transformer/08_transformer.ipynb) of this phase asks you to do it:
#
# - make a mask for any queries over any keys, with padding and a window;
# - write multi-head attention in at most fifty lines, equal to torch's own in values and gradients, also where a row sees nothing;
# - go on from a cache, by any number of words at once;
# - pick words by temperature, k, p and given uniform numbers;
# - write on from prompts of unequal length, in one batch;
# - reckon FLOPs and bytes before anything runs;
# - carry weights over from Hugging Face's form, and load a folder so that nothing is left out in silence;
# - let the library write on from a batch of prompts, with anybody's folder, and see where each looked;
# - change the architecture, and prove that the change is what you say;
# - teach the model a tense without taking the others away;
# - explain the lines of your own attention, in words.
#
# And you can answer the question. The model that `AutoModelForCausalLM` made is MiniGPT; the other one lacks the bias of its head. A loader compares names and shapes, and says what it left out to whoever asks; that the numbers mean the same, only equal logits say.

# %% [markdown]
# ## What this phase leaves out
#
# - **Fused attention from inside** (FlashAttention): the T × T table in tiles that never leave the chip, with the running softmax of [phase 05](05_custom_op.ipynb#cell-id=one-pass-or-three).
# - **RoPE, RMSNorm, SwiGLU, mixtures of experts**: what today's models have in place of the parts of GPT-2. Each is a line or ten, at a place that you know now.
# - **Subword tokenizers**: how byte-pair encoding is learnt.
# - **Beam search, speculative decoding, paged caches**: serving, a field of its own.
# - **How four bits are chosen well**: GPTQ and its relatives round one weight after the other and let the rest make up for it; and kernels that unpack while they multiply.
# - **LoRA and other adapters**: fine-tuning few numbers in place of all; the old ones stay by construction.
# - **Where the time goes** when all this runs. [Phase 09](09_profiling.ipynb#cell-id=total-and-self).

# %% [markdown]
# ## Sources
#
# - A. Vaswani et al., "[Attention Is All You Need](https://arxiv.org/abs/1706.03762)", NeurIPS 2017. A. Radford et al., "[Language Models are Unsupervised Multitask Learners](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf)", 2019: GPT-2.
# - "[The Annotated Transformer](https://nlp.seas.harvard.edu/annotated-transformer/)", by A. Huang and others after A. Rush: that first paper, with its code line by line. Hugging Face's "[LLM Course](https://huggingface.co/learn/llm-course)": the library from its users' side.
# - N. Shazeer, "[Fast Transformer Decoding: One Write-Head is All You Need](https://arxiv.org/abs/1911.02150)", 2019; J. Ainslie et al., "[GQA](https://arxiv.org/abs/2305.13245)", EMNLP 2023: keys and values shared by heads.
# - T. Dao et al., "[FlashAttention](https://arxiv.org/abs/2205.14135)", NeurIPS 2022. A. Q. Jiang et al., "[Mistral 7B](https://arxiv.org/abs/2310.06825)", 2023: the window. G. Xiao et al., "[Efficient Streaming Language Models with Attention Sinks](https://arxiv.org/abs/2309.17453)", ICLR 2024.
# - A. Holtzman et al., "[The Curious Case of Neural Text Degeneration](https://arxiv.org/abs/1904.09751)", ICLR 2020: top p. A. Fan, M. Lewis, Y. Dauphin, "[Hierarchical Neural Story Generation](https://arxiv.org/abs/1805.04833)", ACL 2018: top k.
# - P. Michel, O. Levy, G. Neubig, "[Are Sixteen Heads Really Better than One?](https://arxiv.org/abs/1905.10650)", NeurIPS 2019; S. Jain, B. C. Wallace, "[Attention is not Explanation](https://arxiv.org/abs/1902.10186)", NAACL 2019.
# - T. Dettmers et al., "[LLM.int8()](https://arxiv.org/abs/2208.07339)", NeurIPS 2022: wild activations; E. Frantar et al., "[GPTQ](https://arxiv.org/abs/2210.17323)", ICLR 2023.
# - M. McCloskey, N. J. Cohen, "[Catastrophic Interference in Connectionist Networks](https://doi.org/10.1016/S0079-7421%2808%2960536-8)", 1989.
# - H. Touvron et al., "[Llama 2](https://arxiv.org/abs/2307.09288)", 2023, and A. Dubey et al., "[The Llama 3 Herd of Models](https://arxiv.org/abs/2407.21783)", 2024: the sizes in *What it costs*.
# - transformers' documentation: "[Attention backends](https://huggingface.co/docs/transformers/attention_interface)", "[Generation strategies](https://huggingface.co/docs/transformers/generation_strategies)", "[Caching](https://huggingface.co/docs/transformers/cache_explanation)"; [its source](https://github.com/huggingface/transformers), Apache-2.0. huggingface_hub's: "[Understand caching](https://huggingface.co/docs/huggingface_hub/guides/manage-cache)". PyTorch's: [`torch.nn.functional.scaled_dot_product_attention`](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html).
