"""`python -m hood site`: the course as a static site, from the same notebooks.

`pages` says which notebooks are pages; `markdown` writes each as MyST Markdown, with what its cells
show, and `build` has Sphinx make the page, and looks whether everything leads somewhere. The
pictures of views that move are made beforehand by `frames`. `static` is what the browser gets
beside the pages.
"""
