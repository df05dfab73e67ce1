"""MJCF: what becomes of each element, and agreement with MuJoCo on the same files."""

import io
import re
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.contact.collision.pairs import ContactPairs, body_poses
from dyn_core.model.coordinates import split_q, split_v
from dyn_core.model.description import FRICTION_SPEED
from dyn_core.spatial import Vector, conventions
from dyn_core.testing import scaled_error

mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed (extra mjcf)")
EXACT = 1e-10
KINDS = mujoco.mjtJoint


@pytest.fixture(autouse=True)
def no_log_of_mujoco():
    """Keep MuJoCo, where the tests call it, from writing its log to this folder."""
    mujoco.set_mju_user_warning(lambda message: None)
    yield
    mujoco.set_mju_user_warning(None)


class Peer:
    """The same file in MuJoCo, with maps of coordinates; only what a Model has acts."""

    def __init__(self, source, fixed=(), **options):
        self.fixed = dict(fixed)  # joints that the file holds, and where
        self.closed = dyn.load_mjcf(source, **options)
        self.ours = self.closed.without_loops()
        is_xml = isinstance(source, str) and "<" in source
        read = (
            mujoco.MjModel.from_xml_string if is_xml else mujoco.MjModel.from_xml_path
        )
        m = self.model = read(str(source))
        m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        m.opt.gravity[:] = self.ours.build.gravity
        m.opt.density = m.opt.viscosity = 0.0
        m.body_gravcomp[:] = 0.0
        for name in ("stiffness", "damping", "armature"):
            getattr(m, f"tendon_{name}", np.zeros(0))[:] = 0.0
        for name in ("jnt_stiffnesspoly", "dof_dampingpoly", "tendon_stiffnesspoly",
                     "tendon_dampingpoly", "actuator_dampingpoly"):  # fmt: skip
            getattr(m, name, np.zeros(0))[:] = 0.0
        m.jnt_stiffness[m.jnt_type <= int(KINDS.mjJNT_BALL)] = 0.0
        self.data = mujoco.MjData(m)
        self.mjcf_joints = [self._id(name) for name in self.ours.names]

    def _id(self, name):
        """Return the number of a joint, of a body's only one where it has no name."""
        joint = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, name)
        if joint < 0 and "_joint" in name:
            body, _, place = name.rpartition("_joint")
            number = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, body)
            number = int(body[4:]) if number < 0 else number
            joint = self.model.body_jntadr[number] + int(place or 1) - 1
        return joint

    def joints(self):
        """Yield body, MuJoCo's joint, its first qpos and its first dof."""
        for i in self.ours.bodies:
            k = self.mjcf_joints[i]
            yield i, k, self.model.jnt_qposadr[k], self.model.jnt_dofadr[k]

    def set(self, q, qd, qdd):
        """Set MuJoCo's state; return B of qvel = B qd."""
        model, d = self.ours, self.data
        for name, value in self.fixed.items():
            d.qpos[self.model.joint(name).qposadr] = value
        places = split_q(model, Vector(q.tolist()))
        B, add = np.zeros((self.model.nv, model.nv)), np.zeros(self.model.nv)
        units = [split_v(model, Vector(row)) for row in np.eye(model.nv).tolist()]
        for i, k, a, v in self.joints():
            x, block = np.array(list(places[i])), np.eye(model.joint[i].nv)
            if self.model.jnt_type[k] == KINDS.mjJNT_FREE:
                block = conventions.mujoco_free_columns(x)
                rates = qd[model.v_slices[i]]
                add[v : v + 6] = conventions.mujoco_free_acceleration(
                    x, rates, [0.0] * 6
                )
                x = conventions.mujoco_free_position(x)
            elif self.model.jnt_type[k] == KINDS.mjJNT_BALL:
                x = conventions.quaternion_to_wxyz(x)
            d.qpos[a : a + len(x)] = x
            for column, unit in enumerate(units):
                B[v : v + len(block), column] = block @ np.array(list(unit[i]), float)
        d.qvel[:], d.qacc[:] = B @ qd, B @ qdd + add
        return B

    def compare(self, seed=0):
        """Check frames, inertia matrix and inverse dynamics; return the forces."""
        model, m, d = self.ours, self.model, self.data
        rng = np.random.default_rng(seed)
        q, (qd, qdd) = model.random(rng), rng.normal(size=(2, model.nv))
        B = self.set(q, qd, qdd)
        mujoco.mj_inverse(m, d)
        tau = B.T @ d.qfrc_inverse + self.dry_friction(qd)
        rnea = dyn.solver("rnea").build(
            model, engine="plain", joint_friction=True, joint_springs=True
        )
        got = rnea(q, qd, qdd)
        assert scaled_error(got, tau) <= EXACT
        M = np.zeros((m.nv, m.nv))
        for row, unit in zip(M, np.eye(m.nv), strict=True):
            mujoco.mj_mulM(m, d, row, unit)
        H = dyn.solver("crba").build(model, engine="plain")(q)
        assert scaled_error(H, B.T @ M @ B) <= EXACT
        self.compare_frames(q)
        return got

    def dry_friction(self, qd):
        """Return our law of dry friction with MuJoCo's frictionloss."""
        total, rates = np.zeros(self.ours.nv), split_v(self.ours, Vector(qd.tolist()))
        units = np.eye(self.ours.nv).tolist()
        for i, _, _, v in self.joints():
            pull = np.tanh(np.array(list(rates[i])) / FRICTION_SPEED)
            pull *= self.model.dof_frictionloss[v]
            columns = [list(split_v(self.ours, Vector(unit))[i]) for unit in units]
            total += np.array(columns, float) @ pull
        return total

    def compare_frames(self, q):
        """Check the poses of all bodies and sites that have names."""
        R, p = body_poses(self.ours, q)
        m, d = self.model, self.data
        bodies = [m.body(k).name for k in range(m.nbody)]
        sites = [m.site(k).name for k in range(m.nsite)]
        sites = [f"{name}_site" if name in bodies else name for name in sites]
        for names, place, turn in (
            (bodies, d.xpos, d.xmat),
            (sites, d.site_xpos, d.site_xmat),
        ):
            for k, name in enumerate(names):
                if name:
                    frame = self.ours.frames[name]
                    E, r = (np.array(x, float) for x in frame.X.pose)
                    i = frame.body
                    assert scaled_error(p[i] + R[i] @ r, place[k]) <= EXACT
                    assert scaled_error(R[i] @ E, turn[k].reshape(3, 3)) <= EXACT


