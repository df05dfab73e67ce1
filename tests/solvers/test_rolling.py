"""Rolling without slip: rows in velocities, against closed forms, on all engines."""

import math
import pickle

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines import available
from dyn_core.errors import ModelError, SingularError, UnsupportedError
from dyn_core.model.loops.loop_constraints import velocity_rows
from dyn_core.simulation import loop_report
from dyn_core.testing import scaled_error
from dyn_core.testing.case import derivative

G, M, R = 9.81, 2.0, 0.3
BALL, DISC, RING = (0.4, 0.4, 0.4), (0.25, 0.25, 0.5), (0.5, 0.5, 1.0)


def text_of(inertia=DISC):
    """Return the URDF of a free body."""
    ixx, iyy, izz = (x * M * R * R for x in inertia)
    return f"""<robot name="body"><link name="base"/><link name="wheel"><inertial>
    <mass value="{M}"/><inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0"
    iyz="0"/></inertial></link><joint name="free" type="floating"><parent link="base"/>
    <child link="wheel"/></joint></robot>"""


def body(kind, inertia=DISC, slope=0.0, **more):
    """Return a free body on a plane, gravity tilted by a slope about y."""
    gravity = (G * math.sin(slope), 0.0, -G * math.cos(slope))
    loop = dyn.make_loop("roll", kind, "wheel", radius=R, **more)
    return dyn.load_urdf(text_of(inertia), gravity=gravity).with_loops(loop)


def standing(model, tilt=0.0, turn=0.0):
    """Return a position on the plane; of a disc, tilted and turned from upright."""
    q = model.neutral()
    x, z = math.sin(math.pi / 4 + tilt / 2), math.cos(math.pi / 4 + tilt / 2)
    a, b = math.cos(turn / 2), math.sin(turn / 2)
    q[3:] = [a * x, b * x, b * z, a * z]
    return dyn.close_loops(model, q)


def rotation_of(quaternion):
    """Return the rotation of a quaternion (x, y, z, w)."""
    x, y, z, w = quaternion
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


def rolling(model, q, seed=0):
    """Return a velocity that neither slips nor leaves the plane."""
    return dyn.close_rates(model, q, np.random.default_rng(seed).normal(size=model.nv))


@pytest.mark.parametrize("engine", available())
@pytest.mark.parametrize(
    ("kind", "inertia", "share"),
    [
        ("rolling_ball", BALL, 0.4),
        ("rolling_disc", DISC, 0.5),
        ("rolling_disc", RING, 1.0),
    ],
)
def test_down_a_slope(kind, inertia, share, engine):
    """a = g sin / (1 + I / m r²), friction I a / r², both with and without multipliers."""
    slope = 0.3
    model = body(kind, inertia, slope)
    q, still = standing(model), np.zeros(6)
    a = G * math.sin(slope) / (1 + share)
    build = {"engine": engine}
    forward = dyn.solver("loop_forward_dynamics").build(model, **build)
    qdd, multipliers, f, rate = forward(q, still, still)
    assert qdd[3] == pytest.approx(a, rel=1e-12)
    assert np.linalg.norm(qdd[:3]) == pytest.approx(a / R, rel=1e-12)
    pushes = [multipliers[0], abs(multipliers[1]), multipliers[2]]
    expected = [M * G * math.cos(slope), share * M * a, 0.0]
    assert pushes == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert np.abs([*f, *rate]).max() < 1e-12
    assert dyn.solver("aba_loops").build(model, **build)(q, still, still) == (
        pytest.approx(qdd, abs=1e-12)
    )


