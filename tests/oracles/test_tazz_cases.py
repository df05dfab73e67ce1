"""Worked cases T1 to T6: joints with four frames, gears, reactions and responses."""

import math

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines import available
from dyn_core.model import Build, Description, JointSpec, LinkSpec, Mimic, assemble
from dyn_core.spatial import RigidInertia
from dyn_core.spatial import conventions as to
from dyn_core.testing import TOLERANCES, random_model, scaled_error

REL = TOLERANCES["reference"]
ENGINE = pytest.mark.parametrize("engine", available())
FORWARD = pytest.mark.parametrize(
    "name", dyn.solvers(dyn.problems.FORWARD_DYNAMICS, references=True)
)

J1 = ((0.02, 0.001, 0), (0.001, 0.03, 0.002), (0, 0.002, 0.025))
LINKS = (
    LinkSpec("b0", RigidInertia.of(2.0, (0.0,) * 3, np.diag((0.04, 0.05, 0.06)).tolist())),
    LinkSpec("b1", RigidInertia.of(1.2, (0.0,) * 3, J1)),
    LinkSpec("b2", RigidInertia.of(0.7, (0.0,) * 3, np.diag((0.005, 0.006, 0.004)).tolist())),
    LinkSpec("b3", RigidInertia.of(0.9, (0.0,) * 3, np.diag((0.009, 0.011, 0.007)).tolist())),
)  # fmt: skip
Z = (0.0, 0.0, 1.0)
ROOT = (0.3, 0.2, 1.0)
V0 = (0.3, -0.1, 0.2, 0.5, -0.4, 0.6)
PUSH = (1, -0.5, 0.25, 0.02, 0.03, -0.01)


def _joint(k, kind, parent, rpy, xyz, plug_rpy, plug_xyz, mimic=None):
    return JointSpec(
        f"j{k}", kind, parent, f"b{k}", xyz, rpy, Z, plug_xyz=plug_xyz, plug_rpy=plug_rpy,
        mimic=mimic,
    )  # fmt: skip


def _tree(third="ball_rpy", gear2=None, gear3=None):
    joints = (
        _joint(1, "revolute", "b0", (0.1, 0.2, -0.3), (0.2, 0.05, 0.1), (0, -0.4, 0.2),
               (-0.15, 0.02, 0.03)),
        _joint(2, "prismatic", "b1", (math.pi / 2, 0, 0.3), (0.18, -0.04, 0), (0.2, 0.1, 0),
               (0, 0.05, -0.12), gear2),
        _joint(3, third, "b0", (0, 0.5, 0), (-0.2, 0, -0.05), (0, 0, 0.7), (0.03, 0.1, 0.2),
               gear3),
    )  # fmt: skip
    return assemble(Build(Description("T4", LINKS, joints), root_joint="floating"))


def _root():
    """Return the position of the floating root: quaternion of R(0.2, -0.1, 0.4)."""
    half = [(math.sin(a / 2), math.cos(a / 2)) for a in (0.2, -0.1, 0.4)]
    (sr, cr), (sp, cp), (sy, cy) = half
    q = (
        sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy, cr * cp * cy + sr * sp * sy,
    )  # fmt: skip
    return [*ROOT, *q]


def _near(got, wanted, tol=REL):
    assert scaled_error(got, wanted) <= tol, (got, wanted)


def _on_link(model, link, six):
    """Return f_ext (nb, 6) of a wrench in tazz's order on a link."""
    frame = model.frame(link)
    f = np.zeros((model.nb, 6))
    f[frame.body - 1] = np.asarray(frame.X, float).T @ to.swap_blocks(six)
    return f


def _of_links(model, v, A, F):
    """Return classical accelerations and wrenches in link frames, tazz's order."""
    rows = []
    for k in range(4):
        frame = model.frame(f"b{k}")
        i, X = frame.body - 1, np.asarray(frame.X, float)
        a = X @ to.spatial_from_classical(A[i], v[i])
        force = np.linalg.solve(X.T, F[i])
        rows.append(
            (to.tazz_acceleration(a, X @ v[i]), to.swap_blocks(force), X @ v[i])
        )
    return rows


