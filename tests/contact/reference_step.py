"""A contact step from the textbook, by dense matrices and public kinematics alone.

    (H + B)(u - qd - h w x v) = h (tau - C) + J.T lambda,   sigma = J u,
    and the law of each block between lambda and sigma + R lambda + bias

H, C, Jacobians of bodies and loops come from the solvers of those names, contacts from
ContactPairs. Rows, gap rules and laws are written here a second time and share nothing
with the steps that they check. The laws are roots of the map of Alart and Curnier,
found by Newton's method: an answer counts by its residual, wherever Newton began.
"""

from dataclasses import dataclass

import numpy as np

import dyn_core as dyn
from dyn_core.contact.collision.pairs import ContactPairs
from dyn_core.model import coordinates
from dyn_core.model.passive_forces import without_dry_friction
from dyn_core.spatial import Vector, swing_twist, swing_twist_rows

TOUCH = 1e-9  # gaps up to this are closed [m]


@dataclass(eq=False)
class Block:
    """Rows of one constraint: `kind` is free, unilateral, box or cone."""

    name: object
    kind: str
    J: np.ndarray
    gap: object = 0.0
    mu: tuple = ()  # of a cone's tangent rows
    restitution: float = 0.0
    bounds: tuple = (-np.inf, np.inf)
    target: float | None = None  # velocity of a prescribed row
    axes: np.ndarray | None = None  # normal and tangents of a contact
    soft: bool = True  # whether errors of position are corrected


