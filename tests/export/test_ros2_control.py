"""Packages for ros2_control: their files, names from foreign files, refusals."""

import ast
import functools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

import dyn_core as dyn
from dyn_core.cli import main
from dyn_core.control.controller_fields import (
    ENVELOPE_FIELDS,
    PAYLOAD_FIELDS,
    RULE_FIELDS,
    SENSOR_FIELDS,
    effort_fields,
    gain_fields,
    wrap_fields,
)
from dyn_core.engines.llvm import host_machine
from dyn_core.errors import (
    DynError,
    ModelError,
    SettingError,
    SignatureError,
    UnsupportedError,
)
from dyn_core.export.interface import LICENSE
from dyn_core.export.ros2_control.controller_package import (
    LAWS,
    TOOL,
    controller_package,
)
from dyn_core.export.ros2_control.hardware_package import hardware_package
from dyn_core.export.ros2_control.parameters import (
    FIXED_RULES,
    LAW_FIELDS,
    LIVE_RULES,
    cpp_number,
)
from dyn_core.model.sources.arguments import urdf_with

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=f"no machine code: {host_machine.missing()}"
)


def test_numbers_in_cpp():
    """With the same bits, also where they are no literals."""
    nan, inf = float("nan"), float("inf")
    forms = [cpp_number(x) for x in (0.1, 1, -inf, inf, nan, -0.0)]
    assert forms == ["0.1", "1.0", "-HUGE_VAL", "HUGE_VAL", "NAN", "-0.0"]


CONTROLLER_FILES = {
    "CMakeLists.txt", "README.md", "config/controllers.yaml", "launch/mock_launch.py",
    "package.xml", "plugins.xml", "src/controller.cpp", "src/robot.hpp",
    "test/load_plugin.cpp", "urdf/mock.urdf",
}  # fmt: skip
SLIDER = """<robot name="r&quot; --&gt; */ \\"><link name="a"/><link name="b">
<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
</inertial></link><joint name="{name}" type="prismatic"><parent link="a"/>
<child link="b"/><axis xyz="0 0 1"/><limit lower="0.1" upper="1" effort="60"
velocity="1"/></joint>{more}</robot>"""
LOADED = ("computed_torque",)
TOOLS = {
    "cartesian_impedance": {"cartesian.frame": "tool"},
    "operational_space": {"cartesian.frame": "link6", "cartesian.reference": "local"},
}
NAMED = "<ros2_control name='other' type='system'/>"


@pytest.fixture(scope="module")
def slider():
    """A prismatic joint with a hostile name: URDF and model."""
    name = "j&quot;\\&#10;*/ &lt;/x&gt; $(var a)"
    urdf = SLIDER.format(name=name, more=NAMED)
    return urdf, dyn.load(urdf)


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """A function that writes, once, the package of a law or of a simulation of an arm."""
    place = tmp_path_factory.mktemp("packages")
    urdf, model = urdf_with({}, "arm7"), dyn.load("arm7")

    @functools.cache
    def package(kind):
        folder = place / f"arm_{kind}"
        if kind == "sim":
            hardware_package("semi_implicit_euler", model, folder, urdf, {})
        else:
            options = (
                {"payload_link": "tool"} if kind in LOADED else TOOLS.get(kind, {})
            )
            controller_package(kind, model, folder, urdf, options)
        return folder

    return package


# The package of the second law of a tool takes seconds, and differs by its kernels,
# which test_tool_cycle.py tests.
SECOND = "operational_space"


def _laws(laws):
    """Return laws as parameters, that of SECOND with --full only."""
    full = pytest.mark.full
    return [pytest.param(x, marks=full) if x == SECOND else x for x in laws]


