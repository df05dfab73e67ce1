"""Commands that the documents show are run as they stand, in a folder of their own.

What installs, builds or tests the project is left out: `.ci/run` does that. Commands that
need ROS 2 run against nodes (`ros`), those that take minutes with --full.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import cli
from dyn_core.tasks.robots.humanoid_stand import humanoid_urdf
from ros_nodes.processes import private_environment

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", "dyn_plugins/README.md",
         *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]  # fmt: skip
# First words of lines that install, build or test the project.
SET_UP = {"python3", "python", "pip", "sudo", "source", "export", "rosdep", "colcon",
          "cd", ".", "pytest", "bash"}  # fmt: skip
WITH_ROS = {"up", "param", "lifecycle", "record", "demo", "check-node"}
LONG = {"demo", "check-node"}  # with --full only
# Minutes to hours of measuring each; tests/test_bench*.py run short ones of all kinds.
MEASURING = {"bench", "bench-planar", "bench-envs"}
# Pages of commands that serve or watch until Ctrl-C, which have tests of their own.
ONLY_PARSED = {"docs/viewing.md", "docs/doctor.md"}
SLOW = {"docs/reports.md"}  # with --full only: many kernels; its commands have tests


def _commands(page):
    """Return the commands of a page as lists of words."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = [
        shlex.split(line, comments=True)
        for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
        for line in block.replace("\\\n", " ").splitlines()
    ]
    return [command for command in lines if command]


COMMANDS = {page: _commands(page) for page in PAGES}
# Of all pages each command of `dyn` once, by its first page.
FIRST = {
    tuple(command[1:]): page
    for page in reversed(PAGES)
    for command in COMMANDS[page]
    if command[0] == "dyn"
}


def _of(page, verbs):
    """Return the commands of `dyn` with these verbs that a page is the first to show."""
    shown = [tuple(x[1:]) for x in COMMANDS[page] if x[0] == "dyn"]
    return [x for x in dict.fromkeys(shown) if FIRST[x] == page and x[0] in verbs]


ALL = {command[0] for command in FIRST}
PLAIN = [page for page in PAGES
         if page not in ONLY_PARSED and _of(page, ALL - WITH_ROS - MEASURING)]  # fmt: skip


@pytest.mark.parametrize("page", [page for page in PAGES if COMMANDS[page]])
def test_commands_are_understood(page):
    """Each `dyn` command has a parser that takes it; others are those of set-up and ROS."""
    for command in COMMANDS[page]:
        if command[0] == "dyn":
            cli.parser().parse_args(command[1:])
        else:
            assert command[0] in SET_UP | {"ros2"}, command


def test_what_runs_over_ros2_is_there():
    """Programs, launch files and their arguments that `ros2` is asked for."""
    arguments = {
        "params",
        "robot",
        "namespace",
        "use_sim_time",
        "autostart",
        "supervise",
    }
    asked = [
        command for page in PAGES for command in COMMANDS[page] if command[0] == "ros2"
    ]
    assert len(asked) > 3
    for _, verb, package, name, *more in asked:
        assert (verb in ("run", "launch"), package) == (True, "dyn_ros")
        assert (ROOT / {"run": "scripts", "launch": "launch"}[verb] / name).is_file()
        if verb == "launch":
            assert {word.split(":=")[0] for word in more} <= arguments


