"""Newton-Euler in its forms: 3-D vectors, closed form, parts, and the flow of data."""

import numpy as np
import pytest
from dataflow import Dependence, dataflow, passes

import dyn_core as dyn
from dyn_core.authoring import Force, Motion, Vector, cross, cross3
from dyn_core.model import Build, Description, JointSpec, LinkSpec, Mimic, assemble
from dyn_core.model.coordinates import split_q, split_v
from dyn_core.spatial import RigidInertia
from dyn_core.testing import TOLERANCES, scaled_error
from dyn_core.testing.case import derivative
from dyn_core.testing.models import chain, random_inertia, random_model
from dyn_plugins.dynamics.rnea import rnea_spatial
from dyn_plugins.references import closed_form as closed
from dyn_plugins.references import rnea_vectors as vectors

EXACT = TOLERANCES["exact"]
ONE = ("revolute", "continuous", "prismatic")


def _near(got, wanted, relative=EXACT):
    assert scaled_error(got, wanted) <= relative, (got, wanted)


def _tree(seed, size=6, **changes):
    return random_model(seed, size=size, **{"kinds": ONE, "mimic": 0.0, **changes})


def _drawn(model, seed):
    rng = np.random.default_rng(seed)
    return model.random(rng), *rng.normal(size=(2, model.nv))


def _split(model, q, *rates):
    parts = [split_v(model, Vector(np.asarray(x).tolist())) for x in rates]
    return [split_q(model, Vector(np.asarray(q).tolist())), *parts]


# -- the 3-D vector form (RBD5-4.1 to 4.3) ------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_vectors_and_spatial_quantities_correspond(seed):
    """v = [w; v], a = [alpha; a - w x v], f_B = [N + c x F; F], f = [n; f]."""
    model = _tree(seed)
    q, qd, qdd = _split(model, *_drawn(model, seed))
    f_ext = [
        Force.of(row)
        for row in np.random.default_rng(seed).normal(size=(model.nb + 1, 6))
    ]
    motion = vectors.vector_motion(model, q, qd, qdd)
    linear = vectors.linear_velocities(model, motion, qd)
    f3, n3 = vectors.vector_forces(model, motion, f_ext)
    v, a, f, X = [Motion.zero()], [-model.a_grav], [Force.zero()], [None]
    for i in model.bodies:
        p, joint, I = model.parent[i], model.joint[i], model.I[i]
        X.append(joint.X(q[i]) @ model.Xtree[i])
        vJ = joint.vJ(q[i], qd[i])
        v.append(X[i] @ v[p] + vJ)
        a.append(X[i] @ a[p] + joint.S(q[i]) @ qdd[i] + cross(v[i], vJ))
        f.append(I @ a[i] + cross(v[i], I @ v[i]))
        moment = motion.N[i] + cross3(motion.c[i], motion.F[i])
        _near(list(f[i]), [*moment, *motion.F[i]])
        f[i] = f[i] - f_ext[i]
        _near(list(v[i]), [*motion.w[i], *linear[i]])
        lin = motion.a[i] - cross3(motion.w[i], linear[i])
        _near(list(a[i]), [*motion.alpha[i], *lin])
    for i in reversed(model.bodies):
        _near(list(f[i]), [*n3[i], *f3[i]])
        if model.parent[i]:
            f[model.parent[i]] = f[model.parent[i]] + X[i].T @ f[i]


def test_classical_and_spatial_accelerations_are_what_they_are_said_to_be():
    """a is the second derivative of the origin's position, the spatial one that of [w; v]."""
    model = _tree(5).rebuilt(gravity=(0.0, 0.0, 0.0))
    q, qd, qdd = _drawn(model, 5)
    poses = dyn.solver("forward_kinematics").build(
        model, engine="plain", frames=[f"b{i}" for i in range(1, model.nb + 1)]
    )
    bodies = [model.body_of(f"b{i}") for i in range(1, model.nb + 1)]

    def moved(t):
        return poses(q + qd * t + qdd * (t * t / 2))

    def twists(t):
        parts = _split(model, q + qd * t + qdd * (t * t / 2), qd + qdd * t, qdd)
        motion = vectors.vector_motion(model, *parts)
        linear = vectors.linear_velocities(model, motion, parts[1])
        return np.array([[*motion.w[i], *linear[i]] for i in bodies])

    second = derivative(lambda t: derivative(lambda u: moved(t + u))[:, :3, 3])
    R = moved(0.0)[:, :3, :3]
    motion = vectors.vector_motion(model, *_split(model, q, qd, qdd))
    _near([list(motion.a[i]) for i in bodies], np.einsum("kji,kj->ki", R, second), 1e-8)
    linear = twists(0.0)[:, 3:]
    spatial = [
        [*motion.alpha[i], *(motion.a[i] - cross3(motion.w[i], Vector(v.tolist())))]
        for i, v in zip(bodies, linear, strict=True)
    ]
    _near(derivative(twists), spatial, 1e-9)
    assert (
        scaled_error([list(motion.a[i]) for i in bodies], np.array(spatial)[:, 3:])
        > 0.01
    )