def _files(folder):
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.one_of(2)
@pytest.mark.parametrize("law", _laws(LAWS))
def test_a_package_is_complete_and_says_its_licence(law, packages):
    """No place of a template is left, XML and YAML are read, each file has its SPDX."""
    files = _files(packages(law))
    name = f"arm_{law}"
    kernels = {
        f"{folder}/{name}_{kernel}{end}"
        for kernel in (
            *("cycle", "weightless", "weight")[: 2 + (law in LOADED)],
            *["links"] * (law in TOOLS),
            *["sampling"] * (law in (*TOOLS, "joint_impedance")),
        )
        for folder, end in (("src", ".c"), ("src", ".h"), ("test", "_check.c"), ("test", "_test.h"))
    }  # fmt: skip
    tool = {"src/tool.hpp"} if law in TOOLS else set()
    assert files.keys() == CONTROLLER_FILES | kernels | tool | {f"{name}.json"}
    for path, text in files.items():
        assert f"SPDX-License-Identifier: {LICENSE}" in text or path.endswith(".json")
        assert not re.search(r"@[a-z]\w*@", text), path
        if path.endswith((".xml", ".urdf")):
            ElementTree.fromstring(text)
    assert json.loads(files[f"{name}.json"])["license"] == LICENSE
    ast.parse(files["launch/mock_launch.py"])
    plugin = ElementTree.fromstring(files["plugins.xml"]).find("class")
    assert plugin.get("name") == f"{name}/Controller"
    chainable = law in ("computed_torque", "joint_impedance")
    assert ("Chainable" in plugin.get("base_class_type")) == chainable
    settings = yaml.safe_load(files["config/controllers.yaml"])
    manager = settings["controller_manager"]["ros__parameters"]
    assert manager["dynamics_controller"]["type"] == f"{name}/Controller"
    assert ("joint_trajectory_controller" in manager) == chainable
    gains = settings["dynamics_controller"]["ros__parameters"]["gains"]
    assert [*gains] == list(dyn.load("arm7").joint_names)


def _rows(text, table):
    """Return (meaning, low, high, value) by name of each row of a C++ table."""
    body = text.split(f"&{table}() {{")[1]
    string = r'"((?:[^"\\]|\\.)*)"'
    row = re.compile(
        rf"\{{{string}, rclcpp::ParameterValue\((.*)\), (\S+), (\S+), {string},"
        rf" {string}\}}"
    )
    entries = row.findall(body.split("return table")[0])

    def plain(x):
        octal = re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), x)
        return octal.encode("latin-1").decode()

    return {
        plain(name): (plain(meaning), float(low), float(high), value)
        for name, value, low, high, meaning, _ in entries
    }


@pytest.mark.parametrize("law", _laws(["computed_torque", "joint_impedance", *TOOLS]))
def test_parameters_are_those_of_the_node(law, packages):
    """Names, units, ranges, texts and defaults are those of the Fields, none is lost."""
    text = (packages(law) / "src/robot.hpp").read_text()
    model = dyn.load("arm7")
    names = model.joint_names
    loads = law in LOADED  # its link may carry a payload
    keys = ".d" if law in TOOLS else (".p", ".d")
    gains = [f for f in gain_fields(names) if f.name.endswith(keys)]
    stops = [f for f in RULE_FIELDS if f.name in LIVE_RULES]
    live = [*gains, *SENSOR_FIELDS, *stops, *(PAYLOAD_FIELDS[1:] if loads else ())]
    fixed = [f for f in RULE_FIELDS if f.name in FIXED_RULES]
    fixed += [*ENVELOPE_FIELDS, *effort_fields(names), *wrap_fields(names, ())]
    fixed += PAYLOAD_FIELDS[:1] if loads else PAYLOAD_FIELDS
    if law in TOOLS:
        live += [f for f in LAW_FIELDS if not f.structure]
        live += [f for f in RULE_FIELDS if f.name == "max_state_age"]
        fixed += [f for f in LAW_FIELDS if f.structure]
    for table, fields in (("live_parameters", live), ("fixed_parameters", fixed)):
        rows = _rows(text, table)
        assert rows.keys() == {field.name for field in fields}
        for field in fields:
            meaning, low, high, value = rows[field.name]
            assert meaning == field.doc + (f" [{field.unit}]" if field.unit else "")
            kind = getattr(field.value_kind, "kind", field.value_kind)
            if np.isfinite(getattr(kind, "high", None) or np.inf):
                assert (low, high) == (kind.low, kind.high)
            if field in gains:
                assert float(value) == field.default
    assert "effort_limits" in text
    acting = [*FIXED_RULES, *LIVE_RULES]
    assert len(acting) == sum(f.name in acting for f in RULE_FIELDS)


def test_options_are_constants_of_the_package(tmp_path):
    """A rule, a bound and the rate stand in the table; the node's default does not."""
    model, urdf = dyn.load("two_link"), urdf_with({}, "two_link")
    options = {
        "state_timeout": 0.02,
        "power": 50.0,
        "update_rate": 500,
        "effort_slew": 9.0,
    }
    controller_package("joint_impedance", model, tmp_path / "arm", urdf, options)
    text = (tmp_path / "arm/src/robot.hpp").read_text()
    rows = _rows(text, "fixed_parameters")
    assert rows["state_timeout"][-1] == "0.02"
    assert rows["envelope.power"][-1] == "50.0"
    assert rows["effort_slew"][-1] == "Numbers{9.0}"
    assert "STATE_TIMEOUT = 0.02," in text
    assert "RATE = 500.0;" in text
    assert "update_rate: 500" in (tmp_path / "arm/config/controllers.yaml").read_text()


