"""Exports for this machine: the bits of Python, no symbol from elsewhere, small code."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from emulate import CASES, build, check_natively, every_operation, made, need, sh

import dyn_core as dyn
from dyn_core import cli
from dyn_core.commands.export import summary
from dyn_core.engines.llvm import host_machine
from dyn_core.errors import CompileError, SettingError, UnsupportedError
from dyn_core.export import export
from dyn_core.export.interface import interface_of
from dyn_core.export.object_code.linker import c_compiler
from dyn_core.export.object_code.object_files import compile_object
from dyn_core.export.targets import TARGETS, target_of
from dyn_core.numbers.operations import OPERATIONS

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=f"no machine code: {host_machine.missing()}"
)


def _operations(graph):
    """Return the operations of a Graph, those inside loops too."""
    names = set()
    for node in graph.nodes:
        names.add(node.op)
        if node.op == "loop":
            names |= _operations(node.data.body) | _operations(node.data.cond)
    return names


def test_a_target_without_float64_says_the_option_of_the_command(tmp_path, capsys):
    where = str(tmp_path / "out")
    line = ["export", "rnea", "two_link", where, "--target", "cortex-m4f"]
    assert cli.main(line) == 1
    assert (
        "valid: build(..., dtype='float32'), --dtype float32" in capsys.readouterr().err
    )


@pytest.mark.parametrize("solver", ["rnea", "computed_torque_cycle"])
def test_source_for_a_target_without_float64_says_that_it_is_slow(
    solver, tmp_path, capsys
):
    """C source may have it, and a whole controller must: a warning, and the README."""
    line = ["export", solver, "two_link", str(tmp_path / "a"), "--form", "c"]
    whole = solver.endswith("cycle")
    assert cli.main([*line, "--target", "cortex-m4f"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "cortex-m4f has no float64 in hardware" in said
    assert ("--dtype float32" in said) != whole
    (page,) = (tmp_path / "a").glob("*_README.md")
    assert "has no float64 in hardware" in page.read_text()
    if not whole:
        line[3] = str(tmp_path / "b")
        line += ["--dtype", "float32"]
        assert cli.main([*line, "--target", "cortex-m4f"]) == 0
        assert capsys.readouterr().err == ""
    assert cli.main([*line, "--target", "cortex-m7"]) == 0
    assert capsys.readouterr().err == ""


def test_a_list_of_one_link_is_an_option_of_the_command(tmp_path, capsys):
    line = ["export", "forward_kinematics", "two_link", str(tmp_path / "out")]
    assert cli.main([*line, "--form", "c", "--option", "frames=link2"]) == 1
    assert "valid: a list, such as [tool0], or None" in capsys.readouterr().err
    assert cli.main([*line, "--form", "c", "--option", "frames=[link2]"]) == 0


def test_the_cases_have_every_operation():
    """Every operation of a Graph is in one of the Programs that are compared."""
    programs = [build(*case[:2], **case[2]) for case in CASES]
    names = set().union(*(_operations(p.graph) for p in [*programs, every_operation()]))
    rolled = {"loop", "product", "item", "const", "input"}
    assert names == set(OPERATIONS) | rolled


@pytest.mark.one_of(2)
@pytest.mark.parametrize("solver, robot, options", CASES)
def test_c_has_the_bits_of_python(tmp_path, solver, robot, options):
    """One state and rows, called from C, have the bits of Python, statuses too."""
    need("cc")
    result = made(build(solver, robot, **options), tmp_path, variant="batch")
    assert result.undefined == ()
    assert check_natively(result).startswith("equal bits")


@pytest.mark.turns("dtype")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("solver", ["fd_derivatives", "mass_matrix_inverse"])
def test_what_scratch_memory_holds_does_not_matter(tmp_path, solver, dtype):
    """Matrices with zeros of the tree: check programs fill scratch memory with NaN."""
    need("cc")
    program = build(solver, "quadruped", dtype=dtype)
    result = made(program, tmp_path, variant="batch")
    assert check_natively(result).startswith("equal bits")


def test_operations_of_no_solver(tmp_path):
    """exp, log, floor and the others that few solvers use."""
    need("cc")
    result = made(every_operation(), tmp_path, variant="batch")
    assert result.undefined == ()
    assert check_natively(result).startswith("equal bits")


@pytest.mark.parametrize("choice", [{"dtype": "float32"}, {"finite": True}])
def test_choices_of_build(tmp_path, choice):
    """Programs of float32, and those that check for NaN."""
    need("cc")
    program = build("aba", "every_joint", **choice)
    result = made(program, tmp_path, variant="batch")
    assert check_natively(result).startswith("equal bits")


@pytest.mark.parametrize("target", ["x86-64", "x86-64-v2", "x86-64-v3"])
def test_other_processors_of_this_kind(tmp_path, target):
    """Without fused multiply-add the bits are the same, too."""
    need("cc")
    if "x86_64" not in target_of("host").triple:
        pytest.skip("this machine is no x86")
    result = made(build("aba", "arm7"), tmp_path, target=target, variant="batch")
    assert result.undefined == ()
    assert check_natively(result).startswith("equal bits")


def test_unfused_multiply_adds_differ_by_few_ulp(tmp_path):
    """multiply_add="unfused": the check program says by how much results differ."""
    need("cc")
    if "x86_64" not in target_of("host").triple:
        pytest.skip("this machine is no x86")
    program = build("rnea", "arm7")
    options = {"target": "x86-64-v2", "multiply_add": "unfused"}
    said = check_natively(made(program, tmp_path, **options))
    count = int(said.split("by at most ")[1].split()[0])
    assert 0 < count <= 16, said


def test_clang_links_it(tmp_path):
    """Another compiler than GCC."""
    need("clang")
    result = made(build("rnea", "arm7"), tmp_path)
    assert check_natively(result, "clang").startswith("equal bits")


def test_the_header_breaks_no_name_at_its_hyphen(tmp_path):
    """A name on two lines is found by no search, and reads as two entries."""
    urdf = Path(dyn.robots.path("arm7")).read_text()
    for k in range(1, 8):
        urdf = urdf.replace(f'"joint{k}"', f'"joint-of-the-left-arm-no-{k}"')
    program = dyn.solver("aba").build(dyn.load_urdf(urdf))
    program.export(tmp_path, name="a")
    text = (tmp_path / "a.h").read_text()
    assert all(f"joint-of-the-left-arm-no-{k}" in text for k in range(1, 8))


def test_the_readme_of_a_wasm_object_has_no_command_for_another_file(tmp_path):
    """wasm-ld links main.o, which the check program does not become there."""
    build("rnea", "two_link").export(tmp_path, target="wasm32", name="w")
    text = (tmp_path / "w_README.md").read_text()
    assert "wasm-ld" not in text and "w_test.json" in text


def test_the_readme_of_c_source_has_the_compiler_of_its_target(tmp_path):
    """It was `cc` and a flag of x86 for a Cortex-M, too."""
    program = dyn.solver("gravity").build(dyn.load("two_link"), dtype="float32")
    commands = {
        "cortex-m4f": "arm-none-eabi-gcc -mcpu=cortex-m4 .* w_check.c w.c -lm",
        "aarch64": "aarch64-linux-gnu-gcc w_check.c w.c -lm",
        "wasm32": "`cc w_check.c w.c -lm",
        "host": "`cc w_check.c w.c -lm",
    }
    for target, command in commands.items():
        program.export(tmp_path / target, target=target, form="c", name="w")
        text = (tmp_path / target / "w_README.md").read_text()
        assert re.search(command, text), target
        assert ("-mfma" in text) == (target == "host")
        arm = target == "cortex-m4f"  # nothing links there without a C library
        assert ("--specs=nosys.specs" in text) == ("libnewlib" in text) == arm


def test_what_the_command_prints_says_what_c_source_needs(tmp_path):
    """It said that nothing is needed from elsewhere, and the source includes math.h."""
    program = dyn.solver("gravity").build(dyn.load("two_link"), dtype="float32")
    result = program.export(tmp_path, target="cortex-m4f", form="c", name="w")
    lines = summary(result)
    assert "  needs   math.h and libm (-lm) from elsewhere" in lines
    assert lines[-1] == "next: w_README.md has the command that compiles it"


@pytest.mark.parametrize(
    ("name", "said"),
    [("stm32f4", "called 'stm32f4'; a Cortex-M4 is --target cortex-m4f --dtype float32;"),
     ("STM32H7", "a Cortex-M7 is --target cortex-m7;"), ("arm64", "did you mean 'aarch64'?"),
     ("esp32", "--form c is C99 source for any compiler;")],
)  # fmt: skip
def test_a_board_leads_to_the_target_of_its_processor(name, said):
    """The nearest spelling of stm32f4 was wasm32."""
    with pytest.raises(dyn.UnsupportedError, match=re.escape(said)):
        target_of(name)


def test_an_option_of_a_build_is_none_of_an_export(tmp_path):
    """It was Python's TypeError."""
    with pytest.raises(dyn.SettingError, match="'dtype'.* valid for export: program"):
        build("rnea", "two_link").export(tmp_path, dtype="float32")


