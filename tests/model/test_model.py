"""The Model: order, couplings, reduction, coordinates, sidecar."""

import dataclasses
import pickle
import re
import warnings

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import robots
from dyn_core.errors import ModelWarning
from dyn_core.model.assembly.assemble import assemble_tree
from dyn_core.model.frames import Frame, origin, sum_inertias
from dyn_core.numbers.taylor import Taylor
from dyn_core.spatial import RigidInertia, Transform


@pytest.fixture(scope="module")
def tree(shipped):
    """Return the tree with every joint kind."""
    return shipped["every_joint"]


def _state(model, seed=0):
    rng = np.random.default_rng(seed)
    return model.random(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)


def test_every_kind_is_there(tree):
    """The shipped tree has each joint kind, followers and merged links."""
    kinds = {joint.kind for joint in tree.joint[1:]}
    assert kinds == {
        "revolute",
        "continuous",
        "prismatic",
        "planar",
        "floating",
        "spherical",
    }
    assert tree.followers
    assert tree.nb < len(tree.frame_names)
    assert tree.nq == sum(tree.joint[i].nq for i in tree.independent)
    assert any(tree.I[i].m == 0 for i in tree.bodies)


@pytest.mark.parametrize("name", robots.names())
def test_repr_says_what_robot_it_is(shipped, name):
    """Five lines: name, joints, mass, frames, root, loops and warnings."""
    model = shipped[name]
    lines = repr(model).splitlines()
    assert len(lines) == 5
    assert max(map(len, lines)) < 89
    assert lines[0] == f"Model '{model.name}'"
    for phrase in (
        f"{len(model.joint_names)} independent",
        f"nq={model.nq}, nv={model.nv}",
        f"bodies: {model.nb}",
        f"mass {model.mass:.6g} kg",
        f"{len(model.frames)} frames",
        f"root: link '{model.frame_names[0]}'",
        "loops: 0",
        f"warnings: {len(model.warnings)}",
    ):
        assert phrase in repr(model), phrase


def test_repr_of_a_robot_with_symbols(shipped):
    """A mass that is not known yet does not hinder showing the robot."""
    model = shipped["two_link"]
    link = model.frame_names[-1]
    symbolic = model.with_values({f"{link}.mass": [Taylor(1.0, 1.0)]})
    assert "mass not a number yet" in repr(symbolic)


def test_a_model_is_assembled_again_from_its_build(shipped):
    """`rebuilt` changes what the robot was made from and keeps the rest."""
    model = shipped["arm7"]
    weightless = model.rebuilt(gravity=(0.0, 0.0, 0.0))
    assert list(weightless.a_grav) == [0.0] * 6
    assert weightless.joint_names == model.joint_names
    assert type(weightless) is dyn.Model
    tree = assemble_tree(model.build)
    for field in dataclasses.fields(tree):
        assert repr(getattr(tree, field.name)) == repr(getattr(model, field.name))


def test_order_is_depth_first_in_document_order():
    """Children follow their parent before its siblings, as the file has them."""

    def joint(n, p, c):
        return (
            f'<joint name="{n}" type="continuous"><parent link="{p}"/>'
            f'<child link="{c}"/></joint>'
        )

    inertia = (
        '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0"'
        ' ixz="0" iyz="0"/></inertial>'
    )
    links = "".join(f'<link name="{n}">{inertia}</link>' for n in "rabcd")
    joints = joint("jc", "a", "c") + joint("jb", "r", "b") + joint("ja", "r", "a")
    model = dyn.load_urdf(
        f'<robot name="t">{links}{joints}{joint("jd", "b", "d")}</robot>'
    )
    assert model.joint_names == ("jb", "jd", "ja", "jc")
    assert all(model.parent[i] < i for i in model.bodies)


