"""What solvers cost: `dyn explain`, `dyn bench`, and the peers it calls."""

import dataclasses
import json
import os
import select
import subprocess
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dyn_core as dyn
from bench import bench_command as command
from bench import compiling, loading_times, measure, result_memory
from bench.beside import measure_beside, notes
from bench.cases import DT, INPUTS, STATES, named
from bench.contact import (
    contact_batches,
    contact_peers,
    contact_protocols,
    contact_runs,
    contact_scenes,
    contact_tables,
)
from bench.measure import count_flops
from bench.peers import PEERS, Peer, PeerCall, generated, missing
from bench.peers.peer import BodyVelocities, plain_joints
from bench.peers.peer_values import AGREE, COMPARED, difference
from bench.planar import planar_peers
from bench.planar import planar_tables as planar
from dyn_core.cli import main
from dyn_core.commands import timing
from dyn_core.commands.explain import origins
from dyn_core.engines.llvm import host_machine
from dyn_core.planar import ChainState, joint_rates, link_rates
from dyn_core.tasks import planar_task

XACRO = "http://www.ros.org/wiki/xacro"
NATIVE = pytest.mark.skipif(bool(host_machine.missing()), reason=host_machine.missing())


@NATIVE
def test_explain_says_what_a_solver_costs(capsys):
    """Operations by kind, where they arise, the kernels, and their time."""
    assert main(["explain", "aba", "two_link"]) == 0
    said = capsys.readouterr().out
    assert "aba for two_link, 2 dof: " in said and " flops" in said
    assert "required of: joint" in said
    assert "kernel scalar: " in said and "kernel batch: " in said
    assert "%  aba.py: aba" in said and "ns of a core" in said
    assert main(["explain", "rnea", "two_link", "--ir", "batch"]) == 0
    assert "define i64 @batch(" in capsys.readouterr().out
    assert main(["explain", "rnea", "two_link", "--assembly", "scalar"]) == 0
    assert "scalar:" in capsys.readouterr().out
    assert main(["explain", "rnea", "two_link", "--graph"]) == 0
    assert "%0 = input" in capsys.readouterr().out
    assert main(["explain", "jacobian", "two_link", "--frame", "nowhere"]) == 1
    assert "no link is called 'nowhere'" in capsys.readouterr().err


def test_every_operation_has_an_origin(shipped):
    """The shares add up to the Graph that is run, for each line and function."""
    for name, robot in (("rnea", "arm7"), ("aba", "quadruped")):
        program = dyn.solver(name).build(shipped[robot], engine="graph")
        breakdown = origins(program.function, sum(port.size for port in program.inputs))
        kinds = Counter(node.op for node in program.graph.nodes)
        for op, n in breakdown.kinds.items():
            assert kinds[op] == n
        assert breakdown.flops == count_flops(program.graph)
        assert sum(breakdown.lines.values()) == pytest.approx(breakdown.cost)
        assert not [place for place in breakdown.functions if place.startswith("?")]


@NATIVE
def test_bench_prints_a_table(capsys):
    """Figures of each solver, with any peers that are asked for and there."""
    solvers = "rnea,crba,operational_inertia"
    command = ["bench", "--robot", "two_link", "--solvers", solvers, "--peers", ""]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "operational_inertia: no figure: singular" in said  # six directions
    assert "multiply-adds: " in said and "errors [ulp]: sin 0." in said
    assert "two_link: 2 dof, fixed base, two_link.urdf" in said
    rows = {line.split()[0]: line.split() for line in said.splitlines() if line.strip()}
    assert rows["solver"][:3] == ["solver", "ns/call", "M/s"]
    assert float(rows["rnea"][1]) > 0 and float(rows["crba"][2]) > 0
    assert main([*command, "--markdown"]) == 0
    assert "| rnea | " in capsys.readouterr().out
    assert main(["bench", "--solvers", "nothing"]) == 1
    assert "no benchmark of 'nothing'; known: rnea" in capsys.readouterr().err
    assert main(["bench", "--peers", "nobody"]) == 1
    assert "no peer 'nobody'; known: pinocchio" in capsys.readouterr().err


