"""Loops in singular and open positions, in reports, and what goes through bearings."""

import math
import pickle

import numpy as np
import pytest
from least_norm import least_norm

import dyn_core as dyn
from dyn_core.engines.llvm.cached import trace_cache
from dyn_core.model import Build, Description, JointSpec, LinkSpec, assemble
from dyn_core.simulation import loop_report
from dyn_core.simulation.robot_overview import describe
from dyn_core.spatial import RigidInertia
from dyn_core.testing import scaled_error

Z = (0.0, 0.0, 1.0)


def bars(rows, *loops):
    """Return planar bars, each (start in its parent, m, c, Izz), with loops."""
    links, joints = [LinkSpec("b0", RigidInertia.zero())], []
    for k, (x, m, c, Izz) in enumerate(rows, 1):
        I = RigidInertia.of(m, (*c, 0.0), np.diag((Izz, Izz, Izz)).tolist())
        links.append(LinkSpec(f"b{k}", I))
        start = (x, 0.0, 0.0)
        joints.append(
            JointSpec(f"j{k}", "revolute", f"b{k - 1}", f"b{k}", start, axis=Z)
        )
    description = Description("bars", tuple(links), tuple(joints))
    return assemble(Build(description, gravity=(0.0, -9.81, 0.0))).with_loops(*loops)


def pin(name="D", b="b3", tip=1.02, xyz=(1.98, 0.0, 0.0), kind="pin", rpy=(0, 0, 0)):
    """Return a loop that ties the tip of a bar to the base."""
    return dyn.make_loop(
        name, kind, b, at_b={"xyz": (tip, 0, 0)}, at_a={"xyz": xyz, "rpy": rpy}
    )


FOUR = (
    (0.0, 1.2, (0.2, 0.03), 0.03), (0.5, 2.0, (0.6, -0.05), 0.3), (1.3, 0.9, (0.5, 0.04), 0.08)
)  # fmt: skip
QE = np.array((0.927295218001612, -0.532504098301851, -1.47563012024093))
QDE = np.array((2, -2.7, 1.2))


def parallelogram(turned=0.0):
    """Return bars of 0.5, 1 and 0.5 m that lie on one line at q = (0, 0, pi)."""
    rows = (0.0, 1.0, (0.25, 0.0), 0.06), (0.5, 1.3, (0.5, 0.01), 0.06)
    rows = (*rows, (1.0, 1.6, (0.25, 0.02), 0.06))
    return bars(rows, pin(tip=0.5, xyz=(1.0, 0.0, 0.0), rpy=(0.0, 0.0, turned)))


def along(e):
    """Return a state of the parallelogram, its cranks turned by e."""
    return [e, -e, math.pi + e], [1.0, -1.0, 1.0]


def independent_acceleration(model, e):
    """Return qdd of the parallelogram by its one coordinate: q = (e, -e, pi + e).

    Kinetic energy is that of the tree along the motion; no constraint enters.
    """
    t = np.array([1.0, -1.0, 1.0])
    q, qd = along(e)
    tree = model.without_loops()
    H = dyn.solver("crba").build(tree, engine="graph")(q)
    C = dyn.solver("bias").build(tree, engine="graph")(q, qd)
    return t * (-(t @ C) / (t @ H @ t))


@pytest.mark.parametrize("turned", [0.0, 0.3])
def test_a_dead_point_is_refused_and_what_is_near_it_is_right(turned):
    """Nothing is silently off: the motion by its one coordinate, or a SingularError."""
    model = parallelogram(turned)
    forward = dyn.solver("loop_forward_dynamics").build(model, engine="graph")
    least = least_norm("loop_forward_dynamics").build(model)
    tau = np.zeros(3)
    for program in (forward, least):
        with pytest.raises(dyn.SingularError, match="loop D, row 0"):
            program(*along(0.0), tau)
    for e in (1e-9, 1e-7, 1e-5, 2e-5, 1e-4, 1e-2, 0.3):
        wanted = independent_acceleration(model, e)
        np.testing.assert_allclose(least(*along(e), tau).qdd, wanted, rtol=2e-6)
        if e < 9e-6:
            with pytest.raises(
                dyn.SingularError, match="valid: .*dependent='least_norm'"
            ):
                forward(*along(e), tau)
        else:
            np.testing.assert_allclose(forward(*along(e), tau).qdd, wanted, rtol=1e-5)


