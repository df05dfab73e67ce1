"""Worked cases C and D of KIM: joints of several coordinates whose S is not constant."""

import math

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.authoring import Vector
from dyn_core.engines import available
from dyn_core.model import Build, Description, JointSpec, LinkSpec, assemble
from dyn_core.spatial import RigidInertia
from dyn_core.testing import TOLERANCES, scaled_error

R_A = np.array([[2, -1, 2], [2, 2, -1], [-1, 2, 2]]) / 3
R_B = np.array([[0.6, 0, 0.8], [0, 1, 0], [-0.8, 0, 0.6]])
REL = TOLERANCES["reference"]
ENGINE = pytest.mark.parametrize("engine", available())
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def _rpy(R):
    """Return roll, pitch, yaw of R = Rz Ry Rx."""
    pitch = -math.asin(R[2, 0])
    return math.atan2(R[2, 1], R[2, 2]), pitch, math.atan2(R[1, 0], R[0, 0])


def _link(name, m, c, six):
    """Make one from mass, centre and xx yy zz xy xz yz."""
    xx, yy, zz, xy, xz, yz = six
    return LinkSpec(name, RigidInertia.of(m, c, (xx, xy, xz, yy, yz, zz)))


def _near(got, wanted, relative=REL):
    assert scaled_error(got, wanted) <= relative, (got, wanted)


@pytest.fixture(scope="module")
def case_c():
    """Return the branched tree: universal; on it a Z-Y-X ball and a cylindrical joint."""
    turns = tuple(JointSpec("", "revolute", "", "", axis=e) for e in (Z, Y, X))
    links = (
        LinkSpec("b0", RigidInertia.zero()),
        _link("b1", 3, (0.1, 0.05, 0.2), (0.05, 0.06, 0.04, 0.005, -0.004, 0.003)),
        _link("b2", 1.3, (0.05, 0.12, -0.1), (0.03, 0.02, 0.025, 0.002, 0.001, -0.002)),
        _link("b3", 0.8, (0.08, -0.06, 0.1),
              (0.012, 0.015, 0.01, 0.0005, -0.001, 0.00075)),
    )  # fmt: skip
    joints = (
        JointSpec("j1", "universal", "b0", "b1", (0.1, 0.0, 0.2), _rpy(R_B)),
        JointSpec("j2", "product", "b1", "b2", (0.2, -0.1, 0.3), _rpy(R_A),
                  factors=turns),
        JointSpec("j3", "cylindrical", "b1", "b3", (-0.1, 0.2, 0.1), axis=Z),
    )  # fmt: skip
    description = Description("case C", links, joints)
    return assemble(Build(description, gravity=(0.5, -1.0, -9.81)))


Q = (0.3, -0.7, 0.4, 0.6, -0.9, 1.1, 0.25)
QD = (0.8, 1.1, -0.5, 0.7, 1.3, -0.6, 0.9)
QDD = (0.2, -0.9, 1.5, 0.4, -1.2, 0.7, -0.3)
TAU = (2, -1, 0.5, 0.3, -0.4, 0.2, 7)
WRENCH = np.array([(0.0,) * 6, (0.1, 0.2, -0.3, 1, 2, -1.5),
                   (-0.2, 0.1, 0.1, 0.5, -1, 2)])  # fmt: skip
ID = [-1.41249727221413, -6.89594943961482, -0.443830883942305, 0.130656926993964,
      1.75567429967939, 0.125356463633224, 6.34068847319741]  # fmt: skip
ID_WRENCH = [-1.8136980881372, -7.04365691041958, -0.104154063657265, 0.241333006228076,
             1.65567429967939, 0.0253564636332238, 4.34068847319741]  # fmt: skip
FD = [8.6124607987212, 11.2877326731638, 3.60764991780961, 2.60337659213722,
      -32.5214899033374, 33.2975771886172, -1.1711273957503]  # fmt: skip
FD_WRENCH = [9.45732394127568, 11.5986904360997, -12.9710216799045, 0.699692330104512,
             -37.9704793147257, 40.8775217878521, 1.16796659014506]  # fmt: skip
