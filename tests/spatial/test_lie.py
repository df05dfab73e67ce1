"""Exponentials, logarithms and their derivatives, with the values of KIM-S1."""

import math

import numpy as np
import pytest

from dyn_core.spatial import Matrix, Motion, Vector, lie
from dyn_core.spatial.guide.se3 import vee
from dyn_core.testing.case import derivative

XI = (0.4, -0.7, 1.1, 0.5, 0.3, -0.2)
ANGLES = (0.0, 1e-12, 1e-8, 1e-5, 1e-4, 1e-2, 0.3, 0.4999, 0.5001, 1.0, 2.0, 2.09,
          2.1, 3.0, 3.14, math.pi - 1e-7, math.pi - 1e-11)  # fmt: skip


def _array(x):
    return np.asarray(x, float)


def _turns(angles=ANGLES, seed=0):
    rng = np.random.default_rng(seed)
    for angle in angles:
        axis = rng.normal(size=3)
        yield angle * axis / np.linalg.norm(axis)


def _vector(w):
    return Vector(np.asarray(w, float).tolist())


def _exp6(u):
    X = lie.exp_transform(Motion.of(np.asarray(u).tolist()))
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = _array(X.pose[0]), list(X.pose[1])
    return T


def test_values_of_the_source():
    """exp, dexp_(-xi) with its blocks J and Q, the rate of J, log R_A."""
    R = [[0.273847282008857, -0.908945866233156, -0.314364562878865],
         [0.66974261795372, 0.414806339030667, -0.615938736236383],
         [0.690255381603692, -0.0418701965320643, 0.722353372532798]]  # fmt: skip
    p = [0.263665711753569, 0.508824897770423, 0.0188283124889714]
    J = [[0.741879380038536, 0.427349538941792, 0.365811750221673],
         [-0.512377507870275, 0.79198514744282, 0.0539460057800763],
         [-0.232196370476915, -0.287772920333403, 0.90130682177944]]  # fmt: skip
    Q = [[0.124617321065812, -0.102738078559507, -0.0434052591595006],
         [0.0309299381689695, 0.00126928321143897, 0.288999030762478],
         [0.189216651398532, -0.151673789180557, 7.57375189603309e-4]]  # fmt: skip
    J_rate = [[0.194759439855322, -0.189661238112668, -0.0325404448273445],
              [0.145317313411311, 0.118672746611613, 0.224757475478328],
              [0.0796653143362053, -0.0650481213314609,
               4.24632211791267e-4]]  # fmt: skip
    T = _exp6(XI)
    np.testing.assert_allclose(T[:3, :3], R, atol=1e-12)
    np.testing.assert_allclose(T[:3, 3], p, atol=1e-12)
    body = _array(lie.dexp6(-Motion.of(XI)))
    np.testing.assert_allclose(body[:3, :3], J, atol=1e-12)
    np.testing.assert_allclose(body[3:, 3:], J, atol=1e-12)
    np.testing.assert_allclose(body[3:, :3], Q, atol=1e-12)
    assert not body[:3, 3:].any()
    w, wd = Vector(XI[:3]), Vector((0.3, 0.2, -0.5))
    np.testing.assert_allclose(_array(lie.dexp3_rate(-w, -wd)), J_rate, atol=1e-12)
    R_A = Matrix(
        [[2 / 3, -1 / 3, 2 / 3], [2 / 3, 2 / 3, -1 / 3], [-1 / 3, 2 / 3, 2 / 3]]
    )
    wanted = math.pi / (3 * math.sqrt(3))
    np.testing.assert_allclose(list(lie.log3(R_A)), [wanted] * 3, atol=1e-12)
    back = lie.log_transform(lie.exp_transform(Motion.of(XI)))
    np.testing.assert_allclose(list(back), XI, atol=1e-12)


def test_logarithm_undoes_exponential_up_to_a_half_turn():
    """log3(exp3(w)) = w for every length below pi."""
    for seed in range(20):
        for w in _turns(seed=seed):
            got = list(lie.log3(lie.exp3(_vector(w))))
            np.testing.assert_allclose(got, w, atol=3e-15, rtol=1e-13)


