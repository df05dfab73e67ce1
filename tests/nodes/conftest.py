"""DDS on 127.0.0.1 only, in a domain of its own; real nodes in and out of process."""

import gc
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from ros_nodes.processes import Processes, private_environment

DEADLINE = 30.0
ANSWER = 3.0  # of a service that is asked again [s]
sys.path.insert(0, str(Path(__file__).parent))  # for guard_watch, listener


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """Return the environment of all node tests, also to this process.

    Each worker of a run has a domain of its own.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    run = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    made = private_environment((run + int(worker[2:])) % 100 + 1)
    made["ROS_LOG_DIR"] = str(tmp_path_factory.mktemp("ros_log"))
    before = dict(os.environ)
    os.environ.update(made)
    # Nodes inherit an ignored hang-up, as under nohup, and would not end by one; a
    # handler is not inherited.
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    yield made
    gc.freeze()  # DDS may wait for ever where a late collection ends its last parts
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def ros(environment):
    """Return rclpy, initialised for one test; skip where it is missing.

    Nodes of rclpy are in cycles: those of the test before, and their threads, go when
    these are collected.
    """
    rclpy = pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    from rclpy.signals import SignalHandlerOptions

    gc.collect(1)
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ros_nodes.base.node._settle_memory", lambda: None)
        yield rclpy
    rclpy.try_shutdown()


@pytest.fixture
def controller_node(ros):
    """Return a function that makes a controller's node of arm7, active after one state.

    It takes parameters, with __ for a dot. `prepare` is called with the node before it
    is configured; without `active` it is not.
    """
    from rclpy.parameter import Parameter

    from ros_nodes.computed_torque_node import ComputedTorqueNode

    made = []

    def node(active=True, prepare=lambda node: None, **values):
        settings = {
            "robot_description_file": "arm7",
            "autostart": False,
            "state_timeout": 10.0,
            "good_samples": 1,
            **values,
        }
        overrides = [
            Parameter(k.replace("__", "."), value=v) for k, v in settings.items()
        ]
        made.append(ComputedTorqueNode(parameter_overrides=overrides))
        prepare(made[-1])
        if active:
            made[-1].trigger_configure()
            if made[-1].failure is None:
                made[-1].trigger_activate()
        return made[-1]

    yield node
    for each in made:
        each.destroy_node()


@pytest.fixture
def until(ros):
    """Return a function that spins nodes until something is so, or fails."""
    from ros_nodes.running.runtime import make_executor

    executor, known = make_executor(), set()

    def wait(done, *nodes, expected="it", patience=DEADLINE, detail=lambda: ""):
        for node in nodes:
            if node not in known:
                known.add(node)
                executor.add_node(node)
        deadline = time.monotonic() + patience
        while not done():
            executor.spin_once(timeout_sec=0.02)
            assert time.monotonic() < deadline, f"{expected} did not come; {detail()}"

    yield wait
    executor.shutdown(timeout_sec=1.0)


@pytest.fixture
def start(environment, tmp_path):
    """Return a function that starts processes of a graph and ends them after the test."""
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    started = []

    def begin(entries, params, robot="", more=None, extra=None):
        path = tmp_path / f"params{len(started)}.yaml"
        path.write_text(params)
        env = {**environment, **(extra or {})}
        started.append(Processes(entries, str(path), env, robot, more, show=False))
        return started[-1]

    yield begin
    for processes in started:
        processes.end()


@pytest.fixture
def answer(until):
    """Return a function that sends a request and returns the answer.

    It asks again, so that a request must be one that may be served twice: a service of
    a process that was killed seems to be there for a while, and a first answer may be
    lost.
    """

    def call(client, request, *nodes):
        until(client.service_is_ready, *nodes, expected=client.srv_name)
        futures, asked = [client.call_async(request)], [time.monotonic()]

        def answered():
            if time.monotonic() > asked[-1] + ANSWER:
                asked.append(time.monotonic())
                futures.append(client.call_async(request))
            return any(future.done() for future in futures)

        until(answered, *nodes, expected=f"the answer of {client.srv_name}")
        return next(future.result() for future in futures if future.done())

    return call


@pytest.fixture
def ask(answer):
    """Return a function that calls a Trigger of a service and returns the answer."""
    from std_srvs.srv import Trigger

    def call(watched, name, *nodes):
        client = watched.client(Trigger, name)
        return answer(client, Trigger.Request(), watched.node, *nodes)

    return call


@pytest.fixture
def fed(ros):
    """Return a Watched that publishes joint states of a robot at rest."""
    from guard_watch import Watched

    watched = Watched()
    watched.feed()
    yield watched
    watched.node.destroy_node()