ROWS = [
    [0.431624587977632, 0.0595144870604522, 0.00415452835852107, 0.0212228520078195,
     -0.0108436247355882, -0.037086531266585, 0.149346647524062],
    [0.471602313561188, -6.65805836676828e-4, -0.00514104043816821,
     -0.00646987152743101, -0.0164201060159691, 0.00819189494581415],
    [0.0295904291948584, 4.76341072896898e-4, -0.027252213056997, 0, 0],
    [0.0560721310074984, 0.00226961400623627, 0, 0],
    [0.06172, 0, 0], [0.018, 0], [0.8],
]  # fmt: skip


def test_joints_of_case_c(case_c):
    """S and its rate of the universal joint and of the ball."""
    universal, ball = case_c.joint[1:3]
    S = [list(column) for column in universal.S(Vector(Q[:2]))]
    first = [0.7648421872845, 0, -0.6442176872377, 0, 0, 0]
    _near(S, [first, [0, 1, 0, 0, 0, 0]])
    rate = list(universal.cJ(Vector(Q[:2]), Vector(QD[:2])))
    _near(rate, np.array([0.7086394559615, 0, 0.8413264060129, 0, 0, 0]) * QD[0])
    S = np.array([list(column) for column in ball.S(Vector(Q[2:5]))]).T
    _near(S[:3], [[-0.564642473395, 0, 1], [-0.6465075966327, 0.6216099682707, 0],
                  [0.5130368453967, 0.7833269096275, 0]])  # fmt: skip
    slopes = np.array([[list(c) for c in s] for s in ball.S_slopes(Vector(Q[2:5]))])
    rate = np.einsum("lkr,l->rk", slopes, QD[2:5])
    _near(rate[:3], [[-0.5777349304368, 0, 0], [0.9765576496259, 1.0183249825157, 0],
                     [0.5947687026426, -0.8080929587519, 0]])  # fmt: skip
    _near(rate[:3] @ QD[2:5], list(ball.cJ(Vector(Q[2:5]), Vector(QD[2:5])).ang))


@ENGINE
def test_case_c(case_c, engine):
    """V, M, b, gravity, energies, ID and FD with and without wrenches, F."""

    def solve(name, *args, **choices):
        return dyn.solver(name).build(case_c, engine=engine, **choices)(*args)

    v = solve("body_motion", Q, QD, QDD).v
    _near(v, [
        [0.6118737498276, 1.1, -0.5153741497902, 0, 0, 0],
        [2.8108985372968, 0.1754588912191, 0.3200927861548, -0.137313549455,
         -0.3066199504197, -0.3548206450658],
        [1.2578716557915, -0.0463506557066, -1.1153741497902, 0.0764621371361,
         -0.5087389550799, 1.1323747499655]])  # fmt: skip
    M = np.zeros((7, 7))
    for k, row in enumerate(ROWS):
        M[k, k:] = M[k:, k] = row
    _near(solve("crba", Q), M)
    _near(solve("bias", Q, QD),
          [-1.40222786833504, -6.47416733302955, -0.522539850756861, 0.101365592993188,
           1.86605461423482, 0.105395674472169, 6.55819184914383])  # fmt: skip
    _near(solve("gravity", Q),
          [-1.90679490014234, -7.20717970770244, -0.568917934965701, 0.119907590529694,
           1.88608419217246, 0.292433499601823, 7.22526314072744])  # fmt: skip
    kinetic, potential = solve("energy", Q, QD)
    _near(kinetic, 1.02263411911066)
    _near(potential, 20.111349470153)
    for name in dyn.solvers(dyn.problems.INVERSE_DYNAMICS, references=True):
        solver = dyn.solver(name)
        if solver.refusal(case_c) is None:
            _near(solve(name, Q, QD, QDD), ID)
            _near(solve(name, Q, QD, QDD, WRENCH, inputs=["f_ext"]), ID_WRENCH)
    for name in dyn.solvers(dyn.problems.FORWARD_DYNAMICS, references=True):
        if dyn.solver(name).refusal(case_c) is None:
            _near(solve(name, Q, QD, TAU), FD)
            _near(solve(name, Q, QD, TAU, WRENCH, inputs=["f_ext"]), FD_WRENCH)
    f = solve("joint_reactions", Q, QD, FD_WRENCH, WRENCH, inputs=["f_ext"]).f
    _near(f[0], [2.9825745400932, -1, 0.4364966075204, 4.9222786917521, 0.3043160964362,
                 37.4304705842957])  # fmt: skip
    _near(f[1], [-0.4, -0.0737064323946, 0.4414716880677, -4.4042419015641,
                 -4.7627759275878, 5.7206319617615])  # fmt: skip
    tau, qdd = solve("hybrid", Q, QD, QDD[2:5], [2, -1, 0.2, 7], WRENCH,
                     inputs=["f_ext"], prescribed=["j2"])  # fmt: skip
    _near(tau, [-0.0701091827429721, 0.392656981859119, 1.4602490808889])
    _near(qdd, [10.4754074764328, 12.0836513375327, 43.4175382475038, 0.9729414506044])


