"""A walk through 6-D vectors with this library: what they are and how to use them.

It follows the guide, section by section; each cell computes what the text claims and
prints how far both sides are apart. Pictures need matplotlib.

    python examples/six_d_vectors.py [folder for the pictures]
"""

from __future__ import annotations

import sys
import textwrap
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import two_bodies  # lies beside this file

import dyn_core as dyn
from dyn_core import Force, Matrix, Motion, RigidInertia, Transform, Vector, cross
from dyn_core.model import Build, Description, JointSpec, LinkSpec, assemble
from dyn_core.spatial import MotionSubspace, bodies, conventions, geometry, se3
from dyn_core.testing.graphs import flat_program


def array(x: Any) -> np.ndarray:
    """Give the numbers of a motion, force, vector or matrix."""
    return np.array(list(x), float) if hasattr(x, "ang") else np.asarray(x, float)


def apart(x: Any, y: Any) -> float:
    """Give the largest difference of two quantities."""
    return float(np.abs(array(x) - array(y)).max())


def random_motion(rng: np.random.Generator) -> Motion:
    """Give six random numbers as a motion."""
    return Motion.of(rng.normal(size=6).tolist())


def random_force(rng: np.random.Generator) -> Force:
    """Give six random numbers as a force."""
    return Force.of(rng.normal(size=6).tolist())


def transform_of(T: np.ndarray) -> Transform:
    """Give the transform into the frame whose pose is T, 4x4."""
    return Transform.of_pose(T[:3, :3].tolist(), T[:3, 3].tolist())


# %% 1. Motions and forces live in two spaces, dual to each other


def duality(rng: np.random.Generator) -> dict[str, float]:
    """Give how well m . f survives a change of basis, and refuse what has no meaning.

    Motions add, forces add, a motion times a force is a number; nothing else is.

    Source: GUIDE (1)-(3); SV-1.1, SV-1.2, SV-1.3.
    """
    m, f = random_motion(rng), random_force(rng)
    for text, meaningless in (("m + f", lambda: m + f), ("m . m", lambda: m @ m)):
        try:
            meaningless()
        except TypeError as error:
            print(f"  {text}: {error}")
    D = rng.normal(size=(6, 6))
    m_D = np.linalg.solve(D, array(m))
    f_D = np.linalg.solve(geometry.dual_basis(D), array(f))
    X = rng.normal(size=(6, 6))
    moved = (X @ array(m)) @ (geometry.dual(X) @ array(f))
    return {
        "m . f in a dual basis": abs(m_D @ f_D - m @ f),
        "m . f after X and X*": abs(moved - m @ f),
    }


def named_frames() -> str:
    """Give the error of a sum across frames: numbers alone do not say where they live.

    Source: GUIDE, section 3; SV-1.4.
    """
    try:
        return str(Motion.of(range(6), "camera") + Motion.of(range(6), "hand"))
    except dyn.FrameMismatchError as error:
        return str(error)


def stacked_jacobian(model: dyn.Model, q: np.ndarray) -> np.ndarray:
    """Give J of all links, 6N x nv: V = J qd stacks their velocities, tau = J.T F.

    M6 and F6 stacked N times are dual again: the operators of spatial operator algebra.

    Source: GUIDE, sections 3 and 8; SV-1.5, SV-11.4.
    """
    solver = dyn.solver("jacobian")
    parts = [
        solver.build(model, engine="plain", frame=name)(q) for name in model.frame_names
    ]
    return np.concatenate(parts)


# %% 2. A twist is a screw, a wrench is a screw: line, magnitude, pitch

TWIST = Motion.of((1, 2, 2, 0.3, -0.6, 0.9))
WRENCH = Force.of((0.5, -1, 2, 2, -1, 2))


def velocity_at(v: Motion, x: np.ndarray) -> np.ndarray:
    """Give the velocity of the particles of a body at points x, (..., 3) [m/s].

    It needs no reference point: v fixes the whole field, whatever the origin.

    Source: GUIDE, section 4; SV-2.3, SV-11.2.
    """
    return array(v.lin) + np.cross(array(v.ang), x)


def moment_at(f: Force, x: np.ndarray) -> np.ndarray:
    """Give the moment of a force about points x, (..., 3) [N·m].

    Source: GUIDE, section 4; SV-2.3.
    """
    return array(f.ang) - np.cross(x, array(f.lin))


