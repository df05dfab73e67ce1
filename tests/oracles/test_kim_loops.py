"""Worked cases E and F: a four-bar and a five-bar, and what their solvers owe."""

import math

import numpy as np
import pytest
from least_norm import least_norm

import dyn_core as dyn
from dyn_core.engines import available
from dyn_core.model import Build, Description, JointSpec, LinkSpec, assemble
from dyn_core.spatial import RigidInertia
from dyn_core.testing import TOLERANCES, random_model, scaled_error
from dyn_core.testing.case import derivative

REL = TOLERANCES["reference"]
ENGINE = pytest.mark.parametrize("engine", available())
Z = (0.0, 0.0, 1.0)


def _near(got, wanted, tol=REL):
    assert scaled_error(got, wanted) <= tol, (got, wanted)


def _bars(rows, loops):
    """Make a planar chain of bars (start of its pin in the parent, m, c, Izz)."""
    links, joints = [LinkSpec("b0", RigidInertia.zero())], []
    for k, (xyz, m, c, Izz) in enumerate(rows, 1):
        I = RigidInertia.of(m, (*c, 0.0), np.diag((Izz, Izz, Izz)).tolist())
        links.append(LinkSpec(f"b{k}", I))
        joints.append(JointSpec(f"j{k}", "revolute", f"b{k - 1}", f"b{k}", xyz, axis=Z))
    build = Build(
        Description("bars", tuple(links), tuple(joints)), gravity=(0.0, -9.81, 0.0)
    )
    return assemble(build).with_loops(*loops)


BAR1, BAR2, BAR3 = (
    ((0.0, 0.0, 0.0), 1.2, (0.2, 0.03), 0.03),
    ((0.5, 0.0, 0.0), 2.0, (0.6, -0.05), 0.3),
    ((1.3, 0.0, 0.0), 0.9, (0.5, 0.04), 0.08),
)


@pytest.fixture(scope="module")
def four_bar():
    """Return case E: the last pin is cut."""
    pin = dyn.make_loop(
        "D", "pin", "b3", at_b={"xyz": (1.02, 0, 0)}, at_a={"xyz": (1.98, 0, 0)}
    )
    return _bars((BAR1, BAR2, BAR3), [pin])


QE = (0.927295218001612, -0.532504098301851, -1.47563012024093)
QDE = (2, -2.7, 1.2)
TAUE = (1.5, -0.4, 0.3)


def _solve(name, model, *args, engine="native", **choices):
    return dyn.solver(name).build(model, engine=engine, **choices)(*args)


@ENGINE
def test_case_e_constraints_and_forward(four_bar, engine):
    """A, its rate, and forward dynamics with the pin's force."""
    f, A, bias = _solve("loop_constraints", four_bar, QE, QDE, engine=engine)
    _near(f, [0, 0], 1e-14)
    _near(A, [[0, 0.4, 0.9], [1.98, 1.68, 0.48]])
    _near(bias, [-1.908, -1.62])
    got = _solve("loop_forward_dynamics", four_bar, QE, QDE, TAUE, engine=engine)
    _near(got.qdd, [-3.41569151490586, 5.02191081785018, -0.111960363488969])
    _near(got.lambda_, [-5.93317752021907, 14.9827899037617])
    _near(got.rate, [0, 0], 1e-14)
    _near(A @ got.qdd + bias, [0, 0], 1e-11)
    qdd = _solve("aba_loops", four_bar, QE, QDE, TAUE, engine=engine)
    _near(qdd, got.qdd)


@ENGINE
def test_case_e_inverse(four_bar, engine):
    """One motor, free and loaded passive joints."""
    qdd = (3, -3.63927272727273, 3.73745454545455)
    one = {"active": ["j1"], "engine": engine}
    tau, x = _solve("loop_inverse_dynamics", four_bar, QE, QDE, qdd, (0, 0), **one)
    _near(tau, [4.66351605018511])
    _near(x, [-5.93160090796904, 15.0950536008377])
    tau, x = _solve("loop_inverse_dynamics", four_bar, QE, QDE, qdd, (-0.4, 0.3), **one)
    _near(tau, [3.94351605018511])
    _near(x, [-6.45887363524176, 15.458689964474])


