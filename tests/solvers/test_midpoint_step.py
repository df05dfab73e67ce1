"""The midpoint step of closed robots: its order, its residuals, and its energy."""

from pathlib import Path

import numpy as np
import pytest
from least_norm import least_norm

import dyn_core as dyn
from dyn_core.engines import available
from dyn_core.errors import UnsupportedError
from dyn_core.numbers.scalar import sin
from dyn_core.testing import scaled_error

FOUR_BAR = Path(__file__).parents[2] / "examples" / "four_bar" / "four_bar.urdf"


@pytest.fixture(scope="module")
def linkage():
    return dyn.load_urdf(FOUR_BAR)


def start(model):
    """Return a closed position and a velocity that keeps it closed."""
    guess = model.position({"motor": 0.93, "pin_b": -0.5, "pin_c": -1.5})
    q = dyn.close_loops(model, guess, fixed=["motor"])
    return q, dyn.close_rates(model, q, np.array([1.5, 0.0, 0.0]), fixed=["motor"])


def run(model, name, dt, duration, every=10**9):
    """Return the end, the worst residual and rate, and energies on the way."""
    step = dyn.solver(name).build(model)
    rows = dyn.solver("loop_forward_dynamics").build(model)
    energy = dyn.solver("energy").build(model)
    (q, qd), still = start(model), np.zeros(model.nv)
    worst, energies = 0.0, [sum(energy(q, qd))]
    for k in range(1, round(duration / dt) + 1):
        q, qd = step(q, qd, still, dt)
        if k % every == 0:
            result = rows(q, qd, still)
            worst = max(worst, np.abs([*result.f, *result.rate]).max())
            energies.append(sum(energy(q, qd)))
    return q, qd, worst, np.array(energies)


def test_it_is_of_second_order(linkage):
    """Half the step leaves a quarter of the error; of projected_euler, half."""
    exact = run(linkage, "projected_midpoint", 2e-5, 0.4)[0]
    for name, order in (("projected_midpoint", 2.0), ("projected_euler", 1.0)):
        errors = [
            np.abs(run(linkage, name, dt, 0.4)[0] - exact).max() for dt in (4e-3, 2e-3)
        ]
        assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.1)


def test_ten_thousand_steps_stay_closed_and_keep_their_energy(linkage):
    """Both residuals below 1e-10; the energy drifts far less than with Euler's step."""
    _, _, worst, energies = run(linkage, "projected_midpoint", 1e-3, 10.0, 10)
    assert worst < 1e-10
    drift = np.abs(energies - energies[0]).max()
    assert drift < 1e-3 * energies[0]
    _, _, _, other = run(linkage, "projected_euler", 1e-3, 10.0, 10)
    assert drift < 0.01 * np.abs(other - other[0]).max()


def test_engines_agree(linkage):
    (q, qd), tau = start(linkage), np.array([1.0, 0.0, 0.0])
    ends = [
        dyn.solver("projected_midpoint").build(linkage, engine=engine)(q, qd, tau, 1e-3)
        for engine in available()
    ]
    for end in ends[1:]:
        assert scaled_error(np.hstack(end), np.hstack(ends[0])) < 1e-13


def test_an_open_linkage_is_closed_in_one_step(linkage):
    """More rounds close what is farther open."""
    q, qd = start(linkage)
    residuals = []
    for rounds in (1, 2, 4):
        step = dyn.solver("projected_midpoint").build(
            linkage, engine="graph", rounds=rounds
        )
        ahead = step(q + [0.03, -0.02, 0.02], qd + 0.1, np.zeros(3), 1e-3)
        rows = dyn.solver("loop_forward_dynamics").build(linkage, engine="graph")
        result = rows(*ahead, np.zeros(3))
        residuals.append(np.abs(result.f).max())
        assert np.abs(result.rate).max() < 1e-12
    assert residuals[0] > 10 * residuals[1] > 100 * residuals[2]
    with pytest.raises(UnsupportedError, match="rounds"):
        dyn.solver("projected_midpoint").build(linkage, rounds=0)


def test_trees_take_it_too():
    """Without loops it is the midpoint rule, of second order on the manifold."""
    model = dyn.load("every_joint")
    rng = np.random.default_rng(0)
    q0, qd0, tau = model.random(rng), *(0.3 * rng.normal(size=(2, model.nv)))
    rk4 = dyn.solver("rk4").build(model)
    midpoint = dyn.solver("projected_midpoint").build(
        model, forward_dynamics=dyn.solver("aba")
    )

    def end(step, count):
        q, qd = q0, qd0
        for _ in range(count):
            q, qd = step(q, qd, tau, 0.1 / count)
        return q, qd

    exact, errors = end(rk4, 200), []
    for count in (50, 100):
        q, qd = end(midpoint, count)
        gap = model.difference(exact[0], q)
        errors.append(np.abs([*gap, *(qd - exact[1])]).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.15)


