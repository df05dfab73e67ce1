"""Swing and twist: the source's table, differences, what happens near pi and zero."""

import math

import numpy as np
import pytest

from dyn_core.authoring import Vector
from dyn_core.engines.graph.trace import trace
from dyn_core.engines.plain import Complex
from dyn_core.errors import SingularError
from dyn_core.spatial import (
    Matrix,
    aligning_rotation,
    swing_angle,
    swing_twist,
    swing_twist_rates,
    swing_twist_rows,
    twist_angle,
)
from dyn_core.spatial.conventions import quaternion
from dyn_core.spatial.lie import exp3, quat_log

UNIT = np.eye(3)


def _exp(w):
    return np.asarray(exp3(Vector([float(x) for x in w])), float)


def _rpy(q):
    return _exp(q[2] * UNIT[2]) @ _exp(q[1] * UNIT[1]) @ _exp(q[0] * UNIT[0])


def _near(got, wanted, tol=1e-10):
    np.testing.assert_allclose(
        np.array(got, float), np.array(wanted, float), rtol=tol, atol=0.1 * tol
    )


R0 = Matrix(_rpy((0.3, -0.5, 0.8)).tolist())
TABLE = [
    ((0.3, -0.5, 0.8), 0.576479751497, 0.877144032795, 1.03923558944),
    ((0.5, 0, 0), 0.5, 0, 0.5),
    ((0, 0, -1.2), 0, -1.2, 1.2),
]


@pytest.mark.parametrize(("q", "swing", "twist", "angle"), TABLE)
def test_table(q, swing, twist, angle):
    """The source's examples; swing is not about the rotation's axis (E6b)."""
    R = Matrix(_rpy(q).tolist())
    _near(swing_twist(R), (swing, twist))
    _near((swing_angle(R), twist_angle(R)), (swing, twist))
    w = quat_log(Vector(quaternion(np.array(R.rows)).tolist()))
    _near(math.sqrt(w @ w), angle)


def test_matrices():
    """R and Q of the first row."""
    _near(R0.rows, [[0.611417658875, -0.784025810103, -0.107107308381],
                    [0.629539196039, 0.563954377868, -0.534449118564],
                    [0.479425538604, 0.259343380052, 0.838386643594]])  # fmt: skip
    _near(aligning_rotation(R0).rows,
          [[0.993759759108, -0.0311378494592, 0.107107308381],
           [-0.0311378494592, 0.844626884486, 0.534449118564],
           [-0.107107308381, -0.534449118564, 0.838386643594]])  # fmt: skip


def test_rates():
    """Rates of the first row."""
    got = swing_twist_rates(R0, Vector((0.2, -0.4, 0.7)))
    _near(got, (0.274700683149, 0.80463423808))


def test_formula_as_printed():
    """(29) printed gives no cosine of the twist; with E6 it does, and simplifies."""
    (xx, yx, zx), (xy, yy, zy), (xz, _, zz) = R0.rows
    first = zy * zy * xx + (1 + zz) * zz * xx - zy * zx * xy
    printed = (first - (1 + zz * zx * xz)) / (1 + zz)
    right = (first - (1 + zz) * zx * xz) / (1 + zz)
    _near(printed, 0.0674624449464)
    _near(right, 0.639349747693)
    _near([right, math.cos(twist_angle(R0))], [(xx + yy) / (1 + zz)] * 2, 1e-13)
    assert abs(yx) < 1


@pytest.mark.parametrize("seed", range(20))
def test_random_rotations(seed):
    """Q Q.T = 1, Q z_p = e_z, Q R = Rz(twist); the angles by the vectors' own."""
    rng = np.random.default_rng(seed)
    R = _exp(rng.normal(size=3) * 1.2)
    M = Matrix(R.tolist())
    swing, twist = swing_twist(M)
    Q = np.array(aligning_rotation(M).rows)
    np.testing.assert_allclose(Q @ Q.T, np.eye(3), atol=1e-13)
    np.testing.assert_allclose(Q @ R, _exp(twist * UNIT[2]), atol=1e-13)
    assert abs(math.acos(R[2, 2]) - swing) < 1e-9
    turn = quat_log(Vector(quaternion(Q).tolist()))
    assert abs(math.sqrt(turn @ turn) - swing) < 1e-12  # the smallest rotation
    assert abs(turn[2]) < 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_rates_are_differences(seed):
    """Central differences of fourth order along a rotation, floats: 1e-9."""
    rng = np.random.default_rng(seed)
    R, w, h = _exp(rng.normal(size=3)), rng.normal(size=3), 1e-3

    def moved(t):
        return np.array(swing_twist(Matrix((_exp(w * t) @ R).tolist())))

    slope = (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h)
    got = swing_twist_rates(Matrix(R.tolist()), Vector(w.tolist()))
    np.testing.assert_allclose(got, slope, atol=1e-8)
    rows = np.array(swing_twist_rows(Matrix(R.tolist())).rows)
    np.testing.assert_allclose(rows @ w, got, atol=1e-14)


