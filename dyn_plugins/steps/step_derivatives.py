"""Derivatives of time steps by state, joint forces and parameters, on the manifold.

A slot gives the derivatives of the dynamics. Those of each joint's own functions
(integration of its coordinates, limit stops, implicit friction) are found by Taylor
numbers.
"""

from typing import NamedTuple

from dyn_core.authoring import (
    Matrix,
    TracedSolver,
    Vector,
    advance,
    hookimpl,
    product,
    rate_in_initial_axes,
    with_parameters,
    with_slopes,
)
from dyn_core.errors import UnsupportedError
from dyn_core.model import parameter_paths
from dyn_core.problems import (
    FD_DERIVATIVES,
    FD_PARAMETER_JACOBIAN,
    STEP_DERIVATIVES,
)
from dyn_core.validation import shown
from dyn_plugins.derivatives._chains import are_zero
from dyn_plugins.derivatives._seeds import checked_paths
from dyn_plugins.steps._joint_blocks import (
    displacement,
    moved,
    plus_scaled,
    slope_columns,
    slopes_by_joint,
)
from dyn_plugins.steps._stages import weighted_stages
from dyn_plugins.steps.integration import (
    end_of_step,
    stop_force,
    time_after,
    with_rotors,
)

ROLLED = 12  # coordinates from which the stages of rk4_derivatives are a loop
STEP_SLOTS = {"derivatives": FD_DERIVATIVES, "by_parameters": FD_PARAMETER_JACOBIAN}


def semi_implicit_euler_derivatives(
    model, q, qd, tau, dt, f_ext, derivatives, by_parameters,
    limit_stops, implicit, paths,
):  # fmt: skip
    """Return q_next and qd_next of semi_implicit_euler, and derivatives A, B, dx_dp.

        dx_next = A dx + B dtau + dx_dp dp,   dx = (dq, dqd)
        for one-axis joints  A = [[1 + dt² Q, dt + dt² V], [dt Q, 1 + dt V]],
        B = [dt² Hinv; dt Hinv],   Q = dqdd_dq,  V = dqdd_dqd,  Hinv = dqdd_dtau

    dq is a displacement in the tangent space before the step, q (+) dq, and after it,
    q_next (+) dq_next. At the position where a limit stop begins to act, the result is
    a one-sided derivative. Errors of the slots pass through. With limit_stops, a swing
    of pi of a limited ball joint raises SingularError when the Program runs; an invalid
    path raises UnsupportedError or ModelError when it is built.

    Inputs and outputs: those of STEP_DERIVATIVES; f_ext by body, the base first.

    Args:
        derivatives: Solver of FD_DERIVATIVES.
        by_parameters: Solver of FD_PARAMETER_JACOBIAN; called only with paths.
        limit_stops: Whether spring-dampers act at the position limits.
        implicit: Whether friction and stops are evaluated at the end of the step.
        paths: Parameter paths of dp, one after another (model/parameter_paths.py).

    Source: chain rule over semi_implicit_euler; of forward dynamics as fd_derivatives.
    """
    q, qd, slopes = euler_slopes(
        model, q, qd, tau, dt, f_ext, derivatives, by_parameters,
        limit_stops, implicit, paths,
    )  # fmt: skip
    (q_q, q_v, q_a), (v_q, v_v, v_a), (Q, V, Hinv, P) = slopes
    by_state = stacked([[Q, V]])
    A = [
        [q_a.times(by_state, stacked([[q_q.dense, q_v.dense]]))],
        [v_a.times(by_state, stacked([[v_q.dense, v_v.dense]]))],
    ]
    B, dx_dp = (stacked([[q_a @ M], [v_a @ M]]) for M in (Hinv, P))
    return q, qd, stacked(A), B, dx_dp


class EulerSlopes(NamedTuple):
    """Derivatives of a semi-implicit Euler step and of the accelerations in it.

    `position` has those of q_next, `velocity` of qd_next, by q, qd, qdd (JointBlocks);
    `acceleration` has those of qdd by q, qd, tau and parameters (Matrices).
    """

    position: tuple
    velocity: tuple
    acceleration: tuple


