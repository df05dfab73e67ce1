"""Contacts of pairs of shapes, in the subset of Python that is compiled.

detection_arrays.py has the records of arrays for input and output, all_pairs.py the
function that finds all contacts of a robot, and each other module the contacts of some
kinds of shapes.
"""