@NATIVE
def test_bench_measures_memory(capsys, monkeypatch):
    """Results that are kept, all cores and float32, of the solvers asked for."""
    monkeypatch.setattr(result_memory, "MANY", 2048)
    monkeypatch.setattr(result_memory, "KEPT", 1 << 20)
    monkeypatch.setattr(result_memory, "REPEATS", 1)
    command = ["bench", "--memory", "--robot", "planar3", "--solvers", "crba,rnea"]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in ("crba", "rnea"):
        cells = next(line for line in lines if line.startswith(name)).split()
        ratios = [float(x.rstrip("x")) for x in cells[1:]]
        assert len(cells) == len(result_memory.HEAD) and min(ratios) > 0.0


def test_bench_measures_loading(capsys, monkeypatch, tmp_path):
    """Robots, also those that need packages and xacro arguments, and what grows."""
    monkeypatch.setattr(loading_times, "SIZES", (4,))
    monkeypatch.setattr(loading_times, "REPEATS", 1)
    assert main(["bench", "--loading", "--robot", "two_link", "--markdown"]) == 0
    said = capsys.readouterr().out
    assert "| two_link | 3 | " in said and "| chain of equal links | 4 | " in said
    for children, bodies in ((1, (0, 0, 1, 2)), (3, (0, 0, 0, 0))):
        model = dyn.load(loading_times.grown(4, children))
        assert model.parent == bodies and not model.warnings
    folder = tmp_path / "arm_pkg"
    folder.mkdir()
    text = loading_times.grown(3).replace("<robot", f'<robot xmlns:xacro="{XACRO}"')
    text = text.replace("<link", '<xacro:arg name="mass" default="1"/><link', 1)
    (folder / "a.urdf.xacro").write_text(text, encoding="utf-8")
    robot = named("package://arm_pkg/a.urdf.xacro", False, (), [str(folder)],
                  {"mass": "2"})  # fmt: skip
    if find_spec("xacro"):
        assert robot.model.nb == 2


@NATIVE
@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("peer", sorted(PEERS))
def test_peers_can_be_called(peer, floating):
    """Each peer's statements run on each kind of base, and its values are ours."""
    if missing(PEERS[peer]):
        pytest.skip(missing(PEERS[peer]))
    robot = named("quadruped" if floating else "arm7", floating)
    if peer == "pin-casadi":
        if floating or not generated.generator_file().exists():
            pytest.skip("takes minutes; `dyn bench` compares its values, too")
        robot = named("planar3", False)
    made = PEERS[peer](robot, STATES)
    assert "rnea" in made.calls
    for call in made.batches.values():
        names = call.names.split(", ")
        exec(
            call.statement,
            {**made.space, **dict(zip(names, call.states[0], strict=True))},
        )
    for name in made.calls:
        ours = _ours(robot, name)
        error = difference(made, name, ours)
        assert (error <= AGREE) == (name not in made.because or not floating), name
        wrong = [x * 1.001 + 0.001 for x in ours]
        if floating and name == "semi_implicit_euler":  # poses remain poses
            wrong[0] = np.array([robot.model.normalize(q) for q in wrong[0]])
        if made.gravity == Peer.gravity:
            assert difference(made, name, wrong) > AGREE, name
        assert not made.lack(name)
    assert made.lack("nothing") == "not offered"


def _ours(robot, name):
    program = dyn.solver(name).build(robot.model, engine="graph", **robot.choices(name))
    inputs = [robot.state[x][:COMPARED] for x in INPUTS[name].split(", ")]
    results = program(*inputs, *[DT] * (len(program.inputs) - len(inputs)))
    return results if isinstance(results, tuple) else (results,)


def test_generated_code_is_compiled_in_the_time_that_there_is(tmp_path, monkeypatch):
    """At a lower level where it takes too long; a compiler is ended with its parts."""
    levels, slow = [], []

    def run(command, limit):
        levels.append(command[1])
        if command[1] in slow:
            raise subprocess.TimeoutExpired(command, limit)
        Path(command[-1]).write_bytes(b"code")

    monkeypatch.setattr(generated, "_run", run)
    monkeypatch.setenv("DYN_CACHE_DIR", str(tmp_path / "cache"))
    source = tmp_path / "f.c"

    def compiled(code):
        source.write_text(code)
        library, level = generated.compiled(source)
        assert library.read_bytes() == b"code"
        return level

    assert [compiled("one"), compiled("one")] == ["-O3", "-O3"]  # the second is kept
    slow.append("-O3")
    assert [compiled("two"), compiled("two"), compiled("one")] == ["-O1", "-O1", "-O3"]
    slow.append("-O1")
    with pytest.raises(subprocess.TimeoutExpired):
        compiled("three")
    assert levels == ["-O3", "-O3", "-O1", "-O3", "-O1"]


