"""A file is replaced at once, whoever else writes it."""

import pytest

from grader import whole_file
from grader.whole_file import write_whole


def test_two_who_write_the_same_file_never_mix(tmp_path, monkeypatch):
    path, replace = tmp_path / "file", whole_file.os.replace

    def second_comes_first(source, target):
        monkeypatch.setattr(whole_file.os, "replace", replace)
        assert write_whole(path, b"second")
        assert path.read_bytes() == b"second"
        replace(source, target)

    monkeypatch.setattr(whole_file.os, "replace", second_comes_first)
    assert write_whole(path, b"first")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
    assert not write_whole(path, b"first")


def test_what_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    def refuses(source, target):
        raise OSError("no space left")

    monkeypatch.setattr(whole_file.os, "replace", refuses)
    with pytest.raises(OSError, match="no space left"):
        write_whole(tmp_path / "file", b"x")
    assert list(tmp_path.iterdir()) == []
