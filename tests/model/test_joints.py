"""Every joint kind against differences, other coordinates, and bad input (KIM-2.4)."""

import math
import re

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import engines
from dyn_core.authoring import Vector, cross
from dyn_core.model import Build, Description, JointSpec, LinkSpec, assemble
from dyn_core.model.joints import (
    KINDS,
    BallExp,
    BallRPY,
    Custom,
    GroupJoint,
    Helical,
    Planar,
    Prismatic,
    Product,
    Revolute,
    Universal,
    make_joint,
)
from dyn_core.model.joints.moving_pose import moving_pose
from dyn_core.model.joints.one_axis import unit
from dyn_core.numbers.scalar import cos, sin
from dyn_core.spatial import RigidInertia
from dyn_core.spatial.conventions import quaternion
from dyn_core.testing import TOLERANCES, scaled_error
from dyn_core.testing.case import derivative
from dyn_core.testing.models import random_inertia

LAW = 1e-10  # eighth-order differences of smooth functions
ONE = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
AXIS = (0.36, 0.48, 0.8)
OBLIQUE_AXES = [(2.0, 1.0, 0.5), (-0.3, 1.0, 0.2)]  # axes of a universal joint


def ellipse(q):
    """Slide on an ellipse, turned along its tangent: one coordinate, S(q) not const."""
    a, b = 0.5, 0.3
    c, s = cos(q[0]), sin(q[0])
    over = 1 / dyn.authoring.sqrt(a * a * s * s + b * b * c * c)
    x, y = -a * s * over, b * c * over
    return ((x, -y, 0.0), (y, x, 0.0), (0.0, 0.0, 1.0)), (a * c, b * s, 0.0)


def cam(q):
    """Roll over a surface: two coordinates, three shifts and two turns."""
    cy, sy = cos(q[1]), sin(q[1])
    R = ((cy, 0.0, sy), (0.0, 1.0, 0.0), (-sy, 0.0, cy))
    return R, (q[0], q[1] * q[0] * 0.2, 0.1 * sin(q[0] * 2) - 0.3 * cy)


def polar(q):
    """Return R_z(a) and r along the turned x: a cylindrical joint across its axis."""
    c, s = cos(q[0]), sin(q[0])
    return ((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)), (c * q[1], s * q[1], 0.0)


def _of_kind(kind):
    """Make a joint of a kind with numbers that are nothing special."""
    factors = (
        JointSpec("f", "revolute", "a", "b", axis=AXIS),
        JointSpec("f", "helical", "a", "b", axis=(1.0, 2.0, 2.0), pitch=0.3),
        JointSpec("f", "ball_exp", "a", "b"),
    )
    return make_joint(
        JointSpec(
            "j",
            kind,
            "a",
            "b",
            axis=AXIS,
            pitch=-0.2,
            axes=OBLIQUE_AXES,
            factors=factors,
        )
    )


JOINTS = {kind: _of_kind(kind) for kind in KINDS}
JOINTS |= {
    "in series": Product([Universal(), Planar(AXIS)], (4, 0, 3, 1, 2)),
    "xy": Universal(),
    "ellipse": Custom(ellipse, 1),
    "cam": Custom(cam, 2),
}
COORDINATES = [name for name, joint in JOINTS.items() if joint.nq == joint.nv]
EVERY = pytest.mark.parametrize("name", JOINTS)
SMOOTH = pytest.mark.parametrize("name", COORDINATES)


def _state(name, seed=0):
    joint, rng = JOINTS[name], np.random.default_rng(seed)
    return joint, np.array(joint.random(rng)), rng.normal(size=joint.nv)


def _six(motion):
    return np.array(list(motion), float)


def _S(joint, q):
    columns = [_six(column) for column in joint.S(Vector(q.tolist()))]
    return np.array(columns).reshape(-1, 6).T


def _pose(joint, q):
    T = np.eye(4)
    R, p = joint.X(Vector(list(q))).pose
    T[:3, :3], T[:3, 3] = np.asarray(R, float), list(p)
    return T


