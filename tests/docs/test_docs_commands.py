"""Commands that the documents show are run as they stand, block by block.

Each block has a folder of its own with the reader's files, and a process of its own; one
that begins with `# continued` goes on from the block before it. What installs, builds or
tests the project is left out: `.ci/run` does that. Commands that need ROS 2 run against
nodes (`ros`), those that take minutes with --full.
"""

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
import yaml
from pages import ROOT, programs

import dyn_core as dyn
from dyn_core import cli
from dyn_core.commands.main import parser
from ros_nodes.processes import private_environment

# First words of lines that install, build or test the project.
SET_UP = {"python3", "python", "pip", "sudo", "source", "export", "rosdep", "colcon",
          "cd", ".", "pytest", "bash"}  # fmt: skip
WITH_ROS = {"up", "param", "lifecycle", "record", "demo", "check-node", "move",
            "call", "diagnostics", "echo"}  # fmt: skip
# Minutes to hours of measuring each; tests/test_bench*.py run short ones of all kinds.
MEASURING = {"bench"}
# Pages with --full only: many kernels, films, searches; their commands have tests of their own.
SLOW = {"docs/doctor.md", "docs/excitation.md", "docs/reports.md", "docs/viewing.md"}


def _commands(program):
    """Return the commands of a program as pairs of line and words."""
    lines = [
        (number, shlex.split(line, comments=True))
        for number, code in program
        for line in code.replace("\\\n", " ").splitlines()
    ]
    return [(number, command) for number, command in lines if command]


PROGRAMS = {name: _commands(program) for name, program in programs("bash").items()}


def _ends(command):
    """Return whether a command does its work alone, and ends."""
    if command[0] != "dyn":
        return command[:2] == ["python", "-c"]
    serves = command[1] == "view" and not {"--film", "--html"}.intersection(command)
    return not serves and command[1] not in WITH_ROS | MEASURING


def _ending(name):
    """Return the commands of a program that need no node, and end."""
    return [(line, command) for line, command in PROGRAMS[name] if _ends(command)]


def _all_commands():
    return [command for commands in PROGRAMS.values() for _, command in commands]


@pytest.mark.parametrize("name", PROGRAMS)
def test_commands_are_understood(name):
    """Each `dyn` command has a parser that takes it; others are those of set-up and ROS."""
    for _, command in PROGRAMS[name]:
        if command[0] == "dyn":
            parser().parse_args(command[1:])
        else:
            assert command[0] in SET_UP | {"ros2"}, command


TEMPLATES = ROOT / "dyn_core/export/ros2_control/templates"


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
    asked = [command for command in _all_commands() if command[0] == "ros2"]
    assert len(asked) > 3
    for _, verb, package, name, *more in asked:
        if package == "my_arm_control":  # written by dyn export
            template = name.replace(".py", ".in")
            text = (TEMPLATES / template).read_text(encoding="utf-8")
            assert all(f'"{word.split(":=")[0]}"' in text for word in more)
            continue
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
def original(tmp_path_factory):
    """Return a folder with the files that a reader has: robots, recordings, motions."""
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
    _motion(folder / "motion.csv")
    for name, seed in (("run", 0), ("other", 1)):
        _record(folder, name, seed)
    return folder


def _motion(motion):
    """Write a motion of arm7 from its home."""
    t = np.arange(0.0, 1.0, 0.01)[:, None]
    q = np.array([0, -0.4, 0, -2, 0, 1.6, 0]) + 0.2 * (1 - np.cos(3.0 * t)) * np.ones(7)
    head = ",".join(["t", *(f"q[joint{k}]" for k in range(1, 8))])
    np.savetxt(motion, np.hstack([t, q]), delimiter=",", header=head, comments="")


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
def folder(original, tmp_path):
    """Return a copy of the folder for one block alone."""
    return Path(shutil.copytree(original, tmp_path / "home", symlinks=True))


@pytest.fixture
def run_alone(alone, folder):
    """Return a function that runs commands in the folder, in one further process."""

    def run(name, commands):
        done = alone(commands, name.partition(":")[0], folder)
        if "pip install" in done["error"]:
            pytest.skip(done["error"])
        assert not done["error"], done["text"]

    return run


@pytest.mark.parametrize("name", [name for name in PROGRAMS if _ending(name)])
def test_commands_run(name, run_alone, full):
    """Each block alone: its commands that need no node, in the order of the page."""
    if name.partition(":")[0] in SLOW and not full:
        pytest.skip("with --full only")
    run_alone(name, _ending(name))


def test_blocks_of_commands_do_not_see_each_other(alone, tmp_path):
    """One that needs a file of another fails; a continued one has it."""
    writes = (0, shlex.split("python -c 'print(7)' > made.csv"))
    reads = (4, ["dyn", "fd", "arm7", "made.csv", "--out", "qdd.npz"])
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir(), other.mkdir()
    assert not alone([writes], "page", one)["error"]
    assert (one / "made.csv").read_text() == "7\n"
    missing = "made.csv: No such file"
    assert missing in alone([reads], "page", other)["error"]
    assert missing not in alone([writes, reads], "page", other)["error"]
    silent = alone([(0, ["python", "-c", "pass"])], "page", other)
    assert "it wrote nothing" in silent["error"]