XACRO = """<robot name="my_arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="tool" default="false"/>{body}</robot>"""
FINGER = """<link name="finger_link"><inertial><mass value="0.1"/>
<inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial></link>
<joint name="finger" type="prismatic"><parent link="link2"/><child link="finger_link"/>
<origin xyz="0.6 0 0"/><axis xyz="1 0 0"/>
<limit lower="0" upper="0.1" effort="20" velocity="1"/></joint></robot>"""
TRAJECTORY = """joint_names: [joint1, joint2, finger]
points:
- {positions: [0.0, 0.0, 0.0], time_from_start: {sec: 0, nanosec: 0}}
- {positions: [0.5, -0.3, 0.05], time_from_start: {sec: 1, nanosec: 0}}
"""


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """Return a folder with the files that the pages speak of; it is the home, too."""
    folder = tmp_path_factory.mktemp("documented")
    urdf = Path(dyn.robots.path("two_link")).read_text(encoding="utf-8")
    (folder / "my_robot.urdf").write_text(urdf.replace("</robot>", FINGER))
    shutil.copy(ROOT / "ros_nodes" / "params" / "demo.yaml", folder / "my.yaml")
    (folder / "trajectory.yaml").write_text(TRAJECTORY)
    (folder / "examples").symlink_to(ROOT / "examples")
    package = folder / "ws" / "src" / "my_arm"
    package.mkdir(parents=True)
    (package / "package.xml").write_text("<package><name>my_arm</name></package>")
    body = re.search(r"<robot[^>]*>(.*)</robot>", urdf, re.DOTALL)[1]
    for place in (folder, package):
        (place / "my_arm.urdf.xacro").write_text(XACRO.format(body=body))
    (folder / "humanoid.urdf").write_text(humanoid_urdf())
    _motion(folder / "motion.csv", folder / "tau.csv")
    for name, seed in (("run", 0), ("other", 1)):
        _record(folder, name, seed)
    return folder


def _motion(motion, tau):
    """Write a motion of arm7 from its home, and the joint forces of it."""
    t = np.arange(0.0, 1.0, 0.01)[:, None]
    q = np.array([0, -0.4, 0, -2, 0, 1.6, 0]) + 0.2 * (1 - np.cos(3.0 * t)) * np.ones(7)
    head = ",".join(["t", *(f"q[joint{k}]" for k in range(1, 8))])
    np.savetxt(motion, np.hstack([t, q]), delimiter=",", header=head, comments="")
    assert cli.main(["id", "arm7", str(motion), "--out", str(tau)]) == 0


def _record(folder, name, seed):
    """Write a bag of the joint states of my_robot.urdf."""
    rosbag2 = pytest.importorskip("rosbags.rosbag2", reason="extra bags")
    from rosbags.typesys import Stores, get_typestore

    model = dyn.load(folder / "my_robot.urdf")
    t = np.arange(0.0, 4.0, 0.01)
    rates = np.random.default_rng(seed).uniform(2.0, 6.0, 3)
    size = np.array([0.8, 0.8, 0.03])
    q = size * np.sin(rates * t[:, None]) + [0.0, 0.0, 0.04]
    qd = size * rates * np.cos(rates * t[:, None])
    rnea = dyn.solver("rnea").build(model, joint_friction=True, engine="graph")
    tau = rnea(q, qd, -size * rates**2 * np.sin(rates * t[:, None]))
    store = get_typestore(Stores.ROS2_JAZZY)
    types, kind = store.types, "sensor_msgs/msg/JointState"
    with rosbag2.Writer(
        folder / f"{name}.mcap.folder",
        version=9,
        storage_plugin=rosbag2.StoragePlugin.MCAP,
    ) as writer:
        topic = writer.add_connection("/joint_states", kind, typestore=store)
        for k, now in enumerate(t):
            stamp = types["builtin_interfaces/msg/Time"](int(now), round(now % 1 * 1e9))
            header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="")
            names = list(model.joint_names)
            message = types[kind](header, names, q[k], qd[k], tau[k])
            data = store.serialize_cdr(message, kind)
            writer.write(topic, round(1e9 * now), data)
    (bag,) = (folder / f"{name}.mcap.folder").glob("*.mcap")
    bag.rename(folder / f"{name}.mcap")


@pytest.fixture
def in_scratch(scratch, monkeypatch):
    """Work in the folder."""
    monkeypatch.chdir(scratch)
    monkeypatch.setenv("HOME", str(scratch))
    return scratch


def _run(command, capsys):
    """Run a command in this process as a shell would; skip where an extra is missing."""
    status = cli.main([os.path.expanduser(word) for word in command])
    out, err = capsys.readouterr()
    if status and "pip install" in err:
        pytest.skip(err.strip())
    assert status == 0, f"dyn {' '.join(command)}: {err}"
    if "-o" in command:
        assert Path(command[command.index("-o") + 1]).exists(), command
    else:
        assert out.strip(), command