def _rate_of_pose(joint, q, v):
    """Return vee(T^-1 dT/dt) while q moves at v."""

    def pose(t):
        moved = joint.integrate(Vector(q.tolist()), Vector((v * t).tolist()))
        return _pose(joint, moved)

    W = np.linalg.inv(pose(0.0)) @ derivative(pose)
    return np.array([W[2, 1], W[0, 2], W[1, 0], *W[:3, 3]])


@EVERY
def test_S_is_the_slope_of_X(name):
    """Column k of S is vee(T^-1 dT/dq_k); vJ = S qd."""
    for seed in range(3):
        joint, q, qd = _state(name, seed)
        S = _S(joint, q)
        assert S.shape == (6, joint.nv)
        wanted = [_rate_of_pose(joint, q, e) for e in np.eye(joint.nv)]
        assert scaled_error(S, np.array(wanted).T) < LAW
        vJ = joint.vJ(Vector(q.tolist()), Vector(qd.tolist()))
        assert scaled_error(_six(vJ), S @ qd) < 1e-14


@EVERY
def test_cJ_is_the_rate_of_S(name):
    """cJ = d/dt (S qd) at constant qd."""
    for seed in range(3):
        joint, q, qd = _state(name, seed)

        def along(t, joint=joint, q=q, qd=qd):
            moved = joint.integrate(Vector(q.tolist()), Vector((qd * t).tolist()))
            return _S(joint, np.array(list(moved), float)) @ qd

        got = joint.cJ(Vector(q.tolist()), Vector(qd.tolist()))
        assert scaled_error(_six(got), derivative(along)) < LAW


@SMOOTH
def test_slopes_and_maurer_cartan(name):
    """S_slopes, cJ_slopes are derivatives; dS_j/dq_k - dS_k/dq_j = S_j x S_k."""
    joint, q, qd = _state(name)
    position, rate = Vector(q.tolist()), Vector(qd.tolist())
    slopes = joint.S_slopes(position)
    bias = joint.cJ_slopes(position, rate)
    unit = np.eye(joint.nv)
    for k, e in enumerate(unit):
        got = np.array([_six(c) for c in slopes[k]]).T
        assert scaled_error(got, derivative(lambda t, e=e: _S(joint, q + e * t))) < LAW

        def cJ(t, e=e):
            return _six(joint.cJ(Vector((q + e * t).tolist()), rate))

        assert scaled_error(_six(bias[k]), derivative(cJ)) < LAW
    S = list(joint.S(position))
    for j in range(joint.nv):
        for k in range(joint.nv):
            turn = _six(slopes[k][j]) - _six(slopes[j][k])
            assert scaled_error(turn, _six(cross(S[j], S[k]))) < 1e-13


@EVERY
def test_neutral_rates_and_equality(name):
    """X at neutral is the identity, dq/dt = Q qd, joints compare by what they are."""
    joint, q, qd = _state(name)
    if joint.kind != "custom":
        np.testing.assert_allclose(_pose(joint, joint.neutral()), np.eye(4), atol=1e-15)
    assert len(joint.neutral()) == len(joint.random(np.random.default_rng(1)))
    position, v = Vector(q.tolist()), Vector(qd.tolist())

    def moved(t):
        return np.array(list(joint.integrate(position, Vector((qd * t).tolist()))))

    rate = np.array(list(joint.position_rate(position, v)))
    assert scaled_error(rate, derivative(moved)) < LAW
    back = joint.difference(position, joint.integrate(position, v * 0.3))
    assert scaled_error(np.array(list(back)), 0.3 * qd) < 1e-12
    assert joint == joint
    assert hash(joint) == hash(joint)
    others = [other for key, other in JOINTS.items() if key != name]
    assert all(joint != other for other in others if other.kind != joint.kind)
    for k in range(joint.nv if isinstance(joint, GroupJoint) else 0):
        assert not any(_six(joint.S_slopes(position)[k][0]))


