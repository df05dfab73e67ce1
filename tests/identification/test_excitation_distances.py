"""Excitation: links stay apart by capsules, by hulls, by meshes; what costs most."""

import json

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import cli
from dyn_core.commands.excite import lines_of
from dyn_core.contact.collision.hulls import Hulls
from dyn_core.contact.collision.pairs import ContactPairs
from dyn_core.identification.excitation import excite
from dyn_core.identification.excitation.link_pairs import HullPairs, LinkPairs

LINK = """<link name="{name}"><inertial><origin xyz="0.2 0.01 0.02"/><mass value="{m}"/>
<inertia ixx="0.01" ixy="0.001" ixz="0" iyy="0.03" iyz="0" izz="0.03"/></inertial>
{collision}</link>"""
SHAPE = """<collision><origin xyz="{xyz}"/><geometry>{shape}</geometry></collision>"""
JOINT = """<joint name="{name}" type="{kind}"><parent link="{parent}"/>
<child link="{child}"/><origin xyz="{xyz}"/><axis xyz="{axis}"/>
<limit lower="{low}" upper="{high}" effort="60" velocity="3"/></joint>"""
QUICK = {"starts": 1, "duration": 5.0, "harmonics": 5}


def link(name, m, shape="", xyz="0 0 0"):
    """Return a link with a collision shape, or with none."""
    collision = SHAPE.format(xyz=xyz, shape=shape) if shape else ""
    return LINK.format(name=name, m=m, collision=collision)


def joint(name, parent, child, xyz, axis, low=-2.0, high=2.0, kind="revolute"):
    return JOINT.format(
        name=name, parent=parent, child=child, xyz=xyz, axis=axis, low=low, high=high,
        kind=kind,
    )  # fmt: skip


def robot(*parts):
    return dyn.load(f"<robot name='r'><link name='base'/>{''.join(parts)}</robot>")


@pytest.fixture(scope="module")
def plates():
    """Two thin plates on both sides of a link, 0.3 m apart; their capsules overlap."""
    plate = '<box size="0.5 0.02 0.4"/>'
    return robot(
        link("a", 3, plate), link("b", 1), link("c", 2, plate, "0 0.3 0"),
        joint("j0", "base", "a", "0 0 0", "0 0 1"),
        joint("j1", "a", "b", "0 0 0", "0 0 1"),
        joint("j2", "b", "c", "0 0 0", "1 0 0", kind="revolute"),
    )  # fmt: skip


START = [0.1, 0.0, 0.0]


def touching(model, q, margin):
    """Return how many positions have contacts, by the detection that steps use."""
    pairs = ContactPairs(model, (), margin)
    return sum(bool(pairs.contacts(row)) for row in q)


def test_pairs_whose_capsules_overlap_are_kept_apart_by_hulls(plates):
    """As detection of contacts sees the boxes; without this the plates collide."""
    bare = excite(plates, **QUICK, start=START, clearance=None)
    assert touching(plates, bare.q[::10], 0.0)
    made = excite(plates, **QUICK, start=START)
    (pair,) = made.near
    assert pair.links == ("a", "c") and pair.by == "hulls" and pair.limit == 0.02
    assert pair.start == pytest.approx(0.28)
    assert made.kept and made.pairs == 1 and made.distance >= 0.02 and not made.left_out
    assert not touching(plates, made.q[::10], 0.0199)
    said = "\n".join(lines_of(made))
    assert "their capsules overlap, checked by hulls (0.280 m apart" in said


def test_a_pair_that_is_closer_at_the_start_keeps_half_of_that(plates):
    """No motion keeps a clearance that its own start does not have."""
    links = LinkPairs(plates, np.array(START), 0.5, engine="graph")
    assert links.limits == pytest.approx([0.14])


@pytest.fixture(scope="module")
def crossing():
    """A robot whose shapes of every kind come close to each other."""
    shapes = (
        '<sphere radius="0.05"/>', '<capsule radius="0.03" length="0.2"/>',
        '<box size="0.3 0.1 0.2"/>', '<cylinder radius="0.06" length="0.25"/>',
    )  # fmt: skip
    names, axes = "abcd", ("0 0 1", "0 1 0.2", "1 0 0", "0 1 0")
    links = [link(n, 1, s, "0.2 0.05 0") for n, s in zip(names, shapes, strict=True)]
    joints = [
        joint(f"j{k}", p, c, f"{0.3 * (k > 0)} 0 0.02", axis)
        for k, (p, c, axis) in enumerate(
            zip(("base", *names), names, axes, strict=False)
        )
    ]
    return robot(*links, *joints)


