"""The manifest of a result: which changes alter it, and above all which do not."""

import ast
import json
import re
import shutil
import subprocess
import sys

import pytest

from hood import manifest
from hood.course import course
from hood.manifest import Manifest, Modules, checks_files, grader_modules, read_module
from hood.phase_paths import ROOT, PhasePaths, phases
from tests.hood.other_versions import pretend

LABS = [phase.name for phase in phases() if phase.lab.exists()]
SHOWS = ("utils.notebook.", "utils.views.")
# A lab uses this module to show that an answer works over real processes. No check uses it.
DEMONSTRATION = {"utils.instruments.world.gloo"}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    root = tmp_path_factory.mktemp("original")
    unwanted = shutil.ignore_patterns("__pycache__", "bank_*", "lesson.py")
    for name in ("hood", "utils", "phases", "benchmarks/records"):
        shutil.copytree(ROOT / name, root / name, ignore=unwanted)
    shutil.copy(ROOT / "course.toml", root)
    return root


@pytest.fixture
def copy(original, monkeypatch):
    """A copy of the course and the engine, whose files a test may change through `write`."""
    changed = {}

    class Copy:
        root = original

        def write(self, name, content):
            path = original / name
            changed.setdefault(path, path.read_bytes() if path.exists() else None)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

        def replace(self, name, old, new):
            text = (original / name).read_text(encoding="utf-8")
            assert old in text
            self.write(name, text.replace(old, new, 1))

        def grades(self):
            return {lab: manifest.of_grades(lab, original) for lab in LABS}

    monkeypatch.setattr(manifest, "ENGINE", original)
    yield Copy()
    for path, content in changed.items():
        path.unlink() if content is None else path.write_bytes(content)


def differing_labs(before, now):
    return {lab for lab in LABS if before[lab] != now[lab]}


def with_words_changed(text):
    """Return a module's text with another comment, and more words in each docstring."""
    lines = text.splitlines(keepends=True)
    places = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, manifest.DOCUMENTED) and ast.get_docstring(node) is not None:
            places.append((node.body[0].lineno, node.body[0].col_offset))
    for line, column in places:
        cut = (
            re.compile(r'[rR]?("""|"|\'\'\'|\')')
            .match(lines[line - 1], len(lines[line - 1].encode()[:column].decode()))
            .end()
        )
        lines[line - 1] = f"{lines[line - 1][:cut]}More. {lines[line - 1][cut:]}"
    return f"{''.join(lines)}\n# A remark at the end.\n"


def test_colours_comments_and_docstrings_change_no_grades_manifest(copy):
    before = copy.grades()
    style = (ROOT / "utils/notebook/style.py").read_text(encoding="utf-8")
    colour = re.search(r'"#[0-9a-f]{6}"', style)[0]
    another = f'{colour[:-2]}{"1" if colour[-2] == "0" else "0"}"'
    copy.replace("utils/notebook/style.py", colour, another)
    copy.write("utils/views/new.py", "changed = 1\n")
    assert copy.grades() == before
    for path in sorted(copy.root.rglob("*.py")):
        name = path.relative_to(copy.root).as_posix()
        copy.write(name, with_words_changed(path.read_text(encoding="utf-8")))
    assert copy.grades() == before


def test_a_changed_line_of_the_judge_changes_all_manifests(copy):
    before = copy.grades()
    for name in ("hood/judge/verdicts/judge.py", "hood/grader/inside/kernel.py", "hood/verdict.py"):
        path = copy.root / name
        copy.write(name, f"{path.read_text(encoding='utf-8')}\nCHANGED = 1\n")
        now = copy.grades()
        assert differing_labs(before, now) == set(LABS), name
        assert now[LABS[0]].compared_with(before[LABS[0]]) == ["another version of the grader"]
        before = now


def test_code_for_authors_and_classes_changes_no_manifest(copy):
    before = copy.grades()
    for name in ("hood/authoring/lint.py", "hood/classroom/report/tally.py", "hood/__main__.py"):
        copy.write(name, "CHANGED = 1\n")
    assert copy.grades() == before


@pytest.mark.parametrize(
    ("name", "labs"),
    [
        ("phases/01_tensors/checks/shared.py", {"01_tensors"}),
        ("phases/01_tensors/lab.py", {"01_tensors"}),
        ("phases/01_tensors/checks/numbers.json", {"01_tensors"}),
        ("utils/drivers/dispatch.py", {"04_dispatcher"}),
        ("utils/minigpt/data/manifest.json", {"03_module"}),
    ],
)
def test_a_check_and_its_imports_and_data_change_its_labs_manifests(copy, name, labs):
    before = copy.grades()
    path = copy.root / name
    copy.write(name, f"{path.read_text(encoding='utf-8') if path.exists() else ''}\nCHANGED = 1\n")
    now = copy.grades()
    assert labs <= differing_labs(before, now) != set(LABS)
    [lab] = labs
    said = now[lab].compared_with(before[lab])
    assert said == ["another version of the lab's checks or of what they import"]


def test_a_record_counts_if_its_reader_is_imported(copy):
    before = copy.grades()
    [record, *_] = sorted((copy.root / "benchmarks/records").glob("*/minigpt.json"))
    copy.write(record.relative_to(copy.root).as_posix(), b"{}")
    changed = differing_labs(before, copy.grades())
    assert "03_module" in changed
    assert "00_hello" not in changed


