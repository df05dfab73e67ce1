"""Parameters of the nodes: tables, misspelt names, options of solvers, files."""

import re
import warnings
from io import StringIO
from pathlib import Path

import pytest

import dyn_core as dyn
from dyn_core.control.controller_fields import effort_fields, gain_fields, wrap_fields
from dyn_core.errors import ModelError
from dyn_core.validation import Field, Quantity, Whole
from ros_nodes.graphs import (
    GRAPHS,
    GUARD,
    ros_arguments,
    start_arguments,
    start_parameters,
)
from ros_nodes.parameter_tables.controller_parameters import (
    CONTROLLER,
    collision_fields,
)
from ros_nodes.parameter_tables.guard_parameters import GUARD_FIELDS
from ros_nodes.parameter_tables.parameter_files import (
    node_parameters,
    read_parameters,
    sections,
)
from ros_nodes.parameter_tables.simulator_parameters import SIMULATOR
from ros_nodes.parameters import check_joint_names, foreign_names

ROOT = Path(__file__).parents[2]
SIMULATOR_NAMES = {field.name for field in SIMULATOR}
EVERY = SIMULATOR_NAMES | {field.name for field in (*CONTROLLER, *GUARD_FIELDS)}


def test_defaults_are_valid():
    """Each parameter takes its own default."""
    for field in (*SIMULATOR, *CONTROLLER, *GUARD_FIELDS, *gain_fields(["j"])):
        read = field.read(field.name, field.default)
        assert (
            list(read) == list(field.default)
            if isinstance(read, tuple)
            else (read == field.default)
        )
        assert field.doc[0] != " "


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("update_rat", "did you mean 'update_rate'"),
        ("updaterate", "did you mean 'update_rate'"),
        ("Update_Rate", "did you mean 'update_rate'"),
        ("forward_dynamics.plugin_nam", "did you mean 'forward_dynamics.plugin_name'"),
        ("forward_dynamics.level", "no parameter is called 'forward_dynamics.level'"),
        ("dynamics.plugin_name", "no parameter is called"),
        ("contact.friction", "no parameter is called 'contact.friction'"),
        ("gains.joint1", "no parameter is called"),
        ("gains.joint1.q", "no parameter is called"),
        ("gains.joint1.kp", "did you mean 'gains.joint1.p'"),
        ("gains", "valid: gains.JOINT.p, gains.JOINT.d, "),
        ("gains.joint1", "valid: gains.JOINT.p, gains.JOINT.d, "),
        ("effort_limits", "valid: effort_limits.JOINT$"),
        ("state_timeou", "did you mean 'state_timeout'"),
        ("mod", "did you mean 'mode'"),
        ("gain.joint1.p", "did you mean 'gains.joint1.p'"),
        ("effort_limit.joint1", "did you mean 'effort_limits.joint1'"),
        ("constraint.joint1.goal", "did you mean 'constraints.joint1.goal'"),
    ],
)
def test_misspelt_names_are_refused(name, message):
    """What begins as ours do, or is nearly one of ours, is refused with the nearest."""
    with pytest.raises(dyn.SettingError, match=message):
        foreign_names("f.yaml: simulator", [name], SIMULATOR_NAMES, EVERY)


def test_numbers_have_ends_that_mean_something():
    """A range to 1e12 says nothing; what may have any sign may have any size."""
    fields = [*SIMULATOR, *CONTROLLER, *GUARD_FIELDS, *gain_fields(["j"])]
    fields += [*effort_fields(["j"]), *collision_fields(["j"])]
    for field in fields:
        kind = field.value_kind
        if isinstance(kind, (Quantity, Whole)) and kind.low > -1e9:
            assert kind.high is not None, field.name
            assert kind.high <= 1e9, field.name


def test_names_of_other_nodes_pass():
    """Those of our other node and of ROS in silence, those of others for a warning."""
    ours = ["state_timeout", "gains.j.p", "effort_limits.j", "step.options.x"]
    passed = ["use_sim_time", "qos_overrides./clock.subscription.depth"]
    others = [
        "nope",
        "publish_frequency",
        "robot_description_semantic",
        "diagnostic_updater.use_fqn",
        "state_publish_rate",
    ]
    names = [*ours, *passed, *others]
    assert foreign_names("simulator", names, SIMULATOR_NAMES, EVERY) == others


