"""Compute a verdict from a check and a learner's code.

This side is trusted. The learner's code runs elsewhere and is called with
:mod:`grader.judging.rpc_client`.
"""