@ENGINE
def test_case_e_hybrid(four_bar, engine):
    """Given accelerations of one joint, forces of the others."""

    def solve(joint, qdd_u, tau_v):
        return _solve(
            "loop_hybrid_dynamics", four_bar, QE, QDE, [qdd_u], tau_v,
            prescribed=[joint], engine=engine,
        )  # fmt: skip

    got = solve("j1", 3.0, (-0.4, 0.3))
    _near(got.tau_u, [3.94351605018511])
    _near(got.qdd_v, [-3.63927272727273, 3.73745454545455])
    got = solve("j2", -1.5, (1.5, 0.3))
    _near(got.tau_u, [-1.76294722978401])
    _near(got.qdd_v, [1.41535353535354, 2.78666666666667])
    _near(got.lambda_, [-6.82464627335377, 16.2704270279374])


QDDE = (3, -3.63927272727273, 3.73745454545455)


def test_case_e_redundant_motors(four_bar):
    """Least torques and least constraint forces."""

    def solve(active, tau_p, objective):
        return _solve(
            least_norm("loop_inverse_dynamics"), four_bar, QE, QDE, QDDE, tau_p,
            active=active, objective=objective, engine=None,
        )  # fmt: skip

    tau, x = solve(["j1", "j2", "j3"], [], "torque")
    _near(tau, [1.46536246667246, -1.97823933000782, 0.879217480003477])
    _near(x, [-7.76996472979449, 16.7102826834198])
    tau, x = solve(["j1", "j3"], [0.0], "torque")
    _near(tau, [3.42905591925376, 2.05743355155225])
    _near(x, [-8.55015270085372, 15.7185183134293])
    tau, x = solve(["j1", "j3"], [0.0], "force")
    _near(tau, [8.91326923046027, -7.08292196712528])
    _near(x, [3.08302705019041, 12.9487136107997])


def test_case_e_motion(four_bar):
    """Simulated for 0.3 s: the bars' angles, and energy."""
    step = dyn.solver("rk4").build(four_bar, forward_dynamics="aba_loops")
    energy = dyn.solver("energy").build(four_bar)
    q, qd = np.array(QE), np.array(QDE, float)
    start = sum(energy(q, qd))
    for _ in range(600):
        q, qd = step(q, qd, np.zeros(3), 5e-4)
    np.testing.assert_allclose([q[0], qd[0]], [1.373620292, 1.562479131], atol=1e-8)
    angles = [q[0] + q[1], q.sum()]
    np.testing.assert_allclose(angles, [0.247417146, -0.915432229], atol=1e-8)
    np.testing.assert_allclose(sum(energy(q, qd)), start, atol=1e-9)


@ENGINE
def test_case_e_with_a_weld(engine):
    """The last pin kept as a joint, and its body welded: three rows."""
    last = ((1.02, 0.0, 0.0), 0.5, (0.1, 0.02), 0.01)
    weld = dyn.make_loop("D", "planar_weld", "b4", at_a={"xyz": (1.98, 0, 0)})
    model = _bars((BAR1, BAR2, BAR3, last), [weld])
    q, qd = (*QE, 1.08083900054117), (*QDE, -0.5)
    got = _solve("loop_forward_dynamics", model, q, qd, (*TAUE, 0.25), engine=engine)
    _near(
        got.qdd,
        [-3.5797914068019, 5.24344567190984, -0.210420298626594, -1.45323396648134],
    )
    _near(got.lambda_, [-5.69245859226089, 19.9703143510837, 0.2405])


@pytest.fixture(scope="module")
def five_bar():
    """Return case F: all pins kept, the last body welded."""
    rows = (
        BAR1, BAR2, ((1.3, 0.0, 0.0), 0.7, (0.25, 0.02), 0.02),
        ((0.5, 0.0, 0.0), 0.9, (0.3, -0.04), 0.05), ((0.65, 0.0, 0.0), 0.4, (0.05, 0.0), 0.01),
    )  # fmt: skip
    weld = dyn.make_loop("E", "planar_weld", "b5", at_a={"xyz": (2.15, 0, 0)})
    return _bars(rows, [weld])


QF = (
    0.927295218001612,
    -0.532504098301851,
    -1.03829222849305,
    -0.532504098301851,
    1.17600520709514,
)
QDF = (1.5, -1.93392857142857, 0.110714285714286, 1.12321428571429, -0.8)
TAUF = (2, -0.5, 0.3, 0.2, 1)
QDDF = (0.7, -1.81420337554665, 6.06633040269679, -6.05212702715015, 1.1)


