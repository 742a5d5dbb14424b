"""The word-level tokenizer: one token for each of the 600 words.

The tokenizer's file is JSON in the format of Hugging Face's `tokenizers` (a WordLevel model). So
`PreTrainedTokenizerFast(tokenizer_file=...)` can read it.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

DATA = Path(__file__).with_name("data")

SPECIAL = ("<pad>", "<bos>", "<eos>")
PAD, BOS, EOS = range(3)  # their ids

_PIECES = re.compile(r"<\w+>|\w+|[^\w\s]")  # a cue, a word, or one mark of punctuation


class Tokenizer:
    """Turns words into ids, and ids into words. The id of a word is its index in ``vocabulary``."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.vocabulary = tuple(vocabulary)
        self._ids = {word: index for index, word in enumerate(self.vocabulary)}
        if len(self._ids) != len(self.vocabulary):
            raise ValueError("the vocabulary has a word twice")
        if self.vocabulary[:3] != SPECIAL:
            raise ValueError(f"expected a vocabulary that begins with {SPECIAL}")

    def __len__(self) -> int:
        return len(self.vocabulary)

    def id(self, word: str) -> int:
        """Return the id of one word. For an unknown word, raises ValueError with similar words."""
        if word in self._ids:
            return self._ids[word]
        lower = {known.lower(): known for known in self.vocabulary}
        near = [lower[key] for key in difflib.get_close_matches(word.lower(), lower, n=3)]
        hint = f": did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ValueError(f"{word!r} is not one of MiniGPT's {len(self)} words{hint}")

    def encode(self, text: str | Iterable[str]) -> list[int]:
        """Return the ids of a text or of words, without additional tokens. Capitals matter."""
        words = _PIECES.findall(text) if isinstance(text, str) else text
        return [self.id(word) for word in words]

    def words(self, ids: Iterable[int]) -> list[str]:
        found = [int(index) for index in ids]
        wrong = [index for index in found if not 0 <= index < len(self)]
        if wrong:
            raise ValueError(f"expected ids from 0 to {len(self) - 1}, got {wrong[0]}")
        return [self.vocabulary[index] for index in found]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids, without `<pad>`, `<bos>` and `<eos>`.

        There is no space before a full stop.
        """
        words = (word for word in self.words(ids) if word not in SPECIAL)
        return " ".join(words).replace(" .", ".")

    def save(self, path: Path) -> None:
        from tokenizers import Tokenizer as Fast
        from tokenizers import models, pre_tokenizers

        fast = Fast(models.WordLevel(self._ids, unk_token="<unk>"))
        fast.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("isolated")]
        )
        fast.add_special_tokens([word for word in self._ids if re.fullmatch(r"<\w+>", word)])
        text = json.dumps(json.loads(fast.to_str()), ensure_ascii=False, indent=1)
        path.write_text(text + "\n", encoding="utf-8")


def load_tokenizer(path: Path | str = DATA / "tokenizer.json") -> Tokenizer:
    """Return the tokenizer in a JSON file, by default the tokenizer of the trained MiniGPT."""
    text = Path(path).read_text(encoding="utf-8")
    try:
        ids = json.loads(text)["model"]["vocab"]
        words = sorted(ids, key=ids.__getitem__)
        if [ids[word] for word in words] != list(range(len(words))):
            raise ValueError("the ids are not 0, 1, 2, …")
        return Tokenizer(words)
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is not a word-level tokenizer file: {error}") from error
