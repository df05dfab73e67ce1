"""Part III: pendulum, acrobot, weight lifter and carts with poles, by four oracles."""

import pickle

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines import available
from dyn_core.errors import ModelError, ShapeError
from dyn_core.planar import from_angles
from dyn_core.planar.objects.objects import OBJECTS, PlanarObject, planar_object
from dyn_core.planar.objects.rods import Rods

NAMES = list(OBJECTS)
ENGINES = pytest.mark.parametrize("engine", available())
EACH = pytest.mark.parametrize("name", NAMES)
FRICTION = {
    "cart_pole": ("mu_c", "mu_p"),
    "cart_three_poles": ("mu_x", "mu_1", "mu_2", "mu_3", "Cc", "C1", "C2", "C3"),
}
TRIPLE = ([0.1, 0.05, -0.1, 0.2], [-0.3, 0.4, 0.2, -0.6], [0.5])
POLE = ([0.1, 0.2], [-0.6, 0.7], [8.0])
ACROBOT = ([0.3, -0.7], [1.1, -0.4], [0.5, -1.2])
QUIET = dict.fromkeys(("mu_x", "mu_1", "mu_2", "mu_3"), 0.0)

# Name of the case: object, its parameters, (q, qd, u), qdd.
REFERENCES = {
    "13.1": ("pendulum", {}, ([0.8], [-0.5], [0.2]), [0.9173560908995]),
    "13.2": ("acrobot", {}, ACROBOT, [-5.103396755301, 2.402272030218]),
    "13.2u": (
        "acrobot", {"I1": 1 / 12, "I2": 1 / 12}, ACROBOT, [-7.157346197351, -0.6154507459628],
    ),
    "13.3": (
        "weight_lifter", {"m": 1.5}, ([-0.4, 0.9, -0.6], [1.2, -0.8, 2.1], [1.5, -0.4, 0.2]),
        [-3.860744247953, -7.279999453909, 14.06104228095],
    ),
    "14.1": ("cart_pole", {}, POLE, [7.64826506585, -8.320336251616]),
    "14.1f": ("cart_pole", {"mu_p": 0.05}, POLE, [7.698317039224, -9.443875651004]),
    "14.2": (
        "cart_two_poles", {}, ([0.1, 0.2, -0.3], [-0.5, 0.7, 0.4], [4.0]),
        [1.209792435597, 11.10887809359, -17.62366335387],
    ),
    "14.3": (
        "cart_three_poles", {}, TRIPLE,
        [13.1477578611, -29.38476923953, -6.490024347868, 48.79391670413],
    ),
    "14.3n": (
        "cart_three_poles", QUIET, TRIPLE,
        [13.05681861329, -29.14520489267, -6.239571274762, 40.87585238401],
    ),
}  # fmt: skip
PRINTED_POLE = [7.598209088158, -7.19670696548]
PRINTED_TRIPLE = [19.22723216851, -82.27294452668, 45.14581103849, 37.9130084209]


def build(name, model, engine="plain", **choices):
    return dyn.solver(name).build(model, engine=engine, **choices)


def varied(name, seed):
    """Return an object with its own parameters (seed 0), or with others near them."""
    model, rng = planar_object(name), np.random.default_rng(seed)
    if not seed:
        return model
    return model.with_parameters(
        **{key: x * rng.uniform(0.7, 1.3) for key, x in model.parameters.items()}
    )


def smooth(name, seed=0):
    """Return an object without friction."""
    return varied(name, seed).with_parameters(
        **dict.fromkeys(FRICTION.get(name, ()), 0.0)
    )


