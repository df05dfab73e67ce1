"""Energy of a run, from the terms that its steps used."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.contact.stepping.integration import gyroscopic_change
from dyn_core.problems import CONTACT_SOLVE
from dyn_core.recordings import energy_ledger, run_record
from dyn_core.reports.sections import energy_sentence
from dyn_core.solving.registry import solvers

STEPPERS = ("stewart_trinkle", "anitescu_potra", "moreau_jean", "event_driven")
SOLVERS = [
    name
    for name in solvers(CONTACT_SOLVE)
    if name not in ("principal_pivoting", "soft_contact")  # no friction; sinks
]
NO_GROUND = {"half_spaces": []}


@cache
def _standing():
    """Return a quadruped, a position in which it stands, and its joint forces there."""
    model, home = dyn.load("quadruped"), np.zeros(19)
    home[[2, 6]], home[7:] = (0.34, 1.0), (0.0, 0.72, -1.44) * 4

    def hold(t, q, qd):
        return np.r_[np.zeros(6), 120 * (home[7:] - q[7:]) - 2 * qd[6:]]

    run = dyn.simulate(model, hold, world={}, duration=1.5, q0=home)
    assert abs(run.qd[-1]).max() < 1e-9
    return model, run.q[-1], run.tau[-1]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("period", [0.004, 0.0005])
@pytest.mark.parametrize(
    ("stepper", "name"),
    [(stepper, "coulomb_newton") for stepper in STEPPERS]
    + [("stewart_trinkle", name) for name in SOLVERS if name != "coulomb_newton"],
)
def test_a_robot_that_stands_exchanges_no_energy(stepper, name, period):
    """Work, dissipation and constraints are zero at rest, at every period."""
    model, q, tau = _standing()
    run = dyn.simulate(
        model,
        lambda t, q, qd: tau,
        world={"stepper": stepper, "solver": name},
        q0=q,
        period=period,
        duration=6 * period,
    )
    ledger = energy_ledger(model, run)
    assert run.reports[0][-1].total_force[2] > 100
    for part in ("work", "dissipation", "constraints", "correction", "residual"):
        assert abs(getattr(ledger, part)).max() < 1e-7, part


def _arm(**passive):
    """Return an arm whose friction is in the joints that are named."""
    model = dyn.load("arm7")
    values = {f"joint{k}.friction": 0.0 for k in range(1, 8)}
    return model.with_values(values | passive)


RUNS = {
    "motors": {},
    "explicit": {"step": "rk4"},
    "substeps": {"substeps": 3},
    "weight": {"compensates_gravity": True},
    "prescribed": {"prescribed": ["joint2", "joint4"]},
    "world": {"world": NO_GROUND},
    "midpoint": {"world": {**NO_GROUND, "stepper": "moreau_jean"}},
    "events": {"world": {**NO_GROUND, "stepper": "event_driven"}},
    "smooth": {"world": {**NO_GROUND, "joint_friction": False}},
    "world substeps": {"world": NO_GROUND, "substeps": 3},
    "world weight": {"world": NO_GROUND, "compensates_gravity": True},
    "world prescribed": {"world": NO_GROUND, "prescribed": ["joint2", "joint4"]},
    "lemke prescribed": {
        "world": {**NO_GROUND, "solver": "lemke"},
        "prescribed": ["joint2", "joint4"],
    },
}


@pytest.mark.one_of(4)
@pytest.mark.parametrize("name", RUNS)
def test_energy_adds_up_for_whatever_drives_the_robot(name):
    """The residual is small and shrinks with the period; nothing is left out."""
    model = _arm(
        **{f"joint{k}.damping": 0.4 for k in range(1, 8)},
        **{"joint3.friction": 0.3, "joint5.friction": 0.2, "joint6.stiffness": 3.0},
    )
    gravity = dyn.solver("gravity").build(model)
    carries = "weight" in name
    size = np.array([4.0, 4, 4, 4, 0.5, 0.5, 0.2])

    def law(t, q, qd):
        push = size * np.sin(9 * t + np.arange(7))
        return push if carries else push + gravity(q)

    q0 = model.position({"joint2": 0.4, "joint4": -1.0, "joint6": 1.5})
    worst = []
    for period in (0.004, 0.002):
        run = dyn.simulate(
            model, law, q0=q0, qd0=np.full(7, 0.4), period=period, duration=0.2,
            **RUNS[name],
        )  # fmt: skip
        ledger = energy_ledger(model, run)
        assert abs(ledger.work).max() > 0.3
        assert ledger.dissipation[-1] > 0.03
        assert (np.diff(ledger.dissipation) >= -1e-9).all()
        worst.append(abs(ledger.residual).max())
        print(period, [f"{abs(x - x[0]).max():.4g}" for x in ledger])
    assert worst[1] < 0.65 * worst[0]


@pytest.mark.parametrize(
    "world", [None, NO_GROUND, {**NO_GROUND, "joint_friction": False}]
)
@pytest.mark.parametrize(("friction", "damping"), [(0.5, 0.0), (0.0, 0.3), (0.2, 0.1)])
def test_friction_takes_what_the_step_gives_it(friction, damping, world):
    """Of a joint of constant inertia nothing is missing, even where a step overshoots.

    Dry friction that is a force turns the light joint to and fro about rest, and takes
    nothing there.
    """
    model = dyn.load_urdf(
        '<robot name="r"><link name="base"/><link name="a"><inertial><mass value="1"/>'
        '<inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/>'
        '</inertial></link><joint name="j" type="continuous"><parent link="base"/>'
        f'<child link="a"/><axis xyz="0 0 1"/><dynamics friction="{friction}"'
        f' damping="{damping}"/></joint></robot>'
    )
    run = dyn.simulate(
        model, lambda t, q, qd: [0.1 * (t < 0.02)], qd0=[0.5], world=world, duration=0.1
    )
    ledger = energy_ledger(model, run)
    had = 0.001 * 0.5**2 / 2 + ledger.work
    assert ledger.dissipation[-1] == pytest.approx((had - ledger.kinetic)[-1], rel=1e-9)
    assert abs(ledger.residual).max() < 1e-12


@pytest.mark.one_of(2)
@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("e", [0.0, 0.6])
def test_an_impact_takes_what_restitution_says(stepper, e):
    """A ball that falls by 0.1 m: constraints take (1 - e²) of its energy, no more."""
    text = (
        '<robot name="r"><link name="base"/><link name="a"><inertial><mass value="2"/>'
        '<inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>'
        '<collision><geometry><sphere radius="0.1"/></geometry></collision></link>'
        '<joint name="z" type="prismatic"><parent link="base"/><child link="a"/>'
        '<limit lower="-9" upper="9" effort="0" velocity="9"/><axis xyz="0 0 1"/>'
        "</joint></robot>"
    )
    material = {"materials": {"default": {"mu": 0.5, "restitution": e}}}
    model = dyn.load_urdf(text, extras=material, check="warn")
    for impacts in ("simultaneous", "sequential"):
        world = {"stepper": stepper, "impacts": impacts}
        run = dyn.simulate(model, world=world, q0=[0.2], period=5e-4, duration=0.16)
        ledger, energy = energy_ledger(model, run), 2 * 9.81 * 0.1
        assert ledger.constraints[-1] == pytest.approx(-(1 - e * e) * energy, rel=0.02)
        assert abs(ledger.residual).max() < 0.006 * energy
        assert abs(ledger.work).max() == 0 == abs(ledger.dissipation).max()


@pytest.mark.parametrize(
    "world",
    [{}, {"solver": "lemke"}, {"stepper": "moreau_jean"}, {"restitution": "poisson"}],
)
def test_energies_of_a_step_are_its_change_of_kinetic_energy(world):
    """With gravity and springs they add up to rounding, whatever happens in the step.

    kinetic_change = work - dissipation + constraints - h v . C,   v = (qd + qd+) / 2

    with the gyroscopic moment at the mean velocity of the base, as the step has it.
    """
    quad = dyn.load("quadruped")
    knee = next(name for name in quad.joint_names if "knee" in name or "calf" in name)
    model = quad.with_values({f"{knee}.stiffness": 4.0})
    rng = np.random.default_rng(3)
    q0 = model.neutral()
    q0[2], q0[7:] = 0.33, (0.0, 0.72, -1.44) * 4
    world = {"stabilisation": "none", **world}
    sim = dyn.ContactSimulator(
        model, world, q0=q0, qd0=0.3 * rng.normal(size=18), prescribed=[knee]
    )
    sim.f_ext = rng.normal(size=(model.nb, 6))
    bias = dyn.solver("bias").build(model, joint_springs=True)
    crba, still = dyn.solver("crba").build(model), np.zeros(18)
    terms = np.zeros(4)
    for k in range(30):
        sim.command(k * sim.period, rng.normal(size=18) * 4)
        sim.accelerate(k * sim.period, [30.0])
        sim.advance(k * sim.period)
        last, report = sim.last, sim.report
        q, qd, mean = last.q, last.qd, (last.qd + last.velocity) / 2
        turned = still.copy()
        turned[3:6] = np.cross(qd[:3], qd[3:6])
        missing = last.h * mean @ (crba(q) @ turned - bias(q, qd))
        force = sim.tau - sim.contact_model.bias(q, qd, sim.f_ext)
        part = 0.5 if "stepper" in world else 1.0
        change = gyroscopic_change(model, crba(q), qd, force, last.h, part)
        missing += mean @ crba(q) @ change
        energy = report.energy
        whole = energy.work - energy.dissipation + energy.constraints + missing
        assert whole == pytest.approx(report.kinetic_change, abs=1e-11)
        terms += np.abs(energy)
    assert (terms[:3] > 0.01).all()


def test_the_lift_out_of_an_overlap_has_a_column():
    """A box that starts 5 mm in the ground is pushed out; its weight gains m g 5 mm."""
    text = (
        '<robot name="r"><link name="a"><inertial><mass value="2"/>'
        '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>'
        '<collision><geometry><box size="1 1 0.2"/></geometry></collision></link>'
        "</robot>"
    )
    model = dyn.load_urdf(text, root_joint="floating")
    for stepper in STEPPERS:
        q0 = [0, 0, 0.095, 0, 0, 0, 1]
        run = dyn.simulate(model, world={"stepper": stepper}, q0=q0, duration=0.2)
        ledger = energy_ledger(model, run)
        lift = 2 * 9.81 * (run.q[:, 2] - q0[2])
        assert lift[-1] == pytest.approx(2 * 9.81 * 0.005, rel=0.01)
        np.testing.assert_allclose(ledger.correction, lift, rtol=0, atol=1e-6)
        assert abs(ledger.constraints).max() < 1e-6
        assert abs(ledger.residual).max() < 1e-6


def test_a_percentage_above_a_hundred_has_no_exponent(monkeypatch):
    """150 %, not 1.5e+02 %."""
    record = run_record(dyn.simulate(dyn.load("two_link"), qd0=[1.0, 0], duration=0.1))
    turned = np.ptp(record.series["kinetic"])
    turned = max(turned, abs(record.series["dissipation"]).max())
    series = {**record.series, "residual": np.full(len(record.t), 1.5 * turned)}
    assert "; 150 % of the largest" in energy_sentence(replace(record, series=series))


def test_a_report_compares_a_residual_with_energy_that_there_is():
    """A robot at rest has none to compare with; one that moves has its percentage."""
    model, q, tau = _standing()
    rest = dyn.simulate(model, lambda t, q, qd: tau, world={}, q0=q, duration=0.01)
    still = energy_sentence(run_record(rest))
    assert still.startswith("Energy change ")
    assert still.endswith("J; the robot exchanges no energy.")
    fall = dyn.simulate(dyn.load("two_link"), qd0=[1.0, 0.0], duration=0.1)
    moving = energy_sentence(run_record(fall))
    assert moving.endswith(
        "% of the largest of work, dissipation and range of the kinetic energy."
    )
