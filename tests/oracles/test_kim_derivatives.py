"""Derivatives of the worked cases A, B and C of KIM, every value that the source gives."""

import math

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.model import (
    Build,
    Description,
    JointSpec,
    LinkSpec,
    assemble,
    parameter_paths,
)
from dyn_core.spatial import RigidInertia

R_A = np.array([[2, -1, 2], [2, 2, -1], [-1, 2, 2]]) / 3
R_B = np.array([[0.6, 0, 0.8], [0, 1, 0], [-0.8, 0, 0.6]])
ONE, HERE, Z = np.eye(3), (0.0,) * 3, (0.0, 0.0, 1.0)
WAYS = {
    "id": ("id_directional", "id_directional_forward_mode"),
    "fd": ("fd_directional", "fd_directional_forward_mode", "fd_directional_table"),
    "hd": ("hd_directional", "hd_directional_forward_mode", "hd_directional_table"),
}


def _near(got, wanted, relative=1e-9):
    np.testing.assert_allclose(
        got, wanted, rtol=relative, atol=relative * max(1.0, np.abs(wanted).max())
    )


def _inertia(m, c, six):
    """Make one from mass, centre and xx yy zz xy xz yz."""
    xx, yy, zz, xy, xz, yz = six
    return RigidInertia.of(m, c, (xx, xy, xz, yy, yz, zz))


def _joint(k, kind, parent, p, R, axis=Z):
    pitch = -math.asin(R[2, 0])
    rpy = math.atan2(R[2, 1], R[2, 2]), pitch, math.atan2(R[1, 0], R[0, 0])
    return JointSpec(f"j{k}", kind, parent, f"b{k}", p, rpy, axis)


def _assemble(joints, bodies, gravity):
    links = [LinkSpec("b0", RigidInertia.zero())]
    links += [LinkSpec(f"b{k}", _inertia(*b)) for k, b in enumerate(bodies, 1)]
    return assemble(
        Build(Description("case", tuple(links), tuple(joints)), gravity=gravity)
    )


class Along:
    """A case's derivatives by every solver of them, one number after another.

    Coordinates of the case are in the order of the source.
    """

    def __init__(self, model, state, wrench=None, order=None):
        self.model, self.state, self.wrench = model, state, wrench
        self.order = np.arange(model.nv) if order is None else np.array(order)

    def _mine(self, values):
        """Return values of the source's order in the model's."""
        ordered = np.zeros(self.model.nv)
        ordered[self.order] = values
        return ordered

    def by(self, problem, name=None, k=None, prescribed=None, **choices):
        """Return the derivative by each solver; by number k of an input, or by dp."""
        for solver in WAYS[problem]:
            yield self._one(solver, problem, name, k, prescribed, choices)

    def _one(self, solver, problem, name, k, prescribed, choices):
        q, qd, qdd, tau = map(self._mine, self.state)
        seeds = {key: np.zeros(self.model.nv) for key in ("q", "qd", "qdd", "tau")}
        if name is not None:
            seeds[name][self.order[k]] = 1.0
        inputs, tail = [], []
        if self.wrench is not None:
            inputs, tail = ["f_ext"], [self.wrench]
        if problem == "id":
            states, changes = (q, qd, qdd), [seeds[x] for x in ("q", "qd", "qdd")]
        elif problem == "fd":
            states, changes = (q, qd, tau), [seeds[x] for x in ("q", "qd", "tau")]
        else:
            mask = np.zeros(self.model.nv, bool)
            for joint in prescribed:
                mask[self.model.v_slice(joint)] = True
            choices = {**choices, "prescribed": list(prescribed)}
            states = q, qd, qdd[mask], tau[~mask]
            changes = seeds["q"], seeds["qd"], seeds["qdd"][mask], seeds["tau"][~mask]
        if "parameter" in choices:
            size = parameter_paths.size(self.model, choices["parameter"])
            tail = [*tail, np.eye(size)[k] if size > 1 else 1.0]
        program = dyn.solver(solver).build(
            self.model, engine="plain", inputs=inputs, **choices
        )
        got = program(*states, *changes, *tail)
        if problem != "hd":
            return got[1][self.order]
        both = np.zeros(self.model.nv)
        both[mask], both[~mask] = got[2], got[3]
        return both[self.order]

    def columns(self, problem, name, wanted, **choices):
        """Compare a whole block, column by column."""
        for k, column in enumerate(np.array(wanted).T):
            self.column(problem, name, k, column, **choices)

    def column(self, problem, name, k, wanted, **choices):
        """Compare one column, by every solver."""
        for got in self.by(problem, name, k, **choices):
            _near(got, wanted)