def euler_slopes(
    model, q, qd, tau, dt, f_ext, derivatives, by_parameters,
    limit_stops, implicit, paths,
):  # fmt: skip
    """Return (q_next, qd_next, EulerSlopes) of a semi-implicit step.

    f_ext is by body, the base first; `derivatives` and `by_parameters` are solvers of
    FD_DERIVATIVES and FD_PARAMETER_JACOBIAN, the latter called only with paths.
    limit_stops: Spring-dampers act at the position limits; implicit: friction and stops
    are evaluated at the end of the step.
    """
    settings = dt, limit_stops, implicit
    force, rotors = end_of_step(model, q, qd, *settings)
    changed = with_rotors(model, rotors) if implicit else {}
    push = tau + force
    qdd, Q, V, Hinv = derivatives(q, qd, push, f_ext[1:], **changed)

    def taken(robot, q, qd):
        force, rotors = end_of_step(robot, q, qd, *settings)
        return force - rotors * qdd

    (by_q,) = slopes_by_joint(model, lambda u: [taken(model, moved(model, q, u), qd)])
    (by_qd,) = slopes_by_joint(model, lambda u: [taken(model, q, with_slopes(qd, u))])
    P = Matrix.zeros(model.nv, 0)
    if paths:
        _, P = by_parameters(q, qd, push, f_ext[1:], **changed)
        slopes = slopes_by_parameters(model, paths, lambda robot: taken(robot, q, qd))
        P = P + Hinv @ slopes

    def step(q, qd, qdd):
        return advance(model, q, qd + rate_in_initial_axes(model, qd, qdd) * dt, dt)

    def along(q, qd, qdd):
        q_next, qd_next = step(q, qd, qdd)
        return displacement(model, q_next), qd_next

    slopes = zip(
        slopes_by_joint(model, lambda u: along(moved(model, q, u), qd, qdd)),
        slopes_by_joint(model, lambda u: along(q, with_slopes(qd, u), qdd)),
        slopes_by_joint(model, lambda u: along(q, qd, with_slopes(qdd, u))),
        strict=True,
    )
    of_qdd = Q + Hinv @ by_q, V + Hinv @ by_qd, Hinv, P
    return *step(q, qd, qdd), EulerSlopes(*slopes, of_qdd)


def stacked(blocks):
    """Return one Matrix of `blocks`, a list of block rows, each a list of Matrices."""
    rows = []
    for line in blocks:
        for parts in zip(*(block.rows for block in line), strict=True):
            rows.append([x for part in parts for x in part])
    return Matrix(rows)


def slopes_by_parameters(model, paths, function):
    """Return the derivatives of function(model), nv, by numbers of paths, nv x np."""
    columns = []
    for path in paths:
        numbers = parameter_paths.numbers(model, path)
        for unit in Matrix.identity(len(numbers)).rows:
            changed = {path: with_slopes(numbers, unit)}
            columns.append(function(with_parameters(model, changed)))
    return slope_columns(columns, model.nv)