def screws(rng: np.random.Generator) -> dict[str, float]:
    """Give how well the screw survives a shift of the reference point and a scaling.

    Source: GUIDE, section 4; SV-2.1, SV-2.2, SV-2.3, SV-2.4.
    """
    r = rng.normal(size=3)
    found = {}
    for name, s in (("twist", TWIST), ("wrench", WRENCH)):
        line, there = geometry.to_screw(s), geometry.to_screw(geometry.shifted(s, r))
        twice = geometry.to_screw(s * -2.0)
        off = np.cross(there.point + r - line.point, line.direction)
        print(
            f"  {name}: {line.magnitude:.6g} along {line.direction} through"
            f" {line.point}, pitch {line.pitch:.6g}"
        )
        found[f"{name}: line and pitch after a shift"] = max(
            abs(there.pitch - line.pitch), float(np.abs(off).max())
        )
        found[f"{name}: line and pitch of -2 times it"] = max(
            abs(twice.pitch - line.pitch), apart(twice.point, line.point)
        )
    return found


# %% 3. Pluecker coordinates, and how they change from frame to frame


def pluecker(rng: np.random.Generator) -> dict[str, float]:
    """Give how well bases, transforms and the other order of blocks fit together.

    Source: GUIDE (4)-(13); SV-4.1, SV-4.2, SV-4.3, SV-4.4, SV-4.5.
    """
    T = se3.exp(rng.normal(size=6))
    X, v, m = transform_of(T), random_motion(rng), random_motion(rng)
    motions, forces = geometry.pluecker_bases(X.inverse)
    turn = geometry.screw_axis(T[:3, 0], T[:3, 3])
    swapped = conventions.swap_matrix(array(X)) @ conventions.swap_blocks(array(m))
    return {
        "12 basis vectors are dual": apart(motions.T @ forces, np.eye(6)),
        "d_Ox is the turn about the x axis": apart(motions[0], turn),
        "X* is the dual of X": apart(X.force_matrix(), geometry.dual(array(X))),
        "X (v x m) = (X v) x (X m)": apart(X @ cross(v, m), cross(X @ v, X @ m)),
        "linear part first": apart(conventions.swap_blocks(swapped), X @ m),
    }


# %% 4. The rules of use, each against a cloud of particles


@dataclass(frozen=True)
class Cloud:
    """Particles that form one rigid body.

    Attributes:
        m: Masses, n [kg].
        x: Places, n x 3 [m].
    """

    m: np.ndarray
    x: np.ndarray

    def inertia(self) -> RigidInertia:
        """Give the spatial inertia by the sums over particles."""
        c = self.m @ self.x / self.m.sum()
        d = self.x - c
        Ic = np.einsum("k,k,ij->ij", self.m, (d * d).sum(1), np.eye(3))
        Ic = Ic - np.einsum("k,ki,kj->ij", self.m, d, d)
        return bodies.rigid_body(self.m.sum(), c, Ic)

    def momentum(self, v: Motion) -> np.ndarray:
        """Give [sum x x p; sum p] of the particles, p = m (velocity at x)."""
        p = self.m[:, None] * velocity_at(v, self.x)
        return np.concatenate([np.cross(self.x, p).sum(0), p.sum(0)])


def random_cloud(rng: np.random.Generator, n: int = 8) -> Cloud:
    """Give n particles within about a metre."""
    return Cloud(rng.uniform(0.1, 1.0, n), rng.normal(size=(n, 3)))


def point_forces(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, Force]:
    """Give five forces (5, 3), where they act (5, 3), and their sum as one Force."""
    x, F = rng.normal(size=(2, 5, 3))
    total = sum(
        (Force(np.cross(a, b).tolist(), b.tolist()) for a, b in zip(x, F, strict=True)),
        Force.zero(),
    )
    return F, x, total


def rule_relative_velocity(rng: np.random.Generator) -> float:
    """Give v_rel = v2 - v1, against the rate of one body's pose as seen by the other.

    Source: GUIDE, section 5; SV-3.1.
    """
    v1, v2 = random_motion(rng), random_motion(rng)
    start = se3.exp(rng.normal(size=(2, 6)))

    def seen(t: float) -> np.ndarray:
        T1, T2 = se3.exp(np.array([array(v1), array(v2)]) * t) @ start
        return np.linalg.inv(T1) @ T2

    rate = geometry.central_difference(seen, 0.0) @ np.linalg.inv(seen(0.0))
    turned = np.array([rate[2, 1], rate[0, 2], rate[1, 0], *rate[:3, 3]])
    return apart(transform_of(start[0]) @ (v2 - v1), turned)


def rule_forces_add(rng: np.random.Generator) -> float:
    """Give the acceleration by a sum of forces, against Newton and Euler's equations.

    Source: GUIDE, section 5; SV-3.2.
    """
    I = random_cloud(rng).inertia()
    F, x, total = point_forces(rng)
    a = bodies.acceleration(I, Motion.zero(), total)
    c = array(I.c)
    turn = np.linalg.solve(array(I.Ic), np.cross(x - c, F).sum(0))
    return max(apart(a.ang, turn), apart(velocity_at(a, c), F.sum(0) / I.m))


