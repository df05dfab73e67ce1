"""Base parameters: the combinations of parameters that joint forces depend on."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.model import Model
from dyn_core.model.parameter_vector import Layout
from dyn_core.solving.registry import solver
from dyn_core.validation import Whole, known_keywords, shown

TOLERANCE = 1e-9  # relative threshold below which singular values count as zero
TIE = 1e-7  # relative decrease of length from column to column, to break ties


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Combinations of parameters that joint forces depend on.

        Y pi = Y[:, independent] values,   values = regrouping @ pi

    Attributes:
        names: Names of all parameters, np.
        independent: Indices of the independent columns, ascending.
        regrouping: Factors of all parameters in each base parameter, (rank, np); one at
            the independent column.
        values: Base parameters of the robot, (rank,).
        singular_values: Singular values of the stacked regressor, columns scaled to
            unit length, by the largest, (np,).
        tolerance: Relative threshold below which they count as zero.
        directions: Changes of pi that do not affect any joint force, (np, np - rank).
    """

    names: tuple[str, ...]
    independent: tuple[int, ...]
    regrouping: np.ndarray
    values: np.ndarray
    singular_values: np.ndarray
    tolerance: float
    directions: np.ndarray

    @property
    def rank(self) -> int:
        """Number of base parameters."""
        return len(self.independent)

    @property
    def gap(self) -> float:
        """Ratio of the smallest nonzero to the largest neglected singular value.

        It is infinite if all singular values, or none, are neglected.
        """
        s, r = self.singular_values, self.rank
        return float(s[r - 1] / max(s[r], 1e-300)) if 0 < r < len(s) else np.inf

    def expression(self, k: int, digits: int = 4) -> str:
        """Return base parameter k as text, a sum of parameters with factors.

        The parameter of the independent column comes first. Factors of 1 are not
        written.

        Args:
            k: Index of the base parameter, from 0; negative ones count from the end.
            digits: Significant digits of the factors.

        Raises:
            SettingError: There is no such base parameter, or digits are no number of
                them.
        """
        which = Whole(-self.rank, self.rank - 1)
        for name, value, kind in (("k", k, which), ("digits", digits, Whole())):
            if not kind.takes(value):
                valid = kind.valid if self.rank else "none: there is no base parameter"
                raise SettingError(f"{name} is {shown(value)}; valid: {valid}", name)
        terms = []
        first = self.independent[k]
        row = self.regrouping[k]
        others = [int(j) for j in np.flatnonzero(row) if j != first]
        for j in [first, *others]:
            sign = "-" if row[j] < 0 else "+"
            factor = f"{abs(row[j]):.{digits}g}"
            terms.append(
                f"{sign} {'' if factor == '1' else factor + ' '}{self.names[j]}"
            )
        return " ".join(terms).removeprefix("+ ")


@known_keywords
def base_parameters(
    model: Model,
    friction: bool = False,
    rotors: bool = False,
    samples: int | None = None,
    seed: int = 0,
    tolerance: float = TOLERANCE,
) -> BaseParameters:
    """Return the base parameters of a robot: numerical rank of its regressor.

        Y P = Q [R1 R2; 0 0],   values = pi_1 + R1^-1 R2 pi_2

    Y are the regressors of all states, P is a permutation that puts the independent
    columns first, pi_1 are their parameters and pi_2 the others.

    Rows belong to random states: positions within the limits, normally distributed
    velocities and accelerations. Columns are scaled to unit length, and pivoted by
    their remaining length.

    Args:
        model: Robot.
        friction: Whether damping and dry friction of the joints are among the
            parameters.
        rotors: Whether the inertia of rotors is among the parameters.
        samples: Number of states, 1 to 10000; None: enough for four rows a column.
        seed: Seed of the random states.
        tolerance: Relative threshold below which singular values count as zero.

    Raises:
        SettingError: An option is invalid.
        UnsupportedError: `model` is no robot, or has loops.

    Source: M. Gautier and W. Khalil, IEEE Transactions on Robotics and Automation 6
    (1990); numerically: M. Gautier, Journal of Robotic Systems 8 (1991).
    """
    check_tolerance(tolerance)
    layout = Layout.of(model, friction, rotors, "base_parameters")
    if samples is None:
        samples = 8 + 4 * len(layout.kinds) // max(model.nv, 1)
    rules = ("samples", samples, Whole(1, 10_000)), ("seed", seed, Whole())
    for name, value, kind in rules:
        if not kind.takes(value):
            raise SettingError(f"{name} is {shown(value)}; valid: {kind.valid}", name)
    rng = np.random.default_rng(seed)
    q = np.array([model.random(rng) for _ in range(samples)])
    qd, qdd = rng.normal(size=(2, samples, model.nv))
    Y = np.asarray(regressor_of(layout)(q, qd, qdd))
    rows = Y.reshape(samples * model.nv, len(layout.kinds))
    return base_of(layout, rows, layout.values, tolerance)


