"""Attacks by hostile submissions, and the tests that the grader withstands them.

Each family of attacks is a module. An attack is a function that turns a lazy learner's notebook
into a hostile submission. The function's docstring says what the attack tries.
``python -m tests.attacks`` prints them all.
"""
