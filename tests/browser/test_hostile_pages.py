"""No click on a learner's page runs the page's code with the instructor's session."""

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from playwright.sync_api import Page, expect

from tests.hood.tiny import environment

pytestmark = [pytest.mark.browser, pytest.mark.slow(45)]

HW = "hw"
# A page that raises its learner's grade with the session of the person who opens it. The page's
# title says whether that worked.
PROOF = """<title>opened</title><script>
(async () => {
  const own = location.pathname.split("/")[3];
  const grades = await (await fetch(`/formgrader/api/grades?submission_id=${own}`)).json();
  const token = document.cookie.match(/_xsrf=([^;]+)/)[1];
  await fetch(`/formgrader/api/grade/${grades[0].id}`, {
    method: "PUT", headers: {"X-XSRFToken": token, "Content-Type": "application/json"},
    body: JSON.stringify({manual_score: 3}),
  });
  document.title = "raised";
})().catch(() => { document.title = "refused"; });
</script>"""
PAGES = ("proof.html", "proof.svg", "proof.xhtml")
LINKS = [
    "[my derivation](proof.html)",
    "<a href='proof.html'>my drawing</a>",
    "[my table][t]\n\n[t]: proof.html",
    "$\\href{proof.html}{my formula}$",
]


@pytest.fixture(scope="module")
def graded(lab):
    """The id of a hostile submission that formgrader's button has graded."""
    nb = new_notebook()
    kind = {"grade": False, "solution": False, "locked": False, "task": False, "schema_version": 3}
    solution = kind | {"solution": True, "grade_id": "f"}
    graded = kind | {"grade": True, "locked": True, "grade_id": "test", "points": 3}
    stub = "### BEGIN SOLUTION\nx = 1\n### END SOLUTION"
    nb.cells = [
        new_code_cell(stub, metadata={"nbgrader": solution}),
        new_code_cell("assert x == 1", metadata={"nbgrader": graded}),
    ]
    source = lab.course / "source" / HW / f"{HW}.ipynb"
    source.parent.mkdir()
    nbformat.write(nb, source)
    run(lab.course, "generate_assignment", HW)
    folder = lab.course / "submitted" / "eve" / HW
    shutil.copytree(lab.course / "release" / HW, folder)
    nb = nbformat.read(folder / f"{HW}.ipynb", as_version=4)
    nb.cells += [new_markdown_cell(text) for text in LINKS]
    nb.cells.append(new_markdown_cell(r"so $\frac{1}{2}$"))
    nb.cells.append(new_markdown_cell("[elsewhere](https://example.net/) [above](#top)"))
    nb.cells.append(
        new_code_cell(
            "from IPython.display import HTML\nHTML('<a href=proof.html>my output</a>')\n"
        )
    )
    nbformat.write(nb, folder / f"{HW}.ipynb")
    for name in PAGES:
        (folder / name).write_text(PROOF)
    (folder / "data.csv").write_text("1")
    run(lab.course, "autograde", HW, "--student=eve")
    with gradebook(lab) as found:
        return found.find_submission_notebook(HW, HW, "eve").id


def run(course: Path, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *words],
        cwd=course,
        env=environment(course),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def gradebook(lab) -> Gradebook:
    return Gradebook(f"sqlite:///{lab.course / 'gradebook.db'}")


def raised(lab) -> float | None:
    """The mark given by hand, or None."""
    with gradebook(lab) as found:
        return found.find_grade("test", HW, HW, "eve").manual_score


def submission(page: Page, lab, graded: str) -> str:
    """Open the submission in formgrader as the instructor; returns its address."""
    address = f"{lab.address}/formgrader/submissions/{graded}/"
    # Log in on another page, because nbgrader's own pages set a cookie only for their folder.
    page.request.get(f"{lab.address}/api/me?token={lab.token}")
    page.goto(address)
    expect(page.get_by_text("my derivation")).to_be_visible()
    expect(page).to_have_url(f"{address}?index=0")  # which formgrader's script adds
    return address


def test_a_click_on_a_learners_words_leads_nowhere(page, lab, graded):
    address = submission(page, lab, graded)
    for words in ("my derivation", "my drawing", "my table", "my output"):
        assert leads_to(page, words) == []
        page.get_by_text(words).last.click()
        page.wait_for_timeout(200)
        assert page.url == f"{address}?index=0", words
    page.wait_for_timeout(1000)
    assert page.url == f"{address}?index=0"
    assert raised(lab) is None


def test_formgraders_own_keys_work(page, lab, graded):
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    submission(page, lab, graded)
    score = page.locator(".tabbable").first
    expect(score).to_be_focused()
    page.keyboard.press("Escape")
    expect(score).not_to_be_focused()
    page.keyboard.press("Enter")
    expect(score).to_be_focused()
    assert wrong == []