@ENGINE
def test_case_f(five_bar, engine):
    """Constraints, forward, inverse with two motors, hybrid."""
    f, A, bias = _solve("loop_constraints", five_bar, QF, QDF, engine=engine)
    _near(f, [0, 0, 0], 1e-13)
    _near(A, [[0, 0.4, 0.9, 0.6, 0], [2.15, 1.85, 0.65, 0.25, 0], [1] * 5])
    _near(bias, [-1.102739795918, -0.578806760204, 0])
    got = _solve("loop_forward_dynamics", five_bar, QF, QDF, TAUF, engine=engine)
    _near(
        got.qdd,
        [
            3.42283261116396,
            -7.62508601421654,
            20.3483752309094,
            -23.6012725103558,
            7.45515068249896,
        ],
    )
    _near(got.lambda_, [-4.9612448898563, 23.1459145815164, -0.8038])
    two = {"active": ["j1", "j5"], "engine": engine}
    tau, x = _solve("loop_inverse_dynamics", five_bar, QF, QDF, QDDF, (0, 0, 0), **two)
    _near(tau, [2.00360042208388, -1.20749625590861])
    _near(x, [-8.74714821742036, 23.1074863904821, 1.40369625590861])
    got = _solve(
        "loop_hybrid_dynamics", five_bar, QF, QDF, [0.7], (-0.5, 0.3, 0.2, 1),
        prescribed=["j1"], engine=engine,
    )  # fmt: skip
    _near(got.tau_u, [1.00278188681011])
    _near(
        got.qdd_v,
        [-3.65830440551139, 17.3544639800567, -21.7549267065469, 7.35876713200156],
    )
    _near(got.lambda_, [-4.99874861027313, 23.2193224077792, -0.8038])
    got = _solve(
        "loop_hybrid_dynamics", five_bar, QF, QDF, (0.7, 1.1), (-0.5, 0.3, 0.2),
        prescribed=["j1", "j5"], engine=engine,
    )  # fmt: skip
    _near(got.tau_u, [1.08752899351245, -1.39410339876575])
    _near(got.lambda_, [-9.53286250313465, 23.4467721047678, 1.59030339876575])


def test_case_f_redundant_and_infeasible(five_bar):
    """Three and five motors; one motor cannot do it."""

    def solve(active, objective):
        return _solve(
            least_norm("loop_inverse_dynamics"), five_bar, QF, QDF, QDDF,
            [0.0] * (5 - len(active)),
            active=active, objective=objective, engine=None,
        )  # fmt: skip

    three = ["j1", "j2", "j5"]
    tau, x = solve(three, "torque")
    _near(tau, [0.846863092468265, -0.79971963528981, -1.44312793416364])
    _near(x, [-9.31837652834166, 23.5359076236731, 1.63932793416364])
    tau, x = solve(three, "force")
    _near(tau, [33.1580750182911, 21.5388960171309, 5.13878560628175])
    _near(x, [6.63777750910171, 11.5687920955906, -4.94258560628175])
    tau, x = solve(list(five_bar.joint_names), "torque")
    _near(
        tau,
        [
            0.766277902642753,
            -0.994814032868057,
            0.098567750227795,
            0.515357729903679,
            -0.38538934990617,
        ],
    )
    _near(x, [-8.63501382032622, 24.0653605418512, 0.58158934990617])
    with pytest.raises(dyn.InfeasibleError, match="without motors, j2"):
        solve(["j1"], "torque")
    with pytest.raises(dyn.UnsupportedError, match="3 constraint rows and 4 passive"):
        dyn.solver("loop_inverse_dynamics").build(five_bar, active=["j1"])


