"""What the course's notebooks import. The `__init__.py` of each package says what the package has:

- `notebook`: what a notebook's cells ask and show: expectations, verdicts, drills, figures, a
  learner's progress, and the course as a list.
- `views`: live pictures of the learner's own objects.
- `minigpt` and `softmax`: a trained model and a kernel, which lessons and labs work on.
- `instruments`: traces, compiling, dispatch, devices and simulated ranks, made readable.
- `drivers`: how labs and checks run learners' code that cannot simply be called.
- `sandbox`: what the engine's sandboxes must know about this course. No notebook imports it.

The package itself loads nothing.
"""
