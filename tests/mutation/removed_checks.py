"""Remove each check of states, envelope, stops, watchdog and limits: which test falls?

    python tests/mutation/removed_checks.py                     # all: some minutes
    python tests/mutation/removed_checks.py effort_checks.py stops.py  # of these files

The checks stand in CHECKS, as what the product says and what is left without the check.
Each is removed in a fork of a process that has loaded the product: functions get other
code, no file changes. The tests of the file then run until one fails. The list of what
fell is tests/mutation/mutation_survivors.md; a check without such a test is a test that is missing.
"""

import importlib
import os
import resource
import signal
import sys
import time
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from dyn_core.engines.machine_code import CompiledFunction

ROOT = Path(__file__).resolve().parents[2]
CONTROL = "dyn_core/control/"
WATCHDOG = "ros_nodes/running/watchdog.py"
SAFETY = ("tests/control/safety/test_safety.py", "tests/control/safety/test_stops.py")
STATES = ("tests/control/test_watching.py", "tests/control/test_control.py")
PATHS = (
    "tests/control/reference/test_trajectory.py", "tests/control/reference/test_following.py", "tests/control/test_control.py",
    "tests/control/reference/test_references.py",
)  # fmt: skip
TESTS = {
    "envelope.py": (*SAFETY, "tests/control/states/test_plausibility.py"),
    "effort_checks.py": (
        *SAFETY,
        "tests/control/test_control.py",
        "tests/control/test_control_laws.py",
        "tests/control/states/test_plausibility.py",
    ),
    "shadow.py": (*SAFETY, "tests/control/safety/test_bit_flips.py"),
    "stops.py": SAFETY,
    "silence.py": (*STATES, *SAFETY),
    "state_samples.py": (*STATES, "tests/control/states/test_plausibility.py"),
    "plausibility.py": ("tests/control/states/test_plausibility.py", *STATES),
    "joint_values.py": ("tests/control/states/test_plausibility.py", *SAFETY),
    "joint_limits.py": PATHS,
    "rules.py": (*SAFETY, *STATES, *PATHS[:2]),
    "following.py": (*PATHS[1:], *PATHS[:1], *SAFETY),
    "ramps.py": PATHS[3:],
    "guard_link.py": ("tests/control/safety/test_guard_link.py",),
    "supervision.py": (
        "tests/control/safety/test_supervision.py",
        "tests/control/safety/test_guard_link.py",
    ),
    "watchdog.py": ("tests/nodes/test_threads.py",),
}
TESTS = {
    name: (*files, "tests/control/safety/test_checks.py")
    for name, files in TESTS.items()
}
LONGEST = 60  # processor time of the tests of one removal [s]
MOST = 4 << 30  # memory of them [bytes]
FORGET = '        self.bounds[[n == "{}" for n, _ in self.names]] = 1e300'
QUANTITIES = (
    "effort", "effort_rate", "joint_power", "tracking_error", "power", "kinetic_energy",
    "tool_speed",
)  # fmt: skip
WHOLE_NAMES = 'self.names += [(name, "") for name in WHOLE]'