def test_logarithm_of_exactly_a_half_turn():
    """Either sign of the axis is right; with exact numbers the positive one is given."""
    for k in range(3):
        half = -np.eye(3)
        half[k, k] = 1.0
        got = list(lie.log3(Matrix(half.tolist())))
        np.testing.assert_array_equal(got, math.pi * np.eye(3)[k])
    for w in _turns((math.pi,) * 50):
        got = np.array(list(lie.log3(lie.exp3(_vector(w)))))
        assert min(np.abs(got - w).max(), np.abs(got + w).max()) < 1e-14
    assert list(lie.log3(Matrix.identity(3))) == [0.0, 0.0, 0.0]


def test_jacobians_are_derivatives():
    """vee(T^-1 dT) = dexp6(-u) du, from nothing to almost a whole turn."""
    rng = np.random.default_rng(1)
    for w in _turns((*ANGLES, 4.0, 5.0, 6.0)):
        u, du = np.array([*w, *rng.normal(size=3)]), rng.normal(size=6)
        inverse, rate = (
            np.linalg.inv(_exp6(u)),
            derivative(lambda t, u=u, du=du: _exp6(u + t * du)),
        )
        W = inverse @ rate
        wanted = [*vee_of(W[:3, :3]), *W[:3, 3]]
        got = _array(lie.dexp6(-Motion.of(u.tolist()))) @ du
        np.testing.assert_allclose(got, wanted, atol=1e-10)


def vee_of(M):
    """Return the vector of the antisymmetric part."""
    A = np.zeros((4, 4))
    A[:3, :3] = (M - M.T) / 2
    return vee(A)[:3]


def test_inverses_and_rates():
    """dexp dexp^-1 = 1; dexp3_rate is the derivative of dexp3."""
    rng = np.random.default_rng(2)
    for w in _turns((*ANGLES, 4.0, 5.0)):
        u = Motion(w.tolist(), rng.normal(size=3).tolist())
        both = _array(lie.dexp6(u)) @ _array(lie.dexp6_inverse(u))
        np.testing.assert_allclose(both, np.eye(6), atol=1e-13)
        wd = rng.normal(size=3)
        got = _array(lie.dexp3_rate(_vector(w), _vector(wd)))
        wanted = derivative(
            lambda t, w=w, wd=wd: _array(lie.dexp3(_vector(w + t * wd)))
        )
        np.testing.assert_allclose(got, wanted, atol=1e-11)


@pytest.mark.parametrize("functions", [lie.sinc_terms, lie._sinc_slopes])
def test_series_join_without_a_step(functions):
    """Across the switch to series, values move by no more than 1e-14."""
    below, above = np.nextafter(lie._SMALL, 0), lie._SMALL
    pairs = zip(functions(below), functions(above), strict=True)
    assert max(abs(a - b) for a, b in pairs) < 1e-14
    assert functions(0.0) == pytest.approx(
        {"sinc_terms": (1, 1 / 2, 1 / 6), "_sinc_slopes": (-1 / 24, -1 / 120)}[
            functions.__name__
        ]
    )
    for t2 in (1e-30, 1e-12, 1e-8, 1e-6):
        near = zip(functions(t2), functions(0.0), strict=True)
        assert max(abs(a - b) for a, b in near) <= t2


def test_chords_are_as_long_as_they_should_be():
    """chord3(exp3(w)) = 2 sin(t/2) w/t, at half a turn either way round."""
    for w in _turns():
        angle = np.linalg.norm(w)
        chord = _array(lie.chord3(lie.exp3(_vector(w))))
        wanted = 2 * math.sin(angle / 2) * (w / angle if angle else w)
        np.testing.assert_allclose(chord, wanted, atol=1e-14, err_msg=str(angle))
    for w in _turns((math.pi,), seed=2):
        chord = _array(lie.chord3(lie.exp3(_vector(w))))
        chord *= np.sign(chord @ w)
        np.testing.assert_allclose(chord, 2 * w / math.pi, atol=1e-14)
    for axis in np.eye(3):
        half = Matrix((2 * np.outer(axis, axis) - np.eye(3)).tolist())
        np.testing.assert_allclose(np.abs(_array(lie.chord3(half))), 2 * axis)