def test_the_header_says_units_joints_and_how_to_call(tmp_path):
    """Units of this robot, which entry is which joint; its lines of use compile."""
    for name in ("arm7", "every_joint"):
        made(build("aba", name), tmp_path)
    arm = (tmp_path / "aba_arm7.h").read_text()
    assert "*   q[7] [rad]: " in arm and "*   tau[7] [N.m]: " in arm
    assert "Entries of q, qd and of vectors like them: 0 joint1, 1 joint2" in arm
    other = (tmp_path / "aba_every_joint.h").read_text()
    assert "*   tau[17] [N.m | N]: " in other
    assert "7 slide [m]," in other and "7 slide [m/s]," in other
    assert max(map(len, (arm + other).splitlines())) <= 90
    need("cc")
    lines = arm[arm.index("Use, in C99, C11 and C++:") :].split(" *\n")[1].splitlines()
    use = "\n".join(line.removeprefix(" *") for line in lines)
    (tmp_path / "main.c").write_text(
        '#include "aba_arm7.h"\n#include <stdio.h>\nint main(void) {\n'
        "double q[ABA_ARM7_NQ] = {0}, qd[ABA_ARM7_NV] = {0}, tau[7] = {0}, qdd[7];\n"
        f'{use}\nprintf("%d %a", (int)status, qdd[ABA_ARM7_V_joint2]);\n}}\n'
    )
    for standard in ("c99", "c11"):
        sh("cc", f"-std={standard}", "main.c", "aba_arm7.o", "-o", "main", cwd=tmp_path)
    zero = np.zeros(7)
    status, value = sh(tmp_path / "main").split()
    assert status == "0"
    assert float.fromhex(value) == build("aba", "arm7")(zero, zero, zero)[1]