# File: what it says, and what is left where the check is removed.
CHECKS = {
    "envelope.py": [
        *((WHOLE_NAMES, f"{WHOLE_NAMES}\n{FORGET.format(x)}") for x in QUANTITIES),
        ("if bounds.effort is None:", "if False:"),
        ("far[j] = min(FAR, span / 2)", "pass"),
        ("far.tolist() if tracks else None", "far.tolist()"),
        ("[SPEEDING * x if yes else None for x, yes in pairs]", "None"),
        ("far.tolist() if tracks else None", "None"),
        ("if (frame is None) != (bounds.tool_speed is None):", "if False:"),
        ("if frame is not None and frame not in model.frame_names:", "if False:"),
        ("np.abs(values) <= self.bounds  #", "~(np.abs(values) > self.bounds)  #"),
        ("absolute(x) <= bound, 0.0, 1.0)", "bound < absolute(x), 1.0, 0.0)"),
        ("if outside == 0.0:", "if True:"),
        ("max(dt, SHORTEST)", "dt"),
    ],
    "joint_values.py": [
        ("if joint not in model.joint_names:", "if False:"),
        ("if np.shape(value) != (model.nv,):", "if False:"),
        ("not is_finite(value) or value <= 0", "value <= 0"),
        ("not is_finite(value) or value <= 0", "not is_finite(value)"),
    ],
    "plausibility.py": [
        ("if not kind.takes(self.velocity_factor) or not self.velocity_factor >= 1:", "if False:"),
        ("model.lower - slack, -np.inf)", "-np.inf, -np.inf)"),
        ("model.upper + slack, np.inf)", "np.inf, np.inf)"),
        ("model.lower - slack", "model.lower"),
        ("ranged = model.lower < model.upper", "ranged = model.lower <= model.upper"),
        ("np.inf if made else bounds.velocity_factor", "bounds.velocity_factor"),
        ("np.maximum(2 * known, least)", "2 * known"),
        ("outside = OUTSIDE\n        if not (-rows", "pass\n        if not (-rows"),
        ("outside = OUTSIDE\n        if known", "pass\n        if known"),
        ("-rows.fastest[k] <= v <= rows.fastest[k]", "v <= rows.fastest[k]"),
        ("math.isfinite(x) and math.isfinite(v)", "math.isfinite(v)"),
        ("math.isfinite(x) and math.isfinite(v)", "math.isfinite(x)"),
        ("abs(change) > jump", "change > jump"),
        ("w != 0 and abs(x - before) > MOST_TURNS * TURN", "False"),
        ("rows.qd_before[k] if made != 0 else v", "v"),
        ("rate if change * v > 0.0 else 0.0", "rate"),
        ("abs(by_positions) < abs(v)", "False"),
        ("if self.made:\n            after = before", "pass"),
        ("abs(change - end * dt) <= rows", "change - end * dt <= rows"),
        ("SHORTEST * min(dt, period or dt)", "0.0"),
        ("max(dt, period) + JITTER", "max(dt, period)"),
        ("max(dt, period) + JITTER", "dt + JITTER"),
        ("for rate in (after, (before + after) / 2):", "for rate in (after,):"),
        ("if agrees.all():", "if True:"),
        ("        if self.doubt is not None:\n", "        if False:\n"),
        ("not 0 <= stamp - last <= self.gap", "False"),
        ("abs(rows.gap[k]) <= rows", "rows.gap[k] <= rows"),
        ("            beyond = 1\n", "            pass\n"),
        ("elif stamp - self._start >= self.window:", "elif True:"),
        ("elif stamp - self._start >= self.window:", "elif False:"),
        ("        self._last = None\n\n    def add", "        pass\n\n    def add"),
    ],
    "effort_checks.py": [
        ("if self.running is None or _rank(kind) < _rank(self.running.kind):", "if True:"),
        ('{cause}"] += 1\n        self.gate.close()', '{cause}"] += 1'),
        ("self.running = None\n        self.gate.close()", "self.running = None"),
        ("if self.running is None:\n            tau = ", "if True:\n            tau = "),
        ("if fault is not None and self.running is None:", "if False:"),
        ("if tau is None or ticket != self.ticket:", "if tau is None:"),
        ("        if tau is None:\n            self.counters[\"torque not finite\"] += 1\n"
         "            return", "        if False:\n            return"),
        ("        return self._limited(tau)\n", "        return tau\n"),
        ("if tau is None:\n            self.counters[\"torque not finite\"] += 1\n"
         "            self.failures", "if False:\n            self.failures"),
        ("if self.failures > self.rules.last_good_cycles:", "if False:"),
        ("self.failures = 0\n        doubt", "doubt"),
        ("if self.shadow is None:", "if True:"),
        ("if doubt is not None:", "if False:"),
        ("return doubt if self.shadow.settings.stop else None", "return None"),
        ("return doubt if self.shadow.settings.stop else None", "return doubt"),
        ("except Exception as failure:", "except () as failure:"),
        ("fault = self._doubt(tau)\n", "fault = None\n"),
        ("self._slewed(t, self._limited(tau))\n        return", "self._slewed(t, tau)\n        return"),
        ("self.good = self._slewed(t, self._limited(tau))", "self.good = self._limited(tau)"),
        ("self._slewed(t, carried) if goes_on else carried", "carried"),
        ("self._slewed(t, carried) if goes_on else carried", "self._slewed(t, carried)"),
        ("not y - slew * dt <= x <= y + slew * dt", "not x <= y + slew * dt"),
        ("not y - slew * dt <= x <= y + slew * dt", "not y - slew * dt <= x"),
        ("if self._slewing is None:\n            return None", "return None"),
        ("SWINGS * 2 * self.limit", "2 * self.limit"),
        ("self._slewing = None\n            return tau", "return tau"),
        ('"ramp" if self.can_brake() else "zero"', '"ramp"'),
        ('"ramp" if self.can_brake() else "zero"', '"zero"'),
        ("if np.iscomplexobj(result) and result.imag.any():", "if False:"),
        ("return self.good.copy()\n\n", "return self.good\n\n"),
        ("if self.envelope is None or oscillation is not None:", "if True:"),
        ("        self.brake(True)\n", ""),
        ("t - stop.since > self.rules.stop_time", "False"),
        ('stop.kind == "ramp" and not late', 'stop.kind == "ramp"'),
        ("tau = self._slewed(t, self._limited(tau))\n                if fault", "if fault"),
        ("if fault is None and late:", "if False:"),
        ('self.stop(t, "violation", "zero", fault)', "pass"),
        ('self.stop(t, "violation", "zero", "torque not finite while holding")', "pass"),
        ("except Exception as error:", "except () as error:"),
        ("tau.shape == self.limit.shape and ", ""),
        (" and all(map(math.isfinite, tau.tolist()))", ""),
        ("np.minimum(np.maximum(tau, -self.limit), self.limit)", "np.minimum(tau, self.limit)"),
        ("np.minimum(np.maximum(tau, -self.limit), self.limit)", "np.maximum(tau, -self.limit)"),
        ("        self.good = self.zero\n", '        self.good = vars(self).get("good", self.zero)\n'),
        ("np.abs(self.good) >= self.limit", "False"),
    ],
    "shadow.py": [
        ("is_finite(value) and value >= 0", "value >= 0"),
        ("is_finite(value) and value >= 0", "is_finite(value)"),
        ("except Exception as error:", "except () as error:"),
        ("if other.shape != tau.shape:", "if False:"),
        ("(gap <= allowed).all():  #", "not (gap > allowed).any():  #"),
        ("(gap <= allowed).all():  #", "True:  #"),
        ("first is other and second.engine == law.engine", "False"),
    ],
    "stops.py": [
        ("with self._lock:\n            self.generation", "if True:\n            self.generation"),
        ("self.generation += 1", "pass"),
        ("                act()\n", "                pass\n"),
        ("with self._lock:\n            if ticket", "if True:\n            if ticket"),
        ("if ticket != self.generation:", "if False:"),
    ],
    "silence.py": [
        ("if age is None:", "if True:"),
        ("self.samples.good = 0", "pass"),
        ('if stop is not None and stop.kind != "hold":', "if False:"),
        ('if stop is not None and stop.kind != "hold":', "if stop is not None:"),
        ("max(age, t - stop.since)", "age"),
        (" and enabled", ""),
        (" and drove", ""),
        (" and age <= self.rules.stop_time", ""),
        ("if ramp and q is not None and qd is not None:", "if ramp:"),
        ("if self.samples.seen == seen:", "if True:"),
        ("gate.send(ticket, gate.close, send)", "gate.send(gate.ticket(), gate.close, send)"),
        ("gate.send(ticket, gate.close, send)", "gate.send(ticket, send)"),
    ],
    "state_samples.py": [
        ("if x.shape != (n,):", "if False:"),
        ("if not all(map(math.isfinite, x.tolist())):", "if False:"),
        (', ("velocity", qd)):', ",):"),
        ("if stamp is None or stamp != self.stamp:", "if True:"),
        ("self.age.check(stamp, clock)", "pass"),
        ("raise self.check.beyond(q, qd)", "pass"),
        ("if faults & NOT_FINITE:", "if False:"),
        ("& APART:", "& 0:"),
        ("self.check.check_motion(change, self.qd, qd, dt, self.mean_period)", "pass"),
        ("self.motion.add(stamp)", "pass"),
        ("            self._note_jump(t)\n            raise", "            raise"),
        ("            self.motion.interrupt()", "            pass"),
        (" and not self.paused", ""),
        ("0 <= clock - self.now <= self.rules.state_timeout", "True"),
        ("0 <= clock - self.now <= self.rules.state_timeout", "False"),
        ("if gone <= arrived + self.rules.state_timeout:", "if True:"),
        ("max(arrived, self.mean_period)", "arrived"),
        ("if dt > self.rules.state_timeout:\n            return", "if False:\n            return"),
        ("np.array(q, float)  #", "np.asarray(q, float)  #"),
        ("qd = np.array(qd, float)", "qd = np.asarray(qd, float)"),
        ("if not self.rules.differentiate:", "if False:"),
        (" or t <= self.seen:", ":"),
        ("if stamp is not None and self.stamp is not None and stamp < self.stamp:", "if False:"),
        ("if now is not None and self.now is not None and now < self.now:", "if False:"),
        ("if self.q is not None and self.silence(t) is not None and not self.paused:", "if False:"),
        ("and now - self.now > LONGEST_STEP + self.rules.state_timeout", "and False"),
        ("& FAR:", "& 0:"),
        ("if why in (MOVED, BACK):", "if False:"),
        ("if why in (MOVED, BACK):", "if why == MOVED:"),
        ("self.jumps > GLITCH and not quiet", "False"),
        ("self.jumps > GLITCH and not quiet", "self.jumps > GLITCH"),
        ("self.jumps + 1 if row else 1", "self.jumps + 1"),
        ("seen is None or t - seen <= self.rules.state_timeout", "True"),
        (" or not self.longest", ""),
        ("stamp is None or clock is None", "clock is None"),
        ("stamp is None or clock is None", "stamp is None"),
        ("            self.unstamped = True", "            pass"),
        ("abs(age) <= self.longest", "age <= self.longest"),
        ("abs(age) <= self.longest", "age >= -self.longest"),
        ("if abs(age) <= self.longest:", "if not abs(age) > self.longest:"),
        ("self._refused >= SEVERAL and ", ""),
        (" and self._most - self._least <= STEADY", ""),
        ("                self._accept()\n", "                pass\n"),
    ],
    "joint_limits.py": [
        ("(q < self.lower - ROUNDING) | ", ""),
        (" | (q > self.upper + ROUNDING)", ""),
        ("excess = first_excess(c * powers[:, :, None], self.lower, self.upper)", "excess = None"),
        ("excess = first_excess(slopes * powers[:, :-1, None], -bound, bound)", "excess = None"),
        ("(hull.min(axis=0) >= low) & ", ""),
        (" & (hull.max(axis=0) <= high)", ""),
        ("(ends >= bottom) & ", ""),
        (" & (ends <= top)", ""),
        ("if not isinstance(chosen, Mapping):", "if False:"),
        ("if name not in model.joint_names:", "if False:"),
        ("math.isfinite(value) and value > 0", "value > 0"),
        ("math.isfinite(value) and value > 0", "math.isfinite(value)"),
        ("lower=lower - tolerance", "lower=lower - 1e9"),
        ("upper=upper + tolerance", "upper=upper + 1e9"),
        ("np.fmin(lower, q)", "lower"),
        ("np.fmax(upper, q)", "upper"),
    ],
    "rules.py": [
        *((f'            "{name}",\n', "") for name in (
            "state_timeout", "max_jump", "stop_time", "filter_time", "start_tolerance",
            "limit_tolerance", "blend_time", "deceleration")),
        ("Quantity(0.0, above=True)", "Quantity(0.0)"),
        ('    "good_samples": Whole(1),\n', ""),
        ('    "last_good_cycles": Whole(0),\n', ""),
        ('"on_stale": Name(ON_STALE)', '"on_stale": Name(STOPS)'),
        ("    **dict.fromkeys(ON_EVENTS[1:], Name(STOPS)),\n", ""),
        ('    "on_violation": Name((*STOPS, AUTO)),\n', ""),
        ('    "max_state_age": Quantity(0.0),\n', ""),
        ('    "differentiate": Switch(),\n', ""),
        ("if getattr(self, name) != getattr(type(self), name) and not acts:", "if False:"),
    ],
    "following.py": [
        ('limits.check_pieces(lengths, c, lambda k: "on the way to the trajectory")', "pass"),
        ("lower=limits.lower", "lower=None"),
        ("upper=limits.upper", "upper=None"),
        ("velocity=limits.velocity", "velocity=None"),
        ("begins = max(start, now)", "begins = start"),
        ("limits.check_points(trajectory.q + shift)", "pass"),
        ("motion.check(limits)", "pass"),
        ("moved.check(limits)", "pass"),
        ("path.check_way(limits)", "pass"),
        ("if distance.max(initial=0.0) > reach:", "if False:"),
        ("np.minimum(np.abs(reference - first), np.abs(q - first))", "np.abs(reference - first)"),
        ("if self.reference is None:\n            return", "if False:\n            return"),
        ("min(max((t - self.begins) / self.blend, 0.0), 1.0)", "max((t - self.begins) / self.blend, 0.0)"),
        ("self.offset is None or s >= self.blend", "self.offset is None"),
    ],
    "ramps.py": [
        ("np.fmin(speed.max() / deceleration, 2 * left / speed)", "speed.max() / deceleration + 0 * speed"),
        (".clip(room)", ""),
        ("max(faster, LEAST_FASTER)", "MOST_FASTER"),
        ("faster = min(faster, change / math.sqrt(2))", "pass"),
        ("times[[0, -1]] = span", "pass"),
    ],
    "guard_link.py": [
        ("elif beat.resets < guard.beat.resets:", "elif False:"),
        ("guard.lost = guard.graced = False", "guard.lost = False"),
        ("guard.lost = guard.graced = False", "guard.graced = False"),
        ("guard.confirmed |= t >= self._settled", "guard.confirmed = True"),
        ("if beat.stopped:\n", "if False:\n"),
        ("guard.latch is not None and beat.resets > guard.latch:", "True:"),
        ("if beat.ends:", "if False:"),
        ("        if guard.latch is None:\n            del", "        if True:\n            del"),
        ("if self.required and all(", "if all("),
        ("if self.required and all(x.beat.ends or x.lost for x in self.guards.values()):",
         "if self.required:"),
        ("if self.required and all(", "if False and all("),
        ("if t >= guard.deadline and not (guard.beat.ends or guard.lost):", "if False:"),
        ("(guard.beat.ends or guard.lost)", "guard.lost"),
        ("(guard.beat.ends or guard.lost)", "guard.beat.ends"),
        ("if pause > LATE and t >= guard.deadline and not guard.graced:", "if False:"),
        (" and not guard.graced:", ":"),
        ("if pause > LATE and t", "if t"),
        ("if pause > self.longest_pause and not guard.beat.ends:", "if False:"),
        ("if guard.lost and (guard.latch is None or free):", "if guard.latch is None or free:"),
        ("if guard.lost and (guard.latch is None or free):", "if guard.lost:"),
        ("        self._excuse(t)\n        living", "        living"),
        ("        self.fault = None\n", ""),
        ("if self.required and not living:", "if False:"),
        ("if t < x.deadline and not (x.beat.ends or x.lost)]", "]"),
        ("        if not living:\n", "        if False:\n"),
        ("            if guard.latch is not None:\n                return f\"the guard is",
         "            if False:\n                return f\"the guard is"),
        ("        self.link.begin(t)\n        self._answered = None\n        self._act(t)",
         "        self.link.begin(t)\n        self._answered = None"),
        ("self.link.hear(t, beat)\n        self._act(t)", "self.link.hear(t, beat)"),
        ("self.link.check(t)\n        self._act(t)", "self.link.check(t)"),
        ('if stop is not None and stop.cause == "shutdown":', "if False:"),
        ("self.link.check(self.controller.seen)\n", "pass\n"),
        ("if self.link.fault is not None and stop is None:", "if False:"),
        ("if self.link.waits and tau.any():", "if False:"),
        ('(stop is None or stop.kind != "zero"):', "stop is None:"),
        ("self._stops() if stop is None else -1", "self._stops()"),
        ("link.latch)\n            self.send_zero()", "link.latch)"),
        ("stop is not None and self._others == self._stops():", "stop is not None:"),
        ("if link.fault is not None and link.fault != self._answered:", "if False:"),
        ('            if safety.running.kind == "zero":\n                self.send_zero()', ""),
        ('if k.startswith("stopped: ") and k != guards)', 'if k.startswith("stopped: "))'),
    ],
    "supervision.py": [
        ("if not tau.any():\n            self._deadline = None\n            return False",
         "if not tau.any():\n            return False"),
        ("if self.stopped is not None:\n            self.counters", "if False:\n            self.counters"),
        ("elif not np.isfinite(tau).all():", "elif False:"),
        ("and t >= self._deadline:\n", "and False:\n"),
        ("if t > self._deadline + LATE and not self._graced:", "if False:"),
        (" and not self._graced:", ":"),
        ("        if self.stopped is None:\n            self.stopped = reason",
         "        if True:\n            self.stopped = reason"),
        ("if self._driven is not None and t - self._driven < self.timeout and self.stands:",
         "if False:"),
        ("self.stopped, self.resets = None, self.resets + 1", "self.stopped = None"),
    ],
    "watchdog.py": [
        ("min(timeout / 4, LONGEST)", "timeout / 4"),
        ("except Exception as error:", "except () as error:"),
        ("if not self._failed:", "if True:"),
        ("self._ended.set()", "pass"),
        ("self._thread.join(JOIN)", "pass"),
        (" and self._thread is not threading.current_thread()", ""),
    ],
}  # fmt: skip