def test_integrate_and_difference_undo_each_other(tree):
    """integrate(q0, difference(q0, q1)) is q1 as a pose; batches row by row."""
    rng = np.random.default_rng(1)
    fk = dyn.solver("forward_kinematics").build(tree)
    q0, q1 = tree.random(rng), tree.random(rng)
    back = tree.integrate(q0, tree.difference(q0, q1))
    np.testing.assert_allclose(fk(back), fk(q1), atol=1e-12)
    dv = 0.3 * rng.normal(size=tree.nv)
    np.testing.assert_allclose(
        tree.difference(q0, tree.integrate(q0, dv)), dv, atol=1e-12
    )
    Q = np.stack([q0, q1])
    batch, one = tree.integrate(Q, dv)[1], tree.integrate(q1, dv)
    np.testing.assert_allclose(batch, one, rtol=0, atol=1e-15)  # NumPy's sines differ
    with pytest.raises(dyn.ShapeError, match="dv: wanted"):
        tree.integrate(q0, dv[:-1])
    with pytest.raises(dyn.ShapeError, match="^qd: wanted"):
        tree.position_rate(q0, dv[:-1])
    with pytest.raises(dyn.ShapeError, match="^qd: wanted"):
        tree.tangent_rate(dv, dv[:-1])


def test_neutral_and_normalize(tree):
    """Neutral has unit quaternions; normalize mends scaled ones only."""
    q = tree.neutral()
    np.testing.assert_array_equal(tree.normalize(q), q)
    part = tree.q_slice(
        next(n for n in tree.joint_names if tree.joint_kind(n) == "spherical")
    )
    scaled = q.copy()
    scaled[part] *= 3
    np.testing.assert_allclose(tree.normalize(scaled), q, atol=1e-15)


def test_random_keeps_limits(shipped):
    """Random positions lie within the limits and follow the seed."""
    arm = shipped["arm7"]
    rng = np.random.default_rng(0)
    Q = np.array([arm.random(rng) for _ in range(50)])
    assert (Q >= arm.lower).all()
    assert (arm.upper >= Q).all()
    assert np.ptp(Q, axis=0).min() > 0.5
    again = np.random.default_rng(0)
    np.testing.assert_array_equal(Q[0], arm.random(again))


def test_reorder_permutes_everything(tree):
    """A permuted robot gives permuted results, in every solver of the kind."""
    rng = np.random.default_rng(4)
    names = list(rng.permutation(tree.joint_names))
    other = tree.reorder(names)
    assert other.joint_names == tuple(names)
    iq = np.concatenate([np.arange(tree.nq)[tree.q_slice(n)] for n in names])
    iv = np.concatenate([np.arange(tree.nv)[tree.v_slice(n)] for n in names])
    q, qd, x = _state(tree)
    for name in ("rnea", "aba", "dense"):
        solver = dyn.solver(name)
        wanted = solver.build(tree)(q, qd, x)[iv]
        got = solver.build(other)(q[iq], qd[iv], x[iv])
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
    H = dyn.solver("crba").build(tree)(q)
    np.testing.assert_allclose(
        dyn.solver("crba").build(other)(q[iq]), H[np.ix_(iv, iv)], atol=1e-12
    )
    np.testing.assert_array_equal(other.upper, tree.upper[iv])
    message = f"reorder needs each of .* once; missing: {names[0]}; too many: toe"
    with pytest.raises(dyn.ModelError, match=message):
        tree.reorder([*names[1:], "toe"])
    with pytest.raises(dyn.ModelError, match=f"missing: none; too many: {names[1]}$"):
        tree.reorder([*names, names[1]])


def test_followers_move_with_their_leader(tree):
    """q_follower = multiplier q_leader + offset, composed; limits bound the leader."""
    name, rule = next(iter(tree.followers.items()))
    i, lead = tree.body_of_joint(name), tree.body_of_joint(rule.leader)
    from dyn_core.model.coordinates import split_q

    q, _, _ = _state(tree)
    parts = split_q(tree, dyn.authoring.Vector(q.tolist()))
    assert parts[i][0] == pytest.approx(rule.multiplier * parts[lead][0] + rule.offset)
    chained = [f for f in tree.followers.values() if abs(f.multiplier) != 0.5]
    assert chained, "a mimic of a mimic has the product of the multipliers"


