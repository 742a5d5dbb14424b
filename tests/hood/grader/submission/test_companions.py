"""Which of a learner's files are kept, so that others can open them."""

import pytest

from hood.grader.submission.companions import is_harmless, merged, shown, unshown


@pytest.mark.parametrize(
    "name", ["a.csv", "data/A.PNG", "w.safetensors", "a.tar.gz", "notes.txt", "a.jsonl"]
)
def test_data_and_pictures_are_shown(name):
    assert is_harmless(name)


@pytest.mark.parametrize(
    "name",
    [
        *("a.html", "a.HTM", "a.xhtml", "a.xht", "a.shtml", "a.svg", "a.svgz", "a.xml", "a.xsl"),
        *("a.js", "a.mjs", "a.pdf", "a.mhtml", "a.mht", "a.swf", "a.rdf", "a.wasm", "a.css"),
        *("a.ipynb", "a.IPYNB", "a.md", "a.vl.json", "a.html.gz", "a.csv.html", "a.html.csv"),
        *("helper.py", "a.pyc", "a.so", "a.py.txt", "a.txt.py", "b/ipykernel_launcher.py"),
        *("a", ".csv", "a.", "a.csv.", "a.csv ", "a.html\n.csv", "a.csv/b", "a.csv\u202elmth.a"),
    ],
)
def test_files_that_a_browser_or_a_kernel_may_run_are_not_shown(name):
    assert not is_harmless(name)


@pytest.mark.parametrize(
    "name",
    [
        *(".vscode/settings.json", ".vscode/tasks.json", ".vscode/a.csv", ".idea/a.txt"),
        *("nbgrader_config.json", "jupyter_server_config.json", "jupyter_config.json"),
        *(".jupyter/jupyter_notebook_config.json", ".ipython/profile_default/a.json"),
        *("conftest.py", "pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", "package.json"),
        *("environment.yml", "docker-compose.yaml", "kernels/x/kernel.json", "deno.json"),
        *("CMakeLists.txt", "a/requirements.txt", ".env.txt", ".hidden.csv"),
    ],
)
def test_settings_for_programs_started_there_are_not_shown(name):
    assert not is_harmless(name)
    assert unshown({name: b""}, ()) == [name]


def test_all_of_the_labs_own_files_are_shown():
    theirs = {"logo.svg": b"theirs", "page.html": b"theirs", "a.csv": b"theirs"}
    given = {"logo.svg": b"ours"}
    assert unshown(theirs, given) == ["page.html"]
    assert shown(merged(theirs, given), given) == {"logo.svg": b"ours", "a.csv": b"theirs"}
