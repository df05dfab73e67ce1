"""Constraints in joints, one block of rows each, and unit forces of contacts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.contact.collision.pairs import Contact
from dyn_core.contact.problem.layout import KINDS
from dyn_core.contact.rows.contact_rows import tangent
from dyn_core.errors import ModelError
from dyn_core.model import Model
from dyn_core.model.coordinates.ball_limits import ball_limit_rows, limited_balls
from dyn_core.spatial import Vector

ROLES = ("contact", "limit", "friction", "loop", "gear", "prescribed")


@dataclass(frozen=True, eq=False)
class Constraint:
    """One block of rows of a robot's constraint problem, checked on construction.

        sigma = J qd,   and the law of `kind` between its impulses and velocities

    Attributes:
        name: Name in reports.
        id: Hashable key, equal in two steps for the same constraint.
        role: contact, limit, friction, loop, gear or prescribed (ROLES).
        kind: bilateral, prescribed, unilateral, contact or box (layout.KINDS).
        J: Jacobian, (rows, nv).
        gap: Distance to the limit, one number, negative beyond it; or position error of
            a loop, one number per row [m | rad].
        restitution: Ratio of speeds after and before an impact, 0 to 1.
        max_force: Upper bound of dry friction, 0 or more; it acts against motion in
            negative direction [N·m | N].
        min_force: Lower bound, 0 or less, against motion in positive direction; None:
            -max_force [N·m | N].

    Raises:
        ModelError: The role or kind is unknown, J is not (rows, nv), or a number is not
            finite or out of range; names the constraint.

    Source: LCP-1, LCP-19 (ids).
    """

    name: str
    id: Hashable
    role: str
    kind: str
    J: np.ndarray
    gap: Any = 0.0
    restitution: float = 0.0
    max_force: float = np.inf
    min_force: float | None = None

    def __post_init__(self) -> None:
        def refuse(what: str, value: Any, valid: str) -> None:
            raise ModelError(
                f"constraint '{self.name}': {what} is {value}; valid: {valid}",
                self.name,
            )

        for what, value, known in (
            ("role", self.role, ROLES),
            ("kind", self.kind, KINDS),
        ):
            if value not in known:
                refuse(what, repr(value), ", ".join(known))
        J = np.asarray(self.J, float)
        if J.ndim != 2 or not len(J):
            refuse("J", f"of shape {J.shape}", "(rows, nv)")
        for what in ("J", "gap", "restitution"):
            if not np.isfinite(getattr(self, what)).all():
                refuse(what, getattr(self, what), "finite numbers")
        if not 0 <= self.restitution <= 1:
            refuse("restitution", self.restitution, "0 to 1")
        if not self.max_force >= 0:
            refuse("max_force", self.max_force, "0 or more")
        if not self.force_range[0] <= 0:
            refuse("min_force", self.min_force, "0 or less")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.J)

    @property
    def force_range(self) -> tuple[float, float]:
        """Lower and upper bound of the force of a box [N·m | N]."""
        least = -self.max_force if self.min_force is None else self.min_force
        return least, self.max_force


def tangents(n: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit tangents to each unit normal, t and n x t, (count, 3) each.

    t = e_k - n_k n, scaled to length 1, with k the first component of smallest |n_k|. A
    normal (3,) counts as (1, 3).

    Source: LCP-2.
    """
    n = np.asarray(n, float).reshape(-1, 3)
    t = np.array([tangent(*row) for row in n.tolist()]).reshape(-1, 3)
    return t, np.cross(n, t)


