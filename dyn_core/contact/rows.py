"""Blocks of rows between bodies and in joints: what a robot's problem consists of."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dyn_core.contact.layout import GROUPS, KINDS
from dyn_core.contact.pairs import Contact
from dyn_core.errors import ModelError
from dyn_core.model import Model
from dyn_core.spatial import Vector, swing_twist, swing_twist_rows

ROLES = ("contact", "limit", "friction", "loop", "gear", "prescribed")


@dataclass(frozen=True, eq=False)
class Constraint:
    """One block of rows of a robot, checked when it is made.

        sigma = J qd,   and the law of `kind` between its impulses and velocities

    Attributes:
        name: For reports.
        id: The same in two steps where the same things are constrained.
        role: One of ROLES: what it stands for.
        kind: One of layout.KINDS.
        J: Rows, (rows, nv).
        gap: How far it is from closed, or its error: of a contact or limit one number,
            of a loop one a row [m | rad].
        mu: Friction coefficients of a contact: tangents [1], torsion [m], rolling [m].
        restitution: Ratio of speeds after and before an impact.
        most: Largest force of dry friction [N·m | N].
        wanted: Velocity of a prescribed row [m/s | rad/s].
        contact: What touches where, of a contact.
        W: Unit forces of a contact's rows on body a, world axes about the world's
            origin, (rows, 6), [moment; force].

    Raises:
        ModelError: A number is missing or out of range; names the block.

    Source: LCP-1, LCP-19 (ids).
    """

    name: str
    id: Hashable
    role: str
    kind: str
    J: np.ndarray
    gap: Any = 0.0
    mu: tuple[float, ...] = ()
    restitution: float = 0.0
    most: float = np.inf
    wanted: float = 0.0
    contact: Contact | None = None
    W: np.ndarray | None = None

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
        for what in ("J", "gap", "mu", "restitution", "wanted"):
            if not np.isfinite(getattr(self, what)).all():
                refuse(what, getattr(self, what), "finite numbers")
        if self.kind == "contact":
            groups = GROUPS.get(len(J))
            if groups is None or len(self.mu) != len(groups):
                count = None if groups is None else len(groups)
                rows = f"{len(J)} rows and {len(self.mu)} coefficients"
                refuse("mu", rows, f"{count} coefficients; rows 1, 2, 3, 4 or 6")
        if any(x < 0 for x in self.mu):
            refuse("mu", self.mu, "0 or more")
        if not 0 <= self.restitution <= 1:
            refuse("restitution", self.restitution, "0 to 1")
        if not self.most >= 0:
            refuse("most", self.most, "0 or more")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.J)

    @property
    def closing(self) -> bool:
        """Whether it has a gap that may open and close."""
        return self.role in ("contact", "limit")


def tangents(n: Any) -> tuple[np.ndarray, np.ndarray]:
    """Give two unit tangents to each unit normal, the same for the same normal.

        t1 = e_k - n_k n, scaled,   t2 = n x t1,   k: smallest component of n

    Args:
        n: Normals, (count, 3).

    Source: LCP-2.
    """
    n = np.asarray(n, float)
    k = np.argmin(np.abs(n), axis=1)
    t1 = np.eye(3)[k] - n[np.arange(len(n)), k][:, None] * n
    t1 = t1 / np.linalg.norm(t1, axis=1, keepdims=True)
    return t1, np.cross(n, t1)


def contact_constraints(
    contacts: Sequence[Contact], J_bodies: np.ndarray
) -> list[Constraint]:
    """Give the block of each contact: normal, tangents, torsion and rolling.

        sigma = W . (J_a - J_b) qd,   W = [x x d; d] for the direction d at the point x

    A surface without friction has the normal row alone.

    Args:
        contacts: Where bodies touch.
        J_bodies: World Jacobians of all bodies, the world's zeros first,
            (nb + 1, 6, nv).

    Source: LCP-2, LCP-16.
    """
    if not contacts:
        return []
    n = np.array([c.normal for c in contacts])
    x = np.array([c.point for c in contacts])
    t1, t2 = tangents(n)
    zero = np.zeros_like(n)
    directions = [np.hstack([np.cross(x, d), d]) for d in (n, t1, t2)]
    directions += [np.hstack([d, zero]) for d in (n, t1, t2)]
    W = np.stack(directions, axis=1)
    a, b = ([getattr(c, end) for c in contacts] for end in ("body_a", "body_b"))
    J = W @ (J_bodies[a] - J_bodies[b])
    found = []
    for k, c in enumerate(contacts):
        mu = coefficients(c)
        rows = next(
            rows for rows, g in GROUPS.items() if rows != 2 and len(g) == len(mu)
        )
        words = f"{c.id.link_a}/{c.id.link_b}, {c.id.shape_a}-{c.id.shape_b}"
        found.append(
            Constraint(
                f"{words}: {c.id.feature}",
                c.id,
                "contact",
                "contact",
                J[k, :rows],
                c.gap,
                mu,
                c.material.restitution,
                contact=c,
                W=W[k, :rows],
            )  # fmt: skip
        )
    return found


def coefficients(contact: Contact) -> tuple[float, ...]:
    """Give the friction coefficients that a contact's material needs."""
    m = contact.material
    if m.rolling > 0:
        return m.mu, m.torsion, m.rolling
    if m.torsion > 0:
        return m.mu, m.torsion
    return (m.mu,) if m.mu > 0 else ()