def path_of(name):
    """Return the path of a file of CHECKS in the repository."""
    if name == Path(WATCHDOG).name:
        return WATCHDOG
    (path,) = (ROOT / CONTROL).rglob(name)
    return path.relative_to(ROOT).as_posix()


def without(name, check):
    """Return the text of a file without a check, which stands there once."""
    before, after = check
    text = (ROOT / path_of(name)).read_text("utf-8")
    if text.count(before) != 1:
        raise SystemExit(f"{name}: {text.count(before)} times: {before}")
    return text.replace(before, after)


def _codes(code, prefix=""):
    """Return the code objects of functions in a module's code, by qualified name."""
    codes = {}
    for part in code.co_consts:
        if hasattr(part, "co_code"):
            codes[prefix + part.co_name] = part
            codes |= _codes(part, f"{prefix}{part.co_name}.")
    return codes


def _functions(owner):
    """Return the functions of a module or a class, and of the classes in it."""
    for thing in list(vars(owner).values()):
        if isinstance(thing, type) and thing.__module__ == _module(owner):
            yield from _functions(thing)
        for part in (thing, *(getattr(thing, x, None) for x in ("fget", "__func__"))):
            part = getattr(part, "__wrapped__", part)
            if hasattr(part, "__code__") and part.__module__ == _module(owner):
                yield part


