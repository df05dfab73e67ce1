"""Linear algebra of contact solvers: sparse rows, envelopes, systems."""
