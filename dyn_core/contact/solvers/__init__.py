"""Contact solvers on sparse rows, in the subset of Python that is compiled.

| file | content |
|---|---|
| solver_calls.py | solvers by name; plain Python, which calls the compiled ones |
| coulomb_newton.py | the default: the methods below, the next one where one fails |
| newton_on_modes.py | Newton's method that decides stick, slip or separation by block |
| interior_point.py, cone_steps.py | interior-point method, for heaps of bodies |
| proximal_newton.py | Newton's method on the velocities, in proximal rounds |
| admm.py | alternating direction method of multipliers |
| gauss_seidel.py | projected Gauss-Seidel, block by block |
| frozen_friction.py | friction with fixed bounds, for steps that none of them solves |
| solver_memory.py | arrays that a solver works in, statuses, reports |

laws/ has cones and residuals, and the problem scaled to responses of one and circular
cones; matrices/ multiplies with sparse rows, and factorises. The problem itself is
problem/rows.py.
"""
