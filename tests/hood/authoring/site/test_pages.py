"""Addresses and anchors, predictions that fold, drills that answer, links that work."""

import base64
import json
import re

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from sphinx.util.docutils import docutils_namespace

from hood import UserError
from hood.addresses import docname_of, link, uri
from hood.authoring.notebooks.folds import fold_answers
from hood.authoring.notebooks.text import NEEDS_KERNEL
from hood.authoring.site.build import MADE, clear, faults, run_sphinx, settings
from hood.authoring.site.markdown import html, page_markdown
from hood.authoring.site.pages import page_of
from hood.course import course
from hood.grader.cleaning.formulas import mathml
from hood.notebook_file import to_bytes
from hood.phase_paths import ROOT, PhasePaths, slug
from utils.notebook import drills


@pytest.mark.parametrize(
    ("path", "docname"),
    [
        ("notebooks/start.ipynb", "index"),
        ("notebooks/01_tensors.ipynb", "lessons/01_tensors"),
        ("release/01_tensors/01_tensors.ipynb", "labs/01_tensors"),
        ("release/01_tensors/other.ipynb", None),
        ("source/01_tensors/01_tensors.ipynb", None),
        ("README.md", None),
    ],
)
def test_a_notebook_has_an_address(path, docname):
    assert docname_of(path) == docname


@pytest.mark.parametrize(
    ("href", "within", "leads"),
    [
        ("../../notebooks/start.ipynb", "/index.md", "../index.html"),
        (
            "../../notebooks/01_tensors.ipynb#Row-major-order:-`view`",
            "/lessons/01_tensors.md#row-major-order-view",
            "../lessons/01_tensors.html#row-major-order-view",
        ),
        (
            "../../notebooks/01_tensors.ipynb#cell-id=two-modes",
            "/lessons/01_tensors.md#two-modes",
            "../lessons/01_tensors.html#two-modes",
        ),
        ("#What-it%20costs", *["#what-it-costs"] * 2),
        ("https://pytorch.org/a#B", *["https://pytorch.org/a#B"] * 2),
        ("mailto:a@b.org", *["mailto:a@b.org"] * 2),
    ],
)
def test_a_link_between_notebooks_becomes_one_between_pages(href, within, leads):
    lab = "release/01_tensors/01_tensors.ipynb"
    assert link(href, lab, None) == within
    assert link(href, lab, "labs/01_tensors") == leads


def test_addresses_are_relative():
    assert uri("_images/a.png", "lessons/01_tensors") == "../_images/a.png"
    assert uri("lessons/01_tensors", "index") == "lessons/01_tensors.html"
    assert uri("lessons/02_autograd", "lessons/01_tensors") == "02_autograd.html"


def test_an_anchor_is_the_heading_in_lower_case():
    assert slug("The silent (64, 64) bug") == "the-silent-64-64-bug"
    assert slug("When `view` works") == slug("When view works") == "when-view-works"
    assert slug("Resumen en español") == "resumen-en-espanol"


def code(printed="", tags=()):
    outputs = [new_output("stream", text=printed)] if printed else []
    return new_code_cell("c", outputs=outputs, metadata={"tags": list(tags)})


def made(tmp_path, *cells, repository=""):
    """The Markdown of a lesson's page with these cells: words, or code cells."""
    phase = PhasePaths(tmp_path, "01_rows")
    nodes = [new_markdown_cell(cell) if isinstance(cell, str) else cell for cell in cells]
    notebook = new_notebook(cells=[new_markdown_cell("# Rows"), *nodes])
    fold_answers(notebook)
    phase.page.parent.mkdir(exist_ok=True)
    phase.page.write_bytes(to_bytes(notebook))
    return page_markdown(page_of(phase, phase.page), "", {}, tmp_path, repository)


ASK = "**Predict.** What is printed?"


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        ([ASK, code("o"), "Five.\n\nNext."], "**Predict.** c [ o Five. ] Next."),
        ([ASK, code(), code("o"), "Five."], "**Predict.** c c [ o Five. ]"),
        ([ASK, code("o"), code("o"), "Five."], "**Predict.** c [ o c o Five. ]"),
        ([ASK, code("o"), code("d", ["hide-input"]), "Five."], "**Predict.** c [ o ] d Five."),
        ([ASK, code("o"), "## Next\n\nFive."], "**Predict.** c [ o ] ## Five."),
        ([ASK, code("o"), "So:\n\n- one\n\nNext."], "**Predict.** c [ o So: - ] Next."),
        ([ASK, code("o")], "**Predict.** c [ o ]"),
        (["Predict nothing.", code("o"), "A."], "Predict c o A."),
    ],
)
def test_the_answer_to_a_prediction_is_one_fold(cells, shown, tmp_path):
    lines = made(tmp_path, *cells).split("# Rows\n")[1].split("\n")
    words = [line.split()[0] for line in lines if line and not line.startswith(("```", ":class"))]
    short = " ".join(words).replace("<details", "[").replace("</details>", "]")
    assert short == shown


