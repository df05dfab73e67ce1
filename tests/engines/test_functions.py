"""sin, exp and their like as machine code: bounds on their errors, special values."""

import numpy as np
import pytest

from dyn_core.engines.llvm import host_machine
from dyn_core.numbers import scalar
from dyn_core.testing.flat_programs import flat_program, ulps

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=host_machine.missing()
)

_RANGES = {
    "sin": [(-1e4, 1e4, 1.5), (-0.8, 0.8, 1.5), (-1e12, 1e12, 1.5), (-1e18, 1e18, 1.5)],
    "cos": [(-1e4, 1e4, 1.5), (-0.8, 0.8, 1.5), (-1e12, 1e12, 1.5), (-1e18, 1e18, 1.5)],
    "exp": [(-1, 1, 1.5), (-700, 700, 1.5), (-745, -708, 1.5)],
    "log": [(1e-3, 3, 1.5), (1e-300, 1e300, 1.5)],
    "tanh": [(-0.7, 0.7, 1.5), (-25, 25, 1.5)],
    "asin": [(-1, 1, 1.5), (-1e-3, 1e-3, 1.5)],
    "acos": [(-1, 1, 1.5), (0.99, 1, 1.5)],
}


@pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 60, reason="no 80-bit reference here"
)
@pytest.mark.parametrize("name", sorted(_RANGES))
def test_functions_stay_within_their_bounds(name):
    """At most 1.5 ulp against 80-bit references, on each range."""
    program = flat_program(
        lambda x: [getattr(scalar, name)(x[0])], 1, 1, engine="native"
    )
    rng = np.random.default_rng(7)
    reference = {"asin": "arcsin", "acos": "arccos"}.get(name, name)
    for low, high, bound in _RANGES[name]:
        x = rng.uniform(low, high, 100_000)
        got = program(x[:, None])[:, 0]
        wanted = getattr(np, reference)(x.astype(np.longdouble))
        error = ulps(got.astype(np.longdouble), wanted)
        assert float(error.max()) <= bound, (low, high, float(error.max()))


@pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 60, reason="no 80-bit reference here"
)
def test_atan2_stays_within_its_bound():
    """At most 1.5 ulp over all quadrants and ratios of any size."""
    program = flat_program(lambda x: [scalar.atan2(x[0], x[1])], 2, 1, engine="native")
    rng = np.random.default_rng(8)
    y, x = rng.normal(size=(2, 100_000)) * 10.0 ** rng.integers(-200, 200, (2, 100_000))
    y[::2], x[::2] = rng.normal(size=(2, 50_000))
    got = program(np.stack([y, x], 1))[:, 0]
    wanted = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
    assert float(ulps(got.astype(np.longdouble), wanted).max()) <= 1.5


def test_special_angles():
    """Doubles nearest to multiples of pi/2, signed zeros, infinities, NaN."""
    program = flat_program(
        lambda x: [scalar.sin(x[0]), scalar.cos(x[0])], 1, 2, engine="native"
    )
    x = np.array([*(k * np.pi / 2 for k in range(-400, 400)), 0.0, -0.0, 1e22, 5e-324])
    got = program(x[:, None])
    wanted = np.stack(
        [np.sin(x.astype(np.longdouble)), np.cos(x.astype(np.longdouble))], 1
    )
    assert ulps(got, wanted.astype(float)).max() <= 2
    assert np.signbit(got[x == 0][:, 0]).tolist() == np.signbit(x[x == 0]).tolist()
    assert np.isnan(program([np.inf])).all()
    assert np.isnan(program([np.nan])).all()
