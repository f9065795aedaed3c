"""Numbers in lines of text, strictly: what is not a number, to its last letter, is a fault.

A number is digits with a sign, a point and an exponent, or without them. Most are read exactly; longer decimals are
copied, for numpy to read, and words such as nan and longer whole numbers left where they are, for Python.
"""

from odeco.kernels._native import read_numbers

# What a number is: whole, decimal, a decimal that is too long to be read by the loop, or anything else.
WHOLE, DECIMAL, LONG, WORD = 0, 1, 2, 3
# What follows it: blanks, a colon, the end of the line.
BLANK, COLON, END = 0, 1, 2

__all__ = ["BLANK", "COLON", "DECIMAL", "END", "LONG", "WHOLE", "WORD", "read_numbers"]