def states(model, count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield (
            rng.normal(size=model.nq),
            2 * rng.normal(size=model.nq),
            rng.normal(size=model.nu),
        )


# --- an independent description: masses, angles, forces --------------------------------


def rods(model):
    """Return rows (length, mass, centre, inertia, mass at the end), and the cart's mass."""
    p, name = model.parameters, model.name
    if name == "pendulum":
        return [(p["l"], 0, 0, 0, p["m"])], None
    if name == "acrobot":
        return [
            (p[f"l{i}"], p[f"m{i}"], p[f"lc{i}"], p[f"I{i}"], 0) for i in (1, 2)
        ], None
    if name == "weight_lifter":
        return [(1, 0, 0, 0, 1), (1, 0, 0, 0, 1), (1, 0, 0, 0, p["m"])], None
    if name == "cart_pole":
        L = 2 * p["l"]
        return [(L, p["mp"], L / 2, p["mp"] * L**2 / 12, 0)], p["mc"]
    if name == "cart_two_poles":
        return [
            (
                p[f"L{i}"],
                p[f"m{i}"],
                p[f"L{i}"] / 2,
                p[f"m{i}"] * p[f"L{i}"] ** 2 / 12,
                0,
            )
            for i in (1, 2)
        ], p["m0"]
    return [(p[f"L{i}"], p[f"m{i}"], p[f"l{i}"], p[f"I{i}"], 0) for i in (1, 2, 3)], p[
        "M"
    ]


def is_upright(model):
    return model.name not in ("acrobot", "weight_lifter")


def forces(model, qd, u):
    """Return the forces along the coordinates, friction included."""
    p = model.parameters
    if model.name == "cart_pole":
        return np.array([u[0] - p["mu_c"] * np.sign(qd[0]), -p["mu_p"] * qd[1]])
    if model.name == "cart_two_poles":
        return np.array([u[0], 0, 0])
    if model.name == "cart_three_poles":
        D = np.diag([p["Cc"], p["C1"] + p["C2"], p["C2"] + p["C3"], p["C3"]])
        D[1, 2] = D[2, 1] = -p["C2"]
        D[2, 3] = D[3, 2] = -p["C3"]
        dry = [
            p["mu_x"] * p["A37"],
            p["mu_1"] * p["A38"],
            p["mu_2"] * p["A39"],
            p["mu_3"] * p["A40"],
        ]
        return np.array([p["Ks"] * u[0], 0, 0, 0]) - D @ qd - dry * np.sign(qd)
    return np.array(u)


def kinetic(model, q, qd):
    """Return T of the place of every mass, differentiated by hand; complex q will do."""
    rows, cart = rods(model)
    angles, rates = (q[1:], qd[1:]) if cart else (q, qd)
    if not is_upright(model):
        angles, rates = np.cumsum(angles), np.cumsum(rates)
    T, v = 0, np.array([qd[0] if cart else 0, 0])
    if cart:
        T = cart * qd[0] ** 2 / 2
    for (L, m, c, I, tip), t, w in zip(rows, angles, rates, strict=True):
        tangent = (
            np.array([np.cos(t), -np.sin(t)])
            if is_upright(model)
            else np.array([-np.sin(t), np.cos(t)])
        )
        u, v = v + c * w * tangent, v + L * w * tangent
        T = T + m * (u @ u) / 2 + I * w**2 / 2 + tip * (v @ v) / 2
    return T


def potential(model, q):
    rows, cart = rods(model)
    angles = q[1:] if cart else q
    heights = np.cos(angles) if is_upright(model) else np.sin(np.cumsum(angles))
    V, y = 0, 0
    for (L, m, c, _, tip), h in zip(rows, heights, strict=True):
        V, y = V + m * (y + c * h), y + L * h
        V = V + tip * y
    return V * model.parameters["g"]


def inertia(model, q):
    """Return the matrix of the quadratic form T, by polarisation."""
    unit = np.eye(model.nq)
    return np.array([
        [kinetic(model, q, a + b) - kinetic(model, q, a) - kinetic(model, q, b) for b in unit] for a in unit
    ])  # fmt: skip


def gradient(function, q):
    """Return the slopes of a function by complex steps."""
    return np.array([function(q + 1e-30j * e).imag / 1e-30 for e in np.eye(len(q))])


def lagrangian(model, q, qd, u):
    """Return qdd of  d/dt dT/dqd - d(T - V)/dq = forces."""
    change = (inertia(model, q + 1e-30j * qd) @ qd).imag / 1e-30
    right = (
        forces(model, qd, u) - change + gradient(lambda x: kinetic(model, x, qd), q)
        - gradient(lambda x: potential(model, x), q)
    )  # fmt: skip
    return np.linalg.solve(inertia(model, q), right)


def urdf(model):
    """Return the object as a URDF: plane x-z, angles relative; and how angles relate."""
    rows, cart = rods(model)
    axis, along = ("0 1 0", 2) if is_upright(model) else ("0 -1 0", 0)
    links, joints, parent, origin = ['<link name="base"/>'], [], "base", [0, 0, 0]
    if cart:
        links.append(_link("cart", cart, [0, 0, 0], 1.0))
        joints.append(_joint("x", "prismatic", "base", "cart", origin, "1 0 0"))
        parent = "cart"
    for i, (L, m, c, I, tip) in enumerate(rows):
        mass = m + tip
        centre = (m * c + tip * L) / mass
        about = I + m * (c - centre) ** 2 + tip * (L - centre) ** 2
        place, end = [0.0] * 3, [0.0] * 3
        place[along], end[along] = centre, L
        links.append(_link(f"rod{i}", mass, place, about))
        joints.append(
            _joint(f"theta{i}", "continuous", parent, f"rod{i}", origin, axis)
        )
        parent, origin = f"rod{i}", end
    change = np.eye(model.nq)
    if is_upright(model):
        for i in range(2 if cart else 1, model.nq):
            change[i, i - 1] = -1
    return f'<robot name="{model.name}">{"".join(links + joints)}</robot>', change


def _text(xyz):
    return " ".join(repr(float(x)) for x in xyz)


def _link(name, mass, place, I):
    return (
        f'<link name="{name}"><inertial><origin xyz="{_text(place)}"/><mass value="{mass!r}"/>'
        f'<inertia ixx="{I!r}" iyy="{I!r}" izz="{I!r}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def _joint(name, kind, parent, child, origin, axis):
    limit = (
        '<limit lower="-9" upper="9" effort="99" velocity="99"/>'
        if kind == "prismatic"
        else ""
    )
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{_text(origin)}"/><axis xyz="{axis}"/>{limit}</joint>'
    )


def printed_triple(p, q, qd, u, as_printed):
    """Return qdd of the cart with three poles from its table, or as it is printed.

    Source: WAW-14.3.
    """
    c, s, w = np.cos(q), np.sin(q), qd
    M, m1, m2, m3 = (p[k] for k in ("M", "m1", "m2", "m3"))
    (l1, l2, l3), L1, L2, g = (
        (p[k] for k in ("l1", "l2", "l3")),
        p["L1"],
        p["L2"],
        p["g"],
    )
    C1, C2, C3 = p["C1"], p["C2"], p["C3"]
    K1, K2, K3 = m1 * l1 + (m2 + m3) * L1, m2 * l2 + m3 * L2, m3 * l3
    B11 = p["I1"] + (m2 if as_printed else m1) * l1**2 + (m2 + m3) * L1**2
    B22, B33 = p["I2"] + m2 * l2**2 + m3 * L2**2, p["I3"] + m3 * l3**2
    c12, c13, c23 = np.cos([q[1] - q[2], q[1] - q[3], q[2] - q[3]])
    s12, s13, s23 = np.sin([q[1] - q[2], q[1] - q[3], q[2] - q[3]])
    B = np.array([
        [M + m1 + m2 + m3, K1 * c[1], K2 * c[2], K3 * c[3]],
        [K1 * c[1], B11, K2 * L1 * c12, K3 * L1 * c13],
        [K2 * c[2], K2 * L1 * c12, B22, K3 * L2 * c23],
        [K3 * c[3], K3 * L1 * c13, K3 * L2 * c23, B33],
    ])  # fmt: skip
    C = np.array([
        [p["Cc"], -K1 * s[1] * w[1], -K2 * s[2] * w[2], -K3 * s[3] * w[3]],
        [0, C1 + C2, K2 * L1 * s12 * w[2] - C2, K3 * L1 * s13 * w[3]],
        [0, -K2 * L1 * s12 * w[1] - C2, C2 + C3, K3 * L2 * s23 * w[3] - C3],
        [0, -K3 * L1 * s13 * w[1], -K3 * L2 * s23 * w[2] - C3, C3],
    ])  # fmt: skip
    h = -g * np.array([0, K1 * s[1], K2 * s[2], K3 * s[3]])
    mu = np.array(
        [
            p["mu_x"] * p["A37"],
            p["mu_1"] * p["A38"],
            p["mu_2"] * p["A39"],
            p["mu_3"] * p["A40"],
        ]
    )
    f = -mu * np.sign(q if as_printed else qd) + [p["Ks"] * u[0], 0, 0, 0]
    return np.linalg.solve(B, f - C @ qd - h)


# --- accelerations ---------------------------------------------------------------------


@ENGINES
@pytest.mark.parametrize("case", REFERENCES)
def test_accelerations_are_the_reference_values(case, engine):
    """Source: WAW-13.1, WAW-13.2, WAW-13.3, WAW-14.1, WAW-14.2, WAW-14.3; section K."""
    name, parameters, state, wanted = REFERENCES[case]
    program = build("object_closed_form", planar_object(name, **parameters), engine)
    np.testing.assert_allclose(program(*state), wanted, rtol=1e-11)


@ENGINES
def test_what_is_printed_is_not_reproduced(engine):
    """The slips E15 and E17, made on purpose, give the values of the source.

    Source: WAW-14.1, WAW-14.3.
    """
    right = planar_object("cart_pole", mu_p=0.05)
    wrong = right.with_values({"mu_p": [-0.05]})
    np.testing.assert_allclose(
        build("object_closed_form", wrong, engine)(*POLE), PRINTED_POLE, rtol=1e-11
    )
    assert (
        abs(build("object_closed_form", right, engine)(*POLE)[1] - PRINTED_POLE[1]) > 1
    )
    triple = planar_object("cart_three_poles")
    state = [np.array(part) for part in TRIPLE]
    printed = printed_triple(triple.parameters, *state, as_printed=True)
    np.testing.assert_allclose(printed, PRINTED_TRIPLE, rtol=1e-11)
    qdd = build("object_closed_form", triple, engine)(*TRIPLE)
    assert np.abs(qdd - PRINTED_TRIPLE).min() > 1
    np.testing.assert_allclose(
        qdd, printed_triple(triple.parameters, *state, as_printed=False), rtol=1e-12
    )


@EACH
@pytest.mark.parametrize("seed", range(4))
def test_accelerations_are_those_of_the_lagrangian(name, seed):
    """Source: WAW-H, check (i)."""
    model = varied(name, seed)
    program = build("object_closed_form", model, "graph")
    for q, qd, u in states(model, 25, seed):
        wanted = lagrangian(model, q, qd, u)
        np.testing.assert_allclose(
            program(q, qd, u), wanted, atol=1e-11 * max(1, abs(wanted).max())
        )


@EACH
@pytest.mark.parametrize("seed", range(3))
def test_accelerations_are_those_of_the_general_engine(name, seed):
    """The same masses as a URDF, by aba.

    Source: WAW-H, check (iii); WAW-15.2.
    """
    model = varied(name, seed)
    text, change = urdf(model)
    robot = dyn.load_urdf(text, gravity=(0, 0, -model.parameters["g"]), check="warn")
    aba = build("aba", robot, "graph")
    program = build("object_closed_form", model, "graph")
    for q, qd, u in states(model, 25, seed + 10):
        tau = np.linalg.solve(change.T, forces(model, qd, u))
        wanted = np.linalg.solve(change, aba(change @ q, change @ qd, tau))
        np.testing.assert_allclose(
            program(q, qd, u), wanted, atol=1e-10 * max(1, abs(wanted).max())
        )


@EACH
@ENGINES
def test_engines_agree_on_batches(name, engine):
    """plain = graph = native, a batch = its rows."""
    model = varied(name, 5)
    q, qd, u = (np.array(x) for x in zip(*states(model, 9, 5), strict=True))
    program = build("object_closed_form", model, engine)
    outputs = program(q, qd, u)
    np.testing.assert_allclose(
        outputs, build("object_closed_form", model)(q, qd, u), rtol=1e-11, atol=1e-11
    )
    rows = [program(*row) for row in zip(q, qd, u, strict=True)]
    np.testing.assert_allclose(outputs, rows, rtol=1e-12, atol=1e-12)


def test_friction_is_zero_at_rest():
    """sgn 0 = 0: nothing moves a cart that rests upright.

    Source: WAW-14.1, WAW-14.3.
    """
    for name in ("cart_pole", "cart_two_poles", "cart_three_poles"):
        model = planar_object(name)
        zero = np.zeros(model.nq)
        assert not build("object_closed_form", model)(zero, zero, [0.0]).any()


# --- energy ----------------------------------------------------------------------------


@EACH
@ENGINES
def test_energies_are_those_of_the_masses(name, engine):
    """Source: WAW-H, check (iv)."""
    model = varied(name, 2)
    program = build("object_energy", model, engine)
    for q, qd, _ in states(model, 10, 2):
        energies = program(q, qd)
        np.testing.assert_allclose(energies.kinetic, kinetic(model, q, qd), rtol=1e-12)
        np.testing.assert_allclose(
            energies.potential, potential(model, q), rtol=1e-12, atol=1e-12
        )


@EACH
@pytest.mark.parametrize("seed", (0, 3))
def test_power_is_that_of_efforts_and_friction(name, seed):
    """d/dt (T + V) = qd . efforts, and friction takes: qd . efforts(qd, 0) <= 0.

    Source: WAW-H, check (iv).
    """
    model = varied(name, seed)
    energy, dynamics = build("object_energy", model), build("object_closed_form", model)
    for q, qd, u in states(model, 25, 4):
        qdd, h = dynamics(q, qd, u), 1e-30
        rate = sum(x.imag for x in energy(q + 1j * h * qd, qd + 1j * h * qdd)) / h
        power = qd @ np.array(model.efforts(model.parameters, qd, u))
        np.testing.assert_allclose(rate, power, atol=1e-10 * max(1, abs(qdd).max()))
        np.testing.assert_allclose(
            power, qd @ forces(model, qd, u), rtol=1e-12, atol=1e-12
        )
        taken = qd @ np.array(model.efforts(model.parameters, qd, 0 * u))
        assert taken <= 0
        assert taken < 0 or name not in FRICTION


# --- small angles ----------------------------------------------------------------------


def growth(model, q):
    """Return the squares of the eigenvalues of the motion near an equilibrium, sorted."""
    program, zero = build("object_closed_form", model), np.zeros(model.nq)
    u, h = np.zeros(model.nu), 1e-30
    assert np.abs(program(q, zero, u)).max() < 1e-13
    slopes = [
        program(q + 1j * h * e, zero + 0j, u + 0j).imag / h for e in np.eye(model.nq)
    ]
    return np.sort(np.linalg.eigvals(np.transpose(slopes)).real)


def test_small_motion_of_pendulum_and_cart_pole():
    """Eigenvalues upright: g/l of the pendulum; g M/(l (4/3 M - mp)) of the pole.

    Source: WAW-H, check (v).
    """
    pendulum = planar_object("pendulum", l=0.7, g=9.81, m=2.0)
    np.testing.assert_allclose(growth(pendulum, np.zeros(1)), [9.81 / 0.7], rtol=1e-13)
    np.testing.assert_allclose(
        growth(pendulum, np.array([np.pi])), [-9.81 / 0.7], rtol=1e-13
    )
    pole = smooth("cart_pole")
    g, l, mp, M = 9.81, 0.5, 0.1, 1.1
    wanted = g * M / (l * (4 / 3 * M - mp))
    np.testing.assert_allclose(
        growth(pole, np.zeros(2)), [0, wanted], rtol=1e-12, atol=1e-12
    )


@EACH
@pytest.mark.parametrize("seed", (0, 1))
def test_small_motion_is_that_of_the_lagrangian(name, seed):
    """Squares of the eigenvalues are those of -B^-1 d²V/dq², upright and hanging.

    Source: WAW-H, check (v).
    """
    model = smooth(name, seed)
    up, down = np.zeros(model.nq), np.zeros(model.nq)
    if is_upright(model):
        down[-len(rods(model)[0]) :] = np.pi
    else:
        up[0], down[0] = np.pi / 2, -np.pi / 2
    for q, sign in ((up, 1), (down, -1)):
        h = 1e-3

        def slope(x):
            return gradient(lambda y: potential(model, y), x)

        K = [(8 * (slope(q + h * e) - slope(q - h * e)) - slope(q + 2 * h * e) + slope(q - 2 * h * e)) / (12 * h)
             for e in np.eye(model.nq)]  # fmt: skip
        wanted = np.sort(np.linalg.eigvals(-np.linalg.solve(inertia(model, q), K)).real)
        growths = growth(model, q)
        np.testing.assert_allclose(growths, wanted, rtol=1e-8, atol=1e-8)
        assert (sign * growths > -1e-9).all()


# --- steps -----------------------------------------------------------------------------


@EACH
@ENGINES
def test_steps_are_their_equations(name, engine):
    """One step of each scheme from its own formula.

    Source: WAW-3.1.
    """
    model = varied(name, 1)
    dynamics = build("object_closed_form", model)
    (q, qd, u), dt = next(states(model, 1, 1)), 0.02
    a = dynamics(q, qd, u)
    for solver, wanted in (
        ("object_euler", (q + dt * qd, qd + dt * a)),
        ("object_semi_implicit", (q + dt * (qd + dt * a), qd + dt * a)),
    ):
        stepped = build(solver, model, engine)(q, qd, u, dt)
        np.testing.assert_allclose(np.array(stepped), wanted, rtol=1e-12)

    def rate(y):
        return np.concatenate(
            [y[model.nq :], dynamics(y[: model.nq], y[model.nq :], u)]
        )

    y = np.concatenate([q, qd])
    k1 = rate(y)
    k2 = rate(y + dt / 2 * k1)
    k3 = rate(y + dt / 2 * k2)
    k4 = rate(y + dt * k3)
    stepped = build("object_rk4", model, engine)(q, qd, u, dt)
    np.testing.assert_allclose(
        np.concatenate(stepped), y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), rtol=1e-11
    )