@pytest.mark.skipif(bool(missing(PEERS["pin-casadi"])), reason="a package is missing")
def test_a_generator_that_cannot_be_built_is_refused(tmp_path, monkeypatch):
    """The peer then has no figures, and a reason; the next time it is tried again."""
    monkeypatch.setenv("DYN_CACHE_DIR", str(tmp_path / "cache"))
    command = ["false"]
    monkeypatch.setattr(generated, "_command", lambda program: command)
    for _ in range(2):
        with pytest.raises(dyn.UnsupportedError, match="CalledProcessError of false"):
            generated.generator()
    command[:] = ["touch", str(generated.generator_file().with_suffix(".new"))]
    program = generated.generator()
    assert program == generated.generator_file() and program.exists()
    command[:] = ["false"]  # it is kept
    assert generated.generator() == program


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX")
def test_a_compiler_is_ended_with_what_it_started(tmp_path):
    """`cc` starts the compiler proper, which would compile on."""
    os.mkfifo(tmp_path / "line")
    line = os.open(tmp_path / "line", os.O_RDONLY | os.O_NONBLOCK)
    script = f"tail -f /dev/null > {tmp_path}/line & wait"
    with pytest.raises(subprocess.TimeoutExpired):
        generated._run(["sh", "-c", script], 0.5)
    assert select.select([line], [], [], 60.0)[0]  # its writer is gone
    assert os.read(line, 1) == b""
    os.close(line)
    with pytest.raises(subprocess.CalledProcessError):
        generated._run(["sh", "-c", "exit 3"], 60.0)


def test_a_peer_with_other_joints_is_refused():
    """A ball joint or a follower has other coordinates there; the error names it."""
    with pytest.raises(dyn.UnsupportedError, match="other coordinates there for"):
        plain_joints(named("every_joint", False))
    arm = named("arm7", False)
    assert plain_joints(arm) == list(arm.model.names[1:])


@NATIVE
def test_compile_times_have_a_row_or_a_reason_for_each_solver(capsys):
    """Robots in processes of their own; what does not serve a robot is named."""
    solvers = "rnea,aba,admm,fd_directional"
    command = ["bench", "--compile", "--robot", "chain3", "--solvers", solvers]
    assert main([*command, "--markdown"]) == 0
    said, shown = capsys.readouterr()
    rows = [x.strip("| ").split(" | ") for x in said.splitlines() if "| chain3" in x]
    assert [row[1] for row in rows] == ["rnea", "aba", "fd_directional", "admm"]
    for row in rows[:3]:
        nodes, trace, first, ready, cpu, size = map(float, row[2:])
        assert nodes > 50 and size > 1 and 0 <= trace <= first <= ready and cpu > 0
    assert rows[3][2] == "runs in NumPy"
    assert shown.count("... chain3: ") == 4
    assert {"rnea", "admm_compiled"} & set(compiling.every_solver()) == {"rnea"}
    assert set(compiling.USUAL) <= set(compiling.every_solver())
    assert len(compiling.ROBOTS) == 10


@NATIVE
def test_cells_that_are_kept_are_not_measured_again(tmp_path):
    """A run that was ended goes on where it was, also behind a line cut short."""
    kept, seen = tmp_path / "cells", []

    def measured(robots):
        parts = robots, ["gravity", "no_solver"], 30.0, seen.append, kept
        return dict(compiling.tables(*parts))

    cell = compiling.Cell("no_solver", reason="was not offered")
    line = json.dumps(["four_bar", dataclasses.asdict(cell)])
    kept.write_text(f'{line}\n["four_bar", {{"solver": "grav')
    tables = measured(["four_bar"])
    assert seen == ["four_bar: gravity (2 of 2)"]
    head, row = tables["compile time and code size"]
    assert head == compiling.HEAD and row[:2] == ["four_bar", "gravity"]
    assert tables["without figures"][1:] == [["four_bar", "no_solver", cell.reason]]
    assert measured(["four_bar"]) == tables and len(seen) == 1