@pytest.fixture(scope="module")
def tree():
    """Return the tree of case T4."""
    return _tree()


Q4 = [*_root(), 0.6, 0.15, 0.3, -0.5, 0.8]
QD4 = [*to.swap_blocks(V0), -0.9, 0.4, 0.5, -0.3, 0.7]
TAU4 = [0.0] * 6 + [0.8, -1.5, 0.2, -0.1, 0.3]
A4 = (
    [-1.52224076197, -2.25819539732, -9.54520582969, -6.32403372985, 3.43731035217, -12.4663240582],
    [4.31896739513, -4.30650061182, -9.31892461211, -6.83796156148, 1.48033434422, 6.7317160846],
    [5.26207513567, -8.10138275564, 0.0723122150246, -6.2672091156, 7.27995377872, -1.41048658684],
    [1.82886435567, -5.97575678154, -6.93438188874, -0.363767002998, 13.2384726499, 36.7428012803],
)  # fmt: skip
F4 = (
    [0.917508807599, -0.259731634027, 0.180946435471, -0.450044685357, -0.215906845743, 0.675234692708],
    [0.601366483397, 1.27273687547, -1.33923881667, -0.0512370787598, 0.0138065512698, 0.00431437251625],
    [0.182102191171, 0.819361557199, -0.125490011011, -0.00618829872821, 0.148531448749, 0.258122146108],
)  # fmt: skip
V4 = (
    [0.0449803917555, -0.0196310887424, 0.420770185461, 0.408480936473, -0.321974280969, -0.0463802072565],
    [0.0804229883358, 0.282326631539, 0.491892485849, 0.334599858582, -0.130547384527, 0.379045580007],
    [0.301206022556, 0.068515141798, 0.215688572276, 0.959474663107, 0.480751176539, 1.51554267751],
)  # fmt: skip
QDD4 = [22.388666511, -2.33871423585, -15.7518036301, -3.86395067747, 58.6147244409]


@ENGINE
def test_t4_motion_and_reactions(tree, engine):
    """Accelerations, joint wrenches, articulated inertia and bias of the root."""
    program = dyn.solver("articulated_bodies").build(
        tree, engine=engine, inputs=["f_ext"]
    )
    got = program(Q4, QD4, TAU4, _on_link(tree, "b2", PUSH))
    _near(got.qdd[6:], QDD4)
    v, _ = dyn.solver("body_motion").build(tree, engine=engine)(Q4, QD4, got.qdd)
    rows = _of_links(tree, v, got.A, got.F)
    for k, (A, F, V) in enumerate(rows):
        _near(A, A4[k])
        if k:
            _near(F, F4[k - 1])
            _near(to.swap_blocks(V), V4[k - 1])
    inertia = to.swap_matrix(got.Ihat[0])
    _near(np.diag(inertia), [3.63168457172, 3.0748335497, 4.61773496048, 0.110028636194,
                             0.44675940553, 0.11457401898])  # fmt: skip
    _near(to.swap_blocks(got.Zhat[0]), [6.78501232404, 6.50862000123, 45.0431717378,
          -0.667874017064, -6.20437918048, 1.0203020317])  # fmt: skip


@FORWARD
@ENGINE
def test_t4_accelerations_by_all_solvers(tree, engine, name):
    """Each solver of forward dynamics gives T4's qdd."""
    program = dyn.solver(name).build(tree, engine=engine, inputs=["f_ext"])
    qdd = program(Q4, QD4, TAU4, _on_link(tree, "b2", PUSH))
    _near(qdd[6:], QDD4)
    w, v = np.array(V0[3:]), np.array(V0[:3])
    _near(qdd[3:6] + np.cross(w, v), A4[0][:3])
    _near(qdd[:3], A4[0][3:])