@pytest.fixture(scope="module")
def case_a():
    """Return the planar double pendulum."""
    joints = [_joint(1, "revolute", "b0", HERE, ONE),
              _joint(2, "revolute", "b1", (0.8, 0.0, 0.0), ONE)]  # fmt: skip
    bodies = [(1.7, (0.35, 0, 0), (0.09, 0.09, 0.09, 0, 0, 0)),
              (1.1, (0.45, 0, 0), (0.075, 0.075, 0.075, 0, 0, 0))]  # fmt: skip
    model = _assemble(joints, bodies, (0.0, -9.81, 0.0))
    return Along(model, ((0.4, -0.9), (1.3, -0.7), (0.6, 2.1), (3, -1.2)))


def test_case_a(case_a):
    """All derivatives of the double pendulum."""
    M = [[1.79231509487037, 0.543907547435183], [0.543907547435183, 0.29775]]
    case_a.columns("id", "q", [[-3.30671961443552, 3.67910758777507],
                               [2.32806644418508, 2.93019117307803]])  # fmt: skip
    case_a.columns("id", "qd", [[-0.434276438697477, 0.37223694745498],
                                [-0.806513386152457, 0]])  # fmt: skip
    case_a.columns("id", "qdd", M)
    case_a.columns("fd", "q", [[9.46416664155365, 5.24466195856567],
                               [-25.1072984406731, -12.0697392140151]])  # fmt: skip
    case_a.columns("fd", "qd", [[-1.30079296945702, -0.466027116468037],
                                [5.08488497024602, 0.851303664001413]])  # fmt: skip
    case_a.columns("fd", "tau", [[1.25196362063011, -2.28699399622165],
                                 [-2.28699399622165, 7.53623273042454]])  # fmt: skip
    partition = {"prescribed": ["j1"]}
    case_a.columns("hd", "q", [[-7.55945818680446, -7.80861560390569],
                               [-7.81886295276265, -9.84111225215123]], **partition)  # fmt: skip
    case_a.columns("hd", "qd", [[1.0390022106252, 0.37223694745498],
                                [2.70869315248516, 0]], **partition)  # fmt: skip
    case_a.column("hd", "qdd", 0, [0.798745253873033, -1.82672560011816], **partition)
    case_a.column("hd", "tau", 1, [1.82672560011816, 3.35852225020991], **partition)


def test_case_a_by_parameters(case_a):
    """By the mass of the second link and by the length of the first."""
    mass, length = {"parameter": "b2.mass"}, {"parameter": "j2.origin"}
    case_a.column("id", None, 0, [12.3967406183756, 4.07852988079415], **mass)
    case_a.column("fd", None, 0, [-1.18878855671377, 3.2607110253808], **mass)
    case_a.column("id", None, 0, [11.494865798502, -0.470673965672484], **length)
    case_a.column("fd", None, 0, [3.20607580060522, 3.01681514968601], **length)
    q, qd, qdd, tau = case_a.state
    paths = ["b2.mass", "j2.origin"]
    for name, last, wanted in (
        ("parameter_jacobian", qdd,
         [(12.3967406183756, 11.494865798502), (4.07852988079415, -0.470673965672484)]),
        ("fd_parameter_jacobian", tau,
         [(-1.18878855671377, 3.20607580060522), (3.2607110253808, 3.01681514968601)]),
    ):  # fmt: skip
        program = dyn.solver(name).build(case_a.model, paths=paths)
        _near(program(q, qd, last)[1][:, :2], wanted)


