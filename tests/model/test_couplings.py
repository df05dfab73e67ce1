"""Gears and clusters, four-frame joints, ball limits, driven places."""

import math

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import engines
from dyn_core.model import Build, Description, JointSpec, LinkSpec, Mimic, assemble
from dyn_core.numbers import scalar
from dyn_core.recordings import run_record
from dyn_core.spatial import RigidInertia, Vector, swing_twist
from dyn_core.testing import random_model, scaled_error
from dyn_core.testing.models import random_inertia

ARM = dyn.robots.path("arm7")


def _chain(n, mimic, parents=None, kinds=None):
    """Make joints j1..jn on bodies `parents`, some following others."""
    rng = np.random.default_rng(n)
    links = [LinkSpec("b0", RigidInertia.zero())]
    joints = []
    for k in range(1, n + 1):
        p = k - 1 if parents is None else parents[k - 1]
        kind = "revolute" if kinds is None else kinds[k - 1]
        xyz, rpy, axis = (tuple(map(float, x)) for x in rng.normal(size=(3, 3)))
        joints.append(
            JointSpec(
                f"j{k}",
                kind,
                f"b{p}",
                f"b{k}",
                xyz,
                rpy,
                axis,
                armature=0.1 * k,
                damping=0.2,
                friction=0.1,
                mimic=mimic.get(k),
            )
        )
        links.append(LinkSpec(f"b{k}", random_inertia(rng)))
    return assemble(Build(Description("chain", tuple(links), tuple(joints))))


