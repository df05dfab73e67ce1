"""Commands of `dyn`, except those defined beside their subject."""

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py