@pytest.mark.parametrize("name", ["rnea_vectors", "closed_form"])
def test_parameters_may_be_inputs(name):
    """Masses, gravity and rotors per call: also a body without mass."""
    model = _tree(1, branching=0.0, massless=0.0)
    q, qd, qdd = _drawn(model, 1)
    link = model.frame_names[-1]
    inputs = [f"{link}.payload", "gravity"]
    for payload in (
        np.zeros(10),
        np.array([2.0, 0.2, -0.1, 0.4, 0.5, 0, 0.5, 0, 0, 0.6]),
    ):
        parameters = {inputs[0]: payload, "gravity": np.array([1.0, -2.0, 3.0])}
        answers = [
            dyn.solver(n).build(model, engine="graph", inputs=inputs)(
                q, qd, qdd, **parameters
            )
            for n in (name, "rnea_spatial")
        ]
        _near(*answers)
    light = assemble(
        Build(_line([RigidInertia.zero(), random_inertia(np.random.default_rng(0))]))
    )
    q, qd, qdd = _drawn(light, 2)
    answers = [dyn.solver(n).build(light)(q, qd, qdd) for n in (name, "rnea_spatial")]
    _near(*answers)


def _line(inertias, mimic=None):
    """Describe a chain of revolute joints; the last may follow the first."""
    links = [LinkSpec("b0", RigidInertia.zero())]
    joints = []
    for k, inertia in enumerate(inertias, 1):
        place = (0.3, -0.1, 0.2), (0.4, -0.8, 1.1)
        rule = mimic if k == len(inertias) else None
        joints.append(
            JointSpec(
                f"j{k}",
                "revolute",
                f"b{k - 1}",
                f"b{k}",
                *place,
                (0.6, 0.0, 0.8),
                mimic=rule,
            )
        )
        links.append(LinkSpec(f"b{k}", inertia))
    return Description("line", tuple(links), tuple(joints))


@pytest.mark.parametrize("name", ["rnea_vectors", "closed_form"])
def test_followers_are_served(name):
    """A joint that follows another has no coordinate of its own and is served."""
    rng = np.random.default_rng(0)
    inertias = [random_inertia(rng) for _ in range(3)]
    model = assemble(Build(_line(inertias, Mimic("j1", -0.7, 0.2))))
    assert model.coupled
    assert model.nv == 2
    q, qd, qdd = _drawn(model, 3)
    f_ext = rng.normal(size=(3, 6))
    answers = [
        dyn.solver(n).build(model, engine="plain", inputs=["f_ext"])(q, qd, qdd, f_ext)
        for n in (name, "rnea_spatial")
    ]
    _near(*answers)


# -- what is refused ---------------------------------------------------------------------


def test_vectors_refuse_joints_by_name_and_kind():
    """The 3-D form has a case for each kind of joint."""
    message = (
        "rnea_vectors: joint '.*' is floating.*valid: revolute, continuous, prismatic"
    )
    model = dyn.load_urdf(dyn.robots.path("quadruped"), root_joint="floating")
    with pytest.raises(dyn.UnsupportedError, match=message):
        dyn.solver("rnea_vectors").build(model)
    with pytest.raises(dyn.UnsupportedError, match="joint '.*' is spherical"):
        dyn.solver("rnea_vectors").build(random_model(0, size=2, kinds=("spherical",)))


