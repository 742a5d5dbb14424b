"""The pictures of views: a lesson is executed for them once, and again after a change."""

import json

import pytest

from hood.authoring.notebooks.text import Problem, Refused
from hood.authoring.site import frames
from hood.authoring.site.frames import VIEWS, frames_of
from hood.phase_paths import ROOT, PhasePaths

LESSON = """\
# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Rows"}
# ---

# %%
import torch

from utils.views import stride_explorer

# %%
print("first")
stride_explorer(torch.zeros(2, 2))
"""


@pytest.fixture
def phase(tmp_path):
    (tmp_path / "utils").symlink_to(ROOT / "utils")
    found = PhasePaths(tmp_path, "01_rows")
    found.folder.mkdir(parents=True)
    found.lesson.write_text(LESSON)
    return found


@pytest.mark.slow(8)
def test_a_lesson_is_executed_for_its_views_and_the_pictures_are_kept(phase, tmp_path, monkeypatch):
    said = []
    cache = tmp_path / "frames"
    (folder,) = frames_of([phase], cache, said.append, 1).values()
    assert said == []
    (views,) = json.loads((folder / VIEWS).read_text()).values()
    (view,) = views.values()
    assert list(views) == ["1"]  # the output after the printed one
    assert [control["name"] for control in view["controls"]] == ["dim 0", "dim 1"]
    assert sorted(view["places"]) == ["0,0", "0,1", "1,0", "1,1"]
    script = (folder / f"{view['name']}.js").read_text()
    moving = json.loads(script.partition(" = ")[2].rstrip(";\n"))
    assert sorted(moving["frames"]) == sorted(view["places"])
    assert 1 <= len(moving["pictures"]) <= 3
    assert (folder / view["base"]).read_bytes().startswith(b"\x89PNG")
    assert not phase.page.exists()

    monkeypatch.setattr(frames, "run_page", None)  # a second execution would fail
    assert frames_of([phase], cache, said.append, 1) == {phase: folder}


@pytest.mark.slow(2)
def test_pictures_of_an_earlier_text_are_removed_and_those_of_other_lessons_stay(
    phase, tmp_path, monkeypatch
):
    monkeypatch.setattr(frames, "run_page", lambda *_: None)
    cache = tmp_path / "frames"
    other = cache / "02_more-0123456789abcdef"
    other.mkdir(parents=True)
    (first,) = frames_of([phase], cache, str, 1).values()
    phase.lesson.write_text(LESSON.replace("first", "second"))
    (second,) = frames_of([phase], cache, str, 1).values()
    assert second != first
    assert sorted(cache.iterdir()) == sorted([second, other])
    assert (second / VIEWS).read_text() == "{}"


def test_a_lesson_that_cannot_be_executed_has_still_views_and_is_reported(
    phase, tmp_path, monkeypatch
):
    def refuses(*_):
        raise Refused([Problem("phases/01_rows/lesson.py", 9, "the kernel died")])

    monkeypatch.setattr(frames, "run_page", refuses)
    said = []
    assert frames_of([phase], tmp_path / "frames", said.append, 1) == {}
    (words,) = said
    assert words.startswith("notebooks/01_rows.ipynb: its views don't move")
    assert "phases/01_rows/lesson.py:9: the kernel died" in words
