"""Published worked cases with independent values: A, B, D, G of the sources."""

import math
from dataclasses import replace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.authoring import Force, Vector, cross3
from dyn_core.engines import available
from dyn_core.model import Build, Description, JointSpec, LinkSpec, assemble
from dyn_core.spatial import RigidInertia
from dyn_core.spatial.conventions import quaternion
from dyn_core.testing import TOLERANCES, scaled_error
from dyn_plugins.references import rnea_vectors as vectors

R_A = np.array([[2, -1, 2], [2, 2, -1], [-1, 2, 2]]) / 3
R_B = np.array([[0.6, 0, 0.8], [0, 1, 0], [-0.8, 0, 0.6]])
R_C = np.array([[1, 0, 0], [0, 5 / 13, -12 / 13], [0, 12 / 13, 5 / 13]])
REL = TOLERANCES["reference"]


def _rpy(R):
    """Return roll, pitch, yaw of R = Rz Ry Rx."""
    pitch = -math.asin(R[2, 0])
    return math.atan2(R[2, 1], R[2, 2]), pitch, math.atan2(R[1, 0], R[0, 0])


def _inertia(m, c, six):
    """Make one from mass, centre and xx yy zz xy xz yz."""
    xx, yy, zz, xy, xz, yz = six
    return RigidInertia.of(m, c, (xx, xy, xz, yy, yz, zz))


def _model(rows, gravity):
    """Make a chain of (kind, R_fix, p, axis, m, c, I)."""
    links = [LinkSpec("b0", RigidInertia.zero())]
    joints = []
    for k, (kind, R, p, axis, m, c, six) in enumerate(rows, 1):
        joints.append(JointSpec(f"j{k}", kind, f"b{k - 1}", f"b{k}", p, _rpy(R), axis))
        links.append(LinkSpec(f"b{k}", _inertia(m, c, six)))
    description = Description("case", tuple(links), tuple(joints))
    return assemble(Build(description, gravity=gravity))


def _near(got, wanted, relative=REL):
    assert scaled_error(got, wanted) <= relative, (got, wanted)


def _solve(name, model, *args, **choices):
    return dyn.solver(name).build(model, **choices)(*args)


Z = (0.0, 0.0, 1.0)
ENGINE = pytest.mark.parametrize("engine", available())


@pytest.fixture(scope="module")
def case_a():
    """Return the planar double pendulum."""
    rows = [
        ("revolute", np.eye(3), (0.0,) * 3, Z, 1.7, (0.35, 0, 0), (0.09, 0.09, 0.09, 0, 0, 0)),
        ("revolute", np.eye(3), (0.8, 0.0, 0.0), Z, 1.1, (0.45, 0, 0),
         (0.075, 0.075, 0.075, 0, 0, 0)),
    ]  # fmt: skip
    return _model(rows, (0.0, -9.81, 0.0))


@ENGINE
def test_case_a(case_a, engine):
    """Planar double pendulum: M, b, gravity, energies, ID, FD."""
    q, qd, qdd, tau = (0.4, -0.9), (1.3, -0.7), (0.6, 2.1), (3, -1.2)

    def solve(name, *args):
        return _solve(name, case_a, *args, engine=engine)

    M = [[1.79231509487037, 0.543907547435183], [0.543907547435183, 0.29775]]
    _near(solve("crba", q), M)
    _near(solve("bias", q, qd), [17.1764567426222, 3.73726334041246])
    _near(solve("gravity", q), [17.5890193593848, 4.26149704141156])
    _near(solve("coriolis", q, qd), [-0.412562616762603, -0.524233700999097])
    _near(solve("inertial", q, qdd), np.array(M) @ qdd)
    kinetic, potential = solve("energy", q, qd)
    _near(kinetic, 1.09249913699944)
    _near(potential, 3.30671961443552)
    for name in dyn.solvers(dyn.problems.INVERSE_DYNAMICS, references=True):
        _near(solve(name, q, qd, qdd), [19.3940516491583, 4.68888286887357])
    for name in ("aba", "dense"):
        _near(solve(name, q, qd, tau), [-6.45691649391091, -4.78689412666866])


