"""States of planar chains: positions and velocities, angles and rates, drift repair.

Arrays have any leading axes: x and v (..., n, 2) of n joints, angles of joints (...,
n-1): joint 0 has the absolute angle of link 0, joint n-1 has none. Other shapes raise
ShapeError.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import ShapeError
from dyn_core.planar.chain.chain import GUIDED, LINE, ChainModel
from dyn_core.validation import float_array


class ChainState(NamedTuple):
    """Positions and velocities of the joints, (..., n, 2) [m], [m/s]."""

    x: np.ndarray
    v: np.ndarray


def from_angles(
    chain: ChainModel, x0: Any, v0: Any, theta: Any, theta_dot: Any
) -> ChainState:
    """Return the state of joint angles and rates; links have their nominal lengths.

    Args:
        chain: Planar chain.
        x0, v0: Position and velocity of joint 0, (..., 2) [m], [m/s].
        theta, theta_dot: Angles and rates of all joints but the last, (..., n-1) [rad],
            [rad/s]: of joint 0 the angle of link 0 from the x axis, of every other
            joint the angle of its link relative to the previous link.

    Raises:
        ShapeError: An argument is not numeric or has another number of entries, or the
            leading axes cannot be broadcast.

    Source: WAW-2.1.
    """
    x0, v0 = _rows("x0", x0, 2), _rows("v0", v0, 2)
    theta = _rows("theta", theta, chain.n - 1)
    theta_dot = _rows("theta_dot", theta_dot, chain.n - 1)
    shapes = [row.shape[:-1] for row in (x0, v0, theta, theta_dot)]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError as error:
        wanted = "as many states of x0, v0, theta and theta_dot"
        raise ShapeError("states", wanted, f"shapes {shapes}") from error
    angle, rate = np.cumsum(theta, axis=-1), np.cumsum(theta_dot, axis=-1)
    lengths = np.array(chain.lengths)[:, None]
    r = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    turned = np.stack([-r[..., 1], r[..., 0]], axis=-1)
    return ChainState(
        _chained(x0, lengths * r), _chained(v0, lengths * turned * rate[..., None])
    )


def to_angles(
    chain: ChainModel, state: ChainState
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the arguments x0, v0, theta, theta_dot of from_angles for a state.

    x0 and v0, (..., 2) [m], [m/s], are the position and velocity of joint 0; theta,
    (..., n-1) [rad], are in [-pi, pi]; theta_dot are their rates [rad/s]. All angles
    but the first are relative to the previous link. Errors of the link lengths are
    lost. A link whose joints are at one place has angle 0 or pi and rate NaN, as has
    the link after it. x0 and v0 may be views. Raises ShapeError if x or v is not (...,
    n, 2).

    Source: WAW-2.1.
    """
    x, v = _checked(chain, state)
    return (
        x[..., 0, :],
        v[..., 0, :],
        joint_angles(chain, state),
        joint_rates(chain, state),
    )


def joint_angles(
    chain: ChainModel, state: ChainState, near: np.ndarray | None = None
) -> np.ndarray:
    """Return the joint angles, (..., n-1) [rad].

    The first is the angle of link 0 from the x axis, the others are relative to the
    previous link. It has no meaning at a link whose joints are at one place, and at the
    next one: 0 or pi, plus a multiple of 2 pi with `near`.

    Args:
        chain: Planar chain.
        state: Positions and velocities.
        near: Angles, (..., n-1), not checked: the result is unwrapped to within pi of
            them; None: it is in [-pi, pi].

    Raises:
        ShapeError: x or v is not (..., n, 2).

    Source: WAW-2.1.
    """
    x, _ = _checked(chain, state)
    c = x[..., 1:, :] - x[..., :-1, :]
    cross, dot = c[..., 1].copy(), c[..., 0].copy()  # of link 0: with the x axis
    before, after = c[..., :-1, :], c[..., 1:, :]
    cross[..., 1:] = before[..., 0] * after[..., 1] - before[..., 1] * after[..., 0]
    dot[..., 1:] = before[..., 0] * after[..., 0] + before[..., 1] * after[..., 1]
    theta = np.arctan2(cross, dot)
    if near is None:
        return theta
    turn = 2 * np.pi
    return theta + turn * np.round((near - theta) / turn)


