"""Let the kernels of a course's Jupyter server begin with the engine's start-up file.

It lies beside this folder, and says what to run after a kernel died.
"""

import os
from pathlib import Path

startup = Path(__file__).resolve().parent.parent / "startup.py"
if startup.is_file():
    os.environ.setdefault("PYTHONSTARTUP", str(startup))
