"""Contact solvers whose work follows the data: blocks, rows and supports as arrays.

The problem is problem/rows.py. scaling.py brings its rows to a response of one and its
cones to circles; products.py multiplies with them, cones.py and law.py are the laws,
natural.py measures scaled impulses. skyline.py numbers coordinates and factorises,
systems.py and slopes.py assemble. active_sets.py, interior.py (with cone_steps.py),
newton.py (with responses.py), splitting.py and sweeps.py solve, coulomb.py by all of
them, the next where one fails, in the room of work.py; frozen.py ends a step that none
of them solves. row_solvers.py ties them to arrays, by name.
All but row_solvers.py is in the subset of dyn_core.engines.machine_code.
"""
