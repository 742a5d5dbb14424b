"""Make every kernel of a course's Jupyter server run the engine's start-up file.

After a kernel died, that file, `startup.py` beside this folder, lets cells say what to run.
"""

import os
from pathlib import Path

startup = Path(__file__).resolve().parent.parent / "startup.py"
if startup.is_file():
    os.environ.setdefault("PYTHONSTARTUP", str(startup))