@pytest.mark.parametrize("tilt", [0.0, 0.4, -0.7])
def test_the_rows_say_how_the_lowest_point_moves(tilt):
    """A qd is the velocity of the body's point at the plane, bias its rate less A qdd.

    The point is looked for numerically, among the rim's points.
    """
    model = body("rolling_disc")
    q = standing(model, tilt, 0.6)
    rng = np.random.default_rng(1)
    program = dyn.solver("loop_constraints").build(model, engine="graph")
    qd = rng.normal(size=6)
    f, A, _ = program(q, qd)
    rotation = rotation_of(q[3:])
    angles = np.linspace(0, 2 * np.pi, 200001)
    rim = R * np.stack([np.cos(angles), np.sin(angles), 0 * angles])
    lowest = rim[:, np.argmin((rotation @ rim)[2])]
    assert q[2] + (rotation @ lowest)[2] == pytest.approx(0.0, abs=1e-9)
    velocity = rotation @ (qd[3:] + np.cross(qd[:3], lowest))
    n = rotation[:, 2]
    along = np.array([n[1], -n[0], 0.0]) / np.hypot(n[0], n[1])
    across = np.cross((0.0, 0.0, 1.0), along)
    assert A @ qd == pytest.approx(
        [velocity[2], along @ velocity, across @ velocity], abs=1e-4
    )
    assert f == pytest.approx(np.zeros(3), abs=1e-12)

    def rate(t):
        return program(model.integrate(q, t * qd), qd)[1] @ qd

    assert scaled_error(program(q, qd)[2], derivative(rate, 1e-3)) < 1e-9


def test_a_steady_circle():
    """A coin that leans and goes in circles: W z x L = c x m (W z x v + g z).

    The spin follows from it; velocities then turn with W about the vertical.
    """
    model, W, z = body("rolling_disc"), 2.0, np.array((0.0, 0.0, 1.0))
    q = standing(model, 0.3, 0.8)
    E = rotation_of(q[3:])
    n, (A, C) = E[:, 2], (x * M * R * R for x in (0.25, 0.5))
    c = R * (n[2] * n - z) / np.hypot(n[0], n[1])
    way = np.cross(n, z)

    def motion(spin):
        w = W * z + spin * n
        return w, -np.cross(w, c)

    def imbalance(spin):
        w, v = motion(spin)
        momentum = A * (w - (w @ n) * n) + C * (w @ n) * n
        push = M * (np.cross(W * z, v) + G * z)
        return way @ (np.cross(W * z, momentum) - np.cross(c, push))

    w, v = motion(imbalance(0.0) / (imbalance(0.0) - imbalance(1.0)))
    turning = np.cross(W * z, w)
    speeding = np.cross(W * z, v) - np.cross(w, v)
    forward = dyn.solver("loop_forward_dynamics").build(model, engine="graph")
    result = forward(q, [*(E.T @ w), *(E.T @ v)], np.zeros(6))
    assert result.rate == pytest.approx(np.zeros(3), abs=1e-12)
    assert scaled_error(result.qdd, [*(E.T @ turning), *(E.T @ speeding)]) < 1e-12


def cart(rows=("x", "y"), rows_right=("x",)):
    """Return a cart on two wheels: a planar base, an axle of two wheels."""
    wheel = """<link name="{0}"><inertial><mass value="1.5"/><inertia ixx="0.004"
    iyy="0.004" izz="0.0075" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="{0}" type="continuous"><parent link="cart"/><child link="{0}"/>
    <origin xyz="0 {1} 0" rpy="-1.5707963267948966 0 0"/><axis xyz="0 0 1"/></joint>"""
    text = f"""<robot name="cart"><link name="world"/><link name="cart"><inertial>
    <mass value="8"/><inertia ixx="0.1" iyy="0.2" izz="0.3" ixy="0" ixz="0" iyz="0"/>
    </inertial></link><joint name="drive" type="planar"><parent link="world"/>
    <child link="cart"/><origin xyz="0 0 0.1"/><axis xyz="0 0 1"/></joint>
    {wheel.format("left", 0.25)}{wheel.format("right", -0.25)}</robot>"""
    loops = [
        dyn.make_loop(f"at_{name}", "rolling_disc", name, radius=0.1, axes=axes)
        for name, axes in (("left", rows), ("right", rows_right))
    ]
    return dyn.load_urdf(text).with_loops(*loops)