SHAPES = {
    "gear in series": (2, {2: Mimic("j1", -3.0, 0.2)}, None, ["series"]),
    "chain of gears": (
        4,
        {3: Mimic("j2", 2.0), 4: Mimic("j3", -0.5, 0.1)},
        None,
        ["single", "series"],
    ),
    "two gears in a row": (
        4,
        {2: Mimic("j1", 2.0), 4: Mimic("j3", -1.5)},
        None,
        ["series", "series"],
    ),
    "gripper": (
        3,
        {3: Mimic("j2", -1.0)},
        [0, 1, 1],
        ["single", "parallel"],
    ),
    "two groups on one parent": (
        6,
        {3: Mimic("j2", 0.5), 5: Mimic("j4", 4.0)},
        [0, 1, 1, 1, 1, 1],
        ["single", "parallel", "parallel", "single"],
    ),
    "follower leads from below": (2, {1: Mimic("j2", 0.7)}, None, ["series"]),
    "locked by ratio zero": (3, {2: Mimic("j1", 0.0, 0.4)}, None, ["series", "single"]),
    "huge ratio": (2, {2: Mimic("j1", 160.0)}, None, ["series"]),
    "a joint in between": (3, {3: Mimic("j1", 1.3)}, None, ["general"]),
    "two that overlap": (
        4,
        {3: Mimic("j1", 0.8), 4: Mimic("j2", -0.6)},
        None,
        ["general"],
    ),
    "cousins": (
        5,
        {5: Mimic("j3", 0.9)},
        [0, 1, 2, 1, 4],
        ["single", "general"],
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_clusters_are_least_and_eliminated_exactly(shape):
    """The kinds of clusters, and `aba` beside H, C of the reduced robot."""
    n, mimic, parents, kinds = SHAPES[shape]
    model = _chain(n, mimic, parents)
    assert [c.kind for c in model.clusters] == kinds
    assert sorted(i for c in model.clusters for i in c.bodies) == list(model.bodies)
    rng = np.random.default_rng(0)
    q, qd, tau = model.random(rng), *rng.normal(size=(2, model.nv))
    H = dyn.solver("crba").build(model, engine="graph")(q)
    C = dyn.solver("bias").build(model, engine="graph")(q, qd)
    for name, engine in (("aba", None), ("aba_classical", "graph")):
        qdd = dyn.solver(name).build(model, engine=engine)(q, qd, tau)
        assert scaled_error(H @ qdd + C, tau) < 1e-11, name


@pytest.mark.parametrize("shape", SHAPES)
def test_coupled_robots_obey_the_kkt_system(shape):
    """[[H, G.T], [G, 0]] of the free tree gives the same accelerations."""
    n, mimic, parents, _ = SHAPES[shape]
    model, free = _chain(n, mimic, parents), _chain(n, {}, parents)
    rng = np.random.default_rng(1)
    q, qd, tau = model.random(rng), *rng.normal(size=(2, model.nv))
    B, rest = np.zeros((n, model.nv)), np.zeros(n)
    for k in range(1, n + 1):
        name = f"j{k}"
        rule = model.followers.get(name)
        column = model.v_slice(name).start
        B[k - 1, column] = 1.0 if rule is None else rule.multiplier
        rest[k - 1] = 0.0 if rule is None else rule.offset
    qt, vt = B @ q + rest, B @ qd
    H = dyn.solver("crba").build(free, engine="graph")(qt)
    C = dyn.solver("bias").build(free, engine="graph")(qt, vt)
    G = np.linalg.svd(B.T)[2][model.nv :]  # rows that B's motions fulfil
    independent = np.linalg.pinv(B.T) @ tau
    m = len(G)
    K = np.block([[H, G.T], [G, np.zeros((m, m))]])
    qdd = np.linalg.solve(K, np.concatenate([independent - C, np.zeros(m)]))[:n]
    got = dyn.solver("aba").build(model, engine="graph")(q, qd, tau)
    assert scaled_error(B @ got, qdd) < 1e-9
    omega = dyn.solver("self_responses").build(model, engine="graph")(q)
    for k in range(1, n + 1):
        J = dyn.solver("jacobian").build(free, frame=f"b{k}", engine="graph")(qt) @ B
        wanted = J @ np.linalg.solve(B.T @ H @ B, J.T)
        assert scaled_error(omega[k - 1], wanted) < 1e-9


def test_gears_between_joints_of_several_coordinates():
    """A matrix ratio: H, forward dynamics, derivatives, friction."""
    rows = ((0.5, 0.1, 0.0), (-0.2, 1.0, 0.3), (0.0, 0.0, 2.0))
    model = _chain(
        3,
        {3: Mimic("j2", rows, (0.1, 0.2, 0.3))},
        [0, 1, 1],
        ["revolute", "ball_rpy", "planar"],
    )
    assert (model.nq, model.nv) == (4, 4)
    rule = model.followers["j3"]
    np.testing.assert_array_equal(rule.multiplier, rows)
    rng = np.random.default_rng(0)
    q, qd, tau = model.random(rng), *rng.normal(size=(2, 4))
    H = dyn.solver("crba").build(model)(q)
    C = dyn.solver("bias").build(model, joint_friction=True)(q, qd)
    fd = dyn.solver("aba").build(model, joint_friction=True)
    assert scaled_error(H @ fd(q, qd, tau) + C, tau) < 1e-12
    slopes = dyn.solver("id_derivatives").build(model, joint_friction=True)
    rnea = dyn.solver("rnea").build(model, joint_friction=True, engine="plain")
    qdd = np.zeros(4)
    columns = [rnea(q, qd + 1e-30j * e, qdd).imag / 1e-30 for e in np.eye(4)]
    assert scaled_error(slopes(q, qd, qdd).dtau_dqd, np.array(columns).T) < 1e-10


def test_cost_of_gears_grows_with_the_number_of_joints():
    """Operations of `aba` on chains with a gear at every second joint: affine in n."""
    counts = []
    for n in (4, 8, 12, 16):
        mimic = {k: Mimic(f"j{k - 1}", 2.0) for k in range(2, n + 1, 2)}
        model = _chain(n, mimic)
        program = dyn.solver("aba").build(model, engine="plain")
        x = np.random.default_rng(0).normal(size=3 * model.nv)
        counts.append(sum(dyn.count(program, x).values()))
    steps = np.diff(counts)
    assert steps.max() - steps.min() <= 0.02 * steps.mean()


def test_gears_from_the_sidecar():
    """Any two joints of a file can be geared; nodes and commands see followers."""
    names = dyn.load_urdf(ARM).joint_names
    a, b, c, d = names[1], names[2], names[4], names[5]
    gears = [
        {"joints": [a, b], "ratio": -2.0, "offset": 0.1},
        {"joints": [c, d], "ratios": [0.5], "offsets": [0.0]},
    ]
    model = dyn.load_urdf(ARM, extras={"gears": gears})
    assert model.nv == 5
    assert model.followers[b].multiplier == -2.0
    assert model.followers[d].leader == c
    text = f"gears:\n  - {{joints: [{a}, {b}], ratio: 3.0}}\n"
    assert dyn.load_urdf(ARM, extras=text).followers[b].multiplier == 3.0


@pytest.mark.parametrize(
    ("gears", "message"),
    [
        ([{"joints": ["A", "A"]}], "one is there twice; valid: different"),
        ([{"joints": ["A", "nobody"]}], "no joint is called 'nobody'"),
        (
            [{"joints": ["A", "B"], "ratio": 1, "ratios": [1]}],
            "has ratio and ratios; valid: one",
        ),
        (
            [{"joints": ["A", "B", "C"], "ratios": [1]}],
            "ratios has 1 values; valid: one for each follower, 2",
        ),
        ([{"joints": ["A", "B"]}, {"joints": ["B", "A"]}], "mimics itself"),
        ([{"joints": ["A", "C"]}, {"joints": ["B", "C"]}], "follows .* already"),
        ([{"joints": ["A", "B"], "ratio": [[1, 2]]}], "1 rows of 1 numbers"),
    ],
)
def test_bad_gears_are_refused_in_words(gears, message):
    """Each error names the joints and what would be valid."""
    names = dyn.load_urdf(ARM).joint_names
    swap = dict(zip("ABC", names[1:4], strict=True))

    def put(x):
        if isinstance(x, dict):
            return {k: put(v) for k, v in x.items()}
        return [put(v) for v in x] if isinstance(x, list) else swap.get(x, x)

    with pytest.raises(dyn.ModelError, match=message):
        dyn.load_urdf(ARM, extras={"gears": put(gears)})


def test_gears_refuse_quaternions():
    """A joint whose position is no list of numbers cannot be geared."""
    with pytest.raises(dyn.ModelError, match="spherical; couplings need"):
        _chain(2, {2: Mimic("j1", ((1.0,),))}, None, ["spherical", "revolute"])


def test_a_plug_moves_the_link_and_nothing_else():
    """A joint held elsewhere in the child: same robot as one with the frames shifted."""
    rng = np.random.default_rng(0)
    I = random_inertia(rng)
    xyz, rpy = (0.1, -0.2, 0.3), (0.4, 0.5, -0.6)
    joint = JointSpec("j", "revolute", "a", "b", plug_xyz=xyz, plug_rpy=rpy)
    links = (LinkSpec("a", RigidInertia.zero()), LinkSpec("b", I))
    plugged = assemble(Build(Description("p", links, (joint,))))
    shift = plugged.frame("b").X
    moved = shift.T @ I @ shift
    plain = assemble(
        Build(
            Description(
                "q",
                (links[0], LinkSpec("b", moved)),
                (JointSpec("j", "revolute", "a", "b"),),
            )
        )
    )
    state = np.array([0.7]), np.array([0.3]), np.array([-1.1])
    for name in ("rnea", "aba"):
        a, b = (dyn.solver(name).build(m)(*state) for m in (plugged, plain))
        np.testing.assert_allclose(a, b, atol=1e-13)
    pose = dyn.solver("forward_kinematics").build(plugged, frames=["b"])(np.zeros(1))[0]
    np.testing.assert_allclose(np.linalg.inv(pose)[:3, 3], xyz, atol=1e-15)
    name = dyn.load_urdf(ARM).joint_names[3]
    extras = {"joints": {name: {"plug": {"xyz": [0, 0, 0.1]}}}}
    arm, moved = dyn.load_urdf(ARM), dyn.load_urdf(ARM, extras=extras)
    link = arm.child_links[arm.body_of_joint(name)]
    here, there = (
        dyn.solver("forward_kinematics").build(m, frames=[link])(np.zeros(7))[0]
        for m in (arm, moved)
    )
    np.testing.assert_allclose(
        there[:3, 3], here[:3, 3] - 0.1 * here[:3, 2], atol=1e-14
    )


def test_states_by_name_must_fit_their_gears():
    """Followers are checked against their rule, or the nearest state is taken."""
    model = _chain(3, {2: Mimic("j1", -2.0, 0.5)})
    np.testing.assert_allclose(
        model.position({"j1": 0.2, "j2": 0.1, "j3": 1.0}), [0.2, 1.0]
    )
    np.testing.assert_allclose(model.position({"j2": 0.1}), [0.2, 0.0])
    np.testing.assert_allclose(model.velocity({"j1": 1.0, "j2": -2.0}), [1.0, 0.0])
    with pytest.raises(dyn.ModelError, match="'j2' follows 'j1'.*project"):
        model.position({"j1": 0.2, "j2": 0.2})
    near = model.position({"j1": 0.2, "j2": 0.2}, project=True)
    x = (0.2 - 2 * (0.2 - 0.5)) / 5
    np.testing.assert_allclose(near, [x, 0.0])
    with pytest.raises(dyn.ModelError, match="valid: j1, j2, j3"):
        model.position({"nobody": 1.0})


def test_joints_of_several_coordinates_are_not_given_by_name():
    """One number is no state of a ball or a plane: the error says where it belongs."""
    model = dyn.load_urdf(dyn.robots.path("every_joint"), root_joint="floating")
    several = [i for i in model.independent if model.joint[i].nv != 1]
    assert len(several) > 3
    for i in several:
        name, kind = model.names[i], model.joint[i].kind
        for give, what in ((model.position, "position"), (model.velocity, "velocity")):
            message = f"joint '{name}' is {kind}: set its {what} in the array"
            with pytest.raises(dyn.ModelError, match=message) as caught:
                give({name: 0.1})
            assert caught.value.element == name


def test_position_rates_are_rates_of_positions():
    """dq/dt = Q(q) qd by differences, for every kind of joint."""
    from dyn_core.testing.case import derivative

    for seed in range(6):
        model = random_model(seed, size=5)
        rng = np.random.default_rng(seed)
        q, qd = model.random(rng), rng.normal(size=model.nv)
        rate = derivative(lambda t, q=q, qd=qd, m=model: m.integrate(q, qd * t))
        np.testing.assert_allclose(model.position_rate(q, qd), rate, atol=1e-9)


def test_reciprocity_of_responses():
    """Omega_ji = Omega_ij.T, and all are positive semidefinite, on random trees."""
    for seed in range(2):
        model = random_model(seed, size=6, mimic=0.5)
        names = list(model.frame_names)[-2:]
        q = model.random(np.random.default_rng(seed))
        build = dyn.solver("cross_response").build
        a, b = names
        there = build(model, moved=a, pushed=b, engine="graph")(q)
        back = build(model, moved=b, pushed=a, engine="graph")(q)
        assert scaled_error(there, back.T) < 1e-11
        direct = build(model, moved=a, pushed=a, engine="graph")(q)
        assert np.linalg.eigvalsh(direct).min() > -1e-10


def test_operational_inertia_is_not_damped_unless_asked(shipped):
    """Its inverse is J H^-1 J.T, and damping adds to that diagonal."""
    model = shipped["arm7"]
    frame = model.frame_names[-1]
    q = model.random(np.random.default_rng(0))
    J = dyn.solver("jacobian").build(model, frame=frame, engine="plain")(q)
    inverse = J @ np.linalg.solve(dyn.solver("crba").build(model)(q), J.T)
    build = dyn.solver("operational_inertia").build
    for damping, choice in ((0.0, {}), (0.3, {"damping": 0.3})):
        Lambda = build(model, frame=frame, engine="plain", **choice)(q)
        wanted = np.linalg.inv(inverse + damping * np.eye(6))
        np.testing.assert_allclose(Lambda, wanted, rtol=1e-9, atol=1e-9)


def test_ball_by_angles_reference_values():
    """Angular velocity in socket axes, and the rate of J times qd; singular at 90 deg."""
    from dyn_core.model.joints import BallRPY

    joint = BallRPY()
    q, qd = Vector((0.3, -0.5, 0.8)), Vector((0.5, -0.3, 0.7))
    R = joint.X(q).E.T
    w = R @ joint.vJ(q, qd).ang
    wanted = [0.520915656707, 0.105757585215, 0.939712769302]
    np.testing.assert_allclose(list(w), wanted, rtol=1e-10)
    wanted = [-0.124133158058, 0.313053135158, 0.131637384284]
    np.testing.assert_allclose(list(R @ joint.cJ(q, qd).ang), wanted, rtol=1e-10)
    swing, twist = swing_twist(R)
    np.testing.assert_allclose(
        [swing, twist], [0.576479751497, 0.877144032795], rtol=1e-10
    )
    links = (
        LinkSpec("a", RigidInertia.zero()),
        LinkSpec("b", random_inertia(np.random.default_rng(0))),
    )
    model = assemble(
        Build(Description("b", links, (JointSpec("ball", "ball_rpy", "a", "b"),)))
    )
    fd = dyn.solver("aba").build(model)
    with pytest.raises(dyn.SingularError, match="ball"):
        fd([0.1, math.pi / 2, 0.2], np.zeros(3), np.ones(3))


@pytest.mark.parametrize("kind", ["spherical", "ball_rpy"])
def test_ball_limits_hold(kind):
    """A ball thrown against its swing and twist limits comes back."""
    joint = JointSpec("ball", kind, "base", "stick", swing=0.6, twist=(-0.3, 0.4))
    I = RigidInertia.of(1.0, (0.0, 0.0, 0.2), np.diag((0.02, 0.03, 0.01)).tolist())
    links = (LinkSpec("base", RigidInertia.zero()), LinkSpec("stick", I))
    model = assemble(
        Build(Description("ball", links, (joint,)), gravity=(0.0, 0.0, 0.0))
    )
    assert model.ball_limits == {1: (0.6, (-0.3, 0.4))}
    free = dyn.solver("semi_implicit_euler").build(model)
    step = dyn.solver("semi_implicit_euler").build(model, limit_stops=True)
    for push in ((2.0, 0.5, 0.0), (0.0, 0.0, 2.0), (0.3, 0.2, -2.0)):
        reached = {}
        for name, program in (("free", free), ("stopped", step)):
            q, qd = model.neutral(), np.array(push)
            angles = []
            for _ in range(1000):
                q, qd = program(q, qd, np.zeros(3), 1e-3)
                R = model.joint[1].X(Vector(q.tolist())).E.T
                angles.append([float(x) for x in swing_twist(R)])
            reached[name] = np.array(angles)
        assert reached["stopped"][:, 0].max() < 0.7
        assert reached["stopped"][:, 1].max() < 0.5
        assert reached["stopped"][:, 1].min() > -0.4
        beyond = reached["free"]
        assert beyond[:, 0].max() > 0.7 or np.abs(beyond[:, 1]).max() > 0.5
    run = dyn.simulate(model, qd0=push, duration=1.0, period=1e-3)
    change = np.diff(run.qd, axis=0) / 1e-3
    recorded = run_record(run, forward_dynamics="aba").qdd[:-1]
    np.testing.assert_allclose(recorded, change, atol=1e-6 * np.abs(change).max())


def test_bad_ball_limits_are_refused():
    """Limits of a ball belong to balls, and have an order."""
    names = dyn.load_urdf(ARM).joint_names
    for entry, message in (
        ({"swing": 0.5}, "for spherical and ball_rpy"),
        ({"type": "spherical", "twist": [1.0, -1.0]}, "lower <= upper"),
    ):
        with pytest.raises(dyn.ModelError, match=message):
            dyn.load_urdf(ARM, extras={"joints": {names[0]: entry}})


def _pendulum():
    """Make the pendulum whose pivot is driven: about z, gravity along -y."""
    I = RigidInertia.of(1.3, (0.4, 0.0, 0.0), np.diag((0.05, 0.05, 0.05)).tolist())
    links = (LinkSpec("base", RigidInertia.zero()), LinkSpec("arm", I))
    joint = JointSpec("pivot", "revolute", "base", "arm", axis=(0.0, 0.0, 1.0))
    return assemble(
        Build(Description("driven", links, (joint,)), gravity=(0.0, -9.81, 0.0))
    )


def _lift(t):
    return None, (0.0, 0.1 * scalar.sin(5.0 * t), 0.0)


@pytest.mark.parametrize("engine", engines.available())
def test_a_driven_pivot(engine):
    """tau = (I + m c²) qdd + m c (g + y'') cos q, by all inverse dynamics."""
    model = _pendulum().drive("pivot", _lift)
    assert model.driven == ("pivot",)
    assert (model.nv, model.nb) == (1, 2)
    for name in ("rnea", "rnea_spatial", "rnea_common_frame"):
        rnea = dyn.solver(name).build(model, inputs=["time"], engine=engine)
        tau = rnea([0.6], [-0.8], [1.1], 0.3)
        np.testing.assert_allclose(tau, [3.42375345919762], rtol=1e-12)
    v, a = dyn.solver("body_motion").build(model, inputs=["time"], engine=engine)(
        [0.6], [-0.8], [1.1], 0.3
    )
    wanted = [0, 0, -0.8, 0.0199706142553476, 0.0291909659177018, 0]
    np.testing.assert_allclose(v[1], wanted, atol=1e-13)
    for name in ("aba", "aba_classical", "dense"):
        fd = dyn.solver(name).build(model, inputs=["time"], engine=engine)
        np.testing.assert_allclose(fd([0.6], [-0.8], tau, 0.3), [1.1], rtol=1e-11)
    times = np.linspace(0, 1, 5)
    many = rnea(
        np.full((5, 1), 0.6), np.full((5, 1), -0.8), np.full((5, 1), 1.1), times
    )
    lift = 9.81 - 2.5 * np.sin(5 * times)
    want = (0.05 + 1.3 * 0.16) * 1.1 + 1.3 * 0.4 * lift * np.cos(0.6)
    np.testing.assert_allclose(many[:, 0], want, rtol=1e-12)


def test_a_driven_place_moves_and_turns():
    """Velocities and accelerations of a turning place, by differences of poses."""

    def pose(t):
        s, c = scalar.sin(t * t), scalar.cos(t * t)
        R = ((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0))
        return R, (0.1 * scalar.exp(-t), 0.3 * t * t / (1.0 + t), scalar.tanh(t))

    model = dyn.load_urdf(ARM)
    joint = model.joint_names[2]
    model = model.drive(joint, pose)
    rng = np.random.default_rng(0)
    q0, qd, qdd = model.random(rng), *rng.normal(size=(2, 7))
    frame = model.frame_names[-1]
    fk = dyn.solver("forward_kinematics").build(model, inputs=["time"], frames=[frame])
    fv = dyn.solver("frame_velocity").build(
        model, inputs=["time"], frame=frame, reference="aligned"
    )

    def path(t):
        return q0 + qd * t + qdd * t * t / 2, qd + qdd * t

    from dyn_core.testing.case import derivative

    t0 = 0.4
    speed = derivative(lambda t: fk(path(t)[0], t0 + t)[0, :3, 3])
    np.testing.assert_allclose(fv(q0, qd, t0)[3:], speed, atol=1e-10)
    motion = dyn.solver("body_motion").build(
        model, inputs=["time"], acceleration="classical"
    )
    v, a = motion(q0, qd, qdd, t0)
    body = model.frame(frame).body
    X = np.asarray(model.frame(frame).X, float)
    v_frame = X @ v[body - 1]
    push = derivative(lambda t: fv(*path(t), t0 + t)[3:])
    R = fk(q0, t0)[0, :3, :3]
    spatial = a[body - 1].copy()
    spatial[3:] -= np.cross(v[body - 1][:3], v[body - 1][3:])
    there = X @ spatial
    relative = there[3:] + np.cross(v_frame[:3], v_frame[3:])
    np.testing.assert_allclose(R @ relative, push, atol=1e-9)
    slopes = dyn.solver("id_derivatives").build(model, inputs=["time"])(q0, qd, qdd, t0)
    rnea = dyn.solver("rnea").build(model, inputs=["time"], engine="plain")
    for k, e in enumerate(np.eye(7)):
        column = rnea(q0 + 1e-30j * e, qd, qdd, t0).imag / 1e-30
        np.testing.assert_allclose(slopes.dtau_dq[:, k], column, atol=1e-9)


def test_bad_drives_are_refused():
    """No time, an unknown joint, a function that gives something else."""
    model = _pendulum()
    with pytest.raises(dyn.UnsupportedError, match="inputs="):
        dyn.solver("rnea").build(model.drive("pivot", _lift))
    with pytest.raises(dyn.ModelError, match="valid: pivot"):
        model.drive("nobody", _lift)
    with pytest.raises(dyn.ModelError, match="three rows"):
        model.drive("pivot", lambda t: (None, (t, t)))


def test_geared_robots_step_and_track():
    """A geared arm under computed torque reaches its reference; aba and dense agree."""
    names = dyn.load_urdf(ARM).joint_names
    gears = [{"joints": [names[4], names[5]], "ratio": -2.0, "offset": 0.1}]
    model = dyn.load_urdf(ARM, extras={"gears": gears})
    law = dyn.solver("computed_torque").build(model)
    steps = [
        dyn.solver("semi_implicit_euler").build(model, forward_dynamics=name)
        for name in ("aba", "dense")
    ]
    goal, still = model.neutral() + 0.2, np.zeros(model.nv)
    states = [(model.neutral(), still)] * 2
    gains = np.full(model.nv, 100.0), np.full(model.nv, 20.0)
    for _ in range(1500):
        pairs = zip(steps, states, strict=True)
        states = [
            step(q, qd, law(q, qd, goal, still, still, *gains), 1e-3)
            for step, (q, qd) in pairs
        ]
    np.testing.assert_allclose(states[0][0], states[1][0], atol=1e-9)
    np.testing.assert_allclose(states[0][0], goal, atol=1e-3)


def test_a_drive_may_choose_by_time():
    """A drive with `where` on the time compiles, and its rates are those of each part."""

    def push(t):
        return None, (0.0, scalar.where(t < 0.5, t * t, 2.0 - t), 0.0)

    model = _pendulum().drive("pivot", push)
    motion = dyn.solver("body_motion").build(
        model, inputs=["time"], acceleration="classical"
    )
    for t, speed, rate in ((0.3, 0.6, 2.0), (0.8, -1.0, 0.0)):
        v, a = motion([0.0], [0.0], [0.0], t)
        np.testing.assert_allclose(v[0][4], speed, atol=1e-13)
        np.testing.assert_allclose(a[0][4], rate, atol=1e-13)


def test_a_robot_is_coupled_where_a_joint_follows_another():
    """A chain of independent joints is not; one gear is enough."""
    assert not _chain(3, {}).coupled
    assert _chain(3, {2: Mimic("j1", 2.0, 0.1)}).coupled


def test_an_unknown_entry_of_a_plug_is_refused():
    """What moves the joint in its link is a place alone."""
    name = dyn.load_urdf(ARM).joint_names[3]
    extras = {"joints": {name: {"plug": {"xyz": [0, 0, 0.1], "axis": [0, 0, 1]}}}}
    with pytest.raises(dyn.ModelError, match="plug.*axis"):
        dyn.load_urdf(ARM, extras=extras)


def test_a_follower_does_not_set_a_leader_of_several_coordinates():
    """One number does not determine three: the error names the leader."""
    model = _chain(
        3,
        {3: Mimic("j2", ((0.5, 0.1, 0.0),), (0.1,))},
        [0, 1, 1],
        ["revolute", "ball_rpy", "revolute"],
    )
    for place in (model.position, model.velocity):
        with pytest.raises(dyn.ModelError, match="joint 'j2' is ball_rpy: set its"):
            place({"j3": 0.4})