@pytest.fixture(scope="module")
def case_b():
    """Return the 3R arm with skew axes and a wrench on its last body."""
    third, turn = 1 / 3, "revolute"
    joints = [
        _joint(1, turn, "b0", (0.1, -0.2, 0.3), ONE),
        _joint(2, turn, "b1", (0.2, 0.05, 0.4), R_A, (third, 2 * third, 2 * third)),
        _joint(3, turn, "b2", (0.3, -0.1, 0.1), R_B, (2 * third, -third, 2 * third)),
    ]
    bodies = [
        (4, (0.05, -0.02, 0.25), (0.08, 0.09, 0.05, 0.01, -0.005, 0.004)),
        (2.5, (0.15, 0.04, -0.05), (0.06, 0.07, 0.04, -0.005, 0.004, 0.006)),
        (1.5, (0.1, 0.02, 0.12), (0.03, 0.05, 0.045, 0.002, -0.003, 0.001)),
    ]
    model = _assemble(joints, bodies, (0.0, 0.0, -9.81))
    wrench = np.zeros((3, 6))
    wrench[2] = (0.3, -0.2, 0.5, 4, -6, 2)
    state = (0.7, -1.1, 0.5), (0.9, -1.3, 2.1), (0.5, 1.4, -2.3), (5, -3, 2)
    return Along(model, state, wrench)


FD_TAU_B = np.array(
    [[1.93105111925639, -2.11798023347606, 0.0877225483761535],
     [-2.11798023347606, 4.69990555295811, 2.60106927526167],
     [0.0877225483761535, 2.60106927526167, 26.490134547693]]
)  # fmt: skip


def test_case_b(case_b):
    """All derivatives of the 3R arm, with the wrench fixed to its body."""
    case_b.columns("id", "q", [
        [0, 0.335195641030738, -1.49243041485674],
        [0, 2.70113908942758, -1.19020269570667],
        [0, -0.265170254266393, -0.800849232963489]])  # fmt: skip
    case_b.columns("id", "qd", [
        [-0.307967575304534, -0.445668711930505, -0.138363555869725],
        [-0.117498476150401, 0.0462444982877684, -0.0367250193869163],
        [0.0592489517993142, -0.0140993907983405, 0]])  # fmt: skip
    case_b.columns("id", "qdd", [
        [1.09500889885683, 0.523936497475947, -0.0550715246179162],
        [0.523936497475947, 0.475688397550741, -0.0484429219452688],
        [-0.0550715246179162, -0.0484429219452688, 0.0426888888888889]])  # fmt: skip
    case_b.columns("fd", "q", [
        [0, 5.42005814589036, 5.31367484118101],
        [0, -11.0260487853546, 0.431405246983732],
        [0, -1.19765945707479, 27.9309722496334]])  # fmt: skip
    case_b.columns("fd", "qd", [
        [0.340644211995938, 0.959790832762849, 0.189404234291012],
        [-0.254148124639826, -1.12458880463852, -0.120447153816476],
        [-1.2368753282458, 0.292304810784399, 0.107661923283976]])  # fmt: skip
    case_b.columns("fd", "tau", FD_TAU_B)


def test_case_b_hybrid(case_b):
    """Rows (qdd1, tau2, qdd3) of hybrid dynamics; blocks too."""
    partition = {"prescribed": ["j2"]}
    by_q = [[0, 1.82409999778383, 5.29186548698934],
            [0, 3.92061556949829, -0.550363691793326],
            [0, 13.4508564571763, 30.4957055672528]]  # fmt: skip
    by_qd = [[0.226114101061396, 0.453002593685634, 0.13512554973294],
             [0.0540751557187922, 0.239279022092414, 0.0256275689924591],
             [-1.09622210215066, 0.914686123363636, 0.17432100558991]]  # fmt: skip
    by_given = np.array(
        [[0.976597839536345, -0.450643147954965, 1.25987659462901],
         [0.450643147954965, 0.212770233089174, -0.553430115978514],
         [1.25987659462901, 0.553430115978514, 25.0506244770167]])  # fmt: skip
    case_b.columns("hd", "q", by_q, **partition)
    case_b.columns("hd", "qd", by_qd, **partition)
    for k, name in enumerate(("tau", "qdd", "tau")):
        case_b.column("hd", name, k, by_given[:, k], **partition)
    q, qd, qdd, tau = case_b.state
    program = dyn.solver("hd_derivatives").build(
        case_b.model, prescribed=["j2"], inputs=["f_ext"]
    )
    got = program(q, qd, [qdd[1]], [tau[0], tau[2]], case_b.wrench)
    _near(got.tau_u, [-5.79551911338641])
    _near(got.qdd_v, [4.76978029296553, 51.3805180694382])
    free = [0, 2]
    _near(got.dqdd_v_dq, np.array(by_q)[free])
    _near(got.dtau_u_dq, np.array(by_q)[[1]])
    _near(got.dqdd_v_dqd, np.array(by_qd)[free])
    _near(got.dtau_u_dqd, np.array(by_qd)[[1]])
    _near(got.dqdd_v_dtau_v, by_given[np.ix_(free, free)])
    _near(got.dqdd_v_dqdd_u, by_given[free][:, [1]])
    _near(got.dtau_u_dqdd_u, by_given[[1]][:, [1]])
    _near(got.dtau_u_dtau_v, by_given[[1]][:, free])