@pytest.mark.parametrize(
    ("solver", "order"),
    [("object_euler", 1), ("object_semi_implicit", 1), ("object_rk4", 4)],
)
def test_steps_have_their_order(solver, order):
    """Halving the step divides the error by 2^order; without friction, for smoothness."""
    model = smooth("cart_two_poles")
    program = build(solver, model, available()[-1])
    best = build("object_rk4", model, available()[-1])

    def end(step, count):
        q, qd = np.array([0.1, 0.2, -0.3]), np.zeros(3)
        for _ in range(count):
            q, qd = step(q, qd, [0.5], 0.4 / count)
        return np.concatenate([q, qd])

    exact = end(best, 1600)
    errors = [np.abs(end(program, count) - exact).max() for count in (100, 200)]
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.15


def test_a_step_takes_any_solver_of_the_dynamics():
    """The slot object_dynamics, and parameters as inputs of a step.

    Source: WAW-3.1.
    """
    model = planar_object("cart_pole")
    named = build("object_euler", model, "graph", object_dynamics="object_closed_form")
    plain = build("object_euler", model, "graph")
    np.testing.assert_array_equal(
        np.array(named(*POLE, 0.02)), np.array(plain(*POLE, 0.02))
    )
    with pytest.raises(dyn.SignatureError, match="object_dynamics"):
        build("object_euler", model, object_dynamics="object_energy")


