"""What the course's notebooks import. Each room says at its door what it holds:

- `notebook`: what a notebook's cells ask and show: expectations, verdicts, drills, figures, a
  learner's progress, and the course as a list.
- `views`: live pictures of the learner's own objects.
- `minigpt` and `softmax`: a trained model and a kernel, which lessons and labs work on.
- `instruments`: traces, compiling, dispatch, devices and simulated ranks, made readable.
- `drivers`: how labs and checks run what a learner wrote and cannot simply be called.
- `checks`: the language in which graded exercises are described. No notebook imports it.

The package itself loads nothing.
"""