def rule_reaction(rng: np.random.Generator) -> float:
    """Give d(h1 + h2)/dt = f: what passes through the joint adds nothing.

    Source: GUIDE, section 5; SV-3.3.
    """
    I1, I2 = random_cloud(rng).inertia(), random_cloud(rng).inertia()
    s, f = random_motion(rng), random_force(rng)
    state = two_bodies.Moving(random_motion(rng), 0.7, -0.4, (0.0, 0.0, 0.0))
    found = two_bodies.two_body_moving(I1, I2, s, f, state)
    rate1 = bodies.equation_of_motion(I1, state.v1, found.a1)
    rate2 = bodies.equation_of_motion(I2, state.v1 + s * state.qd, found.a2)
    return max(apart(rate1, f - found.f_J), apart(rate1 + rate2, f))


def rule_power(rng: np.random.Generator) -> float:
    """Give f . v, against the power of each force at the particle where it acts.

    Source: GUIDE, section 5; SV-3.4.
    """
    v = random_motion(rng)
    F, x, total = point_forces(rng)
    return abs(total @ v - float((F * velocity_at(v, x)).sum()))


def rule_scaling(rng: np.random.Generator) -> float:
    """Give (k v) . (n f) = k n v . f, with the lines of v and f unmoved.

    Source: GUIDE, section 5; SV-3.5, SV-2.4.
    """
    v, f, k, n = random_motion(rng), random_force(rng), -1.7, 2.4
    one, other = geometry.to_screw(v), geometry.to_screw(v * k)
    line = max(apart(one.point, other.point), apart(one.direction, -other.direction))
    return max(line, abs((v * k) @ (f * n) - k * n * (v @ f)))


def rule_derivative(rng: np.random.Generator) -> float:
    """Give v x m and v x* f, against differences of what is carried along.

    Source: GUIDE, section 5; SV-3.6, SV-5.4.
    """
    v = random_motion(rng)
    worst = 0.0
    for s in (random_motion(rng), random_force(rng)):

        def carried(t: float, s: Any = s) -> Any:
            return transform_of(se3.exp(array(v) * t)).inverse @ s

        rate = geometry.central_difference(carried, 0.0)
        worst = max(worst, apart(rate, cross(v, s)))
    return worst


def rule_acceleration(rng: np.random.Generator) -> float:
    """Give a2 = a1 + a_rel, against differences of velocities; it transforms like them.

    Source: GUIDE, section 5; SV-3.7, SV-6.3.
    """
    v1, a1, s = (random_motion(rng) for _ in range(3))
    qd, qdd = rng.normal(size=2)
    X = transform_of(se3.exp(rng.normal(size=6)))
    v2 = v1 + s * qd

    def velocity(t: float) -> Motion:
        axis = transform_of(se3.exp(array(v2) * t)).inverse @ s
        return X @ (v1 + a1 * t + axis * (qd + qdd * t))

    a_rel = bodies.joint_acceleration(v2, MotionSubspace([s]), [qd], [qdd])
    return apart(X @ (a1 + a_rel), geometry.central_difference(velocity, 0.0))


def rule_inertias_add(rng: np.random.Generator) -> float:
    """Give I1 + I2, against the inertia of both clouds as one.

    Source: GUIDE, section 5; SV-3.8, SV-7.2.
    """
    one, two = random_cloud(rng), random_cloud(rng)
    both = Cloud(np.concatenate([one.m, two.m]), np.concatenate([one.x, two.x]))
    return apart(one.inertia() + two.inertia(), both.inertia())


def rule_momentum(rng: np.random.Generator) -> float:
    """Give I v, against the momenta of the particles.

    Source: GUIDE, section 5; SV-3.9.
    """
    cloud, v = random_cloud(rng), random_motion(rng)
    return apart(bodies.momentum(cloud.inertia(), v), cloud.momentum(v))


def rule_force(rng: np.random.Generator) -> float:
    """Give f = I a + v x* I v, against the rate of the momenta of the particles.

    Source: GUIDE, section 5; SV-3.10.
    """
    cloud, v, a = random_cloud(rng), random_motion(rng), random_motion(rng)

    def momentum(t: float) -> np.ndarray:
        T = se3.exp(array(v) * t)
        moved = Cloud(cloud.m, cloud.x @ T[:3, :3].T + T[:3, 3])
        return moved.momentum(v + a * t)

    rate = geometry.central_difference(momentum, 0.0)
    return apart(bodies.equation_of_motion(cloud.inertia(), v, a), rate)