@pytest.mark.parametrize("engine", available())
def test_differential_drive(engine):
    """v = r (w_l + w_r) / 2, turn = r (w_r - w_l) / (2 b); both by closed forms."""
    model = cart()
    r, b = 0.1, 0.25
    q = model.neutral()
    q[2] = 0.7  # heading
    heading = np.array([math.cos(0.7), math.sin(0.7)])
    qd = dyn.close_rates(
        model, q, np.array([0, 0, 0, 2.0, 3.0]), fixed=["left", "right"]
    )
    speed, turn = r * (2.0 + 3.0) / 2, r * (3.0 - 2.0) / (2 * b)
    assert qd[:3] == pytest.approx([*(speed * heading), turn], abs=1e-12)
    tau = np.array([0, 0, 0, 0.4, 0.4])
    forward = dyn.solver("aba_loops").build(model, engine=engine)
    qdd = forward(q, np.zeros(5), tau)
    a = 0.8 / r / (8 + 2 * 1.5 + 2 * 0.0075 / r**2)
    assert qdd[:3] == pytest.approx([*(a * heading), 0.0], abs=1e-12)
    turning = forward(q, np.zeros(5), [0, 0, 0, -0.4, 0.4])[2]
    inertia = 0.3 + 2 * (0.004 + 1.5 * b * b) + 2 * 0.0075 * (b / r) ** 2
    assert turning == pytest.approx(0.8 * b / r / inertia, rel=1e-12)
    motors = dyn.solver("rnea_loops").build(
        model, engine=engine, active=["left", "right"]
    )
    assert motors(q, np.zeros(5), qdd) == pytest.approx(tau, abs=1e-12)


def test_a_cart_gets_sideways_though_no_velocity_does():
    """Forward, turn, back, turn back: displaced sideways, its rows kept all the way."""
    model = cart()
    step = dyn.solver("projected_midpoint").build(model, engine="graph")
    check = dyn.solver("loop_forward_dynamics").build(model, engine="graph")
    q, qd = model.neutral(), np.zeros(5)
    for left, right in ((0.5, 0.5), (-0.2, 0.2), (-0.5, -0.5), (0.2, -0.2)):
        for sign in (1, -1):  # faster, then to a stop
            for _ in range(100):
                q, qd = step(q, qd, [0, 0, 0, sign * left, sign * right], 5e-3)
                result = check(q, qd, np.zeros(5))
                assert np.abs([*result.f, *result.rate]).max() < 1e-10
    assert np.abs(qd).max() < 1e-3 and abs(q[2]) < 1e-3
    assert abs(q[1]) > 0.05


@pytest.mark.parametrize("kind", ["rolling_ball", "rolling_disc"])
def test_energy_stays(kind):
    """Rows in velocities do no work; the midpoint step keeps them and the energy."""
    model = body(kind, BALL if kind == "rolling_ball" else DISC)
    q = standing(model, 0.2)
    qd = rolling(model, q)
    step = dyn.solver("projected_midpoint").build(model, engine="graph")
    energy = dyn.solver("energy").build(model, engine="graph")
    check = dyn.solver("loop_forward_dynamics").build(model, engine="graph")
    before = sum(energy(q, qd))
    for _ in range(500):
        q, qd = step(q, qd, np.zeros(6), 5e-4)
    result = check(q, qd, np.zeros(6))
    assert np.abs([*result.f, *result.rate]).max() < 1e-10
    assert sum(energy(q, qd)) == pytest.approx(before, rel=1e-5)


def test_a_ball_on_a_tray_that_moves():
    """A plane on a link: the ball's acceleration on a pushed tray is 2/7 of the tray's."""
    text = f"""<robot name="tray"><link name="base"/><link name="tray"><inertial>
    <mass value="3"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
    </inertial></link><link name="ball"><inertial><mass value="{M}"/>
    <inertia ixx="{0.4 * M * R * R}" iyy="{0.4 * M * R * R}" izz="{0.4 * M * R * R}"
    ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="slide" type="prismatic"><parent link="base"/><child link="tray"/>
    <axis xyz="1 0 0"/><limit lower="-9" upper="9" effort="99" velocity="99"/></joint>
    <joint name="free" type="floating"><parent link="base"/><child link="ball"/></joint>
    </robot>"""
    model = dyn.load_urdf(text).with_loops(
        dyn.make_loop("roll", "rolling_ball", "ball", "tray", radius=R)
    )
    q = dyn.close_loops(model, model.neutral())
    forward = dyn.solver("loop_forward_dynamics").build(model, engine="graph")
    push, still = np.zeros(7), np.zeros(7)
    push[model.v_slice("slide")] = 5.0
    qdd = forward(q, still, push).qdd
    tray = 5.0 / (3.0 + M * 2 / 7)
    assert qdd[model.v_slice("slide")][0] == pytest.approx(tray, rel=1e-12)
    assert qdd[model.v_slice("free")][3] == pytest.approx(tray * 2 / 7, rel=1e-12)


