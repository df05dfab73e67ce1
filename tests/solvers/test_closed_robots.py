"""Whole robots with loops: bearing forces, independent coordinates, motors."""

from itertools import combinations

import numpy as np
import pytest
from least_norm import least_norm

import dyn_core as dyn
from dyn_core.model import Build, Description, JointSpec, LinkSpec, assemble
from dyn_core.spatial import RigidInertia
from dyn_core.testing import random_model, scaled_error
from dyn_core.testing.case import derivative

Z = (0.0, 0.0, 1.0)


def bars(rows, *loops, damping=()):
    """Return planar bars, each (start in its parent, m, c, Izz), with loops."""
    links, joints = [LinkSpec("b0", RigidInertia.zero())], []
    for k, (x, m, c, Izz) in enumerate(rows, 1):
        I = RigidInertia.of(m, (*c, 0.0), np.diag((Izz, Izz, Izz)).tolist())
        links.append(LinkSpec(f"b{k}", I))
        ends, start = (f"b{k - 1}", f"b{k}"), (x, 0.0, 0.0)
        d = damping[k - 1] if damping else 0.0
        joints.append(JointSpec(f"j{k}", "revolute", *ends, start, axis=Z, damping=d))
    description = Description("bars", tuple(links), tuple(joints))
    build = Build(description, gravity=(0.0, -9.81, 0.0), loops=loops, strict=False)
    return assemble(build)


BARS = (
    (0.0, 1.2, (0.2, 0.03), 0.03), (0.5, 2.0, (0.6, -0.05), 0.3), (1.3, 0.9, (0.5, 0.04), 0.08),
)  # fmt: skip
FIVE = (
    *BARS[:2], (1.3, 0.7, (0.25, 0.02), 0.02), (0.5, 0.9, (0.3, -0.04), 0.05),
)  # fmt: skip


def four_bar(**more):
    """Return a four-bar and a closed, moving state."""
    ends = {"at_b": {"xyz": (1.02, 0, 0)}, "at_a": {"xyz": (1.98, 0, 0)}}
    model = bars(BARS, dyn.make_loop("D", "pin", "b3", **ends), **more)
    q = (0.927295218001612, -0.532504098301851, -1.47563012024093)
    return model, np.array(q), np.array((2.0, -2.7, 1.2))


def five_bar(**more):
    """Return a five-bar with two freedoms and a closed, moving state."""
    ends = {"at_b": {"xyz": (0.65, 0, 0)}, "at_a": {"xyz": (2.15, 0, 0)}}
    model = bars(FIVE, dyn.make_loop("E", "pin", "b4", **ends), **more)
    guess = (0.927295218001612, -0.532504098301851, -1.03829222849305, -0.532504098)
    q = dyn.close_loops(model, guess)
    return model, q, dyn.close_rates(model, q, (1.5, -1.9, 0.1, 1.1))


def spatial(seed=3):
    """Return a random tree with loops in space, one between moving links, closed."""
    kinds = "revolute", "prismatic"
    tree = random_model(seed, size=7, kinds=kinds, mimic=0.0, massless=0.0)
    rng = np.random.default_rng(seed)
    q = tree.random(rng)
    poses = dyn.solver("forward_kinematics").build(tree, engine="graph")(q)
    where = dict(zip(tree.frame_names, poses, strict=True))
    last, other = tree.child_links[tree.nb], tree.child_links[2]
    off = np.array((0.1, -0.2, 0.3))
    tip = where[last][:3, :3] @ off + where[last][:3, 3]
    rod = np.linalg.norm(where[last][:3, 3] - where[other][:3, 3])
    model = tree.with_loops(
        dyn.make_loop(
            "tip", "axes", last, at_b={"xyz": off}, at_a={"xyz": tip}, axes=["x", "z"]
        ),
        dyn.make_loop("rod", "distance", last, other, length=rod),
        dyn.coupling("gear", tree.joint_names[:2], lambda a, b: [a - q[0] - b + q[1]]),
    )
    return model, q, dyn.close_rates(model, q, rng.normal(size=model.nv))


