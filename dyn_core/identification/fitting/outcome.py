"""Result of a fit: uncertainty of the parameters, and the identified robot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dyn_core.errors import ModelError, SingularError
from dyn_core.identification.fitting.consistent_fit import Knowledge
from dyn_core.identification.fitting.measurements import Measurements
from dyn_core.identification.fitting.sought_robot import with_numbers
from dyn_core.identification.regressor_rank import base_of
from dyn_core.identification.result import CrossValidation, Identification
from dyn_core.model.checks.pseudo_inertia import least_eigenvalue

_SMALL = 0.01  # excess of an asymmetry that is cut, fraction of the joint's force


def outcome(
    data: Measurements,
    rows: tuple[np.ndarray, np.ndarray],
    more: int,
    values: np.ndarray,
    known: Knowledge,
    tolerance: float,
    ended: tuple[int, bool],
    validation: CrossValidation | None,
) -> Identification:
    """Return the result of a fit with its uncertainty.

        deviations² = diag(A+ V A+.T),   V = variance diag(slowness)

    `rows` are A, b, linearised about the values, with `more` rows of the user's prior
    at the end. A+ is the pseudo-inverse of A for the base parameters, and slowness that
    of each row's coordinate (Measurements.slowness), 1 for rows of the prior:
    correlated residuals are fewer observations than rows. Parameters that the data
    determine only in combinations, or not at all (singular values below `tolerance`,
    relative), have infinite deviations. The result's model is None, with a reason, if
    no robot can have the values. An asymmetry of friction that exceeds the dry friction
    by little is reduced to it.
    """
    unknowns, (A, b) = data.unknowns, rows
    base = base_of(unknowns, A, values, tolerance)
    kept = list(base.independent)
    lengths = np.sqrt((A[:, kept] ** 2).sum(axis=0))
    U, s, Vt = np.linalg.svd(A[:, kept] / lengths, full_matrices=False)
    answer = ((Vt.T / s) @ U.T) / lengths[:, None]  # base parameters by rows
    left = b - A @ values
    variance = float(left @ left) / max(data.tau.size - base.rank, 1)
    slowness = np.ones(len(A))
    slowness[: len(b) - more] = np.repeat(data.slowness(values), data.reduced(values))
    base_deviations = np.sqrt(variance * (answer**2 @ slowness))
    deviations = np.full(len(values), np.inf)
    alone = np.count_nonzero(base.regrouping, axis=1) == 1
    deviations[np.array(kept, int)[alone]] = base_deviations[alone]
    values = _with_possible_friction(data, values, deviations)
    model, reason = None, ""
    try:
        model = with_numbers(unknowns, values)
    except (ModelError, SingularError) as error:
        reason = str(error)
    bodies = [values[first : first + 10] for first in unknowns.blocks]
    return Identification(
        names=unknowns.names,
        parameters=values,
        prior=known.prior,
        standard_deviations=deviations,
        base=replace(base, values=base.regrouping @ values),
        base_deviations=base_deviations,
        residual_rms=data.rms(values),
        noise=data.noise,
        rank=base.rank,
        condition=float(s[0] / s[-1]) if len(s) else 1.0,
        eigenvalues=np.array([least_eigenvalue(ten) for ten in bodies]),
        model=model,
        reason=reason,
        evaluations=ended[0],
        converged=ended[1],
        units=unknowns.units,
        outliers=float((data.trust < 1).mean()) if data.robust else 0.0,
        validation=validation,
        before=unknowns.model,
    )


def _with_possible_friction(
    data: Measurements, values: np.ndarray, deviations: np.ndarray
) -> np.ndarray:
    """Return a copy of the parameters with friction that brakes in both directions.

    An asymmetry larger than the dry friction would drive the joint in one direction. It
    is reduced if the excess is at most three standard deviations or a hundredth of the
    joint's rms force; a larger excess remains.
    """
    names, model, result = data.unknowns.names, data.unknowns.model, values.copy()
    for k, name in enumerate(names):
        joint, _, kind = name.rpartition(".")
        if kind != "friction_asymmetry" or f"{joint}.friction" not in names:
            continue
        friction = values[names.index(f"{joint}.friction")]
        forces = data.tau[:, model.v_slices[model.body_of_joint(joint)]]
        small = max(3 * deviations[k], _SMALL * float(np.sqrt((forces**2).mean())))
        if 0 < abs(values[k]) - friction <= small:
            result[k] = np.copysign(max(friction, 0.0), values[k])
    return result