def test_what_can_be_set_at_any_time_is_documented():
    """docs/nodes.md names the parameters that are no structure, and no others."""
    page = (ROOT / "docs" / "nodes.md").read_text(encoding="utf-8")
    sentences = re.findall(r"`gains\.<joint>\.p`.*? any time\.", page, re.DOTALL)
    (sentence,) = sentences
    of_joints = (*wrap_fields(["j"], ()), *effort_fields(["j"]))
    tables = (*SIMULATOR, *CONTROLLER, *of_joints)
    live = {field.name for field in tables if not field.structure}
    of_joint = {".i_clamp"}
    assert live == set(re.findall(r"`([\w.]{4,})`", sentence)) - of_joint
    assert not any(field.structure for field in gain_fields(["j"]))


def test_names_of_joints_are_checked_with_the_robot():
    """A joint that is misspelt, or not locked, is refused; other nodes' rows pass."""
    names = {field.name for field in gain_fields(["joint1", "joint2"])}
    check_joint_names(["effort_limits.joint1"], names)
    with pytest.raises(dyn.SettingError, match="did you mean .*gains.joint1.p"):
        check_joint_names(["gains.jiont1.p"], names)
    with pytest.raises(dyn.SettingError, match="valid: none; no joint is locked"):
        check_joint_names(["lock.joint1"], names)


FILE = """
/**: {ros__parameters: {engine: graph, contact: {mu: 0.5}}}
simulator: {ros__parameters: {update_rate: 200, step.plugin_name: rk4, other: 1}}
computed_torque: {ros__parameters: {gains: {joint1: {p: 30.0}}}}
"""


def test_parameter_files():
    """Nested names get dots; the node's own section goes before that of all nodes."""
    nodes = read_parameters(FILE)
    assert nodes["simulator"] == {
        "engine": "graph",
        "contact.mu": 0.5,
        "update_rate": 200,
        "other": 1,
        "step.plugin_name": "rk4",
    }
    assert nodes["computed_torque"]["gains.joint1.p"] == 30.0


@pytest.mark.parametrize("namespace", ["", "/r1", "/site/r1"])
def test_shipped_files_match_in_every_namespace(namespace):
    """Whatever the namespace; the robot's section matches another node name, too."""
    for graph in GRAPHS.values():
        executables = [entry.executable for entry in graph.nodes]
        by_node = read_parameters(graph.params_file, executables, namespace)
        assert all(by_node[name] for name in executables)
    demo = read_parameters(GRAPHS["demo"].params_file, [], namespace)
    assert demo["simulator"]["step.plugin_name"] == "semi_implicit_euler"
    assert demo["computed_torque"]["inverse_dynamics.plugin_name"] == "auto"


KEYS = ["simulator", "/**/simulator", "/**", "/*/simulator", "/r1/**", "r1/simulator"]


@pytest.mark.parametrize(
    ("namespace", "wanted"),
    [("", KEYS[:3]), ("/r1", KEYS[1:]), ("/r1/x", [KEYS[1], KEYS[2], KEYS[4]])],
)
def test_sections_of_a_file_match_as_in_ros(namespace, wanted):
    """By the full name; where several match, the last one in the file goes first."""
    assert sections(KEYS, "simulator", namespace) == wanted
    text = """
/r1/**: {ros__parameters: {update_rate: 100, substeps: 2}}
r1: {simulator: {ros__parameters: {update_rate: 200}}}
"""
    read = read_parameters(text, ["simulator"], "/r1")["simulator"]
    assert read == {"update_rate": 200, "substeps": 2}
    with pytest.raises(dyn.SettingError, match="valid: sections for /r2/simulator, or"):
        read_parameters(text, ["simulator"], "/r2")