def test_case_a_derivatives_by_complex_step(case_a):
    """dID/dq and dFD/dq through the unmodified texts."""
    q, qd, qdd, tau = (0.4, -0.9), (1.3, -0.7), (0.6, 2.1), (3, -1.2)
    wanted = {
        "rnea": [
            [-3.30671961443552, 3.67910758777507],
            [2.32806644418508, 2.93019117307803],
        ],
        "aba": [
            [9.46416664155365, 5.24466195856567],
            [-25.1072984406731, -12.0697392140151],
        ],
    }
    for name, last in (("rnea", qdd), ("aba", tau)):
        program = dyn.solver(name).build(case_a, engine="plain")
        columns = [
            program(np.array(q) + 1e-30j * e, qd, last).imag / 1e-30 for e in np.eye(2)
        ]
        _near(np.array(columns).T, wanted[name])
    _near(_solve("id_derivatives", case_a, q, qd, qdd).dtau_dq, wanted["rnea"])
    _near(_solve("fd_derivatives", case_a, q, qd, tau).dqdd_dq, wanted["aba"])


def test_case_a_simulated(case_a):
    """States after half a second and a second of free fall; RK4 falls 16 times."""
    step = dyn.solver("rk4").build(case_a)

    def run(n, end):
        q, qd = np.array([0.4, -0.9]), np.array([1.3, -0.7])
        for _ in range(n):
            q, qd = step(q, qd, (0, 0), end / n)
        return np.concatenate([q, qd])

    half = [-0.640344326237826, 0.403304009996438, -5.82476327004995, 7.30685807672074]
    one = [-2.39010735448163, -0.968038134199512, -4.42010046482121, 1.90121989575874]
    _near(run(2000, 0.5), half)
    _near(run(4000, 1.0), one)
    errors = [np.abs(run(n, 0.5) - half).max() for n in (200, 400)]
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.15)


@ENGINE
def test_case_b(engine):
    """3R arm with skew axes and a wrench on the last body."""
    third = 1 / 3
    rows = [
        ("revolute", np.eye(3), (0.1, -0.2, 0.3), Z, 4, (0.05, -0.02, 0.25),
         (0.08, 0.09, 0.05, 0.01, -0.005, 0.004)),
        ("revolute", R_A, (0.2, 0.05, 0.4), (third, 2 * third, 2 * third), 2.5,
         (0.15, 0.04, -0.05), (0.06, 0.07, 0.04, -0.005, 0.004, 0.006)),
        ("revolute", R_B, (0.3, -0.1, 0.1), (2 * third, -third, 2 * third), 1.5,
         (0.1, 0.02, 0.12), (0.03, 0.05, 0.045, 0.002, -0.003, 0.001)),
    ]  # fmt: skip
    model = _model(rows, (0.0, 0.0, -9.81))
    q, qd, qdd, tau = (0.7, -1.1, 0.5), (0.9, -1.3, 2.1), (0.5, 1.4, -2.3), (5, -3, 2)
    wrench = np.zeros((3, 6))
    wrench[2] = (0.3, -0.2, 0.5, 4, -6, 2)

    def solve(name, *args, **choices):
        return _solve(name, model, *args, engine=engine, **choices)

    pose = solve("forward_kinematics", q, frames=["b3"])[0]
    _near(pose[:3, :3], [
        [0.45142100147616, -0.34171803372353, 0.824286276031807],
        [0.696829675690024, 0.712007868527003, -0.0864476618155163],
        [-0.557357589437873, 0.613411428475015, 0.559534571686366]])  # fmt: skip
    _near(pose[:3, 3], [0.541335926228939, 0.004490601121821, 0.77635689930758])
    M = solve("crba", q)
    upper = [1.09500889885683, 0.523936497475947, -0.0550715246179162,
             0.475688397550741, -0.0484429219452688, 0.0426888888888889]  # fmt: skip
    _near(M[np.triu_indices(3)], upper)
    _near(
        solve("bias", q, qd), [0.00581752020457705, -5.7829456125189, 0.737121936629685]
    )
    _near(solve("gravity", q), [0, -5.66145110400791, 0.701295304301073])
    parts = solve("coriolis", q, qd) + solve("gravity", q) + solve("inertial", q, qdd)
    _near(parts, [1.41349757272052, -4.74359488673577, 0.543581639152906])
    kinetic, potential = solve("energy", q, qd)
    _near(kinetic, 0.354722593303255)
    _near(potential, 49.468981919864)
    _near(solve("rnea", q, qd, qdd),
          [1.41349757272052, -4.74359488673577, 0.543581639152906])  # fmt: skip
    _near(solve("rnea", q, qd, qdd, wrench, inputs=["f_ext"]),
          [3.2808205554028, -5.43217169825521, -0.0564183608470937])  # fmt: skip
    for name in dyn.solvers(dyn.problems.INVERSE_DYNAMICS, references=True):
        _near(solve(name, q, qd, qdd, wrench, inputs=["f_ext"]),
              [3.2808205554028, -5.43217169825521, -0.0564183608470937])  # fmt: skip
    for name in ("aba", "dense"):
        _near(solve(name, q, qd, tau),
              [3.86058075123283, 5.7868350923133, 41.1305465576399])  # fmt: skip
        _near(solve(name, q, qd, tau, wrench, inputs=["f_ext"]),
              [-1.15107393149142, 14.5386758044053, 58.6518569436743])  # fmt: skip


