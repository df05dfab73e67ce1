"""Coriolis matrix: Christoffel's symbols of H, on every joint kind."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.authoring import Matrix, TracedSolver, cos, sin
from dyn_core.errors import UnsupportedError
from dyn_core.model.joints import KINDS
from dyn_core.problems import CORIOLIS_FORCE, CORIOLIS_MATRIX
from dyn_core.testing import TOLERANCES, scaled_error
from dyn_core.testing.case import derivative
from dyn_core.testing.conformance import check
from dyn_core.testing.models import random_model
from dyn_plugins.dynamics.coriolis_matrix import coriolis_matrix

QUATERNIONS = ("spherical", "floating")
RATES = tuple(kind for kind in KINDS if kind not in QUATERNIONS)  # qd = dq/dt


def _near(result, expected, tolerance=TOLERANCES["law"]):
    assert scaled_error(result, expected) <= tolerance


def _programs(model, *names):
    return [dyn.solver(name).build(model, engine="graph") for name in names]


def _without_armature(model):
    zeros = {f"{model.names[i]}.armature": (0.0,) for i in model.bodies}
    return model.with_values(zeros)


def _drawn(model, seed):
    rng = np.random.default_rng(seed)
    return model.random(rng), *rng.normal(size=(2, model.nv))


@pytest.mark.parametrize("kind", KINDS)
def test_each_joint_kind_obeys_both_laws(kind):
    """Cm qd = c and dH/dt = Cm + Cm.T where all joints are of one kind."""
    model = random_model(3, size=3, kinds=(kind,), mimic=0.0)
    Cm, c, H = _programs(model, "coriolis_matrix", "coriolis", "crba")
    q, qd, _ = _drawn(model, 3)
    M = Cm(q, qd)
    assert np.abs(M).max(initial=0.0) > 1e-3 or kind == "prismatic"
    _near(M @ qd, c(q, qd), TOLERANCES["exact"])
    _near(derivative(lambda t: H(model.integrate(q, qd * t))), M + M.T)


@pytest.mark.parametrize("seed", range(3))
def test_entries_are_christoffel_symbols(seed):
    """Cm_ij = sum_k (dH_ij/dq_k + dH_ik/dq_j - dH_jk/dq_i) qd_k / 2 where qd = dq/dt.

    Followers and gears included: their leaders' coordinates are such, too.
    """
    model = random_model(seed, size=5, kinds=RATES, mimic=0.5)
    Cm, H = _programs(model, "coriolis_matrix", "crba")
    q, qd, _ = _drawn(model, seed)
    units = np.eye(model.nv)
    dH = np.array([derivative(lambda t, e=e: H(q + e * t)) for e in units])  # [k, i, j]
    symbols = (
        np.einsum("kij->ijk", dH)
        + np.einsum("jik->ijk", dH)
        - np.einsum("ijk->ijk", dH)
    ) / 2
    _near(Cm(q, qd), symbols @ qd)


@pytest.mark.parametrize("seed", range(3))
def test_velocities_commute_up_to_their_bracket(seed):
    """Cm(q, a) b - Cm(q, b) a = H [a, b], zero where qd = dq/dt; Cm is linear in qd.

    H is without armature, which has no velocity forces.
    """
    model = random_model(seed, size=5, kinds=(*QUATERNIONS, *RATES))
    model = _without_armature(model)
    Cm, H = _programs(model, "coriolis_matrix", "crba")
    q, a, b = _drawn(model, seed)
    bracket = 2 * derivative(lambda s: model.tangent_rate(s * a, b))
    _near(Cm(q, a) @ b - Cm(q, b) @ a, H(q) @ bracket)
    _near(Cm(q, 2 * a - b), 2 * Cm(q, a) - Cm(q, b), TOLERANCES["exact"])


def test_driven_places_enter_the_rate_of_H(shipped):
    """dH/dt = Cm + Cm.T where a place moves with time; c - Cm qd is the drive's part.

    That part is c of the robot at rest, and what the drive's velocity adds to dH/dt.
    """
    model = shipped["arm7"]
    joint = model.joint_names[2]
    model = model.drive(
        joint, lambda t: (None, (0.0, sin(t) * 0.2, cos(t * 2.0) * 0.1))
    )
    Cm, c, H = (
        dyn.solver(name).build(model, engine="graph", inputs=["time"])
        for name in ("coriolis_matrix", "coriolis", "crba")
    )
    (q, qd, _), now = _drawn(model, 0), 0.3
    M, still = Cm(q, qd, now), 0 * qd
    rate = derivative(lambda t: H(model.integrate(q, qd * t), now + t))
    _near(rate, M + M.T)
    drive = c(q, still, now) + Cm(q, still, now) @ qd
    assert np.abs(drive).max() > 0.1
    _near(c(q, qd, now), M @ qd + drive, TOLERANCES["exact"])


def test_neither_gravity_nor_armature_acts(shipped):
    """The matrix is that of another gravity and of no rotors; inputs are refused."""
    model = shipped["arm7"]
    bare = _without_armature(model).with_values({"gravity": (1.0, 2.0, 3.0)})
    q, qd, _ = _drawn(model, 0)
    of_model, of_bare = (
        _programs(x, "coriolis_matrix")[0](q, qd) for x in (model, bare)
    )
    _near(of_model, of_bare, TOLERANCES["exact"])
    for path in ("gravity", "joint1.armature"):
        with pytest.raises(UnsupportedError, match="armature|gravity"):
            dyn.solver("coriolis_matrix").build(model, inputs=[path])


def test_passive_adaptive_control_follows(shipped):
    """The law of Slotine and Li, tau = H a + Cm v + g - K s, needs Cm and not c.

    With s = qd - v its closed loop is H ds/dt + Cm s + K s = 0, so that
    d(s.H s)/dt = -2 s.K s along it.
    """
    model = shipped["arm7"]
    Cm, H, aba, g = _programs(model, "coriolis_matrix", "crba", "aba", "gravity")
    q, qd, v = _drawn(model, 1)
    a, K = np.linspace(-1, 1, model.nv), np.diag(np.linspace(1, 3, model.nv))
    s, M = qd - v, Cm(q, qd)
    tau = H(q) @ a + M @ v + g(q) - K @ s
    ds = aba(q, qd, tau) - a
    rate = derivative(lambda t: H(model.integrate(q, qd * t)))
    _near(2 * s @ H(q) @ ds + s @ rate @ s, -2 * s @ K @ s)


def _transposed(model, q, qd):
    return {(j, i): block.T for (i, j), block in coriolis_matrix(model, q, qd).items()}


def _outer(model, q, qd, c):
    """Return c qd.T / |qd|²: it gives c, but H changes otherwise."""
    force, square = c(q, qd), qd @ qd
    return Matrix([x * y / square for y in qd] for x in force)


def test_each_law_finds_what_the_other_passes(shipped):
    """The transpose has the rate of H, c qd.T / |qd|² has c: both are found wrong."""
    force = {"slots": {"c": CORIOLIS_FORCE}, "fills": {"c": dyn.solver("coriolis")}}
    for algorithm, more, law in (
        (_transposed, {}, "matrix_gives_coriolis_force"),
        (_outer, {"by_joint": False, **force}, "rate_of_H_is_twice_the_symmetric_part"),
    ):
        wrong = TracedSolver("wrong", CORIOLIS_MATRIX, algorithm, **more)
        findings = check(wrong, shipped["arm7"], "graph")
        assert [finding.law for finding in findings if not finding.good] == [law]