def test_followers_are_the_constrained_tree():
    """A coupled robot equals the free one under q = G y, by virtual work."""
    path = robots.path("every_joint")
    coupled = dyn.load_urdf(path)
    text = path.read_text()
    import re

    free = dyn.load_urdf(
        re.sub(r"<mimic[^>]*/>", "", text),
        extras=path.with_name("every_joint.dyn.yaml"),
    )
    G = np.zeros((free.nv, coupled.nv))
    for n in free.joint_names:
        scale = coupled.followers[n].multiplier if n in coupled.followers else 1.0
        G[free.v_slice(n), coupled.v_slice(n)] = scale * np.eye(
            free.v_slice(n).stop - free.v_slice(n).start
        )
    y, yd, ydd = _state(coupled, 2)
    q = free.neutral()
    for n in free.joint_names:
        rule = coupled.followers.get(n)
        part = y[coupled.q_slice(n)]
        q[free.q_slice(n)] = rule.multiplier * part + rule.offset if rule else part
    H = dyn.solver("crba")
    np.testing.assert_allclose(
        H.build(coupled)(y), G.T @ H.build(free)(q) @ G, atol=1e-12
    )
    for joint_friction in (False, True):
        rnea = [
            dyn.solver("rnea").build(m, joint_friction=joint_friction)
            for m in (coupled, free)
        ]
        tau = rnea[0](y, yd, ydd)
        np.testing.assert_allclose(
            tau, G.T @ rnea[1](q, G @ yd, G @ ydd), rtol=1e-11, atol=1e-11
        )
        for name in ("aba", "dense"):
            fd = dyn.solver(name).build(coupled, joint_friction=joint_friction)
            np.testing.assert_allclose(fd(y, yd, tau), ydd, rtol=1e-8, atol=1e-8)


