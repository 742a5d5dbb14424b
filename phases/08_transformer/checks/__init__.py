"""What the hidden cells of lab 08 check.

Points depend on values: masks, outputs, gradients, words, counts, weights, perplexities. Three things
are claims of the learner's process: how often `generate` calls the model, what `load_strictly`
raises, and whether `complete` passes all prompts at once.
"""