def test_case_b_by_parameters(case_b):
    """By the mass of the last body, and by the place of the second joint."""
    mass, place = {"parameter": "b3.mass"}, {"parameter": "j2.origin"}
    case_b.column("id", None, 0,
                  [0.520693457689643, -2.38973496331285, 0.397933910715988], **mass)  # fmt: skip
    case_b.column("fd", None, 0,
                  [-5.20845799157757, 9.51167667314651, -4.28230855223994], **mass)  # fmt: skip
    case_b.column("id", None, 0,
                  [8.04013032353281, 0.200136158130102, -0.0161625150216239], **place)  # fmt: skip
    case_b.column("fd", None, 0,
                  [-16.9201613140821, 20.8356659687795, -0.762896611458215], **place)  # fmt: skip


@pytest.fixture(scope="module")
def case_c():
    """Return the branched tree; its ball joint's angles stand in q as x, y, z."""
    joints = [
        _joint(1, "universal", "b0", (0.1, 0.0, 0.2), R_B),
        _joint(2, "ball_rpy", "b1", (0.2, -0.1, 0.3), R_A),
        _joint(3, "cylindrical", "b1", (-0.1, 0.2, 0.1), ONE),
    ]
    bodies = [
        (3, (0.1, 0.05, 0.2), (0.05, 0.06, 0.04, 0.005, -0.004, 0.003)),
        (1.3, (0.05, 0.12, -0.1), (0.03, 0.02, 0.025, 0.002, 0.001, -0.002)),
        (0.8, (0.08, -0.06, 0.1), (0.012, 0.015, 0.01, 0.0005, -0.001, 0.00075)),
    ]
    model = _assemble(joints, bodies, (0.5, -1.0, -9.81))
    wrench = np.array(
        [(0.0,) * 6, (0.1, 0.2, -0.3, 1, 2, -1.5), (-0.2, 0.1, 0.1, 0.5, -1, 2)]
    )
    state = ((0.3, -0.7, 0.4, 0.6, -0.9, 1.1, 0.25), (0.8, 1.1, -0.5, 0.7, 1.3, -0.6, 0.9),
             (0.2, -0.9, 1.5, 0.4, -1.2, 0.7, -0.3), (2, -1, 0.5, 0.3, -0.4, 0.2, 7))  # fmt: skip
    return Along(model, state, wrench, order=(0, 1, 4, 3, 2, 5, 6))


