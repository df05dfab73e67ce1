"""What the files of an export say, to people, compilers and hosts."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from emulate import build, need, sh

import dyn_core as dyn
from dyn_core.cli import main
from dyn_core.engines.llvm import host_machine
from dyn_core.errors import SettingError
from dyn_core.export import gpu
from dyn_core.export.cycle.controller_cycle import control_cycle, fault_names
from dyn_core.export.interface import LICENSE

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=f"no machine code: {host_machine.missing()}"
)
ROOT = Path(__file__).parents[2]
FOUR_BAR = str(ROOT / "examples/four_bar/four_bar.urdf")


@pytest.mark.parametrize("form", ["c", "object"])
def test_each_file_says_its_licence_and_robot_in_ascii(form, tmp_path):
    """An SPDX line and the hash of the model; sources are ASCII, units among them."""
    result = build("rnea", "arm7").export(tmp_path, form=form, variant="batch")
    texts = {
        name: (tmp_path / name).read_text(encoding="utf-8")
        for name in result.files
        if not name.endswith(".o")
    }
    assert len(texts) == 8
    for name, text in texts.items():
        licence = f"SPDX-License-Identifier: {LICENSE}\n"
        if name.endswith(".json"):
            assert json.loads(text)["license"] == LICENSE
        else:
            assert licence in text
        assert result.interface.model_hash in text
        assert text.isascii() or name.endswith(".json")


def test_the_project_has_the_licence_of_its_exports():
    """They hold text of it."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'license = {{ text = "{LICENSE}" }}' in project


def test_the_header_has_the_limits_of_the_robot(tmp_path):
    """By joint, each that the file has; the manifest has null for those it lacks."""
    model = dyn.load("cart_pole")
    program = dyn.solver("rnea").build(model)
    result = program.export(tmp_path, form="c", name="kern")
    header = (tmp_path / "kern.h").read_text()
    limits = json.loads((tmp_path / "kern.json").read_text())["interface"]["limits"]
    for kind, values in (
        ("lower", model.lower), ("upper", model.upper),
        ("velocity", model.velocity_limit), ("effort", model.effort_limit),
    ):  # fmt: skip
        for k, (name, value) in enumerate(zip(model.joint_names, values, strict=True)):
            number = re.search(rf"#define KERN_{kind.upper()}_{name} \((.+)\)", header)
            absent = not np.isfinite(value) or (kind == "effort" and value == 0)
            assert (number is None) == absent
            assert limits[k][kind] == (None if absent else value)
            assert number is None or float(number[1]) == value
    assert result.interface.limits[0].upper is not None


def test_c_source_has_one_statement_about_memory_and_no_pc_file(tmp_path):
    """The header's macros; rows are computed one by one, which LANES says.

    Instructions and constants have no size before they are compiled.
    """
    result = build("rnea", "arm7").export(tmp_path, form="c", variant="batch")
    x = result.interface
    assert (result.code, result.constants) == (0, 0)
    header = (tmp_path / "rnea_arm7.h").read_text()
    for macro, value in (
        ("SCRATCH", x.scratch), ("BATCH_SCRATCH", x.batch_scratch), ("STACK", x.stack),
        ("LANES", 1),
    ):  # fmt: skip
        assert re.findall(rf"#define RNEA_ARM7_{macro} (\d+)$", header, re.M) == [
            str(value)
        ]
    assert not [name for name in result.files if name.endswith(".pc")]
    for name in ("rnea_arm7.c", "rnea_arm7_README.md"):
        text = (tmp_path / name).read_text()
        assert not re.search(r"\d+ bytes.{0,20}aligned|scratch memory \d", text)


