"""Addresses and anchors, predictions that fold, drills that keep their answer, links that hold."""

import base64
import json
import re
from pathlib import Path

import pytest
from markdown_it.token import Token

from grader.phase_paths import PhasePaths, slug
from grader.preprocessors.formulas import mathml
from grader.site.build import DOWNLOADS, forget
from grader.site.drills import form
from grader.site.folds import CODE, DRILL, OUTPUTS, folded
from grader.site.links import faults, sweep
from grader.site.pages import Page, docname_of, link, uri
from grader.site.parser import markdown_parser
from utils.notebook import drills


@pytest.mark.parametrize(
    ("path", "docname"),
    [
        ("notebooks/start.ipynb", "index"),
        ("notebooks/01_tensors.ipynb", "lessons/01_tensors"),
        ("notebooks/01_tensors.es.ipynb", "lessons/01_tensors.es"),
        ("release/01_tensors/01_tensors.ipynb", "labs/01_tensors"),
        ("release/01_tensors/other.ipynb", None),
        ("source/01_tensors/01_tensors.ipynb", None),
        ("README.md", None),
    ],
)
def test_a_notebook_has_an_address(path, docname):
    assert docname_of(path) == docname


@pytest.mark.parametrize(
    ("href", "leads"),
    [
        ("../../notebooks/01_tensors.ipynb", "../lessons/01_tensors.html"),
        ("../../notebooks/start.ipynb", "../index.html"),
        (
            "../../notebooks/01_tensors.ipynb#Row-major-order:-`view`",
            "../lessons/01_tensors.html#row-major-order-view",
        ),
        (
            "../../notebooks/01_tensors.ipynb#cell-id=two-modes",
            "../lessons/01_tensors.html#two-modes",
        ),
        ("#What-it%20costs", "#what-it-costs"),
        ("https://pytorch.org/a#B", "https://pytorch.org/a#B"),
        ("mailto:a@b.org", "mailto:a@b.org"),
    ],
)
def test_a_link_between_notebooks_becomes_one_between_pages(href, leads):
    assert link(href, "release/01_tensors/01_tensors.ipynb", "labs/01_tensors") == leads


def test_addresses_are_relative():
    assert uri("_images/a.png", "lessons/01_tensors") == "../_images/a.png"
    assert uri("lessons/01_tensors", "index") == "lessons/01_tensors.html"
    assert uri("lessons/01_tensors.es", "lessons/01_tensors") == "01_tensors.es.html"


def test_an_anchor_is_the_heading_in_lower_case():
    assert slug("The silent (64, 64) bug") == "the-silent-64-64-bug"
    assert slug("When `view` works") == slug("When view works") == "when-view-works"
    assert slug("Resumen en español") == "resumen-en-espanol"


def page(*cells):
    """The page's blocks in short, with the fold in brackets.

    A cell of more than one letter is markdown; c is code, o are outputs, d is a drill.
    """
    kinds = {"c": CODE, "o": OUTPUTS, "d": DRILL}
    tokens = []
    for cell in cells:
        kind = kinds.get(cell)
        tokens += [Token(kind, "", 0)] if kind else markdown_parser().parse(cell)
    short = []
    for token in folded(tokens, "en"):
        if token.type in kinds.values():
            short.append(next(key for key, value in kinds.items() if value == token.type))
        elif token.type == "inline":
            short.append(token.content.split()[0])
        elif token.type.startswith("fold"):
            short.append("[" if token.type == "fold_open" else "]")
    return " ".join(short)


ASK = "**Predict.** What is printed?"


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        (["Now.\n\n" + ASK, "c", "o", "Five.\n\nNext."], "Now. **Predict.** c [ o Five. ] Next."),
        (["It adds. **Predict** it.", "c", "o"], "It c [ o ]"),
        ([ASK, "c", "c", "o", "Five."], "**Predict.** c c [ o Five. ]"),
        ([ASK, "c", "o", "c", "o", "Five."], "**Predict.** c [ o c o Five. ]"),
        ([ASK, "c", "o", "d", "Five."], "**Predict.** c [ o ] d Five."),
        ([ASK, "c", "o", "## Next\n\nFive."], "**Predict.** c [ o ] Next Five."),
        (
            [ASK, "c", "o", "Three:\n\n- one\n- two\n\nNext."],
            "**Predict.** c [ o Three: one two ] Next.",
        ),
        ([ASK, "c", "o", "Then:", "c", "o"], "**Predict.** c [ o Then: ] c o"),
        ([ASK, "c", "o", ASK, "c", "o"], "**Predict.** c [ o ] **Predict.** c [ o ]"),
        ([ASK, "## Next", "c", "o"], "**Predict.** Next c o"),
        (["Where one begins with **Predict**, settle.", "c", "o", "A."], "Where c o A."),
        (["Predict nothing.", "c", "o", "A."], "Predict c o A."),
    ],
)
def test_what_follows_a_prediction_is_folded(cells, shown):
    assert page(*cells) == shown