@pytest.mark.parametrize(
    ("solver", "option"),
    [
        ("loop_inverse_dynamics", "active"),
        ("loop_id_derivatives", "active"),
        ("loop_hybrid_dynamics", "prescribed"),
        ("loop_hd_derivatives", "prescribed"),
        ("loop_independent_inertia", "independent"),
        ("loop_independent_bias", "independent"),
        ("loop_independent_gravity", "independent"),
    ],
)
def test_joints_in_another_order_are_refused(five_bar, solver, option):
    """The results are in the order of the coordinates, whatever the list says."""
    said = f"option {option}: j5, j1; valid: in the order of the coordinates: j1, j5"
    with pytest.raises(dyn.UnsupportedError, match=said):
        dyn.solver(solver).build(five_bar, **{option: ["j5", "j1"]})
    # No order shows: the forces of a law are those of all joints.
    law = dyn.solver("loop_computed_torque")
    law.build(five_bar, independent=["j5", "j1"], active=["j5", "j1"], engine="graph")


def test_redundant_rows_are_named(four_bar):
    """A planar loop closed by a spatial weld has dependent rows: named, or least norm."""
    weld = dyn.make_loop(
        "D", "point", "b3", at_b={"xyz": (1.02, 0, 0)}, at_a={"xyz": (1.98, 0, 0)}
    )
    model = _bars((BAR1, BAR2, BAR3), [weld])
    with pytest.raises(dyn.SingularError, match="loop D, row 2"):
        _solve("loop_forward_dynamics", model, QE, QDE, TAUE)
    got = _solve(least_norm("loop_forward_dynamics"), model, QE, QDE, TAUE, engine=None)
    _near(got.qdd, [-3.41569151490586, 5.02191081785018, -0.111960363488969])
    _near(got.lambda_, [-5.93317752021907, 14.9827899037617, 0])


def test_a_start_that_closes_the_loop(four_bar):
    """Projection finds the nearest closed position, and keeps what is fixed."""
    off = np.array(QE) + [0.0, 0.05, -0.08]
    q = dyn.close_loops(four_bar, off, fixed=["j1"])
    _near(q, QE, 1e-11)
    f, A, _ = _solve("loop_constraints", four_bar, q, np.zeros(3))
    assert np.abs(f).max() < 1e-12
    qd = dyn.close_rates(four_bar, q, [2.0, 0.0, 0.0], fixed=["j1"])
    _near(qd, QDE, 1e-11)
    with pytest.raises(dyn.InfeasibleError, match="loop D"):
        dyn.close_loops(four_bar, [math.pi, 0.0, 0.0], fixed=["j1", "j2", "j3"])
    free = dyn.close_loops(four_bar, off)
    assert np.abs(free - off).max() < 0.2


def test_stabilisation_pulls_a_state_back(four_bar):
    """Baumgarte's terms make f'' = -2 a f' - b² f; without them drift stays."""
    off, qd = np.array(QE) + [0.0, 1e-3, 0.0], np.array(QDE, float)
    program = dyn.solver("loop_forward_dynamics").build(four_bar, alpha=5.0, beta=5.0)
    got = program(off, qd, TAUE)
    _, A, bias = _solve("loop_constraints", four_bar, off, qd)
    _near(A @ got.qdd + bias, -10 * got.rate - 25 * got.f, 1e-12)
    assert np.abs(got.f).max() > 1e-4


