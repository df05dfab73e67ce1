"""A control cycle as one kernel computes what the Controller computes."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.cli import main
from dyn_core.control import Bounds, Controller, Rules
from dyn_core.engines.llvm.cached import trace_cache
from dyn_core.errors import SettingError, UnsupportedError
from dyn_core.export.cycle.controller_cycle import (
    control_cycle,
    fault_names,
    state_places,
)
from dyn_core.export.cycle.cycle_steps import STATUS

DT = 1e-3
KP, KD = 400.0, 40.0
RULES = {
    "good_samples": 3,
    "state_timeout": 0.02,
    "stop_time": 0.05,
    "on_estop": "ramp",
}
LIMITS = {"joint2": 45.0, "joint4": 18.0}
# Of each cycle of joints the mode of the Controller, and the gains.
_MODES = {
    "computed_torque_cycle": ("computed_torque", ("kp", "kd")),
    "joint_impedance_cycle": ("impedance", ("stiffness", "damping")),
    "gravity_compensation_cycle": ("gravity", ("kd",)),
}


class Watched(Controller):
    """A controller that notes the reference of its last law: a stop changes it."""

    used = None

    def check_sampling(self, *gains):
        """Check nothing: whether the period carries the gains is the caller's."""

    def _torque(self, law):
        self.used = self.follower.reference
        return super()._torque(law)


class Cycle:
    """A kernel with the memory of its caller."""

    def __init__(self, name, model, controller, **settings):
        self.program = control_cycle(name, model, **settings)
        self.controller, self.model = controller, model
        self.state = np.zeros(self.program.outputs[1].size)
        self.tracks = not name.startswith("gravity")
        self.gains = _MODES[name][1]

    def run(self, t, q, qd, fresh=1.0, request=0.0, **bad):
        """Return effort and report, for the reference of the controller."""
        n = self.model.nv
        zero = np.zeros(n)
        reference = self.controller.used or (zero, zero, zero)
        inputs = dict(zip(("q_ref", "qd_ref", "qdd_ref"), reference, strict=True))
        if not self.tracks:
            inputs = {}
        gains = (KP, KD)[-len(self.gains) :]
        pairs = zip(self.gains, gains, strict=True)
        inputs |= {name: np.full(n, gain) for name, gain in pairs}
        inputs |= bad
        live = {"t": t, "fresh": fresh, "request": request, "state": self.state}
        tau, self.state, self.report = self.program(q, qd, **inputs, **live)
        return tau

    def __getattr__(self, name):
        place = state_places(self.model.nv)[name]
        return self.state[place]

    @property
    def status(self):
        """Name of the status."""
        return STATUS[int(self.report[0])]

    @property
    def fault(self):
        """Name of what stopped, or None."""
        names = (None, *fault_names(self.model))
        return names[int(self.report[1])]


# States may be any: what is tested is something else.
ANY_STATE = {"state_bounds": None, "effort_slew": 1e12, "bounds": None}


def _pair(name="computed_torque_cycle", limits=LIMITS, settings=ANY_STATE, **rules):
    model = dyn.load_urdf(dyn.robots.path("arm7"))
    rules = Rules(**{"on_violation": "zero", **RULES, **rules})
    controller = Watched(
        model, kp=KP, kd=KD, mode=_MODES[name][0], rules=rules, effort_limits=limits,
        **settings,
    )  # fmt: skip
    cycle = Cycle(name, model, controller, rules=rules, limits=limits, **settings)
    return controller, cycle


class Plant:
    """A simulated arm."""

    def __init__(self, model, q=None):
        self.q = np.zeros(model.nv) if q is None else q
        self.qd = np.zeros(model.nv)
        step = dyn.solver("semi_implicit_euler")
        self.step = step.build(model, forward_dynamics="aba", joint_friction=True)

    def drive(self, tau):
        """Step in time."""
        self.q, self.qd = self.step(self.q, self.qd, tau, DT)


def _same(tau, expected, exactly=False):
    close = 0.0 if exactly else 1e-12
    np.testing.assert_allclose(tau, expected, rtol=close, atol=close)


