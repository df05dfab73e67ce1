"""States of planar chains as states of robots, and back; see convert.py.

A chain has n joints, one more than links: the last one is its end. A ChainState has
their positions x and velocities v in the plane.

Source: WAW-15.2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dyn_core.errors import ModelError, NonFiniteError, ShapeError
from dyn_core.model import Model
from dyn_core.planar.chain.chain import ChainModel
from dyn_core.planar.chain.states import ChainState, from_angles, to_angles
from dyn_core.planar.conversion.serial import PlanarChainGeometry, place, read, speed
from dyn_core.spatial import Vector
from dyn_core.validation import float_array, one_state, shown


def state_to_chain(
    model: Model, chain: ChainModel, q: Any, qd: Any, tip: str | None = None
) -> ChainState:
    """Return the state of a chain from the state of the corresponding robot.

        x_0 = place of joint 0,   theta_k = bend_k + sign_k q_k

    The chain was made from the robot, or the robot from the chain; another one is
    refused, as is a state that leaves the plane. `tip` is as in serial.read. x, v are
    (n, 2) [m], [m/s]. NaN in q or qd is not tested.

    Source: WAW-15.2, WAW-2.1.
    """
    geometry = _geometry(model, chain, tip)
    q, qd = one_state("q", q, model.nq), one_state("qd", qd, model.nv)
    R, p = place(model, q)[geometry.root]
    w, u = speed(model, q, qd, geometry.root)
    normal = geometry.axes[2]
    turn = R @ geometry.poses[geometry.root][0].T
    off = max(
        *np.abs(turn @ normal - normal),
        *np.abs(w - normal * (normal @ w)),
        abs(normal @ u),
    )
    if off > 1e-9 * (1 + max(np.abs(w).max(), np.abs(u).max())):
        raise ModelError(f"the state of '{model.name}' leaves the plane of the chain")
    angle = math.atan2(
        geometry.axes[1] @ turn @ geometry.axes[0],
        geometry.axes[0] @ turn @ geometry.axes[0],
    )
    rate = float(normal @ w)
    start = _rotated(geometry.start, angle)
    x0 = geometry.flat(p) + start
    v0 = geometry.flat(u) + rate * np.array((-start[1], start[0]))
    theta, theta_dot = np.array(geometry.bends), np.zeros(len(geometry.bends))
    for k, segment in enumerate(geometry.segments):
        if k == 0:
            theta[0], theta_dot[0] = theta[0] + angle, rate
        elif segment.turns:
            sense = geometry.sense(model, segment.body)
            theta[k] += sense * q[model.q_slices[segment.body]][0]
            theta_dot[k] = sense * qd[model.v_slices[segment.body]][0]
    return from_angles(chain, x0, v0, theta, theta_dot)


def state_to_model(
    model: Model, chain: ChainModel, state: Any, tip: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return q, qd of a robot from the state of its chain, x, v, (n, 2) [m], [m/s].

    Angles are within half a turn of the middle of their limits, or of zero where a
    limit is infinite. Errors of lengths and bend angles of the state are ignored.
    Another chain is refused, as is a joint 0 that the robot's base cannot reach. `tip`
    is as in serial.read.

    Source: WAW-15.2, WAW-2.1.
    """
    geometry = _geometry(model, chain, tip)
    state, wanted = ChainState(*state), f"shape ({chain.n}, 2)"
    for name, part in state._asdict().items():
        array = float_array(name, part, wanted)
        if array.ndim != 2:
            raise ShapeError(name, wanted, f"shape {array.shape}")
        if not np.isfinite(array).all():
            text = f"the state of the chain has NaN or infinity in {name}"
            raise NonFiniteError(f"{text}; valid: finite numbers", name)
    x0, v0, theta, theta_dot = to_angles(chain, state)
    q, qd = model.neutral(), np.zeros(model.nv)
    for k, (segment, bend) in enumerate(
        zip(geometry.segments, geometry.bends, strict=True)
    ):
        if segment.turns and not (k == 0 and geometry.free):
            dofs = model.v_slices[segment.body]
            sense = geometry.sense(model, segment.body)
            ends = np.array((model.lower[dofs][0], model.upper[dofs][0]))
            near = float(ends.mean()) if np.isfinite(ends).all() else 0.0
            value = sense * (theta[k] - bend)
            turn = 2 * math.pi * round((value - near) / (2 * math.pi))
            q[model.q_slices[segment.body]] = value - turn
            qd[dofs] = sense * theta_dot[k]
    angle, rate = 0.0, 0.0
    if geometry.free:
        angle = math.remainder(theta[0] - geometry.bends[0], 2 * math.pi)
        rate = float(theta_dot[0])
    start = _rotated(geometry.start, angle)
    way = x0 - start - geometry.flat(geometry.poses[geometry.root][1])
    u = v0 - rate * np.array((-start[1], start[0]))
    if geometry.free and model.joint[1].kind == "floating":
        _float(geometry, q, qd, (way, angle), (u, rate))
    else:
        _slide(model, geometry, q, qd, (way, angle), (u, rate))
    return q, qd