# --- parameters ------------------------------------------------------------------------


@EACH
@ENGINES
def test_parameters_may_be_inputs(name, engine):
    """A Program with all parameters as inputs, built of one object, serves another."""
    first, other = planar_object(name), varied(name, 4)
    program = build("object_closed_form", first, engine, inputs=list(first.parameters))
    q, qd, u = next(states(first, 1, 3))
    outputs = program(q, qd, u, *other.parameters.values())
    np.testing.assert_allclose(
        outputs, build("object_closed_form", other)(q, qd, u), rtol=1e-10
    )
    np.testing.assert_allclose(
        program(q, qd, u), build("object_closed_form", first)(q, qd, u), rtol=1e-10
    )


def test_an_inertia_that_is_not_positive_is_refused_as_it_runs():
    """A negative mass that comes as an input is a SingularError."""
    model = planar_object("acrobot")
    program = build("object_closed_form", model, inputs=["I2"])
    with pytest.raises(dyn.SingularError, match="acrobot: inertia along coordinate 1"):
        program(*ACROBOT, -5.0)


def test_bad_input_is_named():
    """Unknown objects and parameters, numbers without sense, wrong sizes, NaN.

    Source: WAW-13.1, WAW-14.1.
    """
    with pytest.raises(
        ModelError, match=r"'acrobat'; did you mean 'acrobot'\? valid: pend"
    ):
        planar_object("acrobat")
    with pytest.raises(ModelError, match=r"no parameter 'mass'; valid: l, m, g"):
        planar_object("pendulum", mass=2.0)
    pole = planar_object("cart_pole")
    for parameters, message in (
        ({"mp": 0.0}, r"mp \[kg\] must be finite and > 0, got 0.0"),
        ({"l": -1.0}, r"l \[m\] must be finite and > 0"),
        ({"mu_p": -1e-6}, r"mu_p \[N·m·s\] must be finite and >= 0"),
        ({"g": np.nan}, r"g \[m/s²\] must be finite, got nan"),
        ({"mc": np.inf}, "finite"),
        ({"mc": "heavy"}, "mc must be a number, got 'heavy'"),
        ({"mc": [1.0, 2.0]}, "mc must be a number"),
    ):
        with pytest.raises(ModelError, match=message) as caught:
            pole.with_parameters(**parameters)
        assert caught.value.element == next(iter(parameters))
    assert pole.with_parameters(g=-1.0, mu_c=0).parameters["mu_c"] == 0.0
    for call in (
        pole.parameter,
        pole.unit,
        lambda path: pole.with_values({path: [1.0]}),
    ):
        with pytest.raises(ModelError, match=r"'tau'; valid: mc, mp"):
            call("tau")
    program = build("object_closed_form", pole)
    with pytest.raises(ShapeError):
        program([0.1], [0.0, 0.0], [1.0])
    with pytest.raises(ShapeError):
        program([0.1, 0.2], [0.0, 0.0], [1.0, 2.0])
    with pytest.raises(dyn.NonFiniteError):
        build("object_closed_form", pole, finite=True)([0.1, np.nan], [0.0, 0.0], [1.0])
    for engine in available()[1:]:
        assert np.isnan(
            build("object_closed_form", pole, engine)([0.1, np.nan], [0.0, 0.0], [1.0])
        ).all()
    with pytest.raises(dyn.UnsupportedError, match="for a planar_object"):
        build("object_closed_form", pole.to_chain())


