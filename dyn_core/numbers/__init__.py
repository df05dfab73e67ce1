"""Number-like values: the closed set of operations, scalar functions, derivatives."""