def test_parameters_of_a_file_for_a_node_in_a_namespace(tmp_path):
    """Later sections override earlier ones; sections of other nodes do not count."""
    path = tmp_path / "mine.yaml"
    path.write_text(
        "/**: {ros__parameters: {a.b: 1, c: 1}}\n"
        "/arm/driver: {ros__parameters: {c: 2, a: {d: [1.0]}}}\n"
        "/driver: {ros__parameters: {c: 3}}\n"
    )
    assert node_parameters(path, "/arm/driver") == {"a.b": 1, "c": 2, "a.d": [1.0]}
    assert node_parameters(path, "/driver") == {"a.b": 1, "c": 3}


@pytest.mark.ros
def test_ros_reads_the_sections_alike(environment, tmp_path):
    """The overrides of a node in a namespace are those that read_parameters returns."""
    pytest.importorskip("rclpy", reason="rclpy is not installed (extra ros)")
    from rclpy.context import Context
    from rclpy.node import Node

    rows = [
        f"{k}: {{ros__parameters: {{a{n}: {n}, b: {n}}}}}" for n, k in enumerate(KEYS)
    ]
    path = tmp_path / "sections.yaml"
    path.write_text("\n".join(rows))
    for namespace in ("", "/r1", "/r1/x"):
        context = Context()
        names = ["-r", f"__ns:={namespace or '/'}", "--params-file", str(path)]
        context.init(args=["--ros-args", *names])
        node = Node("simulator", context=context)
        overrides = {
            k: parameter.value for k, parameter in node._parameter_overrides.items()
        }
        node.destroy_node()
        context.shutdown()
        assert overrides == read_parameters(path, [], namespace)["simulator"], namespace


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("update_rate", "update_rat", "did you mean 'update_rate'"),
        (
            "ros__parameters: {gains",
            "parameters: {gains",
            "valid: a mapping with ros__parameters, as in /.*mode: gravity",
        ),
        ("{update_rate: 200", "[{update_rate: 200", "not YAML"),
        ("mu: 0.5", "mu: &a [*a]", "nested more than 32 deep"),
        ("p: 30.0", "p: 30", r"gains.joint1.p is 30; valid: write 30\.0$"),
        ("p: 30.0", "p: -5", r"gains.joint1.p is -5; valid: a number from 0 to 4e\+08"),
        ("p: 30.0", "p: -5.0", "gains.joint1.p is -5.0; valid: a number from 0"),
        ("gains: {joint1: {p: 30.0}}", "gains: [100, 20]", "valid: gains.JOINT.p, "),
        (
            "engine: graph",
            "gravity: [0, 0, -9.81]",
            r"gravity is \[0, 0, -9.81\]; valid: write \[0\.0, 0\.0, -9\.81\]$",
        ),
        ("mu: 0.5", "mu: 1", r"contact.mu is 1; valid: write 1\.0$"),
    ],
)
def test_bad_parameter_files(old, new, message):
    """One SettingError in words."""
    assert old in FILE
    with pytest.raises(dyn.SettingError, match=message):
        read_parameters(FILE.replace(old, new))


def test_parameter_files_of_the_pages_are_read(tmp_path):
    """Each block of YAML with parameters that a page shows is one."""
    blocks = {
        f"{page.name} {k}": text
        for page in sorted((ROOT / "docs").glob("*.md"))
        for k, text in enumerate(
            re.findall(r"```yaml\n(.*?)```", page.read_text(), re.S)
        )
        if "ros__parameters" in text
    }
    (gravity,) = (x for x in blocks.values() if "mode: gravity" in x)
    for name, text in blocks.items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(text)
        read_parameters(path, ["computed_torque", "simulator", "guard"])
    path.write_text(gravity)
    nodes = read_parameters(path, ["computed_torque"])
    assert nodes["computed_torque"]["mode"] == "gravity"
    assert nodes["simulator"] == {"robot_description_file": "arm7"}


def test_files_for_other_nodes():
    """A node that is misspelt, and a file for none of those that are started."""
    misspelt = FILE.replace("\nsimulator", "\nsimulater")
    with pytest.raises(
        dyn.SettingError,
        match="no node is called 'simulater'; did you mean 'simulator'",
    ):
        read_parameters(misspelt)
    rate = FILE.replace("update_rate", "update_rat")
    with pytest.raises(dyn.SettingError, match=": simulator: no parameter is called"):
        read_parameters(rate)
    two = misspelt + FILE.splitlines()[2] + "\n"  # maybe the file of two simulators
    with pytest.warns(
        dyn.errors.DynWarning, match="'simulater'; did you mean 'simulator'"
    ):
        read_parameters(two)
    alone = FILE.splitlines()[2] + "\n"
    assert read_parameters(alone, ["simulator"])["computed_torque"] == {}
    with pytest.raises(
        dyn.SettingError,
        match="parameters of simulator; valid: sections for computed_torque, or",
    ):
        read_parameters(alone, ["computed_torque"])
    read_parameters(FILE.splitlines()[1] + "\n", ["computed_torque"])


