"""The launch files: read always, run where ROS's own `launch` is."""

import ast
import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from dyn_core.errors import SettingError
from ros_nodes.graphs import COMMON, GRAPHS, ros_arguments
from ros_nodes.parameter_tables.parameter_files import sections
from ros_nodes.running.runtime import LIFELINE

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "launch").glob("*.launch.py"))
pytestmark = pytest.mark.launch


def test_each_graph_has_its_file():
    """One launch file a graph."""
    assert {path.name.removesuffix(".launch.py") for path in FILES} == set(GRAPHS)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_files_compile_and_read_the_graphs(path):
    """generate_launch_description is there and asks for the graph of its name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [n.name for n in tree.body if isinstance(n, ast.FunctionDef)]
    assert functions == ["generate_launch_description"]
    asked = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    assert path.name.removesuffix(".launch.py") in asked


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_name_what_exists(name):
    """Executables have scripts and modules, parameter files have a section each."""
    graph = GRAPHS[name]
    data = yaml.safe_load(graph.params_file.read_text(encoding="utf-8"))
    names = [entry.executable for entry in graph.nodes]
    assert all("ros__parameters" in section for section in data.values())
    for entry in graph.nodes:
        assert (ROOT / "scripts" / entry.executable).is_file()
        assert importlib.util.find_spec(entry.module) is not None
        assert sections(data, entry.executable)
    assert len(set(names)) == len(names)
    assert graph.description


def test_arguments_of_a_process():
    """Parameter file, remappings, and the robot."""
    entry = GRAPHS["computed_torque"].nodes[0]
    assert ros_arguments(entry, "p.yaml", "r.urdf") == [
        "--ros-args", "--params-file", "p.yaml",
        "-r", "~/commands:=effort_controller/commands",
        "-p", "robot_description_file:=r.urdf",
    ]  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_files_load_in_ros_launch(path):
    """With ROS's launch the file gives its processes."""
    try:
        from launch.actions import OpaqueFunction
        from launch_ros.actions import Node

        from launch import LaunchContext, LaunchDescription
    except ImportError as error:
        pytest.skip(f"ROS's own launch is not installed: {error}")
    spec = importlib.util.spec_from_file_location("launch_file", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    description = module.generate_launch_description()
    assert isinstance(description, LaunchDescription)
    context = LaunchContext()
    nodes = []
    for action in description.entities:
        result = action.visit(context)
        if isinstance(action, OpaqueFunction):
            nodes = result
    graph = GRAPHS[path.name.removesuffix(".launch.py")]
    assert len(nodes) == len(graph.nodes)
    assert all(isinstance(node, Node) for node in nodes)
    for node in nodes:  # each ends with launch, also where that is killed
        environment = {
            name[0].text: value[0].text for name, value in node.additional_env
        }
        assert environment == {LIFELINE: "1"}
    names = {action.name for action in description.entities if hasattr(action, "name")}
    assert {*COMMON, *graph.arguments, "params"} <= names


@pytest.fixture
def launched(monkeypatch):
    """Return a function that launches `demo`; what ROS's launch takes is recorded."""

    def launch(**arguments):
        """Return the settings of the processes, for these launch arguments."""
        started, functions = [], []
        chosen = {"supervise": "", "robot": "", "namespace": "r1", "use_sim_time": "",
                  "params": str(GRAPHS["demo"].params_file), "autostart": "",
                  **arguments}  # fmt: skip
        for name, members in {
            "launch": {"LaunchDescription": list},
            "launch.actions": {
                "DeclareLaunchArgument": lambda *_, **__: None,
                "OpaqueFunction": lambda function: functions.append(function),
            },
            "launch.substitutions": {
                "LaunchConfiguration": lambda key: SimpleNamespace(
                    perform=lambda context: chosen[key]
                )
            },
            "launch_ros": {},
            "launch_ros.actions": {"Node": lambda **settings: started.append(settings)},
        }.items():
            monkeypatch.setitem(sys.modules, name, SimpleNamespace(**members))
        monkeypatch.delitem(sys.modules, "ros_nodes.launching", raising=False)
        from ros_nodes.launching import launch_description

        launch_description("demo")
        functions[0](None)
        monkeypatch.delitem(sys.modules, "ros_nodes.launching")
        return started

    return launch


@pytest.mark.parametrize("supervise", ["true", "false", ""])
def test_a_supervised_controller_of_a_launch_file_needs_its_guard(launched, supervise):
    """As with `dyn up --supervise`."""
    started = launched(supervise=supervise)
    names = [settings["executable"] for settings in started]
    parameters = started[-1]["parameters"]
    if supervise == "true":
        assert names == ["guard", "simulator", "computed_torque"]
        assert parameters == [str(GRAPHS["demo"].params_file), {"require_guard": True}]
    else:
        assert names == ["simulator", "computed_torque"]
        assert parameters == [str(GRAPHS["demo"].params_file)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "computed_torqe: {ros__parameters: {mode: gravity}}",
            "mean 'computed_torque'",
        ),
        ("/**: {ros__parameters: {update_rat: 5}}", "did you mean 'update_rate'"),
        ("guard: {ros__parameters: {update_rate: 5.0}}", "valid: sections for /r1/sim"),
    ],
)
def test_a_launched_parameter_file_is_checked(launched, tmp_path, text, message):
    """As by `dyn up`: ROS ignores sections of misspelt nodes in silence."""
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(SettingError, match=message):
        launched(params=str(file))
