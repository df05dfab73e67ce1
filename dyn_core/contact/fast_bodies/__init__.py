"""Contacts of fast bodies, which move in a step by more than half their thickness."""

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py
