"""For rounds that never ask for a kernel: the warm process lives as always, and imports nothing.

Imported by the workers of the quick class, see :func:`tests.faults.classes.make_quick`. Only what
the warm process would import is left out; it takes its time, and has to be ended and cleared up.
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
