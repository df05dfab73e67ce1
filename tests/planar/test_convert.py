"""Planar chains as robots: the general engine and the chain's solvers agree (WAW-15.2)."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest
import yaml

import dyn_core as dyn
from dyn_core import robots
from dyn_core.engines import available
from dyn_core.errors import ModelError, ModelWarning
from dyn_core.model import Build, Description, JointSpec, LinkSpec, Mimic, assemble
from dyn_core.planar import FREE, GUIDED, LINE, make_chain, make_chain_like
from dyn_core.planar.conversion.convert import from_model, to_model, to_urdf
from dyn_core.planar.conversion.robot_state import state_to_chain, state_to_model
from dyn_core.planar.conversion.serial import place, read
from dyn_core.planar.objects.objects import planar_object
from dyn_core.spatial import RigidInertia
from dyn_core.testing import TOLERANCES, scaled_error
from dyn_plugins.planar._testing.chains import dense_accelerations, random_chain

EXACT = TOLERANCES["exact"]
BASES = ("fixed", "line", "free")
EACH_BASE = pytest.mark.parametrize("base", BASES)
PLANE = (0, 2)  # X and Z
NORMAL = (0.6, 0.8)


def run(name, model, *args, engine="native", **arguments):
    """Run a solver once; keyword arguments are its optional inputs."""
    solver = dyn.solver(name)
    inputs = tuple(
        k for k in arguments if k in {p.name for p in solver.signature.inputs}
    )
    choices = {k: x for k, x in arguments.items() if k not in inputs}
    program = solver.build(model, engine=engine, inputs=inputs, **choices)
    return program(*args, **{k: arguments[k] for k in inputs})


def near(got, wanted, tolerance=EXACT):
    assert scaled_error(got, wanted) <= tolerance, (got, wanted)


def based(seed, base, n=None, massive=0.4, **parts):
    """Return a random chain on a base, its robot, a state of both, and torques."""
    drawn = random_chain(seed, n, ("free",), active=0.0, massive=massive).chain
    rng = np.random.default_rng(seed + 1000)
    constraints = {"kind": {0: base}, "s": {0: NORMAL}}
    parts = {
        "k_v": (),
        "constraints": constraints,
        "gravity": rng.normal(size=2) * 6,
    } | parts
    chain = make_chain_like(drawn, **parts)
    model = to_model(chain)
    q, qd = rng.uniform(-2, 2, model.nq), rng.normal(size=model.nv)
    state = state_to_chain(model, chain, q, qd)
    return chain, model, q, qd, state, rng.normal(size=model.nv)


def pushed(chain, state, tau, engine="native", **choices):
    """Return forces on the joints of gravity, resistance, and the robot's joint forces."""
    first = len(tau) - (chain.n - 1)
    F = run(
        "chain_forces", chain, *state, [*tau[first:], 0.0], engine=engine, **choices
    )
    kind, (x, y) = chain.constraints.kind[0], chain.constraints.s[0]
    F[0] += {GUIDED: [0, 0], LINE: tau[0] * np.array((y, -x)), FREE: tau[:2]}[kind]
    return F


def along_base(chain, qdd):
    """Return the acceleration of joint 0 of the base's sliding coordinates."""
    (x, y), kind = chain.constraints.s[0], chain.constraints.kind[0]
    return {GUIDED: [0, 0], LINE: qdd[0] * np.array((y, -x)), FREE: qdd[:2]}[kind]


def point_rows(chain, model, q):
    """Return the rows of all joints' velocities in the plane, (2n, nv)."""
    rows = [
        run("jacobian", model, q, frame=name, reference="aligned", engine="plain")
        for name in chain.joint_names
    ]
    return np.concatenate([J[[3 + k for k in PLANE]] for J in rows])


def closed_robot(model, chain, state, how):
    """Return the robot with loops: {joint: None for guided, else the line's normal}."""
    loops = []
    for i, s in how.items():
        name, (x, z) = chain.joint_names[i], state.x[i]
        point = {"xyz": (float(x), 0.0, float(z))}
        if s is None:
            loops.append(
                dyn.make_loop(f"at {name}", "axes", name, at_a=point, axes=["x", "z"])
            )
        else:
            loops.append(dyn.user_loop(f"at {name}", _across(s), name, at_a=point))
    return model.with_loops(*loops)


def _across(s):
    return lambda R, p: [p[0] * s[0] + p[2] * s[1]]


# Chains as robots.


@pytest.mark.turns("seed")
@EACH_BASE
@pytest.mark.parametrize("seed", range(4))
def test_forward_dynamics_is_that_of_the_general_engine(base, seed):
    """alpha = qdd, a_0 = that of the base, with torques, resistance, massive links."""
    chain, model, q, qd, state, tau = based(seed, base)
    engine = available()[seed % len(available())]
    qdd = run("aba", model, q, qd, tau, engine=engine, joint_friction=True)
    got = run(
        "chain_recursion",
        chain,
        *state,
        pushed(chain, state, tau, engine),
        engine=engine,
    )
    first = model.nv - (chain.n - 1)
    near(got.alpha[:-1], qdd[first:])
    near(got.a[0], along_base(chain, qdd))
    near(got.a.ravel(), point_rows(chain, model, q) @ qdd + _bias(chain, model, q, qd))


