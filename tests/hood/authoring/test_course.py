"""The course's own texts: they are preserved byte for byte, and learners see no answer."""

import pytest

from hood.authoring.bundle import learner_files
from hood.authoring.leaks import TELLING, compact, secrets_of
from hood.authoring.notebooks.notebook import to_cells, to_notebook
from hood.authoring.notebooks.text import assemble, parse
from hood.authoring.site.markdown import page_markdown
from hood.authoring.site.pages import pages as site_pages
from hood.phase_paths import ROOT, pages, phases
from tests.hood.authoring.example import readable

TEXTS = [path for phase in pages(ROOT) for path in (phase.lesson, phase.lab) if path.exists()]
# Code that a lesson or module shows on purpose, or that has only one usual form.
GIVEN = {
    ("01_tensors", "t.numel() * t.element_size()"),
    ("04_dispatcher", "2 * a.numel() * b.shape[-1]"),
    ("05_custom_op", "q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])"),
    ("08_transformer", "q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])"),
}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_text_to_notebook_to_text_is_the_identity(path):
    content = path.read_text(encoding="utf-8")
    text = parse("text.py", content)
    cells, problems = to_cells("notebook.ipynb", to_notebook(text))
    assert problems == []
    assert assemble(text, cells) == content


@pytest.mark.slow(3)
def test_no_answer_in_the_archive_or_on_the_site(tmp_path):
    shown = {path: readable(path, content) for path, content in learner_files(ROOT).items()}
    for page in site_pages(ROOT):
        shown[page.docname] = page_markdown(page, "", {}, tmp_path)
    shown = {path: compact(text) for path, text in shown.items()}
    for phase in phases(ROOT):
        lab = parse("lab.py", phase.lab.read_text(encoding="utf-8"))
        secrets = [
            (*secret, compact(secret[0])) for cell in lab.cells for secret in secrets_of(cell)
        ]
        assert len(secrets) > 3
        own = (phase.relative(phase.release), f"labs/{phase.name}")
        found = [
            (path, code)
            for code, telling, secret in secrets
            for path, text in shown.items()
            # outside the phase's own files, a short expression may occur by chance
            if telling >= (TELLING if path in own else TELLING + 2) and secret in text
            if (phase.name, code) not in GIVEN
        ]
        assert found == []
