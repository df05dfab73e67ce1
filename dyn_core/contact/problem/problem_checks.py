"""Checks of the fields of a ConstraintProblem, the argument `problem` of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.validation import shown


def numbers(problem: Any, field: str, size: int) -> np.ndarray:
    """Return a field of a problem as a read-only float array, (size,).

    One number stands for all entries; a list of one does not.

    Args:
        problem: ConstraintProblem.
        field: Name of the field; lo and hi may be infinite, others may not.
        size: Number of rows, or of friction coefficients.

    Raises:
        ModelError: It has the wrong type or shape, or a number is not finite.
    """
    try:
        values = np.array(getattr(problem, field), float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{field}: valid: numbers", field) from error
    if values.shape not in ((), (size,)):
        raise ModelError(
            f"{field}: shape {values.shape}; valid: ({size},), one for each"
            f" {'coefficient' if field == 'mu' else 'row'}, or one number",
            field,
        )
    full = np.array(np.broadcast_to(values, (size,)))
    bad = np.isnan(full) if field in ("lo", "hi") else ~np.isfinite(full)
    if bad.any():
        index = int(np.flatnonzero(bad)[0])
        raise ModelError(
            f"{field}[{index}] of {owner(problem, field, index)} is {full[index]};"
            " valid: a finite number",
            field,
        )
    full.flags.writeable = False
    return full


def matrix(problem: Any) -> np.ndarray:
    """Return a copy of G of a problem as a read-only float array, (m, m).

    m is problem.layout.m, the number of rows. G is not made symmetric, and not tested
    for negative eigenvalues.

    Raises:
        ModelError: G has the wrong type (a function, too) or shape, an entry is not
            finite, it is not symmetric up to 1e-7, relative to its diagonal, or its
            diagonal is negative.
    """
    m = problem.layout.m
    try:
        G: Any = np.array(problem.G, float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError("G: valid: numbers, or a function", "G") from error
    G = G.reshape(m, m) if G.size == 0 == m else G
    if G.shape != (m, m):
        raise ModelError(f"G: shape {G.shape}; valid: ({m}, {m})", "G")
    size = float(np.abs(G).max(initial=0.0))
    bad = ~np.isfinite(G)
    what = "not finite"
    if not bad.any():
        d = np.sqrt(np.abs(np.diag(G)))
        # Relative to the diagonal; the second term is for rows whose diagonal is 0.
        bad = np.abs(G - G.T) > 1e-7 * (d[:, None] * d + 1e-9 * size)
        what = "not symmetric"
        if not bad.any():
            bad, what = np.diag(np.diag(G) < 0), "negative on the diagonal"
    if bad.any():
        i, j = (int(x[0]) for x in np.nonzero(bad))
        raise ModelError(
            f"G[{i}, {j}] of {owner(problem, 'G', i)} is {G[i, j]}, {what}; valid: a"
            " symmetric positive semidefinite matrix",
            "G",
        )
    G.flags.writeable = False
    return G


def refuse_bad_numbers(problem: Any) -> None:
    """Check the ranges of coefficients, bounds and compliances, else ModelError.

    mu and compliance are 0 or more; of boxes lo <= hi, lo < inf and hi > -inf. In a
    contact, compliance times (own mu / largest mu)² is the same for all tangent rows,
    up to 1e-9 of the largest, torsion and rolling included: 0 if only some coefficients
    are 0.
    """
    boxes = problem.layout.boxes
    for field, bad, valid in (
        ("mu", problem.mu < 0, "0 or more"),
        ("compliance", problem.compliance < 0, "0 or more"),
        ("lo", boxes & (problem.lo > problem.hi), "not above hi"),
        ("lo", boxes & (problem.lo == np.inf), "below infinity"),
        ("hi", boxes & (problem.hi == -np.inf), "above minus infinity"),
    ):
        if bad.any():
            index = int(np.flatnonzero(bad)[0])
            value = getattr(problem, field)[index]
            raise ModelError(
                f"{field}[{index}] of {owner(problem, field, index)} is {value};"
                f" valid: {valid}",
                field,
            )
    R = problem.scale**2 * problem.compliance
    for block in problem.layout.contacts:
        R_tangent = R[list(block.tangent)]
        if np.ptp(R_tangent) > 1e-9 * R_tangent.max():
            raise ModelError(
                f"compliance[{block.start + 1}:{block.start + block.rows}] of"
                f" {owner(problem, 'b', block.start)}: tangent rows differ; valid:"
                " one compliance, times (largest mu / own mu)² on rows of torsion"
                " and rolling, or 0 if one mu of the block is 0",
                "compliance",
            )


def owner(problem: Any, field: str, index: int) -> str:
    """Return index, name and kind of a row's block, or for "mu" of a coefficient's."""
    for number, block in enumerate(problem.layout.blocks):
        rows = (
            range(block.first, block.first + block.count)
            if field == "mu"
            else block.all
        )
        if index in rows:
            name = "" if problem.names is None else f" '{problem.names[number]}'"
            return f"block {number}{name} ({block.kind})"
    return "the problem"


def labels(problem: Any, field: str) -> tuple[Any, ...] | None:
    """Return ids, which must be unique, or names of a problem; None: it has none."""
    labels, count = getattr(problem, field), len(problem.layout.parts)
    if labels is None:
        return None
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise ModelError(f"{field}: {shown(labels)}; valid: {count} of them", field)
    labels = tuple(labels)
    if len(labels) != count:
        raise ModelError(
            f"{field}: {len(labels)}; valid: {count}, one per block", field
        )
    try:
        different = len({*labels})
    except TypeError as error:
        raise ModelError(f"{field}: {error}; valid: hashable values", field) from error
    if field == "ids" and different != count:
        twice = next(x for x in labels if labels.count(x) > 1)
        raise ModelError(f"ids: {twice!r} occurs twice; valid: one per block", field)
    return labels