@pytest.mark.parametrize("slew", [np.array([9.0, 8.0]), {"joint1": 9.0, "joint2": 8}])
def test_a_package_takes_effort_slew_in_each_form_of_the_cycle(slew, tmp_path):
    """An array or a mapping by joint is a list of one number a joint in the table."""
    model, urdf = dyn.load("two_link"), urdf_with({}, "two_link")
    options = {"effort_slew": slew}
    controller_package("joint_impedance", model, tmp_path / "arm", urdf, options)
    rows = _rows((tmp_path / "arm/src/robot.hpp").read_text(), "fixed_parameters")
    assert rows["effort_slew"][-1] == "Numbers{9.0, 8.0}"


def test_names_of_a_foreign_file_are_quoted(slider, tmp_path):
    """They end no string, comment or element; the name comes back from YAML and XML."""
    urdf, model = slider
    (name,) = model.joint_names
    controller_package("computed_torque", model, tmp_path / "hostile", urdf, {})
    hardware_package("semi_implicit_euler", model, tmp_path / "sim", urdf, {})
    for path, text in {
        **_files(tmp_path / "hostile"),
        **_files(tmp_path / "sim"),
    }.items():
        if path.startswith("src/") and path.endswith("pp"):
            assert text.isascii()
            code = re.sub(r"^ *//.*[^\\]$", "", text, flags=re.MULTILINE)
            assert "*/ <" not in re.sub(r'"(?:[^"\\]|\\.)*"', "", code)
    settings = yaml.safe_load(
        (tmp_path / "hostile/config/controllers.yaml").read_text()
    )
    assert [*settings["dynamics_controller"]["ros__parameters"]["gains"]] == [name]
    robot = ElementTree.parse(tmp_path / "hostile/urdf/mock.urdf")
    (system,) = robot.findall("ros2_control")  # the one of the file is replaced
    assert system.findtext("hardware/plugin") == "mock_components/GenericSystem"
    assert system.find("joint").get("name") == name
    start = system.find("joint/state_interface[@name='position']/param")
    assert float(start.text) == 0.1  # zero is outside the limits


@pytest.mark.parametrize(
    ("law", "robot", "package", "options", "error", "message"),
    [
        ("computed_torque", "two_link", "My-Arm", {}, SettingError, "valid: lower-case"),
        ("computed_torque", "two_link", "a", {"update_rate": 0}, SettingError, "update_rate=0"),
        ("computed_torque", "two_link", "a", {"on_estop": "hold"}, SettingError, "on_estop is hold"),
        ("computed_torque", "two_link", "a", {"on_stale": "hold"}, SettingError, "on_stale"),
        ("computed_torque", "two_link", "a", {"on_collision": "hold"}, SettingError, "on_collision is hold"),
        ("computed_torque", "two_link", "a", {"inputs": ["time"]}, SettingError, "payload_link=LINK"),
        ("computed_torque", "two_link", "a", {"payload_link": "hnd"}, DynError, "hnd"),
        ("cartesian", "two_link", "a", {}, SettingError, "cartesian.frame is ''; valid: "),
        ("cartesian", "two_link", "a", {"cartesian_control": "rnea"}, SettingError,
         "cartesian_control='rnea'; valid: cartesian_impedance, operational_space"),
        ("operational_space", "arm7", "a", {"cartesian.frame": "link0"}, SettingError,
         "cartesian.frame is 'link0'; valid: link1"),
        ("computed_torque", "two_link", "a", {"update_rat": 500}, UnsupportedError,
         "unknown option update_rat; did you mean 'update_rate'? valid: update_rate, payload_link, "),
        ("computed_torque", "two_link", "a", {"state_timout": 1}, UnsupportedError,
         "did you mean 'state_timeout'?"),
        ("computed_torque", "two_link", "a", {"gains.joint1.p": 50}, SettingError,
         "gains.joint1.p is no option of a package; valid: set it in"
         " config/controllers.yaml, or while the controller runs"),
        ("computed_torque", "two_link", "a", {"robot_compensates_gravity": True}, SettingError,
         "robot_compensates_gravity is no option of a package; valid: set it in"
         " config/controllers.yaml"),
        ("semi_implicit_euler", "two_link", "a", {"max_stp": 1.0}, UnsupportedError,
         "did you mean 'max_step'?"),
        ("computed_torque", "quadruped", "a", {}, UnsupportedError, "fixed base"),
        ("semi_implicit_euler", "two_link", "a", {"max_step": 1.0}, SettingError, "max_step=1.0"),
        ("semi_implicit_euler", "two_link", "a", {"inputs": ["f_ext"]}, SettingError, "inputs=['f_ext']"),
        ("semi_implicit_euler", "two_link", "a", {"dtype": "float32"}, SettingError, "dtype='float32'"),
        ("rnea", "two_link", "a", {}, SignatureError, "'rnea' solves inverse_dynamics, not step"),
        ("contact_euler", "two_link", "a", {}, SignatureError, "valid: "),
    ],
)  # fmt: skip
def test_what_no_package_can_be_is_refused(
    law, robot, package, options, error, message, tmp_path
):
    """Names of packages, rates, stops that a kernel lacks, floating bases."""
    write = controller_package if law in LAWS or law == TOOL else hardware_package
    model = dyn.load(robot)
    with pytest.raises(error, match=re.escape(message)):
        write(law, model, tmp_path / package, "<robot/>", options)
    assert not list(tmp_path.iterdir())


