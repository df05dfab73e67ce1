"""Laws of solvers, by kind of problem."""