def rule_constraint_force(rng: np.random.Generator) -> float:
    """Give T of a random S: its forces do no work, and no other force does none.

    Source: GUIDE, section 5; SV-3.11.
    """
    r = int(rng.integers(1, 6))
    S = rng.normal(size=(6, r))
    T = geometry.complement(S)
    idle = rng.normal(size=6)
    idle = idle - S @ np.linalg.lstsq(S, idle, rcond=None)[0]  # any f with S.T f = 0
    coefficients = np.linalg.lstsq(T, idle, rcond=None)[0]
    return max(float(np.abs(T.T @ S).max()), apart(T @ coefficients, idle))


RULES: tuple[Callable[[np.random.Generator], float], ...] = (
    rule_relative_velocity,
    rule_forces_add,
    rule_reaction,
    rule_power,
    rule_scaling,
    rule_derivative,
    rule_acceleration,
    rule_inertias_add,
    rule_momentum,
    rule_force,
    rule_constraint_force,
)


# %% 5. Derivatives in moving frames: three things that are easy to mix up

K5_M = Motion.of((0.4, 0.5, -0.6, 0.1, -0.2, 0.3))
K5_RATE = Motion.of((0.2, -0.1, 0.05, 0.6, 0.3, -0.4))
K5_V = Motion.of((0.3, -0.5, 0.4, 0.2, 0.1, -0.3))
K5_POSE = np.array((-0.35, 0.6, 0.2, 0.2, 0.3, -0.5))


@dataclass(frozen=True)
class Rates:
    """Rates of one motion vector at some times, rows of six.

    Attributes:
        t: Times [s].
        components: Rate of its components in the moving frame, by differences.
        own: Its own derivative, in the axes of the moving frame.
        corrected: components + v x m: what (15) says is `own`.
    """

    t: np.ndarray
    components: np.ndarray
    own: np.ndarray
    corrected: np.ndarray


def moving_frame(times: np.ndarray) -> Rates:
    """Give the rates of m(t) = m + m1 t as a frame sees it that moves with K5_V.

        A(dm/dt) = d(Am)/dt + v x m

    Source: GUIDE (14)-(16); SV-5.1, SV-5.2.
    """

    def to_A(t: float) -> Transform:
        return transform_of(se3.exp(K5_POSE) @ se3.exp(array(K5_V) * t))

    def seen(t: float) -> Motion:
        return to_A(t) @ (K5_M + K5_RATE * t)

    components = [geometry.central_difference(seen, t) for t in times]
    own = [to_A(t) @ K5_RATE for t in times]
    corrected = [
        geometry.derivative_in_frame(rate, K5_V, seen(t))
        for rate, t in zip(components, times, strict=True)
    ]
    columns = (components, own, corrected)
    return Rates(times, *(np.array([array(x) for x in column]) for column in columns))


def cross_products(rng: np.random.Generator) -> dict[str, float]:
    """Give how well the identities of x and x* hold.

    Source: GUIDE (17), (18); SV-5.3.
    """
    u, v, m = (random_motion(rng) for _ in range(3))
    f = random_force(rng)
    a, b = se3.crm(array(v)), se3.crm(array(m))
    start, w = se3.exp(rng.normal(size=6)), array(v)

    def X(t: float) -> np.ndarray:
        return array(transform_of(start @ se3.exp(w * t)))

    rate = geometry.central_difference(X, 0.0)
    return {
        "v x v = 0": apart(cross(v, v), np.zeros(6)),
        "u x v = -v x u": apart(cross(u, v), -cross(v, u)),
        "(v x m) x = v x m x - m x v x": apart(
            se3.crm(array(cross(v, m))), a @ b - b @ a
        ),
        "(v x m) . f = -m . (v x* f)": abs(cross(v, m) @ f + m @ cross(v, f)),
        "dX/dt = -(v x) X": apart(
            rate, geometry.transform_rate(transform_of(start), v)
        ),
    }


# %% 6. Spatial acceleration is the rate of spatial velocity, not that of a particle

STEADY = geometry.screw_axis((0, 0, 1), (1.0, 0.5, 0.0)) * 2.0


def steady_rotation(x: np.ndarray) -> np.ndarray:
    """Give the classical acceleration at points x, (n, 3), of a steady turn [m/s²].

    The spatial acceleration is zero all the while: the velocity field does not change.

    Source: GUIDE (21), (22); SV-6.1, SV-6.2.
    """
    at = [array(geometry.shifted(STEADY, point)) for point in x]
    return conventions.classical_from_spatial(np.zeros((len(x), 6)), at)[:, 3:]


# %% 7. Inertia, momentum, energy