@pytest.mark.parametrize("key", ["/**/computed_torqe", "computed_torqe", "a/simulatr"])
def test_a_misspelt_node_beside_the_right_one_is_named(key):
    """Its gains were ignored in silence; names that tell two nodes apart are not."""
    right = GRAPHS["demo"].params_file.read_text(encoding="utf-8")
    node = "{ros__parameters: {engine: graph}}"
    with pytest.warns(dyn.errors.DynWarning, match=r"did you mean '(comp|sim)") as said:
        read_parameters(f"{right}\n{key}: {node}\n", ["computed_torque"])
    assert len(said) == 1
    assert f": {key}: no node is called '" in str(said[0].message)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for name in ("computed_torque_left", "simulator2", "a_simulator", "rviz"):
            read_parameters(f"{right}\n/**/{name}: {node}\n", ["computed_torque"])
    assert not said


def test_missing_parameter_files(tmp_path):
    """A file that is not there, is no mapping, or is empty."""
    path = tmp_path / "x.yaml"
    with pytest.raises(dyn.SettingError, match="cannot read the parameter file"):
        read_parameters(path)
    for text in ("", "- a"):
        path.write_text(text)
        with pytest.raises(dyn.SettingError, match="valid: a mapping from node to"):
            read_parameters(path)


def test_solvers_with_options():
    """Other defaults of a solver's own options, in slots and through a pickle, too."""
    import pickle

    solver = dyn.solver("aba_loops").with_options(alpha=3)
    assert solver.options["alpha"] == 3.0
    assert dyn.solver("aba_loops").options["alpha"] != 3.0
    assert pickle.loads(pickle.dumps(solver)).options == solver.options
    with pytest.raises(dyn.UnsupportedError, match="did you mean 'alpha'"):
        solver.with_options(alhpa=3)
    with pytest.raises(dyn.UnsupportedError, match="alpha is 'x'; valid: a number"):
        solver.with_options(alpha="x")
    with pytest.raises(dyn.UnsupportedError, match="'level'; valid: none"):
        dyn.solver("aba").with_options(level=2.0)


@pytest.mark.parametrize("good", ["r1", "/r1", "/site_2/arm"])
def test_namespaces(good):
    """With or without the leading slash; what ROS would refuse is refused before."""
    entry = GRAPHS["demo"].nodes[0]
    assert start_arguments(entry, good) == ["-r", f"__ns:=/{good.removeprefix('/')}"]
    assert start_arguments(entry) == start_arguments(entry, "/") == []
    for bad in ("a b", "//r", "r/", "2r", "r-1", "r:=x", "r1\n"):
        with pytest.raises(dyn.SettingError, match="valid: letters, digits and _"):
            start_arguments(entry, bad)


@pytest.mark.ros
@pytest.mark.parametrize("section", ["simulator", "/**", "/**/simulator", "/**/other"])
@pytest.mark.parametrize("graph", ["demo", "simulator"])
def test_brakes_hold_a_controlled_robot_unless_the_file_says_otherwise(
    ros, graph, section, tmp_path
):
    """Else it falls until the controller is active. Alone, a simulator lets it fall."""
    path = tmp_path / "p.yaml"
    path.write_text(f"{section}: {{ros__parameters: {{brakes: false, x: 1}}}}")
    arguments = ros_arguments(GRAPHS[graph].nodes[0], str(path))
    node = ros.create_node(
        "simulator",
        cli_args=arguments,
        automatically_declare_parameters_from_overrides=True,
        start_parameter_services=False,
    )
    holds = node.get_parameter_or("brakes").value
    node.destroy_node()
    expected = {"demo": True, "simulator": None}[graph]
    assert holds == (expected if section == "/**/other" else False)