def _follow(controller, t):
    names = controller.model.joint_names
    first = np.array([0.6, 0.2, 0.3, -1.2, 0.6, 1.0, 0.6])
    last = np.array([-0.5, 0.7, -0.3, -0.4, -0.6, 0.4, -0.6])
    made = controller.make_trajectory(names, [0.4, 1.0], [first, last])
    controller.follow(made, t)


@pytest.mark.parametrize("name", _MODES)
def test_a_closed_loop_has_the_torques_of_the_controller(name):
    """A run with limits active, and a stop for the envelope that ramps down.

    Laws that follow a reference have the same bits; the one for gravity alone has fewer
    operations than that of the Controller, whose gain is an input.
    """
    bounds = Bounds(
        effort_rate=1e5, kinetic_energy=20.0, tool_speed=3.0, frame="tool",
        velocity=None, tracking_error=None,
    )  # fmt: skip
    settings = ANY_STATE | {"bounds": bounds}
    controller, cycle = _pair(name, settings=settings, on_violation="ramp")
    plant = Plant(controller.model, np.array([0.1, 0.4, 0, -0.7, 0, 0.3, 0]))
    limited, statuses = 0, set()
    for k in range(1300):
        t = 1.0 + DT * k
        expected = controller.update(t, plant.q, plant.qd)
        if k == 10 and cycle.tracks:
            _follow(controller, t)
        tau = cycle.run(t, plant.q, plant.qd)
        _same(tau, expected, cycle.tracks)
        assert (controller.stopped is not None) == (cycle.status == "stopped")
        limited += cycle.report[4]
        statuses.add(cycle.status)
        plant.drive(expected)
        if k == 1100:  # a push that no envelope allows
            plant.qd = plant.qd + 9.0
    assert {"waits", "drives", "stopped"} <= statuses
    assert cycle.fault in ("kinetic_energy", "tool_speed") or "rate" in cycle.fault
    least = {"computed_torque_cycle": 100, "joint_impedance_cycle": 5}.get(name, -1)
    assert limited > least
    assert controller.counters["torque limited"] > least


@pytest.mark.one_of(2)
@pytest.mark.turns("on_stale", "checks")
@pytest.mark.parametrize("name", _MODES)
@pytest.mark.parametrize("on_stale", ["zero", "ramp"])
@pytest.mark.parametrize("checks", ["of efforts", "default"])
def test_random_events_have_the_torques_of_the_controller(name, on_stale, checks):
    """Silence, bad samples, jumps, stops, resets: in any order.

    By default states are checked, too, and efforts change at a bounded rate.
    """
    rng = np.random.default_rng(7)
    bounds = Bounds(joint_power=900.0, velocity=None, tracking_error=None)
    settings, kind = ANY_STATE | {"bounds": bounds}, "ramp"
    if checks == "default":
        settings, kind = {}, "auto"
    rules = {"on_stale": on_stale, "on_violation": kind}
    controller, cycle = _pair(name, settings=settings, **rules)
    plant = Plant(controller.model)
    tau, t, seen = np.zeros(7), 1.0, set()
    events = ["none"] * 12 + ["silence", "short", "nan", "jump", "ramp", "zero"]
    events += ["reset"] * 4 + ["silence", "fling"]
    while t < 6.0:
        event, length = str(rng.choice(events)), int(rng.integers(1, 60))
        length = {"nan": 4, "jump": 1, "short": 8, "fling": 1}.get(event, length)
        if event in ("ramp", "zero"):
            controller.safety.stop(t + DT, "estop", event, "asked")
        elif event == "reset":
            controller.reset_stop()
        for k in range(length):
            t += DT
            request = {"ramp": 1.0, "zero": 2.0, "reset": 3.0}.get(event, 0.0)
            request *= k == 0
            q, qd, fresh = plant.q, plant.qd, 1.0
            if event == "jump":
                q = plant.q = q + rng.choice([0.6, -0.6])
            if event == "fling":
                qd = plant.qd = qd + 60.0 * rng.standard_normal(7)
            if event in ("silence", "short"):
                fresh = 0.0
            if event == "nan":
                q = np.where(np.arange(7) == rng.integers(7), np.nan, q)
            good = bool(fresh) and np.isfinite(q).all()
            try:
                expected = controller.update(t, q, qd) if good else controller.watch(t)
            except dyn.StateError:
                expected = controller.watch(t)
            last, tau = tau, cycle.run(t, q, qd, fresh, request)
            seen.add(cycle.status)
            if expected is not None:  # a bounded change is one operation in a kernel
                _same(tau, expected, cycle.tracks and checks != "default")
            elif event == "reset":
                assert not tau.any()
            elif cycle.status != "stopped":  # the Controller sends nothing
                assert cycle.status == ("refused" if fresh else "kept")
                _same(tau, last, True)
            assert (controller.stopped is not None) == (cycle.stop[0] > 0)
            if np.abs(plant.q).max() > 20 or np.abs(plant.qd).max() > 100:
                plant.q, plant.qd = 0 * plant.q, 0 * plant.qd
            plant.drive(tau)
    assert seen == {"drives", "waits", "refused", "kept", "stale", "stopped"}


