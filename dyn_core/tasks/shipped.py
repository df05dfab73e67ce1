"""Tasks of planar systems: swing up, lift, balance, walk.

Numbers without a source are ours. Three tasks equal those of Gymnasium's classic
control, to compare speed: a step has the same equations, scheme, interval, actions and
end. States and observations have this project's order, and angles its zero. Bounds are
pairs (minimum, maximum), one for each entry. Methods that take a state take one alone,
without a batch axis; its entries may be symbols.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.numbers.scalar import (
    absolute,
    cos,
    floor,
    logical_or,
    maximum,
    minimum,
    sin,
    where,
)
from dyn_core.planar.chain.chain import make_chain
from dyn_core.planar.objects.objects import Bounds, planar_object
from dyn_core.spatial import Vector
from dyn_core.tasks.chain_task import ChainTask
from dyn_core.tasks.task import OPEN, UNIT, ObjectTask, Task
from dyn_core.tasks.walker import Walker, walker_chain
from dyn_core.validation import shown

RUNS_WHILE_TRACED = "wings"  # a mark, see engines/llvm/cached/fingerprint.py
PI = math.pi


@dataclass(frozen=True, eq=False)
class PendulumSwingUp(ObjectTask):
    """Swing a pendulum up by a torque too weak to lift it, and hold it there.

    State: theta, theta'; theta from upright. Action: torque tau, |tau| <= 0.225 N·m.
    Observation: cos theta, sin theta, theta' [rad/s]. Reward of a step, of the state
    after it:

        cos theta - rate_cost theta'² - effort_cost (tau / 0.225)²

    0.225 N·m is the bound of the shipped task; `action_bounds` replace it. No state
    ends an episode. It begins hanging, with errors within 0.1 rad and 0.1 rad/s.

    Attributes:
        rate_cost, effort_cost: Weights in the reward.

    Source: WAW-13.1 (bound, g = 1, the aim); reward, interval and start are ours.
    """

    rate_cost: float = 0.05
    effort_cost: float = 0.01

    @property
    def observation_bounds(self) -> Bounds:
        """Minimum and maximum of each entry of the observation.

        cos and sin are within 1, the rate is unbounded.
        """
        return (UNIT, UNIT, OPEN)

    def observe(self, state: Any) -> Sequence[Any]:
        """Return [cos theta, sin theta, theta'] of a state (theta, theta')."""
        return [cos(state[0]), sin(state[0]), state[1]]

    def reward(self, before: Any, action: Any, after: Any) -> Any:
        """Return cos theta - rate_cost theta'² - effort_cost sum (a / bound)².

        theta and theta' are of the state after the step.
        """
        swing = self.rate_cost * after[1] * after[1]
        return cos(after[0]) - swing - self.effort_cost * self.cost(action)


@dataclass(frozen=True, eq=False)
class AcrobotSwingUp(ObjectTask):
    """Swing an arm of two rods up by the torque between them, and hold it there.

    State: theta1 (from the horizontal), theta2 (relative to the first rod), their
    rates. Action: torque at the second joint, |tau| <= 10 N·m in the shipped task.
    Observation: cos theta1, sin theta1, cos theta2, sin theta2, both rates [rad/s].
    Reward of a step, of the state after it, with y the height of the tip above the
    support:

        y / (l1 + l2) - rate_cost (t1'² + t2'²) - effort_cost (tau / 10)²

    No state ends an episode. It begins hanging, with errors within 0.1 rad and 0.1
    rad/s.

    Attributes:
        rate_cost, effort_cost: Weights in the reward.

    Source: WAW-13.2 (the arm); bound, reward, interval and start are ours.
    """

    rate_cost: float = 0.005
    effort_cost: float = 0.01

    @property
    def observation_bounds(self) -> Bounds:
        """Bounds of each entry of the observation: 1 for cos, sin; none for rates."""
        return (UNIT, UNIT, UNIT, UNIT, OPEN, OPEN)

    def control(self, action: Any) -> Sequence[Any]:
        """Return the torques at both joints [N·m]: 0 at the support, then `action`."""
        return [0.0, action[0]]

    def observe(self, state: Any) -> Sequence[Any]:
        """Return cos, sin of theta1, then of theta2, then both rates, of a state."""
        t1, t2, w1, w2 = state
        return [cos(t1), sin(t1), cos(t2), sin(t2), w1, w2]

    def height(self, state: Any) -> Any:
        """Return the height of the tip above the support in a state (ns,) [m]."""
        p = self.system.parameters
        s1, c1, s2, c2 = sin(state[0]), cos(state[0]), sin(state[1]), cos(state[1])
        return p["l1"] * s1 + p["l2"] * (s1 * c2 + c1 * s2)

    def reward(self, before: Any, action: Any, after: Any) -> Any:
        """Return the reward of a step.

            y / (l1 + l2) - rate_cost (t1'² + t2'²) - effort_cost sum (a / bound)²

        The height y of the tip and the rates t1', t2' are of the state after the step.
        """
        p = self.system.parameters
        swing = self.rate_cost * (after[2] * after[2] + after[3] * after[3])
        height = self.height(after) / (p["l1"] + p["l2"])
        return height - swing - self.effort_cost * self.cost(action)


@dataclass(frozen=True, eq=False)
class WeightLift(ObjectTask):
    """Lift a weight overhead from a crouch, with torques at three joints, and hold it.

    State: theta1 (from the horizontal), theta2 and theta3 (relative to the previous
    link), their rates. Action: torques, within 50, 30 and 15 N·m in the shipped task.
    Observation: cos theta1, sin theta1, then of theta2 and theta3, then three rates
    [rad/s]. Reward of a step, of the state after it, with y3 the height of the weight
    [m]:

        y3 / 3 - rate_cost (t1'² + t2'² + t3'²) - effort_cost sum (tau_i / bound_i)²

    Heights are computed for links of 1 m. An episode ends when the end of a link is
    below the support.

    Attributes:
        rate_cost, effort_cost: Weights in the reward.

    Source: WAW-13.3 (the links); bounds, reward, interval and start are ours.
    """

    rate_cost: float = 0.005
    effort_cost: float = 0.01

    @property
    def observation_bounds(self) -> Bounds:
        """Bounds of each entry of the observation: 1 for cos, sin; none for rates."""
        return (UNIT,) * 6 + (OPEN,) * 3

    def observe(self, state: Any) -> Sequence[Any]:
        """Return cos, sin of each of the three angles, then their rates, of a state."""
        q, qd = self.parts(state)
        return [f(t) for t in q for f in (cos, sin)] + list(qd)

    def heights(self, state: Any) -> list[Any]:
        """Return the heights of the ends of the three links above the support [m].

        The links are taken as 1 m long. Only the angles of the state (ns entries)
        count.
        """
        t1, t2, t3 = state[0], state[0] + state[1], state[0] + state[1] + state[2]
        y1 = sin(t1)
        y2 = y1 + sin(t2)
        return [y1, y2, y2 + sin(t3)]

    def reward(self, before: Any, action: Any, after: Any) -> Any:
        """Return the reward of a step.

            y3 / 3 - rate_cost (t1'² + t2'² + t3'²) - effort_cost sum (a / bound)²

        y3, the height of the weight [m], and the rates are of the state after the step.
        """
        _, w = self.parts(after)
        swing = self.rate_cost * sum((x * x for x in w), 0.0)
        height = self.heights(after)[2] * (1.0 / 3.0)
        return height - swing - self.effort_cost * self.cost(action)

    def over(self, after: Any) -> Any:
        """Return 1 if the end of a link is below the support after a step, else 0."""
        y1, y2, y3 = self.heights(after)
        return where(logical_or(logical_or(y1 < 0.0, y2 < 0.0), y3 < 0.0), 1.0, 0.0)


@dataclass(frozen=True, eq=False)
class CartBalance(ObjectTask):
    """Keep the poles on a cart upright, and the cart on its track.

    Action: force on the cart [N] or voltage [V]; with `choices`, one of them.
    Observation: the state, x [m], angles of the poles from upright [rad], then their
    rates [m/s, rad/s]. The reward is 1 for every step. An episode ends when |x| >
    x_limit, or |angle| > angle_limit for a pole.

    Attributes:
        x_limit: Half the length of the track [m].
        angle_limit: Maximum angle of every pole from upright [rad].

    Source: WAW-14.1 (bounds of one pole, F = -10 or 10 N), WAW-14.2, WAW-14.3 (the
    carts); the other bounds, reward, interval and start are ours.
    """

    x_limit: float = 2.4
    angle_limit: float = PI / 15

    @property
    def observation_bounds(self) -> Bounds:
        """Minimum and maximum of each entry of the observation.

        For x and the angles they are twice x_limit and angle_limit; rates are
        unbounded.
        """
        nq, x, angle = self.system.nq, 2 * self.x_limit, 2 * self.angle_limit
        return ((-x, x), *[(-angle, angle)] * (nq - 1), *[OPEN] * nq)

    def observe(self, state: Any) -> Sequence[Any]:
        """Return the observation of a state: its entries, as a list."""
        return list(state)

    def reward(self, before: Any, action: Any, after: Any) -> Any:
        """Return the reward of every step: 1; no argument is used."""
        return 1.0

    def over(self, after: Any) -> Any:
        """Return 1 if |x| > x_limit or |angle| of a pole > angle_limit, else 0."""
        q, _ = self.parts(after)
        far = absolute(q[0]) > self.x_limit
        for angle in q[1:]:
            far = logical_or(far, absolute(angle) > self.angle_limit)
        return where(far, 1.0, 0.0)

    def view(self, points: np.ndarray) -> tuple[float, float, float, float]:
        """Return a picture's limits: minimum and maximum x, then y [m].

        x is within x_limit + 0.4 m, y within 1.4 m; `points` are ignored.
        """
        return (-self.x_limit - 0.4, self.x_limit + 0.4, -1.4, 1.4)


@dataclass(frozen=True, eq=False)
class CartSwingUp(ObjectTask):
    """Swing the pole of a cart up, and hold it there.

    State: x, theta, x', theta'; theta from upright. Action: force on the cart, |F| <=
    10 N in the shipped task. Observation: x [m], cos theta, sin theta, x' [m/s], theta'
    [rad/s]. Reward of a step, of the state after it:

        cos theta - place_cost x² - rate_cost theta'² - effort_cost (F / 10)²

    When |x| > x_limit the episode ends and the reward is smaller by end_cost. It begins
    with the pole hanging and the cart in the middle, with errors within 0.1.

    Attributes:
        place_cost, rate_cost, effort_cost, end_cost: Weights in the reward.
        x_limit: Half the length of the track [m].

    Source: WAW-14.1 (bounds and aim); reward, interval and start are ours.
    """

    place_cost: float = 0.05
    rate_cost: float = 0.005
    effort_cost: float = 0.01
    end_cost: float = 100.0
    x_limit: float = 2.4

    @property
    def observation_bounds(self) -> Bounds:
        """Minimum and maximum of each entry of the observation.

        For x they are twice x_limit, for cos and sin 1; rates are unbounded.
        """
        return ((-2 * self.x_limit, 2 * self.x_limit), UNIT, UNIT, OPEN, OPEN)

    def observe(self, state: Any) -> Sequence[Any]:
        """Return x, cos theta, sin theta, x', theta' of a state x, theta and rates."""
        return [state[0], cos(state[1]), sin(state[1]), state[2], state[3]]

    def reward(self, before: Any, action: Any, after: Any) -> Any:
        """Return the reward of a step, of the state after it.

            cos theta - place_cost x² - rate_cost theta'² - effort_cost sum (a / bound)²

        If |x| > x_limit, it is smaller by end_cost.
        """
        x, w = after[0], after[3]
        cost = self.place_cost * x * x + self.rate_cost * w * w
        cost = cost + self.effort_cost * self.cost(action)
        return cos(after[1]) - cost - self.end_cost * self.over(after)

    def over(self, after: Any) -> Any:
        """Return 1 if |x| > x_limit, else 0."""
        return where(absolute(after[0]) > self.x_limit, 1.0, 0.0)

    def view(self, points: np.ndarray) -> tuple[float, float, float, float]:
        """Return a picture's limits: minimum and maximum x, then y [m].

        x is within x_limit + 0.4 m, y within 1.4 m; `points` are ignored.
        """
        return (-self.x_limit - 0.4, self.x_limit + 0.4, -1.4, 1.4)


def hanging_chain() -> Any:
    """Return the chain of the task planar_chain: three links on a fixed joint 0."""
    return make_chain(
        [0.5] * 3,
        [1.0] * 4,
        constraints={"kind": {0: "fixed"}},
        k_omega=[0.05, 0.05, 0.05, 0.0],
        lower={1: -1.5, 2: -1.5},
        upper={1: 1.5, 2: 1.5},
        name="hanging_chain",
    )


def _wrapped(angle: Any) -> Any:
    """Return an angle [rad] shifted by a multiple of 2 pi into [-pi, pi)."""
    return angle - (2 * PI) * floor(angle * (0.5 / PI) + 0.5)


def _clipped(x: Any, most: float) -> Any:
    """Return x clipped to [-most, most]; NaN stays NaN; `most` >= 0."""
    return minimum(most, maximum(x, -most))


@dataclass(frozen=True, eq=False)
class ClassicPendulum(PendulumSwingUp):
    """Swing up as Pendulum-v1 does: a uniform rod, g = 10, |tau| <= 2 N·m.

        reward = -(theta² + 0.1 theta'² + 0.001 tau²)    of the state before the step

    theta is from upright, in the reward wrapped to [-pi, pi). The state is theta,
    theta', the observation cos theta, sin theta, theta'. A step is one semi-implicit
    step of 0.05 s; then theta' is clipped to 8 rad/s. Gymnasium moves the angle with
    the clipped rate, this task with the unclipped one: a difference only at 8 rad/s.

    Source: Gymnasium, classic_control/pendulum.py.
    """

    @property
    def observation_bounds(self) -> Bounds:
        """Bounds of the observation: cos and sin within 1, the rate 8 rad/s."""
        return ((-1.0, 1.0), (-1.0, 1.0), (-8.0, 8.0))

    def settle(self, state: Any) -> Any:
        """Return the state (theta, theta') with theta' clipped to ±8 rad/s."""
        return Vector((state[0], _clipped(state[1], 8.0)))

    def reward(self, before: Any, action: Any, after: Any) -> Any:
        """Return -(theta² + 0.1 theta'² + 0.001 tau²) before a step, theta wrapped.

        `action` must be within its bounds already.
        """
        angle, rate, torque = _wrapped(before[0]), before[1], action[0]
        return -(angle * angle + 0.1 * rate * rate + 0.001 * torque * torque)

    def start(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Draw initial states uniformly: angle in ±pi, rate in ±1 rad/s, (rows, 2)."""
        return rng.uniform(-1.0, 1.0, (rows, 2)) * np.array([PI, 1.0])


@dataclass(frozen=True, eq=False)
class ClassicAcrobot(AcrobotSwingUp):
    """Swing the tip a link's length above the support, as Acrobot-v1 does.

    The state is theta1 (from the horizontal), theta2 (relative to it), their rates,
    the observation cos and sin of theta1, then of theta2, then both rates [rad/s].
    Torques -1, 0, 1 N·m, one Runge-Kutta step of 0.2 s, g = 9.8 m/s². After each step
    the angles are wrapped and the rates clipped to 4 pi and 9 pi rad/s. The reward is
    -1 for every step, 0 for the step that reaches the height and ends the episode.

    Source: Gymnasium, classic_control/acrobot.py (its "book" equations).
    """

    @property
    def observation_bounds(self) -> Bounds:
        """Bounds of cos, sin of theta1, of theta2; of rates: 4 pi, 9 pi rad/s."""
        return (((-1.0, 1.0),) * 4) + ((-4 * PI, 4 * PI), (-9 * PI, 9 * PI))

    def settle(self, state: Any) -> Any:
        """Return the state, angles wrapped to [-pi, pi), rates clipped (4 pi, 9 pi)."""
        t1, t2, w1, w2 = state
        rates = _clipped(w1, 4 * PI), _clipped(w2, 9 * PI)
        return Vector((_wrapped(t1), _wrapped(t2), *rates))

    def reward(self, before: Any, action: Any, after: Any) -> Any:
        """Return 0 if the tip is over 1 m above the support after the step, else -1."""
        return self.over(after) - 1.0

    def over(self, after: Any) -> Any:
        """Return 1 if the tip is more than 1 m above the support, else 0."""
        return where(self.height(after) > 1.0, 1.0, 0.0)


@dataclass(frozen=True, eq=False)
class ClassicCartPole(CartBalance):
    """Balance a pole as CartPole-v1 does: no friction, g = 9.8 m/s².

    Force -10 or 10 N, one Euler step of 0.02 s. Observation: x [m], the pole's angle
    from upright [rad], their rates [m/s, rad/s]. The reward is 1 for every step; an
    episode ends when |x| > 2.4 m or the pole is beyond 12 degrees.

    Source: Gymnasium, classic_control/cartpole.py.
    """


# fmt: off
TASKS: dict[str, Task] = {task.name: task for task in (
    PendulumSwingUp(
        "pendulum", planar_object("pendulum"), 0.1, 1, "rk4", 600, ((-0.225, 0.225),),
        home=(PI, 0.0), spread=(0.1, 0.1),
    ),
    AcrobotSwingUp(
        "acrobot", planar_object("acrobot"), 0.05, 1, "rk4", 600, ((-10.0, 10.0),),
        home=(-PI / 2, 0.0, 0.0, 0.0), spread=(0.1,) * 4,
    ),
    WeightLift(
        "weight_lifter", planar_object("weight_lifter"), 0.01, 2, "rk4", 500,
        ((-50.0, 50.0), (-30.0, 30.0), (-15.0, 15.0)),
        home=(PI / 6, 2 * PI / 3, -2 * PI / 3, 0.0, 0.0, 0.0), spread=(0.05,) * 6,
    ),
    CartBalance(
        "cart_pole", planar_object("cart_pole"), 0.02, 1, "semi_implicit", 500,
        ((-10.0, 10.0),), ((-10.0,), (10.0,)), home=(0.0,) * 4, spread=(0.05,) * 4,
    ),
    CartSwingUp(
        "cart_pole_swing_up", planar_object("cart_pole"), 0.02, 1, "rk4", 500,
        ((-10.0, 10.0),), home=(0.0, PI, 0.0, 0.0), spread=(0.1,) * 4,
    ),
    CartBalance(
        "cart_two_poles", planar_object("cart_two_poles"), 0.01, 1, "rk4", 1000,
        ((-20.0, 20.0),), home=(0.0,) * 6, spread=(0.02,) * 6, angle_limit=PI / 5,
    ),
    CartBalance(
        "cart_three_poles", planar_object("cart_three_poles"), 0.005, 2, "rk4", 1000,
        ((-10.0, 10.0),), home=(0.0,) * 8, spread=(0.005,) * 8, angle_limit=PI / 5,
    ),
    ChainTask(
        "planar_chain", hanging_chain(), 0.0025, 8, "fixed", 500,
        ((-12.0, 12.0), (-8.0, 8.0), (-4.0, 4.0)),
        motors=(0, 1, 2), theta=(-PI / 2, 0.0, 0.0),
    ),
    Walker(
        "walker", walker_chain(), 0.00125, 8, "fixed", 1000,
        ((-15.0, 15.0), (-40.0, 40.0), (-40.0, 40.0),
         (-40.0, 40.0), (-40.0, 40.0), (-15.0, 15.0)),
        motors=(1, 2, 3, 4, 5, 6), theta=Walker.STANCE, theta_spread=0.05,
        effort_cost=0.1,
    ),
    ClassicPendulum(
        "classic_pendulum", planar_object("pendulum", m=1 / 3, g=15.0),
        0.05, 1, "semi_implicit", 200, ((-2.0, 2.0),),
        home=(PI, 0.0), spread=(PI, 1.0),
    ),
    ClassicAcrobot(
        "classic_acrobot", planar_object("acrobot", g=9.8),
        0.2, 1, "rk4", 500, ((-1.0, 1.0),), ((-1.0,), (0.0,), (1.0,)),
        home=(-PI / 2, 0.0, 0.0, 0.0), spread=(0.1,) * 4,
    ),
    ClassicCartPole(
        "classic_cart_pole", planar_object("cart_pole", mu_c=0.0, mu_p=0.0, g=9.8),
        0.02, 1, "euler", 500, ((-10.0, 10.0),), ((-10.0,), (10.0,)),
        home=(0.0,) * 4, spread=(0.05,) * 4,
    ),
)}
# fmt: on


def planar_task(name: str | Task, **changes: Any) -> Task:
    """Return a task of a planar system, with some attributes changed.

    Args:
        name: A key of TASKS, or a Task.
        changes: New attribute values by name (dt, substeps, scheme, max_steps,
            action_bounds, ...), and `parameters`, a mapping of new numbers by parameter
            name of the planar object of the task `name` (a `system` beside them is
            ignored); empty or None changes nothing. Without any, the task is returned
            itself, of a key the shared one in TASKS.

    Raises:
        ModelError: An unknown task, attribute or parameter, an invalid value, or
            `parameters` that are no mapping or for a task of a chain.

    Source: WAW-15.5.
    """
    if not isinstance(name, Task):
        if not isinstance(name, str) or name not in TASKS:
            raise ModelError(
                f"no task is called {name!r}; valid: {', '.join(TASKS)}", str(name)
            )
        name = TASKS[name]
    parameters = changes.pop("parameters", None)
    if parameters:
        if not isinstance(name, ObjectTask):
            raise ModelError(
                f"{name.name} moves a chain; give it as system=make_chain(...)",
                "parameters",
            )
        if not isinstance(parameters, Mapping):
            raise ModelError(
                f"{name.name}: parameters is {shown(parameters)}; valid: a mapping from"
                f" name to number: {', '.join(name.system.parameters)}",
                "parameters",
            )
        numbers = {str(key): value for key, value in parameters.items()}
        changes["system"] = name.system.with_parameters(**numbers)
    return name.changed(**changes) if changes else name
