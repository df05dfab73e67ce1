"""Calls from Python into machine code, and the memory of their results."""
