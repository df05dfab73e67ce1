"""Programs in JAX: the bits of the Program, batches, derivatives, errors, status."""

import pickle

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines.llvm import host_machine
from dyn_core.errors import ShapeError, UnsupportedError
from dyn_core.testing import random_model

jax = pytest.importorskip("jax", reason="jax is not installed")
if host_machine.missing():
    pytest.skip(host_machine.missing(), allow_module_level=True)
jnp = jax.numpy
from jax.test_util import check_grads  # noqa: E402

from dyn_core.bridges import jax as dyn_jax  # noqa: E402

CLOSE = {"atol": 1e-6, "rtol": 1e-6}


@pytest.fixture(autouse=True)
def float64():
    """Let JAX keep numbers of 64 bits."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(scope="module")
def arm():
    return dyn.load("arm7")


@pytest.fixture(scope="module")
def floating():
    """A floating base, a ball and a hinge."""
    kinds = ("spherical", "revolute", "floating")
    return random_model(2, size=3, kinds=kinds, massless=0.0)


def _arguments(program, seed=0):
    """Return random inputs of a Program; parameters beside those of the model."""
    rng = np.random.default_rng(seed)
    for port in program.inputs:
        if port.kind == "position":
            yield jnp.asarray(program.model.random(rng))
        elif port.name == "dt":
            yield jnp.asarray(0.01)
        else:
            start = program.defaults.get(port.name, np.zeros(port.shape))
            size = (
                1e-3 if port.name in program.defaults else 0.5
            )  # a payload may be none
            yield jnp.asarray(start + rng.uniform(-size, size, port.shape))


def _tuple(values):
    return tuple(values) if isinstance(values, tuple) else values


@pytest.mark.parametrize("rows", [None, 0, 1, 3, 8, 255, 257, 263, 1000])
def test_results_have_the_bits_of_the_program(arm, rows):
    """For one state and for batches on both sides of all sizes that count; in jit, too."""
    program = dyn.solver("rnea").build(arm)
    function = dyn_jax.function(program)
    lead = () if rows is None else (rows,)
    inputs = np.random.default_rng(0).uniform(-1, 1, (3, *lead, 7))
    wanted = program(*inputs)
    np.testing.assert_array_equal(function(*inputs), wanted)
    np.testing.assert_array_equal(jax.jit(function)(*inputs), wanted)
    if rows:
        shared = program(inputs[0], inputs[1], inputs[2, 0])
        np.testing.assert_array_equal(
            function(inputs[0], inputs[1], inputs[2, 0]), shared
        )


def test_scratch_memory_begins_as_zeros():
    """Kernels with products of matrices rely on it; called again, in a batch, too."""
    model = dyn.load("quadruped")
    program = dyn.solver("fd_derivatives").build(model)
    function = jax.jit(dyn_jax.function(program))
    rng = np.random.default_rng(1)
    q = np.stack([model.random(rng) for _ in range(11)])
    qd, tau = rng.uniform(-1, 1, (2, 11, model.nv))
    inputs = (
        np.asarray(dyn_jax.coordinates(model).normalized(jnp, jnp.asarray(q))),
        qd,
        tau,
    )
    for _ in range(3):
        for got, wanted in zip(function(*inputs), program(*inputs), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
        one = [x[3] for x in inputs]
        for got, wanted in zip(function(*one), program(*one), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


def test_vmap_is_one_call_of_the_kernel_and_copies_no_shared_input(arm):
    """Also one vmap in another: each mixture of mapped and shared inputs."""
    program = dyn.solver("rnea").build(arm)
    f = dyn_jax.function(program)
    Q, Qd, Qdd = np.random.default_rng(0).uniform(-1, 1, (3, 20, 7))
    mapped = jax.vmap(f, (0, None, None))
    np.testing.assert_array_equal(mapped(Q, Qd[0], Qdd[0]), program(Q, Qd[0], Qdd[0]))
    lines = jax.jit(mapped).lower(Q, Qd[0], Qdd[0]).as_text()
    assert lines.count("custom_call") == 1 and "broadcast" not in lines
    both = jax.vmap(jax.vmap(f, (0, None, None)), (None, 0, None))
    got = both(Q[:4], Qd[:5], Qdd[0])
    mixed = jax.vmap(jax.vmap(f, (0, 0, None)), (None, 0, 0))
    other = mixed(Q[:4], Qd.reshape(5, 4, 7), Qdd[:5])
    assert got.shape == other.shape == (5, 4, 7)
    np.testing.assert_array_equal(got[2, 3], program(Q[3], Qd[2], Qdd[0]))
    np.testing.assert_array_equal(other[2, 3], program(Q[3], Qd[11], Qdd[2]))


@pytest.mark.parametrize("name", ["rnea", "aba"])
@pytest.mark.parametrize(
    "robot", ["arm", pytest.param("floating", marks=pytest.mark.full)]
)
def test_first_and_second_derivatives(robot, name, request):
    """Forward and reverse, by all nq numbers of q, against differences; batches, too.

    Second ones of the floating robot take LLVM half a minute.
    """
    program = dyn.solver(name).build(request.getfixturevalue(robot))
    function = dyn_jax.function(program)
    arguments = tuple(_arguments(program))
    check_grads(function, arguments, order=2, modes=["fwd", "rev"], **CLOSE)
    rows = [
        jnp.stack([x, y])
        for x, y in zip(arguments, _arguments(program, 1), strict=True)
    ]
    check_grads(
        function, (rows[0], rows[1], arguments[2]), order=1, modes=["rev"], **CLOSE
    )


@pytest.mark.parametrize(
    "name, options",
    [
        ("crba", {}),
        ("gravity", {}),
        ("bias", {}),
        ("semi_implicit_euler", {}),
        ("rnea", {}),
        ("rnea", {"inputs": ["f_ext", "gravity"]}),
        ("aba", {"inputs": ["f_ext", "gravity"]}),
    ],
)
def test_first_derivatives(floating, name, options):
    """Of what else has a solver of its derivatives, by every input but the step."""
    program = dyn.solver(name).build(floating, **options)
    function, arguments = dyn_jax.function(program), list(_arguments(program))
    count = len(arguments) - (program.inputs[-1].name == "dt")
    check_grads(
        lambda *some: _tuple(function(*some, *arguments[count:])),
        tuple(arguments[:count]),
        order=1,
        modes=["fwd", "rev"],
        **CLOSE,
    )


@pytest.mark.parametrize("name", ["rnea", "aba"])
def test_derivatives_by_parameters(arm, name):
    """A payload, a mass and gravity as inputs, at other values than the model's."""
    program = dyn.solver(name).build(
        arm, inputs=["link7.payload", "link3.mass", "gravity"]
    )
    function, arguments = dyn_jax.function(program), list(_arguments(program))
    carried = [
        0.5,
        0.05,
        0,
        0.02,
        0.05,
        0,
        0.05,
        0,
        0,
        0.05,
    ]  # a body that there may be
    arguments[3:5] = jnp.array(carried), jnp.asarray(0.8)
    check_grads(function, tuple(arguments), order=1, modes=["rev"], eps=1e-6, **CLOSE)
    of_model = function(*arguments[:3])
    np.testing.assert_array_equal(of_model, program(*map(np.asarray, arguments[:3])))