def _mjcf(bodies, rest="", before=""):
    return f"<mujoco>{before}<worldbody>{bodies}</worldbody>{rest}</mujoco>"


def _body(name, joints="<joint/>", inside="", pos="0 0 0.3", geom='<geom size="0.1"/>'):
    return f'<body name="{name}" pos="{pos}">{joints}{geom}{inside}</body>'


EVERYTHING = """<mujoco model="all">
<compiler angle="degree" eulerseq="zyx"/><option gravity="1 -2 -9"/>
<default><joint damping="0.1"/><geom density="500"/>
<default class="stiff"><joint stiffness="3" armature="0.02"/></default></default>
<worldbody><site name="corner" pos="1 2 3" euler="10 20 30"/>
<body name="base" pos="0.1 0.2 0.3" euler="30 40 50"><freejoint/><geom size="0.1 0.2 0.3" type="box"/>
<body name="many" pos="0 0.3 0" axisangle="1 2 3 40">
  <joint name="turn" axis="1 1 0" pos="0.1 0.2 0" ref="20" range="-100 100" class="stiff" springref="35"/>
  <joint name="push" type="slide" axis="0 1 1" pos="0.3 0 0.1" ref="0.05" class="stiff" springref="-0.1"/>
  <joint name="tilt" axis="0 0 2" pos="0 0 0.4" frictionloss="0.2"/>
  <geom type="capsule" fromto="0 0 0 0.2 0.1 0.3" size="0.04"/><site name="tool" pos="0.1 0 0" zaxis="1 1 1"/>
  <body name="welded" pos="0 0 0.5" quat="0.6 0 0.8 0"><geom size="0.07"/>
    <body name="ball" pos="0.2 0 0"><joint name="ball" type="ball" pos="0.01 0.02 0.03" armature="0.03"/>
      <inertial pos="0.1 0.02 0" mass="0.7" fullinertia="0.02 0.03 0.025 0.001 -0.002 0.003"/></body>
    <body pos="0 0.1 0" xyaxes="0 1 0 -1 0 0"><joint/><joint type="slide"/>
      <inertial pos="0 0 0.1" quat="1 1 0 0" mass="0.4" diaginertia="0.01 0.02 0.015"/></body>
  </body></body></body></worldbody></mujoco>"""


@pytest.mark.parametrize("seed", range(3))
def test_every_way_to_place_a_body(seed):
    """Poses, joints behind each other, anchors, ref, springs, inertias: as MuJoCo's."""
    peer = Peer(EVERYTHING)
    assert np.abs(peer.compare(seed)).max() > 1
    model = peer.ours
    names = (
        "base_joint",
        "turn",
        "push",
        "tilt",
        "ball",
        "body5_joint1",
        "body5_joint2",
    )
    assert model.joint_names == names
    kinds = [model.joint[model.body_of_joint(x)].kind for x in names]
    assert kinds == ["floating", "revolute", "prismatic", "continuous", "spherical",
                     "continuous", "prismatic"]  # fmt: skip


def test_positions_are_those_of_qpos():
    """Limits, and places where springs are slack, are in qpos; so is q, with ref."""
    peer = Peer(EVERYTHING)
    model, m = peer.ours, peer.model
    turn = model.v_slices[model.body_of_joint("turn")]
    assert np.rad2deg([model.lower[turn], model.upper[turn]]) == pytest.approx(
        np.array([[-100.0], [100.0]])
    )
    q = model.position({"turn": 0.3, "push": 0.2, "tilt": -0.4})
    peer.set(q, np.zeros(model.nv), np.zeros(model.nv))
    assert peer.data.qpos[m.joint("turn").qposadr[0]] == 0.3
    mujoco.mj_kinematics(m, peer.data)
    peer.compare_frames(q)
    body = model.body_of_joint("turn")
    assert model.rest[body][0] == pytest.approx(np.deg2rad(35))
    assert model.rest[body + 1][0] == pytest.approx(-0.1)


@pytest.mark.parametrize(
    "name",
    ["ant", "half_cheetah", "humanoid", "inverted_double_pendulum", "pusher_v5",
     "swimmer", "walker2d_v5"],
)  # fmt: skip
def test_robots_of_gymnasium(name):
    """Inverse dynamics, inertia matrix and frames of its robots agree with MuJoCo."""
    gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")
    folder = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    peer = Peer(folder / f"{name}.xml")
    assert np.abs(peer.compare()).max() > 1e-3
    assert any(w.startswith("actuator") for w in peer.ours.warnings)