def test_the_closed_form_refuses_branches_and_joints():
    """One freedom a joint, each joint on the body before it."""
    solver = dyn.solver("closed_form")
    model = dyn.load_urdf(dyn.robots.path("quadruped"))
    message = "closed_form: joint '.*' starts a branch; valid: unbranched chains"
    with pytest.raises(dyn.UnsupportedError, match=message):
        solver.build(model)
    with pytest.raises(
        dyn.UnsupportedError, match="joint '.*' is planar; valid: chains"
    ):
        solver.build(random_model(0, size=2, kinds=("planar",)))
    assert solver.refusal(chain(3)) is None


def test_a_slot_refuses_too(shipped):
    """A solver that stands in another's slot refuses the robot when that is built."""
    law = dyn.solver("computed_torque")
    model = shipped["quadruped"]
    with pytest.raises(dyn.UnsupportedError, match="rnea_vectors: joint"):
        law.build(model, inverse_dynamics="rnea_vectors")
    served = law.build(shipped["arm7"], inverse_dynamics="rnea_vectors", engine="plain")
    usual = law.build(shipped["arm7"], engine="plain")
    x = np.random.default_rng(0).normal(size=(7, 7))
    _near(served(*x), usual(*x))


@pytest.mark.parametrize("name", ["rnea", "rnea_vectors", "closed_form"])
def test_wrong_sizes_are_refused(shipped, name):
    """q, qd, qdd have nq, nv, nv numbers."""
    program = dyn.solver(name).build(shipped["arm7"], engine="plain")
    for k in range(3):
        inputs = [np.zeros(7)] * 3
        inputs[k] = np.zeros(6)
        with pytest.raises(dyn.ShapeError, match=("q", "qd", "qdd")[k]):
            program(*inputs)


# -- the closed form (RBD5-2.4) ----------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_closed_form_entries_are_H_C_and_g(seed):
    """H like crba, sum C qd qd like coriolis, g like gravity; C symmetrised the same."""
    model = _tree(seed, size=4, branching=0.0)
    n, bodies = model.nb, model.bodies
    q, qd, _ = _drawn(model, seed)
    _, s, I = closed.common_frame(model, _split(model, q)[0])
    H = np.array([[closed.inertia_entry(s, I, i, j) for j in bodies] for i in bodies])
    rotors = np.diag([model.armature[i][0] for i in bodies])
    _near(H + rotors, dyn.solver("crba").build(model)(q))
    g = [closed.gravity_entry(s, I, model.a_grav, i) for i in bodies]
    _near(g, dyn.solver("gravity").build(model)(q))
    C = np.zeros((n, n, n))
    for i in bodies:
        for j in bodies:
            for k in bodies:
                C[i - 1, j - 1, k - 1] = closed.coriolis_entry(s, I, i, j, k)
    c = dyn.solver("coriolis").build(model)(q, qd)
    _near(np.einsum("ijk,j,k->i", C, qd, qd), c)
    symmetric = (C + C.transpose(0, 2, 1)) / 2
    _near(np.einsum("ijk,j,k->i", symmetric, qd, qd), c)
    assert not np.allclose(C, symmetric)


def test_the_closed_form_of_an_arm_stays_compilable(shipped):
    """Equal terms are shared by tracing: the arm's Graph stays below 30000 nodes."""
    program = dyn.solver("closed_form").build(shipped["arm7"], engine="graph")
    assert len(program.graph.nodes) < 30000
    q, qd, qdd = _drawn(shipped["arm7"], 0)
    _near(program(q, qd, qdd), dyn.solver("rnea").build(shipped["arm7"])(q, qd, qdd))


# -- parts (RBD5-3.6) and gravity (RBD5-3.5) ---------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_parts_and_external_forces_make_the_whole(seed):
    """ID = inertial + coriolis + gravity - sum_i J_i.T f_ext_i, by Jacobians."""
    model = random_model(seed, size=5)
    q, qd, qdd = _drawn(model, seed)
    f_ext = np.random.default_rng(seed).normal(size=(model.nb, 6))

    def solve(name, *args, **choices):
        return dyn.solver(name).build(model, engine="plain", **choices)(*args)

    total = solve("inertial", q, qdd) + solve("coriolis", q, qd) + solve("gravity", q)
    for name, frame in model.frames.items():
        if frame.body and np.allclose(np.asarray(frame.X), np.eye(6)):
            total = total - solve("jacobian", q, frame=name).T @ f_ext[frame.body - 1]
    _near(solve("rnea", q, qd, qdd, f_ext, inputs=["f_ext"]), total)