def unit_forces(normal: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Return the unit forces (k, 6, 6), [moment; force], of contacts in the world.

        [x x d; d] along d = normal and `tangents`, then the turns [d; 0] about them

    Source: LCP-2, LCP-16.
    """
    directions = (normal, *tangents(normal))
    forces = [np.hstack([np.cross(point, d), d]) for d in directions]
    forces += [np.hstack([d, np.zeros_like(d)]) for d in directions]
    return np.stack(forces, axis=1)


def contact_name(c: Contact) -> str:
    """Return "LINK_A/LINK_B, SHAPE_A-SHAPE_B: FEATURE" of a contact, for reports."""
    shapes = f"{c.id.shape_a}-{c.id.shape_b}"
    return f"{c.id.link_a}/{c.id.link_b}, {shapes}: {c.id.feature}"


# A constraint, and its gap or error: sum of factor * q[index], plus a constant.
LinearConstraint = tuple[Constraint, list[tuple[int, float]], float]


class JointConstraints:
    """Constraints in the joints of a robot: limits, friction, gears, prescribed motion.

    Args:
        model: Robot.
        gears: (joint a, joint b, ratio, offset): ratio q_a - q_b = offset.

    Raises:
        ModelError: The joint of a gear is unknown, or has several coordinates; a force
            of friction is out of range.

    Source: LCP-6, LCP-7, LCP-8.
    """

    def __init__(
        self, model: Model, gears: Sequence[tuple[str, str, float, float]] = ()
    ) -> None:
        self.model, unit = model, np.eye(model.nv)
        self._limits: list[tuple[int, Constraint, float, float]] = []
        for i in model.independent:
            index, name = model.v_slices[i].start, model.names[i]
            if model.joint[i].nv != 1:
                continue
            for side, sign, stop in (
                ("lower", 1.0, float(model.lower[index])),
                ("upper", -1.0, float(model.upper[index])),
            ):
                if np.isfinite(stop):
                    block = _limit(name, side, sign * unit[[index]])
                    self._limits.append((model.q_slices[i].start, block, sign, stop))
        self._dry = [
            Constraint(
                f"dry friction of {model.names[i]}" + (f", {k}" if k else ""),
                ("friction", model.names[i], k),
                "friction",
                "box",
                _rate_row(model, i, k)[None],
                max_force=float(mean - more),
                min_force=-float(mean + more),
            )
            for i in model.bodies
            for k, (mean, more) in enumerate(
                zip(model.friction[i], model.friction_asymmetry[i], strict=True)
            )
            if mean > 0
        ]
        self._gears = [self._gear(*gear) for gear in gears]

    def ball_limits(self, q: np.ndarray) -> list[Constraint]:
        """Return all finite limits of swing and twist of ball joints, with their gaps.

        q: Joint positions, (nq,). Limits are returned whether q is near them or not.
        Raises SingularError if a swing is pi, where the twist is undefined.
        """
        return [
            c for i in limited_balls(self.model) for c in _ball_limits(self.model, i, q)
        ]

    def linear_limits(self) -> list[LinearConstraint]:
        """Return the finite limits of joints of one coordinate.

        Joints that follow another one have none. The gaps are given as linear functions
        of q; the `gap` of each Constraint is 0.

        Returns:
            For each limit its Constraint, a list with one pair (index in q, factor),
                and a constant: gap = factor q[index] + constant [rad | m].
        """
        return [
            (block, [(index, sign)], -sign * stop)
            for index, block, sign, stop in self._limits
        ]

    def linear_gears(self) -> list[LinearConstraint]:
        """Return the gears, with their position errors as linear functions of q.

        Returns:
            For each gear its Constraint, a list of two pairs (index in q, factor), and
                a constant: error = sum of factor q[index], plus the constant [rad | m].
                A follower has the index of its leader, so both may be equal.
        """
        constraints = []
        for block, (a, b), ratio, offset in self._gears:
            terms = [(a[0], ratio * a[1]), (b[0], -b[1])]
            constraints.append((block, terms, ratio * a[2] - b[2] - offset))
        return constraints

    def dry_friction(self) -> list[Constraint]:
        """Return the dry friction of joints, one block per coordinate that has any.

        Followers have blocks of their own, in their leader's coordinates.

        The list is built once, and is the same object in every call.
        """
        return self._dry

    def prescribed(self, name: str) -> list[Constraint]:
        """Return the constraints of a joint's prescribed motion, one per coordinate.

        For a joint that follows another, these are the coordinates of its leader.
        Raises ModelError for an unknown, fixed or locked joint.
        """
        columns = self.model.v_slice(name)
        return [
            Constraint(
                f"prescribed {name}" + (f", {k}" if k else ""),
                ("prescribed", name, k),
                "prescribed",
                "prescribed",
                row[None],
            )
            for k, row in enumerate(np.eye(self.model.nv)[columns])
        ]

    def _gear(
        self, a: str, b: str, ratio: float, offset: float
    ) -> tuple[Constraint, list[Any], float, float]:
        """Return a gear's constraint, (index in q, scale, shift) of a and b, and rest.

            ratio (scale_a q_a + shift_a) - (scale_b q_b + shift_b) = offset

        Scale and shift are 1 and 0 but for joints that follow another one. The rest is
        ratio and offset.
        """
        rows, positions = [], []
        for name in (a, b):
            i = self.model.body_of_joint(name)
            if self.model.joint[i].nv != 1:
                raise ModelError(
                    f"gear of {a} and {b}: joint '{name}' is"
                    f" {self.model.joint[i].kind}; valid: joints of one coordinate",
                    name,
                )
            rows.append(_rate_row(self.model, i, 0))
            rule = self.model.followers.get(name)
            scale, shift = (
                (1.0, 0.0) if rule is None else (rule.multiplier, rule.offset)
            )
            positions.append((self.model.q_slices[i].start, scale, shift))
        row = ratio * rows[0] - rows[1]
        block = Constraint(
            f"gear of {a} and {b}", ("gear", a, b), "gear", "bilateral", row[None]
        )
        return block, positions, ratio, offset


def _rate_row(model: Model, i: int, k: int) -> np.ndarray:
    """Return the row whose product with qd is rate k of the joint of body i, (nv,).

    For a follower it holds row k of the ratio to the leader's velocities, else one 1.
    """
    row, ratio = np.zeros(model.nv), model.leader[i].ratio
    columns = model.v_slices[i]
    row[columns] = (
        np.eye(columns.stop - columns.start)[k]
        if ratio is None
        else list(ratio.rows[k])
    )
    return row


def _limit(name: str, side: str, J: np.ndarray, gap: float = 0.0) -> Constraint:
    """Return the unilateral constraint of a joint's limit.

    J (1, nv) is the derivative of the gap by the velocity; `gap` is the distance to the
    limit, negative beyond it [rad | m].
    """
    label = f"{side} limit of {name}"
    return Constraint(label, ("limit", name, side), "limit", "unilateral", J, gap)


def _ball_limits(model: Model, i: int, q: np.ndarray) -> list[Constraint]:
    """Return the finite limits of the ball joint of body i, with their gaps [rad].

    They are swing, lower twist and upper twist, in this order, one row each.
    """
    constraints = []
    q_joint = Vector(q[model.q_slices[i]].tolist())
    for side, row, gap in ball_limit_rows(model, i, q_joint):
        J = np.zeros((1, model.nv))
        J[0, model.v_slices[i]] = row
        constraints.append(_limit(model.names[i], side, J, float(gap)))
    return constraints