def test_the_header_is_good_in_cpp(tmp_path):
    """A C++ compiler with all warnings takes the header, and calls by name."""
    need("g++")
    made(build("rnea", "arm7", finite=True), tmp_path, variant="batch")
    (tmp_path / "main.cpp").write_text(
        '#include "rnea_arm7.h"\n#include <cstdio>\n'
        "int main() {\n"
        "  double q[RNEA_ARM7_NQ] = {}, v[RNEA_ARM7_NV] = {}, tau[RNEA_ARM7_NV];\n"
        "  alignas(64) static char memory[RNEA_ARM7_SCRATCH];\n"
        "  auto status = rnea_arm7_call(q, v, v, tau, memory);\n"
        '  std::printf("%d %s %d ", (int)status, rnea_arm7_message(status),\n'
        "              (int)rnea_arm7_interface.n_inputs);\n"
        "  q[RNEA_ARM7_Q_joint2] = 0.0 / tau[0];\n"
        "  q[0] /= 0.0;\n"
        "  status = rnea_arm7_call(q, v, v, tau, memory);\n"
        '  std::printf("%d %d", (int)status, tau[3] != tau[3]);\n}\n'
    )
    strict = ("-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
    sh("g++", *strict, "main.cpp", "rnea_arm7.o", "-o", "main", cwd=tmp_path)
    assert sh(tmp_path / "main") == "0 no error 3 -1 1"


@pytest.mark.parametrize("standard", ["gnu++11", "c++17"])
def test_c_source_is_good_in_cpp(standard, tmp_path):
    """A C++ compiler takes a file .c as C++: `g++ main.cpp rnea_arm7.c`."""
    need("g++")
    made(build("rnea", "arm7", finite=True), tmp_path, form="c", variant="batch")
    strict = (f"-std={standard}", "-Wall", "-Wextra", "-Werror")
    files = ("rnea_arm7_check.c", "rnea_arm7.c")
    sh("g++", *strict, *files, "-o", "main", cwd=tmp_path)
    assert sh(tmp_path / "main").startswith("equal bits")


def test_a_header_of_another_robot_is_named(tmp_path):
    """It compiled beside newer code, and only numbers differed."""
    need("gcc")
    made(build("rnea", "arm7"), tmp_path, form="c")
    file = tmp_path / "rnea_arm7.h"
    pattern = r'(RNEA_ARM7_MODEL_HASH) "\w+"'
    changed = re.sub(pattern, r'\1 "0123456789abcdef"', file.read_text())
    assert changed != file.read_text()
    file.write_text(changed)
    sh("gcc", "rnea_arm7_check.c", "rnea_arm7.c", "-o", "main", cwd=tmp_path)
    run = subprocess.run([tmp_path / "main"], capture_output=True, text=True)
    assert run.returncode == 1
    said = "rnea_arm7.h is not the header of this code: model hash 0123456789abcdef, of"
    assert run.stdout.startswith(said)


@pytest.mark.one_of(2)
@pytest.mark.turns("exact")
@pytest.mark.parametrize("target", sorted(set(TARGETS) - {"cortex-m4f"}))
@pytest.mark.parametrize("exact", [True, False])
def test_no_target_needs_symbols_from_elsewhere(target, exact):
    """No libm, no memset, no tables for unwinding."""
    for program in (build("fd_derivatives", "arm7"), every_operation()):
        interface = interface_of(program)
        result = compile_object(program, interface, target_of(target), True, exact)
        assert result.undefined == ()
        assert result.code > 1000


def test_sizes():
    """Code of arm7: inverse dynamics in 6 KB, forward dynamics in 12 KB."""
    code = {}
    for solver in ("rnea", "aba"):
        program = build(solver, "arm7")
        target = TARGETS["x86-64-v3"]
        code[solver] = compile_object(program, interface_of(program), target).code
    assert code["rnea"] <= 6 * 1024
    assert code["aba"] <= 12 * 1024


@pytest.mark.one_of(2)
@pytest.mark.parametrize("flags", [["-O2", "-mfma"], ["-O2"]], ids=["fma", "none"])
@pytest.mark.parametrize(
    "solver, robot", [("aba", "every_joint"), ("rk4", "every_joint"), ("", "")]
)
def test_c_source_has_the_bits_of_python(tmp_path, solver, robot, flags):
    """form="c": one state, rows, and the table, with the instruction and without."""
    need("cc")
    if "x86_64" not in target_of("host").triple:
        flags = ["-O2"]
    program = build(solver, robot) if solver else every_operation()
    result = made(program, tmp_path, form="c", variant="batch")
    assert check_natively(result, flags=flags).startswith("equal bits")


def test_c_source_has_the_table(tmp_path):
    """A program reads the table of C source as that of an object."""
    need("cc")
    for form, library in (("c", "-lm"), ("object", "-lm")):
        folder = tmp_path / form
        result = made(build("aba", "every_joint"), folder, form=form)
        (folder / "main.c").write_text(
            '#include "aba_every_joint.h"\n#include <stdio.h>\n'
            "#define T aba_every_joint_interface\n"
            "int main(void) {\n"
            '  printf("%s %s %s ", T.solver, T.kernel_hash, T.statuses[0]);\n'
            '  printf("%d %s %d ", (int)T.abi, T.inputs[2].unit, (int)T.outputs->size);\n'
            '  printf("%s %s %d", T.positions[5], T.bodies[9], T.batch == 0);\n'
            "  return T.run != (dyn_run)aba_every_joint;\n}\n"
        )
        sh("cc", "main.c", result.binary, library, "-o", "main", cwd=folder)
        x = result.interface
        assert sh(folder / "main") == (
            f"aba {x.kernel_hash} {x.statuses[0]} 1 N·m | N 17 sheet.1 flight 1"
        )


def test_wrong_names_are_refused(tmp_path):
    """Targets, variants, forms, names of functions, numbers: what is valid is listed."""
    program = build("rnea", "arm7")
    for options, valid in (
        ({"target": "m7"}, "cortex-m7"),
        ({"variant": "rows"}, "scalar, batch"),
        ({"form": "dll"}, "object, shared, c"),
        ({"multiply_add": "fast"}, "exact, unfused"),
        ({"name": "a-b"}, "such as 'rnea_arm7'"),
        ({"name": "double"}, "such as 'rnea_arm7'"),
        ({"name": "tau"}, "such as 'rnea_arm7'"),
        ({"name": "scalar"}, "such as 'rnea_arm7'"),
        ({"target": "cortex-m4f"}, "dtype='float32'"),
        ({"target": "cortex-m7", "form": "shared"}, "form='object'"),
        ({"checked": "no"}, "true or false"),
    ):
        with pytest.raises(UnsupportedError, match="valid") as refused:
            program.export(tmp_path, **options)
        assert valid in str(refused.value)
    with pytest.raises(UnsupportedError, match="engine 'graph'"):
        build("rnea", "arm7", engine="graph").export(tmp_path)
    for wrong in (5, dyn.solver("rnea"), "rnea"):
        with pytest.raises(UnsupportedError, match="valid: a Program"):
            export(wrong, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_compiler_is_named(tmp_path, monkeypatch):
    """form="shared" says which program is missing."""
    monkeypatch.setenv("CC", "no_such_cc")
    with pytest.raises(CompileError, match="no 'no_such_cc'.*form='object'"):
        build("rnea", "arm7").export(tmp_path, form="shared")


def test_foreign_files_stay(tmp_path):
    """An export replaces its own files, and none that someone wrote or changed."""
    program = build("rnea", "arm7")
    program.export(tmp_path)
    result = program.export(tmp_path, variant="batch")
    names = {file.name for file in tmp_path.iterdir()}
    assert names == set(result.files)
    header = tmp_path / "rnea_arm7.h"
    header.write_text("mine")
    with pytest.raises(SettingError, match="changed since"):
        program.export(tmp_path)
    assert header.read_text() == "mine"
    (tmp_path / "other.o").write_text("mine")
    with pytest.raises(SettingError, match="is no export"):
        program.export(tmp_path, name="other")
    assert not (tmp_path / "other.h").exists()


def test_any_name_does(tmp_path):
    """Names of functions inside are no names that a user must know."""
    need("cc")
    program = build("aba", "two_link", finite=True)  # it has functions of these names
    for name in ("settle", "gather", "sin", "clear", "block", "sincos_1"):
        result = made(program, tmp_path / name, name=name, variant="batch")
        assert check_natively(result, flags=["-fno-builtin"]).startswith("equal bits")


def test_another_form_takes_the_place(tmp_path):
    """The library of an earlier export does not stay behind the object of the next."""
    need("cc")
    program = build("rnea", "arm7")
    program.export(tmp_path, form="shared")
    program.export(tmp_path)
    assert not (tmp_path / "librnea_arm7.so").exists()


def test_cmake_and_pkg_config_find_it(tmp_path):
    """A project of three lines, for both forms; the flags of pkg-config."""
    need("cmake", "cc", "pkg-config")
    for form in ("object", "shared"):
        home = tmp_path / form
        build("rnea", "arm7").export(home / "rnea", form=form)
        (home / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.16)\nproject(check C)\n"
            "find_package(rnea_arm7 CONFIG REQUIRED PATHS ${CMAKE_SOURCE_DIR}/rnea)\n"
            "add_executable(check rnea/rnea_arm7_check.c)\n"
            "target_link_libraries(check PRIVATE rnea_arm7::rnea_arm7)\n"
        )
        sh("cmake", "-S", home, "-B", home / "build")
        sh("cmake", "--build", home / "build")
        assert sh(home / "build" / "check").startswith("equal bits")
        flags = subprocess.run(
            ["pkg-config", "--cflags", "--libs", str(home / "rnea" / "rnea_arm7.pc")],
            capture_output=True, text=True, check=True,
        ).stdout.split()  # fmt: skip
        image, library = home / "image", home / "rnea"
        source = library / "rnea_arm7_check.c"
        sh("cc", source, *flags, f"-Wl,-rpath,{library}", "-o", image)
        assert sh(image).startswith("equal bits")


def test_c_source_gets_the_multiply_add_of_the_machine(tmp_path):
    """By CMake without a flag of the user, with the same bits; the README names it."""
    need("cmake", "cc")
    build("rnea", "arm7").export(tmp_path / "rnea", form="c")
    assert "-O2 -mfma" in (tmp_path / "rnea" / "rnea_arm7_README.md").read_text()
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(check C)\n"
        "set(CMAKE_EXPORT_COMPILE_COMMANDS ON)\n"
        "find_package(rnea_arm7 CONFIG REQUIRED PATHS ${CMAKE_SOURCE_DIR}/rnea)\n"
        "add_executable(check rnea/rnea_arm7_check.c)\n"
        "target_link_libraries(check PRIVATE rnea_arm7::rnea_arm7 m)\n"
    )
    sh("cmake", "-S", tmp_path, "-B", tmp_path / "build")
    sh("cmake", "--build", tmp_path / "build")
    assert sh(tmp_path / "build" / "check").startswith("equal bits")
    flags = (tmp_path / "build" / "compile_commands.json").read_text().count("-mfma")
    processor = Path("/proc/cpuinfo")
    if processor.exists():  # in the export alone: other sources keep their bits
        assert flags == int(" fma " in processor.read_text())