def _module(owner):
    return owner.__module__ if isinstance(owner, type) else owner.__name__


def change(module, text):
    """Give a loaded module the code, and the tables, of another text."""
    code = compile(text, module.__file__, "exec")
    codes = _codes(code)
    for function in _functions(module):
        new = codes.get(function.__qualname__)
        if new is not None and new.co_freevars == function.__code__.co_freevars:
            function.__code__ = new
    fresh = {"__name__": module.__name__}
    exec(code, fresh)
    for name, value in vars(module).items():
        if isinstance(value, dict) and not name.startswith("__"):
            value.clear()
            value.update(fresh[name])


def run_as_python(module):
    """Run the module's functions of machine code as Python, which `change` changes."""
    compiled = CompiledFunction.native.fget

    def native(function):
        return function.function.__module__ != module and compiled(function)

    CompiledFunction.native = property(native)


class Runner:
    """A pytest plugin: in place of one run of the tests, one run a check."""

    def __init__(self, names):
        self.names, self.survivors = names, 0

    def pytest_runtestloop(self, session):
        """Print a row for each check."""
        for name in self.names:
            items = [x for x in session.items if x.nodeid.split("::")[0] in TESTS[name]]
            items.sort(key=lambda x: TESTS[name].index(x.nodeid.split("::")[0]))
            for check in CHECKS[name]:
                test = fallen(name, check, items)
                self.survivors += not test
                shown = f"`{test.split('::')[-1]}`" if test else "none"
                os.write(1, f"{row(name, check)} {shown} |\n".encode())
        return True