def _driving(bounds=None, **rules):
    """Return a kernel that drives, and its last torque."""
    settings = ANY_STATE | {"bounds": bounds}
    controller, cycle = _pair(settings=settings, **rules)
    q = np.full(7, 0.2)
    for k in range(4):
        controller.update(DT * k, q, 0 * q)
        tau = cycle.run(DT * k, q, 0 * q)
    assert cycle.status == "drives" and tau.any()
    return cycle, q, tau


def test_the_last_good_torque_bridges_as_many_cycles_as_the_rules_say():
    """What makes no finite effort stops after last_good_cycles, in words."""
    for bad in ("q_ref", "qd_ref", "qdd_ref", "kp", "kd"):
        cycle, q, last = _driving(last_good_cycles=2)
        broken = np.where(np.arange(7) == 3, np.nan, 0.1)
        for k in range(4, 6):
            _same(cycle.run(DT * k, q, 0 * q, **{bad: broken}), last)
            assert cycle.status == "bridges"
        assert not cycle.run(DT * 6, q, 0 * q, **{bad: broken}).any()
        assert cycle.status == "stopped"
        assert cycle.fault == "effort not finite"
        assert not cycle.run(DT * 7, q, 0 * q).any()  # the stop lasts


def test_a_stop_names_its_bound():
    """The report keeps quantity, joint, value and bound until the reset."""
    free = {"velocity": None, "tracking_error": None}
    cycle, q, _ = _driving(Bounds(joint_power={"joint4": 5.0}, **free))
    qd = np.where(np.arange(7) == 3, 3.0, 0.0)
    assert not cycle.run(4 * DT, q, qd).any()
    cycle.run(5 * DT, q, 0 * q)
    assert cycle.fault == "joint_power of joint4"
    assert abs(cycle.report[2]) > cycle.report[3] == 5.0
    cycle.run(6 * DT, q, 0 * q, request=3.0)
    assert cycle.fault is None and cycle.status == "waits"


@pytest.mark.parametrize("request_", [2.0, 7.0, -1.0, 0.5, np.nan, np.inf])
def test_a_request_that_is_unknown_stops(request_):
    """Only the known requests are harmless."""
    cycle, q, _ = _driving()
    assert not cycle.run(4 * DT, q, 0 * q, request=request_).any()
    assert cycle.status == "stopped" and cycle.fault == "request"