def test_S_of_the_source():
    """Universal, Z-Y-X ball and planar joint as KIM-2.4 writes them."""
    q = np.array([0.3, -0.7])
    c, s = math.cos(q[1]), math.sin(q[1])
    np.testing.assert_allclose(
        _S(Universal(), q)[:3].T, [(c, 0, s), (0, 1, 0)], atol=1e-16
    )
    x, y, z = 0.4, -0.6, 1.1
    sx, cx, sy, cy = math.sin(x), math.cos(x), math.sin(y), math.cos(y)
    wanted = [(1, 0, 0), (0, cx, -sx), (-sy, cy * sx, cy * cx)]
    S = _S(BallRPY(), np.array([x, y, z]))
    np.testing.assert_allclose(S[:3].T, wanted, atol=1e-15)
    t = 0.9
    c, s = math.cos(t), math.sin(t)
    wanted = [(0, 0, 0, c, -s, 0), (0, 0, 0, s, c, 0), (0, 0, 1, 0, 0, 0)]
    np.testing.assert_allclose(_S(Planar(), np.array([0.2, 0.3, t])).T, wanted)
    np.testing.assert_allclose(
        _S(Helical(ONE[2], 0.1), np.zeros(1)).T, [(0, 0, 1, 0, 0, 0.1)]
    )


def test_S_of_exponential_coordinates():
    """J and its rate with the values of KIM-S1."""
    q, qd = Vector((0.4, -0.7, 1.1)), Vector((0.3, 0.2, -0.5))
    rate = [
        [0.194759439855322, -0.189661238112668, -0.0325404448273445],
        [0.145317313411311, 0.118672746611613, 0.224757475478328],
        [0.0796653143362053, -0.0650481213314609, 4.24632211791267e-4],
    ]
    got = BallExp().cJ(q, qd)
    np.testing.assert_allclose(list(got.ang), np.array(rate) @ list(qd), atol=1e-12)
    for small in (0.0, 1e-9, 1e-4):
        q = Vector((small, -small, 2 * small))
        got = BallExp().S_slopes(q)
        for k, e in enumerate(np.eye(3)):
            wanted = [-0.5 * np.cross(e, f) for f in np.eye(3)]
            np.testing.assert_allclose(
                [list(c.ang) for c in got[k]], wanted, atol=max(3 * small, 1e-15)
            )


# -- robots ----------------------------------------------------------------------------


def _robot(joints, bodies=2, **build):
    """Hang a chain of (kind or Joint) on a base that turns."""
    rng = np.random.default_rng(3)
    links = [LinkSpec("b0", random_inertia(rng)), LinkSpec("b1", random_inertia(rng))]
    specs = [JointSpec("base", "revolute", "b0", "b1", (0.1, 0.2, 0.3), axis=AXIS)]
    by_name = {}
    for k, joint in enumerate(joints, 2):
        kind = joint if isinstance(joint, str) else "fixed"
        place = (0.2, -0.1, 0.3), (0.4, 0.2, -0.5)
        place = place if k == 2 else ((0.0,) * 3, (0.0,) * 3)
        if not isinstance(joint, str):
            by_name[f"j{k}"] = joint
        mass = k == len(joints) + 1
        specs.append(JointSpec(f"j{k}", kind, f"b{k - 1}", f"b{k}", *place))
        inertia = random_inertia(np.random.default_rng(9))
        links.append(LinkSpec(f"b{k}", inertia if mass else RigidInertia.zero()))
    tail = len(links)
    specs.append(JointSpec("tail", "revolute", f"b{tail - 1}", "end", (0.1, 0.0, 0.2)))
    links.append(LinkSpec("end", random_inertia(rng)))
    description = Description("twins", tuple(links), tuple(specs))
    return assemble(Build(description, joints=by_name, **build))


