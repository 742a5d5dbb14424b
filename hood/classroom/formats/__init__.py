"""How tables are read and written, and how pages look.

``tables`` reads a table that comes from outside, ``spreadsheet`` writes one, ``page_style`` makes a
page of a template, and ``words`` has what pages and terminals say alike.
"""
