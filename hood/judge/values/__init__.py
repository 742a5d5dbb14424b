"""Kinds of values, in one table: what a tensor, an array and a plain value are to a judge.

kind      what a row of the table says: how a value of the kind is sent, compared, drawn, and
          written in a call to paste
table     finds the row of a value; what has none is plain Python
tensors   the rows of torch: the only module here that imports it, where it is loaded or a
          tensor comes
arrays    the row of NumPy
"""
