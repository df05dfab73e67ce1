"""Values of peers in our coordinates, beside ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench.cases import INPUTS, Robot
from bench.peers.peer import Peer
from dyn_core.model import load_urdf
from dyn_core.solving.registry import solver
from dyn_core.testing.tolerances import scaled_error

Values = Sequence[np.ndarray]
AGREE = 1e-6  # relative difference of values that counts as none
COMPARED = 4  # states that are compared
SHAPELESS = ("point_delassus", "operational_inertia")  # axes differ: eigenvalues


def difference(peer: Peer, algorithm: str, ours: Values) -> float:
    """Return the largest relative difference of a peer's values from ours.

    Args:
        peer, algorithm: What is compared.
        ours: Dense outputs of our Program at the robot's states.
    """
    robot = peer.robot
    if peer.gravity != -float(robot.model.a_grav.lin[2]):
        ours = _with_gravity(robot, algorithm, peer.gravity)
    errors = [0.0]
    for k in range(COMPARED):
        q, v = robot.state["q"][k], robot.state["v"][k]
        here = [np.asarray(x[k]) for x in ours]
        B, b = peer.velocity_map(q), peer.bias(q, v)
        theirs = peer.values(algorithm, k)
        if algorithm == "semi_implicit_euler":
            after, rate = here
            B = peer.velocity_map(after)
            sides = [(peer.position(after), theirs[0]), (rate, B.T @ theirs[1])]
        else:
            if algorithm == "fd_derivatives":
                here = here[1:]  # without the acceleration
            if algorithm in ("rnea", "bias", "aba") and b.any():
                here = [_moved(robot, algorithm, here[0], q, B.T @ b)]
            turned = [_turned(algorithm, x, B) for x in theirs]
            sides = list(zip(map(_bare(algorithm), here), turned, strict=True))
        errors += [scaled_error(x, y) for x, y in sides]
    return max(errors)


def _bare(algorithm: str) -> Callable[[Any], Any]:
    """Return what of our values does not depend on axes."""
    return np.linalg.eigvalsh if algorithm in SHAPELESS else np.asarray


def _turned(algorithm: str, x: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return a peer's value in our coordinates; B is orthogonal."""
    if algorithm in SHAPELESS:
        return np.linalg.eigvalsh(x)
    if algorithm in ("crba", "mass_matrix_inverse") or _is_inertia(x):
        x = np.triu(x) + np.triu(x, 1).T  # some fill one half only
    return B.T @ x @ B if x.ndim == 2 else B.T @ x


def _is_inertia(x: np.ndarray) -> bool:
    """Return whether only the upper half of a matrix is filled."""
    return x.ndim == 2 and not np.tril(x, -1).any()


def _moved(
    robot: Robot, algorithm: str, here: np.ndarray, q: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """Return our value as the peer means it, whose velocities turn with the base.

    Its accelerations are B a + b. The bias is that of its accelerations being zero:
    ours with a = -B' b. The others get accelerations in its coordinates.
    """
    if algorithm == "bias":
        H = solver("crba").build(robot.model, engine="graph")(q)
        return here - H @ b
    return here + b if algorithm == "aba" else here


def _with_gravity(robot: Robot, algorithm: str, gravity: float) -> Values:
    """Return our values with another gravity, of the first states."""
    root = "floating" if robot.floating else "fixed"
    model = load_urdf(
        robot.urdf, root_joint=root, check="warn", gravity=(0.0, 0.0, -gravity)
    )
    program: Any = solver(algorithm).build(
        model, engine="graph", **robot.choices(algorithm)
    )
    inputs = [robot.state[x][:COMPARED] for x in INPUTS[algorithm].split(", ")]
    results = program(*inputs)
    return results if isinstance(results, tuple) else (results,)
