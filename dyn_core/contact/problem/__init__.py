"""The constraint problem as a value, its residuals and its solution."""
