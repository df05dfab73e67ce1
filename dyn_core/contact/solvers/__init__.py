"""Contact solvers whose work follows the data: blocks, rows and supports as arrays.

rows.py is the problem; scaling.py brings its rows to a response of one and its cones to
circles; envelope.py orders, assembles and factorises a sparse symmetric matrix.
gauss_seidel.py, splitting.py and newton.py solve it; law.py measures what they found.
All but the conversion in solving.py is in the subset of dyn_core.engines.machine_code.
"""
