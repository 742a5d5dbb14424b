"""Write a notebook as the bytes of a file."""

import nbformat
from nbformat import NotebookNode


def to_bytes(notebook: NotebookNode) -> bytes:
    """Return the notebook as sorted, indented JSON with a newline at the end."""
    return (nbformat.writes(notebook, version=4).rstrip("\n") + "\n").encode()