def test_gradient_of_hull_distances_agrees_with_differences(crossing):
    """By every joint, of pairs of several kinds of shapes."""
    pairs = np.array([(0, 2), (0, 3), (1, 3)])
    hulls = HullPairs(crossing, pairs, Hulls(crossing.source, {}), "graph")
    q = np.random.default_rng(7).uniform(-1.9, 1.9, (30, 4))
    distances = hulls.distances(q)
    weights = np.random.default_rng(8).normal(size=distances.values.shape)
    gradient = hulls.gradient(q, distances, weights)
    for j in range(4):
        d = 1e-6 * np.eye(4)[j]
        change = hulls.distances(q + d).values - hulls.distances(q - d).values
        slope = (weights * change).sum(axis=1) / 2e-6
        np.testing.assert_allclose(gradient[:, j], slope, atol=2e-5)


def test_distances_of_hulls_are_those_of_contacts(crossing):
    """Of closest points: detection of contacts finds the same gaps."""
    pairs = np.array([(0, 2), (0, 3), (1, 3)])
    hulls = HullPairs(crossing, pairs, Hulls(crossing.source, {}), "graph")
    contacts, seen = ContactPairs(crossing, (), 0.3), 0
    for q in np.random.default_rng(9).uniform(-1.9, 1.9, (20, 4)):
        values = hulls.distances(q[None]).values[0]
        for (a, b), value in zip(pairs.tolist(), values, strict=True):
            names = crossing.shapes[a].link, crossing.shapes[b].link
            gaps = [
                x.gap
                for x in contacts.contacts(q)
                if (x.id.link_a, x.id.link_b) == names
            ]
            if gaps:
                assert min(gaps) == pytest.approx(value, abs=1e-7)
                seen += 1
            else:
                assert value > 0.3
    assert seen > 5


BOXES = "".join(
    f"v {x} {y} {z}\n"
    for x0 in (-0.32, 0.3)
    for x in (x0, x0 + 0.02)
    for y in (-0.3, 0.3)
    for z in (-0.3, 0.3)
) + "".join(
    f"f {' '.join(str(8 * k + n) for n in corners)}\n"
    for k in range(2)
    for corners in (
        (1, 2, 4), (1, 4, 3), (5, 7, 8), (5, 8, 6), (1, 5, 6), (1, 6, 2),
        (3, 4, 8), (3, 8, 7), (1, 3, 7), (1, 7, 5), (2, 6, 8), (2, 8, 4),
    )
)  # fmt: skip


def gripped(tmp_path, reach):
    """Return a ball that slides between two plates, which are one mesh."""
    (tmp_path / "plates.obj").write_text(BOXES)
    parts = (
        link("a", 3, '<mesh filename="plates.obj"/>'), link("b", 1),
        link("c", 2, '<sphere radius="0.05"/>'),
        joint("j0", "base", "a", "0 0 0", "0 0 1"),
        joint("j1", "a", "b", "0 0 0", "1 0 0"),
        joint("j2", "b", "c", "0 0 0", "1 0 0", -reach, reach, "prismatic"),
    )  # fmt: skip
    file = tmp_path / "gripped.urdf"
    file.write_text(f"<robot name='r'><link name='base'/>{''.join(parts)}</robot>")
    return dyn.load(file)


@pytest.mark.parametrize(("reach", "kept"), [(0.15, True), (0.4, False)])
def test_pairs_whose_hulls_overlap_are_judged_by_meshes(tmp_path, reach, kept):
    """The ball is in the hull of the plates, and touches them if it slides far."""
    pytest.importorskip("coal", reason="coal is not installed")
    made = excite(gripped(tmp_path, reach), **QUICK)
    (pair,) = made.near
    assert pair.by == "meshes" and pair.start == pytest.approx(0.25, abs=1e-6)
    assert made.pairs == 1 and made.kept == kept
    away = 0.3 - 0.05 - np.abs(made.q[:, 2]).max()
    if kept:
        assert made.distance == pytest.approx(away, abs=1e-3)
    else:
        broken = made.broken[0]
        assert broken.kind == "mesh distance" and broken.name == "a and c"
        assert broken.value < 0.02 and away < 0


