"""Effect of a link's payload on the momentum, its rate and the inertia of a robot."""

from dyn_core.authoring import (
    Matrix,
    Motion,
    MotionSubspace,
    RigidInertia,
    cross,
    join_columns,
    slope_of,
    split_q,
    split_v,
    with_slopes,
)
from dyn_core.errors import UnsupportedError

TEN = 10  # numbers of a payload, in the order of RigidInertia.parameters
UNITS = tuple(RigidInertia.of_parameters(row) for row in Matrix.identity(TEN).rows)


def _carriers(model, frame):
    """Return the body indices from the base to the body of a link, without the base."""
    bodies, i = [], model.frame(frame).body
    while i > 0:
        bodies.insert(0, i)
        i = model.parent[i]
    return bodies


def way_to(model, frame):
    """Return the indices of the velocity coordinates that move a link, ascending."""
    slices = (range(model.nv)[model.v_slices[i]] for i in _carriers(model, frame))
    return sorted({k for indices in slices for k in indices})


def known_carrier(model, frame):
    """Raise UnsupportedError if no joint moves the link `frame`.

    An unknown link raises ModelError. Without a model (None) nothing is checked.
    """
    if model is not None and not way_to(model, frame):
        moved = [name for name in model.frame_names if way_to(model, name)]
        raise UnsupportedError(
            f"nothing moves link '{frame}', so that no payload of it shows; valid:"
            f" {', '.join(moved)}"
        )


class CarriedLink:
    """A link, its Jacobian, and the momentum of a unit payload on it.

        p = J.T h,   beta = J.T w + (v_j x J_j + dS_j).T h,   h = I v,   w = I a_grav

    Attributes:
        way: Indices of the n velocity coordinates that move the link.
        J: Jacobian of its velocity by these coordinates, n columns, link coordinates.
        Y: Momentum p by the ten inertial parameters of the payload, (n, 10).
        B: Rate of momentum beta, without joint forces, by the same parameters, (n, 10).
    """

    def __init__(self, model, q, qd, frame):
        """Compute Jacobian and regressors, from the base to the link.

        Args:
            model: Robot.
            q, qd: Joint positions and velocities, nq and nv.
            frame: Name of the link.

        Source: as momentum_observer, for a body that the link carries.
        """
        position, velocity = split_q(model, q), split_v(model, qd)
        v, g, J, rates = Motion.zero(), model.a_grav, {}, {}
        for i in _carriers(model, frame):
            joint, speed = model.joint[i], velocity[i]
            moving = with_slopes(position[i], joint.position_rate(position[i], speed))
            X = joint.X(position[i]) @ model.Xtree[i]
            v, g = X @ v + joint.vJ(position[i], speed), X @ g
            J, rates = _moved(X, J), _moved(X, rates)
            J[i] = joint.S(position[i])
            rates[i] = cross(v, J[i]) + slope_of(joint.S(moving))
        X, self.way = model.frame(frame).X, way_to(model, frame)
        self.J = self._columns(model, _moved(X, J))
        slopes = self._columns(model, _moved(X, rates))
        h, w = [I @ (X @ v) for I in UNITS], [I @ (X @ g) for I in UNITS]
        self.Y = Matrix([axis @ x for x in h] for axis in self.J)
        self.B = Matrix(
            [axis @ y + slope @ x for x, y in zip(h, w, strict=True)]
            for axis, slope in zip(self.J, slopes, strict=True)
        )

    def _columns(self, model, by_joint):
        """Return a MotionSubspace of the n coordinates that move the link."""
        columns = tuple(zip(*join_columns(model, by_joint).rows, strict=True))
        return MotionSubspace(Motion.of(columns[k]) for k in self.way)

    def inertia(self, ten):
        """Return the payload's joint-space inertia, (n, n), from its ten parameters."""
        return self.J.T @ (RigidInertia.of_parameters(ten) @ self.J)


def _moved(X, columns):
    """Return motion subspaces, by joint, transformed by X."""
    return {j: X @ axes for j, axes in columns.items()}
