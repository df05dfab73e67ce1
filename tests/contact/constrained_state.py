"""A robot with its constraints in one state, as dense matrices, for worked cases."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dyn_core.contact import ConstraintLayout, ConstraintProblem
from dyn_core.contact.problem.layout import GROUPS
from dyn_core.contact.rows.constraints import Constraint, contact_name, unit_forces
from dyn_core.contact.stepping.integration import gyroscopic_change, turning


@dataclass(frozen=True, eq=False)
class ContactRows(Constraint):
    """Rows of a contact: W . (J_a - J_b) of unit forces W on body a, world axes."""

    mu: tuple = ()
    contact: object = None
    W: np.ndarray | None = None


def constrained_state(contact_model, q, qd, h=0.0):
    """Return the ConstrainedState of a ContactModel, for a step h."""
    q, qd = np.asarray(q, float), np.asarray(qd, float)
    model = contact_model.model
    poses, J = contact_model.kinematics(q)
    J = np.concatenate([np.zeros((1, 6, model.nv)), J])
    return ConstrainedState(
        model, q, qd, poses, J, contact_model.inertia(q), contact_model.bias(q, qd),
        h * contact_model.slopes(qd), tuple(_constraints(contact_model, q, qd, J, h)),
    )  # fmt: skip


def _constraints(contact_model, q, qd, J_bodies, h):
    """Return contacts, limits within reach of a step, dry friction, loops, and gears."""
    world, joints, blocks = contact_model.world, contact_model.joints, []
    for c in contact_model.pairs.contacts(q) if contact_model.pairs else ():
        m = c.material
        mu = m.mu, m.torsion, m.rolling
        mu = mu[: max((k + 1 for k in range(3) if mu[k] > 0), default=0)]
        rows = next(n for n, g in GROUPS.items() if n != 2 and len(g) == len(mu))
        W = unit_forces(c.normal[None], c.point[None])[0, :rows]
        J = W @ (J_bodies[c.body_a] - J_bodies[c.body_b])
        facts = "contact", "contact", J, c.gap, m.restitution
        blocks.append(ContactRows(contact_name(c), c.id, *facts, mu=mu, contact=c, W=W))
    gaps = [
        (block, constant + sum(x * q[k] for k, x in terms))
        for block, terms, constant in (*joints.linear_limits(), *joints.linear_gears())
    ]
    within = world.margin + 2 * h * np.abs(qd).max(initial=0.0)
    limits = [
        replace(c, gap=gap) for c, gap in gaps if c.role == "limit" and gap <= within
    ]
    blocks += limits if world.limits else []
    blocks += joints.dry_friction() if contact_model.dry else []
    blocks += [c for c in contact_model.dense_constraints(q, qd) if c.role == "loop"]
    return blocks + [replace(c, gap=gap) for c, gap in gaps if c.role == "gear"]


@dataclass(frozen=True, eq=False)
class ConstrainedState:
    """The equation of motion and the constraints of a robot in one state.

        (H + B)(qd+ - qd) = h (tau - C) + J.T lambda

    poses, J_bodies: Of the bodies in the world, the world's Jacobian first.
    B: h times the derivative of damping.
    """

    model: object
    q: np.ndarray
    qd: np.ndarray
    poses: np.ndarray
    J_bodies: np.ndarray
    H: np.ndarray
    C: np.ndarray
    B: np.ndarray
    constraints: tuple

    @cached_property
    def layout(self):
        """Blocks of the problem and their rows."""
        return ConstraintLayout(tuple((c.kind, c.rows) for c in self.constraints))

    @property
    def first(self):
        """First row of each block."""
        return [block.start for block in self.layout.blocks]

    @cached_property
    def J(self):
        """Rows of all blocks, (m, nv)."""
        rows = [c.J for c in self.constraints]
        return np.concatenate([np.zeros((0, self.model.nv)), *rows])

    @cached_property
    def inverse(self):
        """(H + B)^-1, (nv, nv)."""
        return np.linalg.inv(self.H + self.B)

    @cached_property
    def G(self):
        """Delassus matrix J (H + B)^-1 J.T, (m, m), symmetric."""
        G = self.J @ self.inverse @ self.J.T
        return (G + G.T) / 2

    def free(self, tau, h):
        """Return the velocity after a step without constraints, in the initial axes."""
        force, state = tau - self.C, (self.model, self.H, self.qd)
        rate = self.inverse @ force + turning(self.model, self.qd)
        return self.qd + h * rate + gyroscopic_change(*state, force, h)

    def problem(self, free, h, bias=0.0, compliance=0.0):
        """Return the problem of a step, sigma = G lambda + J free.

        free: Velocity without constraints.
        h: Step: dry friction takes up to h times its force [s].
        bias, compliance: One number per row, or one for all.
        """
        bounds = np.full((2, self.layout.m), [[-np.inf], [np.inf]])
        for block, c in zip(self.layout.blocks, self.constraints, strict=True):
            bounds[:, block.start] = h * np.array(c.force_range)
        mu = [x for c in self.constraints for x in getattr(c, "mu", ())]
        names = (tuple(getattr(c, x) for c in self.constraints) for x in ("id", "name"))
        b = self.J @ free
        return ConstraintProblem(
            self.layout,
            self.G,
            b,
            mu,
            *bounds,
            compliance,
            np.asarray(bias, float),
            *names,
        )

    def moved(self, free, impulse):
        """Return the velocity after impulses, free + (H + B)^-1 J.T lambda."""
        return free + self.inverse @ (self.J.T @ impulse)
