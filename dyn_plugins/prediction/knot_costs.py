"""Costs at one knot of a plan, and their derivatives, each as one kernel."""

from dyn_core.authoring import (
    Matrix,
    TracedSolver,
    Transform,
    Vector,
    hookimpl,
    log_transform,
    maximum,
    minimum,
    skew,
    slope_of,
    split_q,
    split_v,
    sqrt,
    value_of,
    with_slopes,
)
from dyn_core.errors import UnsupportedError
from dyn_core.prediction import cost as costs_of_plans
from dyn_core.problems import KNOT_COST, KNOT_COST_DERIVATIVES, KNOT_POLICY, STEP
from dyn_core.spatial.lie import log3
from dyn_core.validation import shown
from dyn_plugins.derivatives._chains import are_zero
from dyn_plugins.kinematics.energy import mass_and_centre
from dyn_plugins.kinematics.kinematics import (
    frame_and_jacobian,
    frame_motion,
    to_reference,
    transforms,
)
from dyn_plugins.steps._joint_blocks import moved

NEAR = 1e-12  # square of a distance [m²] below which its derivative is finite
# The costs without a choice: on every robot, and of each input.
DEFAULT = (costs_of_plans.posture(), costs_of_plans.velocity(), costs_of_plans.effort())


def residual_and_slopes(model, cost, q, qd, tau, target):
    """Return a residual, n, and its derivatives by displacement, velocity, joint force.

    They are a Matrix n x 3 nv. target: Flat numbers, cost.target_size(model).
    """
    if cost.kind in ("pose", "distance"):
        return _of_frames(model, cost, q, target)
    inputs, residual = _INPUTS[cost.kind], _RESIDUALS[cost.kind]

    def along(x, y, z):
        return Vector(residual(model, cost, x, y, z, target))

    value, columns = along(q, qd, tau), []
    for number, name in enumerate(("q", "qd", "tau")):
        for unit in Matrix.identity(model.nv).rows:
            if name not in inputs:
                columns.append([0.0] * len(value))
                continue
            changed = [q, qd, tau]
            changed[number] = (
                moved(model, q, Vector(unit))
                if name == "q"
                else with_slopes(changed[number], unit)
            )
            columns.append(slope_of(along(*changed)))
    return value, Matrix(columns).T


def _of_frames(model, cost, q, target):
    """Return a residual of the poses of frames, and its derivatives, n x 3 nv.

        dr = sum over the frames of (dr / dX) J dq

    J is the Jacobian in base axes at the frame's origin. The columns by velocity and
    joint force are zero.
    """
    frames = [frame_and_jacobian(model, q, name) for name in cost.frames]
    residual = _pose if cost.kind == "pose" else _distance
    value = Vector(residual(cost, [X for X, _ in frames], target))
    by_q = Matrix.zeros(len(value), model.nv)
    for k, (X, J) in enumerate(frames):
        columns = []
        for unit in Matrix.identity(6).rows:
            changed = [X for X, _ in frames]
            changed[k] = _displaced(X, Vector(unit[:3]), unit[3:])
            columns.append(slope_of(Vector(residual(cost, changed, target))))
        by_q = by_q + Matrix(columns).T @ J
    zeros = [0.0] * (2 * model.nv)
    return value, Matrix([*row, *zeros] for row in by_q.rows)


def _displaced(X, turn, shift):
    """Return the Transform X from the base to a frame, with its derivative.

    turn, shift: The frame's rotation vector and displacement, in base axes.
    """
    dE = -(X.E @ skew(turn))
    rows = [with_slopes(x, d) for x, d in zip(X.E.rows, dE.rows, strict=True)]
    return Transform(Matrix(rows), with_slopes(X.r, shift))


def _pose(cost, frames, target):
    """Return the displacement from the target pose to the frame, a list of numbers.

    cost.part is "position": 3 in base axes [m]; "orientation": 3, the rotation vector
    in the target's axes [rad]; else 6, [rotation; translation] of log_transform in the
    target's axes [rad; m]. target: rotation matrix row by row, then the position.
    """
    (X,) = frames
    rotation = Matrix([target[3 * k : 3 * k + 3] for k in range(3)])
    place = Vector(target[9:12])
    if cost.part == "position":
        return list(X.r - place)
    if cost.part == "orientation":
        return list(log3(rotation.T @ X.E.T))
    return list(log_transform(X @ Transform(rotation.T, place).inverse))