def _bias(chain, model, q, qd):
    """Return the joints' accelerations at qdd = 0, (2n,)."""
    choices = {"reference": "aligned", "engine": "plain"}
    rows = [
        run("frame_bias_acceleration", model, q, qd, frame=name, **choices)
        for name in chain.joint_names
    ]
    return np.concatenate([a[[3 + k for k in PLANE]] for a in rows])


@pytest.mark.turns("seed")
@EACH_BASE
@pytest.mark.parametrize("seed", range(3))
def test_inverse_dynamics_is_that_of_the_general_engine(base, seed):
    """tau_w = rnea, with every angle active that something holds (WAW-8.3)."""
    chain, model, q, qd, state, tau = based(seed, base)
    first = model.nv - (chain.n - 1)
    active = list(range(base == "free", chain.n - 1))
    alpha = np.random.default_rng(seed).normal(size=chain.n)
    chain = chain.with_constraints(
        kind={0: base}, s={0: NORMAL}, active=active, alpha_w=alpha
    )
    free = np.zeros(chain.n - 1)
    free[[i for i in range(chain.n - 1) if i not in active]] = tau[first]
    F = pushed(chain, state, [*tau[:first], *free])
    got = run("chain_recursion", chain, *state, F)
    near(got.alpha[active], alpha[active])
    qdd = [*{"fixed": [], "line": [got.a[0] @ (0.8, -0.6)], "free": got.a[0]}[base]]
    wanted = run("rnea", model, q, qd, [*qdd, *got.alpha[:-1]], joint_friction=True)
    near([*tau[:first], *(got.tau_w[:-1] + free)], wanted)
    for name in ("chain_torques", "chain_torques_dense"):
        engine = "native" if name == "chain_torques" else None
        near(run(name, chain, *state, F, engine=engine), got.tau_w, 1e-11)


@pytest.mark.turns("seed")
@EACH_BASE
@pytest.mark.parametrize("seed", range(2))
def test_active_joints_are_hybrid_dynamics(base, seed):
    """Some angles with given accelerations: tau_w and alpha are those of hybrid."""
    chain, model, q, qd, state, tau = based(seed, base, n=6)
    first, rng = model.nv - 5, np.random.default_rng(seed)
    active = sorted(rng.choice(range(1, 5), 2, replace=False).tolist())
    alpha = rng.normal(size=6)
    chain = chain.with_constraints(
        kind={0: base}, s={0: NORMAL}, active=active, alpha_w=alpha
    )
    tau[[first + i for i in active]] = 0.0
    got = run("chain_recursion", chain, *state, pushed(chain, state, tau))
    names = [chain.joint_names[i] for i in active]
    others = [k for k in range(model.nv) if k - first not in active]
    wanted = run(
        "hybrid", model, q, qd, alpha[active], tau[others],
        prescribed=names, joint_friction=True,
    )  # fmt: skip
    near(got.tau_w[active], wanted.tau_u)
    near(np.array([*along_base(chain, qdd_of(got, chain)), *got.alpha[:-1]]),
         np.array([*along_base(chain, _all(wanted, others, model, alpha[active])),
                   *_all(wanted, others, model, alpha[active])[first:]]))  # fmt: skip


def qdd_of(got, chain):
    """Return the robot's accelerations of a chain's."""
    base = {GUIDED: [], LINE: [got.a[0] @ (0.8, -0.6)], FREE: got.a[0]}
    return [*base[chain.constraints.kind[0]], *got.alpha[:-1]]


def _all(hybrid, others, model, prescribed):
    qdd = np.zeros(model.nv)
    qdd[others] = hybrid.qdd_v
    qdd[[k for k in range(model.nv) if k not in others]] = prescribed
    return qdd


CLOSED = [  # base, guided joints, joints on a line
    ("fixed", [4], []), ("fixed", [3], [5]), ("line", [2], []), ("line", [], [5]),
    ("free", [2], []), ("free", [0, 3], []), ("free", [1], [4]), ("fixed", [], [3]),
]  # fmt: skip


@pytest.mark.parametrize("base, guided, lines", CLOSED)
def test_guided_joints_are_loops(base, guided, lines):
    """Joints held inside the chain move like loops of the general engine."""
    seed = len(guided) + 2 * len(lines) + 10
    chain, model, q, _, _, tau = based(seed, base, n=6, k_omega=())
    how = dict.fromkeys(guided) | {i: (math.cos(i), math.sin(i)) for i in lines}
    closed, qd = _consistent(chain, model, q, how)
    state = state_to_chain(model, chain, q, qd)
    kind = list(chain.constraints.kind)
    s = [list(row) for row in chain.constraints.s]
    for i, normal in how.items():
        kind[i], s[i] = (GUIDED, s[i]) if normal is None else (LINE, normal)
    F = pushed(chain, state, tau)
    got = run("chain_recursion", chain, *state, F, kind=kind, s=s, a_w=np.zeros((6, 2)))
    assert dense_accelerations(chain, *state, F, kind=kind, s=s).independent
    assert not got.dropped.any()
    wanted = run("loop_forward_dynamics", closed, q, qd, tau)
    first = model.nv - 5
    near(got.alpha[:-1], wanted.qdd[first:], 1e-10)
    near(got.a[0], along_base(chain, wanted.qdd), 1e-10)
    near(run("aba_loops", closed, q, qd, tau), wanted.qdd, 1e-10)
    pull = [
        x
        for i, n in how.items()
        for x in (got.reaction[i] if n is None else [got.reaction[i] @ n])
    ]
    near(pull, wanted.lambda_, 1e-10)


