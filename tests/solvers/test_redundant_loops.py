"""Loops whose rows depend on each other: least norms of any rank, in every place."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines import available
from dyn_core.model import parameter_paths
from dyn_core.simulation import loop_report
from dyn_core.testing import random_model, scaled_error
from dyn_core.testing.case import derivative

GOOD = 1e-9
RATES = {"alpha": 1.5, "beta": 2.0}


def redundant_tree(seed, size=5):
    """Return a random tree with three loops, one of them twice, and a state."""
    rng = np.random.default_rng(seed)
    model = random_model(seed, size=size, massless=0.0)
    names = list(model.frame_names)

    def place():
        return {"xyz": rng.normal(size=3), "rpy": rng.normal(size=3)}

    ends = {"at_a": place(), "at_b": place()}
    model = model.with_loops(
        dyn.make_loop("one", "pin", names[-1], None, **ends),
        dyn.make_loop("rod", "distance", names[-2], None, at_a=place(), length=1.0),
        dyn.make_loop("again", "pin", names[-1], None, **ends),
    )
    return model, (model.random(rng), *rng.normal(size=(2, model.nv))), rng


def by_svd(model, state, f_ext, tolerance=1e-9, alpha=0.0, beta=0.0):
    """Return qdd and the lambda of least norm by singular values, and the rank."""
    q, qd, tau = state
    tree = model.without_loops()
    f, A, bias = dyn.solver("loop_constraints").build(model, engine="graph")(q, qd)
    H = dyn.solver("crba").build(tree, engine="graph")(q)
    C = dyn.solver("bias").build(tree, engine="graph", inputs=["f_ext"])
    free = np.linalg.solve(H, tau - C(q, qd, f_ext))
    missing = -(bias + 2 * alpha * (A @ qd) + beta**2 * f) - A @ free
    L = np.linalg.cholesky(H)
    B = np.linalg.solve(L, A.T).T
    x = (
        np.linalg.pinv(B.T, rcond=tolerance)
        @ np.linalg.pinv(B, rcond=tolerance)
        @ missing
    )
    rank = np.linalg.matrix_rank(B, tolerance * np.linalg.norm(B, 2))
    return free + np.linalg.solve(H, A.T @ x), x, rank


@pytest.mark.parametrize("engine", available())
@pytest.mark.parametrize("seed", [1, 10])
def test_least_multipliers_are_those_of_singular_values(seed, engine):
    """Random trees with rows twice: rank 3 of 5, qdd and the least lambda."""
    model, state, rng = redundant_tree(seed)
    f_ext = rng.normal(size=(model.nb, 6))
    qdd, x, rank = by_svd(model, state, f_ext, **RATES)
    assert rank == 3
    choices = {"inputs": ["f_ext"], "engine": engine, **RATES}
    got = dyn.solver("loop_forward_least").build(model, **choices)(*state, f_ext)
    assert scaled_error(got.qdd, qdd) < GOOD
    assert scaled_error(got.lambda_, x) < GOOD
    drop_in = dyn.solver("aba_loops_least").build(model, **choices)
    assert scaled_error(drop_in(*state, f_ext), qdd) < GOOD
    with pytest.raises(dyn.SingularError, match="loop one"):
        dyn.solver("loop_forward_dynamics").build(model, **choices)(*state, f_ext)


def test_parameters_reach_redundant_loops():
    """Gravity, a payload, the time, and forces in base axes: as without redundancy."""
    model, state, rng = redundant_tree(1)
    joint, link = model.names[-1], model.frame_names[-1]
    model = model.drive(joint, lambda t: (None, (0.0, 0.1 * t * t, 0.2 * t)))
    slim = model.without_loops().with_loops(*model.loops[:2])
    inputs = ["f_ext", "gravity", f"{link}.payload", "time"]
    choices = {"inputs": inputs, "f_ext_frame": "base", "engine": "graph", **RATES}
    payload = [1.0, 0.1, 0.0, 0.0, 0.2, 0.0, 0.3, 0.0, 0.0, 0.4]
    values = rng.normal(size=(model.nb, 6)), (1.0, 2.0, -9.0), payload, 0.7
    least = dyn.solver("loop_forward_least").build(model, **choices)(*state, *values)
    wanted = dyn.solver("loop_forward_dynamics").build(slim, **choices)(*state, *values)
    assert scaled_error(least.qdd, wanted.qdd) < GOOD
    doubled = np.append(wanted.lambda_, wanted.lambda_[:2])
    doubled[[0, 1, 3, 4]] *= 0.5
    assert scaled_error(least.lambda_, doubled) < GOOD
    calm = dyn.solver("loop_forward_dynamics").build(
        slim, engine="graph", inputs=["time"], **RATES
    )
    assert scaled_error(calm(*state, 0.0).qdd, wanted.qdd) > 1e-2


def test_hybrid_masks_of_redundant_loops():
    """A mask chosen per call: accelerations as without redundancy, least forces."""
    model, (q, qd, tau), rng = redundant_tree(10)
    slim = model.without_loops().with_loops(*model.loops[:2])
    qdd = rng.normal(size=model.nv)
    flags = np.zeros(model.nv)
    flags[:2] = 1.0
    got, wanted = (
        dyn.solver(name).build(robot, engine="graph", **RATES)(q, qd, flags, qdd, tau)
        for name, robot in (
            ("hybrid_mask_loops_least", model),
            ("hybrid_mask_loops", slim),
        )
    )
    assert scaled_error(got.qdd, wanted.qdd) < GOOD
    assert scaled_error(got.tau, wanted.tau) < 1e-8


def spatial_four_bar():
    """Return the linkage closed by a hinge in space: five rows, rank two; a start."""
    model = dyn.load("examples/four_bar/four_bar.urdf")
    ends = {
        f"at_{x}": {"xyz": (d, 0, 0), "rpy": (np.pi / 2, 0, 0)}
        for x, d in (("a", 1.98), ("b", 1.02))
    }
    hinge = dyn.make_loop("D", "revolute", "rocker", **ends)
    guess = model.position({"motor": 0.93, "pin_b": -0.5, "pin_c": -1.5})
    q = dyn.close_loops(model, guess, fixed=["motor"])
    return model.without_loops().with_loops(hinge), model, q


def test_a_linkage_with_redundant_rows_is_simulated():
    """The motion of the same linkage with two rows, by drop-ins and by projection."""
    hinge, pin, q = spatial_four_bar()
    report = loop_report(hinge, q)
    assert len(report.dependent) == 3
    pairs = (
        (hinge, {"forward_dynamics": "aba_loops_least"}),
        (pin, {"forward_dynamics": "aba_loops"}),
        (
            hinge,
            {"step": "projected_euler_least"},  # takes the dynamics of its own slot
        ),
        (pin, {"step": "projected_euler"}),
    )
    runs = [
        dyn.simulate(m, duration=0.3, period=1e-3, engine="graph", q0=q, **c)
        for m, c in pairs
    ]
    for least, other in (runs[:2], runs[2:]):
        assert np.abs(least.q[-1] - q).max() > 0.1
        assert scaled_error(least.q, other.q) < 1e-8


def test_motors_of_a_linkage_with_redundant_rows():
    """Inverse dynamics with redundant rows: the motor's torque of the plain linkage."""
    hinge, pin, q = spatial_four_bar()
    qd = dyn.close_rates(pin, q, [1.0, 0.0, 0.0], fixed=["motor"])
    qdd = np.array((2.0, 0.0, 0.0))
    want = dyn.solver("rnea_loops").build(pin, engine="graph")(q, qd, qdd)
    got = dyn.solver("rnea_loops_least").build(hinge, engine="graph")(q, qd, qdd)
    assert scaled_error(got, want) < GOOD
    assert np.abs(want).max() > 0.1