def _distance(cost, frames, target):
    """Return a list of one number: a distance between two points less its target [m].

    With the part "at_least" it is 0 beyond the target. At a distance of zero it is
    smoothed. With one frame the target has the second point, in the base, after the
    distance.
    """
    other = frames[1].r if len(frames) == 2 else Vector(target[1:4])
    apart = frames[0].r - other
    error = sqrt(apart @ apart + NEAR) - target[0]
    return [minimum(error, 0.0) if cost.part == "at_least" else error]


def _velocity_of_frame(model, cost, q, qd, tau, target):
    v, _, X = frame_motion(model, split_q(model, q), split_v(model, qd), cost.frames[0])
    v = to_reference(X, cost.part) @ v
    return [x - y for x, y in zip([*v.ang, *v.lin], target, strict=True)]


def _centre(model, cost, q, qd, tau, target):
    return mass_and_centre(model, transforms(model, split_q(model, q)))[1] - Vector(
        target
    )


def _posture(model, cost, q, qd, tau, target):
    return model.difference(Vector(target), q)


_INPUTS = {
    "posture": ("q",),
    "velocity": ("qd",),
    "effort": ("tau",),
    "frame_velocity": ("q", "qd"),
    "centre_of_mass": ("q",),
    "custom": ("q", "qd", "tau"),
}
_RESIDUALS = {
    "posture": _posture,
    "velocity": lambda model, cost, q, qd, tau, target: qd - Vector(target),
    "effort": lambda model, cost, q, qd, tau, target: tau - Vector(target),
    "frame_velocity": _velocity_of_frame,
    "centre_of_mass": _centre,
    "custom": lambda model, cost, q, qd, tau, target: cost.function(model, q, qd, tau),
}
KINDS = (*_RESIDUALS, "pose", "distance")


def residual_of(model, cost, q, qd, tau, target):
    """Return a residual alone, a list of numbers; see residual_and_slopes."""
    if cost.kind in ("pose", "distance"):
        X = [frame_and_jacobian(model, q, name)[0] for name in cost.frames]
        return (_pose if cost.kind == "pose" else _distance)(cost, X, target)
    values = _RESIDUALS[cost.kind](model, cost, q, qd, tau, target)
    return [value_of(x) for x in values]


def knot_cost(model, q, qd, tau, settings, costs):
    """Return the value of the costs at one knot.

        value = sum of weight residual² / 2

    `settings` has for each cost its weights, then its target. An unknown frame raises
    ModelError, a user's function that fails or returns no list SettingError, when the
    Program is built; the centre of mass of a robot without mass SingularError when it
    runs.

    Inputs and outputs: those of KNOT_COST.

    Args:
        costs: Costs, as dyn.cost makes them, in the order of `settings`.

    Source: J. Nocedal, S. Wright, Numerical Optimization, section 10.1.
    """
    value = 0.0
    for cost, weights, target in _parts(model, settings, costs):
        residual = residual_of(model, cost, q, qd, tau, target)
        for w, r in zip(weights, residual, strict=True):
            value = value + w * r * r * 0.5
    return value


def knot_cost_derivatives(model, q, qd, tau, settings, costs):
    """Return the value of the costs at one knot and its derivatives.

        gradient = J.T W r,   Hessian = J.T W J

    The results are the value; its gradients by x = (dq, qd), 2 nv, and by tau, nv; and
    the blocks of the Hessian by x x, tau x and tau tau. The Hessian is by Gauss-Newton,
    without the second derivatives of residuals. `settings` as in knot_cost. An unknown
    frame raises ModelError, a user's function that fails or returns no list
    SettingError, when the Program is built; the centre of mass of a robot without mass
    SingularError when it runs.

    Inputs and outputs: those of KNOT_COST_DERIVATIVES.

    Args:
        costs: Costs, as dyn.cost makes them, in the order of `settings`.

    Source: J. Nocedal, S. Wright, Numerical Optimization, section 10.3.
    """
    n, value = 3 * model.nv, 0.0
    gradient, hessian = [0.0] * n, [[0.0] * n for _ in range(n)]
    for cost, weights, target in _parts(model, settings, costs):
        residual, J = residual_and_slopes(model, cost, q, qd, tau, target)
        for w, r, row in zip(weights, residual, J.rows, strict=True):
            value = value + w * r * r * 0.5
            filled = [k for k, x in enumerate(row) if not are_zero([x])]
            for k in filled:
                weighted = w * row[k]
                gradient[k] = gradient[k] + weighted * r
                for j in filled:
                    if j <= k:
                        hessian[k][j] = hessian[k][j] + weighted * row[j]
                        hessian[j][k] = hessian[k][j]
    split = 2 * model.nv
    return (
        value,
        Vector(gradient[:split]),
        Vector(gradient[split:]),
        Matrix(row[:split] for row in hessian[:split]),
        Matrix(row[:split] for row in hessian[split:]),
        Matrix(row[split:] for row in hessian[split:]),
    )


