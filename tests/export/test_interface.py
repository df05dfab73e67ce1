"""The table of an export: what a program that loads the library by name reads."""

import ctypes
import json

import numpy as np
import pytest
from emulate import build, need

import dyn_core as dyn
from dyn_core import cli
from dyn_core.engines.llvm import host_machine
from dyn_core.engines.status import NOT_FINITE_INPUT
from dyn_core.export.c.interface_table import MEMBERS, PORT_MEMBERS
from dyn_core.export.cycle.controller_cycle import CYCLES, control_cycle
from dyn_core.export.interface import identifier, interface_of

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=f"no machine code: {host_machine.missing()}"
)


def _structure(members):
    """Return a structure of ctypes with these members."""
    kinds = {"int64_t ": ctypes.c_int64, "const char *": ctypes.c_char_p}
    fields = [(name, kinds.get(kind, ctypes.c_void_p)) for kind, name, _ in members]
    return type("Table", (ctypes.Structure,), {"_fields_": fields})


def _names(address, count):
    pointers = (ctypes.c_char_p * count).from_address(address) if count else ()
    return tuple(x.decode() for x in pointers)


def _ports(address, count):
    kind = _structure(PORT_MEMBERS)
    ports = (kind * count).from_address(address)
    for port in ports:
        shape = tuple((ctypes.c_int64 * port.n_axes).from_address(port.shape or 1))
        yield (
            port.name.decode(), port.c_name.decode(), shape, port.size,
            port.unit.decode(), port.kind.decode(), port.meaning.decode(),
            tuple(axis.strip("-") for axis in port.axes.decode().split()),
        )  # fmt: skip


@pytest.mark.parametrize(
    "solver, robot, options",
    [
        ("aba", "every_joint", {}),
        ("id_derivatives", "arm7", {"dtype": "float32"}),
        ("rk4", "quadruped", {"finite": True}),
    ],
)
def test_the_table_says_what_the_interface_does(tmp_path, solver, robot, options):
    """Every member, read by dlopen and dlsym, and the call through its pointer."""
    need("cc")
    program = build(solver, robot, **options)
    result = program.export(tmp_path, form="shared", variant="batch")
    x = result.interface
    library = ctypes.CDLL(str(tmp_path / result.binary))
    table = _structure(MEMBERS).in_dll(library, f"{x.prefix}_interface")
    for name in ("prefix", "solver", "problem", "robot", "model_hash", "kernel_hash"):
        assert getattr(table, name).decode() == getattr(x, name)
    assert (table.abi, table.alignment) == (1, 64)
    assert table.real_bytes == program.dtype.itemsize
    assert bool(table.finite) is x.finite
    for name in ("scratch", "batch_scratch", "lanes"):
        assert getattr(table, name) == getattr(x, name)
    for count, names in (
        ("n_statuses", ["statuses"]),
        ("n_positions", ["positions", "position_units"]),
        ("n_velocities", ["velocities", "velocity_units"]),
        ("n_bodies", ["bodies"]),
    ):
        for name in names:
            listed = _names(getattr(table, name), getattr(table, count))
            assert listed == getattr(x, name)
    for name in ("inputs", "outputs"):
        ports = _ports(getattr(table, name), getattr(table, f"n_{name}"))
        wanted = [
            (p.name, p.c_name, p.shape, p.size, p.unit, p.kind, p.meaning, p.axes)
            for p in getattr(x, name)
        ]
        assert list(ports) == wanted
    function = ctypes.cast(getattr(library, x.prefix), ctypes.c_void_p).value
    rows = ctypes.cast(getattr(library, f"{x.prefix}_batch"), ctypes.c_void_p).value
    assert (table.run, table.batch) == (function, rows)


@pytest.mark.parametrize("checked", [True, False], ids=["checked", "unchecked"])
@pytest.mark.parametrize("solver", ["aba", "gravity_compensation_cycle"])
def test_program_export_and_dyn_export_write_the_same(tmp_path, solver, checked):
    """Header, statuses and hash; checked by default. A whole controller never is: it
    answers numbers that are not finite.
    """
    model, flags = dyn.load("two_link"), [] if checked else ["--unchecked"]
    options = {} if checked else {"checked": False}
    if solver in CYCLES:
        program = control_cycle(solver, model)
    else:
        program = dyn.solver(solver).build(model)
    result = program.export(tmp_path / "python", **options)
    command = ["export", solver, "two_link", str(tmp_path / "dyn"), *flags]
    assert cli.main(command) == 0
    names = {file.name for file in (tmp_path / "dyn").iterdir()}
    assert names == set(result.files)
    for name in names:
        mine, other = (tmp_path / x / name for x in ("python", "dyn"))
        assert mine.read_bytes() == other.read_bytes()
    finite = checked and solver not in CYCLES
    assert result.interface.finite is finite
    header = (tmp_path / "python" / f"{result.interface.prefix}.h").read_text()
    assert ("an input is NaN or infinite" in header) is finite
    vector = json.loads(
        (tmp_path / "dyn" / f"{result.interface.prefix}_test.json").read_text()
    )
    assert (vector["states"][-1]["status"] == NOT_FINITE_INPUT) is finite


