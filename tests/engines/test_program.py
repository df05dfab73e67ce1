"""Programs: shapes, batches, named outputs, parameters, status, slots, numbers."""

import pickle

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines import available
from dyn_core.numbers import scalar

ENGINE = pytest.mark.parametrize("engine", available())


@pytest.fixture(scope="module")
def arm(shipped):
    """Return the 7-joint arm."""
    return shipped["arm7"]


def _state(model, seed=0):
    rng = np.random.default_rng(seed)
    return model.random(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)


@ENGINE
def test_lists_ints_and_float32_are_converted(arm, engine):
    """What NumPy can make float64 of without loss of meaning is taken."""
    rnea = dyn.solver("rnea").build(arm, engine=engine)
    zeros = np.zeros(7)
    wanted = rnea(zeros, zeros, zeros)
    assert wanted.shape == (7,)
    for argument in (
        [0] * 7,
        np.zeros(7, int),
        np.zeros(7, np.float32),
        np.zeros(14)[::2],
    ):
        np.testing.assert_array_equal(rnea(argument, argument, argument), wanted)


@ENGINE
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros(6), r"q: wanted shape \(7,\) or \(batch, 7\), got shape \(6,\)"),
        (np.zeros((2, 3, 7)), "q: wanted"),
        (["a"] * 7, r"q: wanted numbers of shape \(7,\), got \['a', 'a'"),
        ("abc", "q: wanted numbers of shape .*, got 'abc'"),
        ([[1.0], [1.0, 2.0]], "q: wanted"),
        (3.0, "q: wanted"),
    ],
)
def test_wrong_inputs_are_named(arm, engine, bad, message):
    """A ShapeError says which input, what was wanted and what came."""
    rnea = dyn.solver("rnea").build(arm, engine=engine)
    with pytest.raises(dyn.ShapeError, match=message):
        rnea(bad, np.zeros(7), np.zeros(7))


@ENGINE
def test_calls_bind_by_name(arm, engine):
    """Inputs go by position or name; missing, unknown and double ones are refused."""
    rnea = dyn.solver("rnea").build(arm, engine=engine)
    q, qd, qdd = _state(arm)
    np.testing.assert_array_equal(rnea(q, qdd=qdd, qd=qd), rnea(q, qd, qdd))
    with pytest.raises(dyn.ShapeError, match="qdd: wanted an array"):
        rnea(q, qd)
    with pytest.raises(dyn.ShapeError, match="speed: wanted one of"):
        rnea(q, qd, speed=qd)
    with pytest.raises(dyn.ShapeError, match="a second value"):
        rnea(q, qd, qdd, q=q)
    with pytest.raises(dyn.ShapeError, match="arguments"):
        rnea(q, qd, qdd, q, q)


@ENGINE
def test_batches_share_single_inputs(arm, engine):
    """An input without batch axis is shared; an empty batch is legal."""
    rnea = dyn.solver("rnea").build(arm, engine=engine)
    q, qd, qdd = _state(arm)
    Q = np.stack([q, 2 * q, q - 1])
    tau = rnea(Q, qd, qdd)
    assert tau.shape == (3, 7)
    for row, one in zip(tau, Q, strict=True):
        np.testing.assert_allclose(row, rnea(one, qd, qdd), rtol=1e-13, atol=1e-13)
    assert rnea(np.zeros((0, 7)), qd, qdd).shape == (0, 7)
    with pytest.raises(dyn.ShapeError, match="a batch of 3 rows"):
        rnea(Q, Q[:2], qdd)


def test_bits_do_not_depend_on_place_or_size(arm):
    """A row's bits are the same in any batch."""
    rnea = dyn.solver("rnea").build(arm)
    rng = np.random.default_rng(0)
    Q = rng.normal(size=(1300, 7))
    whole = rnea(Q, Q, Q)
    for size in (1, 7, 511, 512, 513):
        part = rnea(Q[:size], Q[:size], Q[:size])
        np.testing.assert_array_equal(part, whole[:size])


