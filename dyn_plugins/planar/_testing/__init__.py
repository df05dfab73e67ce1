"""How solvers of planar systems are put to the test: cases, laws, a dense oracle."""
