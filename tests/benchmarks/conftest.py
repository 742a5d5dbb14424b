import pytest

from benchmarks.gpu import main
from utils.records import Record, load

QUICK = ["minigpt", "softmax", "inductor", "trace", "dispatch"]


@pytest.fixture(scope="session")
def dry_run(tmp_path_factory) -> Record:
    """What a dry run leaves, but for the sections that other tests go through."""
    folder = tmp_path_factory.mktemp("dry")
    assert main(["--dry-run", "--out", str(folder), "--only", *QUICK]) == 0
    return load(root=folder)