def test_the_header_of_a_controller_tells_its_settings(tmp_path):
    """Rules, bounds, limits and links that differ from their defaults."""
    arguments = [
        "export", "cartesian_impedance_cycle", "arm7", str(tmp_path),
        "--option", "state_timeout=0.07", "--option", "power=90.0",
        "--option", "cartesian.frame=tool",
    ]  # fmt: skip
    assert cli.main(arguments) == 0
    header = tmp_path / "cartesian_impedance_cycle_arm7.h"
    content = " ".join(header.read_text().split())
    for each in ("state_timeout=0.07", "power=90.0", "cartesian.frame='tool'"):
        assert each in content
    plain = control_cycle("gravity_compensation_cycle", dyn.load("two_link"))
    assert "state_timeout" not in plain.export(tmp_path / "plain").interface.options


def test_a_checked_program_may_be_exported_unchecked(tmp_path):
    """checked= of the export decides, however Python built the Program."""
    program = build("rnea", "two_link", finite=True)
    assert program.export(tmp_path / "a").interface.finite
    assert not program.export(tmp_path / "b", checked=False).interface.finite


def test_a_call_by_ctypes(tmp_path):
    """A library that is loaded gives what the Program does."""
    need("cc")
    program = build("rnea", "arm7")
    result = program.export(tmp_path, form="shared")
    x = result.interface
    function = getattr(ctypes.CDLL(str(tmp_path / result.binary)), x.prefix)
    function.restype = ctypes.c_int64
    arrays = list(np.random.default_rng(3).normal(size=(3, 7)))
    tau = np.empty(7)
    memory = np.empty(x.scratch + 64, np.uint8)
    start = memory.ctypes.data + -memory.ctypes.data % 64
    pointers = (ctypes.c_void_p * 3)(*(a.ctypes.data for a in arrays))
    results = (ctypes.c_void_p * 1)(tau.ctypes.data)
    assert function(pointers, results, ctypes.c_void_p(start)) == 0
    assert tau.tobytes() == program(*arrays).tobytes()


def test_the_manifest_holds_all(tmp_path):
    """A program that is not C reads PREFIX.json and the test vector."""
    result = build("aba", "every_joint").export(tmp_path, variant="batch")
    facts = json.loads((tmp_path / "aba_every_joint.json").read_text())
    assert facts["interface"]["positions"] == list(result.interface.positions)
    assert set(facts["files"]) | {"aba_every_joint.json"} == set(result.files)
    vector = json.loads((tmp_path / "aba_every_joint_test.json").read_text())
    status = [state["status"] for state in vector["states"]]
    assert status[0] == 0 and status[-2] > 0 and status[-1] == NOT_FINITE_INPUT
    assert set(vector["states"][-1]["out"]) == {"7ff8000000000000"}


def test_statuses_in_words():
    """The sentence of a status is the error that Python raises."""
    program = build("aba", "every_joint")
    x = interface_of(program)
    assert len(x.statuses) == len(program.graph.requirements)
    assert x.sentence(1) == f"SingularError: {program.failure(1)}"
    assert x.sentence(0) == "no error" and "NaN" in x.sentence(-1)


def test_the_kernel_hash_is_of_the_algorithm_and_its_numbers():
    """Equal for equal Programs; other where robot, options or numbers are."""
    mine = interface_of(build("rnea", "arm7")).kernel_hash
    assert interface_of(build("rnea", "arm7")).kernel_hash == mine
    others = [
        build("rnea", "arm7", dtype="float32"),
        build("rnea", "arm7", joint_friction=False),
        build("rnea_spatial", "arm7"),
    ]
    hashes = {interface_of(program).kernel_hash for program in others}
    assert len(hashes - {mine}) >= 2


@pytest.mark.parametrize(
    "text, name",
    [("a b", "a_b"), ("7dof", "_7dof"), ("käse", "k_se"), ("", "_"), ("x.y", "x_y")],
)
def test_identifiers(text, name):
    """Names of robots and parameters become names of C."""
    assert identifier(text) == name


def test_parameters_are_ports():
    """A parameter path is an input, with a name that C takes; keywords are changed."""
    x = interface_of(build("rnea", "arm7", inputs=["link7.mass"]))
    assert x.inputs[-1].name == "link7.mass"
    assert x.inputs[-1].c_name == "link7_mass"