def _consistent(chain, model, q, how):
    """Return the robot with loops, and a velocity at which they hold."""
    zero = np.zeros(model.nv)
    closed = closed_robot(model, chain, state_to_chain(model, chain, q, zero), how)
    f, A, _ = run("loop_constraints", closed, q, zero)
    near(f, np.zeros(len(f)), 1e-14)
    qd = np.random.default_rng(7).normal(size=model.nv)
    return closed, qd - np.linalg.pinv(A) @ (A @ qd)


@pytest.mark.turns("seed")
@EACH_BASE
@pytest.mark.parametrize("seed", range(4))
def test_plastic_impacts_are_those_of_the_general_engine(base, seed):
    """H dqd = J.T p, J qd+ = 0 by dense algebra: velocities and impulses (WAW-7.1)."""
    chain, model, q, qd, state, _ = based(seed, base, n=6)
    first = model.nv - 5
    hits, stop = [([2], []), ([3, 5], [1]), ([4], [2]), ([2, 4], [])][seed]
    kind, jump, turn = list(chain.constraints.kind), np.zeros((6, 2)), np.zeros(6)
    for i in hits:
        kind[i], jump[i] = GUIDED, -state.v[i]
    turn[stop] = -qd[[first + i for i in stop]]
    active = np.isin(range(6), stop).astype(float)
    got = run("chain_impact", chain, *state, jump, turn, kind=kind, active=active)
    J = point_rows(chain, model, q)
    rows = [J[2 * i + k] for i in hits for k in (0, 1)]
    rows = np.array(rows + [np.eye(model.nv)[first + i] for i in stop])
    H = run("crba", model, q)
    p = -np.linalg.solve(rows @ np.linalg.solve(H, rows.T), rows @ qd)
    after = qd + np.linalg.solve(H, rows.T @ p)
    near(got.v_next, state_to_chain(model, chain, q, after).v, 1e-11)
    wanted = [*got.impulse[hits].ravel(), *got.torque_impulse[stop]]
    near(p, wanted, 1e-11)
    near(got.loss, 0.5 * (qd @ H @ qd - after @ H @ after), 1e-11)


@pytest.mark.turns("seed")
@EACH_BASE
@pytest.mark.parametrize("seed", range(2))
def test_responses_are_those_of_the_general_engine(base, seed):
    """da/dF = J H^-1 J.T, dalpha/dtau = H^-1 (WAW-8.1, WAW-8.2)."""
    chain, model, q, _, state, _ = based(seed, base)
    J, H = point_rows(chain, model, q), run("crba", model, q)
    n, first = chain.n, model.nv - (chain.n - 1)
    got = run("chain_force_jacobian", chain, state.x)
    near(got.transpose(0, 2, 1, 3).reshape(2 * n, 2 * n), J @ np.linalg.solve(H, J.T))
    S = run("chain_torque_response", chain, state.x)
    near(S[:-1, :-1], np.linalg.inv(H)[first:, first:], 1e-11)


def test_responses_with_a_guided_joint():
    """The same with joint 3 guided: H^-1 less what its support takes."""
    chain, model, q, _, state, _ = based(3, "fixed", n=6)
    J, H = point_rows(chain, model, q), run("crba", model, q)
    A, inverse = J[6:8], np.linalg.inv(H)
    inverse = inverse - inverse @ A.T @ np.linalg.solve(A @ inverse @ A.T, A @ inverse)
    kind = [GUIDED, 0, 0, GUIDED, 0, 0]
    got = run("chain_force_jacobian", chain, state.x, kind=kind)
    near(got.transpose(0, 2, 1, 3).reshape(12, 12), J @ inverse @ J.T, 1e-11)
    S = run("chain_torque_response", chain, state.x, kind=kind)
    near(S[:-1, :-1], inverse, 1e-11)


def test_the_acrobot_is_its_robot():
    """Rods with inertia 1, far above a uniform rod's: closed form, chain and robot."""
    robot = planar_object("acrobot")
    chain = robot.rods.chain(robot.parameters)
    model = to_model(chain)
    q, qd, tau = np.array([0.3, -0.7]), np.array([1.1, -0.4]), np.array([0.5, -1.2])
    qdd = run("aba", model, q, qd, tau)
    near(qdd, [-5.103396755301, 2.402272030218], 1e-10)
    state = state_to_chain(model, chain, q, qd)
    near(
        run("chain_recursion", chain, *state, pushed(chain, state, tau)).alpha[:-1], qdd
    )


# There and back.