@pytest.mark.parametrize("page", PLAIN)
def test_commands_run(page, in_scratch, capsys, full):
    """Those that need no node, in the order of the page; long ones with --full."""
    if page in SLOW and not full:
        pytest.skip("with --full only")
    for command in _of(page, ALL - WITH_ROS - MEASURING - (set() if full else LONG)):
        _run(command, capsys)


@pytest.fixture(scope="module")
def environment():
    """Return the environment of nodes that nobody else hears; skip without rclpy."""
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    return private_environment()


@pytest.fixture
def start(environment, in_scratch):
    """Return a function that starts a program, waits for its nodes, and can end it."""
    running = []

    def begin(command, nodes):
        process = subprocess.Popen(
            [word if ":=" in word else re.sub("^~", str(in_scratch), word)
             for word in command],
            env={**environment, "HOME": str(in_scratch)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        running.append(process)
        silence = threading.Timer(60.0, process.kill)
        silence.start()
        lines, active = [], 0
        while active < nodes:
            line = process.stdout.readline()
            assert line, "".join(lines)
            lines.append(line)
            active += bool(re.search(r"active [\d.]+ s after|guard\]: watching", line))
        silence.cancel()
        threading.Thread(target=process.stdout.read, daemon=True).start()
        return process

    yield begin
    for process in running:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    for process in running:
        try:
            process.wait(20)
        finally:
            process.kill()


def _python(command):
    return [sys.executable, "-m", "dyn_core.cli", *command]


@pytest.fixture
def graph(environment, monkeypatch):
    """Join the graph of the nodes once for all commands: it may take seconds."""
    from ros_nodes.tools import lifecycle, live, param

    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with live.connect(30.0) as one:
        for module in (param, lifecycle):
            monkeypatch.setattr(module, "connect", lambda timeout: nullcontext(one))
        yield one


@pytest.mark.ros
def test_commands_of_running_nodes(start, graph, environment, in_scratch, capsys):
    """`dyn param`, `dyn lifecycle` and `dyn record` of docs/tools.md, one after another."""
    start(_python(["up", "demo", "--params", "my.yaml"]), 2)
    recording = subprocess.Popen(
        _python(["record", "-o", "all"]),
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    asking = _of("docs/tools.md", {"param", "lifecycle"})
    assert len(asking) == 8
    deadline = time.monotonic() + 60
    while graph.node.count_subscribers("/joint_states") < 2:  # it records
        assert time.monotonic() < deadline
        _run(asking[0], capsys)
    for command in asking:
        _run(command, capsys)
    recording.send_signal(signal.SIGINT)
    out = recording.communicate(timeout=30)[0]
    assert "/joint_states" in out
    assert recording.returncode == 0


def _graphs():
    """Return the commands that start nodes, and how many nodes each starts."""
    counts = {"demo": 2, "chain": 1, "contact": 1}
    graphs = []
    for command in FIRST:
        if command[0] == "up" and FIRST[command] not in ONLY_PARSED:
            nodes = counts.get(command[1], 1) + ("--supervise" in command)
            graphs.append((_python(command), nodes))
    for page in PAGES:
        for _, verb, _, name, *more in (x for x in COMMANDS[page] if x[0] == "ros2"):
            if verb == "run":
                graphs.append(
                    ([sys.executable, str(ROOT / "scripts" / name), *more], 1)
                )
    return graphs


@pytest.mark.full
@pytest.mark.ros
@pytest.mark.parametrize("command, nodes", _graphs(), ids=lambda x: str(x)[-60:])
def test_nodes_start_as_documented(start, command, nodes):
    """Seconds for each: with --full only."""
    process = start(command, nodes)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0


@pytest.mark.full
@pytest.mark.ros
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("command", [x for x in FIRST if x[0] in ("demo", "check-node")],
                         ids=" ".join)  # fmt: skip
def test_demonstrations_run(command, environment, in_scratch):
    """The demos and campaigns of faults: minutes, with --full only."""
    done = subprocess.run(
        _python(command), env=environment, capture_output=True, text=True, timeout=1800
    )
    late = re.search("machine paused", done.stdout)
    assert done.returncode == 0 or late, done.stdout + done.stderr