ID_C = {
    "q": [
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
    ],
    "qd": [
        [0.682186678499614, 0.197704409202217, 0.136929874886476, -0.0246708193871501,
         -0.147187556209253, 0.0392082783464888, 0.607236857540704],
        [-0.220558777604489, 0.713720055103175, -0.051422518714646, -0.0223608916425056,
         0.134600312572023, 0.0674322178921939, 0.792],
        [0.0881458761382578, 0.0429464297818947, 0.0189080789166039,
         -0.0240828823823644, 0.0010080399022671, 0, 0],
        [0.055700574757681, 0.0290263517526185, 0.0953586609357554,
         -0.00553767451557097, -0.0477059532140463, 0, 0],
        [-0.0271293815330704, -0.0657828472085878, -0.0747301779114049,
         0.0237719890355859, 0, 0, 0],
        [-0.156624668074869, -0.090785822181075, 0, 0, 0, 0, -0.165457234889146],
        [-0.39639861838659, -0.834317588658605, 0, 0, 0, 0.165457234889146, 0],
    ],
}  # fmt: skip
COLUMNS_C = [  # problem, by which coordinate of what, the column
    ("fd", "q", 3, [
        6.44727173699065, -2.99515890947114, -31.5234905705212, -18.7914107583468,
        -18.775120476348, 10.5514510016601, -1.17292799057973]),
    ("fd", "qd", 3, [
        0.0560452533825203, 0.0475975401169584, 0.778965799754185, 0.0764750997674107,
        -0.0291855539316551, 0.158893372040795, -0.0109501059382916]),
    ("fd", "q", 1, [
        -7.93592483852592, 22.3257907308409, -8.62245162438873, -4.22818242587284,
        -7.01077034196143, -8.44243865471148, 3.15223027648795]),
    ("fd", "qd", 1, [
        -0.345290116593345, -1.38379413584156, -1.03783526132748, -0.522072405133047,
        0.421051128697885, 3.06989794784436, 1.12152675772808]),
    ("fd", "q", 0, [
        15.1612845289682, 1.15248705111041, -3.40567069183957, 12.1059722095936,
        -3.30574795936603, 9.3080560053192, -0.871498038450221]),
    ("fd", "q", 6, [
        -1.88794058652031, -10.7427109403075, -2.21052685835418, -0.15332281456413,
        -2.42822171400035, 41.7956286686341, 2.04684043170016]),
    ("hd", "q", 1, [
        -6.43484730348517, 22.5870360535537, 0.103548036057296, 0.300891802246325,
        0.157603136844309, -4.66620280144292, 2.70924437798724]),
    ("hd", "qd", 1, [
        -0.406604216134489, -1.37912462761366, 0.0421754102618397, 0.0274871861276762,
        -0.0524510245119409, 2.9478283117571, 1.13292526159255]),
    ("hd", "q", 3, [
        5.90970156111944, -2.87210851751155, -1.22794326893808, 1.05072917621363,
        -0.481909029041737, 9.55611140976302, -1.07383263096559]),
    ("hd", "qd", 3, [
        0.0720363928162565, 0.0451679107634722, -0.0238136782041805,
        -0.00424106686739699, 0.0226986228447789, 0.189624545431563,
        -0.0139105056834133]),
]  # fmt: skip
FD_MASS_C = [
    0.757774140444577, -0.462021979348044, -0.881648512112633, -4.20833716858763,
    -3.01884879811796, 1.13982024833359, -0.136732739922936,
]  # fmt: skip


@pytest.mark.parametrize("name", ["q", "qd"])
def test_case_c_inverse(case_c, name):
    """Derivatives of the tree of joints whose S is not constant."""
    case_c.columns("id", name, ID_C[name])
    q, qd, qdd, _ = map(case_c._mine, case_c.state)
    program = dyn.solver("id_derivatives").build(case_c.model, inputs=["f_ext"])
    got = program(q, qd, qdd, case_c.wrench)[("q", "qd").index(name)]
    _near(got[np.ix_(case_c.order, case_c.order)], np.array(ID_C[name]))


@pytest.mark.parametrize("row", COLUMNS_C, ids=lambda r: f"{r[0]}_{r[1]}{r[2] + 1}")
def test_case_c_forward_and_hybrid(case_c, row):
    """Forward dynamics, and hybrid dynamics with the ball joint prescribed."""
    problem, name, k, wanted = row
    partition = {"prescribed": ["j2"]} if problem == "hd" else {}
    case_c.column(problem, name, k, wanted, **partition)


def test_case_c_by_mass(case_c):
    """By the mass of the second body."""
    case_c.column("fd", None, 0, FD_MASS_C, parameter="b2.mass")


def test_misprints_would_show(case_c):
    """E-12, E-13: with dS qd + S dqd for dS qdd + S dqdd case C differs by O(1)."""
    from dyn_plugins.references import directional_tables as tables

    model = case_c.model
    wanted = np.array(next(r[3] for r in COLUMNS_C if r[:3] == ("hd", "q", 3)))
    right = tables.outward

    def printed(robot, state, sides, qdd, dqdd):
        x = right(robot, state, sides, qdd, dqdd)
        qd = case_c._mine(case_c.state[1])
        for i in robot.bodies:
            side = sides[i]
            prescribed = side.coordinates[1]
            if prescribed:
                good = side.dS_u @ dyn.authoring.Vector(qdd[k] for k in prescribed)
                bad = side.dS_u @ dyn.authoring.Vector(qd[k] for k in prescribed)
                x.deta[i] = x.deta[i] - good + bad
        return x

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "outward", printed)
        way = case_c._one("hd_directional_table", "hd", "q", 3, ["j2"], {})
    assert model.nv == 7
    assert np.abs(way - wanted).max() > 0.1