def inertia_facts(rng: np.random.Generator) -> dict[str, float]:
    """Give how well the laws of spatial inertia hold.

    Source: GUIDE (23)-(28); SV-7.1, SV-7.2, SV-7.3, SV-7.4, SV-7.5.
    """
    cloud, v = random_cloud(rng), random_motion(rng)
    I, T = cloud.inertia(), se3.exp(rng.normal(size=6))
    X = transform_of(T)
    back = X.inverse
    moved = back.T @ I @ back
    seen = Cloud(cloud.m, (cloud.x - T[:3, 3]) @ T[:3, :3])
    energy = 0.5 * cloud.m @ (velocity_at(v, cloud.x) ** 2).sum(1)

    def carried(t: float) -> np.ndarray:
        to = transform_of(se3.exp(array(v) * t))
        return array(to.T @ I @ to)

    rate = geometry.central_difference(carried, 0.0)
    cylinder = bodies.cylinder(2.0, 0.1, 0.5)
    return {
        "I in another frame": apart(moved, seen.inertia()),
        "dI/dt = v x* I - I v x": apart(rate, bodies.inertia_rate(I, v)),
        "kinetic energy": abs(energy - bodies.kinetic_energy(I, v)),
        "kinetic energy in another frame": abs(
            bodies.kinetic_energy(moved, X @ v) - bodies.kinetic_energy(I, v)
        ),
        "ten numbers and back": apart(
            RigidInertia.of_parameters(cylinder.parameters), cylinder
        ),
    }


# %% 8. The equation of motion, and a body that tumbles freely


@dataclass(frozen=True)
class Flight:
    """A body in free flight, one row for each moment.

    Attributes:
        t: Times [s].
        v: Velocity of the body in its own coordinates, rows of six.
        energy: Kinetic energy [J].
        momentum: Spatial momentum in the world frame, rows of six.
    """

    t: np.ndarray
    v: np.ndarray
    energy: np.ndarray
    momentum: np.ndarray

    def drifts(self) -> tuple[float, float]:
        """Give the largest relative change of energy and of spatial momentum."""
        energy = np.abs(self.energy / self.energy[0] - 1).max()
        size = np.linalg.norm(self.momentum[0])
        change = np.linalg.norm(self.momentum - self.momentum[0], axis=1).max()
        return float(energy), float(change / size)


def free_flight(
    I: RigidInertia, v: Motion, duration: float, dt: float = 1e-3, every: int = 10
) -> Flight:
    """Give the flight of a body on which nothing acts, by RK4.

        I a + v x* I v = 0

    Args:
        I: Inertia of the body in its own frame.
        v: Its velocity at the start.
        duration: How long [s].
        dt: Step [s].
        every: Steps from one row to the next.

    Source: GUIDE (29); SV-8.1.
    """
    links = (LinkSpec("world", RigidInertia.zero()), LinkSpec("body", I))
    joints = (JointSpec("free", "floating", "world", "body"),)
    still = Build(Description("flight", links, joints), gravity=(0.0, 0.0, 0.0))
    model = assemble(still)
    step = dyn.solver("rk4").build(model)
    q, qd, rows = model.neutral(), array(v), []
    for k in range(round(duration / dt) + 1):
        if k % every == 0:
            X = model.joint[1].X(Vector(q.tolist()))
            body = Motion.of(qd.tolist())
            h = X.inverse @ (I @ body)
            rows.append((k * dt, qd, bodies.kinetic_energy(I, body), array(h)))
        q, qd = step(q, qd, np.zeros(6), dt)
    return Flight(*(np.array(column) for column in zip(*rows, strict=True)))


def motion_facts(rng: np.random.Generator) -> dict[str, float]:
    """Give how well the forms of the equation of motion agree.

    Source: GUIDE (27)-(30); SV-8.1, SV-8.2, SV-8.3, SV-8.4.
    """
    I, v, a = random_cloud(rng).inertia(), random_motion(rng), random_motion(rng)
    f, g = bodies.equation_of_motion(I, v, a), rng.normal(size=3) * 9.81
    c, w = array(I.c), array(v.ang)
    a_c = velocity_at(a, c) + np.cross(w, velocity_at(v, c))  # classical, of the CoM
    newton = I.m * a_c
    Ic = array(I.Ic)
    euler = Ic @ array(a.ang) + np.cross(w, Ic @ w)
    weight, up = bodies.gravity_force(I, g), Motion((0.0, 0.0, 0.0), (-g).tolist())
    falls = bodies.acceleration(I, v, f + weight)
    trick = bodies.acceleration(I, v, f) - up
    return {
        "Newton at the centre of mass": apart(f.lin, newton),
        "Euler about it": apart(moment_at(f, c), euler),
        "f = I a + p": apart(f, I @ a + bodies.bias_force(I, v)),
        "(dI/dt) v = v x* I v": apart(
            bodies.inertia_rate(I, v) @ array(v), cross(v, I @ v)
        ),
        "weight acts at the centre of mass": apart(moment_at(weight, c), np.zeros(3)),
        "gravity is a base that accelerates up": apart(falls, trick),
    }