def test_a_heavy_pendulum_hangs_still():
    """tau = m g c cos q holds it; with tau = g(q) it does not accelerate."""
    m, c = 1.3, 0.4
    link = RigidInertia.of(m, (c, 0.0, 0.0), (0.01, 0.0, 0.0, 0.05, 0.0, 0.05))
    joint = JointSpec(
        "j", "revolute", "b0", "b1", (0.0,) * 3, (0.0,) * 3, (0.0, 0.0, 1.0)
    )
    links = (LinkSpec("b0", RigidInertia.zero()), LinkSpec("b1", link))
    model = assemble(
        Build(Description("p", links, (joint,)), gravity=(0.0, -9.81, 0.0))
    )
    for q in (0.0, 0.6, -1.5, 3.0):
        torque = dyn.solver("gravity").build(model)([q])
        _near(torque, [m * 9.81 * c * np.cos(q)])
        _near(dyn.solver("aba").build(model)([q], [0.0], torque), [0.0])
        _near(dyn.solver("coriolis").build(model)([q], [2.0]), [0.0])


STILL = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("name", "choice", "message"),
    [
        (
            "body_motion",
            {"acceleration": "own"},
            "acceleration is 'own'; valid: spatial",
        ),
        ("body_motion", {"gravity": "off"}, "gravity is 'off'; valid: true, offset"),
        ("joint_reactions", {"part": "half"}, "part is 'half'; valid: whole, active"),
    ],
)
def test_choices_without_a_meaning_are_refused(shipped, name, choice, message):
    with pytest.raises(dyn.UnsupportedError, match=message):
        dyn.solver(name).build(shipped["two_link"], engine="plain", **choice)(*STILL)


@pytest.mark.parametrize(
    "gravity", [(0.0, 0.0, 0.0), (0.0, 0.0, -9.81), (3.0, -5.0, 2.0)]
)
def test_gravity_by_offset_or_by_forces_gives_the_same_joint_forces(gravity):
    """a_0 = -a_g, or f_ext = I a_g with a_0 = 0: the same f, n and tau."""
    model = _tree(2).rebuilt(gravity=gravity)
    weightless = model.rebuilt(gravity=(0.0, 0.0, 0.0))
    q, qd, qdd = _split(model, *_drawn(model, 2))
    free = [Force.zero()] * (model.nb + 1)
    a_g, weight = [model.a_grav], [Force.zero()]
    for i in model.bodies:
        X = model.joint[i].X(q[i]) @ model.Xtree[i]
        a_g.append(X @ a_g[model.parent[i]])
        weight.append(model.I[i] @ a_g[i])
    by_offset = vectors.vector_forces(
        model, vectors.vector_motion(model, q, qd, qdd), free
    )
    motion = vectors.vector_motion(weightless, q, qd, qdd)
    by_force = vectors.vector_forces(weightless, motion, weight)
    for left, right in zip(by_offset, by_force, strict=True):
        _near([list(x) for x in left[1:]], [list(x) for x in right[1:]])
    _near(
        [list(x) for x in rnea_spatial(model, q, qd, qdd, free)[1:]],
        [list(x) for x in rnea_spatial(weightless, q, qd, qdd, weight)[1:]],
    )


# -- the flow of data (RBD5-3.7) ---------------------------------------------------------


def _path(model, i):
    """Return a body and its ancestors."""
    bodies = set()
    while i:
        bodies.add(i)
        i = model.parent[i]
    return bodies


def _branched():
    model = _tree(0, size=7)
    assert len(set(model.parent)) < model.nb
    return model


def test_two_passes():
    """Velocities, accelerations and body forces outwards, joint forces inwards."""
    flow = dataflow(rnea_spatial, _branched(), dyn.problems.INVERSE_DYNAMICS)
    table = {number: set(names) for number, names in passes(flow).items()}
    assert table == {1: {"S", "X", "v", "a", "f"}, 2: {"tau", "f"}}


