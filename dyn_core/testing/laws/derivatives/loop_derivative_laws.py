"""Laws of derivatives with loops: both equations, differentiated, pairs that agree.

    H dqdd - A.T dlambda - dtau = -d(ID - A.T lambda),   A dqdd = -d(A qdd + bias + ...)

The right-hand sides are differences of the open tree and of the loops' rows at constant
qdd and lambda, independent of how a solver solves the equations.

A law takes a case: a solver under test, its robot, and a random state q, qd, qdd. It
yields pairs (left, right) of arrays that must agree; a pair (float(condition), 1.0)
checks a condition. ID and FD are inverse and forward dynamics, H the mass matrix, C the
bias force, J a Jacobian; (+) and (-) are integrate and difference of positions. In laws
of FD the case's qdd serves as joint forces tau. lambda are the constraint forces, A and
bias those of loop_constraints. A rod is added to the robot. If no joint moves the rod,
the only pair is the loop's error and zero.

Pairs are computed when they are read. Errors of the builds and calls of Programs, such
as UnsupportedError for a robot that a solver refuses, pass through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dyn_core import problems as kinds
from dyn_core.model import parameter_paths
from dyn_core.model.passive_forces import friction_slopes
from dyn_core.problems import Signature
from dyn_core.solving.registry import solver as find
from dyn_core.spatial import Vector
from dyn_core.testing.case import Case, Pairs, derivative
from dyn_core.testing.laws.loop_laws import closed_rates, movable, with_rod

RATES = {"alpha": 2.0, "beta": 3.0}
Changes = Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]


class Balance:
    """Residuals of both equations around a motion, by the open tree and the rows.

    `multipliers` are lambda, one for each row of A, the Jacobian of the loops' rows; H
    is of the open tree. alpha and beta are rates of Baumgarte stabilization [1/s].
    """

    def __init__(
        self,
        case: Case,
        qdd: np.ndarray,
        multipliers: np.ndarray,
        alpha: float = 0.0,
        beta: float = 0.0,
        **choices: Any,
    ) -> None:
        self.case, self.qdd, self.multipliers = case, qdd, multipliers
        self.alpha, self.beta, self.choices = alpha, beta, choices
        self.H = case.other("crba")(case.q)
        self.A = case.other("loop_constraints")(case.q, case.qd)[1]

    def residuals(self, path: str | None = None) -> Callable[..., np.ndarray]:
        """Return a function of q, qd and dp (of `path`): [ID - A.T lambda, rows].

        The row residuals are A qdd + bias + 2 alpha A qd + beta² f. Without a path the
        function takes q and qd only.
        """
        case, inputs = self.case, ["f_ext"]
        paths = [] if path is None else [path]
        tree = find("rnea").build(
            case.model.without_loops(),
            engine="graph",
            inputs=[*inputs, *paths],
            **self.choices,
        )
        acts = path is not None and path.rpartition(".")[2] in ("origin", "time")
        choices: dict[str, Any] = {"inputs": paths} if acts else {}
        rows = case.other("loop_constraints", **choices)

        def function(q: np.ndarray, qd: np.ndarray, *dp: np.ndarray) -> np.ndarray:
            values = [parameter_paths.value(case.model, path) + x for x in dp if path]
            values = [x if len(x) > 1 else x[0] for x in values]
            force = tree(q, qd, self.qdd, case.f_ext, *values)
            f, A, bias = rows(q, qd, *(values if acts else []))
            drift = 2 * self.alpha * (A @ qd) + self.beta**2 * f
            moved = A @ self.qdd + bias + drift
            return np.concatenate([force - A.T @ self.multipliers, moved])

        return function

    def slopes(self, paths: tuple[str, ...]) -> Iterator[tuple[str, np.ndarray]]:
        """Yield ("q", D), ("qd", D) and ("p", D), the residuals' derivatives.

        D is (nv + rows, numbers of the variable), by p with the columns of all paths;
        it is without friction.
        """
        case, still = self.case, self.residuals()
        unit, move = np.eye(case.model.nv), case.model.integrate
        size = len(self.H) + len(self.A)

        def by(change: Callable[[Any], np.ndarray], directions: Any) -> np.ndarray:
            columns = [derivative(lambda t, e=e: change(e * t)) for e in directions]  # type: ignore[misc]
            return np.array(columns).reshape(len(directions), size).T

        yield "q", by(lambda d: still(move(case.q, d), case.qd), unit)
        yield "qd", by(lambda d: still(case.q, case.qd + d), unit)
        columns = []
        for path in paths:
            change, n = self.residuals(path), parameter_paths.size(case.model, path)
            moved = [(lambda d, f=change: f(case.q, case.qd, d)), np.eye(n)]
            columns.append(by(*moved))  # type: ignore[arg-type]
        yield "p", np.hstack(columns) if columns else np.zeros((size, 0))

    def pairs(
        self, changes: Changes, paths: tuple[str, ...], friction: bool = False
    ) -> Pairs:
        """Yield both sides of the module's two equations, scaled, for each variable.

        `changes` has dqdd, dlambda and dtau by variable, such as "q", a column for each
        of its numbers. Variables other than q, qd and p do not change the residuals.
        """
        nv, slopes = len(self.H), dict(self.slopes(paths))
        if friction:
            qd = Vector(self.case.qd.tolist())
            rough = np.asarray(friction_slopes(self.case.model, qd), float)
            slopes["qd"][:nv] += rough.reshape(nv, nv)
        for name, (dqdd, dlambda, dtau) in changes.items():
            width = dqdd.shape[1]
            wanted = slopes.get(name, np.zeros((nv + len(self.A), width)))
            scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
            left = self.H @ dqdd - self.A.T @ dlambda - dtau
            yield left / scale, -wanted[:nv] / scale
            yield self.A @ dqdd / scale, -wanted[nv:] / scale


def _paths(case: Case) -> tuple[str, ...]:
    """Return paths: gravity, the last link's mass, the last moving joint's origin."""
    specs = case.model.build.description.joints
    moving = {case.model.names[i] for i in case.model.bodies}
    names = [spec.name for spec in specs if spec.name in moving]
    origins = [f"{name}.origin" for name in names[-1:]]
    return ("gravity", f"{case.frame}.mass", *origins)


def slopes_of_closed_forward_dynamics(case: Case) -> Pairs:
    """H dqdd - A.T dlambda = dtau - Z dx,   A dqdd = -W dx

    Z dx and W dx are changes of the residuals by x = q, qd and p (class Balance);
    dqdd_dtau is symmetric. Where no joint moves the rod, only f = 0 is checked.
    """
    case, tau, paths = with_rod(case), case.qdd, _paths(case)
    f, A, _ = case.other("loop_constraints")(case.q, case.qd)
    yield f, np.zeros(len(f))
    if not movable(A):
        return
    program = case.program(inputs=["f_ext"], paths=paths, joint_friction=True, **RATES)
    got = program(case.q, case.qd, tau, case.f_ext)
    balance = Balance(case, got.qdd, got.lambda_, **RATES)
    values = {"inputs": ["f_ext"], "joint_friction": True, **RATES}
    forward = case.other("loop_forward_dynamics", **values)
    wanted = forward(case.q, case.qd, tau, case.f_ext)
    yield balance.H @ got.qdd, balance.H @ wanted.qdd
    yield got.lambda_, wanted.lambda_
    nv = case.model.nv
    none = {"q": nv, "qd": nv, "p": got.dqdd_dp.shape[1]}
    changes = {
        x: (
            getattr(got, f"dqdd_d{x}"),
            getattr(got, f"dlambda_d{x}"),
            np.zeros((nv, n)),
        )
        for x, n in none.items()
    }
    changes["tau"] = got.dqdd_dtau, got.dlambda_dtau, np.eye(nv)
    yield from balance.pairs(changes, paths, friction=True)
    yield got.dqdd_dtau, got.dqdd_dtau.T


def slopes_of_closed_hybrid_dynamics(case: Case) -> Pairs:
    """tau_u, qdd_v and lambda change as both equations demand

    All joints but the last are prescribed; none, if the last does not move the rod.
    """
    case, paths = with_rod(case), _paths(case)
    f, A, _ = case.other("loop_constraints")(case.q, case.qd)
    yield f, np.zeros(len(f))
    if not movable(A):
        return
    names = list(case.model.joint_names)[:-1]
    mask = np.zeros(case.model.nv, bool)
    for name in names:
        mask[case.model.v_slice(name)] = True
    if np.abs(A[:, ~mask]).max(initial=0.0) < 1e-3:
        names, mask = [], np.zeros(case.model.nv, bool)
    choices: dict[str, Any] = {"inputs": ["f_ext"], "prescribed": names, **RATES}
    program = case.program(paths=paths, **choices)
    tau, qdd = case.qdd.copy(), case.qdd.copy()
    state = case.q, case.qd, qdd[mask], tau[~mask], case.f_ext
    got = program(*state)
    wanted = case.other("loop_hybrid_dynamics", **choices)(*state)
    yield from zip(got, wanted, strict=False)
    qdd[~mask] = got.qdd_v
    balance = Balance(case, qdd, got.lambda_, **RATES)
    nv, changes = case.model.nv, {}
    for x in ("q", "qd", "qdd_u", "tau_v", "p"):
        width = getattr(got, f"dlambda_d{x}").shape[1]
        dqdd, dtau = np.zeros((2, nv, width))
        dqdd[~mask], dtau[mask] = (
            getattr(got, f"dqdd_v_d{x}"),
            getattr(got, f"dtau_u_d{x}"),
        )
        if x == "qdd_u":
            dqdd[mask] = np.eye(width)
        if x == "tau_v":
            dtau[~mask] = np.eye(width)
        changes[x] = dqdd, getattr(got, f"dlambda_d{x}"), dtau
    yield from balance.pairs(changes, paths)


def slopes_of_closed_inverse_dynamics(case: Case) -> Pairs:
    """tau_a and lambda change as the first equation demands

    The first joint of one coordinate that moves the rod is passive; A qd = 0.
    """
    case, paths = closed_rates(with_rod(case)), _paths(case)
    f, A, _ = case.other("loop_constraints")(case.q, case.qd)
    yield f, np.zeros(len(f))
    single = [n for n in case.model.joint_names if case.width(n) == 1]
    passive = [n for n in single if abs(A[0, case.model.v_slice(n)][0]) > 1e-3]
    if not passive:
        return
    active = [n for n in case.model.joint_names if n != passive[0]]
    index = case.model.v_slice(passive[0]).start
    motors = np.arange(case.model.nv) != index
    choices: dict[str, Any] = {
        "inputs": ["f_ext"], "active": active, "residual": None,
    }  # fmt: skip
    tau_p = case.qdd[index : index + 1]
    state = case.q, case.qd, case.qdd, tau_p, case.f_ext
    got = case.program(paths=paths, **choices)(*state)
    wanted = case.other("loop_inverse_dynamics", **choices)(*state)
    yield from zip(got, wanted, strict=False)
    balance = Balance(case, case.qdd, got.lambda_)
    nv = case.model.nv
    for x in ("q", "qd", "qdd", "tau_p", "p"):
        dlambda, width = (
            getattr(got, f"dlambda_d{x}"),
            getattr(got, f"dlambda_d{x}").shape[1],
        )
        dtau = np.zeros((nv, width))
        dtau[motors] = getattr(got, f"dtau_a_d{x}")
        if x == "tau_p":
            dtau[~motors] = np.eye(1)
        dqdd = np.eye(nv) if x == "qdd" else np.zeros((nv, width))
        changes = {x: (dqdd, dlambda, dtau)}
        yield next(balance.pairs(changes, paths))  # the rows stay as they are


LAWS: dict[Signature, tuple[Callable[[Case], Pairs], ...]] = {
    kinds.LOOP_FD_DERIVATIVES: (slopes_of_closed_forward_dynamics,),
    kinds.LOOP_HD_DERIVATIVES: (slopes_of_closed_hybrid_dynamics,),
    kinds.LOOP_ID_DERIVATIVES: (slopes_of_closed_inverse_dynamics,),
}