def _random_loops(seed):
    """Return a random tree with a loop of each kind, or None where they depend."""
    rng = np.random.default_rng(seed)
    kinds = ("revolute", "prismatic", "spherical", "planar")
    model = random_model(seed, size=7, kinds=kinds)
    names = list(model.frame_names)
    frame = {"xyz": rng.normal(size=3).tolist(), "rpy": rng.normal(size=3).tolist()}
    single = [n for n in model.joint_names if model.joint_kind(n) in kinds[:2]]
    if len(single) < 2:
        return None
    model = model.with_loops(
        dyn.make_loop("one", "distance", names[-1], None, at_a=frame, length=1.0),
        dyn.make_loop("two", "axes", names[-2], names[1], at_b=frame, axes=["x", "ry"]),
        dyn.user_loop(
            "three", lambda R, p: [p[0] * p[1] - R[2, 1]], names[-1], names[2]
        ),
        dyn.coupling("four", single[:2], lambda a, b: [a * a - 0.3 * b]),
    )
    q, qd, tau = model.random(rng), *rng.normal(size=(2, model.nv))
    _, A, _ = _solve("loop_constraints", model, q, qd, engine="graph")
    H = dyn.solver("crba").build(model, engine="graph")(q)
    good = np.linalg.cond(A @ np.linalg.solve(H, A.T)) < 1e4
    return (model, H, q, qd, tau) if good else None


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("part", "engine"),
    [
        pytest.param(part, engine, marks=[pytest.mark.full] * (part % 2 != k))
        for part in range(4)
        for k, engine in enumerate(("graph", "native"))
    ],
)
def test_random_loops_obey_the_kkt_system(part, engine):
    """Random trees with random loops of every kind against dense algebra.

    Each on one engine, on both with --full.
    """
    candidates = (_random_loops(seed) for seed in range(10 * part, 10 * part + 10))
    model, H, q, qd, tau = next(x for x in candidates if x is not None)
    f, A, bias = _solve("loop_constraints", model, q, qd, engine=engine)
    program = dyn.solver("loop_constraints").build(model, engine="graph")

    def rows_at_time(t):
        return program(model.integrate(q, qd * t), qd)

    slope = derivative(lambda t: rows_at_time(t)[0], 1e-3)
    np.testing.assert_allclose(A @ qd, slope, rtol=1e-7, atol=1e-7)
    moved = derivative(lambda t: rows_at_time(t)[1] @ qd, 1e-3)
    np.testing.assert_allclose(bias, moved, rtol=1e-6, atol=1e-6)
    C = dyn.solver("bias").build(model)(q, qd)
    m = len(f)
    K = np.block([[H, -A.T], [A, np.zeros((m, m))]])
    wanted = np.linalg.solve(K, np.concatenate([tau - C, -bias]))
    got = _solve("loop_forward_dynamics", model, q, qd, tau, engine=engine)
    assert scaled_error(got.lambda_, wanted[model.nv :]) < 1e-8
    assert scaled_error(H @ got.qdd, H @ wanted[: model.nv]) < 1e-8


def test_trees_are_not_taken_for_loops(four_bar):
    """Solvers of trees refuse a robot with loops and name the solver that takes it."""
    cases = {"rnea": "rnea_loops", "aba": "aba_loops", "dense": "aba_loops"}
    cases |= {"hybrid_mask": "hybrid_mask_loops", "joint_reactions": ".*_loops"}
    for name, other in cases.items():
        with pytest.raises(dyn.UnsupportedError, match=f"loops .D. .*valid: {other};"):
            dyn.solver(name).build(four_bar)
    with pytest.raises(dyn.UnsupportedError, match="loops .D. .*valid: model.without"):
        dyn.solver("response").build(four_bar)
    dyn.solver("aba").build(four_bar.without_loops())


def _with_one_motor():
    """Return the four-bar from a sidecar, its pins passive."""
    from dyn_core.model import sidecar

    pin = {"name": "D", "kind": "pin", "b": "b3", "at_b": {"xyz": [1.02, 0, 0]},
           "at_a": {"xyz": [1.98, 0, 0]}}  # fmt: skip
    open_tree = _bars((BAR1, BAR2, BAR3), [])
    extras = {
        "loops": [pin],
        "joints": {"j2": {"passive": True}, "j3": {"passive": True}},
    }
    description = sidecar.apply(open_tree.build.description, extras)
    return open_tree.rebuilt(description=description)


def test_computed_torque_of_a_four_bar():
    """One motor follows a reference; the passive joints get no torque."""
    model = _with_one_motor()
    assert model.active_joints == ("j1",)
    law = dyn.solver("computed_torque").build(model, inverse_dynamics="rnea_loops")
    step = dyn.solver("semi_implicit_euler").build(model, forward_dynamics="aba_loops")
    q, qd = np.array(QE), np.zeros(3)
    goal, still = q.copy(), np.zeros(3)
    goal[0] += 0.3
    for _ in range(1500):
        tau = law(q, qd, goal, still, still, np.full(3, 64.0), np.full(3, 16.0))
        assert tau[1] == tau[2] == 0.0
        q, qd = step(q, qd, tau, 1e-3)
    assert abs(q[0] - goal[0]) < 1e-4
    f, _, _ = _solve("loop_constraints", model, q, qd)
    assert np.abs(f).max() < 1e-5


def test_a_loop_to_an_unknown_link_is_refused():
    """The error names the link."""
    from dyn_core.model import sidecar

    model = _bars((BAR1, BAR2, BAR3), [])
    loops = {"loops": [{"kind": "pin", "b": "b9"}]}
    with pytest.raises(dyn.DynError, match="b9"):
        description = sidecar.apply(model.build.description, loops)
        model.rebuilt(description=description)