def test_options_of_a_start():
    """A simulator is the clock that the others follow; a guard has no lifecycle."""
    simulator, controller = GRAPHS["demo"].nodes
    assert start_parameters(simulator, True, False) == {
        "publish_clock": True,
        "autostart": False,
    }
    assert start_parameters(controller, True) == {"use_sim_time": True}
    assert start_parameters(GUARD, True, False) == {"use_sim_time": True}
    assert start_arguments(controller, "", False, True)[1::2] == [
        "use_sim_time:=false",
        "autostart:=true",
    ]
    assert start_arguments(controller) == []
    watch, *rest, guarded = GRAPHS["demo"].entries(True)
    assert (watch, rest) == (GUARD, [simulator])
    assert start_parameters(guarded, None, False) == {
        "require_guard": True,
        "autostart": False,
    }
    assert start_arguments(guarded) == ["-p", "require_guard:=true"]
    assert GRAPHS["demo"].entries() == (simulator, controller)
    with pytest.raises(
        dyn.SettingError, match="valid: the graphs computed_torque, dem"
    ):
        GRAPHS["chain"].entries(True)


@pytest.fixture
def make(ros):
    """Return a function that makes a node with parameters of a file."""
    from rclpy.lifecycle import TransitionCallbackReturn
    from rclpy.parameter import Parameter

    made = []

    def node(kind, values):
        from ros_nodes.computed_torque_node import ComputedTorqueNode
        from ros_nodes.simulator_node import SimulatorNode

        settings = {"robot_description_file": "two_link", "autostart": False}
        settings |= {"engine": "graph", **values}
        overrides = [
            Parameter(k, value=v) for k, v in settings.items() if v is not None
        ]
        kinds = {"simulator": SimulatorNode, "computed_torque": ComputedTorqueNode}
        made.append(kinds[kind](parameter_overrides=overrides))
        return made[-1], TransitionCallbackReturn.SUCCESS

    yield node
    for each in made:
        each.destroy_node()


@pytest.mark.ros
@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("simulator", {"update_rat": 5}, "simulator: no .*did you mean 'update_rate'"),
        ("simulator", {"lock.joint1": float("nan")}, "no joint is locked"),
        ("computed_torque", {"effort_limits.jiont1": 3.0}, "effort_limits.joint1"),
        ("computed_torque", {"gains.joint_1.p": 3.0}, "gains.joint1.p"),
        ("computed_torque", {"gains.joint2.p": -3.0}, "gains.joint2.p"),
        (
            "computed_torque",
            {"inverse_dynamics.plugin_name": "aba"},
            "inverse_dynamics.plugin_name: 'aba' solves",
        ),
        (
            "computed_torque",
            {"robot_description": "<robot><link/></robot>"},
            "ModelError: .*name",
        ),
        (
            "simulator",
            {"forward_dynamics.options.level": 2.0},
            "'level'; valid: alpha",
        ),
        (
            "simulator",
            {"forward_dynamics.options.alpha": 2.0},
            "aba: no option .*'alpha'",
        ),
        (
            "simulator",
            {"step.options.limit_stops": False},
            "set the parameter limit_st",
        ),
        ("simulator", {"contact.options.iterations": 3}, "contact.enabled is false"),
        (
            "simulator",
            {
                "forward_dynamics.plugin_name": "aba_loops",
                "forward_dynamics.options.alpha": "x",
            },
            "valid: a number",
        ),
        (
            "simulator",
            {
                "robot_description_file": None,
                "chain_file": "hopper",
                "engine": None,
                "contact.options.x": 1,
            },
            "a chain is simulated",
        ),
        (
            "simulator",
            {
                "robot_description_file": None,
                "chain_file": "hopper",
                "engine": None,
                "contact.mu": 0.5,
            },
            "contact.mu has no effect: a chain is simu",
        ),
        (
            "simulator",
            {
                "robot_description_file": None,
                "chain_file": "hopper",
                "engine": None,
                "unlisted_joints": "lock",
            },
            "unlisted_joints is for robots",
        ),
        (
            "simulator",
            {"prescribed.joints": ["joint1"], "forward_dynamics.plugin_name": "dense"},
            "forward_dynamics changes nothing where accelerations are prescribed",
        ),
        (
            "simulator",
            {"contact.enabled": True, "contact.ground": False, "contact.mu": 0.5},
            "contact.mu is of the floor: set contact.ground",
        ),
    ],
)
def test_nodes_refuse_what_would_have_no_effect(make, kind, values, message):
    """The node stays unconfigured and its failure says why."""
    node, good = make(kind, values)
    assert node.trigger_configure() != good
    assert re.search(message, node.failure), node.failure


