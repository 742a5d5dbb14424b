"""Views of the learner's own objects. A view takes tensors, shapes, numbers or other objects.

In Jupyter, a view that can move has controls. In other programs, and while lessons are built, a
view is one image.
"""

from importlib import import_module
from pathlib import Path

from hood.learner import bounded_traceback as bounded_traceback
from hood.learner import cell_clock as cell_clock

__all__ = sorted(file.stem for file in Path(__file__).parent.glob("[!_]*.py"))
# A view is the function with the name of its module.
globals().update((name, getattr(import_module(f"{__name__}.{name}"), name)) for name in __all__)
