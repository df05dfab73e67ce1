"""Identification: numbers of bodies and joints from measured motion and joint forces.

    tau = Y(q, qd, qdd) pi

Only some combinations of pi show in joint forces, the base parameters; what the data do
not say stays as near to a prior as it can.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.engines.llvm.compiler import progress as shown
from dyn_core.errors import (
    IdentificationError,
    ModelError,
    NonFiniteError,
    ShapeError,
    UnsupportedError,
)
from dyn_core.identification.blas_threads import one_blas_thread
from dyn_core.identification.consistent_fit import (
    EVALUATIONS,
    check_fit,
    fit_consistent,
)
from dyn_core.identification.parameter_vector import (
    Layout,
    check_switch,
    with_linear_parameters,
)
from dyn_core.identification.pseudo_inertia import least_eigenvalue
from dyn_core.identification.regressor_rank import (
    TOLERANCE,
    BaseParameters,
    base_of,
    base_parameters,
    check_tolerance,
    stack,
)
from dyn_core.model import Model
from dyn_core.solving.registry import solver
from dyn_core.validation import float_array, known_keywords

NOISE_FLOOR = 1e-6  # least noise of a joint, as part of its largest force
FITS = 4  # to find the noise of each coordinate
MOST_NAMED = 6


@dataclass(frozen=True, eq=False)
class Identification:
    """What measured motion and joint forces say about a robot.

    Attributes:
        names: Names of the parameters.
        parameters: Their values, np.
        prior: What they were before, np.
        standard_deviations: Of the parameters; infinite where the data say nothing
            about a parameter by itself, only about combinations with others.
        base: The base parameters that the data show, with their values.
        base_deviations: Their standard deviations.
        residual_rms: By coordinate: what is left of the joint force [N·m | N].
        noise: By coordinate: standard deviation that its rows were weighted by.
        rank: Number of base parameters that the data show.
        condition: Condition number of the weighted regressor on the base parameters,
            columns scaled to unit length.
        eigenvalues: By body: least eigenvalue of its pseudo-inertia; above zero
            where some mass distribution has it.
        model: The robot with these parameters; None where no robot can have them.
        reason: Why there is no model.
        evaluations: Of the fit with physical consistency; 0 without.
        converged: Whether that came to its end.
    """

    names: tuple[str, ...]
    parameters: np.ndarray
    prior: np.ndarray
    standard_deviations: np.ndarray
    base: BaseParameters
    base_deviations: np.ndarray
    residual_rms: np.ndarray
    noise: np.ndarray
    rank: int
    condition: float
    eigenvalues: np.ndarray
    model: Model | None
    reason: str = ""
    evaluations: int = 0
    converged: bool = True

    def __repr__(self) -> str:
        return (
            f"Identification(rank={self.rank} of {len(self.names)},"
            f" condition={self.condition:.3g},"
            f" residual_rms={np.array2string(self.residual_rms, precision=4)},"
            f" model={self.model})"
        )


@dataclass(eq=False)
class _Measurements:
    """Checked measurements as rows of a linear problem.

    Attributes:
        layout: Which parameters there are.
        Y, tau: (samples, nv, np), (samples, nv).
        noise: By coordinate: standard deviation of its rows.
    """

    layout: Layout
    Y: np.ndarray
    tau: np.ndarray
    noise: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.noise = np.ones(self.tau.shape[1])

    def weighted(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows over their noise."""
        A, b = self.Y / self.noise[:, None], self.tau / self.noise
        return A.reshape(-1, A.shape[-1]), b.ravel()

    def residual_rms(self, values: np.ndarray, fitted: float = 0.0) -> np.ndarray:
        """Return what is left by coordinate, some degrees of freedom being fitted."""
        left = self.tau - self.Y @ values
        count = max(len(left) - fitted, 1.0)
        return np.sqrt((left * left).sum(axis=0) / count)