@NATIVE
def test_what_compiles_too_long_is_ended_and_the_rest_goes_on():
    """It says so; the next solver gets a process of its own. A bad robot says why."""
    seen = []
    cells = list(
        compiling.cells("chain40", ["fd_derivatives", "gravity"], 0.4, seen.append)
    )
    assert seen == ["chain40: fd_derivatives", "chain40: gravity"]
    assert cells[0] == compiling.Cell("fd_derivatives", reason="over 0.4 s")
    (cell,) = compiling.cells("no_robot", ["rnea"], 1.0, seen.append)
    assert "no robot is called 'no_robot'" in cell.reason and not cell.nodes


def test_cells_without_a_figure_say_why():
    """What is missing, what differs, and where a peer is faster stand below."""
    row = measure.Figures("rnea", 2e-6, 1e6, 1e6, 1e6, 0.1, 0.1, 1, 1)
    row.peers = {
        "quick": measure.Beside(1e-6, None), "other": measure.Beside(4e-6, 1e5, "differs"),
        "none": measure.Beside(reason="not offered"),
    }  # fmt: skip
    assert list(notes([row], list(row.peers))) == [
        "other: all: differs.", "none: all: not offered.",
        "Slower here: rnea, call (quick, 0.50x).",
    ]  # fmt: skip
    assert row.peers["other"].ratios(row) == pytest.approx((2.0, 4.0))
    head, line = command._cells([row], list(row.peers), 1e9, merged=True)
    assert line[-3:] == ["1000, 0.5x, 1.0x", "4000!, 2.0x, 4.0x", "-"]
    assert next(notes([], ["quick"])) == "Slower here: none."


def test_a_peer_that_fails_leaves_a_reason():
    """Its trouble ends no measurement, and wrong values are marked."""
    robot = named("planar3", False)
    figures = measure.Figures("rnea", 1e-6, 1e6, 1e6, 1e6, 0.1, 0.1, 1, 1)
    figures.values = _ours(robot, "rnea")

    class Broken(BodyVelocities):
        def prepare(self):
            self.order = range(3)
            states = self.rows_of("a")
            self.calls["rnea"] = PeerCall("x = 0 * q", states, "q, v, a", "x")
            self.calls["aba"] = PeerCall("x = wrong", states, "q, v, a", "x")

        def position(self, q):
            return q

    peer = Broken(robot, STATES)
    beside = measure_beside(peer, figures)
    assert beside.reason.startswith("differs by ") and beside.call > 0
    figures.algorithm, figures.values = "aba", _ours(robot, "aba")
    assert measure_beside(peer, figures).reason.startswith("fails: name 'wrong'")
    figures.algorithm = "crba"
    assert measure_beside(peer, figures) == measure.Beside(reason="not offered")


