"""Programs take any array of NumPy: strided, read-only, float32, subclasses; no surprises."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines.llvm import host_machine
from dyn_core.errors import ShapeError

ENGINES = [
    "graph",
    pytest.param("native", marks=pytest.mark.skipif(bool(host_machine.missing()), reason=host_machine.missing())),
]  # fmt: skip


@pytest.fixture(params=ENGINES)
def program(request):
    return dyn.solver("rnea").build(dyn.load("two_link"), engine=request.param)


@pytest.fixture
def arrays():
    return np.random.default_rng(3).uniform(-1, 1, (3, 20, 2))


class Logged(np.ndarray):
    """An array that notes which functions of NumPy are called on it."""

    calls: list = []  # noqa: RUF012

    def __array_function__(self, function, types, args, kwargs):
        Logged.calls.append(function.__name__)
        return super().__array_function__(function, types, args, kwargs)


class Box:
    """No array, but one can be made of it; it refuses functions of NumPy."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype)

    def __array_function__(self, function, types, args, kwargs):
        raise AssertionError(f"{function.__name__} was called on an input")


@pytest.mark.parametrize("batch", [False, True])
def test_layouts_change_no_bit(program, arrays, batch):
    """Strides, negative ones, Fortran order, read-only, big-endian, unaligned."""
    inputs = list(arrays) if batch else [x[0] for x in arrays]
    wanted = program(*inputs)

    def wide(x):
        return np.repeat(x, 2, axis=-1)[..., ::2]

    def backward(x):
        return x[..., ::-1].copy()[..., ::-1]

    def locked(x):
        x = x.copy()
        x.flags.writeable = False
        return x

    def shifted(x):
        memory = np.zeros(x.nbytes + 1, np.uint8)
        view = memory[1:].view(np.float64).reshape(x.shape)
        view[...] = x
        return view

    for change in (
        wide,
        backward,
        np.asfortranarray,
        locked,
        shifted,
        lambda x: x.astype(">f8"),
    ):
        changed = [change(x) for x in inputs]
        before = [x.copy() for x in changed]
        got = program(*changed)
        np.testing.assert_array_equal(got, wanted)
        assert type(got) is np.ndarray and got.flags.c_contiguous
        for x, y in zip(changed, before, strict=True):
            np.testing.assert_array_equal(x, y)


def test_float32_and_whole_numbers_are_converted(program, arrays):
    """As NumPy converts them: the result is that of the same numbers in float64."""
    single = arrays.astype(np.float32)
    got = program(*single)
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, program(*single.astype(float)))
    whole = np.array([1, -2])
    np.testing.assert_array_equal(
        program(whole, whole, whole), program(*3 * [whole.astype(float)])
    )
    np.testing.assert_array_equal(
        program([0, 1], (1, 0), [True, False]),
        program(*np.array([[0, 1], [1, 0], [1, 0.0]])),
    )


def test_subclasses_are_taken_as_arrays(program, arrays):
    """A subclass, and an object with __array__: their numbers count, nothing of theirs is called."""
    wanted = program(*arrays)
    Logged.calls.clear()
    got = program(*(x.view(Logged) for x in arrays))
    np.testing.assert_array_equal(got, wanted)
    assert type(got) is np.ndarray
    assert Logged.calls == []
    boxed = program(*(Box(x) for x in arrays))
    np.testing.assert_array_equal(boxed, wanted)
    assert type(boxed) is np.ndarray


def test_matrices_of_numpy_keep_two_axes(program, arrays):
    """np.matrix is a batch, never flattened to one state by surprise."""
    with pytest.warns(PendingDeprecationWarning):
        matrices = [np.matrix(x) for x in arrays]
    got = program(*matrices)
    assert type(got) is np.ndarray
    np.testing.assert_array_equal(got, program(*arrays))


def test_masked_entries_do_not_pass_as_numbers(program, arrays):
    """An array without masked entries passes; one with them is refused."""
    whole = np.ma.masked_array(arrays[0], mask=False)
    np.testing.assert_array_equal(program(whole, *arrays[1:]), program(*arrays))
    holed = np.ma.masked_array(arrays[0], mask=arrays[0] > 0.5)
    with pytest.raises(ShapeError, match="q: .*masked"):
        program(holed, *arrays[1:])


def test_what_is_no_number_is_refused(program, arrays):
    """Strings, objects and times name the input."""
    for bad in (["a", "b"], np.array([None, None]), np.array([1, 2], "m8[s]")):
        with pytest.raises(ShapeError, match="qd: wanted numbers"):
            program(arrays[0, 0], bad, arrays[2, 0])


def test_out_may_be_a_view_but_no_copy(program, arrays):
    """`out` is filled where it lies: strided, too; a read-only one is refused."""
    wanted = program(*arrays)
    room = np.zeros((20, 4))
    got = program(*arrays, out=room[:, ::2])
    assert np.shares_memory(got, room)
    np.testing.assert_array_equal(room[:, ::2], wanted)
    np.testing.assert_array_equal(room[:, 1::2], 0.0)
    room.flags.writeable = False
    with pytest.raises(ShapeError, match="read-only"):
        program(*arrays, out=room[:, ::2])


@pytest.mark.parametrize("library", ["torch", "jax", "casadi"])
def test_values_of_other_libraries_lead_to_their_bridge(program, library):
    """What is no array, such as a tensor that records gradients, names the bridge."""

    class Traced:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("no array")

    one = np.zeros(2)
    with pytest.raises(RuntimeError, match="^no array"):
        program(Traced(), one, one)
    Traced.__module__ = f"{library}.inner"
    with pytest.raises(
        ShapeError,
        match=rf"q: wanted an array, or dyn_core\.bridges\.{library}\.function",
    ):
        program(Traced(), one, one)