TWINS = {  # joints with the same motions in other coordinates
    "ball": ["spherical", "ball_rpy", "ball_exp", Product([Universal(), Revolute()])],
    "free": [
        "floating",
        "free_rpy",
        Product([Prismatic(e) for e in ONE] + [BallExp()]),
        Custom(lambda q: (dyn.spatial.lie.exp3(q[:3]), q[3:]), 6),
    ],
    "polar": [Product([Revolute(), Prismatic(ONE[0])]), Custom(polar, 2)],
    "universal": ["universal", Product([Revolute(ONE[0]), Revolute(ONE[1])])],
}


@pytest.mark.parametrize("family", TWINS)
def test_other_coordinates_give_the_same_accelerations(family):
    """One mechanism, several choices of coordinates: bodies move alike under gravity."""
    rng = np.random.default_rng(5)
    accelerations = []
    first = _robot([TWINS[family][0]])
    start = first.joint[2]
    pose = start.X(Vector(start.random(rng)))
    nv = start.nv
    S0 = None
    for choice in TWINS[family]:
        model = _robot([choice])
        joint = model.joint[2]
        q2 = np.array(_coordinates(joint, pose))
        assert scaled_error(_pose(joint, q2), _of(pose)) < 1e-12
        S = _S(joint, q2)
        if S0 is None:
            S0, v = S, S @ rng.normal(size=nv)
        qd2 = np.linalg.lstsq(S, v, rcond=None)[0]
        np.testing.assert_allclose(S @ qd2, v, atol=1e-12)
        q = np.concatenate([[0.3], q2, [0.5]])
        qd = np.concatenate([[0.7], qd2, [-0.4]])
        tau = np.zeros(model.nv)
        qdd = dyn.solver("aba").build(model, engine="graph")(q, qd, tau)
        a = dyn.solver("body_motion").build(model, engine="graph")(q, qd, qdd)
        accelerations.append(a)
    for other in accelerations[1:]:
        for here, there in zip(accelerations[0], other, strict=True):
            assert scaled_error(there, here) < 1e-9


def _of(X):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.asarray(X.pose[0], float), list(X.pose[1])
    return T


def _coordinates(joint, X):
    """Find coordinates of a pose: by formula or by Newton's method."""
    if isinstance(joint, GroupJoint):
        R, p = X.pose
        return [*(list(p) if joint.nv == 6 else []), *quaternion(R)]
    q = np.array(joint.random(np.random.default_rng(2)))
    for _ in range(200):
        step = dyn.spatial.lie.log_transform(X @ joint.X(Vector(q.tolist())).inverse)
        full = np.linalg.lstsq(_S(joint, q), _six(step), rcond=None)[0]
        q = q + full * min(1.0, 0.5 / max(np.abs(full).max(), 1e-300))
        if np.abs(full).max() < 1e-14:
            break
    return q


def test_a_ball_is_three_revolute_joints():
    """ball_rpy and three turns with bodies without mass: the same tau, H and C."""
    one = _robot(["ball_rpy"])
    turns = [Revolute(e) for e in reversed(ONE)]
    three = _robot(turns)
    rng = np.random.default_rng(0)
    q, qd, qdd = one.random(rng), *rng.normal(size=(2, one.nv))
    order = [0, 3, 2, 1, 4]
    for name, args in (("rnea", (q, qd, qdd)), ("bias", (q, qd)), ("gravity", (q,))):
        wanted = dyn.solver(name).build(three)(*(x[order] for x in args))
        got = dyn.solver(name).build(one)(*args)
        assert scaled_error(got[order], wanted) < TOLERANCES["exact"], name
    H = dyn.solver("crba").build(one)(q)
    wanted = dyn.solver("crba").build(three)(q[order])
    assert scaled_error(H[np.ix_(order, order)], wanted) < TOLERANCES["exact"]