def test_the_compiler_is_that_of_cc(monkeypatch):
    """CC may have options, spaces in quotes, or be set to nothing."""
    for value, wanted in (
        ("", ["cc"]),
        ("ccache gcc -m64", ["ccache", "gcc", "-m64"]),
        ("'/opt/my tools/cc'", ["/opt/my tools/cc"]),
    ):
        monkeypatch.setenv("CC", value)
        assert c_compiler() == wanted
    monkeypatch.delenv("CC")
    assert c_compiler() == ["cc"]


def test_the_command(tmp_path):
    """dyn export SOLVER ROBOT FOLDER."""
    from dyn_core import cli

    assert (
        cli.main(["export", "rnea", "arm7", str(tmp_path), "--variant", "batch"]) == 0
    )
    assert (tmp_path / "rnea_arm7.o").exists()
    header = (tmp_path / "rnea_arm7.h").read_text()
    assert "an input is NaN or infinite" in header  # checked unless one says no
    other = str(tmp_path / "unchecked")
    assert cli.main(["export", "rnea", "arm7", other, "--unchecked"]) == 0
    header = Path(other, "rnea_arm7.h").read_text()
    assert "an input is NaN or infinite" not in header
    assert cli.main(["export", "rnea", "arm7", other, "--target", "sm_90"]) == 0
    assert ".target sm_90" in Path(other, "rnea.ptx").read_text()
    assert cli.main(["export", "rnea", "arm7", str(tmp_path), "--target", "m7"]) == 1
