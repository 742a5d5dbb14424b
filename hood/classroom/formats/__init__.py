"""Read and write tables, and give all pages the same look.

``tables`` reads a table from outside, ``spreadsheet`` writes a table, ``page_style`` makes a page
from a template, and ``words`` formats numbers for pages and terminals.
"""