def test_a_lock_beyond_the_limits_is_doubtful(shipped):
    """Degrees for radians, in a Model and in dyn.load; the robot is made."""
    doubt = (
        r"is lock in degrees\? the lock is beyond the limits of joint joint4 by 90.1"
    )
    with pytest.warns(ModelWarning, match=doubt):
        locked = shipped["arm7"].lock({"joint4": 90.0})
    assert any("the lock is beyond" in warning for warning in locked.warnings)
    with pytest.warns(ModelWarning, match=doubt):
        dyn.load("arm7", lock={"joint4": 90.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        shipped["arm7"].lock({"joint4": -1.5})


def test_lock_merges_exactly(shipped):
    """A locked joint is the free robot held there: same forces, fewer coordinates."""
    arm = shipped["arm7"]
    name = arm.joint_names[3]
    locked = arm.lock({name: -1.2})
    assert locked.joint_names == tuple(n for n in arm.joint_names if n != name)
    q, qd, qdd = _state(arm)
    keep = np.arange(7) != 3
    q[3], qd[3], qdd[3] = -1.2, 0, 0
    rnea = dyn.solver("rnea")
    np.testing.assert_allclose(
        rnea.build(locked)(q[keep], qd[keep], qdd[keep]),
        rnea.build(arm)(q, qd, qdd)[keep],
        rtol=1e-11,
        atol=1e-11,
    )
    assert set(locked.frame_names) == set(arm.frame_names)
    with pytest.raises(dyn.ModelError, match="no moving joint is called 'elbow'"):
        arm.lock({"elbow": 0.0})
    with pytest.raises(dyn.ModelError, match="needs 1 finite number,"):
        arm.lock({name: [0.0, 1.0]})


@pytest.mark.parametrize("size", [0.0, 5e-324, 1e-200, 1e200])
def test_a_quaternion_that_cannot_be_normalised_is_refused(size):
    """Its squared length is zero or infinite: by a lock, and by `normalize`."""
    robot = dyn.load_urdf(
        """<robot name="free"><link name="a"/><link name="b"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="j" type="floating"><parent link="a"/><child link="b"/></joint>
        </robot>"""
    )
    q = robot.neutral()
    q[6] = size
    with pytest.raises(dyn.ModelError, match="joint 'j': its quaternion is zero or"):
        robot.lock({"j": q})
    for batch in (q, np.array([robot.neutral(), q])):
        with pytest.raises(dyn.NonFiniteError, match="joint j is zero or beyond"):
            robot.normalize(batch)
    q[6] = 1e-150
    np.testing.assert_array_equal(robot.normalize(q), robot.neutral())


def test_locking_a_leader_locks_its_followers(tree):
    """Followers of a locked leader stand where the rule puts them."""
    rule = next(iter(tree.followers.values()))
    locked = tree.lock({rule.leader: 0.3})
    assert not locked.followers
    assert locked.mass <= tree.mass


def test_sub_chains(shipped):
    """root and tip keep the chain between; wrong links are refused with the known."""
    path = robots.path("arm7")
    arm = shipped["arm7"]
    tip = arm.frame_names[4]
    chain = dyn.load_urdf(path, tip=tip)
    assert chain.joint_names == arm.joint_names[: chain.nv]
    assert tip in chain.frame_names
    assert chain.nv < 7
    upper = dyn.load_urdf(path, root=tip)
    assert upper.nv == 7 - chain.nv
    with pytest.raises(dyn.ModelError, match="no link is called 'moon';"):
        dyn.load_urdf(path, tip="moon")
    with pytest.raises(dyn.ModelError, match="does not hang below"):
        dyn.load_urdf(path, root=tip, tip=arm.frame_names[0])


MOUNTED = """<robot name="r"><link name="torso"/><link name="base"/>
  <link name="arm"><inertial><origin xyz="0.3 0 0"/><mass value="2"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="mount" type="fixed"><parent link="torso"/><child link="base"/>
    <origin xyz="0 0 1" rpy="RPY"/></joint>
  <joint name="turn" type="continuous"><parent link="base"/><child link="arm"/>
    <axis xyz="0 0 1"/></joint></robot>"""


@pytest.mark.parametrize("rpy", ["3.141592653589793 0 0", "0 1.5707963267948966 0.4"])
def test_gravity_of_a_root_that_is_mounted_turned_is_a_warning(rpy):
    """It is in the axes of the chosen root; the sentence has it as the file mounts it."""
    text, weight = MOUNTED.replace("RPY", rpy), dyn.solver("gravity")
    whole = dyn.load_urdf(text)
    assert not whole.warnings
    with pytest.warns(dyn.errors.ModelWarning, match="'base', which the file mounts"):
        part = dyn.load_urdf(text, root="base")
    numbers = re.search(r"would be \((.*)\)", part.warnings[0]).group(1).split(", ")
    meant = dyn.load_urdf(text, root="base", gravity=tuple(map(float, numbers)))
    assert not meant.warnings
    for q in (0.3, 2.0):
        expected = weight.build(whole, engine="graph")([q])
        np.testing.assert_allclose(
            weight.build(meant, engine="graph")([q]), expected, atol=1e-3
        )
    level = dyn.load_urdf(MOUNTED.replace("RPY", "0 0 0.4"), root="base")
    assert not level.warnings


def test_floating_root_adds_six(shipped):
    """root_joint='floating' puts seven positions and six velocities first."""
    arm = shipped["arm7"]
    free = dyn.load_urdf(robots.path("arm7"), root_joint="floating")
    assert (free.nq, free.nv) == (arm.nq + 7, arm.nv + 6)
    assert free.joint_names[0] == "root_joint"
    with pytest.raises(dyn.ModelError, match="valid are fixed, floating"):
        dyn.load_urdf(robots.path("arm7"), root_joint="welded")


def test_sidecar(tmp_path):
    """Found beside a path, or given, or turned off; loading says which was used."""
    path = tmp_path / "arm.urdf"
    path.write_text(robots.path("two_link").read_text())
    plain = dyn.load_urdf(path)
    name = plain.joint_names[0]
    beside = tmp_path / "arm.dyn.yaml"
    beside.write_text(
        f"armature: {{{name}: 0.25}}\nrotors: {{{name}: {{inertia: 1.0e-4,"
        " ratio: 50}}}\n".replace("}}}", "}}")
    )
    model = dyn.load_urdf(path)
    assert model.flat("armature")[0] == pytest.approx(0.25 + 0.25)
    assert str(beside) in model.build.description.sources
    assert dyn.load_urdf(path, sidecar=False).flat("armature")[0] == 0
    changed = dyn.load_urdf(path, extras={"armature": {name: 0.5}})
    assert changed.flat("armature")[0] == 0.5
    for wrong in ("armatur", "lower", "nq", ["armature"]):
        with pytest.raises(dyn.ModelError, match=r"no attribute is called.*armature"):
            model.flat(wrong)


@pytest.mark.parametrize(
    ("extras", "message"),
    [
        (
            {"armature": {"ghost": 1.0}},
            "armature: no joint is called 'ghost'; valid: joint1",
        ),
        ("a: [", "cannot read"),
        (
            {"joints": {"{}": {"type": "fixed"}}, "springs": {"{}": {"stiffness": 1}}},
            "springs: joint 'joint1' is fixed, which this does not change",
        ),
        (
            {"joints": {"{}": {"type": "fixed"}}, "armature": {"{}": 1.0}},
            "armature: joint 'joint1' is fixed",
        ),
    ],
)
def test_bad_sidecars_are_refused_in_words(extras, message):
    """Each error says where and what would be valid."""
    path = robots.path("two_link")
    name = dyn.load_urdf(path).joint_names[0]
    if isinstance(extras, dict):
        extras = {
            k: {n.replace("{}", name): v for n, v in e.items()}
            if isinstance(e, dict)
            else e
            for k, e in extras.items()
        }
    with pytest.raises(dyn.ModelError, match=message):
        dyn.load_urdf(path, extras=extras)


def test_gravity_and_pickle(shipped):
    """Gravity is an argument; a Model pickles to the same numbers."""
    with pytest.raises(dyn.ModelError, match="three finite numbers"):
        dyn.load_urdf(robots.path("arm7"), gravity=(0, 0))
    arm = shipped["arm7"]
    again = pickle.loads(pickle.dumps(arm))
    q, qd, qdd = _state(arm)
    rnea = dyn.solver("rnea")
    np.testing.assert_array_equal(
        rnea.build(again)(q, qd, qdd), rnea.build(arm)(q, qd, qdd)
    )


def test_names_that_are_not_there_are_refused(shipped):
    """Links and joints are looked up in words."""
    arm = shipped["arm7"]
    with pytest.raises(dyn.ModelError, match="no link is called 'x';"):
        arm.body_of("x")
    with pytest.raises(dyn.ModelError, match="no moving joint is called 'x';"):
        arm.q_slice("x")


def test_the_base_is_not_locked_but_loaded_fixed():
    """The message names what can be locked, and how the base is fixed."""
    free = dyn.load("two_link", root_joint="floating")
    place = [0, 0, 0, 0, 0, 0, 1]
    for call in (
        lambda: free.lock({"root_joint": place}),
        lambda: dyn.load("two_link", root_joint="floating", lock={"root_joint": place}),
    ):
        with pytest.raises(
            dyn.ModelError, match="lock: 'root_joint' is the joint of the"
        ) as e:
            call()
        assert "valid: joint1, joint2; root_joint='fixed' fixes the base" in str(
            e.value
        )
    with pytest.raises(dyn.ModelError, match="'joint3'.*valid: joint1, joint2$"):
        free.lock({"joint3": 0.0})


def test_an_inertia_is_made_of_its_own_parts():
    """Mass, centre of mass, and the Matrix of the inertia about it."""
    I = RigidInertia.of(2.0, (0.1, 0.2, -0.3), (1.0, 0.1, 0.2, 1.2, 0.3, 0.9))
    again = RigidInertia.of(I.m, I.c, I.Ic)
    np.testing.assert_allclose(np.asarray(again), np.asarray(I), atol=1e-15)


def test_inertias_of_merged_links_add_up():
    """All at once as one by one: the sum over links of X.T I X."""
    rng = np.random.default_rng(4)
    frames, wanted = {}, [np.zeros((6, 6))] * 3
    for k in range(8):
        numbers = rng.normal(size=(3, 3)).tolist()
        inertia = RigidInertia.of(1.0 + k, numbers[0], (1.0, 0.1, 0.2, 1.2, 0.3, 0.9))
        X = (
            origin(tuple(numbers[1]), tuple(numbers[2]))
            if k % 3
            else Transform.identity()
        )
        frames[f"l{k}"] = Frame(k % 2, X, inertia if k % 4 else RigidInertia.zero())
        moved = np.asarray(X).T @ np.asarray(frames[f"l{k}"].inertia) @ np.asarray(X)
        wanted[k % 2] = wanted[k % 2] + moved
    for got, sum_ in zip(sum_inertias(frames, 3), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(got), sum_, atol=1e-13)


def test_frames_show_themselves_in_a_line(shipped):
    """Body, place and mass of a link, whatever its inertia is."""
    frame = shipped["two_link"].frames["link2"]
    assert repr(frame) == "<Frame on body 2 at (0, 0, 0) m, 1.1 kg>"
    assert max(len(repr(x)) for x in shipped["quadruped"].frames.values()) < 80


def test_notebooks_show_a_table(shipped):
    """Joints with kind and limits; names are escaped."""
    model = shipped["two_link"]
    shown = model._repr_html_()
    assert "<b>two_link</b>" in shown
    assert shown.count("<tr>") == 1 + model.nb
    assert "<td>joint1</td><td>revolute</td>" in shown
    text = """<robot name="a&lt;b&gt;"><link name="x"/><link name="y"><inertial><mass value="1"/>
      </inertial></link><joint name="&lt;j&gt;" type="prismatic"><parent link="x"/><child link="y"/>
      <limit lower="0" upper="1"/></joint></robot>"""
    other = dyn.load(text)._repr_html_()
    assert "<b>a&lt;b&gt;</b>" in other
    assert "<td>&lt;j&gt;</td><td>prismatic</td><td>0</td><td>1</td>" in other


CHANGES = {
    "limits": lambda m: dataclasses.replace(m, effort_limit=m.effort_limit / 2),
    "gravity": lambda m: m.with_values({"gravity": (0.0, 0.0, 0.0)}),
    "payload": lambda m: m.with_values({"tool.payload": [1.0, *[0.0] * 9]}),
    "damping": lambda m: m.with_values({"joint3.damping": 9.0}),
    "friction": lambda m: m.without_friction(),
    "stribeck": lambda m: m.with_values({"joint3.stribeck": 0.2}),
    "springs": lambda m: m.with_values({"joint3.stiffness": 4.0}),
}


def test_a_driven_joint_carries_its_link():
    """The body without mass before it carries none, on a fixed base and a floating one."""
    model = dyn.load("two_link")
    first = model.child_links[1]
    drive = lambda t: (None, (0.0, 0.0, t))  # noqa: E731
    assert model.drive("joint1", drive).child_links[1:3] == ("", first)
    free = dyn.load("two_link", root_joint="floating")
    links = free.drive(free.names[1], drive).child_links
    assert links[1:] == ("", *free.child_links[1:])


ASSEMBLIES = {
    "lock": lambda m: m.lock({"joint2": 0.4}),
    "drive": lambda m: m.drive("joint2", lambda t: (None, (0.0, 0.0, t))),
    "with_forces": lambda m: m.with_forces(lambda m, q, qd: [0.0] * m.nv),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("assembly", ASSEMBLIES)
def test_assembling_anew_loses_no_change(change, assembly):
    """A robot that was changed is refused in words; before, changes come after."""
    arm = dyn.load("arm7")
    with pytest.raises(dyn.ModelError, match="would lose; valid: lock, drive"):
        ASSEMBLIES[assembly](CHANGES[change](arm))
    CHANGES[change](ASSEMBLIES[assembly](arm))


@pytest.mark.parametrize("assembly", ASSEMBLIES)
def test_assembling_anew_keeps_the_order_of_coordinates(assembly):
    """Of joints that are left."""
    arm = dyn.load("arm7")
    other = ASSEMBLIES[assembly](arm.reorder(arm.joint_names[::-1]))
    left = [name for name in arm.joint_names[::-1] if name in other.joint_names]
    assert list(other.joint_names) == left


@pytest.mark.parametrize("assembly", ASSEMBLIES)
def test_assembling_anew_keeps_a_place_that_was_changed(assembly):
    """The placement of a joint is part of what a robot is assembled from."""
    place = {"joint5.origin": (0.0, 0.1, 0.0, 0.0, 0.0, 0.0)}
    arm = dyn.load("arm7")
    one = ASSEMBLIES[assembly](arm.with_values(place))
    other = ASSEMBLIES[assembly](arm).with_values(place)
    assert one.parameter("joint5.origin") == other.parameter("joint5.origin")


@pytest.mark.parametrize("name", robots.names())
def test_start_is_the_nearest_position_within_the_limits(shipped, name):
    """Coordinates move to the nearer limit, but for quaternions, which stay neutral."""
    model = shipped[name]
    start, neutral = model.start(), model.neutral()
    for i in model.independent:
        q, v = model.q_slices[i], model.v_slices[i]
        nearest = neutral[q]
        if model.joint[i].nq == model.joint[i].nv:
            nearest = np.maximum(np.minimum(nearest, model.upper[v]), model.lower[v])
        np.testing.assert_array_equal(start[q], nearest)
    assert list(dyn.Simulator(model, engine="graph").q) == list(start) or model.loops


def test_joints_of_several_coordinates_start_within_their_limits(shipped):
    """All coordinates but those of joints with a quaternion."""
    model = shipped["every_joint"]
    ends = {"lower": np.full(model.nv, 0.1), "upper": np.full(model.nv, 0.2)}
    start, wide = dataclasses.replace(model, **ends).start(), 0
    for i in model.independent:
        q, joint = model.q_slices[i], model.joint[i]
        moved = joint.nq == joint.nv
        np.testing.assert_array_equal(start[q], 0.1 if moved else model.neutral()[q])
        wide += moved and joint.nv > 1
    assert wide


def test_arm7_starts_within_its_limits():
    """Zero is outside the limits of an elbow; the start differs there alone."""
    model = dyn.load("arm7")
    assert list(model.neutral()) == [0.0] * 7
    assert list(model.start()) == [0.0, 0.0, 0.0, -0.0698, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("gravity", "message"),
    [
        ([0, 0, 9.81], r"gravity \(0, 0, 9\.81\) m/s² .*floor: \(0, 0, -9\.81\)"),
        ([0, 0, -981], r"gravity \(0, 0, -981\) m/s² .*cm/s² or mm/s²"),
        ([-9810.0, 0, 0], r"gravity \(-9810, 0, 0\) m/s² .*cm/s² or mm/s²"),
    ],
)
def test_a_gravity_that_few_robots_have_is_asked_about(gravity, message):
    """In the sign of other libraries, or other units; not refused: there are ceilings."""
    with pytest.warns(ModelWarning, match=message):
        model = dyn.load("two_link", gravity=gravity, check="error")
    assert model.rebuilt(gravity=(0.0, 0.0, -9.81)).warnings == ()
    assert dyn.load("two_link", gravity=gravity, root="link1").warnings == ()
    for usual in ([0, 0, -1.6], [0, 0, 0], [9.81, 0, 0], [0, 1, 9.0], [0, 0, -24.8]):
        assert dyn.load("two_link", gravity=usual).warnings == ()