DQ = [
    [-6.4158346347672, -0.824537491227982, -0.375830989987816, -1.89966042918476,
     1.30711743568398, 0.553532177185404, -0.505264713210294],
    [-1.24727113213643, -9.62038736596105, -0.602588316762086, 1.31226786900227,
     1.58905235044617, 0.474499444359069, -2.91651863189925],
    [-0.0573009159461521, -0.171481501839947, 0.0950589476407704, -1.87522935424748,
     0.0318879560209598, 0, 0],
    [-0.985523342281027, 0.419589689617592, -1.91715380333727, 0.752996020202381,
     -0.285033918871988, 0, 0],
    [0.25560253976941, 0.554407761346814, -0.0106942610041923, -0.220661706437633,
     0.461037559788193, 0, 0],
    [0.413658404190688, 0.297099444992345, 0, 0, 0, 0.0733576343037898,
     -0.0495433775137111],
    [-1.57652963864876, -2.68397703325467, 0, 0, 0, -0.078526999864428,
     -1.26751158858246],
]  # fmt: skip
DQD = [
    [0.682186678499614, 0.197704409202217, 0.136929874886476, -0.0246708193871501,
     -0.147187556209253, 0.0392082783464888, 0.607236857540704],
    [-0.220558777604489, 0.713720055103175, -0.051422518714646, -0.0223608916425056,
     0.134600312572023, 0.0674322178921939, 0.792],
    [0.0881458761382578, 0.0429464297818947, 0.0189080789166039, -0.0240828823823644,
     0.0010080399022671, 0, 0],
    [0.055700574757681, 0.0290263517526185, 0.0953586609357554, -0.00553767451557097,
     -0.0477059532140463, 0, 0],
    [-0.0271293815330704, -0.0657828472085878, -0.0747301779114049, 0.0237719890355859,
     0, 0, 0],
    [-0.156624668074869, -0.090785822181075, 0, 0, 0, 0, -0.165457234889146],
    [-0.39639861838659, -0.834317588658605, 0, 0, 0, 0.165457234889146, 0],
]  # fmt: skip