def test_a_robot_that_is_no_urdf_is_refused(tmp_path):
    """controller_manager reads URDF alone."""
    with pytest.raises(ModelError, match="valid: a robot in URDF"):
        controller_package(
            "gravity_compensation", dyn.load("two_link"), tmp_path / "a", "", {}
        )


def test_the_command_writes_both_kinds_of_package(tmp_path, capsys):
    """It lists the files; options that act on other forms only are refused."""
    for solver, key in (
        ("computed_torque", "src/controller.cpp"),
        ("semi_implicit_euler", "src/hardware.cpp"),
    ):
        arguments = [
            "export",
            solver,
            "two_link",
            str(tmp_path / solver),
            "--form",
            "ros2_control",
        ]
        assert main(arguments) == 0
        assert f"written: {tmp_path / solver / key}" in capsys.readouterr().out
        assert main(arguments) == 0  # its own files are replaced
        capsys.readouterr()
    more = [*arguments, "--target", "wasm32"]
    assert main(more) == 1
    assert "--target: form ros2_control is C source" in capsys.readouterr().err


def _cmake(folder, build, *more):
    command = ["cmake", "-S", str(folder), "-B", str(build), *more]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _configure(folder, build, prefix):
    """Configure the build of a package, or skip with CMake's reason."""
    if not shutil.which("cmake"):
        pytest.skip("cmake is not installed")
    done = _cmake(folder, build, f"-DCMAKE_INSTALL_PREFIX={prefix}")
    missing = re.search(
        r'package\s+configuration\s+file\s+provided\s+by\s+"(\w+)"', done.stderr
    )
    if missing:
        pytest.skip(f"CMake finds no {missing[1]}")
    assert done.returncode == 0, done.stderr


def build_package(folder, build, prefix):
    """Build, test and install a package, or skip with CMake's reason."""
    _configure(folder, build, prefix)
    for step in (["--build", str(build)], ["--install", str(build)]):
        made = subprocess.run(
            ["cmake", *step], capture_output=True, text=True, check=False
        )
        assert made.returncode == 0, made.stdout + made.stderr
        assert "warning:" not in made.stdout + made.stderr
    tested = subprocess.run(
        ["ctest", "--output-on-failure"], cwd=build, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert tested.returncode == 0, tested.stdout
    return tested.stdout


@pytest.mark.one_of(2)
@pytest.mark.parametrize("kind", [*LAWS, "sim"])
def test_a_package_builds_where_ros2_control_is_found(kind, packages, tmp_path):
    """Without a warning; its own tests pass: bits of Python, and the plugin loads."""
    # Where ros2_control is not, no further package is written in vain.
    _configure(
        packages("gravity_compensation"), tmp_path / "first", tmp_path / "install"
    )
    out = build_package(packages(kind), tmp_path / "build", tmp_path / "install")
    assert "100% tests passed" in out
    library = tmp_path / f"install/lib/libarm_{kind}.so"
    assert library.exists()
    index = "hardware_interface" if kind == "sim" else "controller_interface"
    entry = f"share/ament_index/resource_index/{index}__pluginlib__plugin/arm_{kind}"
    assert os.path.exists(tmp_path / "install" / entry)


def test_the_templates_are_in_the_distribution():
    """They are data of their package, which setuptools is told."""
    root = Path(__file__).parents[2]
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    assert '"dyn_core.export.ros2_control" = ["templates/*.in"]' in text