@pytest.mark.parametrize("twist", [-3.1, -1.0, 0.0, 2.0, math.pi])
@pytest.mark.parametrize("swing", [1e-200, 1e-20, 1e-9, 1e-4, 1.0, 3.0, math.pi - 1e-3])
def test_from_zero_to_pi(swing, twist):
    """Angles are found again, signed; rows are finite and unit in swing."""
    R = _exp(swing * np.array([0.6, -0.8, 0.0])) @ _exp(twist * UNIT[2])
    M = Matrix(R.tolist())
    got = swing_twist(M)
    assert abs(got.swing - swing) < 1e-12
    off = got.twist - twist
    assert abs(math.remainder(off, 2 * math.pi)) < 1e-9
    rows = np.array(swing_twist_rows(M).rows)
    assert np.isfinite(rows).all()
    if swing > 1e-10:
        np.testing.assert_allclose(rows[0], [0.6, -0.8, 0.0], atol=1e-6)
    assert rows[1, 2] == 1


def test_at_zero():
    """At the identity the swing's row is zero, the twist's is e_z."""
    rows = swing_twist_rows(Matrix.identity(3)).rows
    np.testing.assert_array_equal(rows, [[0, 0, 0], [0, 0, 1]])
    assert tuple(swing_twist(Matrix.identity(3))) == (0.0, 0.0)
    assert tuple(swing_twist_rates(Matrix.identity(3), Vector((1, 2, 3)))) == (0, 3)


@pytest.mark.parametrize("short", [0.0, 1e-9, 1e-6])
@pytest.mark.parametrize(
    "function",
    [twist_angle, swing_twist, aligning_rotation, swing_twist_rows,
     lambda M, item: swing_twist_rates(M, Vector((1, 2, 3)), item)],
)  # fmt: skip
def test_opposite_axes_are_an_error(function, short):
    """A swing of pi is refused, and the joint is named; the swing itself is known."""
    R = Matrix(_exp((math.pi - short) * np.array([0.8, 0.6, 0.0])).tolist())
    with pytest.raises(SingularError, match="hip"):
        function(R, item="hip")
    assert abs(swing_angle(R) - (math.pi - short)) < 1e-12


def test_nan_in_nan_out():
    """NaN passes the requirement."""
    R = Matrix([[math.nan] * 3] * 3)
    assert all(math.isnan(x) for x in swing_twist(R))


@pytest.mark.parametrize("w", [(0.3, -0.2, 0.5), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)])
@pytest.mark.parametrize("start", [(0, 0, 0), (0, 0, 0.7), (0.4, -0.3, 0.2)])
def test_derivatives_are_numbers(start, w):
    """Complex steps through every function: no NaN, also at zero swing."""
    W = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    R, h = _exp(start), 1e-30
    M = Matrix([[Complex(x) for x in row] for row in R + 1j * h * W @ R])
    values = [*swing_twist(M), *(x for row in swing_twist_rows(M).rows for x in row),
              *(x for row in aligning_rotation(M).rows for x in row)]  # fmt: skip
    slopes = np.array([np.imag(getattr(x, "value", x)) / h for x in values])
    assert np.isfinite(slopes).all()
    rates = swing_twist_rates(Matrix(R.tolist()), Vector(w))
    np.testing.assert_allclose(slopes[:2], rates, atol=1e-12)


def test_texts_can_be_traced():
    """The same numbers by a Graph, which refuses opposite axes too."""

    def algorithm(x):
        R = Matrix([x[:3], x[3:6], x[6:9]])
        both = (aligning_rotation(R), swing_twist_rows(R))
        rows = [v for M in both for row in M.rows for v in row]
        return [*swing_twist(R), *swing_twist_rates(R, Vector(x[9:])), *rows]

    x = [*(v for row in R0.rows for v in row), 0.2, -0.4, 0.7]
    graph = trace(algorithm, 12)
    got, status = graph.run(x)
    assert status == 0
    np.testing.assert_allclose(got, algorithm(x), rtol=1e-14, atol=1e-15)
    assert graph.run([1.0, 0, 0, 0, -1.0, 0, 0, 0, -1.0, 0, 0, 0])[1] == 1
    assert graph.requirements[0].error is SingularError
