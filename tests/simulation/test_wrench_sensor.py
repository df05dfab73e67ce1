"""Wrench of a force-torque sensor at a link: weight, contacts, inertia, pushes."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.errors import SettingError, UnsupportedError
from dyn_core.model.payload import Payload

G = 9.81
LINK = """<link name="{0}"><inertial><origin xyz="{2}"/><mass value="{1}"/>
<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="0" iyz="0.002"/></inertial>{3}
</link>"""
SPHERE = """<collision><origin xyz="{0}"/><geometry><sphere radius="0.05"/></geometry>
</collision>"""


def _robot(joint, turn="0 0 0"):
    """A body on a joint; a sensor at `pad`, fixed to it, with a tip fixed to the pad."""
    return dyn.load_urdf(
        "<robot name='r'><link name='world'/>"
        + LINK.format("body", 3.0, "0.1 0 0", "")
        + LINK.format("pad", 0.5, "0 0.02 0.03", "")
        + LINK.format("tip", 0.25, "0.01 0 -0.02", SPHERE.format("0 0 0"))
        + joint
        + f"""<joint name="mount" type="fixed"><parent link="body"/><child link="pad"/>
        <origin xyz="0.4 0 0" rpy="{turn}"/></joint>
        <joint name="end" type="fixed"><parent link="pad"/><child link="tip"/>
        <origin xyz="0 0 0.1"/></joint></robot>"""
    )


SLIDE = """<joint name="slide" type="prismatic"><parent link="world"/>
<child link="body"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="500"
velocity="9"/></joint>"""
SWING = """<joint name="swing" type="continuous"><parent link="world"/>
<child link="body"/><origin xyz="0 0 2"/><axis xyz="0 1 0"/></joint>"""


@pytest.mark.parametrize("turn", ["0 0 0", "0.7 -0.4 1.1"])
def test_a_tip_on_a_floor_reads_the_contact_less_its_weight(turn):
    """In the axes of the pad, about its origin; the mass in front does not count."""
    model = _robot(SLIDE, turn)
    sim = dyn.ContactSimulator(model, "floor", q0=[0.06])
    for k in range(1500):
        sim.command(0.002 * k, [-10.0])
        sim.advance(0.002 * k)
    assert abs(sim.qd[0]) < 1e-6
    w = sim.wrench("pad")
    poses = dyn.solver("forward_kinematics").build(model, frames=["pad", "tip"])(sim.q)
    R, pad = poses[0][:3, :3], poses[0][:3, 3]
    force = R @ w[3:]
    normal = 3.75 * G + 10.0
    np.testing.assert_allclose(force, [0, 0, normal - 0.75 * G], atol=1e-5)
    down = np.array([0, 0, -G])
    moment = np.zeros(3)
    for T, mass, com in (
        (poses[0], 0.5, [0, 0.02, 0.03]), (poses[1], 0.25, [0.01, 0, -0.02])
    ):  # fmt: skip
        moment += np.cross(T[:3, :3] @ com + T[:3, 3] - pad, mass * down)
    touch = poses[1][:3, 3] - [0, 0, 0.05] - pad
    moment += np.cross(touch, [0, 0, normal])
    np.testing.assert_allclose(R @ w[:3], moment, atol=1e-5)


def test_a_swinging_tip_reads_weight_and_inertia():
    """The law of Newton and Euler for both bodies behind the pad, by hand."""
    model = _robot(SWING, "0.3 0.2 -0.5")
    sim = dyn.ContactSimulator(model, dyn.World(half_spaces=()), q0=[0.4], qd0=[3.0])
    sim.advance(0.0)
    before, rate = sim.last.q, (sim.last.velocity - sim.last.qd) / sim.last.h
    links = ["pad", "tip"]
    poses = dyn.solver("forward_kinematics").build(model, frames=links)(before)
    omega = np.array([0, sim.last.qd[0], 0])
    alpha = np.array([0, rate[0], 0])
    pivot, pad = np.array([0, 0, 2.0]), poses[0][:3, 3]
    I = np.array([[0.02, 0.001, 0], [0.001, 0.03, 0.002], [0, 0.002, 0.04]])
    force, moment = np.zeros(3), np.zeros(3)
    for T, mass, com in (
        (poses[0], 0.5, [0, 0.02, 0.03]), (poses[1], 0.25, [0.01, 0, -0.02])
    ):  # fmt: skip
        R, c = T[:3, :3], T[:3, :3] @ com + T[:3, 3]
        r = c - pivot
        a = np.cross(alpha, r) + np.cross(omega, np.cross(omega, r))
        Ic = R @ I @ R.T
        f = mass * (np.array([0, 0, -G]) - a)
        force += f
        moment += np.cross(c - pad, f) - Ic @ alpha - np.cross(omega, Ic @ omega)
    R = poses[0][:3, :3]
    w = sim.wrench("pad")
    np.testing.assert_allclose(R @ w[3:], force, atol=1e-9)
    np.testing.assert_allclose(R @ w[:3], moment, atol=1e-9)


def test_a_push_adds_itself_and_a_payload_its_weight():
    """f_ext on the body of the link counts as behind the sensor."""
    model = _robot(SLIDE)
    far = {"world": dyn.World(half_spaces=()), "payload_link": "tip"}
    sim = dyn.ContactSimulator(model, **far, prescribed=("slide",))
    sim.advance(0.0)
    still = sim.wrench("pad")
    np.testing.assert_allclose(still[3:], [0, 0, -0.75 * G], atol=1e-9)
    push = np.array([0.0, 0.0, 0.0, 1.0, 2.0, 3.0])  # at the origin of the body
    sim.f_ext = push[None, :]
    sim.advance(0.002)
    wanted = still + np.r_[np.cross([-0.4, 0, 0], push[3:]), push[3:]]
    np.testing.assert_allclose(sim.wrench("pad"), wanted, atol=1e-9)
    sim.f_ext = None
    sim.attach(Payload(2.0, (0.0, 0.0, 0.0)))
    sim.advance(0.004)
    assert sim.wrench("pad")[5] == pytest.approx(-2.75 * G, abs=1e-9)
    bare = dyn.ContactSimulator(
        model, dyn.World(half_spaces=()), payload_link="body", prescribed=("slide",)
    )
    bare.attach(Payload(2.0, (0.0, 0.0, 0.0)))
    bare.advance(0.0)
    assert bare.wrench("pad")[5] == pytest.approx(-0.75 * G, abs=1e-9)


def test_the_link_of_a_joint_reads_all_that_the_joint_carries():
    """It is the negative force through the joint."""
    sim = dyn.ContactSimulator(dyn.load("arm7"), dyn.World(half_spaces=()))
    sim.advance(0.0)
    np.testing.assert_allclose(
        sim.wrench("link5"), -sim.reactions(coordinates="link")[4], atol=1e-9
    )


def test_what_has_no_sensor_is_refused_in_words():
    """Unknown links, those that do not move, and joints in front of the sensor."""
    sim = dyn.ContactSimulator(_robot(SLIDE), dyn.World(half_spaces=()))
    with pytest.raises(UnsupportedError, match="no step has been made"):
        sim.wrench("pad")
    sim.advance(0.0)
    for name in ("hand", "world"):
        with pytest.raises(SettingError, match="valid: body, pad, tip"):
            sim.wrench(name)
    finger = (
        LINK.format("finger", 0.1, "0 0 0", "")
        + """<joint name="grip"
    type="prismatic"><parent link="{0}"/><child link="finger"/><limit lower="0" upper="1"
    effort="1" velocity="1"/></joint></robot>"""
    )

    for parent, refused in (("body", True), ("tip", False)):
        urdf = (
            "<robot name='r'><link name='world'/>"
            + LINK.format("body", 3.0, "0 0 0", "")
            + LINK.format("tip", 0.5, "0 0 0", "")
            + SLIDE
            + """<joint name="mount" type="fixed"><parent link="body"/>
            <child link="tip"/></joint>"""
            + finger.format(parent)
        )
        sim = dyn.ContactSimulator(
            dyn.load_urdf(urdf), dyn.World(half_spaces=()), prescribed=("slide", "grip")
        )
        sim.advance(0.0)
        if refused:
            with pytest.raises(UnsupportedError, match="joint 'grip' hangs on 'body'"):
                sim.wrench("tip")
        else:
            assert sim.wrench("tip")[5] == pytest.approx(-0.6 * G, abs=1e-9)