@pytest.mark.parametrize("engine", ["graph", "native"])
def test_derivatives_of_a_linkage(four_bar, engine):
    """Forward mode through the loops' texts, against differences along the loop."""
    model = four_bar
    q, qd, tau = np.array(QE), np.array(QDE, float), np.array(TAUE)
    program = dyn.solver("fd_directional_forward_mode").build(
        model, forward_dynamics="aba_loops", engine=engine
    )
    fd = dyn.solver("aba_loops").build(model)
    rng = np.random.default_rng(0)
    for _ in range(3):
        dq, dqd, dtau = rng.normal(size=(3, 3))
        qdd, dqdd = program(q, qd, tau, dq, dqd, dtau)
        _near(qdd, fd(q, qd, tau))
        wanted = derivative(
            lambda t, d=(dq, dqd, dtau): fd(
                q + t * d[0], qd + t * d[1], tau + t * d[2]
            ),
            1e-3,
        )
        _near(dqdd, wanted, 1e-7)
    mass = dyn.solver("fd_directional_forward_mode").build(
        model, forward_dynamics="aba_loops", parameter="b2.mass", engine=engine
    )
    zero = np.zeros(3)
    _, slope = mass(q, qd, tau, zero, zero, zero, 1.0)
    heavy = dyn.solver("aba_loops").build(model, inputs=["b2.mass"])
    wanted = derivative(lambda t: heavy(q, qd, tau, 2.0 + t), 1e-2)
    _near(slope, wanted, 1e-8)
    for name in ("fd_directional", "id_derivatives", "hybrid", "regressor"):
        with pytest.raises(dyn.UnsupportedError, match="has loops"):
            dyn.solver(name).build(model)


def test_cost_of_loops_grows_as_claimed():
    """Operations of forward dynamics: affine in n for two rows; in m at most cubic."""
    from dyn_core.testing.models import chain

    def count(n, m):
        model = chain(n)
        rods = [
            dyn.make_loop(
                f"r{k}",
                "distance",
                f"b{n - k}",
                None,
                at_a={"xyz": (1, k, 1)},
                length=1.0,
            )
            for k in range(m)
        ]
        program = dyn.solver("loop_forward_dynamics").build(
            model.with_loops(*rods), engine="graph"
        )
        return len(program.graph.nodes)

    sizes = [count(n, 2) for n in (6, 10, 14)]
    steps = np.diff(sizes)
    assert abs(steps[1] - steps[0]) <= 0.02 * steps[0]
    rows = [count(10, m) - count(10, 0) for m in (1, 2, 4)]
    assert rows[2] < 4**2 * rows[0]


@pytest.mark.parametrize("engine", ["graph", "native"])
def test_masks_and_derivatives_of_hybrid_loops(four_bar, engine):
    """A mask chooses like `prescribed`; its derivative meets differences."""
    state = np.array(QE), np.array(QDE, float)
    mask = dyn.solver("hybrid_mask_loops").build(four_bar, engine=engine)
    tau, qdd = mask(*state, [1, 0, 0], [3.0, 0, 0], [0, -0.4, 0.3])
    _near(tau, [3.94351605018511, -0.4, 0.3])
    _near(qdd, QDDE)
    program = dyn.solver("hd_directional_forward_mode").build(
        four_bar, hybrid_dynamics="hybrid_mask_loops", prescribed=["j1"], engine=engine
    )
    rng = np.random.default_rng(1)
    dq, dqd = rng.normal(size=(2, 3))
    da, dt = rng.normal(size=1), rng.normal(size=2)
    got = program(*state, [3.0], [-0.4, 0.3], dq, dqd, da, dt)

    def moved(t):
        q, qd = state[0] + t * dq, state[1] + t * dqd
        changes = (
            np.array([3.0 + t * da[0], 0, 0]),
            np.array([0, -0.4, 0.3]) + t * np.array([0, *dt]),
        )
        tau, qdd = mask(q, qd, [1, 0, 0], *changes)
        return np.array([tau[0], *qdd[1:]])

    _near([*got[2], *got[3]], derivative(moved, 1e-3), 1e-7)