@pytest.mark.ros
def test_values_that_are_none_end_the_constructor(make):
    """Before anything is sent."""
    with pytest.raises(Exception, match="gravity.1. is nan; valid: a finite number"):
        make("simulator", {"gravity": [0.0, float("nan"), 0.0]})


@pytest.mark.ros
@pytest.mark.ros
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("state_timeout", 5.0, "state_timeout is 5 s, 50 times its default, 0.1 s; in"),
        ("max_state_age", 50.0, "max_state_age is 50 s, 100 times its default, 0.5 s"),
        ("state_timeout", 1.0, ""),
        ("gains.joint1.p", 9000.0, ""),
    ],
)
def test_times_that_seem_to_be_milliseconds_are_warned_of(
    make, capfd, name, value, message
):
    """A long time may be meant; what is beyond the range is refused with the unit."""
    node, good = make("computed_torque", {name: value})
    assert node.trigger_configure() == good, node.failure
    said = capfd.readouterr().err
    assert message in said
    assert said.count("milliseconds") == bool(message)
    refused = r"state_timeout is 100.0; valid: a number from 0.001 to 10 \[s\]"
    with pytest.raises(dyn.ModelError, match=refused):
        make("computed_torque", {"state_timeout": 100.0})


def test_names_of_others_are_warned_of_once(make, capfd):
    """A shared file configures every node; each says once what it does not have."""
    values = {"nope": 3, "gains.joint1.p": 1.0, "state_timeout": 0.1, "robot": "r"}
    values |= {"rate": 500.0, "driver.p": 1.0, "kp": 2.0}
    node, good = make("simulator", values)
    for _ in range(2):
        assert node.trigger_configure() == good, node.failure
        node.trigger_cleanup()
    log = capfd.readouterr().err
    said = "parameters that this node does not have: nope, robot, rate, driver.p, kp;"
    said += " did you mean 'robot_description_file', 'update_rate'?; dyn param list"
    assert log.count(said) == 1


@pytest.mark.ros
def test_parameters_of_contacts_are_warned_of_without_contact(make, capfd):
    """They stay where contact is switched off, and the log says that nothing acts."""
    node, good = make(
        "simulator", {"contact.mu": 0.5, "contact.stepper": "moreau_jean"}
    )
    assert node.trigger_configure() == good, node.failure
    said = "contact.enabled is false; no effect: contact.stepper, contact.mu"
    assert said in capfd.readouterr().err


@pytest.mark.ros
def test_options_of_solvers_act(make):
    """Each slot's solver gets its options, visible in what it computes."""
    loops = {
        "forward_dynamics.plugin_name": "aba_loops",
        "forward_dynamics.options.alpha": 3.5,
    }
    node, good = make("simulator", loops)
    assert node.trigger_configure() == good, node.failure
    assert node.robot.forward_dynamics.options["alpha"] == 3.5
    assert node.topics.channels.values()["forward dynamics"] == "aba_loops"
    assert (
        "option"
        in node.describe_parameter("forward_dynamics.options.alpha").description
    )
    node, good = make(
        "computed_torque",
        {
            "inverse_dynamics.plugin_name": "rnea",
            "inverse_dynamics.options.x": 1,
        },
    )
    assert node.trigger_configure() != good
    assert "no option is called 'x'" in node.failure
    way = "dyn param delete /computed_torque NAME takes one back"
    assert f"given are inverse_dynamics.options.x; {way}" in node.failure


