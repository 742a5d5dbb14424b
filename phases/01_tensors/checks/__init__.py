"""What the hidden cells of lab 01 check.

A reference calls torch if torch can compute the answer. Tests compare the lab's own solutions,
which compute it by hand, with the references.
"""
