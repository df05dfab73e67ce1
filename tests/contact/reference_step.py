"""A step with contacts as textbooks write it, with the matrices of reference_robot.py.

    (H + h B) (u - qd) = h (tau - C) + J.T lambda,   sigma = J u + R lambda + bias,
    and the law of each block between lambda and sigma

Gap rules, impacts and laws are written a second time here, and share nothing with the
steps that they check. Laws are roots of the map of Alart and Curnier, found by Newton's
method: an answer counts by its residual.
"""

import numpy as np
from reference_robot import Block, Robot

TOUCH = 1e-9  # gaps up to this are closed [m | rad]
INSTANT = 1e-12  # of an impact, in which dry friction has no time to act [s]


class Problem:
    """The law of each block between its impulses and velocities, and their answer."""

    def __init__(self, blocks, M, free, bias, R, h):
        self.blocks, self.M, self.free, self.h, self.R = blocks, M, free, h, R
        self.J = stacked(blocks, len(free))
        self.response = np.linalg.solve(M, self.J.T)
        self.A, self.b = self.J @ self.response + np.diag(R), self.J @ free + bias
        self.size = np.where(np.diag(self.A) > 0, np.diag(self.A), 1.0)

    def laws(self, x, known=None, part=1.0, convex=False):
        """Return x - P(x - sigma / size) of each column of x: zero where laws hold.

        P projects on all numbers, those above 0, those between bounds, or a disc whose
        radius is mu times the normal impulse and `known`, what friction felt before. A
        convex law lets a contact that slides open at mu times its speed.
        """
        sigma, first = self.A @ x + self.b[:, None], 0
        z, P = x - sigma / self.size[:, None], np.empty_like(x)
        for block in self.blocks:
            n, first = first, first + len(block.J)
            rows, t, mu = slice(n, first), slice(n + 1, first), block.mu
            low, high = self.h * np.array(block.bounds)
            low = 0.0 if block.closing else low
            if convex and mu:
                z[n] += mu * np.sqrt((sigma[t] ** 2).sum(0)) / self.size[n]
            P[rows] = np.where(z[rows].real > low, z[rows], low)
            P[rows] = np.where(P[rows].real < high, P[rows], high)
            if mu:
                y = x[t] - sigma[t] / self.size[t].max()
                radius = part * mu * (P[n] + (0.0 if known is None else known[n]))
                length = np.sqrt((y * y).sum(0))
                inside = length.real <= radius.real
                P[t] = y * np.where(inside, 1.0, radius / np.where(inside, 1.0, length))
        return x - P

    def residual(self, x, known=None, convex=False):
        """Return the largest error of the laws for some impulses, as a velocity."""
        error = self.laws(x[:, None], known, convex=convex)[:, 0]
        return np.abs(self.size * error).max(initial=0.0)

    def answer(self, start=None, known=None):
        """Return impulses and velocity that obey all laws, and the error of the laws.

        Newton's method begins at `start`; without it at zero, friction growing in parts.
        """
        x, scale = 0.0 * self.b if start is None else start, self.size**0.5
        for part in (0.0, 0.3, 0.7, 1.0) if start is None else (1.0,):
            for _ in range(20):
                F = self.laws(x[:, None], known, part)[:, 0]
                if np.abs(self.size * F).max(initial=0.0) < 1e-14:
                    break
                slope = self.laws(x[:, None] + 1e-30j * np.eye(len(x)), known, part)
                slope = scale[:, None] * slope.imag / 1e-30 / scale
                x = x + np.linalg.lstsq(slope, -scale * F, rcond=1e-11)[0] / scale
        return x, self.free + self.response @ x, self.residual(x, known)

    def impulses(self, report, less):
        """Return the impulses of a report along the rows, less those of impacts."""
        contacts, h = {c.id: c for c in report.contacts}, report.h or 1.0
        parts = [np.zeros(0)]
        for b in self.blocks:
            c = contacts.get(b.name)
            x = report.impulses.get(b.name, np.zeros(len(b.J)))
            if b.axes is not None:
                x = 0 * x if c is None else b.axes @ np.append(c.force, c.torque) * h
            parts.append(np.asarray(x, float))
        return np.concatenate(parts) - less


