"""Programs in PyTorch: values, autograd of first and second order, batches, errors."""

import copy
import io
import pickle

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines.llvm import host_machine
from dyn_core.errors import ShapeError, UnsupportedError
from dyn_core.testing import random_model

torch = pytest.importorskip("torch", reason="torch is not installed")
if host_machine.missing():
    pytest.skip(host_machine.missing(), allow_module_level=True)
from torque_rows import TorqueRows  # noqa: E402

from dyn_core.bridges import torch as dyn_torch  # noqa: E402

gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck


@pytest.fixture(scope="module")
def arm():
    return dyn.load("arm7")


@pytest.fixture(scope="module")
def floating():
    kinds = ("spherical", "revolute", "floating")
    return random_model(2, size=3, kinds=kinds, massless=0.0)


@pytest.fixture
def tensors():
    rng = np.random.default_rng(0)
    return [torch.tensor(x) for x in rng.uniform(-1, 1, (3, 5, 7))]


def _moving(*tensors):
    return [x.clone().requires_grad_() for x in tensors]


def _state(model, seed=0):
    rng = np.random.default_rng(seed)
    return _moving(
        torch.tensor(model.random(rng)),
        *(torch.tensor(x) for x in rng.uniform(-1, 1, (2, model.nv))),
    )


def test_values_are_those_of_the_program(arm, tensors):
    """One state, a batch, shared inputs, strides, memory that is shared."""
    program = dyn.solver("rnea").build(arm)
    function = dyn_torch.function(program)
    arrays = [x.numpy() for x in tensors]
    np.testing.assert_array_equal(function(*tensors), program(*arrays))
    one = [x[0] for x in tensors]
    np.testing.assert_array_equal(function(*one), program(*(x[0] for x in arrays)))
    got = function(tensors[0], tensors[1], qdd=tensors[2][0])
    np.testing.assert_array_equal(got, program(arrays[0], arrays[1], arrays[2][0]))
    strided = [x.T.contiguous().T for x in tensors]
    assert not strided[0].is_contiguous()
    np.testing.assert_array_equal(function(*strided), program(*arrays))
    assert function(*_moving(*tensors)).requires_grad
    assert not function(*tensors).requires_grad


def test_memory_is_shared_with_arrays(arm, tensors, monkeypatch):
    """The Program reads the memory of the tensors; the result has that of its array."""
    program = dyn.solver("rnea").build(arm)
    seen = []

    class Spy:
        def __getattr__(self, name):
            return getattr(program, name)

        def __call__(self, *arrays):
            seen.extend([*arrays, program(*arrays)])
            return seen[-1]

    function = dyn_torch.function(program)
    monkeypatch.setattr(function._operation, "program", Spy())
    result = function(*tensors)
    pointers = [x.data_ptr() for x in (*tensors, result)]
    assert [x.ctypes.data for x in seen] == pointers
    back = np.from_dlpack(result)
    assert back.ctypes.data == result.data_ptr()