def paper(ask, *args, **kwargs):
    """The HTML that a drill shows without a kernel."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drills, "in_ipython", lambda: True)
        patch.setattr("IPython.display.publish_display_data", found.update)
        ask(*args, **kwargs)
    return found["text/html"]


def decoded(markup):
    (encoded,) = re.findall(r'data-drill="([^"]+)"', markup)
    return json.loads(base64.b64decode(encoded))


def test_a_drill_about_a_number_keeps_its_answer_to_itself():
    made = form(
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
    assert "<code>bytes</code>" in made
    assert "153" not in made.replace(re.findall(r'data-drill="([^"]+)"', made)[0], "")
    assert "elements" not in made
    assert decoded(made) == {
        "answer": 153_600,
        "tolerance": 0.5,
        "unit": "bytes",
        "reason": "<strong>153,600 bytes.</strong> Four for <em>each</em> element.",
        "wrong": [[38_400, "That counts elements."], [1e-3, "Too few."]],
    }


def test_a_choice_keeps_its_reasons_to_itself():
    options = {"`a`": "It is a < b.", "b, or “c”": "It is.", "neither": "No."}
    made = form(paper(drills.choice, "Which?", options, "b, or “c”"))
    assert re.findall(r'<button type="button">(.*?)</button>', made) == [
        "<code>a</code>",
        "b, or “c”",
        "neither",
    ]
    assert "It is" not in made
    assert decoded(made) == {
        "right": 1,
        "options": [
            "<strong>No.</strong> It is a &lt; b.",
            "<strong>Right.</strong> It is.",
            "<strong>No.</strong> No.",
        ],
    }


def test_math_is_set_without_a_script():
    made = mathml(r"\frac{\text{grad\_output}}{\sqrt{x}}", "block")
    assert made.startswith('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">')
    assert "<mfrac>" in made
    assert "<msqrt>" in made
    assert "<mtext>grad_output</mtext>" in made


def test_dollars_are_math_only_in_pairs_and_never_in_code():
    kinds = [
        [token.type for token in markdown_parser().parse(text)[1].children]
        for text in ("so $x^2$ it is", "`$x$` and `$y$`", "one $ alone")
    ]
    assert "math_inline" in kinds[0]
    assert "math_inline" not in kinds[1] + kinds[2]


def site(folder, **pages):
    for name, markup in pages.items():
        (folder / f"{name}.html").write_text(markup)
    return folder


def test_links_and_files_that_exist_are_in_order(tmp_path):
    (tmp_path / "a.png").touch()
    (tmp_path / "a.css").write_text("@font-face {src: url('a.woff2')}")
    found = site(
        tmp_path,
        a='<h2 id="one"></h2><a href="b.html#t%C3%BA"></a><a href="#one"></a><img src="a.png">',
        b='<h2 id="tú"></h2><a href="https://elsewhere.org"></a>'
        '<link rel="stylesheet" href="a.css?v=1">',
    )
    assert list(faults(found)) == []


def test_a_link_to_nowhere_and_a_foreign_file_are_found(tmp_path):
    (tmp_path / "a.css").write_text("body {background: url(https://e.org/a.png)}")
    site(
        tmp_path,
        a='<a href="b.html#two"></a><a href="c.html"></a><img src="no.png">'
        '<script src="//e.org/a.js"></script>',
        b="",
    )
    assert list(faults(tmp_path)) == [
        "a.html loads //e.org/a.js from another site",
        "a.html loads no.png, which does not exist",
        "a.html links to b.html#two, but b.html has no such anchor",
        "a.html links to c.html, which does not exist",
        "a.css loads https://e.org/a.png from another site",
    ]


def test_what_no_page_loads_any_more_is_swept_away(tmp_path):
    (tmp_path / "_images").mkdir()
    for name in ("old.png", "new.png"):
        (tmp_path / "_images" / name).touch()
    sweep(site(tmp_path, a='<img src="_images/new.png">'), ("_images",))
    assert [path.name for path in (tmp_path / "_images").iterdir()] == ["new.png"]


def test_a_page_of_an_earlier_build_is_forgotten(tmp_path):
    for name in ("lessons/01_a.html", "lessons/02_b.html", "labs/02_b.html", "labs/01_a.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / DOWNLOADS).mkdir()
    for name in ("01_a.ipynb", "02_b.ipynb"):
        (tmp_path / DOWNLOADS / name).touch()
    phase = PhasePaths(tmp_path, "02_b")
    kept = [
        Page("lessons/02_b", phase, Path("02_b.ipynb"), "B"),
        Page("labs/02_b", phase, Path("02_b.ipynb"), "B"),
    ]
    forget(tmp_path, kept)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"lessons/02_b.html", "labs/02_b.html", f"{DOWNLOADS}/02_b.ipynb"}
