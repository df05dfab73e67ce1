"""What the examples of plans share: a simulated robot that follows a plan."""

import numpy as np

import dyn_core as dyn

PERIOD = 0.002  # of the controller [s]


def follow(model, plan, hold=None, more=0.0):
    """Return the recording of a plan with its feedback, then of `hold`."""
    end, limit = plan.times[-1], np.abs(plan.tau).max(0)

    def law(t, q, qd):
        chosen = hold.control(q, qd) if hold and t > end else plan.control(t, q, qd)
        return np.clip(chosen, -limit, limit)

    settings = {"duration": end + more, "period": PERIOD, "joint_friction": False}
    return dyn.simulate(model, law, q0=plan.q[0], progress=False, **settings)
