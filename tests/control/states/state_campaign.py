"""False alarms and faults of joint states, without ROS: what a controller makes of them.

    python tests/control/states/state_campaign.py              # all tables: some minutes
    python tests/control/states/state_campaign.py good faults  # some of them

`good`: states of a robot at its limits of velocity, as sensors and networks deliver them;
none may be refused. `faults`: one wrong number in states that are right otherwise.
`spikes`: one wrong sample, and how much it moves an effort. `laws`: laws that are wrong.
`falls`: an arm that falls is caught. `random`: activations, silences and gains at random;
none may stop. `limits`: half an hour of motion at the limits of velocity and effort.
"""

import math
import sys
from collections import Counter

import numpy as np

import dyn_core as dyn
from dyn_core.control import Controller, Rules
from dyn_core.errors import DynError

PERIOD = 0.002
HOLD = np.array([0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8])
WHEEL = """<robot name="wheel"><link name="base"/><link name="arm"><inertial>
<origin xyz="0.2 0 0"/><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01"
ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="hub" type="continuous">
<parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
<limit effort="20" velocity="6"/></joint></robot>"""

# Sources of good states: seconds between two samples, and how they arrive.
SOURCES = {
    "500 Hz, exact": {},
    "1 kHz, exact": {"period": 1e-3},
    "100 Hz, exact": {"period": 1e-2},
    "stamps off by up to 2 ms": {"stamp_jitter": 2e-3},
    "1 kHz, stamps off by up to 2 ms": {"period": 1e-3, "stamp_jitter": 2e-3},
    "arrivals off by up to 2 ms, no stamps": {"jitter": 2e-3, "stamped": False},
    "bursts of 25 each 50 ms": {"burst": 25},
    "bursts of 25 each 50 ms, no stamps": {"burst": 25, "stamped": False},
    "1 to 20 lost": {"lost": 20},
    "1 to 20 lost, no stamps": {"lost": 20, "stamped": False},
    "12-bit encoder": {"bits": 12},
    "12-bit encoder, 1 kHz, velocities from it": {
        "bits": 12, "period": 1e-3, "filtered": 0.01, "from_positions": True,
    },
    "velocities filtered over 10 ms": {"filtered": 0.01},
    "no velocities": {"velocities": False},
    "no velocities, 12-bit encoder": {"velocities": False, "bits": 12},
    "continuous joint that wraps": {"robot": "wheel"},
    "continuous joint that wraps, no stamps": {"robot": "wheel", "stamped": False},
}  # fmt: skip


def robot(name):
    """Return a robot by name."""
    return dyn.load_urdf(WHEEL) if name == "wheel" else dyn.load(name)


def motion(model, rng):
    """Return q, qd of time: random, up to the limits of position and velocity.

    Of each joint a sine with the velocity limit as its amplitude of velocity; where the
    range is too small for its frequency, the range limits it. Continuous joints turn.
    """
    n, most = model.nv, model.velocity_limit
    low, high = np.maximum(model.lower, -math.pi), np.minimum(model.upper, math.pi)
    middle, reach = (low + high) / 2, (high - low) / 2
    w = np.maximum(most / reach, rng.uniform(2.0, 12.0, n))
    phase = rng.uniform(0, 2 * math.pi, n)
    turns = ~np.isfinite(model.upper)

    def state(t):
        x = w * t + phase
        q = np.where(turns, most * t, middle + most / w * np.sin(x))
        return q, np.where(turns, most, most * np.cos(x))

    return state


def arrivals(rng, count, period=PERIOD, burst=1, lost=0, jitter=0.0, stamp_jitter=0.0):
    """Yield times of measurement, their stamps, and of receipt [s]."""
    k, sent, last = 0, 0, -math.inf
    t_before = -math.inf
    while sent < count:
        t = period * (k + 1)
        stamp = t + rng.uniform(0, stamp_jitter)
        arrival = math.ceil((k + 1) / burst) * burst * period + 1e-6 * (k % burst)
        arrival = max(arrival + rng.uniform(0, jitter), t_before + 1e-7)
        k += 1 if not lost or rng.uniform() > 0.05 else int(rng.integers(2, lost + 2))
        if stamp <= last:
            continue  # such a source resets: its stamps go back
        last, t_before = stamp, arrival
        sent += 1
        yield t, stamp, arrival