@ENGINE
def test_out_must_fit_exactly(arm, engine):
    """`out` is filled and given back; anything that does not fit is refused."""
    rnea = dyn.solver("rnea").build(arm, engine=engine)
    q, qd, qdd = _state(arm)
    out = np.zeros(7)
    assert rnea(q, qd, qdd, out=out) is out
    np.testing.assert_array_equal(out, rnea(q, qd, qdd))
    locked = np.zeros(7)
    locked.flags.writeable = False
    for bad in (np.zeros(6), np.zeros(7, np.float32), [0.0] * 7, locked):
        with pytest.raises(dyn.ShapeError, match="out tau"):
            rnea(q, qd, qdd, out=bad)
    same = q.copy()
    rnea(same, qd, qdd, out=same)
    np.testing.assert_array_equal(same, out)


@ENGINE
def test_several_outputs_have_names(arm, engine):
    """Several outputs come as a named tuple, batched too, and pickle."""
    energy = dyn.solver("energy").build(arm, engine=engine)
    q, qd, _ = _state(arm)
    result = energy(q, qd)
    assert result._fields == ("kinetic", "potential")
    assert isinstance(result.kinetic, float)
    batch = energy(np.stack([q, q]), qd)
    assert batch.kinetic.shape == (2,)
    again = pickle.loads(pickle.dumps(batch))
    np.testing.assert_array_equal(again.potential, batch.potential)
    out = (np.zeros(2), np.zeros(2))
    energy(np.stack([q, q]), qd, out=out)
    np.testing.assert_array_equal(out[0], batch.kinetic)


@ENGINE
def test_programs_pickle(arm, engine):
    """A Program pickles by solver, model and choices."""
    program = dyn.solver("computed_torque").build(
        arm, engine=engine, inverse_dynamics="rnea", joint_friction=True
    )
    again = pickle.loads(pickle.dumps(program))
    q, qd, qdd = _state(arm)
    arguments = (q, qd, q + 0.1, qd, qdd, np.ones(7), np.ones(7))
    np.testing.assert_array_equal(again(*arguments), program(*arguments))
    assert again.engine == engine


def test_finite_is_asked_for(arm):
    """finite=True names the input (and rows); without it NaN in is NaN out."""
    q, qd, qdd = _state(arm)
    bad = qd.copy()
    bad[2] = np.nan
    free = dyn.solver("rnea").build(arm)
    assert np.isnan(free(q, bad, qdd)).any()
    checked = dyn.solver("rnea").build(arm, finite=True)
    with pytest.raises(dyn.NonFiniteError, match="input qd is not finite"):
        checked(q, bad, qdd)
    with pytest.raises(dyn.NonFiniteError, match="rows 1") as caught:
        checked(q, np.stack([qd, bad]), qdd)
    assert caught.value.rows == (1,)
    with pytest.raises(dyn.NonFiniteError):
        dyn.solver("rnea").build(arm, engine="plain")(q, bad, qdd)
    assert np.isnan(dyn.solver("aba").build(arm)(q, bad, qdd)).any()


@ENGINE
def test_parameter_paths_are_inputs(arm, engine):
    """Gravity, payload and armature per call and per row, without a new build."""
    link = arm.frame_names[-1]
    paths = ["gravity", f"{link}.payload", f"{arm.joint_names[0]}.armature"]
    program = dyn.solver("rnea").build(arm, engine=engine, inputs=paths)
    plain = dyn.solver("rnea").build(arm, engine=engine)
    q, qd, qdd = _state(arm)
    wanted = plain(q, qd, qdd)
    np.testing.assert_allclose(program(q, qd, qdd), wanted, rtol=1e-12, atol=1e-12)
    moon = dyn.load_urdf(dyn.robots.path("arm7"), gravity=(0, 0, -1.62))
    lighter = dyn.solver("rnea").build(moon, engine=engine)(q, qd, qdd)
    G = np.array([[0, 0, -9.81], [0, 0, -1.62]])
    rows = program(q, qd, qdd, gravity=G)
    np.testing.assert_allclose(rows, [wanted, lighter], rtol=1e-11, atol=1e-11)
    armature = {paths[2]: arm.armature[1][0] + 2.0}
    more = program(q, qd, qdd, **armature) - wanted
    np.testing.assert_allclose(more, [2 * qdd[0], 0, 0, 0, 0, 0, 0], atol=1e-11)
    payload = np.zeros(10)
    payload[0] = 3.0
    g = (
        dyn.solver("jacobian").build(arm, frame=link, reference="aligned")(q)[5]
        * 9.81
        * 3
    )
    heavy = program(q, 0 * qd, 0 * qdd, **{paths[1]: payload})
    np.testing.assert_allclose(heavy - plain(q, 0 * qd, 0 * qdd), g, atol=1e-10)


