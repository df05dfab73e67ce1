"""Identification of body and joint parameters from measured motion and joint forces.

    tau = Y(q, qd, qdd) pi

Joint forces depend only on some combinations of pi, the base parameters. Parameters
that the data do not determine stay as near to a prior as possible. np is the number of
parameters that are sought.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.engines.llvm.compiler import progress as progress_line
from dyn_core.errors import (
    IdentificationError,
    NonFiniteError,
    SettingError,
    UnsupportedError,
    warn,
)
from dyn_core.identification.blas_threads import one_blas_thread
from dyn_core.identification.fitting.consistent_fit import (
    EVALUATIONS,
    Knowledge,
    check_fit,
    fit_consistent,
)
from dyn_core.identification.fitting.measurements import (
    MOST_NAMED,
    Measurements,
    absent_forces,
    check_count,
    checked,
    checked_weights,
    doubtful_forces,
)
from dyn_core.identification.fitting.outcome import outcome
from dyn_core.identification.regressor_rank import (
    TOLERANCE,
    BaseParameters,
    base_of,
    base_parameters,
    check_tolerance,
    column_lengths,
)
from dyn_core.identification.result import CrossValidation, Identification
from dyn_core.identification.selection import SPEEDS, Unknowns, select
from dyn_core.model import Model
from dyn_core.model.checks.robots import in_degrees, too_fast
from dyn_core.model.parameter_vector import check_switch
from dyn_core.validation import Whole, known_keywords
from dyn_core.validation import shown as shown_value

FITS = 4  # number of fits that estimate the noise of each coordinate
ROUNDS = 12  # maximum number of Gauss-Newton expansions
FEW_ROUNDS = 2  # the same, while the noise is still unknown
STILL = 1e-3  # change that ends the rounds, in standard deviations
FASTER = 2.0  # largest factor by which a speed parameter changes in a round
# These are undetermined where the friction or stiffness they belong to is 0.
FREE_LATER = ("friction_speed", "stribeck_speed", "rest")


@known_keywords
@one_blas_thread()
def identify(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    tau: ArrayLike,
    friction: bool | str = True,
    rotors: bool = True,
    prior: ArrayLike | Mapping[str, Any] | None = None,
    weight: ArrayLike | Mapping[str, float] | None = None,
    consistent: bool = False,
    *,
    only: str | Sequence[str] | None = None,
    friction_speed: bool = False,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    robust: bool = False,
    folds: int = 0,
    tau_rate: ArrayLike | None = None,
    average: int = 1,
    partial: bool = False,
    tolerance: float = TOLERANCE,
    most_evaluations: int = EVALUATIONS,
    progress: Callable[[int, float], None] | None = None,
) -> Identification:
    """Return the parameters of a robot that fit measured joint forces best.

        least |W (Y pi - tau)|², of those the least |(pi - prior) / scale|²

    W divides the rows of each coordinate by the standard deviation of its noise; scale
    is the largest parameter of the same kind in the prior. Parameters that are not
    sought (friction, rotors, springs) keep the robot's values, and their forces are
    subtracted from tau. With `consistent` every body has a physically possible mass
    distribution; damping, friction and rotors are not negative; and the fit solves

        least |W (Y pi - tau)|² / 2 + 0.005 sum of D(J, J0)

    over the pseudo-inertias J of bodies and J0 of their prior, D being the divergence
    tr(J0^-1 J) - log det(J0^-1 J) - 4. There is no other term. Parameters that act
    nonlinearly, such as Stribeck speeds or placements of joints, are found by
    Gauss-Newton steps with compiled parameter derivatives.

    Args:
        model: Robot; its parameters are the prior unless one is given.
        q: Joint positions, (samples, nq) [rad | m].
        qd: Joint velocities, (samples, nv) [rad/s | m/s].
        qdd: Joint accelerations, (samples, nv) [rad/s² | m/s²].
        tau: Joint forces, (samples, nv) [N·m | N].
        friction: Law of joint friction to identify: viscous, coulomb (damping and dry
            friction; True), direction (dry friction by direction), stribeck (more near
            rest), full (both); False: none.
        rotors: Whether to identify the inertia of rotors.
        prior: Values that parameters without enough data stay near to: an array (np,)
            as `parameters_of` returns it, or a mapping from name to value or (value,
            standard deviation); None: the robot's.
        weight: One over the standard deviation of the noise, (nv,), or a mapping from
            joint name, 1 for joints that it omits; None: estimated from the residuals
            of a few fits.
        consistent: Whether bodies must be physical: pseudo-inertias positive definite.
        only: Parameters to identify: inertia, payload, friction, rotors, springs,
            gears, origins, a parameter path such as tool.payload, a number of one such
            as tool.payload:m, or several of these; None: inertia, friction and rotors.
        friction_speed: Whether to identify the width v of the dry friction tanh(qd / v)
            of each joint; requires rows where joints reverse.
        bounds: Mapping from the name of a parameter or path to (least, largest), in its
            SI unit; None: none.
        robust: Whether residuals beyond 1.345 deviations count less (Huber).
        folds: Number of blocks of time for cross-validation, 2 or more; 0: none.
        tau_rate: Time derivative of tau, (samples, nv), best without its noise; then a
            delay of tau [s] is identified, too, to first order. None: no delay.
        average: Number of consecutive samples that each row averages; an incomplete
            last group is left out.
        partial: Whether to accept data that do not determine all base parameters; the
            others then stay at the prior.
        tolerance: Relative threshold below which singular values count as zero; larger
            thresholds leave more to the prior.
        most_evaluations: Maximum number of cost evaluations of a fit with bounds or
            consistency.
        progress: Function that this fit calls as progress(evaluations, cost); None: a
            line on the terminal, where there is one, if the fit takes long.

    A DynWarning asks whether q is in degrees where a hinge is beyond its limits and a
    full turn, whether qd is at more than five times a velocity limit, and whether tau
    has another sign or unit if it is a negative, large or small multiple of what the
    prior needs for this motion.

    Returns:
        Identification. Its `converged` is False if the fit ended early, and its model
        is None if no robot can have the parameters; neither raises.

    Raises:
        ShapeError: An array has the wrong size or is no numbers, or there are too few
            samples.
        NonFiniteError: The data or the prior hold NaN or infinity; names array and
            rows.
        IdentificationError: The data do not determine the parameters, or a weight is
            invalid.
        SettingError: An option is invalid, or most_evaluations or progress is given for
            a fit without bounds, consistency and parameter paths.
        UnsupportedError: `model` is no robot, has no joint, or has loops; or a path
            belongs to the robot as a whole and is not gravity.

    Source: C. Atkeson, C. An and J. Hollerbach, IJRR 5 (1986); M. Gautier, Dynamic
    identification of robots with power model, ICRA 1997 (weights of the rows); P.
    Wensing, S. Kim and J.-J. Slotine, IEEE RA-L 3 (2017); C. Rucker and P. Wensing,
    IEEE RA-L 7 (2022); P. Huber, Annals of Mathematical Statistics 35 (1964).
    """
    for name, switch in (("consistent", consistent), ("partial", partial),
                         ("robust", robust), ("rotors", rotors),
                         ("friction_speed", friction_speed)):  # fmt: skip
        check_switch(name, switch)
    _check_counts(folds, average)
    check_tolerance(tolerance)
    delay = tau_rate is not None
    unknowns = select(model, only, friction, rotors, delay, friction_speed)
    if not model.nv:
        raise UnsupportedError(
            f"'{model.name}': nothing moves; valid: a robot with a joint"
        )
    near, deviations = unknowns.checked_prior(prior)
    if not np.isfinite(near).all():
        raise NonFiniteError("prior holds NaN or infinity", "prior")
    fitted = consistent or bounds is not None or bool(unknowns.paths)
    check_fit(fitted, most_evaluations, progress)
    known = Knowledge(
        near,
        unknowns.scale_of(near),
        unknowns.bounds(bounds, consistent),
        unknowns.blocks if consistent else (),
    )
    measured = {"q": q, "qd": qd, "qdd": qdd, "tau": tau}
    if tau_rate is not None:
        measured["tau_rate"] = tau_rate
    arrays = checked(model, measured)
    weights = None if weight is None else checked_weights(model, weight)
    layout = unknowns.layout
    whole = None
    if layout is not None:
        whole = base_parameters(
            model, "damping" in layout.groups, "armature" in layout.groups
        )
    rank = whole.rank if whole else len(near)
    check_count(model, len(arrays[0]) // average, rank)
    rate = arrays[4] if delay else None
    data = Measurements.of(unknowns, arrays[:4], rate, average, robust)
    for doubt in (
        in_degrees(model, "q", arrays[0]),
        too_fast(model, "qd", np.abs(arrays[1]).max(axis=0), "qd"),
        doubtful_forces(data.tau, data.torques(near)),
        absent_forces(arrays[3]),
    ):
        if doubt:
            warn(f"identify: {doubt}")
    if folds > len(data.tau):
        message = f"folds is {folds}; valid: at most {len(data.tau)}, a block a row"
        raise SettingError(message, "folds")
    fit = _Fit(known, deviations, tolerance, most_evaluations, progress, fitted)
    if whole is not None:
        _refuse_hidden_inertia(data, whole, known, tolerance, partial)
    with _shown(fit, len(near)):
        z, evaluations, converged = fit.find_noise(data, weights)
    if whole is None:
        _refuse_hidden_paths(data, z, known, tolerance, partial)
    validation = fit.cross_validation(data, z, folds) if folds else None
    rows = fit.rows(data, z)
    ended = evaluations, converged
    return outcome(data, rows, fit.sure, z, known, tolerance, ended, validation)


@dataclass(eq=False)
class _Fit:
    """Settings of a fit; `deviations` of the prior, (np,), are infinite if not given.

    If `bounded`, the fit is with bounds or consistency; else by least squares, nearest
    to the prior.
    """

    known: Knowledge
    deviations: np.ndarray
    tolerance: float
    most: int
    progress: Callable[[int, float], None] | None
    bounded: bool

    @property
    def sure(self) -> int:
        """Number of parameters whose prior has a standard deviation."""
        return int(np.isfinite(self.deviations).sum())

    def rows(self, data: Measurements, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weighted rows A (rows, np) and right sides b, linearised about z.

        Reduced rows of the measurements, then the prior with its standard deviations.
        """
        A, b = data.linearized(z)
        sure = np.flatnonzero(np.isfinite(self.deviations))
        more = np.zeros((len(sure), A.shape[1]))
        more[np.arange(len(sure)), sure] = 1 / self.deviations[sure]
        right = self.known.prior[sure] / self.deviations[sure]
        return np.concatenate([A, more]), np.concatenate([b, right])

    def find_noise(
        self, data: Measurements, weights: np.ndarray | None
    ) -> tuple[np.ndarray, int, bool]:
        """Fit the parameters with known noise (1 / weights, (nv,)), or estimate it.

        The estimate is from the residuals of four fits. Return parameters, number of
        evaluations and whether the fit converged; write `noise` and `trust` of `data`.
        """
        z, total = self.known.prior, 0
        if weights is not None:
            data.noise = 1 / weights
        else:
            for _ in range(FITS):
                A, b = self.rows(data, z)
                base = base_of(data.unknowns, A, z, self.tolerance)
                if data.unknowns.paths or data.robust:
                    z, evaluations, _ = self.rounds(data, z, FEW_ROUNDS)
                    total += evaluations
                else:
                    z = nearest(A, b, self.known, base)
                data.measure_noise(z, base.rank / data.tau.shape[1])
        start = z if data.unknowns.paths else self.known.prior
        z, evaluations, converged = self.rounds(data, start)
        return z, total + evaluations, converged

    def rounds(
        self, data: Measurements, z: np.ndarray, most: int = ROUNDS
    ) -> tuple[np.ndarray, int, bool]:
        """Fit the parameters by repeated linearisation, beginning with z (np,).

        A fit ends when a round changes the weighted rows little. Return parameters,
        number of evaluations (0 unless `bounded`) and whether the fit converged; write
        `trust` of `data`.
        """
        total, linear = 0, data.forces.linear and not data.robust
        for _ in range(most):
            data.measure_trust(z)
            A, b = self.rows(data, z)
            if self.bounded:
                shown = column_lengths(data.unknowns, A, self.tolerance) > 0
                new, evaluations, converged = fit_consistent(
                    A * shown, b, self.known, z, self.most, self.progress
                )
                total += evaluations
            else:
                base = base_of(data.unknowns, A, z, self.tolerance)
                new, converged = nearest(A, b, self.known, base), True
            if linear:
                return new, total, converged
            new = self._shortened(data, z, new)
            change = np.linalg.norm(A @ (new - z))
            z = new
            if change <= STILL * np.sqrt(len(z)):
                return z, total, converged
        return z, total, False

    def _shortened(
        self, data: Measurements, z: np.ndarray, new: np.ndarray
    ) -> np.ndarray:
        """Return a copy of parameters `new`, (np,), with the step from z shortened.

        Speed parameters change by a factor of 2 at most; for nonlinear joint forces the
        step is halved until the cost does not increase, six times at most.
        """
        kinds = np.array(data.unknowns.kinds)
        speeds = np.isin(kinds, list(SPEEDS))
        new = new.copy()
        new[speeds] = np.clip(new[speeds], z[speeds] / FASTER, z[speeds] * FASTER)
        if data.forces.linear:
            return new
        before = data.cost(z)
        for _ in range(6):
            if data.cost(new) <= before * (1 + 1e-9):
                break
            new = 0.5 * (z + new)
        return new

    def cross_validation(
        self, data: Measurements, z: np.ndarray, folds: int
    ) -> CrossValidation:
        """Return rms residuals of fits that each leave out a block of consecutive rows.

        They are (nv,), over all fits. The noise of `data` counts in all fits, which
        begin at z.
        """
        count = len(data.tau)
        blocks = np.array_split(np.arange(count), folds)
        fitted, new, values = [], [], []
        for block in blocks:
            train = data.rows(np.setdiff1d(np.arange(count), block))
            fold, *_ = self.rounds(train, z)
            fitted.append(train.rms(fold))
            new.append(data.rows(block).rms(fold))
            values.append(fold)
        fitted_rms, new_rms = (
            np.sqrt(np.mean(np.square(x), axis=0)) for x in (fitted, new)
        )
        return CrossValidation(folds, fitted_rms, new_rms, np.std(values, axis=0))


