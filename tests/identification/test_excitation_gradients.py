"""Gradients of excitation design against differences and complex steps."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.authoring import (
    absolute,
    acos,
    asin,
    atan2,
    cos,
    exp,
    floor,
    log,
    loop,
    maximum,
    minimum,
    sin,
    sqrt,
    tanh,
    where,
)
from dyn_core.errors import UnsupportedError
from dyn_core.identification.excitation.conditioning import (
    condition_number,
    conditions_and_levels,
    level,
    spread,
)
from dyn_core.identification.excitation.fourier import Fourier
from dyn_core.identification.excitation.kernels import motion_programs
from dyn_core.numbers.reverse import Record


def _function(x, y, z):
    """Return two results that use every operation."""
    a = sin(x) * cos(y) + exp(-x * x) / (1.0 + z * z) - tanh(y - z)
    b = sqrt(2.0 + x) + log(3.0 + y) + asin(0.2 * z) + acos(0.3 * x) + atan2(y, 2.0 + z)
    c = absolute(y) * z + where(x < y, x * y, z * z) + maximum(x, z) - minimum(y, 0.1)
    return a + 3.0 * x, a * b + c + 0.0 * floor(10.0 * z) + (-z)


@pytest.mark.parametrize("seed", range(5))
def test_reverse_numbers_agree_with_differences(seed):
    """d(w . y) / dx of every operation, at random places."""
    rng = np.random.default_rng(seed)
    x, w, h = rng.uniform(-0.8, 0.8, 3), rng.normal(size=2), 1e-6
    record = Record()
    numbers = record.variables(x.tolist())
    gradient = record.gradient(_function(*numbers), w.tolist(), numbers)
    steps = h * np.eye(3)
    expected = [
        (np.dot(w, _function(*(x + d))) - np.dot(w, _function(*(x - d)))) / (2 * h)
        for d in steps
    ]
    np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-8)


def test_reverse_numbers_of_constants_and_repeats():
    """A result may be a constant, a variable, or there twice; y = x x has 2 x."""
    record = Record()
    (x,) = record.variables([3.0])
    y = x * x
    assert record.gradient([y, y, x, 5.0], [1.0, 0.5, 2.0, 7.0], [x]) == [11.0]
    assert record.gradient([5.0], [1.0], [x]) == [0.0]


def test_reverse_numbers_refuse_loops():
    """What cannot be turned round says so."""
    record = Record()
    (x,) = record.variables([3.0])
    with pytest.raises(UnsupportedError, match="'loop' has no derivative in reverse"):
        loop((x,), lambda s: (s[0] * 0.5,), lambda s: s[0] > 1.0, 9)


@pytest.mark.parametrize("robot", ["arm7", "planar3"])
def test_rows_are_those_of_regressor_and_inverse_dynamics(robot):
    """Y of the solver `regressor`; tau of `rnea`, less dry friction."""
    model = dyn.load(robot)
    base = dyn.base_parameters(model)
    columns, nv = list(base.independent), model.nv
    speeds = np.full(model.nb + 1, 0.1)
    programs = motion_programs(model, columns, speeds, "graph")
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 4, nv))
    results = programs.rows(q, qd, qdd)
    Y = dyn.solver("regressor").build(model, engine="graph")(q, qd, qdd)[:, :, columns]
    np.testing.assert_allclose(results[:, :-nv].reshape(Y.shape), Y, atol=1e-12)
    forces = dyn.solver("rnea").build(model, joint_friction=True, engine="graph")
    dry = [np.array(model.friction[i])[0] for i in model.bodies]
    expected = forces(q, qd, qdd) - dry * np.tanh(qd / 0.01)
    np.testing.assert_allclose(results[:, -nv:], expected, atol=1e-11)


@pytest.mark.parametrize("engine", ["graph", "native"])
def test_gradient_of_rows_agrees_with_complex_steps(engine):
    """imag f(x + i h d) / h of the rows on `plain`, friction and rotors among them."""
    model = dyn.load("arm7")
    columns = [*dyn.base_parameters(model).independent, *range(70, 91)]
    speeds = np.full(model.nb + 1, 0.1)
    rng = np.random.default_rng(1)
    q, qd, qdd = rng.normal(size=(3, 3, 7))
    weights = rng.normal(size=(3, 7 * (len(columns) + 1)))
    pulled = motion_programs(model, columns, speeds, engine).pull(q, qd, qdd, weights)
    plain = motion_programs(model, columns, speeds, "plain").rows
    for k in range(3):
        d, h = rng.normal(size=(3, 7)), 1e-30
        state = [x[k] + 1j * h * y for x, y in zip((q, qd, qdd), d, strict=True)]
        slope = np.imag(np.asarray(plain(*state))) @ weights[k] / h
        assert slope == pytest.approx(pulled[k] @ d.ravel(), rel=1e-11)


def test_measure_of_the_condition_number():
    """Above its logarithm by at most log(n) / p, with the slope of differences."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(60, 8)) * np.logspace(0, 4, 8)
    exact = condition_number(rows)
    for power in (1.0, 4.0, 32.0):
        measured = spread(rows, power)
        assert measured.condition == pytest.approx(exact, rel=1e-9)
        above = measured.value - np.log(exact)
        assert -1e-12 <= above <= np.log(8) / power
        d = rng.normal(size=rows.shape) * np.abs(rows)
        for function in (lambda Y: spread(Y, power)[:2], level):  # noqa: B023
            h = 1e-5
            slope = (function(rows + h * d)[0] - function(rows - h * d)[0]) / (2 * h)
            assert (function(rows)[1] * d).sum() == pytest.approx(slope, rel=1e-6)
    many, levels = conditions_and_levels(np.stack([rows, 2 * rows]))
    np.testing.assert_allclose(many, exact, rtol=1e-6)
    assert levels[1] - levels[0] == pytest.approx(np.log(2))
    assert levels[0] == pytest.approx(level(rows)[0])


def test_a_column_of_zeros_has_no_condition_number():
    """Nothing shows that parameter."""
    assert condition_number(np.eye(4)[:, :3] * [1, 1, 0]) == np.inf
    assert condition_number(np.eye(4)[:, :3]) == 1.0


@pytest.mark.parametrize("harmonics", [2, 5, 9])
def test_series_start_and_end_at_rest(harmonics):
    """Velocity and acceleration are zero at 0 and T; they are slopes of the position."""
    series = Fourier(7.0, harmonics)
    rng = np.random.default_rng(6)
    x = rng.normal(size=(series.size, 4))
    t = np.linspace(0, 7, 701)
    q, qd, qdd = (matrix @ x for matrix in series.matrices(t))
    for row in (0, -1):
        np.testing.assert_allclose(q[row], x[0], atol=1e-12)
        np.testing.assert_allclose(qd[row], 0, atol=1e-12)
        np.testing.assert_allclose(qdd[row], 0, atol=1e-11)
    a, b = series.coefficients(x)
    w = 2 * np.pi / 7 * np.arange(1, harmonics + 1)[:, None, None]
    angle = w * t[:, None]
    sums = a[:, None] * (np.cos(angle) - 1) + b[:, None] * np.sin(angle)
    np.testing.assert_allclose(q, x[0] + sums.sum(axis=0), atol=1e-12)
    h = 1e-5
    for k, lower in ((1, 0), (2, 1)):
        after, before = series.matrices(t + h), series.matrices(t - h)
        slope = (after[lower] - before[lower]) @ x / (2 * h)
        np.testing.assert_allclose((q, qd, qdd)[k], slope, atol=1e-6)
