"""Products of matrices in machine code."""