@pytest.fixture(scope="module")
def environment():
    """Return the environment of nodes that nobody else hears; skip without rclpy."""
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    return private_environment()


@pytest.fixture
def start(environment, folder):
    """Return a function that starts a program, waits for its nodes, and can end it."""
    running = []

    def begin(command, nodes):
        process = subprocess.Popen(
            [word if ":=" in word else re.sub("^~", str(folder), word)
             for word in command],
            env={**environment, "HOME": str(folder)}, text=True, cwd=folder,
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
    from ros_nodes.tools import lifecycle, live, param, recorder

    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with live.connect(30.0) as one:
        for module in (param, lifecycle, recorder):
            monkeypatch.setattr(module, "connect", lambda timeout: nullcontext(one))
        yield one


def _run(command, capsys):
    """Run a command in this process."""
    status = cli.main(command[1:])
    out, err = capsys.readouterr()
    assert status == 0, f"{' '.join(command)}: {err}{out}"
    assert out.strip(), command
    return out.strip()


def _patient(folder):
    """Write the parameters of the demo with timeouts longer than a machine stops."""
    document = yaml.safe_load((folder / "my.yaml").read_text())
    timeouts = {"guard_timeout": 10.0, "state_timeout": 10.0}
    document["/**/computed_torque"]["ros__parameters"].update(timeouts)
    document["/**/guard"] = {"ros__parameters": {"effort_timeout": 10.0}}
    path = folder / "patient.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.mark.ros
def test_commands_of_running_nodes(
    start, graph, environment, folder, capsys, monkeypatch
):
    """Those of docs/tools.md that ask nodes, `dyn record`, and another mode."""
    blocks = [x for x in PROGRAMS.values() if any(c[1] == "param" for _, c in x)]
    ((_, up), *asking), mode = sorted(blocks, key=lambda x: x[0][1][1] != "up")
    assert len(asking) == 15
    monkeypatch.chdir(folder)
    (folder / "mine.yaml").write_text(
        "/computed_torque: {ros__parameters: {gains.joint1.p: 450.0}}\n"
    )
    assert len(mode) == 5
    record = next(
        command for command in _all_commands() if command[:2] == ["dyn", "record"]
    )
    start(_python([*up[1:], "--params", str(_patient(folder))]), 3)
    recording = subprocess.Popen(
        _python(record[1:]),
        env=environment, cwd=folder, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while graph.node.count_subscribers("/joint_states") < 2:  # it records
        assert time.monotonic() < deadline
        _run(asking[0][1], capsys)
    page = (ROOT / "docs" / "tools.md").read_text()
    for _, command in asking:
        answer = _run(command, capsys)
        if command[1:3] == ["param", "get"]:
            assert f"# {answer}\n" in page
    for _, command in mode:
        _run(command, capsys)
    answer = _run(["dyn", "param", "get", "/computed_torque", "mode"], capsys)
    assert answer.endswith(": gravity")
    recording.send_signal(signal.SIGINT)
    out = recording.communicate(timeout=30)[0]
    assert "/joint_states" in out
    assert recording.returncode == 0


def _graphs():
    """Return the commands that start nodes: block, command, and how many nodes."""
    counts = {"demo": 2, "chain": 1, "contact": 1}
    graphs = {}
    for name, commands in PROGRAMS.items():
        for _, command in commands:
            if command[:2] == ["dyn", "up"]:
                nodes = counts.get(command[2], 1) + ("--supervise" in command)
                graphs.setdefault(
                    " ".join(command), (name, _python(command[1:]), nodes)
                )
            elif command[:2] == ["ros2", "run"]:
                program = [
                    sys.executable,
                    str(ROOT / "scripts" / command[3]),
                    *command[4:],
                ]
                graphs.setdefault(" ".join(command), (name, program, 1))
    return [pytest.param(*graph, id=key[-60:]) for key, graph in graphs.items()]


@pytest.mark.full
@pytest.mark.ros
@pytest.mark.parametrize("name, command, nodes", _graphs())
def test_nodes_start_as_documented(start, run_alone, name, command, nodes):
    """Seconds for each: with --full only. The block's other commands write files."""
    if ends := _ending(name):
        run_alone(name, ends)
    process = start(command, nodes)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0


def _demonstrations():
    """Return demos and campaigns by their text; of whole campaigns one fault."""
    commands = {}
    for command in _all_commands():
        if command[0] == "dyn" and command[1] in ("demo", "check-node"):
            whole = command[1] == "check-node" and "--only" not in command
            one = ["--only", "nan-position"] if whole else []
            commands[" ".join(command)] = [*command[1:], *one]
    return commands


DEMONSTRATIONS = _demonstrations()


@pytest.mark.full
@pytest.mark.ros
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("command", DEMONSTRATIONS)
def test_demonstrations_run(command, environment, folder):
    """The demos and campaigns of faults: minutes, with --full only.

    The whole campaign is run once, by tests/nodes/commands/test_tools_ros.py.
    """
    done = subprocess.run(
        _python(DEMONSTRATIONS[command]), env={**environment, "HOME": str(folder)},
        cwd=folder, capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    late = re.search("machine paused", done.stdout)
    assert done.returncode == 0 or late, done.stdout + done.stderr
