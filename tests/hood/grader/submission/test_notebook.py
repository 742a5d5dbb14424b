"""Reading any bytes gives cells, or a message."""

import json

import nbformat
import pytest

from hood.grader.submission import notebook as module
from hood.grader.submission.notebook import Unreadable, read_submission


def notebook(*cells, **fields) -> bytes:
    tree = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells), **fields}
    return json.dumps(tree).encode()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b'{"cells": [{"cell', "damaged"),
        (b"[" * 100_000, "damaged"),
        (b"\xff\xfe\x00a", "UTF-8"),
        (b"\n<!DOCTYPE html>\n<title>lab</title>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1", "a Git LFS pointer"),
        (b"[1, 2]", "not a notebook"),
        (b'"text"', "not a notebook"),
        (b'{"cells": []}', "not a notebook"),
        (b'{"nbformat": "4", "cells": []}', "not a notebook"),
        (b'{"nbformat": 4, "cells": {}}', "list of cells"),
        (b'{"nbformat": 5, "cells": []}', "format 5"),
        (b'{"nbformat": 3, "worksheets": 7}', "old format 3"),
    ],
)
def test_an_invalid_notebook_is_refused_in_words(data, says):
    with pytest.raises(Unreadable, match=says):
        read_submission(data)


def test_a_large_file_is_refused_before_it_is_parsed(monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 1000)
    with pytest.raises(Unreadable, match="MB"):
        read_submission(b"x" * 1001)


def test_source_may_be_a_list_of_lines_or_text():
    one = {"cell_type": "code", "source": ["a = 1\n", "b = 2"]}
    two = {"cell_type": "code", "source": "a = 1\nb = 2"}
    assert [cell.source for cell in read_submission(notebook(one, two))] == ["a = 1\nb = 2"] * 2


@pytest.mark.parametrize(
    "odd",
    [None, 7, "text", [], {}, {"cell_type": "magic"}, {"cell_type": "code", "source": {"a": 1}}],
)
def test_invalid_cells_are_left_out(odd):
    good = {"cell_type": "markdown", "source": "here"}
    assert [cell.source for cell in read_submission(notebook(odd, good))] == ["here"]


@pytest.mark.parametrize("metadata", [None, [], "x", {"nbgrader": 3, "tags": "no"}])
def test_odd_metadata_is_ignored(metadata):
    [cell] = read_submission(notebook({"cell_type": "code", "source": "", "metadata": metadata}))
    assert (cell.settings, cell.grade_id, cell.tags) == ({}, None, [])


def test_a_grade_id_of_another_type_is_ignored():
    metadata = {"nbgrader": {"grade_id": ["twice"]}}
    [cell] = read_submission(notebook({"cell_type": "code", "source": "", "metadata": metadata}))
    assert cell.grade_id is None


def test_a_lone_surrogate_becomes_a_writable_character():
    [cell] = read_submission(notebook({"cell_type": "code", "source": "x = '\ud800'"}))
    assert cell.source == "x = '?'"


def test_a_byte_order_mark_is_accepted():
    data = b"\xef\xbb\xbf" + notebook({"cell_type": "code", "source": "1"})
    assert read_submission(data)[0].source == "1"


def test_old_formats_are_converted():
    old = nbformat.v3.new_notebook(
        worksheets=[nbformat.v3.new_worksheet(cells=[nbformat.v3.new_code_cell("x = 1")])]
    )
    assert read_submission(json.dumps(old).encode())[0].source == "x = 1"


def test_of_attachments_only_pictures_are_kept():
    attachments = {"a.png": {"image/png": "AAAA", "text/html": "<script>"}, "b": {"x/y": "z"}}
    cell = {"cell_type": "markdown", "source": "", "attachments": attachments}
    assert read_submission(notebook(cell))[0].attachments == {"a.png": {"image/png": "AAAA"}}


def test_a_notebook_too_long_to_grade_is_refused():
    cell = {"cell_type": "code", "source": "x" * 60_000}
    with pytest.raises(Unreadable, match="180,000 characters of code and text"):
        read_submission(notebook(*[cell] * 3))
    with pytest.raises(Unreadable, match="3,000 cells"):
        read_submission(notebook(*[{}] * 3000))


def test_a_notebook_too_large_in_memory_is_refused_before_parsing():
    with pytest.raises(Unreadable, match="values"):
        read_submission(b'{"nbformat": 4, "cells": [' + b"{}," * 1_000_001 + b"{}]}")