class Reference:
    """Steps of the robot of a ContactSimulator in its World."""

    def __init__(self, sim):
        self.sim, self.model, self.world = sim, sim.model, sim.world
        model, paths, self.h = sim.model, sim.carried.paths, sim.period / sim.substeps
        smooth = without_dry_friction(model)
        self.H = dyn.solver("crba").build(smooth, inputs=paths)
        self.C, self.C_rigid = (
            dyn.solver("bias").build(
                smooth,
                inputs=["f_ext", *paths],
                joint_friction=acts,
                joint_springs=True,
            )
            for acts in (True, False)
        )
        self.bodies = dyn.solver("body_jacobians").build(model)
        self.loops = (
            dyn.solver("loop_constraints").build(model) if model.loops else None
        )
        world = self.world
        surfaces = (*world.half_spaces, *world.height_fields)
        self.pairs = ContactPairs(
            model, surfaces, world.margin, world.packages, world.groups
        )

    def step(self, q, qd):
        """Return the Problem of the step that the simulator has just taken from q, qd.

        The forces that act are read from the simulator.
        """
        sim, model, h, rule = self.sim, self.model, self.h, self.world.stepper
        targets = self._targets(qd)
        if rule == "moreau_jean":
            q, qd = self.advanced(q, qd, h / 2)
        carried = sim.carried.values
        f_ext = np.zeros((model.nb, 6)) if sim.f_ext is None else sim.f_ext
        bias = self.C(q, qd, f_ext, *carried)
        zeros = Vector.zeros(len(qd))
        turn = coordinates.rate_in_initial_axes(model, Vector(qd.tolist()), zeros)
        M = self.H(q, *carried) + h * self._damping(q, carried)
        free = qd + h * (np.linalg.solve(M, sim.tau - bias) + np.array(list(turn)))
        blocks = self.blocks(q, qd, targets)
        fast = np.array([self._bounces(b, qd, free) for b in blocks], bool)
        impacts, after = self._impacts(blocks, fast, M, q, qd)
        free = free + np.linalg.solve(M, stacked(blocks, len(qd)).T @ impacts)
        chosen = [
            (b, self._terms(b, bounces, max(speed, 0.0)))
            for b, bounces, speed in zip(blocks, fast, after, strict=True)
        ]
        counts = np.repeat(
            [t is not None for _, t in chosen], [len(b.J) for b in blocks]
        )
        parts = [(b, *terms) for b, terms in chosen if terms]
        push, R = (np.concatenate([[], *(t[k] for t in parts)]) for k in (1, 2))
        problem = Problem([t[0] for t in parts], M, free, push, R, q, qd)
        problem.impacts = impacts[counts] if len(impacts) else impacts
        return problem

    def _bounces(self, block, qd, free):
        """Return whether a contact or limit closes fast enough to bounce."""
        if block.kind not in ("unilateral", "cone") or not block.restitution:
            return False
        travel = min(self.h * float(block.J[0] @ free), 0.0)
        reach = travel if self.world.stepper == "stewart_trinkle" else 0.0
        fast = block.J[0] @ qd < -self.world.restitution_threshold
        return fast and block.gap + reach <= TOUCH

    def _impacts(self, blocks, fast, M, q, qd):
        """Return impulses before the step, and each block's speed of rebound.

        Newton: none, and -e u_n. Sequential: at the fastest approach, one after the
        other. Poisson: a compression, then a release of e times its impulses.
        """
        first = np.cumsum([0, *(len(b.J) for b in blocks)])[:-1]
        e = np.array([b.restitution for b in blocks])
        J = stacked(blocks, len(qd))
        x = np.zeros(len(J))
        normal = J[first] if len(J) else J
        closes = [b.kind in ("unilateral", "cone") for b in blocks]
        met = [c and b.gap <= TOUCH for c, b in zip(closes, blocks, strict=True)]
        met = fast | np.array(met, bool)
        if fast.any() and self.world.impacts == "sequential":
            rows = first[met]
            response = np.linalg.solve(M, J[rows].T)
            G, u, y = J[rows] @ response, J[rows] @ qd, np.zeros(len(rows))
            while u.min() < -self.world.restitution_threshold:
                k = np.argmin(u)
                hit = -(1 + e[met][k]) * u[k] / G[k, k]
                y[k], u = y[k] + hit, u + G[:, k] * hit
            x[rows] = y
        elif fast.any() and self.world.restitution == "poisson":
            met = met | np.array([b.kind == "free" for b in blocks], bool)
            part = [b for b, m in zip(blocks, met, strict=True) if m]
            rows = np.repeat(met, [len(b.J) for b in blocks])
            steady = np.repeat([b.target is not None for b in part],
                               [len(b.J) for b in part])  # fmt: skip
            bias = np.where(steady, -(J[rows] @ qd), 0.0)
            compression = Problem(part, M, qd, bias, 0.0 * bias, q, qd)
            y, u, error = compression.answer(None, 0.0)
            known = np.zeros(len(y))
            starts = np.cumsum([0, *(len(b.J) for b in part)])[:-1]
            known[starts] = (e * fast)[met] * y[starts]
            u = u + compression.response @ known
            release = Problem(part, M, u, bias, 0.0 * bias, q, qd)
            z, _, more = release.answer(None, 0.0, known)
            assert max(error, more) < 1e-10
            x[rows] = y + known + z
        after = normal @ (qd + np.linalg.solve(M, J.T @ x))
        return x, after if x.any() else -e * after

    def advanced(self, q, u, h):
        """Return position and velocity after h at u in the axes of q."""
        state = coordinates.advance(
            self.model, Vector(q.tolist()), Vector(u.tolist()), h
        )
        return tuple(np.array(list(x), float) for x in state)

    def _targets(self, qd):
        """Return the velocity of each prescribed coordinate after the step."""
        targets, first = {}, 0
        for name in self.sim.prescribed:
            columns = range(*self.model.v_slice(name).indices(len(qd)))
            for k in columns:
                targets[name, k] = qd[k] + self.h * self.sim.qdd_u[first]
                first += 1
        return targets

    def _damping(self, q, carried):
        """Return the derivative of the damping by qd, which is linear, (nv, nv)."""
        n, rest = self.model.nv, np.zeros((self.model.nb, 6))
        columns = [
            self.C(q, e, rest, *carried) - self.C_rigid(q, e, rest, *carried)
            for e in np.eye(n)
        ]
        return np.array(columns).reshape(n, n).T

    def blocks(self, q, qd, targets):
        """Return the blocks of all constraints at a state."""
        model, e, unit = self.model, self.world.limit_restitution, np.eye(self.model.nv)
        blocks = self._contacts(q) if self.world.contacts else []
        for i in model.independent if self.world.limits else ():
            if model.joint[i].nv == 1:
                k, x = model.v_slices[i].start, q[model.q_slices[i].start]
                lower, upper = x - float(model.lower[k]), float(model.upper[k]) - x
                for side, J, gap in (("lower", unit[[k]], lower),
                                     ("upper", -unit[[k]], upper)):  # fmt: skip
                    if not np.isfinite(gap):
                        continue
                    name = f"{side} limit of {model.names[i]}"
                    blocks.append(Block(name, "unilateral", J, gap, restitution=e))
        blocks += self._ball_limits(q, e) if self.world.limits else []
        for i in model.bodies if self.world.friction else ():
            pairs = zip(model.friction[i], model.friction_asymmetry[i], strict=True)
            for k, (mean, more) in enumerate(pairs):
                if mean > 0:
                    name = f"dry friction of {model.names[i]}" + (f", {k}" if k else "")
                    force = float(-mean - more), float(mean - more)
                    J = self._rate(i, k)[None]
                    blocks.append(Block(name, "box", J, bounds=force, soft=False))
        if self.loops is not None:
            f, A, _ = self.loops(q, qd)
            row = 0
            for loop in model.loops:
                rows, row = slice(row, row + loop.rows), row + loop.rows
                blocks.append(Block(f"loop {loop.name}", "free", A[rows], f[rows]))
        for a, b, ratio, offset in self.world.gears:
            i, j = model.body_of_joint(a), model.body_of_joint(b)
            J = ratio * self._rate(i, 0) - self._rate(j, 0)
            positions = [q[model.q_slices[m].start] for m in (i, j)]
            error = ratio * positions[0] - positions[1] - offset
            blocks.append(Block(f"gear of {a} and {b}", "free", J[None], error))
        for (name, k), speed in targets.items():
            k0 = k - model.v_slice(name).start
            label = f"prescribed {name}" + (f", {k0}" if k0 else "")
            blocks.append(
                Block(label, "free", unit[[k]], 0.0, target=speed, soft=False)
            )
        return blocks

    def _rate(self, i, k):
        """Return the row of qd that is rate k of joint i, which may follow another."""
        row, ratio = np.zeros(self.model.nv), self.model.leader[i].ratio
        columns = self.model.v_slices[i]
        size = columns.stop - columns.start
        row[columns] = np.eye(size)[k] if ratio is None else list(ratio.rows[k])
        return row

    def _contacts(self, q):
        """Return the cones of all contacts near."""
        J, blocks = self.bodies(q)[1], []
        J = np.concatenate([np.zeros((1, *J.shape[1:])), J])
        known = {c.id: c for c in self.sim.report.contacts}
        for c in self.pairs.contacts(q):
            n = self._same(c, known.get(c.id, c))
            m = c.material
            t = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
            axes = np.array([n, t / np.linalg.norm(t), np.cross(n, t)])
            axes[2] /= np.linalg.norm(axes[2])
            W = [np.append(np.cross(known.get(c.id, c).point, d), d) for d in axes]
            W += [np.append(d, np.zeros(3)) for d in axes]
            mu = (m.mu, m.mu, m.torsion, m.rolling, m.rolling)
            rows = 6 if m.rolling else 4 if m.torsion else 3 if m.mu else 1
            part = np.array(W[:rows]) @ (J[c.body_a] - J[c.body_b])
            block = Block(
                c.id,
                "cone",
                part,
                known.get(c.id, c).gap,
                mu[: rows - 1],
                m.restitution,
            )
            block.axes = axes
            blocks.append(block)
        return blocks

    def _same(self, c, known):
        """Take point and gap of the step's contact, which is the same; return its normal.

        Closest points of round shapes are iterated, to 1e-8: another last bit of q
        gives others.
        """
        for key in ("point", "normal", "gap"):
            np.testing.assert_allclose(getattr(c, key), getattr(known, key), atol=1e-6)
        return known.normal

    def _ball_limits(self, q, e):
        """Return the limits of swing and twist of balls."""
        blocks, model = [], self.model
        for i, (swing_limit, (low, high)) in model.ball_limits.items():
            if model.leader[i].body != i:
                continue
            R = model.joint[i].X(Vector(q[model.q_slices[i]].tolist())).E.T
            swing, twist = (float(x) for x in swing_twist(R))
            turned = np.array([list(row) for row in R.rows], float)
            rows = np.array([list(x) for x in swing_twist_rows(R).rows], float) @ turned
            for side, row, gap in (("swing", -rows[0], swing_limit - swing),
                                   ("lower twist", rows[1], twist - low),
                                   ("upper twist", -rows[1], high - twist)):  # fmt: skip
                J = np.zeros((1, model.nv))
                J[0, model.v_slices[i]] = row
                name = f"{side} limit of {model.names[i]}"
                blocks.append(Block(name, "unilateral", J, gap, restitution=e))
        return blocks

    def _terms(self, block, fast, rebound):
        """Return bias and compliance of a block's rows; None if it takes no part."""
        world, h, rows = self.world, self.h, len(block.J)
        bias, R, erp, soft = np.zeros(rows), np.zeros(rows), 0.0, 0.0
        limit, early = world.push_out_speed, world.stepper == "stewart_trinkle"
        if world.stabilisation == "baumgarte":
            erp = world.erp
        if world.stabilisation == "erp_cfm":  # a spring and damper by implicit Euler
            k, d = world.stiffness, world.damping
            erp, soft, limit = h * k / (h * k + d), 1 / (h * (h * k + d)), np.inf
        if block.kind not in ("unilateral", "cone"):
            if block.soft:
                bias[:], R[:] = erp * np.asarray(block.gap) / h, soft
            return bias - (block.target or 0.0), R
        gap = min(block.gap, 0.0) if fast else block.gap
        if not early and gap > TOUCH:
            return None
        push = min(max(gap * erp / h, -limit), 0.0)
        bias[0] = gap / h if early and gap > 0 else push
        if fast:
            bias[0] = min(bias[0], -rebound)
        else:
            R[0] = soft
        return bias, R

    def correction(self, problem, u):
        """Return the velocity that corrects positions by split impulses, (nv,).

        A part erp of each overlap that is left, up to push_out_speed; contacts that
        open wait for nothing, those that were open for the velocity to stop them.
        """
        world, h = self.world, self.h
        rest = h / 2 if world.stepper == "moreau_jean" else h
        blocks, bias, wrong = [], [], 0.0
        for b in problem.blocks if world.stabilisation == "split_impulse" else ():
            closing = b.kind in ("unilateral", "cone")
            if not closing and not b.soft:
                continue
            J, before = b.J[:1] if closing else b.J, b.gap
            opening = J @ u
            gap = before + rest * opening
            c = np.asarray(gap * world.erp / rest)
            if closing:
                push = np.maximum(c, -world.push_out_speed * h / rest)
                inside = 0.0 if before > TOUCH else push + np.maximum(opening, 0.0)
                c = np.where(gap > 0, gap / rest, inside)
            kind = "unilateral" if closing else "free"
            blocks.append(Block(b.name, kind, J, soft=False))
            bias += c.tolist()
            wrong = max(wrong, rest * np.max(-c if closing else np.abs(c)))
        if wrong <= TOUCH * world.erp:
            return 0.0 * u
        bias, still = np.array(bias), 0.0 * u
        part = Problem(blocks, problem.M, still, bias, 0 * bias, None, None)
        part.R = 1e-9 * np.diag(part.G)
        return part.answer(None, h)[1]


