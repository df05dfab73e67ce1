"""Semi-implicit time step, projected on closed loops.

An inertia that is singular, also with the loops, raises SingularError when the Program
runs. m is the number of rows of all loops.
"""

from dyn_core.authoring import (
    Motion,
    TracedSolver,
    Vector,
    hookimpl,
    join_v,
    split_q,
    split_v,
    with_parameters,
)
from dyn_core.problems import FORWARD_DYNAMICS, STEP
from dyn_core.validation import Either, Nothing
from dyn_plugins.dynamics._articulated import (
    accelerations_from_forces,
    articulated_joints,
)
from dyn_plugins.kinematics.body_motion import outward
from dyn_plugins.loops._dense import DenseLoops, needs_dense
from dyn_plugins.loops._least import DEPENDENT, DRIFTING, LeastLoops, refuse_idle
from dyn_plugins.loops._loop_rows import rows_of
from dyn_plugins.loops._rank import factored_delassus
from dyn_plugins.loops.loops import constraint_forces
from dyn_plugins.steps.integration import semi_implicit_euler, time_after


def projected_euler(
    model, q, qd, tau, dt, f_ext, forward_dynamics, limit_stops, implicit, dependent,
    tolerance,
):  # fmt: skip
    """Return the state one semi-implicit step later, brought back to closed loops.

        q <- q (+) -H^-1 A.T G^-1 f,   qd <- qd - H^-1 A.T G^-1 A qd,   G = A H^-1 A.T

    One Newton step for positions and one for velocities, each the smallest in the
    metric of H. The remaining residual is of second order in the residual before. For
    rows that depend on each other, G^+ takes the place of G^-1 with
    dependent="least_norm"; rows that contradict each other then keep the least squared
    residual. A robot without loops is not corrected. tolerance without least_norm
    raises UnsupportedError when the Program is built.

    Inputs and outputs: those of STEP; f_ext by body, the base first.

    Args:
        forward_dynamics: Solver of FORWARD_DYNAMICS.
        limit_stops: Whether spring-dampers act at the position limits.
        implicit: Whether friction and stops are evaluated at the end of the step, as in
            semi_implicit_euler.
        dependent: Treatment of rows that depend on each other: refuse: SingularError;
            least_norm: G^+ in place of G^-1, and least_norm as an option of the default
            in the slot forward_dynamics; None: as that option of the solver in the
            slot, refuse if it has none.
        tolerance: Relative tolerance of the rank with least_norm; see aba_loops.

    Source: KIM-3.0 (redundant rows, projection to the manifold), KIM-2.5.
    """
    q, qd = semi_implicit_euler(
        model, q, qd, tau, dt, f_ext, forward_dynamics, limit_stops, implicit
    )
    return projected(model, q, qd, dt, projection(model, dependent, tolerance))


def projected(model, q, qd, dt, correct):
    """Return q (unit quaternions) and qd after a Newton step of each to closed loops.

    The step of qd is computed with the constraint rows before the step of q. Driven
    frames get their poses at the end of dt. correct: From `projection`, for this robot.
    """
    if not model.loops:
        return q, qd
    model = with_parameters(model, time_after(model, dt))  # driven frames at the end
    rows = rows_of(model, q, qd, Vector.zeros(model.nv))
    correction = correct(model, q, rows)
    shift = correction([-row.f for row in rows])
    rate = correction([-row.rate for row in rows])
    return model.normalize(model.integrate(q, shift)), qd + rate


def projection(model, dependent, tolerance=DRIFTING):
    """Return a function correct(model, q, rows), which projects on closed loops.

    `correct` takes the LoopRows at q and returns a function of changes of the rows, m.
    Its result is the smallest change of coordinates in the metric of H, nv, that causes
    these changes; to close loops, pass minus the residuals. Dependent rows raise
    SingularError in the Program with dependent="refuse"; else the residual is smallest,
    by the relative tolerance of the rank, see aba_loops.
    """
    if dependent == "refuse":
        return _dense if needs_dense(model) else _tree

    def least(model, q, rows):
        loops = LeastLoops(model, q, rows, [False] * model.nv, tolerance)
        return lambda x: loops.solve(Vector.zeros(model.nv), Vector(x))[0]

    return least


def _tree(model, q, rows):
    """Return a function from changes of the rows to the least change of coordinates.

    It is the least in the metric of H, by articulated inertias. To close loops, minus
    the residuals are passed.
    """
    still = split_v(model, Vector.zeros(model.nv))
    X, S, _, _ = outward(model, split_q(model, q), still, still, Motion.zero())
    joints, _ = articulated_joints(model, X, S)
    factors = factored_delassus(model, joints, rows)

    def correction(changes):
        forces, pulls = constraint_forces(model, rows, factors.solve(changes))
        push = [-f for f in forces]
        return join_v(model, accelerations_from_forces(model, joints, pulls, push).qdd)

    return correction


def _dense(model, q, rows):
    """Return the function of `_tree` by dense algebra.

    It is for robots in which loops determine the motion of a body without inertia.
    """
    loops = DenseLoops(model, q, rows, [False] * model.nv)
    none = Vector.zeros(model.nv)
    return lambda residuals: loops.solve(none, Vector(residuals))[0]


class ProjectedStep(TracedSolver):
    """A step whose option `dependent` and slot forward_dynamics choose each other.

    If `dependent` is None, it is that option of the solver in the slot, or refuse if
    the solver has none. If it is least_norm, the default in the slot gets it too. If
    both are given, both are used.
    """

    def filling(self, slot, model, what=None, dependent=None):
        """Return the solver that a slot has in a Program for a robot.

        A default solver that closes loops gets the option dependent="least_norm" if the
        step has it. Raises UnsupportedError for an unknown slot, SignatureError for a
        solver of another kind and SolverNotFound for an unknown name.

        Args:
            slot, model, what: As of TracedSolver.filling; `what` None or "auto": the
                default.
            dependent: Option of the step; None: its default.
        """
        solver = super().filling(slot, model, what)
        default = what in (None, "auto")
        dependent = self.options["dependent"] if dependent is None else dependent
        if default and dependent == "least_norm" and solver.closes_loops:
            return solver.with_options(dependent=dependent)
        return solver

    def _adapter(self, model, common, chosen):
        """Return the adapter, with missing choices made as the class says."""
        slot = "forward_dynamics"
        dependent = chosen.get("dependent", self.options["dependent"])
        solver = self.filling(slot, model, chosen.get(slot), dependent)
        if dependent is None:
            dependent = getattr(solver, "options", {}).get("dependent", "refuse")
        refuse_idle(self, chosen, dependent)
        chosen = {**chosen, slot: solver, "dependent": dependent}
        return super()._adapter(model, common, chosen)


PROJECTED = {
    "slots": {"forward_dynamics": FORWARD_DYNAMICS},
    "fills": {"forward_dynamics": "auto"},
    "by_joint": False,
    "closes_loops": True,
}  # what the steps of this class have in common
EITHER = Either((Nothing(), DEPENDENT["dependent"]))  # rule of their option dependent


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        ProjectedStep(
            "projected_euler",
            STEP,
            projected_euler,
            options={
                "limit_stops": False,
                "implicit": True,
                "dependent": None,
                "tolerance": DRIFTING,
            },
            valid={**DEPENDENT, "dependent": EITHER},
            **PROJECTED,
        ),
    ]
