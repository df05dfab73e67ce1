"""Laws that solvers keep, by kind of problem."""