ARM = _body("a", '<joint name="j" ref="20"/>', _body("b", '<joint name="k" type="slide" ref="0.1"/>', _body("c", '<joint name="l"/>')))  # fmt: skip


def test_joint_equalities_are_followers():
    """A linear one is a follower, a constant one holds its joint, others are couplings."""
    linear = (
        '<equality><joint joint1="l" joint2="j" polycoef="0.3 -1.5 0 0 0"/></equality>'
    )
    peer = Peer(_mjcf(ARM, linear))
    rule = peer.ours.followers["l"]
    assert (rule.leader, rule.multiplier) == ("j", -1.5)
    assert rule.offset == pytest.approx(0.3 + 1.5 * np.deg2rad(20))
    assert peer.ours.nv == 2
    peer.compare()
    free = dyn.load_mjcf(_mjcf(ARM, linear.replace("/></", ' active="false"/></')))
    assert free.nv == 3
    assert "equality constraint 'equality0': is off" in "".join(free.warnings)


FIXED_BY_EQUALITY = {
    "a constant": ('<joint joint1="k" polycoef="0.3 0 0 0 0"/>', {"k": 0.4}),
    "one that follows it": ('<joint joint1="l" joint2="j" polycoef="0.1 2 0 0 0"/><joint joint1="j" polycoef="0.2 0 0 0 0"/>',
    {"j": 0.2 + np.deg2rad(20), "l": 0.1 + 2 * 0.2}),
    "a turn about an anchor": ('<joint joint1="j" polycoef="0.7 0 0 0 0"/>', {"j": 0.7 + np.deg2rad(20)}),
}  # fmt: skip


@pytest.mark.parametrize("case", FIXED_BY_EQUALITY)
def test_joints_that_an_equality_holds_are_fixed(case):
    """A constant holds a joint in its place, and those that follow it."""
    xml, fixed = FIXED_BY_EQUALITY[case]
    arm = ARM.replace('name="j"', 'name="j" pos="0.1 0.2 0.3"')
    peer = Peer(_mjcf(arm, f"<equality>{xml}</equality>"), fixed)
    assert set(peer.ours.joint_names) == set("jkl") - set(fixed)
    peer.compare()
    more = dyn.load_mjcf(_mjcf(arm, f"<equality>{xml}</equality>"), root="b")
    assert set(more.joint_names) <= set("kl")
    both = '<equality><joint joint1="k"/><joint joint1="k" polycoef="1 0 0 0 0"/></equality>'
    assert "contradicts" in "".join(dyn.load_mjcf(_mjcf(arm, both)).warnings)


def _rows(peer, q):
    """Return MuJoCo's residuals and Jacobian of equalities, the latter by our qd."""
    m, d = peer.model, peer.data
    m.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    m.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    B = peer.set(q, np.zeros(peer.ours.nv), np.zeros(peer.ours.nv))
    mujoco.mj_forward(m, d)
    rows = d.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
    J = d.efc_J.reshape(-1, m.nv)[rows]
    return d.efc_pos[rows], J @ B


def _ours(model, q):
    f, A, _ = dyn.solver("loop_constraints").build(model, engine="plain")(
        q, np.zeros(model.nv)
    )
    return f, A


COUPLED = {
    "curve": '<equality><joint joint1="l" joint2="j" polycoef="0.3 -1 0.2 0.3 -0.1"/></equality>',
    "twice": '<equality><joint joint1="l" joint2="j"/><joint joint1="j" joint2="l" polycoef="0 2 0 0 0"/></equality>',
    "three": '<tendon><fixed name="t"><joint joint="j" coef="2"/><joint joint="k" coef="-3"/>'
    '<joint joint="l" coef="1"/></fixed></tendon><equality><tendon tendon1="t" polycoef="0.1 0 0 0 0"/></equality>',
    "two": '<tendon><fixed name="t"><joint joint="j" coef="2"/><joint joint="k" coef="-3"/></fixed>'
    '<fixed name="u"><joint joint="l" coef="1"/></fixed></tendon><equality><tendon tendon1="t" tendon2="u" polycoef="0.1 2 1 0 0"/></equality>',
}  # fmt: skip


def test_couplings_leave_out_joints_that_are_fixed():
    """Their place enters the residual instead."""
    rows = COUPLED["two"].replace(
        "</equality>", '<joint joint1="k" polycoef="0.3 0 0 0 0"/></equality>'
    )
    peer = Peer(_mjcf(ARM, rows), {"k": 0.4})
    assert [loop.joints for loop in peer.closed.loops] == [("j", "l")]
    q = np.array([0.3, -0.7])
    assert scaled_error(_ours(peer.closed, q)[0], _rows(peer, q)[0][:1]) <= EXACT


@pytest.mark.parametrize("case", COUPLED)
def test_other_equalities_of_joints_are_couplings(case):
    """Their rows and Jacobians are MuJoCo's."""
    peer = Peer(_mjcf(ARM, COUPLED[case]))
    q = np.random.default_rng(1).normal(size=peer.ours.nv)
    f, A = _ours(peer.closed, q)
    pos, J = _rows(peer, q)
    assert scaled_error(f, pos[-len(f) :]) <= EXACT  # a follower keeps its own
    assert scaled_error(A, J[-len(f) :]) <= EXACT
    assert not any("tendon" in w for w in peer.closed.warnings)