def test_what_touches_at_the_start_is_named(tmp_path):
    """Nothing could keep it apart; the command says so."""
    ball = '<sphere radius="0.2"/>'
    model = robot(
        link("a", 3, ball), link("b", 1), link("c", 2, ball),
        joint("j0", "base", "a", "0 0 0", "0 0 1"), joint("j1", "a", "b", "0 0 0", "0 1 0"),
        joint("j2", "b", "c", "0.1 0 0", "0 1 0.2"),
    )  # fmt: skip
    made = excite(model, **QUICK)
    assert made.left_out == (("a", "c"),) and made.near[0].by == "nothing"
    assert "not checked, they touch at the start: a and c" in lines_of(made)


def test_the_joint_that_costs_most_is_named():
    """Two fingers of a gripper that hardly move: they are one joint, and its follower."""
    mimic = '<mimic joint="finger"/></joint>'
    other = joint("other", "b", "g", "0.3 -0.03 0", "0 -1 0", 0.0, 0.02, "prismatic")
    model = robot(
        link("a", 3), link("b", 2), link("f", 0.05), link("g", 0.05),
        joint("j0", "base", "a", "0 0 0", "0 0 1"),
        joint("j1", "a", "b", "0.4 0 0", "0 1 0.3"),
        joint("finger", "b", "f", "0.3 0.03 0", "0 1 0", 0.0, 0.02, "prismatic"),
        other.replace("</joint>", mimic),
    )  # fmt: skip
    made = excite(model, **QUICK)
    assert made.costly is not None and made.costly.name == "finger"
    locked = excite(model.lock({"finger": 0.01}), **QUICK)
    assert made.costly.rank == locked.base.rank
    assert made.costly.random_condition == pytest.approx(
        locked.random_condition, rel=0.1
    )
    assert locked.costly is None and locked.condition < made.condition / 3
    (line,) = [x for x in lines_of(made) if x.startswith("finger costs most")]
    assert "(--lock finger=" in line and f"{locked.base.rank} base parameters" in line


@pytest.mark.full
def test_a_panda_stays_apart_by_its_meshes(tmp_path, capsys):
    """As Pinocchio and coal see its meshes, all pairs but neighbours. Long: 20 s."""
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is not installed")
    file = dyn.load("panda").source.file
    folder = file.split("/example-robot-data")[0]
    motion = str(tmp_path / "m.json")
    assert cli.main(["excite", "panda", "--starts", "1", "-o", motion]) == 0
    said = capsys.readouterr().out
    for others in ("panda_link7", "panda_hand"):
        assert f"apart at the start): panda_link5 and {others}" in said
    assert "panda_finger_joint1 costs most: locked (--lock panda_finger_joint1=" in said
    with open(motion) as stream:
        points = json.load(stream)
    model = pin.buildModelFromUrdf(file)
    kind = pin.GeometryType.COLLISION
    geometry = pin.buildGeomFromUrdf(model, file, kind, package_dirs=[folder])
    geometry.addAllCollisionPairs()
    data, distances = model.createData(), geometry.createData()
    least = {}
    names = (*points["joint_names"], "panda_finger_joint2")
    for point in points["points"][::4]:
        q = pin.neutral(model)
        values = (*point["positions"], point["positions"][-1])
        for name, value in zip(names, values, strict=True):
            q[model.joints[model.getJointId(name)].idx_q] = value
        pin.computeDistances(model, data, geometry, distances, q)
        for pair, result in zip(
            geometry.collisionPairs, distances.distanceResults, strict=True
        ):
            both = [geometry.geometryObjects[k] for k in (pair.first, pair.second)]
            near = [x.parentJoint for x in both]
            if near[0] == near[1] or near[0] == model.parents[near[1]]:
                continue
            key = tuple(x.name for x in both)
            least[key] = min(least.get(key, np.inf), result.min_distance)
    assert len(least) > 70 and min(least.values()) > 0.0199