@pytest.fixture
def hurried(monkeypatch):
    """Measure little: these tests are about tables, not about time."""
    monkeypatch.setattr(timing, "REPEATS", 1)
    monkeypatch.setattr(timing, "SPAN", 1e-5)
    for module, name, value in (
        (planar, "ROWS", 64), (planar, "ENVIRONMENTS", 64), (planar, "BATCHES", (1, 64)),
        (contact_tables, "ROWS", 64), (contact_tables, "SETTLE", 40), (contact_tables, "SIZES", (2,)),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


def _rows(said):
    return [line.split("  ")[0] for line in said.splitlines()]


@NATIVE
@pytest.mark.full
def test_bench_of_planar_systems_prints_its_tables(hurried, capsys, monkeypatch):
    """Steps, environments, accelerations; a peer that is missing is said and left out."""
    assert main(["bench", "--planar"]) == 0
    said = capsys.readouterr().out
    for name in (*planar.NAMES, planar.STEP, "system", "rows"):
        assert name in _rows(said)
    assert "chain_recursion: ns of a row" in said
    for name in ("mujoco", "gymnasium"):
        assert (f"{name} ns" in said) == (planar.version(name) is not None)
    monkeypatch.setattr(planar, "version", lambda name: None)
    monkeypatch.setattr(planar, "NAMES", planar.NAMES[:1])
    assert main(["bench", "--planar", "--markdown"]) == 0
    said, progress = capsys.readouterr()
    assert "| system | ns/call | M/s core |\n" in said
    assert "| classic_cart_pole | " in said
    assert "steps (no peers)" in said
    for name in ("mujoco", "gymnasium"):
        assert f"{name} is not installed; its columns are left out" in progress


@NATIVE
@pytest.mark.full
def test_bench_of_contacts_prints_its_tables(hurried, capsys, monkeypatch):
    """Steps of a quadruped, solvers x problems; a missing peer is said and left out.

    With --full only: 7 s, most of it compiling.
    """
    monkeypatch.setattr(contact_tables, "version", lambda name: None)
    monkeypatch.setattr(contact_runs, "version", lambda name: None)
    monkeypatch.setattr(contact_runs, "STEPS", 5)
    monkeypatch.setattr(contact_runs, "scenes", lambda: [contact_scenes.four_bar()])
    monkeypatch.setattr(contact_runs, "growing", lambda: [contact_scenes.towers(1, 1)])
    for tables in (contact_batches, contact_protocols):
        monkeypatch.setattr(tables, "table", lambda progress: [["scene"], ["-"]])
    assert main(["bench", "--contact"]) == 0
    said, progress = capsys.readouterr()
    name, single = "contact_euler, projected_gauss_seidel, float", "32, tolerance 1e-06"
    assert {f"{name}64, tolerance 1e-09", name + single} <= set(_rows(said))
    assert "mujoco is not installed; its rows are left out" in progress
    assert "mujoco is not installed; its columns are left out" in progress
    assert "1 box" in _rows(said) and "four-bar with a foot" in _rows(said)
    lines = {line.split("  ")[0]: line for line in said.splitlines()}
    assert " ok " in lines["C6 stack (1, 1000)"]
    assert " limit " in lines["C6 stack (1, 1000)"]  # Gauss-Seidel, as it must
    assert " - " in lines["C1 incline, sticks"]
    assert lines["random singular, 2"].count("ok ") >= 4


def test_the_walker_is_measured_by_step_and_by_task(hurried, monkeypatch):
    """One step of the integrator in a call, and the steps of the task."""
    program = SimpleNamespace(prepare=lambda: None)
    kernel = SimpleNamespace(build=lambda *_, **__: program)
    monkeypatch.setattr(planar, "solver", lambda name: kernel)
    monkeypatch.setattr(planar, "NAMES", ("walker",))
    cases = {case.name: case.steps for case in planar.cases()}
    assert cases == {planar.STEP: 1, "walker": planar_task("walker").substeps}


@NATIVE
def test_bench_of_steps_prints_its_table(hurried, capsys):
    """Linearised steps here, and of peers that are installed; the others are named."""
    assert main(["bench", "--steps", "--robot", "two_link", "--markdown"]) == 0
    said = capsys.readouterr()
    assert "two_link: 2 dof, fixed base" in said.out
    names = ["kernels on blocks", "a call with out", "a call", "gradient"]
    wanted = [f"{step}, {name}" for step in ("rk4", "semi_implicit_euler")
              for name in names]  # fmt: skip
    for name in (*wanted, "fd_derivatives, a call with out"):
        (line,) = [x for x in said.out.splitlines() if x.startswith(f"| {name} |")]
        assert float(line.split("|")[2]) > 0
    if find_spec("crocoddyl"):
        assert "two costs, calc and calcDiff" in said.out
    else:
        assert "crocoddyl is not installed; its rows are left out" in said.err
    assert main(["bench", "--steps", "--peers", "mujoco"]) == 1
    assert "--peers changes nothing beside --steps" in capsys.readouterr().err


def test_a_free_chain_for_mujoco_slides_at_its_first_body():
    """Its first joint goes anywhere in the plane, the others turn."""
    mjcf = planar_peers.chain_mjcf(planar_task("walker").system, 0.01)
    first, *others = mjcf.split("<body ")[1:]
    assert first.count('type="slide"') == 2
    assert others and not any("slide" in body for body in others)


@pytest.mark.parametrize("name", planar.NAMES)
def test_mujoco_has_the_same_planar_systems(name):
    """One step there gives the rates that it gives here; the walker in the air.

    MuJoCo takes damping implicitly: the step of the walker is short.
    """
    pytest.importorskip("mujoco", reason="mujoco is not installed")
    task = planar_task(name, **({"dt": 1e-5} if name == "walker" else {}))
    rng = np.random.default_rng(3)
    state, action = task.start(rng, 1), rng.uniform(-1, 1, (1, task.na))
    peer = planar_peers.PlanarMuJoCo(task)
    if name == "walker":
        chain, n = task.system, task.system.n
        state[:, 1 : 2 * n : 2] += 0.5
        x, v, *flags, tau, dt = (
            np.asarray(part) for part in planar._parts(task, state, action)
        )
        step = dyn.solver("chain_fixed_step").build(chain, engine="graph")
        x, v = step(x[0], v[0], *(flag[0] for flag in flags), tau[0], dt)[:2]
        wanted = np.r_[v[0], joint_rates(chain, ChainState(x, v))]
        assert np.abs(link_rates(chain, ChainState(x, v))).max() > 0.05
    else:
        after = dyn.solver("task_step").build(task, engine="graph")(
            state[0], action[0]
        )[0]
        wanted = after[task.ns // 2 :]
    (q,), (v,) = peer.place(state)
    peer.data.qpos[:], peer.data.qvel[:] = q, v
    peer.data.qfrc_applied[:] = peer.forces(action)[0]
    peer.mj.mj_step(peer.model, peer.data)
    tolerance = 5e-3 if name == "walker" else 1e-9
    gained = np.abs(wanted - v).max()
    np.testing.assert_allclose(peer.data.qvel, wanted, atol=tolerance * gained)


@NATIVE
def test_peers_hold_the_same_quadruped():
    """Pinocchio's impulses are ours; MuJoCo's four feet bear the same weight."""
    robot = contact_tables.quadruped()
    step = dyn.solver("contact_euler").build(robot.model, engine="native")
    states = contact_tables.standing(step, robot.model, 4, 400)
    impulse = step(*states[:3], states.dt, states.warm)[2].reshape(4, 4, 3)
    if planar.version("mujoco"):
        measured = contact_peers.mujoco(robot, states, 20)
        assert measured.contacts == 4
        assert measured.call > 0 and measured.rate > 0
        model = contact_peers.mujoco_model(robot, 1.0, states.dt)
        np.testing.assert_allclose(model.body_mass.sum(), robot.model.mass)
    pinocchio = pytest.importorskip("pinocchio", reason="pin is not installed")
    if not hasattr(pinocchio, "PGSConstraintSolver"):
        pytest.skip("these bindings have no solvers of contacts")
    peer = contact_peers.PinocchioContacts(robot, states)
    for kind in ("PGS", "ADMM"):
        for k in range(4):
            normals = peer.impulses(kind, k)[2::3]
            np.testing.assert_allclose(normals, impulse[k, :, 0], rtol=1e-2, atol=1e-5)


def test_the_peak_counts_what_it_runs(monkeypatch):
    """Two operations for each multiply-add, whatever the clock says."""
    counts = Counter()

    class Counted:
        def __mul__(self, other):
            counts["mul"] += 1
            return self

        def __add__(self, other):
            counts["add"] += 1
            return self

    monkeypatch.setattr(measure, "flat_program", lambda f, *_, **__: f([Counted()] * 3))
    monkeypatch.setattr(measure, "per_call", lambda *_: 0.5)
    peak = measure.peak()
    assert peak == 2 * counts["add"] * measure.ROWS / 0.5
    assert counts["mul"] - counts["add"] == 12  # to begin with


def test_once_is_the_time_between_two_looks_at_the_clock(monkeypatch):
    """In seconds, the function in between."""
    ticks = iter((3.0, 5.5))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(ticks))
    assert timing.once(lambda: None) == 2.5


def test_rows_of_contact_steps_are_compared_with_the_first():
    """The first row has no peer; a peer's row says how much faster the first is."""
    first = contact_peers.PeerTiming("here", 1e-6, 2e6, 4.0, 3.0)
    peer = contact_peers.PeerTiming("there", 3e-6, 1e6, 4.0, 3.0)
    assert contact_tables._line(first)[:6] == [
        "here",
        "1.00",
        "2000.0",
        "4.0",
        "3.0",
        "",
    ]
    assert contact_tables._line(first._replace(law=2e-7))[5:] == ["2e-07", "", ""]
    assert contact_tables._line(peer, first)[5:] == ["", "3.0x", "2.0x"]


def test_the_box_of_the_bench_stands_on_four_corners():
    """Its contacts take the weight times h, mg cos(20 degrees) h, and it sticks."""
    problem = contact_tables.problems()["C1 incline, sticks"]
    assert [block.rows for block in problem.layout.blocks] == [3] * 4
    solution = contact_tables.solve(problem, "projected_gauss_seidel")
    weight = 2.0 * contact_tables.GRAVITY * contact_tables.H * np.cos(np.radians(20.0))
    assert solution.impulses[::3].sum() == pytest.approx(weight, rel=1e-6)
    np.testing.assert_allclose(solution.velocities, 0, atol=1e-6)