def leads_to(page: Page, words: str) -> list[str]:
    """Addresses of links with these words."""
    return page.eval_on_selector_all(
        "a[href]",
        "(links, words) => links.filter(a => a.textContent.includes(words)).map(a => a.href)",
        words,
    )


def test_only_absolute_links_and_links_within_the_page_stay(page, lab, graded):
    address = submission(page, lab, graded)
    assert leads_to(page, "elsewhere") == ["https://example.net/"]
    assert leads_to(page, "above") == [f"{address}?index=0#top"]
    inside = page.eval_on_selector_all(
        "#notebook-container a[href]", "links => links.map(a => a.getAttribute('href'))"
    )
    assert all(one.startswith(("https://", "#")) for one in inside), inside


def test_the_page_loads_nothing_from_elsewhere_and_renders_formulas(page, lab, graded):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    submission(page, lab, graded)
    page.wait_for_load_state("networkidle")
    assert len(asked) > 1
    assert [url for url in asked if not url.startswith((lab.address, "data:"))] == []
    assert page.locator("math mfrac").count() == 1


def test_the_page_is_not_served_with_the_graded_notebook(page, lab, graded):
    address = submission(page, lab, graded)
    assert page.request.get(address + "data.csv").ok
    for name in PAGES:
        assert page.request.get(address + name).status == 404
        assert not (lab.course / "autograded" / "eve" / HW / name).exists()


@pytest.mark.parametrize("where", ["left by an older grading", "where it was handed in"])
def test_an_existing_page_runs_without_the_session(page, lab, graded, where):
    address = submission(page, lab, graded)
    path = f"..%2f..%2f..%2fsubmitted%2feve%2f{HW}%2fproof.html"
    if where == "left by an older grading":
        path = "old.html"
        (lab.course / "autograded" / "eve" / HW / path).write_text(PROOF)
    page.goto(address + path)
    expect(page).to_have_title("refused")
    assert raised(lab) is None


def test_the_same_script_in_jupyters_own_origin_raises_the_grade(page, lab, graded):
    """The script itself works. The other tests rely on this."""
    submission(page, lab, graded)
    page.add_script_tag(content=PROOF.partition("<script>")[2].partition("</script>")[0])
    expect(page).to_have_title("raised")
    assert raised(lab) == 3
    with gradebook(lab) as found:
        found.find_grade("test", HW, HW, "eve").manual_score = None
        found.db.commit()


HOSTILE_ANSWER = """\
import os, sys
import builtins
builtins.AssertionError = type("Quiet", (BaseException,), {})
for fd in range(3, 64):
    try:
        os.write(fd, b'{"content": {"name": "stdout", "text": "full marks"}}')
    except OSError:
        pass
for path in ("gradebook.db", "../../source", "/etc/shadow", os.path.expanduser("~/.ssh")):
    try:
        print("read", len(os.listdir(path) if os.path.isdir(path) else open(path).read()))
    except OSError:
        pass
x = 7
os._exit(0)
"""


def test_formgraders_button_grades_a_hostile_submission_in_the_sandbox(page, lab, graded):
    folder = lab.course / "submitted" / "mallory" / HW
    shutil.copytree(lab.course / "release" / HW, folder)
    nb = nbformat.read(folder / f"{HW}.ipynb", as_version=4)
    nb.cells[0].source = HOSTILE_ANSWER
    nbformat.write(nb, folder / f"{HW}.ipynb")
    before = {path: path.read_bytes() for path in (lab.course / "source").rglob("*.ipynb")}
    page.request.get(f"{lab.address}/api/me?token={lab.token}")
    page.goto(f"{lab.address}/formgrader/manage_submissions/{HW}")
    row = page.get_by_role("row").filter(has_text="mallory")
    row.locator(".autograde a").click()
    expect(page.get_by_role("dialog")).to_contain_text("autograde", ignore_case=True)
    expect(row).to_contain_text("0 / 3")
    with gradebook(lab) as found:
        assert found.find_submission(HW, "mallory").score == 0
        assert found.find_grade("test", HW, HW, "eve").manual_score is None
    told = nbformat.read(lab.course / "autograded" / "mallory" / HW / f"{HW}.ipynb", as_version=4)
    outputs = str([cell.get("outputs") for cell in told.cells])
    assert "full marks" not in outputs
    assert "read " not in outputs
    assert "died" in outputs or "exit" in outputs
    assert {path: path.read_bytes() for path in (lab.course / "source").rglob("*.ipynb")} == before