# %% 9. Constraints: what a joint allows, and what it carries


def hinge_facts(rng: np.random.Generator) -> dict[str, float]:
    """Give how well velocity, acceleration and force across a joint fit together.

    Source: GUIDE (31)-(34); SV-9.1, SV-9.2, SV-9.3, SV-9.4, SV-9.5, SV-9.6.
    """
    q, qd = rng.normal(size=(2, 2))
    S = geometry.universal(q)
    rows = geometry.constraint_rows(array(S))
    v_rel, tau = S @ qd, rng.normal(size=2)

    def twist(t: float) -> Motion:
        return geometry.universal(q + qd * t) @ qd

    ring = geometry.central_difference(twist, 0.0)
    S6 = array(S)
    f_J = S6 @ np.linalg.solve(S6.T @ S6, tau) + rows.T @ rng.normal(size=4)
    force = Force.of(f_J.tolist())
    return {
        "T.T (v2 - v1) = 0": float(np.abs(rows @ array(v_rel)).max()),
        "(dS/dt) qd of a universal joint": apart(ring, geometry.universal_ring(q, qd)),
        "S.T f_J = tau": apart(bodies.joint_force(S, force), tau),
        "f_J . v_rel = tau . qd": abs(force @ v_rel - float(tau @ qd)),
    }


# %% 10. Questions to the reader


def reader_questions() -> str:
    """Give the answers to the three questions that the guide leaves to its reader.

    Source: GUIDE, sections 4, 6.4 and 6.6; SV-11.2, SV-6.4, SV-8.2.
    """
    answers = (
        """(a) Why is the term (ds/dt) qd of a joint's acceleration equal to v1 x v2?
        The axis s is fixed in body 2, so ds/dt = v2 x s. Then (v2 x s) qd =
        v2 x (v2 - v1) = -v2 x v1 = v1 x v2. Were s fixed in body 1, v1 x (v2 - v1)
        gives the same.""",
        """(b) How does f = I a + v x* I v follow from the rate of inertia? f is the
        rate of the momentum I v, so f = (dI/dt) v + I a, and (dI/dt) v =
        v x* I v - I (v x v), whose last term is zero.""",
        """(c) How can a velocity need no reference point? [w; v_O] are the coordinates
        of a field, or of a screw: a line, an angular and a linear magnitude. Another
        origin gives other numbers, v_O + w x r, but the same line, the same
        magnitudes, and the same velocity of each particle.""",
    )
    margin = {"initial_indent": "  ", "subsequent_indent": "  "}
    filled = (textwrap.fill(" ".join(x.split()), 78, **margin) for x in answers)
    return "\n".join(filled)


# %% 11. Relatives, and the price


def relatives(rng: np.random.Generator) -> dict[str, float]:
    """Give how well motions as elements of se(3) agree with motions as six numbers.

    Source: GUIDE, section 8; SV-11.4.
    """
    x, y = rng.normal(size=(2, 6))
    T = se3.exp(x)
    Ad = conventions.adjoint(T[:3, :3], T[:3, 3])
    bracket = se3.hat(x) @ se3.hat(y) - se3.hat(y) @ se3.hat(x)
    moved = T @ se3.hat(y) @ np.linalg.inv(T)
    return {
        "ad: hat(x x y) = [hat x, hat y]": apart(se3.hat(se3.crm(x) @ y), bracket),
        "Ad: hat(Ad y) = T hat(y) T^-1": apart(se3.hat(Ad @ y), moved),
        "exp(log T) = T": apart(se3.exp(se3.log(T)), T),
        "Ad is the inverse of X": apart(Ad @ array(transform_of(T)), np.eye(6)),
    }


@dataclass(frozen=True)
class Cost:
    """What one product costs, by structure and as dense 6x6 matrices.

    Attributes:
        name: The product.
        times: Structured, dense [ns].
        multiplications: Structured, dense.
    """

    name: str
    times: tuple[float, float]
    multiplications: tuple[int, int]