def stacked(blocks, nv):
    """Return the rows of all blocks, (m, nv)."""
    return np.concatenate([np.zeros((0, nv)), *(b.J for b in blocks)])


class Problem:
    """The constraint problem of a step, and its answers."""

    def __init__(self, blocks, M, free, bias, R, q, qd):
        self.blocks, self.M, self.free = blocks, M, free
        self.bias, self.R, self.q, self.qd = bias, R, q, qd
        self.J = stacked(blocks, len(free))
        self.response = np.linalg.solve(M, self.J.T)
        self.G = self.J @ self.response

    def impulses(self, report, h):
        """Return the impulses of a report along the rows of this problem."""
        contacts = {c.id: c for c in report.contacts}
        parts = [np.zeros(0)]
        for block in self.blocks:
            if block.axes is None:
                known = report.impulses.get(block.name, np.zeros(len(block.J)))
                parts.append(np.asarray(known, float))
            else:
                c = contacts.get(block.name)
                both = (0, 0) if c is None else (c.force, c.torque)
                x = [block.axes @ (np.zeros(3) + part) * h for part in both]
                parts.append(np.concatenate(x)[: len(block.J)])
        return np.concatenate(parts) - self.impacts

    def answer(self, start, h, known=None):
        """Return impulses and velocity that obey all laws, and the error.

        The error is the largest residual of a law, as a velocity.

        Args:
            start: Impulses from which Newton's method begins; None: zero, and friction
                that grows in steps.
            h: Step, by which the bounds of dry friction are multiplied [s].
            known: Impulses that friction feels, and which have acted already.
        """
        T = np.concatenate([[], *(_weights(block) for block in self.blocks)])
        A = T[:, None] * (self.G + np.diag(self.R)) * T
        b = T * (self.J @ self.free + self.bias)
        size = np.where(np.diag(A) > 0, np.diag(A), 1.0)
        parts = (0.0, 0.3, 0.7, 1.0) if start is None else (1.0,)
        start = np.zeros(len(T)) if start is None else start
        known = np.zeros(len(T)) if known is None else known
        x, scale = np.where(T > 0, start / np.where(T > 0, T, 1.0), 0.0), np.sqrt(size)
        for part in parts:
            for _ in range(20):
                F, slope = self._map(x, A, b, size, h, known, part)
                error = np.abs(size * F).max(initial=0.0)
                if error < 1e-14:
                    break
                slope = scale[:, None] * slope / scale
                step = np.linalg.lstsq(slope, -scale * F, rcond=1e-11)[0]
                x = x + step / scale
        return T * x, self.free + self.response @ (T * x), error

    def _map(self, x, A, b, size, h, known, part):
        """Return the map whose roots obey the laws, and its derivative.

        x - P(x - u / size), P the projection on the set of a block: all numbers, those
        above 0, those between bounds, or a disc whose radius is mu times the normal's.
        """
        z, slope = x - (A @ x + b) / size, np.eye(len(x)) - A / size[:, None]
        P, D = z.copy(), slope.copy()
        first = 0
        for block in self.blocks:
            rows = slice(first, first + len(block.J))
            first = rows.stop
            low, high = 0.0, np.inf
            if block.kind == "free":
                low = -np.inf
            elif block.kind == "box":
                low, high = h * np.array(block.bounds)
            n = rows if block.kind != "cone" else slice(rows.start, rows.start + 1)
            inside = (z[n] > low) & (z[n] < high)
            P[n], D[n] = np.clip(z[n], low, high), D[n] * inside[:, None]
            if block.kind == "cone" and len(block.J) > 1:
                t = slice(rows.start + 1, rows.stop)
                r, mu = size[t].max(), part * max(block.mu)  # one size: a round disc
                y, dy = x[t] - (A @ x + b)[t] / r, np.eye(len(x))[t] - A[t] / r
                radius = mu * (P[rows.start] + known[rows.start])
                length = np.linalg.norm(y)
                P[t], D[t] = y, dy
                if length > radius:
                    way = y / length
                    P[t] = radius * way
                    D[t] = mu * np.outer(way, D[rows.start])
                    D[t] += radius / length * (dy - np.outer(way, way @ dy))
        return x - P, np.eye(len(x)) - D


def _weights(block):
    """Return the scale of each row in which a cone is circular."""
    mu = np.array(block.mu, float)
    if block.kind != "cone" or not len(mu):
        return np.ones(len(block.J))
    return np.append(1.0, mu / mu.max())