@pytest.mark.parametrize(
    ("rules", "stops"),
    [
        ({}, (2.0, 3.0, 2.0)),
        ({"on_stale": "ramp", "on_violation": "ramp", "stop_time": 0.05}, (1.0, 1.0, 0.05)),
        ({"on_stale": "zero", "on_violation": "zero"}, (2.0, 2.0, 2.0)),
    ],
)  # fmt: skip
def test_stops_that_are_inputs_act_as_rules(rules, stops):
    """The stops of silence and violations, and their time, may change in each cycle."""
    model, rng = dyn.load("two_link"), np.random.default_rng(1)
    fixed = control_cycle("computed_torque_cycle", model, rules=Rules(**rules))
    other = Rules(on_stale="ramp", on_violation="zero", stop_time=9.0)
    live = control_cycle("computed_torque_cycle", model, rules=other, inputs=["stops"])
    memory, q, zero, seen = (
        np.zeros(fixed.outputs[1].size),
        np.zeros(2),
        np.zeros(2),
        set(),
    )
    for k in range(1500):
        q, fresh = q + rng.normal(size=2) * 1e-4, k % 300 < 100
        far = rng.random() < 0.005  # outside the envelope
        reference = q + rng.normal(size=2) * 0.01 + far
        request = 3.0 if k % 400 == 0 else 0.0
        arguments = (q, zero, reference, zero, zero, zero + 100.0, zero + 20.0, k * 1e-3,
                     float(fresh), request, memory)  # fmt: skip
        results = fixed(*arguments)
        for one, two in zip(results, live(*arguments, np.array(stops)), strict=True):
            np.testing.assert_array_equal(one, two)
        memory = results[1]
        seen.add(STATUS[int(results[2][0])])
    assert seen >= {"drives", "stale", "stopped"}


def test_stops_that_are_no_numbers_end_at_zero():
    """NaN in place of stops is a stop at zero, as a request that is unknown."""
    model, zero = dyn.load("two_link"), np.zeros(2)
    cycle = control_cycle("computed_torque_cycle", model, inputs=["stops"])
    memory, nan = np.zeros(cycle.outputs[1].size), np.full(3, np.nan)
    for k in range(9):
        far = zero + (1.0 if k > 5 else 0.1)
        arguments = zero, zero, far, zero, zero, zero + 100.0, zero + 20.0, k * 1e-3
        tau, memory, report = cycle(*arguments, 1.0, 0.0, memory, nan)
        assert k < 3 or tau.any() == (k <= 5)
    assert STATUS[int(report[0])] == "stopped"


def test_a_disabled_controller_begins_anew():
    """Torque comes back after good samples."""
    cycle, q, last = _driving()
    assert not cycle.run(4 * DT, q, 0 * q, request=4.0).any()
    _same(cycle.run(5 * DT, q, 0 * q), last)


@pytest.mark.parametrize("what", ["silence", "jump"])
def test_a_caller_sees_that_the_history_has_ended(what):
    """A cycle waits after each interruption, also where one good state is enough."""
    cycle, q, _ = _driving(good_samples=1)
    t, q = (1.0, q) if what == "silence" else (4 * DT, q + 0.6)
    assert not cycle.run(t, q, 0 * q).any()
    assert cycle.status == "waits"
    cycle.run(t + DT, q, 0 * q)
    assert cycle.status == "drives"


@pytest.mark.parametrize("t", [np.nan, np.inf, -np.inf, -1.0])
def test_a_bad_clock_drives_nothing(t):
    """Zero in its cycle; time that goes back begins anew."""
    cycle, q, last = _driving()
    assert not cycle.run(t, q, 0 * q).any()
    tau = cycle.run(4 * DT, q, 0 * q)
    if np.isfinite(t):
        assert not tau.any()
    else:
        _same(tau, last)


def test_no_numbers_make_a_torque_that_is_not_finite_or_too_large():
    """Any input and any state, broken in any place."""
    free = {"velocity": None, "tracking_error": None}
    cycle, q, _ = _driving(Bounds(kinetic_energy=1e6, **free))
    program, rng = cycle.program, np.random.default_rng(3)
    n = sum(port.size for port in program.inputs)
    bad = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 1e30, 1.0, 2.0, 0.0])
    rows = np.repeat(rng.uniform(-1, 1, (1, n)), 4000, axis=0)
    for row in rows:
        places = rng.integers(0, n, rng.integers(1, 6))
        row[places] = rng.choice(bad, len(places))
    parts, start = [], 0
    for port in program.inputs:
        part = rows[:, start : start + port.size]
        parts.append(np.ascontiguousarray(part.reshape(len(rows), *port.shape)))
        start += port.size
    tau = program(*parts)[0]
    limit = np.array([LIMITS.get(n, np.inf) for n in cycle.model.joint_names])
    limit = np.minimum(
        limit, np.where(np.isinf(limit), cycle.model.effort_limit, limit)
    )
    assert np.isfinite(tau).all()
    assert (np.abs(tau) <= limit).all()
    assert np.abs(tau).max() > 0.5


