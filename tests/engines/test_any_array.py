"""Any array that NumPy can make: a Program reads its numbers, or refuses it in words."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines import available

pytest.importorskip("hypothesis", reason="hypothesis is not installed (extra test)")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

DTYPES = ("f8", ">f8", "f4", ">f4", "f2", "g", "i1", "i8", ">i4", "u2", "?")
NO_NUMBERS = ("O", "U4", "S4", "M8[s]", "m8[s]", "V8")
LAYOUTS = (
    "C",
    "F",
    "backwards",
    "every second",
    "one row",
    "off by a byte",
    "read-only",
)
QUIET = settings(max_examples=60, derandomize=True, deadline=None, database=None)


@pytest.fixture(scope="module", params=available())
def program(request, shipped):
    """Inverse dynamics of two joints on each engine."""
    return dyn.solver("rnea").build(shipped["two_link"], engine=request.param)


def laid_out(values, layout):
    """Return the values in memory of another order, step or place."""
    if layout == "backwards":
        return np.ascontiguousarray(values[..., ::-1])[..., ::-1]
    if layout == "every second":
        return np.repeat(values, 2, axis=-1)[..., ::2]
    if layout == "one row":
        return np.broadcast_to(values[:1], values.shape)
    if layout == "off by a byte":
        memory = np.empty(values.nbytes + 1, "u1")[1:]
        moved = memory.view(values.dtype).reshape(values.shape)
        moved[...] = values
        return moved
    made = np.array(values, order="F" if layout == "F" else "C")
    made.flags.writeable = layout != "read-only"
    return made


@st.composite
def arrays(draw, rows=(None, 0, 1, 2, 9), widths=(2,), dtypes=DTYPES):
    """Draw an array of small numbers: size, type and layout."""
    shape = (draw(st.sampled_from(widths)),)
    count = draw(st.sampled_from(rows))
    shape = shape if count is None else (count, *shape)
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    values = rng.integers(-3, 4, shape) / rng.integers(1, 5)
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    if dtype.kind == "u":
        values = np.abs(values)
    return laid_out(values.astype(dtype), draw(st.sampled_from(LAYOUTS)))


def answer(program, inputs):
    """Return the result of a call, or the type and the input of its refusal."""
    try:
        return program(*inputs)
    except dyn.ShapeError as error:
        return str(error)


@QUIET
@given(st.sampled_from((None, 0, 1, 2, 9)).flatmap(
    lambda n: st.tuples(*[arrays(rows=(None, n)) for _ in range(3)])))  # fmt: skip
def test_the_form_of_an_array_changes_no_bit(program, inputs):
    """Type, order, stride, alignment and byte order: the result of plain arrays."""
    plain = [np.array(x, np.float64, order="C") for x in inputs]
    result = program(*inputs)
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, program(*plain))
    rows = {len(x) for x in inputs if x.ndim == 2}
    assert result.shape == (*rows, 2)


@QUIET
@given(st.tuples(*[arrays(widths=(0, 1, 2, 3)) for _ in range(3)]))
def test_a_wrong_size_is_refused_whatever_the_form(program, inputs):
    """What plain arrays of these sizes are refused for, others are, in the same words."""
    plain = [np.array(x, np.float64, order="C") for x in inputs]
    fits = all(x.shape[-1] == 2 for x in inputs)
    fits &= len({len(x) for x in inputs if x.ndim == 2}) < 2
    result = answer(program, inputs)
    assert isinstance(result, str) != fits
    np.testing.assert_array_equal(result, answer(program, plain))


@QUIET
@given(st.integers(0, 2), st.sampled_from(NO_NUMBERS), st.sampled_from((None, 0, 2)))
def test_arrays_of_no_numbers_are_refused(program, place, dtype, rows):
    """Text, times, objects and raw memory: a ShapeError that names the input."""
    inputs = [np.zeros(2)] * 3
    inputs[place] = np.zeros((2,) if rows is None else (rows, 2), dtype)
    with pytest.raises(dyn.ShapeError, match=rf"^{program.inputs[place].name}: "):
        program(*inputs)
