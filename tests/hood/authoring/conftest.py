"""The example project as a fixture."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hood.authoring.example import Project, make_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A fresh copy of the example project, not built yet."""
    return make_project(tmp_path)
