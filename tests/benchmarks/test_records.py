"""Of each GPU's record, Git keeps the files that are read, and no other files."""

from __future__ import annotations

import subprocess

import pytest

from benchmarks.gpu import SECTIONS
from hood.phase_paths import ROOT
from utils.instruments.records import RECORDS, load

QUOTED = "nvidia-h100-80gb-hbm3"  # the GPU whose times the lessons quote
PARITY = "tests/utils/instruments/test_parity.py"  # reads every GPU's logits
# section -> the module that reads the section's files, and the words in this module that name the
# files
READERS = {
    "checks": ("phases/05_custom_op/lesson.py", 'record.result("checks")'),
    "minigpt": (PARITY, "record.logits()"),
    "softmax": ("phases/05_custom_op/lesson.py", 'record.result("softmax")'),
    "inductor": ("phases/06_compile/lesson.py", 'record.result("inductor")'),
    "trace": ("phases/09_profiling/lesson.py", 'gpu.result("trace")'),
    "clocks": ("phases/09_profiling/lesson.py", 'gpu.result("clocks")'),
    "products": ("phases/07_training/lesson.py", 'gpu.result("products")'),
    "steps": ("phases/09_profiling/lesson.py", 'gpu.result("steps")'),
    "precision": ("phases/07_training/lesson.py", 'gpu.result("precision")'),
    "attention": ("phases/08_transformer/lesson.py", 'record.result("attention")'),
    "tiles": ("phases/11_tiles/lesson.py", 'record.result("tiles")'),
    "nvidia_smi": ("phases/09_profiling/lesson.py", 'gpu.result("nvidia_smi")'),
    "messages": ("phases/09_profiling/lesson.py", 'gpu.result("messages")'),
    "tune": ("phases/05_custom_op/lesson.py", 'record.result("tune")'),
}


@pytest.mark.parametrize("section", [*SECTIONS, "tune"])
def test_every_measured_section_has_a_reader(section):
    reader, words = READERS[section]
    text = (ROOT / reader).read_text(encoding="utf-8")
    assert words in text
    assert f'records.load("{QUOTED}")' in text or reader == PARITY


def files_named(value) -> set[str]:
    """The names of files in a section's result."""
    if isinstance(value, dict):
        here = {value["file"]} if "file" in value else set()
        return here.union(*map(files_named, value.values()))
    return set()


def test_git_keeps_only_files_of_sections_with_a_reader():
    command = ["git", "ls-files", "-z", "--", str(RECORDS)]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    kept = {ROOT / name for name in listed.rstrip("\0").split("\0")}
    read = set()
    for folder in {path.parent for path in kept}:
        for section, document in load(folder.name).sections.items():
            if folder.name == QUOTED or READERS[section][0] == PARITY:
                names = {f"{section}.json", *files_named(document["result"])}
                read |= {folder / name for name in names}
    assert kept == read


def test_git_ignores_the_record_of_another_gpu():
    names = ["softmax.json", "trace.json.gz", "minigpt.json", "logits.npz"]
    paths = [f"benchmarks/records/nvidia-l4/{name}" for name in names]
    result = subprocess.run(
        ["git", "check-ignore", "--no-index", *paths], cwd=ROOT, capture_output=True, text=True
    )
    assert result.stdout.split() == paths[:2]