@pytest.mark.parametrize(
    ("kind", "q"),
    [
        ("ball_rpy", [0.3, math.pi / 2, 0.2]),
        ("free_rpy", [0.1, 0.2, 0.3, 0.4, math.pi / 2, 0.5]),
        ("ball_exp", [0.0, 2 * math.pi, 0.0]),
        ("universal", [0.3, math.pi / 2]),
    ],
)
def test_singular_places_are_named(kind, q):
    """Forward dynamics names the joint, inverse dynamics works; a cross never fails."""
    model = _robot([kind])
    q = np.concatenate([[0.3], q, [0.5]])
    qd, third = np.linspace(-1, 1, 2 * model.nv).reshape(2, -1)
    tau = dyn.solver("rnea").build(model)(q, qd, third)
    assert np.isfinite(tau).all()
    for name in ("aba", "dense"):
        fd = dyn.solver(name).build(model)
        if kind == "universal":
            assert np.isfinite(fd(q, qd, third)).all()
            continue
        with pytest.raises(dyn.SingularError, match="j2"):
            fd(q, qd, third)


@pytest.mark.parametrize("engine", dyn.ENGINES)
@pytest.mark.parametrize(
    ("joint", "kind"),
    [
        (Custom(lambda q: (None, (0.0, 0.0, q[0])), 1), Prismatic()),
        (Custom(polar, 2), Product([Revolute(), Prismatic(ONE[0])])),
        (Custom(lambda q: (dyn.spatial.lie.exp3(q), (0, 0, 0)), 3), "ball_exp"),
    ],
)
def test_custom_is_like_a_kind(joint, kind, engine):
    """A user's function of the pose gives all that a built-in kind gives."""
    if engine not in engines.available():
        pytest.skip(f"engine {engine} is not available here")
    ours, theirs = _robot([joint]), _robot([kind])
    rng = np.random.default_rng(1)
    q, qd, third = theirs.random(rng), *rng.normal(size=(2, theirs.nv))
    for name in ("rnea", "aba", "id_derivatives"):
        got = dyn.solver(name).build(ours, engine=engine)(q, qd, third)
        wanted = dyn.solver(name).build(theirs, engine="graph")(q, qd, third)
        for x, y in zip(np.atleast_1d(got), np.atleast_1d(wanted), strict=True):
            assert scaled_error(x, y) < 1e-11, name


@pytest.mark.parametrize("joint", ["ellipse", "cam"])
def test_user_joints_keep_the_laws(joint, full):
    """Inverse and forward dynamics, H, energy and derivatives on user's surfaces.

    Without --full two of eight solvers; their laws build most of the others.
    """
    from dyn_core.testing.conformance import check

    model = _robot([JOINTS[joint], "ball_exp"])
    names = (
        "aba",
        "id_derivatives",
        "rnea",
        "crba",
        "energy",
        "fd_derivatives",
        "jacobian",
        "rk4",
    )
    for name in names if full else names[:2]:
        bad = [str(x) for x in check(dyn.solver(name), model, "graph") if not x.good]
        assert not bad, f"{name}: {bad}"


def test_with_joint_survives_lock_chains_and_reorder():
    """A joint of one's own stays where the robot is cut, locked or reordered."""
    arm = dyn.load_urdf(dyn.robots.path("arm7"))
    name = arm.joint_names[2]
    model = arm.with_joint(name, Custom(cam, 2))
    assert (model.nq, model.joint_kind(name)) == (8, "custom")
    rest = [n for n in model.joint_names if n != name]
    assert model.lock({rest[0]: 0.1}).joint_kind(name) == "custom"
    assert model.reorder([*rest, name]).joint_names[-1] == name
    tip = model.child_links[model.body_of_joint(name)]
    assert model.rebuilt(tip=tip).joint_kind(name) == "custom"
    locked = model.lock({name: [0.2, 0.3]})
    assert locked.nv == 6
    q = np.zeros(8)
    q[model.q_slice(name)] = [0.2, 0.3]
    poses = dyn.solver("forward_kinematics").build(model)(q)
    again = dyn.solver("forward_kinematics").build(locked)(np.zeros(6))
    np.testing.assert_allclose(again, poses, atol=1e-14)
    with pytest.raises(dyn.ModelError, match=r"no joint is called 'nose';"):
        arm.with_joint("nose", Revolute())


# -- sidecar and bad input ---------------------------------------------------------------

