"""Formulas on pages are rendered without a script, and are always harmless."""

import re
import time

import pytest
from nbconvert.exporters import HTMLExporter
from nbformat.v4 import new_markdown_cell, new_notebook

from hood.grader.cleaning.formulas import LONGEST, harmless, markdown2html, without_script
from hood.phase_paths import ROOT
from tests.attacks.browser import dangers

HOSTILE = [
    r"\href{javascript:alert(1)}{x}",
    r"\text{<img src=x onerror=alert(1)>}",
    r"\text{<script>alert(1)</script>}",
    r"\text{<mi href=javascript:alert(1)>x</mi>}",
    r'\color{red" onload="alert(1)}x',
    r"\style{position:fixed}{x}",
    r"\class{modal-backdrop}{x}",
    r"\hspace{-100em}x",
    r"\hspace{99em}x",
    r"\rule{100em}{100em}",
    r"\Huge{\Huge{\Huge x}}",
    r"\newcommand{\a}{xxxxxxxxxx}" + r"\newcommand{\a}{\a\a\a\a}" * 40 + r"\a",
    "x" * LONGEST + "x",
    r"\begin{array}{" + "c" * 500 + "}" + "a&" * 500,
]
HONEST = [
    r"\frac{1}{\sqrt{d_\text{head}}} \sum_d q_{b,d}\; k_{t,d}",
    r"\begin{align} a &= b \\ c &= d \end{align}",
    r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}",
    r"\hat x \qquad \left( \frac12 \right) \in \mathbb{R}^n",
    r"\text{softmax}(x)_i < 1",
]


@pytest.mark.parametrize("tex", HOSTILE)
def test_a_hostile_formula_is_shown_as_source(tex):
    begun = time.process_time()
    pages = [markdown2html({}, text) for text in (f"${tex}$", f"$$\n{tex}\n$$")]
    for shown in (harmless(tex, "inline"), *pages):
        assert "<math" not in shown
        assert [found for found in dangers(shown) if not found.startswith("formula")] == []
    assert time.process_time() - begun < 3


@pytest.mark.parametrize("tex", HONEST)
def test_an_honest_formula_is_rendered(tex):
    assert harmless(tex, "inline").startswith("<math")
    assert 'display="block"' in harmless(tex, "block")


def test_every_formula_of_a_lab_is_rendered():
    labs = [path.read_text() for path in (ROOT / "phases").glob("*/lab.py")]
    formulas = [tex for text in labs for tex in re.findall(r"\$([^$`\n]+)\$", text)]
    assert len(formulas) > 4
    assert [tex for tex in formulas if not harmless(tex, "inline").startswith("<math")] == []


def test_a_page_renders_formulas_without_a_script():
    exporter = HTMLExporter(template_name="classic")
    without_script(exporter)  # as formgrader's pages are made
    shown, _ = exporter.from_notebook_node(
        new_notebook(cells=[new_markdown_cell(r"so $\frac{1}{2}$ and" "\n\n$$x^2$$")])
    )
    assert shown.count("<math") == 2
    assert "MathJax.Hub" not in shown