@pytest.mark.parametrize("turned", [0.0, 0.3])
def test_dead_points_begin_at_one_distance(turned):
    """Solvers whose tolerance is that of drift answer where those without drift do."""
    model, tau, still = parallelogram(turned), np.zeros(3), {"alpha": 0.0, "beta": 0.0}
    least, simulated = (
        least_norm(name).build(model, engine="graph", **choices)
        for name, choices in (("loop_forward_dynamics", {}), ("aba_loops", still))
    )
    for e in (0.0, 1e-10, 5e-10):
        for program in (least, simulated):
            with pytest.raises(
                dyn.SingularError, match="a position beside it, or dead_"
            ):
                program(*along(e), tau)
    for e in (3e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-3):
        wanted = independent_acceleration(model, e)
        np.testing.assert_allclose(least(*along(e), tau).qdd, wanted, rtol=2e-6)
        np.testing.assert_allclose(simulated(*along(e), tau), wanted, rtol=2e-6)


def test_the_dead_points_of_redundant_loops_begin_there_too():
    """Rows twice, a bit apart: drift does not pass for a second distance."""
    apart = 1e-8
    model = parallelogram()
    again = pin("again", tip=0.5, xyz=(1.0, apart, 0.0))
    twice = model.with_loops(again)
    still = {"alpha": 0.0, "beta": 0.0}
    program = least_norm("aba_loops").build(twice, engine="graph", **still)
    for e in (1e-7, 1e-6, 1e-4, 0.1):
        wanted = independent_acceleration(model, e)
        got = program(*along(e), np.zeros(3))
        np.testing.assert_allclose(got, wanted, rtol=1e-4)
    with pytest.raises(dyn.SingularError, match="dead point"):
        program(*along(0.0), np.zeros(3))


def test_two_linkages_near_dead_points_at_once_are_refused():
    """One combination of rows can be told apart, two are refused: no wrong numbers."""
    rows = (0.0, 1.0, (0.25, 0.0), 0.06), (0.5, 1.3, (0.5, 0.01), 0.06)
    rows = (*rows, (1.0, 1.6, (0.25, 0.02), 0.06))
    links, joints = [LinkSpec("b0", RigidInertia.zero())], []
    for side in "lr":
        parent = "b0"
        for k, (x, m, c, Izz) in enumerate(rows, 1):
            I = RigidInertia.of(m, (*c, 0.0), np.diag((Izz, Izz, Izz)).tolist())
            links.append(LinkSpec(f"{side}{k}", I))
            start, name = (x, 0.0, 0.0), f"{side}j{k}"
            joints.append(
                JointSpec(name, "revolute", parent, f"{side}{k}", start, axis=Z)
            )
            parent = f"{side}{k}"
    description = Description("pair", tuple(links), tuple(joints))
    pins = (pin(f"{s}D", b=f"{s}3", tip=0.5, xyz=(1.0, 0.0, 0.0)) for s in "lr")
    model = assemble(Build(description, gravity=(0.0, -9.81, 0.0))).with_loops(*pins)
    still = {"alpha": 0.0, "beta": 0.0}
    program = least_norm("aba_loops").build(model, engine="graph", **still)
    for e, f in ((1e-7, 1e-7), (1e-7, 2e-8), (0.0, 1e-7)):
        (q, qd), (p, pd) = along(e), along(f)
        with pytest.raises(dyn.SingularError, match="dead point"):
            program([*q, *p], [*qd, *pd], np.zeros(6))
    for e, f in ((1e-7, 0.1), (0.1, 1e-6), (0.1, 0.2)):
        (q, qd), (p, pd) = along(e), along(f)
        wanted = [independent_acceleration(parallelogram(), x) for x in (e, f)]
        got = program([*q, *p], [*qd, *pd], np.zeros(6))
        np.testing.assert_allclose(got, np.concatenate(wanted), rtol=2e-6)


def test_a_dead_point_at_rest_has_least_accelerations_on_request():
    """dead_point="least": Gauss's principle with the rows that are left there."""
    model, tau = parallelogram(), np.array([0.3, -0.2, 0.1])
    q, still = np.array(along(0.0)[0]), np.zeros(3)
    A = dyn.solver("loop_constraints").build(model, engine="graph")(q, still).A
    H = dyn.solver("crba").build(model.without_loops(), engine="graph")(q)
    g = dyn.solver("gravity").build(model.without_loops(), engine="graph")(q)
    L = np.linalg.cholesky(np.linalg.inv(H))
    free = np.linalg.solve(H, tau - g)
    wanted = free - L @ np.linalg.pinv(A @ L, rcond=1e-9) @ A @ free
    for name in ("loop_forward_dynamics", "aba_loops", "hybrid_mask_loops"):
        solver, choices = least_norm(name), {"engine": "graph", "dead_point": "least"}
        free_joints = (still, still) if name.startswith("hybrid") else ()
        program = solver.build(model, **choices)
        got = program(q, still, *free_joints, tau)
        got = got if isinstance(got, np.ndarray) else got.qdd
        np.testing.assert_allclose(got, wanted, rtol=1e-9)
        assert np.abs(A @ got).max() < 1e-9


