"""Single bodies with the values of KIM-1.5, KIM-1.6, KIM-1.8 and KIM-1.9."""

import numpy as np

from dyn_core.spatial import Motion, RigidInertia, Transform, cross_motion
from dyn_core.spatial.guide.bodies import (
    acceleration,
    equation_of_motion,
    force_at_point,
    kinetic_energy,
    momentum,
)
from dyn_core.spatial.guide.se3 import crm

R_A = np.array([[2, -1, 2], [2, 2, -1], [-1, 2, 2]]) / 3
V = Motion.of((0.4, -0.7, 1.1, 0.5, 0.3, -0.2))
RATE = Motion.of((0.2, 0.5, -0.3, 1.0, -0.4, 0.6))


def _near(got, wanted):
    np.testing.assert_allclose(np.asarray(list(got), float), wanted, atol=1e-13)


def test_inertia_of_a_turned_body():
    """R I_c R.T + m [p].T [p] and m [p]."""
    Ic = R_A @ np.diag([0.1, 0.2, 0.25]) @ R_A.T
    I = np.asarray(RigidInertia.of(2.0, (0.3, -0.2, 0.5), Ic.tolist()), float)
    upper = [0.757777777777778, 0.0644444444444444, -0.255555555555556,
             0.841111111111111, 0.211111111111111, 0.471111111111111]  # fmt: skip
    _near(I[:3, :3][np.triu_indices(3)], upper)
    np.testing.assert_allclose(
        I[:3, 3:], [[0, -1, -0.4], [1, 0, -0.6], [0.4, 0.6, 0]], atol=1e-15
    )


def test_rates_in_moving_axes():
    """ad_V X, ad_V* and the equation of motion with their values."""
    _near(cross_motion(V, RATE), [-0.34, 0.34, 0.34, 0.03, 0.97, 0.73])
    Ic = [[0.12, 0.01, -0.02], [0.01, 0.15, 0.008], [-0.02, 0.008, 0.10]]
    I = RigidInertia.of(5.0, (0.1, -0.05, 0.2), Ic)
    L = momentum(I, V)
    _near(L, [-0.2735, 0.3978, 0.36515, 2.075, 1.65, -0.75])
    np.testing.assert_allclose(kinetic_energy(I, V), 0.8481525)
    ad_dual = crm(list(V)).T @ np.array(list(L), float)
    _near(ad_dual, [0.588185, 0.48691, -0.17017, 1.29, -2.5825, -2.1125])
    F = equation_of_motion(I, V, RATE)
    _near(F, [-0.218185, 0.40269, 0.17642, 4.135, 0.2325, 4.8125])
    _near(acceleration(I, V, F), list(RATE))


def test_force_at_a_point():
    """(R.T ((x - p) x f); R.T f) in the frame of a body at (R, p)."""
    p, x, f = np.array([[0.3, -0.2, 0.5], [1.0, 2.0, -0.4], [3.0, -1.0, 2.0]])
    got = Transform.of_pose(R_A, p.tolist()) @ force_at_point(f, x)
    _near(got, [*(R_A.T @ np.cross(x - p, f)), *(R_A.T @ f)])