@ENGINE
def test_case_d(engine):
    """Floating body with a ball-jointed child, body-twist velocities."""
    rows = [
        ("floating", np.eye(3), (0.0,) * 3, Z, 5, (0.1, -0.05, 0.2),
         (0.12, 0.15, 0.10, 0.01, -0.02, 0.008)),
        ("spherical", np.eye(3), (0.3, 0.2, -0.1), Z, 2, (0.05, 0.1, -0.25),
         (0.03, 0.05, 0.04, 0.004, -0.002, 0.003)),
    ]  # fmt: skip
    model = _model(rows, (0.0, 0.0, -9.81))
    q = np.concatenate([[0, 0, 0], quaternion(R_B), quaternion(R_A)])
    qd = np.array([0.4, -0.7, 1.1, 0.5, 0.3, -0.2, 1.2, -0.5, 0.8])
    tau = np.array([0, 0, 0, 0, 0, 0, 0.3, -0.2, 0.15])
    wrench = np.array([(0.1, 0.2, -0.3, 3, -2, 5), (0, 0, 0, 1, 2, -1)])

    def solve(name, *args, **choices):
        return _solve(name, model, *args, engine=engine, **choices)

    wanted = [-0.538904502933899, 1.58144517650055, 2.44075686571308, 8.25762993317784,
              -0.920318567744921, -5.31259637818017, -0.298592915797409,
              -10.1660343518039, 0.86122553734953]  # fmt: skip
    free = [0.239854463018149, -0.242923143047191, 0.25718192003247, 8.20472491394717,
            -0.420100355126916, -6.36565619169621, -0.396270484813458, -3.9575180605445,
            -1.67545881041024]  # fmt: skip
    for name in ("aba", "dense"):
        _near(solve(name, q, qd, tau, wrench, inputs=["f_ext"]), wanted)
        _near(solve(name, q, qd, 0 * tau), free)
    _near(solve("rnea", q, qd, wanted, wrench, inputs=["f_ext"]), tau, 1e-9)
    kinetic, _ = solve("energy", q, qd)
    _near(kinetic, 1.66978361111111)
    h, _ = solve("momentum", q, qd)
    _near(h[3:], [1.505, 3.13333333333333, -2.07333333333333])
    _near(h[:3], [0.565395555555556, 0.173877777777778, -0.0570922222222222])
    v = solve("frame_velocity", q, qd, frame="b2")
    _near(
        v, [0.633333333333333, -0.366666666666667, 2.03333333333333, 0.65, 0.39, 0.07]
    )


def _case_g():
    """Return the serial R-P-R-R robot."""
    rows = [
        ("revolute", np.eye(3), (0.1, 0.0, 0.2), Z, 3, (0.1, 0.05, 0.15),
         (0.05, 0.06, 0.03, 0.005, -0.004, 0.002)),
        ("prismatic", R_B, (0.2, -0.1, 0.3), Z, 2, (-0.05, 0.1, 0.2),
         (0.04, 0.03, 0.02, -0.004, 0.002, 0.001)),
        ("revolute", R_C, (0.25, 0.0, 0.1), Z, 1.5, (0.15, -0.05, 0.05),
         (0.02, 0.025, 0.03, 0.001, 0.002, -0.001)),
        ("revolute", R_A, (0.0, 0.2, -0.1), Z, 1, (0.05, 0.05, 0.1),
         (0.01, 0.012, 0.015, 0.0005, -0.001, 0.001)),
    ]  # fmt: skip
    return _model(rows, (0.0, 0.0, -9.81))