@pytest.mark.parametrize("language", ["c99", "c11", "c++11", "c++17"])
def test_c_blocks_of_the_documentation_compile_as_c_and_as_cpp(language, tmp_path):
    """Each of docs/export.md, against an export of the form that needs no target."""
    compiler_name, name = ("g++", "main.cpp") if "++" in language else ("gcc", "main.c")
    need("gcc", compiler_name)
    page = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```c\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert blocks
    build("rnea", "arm7", finite=True).export(tmp_path, form="c")
    sh("gcc", "-std=c99", "-c", "rnea_arm7.c", cwd=tmp_path)
    for block in blocks:
        (tmp_path / name).write_text(block)
        strict = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
        sh(compiler_name, f"-std={language}", *strict, "-o", "main", name, "rnea_arm7.o",
           cwd=tmp_path)  # fmt: skip
        assert sh(tmp_path / "main") == ""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """An export as a module of WebAssembly."""
    folder = tmp_path_factory.mktemp("wasm")
    program = build("rnea", "arm7")
    return program, program.export(folder, target="wasm32", form="shared", name="w")


def _host(module, language):
    """Return the lines of a README in a language."""
    text = (module[1].folder / "w_README.md").read_text()
    (block,) = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    return block


def _is_result(program, printed):
    """Check the numbers that a host prints: a status, and tau of inputs of 0.1."""
    status, *tau = re.findall(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", printed)
    assert status == "0"
    state = np.full(7, 0.1)
    np.testing.assert_allclose(np.array(tau, float), program(state, state, state), 1e-6)


def test_a_module_for_webassembly_is_described_as_one(module):
    """No library to link, no .pc file, no package of CMake."""
    _, result = module
    assert not [x for x in result.files if x.endswith((".pc", ".cmake"))]
    text = (result.folder / "w_README.md").read_text()
    assert "-lw" not in text and "shared library" not in text and "cc " not in text


def test_the_host_in_javascript_runs(module):
    """As its README shows it, by Node."""
    (node,) = need("node")
    program, result = module
    script = _host(module, "js")
    (result.folder / "host.mjs").write_text(script)
    printed = sh(node, "host.mjs", cwd=result.folder)
    _is_result(program, printed.replace("0n", "0").replace("Float64Array(7)", ""))


def test_the_host_in_python_runs(module):
    """As its README shows it, with wasmtime."""
    pytest.importorskip("wasmtime", reason="wasmtime is not installed")
    program, result = module
    (result.folder / "host.py").write_text(_host(module, "python"))
    _is_result(program, sh(sys.executable, "host.py", cwd=result.folder))


@pytest.mark.parametrize(
    "option", [("--form", "c"), ("--variant", "batch"), ("--name", "x")]
)
def test_what_no_gpu_kernel_has_is_refused(option, tmp_path, capsys):
    """PTX has no form, no variant and no name of its own."""
    command = ["export", "rnea", "arm7", str(tmp_path / "gpu"), "--target", "sm_90"]
    assert main([*command, *option]) == 1
    assert f"{option[0]} {option[1]}: target sm_90 is a GPU" in capsys.readouterr().err
    assert not (tmp_path / "gpu").exists()


@pytest.mark.parametrize("target", ["sm_90", "host"])
def test_a_file_is_no_folder_of_an_export(target, tmp_path, capsys):
    """Said before anything is built; the file stays as it is."""
    file = tmp_path / "notes"
    file.write_text("x")
    assert main(["export", "rnea", "two_link", str(file), "--target", target]) == 1
    said = capsys.readouterr()
    assert said.err == f"dyn: {file} is a file; valid: a folder, new or old\n"
    assert not said.out
    kernel = gpu.ptx(build("rnea", "two_link"), "sm_90")
    with pytest.raises(SettingError, match="notes is a file; valid: a folder"):
        kernel.write(file)
    assert file.read_text() == "x"


@pytest.mark.parametrize(
    "option", [None, "active=motor", "active=[motor]", "active=motor,"]
)
def test_lists_are_options_and_motors_are_those_of_the_file(option, tmp_path, capsys):
    """The sidecar of the four-bar says which joint has a motor."""
    more = [] if option is None else ["--option", option]
    command = ["export", "loop_inverse_dynamics", FOUR_BAR, str(tmp_path / "x")]
    assert main([*command, "--form", "c", *more]) == 0, capsys.readouterr().err
    assert "tau_a[1]" in capsys.readouterr().out


def test_a_list_of_one_name_is_no_list_of_letters(tmp_path, capsys):
    """Names that are none are named whole; lists may be options of any solver."""
    folder = str(tmp_path / "x")
    solver = ["export", "loop_inverse_dynamics", FOUR_BAR, folder, "--form", "c"]
    assert main([*solver, "--option", "active=motar"]) == 1
    assert "'motar'" in capsys.readouterr().err
    inputs = ["export", "rnea", "arm7", folder, "--form", "c", "--option"]
    assert main([*inputs, "inputs=f_ext,link4.mass"]) == 0
    assert "link4_mass[1]" in capsys.readouterr().out


@pytest.mark.parametrize(
    "typed",
    [
        "computed_torque wrap=joint1", "computed_torque_cycle wrap=joint1",
        "hybrid prescribed=joint1", "parameter_jacobian paths=link2.mass",
    ],
)  # fmt: skip
def test_one_name_is_a_list_of_one_where_a_list_is_wanted(typed, tmp_path, capsys):
    """No comma or bracket is needed to name one joint, in a solver or a controller."""
    solver, option = typed.split()
    robot = tmp_path / "endless.urdf"  # its first joint can be wrapped
    text = dyn.robots.path("arm7").read_text().replace("revolute", "continuous", 1)
    robot.write_text(text)
    command = ["export", solver, str(robot), str(tmp_path / "x"), "--form", "c"]
    assert main([*command, "--option", option]) == 0, capsys.readouterr().err


def test_a_file_in_place_of_the_folder_is_named(tmp_path, capsys):
    """Robot and folder are easily swapped; the file stays as it is."""
    file = tmp_path / "mine.urdf"
    file.write_text("<robot/>")
    assert main(["export", "rnea", "two_link", str(file)]) == 1
    assert "mine.urdf is a file; valid: a folder" in capsys.readouterr().err
    assert file.read_text() == "<robot/>"


def test_an_export_says_with_which_options_it_was_built(tmp_path):
    """Header, README and manifest tell exports of one solver and robot apart."""
    result = build("hybrid", "two_link", prescribed=["joint1"]).export(tmp_path)
    said, prefix = "prescribed=['joint1'], finite=True", result.interface.prefix
    for name, listed in ((".h", said), ("_README.md", f"`{said}`")):
        text = (tmp_path / f"{prefix}{name}").read_text("utf-8")
        assert f"Options: {listed}.\n" in text
    facts = json.loads((tmp_path / f"{prefix}.json").read_text("utf-8"))
    assert facts["interface"]["options"] == said
    plain = build("rnea", "two_link").export(tmp_path / "rnea", checked=False)
    assert plain.interface.numbered == {}
    assert plain.interface.options == "none"


def test_a_cycle_has_its_statuses_and_faults_beside_it(tmp_path):
    """README and manifest have a word for each number of a report."""
    arm = dyn.load("two_link")
    result = control_cycle("computed_torque_cycle", arm).export(tmp_path)
    names = fault_names(arm)
    prefix = result.interface.prefix
    text = (tmp_path / f"{prefix}_README.md").read_text("utf-8")
    assert "\nEach report status: 0 drives, 1 waits, " in text
    assert f"\nEach report fault: 1 {names[0]}, 2 {names[1]}, " in text
    assert f", {len(names)} {names[-1]}.\n" in text
    header = (tmp_path / f"{prefix}.h").read_text("utf-8")
    assert " * Each report status: 0 drives, 1 waits, " in header
    assert "answers inputs with NaN or" in header and "Inputs are not" not in header
    facts = json.loads((tmp_path / f"{prefix}.json").read_text("utf-8"))
    numbered = facts["interface"]["numbered"]
    assert numbered["report status"]["6"] == "stopped"
    assert list(numbered["report fault"].values()) == list(names)


@pytest.mark.full
@pytest.mark.parametrize(
    ("solver", "robot"), [("rnea", "two_link"), ("aba", "cart_pole")]
)
def test_deviations_from_misra_stand_on_the_page(solver, robot, tmp_path):
    """What cppcheck reports of C source is a row of docs/export.md, with its reason."""
    (cppcheck,) = need("cppcheck")
    result = build(solver, robot).export(tmp_path, form="c")
    (source,) = [x for x in result.files if x.endswith(".c") and "check" not in x]
    command = cppcheck, "--addon=misra", "-q", "--template={id}", source
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    rules = set(re.findall(r"misra-c2012-([0-9.]+)", done.stderr))
    page = (ROOT / "docs/export.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([0-9]+\.[0-9]+) \|", page, re.MULTILINE)
    assert "10.3" in rules, done.stderr
    assert rules <= set(rows)