def alarms(name, count, seed=1):
    """Return what a controller counts in good states of a source, and their number.

    The arm is not simulated: its states are those of a motion, whatever the torque is.
    """
    choices = dict(SOURCES[name])
    model = robot(choices.pop("robot", "arm7"))
    stamped, velocities = choices.pop("stamped", True), choices.pop("velocities", True)
    bits, lag = choices.pop("bits", 0), choices.pop("filtered", 0.0)
    made = choices.pop("from_positions", False)
    rng = np.random.default_rng(seed)
    rules = Rules(differentiate=not velocities)
    controller = Controller(model, mode="gravity", engine="graph", rules=rules)
    state, seen = motion(model, rng), 0
    step = 2 * math.pi / 2**bits if bits else 0.0
    shown, before = None, None
    for t, stamp, arrival in arrivals(rng, count, **choices):
        q, qd = state(t)
        if bits:
            q = np.round(q / step) * step
        if made and before is not None:
            qd = (q - before[1]) / (t - before[0])
        if lag:
            gone = 0.0 if before is None else t - before[0]
            share = 1.0 if shown is None else 1 - math.exp(-gone / lag)
            shown = qd if shown is None else shown + share * (qd - shown)
            qd = shown
        before = t, q
        if not np.isfinite(model.upper).all():
            q = (q + math.pi) % (2 * math.pi) - math.pi
        try:
            controller.update(
                arrival, q, qd if velocities else None,
                stamp=stamp if stamped else None, clock=stamp + 1e-3 if stamped else None,
            )  # fmt: skip
        except DynError as error:
            controller.counters[f"refused: {error}"] += 1
        seen += 1
    if controller.stopped is not None:
        controller.counters[f"stopped: {controller.stopped.reason}"] += 1
    return controller.counters, seen


class Stand:
    """A simulated robot under a controller, and the states that it is shown.

    Attributes:
        controller, t, q, qd: What is tested, time and true state.
        sent: Efforts, one row a cycle.
        refused: Sentences of refused states.
    """

    def __init__(self, q=HOLD, qd=None, name="arm7", period=PERIOD, **settings):
        self.model, self.period = dyn.load(name), period
        settings = {"kp": 400.0, "kd": 40.0, **settings}
        self.controller = Controller(self.model, **settings)
        self.move = dyn.solver("semi_implicit_euler").build(
            self.model, forward_dynamics="aba", joint_friction=True, limit_stops=True
        )
        self.t, self.q = 0.0, np.array(q, float)
        self.qd = np.zeros(self.model.nv) if qd is None else np.array(qd, float)
        self.tau = np.zeros(self.model.nv)
        self.sent, self.refused = [], []

    def cycle(self, change=None, stamp=None, drives=True):
        """Show a state, changed perhaps, and move by a period."""
        q, qd = self.q.copy(), self.qd.copy()
        if change is not None:
            change(q, qd)
        self.t += self.period
        tau = None
        if drives:
            try:
                stamp = self.t if stamp is None else stamp
                tau = self.controller.update(self.t, q, qd, stamp=stamp, clock=self.t)
            except DynError as error:
                self.refused.append(str(error))
        silent = self.controller.watch(self.t)
        tau = tau if silent is None else silent
        if tau is not None:  # else a driver holds the last one
            self.tau = tau
        self.sent.append(self.tau)
        self.q, self.qd = self.move(self.q, self.qd, self.tau, self.period)

    def run(self, seconds, **choices):
        """Run for a time."""
        for _ in range(round(seconds / self.period)):
            self.cycle(**choices)
        return self


def _set(place, joint, value):
    def change(q, qd):
        (q, qd)[place][joint] = value

    return change


def _add(place, joint, value):
    def change(q, qd):
        (q, qd)[place][joint] += value

    return change


# Of joint3: limits 2.9 rad, 2.175 rad/s. What is wrong, and constantly so.
FAULTS = {
    "position 30 rad": _set(0, 2, 30.0),
    "position 1e6 rad": _set(0, 2, 1e6),
    "position 1e300 rad": _set(0, 2, 1e300),
    "position 57.3 times (degrees)": lambda q, qd: q.__imul__(57.29578),
    "velocity 30 rad/s": _set(1, 2, 30.0),
    "velocity 1e3 rad/s": _set(1, 2, 1e3),
    "velocity 1e6 rad/s": _set(1, 2, 1e6),
    "velocity 10 rad/s": _set(1, 2, 10.0),
    "velocity 3 rad/s": _set(1, 2, 3.0),
}


def fault(name, seconds=1.0):
    """Return a Stand that has held, and then seen a constant fault for a time."""
    stand = Stand().run(0.2)
    stand.sent.clear()
    stand.refused.clear()
    change = FAULTS[name]
    return stand.run(seconds, change=change)