@pytest.mark.parametrize(
    ("settings", "error", "expected"),
    [
        ({"rules": Rules(on_violation="hold")}, SettingError, "valid in a kernel"),
        ({"rules": "ramp"}, SettingError, r"rules is 'ramp'; valid: Rules\("),
        ({"bounds": {"power": 1}}, SettingError, r"bounds is .*; valid: Bounds\("),
        ({"state_bounds": 3}, SettingError, r"3; valid: StateBounds\("),
        ({"limits": {"joint9": 1.0}}, SettingError, "no such joint"),
        ({"bounds": Bounds(power=-1.0)}, SettingError, "power is -1.0"),
        ({"finite": True}, UnsupportedError, "finite=True; valid: False"),
        ({"dtype": "float32"}, UnsupportedError, "valid: 'float64'"),
        (
            {"name": "gravity_compensation_cycle", "wrap": ["elbow"]},
            dyn.ModelError,
            "no moving joint is called 'elbow'",
        ),
        ({"name": "lqr_cycle"}, UnsupportedError, "valid: computed_torque_cycle"),
    ],
)
def test_bad_settings_are_refused(settings, error, expected):
    """In words."""
    model = dyn.load_urdf(dyn.robots.path("arm7"))
    with pytest.raises(error, match=expected):
        control_cycle(**{"name": "computed_torque_cycle", "model": model, **settings})


def test_the_command_exports_a_whole_controller(tmp_path, capsys):
    """Rules and bounds go by name; what is no option is refused."""
    command = ["export", "computed_torque_cycle", "arm7", str(tmp_path)]
    options = ["--option", "on_violation=ramp", "--option", "kinetic_energy=30"]
    assert main([*command, *options]) == 0
    assert "computed_torque_cycle_arm7.o" in capsys.readouterr().out
    assert main([*command, "--option", "on_violation=hold"]) != 0
    assert "valid in a kernel: zero, ramp, auto" in capsys.readouterr().err


@pytest.mark.parametrize(
    "what", ["export.cycle.cycle_steps.Cycle._carried", "control.safety.envelope.total"]
)
def test_a_changed_cycle_is_traced_again(what, monkeypatch):
    """Kernels on disk are found by the code of the cycle, too: none is a stale one."""
    model = dyn.load_urdf(dyn.robots.path("arm7"))
    program = control_cycle("computed_torque_cycle", model, engine="graph")
    before = trace_cache.key(program.function, "")
    monkeypatch.setattr(f"dyn_core.{what}", lambda self: self.zero)
    assert before is not None
    assert trace_cache.key(program.function, "") != before


def test_states_that_jump_to_and_fro_become_no_torque():
    """As those of two robots on one topic: until none has jumped for a while."""
    controller, cycle = _pair()
    torques = []
    for k in range(120):
        q = np.full(7, 0.3 if k < 60 and k % 10 < 5 else -0.4)
        torques.append(controller.update(DT * k, q, 0 * q))
        _same(cycle.run(DT * k, q, 0 * q), torques[-1])
    assert not np.any(torques[16:60])
    assert np.any(torques[100])


def test_silence_after_a_new_start_carries_nothing():
    """There is nothing to bring to rest: the robot was not driven since."""
    controller, cycle = _pair(on_stale="ramp")
    q = np.full(7, 0.2)
    for k in range(8):
        state = q + 0.6 * (k == 7), 0 * q
        expected = controller.update(DT * k, *state)
        _same(cycle.run(DT * k, *state), expected)
    expected = controller.watch(0.05)
    _same(cycle.run(0.05, q, 0 * q, fresh=0.0), expected)
    assert cycle.status == "stale" and not expected.any()
