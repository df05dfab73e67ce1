"""The stages of the classical Runge-Kutta scheme, as iterations of a loop.

Not a solver: a step and its derivatives share it.
"""

from dyn_core.authoring import loop
from dyn_plugins.steps._joint_blocks import plus_scaled

MANY = 500  # rates from which their weighted sum is one operation of a Graph


def weighted_stages(rates, count, dt, rolled=True):
    """Return the change over a Runge-Kutta step: dt times the weighted mean of rates.

        k_i = rates(k_(i-1), c_i dt),   c = 0, 1/2, 1/2, 1,   k_0 = 0
        change = dt (k_1 + 2 k_2 + 2 k_3 + k_4) / 6

    rolled: The stages are iterations of one loop of the Graph; else written out.

    Source: W. Kutta, 1901; E. Hairer et al., Solving Ordinary Differential Equations I.
    """
    half, third, sixth = dt * 0.5, dt * (1.0 / 3.0), dt * (1.0 / 6.0)
    lengths, weights = (0.0, half, half, dt), (sixth, third, third, sixth)

    # The tables rotate with each iteration, so that the body of `rates` is compiled
    # once.
    def turn(state):
        (length, *longer), (weight, *others) = state[:4], state[4:8]
        rate = rates(state[8 : 8 + count], length)
        many = rolled and count >= MANY
        change = plus_scaled(state[8 + count :], weight, rate, many)
        return *longer, length, *others, weight, *rate, *change

    state = (*lengths, *weights, *[0.0] * (2 * count))
    if rolled:
        return loop(state, turn, lambda state: True, 4)[8 + count :]
    for _ in lengths:
        state = turn(state)
    return state[8 + count :]
