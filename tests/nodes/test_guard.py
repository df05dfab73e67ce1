"""The guard over DDS: a controller that is killed, stopped or stuck leaves no torque."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from guard_watch import Watched

from ros_nodes.graphs import COMPUTED_TORQUE, GUARD

pytestmark = [pytest.mark.ros, pytest.mark.timeout(120)]
TIMEOUT = 0.3  # of the guard [s]; the machine of a test may be busy


@pytest.fixture
def guard(ros):
    """Return a guard in this process, and who watches it."""
    from ros_nodes.guard_node import GuardNode

    watched, made = Watched(), GuardNode()
    yield made, watched
    made.destroy_node()
    watched.node.destroy_node()


def test_the_latch_of_the_guard(guard, until, ask):
    """Silence after torque latches; torque after it is replaced; a person resets."""
    from rclpy.parameter import Parameter

    node, watched = guard
    both, send = (watched.node, node), watched.sender()
    until(lambda: watched.stopped == [False], *both, expected="the guard's word")
    set_timeout = node.set_parameters
    (refused,) = set_timeout([Parameter("effort_timeout", value=0.0)])
    assert "out of range Min: 0.001" in refused.reason
    assert set_timeout([Parameter("effort_timeout", value=0.1)])[0].successful
    send([0.0, 0.0])
    until(lambda: node.status()[1] == "watching: effort is zero", *both)
    sent = time.monotonic()
    send([3.0, -8.0])
    until(lambda: watched.of_guard(), *both, expected="zero")
    assert watched.of_guard()[0] - sent >= 0.1
    until(lambda: watched.stopped[-1], *both, expected="the latch")
    late = Watched()
    until(lambda: late.stopped and late.stopped[0], *both, late.node, expected="True")
    late.node.destroy_node()

    send([3.0, -8.0])
    until(lambda: node.supervisor.counters["efforts after a stop"] == 1, *both)
    refused = ask(watched, "guard/reset", node)
    assert not refused.success
    assert "valid: a reset once it sends zero" in refused.message
    send([0.0, 0.0])
    until(lambda: not node.supervisor.stands, *both)
    assert ask(watched, "guard/reset", node).success
    until(lambda: not watched.stopped[-1], *both, expected="the end of the latch")
    assert node.status()[1] == "no effort yet" or "zero" in node.status()[1]

    assert ask(watched, "guard/estop", node).success
    until(lambda: watched.stopped[-1], *both, expected="the latch again")
    assert node.status()[1] == "stopped: ~/estop was called"


def test_a_guard_that_would_stop_before_the_controller_is_a_warning(guard, until):
    """Its timeout and state_timeout are compared, also after a change."""
    from rclpy.parameter import Parameter

    from ros_nodes.computed_torque_node import ComputedTorqueNode

    settings = {"robot_description_file": "two_link", "engine": "graph",
                "autostart": False, "state_timeout": 0.19}  # fmt: skip
    overrides = [Parameter(name, value=value) for name, value in settings.items()]
    node, watched = guard
    controller = ComputedTorqueNode(parameter_overrides=overrides)
    try:
        assert controller.start(), controller.failure

        def warned(of):
            said = controller.status()[1]
            return f"effort_timeout of the guard is {of} s: it stops" in said

        spun = watched.node, node, controller
        until(lambda: warned(0.2), *spun, expected="a warning")
        assert (
            "valid: more than state_timeout and 15 ms (0.205 s)"
            in (controller.status()[1])
        )
        for timeout, bad in ((0.21, False), (0.1, True)):  # a beat has the new one
            node.set_parameters([Parameter("effort_timeout", value=timeout)])
            until(lambda t=timeout, b=bad: warned(t) == b and warned(0.2) is False,
                  *spun, expected=f"the word on {timeout}")  # fmt: skip
        assert controller.controller.stopped is None
    finally:
        controller.destroy_node()


def test_a_guard_says_what_it_does_not_watch(capfd, guard):
    """Efforts in another message."""
    said = capfd.readouterr().err
    assert "watching /effort_controller/commands (Float64MultiArray); efforts" in said
    assert "sent as JointState are not watched" in said


def test_a_guard_that_ends_stops_a_robot_under_torque(guard, until):
    """Its robot would be driven on without supervision; at rest nothing is said."""
    node, watched = guard
    both, send = (watched.node, node), watched.sender()
    until(lambda: watched.stopped == [False], *both, expected="the guard's word")
    node.send_final_command()
    assert node.supervisor.stopped is None
    send([3.0, -8.0])
    until(lambda: node.supervisor.stands, *both, expected="torque")
    node.send_final_command()
    until(lambda: watched.of_guard() and watched.stopped[-1], *both, expected="zero")
    assert "the guard ends while torque stands" in node.status()[1]


def test_a_fault_of_the_watching_thread_ends_the_guard(guard, until, monkeypatch):
    """A guard that no longer watches must not look alive."""
    node, watched = guard

    def fail():
        raise OSError("no socket")

    monkeypatch.setattr(node, "_announce", fail)
    node.supervisor.stop("test")
    with node._changed:
        node._changed.notify()
    with pytest.raises(OSError, match="no socket"):
        until(lambda: False, watched.node, node, patience=5)
    beats = []
    monkeypatch.setattr(node, "latch", SimpleNamespace(publish=beats.append))
    with pytest.raises(OSError, match="no socket"):
        node.send_final_command()
    assert len(beats) == 1  # controllers must hear that the guard is gone


PLUGIN = '''"""Inverse dynamics that holds the interpreter lock while a file is there."""
import ctypes
import os

import dyn_core as dyn
from dyn_core.authoring import NumpySolver, hookimpl


class Stuck(NumpySolver):
    """It can be stuck."""

    name, signature, exact = "stuck", dyn.problems.INVERSE_DYNAMICS, None

    def solve(self, model, q, qd, qdd, f_ext):
        """Return tau, late."""
        if Stuck.exact is None:
            Stuck.exact = dyn.solver("rnea").build(model, engine="graph")
        if os.path.exists(FLAG):
            os.remove(FLAG)
            ctypes.PyDLL(None).usleep(900_000)
        return Stuck.exact(q, qd, qdd)


@hookimpl
def dyn_solvers():
    """Offer it."""
    return [Stuck()]
'''


@pytest.fixture
def plugin(tmp_path):
    """Return the PYTHONPATH of a package with the solver, and the file that sticks it."""
    flag = tmp_path / "stuck"
    (tmp_path / "stuck_dyn.py").write_text(PLUGIN.replace("FLAG", repr(str(flag))))
    info = tmp_path / "stuck_dyn-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: stuck_dyn\nVersion: 1\n"
    )
    (info / "entry_points.txt").write_text("[dyn_core]\nstuck = stuck_dyn\n")
    return os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]), flag


PARAMS = f"""
/**:
  ros__parameters:
    robot_description_file: arm7
    inverse_dynamics.plugin_name: stuck
    effort_timeout: {TIMEOUT}
    state_timeout: 0.1
    diagnostic_updater.period: 0.05
"""


def test_a_controller_that_is_stuck_stopped_or_killed(start, fed, until, ask, plugin):
    """Zero within the timeout, again and again; who resumes stays at zero until a reset."""
    path, flag = plugin
    nodes = start([GUARD, COMPUTED_TORQUE], PARAMS, extra={"PYTHONPATH": path})
    controller = nodes["computed_torque"].popen

    def detail():
        return fed.said, [process.output for process in nodes.all]

    def zeroed(what):
        del fed.rows[:-1]
        until(fed.of_guard, fed.node, expected=f"zero after {what}", detail=detail)
        silence = fed.of_guard()[0] - fed.of_controller()[-1][0]
        assert TIMEOUT / 2 < silence < TIMEOUT + 0.5, what  # the machine may be busy
        until(lambda: len(fed.of_guard()) > 20 and fed.stopped[-1], fed.node,
              expected="zeros", detail=detail)  # fmt: skip

    def heard():
        guarded = fed.said.get("guard") == "watching: torque stands"
        return guarded and fed.drives()

    def reset():
        del fed.rows[:]
        until(lambda: len(fed.of_controller()) > 20, fed.node, expected="its return")
        assert not any(torque for _, torque in fed.of_controller())
        assert ask(fed, "guard/reset").success
        fed.said.clear()
        until(heard, fed.node, expected="torque that the guard hears", detail=detail)

    def restart():
        for number in (4, 3):  # deactivate, activate
            future = fed.transition(number, lambda done: until(done, fed.node))
            until(future.done, fed.node, expected="a transition")
            assert future.result().success
        fed.said.clear()
        until(heard, fed.node, expected="torque that the guard hears", detail=detail)

    until(heard, fed.node, expected="torque that the guard hears", detail=detail)
    flag.touch()
    zeroed("the interpreter lock is held")
    reset()
    try:
        controller.send_signal(signal.SIGSTOP)
        zeroed("SIGSTOP")
    finally:
        controller.send_signal(signal.SIGCONT)
    del fed.rows[:]
    until(lambda: len(fed.of_controller()) > 40, fed.node, expected="the controller")
    torques = [torque for _, torque in fed.of_controller()]
    assert not any(torques[1:])  # the first may have been leaving the process
    assert ask(fed, "computed_torque/estop").success  # a person's, not the guard's
    assert ask(fed, "guard/reset").success
    del fed.rows[:]
    until(lambda: len(fed.of_controller()) > 40, fed.node, expected="the controller")
    assert not any(torque for _, torque in fed.of_controller())
    restart()
    controller.kill()
    zeroed("SIGKILL")
    assert nodes["guard"].end() == 0
    assert "stopped until ~/reset is called: no effort for 0.3" in nodes["guard"].output


def _children(parent):
    """Return the pids of the nodes of `dyn up` by their module."""
    listed = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    names = {}
    for pid in listed:
        row = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        names[row[row.index("-m") + 1]] = int(pid)
    return names


def test_two_robots_in_namespaces_one_of_them_supervised(
    environment, ros, until, tmp_path
):
    """The shipped files serve both, neither drives the other; a killed one is zeroed."""
    from sensor_msgs.msg import JointState

    arm, free = Watched("r1"), Watched("r2")
    states = {}
    for watched in (arm, free):
        name = watched.node.get_namespace()
        watched.node.create_subscription(
            JointState, "joint_states", lambda m, name=name: states.update({name: m}), 1
        )
    spun = arm.node, free.node
    log = (tmp_path / "up.log").open("w+")
    common = [sys.executable, "-m", "dyn_core.cli", "up"]
    ups = [
        subprocess.Popen([*common, *more.split()], env=environment, stdout=log, stderr=log)
        for more in ("demo --namespace r1 --supervise",
                     "simulator --namespace /r2 --robot two_link")
    ]  # fmt: skip

    def heard():
        guarded = arm.said.get("r1/guard") == "watching: torque stands"
        if not guarded or "r1/simulator" not in arm.said or len(states) < 2:
            return False
        return any(states["/r1"].effort)  # of a state after the first command

    try:
        until(heard, *spun, patience=60, expected="two robots",
              detail=lambda: (tmp_path / "up.log").read_text())  # fmt: skip
        children = _children(ups[0])
        assert len(children) == 3
        assert len(states["/r1"].name) == 7
        assert len(states["/r2"].name) == 2
        assert not any(states["/r2"].effort)
        assert not free.rows
        assert arm.stopped == [False]
        assert "publishers" not in arm.said["r1/simulator"]
        os.kill(children["ros_nodes.computed_torque_node"], signal.SIGKILL)
        until(lambda: ups[0].poll() is not None, *spun, expected="the end of r1")
        assert ups[0].returncode == 1
        assert arm.of_guard()
        assert not arm.rows[-1][2]
        assert arm.stopped[-1]
        states.clear()
        until(lambda: states, *spun, expected="r2")
        ups[1].send_signal(signal.SIGINT)
        until(lambda: ups[1].poll() is not None, *spun, expected="the end of r2")
        assert ups[1].returncode == 0
    finally:
        for up in ups:
            up.terminate()
            up.wait(20)
        log.close()
        for node in spun:
            node.destroy_node()
