"""Drivers: code that tries what cannot simply be called with values.

A dispatch mode, a tensor subclass or a backend does its work while *other* code runs. A driver is
that other code: a function that takes the learner's thing and plain values, uses the thing, and
returns plain values. A check names it, ``subject.drive("dispatch:log_ops", "two layers", x)``, and
it runs beside the learner's code. A lab imports the same function for its visible checks, so that
everybody can see how an answer will be asked.
"""
