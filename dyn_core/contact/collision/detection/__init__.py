"""Contacts of pairs of shapes, in the subset of Python that is compiled.

tables.py has the records of arrays that go in and out, all_pairs.py the function that
finds all contacts of a robot, and each of the others the rule of some kinds of shapes.
"""