def test_the_rule_that_an_answer_breaks_is_documentation_and_does_not_count(copy):
    name = "phases/01_tensors/answers/shared.toml"
    [path, *_] = sorted((copy.root / "phases/01_tensors/answers").glob("*.toml"))
    name = path.relative_to(copy.root).as_posix()
    before = copy.grades()
    copy.write(name, f'{path.read_text(encoding="utf-8")}\n[right.more]\ncode = "x"\n')
    assert differing_labs(before, copy.grades()) == {"01_tensors"}


def test_another_torch_is_seen_and_named(tmp_path, monkeypatch):
    before = manifest.of_grades(LABS[0])
    installed = before.versions["torch"]
    pretend(tmp_path, "torch", "9.9.9+cu199")
    monkeypatch.syspath_prepend(tmp_path)
    now = manifest.of_grades(LABS[0])
    assert now.packages != before.packages
    assert (now.grader, now.checks) == (before.grader, before.checks)
    assert now.compared_with(before) == [f"torch 9.9.9 instead of torch {installed}"]


def test_a_packages_build_is_no_other_version(tmp_path, monkeypatch):
    installed = manifest.versions()["torch"]
    pretend(tmp_path, "torch", f"{installed}+cu199")
    monkeypatch.syspath_prepend(tmp_path)
    assert manifest.versions()["torch"] == installed


def test_the_course_names_the_packages_that_count(tmp_path):
    (tmp_path / "course.toml").write_text('versions = ["numpy", "no-such-package"]')
    assert list(manifest.versions(tmp_path)) == ["Python", "numpy", "no-such-package"]
    assert manifest.versions(tmp_path)["no-such-package"] == "not installed"
    assert "torch" in course(ROOT).versions


def test_versions_are_described_in_words():
    assert (
        manifest.in_words({"Python": "3.11", "torch": "2.13.0"}) == "Python 3.11 and torch 2.13.0"
    )
    assert manifest.differing({"torch": "1"}, {"torch": "1", "numpy": "2"}) == [
        ("numpy not installed", "numpy 2")
    ]


def test_all_modules_that_grading_loads_are_included():
    """The manifest has the modules that a worker loads, and the course's that checks load."""
    code = (
        "import json, sys\n"
        "import hood.grader.batch.worker, hood.grader.batch.grading\n"
        "import hood.grader.execution.examiner, hood.grader.cleaning.sanitize\n"
        "from hood.judge.catalogue import load_checks\n"
        "from hood.phase_paths import phases\n"
        "before, graded, loaded = set(sys.modules), sorted(sys.modules), {}\n"
        "for phase in phases():\n"
        "    load_checks(phase.folder)\n"
        "    loaded[phase.name] = sorted({*sys.modules} - before)\n"
        "    before |= {*sys.modules}\n"
        "print(json.dumps([graded, loaded]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    graded, loaded = json.loads(done.stdout)
    ours = {name for name in graded if name.partition(".")[0] == "hood"}
    assert "hood.judge.verdicts.judge" in ours
    assert ours - grader_modules().keys() == set()
    ours = Modules(dict.fromkeys(("hood", *course(ROOT).packages), ROOT))
    grader = {*grader_modules().values()}
    for lab, names in loaded.items():
        files = {ours.file(name) for name in names if name.partition(".")[0] in ours.homes}
        assert files - checks_files(PhasePaths(ROOT, lab)) - grader == set(), lab


def test_the_judge_imports_no_drawing_or_recording():
    names = grader_modules().keys()
    assert not [one for one in names if re.match(r"hood\.(authoring|classroom)", one)]
    for lab in LABS:
        files = {path.relative_to(ROOT).as_posix() for path in checks_files(PhasePaths(ROOT, lab))}
        assert not [name for name in files if name.startswith(("utils/views", "utils/notebook/"))]


def test_modules_that_only_the_lab_imports_are_included():
    """Modules that a learner's code may use are included, even if only the lab imports them."""
    utils = Modules(dict.fromkeys(course(ROOT).packages, ROOT))
    for lab in LABS:
        phase = PhasePaths(ROOT, lab)
        names = utils.imports(phase.lab, "lab")
        reached = utils.reached({name for name in names if not f"{name}.".startswith(SHOWS)})
        own = {name for name in reached if not f"{name}.".startswith(SHOWS)}
        files = {utils.file(name) for name in own - DEMONSTRATION - {"utils"}}
        assert files - checks_files(phase) == set(), lab


def test_a_labs_imports_count_if_its_definitions_use_them():
    lab = (
        "# %%\nimport math\nfrom utils.views import strip\nfrom utils import softmax as other\n"
        "# %%\n%matplotlib inline\nstrip(1)\n"
        "# %%\ndef f(x):\n    return other(math.sqrt(x))\n"
        "# %%\n%%bash\nls -l | wc\n"
    )
    assert manifest.used_imports(lab) == {"math", "utils.softmax"}


def test_imports_for_type_checkers_are_skipped():
    text = b"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import utils.views\n"
    assert read_module(text).imports == ((0, "typing", ("TYPE_CHECKING",)),)
    lazy = read_module(text + b"def __getattr__(name):\n    return 1\n")
    assert (0, "utils.views", ()) in lazy.imports
    assert read_module(b"from .a import b").imports == ((1, "a", ("b",)),)


def test_two_manifests_of_one_state_are_equal():
    one, other = (Manifest({"torch": "1"}, "a", "b") for _ in range(2))
    assert one == other
    assert one.compared_with(other) == []