STATE_G = (0.5, 0.3, -0.8, 1.2), (1, -0.4, 1.5, -0.7), (-0.3, 0.8, 0.5, 1.1)


@ENGINE
def test_case_g(engine):
    """Serial R-P-R-R with a force given in base coordinates."""
    model, (q, qd, qdd) = _case_g(), STATE_G

    def solve(name, *args, **choices):
        return _solve(name, model, *args, engine=engine, **choices)

    gravity = [0, 26.487, 0.621580046292802, 0.435616112365901]
    coriolis = [-1.24281709291078, -2.28175304049098, -0.192537894090512,
                0.0800822967244155]  # fmt: skip
    ID = [-1.60429648804911, 27.8159159251895, 0.656456661215118, 0.537097376022679]
    for name in dyn.solvers(dyn.problems.INVERSE_DYNAMICS, references=True):
        _near(solve(name, q, qd, qdd), ID)
    _near(solve("gravity", q), gravity)
    _near(solve("bias", q, qd) - solve("gravity", q), coriolis)
    _near(solve("coriolis", q, qd), coriolis)
    H = [2.15363173222281, 0.300238380515704, 0.12785172342873, -0.0177331287258328, 4.5,
         0.23818411550128, -0.0166832526503888, 0.117772693367181, 0.0148512608698478,
         0.02]  # fmt: skip
    _near(solve("crba", q)[np.triu_indices(4)], H)
    inertial = np.array(ID) - gravity - coriolis
    _near(solve("rnea", q, 0 * np.array(qd), qdd) - solve("gravity", q), inertial)
    _near(solve("inertial", q, qdd), inertial)
    for name in ("aba", "dense"):
        _near(solve(name, q, qd, (1, 20, 0.5, -0.2)), [
            0.379126037483942, -1.59036539327301, 8.87581904755925,
            -43.3662445017787])  # fmt: skip
    forced = [-2.20429648804911, 27.2298977126878, 0.494787665184463, 0.537097376022679]
    base = np.zeros((4, 6))
    base[2] = (0.2, -0.1, 0.4, 1.5, -2, 0.5)
    for name in dyn.solvers(dyn.problems.INVERSE_DYNAMICS, references=True):
        choices = {"inputs": ["f_ext"], "f_ext_frame": "base"}
        _near(solve(name, q, qd, qdd, base, **choices), forced)
    body = np.zeros((4, 6))
    body[2] = (-1.99515622869283, -1.48926491537315, 0.161668996030655,
               0.165399527985789, -0.419207845739728, 2.50936401867332)  # fmt: skip
    _near(solve("rnea", q, qd, qdd, body, inputs=["f_ext"]), forced)


