"""Identification: numbers of bodies and joints from measured motion and joint forces.

    tau = Y(q, qd, qdd) pi

Only some combinations of pi show in joint forces, the base parameters; what the data do
not say stays as near to a prior as it can.
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
    check_count,
    checked,
    checked_weights,
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
from dyn_core.model.parameter_vector import check_switch
from dyn_core.validation import Whole, known_keywords
from dyn_core.validation import shown as shown_value

FITS = 4  # to find the noise of each coordinate
ROUNDS = 12  # most expansions of what is not linear
FEW_ROUNDS = 2  # the same, while the noise is not known yet
STILL = 1e-3  # of the standard deviations: changes that end the rounds
FASTER = 2.0  # most by which a speed changes in a round
# Hidden where what they act through is 0.
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

    W divides the rows of each coordinate by the standard deviation of its noise, scale
    is the largest of its kind in the prior. What is not sought (friction, rotors,
    springs) is taken off tau as the robot has it. With `consistent` every body
    is one that some mass distribution has; damping, friction and rotors are not
    negative; and the fit is that of

        least |W (Y pi - tau)|² / 2 + 0.005 sum of D(J, J0)

    over the pseudo-inertias J of bodies and J0 of their prior, D being the divergence
    tr(J0^-1 J) - log det(J0^-1 J) - 4. There is no other term. Numbers that joint
    forces are not linear in, such as speeds of Stribeck or placements of joints, are
    found by Gauss and Newton's steps with compiled parameter derivatives.

    Args:
        model: Robot; its parameters are the prior unless one is given.
        q: Joint positions, samples x nq [rad | m].
        qd: Joint velocities, samples x nv [rad/s | m/s].
        qdd: Joint accelerations, samples x nv [rad/s² | m/s²].
        tau: Joint forces, samples x nv [N·m | N].
        friction: Law of joint friction that is sought: viscous, coulomb (damping and
            dry friction; True), direction (dry friction by direction), stribeck (more
            near rest), full (both); False: none.
        rotors: Whether the inertia of rotors is sought.
        prior: What the parameters are near to, np, as `parameters_of` gives them; or by
            name a value or (value, standard deviation).
        weight: One over the standard deviation of the noise, nv, or by joint name;
            None: from the residuals of a few fits.
        consistent: Whether bodies must be physical: pseudo-inertias positive definite.
        only: What is sought: inertia, payload, friction, rotors, springs, gears,
            origins, a parameter path such as tool.payload, a number of one such as
            tool.payload:m, or several of these; None: inertia, friction and rotors.
        friction_speed: Whether the law's dry friction has an unknown width: v of its
            tanh(qd / v), by joint; it needs rows where joints turn round.
        bounds: By name of a number or path: (least, largest), in its SI unit.
        robust: Whether residuals beyond 1.345 deviations count less (Huber).
        folds: Number of blocks of time for cross-validation; 0: none.
        tau_rate: Derivative of tau by time, best without its noise; then a delay of tau
            is sought, too, to first order.
        average: Rows are means over so many samples in order.
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
    """How numbers are fitted to measurements.

    Attributes:
        known: Prior, bounds and bodies.
        deviations: Of the prior, by number; infinite where the user gives none.
        tolerance: Singular values below this part of the largest count as zero.
        most: Evaluations of one fit.
        progress: Called by fits as progress(evaluations, cost).
        bounded: Whether numbers have bounds; else the nearest to the prior is taken.
    """

    known: Knowledge
    deviations: np.ndarray
    tolerance: float
    most: int
    progress: Callable[[int, float], None] | None
    bounded: bool

    @property
    def sure(self) -> int:
        """How many numbers the user knows with a standard deviation."""
        return int(np.isfinite(self.deviations).sum())

    def rows(self, data: Measurements, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weighted rows about numbers, and those of what the user knows."""
        A, b = data.linearized(z)
        sure = np.flatnonzero(np.isfinite(self.deviations))
        more = np.zeros((len(sure), A.shape[1]))
        more[np.arange(len(sure)), sure] = 1 / self.deviations[sure]
        right = self.known.prior[sure] / self.deviations[sure]
        return np.concatenate([A, more]), np.concatenate([b, right])

    def find_noise(
        self, data: Measurements, weights: np.ndarray | None
    ) -> tuple[np.ndarray, int, bool]:
        """Return the fit, the noise being found or known."""
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
        """Return the fit by as many expansions as it takes."""
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
        """Return the part of a step that makes the squares smaller."""
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
        """Return fits of all blocks of time but one, tried on that one."""
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
    """Return what shows a long fit on a terminal, unless the user looks."""
    quiet = fit.progress is not None or not fit.bounded
    return nullcontext() if quiet else progress_line(f"fitting {count} parameters")


def _check_counts(folds: int, average: int) -> None:
    """Refuse numbers of blocks and samples that make no sense."""
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
    """Return the least-squares solution that changes the prior least."""
    prior, scale = known.prior, known.scale
    kept = list(base.independent)
    lengths = np.sqrt((A[:, kept] ** 2).sum(axis=0))
    scaled = np.linalg.lstsq(A[:, kept] / lengths, b - A @ prior, rcond=None)[0]
    change = np.zeros(len(prior))
    change[kept] = scaled / lengths
    # Along hidden directions the change is free: take the shortest.
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
    """Refuse data that do not show all base parameters of the bodies."""
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
    """Refuse data that do not show all that is sought by name."""
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
