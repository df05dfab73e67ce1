"""A motion of least effort, best by CasADi and Ipopt with the arm's own step.

python examples/casadi_swing.py      needs: pip install '.[casadi]', a C compiler

The arm moves between two poses at rest, with weak motors. Its step in time and the
analytic Jacobian are machine code that CasADi calls. Differences at a random state, and
the same problem in symbols that CasADi differentiates itself, say whether it is right.
"""

import time

import casadi as ca
import numpy as np

import dyn_core as dyn
from dyn_core.bridges import casadi as dyn_casadi

KNOTS, DT = 20, 0.05
START = np.array([0.0, 0.2, 0.0, -1.5, 0.0, 1.2, 0.0])
GOAL = np.array([0.8, 0.6, 0.3, -0.9, 0.2, 1.5, 0.3])
NAMES = {"add": "plus", "sub": "minus", "mul": "times", "div": "rdivide"}
NAMES |= {"not": "logic_not", "and": "logic_and", "or": "logic_or", "abs": "fabs"}


class Expression(dyn.authoring.Number):
    """A number that is an expression of CasADi: the algorithm writes symbols."""

    def __init__(self, value):
        self.value = value

    def apply(self, op, *operands):
        """Write an operation; what the algorithm requires is left to Ipopt."""
        if op == "require":
            return None
        a, *others = [getattr(x, "value", x) for x in operands]
        function = getattr(ca, NAMES.get(op, op), None)
        return Expression(-a if op == "neg" else function(a, *others))


def in_symbols(program):
    """Return a step that consists of expressions of CasADi."""
    n = program.model.nv
    parts = [ca.SX.sym(name, n) for name in ("q", "qd", "tau")]
    numbers = [Expression(x) for x in ca.vertsplit(ca.vertcat(*parts))]
    flat = [getattr(x, "value", x) for x in program.function([*numbers, DT])]
    return ca.Function("step", parts, [ca.vertcat(*flat[:n]), ca.vertcat(*flat[n:])])


def optimum(arm, step, name):
    """Return the efforts of the best trajectory; print cost and CPU time."""
    n, limit = arm.nv, 0.6 * arm.effort_limit
    q, qd, tau = (ca.MX.sym(x, n, KNOTS + (x != "tau")) for x in ("q", "qd", "tau"))
    ends = step.map(KNOTS)(q[:, :-1], qd[:, :-1], tau)
    gaps = [q[:, 1:] - ends[0], qd[:, 1:] - ends[1]]
    rests = [q[:, 0] - START, q[:, -1] - GOAL, qd[:, 0], qd[:, -1]]
    x, scaled = ca.veccat(q, qd, tau), tau / ca.repmat(limit, 1, KNOTS)
    problem = {"x": x, "f": DT * ca.sumsqr(scaled), "g": ca.veccat(*gaps, *rests)}
    quiet = {"print_level": 0, "sb": "yes", "hessian_approximation": "limited-memory"}
    quiet |= {"max_iter": 1000, "tol": 1e-7}
    options = {"ipopt": quiet, "print_time": False, "error_on_fail": True}
    solve = ca.nlpsol("solve", "ipopt", problem, options)
    way = np.linspace(START, GOAL, KNOTS + 1).ravel()
    guess = np.concatenate([way, np.zeros(x.size1() - way.size)])
    bound = np.concatenate([np.full(2 * way.size, np.inf), np.tile(limit, KNOTS)])
    start = time.process_time()
    best = solve(x0=guess, lbx=-bound, ubx=bound, lbg=0, ubg=0)
    seconds = time.process_time() - start
    turns, cost = solve.stats()["iter_count"], float(best["f"])
    print(f"{name}: cost {cost:.8f}, {turns} iterations, {seconds:.2f} s CPU")
    return np.array(best["x"]).ravel()[2 * way.size :]


def worst_slope(step, n):
    """Return the largest difference of the Jacobian to central differences."""
    x = np.random.default_rng(1).uniform(-1, 1, (3, n))
    slopes = step.jacobian()(*x, *[ca.DM(n, 1)] * 2)
    worst = 0.0
    for k in range(3 * n):
        d = 1e-5 * np.eye(3 * n)[k].reshape(3, n)
        ends = zip(step(*(x + d)), step(*(x - d)), strict=True)
        for output, (up, down) in enumerate(ends):
            column = ca.DM(slopes[3 * output + k // n])[:, k % n]
            worst = max(worst, float(ca.norm_inf(column - (up - down) / 2e-5)))
    return worst


def main():
    """Print both optima and their difference."""
    arm = dyn.load_urdf(dyn.robots.path("arm7"))
    solver, fill = dyn.solver("semi_implicit_euler"), {"forward_dynamics": "aba"}
    step = dyn_casadi.function(solver.build(arm, **fill), constants={"dt": DT})
    symbols = in_symbols(solver.build(arm, **fill, engine="plain"))
    print(f"Jacobian against central differences: {worst_slope(step, arm.nv):.2g}")
    fast, slow = optimum(arm, step, "machine code"), optimum(arm, symbols, "symbols")
    print(f"largest difference of the efforts: {abs(fast - slow).max():.2g} N·m")


if __name__ == "__main__":
    main()