def test_case_g_in_vectors():
    """Every quantity of the 3-D recursion: motion, F and N, joint forces f and n."""
    model = _case_g()
    q, qd, qdd = ([Vector(()), *(Vector([x]) for x in part)] for part in STATE_G)
    motion = vectors.vector_motion(model, q, qd, qdd)
    v = vectors.linear_velocities(model, motion, qd)
    f, n = vectors.vector_forces(model, motion, [Force.zero()] * 5)
    wanted = {
        "w": [(0, 0, 1), (-0.8, 0, 0.6),
              (-0.954670279360545, -0.18801654138888, 1.73076923076923),
              (0.770107038229934, 1.73573037031689, -0.119928518597916)],
        "alpha": [(0, 0, -0.3), (0.24, 0, -0.18),
                  (0.00437627172484283, 1.48841038145748, 0.430769230769231),
                  (0.284713752390073, 0.20844032609738, 0.893960207843555)],
        "a": [(0, 0, 9.81), (-8.13, -0.672, 6.31),
              (-9.61240773729952, -2.18994590883436, 3.04015384615385),
              (-0.33189660590151, 9.97064298301802, -3.40431482177593)],
        "F": [(-0.255, -0.24, 29.43), (-16.38, -1.622, 12.46),
              (-15.0940139949707, -2.87932208370508, 3.80663965158148),
              (-0.449508592977775, 10.0025157847087, -3.77610969575118)],
        "N": [(-0.0008, -0.0046, -0.009), (0.00696, -0.0113, -0.00616),
              (0.00578192151750821, 0.0573294201630106, 0.0155200736624584),
              (0.00314076455545851, 0.00313729201859982, 0.0144961571383528)],
    }  # fmt: skip
    for name, rows in wanted.items():
        for i, row in enumerate(rows, 1):
            _near(list(getattr(motion, name)[i]), row)
    _near([list(x) for x in v[1:]], [
        (0, 0, 0), (0.06, 0.44, -0.32),
        (0.0688412090639658, 0.0167808817939628, -0.741538461538462),
        (-0.516806598112332, -0.293222643678333, -0.767760284860345)])  # fmt: skip
    spatial = [(0, 0, 9.81), (-7.866, -0.452, 6.662),
               (-9.72278540027064, -1.60116942505772, 3.04323076923077),
               (1.03589399492944, 9.31740553426041, -4.07553890803459)]  # fmt: skip
    for i, row in enumerate(spatial, 1):
        _near(list(motion.a[i] - cross3(motion.w[i], v[i])), row)
    _near([list(x) for x in f[1:]], [
        (-0.7819651010795, -2.6008379517139, 76.4924800100885),
        (-37.9661630687185, -2.3608379517139, 27.8159159251895),
        (-25.0036760481966, -5.8073448604487, 6.5881257728088),
        (-0.4495085929778, 10.0025157847087, -3.7761096957512)])  # fmt: skip
    _near([list(x) for x in n[1:]], [
        (-1.1639192958755, -33.7784403278323, -1.6042964880491),
        (0.9355209163361, -9.8321558748753, 0.4263924231363),
        (0.5538426813944, -1.5356233882454, 0.6564566612151),
        (-1.185916298703, 0.1469919175084, 0.5370973760227)])  # fmt: skip


def _case_c():
    """Return the branched tree; joints of several turns as joints of one, in a row."""
    x, y, none = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), RigidInertia.zero()
    one = _inertia(3, (0.1, 0.05, 0.2), (0.05, 0.06, 0.04, 0.005, -0.004, 0.003))
    two = _inertia(1.3, (0.05, 0.12, -0.1), (0.03, 0.02, 0.025, 0.002, 0.001, -0.002))
    three = _inertia(
        0.8, (0.08, -0.06, 0.1), (0.012, 0.015, 0.01, 0.0005, -0.001, 0.00075)
    )
    here, turn, slide = ((0.0,) * 3, np.eye(3)), "revolute", "prismatic"
    rows = [
        (turn, "b0", "b1x", (0.1, 0.0, 0.2), R_B, x, none), (turn, "b1x", "b1", *here, y, one),
        (turn, "b1", "b2z", (0.2, -0.1, 0.3), R_A, Z, none), (turn, "b2z", "b2y", *here, y, none),
        (turn, "b2y", "b2", *here, x, two),
        (turn, "b1", "b3z", (-0.1, 0.2, 0.1), np.eye(3), Z, none), (slide, "b3z", "b3", *here, Z, three),
    ]  # fmt: skip
    links = [LinkSpec("b0", none), *(LinkSpec(row[2], row[-1]) for row in rows)]
    joints = [
        JointSpec(f"j{k}", kind, parent, child, p, _rpy(R), axis)
        for k, (kind, parent, child, p, R, axis, _) in enumerate(rows, 1)
    ]
    description = Description("case", tuple(links), tuple(joints))
    return assemble(Build(description, gravity=(0.5, -1.0, -9.81)))


