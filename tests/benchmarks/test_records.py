"""Git keeps of each GPU's record what somebody reads, and nothing else."""

from __future__ import annotations

import subprocess

import pytest

from benchmarks.gpu import SECTIONS
from hood.phase_paths import ROOT
from utils.instruments.records import RECORDS, load

QUOTED = "nvidia-h100-80gb-hbm3"  # the GPU whose times the lessons quote
PARITY = "tests/utils/instruments/test_parity.py"  # reads every GPU's logits
# what each section's files are read by: the reader, and the words in it that name them
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
    "nvidia_smi": ("phases/09_profiling/lesson.py", 'gpu.result("nvidia_smi")'),
    "messages": ("phases/09_profiling/lesson.py", 'gpu.result("messages")'),
    "tune": ("phases/05_custom_op/lesson.py", 'record.result("tune")'),
}


@pytest.mark.parametrize("section", [*SECTIONS, "tune"])
def test_every_section_that_is_measured_has_a_reader(section):
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


def test_every_file_that_git_keeps_is_one_of_a_section_with_a_reader():
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


def test_git_ignores_what_another_gpu_adds():
    names = ["softmax.json", "trace.json.gz", "minigpt.json", "logits.npz"]
    paths = [f"benchmarks/records/nvidia-l4/{name}" for name in names]
    result = subprocess.run(
        ["git", "check-ignore", "--no-index", *paths], cwd=ROOT, capture_output=True, text=True
    )
    assert result.stdout.split() == paths[:2]