@known_keywords
@one_blas_thread()
def identify(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    tau: ArrayLike,
    friction: bool = True,
    rotors: bool = True,
    prior: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    consistent: bool = False,
    *,
    partial: bool = False,
    tolerance: float = TOLERANCE,
    most_evaluations: int = EVALUATIONS,
    progress: Callable[[int, float], None] | None = None,
) -> Identification:
    """Return the parameters of a robot that fit measured joint forces best.

        least |W (Y pi - tau)|², of those the least |(pi - prior) / scale|²

    W divides the rows of each coordinate by the standard deviation of its noise, scale
    is the largest of its kind in the prior. What is not sought (friction, rotors,
    springs) is taken off tau as the robot has it. With `consistent` every body
    is one that some mass distribution has; damping, friction and rotors are not
    negative.

    Args:
        model: Robot; its parameters are the prior unless one is given.
        q: Joint positions, samples x nq [rad | m].
        qd: Joint velocities, samples x nv [rad/s | m/s].
        qdd: Joint accelerations, samples x nv [rad/s² | m/s²].
        tau: Joint forces, samples x nv [N·m | N].
        friction: Whether damping and dry friction of the joints are sought.
        rotors: Whether the inertia of rotors is sought.
        prior: What the parameters are near to, np, as `parameters_of` gives them.
        weight: By coordinate: one over the standard deviation of its noise, nv; None:
            from the residuals of a few fits.
        consistent: Whether bodies must be physical: pseudo-inertias positive definite.
        partial: Whether data will do that do not show all base parameters; what they do
            not show stays as the prior has it.
        tolerance: Singular values below this part of the largest count as zero; larger
            ones leave more to the prior.
        most_evaluations: Bound of the fit with physical consistency.
        progress: Called by that fit as progress(evaluations, cost); None: a line on
            the terminal, where there is one, once it takes long.

    Returns:
        An Identification.

    Raises:
        ShapeError: An array of the wrong size, or too few samples.
        NonFiniteError: NaN or infinity in the data; names array and rows.
        IdentificationError: The data do not show what they should, or a weight is bad.
        SettingError: A choice makes no sense.
        UnsupportedError: The robot has no joint, or it has loops.

    Source: C. Atkeson, C. An and J. Hollerbach, IJRR 5 (1986); M. Gautier, Dynamic
    identification of robots with power model, ICRA 1997 (weights of the rows); P.
    Wensing, S. Kim and J.-J. Slotine, IEEE RA-L 3 (2017); C. Rucker and P. Wensing,
    IEEE RA-L 7 (2022).
    """
    check_switch("consistent", consistent)
    check_switch("partial", partial)
    check_tolerance(tolerance)
    check_fit(consistent, most_evaluations, progress)
    layout = Layout.of(model, friction, rotors)
    if not model.nv:
        raise UnsupportedError(
            f"'{model.name}': nothing moves; valid: a robot with a joint"
        )
    start = layout.values if prior is None else layout.checked("prior", prior)
    if not np.isfinite(start).all():
        raise NonFiniteError("prior holds NaN or infinity", "prior")
    arrays = _checked(model, {"q": q, "qd": qd, "qdd": qdd, "tau": tau})
    weights = None if weight is None else _weights(model, weight)
    whole = base_parameters(model, friction, rotors)
    data = _measured(layout, arrays, whole.rank)
    base = base_of(layout, data.weighted()[0], start, tolerance)
    scale = _scales(layout, start)
    if base.rank < whole.rank and not partial:
        raise IdentificationError(_what_is_missing(base, whole, scale))
    data.noise = _noise(data, start, base, scale) if weights is None else 1 / weights
    A, b = data.weighted()
    values, evaluations, converged = _nearest(A, b, start, base, scale), 0, True
    if consistent:
        what = f"fitting {len(start)} parameters"
        with shown(what) if progress is None else nullcontext():
            values, evaluations, converged = fit_consistent(
                A, b, start, scale, layout.inertial, most_evaluations, progress
            )
    return _result(data, base, start, values, evaluations, converged)


def _checked(model: Model, measured: dict[str, ArrayLike]) -> list[np.ndarray]:
    """Return the measurements as arrays of floats, all of one length, all finite."""
    arrays: list[np.ndarray] = []
    for name, values in measured.items():
        width = model.nq if name == "q" else model.nv
        array = float_array(name, values, f"shape (samples, {width})")
        if array.ndim != 2 or array.shape[1] != width:
            raise ShapeError(name, f"shape (samples, {width})", f"shape {array.shape}")
        if arrays and len(array) != len(arrays[0]):
            wanted = f"{len(arrays[0])} samples as q has"
            raise ShapeError(name, wanted, f"{len(array)} samples")
        bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
        if len(bad):
            rows = ", ".join(map(str, bad[:MOST_NAMED]))
            raise NonFiniteError(
                f"{name} holds NaN or infinity in {len(bad)} samples ({rows}"
                f"{', ...' if len(bad) > MOST_NAMED else ''}); leave them out",
                name,
                bad.tolist(),
            )
        arrays.append(array)
    return arrays


def _measured(layout: Layout, arrays: list[np.ndarray], rank: int) -> _Measurements:
    """Return the rows of the linear problem; too few of them are a ShapeError.

    Joint forces that are not sought are taken off tau as the robot has them.
    """
    tau = arrays[-1]
    _check_count(layout.model, tau, rank)
    Y = stack(layout, *arrays[:3])
    rnea = solver("rnea").build(layout.model, joint_friction=True, joint_springs=True)
    known = np.asarray(rnea(*arrays[:3]) - Y @ layout.values)
    return _Measurements(layout, Y, tau - known)


def _weights(model: Model, weight: ArrayLike) -> np.ndarray:
    """Return one over the noise of each coordinate."""
    array = float_array("weight", weight, f"shape ({model.nv},)")
    if array.shape != (model.nv,):
        raise ShapeError("weight", f"shape ({model.nv},)", f"shape {array.shape}")
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise IdentificationError(
            f"weight must be > 0 and finite for each coordinate, got {array.tolist()}:"
            " give one over the standard deviation of the noise [1/(N·m) | 1/N]"
        )
    return array