def test_drift_does_not_make_dependent_rows_independent():
    """Positions a bit off the loops: the rank stays, and the motion changes little."""
    hinge, pin, q = spatial_four_bar()
    qd, tau = np.zeros(3), np.ones(3)
    tilted = q + 1e-7
    least = dyn.solver("aba_loops_least").build(hinge, engine="graph")
    plain = dyn.solver("aba_loops").build(pin, engine="graph")
    assert scaled_error(least(tilted, qd, tau), plain(tilted, qd, tau)) < GOOD


def test_contradictions_are_infeasible_and_dead_points_singular():
    """What no motion fulfils is an error of the solver that reports multipliers."""
    model = dyn.load("examples/four_bar/four_bar.urdf")
    joint = model.joint_names[0]
    locks = [
        dyn.coupling(f"lock{k}", [joint], lambda a, k=k: [a * (1.0 + 0.5 * k * a)])
        for k in range(2)
    ]
    model = model.without_loops().with_loops(*locks)
    program = dyn.solver("loop_forward_least").build(model, engine="graph")
    with pytest.raises((dyn.InfeasibleError, dyn.SingularError)):
        program(np.zeros(3), np.ones(3), np.zeros(3))
    still = program(np.zeros(3), np.zeros(3), np.zeros(3))
    assert abs(still.qdd[0]) < GOOD


