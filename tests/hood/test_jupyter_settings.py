"""JupyterLab's settings for learners and for instructors."""

import os

import pytest
from jupyter_server.services.config import ConfigManager

from hood.phase_paths import ROOT

LEARNERS = ROOT / "hood" / "learner" / "jupyter"
TEACHERS = ROOT / "hood" / "classroom" / "marking" / "jupyter"
TRACKER = "@jupyterlab/notebook-extension:tracker"
NEWS = "@jupyterlab/apputils-extension:notification"
MENU = "@jupyterlab/mainmenu-extension:plugin"


@pytest.mark.parametrize(
    ("folders", "without", "menu"),
    [([LEARNERS], ["@jupyter/nbgrader"], False), ([TEACHERS, LEARNERS], [], True)],
)
def test_both_have_links_to_sections_and_no_news_and_teachers_the_menus(
    folders, without, menu, monkeypatch, tmp_path
):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", os.pathsep.join(map(str, folders)))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    read = ConfigManager(config_dir_name="labconfig")  # as JupyterLab reads them
    disabled = read.get("page_config")["disabledExtensions"]
    assert [name for name, is_disabled in disabled.items() if is_disabled] == without
    settings = read.get("default_setting_overrides")
    # other links do not reach a section of a notebook that is still opening
    assert settings[TRACKER] == {"windowingMode": "full"}
    assert settings[NEWS] == {"fetchNews": "false", "checkForUpdates": False}
    assert (MENU in settings) == menu


@pytest.mark.parametrize("place", ["Makefile", "docs/how-to/jupyterhub.md"])
def test_instructors_have_both_folders(place):
    assert "hood/classroom/marking/jupyter:" in (ROOT / place).read_text(encoding="utf-8")