def _geometry(model: Model, chain: ChainModel, tip: str | None) -> PlanarChainGeometry:
    """Return the geometry of a robot, refused unless it has the chain's links."""
    geometry = read(model, tip)
    if len(geometry.segments) != chain.n - 1:
        raise ModelError(
            f"chain '{chain.name}' has {chain.n - 1} links, robot '{model.name}' is"
            f" {len(geometry.segments)}",
            chain.name,
        )
    lengths = [float(np.hypot(*segment.vector)) for segment in geometry.segments]
    if not np.allclose(chain.lengths, lengths, rtol=1e-6, atol=0.0):
        raise ModelError(
            f"chain '{chain.name}' has links of {shown(chain.lengths)} m, robot"
            f" '{model.name}' of {shown(tuple(lengths))} m",
            chain.name,
        )
    return geometry


def _rotated(vector: np.ndarray, angle: float) -> np.ndarray:
    c, s = math.cos(angle), math.sin(angle)
    return np.array((c * vector[0] - s * vector[1], s * vector[0] + c * vector[1]))


def _float(
    geometry: PlanarChainGeometry, q: Any, qd: Any, pose: Any, speed: Any
) -> None:
    """Write pose and twist of a floating root into q[:7] and qd[:6], in place.

    They are place and quaternion (x, y, z, w), and angular and linear velocity in body
    axes. `pose` is the displacement from the neutral position in the plane, (2,), and
    an angle; `speed` its velocity and angular rate.
    """
    (to, angle), (u, rate) = pose, speed
    home = geometry.poses[1][0].T
    normal = home @ geometry.axes[2]
    half = angle / 2
    q[:7] = *(home @ geometry.lifted(to)), *(math.sin(half) * normal), math.cos(half)
    qd[:6] = *(rate * normal), *(home @ geometry.lifted(_rotated(u, -angle)))


def _slide(
    model: Model, geometry: PlanarChainGeometry, q: Any, qd: Any, pose: Any, speed: Any
) -> None:
    """Write the motion of sliding joints, or of a planar root, into q and qd.

    `pose` and `speed` are as of _float. An angle is used for a planar root only.
    ModelError if the joints cannot reach them; q and qd may be changed then.
    """
    bodies = [1] if geometry.free else geometry.slides
    places = [k for i in bodies for k in range(model.nq)[model.q_slices[i]]]
    columns = []
    for i in bodies:
        S = model.joint[i].S(Vector(model.joint[i].neutral()))
        columns += [
            geometry.flat(geometry.poses[i][0] @ np.array(s.lin, float)) for s in S
        ]
    if geometry.free:
        sense = geometry.sense(model, 1)
        q[places[2]], qd[places[2]] = sense * pose[1], sense * speed[1]
        places, columns = places[:2], columns[:2]
    D = np.array(columns).reshape(-1, 2).T
    for out, wanted, what in ((q, pose[0], "is"), (qd, speed[0], "moves")):
        values = np.linalg.lstsq(D, wanted, rcond=None)[0] if places else np.zeros(0)
        off = float(np.linalg.norm(wanted - D @ values))
        if off > 1e-6 * (1 + float(np.linalg.norm(wanted))):
            raise ModelError(
                f"joint 0 of chain '{model.name}' {what} where its base cannot have it,"
                f" {off:.3g} off",
                model.name,
            )
        out[places] = values