def test_case_c_parts():
    """Gravity, velocity and whole forces of the branched tree, by every solver."""
    model = _case_c()
    q = (0.3, -0.7, 0.4, 0.6, -0.9, 1.1, 0.25)
    qd = (0.8, 1.1, -0.5, 0.7, 1.3, -0.6, 0.9)
    qdd = np.array((0.2, -0.9, 1.5, 0.4, -1.2, 0.7, -0.3))
    bias = [-1.40222786833504, -6.47416733302955, -0.522539850756861, 0.101365592993188,
            1.86605461423482, 0.105395674472169, 6.55819184914383]  # fmt: skip
    gravity = [-1.90679490014234, -7.20717970770244, -0.568917934965701,
               0.119907590529694, 1.88608419217246, 0.292433499601823,
               7.22526314072744]  # fmt: skip
    ID = [-1.41249727221413, -6.89594943961482, -0.443830883942305, 0.130656926993964,
          1.75567429967939, 0.125356463633224, 6.34068847319741]  # fmt: skip
    _near(_solve("gravity", model, q), gravity)
    _near(_solve("coriolis", model, q, qd), np.array(bias) - gravity)
    _near(_solve("inertial", model, q, qdd), np.array(ID) - bias)
    served = [
        name
        for name in dyn.solvers(dyn.problems.INVERSE_DYNAMICS, references=True)
        if dyn.solver(name).refusal(model) is None
    ]
    assert set(dyn.solvers(dyn.problems.INVERSE_DYNAMICS, references=True)) - set(
        served
    ) == {"closed_form"}
    for name in served:
        _near(_solve(name, model, q, qd, qdd), ID)


def test_gravity_by_offset_or_by_forces(case_a):
    """The trick a_0 = -a_g gives the same tau as forces I a_g on every body."""
    from dyn_core.testing import random_model

    arms = {"kinds": ("revolute", "prismatic"), "branching": 0.0}
    tried = set()
    for seed, restriction in ((0, {}), (1, {}), (2, {}), (0, arms), (1, arms)):
        model = random_model(seed, size=5, **restriction)
        rng = np.random.default_rng(seed)
        q, qd, qdd = model.random(rng), *rng.normal(size=(2, model.nv))
        g = np.array(list(model.a_grav.lin), float)
        base = np.zeros((model.nb, 6))
        from dyn_core.model.coordinates import split_q
        from dyn_core.spatial import Vector

        parts = split_q(model, Vector(q.tolist()))
        X = [np.eye(6)]
        for i in model.bodies:
            XJ = np.asarray(model.joint[i].X(parts[i]), float)
            X.append(XJ @ np.asarray(model.Xtree[i], float) @ X[model.parent[i]])
            a_g = X[i] @ np.concatenate([np.zeros(3), g])
            base[i - 1] = X[i].T @ (np.asarray(model.I[i], float) @ a_g)
        zero = np.zeros((model.nb, 6))
        for name in dyn.solvers(dyn.problems.INVERSE_DYNAMICS, references=True):
            if dyn.solver(name).refusal(model) is not None:
                continue
            program = dyn.solver(name).build(
                model, engine="graph", inputs=["f_ext", "gravity"], f_ext_frame="base"
            )
            by_force = program(q, qd, qdd, base, gravity=np.zeros(3))
            _near(by_force, program(q, qd, qdd, zero), 1e-11)
            tried.add(name)
    assert tried == set(dyn.solvers(dyn.problems.INVERSE_DYNAMICS, references=True))


def test_a_free_tree_keeps_its_momentum():
    """Without gravity, RK4 keeps momentum about the origin and energy."""
    from dyn_core.testing import random_model

    model = random_model(11, size=4, kinds=("floating",), mimic=0, massless=0)
    description = model.build.description
    joints = tuple(replace(j, armature=0.0) for j in description.joints)
    description = replace(description, joints=joints)
    build = model.rebuilt(gravity=(0.0, 0.0, 0.0), description=description)
    q = build.random(np.random.default_rng(0))
    qd = 0.5 * np.random.default_rng(1).normal(size=build.nv)
    step = dyn.solver("rk4").build(build)
    momentum, energy = (dyn.solver(n).build(build) for n in ("momentum", "energy"))
    before, was = momentum(q, qd).h, sum(energy(q, qd))
    for _ in range(200):
        q, qd = step(q, qd, np.zeros(build.nv), 2e-3)
    _near(momentum(q, qd).h, before, 1e-8)
    _near(sum(energy(q, qd)), was, 1e-8)