BARS = """<mujoco><worldbody><body name="a" pos="0 0 0.1"><joint name="j" axis="0 1 0"/><geom size="0.1"/>
<body name="b" pos="0.3 0 0" euler="20 0 30"><joint name="k" type="ball"/><geom size="0.1"/><site name="s" pos="0.1 0 0.2" euler="10 20 30"/></body></body>
<body name="c" pos="0.2 0.1 0.5" euler="0 50 0"><freejoint/><geom size="0.1"/><site name="t" pos="0.1 0.2 0"/></body></worldbody>
<equality>{}</equality></mujoco>"""
CLOSED = {
    "connect": ('<connect body1="b" body2="c" anchor="0.1 0.2 0.3"/>', "point"),
    "connect to the world": ('<connect body1="b" anchor="0.1 0.2 0.3"/>', "point"),
    "connect sites": ('<connect site1="s" site2="t"/>', "point"),
    "weld": ('<weld body1="b" body2="c" anchor="0.1 0 0.2"/>', "weld"),
    "weld placed": (
        '<weld body1="b" body2="c" relpose="0.1 0.2 0 1 0.2 0.1 0"/>',
        "weld",
    ),
    "weld sites": ('<weld site1="s" site2="t"/>', "weld"),
    "weld without torque": ('<weld body1="b" body2="c" torquescale="0"/>', "point"),
}


@pytest.mark.parametrize("case", CLOSED)
def test_connects_and_welds_are_loops(case):
    """Their rows are as long as MuJoCo's, and vanish where those do."""
    xml, kind = CLOSED[case]
    peer = Peer(BARS.format(xml))
    (loop,) = peer.closed.loops
    assert loop.kind == kind
    rng = np.random.default_rng(0)
    q = peer.ours.random(rng)
    f, A = _ours(peer.closed, q)
    pos, J = _rows(peer, q)
    assert np.linalg.norm(f[:3]) == pytest.approx(np.linalg.norm(pos[:3]), rel=1e-9)
    closed = dyn.close_loops(peer.closed, q, tries=5)
    f, A = _ours(peer.closed, closed)
    pos, J = _rows(peer, closed)
    assert np.abs(f).max() < 1e-9
    assert np.abs(pos).max() < 1e-9
    R = body_poses(peer.ours, closed)[0][peer.ours.frames[loop.a].body]
    E = np.array(loop.A.pose[0], float)
    turn = R @ (np.array(peer.ours.frames[loop.a].X.pose[0], float) @ E)
    assert scaled_error(-turn @ A[:3], J[:3]) <= 1e-8
    if len(A) == 6:  # the same directions of no motion
        null = np.linalg.svd(A)[2][np.linalg.matrix_rank(A, 1e-9) :]
        assert np.abs(J @ null.T).max() < 1e-8


def test_what_is_kept_of_actuators():
    """Effort limits of joints with one actuator, and which joints have a motor."""
    joints = "".join(_body(x, f'<joint name="{x}"/>') for x in "abcdef")
    joints += _body("g", '<joint name="g" actuatorfrcrange="-4 4"/>')
    joints += _body("h", '<joint name="h" actuatorfrcrange="-6 6"/>')
    joints += _body("i", '<joint name="i" actuatorfrcrange="-9 7"/>')
    model = dyn.load_mjcf(_mjcf(joints, """<actuator>
<motor joint="a" gear="-5" ctrlrange="-2 2"/><position joint="b" kp="3" ctrlrange="-1 1"/>
<position joint="c" kp="3" forcerange="-7 7" gear="2"/><motor joint="d" ctrlrange="-2 3"/>
<motor joint="e" ctrlrange="-1 1"/><motor joint="e" ctrlrange="-1 1"/>
<motor joint="h" ctrlrange="-9 9" forcerange="-5 5"/>
<motor joint="i" gear="2" ctrlrange="-2 9" forcerange="-8 3"/></actuator>"""))  # fmt: skip
    expected = [10.0, 0.0, 14.0, 3.0, 0.0, 0.0, 4.0, 5.0, 6.0]  # of i: -4 to 6
    assert model.effort_limit.tolist() == expected
    assert model.active_joints == ("a", "b", "c", "d", "e", "h", "i")
    assert "joints 'd', 'i': its actuator is stronger in one direction" in "".join(
        model.warnings
    )


@pytest.mark.skipif(
    not hasattr(mujoco.MjModel, "actuator_armature"),
    reason="this mujoco's actuators have no armature",
)
def test_armature_and_damping_of_an_actuator():
    """They are those of its joint, times the square of the gear."""
    actuator = '<motor joint="j" gear="5" armature="0.5" damping="0.7"/>'
    peer = Peer(_mjcf(_body("a", '<joint name="j" armature="0.1" damping="0.2"/>'),
                      f"<actuator>{actuator}</actuator>"))  # fmt: skip
    peer.compare()
    assert peer.ours.flat("armature").tolist() == [pytest.approx(0.1 + 12.5)]
    assert peer.ours.flat("damping").tolist() == [pytest.approx(0.2 + 17.5)]


def test_tendons_drive_the_joints_they_pull():
    """A joint is passive only if no actuator acts on it; others are unknown."""
    tendon = '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>'
    model = dyn.load_mjcf(
        _mjcf(ARM, tendon + '<actuator><motor tendon="t"/></actuator>')
    )
    assert model.active_joints == ("j",)
    follower = '<equality><joint joint1="l" joint2="k"/></equality>'
    model = dyn.load_mjcf(
        _mjcf(ARM, follower + '<actuator><motor joint="l"/></actuator>')
    )
    assert model.active_joints == ("k",)  # by way of what follows it
    site = ARM.replace("<geom", '<site name="s"/><geom', 1)
    model = dyn.load_mjcf(_mjcf(site, '<actuator><motor site="s"/></actuator>'))
    assert model.active_joints == ("j", "k", "l")