def test_t4_velocity_products(tree):
    """C_hat of each body, moved from the plug to the link's own frame."""
    from dyn_core.model.coordinates import split_q, split_v
    from dyn_core.spatial import Vector
    from dyn_plugins.dynamics.articulated_bodies import velocity_products

    parts = (
        split_q(tree, Vector(map(float, Q4))),
        split_v(tree, Vector(map(float, QD4))),
    )
    V, C = velocity_products(tree, *parts)
    wanted = {
        1: [-0.107484101731, -0.0720561279521, -0.0836727132373, 0.270131560504,
            0.322681119786, 0.139037138077],
        2: [-0.0236780279555, -0.231109814341, -0.0586950967609, 0, 0, 0],
        3: [-0.308840457702, 0.102768377224, 0.148379568372, -0.42675709441,
            0.777311976165, 0.0559546560198],
    }  # fmt: skip
    # From plug to link, of child and parent: k moves with the point looked at.
    for k, numbers in wanted.items():
        child, parent = tree.frame(f"b{k}"), tree.frame("b1" if k == 2 else "b0")
        i, p = child.body, parent.body
        X_c, X_p = (np.asarray(f.X, float) for f in (child, parent))
        v_c, v_p = (np.array(list(V[b]), float) for b in (i, p))
        Xi = np.asarray(tree.joint[i].X(parts[0][i]) @ tree.Xtree[i], float)

        def k_of(v):
            return np.concatenate([np.zeros(3), np.cross(v[:3], v[3:])])

        spatial = np.array(list(C[i]), float) - k_of(v_c) + Xi @ k_of(v_p)
        X_cp = X_c @ Xi @ np.linalg.inv(X_p)
        got = X_c @ spatial + k_of(X_c @ v_c) - X_cp @ k_of(X_p @ v_p)
        _near(to.swap_blocks(got), numbers)


@pytest.mark.parametrize("seed", range(6))
def test_velocity_products_are_those_of_spatial_accelerations(seed):
    """C_hat = c + k_c - X k_p with c = v x vJ + cJ and k = (0; w x v)."""
    from dyn_core.model.coordinates import split_q, split_v
    from dyn_core.spatial import Vector, cross
    from dyn_plugins.dynamics.articulated_bodies import velocity_products

    model, rng = random_model(seed, size=6), np.random.default_rng(seed)
    q = split_q(model, Vector(model.random(rng).tolist()))
    qd = split_v(model, Vector(rng.normal(size=model.nv).tolist()))
    V, C = velocity_products(model, q, qd)
    for i in model.bodies:
        joint, p = model.joint[i], model.parent[i]
        X = joint.X(q[i]) @ model.Xtree[i]
        c = cross(V[i], joint.vJ(q[i], qd[i])) + joint.cJ(q[i], qd[i])
        v_i, v_p = (np.array(list(V[k]), float) for k in (i, p))
        wanted = to.tazz_velocity_product(
            np.array(list(c), float), v_i, np.asarray(X, float), v_p
        )
        _near(to.swap_blocks(np.array(list(C[i]), float)), wanted, 1e-12)


@ENGINE
def test_t4_responses(tree, engine):
    """Self and cross compliance, and the virtual-force test."""

    def omega(moved, pushed):
        program = dyn.solver("cross_response").build(
            tree, engine=engine, moved=moved, pushed=pushed
        )
        return to.swap_matrix(program(Q4))

    traces = [np.trace(omega(f"b{k}", f"b{k}")) for k in range(4)]
    _near(traces, [24.8083479187, 21.8481093258, 24.1348009692, 186.037819381])
    cross = omega("b2", "b3")
    _near(cross[0], [0.0055717422611, 0.0179370476321, 0.0140506315663, -0.218234636978,
                     0.0566860504279, -0.00245093106184])  # fmt: skip
    _near(np.linalg.norm(cross), 4.29544699531)
    fd = dyn.solver("aba").build(tree, engine=engine, inputs=["f_ext"])
    unit = _on_link(tree, "b3", (0, 0, 0, 0, 0, 1))
    push = _on_link(tree, "b2", PUSH)
    dqdd = fd(Q4, QD4, TAU4, push + unit) - fd(Q4, QD4, TAU4, push)
    J = dyn.solver("jacobian").build(tree, frame="b2")(Q4)
    wanted = [-0.00245093106184, -0.301501909446, -0.0611784151988, -0.614297347217,
              1.48469463200, -1.05135909535]  # fmt: skip
    _near(to.swap_blocks(J @ dqdd), wanted)
    _near(cross[:, 5], wanted)