def _shown(fit: _Fit, count: int) -> Any:
    """Return a context that may show a progress line on a terminal."""
    quiet = fit.progress is not None or not fit.bounded
    return nullcontext() if quiet else progress_line(f"fitting {count} parameters")


def _check_counts(folds: int, average: int) -> None:
    """Refuse counts that are out of range: SettingError."""
    for name, value, kind in (
        ("folds", folds, Whole(0)),
        ("average", average, Whole(1)),
    ):
        if not kind.takes(value) or (name == "folds" and value == 1):
            valid = "0, or 2 or more" if name == "folds" else kind.valid
            raise SettingError(f"{name} is {shown_value(value)}; valid: {valid}", name)


def nearest(
    A: np.ndarray, b: np.ndarray, known: Knowledge, base: BaseParameters
) -> np.ndarray:
    """Return the least-squares solution, (np,), nearest the prior, by known.scale."""
    prior, scale = known.prior, known.scale
    kept = list(base.independent)
    lengths = np.sqrt((A[:, kept] ** 2).sum(axis=0))
    scaled = np.linalg.lstsq(A[:, kept] / lengths, b - A @ prior, rcond=None)[0]
    change = np.zeros(len(prior))
    change[kept] = scaled / lengths
    # Changes along undetermined directions are free: choose the shortest.
    hidden = base.directions
    back = np.linalg.lstsq(hidden / scale[:, None], change / scale, rcond=None)[0]
    return np.asarray(prior + change - hidden @ back)


