"""Integers too large for a float are refused by the errors of other wrong numbers."""

import pytest

import dyn_core as dyn
from dyn_core.control import Controller
from dyn_core.control.collision import threshold_values
from dyn_core.errors import DynError
from dyn_core.identification.selection import _interval
from dyn_core.spatial.guide.se3 import finite
from dyn_core.tasks.draws import Uniform

HUGE = 10**400
ARM = dyn.load("two_link")
TRIALS = {
    "gravity": lambda: dyn.load("two_link", gravity=[0, 0, HUGE]),
    "locked joint": lambda: dyn.load("two_link", lock={"joint1": HUGE}),
    "gains": lambda: Controller(ARM, kp=HUGE),
    "effort limits": lambda: Controller(ARM, effort_limits={"joint1": HUGE}),
    "thresholds": lambda: threshold_values(("joint1",), HUGE),
    "vector": lambda: finite("c", [HUGE] * 3, 3),
    "bounds": lambda: _interval("mass", (0, HUGE)),
    "draw": lambda: Uniform(0, HUGE),
}


@pytest.mark.parametrize("what", TRIALS)
def test_huge_integers_are_refused(what):
    with pytest.raises(DynError):
        TRIALS[what]()