class Reference(Robot):
    """Steps of the robot of a ContactSimulator."""

    def problem(self, q, qd, h, choose=list, bounces=True, middle=None, early=None):
        """Return the Problem of a step, and the impulses of its impacts.

        Args:
            q, qd: State before the step.
            h: Step [s].
            choose: Returns the blocks that may take part.
            bounces: Whether restitution acts.
            middle, early: Whether rows are those of half a step later, and whether gaps
                at the end of the step count; None: as the world's stepper has it.
        """
        world, targets = self.world, self.targets(qd, h)
        early = world.stepper == "stewart_trinkle" if early is None else early
        middle = world.stepper == "moreau_jean" if middle is None else middle
        if middle:
            q, qd = self.advanced(q, qd, h / 2)
        M, _, free = self.dynamics(q, qd, h, 0.5 if middle else 1.0)
        blocks = choose(self.blocks(q, qd, targets))
        fast = np.array([
            bounces and b.closing and b.e > 0
            and b.J[0] @ qd < -world.restitution_threshold
            and b.gap + early * min(h * b.J[0] @ free, 0.0) <= TOUCH
            for b in blocks
        ], bool)  # fmt: skip
        impacts = self._impacts(blocks, fast, M, qd)
        change = np.linalg.solve(M, stacked(blocks, len(qd)).T @ impacts)
        chosen, parts = [], [(np.zeros(0),) * 3]
        for b, bounce, x in zip(blocks, fast, split(blocks, impacts), strict=True):
            speed = b.J[0] @ (qd + change) * (1.0 if impacts.any() else -b.e)
            terms = self._terms(b, h, early, max(speed, 0.0) if bounce else None)
            if terms is not None:
                chosen.append(b)
                parts.append((*terms, x))
        bias, R, impacts = (np.concatenate(x) for x in zip(*parts, strict=True))
        problem = Problem(chosen, M, free + change, bias, R, h)
        problem.q, problem.qd = q, qd
        return problem, impacts

    def _terms(self, b, h, early, rebound):
        """Return bias and compliance of a block's rows; None if it takes no part.

        early: Whether gaps at the end of the step count. rebound: Speed, if it bounces.
        """
        world, erp, soft, hard = self.world, 0.0, 0.0, np.zeros(len(b.J) - 1)
        limit = world.push_out_speed
        if world.stabilisation == "baumgarte":
            erp = world.erp
        if world.stabilisation == "erp_cfm":  # a spring and damper by implicit Euler
            k, d = world.stiffness, world.damping
            erp, soft, limit = h * k / (h * k + d), 1 / (h * (h * k + d)), np.inf
        if not b.closing:
            error = erp / h * np.asarray(b.gap) if b.has_error else 0.0
            return 0.0 * b.J[:, 0] + error - b.target, 0.0 * b.J[
                :, 0
            ] + soft * b.has_error
        gap = b.gap if rebound is None else min(b.gap, 0.0)
        if not early and gap > TOUCH:
            return None
        push = gap / h if early and gap > 0 else min(max(gap * erp / h, -limit), 0.0)
        if rebound is not None:
            push, soft = min(push, -rebound), 0.0
        return np.append(push, hard), np.append(soft, hard)

    def _impacts(self, blocks, fast, M, qd):
        """Return impulses of impacts before the step: none by Newton's law.

        Sequential: at the fastest approach, one after the other. Poisson: a
        compression, then a release of e times its impulses.
        """
        near = np.array([b.closing and b.gap <= TOUCH for b in blocks], bool) | fast
        x = [np.zeros(len(b.J)) for b in blocks]
        if fast.any() and self.world.impacts == "sequential":
            hit = [k for k in range(len(blocks)) if near[k]]
            N = np.array([blocks[k].J[0] for k in hit])
            G, u = N @ np.linalg.solve(M, N.T), N @ qd
            while u.min() < -self.world.restitution_threshold:
                i = np.argmin(u)
                y = -(1 + blocks[hit[i]].e) * u[i] / G[i, i]
                x[hit[i]][0] += y
                u = u + G[:, i] * y
        elif fast.any() and self.world.restitution == "poisson":
            met = [k for k, b in enumerate(blocks) if near[k] or b.kind == "free"]
            part = [blocks[k] for k in met]
            bias = [0.0 * b.J @ qd if b.has_error else -b.J @ qd for b in part]
            bias = np.concatenate(bias)
            y, u, error = Problem(part, M, qd, bias, 0 * bias, INSTANT).answer()
            known = [0.0 * a for a in split(part, y)]
            for k, a, released in zip(met, split(part, y), known, strict=True):
                released[0] = blocks[k].e * fast[k] * a[0]
            known = np.concatenate(known)
            u = u + np.linalg.solve(M, stacked(part, len(qd)).T @ known)
            z, _, more = Problem(part, M, u, bias, 0 * bias, INSTANT).answer(
                known=known
            )
            assert max(error, more) < 1e-10
            for k, total in zip(met, split(part, y + known + z), strict=True):
                x[k] = total
        return np.concatenate([[], *x])

    def correction(self, problem, u, h):
        """Return the velocity that corrects positions by split impulses, (nv,).

        A part erp of each overlap that is left, up to push_out_speed; contacts that
        open wait for nothing, those that were open for the velocity to stop them.
        """
        world, blocks, bias, wrong = self.world, [], [], 0.0
        rest = h / 2 if world.stepper == "moreau_jean" else h
        for b in problem.blocks if world.stabilisation == "split_impulse" else ():
            J = b.J[:1] if b.closing else b.J
            gap = b.gap + rest * (J @ u)
            c = gap * world.erp / rest
            if b.closing:
                push = np.maximum(c, -world.push_out_speed * h / rest)
                inside = 0.0 if b.gap > TOUCH else push + np.maximum(J @ u, 0.0)
                c = np.where(gap > 0, gap / rest, inside)
            if b.closing or b.has_error:
                blocks.append(Block(b.name, "unilateral" if b.closing else "free", J))
                bias += c.tolist()
                wrong = max(wrong, rest * np.max(-c if b.closing else np.abs(c)))
        if wrong <= TOUCH * world.erp:
            return 0.0 * u
        M, bias, N = problem.M, np.array(bias), stacked(blocks, len(u))
        R = 1e-9 * np.diag(N @ np.linalg.solve(M, N.T))  # shares what room there is
        return Problem(blocks, M, 0 * u, bias, R, h).answer()[1]


def stacked(blocks, nv):
    """Return the rows of all blocks, (m, nv)."""
    return np.concatenate([np.zeros((0, nv)), *(b.J for b in blocks)])


def split(blocks, x):
    """Return the part of x of each block."""
    return np.split(x, np.cumsum([len(b.J) for b in blocks])[:-1]) if blocks else []