@FORWARD
@ENGINE
def test_t5_series_gear(engine, name):
    """A gear between parent and child, and the force it takes."""
    model = _tree(gear2=Mimic("j1", -0.5, 0.45))
    assert [c.kind for c in model.clusters] == ["single", "series", "single"]
    q, qd = [*Q4[:8], *Q4[9:]], [*QD4[:7], *QD4[8:]]
    tau = [0.0] * 6 + [0.8 + 0.5 * 1.5, 0.2, -0.1, 0.3]
    program = dyn.solver(name).build(model, engine=engine, inputs=["f_ext"])
    qdd = program(q, qd, tau, _on_link(model, "b2", PUSH))
    _near(qdd[6], 9.78894139325)
    _near(qdd[7:], [-7.31617833273, -4.86959086229, 48.9304517759])
    A0 = [-0.815912272572, -2.39808678663, -9.75749952618, -4.94512299983, 2.16797419058,
          -6.90742297097]  # fmt: skip
    _near(qdd[3:6] + np.cross(V0[3:], V0[:3]), A0[:3])
    _near(qdd[:3], A0[3:])
    free = _tree()
    H = dyn.solver("crba").build(free)(Q4)
    full = [*QD4[:7], 0.45, *QD4[8:]]
    C = dyn.solver("bias").build(free, inputs=["f_ext"])(
        Q4, full, _on_link(free, "b2", PUSH)
    )
    G = np.zeros(11)
    G[6:8] = -0.5, -1
    all_qdd = np.insert(qdd, 7, -0.5 * qdd[6])
    left = H @ all_qdd + C - np.array(TAU4)
    _near(left, 1.15406974088 * G)
    omega = dyn.solver("cross_response").build(
        model, engine=engine, moved="b1", pushed="b2"
    )
    matrix = to.swap_matrix(omega(q))
    _near(np.trace(matrix), 10.6618093123)
    _near(matrix[0], [0.174424462479, -0.0534213608161, 0.00301909520015, -0.334988433743,
                      -0.175219754591, -0.507470334274])  # fmt: skip


@FORWARD
@ENGINE
def test_t6_parallel_coupling(engine, name):
    """Two joints on one body share a coordinate."""
    model = _tree("revolute", gear3=Mimic("j1", 2.0, -0.3))
    assert [c.kind for c in model.clusters] == ["single", "parallel", "single"]
    q, qd = [*Q4[:9]], [*QD4[:8]]
    tau = [0.0] * 6 + [0.8 + 2 * 0.25, -1.5]
    program = dyn.solver(name).build(model, engine=engine, inputs=["f_ext"])
    qdd = program(q, qd, tau, _on_link(model, "b2", PUSH))
    _near(qdd[6:], [21.1899799169, -2.19316305165])
    A0 = [-1.6808056171, -2.4349494884, -9.32123510011, -6.90945974408, 4.23569357934,
          -11.0170161776]  # fmt: skip
    _near(qdd[3:6] + np.cross(V0[3:], V0[:3]), A0[:3])
    _near(qdd[:3], A0[3:])


def _rpy(columns):
    """Return roll, pitch, yaw of the rotation with these columns."""
    R = np.array(columns, float).T
    if R[2, 0] == -1:
        return math.atan2(R[0, 1], R[0, 2]), math.pi / 2, 0.0
    return (
        math.atan2(R[2, 1], R[2, 2]),
        -math.asin(R[2, 0]),
        math.atan2(R[1, 0], R[0, 0]),
    )


def _rod(m, L):
    return RigidInertia.of(
        m, (0.0,) * 3, np.diag((1e-3, m * L**2 / 12, m * L**2 / 12)).tolist()
    )


HANGING = _rpy(((0, 0, -1), (-1, 0, 0), (0, 1, 0)))


@pytest.fixture(scope="module")
def rod():
    """Return the rod pendulum of case T1."""
    joint = JointSpec(
        "j", "revolute", "base", "rod", rpy=HANGING, axis=Z, plug_xyz=(-0.4, 0.0, 0.0)
    )
    links = (LinkSpec("base", RigidInertia.zero()), LinkSpec("rod", _rod(1.5, 0.8)))
    return assemble(Build(Description("T1", links, (joint,))))


