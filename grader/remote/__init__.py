"""Asking the learner's code, wherever it runs, and never taking its word for a verdict.

``wire`` turns values into bytes and back, ``answer`` is the side beside the learner's code,
``link`` the trusted side. A room for learners' code holds ``wire`` and ``answer`` and nothing else
of ``grader``, so those two import none of it.
"""