def dense(model, q, qd, tau):
    """Return qdd and lambda of the equations with multipliers, by NumPy."""
    H = dyn.solver("crba").build(model, engine="graph")(q)
    C = dyn.solver("bias").build(model, engine="graph")(q, qd)
    _, A, bias = dyn.solver("loop_constraints").build(model, engine="graph")(q, qd)
    m = len(bias)
    K = np.block([[H, -A.T], [A, np.zeros((m, m))]])
    solution = np.linalg.solve(K, np.concatenate([tau - C, -bias]))
    return solution[: model.nv], solution[model.nv :]


def wrench(point, force, moment=(0.0, 0.0, 0.0)):
    """Return [moment about the base's origin; force] of a force on a point."""
    return np.concatenate([np.cross(point, force) + moment, force])


def net_wrenches(model, q, qd, qdd):
    """Return the rate of momentum of each body about the base's origin, base axes.

    By differences of poses alone: T'' J T.T is the integral of x'' x.T over the mass.
    """
    poses = dyn.solver("forward_kinematics").build(
        model, engine="graph", frames=list(model.child_links[1:])
    )

    def path(t):
        return poses(q + qd * t + qdd * (t * t / 2))

    second = derivative(lambda t: derivative(lambda s: path(t + s), 2e-2), 2e-2)
    result = []
    for i, T, T2 in zip(model.bodies, path(0.0), second, strict=True):
        I = model.I[i]
        c, m = np.array(list(I.c), float), float(I.m)
        about = np.asarray(I.Ic, float) + m * ((c @ c) * np.eye(3) - np.outer(c, c))
        J = np.zeros((4, 4))
        J[:3, :3] = np.eye(3) * np.trace(about) / 2 - about
        J[:3, 3] = J[3, :3] = m * c
        J[3, 3] = m
        K = T2 @ J @ T.T
        turn = (K[2, 1] - K[1, 2], K[0, 2] - K[2, 0], K[1, 0] - K[0, 1])
        weight = wrench((T @ [*c, 1.0])[:3], m * -np.array(list(model.a_grav.lin)) * -1)
        result.append((np.concatenate([turn, K[:3, 3]]), weight))
    return result


@pytest.mark.parametrize("robot", [four_bar, five_bar, spatial])
def test_bearing_forces_balance_every_body(robot):
    """Through joints, loops, and weight: what each body's momentum changes by."""
    model, q, qd = robot()
    tau = np.random.default_rng(1).normal(size=model.nv)
    got = dyn.solver("loop_reactions").build(
        model, engine="graph", coordinates="world"
    )(q, qd, tau)
    qdd, x = dense(model, q, qd, tau)
    assert scaled_error(got.qdd, qdd) < 1e-8
    assert scaled_error(got.lambda_, x) < 1e-8
    pushes = {i: got.f[i - 1].copy() for i in model.bodies}
    for i in model.bodies:
        if model.parent[i]:
            pushes[model.parent[i]] -= got.f[i - 1]
    frames = dyn.solver("forward_kinematics").build(model, engine="graph")(q)
    where = dict(zip(model.frame_names, frames, strict=True))
    for loop, tie in zip(model.loops, got.f_loop, strict=True):
        if not hasattr(loop, "b"):
            assert not tie.any()
            continue
        ends = []
        for link, place in ((loop.a, loop.A), (loop.b, loop.B)):
            R, p = (np.asarray(part, float) for part in place.pose)
            T = np.eye(4) if link is None else where[link]
            ends.append((T[:3, :3] @ R, T[:3, :3] @ p + T[:3, 3]))
        (R_A, _), (_, p_B) = ends
        total = wrench(p_B, R_A @ tie[3:], R_A @ tie[:3])
        for link, sign in ((loop.b, 1.0), (loop.a, -1.0)):
            if link is not None and model.frame(link).body:
                pushes[model.frame(link).body] += sign * total
    nets = net_wrenches(model, q, qd, qdd)
    for i, (net, weight) in zip(model.bodies, nets, strict=True):
        np.testing.assert_allclose(pushes[i] + weight, net, atol=2e-6, rtol=2e-6)