URDF = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
<origin xyz="0.1 0.2 0.3"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
</inertial></link><joint name="j" type="continuous"><parent link="a"/><child link="b"/>
<axis xyz="0 0 1"/></joint></robot>"""

ENTRIES = {
    "helical": ({"pitch": 0.1, "axis": [0, 0, 1]}, Helical(ONE[2], 0.1)),
    "cylindrical": ({"axis": [1, 0, 0]}, KINDS["cylindrical"].about(ONE[0])),
    "universal": ({"axes": OBLIQUE_AXES}, Universal(*OBLIQUE_AXES)),
    "ball_exp": ({}, BallExp()),
    "free_rpy": ({}, KINDS["free_rpy"]()),
    "product": (
        {
            "factors": [
                {"type": "revolute", "axis": [0, 0, 1]},
                {
                    "type": "product",
                    "factors": [{"type": "helical", "pitch": 0.2, "axis": [0, 1, 0]}],
                },
            ]
        },
        Product([Revolute(), Product([Helical(ONE[1], 0.2)])]),
    ),
}


@pytest.mark.parametrize("kind", ENTRIES)
def test_sidecar_makes_the_kinds(kind):
    """Each named kind with its own keys."""
    entry, wanted = ENTRIES[kind]
    entry = {"type": kind, "armature": 1.0, **entry}
    model = dyn.load_urdf(URDF, extras={"joints": {"j": entry}})
    assert model.joint[1] == wanted


BAD = {
    "needs a list of one or more factors": {"type": "product"},
    "cannot be a factor": {"type": "product", "factors": [{"type": "spherical"}]},
    "not parallel": {"type": "universal", "axes": [[0, 0, 1], [0, 0, 2]]},
    "no direction": {"type": "cylindrical", "axis": [0, 0, 0]},
    "joints: j: pitch changes nothing of a joint of type revolute; valid: axis": {
        "type": "revolute",
        "pitch": 0.1,
    },
    "axis changes nothing of a joint of type spherical; valid: none": {
        "type": "spherical",
        "axis": [1, 0, 0],
    },
    "axis changes nothing of a joint of type ball_rpy": {
        "type": "ball_rpy",
        "axis": [1, 0, 0],
    },
    "axes changes nothing of a joint of type cylindrical; valid: axis": {
        "type": "cylindrical",
        "axes": [[1, 0, 0], [0, 1, 0]],
    },
    "axis changes nothing of a joint of type product; valid: factors": {
        "type": "product",
        "axis": [1, 0, 0],
        "factors": [{"type": "revolute"}],
    },
    "factors.0.: pitch changes nothing of a joint of type revolute": {
        "type": "product",
        "factors": [{"type": "revolute", "pitch": 1.0}],
    },
    "'j' is fixed, which this does not change": {"type": "fixed", "damping": 1.0},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_joints_are_refused_in_words(message):
    """What cannot be made says why, and names the joint."""
    with pytest.raises(dyn.ModelError, match=message) as caught:
        dyn.load_urdf(URDF, extras={"joints": {"j": BAD[message]}})
    assert re.search(r"joints: j\b|'j'", str(caught.value))


def test_a_fixed_joint_is_no_factor_of_a_product():
    """Nor in a description made in Python: of files, the table of keys refuses it."""
    links = tuple(LinkSpec(x, random_inertia(np.random.default_rng(0))) for x in "ab")
    factors = tuple(JointSpec("f", x, "a", "b") for x in ("revolute", "fixed"))
    joint = JointSpec("j", "product", "a", "b", factors=factors)
    with pytest.raises(dyn.ModelError, match="'j': a fixed joint cannot be a factor"):
        assemble(Build(Description("r", links, (joint,))))


@pytest.mark.parametrize(
    ("pose", "nq", "message"),
    [
        (lambda q: (None, (q[0], 0.0)), 1, "three rows of three"),
        (lambda q: ((1.0, 0.0, 0.0), (q[0], 0.0, 0.0)), 1, "three rows of three"),
        (lambda q: None, 1, "three rows of three"),
        (
            lambda q: (((2.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0)), (0, 0, 0)),
            1,
            "no rotation",
        ),
        (
            lambda q: (((-1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0)), (0, 0, 0)),
            1,
            "no rotation",
        ),
        (lambda q: (None, (float("nan"), 0.0, 0.0)), 1, "not finite"),
        (polar, 0, "1 to 6"),
        (polar, 7, "1 to 6"),
    ],
)
def test_bad_custom_joints_are_refused_in_words(pose, nq, message):
    """Shapes, rotations and numbers are looked at when the joint is made."""
    with pytest.raises(dyn.ModelError, match=message):
        Custom(pose, nq)
    with pytest.raises(dyn.ModelError, match="2 finite numbers"):
        Custom(polar, 2, neutral=[0.0])
    with pytest.raises(dyn.ModelError, match=r"finite span, 0 or more, got .* -1.0"):
        Custom(polar, 2, span=-1.0)
    with pytest.raises(dyn.ModelError, match="places of a product"):
        Product([Revolute(), Revolute()], (0, 2))
    with pytest.raises(dyn.ModelError, match="at least one factor"):
        Product([])


@pytest.mark.parametrize(("kind", "entry"), [("ball_rpy", 1), ("free_rpy", 4)])
def test_angles_are_drawn_up_to_near_their_singularity(kind, entry):
    """The second angle lies on both sides, at least 0.2 rad from a quarter turn."""
    joint, rng = KINDS[kind](), np.random.default_rng(0)
    drawn = [joint.random(rng)[entry] for _ in range(200)]
    most = math.pi / 2 - 0.2
    assert -most <= min(drawn) < 0.1 - most
    assert most - 0.1 < max(drawn) <= most


@pytest.mark.parametrize("kind", ["revolute", "helical", "planar", "universal"])
def test_geometry_is_changed_by_its_name(kind):
    """Another name, or another count of numbers, is refused."""
    spec = JointSpec("j", kind, "a", "b", axis=AXIS, axes=OBLIQUE_AXES, pitch=0.1)
    joint = make_joint(spec)
    what = "axes" if kind == "universal" else "axis"
    count = len(joint.geometry(what))
    for wrong in ({"axis", "axes"} - {what}) | {"colour"}:
        with pytest.raises(dyn.ModelError, match=f"of type {kind} has no {wrong}"):
            joint.with_geometry(wrong, [1.0] * count)
    with pytest.raises(
        dyn.ModelError, match=f"{count} numbers wanted, got {count + 1}"
    ):
        joint.with_geometry(what, [1.0] * (count + 1))
    with pytest.raises(dyn.SingularError, match="whose length is 0"):
        joint.with_geometry(what, [0.0] * count)


@pytest.mark.parametrize("axis", [(0, 0, 0), (0, 1), (1, 0, np.nan), ("x", 0, 1)])
def test_an_axis_is_three_numbers_with_a_length(axis):
    for kind in (Revolute, Planar, Universal, Helical):
        with pytest.raises(dyn.ModelError, match="axis"):
            kind(axis)


@pytest.mark.parametrize("size", [1e200, 1e308, 1e-200, 5e-324, 1.0])
def test_an_axis_of_any_length_is_a_direction(size):
    """Its squares may overflow or vanish."""
    np.testing.assert_allclose(unit((size, 0, -size)), np.array((1, 0, -1)) / 2**0.5)
    assert tuple(unit((size, 0, 0))) == (1, 0, 0)


@pytest.mark.parametrize("result", [(None,), (None, (0, 0, 0), 1), "abc"])
def test_a_pose_is_a_pair(result):
    """Another number of parts is refused like parts of other sizes."""
    with pytest.raises(dyn.ModelError, match="must give .R, p."):
        moving_pose(result, "f")


def test_a_description_names_its_links():
    description = dyn.load("two_link").build.description
    assert description.link("link2").name == "link2"
    with pytest.raises(dyn.ModelError, match="no link is called 'lnk2'.*link2"):
        description.link("lnk2")
