"""Write the reference pages."""

from __future__ import annotations

from hood.atomic_files import write_whole
from hood.authoring.reference.pages import FOLDER, written
from hood.phase_paths import ROOT

for name, content in written(ROOT).items():
    write_whole(ROOT / FOLDER / name, content.encode())