def test_reactions_of_a_motion_are_those_of_its_motors():
    """joint_reactions_loops: the forces of the motors that rnea_loops gives."""
    model, q, qd = four_bar()
    choices = {"active": ["j1"], "engine": "graph"}
    qdd = np.array((3.0, 99.0, -99.0))  # those of passive joints are not read
    tau = dyn.solver("rnea_loops").build(model, **choices)(q, qd, qdd)
    got = dyn.solver("joint_reactions_loops").build(model, **choices)(q, qd, qdd)
    wanted = dyn.solver("loop_reactions").build(model, engine="graph")(q, qd, tau)
    assert scaled_error(got.f, wanted.f) < 1e-10
    assert scaled_error(got.f_net, wanted.f_net) < 1e-10
    with pytest.raises(dyn.UnsupportedError, match="joint_reactions_loops: 3 active"):
        dyn.solver("joint_reactions_loops").build(model)


CHOICES = [
    (four_bar, ["j1"]), (four_bar, ["j3"]), (five_bar, ["j1", "j4"]), (spatial, None),
]  # fmt: skip


def _chosen(robot, independent):
    """Return a robot, its state, and independent joints that the loops allow."""
    model, q, qd = robot()
    if independent is None:
        A = dyn.solver("loop_constraints").build(model, engine="graph")(q, qd).A
        others = min(
            combinations(range(model.nv), len(A)), key=lambda c: np.linalg.cond(A[:, c])
        )
        rest = [k for k in range(model.nv) if k not in others]
        independent = [model.joint_names[k] for k in rest]
    return model, q, qd, {"independent": independent, "engine": "graph"}


