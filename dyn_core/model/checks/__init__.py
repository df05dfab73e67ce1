"""Checks of a robot: of its description before assembly, of its tree after it."""