GEOMS = """<geom type="box" size="0.1 0.2 0.3" pos="1 0 0"/><geom type="capsule" fromto="0 0 0 0 0 2" size="0.1"/>
<geom type="cylinder" size="0.1 0.4"/><geom size="0.3"/><geom size="9" contype="0" conaffinity="0"/>"""


def test_geoms_are_collision_shapes():
    """Sizes are whole lengths; what nothing can touch is left out."""
    model = dyn.load_mjcf(_mjcf(_body("a", geom=GEOMS)))
    box, capsule, cylinder, ball = (x.shape for x in model.shapes)
    assert box.size == (0.2, 0.4, 0.6)
    assert tuple(box.X.r) == (1.0, 0.0, 0.0)
    assert (capsule.radius, capsule.length, capsule.X.r[2]) == (0.1, 2.0, 1.0)
    assert (cylinder.radius, cylinder.length, ball.radius) == (0.1, 0.8, 0.3)


def test_friction_of_geoms_is_that_of_links():
    """Torsion and rolling count with condim 4 and 6; one material is the default."""
    geom = '<geom size="0.1" friction="0.6 0.02 0.003" condim="{}"/>'
    for condim, wanted in ((1, (0, 0, 0)), (3, (0.6, 0, 0)), (4, (0.6, 0.02, 0)), (6, (0.6, 0.02, 0.003))):  # fmt: skip
        model = dyn.load_mjcf(_mjcf(_body("a", geom=geom.format(condim))))
        material = model.material("default")
        assert (material.mu, material.torsion, material.rolling) == wanted
    two = _body("b", geom='<geom size="0.1" friction="0.2"/><geom size="0.1"/>')
    model = dyn.load_mjcf(_mjcf(_body("a", geom=geom.format(3)) + two))
    assert (model.material("a").mu, model.material("b").mu) == (0.6, 1.0)
    assert any("differ in friction" in w for w in model.warnings)


HERE = '<geom size="0.1"/>'
MEETING = {
    "a chain": _body("a", "<joint/>", _body("b", "<joint/>", _body("c", "<joint/>", pos="0 0 0"), "0 0 0"), "0 0 0"),
    "two joints": HERE + _body("a", "<joint/>", _body("b", '<joint/><joint axis="0 1 0"/>', pos="0 0 0"), "0 0 0"),
    "a fixed base": _body("a", "", _body("b", "<joint/>", _body("c", "<joint/>", pos="0 0 0"), "0 0 0"), "0 0 0"),
    "welded": _body("a", "<freejoint/>", _body("b", "", _body("c", "<joint/>", pos="0 0 0"), "0 0 0"), "0 0 0"),
    "bits": _body("a", "<freejoint/>", geom='<geom size="0.1" contype="2" conaffinity="1"/>', pos="0 0 0")
    + _body("b", "<freejoint/>", geom='<geom size="0.1" contype="1" conaffinity="4"/>', pos="0 0 0")
    + _body("c", "<freejoint/>", geom='<geom size="0.1" contype="8" conaffinity="8"/>', pos="0 0 0"),
    "not the floor": _body("a", "<joint/>", geom='<geom size="0.1" contype="2" conaffinity="2"/>', pos="0 0 0")
    + _body("b", "<joint/>", geom='<geom size="0.1" contype="2" conaffinity="3"/>', pos="0 0 0"),
    "nobody": "".join(_body(x, "<freejoint/>", geom='<geom size="0.1" conaffinity="0"/>', pos="0 0 0") for x in "abc"),
}  # fmt: skip
UNFILTERED = '<option><flag filterparent="disable"/></option>'
FLOOR = '<geom name="ground" type="plane" size="1 1 1" pos="0 0 0.05"/>'


@pytest.mark.parametrize("floor", ["", FLOOR])
@pytest.mark.parametrize("case", [*MEETING, "unfiltered"])
def test_the_same_links_meet(case, floor):
    """Pairs that are tested are those of MuJoCo's contacts, all geoms in one place."""
    if case == "unfiltered":
        xml = _mjcf(floor + MEETING["two joints"], UNFILTERED)
    else:
        xml = _mjcf(floor + MEETING[case])
    world = [dyn.HalfSpace(point=(0, 0, 0.05))] if floor else []
    model = dyn.load_mjcf(xml)
    m = mujoco.MjModel.from_xml_string(xml)
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    names = ["ground" if m.geom(g).name else m.body(m.geom_bodyid[g]).name for g in range(m.ngeom)]  # fmt: skip
    wanted = {frozenset(names[g] for g in pair) for pair in d.contact.geom[: d.ncon]}
    got = {frozenset(pair) for pair in ContactPairs(model, world).links}
    assert got == wanted
    assert wanted or case in ("nobody", "welded")


def test_excluded_links_do_not_meet():
    """An <exclude> denies its pair, one with the world also half-spaces."""
    bodies = "".join(_body(x, "<freejoint/>") for x in "abc")
    contact = '<contact><exclude body1="a" body2="b"/><exclude body1="c" body2="world"/></contact>'
    model = dyn.load_mjcf(_mjcf(FLOOR + bodies, contact))
    got = ContactPairs(model, [dyn.HalfSpace()]).links
    assert sorted(got) == [("a", "c"), ("a", "ground"), ("b", "c"), ("b", "ground")]


OBJ = "v 1 2 3\nv 2 2 3\nv 1 4 3\nv 1 2 3.5\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"


