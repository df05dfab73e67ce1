"""sin, cos and similar functions in LLVM IR."""