@pytest.mark.parametrize(("robot", "independent"), CHOICES)
def test_independent_coordinates_have_power_and_energy(robot, independent):
    """dE/dt = yd.T (H_y ydd + C_y) = qd.T tau, K = yd.T H_y yd / 2, g_y = dV/dy."""
    model, q, qd, choices = _chosen(robot, independent)
    H_y, G = dyn.solver("loop_independent_inertia").build(model, **choices)(q)
    C_y = dyn.solver("loop_independent_bias").build(model, **choices)(q, qd)
    g_y = dyn.solver("loop_independent_gravity").build(model, **choices)(q)
    energy = dyn.solver("energy").build(model, engine="graph")
    y = [model.v_slice(name).start for name in choices["independent"]]
    tau = np.random.default_rng(2).normal(size=model.nv)
    qdd, _ = dense(model, q, qd, tau)
    np.testing.assert_allclose(G @ qd[y], qd, atol=1e-9)
    np.testing.assert_allclose(qd[y] @ H_y @ qd[y] / 2, energy(q, qd)[0], rtol=1e-9)
    np.testing.assert_allclose(H_y @ qdd[y] + C_y, G.T @ tau, rtol=1e-8, atol=1e-8)
    rate = derivative(lambda t: sum(energy(q + qd * t, qd + qdd * t)), 1e-2)
    np.testing.assert_allclose(qd[y] @ (H_y @ qdd[y] + C_y), rate, rtol=1e-7)
    np.testing.assert_allclose(qd @ tau, rate, rtol=1e-7)
    for k in range(len(y)):
        slope = derivative(
            lambda t, k=k: energy(q + G[:, k] * t, 0 * qd)[1], 1e-3
        )  # along the loop to first order, which is all that a slope sees
        np.testing.assert_allclose(g_y[k], slope, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(("robot", "independent"), CHOICES[:3])
def test_motors_make_errors_of_independent_coordinates_die_out(robot, independent):
    """ydd = ydd_ref + kd e' + kp e in forward dynamics, by any motors that reach y."""
    model, q, qd, choices = _chosen(robot, independent)
    rng = np.random.default_rng(4)
    ref = q + 0.1 * rng.normal(size=model.nv), rng.normal(size=model.nv)
    qdd_ref, kp, kd = (
        rng.normal(size=model.nv),
        np.full(model.nv, 25.0),
        np.full(model.nv, 8.0),
    )
    y = [model.v_slice(name).start for name in independent]
    wanted = (qdd_ref + kd * (ref[1] - qd) + kp * (ref[0] - q))[y]
    G = dyn.solver("loop_independent_inertia").build(model, **choices)(q).G
    torques = {}
    for active in (independent, list(model.joint_names[::2]), list(model.joint_names)):
        law = dyn.solver("loop_computed_torque").build(model, **choices, active=active)
        torques[len(active)] = tau = law(q, qd, *ref, qdd_ref, kp, kd)
        passive = [k for k, name in enumerate(model.joint_names) if name not in active]
        assert not tau[passive].any()
        qdd, _ = dense(model, q, qd, tau)
        np.testing.assert_allclose(qdd[y], wanted, rtol=1e-9)
    least = np.linalg.pinv(G.T) @ (G.T @ torques[len(independent)])
    np.testing.assert_allclose(torques[model.nv], least, atol=1e-9)


def test_passive_joints_get_no_torque_for_their_friction():
    """Motors alone make up for the damping of all joints."""
    model, q, qd = five_bar(damping=(0.3, 0.5, 0.7, 0.2))
    choices = {"engine": "graph", "joint_friction": True}
    law = dyn.solver("loop_computed_torque").build(
        model, independent=["j1", "j4"], active=["j1", "j4"], **choices
    )
    qdd_ref, none = np.array((1.0, 0.0, 0.0, -2.0)), np.zeros(4)
    tau = law(q, qd, q, qd, qdd_ref, none, none)
    assert np.abs(tau[[1, 2]]).max() < 1e-12
    forward = dyn.solver("aba_loops").build(model, alpha=0.0, beta=0.0, **choices)
    np.testing.assert_allclose(forward(q, qd, tau)[[0, 3]], (1.0, -2.0), rtol=1e-9)


def test_friction_goes_into_bearings_and_independent_coordinates():
    """joint_friction acts in loop_reactions and C_y as in forward dynamics."""
    model, q, qd = five_bar(damping=(0.3, 0.5, 0.7, 0.2))
    choices, tau = {"engine": "graph", "joint_friction": True}, np.arange(4.0)
    wanted = dyn.solver("loop_forward_dynamics").build(model, **choices)(q, qd, tau)
    slow = tau - np.array((0.3, 0.5, 0.7, 0.2)) * qd
    np.testing.assert_allclose(wanted.qdd, dense(model, q, qd, slow)[0], rtol=1e-9)
    got = dyn.solver("loop_reactions").build(model, **choices)(q, qd, tau)
    np.testing.assert_allclose(got.qdd, wanted.qdd, rtol=1e-9)
    y = {"independent": ["j1", "j4"]}
    C_y = dyn.solver("loop_independent_bias").build(model, **y, **choices)(q, qd)
    H_y, G = dyn.solver("loop_independent_inertia").build(model, **y, engine="graph")(q)
    np.testing.assert_allclose(H_y @ wanted.qdd[[0, 3]] + C_y, G.T @ tau, rtol=1e-9)


def test_gravity_compensation_stops_a_linkage():
    """At rest nothing moves, whichever joint has the motor; gains damp y."""
    model, q, qd = four_bar()
    for active in (["j1"], ["j3"], ["j2", "j3"]):
        law = dyn.solver("loop_gravity_compensation").build(
            model, independent=["j1"], active=active, engine="graph"
        )
        tau = law(q, 0 * qd, np.ones(3))
        np.testing.assert_allclose(dense(model, q, 0 * qd, tau)[0], 0.0, atol=1e-11)
        slowed = law(q, qd, np.full(3, 7.0)) - tau
        change = dense(model, q, 0 * qd, tau + slowed)[0]
        np.testing.assert_allclose(change[0], -7.0 * qd[0], rtol=1e-9)


def test_independent_joints_are_checked_in_words():
    """As many as freedoms, moved by motors, and no dead point among the others."""
    model, q, _ = four_bar()
    inertia = dyn.solver("loop_independent_inertia")
    with pytest.raises(dyn.UnsupportedError, match="3 coordinates for 1 freedoms"):
        inertia.build(model)
    with pytest.raises(dyn.UnsupportedError, match="2 coordinates for 1 freedoms"):
        inertia.build(model, independent=["j1", "j2"])
    with pytest.raises(dyn.UnsupportedError, match="0 motors for 1 freedoms"):
        dyn.solver("loop_computed_torque").build(model, independent=["j1"], active=[])
    crank = bars(BARS, dyn.make_loop(
        "D", "pin", "b3", at_b={"xyz": (1.0, 0, 0)}, at_a={"xyz": (2.8, 0, 0)}
    ))  # fmt: skip
    dead = inertia.build(crank, independent=["j1"], engine="graph")
    with pytest.raises(dyn.SingularError, match="loop D, .*other independent joints"):
        dead((0.0, 0.0, 0.0))


def test_inverse_dynamics_says_which_row_a_motion_opens():
    """q, qd and qdd that contradict the loops are refused, or on request not looked at."""
    model, q, qd = four_bar()
    qdd = np.array((3, -3.63927272727273, 3.73745454545455))
    cases = {
        "q": (q + [0.0, 1e-3, 0.0], qd, qdd),
        "qd": (q, qd + [0.0, 1e-3, 0.0], qdd),
        "qdd": (q, qd, qdd + [0.0, 0.1, 0.0]),
    }
    for dependent in ("refuse", "least_norm"):
        solver = dyn.solver("loop_inverse_dynamics").with_options(dependent=dependent)
        more = {"active": ["j1"]}
        solver.build(model, **more)(q, qd, qdd, (0.0, 0.0))
        for what, motion in cases.items():
            with pytest.raises(
                dyn.InfeasibleError, match=f"loop D, row .: {what} opens"
            ):
                solver.build(model, **more)(*motion, (0.0, 0.0))
            solver.build(model, residual=None, **more)(*motion, (0.0, 0.0))
    drop_in = dyn.solver("rnea_loops").build(
        model, active=["j1"], residual=1e-6, engine="graph"
    )
    drop_in(*cases["qdd"])
    with pytest.raises(dyn.InfeasibleError, match="loop D, row .: qd opens"):
        drop_in(*cases["qd"])
    hybrid = least_norm("loop_hybrid_dynamics").build(model, prescribed=["j1"])
    with pytest.raises(dyn.InfeasibleError, match="loop D, row .: q opens"):
        hybrid(*cases["q"][:2], [0.0], [0.0, 0.0])


LIGHT = (*BARS[:2], (1.3, 0.9, (0.5, 0.04), 0.08), (1.02, 0.0, (0.0, 0.0), 0.0))


def light_bar(*loops, **more):
    """Return a four-bar whose last body has no mass: a weld ties it to the base."""
    weld = dyn.make_loop("D", "planar_weld", "b4", at_a={"xyz": (1.98, 0, 0)})
    model, (q, qd) = bars(LIGHT, weld, *loops, **more), four_bar()[1:]
    return model, np.append(q, -q.sum()), np.append(qd, -qd.sum())


@pytest.mark.parametrize("engine", ["graph", "native"])
def test_a_body_without_mass_moves_with_its_loop(engine):
    """The tree's inertia is singular, the equations with multipliers are not."""
    model, q, qd = light_bar(damping=(0.1, 0.2, 0.3, 0.4))
    assert model.without_inertia == ("j4",)
    tau = np.array((1.5, -0.4, 0.3, 0.25))
    qdd, x = dense(model, q, qd, tau)
    got = dyn.solver("loop_forward_dynamics").build(model, engine=engine)(q, qd, tau)
    np.testing.assert_allclose(got.qdd, qdd, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(got.lambda_, x, rtol=1e-9)
    least = least_norm("loop_forward_dynamics").build(model)(q, qd, tau)
    np.testing.assert_allclose(least.qdd, qdd, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(least.lambda_, x, rtol=1e-9)
    slim, _, _ = four_bar()
    others = dyn.solver("aba_loops").build(slim, engine="graph", alpha=0, beta=0)
    pull = tau - np.append(np.zeros(3), tau[3])  # tau_4 turns the three bars together
    pull = pull[:3] - tau[3]
    np.testing.assert_allclose(others(q[:3], qd[:3], pull), qdd[:3], rtol=1e-9)


def test_prescribed_motion_of_a_robot_with_a_body_without_mass():
    """Hybrid dynamics, motors, bearing forces: those of dense algebra."""
    model, q, qd = light_bar()
    tau = np.array((1.5, -0.4, 0.3, 0.25))
    qdd, x = dense(model, q, qd, tau)
    choices = {"engine": "graph", "prescribed": ["j1"]}
    hybrid = dyn.solver("loop_hybrid_dynamics").build(model, **choices)
    got = hybrid(q, qd, qdd[:1], tau[1:])
    np.testing.assert_allclose(got.tau_u, tau[:1], rtol=1e-9)
    np.testing.assert_allclose(got.qdd_v, qdd[1:], rtol=1e-9)
    np.testing.assert_allclose(got.lambda_, x, rtol=1e-9)
    motors = dyn.solver("rnea_loops").build(model, engine="graph", active=["j1"])
    force = motors(q, qd, qdd)
    assert not force[1:].any()
    np.testing.assert_allclose(dense(model, q, qd, force)[0][0], qdd[0], rtol=1e-9)
    reactions = dyn.solver("loop_reactions").build(model, engine="graph")(q, qd, tau)
    np.testing.assert_allclose(reactions.f_net[3], 0.0, atol=1e-12)


def test_a_step_of_a_robot_with_a_body_without_mass_stays_closed():
    """Simulated as it is: energy is kept, the loop stays closed."""
    model, q, qd = light_bar()
    step = dyn.solver("projected_euler").build(model, engine="graph")
    energy = dyn.solver("energy").build(model, engine="graph")
    rows = dyn.solver("loop_constraints").build(model, engine="graph")
    start = sum(energy(q, qd))
    for _ in range(40):
        q, qd = step(q, qd, np.zeros(4), 2e-4)
    assert abs(sum(energy(q, qd)) - start) < 1e-2 * abs(start)
    f, A, _ = rows(q, qd)
    assert np.abs(f).max() < 1e-9 and np.abs(A @ qd).max() < 1e-6


def test_dense_algebra_agrees_with_the_tree():
    """What robots without inertia take gives the same where all have some."""
    from dyn_core.spatial import Force, Vector
    from dyn_plugins.loops._dense import dense_hybrid
    from dyn_plugins.loops.loops import constrained_hybrid

    model, q, qd, choices = _chosen(spatial, None)
    rng = np.random.default_rng(0)
    mask = [name in choices["independent"][:2] for name in model.joint_names]
    numbers = (Vector(x.tolist()) for x in rng.normal(size=(2, model.nv)))
    state = Vector(q.tolist()), Vector(qd.tolist()), mask, *numbers
    rest = [Force.zero()] * (model.nb + 1), (2.0, 3.0)
    pairs = zip(
        dense_hybrid(model, *state, *rest)[:3],
        constrained_hybrid(model, *state, *rest)[:3],
        strict=True,
    )
    for one, other in pairs:
        np.testing.assert_allclose(list(one), list(other), rtol=1e-7, atol=1e-9)


def test_what_no_loop_moves_needs_inertia():
    """Refused when built; where a loop lets go of it, when called; joint named."""
    tail = bars(LIGHT, dyn.make_loop(
        "D", "pin", "b3", at_b={"xyz": (1.02, 0, 0)}, at_a={"xyz": (1.98, 0, 0)}
    ))  # fmt: skip
    names = "aba_loops", "loop_forward_dynamics"
    for name in (*names, least_norm(names[1])):
        with pytest.raises(
            dyn.UnsupportedError, match="joint 'j4': nothing it carries"
        ):
            dyn.solver(name).build(tail)
    hold = dyn.make_loop("D", "pin", "b4", at_a={"xyz": (1.98, 0, 0)})
    model, q, qd = bars(LIGHT, hold), *light_bar()[1:]
    program = dyn.solver("aba_loops").build(model, engine="graph")
    with pytest.raises(dyn.SingularError, match="joint j4: nothing has inertia"):
        program(q, qd, np.zeros(4))
    with pytest.raises(dyn.SingularError, match="joint j4: nothing has inertia"):
        least_norm("loop_forward_dynamics").build(model)(q, qd, np.zeros(4))


@pytest.mark.parametrize("choice", [{"tries": 10**9}, {"rounds": 10**9}])
def test_attempts_to_close_loops_are_bounded(choice):
    """A search that cannot end is refused before it begins."""
    model, q, _ = four_bar()
    with pytest.raises(dyn.ModelError, match="valid: a whole number, . to 10000"):
        dyn.close_loops(model, q, **choice)