def link_rates(chain: ChainModel, state: ChainState) -> np.ndarray:
    """Return the angular velocities of the links, (..., n-1) [rad/s].

        omega_i = L_i . (v_{i+1} - v_i),  L_i = r_i turned by +90 degrees / l_i

    r_i is the unit vector along link i, l_i the nominal length. NaN if the two joints
    of a link are at one place. Raises ShapeError if x or v is not (..., n, 2).

    Source: WAW-2.1.
    """
    x, v = _checked(chain, state)
    c, u = x[..., 1:, :] - x[..., :-1, :], v[..., 1:, :] - v[..., :-1, :]
    cross = c[..., 0] * u[..., 1] - c[..., 1] * u[..., 0]
    size = np.sqrt(c[..., 0] * c[..., 0] + c[..., 1] * c[..., 1])
    return cross / (size * np.array(chain.lengths))


def joint_rates(chain: ChainModel, state: ChainState) -> np.ndarray:
    """Return the rates of the joint angles, (..., n-1) [rad/s].

        rate_0 = omega_0,   rate_i = omega_i - omega_{i-1},   omega of link_rates

    NaN beside a link whose joints are at one place. Raises ShapeError if x or v is not
    (..., n, 2).

    Source: WAW-2.1.
    """
    rates = link_rates(chain, state)
    rates[..., 1:] = rates[..., 1:] - rates[..., :-1]
    return rates


def repair_drift(
    chain: ChainModel, state: ChainState, factor: float = 0.5
) -> ChainState:
    """Return the state with reduced errors of link lengths and stretching rates.

    The links are corrected in their order, first all positions, then all velocities.
    The ends of a link share its error by their mobility, 1 / ChainModel.weights; a
    joint of weight 0 or less does not move. The momentum of a free chain is conserved.
    A link whose ends cannot move along it is not corrected. The argument is not
    changed. A link whose joints are at one place makes NaN of the states of its joints
    and all later ones, and of the velocity of the joint before.

    Args:
        chain: Planar chain; guided joints stay, joints on a line stay on it.
        state: Positions and velocities.
        factor: Fraction of each link's error that is removed when its turn comes; the
            next link changes it again.

    Raises:
        ShapeError: x or v is not (..., n, 2).

    Source: WAW-3.2.
    """
    x, v = (np.array(part) for part in _checked(chain, state))
    mobile = [np.eye(2) / m if m > 0 else np.zeros((2, 2)) for m in chain.weights]
    for i, kind in enumerate(chain.constraints.kind):
        s = np.array(chain.constraints.s[i])
        if kind == GUIDED:
            mobile[i] = np.zeros((2, 2))
        elif kind == LINE:
            mobile[i] = mobile[i] @ (np.eye(2) - np.outer(s, s))
    for part, nominal in ((x, True), (v, False)):
        for i, length in enumerate(chain.lengths):
            c = x[..., i + 1, :] - x[..., i, :]
            size = np.linalg.norm(c, axis=-1, keepdims=True)
            r = c / size
            wrong = size - length
            if not nominal:
                rate = v[..., i + 1, :] - v[..., i, :]
                wrong = (r * rate).sum(-1, keepdims=True)
            near, far = r @ mobile[i], r @ mobile[i + 1]
            whole = (r * (near + far)).sum(-1, keepdims=True)
            share = factor * wrong / np.where(whole > 0, whole, np.inf)
            part[..., i, :] += share * near
            part[..., i + 1, :] -= share * far
    return ChainState(x, v)


def _chained(start: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return `start` (..., 2) and its sums with the first steps, (..., n, 2)."""
    start = start[..., None, :]
    shape = (*np.broadcast_shapes(start.shape[:-2], steps.shape[:-2]), 1, 2)
    first = np.broadcast_to(start, shape)
    sums = start + np.cumsum(steps, axis=-2)
    return np.concatenate([first, sums], axis=-2)


def _rows(name: str, values: Any, size: int) -> np.ndarray:
    """Return values as an array of floats, (..., size); NaN is allowed."""
    array = float_array(name, values, f"shape (..., {size})")
    if array.ndim == 0 or array.shape[-1] != size:
        raise ShapeError(name, f"shape (..., {size})", f"shape {array.shape}")
    return array


def _checked(chain: ChainModel, state: Any) -> tuple[np.ndarray, np.ndarray]:
    wanted = f"shape (..., {chain.n}, 2)"
    x, v = (float_array(*part, wanted) for part in zip(("x", "v"), state, strict=True))
    for name, part in (("x", x), ("v", v)):
        if part.shape[-2:] != (chain.n, 2):
            raise ShapeError(name, wanted, f"shape {part.shape}")
    return x, v