def paper(ask, *args, **kwargs):
    """The HTML that a drill shows without a kernel."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drills, "in_ipython", lambda: True)
        patch.setattr("IPython.display.publish_display_data", found.update)
        ask(*args, **kwargs)
    return found["text/html"]


def asked(markup):
    """The form that the site makes of a drill's paper form."""
    return html(markup, None, None, None)


def decoded(markup):
    (encoded,) = re.findall(r'data-drill="([^"]+)"', markup)
    return json.loads(base64.b64decode(encoded))


def folded(markup):
    """The folds that a reader without scripts can open: (summary, words)."""
    (markup,) = re.findall("<noscript>(.*)</noscript>", markup, re.DOTALL)
    pattern = r"<details[^>]*><summary[^>]*>(.*?)</summary><div[^>]*>(.*?)</div></details>"
    return re.findall(pattern, markup)


def test_without_scripts_the_answers_of_a_number_drill_are_folded():
    made = asked(
        paper(
            drills.number,
            "How many `bytes`?",
            153_600,
            why="Four for *each* element.",
            unit="bytes",
            tolerance=0.5,
            wrong={38_400.0: "That counts elements.", 1e-3: "Too few."},
        )
    )
    question = re.search(r'<p class="question" id="(\S+)">How many <code>bytes</code>\?</p>', made)
    assert f'<div class="answers" role="group" aria-labelledby="{question[1]}">' in made
    assert folded(made) == [
        ("The answer", "<strong>153,600 bytes.</strong> Four for <em>each</em> element."),
        ("If you got 38,400", "That counts elements."),
        ("If you got 0.001", "Too few."),
    ]
    wanted = {"answer": 153_600, "tolerance": 0.5, "unit": "bytes", "wrong": [38_400, 1e-3]}
    assert decoded(made) == wanted


def test_a_choice_has_a_button_and_folded_words_for_each_option():
    options = {"`a`": "It is a < b.", "b, or “c”": "It is.", "neither": "No."}
    made = asked(paper(drills.choice, "Which?", options, "b, or “c”"))
    shown = ["<code>a</code>", "b, or “c”", "neither"]
    assert re.findall(r'<button type="button">(.*?)</button>', made) == shown
    reasons = ["<strong>No.</strong> It is a &lt; b.", "<strong>Right.</strong> It is."]
    assert folded(made) == list(zip(shown, [*reasons, "<strong>No.</strong> No."], strict=True))
    assert decoded(made) == {"right": 1}


def test_a_cell_that_needs_a_kernel_is_not_on_the_site(tmp_path):
    button = new_code_cell("show_next()", metadata={"tags": [NEEDS_KERNEL]})
    words = new_markdown_cell("Run this cell.", metadata={"tags": [NEEDS_KERNEL]})
    shown = made(tmp_path, "Here.", words, button, "There.")
    assert "Here." in shown
    assert "There." in shown
    assert "Run this" not in shown
    assert "show_next" not in shown


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("", "A clone of the course."),
        (
            "https://a.org/c.git",
            "A clone of [the course](https://a.org/c.git) (`git clone https://a.org/c.git`).",
        ),
    ],
)
def test_text_links_the_repository_if_its_address_is_known(address, said, tmp_path):
    words = "A clone of [the course](repository:)."
    assert said in made(tmp_path, words, repository=address)


def test_math_is_rendered_without_a_script():
    made = mathml(r"\frac{\text{grad\_output}}{\sqrt{x}}", "block")
    assert made.startswith('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">')
    assert "<mfrac>" in made
    assert "<msqrt>" in made
    assert "<mtext>grad_output</mtext>" in made


def site(folder, **pages):
    for name, markup in pages.items():
        (folder / f"{name}.html").write_text(markup)
    return folder


