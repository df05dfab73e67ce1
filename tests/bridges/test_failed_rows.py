"""One contract of failed rows: the same statuses and NaN, whatever calls the Program.

The arm turns about z and about y, and carries one point mass: where the mass lies on the
axis z, nothing has inertia about it.
"""

import ctypes
import shutil

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines.llvm import host_machine
from dyn_core.engines.status import NOT_FINITE_INPUT, NOT_FINITE_RESULT

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=host_machine.missing()
)

ARM = """<robot name="wand"><link name="base"/><link name="fork"/>
<joint name="turn" type="continuous"><parent link="base"/><child link="fork"/>
<axis xyz="0 0 1"/></joint>
<link name="rod"><inertial><origin xyz="0.5 0 0"/><mass value="2"/>
<inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="tilt" type="continuous"><parent link="fork"/><child link="rod"/>
<axis xyz="0 1 0"/></joint></robot>"""
STATUSES = (0, NOT_FINITE_INPUT, 1, NOT_FINITE_RESULT, 0, NOT_FINITE_INPUT)
ERRORS = (
    (NOT_FINITE_INPUT, dyn.NonFiniteError, "an input is NaN or infinite"),
    (NOT_FINITE_RESULT, dyn.NonFiniteError, "a result is NaN or infinite"),
    (1, dyn.SingularError, "singular: joint turn"),
)


@pytest.fixture(scope="module")
def program():
    """Forward dynamics that says what is wrong with a state."""
    model = dyn.load_urdf(ARM)
    return dyn.solver("aba").build(model, finite=True, wait=True)


@pytest.fixture(scope="module", params=[1, 7], ids=["one by one", "in lanes"])
def states(request):
    """Rows with each of the statuses, some times."""
    q, qd, tau = np.random.default_rng(0).uniform(-1, 1, (3, 6, 2))
    q[1, 0] = np.nan
    q[2, 1] = np.pi / 2
    qd[3] = 1e200
    tau[5, 1] = np.inf
    q[5, 1] = np.pi / 2  # singular, too: inputs come first
    return tuple(np.tile(x, (request.param, 1)) for x in (q, qd, tau))


def _by_python(program, states, folder):
    return program(*states, status=True)


def _by_state(program, states, folder):
    rows = [program(*row, status=True) for row in zip(*states, strict=True)]
    return tuple(np.array(x) for x in zip(*rows, strict=True))


def _by_map(program, states, folder):
    qdd, failed = program.map(*states, status=True)
    status = np.zeros(len(qdd), int)
    for number, error, message in ERRORS:
        reason = f"{error.__name__}: {message}"
        for first, last, why in failed.runs:
            status[first:last][[why == reason] * (last - first)] = number
    assert (failed.mask == (status != 0)).all()
    return qdd, status


def _by_jax(program, states, folder):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    from dyn_core.bridges import jax as dyn_jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        function = dyn_jax.function(program, status=True)
        qdd, status = jax.jit(jax.vmap(function))(*states)
    finally:
        jax.config.update("jax_enable_x64", before)
    return np.asarray(qdd), np.asarray(status)


def _by_torch(program, states, folder):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from dyn_core.bridges import torch as dyn_torch

    function = dyn_torch.function(program, status=True)
    qdd, status = function(*(torch.tensor(x) for x in states))
    return qdd.numpy(), status.numpy()


def _casadi_function(program, **options):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    pytest.importorskip("casadi", reason="casadi is not installed")
    from dyn_core.bridges import casadi as dyn_casadi

    return dyn_casadi.function(program, **options)


def _by_casadi(program, states, folder):
    function = _casadi_function(program, status=True)
    qdd, status = function.map(len(states[0]))(*(x.T for x in states))
    return np.array(qdd).T, np.array(status).ravel()


def _by_c(program, states, folder):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    result = program.export(folder, form="shared", variant="batch")
    x = result.interface
    function = ctypes.CDLL(str(folder / result.binary))[f"{x.prefix}_batch"]
    function.restype = ctypes.c_int64
    rows = len(states[0])
    qdd, status = np.empty((rows, 2)), np.empty(rows, np.int64)
    memory = np.empty(x.batch_scratch + 64, np.uint8)
    start = memory.ctypes.data + -memory.ctypes.data % 64
    inputs = (ctypes.c_void_p * 3)(*(x.ctypes.data for x in states))
    failed = function(
        inputs, (ctypes.c_int64 * 3)(16, 16, 16), (ctypes.c_void_p * 1)(qdd.ctypes.data),
        ctypes.c_void_p(status.ctypes.data), ctypes.c_int64(0), ctypes.c_int64(rows),
        ctypes.c_void_p(start),
    )  # fmt: skip
    assert failed == np.count_nonzero(status)
    return qdd, status