def test_derivatives_of_inverse_dynamics_with_loops():
    """Forward mode through rnea_loops, against differences."""
    model = _with_one_motor()
    program = dyn.solver("id_directional_forward_mode").build(
        model, inverse_dynamics="rnea_loops"
    )
    rnea = dyn.solver("rnea_loops").build(model)
    rng = np.random.default_rng(2)
    directions = rng.normal(size=(3, 3))
    state = np.array(QE), np.array(QDE, float), np.array(QDDE, float)
    _, slope = program(*state, *directions)
    wanted = derivative(
        lambda t: rnea(*(x + t * d for x, d in zip(state, directions, strict=True))),
        1e-3,
    )
    _near(slope, wanted, 1e-7)


def test_more_rows_than_free_coordinates(five_bar):
    """Accelerations that fit give least torques; others are refused with the residual."""

    def solve(qdd_u, objective="torque"):
        program = least_norm("loop_hybrid_dynamics").build(
            five_bar, prescribed=["j1", "j2", "j5"], objective=objective
        )
        return program(QF, QDF, qdd_u, [0.0, 0.0])

    fitting = np.array(QDDF)[[0, 1, 4]]
    got = solve(fitting)
    _near(got.tau_u, [0.846863092468265, -0.79971963528981, -1.44312793416364])
    _near(got.qdd_v, np.array(QDDF)[[2, 3]])
    _near(got.lambda_, [-9.31837652834166, 23.5359076236731, 1.63932793416364])
    got = solve(fitting, "force")
    _near(got.tau_u, [33.1580750182911, 21.5388960171309, 5.13878560628175])
    with pytest.raises(dyn.InfeasibleError, match="do not fit the loops"):
        solve(fitting + [0.0, 0.1, 0.0])


def test_loops_keep_the_order_of_coordinates(four_bar):
    """A reordered robot stays so with and without its loops."""
    turned = four_bar.reorder(["j3", "j1", "j2"])
    assert turned.without_loops().joint_names == ("j3", "j1", "j2")
    order = [2, 0, 1]
    q, qd, tau = (np.array(x, float)[order] for x in (QE, QDE, TAUE))
    wanted = np.array([-3.41569151490586, 5.02191081785018, -0.111960363488969])[order]
    plain = "loop_forward_dynamics"
    for chosen in (plain, least_norm(plain)):
        _near(_solve(chosen, turned, q, qd, tau, engine=None).qdd, wanted)


def test_too_many_motors_are_refused_in_words(four_bar):
    """Without passive joints a linkage's torques are not unique."""
    with pytest.raises(dyn.UnsupportedError, match="3 active .* 1 freedoms.*passive"):
        dyn.solver("rnea_loops").build(four_bar)


def test_what_loops_change_is_refused(four_bar):
    """No solver of trees answers for forces or motions of a robot with loops."""
    for name in ("response", "delassus", "joint_reactions", "articulated_bodies"):
        with pytest.raises(dyn.UnsupportedError, match="has loops"):
            dyn.solver(name).build(four_bar)
    for name in ("crba", "bias", "gravity", "jacobian"):
        choices = {"frame": "b3"} if name == "jacobian" else {}
        dyn.solver(name).build(four_bar, **choices)


@pytest.mark.parametrize("engine", available())
def test_projection_closes_places_and_rates(four_bar, engine):
    """projected_euler brings an open linkage back: both residuals shrink as squares."""
    step = dyn.solver("projected_euler").build(four_bar, engine=engine)
    rows = dyn.solver("loop_constraints").build(four_bar)
    q = np.array(QE, float) + [1e-3, -2e-3, 1.5e-3]
    qd = np.array(QDE, float) + [0.02, -0.01, 0.03]
    f0, A, _ = rows(q, qd)
    rate0 = A @ qd
    assert np.abs(f0).max() > 1e-4 and np.abs(rate0).max() > 1e-3
    q, qd = step(q, qd, np.zeros(3), 1e-6)
    f, A, _ = rows(q, qd)
    assert np.abs(f).max() < 20 * np.abs(f0).max() ** 2
    assert np.abs(A @ qd).max() < 20 * np.abs(f0).max() * np.abs(qd).max()
    for _ in range(3):
        q, qd = step(q, qd, np.zeros(3), 1e-6)
    f, A, _ = rows(q, qd)
    assert np.abs(f).max() < 1e-11
    assert np.abs(A @ qd).max() < 1e-9