@EACH
def test_objects_describe_themselves(name):
    """Sizes, units, bounds; what is shipped is not changed by a copy; it pickles.

    Source: WAW-13.1, WAW-14.1.
    """
    model = planar_object(name)
    assert model.sizes == {"nq": len(model.coordinates), "nu": len(model.effort_bounds)}
    assert len(model.position_bounds) == model.nq
    assert all(model.unit(path) for path in model.parameters)
    heavier = model.with_parameters(g=3.0)
    assert OBJECTS[name].parameters["g"] != 3.0 == heavier.parameters["g"]
    again = pickle.loads(pickle.dumps(heavier))
    q, qd, u = next(states(model, 1, 0))
    result = build("object_closed_form", again)(q, qd, u)
    np.testing.assert_array_equal(
        result, build("object_closed_form", heavier)(q, qd, u)
    )
    assert planar_object("pendulum").effort_bounds == ((-0.225, 0.225),)
    assert planar_object("cart_pole").effort_bounds == ((-10.0, 10.0),)
    assert planar_object("cart_pole").position_bounds[0] == (-2.4, 2.4)


def _spring(p, q, qd, u):
    return [(u[0] - p["k"] * q[0]) * (1.0 / p["m"])]


def _spring_energy(p, q, qd):
    return p["m"] * qd[0] * qd[0] * 0.5, p["k"] * q[0] * q[0] * 0.5