def test_a_mesh_is_where_its_file_has_it(tmp_path):
    """MuJoCo moves a mesh to its centre; the placed vertices of the file are its own."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "tetra.obj").write_text(OBJ)
    geom = '<geom type="mesh" mesh="tetra" pos="0.1 0.2 0.3" euler="10 20 30"/>'
    asset = '<compiler meshdir="parts"/><asset><mesh file="tetra.obj" scale="0.1 0.2 -0.3"{}/></asset>'
    file = tmp_path / "robot.xml"
    file.write_text(_mjcf(_body("a", geom=geom), before=asset.format("")))
    model = dyn.load_mjcf(file)
    m = mujoco.MjModel.from_xml_path(str(file))
    R = conventions.rotation(conventions.quaternion_from_wxyz(m.geom_quat[0]))
    wanted = m.mesh_vert @ R.T + m.geom_pos[0]
    (placed,) = model.shapes
    mesh = placed.shape
    assert Path(mesh.file).samefile(tmp_path / "parts" / "tetra.obj")
    E, r = (np.array(x, float) for x in mesh.X.pose)
    v = np.array([row.split()[1:] for row in OBJ.splitlines()[:4]], float)
    assert np.abs((v * mesh.scale) @ E.T + r - wanted).max() < 1e-6
    file.write_text(
        _mjcf(_body("a", geom=geom), before=asset.format(' refpos="1 2 3"'))
    )
    model = dyn.load_mjcf(file)
    assert model.shapes == ()
    assert any("refpos" in w for w in model.warnings)


def test_a_mesh_is_found_from_the_folder_above(tmp_path, monkeypatch):
    """A path relative to the current folder counts the MJCF's folder once."""
    (tmp_path / "sub" / "parts").mkdir(parents=True)
    (tmp_path / "sub" / "parts" / "tetra.obj").write_text(OBJ)
    asset = '<compiler meshdir="parts"/><asset><mesh file="tetra.obj"/></asset>'
    geom = '<geom type="mesh" mesh="tetra"/>'
    file = tmp_path / "sub" / "robot.xml"
    file.write_text(_mjcf(_body("a", geom=geom), before=asset))
    monkeypatch.chdir(tmp_path)
    (placed,) = dyn.load_mjcf("sub/robot.xml").shapes
    assert Path(placed.shape.file).samefile("sub/parts/tetra.obj")


ODDITIES = {  # what stands in the file, what is said, whether a strict check refuses it
    "plane": (FLOOR, "", r"geom 'ground': a plane is part of the World.*normal=\(0.0, 0.0, 1.0\)", False),
    "ellipsoid": (_body("e", geom='<geom name="g" type="ellipsoid" size="1 1 2"/>'), "", "geom 'g': ellipsoid is no collision shape", True),
    "vertices": (_body("e", geom='<geom name="g" type="mesh" mesh="m"/>'), '<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>', "geom 'g': mesh that is in the MJCF itself", True),
    "some geoms": (_body("e", "<freejoint/>", geom=HERE + '<geom size="1" contype="0" conaffinity="2"/>') + _body("f", "<freejoint/>"), "", "link 'f': only some of its geoms meet", False),
    "sensor": (_body("e", "<joint name='j'/>"), '<sensor><jointpos name="s" joint="j"/></sensor>', "sensor 's': no part of a Model", False),
    "keyframe": (_body("e"), '<keyframe><key name="home"/></keyframe>', "keyframe 'home': no part of a Model", False),
    "pair": (_body("e", geom='<geom name="x" size="1"/>') + _body("f", geom='<geom name="y" size="1"/>'), '<contact><pair name="p" geom1="x" geom2="y"/></contact>', "contact pair 'p': no part", False),
    "tendon": (ARM, '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>', "tendon 't': no part of a Model", False),
    "spring of a tendon": (ARM, '<tendon><fixed name="t" stiffness="1" range="0 1"><joint joint="j" coef="1"/></fixed></tendon>', "tendon 't': a tendon with spring, limit", True),
    "gravcomp": ('<body name="e" gravcomp="0.5"><joint/><geom size="1"/></body>', "", "link 'e': gravcomp 0.5", True),
    "mocap": ('<body name="e" mocap="true"><geom size="1"/></body>', "", "link 'e': a mocap body", False),
    "fluid": (_body("e"), '<option density="3"/>', "density 3 and viscosity 0 of a fluid", True),
    "flag": (_body("e"), '<option><flag limit="disable" contact="disable"/></option>', "flag limit='disable'", False),
    "no gravity": (_body("e"), '<option><flag gravity="disable"/></option>', r"gravity is \(0.0, 0.0, 0.0\)", False),
    "ball spring": (_body("e", '<joint name="j" type="ball" stiffness="1"/>'), "", "joint 'j': a spring in a ball joint", True),
    "ball range": (_body("e", '<joint name="j" type="ball" range="0 90"/>'), "", r"joint 'j': range \[0, 1.5708\] of a ball joint", True),
    "free armature": (_body("e", '<joint name="j" type="free" armature="1"/>'), "", "joint 'j': armature and dry friction of a free joint", False),
    "ref": (_body("e", '<joint name="j" ref="1"/>'), "", "joint 'j': initial position", False),
    "margin": (_body("e", geom='<geom name="g" size="1" margin="1"/>'), "", "geom 'g': solref, solimp, margin", False),
    "softness": (_body("e", '<joint name="j" range="0 1" solreflimit="0.1 1"/>', geom='<geom name="g" size="1" margin="1"/>'), "", "joint 'j': solref, solimp, margin and gap are no part", False),
    "fused masses": (_body("e", "", inside=_body("f")), '<compiler settotalmass="3" fusestatic="true"/>', r"fusestatic changes inertias; with it MuJoCo moves 3 kg; bodies stay apart, and 1.5 kg", True),
    "MuJoCo's own": (_body("e"), '<compiler settotalmass="3"/>', "MuJoCo warns: .*settotalmass", False),
}  # fmt: skip


