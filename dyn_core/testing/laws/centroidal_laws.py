"""Laws of energy, momentum, the centre of mass and the zero-moment point."""

from __future__ import annotations

import numpy as np

from dyn_core import problems as kinds
from dyn_core.problems import Signature
from dyn_core.solving.offers import Law
from dyn_core.testing.case import Case, Pairs, derivative
from dyn_core.testing.laws import spring_laws


def energy_matches_H_and_g(case: Case) -> Pairs:
    """kinetic = qd.T H qd / 2,  d/dt potential = g . qd"""
    program = case.program()
    H, g = case.other("crba")(case.q), case.other("gravity")(case.q)
    yield program(case.q, case.qd)[0], case.qd @ H @ case.qd / 2
    yield derivative(lambda t: program(case.moved(t), case.qd)[1]), g @ case.qd


def momentum_moves_the_centre_of_mass(case: Case) -> Pairs:
    """force part of h = m d/dt com;  h is linear in qd"""
    program = case.program()
    h, _ = program(case.q, case.qd)
    rate = derivative(lambda t: program(case.moved(t), case.qd)[1])
    yield h[3:], case.model.mass * rate
    yield program(case.q, 2 * case.qd)[0], 2 * h


def matrix_makes_momentum(case: Case) -> Pairs:
    """A_G qd = momentum about the centre of mass"""
    A, com = case.program()(case.q)
    h, wanted = case.other("momentum")(case.q, case.qd)
    yield com, wanted
    about = np.concatenate([h[:3] - np.cross(com, h[3:]), h[3:]])
    yield A @ case.qd, about


def centre_of_mass_moves(case: Case) -> Pairs:
    """com' = d/dt com;  com'' = J qdd + (dJ/dt) qd,   J qd = com'"""
    program = case.program()
    com, velocity, acceleration = program(case.q, case.qd, case.qdd)
    h, wanted = case.other("momentum")(case.q, case.qd)
    yield com, wanted
    yield velocity * case.model.mass, h[3:]

    def rate(t: float) -> np.ndarray:
        return program(case.moved(t), case.qd, case.qdd)[1]

    along = program(case.q, case.qdd, case.qdd)[1]
    yield acceleration, along + derivative(rate)


def ground_twists_at_the_point(case: Case) -> Pairs:
    """n x (N - p x F) = 0,   n . p = height,   (N; F) = dh/dt - weight"""
    n, height = case.rng.normal(size=3), 0.3
    n = n / np.linalg.norm(n)
    program = case.program(normal=tuple(map(float, n)), height=height)
    p, push = program(case.q, case.qd, case.qdd)
    momentum = case.other("momentum")
    rate = derivative(lambda t: momentum(case.moved(t), case.qd)[0])
    rate = rate + momentum(case.q, case.qdd)[0]
    g = np.array(list(case.model.a_grav.lin), float) * case.model.mass
    com = momentum(case.q, case.qd)[1]
    N, F = rate[:3] - np.cross(com, g), rate[3:] - g
    yield push, n @ F
    yield n @ p, height
    scale = max(1.0, float(np.linalg.norm(p) * np.linalg.norm(F)))
    yield np.cross(n, N - np.cross(p, F)) / scale, np.zeros(3)


LAWS: dict[Signature, tuple[Law, ...]] = {
    kinds.ENERGY: (energy_matches_H_and_g, spring_laws.joint_springs_store_energy),
    kinds.MOMENTUM: (momentum_moves_the_centre_of_mass,),
    kinds.CENTROIDAL_MATRIX: (matrix_makes_momentum,),
    kinds.CENTRE_OF_MASS: (centre_of_mass_moves,),
    kinds.ZERO_MOMENT_POINT: (ground_twists_at_the_point,),
}
