"""x ** n in algorithms: whole powers 0..8 on every engine and every kind of number."""

import numpy as np
import pytest

from dyn_core.engines import available
from dyn_core.errors import TraceError
from dyn_core.numbers.scalar import Column
from dyn_core.numbers.taylor import TIME, Taylor, derivatives
from dyn_core.testing.flat_programs import flat_program

X = (-1.7, -1.0, 0.0, 0.3, 2.5)
POWERS = range(9)


def _powers(x):
    return [x[0] ** n + x[0] * 0.0 for n in POWERS]


@pytest.mark.parametrize("engine", available())
def test_whole_powers_on_every_engine(engine):
    """x ** 0 is 1, x ** 1 is x, higher ones are products, for one state and for many."""
    program = flat_program(_powers, 1, len(POWERS), engine=engine)
    for x in X:
        result = program([x])
        assert result[0] == 1.0
        assert result[1] == x
        np.testing.assert_allclose(result, [x**n for n in POWERS], rtol=1e-15)
    rows = program(np.array(X)[:, None])
    assert np.array_equal(rows, [program([x]) for x in X])


def test_powers_of_other_numbers():
    """Numbers with derivatives and whole columns take the same powers."""
    x = Taylor(1.5, 1.0, 0.0, TIME)
    for n in POWERS:
        value, slope, second = derivatives(x**n, TIME)
        expected = [1.5**n, n * 1.5 ** (n - 1), n * (n - 1) * 1.5 ** (n - 2)]
        assert [value, slope, second] == pytest.approx(expected)
    column = Column(np.array(X))
    assert column**0 == 1.0
    assert np.allclose((column**3).values, np.array(X) ** 3)


@pytest.mark.parametrize("power", [-1, 9, 0.5, 2.0])
@pytest.mark.parametrize("engine", [e for e in available() if e != "plain"])
def test_other_powers_are_refused_in_words(power, engine):
    """Negative, large and fractional powers: the error says what to write instead."""
    with pytest.raises(TraceError, match=r"valid: whole powers 0\.\.8"):
        flat_program(lambda x: [x[0] ** power], 1, 1, engine=engine)([2.0])
