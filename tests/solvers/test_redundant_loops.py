"""Loops whose rows depend on each other: least norms of any rank, in every place."""

import json
from pathlib import Path

import numpy as np
import pytest
from least_norm import least_norm

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


@pytest.mark.one_of(2)
@pytest.mark.parametrize("engine", available())
@pytest.mark.parametrize("seed", [1, 10])
def test_least_multipliers_are_those_of_singular_values(seed, engine):
    """Random trees with rows twice: rank 3 of 5, qdd and the least lambda."""
    model, state, rng = redundant_tree(seed)
    f_ext = rng.normal(size=(model.nb, 6))
    qdd, x, rank = by_svd(model, state, f_ext, **RATES)
    assert rank == 3
    choices = {"inputs": ["f_ext"], "engine": engine, **RATES}
    got = least_norm("loop_forward_dynamics").build(model, **choices)(*state, f_ext)
    assert scaled_error(got.qdd, qdd) < GOOD
    assert scaled_error(got.lambda_, x) < GOOD
    drop_in = least_norm("aba_loops").build(model, **choices)
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
    least = least_norm("loop_forward_dynamics").build(model, **choices)(*state, *values)
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
        solver.build(robot, engine="graph", **RATES)(q, qd, flags, qdd, tau)
        for solver, robot in (
            (least_norm("hybrid_mask_loops"), model),
            (dyn.solver("hybrid_mask_loops"), slim),
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
        (hinge, {"forward_dynamics": least_norm("aba_loops")}),
        (pin, {"forward_dynamics": "aba_loops"}),
        (
            hinge,
            {
                "step": least_norm("projected_euler")
            },  # takes the dynamics of its own slot
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
    got = least_norm("rnea_loops").build(hinge, engine="graph")(q, qd, qdd)
    assert scaled_error(got, want) < GOOD
    assert np.abs(want).max() > 0.1


def test_drift_does_not_make_dependent_rows_independent():
    """Positions a bit off the loops: the rank stays, and the motion changes little."""
    hinge, pin, q = spatial_four_bar()
    qd, tau = np.zeros(3), np.ones(3)
    tilted = q + 1e-7
    least = least_norm("aba_loops").build(hinge, engine="graph")
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
    program = least_norm("loop_forward_dynamics").build(model, engine="graph")
    with pytest.raises((dyn.InfeasibleError, dyn.SingularError)):
        program(np.zeros(3), np.ones(3), np.zeros(3))
    still = program(np.zeros(3), np.zeros(3), np.zeros(3))
    assert abs(still.qdd[0]) < GOOD


def locked(apart):
    """Return a tree with one joint locked twice, at positions `apart` [rad]."""
    model = dyn.load("examples/four_bar/four_bar.urdf").without_loops()
    joint = model.joint_names[0]
    return model.with_loops(
        *(
            dyn.coupling(f"lock{k}", [joint], lambda a, k=k: [a - apart * k])
            for k in range(2)
        )
    )


@pytest.mark.parametrize("name", ["loop_forward_dynamics", "aba_loops", "hybrid"])
def test_rows_that_contradict_each_other_are_infeasible(name):
    """Two locks of a joint at different positions: no solver answers in between."""
    still = np.zeros(3)
    more = (still, still) if name == "hybrid" else ()
    name = "hybrid_mask_loops" if name == "hybrid" else name
    choices = {"engine": "graph", "alpha": 20.0, "beta": 20.0}
    for apart in (0.0, 1e-10, 0.1):
        program = least_norm(name).build(locked(apart), **choices)
        if apart < 0.1:
            program(still, still, *more, still)
            continue
        with pytest.raises(dyn.InfeasibleError, match="lock., row 0: the loops ask"):
            program(still, still, *more, still)
    program = least_norm(name).build(locked(0.1), slack=1.0, **choices)
    got = program(still, still, *more, still)
    qdd = got if name == "aba_loops" else got.qdd
    assert abs(qdd[0] - 20.0) < 1e-9  # the mean of 0 and beta² 0.1


def test_prescribed_accelerations_that_open_a_loop_are_infeasible():
    """The mask prescribes a joint that both loops lock."""
    still, flags = np.zeros(3), np.array([1.0, 0.0, 0.0])
    program = least_norm("hybrid_mask_loops").build(locked(0.0), engine="graph")
    program(still, still, flags, still, still)
    with pytest.raises(dyn.InfeasibleError, match="prescribed ones do not allow"):
        program(still, still, flags, flags, still)


def test_dead_points_are_told_from_contradictions():
    """A lock that is curved at zero: dependent there and not beside it."""
    model = locked(0.0).without_loops()
    rows = [lambda a: [a], lambda a: [a * (1.0 + 0.5 * a)]]
    pairs = zip(("straight", "curved"), rows, strict=True)
    joint = model.joint_names[:1]
    model = model.with_loops(*(dyn.coupling(name, joint, f) for name, f in pairs))
    for name in ("loop_forward_dynamics", "aba_loops"):
        program = least_norm(name).build(model, engine="graph", dead_point="least")
        program(np.zeros(3), np.zeros(3), np.zeros(3))
        with pytest.raises(dyn.InfeasibleError):
            program(np.zeros(3), np.ones(3), np.zeros(3))


REFERENCES = json.loads(
    (Path(__file__).parent / "least_norm_references.json").read_text(encoding="utf-8")
)


def least_cases(model, state, qdd):
    """Yield solver, options and inputs of each stored result."""
    (q, qd, tau), names = state, list(model.joint_names)
    flags = np.zeros(model.nv)
    flags[:2] = 1.0
    first = model.v_slice(names[0])
    most = {"active": names[1:], "residual": None, "slack": 1e3}
    every = {"active": names, "residual": None, "objective": "force"}
    some = {"prescribed": names[:1], "residual": None, "slack": 1e3}
    yield "loop_forward_dynamics", RATES, (q, qd, tau)
    yield "aba_loops", {}, (q, qd, tau)
    yield "aba_loops", RATES, (q, qd, tau)
    yield "hybrid_mask_loops", RATES, (q, qd, flags, qdd, tau)
    yield "rnea_loops", {"active": names}, (q, qd, qdd)
    yield "loop_inverse_dynamics", most, (q, qd, qdd, tau[first])
    yield "loop_inverse_dynamics", every, (q, qd, qdd, tau[:0])
    yield "loop_hybrid_dynamics", some, (q, qd, qdd[first], tau[first.stop :])
    yield "projected_euler", {}, (q, qd, tau, 1e-3)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("seed", REFERENCES)
def test_least_norms_are_the_numbers_of_the_solvers_they_replace(seed):
    """Stored results of the former solvers aba_loops_least, loop_forward_least, ..."""
    model, state, rng = redundant_tree(int(seed))
    cases = least_cases(model, state, rng.normal(size=model.nv))
    for (name, options, inputs), (stored, want) in zip(
        cases, REFERENCES[seed], strict=True
    ):
        assert name == stored
        program = least_norm(name).build(model, engine="graph", **options)
        got = program(*inputs)
        got = got if isinstance(got, tuple) else (got,)
        for x, y in zip(got, want, strict=True):
            assert scaled_error(np.asarray(x), np.array(y)) < 1e-12, name


def test_more_motors_than_freedoms_follow_what_the_loops_allow():
    """Accelerations that contradict the loops: nearest ones; refused with residual."""
    hinge, _, q = spatial_four_bar()
    still, names = np.zeros(3), hinge.joint_names
    A = dyn.solver("loop_constraints").build(hinge)(q, still).A
    fit = np.linalg.svd(np.asarray(A))[2][-1]
    loose, strict = (
        least_norm("rnea_loops").build(hinge, active=names, residual=residual)
        for residual in (None, 1e-6)
    )
    np.testing.assert_allclose(strict(q, still, fit), loose(q, still, fit), atol=1e-12)
    torn = fit + [0.0, 0.0, 0.1]
    assert np.isfinite(loose(q, still, torn)).all()
    with pytest.raises(dyn.InfeasibleError, match=r"D.*qdd.*residual=1e-06"):
        strict(q, still, torn)


def test_options_of_least_norms_need_least_norm():
    """They are refused, not ignored, where dependent rows are."""
    model, _, q = spatial_four_bar()
    chosen = {"dead_point": "least", "tolerance": 1e-8}
    for name in ("aba_loops", "loop_forward_dynamics", "projected_euler"):
        for option in (
            chosen.items() if name != "projected_euler" else [("tolerance", 1)]
        ):
            one = dict([option])
            with pytest.raises(dyn.UnsupportedError, match="valid: dependent='least_n"):
                dyn.solver(name).build(model, **one)
            least_norm(name).build(model, engine="graph", **one)


def test_slopes_of_redundant_loops():
    """qdd and the least multipliers, by q, qd, tau and a joint's origin."""
    model, (q, qd, tau), _ = redundant_tree(1)
    origin = f"{model.names[-1]}.origin"
    choices = {"engine": "graph", "tolerance": 1e-9, **RATES}
    solver = dyn.solver("loop_fd_derivatives")
    got = solver.build(model, paths=[origin], **choices)(q, qd, tau)
    least = least_norm("loop_forward_dynamics").build(model, inputs=[origin], **choices)
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
    least = least_norm("loop_forward_dynamics").build(model, **choices)
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
    least = least_norm("loop_hybrid_dynamics").build(
        model, objective="force", residual=None, **choices
    )
    slopes = got.dtau_u_dq, got.dqdd_v_dq, got.dlambda_dq
    for k, slope in enumerate(slopes):
        wanted = by_q(lambda x: least(x, *state), k, q)
        scale = max(1.0, np.abs(wanted).max())
        assert scaled_error(slope / scale, wanted / scale) < 1e-8