def test_advice_at_a_dead_point_leads_out():
    """Each error names what answers: followed to the end, an acceleration comes out."""
    model, tau, still = parallelogram(), np.zeros(3), np.zeros(3)
    q = along(0.0)[0]
    for name in ("loop_forward_dynamics", "aba_loops"):
        with pytest.raises(dyn.SingularError, match="at a dead point, .*dead_point='l"):
            dyn.solver(name).build(model, engine="graph")(q, still, tau)
    for name in ("loop_forward_dynamics", "aba_loops"):
        choices, solver = {"engine": "graph"}, least_norm(name)
        with pytest.raises(dyn.SingularError, match="dead_point='least'"):
            solver.build(model, **choices)(q, still, tau)
        program = solver.build(model, **choices, dead_point="least")
        program(q, still, tau)


def test_reports_tell_dead_points_from_rows_that_depend_everywhere():
    """The parallelogram on a line, a hinge with rows to spare, and both."""
    report = loop_report(parallelogram(), along(0.0)[0])
    assert report.dependent == report.dead_points != ()
    assert "here, but not beside it: a dead point" in str(report)
    report = loop_report(bars(FOUR, pin(kind="revolute")), QE)
    assert len(report.dependent) == 3 and report.dead_points == ()
    assert "dead point" not in str(report)
    assert loop_report(parallelogram(), along(0.3)[0]).dependent == ()


def test_redundancy_everywhere_is_no_dead_point():
    """Dependent rows that stay dependent get the least-norm answer, at rest, too."""
    model = bars(FOUR, pin(kind="revolute"))
    plain = bars(FOUR, pin())
    for qd in (QDE, np.zeros(3)):
        wanted = dyn.solver("aba_loops").build(plain, engine="graph", alpha=0, beta=0)
        got = least_norm("loop_forward_dynamics").build(model)(QE, qd, np.ones(3))
        assert scaled_error(got.qdd, wanted(QE, qd, np.ones(3))) < 1e-9
    report = loop_report(model, QE)
    assert report.rank == 2 and report.mobility == 1
    assert report.dependent == tuple((f"loop D, row {k}",) for k in (2, 3, 4))


def test_reports_name_rows_that_depend_on_each_other():
    """Two equal pins: each row with its like; errors name rows and a way out."""
    model = bars(FOUR, pin(), pin("E"))
    report = loop_report(model, QE, QDE)
    groups = {frozenset(group) for group in report.dependent}
    assert groups == {
        frozenset((f"loop D, row {k}", f"loop E, row {k}")) for k in (0, 1)
    }
    assert report.gap < 1e-12 and np.abs(report.rate).max() < 1e-12
    assert "loop D, row 0; loop E, row 0: depend on each other" in str(report)
    with pytest.raises(dyn.SingularError) as caught:
        dyn.solver("aba_loops").build(model, engine="graph")(QE, QDE, np.zeros(3))
    for phrase in ("loop D, row 1", "loop E, row 1", "'least_norm'", "axes, pin"):
        assert phrase in str(caught.value)


def floating(*loops):
    """Return one free body."""
    I = RigidInertia.of(1.0, (0.0, 0.0, 0.0), np.diag((0.1, 0.2, 0.3)).tolist())
    links = LinkSpec("base", RigidInertia.zero()), LinkSpec("a", I)
    joints = (JointSpec("free", "floating", "base", "a"),)
    return assemble(Build(Description("body", links, joints))).with_loops(*loops)


@pytest.mark.parametrize("half", [0.7, 1.45, math.pi / 2])
def test_a_hinge_is_not_closed_the_wrong_way_round(half):
    """From any tilt, half a turn too, the axes of a hinge end up alike."""
    model = floating(dyn.make_loop("h", "revolute", "a"))
    q = model.neutral()
    q[3:] = [math.sin(half), 0.0, 0.0, math.cos(half)]
    closed = dyn.close_loops(model, q)
    assert closed[3] ** 2 + closed[4] ** 2 < 1e-20
    if 1.0 < half < 1.5:
        assert loop_report(model, q).flipped == ("h",)
        with pytest.raises(
            dyn.InfeasibleError, match="flipped.*axes of h are opposite"
        ):
            dyn.close_loops(model, q, fixed=["free"])
    if half > 1.5:
        with pytest.raises(dyn.SingularError, match="loop h: .* flipped"):
            dyn.solver("loop_constraints").build(model, engine="graph")(q, np.zeros(6))
    assert loop_report(model, closed).flipped == ()