def test_a_user_may_write_rows_in_velocities():
    """A knife edge: no velocity along y of the body; the same as that row of a disc."""

    def across(R, p):
        y = [R[k, 1] for k in range(3)]
        return [[0.0, 0.0, 0.0, *y]]

    loop = dyn.user_loop("edge", lambda R, p: [], "wheel", directions=across)
    assert (loop.rows, loop.velocity_rows) == (1, 1)
    model = body("rolling_ball").without_loops().with_loops(loop)
    rng = np.random.default_rng(0)
    q, qd, tau = model.random(rng), *rng.normal(size=(2, 6))
    qd[4] = 0.0
    result = dyn.solver("loop_forward_dynamics").build(model, engine="graph")(
        q, qd, tau
    )
    assert result.rate == pytest.approx([0.0], abs=1e-12)
    assert result.qdd[4] == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(ModelError, match="six numbers"):
        dyn.user_loop("edge", lambda R, p: [], "wheel", directions=lambda R, p: [[1.0]])


def test_a_disc_that_lies_flat_has_no_lowest_point():
    model = body("rolling_disc")
    program = dyn.solver("loop_constraints").build(model, engine="graph")
    with pytest.raises(SingularError, match="lies flat"):
        program(model.neutral(), np.zeros(6))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"kind": "rolling_ball"}, "radius is missing"),
        ({"kind": "point", "radius": 0.1}, "changes nothing of kind point"),
        ({"kind": "rolling_disc", "radius": 0.1, "length": 1.0}, "kind distance"),
        ({"kind": "rolling_disc", "radius": 0.1, "axes": ["rx"]}, "valid: x, y, z"),
        ({"kind": "rolling_disc", "radius": -0.1}, "radius"),
    ],
)
def test_what_makes_no_sense_is_refused(entry, message):
    with pytest.raises(ModelError, match=message):
        dyn.make_loop("roll", b="wheel", **entry)


def test_in_a_sidecar_in_reports_and_copies():
    """The entry of a sidecar is the loop of make_loop; reports count its rows."""
    entry = {
        "name": "roll", "kind": "rolling_disc", "b": "wheel", "radius": R,
        "at_a": {"xyz": [0.0, 0.0, 0.1]}, "axes": ["z", "x"],
    }  # fmt: skip
    model = body("rolling_disc", at_a={"xyz": (0, 0, 0.1)}, axes=["z", "x"])
    gravity = (0.0, 0.0, -G)
    loaded = dyn.load_urdf(text_of(), gravity=gravity, extras={"loops": [entry]})
    loaded = pickle.loads(pickle.dumps(loaded))
    assert velocity_rows(loaded.loops) == [False, True]
    q = standing(model)
    report = loop_report(model, q)
    assert report.gap < 1e-12 and report.mobility == 4 and not report.dependent
    one, two = (
        dyn.solver("aba_loops").build(robot, engine="graph")(q, np.zeros(6), np.ones(6))
        for robot in (model, loaded)
    )
    assert np.array_equal(one, two)


def test_the_radius_is_a_parameter():
    """aba_loops with the radius as an input is the robot with that wheel."""
    model = body("rolling_disc")
    q = standing(model)
    program = dyn.solver("aba_loops").build(
        model, engine="graph", inputs=["roll.radius"]
    )
    other = model.with_values({"roll.radius": 0.35})
    wanted = dyn.solver("aba_loops").build(other, engine="graph")
    state = q, rolling(model, q), np.ones(6)
    assert scaled_error(program(*state, 0.35), wanted(*state)) < 1e-12
    assert scaled_error(program(*state, R), wanted(*state)) > 1e-3


def test_driven_places_and_rolling_are_refused_together():
    model = body("rolling_ball").drive("free", lambda t: (None, (0.1 * t, 0.0, 0.0)))
    with pytest.raises(UnsupportedError, match="rolling"):
        dyn.close_rates(model, standing(model), np.zeros(6))