def fallen(name, check, items):
    """Return the test that falls without a check; empty where none does."""
    text = without(name, check)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MOST, MOST))
        module = importlib.import_module(path_of(name)[:-3].replace("/", "."))
        change(module, text)
        run_as_python(module.__name__)
        for item, after in zip(items, [*items[1:], None], strict=True):
            reports = runtestprotocol(item, nextitem=after, log=False)
            if any(report.failed for report in reports):
                os.write(writing, item.nodeid.encode())
                break
        os._exit(0)
    os.close(writing)
    end = time.monotonic() + 8 * LONGEST
    while not (done := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            done = os.waitpid(child, 0)
            break
        time.sleep(0.02)
    test = os.read(reading, 4096).decode()
    os.close(reading)
    return "(the tests do not end)" if done[1] else test


def row(name, check):
    """Return the start of a check's row in tests/mutation/mutation_survivors.md."""
    before, after = (" ".join(x.split()).replace("|", "\\|") for x in check)
    if after.startswith(before):
        after = after[len(before) :].strip()
    return f"| `{name}` | `{before}` -> `{after}` |"


def main(names):
    """Print a row for each check; return how many no test needs."""
    sys.path.insert(0, str(ROOT))
    os.chdir(ROOT)
    names = names or list(CHECKS)
    runner = Runner(names)
    files = sorted({file for name in names for file in TESTS[name]})
    options = ["-q", "-s", "-n0", "-p", "no:cacheprovider", f"--rootdir={ROOT}"]
    pytest.main([*options, *files], plugins=[runner])
    return runner.survivors


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
