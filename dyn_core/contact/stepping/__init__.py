"""Time stepping of robots with contacts."""

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py