def test_link_parameters_change_together(arm):
    """Mass, com and inertia of one link given together are one rigid body."""
    link = arm.frame_names[3]
    names = [f"{link}.mass", f"{link}.com", f"{link}.inertia"]
    program = dyn.solver("crba").build(arm, inputs=names)
    q, _, _ = _state(arm)
    H = dyn.solver("crba").build(arm)(q)
    np.testing.assert_allclose(program(q), H, rtol=1e-12, atol=1e-13)
    changed = program(q, **{names[0]: 2 * arm.frame(link).inertia.m})
    assert np.abs(changed - H).max() > 1e-4


def test_joint_origin_is_a_parameter(arm):
    """The placement of a joint moves with its path."""
    name = arm.joint_names[3]
    program = dyn.solver("forward_kinematics").build(arm, inputs=[f"{name}.origin"])
    q, _, _ = _state(arm)
    still = dyn.solver("forward_kinematics").build(arm)(q)
    np.testing.assert_allclose(program(q), still, atol=1e-14)
    origin = program.defaults[f"{name}.origin"].copy()
    origin[0] += 0.25
    moved = program(q, **{f"{name}.origin": origin})
    np.testing.assert_allclose(np.linalg.norm((moved - still)[-1, :3, 3]), 0.25)


def test_unknown_parameters_and_choices_are_refused(arm):
    """The error lists what would be valid."""
    with pytest.raises(dyn.ModelError, match=r"LINK\.mass"):
        dyn.solver("rnea").build(arm, inputs=["colour"])
    with pytest.raises(dyn.ModelError, match="no link is called 'nowhere'"):
        dyn.solver("rnea").build(arm, inputs=["nowhere.mass"])
    with pytest.raises(dyn.UnsupportedError, match="valid: engine"):
        dyn.solver("rnea").build(arm, speed="high")
    with pytest.raises(dyn.UnsupportedError, match="valid: plain, graph, native"):
        dyn.solver("rnea").build(arm, engine="steam")
    with pytest.raises(dyn.UnsupportedError, match="give frame=, the name of a link"):
        dyn.solver("jacobian").build(arm)


def test_slots_take_only_their_kind(arm):
    """A wrong kind in a slot is refused when building; unknown names list the known."""
    step = dyn.solver("semi_implicit_euler")
    with pytest.raises(dyn.SignatureError, match="slot forward_dynamics needs"):
        step.build(arm, forward_dynamics="rnea")
    with pytest.raises(
        dyn.SolverNotFound, match="valid for forward_dynamics: aba.*dense"
    ):
        step.build(arm, forward_dynamics="abba")
    q, qd, tau = _state(arm)
    one = step.build(arm, forward_dynamics="aba")(q, qd, tau, 1e-3)
    two = step.build(arm, forward_dynamics="dense")(q, qd, tau, 1e-3)
    np.testing.assert_allclose(one.qd_next, two.qd_next, rtol=1e-9)


class _ByNumpy(dyn.authoring.NumpySolver):
    """Forward dynamics that is not traced."""

    name, signature = "by_numpy", dyn.problems.FORWARD_DYNAMICS

    def solve(self, model, q, qd, tau, f_ext):
        """Solve by NumPy."""
        H = dyn.solver("crba").build(model, engine="plain")(q)
        C = dyn.solver("bias").build(model, engine="plain")(q, qd)
        return np.linalg.solve(H, tau - C)