@ENGINE
def test_t1_rod_pendulum(rod, engine):
    """Acceleration, C_hat, and the reaction at the rod's centre."""
    program = dyn.solver("articulated_bodies").build(rod, engine=engine)
    got = program([0.5], [1.3], [0.4])
    _near(got.qdd, [-7.5684335007])
    X = np.asarray(rod.frame("rod").X, float)
    v = np.array([0, 0, 1.3, 0, 0, 0])
    A = to.tazz_acceleration(X @ to.spatial_from_classical(got.A[0], v), X @ v)
    _near(A, [-0.676, -3.02737340028, 0, 0, 0, -7.5684335007])
    F = dyn.solver("joint_reactions").build(rod, engine=engine, coordinates="link")
    f = F([0.5], [1.3], got.qdd).f[0]
    _near(to.swap_blocks(f), [-13.9276273982, 2.51368670014, 0, 0, 0, -0.605474680056])


def test_t1_period_of_large_swings(rod):
    """The simulated period meets 4 sqrt(2L/3g) K(sin 0.6) at the order of RK4."""
    period, errors = 1.60890403904, []
    for n in (200, 400):
        step = dyn.solver("rk4").build(rod)
        q, qd, dt = np.array([1.2]), np.zeros(1), period / n
        for _ in range(n):
            q, qd = step(q, qd, np.zeros(1), dt)
        # Near the turning point q is flat and qd linear in time: qd / qdd is the lag.
        qdd = dyn.solver("aba").build(rod)(q, qd, np.zeros(1))
        errors.append(abs(float((qd / qdd)[0])))
    assert errors[1] < 2e-8
    assert 12 < errors[0] / errors[1] < 22


@ENGINE
def test_t2_cart_and_pole(engine):
    """Closed form, and the compliances of cart and pole."""
    side = _rpy(((0, 0, -1), (0, 1, 0), (1, 0, 0)))
    cart = RigidInertia.of(2.0, (0.0,) * 3, np.diag((0.1, 0.1, 0.1)).tolist())
    links = (LinkSpec("base", RigidInertia.zero()), LinkSpec("cart", cart),
             LinkSpec("pole", _rod(0.5, 1.0)))  # fmt: skip
    joints = (
        JointSpec("rail", "prismatic", "base", "cart", rpy=side, axis=Z, plug_rpy=side),
        JointSpec(
            "pin",
            "revolute",
            "cart",
            "pole",
            rpy=HANGING,
            axis=Z,
            plug_xyz=(-0.5, 0, 0),
        ),
    )
    model = assemble(Build(Description("T2", links, joints)))
    for name in dyn.solvers(dyn.problems.FORWARD_DYNAMICS, references=True):
        program = dyn.solver(name).build(model, engine=engine)
        _near(
            program((0.2, 0.7), (0.3, -1.1), (1.2, -0.3)),
            [-0.504977065826, -11.859004913],
        )

    def omega(link):
        program = dyn.solver("cross_response").build(
            model, engine=engine, moved=link, pushed=link
        )
        return to.swap_matrix(program((0.2, 0.7)))

    _near(omega("cart")[0, 0], 0.438475110412)
    pole = omega("pole")
    _near(np.diag(pole), [0.181974374331, 1.51603129601, 0, 0, 0, 6.57712665618])
    assert np.linalg.matrix_rank(pole, tol=1e-9) == 2


def test_reactions_hold_the_weight(rod):
    """At rest the base reaction is the weight."""
    f = (
        dyn.solver("joint_reactions")
        .build(rod, coordinates="world")([0.3], [0.0], [0.0])
        .f[0]
    )
    _near(f[3:], [0, 0, 1.5 * 9.81])


def test_the_root_pose_is_meant(tree):
    """The quaternion of the root is that of R(0.2, -0.1, 0.4)."""
    R = to.rotation(np.array(_root()[3:]))
    _near(_rpy(R.T), [0.2, -0.1, 0.4])