def _refuse_hidden_inertia(
    data: Measurements,
    whole: BaseParameters,
    known: Knowledge,
    tolerance: float,
    partial: bool,
) -> None:
    """Refuse data that do not determine all base parameters, unless `partial`.

    `whole` are those of the robot's layout for random motion.
    """
    layout, count = data.unknowns.layout, data.unknowns.linear
    assert layout is not None
    A = data.linearized(known.prior)[0][:, :count]
    base = base_of(layout, A, layout.values, tolerance)
    if base.rank >= whole.rank or partial:
        return
    scale = known.scale[:count]
    hidden, _ = np.linalg.qr(base.directions / scale[:, None])
    sought = whole.regrouping * scale
    share = np.linalg.norm(sought @ hidden, axis=1) / np.linalg.norm(sought, axis=1)
    worst = np.argsort(-share, kind="stable")[:MOST_NAMED]
    names = ", ".join(whole.names[whole.independent[k]] for k in sorted(worst))
    raise IdentificationError(
        f"the data show {base.rank} of {whole.rank} base parameters (singular values"
        f" above {base.tolerance:g} of the largest); least of all {names}. Move all"
        " joints with changing speeds, or give partial=True: what is not shown then"
        " stays as the prior has it"
    )


def _refuse_hidden_paths(
    data: Measurements, z: np.ndarray, known: Knowledge, tolerance: float, partial: bool
) -> None:
    """Refuse data that do not determine all sought paths, unless `partial`."""
    unknowns: Unknowns = data.unknowns
    base = base_of(unknowns, data.linearized(z)[0], z, tolerance)
    hidden, _ = np.linalg.qr(base.directions / known.scale[:, None])
    share = np.sqrt((hidden * hidden).sum(axis=1))
    kinds = unknowns.kinds
    dark = [
        k for k in np.argsort(-share, kind="stable")
        if share[k] > 1e-6 and kinds[k] not in FREE_LATER
    ]  # fmt: skip
    if not dark or partial:
        return
    names = ", ".join(unknowns.names[k] for k in sorted(dark[:MOST_NAMED]))
    raise IdentificationError(
        f"the data show {base.rank} of {len(z)} numbers that are sought; not by"
        f" themselves {names}{', ...' if len(dark) > MOST_NAMED else ''}. Move all"
        " joints with changing speeds, seek fewer numbers, or give partial=True: what"
        " is not shown then stays as the prior has it"
    )
