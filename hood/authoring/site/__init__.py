"""`python -m hood site`: the course as a static site, from the same notebooks.

`pages` chooses the notebooks that become pages. `markdown` writes each notebook as MyST Markdown
with its outputs. `build` calls Sphinx to make the pages, and checks all links. `frames` makes the
pictures of views that move. `static` has the other files for the browser.
"""