@pytest.mark.ros
def test_an_option_is_given_and_taken_back_in_a_node_that_is_there(make):
    """Not in a configured one, and no parameter that the node needs."""
    from rclpy.exceptions import ParameterNotDeclaredException
    from rclpy.parameter import Parameter

    node, good = make("simulator", {"forward_dynamics.plugin_name": "aba_loops"})
    name = "forward_dynamics.options.alpha"
    value, back = Parameter(name, value=7.5), Parameter(name)

    def ask(parameter):
        try:
            return node.set_parameters_atomically([parameter]).reason
        except Exception as error:  # as the service of parameters does
            return str(error)

    assert ask(value) == ""
    assert node.trigger_configure() == good, node.failure
    assert node.robot.forward_dynamics.options["alpha"] == 7.5
    for change in (Parameter(name, value=8.5), back):
        assert f"{name} is structure: clean up first" in ask(change)
    other = "forward_dynamics.options.beta"
    assert f"{other} is structure" in ask(Parameter(other, value=1.0))
    assert node.trigger_cleanup() == good
    assert ask(back) == ""
    assert not node.has_parameter(name)
    assert node.options("forward_dynamics") == {}
    assert node.trigger_configure() == good, node.failure
    assert node.trigger_cleanup() == good
    assert ask(Parameter(name, value=3)) == "", "another type is another option's"
    assert ask(back) == ""
    assert "cannot be undeclared" in ask(Parameter("step.plugin_name"))
    assert "no parameter is called" in ask(Parameter("forward_dynamics.optoins.x"))
    for wrong in (float("nan"), []):
        assert "valid: " in ask(Parameter(name, value=wrong))
        assert not node.has_parameter(name)
    both = [value, Parameter("update_rate", value=-5)]
    assert not node.set_parameters_atomically(both).successful
    assert not node.has_parameter(name), "a refused request changes nothing"
    with pytest.raises(ParameterNotDeclaredException):
        node.set_parameters_atomically([value, Parameter("unknown", value=1)])
    assert not node.has_parameter(name)


@pytest.mark.ros
def test_descriptors_have_type_range_and_unit(make):
    """`ros2 param describe` shows what the table says."""
    from rcl_interfaces.msg import ParameterType

    node, good = make("computed_torque", {})
    assert node.trigger_configure() == good, node.failure
    timeout = node.describe_parameter("state_timeout")
    assert timeout.type == ParameterType.PARAMETER_DOUBLE
    assert timeout.floating_point_range[0].to_value == 10.0
    assert "[s] (structure: writable in state unconfigured only)" in timeout.description
    gain = node.describe_parameter("gains.joint1.p")
    assert gain.floating_point_range[0].from_value == 0.0
    assert "structure" not in gain.description
    samples = node.describe_parameter("good_samples").integer_range[0]
    assert (samples.from_value, samples.to_value) == (1, 1000)
    mode = node.describe_parameter("mode")
    modes = "computed_torque, impedance, gravity, cartesian, predictive"
    assert mode.additional_constraints == f"one of {modes}"


def test_a_robot_with_doubts_warns_in_the_log_alone():
    """Python's warning would be a second line, with a line of a program in it."""
    from ros_nodes.base import node as base

    class Node:
        def value(self, name):
            return []

    xml = '<robot name="odd"><link name="base"/><unknown/></robot>'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = base.read_robot(Node(), StringIO(xml))
    assert model.warnings == ("unknown element <unknown> is left out",)


@pytest.mark.ros
def test_a_former_name_of_a_parameter_is_told(ros):
    """Its value is that of the present name; both together are refused."""
    from rclpy.parameter import Parameter

    from ros_nodes.base.parameter_node import TableNode

    table = [Field("speed", Quantity(0.0, 3.0), "speed", "m/s", 1.0, former="velocity")]
    overrides = [Parameter("velocity", value=2.0)]
    with pytest.warns(DeprecationWarning, match="'velocity' is now 'speed'"):
        node = TableNode("renamed", table, parameter_overrides=overrides)
    try:
        assert node.value("speed") == 2.0
        assert not node.has_parameter("velocity")
    finally:
        node.destroy_node()
    overrides.append(Parameter("speed", value=2.0))
    with pytest.raises(ModelError, match="both are there; valid: speed alone"):
        TableNode("renamed", table, parameter_overrides=overrides)