def test_the_tilt_of_a_hinge_is_twice_the_tangent_of_half_the_angle():
    """What the rows of a hinge are, for any angle between the axes."""
    model = floating(dyn.make_loop("h", "revolute", "a"))
    rows = dyn.solver("loop_constraints").build(model, engine="graph")
    for angle in (0.01, 1.0, 2.0, 3.0):
        q = model.neutral()
        q[3:] = [math.sin(angle / 2), 0.0, 0.0, math.cos(angle / 2)]
        tilt = rows(q, np.zeros(6)).f[3:]
        np.testing.assert_allclose(tilt, [2 * math.tan(angle / 2), 0.0], atol=1e-12)


def test_a_rod_without_length_has_no_direction():
    """Ends that coincide: a SingularError names the loop; closing parts them."""
    model = floating(dyn.make_loop("rod", "distance", "a", length=0.5))
    q, still = model.neutral(), np.zeros(6)
    least = least_norm("loop_forward_dynamics")
    for name in ("aba_loops", "loop_constraints", least):
        program = dyn.solver(name).build(model)
        rest = () if name == "loop_constraints" else (still,)
        with pytest.raises(dyn.SingularError, match="loop rod: its ends coincide"):
            program(q, still, *rest)
    closed = dyn.close_loops(model, q)
    assert abs(np.linalg.norm(closed[:3]) - 0.5) < 1e-12


def test_a_residual_that_is_no_number_is_named():
    """No error of NumPy's algebra reaches the user."""
    model = floating(dyn.user_loop("odd", lambda R, p: [1.0 / p[0]], "a"))
    with pytest.raises(dyn.NonFiniteError, match="loop odd, row 0"):
        dyn.close_loops(model, model.neutral())
    with pytest.raises(dyn.NonFiniteError, match="loop odd, row 0"):
        dyn.close_rates(model, model.neutral(), np.ones(6))
    with pytest.raises(dyn.NonFiniteError, match="loop odd, row 0"):
        loop_report(model, model.neutral())
    assert any("at zero loop odd, row 0" in x for x in describe(model))


def test_info_shows_rows_mobility_and_gap():
    """`dyn info`: kinds, mobility of the closed robot, gap at the start."""
    lines = describe(bars(FOUR, pin()))
    k = next(k for k, x in enumerate(lines) if x.startswith("loops: "))
    assert lines[k] == "loops: D (pin, 2 rows); 2 constraint rows for nv 3:"
    assert lines[k + 1] == "  gap at zero 0.84; closed: mobility 1, rank 2"
    lines = describe(bars(FOUR, pin(kind="point")))
    assert any("loop D, row 2: no joint moves it" in x for x in lines)
    lines = describe(bars(FOUR, pin(xyz=(9.0, 0.0, 0.0))))
    assert any("no position that closes them" in x for x in lines)


def test_a_closed_robot_is_simulated_without_a_choice():
    """dyn.simulate takes aba_loops for a robot with loops: energy is kept."""
    model = bars(FOUR, pin())
    run = dyn.simulate(
        model, duration=0.1, q0=QE, engine="graph", step="rk4", limit_stops=False
    )
    assert np.ptp(run.energy) < 1e-4 * abs(run.energy[0])
    assert np.abs(run.q[-1] - run.q[0]).max() > 1e-2
    assert (
        dyn.Simulator(model.without_loops(), engine="graph").forward_dynamics == "aba"
    )


def test_a_rod_has_a_length():
    """Zero is none: such a rod would be a point."""
    with pytest.raises(dyn.ModelError, match="length is 0.*above 0"):
        dyn.make_loop("rod", "distance", "a", length=0)


@pytest.mark.parametrize(
    ("kind", "more"),
    [("point", {}), ("pin", {}), ("planar_weld", {}), ("revolute", {}), ("weld", {}),
     ("axes", {"axes": ["x", "rz"]}), ("distance", {"length": 0.5})],
)  # fmt: skip
def test_robots_with_loops_can_be_copied_to_other_processes(kind, more):
    """A pickled robot has the same rows, and its machine code is found by a key."""
    model = floating(dyn.make_loop("h", kind, "a", **more))
    q, qd = model.random(np.random.default_rng(0)), np.arange(6.0)
    one, other = (
        dyn.solver("loop_constraints").build(robot, engine="graph")
        for robot in (model, pickle.loads(pickle.dumps(model)))
    )
    for x, y in zip(one(q, qd), other(q, qd), strict=True):
        np.testing.assert_array_equal(x, y)
    assert trace_cache.key(one.function, "machine") is not None
