"""Reference solvers: the sources' own formulations and independent oracles."""
