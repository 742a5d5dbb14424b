"""Kinds of values, in one table: how a judge handles tensors, arrays and plain values.

kind      the form of a row: how a value of the kind is sent, compared, drawn, and written in a
          call to paste
table     finds the row of a value; plain Python values have no row
tensors   the rows of torch; only this module imports torch, and only when torch is loaded or a
          tensor arrives
arrays    the row of NumPy
"""