@ENGINE
def test_a_slot_takes_a_solver_that_is_no_text(shipped, engine):
    """It is called between the halves; single states and batches; friction passes."""
    model = shipped["two_link"]
    choices = {"engine": engine, "joint_friction": True}
    rng = np.random.default_rng(5)
    Q, Qd, Tau = rng.normal(size=(3, 4, model.nv))
    rk4 = dyn.solver("rk4")
    foreign = rk4.build(model, forward_dynamics=_ByNumpy(), **choices)
    by_name = rk4.build(model, forward_dynamics="aba", **choices)
    for a, b in zip(foreign(Q, Qd, Tau, 1e-3), by_name(Q, Qd, Tau, 1e-3), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    for a, b in zip(foreign(Q[0], Qd[0], Tau[0], 1e-3), by_name(Q[0], Qd[0], Tau[0], 1e-3),
                    strict=True):  # fmt: skip
        np.testing.assert_allclose(a, b, rtol=1e-10)


def _filling(name):
    return _ByNumpy() if name == "by_numpy" else dyn.solver(name)


def _without_forces(model, q, qd, tau, f_ext, inner):
    """Leave the external forces out."""
    return inner(q, qd, tau)


def _two_of_three(model, q, qd, tau, f_ext, inner):
    """Pass two of the three inputs to the slot."""
    return inner(q, qd)


@pytest.mark.parametrize("filled", ["aba", "by_numpy"])
def test_a_slot_names_the_inputs_that_it_lacks(shipped, filled):
    """A traced solver and one of NumPy refuse a call without the joint forces alike."""
    slots, kind = (
        {"inner": dyn.problems.FORWARD_DYNAMICS},
        dyn.problems.FORWARD_DYNAMICS,
    )
    lacks = dyn.authoring.TracedSolver(
        "lacks", kind, _two_of_three, by_joint=False, slots=slots
    )
    wanted = "slot inner: wanted inputs q, qd, tau, got 2"
    with pytest.raises(dyn.ShapeError, match=wanted):
        zeros = np.zeros((3, 2))
        lacks.build(shipped["two_link"], inner=_filling(filled), engine="plain")(*zeros)


@ENGINE
@pytest.mark.parametrize("filled", ["aba", "by_numpy"])
def test_an_optional_input_that_a_slot_lacks_is_zero(shipped, filled, engine):
    """Also where the whole Program takes it: the algorithm does not pass it on."""
    slots, kind = (
        {"inner": dyn.problems.FORWARD_DYNAMICS},
        dyn.problems.FORWARD_DYNAMICS,
    )
    drops = dyn.authoring.TracedSolver(
        "drops", kind, _without_forces, by_joint=False, slots=slots
    )
    model, (q, qd, tau) = shipped["two_link"], np.full((3, 2), 0.5)
    program = drops.build(
        model, inner=_filling(filled), inputs=["f_ext"], engine=engine
    )
    wanted = dyn.solver("aba").build(model, engine="plain")(q, qd, tau)
    pushed = program(q, qd, tau, np.ones((model.nb, 6)))
    np.testing.assert_allclose(pushed, wanted, rtol=1e-10)


class _Choosy(_ByNumpy):
    """Forward dynamics that refuses states and, in words of Python, torques."""

    name = "choosy"

    def solve(self, model, q, qd, tau, f_ext):
        """Solve where q1 and tau1 are below 2."""
        if q[0] > 2:
            raise dyn.SingularError("joint 1")
        if tau[0] > 2:
            raise dyn.InfeasibleError("torque 1", residual=tau[0])
        return super().solve(model, q, qd, tau, f_ext)


@ENGINE
def test_rows_that_a_solver_in_a_slot_refuses_are_marked(shipped, engine):
    """Each with its own error; the other rows have the bits that they have alone."""
    model, (q, qd, tau) = shipped["two_link"], np.full((3, 5, 2), 0.5)
    q[1, 0] = tau[3, 0] = 3.0
    step = dyn.solver("rk4")
    program = step.build(model, forward_dynamics=_Choosy(), engine=engine)
    good = [0, 2, 4]
    wanted = program(q[good], qd[good], tau[good], 1e-3)
    results, status = program(q, qd, tau, 1e-3, status=True)
    assert np.flatnonzero(status).tolist() == [1, 3]
    errors = [program.failure(k) for k in status[[1, 3]]]
    assert [str(x) for x in errors] == ["singular: joint 1", "infeasible: torque 1"]
    assert errors[1].residual == 3.0
    for a, b in zip(results, wanted, strict=True):
        assert np.isnan(a[[1, 3]]).all()
        np.testing.assert_array_equal(a[good], b)
    one, state = program(q[1], qd[1], tau[1], 1e-3, status=True)
    assert state != 0 and np.isnan(one.q_next).all()
    with pytest.raises(dyn.SingularError, match="joint 1"):
        program(q, qd, tau, 1e-3)


def _pivot(model, q):
    """Return 1/q1; singular at zero."""
    scalar.require(scalar.logical_not(q[0] <= 0), dyn.SingularError, "joint 1")
    scalar.require(q[1] < 5, dyn.InfeasibleError, "joint 2")
    return dyn.authoring.Vector([1 / q[0], q[1]])


def _pivot_program(model, engine):
    """Return _pivot, built for a robot of two joints."""
    signature = dyn.authoring.Signature("pivot", (dyn.authoring.Port("q", ("nq",), "", "position"),),
                              (dyn.authoring.Port("y", ("nv",)),))  # fmt: skip
    solver = dyn.authoring.TracedSolver("pivot", signature, _pivot, by_joint=False)
    return solver.build(model, engine=engine)


@ENGINE
def test_require_raises_with_rows(shipped, engine):
    """One state raises by item; a batch names rows; status=True gives the mask."""
    program = _pivot_program(shipped["two_link"], engine)
    np.testing.assert_array_equal(program([2.0, 1.0]), [0.5, 1.0])
    with pytest.raises(dyn.SingularError, match="joint 1"):
        program([-1.0, 9.0])
    rows = np.array([[1.0, 1.0], [1.0, 9.0], [-1.0, 0.0], [4.0, 0.0]])
    with pytest.raises(dyn.InfeasibleError, match=r"joint 2.*rows 1, 2") as caught:
        program(rows)
    assert caught.value.rows == (1, 2)
    y, status = program(rows, status=True)
    np.testing.assert_array_equal(status == 0, [True, False, False, True])
    assert np.isnan(y[1:3]).all()
    np.testing.assert_array_equal(y[[0, 3]], [[1.0, 1.0], [0.25, 0.0]])


def _turns(model, q, qd):
    """Return a sum over turns whose conditions fail at different ones, and a product."""

    def outer(state):
        y, turn = state
        scalar.require(y < 3.0, dyn.SingularError, "late")

        def inner(state):
            x, k = state
            scalar.require(scalar.logical_not(x > 6.0), dyn.InfeasibleError, "inner")
            return x * 1.5, k + 1.0

        x, _ = scalar.loop((y, 0.0), inner, lambda s: s[1] < qd[0], 3)
        scalar.require(qd[1] - turn < 3.0, dyn.SingularError, "early")
        return y + q[0], turn + 1.0 + 0.0 * x

    y, turns = scalar.loop((q[1], 0.0), outer, lambda s: s[1] < 4.0, 9)
    scalar.require(y < 9.0, dyn.InfeasibleError, "behind")
    return dyn.authoring.Vector([y, turns])


@ENGINE
def test_require_in_a_loop_raises_what_failed_first(shipped, engine):
    """As if the loop ran in Python: by turn, then by place; inner loops too."""
    ports = (
        dyn.authoring.Port("q", ("nq",), "", "position"),
        dyn.authoring.Port("qd", ("nv",)),
    )
    signature = dyn.authoring.Signature(
        "turns", ports, (dyn.authoring.Port("y", ("nv",)),)
    )
    solver = dyn.authoring.TracedSolver("turns", signature, _turns, by_joint=False)
    program = solver.build(shipped["two_link"], engine=engine)
    plain = solver.build(shipped["two_link"], engine="plain")
    items = {
        (0.5, 0.0, 0.0, 0.0): None,
        (0.5, 0.0, 3.0, 3.5): "early",  # in the first turn
        (2.0, 2.0, 0.0, 2.5): "late",  # in the second
        (0.4, 2.5, 9.0, 0.0): "inner",  # 2.5 1.5² < 6 < 2.9 1.5²: in the second turn
        (0.4, 2.5, 9.0, 3.5): "early",  # in the first
        (0.5, 2.9, 9.0, 3.5): "inner",  # in the same turn
        (3.0, 2.9, 0.0, 3.5): "early",
        (2.5, 1.0, 0.0, 0.0): "late",
        (2.5, 7.0, 9.0, 9.0): "late",  # before all others of its turn
        (float("nan"), 0.0, 0.0, 0.0): "late",
    }
    for row, item in items.items():
        if np.isnan(row).any() and engine == "plain":
            continue  # refuses what is not finite
        if item is None:
            np.testing.assert_array_equal(program(row[:2], row[2:]), [2.0, 4.0])
            continue
        with pytest.raises(dyn.DynError) as caught:
            program(row[:2], row[2:])
        assert caught.value.item == item
        if not np.isnan(row).any():
            with pytest.raises(type(caught.value), match=item):
                plain(row[:2], row[2:])
    rows = np.array([row for row in items if not np.isnan(row).any()] * 3)
    y, status = program(rows[:, :2], rows[:, 2:], status=True)
    wanted = [items[tuple(row)] for row in rows]
    got = [program.failure(k).item if k else None for k in status]
    assert got == wanted
    np.testing.assert_array_equal(y[0], [2.0, 4.0])


def test_complex_numbers_carry_derivatives(arm):
    """A complex step through the algorithm gives dtau/dq; the engine's inputs stay real."""
    rnea = dyn.solver("rnea").build(arm)
    q, qd, qdd = _state(arm)
    step = np.zeros(7, complex)
    step[1] = 1e-30j
    exact = rnea(q + step, qd, qdd).imag / 1e-30
    h = 1e-6
    e = np.eye(7)[1] * h
    near = (rnea(q + e, qd, qdd) - rnea(q - e, qd, qdd)) / (2 * h)
    np.testing.assert_allclose(exact, near, rtol=1e-7, atol=1e-8)


def test_counting_numbers_count(shipped):
    """The cost of RNEA grows by the same amount for each joint of a chain."""
    from dyn_core.testing.models import chain

    totals = []
    for n in (4, 5, 6, 7):
        program = dyn.solver("rnea").build(chain(n), engine="plain")
        cost = dyn.count(program, np.ones(3 * n))
        assert cost["trig"] == 2 * n
        totals.append(cost["mul"] + cost["add"])
    assert len(set(np.diff(totals))) == 1


def test_numbers_give_the_same_bits_counted_or_not(shipped):
    """Counting does not change the result."""
    from dyn_core.engines.plain import Counting

    program = dyn.solver("rnea").build(shipped["two_link"], engine="plain")
    numbers = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    counted = program.function([Counting(x) for x in numbers])
    assert [x.value for x in counted] == program.function(numbers)


@ENGINE
@pytest.mark.parametrize("robot", ["quadruped", "every_joint", "two_link"])
def test_matrices_come_dense_packed_or_sparse(shipped, engine, robot, full):
    """Each form holds what the dense one does; what sparse leaves out is zero.

    One large robot on one engine, all with --full: 12 Programs take long to make.
    """
    once = {"quadruped": "none of them", "every_joint": "graph"}
    if once.get(robot, engine) != engine and not full:
        pytest.skip("takes long: with --full")
    model = shipped[robot]
    rng = np.random.default_rng(8)
    q, qd, qdd = model.random(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
    for name, args in (
        ("crba", (q,)), ("id_derivatives", (q, qd, qdd)),
        ("mass_matrix_inverse", (q,)), ("fd_derivatives", (q, qd, qdd)),
    ):  # fmt: skip
        solver = dyn.solver(name)
        full = solver.build(model, engine=engine)
        whole = dict(
            zip([p.name for p in full.outputs], _tuple(full(*args)), strict=True)
        )
        for form in ("packed", "sparse"):
            program = solver.build(model, engine=engine, matrices=form)
            assert "dense" not in [p.name for p in program.inputs]
            for port, output in zip(
                program.outputs, _tuple(program(*args)), strict=True
            ):
                assert output.shape == port.shape
                again, wanted = program.dense(port.name, output), whole[port.name]
                scale = np.abs(wanted).max()
                np.testing.assert_allclose(again, wanted, rtol=0, atol=1e-13 * scale)
                if port.places:
                    zero = program.dense(port.name, np.ones(port.shape)) == 0
                    assert not wanted[zero].any()
            rows = [np.stack([x, x]) for x in args]
            for port, output in zip(
                program.outputs, _tuple(program(*rows)), strict=True
            ):
                again = program.dense(port.name, output[1])
                np.testing.assert_array_equal(
                    program.dense(port.name, output)[1], again
                )
                np.testing.assert_allclose(
                    again, whole[port.name], rtol=1e-9, atol=1e-9
                )


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)


def test_sparse_matrices_are_as_large_as_the_tree_asks(shipped):
    """A quadruped: 6 x 6 for the base, each leg with the base and itself."""
    model = shipped["quadruped"]
    H = dyn.solver("crba").build(model, matrices="sparse").outputs[0]
    assert H.size == 21 + 4 * (3 * 6 + 6)
    packed = dyn.solver("crba").build(model, matrices="packed").outputs[0]
    assert packed.size == 18 * 19 // 2
    slopes = dyn.solver("id_derivatives").build(model, matrices="sparse").outputs
    assert [p.size for p in slopes] == [36 + 4 * (2 * 3 * 6 + 9)] * 2 + [H.size]
    with pytest.raises(dyn.UnsupportedError, match="valid: dense, packed, sparse"):
        dyn.solver("crba").build(model, matrices="banded")
    with pytest.raises(dyn.UnsupportedError, match="'packed' changes nothing in forw"):
        _ByNumpy().build(model, matrices="packed")


def test_an_option_that_is_no_truth_value_is_refused(shipped):
    """ "no" would count as True and switch friction on."""
    rnea = dyn.solver("rnea")
    for option in ("joint_friction", "joint_springs", "finite", "wait"):
        for value in ("no", "False", 1, None):
            with pytest.raises(
                dyn.UnsupportedError, match=f"{option} .*valid: True, False"
            ):
                rnea.build(shipped["arm7"], **{option: value})
    for value in ("a", 1.5, 0):
        with pytest.raises(dyn.UnsupportedError, match="threads .*whole number"):
            rnea.build(shipped["arm7"], threads=value)


def test_an_unknown_argument_says_what_would_do(shipped):
    """An optional input asks for another build; a misspelt one names its neighbour."""
    program = dyn.solver("rnea").build(shipped["arm7"], engine="plain")
    zero = np.zeros(7)
    with pytest.raises(dyn.ShapeError, match=r"built with inputs=\['f_ext'\]"):
        program(zero, zero, zero, f_ext=np.zeros((7, 6)))
    with pytest.raises(dyn.ShapeError, match="did you mean 'qdd'"):
        program(zero, zero, qddd=zero)


def test_complex_numbers_come_one_state_at_a_time():
    """Neither a batch nor `out` goes with them."""
    from dyn_core.testing.models import chain

    rnea = dyn.solver("rnea").build(chain(1), engine="graph")
    state = np.array([0.1 + 1e-30j]), np.ones(1), np.ones(1)
    assert rnea(*state).dtype == complex
    with pytest.raises(dyn.UnsupportedError, match="one state at a time"):
        rnea(*state, out=np.zeros(1, complex))
    with pytest.raises(dyn.UnsupportedError, match="one state at a time"):
        rnea(*(np.tile(x, (2, 1)) for x in state))


@ENGINE
def test_complex_numbers_have_a_status(shipped, engine):
    """With status=True a state without a result has NaN, and its error can be had."""
    program = _pivot_program(shipped["two_link"], engine)
    y, status = program([2.0 + 1e-30j, 1.0], status=True)
    assert (y.tolist(), status) == (program([2.0 + 1e-30j, 1.0]).tolist(), 0)
    for q, error, item in (
        ([0j, 9.0], dyn.SingularError, "joint 1"),
        ([1.0 + 0j, 9.0], dyn.InfeasibleError, "joint 2"),
        ([1.0 + 0j, np.nan], dyn.NonFiniteError, "finite"),
    ):
        with pytest.raises(error, match=item):
            program(q)
        y, status = program(q, status=True)
        assert y.dtype == complex and np.isnan(y).all()
        failure = program.failure(status)
        assert isinstance(failure, error) and item in str(failure)
