"""Forces of springs and dampers between points of two links."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dyn_core.errors import SingularError
from dyn_core.model.assembly.tree import Tree
from dyn_core.model.coordinates.joints_and_followers import join_force, split_q, split_v
from dyn_core.model.description import Description, PointSpring
from dyn_core.numbers.scalar import Scalar, logical_not, require, sqrt
from dyn_core.spatial import Force, Motion, Transform, Vector, cross3

SMALL = 1e-9  # springs shorter than this have no direction [m]


def spring_forces(description: Description) -> tuple[PointSprings, ...]:
    """Return a tuple of one PointSprings with all springs of a robot; () for none."""
    springs = description.point_springs
    return (PointSprings(springs),) if springs else ()


@dataclass(frozen=True)
class PointSprings:
    """Joint forces of point springs, as a function for Model.with_forces.

        d = p_b - p_a,   l = |d|,   pull = (k (l - l_rest) + c dl/dt) d / l

    acts at p_a, its opposite at p_b. At l = 0 a spring with l_rest = 0 and without
    damper has no force; any other spring has no direction there: a SingularError.

    Attributes:
        springs: The springs.

    Source: KIM-S2 (user forces), for a line element.
    """

    springs: tuple[PointSpring, ...]

    @property
    def __name__(self) -> str:
        return ", ".join(spring.name for spring in self.springs)

    def __call__(self, tree: Tree, q: Vector, qd: Vector) -> list[Scalar]:
        """Return the joint forces on the robot at (q, qd), a list of nv [N·m | N].

        Raises SingularError if the ends of a spring coincide that has damping, or
        stiffness and a rest length; with traced numbers the Program raises it.
        """
        X, v = _motion(tree, q, qd)
        f = [Force.zero()] * (tree.nb + 1)
        for spring in self.springs:
            (i, p_a, v_a), (j, p_b, v_b) = (
                _point(tree, X, v, *end)
                for end in ((spring.a, spring.at_a), (spring.b, spring.at_b))
            )
            pull = _pull(spring, p_b - p_a, v_b - v_a)
            f[i] = f[i] + X[i] @ Force(cross3(p_a, pull), pull)
            f[j] = f[j] - X[j] @ Force(cross3(p_b, pull), pull)
        tau, parts = [Vector(())] * (tree.nb + 1), split_q(tree, q)
        for i in reversed(tree.bodies):
            p, joint = tree.parent[i], tree.joint[i]
            tau[i] = joint.S(parts[i]).T @ f[i]
            f[p] = f[p] + (joint.X(parts[i]) @ tree.Xtree[i]).T @ f[i]
        return list(join_force(tree, tau))

    def with_number(self, name: str, what: str, x: Scalar) -> PointSprings:
        """Return the springs with a changed number of one spring.

        Args:
            name: Name of the spring; unknown names change nothing.
            what: stiffness, rest_length or damping.
            x: New value, a number or symbol.
        """
        changed = (
            replace(s, **{what: x}) if s.name == name else s for s in self.springs
        )
        return PointSprings(tuple(changed))

    def potential(self, tree: Tree, q: Vector) -> Scalar:
        """Return the potential energy at q (nq), the sum of k (l - l_rest)² / 2 [J].

        l is the distance of a spring's two points.
        """
        X, v = _motion(tree, q, Vector.zeros(tree.nv))
        energy: Scalar = 0.0
        for spring in self.springs:
            _, p_a, _ = _point(tree, X, v, spring.a, spring.at_a)
            _, p_b, _ = _point(tree, X, v, spring.b, spring.at_b)
            d, rest = p_b - p_a, spring.rest_length
            stretch = d @ d
            if not _nothing(rest):
                stretch = stretch - sqrt(stretch) * (2.0 * rest) + rest * rest
            energy = energy + stretch * (spring.stiffness / 2)
        return energy


def _motion(tree: Tree, q: Vector, qd: Vector) -> tuple[list[Transform], list[Motion]]:
    """Return transforms from the base and velocities of all bodies, two lists by body.

    Velocities are in body coordinates. Entry 0 is the base: identity and zero.
    """
    X, v = [Transform.identity()], [Motion.zero()]
    parts, rates = split_q(tree, q), split_v(tree, qd)
    for i in tree.bodies:
        p, joint = tree.parent[i], tree.joint[i]
        X_p = joint.X(parts[i]) @ tree.Xtree[i]
        X.append(X_p @ X[p])
        v.append(X_p @ v[p] + joint.vJ(parts[i], rates[i]))
    return X, v


def _point(
    tree: Tree,
    X: list[Transform],
    v: list[Motion],
    link: str | None,
    point: tuple[float, float, float],
) -> tuple[int, Vector, Vector]:
    """Return a point's body, position [m] and velocity [m/s] in base coordinates.

    X are transforms from the base, v velocities in body coordinates, both by body;
    `point` is in the link's frame [m]; the link None is the base.
    """
    body, r = 0, Vector(point)
    if link is not None:
        frame = tree.frame(link)
        body, r = frame.body, frame.X.r + frame.X.E.T @ r
    R = X[body].E.T
    speed = v[body].lin + cross3(v[body].ang, r)
    return body, X[body].r + R @ r, R @ speed


def _pull(spring: PointSpring, d: Vector, rate: Vector) -> Vector:
    """Return the force on the first point, (k (l - l_rest) + c dl/dt) d / l [N].

    d is the second point's position minus the first's [m], `rate` its time derivative,
    l = |d|. Without damping and rest length the force is k d, also at d = 0, otherwise
    SingularError for |d| <= 1e-9 m; with traced numbers the Program raises it.
    """
    k, c, rest = spring.stiffness, spring.damping, spring.rest_length
    force = d * k
    damped, stiff = not _nothing(c), not (_nothing(k) or _nothing(rest))
    if not (damped or stiff):
        return force
    square = d @ d
    item = f"spring {spring.name}: its ends coincide, it has no direction"
    require(logical_not(square <= SMALL * SMALL), SingularError, item)
    if stiff:
        force = force - d * (k * rest / sqrt(square))
    return force + d * ((d @ rate) * c / square) if damped else force


def _nothing(x: Scalar) -> bool:
    """Return whether x is a plain number equal to zero; False for symbols."""
    return isinstance(x, (int, float)) and x == 0.0