class JointRows:
    """Blocks in the joints of a robot: limits, dry friction, gears, prescribed motion.

    Args:
        model: Robot.
        gears: (joint a, joint b, ratio, offset): ratio q_a - q_b = offset.

    Source: LCP-6, LCP-7, LCP-8.
    """

    def __init__(
        self, model: Model, gears: Sequence[tuple[str, str, float, float]] = ()
    ) -> None:
        self.model, unit = model, np.eye(model.nv)
        self._limits: list[tuple[int, Constraint, float, float]] = []
        for i in model.independent:
            at, name = model.v_slices[i].start, model.names[i]
            if model.joint[i].nv != 1:
                continue
            for side, sign, stop in (
                ("lower", 1.0, float(model.lower[at])),
                ("upper", -1.0, float(model.upper[at])),
            ):
                if np.isfinite(stop):
                    block = _limit(name, side, sign * unit[[at]])
                    self._limits.append((model.q_slices[i].start, block, sign, stop))
        self._dry = [
            Constraint(
                f"dry friction of {model.names[i]}" + (f", {k}" if k else ""),
                ("friction", model.names[i], k),
                "friction",
                "box",
                _rate_row(model, i, k)[None],
                most=float(most),
            )
            for i in model.bodies
            for k, most in enumerate(model.friction[i])
            if most > 0
        ]
        self._gears = [self._gear(*gear) for gear in gears]

    def limits(self, q: np.ndarray, within: float) -> list[Constraint]:
        """Give the limits that are nearer than `within`, swing and twist too.

        gap = q - lower  or  upper - q
        """
        found = []
        for at, block, sign, stop in self._limits:
            gap = sign * (float(q[at]) - stop)
            if gap <= within:
                found.append(replace(block, gap=gap))
        for i in self.model.ball_limits:
            if self.model.leader[i].body == i:
                found += [c for c in _ball_limits(self.model, i, q) if c.gap <= within]
        return found

    def dry_friction(self) -> list[Constraint]:
        """Give the joints with dry friction."""
        return self._dry

    def gears(self, q: np.ndarray) -> list[Constraint]:
        """Give the gears, with their errors."""
        found = []
        for block, places, ratio, offset in self._gears:
            a, b = (scale * q[at] + shift for at, scale, shift in places)
            found.append(replace(block, gap=ratio * a - b - offset))
        return found

    def prescribed(self, speeds: Mapping[str, Any]) -> list[Constraint]:
        """Give joints that move at given speeds, one block a coordinate.

        Args:
            speeds: By joint: a number, or one for each of its coordinates.
        """
        found = []
        for name, speed in speeds.items():
            at = self.model.v_slice(name)
            for k, value in enumerate(np.atleast_1d(np.asarray(speed, float))):
                row = np.eye(self.model.nv)[[at.start + k]]
                words = f"prescribed {name}" + (f", {k}" if k else "")
                found.append(
                    Constraint(
                        words,
                        ("prescribed", name, k),
                        "prescribed",
                        "prescribed",
                        row,
                        wanted=float(value),
                    )  # fmt: skip
                )
        return found

    def _gear(
        self, a: str, b: str, ratio: float, offset: float
    ) -> tuple[Constraint, list[Any], float, float]:
        """Give a gear's block, and where positions of its joints come from."""
        rows, places = [], []
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
            places.append((self.model.q_slices[i].start, scale, shift))
        row = ratio * rows[0] - rows[1]
        block = Constraint(
            f"gear of {a} and {b}", ("gear", a, b), "gear", "bilateral", row[None]
        )
        return block, places, ratio, offset


def _rate_row(model: Model, i: int, k: int) -> np.ndarray:
    """Give the row of the k-th own rate of a body's joint, (nv,)."""
    row, ratio = np.zeros(model.nv), model.leader[i].ratio
    at = model.v_slices[i]
    row[at] = np.eye(at.stop - at.start)[k] if ratio is None else list(ratio.rows[k])
    return row


def _limit(name: str, side: str, J: np.ndarray, gap: float = 0.0) -> Constraint:
    """Give the block of a joint's limit."""
    words = f"{side} limit of {name}"
    return Constraint(words, ("limit", name, side), "limit", "unilateral", J, gap)


def _ball_limits(model: Model, i: int, q: np.ndarray) -> list[Constraint]:
    """Give the limits of a ball's swing and twist.

    Source: TAZZ-4.7.
    """
    joint, name = model.joint[i], model.names[i]
    own = Vector(q[model.q_slices[i]].tolist())
    R = joint.X(own).E.T
    item = f"joint {name}: twist, where the swing is pi"
    swing, twist = swing_twist(R, item)
    turns = np.array([list(R @ column.ang) for column in joint.S(own)], float).T
    rows = np.array([list(row) for row in swing_twist_rows(R, item).rows], float)
    most, (low, high) = model.ball_limits[i]
    found = []
    for side, row, gap in (
        ("swing", -rows[0], most - float(swing)),
        ("lower twist", rows[1], float(twist) - low),
        ("upper twist", -rows[1], high - float(twist)),
    ):
        if np.isfinite(gap):
            J = np.zeros((1, model.nv))
            J[0, model.v_slices[i]] = row @ turns
            found.append(_limit(name, side, J, gap))
    return found