def same(one, other, tolerance=1e-14):
    """Assert that two chains are the same."""
    for key in (f.name for f in fields(one)):
        a, b = getattr(one, key), getattr(other, key)
        if key in ("name", "joint_names", "ground"):
            assert a == b, key
        elif key == "constraints":
            for part in (f.name for f in fields(a)):
                near(getattr(a, part), getattr(b, part), tolerance)
        else:
            infinite = np.isinf(a)
            assert (infinite == np.isinf(b)).all(), key
            near(np.array(a)[~infinite], np.array(b)[~infinite], tolerance)


@EACH_BASE
def test_chain_to_urdf_and_back(base):
    """URDF and side file, through text, give all parameters back."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        chain = random_chain(seed, 5, massive=0.5).chain
        n, constraints = chain.n, chain.constraints
        constraints = {"kind": [base, *constraints.kind[1:]], "s": [(0, 1), *constraints.s[1:]], "a_w": constraints.a_w,
               "active": [i for i in range(1, n - 1) if constraints.active[i]], "alpha_w": constraints.alpha_w}  # fmt: skip
        chain = make_chain_like(
            chain,
            constraints=constraints,
            gravity=rng.normal(size=2),
            lower={1: -1.5, 2: -2.0},
            upper={1: 0.25, 3: 1.0},
            ground=[
                {"z0": (0.0, -0.5), "z": (0.0, 1.0), "joints": [1, 4], "mode": "slide"}
            ],
            joint_names=["ground", "link0", "<b>", "link0_", "é"],
            name="a & b",
        )
        urdf, left_out, side = to_urdf(chain)
        assert len(left_out) >= 4
        side = yaml.safe_load(yaml.safe_dump(side))
        same(from_model(dyn.load_urdf(urdf), **side), chain)


@EACH_BASE
def test_what_urdf_can_say_needs_no_side_file(base):
    """Lengths, masses, links with mass, damping, limits, base."""
    constraints = {"kind": {0: base}} | ({"s": {0: NORMAL}} if base == "line" else {})
    chain = make_chain(
        [0.5, 0.4, 0.7], [1, 0.7, 0.5, 0.2], k_omega=[0.1, 0.2, 0.3, 0],
        link_masses=[0.3, 0, 0.1], link_coms=[0.2, 0, 0.4], link_inertias=[0.1, 0, 0],
        lower={0: -1.0, 1: 3.0}, upper={0: 2.0, 1: 9.0}, constraints=constraints,
    )  # fmt: skip
    converted = to_urdf(chain)
    assert converted.left_out == ()
    assert converted.side == {}
    back = from_model(dyn.load_urdf(converted.urdf))
    same(back, chain)
    exact = {"link_coms": chain.link_coms, "link_inertias": chain.link_inertias}
    assert (
        to_urdf(make_chain_like(back, constraints=chain.constraints, **exact)).urdf
        == converted.urdf
    )


def test_single_points_convert():
    """A chain of one joint: a point on a line, a free one, a fixed one."""
    for base, nv in (("fixed", 0), ("line", 1), ("free", 2)):
        s = {"s": {0: (0, 1)}} if base == "line" else {}
        chain = make_chain([], [2.0], constraints={"kind": base} | s)
        model = to_model(chain)
        assert model.nv == nv
        assert (model.lower < -100.0).all() and (model.upper > 100.0).all()  # both ways
        back = from_model(model)
        same(make_chain_like(back, joint_names=chain.joint_names), chain)
        state = state_to_chain(model, chain, np.full(nv, 0.3), np.full(nv, 0.2))
        q, qd = state_to_model(model, chain, state)
        near(q, np.full(nv, 0.3))
        near(qd, np.full(nv, 0.2))


def test_what_is_left_out_is_said():
    """Each thing without a place in URDF, in words."""
    chain = make_chain(
        [1, 1], [1, 1, 1], gravity=1.0, k_v=0.1, k_omega=0.1, upper={1: 2.0},
        ground=[{}], constraints={"kind": {0: "fixed", 2: "guided"}, "active": [1], "a_w": {2: (1, 0)}},
    )  # fmt: skip
    beyond = make_chain([1], [1, 1], link_masses=[0.5], link_coms=[1.5])
    converted = to_urdf(beyond)
    assert converted.left_out == ("that joint1 is the tip, and not the mass beyond it",)
    same(from_model(dyn.load_urdf(converted.urdf), **converted.side), beyond)
    omissions = "; ".join(to_urdf(chain).left_out)
    for part in ("gravity", "k_v", "k_omega of the last", "joint1, which are on one side",
                 "ground: 1", "guided or on a line", "prescribed accelerations of joint2", "active joints"):  # fmt: skip
        assert part in omissions, part
    bare = make_chain([1], [1, 1], link_inertias=[0.1])
    with pytest.raises(ModelError, match="link 0 has inertia and no mass"):
        to_urdf(bare)


# Robots as chains.


def robot(seed, base="fixed", count=3, plain=False):
    """Return a random robot in a random plane: skew frames, bent links, all inertias.

    Args:
        seed: Of the random numbers.
        base: fixed, line, free (two sliding joints), planar or floating.
        count: How many bodies turn.
        plain: Whether bodies are symmetric about the plane (for a floating base).
    """
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn = turn * np.linalg.det(turn)  # the plane: its x and y, and z across
    world = [0.0, 0.0, 0.0] if plain else list(_rpy(turn))
    slides = {"line": 1, "free": 2}.get(base, 0)
    links, joints = [LinkSpec("b0", RigidInertia.zero())], []
    kinds = ["prismatic"] * slides + ["revolute"] * count
    if base in ("planar", "floating"):
        kinds[0] = base
    for k, kind in enumerate(kinds, 1):
        R = _spun(rng.uniform(-3, 3)) if k > 1 else np.eye(3)
        angles = _rpy(R) if k > 1 else world
        across = 0.0 if plain else rng.normal()
        xyz = (*rng.normal(size=2), across)
        sliding = kind == "prismatic"
        sign = rng.choice([-1.0, 1.0])
        angle = rng.uniform(0, 3)
        axis = (
            (math.cos(angle + k), math.sin(angle + k), 0.0) if sliding else (0, 0, sign)
        )
        I = (
            _body(rng, plain)
            if not (sliding and slides == 2 and k == 1)
            else RigidInertia.zero()
        )
        links.append(LinkSpec(f"b{k}", I))
        joints.append(
            JointSpec(
                f"j{k}", kind, f"b{k - 1}", f"b{k}", tuple(map(float, xyz)),
                tuple(map(float, angles)), tuple(map(float, axis)),
                damping=0.2 if kind == "revolute" else 0.0,
            )
        )  # fmt: skip
    g = turn @ (6.0, -7.0, 0.0) if not plain else (6.0, -7.0, 0.0)
    description = Description("random", tuple(links), tuple(joints))
    return assemble(Build(description, gravity=tuple(map(float, g))))


def _spun(angle):
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def _rpy(R):
    return (
        math.atan2(R[2, 1], R[2, 2]),
        math.asin(-R[2, 0]),
        math.atan2(R[1, 0], R[0, 0]),
    )


def _body(rng, plain):
    A = rng.normal(size=(3, 3)) * 0.3
    if plain:
        A[2, :2] = A[:2, 2] = 0.0
    P = A @ A.T
    com = [*rng.normal(size=2) * 0.4, 0.0 if plain else float(rng.normal())]
    return RigidInertia.of(
        float(rng.uniform(0.5, 2)), com, (np.trace(P) * np.eye(3) - P).tolist()
    )


def as_chain(model, q, qd, tau):
    """Return the robot's accelerations by its chain: those of turns, and of joint 0."""
    chain = from_model(model)
    state = state_to_chain(model, chain, q, qd)
    row = read(model)
    turning = [k for k, s in enumerate(row.segments) if s.turns]
    torques, F0 = np.zeros(chain.n), np.zeros(2)
    push = tau.copy()
    if row.free and model.joint[1].kind == "floating":
        R = place(model, q)[1][0]
        torques[0], F0 = row.axes[2] @ R @ tau[:3], row.flat(R @ tau[3:6])
        push = push[6:]
    elif row.free:
        torques[0] = tau[2] * row.sense(model, 1)
        F0 = np.linalg.inv(_columns(model, row)[:, :2]).T @ tau[:2]
        push = push[3:]
    else:
        D = _columns(model, row)
        F0, push = np.linalg.pinv(D).T @ tau[: D.shape[1]], push[D.shape[1] :]
        torques[0] = push[0] * row.sense(model, row.root)
        push = push[1:]
    for k, x in zip(turning[1:], push, strict=True):
        torques[k] = x * row.sense(model, row.segments[k].body)
    F = run("chain_forces", chain, *state, torques, engine="plain")
    F[0] += F0
    got = run("chain_recursion", chain, *state, F, engine="plain")
    return chain, row, turning, got


