"""A robot with its constraints as dense matrices, by public kinematics alone.

H, C and the Jacobians of bodies and loops are those of the solvers of these names,
contacts those of ContactPairs. Rows of constraints are written a second time here.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

import dyn_core as dyn
from dyn_core.contact.collision.pairs import ContactPairs
from dyn_core.model import coordinates
from dyn_core.model.passive_forces import without_dry_friction
from dyn_core.spatial import Vector, swing_twist, swing_twist_rows


@dataclass(eq=False)
class Block:
    """Rows of one constraint: its kind is free, unilateral, box or cone."""

    name: object
    kind: str
    J: np.ndarray
    gap: object = 0.0
    e: float = 0.0  # restitution
    mu: float = 0.0  # of a cone, whose other rows are scaled such that it is round
    bounds: tuple = (-np.inf, np.inf)  # of a box [N·m | N]
    target: float = 0.0  # velocity of a prescribed row
    has_error: bool = True  # whether an error of position is corrected
    axes: np.ndarray | None = None  # rows of a contact: directions of force and torque

    @property
    def closing(self):
        """Whether it opens and closes, as contacts and limits do."""
        return self.kind in ("unilateral", "cone")


class Robot:
    """The robot of a ContactSimulator in its World, and the forces that act."""

    def __init__(self, sim):
        self.sim, self.model, self.world = sim, sim.model, sim.world
        self.parts = []  # reports whose contacts count; none: all of the period
        paths, world = sim.carried.paths, sim.world
        smooth = without_dry_friction(sim.model) if world.joint_friction else sim.model
        self.H = dyn.solver("crba").build(smooth, inputs=paths)
        options = {"inputs": ["f_ext", *paths], "joint_springs": True}
        bias, loops = dyn.solver("bias"), dyn.solver("loop_constraints")
        self.C = bias.build(smooth, joint_friction=True, **options)
        self.undamped = bias.build(smooth, joint_friction=False, **options)
        self.jacobians = dyn.solver("body_jacobians").build(sim.model)
        self.loops = loops.build(sim.model) if sim.model.loops else None
        ground = (*world.half_spaces, *world.height_fields)
        more = world.margin, world.packages, world.groups
        self.pairs = ContactPairs(sim.model, ground, *more)

    def dynamics(self, q, qd, h, remaining=1.0):
        """Return H + h B, tau - C, and the velocity after h without constraints.

        In the axes of q, from which the part `remaining` of the step goes on.
        """
        sim, model, carried = self.sim, self.model, self.sim.carried.values
        f_ext = np.zeros((model.nb, 6)) if sim.f_ext is None else sim.f_ext
        H, force = self.H(q, *carried), sim.tau - self.C(q, qd, f_ext, *carried)
        B = [
            self.C(q, e, f_ext, *carried) - self.undamped(q, e, f_ext, *carried)
            for e in np.eye(model.nv)
        ]
        M = H + h * np.array(B).reshape(H.shape).T
        free = qd + h * np.linalg.solve(M, force)
        for i in model.independent:
            v, kind = model.v_slices[i], model.joint[i].kind
            if kind == "floating":
                free[v][3:] += h * np.cross(qd[v][:3], qd[v][3:])
            if kind in ("floating", "spherical") and not model.parent[i]:
                part = H[v, v], qd[v], force[v]
                free[v] += gyroscopic_change(*part, h, remaining)
        return M, force, free

    def advanced(self, q, u, h, way=None):
        """Return position and velocity after h at u in the axes of q.

        way: Velocity at which the position moves; None: u.
        """
        vectors = (Vector(x.tolist()) for x in (q, u, u if way is None else way))
        q, u, way = vectors
        state = coordinates.advance(self.model, q, u, h, way)
        return tuple(np.array(list(x), float) for x in state)

    def blocks(self, q, qd, targets):
        """Return the blocks of all constraints at a state.

        targets: Velocity after the step of prescribed coordinates.
        """
        model, world, unit = self.model, self.world, np.eye(self.model.nv)
        blocks = self._contacts(q) if world.contacts else []
        for name, row, gap in self._limits(q) if world.limits else ():
            e = world.limit_restitution
            blocks.append(Block(name, "unilateral", row[None], gap, e))
        for i in model.bodies if world.joint_friction else ():
            pairs = zip(model.friction[i], model.friction_asymmetry[i], strict=True)
            for k, (mean, more) in enumerate(pairs):
                if mean > 0:
                    name = f"dry friction of {model.names[i]}" + (f", {k}" if k else "")
                    row, force = (
                        self._rate(i, k),
                        (float(-mean - more), float(mean - more)),
                    )
                    more = {"bounds": force, "has_error": False}
                    blocks.append(Block(name, "box", row[None], **more))
        if self.loops is not None:
            (f, A, _), row = self.loops(q, qd), 0
            for loop in model.loops:
                rows, row = slice(row, row + loop.rows), row + loop.rows
                blocks.append(Block(f"loop {loop.name}", "free", A[rows], f[rows]))
        for a, b, ratio, offset in world.gears:
            i, j = model.body_of_joint(a), model.body_of_joint(b)
            row = ratio * self._rate(i, 0) - self._rate(j, 0)
            q_a, q_b = (q[model.q_slices[m].start] for m in (i, j))
            gap = ratio * q_a - q_b - offset
            blocks.append(Block(f"gear of {a} and {b}", "free", row[None], gap))
        for (name, k), speed in targets.items():
            row = unit[[model.v_slice(name).start + k]]
            label = f"prescribed {name}" + (f", {k}" if k else "")
            more = {"target": speed, "has_error": False}
            blocks.append(Block(label, "free", row, **more))
        return blocks

    def targets(self, qd, h):
        """Return the velocity after h of each prescribed coordinate, by joint."""
        targets, accelerations = {}, iter(self.sim.qdd_u)
        for name in self.sim.prescribed:
            for k, speed in enumerate(qd[self.model.v_slice(name)]):
                targets[name, k] = speed + h * next(accelerations)
        return targets

    def _rate(self, i, k):
        """Return the row of qd that is rate k of joint i, which may follow another."""
        row, ratio = np.zeros(self.model.nv), self.model.leader[i].ratio
        columns = self.model.v_slices[i]
        size = columns.stop - columns.start
        row[columns] = np.eye(size)[k] if ratio is None else list(ratio.rows[k])
        return row

    def _contacts(self, q):
        """Return the cones of all contacts near.

        Closest points of round shapes are iterated, to 1e-8: point, normal and gap of a
        contact that the step reports are taken from there.
        """
        J, blocks = self.jacobians(q)[1], []
        J = np.concatenate([np.zeros((1, *J.shape[1:])), J])
        reports = {c.id: c for r in self.parts or self.sim.reports for c in r.contacts}
        for c in self.pairs.contacts(q):
            near = reports.get(c.id, c)
            if (
                np.abs(near.point - c.point).max() > 1e-6
                or abs(near.gap - c.gap) > 1e-6
            ):
                near = c  # of another part of the period
            n, p, m = near.normal, near.point, c.material
            t = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
            axes = np.array(
                [n, t / np.linalg.norm(t), np.cross(n, t / np.linalg.norm(t))]
            )
            W = [[*np.cross(p, d), *d] for d in axes] + [[*d, 0, 0, 0] for d in axes]
            mu = np.array([m.mu, m.mu, m.torsion, m.rolling, m.rolling])
            rows = 6 if m.rolling else 4 if m.torsion else 3 if m.mu else 1
            scale = np.append(1.0, mu / max(m.mu, m.torsion, m.rolling, 1e-300))[
                :rows, None
            ]
            block = Block(
                c.id, "cone", scale * W[:rows] @ (J[c.body_a] - J[c.body_b]), near.gap
            )
            block.e, block.mu = m.restitution, max(mu[: rows - 1], default=0.0)
            both = [[*d, 0, 0, 0] for d in axes] + [[0, 0, 0, *d] for d in axes]
            block.axes = both[:rows] / scale
            blocks.append(block)
        return blocks

    def _limits(self, q):
        """Return name, row and gap of each limit of a joint: of one coordinate, or a ball."""
        model, limits = self.model, []
        for i in model.independent:
            k, name = model.v_slices[i], model.names[i]
            if model.joint[i].nv == 1:
                x, rows = q[model.q_slices[i]][0], np.ones((2, 1))
                low, high = float(model.lower[k.start]), float(model.upper[k.start])
                sides = ("lower", 0, x - low), ("upper", 0, high - x)
            elif i in model.ball_limits:
                R = model.joint[i].X(Vector(q[model.q_slices[i]].tolist())).E.T
                swing, twist = (float(x) for x in swing_twist(R))
                rows = np.array(swing_twist_rows(R).rows, float) @ np.array(
                    R.rows, float
                )
                most, (low, high) = model.ball_limits[i]
                sides = (("swing", 0, most - swing), ("lower twist", 1, twist - low),
                         ("upper twist", 1, high - twist))  # fmt: skip
            else:
                continue
            for side, r, gap in sides:
                row = np.zeros(model.nv)
                row[k] = rows[r] if side.startswith("lower") else -rows[r]
                if np.isfinite(gap):
                    limits.append((f"{side} limit of {name}", row, gap))
        return limits


def gyroscopic_change(H, qd, force, h, remaining):
    """Return what a step gains where the gyroscopic moment is at its mean velocity.

        I (u - w) = h (n - m x I m),   m = (w + u) / 2,   less explicit  m = w

    of a body that turns about a fixed point, or about its centre of mass, at c, whose
    velocity it leaves alone:  R_start w x c - R_end u x c  for the origin.
    """
    I, w, c, moment = H[:3, :3], qd[:3], np.zeros(3), force[:3]
    if len(qd) == 6:
        c = np.array([H[2, 4], H[0, 5], H[1, 3]]) / H[3, 3]
        I = I - H[3, 3] * (c @ c * np.eye(3) - np.outer(c, c))
        moment = moment - np.cross(c, force[3:])
    m, n = w, moment + np.cross(w, I @ w)
    for _ in range(30):
        m = w + h / 2 * np.linalg.solve(I, n - np.cross(m, I @ m))
    u, rate = 2 * m - w, np.linalg.solve(I, moment)
    start = Rotation.from_rotvec(-(1 - remaining) * h * w).apply(np.cross(w, c))
    end = Rotation.from_rotvec(remaining * h * u).apply(np.cross(u, c))
    explicit = np.cross(rate, c) + np.cross(w, np.cross(w, c))
    return np.append(u - w - h * rate, start - end + h * explicit)[: len(qd)]
