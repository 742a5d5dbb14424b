"""`python -m grader site`: the course as a static site, from the same notebooks.

`pages` says which notebooks are pages and copies each for Sphinx; `parser` turns a copy into a
document, with `folds` around what a prediction hides, and `outputs` for what cells show: figures,
drills as forms (`drills`), views whose pictures `frames` made beforehand. `static` is what the
browser gets beside the pages; `links` looks whether everything leads somewhere.
"""