def test_gradients_are_orthogonal_to_quaternions_and_positions_may_be_scaled(floating):
    """The gradient is that of the function of normalised positions."""
    function = dyn_jax.function(dyn.solver("gravity").build(floating))
    q = jnp.asarray(floating.random(np.random.default_rng(0)))
    slopes = np.asarray(jax.jacobian(function)(q))
    for i in floating.independent:
        places = np.arange(floating.q_slices[i].start, floating.q_slices[i].stop)
        for part in floating.joint[i].quaternions(
            dyn.spatial.Vector(places.astype(float).tolist())
        ):
            columns = [int(x) for x in part]
            np.testing.assert_allclose(
                slopes[:, columns] @ q[jnp.array(columns)], 0.0, atol=1e-9
            )
            scaled = function(q.at[jnp.array(columns)].multiply(1.7))
            np.testing.assert_allclose(scaled, function(q), rtol=1e-9, atol=1e-9)


def test_steps_with_contacts_are_differentiable():
    """State by state and forces; impulses are constants."""
    model = dyn.load("quadruped")
    program = dyn.solver("contact_euler").build(
        model, contact_solver="projected_gauss_seidel"
    )
    function = dyn_jax.function(program)
    q = jnp.asarray(model.neutral()).at[2].set(0.3)
    qd, warm = jnp.zeros(model.nv), jnp.zeros(program.inputs[4].shape)

    def moved(q, qd, tau):
        return tuple(function(q, qd, tau, 1e-3, warm)[:2])

    check_grads(
        moved,
        (q, qd, jnp.zeros(model.nv)),
        order=1,
        modes=["rev"],
        atol=1e-5,
        rtol=1e-5,
    )
    by_tau = jax.grad(lambda tau: function(q, qd, tau, 1e-3, warm).impulse.sum())(qd)
    np.testing.assert_array_equal(by_tau, 0.0)


