"""Steps on arrays in hard scenes: energy, momentum, deep starts, same bits, room."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from contact_bodies import box, free_ball, free_box, joint, link, robot, sphere
from step_scenes import (
    SCENES,
    Scene,
    free_bodies,
    places,
    quadruped,
    tower,
)

import dyn_core as dyn

ENERGY_STEP = 1e-6  # growth in one step, relative to the largest energy of the run
ENERGY_RUN = 1e-3  # and in ten seconds, with the step 5e-3 s


def run(sim, count, also=lambda sim: None):
    """Make steps; check that all is finite; return the states."""
    states = []
    for k in range(count):
        sim.advance(k * sim.period)
        states.append((sim.q, sim.qd))
        also(sim)
    q, qd = (np.array(part) for part in zip(*states, strict=True))
    assert np.isfinite(q).all()
    assert np.isfinite(qd).all()
    return q, qd


class Energy:
    """Total energy of a robot under gravity along -z."""

    def __init__(self, sim):
        self.sim = sim
        model = sim.model
        self.m = np.array([float(I.m) for I in model.I[1:]])

    def __call__(self, q, qd):
        """Return kinetic and potential energy [J]."""
        state = self.sim.contact_model.state(q, qd)
        c = [
            pose[:3, :3] @ np.array([float(x) / float(I.m) for x in I.h]) + pose[:3, 3]
            if float(I.m)
            else np.zeros(3)
            for pose, I in zip(state.poses, self.sim.model.I[1:], strict=True)
        ]
        height = sum(m * x[2] for m, x in zip(self.m, c, strict=True))
        return float(qd @ state.H @ qd) / 2 + 9.81 * height