def _columns(model, row):
    """Return what each sliding coordinate moves in the plane, (2, count)."""
    columns = []
    for i in [1] if row.free else row.slides:
        S = model.joint[i].S(model.neutral()[model.q_slices[i]])
        columns += [row.flat(row.poses[i][0] @ np.array(s.lin)) for s in S]
    return np.array(columns).reshape(-1, 2).T


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("base", ["fixed", "line", "free", "planar", "floating"])
def test_robots_in_any_plane_are_chains(base, seed):
    """Bent links, offsets along axes, skew frames and inertias: alpha = ± qdd."""
    model = robot(seed, base, plain=base == "floating")
    rng = np.random.default_rng(seed)
    q, qd = rng.uniform(-2, 2, model.nq), rng.normal(size=model.nv)
    tau = rng.normal(size=model.nv)
    if base == "floating":
        half = q[3]
        q[2:7] = 0.4, 0.0, 0.0, math.sin(half), math.cos(half)
        qd[[0, 1, 5]] = tau[[0, 1, 5]] = 0.0
    qdd = run("aba", model, q, qd, tau, joint_friction=True, engine="plain")
    chain, row, turning, got = as_chain(model, q, qd, tau)
    first = {"line": 1, "free": 2, "planar": 2, "floating": 5}.get(base, 0)
    sense = [
        row.sense(model, row.segments[k].body) for k in turning[base == "floating" :]
    ]
    alpha = qdd[first + (base == "floating") :] * sense
    near(got.alpha[turning[base == "floating" :]], alpha, 1e-11)
    if base == "floating":
        near(got.alpha[0], row.axes[2] @ [0, 0, qdd[2]], 1e-11)
        R = _spun(2 * half)
        a = R @ (qdd[3:6] + np.cross(qd[:3], qd[3:6]))
        near(got.a[0], row.flat(a), 1e-11)
    else:
        near(got.a[0], _columns(model, row)[:, :2] @ qdd[: min(first, 2)], 1e-11)
    state = state_to_chain(model, chain, q, qd)
    q2, qd2 = state_to_model(model, chain, state)
    near(state_to_chain(model, chain, q2, qd2), state)
    near(qd2, qd, 1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_urdf_to_chain_to_urdf(seed):
    """The chain of a robot, as a robot again, moves like the first (without bends)."""
    first = based(seed, "fixed", n=4)[1]
    chain = from_model(first)
    second = to_model(chain)
    same(from_model(second), chain, 1e-13)
    rng = np.random.default_rng(seed)
    q, qd, qdd = rng.normal(size=(3, 3))
    near(run("rnea", first, q, qd, qdd), run("rnea", second, q, qd, qdd))


def test_limits_follow_the_joints():
    """theta = bend + sign q: limits change places where the axis points the other way."""
    links = [LinkSpec("b0", RigidInertia.zero())]
    rod = RigidInertia.of(1.0, (0.0, 0.5, 0.0), (0.1, 0, 0, 0.1, 0, 0.1))
    links += [LinkSpec("b1", rod), LinkSpec("b2", rod)]
    joints = (
        JointSpec(
            "j1", "revolute", "b0", "b1", axis=(0, 0, -1.0), lower=-0.3, upper=1.0
        ),
        JointSpec(
            "j2",
            "revolute",
            "b1",
            "b2",
            (0.0, 1.0, 0.0),
            axis=(0, 0, 1.0),
            lower=-2.0,
            upper=0.5,
        ),
    )
    model = assemble(
        Build(Description("r", tuple(links), joints), gravity=(0, -9.81, 0))
    )
    chain = from_model(model)
    near(chain.lower[:2], [math.pi / 2 - 1.0, -2.0])
    near(chain.upper[:2], [math.pi / 2 + 0.3, 0.5])
    state = state_to_chain(model, chain, [0.2, -0.1], [1.0, 2.0])
    near(state.x[1], [math.sin(0.2), math.cos(0.2)])
    q, qd = state_to_model(model, chain, state)
    near(q, [0.2, -0.1])
    near(qd, [1.0, 2.0])


def test_shipped_robots():
    """planar3 (bent) and cart_pole convert; two_link in its plane; others say why not."""

    def load(name, **how):
        return dyn.load_urdf(robots.path(name), **how)

    bent = from_model(load("planar3").without_friction())
    assert bent.joint_names[2] == "joint2_bend"
    assert bent.constraints.active == (False, False, True, False, False)
    cart = from_model(load("cart_pole"))
    assert (cart.masses, cart.lengths, cart.link_coms) == ((1.0, 0.0), (1.0,), (0.5,))
    assert cart.constraints.s[0] == (0.0, 1.0)
    two = from_model(load("two_link", gravity=(0.0, -9.81, 0.0)).without_friction())
    near(two.lengths, [0.8, 0.9])
    with pytest.raises(ModelError, match="not in the plane across"):
        from_model(load("two_link").without_friction())
    for name in ("planar3", "cart_pole", "two_link"):
        gravity = (0.0, -9.81, 0.0) if name == "two_link" else (0.0, 0.0, -9.81)
        model = load(name, gravity=gravity).without_friction()
        rng = np.random.default_rng(1)
        q, qd, tau = rng.normal(size=(3, model.nv))
        chain, row, turning, got = as_chain(model, q, qd, tau)
        sense = [row.sense(model, row.segments[k].body) for k in turning]
        qdd = run("aba", model, q, qd, tau)
        near(got.alpha[turning], qdd[model.nv - len(turning) :] * sense)
    for name, why in (("arm7", "not parallel"), ("quadruped", "no branches")):
        with pytest.raises(ModelError, match=why):
            from_model(load(name).without_friction())
    with pytest.raises(ModelError, match="dry friction.*without_friction"):
        from_model(load("planar3"))


def test_the_tip_is_a_choice():
    """A link of the last body ends the chain; names of others are refused."""
    links = [
        LinkSpec("b0", RigidInertia.zero()),
        LinkSpec("b1", ROD),
        *map(_bare, ("hand", "eye")),
    ]
    joints = (
        JointSpec("j1", "continuous", "b0", "b1", axis=(0.0, 1.0, 0.0)),
        JointSpec("f1", "fixed", "b1", "hand", (0.7, 0.0, 0.0)),
        JointSpec("f2", "fixed", "b1", "eye", (0.3, 0.0, 0.4)),
    )
    model = assemble(Build(Description("r", tuple(links), joints)))
    assert from_model(model).joint_names == ("j1", "hand")
    chain = from_model(model, tip="eye")
    assert chain.joint_names == ("j1", "j1_bend", "eye")
    with pytest.raises(ModelError, match="no link 'nose' .* valid: b1, hand, eye"):
        from_model(model, tip="nose")
    assert from_model(model, k_v=[0.1, 0.2]).k_v == (0.1, 0.2)
    with pytest.raises(ModelError, match="no attribute is called 'mood'; valid"):
        from_model(model, mood=1)
    with pytest.raises(ModelError, match="has 1 links, robot 'r' is 2"):
        state_to_chain(model, from_model(model), [0.1], [0.2], tip="eye")


ROD = RigidInertia.of(1.0, (0.5, 0.0, 0.0), (0.1, 0, 0, 0.1, 0, 0.1))
HUB = RigidInertia.of(1.0, (0.0, 0.0, 0.0), (0.1, 0, 0, 0.1, 0, 0.1))
SKEW = RigidInertia.of(1.0, (0.5, 0.0, 0.0), (0.2, 0, 0, 0.2, 0.05, 0.2))
ASIDE = RigidInertia.of(1.0, (0.5, 0.3, 0.0), (0.1, 0, 0, 0.1, 0, 0.1))


def _bare(name):
    return LinkSpec(name, RigidInertia.zero())


def row_of(*joints, inertia=ROD):
    """Return a robot of joints behind each other about y, each with changes."""
    links, specs = [_bare("b0")], []
    for k, changes in enumerate(joints, 1):
        changed = dict(changes)
        links.append(LinkSpec(f"b{k}", changed.pop("inertia", inertia)))
        spec = JointSpec(
            f"j{k}", changed.pop("kind", "continuous"), f"b{k - 1}", f"b{k}",
            (1.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0),
        )  # fmt: skip
        specs.append(replace(spec, **changed))
    return assemble(Build(Description("r", tuple(links), tuple(specs))))


LINE_X = {"kind": "prismatic", "axis": (1.0, 0.0, 0.0)}
LINE_Y = {"kind": "prismatic", "axis": (0.0, 1.0, 0.0)}
LINE_Z = {"kind": "prismatic", "axis": (0.0, 0.0, 1.0)}
BARE = {"inertia": RigidInertia.zero()}
REFUSED = {
    "branch": (lambda: row_of({}, {}, {"parent": "b1"}), "'b1' carries the joints j2, j3; a chain has no branches"),
    "axes": (lambda: row_of({}, {"axis": (0.0, 0.1, 1.0)}), "axes of joints 'j1' and 'j2' are not parallel"),
    "slider": (lambda: row_of({}, LINE_X), "joint 'j2' is prismatic; only the base"),
    "three": (lambda: row_of(LINE_X | BARE, LINE_Z, LINE_X, {}), "joint 'j3' is the third that slides"),
    "same line": (lambda: row_of(LINE_X | BARE, LINE_X, {}), "'j1' and 'j2' slide along the same line"),
    "out": (lambda: row_of(LINE_Y, {}), "'j1' slides along .* out of the plane"),
    "carriage": (lambda: row_of(LINE_X, LINE_Z, {}), "link 'b1' slides along one line only and has mass"),
    "ball": (lambda: row_of({"kind": "spherical"}, {}), "'j1' is spherical"),
    "screw": (lambda: row_of({}, {"kind": "helical", "pitch": 0.1}), "'j2' is helical"),
    "late planar": (lambda: row_of({}, {"kind": "planar"}), "'j2' is planar"),
    "mimic": (lambda: row_of({}, {"mimic": Mimic("j1")}), "'j2' follows joint 'j1'"),
    "spring": (lambda: row_of({"stiffness": 2.0}), "'j1' has a spring"),
    "rotor": (lambda: row_of({"armature": 0.1}), "'j1' has the inertia of a rotor"),
    "friction": (lambda: row_of({"friction": 0.1}), "'j1' has dry friction"),
    "damped": (lambda: row_of(LINE_X | {"damping": 0.1}, {}), "'j1' is prismatic and damped"),
    "no length": (lambda: row_of({}, {"xyz": (0.0, 0.3, 0.0)}), "from joint 'j1' to 'j2' has no length"),
    "gravity": (lambda: row_of({"axis": (0.0, 0.0, 1.0)}), "gravity .* not in the plane across .* of joint|gravity"),
    "loop": (
        lambda: row_of({}, {}).with_loops(dyn.make_loop("D", "point", "b2")), "loop 'D' closes it",
    ),
    "forces": (lambda: row_of({}).with_forces(lambda q, qd: q), "functions give it more joint forces"),
    "driven": (
        lambda: row_of({}, {}).drive("j2", lambda t: (None, (t, 0.0, 0.0))), "'j2.drive' is driven",
    ),
    "skew": (lambda: row_of({"kind": "floating"}, {"inertia": SKEW}), "'b2' has products of inertia"),
    "aside": (lambda: row_of({"kind": "floating"}, {"inertia": ASIDE}), "'b1' and 'b2' are not in one plane"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_robots_that_are_no_chain(case):
    """Each is refused in words that name the joint or link."""
    make, why = REFUSED[case]
    with pytest.raises(ModelError, match=f"no planar chain: .*{why}"):
        from_model(make())


MASSLESS = """<robot name="r"><link name="b"/><link name="l"/>
<joint name="j" type="continuous"><parent link="b"/><child link="l"/><axis xyz="0 1 0"/>
</joint></robot>"""


def test_a_last_link_without_mass_and_end():
    """Such a robot is loaded with a warning; nothing says where its chain ends."""
    with pytest.warns(ModelWarning, match="nothing it carries has inertia"):
        model = dyn.load_urdf(MASSLESS)
    with pytest.raises(ModelError, match="joint 'j' carries no mass, .* name a tip"):
        from_model(model)
    with pytest.warns(ModelWarning, match="nothing that they carry has inertia"):
        model = dyn.load_urdf(MASSLESS, root_joint="floating")
    with pytest.raises(ModelError, match="joint 'j' carries no mass, .* name a tip"):
        from_model(model)


def test_harmless_inertias_and_offsets():
    """A skew inertia and one aside change nothing where bearings take the couples."""
    for inertia in (SKEW, ASIDE):
        model = row_of({}, {"inertia": inertia, "xyz": (1.0, 0.4, 0.0)})
        q, qd, tau = np.random.default_rng(2).normal(size=(3, 2))
        _, row, turning, got = as_chain(model, q, qd, tau)
        assert row.sense(model, 1) == -1.0
        near(-got.alpha[turning], run("aba", model, q, qd, tau))


def test_a_hub_and_free_roots():
    """Links whose centre is on their joint; free roots whose next joint is at the origin."""
    hub = from_model(row_of({}, inertia=HUB))
    near(hub.lengths, [math.sqrt(0.1)])
    near(hub.link_coms, [0.0])
    for inertia, length in ((ROD, 0.5), (HUB, math.sqrt(0.1))):
        model = row_of({"kind": "planar", "inertia": inertia}, {"xyz": (0.0, 0.0, 0.0)})
        q, qd, tau = np.random.default_rng(2).normal(size=(3, 4))
        chain = from_model(model)
        near(chain.lengths[0], length)
        state = state_to_chain(model, chain, q, qd)
        for got, wanted in zip(
            state_to_model(model, chain, state), (q, qd), strict=True
        ):
            near(got, wanted)
        torques = [-tau[2], -tau[3], 0.0]
        F = run("chain_forces", chain, *state, torques)
        F[1] += _on_plane(model) @ tau[:2]  # the body's origin is joint 1 here
        got = run("chain_recursion", chain, *state, F)
        qdd = run("aba", model, q, qd, tau)
        near(-got.alpha[:2], qdd[2:])


def _on_plane(model):
    row = read(model)
    return _columns(model, row)[:, :2]


def test_states_that_do_not_fit():
    """A floating robot out of its plane; a chain that is not where the base is."""
    model = row_of({"kind": "floating"}, {})
    chain = from_model(model)
    q, qd = model.neutral(), np.zeros(model.nv)
    qd[0] = 0.1
    with pytest.raises(ModelError, match="leaves the plane"):
        state_to_chain(model, chain, q, qd)
    fixed = row_of({}, {})
    chain = from_model(fixed)
    x, v = state_to_chain(fixed, chain, [0.1, 0.2], [0.3, 0.4])
    near(x[0], [1.0, 0.0])
    for q, qd in ((np.zeros((3, 2)), [0.3, 0.4]), ([0.1, 0.2], np.zeros((1, 2)))):
        with pytest.raises(dyn.ShapeError, match=r"wanted shape \(2,\)"):
            state_to_chain(fixed, chain, q, qd)
    with pytest.raises(ModelError, match="is where its base cannot have it, 0.1 off"):
        state_to_model(fixed, chain, (x + 0.1 * np.eye(2)[0], v))
    for state in (np.stack([x, x]), np.stack([v, v])), (np.stack([x, x]), v):
        with pytest.raises(dyn.ShapeError, match=r"x: wanted shape \(3, 2\)"):
            state_to_model(fixed, chain, state)
    for state in (x + np.nan, v), (x, v + np.inf):
        with pytest.raises(dyn.NonFiniteError, match="state of the chain"):
            state_to_model(fixed, chain, state)
    with pytest.raises(ModelError, match="moves where its base cannot have it"):
        state_to_model(fixed, chain, (x, v + np.eye(2)[0]))


def test_chains_of_other_lengths_are_refused():
    """Their angles would be of the robot, their positions not."""
    chain = make_chain(lengths=(0.5, 0.4), masses=(1.0, 0.7, 0.5))
    model = to_model(chain)
    state = state_to_chain(model, chain, model.neutral(), np.zeros(model.nv))
    longer = make_chain_like(chain, lengths=[1.01 * x for x in chain.lengths])
    for call in (
        lambda: state_to_chain(model, longer, model.neutral(), np.zeros(model.nv)),
        lambda: state_to_model(model, longer, state),
    ):
        with pytest.raises(ModelError, match=r"has links of .* m, robot '.*' of"):
            call()