def test_pass_one_never_reads_a_child_and_pass_two_no_motion():
    """Each quantity is made of what the equations say, and of nothing else."""
    model = _branched()
    flow = dataflow(rnea_spatial, model, dyn.problems.INVERSE_DYNAMICS)
    allowed = {"X": {"q"}, "S": set(), "v": {"X", "v", "qd"}, "a": {"X", "a", "v", "qd", "qdd"},
               "f": {"a", "v", "f_ext"}}  # fmt: skip
    for one in flow:
        i, p = one.body, model.parent[one.body]
        names = {name for name, _ in one.reads}
        if one.number == 1:
            assert one.read_bodies() <= {i, p}, one
            assert names <= allowed[one.name], one
            if one.name == "f":
                assert one.read_bodies() <= {i}
        elif one.name == "tau":
            assert one.reads <= {("f", i), ("qdd", i)}, one
            assert ("f", i) in one.reads
        else:
            children = {k for k in model.bodies if model.parent[k] == i}
            assert names <= {"f", "X"}, one
            assert one.read_bodies() <= {i, *children}, one
            assert one.read_bodies() & children


def test_what_joint_forces_and_velocities_depend_on():
    """tau_i: joints of ancestors, itself and descendants; v_i: ancestors and itself."""
    model = _branched()
    flow = dataflow(rnea_spatial, model, dyn.problems.INVERSE_DYNAMICS)
    for one in flow:
        joints = {body for name, body in one.inputs if name in ("q", "qd", "qdd")}
        above = _path(model, one.body)
        below = {k for k in model.bodies if one.body in _path(model, k)}
        if one.name == "tau":
            assert joints == above | below, one
            pushed = {body for name, body in one.inputs if name == "f_ext"}
            assert pushed == below, one
        if one.name == "v":
            assert {name for name, _ in one.inputs} <= {"q", "qd"}
            assert joints == above, one


def test_a_text_that_reads_a_child_is_noticed():
    """The tests can fail: an outward pass that looks outwards shows."""

    def wrong(model, q, qd, qdd, f_ext):
        v = [None] * (model.nb + 1)
        for i in model.bodies:
            v[i] = qd[i] + qd[min(i + 1, model.nb)]
        return v

    flow = dataflow(wrong, chain(3), dyn.problems.INVERSE_DYNAMICS)
    assert [sorted(one.read_bodies()) for one in flow] == [[1, 2], [2, 3], [3]]
    coupled = random_model(3, size=6, kinds=ONE, mimic=1.0)
    with pytest.raises(dyn.UnsupportedError, match="followers"):
        dataflow(wrong, coupled, dyn.problems.INVERSE_DYNAMICS)


def test_a_dependence_joins_what_it_is_made_of():
    """Sums and products join; a structural zero forgets."""
    a, b = Dependence.input("q", 1, 2.0), Dependence.input("qd", 2, 3.0)
    both = a * b + 1.0
    assert (both.value, both.inputs) == (7.0, {("q", 1), ("qd", 2)})
    assert a * 0.0 == 0.0
    assert a < b
    b.item = ("v", 2)
    assert (a + b).reads == {("q", 1), ("v", 2)}
    assert (a + b).inputs == both.inputs


def test_children_may_also_be_asked_for_their_forces():
    """(5.20) over the children of each body gives the numbers of the two-pass text."""

    def by_children(model, q, qd, qdd, f_ext):
        v, a, f, X, tau = [Motion.zero()], [-model.a_grav], [None], [None], [None]
        for i in model.bodies:
            p, joint, I = model.parent[i], model.joint[i], model.I[i]
            X.append(joint.X(q[i]) @ model.Xtree[i])
            vJ = joint.vJ(q[i], qd[i])
            v.append(X[i] @ v[p] + vJ)
            rest = joint.cJ(q[i], qd[i]) + cross(v[i], vJ)
            a.append(X[i] @ a[p] + joint.S(q[i]) @ qdd[i] + rest)
            f.append(I @ a[i] + cross(v[i], I @ v[i]) - f_ext[i])
            tau.append(None)
        for i in reversed(model.bodies):
            for k in model.bodies:
                if model.parent[k] == i:
                    f[i] = f[i] + X[k].T @ f[k]
            tau[i] = model.joint[i].S(q[i]).T @ f[i] + model.armature[i] * qdd[i]
        return tau

    mine = dyn.authoring.TracedSolver(
        "by_children", dyn.problems.INVERSE_DYNAMICS, by_children
    )
    for seed in range(3):
        model = random_model(seed, size=6)
        inputs = _drawn(model, seed)
        answers = [
            solver.build(model, engine="plain")(*inputs)
            for solver in (mine, dyn.solver("rnea_spatial"))
        ]
        _near(*answers, 1e-14)
