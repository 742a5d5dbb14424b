"""Let the kernels of a course's Jupyter server begin with the course's own start-up file.

It lies in `utils/`, beside this folder's parent, and says what to run after a kernel died.
"""

import os
from pathlib import Path

startup = Path(__file__).resolve().parents[3] / "utils" / "notebook" / "startup.py"
if startup.is_file():
    os.environ.setdefault("PYTHONSTARTUP", str(startup))
