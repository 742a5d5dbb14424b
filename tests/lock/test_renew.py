"""The parts of `make lock` that need no network."""

import pytest

from lock.renew import LOCK, PYPROJECT, entries, only_on, pythons

TORCH = "torch==2.13.0 \\\n    --hash=sha256:1a \\\n    --hash=sha256:2b\n    # via accelerate\n"
CUDA = "nvidia-nvtx==13.0 ; sys_platform == 'linux' \\\n    --hash=sha256:3c\n    # via torch\n"


def test_a_lock_is_read_entry_by_entry():
    found = entries(f"# A comment.\n--extra-index-url https://example.org\n{CUDA}{TORCH}")
    assert found == {"nvidia-nvtx==13.0 ; sys_platform == 'linux'": CUDA, "torch==2.13.0": TORCH}


def test_torch_is_locked_for_one_system_in_each_file():
    first, *rest = only_on(TORCH, "darwin").splitlines()
    assert first == "torch==2.13.0 ; sys_platform == 'darwin' \\"
    assert rest == TORCH.splitlines()[1:]


@pytest.mark.parametrize("name", ["packages", "extras", "torch-cuda", "torch-cpu"])
def test_the_existing_lock_keeps_its_versions(name):
    text = (LOCK / f"{name}.txt").read_text(encoding="utf-8")
    beginning = "".join(line for line in text.splitlines(True) if line.startswith(("# ", "--")))
    assert text == beginning + "".join(entries(text).values())


def test_the_promised_pythons_are_read():
    assert pythons('[project]\nrequires-python = ">=3.9,<3.12"\n') == ["3.9", "3.10", "3.11"]
    assert "3.11" in pythons(PYPROJECT.read_text(encoding="utf-8"))
