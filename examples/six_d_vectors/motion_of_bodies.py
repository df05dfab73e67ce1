"""Sections 7 to 9: inertia, the equation of motion, constraints of a joint.

python examples/six_d_vectors/motion_of_bodies.py [folder for the pictures]
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import (  # lies beside this file
    Cloud,
    apart,
    array,
    empty_figure,
    moment_at,
    picture_folder,
    random_cloud,
    random_motion,
    tell,
    transform_of,
    velocity_at,
)

import dyn_core as dyn
from dyn_core.authoring import Force, Motion, RigidInertia, Vector, cross
from dyn_core.model import Build, Description, JointSpec, LinkSpec, assemble
from dyn_core.spatial.guide import bodies, geometry, se3


def inertia_facts(rng: np.random.Generator) -> dict[str, float]:
    """Return how well the laws of spatial inertia hold.

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
        """Return the largest relative change of energy and of spatial momentum."""
        energy = np.abs(self.energy / self.energy[0] - 1).max()
        size = np.linalg.norm(self.momentum[0])
        change = np.linalg.norm(self.momentum - self.momentum[0], axis=1).max()
        return float(energy), float(change / size)


def free_flight(
    I: RigidInertia, v: Motion, duration: float, dt: float = 1e-3, every: int = 10
) -> Flight:
    """Return the flight of a body on which nothing acts, by RK4.

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
    """Return how well the forms of the equation of motion agree.

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


def hinge_facts(rng: np.random.Generator) -> dict[str, float]:
    """Return how well velocity, acceleration and force across a joint fit together.

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


def _flip() -> Flight:
    """Simulate the body of SV-8.1 and print what it keeps."""
    I = bodies.rigid_body(1.0, (0, 0, 0), np.diag((0.1, 0.2, 0.3)))
    flight = free_flight(I, Motion.of((0.01, 2.0, 0.01, 0, 0, 0)), 10.0)
    energy, momentum = flight.drifts()
    flipped = flight.t[np.argmax(flight.v[:, 1] < 0)]
    print(f"  free flight: energy drifts by {energy:.1e}, momentum by {momentum:.1e}")
    print(f"  it turns over: w_y is negative first at {flipped:.2f} s")
    return flight


def draw_flight(flight: Flight, path: Path) -> None:
    """Draw the angular velocity of a body that flips about its middle axis.

    Source: GUIDE (29); SV-8.1.
    """
    figure = empty_figure()
    axes = figure.subplots()
    for k, name in enumerate("xyz"):
        axes.plot(flight.t, flight.v[:, k], label=f"w_{name}")
    axes.axhline(0.0, color="gray", linewidth=0.5)
    axes.set(title="turning about the middle axis", xlabel="t [s]", ylabel="[rad/s]")
    axes.legend()
    figure.savefig(path)


def main(folder: Path) -> None:
    """Print what holds, and save the pictures in a folder."""
    rng = np.random.default_rng(0)
    tell("7. Inertia", inertia_facts(rng))
    tell("8. Equation of motion", motion_facts(rng))
    flight = _flip()
    tell("9. Constraints", hinge_facts(rng))
    draw_flight(flight, folder / "flip.png")


if __name__ == "__main__":
    main(picture_folder())
