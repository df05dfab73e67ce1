"""Finite vectors, rigid bodies and solutions of the guide to 6-D vectors."""

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py
