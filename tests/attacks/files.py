"""Notebook files that are large, grow large when read, or are no notebooks."""

from __future__ import annotations

import gzip
import io
import json
import zipfile

from nbformat.v4 import new_code_cell, new_markdown_cell

from tests.attacks.catalogue import Family
from tests.attacks.submission import Work

family = Family("files")
attack = family.attack
TWICE = ("twice",)


@attack(costs=TWICE, tells="not text in UTF-8")
def is_compressed(work: Work) -> None:
    """Hands in a compressed file of a few kilobytes that unpacks to a gigabyte."""
    work.raw = gzip.compress(bytes(30_000_000))


@attack(costs=TWICE, tells="not text in UTF-8|not valid JSON")
def is_an_archive(work: Work) -> None:
    """Hands in an archive named like a notebook, with paths that lead out of any folder."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../../../../tmp/hood-loot", "x")
    work.raw = packed.getvalue()


@attack(costs=TWICE, tells="cells; at most 2,000 are read")
def has_a_hundred_thousand_cells(work: Work) -> None:
    """Hands in a hundred thousand cells, each to be run, cleaned and shown."""
    tree = json.loads(work.bytes())
    one = {
        "cell_type": "code",
        "metadata": {},
        "source": "1",
        "outputs": [],
        "id": "x",
        "execution_count": None,
    }
    tree["cells"][2:2] = [one] * 100_000
    work.raw = json.dumps(tree).encode()


@attack(costs=TWICE, tells="characters of code and text", dangerous=True)
def has_an_enormous_code_cell(work: Work) -> None:
    """Hands in one cell of a million small statements, to be parsed and coloured."""
    work.nb.cells.insert(3, new_code_cell("a\n" * 1_000_000))


@attack(costs=TWICE, tells="characters of code and text")
def has_an_enormous_text_cell(work: Work) -> None:
    """Hands in megabytes of markup that is slow to clean: thousands of nested tags."""
    work.nb.cells.insert(3, new_markdown_cell("<b><i>" * 700_000))


@attack()
def has_markup_that_is_slow(work: Work) -> None:
    """Hands in text that is slow to clean and to render: nested tags, brackets, quotes, tables."""
    for unit in ("<b><p>", "[", "> ", "*_", "`", "<!--", "![", "- ", "| a ", "&", "\\", "$", "<a "):
        work.text(unit * 500)


@attack(costs=TWICE, tells="not valid JSON")
def is_deep(work: Work) -> None:
    """Hands in JSON so deeply nested that a reader without a limit overflows its stack."""
    work.raw = b'{"nbformat": 4, "cells": ' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}"


@attack(costs=TWICE, tells="formats up to 4 are read|could not be converted|No cell of this lab")
def is_of_a_format_that_never_was(work: Work) -> None:
    """Claims the notebook format 1e300, with malformed worksheets."""
    work.raw = b'{"nbformat": 1' + b"0" * 4000 + b', "cells": []}'


@attack(costs=TWICE, tells="could not be converted|No cell of this lab|not a notebook")
def is_an_old_notebook(work: Work) -> None:
    """Claims format 2 or 3, with worksheets that a converter would walk through."""
    sheets = [{"cells": [{"cell_type": "code", "input": {"a": [1]}, "outputs": 7}]}, 3, None]
    work.raw = json.dumps({"nbformat": 3, "nbformat_minor": [], "worksheets": sheets}).encode()


@attack(costs=TWICE, tells="empty|not valid JSON|not text")
def is_nothing(work: Work) -> None:
    """Hands in a byte order mark and spaces."""
    work.raw = b"\xef\xbb\xbf" + b" " * 1000


@attack()
def has_halves_of_characters(work: Work) -> None:
    """Puts lone surrogates, zero bytes and a right-to-left override into code and names."""
    tree = json.loads(work.bytes())
    tree["cells"].append(
        {
            "cell_type": "code",
            "metadata": {},
            "id": "\ud800",
            "outputs": [],
            "execution_count": None,
            "source": ["print('\ud800\udfff \u202e')", 7],
        }
    )
    tree["cells"].append(
        {
            "cell_type": "markdown",
            "metadata": {},
            "id": 7,
            "source": "\x00\ud800",
            "attachments": {"\ud800": {"image/png": "\ud800", "a": 3}},
        }
    )
    work.raw = json.dumps(tree).encode()


@attack(costs=TWICE, tells="at most 50 MB")
def is_too_large(work: Work) -> None:
    """Hands in sixty megabytes."""
    work.raw = b" " * 60_000_000 + work.bytes()


@attack(costs=TWICE, tells="more than 2,000,000 values")
def has_millions_of_small_things(work: Work) -> None:
    """Hands in a list of millions of empty cells, thirty times as large in memory as on disk."""
    work.raw = b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [' + (
        b"{}," * 6_000_000 + b"{}]}"
    )