def test_links_and_files_that_exist_are_in_order(tmp_path):
    (tmp_path / "a.png").touch()
    (tmp_path / "a.css").write_text("@font-face {src: url('a.woff2')}")
    found = site(
        tmp_path,
        a='<a href="b.html#t%C3%BA"></a><a href="#one"></a><img src="a.png"><img src="data:,">',
        b='<a href="https://elsewhere.org"></a><link rel="stylesheet" href="a.css?v=1">',
    )
    assert list(faults(found)) == []


def test_a_link_to_nowhere_and_a_foreign_file_are_found(tmp_path):
    (tmp_path / "a.css").write_text("body {background: url(https://e.org/a.png)}")
    site(
        tmp_path,
        a='<a href="c.html"></a><img src="no.png"><script src="//e.org/a.js"></script>'
        '<link rel="stylesheet" type="text/css" href="https://e.org/a.css">',
    )
    assert list(faults(tmp_path)) == [
        "a.css loads https://e.org/a.png from another site",
        "a.html loads //e.org/a.js from another site",
        "a.html loads https://e.org/a.css from another site",
        "a.html leads to c.html, which does not exist",
        "a.html leads to no.png, which does not exist",
    ]


def test_a_broken_link_in_a_text_is_an_error(tmp_path):
    sources = tmp_path / "pages"
    sources.mkdir()
    nowhere = ("#two", "/other.md", "/index.md#three")
    links = " ".join(f"[on]({address})" for address in nowhere)
    (sources / "index.md").write_text(f"# A\n\n## One\n\n{links} [on](/index.md#one)\n")
    with docutils_namespace(), pytest.raises(UserError, match="not make every page") as refused:
        run_sphinx(sources, tmp_path / "html", tmp_path, 1, settings(course(ROOT)))
    assert all(f"'{one}'" in str(refused.value) for one in ("two", "/other.md", "three"))
    assert str(refused.value).count("WARNING") == 3


def test_pages_of_an_earlier_build_are_removed_and_foreign_folders_stay(tmp_path):
    earlier = tmp_path / "html"
    earlier.mkdir()
    for name in ("old.html", MADE):
        (earlier / name).touch()
    clear(earlier)
    assert [path.name for path in earlier.iterdir()] == [MADE]
    mine = tmp_path / "mine" / "thesis.html"
    mine.parent.mkdir()
    mine.touch()
    with pytest.raises(UserError, match="has files that are not part of a site"):
        clear(mine.parent)
    assert mine.exists()


@pytest.mark.parametrize("address", ["", "https://a.org/c.git", "https://github.com/a/c"])
def test_a_page_names_its_languages_and_links_the_repository(address, tmp_path):
    sources = tmp_path / "pages"
    sources.mkdir()
    (sources / "index.md").write_text(
        "# A\n\nOne.\n\n## Resumen en español\n\nUno.\n\n## B\n\nTwo.\n"
    )
    with docutils_namespace():
        run_sphinx(sources, tmp_path / "html", tmp_path, 1, settings(course(ROOT), address))
    shown = (tmp_path / "html" / "index.html").read_text()
    assert re.findall(r'<section id="([^"]+)" lang="es">', shown) == ["resumen-en-espanol"]
    assert shown.count(' lang="') == 2  # and the `lang` of the page
    assert ("Repository" in shown) == bool(address)
    assert (f'href="{address}"' in shown) == bool(address)
    codespace = 'href="https://codespaces.new/a/c?quickstart=1"'
    assert (codespace in shown) == address.startswith("https://github.com/")


def test_sphinx_reads_markdown_as_jupyterlab_does(tmp_path):
    sources = tmp_path / "pages"
    sources.mkdir()
    words = (
        "# A\n\nSo $x^2$ it is, `$x$` and `$y$`, one $ alone, ~~no~~.\n\n"
        "## When `view` works\n\n% is no comment, {a}`b` no role, [^1] no note.\n\n"
        "[on](#when-view-works)\n"
    )
    (sources / "index.md").write_text(words)
    with docutils_namespace():
        run_sphinx(sources, tmp_path / "html", tmp_path, 1, settings(course(ROOT)))
    page = (tmp_path / "html" / "index.html").read_text().partition("<article")[2]
    assert page.count("<math") == 1
    assert "one $ alone, <s>no</s>" in page
    assert 'id="when-view-works"' in page
    assert "% is no comment, {a}<code" in page
    assert list(faults(tmp_path / "html")) == []
