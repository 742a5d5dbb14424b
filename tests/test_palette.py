"""The colours of the class's pages are those of the course's figures."""

from hood.course import course
from hood.palette import COLOURS, palette
from hood.phase_paths import ROOT
from utils.notebook import style


def test_the_course_has_one_look():
    """If a colour changes in one of the two places, this fails. Each page has all colours."""
    figures = {
        "ink": style.INK,
        "muted": style.MUTED,
        "rule": style.RULE,
        "card": style.CARD,
        "link": style.STORAGE.colour,
        "full": style.VIEW.colour,
        "on_full": style.VIEW.on,
        "full_tint": style.VIEW.tint,
        "alarm": style.GRADIENT.colour,
        "on_alarm": style.GRADIENT.on,
        "hint": style.KERNEL.tint,
        "right": style.RIGHT,
        "right_tint": style.RIGHT_TINT,
        "wrong": style.WRONG,
        "wrong_tint": style.WRONG_TINT,
    }
    assert {role: course(ROOT).palette[role] for role in COLOURS} == figures


def test_a_course_may_have_colours_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "course.toml").write_text('[palette]\nright = "#0000ff"\n')
    monkeypatch.chdir(tmp_path)
    assert palette() == COLOURS | {"right": "#0000ff"}
