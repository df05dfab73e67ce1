"""Checks of the fields of a ConstraintProblem."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.errors import ModelError


def numbers(problem: Any, field: str, size: int) -> np.ndarray:
    """Return a field as a checked copy."""
    try:
        values = np.array(getattr(problem, field), float)
    except (TypeError, ValueError) as error:
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
    """Return G, checked."""
    m = problem.layout.m
    try:
        G: Any = np.array(problem.G, float)
    except (TypeError, ValueError) as error:
        raise ModelError("G: valid: numbers, or a function", "G") from error
    G = G.reshape(m, m) if G.size == 0 == m else G
    if G.shape != (m, m):
        raise ModelError(f"G: shape {G.shape}; valid: ({m}, {m})", "G")
    size = float(np.abs(G).max(initial=0.0))
    bad = ~np.isfinite(G)
    what = "not finite"
    if not bad.any():
        d = np.sqrt(np.abs(np.diag(G)))
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
    """Refuse coefficients, bounds and compliances out of range."""
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
                " and rolling",
                "compliance",
            )


def owner(problem: Any, field: str, index: int) -> str:
    """Name the block of a row or coefficient."""
    for index, block in enumerate(problem.layout.blocks):
        rows = (
            range(block.first, block.first + block.count)
            if field == "mu"
            else block.all
        )
        if index in rows:
            name = "" if problem.names is None else f" '{problem.names[index]}'"
            return f"block {index}{name} ({block.kind})"
    return "the problem"


def labels(problem: Any, field: str) -> tuple[Any, ...] | None:
    """Return ids or names as a tuple, checked."""
    labels, count = getattr(problem, field), len(problem.layout.parts)
    if labels is None:
        return None
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
