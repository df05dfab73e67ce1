"""Derivatives of constrained forward dynamics, with the signatures of step slots."""

from dyn_core.authoring import hookimpl
from dyn_core.model import parameter_paths
from dyn_core.problems import FD_DERIVATIVES, FD_PARAMETER_JACOBIAN
from dyn_plugins.derivatives._fixed_forces import OPTIONS, VALID, FixedForces
from dyn_plugins.derivatives.jacobians import ByParameters
from dyn_plugins.loop_derivatives.loop_derivatives import loop_fd_derivatives
from dyn_plugins.loops.loop_drop_in import DRIFT


def fd_derivatives_loops(model, q, qd, tau, f_ext, alpha, beta, **fixed):
    """Return the derivatives of aba_loops.

        d qdd = dqdd_dq dq + dqdd_dqd dqd + Hinv dtau

    Hinv is the acceleration per joint force with closed loops,
    H^-1 - H^-1 A.T G^-1 A H^-1, with G = A H^-1 A.T; without loops the inverse of H.
    Rows of loops that depend on each other are a SingularError.

    Inputs and outputs: those of FD_DERIVATIVES.

    Args:
        alpha, beta: Baumgarte's rates [1/s], against drift; 0: none.
        fixed: f_ext_fixed, frame in which f_ext is constant as bodies move, and
            f_ext_points, points of action; see id_directional.

    Source: as loop_fd_derivatives.
    """
    results = loop_fd_derivatives(
        model, q, qd, tau, f_ext, alpha, beta, None, paths=(), **fixed
    )
    return results[0], *results[2:5]


def fd_parameter_jacobian_loops(model, q, qd, tau, f_ext, alpha, beta, paths, **fixed):
    """Return the derivative of aba_loops by parameters of the Model.

        qdd(p + dp) = qdd + dqdd_dp dp

    Rows of loops that depend on each other are a SingularError.

    Inputs and outputs: those of FD_PARAMETER_JACOBIAN.

    Args:
        alpha, beta: Baumgarte's rates [1/s], against drift; 0: none.
        paths: Parameter paths (model/parameter_paths.py).
        fixed: f_ext_fixed, frame in which f_ext is constant as bodies move, and
            f_ext_points, points of action; see id_directional.

    Source: as loop_fd_derivatives.
    """
    results = loop_fd_derivatives(
        model, q, qd, tau, f_ext, alpha, beta, None, paths=paths, **fixed
    )
    return results[0], results[5]


def _path_sizes(model, options):
    """Return the sizes of the Ports: {"np": numbers of the parameter paths}."""
    return {"np": sum(parameter_paths.size(model, path) for path in options["paths"])}


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    options = {"alpha": DRIFT, "beta": DRIFT, **OPTIONS}
    common = {"valid": VALID, "by_joint": False, "closes_loops": True, "default": True}
    return [
        FixedForces(
            "fd_derivatives_loops",
            FD_DERIVATIVES,
            fd_derivatives_loops,
            options=options,
            **common,
        ),
        ByParameters(
            "fd_parameter_jacobian_loops",
            FD_PARAMETER_JACOBIAN,
            fd_parameter_jacobian_loops,
            options={"paths": (), **options},
            sizes=_path_sizes,
            **common,
        ),
    ]