def _matrix(x: list[Any], n: int) -> Matrix:
    return Matrix(x[n * i : n * i + n] for i in range(len(x) // n))


def _transform(x: list[Any]) -> Transform:
    return Transform(_matrix(x[:9], 3), Vector(x[9:12]))


def _moved_inertia(x: list[Any]) -> tuple[Any, ...]:
    X = _transform(x)
    return (X.T @ RigidInertia.of_parameters(x[12:]) @ X).parameters


def _moved_matrix(x: list[Any]) -> list[Any]:
    X = _matrix(x[:36], 6)
    return [y for row in (X.T @ _matrix(x[36:], 6) @ X).rows for y in row]


# name, structured: text, inputs, outputs; dense: the same
_PRODUCTS: tuple[tuple[str, Any, Any], ...] = (
    (
        "X m",
        (lambda x: list(_transform(x) @ Motion.of(x[12:])), 18, 6),
        (lambda x: _matrix(x[:36], 6) @ Vector(x[36:]), 42, 6),
    ),
    (
        "I v",
        (lambda x: list(RigidInertia.of_parameters(x[:10]) @ Motion.of(x[10:])), 16, 6),
        (lambda x: _matrix(x[:36], 6) @ Vector(x[36:]), 42, 6),
    ),
    ("X.T I X", (_moved_inertia, 22, 10), (_moved_matrix, 72, 36)),
)


def timing_report(rows: int = 500, repeats: int = 100) -> list[Cost]:
    """Give what products cost by structure and by dense matrices, in the best engine.

    Args:
        rows: States in a batch.
        repeats: Batches in a measurement; the best of five counts.

    Source: GUIDE, introduction; SV-11.3.
    """
    rng, engine = np.random.default_rng(0), dyn.default_engine()
    costs = []
    for name, *ways in _PRODUCTS:
        times, products = [], []
        for text, width, outputs in ways:
            x = rng.normal(size=(rows, width))
            program = flat_program(text, width, outputs, engine=engine)
            runs = timeit.repeat(lambda p=program, x=x: p(x), number=repeats, repeat=5)
            times.append(min(runs) / repeats / rows * 1e9)
            plain = flat_program(text, width, outputs, engine="plain")
            products.append(dyn.count(plain, x[0])["mul"])
        costs.append(Cost(name, tuple(times), tuple(products)))
    return costs


# %% 12. Pictures


def _figure(size: tuple[float, float] = (7.0, 5.0)) -> Any:
    """Give an empty figure; imported here, so that the rest runs without matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _rings(screw: geometry.Screw) -> np.ndarray:
    """Give points on rings around a screw's line, (n, 3)."""
    d = screw.direction
    e = np.cross(d, (0.0, 0.0, 1.0) if abs(d[2]) < 0.9 else (1.0, 0.0, 0.0))
    e = e / np.linalg.norm(e)
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)[:, None]
    ring = np.cos(angles) * e + np.sin(angles) * np.cross(d, e)
    shifts = [screw.point + along * d for along in (-0.6, 0.0, 0.6)]
    return np.concatenate([at + size * ring for at in shifts for size in (0.3, 0.7)])


def draw_screw(s: Motion | Force, path: Path) -> None:
    """Draw the line of a twist or wrench, and its field around that line.

    Source: GUIDE, section 4; SV-2.1, SV-2.2.
    """
    screw, twist = geometry.to_screw(s), isinstance(s, Motion)
    points = _rings(screw)
    field = velocity_at(s, points) if twist else moment_at(s, points)
    figure = _figure()
    axes = figure.add_subplot(projection="3d")
    ends = screw.point + np.array([[-1.1], [1.1]]) * screw.direction
    axes.plot(*ends.T, color="black", label=f"line, pitch {screw.pitch:.3g}")
    arrows = 0.2 * field
    axes.quiver(*points.T, *arrows.T, color="tab:blue" if twist else "tab:red")
    axes.scatter(*screw.point, color="black")
    axes.scatter(0, 0, 0, marker="x", color="gray", label="origin")
    what = "twist: velocity of particles" if twist else "wrench: moment about points"
    axes.set(title=what, xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
    axes.set_aspect("equal")
    axes.view_init(elev=25, azim=-110)
    axes.legend()
    figure.savefig(path)


def draw_moving_frame(path: Path) -> None:
    """Draw the rates of a vector's components and of the vector itself.

    Source: GUIDE (15); SV-5.2.
    """
    rates = moving_frame(np.linspace(0.0, 4.0, 81))
    figure = _figure((8.0, 4.0))
    for k, (axes, title) in enumerate(
        zip(figure.subplots(1, 2), ("angular x", "linear z"), strict=True)
    ):
        at = 5 * k
        axes.plot(rates.t, rates.components[:, at], "--", label="d(Am)/dt")
        axes.plot(rates.t, rates.own[:, at], linewidth=4, alpha=0.4, label="A(dm/dt)")
        axes.plot(rates.t, rates.corrected[:, at], label="d(Am)/dt + v x m")
        axes.set(title=title, xlabel="t [s]")
        axes.legend()
    figure.savefig(path)


def draw_steady_rotation(path: Path) -> None:
    """Draw velocities and classical accelerations of a steady turn, from above.

    Source: GUIDE, section 6.4; SV-6.2.
    """
    grid = np.linspace(-1.0, 3.0, 9)
    x = np.array([(a, b, 0.0) for a in grid for b in grid])
    figure = _figure((6.0, 5.5))
    axes = figure.subplots()
    for field, color, name in (
        (velocity_at(STEADY, x), "tab:blue", "velocity"),
        (steady_rotation(x), "tab:orange", "classical acceleration"),
    ):
        axes.quiver(*x[:, :2].T, *field[:, :2].T, color=color, label=name)
    axes.plot(1.0, 0.5, "k+", markersize=12, label="axis")
    axes.plot(0.0, 0.0, "kx", label="origin")
    axes.set(
        title="steady turn: spatial acceleration 0 everywhere",
        xlabel="x [m]",
        ylabel="y [m]",
        aspect="equal",
    )
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.06), ncols=4, fontsize=8)
    figure.savefig(path)


