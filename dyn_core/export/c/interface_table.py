"""The interface table as constants, in LLVM IR and in C, with a common layout.

All members are 64-bit numbers or pointers, so that every compiler uses the same layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dyn_core.export.interface import (
    ABI,
    ALIGNMENT,
    Interface,
    PortInterface,
)
from dyn_core.validation.quoting import c_string

# Members of the structures in C: type, name, meaning.
PORT_MEMBERS = (
    ("const char *", "name", "as in Python"),
    ("const char *", "c_name", "as an identifier"),
    ("const char *", "unit", "SI; alternatives by a bar, parts by a semicolon"),
    ("const char *", "kind", "position, velocity, joint_force, ..., plain"),
    ("const char *", "meaning", "a short noun phrase"),
    ("const char *", "axes", "what each axis counts: nq, nv, nb, or - for others"),
    ("const int64_t *", "shape", "of n_axes sizes, row-major"),
    ("int64_t ", "n_axes", "0 for a number"),
    ("int64_t ", "size", "number of entries"),
)
MEMBERS = (
    ("int64_t ", "abi", "DYN_INTERFACE_ABI of the library"),
    ("const char *", "prefix", "name of the functions"),
    ("const char *", "solver", "name"),
    ("const char *", "problem", "name"),
    ("const char *", "robot", "name"),
    ("const char *", "model_hash", "16 hexadecimal digits of the robot"),
    ("const char *", "kernel_hash", "16 hexadecimal digits of algorithm and ports"),
    ("const char *", "library", "version of dyn_ros"),
    ("int64_t ", "real_bytes", "8 for double, 4 for float"),
    ("int64_t ", "finite", "1 where inputs and results are checked for NaN"),
    ("int64_t ", "n_inputs", ""),
    ("int64_t ", "n_outputs", ""),
    ("const dyn_port *", "inputs", "in the order of the call"),
    ("const dyn_port *", "outputs", ""),
    ("int64_t ", "n_statuses", ""),
    ("const char *const *", "statuses", "what status k says stands at k - 1"),
    ("int64_t ", "n_positions", "nq"),
    ("const char *const *", "positions", "names of the coordinates"),
    ("const char *const *", "position_units", "rad, m, or 1 in a quaternion"),
    ("int64_t ", "n_velocities", "nv"),
    ("const char *const *", "velocities", ""),
    ("const char *const *", "velocity_units", "rad or m"),
    ("int64_t ", "n_bodies", "nb"),
    ("const char *const *", "bodies", ""),
    ("int64_t ", "alignment", "of scratch memory [bytes]"),
    ("int64_t ", "scratch", "[bytes]"),
    ("int64_t ", "batch_scratch", "[bytes]"),
    ("int64_t ", "lanes", "rows that the batch computes at once"),
    ("dyn_run ", "run", "one state"),
    ("dyn_run_batch ", "batch", "rows; null where it is not exported"),
)


class ExportedName(str):
    """Name of an exported function; other strings in a table are string constants."""


def _values(interface: Interface, batch: bool) -> list[Any]:
    """Return the values of MEMBERS, in order; None where there is no batch function."""
    x = interface
    return [
        ABI, x.prefix, x.solver, x.problem, x.robot, x.model_hash, x.kernel_hash,
        x.library, 4 if x.dtype == "float32" else 8, int(x.finite),
        len(x.inputs), len(x.outputs), x.inputs, x.outputs,
        len(x.statuses), x.statuses,
        len(x.positions), x.positions, x.position_units,
        len(x.velocities), x.velocities, x.velocity_units,
        len(x.bodies), x.bodies,
        ALIGNMENT, x.scratch, x.batch_scratch, x.lanes,
        ExportedName(x.prefix), ExportedName(f"{x.prefix}_batch") if batch else None,
    ]  # fmt: skip


def _port_values(port: PortInterface) -> list[Any]:
    axes = " ".join(axis or "-" for axis in port.axes)
    return [
        port.name, port.c_name, port.unit, port.kind, port.meaning, axes,
        port.shape, len(port.shape), port.size,
    ]  # fmt: skip


def structures() -> str:
    """Return the C types of table, ports, functions; equal in all headers, no guard."""
    lines = [
        "typedef int64_t (*dyn_run)(const void *const *in, void *const *out,"
        " void *scratch);",
        "typedef int64_t (*dyn_run_batch)(const void *const *in,"
        " const int64_t *strides,",
        "    void *const *out, int64_t *status, int64_t first, int64_t last,"
        " void *scratch);",
        "",
    ]
    for name, members in (("dyn_port", PORT_MEMBERS), ("dyn_interface", MEMBERS)):
        lines.append(f"typedef struct {name} {{")
        for kind, member, meaning in members:
            note = f" /* {meaning} */" if meaning else ""
            lines.append(f"    {kind}{member};{note}")
        lines += [f"}} {name};", ""]
    return "\n".join(lines[:-1])


def table_ir(interface: Interface, batch: bool, section: str) -> str:
    """Return the table as LLVM IR: the constant PREFIX_interface.

    The functions that it refers to are declared. `section` is that of table and arrays,
    not of strings, which linkers drop if it is unused; "" for the default section.
    """
    writer = _TableWriter(interface.prefix, section)
    port = [writer.ports(ports) for ports in (interface.inputs, interface.outputs)]
    fields = []
    for value in _values(interface, batch):
        if value is interface.inputs or value is interface.outputs:
            fields.append(f"ptr {port[value is interface.outputs]}")
        else:
            fields.append(writer.field(value))
    name = f"@{interface.prefix}"
    pointers = "ptr, ptr, ptr, ptr, i64, i64, ptr"
    writer.lines.append(f"declare i64 {name}(ptr, ptr, ptr)")
    if batch:
        writer.lines.append(f"declare i64 {name}_batch({pointers})")
    body = ", ".join(fields)
    kinds = ", ".join(field.split(" ", 1)[0] for field in fields)
    place = f', section "{section}"' if section else ""
    writer.lines.append(
        f"{name}_interface = constant {{{kinds}}} {{{body}}}{place}, align 8"
    )
    return "\n".join(writer.lines) + "\n"


class _TableWriter:
    """A writer of constants in LLVM IR to `lines`, arrays in `section` if given."""

    def __init__(self, prefix: str, section: str) -> None:
        self.prefix, self.lines = prefix, list[str]()
        self.section = f', section "{section}"' if section else ""
        self._strings: dict[str, str] = {}

    def field(self, value: Any) -> str:
        """Return a member with its type, such as "i64 3" or "ptr @.name".

        Strings and lists are defined in `lines`; None and an empty list are null.
        """
        if value is None:
            return "ptr null"
        if isinstance(value, int):
            return f"i64 {value}"
        if isinstance(value, ExportedName):
            return f"ptr @{value}"
        if isinstance(value, str):
            return f"ptr {self._string(value)}"
        return f"ptr {self._array([self.field(x) for x in value])}"

    def ports(self, ports: Sequence[PortInterface]) -> str:
        """Define an array of ports in `lines`; return its name, "@...", or "null"."""
        rows = []
        for port in ports:
            fields = [self.field(value) for value in _port_values(port)]
            kinds = ", ".join(field.split(" ", 1)[0] for field in fields)
            rows.append(f"{{{kinds}}} {{{', '.join(fields)}}}")
        return self._array(rows)

    def _array(self, fields: Sequence[str]) -> str:
        """Define an array of fields of one type; return its name, with @, or null."""
        if not fields:
            return "null"
        kind = "ptr" if fields[0].startswith("ptr") else "i64"
        if fields[0].startswith("{"):
            kind = fields[0][: fields[0].index("}") + 1]
        name = f"@.{self.prefix}_{len(self.lines)}"
        self.lines.append(
            f"{name} = private constant [{len(fields)} x {kind}]"
            f" [{', '.join(fields)}]{self.section}, align 8"
        )
        return name

    def _string(self, text: str) -> str:
        """Define a string, zero-terminated, once for equal ones; return its @name."""
        if text not in self._strings:
            name = f"@.{self.prefix}_{len(self.lines)}"
            data = "".join(f"\\{byte:02X}" for byte in (*text.encode(), 0))
            self.lines.append(
                f"{name} = private unnamed_addr constant"
                f' [{len(text.encode()) + 1} x i8] c"{data}"'
            )
            self._strings[text] = name
        return self._strings[text]


def table_c(interface: Interface, batch: bool) -> str:
    """Return the table PREFIX_interface in C, for the end of a source.

    The source has the functions that the table refers to, and before it the types of
    the header (dyn_interface, dyn_port, ...).
    """
    lines: list[str] = []

    def constant(value: Any) -> str:
        if value is None:
            return "0"
        if isinstance(value, int):
            return str(value)
        if isinstance(value, ExportedName):
            rows = value != interface.prefix
            return f"({'dyn_run_batch' if rows else 'dyn_run'}){value}"
        if isinstance(value, str):
            return c_string(value)
        return array([constant(x) for x in value], value)

    def array(entries: Sequence[str], value: Any) -> str:
        if not entries:
            return "0"
        name = f"{interface.prefix}_constant_{len(lines)}"
        kind = "int64_t " if isinstance(value[0], int) else "char *const "
        if isinstance(value[0], PortInterface):
            kind = "dyn_port "
        lines.append(f"static const {kind}{name}[] = {{{', '.join(entries)}}};")
        return name

    fields = []
    for value in _values(interface, batch):
        if value and not isinstance(value, (str, int)):
            first = value[0]
            if isinstance(first, PortInterface):
                rows = [
                    "{" + ", ".join(constant(x) for x in _port_values(p)) + "}"
                    for p in value
                ]
                fields.append(array(rows, value))
                continue
        fields.append(constant(value))
    body = ",\n    ".join(fields)
    lines.append(
        f"const dyn_interface {interface.prefix}_interface = {{\n    {body}}};"
    )
    return "\n".join(lines) + "\n"