def test_gradient_of_a_rollout_is_that_of_the_adjoint_sweep(arm):
    """lax.scan of a step, against Rollout.gradients."""
    from dyn_core.simulation import Rollout

    step = dyn_jax.function(dyn.solver("semi_implicit_euler").build(arm))
    q, qd = np.random.default_rng(0).uniform(-1, 1, (2, 7))
    tau = np.random.default_rng(1).uniform(-1, 1, (20, 7))

    def loss(tau):
        move = lambda x, t: (tuple(step(*x, t, 0.01)), None)  # noqa: E731
        return jnp.sum(jax.lax.scan(move, (q, qd), tau)[0][1] ** 2) / 2

    rollout = Rollout(arm)
    states = rollout.run(q, qd, tau, 0.01)
    by_q, by_qd = np.zeros((2, 21, 7))
    by_qd[-1] = states.qd[-1]
    wanted = rollout.gradients(states, tau, 0.01, by_q, by_qd).tau
    np.testing.assert_allclose(
        jax.jit(jax.grad(loss))(jnp.asarray(tau)), wanted, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("rows", [None, 3, 300])
def test_requirements_that_fail(rows):
    """NaN and the number in such rows, also where the derivatives know of no failure."""
    from dyn_core.authoring import TracedSolver, require
    from dyn_core.errors import SingularError
    from dyn_core.problems import GRAVITY_FORCE

    def refusing(model, q):
        """Return q where its first coordinate is positive."""
        require(q[0] > 0.0, SingularError, "first")
        return q

    model = dyn.load("two_link")
    solver = TracedSolver("refusing", GRAVITY_FORCE, refusing, by_joint=False)
    program = solver.build(model)
    lead = () if rows is None else (rows,)
    q = np.ones((*lead, 2))
    q.reshape(-1, 2)[-1, 0] = -1.0
    wanted, status = program(q, status=True)
    function = dyn_jax.function(program, status=True)
    got, state = function(q)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(state, status)
    _, rates = jax.jvp(lambda q: function(q)[0], (q,), (np.ones_like(q),))
    for missing in (np.isnan(rates).all(-1), np.isnan(rates).any(-1)):
        np.testing.assert_array_equal(missing, np.asarray(state) != 0)
    assert np.isnan(np.asarray(got)).any() and np.count_nonzero(state) == 1
    np.testing.assert_array_equal(dyn_jax.function(program)(q), wanted)


def test_a_function_pickles(arm):
    """As its Program does."""
    function = dyn_jax.function(dyn.solver("rnea").build(arm), status=True)
    x = np.random.default_rng(0).uniform(-1, 1, (3, 4, 7))
    got, status = pickle.loads(pickle.dumps(function))(*x)
    np.testing.assert_array_equal(got, function(*x)[0])
    assert not np.asarray(status).any()


def test_jax_export_is_told_that_machine_code_stays_here(arm):
    """JAX refuses to serialise it, and does so with export_checks, derivatives as well."""
    pytest.importorskip("flatbuffers", reason="flatbuffers is not installed")
    from jax import export

    aba = dyn_jax.function(dyn.solver("aba").build(arm))
    policy = jax.jit(jax.grad(lambda q: jnp.tanh(aba(q, q, q)).sum()))
    q = jnp.full(7, 0.3)
    with pytest.raises(ValueError, match="no compatibility guarantees"):
        export.export(policy)(q).serialize()
    whole = export.export(policy, disabled_checks=dyn_jax.export_checks())(q)
    again = export.deserialize(whole.serialize())
    np.testing.assert_array_equal(again.call(q), policy(q))


def test_float32(arm):
    """Kernels of float32 serve JAX as it is set at first, with derivatives."""
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(UnsupportedError, match="jax_enable_x64.*float32"):
        dyn_jax.function(dyn.solver("rnea").build(arm))
    program = dyn.solver("rnea").build(arm, dtype="float32")
    function = dyn_jax.function(program)
    inputs = np.random.default_rng(0).uniform(-1, 1, (3, 40, 7)).astype(np.float32)
    got = function(*inputs)
    assert got.dtype == jnp.float32
    np.testing.assert_array_equal(got, program(*inputs))
    by_q = jax.grad(lambda q: function(q, inputs[1, 0], inputs[2, 0]).sum())(
        inputs[0, 0]
    )
    double = dyn.solver("id_derivatives").build(arm)(*(x[0] for x in inputs))
    np.testing.assert_allclose(by_q, double.dtau_dq.sum(0), rtol=1e-3, atol=1e-3)


def test_types_of_arguments(arm):
    """Smaller and weak types are converted, larger ones refused; so are wrong shapes."""
    function = dyn_jax.function(dyn.solver("rnea").build(arm))
    single = dyn_jax.function(dyn.solver("rnea").build(arm, dtype="float32"))
    ones = jnp.ones(7)
    small = ones.astype(jnp.float32)
    assert function(small, small, small).dtype == jnp.float64
    assert function([1, 0, 0, 0, 0, 0, 0], qd=ones, qdd=ones).shape == (7,)
    assert single(small, small, small).dtype == jnp.float32
    with pytest.raises(ShapeError, match="q: wanted float32.*float64"):
        single(ones, small, small)
    with pytest.raises(ShapeError, match="qd: wanted shape"):
        function(ones, ones[:6], ones)
    masked = np.ma.masked_array(np.ones(7), mask=np.arange(7) == 3)
    with pytest.raises(ShapeError, match="qd: wanted an array without masked"):
        function(ones, masked, ones)
    with pytest.raises(ShapeError, match="qdd: wanted real numbers"):
        function(ones, ones, ones * 1j)
    with pytest.raises(ShapeError, match="qdd: wanted an array"):
        function(ones, ones)


def test_derivatives_that_are_not_there_are_refused(arm):
    """By the length of a step, a second one of a step, a com that is an input, a pose."""
    ones = jnp.ones(7)
    step = dyn_jax.function(dyn.solver("semi_implicit_euler").build(arm))
    with pytest.raises(
        UnsupportedError, match="no derivative by dt; valid: derivatives by q, qd, tau"
    ):
        jax.grad(lambda dt: step(ones, ones, ones, dt).q_next.sum())(0.01)
    second = "semi_implicit_euler_derivatives: second derivatives.*written around"
    with pytest.raises(UnsupportedError, match=second):
        jax.hessian(lambda q: step(q, ones, ones, 0.01).q_next.sum())(ones)
    inertia = dyn_jax.function(dyn.solver("crba").build(arm))
    with pytest.raises(UnsupportedError, match="third derivatives are not known"):
        jax.hessian(lambda q: inertia(q).sum())(ones)
    moved = dyn_jax.function(dyn.solver("rnea").build(arm, inputs=["link7.com"]))
    with pytest.raises(UnsupportedError, match="no derivative by link7.com"):
        jax.grad(lambda c: moved(ones, ones, ones, c).sum())(jnp.zeros(3))
    with pytest.raises(UnsupportedError, match="engine graph.*engine native"):
        dyn_jax.function(dyn.solver("rnea").build(arm, engine="graph"))


def test_arrays_may_change_after_a_call(arm):
    """XLA computes while the caller goes on, and reads arrays of NumPy where they lie."""
    program = dyn.solver("rnea").build(arm)
    function = dyn_jax.function(program)
    inputs = np.random.default_rng(0).uniform(-1, 1, (3, 100_000, 7))
    wanted = program(*inputs)
    for _ in range(3):
        arrays = [x.copy() for x in inputs]
        got = function(*arrays)
        for x in arrays:
            x[:] = 7.0
        np.testing.assert_array_equal(got, wanted)


def test_calls_from_many_threads_share_no_memory(arm):
    """Eight threads call one handler at once."""
    from concurrent.futures import ThreadPoolExecutor

    program = dyn.solver("fd_derivatives").build(arm)
    function = jax.jit(dyn_jax.function(program))
    inputs = np.random.default_rng(0).uniform(-1, 1, (8, 3, 50, 7))
    wanted = [program(*x) for x in inputs]

    def run(k):
        return [np.asarray(function(*inputs[k])[1]) for _ in range(20)]

    with ThreadPoolExecutor(8) as pool:
        for k, results in enumerate(pool.map(run, range(8))):
            for got in results:
                np.testing.assert_array_equal(got, wanted[k][1])
