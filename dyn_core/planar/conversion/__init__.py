"""Conversion between planar chains and robots."""

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py