def test_slopes_of_redundant_loops():
    """qdd and the least multipliers, by q, qd, tau and a joint's origin."""
    model, (q, qd, tau), _ = redundant_tree(1)
    origin = f"{model.names[-1]}.origin"
    choices = {"engine": "graph", "tolerance": 1e-9, **RATES}
    solver = dyn.solver("loop_fd_derivatives")
    got = solver.build(model, paths=[origin], **choices)(q, qd, tau)
    least = dyn.solver("loop_forward_least").build(model, inputs=[origin], **choices)
    place, n = parameter_paths.value(model, origin), model.nv
    moved = {
        "q": (n, lambda d: (model.integrate(q, d), qd, tau, place)),
        "qd": (n, lambda d: (q, qd + d, tau, place)),
        "tau": (n, lambda d: (q, qd, tau + d, place)),
        "p": (6, lambda d: (q, qd, tau, place + d)),
    }
    for by, (size, state) in moved.items():
        for k, of in enumerate(("qdd", "lambda")):
            columns = [
                derivative(lambda t, e=e, k=k, f=state: least(*f(t * e))[k], 1e-3)
                for e in np.eye(size)
            ]
            wanted = np.array(columns).T
            scale = max(1.0, np.abs(wanted).max())
            slope = getattr(got, f"d{of}_d{by}")
            assert scaled_error(slope / scale, wanted / scale) < GOOD, (of, by)


def arm_on_a_line():
    """Return an arm with a third row made of two others, and a closed state.

    Off the loop it takes another share of each: the dependence turns.
    """
    arm, rng = dyn.load("arm7"), np.random.default_rng(2)
    q, (qd, tau) = arm.random(rng), rng.normal(size=(2, 7))
    pose = dyn.solver("forward_kinematics").build(arm, frames=["tool"], engine="graph")
    x, y, _ = pose(q)[0][:3, 3].tolist()

    def rows(R, p):
        a, b = p[0] - x, p[1] - y
        return [a, b, a * (1.0 + b) + b * (0.5 + b)]

    model = arm.with_loops(dyn.user_loop("tip", rows, "tool"))
    return model, q, dyn.close_rates(model, q, qd), tau


def by_q(values, k, q):
    """Return the differences of an output by q; steps are small: loops open."""
    unit = np.eye(len(q))
    return np.array([derivative(lambda t: values(q + t * e)[k], 1e-5) for e in unit]).T


def test_slopes_where_the_dependence_turns():
    """Forward dynamics: the multipliers of least norm turn with it."""
    model, q, qd, tau = arm_on_a_line()
    choices = {"engine": "graph", "tolerance": 1e-9, **RATES}
    got = dyn.solver("loop_fd_derivatives").build(model, **choices)(q, qd, tau)
    least = dyn.solver("loop_forward_least").build(model, **choices)
    for k, slope in enumerate((got.dqdd_dq, got.dlambda_dq)):
        wanted = by_q(lambda x: least(x, qd, tau), k, q)
        scale = max(1.0, np.abs(wanted).max())
        assert scaled_error(slope / scale, wanted / scale) < 1e-8


def test_slopes_of_hybrid_dynamics_where_the_dependence_turns():
    """Hybrid dynamics: so do the forces of prescribed joints."""
    model, q, qd, tau = arm_on_a_line()
    names = model.joint_names[:3]
    choices = {"engine": "graph", "tolerance": 1e-9, "prescribed": names}
    state = qd, tau[:3], tau[3:]
    got = dyn.solver("loop_hd_derivatives").build(model, **choices)(q, *state)
    least = dyn.solver("loop_hybrid_least").build(
        model, objective="force", residual=None, **choices
    )
    slopes = got.dtau_u_dq, got.dqdd_v_dq, got.dlambda_dq
    for k, slope in enumerate(slopes):
        wanted = by_q(lambda x: least(x, *state), k, q)
        scale = max(1.0, np.abs(wanted).max())
        assert scaled_error(slope / scale, wanted / scale) < 1e-8