def draw_flight(flight: Flight, path: Path) -> None:
    """Draw the angular velocity of a body that flips about its middle axis.

    Source: GUIDE (29); SV-8.1.
    """
    figure = _figure()
    axes = figure.subplots()
    for k, name in enumerate("xyz"):
        axes.plot(flight.t, flight.v[:, k], label=f"w_{name}")
    axes.axhline(0.0, color="gray", linewidth=0.5)
    axes.set(title="turning about the middle axis", xlabel="t [s]", ylabel="[rad/s]")
    axes.legend()
    figure.savefig(path)


# %% All of it, in order


def _tell(title: str, residuals: dict[str, float] | None = None) -> None:
    print(title)
    for name, off in (residuals or {}).items():
        print(f"  {name:42s} {off:.1e}")


def _flip() -> Flight:
    """Simulate the body of SV-8.1 and print what it keeps."""
    I = bodies.rigid_body(1.0, (0, 0, 0), np.diag((0.1, 0.2, 0.3)))
    flight = free_flight(I, Motion.of((0.01, 2.0, 0.01, 0, 0, 0)), 10.0)
    energy, momentum = flight.drifts()
    flipped = flight.t[np.argmax(flight.v[:, 1] < 0)]
    print(f"  free flight: energy drifts by {energy:.1e}, momentum by {momentum:.1e}")
    print(f"  it turns over: w_y is negative first at {flipped:.2f} s")
    return flight


def main(folder: str | Path = "six_d_vectors") -> None:
    """Walk through the guide; save the pictures in a folder."""
    folder, rng = Path(folder), np.random.default_rng(0)
    _tell("1. Two spaces", duality(rng))
    print(f"  {named_frames()}")
    arm = dyn.load_urdf(dyn.robots.path("arm7"))
    J = stacked_jacobian(arm, arm.neutral())
    print(f"  stacked: J of the {len(arm.frame_names)} links of an arm is {J.shape}")
    _tell("2. Twists and wrenches", screws(rng))
    _tell("3. Pluecker coordinates", pluecker(rng))
    _tell("4. Rules of use", {rule.__name__[5:]: rule(rng) for rule in RULES})
    rates = moving_frame(np.linspace(0.0, 4.0, 5))
    off = {"d(Am)/dt + v x m": apart(rates.own, rates.corrected)}
    _tell("5. Moving frames", off | cross_products(rng))
    _tell("6. Acceleration")
    at_origin = steady_rotation(np.zeros((1, 3)))[0]
    print(f"  steady turn: spatial 0, classical at the origin {at_origin} m/s²")
    _tell("7. Inertia", inertia_facts(rng))
    _tell("8. Equation of motion", motion_facts(rng))
    flight = _flip()
    _tell("9. Constraints", hinge_facts(rng))
    _tell("10. Two bodies")
    two_bodies.main()
    _tell("11. Questions to the reader")
    print(reader_questions())
    _tell("12. Relatives", relatives(rng))
    _tell("13. What structure saves: structured and dense, time and multiplications")
    for cost in timing_report():
        (fast, slow), (few, many) = cost.times, cost.multiplications
        print(f"  {cost.name:8s} {fast:7.1f} ns {slow:7.1f} ns {few:5d} {many:5d}")
    folder.mkdir(parents=True, exist_ok=True)
    draw_screw(TWIST, folder / "twist.png")
    draw_screw(WRENCH, folder / "wrench.png")
    draw_moving_frame(folder / "moving_frame.png")
    draw_steady_rotation(folder / "steady_rotation.png")
    draw_flight(flight, folder / "flip.png")
    print(f"Pictures are in {folder}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