@pytest.mark.parametrize("name", ["rnea", "aba"])
def test_gradients_of_first_and_second_order(arm, tensors, name):
    """By all inputs, against differences: one state, a batch, a shared input."""
    function = dyn_torch.function(dyn.solver(name).build(arm))
    one = [x[0] for x in tensors]
    assert gradcheck(function, _moving(*one), atol=1e-6, rtol=1e-6)
    assert gradcheck(function, _moving(*tensors), atol=1e-6, rtol=1e-6)
    assert gradcheck(
        function, _moving(tensors[0], one[1], one[2]), atol=1e-6, rtol=1e-6
    )
    assert gradgradcheck(function, _moving(*one), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", ["gravity", "bias"])
def test_second_gradients_of_parts_of_inverse_dynamics(arm, tensors, name):
    """Of gravity and of Coriolis forces; of a step, written around aba, too."""
    program = dyn.solver(name).build(arm)
    inputs = _moving(*(x[0] for x in tensors[: len(program.inputs)]))
    function = dyn_torch.function(program)
    assert gradgradcheck(function, inputs, atol=1e-6, rtol=1e-6)


def test_second_gradients_of_a_step_around_forward_dynamics(arm, tensors):
    """As the refusal of a step's second derivatives says."""
    forward = dyn_torch.function(dyn.solver("aba").build(arm))
    step = dyn_torch.function(dyn.solver("semi_implicit_euler").build(arm))

    def written(q, qd, tau):
        qd = qd + 0.01 * forward(q, qd, tau)
        return q + 0.01 * qd, qd

    state = _moving(*(x[0] for x in tensors))
    for got, wanted in zip(written(*state), step(*state, 0.01), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-12)
    assert gradgradcheck(written, state, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(
    "name", ["rnea", "aba", "crba", "gravity", "bias", "semi_implicit_euler"]
)
def test_gradients_by_positions_with_quaternions(floating, name):
    """By all nq numbers of q, as if quaternions were normalised first."""
    program = dyn.solver(name).build(floating)
    function = dyn_torch.function(program)
    more = (
        [torch.tensor(0.01, dtype=torch.float64)]
        if program.inputs[-1].name == "dt"
        else []
    )
    arguments = _state(floating)[: len(program.inputs) - len(more)]
    assert gradcheck(lambda *x: function(*x, *more), arguments, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", ["rnea", "aba"])
def test_gradients_by_parameters_and_forces(arm, tensors, name):
    """A payload, gravity and external forces; one that is left out is the model's."""
    inputs = ["link7.payload", "gravity", "f_ext"]
    program = dyn.solver(name).build(arm, inputs=inputs)
    function = dyn_torch.function(program)
    rng = np.random.default_rng(2)
    payload, gravity = (
        torch.tensor(
            program.defaults[x] + rng.uniform(0, 1e-3, program.defaults[x].shape)
        )
        for x in inputs[:2]
    )
    named = {
        port.name: x
        for port, x in zip(program.inputs[:3], (y[0] for y in tensors), strict=True)
    }
    forces = torch.tensor(rng.uniform(-1, 1, (7, 6)))

    def call(payload, gravity, f_ext):
        return function(
            **named, f_ext=f_ext, **{"link7.payload": payload, "gravity": gravity}
        )

    assert gradcheck(call, _moving(payload, gravity, forces), atol=1e-6, rtol=1e-6)
    named["qd"] = tensors[1]  # rows, where the others are shared
    assert gradcheck(call, _moving(payload, gravity, forces), atol=1e-6, rtol=1e-6)
    got = function(**named, f_ext=forces)
    wanted = program(**{k: x.numpy() for k, x in named.items()}, f_ext=forces.numpy())
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", ["rnea", "aba"])
def test_gradients_by_parameters_that_are_numbers(arm, tensors, name):
    """A mass and an armature, of one state and of rows."""
    program = dyn.solver(name).build(arm, inputs=["link3.mass", "joint2.armature"])
    function = dyn_torch.function(program)
    for state in ([x[0] for x in tensors], tensors):

        def call(mass, armature, state=state):
            more = {"link3.mass": mass, "joint2.armature": armature}
            names = (port.name for port in program.inputs[:3])
            return function(**dict(zip(names, state, strict=True)), **more)

        numbers = _moving(*torch.tensor([1.7, 0.3], dtype=torch.float64))
        assert gradcheck(call, numbers, atol=1e-6, rtol=1e-6)


def test_transforms_of_torch_func(arm, tensors):
    """vmap, twice, too; grad, jacrev, jacfwd, jvp, and vmap of grad."""
    program = dyn.solver("rnea").build(arm)
    function = dyn_torch.function(program)
    Q, Qd, Qdd = tensors
    once = torch.func.vmap(function, (0, None, None))
    np.testing.assert_array_equal(
        once(Q, Qd[0], Qdd[0]), program(Q.numpy(), Qd[0].numpy(), Qdd[0].numpy())
    )
    twice = torch.func.vmap(once, (None, 0, None))(Q, Qd[:3], Qdd[0])
    assert twice.shape == (3, 5, 7)
    np.testing.assert_array_equal(
        twice[2, 4], program(Q[4].numpy(), Qd[2].numpy(), Qdd[0].numpy())
    )
    first = dyn.solver("id_derivatives").build(arm)(*(x[0].numpy() for x in tensors))
    one = [x[0] for x in tensors]
    for jacobian in (torch.func.jacrev, torch.func.jacfwd):
        np.testing.assert_allclose(jacobian(function)(*one), first.dtau_dq, atol=1e-12)
    _, rate = torch.func.jvp(function, tuple(one), (one[1], one[2], one[0]))
    wanted = (
        first.dtau_dq @ one[1].numpy()
        + first.dtau_dqd @ one[2].numpy()
        + first.H @ one[0].numpy()
    )
    np.testing.assert_allclose(rate, wanted, atol=1e-12)
    slopes = torch.func.vmap(
        torch.func.grad(lambda q: function(q, one[1], one[2]).sum())
    )(Q)
    np.testing.assert_allclose(slopes[0], first.dtau_dq.sum(0), atol=1e-12)


def test_compiled_without_breaks(arm, tensors):
    """torch.compile with fullgraph=True, forward and backward."""
    function = dyn_torch.function(dyn.solver("rnea").build(arm))

    def loss(q, qd, qdd):
        return (function(2 * q, qd, qdd) ** 2).sum()

    step = dyn_torch.function(dyn.solver("semi_implicit_euler").build(arm))

    def moved(q, qd, tau):
        return step(q, qd, tau, 0.01).q_next

    state = [x[0] for x in tensors]
    compiled = torch.compile(moved, fullgraph=True, backend="aot_eager")
    np.testing.assert_array_equal(compiled(*state), moved(*state))
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    one, other = _moving(*(x[0] for x in tensors)), _moving(*(x[0] for x in tensors))
    compiled(*one).backward()
    loss(*other).backward()
    for x, y in zip(one, other, strict=True):
        np.testing.assert_allclose(x.grad, y.grad, rtol=1e-12)


def test_float32(arm, tensors):
    """A Program of float32 takes and returns it, with gradients."""
    program = dyn.solver("rnea").build(arm, dtype="float32")
    function = dyn_torch.function(program)
    small = _moving(*(x[0].float() for x in tensors))
    got = function(*small)
    assert got.dtype == torch.float32
    np.testing.assert_array_equal(
        got.detach(), program(*(x.detach().numpy() for x in small))
    )
    got.sum().backward()
    double = dyn.solver("id_derivatives").build(arm)(*(x[0].numpy() for x in tensors))
    np.testing.assert_allclose(
        small[0].grad, double.dtau_dq.sum(0), rtol=1e-3, atol=1e-3
    )
    whole = dyn_torch.function(dyn.solver("rnea").build(arm))
    assert whole(*small).dtype == torch.float64
    with pytest.raises(ShapeError, match="q: wanted torch.float32.*torch.float64"):
        function(*(x[0] for x in tensors))


def test_what_is_refused(arm, tensors):
    """Other devices, shapes, complex numbers, derivatives that are not there."""
    function = dyn_torch.function(dyn.solver("rnea").build(arm))
    q, qd, qdd = (x[0] for x in tensors)
    with pytest.raises(ShapeError, match="q: wanted a tensor on the CPU.*meta"):
        function(q.to("meta"), qd, qdd)
    with pytest.raises(ShapeError, match="qd: wanted shape"):
        function(q, qd[:6], qdd)
    with pytest.raises(ShapeError, match="qdd: wanted real numbers"):
        function(q, qd, qdd * 1j)
    with pytest.raises(ShapeError, match="qdd: wanted an array"):
        function(q, qd)
    step = dyn_torch.function(dyn.solver("semi_implicit_euler").build(arm))
    dt = torch.tensor(0.01, dtype=torch.float64, requires_grad=True)
    with pytest.raises(UnsupportedError, match="no derivative by dt"):
        step(q, qd, qdd, dt).q_next.sum().backward()
    moving = q.clone().requires_grad_()
    value = (step(moving, qd, qdd, dt.detach()).q_next ** 2).sum()
    with pytest.raises(UnsupportedError, match="second derivatives.*written around"):
        (slope,) = torch.autograd.grad(value, moving, create_graph=True)
        slope.sum().backward()


@pytest.mark.parametrize("rows", [None, 3, 30])
def test_requirements_that_fail(rows):
    """Without status an error, with it NaN and the number in the rows that failed."""
    from dyn_core.authoring import TracedSolver, require
    from dyn_core.errors import SingularError
    from dyn_core.problems import GRAVITY_FORCE

    def refusing(model, q):
        """Return q where its first coordinate is positive."""
        require(q[0] > 0.0, SingularError, "first")
        return q

    solver = TracedSolver("refusing", GRAVITY_FORCE, refusing, by_joint=False)
    program = solver.build(dyn.load("two_link"))
    q = np.ones((() if rows is None else (rows,)) + (2,))
    q.reshape(-1, 2)[-1, 0] = -1.0
    with pytest.raises(SingularError, match="first"):
        dyn_torch.function(program)(torch.tensor(q))
    got, state = dyn_torch.function(program, status=True)(torch.tensor(q))
    wanted, status = program(q, status=True)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(state, status)
    assert state.dtype == torch.int64 and np.count_nonzero(state) == 1


class Inertial(torch.nn.Module):
    """A module that holds a function: the norm of the joint forces of a motion."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.gain = torch.nn.Parameter(torch.ones(7, dtype=torch.float64))

    def forward(self, q, qd, qdd):
        return self.gain * self.function(q, qd, qdd)


def test_a_function_pickles(arm, tensors):
    """Alone, in a module that torch.save writes, and in a deep copy; status as well."""
    function = dyn_torch.function(dyn.solver("rnea").build(arm, joint_friction=True))
    wanted = function(*tensors)
    assert torch.equal(pickle.loads(pickle.dumps(function))(*tensors), wanted)
    file = io.BytesIO()
    torch.save(Inertial(function), file)
    file.seek(0)
    module = torch.load(file, weights_only=False)
    assert torch.equal(module(*tensors), wanted)
    module(*tensors).sum().backward()
    assert torch.equal(module.gain.grad, wanted.sum(0))
    assert torch.equal(copy.deepcopy(module)(*tensors), wanted)
    marking = dyn_torch.function(dyn.solver("rnea").build(arm), status=True)
    assert len(pickle.loads(pickle.dumps(marking))(*tensors)) == 2


@pytest.mark.full
def test_workers_of_a_data_loader_take_a_function(arm, tensors):
    """Full: processes that are spawned import PyTorch anew, which takes seconds."""
    function = dyn_torch.function(dyn.solver("rnea").build(arm))
    loader = torch.utils.data.DataLoader(
        TorqueRows(function, tensors), 2, num_workers=1, multiprocessing_context="spawn"
    )
    assert torch.equal(torch.cat(list(loader)), function(*tensors))


@pytest.fixture
def rnea(arm):
    """The function of inverse dynamics."""
    return dyn_torch.function(dyn.solver("rnea").build(arm))


def test_plain_calls_and_recorded_ones_agree(arm, rnea, tensors):
    """Whichever way a call goes, its bits are the same; errors, too."""
    Q, Qd, Qdd = tensors
    wanted = rnea(Q, Qd, Qdd)
    moving = Q.clone().requires_grad_()
    negated = torch._neg_view(-Q)  # lazy, as imaginary parts of conjugates are
    assert negated.is_neg()
    with torch.no_grad():
        quiet = rnea(moving, Qd, Qdd)
    assert not quiet.requires_grad
    for got in (
        rnea(moving, Qd, Qdd).detach(),
        quiet,
        rnea(negated, Qd, Qdd),
        rnea(negated.requires_grad_(), Qd, Qdd).detach(),
        rnea(qdd=Qdd, qd=Qd, q=Q),
        rnea(Q.tolist(), Qd.numpy(), Qdd),
        rnea(torch.nn.Parameter(Q), Qd, Qdd).detach(),
        torch.func.vmap(rnea)(Q, Qd, Qdd),
    ):
        np.testing.assert_array_equal(got, wanted)
    for bad in (Qd[:, :6], Qd[0, :3]):
        for q in (Q, moving):
            with pytest.raises(ShapeError, match="qd: wanted shape"):
                rnea(q, bad, Qdd)


def test_other_releases_go_the_long_way(arm, tensors, monkeypatch):
    """Where PyTorch's own names are not as they are known, results are the same."""
    program = dyn.solver("rnea").build(arm)
    monkeypatch.setattr(dyn_torch, "_KNOWN", False)
    function = dyn_torch.function(program)
    q, qd, qdd = _moving(*(x[0] for x in tensors))
    np.testing.assert_array_equal(
        function(q, qd, qdd).detach(), program(*(x[0].numpy() for x in tensors))
    )
    assert gradcheck(function, (q, qd, qdd), atol=1e-6, rtol=1e-6)


def test_dual_numbers_and_gradients_of_many_cotangents(rnea, tensors):
    """Forward mode outside of torch.func, backward under vmap, backward of duals."""
    fwAD = torch.autograd.forward_ad
    q, qd, qdd = (x[0] for x in tensors)
    jacobian = torch.func.jacrev(rnea)(q, qd, qdd)
    with fwAD.dual_level():
        dual = rnea(fwAD.make_dual(q, qd), qd, qdd)
        np.testing.assert_allclose(fwAD.unpack_dual(dual).tangent, jacobian @ qd)
    moving = q.clone().requires_grad_()
    tau = rnea(moving, qd, qdd)
    (rows,) = torch.autograd.grad(
        tau, moving, torch.eye(7, dtype=q.dtype), is_grads_batched=True
    )
    np.testing.assert_allclose(rows, jacobian)
    hessian = torch.func.hessian(lambda q: rnea(q, qd, qdd).sum())(q)
    twice = torch.autograd.functional.hessian(lambda q: rnea(q, qd, qdd).sum(), q)
    np.testing.assert_allclose(hessian, twice)
    with fwAD.dual_level():  # forward over reverse
        dual = fwAD.make_dual(moving, qd)
        (slope,) = torch.autograd.grad(rnea(dual, qd, qdd).sum(), dual)
        slope = fwAD.unpack_dual(slope).tangent
        np.testing.assert_allclose(slope, hessian @ qd)


def test_a_saved_input_that_was_changed_is_refused(rnea, tensors):
    """As PyTorch does for its own operations: the gradient would be a wrong one."""
    q, qd, qdd = (x[0].clone() for x in tensors)
    tau = rnea(q.requires_grad_(), qd, qdd)
    qd += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        tau.sum().backward()


def test_arrays_may_change_before_the_gradient(rnea, tensors):
    """Arrays of NumPy are copied: PyTorch would not see that they changed."""
    q, qd, qdd = (x[0] for x in tensors)
    wanted = torch.func.jacrev(rnea)(q, qd, qdd).sum(0)
    moving, array = q.clone().requires_grad_(), qd.numpy().copy()
    tau = rnea(moving, array, qdd)
    array[:] = 7.0
    tau.sum().backward()
    np.testing.assert_allclose(moving.grad, wanted)


def test_other_arrays_are_converted_or_refused(rnea, tensors):
    """As a Program does: what lies under a mask is no number to compute with."""
    q, qd, qdd = (x[0] for x in tensors)
    masked = np.ma.masked_array(qd.numpy(), mask=np.arange(7) == 3)
    with pytest.raises(ShapeError, match="qd: wanted an array without masked"):
        rnea(q, masked, qdd)
    with pytest.raises(ShapeError, match="qd: wanted real numbers"):
        rnea(q, qd.numpy() * 1j, qdd)
    wanted = rnea(q, qd, qdd)
    array = qd.numpy()
    for same in (np.ma.masked_array(array), array.astype(">f8"), array.tolist()):
        np.testing.assert_array_equal(rnea(q, same, qdd), wanted)


def test_modes_of_dispatch_see_one_operation(rnea, tensors):
    """A tracer without the compiler keeps the call, not its result as a constant."""
    from torch.fx.experimental.proxy_tensor import make_fx

    one = [x[0] for x in tensors]
    traced = make_fx(lambda *x: 2 * rnea(*x))(*one)
    assert "dyn_core.rnea" in traced.code
    other = [x[1] for x in tensors]
    np.testing.assert_array_equal(traced(*other), 2 * rnea(*other))
