"""The colours of the class's pages are those of the course's figures."""

from hood.classroom.formats.page_style import PALETTE, palette
from hood.course import course
from hood.phase_paths import ROOT
from utils.notebook import style


def test_the_course_has_one_look():
    """A colour that changes in one of the two places is noticed; no page lacks one."""
    figures = {
        "ink": style.INK,
        "muted": style.MUTED,
        "rule": style.RULE,
        "card": style.CARD,
        "link": style.STORAGE.colour,
        "full": style.VIEW.colour,
        "on_full": style.VIEW.on,
        "alarm": style.GRADIENT.colour,
        "on_alarm": style.GRADIENT.on,
        "hint": style.KERNEL.tint,
        "right": style.RIGHT,
        "wrong": style.WRONG,
    }
    assert {role: course(ROOT).palette[role] for role in PALETTE} == figures


def test_a_course_may_have_colours_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "course.toml").write_text('[palette]\nright = "#0000ff"\n')
    monkeypatch.chdir(tmp_path)
    assert palette() == PALETTE | {"right": "#0000ff"}
