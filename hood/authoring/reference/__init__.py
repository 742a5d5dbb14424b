"""The reference pages, `docs/reference/`: ``python -m hood.authoring.reference`` writes them.

Every name, type, default and description on these pages comes from the code: `sentences` reads it
there. So each name is described once, beside its definition. `pages` lists the pages and says which
module makes each. A test compares the pages with the output of this command. If the test fails, run
the command.
"""
