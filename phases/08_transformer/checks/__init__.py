"""What the hidden cells of lab 08 check.

Points hang on values: masks, outputs, gradients, words, counts, weights, perplexities. How often
`generate` calls the model, what `load_strictly` raises, and whether `complete` asks for all prompts at
once, are claims of the learner's process.
"""

from .attend_cached import attend_cached
from .complete import complete
from .fine_tune import fine_tune
from .flops import flops
from .from_hf import from_hf
from .generate import generate
from .grouped import grouped
from .multi_head import multi_head
from .pick import pick
from .visible import visible

__all__ = [
    "visible",
    "multi_head",
    "attend_cached",
    "pick",
    "generate",
    "flops",
    "from_hf",
    "complete",
    "grouped",
    "fine_tune",
]
