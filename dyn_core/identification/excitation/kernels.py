"""Programs of the design: regressor and joint forces of a motion, positions of points.

Each has an adjoint Program that returns the gradient of a weighted sum of its results,
for many states at once: the contribution of one sample to the gradient of any function
of the whole motion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dyn_core.engines import Program
from dyn_core.model import Model
from dyn_core.model.coordinates import join_force, split_q, split_v
from dyn_core.model.passive_forces import resistance, without_dry_friction
from dyn_core.numbers.reverse import Record
from dyn_core.numbers.scalar import tanh
from dyn_core.problems import INVERSE_DYNAMICS, REGRESSOR
from dyn_core.problems.ports import q, qd, qdd
from dyn_core.problems.signatures import Port, Signature
from dyn_core.solving.registry import solver
from dyn_core.solving.solver import TracedSolver
from dyn_core.spatial import Transform, Vector

RUNS_WHILE_TRACED = "wings"  # a mark, see engines/llvm/cached/fingerprint.py
_RESULTS = Port("results", ("results",), "SI", meaning="what the design looks at")
_WEIGHTS = Port("weights", ("results",), "SI", meaning="weights of these results")
MOTION_ROWS = Signature(
    "motion_rows",
    (q, qd, qdd),
    (_RESULTS,),
    friction_at="qd",
    meaning="rows of the regressor and joint forces of a motion",
)
MOTION_PULL = Signature(
    "motion_pull",
    (q, qd, qdd, _WEIGHTS),
    (Port("gradient", ("slopes",), "SI", meaning="by q, qd and qdd"),),
    friction_at="qd",
    meaning="gradient of weighted motion_rows",
)
POINTS = Signature(
    "moving_points",
    (q,),
    (_RESULTS,),
    meaning="places of points of bodies",
)
POINTS_PULL = Signature(
    "moving_points_pull",
    (q, _WEIGHTS),
    (Port("gradient", ("nv",), "SI", meaning="by q"),),
    meaning="gradient of weighted moving_points",
)


def motion_rows(model, q, qd, qdd, regressor, inverse_dynamics, columns, speeds):  # type: ignore[no-untyped-def]
    """Return columns of the regressor, row by row, then joint forces, in one Vector.

        [Y_1k, Y_2k, ..., tau],   tau without dry friction, with damping and springs

    It has nv (columns + 1) numbers. Columns of dry friction are tanh(qd / v), with v,
    the speed of each coordinate by body, base included [rad/s | m/s], wide enough that
    samples resolve the reversal of a joint. Columns are counted as ten of each body
    from body 1 on, then damping of all bodies' joint coordinates, followers included,
    dry friction of all, and rotor inertia of all.

    Source: design of this project.
    """
    Y = regressor(q, qd, qdd)
    inertial = 10 * model.nb
    friction = _friction_columns(model, qd, speeds)
    size = inertial + len(friction)
    rows = []
    for j in range(model.nv):
        for k in columns:
            if inertial <= k < size:
                rows.append(friction[k - inertial][j])
            else:
                rows.append(Y[j, k if k < inertial else k - len(friction)])
    tau = inverse_dynamics(q, qd, qdd, None)
    return Vector((*rows, *(tau + resistance(without_dry_friction(model), q, qd))))


def _friction_columns(model, qd, speeds):  # type: ignore[no-untyped-def]
    """Return a list of columns, (nv,) each: all of damping, then all of dry friction.

    One for each coordinate, followers included, as in motion_rows. A follower's force
    acts on its leader, times the ratio.
    """
    none = [Vector.zeros(joint.nv) for joint in model.joint]
    parts, columns = split_v(model, qd), []
    for smooth in (False, True):
        for i in model.bodies:
            for k, x in enumerate(parts[i]):
                alone = [0.0] * len(parts[i])
                alone[k] = tanh(x / speeds[i][k]) if smooth else x
                forces = [*none[:i], Vector(alone), *none[i + 1 :]]
                columns.append(join_force(model, forces))
    return columns


def motion_pull(model, q, qd, qdd, weights, **choices):  # type: ignore[no-untyped-def]
    """Return the gradient of weighted motion_rows by q, qd and qdd, (3 nv,).

        g = d(weights . motion_rows) / d(q, qd, qdd)

    Source: design of this project.
    """
    record = Record()
    n = len(q)
    x = record.variables([*q, *qd, *qdd])
    parts = Vector(x[:n]), Vector(x[n : 2 * n]), Vector(x[2 * n :])
    results = motion_rows(model, *parts, **choices)
    return Vector(record.gradient(results, weights, x))


def moving_points(model, q, points):  # type: ignore[no-untyped-def]
    """Return the world positions of points fixed to bodies, a Vector (3 points,) [m].

        x_world = R_i x + p_i

    Points are (i, x, y, z): index of the body, 0: base, and body coordinates [m].

    Source: RBDA, section 4.2.
    """
    parts = split_q(model, q)
    X = [Transform.identity()]
    for i in model.bodies:
        X.append(model.joint[i].X(parts[i]) @ model.Xtree[i] @ X[model.parent[i]])
    places = []
    for body, *place in points:
        R, p = X[body].pose
        places += list(R @ Vector(place) + p)
    return Vector(places)


def moving_points_pull(model, q, weights, points):  # type: ignore[no-untyped-def]
    """Return the gradient of weighted moving_points by q, (nv,).

        g = d(weights . moving_points) / dq

    Source: design of this project.
    """
    record = Record()
    x = record.variables(q)
    results = moving_points(model, Vector(x), points)
    return Vector(record.gradient(results, weights, x))


class RowsAndPull(NamedTuple):
    """A Program, and its adjoint `pull`: the gradient of the weighted results."""

    rows: Program[Any]
    pull: Program[Any]


def motion_programs(
    model: Model, columns: Sequence[int], speeds: np.ndarray, engine: str | None
) -> RowsAndPull:
    """Return the Program of motion_rows and the Program of its gradient.

    `rows`(q, qd, qdd) returns motion_rows, `pull`(q, qd, qdd, weights) the gradient of
    weights . rows by q, qd and qdd, (3 nv,). `speeds`, over which dry friction of each
    body's joint is smoothed, are (nb + 1,), 0 for the base [rad/s | m/s].
    """
    slots: dict[str, Any] = {"regressor": REGRESSOR}
    slots["inverse_dynamics"] = INVERSE_DYNAMICS
    fills: dict[str, Any] = {"inverse_dynamics": solver("rnea")}
    fills["regressor"] = solver("regressor").with_options(rotors=True)
    by_body = [
        (float(v),) * joint.nv for v, joint in zip(speeds, model.joint, strict=True)
    ]
    options = {"columns": tuple(columns), "speeds": tuple(by_body)}
    sizes = {"results": model.nv * (len(columns) + 1), "slopes": 3 * model.nv}

    def made(signature: Signature, algorithm: Callable[..., Any]) -> Program[Any]:
        return TracedSolver(
            signature.name,
            signature,
            algorithm,
            slots=slots,
            fills=fills,
            options=options,
            sizes=lambda model, options: sizes,
            by_joint=False,
        ).build(model, engine=engine, joint_friction=True, joint_springs=True)

    return RowsAndPull(made(MOTION_ROWS, motion_rows), made(MOTION_PULL, motion_pull))


def point_programs(
    model: Model, points: Sequence[tuple[Any, ...]], engine: str | None
) -> RowsAndPull:
    """Return the Programs rows(q) of moving_points, and pull(q, weights).

    `pull` returns the gradient of weights . rows by q, (nv,).
    """
    sizes = {"results": 3 * len(points)}

    def made(signature: Signature, algorithm: Callable[..., Any]) -> Program[Any]:
        return TracedSolver(
            signature.name, signature, algorithm, options={"points": tuple(points)},
            sizes=lambda model, options: sizes, by_joint=False,
        ).build(model, engine=engine)  # fmt: skip

    return RowsAndPull(
        made(POINTS, moving_points), made(POINTS_PULL, moving_points_pull)
    )