def rk4_derivatives(
    model, q, qd, tau, dt, f_ext, derivatives, by_parameters, limit_stops, paths
):
    """Return q_next and qd_next of rk4, and the derivatives A, B and dx_dp.

        dx_next = A dx + B dtau + dx_dp dp,   dx = (dq, dqd)

    The four stages and their derivatives are computed together; dq is a displacement in
    the tangent space before the step, and after it. From nv = 12 on the stages are
    iterations of a loop: the kernels are compiled in a third of the time, and a batch
    runs up to 1.5 times as long. Errors of the slots pass through. With limit_stops, a
    swing of pi of a limited ball joint raises SingularError when the Program runs; an
    invalid path raises UnsupportedError or ModelError when it is built.

    Inputs and outputs: those of STEP_DERIVATIVES; f_ext by body, the base first.

    Args:
        derivatives: Solver of FD_DERIVATIVES.
        by_parameters: Solver of FD_PARAMETER_JACOBIAN; called only with paths.
        limit_stops: Whether spring-dampers act at the position limits.
        paths: Parameter paths of dp, one after another (model/parameter_paths.py).

    Source: chain rule over rk4; of forward dynamics as fd_derivatives.
    """

    n, slots = model.nv, (derivatives, by_parameters if paths else None)
    width = 3 * n + sum(parameter_paths.size(model, path) for path in paths)

    def rates(before, length):
        (rate, qdd), slopes = _split(before, n, width)
        state = rate * length, qd + qdd * length
        inputs = q, tau, f_ext[1:]
        stage = _stage(model, inputs, state, slopes, length, slots, limit_stops)
        return [x for part in stage for x in part]

    change = weighted_stages(rates, 2 * n * (1 + width), dt, n >= ROLLED)
    (u, v), (dU, dV) = _split(change, n, width)
    by_q, by_u = slopes_of_integrate(model, q, u)
    dq = by_u @ dU + _placed(by_q.dense, 0, width)
    dqd = dV + _placed(Matrix.identity(n), n, width)
    D = stacked([[dq], [dqd]])
    q_next = model.normalize(model.integrate(q, u))
    parts = ((0, 2 * n), (2 * n, 3 * n), (3 * n, width))
    return q_next, qd + v, *(columns(D, *ends) for ends in parts)


def _split(numbers, n, width):
    """Return a flat list as (pair of Vectors n, pair of Matrices n x width by row)."""
    rows = [numbers[2 * n + k * width :][:width] for k in range(2 * n)]
    vectors = Vector(numbers[:n]), Vector(numbers[n : 2 * n])
    return vectors, (Matrix(rows[:n]), Matrix(rows[n:]))


def columns(M, start, stop):
    """Return the Matrix of columns start, ..., stop - 1 of a Matrix M."""
    return Matrix(row[start:stop] for row in M.rows)


def slopes_of_integrate(model, q, u):
    """Return the derivatives of q (+) u by q and by u, in tangent spaces."""
    (by_q,) = slopes_by_joint(
        model,
        lambda e: [displacement(model, model.integrate(moved(model, q, e), u))],
    )
    (by_u,) = slopes_by_joint(
        model,
        lambda e: [displacement(model, model.integrate(q, with_slopes(u, e)))],
    )
    return by_q, by_u


def _stage(model, inputs, state, slopes, length, slots, limit_stops):
    """Return the rates of u and v at a stage of RK4, and their derivatives.

        dA = Q dQ + V dV + [0, 0, Hinv, dqdd_dp],   dR = T_u dU + T_v dV
        dQ = I_q [1, 0, 0, 0] + I_u dU,   dU = c dR_before
        dV = [0, 1, 0, 0] + c dA_before

    T_u, T_v are the derivatives of Model.tangent_rate by u and v, I_q, I_u those of q
    (+) u; Q, V, Hinv are those of forward dynamics at this stage, Q and V with the
    slopes of the limit stops. slopes: dR and dA of the previous stage by q, qd, tau and
    parameters, nv x (3 nv + np); length: c [s]; slots: derivatives by state and joint
    forces, and by parameters or None. Results: rate of u, qdd, then the nv rows of dR
    and those of dA.
    """
    (q, tau, f_ext), (u, v), (dR, dA) = inputs, state, slopes
    derivatives, by_parameters = slots
    q_stage, time = model.integrate(q, u), time_after(model, length)
    push = tau + stop_force(model, q_stage, v)[0] if limit_stops else tau
    qdd, Q, V, Hinv = derivatives(q_stage, v, push, f_ext, **time)
    if limit_stops:
        (by_q,) = slopes_by_joint(
            model, lambda e: [stop_force(model, moved(model, q_stage, e), v)[0]]
        )
        (by_v,) = slopes_by_joint(
            model, lambda e: [stop_force(model, q_stage, with_slopes(v, e))[0]]
        )
        Q, V = Q + Hinv @ by_q, V + Hinv @ by_v
    by_q, by_u = slopes_of_integrate(model, q, u)
    direct = [Q @ by_q, V, Hinv]
    if by_parameters is not None:
        direct.append(by_parameters(q_stage, v, push, f_ext, **time)[1])
    (T_u,) = slopes_by_joint(
        model, lambda e: [model.tangent_rate(with_slopes(u, e), v)]
    )
    (T_v,) = slopes_by_joint(
        model, lambda e: [model.tangent_rate(u, with_slopes(v, e))]
    )
    n, width = dR.shape
    before = [x for row in (*dR.rows, *dA.rows) for x in row]
    before = plus_scaled([0.0] * len(before), length, before, n >= ROLLED)
    dU, dV = (
        Matrix(
            before[start : start + width] for start in range(k, k + n * width, width)
        )
        for k in (0, n * width)
    )
    dA_next = stacked([direct])
    if not are_zero(before):
        dA_next = multiplied(stacked([[Q @ by_u, V]]), stacked([[dU], [dV]]), dA_next)
    dR_next = T_u.times(dU, T_v.times(dV, _placed(T_v.dense, n, width)))
    return model.tangent_rate(u, v), qdd, *dR_next.rows, *dA_next.rows