def test_simulate_takes_it_by_name(linkage):
    q, qd = start(linkage)
    record = dyn.simulate(
        linkage, duration=0.5, q0=q, qd0=qd, step="projected_midpoint",
        joint_friction=False,
    )  # fmt: skip
    assert np.ptp(record.energy) < 1e-3 * record.energy[0]
    rows = dyn.solver("loop_constraints").build(linkage, engine="graph")
    f, A, _ = rows(record.q[-1], record.qd[-1])
    assert np.abs([*f, *(A @ record.qd[-1])]).max() < 1e-12


def test_driven_places_are_those_of_the_end():
    model = dyn.load_urdf(FOUR_BAR).drive(
        "motor", lambda t: (None, (0.0, 0.02 * sin(3.0 * t), 0.0))
    )
    q = dyn.close_loops(
        model, model.position({"motor": 0.93, "pin_b": -0.5, "pin_c": -1.5})
    )
    record = dyn.simulate(model, duration=0.2, q0=q, step="projected_midpoint")
    rows = dyn.solver("loop_constraints").build(model, engine="graph", inputs=["time"])
    worst = [
        np.abs(rows(q, qd, t)[0]).max()
        for t, q, qd in zip(record.t, record.q, record.qd, strict=True)
    ]
    assert max(worst) < 1e-12


def hinged(linkage):
    """Return the linkage closed by a hinge, three rows of which depend on the others."""
    turned = {"rpy": (np.pi / 2, 0.0, 0.0)}
    ends = {"at_a": {"xyz": (1.98, 0, 0), **turned}}
    ends["at_b"] = {"xyz": (1.02, 0, 0), **turned}
    hinge = dyn.make_loop("D", "revolute", "rocker", **ends)
    return linkage.without_loops().with_loops(hinge)


def test_redundant_closures_have_it_too(linkage):
    """A closure with rows to spare moves as one without, and keeps its energy as well.

    The forward dynamics says what becomes of dependent rows, or dependent= does.
    """
    redundant, choices = hinged(linkage), {"engine": "graph"}
    solver = dyn.solver("projected_midpoint")
    plain = solver.build(linkage, **choices)
    least = solver.build(redundant, forward_dynamics=least_norm("aba_loops"), **choices)
    named = solver.build(redundant, dependent="least_norm", **choices)
    energy = dyn.solver("energy").build(linkage, **choices)
    (q, qd), still = start(linkage), np.zeros(3)
    state, before = (q, qd), sum(energy(q, qd))
    for _ in range(300):
        q, qd = plain(q, qd, still, 2e-3)
        state = least(*state, still, 2e-3)
    assert scaled_error(np.array(state), np.array((q, qd))) < 1e-9
    assert abs(sum(energy(*state)) - before) < 2e-3 * before
    assert np.array_equal(named(q, qd, still, 2e-3), least(q, qd, still, 2e-3))


def test_redundant_closures_in_simulation(linkage):
    """simulate takes it by name: the drift of energy is a hundredth of Euler's."""
    model, (q, qd) = hinged(linkage), start(linkage)
    energy = dyn.solver("energy").build(linkage, engine="graph")
    drifts = []
    for step in ("projected_midpoint", "projected_euler"):
        run = dyn.simulate(
            model,
            step=step,
            forward_dynamics=least_norm("aba_loops"),
            q0=q,
            qd0=qd,
            duration=0.3,
            joint_friction=False,
            engine="graph",
        )
        energies = [sum(energy(*state)) for state in zip(run.q, run.qd, strict=True)]
        drifts.append(np.ptp(energies))
    assert drifts[0] < drifts[1] / 50


def test_dependent_rows_are_refused_unless_told(linkage):
    """Without the option a SingularError names the solvers that answer."""
    model, (q, qd) = hinged(linkage), start(linkage)
    solver = dyn.solver("projected_midpoint")
    for choices in ({}, {"dependent": "refuse"}):
        program = solver.build(model, engine="graph", **choices)
        with pytest.raises(dyn.SingularError, match="dependent='least_norm'"):
            program(q, qd, np.zeros(3), 1e-3)
    with pytest.raises(dyn.DynError, match="refuse, least_norm"):
        solver.build(model, dependent="least")