def _check_count(model: Model, tau: np.ndarray, rank: int) -> None:
    """Check that there are as many rows as base parameters."""
    least = rank // max(model.nv, 1) + 1
    if len(tau) < least:
        raise ShapeError(
            "tau",
            f"at least {least} samples ({rank} base parameters, {model.nv} rows each;"
            " ten times as many are good)",
            f"{len(tau)} samples",
        )


def _what_is_missing(
    base: BaseParameters, whole: BaseParameters, scale: np.ndarray
) -> str:
    """Return the message about base parameters that the data do not show."""
    hidden, _ = np.linalg.qr(base.directions / scale[:, None])
    sought = whole.regrouping * scale
    share = np.linalg.norm(sought @ hidden, axis=1) / np.linalg.norm(sought, axis=1)
    worst = np.argsort(-share, kind="stable")[:MOST_NAMED]
    names = ", ".join(whole.names[whole.independent[k]] for k in sorted(worst))
    return (
        f"the data show {base.rank} of {whole.rank} base parameters (singular values"
        f" above {base.tolerance:g} of the largest); least of all {names}. Move all"
        " joints with changing speeds, or give partial=True: what is not shown then"
        " stays as the prior has it"
    )


def _scales(layout: Layout, prior: np.ndarray) -> np.ndarray:
    """The largest parameter of each one's kind in the prior; 1 where all are 0."""
    kinds = np.array(layout.kinds)
    largest = {k: float(np.abs(prior[kinds == k]).max()) for k in set(layout.kinds)}
    return np.array([largest[k] or 1.0 for k in layout.kinds])


def _nearest(
    A: np.ndarray,
    b: np.ndarray,
    prior: np.ndarray,
    base: BaseParameters,
    scale: np.ndarray,
) -> np.ndarray:
    """Return the least-squares solution that changes the prior least."""
    kept = list(base.independent)
    lengths = np.sqrt((A[:, kept] ** 2).sum(axis=0))
    scaled = np.linalg.lstsq(A[:, kept] / lengths, b - A @ prior, rcond=None)[0]
    change = np.zeros(len(prior))
    change[kept] = scaled / lengths
    # Along hidden directions the change is free: take the shortest.
    hidden = base.directions
    back = np.linalg.lstsq(hidden / scale[:, None], change / scale, rcond=None)[0]
    return prior + change - hidden @ back


def _noise(
    data: _Measurements, prior: np.ndarray, base: BaseParameters, scale: np.ndarray
) -> np.ndarray:
    """Return the noise of each coordinate: what remains after a few fits."""
    floor = NOISE_FLOOR * np.abs(data.tau).max(axis=0, initial=0.0)
    for _ in range(FITS):
        values = _nearest(*data.weighted(), prior, base, scale)
        rms = data.residual_rms(values, base.rank / max(len(floor), 1))
        data.noise = np.maximum(rms, floor)
        data.noise[data.noise == 0.0] = 1.0
    return data.noise


def _result(
    data: _Measurements,
    base: BaseParameters,
    prior: np.ndarray,
    values: np.ndarray,
    evaluations: int,
    converged: bool,
) -> Identification:
    """Return the result with its uncertainty."""
    layout, kept = data.layout, list(base.independent)
    A, b = data.weighted()
    lengths = np.sqrt((A[:, kept] ** 2).sum(axis=0))
    _, s, Vt = np.linalg.svd(A[:, kept] / lengths, full_matrices=False)
    half = (Vt.T / s) / lengths[:, None]
    left = b - A @ values
    variance = float(left @ left) / max(len(b) - base.rank, 1)
    base_deviations = np.sqrt(variance * (half * half).sum(axis=1))
    deviations = np.full(len(values), np.inf)
    alone = np.count_nonzero(base.regrouping, axis=1) == 1
    deviations[np.array(kept, int)[alone]] = base_deviations[alone]
    model, reason = None, ""
    try:
        model = with_linear_parameters(
            layout.model,
            values,
            "damping" in layout.groups,
            "armature" in layout.groups,
        )
    except ModelError as error:
        reason = str(error)
    bodies = values[: layout.inertial].reshape(-1, 10)
    return Identification(
        names=layout.names,
        parameters=values,
        prior=prior,
        standard_deviations=deviations,
        base=replace(base, values=base.regrouping @ values),
        base_deviations=base_deviations,
        residual_rms=data.residual_rms(values),
        noise=data.noise,
        rank=base.rank,
        condition=float(s[0] / s[-1]) if len(s) else 1.0,
        eigenvalues=np.array([least_eigenvalue(ten) for ten in bodies]),
        model=model,
        reason=reason,
        evaluations=evaluations,
        converged=converged,
    )
