"""Make every kernel of a course's Jupyter server run the engine's start-up file.

With that file, `startup.py` beside this folder, a cell says what to run if a kernel has died.
"""

import os
from pathlib import Path

startup = Path(__file__).resolve().parent.parent / "startup.py"
if startup.is_file():
    os.environ.setdefault("PYTHONSTARTUP", str(startup))
