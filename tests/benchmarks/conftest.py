import pytest

from benchmarks.gpu import main
from tests.once import made_once
from utils.instruments.records import Record, load

QUICK = ["minigpt", "softmax", "inductor", "trace", "tiles"]


@pytest.fixture(scope="session")
def dry_run(tmp_path_factory, worker_id) -> Record:
    """The files of a dry run, without the sections that other tests cover."""

    def run(folder):
        folder.mkdir()
        return main(["--dry-run", "--out", str(folder), "--only", *QUICK])

    folder, status = made_once(tmp_path_factory, worker_id, "dry-run", run)
    assert status == 0
    return load(root=folder)