@ENGINE
def test_derivatives_of_case_c(case_c, engine):
    """dID and columns of dFD with the wrenches, constant in body axes."""
    choices = {"engine": engine, "inputs": ["f_ext"]}
    got = dyn.solver("id_derivatives").build(case_c, **choices)(Q, QD, QDD, WRENCH)
    _near(got.dtau_dq, DQ)
    _near(got.dtau_dqd, DQD)
    got = dyn.solver("fd_derivatives").build(case_c, **choices)(Q, QD, TAU, WRENCH)
    for k, column in {
        3: [6.44727173699065, -2.99515890947114, -31.5234905705212, -18.7914107583468,
            -18.775120476348, 10.5514510016601, -1.17292799057973],
        1: [-7.93592483852592, 22.3257907308409, -8.62245162438873, -4.22818242587284,
            -7.01077034196143, -8.44243865471148, 3.15223027648795],
        0: [15.1612845289682, 1.15248705111041, -3.40567069183957, 12.1059722095936,
            -3.30574795936603, 9.3080560053192, -0.871498038450221],
        6: [-1.88794058652031, -10.7427109403075, -2.21052685835418, -0.15332281456413,
            -2.42822171400035, 41.7956286686341, 2.04684043170016],
    }.items():  # fmt: skip
        _near(got.dqdd_dq[:, k], column)
    for k, column in {
        3: [0.0560452533825203, 0.0475975401169584, 0.778965799754185,
            0.0764750997674107, -0.0291855539316551, 0.158893372040795,
            -0.0109501059382916],
        1: [-0.345290116593345, -1.38379413584156, -1.03783526132748,
            -0.522072405133047, 0.421051128697885, 3.06989794784436, 1.12152675772808],
    }.items():  # fmt: skip
        _near(got.dqdd_dqd[:, k], column)


VDOT = [[-0.538904502933899, 1.58144517650055, 2.44075686571308, 8.25762993317784,
         -0.920318567744921, -5.31259637818017],
        [0.306181911342662, -5.37159815601681, 1.72531205370213, 7.22483833327956,
         -7.06430654082272, 0.432009459886839]]  # fmt: skip


@ENGINE
@pytest.mark.parametrize("ball", ["ball_rpy", "ball_exp"])
def test_case_d_in_coordinates(ball, engine):
    """Six coordinates for the base, angles or a rotation vector for the ball."""
    links = (
        LinkSpec("b0", RigidInertia.zero()),
        _link("b1", 5, (0.1, -0.05, 0.2), (0.12, 0.15, 0.10, 0.01, -0.02, 0.008)),
        _link("b2", 2, (0.05, 0.1, -0.25), (0.03, 0.05, 0.04, 0.004, -0.002, 0.003)),
    )
    joints = (
        JointSpec("j1", "free_rpy", "b0", "b1"),
        JointSpec("j2", ball, "b1", "b2", (0.3, 0.2, -0.1)),
    )
    model = assemble(Build(Description("case D", links, joints)))
    turn = [math.pi / (3 * math.sqrt(3))] * 3 if ball == "ball_exp" else _rpy(R_A)
    q = np.array([0.1, -0.2, 0.3, *_rpy(R_B), *turn])
    S = [np.array([list(s) for s in model.joint[i].S(Vector(part.tolist()))]).T
         for i, part in ((1, q[:6]), (2, q[6:]))]  # fmt: skip
    V = np.array([0.4, -0.7, 1.1, 0.5, 0.3, -0.2]), np.array([1.2, -0.5, 0.8])
    qd = np.concatenate([np.linalg.solve(S[0], V[0]), np.linalg.solve(S[1][:3], V[1])])
    tau = np.concatenate([np.zeros(6), S[1][:3].T @ [0.3, -0.2, 0.15]])
    wrench = np.array([(0.1, 0.2, -0.3, 3, -2, 5), (0, 0, 0, 1, 2, -1)])
    choices = {"engine": engine, "inputs": ["f_ext"]}
    qdd = dyn.solver("aba").build(model, **choices)(q, qd, tau, wrench)
    motion = dyn.solver("body_motion").build(model, engine=engine)(q, qd, qdd)
    _near(motion.v[1], [0.633333333333333, -0.366666666666667, 2.03333333333333, 0.65,
                        0.39, 0.07])  # fmt: skip
    _near(motion.a, VDOT)
    f = dyn.solver("joint_reactions").build(model, **choices)(q, qd, qdd, wrench).f
    _near(f[1], [0.3, -0.2, 0.15, -1.35214222172845, -0.72587980949279, 1.064526228755])
    kinetic, _ = dyn.solver("energy").build(model, engine=engine)(q, qd)
    _near(kinetic, 1.66978361111111)