def test_an_object_of_ones_own():
    """An equation of the user's serves, without a chain; what does not fit is named."""
    parts = {
        "name": "spring", "coordinates": ("x",), "nu": 1, "parameters": {"m": 2.0, "k": 8.0},
        "units": {"m": "kg", "k": "N/m"}, "equation": _spring, "energy_of": _spring_energy,
        "efforts": lambda p, qd, u: list(u), "effort_bounds": ((-1, 1),), "position_bounds": ((-1, 1),),
    }  # fmt: skip
    spring = PlanarObject(**parts)
    for engine in available():
        assert build("object_closed_form", spring, engine)([0.5], [0.0], [1.0]) == [
            -1.5
        ]
    with pytest.raises(ModelError, match="spring has no planar chain"):
        spring.to_chain()
    with pytest.raises(ModelError, match="lacks the other: k"):
        PlanarObject(**parts | {"units": {"m": "kg"}})
    with pytest.raises(ModelError, match="effort_bounds must be 1 pairs"):
        PlanarObject(**parts | {"effort_bounds": ()})


# --- chains ----------------------------------------------------------------------------


SPLIT = [
    (name, split)
    for name in NAMES
    for split in (False, True)
    if (name, split) != ("acrobot", True)
]


def chain_of(name, split, seed=0):
    model = varied(name, seed)
    if name == "acrobot" and split:
        model = model.with_parameters(I1=1 / 12, I2=1 / 12)
    return model, model.to_chain(split)


