"""The C++ examples: compiled, run, and compared with Python bit for bit."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.export import export
from dyn_core.export.c.interface_table import structures
from dyn_core.export.cycle.cycle_steps import REQUESTS, STATUS

ROOT = Path(__file__).parents[2]
CPP = ROOT / "examples" / "cpp"
COMPILER = shutil.which("g++") or shutil.which("c++")
needs_compiler = pytest.mark.skipif(
    COMPILER is None or shutil.which("cc") is None, reason="no C and C++ compiler"
)
FLAGS = "-std=c++17 -O1 -Wall -Wextra -Wpedantic -Werror -ffp-contract=off".split()
PERIOD, DURATION, CYCLES = 1e-4, 1.0, 20000
# `tests FOLDER NAME DIGEST INPUT SIZE` loads a kernel, `tests FOLDER NAME` runs a cycle,
# `tests FOLDER NAME KP KD` sets gains of joint 3.
TESTS = """
#include <cstdio>
#include <cstdlib>
#include "dyn_controller.hpp"
static int load(char **argv) try {
    dyn::Kernel step(argv[1], argv[2], argv[3]);
    double x[8] = {};
    step.input(argv[4], x, std::size_t(argv[5][0] - '0'));
    step.check();
    return 0;
} catch (const dyn::Error &error) { return std::puts(error.what()), 3; }
static int set(char **argv) {
    dyn::Controller controller(argv[1], argv[2]);
    const double q[7] = {}, far[7] = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1};
    double kp[7] = {}, kd[7] = {};
    kp[2] = std::atof(argv[3]), kd[2] = std::atof(argv[4]);
    controller.gains(400.0, 40.0);
    for (int all = 0; all < 2; all++) try {
        if (all) controller.gains(kp[2], kd[2]);
        else controller.gains(kp, kd);
        std::puts("taken");
    } catch (const dyn::Error &error) { std::puts(error.what()); }
    const double *tau = nullptr;
    for (int k = 0; k < 20; k++) tau = controller.update(1e-3 * k, q, q, {far});
    std::printf("%.17g", tau[6]);
    return std::puts(""), 0;
}
int main(int argc, char **argv) {
    if (argc > 5) return load(argv);
    if (argc > 3) return set(argv);
    dyn::Controller controller(argv[1], argv[2]);
    controller.gains(400.0, 40.0);
    const double q[7] = {0.1, -0.6, 0.2, -2.0, 0.3, 1.5, 0.4};
    const double qd[7] = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1};
    const double *tau = nullptr;
    const auto print = [&] {
        std::printf("%d", int(controller.drives()));
        for (int k = 0; k < 7; k++) std::printf(" %.17g", tau[k]);
        std::puts("");
    };
    for (int k = 0; k < 20; k++) tau = controller.update(1e-3 * k, q, qd);
    print();
    const double far[7] = {0.2, -0.7, 0.3, -2.1, 0.4, 1.6, 0.5};  // references to forget
    for (int k = 20; k < 29; k++) tau = controller.update(1e-3 * k, q, qd, {far});
    print();
    for (int k = 29; k < 49; k++) {  // after a stop
        if (k == 29) controller.request(dyn::Request::zero);
        if (k == 33) controller.request(dyn::Request::reset);
        tau = controller.update(1e-3 * k, q, qd);
    }
    print();
    for (int k = 49; k < 59; k++) tau = controller.update(1e-3 * k, q, qd, {far});
    for (int k = 450; k < 470; k++) tau = controller.update(1e-3 * k, q, qd);  // silence
    print();
    for (int k = 470; k < 480; k++) tau = controller.update(1e-3 * k, q, qd, {q, far, far});
    for (int k = 480; k < 700; k++) tau = controller.update(1e-3 * k, q, qd);  // it ends
    print();
}
"""


def _documented():
    """Return the blocks of docs/cpp.md by names of programs."""
    page = (ROOT / "docs" / "cpp.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```cpp\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return {f"documented_{k}": block for k, block in enumerate(blocks)}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the exported kernels and of the compiled programs."""
    spec = importlib.util.spec_from_file_location("kernels", CPP / "export_kernels.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("cpp")
    programs = {}
    for program in module.programs():
        export(program, folder, form="shared")
        programs[program.recipe.solver.name] = program
    more = {"tests": TESTS, **_documented()}
    for name, program in more.items():
        (folder / f"{name}.cpp").write_text(program, encoding="utf-8")
    sources = {"arm": CPP, "measure": CPP} | dict.fromkeys(more, folder)
    for name, place in sources.items():
        source = str(place / f"{name}.cpp")
        target = ["-I", str(CPP), "-o", str(folder / name), source, "-ldl"]
        subprocess.run([COMPILER, *FLAGS, *target], check=True)
    return folder, programs


def _run(folder, name, *arguments, code=0):
    done = subprocess.run(
        [str(folder / name), *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def _in_python(programs, cycles):
    """Return the torques of joint 2 that the C++ program prints, and its error.

    Those of so many cycles; the first second of them is the motion.
    """
    cycle, step = programs["computed_torque_cycle"], programs["semi_implicit_euler"]
    text = (CPP / "arm.cpp").read_text(encoding="utf-8")
    rows = re.findall(r"double (\w+)\[joints\] = \{(.+?)\}", text)
    numbers = {name: np.array(row.split(","), float) for name, row in rows[:2]}
    start, way = numbers["start"], numbers["way"]
    n = len(start)
    q, qd = start.copy(), np.zeros(n)
    kp, kd = np.full(n, 400.0), np.full(n, 40.0)
    state = np.zeros(cycle.outputs[1].size)
    printed, worst = [], 0.0
    for k in range(cycles):
        t = k * PERIOD
        s = t / DURATION if t < DURATION else 1.0
        a = s * s * s * (10 + s * (6 * s - 15))
        ad = 30 * s * s * (1 + s * (s - 2)) / DURATION
        add = 60 * s * (1 + s * (2 * s - 3)) / (DURATION * DURATION)
        q_ref = start + way * a
        tau, state, _ = cycle(
            q, qd, q_ref, way * ad, way * add, kp, kd, t, 1.0, 0.0, state
        )
        worst = max(worst, np.abs(q_ref - q).max())
        q, qd = step(q, qd, tau, PERIOD)
        if k % 2000 == 1999:
            printed.append(tau[1])
    return printed, worst


@needs_compiler
def test_the_simulated_arm_has_the_bits_of_python(built, full):
    """20,000 cycles of controller and step; it follows its reference.

    Python takes 12,000 without --full: the motion, and some where it rests.
    """
    folder, programs = built
    out = _run(folder, "arm", folder)
    torques = [float.fromhex(x) for x in re.findall(r"tau\[1\] (\S+) N", out)]
    expected, worst = _in_python(programs, CYCLES if full else 12000)
    assert len(torques) == 10
    assert len(expected) == (10 if full else 6)
    assert torques[: len(expected)] == expected
    assert f"largest {worst:.3g} rad" in out
    assert worst < 1e-4
    assert "drives: yes" in out


@needs_compiler
def test_without_a_reference_the_robot_is_carried_where_it_is(built):
    """A position error is zero before the first reference, and after stop and silence.

    Only the motion is braked: a robot may be elsewhere when it drives again. One that
    ends with a velocity leads no further.
    """
    folder, programs = built
    out = _run(folder, "tests", folder, "computed_torque_cycle_arm7")
    first, led, *later = (list(map(float, row.split())) for row in out.splitlines())
    drives, *tau = first
    law = dyn.solver("computed_torque").build(programs["computed_torque_cycle"].model)
    q, n = np.array([0.1, -0.6, 0.2, -2.0, 0.3, 1.5, 0.4]), np.ones(7)
    expected = law(q, 0.1 * n, q, 0 * n, 0 * n, 400 * n, 40 * n)
    assert drives
    np.testing.assert_allclose(tau, expected, rtol=1e-12)
    assert np.abs(np.subtract(led, first)).max() > 1.0
    assert later == [first] * 3


@needs_compiler
def test_the_block_of_the_documentation_runs(built, tmp_path):
    """It compiles without a warning, beside the kernels drives, and has Python's torque."""
    folder, programs = built
    assert len(_documented()) == 1
    (tmp_path / "kernels").symlink_to(folder)
    done = subprocess.run(
        [str(folder / "documented_0")],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    torques = [float(x) for x in done.stdout.split()]
    law = dyn.solver("computed_torque").build(programs["computed_torque_cycle"].model)
    q, zero, ones = np.array([0, 0.3, 0, -1.2, 0, 1, 0]), np.zeros(7), np.ones(7)
    wanted = law(
        q, zero, q + 0.1 * (np.arange(7) == 6), zero, zero, 400 * ones, 40 * ones
    )
    assert len(torques) == 100
    np.testing.assert_allclose(torques[-1], wanted[6], rtol=1e-12)


@needs_compiler
def test_the_impedance_cycle_takes_its_gains(built):
    """Stiffness and damping come where the other laws have gains before the inertia."""
    folder, programs = built
    out = _run(folder, "tests", folder, "joint_impedance_cycle_arm7")
    drives, *tau = map(float, out.splitlines()[0].split())
    model = programs["joint_impedance_cycle"].model
    law = dyn.solver("joint_impedance").build(
        model, joint_friction=True, joint_springs=True
    )
    q = np.array([0.1, -0.6, 0.2, -2.0, 0.3, 1.5, 0.4])
    zero, ones = np.zeros(7), np.ones(7)
    wanted = law(q, 0.1 * ones, q, zero, zero, 400.0 * ones, 40.0 * ones)
    assert drives == 1
    np.testing.assert_allclose(tau, wanted, rtol=1e-12)


@needs_compiler
@pytest.mark.parametrize(
    ("cycle", "name", "gains", "fault"),
    [
        ("computed_torque_cycle_arm7", "kp", (-400, 40), "-400"),
        ("computed_torque_cycle_arm7", "kd", (400, -1e-9), "-1e-09"),
        ("computed_torque_cycle_arm7", "kp", ("nan", 40), "nan"),
        ("joint_impedance_cycle_arm7", "damping", (400, "inf"), "inf"),
    ],
)
def test_wrong_gains_are_refused_and_those_before_stay(
    built, cycle, name, gains, fault
):
    """A negative gain drives away from the reference: in words, for one and for all."""
    folder, _ = built
    one, every, tau = _run(folder, "tests", folder, cycle, *gains).splitlines()
    assert one == f"{name} of joint joint3 is {fault}; valid: finite, 0 or more"
    assert every == one.replace("joint3", "joint1")
    *taken, valid = _run(folder, "tests", folder, cycle, 400, 40).splitlines()
    assert taken == ["taken"] * 2
    assert tau == valid


@needs_compiler
def test_a_cycle_allocates_nothing(built):
    """Counted in the loop; times are printed with a histogram."""
    out = _run(built[0], "measure", built[0], 20000)
    assert re.findall(r"(\d+) allocations", out) == ["0"] * 3
    assert re.findall(r"(\d+) of 20000 cycles drive", out) == ["19999"] * 3  # one waits
    shares = [float(x) for x in re.findall(r"us: ([\d.]+)%", out)]
    assert 225 < sum(shares) < 300.1
    assert all(float(x) < 50 for x in re.findall(r"p50 ([\d.]+) us", out))


@needs_compiler
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("no_such", "", "q", 7), "libno_such.so"),
        (("semi_implicit_euler_arm7", "0" * 16, "q", 7), "valid: " + "0" * 16),
        (("semi_implicit_euler_arm7", "", "q", 6), "q has 7 numbers, not 6"),
        (("semi_implicit_euler_arm7", "", "p", 7), "valid: q, qd, tau, dt"),
        (("semi_implicit_euler_arm7", "", "q", 7), "input qd of .* is not bound"),
    ],
)
def test_what_does_not_fit_is_refused(built, arguments, expected):
    """In words, before anything runs."""
    folder, _ = built
    assert re.search(expected, _run(folder, "tests", folder, *arguments, code=3))


@needs_compiler
@pytest.mark.skipif(sys.platform != "linux", reason="patches an ELF header")
def test_a_library_that_cannot_be_loaded_is_explained(built, tmp_path):
    """One of another processor is there all the same; source is no library."""
    folder, _ = built
    name = "semi_implicit_euler_arm7"
    library = bytearray((folder / f"lib{name}.so").read_bytes())
    library[18:20] = (243).to_bytes(2, sys.byteorder)  # e_machine: RISC-V
    (tmp_path / f"lib{name}.so").write_bytes(library)
    out = _run(folder, "tests", tmp_path, name, "", "q", 7, code=3)
    assert "is there, but not for this machine; valid: dyn export" in out
    assert "No such file" not in out
    source = tmp_path / "source"
    source.mkdir()
    (source / f"{name}.c").touch()
    out = _run(folder, "tests", source, name, "", "q", 7, code=3)
    assert f"{source} has no lib{name}.so; valid: dyn export" in out
    assert "--form shared" in out


@needs_compiler
def test_another_interface_is_refused(built, tmp_path):
    """Libraries of another version, without a table, or of float32."""
    folder, programs = built
    tables = {
        "other": "2, 0, 0, 0, 0, 0, 0, 0, 8",
        "single": "1, 0, 0, 0, 0, 0, 0, 0, 4",
    }
    source, made = tmp_path / "tables.cpp", tmp_path / "tables.so"
    text = '#include "dyn_kernel.hpp"\n'
    for name, body in tables.items():
        what = f"const dyn_interface {name}_interface"
        text += f'extern "C" {{ extern {what}; {what} = {{{body}}}; }}\n'
    source.write_text(text, encoding="utf-8")
    flags = ["-std=c++17", "-shared", "-fPIC", "-I", str(CPP)]
    subprocess.run([COMPILER, *flags, "-o", str(made), str(source)], check=True)
    for name, expected in (
        ("other", "has interface 2; valid: 1"),
        ("single", "computes with float"),
        ("bare", "has no table bare_interface"),
    ):
        shutil.copy(made, tmp_path / f"lib{name}.so")
        out = _run(folder, "tests", tmp_path, name, "", "q", 7, code=3)
        assert expected in out


@needs_compiler
@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
@pytest.mark.full
def test_the_project_of_cmake_builds(built, tmp_path):
    """The commands of the README."""
    for command in (["-S", str(CPP), "-B"], ["--build"]):
        subprocess.run(["cmake", *command, str(tmp_path)], check=True)
    assert "drives: yes" in _run(tmp_path, "arm", built[0])


def test_the_header_repeats_what_exports_say():
    """Structures of the table, names of status and requests, as in Python."""
    kernel = (CPP / "dyn_kernel.hpp").read_text(encoding="utf-8")
    controller = (CPP / "dyn_controller.hpp").read_text(encoding="utf-8")
    assert structures().strip() in kernel
    assert f"enum class Status {{ {', '.join(STATUS)}, failed }};" in controller
    assert f"enum class Request {{ {', '.join(REQUESTS)} }};" in controller


def test_the_example_is_short():
    """60 lines, and three commands that run it."""
    assert len((CPP / "arm.cpp").read_text(encoding="utf-8").splitlines()) <= 60
    commands = re.search(r"```bash\n(.*?)```", (CPP / "README.md").read_text(), re.S)
    assert len(commands.group(1).strip().splitlines()) == 3
