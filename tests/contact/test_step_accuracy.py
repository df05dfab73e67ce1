"""Steps on arrays against closed solutions: the table of docs/contacts.md."""

import re
from pathlib import Path

import numpy as np
import pytest
from contact_bodies import G_EARTH, free_ball, free_box, point_mass
from step_scenes import H, Scene, places

STEPPERS = ("stewart_trinkle", "anitescu_potra", "moreau_jean")
PAGE = Path(__file__).parents[2] / "docs" / "contacts.md"


def material(mu, **more):
    """Return a material of everything."""
    return {"materials": {"default": {"mu": mu, **more}}}


def after(scene, seconds, stepper, also=lambda sim: None):
    """Return a simulator on arrays after a time."""
    sim = scene.simulator(stepper=stepper)
    assert sim.arrays is not None
    for k in range(round(seconds / H)):
        sim.advance(k * H)
        also(sim)
    assert not sim.counters
    return sim


def slide_and_stop(stepper):
    """Way of a box until friction stops it, v² / 2 mu g."""
    model = free_box(half=(0.2, 0.2, 0.05), **material(0.3))
    q, qd = places(model, [(0, 0, 0.05)]), [0, 0, 0, 1.0, 0, 0]
    sim = after(Scene(model, q, qd), 0.5, stepper)
    return sim.q[0], 1 / (2 * 0.3 * G_EARTH)


def sliding_to_rolling(stepper):
    """Speed of a ball that was thrown flat, 5/7 of the first."""
    model = free_ball(**material(0.2))
    scene = Scene(model, places(model, [(0, 0, 0.1)]), [0, 0, 0, 3.0, 0, 0])
    sim = after(scene, 0.8, stepper)
    R = sim.contact_model.kinematics(sim.q)[0][0, :3, :3]
    return (R @ sim.qd[3:])[0], 15 / 7


def bounce(stepper):
    """Height of a mass dropped from 1 m after one bounce, e² of the first."""
    model = point_mass(axes="z", **material(0.0, restitution=0.8))
    highest = []

    def watch(sim):
        if sim.qd[0] > 0:
            highest.append(sim.q[0])

    after(Scene(model, [1.0]), 1.1, stepper, watch)
    return max(highest), 0.64


def tip_over(stepper):
    """Slope at which a tall block tips, atan(width / height), by bisection [rad]."""
    low, high = 0.2, 0.5
    while high - low > 1e-4:
        angle = (low + high) / 2
        up = [np.sin(angle), 0, np.cos(angle)]
        model = free_box(half=(0.1, 0.1, 0.3), **material(1.0))
        q = places(model, [0.3 * np.array(up)])
        q[3:7] = 0, np.sin(angle / 2), 0, np.cos(angle / 2)
        world = {"half_spaces": [{"normal": up}]}
        sim = after(Scene(model, q, world=world), 0.2, stepper)
        low, high = (low, angle) if abs(sim.qd[1]) > 1e-5 else (angle, high)
    return (low + high) / 2, np.arctan(1 / 3)


def spin_down(stepper):
    """Speed of a ball that turns on its spot after a second, w - c m g t / I."""
    model = free_ball(**material(0.5, torsion=1e-3))
    scene = Scene(model, places(model, [(0, 0, 0.1)]), [0, 0, 10.0, 0, 0, 0])
    return after(scene, 1.0, stepper).qd[2], 10 - 1e-3 * G_EARTH / 0.004


def friction_angle(stepper):
    """Slope at which a flat block starts to slide, atan(mu), by bisection [rad]."""
    low, high = 0.3, 0.6
    while high - low > 1e-5:
        angle = (low + high) / 2
        up = [np.sin(angle), 0, np.cos(angle)]
        model = free_box(half=(0.3, 0.3, 0.05), **material(0.5))
        q = places(model, [0.05 * np.array(up)])
        q[3:7] = 0, np.sin(angle / 2), 0, np.cos(angle / 2)
        world = {"half_spaces": [{"normal": up}]}
        sim = after(Scene(model, q, world=world), 0.1, stepper)
        low, high = (low, angle) if abs(sim.qd[3]) > 1e-7 else (angle, high)
    return (low + high) / 2, np.arctan(0.5)


CASES = {
    "slide and stop": slide_and_stop,
    "sliding to rolling": sliding_to_rolling,
    "bounce": bounce,
    "tip over": tip_over,
    "spin down": spin_down,
    "friction angle": friction_angle,
}


def bounds():
    """Return the largest relative errors that the page promises, by case."""
    row = r"^\| ([a-z ]+) \|.*?((?: \| [0-9.e-]+){3}) \|$"
    rows = re.findall(row, PAGE.read_text(), re.M)
    return {name: [float(x) for x in cells.split("|")[1:]] for name, cells in rows}


def test_the_page_has_every_case():
    """No more and no less."""
    assert set(bounds()) == set(CASES)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("name", CASES)
def test_closed_solutions(name, stepper):
    """Within the errors of the table."""
    got, wanted = CASES[name](stepper)
    assert abs(got / wanted - 1) <= bounds()[name][STEPPERS.index(stepper)]