@pytest.mark.parametrize(("name", "split"), SPLIT)
def test_the_chain_has_the_rods(name, split):
    """Joint 0 is fixed or on a line; a rod is a link, or two with a held joint.

    Source: WAW-13.4.
    """
    model, chain = chain_of(name, split)
    rows, cart = rods(model)
    massive = [row for row in rows if row[1]]
    assert chain.n == 1 + len(rows) + (len(massive) if split else 0)
    assert chain.constraints.kind == (1.0 if cart else 2.0, *[0.0] * (chain.n - 1))
    assert chain.masses[0] >= (cart or 0)
    assert chain.gravity == (0.0, -model.parameters["g"])
    assert chain.name == name
    total = sum(m + tip for _, m, _, _, tip in rows) + (cart or 0)
    np.testing.assert_allclose(sum(chain.weights), total)
    np.testing.assert_allclose(sum(chain.lengths), sum(row[0] for row in rows))
    if split:
        assert not any(chain.link_masses)
        assert sum(chain.constraints.active) == len(massive)
    else:
        assert chain.link_masses == pytest.approx([row[1] for row in rows])
        assert not any(chain.constraints.active)


@pytest.mark.parametrize(("name", "split"), SPLIT)
def test_the_chain_accelerates_as_the_object(name, split):
    """The recursion of the chain gives what the closed form gives, efforts included.

    Source: WAW-13.4.
    """
    model = varied(name, 0)
    by_chain = build("object_chain", model, split=split)
    closed = build("object_closed_form", model)
    for q, qd, u in states(model, 2, 7):
        np.testing.assert_allclose(by_chain(q, qd, u), closed(q, qd, u), rtol=1e-8)


def test_a_split_cart_pole_and_the_point_masses_of_the_source():
    """m/6, 2m/3, m/6 of a uniform rod; the weight lifter is a chain of points.

    Source: WAW-13.4, WAW-13.3.
    """
    chain = planar_object("cart_pole").to_chain(split=True)
    np.testing.assert_allclose(chain.masses, [1 + 0.1 / 6, 0.2 / 3, 0.1 / 6])
    assert chain.lengths == (0.5, 0.5)
    assert chain.constraints.active == (False, True, False)
    chain = planar_object("weight_lifter", m=1.5).to_chain()
    assert chain.masses[1:] == (1.0, 1.0, 1.5)
    assert not any(chain.link_masses)
    with pytest.raises(ModelError, match="rod 1 has no split .* valid: split=False"):
        planar_object("acrobot").to_chain(split=True)


