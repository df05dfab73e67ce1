"""The humanoid of examples/humanoid stands on two boxes, and a step has a millisecond."""

from pathlib import Path
from time import process_time

import numpy as np
import yaml

import dyn_core as dyn
from dyn_core.tasks.robots.humanoid_stand import humanoid_urdf

FOLDER = Path(__file__).parents[2] / "examples" / "humanoid"


def test_the_humanoid_stands_at_a_kilohertz(full):
    """1 s, 20 s with --full: upright, every step solved, in a part of its time."""
    extras = yaml.safe_load((FOLDER / "stand.dyn.yaml").read_text())
    settings = yaml.safe_load((FOLDER / "contact.yaml").read_text())
    parameters = settings["/**"]["ros__parameters"]
    model = dyn.load_urdf(humanoid_urdf(), root_joint="floating", extras=extras)
    q = model.neutral()
    q[:3], q[7:] = parameters["initial_root_position"], parameters["initial_positions"]
    h, count = 1 / parameters["update_rate"], 20_000 if full else 1000
    sim, seconds = dyn.ContactSimulator(model, period=h, q0=q), []
    for k in range(count):
        start = process_time()
        sim.advance(k * h)
        seconds.append(process_time() - start)
    assert not sim.counters
    assert abs(sim.q[2] - q[2]) < 0.01
    assert abs(sim.q[6]) > 0.999
    boxes = {c.id.link_a for c in sim.contact_model.pairs.contacts(sim.q)}
    assert boxes == {"left_foot", "right_foot"}
    assert h == 1e-3
    assert np.percentile(seconds, 95) < h
