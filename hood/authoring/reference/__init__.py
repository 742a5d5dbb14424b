"""The reference pages, `docs/reference/`: ``python -m hood.authoring.reference`` writes them.

Every name, type, default and description on these pages comes from the code. `sentences` reads the
descriptions there, so each name is described once, beside its definition. `pages` lists the pages,
and says which module makes which page. A test compares the pages with the output of this command.
If the test fails, run the command.
"""