def knot_policy(
    model, q, qd, q_plan, qd_plan, tau_plan, k, K, lower, upper, gap, length,
    settings, dt, step, costs,
):  # fmt: skip
    """Return the step of a plan under its feedback, and the costs at its knot.

        tau = tau_plan + length k + K dx,   dx = (q (-) q_plan, qd - qd_plan)
        x_next = step(x, tau) (+) (length - 1) gap

    The results are q_next, qd_next, tau and the value of knot_cost at q, qd and tau.
    tau is clipped to its bounds, NaN stays NaN. K is nv x 2 nv; gap is 2 nv, of q, then
    of qd. Without the input K tau is tau_plan, clipped, and no gap is added, also where
    k, gap and length are given; with K, all of them and q_plan and qd_plan are needed.
    Errors of `step` pass through, and so do those of knot_cost.

    Inputs and outputs: those of KNOT_POLICY.

    Args:
        step: Solver of STEP.
        costs: Costs, as dyn.cost makes them, in the order of `settings`.

    Source: C. Mastalli et al., A feasibility-driven approach to control-limited DDP,
    Autonomous Robots 46 (2022).
    """
    wanted = tau_plan
    if K is not None:
        dx = Vector([*model.difference(q_plan, q), *(qd - qd_plan)])
        wanted = tau_plan + k * length + K @ dx
    tau = Vector(
        minimum(high, maximum(x, low))  # in this order NaN stays NaN
        for x, low, high in zip(wanted, lower, upper, strict=True)
    )
    q_next, qd_next = step(q, qd, tau, dt)
    if K is not None:
        back = Vector(gap) * (length - 1.0)
        q_next = model.integrate(q_next, Vector(back[: model.nv]))
        qd_next = qd_next + Vector(back[model.nv :])
    return q_next, qd_next, tau, knot_cost(model, q, qd, tau, settings, costs)


def _parts(model, settings, costs):
    """Yield (cost, weights, target) with the numbers of each cost in the settings.

    settings: For each cost its weights, then its target, one after the other, flat. How
    many there are is not checked.
    """
    numbers, start = list(settings), 0
    for cost in costs:
        size, target = cost.size(model), cost.target_size(model)
        middle, end = start + size, start + size + target
        yield cost, numbers[start:middle], numbers[middle:end]
        start = end


def _sizes(model, options):
    sizes = [c.size(model) + c.target_size(model) for c in options["costs"]]
    return {"ns": sum(sizes), "nx": 2 * model.nv}


def _known_costs(model, costs):
    """Raise UnsupportedError unless all entries are Costs."""
    for cost in costs:
        if not isinstance(cost, costs_of_plans.Cost):
            raise UnsupportedError(
                f"costs: {shown(cost)}; valid: Costs, as dyn.cost.effort() makes them"
            )


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    shared = {
        "options": {"costs": DEFAULT},
        "valid": {"costs": _known_costs},
        "sizes": _sizes,
        "by_joint": False,
    }
    return [
        TracedSolver("knot_cost", KNOT_COST, knot_cost, **shared),
        TracedSolver(
            "knot_cost_derivatives",
            KNOT_COST_DERIVATIVES,
            knot_cost_derivatives,
            **shared,
        ),
        TracedSolver(
            "knot_policy",
            KNOT_POLICY,
            knot_policy,
            slots={"step": STEP},
            fills={"step": "semi_implicit_euler"},
            **shared,
        ),
    ]