ENTRANCES = {
    "Python": _by_python,
    "Python, one state": _by_state,
    "map": _by_map,
    "JAX": _by_jax,
    "PyTorch": _by_torch,
    "CasADi": _by_casadi,
    "exported C": _by_c,
}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_a_row_fails_alike_in_every_entrance(program, states, entrance, tmp_path):
    """The same number in the status, NaN in all its results; no other row is touched."""
    qdd, status = ENTRANCES[entrance](program, states, tmp_path)
    wanted = np.tile(STATUSES, len(states[0]) // len(STATUSES))
    np.testing.assert_array_equal(status, wanted)
    good = wanted == 0
    assert np.isnan(qdd[~good]).all()
    np.testing.assert_array_equal(qdd[good], program(*(x[good] for x in states)))


@pytest.mark.parametrize("engine", ["plain", "graph", "native"])
def test_a_status_names_its_error(program, states, engine):
    """program.failure(number), also of the rows; numbers that are none are refused."""
    other = dyn.solver("aba").build(program.model, engine=engine, finite=True)
    qdd, status = other(*states, status=True)
    wanted = np.tile(STATUSES, len(states[0]) // len(STATUSES))
    np.testing.assert_array_equal(status != 0, wanted != 0)
    for number, error, message in ERRORS:
        mine = int(status[wanted == number][0])
        failure = other.failure(mine)
        assert type(failure) is error and str(failure) == message
        assert other.failure(np.int32(mine), [3, 5]).rows == (3, 5)
    for number in (0, -3, 1000):
        with pytest.raises(dyn.ShapeError, match="status: wanted that of a row"):
            other.failure(number)


def test_without_status_errors_are_raised_or_rows_are_nan(program, states):
    """In Python, map and PyTorch an error that names rows; CasADi raises; JAX has NaN."""
    q, qd, tau = (x[4:6] for x in states)
    for call in (program, program.map):
        with pytest.raises(
            dyn.NonFiniteError, match="input tau is not finite in rows 1"
        ):
            call(q, qd, tau)
    function = _casadi_function(program)
    assert np.isfinite(np.array(function(q[0], qd[0], tau[0]))).all()
    with pytest.raises(RuntimeError):
        function(q[1], qd[1], tau[1])
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from dyn_core.bridges import torch as dyn_torch

    with pytest.raises(dyn.NonFiniteError, match="rows 1"):
        dyn_torch.function(program)(*(torch.tensor(x) for x in (q, qd, tau)))


def test_derivatives_of_failed_rows_are_nan(program, states):
    """In jvp and grad of JAX, backward of PyTorch, the Jacobian of CasADi; others stay."""
    failed = np.tile(STATUSES, len(states[0]) // len(STATUSES)) != 0
    slopes = dyn.solver("fd_derivatives").build(program.model)
    good = [x[~failed] for x in states]
    by_tau = slopes(*good).Hinv.sum(1)
    jacobian = _casadi_function(program, status=True).jacobian()
    for row, bad in list(zip(zip(*states, strict=True), failed, strict=True))[:6]:
        parts = [np.array(x) for x in jacobian(*row, 0, 0)[:3]]
        assert all(np.isnan(x).any() == bad for x in parts)
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from dyn_core.bridges import torch as dyn_torch

    tensors = [torch.tensor(x, requires_grad=True) for x in states]
    qdd, status = dyn_torch.function(program, status=True)(*tensors)
    torch.where(status[:, None] == 0, qdd, 0.0).sum().backward()
    for x in tensors:
        assert (
            torch.isnan(x.grad[failed]).all() and not torch.isnan(x.grad[~failed]).any()
        )
    np.testing.assert_allclose(tensors[2].grad[~failed], by_tau, rtol=1e-12)
    jax = pytest.importorskip("jax", reason="jax is not installed")
    from dyn_core.bridges import jax as dyn_jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        function = dyn_jax.function(program, status=True)

        def loss(*states):
            qdd, status = function(*states)
            return jax.numpy.where(status[:, None] == 0, qdd, 0.0).sum()

        gradients = jax.grad(loss, (0, 1, 2))(*states)
        ones = tuple(np.ones_like(x) for x in states)
        (_, _), (rate, _) = jax.jvp(function, states, ones)
    finally:
        jax.config.update("jax_enable_x64", before)
    for x in (*gradients, rate):
        x = np.asarray(x)
        assert np.isnan(x[failed]).all() and not np.isnan(x[~failed]).any()
    np.testing.assert_allclose(np.asarray(gradients[2])[~failed], by_tau, rtol=1e-12)
