"""Contact solvers on sparse rows, in the subset of Python that is compiled.

| file | content |
|---|---|
| solver_calls.py | solvers by name; plain Python, which calls the compiled ones |
| coulomb_newton.py | the default: tries the methods below, one after the other |
| newton_on_modes.py | Newton's method that decides stick, slip or separation by block |
| interior_point.py | interior-point method, for heaps of bodies |
| proximal_newton.py | Newton's method on the velocities, in proximal rounds |
| admm.py | alternating direction method of multipliers |
| gauss_seidel.py | projected Gauss-Seidel, block by block |
| frozen_friction.py | friction with fixed bounds, the fallback for unsolved steps |
| solver_memory.py | work arrays of the solvers, statuses, indices of reports |

laws/ has cones and residuals, and the problem scaled to unit responses and circular
cones; matrices/ has products with sparse rows, and factorisations. The problem itself
is in problem/rows.py.
"""