def frozen(stamps, speed=0.5, seconds=1.0):
    """Return the time until zero effort of a source that repeats its last state.

    Args:
        stamps: "equal" or "fresh".
        speed: Velocity in that state.
        seconds: Watched for.
    """
    stand = Stand(q=HOLD).run(0.2)
    q, qd, stamp = stand.q.copy(), np.full(7, speed), stand.t + PERIOD
    stand.sent.clear()

    def repeat(a, b):
        a[:], b[:] = q, qd

    for _ in range(round(seconds / PERIOD)):
        stand.cycle(change=repeat, stamp=stamp if stamps == "equal" else None)
    driven = np.flatnonzero(np.array([x.any() for x in stand.sent]))
    return (driven[-1] + 1) * PERIOD if len(driven) else 0.0, stand


def spike(place, size, joint=1):
    """Return the largest change of an effort by one wrong sample, by its slew, and more.

    Returns:
        Change of the effort of that cycle as a share of the effort limit; whether the
        sample was refused; whether the robot was stopped.
    """
    stand = Stand().run(0.3)
    before = stand.sent[-1]
    stand.cycle(change=_add(place, joint, size))
    change = np.abs(stand.sent[-1] - before) / stand.controller.limit
    refused = len(stand.refused)
    stand.run(0.3)
    return change.max(), bool(refused), stand.controller.stopped is not None


class Wrong(dyn.authoring.NumpySolver):
    """Inverse dynamics times a factor."""

    name, signature = "wrong", dyn.problems.INVERSE_DYNAMICS

    def __init__(self, model, factor):
        self.exact = dyn.solver("rnea").build(model, engine="graph")
        self.factor = factor

    def solve(self, model, q, qd, qdd, *_):
        """Return factor tau."""
        return self.factor * self.exact(q, qd, qdd)


def wrong_law(factor=1.0, gain=1.0, later=0.0):
    """Return the time until a wrong law is stopped [s], and its Stand."""
    solver = Wrong(dyn.load("arm7"), 1.0 if later else factor)
    gains = {"kp": 400.0 * gain, "kd": 40.0 * gain}
    stand = Stand(inverse_dynamics=solver, **gains)
    if later:
        stand.run(later)
        solver.factor = factor
    start = stand.t
    for _ in range(1000):
        stand.cycle()
        if stand.controller.stopped is not None:
            break
    return stand.t - start, stand


def fall(kind, seconds=3.0):
    """Return a Stand whose arm fell until it was fast, and was then taken over."""
    rules = Rules(on_violation=kind, stop_time=2.0)
    stand = Stand(q=[0.0, -1.2, 0.0, -1.0, 0.0, 1.6, 0.8], rules=rules)
    while np.abs(stand.qd / stand.model.velocity_limit).max() < 3.0 and stand.t < 2.0:
        stand.cycle(drives=False)
    stand.speed = np.abs(stand.qd / stand.model.velocity_limit).max()
    return stand.run(seconds)


def random_life(seed, cycles=600):
    """Return a Stand that went through activations, silences and gains at random."""
    rng = np.random.default_rng(seed)
    model = dyn.load("arm7")
    span = model.upper - model.lower
    q = model.lower + rng.uniform(0.15, 0.85, 7) * span
    gains = rng.uniform(20, 900), rng.uniform(0.7, 1.5)
    stand = Stand(q=q, kp=gains[0], kd=2 * gains[1] * math.sqrt(gains[0]))
    controller = stand.controller
    while stand.t < cycles * PERIOD:
        act = rng.integers(6)
        if act == 0:  # a silence, in which the arm falls; not faster than it may
            until = stand.t + rng.uniform(0.0, 0.3)
            while (
                stand.t < until
                and (np.abs(stand.qd) < 0.9 * model.velocity_limit).all()
            ):
                stand.cycle(drives=False)
        elif act == 1:
            controller.begin()
        elif act == 2:
            kp = rng.uniform(20, 900)
            controller.set_gains(kp, 2 * rng.uniform(0.7, 1.5) * math.sqrt(kp))
        elif act == 3 and controller.reference is not None and controller.q is not None:
            end = np.clip(controller.q + rng.uniform(-0.2, 0.2, 7), model.lower + 0.01,
                          model.upper - 0.01)  # fmt: skip
            names = model.joint_names
            try:
                made = controller.make_trajectory(names, [rng.uniform(1.2, 2.5)], [end])
                controller.follow(made, stand.t)
            except DynError:
                pass  # too fast for the limits
        stand.run(rng.uniform(0.05, 0.3))
        if controller.stopped is not None:
            break
    return stand


