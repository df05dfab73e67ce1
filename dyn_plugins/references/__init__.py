"""Reference solvers: the sources' own forms and independent oracles."""
