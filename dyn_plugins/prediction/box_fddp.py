"""Optimal control by differential dynamic programming, with and without gaps."""

from dyn_core.authoring import hookimpl
from dyn_core.prediction import Descent, PlanSolver
from dyn_core.validation import Quantity, Switch, Whole

OPTIONS = {"max_iterations": 500, "tolerance": 1e-14, "second_derivatives": False}
VALID = {
    "max_iterations": Whole(1),
    "tolerance": Quantity(0.0),
    "second_derivatives": Switch(),
}


class BoxFDDP(PlanSolver):
    """Plans by feasibility-driven dynamic programming with bounds on joint forces.

        Q_xx = l_xx + A.T V A,  Q_ux = l_ux + B.T V A,  Q_uu = l_uu + B.T V B

    The guess of the states may have gaps, which full steps close. Second derivatives of
    the dynamics are left out (iterative LQR); with `second_derivatives`, y . d2x_next
    is added while steps are as good as predicted, y the costates. The rows of the
    feedback of saturated joint forces are zero. Of eight step lengths, each half of the
    one before, the longest is taken that decreases the merit of value and gaps enough.
    Limits of position and velocity are an augmented Lagrangian.

    Source: C. Mastalli et al., A feasibility-driven approach to control-limited DDP,
    Autonomous Robots 46 (2022).
    """

    name = "box_fddp"
    source = "C. Mastalli et al., A feasibility-driven approach to control-limited DDP"
    options, valid = OPTIONS, VALID
    default = True

    def prepare(self, problem, **options):
        """Return a function from a PlanStart, with its guesses, to a PlanResult.

        problem: ControlProblem. options: Those of the class, by name (max_iterations,
        tolerance, second_derivatives); one left out has the default of the class.
        Values are not checked here.

        Raises UnsupportedError for second derivatives that the robot has not, and the
        errors of PlanSolver.prepare.
        """
        return Descent(problem, **options)


class ILQR(PlanSolver):
    """Plans by iterative LQR with bounds on joint forces.

    As box_fddp, but each iteration begins with the motion under its joint forces: a
    guess of the states is not used.

    Source: Y. Tassa, N. Mansard, E. Todorov, Control-limited differential dynamic
    programming, ICRA 2014.
    """

    name = "ilqr"
    source = "Y. Tassa et al., Control-limited differential dynamic programming"
    options, valid = OPTIONS, VALID

    def prepare(self, problem, **options):
        """Return a function from a PlanStart, with its guesses, to a PlanResult.

        The function does not use the guess of the states. problem: ControlProblem.
        options: As of BoxFDDP. Raises UnsupportedError for second derivatives that the
        robot has not, and the errors of PlanSolver.prepare.
        """
        return Descent(problem, gaps=False, **options)


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [BoxFDDP(), ILQR()]