def _placed(block, start, width):
    """Return a Matrix of `width` columns, zero but for a block at column `start`."""
    height, columns = block.shape
    behind = Matrix.zeros(height, width - start - columns)
    return stacked([[Matrix.zeros(height, start), block, behind]])


def multiplied(A, B, onto=None):
    """Return A B, or C + A B with C = `onto`: C itself if A or B has no entries."""
    if A.rows and B.rows and B.rows[0]:
        return product(A, B, onto)
    return A @ B if onto is None else onto


def sizes(model, options):
    """Return the sizes of the Ports, {"nx": 2 nv, "np": numbers of parameter paths}.

    Raises ModelError for an unknown path.

    Args:
        model: Robot.
        options: Options of the solver; "paths" is read.
    """
    np = sum(parameter_paths.size(model, path) for path in options["paths"])
    return {"nx": 2 * model.nv, "np": np}


class StepDerivativesSolver(TracedSolver):
    """A solver of derivatives of a step, optionally by a list of parameter paths."""

    def build(self, model, **choices):
        """Return a Program for a robot.

        choices: Options of TracedSolver.build, and paths. Raises UnsupportedError for a
        parameter path without a derivative or `paths` that are a string or not
        iterable, ModelError for an unknown path, and the errors of TracedSolver.build.
        """
        paths = checked_paths(self.name, model, choices, bool(model.loops))
        return super().build(model, **{**choices, "paths": paths})

    def _adapter(self, model, common, chosen):
        """Return the adapter, with the paths passed on to the slot `by_parameters`.

        f_ext_frame must be "body": a step holds external forces constant in it.
        """
        if common.f_ext_frame != "body":
            raise UnsupportedError(
                f"{self.name}: f_ext_frame {shown(common.f_ext_frame)}; valid: 'body',"
                " in which a step keeps forces"
            )
        slot = "by_parameters"
        if slot in self.slots:
            what = chosen.get(slot, self.fills[slot])
            paths = tuple(chosen.get("paths", self.options["paths"]))
            filling = self._fill(slot, self.slots[slot], what)
            filling = filling.with_options(paths=paths)
            chosen = {**chosen, slot: filling}
        return super()._adapter(model, common, chosen)


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    common = {
        "slots": STEP_SLOTS,
        "fills": {
            "derivatives": "auto",
            "by_parameters": "auto",
        },
        "sizes": sizes,
        "by_joint": False,
    }
    return [
        StepDerivativesSolver(
            "semi_implicit_euler_derivatives",
            STEP_DERIVATIVES,
            semi_implicit_euler_derivatives,
            options={"limit_stops": False, "implicit": True, "paths": ()},
            **common,
        ),
        StepDerivativesSolver(
            "rk4_derivatives",
            STEP_DERIVATIVES,
            rk4_derivatives,
            options={"limit_stops": False, "paths": ()},
            **common,
        ),
    ]