@pytest.mark.parametrize(("name", "split"), [*SPLIT, ("acrobot", True)])
def test_the_chain_has_the_energy_and_the_power(name, split):
    """T, V and the power of efforts of object and chain are the same, so is the motion.

        T = sum start |v_i|²/2 + end |v_{i+1}|²/2 + between v_i . v_{i+1}

    Source: WAW-13.4, WAW-4.2.
    """
    model, chain = chain_of(name, split, seed=0 if split else 6)
    for q, qd, u in states(model, 10, 7):
        x0, v0, theta, rates = model.chain_state(q, qd, split)
        x, v = from_angles(chain, x0, v0, theta, rates)
        T = sum(m * (w @ w) / 2 for m, w in zip(chain.masses, v, strict=True))
        for i, (start, end, between) in enumerate(chain.shares):
            T += (
                start * (v[i] @ v[i]) / 2
                + end * (v[i + 1] @ v[i + 1]) / 2
                + between * (v[i] @ v[i + 1])
            )
        np.testing.assert_allclose(T, kinetic(model, q, qd), rtol=1e-12)
        V = -sum(m * (x[i] @ chain.gravity) for i, m in enumerate(chain.weights))
        np.testing.assert_allclose(V, potential(model, q), rtol=1e-12, atol=1e-12)
        tau, force = model.chain_efforts(u, qd, split)
        assert len(tau) == chain.n
        assert tau[-1] == 0.0
        np.testing.assert_allclose(
            np.dot(tau[:-1], rates) + np.dot(force, v0),
            qd @ forces(model, qd, u),
            rtol=1e-11,
            atol=1e-12,
        )
        velocity = model.from_chain(
            model.chain_state(q, qd, split)[3] + [0.0], v0, split
        )
        np.testing.assert_allclose(velocity, qd, rtol=1e-12)


def test_the_tip_of_the_pole():
    """The pole's tip is at x + 2 l sin theta, 2 l cos theta.

    Source: WAW-14.1, WAW-13.4.
    """
    model = planar_object("cart_pole")
    for split in (False, True):
        x0, v0, theta, rates = model.chain_state([0.3, 0.4], [0.0, 1.0], split)
        state = from_angles(model.to_chain(split), x0, v0, theta, rates)
        np.testing.assert_allclose(
            state.x[-1], [0.3 + np.sin(0.4), np.cos(0.4)], rtol=1e-14
        )
        np.testing.assert_allclose(state.v[-1], [np.cos(0.4), -np.sin(0.4)], rtol=1e-14)
    tau, force = model.chain_efforts([3.0])
    assert (tau, force) == ([0.0, 0.0], (3.0, 0.0))


def test_chains_refuse_wrong_sizes():
    """q, qd and u are as long as the object says.

    Source: WAW-13.4.
    """
    model = planar_object("cart_pole")
    for call, name in (
        (lambda: model.chain_state([0.1], [0.0, 0.0]), "q"),
        (lambda: model.chain_state([0.1, 0.0], [0.0]), "qd"),
        (lambda: model.chain_efforts([1.0, 2.0]), "u"),
        (lambda: model.chain_efforts([1.0], [0.0]), "qd"),
    ):
        with pytest.raises(ShapeError) as caught:
            call()
        assert caught.value.name == name


def test_chains_of_symbols():
    """A chain of parameters that are inputs of a Program has the masses they give.

    Source: WAW-13.4.
    """

    def algorithm(model, q, qd):
        chain = model.to_chain(split=True)
        return chain.masses[1], chain.lengths[0] + chain.weights[0]

    solver = dyn.authoring.TracedSolver(
        "chain_masses", dyn.planar.problems.OBJECT_ENERGY, algorithm, by_joint=False
    )
    program = solver.build(
        planar_object("cart_pole"), engine="graph", inputs=["mp", "l"]
    )
    outputs = program([0.0, 0.0], [0.0, 0.0], 0.3, 0.7)
    np.testing.assert_allclose(outputs, [0.2, 0.7 + 1 + 0.05], rtol=1e-14)
    assert isinstance(planar_object("cart_pole").rods, Rods)


def test_efforts_without_known_bounds_are_open():
    """From -inf to inf; as are coordinates without a track."""
    open_pair = (-np.inf, np.inf)
    acrobot = planar_object("acrobot")
    assert acrobot.effort_bounds == acrobot.position_bounds == (open_pair, open_pair)