@pytest.mark.parametrize("case", ODDITIES)
def test_what_is_not_kept_is_named(case, recwarn):
    """Each is a warning with the name of the element; what moves otherwise is doubtful."""
    bodies, rest, wanted, doubtful = ODDITIES[case]
    if case == "MuJoCo's own" and mujoco.mj_version() < 3170:
        pytest.skip("this mujoco does not warn of it")
    model = dyn.load_mjcf(_mjcf(bodies, rest))
    assert re.search(wanted, "\n".join(model.warnings)), model.warnings
    assert any("robot 'MuJoCo Model'" in str(w.message) for w in recwarn)
    if doubtful:
        with pytest.raises(dyn.ModelError, match=wanted.split(";")[0]):
            dyn.load_mjcf(_mjcf(bodies, rest), check="error")
    else:
        dyn.load_mjcf(_mjcf(bodies, rest), check="error")


def test_a_plain_robot_has_no_warnings():
    """Nothing is said about a file of which all is kept."""
    assert dyn.load_mjcf(_mjcf(_body("a"))).warnings == ()


BAD = {
    "empty": ("", "the MJCF is empty"),
    "no XML": ("<", "the MJCF is no XML"),
    "URDF": ('<robot name="r"><link name="a"/></robot>', r"is a URDF .*load_urdf"),
    "part": ("<mujocoinclude/>", "load a file that includes it"),
    "SDF": ("<sdf/>", "root element is <sdf>"),
    "cut": ("<mujoco><worldbody>", "cannot be read by MuJoCo: XML parse error"),
    "element": ("<mujoco><foo/></mujoco>", "unrecognized element Element 'foo', line 1"),
    "mass": (_mjcf('<body name="b"><joint/></body>'), "mass and inertia of moving bodies"),
    "include": ('<mujoco><include file="gone.xml"/></mujoco>', "Error opening file 'gone.xml'"),
    "mesh": (_mjcf("", '<asset><mesh file="gone.obj"/></asset>'), "gone.obj"),
    "number": (_mjcf('<geom size="nan"/>'), "nan size in geom"),
    "memory": ('<mujoco><size memory="1000000G"/></mujoco>', "llocate memory"),
    "deep": ("<mujoco>" + "<a>" * 9999 + "</a>" * 9999 + "</mujoco>", "elements nest more than 500 deep"),
    "bytes": (b"\xff\xfe<mujoco/>", "is no XML"),
    "encoding": (b'<mujoco model="\xff"/>', "is no XML|not in UTF-8"),
    "declared": (b'<?xml version="1.0" encoding="hex"?><mujoco/>', "an encoding that is unknown"),
    "declared ascii": (b'<?xml version="1.0" encoding="ascii"?><mujoco a="\xff"/>', "is no XML"),
    "later byte": (b'<mujoco><a b="\xed"/></mujoco>', "not in UTF-8: byte 15"),
    "object": (3, "not int"),
    "path": ("gone.xml", "cannot read the MJCF file gone.xml"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_wrong_files_are_refused_in_words(case, tmp_path, monkeypatch, capfd):
    """A ModelError with MuJoCo's reason; nothing is printed or written."""
    monkeypatch.chdir(tmp_path)
    source, message = BAD[case]
    with pytest.raises(dyn.ModelError, match=message):
        dyn.load_mjcf(source)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_wrong_arguments_are_refused_in_words():
    """Each says what would be valid."""
    xml = _mjcf(_body("a"))
    for options, message in (
        ({"check": "maybe"}, "valid are error, warn"),
        ({"lock": ["a"]}, "valid: a mapping from joint to position"),
        ({"root_joint": "hinge"}, "valid are None, fixed, floating"),
        ({"gravity": (0, 1)}, "three finite numbers"),
        ({"lock": {"x": 1}}, "no moving joint is called 'x'; valid: a_joint"),
        ({"root_joint": "floating"}, "needs one body that is fixed to the world; these are: none"),
    ):  # fmt: skip
        with pytest.raises(dyn.ModelError, match=message):
            dyn.load_mjcf(xml, **options)


def test_the_extra_is_named_where_mujoco_is_missing(monkeypatch):
    """Without mujoco, or with one that is too old, the error says what to install."""
    for module in (None, object()):
        monkeypatch.setitem(__import__("sys").modules, "mujoco", module)
        with pytest.raises(dyn.UnsupportedError, match=r"dyn_ros\[mjcf\]"):
            dyn.load_mjcf(_mjcf(""))


def test_how_the_root_is_held():
    """Free joints may be fixed where the file has their bodies; a fixed base may float."""
    free = _mjcf(_body("a", "<freejoint/>", _body("b", "<joint/>")))
    model = dyn.load_mjcf(free)
    assert (model.nq, model.build.root_joint) == (8, "fixed")
    model = dyn.load_mjcf(free, root_joint="fixed")
    assert (model.nq, model.frames["a"].X.r[2]) == (1, 0.3)
    assert dyn.load_mjcf(free, root_joint="floating").nq == 8
    fixed = _mjcf(_body("a", "", _body("b", "<joint/>")))
    assert dyn.load_mjcf(fixed).nq == 1
    model = dyn.load_mjcf(fixed, root_joint="floating")
    assert (model.nq, model.joint_names[0]) == (8, "a_joint")
    taken = fixed.replace("<joint/>", '<joint name="a_joint"/>')
    names = dyn.load_mjcf(taken, root_joint="floating").joint_names
    assert names == ("a_joint_", "a_joint")
    assert ContactPairs(dyn.load_mjcf(fixed), []).links == [("a", "b")]
    assert ContactPairs(model, []).links == []  # a parent and its child, both moving


def test_sources_and_what_goes_with_them(tmp_path):
    """Paths with their includes and sidecar, bytes, files; gravity, locks, sub-chains."""
    (tmp_path / "part.xml").write_text(f"<mujocoinclude>{ARM}</mujocoinclude>")
    file = tmp_path / "arm.xml"
    file.write_text('<mujoco model="arm"><worldbody><include file="part.xml"/></worldbody></mujoco>')  # fmt: skip
    (tmp_path / "arm.dyn.yaml").write_text("armature: {j: 0.5}")
    model = dyn.load_mjcf(file)
    assert (model.name, model.nv) == ("arm", 3)
    assert model.flat("armature").tolist() == [0.5, 0.0, 0.0]
    assert model.build.description.sources[0] == str(file)
    assert (
        dyn.load_mjcf(str(file), sidecar=False).flat("armature").tolist() == [0.0] * 3
    )
    text = _mjcf(ARM, '<option gravity="0 0 -1.6"/>')
    for source in (text, text.encode(), io.StringIO(text), io.BytesIO(text.encode())):
        model = dyn.load_mjcf(source, lock={"k": 0.1}, root="a", tip="c")
        assert model.joint_names == ("l",)
        assert tuple(model.build.gravity) == (0.0, 0.0, -1.6)
    assert dyn.load_mjcf(text, gravity=(0, 0, -2)).build.gravity == (0.0, 0.0, -2.0)


def test_load_reads_mjcf_alike(tmp_path):
    """dyn.load gives the same robot, its gravity and where it came from."""
    file = tmp_path / "moon.xml"
    file.write_text(_mjcf(ARM, '<option gravity="0 0 -1.6"/>'))
    (tmp_path / "moon.dyn.yaml").write_text("armature: {j: 0.5}")
    model = dyn.load(file)
    assert model.source == dyn.load_mjcf(file).source
    assert (model.source.kind, model.source.file) == ("mjcf", str(file))
    assert model.source.sidecar == str(tmp_path / "moon.dyn.yaml")
    assert model.build.gravity == (0.0, 0.0, -1.6)
    assert dyn.load(file, gravity=(0, 0, -9.81)).build.gravity == (0.0, 0.0, -9.81)
    assert (
        dyn.load(
            _mjcf(
                _body("a", ""),
            ),
            root_joint="floating",
        ).nq
        == 7
    )
    loose = "<mujoco><worldbody/><!-- two -- hyphens --></mujoco>"  # not for expat
    assert dyn.load(loose).nv == dyn.load_mjcf(loose).nv == 0
    with pytest.raises(
        dyn.ModelError, match="cannot be read by MuJoCo: XML parse error"
    ):
        dyn.load("<mujoco><worldbody>")
    assert dyn.load(dyn.robots.path("arm7")).build.gravity == (0.0, 0.0, -9.81)


def test_threads_may_load_together():
    """Each robot has its own warnings, MuJoCo's among them."""
    xml = _mjcf(_body("a", "<joint/><joint/>") + FLOOR)  # MuJoCo finds it singular
    warned = []

    def load():
        try:
            warned.extend(dyn.load_mjcf(xml).warnings for _ in range(5))
        except dyn.ModelError:  # what an older MuJoCo says
            warned.extend([()] * 5)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(warned) == 20
    assert len(set(warned)) == 1


def test_warnings_point_to_the_line_that_loads(recwarn):
    """The ModelWarning is that of the caller, of either function."""
    warnings.simplefilter("always")  # two of one line
    for reader in (dyn.load, dyn.load_mjcf):
        reader(_mjcf(FLOOR))
    files = [
        w.filename for w in recwarn if issubclass(w.category, dyn.errors.ModelWarning)
    ]
    assert files == [__file__] * 2


def test_elements_without_names_and_names_used_twice():
    """They are called after kind and number, or body; sites give way to bodies."""
    model = dyn.load_mjcf(_mjcf(
        '<body><joint/><geom size="1"/><site name="a"/></body>' + _body("a", '<joint/><joint type="slide"/>')))  # fmt: skip
    assert model.joint_names == ("body1_joint", "a_joint1", "a_joint2")
    assert list(model.frames) == ["world", "body1", "a_site", "a.a_joint1", "a"]
    fused = _mjcf(_body("a", "", _body("b")), before='<compiler fusestatic="true"/>')
    assert list(dyn.load_mjcf(fused).frames) == ["world", "a", "b"]


def test_files_that_mujoco_cannot_name_are_refused_in_words(tmp_path):
    """A file of another suffix, in Python's escapes, or with an error in bytes."""
    for name, content, reason in (
        ("a.mjcf", b"<mujoco/>", r"a.mjcf cannot .*: the file is called \*.mjcf; valid"),
        ("a.xml", b"<mujoco><\xed\xa0\x80geom/></mujoco>", "it is not in UTF-8"),
        ("b.xml", b'<?xml version="1.0" encoding="unicode_escape"?><mujoco a="\\]"/>',
         "declares an encoding that is unknown"),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(content)
        with pytest.raises(dyn.ModelError, match=reason):
            dyn.load_mjcf(tmp_path / name)
