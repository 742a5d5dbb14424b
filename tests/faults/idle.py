"""For rounds that need no kernel: the warm process runs as usual, but imports nothing.

The workers of the quick class import this module, see :func:`tests.faults.classes.make_quick`. The
warm process still takes time to start, and something must end it and clean up after it.
"""

from hood.grader.sandbox import warm_process

SECONDS = 1.5
warm_process.START = f"""
import sys, time, types
sys.path.insert(0, sys.argv[1])
from hood.grader.inside import zygote
zygote.preload = lambda course: time.sleep({SECONDS})
sys.modules["torch"] = types.SimpleNamespace(set_num_threads=lambda number: None)
sys.modules["hood.grader.inside.kernel"] = types.SimpleNamespace(prepare=lambda: None)
from hood.grader.inside.zygote import main
main(int(sys.argv[2]))
"""
