"""The builder behind the readers: one robot is one Description, whatever its file."""

import math

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.errors import ModelWarning
from dyn_core.model.checks.findings import Findings
from dyn_core.model.description import Mimic
from dyn_core.model.description_builder import (
    DescriptionBuilder,
    Inertial,
    unused_name,
)
from dyn_core.spatial import Transform

URDF = """<robot name="two"><link name="world"/>
  <link name="a"><inertial><origin xyz="0 0 0.2" rpy="0.5 0 0"/><mass value="2"/>
    <inertia ixx="0.1" iyy="0.2" izz="0.25" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0 0 0.1"/><geometry><box size="0.1 0.2 0.3"/></geometry></collision></link>
  <link name="b"><inertial><origin xyz="0 0.1 0"/><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><sphere radius="0.1"/></geometry></collision></link>
  <joint name="j" type="revolute"><origin xyz="0 0 1"/><parent link="world"/><child link="a"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="2" effort="5" velocity="0"/><dynamics damping="0.3" friction="0.2"/></joint>
  <joint name="k" type="prismatic"><origin xyz="0 0 0.5"/><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
    <limit lower="0" upper="1" effort="7" velocity="0"/><mimic joint="j" multiplier="0.5" offset="0.1"/></joint>
</robot>"""
SIDECAR = {
    "armature": {"j": 0.02},
    "springs": {"k": {"stiffness": 3.0}},
    "materials": {"default": {"mu": 0.8}},
}
MJCF = """<mujoco model="two"><compiler angle="radian"/><default><geom condim="3" friction="0.8 0 0"/></default>
<worldbody><body name="a" pos="0 0 1">
  <joint name="j" axis="0 1 0" range="-1 2" damping="0.3" frictionloss="0.2" armature="0.02"/>
  <inertial pos="0 0 0.2" quat="0.9689124217106447 0.24740395925452294 0 0" mass="2" diaginertia="0.1 0.2 0.25"/>
  <geom type="box" size="0.05 0.1 0.15" pos="0 0 0.1"/>
  <body name="b" pos="0 0 0.5"><joint name="k" type="slide" axis="0 0 1" range="0 1" stiffness="3"/>
    <inertial pos="0 0.1 0" mass="1" diaginertia="0.1 0.1 0.1"/><geom size="0.1"/></body></body></worldbody>
<actuator><motor joint="j" forcelimited="true" forcerange="-5 5"/><motor joint="k" forcelimited="true" forcerange="-7 7"/></actuator>
<equality><joint joint1="k" joint2="j" polycoef="0.1 0.5 0 0 0"/></equality></mujoco>"""


def test_urdf_with_sidecar_and_mjcf_describe_one_robot():
    """The same numbers of the same joints, inertias about frames, shapes and materials."""
    pytest.importorskip("mujoco", reason="mujoco is not installed (extra mjcf)")
    one = dyn.load_urdf(URDF, extras=SIDECAR).build.description
    with pytest.warns(ModelWarning):  # motors are no part of a Model
        other = dyn.load_mjcf(MJCF).build.description
    assert [x.name for x in one.links] == [x.name for x in other.links]
    for a, b in zip(one.links, other.links, strict=True):
        np.testing.assert_allclose(
            a.inertia.parameters, b.inertia.parameters, 1e-12, 1e-15
        )
        assert repr(a.collisions) == repr(b.collisions)
    for a, b in zip(one.joints, other.joints, strict=True):
        for name in (
            "name", "kind", "parent", "child", "xyz", "rpy", "axis", "lower", "upper",
            "velocity", "effort", "damping", "friction", "armature", "mimic",
            "stiffness", "rest",
        ):  # fmt: skip
            assert getattr(a, name) == getattr(b, name), (a.name, name)
    assert one.materials == other.materials


TWICE = """<robot name="r"><link name="a"/><link name="b"/>
  <joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>
  <joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>"""


@pytest.mark.parametrize("extras", [None, {"armature": {"j": 0.1}}])
def test_two_joints_of_one_name_are_refused_with_a_sidecar_too(extras):
    """The sidecar once put the second in place of the first, and the robot was read."""
    with pytest.raises(dyn.ModelError, match="two <joint>s are called 'j'"):
        dyn.load_urdf(TWICE, extras=extras)


def _built(findings):
    builder = DescriptionBuilder("r", findings)
    builder.link("a")
    builder.link("b")
    return builder


def test_doubts_are_findings_or_errors():
    """Limits, shapes and followers: left out with a finding; strict or a sidecar: an error."""

    def limits(builder):
        builder.joint("j", "revolute", "a", "b", (1.0, -1.0))

    def shape(builder):
        builder.shape("shape 1", "a", "sphere", (-1.0,), Transform.identity())

    findings = Findings()
    builder = _built(findings)
    limits(builder)
    shape(builder)
    description = builder.description()
    (joint,) = description.joints
    assert (joint.lower, joint.upper) == (-math.inf, math.inf)
    assert description.links[0].collisions == ()
    assert len(description.warnings) == 2
    for add in (limits, shape):
        for strict in (Findings(strict=True), None):
            with pytest.raises(dyn.ModelError):
                add(_built(strict))


def test_a_joint_follows_one_other():
    """A second rule, and names of no joint, are refused."""
    builder = _built(None)
    builder.joint("j", "revolute", "a", "b")
    builder.joint("k", "revolute", "b", "c")
    builder.follow("k", Mimic("j"), "file")
    with pytest.raises(dyn.ModelError, match="file: joint 'k' follows 'j' already"):
        builder.follow("k", Mimic("j"), "file")
    for pair in (("j", "x"), ("x", "j")):
        with pytest.raises(dyn.ModelError, match="no joint is called 'x'"):
            builder.follow(pair[0], Mimic(pair[1]), "file")


def test_links_of_one_inertial_share_an_inertia():
    """Large robots repeat parts; a link without inertia has zeros."""
    builder = DescriptionBuilder("r", Findings())
    part = Inertial(2.0, (0.0, 0.0, 0.5), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
    for name, inertial in (("a", part), ("b", None), ("c", part)):
        builder.link(name, inertial)
    a, b, c = (link.inertia for link in builder.description().links)
    assert a is c
    assert a.parameters == (2.0, 0.0, 0.0, 1.0, 1.5, 0.0, 1.5, 0.0, 0.0, 1.0)
    assert not any(b.parameters)


def test_unused_names_differ_from_all_before():
    """Underscores are added until a name is free."""
    taken = {"a", "a_"}
    assert [unused_name("a", taken), unused_name("a", taken)] == ["a__", "a___"]