def check_tolerance(tolerance: float) -> None:
    """Raise a SettingError unless a tolerance is a number in (0, 1), ends excluded."""
    if not (isinstance(tolerance, Real) and 0 < tolerance < 1):
        raise SettingError(
            f"tolerance is {tolerance!r}; valid: a number between 0 and 1", "tolerance"
        )


def regressor_of(layout: Layout) -> Any:
    """Return the Program of a layout's regressor: q, qd, qdd -> (samples, nv, np)."""
    choices = {"friction": "damping" in layout.groups}
    choices["rotors"] = "armature" in layout.groups
    return solver("regressor").build(layout.model, **choices)


class Labelled(Protocol):
    """Interface of parameters with names and kinds such as mass; one kind, one unit."""

    @property
    def names(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def kinds(self) -> tuple[str, ...]: ...  # noqa: D102


def column_lengths(layout: Labelled, A: np.ndarray, tolerance: float) -> np.ndarray:
    """Return the lengths of columns, (n,); zero for columns of rounding errors alone.

    The length of such a column is at most `tolerance` times the largest of its kind.
    """
    lengths = np.sqrt((A * A).sum(axis=0))
    kinds = np.array(layout.kinds)
    for kind in set(layout.kinds):
        alike = kinds == kind
        lengths[alike & (lengths <= tolerance * lengths[alike].max())] = 0.0
    return lengths


def base_of(
    layout: Labelled, A: np.ndarray, values: np.ndarray, tolerance: float
) -> BaseParameters:
    """Return the base parameters that a stack of rows, (rows, n), determines.

    `tolerance` is the relative threshold for singular values of the scaled columns.
    Columns whose length is below it relative to those of their kind count as zero, as
    do regrouping factors of scaled columns below it, or 1e-10.
    """
    from scipy.linalg import qr, solve_triangular

    n = A.shape[1]
    lengths = column_lengths(layout, A, tolerance)
    # All scaled columns have the same length. TIE makes the first of them the pivot,
    # on every engine and LAPACK: later ones are shorter by more than rounding.
    scale = np.where(lengths > 0, lengths, 1.0) * (1 + TIE * np.arange(n))
    A = A * (lengths > 0)  # drop columns of rounding errors alone
    R = np.linalg.qr(A / scale, mode="r") if len(A) > n else A / scale
    _, s, Vt = np.linalg.svd(R)
    s = np.concatenate([s, np.zeros(n - len(s))])
    s = s / s[0] if n and s[0] > 0 else s
    rank = int((s > tolerance).sum())
    K, order = np.zeros((0, n)), np.arange(n)
    if rank:
        factor, order = qr(R, mode="r", pivoting=True)
        upper = np.asarray(factor)
        K = solve_triangular(upper[:rank, :rank], upper[:rank, rank:])
    K[np.abs(K) < max(1e-10, tolerance)] = 0.0
    kept, rest = order[:rank], order[rank:]
    full = np.zeros((rank, n))
    full[np.arange(rank), kept] = 1.0
    full[:, rest] = K * scale[rest] / scale[kept][:, None]
    up = np.argsort(kept)
    hidden = Vt[rank:].T / scale[:, None]
    return BaseParameters(
        names=layout.names,
        independent=tuple(int(k) for k in kept[up]),
        regrouping=full[up],
        values=full[up] @ values,
        singular_values=s,
        tolerance=tolerance,
        directions=hidden,
    )
