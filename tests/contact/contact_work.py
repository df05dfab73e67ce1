"""Work of contacts, limits and friction in a step, from its record."""

import numpy as np

from dyn_core.contact.stepping.constraints import ROLES

FREE_ROWS = ("loop", "gear", "prescribed")
PUSHING = ("contact", "limit")
TOLERANCE = 1e-7  # of solvers, relative to the scale of the work
LEAST = 1e-18  # work that counts [J]


def work_of_contacts(arrays, record):
    """Return the work of the impulses of contacts, limits and friction, and its scale.

        sum of lambda (u- + u+) / 2 + lambda min(bias, 0)

    u- is the velocity that loops, gears and prescribed joints alone would leave, u+
    that after the step. What a push or a rebound asks for (bias < 0) is the law's own.
    """
    step = arrays.prepare_again(record)
    x, count, facts = record.impulse, len(record.starts), step.blocks
    if not len(x):
        return 0.0, 0.0
    Y, L = arrays.matrices(step, record)
    after = Y @ (L @ record.velocity)
    heights = np.diff([*record.starts, len(x)])
    roles = np.repeat([ROLES[role] for role in facts.role[:count]], heights)
    free = np.isin(roles, FREE_ROWS)
    push = np.zeros(len(x))
    if record.status != "wedged":  # without pushes, then
        push = np.minimum(facts.bias[: len(x)], 0.0) * np.isin(roles, PUSHING)
    z = Y[~free].T @ x[~free]
    if free.any():
        z = z - np.linalg.pinv(Y[free]) @ (Y[free] @ z)
    power = x[~free] * (after + push)[~free]
    speed = np.abs(after - Y @ (Y.T @ x)) + np.abs(after)
    return power.sum() - z @ z / 2, np.abs(x[~free]) @ speed[~free] + z @ z


def check_work(arrays, record):
    """Check that the impulses of a step bring in no energy."""
    work, scale = work_of_contacts(arrays, record)
    assert work <= TOLERANCE * scale + LEAST, (record.t, record.status, work, scale)
