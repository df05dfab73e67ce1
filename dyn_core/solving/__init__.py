"""Solvers: what they are, how arrays reach them, how plugins offer them."""