def _limits(minutes, name="arm7"):
    """Return counters of a motion at the limits of velocity, under its own torque."""
    stand = Stand(name=name)
    model, controller = stand.model, stand.controller
    rng = np.random.default_rng(3)
    names, most = model.joint_names, model.velocity_limit
    low, high = model.lower + 0.02, model.upper - 0.02
    stand.run(0.1)
    until = 60.0 * minutes
    while stand.t < until and controller.stopped is None:
        start = controller.reference.q
        end = rng.uniform(low, high)
        seconds = max((1.875 * np.abs(end - start) / (0.98 * most)).max(), 0.3)
        still = [np.zeros(model.nv)]
        try:
            made = controller.make_trajectory(names, [seconds], [end], still, still)
            controller.follow(made, stand.t)
        except DynError as error:
            controller.counters[f"refused: {error}"] += 1
        stand.run(seconds + 0.02)
        stand.sent.clear()
    return stand


def table(title, rows):
    """Print a table, row by row."""
    print(f"\n{title}")
    for row in rows:
        print("  " + "  ".join(str(x) for x in row), flush=True)


def main(names):
    """Print the tables."""
    names = names or ["good", "faults", "spikes", "laws", "falls", "random", "limits"]
    if "good" in names:
        count = 10**6 // len(SOURCES) + 1
        rows = ((f"{n:45}", seen, dict(c) or "0 refused") for n in SOURCES
                for c, seen in [alarms(n, count)])  # fmt: skip
        table("good states: samples, refusals and resets", rows)
    if "faults" in names:
        table("a constant fault of joint3 for 1 s: efforts that were not zero, of 500; "
              "last one [s]; largest share of the limit; refused; stop", (
            (f"{n:32}", *_summary(fault(n))) for n in FAULTS))  # fmt: skip
        table("a source that repeats its state: velocity, time to zero [s], words", (
            (f"{stamps} stamps", speed, f"{time:.3f}", s.refused[-1:])
            for stamps in ("equal", "fresh") for speed in (0.5, 2.0)
            for time, s in [frozen(stamps, speed)]))  # fmt: skip
    if "spikes" in names:
        sizes = [(0, x) for x in (1e-4, 1e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.49, 0.6)]
        sizes += [(1, x) for x in (0.1, 0.5, 1.0, 3.0, 5.0, 8.0, 10.0, 20.0, 50.0, 1e3)]
        table("one wrong sample of joint2: size, change of the effort / limit, refused, "
              "stopped", ((("rad", "rad/s")[place], size, f"{x:.4f}", *rest)
              for place, size in sizes for x, *rest in [spike(place, size)]))  # fmt: skip
    if "laws" in names:
        cases = {
            "wrong sign": {"factor": -1.0}, "times 1e9": {"factor": 1e9},
            "a thousandfold gain": {"gain": 1000.0},
            "wrong sign, later": {"factor": -1.0, "later": 0.3},
            "times 1e9, later": {"factor": 1e9, "later": 0.3},
            "times 3, later": {"factor": 3.0, "later": 0.3},
            "zero, later": {"factor": 0.0, "later": 0.3},
        }  # fmt: skip
        table("laws that are wrong: time until the stop [s], reason", (
            (f"{n:22}", f"{t:.3f}", s.controller.stopped)
            for n, c in cases.items() for t, s in [wrong_law(**c)]))  # fmt: skip
    if "falls" in names:
        table("an arm that falls: stop, speed / limit, velocity after 1.5 s, stop", (
            (kind, f"{s.speed:.1f}", f"{np.abs(s.qd).max():.3g}", s.controller.stopped)
            for kind in ("ramp", "hold", "auto") for s in [fall(kind, 1.5)]))  # fmt: skip
    if "random" in names:
        lives = [random_life(seed) for seed in range(1000)]
        stops = Counter(str(s.controller.stopped) for s in lives)
        table("1000 lives of activations, silences, gains and trajectories: stops",
              [(n, x) for x, n in stops.most_common(8)])  # fmt: skip
    if "limits" in names:
        stand = _limits(30.0)
        print("\n30 minutes at the limits of velocity:", dict(stand.controller.counters),
              stand.controller.stopped)  # fmt: skip


def _summary(stand):
    tau = np.array(stand.sent)
    driven = np.flatnonzero(tau.any(axis=1))
    last = (driven[-1] + 1) * PERIOD if len(driven) else 0.0
    share = np.abs(tau / stand.controller.limit).max()
    stop = stand.controller.stopped
    return len(driven), f"{last:.3f}", f"{share:.2f}", len(stand.refused), stop


if __name__ == "__main__":
    main(sys.argv[1:])
